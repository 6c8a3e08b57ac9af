"""Bad input: a clear error that names the object and the field, or the right answer."""

import copy
import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api import wire
from dra_core.errors import MalformedObjectError, NotExpressibleError
from support import wire_objects as strategies
from support.conformance import load_conformance

PUBLISHED = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "published.jsonl").read_text().splitlines()
]
"""Objects that people published, of all versions."""

MIXED_SHAPE = "node-a-spyre"
"""One of them says v1 and nests its devices under ``basic``, as v1beta1 did."""


def refusal(obj: Any) -> MalformedObjectError:
    """The error that decoding ends in; the input is as before, the error survives pickling."""
    before = copy.deepcopy(obj)
    with pytest.raises(MalformedObjectError) as caught:
        wire.decode(obj)
    assert obj == before
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    str(caught.value).encode("utf-8")
    return caught.value


def slice_of(spec: Any, version: str = "v1") -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": spec,
    }


def claim_of(spec: Any, status: Any = None, version: str = "v1") -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": spec,
        "status": status,
    }


def device(**fields: Any) -> dict[str, Any]:
    return slice_of({"devices": [{"name": "a"}, {"name": "b", **fields}]})


def request_of(request: Any, version: str = "v1") -> dict[str, Any]:
    return claim_of({"devices": {"requests": [request]}}, version=version)


def allocated(result: Any) -> dict[str, Any]:
    return {"allocation": {"devices": {"results": [result]}}}


RESULT = "status.allocation.devices.results[0]"


@pytest.mark.parametrize("obj", PUBLISHED, ids=lambda obj: f"{obj['kind']}-{obj['metadata']}")
def test_published_objects(obj: Any) -> None:
    """Every published object decodes, and is written back as it came; one is refused."""
    if obj["metadata"]["name"] == MIXED_SHAPE:
        error = refusal(obj)
        assert (error.kind, error.name) == ("ResourceSlice", MIXED_SHAPE)
        assert error.path == "spec.devices[0].basic"
        return
    before = copy.deepcopy(obj)
    assert wire.encode_whole(wire.decode(obj)) == obj == before


