"""Pre-bind and unreserve of structured claims: what is sent, and what answers lead to."""

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from dra_core.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.api.objects import FINALIZER, ResourceClaim
from dra_core.api.request import ApiRequest, Verb
from dra_core.api.wire import decode_resource_claim, encode
from dra_core.claims.binding import (
    BindingPlan,
    Impossible,
    ImpossibleReason,
    RetryLater,
    RetryReason,
)
from dra_core.claims.reservation import has_consumer
from dra_core.errors import PatchError
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_claims import CycleSettings
from dra_core.scheduling.cycle_kinds import ClaimForm
from dra_core.scheduling.cycle_structured import StructuredClaims
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import Passed, Stopped, StopReason, TroubleKind
from dra_core.scheduling.errors import (
    ClaimInFlightError,
    DevicesTakenError,
    NoUidError,
    PoolsChangedError,
)
from dra_core.testing.faults import Fault, script
from support import allocation_builders as build
from support import in_use
from support.cycle_site import MADE_UP, NOW, TIMESTAMP, Site, claim, fitting, is_in, key, pod
from support.pods import container
from support.tracking import at, finalized, with_devices

POD = pod("c")
FAR = NodeSelector(
    (NodeSelectorTerm((), (NodeSelectorRequirement("metadata.name", "In", ("far",)),)),)
)
A1 = in_use.device("a1", "node-1", build.DRIVER)


@pytest.fixture
def site() -> Site:
    """One node with two devices, and two unallocated claims."""
    return make_site()


def make_site() -> Site:
    """The same without a fixture."""
    site = Site(nodes=("node-1",))
    site.add(*build.CLASSES)
    site.devices("node-1", "a1", "a2")
    site.add(claim("c"), claim("d"))
    return site


def stop_of(cycle: PodCycle) -> Stopped:
    """Why the attempt has failed."""
    assert is_in(cycle, CycleState.BROKEN)
    assert isinstance(cycle.verdict, Stopped)
    return cycle.verdict


def on_request(number: int, action: Callable[[], object]) -> Callable[[ApiRequest], None]:
    """Do something just before the request of that number (from 1) is sent."""
    count = 0

    def before(_request: ApiRequest) -> None:
        nonlocal count
        count += 1
        if count == number:
            action()

    return before


# --- between reserve and the first request


def test_devices_that_were_taken_meanwhile(site: Site) -> None:
    """Devices that somebody took since they were picked: pick again."""
    cycle = site.filtered(POD)
    site.add(with_devices(claim("other"), A1))
    verdict = cycle.reserve("node-1")
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.retry) == (StopReason.TAKEN, True)
    assert isinstance(verdict.cause, DevicesTakenError)
    assert is_in(cycle, CycleState.BROKEN)
    assert cycle.unreserve() is None
    assert is_in(cycle, CycleState.OVER)
    assert site.in_use() == ["a1"]
    assert fitting(site.filtered(POD)) == ["node-1"]


def test_pools_that_changed_meanwhile(site: Site) -> None:
    """Use of the pool changed since the devices were picked: pick again."""
    cycle = site.filtered(POD)
    site.add(with_devices(claim("other"), in_use.device("a2", "node-1", build.DRIVER)))
    verdict = cycle.reserve("node-1")
    assert isinstance(verdict, Stopped)
    assert isinstance(verdict.cause, PoolsChangedError)
    assert verdict.retry


def test_two_cycles_for_one_claim(site: Site) -> None:
    """Two schedulers' threads in one process: one has the claim in flight, the other waits."""
    first, second = site.filtered(POD), site.filtered(pod("c", name="other"))
    first.reserve("node-1")
    verdict = second.reserve("node-1")
    assert isinstance(verdict, Stopped)
    assert verdict.reason is StopReason.IN_FLIGHT
    assert isinstance(verdict.cause, ClaimInFlightError)
    second.unreserve()
    assert site.in_use() == ["a1"]


def test_all_claims_are_taken_or_none(site: Site) -> None:
    """Two claims, the second of which is in flight: nothing of the first stays taken."""
    both, one = site.filtered(pod("c", "d")), site.filtered(pod("d", name="other"))
    one.reserve("node-1")
    assert isinstance(both.reserve("node-1"), Stopped)
    both.unreserve()
    assert len(site.tracker.in_flight()) == 1


# --- writing


def test_override_while_the_finalizer_shows(site: Site) -> None:
    """Origin of the override: our own finalizer comes back through the informer, and the
    devices stay taken (k/k#123516)."""
    cycle = site.reserved(POD)
    site.drive(cycle, cycle.pre_bind(NOW), on_request(2, lambda: shows_and_checks(site)))
    assert is_in(cycle, CycleState.BINDABLE)


