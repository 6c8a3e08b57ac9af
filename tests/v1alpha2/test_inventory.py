"""The supply by driver and place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.names import DeviceId
from dra_core.inventory.allocated import AllocatedState
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.inventory import NO_NODE, NamedInventory
from dra_core.v1alpha2.objects import ResourceSlice
from support import named_json as objects


def a_slice(name: str, node: str = "n1", driver: str = "d", *instances: str) -> ResourceSlice:
    obj = objects.slice_json(name, node, driver, objects.plain(*instances))
    return wire.decode_resource_slice(obj)


def names(inventory: NamedInventory, driver: str = "d", node: str = "n1") -> list[str]:
    return [view.name for view in inventory.place(driver, node).views]


def test_a_place_has_all_slices_of_a_driver_there() -> None:
    """Instances of several slices are joined, in the order of the slices' names."""
    inventory = NamedInventory([a_slice("z", "n1", "d", "b"), a_slice("a", "n1", "d", "d", "c")])
    assert names(inventory) == ["d", "c", "b"]
    assert names(inventory, "other") == names(inventory, "d", "n2") == []


def test_what_is_of_no_node_has_a_place_of_its_own() -> None:
    """Slices without node name are apart from those of nodes."""
    inventory = NamedInventory([a_slice("a", "n1", "d", "x"), a_slice("b", "", "d", "y")])
    assert names(inventory, "d", NO_NODE) == ["y"]
    assert names(inventory) == ["x"]
    assert inventory.nodes() == ("n1",)


def test_an_unknown_model_is_ignored() -> None:
    """A slice of a model that nobody knows adds nothing, and replaces what it was."""
    inventory = NamedInventory([a_slice("a", "n1", "d", "x")])
    other = wire.decode_resource_slice({"metadata": {"name": "a"}, "driverName": "d"})
    inventory.put(other)
    assert names(inventory) == []
    inventory.put(a_slice("a", "n1", "d", "y"))
    assert names(inventory) == ["y"]
    inventory._check()


def test_bug_35_a_name_that_comes_twice_is_one_instance() -> None:
    """An instance is used once per node and driver, however often it is listed."""
    inventory = NamedInventory([a_slice("b", "n1", "d", "x", "y"), a_slice("a", "n1", "d", "x")])
    assert names(inventory) == ["x", "y"]


def test_bug_41_no_slice_hides_another() -> None:
    """Two slices of one driver on one node count both, whatever their order."""
    slices = [a_slice("a", "n1", "d", "x"), a_slice("b", "n1", "d", "y")]
    assert names(NamedInventory(slices)) == names(NamedInventory(slices[::-1])) == ["x", "y"]


def test_bug_39_a_change_leaves_other_places_alone() -> None:
    """What was worked out for a place is kept while other places change."""
    inventory = NamedInventory(a_slice(f"s{n}", f"n{n}", "d", "x") for n in range(5))
    before = [inventory.place("d", f"n{n}") for n in range(5)]
    inventory.put(a_slice("s3", "n3", "d", "x", "y"))
    after = [inventory.place("d", f"n{n}") for n in range(5)]
    assert [one is other for one, other in zip(before, after, strict=True)] == [
        True, True, True, False, True,
    ]  # fmt: skip


def test_free_instances_are_those_nobody_holds() -> None:
    """What is in use is told by driver, node and name."""
    inventory = NamedInventory([a_slice("a", "n1", "d", "x", "y", "z")])
    held = [DeviceId("d", "n1", "y"), DeviceId("d", "n2", "x"), DeviceId("e", "n1", "z")]
    state = AllocatedState.from_parts(devices=held)
    place = inventory.place("d", "n1")
    assert place.free(state.pool("d", "n1")) == 0b101
    assert place.free(state.pool("d", "n3")) == 0b111


def test_revisions_grow_with_changes_only() -> None:
    """Removing what is not there is no change."""
    inventory = NamedInventory()
    inventory.remove("a")
    assert inventory.revision == 0
    inventory.changed(None, a_slice("a"))
    first = inventory.revision
    inventory.changed(a_slice("a"), None)
    assert 0 < first < inventory.revision


SLICES = st.builds(
    lambda name, node, driver, instances: a_slice(name, node, driver, *instances),
    st.sampled_from("abc"),
    st.sampled_from(["n1", "n2", ""]),
    st.sampled_from("de"),
    st.lists(st.sampled_from("xyz"), max_size=3),
)


@given(st.lists(st.tuples(st.booleans(), SLICES)))
def test_changes_lead_to_what_was_built_at_once(changes: list[tuple[bool, Any]]) -> None:
    """After any changes, looked at in between or not, a place is as built from what is left."""
    inventory, left = NamedInventory(), dict[str, ResourceSlice]()
    for looked_at, one in changes:
        if left.get(one.name) == one:
            inventory.changed(left.pop(one.name), None)
        else:
            inventory.changed(left.get(one.name), one)
            left[one.name] = one
        if looked_at:
            names(inventory)
        inventory._check()
    fresh = NamedInventory(left.values())
    for driver in "de":
        for node in ("n1", "n2", ""):
            assert names(inventory, driver, node) == names(fresh, driver, node)
    assert inventory.nodes() == fresh.nodes()


def test_a_check_notices_an_outdated_place() -> None:
    """The check of the invariants can fail."""
    inventory = NamedInventory([a_slice("a", "n1", "d", "x")])
    place = inventory.place("d", "n1")
    inventory.put(a_slice("a", "n1", "d", "y"))
    inventory._places[place.id] = place
    with pytest.raises(AssertionError):
        inventory._check()
