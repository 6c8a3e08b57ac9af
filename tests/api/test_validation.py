"""Validation: the API's limits and cross-field rules, all violations with their paths."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api import wire
from dra_core.api.objects import (
    DeviceClass,
    DeviceClassConfiguration,
    DeviceSelector,
    OpaqueDeviceConfiguration,
)
from dra_core.api.validation import Severity, Violation, validate
from support import wire_objects as strategies

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
    return [(v.path, v.severity.value) for v in validate(wire.decode(obj))]


@pytest.mark.parametrize("obj", VALID, ids=lambda obj: str(obj["kind"]))
def test_valid_objects_have_no_violations(obj: Any) -> None:
    """An object that uses everything and breaks nothing."""
    assert validate(wire.decode(obj)) == ()


DEVICE = "spec/devices/0"
MEMORY = f"{DEVICE}/capacity/memory/requestPolicy"
IN_MEMORY = 'spec.devices[0].capacity["memory"].requestPolicy'
CORES = f"{DEVICE}/capacity/cores/requestPolicy"
IN_CORES = 'spec.devices[0].capacity["cores"].requestPolicy'
TERM = "spec/nodeSelector/nodeSelectorTerms"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("metadata/name", "", ["metadata.name"]),
        ("metadata/name", "A", ["metadata.name"]),
        ("metadata/namespace", "ns", ["metadata.namespace"]),
        ("metadata/labels", {"a b": "c d"}, ['metadata.labels["a b"]'] * 2),
        ("metadata/annotations", {"-": ""}, ['metadata.annotations["-"]']),
        ("spec/driver", "", ["spec.driver"]),
        ("spec/driver", "a_b", ["spec.driver"]),
        ("spec/driver", "GPU.Example.com", []),
        ("spec/driver", "a" * 64, ["spec.driver"]),
        ("spec/pool/name", "", ["spec.pool.name"]),
        ("spec/pool/name", "a//b", ["spec.pool.name"]),
        ("spec/pool/name", "a/" * 126 + "ab", ["spec.pool.name"]),
        ("spec/pool/name", "a/" * 126 + "a", []),
        ("spec/pool/resourceSliceCount", 0, ["spec.pool.resourceSliceCount"]),
        ("spec/pool/generation", -1, ["spec.pool.generation"]),
        ("spec/nodeName", MISSING, ["spec"]),
        ("spec/allNodes", True, ["spec"]),
        ("spec/nodeName", "a_b", ["spec.nodeName"]),
        ("spec/sharedCounters", [{"name": "a", "counters": {"b": {"value": "1"}}}], ["spec"]),
        ("spec/skipNodeOperations", ["NodePrepareResources"], ["spec.skipNodeOperations"]),
        ("spec/skipNodeOperations", ["NodePrepareResources", "*"], []),
        ("spec/skipNodeOperations", ["NodeUnprepareResources"], []),
        ("spec/skipNodeOperations", ["*", "*", "x"],
         ["spec.skipNodeOperations[1]", "spec.skipNodeOperations[2]"]),
        (f"{DEVICE}/name", "", ["spec.devices[0].name"]),
        (f"{DEVICE}/name", "a" * 64, ["spec.devices[0].name"]),
        (f"{DEVICE}/name", "a.b", ["spec.devices[0].name"]),
        ("spec/devices/1/name", "gpu-0", ["spec.devices[1]"]),
        (f"{DEVICE}/attributes", {"a": {}}, ['spec.devices[0].attributes["a"]']),
        (f"{DEVICE}/attributes", {"a": {"ints": []}}, ['spec.devices[0].attributes["a"].ints']),
        (f"{DEVICE}/attributes", {"a": {"version": "1.2"}},
         ['spec.devices[0].attributes["a"].version']),
        (f"{DEVICE}/attributes", {"a": {"versions": ["1.2.3", "01.2.3"]}},
         ['spec.devices[0].attributes["a"].versions[1]']),
        (f"{DEVICE}/attributes", {"a": {"string": "x" * 64}}, []),
        (f"{DEVICE}/attributes", {"a": {"string": "ä" * 33}},
         ['spec.devices[0].attributes["a"].string']),
        (f"{DEVICE}/attributes", {"a": {"strings": ["", "x" * 65]}},
         ['spec.devices[0].attributes["a"].strings[1]']),
        (f"{DEVICE}/attributes", {"a" * 33: {"int": 1}},
         [f'spec.devices[0].attributes["{"a" * 33}"]']),
        (f"{DEVICE}/attributes", {"/a": {"int": 1}, "b/": {"int": 1}, "c/d/e": {"int": 1},
                                  "1a": {"int": 1}, "a-b": {"int": 1}},
         [f'spec.devices[0].attributes["{name}"]' for name in ("/a", "b/", "c/d/e", "1a", "a-b")]),
        (f"{DEVICE}/attributes", {f"a{i}": {"int": 1} for i in range(29)}, []),
        (f"{DEVICE}/attributes", {f"a{i}": {"int": 1} for i in range(30)}, ["spec.devices[0]"]),
        (f"{DEVICE}/attributes", {"a": {"ints": list(range(48))}}, []),
        (f"{DEVICE}/attributes", {"a": {"ints": list(range(48))}, "b": {"int": 1}},
         ["spec.devices[0]"]),
        (f"{DEVICE}/capacity", {"a b": {"value": "1"}}, ['spec.devices[0].capacity["a b"]']),
        (f"{DEVICE}/taints/0/key", "", ["spec.devices[0].taints[0].key"]),
        (f"{DEVICE}/taints/0/value", "a b", ["spec.devices[0].taints[0].value"]),
        (f"{DEVICE}/taints/0/effect", "", ["spec.devices[0].taints[0].effect"]),
        (f"{DEVICE}/taints/0/effect", "Other", ["spec.devices[0].taints[0].effect"]),
        (f"{DEVICE}/taints", [{"key": "a", "effect": "None"}] * 17, ["spec.devices[0].taints"]),
        (f"{DEVICE}/consumesCounters/0/counterSet", "", [
            "spec.devices[0].consumesCounters[0].counterSet"]),
        (f"{DEVICE}/consumesCounters/0/counters", {}, [
            "spec.devices[0].consumesCounters[0].counters"]),
        (f"{DEVICE}/consumesCounters/0/counters", {"A": {"value": "1"}}, [
            'spec.devices[0].consumesCounters[0].counters["A"]']),
        (f"{DEVICE}/consumesCounters",
         [{"counterSet": name, "counters": {"a": {"value": "1"}}} for name in "aab"],
         ["spec.devices[0].consumesCounters", "spec.devices[0].consumesCounters[1]"]),
        (f"{DEVICE}/nodeName", "n", ["spec.devices[0].nodeName"]),
        (f"{DEVICE}/nodeSelector", NODE_SELECTOR, ["spec.devices[0].nodeSelector"]),
        (f"{DEVICE}/allNodes", True, ["spec.devices[0].allNodes"]),
        (f"{DEVICE}/bindingConditions", [], ["spec.devices[0].bindingConditions"]),
        (f"{DEVICE}/bindingFailureConditions", [], ["spec.devices[0].bindingFailureConditions"]),
        (f"{DEVICE}/bindingConditions", ["a", "a", "a/broken", " ", "b"],
         ["spec.devices[0].bindingConditions", "spec.devices[0].bindingConditions[1]",
          "spec.devices[0].bindingConditions[3]", "spec.devices[0].bindingFailureConditions[0]"]),
        # Request policies.
        (f"{DEVICE}/allowMultipleAllocations", False,
         [IN_MEMORY, IN_CORES, 'spec.devices[0].capacity["free"].requestPolicy']),
        (f"{MEMORY}/default", MISSING, [f"{IN_MEMORY}.default"]),
        (f"{MEMORY}/validValues", ["1Gi"], [IN_MEMORY]),
        (f"{MEMORY}/validRange/min", MISSING,
         [f"{IN_MEMORY}.validRange.min", f"{IN_MEMORY}.default", f"{IN_MEMORY}.validRange.max"]),
        (f"{MEMORY}/validRange", {"min": "81Gi"}, [f"{IN_MEMORY}.validRange.min"] * 2),
        (f"{MEMORY}/validRange", {"min": "-1"}, [f"{IN_MEMORY}.validRange.min"]),
        (f"{MEMORY}/validRange", {"min": "1", "max": "81Gi"}, [f"{IN_MEMORY}.validRange.max"]),
        (f"{MEMORY}/validRange", {"min": "1Gi", "max": "1Mi"}, [f"{IN_MEMORY}.validRange.max"] * 2),
        (f"{MEMORY}/validRange", {"min": "1Gi", "step": "80Gi"}, [f"{IN_MEMORY}.validRange.step"]),
        (f"{MEMORY}/validRange", {"min": "1Gi", "step": "79Gi"}, []),
        (f"{MEMORY}/default", "2Gi", [f"{IN_MEMORY}.default"]),
        (f"{MEMORY}/validRange/max", "78Gi", [f"{IN_MEMORY}.validRange.max"]),
        (f"{CORES}/validValues", ["2", "1"], [f"{IN_CORES}.validValues[1]"]),
        (f"{CORES}/validValues", ["1", "2", "2000m"], [f"{IN_CORES}.validValues[2]"]),
        (f"{CORES}/validValues", ["2", "9"], [f"{IN_CORES}.validValues[1]"]),
        (f"{CORES}/validValues", ["1"], [f"{IN_CORES}.validValues"]),
        (f"{CORES}/validValues", [f"{i}" for i in range(1, 9)] + ["8", "8", "8"],
         [f"{IN_CORES}.validValues"] + [f"{IN_CORES}.validValues[{i}]" for i in (8, 9, 10)]),
        (f"{CORES}/default", MISSING, [f"{IN_CORES}.default"]),
    ],
)  # fmt: skip
def test_rules_for_slices(path: str, value: Any, expected: list[str]) -> None:
    """Each rule, broken alone, is one violation at the field that breaks it."""
    obj = changed(SLICE, path, value)
    assert [path for path, _ in found(obj)] == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (NODE_SELECTOR, []),
        ({"nodeSelectorTerms": []}, [""]),
        ({"nodeSelectorTerms": NODE_SELECTOR["nodeSelectorTerms"] * 2}, [""]),
        ({"nodeSelectorTerms": [{}]}, ["[0]"]),
        ([{"key": "a", "operator": "In"}], ["[0].matchExpressions[0].values"]),
        ([{"key": "a", "operator": "NotIn"}], ["[0].matchExpressions[0].values"]),
        ([{"key": "a", "operator": "Exists", "values": ["x"]}],
         ["[0].matchExpressions[0].values"]),
        ([{"key": "a", "operator": "DoesNotExist", "values": ["x"]}],
         ["[0].matchExpressions[0].values"]),
        ([{"key": "a", "operator": "Gt", "values": ["-5"]}], []),
        ([{"key": "a", "operator": "Gt", "values": ["x"]}], ["[0].matchExpressions[0].values"]),
        ([{"key": "a", "operator": "Lt", "values": ["1", "2"]}],
         ["[0].matchExpressions[0].values"]),
        ([{"key": "a b", "operator": "x", "values": ["a b"]}],
         ["[0].matchExpressions[0].key", "[0].matchExpressions[0].operator",
          "[0].matchExpressions[0].values[0]"]),
        ({"nodeSelectorTerms": [{"matchFields": [{"key": "a", "operator": "Exists"}]}]},
         ["[0].matchFields[0].key", "[0].matchFields[0].operator", "[0].matchFields[0].values"]),
        ({"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["A"]}]}]},
         ["[0].matchFields[0].values[0]"]),
    ],
)  # fmt: skip
def test_rules_for_node_selectors(selector: Any, expected: list[str]) -> None:
    """A slice's node selector has one term, with keys, operators and values that fit."""
    if isinstance(selector, list):
        selector = {"nodeSelectorTerms": [{"matchExpressions": selector}]}
    obj = changed(changed(SLICE, "spec/nodeName", MISSING), "spec/nodeSelector", selector)
    prefix = "spec.nodeSelector.nodeSelectorTerms"
    assert [path for path, _ in found(obj)] == [prefix + suffix for suffix in expected]