def shows_and_checks(site: Site) -> None:
    """The informer shows the claim without allocation; its device is in use all the same."""
    site.show()
    assert site.claims.get(key("c")).metadata.finalizers == (FINALIZER,)
    assert site.claims.get(key("c")).allocation is None
    assert site.in_use() == ["a1"]


def test_the_time_of_the_allocation(site: Site) -> None:
    """With binding conditions on, allocationTimestamp = the caller's time."""
    site.bound(POD)
    allocation = site.stored("c").allocation
    assert allocation is not None
    assert allocation.allocation_timestamp == TIMESTAMP
    site.bound(pod("d", name="other"), settings=CycleSettings(binding_conditions=False))
    allocation = site.stored("d").allocation
    assert allocation is not None
    assert allocation.allocation_timestamp == ""


def test_bug_62_later_failure_forgets_an_earlier_write(site: Site) -> None:
    """Claim status written, then a later request fails: its devices stay in use at every
    moment, also before the informer catches up (k/k#133590)."""
    cycle = site.reserved(pod("c", "d"))
    site.line.source = script([None, None, *([Fault.UNAVAILABLE] * 20)])
    site.drive(cycle, cycle.pre_bind(NOW))
    stop_of(cycle)
    assert site.stored("c").allocation is not None
    site.line.source = script(())
    site.drive(cycle, cycle.unreserve())
    assert "a1" in site.in_use()
    assert site.claims.get(key("c")).allocation is not None
    site.show()
    assert "a1" in site.in_use()


def test_second_claim_fails_first_stays_reserved_until_unreserve(site: Site) -> None:
    """A pod with two claims whose second fails at binding: every claim is compared, the
    first stays reserved until unreserve."""
    cycle = site.reserved(pod("c", "d"))

    def delete() -> None:
        site.server.unseed("resourceclaims", "default", "d")

    site.drive(cycle, cycle.pre_bind(NOW), on_request(3, delete))
    verdict = stop_of(cycle)
    assert (verdict.reason, verdict.pod_claim) == (StopReason.CLAIM_LOST, "d")
    assert verdict.cause == Impossible(ImpossibleReason.GONE)
    first = site.stored("c")
    assert [entry.uid for entry in first.reserved_for] == ["pod-uid"]
    assert first.allocation is not None
    assert site.in_use() == ["a1", "a2"]
    request = cycle.unreserve()
    assert request is not None
    assert site.in_use() == ["a1"]  # given back first: that needs no answer
    site.drive(cycle, request)
    assert site.stored("c").reserved_for == ()
    assert site.stored("c").allocation is not None
    assert site.in_use() == ["a1"]
    assert site.tracker.in_flight() == ()


def test_bug_58_claim_deallocated_while_reserving(site: Site) -> None:
    """Between read and patch, the claim loses its allocation: retriable, nothing follows a
    missing allocation (k/k#137371)."""
    site.bound(POD)
    site.drive(*unreserving(site))
    site.show()
    cycle = site.reserved(pod("c", name="other"))
    site.drive(
        cycle,
        cycle.pre_bind(NOW),
        on_request(1, lambda: site.change_status("c", allocation=None, reservedFor=None)),
    )
    verdict = stop_of(cycle)
    assert (verdict.reason, verdict.retry) == (StopReason.NOT_BOUND, True)
    assert isinstance(verdict.cause, RetryLater)
    assert verdict.cause.reason in (RetryReason.DEALLOCATED, RetryReason.ALLOCATION_CHANGED)
    site.drive(cycle, cycle.unreserve())
    site.show()
    assert site.stored("c").reserved_for == ()
    site.bound(pod("c", name="other"))


def unreserving(site: Site) -> tuple[PodCycle, ApiRequest | None]:
    """A cycle that unreserves the claim of POD."""
    site.show()
    cycle = site.bound(POD)
    return cycle, cycle.unreserve()


def test_bug_63_reused_claim_without_its_finalizer(site: Site) -> None:
    """Claim allocated earlier, finalizer lost; a new pod uses it: the finalizer is put back in
    the same write path (k/k#124931)."""
    site.bound(POD)
    lost = site.stored("c")
    metadata = attrs.evolve(lost.metadata, finalizers=())
    site.add(attrs.evolve(lost, metadata=metadata))
    site.take_sent()
    cycle = site.reserved(pod("c", name="other"))
    site.drive(cycle, cycle.pre_bind(NOW), checked=False)
    assert is_in(cycle, CycleState.BINDABLE)
    assert site.take_sent() == ["patch resourceclaims c", "patch resourceclaims/status c"]
    assert site.stored("c").metadata.finalizers == (FINALIZER,)


