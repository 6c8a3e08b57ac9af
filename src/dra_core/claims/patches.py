"""Changes of a claim as requests to the API server.

What may live here: one builder per change, each a pure function from a copy of the
claim to an ``ApiRequest`` (``None`` where nothing has to be sent). What an answer leads
to is ``binding``'s business.

Three forms are used, for three situations (KEP-3063, k/k#121876):

* **Strategic merge patch** to add or remove one entry of ``reservedFor``. Schedulers
  add different pods to one claim at the same time, so the change must not need the
  newest copy. A plain merge patch would replace the list; server-side apply states the
  whole list. The UID in the body is a guard: it cannot be changed, so the patch of
  another incarnation is refused.
* **JSON patch** where something must hold besides the change: the finalizer must still
  be there when the allocation is written.
* **Update of the whole object** with its resourceVersion where all of the status is
  decided anew. It starts from the JSON that the copy came from, so that fields unknown
  to this library survive.

Two facts about the API server's JSON patch: a ``test`` for null passes where the member
is absent but its parent exists, and ``add`` to ``…/-`` fails where the list is absent.
Every request about ``status`` goes to the subresource and leaves metadata alone
(k/k#123730).
"""

from collections.abc import Mapping
from typing import Any

import attrs

from dra_core.api.core import Pod
from dra_core.api.objects import (
    FINALIZER,
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from dra_core.api.request import ApiRequest, Target
from dra_core.api.wire import encode_allocation_result
from dra_core.api.wire_encode import write_consumer
from dra_core.api.wire_versions import RESOURCE_GROUP
from dra_core.claims.reservation import has_consumer
from dra_core.claims.whole import whole_claim
from dra_core.errors import PatchError

RESOURCE_CLAIMS = "resourceclaims"
STATUS = "status"

Operation = dict[str, Any]


def claim_target(claim: ResourceClaim, version: str = "v1") -> Target:
    """Where the claim is in ``version`` of the API ("v1", "v1beta2", …)."""
    return Target(RESOURCE_GROUP, version, RESOURCE_CLAIMS, claim.namespace, claim.name)


def _one(claim: ResourceClaim, version: str) -> Target:
    """Where this one claim is. Without a name a request would address all of the namespace."""
    if not claim.name:
        raise PatchError(str(claim.metadata.key), "has no name to address it by")
    return claim_target(claim, version)


def get_claim(claim: ResourceClaim, version: str = "v1") -> ApiRequest:
    """Read the claim."""
    return _one(claim, version).get()


# The finalizer


def has_finalizer(claim: ResourceClaim, finalizer: str = FINALIZER) -> bool:
    """Whether the copy at hand carries ``finalizer``."""
    return finalizer in claim.metadata.finalizers


def add_finalizer(
    claim: ResourceClaim, *, version: str = "v1", finalizer: str = FINALIZER
) -> ApiRequest | None:
    """Put the finalizer on the claim, if nobody changed the claim since this copy.

    ``None`` if the copy has it. It has to be there before the status carries an
    allocation. Raises ``PatchError`` for a copy without resourceVersion.
    """
    if has_finalizer(claim, finalizer):
        return None
    if claim.metadata.finalizers:
        change = _add("/metadata/finalizers/-", finalizer)
    else:
        change = _add("/metadata/finalizers", [finalizer])
    unchanged = _test("/metadata/resourceVersion", _resource_version(claim))
    return _one(claim, version).json_patch([unchanged, change])


def add_finalizer_by_update(
    claim: ResourceClaim, *, version: str = "v1", finalizer: str = FINALIZER
) -> ApiRequest | None:
    """``add_finalizer`` as an update of the whole object, for roles without "patch"."""
    if has_finalizer(claim, finalizer):
        return None
    return _with_finalizers(claim, (*claim.metadata.finalizers, finalizer), version)


def remove_finalizer(
    claim: ResourceClaim, *, version: str = "v1", finalizer: str = FINALIZER
) -> ApiRequest | None:
    """Take the finalizer off; an update of the whole object. ``None`` if it is not there.

    Only for a claim without allocation; raises ``PatchError`` for any other, and for a
    copy without resourceVersion.
    """
    if claim.allocation is not None:
        raise PatchError(str(claim.metadata.key), "is allocated and must keep its finalizer")
    if not has_finalizer(claim, finalizer):
        return None
    kept = tuple(name for name in claim.metadata.finalizers if name != finalizer)
    return _with_finalizers(claim, kept, version)


def _with_finalizers(claim: ResourceClaim, finalizers: tuple[str, ...], version: str) -> ApiRequest:
    _resource_version(claim)
    changed = attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, finalizers=finalizers))
    return _one(claim, version).update(whole_claim(changed, version))


