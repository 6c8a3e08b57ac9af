"""Objects of v1alpha2 as JSON, for tests of everything that is made of them."""

from collections.abc import Sequence
from typing import Any

from dra_core.api.core import Node, ObjectMeta
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.claims import ResourceClaim

Json = dict[str, Any]

API_VERSION = "resource.k8s.io/v1alpha2"
GROUP = "resource.k8s.io"

WITHOUT_PARAMETERS = ("ResourceSlice", "ResourceClass", "ResourceClaimTemplate")
"""Kinds that have no parameters of vendors."""

MEMBERS = (
    "name", "spec", "status", "namedResources", "instances", "attributes", "int", "string",
    "quantity", "driverRequests", "requests", "selector", "filters", "parametersRef",
    "generatedFrom", "allocation", "resourceHandles", "structuredData", "results", "shareable",
    "reservedFor", "driverName", "metadata", "resourceClassName", "vendorParameters",
)  # fmt: skip
"""Names of members, for making up objects that are nearly right."""


def made(kind: str, name: str, namespace: str = "", **members: Any) -> Json:
    """An object with apiVersion, kind and metadata."""
    metadata: Json = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **members}


# --- supply --------------------------------------------------------------------------


def instance_json(name: str, attributes: Sequence[Json] | None = None) -> Json:
    """An instance; without ``attributes`` one of each type."""
    if attributes is None:
        attributes = [
            {"name": "memory", "quantity": "40Gi"},
            {"name": "ecc", "bool": True},
            {"name": "cores", "int": 7},
            {"name": "links", "intSlice": {"ints": [1, 2]}},
            {"name": "model", "string": "a100"},
            {"name": "modes", "stringSlice": {"strings": ["mig", "full"]}},
            {"name": "driver", "version": "1.2.3"},
        ]
    return {"name": name} | ({"attributes": list(attributes)} if attributes else {})


def slice_json(name: str, node: str, driver: str, instances: Sequence[Json]) -> Json:
    """A slice; ``node`` "" leaves the node name out."""
    members: Json = {"nodeName": node} if node else {}
    members |= {"driverName": driver, "namedResources": {"instances": list(instances)}}
    return made("ResourceSlice", name, **members)


def plain(*names: str) -> list[Json]:
    """Instances without attributes."""
    return [instance_json(name, ()) for name in names]


# --- classes and parameters ----------------------------------------------------------


def class_json(
    name: str = "gpu", driver: str = "d", *, structured: bool = True, **members: Any
) -> Json:
    """A class."""
    structured_member: Json = {"structuredParameters": True} if structured else {}
    return made("ResourceClass", name, driverName=driver, **structured_member, **members)


def direct(kind: str, name: str, namespace: str = "") -> Json:
    """A reference to parameters themselves."""
    reference = {"apiGroup": GROUP, "kind": kind, "name": name}
    return reference | ({"namespace": namespace} if namespace else {})


def vendor(name: str, namespace: str = "", kind: str = "ConfigMap", group: str = "") -> Json:
    """A reference to an object of a vendor."""
    reference = {"apiGroup": group} if group else {}
    return (
        reference | {"kind": kind, "name": name} | ({"namespace": namespace} if namespace else {})
    )


def request_json(selector: str | None = "true", parameters: Any = None) -> Json:
    """One request; ``None`` is of a model that nobody knows."""
    model = {"otherModel": {}} if selector is None else {"namedResources": {"selector": selector}}
    return model if parameters is None else {"vendorParameters": parameters, **model}


def claim_parameters_json(
    name: str, namespace: str = "ns", *requests: tuple[str, Sequence[str | None]], **members: Any
) -> Json:
    """Claim parameters; ``requests`` are a driver and its selectors each."""
    entries = [
        {"driverName": driver, "requests": [request_json(selector) for selector in selectors]}
        for driver, selectors in requests
    ]
    return made(
        "ResourceClaimParameters", name, namespace, **{"driverRequests": entries, **members}
    )


def class_parameters_json(
    name: str, namespace: str = "ns", *filters: tuple[str, str | None], **members: Any
) -> Json:
    """Class parameters; ``filters`` are a driver and a selector each."""
    entries = [{"driverName": driver, **request_json(selector)} for driver, selector in filters]
    return made("ResourceClassParameters", name, namespace, **{"filters": entries, **members})