def test_bug_74_pod_with_preset_node_name_reserves(site: Site) -> None:
    """pod.spec.nodeName set, claim allocated, reservedFor empty: only reserving is left
    (k/k#114005, k/k#118209)."""
    site.add(finalized(with_devices(claim("e"), A1), 1))
    preset = attrs.evolve(pod("e"), node_name="node-1")
    cycle = site.cycle(preset)
    cycle.pre_enqueue()
    cycle.pre_filter(NOW)
    cycle.filter(site.nodes[preset.node_name])
    cycle.reserve(preset.node_name)
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BINDABLE)
    assert site.take_sent() == ["patch resourceclaims/status e"]
    assert [entry.uid for entry in site.stored("e").reserved_for] == ["pod-uid"]


def test_another_scheduler_was_faster_and_it_suits(site: Site) -> None:
    """A claim that is already allocated gets only the reservedFor entry, if the allocation
    suits the chosen node; the devices that were picked are free again, and that is told."""
    freed: list[str] = []
    site.tracker.add_handler(lambda event: freed.append(event.claim.name))
    cycle = site.reserved(POD)
    other = with_devices(claim("c"), in_use.device("a2", "node-1", build.DRIVER))
    site.drive(cycle, cycle.pre_bind(NOW), on_request(2, lambda: seed_allocated(site, other)))
    assert is_in(cycle, CycleState.BINDABLE)
    assert site.in_use() == ["a2"]
    assert site.tracker.in_flight() == ()
    assert freed == ["c"]
    assert [entry.uid for entry in site.stored("c").reserved_for] == ["pod-uid"]


def seed_allocated(site: Site, other: ResourceClaim) -> None:
    """Another scheduler's write, which our informer has not shown."""
    made = encode(finalized(other, 1))
    del made["metadata"]["resourceVersion"]
    site.server.seed(made)


def test_another_scheduler_was_faster_and_it_does_not_suit(site: Site) -> None:
    """Allocated elsewhere → impossible; what was seen is remembered over unreserve."""
    cycle = site.reserved(POD)
    other = with_devices(claim("c"), in_use.device("z", "far", build.DRIVER))
    assert other.allocation is not None
    other = attrs.evolve(other, allocation=attrs.evolve(other.allocation, node_selector=FAR))
    site.drive(cycle, cycle.pre_bind(NOW), on_request(2, lambda: seed_allocated(site, other)))
    verdict = stop_of(cycle)
    assert verdict.reason is StopReason.CLAIM_LOST
    assert verdict.cause == Impossible(ImpossibleReason.ALLOCATED_ELSEWHERE)
    assert site.in_use() == ["a1", "z"]
    site.drive(cycle, cycle.unreserve())
    # The informer has not shown it, and still nobody else gets the device.
    assert site.in_use() == ["z"]


# --- answers that say nothing


def test_a_write_that_may_have_happened_keeps_its_devices(site: Site) -> None:
    """No answer at all: the devices count as taken until it is known; the next attempt goes
    on with the same ones."""
    cycle = site.reserved(POD)
    site.line.source = script([None, Fault.LOST_REQUEST, *([Fault.UNAVAILABLE] * 9)])
    site.drive(cycle, cycle.pre_bind(NOW))
    verdict = stop_of(cycle)
    assert verdict.cause == RetryLater(RetryReason.UNAVAILABLE, may_have_happened=True)
    site.line.source = script(())
    site.drive(cycle, cycle.unreserve())
    assert site.in_use() == ["a1"]
    site.show()
    again = site.reserved(POD)
    assert len(site.tracker.in_flight()) == 1
    site.drive(again, again.pre_bind(NOW))
    assert is_in(again, CycleState.BINDABLE)
    assert site.tracker.in_flight() == ()
    assert site.in_use() == ["a1"]


def test_a_write_that_did_happen_without_an_answer(site: Site) -> None:
    """The same if the write happened: the next attempt finds it."""
    cycle = site.reserved(POD)
    site.line.source = script([None, Fault.LOST_ANSWER, *([Fault.LOST_ANSWER] * 9)])
    site.drive(cycle, cycle.pre_bind(NOW))
    stop_of(cycle)
    site.drive(cycle, cycle.unreserve())
    site.line.source = script(())
    assert site.in_use() == ["a1"]
    site.show()
    again = site.bound(POD)
    assert is_in(again, CycleState.BINDABLE)
    assert [entry.uid for entry in site.stored("c").reserved_for] == ["pod-uid"]


