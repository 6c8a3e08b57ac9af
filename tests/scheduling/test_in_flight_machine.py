"""Random interleavings of everything that can happen, against a simple model and the truth.

Two machines. The first does anything at all, sensible or not, and compares cache,
tracker and the events that handlers see with a model that computes everything anew. The
second has an API server: schedulers with several requests under way, an informer that
lags behind, and the question whether the server and all that is in flight ever hold
one device twice, and whether nothing stays taken when everything has settled.
"""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import attrs
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from dra_core.api.names import DeviceId, SharedDeviceId
from dra_core.api.objects import DeviceRequestAllocationResult, ResourceClaim
from dra_core.errors import DraError
from dra_core.inventory.allocated import AllocatedState
from dra_core.scheduling.assume_cache import AssumeCache, CacheEvent
from dra_core.scheduling.errors import (
    ClaimInFlightError,
    InFlightError,
    StoreError,
    UnreadableVersionError,
)
from dra_core.scheduling.in_flight import ClaimTracker, DevicesFreed
from support.in_use import amounts, claim, device, result, share
from support.machines import machine_settings
from support.tracking import at, finalized, with_devices, without_devices
from support.tracking_model import Change, Entry, Model

# --- anything at all

NAMES = ("a", "b")
PODS = st.sampled_from(["p1", "p2", "p3"])
SESSIONS = st.sampled_from([None, "gang", "other gang"])
RESULTS: list[DeviceRequestAllocationResult] = [
    result(device("d1")),
    result(device("d2")),
    result(device("d3", "pool-b")),
    result(share("d1", "s1"), amounts(mem="1Gi")),
    result(share("d1", "s1"), amounts(mem="2Gi")),
    result(share("d4", "s2"), amounts(mem="3Gi")),
    result(share("d4", "s3")),
    result(device("d1"), admin=True),
]
RESULT_LISTS = [
    *([one] for one in RESULTS),
    *([one, other] for one, other in combinations(RESULTS, 2) if one.device != other.device),
]
UIDS = tuple(f"{name}-{number}" for name in NAMES for number in (1, 2))


def refusal(call: Callable[[], object]) -> str:
    """The type of error by which a call is refused, "" if it is not."""
    try:
        call()
    except (StoreError, InFlightError) as error:
        return type(error).__name__
    return ""


def world(*result_lists: list[DeviceRequestAllocationResult]) -> list[ResourceClaim]:
    """The claims of a small world: names, UIDs, versions and devices meet again and again."""
    return [
        claim(name, *results, uid=f"{name}-{incarnation}", version=version)
        for version in (*map(str, range(1, 12)), "bad")
        for incarnation in (1, 1, 1, 2)
        for results in result_lists
        for name in NAMES
    ]


WORLD = world(*RESULT_LISTS)
"""Allocated claims; as many follow that are not."""
WORLD_SIZE = len(WORLD)
WORLD += (without_devices(each) for each in WORLD[:])

# Drawn whole and by number: a draw for each part makes the machine five times slower.
ALLOCATED = st.integers(0, WORLD_SIZE - 1).map(lambda number: WORLD[number])
CLAIMS = st.integers(0, 2 * WORLD_SIZE - 1).map(lambda number: WORLD[number])


