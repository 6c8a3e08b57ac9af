"""Classic claims: the control plane controller of a driver allocates them.

What may live here: the kind of claims of v1alpha3 with ``spec.controller``, and what a
cycle needs to negotiate a node with the controllers of any version. The negotiation is
decided in ``context_nodes``, and published by ``context_publishing``.

Source: KEP-3063.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import attrs

from dra_core.api.core import Node
from dra_core.api.names import ObjectKey
from dra_core.api.objects import (
    AllocationResult,
    DeviceClass,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.claims.binding import BindingPlan
from dra_core.claims.deallocation import allocated_by_scheduler, has_delayed_allocation
from dra_core.claims.reservation import MAX_CONSUMERS_1_32
from dra_core.errors import AllocationError
from dra_core.inventory.matching import NodeMatcher, NodeSelectorProblem, compile_node_selector
from dra_core.scheduling.context import ContextPolicy, ContextRecord
from dra_core.scheduling.context_nodes import Sampler
from dra_core.scheduling.cycle_kinds import ClaimForm, Granted, NodeAnswer
from dra_core.scheduling.cycle_verdicts import NodeProblem, NodeReason
from dra_core.scheduling.errors import SuitableNodesError
from dra_core.scheduling.wakeups_demand import DeviceClaims, requested


@attrs.frozen
class Negotiation:
    """How a node is agreed on with drivers, for one pod.

    ``policy`` is the cluster's. ``sample`` picks potential nodes where too many fit. ``known``
    is the pod's PodSchedulingContext as the host's cache has it. ``record`` is what an
    earlier attempt left (``PodCycle.context``), with changes that are not published yet.
    """

    policy: ContextPolicy
    sample: Sampler
    known: PodSchedulingContext | None = None
    record: ContextRecord | None = None


@attrs.frozen
class ClassicClaims:
    """Claims with ``spec.controller``, whose nodes are limited by their classes.

    ``classes`` by name. ``consumers`` is the most consumers of a claim.
    """

    classes: Mapping[str, DeviceClass]
    version: str = "v1alpha3"
    consumers: int = MAX_CONSUMERS_1_32

    basis: ClassVar[None] = None

    @property
    def form(self) -> ClaimForm:
        return ClaimForm(self.version)

    def handles(self, claim: ResourceClaim) -> bool:
        allocation = claim.allocation
        return bool(claim.controller or (allocation is not None and allocation.controller))

    def by_driver(self, claim: ResourceClaim) -> bool:
        return True

    def immediate(self, claim: ResourceClaim) -> bool:
        return False  # existed in v1alpha2 only

    def missing(self, claim: ResourceClaim) -> AllocationError | None:
        """The first missing class. Raises ``AllocationError`` for any other fault."""
        missing = DeviceClaims(self.classes.get).missing(claim)
        if missing is None:
            self.prepare([claim])
        return missing

    def prepare(self, claims: Sequence[ResourceClaim]) -> "PreparedClassic":
        limits: list[tuple[ObjectKey, NodeMatcher]] = []
        for claim in claims:
            for choice in requested(claim):
                matcher = self._nodes_of(claim, choice.device_class_name)
                if matcher is not None:
                    limits.append((claim.metadata.key, matcher))
        return PreparedClassic(tuple(limits))

    def _nodes_of(self, claim: ResourceClaim, device_class: str) -> NodeMatcher | None:
        nodes = self.classes[device_class].suitable_nodes
        try:
            return None if nodes is None else compile_node_selector(nodes)
        except NodeSelectorProblem as problem:
            key = str(claim.metadata.key)
            raise SuitableNodesError(key, "", device_class, problem.problem) from problem

    def limit(self, claim: ResourceClaim) -> int:
        return self.consumers

    def binding_plan(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult,
        consumer: ResourceClaimConsumerReference,
        *,
        is_new: bool,
        suits: Callable[[AllocationResult], bool],
        timestamp: str,
    ) -> BindingPlan:
        """Only to reserve: the controller itself protects what it allocates."""
        return BindingPlan(
            consumer,
            allocation,
            is_new,
            suits,
            version=self.version,
            limit=self.consumers,
        )

    def by_scheduler(self, claim: ResourceClaim) -> bool:
        return allocated_by_scheduler(claim)

    def delayed(self, claim: ResourceClaim) -> bool:
        return has_delayed_allocation(claim)


@attrs.frozen
class PreparedClassic:
    """Classic claims of one pod: nothing is allocated for them, but nodes are ruled out."""

    limits: tuple[tuple[ObjectKey, NodeMatcher], ...]

    def on_node(self, node: Node) -> NodeAnswer:
        """Whether the node is one that the classes are for."""
        for key, matcher in self.limits:
            if not matcher.matches(node):
                return NodeProblem(NodeReason.CLASS_NODES, cause=key)
        return Granted()
