"""Faults that other allocators had with pools, slices and nodes, as tests of both of ours.

What may live here: one test or more per entry of section B of the list of known faults
(``k/k`` is kubernetes/kubernetes). The docstring says where it was reported and what
went wrong.
"""

from typing import Any

import attrs
import pytest

from dra_core.allocator.results import Allocated, Unsatisfiable
from dra_core.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.errors import AllocationError, NodeSelectorError
from dra_core.inventory.allocated import AllocatedState
from dra_core.inventory.index import Inventory
from dra_core.inventory.problems import PoolFault, PoolState
from dra_core.testing.problem import Problem
from support.allocation_builders import (
    DRIVER,
    POOL,
    claim,
    device,
    device_id,
    everything,
    exactly,
    first,
    granted,
    in_use,
    match,
    pool_slice,
    problem,
    served,
    sub,
)
from support.solvers import SOLVERS, Solve, allocate, allocator_of

both = pytest.mark.parametrize("solve", SOLVERS)
in_any_order = pytest.mark.parametrize("order", [1, -1], ids=["given", "reversed"])

ONE = claim(exactly("r"))
ALL = claim(everything("r"))


def assert_does_not_fit(outcome: object, reason: str = "") -> None:
    """Nothing fits: an answer, no error."""
    assert isinstance(outcome, Unsatisfiable), outcome
    assert outcome.reason == reason


def selector(key: str, *values: str, operator: str = "In") -> NodeSelector:
    """A node selector of one requirement."""
    requirement = NodeSelectorRequirement(key, operator, values)
    return NodeSelector((NodeSelectorTerm(match_expressions=(requirement,)),))


# --- which pools a node has ------------------------------------------------------------------


@both
@in_any_order
def test_bug_33_pool_across_two_nodes_is_complete(solve: Solve, order: int) -> None:
    """k/k#134466: only the slices of the node were counted, so the pool was incomplete."""
    slices = [
        pool_slice("slice1", device("d1"), count=2),
        pool_slice("slice2", device("d2"), count=2, node="node-2"),
    ]
    assert granted(solve(problem(ALL, *slices[::order]))) == [["d1"]]


@both
@in_any_order
def test_bug_34_newer_generation_elsewhere(solve: Solve, order: int) -> None:
    """k/k#135056: the pool has moved on, on another node; the rest here is stale."""
    slices = [
        pool_slice("slice1", device("d1"), count=2),
        pool_slice("slice2", device("d2"), count=2, generation=2, node="node-2"),
    ]
    assert_does_not_fit(solve(problem(ONE, *slices[::order])))


@both
@in_any_order
def test_bug_34_complete_pool_ignores_a_newer_generation_elsewhere(
    solve: Solve, order: int
) -> None:
    """k/k#135056: all slices of a generation on the node are a pool, whatever is elsewhere."""
    slices = [
        pool_slice("slice1", device("d1")),
        pool_slice("slice2", device("d2"), generation=2, node="node-2"),
    ]
    assert granted(solve(problem(ONE, *slices[::order]))) == [["d1"]]


def duplicates() -> list[Any]:
    """A pool that has d1 twice, and one that has d2."""
    return [
        pool_slice("s1", device("d1"), count=2),
        pool_slice("s2", device("d1"), count=2),
        pool_slice("s3", device("d2"), pool="pool-2"),
    ]


@both
def test_bug_35_duplicate_name_spoils_its_pool_only(solve: Solve) -> None:
    """k/k#128275: devices of other pools are given as if nothing were wrong."""
    assert granted(solve(problem(ONE, *duplicates()))) == [["d2"]]


@both
def test_bug_35_invalid_pool_is_the_reason(solve: Solve) -> None:
    """k/k#128275: with nothing else left, the answer says why."""
    used = AllocatedState.from_parts([device_id("d2", pool="pool-2")])
    assert_does_not_fit(solve(problem(ONE, *duplicates(), allocated=used)), "invalid-pool")


def test_bug_35_the_reason_names_the_device() -> None:
    """k/k#128275: which pool, which rule, which device."""
    found = allocate(problem(claim(exactly("r", 2)), *duplicates()))
    assert isinstance(found, Unsatisfiable)
    (fault,) = found.pools
    assert (fault.driver, fault.pool, fault.subject) == (DRIVER, POOL, "d1")
    assert (fault.state, fault.fault) == (PoolState.INVALID, PoolFault.DUPLICATE_DEVICE)


