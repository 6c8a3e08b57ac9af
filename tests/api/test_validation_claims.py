"""Validation of claims and templates: requests, constraints, configuration, status."""

from typing import Any

import pytest

from support.valid_objects import (
    CLAIM,
    MISSING,
    OPAQUE,
    REQUEST,
    SELECTOR,
    TEMPLATE,
    changed,
    found,
)

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
