"""Which claim a pod means, and whether the pod may use it.

What may live here: from an entry of ``spec.resourceClaims`` to a claim, for pods and
for PodGroups, and the ownership checks on the way. Who may use a shared claim at the
same time is ``reservation``'s business.

A claim that a user made is named in the entry. One that is generated from a template
has a generated name, which only the status of the pod tells. Trusting that name
alone would let a pod use the claim of an older pod of the same name, so generated
claims are checked for their owner.
"""

from collections.abc import Callable

import attrs

from dra_core.api.core import OwnerReference, Pod, PodGroup, PodResourceClaim
from dra_core.api.names import ObjectKey
from dra_core.api.objects import ResourceClaim
from dra_core.errors import (
    ClaimBeingDeletedError,
    ClaimError,
    ClaimNotCreatedError,
    ClaimNotFoundError,
    ClaimNotOwnedError,
    ClaimUnsupportedError,
)

POD_GROUP_API_GROUP = "scheduling.k8s.io"
POD_GROUP_KIND = "PodGroup"


@attrs.frozen
class ClaimName:
    """The answer "this claim": its name, in the namespace of the pod.

    ``must_check_owner``: the claim was generated, use it only if ``check_owner`` agrees.
    """

    name: str
    must_check_owner: bool


@attrs.frozen
class NoClaimNeeded:
    """The answer "none": it was recorded that the entry needs no claim. Skip the entry."""


def claim_name(
    pod: Pod, pod_claim: PodResourceClaim, *, deterministic: bool = False
) -> ClaimName | NoClaimNeeded:
    """Which claim the entry ``pod_claim`` of ``pod.spec.resourceClaims`` means.

    ``deterministic`` resolves an entry without status to ``<pod>-<entry>``, which was
    the name of generated claims in clusters up to 1.27. It is a policy of the caller and
    never guessed. Raises ``ClaimNotCreatedError`` and ``ClaimUnsupportedError``.

    Source: core/v1, types PodResourceClaim and PodResourceClaimStatus.
    """
    try:
        return _resolve(pod, "Pod", pod_claim)
    except ClaimNotCreatedError:
        if not deterministic:
            raise
        return ClaimName(deterministic_name(pod, pod_claim.name), must_check_owner=True)


def group_claim_name(group: PodGroup, pod_claim: PodResourceClaim) -> ClaimName | NoClaimNeeded:
    """Which claim the entry ``pod_claim`` of the PodGroup's own claims means.

    Raises ``ClaimNotCreatedError`` and ``ClaimUnsupportedError``.
    """
    return _resolve(group, POD_GROUP_KIND, pod_claim)


def deterministic_name(pod: Pod, pod_claim_name: str) -> str:
    """The name that clusters up to 1.27 gave to a generated claim."""
    return f"{pod.name}-{pod_claim_name}"


def _resolve(
    owner: Pod | PodGroup, kind: str, pod_claim: PodResourceClaim
) -> ClaimName | NoClaimNeeded:
    if pod_claim.resource_claim_name:
        return ClaimName(pod_claim.resource_claim_name, must_check_owner=False)
    key = str(owner.metadata.key)
    if not pod_claim.resource_claim_template_name:
        raise ClaimUnsupportedError(kind, key, pod_claim.name)
    for status in owner.resource_claim_statuses:
        if status.name == pod_claim.name:
            if status.resource_claim_name is None:
                return NoClaimNeeded()
            if status.resource_claim_name:
                return ClaimName(status.resource_claim_name, must_check_owner=True)
            break  # an empty name is no name: as if there were no entry
    raise ClaimNotCreatedError(kind, key, pod_claim.name)


def check_owner(claim: ResourceClaim, pod: Pod, *, workload_claims: bool = False) -> None:
    """Raise ``ClaimNotOwnedError`` unless the generated claim belongs to this very pod.

    Checked in order: same namespace, then the UID of the claim's *controller*; a claim
    of an earlier pod of the same name has another one. Whether that reference blocks
    the owner's deletion plays no part (k/k#134956).

    ``workload_claims`` (clusters from 1.36 on) accepts the pod's PodGroup as controller.
    A pod knows of its group only the name, so that is all that is compared, besides
    group and kind.
    """
    controller = _controller_in(pod.namespace, claim, "Pod", pod)
    if controller is not None:
        if controller.uid == pod.metadata.uid:
            return
        if workload_claims and _is_group_of(controller, pod):
            return
    raise _not_owned(claim, "Pod", pod, "controller")