def test_unclear_writes_are_looked_up_if_no_node_fits(site: Site) -> None:
    """The pod does not fit there any more: what became of the write is read, and the devices
    are given back."""
    site.devices("node-2", "b1")
    site.nodes["node-2"] = attrs.evolve(
        site.nodes["node-1"], metadata=attrs.evolve(site.nodes["node-1"].metadata, name="node-2")
    )
    cycle = site.reserved(POD, "node-1")
    site.line.source = script([None, Fault.LOST_REQUEST, *([Fault.UNAVAILABLE] * 9)])
    site.drive(cycle, cycle.pre_bind(NOW))
    site.line.source = script(())
    site.drive(cycle, cycle.unreserve())
    site.show()
    del site.nodes["node-1"]
    again = site.filtered(POD)
    assert fitting(again) == []
    site.take_sent()
    site.drive(again, again.post_filter())
    assert again.verdict == Stopped(StopReason.READ_AGAIN, "c", retry=True)
    assert site.take_sent() == ["get resourceclaims c"]
    assert site.tracker.in_flight() == ()
    assert site.in_use() == []
    site.bound(POD)
    assert site.in_use() == ["b1"]


def test_unclear_writes_of_another_pod_keep_others_out(site: Site) -> None:
    """Only the pod itself goes on with what it left in flight."""
    cycle = site.reserved(POD)
    site.line.source = script([None, Fault.LOST_REQUEST, *([Fault.UNAVAILABLE] * 9)])
    site.drive(cycle, cycle.pre_bind(NOW))
    site.line.source = script(())
    site.drive(cycle, cycle.unreserve())
    other = site.cycle(pod("c", name="other"))
    other.pre_enqueue()
    verdict = other.pre_filter(NOW)
    assert isinstance(verdict, Stopped)
    assert verdict.reason is StopReason.IN_FLIGHT


def unclear(site: Site, *, happened: bool) -> None:
    """An attempt of POD whose write got no clear answer, undone."""
    site.attempt_unclear(POD, happened=happened)
    assert site.in_use() == ["a1"]


def test_the_cache_tells_what_became_of_an_unclear_write(site: Site) -> None:
    """Once the cache shows the allocation, nothing is in flight any more."""
    unclear(site, happened=True)
    site.show()
    assert len(site.tracker.in_flight()) == 1
    cycle = site.filtered(POD)
    assert site.tracker.in_flight() == ()
    assert fitting(cycle) == ["node-1"]
    assert site.in_use() == ["a1"]


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("then", ["nothing", "other devices", "deleted", "unreadable"])
def test_reading_what_became_of_an_unclear_write(site: Site, happened: bool, then: str) -> None:
    """No node fits any more: the claim is read, and what is in flight is settled by that."""
    unclear(site, happened=happened)
    site.nodes["node-1"] = attrs.evolve(
        site.nodes["node-1"], metadata=attrs.evolve(site.nodes["node-1"].metadata, name="gone")
    )
    cycle = site.filtered(POD)
    assert fitting(cycle) == []
    if then == "other devices":
        seed_allocated(site, with_devices(claim("c"), in_use.device("a2", "node-1", build.DRIVER)))
    if then == "deleted":
        site.server.unseed("resourceclaims", "default", "c")
    if then == "unreadable":
        request = cycle.post_filter()
        assert request is not None
        assert cycle.answered(200, {"metadata": []}) is None
        kinds = [trouble.kind for trouble in cycle.troubles]
        assert kinds == [TroubleKind.UNREADABLE, TroubleKind.READ]
        assert site.in_use() == ["a1"]
        return
    site.drive(cycle, cycle.post_filter())
    assert cycle.verdict == Stopped(StopReason.READ_AGAIN, "c", retry=True)
    assert site.tracker.in_flight() == ()
    known = {"nothing": ["a1"] if happened else [], "other devices": ["a2"], "deleted": []}
    assert site.in_use() == known[then]


def test_a_later_attempt_learns_what_became_of_an_unclear_write(site: Site) -> None:
    """A copy that was read in this attempt is newer than any earlier write: nothing is left
    in flight after it."""
    unclear(site, happened=False)
    cycle = site.reserved(POD)
    far = with_devices(claim("c"), in_use.device("z", "far", build.DRIVER))
    assert far.allocation is not None
    far = attrs.evolve(far, allocation=attrs.evolve(far.allocation, node_selector=FAR))
    seed_allocated(site, far)
    site.drive(cycle, cycle.pre_bind(NOW))
    assert stop_of(cycle).cause == Impossible(ImpossibleReason.ALLOCATED_ELSEWHERE)
    site.drive(cycle, cycle.unreserve())
    assert site.tracker.in_flight() == ()
    assert site.in_use() == ["z"]


