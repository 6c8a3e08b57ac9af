"""Claims of v1alpha2 in a dump: their allocator, and what is special about them.

What may live here: what ``judge``, ``structured`` and ``allocate`` need to treat these
claims as any others.
"""

from collections.abc import Sequence
from typing import Any, Final

import attrs

from dra_core.allocator.results import Outcome
from dra_core.api.core import Node, ObjectMeta
from dra_core.api.objects import ResourceClaim as AnyClaim
from dra_core.api.objects import ResourceClaimTemplate as AnyTemplate
from dra_core.cli.load import Dump
from dra_core.inventory.allocated import AllocatedState
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.allocation import HOSTNAME, NamedAllocator
from dra_core.v1alpha2.claims import ResourceClaim, ResourceClaimTemplate
from dra_core.v1alpha2.inventory import NamedInventory
from dra_core.v1alpha2.objects import (
    AllocationResult,
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceSlice,
)
from dra_core.v1alpha2.parameters import ParameterStore
from dra_core.v1alpha2.plan import Plan
from dra_core.v1alpha2.status import Allocation, allocation_of, max_consumers

_SECRET: Final = ("vendorClassParameters", "vendorClaimParameters", "vendorRequestParameters")


def is_named(claim: AnyClaim | AnyTemplate | None) -> bool:
    """Whether a claim or template is of v1alpha2."""
    return isinstance(claim, ResourceClaim | ResourceClaimTemplate)


def allocator_for(dump: Dump) -> NamedAllocator:
    """An allocator of everything in the dump."""
    parameters = ParameterStore(dump.of(ResourceClassParameters))
    for one in dump.of(ResourceClaimParameters):
        parameters.put(one)
    classes = {one.name: one for one in dump.of(ResourceClass)}
    return NamedAllocator(NamedInventory(dump.of(ResourceSlice)), classes, parameters)


def nodes_of_slices(dump: Dump) -> list[Node]:
    """Nodes that slices name. Allocations name nodes by this label, which all nodes have."""
    names = dict.fromkeys(one.node_name for one in dump.of(ResourceSlice) if one.node_name)
    return [Node(ObjectMeta(name, labels={HOSTNAME: name})) for name in names]


def limit_of(claim: AnyClaim, otherwise: int) -> int:
    """How many consumers an allocated claim may have; ``otherwise`` in other versions."""
    return max_consumers(claim.allocation) if isinstance(claim, ResourceClaim) else otherwise


def controller_of(claim: AnyClaim, allocator: NamedAllocator) -> str:
    """Whose controller has to allocate a claim, "" if a scheduler has to."""
    if not isinstance(claim, ResourceClaim):
        return claim.controller
    resource_class = allocator.classes.get(claim.spec.class_name)
    if resource_class is None:
        return ""  # a missing class is what will be told
    structured = allocation_of(claim, resource_class) is Allocation.STRUCTURED
    return "" if structured else resource_class.driver_name


def claim_of(template: AnyTemplate, name: ObjectMeta) -> AnyClaim:
    """The claim that would be made of a template."""
    if isinstance(template, ResourceClaimTemplate):
        return ResourceClaim(name, spec=template.spec, raw=template.raw)
    return AnyClaim(name, template.devices, template.controller, raw=template.raw)


@attrs.frozen
class NamedTrial:
    """Claims of v1alpha2 of one pod, to be tried on nodes."""

    allocator: NamedAllocator
    plan: Plan
    allocated: AllocatedState
    budget: int | None

    def on_node(self, node: Node) -> Outcome:
        """What the claims would get. Raises ``AllocationError``."""
        return self.allocator.allocate(self.plan, node, self.allocated, budget=self.budget)


def trial(
    allocator: NamedAllocator,
    claims: Sequence[AnyClaim],
    allocated: AllocatedState,
    budget: int | None,
) -> NamedTrial:
    """Plan the claims. Raises ``AllocationError`` for a fault of theirs."""
    plan = allocator.plan(claims)
    if plan.error is not None:
        raise plan.error
    return NamedTrial(allocator, plan, allocated, budget)


def allocation_json(result: AllocationResult) -> dict[str, Any]:
    """``status.allocation`` without parameters of vendors, which may be secrets."""
    encoded = wire.encode_allocation_result(result)
    for handle in encoded.get("resourceHandles", ()):
        handle.pop("data", None)
        data = handle.get("structuredData", {})
        for part in (data, *data.get("results", ())):
            for member in _SECRET:
                part.pop(member, None)
    return encoded
