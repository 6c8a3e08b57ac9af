"""Validation of ResourceSlices: devices, capacities, counters, node selection."""

from typing import Any

import pytest

from dra_core.api import wire
from dra_core.api.validation import Severity, validate
from support.valid_objects import MISSING, NODE_SELECTOR, SLICE, changed, found

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
