"""Pods of one gang: what is in flight is shared in a session; and claims of pod groups."""

import attrs
import pytest

from dra_core.api.core import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodGroup,
    PodResourceClaimStatus,
)
from dra_core.claims import patches
from dra_core.claims.binding import RetryLater, RetryReason
from dra_core.claims.reservation import pod_reference
from dra_core.errors import PodGroupMismatchError
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_claims import CycleSettings
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import (
    NodeProblem,
    NodeReason,
    NodeUnfit,
    Passed,
    Stopped,
    StopReason,
)
from dra_core.testing.claim_controller import ClaimController
from support import allocation_builders as build
from support import in_use
from support.claims import template
from support.cycle_site import NOW, Site, claim, fitting, is_in, pod

GANG = "gang-1"
P1, P2 = pod("c", name="p1"), pod("c", name="p2")


@pytest.fixture
def site() -> Site:
    """Two nodes with two devices each, and an unallocated claim that a gang shares."""
    site = Site()
    site.add(*build.CLASSES)
    site.devices("node-1", "a1", "a2")
    site.devices("node-2", "b1", "b2")
    site.add(claim("c"))
    return site


def test_bug_51_shared_pending_claim_refuses_the_second_pod(site: Site) -> None:
    """p1 has c in flight; p2 of the same gang uses the pending allocation (k/k#137647)."""
    first = site.reserved(P1, session=GANG)
    second = site.reserved(P2, session=GANG)
    assert second.verdict == Passed()
    assert site.in_use() == ["a1"]
    site.drive(first, first.pre_bind(NOW))
    site.drive(second, second.pre_bind(NOW))
    assert is_in(second, CycleState.BINDABLE)
    stored = site.stored("c")
    assert {entry.uid for entry in stored.reserved_for} == {"p1-uid", "p2-uid"}
    assert site.take_sent() == [
        "patch resourceclaims c",
        "patch resourceclaims/status c",
        "patch resourceclaims/status c",
    ]


def test_other_sessions_wait(site: Site) -> None:
    """Only pods of one gang in one session share an entry."""
    site.reserved(P1, session=GANG)
    for session in (None, "gang-2"):
        cycle = site.cycle(P2, session=session)
        cycle.pre_enqueue()
        verdict = cycle.pre_filter(NOW)
        assert isinstance(verdict, Stopped)
        assert verdict.reason is StopReason.IN_FLIGHT


def test_bug_54_pending_allocations_node_selector_unchecked(site: Site) -> None:
    """c pending on node1's device; p2 is filtered on node2: only node1 (k/k#140089)."""
    site.reserved(P1, "node-1", session=GANG)
    second = site.filtered(P2, session=GANG)
    assert fitting(second) == ["node-1"]
    assert second.nodes["node-2"] == NodeUnfit(
        site.nodes["node-2"], (NodeProblem(NodeReason.ELSEWHERE, "c"),), ("uid-c",)
    )


def test_what_is_in_flight_is_not_deallocated(site: Site) -> None:
    """A pending allocation in the way is not stored: there is nothing to deallocate."""
    site.reserved(P1, "node-1", session=GANG)
    del site.nodes["node-1"]
    second = site.filtered(P2, session=GANG)
    assert second.post_filter() is None
    assert second.verdict == Stopped(StopReason.NO_NODE)


def test_bug_56_peers_identical_write_counts_as_conflict(site: Site) -> None:
    """p1 and p2 share pending c; p1 writes the allocation first: p2 just adds itself
    (k/k#140053)."""
    first = site.reserved(P1, session=GANG)
    second = site.reserved(P2, session=GANG)
    site.drive(second, second.pre_bind(NOW))
    site.take_sent()
    site.drive(first, first.pre_bind(NOW))
    assert is_in(first, CycleState.BINDABLE)
    assert site.take_sent() == ["patch resourceclaims/status c"]
    assert site.tracker.in_flight() == ()