def devices(count: int, **fields: Any) -> list[Any]:
    return [{"name": f"d{i}", **(fields if i == 0 else {})} for i in range(count)]


@pytest.mark.parametrize(
    ("entries", "fits"),
    [
        (devices(128), True),
        (devices(129), False),
        (devices(64, taints=[{"key": "a", "effect": "None"}]), True),
        (devices(65, taints=[{"key": "a", "effect": "None"}]), False),
        (devices(65, attributes={"a": {"bools": [True]}}), False),
        (devices(65, consumesCounters=[{"counterSet": "a", "counters": {"b": {}}}]), False),
        (devices(10_000), False),
    ],
)
def test_the_number_of_devices(entries: list[Any], fits: bool) -> None:
    """128 devices in a slice, 64 if one has taints, counters or list attributes."""
    expected = [] if fits else [("spec.devices", "error")]
    assert found(changed(SLICE, "spec/devices", entries)) == expected


def test_devices_with_node_selection_of_their_own() -> None:
    """With perDeviceNodeSelection every device has exactly one of the three."""
    obj = changed(SLICE, "spec/nodeName", MISSING)
    obj["spec"] |= {
        "perDeviceNodeSelection": True,
        "devices": [
            {"name": "a", "nodeName": "n"},
            {"name": "b"},
            {"name": "c", "allNodes": True, "nodeName": "n"},
            {"name": "d", "nodeName": "N"},
            {"name": "e", "nodeSelector": NODE_SELECTOR},
        ],
    }
    assert [path for path, _ in found(obj)] == [
        "spec.devices[1]",
        "spec.devices[2]",
        "spec.devices[3].nodeName",
    ]