# Allocating


def allocate(
    claim: ResourceClaim,
    allocation: AllocationResult | Mapping[str, Any],
    consumer: ResourceClaimConsumerReference,
    *,
    version: str = "v1",
    finalizer: str = FINALIZER,
    timestamp: str = "",
    extra_status: Mapping[str, Any] | None = None,
) -> ApiRequest:
    """Write the allocation and reserve the claim for ``consumer``, in one step.

    Refused by the API server unless the claim is this one, still has the finalizer
    where this copy has it, and is not allocated. Between adding the finalizer and this
    request the claim controller may have removed the finalizer of a claim that was
    just deallocated, and the API server does not check that by itself.

    ``allocation`` may be given in the JSON form of the version. ``timestamp`` (RFC 3339)
    becomes ``allocationTimestamp`` where binding conditions are on. ``extra_status`` are
    further members of the status (v1alpha2: ``driverName``). Raises ``PatchError`` if the
    copy lacks the finalizer or the UID.
    """
    if not has_finalizer(claim, finalizer):
        raise PatchError(str(claim.metadata.key), f"lacks the finalizer {finalizer}")
    place = claim.metadata.finalizers.index(finalizer)
    operations = [
        _test("/metadata/uid", _uid(claim)),
        _test(f"/metadata/finalizers/{place}", finalizer),
        _test("/status/allocation", None),
        _add("/status/allocation", _encoded(allocation, version, timestamp)),
        _add_consumer(claim, consumer),
        *(_add(f"/status/{member}", value) for member, value in (extra_status or {}).items()),
    ]
    return _one(claim, version).at(STATUS).json_patch(operations)


def _encoded(
    allocation: AllocationResult | Mapping[str, Any], version: str, timestamp: str
) -> dict[str, Any]:
    if isinstance(allocation, AllocationResult):
        encoded = encode_allocation_result(allocation, version)
    else:
        encoded = dict(allocation)
    return encoded | {"allocationTimestamp": timestamp} if timestamp else encoded


# Reserving


def reserve(
    claim: ResourceClaim,
    consumer: ResourceClaimConsumerReference,
    *,
    version: str = "v1",
    timestamp: str = "",
) -> ApiRequest | None:
    """Add ``consumer`` to ``reservedFor``; ``None`` if the copy has its UID already.

    Success proves only that the result is valid: compare the allocation of the returned
    claim with the one the pod was filtered with.

    ``timestamp`` (RFC 3339, where binding conditions are on) is set as
    ``allocationTimestamp`` of an allocation that has none. That takes a JSON patch with
    tests, because a merge patch would make a new, empty allocation out of it for a claim
    that lost its own (k/k#137371). Raises ``PatchError`` if the copy lacks the UID.
    """
    if has_consumer(claim, consumer.uid):
        return None
    if timestamp and claim.allocation is not None and not claim.allocation.allocation_timestamp:
        return _reserve_with_timestamp(claim, consumer, version, timestamp)
    return _merge_consumers(claim, write_consumer(consumer), version)


def _reserve_with_timestamp(
    claim: ResourceClaim, consumer: ResourceClaimConsumerReference, version: str, timestamp: str
) -> ApiRequest:
    path = "/status/allocation/allocationTimestamp"
    operations = [_test("/metadata/uid", _uid(claim)), _test(path, None), _add(path, timestamp)]
    if not claim.reserved_for:
        operations.append(_test("/status/reservedFor", None))
    operations.append(_add_consumer(claim, consumer))
    return _one(claim, version).at(STATUS).json_patch(operations)


