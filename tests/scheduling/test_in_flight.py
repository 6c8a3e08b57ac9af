"""ClaimTracker: each rule of what is in flight, and each fault that others had with it."""

import copy
import pickle

import attrs
import pytest

from dra_core.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from dra_core.api.names import DeviceId, SharedDeviceId
from dra_core.api.objects import (
    AllocatedDeviceStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from dra_core.errors import DraError
from dra_core.inventory.allocated import AllocatedState
from dra_core.scheduling.assume_cache import CacheEvent
from dra_core.scheduling.errors import (
    ClaimAllocatedError,
    ClaimInFlightError,
    DevicesTakenError,
    HandlerFailedError,
    InFlightError,
    NothingToTrackError,
    NoUidError,
    NoUsableNameError,
    ObjectNotFoundError,
    PoolsChangedError,
    UnreadableVersionError,
    WrongTypeError,
)
from dra_core.scheduling.in_flight import ClaimTracker, DevicesFreed, InFlight
from support.in_use import allocation, amounts, claim, device, key, result, share
from support.tracking import (
    Tracked,
    at,
    finalized,
    with_devices,
    with_uid,
    without_devices,
)

D1, D2, D3 = device("d1"), device("d2"), device("d3", "pool-b")
S1 = share("d1", "s1")
C = claim("c", version="10")
UID = "c-uid"
P1, P2, P3 = "p1-uid", "p2-uid", "p3-uid"
ON_NODE_1 = NodeSelector(
    (NodeSelectorTerm((), (NodeSelectorRequirement("metadata.name", "In", ("node1",)),)),)
)


@pytest.fixture
def t() -> Tracked:
    """A tracker whose cache has the unallocated claim ``c`` at version 10."""
    tracked = Tracked()
    tracked.cache.observe(C)
    return tracked


def started(t: Tracked, *what: DeviceId | SharedDeviceId, session: str | None = None) -> None:
    """Pod p1 takes ``c`` in flight."""
    t.tracker.start([with_devices(C, *(what or (D1,)))], P1, session=session)


# --- what is allocated


def test_cached_allocations_count(t: Tracked) -> None:
    """What is allocated = all claims of the cache ..."""
    t.cache.observe(claim("other", D2))
    t.cache.observe(claim("admin", result(D3, admin=True)))
    assert t.in_use() == {D2}
    t.cache.observe_delete(claim("other", D2))
    assert t.in_use() == set()


def test_what_is_there_before_the_tracker_counts(t: Tracked) -> None:
    """A tracker counts what its cache holds when it is made."""
    t.cache.observe(claim("other", D2))
    assert ClaimTracker(t.cache).allocated().devices == {D2}


def test_in_flight_allocations_count(t: Tracked) -> None:
    """... with overrides, plus those only in flight."""
    started(t, D1)
    t.tracker.start([claim("nowhere", D2)], P2)
    assert t.in_use() == {D1, D2}


def test_feature_off() -> None:
    """With ConsumableCapacity off every allocated result is exclusive."""
    t = Tracked(consumable_capacity=False)
    t.cache.observe(claim("a", S1))
    t.tracker.start([claim("b", share("d2", "s"))], P1)
    assert t.in_use() == {D1, D2}


def test_admin_access_in_flight_does_not_count(t: Tracked) -> None:
    """Admin-access results do not count."""
    t.tracker.start([with_devices(C, result(D1, admin=True), result(D2))], P1)
    assert t.in_use() == {D2}
    t.tracker.start([claim("other", D1)], P2)
    assert t.in_use() == {D1, D2}


def test_share_in_flight(t: Tracked) -> None:
    """A share in flight is a share, with the capacity it consumes."""
    t.tracker.start([with_devices(C, result(S1, amounts(mem="2Gi")))], P1)
    assert t.in_use() == {S1}
    assert t.tracker.allocated().consumed_capacity == {D1: amounts(mem="2Gi")}


def test_allocation_that_changes_in_place(t: Tracked) -> None:
    """An allocation never changes in place; if one is observed to, the difference counts."""
    t.cache.observe(with_devices(at(C, 11), D1, D2))
    t.cache.observe(with_devices(at(C, 12), D2, D3))
    assert t.in_use() == {D2, D3}


def test_snapshots_are_immutable_and_shared(t: Tracked) -> None:
    """A snapshot never changes; without changes it is the same object; pools that did not
    change keep their views."""
    t.cache.observe(claim("other", D2, D3))
    before = t.tracker.allocated()
    assert t.tracker.allocated() is before
    started(t, D1)
    after = t.tracker.allocated()
    assert before.devices == {D2, D3}
    assert after.devices == {D1, D2, D3}
    assert after.pool(D3.driver, D3.pool) is before.pool(D3.driver, D3.pool)


def test_events_that_change_no_allocation_keep_the_snapshot(t: Tracked) -> None:
    """A snapshot costs no more than what changed: an event without change of allocation
    costs nothing."""
    allocated = with_devices(at(C, 11), D1)
    t.cache.observe(allocated)
    before = t.tracker.allocated()
    t.cache.observe(finalized(allocated, 12))
    t.cache.observe(finalized(with_devices(C, D1), 13))  # equal, but not the same object
    assert t.tracker.allocated() is before


# --- entries


def test_start(t: Tracked) -> None:
    """An entry is the claim with the allocation to come, its user, and its session."""
    picked = attrs.evolve(C, allocation=allocation(D1, node_selector=ON_NODE_1))
    assert t.tracker.pending(UID) is None
    entries = t.tracker.start([picked], P1, session="s")
    assert entries == (InFlight(picked, (P1,), "s"),)
    assert t.tracker.pending(UID) is entries[0]
    assert t.tracker.in_flight() == entries
    assert entries[0].allocation is picked.allocation
    assert entries[0].node_selector is ON_NODE_1


def test_entry_without_allocation(t: Tracked) -> None:
    """A claim without allocation to come cannot be in flight."""
    with pytest.raises(NothingToTrackError):
        t.tracker.start([C], P1)
    with pytest.raises(NothingToTrackError):
        _ = InFlight(C).allocation


def test_override(t: Tracked) -> None:
    """An entry overrides an unallocated cached status: reading shows the newest metadata with
    the status to come."""
    consumer = ResourceClaimConsumerReference("", "pods", "p1", P1)
    status = AllocatedDeviceStatus("driver", "pool", "d1")
    picked = attrs.evolve(with_devices(C, D1), reserved_for=(consumer,), device_statuses=(status,))
    t.tracker.start([picked], P1)
    assert t.tracker.get(key("c")) == picked
    t.cache.observe(finalized(C, 11))
    assert t.tracker.get(key("c")) == finalized(picked, 11)
    assert t.cache.get(key("c")) == finalized(C, 11)
    t.tracker.release(UID, P1)
    assert t.tracker.get(key("c")) == finalized(C, 11)


def test_no_override_of_an_allocated_status(t: Tracked) -> None:
    """A cached allocation is what readers see, entry or not."""
    started(t, D1)
    other = with_devices(at(C, 11), D2)
    t.cache.observe(other)
    assert t.tracker.get(key("c")) == other


def test_get_of_an_unknown_claim(t: Tracked) -> None:
    """Unknown keys are an error, also of claims that are only in flight."""
    t.tracker.start([claim("nowhere", D1)], P1)
    with pytest.raises(ObjectNotFoundError):
        t.tracker.get(key("nowhere"))


def test_claims(t: Tracked) -> None:
    """All claims of the cache with overrides, then those only in flight."""
    t.cache.observe(claim("z"))
    started(t, D1)
    nowhere = claim("nowhere", D2)
    t.tracker.start([nowhere], P2)
    assert t.tracker.claims() == (with_devices(C, D1), claim("z"), nowhere)


def test_another_schedulers_allocation(t: Tracked) -> None:
    """If the cached claim gets an allocation of its own, both are taken until the entry goes."""
    started(t, D1)
    t.cache.observe(with_devices(at(C, 11), D2))
    assert t.in_use() == {D1, D2}
    t.tracker.release(UID, P1)
    assert t.in_use() == {D2}
    assert t.freed == ["c"]  # d1 is free now, and nobody else would tell


def test_another_schedulers_allocation_goes_again(t: Tracked) -> None:
    """... and if it loses that again, the entry alone counts."""
    started(t, D1)
    t.cache.observe(with_devices(at(C, 11), D2))
    t.cache.observe(at(C, 12))
    assert t.in_use() == {D1}


def test_same_share_cached_and_in_flight(t: Tracked) -> None:
    """The same (device, shareID) counts once, its capacity too."""
    picked = with_devices(C, result(S1, amounts(mem="2Gi")))
    t.tracker.start([picked], P1)
    t.cache.observe(at(picked, 11))
    assert t.in_use() == {S1}
    assert t.tracker.allocated().consumed_capacity == {D1: amounts(mem="2Gi")}


def test_allocated_claims_never_get_an_entry(t: Tracked) -> None:
    """A claim already allocated in the cache never gets an entry."""
    t.cache.observe(with_devices(at(C, 11), D2))
    with pytest.raises(ClaimAllocatedError) as caught:
        started(t, D1)
    assert caught.value.claim == "team-a/c"
    assert t.in_use() == {D2}
    assert t.tracker.in_flight() == ()


def test_allocation_of_another_incarnation_is_no_obstacle(t: Tracked) -> None:
    """What is cached under the name but with another UID is another claim."""
    t.cache.observe(with_devices(with_uid(C, "new"), D2))
    started(t, D1)
    assert t.in_use() == {D1, D2}


def test_in_flight_claims_make_others_wait(t: Tracked) -> None:
    """Another pod that needs an in-flight claim waits."""
    started(t, D1)
    for session in (None, "other"):
        with pytest.raises(ClaimInFlightError) as caught:
            t.tracker.start([with_devices(C, D2)], P2, session=session)
        assert caught.value.users == (P1,)
    assert t.in_use() == {D1}


def test_a_pod_does_not_start_twice(t: Tracked) -> None:
    """A second start of the same pod without session is refused as well."""
    started(t, D1)
    with pytest.raises(ClaimInFlightError):
        started(t, D2)
    with pytest.raises(ClaimInFlightError):
        t.tracker.start([claim("x", D2), claim("x", D3)], P2)
    assert t.in_use() == {D1}


def test_devices_of_others_are_refused(t: Tracked) -> None:
    """No device is handed out twice: devices that were taken since they were picked are an
    error that names them."""
    other = share("d2", "s")
    t.cache.observe(claim("a", D1))
    t.tracker.start([claim("b", other)], P2)
    picked = with_devices(C, D1, D2, other, D3)
    with pytest.raises(DevicesTakenError) as caught:
        t.tracker.start([picked], P1)
    assert caught.value.devices == tuple("/".join(what) for what in (D1, D2, other))
    assert t.tracker.pending(UID) is None
    assert t.in_use() == {D1, other}


def test_all_claims_or_none(t: Tracked) -> None:
    """The claims of a pod are taken together; if one cannot be, none is."""
    before = t.tracker.allocated()
    for bad in (claim("d", D1), claim("d", result(D1))):
        with pytest.raises(DevicesTakenError):
            t.tracker.start([with_devices(C, D1), claim("e", D2), bad], P1)
    assert t.tracker.in_flight() == ()
    assert t.in_use() == set()
    assert t.tracker.allocated() is before
    entries = t.tracker.start([with_devices(C, D1), claim("e", D2)], P1)
    assert [entry.claim.name for entry in entries] == ["c", "e"]
    assert t.in_use() == {D1, D2}


def test_basis(t: Tracked) -> None:
    """With the state that devices were picked from, a change of their pools is noticed, also
    one that took no device of them; changes of other pools do not matter."""
    basis = t.tracker.allocated()
    t.cache.observe(claim("elsewhere", D3))
    t.tracker.start([claim("a", D2)], P1, basis=basis)
    with pytest.raises(PoolsChangedError) as caught:
        t.tracker.start([with_devices(C, D1)], P2, basis=basis)
    assert caught.value.pools == (f"{D1.driver}/{D1.pool}",)
    assert t.in_use() == {D2, D3}
    t.tracker.start([with_devices(C, D1), claim("e", device("d9"))], P2,
                    basis=t.tracker.allocated())  # fmt: skip
    assert t.in_use() == {D1, D2, D3, device("d9")}


# --- gangs


def test_gang_shares_an_entry(t: Tracked) -> None:
    """Pods of one gang in one session share an entry; the claim is not allocated again."""
    started(t, D1, session="gang")
    (entry,) = t.tracker.start([with_devices(C, D2)], P2, session="gang")
    assert entry.users == (P1, P2)
    assert entry.claim == with_devices(C, D1)
    assert t.in_use() == {D1}


def test_joining_twice(t: Tracked) -> None:
    """A pod is one user, however often it comes."""
    started(t, D1, session="gang")
    started(t, D1, session="gang")
    pending = t.tracker.pending(UID)
    assert pending is not None
    assert pending.users == (P1,)


def test_joined_and_new_in_one_step(t: Tracked) -> None:
    """Of a pod's claims some may be in flight already, others new; all or none."""
    started(t, D1, session="gang")
    with pytest.raises(DevicesTakenError):
        t.tracker.start([with_devices(C, D2), claim("own", D1)], P2, session="gang")
    assert t.tracker.pending(UID) == InFlight(with_devices(C, D1), (P1,), "gang")
    t.tracker.start([with_devices(C, D2), claim("own", D2)], P2, session="gang")
    assert t.in_use() == {D1, D2}


def test_joining_an_allocated_claim(t: Tracked) -> None:
    """Once the cache shows an allocation, that is what other pods use."""
    started(t, D1, session="gang")
    t.cache.observe(with_devices(at(C, 11), D1))
    with pytest.raises(ClaimAllocatedError):
        t.tracker.start([with_devices(C, D1)], P2, session="gang")


def test_last_user_removes_the_entry(t: Tracked) -> None:
    """The last user's release removes the entry and restores the cached claim."""
    started(t, D1, session="gang")
    t.tracker.start([with_devices(C, D1)], P2, session="gang")
    t.cache.assume(finalized(C, 11))
    t.tracker.release(UID, P1)
    assert t.in_use() == {D1}
    assert t.cache.get(key("c")) == finalized(C, 11)
    t.tracker.release(UID, P2)
    assert t.in_use() == set()
    assert t.cache.get(key("c")) == C
    assert t.freed == ["c"]


def test_release_is_idempotent_per_pod(t: Tracked) -> None:
    """Releasing twice releases once; a pod that is no user releases nothing."""
    started(t, D1, session="gang")
    t.tracker.start([with_devices(C, D1)], P2, session="gang")
    for _ in range(3):
        t.tracker.release(UID, P1)
        t.tracker.release(UID, P3)
    assert t.in_use() == {D1}
    pending = t.tracker.pending(UID)
    assert pending is not None
    assert pending.users == (P2,)


def test_release_of_an_unknown_uid(t: Tracked) -> None:
    """Release of an unknown UID is ignored; so is its removal, and the abort of a session."""
    t.cache.assume(finalized(C, 11))
    t.tracker.release("unknown", P1)
    t.tracker.release(UID, P1)
    t.tracker.remove(UID)
    t.tracker.abort("unknown")
    assert t.cache.get(key("c")) == finalized(C, 11)
    assert t.freed == []


def test_late_release_does_not_hit_a_new_entry(t: Tracked) -> None:
    """A second release of an earlier attempt leaves another pod's new entry alone."""
    started(t, D1)
    t.tracker.release(UID, P1)
    t.tracker.start([with_devices(C, D2)], P2)
    t.tracker.release(UID, P1)
    assert t.in_use() == {D2}


def test_release_without_a_cached_claim(t: Tracked) -> None:
    """Restoring leaves a claim of another incarnation alone."""
    started(t, D1)
    t.cache.observe(with_uid(at(C, 20), "new"))
    t.cache.assume(finalized(with_uid(C, "new"), 21))
    t.tracker.release(UID, P1)
    assert t.cache.get(key("c")) == finalized(with_uid(C, "new"), 21)
    assert t.freed == ["c"]


def test_remove(t: Tracked) -> None:
    """An entry can be removed whatever users it has."""
    started(t, D1, session="gang")
    t.tracker.start([with_devices(C, D1)], P2, session="gang")
    t.tracker.remove(UID)
    assert t.in_use() == set()
    assert t.freed == ["c"]


def test_no_event_when_restoring_shows_an_allocation(t: Tracked) -> None:
    """If the claim is allocated without its entry, nothing became free that is an event."""
    started(t, D1)
    t.cache.observe(with_devices(at(C, 11), D1))
    t.tracker.remove(UID)
    assert t.in_use() == {D1}
    assert t.freed == []


# --- success


def test_success(t: Tracked) -> None:
    """The returned object is assumed, then the entry removed, whatever users remain."""
    started(t, D1, session="gang")
    t.tracker.start([with_devices(C, D1)], P2, session="gang")
    written = with_devices(at(C, 12), D1)
    t.tracker.succeeded(UID, written)
    assert t.tracker.pending(UID) is None
    assert t.cache.get(key("c")) is written
    assert t.in_use() == {D1}
    for pod in (P1, P2):
        t.tracker.release(UID, pod)
    assert t.in_use() == {D1}
    assert t.freed == []


def test_success_is_one_step(t: Tracked) -> None:
    """At no moment are the devices free: whoever hears of the assumed claim sees them taken."""
    started(t, D1)
    seen: list[bool] = []

    def look(event: CacheEvent[ResourceClaim]) -> None:
        seen.append(D1 in t.tracker.allocated().devices and t.tracker.pending(UID) is None)

    t.cache.add_handler(look)
    seen.clear()
    t.tracker.succeeded(UID, with_devices(at(C, 12), D1))
    assert seen == [True]


def test_success_after_the_cache_showed_it(t: Tracked) -> None:
    """The informer was faster than the answer: nothing is assumed, the entry goes."""
    started(t, D1)
    shown = with_devices(at(C, 12), D1)
    t.cache.observe(shown)
    t.cache.observe(at(shown, 13))
    t.tracker.succeeded(UID, shown)
    assert t.cache.get(key("c")) == at(shown, 13)
    assert t.tracker.pending(UID) is None
    assert t.in_use() == {D1}


def test_success_after_the_allocation_has_ended(t: Tracked) -> None:
    """The cache shows a newer state without allocation: the devices are free."""
    started(t, D1)
    t.cache.observe(at(C, 13))
    t.tracker.succeeded(UID, with_devices(at(C, 12), D1))
    assert t.in_use() == set()
    assert t.freed == ["c"]


def test_another_scheduler_stored_other_devices(t: Tracked) -> None:
    """The claim is stored, but not with the devices in flight: those became free."""
    started(t, D1)
    t.cache.observe(with_devices(at(C, 12), D2))
    assert t.in_use() == {D1, D2}
    t.tracker.succeeded(UID, with_devices(at(C, 12), D2))
    assert t.in_use() == {D2}
    assert t.freed == ["c"]


def test_another_scheduler_stored_the_same_devices(t: Tracked) -> None:
    """Nothing became free."""
    started(t, D1)
    t.cache.observe(with_devices(at(C, 12), D1, D2))
    t.tracker.release(UID, P1)
    assert t.in_use() == {D1, D2}
    assert t.freed == []


def test_success_without_entry(t: Tracked) -> None:
    """Without an entry (the gang's first pod wrote it) the answer is assumed all the same."""
    t.tracker.succeeded(UID, with_devices(at(C, 12), D1))
    assert t.in_use() == {D1}
    t.tracker.succeeded("nowhere-uid", claim("nowhere", D2))
    assert t.in_use() == {D1}


def test_success_before_the_cache_knows_the_claim(t: Tracked) -> None:
    """If assume is refused as unknown, the entry stays until the cache shows the object."""
    picked = claim("late", D1)
    t.tracker.start([picked], P1)
    written = at(picked, 12)
    t.tracker.succeeded("late-uid", written)
    pending = t.tracker.pending("late-uid")
    assert pending is not None
    assert pending.awaited is written
    t.tracker.release("late-uid", P1)
    assert t.in_use() == {D1}
    t.cache.observe(at(without_devices(picked), 11))
    assert t.in_use() == {D1}
    assert t.tracker.pending("late-uid") is not None
    t.cache.observe(written)
    assert t.tracker.pending("late-uid") is None
    assert t.in_use() == {D1}
    assert t.freed == []


def test_awaited_claim_appears_newer_without_allocation(t: Tracked) -> None:
    """An object as new as the answer is the truth, allocated or not."""
    picked = claim("late", D1)
    t.tracker.start([picked], P1)
    t.tracker.succeeded("late-uid", at(picked, 12))
    t.cache.observe(at(without_devices(picked), 13))
    assert t.tracker.pending("late-uid") is None
    assert t.in_use() == set()
    assert t.freed == ["late"]


def test_success_while_the_cache_shows_an_older_incarnation(t: Tracked) -> None:
    """An older object of the same name is replaced by ours later: the entry stays so long."""
    ours = with_uid(C, "new")
    t.tracker.start([with_devices(ours, D1)], P1)
    written = with_devices(at(ours, 20), D1)
    t.tracker.succeeded("new", written)
    t.cache.observe_delete(C)
    assert t.tracker.pending("new") is not None
    assert t.in_use() == {D1}
    t.cache.observe(written)
    assert t.tracker.pending("new") is None
    assert t.in_use() == {D1}


def test_success_while_the_cache_shows_a_newer_incarnation(t: Tracked) -> None:
    """A newer object of the same name proves that ours is gone."""
    started(t, D1)
    t.cache.observe(with_uid(at(C, 20), "new"))
    t.tracker.succeeded(UID, with_devices(at(C, 12), D1))
    assert t.tracker.pending(UID) is None
    assert t.in_use() == set()
    assert t.freed == ["c"]


def test_newer_incarnation_appears_while_awaiting(t: Tracked) -> None:
    """So does one that appears later."""
    picked = claim("late", D1)
    t.tracker.start([picked], P1)
    t.tracker.succeeded("late-uid", at(picked, 12))
    t.cache.observe(claim("late", uid="newer", version="11"))
    assert t.in_use() == {D1}
    t.cache.observe(claim("late", uid="newest", version="13"))
    assert t.in_use() == set()
    assert t.freed == ["late"]


def test_success_for_a_deleted_claim(t: Tracked) -> None:
    """An entry whose object was deleted stays in use until removed; the answer removes it."""
    started(t, D1)
    t.cache.observe_delete(C)
    assert t.in_use() == {D1}
    pending = t.tracker.pending(UID)
    assert pending is not None
    assert pending.gone
    t.tracker.succeeded(UID, with_devices(at(C, 12), D1))
    assert t.in_use() == set()
    assert t.freed == ["c"]


def test_deleted_and_shown_again(t: Tracked) -> None:
    """A claim that is shown again with its UID is not gone."""
    started(t, D1)
    t.cache.observe_delete(C)
    t.cache.observe(at(C, 11))
    t.tracker.succeeded(UID, with_devices(at(C, 12), D1))
    assert t.in_use() == {D1}


def test_deletion_while_awaiting(t: Tracked) -> None:
    """While an entry awaits the cache, the deletion of its claim ends it."""
    picked = claim("late", D1)
    t.tracker.start([picked], P1)
    t.tracker.succeeded("late-uid", at(picked, 12))
    t.cache.observe(at(without_devices(picked), 11))
    t.cache.observe_delete(picked)
    assert t.tracker.pending("late-uid") is None
    assert t.freed == ["late"]


def test_entry_of_a_deleted_claim_is_released(t: Tracked) -> None:
    """An entry whose object was deleted stays in use until removed."""
    started(t, D1)
    t.cache.observe_delete(C)
    t.tracker.release(UID, P1)
    assert t.in_use() == set()
    assert t.freed == ["c"]


def test_full_list_ends_what_it_does_not_show(t: Tracked) -> None:
    """A full list newer than the awaited object that lacks it: created and deleted unseen."""
    picked = claim("late", D1)
    t.tracker.start([picked], P1)
    t.tracker.succeeded("late-uid", at(picked, 12))
    t.cache.observe_all([C], "11")
    t.cache.observe_all([C])
    assert t.in_use() == {D1}
    t.cache.observe_all([C], "12")
    assert t.in_use() == set()
    assert t.freed == ["late"]


def test_full_list_with_another_incarnation(t: Tracked) -> None:
    """So does a list that shows another, older object of that name."""
    ours = with_uid(C, "new")
    t.tracker.start([with_devices(ours, D1)], P1)
    t.tracker.succeeded("new", with_devices(at(ours, 20), D1))
    t.cache.observe_all([C], "19")
    assert t.in_use() == {D1}
    t.cache.observe_all([C], "20")
    assert t.in_use() == set()
    assert t.freed == ["c"]


def test_success_after_a_full_list_without_it(t: Tracked) -> None:
    """If such a list came before the answer, the entry ends with the answer."""
    picked = claim("late", D1)
    t.tracker.start([picked], P1)
    t.cache.observe_all([C], "12")
    t.tracker.succeeded("late-uid", at(picked, 12))
    assert t.in_use() == set()
    assert t.freed == ["late"]


def test_full_list_that_shows_it(t: Tracked) -> None:
    """A full list with the awaited object ends the waiting, the devices stay taken."""
    picked = claim("late", D1)
    t.tracker.start([picked], P1)
    t.tracker.succeeded("late-uid", at(picked, 12))
    t.cache.observe_all([C, at(picked, 12)], "30")
    assert t.tracker.pending("late-uid") is None
    assert t.in_use() == {D1}
    assert t.freed == []


def test_awaiting_entry_can_be_removed(t: Tracked) -> None:
    """A caller that knows better may remove it."""
    picked = claim("late", D1)
    t.tracker.start([picked], P1)
    t.tracker.succeeded("late-uid", at(picked, 12))
    t.tracker.remove("late-uid")
    assert t.in_use() == set()
    assert t.tracker._awaiting == {}


def test_joining_an_awaiting_entry(t: Tracked) -> None:
    """A gang's pod may join while the cache catches up; its release ends nothing."""
    picked = claim("late", D1)
    t.tracker.start([picked], P1, session="gang")
    t.tracker.succeeded("late-uid", at(picked, 12))
    t.tracker.start([picked], P2, session="gang")
    t.tracker.release("late-uid", P2)
    assert t.in_use() == {D1}


def test_succeeded_twice_while_awaiting(t: Tracked) -> None:
    """The later answer is the one that is awaited."""
    picked = claim("late", D1)
    t.tracker.start([picked], P1)
    t.tracker.succeeded("late-uid", at(picked, 12))
    t.tracker.succeeded("late-uid", at(picked, 14))
    t.cache.observe(at(picked, 13))
    assert t.tracker.pending("late-uid") is not None
    t.cache.observe(at(picked, 14))
    assert t.tracker.pending("late-uid") is None
    assert t.in_use() == {D1}


def test_claim_created_from_memory(t: Tracked) -> None:
    """A claim that is created is in flight under a made-up UID until the cache shows the real
    one, whose name and UID are only in the answer."""
    made_up = claim("<extended-resources>", D1, uid="made-up", version="")
    t.tracker.start([made_up], P1)
    real = claim("web-extended-resources-x7k2p", uid="real", version="20")
    t.tracker.succeeded("made-up", with_devices(at(real, 21), D1))
    assert t.in_use() == {D1}
    t.cache.observe(real)
    assert t.in_use() == {D1}
    t.cache.observe(with_devices(at(real, 21), D1))
    assert t.tracker.in_flight() == ()
    assert t.in_use() == {D1}
    assert t.freed == []


def test_claim_created_from_memory_and_shown_before_the_answer(t: Tracked) -> None:
    """If the cache shows the real claim before, it is assumed."""
    t.tracker.start([claim("<extended-resources>", D1, uid="made-up", version="")], P1)
    real = claim("web-extended-resources-x7k2p", uid="real", version="20")
    t.cache.observe(real)
    t.tracker.succeeded("made-up", with_devices(at(real, 21), D1))
    assert t.tracker.in_flight() == ()
    assert t.in_use() == {D1}


def test_created_claim_is_overridden(t: Tracked) -> None:
    """Once the caller says as what a claim was created, the entry is the real claim's: it
    overrides the cached one and makes others wait; both UIDs mean the entry."""
    t.tracker.start([claim("<extended-resources>", D1, uid="made-up", version="")], P1)
    real = claim("web-extended-resources-x7k2p", uid="real", version="20")
    t.tracker.created("made-up", real)
    assert t.in_use() == {D1}
    assert t.tracker.pending("made-up") is t.tracker.pending("real") is not None
    t.cache.observe(real)
    assert t.tracker.get(real.metadata.key) == with_devices(real, D1)
    for uid in ("real", "made-up"):
        with pytest.raises(ClaimInFlightError):
            t.tracker.start([with_devices(with_uid(real, uid), D2)], P2)
    t.tracker.release("made-up", P1)
    assert t.in_use() == set()
    assert t.tracker.pending("made-up") is None
    assert t.cache.get(real.metadata.key) == real


@pytest.mark.parametrize("uid", ["real", "made-up"])
def test_created_claim_succeeds(t: Tracked, uid: str) -> None:
    """The success of a created claim may be told under either UID."""
    t.tracker.start([claim("<extended-resources>", D1, uid="made-up", version="")], P1)
    real = claim("web-extended-resources-x7k2p", uid="real", version="20")
    t.tracker.created("made-up", real)
    t.tracker.succeeded(uid, with_devices(at(real, 21), D1))
    pending = t.tracker.pending(uid)
    assert pending is not None
    assert pending.awaited is not None
    t.cache.observe(with_devices(at(real, 21), D1))
    assert t.tracker.in_flight() == ()
    assert t.in_use() == {D1}


def test_created_claim_is_deleted_before_the_answer(t: Tracked) -> None:
    """The deletion of a created claim is noticed, also before its success is told."""
    t.tracker.start([claim("<extended-resources>", D1, uid="made-up", version="")], P1)
    real = claim("web-extended-resources-x7k2p", uid="real", version="20")
    t.tracker.created("made-up", real)
    t.cache.observe(real)
    t.cache.observe_delete(real)
    t.tracker.succeeded("made-up", with_devices(at(real, 21), D1))
    assert t.in_use() == set()


def test_created_is_ignored_where_it_means_nothing(t: Tracked) -> None:
    """Unknown UIDs, a second creation, and a real claim with an entry of its own."""
    started(t, D1)
    t.tracker.created("unknown", claim("x", uid="real"))
    t.tracker.created(UID, C)
    t.tracker.start([claim("y", D2, uid="made-up")], P2)
    t.tracker.created("made-up", C)
    assert [entry.uid for entry in t.tracker.in_flight()] == [UID, "made-up"]
    t.tracker.created("made-up", claim("x", uid="real"))
    t.tracker.created("real", claim("z", uid="other"))
    assert [entry.uid for entry in t.tracker.in_flight()] == [UID, "real"]
    assert t.in_use() == {D1, D2}


def test_failed_creation_from_memory(t: Tracked) -> None:
    """If nothing was created, release frees the devices; there is nothing to restore."""
    t.tracker.start([claim("<extended-resources>", D1, uid="made-up", version="")], P1)
    t.tracker.release("made-up", P1)
    assert t.in_use() == set()


@pytest.mark.parametrize(
    ("written", "error"),
    [
        (at(with_devices(C, D1), "abc"), UnreadableVersionError),
        (claim("late", D1, version="abc"), UnreadableVersionError),
        (claim("", D1), NoUsableNameError),
        (Pod(), WrongTypeError),
    ],
)
def test_unusable_answers_change_nothing(
    t: Tracked, written: ResourceClaim, error: type[DraError]
) -> None:
    """What cannot be the answer of an API server is an error, and the entry stays."""
    started(t, D1)
    with pytest.raises(error):
        t.tracker.succeeded(UID, written)
    assert t.tracker.pending(UID) == InFlight(with_devices(C, D1), (P1,))
    assert t.in_use() == {D1}


# --- handlers


def test_an_attempt_that_does_not_know_leaves_its_devices_taken(t: Tracked) -> None:
    """The entry stays, marked; one later attempt may go on with it, and ends it as always."""
    started(t)
    t.tracker.leave(UID, P1)
    entry = t.tracker.pending(UID)
    assert entry is not None
    assert (entry.users, entry.unclear) == ((P1,), (P1,))
    assert t.in_use() == {D1}
    assert t.tracker.resume(UID, P1)
    assert not t.tracker.resume(UID, P1)
    t.tracker.release(UID, P1)
    assert t.tracker.pending(UID) is None
    assert t.in_use() == set()


def test_leaving_means_nothing_for_others(t: Tracked) -> None:
    """Ignored for a pod that is no user, and for an unknown claim."""
    started(t)
    before = t.tracker.in_flight()
    t.tracker.leave(UID, P2)
    t.tracker.leave("unknown", P1)
    assert not t.tracker.resume(UID, P2)
    assert not t.tracker.resume("unknown", P1)
    assert t.tracker.in_flight() == before


def test_a_pod_of_the_gang_that_starts_again_is_at_work_again(t: Tracked) -> None:
    """Joining its own entry is a new attempt."""
    started(t, session="gang")
    t.tracker.leave(UID, P1)
    started(t, session="gang")
    assert not t.tracker.resume(UID, P1)


@pytest.mark.parametrize("left_first", [True, False])
def test_what_was_left_is_free_once_the_claim_is_gone(t: Tracked, left_first: bool) -> None:
    """No write can reach a claim that is gone, and no attempt asks for it again: an entry
    that only pods have that do not know ends, one that somebody goes on with stays."""
    started(t, session="gang")
    t.tracker.start([with_devices(C, D1)], P2, session="gang")
    for step in (left_first, not left_first):
        if step:
            t.tracker.leave(UID, P1)
        else:
            t.cache.observe_delete(C)
    pending = t.tracker.pending(UID)
    assert pending is not None
    assert (pending.users, pending.unclear) == ((P2,), ())
    assert t.in_use() == {D1}
    t.tracker.leave(UID, P2)
    assert t.tracker.in_flight() == ()
    assert t.in_use() == set()
    assert t.freed == ["c"]


@pytest.mark.parametrize("left_first", [True, False])
def test_what_was_left_of_a_claim_that_the_cache_never_showed(t: Tracked, left_first: bool) -> None:
    """A claim that an attempt created is gone if a later list does not have it."""
    t.tracker.start([claim("<extended-resources>", D1, uid="made-up", version="")], P1)
    t.tracker.created("made-up", claim("special", uid="real", version="20"))
    for step in (left_first, not left_first):
        assert t.in_use() == {D1}
        if step:
            t.tracker.leave("real", P1)
        else:
            t.cache.observe_all([C], "19")
            assert t.in_use() == {D1}
            t.cache.observe_all([C], "20")
    assert t.tracker.in_flight() == ()
    assert t.in_use() == set()


def test_what_another_scheduler_allocated_is_not_forgotten(t: Tracked) -> None:
    """Both are taken until the entry goes: then the other allocation is, which the API server
    has returned, also while the informer does not show it yet."""
    started(t, D1)
    theirs = with_devices(at(C, 12), D2)
    t.cache.assume(theirs)
    assert t.in_use() == {D1, D2}
    t.tracker.release(UID, P1)
    assert t.in_use() == {D2}
    assert t.cache.get(key("c")) == theirs


def test_abort_keeps_what_may_be_written(t: Tracked) -> None:
    """Of a discarded gang, who does not know what became of a write has the entry until then."""
    started(t, session="gang")
    t.tracker.start([with_devices(C, D1)], P2, session="gang")
    t.tracker.leave(UID, P2)
    t.tracker.abort("gang")
    pending = t.tracker.pending(UID)
    assert pending is not None
    assert (pending.users, pending.unclear) == ((P2,), (P2,))
    assert t.in_use() == {D1}
    assert t.tracker.resume(UID, P2)
    t.tracker.release(UID, P2)
    assert t.in_use() == set()


def test_events_have_one_order(t: Tracked) -> None:
    """The tracker's events have their place among the cache's: restored first, then free."""
    started(t, D1)
    t.cache.assume(finalized(C, 11))
    seen: list[str] = []
    t.cache.add_handler(lambda event: seen.append("cache"))
    t.tracker.add_handler(lambda event: seen.append("free"))
    seen.clear()
    t.tracker.release(UID, P1)
    t.cache.observe(finalized(C, 11))
    assert seen == ["cache", "free", "cache"]


def test_freed_devices_are_free_for_handlers(t: Tracked) -> None:
    """Who hears that devices became free can take them, from inside the handler."""
    started(t, D1)
    taken: list[InFlight] = []

    def take(event: DevicesFreed) -> None:
        assert event.claim == with_devices(C, D1)
        taken.extend(t.tracker.start([claim("next", D1)], P2))

    t.tracker.add_handler(take)
    t.tracker.release(UID, P1)
    assert len(taken) == 1
    assert t.in_use() == {D1}


def test_failing_handler(t: Tracked) -> None:
    """A handler's exception goes to the cache's error callback and stops nothing."""

    def fail(event: DevicesFreed) -> None:
        raise RuntimeError("handler")

    cancel = t.tracker.add_handler(fail)
    started(t, D1)
    t.tracker.release(UID, P1)
    cancel()
    started(t, D1)
    t.tracker.release(UID, P1)
    assert t.freed == ["c", "c"]
    assert [type(error) for error in t.errors] == [HandlerFailedError]
    assert "team-a/c" in str(t.errors[0])


# --- errors


@pytest.mark.parametrize(
    "error",
    [
        InFlightError("team-a/c"),
        NoUidError("team-a/c"),
        NothingToTrackError("team-a/c"),
        ClaimAllocatedError("team-a/c"),
        ClaimInFlightError("team-a/c", ("p1",)),
        ClaimInFlightError("team-a/c", ()),
        DevicesTakenError("team-a/c", ("a/b/c",)),
        PoolsChangedError("team-a/c", ("a/b",)),
    ],
)
def test_errors_pickle_and_name_the_claim(error: InFlightError) -> None:
    """Errors survive pickling, and their text names the claim."""
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), copied.args) == (type(error), error.args)
    assert "team-a/c" in str(error)


