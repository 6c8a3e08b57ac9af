"""Deallocating a claim to help a pod that fits nowhere because of it.

What may live here: the choice of the claim and the request, as the scheduler makes
them. What the claim controller does with claims nobody uses is in ``releasing``.
"""

from collections.abc import Callable, Collection, Iterable

import attrs

from dra_core.api.core import Pod
from dra_core.api.objects import ResourceClaim
from dra_core.api.request import ApiRequest
from dra_core.claims import patches


def allocated_by_scheduler(claim: ResourceClaim) -> bool:
    """Whether a scheduler allocated the claim: no controller is named in the allocation.

    Told by ``allocation.controller`` (v1alpha3); later versions have no controllers. In
    v1alpha2 it is the finalizer that tells, so its callers pass a function of their own.
    """
    return claim.allocation is not None and not claim.allocation.controller


def has_delayed_allocation(_claim: ResourceClaim) -> bool:
    """Whether a controller allocates the claim only once a pod needs it.

    Always so in v1alpha3; v1alpha2 had ``allocationMode`` to say otherwise.
    """
    return True


@attrs.frozen
class Deallocation:
    """Which claim to deallocate, and how.

    ``deselect_first``: the claim belongs to a control plane controller, which would
    allocate again for the node that is selected now. Publish first that none is.
    """

    claim: ResourceClaim
    request: ApiRequest
    deselect_first: bool


def choose_deallocation(
    pod: Pod,
    claims: Iterable[ResourceClaim],
    in_the_way: Collection[str],
    *,
    version: str = "v1",
    by_scheduler: Callable[[ResourceClaim], bool] = allocated_by_scheduler,
    delayed: Callable[[ResourceClaim], bool] = has_delayed_allocation,
    extra_cleared: tuple[str, ...] = (),
) -> Deallocation | None:
    """The claim to deallocate in this attempt: at most one, the first in the pod's order.

    ``claims`` are the pod's, in its order, and ``in_the_way`` the UIDs of those whose
    allocation excluded a node, or whose binding conditions failed or are overdue. A
    claim qualifies if it is reserved for nobody but this pod, and if a scheduler
    allocated it or it has delayed allocation: immediate claims of a controller were
    allocated for good (k/k#122415). ``by_scheduler`` and ``delayed`` tell which, and
    ``extra_cleared`` what else to clear, in API versions of another shape.
    """
    for claim in claims:
        if claim.metadata.uid not in in_the_way or not _is_free_for(claim, pod):
            continue
        if by_scheduler(claim):
            request = patches.deallocate(claim, version=version, extra_cleared=extra_cleared)
            return Deallocation(claim, request, deselect_first=False)
        if delayed(claim):
            request = patches.request_deallocation(claim, version=version)
            return Deallocation(claim, request, deselect_first=True)
    return None


def _is_free_for(claim: ResourceClaim, pod: Pod) -> bool:
    return (
        claim.allocation is not None
        and not claim.deallocation_requested
        and all(entry.uid == pod.metadata.uid for entry in claim.reserved_for)
    )