def remove_consumer(claim: ResourceClaim, uid: str, *, version: str = "v1") -> ApiRequest:
    """Remove the entry of ``uid`` from ``reservedFor``; no entry is fine with the server.

    Raises ``PatchError`` if the copy lacks the claim's UID.
    """
    return _merge_consumers(claim, {"$patch": "delete", "uid": uid}, version)


def unreserve(claim: ResourceClaim, pod: Pod, *, version: str = "v1") -> ApiRequest | None:
    """Undo the reservation of a pod; ``None`` unless the claim is allocated and names it.

    Entries of a PodGroup stay: other pods of the group rely on them. A failure is to be
    reported, not retried: the pod's next attempt comes by again.
    """
    if claim.allocation is None or not has_consumer(claim, pod.metadata.uid):
        return None
    return remove_consumer(claim, pod.metadata.uid, version=version)


def _merge_consumers(claim: ResourceClaim, entry: dict[str, Any], version: str) -> ApiRequest:
    body = {"metadata": {"uid": _uid(claim)}, "status": {"reservedFor": [entry]}}
    return _one(claim, version).at(STATUS).strategic_merge_patch(body)


# Deallocating


def update_status(
    changed: ResourceClaim, *, version: str = "v1", extra_cleared: tuple[str, ...] = ()
) -> ApiRequest:
    """Write the status of ``changed``, a claim as read with a new status.

    An update of the whole object with its resourceVersion; fields that this library
    does not know are kept. ``extra_cleared`` are members of the status to be left out
    that ``ResourceClaim`` does not have (v1alpha2: ``driverName``). Raises ``PatchError``
    for a claim without resourceVersion and ``ReadInOtherVersionError`` for one that was
    read in another version.
    """
    _resource_version(changed)
    body = whole_claim(changed, version)
    status = body.get("status") or {}
    body["status"] = {name: value for name, value in status.items() if name not in extra_cleared}
    return _one(changed, version).at(STATUS).update(body)


def deallocate(
    claim: ResourceClaim, *, version: str = "v1", extra_cleared: tuple[str, ...] = ()
) -> ApiRequest:
    """Clear allocation, reservations and device statuses, if nobody changed the claim.

    Raises as ``update_status``, whose ``extra_cleared`` it passes on.
    """
    changed = attrs.evolve(claim, allocation=None, reserved_for=(), device_statuses=())
    return update_status(changed, version=version, extra_cleared=extra_cleared)


def request_deallocation(claim: ResourceClaim, *, version: str = "v1alpha3") -> ApiRequest:
    """Ask the control plane controller that allocated the claim to deallocate it.

    Clears the reservations and sets ``deallocationRequested`` (v1alpha3, v1alpha2). First
    publish that no node is selected any more, otherwise the controller may allocate for
    the old node again (k/k#120428). Raises as ``update_status``.
    """
    changed = attrs.evolve(claim, reserved_for=(), deallocation_requested=True)
    return update_status(changed, version=version)


def delete_claim(claim: ResourceClaim, *, version: str = "v1") -> ApiRequest:
    """Delete this incarnation of the claim."""
    return _one(claim, version).delete(uid=_uid(claim))


# Pieces


def _test(path: str, value: Any) -> Operation:
    return {"op": "test", "path": path, "value": value}


def _add(path: str, value: Any) -> Operation:
    return {"op": "add", "path": path, "value": value}


def _add_consumer(claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> Operation:
    """The operation that adds an entry, in the form for the list as this copy has it."""
    entry = write_consumer(consumer)
    if claim.reserved_for:
        return _add("/status/reservedFor/-", entry)
    return _add("/status/reservedFor", [entry])


def _uid(claim: ResourceClaim) -> str:
    if not claim.metadata.uid:
        raise PatchError(str(claim.metadata.key), "has no UID to guard the change")
    return claim.metadata.uid


def _resource_version(claim: ResourceClaim) -> str:
    if not claim.metadata.resource_version:
        raise PatchError(str(claim.metadata.key), "has no resourceVersion to guard the change")
    return claim.metadata.resource_version
