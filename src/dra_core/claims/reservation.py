"""Who may use a claim: ``status.reservedFor``.

What may live here: questions about the list of consumers and its changes on frozen
claims. How a change reaches the API server is ``patches``' business.

A pod may use a claim only while the claim is reserved for it, and a claim must not be
deallocated while it is reserved for anybody.
"""

from collections.abc import Iterable

import attrs

from dra_core.api.core import Pod, PodGroup, PodResourceClaim
from dra_core.api.objects import ResourceClaim, ResourceClaimConsumerReference
from dra_core.claims.names import POD_GROUP_API_GROUP
from dra_core.errors import ClaimFullError, DuplicateConsumerError, PodGroupMismatchError

MAX_CONSUMERS = 256
"""ResourceClaimReservedForMaxSize; a fuller list is refused by the API server."""

MAX_CONSUMERS_1_32 = 32
"""The same in clusters up to Kubernetes 1.32 (k/k#129543)."""

POD_RESOURCE = "pods"
POD_GROUP_RESOURCE = "podgroups"


def pod_reference(pod: Pod) -> ResourceClaimConsumerReference:
    """The entry of ``status.reservedFor`` for a pod."""
    return ResourceClaimConsumerReference("", POD_RESOURCE, pod.name, pod.metadata.uid)


def pod_group_reference(group: PodGroup) -> ResourceClaimConsumerReference:
    """The entry of ``status.reservedFor`` for a PodGroup."""
    meta = group.metadata
    return ResourceClaimConsumerReference(
        POD_GROUP_API_GROUP, POD_GROUP_RESOURCE, meta.name, meta.uid
    )


def consumer_reference(
    pod: Pod, pod_claim: PodResourceClaim | None = None, group: PodGroup | None = None
) -> ResourceClaimConsumerReference:
    """Whom to enter for the pod's entry ``pod_claim``: the pod, or its group.

    It is the group if one is given and has an entry of the same name with the same two
    references, that is, if the claim is the group's own. ``pod_claim`` ``None`` stands
    for the claim of the pod's extended resources, which is always the pod's.
    Raises ``PodGroupMismatchError`` if the pod does not name the group, or is in another
    namespace.
    """
    if group is None:
        return pod_reference(pod)
    if (pod.namespace, pod.pod_group_name) != group.metadata.key:
        raise PodGroupMismatchError(str(pod.metadata.key), str(group.metadata.key))
    if pod_claim in group.resource_claims:
        return pod_group_reference(group)
    return pod_reference(pod)


def is_in_use(claim: ResourceClaim) -> bool:
    """Whether the claim is reserved for anybody."""
    return bool(claim.reserved_for)


def is_reserved_for(claim: ResourceClaim, pod: Pod, *, workload_claims: bool = False) -> bool:
    """Whether the pod may use the claim: an entry has its UID.

    ``workload_claims`` (clusters from 1.36 on): an entry for its PodGroup will do, told
    by the name, because a pod does not know the UID of its group.
    """
    return any(
        entry.uid == pod.metadata.uid or (workload_claims and _names_group_of(entry, pod))
        for entry in claim.reserved_for
    )


def _names_group_of(entry: ResourceClaimConsumerReference, pod: Pod) -> bool:
    return (
        bool(pod.pod_group_name)
        and entry.name == pod.pod_group_name
        and (entry.api_group, entry.resource) == (POD_GROUP_API_GROUP, POD_GROUP_RESOURCE)
    )


def has_consumer(claim: ResourceClaim, uid: str) -> bool:
    """Whether an entry has this UID."""
    return any(entry.uid == uid for entry in claim.reserved_for)


def check_reservable(
    claim: ResourceClaim,
    consumer: ResourceClaimConsumerReference,
    limit: int = MAX_CONSUMERS,
) -> None:
    """Raise ``ClaimFullError`` unless ``consumer`` has an entry or one more fits.

    ``limit`` is 256, 32 in clusters up to 1.32, and 1 for a v1alpha2 claim whose
    allocation is not shareable.
    """
    if len(claim.reserved_for) >= limit and not has_consumer(claim, consumer.uid):
        raise ClaimFullError(str(claim.metadata.key), limit)


def can_be_reserved(
    claim: ResourceClaim,
    consumer: ResourceClaimConsumerReference,
    limit: int = MAX_CONSUMERS,
) -> bool:
    """``check_reservable`` as a question."""
    return len(claim.reserved_for) < limit or has_consumer(claim, consumer.uid)


def check_consumers(claim: ResourceClaim) -> None:
    """Raise ``DuplicateConsumerError`` if two entries have one UID (k/k#115354)."""
    seen: set[str] = set()
    for entry in claim.reserved_for:
        if entry.uid in seen:
            raise DuplicateConsumerError(str(claim.metadata.key), entry.uid)
        seen.add(entry.uid)


def with_consumer(
    claim: ResourceClaim,
    consumer: ResourceClaimConsumerReference,
    limit: int = MAX_CONSUMERS,
) -> ResourceClaim:
    """The claim with one more entry; the claim itself if the UID has one already.

    Raises ``ClaimFullError`` beyond ``limit``.
    """
    if has_consumer(claim, consumer.uid):
        return claim
    check_reservable(claim, consumer, limit)
    return attrs.evolve(claim, reserved_for=(*claim.reserved_for, consumer))


def without_consumers(claim: ResourceClaim, uids: Iterable[str]) -> ResourceClaim:
    """The claim without the entries of these UIDs; the claim itself if it has none."""
    gone = frozenset(uids)
    kept = tuple(entry for entry in claim.reserved_for if entry.uid not in gone)
    if len(kept) == len(claim.reserved_for):
        return claim
    return attrs.evolve(claim, reserved_for=kept)


@attrs.frozen
class PresetNode:
    """What a pod still needs whose node was set by its creator: no scheduler sees it.

    ``node`` is the node's name. ``to_reserve`` are allocated claims that lack the pod's
    entry, ``unallocated`` those for which no device was picked; without ``unallocated``
    the pod needs its reservations only. Whether an allocation suits the node is not
    looked at here.
    """

    node: str
    to_reserve: tuple[ResourceClaim, ...]
    unallocated: tuple[ResourceClaim, ...]

    @property
    def reservations_only(self) -> bool:
        """Reserving is all that is left to do, and there is something to reserve."""
        return bool(self.to_reserve) and not self.unallocated


def preset_node(
    pod: Pod, claims: Iterable[ResourceClaim], *, workload_claims: bool = False
) -> PresetNode | None:
    """What is left to do for a pod with ``spec.nodeName``; ``None`` for every other pod.

    The kubelet refuses such a pod until its claims (``claims``, in the pod's order) are
    reserved for it (k/k#114005). Pods that are finished or being deleted never qualify:
    their entry would be dropped and added in turn (k/k#141274).
    """
    if not pod.node_name or pod.finished or pod.metadata.deletion_timestamp:
        return None
    todo = [
        claim
        for claim in claims
        if not is_reserved_for(claim, pod, workload_claims=workload_claims)
    ]
    return PresetNode(
        pod.node_name,
        tuple(claim for claim in todo if claim.allocation is not None),
        tuple(claim for claim in todo if claim.allocation is None),
    )
