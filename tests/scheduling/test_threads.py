"""Threads for real: 8 writers and 4 readers on one cache, with handlers that call back in.

Runs for DRA_CORE_STRESS_SECONDS, 2 unless set. The writers are schedulers with an API
server between them and take turns as its informer; the readers look whether everything
that the server has stored is in use. The handlers check that no event is lost or
doubled, and change things themselves.
"""

import contextlib
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator

import attrs
import pytest

from dra_core.api.names import DeviceId, ObjectKey
from dra_core.api.objects import ResourceClaim
from dra_core.errors import DraError
from dra_core.inventory.allocated import AllocatedState
from dra_core.scheduling.assume_cache import AssumeCache, CacheEvent
from dra_core.scheduling.errors import InFlightError, StoreError
from dra_core.scheduling.in_flight import ClaimTracker, DevicesFreed
from support.in_use import claim, device, result, share
from support.tracking import at, finalized, with_devices, without_devices

SECONDS = float(os.environ.get("DRA_CORE_STRESS_SECONDS", "2"))
HANGS_AFTER = 30.0
WRITERS, READERS = 8, 4
CLAIMS = [f"c{number}" for number in range(12)]
DEVICES = [device(f"d{number % 4}", f"pool-{number // 4}") for number in range(16)]


@pytest.fixture(autouse=True)
def switch_often() -> Iterator[None]:
    """Threads take turns a hundred times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


class Server:
    """What is stored, and a stream of events that is shown in order."""

    def __init__(self, cache: AssumeCache[ResourceClaim]) -> None:
        self.lock = threading.RLock()
        self.informer = threading.Lock()
        self.cache = cache
        self.version = 0
        self.stored: dict[str, ResourceClaim] = {}
        self.log: list[tuple[Callable[[ResourceClaim], None], ResourceClaim]] = []
        self.shown = 0

    def put(self, change: Callable[[ResourceClaim | None], ResourceClaim | None], name: str) -> (
        ResourceClaim | None
    ):  # fmt: skip
        """Store what ``change`` makes of the stored claim; None: refused."""
        with self.lock:
            new = change(self.stored.get(name))
            if new is None:
                return None
            self.version += 1
            new = at(new, self.version)
            self.stored[name] = new
            self.log.append((self.cache.observe, new))
            self.no_device_twice()
            return new

    def delete(self, name: str) -> None:
        with self.lock:
            old = self.stored.pop(name, None)
            if old is not None:
                self.version += 1
                self.log.append((self.cache.observe_delete, at(old, self.version)))

    def no_device_twice(self) -> None:
        holders: dict[tuple[str, ...], str] = {}
        for each in self.stored.values():
            for got in each.allocation.results if each.allocation else ():
                what = (*got.device_id, got.share_id)
                assert holders.setdefault(what, each.name) == each.name, f"{what} given twice"

    def show(self) -> None:
        """Show the next event. One thread at a time, so that they come in order."""
        with self.informer:
            if self.shown < len(self.log):
                call, what = self.log[self.shown]
                self.shown += 1
                call(what)

    def in_use(self) -> set[tuple[str, ...]]:
        return {
            (*got.device_id, got.share_id)
            for each in self.stored.values()
            if each.allocation is not None
            for got in each.allocation.results
        }


class Chain:
    """A handler that checks that each event begins where the last one of its object ended."""

    def __init__(self) -> None:
        self.now: dict[ObjectKey, ResourceClaim] = {}
        self.events: list[tuple[int, int]] = []
        self.inside = threading.Lock()

    def __call__(self, event: CacheEvent[ResourceClaim]) -> None:
        assert self.inside.acquire(blocking=False), "two threads deliver"
        try:
            assert event.old is not event.new
            assert self.now.get(event.key) is event.old, f"lost or doubled: {event}"
            if event.new is None:
                del self.now[event.key]
            else:
                self.now[event.key] = event.new
            if not event.initial:
                self.events.append((id(event.old), id(event.new)))
        finally:
            self.inside.release()


@attrs.define
class Stress:
    """Everything that the threads share."""

    cache: AssumeCache[ResourceClaim]
    tracker: ClaimTracker
    server: Server
    stop: threading.Event = attrs.field(factory=threading.Event)
    failures: list[str] = attrs.field(factory=list)
    counts: dict[str, int] = attrs.field(factory=dict)

    def run(self, work: Callable[[random.Random], str], seed: int) -> Callable[[], None]:
        """The body of a thread: work until it is time to stop, note what fails."""
        rng = random.Random(seed)

        def body() -> None:
            try:
                while not self.stop.is_set():
                    done = work(rng)
                    self.counts[done] = self.counts.get(done, 0) + 1
            except BaseException:
                self.failures.append(traceback.format_exc())
                self.stop.set()
                raise

        return body

    # --- writers

    def write(self, rng: random.Random) -> str:
        """One step of a scheduler, of the informer, or of somebody else."""
        for _ in range(rng.randrange(3)):
            self.server.show()
        name = rng.choice(CLAIMS)
        kind = rng.random()
        if kind < 0.6:
            return self.schedule(rng, name)
        if kind < 0.8:
            self.server.put(
                lambda old: without_devices(old) if old and old.allocation else None, name
            )
            return "deallocate"
        if kind < 0.85:
            self.server.delete(name)
            return "delete"
        if kind < 0.95:
            uid = f"{name}-{rng.random()}"
            self.server.put(lambda old: claim(name, uid=uid) if old is None else None, name)
            return "create"
        self.resync()
        return "resync"

    def resync(self) -> None:
        for found in self.cache.list():
            try:
                again = self.cache.get_api_object(found.metadata.key)
            except StoreError:
                continue
            self.cache.observe(again)

    def schedule(self, rng: random.Random, name: str) -> str:
        """A pod's claim from the pick to the answer, or to giving up."""
        cached = self.cache.find(claim(name).metadata.key)
        state = self.tracker.allocated()
        if cached is None or cached.allocation is not None:
            return "not possible"
        uid, pod = cached.metadata.uid, f"pod-{rng.random()}"
        session = rng.choice([None, "gang"])
        picked = self.pick(rng, state)
        if picked is None:
            return "full"
        time.sleep(0)  # let others take it
        try:
            (entry,) = self.tracker.start(
                [with_devices(cached, result(picked))], pod, session=session, basis=state
            )
        except InFlightError as error:
            return type(error).__name__
        if rng.random() < 0.3:
            self.tracker.release(uid, pod)
            self.tracker.release(uid, pod)
            return "gave up"

        def add_finalizer(old: ResourceClaim | None) -> ResourceClaim | None:
            return finalized(old, 0) if old and old.metadata.uid == uid else None

        answer = self.server.put(add_finalizer, name)
        if answer is not None:
            with contextlib.suppress(StoreError):  # the informer was faster, or it is gone
                self.cache.assume(answer)

        def allocate(old: ResourceClaim | None) -> ResourceClaim | None:
            # A peer may have written the shared entry, the claim may be deallocated since,
            # and in flight again with other devices: what was picked then is not ours now.
            mine = self.tracker.pending(uid)
            if mine is None or mine.allocation != entry.allocation:
                return None
            if old is None or old.metadata.uid != uid or old.allocation:
                return None
            return attrs.evolve(old, allocation=entry.allocation)

        answer = self.server.put(allocate, name)
        if answer is None:
            self.tracker.release(uid, pod)
            return "write failed"
        self.tracker.succeeded(uid, answer)
        return "allocated"

    def pick(self, rng: random.Random, state: AllocatedState) -> DeviceId | None:
        wanted = rng.choice(DEVICES)
        if wanted in state.devices:
            return None
        if wanted.device == "d0":
            return share("d0", f"s-{rng.random()}", wanted.pool)  # type: ignore[return-value]
        return wanted

    # --- readers

    def read(self, rng: random.Random) -> str:
        """Everything that is stored is in use, at every moment."""
        with self.server.lock:
            stored = self.server.in_use()
            state = self.tracker.allocated()
        for driver, pool, name, share_id in stored:
            use = state.pool(driver, pool).use(name)
            assert use is not None, f"{pool}/{name} is in use and seems free"
            assert share_id in use.shares if share_id else use.exclusive
        copy = {key: view.uses for key, view in state.pools.items()}
        claims = self.tracker.claims()
        assert len({each.metadata.uid for each in claims}) == len(claims)
        for found in self.cache.list("odd"):
            assert int(found.name[1:]) % 2
        if rng.random() < 0.05:
            self.tracker._check()
        assert {key: view.uses for key, view in state.pools.items()} == copy
        return "read"


