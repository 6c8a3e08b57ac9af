"""``lint``: objects against the API's rules, selectors against devices."""

import pytest

from dra_core.cli.selectors import LONGEST_COMPARED, MOST_COMPARED, nearest
from support.commands import (
    DRIVER,
    Json,
    allocated,
    claim,
    device,
    device_class,
    node,
    request,
    resource_slice,
    run,
    run_on,
    small_cluster,
    template,
)

GPU = device(
    "gpu-0",
    attributes={
        "model": {"string": "a100"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    },
    capacity={"memory": {"value": "80Gi"}},
)
SUPPLY = (node(), resource_slice("node-1", GPU))


def attribute(name: str, domain: str = DRIVER) -> str:
    return f'device.attributes["{domain}"].{name}'


def lint(*objects: Json) -> tuple[int, list[str]]:
    """Exit code and findings."""
    ran = run_on(*objects, arguments=("lint",))
    assert ran.err == ""
    return ran.code, [line for line in ran.out.splitlines()[1:] if not line.startswith("Note: ")]


def findings(*objects: Json) -> list[str]:
    """Findings of objects beside a node and a GPU."""
    return lint(*SUPPLY, *objects)[1]


def test_nothing_to_say() -> None:
    """Objects that keep the rules, and selectors that match, give no findings."""
    ran = run_on(*SUPPLY, device_class("gpu", attribute('model == "a100"')), claim(),
                 arguments=("lint",))  # fmt: skip
    assert (ran.code, ran.out) == (0, "4 objects: 0 errors, 0 warnings.\n")


def test_rules_of_the_api() -> None:
    """Every violation of every object is told with its path, and the exit code is 1."""
    bad = claim("bad", request("GPU", count=-1), request("GPU"))
    code, told = lint(*SUPPLY, device_class(), bad)
    assert code == 1
    assert all(
        line.startswith("error: ResourceClaim ns/bad: spec.devices.requests[") for line in told
    )
    assert len(told) >= 3


def test_malformed_objects() -> None:
    """Malformed objects are all told, the others still checked; the exit code is 2."""
    first, second = claim("first"), claim("second")
    first["spec"]["devices"]["requests"] = {}
    second["metadata"]["labels"] = []
    bad = claim("bad", request("GPU"))
    code, told = lint(*SUPPLY, first, device_class(), second, bad)
    assert code == 2
    assert [line.split(":")[1] for line in told] == [
        " ResourceClaim 'ns/first'", " ResourceClaim 'ns/second'", " ResourceClaim ns/bad",
    ]  # fmt: skip


def test_what_was_legal_once() -> None:
    """Counters and devices in one slice are a warning; warnings leave the exit code at 0."""
    counters = [{"name": "set", "counters": {"memory": {"value": "1"}}}]
    code, told = lint(node(), resource_slice(sharedCounters=counters))
    assert code == 0
    assert len(told) == 1
    assert told[0].startswith("warning: ResourceSlice node-1-")


def test_selector_that_does_not_compile() -> None:
    """A selector that does not compile is an error, in a class, claim or template."""
    code, told = lint(
        *SUPPLY,
        device_class("gpu", "device.driver =="),
        claim("c", request("gpu", "1")),
        template("t", request("gpu", "true", "device.nothing")),
    )
    assert code == 1
    places = [line.split(": ")[1:3] for line in told if "does not compile" in line]
    spec = "devices.requests[0].exactly.selectors"
    assert places == [
        ["DeviceClass gpu", "spec.selectors[0].cel.expression"],
        ["ResourceClaim ns/c", f"spec.{spec}[0].cel.expression"],
        ["ResourceClaimTemplate ns/t", f"spec.spec.{spec}[1].cel.expression"],
    ]


def test_selectors_of_alternatives_and_older_versions() -> None:
    """Paths are those of the object: alternatives, and requests without ``exactly``."""
    old = claim("old", request("gpu", "device."))
    old["apiVersion"] = "resource.k8s.io/v1beta1"
    asked = old["spec"]["devices"]["requests"][0]
    asked.update(asked.pop("exactly"))
    listed = claim("list")
    alternative = {"name": "a", "deviceClassName": "gpu", "allocationMode": "ExactCount",
                   "count": 1, "selectors": [{"cel": {"expression": "device."}}]}  # fmt: skip
    listed["spec"]["devices"]["requests"] = [{"name": "gpu", "firstAvailable": [alternative]}]
    told = [line for line in findings(device_class(), old, listed) if "compile" in line]
    assert [line.split(": ")[2] for line in told] == [
        "spec.devices.requests[0].selectors[0].cel.expression",
        "spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression",
    ]


def test_selector_that_matches_nothing() -> None:
    """A selector that matches no device of the dump is a warning with the devices tried."""
    (told,) = findings(device_class("gpu", attribute('model == "h100"')))
    assert told == (
        "warning: DeviceClass gpu: spec.selectors[0].cel.expression: matches none of 1 device "
        f"({DRIVER}/node-1/gpu-0)"
    )


@pytest.mark.parametrize(
    ("expression", "missing", "nearest"),
    [
        (attribute('modle == "a100"'), f"attribute {DRIVER}/modle", f"{DRIVER}/model"),
        (attribute('pcieRoot == "x"'), f"attribute {DRIVER}/pcieRoot",
         "resource.kubernetes.io/pcieRoot"),
        (f'has({attribute("modell")})', f"attribute {DRIVER}/modell", f"{DRIVER}/model"),
        (f'device.capacity["{DRIVER}"].memroy == quantity("1")', f"capacity {DRIVER}/memroy",
         f"{DRIVER}/memory"),
        (attribute('model == "a100"', "gpu.exampel.com"), "attribute gpu.exampel.com/model",
         f"{DRIVER}/model"),
    ],
)  # fmt: skip
def test_names_of_what_is_missing(expression: str, missing: str, nearest: str) -> None:
    """The attribute or capacity that is missing is named with the nearest existing name."""
    (told,) = findings(device_class("gpu", expression))
    assert told.startswith("warning: DeviceClass gpu: spec.selectors[0].cel.expression: ")
    assert told.endswith(f"; no device has the {missing}; the nearest name is {nearest}")


def test_nothing_near() -> None:
    """Without a similar name there is no hint."""
    (told,) = findings(device_class("gpu", attribute("xyzzy")))
    assert told.endswith(f"no device has the attribute {DRIVER}/xyzzy")


def test_selector_that_fails_on_some() -> None:
    """A selector that fails on some devices is a warning, also if it matches others."""
    plain = [device(f"gpu-{n}") for n in range(1, 6)]
    objects = (node(), resource_slice("node-1", GPU, *plain))
    _, told = lint(*objects, device_class("gpu", attribute('model == "a100"')))
    assert len(told) == 1
    assert f"fails on 5 devices ({DRIVER}/node-1/gpu-1, " in told[0]
    assert "and 2 more)" in told[0]
    assert f"without the attribute {DRIVER}/model, which others have" in told[0]


def test_selectors_are_tried_one_after_the_other() -> None:
    """A selector sees the devices that the class and the selectors before it choose."""
    network = resource_slice("node-1", device("nic"), driver="nic.example.com")
    network["metadata"]["name"] = "nic"
    guarded = device_class("gpu", f'device.driver == "{DRIVER}"', attribute('model != ""'))
    asked = claim("c", request("gpu", attribute('model == "a100"'), attribute('model == "b"')))
    told = findings(network, guarded, asked)
    assert len(told) == 1
    assert "requests[0].exactly.selectors[1]" in told[0]
    assert "matches none of 1 device" in told[0]


def test_nothing_is_told_after_nothing_is_left() -> None:
    """A request of a class without devices adds no warnings of its own."""
    told = findings(device_class("gpu", "false"), claim("c", request("gpu", "false")))
    assert [line.split(": ")[1] for line in told] == ["DeviceClass gpu"]


def test_class_that_does_not_exist() -> None:
    """A class that is not in the input is a warning with the nearest name."""
    (told,) = findings(
        device_class("gpu.example.com"), claim("c", request(deviceClassName="gpu.exmple.com"))
    )
    assert told.endswith(
        "there is no DeviceClass gpu.exmple.com; the nearest name is gpu.example.com"
    )
    assert findings(claim("c")) == []  # no classes in the input at all


def test_attributes_of_constraints() -> None:
    """An attribute that a constraint compares and no device has is a warning."""
    asked = claim(
        "c", request("a"), request("b"),
        constraints=[
            {"matchAttribute": "resource.kubernetes.io/pcieroot"},
            {"matchAttribute": "resource.kubernetes.io/pcieRoot"},
        ],
    )  # fmt: skip
    (told,) = findings(device_class(), asked)
    assert "spec.devices.constraints[0].matchAttribute: no device has the attribute" in told
    assert told.endswith("; the nearest name is resource.kubernetes.io/pcieRoot")


def test_capacity_that_no_device_has() -> None:
    """A capacity that a request asks for and no selected device has is a warning."""
    asked = claim("c", request(capacity={"requests": {"memroy": "1Gi", "memory": "1Gi"}}))
    (told,) = findings(device_class(), asked)
    assert told.endswith("no selected device has the capacity memroy; the nearest name is memory")


def test_without_slices() -> None:
    """Without slices selectors are compiled only, and the output says so."""
    ran = run_on(device_class("gpu", attribute("x")), claim(), arguments=("lint",))
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "2 objects: 0 errors, 0 warnings.",
        "Note: no ResourceSlices in the input: selectors were not tried on devices.",
    ]