# --- claims --------------------------------------------------------------------------


def claim_json(
    name: str = "claim",
    class_name: str = "gpu",
    namespace: str = "ns",
    *,
    parameters: Json | None = None,
    mode: str = "",
    uid: str = "",
    finalizers: Sequence[str] = (),
    **status: Any,
) -> Json:
    """A claim. ``status``: members of its status."""
    spec = {"resourceClassName": class_name}
    obj = made("ResourceClaim", name, namespace, spec=spec)
    obj["metadata"] |= {"uid": uid or f"uid-{name}", "resourceVersion": "7"}
    if finalizers:
        obj["metadata"]["finalizers"] = list(finalizers)
    if parameters is not None:
        obj["spec"]["parametersRef"] = parameters
    if mode:
        obj["spec"]["allocationMode"] = mode
    if status:
        obj["status"] = status
    return obj


def claim(name: str = "claim", class_name: str = "gpu", **members: Any) -> ResourceClaim:
    """The same as an object."""
    return wire.decode_resource_claim(claim_json(name, class_name, **members))


def on_node(node: str) -> Json:
    """``availableOnNodes`` as the allocator writes it."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def handle_json(driver: str, node: str, *names: str) -> Json:
    """A handle of the scheduler; ``node`` "" leaves the node name out."""
    results = [{"namedResources": {"name": name}} for name in names]
    node_name = {"nodeName": node} if node else {}
    return {"driverName": driver, "structuredData": {**node_name, "results": results}}


def allocation_json(node: str, *handles: Json, shareable: bool = False) -> Json:
    """``status.allocation``."""
    parts: Json = {"resourceHandles": list(handles)} if handles else {}
    parts["availableOnNodes"] = on_node(node)
    return parts | ({"shareable": True} if shareable else {})


def template_json(name: str, class_name: str = "gpu", namespace: str = "ns", **spec: Any) -> Json:
    """A claim template."""
    inner = {"spec": {"resourceClassName": class_name, **spec}}
    return made("ResourceClaimTemplate", name, namespace, spec=inner)


def node(name: str, **labels: str) -> Node:
    """A node with its hostname as label."""
    return Node(ObjectMeta(name, labels={"kubernetes.io/hostname": name, **labels}))


# --- one of each ---------------------------------------------------------------------


def one_of_each() -> list[Json]:
    """An object of every kind with every field set, in the form in which it is written."""
    secret = {"password": "hunter2"}
    structured = {
        "vendorClassParameters": secret,
        "vendorClaimParameters": secret,
        "nodeName": "node",
        "results": [{"vendorRequestParameters": secret, "namedResources": {"name": "a"}}],
    }
    claim_status: Json = {
        "driverName": "gpu.example.com",
        "allocation": {
            "resourceHandles": [
                {"driverName": "gpu.example.com", "structuredData": structured},
                {"driverName": "nic.example.com", "data": "hunter2"},
            ],
            "availableOnNodes": on_node("node"),
            "shareable": True,
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "deallocationRequested": True,
    }
    requests = [{"vendorParameters": secret, "namedResources": {"selector": "true"}}]
    entry = {"driverName": "d", "vendorParameters": secret, "requests": requests}
    template = template_json("t", parametersRef=vendor("x"), allocationMode="Immediate")
    template["spec"]["metadata"] = {"labels": {"a": "b"}}
    return [
        slice_json("s", "node", "gpu.example.com", [instance_json("a")]),
        class_json(
            "gpu",
            "gpu.example.com",
            parametersRef=direct("ResourceClassParameters", "p", "ns"),
            suitableNodes=on_node("node"),
        ),
        claim_json(
            "c",
            "gpu",
            parameters=direct("ResourceClaimParameters", "p"),
            mode="WaitForFirstConsumer",
            finalizers=("dra.k8s.io/delete-protection",),
            **claim_status,
        ),
        template,
        class_parameters_json(
            "p",
            "ns",
            ("gpu.example.com", "true"),
            generatedFrom=vendor("x", "ns", "GpuConfig", "gpu.example.com"),
            vendorParameters=[{"driverName": "d", "parameters": secret}],
        ),
        claim_parameters_json(
            "p", "ns", generatedFrom=vendor("x"), shareable=True, driverRequests=[entry]
        ),
    ]