@both
def test_bug_35_all_does_not_fit(solve: Solve) -> None:
    """k/k#128275: what "all" means cannot be told of an invalid pool."""
    assert_does_not_fit(solve(problem(ALL, *duplicates())), "invalid-pool")


@both
def test_bug_35_all_as_an_alternative_does_not_fit(solve: Solve) -> None:
    """Neither can it if something else would do."""
    request = first("r", sub("s0", None), sub("s1", 1))
    assert_does_not_fit(solve(problem(claim(request), *duplicates())), "invalid-pool")


@both
@pytest.mark.parametrize("broken", ["incomplete", "invalid"])
def test_bug_37_broken_pool_stops_its_node_only(solve: Solve, broken: str) -> None:
    """k/k#141829: the broken pool of one node was an error that ended the pod's cycle."""
    bad = pool_slice("s1", device("d1"), device("d1"), node="node-2", pool="pool-2")
    if broken == "incomplete":
        bad = attrs.evolve(bad, devices=(device("d1"),), resource_slice_count=2)
    good = pool_slice("s2", device("d2"))
    assert_does_not_fit(solve(problem(ALL, bad, good, node="node-2")), f"{broken}-pool")
    assert granted(solve(problem(ALL, bad, good, node="node-1"))) == [["d2"]]


@both
@in_any_order
@pytest.mark.parametrize(("wanted", "reason"), [(ONE, ""), (ALL, "incomplete-pool")])
def test_bug_38_half_updated_pool_gives_nothing(
    solve: Solve, order: int, wanted: Any, reason: str
) -> None:
    """k/k#130043: a device of a pool of which half had arrived was given."""
    slices = [
        pool_slice("new", device("d1", capacity={"memory": "80Gi"}), generation=2, count=2),
        pool_slice("old", device("d1", capacity={"memory": "100Gi"}), generation=1),
    ]
    assert_does_not_fit(solve(problem(wanted, *slices[::order])), reason)


@both
@in_any_order
def test_bug_40_old_generation_is_obsolete(solve: Solve, order: int) -> None:
    """k/k#127554: of two generations on a node only the newer counts, in whatever order."""
    slices = [
        pool_slice("a", device("d1"), generation=1),
        pool_slice("b", device("d2"), generation=2),
    ]
    assert granted(solve(problem(ALL, *slices[::order]))) == [["d2"]]


@both
@in_any_order
def test_bug_41_devices_of_all_slices_of_a_pool(solve: Solve, order: int) -> None:
    """cluster-autoscaler 750d5b701: the last slice of a pool won, the others were lost."""
    slices = [
        pool_slice("s1", device("d1"), count=2),
        pool_slice("s2", device("d2"), count=2),
    ]
    assert granted(solve(problem(ALL, *slices[::order]))) == [["d1", "d2"]]


@both
def test_bug_42_count_of_zero_is_never_complete(solve: Solve) -> None:
    """kubernetes/autoscaler#10199: a template that lacks the number of slices gives nothing."""
    assert_does_not_fit(solve(problem(ONE, pool_slice("s", device("d1"), count=0))))


def test_bug_42_the_answer_says_one_of_zero() -> None:
    """kubernetes/autoscaler#10200: "incomplete: 1 of 0", not silence."""
    found = allocate(problem(ONE, pool_slice("s", device("d1"), count=0)))
    assert isinstance(found, Unsatisfiable)
    (fault,) = found.pools
    assert (fault.state, fault.fault) == (PoolState.INCOMPLETE, PoolFault.MISSING_SLICES)
    assert (fault.seen, fault.expected) == (1, 0)


@both
def test_slices_of_equal_names_are_all_kept(solve: Solve) -> None:
    """Hand-made input may name slices alike; they stay in the order given."""
    slices = [
        pool_slice("same", device("d2"), pool="pool-1"),
        pool_slice("same", device("d1"), pool="pool-1"),
    ]
    slices = [attrs.evolve(one, resource_slice_count=2) for one in slices]
    assert granted(solve(problem(ALL, *slices))) == [["d2", "d1"]]
    assert granted(solve(problem(ALL, *slices[::-1]))) == [["d1", "d2"]]


@both
def test_slice_with_counters_and_devices_gives_both(solve: Solve) -> None:
    """The form of 1.34: one slice offers counters and has the devices that take them."""
    members = [device(name, counters={"cs": {"c": "1"}}) for name in ("d1", "d2")]
    one = pool_slice("s", *members, offers={"cs": {"c": "1"}})
    assert granted(solve(problem(ONE, one))) == [["d1"]]
    assert_does_not_fit(solve(problem(claim(exactly("r", 2)), one)))


