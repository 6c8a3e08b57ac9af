"""The inventory under change: what a node sees is that of an inventory made anew."""

from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.core import Node, ObjectMeta
from dra_core.api.objects import ResourceSlice
from dra_core.inventory.index import Inventory
from dra_core.inventory.view import NodeView
from support.allocation_builders import device, pool_slice

NODES = [Node(ObjectMeta(name=f"node-{i}")) for i in range(1, 4)]

Seen = tuple[list[str], list[list[str]], tuple[object, ...]]


def picture(view: NodeView) -> Seen:
    devices = [str(view.device_id(place)) for place in range(len(view.devices))]
    return devices, [[s.slice.name for s in p.members] for p in view.pools], view.problems


slices = st.builds(
    lambda name, pool, node, generation, count, devices: pool_slice(
        name,
        *(device(f"d{number}") for number in devices),
        pool=pool,
        node=node,
        generation=generation,
        count=count,
        all_nodes=not node,
    ),
    st.sampled_from(["s1", "s2", "s3", "s4"]),
    st.sampled_from(["p1", "p2"]),
    st.sampled_from(["", "node-1", "node-2"]),
    st.integers(1, 2),
    st.integers(1, 2),
    st.lists(st.integers(1, 4), max_size=2),
)

changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), slices),
        st.tuples(st.just("update"), slices),
        st.tuples(st.just("delete"), slices),
        st.tuples(st.just("look"), slices),
    ),
    max_size=12,
)


@given(changes)
def test_incremental_equals_anew(steps: list[tuple[str, ResourceSlice]]) -> None:
    """After any adds, updates and deletes, views equal those of an inventory made anew."""
    inventory = Inventory()
    kept: list[ResourceSlice] = []
    for what, one in steps:
        if what == "add":
            inventory.add(one)
        elif what == "update":
            inventory.update(one)
        elif what == "delete":
            inventory.delete(one.name)
        if what in ("update", "delete"):
            kept = [other for other in kept if other.name != one.name]
        if what in ("add", "update"):
            kept.append(one)
        for node in NODES if what == "look" else ():
            inventory.view(node)
    anew = Inventory(kept)
    assert len(inventory) == len(kept)
    assert inventory.slices() == anew.slices()
    assert inventory.node_names() == anew.node_names()
    for node in NODES:
        assert picture(inventory.view(node)) == picture(anew.view(node))


def test_equal_names_are_all_kept() -> None:
    """Slices with equal names stay in the order given; updating goes by name."""
    inventory = Inventory(
        [pool_slice("s", device("b"), count=2), pool_slice("s", device("a"), count=2)]
    )
    assert [d.name for d in inventory.view(NODES[0]).devices] == ["b", "a"]
    inventory.update(pool_slice("s", device("c")))
    assert [d.name for d in inventory.view(NODES[0]).devices] == ["c"]


def test_views_are_kept_until_something_changes() -> None:
    """A view is the same object until a slice that it depends on, or a label, changes."""
    inventory = Inventory([pool_slice(f"s{n}", device("d"), node=f"node-{n}") for n in (1, 2)])
    before = inventory.view(NODES[0])
    inventory.update(pool_slice("other", device("d"), pool="p2", node="node-3"))
    assert inventory.view(NODES[0]) is before
    relabelled = Node(ObjectMeta(name="node-1", labels={"a": "b"}))
    assert inventory.view(relabelled) is not before
    before = inventory.view(NODES[0])
    inventory.update(pool_slice("s2", device("d"), generation=3, node="node-2"))
    assert inventory.view(NODES[0]) is not before, "its pool got a newer generation"


def test_deleting_what_is_not_there() -> None:
    """Deleting an unknown slice changes nothing."""
    inventory = Inventory([pool_slice("s1", device("d"))])
    revision = inventory.revision
    inventory.delete("s2")
    assert (len(inventory), inventory.revision) == (1, revision)


def test_bug_39_work_grows_with_foreign_slices() -> None:
    """BUG-39: a node's view visits its own slices and the shared ones, not the cluster's."""
    many = [
        pool_slice(f"s{n}", device("d"), pool=f"node-{n}", node=f"node-{n}") for n in range(2_000)
    ]
    shared = [
        pool_slice(f"t{n}", device("d"), pool=f"t{n}", node="", all_nodes=True) for n in range(3)
    ]
    inventory = Inventory([*many, *shared])
    inventory.view(NODES[0])
    assert inventory.visited == 4
    inventory.view(NODES[0])
    assert inventory.visited == 4, "the second look is free"


def test_bug_41_last_slice_wins() -> None:
    """BUG-41: a pool is the union of its slices, in any order of arrival."""
    one, two = (
        pool_slice("s1", device("d1"), count=2),
        pool_slice("s2", device("d2"), count=2),
    )
    for order in ([one, two], [two, one]):
        assert [d.name for d in Inventory(order).view(NODES[0]).devices] == ["d1", "d2"]
