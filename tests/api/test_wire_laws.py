"""Laws of decoding and encoding, for any object: nothing lost, nothing changed."""

import copy
import json
from typing import Any

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dra_core.api import wire
from dra_core.api.core import PodGroup
from dra_core.api.objects import (
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from dra_core.errors import NotExpressibleError
from support import wire_objects as strategies

BETA_AND_LATER = ["v1", "v1beta2", "v1beta1"]


def text(obj: Any) -> str:
    """JSON with its types and the spelling of quantities: equal is the same."""
    return json.dumps(wire.encode(obj), sort_keys=True)


def has_empty_exactly(obj: Any) -> bool:
    """Whether a request has an ``exactly`` with nothing in it."""
    claim = getattr(obj, "devices", None)
    requests = claim.requests if isinstance(claim, DeviceClaim) else ()
    return any(request.exactly == ExactDeviceRequest() for request in requests)


def check_round_trip(obj: Any, version: str) -> None:
    """decode(encode(obj)) is obj, down to the text of quantities; or it is refused."""
    if version in ("v1beta1", "v1alpha3") and has_empty_exactly(obj):
        with pytest.raises(NotExpressibleError, match=r"\.exactly"):
            wire.encode(obj, version)
        return
    encoded = wire.encode(obj, version)
    as_read = json.loads(json.dumps(encoded))
    assert as_read == encoded
    decoded = wire.decode(as_read)
    assert decoded == obj
    assert wire.encode(decoded, version) == encoded
    assert decoded.raw is as_read


@given(strategies.of_group(alpha=False), st.sampled_from(BETA_AND_LATER))
def test_decode_after_encode_is_identity(obj: Any, version: str) -> None:
    """decode then encode keeps every field, in every version, or says what it cannot keep."""
    check_round_trip(obj, version)


@given(strategies.of_group(alpha=True))
def test_decode_after_encode_is_identity_in_v1alpha3(obj: Any) -> None:
    """The same with what only v1alpha3 has."""
    check_round_trip(obj, "v1alpha3")


@given(strategies.device_taint_rules, st.sampled_from(["v1", "v1beta2", "v1alpha3"]))
def test_taint_rules_survive(rule: Any, version: str) -> None:
    """Taint rules have one shape in the three versions that serve them."""
    check_round_trip(rule, version)


@given(st.one_of(strategies.nodes, strategies.pods, strategies.pod_groups))
def test_core_objects_survive(obj: Any) -> None:
    """What is read of pods, nodes and pod groups is written."""
    check_round_trip(obj, "v1alpha2" if isinstance(obj, PodGroup) else "v1")


@given(strategies.allocation_results(), st.sampled_from(BETA_AND_LATER))
def test_allocation_results_survive(result: Any, version: str) -> None:
    """encode_allocation_result is the inverse of decode_allocation_result."""
    encoded = wire.encode_allocation_result(result, version)
    assert wire.decode_allocation_result(json.loads(json.dumps(encoded)), version) == result


@given(strategies.of_group(alpha=False))
def test_bug_90_v1_through_v1beta1_is_identity_or_an_error(obj: Any) -> None:
    """v1 → v1beta1 → v1 loses no field (k/k#137240)."""
    if has_empty_exactly(obj):
        return
    older = wire.encode(obj, "v1beta1")
    assert wire.encode(wire.decode(older), "v1") == wire.encode(obj, "v1")


def test_bug_90_the_fields_that_were_dropped() -> None:
    """bindsToNode, binding conditions, shared devices and capacity requests go both ways."""
    device = {
        "name": "d",
        "bindsToNode": True,
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["broken"],
        "allowMultipleAllocations": True,
    }
    spec = {"driver": "d.example.com", "pool": {"name": "p", "generation": 1}, "devices": [device]}
    decoded = wire.decode_resource_slice({"metadata": {"name": "s"}, "spec": spec})
    older = wire.encode(decoded, "v1beta1")
    assert older["spec"]["devices"][0].pop("name") == "d"
    assert older["spec"]["devices"] == [{"basic": {k: v for k, v in device.items() if k != "name"}}]

    request = {"name": "r", "exactly": {"capacity": {"requests": {"memory": "1Gi"}}}}
    claim = wire.decode_resource_claim({"spec": {"devices": {"requests": [request]}}})
    assert wire.encode(claim, "v1beta1")["spec"]["devices"]["requests"] == [
        {"name": "r", "capacity": {"requests": {"memory": "1Gi"}}}
    ]


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"controller": "c"}, "spec.controller"),
        ({"deallocation_requested": True}, "status.deallocationRequested"),
    ],
)
def test_what_only_v1alpha3_had(change: Any, path: str, version: str) -> None:
    """spec.controller and status.deallocationRequested exist in v1alpha3 only."""
    claim = attrs.evolve(wire.decode_resource_claim({"metadata": {"name": "c"}}), **change)
    with pytest.raises(NotExpressibleError) as caught:
        wire.encode(claim, version)
    error = caught.value
    assert (error.kind, error.name, error.path, error.version) == (
        "ResourceClaim",
        "c",
        path,
        version,
    )
    assert version in str(error)
    assert path in str(error)
    assert wire.decode(wire.encode(claim, "v1alpha3")) == claim