def test_rules_for_counter_sets() -> None:
    """Up to 8 sets of up to 32 counters, with names."""
    obj = changed(SLICE, "spec/devices", MISSING)
    counters = {f"c{i}": {"value": "1"} for i in range(33)}
    sets: list[Any] = [{"name": f"s{i}", "counters": {"c": {"value": "-1"}}} for i in range(8)]
    assert found(obj | {"spec": obj["spec"] | {"sharedCounters": sets}}) == []
    sets[0]["counters"] = counters
    sets[1]["name"] = "s2"
    sets[3] = {"name": "A"}
    sets.append(sets[4] | {"name": "t"})
    path = "spec.sharedCounters"
    assert [p for p, _ in found(obj | {"spec": obj["spec"] | {"sharedCounters": sets}})] == [
        path,
        f"{path}[2]",
        f"{path}[0].counters",
        f"{path}[3].name",
        f"{path}[3].counters",
    ]


def test_what_was_legal_once_is_a_warning() -> None:
    """Slices of 1.34 had counters and devices together."""
    counters = [{"name": "a", "counters": {"b": {"value": "1"}}}]
    (violation,) = validate(wire.decode(changed(SLICE, "spec/sharedCounters", counters)))
    assert violation.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("bounds", "default", "path"),
    [
        ({"min": "1", "step": "0"}, "1", "validRange.step"),
        ({"min": "1", "step": "-1"}, "1", "validRange.step"),
        ({"min": "1", "step": "9223372036854775808"}, "1", "validRange.step"),
        ({"min": "1", "step": "18446744073709551616"}, "1", "validRange.step"),
        ({"min": "0", "max": "9223372036854775808", "step": "1"}, "1", "validRange.max"),
        ({"min": "0", "step": "1"}, "9223372036854775808", "default"),
        ({"min": "0", "step": "1", "max": "-9223372036854775809"}, "1", "validRange.max"),
        ({"min": "0", "step": "100n"}, "0", "validRange.step"),
    ],
)
def test_bug_30_bad_step_values(bounds: Any, default: str, path: str) -> None:
    """Steps of zero or less, and amounts beyond 64 bits, are violations, never a crash."""
    policy = {"default": default, "validRange": bounds}
    obj = changed(SLICE, MEMORY, policy)
    assert f"{IN_MEMORY}.{path}" in [p for p, _ in found(obj)]


