"""The API's rules for v1alpha2: valid objects pass, and each rule is noticed when broken."""

import copy
from typing import Any

import pytest

from dra_core.api.validation import Severity
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.validation import validate
from support import named_json as objects

Json = dict[str, Any]

VALID = [
    objects.slice_json("s", "node-1", "gpu.example.com", [objects.instance_json("gpu-0")]),
    objects.slice_json("s", "", "gpu.example.com", []),
    objects.class_json(
        parametersRef=objects.vendor("x", "ns", "GpuConfig", "gpu.example.com"),
        suitableNodes=objects.on_node("n"),
    ),
    objects.claim_json(
        parameters=objects.vendor("x"),
        mode="Immediate",
        driverName="d",
        allocation=objects.allocation_json("n", objects.handle_json("d", "n", "a"), shareable=True),
        reservedFor=[{"resource": "pods", "name": f"p{i}", "uid": f"u{i}"} for i in range(32)],
    ),
    objects.claim_json(
        driverName="d", allocation={"resourceHandles": [{"driverName": "d", "data": "x" * 16384}]}
    ),
    objects.template_json("t", parametersRef=objects.vendor("x"), allocationMode="Immediate"),
    objects.class_parameters_json("p", "ns", ("d1", "true"), ("d2", "false")),
    objects.claim_parameters_json("p", "ns", ("d1", ["true", "true"]), ("d2", ["true"])),
]


@pytest.mark.parametrize("obj", VALID, ids=lambda obj: obj["kind"])
def test_valid_objects_break_no_rule(obj: Json) -> None:
    """What the API server accepts has no violations."""
    assert validate(wire.decode(obj)) == ()


def test_other_objects_have_no_rules() -> None:
    """What is of no kind of this version is left alone."""
    assert validate("ResourceClaim") == ()


SLICE, CLASS, CLAIM, TEMPLATE = VALID[0], VALID[2], VALID[3], VALID[5]
CLASS_PARAMETERS, CLAIM_PARAMETERS = VALID[6], VALID[7]
INSTANCES = "namedResources.instances"


def two(version: str = "1.2.3", **values: Any) -> list[Json]:
    return [{"name": "a", "attributes": [{"name": "v", "version": version, **values}]}]