def test_request_policies_do_not_fit_into_v1alpha3() -> None:
    """v1alpha3 has plain quantities as capacities; a policy is refused with its path."""
    capacity = {"mem": {"value": "1", "requestPolicy": {"default": "1"}}}
    devices = [{"name": "a"}, {"name": "b", "capacity": capacity}]
    decoded = wire.decode_resource_slice({"spec": {"devices": devices}})
    with pytest.raises(NotExpressibleError) as caught:
        wire.encode(decoded, "v1alpha3")
    assert caught.value.path == 'spec.devices[1].basic.capacity["mem"]'


def test_an_empty_request_does_not_fit_into_v1beta1() -> None:
    """Flat requests cannot tell an empty ``exactly`` from an absent one."""
    claim = wire.decode_resource_claim(
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {}}]}}}
    )
    with pytest.raises(NotExpressibleError) as caught:
        wire.encode(claim, "v1beta1")
    assert caught.value.path == "spec.devices.requests[0].exactly"


def test_v1beta1_has_no_taint_rules() -> None:
    """A kind that a version does not serve is refused, not written."""
    rule = wire.decode_device_taint_rule({"metadata": {"name": "t"}})
    with pytest.raises(NotExpressibleError):
        wire.encode(rule, "v1beta1")


@pytest.mark.parametrize("version", ["v2", "", "resource.k8s.io/v1"])
def test_unknown_versions_are_the_callers_mistake(version: str) -> None:
    """A version that does not exist is a ValueError that lists those that do."""
    claim = wire.decode_resource_claim({})
    for call in (
        lambda: wire.encode(claim, version),
        lambda: wire.decode_resource_claim({}, version),
        lambda: wire.encode(wire.decode_node({}), version),
    ):
        with pytest.raises(ValueError, match="known: v1"):
            call()


# --- whole objects -----------------------------------------------------------------------

unknown_fields = st.sampled_from(["future", "other"])


@st.composite
def decorated(draw: st.DrawFn, obj: Any, version: str) -> Any:
    """The JSON of an object with fields in it that nobody here knows."""
    document = json.loads(json.dumps(wire.encode(obj, version)))
    where = [
        place
        for place in strategies.places(document)
        if isinstance(value_at(document, place), dict) and is_schema(place)
    ]
    for place in draw(st.lists(st.sampled_from(where), max_size=4)):
        extra = {draw(unknown_fields): draw(strategies.free_json)}
        document = strategies.replaced(document, place, value_at(document, place) | extra)
    return document


def value_at(document: Any, place: strategies.Place) -> Any:
    for step in place:
        document = document[step]
    return document


FREE = {"parameters", "data", "networkData"}
MAPS = {"labels", "annotations", "attributes", "capacity", "counters", "consumedCapacity"}


def is_schema(place: strategies.Place) -> bool:
    """Whether the object at this place has members that the API names."""
    return not (FREE & set(place) or (place and place[-1] in MAPS | {"requests"}))


@given(st.data())
def test_unchanged_objects_are_written_as_they_came(data: st.DataObject) -> None:
    """encode_whole after decode gives the very same JSON, unknown fields and all."""
    version = data.draw(st.sampled_from(["v1", "v1beta1", "v1alpha3"]))
    obj = data.draw(strategies.of_group(alpha=version == "v1alpha3"))
    assume(version == "v1" or not has_empty_exactly(obj))
    raw = data.draw(decorated(obj, version))
    before = copy.deepcopy(raw)
    decoded = wire.decode(raw)
    assert wire.encode_whole(decoded) == raw == before
    assert decoded == obj


