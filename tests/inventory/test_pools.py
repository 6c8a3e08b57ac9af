"""From slices to pools as a node sees them."""

from collections.abc import Sequence

import pytest

from dra_core.api.core import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
)
from dra_core.api.objects import ResourceSlice
from dra_core.errors import NodeSelectorError
from dra_core.inventory.index import Inventory
from dra_core.inventory.problems import PoolFault, PoolProblem, PoolState
from dra_core.inventory.view import NodeView
from support.allocation_builders import device, pool_slice

NODE = Node(ObjectMeta(name="node-1", labels={"zone": "west"}))


def view(*slices: ResourceSlice, partitionable: bool = True) -> NodeView:
    return Inventory(slices).view(NODE, partitionable)


def names(seen: NodeView) -> list[str]:
    return [one.name for one in seen.devices]


def only_problem(seen: NodeView) -> PoolProblem:
    assert not seen.devices
    (problem,) = seen.problems
    return problem


def zone(value: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "In", (value,)),)),))


def test_relevant_slices() -> None:
    """A slice is for a node by name, for all nodes, by selector, or through a device."""
    seen = view(
        pool_slice("a", device("by-name"), pool="p1"),
        pool_slice("b", device("other-name"), pool="p2", node="node-2"),
        pool_slice("c", device("everywhere"), pool="p3", node="", all_nodes=True),
        pool_slice("d", device("selected"), pool="p4", node="", node_selector=zone("west")),
        pool_slice("e", device("not-selected"), pool="p5", node="", node_selector=zone("east")),
        pool_slice(
            "f",
            device("here", node_name="node-1"),
            device("there", node_name="node-2"),
            device("west", node_selector=zone("west")),
            device("all", all_nodes=True),
            pool="p6",
            node="",
            per_device_node_selection=True,
        ),
        pool_slice(
            "g",
            device("nowhere", node_name="node-2"),
            pool="p7",
            node="",
            per_device_node_selection=True,
        ),
        pool_slice("h", device("future"), pool="p8", node=""),
    )
    assert names(seen) == ["by-name", "everywhere", "selected", "here", "there", "west", "all"]
    assert [names(seen)[i] for i in range(7) if seen.elsewhere >> i & 1] == ["there"]
    assert seen.problems == ()


def test_candidate_order() -> None:
    """Pools by driver and name, slices by name, devices as listed; binding conditions last."""
    seen = view(
        pool_slice("z", device("c1"), device("c0"), pool="p2"),
        pool_slice("y2", device("b2"), pool="p1", count=2),
        pool_slice("y1", device("b1"), pool="p1", count=2),
        pool_slice("x", device("last", binding_conditions=("ready",)), pool="p0"),
        pool_slice("w", device("first"), pool="p9", driver="a-driver"),
    )
    assert names(seen) == ["first", "b1", "b2", "c1", "c0", "last"]
    assert [str(seen.device_id(i)) for i in (0, 5)] == ["a-driver/p9/first", "driver-a/p0/last"]


def test_highest_generation_counts() -> None:
    """BUG-40: only the newest generation is used, whatever the order."""
    old, new = (
        pool_slice("s1", device("old"), generation=1),
        pool_slice("s2", device("new"), generation=2),
    )
    for slices in ([old, new], [new, old]):
        assert names(view(*slices)) == ["new"]


def test_pool_complete_here_ignores_newer_slice_elsewhere() -> None:
    """A pool with all slices relevant is used although a newer generation exists elsewhere."""
    seen = view(
        pool_slice("s1", device("mine")),
        pool_slice("s2", device("newer"), generation=2, node="node-2"),
    )
    assert names(seen) == ["mine"]


def test_superseded_pool_is_obsolete() -> None:
    """BUG-34: half of the old generation here, a newer one elsewhere: no pool, no problem."""
    seen = view(
        pool_slice("s1", device("d1"), count=2),
        pool_slice("s2", device("d2"), count=2, generation=2, node="node-2"),
    )
    assert not seen.devices
    assert seen.problems == ()


def test_pool_across_nodes_is_complete() -> None:
    """BUG-33: slices of a pool on other nodes count for its completeness."""
    seen = view(
        pool_slice("s1", device("d1"), count=2),
        pool_slice("s2", device("d2"), count=2, node="node-2"),
    )
    assert names(seen) == ["d1"]
    assert [s.slice.name for s in seen.pools[0].members] == ["s1", "s2"]


def test_incomplete_pool() -> None:
    """Too few slices anywhere: incomplete, with the numbers."""
    problem = only_problem(view(pool_slice("s1", device("d1"), count=3, generation=7)))
    assert problem == PoolProblem(
        "driver-a", "pool-1", PoolState.INCOMPLETE, PoolFault.MISSING_SLICES, 7, 1, 3
    )