@pytest.mark.parametrize(
    ("obj", "changes", "broken"),
    [
        (SLICE, {"metadata.namespace": "ns"}, ["metadata.namespace"]),
        (SLICE, {"metadata.name": "A_b"}, ["metadata.name"]),
        (SLICE, {"nodeName": "Node_1"}, ["nodeName"]),
        (SLICE, {"driverName": ""}, ["driverName"]),
        (SLICE, {"namedResources": None}, ["namedResources"]),
        (SLICE, {INSTANCES: objects.plain("a", "a")}, [f"{INSTANCES}[1]"]),
        (SLICE, {INSTANCES: objects.plain("a_b")}, [f"{INSTANCES}[0].name"]),
        (
            SLICE,
            {INSTANCES: [{"name": "a", "attributes": [{"name": "x", "int": 1}, {"name": "x"}]}]},
            [f"{INSTANCES}[0].attributes[1]", f"{INSTANCES}[0].attributes[1]"],
        ),
        (SLICE, {INSTANCES: two("v1.2.3")}, [f"{INSTANCES}[0].attributes[0].version"]),
        (SLICE, {INSTANCES: two("1.2")}, [f"{INSTANCES}[0].attributes[0].version"]),
        (SLICE, {INSTANCES: two(bool=False)}, [f"{INSTANCES}[0].attributes[0]"]),
        (CLASS, {"metadata.namespace": "ns"}, ["metadata.namespace"]),
        (CLASS, {"driverName": "a/b"}, ["driverName"]),
        (CLASS, {"parametersRef.kind": None}, ["parametersRef.kind"]),
        (CLASS, {"parametersRef.name": ""}, ["parametersRef.name"]),
        (CLASS, {"parametersRef.namespace": "a.b"}, ["parametersRef.namespace"]),
        (CLASS, {"suitableNodes": {}}, ["suitableNodes.nodeSelectorTerms"]),
        (CLAIM, {"spec.resourceClassName": ""}, ["spec.resourceClassName"]),
        (CLAIM, {"spec.allocationMode": "Later"}, ["spec.allocationMode"]),
        (CLAIM, {"spec.parametersRef.kind": ""}, ["spec.parametersRef.kind"]),
        (CLAIM, {"status.driverName": None}, ["status.driverName"]),
        (CLAIM, {"status.driverName": "A B"}, ["status.driverName"]),
        (CLAIM, {"status.allocation": None}, ["status.reservedFor"]),
        (CLAIM, {"status.allocation.shareable": False}, ["status.reservedFor"]),
        (CLAIM, {"status.deallocationRequested": True}, ["status.deallocationRequested"]),
        (
            CLAIM,
            {
                "status.allocation": None,
                "status.reservedFor": None,
                "status.deallocationRequested": True,
            },
            ["status.deallocationRequested"],
        ),
        (
            CLAIM,
            {"status.reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}] * 33},
            ["status.reservedFor"] + [f"status.reservedFor[{i}]" for i in range(1, 33)],
        ),
        (
            CLAIM,
            {"status.reservedFor": [{}]},
            [f"status.reservedFor[0].{member}" for member in ("resource", "name", "uid")],
        ),
        (
            CLAIM,
            {"status.allocation.resourceHandles": [{"driverName": "d"}] * 33},
            ["status.allocation.resourceHandles"],
        ),
        (
            CLAIM,
            {
                "status.allocation.resourceHandles": [
                    {"driverName": "", "data": "x" * 16385},
                    {"driverName": "d", "data": "x", "structuredData": {}},
                    {
                        "driverName": "d",
                        "structuredData": {
                            "nodeName": "_",
                            "results": [{}, {"namedResources": {"name": ""}}],
                        },
                    },
                ]
            },
            [
                f"status.allocation.resourceHandles{path}"
                for path in (
                    "[0].driverName",
                    "[0].data",
                    "[1].data",
                    "[2].structuredData.nodeName",
                    "[2].structuredData.results[0].namedResources",
                    "[2].structuredData.results[1].namedResources.name",
                )
            ],
        ),
        (
            CLAIM,
            {"status.allocation.availableOnNodes": {}},
            ["status.allocation.availableOnNodes.nodeSelectorTerms"],
        ),
        (TEMPLATE, {"spec.spec.resourceClassName": "A"}, ["spec.spec.resourceClassName"]),
        (TEMPLATE, {"spec.metadata": {"labels": {"": ""}}}, ['spec.metadata.labels[""]']),
        (CLASS_PARAMETERS, {"generatedFrom": {}}, ["generatedFrom.kind", "generatedFrom.name"]),
        (
            CLASS_PARAMETERS,
            {"filters": [{"driverName": "d", "namedResources": {"selector": "true"}}] * 2},
            ["filters[1].driverName"],
        ),
        (CLASS_PARAMETERS, {"filters": [{"driverName": "d"}]}, ["filters[0].namedResources"]),
        (
            CLASS_PARAMETERS,
            {"vendorParameters": [{"driverName": "d"}, {"driverName": "D_"}, {"driverName": "d"}]},
            ["vendorParameters[1].driverName", "vendorParameters[2].driverName"],
        ),
        (
            CLAIM_PARAMETERS,
            {"driverRequests": [{"driverName": "d"}]},
            ["driverRequests[0].requests"],
        ),
        (
            CLAIM_PARAMETERS,
            {
                "driverRequests": [
                    {"driverName": "d", "requests": [{}, {"namedResources": {"selector": ""}}]},
                    {
                        "driverName": "d",
                        "requests": [{"namedResources": {"selector": "'" + "x" * 10240 + "'==''"}}],
                    },
                ]
            },
            [
                "driverRequests[1].driverName",
                "driverRequests[0].requests[0].namedResources",
                "driverRequests[0].requests[1].namedResources.selector",
                "driverRequests[1].requests[0].namedResources.selector",
            ],
        ),
    ],
)
def test_every_rule_is_noticed(obj: Json, changes: Json, broken: list[str]) -> None:
    """A rule that is broken is found at its field, and nothing else is."""
    changed = copy.deepcopy(obj)
    for path, value in changes.items():
        *way, last = path.split(".")
        place = changed
        for member in way:
            place = place.setdefault(member, {})
        place[last] = value
    found = validate(wire.decode(changed))
    assert [violation.path for violation in found] == broken
    assert {violation.severity for violation in found} == {Severity.ERROR}


def test_versions_have_no_limit_of_length() -> None:
    """The limit of 64 bytes came with a later version."""
    obj = objects.slice_json("s", "n", "d", two(f"1.2.3-{'a' * 100}"))
    assert validate(wire.decode(obj)) == ()


def test_selectors_are_given_to_the_caller() -> None:
    """Whoever validates may say what is wrong with an expression."""
    seen: list[str] = []

    def check(expression: str) -> str | None:
        seen.append(expression)
        return "does not compile" if expression == "false" else None

    found = validate(wire.decode(CLASS_PARAMETERS), check)
    assert [(v.path, v.problem) for v in found] == [
        ("filters[1].namedResources.selector", "does not compile")
    ]
    assert validate(wire.decode(CLAIM_PARAMETERS), check) == ()
    assert seen == ["true", "false", "true", "true", "true"]
