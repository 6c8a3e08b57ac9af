"""What decoding makes of the JSON of each version: fields, defaults, older forms."""

import json
from types import MappingProxyType
from typing import Any

import attrs
import pytest

from dra_core.api import wire
from dra_core.api.core import NodeSelector, NodeSelectorTerm, PodResourceClaim
from dra_core.api.objects import (
    AttributeValue,
    CapacityRequirements,
    Device,
    DeviceTaintSelector,
    ExactDeviceRequest,
)
from dra_core.values.quantity import Quantity


def slice_with(*devices: Any, version: str = "v1") -> tuple[Device, ...]:
    return wire.decode_resource_slice({"spec": {"devices": list(devices)}}, version).devices


def attribute(value: Any) -> AttributeValue | None:
    (device,) = slice_with({"name": "d", "attributes": {"x": value}})
    return device.attributes.get("x")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"int": 1}, ("int", 1)),
        ({"bool": False}, ("bool", False)),
        ({"string": ""}, ("string", "")),
        ({"version": "1.0.0+b"}, ("version", "1.0.0+b")),
        ({"ints": [1, 2]}, ("ints", (1, 2))),
        ({"bools": []}, ("bools", ())),
        ({"strings": ["a"]}, ("strings", ("a",))),
        ({"versions": ["1.0.0"]}, ("versions", ("1.0.0",))),
        ({}, ("", None)),
        ({"int": None}, ("", None)),
        ({"future": 1}, ("", None)),
        ({"string": "s", "int": 1, "bools": [True]}, ("int", 1)),
        ({"version": "v", "bool": True}, ("bool", True)),
        ({"int": None, "strings": ["a"], "versions": ["b"]}, ("strings", ("a",))),
        ({"ints": [1], "version": "v"}, ("version", "v")),
        (None, None),
    ],
)
def test_attribute_values(value: Any, expected: Any) -> None:
    """The first member set counts: int, bool, string, version, then the lists; none: no kind."""
    assert attribute(value) == expected


def test_devices_with_and_without_rare_fields_are_alike() -> None:
    """The short way of decoding plain devices gives what the constructor gives."""
    plain, full = slice_with(
        {"name": "d", "attributes": {"x": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}},
        {
            "name": "d",
            "attributes": {"x": {"int": 1}},
            "capacity": {"m": {"value": "1Gi"}},
            "allNodes": None,
        },
    )
    made = Device("d", full.attributes, full.capacity)
    assert plain == full == made
    assert repr(plain) == repr(made)
    assert hash(plain.name) == hash(made.name)
    assert type(plain) is Device
    for field in attrs.fields(Device):
        assert type(getattr(plain, field.name)) is type(getattr(made, field.name))
    assert attrs.evolve(plain, name="e") == attrs.evolve(made, name="e")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        plain.name = "e"  # type: ignore[misc]


def test_amounts() -> None:
    """Quantities may be numbers; an absent amount is zero, as the API server has it."""
    (device,) = slice_with(
        {
            "capacity": {"a": {"value": 3}, "b": {}, "c": {"value": 1.5}, "d": None},
            "consumesCounters": [{"counterSet": "s", "counters": {"x": {"value": "2"}, "y": {}}}],
        }
    )
    amounts = {name: str(capacity.value) for name, capacity in device.capacity.items()}
    assert amounts == {"a": "3", "b": "0", "c": "1500m"}
    assert device.consumes_counters[0].counters == {"x": Quantity.parse("2"), "y": Quantity(0)}


