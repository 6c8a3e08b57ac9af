"""Server-side apply: who owns what, what is set, what is removed, what is a conflict."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.testing.api_kinds import Merging, Schema, by
from dra_core.testing.field_sets import (
    Manager,
    Owned,
    Path,
    changes,
    fields,
    read_owners,
    written_owners,
)
from dra_core.testing.server_side_apply import (
    ApplyConflictError,
    applier,
    apply,
    updated_owners,
)

Json = dict[str, Any]

SCHEMA: Schema = {
    "spec.list": by("id"),
    "spec.set": Merging(is_set=True),
    "spec.whole": Merging(atomic=True),
}


def fields_v1(*paths: str) -> frozenset[Path]:
    """Paths written with slashes; a member needs no "f:"."""
    return frozenset(
        tuple(part if part[1:2] == ":" else f"f:{part}" for part in path.split("/"))
        for path in paths
    )


class World:
    """One object with its owners, and the ways to write to it."""

    def __init__(self) -> None:
        self.obj: Json = {}
        self.owners: dict[Manager, Owned] = {}
        self.writes = 0

    def apply(self, name: str, stated: Json, *, force: bool = False) -> Json:
        """Apply as a manager."""
        self.writes += 1
        before = copy.deepcopy((self.obj, stated))
        obj, self.owners = apply(
            self.obj, stated, self.owners, applier(name, ""), "v1", str(self.writes), SCHEMA,
            force=force,
        )  # fmt: skip
        assert (self.obj, stated) == before
        self.obj = obj
        return self.obj

    def update(self, name: str, new: Json) -> None:
        """Replace the object as a manager."""
        self.writes += 1
        manager = Manager(name, "Update", "", "v1")
        self.owners = updated_owners(
            self.obj, new, self.owners, manager, "v1", str(self.writes), SCHEMA
        )
        self.obj = new

    def owned(self, name: str, operation: str = "Apply") -> frozenset[Path]:
        """What a manager owns."""
        return frozenset().union(
            *(
                owned.paths
                for manager, owned in self.owners.items()
                if (manager.name, manager.operation) == (name, operation)
            )
        )


def spec(**members: Any) -> Json:
    """An object with a spec."""
    return {"spec": members}


def items(*ids: str) -> list[Json]:
    """Items of the keyed list."""
    return [{"id": name} for name in ids]


# Fields


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"a": 1}, ("spec/a",)),
        ({"a": {"b": 1, "c": {}}}, ("spec/a/b", "spec/a/c")),
        ({"a": [1, {"b": 2}]}, ("spec/a",)),
        ({"a": None}, ("spec/a",)),
        ({"whole": {"a": 1}}, ("spec/whole",)),
        ({"set": ["x", 1]}, ('spec/set/v:"x"', "spec/set/v:1")),
        ({"set": []}, ("spec/set",)),
        (
            {"list": [{"id": "a", "x": {"y": 1}}]},
            ('spec/list/k:{"id":"a"}', 'spec/list/k:{"id":"a"}/id', 'spec/list/k:{"id":"a"}/x/y'),
        ),
        ({"list": items("a", "a")}, ("spec/list",)),
        ({"list": [{"x": 1}]}, ("spec/list",)),
        ({}, ("spec",)),
    ],
)
def test_fields(members: Json, expected: tuple[str, ...]) -> None:
    """Maps by member, keyed lists by item and member, all else as a whole."""
    assert fields(spec(**members), SCHEMA).keys() == fields_v1(*expected)


def test_fields_that_nobody_owns() -> None:
    """What names the object, and what the server writes, is nobody's."""
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "managedFields")
    obj = {"apiVersion": "v1", "kind": "X", "metadata": dict.fromkeys(names, "x")}
    assert fields(obj, SCHEMA) == {}
    obj["metadata"] |= {"labels": {"a": "b"}, "managedFields": [{"a": 1}]}  # type: ignore[operator]
    assert fields(obj, SCHEMA).keys() == fields_v1("metadata/labels/a")


# Apply


def test_apply_sets_and_owns() -> None:
    """What is stated is set, and owned by the applier; the rest stays."""
    world = World()
    world.update("admin", spec(a=1, b={"x": 1}))
    assert world.apply("me", spec(b={"y": 2}, c=3)) == spec(a=1, b={"x": 1, "y": 2}, c=3)
    assert world.owned("me") == fields_v1("spec/b/y", "spec/c")
    assert world.owned("admin", "Update") == fields_v1("spec/a", "spec/b/x")


def test_apply_removes_what_it_does_not_state_any_more() -> None:
    """Leaving a field out removes it, with containers that become empty; others' stay."""
    world = World()
    world.apply("me", spec(a=1, b={"x": {"y": 1}}, c=3))
    world.apply("other", spec(c=3))
    assert world.apply("me", spec(a=1)) == spec(a=1, c=3)
    assert world.apply("me", {}) == spec(c=3)
    assert world.apply("other", {}) == spec()


