"""Reading and writing the kinds of v1alpha2."""

import copy
import json
import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.core import NodeSelector
from dra_core.api.wire import iter_objects
from dra_core.errors import MalformedObjectError, NotExpressibleError
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.objects import (
    Attribute,
    ResourceClaimParameters,
    ResourceClass,
    ResourceSlice,
)
from dra_core.values.quantity import Quantity
from support import named_json as objects

Json = dict[str, Any]

WHOLE = objects.one_of_each()
"""An object of every kind with every field set."""


@pytest.mark.parametrize("obj", WHOLE, ids=lambda obj: obj["kind"])
def test_every_field_is_read_and_written(obj: Json) -> None:
    """Decoding and encoding an object with every field gives the object again."""
    before = copy.deepcopy(obj)
    decoded = wire.decode(obj)
    assert wire.encode(decoded) == obj
    assert wire.encode_whole(decoded) == obj
    assert decoded.raw is obj
    assert obj == before


@pytest.mark.parametrize("obj", WHOLE, ids=lambda obj: obj["kind"])
def test_values_pickle_and_compare(obj: Json) -> None:
    """Objects are values: equal to a copy, the raw JSON left out of it, and they pickle."""
    decoded = wire.decode(obj)
    assert pickle.loads(pickle.dumps(decoded)) == decoded
    assert attrs.evolve(decoded, raw=None) == decoded


def test_attributes_keep_their_types() -> None:
    """A slice has no spec, and its attributes have seven types."""
    decoded = wire.decode(objects.slice_json("s", "node", "driver", [objects.instance_json("a")]))
    assert isinstance(decoded, ResourceSlice)
    assert decoded.instances is not None
    assert decoded.instances[0].attributes == (
        Attribute("memory", quantity_value=Quantity.parse("40Gi")),
        Attribute("ecc", bool_value=True),
        Attribute("cores", int_value=7),
        Attribute("links", int_slice_value=(1, 2)),
        Attribute("model", string_value="a100"),
        Attribute("modes", string_slice_value=("mig", "full")),
        Attribute("driver", version_value="1.2.3"),
    )


def test_absent_is_not_empty_where_it_matters() -> None:
    """A slice, filter, request or result of another model is told from an empty one."""
    empty = wire.decode_resource_slice({"namedResources": {"instances": []}})
    other = wire.decode_resource_slice({"otherModel": {"instances": [{"name": "a"}]}})
    assert (empty.instances, other.instances) == ((), None)
    parameters = wire.decode_claim_parameters(
        {"driverRequests": [{"requests": [{}, {"namedResources": {"selector": ""}}]}]}
    )
    assert [r.selector for r in parameters.driver_requests[0].requests] == [None, ""]


def test_null_equals_absent() -> None:
    """Null members are as if they were not there."""
    fields = ("parametersRef", "suitableNodes", "structuredParameters", "driverName")
    nulls = wire.decode_resource_class(dict.fromkeys(fields))
    assert nulls == ResourceClass()
    assert wire.decode_claim_parameters({"driverRequests": None}) == ResourceClaimParameters()


@pytest.mark.parametrize(
    ("kind", "obj", "path"),
    [
        ("ResourceSlice", {"nodeName": 1}, "nodeName"),
        ("ResourceSlice", {"namedResources": []}, "namedResources"),
        ("ResourceSlice", {"namedResources": {"instances": {}}}, "namedResources.instances"),
        (
            "ResourceSlice",
            {"namedResources": {"instances": [{"attributes": [{"name": "a", "int": "1"}]}]}},
            "namedResources.instances[0].attributes[0].int",
        ),
        (
            "ResourceSlice",
            {"namedResources": {"instances": [{"attributes": [{"quantity": "1K"}]}]}},
            "namedResources.instances[0].attributes[0].quantity",
        ),
        (
            "ResourceSlice",
            {"namedResources": {"instances": [{"attributes": [{"intSlice": {"ints": [1.5]}}]}]}},
            "namedResources.instances[0].attributes[0].intSlice.ints[0]",
        ),
        ("ResourceClass", {"structuredParameters": "yes"}, "structuredParameters"),
        ("ResourceClass", {"parametersRef": {"name": 1}}, "parametersRef.name"),
        (
            "ResourceClass",
            {"suitableNodes": {"nodeSelectorTerms": [None]}},
            "suitableNodes.nodeSelectorTerms[0]",
        ),
        ("ResourceClassParameters", {"filters": [{"driverName": 1}]}, "filters[0].driverName"),
        (
            "ResourceClaimParameters",
            {"driverRequests": [{"requests": [{"namedResources": {"selector": 1}}]}]},
            "driverRequests[0].requests[0].namedResources.selector",
        ),
        ("ResourceClaimParameters", {"shareable": 1}, "shareable"),
        ("ResourceClaim", {"spec": {"allocationMode": 1}}, "spec.allocationMode"),
        (
            "ResourceClaim",
            {"status": {"allocation": {"resourceHandles": [{"structuredData": {"results": 1}}]}}},
            "status.allocation.resourceHandles[0].structuredData.results",
        ),
        ("ResourceClaim", {"status": {"reservedFor": [1]}}, "status.reservedFor[0]"),
        ("ResourceClaimTemplate", {"spec": {"spec": 1}}, "spec.spec"),
    ],
)
def test_malformed_objects_are_refused_with_the_path(kind: str, obj: Json, path: str) -> None:
    """A malformed object is refused with its kind, its name and the path of the field."""
    whole = {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": kind,
        "metadata": {"name": "x", "namespace": "ns"},
        **obj,
    }
    with pytest.raises(MalformedObjectError) as caught:
        wire.decode(whole)
    assert (caught.value.kind, caught.value.name, caught.value.path) == (kind, "ns/x", path)


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourceClaim"},
        {"apiVersion": "resource.k8s.io/v1alpha2", "kind": "DeviceClass"},
        {"apiVersion": "resource.k8s.io/v1alpha2", "kind": "PodSchedulingContext"},
        [],
    ],
)
def test_other_kinds_are_refused(obj: Any) -> None:
    """Only the kinds of this version are decoded here."""
    with pytest.raises(MalformedObjectError):
        wire.decode(obj)


