"""Small pods, groups and claims for tests: one line each, the rest filled in."""

import attrs

from dra_core.api.core import (
    ObjectMeta,
    OwnerReference,
    Pod,
    PodGroup,
    PodResourceClaim,
    PodResourceClaimStatus,
)
from dra_core.api.objects import ResourceClaim

NAMESPACE = "team-a"


def named(entry: str, claim: str) -> PodResourceClaim:
    """A pod claim that names a claim."""
    return PodResourceClaim(entry, resource_claim_name=claim)


def template(entry: str, template: str = "tpl") -> PodResourceClaim:
    """A pod claim that names a template."""
    return PodResourceClaim(entry, resource_claim_template_name=template)


def make_pod(
    *entries: PodResourceClaim,
    statuses: dict[str, str | None] | None = None,
    name: str = "web",
    uid: str = "web-uid",
    namespace: str = NAMESPACE,
    node: str = "",
    phase: str = "",
    group: str | None = None,
    deleted: bool = False,
) -> Pod:
    """A pod with claims. ``statuses``: name of the entry → name of its claim, or ``None``."""
    deletion = "2026-01-02T00:00:00Z" if deleted else ""
    return Pod(
        metadata=ObjectMeta(name, namespace, uid, deletion_timestamp=deletion),
        node_name=node,
        phase=phase,
        pod_group_name=group,
        resource_claims=entries,
        resource_claim_statuses=tuple(
            PodResourceClaimStatus(entry, claim) for entry, claim in (statuses or {}).items()
        ),
    )


def make_group(
    *entries: PodResourceClaim,
    statuses: dict[str, str | None] | None = None,
    name: str = "gang",
    uid: str = "gang-uid",
    namespace: str = NAMESPACE,
) -> PodGroup:
    """A PodGroup with claims."""
    return PodGroup(
        metadata=ObjectMeta(name, namespace, uid),
        resource_claims=entries,
        resource_claim_statuses=tuple(
            PodResourceClaimStatus(entry, claim) for entry, claim in (statuses or {}).items()
        ),
    )


def owner(
    uid: str = "web-uid",
    *,
    kind: str = "Pod",
    api_version: str = "v1",
    name: str = "web",
    controller: bool = True,
    block: bool = False,
) -> OwnerReference:
    """An owner reference, by default the one of ``make_pod``'s pod."""
    return OwnerReference(api_version, kind, name, uid, controller, block)


def make_claim(
    name: str = "gpu",
    *owners: OwnerReference,
    namespace: str = NAMESPACE,
    uid: str = "claim-uid",
    deleted: bool = False,
    finalizers: tuple[str, ...] = (),
    annotations: dict[str, str] | None = None,
    created: str = "2026-01-01T00:00:00Z",
    version: str = "1",
) -> ResourceClaim:
    """A claim with owners; use ``attrs.evolve`` for its status."""
    meta = ObjectMeta(
        name,
        namespace,
        uid,
        version,
        owner_references=owners,
        finalizers=finalizers,
        annotations=annotations or {},
        creation_timestamp=created,
    )
    if deleted:
        meta = attrs.evolve(meta, deletion_timestamp="2026-01-02T00:00:00Z")
    return ResourceClaim(metadata=meta)
