"""One pod's cycle with structured claims: each step, in order and out of order."""

import json
import pickle
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from dra_core.api.objects import FINALIZER
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_table import (
    FINAL,
    MOVES,
    CycleEvent,
    CycleResult,
    CycleState,
    cycle_table,
)
from dra_core.scheduling.cycle_verdicts import (
    NodeFits,
    NodeProblem,
    NodeReason,
    NodeUnfit,
    Passed,
    Stopped,
    StopReason,
)
from dra_core.scheduling.errors import (
    CycleStateError,
    NotFilteredError,
    SeparateLocksError,
    StaleInputError,
    SuitableNodesError,
    UnknownClaimKindError,
)
from support import allocation_builders as build
from support.claims import named
from support.cycle_site import NOW, Site, claim, fitting, is_in, pod

POD = pod("c")


@pytest.fixture
def site() -> Site:
    """Two nodes with two devices each, and one unallocated claim."""
    site = Site()
    site.add(*build.CLASSES)
    site.devices("node-1", "a1", "a2")
    site.devices("node-2", "b1", "b2")
    site.add(claim("c"))
    return site


# --- the way


def test_from_claim_to_bound_pod(site: Site) -> None:
    """Structured claim, no trouble: every step passes, and what is written is right."""
    cycle = site.cycle(POD)
    assert cycle.pre_enqueue() == Passed()
    assert cycle.pre_filter(NOW) == Passed()
    verdicts = [cycle.filter(node) for node in site.nodes.values()]
    assert all(isinstance(verdict, NodeFits) for verdict in verdicts)
    assert cycle.score(["node-1", "node-2"]) == {"node-1": 0, "node-2": 0}
    assert cycle.reserve("node-2") == Passed()
    assert site.in_use() == ["b1"]
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BINDABLE)
    assert site.take_sent() == ["patch resourceclaims c", "patch resourceclaims/status c"]
    stored = site.stored("c")
    assert stored.metadata.finalizers == (FINALIZER,)
    assert stored.allocation is not None
    assert [result.device for result in stored.allocation.results] == ["b1"]
    assert [(entry.name, entry.uid) for entry in stored.reserved_for] == [("pod", "pod-uid")]
    assert site.tracker.in_flight() == ()
    assert site.in_use() == ["b1"]
    site.drive(cycle, cycle.post_bind())
    assert is_in(cycle, CycleState.BOUND)
    assert cycle.verdict == Passed()
    assert cycle.troubles == ()
    assert site.take_sent() == []


def test_the_scheduling_part_makes_no_request(site: Site) -> None:
    """Nothing blocks: the scheduling part makes no request."""
    cycle = site.reserved(POD)
    assert cycle.request is None
    assert site.sent == []
    assert site.stored("c").allocation is None


def test_a_pod_without_claims_passes(site: Site) -> None:
    """Nothing to do is done at once."""
    cycle = site.bound(pod())
    assert site.sent == []
    site.drive(cycle, cycle.post_bind())
    assert is_in(cycle, CycleState.BOUND)


def test_inputs_survive(site: Site) -> None:
    """What is given to a cycle is not changed."""
    before = json.dumps(site.server.objects("resourceslices"))
    cached = site.claims.get(site.stored("c").metadata.key)
    again = attrs.evolve(cached)
    site.reserved(POD)
    assert cached == again
    assert json.dumps(site.server.objects("resourceslices")) == before


def test_unreserve_gives_everything_back(site: Site) -> None:
    """After reserve: the devices are free again, and no request is needed."""
    cycle = site.reserved(POD)
    assert cycle.unreserve() is None
    assert is_in(cycle, CycleState.OVER)
    assert site.in_use() == []
    assert site.tracker.in_flight() == ()


def test_unreserve_after_binding(site: Site) -> None:
    """Claims that name the pod and are allocated: the reservation is removed, the rest stays."""
    cycle = site.bound(POD)
    site.take_sent()
    site.drive(cycle, cycle.unreserve())
    assert site.take_sent() == ["patch resourceclaims/status c"]
    stored = site.stored("c")
    assert stored.reserved_for == ()
    assert stored.allocation is not None
    assert site.claims.get(stored.metadata.key).reserved_for == ()
    assert site.in_use() == [stored.allocation.results[0].device]
    assert is_in(cycle, CycleState.OVER)