def test_other_kinds() -> None:
    """Objects of other kinds are counted, not checked."""
    ran = run_on(*SUPPLY, {"apiVersion": "apps/v1", "kind": "Deployment"}, arguments=("lint",))
    assert "Note: 1 object of other kinds not checked: apps/v1 Deployment (1)." in ran.out


def test_unreadable_files() -> None:
    """A file that cannot be read is bad input."""
    ran = run("lint", "/nonexistent/file.json")
    assert (ran.code, ran.out) == (2, "")
    assert "No such file" in ran.err


def test_long_selectors() -> None:
    """A selector beyond the API's limit is an error of the object, and still evaluated."""
    long = " || ".join(['device.driver == "x"'] * 600)
    code, told = lint(*SUPPLY, device_class("gpu", long))
    assert code == 1
    assert any("selectors[0].cel.expression" in line and line.startswith("error") for line in told)
    assert any("matches none" in line for line in told)


def test_deeply_nested_selector() -> None:
    """A thousand nested parentheses are an error, not a crash."""
    code, told = lint(*SUPPLY, device_class("gpu", "(" * 1000 + "true" + ")" * 1000))
    assert code == 1
    assert len(told) == 1


def test_secrets_are_not_told() -> None:
    """Findings never show opaque parameters."""
    config = [{"opaque": {"driver": "BAD DRIVER", "parameters": {"password": "hunter2"}}}]
    ran = run_on(*SUPPLY, device_class("gpu", config=config), claim("c", config=config),
                 allocated(claim("d", config=config), "gpu-0"), arguments=("lint",))  # fmt: skip
    assert ran.code == 1
    assert "hunter2" not in ran.out + ran.err


def test_small_cluster_is_clean() -> None:
    """The cluster that other tests use keeps the rules of the API."""
    ran = run_on(*small_cluster(), arguments=("lint",))
    assert ran.out == "5 objects: 0 errors, 0 warnings.\n"


def test_hints_take_no_time() -> None:
    """A near name is told among names as clusters have them, not among thousands or huge ones."""
    assert nearest("modle", ["model", "numa"]) == ["model"]
    assert nearest("modle", [*(f"x{n}" for n in range(MOST_COMPARED)), "model"]) == []
    huge = "model" * LONGEST_COMPARED
    assert nearest("modle", [huge, "model"]) == ["model"]
    assert nearest(huge, [huge]) == []