def test_a_later_attempt_learns_nothing_about_an_unclear_write(site: Site) -> None:
    """An attempt that is refused before it has read anything leaves the devices taken."""
    unclear(site, happened=False)
    cycle = site.reserved(POD)
    assert cycle.pre_bind(NOW) is not None
    assert cycle.answered(403) is None
    assert stop_of(cycle).cause == Impossible(ImpossibleReason.REFUSED, 403)
    site.drive(cycle, cycle.unreserve())
    assert site.in_use() == ["a1"]


def test_what_others_make_the_cache_forget(site: Site) -> None:
    """What the API server returned in this attempt counts, also if the cache went back."""
    cycle = site.bound(POD)
    site.claims.restore(key("c"))
    assert site.claims.get(key("c")).allocation is None
    site.drive(cycle, cycle.unreserve())
    assert site.stored("c").reserved_for == ()


def test_a_reservation_that_may_have_been_written_is_removed(site: Site) -> None:
    """A reservation whose answer was lost does not stay behind."""
    first = site.bound(POD)
    site.show()
    cycle = site.reserved(pod("c", name="other"))
    site.line.source = script([Fault.LOST_ANSWER, *([Fault.UNAVAILABLE] * 9)])
    site.drive(cycle, cycle.pre_bind(NOW))
    assert {entry.uid for entry in site.stored("c").reserved_for} == {"pod-uid", "other-uid"}
    site.line.source = script(())
    site.drive(cycle, cycle.unreserve())
    assert {entry.uid for entry in site.stored("c").reserved_for} == {"pod-uid"}
    assert is_in(first, CycleState.BINDABLE)


def test_answers_that_the_cache_cannot_store(site: Site) -> None:
    """An answer without a version that can be read is reported, and the claim read again."""
    cycle = site.reserved(POD)
    first = cycle.pre_bind(NOW)
    assert first is not None
    status, body = site.server.send(first)
    body["metadata"]["resourceVersion"] = "x7"
    second = cycle.answered(status, body)
    assert second is not None
    assert [trouble.kind for trouble in cycle.troubles] == [TroubleKind.UNREADABLE]
    assert second.verb is Verb.GET
    site.drive(cycle, second)
    assert is_in(cycle, CycleState.BINDABLE)


def test_a_status_answer_without_a_readable_version_is_no_answer(site: Site) -> None:
    """The devices stay taken: the claim is read, and what was written is found."""
    cycle = site.reserved(POD)
    request = cycle.pre_bind(NOW)
    while request is not None:
        status, body = site.server.send(request)
        if request.target.subresource == "status" and isinstance(body, dict):
            body["metadata"]["resourceVersion"] = "x7"
        request = cycle.answered(status, body)
    assert is_in(cycle, CycleState.BINDABLE)
    assert site.in_use()
    site.check()


def test_a_bug_in_the_host_leaves_a_cycle_that_can_be_undone(site: Site) -> None:
    """Whatever is raised in unreserve reaches the host. The cycle is not over: the rest of
    what has to be undone is done when it is begun again, and the first reason stays."""
    bugs = [RuntimeError("second"), RuntimeError("first")]

    class Broken(StructuredClaims):
        @property
        def form(self) -> ClaimForm:
            if is_in(cycle, CycleState.BROKEN) and bugs:
                raise bugs.pop()
            return super().form

    site.line.source = script([None, None, *[Fault.LOST_REQUEST] * 12])
    both = pod("c", "d")
    cycle = site.filtered(both, kinds=[Broken(site.source.take())])
    cycle.reserve("node-1")
    site.drive(cycle, cycle.pre_bind(NOW))
    site.line.source = script(())
    reason = cycle.verdict
    for bug in ("first", "second"):
        assert is_in(cycle, CycleState.BROKEN)
        assert isinstance(reason, Stopped)
        with pytest.raises(RuntimeError, match=bug):
            cycle.unreserve()
    site.drive(cycle, cycle.unreserve())
    assert is_in(cycle, CycleState.OVER)
    assert cycle.verdict is reason
    assert site.stored("c").reserved_for == ()
    site.check()


def test_a_claim_from_which_no_request_can_be_made_does_not_stop_unreserve(site: Site) -> None:
    """It is reported, and the others are given back."""

    class Odd(StructuredClaims):
        @property
        def form(self) -> ClaimForm:
            if is_in(cycle, CycleState.BINDABLE) and not cycle.troubles:
                raise PatchError("default/c", "cannot be changed")
            return super().form

    cycle = site.filtered(pod("c", "d"), kinds=[Odd(site.source.take())])
    cycle.reserve("node-1")
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BINDABLE)
    site.drive(cycle, cycle.unreserve())
    assert is_in(cycle, CycleState.OVER)
    [trouble] = cycle.troubles
    assert (trouble.kind, trouble.subject) == (TroubleKind.UNRESERVE, "default/c")
    assert site.stored("c").reserved_for != ()
    assert site.stored("d").reserved_for == ()


