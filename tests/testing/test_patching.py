"""What patches make of documents: the RFCs, and what the API server has of its own."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.testing.api_kinds import Merging, by
from dra_core.testing.patching import (
    PatchRefusedError,
    json_patch,
    merge_patch,
    same_json,
    strategic_merge_patch,
)

Json = dict[str, Any]

SCHEMA = {
    "status.reservedFor": by("uid"),
    "metadata.finalizers": Merging(is_set=True, patched_set=True),
    "status.sets": Merging(is_set=True),
    "spec.inner": by("name"),
    "spec.inner.below": by("id"),
}


def op(name: str, path: str, *value: Any) -> Json:
    """An operation; without a value there is none in it."""
    return {"op": name, "path": path} | ({"value": value[0]} if value else {})


# JSON patch


@pytest.mark.parametrize(
    ("document", "passes"),
    [
        ({"status": {}}, True),
        ({"status": {"allocation": None}}, True),
        ({"status": {"allocation": {}}}, False),
        ({"status": {"allocation": False}}, False),
        ({}, False),
        ({"status": None}, False),
    ],
)
@pytest.mark.parametrize("operation", [op("test", "/status/allocation", None),
                                       op("test", "/status/allocation")])  # fmt: skip
def test_null_equals_absent(document: Json, passes: bool, operation: Json) -> None:
    """A test for null passes for an absent member, if its parent exists."""
    if passes:
        assert json_patch(document, [operation]) == document
    else:
        with pytest.raises(PatchRefusedError):
            json_patch(document, [operation])


@pytest.mark.parametrize(
    ("found", "tested", "passes"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        ("", None, False),
        ([1, {"a": 0}], [1, {"a": 0}], True),
        ([1, {"a": 0}], [1, {"a": False}], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([], {}, False),
    ],
)
def test_equality_of_tests(found: Any, tested: Any, passes: bool) -> None:
    """Values are compared as JSON: true is not 1."""
    assert same_json(found, tested) is passes
    if passes:
        json_patch({"a": found}, [op("test", "/a", tested)])
    else:
        with pytest.raises(PatchRefusedError):
            json_patch({"a": found}, [op("test", "/a", tested)])


@pytest.mark.parametrize(
    "operation",
    [
        op("add", "/status/reservedFor/-", {"uid": "a"}),
        op("add", "/metadata/finalizers/3", "x"),
        op("add", "/nowhere/else", 1),
        op("remove", "/status/allocation"),
        op("replace", "/status/allocation", {}),
        op("test", "/metadata/finalizers/1", "x"),
        op("test", "/metadata/finalizers/1", None),
        op("test", "no-slash", 1),
        op("replace", "", []),
    ],
)
def test_refused_by_the_document(operation: Json) -> None:
    """``add`` to ``…/-`` fails where the list is absent; so does what has no place."""
    document = {"metadata": {"finalizers": ["a"]}, "status": {}}
    before = copy.deepcopy(document)
    with pytest.raises(PatchRefusedError) as raised:
        json_patch(document, [op("add", "/status/new", 1), operation])
    assert not raised.value.malformed
    assert document == before


@pytest.mark.parametrize(
    "operations",
    [{"op": "add"}, "add", None, [1], [{}], [{"op": "add", "path": "/a"}],
     [{"op": "jump", "path": "/a"}], [{"op": "test", "path": 1}], [{"op": "add", "value": 1}]],
)  # fmt: skip
def test_no_operations(operations: Any) -> None:
    """What is no list of operations is malformed, whatever the document."""
    with pytest.raises(PatchRefusedError) as raised:
        json_patch({"a": 1}, operations)
    assert raised.value.malformed
    assert str(raised.value)


def test_operations_in_order() -> None:
    """Each operation sees what the ones before it did."""
    document = {"a": [1]}
    patched = json_patch(
        document,
        [op("add", "/a/-", 2), op("test", "/a/1", 2), op("remove", "/a/0"), op("add", "/b", {})],
    )
    assert patched == {"a": [2], "b": {}}
    assert document == {"a": [1]}


# Merge patch

SCALARS = st.sampled_from([0, 1, "x", True])
PATCHES = st.recursive(
    st.none() | SCALARS | st.lists(SCALARS, max_size=2),
    lambda below: st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), PATCHES, max_size=3)


def test_merge_patch_by_example() -> None:
    """Members are set, null ones removed, lists replaced, also what was no object before."""
    document = {"a": {"b": 1, "c": 2}, "list": [1, 2], "text": "x"}
    patch = {"a": {"b": None, "d": {"e": None, "f": 1}}, "list": [3], "text": {"g": 1}}
    assert merge_patch(document, patch) == {
        "a": {"c": 2, "d": {"f": 1}},
        "list": [3],
        "text": {"g": 1},
    }
    assert merge_patch(document, 5) == 5


def _set(document: Any, patch: Any) -> bool:
    """Whether a document is as the patch says, written as a definition of that."""
    if not isinstance(patch, dict):
        return same_json(document, patch)
    return isinstance(document, dict) and all(
        name not in document if value is None else name in document and _set(document[name], value)
        for name, value in patch.items()
    )


@given(document=OBJECTS, patch=OBJECTS)
def test_law_merge_patch(document: Json, patch: Json) -> None:
    """The result is as the patch says, twice is once, and the rest is as it was."""
    before = copy.deepcopy((document, patch))
    result = merge_patch(document, patch)
    assert _set(result, patch)
    assert merge_patch(result, patch) == result
    assert {name: value for name, value in result.items() if name not in patch} == {
        name: value for name, value in document.items() if name not in patch
    }
    assert (document, patch) == before


@given(document=OBJECTS, patch=OBJECTS)
def test_law_strategic_is_plain_without_lists_to_merge(document: Json, patch: Json) -> None:
    """Where no list has a key, a strategic merge patch is a merge patch."""
    assert strategic_merge_patch(document, patch, {}) == merge_patch(document, patch)


# Strategic merge patch


def entries(*uids: str) -> list[Json]:
    """Entries of a list with the key uid."""
    return [{"uid": uid} for uid in uids]


def reserved(*uids: str) -> Json:
    """A document, or a patch, with such entries."""
    return {"status": {"reservedFor": entries(*uids)}}


@pytest.mark.parametrize(
    ("there", "patch", "result"),
    [
        ("", "a", "a"),
        ("ab", "c", "cab"),
        ("ab", "dc", "dcab"),
        ("abc", "b", "abc"),
        ("abc", "ca", "bca"),  # the patch has its own order
        ("abc", "bx", "abxc"),
        ("abc", "xb", "xabc"),
    ],
)
def test_order_of_a_strategic_merge(there: str, patch: str, result: str) -> None:
    """New entries come first; those that were there keep their places."""
    assert strategic_merge_patch(reserved(*there), reserved(*patch), SCHEMA) == reserved(*result)


def test_entries_are_merged_member_by_member() -> None:
    """An entry keeps the members that the patch does not mention, lists below by their keys."""
    document = {"spec": {"inner": [{"name": "a", "x": 1, "below": [{"id": 1, "y": 1}]}]}}
    patch = {"spec": {"inner": [{"name": "a", "z": 2, "below": [{"id": 2}, {"id": 1, "w": 3}]}]}}
    below = [{"id": 2}, {"id": 1, "y": 1, "w": 3}]
    assert strategic_merge_patch(document, patch, SCHEMA) == {
        "spec": {"inner": [{"name": "a", "x": 1, "z": 2, "below": below}]}
    }


@pytest.mark.parametrize(
    ("list_patch", "result"),
    [
        ([{"$patch": "delete", "uid": "b"}], "ac"),
        ([{"$patch": "delete", "uid": "x"}], "abc"),
        ([{"$patch": "delete", "uid": "b"}, {"uid": "d"}], "dac"),
        ([{"$patch": "replace"}, {"uid": "d"}], "d"),
        ([{"$patch": "replace"}], ""),
        ([], "abc"),
    ],
)
def test_directives_in_lists(list_patch: list[Json], result: str) -> None:
    """Entries can be deleted by key, and the list replaced."""
    patch = {"status": {"reservedFor": list_patch}}
    assert strategic_merge_patch(reserved("a", "b", "c"), patch, SCHEMA) == reserved(*result)


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ({"status": {"$patch": "replace", "y": 2}}, {"status": {"y": 2}}),
        ({"status": {"$patch": "delete"}}, {"status": {}}),
        ({"status": None}, {}),
        ({"status": {"x": None, "y": {"z": None}}}, {"status": {"y": {}}}),
        ({"status": {"x": [2]}}, {"status": {"x": [2]}}),
        ({"spec": {"y": ["b"]}}, {"spec": {"y": ["b"]}, "status": {"x": [1]}}),
    ],
)
def test_maps_and_lists_without_key(patch: Json, result: Json) -> None:
    """Maps are merged, null removes, lists without a key are replaced."""
    assert strategic_merge_patch({"status": {"x": [1]}}, patch, SCHEMA) == result


def test_sets() -> None:
    """Finalizers are added to, and removed by a directive; other sets are replaced."""
    document = {"metadata": {"finalizers": ["a", "b"]}, "status": {"sets": ["a"]}}
    patch = {"metadata": {"finalizers": ["c", "b"]}, "status": {"sets": ["b"]}}
    patched = strategic_merge_patch(document, patch, SCHEMA)
    assert patched == {"metadata": {"finalizers": ["c", "a", "b"]}, "status": {"sets": ["b"]}}
    removal = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic_merge_patch(document, removal, SCHEMA)["metadata"]["finalizers"] == ["b"]


@pytest.mark.parametrize(
    ("patch", "malformed"),
    [
        (5, True),
        ({"$retainKeys": ["a"]}, True),
        ({"status": {"$setElementOrder/reservedFor": []}}, True),
        ({"status": {"reservedFor": [{"name": "a"}]}}, False),
        ({"status": {"reservedFor": ["a"]}}, False),
        ({"metadata": {"finalizers": [{}]}}, False),
    ],
)
def test_refused_strategic_patches(patch: Any, malformed: bool) -> None:
    """Entries without their key and directives that are not known are refused, never ignored."""
    with pytest.raises(PatchRefusedError) as raised:
        strategic_merge_patch(reserved("a"), patch, SCHEMA)
    assert raised.value.malformed is malformed


UIDS = st.lists(st.sampled_from("abcdef"), max_size=5, unique=True)


@given(there=UIDS, added=UIDS, removed=UIDS)
def test_law_strategic_lists(there: list[str], added: list[str], removed: list[str]) -> None:
    """Adding gives the union, removing the difference; what stays keeps its order."""
    document = reserved(*there)
    both = strategic_merge_patch(document, reserved(*added), SCHEMA)
    uids = [entry["uid"] for entry in both["status"]["reservedFor"]]
    assert sorted(uids) == sorted({*there, *added})
    assert [uid for uid in uids if uid not in added] == [uid for uid in there if uid not in added]
    assert [uid for uid in uids if uid in added] == added
    deletions = [{"$patch": "delete", "uid": uid} for uid in removed]
    rest = strategic_merge_patch(document, {"status": {"reservedFor": deletions}}, SCHEMA)
    assert rest == reserved(*(uid for uid in there if uid not in removed))
    assert document == reserved(*there)