class AnythingMachine(RuleBasedStateMachine):
    """Cache and tracker against the model, under any calls in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[DraError] = []
        self.cache = AssumeCache(ResourceClaim, self.errors.append)
        self.tracker = ClaimTracker(self.cache)
        self.model = Model()
        self.seen: list[Change | str] = []
        self.late: list[Change | str] = []
        self.late_before: dict[Any, ResourceClaim] | None = None
        self.cache.add_handler(lambda event: self.seen.append((event.old, event.new)))
        self.tracker.add_handler(lambda event: self.seen.append(f"freed {event.claim.name}"))

    @rule(new=CLAIMS)
    def observe(self, new: ResourceClaim) -> None:
        self.cache.observe(new)
        self.model.observe(new)

    @rule(which=st.integers(0, 9))
    def resync(self, which: int) -> None:
        """The informer shows again what it had shown."""
        if self.model.observed:
            again = list(self.model.observed.values())[which % len(self.model.observed)]
            self.cache.observe(again)
            self.model.observe(again)

    @rule(old=CLAIMS)
    def observe_delete(self, old: ResourceClaim) -> None:
        self.cache.observe_delete(old)
        self.model.observe_delete(old)

    @rule(listed=st.lists(CLAIMS, max_size=2, unique_by=lambda c: c.name),
          version=st.integers(1, 5))  # fmt: skip
    def observe_all(self, listed: list[ResourceClaim], version: int) -> None:
        self.cache.observe_all(listed, str(version))
        self.model.observe_all(listed, version)

    @rule(new=CLAIMS)
    def assume(self, new: ResourceClaim) -> None:
        refused = self.model.assume(new)
        assert refusal(lambda: self.cache.assume(new)) == refused

    @rule(name=st.sampled_from(NAMES))
    def restore(self, name: str) -> None:
        key = claim(name).metadata.key
        self.cache.restore(key)
        self.model.restore(key)

    @rule(new=CLAIMS)
    def add_hypothetical(self, new: ResourceClaim) -> None:
        if new.metadata.key in self.model.latest or new.metadata.resource_version == "bad":
            with pytest.raises(StoreError):
                self.cache.add_hypothetical(new)
        else:
            self.cache.add_hypothetical(new)
            self.model.add_hypothetical(new)

    @rule(picked=ALLOCATED, pod=PODS, session=SESSIONS)
    def start(self, picked: ResourceClaim, pod: str, session: str | None) -> None:
        refused = self.model.start(picked, pod, session)
        call = partial(self.tracker.start, [picked], pod, session=session)
        assert refusal(call) == refused

    @precondition(lambda self: not self.model.entries)
    @rule(picked=ALLOCATED, pod=PODS, session=SESSIONS)
    def start_first(self, picked: ResourceClaim, pod: str, session: str | None) -> None:
        """Most of the time something is in flight."""
        self.start(picked, pod, session)

    @rule(which=st.integers(0, 3), picked=ALLOCATED, pod=PODS, session=SESSIONS)
    def start_cached(
        self, which: int, picked: ResourceClaim, pod: str, session: str | None
    ) -> None:
        """A claim as the cache shows it is taken in flight."""
        cached = list(self.model.latest.values())
        if cached:
            found = cached[which % len(cached)]
            self.start(attrs.evolve(found, allocation=picked.allocation), pod, session)

    @precondition(lambda self: self.model.entries)
    @rule(which=st.integers(0, 3), new=CLAIMS)
    def observe_entry(self, which: int, new: ResourceClaim) -> None:
        """The informer shows a claim that is in flight, allocated or not."""
        metadata = self.entry(which).claim.metadata
        shown = attrs.evolve(new.metadata, name=metadata.name, uid=metadata.uid)
        self.observe(attrs.evolve(new, metadata=shown))

    @precondition(lambda self: self.model.entries)
    @rule(which=st.integers(0, 3))
    def delete_entry(self, which: int) -> None:
        """The informer shows that a claim that is in flight is gone."""
        self.observe_delete(self.entry(which).claim)

    @precondition(lambda self: self.model.entries)
    @rule(which=st.integers(0, 3), version=st.integers(1, 12))
    def answer(self, which: int, version: int) -> None:
        """The API server returns what is in flight, at whatever version."""
        entry = self.entry(which)
        self.succeeded(entry.claim.metadata.uid, at(entry.claim, version))

    @precondition(lambda self: self.model.entries)
    @rule(which=st.integers(0, 3), pod=PODS)
    def join(self, which: int, pod: str) -> None:
        """One more pod of the session comes."""
        entry = self.entry(which)
        self.start(entry.claim, pod, entry.session)

    @precondition(lambda self: self.model.entries)
    @rule(which=st.integers(0, 3), pod=PODS)
    def let_go(self, which: int, pod: str) -> None:
        """A pod lets go of something that is in flight."""
        self.release(self.entry(which).claim.metadata.uid, pod)

    @precondition(lambda self: self.model.entries)
    @rule(which=st.integers(0, 3), pod=PODS)
    def leave(self, which: int, pod: str) -> None:
        """A pod's attempt is over without knowing what became of its write."""
        uid = self.entry(which).claim.metadata.uid
        self.tracker.leave(uid, pod)
        self.model.leave(uid, pod)

    @rule(uid=st.sampled_from(UIDS), pod=PODS)
    def resume(self, uid: str, pod: str) -> None:
        """The pod's next attempt goes on with it."""
        assert self.tracker.resume(uid, pod) == self.model.resume(uid, pod)

    def entry(self, which: int) -> Entry:
        entries = list(self.model.entries.values())
        return entries[which % len(entries)]

    @rule(uid=st.sampled_from(UIDS), pod=PODS)
    def release(self, uid: str, pod: str) -> None:
        self.tracker.release(uid, pod)
        self.model.release(uid, pod)

    @rule(uid=st.sampled_from(UIDS))
    def remove(self, uid: str) -> None:
        self.tracker.remove(uid)
        self.model.remove(uid)

    @rule(session=st.sampled_from(["gang", "other gang"]))
    def abort(self, session: str) -> None:
        self.tracker.abort(session)
        self.model.abort(session)

    @rule(uid=st.sampled_from(UIDS), written=CLAIMS)
    def succeeded(self, uid: str, written: ResourceClaim) -> None:
        if written.metadata.resource_version == "bad":
            with pytest.raises(UnreadableVersionError):
                self.tracker.succeeded(uid, written)
        else:
            self.tracker.succeeded(uid, written)
            self.model.succeeded(uid, written)

    @precondition(lambda self: self.late_before is None)
    @rule()
    def subscribe_late(self) -> None:
        """A handler that comes late sees everything there is, then every change."""
        initial: dict[Any, ResourceClaim] = {}

        def handle(event: CacheEvent[ResourceClaim]) -> None:
            if event.initial:
                assert event.old is None
                assert event.new is not None
                initial[event.key] = event.new
            else:
                self.late.append((event.old, event.new))

        self.cache.add_handler(handle)
        self.late_before = dict(self.model.latest)
        self.from_here = len([c for c in self.model.changes if isinstance(c, tuple)])
        assert initial == self.late_before

    @invariant()
    def copies_agree(self) -> None:
        self.tracker._check()
        latest = {found.metadata.key: found for found in self.cache.list()}
        assert latest == self.model.latest
        for key in latest:
            if key in self.model.observed:
                assert self.cache.get_api_object(key) == self.model.observed[key]

    @invariant()
    def overrides_agree(self) -> None:
        assert self.tracker.claims() == self.model.claims()
        for key, found in self.model.latest.items():
            assert self.tracker.get(key) == self.model.overridden(found)

    @invariant()
    def use_agrees(self) -> None:
        state = self.tracker.allocated()
        assert {*state.devices, *state.shares} == self.model.in_use()
        consumed = {d: amount["mem"].nano for d, amount in state.consumed_capacity.items()}
        assert consumed == self.model.consumed()

    @invariant()
    def entries_agree(self) -> None:
        mine = {entry.uid: entry for entry in self.tracker.in_flight()}
        assert mine.keys() == self.model.entries.keys()
        for uid, entry in self.model.entries.items():
            found = mine[uid]
            assert (
                found.claim, set(found.users), found.session, found.awaited, found.gone,
                set(found.unclear),
            ) == (
                entry.claim, entry.users, entry.session, entry.awaited, entry.gone, entry.unclear,
            )  # fmt: skip

    @invariant()
    def events_agree(self) -> None:
        assert self.seen == self.model.changes
        if self.late_before is not None:
            changes = [c for c in self.model.changes if isinstance(c, tuple)]
            assert self.late == changes[self.from_here :]