@both
def test_device_that_is_gone_still_holds_its_counters(solve: Solve) -> None:
    """k/k#140802: no slice lists the device any more, the caller knows what it holds."""
    slices = [
        pool_slice("s", device("d1", counters={"cs": {"c": "1"}}), count=2),
        pool_slice("t", count=2, offers={"cs": {"c": "1"}}),
    ]
    used = in_use("gone")
    assert granted(solve(problem(ONE, *slices, allocated=used))) == [["d1"]]
    (gone,) = used.devices
    held = device("gone", counters={"cs": {"c": "1"}}).consumes_counters
    knowing = used.with_gone_consumption({gone: held})
    assert_does_not_fit(solve(problem(ONE, *slices, allocated=knowing)))


@both
def test_pools_with_binding_conditions_come_last(solve: Solve) -> None:
    """Drivers rely on the order: the first fit wins, and waiting is the last resort."""
    slices = [
        pool_slice("s1", device("d1"), device("d2", binding_conditions=("ready",))),
        pool_slice("s2", device("d3"), pool="pool-2"),
    ]
    assert granted(solve(problem(claim(exactly("r", 3)), *slices))) == [["d3", "d1", "d2"]]


# --- work ------------------------------------------------------------------------------------


def test_bug_39_work_does_not_grow_with_foreign_slices() -> None:
    """k/k#135032, k/k#138917: every node's filter walked all slices of the cluster."""
    seen = {size: visited_for_one_node(size) for size in (10, 1_000)}
    assert seen[10] == seen[1_000]
    assert seen[1_000] <= 20


def visited_for_one_node(nodes: int) -> int:
    """Slices looked at for the second node asked about, in a cluster of so many."""
    slices = [
        one
        for number in range(nodes)
        for one in (
            pool_slice(
                f"d{number}",
                device("d1", counters={"cs": {"c": "1"}}),
                pool=f"pool-{number}",
                node=f"node-{number}",
                count=2,
            ),
            pool_slice(
                f"c{number}",
                pool=f"pool-{number}",
                node=f"node-{number}",
                count=2,
                offers={"cs": {"c": "1"}},
            ),
        )
    ]
    shared = pool_slice("net", device("n1"), pool="net", node="", all_nodes=True)
    inventory = Inventory([*slices, shared])
    allocator = allocator_of(problem(ONE, *slices, shared), inventory)
    for number in (3, 7):
        before = inventory.visited
        one = problem(ONE, node=f"node-{number}")
        assert isinstance(allocator.allocate(one.claims, one.node), Allocated)
    return inventory.visited - before


# --- which nodes a slice is for ----------------------------------------------------------------

LABELS = {"zone": "east", "rack": "7"}


def on_node(wanted: Any, *slices: Any) -> Problem:
    """A problem on a node with labels."""
    return problem(wanted, *slices, labels=LABELS)


@both
@pytest.mark.parametrize(
    ("where", "matches"),
    [
        ({"node": "node-1"}, True),
        ({"node": "node-2"}, False),
        ({"node": "", "all_nodes": True}, True),
        ({"node": "", "node_selector": selector("zone", "east")}, True),
        ({"node": "", "node_selector": selector("zone", "west")}, False),
        ({"node": "", "node_selector": selector("none", "x", operator="NotIn")}, True),
        ({"node": "", "node_selector": selector("rack", "6", operator="Gt")}, True),
        ({"node": "", "node_selector": selector("rack", "7", operator="Lt")}, False),
        ({"node": "", "node_selector": selector("zone", "1", operator="Gt")}, False),
        ({"node": "", "node_selector": selector("zone", operator="Exists")}, True),
        ({"node": "", "node_selector": selector("zone", operator="DoesNotExist")}, False),
        ({"node": "", "node_selector": NodeSelector((NodeSelectorTerm(),))}, False),
        ({"node": "", "node_selector": NodeSelector()}, False),
        ({"node": ""}, False),
    ],
)  # fmt: skip
def test_bug_40_which_slices_are_for_a_node(solve: Solve, where: Any, matches: bool) -> None:
    """Node names, selectors and "all nodes" each match as documented."""
    found = solve(on_node(ONE, pool_slice("s", device("d1"), **where)))
    assert isinstance(found, Allocated) is matches