# --- faults that others had


def test_bug_44_device_in_neither_set(t: Tracked) -> None:
    """Every reader sees d1 in at least one set, also one that reads the two separately with
    the write in between, in-flight first; or in one read."""
    started(t, D1)
    in_flight = t.tracker.in_flight()
    t.tracker.succeeded(UID, with_devices(at(C, 12), D1))
    cached = t.cache.list()
    claims = [*cached, *(entry.claim for entry in in_flight)]
    assert AllocatedState.from_claims(claims).devices == {D1}
    assert t.tracker.allocated().devices == {D1}


def test_bug_45_share_ids_of_cached_claims(t: Tracked) -> None:
    """An existing claim with shareID and consumedCapacity: the state has both."""
    t.cache.observe(claim("other", result(S1, amounts(mem="2Gi"))))
    assert t.tracker.allocated().shares == {S1}
    assert t.tracker.allocated().consumed_capacity == {D1: amounts(mem="2Gi")}


def test_bug_46_newer_object_hides_an_in_flight_allocation(t: Tracked) -> None:
    """The finalizer arrives as version 11 without allocation: reading gives version 11 with
    the allocation of the entry, and d1 stays taken, until the entry is cleared."""
    started(t, D1)
    t.cache.observe(finalized(C, 11))
    assert t.tracker.get(key("c")) == finalized(with_devices(C, D1), 11)
    assert t.in_use() == {D1}
    t.tracker.release(UID, P1)
    assert t.tracker.get(key("c")) == finalized(C, 11)
    assert t.in_use() == set()