def test_fractions_on_steps() -> None:
    """Steps may be fractions: 250m is not on steps of 100m, 300m is."""
    bounds = {"min": "100m", "step": "100m", "max": "1"}
    assert found(changed(SLICE, MEMORY, {"default": "300m", "validRange": bounds})) == []
    assert found(changed(SLICE, MEMORY, {"default": "250m", "validRange": bounds})) == [
        (f"{IN_MEMORY}.default", "error")
    ]


EXACTLY = "spec/devices/requests/0/exactly"
IN_EXACTLY = "spec.devices.requests[0].exactly"
RESULT = "status/allocation/devices/results/0"
IN_RESULT = "status.allocation.devices.results[0]"
CONFIG = "spec/devices/config/0"
LONG = "true" + " " * (10 * 1024 - 4)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("metadata/name", MISSING, ["metadata.name"]),
        ("metadata/namespace", MISSING, []),
        ("metadata/namespace", "a.b", ["metadata.namespace"]),
        ("spec/devices/requests/0/name", "", [
            "spec.devices.requests[0].name", "spec.devices.constraints[0].requests[0]"]),
        ("spec/devices/requests/0/name", "b", [
            "spec.devices.requests[1]", "spec.devices.constraints[0].requests[0]"]),
        (EXACTLY, MISSING, ["spec.devices.requests[0]"]),
        ("spec/devices/requests/1/exactly", REQUEST, ["spec.devices.requests[1]"]),
        ("spec/devices/requests/1/firstAvailable/1/name", "x",
         ["spec.devices.requests[1].firstAvailable[1]"]),
        ("spec/devices/requests/1/firstAvailable/1/name", "",
         ["spec.devices.requests[1].firstAvailable[1].name"]),
        ("spec/devices/requests/1/firstAvailable/0/count", 1,
         ["spec.devices.requests[1].firstAvailable[0].count"]),
        (f"{EXACTLY}/deviceClassName", "", [f"{IN_EXACTLY}.deviceClassName"]),
        (f"{EXACTLY}/deviceClassName", "a_b", [f"{IN_EXACTLY}.deviceClassName"]),
        (f"{EXACTLY}/selectors", [SELECTOR] * 33, [f"{IN_EXACTLY}.selectors"]),
        (f"{EXACTLY}/selectors/0", {}, [f"{IN_EXACTLY}.selectors[0].cel"]),
        (f"{EXACTLY}/selectors/0/cel/expression", "", [
            f"{IN_EXACTLY}.selectors[0].cel.expression"]),
        (f"{EXACTLY}/selectors/0/cel/expression", LONG, []),
        (f"{EXACTLY}/selectors/0/cel/expression", LONG + " ", [
            f"{IN_EXACTLY}.selectors[0].cel.expression"]),
        (f"{EXACTLY}/allocationMode", "Some", [f"{IN_EXACTLY}.allocationMode"]),
        (f"{EXACTLY}/allocationMode", "All", [f"{IN_EXACTLY}.count"]),
        (f"{EXACTLY}/allocationMode", MISSING, []),
        (f"{EXACTLY}/count", 0, [f"{IN_EXACTLY}.count"]),
        (f"{EXACTLY}/count", -1, [f"{IN_EXACTLY}.count"]),
        (f"{EXACTLY}/count", MISSING, []),
        (f"{EXACTLY}/count", 33, [f"{IN_EXACTLY}.count"]),
        (f"{EXACTLY}/tolerations", [{"operator": "Exists"}] * 17, [f"{IN_EXACTLY}.tolerations"]),
        (f"{EXACTLY}/tolerations/0", {"key": "a b", "operator": "x", "effect": "y"},
         [f"{IN_EXACTLY}.tolerations[0].{f}" for f in ("operator", "effect", "key")]),
        (f"{EXACTLY}/tolerations/0/value", "v", [f"{IN_EXACTLY}.tolerations[0].value"]),
        (f"{EXACTLY}/tolerations/0", {"key": "a", "value": "a b"},
         [f"{IN_EXACTLY}.tolerations[0].value"]),
        (f"{EXACTLY}/tolerations/0", {}, [f"{IN_EXACTLY}.tolerations[0].key"]),
        (f"{EXACTLY}/capacity/requests", {"a b": "1"}, [f'{IN_EXACTLY}.capacity.requests["a b"]']),
        ("spec/devices/constraints/0/requests", ["a", "a", "c", "b/z", "a/x", "b/x/y"],
         [f"spec.devices.constraints[0].requests[{i}]" for i in (1, 2, 3, 4, 5)]),
        ("spec/devices/constraints/0/matchAttribute", "numa",
         ["spec.devices.constraints[0].matchAttribute"]),
        ("spec/devices/constraints/0/matchAttribute", MISSING, ["spec.devices.constraints[0]"]),
        ("spec/devices/constraints/0/distinctAttribute", "x.com/a",
         ["spec.devices.constraints[0].distinctAttribute"]),
        ("spec/devices/constraints/1/distinctAttribute", "x.com/",
         ["spec.devices.constraints[1].distinctAttribute"]),
        ("spec/devices/constraints", [{"matchAttribute": "a/b"}] * 33,
         ["spec.devices.constraints"]),
        ("spec/devices/config", [OPAQUE] * 33, ["spec.devices.config"]),
        (f"{CONFIG}/requests", ["b/y", "z"], ["spec.devices.config[0].requests[1]"]),
        (f"{CONFIG}/opaque", MISSING, ["spec.devices.config[0].opaque"]),
        (f"{CONFIG}/opaque/driver", "", ["spec.devices.config[0].opaque.driver"]),
        (f"{CONFIG}/opaque/parameters", MISSING, ["spec.devices.config[0].opaque.parameters"]),
        (f"{CONFIG}/opaque/parameters", [1], ["spec.devices.config[0].opaque.parameters"]),
        (f"{CONFIG}/opaque/parameters", {"a": "x" * 10_232}, []),
        (f"{CONFIG}/opaque/parameters", {"a": "x" * 10_233},
         ["spec.devices.config[0].opaque.parameters"]),
        # Status.
        ("status/allocation", MISSING, ["status.reservedFor", "status.devices[0]"]),
        ("status/reservedFor", [{"resource": "", "name": "", "uid": ""}],
         [f"status.reservedFor[0].{f}" for f in ("resource", "name", "uid")]),
        ("status/reservedFor", [{"resource": "pods", "name": "p", "uid": "u"}] * 2,
         ["status.reservedFor[1]"]),
        ("status/reservedFor",
         [{"resource": "pods", "name": "p", "uid": f"u{i}"} for i in range(256)], []),
        ("status/reservedFor",
         [{"resource": "pods", "name": "p", "uid": f"u{i}"} for i in range(257)],
         ["status.reservedFor"]),
        (f"{RESULT}/request", "b", []),
        (f"{RESULT}/request", "b/z", [f"{IN_RESULT}.request"]),
        (f"{RESULT}/driver", "", [f"{IN_RESULT}.driver", "status.devices[0]"]),
        (f"{RESULT}/pool", "", [f"{IN_RESULT}.pool", "status.devices[0]"]),
        (f"{RESULT}/device", "", [f"{IN_RESULT}.device", "status.devices[0]"]),
        (f"{RESULT}/shareID", "x", [f"{IN_RESULT}.shareID", "status.devices[0]"]),
        (f"{RESULT}/shareID", MISSING, ["status.devices[0]"]),
        (f"{RESULT}/bindingConditions", ["a"], [f"{IN_RESULT}.bindingFailureConditions"]),
        (f"{RESULT}/tolerations", [{"operator": "x", "key": "a"}],
         [f"{IN_RESULT}.tolerations[0].operator"]),
        (f"{RESULT}/skipNodeOperations", ["NodePrepareResources"],
         [f"{IN_RESULT}.skipNodeOperations"]),
        ("status/allocation/devices/config/0/source", "", [
            "status.allocation.devices.config[0].source"]),
        ("status/allocation/devices/config/0/source", "Else", [
            "status.allocation.devices.config[0].source"]),
        ("status/allocation/devices/config/0/requests", ["q"], [
            "status.allocation.devices.config[0].requests[0]"]),
        ("status/allocation/nodeSelector/nodeSelectorTerms", [],
         ["status.allocation.nodeSelector.nodeSelectorTerms"]),
        ("status/devices/0/device", "other", ["status.devices[0]"]),
        ("status/devices/0/data", 5, ["status.devices[0].data"]),
        ("status/devices/0/data", {"a": "x" * 10_240}, ["status.devices[0].data"]),
        ("status/devices/0/conditions/0", {"type": "a b", "observedGeneration": -1},
         [f"status.devices[0].conditions[0].{f}" for f in
          ("type", "status", "reason", "lastTransitionTime", "observedGeneration")]),
        ("status/devices/0/networkData/interfaceName", "x" * 257,
         ["status.devices[0].networkData.interfaceName"]),
        ("status/devices/0/networkData/ips", ["a"] * 17,
         ["status.devices[0].networkData.ips"]
         + [f"status.devices[0].networkData.ips[{i}]" for i in range(1, 17)]),
    ],
)  # fmt: skip
def test_rules_for_claims(path: str, value: Any, expected: list[str]) -> None:
    """Each rule, broken alone, is one violation at the field that breaks it."""
    assert [path for path, _ in found(changed(CLAIM, path, value))] == expected