C = claim("c")
CALLS: dict[str, Callable[[AssumeCache[ResourceClaim], ClaimTracker], object]] = {
    "find": lambda cache, tracker: cache.find(C.metadata.key),
    "get": lambda cache, tracker: cache.get(C.metadata.key),
    "get_api_object": lambda cache, tracker: cache.get_api_object(C.metadata.key),
    "list": lambda cache, tracker: cache.list(),
    "observe": lambda cache, tracker: cache.observe(at(C, 2)),
    "observe_delete": lambda cache, tracker: cache.observe_delete(C),
    "observe_all": lambda cache, tracker: cache.observe_all([]),
    "assume": lambda cache, tracker: cache.assume(at(C, 2)),
    "restore": lambda cache, tracker: cache.restore(C.metadata.key),
    "add_hypothetical": lambda cache, tracker: cache.add_hypothetical(claim("other")),
    "add_handler": lambda cache, tracker: cache.add_handler(id),
    "attach": lambda cache, tracker: cache.attach(lambda old, new: None),
    "allocated": lambda cache, tracker: tracker.allocated(),
    "pending": lambda cache, tracker: tracker.pending("c-uid"),
    "in_flight": lambda cache, tracker: tracker.in_flight(),
    "tracker.get": lambda cache, tracker: tracker.get(C.metadata.key),
    "claims": lambda cache, tracker: tracker.claims(),
    "start": lambda cache, tracker: tracker.start([claim("other", DEVICES[0])], "pod"),
    "release": lambda cache, tracker: tracker.release("c-uid", "pod"),
    "remove": lambda cache, tracker: tracker.remove("c-uid"),
    "abort": lambda cache, tracker: tracker.abort("gang"),
    "created": lambda cache, tracker: tracker.created("c-uid", C),
    "succeeded": lambda cache, tracker: tracker.succeeded("c-uid", at(C, 2)),
    "tracker.add_handler": lambda cache, tracker: tracker.add_handler(id),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_is_atomic(name: str) -> None:
    """While one thread is in a step, no call of another thread sees or changes anything."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    tracker = ClaimTracker(cache)
    cache.observe(C)
    begun, done = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        CALLS[name](cache, tracker)
        done.set()

    thread = threading.Thread(target=call, daemon=True)
    with cache.atomic():
        thread.start()
        assert begun.wait(HANGS_AFTER)
        assert not done.wait(0.02)
    assert done.wait(HANGS_AFTER)
    thread.join(HANGS_AFTER)


def odd(found: ResourceClaim) -> tuple[str, ...]:
    """The index of the cache under stress."""
    return ("odd",) if int(found.name[1:]) % 2 else ()


def test_threads() -> None:
    """No deadlock, no lost or doubled event, one order for all handlers, and every invariant
    holds, with 8 writers, 4 readers and handlers that call back in."""
    errors: list[DraError] = []
    cache = AssumeCache(ResourceClaim, errors.append, index=odd)
    tracker = ClaimTracker(cache)
    stress = Stress(cache, tracker, Server(cache))
    first, second = Chain(), Chain()
    cache.add_handler(first)

    def call_back(event: CacheEvent[ResourceClaim]) -> None:
        """Reads, and writes of its own: an entry that comes and goes."""
        state = tracker.allocated()
        free = next((each for each in DEVICES[1:4] if each not in state.devices), None)
        if event.new is not None and free is not None and len(first.events) % 4 == 0:
            try:
                tracker.start([claim("c99", free, uid="inner")], "inner-pod")
            except InFlightError:
                return
            finally:
                tracker.release("inner", "inner-pod")
            cache.restore(ObjectKey("nowhere", "nothing"))

    def freed(event: DevicesFreed) -> None:
        tracker.allocated()
        stress.counts["freed"] = stress.counts.get("freed", 0) + 1

    cache.add_handler(call_back)
    cache.add_handler(second)
    tracker.add_handler(freed)
    threads = [
        threading.Thread(target=stress.run(work, seed), daemon=True)
        for seed, work in enumerate([stress.write] * WRITERS + [stress.read] * READERS)
    ]
    for thread in threads:
        thread.start()
    stress.stop.wait(SECONDS)
    stress.stop.set()
    for thread in threads:
        thread.join(HANGS_AFTER)
    hanging = [thread.name for thread in threads if thread.is_alive()]
    assert not hanging, f"hang: {hanging}"
    assert not stress.failures, "\n".join(stress.failures)
    assert not errors, [str(error) for error in errors]

    while stress.server.shown < len(stress.server.log):
        stress.server.show()
    tracker._check()
    assert tracker.in_flight() == ()
    assert tracker.allocated() == AllocatedState.from_claims(stress.server.stored.values())
    assert first.events == second.events
    assert first.now == second.now == {found.metadata.key: found for found in cache.list()}
    assert stress.counts["allocated"] > 10
    assert len(first.events) > 100
    print(f"{SECONDS} s: {len(first.events)} events, {sorted(stress.counts.items())}")
