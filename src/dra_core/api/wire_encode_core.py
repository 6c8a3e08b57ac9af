"""Metadata, node selectors, nodes, pods and pod groups to JSON.

What may live here: for each type of ``dra_core.api.core`` the function that states its
JSON form. Members that are absent are left out.
"""

from dra_core.api.core import (
    Container,
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
from dra_core.api.wire_write import Json, compact, given, write_quantities


def write_metadata(meta: ObjectMeta) -> Json:
    """metav1.ObjectMeta."""
    return compact(
        {
            "name": meta.name,
            "generateName": meta.generate_name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "creationTimestamp": meta.creation_timestamp,
            "deletionTimestamp": meta.deletion_timestamp,
            "labels": dict(meta.labels),
            "annotations": dict(meta.annotations),
            "ownerReferences": [write_owner_reference(ref) for ref in meta.owner_references],
            "finalizers": list(meta.finalizers),
        }
    )


def write_owner_reference(ref: OwnerReference) -> Json:
    """metav1.OwnerReference."""
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "name": ref.name,
        "uid": ref.uid,
    } | compact(
        {
            "controller": ref.controller or None,
            "blockOwnerDeletion": ref.block_owner_deletion or None,
        }
    )


def write_node_selector(selector: NodeSelector | None) -> Json | None:
    """v1.NodeSelector; ``None`` stays ``None``."""
    if selector is None:
        return None
    return {"nodeSelectorTerms": [_term(term) for term in selector.terms]}


def _term(term: NodeSelectorTerm) -> Json:
    return compact(
        {
            "matchExpressions": [_requirement(item) for item in term.match_expressions],
            "matchFields": [_requirement(item) for item in term.match_fields],
        }
    )


def _requirement(requirement: NodeSelectorRequirement) -> Json:
    return {"key": requirement.key, "operator": requirement.operator} | compact(
        {"values": list(requirement.values)}
    )


def write_node(node: Node) -> Json:
    """v1.Node, without apiVersion and kind."""
    status = compact(
        {
            "declaredFeatures": list(node.declared_features),
            "allocatable": write_quantities(node.allocatable),
        }
    )
    return compact({"metadata": write_metadata(node.metadata), "status": status})


def write_pod(pod: Pod) -> Json:
    """v1.Pod, without apiVersion and kind."""
    group = pod.pod_group_name
    spec = compact(
        {
            "nodeName": pod.node_name,
            "schedulerName": pod.scheduler_name,
            "resourceClaims": [write_pod_claim(item) for item in pod.resource_claims],
            "schedulingGroup": None if group is None else {"podGroupName": group},
            "containers": [_container(item) for item in pod.containers],
            "initContainers": [_container(item) for item in pod.init_containers],
        }
    )
    status = compact(
        {
            "phase": pod.phase,
            "resourceClaimStatuses": [_claim_status(s) for s in pod.resource_claim_statuses],
        }
    ) | given(extendedResourceClaimStatus=_extended_status(pod.extended_resource_claim_status))
    return compact({"metadata": write_metadata(pod.metadata), "spec": spec, "status": status})


def _container(container: Container) -> Json:
    resources = compact(
        {
            "requests": write_quantities(container.requests),
            "limits": write_quantities(container.limits),
        }
    )
    return {"name": container.name} | compact(
        {"resources": resources, "restartPolicy": container.restart_policy}
    )


def write_pod_claim(claim: PodResourceClaim) -> Json:
    """One entry of spec.resourceClaims, in the newer form without ``source``."""
    return {"name": claim.name} | given(
        resourceClaimName=claim.resource_claim_name,
        resourceClaimTemplateName=claim.resource_claim_template_name,
    )


def _claim_status(status: PodResourceClaimStatus) -> Json:
    return {"name": status.name} | given(resourceClaimName=status.resource_claim_name)


def _extended_status(status: PodExtendedResourceClaimStatus | None) -> Json | None:
    if status is None:
        return None
    return {
        "requestMappings": [
            {
                "containerName": mapping.container_name,
                "resourceName": mapping.resource_name,
                "requestName": mapping.request_name,
            }
            for mapping in status.request_mappings
        ],
        "resourceClaimName": status.resource_claim_name,
    }


def write_pod_group(group: PodGroup) -> Json:
    """A PodGroup of scheduling.k8s.io, without apiVersion and kind."""
    spec = compact({"resourceClaims": [write_pod_claim(item) for item in group.resource_claims]})
    statuses = [_claim_status(item) for item in group.resource_claim_statuses]
    status = compact({"resourceClaimStatuses": statuses})
    return compact({"metadata": write_metadata(group.metadata), "spec": spec, "status": status})