def test_bug_48_snapshot_does_not_see_live_updates(t: Tracked) -> None:
    """A snapshot taken before equals itself after any event of the informer."""
    t.cache.observe(claim("other", D2))
    snapshot = t.tracker.allocated()
    kept = AllocatedState.from_parts([D2])
    t.cache.observe_delete(claim("other", D2))
    t.cache.observe(with_devices(at(C, 11), D1))
    assert snapshot == kept
    assert snapshot.devices == {D2}


def test_bug_51_second_pod_of_a_gang(t: Tracked) -> None:
    """p1 has c in flight, p2 of the gang needs it: p2 reuses the pending allocation."""
    started(t, D1, session="gang")
    (entry,) = t.tracker.start([with_devices(C, D1)], P2, session="gang")
    assert entry.allocation == allocation(D1)


def test_bug_52_entry_and_users_change_in_one_step(t: Tracked) -> None:
    """p1 releases while p2 takes the same pending claim, in both orders: the entry is there
    exactly as long as it has a user."""
    started(t, D1, session="gang")
    t.tracker.start([with_devices(C, D1)], P2, session="gang")
    t.tracker.release(UID, P1)
    assert t.in_use() == {D1}
    t.tracker.release(UID, P2)
    t.tracker.start([with_devices(C, D1)], P2, session="gang")
    pending = t.tracker.pending(UID)
    assert pending is not None
    assert pending.users == (P2,)
    assert t.in_use() == {D1}