def test_an_allocated_claim_is_only_reserved(site: Site) -> None:
    """Already allocated: one patch, and only the nodes of the allocation."""
    site.bound(POD, "node-2")
    site.show()
    site.take_sent()
    other = pod("c", name="other")
    cycle = site.filtered(other)
    assert fitting(cycle) == ["node-2"]
    assert cycle.nodes["node-1"] == NodeUnfit(
        site.nodes["node-1"], (NodeProblem(NodeReason.ELSEWHERE, "c"),), ("uid-c",)
    )
    cycle.reserve("node-2")
    assert site.tracker.in_flight() == ()
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BINDABLE)
    assert site.take_sent() == ["patch resourceclaims/status c"]
    assert {entry.uid for entry in site.stored("c").reserved_for} == {"pod-uid", "other-uid"}


def test_what_is_reserved_already_needs_no_request(site: Site) -> None:
    """Already reserved for the pod → no request."""
    site.bound(POD, "node-2")
    site.show()
    site.take_sent()
    site.bound(POD, "node-2")
    assert site.take_sent() == []


def test_no_node_fits(site: Site) -> None:
    """The reason is no node, and each node says why."""
    site.add(claim("big", build.exactly("r", 3)))
    cycle = site.filtered(pod("big"))
    assert fitting(cycle) == []
    for verdict in cycle.nodes.values():
        assert isinstance(verdict, NodeUnfit)
        assert [problem.reason for problem in verdict.problems] == [NodeReason.DOES_NOT_FIT]
    assert cycle.post_filter() is None
    assert is_in(cycle, CycleState.OVER)
    assert cycle.verdict == Stopped(StopReason.NO_NODE)


def test_all_claims_of_a_pod_are_allocated_together(site: Site) -> None:
    """Two claims of one device each, on a node that has two; three claims fit nowhere."""
    site.add(claim("d"), claim("e"))
    cycle = site.bound(pod("c", "d"))
    assert site.in_use() == ["a1", "a2"]
    assert cycle.verdict == Passed()
    site.show()
    assert fitting(site.filtered(pod("e", name="third"))) == ["node-2"]


def test_two_entries_may_mean_one_claim(site: Site) -> None:
    """A claim that a pod names twice is allocated once."""
    site.bound(pod(named("first", "c"), named("second", "c")))
    assert site.in_use() == ["a1"]
    assert len(site.stored("c").reserved_for) == 1


# --- order


def test_the_table_is_what_the_cycle_moves_by() -> None:
    """Transitions are data; every state but the last two is left, and every one is reached."""
    table = cycle_table()
    assert {(row.state, row.event) for row in table} == set(MOVES)
    for row in table:
        assert MOVES[row.state, row.event][row.result] is row.next
    assert len(set(table)) == len(table)
    assert {row.state for row in table} == set(CycleState) - FINAL
    assert {row.next for row in table} | {CycleState.QUEUED} == set(CycleState)
    assert {row.event for row in table} == set(CycleEvent)


def test_only_four_steps_make_requests() -> None:
    """Requests come at pre-bind, unreserve, post-filter and post-bind."""
    asking = {row.event for row in cycle_table() if row.result is CycleResult.REQUEST}
    assert asking == {
        CycleEvent.PRE_BIND,
        CycleEvent.UNRESERVE,
        CycleEvent.POST_FILTER,
        CycleEvent.POST_BIND,
        CycleEvent.ANSWERED,
    }


def test_every_way_ends() -> None:
    """From every state an end can be reached."""
    reaches = set(FINAL)
    while True:
        more = {row.state for row in cycle_table() if row.next in reaches} - reaches
        if not more:
            break
        reaches |= more
    assert reaches == set(CycleState)


def in_state(site: Site, state: CycleState) -> PodCycle:
    """A cycle in that state."""
    cycle = site.cycle(POD)
    if state is CycleState.QUEUED:
        return cycle
    cycle.pre_enqueue()
    if state is CycleState.ADMITTED:
        return cycle
    if state in (CycleState.RESERVED, CycleState.OVER):
        cycle = site.reserved(POD)
        if state is CycleState.OVER:
            cycle.unreserve()
        return cycle
    if state is CycleState.BINDING:
        cycle = site.reserved(POD)
        cycle.pre_bind(NOW)
        return cycle
    if state in (CycleState.BINDABLE, CycleState.BOUND, CycleState.UNDOING):
        cycle = site.bound(POD)
        if state is CycleState.BOUND:
            cycle.post_bind()
        if state is CycleState.UNDOING:
            cycle.unreserve()
        return cycle
    return site.filtered(POD)