def check_group_owner(claim: ResourceClaim, group: PodGroup) -> None:
    """Raise ``ClaimNotOwnedError`` unless the generated claim belongs to this PodGroup."""
    controller = _controller_in(group.metadata.namespace, claim, POD_GROUP_KIND, group)
    if controller is None or controller.uid != group.metadata.uid:
        raise _not_owned(claim, POD_GROUP_KIND, group, "controller")


def is_owned(claim: ResourceClaim, pod: Pod, *, workload_claims: bool = False) -> bool:
    """``check_owner`` as a question."""
    try:
        check_owner(claim, pod, workload_claims=workload_claims)
    except ClaimNotOwnedError:
        return False
    return True


def _controller_in(
    namespace: str, claim: ResourceClaim, kind: str, owner: Pod | PodGroup
) -> OwnerReference | None:
    if claim.namespace != namespace:
        raise _not_owned(claim, kind, owner, "namespace")
    return claim.metadata.controller()


def _is_group_of(controller: OwnerReference, pod: Pod) -> bool:
    return (
        bool(pod.pod_group_name)
        and controller.name == pod.pod_group_name
        and controller.kind == POD_GROUP_KIND
        and controller.api_version.partition("/")[0] == POD_GROUP_API_GROUP
    )


def _not_owned(
    claim: ResourceClaim, kind: str, owner: Pod | PodGroup, problem: str
) -> ClaimNotOwnedError:
    return ClaimNotOwnedError(
        kind, str(owner.metadata.key), owner.metadata.uid, str(claim.metadata.key), problem
    )


@attrs.frozen
class ResolvedClaim:
    """The claim that the entry ``pod_claim`` means; it exists and may be used."""

    pod_claim: str
    claim: ResourceClaim


@attrs.frozen
class SkippedClaim:
    """The entry ``pod_claim`` needs no claim."""

    pod_claim: str


@attrs.frozen
class UnresolvedClaim:
    """The entry ``pod_claim`` has no usable claim, for ``reason``."""

    pod_claim: str
    reason: ClaimError | ClaimNotOwnedError


@attrs.frozen
class PodClaims:
    """What became of all entries of a pod, in the pod's order, one answer each."""

    answers: tuple[ResolvedClaim | SkippedClaim | UnresolvedClaim, ...]

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        """The claims found, in the pod's order."""
        return tuple(a.claim for a in self.answers if isinstance(a, ResolvedClaim))

    @property
    def problems(self) -> tuple[UnresolvedClaim, ...]:
        """The entries that stop the pod, in the pod's order; empty when all resolve."""
        return tuple(a for a in self.answers if isinstance(a, UnresolvedClaim))


def resolve_claims(
    pod: Pod,
    lookup: Callable[[ObjectKey], ResourceClaim | None],
    *,
    deterministic: bool = False,
    workload_claims: bool = False,
) -> PodClaims:
    """All claims that ``spec.resourceClaims`` of a pod means, whoever refers to them.

    ``lookup`` answers a claim by namespace and name, ``None`` if there is none; it is
    asked once per entry that has a name. Claims count whether or not a container refers
    to them. An entry is refused, in this order, because its name does not resolve, or
    the claim does not exist, is being deleted, or is not the pod's though generated.
    The policies are those of ``claim_name`` and ``check_owner``.
    """
    return PodClaims(
        tuple(
            _answer(pod, entry, lookup, deterministic, workload_claims)
            for entry in pod.resource_claims
        )
    )


def _answer(
    pod: Pod,
    entry: PodResourceClaim,
    lookup: Callable[[ObjectKey], ResourceClaim | None],
    deterministic: bool,
    workload_claims: bool,
) -> ResolvedClaim | SkippedClaim | UnresolvedClaim:
    try:
        name = claim_name(pod, entry, deterministic=deterministic)
        if isinstance(name, NoClaimNeeded):
            return SkippedClaim(entry.name)
        claim = lookup(ObjectKey(pod.namespace, name.name))
        if claim is None:
            raise ClaimNotFoundError("Pod", str(pod.metadata.key), entry.name, name.name)
        if claim.metadata.deletion_timestamp:
            raise ClaimBeingDeletedError("Pod", str(pod.metadata.key), entry.name, name.name)
        if name.must_check_owner:
            check_owner(claim, pod, workload_claims=workload_claims)
        return ResolvedClaim(entry.name, claim)
    except (ClaimError, ClaimNotOwnedError) as reason:
        # Without its traceback: a kept one would keep the caller's frames alive.
        return UnresolvedClaim(entry.name, reason.with_traceback(None))