def test_limits_of_requests() -> None:
    """32 requests, 8 alternatives; templates have the same rules one level down."""
    request = {"deviceClassName": "gpu"}
    many = [{"name": f"r{i}", "exactly": request} for i in range(33)]
    alternatives = [{"name": f"s{i}", "deviceClassName": "gpu"} for i in range(9)]
    for requests, path in (
        (many, "devices.requests"),
        ([{"name": "r", "firstAvailable": alternatives}], "devices.requests[0].firstAvailable"),
    ):
        spec = {"devices": {"requests": requests}}
        claim = CLAIM | {"spec": spec, "status": None}
        assert found(claim) == [(f"spec.{path}", "error")]
        template = TEMPLATE | {"spec": {"spec": spec, "metadata": {"labels": {"a b": ""}}}}
        assert found(template) == [
            ('spec.metadata.labels["a b"]', "error"),
            (f"spec.spec.{path}", "error"),
        ]


@pytest.mark.parametrize(
    ("obj", "path", "value", "expected"),
    [
        (CLASS, "spec/extendedResourceName", "gpu", ["spec.extendedResourceName"]),
        (CLASS, "spec/extendedResourceName", "a.kubernetes.io/x", ["spec.extendedResourceName"]),
        (CLASS, "spec/extendedResourceName", "requests.a/x", ["spec.extendedResourceName"]),
        (CLASS, "spec/extendedResourceName", "a/x y", ["spec.extendedResourceName"]),
        (CLASS, "spec/selectors", [{}], ["spec.selectors[0].cel"]),
        (CLASS, "spec/config", [{}], ["spec.config[0].opaque"]),
        (CLASS, "spec/config", [OPAQUE] * 33, ["spec.config"]),
        (RULE, "spec/deviceSelector", MISSING, ["spec.deviceSelector"]),
        (RULE, "spec/deviceSelector", {"driver": "", "pool": "", "device": ""},
         [f"spec.deviceSelector.{f}" for f in ("driver", "pool", "device")]),
        (RULE, "spec/taint", {}, ["spec.taint.key", "spec.taint.effect"]),
        (POD, "spec/resourceClaims/0/name", "b", ["spec.resourceClaims[1]"]),
        (POD, "spec/resourceClaims/0/resourceClaimName", MISSING, ["spec.resourceClaims[0]"]),
        (POD, "spec/resourceClaims/0/resourceClaimTemplateName", "t", ["spec.resourceClaims[0]"]),
        (POD, "spec/resourceClaims/0/resourceClaimName", "",
         ["spec.resourceClaims[0].resourceClaimName"]),
        (GROUP, "spec/resourceClaims/0/name", "A", ["spec.resourceClaims[0].name"]),
        (NODE, "metadata/name", "a_b", ["metadata.name"]),
        (NODE, "metadata", {"generateName": "n-"}, []),
    ],
)  # fmt: skip
def test_rules_for_other_kinds(obj: Any, path: str, value: Any, expected: list[str]) -> None:
    """Classes, taint rules, pods, pod groups, nodes."""
    assert [path for path, _ in found(changed(obj, path, value))] == expected