def test_a_peer_writes_between_filter_and_reserve(site: Site) -> None:
    """What was pending when the pod was filtered is stored when it reserves: still fine."""
    first = site.reserved(P1, session=GANG)
    second = site.filtered(P2, session=GANG)
    site.drive(first, first.pre_bind(NOW))
    assert second.reserve("node-1") == Passed()
    site.drive(second, second.pre_bind(NOW))
    assert is_in(second, CycleState.BINDABLE)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_bug_52_pending_entry_and_its_user_count_changed_apart(
    site: Site, order: tuple[int, int]
) -> None:
    """One pod lets go, in either order: the entry stays until the last one (k/k#137897)."""
    cycles = [site.reserved(P1, session=GANG), site.reserved(P2, session=GANG)]
    cycles[order[0]].unreserve()
    assert site.in_use() == ["a1"]
    last = cycles[order[1]]
    last.unreserve()
    assert site.in_use() == []
    site.check()


def test_what_a_peer_has_read_is_not_forgotten(site: Site) -> None:
    """Another scheduler allocates the claim elsewhere, one pod of the gang reads that, and all
    give up: the devices that the other scheduler picked stay in use."""
    first, second = site.reserved(P1, session=GANG), site.reserved(P2, session=GANG)
    anywhere = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("x", "Exists"),)),))
    device = in_use.device("b1", "node-2", build.DRIVER)
    theirs = in_use.allocation(device, node_selector=anywhere)
    finalizer = patches.add_finalizer(site.stored("c"))
    assert finalizer is not None
    assert site.server.send(finalizer).status == 200
    other = pod_reference(pod(name="other"))
    assert site.server.send(patches.allocate(site.stored("c"), theirs, other)).status == 200
    for cycle in (second, first):
        if cycle is second:
            site.drive(cycle, cycle.pre_bind(NOW))
            assert isinstance(cycle.verdict, Stopped)
            assert cycle.verdict.reason is StopReason.CLAIM_LOST
        site.drive(cycle, cycle.unreserve())
        assert "b1" in site.in_use()
    assert site.in_use() == ["b1"]


def test_bug_73_in_flight_entries_survive_an_aborted_session(site: Site) -> None:
    """Gang session allocates 3 of 4, discards: none remain (volcano#5103, #5884)."""
    site.add(*(claim(f"g{number}") for number in range(5)))
    cycles: list[PodCycle] = []
    for number in range(4):
        one = site.reserved(pod(f"g{number}", name=f"gang-{number}"), session=GANG)
        cycles.append(one)
    last = site.filtered(pod("g4", name="gang-4"), session=GANG)
    assert fitting(last) == []
    for cycle in cycles:
        assert cycle.unreserve() is None
        assert is_in(cycle, CycleState.OVER)
    assert site.tracker.in_flight() == ()
    assert site.in_use() == []
    # The host may also discard the session in one go, and drop the cycles.
    site.reserved(pod("g0", name="gang-0"), session=GANG)
    site.tracker.abort(GANG)
    assert site.in_use() == []


WHOLE_OR_HALF = build.first(
    "r",
    build.sub("whole", 1, 'device.attributes["driver-a"].kind == "whole"'),
    build.sub("half", 1, 'device.attributes["driver-a"].kind == "half"'),
)


def partitioned(site: Site) -> None:
    """A device that can be used whole, or as two halves."""
    kinds = {"whole": "2", "half-1": "1", "half-2": "1"}
    site.add(
        build.pool_slice("counters", pool="p", offers={"gpu": {"slots": "2"}}, count=2),
        build.pool_slice(
            "parts",
            *(
                build.device(
                    name, {"kind": name.partition("-")[0]}, counters={"gpu": {"slots": slots}}
                )
                for name, slots in kinds.items()
            ),
            pool="p",
            count=2,
        ),
    )


def test_bug_57_greedy_choice_starves_the_gang() -> None:
    """Each of two claims wants whole or half of one device: together they get two halves, one
    after the other the first takes all (k/k#138765, a known limit)."""
    site = Site(nodes=("node-1",))
    site.add(*build.CLASSES)
    partitioned(site)
    site.add(claim("c", WHOLE_OR_HALF), claim("d", WHOLE_OR_HALF))
    together = site.filtered(pod("c", "d"))
    assert fitting(together) == ["node-1"]
    site.reserved(pod("c", "d"))
    assert site.in_use() == ["half-1", "half-2"]
    site.tracker.remove("uid-c")
    site.tracker.remove("uid-d")
    site.reserved(pod("c", name="p1"), session=GANG)
    assert site.in_use() == ["whole"]
    assert fitting(site.filtered(pod("d", name="p2"), session=GANG)) == []