def test_lists_are_unfolded() -> None:
    """``iter_objects`` finds the objects of a list; they are told by ``is_known``."""
    document = {"kind": "List", "apiVersion": "v1", "items": WHOLE}
    found = list(iter_objects(document))
    assert all(wire.is_known(item.api_version, item.kind) for item in found)
    assert not any(item.known for item in found)
    assert [wire.encode(wire.decode(item.data)) for item in found] == WHOLE


# --- whole objects -----------------------------------------------------------------------


def test_unknown_fields_survive_a_status_change() -> None:
    """A claim written as a whole keeps what nobody here knows, beside what was changed."""
    obj = objects.claim_json("c", "gpu", driverName="d", allocation={"shareable": True})
    obj["metadata"]["managedFields"] = [{"manager": "m"}]
    obj["spec"]["newField"] = {"a": [1]}
    obj["status"]["newer"] = 5
    obj["status"]["allocation"]["resourceHandles"] = [{"driverName": "d", "novelty": 1}]
    claim = wire.decode_resource_claim(obj)
    before = copy.deepcopy(obj)
    kept = attrs.evolve(claim, deallocation_requested=True).whole("v1alpha2")
    assert kept == {**obj, "status": {**obj["status"], "deallocationRequested": True}}
    cleared = attrs.evolve(claim, allocation=None, driver_name="").whole("v1alpha2")
    assert cleared == {**obj, "status": {"newer": 5}}
    assert obj == before


def test_claims_are_not_converted() -> None:
    """A claim or template cannot be written in another version."""
    claim = wire.decode_resource_claim(objects.claim_json("c", "gpu"))
    with pytest.raises(NotExpressibleError):
        claim.whole("v1alpha3")
    template = wire.decode_resource_claim_template({})
    with pytest.raises(NotExpressibleError):
        template.spec_json("v1")
    assert attrs.evolve(template, raw=None).spec_json("v1alpha2") == {"resourceClassName": ""}


def test_results_follow_from_the_handles() -> None:
    """What a claim holds is told by its structured handles: driver, node, instance."""
    handles = [
        {"driverName": "classic", "data": "opaque"},
        {
            "driverName": "d1",
            "structuredData": {
                "nodeName": "node",
                "results": [{"namedResources": {"name": "a"}}, {"futureModel": {}}],
            },
        },
        {
            "driverName": "d2",
            "structuredData": {"results": [{"namedResources": {"name": "b"}}]},
        },
    ]
    allocation = wire.decode_allocation_result({"resourceHandles": handles})
    assert [tuple(r.device_id) for r in allocation.results] == [
        ("d1", "node", "a"),
        ("d2", "", "b"),
    ]
    assert allocation.is_structured
    moved = attrs.evolve(allocation, resource_handles=(), node_selector=NodeSelector())
    assert (moved.results, moved.is_structured) == ((), False)


def test_secrets_are_not_shown() -> None:
    """Vendor parameters and data of handles may be secret: no text of an object has them."""
    for obj in WHOLE:
        assert "hunter2" in json.dumps(obj) or obj["kind"] in objects.WITHOUT_PARAMETERS
        assert "hunter2" not in str(attrs.evolve(wire.decode(obj), raw=None))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab.", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(objects.MEMBERS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.sampled_from([obj["kind"] for obj in WHOLE]), JSON_VALUES)
def test_any_json_is_read_or_refused(kind: str, value: Any) -> None:
    """Whatever the JSON, the outcome is an object that is written as it is read, or an error."""
    members = value if isinstance(value, dict) else {"spec": value, "filters": value}
    obj = {**members, "apiVersion": "resource.k8s.io/v1alpha2", "kind": kind}
    before = copy.deepcopy(obj)
    try:
        decoded = wire.decode(obj)
    except MalformedObjectError:
        return
    finally:
        assert obj == before
    again = wire.decode(wire.encode(decoded))
    assert again == decoded
    assert wire.decode(wire.encode_whole(decoded)) == decoded