def test_bug_99_a_device_that_its_node_has_not_released(site: Site) -> None:
    """The host says which; the pod gets another one of the same pool, and keeps it."""
    given = site.source.take().with_unavailable([A1])
    cycle = site.filtered(POD, kinds=[StructuredClaims(given)])
    assert cycle.reserve("node-1") == Passed()
    assert site.in_use() == ["a2"]
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BINDABLE)


def test_what_the_host_has_undone_says_so(site: Site) -> None:
    """A cycle that is over has always been stopped, if not by itself."""
    cycle = site.bound(POD)
    before = cycle.verdict
    assert before == Passed()
    site.drive(cycle, cycle.unreserve())
    assert is_in(cycle, CycleState.OVER)
    assert cycle.verdict == Stopped(StopReason.UNDONE, retry=True)


def test_a_second_cycle_of_a_pod_leaves_the_first_ones_devices_alone(site: Site) -> None:
    """While a request of the first may still be under way, no reading proves anything:
    the second stops, and what it does gives no device to anybody else."""
    first = site.reserved(POD)
    request = first.pre_bind(NOW)
    assert request is not None
    request = first.answered(*site.server.send(request))  # the status waits to be sent
    assert request is not None
    site.show()
    second = site.cycle(POD)
    second.pre_enqueue()
    verdict = second.pre_filter(NOW)
    assert verdict == Stopped(
        StopReason.IN_FLIGHT, "c", retry=True, cause=site.tracker.pending("uid-c")
    )
    assert is_in(second, CycleState.OVER)
    assert site.in_use() == ["a1"]
    site.drive(first, request)
    assert is_in(first, CycleState.BINDABLE)


def test_of_two_cycles_of_a_pod_that_both_filtered_one_reserves(site: Site) -> None:
    """Undoing the slower one takes nothing from the faster one."""
    first, second = site.filtered(POD), site.filtered(POD)
    assert first.reserve("node-1") == Passed()
    stopped = second.reserve("node-1")
    assert isinstance(stopped, Stopped)
    assert stopped.reason is StopReason.IN_FLIGHT
    site.drive(second, second.unreserve())
    assert site.in_use() == ["a1"]
    site.drive(first, first.pre_bind(NOW))
    assert is_in(first, CycleState.BINDABLE)


def test_of_two_cycles_that_come_back_to_an_unclear_write_one_goes_on(site: Site) -> None:
    """What an attempt left unclear is taken up by one cycle; others leave it alone."""
    lost = [None, *[Fault.LOST_REQUEST] * 10]
    site.line.source = script(lost)
    unclear = site.reserved(POD)
    site.drive(unclear, unclear.pre_bind(NOW))
    site.drive(unclear, unclear.unreserve())
    assert site.in_use() == ["a1"]
    site.line.source = script(())
    site.show()
    first, second, third = (site.filtered(POD) for _ in range(3))
    assert first.reserve("node-1") == Passed()
    assert second.reserve("node-1") == Stopped(StopReason.IN_FLIGHT, "c", retry=True)
    site.drive(second, second.unreserve())
    assert site.in_use() == ["a1"]
    site.drive(third, third.post_filter())  # reads: not allocated, but the first is at work
    assert site.in_use() == ["a1"]
    site.drive(first, first.pre_bind(NOW))
    assert is_in(first, CycleState.BINDABLE)
    site.check()


def test_an_error_in_pre_bind_leaves_a_broken_cycle(site: Site) -> None:
    """The same in pre-bind: the attempt is broken, not stuck."""

    class Broken(StructuredClaims):
        def binding_plan(self, *_args: Any, **_options: Any) -> BindingPlan:
            raise RuntimeError("host")

    cycle = site.filtered(POD, kinds=[Broken(site.source.take())])
    cycle.reserve("node-1")
    with pytest.raises(RuntimeError, match="host"):
        cycle.pre_bind(NOW)
    verdict = stop_of(cycle)
    assert verdict.reason is StopReason.INVALID
    assert cycle.unreserve() is None
    assert site.in_use() == []