CALLS: dict[CycleEvent, Callable[[PodCycle], object]] = {
    CycleEvent.PRE_ENQUEUE: lambda cycle: cycle.pre_enqueue(),
    CycleEvent.PRE_FILTER: lambda cycle: cycle.pre_filter(NOW),
    CycleEvent.FILTER: lambda cycle: cycle.filter(Site().nodes["node-1"]),
    CycleEvent.SCORE: lambda cycle: cycle.score([]),
    CycleEvent.RESERVE: lambda cycle: cycle.reserve("node-1"),
    CycleEvent.PRE_BIND: lambda cycle: cycle.pre_bind(NOW),
    CycleEvent.ANSWERED: lambda cycle: cycle.answered(200, {}),
    CycleEvent.LOOK_AGAIN: lambda cycle: cycle.look_again(NOW),
    CycleEvent.UNRESERVE: lambda cycle: cycle.unreserve(),
    CycleEvent.POST_FILTER: lambda cycle: cycle.post_filter(),
    CycleEvent.POST_BIND: lambda cycle: cycle.post_bind(),
}


@pytest.mark.parametrize(
    "state",
    [
        CycleState.QUEUED,
        CycleState.ADMITTED,
        CycleState.FILTERING,
        CycleState.RESERVED,
        CycleState.BINDING,
        CycleState.BINDABLE,
        CycleState.UNDOING,
        CycleState.BOUND,
        CycleState.OVER,
    ],
)
def test_illegal_calls_raise_and_change_nothing(site: Site, state: CycleState) -> None:
    """Illegal calls raise a typed error that says what is allowed."""
    cycle = in_state(site, state)
    assert is_in(cycle, state)
    allowed = {event for found, event in MOVES if found is state}
    request, verdict = cycle.request, cycle.verdict
    for event, call in CALLS.items():
        if event in allowed:
            continue
        with pytest.raises(CycleStateError) as caught:
            call(cycle)
        assert (caught.value.state, caught.value.event) == (state.value, event.value)
        assert set(caught.value.allowed) == {found.value for found in allowed}
        assert (cycle.state, cycle.request, cycle.verdict) == (state, request, verdict)


def test_only_a_node_that_was_found_to_fit_can_be_picked(site: Site) -> None:
    """Reserve and score refuse what was not filtered, or does not fit."""
    site.add(claim("big", build.exactly("r", 3)))
    cycle = site.filtered(pod("big"))
    for name in ("node-1", "elsewhere"):
        with pytest.raises(NotFilteredError):
            cycle.reserve(name)
        with pytest.raises(NotFilteredError):
            cycle.score([name])
    assert is_in(cycle, CycleState.FILTERING)


def test_times_need_a_zone(site: Site) -> None:
    """A time without zone would mean another time on another machine."""
    cycle = site.cycle(POD)
    cycle.pre_enqueue()
    with pytest.raises(ValueError, match="time zone"):
        cycle.pre_filter(NOW.replace(tzinfo=None))
    assert is_in(cycle, CycleState.ADMITTED)


@pytest.mark.parametrize(
    "error",
    [
        CycleStateError("ns/pod", "queued", "filter", ("pre_enqueue",)),
        CycleStateError("ns/pod", "over", "filter", ()),
        NotFilteredError("ns/pod", "node-1"),
        StaleInputError(3, 4),
        SeparateLocksError("DeviceClass"),
        UnknownClaimKindError("ns/claim", ""),
        SuitableNodesError("ns/claim", "", "class", "no operator"),
    ],
)
def test_errors_pickle_and_say_what_is_wrong(error: Any) -> None:
    """Facts as fields; the text names them; embedders with worker processes pickle them."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    facts = [getattr(error, name) for name in error.__match_args__]
    assert [getattr(copy, name) for name in error.__match_args__] == facts
    assert facts
    for fact in facts:
        assert not isinstance(fact, str) or fact in str(error)