def test_bug_54_pending_allocation_says_where_it_is_usable(t: Tracked) -> None:
    """An entry shows the node selector of its allocation, to be checked for other pods."""
    picked = attrs.evolve(C, allocation=allocation(D1, node_selector=ON_NODE_1))
    t.tracker.start([picked], P1, session="gang")
    pending = t.tracker.pending(UID)
    assert pending is not None
    assert pending.node_selector == ON_NODE_1


def test_bug_62_later_failure_keeps_an_earlier_write(t: Tracked) -> None:
    """The claim's status was written, then the pod's patch failed and the pod is unreserved:
    d1 stays taken although the informer has not caught up."""
    started(t, D1)
    t.tracker.succeeded(UID, with_devices(at(C, 12), D1))
    t.tracker.release(UID, P1)
    t.cache.observe(finalized(C, 11))
    assert t.in_use() == {D1}


def test_bug_70_claims_are_not_changed(t: Tracked) -> None:
    """Nothing that the tracker is given is changed."""
    picked, written = with_devices(C, D1), with_devices(at(C, 12), D1)
    before = copy.deepcopy((C, picked, written))
    t.tracker.start([picked], P1, session="s")
    t.tracker.start([picked], P2, session="s")
    t.cache.observe(finalized(C, 11))
    t.tracker.get(key("c"))
    t.tracker.release(UID, P1)
    t.tracker.succeeded(UID, written)
    assert (C, picked, written) == before