@pytest.mark.parametrize(
    ("obj", "path", "problem"),
    [
        (slice_of([]), "spec", "must be an object, not a list"),
        (slice_of({"driver": 1}), "spec.driver", "must be a string, not a number"),
        (slice_of({"pool": {"generation": "1"}}), "spec.pool.generation", "an integer"),
        (slice_of({"pool": {"generation": True}}), "spec.pool.generation", "a boolean"),
        (slice_of({"pool": {"generation": 1.0}}), "spec.pool.generation", "fraction"),
        (slice_of({"pool": {"generation": 2**63}}), "spec.pool.generation", "64 bits"),
        (slice_of({"devices": {}}), "spec.devices", "must be a list, not an object"),
        (slice_of({"devices": [None]}), "spec.devices[0]", "must be an object, not null"),
        (slice_of({"devices": "ab"}), "spec.devices", "must be a list, not a string"),
        (slice_of({"skipNodeOperations": ["a", None]}), "spec.skipNodeOperations[1]", "null"),
        (slice_of({"skipNodeOperations": True}), "spec.skipNodeOperations", "a list"),
        (slice_of({"allNodes": "true"}), "spec.allNodes", "must be a boolean, not a string"),
        (slice_of({"allNodes": 0}), "spec.allNodes", "must be a boolean, not a number"),
        (device(basic={}), "spec.devices[1].basic", "flat"),
        (device(attributes=[]), "spec.devices[1].attributes", "an object"),
        (device(attributes={"x": 5}), 'spec.devices[1].attributes["x"]', "an object"),
        (device(attributes={"x": {"int": "5"}}), 'spec.devices[1].attributes["x"].int', "integer"),
        (device(attributes={"x": {"int": True}}), 'spec.devices[1].attributes["x"].int', "boolean"),
        (device(attributes={"x": {"int": 1.0}}), 'spec.devices[1].attributes["x"].int', "fraction"),
        (device(attributes={"x": {"bool": 1}}), 'spec.devices[1].attributes["x"].bool', "boolean"),
        (device(attributes={"x": {"string": 1}}), 'spec.devices[1].attributes["x"].string', "str"),
        (device(attributes={"x": {"version": []}}), 'spec.devices[1].attributes["x"].version', ""),
        (device(attributes={"x": {"ints": [""]}}), 'spec.devices[1].attributes["x"].ints[0]', ""),
        (
            device(attributes={"x": {"int": 1, "string": 2}}),
            'spec.devices[1].attributes["x"].string',
            "string",
        ),
        (device(attributes={1: {"int": 1}}), "spec.devices[1].attributes[a number]", "a string"),
        (device(capacity={"m": "1Gi"}), 'spec.devices[1].capacity["m"]', "must be an object"),
        (device(capacity={"m": {"value": "1Xi"}}), 'spec.devices[1].capacity["m"].value', "suffix"),
        (device(capacity={"m": {"value": True}}), 'spec.devices[1].capacity["m"].value', "boolean"),
        (
            device(capacity={"m": {"value": "1", "requestPolicy": {"validValues": ["1", {}]}}}),
            'spec.devices[1].capacity["m"].requestPolicy.validValues[1]',
            "quantity",
        ),
        (
            device(capacity={"m": {"value": "1", "requestPolicy": {"validRange": {"step": []}}}}),
            'spec.devices[1].capacity["m"].requestPolicy.validRange.step',
            "quantity",
        ),
        (
            device(consumesCounters=[{"counterSet": "c", "counters": {"m": {"value": "x"}}}]),
            'spec.devices[1].consumesCounters[0].counters["m"].value',
            "quantity",
        ),
        (device(name="\ud800"), "spec.devices[1].name", "surrogate"),
        (device(attributes={"\ud800": {}}), 'spec.devices[1].attributes["\\ud800"]', "surrogate"),
        (slice_of({"devices": [{"taints": []}]}, "v1beta1"), "spec.devices[0].taints", "basic"),
        (
            slice_of({"devices": [{"basic": {"capacity": {"m": {"value": "1"}}}}]}, "v1alpha3"),
            'spec.devices[0].basic.capacity["m"]',
            "must be a quantity, not an object",
        ),
        (
            claim_of({"devices": {"requests": [{"name": "r", "deviceClassName": "x"}]}}),
            "spec.devices.requests[0].deviceClassName",
            "belongs under exactly",
        ),
        (
            claim_of({"devices": {"requests": [{"exactly": {"count": 1}}]}}, version="v1beta1"),
            "spec.devices.requests[0].exactly",
            "flat",
        ),
        (
            claim_of({"devices": {"requests": [{"exactly": {"count": "1"}}]}}),
            "spec.devices.requests[0].exactly.count",
            "integer",
        ),
        (
            request_of({"firstAvailable": [{}, {"selectors": [{"cel": 1}]}]}),
            "spec.devices.requests[0].firstAvailable[1].selectors[0].cel",
            "object",
        ),
        (claim_of({}, {"allocation": []}), "status.allocation", "object"),
        (
            claim_of({}, allocated({"consumedCapacity": {"m": {}}})),
            f'{RESULT}.consumedCapacity["m"]',
            "quantity",
        ),
        (claim_of({}, {"reservedFor": [{"uid": 1}]}), "status.reservedFor[0].uid", "string"),
    ],
)  # fmt: skip
def test_wrong_shapes_are_refused_with_their_path(obj: Any, path: str, problem: str) -> None:
    """The error names kind, object and field, and says what is wrong."""
    error = refusal(obj)
    assert error.kind == obj["kind"]
    assert error.name in ("s", "ns/c")
    assert error.path == path
    assert problem in error.problem


@pytest.mark.parametrize(
    ("obj", "kind", "path"),
    [
        (None, "object", ""),
        ([], "object", ""),
        ("text", "object", ""),
        ({}, "object", "kind"),
        ({"kind": "Pod"}, "object", "apiVersion"),
        ({"kind": 1, "apiVersion": "v1"}, "object", "kind"),
        ({"kind": "Pod", "apiVersion": "v2"}, "object", "kind"),
        ({"kind": "Pod", "apiVersion": "resource.k8s.io/v1"}, "object", "kind"),
        ({"kind": "DeviceTaintRule", "apiVersion": "resource.k8s.io/v1beta1"}, "object", "kind"),
        ({"kind": "Node", "apiVersion": "v1", "metadata": []}, "Node", "metadata"),
        ({"kind": "Node", "apiVersion": "v1", "metadata": {"labels": {"a": 1}}}, "Node",
         'metadata.labels["a"]'),
        ({"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"resources": {
            "limits": {"x/y": "1.2.3"}}}]}}, "Pod", 'spec.containers[0].resources.limits["x/y"]'),
    ],
)  # fmt: skip
def test_objects_without_identity(obj: Any, kind: str, path: str) -> None:
    """What is no object, or of no known kind, is malformed at that field."""
    error = refusal(obj)
    assert (error.kind, error.path) == (kind, path)