def test_selectors_are_checked_by_the_caller() -> None:
    """Each expression is shown to the callable; what it returns is the violation."""
    seen: list[str] = []

    def check(expression: str) -> str | None:
        seen.append(expression)
        return "is bad" if "bad" in expression else None

    selectors = [{"cel": {"expression": text}} for text in ("good", "bad", "")]
    obj = wire.decode(changed(CLASS, "spec/selectors", selectors))
    assert validate(obj, check) == (
        Violation("spec.selectors[1].cel.expression", "is bad"),
        Violation("spec.selectors[2].cel.expression", "is required"),
    )
    assert seen == ["good", "bad"]


def test_all_violations_at_once() -> None:
    """Nothing stops at the first."""
    obj = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": {"devices": [{}]}}
    assert [path for path, _ in found(obj)] == [
        "metadata.name",
        "spec.driver",
        "spec.pool.name",
        "spec.pool.resourceSliceCount",
        "spec",
        "spec.devices[0].name",
    ]


def test_paths_are_those_of_the_objects_version() -> None:
    """Until v1beta1 devices have basic and requests are flat; paths say so."""
    older = wire.encode(wire.decode(changed(SLICE, f"{DEVICE}/taints/0/key", "")), "v1beta1")
    older["spec"]["devices"][1]["name"] = ""
    assert [path for path, _ in found(older)] == [
        "spec.devices[0].basic.taints[0].key",
        "spec.devices[1].name",
    ]
    template = wire.encode(wire.decode(TEMPLATE), "v1beta1")
    template["spec"]["spec"]["devices"]["requests"][0]["count"] = 0
    assert found(template) == [("spec.spec.devices.requests[0].count", "error")]