def test_equal_values_of_one_load_are_one_object() -> None:
    """A decoder builds equal attributes, amounts and capacity maps once."""
    decoder = wire.Decoder()
    raw = {
        "spec": {
            "devices": [
                {
                    "name": name,
                    "attributes": {"s": {"string": "x"}, "i": {"int": 7}, "b": {"bool": True}},
                    "capacity": {"m": {"value": "1Gi"}},
                }
                for name in ("a", "b")
            ]
        }
    }
    first = decoder.resource_slice(raw).devices
    second = decoder.resource_slice(json.loads(json.dumps(raw))).devices
    assert first == second
    for name in ("s", "i", "b"):
        assert len({id(device.attributes[name]) for device in first + second}) == 1
    assert len({id(device.capacity) for device in first + second}) == 1


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
def test_devices_under_basic(version: str) -> None:
    """Until v1beta1 a device's fields sit under basic; without it a device has none."""
    memory: Any = "1Gi" if version == "v1alpha3" else {"value": "1Gi"}
    basic = {"capacity": {"m": memory}, "nodeName": "n", "allowMultipleAllocations": True}
    first, second = slice_with({"name": "a", "basic": basic}, {"name": "b"}, version=version)
    assert str(first.capacity["m"].value) == "1Gi"
    assert first.node_name == "n"
    assert first.allow_multiple_allocations
    assert second == Device("b")


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
def test_flat_requests(version: str) -> None:
    """Until v1beta1 exactly exists if one of its fields is set in the request."""
    requests = [
        {"name": "a", "deviceClassName": "c", "count": 2},
        {"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]},
        {"name": "c"},
        {"name": "d", "capacity": {}},
        {"name": "e", "adminAccess": False},
        {"name": "f", "count": None},
    ]
    claim = wire.decode_resource_claim({"spec": {"devices": {"requests": requests}}}, version)
    a, b, c, d, e, f = claim.devices.requests
    assert a.exactly == ExactDeviceRequest("c", count=2)
    assert b.exactly is None
    assert [sub.device_class_name for sub in b.first_available] == ["c"]
    assert c.exactly is None
    assert d.exactly == ExactDeviceRequest(capacity=CapacityRequirements())
    assert e.exactly == ExactDeviceRequest(admin_access=False)
    assert f.exactly is None


def test_what_only_v1alpha3_has() -> None:
    """suitableNodes, controllers and deallocationRequested are read in v1alpha3 only."""
    selector: Any = {"nodeSelectorTerms": [{}]}
    device_class = {"spec": {"suitableNodes": selector}}
    expected = NodeSelector((NodeSelectorTerm(),))
    assert wire.decode_device_class(device_class, "v1alpha3").suitable_nodes == expected
    assert wire.decode_device_class(device_class).suitable_nodes is None
    claim = {
        "spec": {"controller": "c"},
        "status": {"deallocationRequested": True, "allocation": {"controller": "d"}},
    }
    old = wire.decode_resource_claim(claim, "v1alpha3")
    assert old.allocation is not None
    assert (old.controller, old.allocation.controller) == ("c", "d")
    assert old.deallocation_requested
    new = wire.decode_resource_claim(claim)
    assert new.allocation is not None
    assert (new.controller, new.allocation.controller) == ("", "")
    assert not new.deallocation_requested
    template = wire.decode_resource_claim_template(
        {"spec": {"spec": {"controller": "c"}, "metadata": {"labels": {"a": "b"}}}}, "v1alpha3"
    )
    assert template.controller == "c"
    assert template.claim_metadata.labels == {"a": "b"}


def test_objects_may_be_empty() -> None:
    """Decoding checks types, not what the API demands: every field may be absent."""
    kinds = ["ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"]
    for kind in [*kinds, "DeviceTaintRule"]:
        obj = wire.decode({"apiVersion": "resource.k8s.io/v1", "kind": kind})
        assert obj == type(obj)()
        assert obj == wire.decode(wire.encode(obj))
    assert wire.decode({"apiVersion": "v1", "kind": "Node"}) == wire.decode_node({})
    assert wire.decode({"apiVersion": "v1", "kind": "Pod"}) == wire.decode_pod({})


def test_empty_and_absent_where_they_differ() -> None:
    """A taint rule's selector, a claim's consumed capacity and count 0 are not absent."""
    rule: Any = {"spec": {"deviceSelector": {}}}
    assert wire.decode_device_taint_rule(rule).device_selector == DeviceTaintSelector()
    assert wire.decode_device_taint_rule({}).device_selector is None
    result: Any = {"devices": {"results": [{"consumedCapacity": {}}, {}]}}
    first, second = wire.decode_allocation_result(result).results
    assert (first.consumed_capacity, second.consumed_capacity) == ({}, None)
    request = {"exactly": {"count": 0, "adminAccess": False}}
    claim = wire.decode_resource_claim({"spec": {"devices": {"requests": [request]}}})
    assert claim.devices.requests[0].exactly == ExactDeviceRequest(count=0, admin_access=False)


def test_the_older_source_of_pod_claims() -> None:
    """Until 1.30 references sat under source; they count where the newer fields are absent."""
    claims = [
        {"name": "a", "source": {"resourceClaimName": "x"}},
        {"name": "b", "source": {"resourceClaimTemplateName": "t"}},
        {"name": "c", "resourceClaimName": "new", "source": {"resourceClaimTemplateName": "old"}},
        {"name": "d", "source": None},
        {"name": "e"},
    ]
    pod = wire.decode_pod({"spec": {"resourceClaims": claims}})
    assert pod.resource_claims == (
        PodResourceClaim("a", "x", None),
        PodResourceClaim("b", None, "t"),
        PodResourceClaim("c", "new", None),
        PodResourceClaim("d"),
        PodResourceClaim("e"),
    )


def test_pods_and_nodes() -> None:
    """The fields that scheduling reads of pods, nodes and pod groups."""
    pod = wire.decode_pod(
        {
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
            "spec": {
                "nodeName": "n",
                "schedulerName": "s",
                "schedulingGroup": {"podGroupName": "g"},
                "containers": [
                    {"name": "c", "resources": {"limits": {"x/gpu": 1}, "requests": {"cpu": "5m"}}}
                ],
                "initContainers": [{"name": "i", "restartPolicy": "Always"}],
            },
            "status": {
                "phase": "Succeeded",
                "resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}, {"name": "c"}],
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "e",
                    "requestMappings": [
                        {"containerName": "c", "resourceName": "x/gpu", "requestName": "r"}
                    ],
                },
            },
        }
    )
    assert (pod.node_name, pod.scheduler_name, pod.pod_group_name) == ("n", "s", "g")
    assert {k: str(v) for k, v in pod.containers[0].limits.items()} == {"x/gpu": "1"}
    assert {k: str(v) for k, v in pod.containers[0].requests.items()} == {"cpu": "5m"}
    assert pod.init_containers[0].restart_policy == "Always"
    assert pod.finished
    assert [s.resource_claim_name for s in pod.resource_claim_statuses] == ["b", None]
    assert pod.extended_resource_claim_status is not None
    assert pod.extended_resource_claim_status.request_mappings[0].request_name == "r"

    status = {"declaredFeatures": ["F"], "allocatable": {"cpu": "4"}}
    node = wire.decode_node({"metadata": {"name": "n", "labels": {"a": "b"}}, "status": status})
    assert (node.name, node.labels, node.declared_features) == ("n", {"a": "b"}, ("F",))
    assert node.allocatable == {"cpu": Quantity.parse("4")}

    group = wire.decode_pod_group({"spec": {"resourceClaims": [{"resourceClaimName": "x"}]}})
    assert group.resource_claims == (PodResourceClaim("", "x"),)