@pytest.mark.parametrize("field", ["deviceClassName", "selectors", "zones", "a b"])
@pytest.mark.parametrize("version", ["v1", "v1alpha3"])
def test_unknown_selector_fields_of_taint_rules(field: str, version: str) -> None:
    """Ignoring a field that narrows a taint rule would taint everything: refused."""
    rule = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": {"driver": "d", field: "x"}, "taint": {"key": "k"}},
    }
    expected = f"spec.deviceSelector.{field}" if " " not in field else 'spec.deviceSelector["a b"]'
    assert refusal(rule).path == expected
    rule["spec"]["deviceSelector"][field] = None  # type: ignore[index]
    wire.decode(rule)


@pytest.mark.parametrize("depth", [250, 5_000])
def test_deep_parameters_are_refused_without_recursion(depth: int) -> None:
    """Parameters nested too deeply for Python's tools are a malformed field, no crash."""
    deep: Any = 1
    for _ in range(depth):
        deep = [deep]
    obj = claim_of(
        {"devices": {"config": [{"opaque": {"driver": "d", "parameters": {"a": deep}}}]}}
    )
    with pytest.raises(MalformedObjectError) as caught:
        wire.decode(obj)
    assert caught.value.path == "spec.devices.config[0].opaque.parameters"


def test_multiplying_aliases_are_refused_in_time() -> None:
    """YAML aliases can say a billion values in ten lines; that is no hang."""
    bomb: Any = "x"
    for _ in range(60):
        bomb = [bomb, bomb]
    obj = claim_of({"devices": {"config": [{"opaque": {"driver": "d", "parameters": bomb}}]}})
    with pytest.raises(MalformedObjectError) as caught:
        wire.decode(obj)
    assert caught.value.path == "spec.devices.config[0].opaque.parameters"


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 10**5000, "\udfff", b"x", {1: 2}, {"a": {1, 2}}, object()],
    ids=range(8),
)
def test_parameters_that_json_cannot_express(value: Any) -> None:
    """What could not be written again is refused when it is read."""
    obj = claim_of({"devices": {"config": [{"opaque": {"driver": "d", "parameters": [value]}}]}})
    with pytest.raises(MalformedObjectError) as caught:
        wire.decode(obj)
    assert caught.value.path == "spec.devices.config[0].opaque.parameters"
    assert "object at 0x" not in str(caught.value)


def test_parameters_are_not_repeated_in_errors() -> None:
    """Parameters of a driver may be secret."""
    opaque = {"driver": "d", "parameters": {"password": "hunter2\ud800"}}
    error = refusal(claim_of({"devices": {"config": [{"opaque": opaque}]}}))
    assert "hunter2" not in str(error)


def test_errors_stay_short() -> None:
    """Names and keys of any length are cut."""
    obj = slice_of({"devices": [{"attributes": {"k" * 100_000: 1}}]})
    obj["metadata"]["name"] = "n" * 100_000
    assert len(str(refusal(obj))) < 500


def test_ten_thousand_devices() -> None:
    """A slice with 10,000 devices decodes; a fault in the last names it."""
    devices: list[Any] = [{"name": f"d{i}", "attributes": {"i": {"int": i}}} for i in range(10_000)]
    decoded = wire.decode_resource_slice(slice_of({"devices": devices}))
    assert len(decoded.devices) == 10_000
    devices[-1]["attributes"]["i"]["int"] = None
    wire.decode(slice_of({"devices": devices}))
    devices[-1]["attributes"]["i"]["int"] = "x"
    assert refusal(slice_of({"devices": devices})).path == 'spec.devices[9999].attributes["i"].int'


@pytest.mark.parametrize("member", ["int", "bool", "string", "version"])
@pytest.mark.parametrize("wrong", [1, True, 1.0, "1", 0, False, [], {}, 2**63])
def test_memory_does_not_let_wrong_types_through(member: str, wrong: Any) -> None:
    """A value that equals one seen before is still of the wrong type: 1 == True == 1.0."""
    right = {"int": (int,), "bool": (bool,), "string": (str,), "version": (str,)}[member]
    decoder = wire.Decoder()
    for seen in ("int", 1), ("int", 0), ("bool", True), ("bool", False), ("string", "1"):
        decoder.resource_slice(device(attributes={"x": {seen[0]: seen[1]}}))
    damaged = device(attributes={"x": {member: wrong}})
    if type(wrong) in right and wrong != 2**63:
        value = decoder.resource_slice(damaged).devices[1].attributes["x"]
        assert value == (member, wrong)
        assert type(value[1]) is type(wrong)
    else:
        with pytest.raises(MalformedObjectError, match=member):
            decoder.resource_slice(damaged)


# --- any damage --------------------------------------------------------------------------