# --- an API server, schedulers, a slow informer

OURS = (device("d1"), device("d2"))
SHAREABLE = device("d3", "pool-b")
THEIRS = (device("x1"), device("x2"))
MAX_SHARES = 2


@attrs.define
class Writer:
    """One pod of ours on its way: ``claim`` as the tracker has it in flight."""

    pod: str
    session: str | None
    uid: str
    claim: ResourceClaim
    stored: ResourceClaim | None = None
    finalizer: ResourceClaim | None = None
    created: ResourceClaim | None = None
    failed: bool = False


class ServerMachine(RuleBasedStateMachine):
    """The truth is what the server has stored; nothing may be handed out twice or lost."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, ResourceClaim] = {}
        self.version = 1
        self.log: list[tuple[str, ResourceClaim]] = []
        self.shown = 0
        self.counter = 0
        self.writers: list[Writer] = []
        self.errors: list[DraError] = []
        self.freed: list[str] = []

    @initialize()
    def begin(self) -> None:
        self.cache = AssumeCache(ResourceClaim, self.errors.append)
        self.tracker = ClaimTracker(self.cache)
        self.tracker.add_handler(self.note)
        for name in NAMES:
            self.create(name)
        self.show()
        self.show()

    def note(self, event: DevicesFreed) -> None:
        """Devices are told to be free only when they are; handlers call back in."""
        assert event.claim.metadata.uid not in {e.uid for e in self.tracker.in_flight()}
        self.tracker.allocated()
        self.freed.append(event.claim.name)

    def number(self) -> int:
        self.counter += 1
        return self.counter

    def put(self, new: ResourceClaim) -> ResourceClaim:
        """The server stores a claim, and its stream will show that."""
        self.version += 1
        new = at(new, self.version)
        self.stored[new.name] = new
        self.log.append(("put", new))
        return new

    # --- what others do

    @rule(name=st.sampled_from(NAMES))
    def create(self, name: str) -> None:
        if name not in self.stored:
            self.put(claim(name, uid=f"{name}-{self.number()}"))

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        old = self.stored.pop(name, None)
        if old is not None:
            self.version += 1
            self.log.append(("delete", at(old, self.version)))

    @rule(name=st.sampled_from(NAMES))
    def deallocate(self, name: str) -> None:
        old = self.stored.get(name)
        if old is not None and old.allocation is not None:
            self.put(without_devices(old))

    @rule(name=st.sampled_from(NAMES), which=st.integers(0, 1))
    def other_scheduler(self, name: str, which: int) -> None:
        """Another scheduler allocates a claim, with devices that are not ours to give."""
        old = self.stored.get(name)
        if old is not None and old.allocation is None:
            self.put(with_devices(old, THEIRS[which]))

    @rule(name=st.sampled_from(NAMES))
    def touch(self, name: str) -> None:
        """Somebody changes something else of a claim."""
        if name in self.stored:
            self.put(self.stored[name])

    # --- the informer

    @rule(steps=st.integers(1, 3))
    def show_some(self, steps: int) -> None:
        for _ in range(steps):
            self.show()

    def show(self) -> None:
        if self.shown < len(self.log):
            kind, what = self.log[self.shown]
            self.shown += 1
            if kind == "put":
                self.cache.observe(what)
            else:
                self.cache.observe_delete(what)

    @rule()
    def list_anew(self) -> None:
        """The informer lost its connection and lists everything."""
        self.shown = len(self.log)
        self.cache.observe_all(list(self.stored.values()), str(self.version))

    @rule()
    def resync(self) -> None:
        for found in self.cache.list():
            try:
                again = self.cache.get_api_object(found.metadata.key)
            except StoreError:
                continue
            self.cache.observe(again)

    # --- our schedulers

    def pick(self, state: AllocatedState) -> DeviceRequestAllocationResult | None:
        """The first free device, else a share."""
        for candidate in OURS:
            if candidate not in state.devices:
                return result(candidate)
        if len(state.pool(*SHAREABLE[:2]).shares.get(SHAREABLE.device, ())) < MAX_SHARES:
            return result(share("d3", f"s{self.number()}", "pool-b"), amounts(mem="1Gi"))
        return None

    @rule(name=st.sampled_from(NAMES), session=SESSIONS)
    def schedule(self, name: str, session: str | None) -> None:
        """A pod picks a device for a claim as the cache shows it, or joins its gang's entry."""
        cached = self.cache.find(claim(name).metadata.key)
        picked = self.pick(self.tracker.allocated())
        if cached is None or cached.allocation is not None or picked is None:
            return
        pod = f"pod-{self.number()}"
        try:
            (entry,) = self.tracker.start(
                [with_devices(cached, picked)], pod, session=session,
                basis=self.tracker.allocated(),
            )  # fmt: skip
        except ClaimInFlightError:
            return
        self.writers.append(Writer(pod, session, cached.metadata.uid, entry.claim))

    @rule()
    def schedule_from_memory(self) -> None:
        """A pod needs a claim that does not exist yet."""
        picked = self.pick(self.tracker.allocated())
        if picked is not None:
            number = self.number()
            made_up = claim(f"<memory-{number}>", picked, uid=f"made-up-{number}", version="")
            self.tracker.start([made_up], f"pod-{number}")
            self.writers.append(Writer(f"pod-{number}", None, made_up.metadata.uid, made_up))

    @rule(which=st.integers(0, 9))
    def join(self, which: int) -> None:
        """One more pod of a gang comes, and uses the entry of the first."""
        for first in self.turn(which):
            pending = self.tracker.pending(first.uid)
            if first.session is None or pending is None or self.is_allocated(pending.claim):
                continue
            pod = f"pod-{self.number()}"
            (entry,) = self.tracker.start([pending.claim], pod, session=first.session)
            assert entry.allocation == pending.allocation
            self.writers.append(Writer(pod, first.session, first.uid, entry.claim))

    def is_allocated(self, wanted: ResourceClaim) -> bool:
        """Whether the cache shows it so."""
        cached = self.cache.find(wanted.metadata.key)
        same = cached is not None and cached.metadata.uid == wanted.metadata.uid
        return same and cached is not None and cached.allocation is not None

    @rule(which=st.integers(0, 9), steps=st.integers(1, 3))
    def advance(self, which: int, steps: int) -> None:
        """A pod's next steps: the claim is created, the status written, the answer seen."""
        for writer in self.turn(which):
            for _ in range(steps):
                if writer not in self.writers:
                    break
                if writer.claim.name.startswith("<") and writer.created is None:
                    name = f"made-{self.number()}"
                    writer.created = self.put(claim(name, uid=f"{name}-uid"))
                    self.tracker.created(writer.uid, writer.created)
                elif writer.stored is None and not writer.failed:
                    self.write_status(writer)
                else:
                    self.status_answered(writer)

    @rule(which=st.integers(0, 9))
    def delete_created(self, which: int) -> None:
        for writer in self.turn(which):
            if writer.created is not None:
                self.delete(writer.created.name)

    def turn(self, which: int) -> list[Writer]:
        """One of the pods on their way, if there is any."""
        return [self.writers[which % len(self.writers)]] if self.writers else []

    def target(self, writer: Writer) -> ResourceClaim | None:
        """What the server has stored of the claim that a pod writes to."""
        wanted = writer.created or writer.claim
        found = self.stored.get(wanted.name)
        return found if found and found.metadata.uid == wanted.metadata.uid else None

    @rule(which=st.integers(0, 9))
    def write_finalizer(self, which: int) -> None:
        for writer in self.turn(which):
            found = self.target(writer)
            if found is not None and writer.stored is None:
                writer.finalizer = self.put(finalized(found, 0))

    @rule(which=st.integers(0, 9))
    def finalizer_answered(self, which: int) -> None:
        for writer in self.turn(which):
            if writer.finalizer is not None:
                # Refused as too old, unknown or replaced: the cache knows better.
                try:
                    self.cache.assume(writer.finalizer)
                except StoreError:
                    continue

    def write_status(self, writer: Writer) -> None:
        """The status is written if the claim still is ours to allocate; else the write fails.

        A pod whose entry is gone (a peer's write ended it) looks at the claim again first.
        """
        found = self.target(writer)
        mine = self.tracker.pending(writer.uid) is not None
        if found is not None and found.allocation is None and mine:
            writer.stored = self.put(attrs.evolve(found, allocation=writer.claim.allocation))
        else:
            writer.failed = True

    def status_answered(self, writer: Writer) -> None:
        if writer.stored is not None:
            self.tracker.succeeded(writer.uid, writer.stored)
        else:
            self.tracker.release(writer.uid, writer.pod)
        self.writers.remove(writer)

    @rule(which=st.integers(0, 9), again=st.booleans())
    def give_up(self, which: int, again: bool) -> None:
        """A pod that has not written gives up, maybe telling so twice."""
        for writer in self.turn(which):
            if writer.stored is None:
                self.tracker.release(writer.uid, writer.pod)
                if again:
                    self.tracker.release(writer.uid, writer.pod)
                self.writers.remove(writer)

    @rule(session=st.sampled_from(["gang", "other gang"]))
    def abort(self, session: str) -> None:
        """A session is discarded before anything of it was written."""
        members = [writer for writer in self.writers if writer.session == session]
        if not any(writer.stored for writer in members):
            self.tracker.abort(session)
            for writer in members:
                self.tracker.release(writer.uid, writer.pod)
                self.writers.remove(writer)

    # --- the truth

    def held(self) -> dict[DeviceId | SharedDeviceId, set[str]]:
        """Which claims hold what: as stored, or on the way."""
        holders: dict[DeviceId | SharedDeviceId, set[str]] = {}
        in_flight = [entry.claim for entry in self.tracker.in_flight()]
        for each in (*self.stored.values(), *in_flight):
            for got in each.allocation.results if each.allocation else ():
                what = SharedDeviceId(*got.device_id, got.share_id) if got.share_id else None
                holders.setdefault(what or got.device_id, set()).add(each.metadata.uid)
        return holders

    @invariant()
    def nothing_is_handed_out_twice(self) -> None:
        """No device of ours is held by two claims."""
        held = self.held()
        for what, holders in held.items():
            assert what[:3] in THEIRS or len(holders) == 1, (what, holders)
        shares = [what for what in held if what[:3] == SHAREABLE]
        assert len(shares) <= MAX_SHARES

    @invariant()
    def what_is_held_is_in_use(self) -> None:
        """A device in use is in the cache's view or in flight at every moment."""
        state = self.tracker.allocated()
        in_use = {*state.devices, *state.shares}
        for what in self.held():
            assert what[:3] in THEIRS or what in in_use, what

    @invariant()
    def structures_are_sound(self) -> None:
        self.tracker._check()
        assert not self.errors

    def teardown(self) -> None:
        """None is lost for ever: when all pods have ended and the informer has caught up, in
        use is what the server has stored, and nothing is in flight."""
        if not hasattr(self, "cache"):
            return
        while self.writers:
            writer = self.writers[0]
            self.status_answered(writer)
        while self.shown < len(self.log):
            self.show()
        assert self.tracker.in_flight() == ()
        for entry in self.tracker.claims():
            assert entry == self.stored[entry.name]
        assert self.tracker.allocated() == AllocatedState.from_claims(self.stored.values())


# Thousands of interleavings: the profile's number of runs of up to 50 steps each.
TestAnything = AnythingMachine.TestCase
TestAnything.settings = machine_settings(50)
TestServer = ServerMachine.TestCase
TestServer.settings = machine_settings(50)