def test_any_mapping_will_do() -> None:
    """Objects may be mappings that are no dicts, and lists tuples."""
    frozen = MappingProxyType
    device = frozen({"name": "d", "attributes": frozen({"x": frozen({"string": "y"})})})
    pool = frozen({"name": "p", "generation": 1})
    raw = frozen({"spec": frozen({"driver": "d", "pool": pool, "devices": (device,)})})
    decoded = wire.decode_resource_slice(raw)
    assert decoded.devices[0].attributes == {"x": ("string", "y")}
    assert decoded.raw is raw
    assert wire.encode_whole(decoded)["spec"] == {
        "driver": "d",
        "pool": {"name": "p", "generation": 1},
        "devices": [{"name": "d", "attributes": {"x": {"string": "y"}}}],
    }


def test_nul_is_a_character() -> None:
    """NUL is text like any other; it comes back as it was."""
    assert attribute({"string": "a\0b"}) == ("string", "a\0b")


def test_parameters_are_copied() -> None:
    """What is decoded does not change when the caller's JSON does; tuples become lists."""
    parameters: dict[str, Any] = {"a": ({"b": 1},)}
    raw = {"spec": {"config": [{"opaque": {"driver": "d", "parameters": parameters}}]}}
    decoded = wire.decode_device_class(raw)
    parameters["a"][0]["b"] = 2
    opaque = decoded.config[0].opaque
    assert opaque is not None
    assert opaque.parameters == {"a": [{"b": 1}]}