class Odd(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __iter__(self) -> Any:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": [value]}
    return value


WRONG = st.one_of(
    st.sampled_from(
        [
            None, True, False, 0, -1, 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, 1.0, 1.5, -0.0,
            float("nan"), float("inf"), "", "x", "\0", "\ud800", "a\udfffb", "1Gi", "1e999999999",
            "9" * 5_000, [], {}, [None], [[]], [{}], ["a"], {"a": None}, {"int": 1}, {"": {}},
            {"\ud800": 1}, {1: 2}, b"bytes", object(), {1, 2}, (), ("a",), deep(50), deep(150),
            MappingProxyType({"value": "1"}), Odd({"name": "odd"}), Odd({}),
        ]
    ),
    strategies.free_json,
)  # fmt: skip
"""Replacements for a value: every JSON type, its extremes, and what is no JSON at all."""


def samples() -> list[Any]:
    """Valid objects of every kind and version."""
    found = [obj for obj in PUBLISHED if obj["metadata"]["name"] != MIXED_SHAPE]
    for case in load_conformance("allocation")[::100]:
        found += [*case["classes"], *case["slices"], *case["claims"], case["node"]]
        for claim, result in zip(case["claims"], case["expect"].get("results", ()), strict=False):
            found.append(claim | {"status": {"allocation": result}})
    claim = next(obj for obj in found if obj["kind"] == "ResourceClaim")
    reference = {"name": "gpu", "source": {"resourceClaimName": "c"}}
    container = {"name": "main", "resources": {"requests": {"x/gpu": "1"}, "claims": [{}]}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "ownerReferences": [{"uid": "u", "controller": True}]},
        "spec": {
            "resourceClaims": [reference, {"name": "b", "resourceClaimTemplateName": "t"}],
            "schedulingGroup": {"podGroupName": "g"},
            "containers": [container],
        },
        "status": {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "b-1"}]},
    }
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "spec": pod["spec"]}
    return [*found, claim, pod, group]


SAMPLES = samples()

TOKEN = re.compile(r'\.?([A-Za-z_]\w*)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\[(a [a-z]+)\]')


def tokens(path: str) -> list[str]:
    """The pieces of an error's path, as text."""
    found = list(TOKEN.finditer(path))
    assert "".join(match.group(0) for match in found) == path
    return ["".join(group or "" for group in match.groups()) for match in found]


def snapshot(value: Any) -> str:
    """Everything that may change in an input, as text (NaN is not equal to itself)."""
    return repr(value)


@given(st.data())
def test_any_damage_is_a_clear_error_or_no_damage(data: st.DataObject) -> None:
    """A value replaced by any other: decoding works, or names the value's place."""
    original = data.draw(st.sampled_from(SAMPLES))
    place = data.draw(st.sampled_from(list(strategies.places(original))))
    damaged = strategies.replaced(original, place, data.draw(WRONG))
    check_damaged(damaged, [str(step) for step in place])


@given(st.data())
def test_any_missing_value_is_fine(data: st.DataObject) -> None:
    """Decoding checks types only: what is absent is absent, and null equals absent."""
    original = data.draw(st.sampled_from(SAMPLES))
    candidates = [
        place
        for place in strategies.places(original)
        if place and isinstance(place[-1], str) and place[0] not in ("apiVersion", "kind")
    ]
    place = data.draw(st.sampled_from(candidates))
    missing = wire.decode(strategies.without(original, place))
    null = wire.decode(strategies.replaced(original, place, None))
    if "parameters" not in place[:-1]:
        assert missing == null


@given(st.data())
def test_much_damage_is_a_clear_error(data: st.DataObject) -> None:
    """Several values replaced at once: the same."""
    damaged = data.draw(st.sampled_from(SAMPLES))
    for _ in range(data.draw(st.integers(2, 6))):
        place = data.draw(st.sampled_from([*strategies.places(damaged)][:300]))
        damaged = strategies.replaced(damaged, place, data.draw(WRONG))
    check_damaged(damaged, [])


def check_damaged(damaged: Any, place: list[str]) -> None:
    before = snapshot(damaged)
    try:
        decoded = wire.decode(damaged)
    except MalformedObjectError as error:
        str(error).encode("utf-8")
        # The fault is inside what was replaced, or is the replaced value itself.
        where = tokens(error.path)
        shared = min(len(where), len(place))
        if where not in (["kind"], ["apiVersion"]):
            assert where[:shared] == [step[:100] for step in place[:shared]]
        assert snapshot(damaged) == before
        return
    assert snapshot(damaged) == before
    check_decoded(decoded, damaged["apiVersion"].rpartition("/")[2])


def check_decoded(decoded: Any, version: str) -> None:
    """What was decoded can be written, printed and read again."""
    repr(decoded).encode("utf-8", "strict")
    try:
        written = wire.encode(decoded, version)
    except NotExpressibleError as error:
        str(error).encode("utf-8")
        return
    text = json.dumps(written, ensure_ascii=False, allow_nan=False)
    assert wire.decode(json.loads(text.encode("utf-8"))) == decoded
