"""Releasing claims, as the claim controller in kube-controller-manager does it.

What may live here: which reservations have lapsed and the requests that follow. A
scheduler does not do this; tests, simulations and replacements of the controller do.

A claim that loses its last user is deallocated: in one update of the status the last
entry and the allocation go, in a second, of the metadata, the finalizer. Between the two
a scheduler may see a claim without allocation that still has its finalizer, which is
why allocating tests for it (see ``patches.allocate``).
"""

from collections.abc import Callable
from enum import Enum

import attrs

from dra_core.api.core import Pod
from dra_core.api.names import ObjectKey
from dra_core.api.objects import FINALIZER, ResourceClaim
from dra_core.api.request import ApiRequest
from dra_core.claims import patches
from dra_core.claims.reservation import POD_RESOURCE, without_consumers


class Absent(Enum):
    """Why a lookup has no pod to show."""

    GONE = "there is no pod of that name"
    UNKNOWN = "it is not known whether there is one: ask again later"


PodLookup = Callable[[ObjectKey], Pod | Absent]
"""A pod by namespace and name. Caches lag behind, so not seen is not yet ``GONE``."""


def lapsed_consumers(claim: ResourceClaim, lookup: PodLookup) -> tuple[str, ...]:
    """UIDs of the entries whose pod does not need the claim any more, in order.

    An entry lapses when its pod is known to be gone, has another UID, is finished, or is
    being deleted and was never assigned to a node. Entries of other consumers stay.
    """
    return tuple(
        entry.uid
        for entry in claim.reserved_for
        if (entry.api_group, entry.resource) == ("", POD_RESOURCE)
        and _has_lapsed(lookup(ObjectKey(claim.namespace, entry.name)), entry.uid)
    )


def _has_lapsed(pod: Pod | Absent, uid: str) -> bool:
    if isinstance(pod, Absent):
        return pod is Absent.GONE
    return (
        pod.metadata.uid != uid
        or pod.finished
        or (bool(pod.metadata.deletion_timestamp) and not pod.node_name)
    )


def release_claim(
    claim: ResourceClaim,
    lookup: PodLookup,
    *,
    version: str = "v1",
    finalizer: str = FINALIZER,
    delayed: bool | None = None,
) -> ApiRequest | None:
    """The update of the status that drops lapsed entries; ``None`` if none lapsed.

    If the last entry goes, what becomes of the allocation depends on who made it. With
    our ``finalizer`` a scheduler did: the same update clears allocation and devices, and
    ``finish_release`` follows. Without it, and with delayed allocation (``delayed``;
    by default: the claim names a controller), the controller is asked to deallocate.
    A claim that was never reserved so far stays allocated, unless it is being deleted.
    """
    lapsed = lapsed_consumers(claim, lookup)
    ours = patches.has_finalizer(claim, finalizer)
    unblocks_deletion = ours and _is_deleted_and_unused(claim) and claim.allocation is not None
    if not lapsed and not unblocks_deletion:
        return None
    changed = without_consumers(claim, lapsed)
    if not changed.reserved_for and ours:
        changed = attrs.evolve(
            changed, allocation=None, device_statuses=(), deallocation_requested=False
        )
    elif not changed.reserved_for and (bool(claim.controller) if delayed is None else delayed):
        changed = attrs.evolve(changed, deallocation_requested=True)
    return patches.update_status(changed, version=version)


def finish_release(
    returned: ResourceClaim, *, version: str = "v1", finalizer: str = FINALIZER
) -> ApiRequest | None:
    """The second update: take the finalizer off, if the claim is not allocated.

    ``returned`` is the answer to the first update: its resourceVersion makes sure that
    nobody allocated the claim in between. ``None`` if there is nothing to take off.
    """
    if returned.allocation is not None:
        return None
    return patches.remove_finalizer(returned, version=version, finalizer=finalizer)


def _is_deleted_and_unused(claim: ResourceClaim) -> bool:
    return bool(claim.metadata.deletion_timestamp) and not claim.reserved_for


def delete_generated(
    claim: ResourceClaim, lookup: PodLookup, *, version: str = "v1"
) -> ApiRequest | None:
    """Delete a claim that was generated for a pod that is finished or was replaced.

    ``None`` otherwise: also while others use it, and when the pod is gone altogether,
    because then the garbage collector deletes what it owned.
    """
    owner = claim.metadata.controller()
    if owner is None or (owner.api_version, owner.kind) != ("v1", "Pod"):
        return None
    if claim.metadata.deletion_timestamp:
        return None
    pod = lookup(ObjectKey(claim.namespace, owner.name))
    if isinstance(pod, Absent) or (pod.metadata.uid == owner.uid and not pod.finished):
        return None
    if len(lapsed_consumers(claim, lookup)) < len(claim.reserved_for):
        return None
    return patches.delete_claim(claim, version=version)