@both
def test_bug_40_terms_are_alternatives(solve: Solve) -> None:
    """Terms are ORed, requirements within one are ANDed, labels with fields."""

    def term(zone: str, name: str) -> NodeSelectorTerm:
        return NodeSelectorTerm(
            (NodeSelectorRequirement("zone", "In", (zone,)),),
            (NodeSelectorRequirement("metadata.name", "In", (name,)),),
        )

    def fits(*terms: NodeSelectorTerm) -> bool:
        where = pool_slice("s", device("d1"), node="", node_selector=NodeSelector(terms))
        try:
            return isinstance(solve(on_node(ONE, where)), Allocated)
        except NodeSelectorError:  # a solution was found, but two terms cannot be passed on
            return len(terms) > 1

    assert fits(term("east", "node-1"))
    assert not fits(term("east", "node-2"))
    assert not fits(term("west", "node-1"))
    assert fits(term("west", "node-2"), term("east", "node-1"))
    assert not fits(term("west", "node-1"), term("east", "node-2"))


@both
def test_bug_40_devices_choose_their_nodes_themselves(solve: Solve) -> None:
    """With per-device node selection every device says where it is."""
    members = [
        device("d1", node_name="node-2"),
        device("d2", node_name="node-1"),
        device("d3", all_nodes=True),
        device("d4", node_selector=selector("zone", "west")),
        device("d5", node_selector=selector("zone", "east")),
        device("d6"),
    ]
    one = pool_slice("s", *members, node="", per_device_node_selection=True)
    assert granted(solve(on_node(ALL, one))) == [["d2", "d3", "d5"]]


@both
def test_bug_40_allocation_is_for_the_node_of_a_local_device(solve: Solve) -> None:
    """One device of the node ties the allocation to it, whatever the others say."""
    slices = [
        pool_slice("s1", device("d1"), node="", node_selector=selector("zone", "east")),
        pool_slice("s2", device("d2"), pool="pool-2"),
    ]
    found = solve(on_node(claim(exactly("r", 2)), *slices))
    assert isinstance(found, Allocated)
    name = NodeSelectorRequirement("metadata.name", "In", ("node-1",))
    assert found.results[0].node_selector == NodeSelector((NodeSelectorTerm((), (name,)),))


@both
def test_bug_40_allocation_is_for_the_nodes_of_all_devices(solve: Solve) -> None:
    """Requirements of network-attached devices are collected, equal ones once."""
    both_zones = NodeSelectorRequirement("zone", "In", ("east", "west"))
    same = NodeSelectorRequirement("zone", "In", ("west", "east"))
    rack = NodeSelectorRequirement("rack", "Exists")
    slices = [
        pool_slice(
            f"s{n}", device(f"d{n}"), pool=f"pool-{n}", node="",
            node_selector=NodeSelector((NodeSelectorTerm(requirements),)),
        )
        for n, requirements in enumerate([(both_zones,), (rack, same), (both_zones, rack)])
    ]  # fmt: skip
    found = solve(on_node(claim(exactly("r", 3)), *slices))
    assert isinstance(found, Allocated)
    expected = NodeSelector((NodeSelectorTerm((both_zones, rack)),))
    assert found.results[0].node_selector == expected


@both
def test_bug_40_allocation_everywhere_has_no_selector(solve: Solve) -> None:
    """Devices for all nodes are available everywhere."""
    one = pool_slice("s", device("d1"), node="", all_nodes=True)
    found = solve(on_node(ONE, one))
    assert isinstance(found, Allocated)
    assert found.results[0].node_selector is None


@both
def test_selector_of_several_terms_cannot_be_passed_on(solve: Solve) -> None:
    """A selector with more than one term is fatal, once the solution is found."""
    terms = selector("zone", "east").terms + selector("zone", "west").terms
    one = pool_slice("s", device("d1"), node="", node_selector=NodeSelector(terms))
    with pytest.raises(NodeSelectorError):
        solve(on_node(ONE, one))
    assert_does_not_fit(solve(on_node(claim(exactly("r", 2)), one)))


@both
@pytest.mark.parametrize(
    "broken",
    [
        selector("zone", "x", operator="Near"),
        selector("zone"),
        selector("zone", operator="NotIn"),
        selector("zone", "x", operator="Exists"),
        selector("zone", "x", operator="DoesNotExist"),
        selector("rack", operator="Gt"),
        selector("rack", "1", "2", operator="Lt"),
        selector("rack", "seven", operator="Gt"),
        selector("rack", "9223372036854775808", operator="Gt"),
        selector("not a key", operator="Exists"),
        selector("zone", "not a value"),
        NodeSelector(selector("zone", "east").terms + selector("zone", "x", operator="Near").terms),
        NodeSelector(
            (NodeSelectorTerm((), (NodeSelectorRequirement("metadata.name", "Exists"),)),)
        ),
        NodeSelector(
            (NodeSelectorTerm((), (NodeSelectorRequirement("metadata.name", "In", ("a", "b")),)),)
        ),
    ],
)
def test_bad_node_selector_is_an_error(solve: Solve, broken: NodeSelector) -> None:
    """One error in any term of any slice is fatal, before anything else is looked at."""
    slices = [
        pool_slice("good", device("d1")),
        pool_slice("bad", device("d2"), pool="pool-2", node="", node_selector=broken),
    ]
    missing_class = claim(exactly("r", of="no-such-class"))
    with pytest.raises(AllocationError) as caught:
        solve(on_node(missing_class, *slices))
    assert caught.value.reason == "node-selector"
    assert isinstance(caught.value, NodeSelectorError)
    assert caught.value.slice_name == "bad"


