"""The parts of the core API that scheduling of devices reads: metadata, nodes, pods.

Every class is frozen; a change returns a new value (``attrs.evolve``). Sequences
are tuples. Mappings are plain dicts that nobody changes after construction. Fields
have the API's names in Python's spelling; an absent string is ``""``, an absent
list or map is empty, and ``None`` appears only where absent and empty differ.

``raw`` of a top-level object is the decoded JSON it came from, kept so that a
whole-object write loses no field unknown to this library. It takes no part in
comparison, and it is never changed.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from dra_core.api.names import ObjectKey
from dra_core.values.quantity import Quantity


@attrs.frozen
class OwnerReference:
    """metav1.OwnerReference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


@attrs.frozen
class ObjectMeta:
    """metav1.ObjectMeta. Times are the API's text (RFC 3339), ``""`` when absent."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generate_name: str = ""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: str = ""
    deletion_timestamp: str = ""

    @property
    def key(self) -> ObjectKey:
        """``(namespace, name)``."""
        return ObjectKey(self.namespace, self.name)

    def controller(self) -> OwnerReference | None:
        """The owner reference marked as controller, if any."""
        return next((ref for ref in self.owner_references if ref.controller), None)


@attrs.frozen
class NodeSelectorRequirement:
    """One requirement on labels or fields of a node. ``values`` keep their order."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


@attrs.frozen
class NodeSelectorTerm:
    """Requirements that must all hold; a term without any matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


@attrs.frozen
class NodeSelector:
    """Terms of which one must hold."""

    terms: tuple[NodeSelectorTerm, ...] = ()


@attrs.frozen
class Node:
    """v1.Node, what scheduling of devices reads of it."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    declared_features: tuple[str, ...] = ()
    allocatable: Mapping[str, Quantity] = attrs.field(factory=dict)
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """``metadata.labels``."""
        return self.metadata.labels


@attrs.frozen
class PodResourceClaim:
    """One entry of ``pod.spec.resourceClaims``.

    The older ``source.resourceClaimName`` and ``source.resourceClaimTemplateName``
    are decoded into the same two fields. At most one is meant to be set; neither set
    means a form of the API that is not known here.
    """

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


@attrs.frozen
class PodResourceClaimStatus:
    """One entry of ``pod.status.resourceClaimStatuses``; no name: no claim was needed."""

    name: str = ""
    resource_claim_name: str | None = None


@attrs.frozen
class ContainerExtendedResourceRequest:
    """Which request of the extended-resource claim serves which container's resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


@attrs.frozen
class PodExtendedResourceClaimStatus:
    """``pod.status.extendedResourceClaimStatus``."""

    resource_claim_name: str = ""
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


@attrs.frozen
class Container:
    """A container's resources. ``restart_policy`` "Always" makes an init container a sidecar."""

    name: str = ""
    requests: Mapping[str, Quantity] = attrs.field(factory=dict)
    limits: Mapping[str, Quantity] = attrs.field(factory=dict)
    restart_policy: str = ""


@attrs.frozen
class Pod:
    """v1.Pod, what scheduling of devices reads of it.

    ``pod_group_name`` is ``spec.schedulingGroup.podGroupName``.
    """

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    node_name: str = ""
    scheduler_name: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    pod_group_name: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    phase: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``."""
        return self.metadata.namespace

    @property
    def finished(self) -> bool:
        """Phase Succeeded or Failed: the pod holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")


@attrs.frozen
class PodGroup:
    """scheduling.k8s.io PodGroup: a gang of pods with claims of its own."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)