def test_slice_count_zero_is_said() -> None:
    """BUG-42: a pool of unset size is incomplete: 1 of 0."""
    problem = only_problem(view(pool_slice("s1", device("d1"), count=0)))
    assert (problem.state, problem.seen, problem.expected) == (PoolState.INCOMPLETE, 1, 0)


@pytest.mark.parametrize(("newer", "gone"), [(False, False), (True, True)])
def test_counts_disagree(newer: bool, gone: bool) -> None:
    """Slices that disagree about the count: invalid, or obsolete under a newer generation."""
    slices = [
        pool_slice("s1", device("d1"), count=1),
        pool_slice("s2", device("d2"), count=2, node="node-2"),
    ]
    if newer:
        slices.append(pool_slice("s3", generation=2, node="node-3"))
    seen = view(*slices)
    assert not seen.devices
    faults = [(p.state, p.fault) for p in seen.problems]
    assert faults == ([] if gone else [(PoolState.INVALID, PoolFault.SLICE_COUNTS_DIFFER)])


@pytest.mark.parametrize(
    ("slices", "fault", "subject"),
    [
        (
            [pool_slice("s1", device("d1"), count=2), pool_slice("s2", device("d1"), count=2)],
            PoolFault.DUPLICATE_DEVICE,
            "d1",
        ),
        (
            [
                pool_slice("s1", offers={"cs": {"c": "1"}}, count=2),
                pool_slice("s2", offers={"cs": {"c": "1"}}, count=2),
            ],
            PoolFault.DUPLICATE_COUNTER_SET,
            "cs",
        ),
        (
            [pool_slice("s1", device("d1", counters={"cs": {"c": "1"}}))],
            PoolFault.UNDEFINED_COUNTER_SET,
            "cs",
        ),
        (
            [
                pool_slice("s1", device("d1", counters={"cs": {"x": "1"}}), count=2),
                pool_slice("s2", offers={"cs": {"c": "1"}}, count=2),
            ],
            PoolFault.UNDEFINED_COUNTER,
            "cs/x",
        ),
        (
            [
                pool_slice("s1", device("d1"), count=2),
                pool_slice("s2", device("d2", counters={"cs": {"c": "1"}}), count=2, node="node-2"),
            ],
            PoolFault.UNDEFINED_COUNTER_SET,
            "cs",
        ),
    ],
)
def test_invalid_pools(slices: Sequence[ResourceSlice], fault: PoolFault, subject: str) -> None:
    """Duplicate devices and counter sets, and consumption of what is not defined."""
    problem = only_problem(view(*slices))
    assert (problem.state, problem.fault, problem.subject) == (PoolState.INVALID, fault, subject)


def test_duplicate_device_elsewhere_is_no_fault() -> None:
    """Names must be unique among the slices for the node only."""
    seen = view(
        pool_slice("s1", device("d1"), count=2),
        pool_slice("s2", device("d1"), count=2, node="node-2"),
    )
    assert names(seen) == ["d1"]


def test_counters_and_devices_in_one_slice() -> None:
    """The form of 1.34: a slice with counters and devices gives both."""
    seen = view(
        pool_slice("s1", device("d1", counters={"cs": {"c": "1"}}), offers={"cs": {"c": "1"}})
    )
    assert names(seen) == ["d1"]


def test_partitions_off() -> None:
    """BUG-23: off, slices of counters or per-device selection apply to no node."""
    seen = view(
        pool_slice("s1", device("d1", counters={"cs": {"c": "1"}}), device("d2")),
        pool_slice("s2", device("d3"), pool="p2", offers={"cs": {"c": "1"}}),
        pool_slice(
            "s3", device("d4", all_nodes=True), pool="p3", node="", per_device_node_selection=True
        ),
        partitionable=False,
    )
    assert names(seen) == ["d1", "d2"]


def test_two_drivers_with_one_pool_name() -> None:
    """BUG-20: a pool is told by driver and name."""
    seen = view(pool_slice("s1", device("d1")), pool_slice("s2", device("d1"), driver="driver-b"))
    assert [str(pool.pool_id) for pool in seen.pools] == ["driver-a/pool-1", "driver-b/pool-1"]


def test_bad_node_selector_is_an_error_of_the_call() -> None:
    """A bad selector of a slice or of one of its devices, also of an old generation."""
    bad = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "In"),)),))
    good = pool_slice("s1", device("d1"), generation=2)
    with pytest.raises(NodeSelectorError, match=r"s2.*zone"):
        view(good, pool_slice("s2", node="", node_selector=bad))
    with pytest.raises(NodeSelectorError, match="device d9"):
        view(
            good,
            pool_slice(
                "s2", device("d9", node_selector=bad), node="", per_device_node_selection=True
            ),
        )
