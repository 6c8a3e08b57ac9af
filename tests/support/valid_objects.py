"""Objects that use everything and break no rule, and how to break one rule of them."""

import json
from typing import Any

from dra_core.api import wire
from dra_core.api.validation import validate

PARAMETERS = {"apiVersion": "gpu.example.com/v1", "kind": "Config"}
OPAQUE = {"opaque": {"driver": "gpu.example.com", "parameters": PARAMETERS}}
SELECTOR = {"cel": {"expression": "true"}}
NODE_SELECTOR = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a/b", "operator": "In", "values": ["c"]}]}]
}

SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s", "labels": {"a/b": "c"}, "annotations": {"X": "anything at all"}},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "a.b/c", "generation": 0, "resourceSliceCount": 1},
        "nodeName": "node-a",
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {
                    "model": {"string": "A100"},
                    "gpu.example.com/firmware": {"version": "1.2.3-rc.1+build"},
                    "numas": {"ints": [0, 1]},
                },
                "capacity": {
                    "memory": {
                        "value": "80Gi",
                        "requestPolicy": {
                            "default": "1Gi",
                            "validRange": {"min": "1Gi", "max": "79Gi", "step": "2Gi"},
                        },
                    },
                    "cores": {
                        "value": "8",
                        "requestPolicy": {"default": "2", "validValues": ["1", "2"]},
                    },
                    "free": {"value": "-3", "requestPolicy": {"default": "1"}},
                },
                "allowMultipleAllocations": True,
                "taints": [{"key": "a/b", "value": "c", "effect": "NoSchedule"}],
                "consumesCounters": [
                    {"counterSet": "set-0", "counters": {"memory": {"value": "1"}}}
                ],
                "bindingConditions": ["a/ready"],
                "bindingFailureConditions": ["a/broken"],
            },
            {"name": "gpu-1"},
        ],
        "skipNodeOperations": ["NodePrepareResources", "NodeUnprepareResources"],
    },
}

REQUEST: dict[str, Any] = {
    "deviceClassName": "gpu.example.com",
    "selectors": [SELECTOR],
    "allocationMode": "ExactCount",
    "count": 2,
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
    "capacity": {"requests": {"memory": "1Gi", "x.com/cores": "1"}},
}

CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "ns"},
    "spec": {
        "devices": {
            "requests": [
                {"name": "a", "exactly": REQUEST},
                {
                    "name": "b",
                    "firstAvailable": [
                        {"name": "x", "deviceClassName": "gpu", "allocationMode": "All"},
                        {"name": "y", "deviceClassName": "gpu"},
                    ],
                },
            ],
            "constraints": [
                {"matchAttribute": "x.com/numa", "requests": ["a", "b/x"]},
                {"distinctAttribute": "x.com/numa"},
            ],
            "config": [{**OPAQUE, "requests": ["b"]}],
        }
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {
                        "request": "b/x",
                        "driver": "gpu.example.com",
                        "pool": "p",
                        "device": "gpu-0",
                        "shareID": "00000000-0000-4000-8000-00000000000a",
                        "skipNodeOperations": ["*"],
                    }
                ],
                "config": [{**OPAQUE, "source": "FromClaim", "requests": ["b"]}],
            },
            "nodeSelector": NODE_SELECTOR,
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "devices": [
            {
                "driver": "gpu.example.com",
                "pool": "p",
                "device": "gpu-0",
                "shareID": "00000000-0000-4000-8000-00000000000a",
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "R",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ],
                "data": {"a": 1},
                "networkData": {"interfaceName": "eth0", "ips": ["10.0.0.1/8"]},
            }
        ],
    },
}

CLASS: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.example.com"},
    "spec": {
        "selectors": [SELECTOR],
        "config": [OPAQUE],
        "extendedResourceName": "example.com/gpu",
    },
}

RULE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "r"},
    "spec": {
        "deviceSelector": {"driver": "gpu.example.com", "pool": "p", "device": "gpu-0"},
        "taint": {"key": "a", "effect": "None"},
    },
}

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns"},
    "spec": {
        "resourceClaims": [
            {"name": "a", "resourceClaimName": "c"},
            {"name": "b", "source": {"resourceClaimTemplateName": "t"}},
        ]
    },
}

NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
TEMPLATE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t"},
    "spec": {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM["spec"]},
}
GROUP = POD | {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "PodGroup"}

VALID = [SLICE, CLAIM, CLASS, RULE, POD, NODE, TEMPLATE, GROUP]

MISSING = object()


def changed(obj: Any, path: str, value: Any) -> Any:
    """A copy of ``obj`` with another value at ``a.b.0.c``."""
    result = json.loads(json.dumps(obj))  # nothing shared, unlike deepcopy
    *way, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    inner = result
    for step in way:
        inner = inner[step]
    if value is MISSING:
        del inner[last]
    else:
        inner[last] = value
    return result


def found(obj: Any) -> list[tuple[str, str]]:
    """Path and severity of what validation finds in the JSON of an object."""
    return [(v.path, v.severity.value) for v in validate(wire.decode(obj))]
