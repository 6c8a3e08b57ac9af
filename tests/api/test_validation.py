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
from support.valid_objects import (
    CLASS,
    GROUP,
    MISSING,
    NODE,
    OPAQUE,
    POD,
    RULE,
    SLICE,
    TEMPLATE,
    VALID,
    changed,
    found,
)


@pytest.mark.parametrize("obj", VALID, ids=lambda obj: str(obj["kind"]))
def test_valid_objects_have_no_violations(obj: Any) -> None:
    """An object that uses everything and breaks nothing."""
    assert validate(wire.decode(obj)) == ()


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
    older = wire.encode(wire.decode(changed(SLICE, "spec/devices/0/taints/0/key", "")), "v1beta1")
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
