"""The claims of this version in a scheduling cycle.

What may live here: the two kinds that a cycle has to know, ``StructuredClaims`` and
``ControllerClaims``, which are registered for every cycle, and ``NamedFacts``, which wake-ups
use, too. The protocol is ``dra_core.scheduling.cycle_kinds.ClaimKind``.

A claim without allocation is of the kind that its class says. One with an allocation is a
scheduler's if it has the finalizer, or at least handles as only schedulers write them; it
is a controller's otherwise. So one pod may have claims of both kinds.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

import attrs

from dra_core.allocator.allocation import DEFAULT_BUDGET
from dra_core.allocator.results import Allocated, ConflictKind, Unsatisfiable
from dra_core.api import objects
from dra_core.api.core import Node
from dra_core.api.names import ObjectKey
from dra_core.api.objects import ResourceClaimConsumerReference
from dra_core.claims.binding import BindingPlan
from dra_core.errors import AllocationError
from dra_core.inventory.allocated import AllocatedState
from dra_core.inventory.matching import NodeMatcher
from dra_core.scheduling.cycle_kinds import ClaimForm, Granted, NodeAnswer
from dra_core.scheduling.cycle_verdicts import NodeProblem, NodeReason
from dra_core.v1alpha2.allocation import NamedAllocator
from dra_core.v1alpha2.claims import ResourceClaim
from dra_core.v1alpha2.errors import MissingObjectError
from dra_core.v1alpha2.objects import VERSION, ResourceClass
from dra_core.v1alpha2.plan import Plan, find_class, suitable_nodes
from dra_core.v1alpha2.source import NamedInput
from dra_core.v1alpha2.status import (
    EXTRA_CLEARED,
    Allocation,
    allocated_by_scheduler,
    allocation_of,
    binding_plan,
    has_delayed_allocation,
    max_consumers,
)
from dra_core.v1alpha2.wire import decode_resource_claim

FORM: Final = ClaimForm(VERSION, EXTRA_CLEARED, decode_resource_claim)
"""How claims of this version are read and written."""


@attrs.frozen
class NamedFacts:
    """What is known of claims of this version, as classes and parameters are now."""

    allocator: NamedAllocator

    @property
    def form(self) -> ClaimForm:
        """How they are read and written."""
        return FORM

    def allocation_of(self, claim: objects.ResourceClaim) -> Allocation | None:
        """Who allocates the claim, or did; ``None`` for a claim of another version."""
        if not isinstance(claim, ResourceClaim):
            return None
        return allocation_of(claim, self.allocator.classes.get(claim.spec.class_name))

    def by_driver(self, claim: objects.ResourceClaim) -> bool:
        """Whether a control plane controller allocates the claim."""
        return self.allocation_of(claim) is not Allocation.STRUCTURED

    def immediate(self, claim: objects.ResourceClaim) -> bool:
        """Whether the controller does so at once. Who it is is not known without the class."""
        return (
            self.allocation_of(claim) is Allocation.IMMEDIATE
            and isinstance(claim, ResourceClaim)
            and claim.spec.class_name in self.allocator.classes
        )

    def by_scheduler(self, claim: objects.ResourceClaim) -> bool:
        """Whether a scheduler allocated the claim: it has the finalizer."""
        return allocated_by_scheduler(claim)

    def delayed(self, claim: objects.ResourceClaim) -> bool:
        """Whether its controller would allocate it again only for a pod that needs it."""
        return has_delayed_allocation(claim)

    def limit(self, claim: objects.ResourceClaim) -> int:
        """32 consumers of a shareable claim, one of any other."""
        return max_consumers(claim.allocation)

    def missing(self, claim: objects.ResourceClaim) -> AllocationError | None:
        """The class, or the first parameters, that do not exist yet.

        Raises ``AllocationError`` for any other fault.
        """
        error: AllocationError | None = None
        if self.allocation_of(claim) is Allocation.STRUCTURED:
            error = self.allocator.plan([claim]).error
        elif isinstance(claim, ResourceClaim):
            try:
                suitable_nodes(claim, find_class(self.allocator.classes, claim))
            except MissingObjectError as missing:
                error = missing.with_traceback(None)
        if error is not None and not isinstance(error, MissingObjectError):
            raise error
        return error


@attrs.frozen
class _Claims(NamedFacts):
    """What both kinds have in common. ``classes`` stay as they were when the input was taken."""

    classes: Mapping[str, ResourceClass]

    def _plan(
        self,
        claim: objects.ResourceClaim,
        allocation: objects.AllocationResult,
        consumer: ResourceClaimConsumerReference,
        is_new: bool,
        suits: Callable[[objects.AllocationResult], bool],
        by_scheduler: bool,
    ) -> BindingPlan:
        driver = ""
        if isinstance(claim, ResourceClaim):
            resource_class = self.classes.get(claim.spec.class_name)
            driver = claim.driver_name if resource_class is None else resource_class.driver_name
        return binding_plan(
            consumer,
            allocation,
            is_new=is_new,
            driver=driver,
            by_scheduler=by_scheduler,
            suits=suits,
        )


@attrs.frozen
class StructuredClaims(_Claims):
    """Claims that the scheduler allocates, from the slices of ``given``.

    ``budget``, ``deadline`` and ``cancel`` bound the search on each node.
    """

    given: NamedInput
    budget: int | None = DEFAULT_BUDGET
    deadline: Callable[[], bool] | None = None
    cancel: Callable[[], bool] | None = None

    @property
    def basis(self) -> AllocatedState:
        """What was in use, as the claim tracker knows."""
        return self.given.basis

    def handles(self, claim: objects.ResourceClaim) -> bool:
        """Whether the claim is, or will be, allocated by a scheduler."""
        return self.allocation_of(claim) is Allocation.STRUCTURED

    def prepare(self, claims: Sequence[objects.ResourceClaim]) -> "PreparedStructured":
        """Unallocated claims of one pod, laid out for the search on any node."""
        return PreparedStructured(self, self.allocator.plan(claims))

    def binding_plan(
        self,
        claim: objects.ResourceClaim,
        allocation: objects.AllocationResult,
        consumer: ResourceClaimConsumerReference,
        *,
        is_new: bool,
        suits: Callable[[objects.AllocationResult], bool],
        timestamp: str,
    ) -> BindingPlan:
        """Finalizer, allocation with the driver's name, reservation. There is no timestamp."""
        return self._plan(claim, allocation, consumer, is_new, suits, by_scheduler=True)