def test_apply_never_removes_what_an_update_set() -> None:
    """What the same manager set by create or update is another ownership."""
    world = World()
    world.update("me", spec(a=1, b=2))
    assert world.apply("me", spec(b=2)) == spec(a=1, b=2)
    assert world.apply("me", {}) == spec(a=1, b=2)  # b is still owned by the update
    assert world.owned("me", "Update") == fields_v1("spec/a", "spec/b")


def test_conflict() -> None:
    """Another value for a field of somebody else is refused, and nothing changes."""
    world = World()
    world.update("admin", spec(a=1, b=2))
    before = copy.deepcopy((world.obj, world.owners))
    with pytest.raises(ApplyConflictError) as raised:
        world.apply("me", spec(a=9, b=2))
    assert raised.value.conflicts == (("admin", "f:spec/f:a"),)
    assert "admin" in str(raised.value)
    assert (world.obj, world.owners) == before


def test_force_takes_over() -> None:
    """Forced, the field is set and the others lose it."""
    world = World()
    world.update("admin", spec(a=1, b=2))
    assert world.apply("me", spec(a=9), force=True) == spec(a=9, b=2)
    assert world.owned("admin", "Update") == fields_v1("spec/b")
    assert world.apply("me", {}) == spec(b=2)


def test_own_update_is_somebody_else() -> None:
    """An apply conflicts with an update by the same manager; it has to be forced."""
    world = World()
    world.update("me", spec(a=1))
    with pytest.raises(ApplyConflictError):
        world.apply("me", spec(a=2))
    assert world.apply("me", spec(a=2), force=True) == spec(a=2)
    assert world.owned("me", "Update") == frozenset()


def test_same_value_is_shared() -> None:
    """Stating what is there already is no conflict; it goes when the last owner leaves it out."""
    world = World()
    world.apply("one", spec(a=1))
    world.apply("two", spec(a=1))
    assert world.apply("one", {}) == spec(a=1)
    assert world.apply("two", {}) == spec()


def test_update_takes_over_without_force() -> None:
    """An update owns what it changes, and takes it from whoever had it; no conflict."""
    world = World()
    world.apply("me", spec(a=1, b=2))
    world.update("admin", spec(a=5, b=2))
    assert world.owned("me") == fields_v1("spec/b")
    assert world.owned("admin", "Update") == fields_v1("spec/a")
    world.update("admin", spec(b=2))
    assert world.owned("admin", "Update") == frozenset()


def test_items_of_a_list() -> None:
    """Items are merged by key, keep their places, and go with their last owner."""
    world = World()
    world.update("admin", spec(list=[{"id": "a", "x": 1}]))
    world.apply("me", spec(list=[{"id": "b"}, {"id": "a", "y": 2}]))
    assert world.obj == spec(list=[{"id": "a", "x": 1, "y": 2}, {"id": "b"}])
    world.apply("other", spec(list=[{"id": "b", "z": 3}]))
    assert world.apply("me", spec(list=items("c"))) == spec(
        list=[{"id": "a", "x": 1}, {"id": "b", "z": 3}, {"id": "c"}]
    )
    assert world.apply("other", {}) == spec(list=[{"id": "a", "x": 1}, {"id": "c"}])
    assert world.apply("me", {}) == spec(list=[{"id": "a", "x": 1}])


def test_sets_only_add() -> None:
    """Values of a set are added to those of others, and removed by their owners only."""
    world = World()
    world.apply("one", spec(set=["a", "b"]))
    assert world.apply("two", spec(set=["b", "c"])) == spec(set=["a", "b", "c"])
    assert world.apply("one", spec(set=["d"])) == spec(set=["b", "c", "d"])


def test_wholes_are_replaced() -> None:
    """Lists without key and atomic maps are set as a whole, and conflict as a whole."""
    world = World()
    world.apply("one", spec(plain=[1, 2], whole={"a": 1}))
    with pytest.raises(ApplyConflictError) as raised:
        world.apply("two", spec(plain=[3], whole={"b": 1}))
    assert [path for _, path in raised.value.conflicts] == ["f:spec/f:plain", "f:spec/f:whole"]
    assert world.apply("one", spec(plain=[], whole={"b": 1})) == spec(plain=[], whole={"b": 1})


def test_times() -> None:
    """An owner's time changes with what it owns, and only then."""
    world = World()
    world.apply("me", spec(a=1))
    world.apply("me", spec(a=2))
    assert [owned.time for owned in world.owners.values()] == ["1"]
    world.apply("me", spec(b=2))
    assert [owned.time for owned in world.owners.values()] == ["3"]


# Laws

VALUES = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(0, 1),
        "b": st.fixed_dictionaries({}, optional={"x": st.integers(0, 1), "y": st.just([1])}),
        "list": st.lists(st.sampled_from("pq"), max_size=2, unique=True).flatmap(
            lambda ids: st.tuples(
                *(
                    st.fixed_dictionaries({"id": st.just(i)}, optional={"v": st.integers(0, 1)})
                    for i in ids
                )
            ).map(list)
        ),
        "set": st.lists(st.sampled_from("uv"), max_size=2, unique=True),
        "whole": st.sampled_from([{"a": 1}, {"b": 2}]),
    },
).map(lambda members: {"spec": members})
NAMES = st.sampled_from(["one", "two"])
WRITES = st.lists(st.tuples(st.sampled_from(["apply", "update"]), NAMES, VALUES), max_size=4)


