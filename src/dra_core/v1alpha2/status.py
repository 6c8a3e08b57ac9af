"""Changes of claims of v1alpha2 as requests, and who may make them.

What may live here: what differs from later versions, as arguments for
``dra_core.claims.patches``, ``binding`` and ``deallocation``: the finalizer, the driver's
name that is written and cleared with the allocation, and how many may use a claim.

In this version no allocation says who made it. A claim with the finalizer was allocated
by a scheduler; any other by the control plane controller of its driver, at once if its
mode is Immediate, else only for a pod.
"""

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import Final

import attrs

from dra_core.api import objects
from dra_core.api.core import Pod
from dra_core.api.objects import ResourceClaimConsumerReference
from dra_core.api.request import ApiRequest
from dra_core.claims import patches
from dra_core.claims.binding import BindingPlan
from dra_core.claims.deallocation import Deallocation, choose_deallocation
from dra_core.errors import PatchError
from dra_core.v1alpha2.claims import ResourceClaim
from dra_core.v1alpha2.objects import (
    FINALIZER,
    MAX_CONSUMERS,
    VERSION,
    AllocationResult,
    ResourceClass,
)
from dra_core.v1alpha2.wire import decode_resource_claim
from dra_core.v1alpha2.writing import write_allocation_result

EXTRA_CLEARED: Final = ("driverName",)
"""Members of the status that are cleared with the allocation and exist in this version only."""


class Allocation(StrEnum):
    """Who allocates a claim, and when."""

    STRUCTURED = "by the scheduler"
    DELAYED = "by a control plane controller, for a pod"
    IMMEDIATE = "by a control plane controller, at once"


def allocation_of(claim: ResourceClaim, resource_class: ResourceClass | None) -> Allocation:
    """Who allocates a claim of the class, or who allocated it.

    The class counts for a claim that is not allocated; without one (it may be gone) the
    claim is taken for a controller's.
    """
    if claim.allocation is not None:
        structured = allocated_by_scheduler(claim) or claim.allocation.is_structured
    else:
        structured = resource_class is not None and resource_class.structured_parameters
    if structured:
        return Allocation.STRUCTURED
    return Allocation.IMMEDIATE if claim.spec.is_immediate else Allocation.DELAYED


def allocated_by_scheduler(claim: objects.ResourceClaim) -> bool:
    """Whether a scheduler allocated the claim, and so may take the allocation back."""
    return claim.allocation is not None and patches.has_finalizer(claim, FINALIZER)


def has_delayed_allocation(claim: objects.ResourceClaim) -> bool:
    """Whether a controller would allocate the claim again only for a pod that needs it.

    Not so for a claim with handles of a scheduler that lost its finalizer: there is no
    controller that could be asked to deallocate it.
    """
    if not isinstance(claim, ResourceClaim):
        return True
    structured = claim.allocation is not None and claim.allocation.is_structured
    return not claim.spec.is_immediate and not structured


def max_consumers(allocation: objects.AllocationResult | None) -> int:
    """How many may use a claim with this allocation: one unless it is shareable."""
    shareable = isinstance(allocation, AllocationResult) and allocation.shareable
    return MAX_CONSUMERS if shareable else 1


def with_allocation(
    claim: ResourceClaim, allocation: AllocationResult, driver: str
) -> ResourceClaim:
    """The claim as it will be: for what is in flight. ``driver`` is the class's."""
    return attrs.evolve(claim, allocation=allocation, driver_name=driver)


def _never(_allocation: objects.AllocationResult) -> bool:
    return False


def binding_plan(
    consumer: ResourceClaimConsumerReference,
    allocation: objects.AllocationResult,
    *,
    is_new: bool,
    driver: str = "",
    by_scheduler: bool = True,
    suits: Callable[[objects.AllocationResult], bool] = _never,
) -> BindingPlan:
    """The plan to allocate a claim (``is_new``) or to reserve it, for ``start_binding``.

    ``driver`` is that of the claim's class: it becomes ``status.driverName``. A claim that a
    controller allocated (not ``by_scheduler``) is only reserved, and never gets our
    finalizer, by which it would look like one of ours. There is no time of allocation in
    this version. Raises ``TypeError`` for a new allocation of another version.
    """
    if is_new and not isinstance(allocation, AllocationResult):
        raise TypeError("an allocation of another version cannot be written to v1alpha2")
    encoded = (
        write_allocation_result(allocation) if isinstance(allocation, AllocationResult) else None
    )
    return BindingPlan(
        consumer,
        allocation,
        is_new,
        suits,
        version=VERSION,
        finalizer=FINALIZER if by_scheduler else "",
        limit=max_consumers(allocation),
        extra_status={"driverName": driver},
        encoded=encoded,
        decode=decode_resource_claim,
    )


def deallocate(claim: ResourceClaim) -> ApiRequest:
    """Clear allocation, driver and reservations of a claim that a scheduler allocated.

    Raises ``PatchError`` for a copy without resourceVersion, and for a claim without the
    finalizer: its controller would not know.
    """
    if not patches.has_finalizer(claim, FINALIZER):
        raise PatchError(str(claim.metadata.key), f"lacks the finalizer {FINALIZER}")
    return patches.deallocate(claim, version=VERSION, extra_cleared=EXTRA_CLEARED)


def choose_claim_to_deallocate(
    pod: Pod, claims: Iterable[ResourceClaim], in_the_way: Collection[str]
) -> Deallocation | None:
    """``choose_deallocation`` by the rules of this version.

    Claims with the finalizer are deallocated, those of a controller are asked to be if
    their allocation is delayed; immediate ones never are (k/k#122415).
    """
    return choose_deallocation(
        pod,
        claims,
        in_the_way,
        version=VERSION,
        by_scheduler=allocated_by_scheduler,
        delayed=has_delayed_allocation,
        extra_cleared=EXTRA_CLEARED,
    )