def test_an_error_after_the_write_keeps_the_devices(site: Site) -> None:
    """The answer to the write cannot be told by a kind with a bug: what it allocated stays
    taken, and the next attempt finds it."""

    def decode(body: Any) -> ResourceClaim:
        if body["status"].get("allocation"):
            raise RuntimeError("decode")
        return decode_resource_claim(body)

    class Broken(StructuredClaims):
        def binding_plan(self, *args: Any, **options: Any) -> BindingPlan:
            return attrs.evolve(super().binding_plan(*args, **options), decode=decode)

    cycle = site.filtered(POD, kinds=[Broken(site.source.take())])
    cycle.reserve("node-1")
    with pytest.raises(RuntimeError, match="decode"):
        site.drive(cycle, cycle.pre_bind(NOW))
    stop_of(cycle)
    site.drive(cycle, cycle.unreserve())
    assert site.in_use() == ["a1"]
    again = site.reserved(POD)
    site.drive(again, again.pre_bind(NOW))
    assert is_in(again, CycleState.BINDABLE)
    assert site.tracker.in_flight() == ()


def test_a_claim_that_is_gone_after_an_unclear_write_blocks_nothing(site: Site) -> None:
    """The pod waits for another claim of that name; what it left in flight is free."""
    unclear(site, happened=True)
    site.server.unseed("resourceclaims", "default", "c")
    for informer in site.informers:
        informer.list_anew()
    assert isinstance(site.cycle(POD).pre_enqueue(), Stopped)
    assert site.tracker.in_flight() == ()
    assert site.in_use() == []


def test_a_claim_without_a_uid_cannot_be_guarded(site: Site) -> None:
    """A copy that lacks what guards a change is an error of this attempt."""
    bare = attrs.evolve(claim("bare"), metadata=attrs.evolve(claim("bare").metadata, uid=""))
    site.claims.observe(at(bare, 5))
    cycle = site.reserved(pod("bare"))
    assert isinstance(stop_of(cycle).cause, NoUidError)


def test_an_unreadable_answer_is_no_answer(site: Site) -> None:
    """A body that is no claim is reported, and what happened is read."""
    cycle = site.reserved(POD)
    first = cycle.pre_bind(NOW)
    assert first is not None
    site.server.send(first)
    request = cycle.answered(200, {"kind": "ResourceClaim", "metadata": []})
    assert request is not None
    assert request.verb == "get"
    assert [trouble.kind for trouble in cycle.troubles] == [TroubleKind.UNREADABLE]
    site.drive(cycle, request)
    assert is_in(cycle, CycleState.BINDABLE)


FAULTS = [fault for fault in Fault if fault is not Fault.RESTART]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("where", range(6))
def test_one_fault_anywhere(fault: Fault, where: int) -> None:
    """Whatever happens to one request, of pre-bind or of unreserve: the invariants hold
    after each, and the next attempts converge."""
    site = make_site()
    both = pod("c", "d")
    site.line.source = script([None] * where + [fault])
    cycle = site.reserved(both)
    site.drive(cycle, cycle.pre_bind(NOW))
    site.drive(cycle, cycle.unreserve())
    assert is_in(cycle, CycleState.OVER)
    site.show()
    done = site.bound(both)
    site.show()
    assert site.in_use() == ["a1", "a2"]
    assert site.tracker.in_flight() == ()
    for name in ("c", "d"):
        stored = site.stored(name)
        assert stored.metadata.finalizers == (FINALIZER,)
        assert [entry.uid for entry in stored.reserved_for] == ["pod-uid"]
    site.drive(done, done.unreserve())
    site.show()
    assert site.stored("c").reserved_for == ()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("where", range(6))
def test_one_fault_anywhere_with_a_slow_informer(fault: Fault, where: int) -> None:
    """The same, while nothing is shown in between; a fresh scheduler process follows."""
    site = make_site()
    both = pod("c", "d")
    site.line.source = script([None] * where + [fault])
    for _ in range(3):
        cycle = site.cycle(both)
        cycle.pre_enqueue()
        cycle.pre_filter(NOW)
        for node in site.nodes.values():
            cycle.filter(node)
        if not fitting(cycle):
            site.drive(cycle, cycle.post_filter())
            continue
        cycle.reserve("node-1")
        if is_in(cycle, CycleState.RESERVED):
            site.drive(cycle, cycle.pre_bind(NOW))
        if is_in(cycle, CycleState.BINDABLE):
            break
        site.drive(cycle, cycle.unreserve())
    assert is_in(cycle, CycleState.BINDABLE)
    site.restart()
    site.bound(both)
    assert site.in_use() == ["a1", "a2"]


