"""The cluster of the scheduler demo: nodes, devices, classes, templates, claims and pods.

What may live here: the objects, as JSON. Every ten pods want the same again: four want one
GPU, one wants two of one model, two want a GPU and a network card on the same node, two
share a claim with three others, one asks for a GPU as an extended resource. There are
fewer GPUs than wanted, but three in ten pods are jobs that come to an end.
"""

from typing import Any

Json = dict[str, Any]

NAMESPACE = "team-a"
GPU_DRIVER, NIC_DRIVER = "gpu.example.com", "nic.example.com"
ATTACHED = "nic.example.com/attached"
EXTENDED = "example.com/gpu"
SHARING = 5
"""Pods that share one claim."""

_GPU = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
_NIC = {"name": "nic", "exactly": {"deviceClassName": "nic"}}
_TWO = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}
_SAME_MODEL = [{"requests": ["gpu"], "matchAttribute": f"{GPU_DRIVER}/model"}]

CLAIM_SPECS: dict[str, Json] = {
    "one-gpu": {"requests": [_GPU]},
    "two-gpus": {"requests": [_TWO], "constraints": _SAME_MODEL},
    "gpu-and-nic": {"requests": [_GPU, _NIC]},
}
"""``spec.devices`` of the claims that templates are there for, by the template's name."""

_MENU = (
    "one-gpu", "one-gpu", "one-gpu", "one-gpu", "two-gpus", "gpu-and-nic", "gpu-and-nic",
    "shared", "shared", "extended",
)  # fmt: skip
_JOBS = 3


def devices_per_node(pods: int, nodes: int) -> int:
    """GPUs of a node, and network cards: some 15 percent less than all pods want at once."""
    return max(2, -(-8 * pods // (10 * nodes)))


def node_names(number: int) -> list[str]:
    """The names of the nodes."""
    return [f"node-{index:02}" for index in range(number)]


def _object(api_version: str, kind: str, name: str, **members: Any) -> Json:
    """An object; of a namespaced kind if it says a namespace."""
    metadata = {"name": name} | members.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata} | members


def cluster_objects(pods: int, nodes: int) -> list[Json]:
    """What is there before drivers and pods come."""
    v1, here = "resource.k8s.io/v1", {"namespace": NAMESPACE}
    found = [_object("v1", "Node", name) for name in node_names(nodes)]
    for name, driver in (("gpu", GPU_DRIVER), ("nic", NIC_DRIVER)):
        spec: Json = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
        if name == "gpu":
            spec["extendedResourceName"] = EXTENDED
        found.append(_object(v1, "DeviceClass", name, spec=spec))
    for name, devices in CLAIM_SPECS.items():
        spec = {"spec": {"devices": devices}}
        found.append(_object(v1, "ResourceClaimTemplate", name, metadata=here, spec=spec))
    for number in range(-(-pods // (SHARING * len(_MENU) // _MENU.count("shared")))):
        spec = {"devices": CLAIM_SPECS["one-gpu"]}
        found.append(_object(v1, "ResourceClaim", f"shared-{number}", metadata=here, spec=spec))
    return found


def slices_of_node(node: str, number: int, devices: int) -> list[Json]:
    """What the two drivers publish for a node. Network cards have to be attached first."""
    model = "alpha" if number % 2 else "beta"
    gpus = [
        {"name": f"gpu-{index}", "attributes": {"model": {"string": model}}}
        for index in range(devices)
    ]
    nics = [
        {
            "name": f"nic-{index}",
            "bindsToNode": True,
            "bindingConditions": [ATTACHED],
            "bindingFailureConditions": ["nic.example.com/broken"],
        }
        for index in range(devices)
    ]
    return [
        _object(
            "resource.k8s.io/v1",
            "ResourceSlice",
            f"{node}-{driver}",
            spec={
                "driver": driver,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": members,
            },
        )
        for driver, members in ((GPU_DRIVER, gpus), (NIC_DRIVER, nics))
    ]


def pod(number: int, scheduler: str) -> Json:
    """One pod; what it wants depends on its number."""
    place = number % len(_MENU)
    wanted = _MENU[place]
    container: Json = {"name": "main", "image": "example.com/work"}
    spec: Json = {"schedulerName": scheduler, "containers": [container]}
    if wanted == "extended":
        container["resources"] = {"limits": {EXTENDED: "1"}, "requests": {EXTENDED: "1"}}
    else:
        entry = {"name": "devices", "resourceClaimTemplateName": wanted}
        if wanted == "shared":
            of_its_kind = number // len(_MENU) * 2 + place - _MENU.index("shared")
            name = f"shared-{of_its_kind // SHARING}"
            entry = {"name": "devices", "resourceClaimName": name}
        spec["resourceClaims"] = [entry]
    labels = {"app": wanted} | ({"job": "short"} if place < _JOBS else {})
    metadata = {"namespace": NAMESPACE, "labels": labels}
    return _object("v1", "Pod", f"pod-{number:03}", metadata=metadata, spec=spec)
