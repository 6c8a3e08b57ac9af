"""Unfolding documents: lists, lists of lists, streams, and what is no object."""

from typing import Any

import pytest

from dra_core.api import wire
from dra_core.errors import MalformedObjectError

CLAIM = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}


def found(document: Any) -> list[tuple[str, str, str, bool]]:
    return [(o.api_version, o.kind, o.name, o.known) for o in wire.iter_objects(document)]


def test_single_objects() -> None:
    """A document that is an object gives that object, untouched."""
    (obj,) = wire.iter_objects(CLAIM)
    assert obj.data is CLAIM
    assert obj.known
    assert wire.decode(obj.data) == wire.decode_resource_claim(CLAIM)


def test_lists_and_unknown_kinds() -> None:
    """A List is unfolded in order; kinds that are not known here come marked as such."""
    document = {"apiVersion": "v1", "kind": "List", "items": [CLAIM, DEPLOYMENT, CLAIM]}
    assert found(document) == [
        ("resource.k8s.io/v1", "ResourceClaim", "c", True),
        ("apps/v1", "Deployment", "d", False),
        ("resource.k8s.io/v1", "ResourceClaim", "c", True),
    ]


def test_items_take_their_kind_from_the_list() -> None:
    """Answers of the API server leave kind and version of the items to the list."""
    item = {"metadata": {"name": "s", "namespace": "ns"}}
    document = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceSliceList",
        "metadata": {"resourceVersion": "1"},
        "items": [item, item],
    }
    assert found(document) == [("resource.k8s.io/v1beta1", "ResourceSlice", "ns/s", True)] * 2
    assert item == {"metadata": {"name": "s", "namespace": "ns"}}
    obj = next(wire.iter_objects(document))
    assert obj.data == item | {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSlice"}


def test_lists_in_lists_and_streams() -> None:
    """kubectl puts lists into a List, YAML has several documents, some of them empty."""
    inner = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n"}}]}
    document = [None, {"apiVersion": "v1", "kind": "List", "items": [inner, CLAIM]}, DEPLOYMENT]
    assert [kind for _, kind, _, _ in found(document)] == ["Node", "ResourceClaim", "Deployment"]


@pytest.mark.parametrize(
    "document", [{"apiVersion": "v1", "kind": "List"}, {"kind": "PodList", "items": []}, [], [None]]
)
def test_empty_documents(document: Any) -> None:
    """A list without items is an object of a kind not known here, or nothing."""
    assert [o for o in wire.iter_objects(document) if o.known] == []


def test_versions_that_are_not_read() -> None:
    """Known means kind and version: v1alpha2 has a package of its own, v1beta1 no taint rules."""
    for version, kind, known in [
        ("v1alpha2", "ResourceClaim", False),
        ("v1beta1", "DeviceTaintRule", False),
        ("v1alpha3", "DeviceTaintRule", True),
        ("v1alpha3", "PodSchedulingContext", True),
        ("v1alpha2", "PodSchedulingContext", True),
        ("v1alpha1", "PodScheduling", True),
        ("v1alpha2", "PodScheduling", False),
        ("v1beta1", "PodSchedulingContext", False),
        ("v2", "ResourceClaim", False),
    ]:
        document = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind}
        assert [o.known for o in wire.iter_objects(document)] == [known]
    group = {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "PodGroup"}
    assert [o.known for o in wire.iter_objects(group)] == [True]


def nested(levels: int) -> Any:
    document: Any = {"apiVersion": "v1", "kind": "List", "items": []}
    for _ in range(levels):
        document = {"apiVersion": "v1", "kind": "List", "items": [document]}
    return document


@pytest.mark.parametrize(
    ("document", "kind", "path"),
    [
        ("text", "document", ""),
        (5, "document", ""),
        (["text"], "document", "[0]"),
        ([CLAIM, {"metadata": {}}], "document", "[1].kind"),
        ({"kind": 5}, "document", "kind"),
        ({"kind": "List", "items": {}}, "List", "items"),
        ({"kind": "List", "items": [CLAIM, None]}, "document", "items[1]"),
        ({"kind": "List", "items": [CLAIM, {}]}, "document", "items[1].kind"),
        ([{"kind": "List", "items": [{"kind": "List", "items": 1}]}], "List", "[0].items[0].items"),
        (nested(50), "List", ".".join(["items[0]"] * 10) + ".items"),
    ],
)
def test_what_is_no_object_is_named_by_its_place(document: Any, kind: str, path: str) -> None:
    """The error says where in the document the thing is that is no object."""
    with pytest.raises(MalformedObjectError) as caught:
        list(wire.iter_objects(document))
    assert (caught.value.kind, caught.value.path) == (kind, path)


def test_objects_before_the_fault_are_found() -> None:
    """Iteration is lazy and in order: what comes before a fault has been seen."""
    objects = wire.iter_objects({"kind": "List", "items": [CLAIM, None]})
    assert next(objects).name == "c"
    with pytest.raises(MalformedObjectError):
        next(objects)