@given(st.data())
def test_changed_objects_keep_unknown_fields(data: st.DataObject) -> None:
    """Whatever changes, encode_whole means the new object, and top-level extras stay."""
    old = data.draw(strategies.resource_claims())
    raw = data.draw(decorated(old, "v1")) | {"extra": {"kept": True}}
    before = copy.deepcopy(raw)
    new = attrs.evolve(data.draw(strategies.resource_claims()), raw=raw)
    written = wire.encode_whole(new)
    assert wire.decode(json.loads(json.dumps(written))) == new
    assert text(wire.decode(written)) == text(new)
    assert written["extra"] == {"kept": True}
    assert raw == before


def test_whole_objects_keep_what_is_next_to_a_change() -> None:
    """Entries of lists keep their unknown fields when another field of them changes."""
    raw = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s", "managedFields": [{"manager": "m"}], "labels": None},
        "spec": {
            "driver": "d",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1, "new": 1},
            "devices": [
                {"name": "a", "new": "a", "basic": {"capacity": {"m": {"value": "1024Mi"}}}},
                {"name": "b", "new": "b", "basic": {"allNodes": False, "more": [1]}},
                {"name": "c", "new": "c"},
            ],
        },
    }
    before = copy.deepcopy(raw)
    old = wire.decode(raw)
    assert isinstance(old, ResourceSlice)
    a, b, c = old.devices
    new = attrs.evolve(old, generation=2, devices=(c, attrs.evolve(b, node_name="n"), a))
    written = wire.encode_whole(new)
    assert raw == before
    assert written["metadata"] == raw["metadata"]
    assert written["spec"] == {
        "driver": "d",
        "pool": {"name": "p", "generation": 2, "resourceSliceCount": 1, "new": 1},
        "devices": [
            {"name": "c", "new": "c"},
            {"name": "b", "new": "b", "basic": {"allNodes": False, "more": [1], "nodeName": "n"}},
            {"name": "a", "new": "a", "basic": {"capacity": {"m": {"value": "1024Mi"}}}},
        ],
    }


def test_whole_claims_of_a_list_get_their_kind() -> None:
    """Objects that came without apiVersion and kind are written with both."""
    claim = wire.decode_resource_claim({"metadata": {"name": "c"}, "x": 1}, "v1beta2")
    written = wire.encode_whole(claim, "v1beta2")
    assert written == {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "x": 1,
    }


def test_a_changed_type_is_a_change() -> None:
    """1 and true are different JSON, though equal in Python: a driver sees the difference."""
    config = [{"opaque": {"driver": "d", "parameters": {"on": [1, 2]}}}]
    raw = {"spec": {"devices": {"config": config}}}
    old = wire.decode_resource_claim(raw)
    entry = old.devices.config[0]
    assert entry.opaque is not None
    opaque = attrs.evolve(entry.opaque, parameters={"on": [True, 2]})
    new = attrs.evolve(
        old, devices=attrs.evolve(old.devices, config=(attrs.evolve(entry, opaque=opaque),))
    )
    written = wire.encode_whole(new)["spec"]["devices"]["config"][0]["opaque"]["parameters"]
    assert json.dumps(written) == '{"on": [true, 2]}'


def test_objects_without_raw_are_encoded_as_they_are() -> None:
    """encode_whole of an object made by hand is encode of it."""
    claim = ResourceClaim()
    assert wire.encode_whole(claim, "v1beta1") == wire.encode(claim, "v1beta1")
    assert wire.encode_whole(claim) == wire.encode(claim)


def test_encoding_shares_nothing_with_the_object() -> None:
    """Changing the JSON that was written does not reach into the object."""
    raw = {"spec": {"config": [{"opaque": {"driver": "d", "parameters": {"a": [1]}}}]}}
    decoded = wire.decode_device_class(raw)
    for written in (wire.encode(decoded), wire.encode_whole(decoded)):
        written["spec"]["config"][0]["opaque"]["parameters"]["a"].append(2)
    assert raw == {"spec": {"config": [{"opaque": {"driver": "d", "parameters": {"a": [1]}}}]}}


def test_selectors_without_cel_and_requests_with_nothing() -> None:
    """A kind of selector that is not known here stays one; so does a request without content."""
    request = {"name": "r", "exactly": {"selectors": [{"future": {}}, {"cel": {"expression": ""}}]}}
    raw = {"spec": {"devices": {"requests": [request, {"name": "s"}]}}}
    requests = wire.decode_resource_claim(raw).devices.requests
    assert requests[0].exactly is not None
    assert requests[0].exactly.selectors == (DeviceSelector(None), DeviceSelector(""))
    assert requests[1] == DeviceRequest("s")