def test_a_failed_unreserve_is_reported_not_retried(site: Site) -> None:
    """A failure is reported, not retried (the next attempt comes by again)."""
    cycle = site.bound(pod("c", "d"))
    site.take_sent()
    site.line.source = script([Fault.UNAVAILABLE])
    site.drive(cycle, cycle.unreserve())
    assert site.take_sent() == ["patch resourceclaims/status c", "patch resourceclaims/status d"]
    assert [(t.kind, t.subject, t.cause) for t in cycle.troubles] == [
        (TroubleKind.UNRESERVE, "default/c", 503)
    ]
    assert [entry.uid for entry in site.stored("c").reserved_for] == ["pod-uid"]
    assert site.stored("d").reserved_for == ()
    site.show()
    again = site.bound(pod("c", "d"))
    site.drive(again, again.unreserve())
    assert site.stored("c").reserved_for == ()


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.HIDDEN, Fault.LOST_REQUEST])
def test_a_reservation_that_may_be_gone_is_made_again(site: Site, fault: Fault) -> None:
    """Nobody knows whether unreserve happened, and the informer lags: the next attempt does
    not take the copy at hand for a reservation."""
    cycle = site.bound(POD)
    site.show()
    site.line.source = script([fault])
    site.drive(cycle, cycle.unreserve())
    site.take_sent()
    site.bound(POD)
    assert site.take_sent() == ["patch resourceclaims/status c"]
    assert [entry.uid for entry in site.stored("c").reserved_for] == ["pod-uid"]


def test_a_reservation_that_is_shown_after_it_was_taken_off_is_made_again(site: Site) -> None:
    """Neither reserving nor undoing it was answered, and the informer shows the first of
    both only: the pod is not bound without a reservation."""
    site.bound(pod("c", name="first"))
    site.show()
    cycle = site.reserved(POD)
    site.line.source = script([Fault.LOST_ANSWER, *([Fault.UNAVAILABLE] * 9)])
    site.drive(cycle, cycle.pre_bind(NOW))
    site.line.source = script([Fault.LOST_ANSWER])
    site.drive(cycle, cycle.unreserve())
    claims = site.informers[0]
    while not has_consumer(site.claims.get(key("c")), "pod-uid"):
        assert claims.show(1)
    assert not has_consumer(site.stored("c"), "pod-uid")
    site.bound(POD)
    assert has_consumer(site.stored("c"), "pod-uid")
    site.take_sent()
    # Now it is known, and nothing has to be sent again.
    site.bound(POD)
    assert site.take_sent() == []


@pytest.mark.parametrize("status", [200, 403])
def test_an_undone_reservation_without_a_copy_to_show_it(site: Site, status: int) -> None:
    """The answer to unreserve says nothing about the claim: the copy at hand is no proof."""
    cycle = site.bound(POD)
    site.show()
    request = cycle.unreserve()
    assert request is not None
    if status == 200:
        site.server.send(request)
    assert cycle.answered(status) is None
    site.take_sent()
    site.bound(POD)
    assert site.take_sent() == ["patch resourceclaims/status c"]
    assert has_consumer(site.stored("c"), "pod-uid")


def test_what_is_in_doubt_of_a_claim_that_is_gone_is_forgotten(site: Site) -> None:
    """There is nothing left to reserve."""
    cycle = site.bound(POD)
    site.line.source = script([Fault.LOST_REQUEST])
    site.drive(cycle, cycle.unreserve())
    assert site.tracker.doubts.has("uid-c", "pod-uid")
    site.server.unseed("resourceclaims", "default", "c")
    for informer in site.informers:
        informer.list_anew()
    assert not site.tracker.doubts.has("uid-c", "pod-uid")


def test_a_claim_that_is_gone_needs_no_unreserve(site: Site) -> None:
    """A claim that was deleted is nobody's trouble."""
    cycle = site.bound(POD)
    site.server.unseed("resourceclaims", "default", "c")
    site.drive(cycle, cycle.unreserve())
    assert cycle.troubles == ()


def test_a_claim_that_was_replaced_is_left_alone(site: Site) -> None:
    """Another incarnation is another claim."""
    cycle = site.reserved(POD)
    new = claim("c")
    site.claims.observe(
        at(attrs.evolve(new, metadata=attrs.evolve(new.metadata, uid="new-uid")), 9_999)
    )
    site.drive(cycle, cycle.pre_bind(NOW))
    assert stop_of(cycle).cause == Impossible(ImpossibleReason.OTHER_INCARNATION)
    assert site.sent == []
    site.drive(cycle, cycle.unreserve())
    assert site.sent == []
    assert site.in_use() == []


def test_nothing_made_up_is_written(site: Site) -> None:
    """Only real names are ever written, for any pod."""
    with_containers = attrs.evolve(POD, containers=(container("c1", gpu=1),))
    cycle = site.bound(with_containers)
    site.drive(cycle, cycle.unreserve())
    assert MADE_UP not in json.dumps([request.body for request in site.sent])