def test_other_types_have_no_rules() -> None:
    """What is not an object of the API breaks none of its rules."""
    assert validate("text") == validate(None) == ()


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"x", "\ud800"])
def test_parameters_made_by_hand(value: Any) -> None:
    """Objects that were not decoded may hold anything: still no exception."""
    opaque = OpaqueDeviceConfiguration("d", {"a": value})
    made = DeviceClass(
        selectors=(DeviceSelector("\ud800"),), config=(DeviceClassConfiguration(opaque),)
    )
    assert "metadata.name" in [violation.path for violation in validate(made)]


def test_violations_read_well() -> None:
    """The text of a violation is its path and the problem."""
    assert str(Violation("spec.x", "is required")) == "spec.x: is required"
    assert str(Violation("", "is odd")) == "is odd"


PUBLISHED = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "published.jsonl").read_text().splitlines()
]


def test_published_objects_are_valid() -> None:
    """What people publish breaks no rule; two of them have what deserves a warning."""
    warnings = []
    for obj in PUBLISHED:
        if obj["metadata"]["name"] == "node-a-spyre":
            continue
        violations = validate(wire.decode(obj))
        assert [v for v in violations if v.severity is Severity.ERROR] == []
        warnings += [obj["metadata"]["name"]] * bool(violations)
    assert sorted(warnings) == ["monitor", "node-old-gpu.nvidia.com-x0001"]


@given(
    st.one_of(
        strategies.of_group(alpha=True),
        strategies.of_group(alpha=False),
        strategies.device_taint_rules,
        strategies.pods,
        strategies.pod_groups,
        strategies.nodes,
    )
)
def test_validation_never_fails(obj: Any) -> None:
    """Any object of the right types gets violations, never an exception; twice the same."""
    violations = validate(obj)
    assert violations == validate(obj)
    for violation in violations:
        str(violation).encode("utf-8")
        assert violation.problem