def test_bug_73_aborted_session_leaves_nothing(t: Tracked) -> None:
    """A gang session that allocated 3 of 4 claims and is discarded leaves no entry; other
    sessions keep theirs."""
    for number in (1, 2, 3):
        t.tracker.start([claim(f"g{number}", device(f"g{number}"))], f"pod-{number}", session="g")
    t.tracker.start([claim("other", D1)], P1, session="h")
    t.tracker.start([claim("single", D2)], P2)
    t.tracker.abort("g")
    t.tracker.abort(None)
    assert [entry.claim.name for entry in t.tracker.in_flight()] == ["other", "single"]
    assert t.in_use() == {D1, D2}
    assert t.freed == ["g1", "g2", "g3"]


def test_bug_73_abort_keeps_what_is_written(t: Tracked) -> None:
    """What the API server has stored is not freed by discarding the session."""
    t.tracker.start([claim("late", D1)], P1, session="g")
    t.tracker.succeeded("late-uid", claim("late", D1, version="12"))
    t.tracker.abort("g")
    assert t.in_use() == {D1}


def test_bug_71_untracked_claim_crashes_removal(t: Tracked) -> None:
    """A pod names a claim that is tracked and one that is not: letting go of both removes the
    first and ignores the second (cluster-autoscaler#31)."""
    started(t, D1)
    for uid in (UID, "unknown-uid"):
        t.tracker.release(uid, P1)
        t.tracker.remove(uid)
    t.cache.restore(key("unknown"))
    assert t.in_use() == set()
    assert t.freed == ["c"]


# --- the self-check can fail


def damage_ledger(t: Tracked) -> None:
    t.tracker._ledger.add(t.tracker._holdings(claim("ghost", D2)))


def damage_awaiting(t: Tracked) -> None:
    t.tracker._awaiting[key("c")] = {UID: None}


def damage_users(t: Tracked) -> None:
    t.tracker._entries[UID] = attrs.evolve(t.tracker._entries[UID], users=())


@pytest.mark.parametrize("damage", [damage_ledger, damage_awaiting, damage_users])
def test_check_notices(t: Tracked, damage: object) -> None:
    """``_check`` notices a wrong count, a wrong list of what is awaited, an entry of nobody."""
    started(t, D1)
    t.tracker._check()
    assert callable(damage)
    damage(t)
    with pytest.raises(AssertionError):
        t.tracker._check()