def written(history: list[tuple[str, str, Json]]) -> World:
    """An object with such a history."""
    world = World()
    for how, name, value in history:
        if how == "apply":
            world.apply(name, value, force=True)
        else:
            world.update(name, value)
    return world


def _has(obj: Mapping[str, Any], stated: Json) -> bool:
    """Whether every field that is stated is there, with its value."""
    there = fields(obj, SCHEMA)
    return all(
        (path in there and there[path] == value) or value in ({}, [])
        for path, value in fields(stated, SCHEMA).items()
    )


@given(history=WRITES, stated=VALUES, name=NAMES)
def test_law_forced_apply(history: list[tuple[str, str, Json]], stated: Json, name: str) -> None:
    """After a forced apply everything stated is so, and owned; a second one changes nothing."""
    world = written(history)
    world.apply(name, stated, force=True)
    assert _has(world.obj, stated)
    assert world.owned(name) == fields(stated, SCHEMA).keys()
    once = copy.deepcopy((world.obj, world.owners))
    world.apply(name, stated)  # needs no force any more
    assert (world.obj, world.owners) == once


@given(history=WRITES, stated=VALUES)
def test_law_apply_and_leave(history: list[tuple[str, str, Json]], stated: Json) -> None:
    """Who applies and then states nothing leaves behind what others had, save what it took."""
    world = written(history)
    before = fields(world.obj, SCHEMA)
    world.apply("me", stated, force=True)
    world.apply("me", {})
    after = fields(world.obj, SCHEMA)
    taken = {path for path, value in fields(stated, SCHEMA).items() if before.get(path) != value}
    for path, value in before.items():
        if not any(path[: len(other)] == other or other[: len(path)] == path for other in taken):
            assert after[path] == value, path
    assert world.owned("me") == frozenset()


@given(history=WRITES, stated=VALUES)
def test_law_unforced_apply_hurts_nobody(
    history: list[tuple[str, str, Json]], stated: Json
) -> None:
    """Without force, every field that somebody else owns keeps its value, or it is refused."""
    world = written(history)
    before, owners = fields(world.obj, SCHEMA), dict(world.owners)
    try:
        world.apply("me", stated)
    except ApplyConflictError:
        return
    after = fields(world.obj, SCHEMA)
    for manager, owned in owners.items():
        for path in owned.paths & before.keys() & after.keys():
            assert after[path] == before[path]
        kept = world.owners.get(manager)
        assert kept is None or kept.paths <= owned.paths


@given(history=WRITES)
def test_law_owners_own_what_is_there(history: list[tuple[str, str, Json]]) -> None:
    """Every field has an owner; what only holds others' fields (items, empty places) need not."""
    world = written(history)
    owned = frozenset[Path]().union(*(each.paths for each in world.owners.values()))
    for path, value in fields(world.obj, SCHEMA).items():
        names_an_item = path[-1].startswith("k:") or path[-1] == "f:id"
        assert path in owned or value in ({}, []) or names_an_item


@given(history=WRITES)
def test_law_managed_fields_round_trip(history: list[tuple[str, str, Json]]) -> None:
    """Owners survive being written as managedFields and read again."""
    owners = written(history).owners
    obj = {"metadata": {"managedFields": written_owners(owners)}}
    assert read_owners(obj) == owners
    assert list(read_owners(obj)) == list(owners)


def test_managed_fields_by_example() -> None:
    """The form is the API's; a field with others below it is marked by a dot."""
    world = World()
    world.apply("me", spec(a=1, list=[{"id": "x", "v": 1}]))
    assert written_owners(world.owners) == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    "f:a": {},
                    "f:list": {'k:{"id":"x"}': {".": {}, "f:id": {}, "f:v": {}}},
                }
            },
        }
    ]
    status = Manager("me", "Update", "status", "v1")
    (entry,) = written_owners({status: Owned(frozenset({("f:status",)}), "v1", "t")})
    assert entry["subresource"] == "status"
    assert read_owners({"metadata": {"managedFields": [{"manager": "someone"}]}}) == {}


@given(old=VALUES, new=VALUES)
def test_law_changes(old: Json, new: Json) -> None:
    """Written and removed fields are all the difference."""
    difference = changes(old, new, SCHEMA)
    before, after = fields(old, SCHEMA), fields(new, SCHEMA)
    assert difference.removed == before.keys() - after.keys()
    same = {path for path in before.keys() & after.keys() if path not in difference.written}
    assert all(before[path] == after[path] for path in same)
    assert difference.written <= after.keys()
    assert (not difference.written and not difference.removed) == (before == after)