@attrs.frozen
class PreparedStructured:
    """Structured claims of one pod, laid out for the search on any node."""

    kind: StructuredClaims
    plan: Plan

    def on_node(self, node: Node) -> NodeAnswer:
        """What the claims would get. Raises ``StaleInputError`` for an input of the past."""
        kind = self.kind
        kind.given.check_current()
        outcome = kind.allocator.allocate(
            self.plan,
            node,
            kind.given.allocated,
            budget=kind.budget,
            deadline=kind.deadline,
            cancel=kind.cancel,
        )
        if isinstance(outcome, Allocated):
            return Granted(outcome.results)
        if not isinstance(outcome, Unsatisfiable):
            return outcome
        conflict = outcome.conflicts[0]
        if conflict.kind is ConflictKind.UNSUITABLE_NODE:
            claim = self.plan.claims[conflict.requests[0][0]].claim
            return NodeProblem(NodeReason.CLASS_NODES, cause=claim.metadata.key)
        return NodeProblem(NodeReason.DOES_NOT_FIT, cause=outcome)


@attrs.frozen
class ControllerClaims(_Claims):
    """Claims that a control plane controller allocates, delayed or at once."""

    basis: ClassVar[None] = None

    def handles(self, claim: objects.ResourceClaim) -> bool:
        """Whether the claim is of this version, and not a scheduler's."""
        return self.allocation_of(claim) in (Allocation.DELAYED, Allocation.IMMEDIATE)

    def prepare(self, claims: Sequence[objects.ResourceClaim]) -> "PreparedController":
        """Unallocated claims of one pod, which limit the nodes by their classes."""
        limits: list[tuple[ObjectKey, NodeMatcher]] = []
        for claim in claims:
            if isinstance(claim, ResourceClaim):
                matcher = suitable_nodes(claim, find_class(self.classes, claim))
                if matcher is not None:
                    limits.append((claim.metadata.key, matcher))
        return PreparedController(tuple(limits))

    def binding_plan(
        self,
        claim: objects.ResourceClaim,
        allocation: objects.AllocationResult,
        consumer: ResourceClaimConsumerReference,
        *,
        is_new: bool,
        suits: Callable[[objects.AllocationResult], bool],
        timestamp: str,
    ) -> BindingPlan:
        """Only to reserve: the controller protects what it allocates."""
        return self._plan(claim, allocation, consumer, is_new, suits, by_scheduler=False)


@attrs.frozen
class PreparedController:
    """Claims of controllers: nothing is allocated for them, but nodes are ruled out."""

    limits: tuple[tuple[ObjectKey, NodeMatcher], ...]

    def on_node(self, node: Node) -> NodeAnswer:
        """Whether the node is one that the classes are for."""
        for key, matcher in self.limits:
            if not matcher.matches(node):
                return NodeProblem(NodeReason.CLASS_NODES, cause=key)
        return Granted()


def claim_kinds(
    given: NamedInput,
    *,
    budget: int | None = DEFAULT_BUDGET,
    deadline: Callable[[], bool] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> tuple[StructuredClaims, ControllerClaims]:
    """The kinds to register for a cycle that looks at ``given``."""
    allocator, classes = given.allocator, given.classes
    return (
        StructuredClaims(allocator, classes, given, budget, deadline, cancel),
        ControllerClaims(allocator, classes),
    )