@both
def test_bad_node_selector_of_a_slice_with_a_node_is_not_read(solve: Solve) -> None:
    """A slice that names its node has no use for a selector."""
    bad = selector("zone", "x", operator="Near")
    one = pool_slice("s", device("d1"), node_selector=bad)
    assert granted(solve(on_node(ONE, one))) == [["d1"]]


# --- optional node operations ------------------------------------------------------------------


@both
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("off", [[], ["OptionalNodeOperations"]], ids=["on", "off"])
def test_skipped_node_operations_need_a_node_that_skips(
    solve: Solve, declared: bool, off: list[str]
) -> None:
    """A slice with skipNodeOperations is for nodes that declare the feature, if it is on."""
    slices = [
        pool_slice("s1", device("d1"), skip_node_operations=("prepare",)),
        pool_slice("s2", device("d2"), pool="pool-2"),
    ]
    whole = problem(ONE, *slices, off=off)
    if declared:
        features = ("DRAOptionalNodeOperations",)
        whole = attrs.evolve(whole, node=attrs.evolve(whole.node, declared_features=features))
    found = solve(whole)
    assert granted(found) == [["d1"] if declared and not off else ["d2"]]
    assert isinstance(found, Allocated)
    skipped = found.results[0].results[0].skip_node_operations
    assert skipped == (("prepare",) if declared and not off else ())


# --- pools that define their counters wrongly --------------------------------------------------


@both
@pytest.mark.parametrize(
    "slices",
    [
        [pool_slice("s", device("d1", counters={"other": {"c": "1"}}), offers={"cs": {"c": "1"}})],
        [pool_slice("s", device("d1", counters={"cs": {"d": "1"}}), offers={"cs": {"c": "1"}})],
        [
            pool_slice("s", device("d1"), offers={"cs": {"c": "1"}}, count=2),
            pool_slice("t", offers={"cs": {"c": "1"}}, count=2),
        ],
        [
            pool_slice("s", device("d1"), count=2),
            pool_slice("t", device("far", counters={"cs": {"c": "1"}}), count=2, node="node-2"),
        ],
        [pool_slice("s", device("d1"), count=1), pool_slice("t", count=3)],
    ],
    ids=["no set", "no counter", "set twice", "no set for a far device", "counts differ"],
)
def test_invalid_pools(solve: Solve, slices: list[Any]) -> None:
    """Counters that are not defined, or sets defined twice, spoil the pool."""
    assert_does_not_fit(solve(problem(ONE, *slices)), "invalid-pool")


@both
def test_device_of_another_node_uses_up_counters(solve: Solve) -> None:
    """Devices of the pool that are not for this node still hold what they take."""
    slices = [
        pool_slice("s", device("d1", counters={"cs": {"c": "1"}}), count=3),
        pool_slice("t", device("far", counters={"cs": {"c": "1"}}), count=3, node="node-2"),
        pool_slice("u", count=3, offers={"cs": {"c": "1"}}, node="", all_nodes=True),
    ]
    assert granted(solve(problem(ONE, *slices))) == [["d1"]]
    assert_does_not_fit(solve(problem(ONE, *slices, allocated=in_use("far"))))


@both
def test_constraint_across_pools_and_order_of_requests(solve: Solve) -> None:
    """A pick of the first request is given back for what a later one needs."""
    members = [device("d1", {"numa": 0}), device("d2", {"numa": 1})]
    slices = [
        pool_slice("s1", *members),
        pool_slice("s2", device("x1", {f"{DRIVER}/numa": 1}), driver="driver-b"),
    ]
    requests = [exactly("r0"), exactly("r1", of="class-b")]
    found = solve(problem(claim(*requests, constraints=[match("numa")]), *slices))
    assert served(found) == [[("r0", "d2"), ("r1", "x1")]]
