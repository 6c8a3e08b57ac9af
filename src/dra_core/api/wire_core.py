"""Decoding the parts of the core API: metadata, node selectors, nodes, pods, pod groups.

What may live here: one function per type of ``dra_core.api.core``, from decoded JSON to
the frozen object. The primitives and their rules are those of ``wire_read``.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_core.api.core import (
    Container,
    ContainerExtendedResourceRequest,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodExtendedResourceClaimStatus,
    PodGroup,
    PodResourceClaim,
    PodResourceClaimStatus,
)
from dra_core.api.wire_read import (
    At,
    Fault,
    Obj,
    Reader,
    each_object,
    get_boolean,
    get_object,
    get_optional_object,
    get_optional_text,
    get_text,
    get_text_map,
    get_texts,
)


def read_metadata(obj: Obj, key: str = "metadata") -> ObjectMeta:
    """``obj[key]`` as metadata; absent metadata is empty.

    Goes by the members that are there, because most objects have few of them.
    """
    meta = get_object(obj, key)
    fields = {}
    try:
        for name in meta:
            if name in _METADATA:
                field, read = _METADATA[name]
                fields[field] = read(meta, name)
    except Fault as fault:
        fault.way.append(key)
        raise
    return ObjectMeta(**fields)


def _owner_reference(obj: Obj) -> OwnerReference:
    return OwnerReference(
        api_version=get_text(obj, "apiVersion"),
        kind=get_text(obj, "kind"),
        name=get_text(obj, "name"),
        uid=get_text(obj, "uid"),
        controller=get_boolean(obj, "controller"),
        block_owner_deletion=get_boolean(obj, "blockOwnerDeletion"),
    )


def _owner_references(meta: Obj, key: str) -> tuple[OwnerReference, ...]:
    return each_object(meta, key, _owner_reference)


_METADATA: Final[Mapping[str, tuple[str, Callable[[Obj, str], Any]]]] = {
    "name": ("name", get_text),
    "namespace": ("namespace", get_text),
    "uid": ("uid", get_text),
    "resourceVersion": ("resource_version", get_text),
    "generateName": ("generate_name", get_text),
    "labels": ("labels", get_text_map),
    "annotations": ("annotations", get_text_map),
    "ownerReferences": ("owner_references", _owner_references),
    "finalizers": ("finalizers", get_texts),
    "creationTimestamp": ("creation_timestamp", get_text),
    "deletionTimestamp": ("deletion_timestamp", get_text),
}
"""Member of the JSON form: field of ``ObjectMeta``, and how it is read."""


def read_node_selector(obj: Obj, key: str) -> NodeSelector | None:
    """``obj[key]`` as a node selector; absent is ``None``."""
    selector = get_optional_object(obj, key)
    if selector is None:
        return None
    with At(key):
        return NodeSelector(each_object(selector, "nodeSelectorTerms", _term))


def _term(obj: Obj) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        each_object(obj, "matchExpressions", _requirement),
        each_object(obj, "matchFields", _requirement),
    )


def _requirement(obj: Obj) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(
        get_text(obj, "key"), get_text(obj, "operator"), get_texts(obj, "values")
    )


def read_node(obj: Obj, read: Reader) -> Node:
    """A v1.Node."""
    metadata = read_metadata(obj)
    status = get_object(obj, "status")
    with At("status"):
        return Node(
            metadata=metadata,
            declared_features=get_texts(status, "declaredFeatures"),
            allocatable=read.quantities(status, "allocatable"),
            raw=obj,
        )


def read_pod(obj: Obj, read: Reader) -> Pod:
    """A v1.Pod."""
    metadata = read_metadata(obj)
    spec = get_object(obj, "spec")
    status = get_object(obj, "status")

    def container(item: Obj) -> Container:
        return _container(item, read)

    with At("spec"):
        group = get_object(spec, "schedulingGroup")
        with At("schedulingGroup"):
            pod_group_name = get_optional_text(group, "podGroupName")
        node_name = get_text(spec, "nodeName")
        scheduler_name = get_text(spec, "schedulerName")
        resource_claims = each_object(spec, "resourceClaims", read_pod_claim)
        containers = each_object(spec, "containers", container)
        init_containers = each_object(spec, "initContainers", container)
    with At("status"):
        return Pod(
            metadata=metadata,
            node_name=node_name,
            scheduler_name=scheduler_name,
            resource_claims=resource_claims,
            pod_group_name=pod_group_name,
            containers=containers,
            init_containers=init_containers,
            phase=get_text(status, "phase"),
            resource_claim_statuses=each_object(status, "resourceClaimStatuses", _claim_status),
            extended_resource_claim_status=_extended_status(status),
            raw=obj,
        )


def _container(obj: Obj, read: Reader) -> Container:
    resources = get_object(obj, "resources")
    with At("resources"):
        requests = read.quantities(resources, "requests")
        limits = read.quantities(resources, "limits")
    return Container(get_text(obj, "name"), requests, limits, get_text(obj, "restartPolicy"))


def read_pod_claim(obj: Obj) -> PodResourceClaim:
    """One entry of spec.resourceClaims of a pod or pod group.

    Until Kubernetes 1.30 the two references sat under ``source``; they count where
    the newer fields are absent.
    """
    source = get_object(obj, "source")
    with At("source"):
        old = [get_optional_text(source, key) for key in _CLAIM_REFERENCES]
    new = [get_optional_text(obj, key) for key in _CLAIM_REFERENCES]
    return PodResourceClaim(get_text(obj, "name"), *(old if new == [None, None] else new))


_CLAIM_REFERENCES = ("resourceClaimName", "resourceClaimTemplateName")


def _claim_status(obj: Obj) -> PodResourceClaimStatus:
    return PodResourceClaimStatus(
        get_text(obj, "name"), get_optional_text(obj, "resourceClaimName")
    )


def _extended_status(status: Obj) -> PodExtendedResourceClaimStatus | None:
    key = "extendedResourceClaimStatus"
    obj = get_optional_object(status, key)
    if obj is None:
        return None
    with At(key):
        return PodExtendedResourceClaimStatus(
            get_text(obj, "resourceClaimName"), each_object(obj, "requestMappings", _mapping)
        )


def _mapping(obj: Obj) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(
        get_text(obj, "containerName"), get_text(obj, "resourceName"), get_text(obj, "requestName")
    )


def read_pod_group(obj: Obj, _read: Reader) -> PodGroup:
    """A PodGroup of scheduling.k8s.io."""
    metadata = read_metadata(obj)
    spec = get_object(obj, "spec")
    status = get_object(obj, "status")
    with At("spec"):
        claims = each_object(spec, "resourceClaims", read_pod_claim)
    with At("status"):
        statuses = each_object(status, "resourceClaimStatuses", _claim_status)
    return PodGroup(metadata, claims, statuses, raw=obj)