# --- claims of the group itself


GROUP = PodGroup(ObjectMeta("gang", "default", "gang-uid"), (template("t"),))


def member(name: str) -> Pod:
    """A pod of the group that uses the group's claim."""
    made = pod(template("t"), name=name, pod_group_name="gang")
    return attrs.evolve(made, resource_claim_statuses=(PodResourceClaimStatus("t", "group-claim"),))


def group_claim(site: Site) -> None:
    """The claim that was generated for the group."""
    made = claim("group-claim")
    owner = OwnerReference("scheduling.k8s.io/v1alpha1", "PodGroup", "gang", "gang-uid", True)
    metadata = attrs.evolve(made.metadata, owner_references=(owner,))
    site.add(attrs.evolve(made, metadata=metadata))


def test_a_claim_of_the_group_is_reserved_for_the_group(site: Site) -> None:
    """Whom to enter: the PodGroup, if the claim is the group's own."""
    group_claim(site)
    settings = CycleSettings(workload_claims=True)
    first = site.bound(member("m1"), group=GROUP, settings=settings)
    site.show()
    site.take_sent()
    second = site.bound(member("m2"), group=GROUP, settings=settings)
    assert site.take_sent() == []
    reserved = [(entry.resource, entry.uid) for entry in site.stored("group-claim").reserved_for]
    assert reserved == [("podgroups", "gang-uid")]
    # Entries of a PodGroup stay: other pods of the group rely on them.
    site.drive(first, first.unreserve())
    site.drive(second, second.unreserve())
    assert site.take_sent() == []
    assert len(site.stored("group-claim").reserved_for) == 1


def test_workload_claims_are_a_policy(site: Site) -> None:
    """Unless the caller says so the group's claim is not the pod's."""
    group_claim(site)
    cycle = site.cycle(member("m1"), group=GROUP)
    verdict = cycle.pre_enqueue()
    assert isinstance(verdict, Stopped)
    assert verdict.reason is StopReason.UNRESOLVED


def test_a_pod_of_another_group(site: Site) -> None:
    """The pod must name that group, else error."""
    stranger = attrs.evolve(P1, pod_group_name="other")
    cycle = site.cycle(stranger, group=GROUP, settings=CycleSettings(workload_claims=True))
    cycle.pre_enqueue()
    with pytest.raises(PodGroupMismatchError):
        cycle.pre_filter(NOW)


def test_selectors_of_other_kinds_of_nodes(site: Site) -> None:
    """An entry in flight for many nodes leaves the choice to the peer."""
    anywhere = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("x", "DoesNotExist"),)),))
    allocation = in_use.allocation(in_use.device("n1", "net", "driver-a"), node_selector=anywhere)
    stored = site.claims.list()[0]
    site.tracker.start([attrs.evolve(stored, allocation=allocation)], "p1-uid", session=GANG)
    assert fitting(site.filtered(P2, session=GANG)) == ["node-1", "node-2"]


def test_what_a_peer_wrote_and_lost_again_is_not_written_once_more() -> None:
    """A shared entry was written by a peer, the claim deallocated, its device given to
    another claim: the pod that is late finds nothing of its own in flight, and waits."""
    site = Site(nodes=("node-1",))
    site.add(*build.CLASSES)
    site.devices("node-1", "a1")
    site.add(claim("c"), claim("d"))
    late, peer = site.reserved(P1, session="gang"), site.reserved(P2, session="gang")
    site.drive(peer, peer.pre_bind(NOW))
    ClaimController(site.server).settle()  # no such pods are stored: it deallocates the claim
    for informer in site.informers:
        informer.show()
    other = site.reserved(pod("d", name="p3"))
    site.drive(other, other.pre_bind(NOW))
    site.drive(late, late.pre_bind(NOW))
    stopped = late.verdict
    assert isinstance(stopped, Stopped)
    assert isinstance(stopped.cause, RetryLater)
    assert stopped.cause.reason is RetryReason.DEALLOCATED
    assert site.stored("c").allocation is None
    site.check()
