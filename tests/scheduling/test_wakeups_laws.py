"""No lost wake-up: what ends the reason for sleeping is an event that wakes the pod.

The caches are the real ones, events are told as they tell them, and look-ups go to them.
"""

from typing import Any

import attrs
from hypothesis import event, given
from hypothesis import strategies as st

from dra_core.api.core import Pod
from dra_core.api.names import ObjectKey
from dra_core.api.objects import DeviceClass, ResourceClaim
from dra_core.api.wire import decode_allocation_result
from dra_core.errors import DraError
from dra_core.scheduling.assume_cache import AssumeCache, CacheEvent
from dra_core.scheduling.cycle_verdicts import PASSED, Stopped
from dra_core.scheduling.in_flight import ClaimTracker
from dra_core.scheduling.wakeups import before_filtering, pre_enqueue, wake_up
from dra_core.scheduling.wakeups_demand import Lookups
from dra_core.scheduling.wakeups_verdict import WakeUp
from support.allocation_builders import device_class, exactly, first, sub
from support.claim_json import allocation_json
from support.claims import make_pod, named, owner, template
from support.sleeping import claim, consumers

NAMES = ("gpu", "made", "other")
ALLOCATIONS = {name: decode_allocation_result(allocation_json(name)) for name in NAMES}
POD = make_pod(named("e-gpu", "gpu"), template("e-made"))
STATUSES: tuple[dict[str, str | None], ...] = ({}, {"e-made": "made"}, {"e-made": None})
REQUESTS = {
    "gpu": exactly("r", of="class-a"),
    "made": first("r", sub("x", of="class-a"), sub("y", of="class-b")),
    "other": exactly("r", of="class-b"),
}


class World:
    """A pod that sleeps, and everything that it may wait for before nodes are looked at."""

    def __init__(self) -> None:
        self.pod = POD
        self.version = 1
        self.errors: list[DraError] = []
        self.claims = AssumeCache(ResourceClaim, self.errors.append)
        self.tracker = ClaimTracker(self.claims)
        self.classes = AssumeCache(DeviceClass, self.errors.append, delivery=self.claims.atomic())
        self.lookups = Lookups(
            self.claims.find,
            lambda name: self.classes.find(ObjectKey("", name)),
            pending=self.tracker.pending,
            limit=2,
        )
        self.answers: list[WakeUp] = []
        self.claims.add_handler(self.hear)
        self.classes.add_handler(self.hear)
        self.tracker.add_handler(self.hear)

    def hear(self, heard: Any) -> None:
        self.answers.append(wake_up(self.pod, heard, self.lookups))

    def next_version(self) -> str:
        self.version += 1
        return str(self.version)

    # What may happen

    def observe(self, name: str, status: dict[str, Any], owned: bool, deleted: bool) -> None:
        """The informer shows a claim, new or changed. Nothing undoes a deletion."""
        known = self.claims.find(ObjectKey(POD.namespace, name))
        if known is not None and known.metadata.deletion_timestamp and not deleted:
            self.delete(name)
        if status:
            status = status | {"allocation": ALLOCATIONS[name]}
        owners = (owner(),) if owned else ()
        made = claim(REQUESTS[name], name=name, version=self.next_version(), deleted=deleted)
        made = attrs.evolve(made, metadata=attrs.evolve(made.metadata, owner_references=owners))
        self.claims.observe(attrs.evolve(made, **status))

    def delete(self, name: str) -> None:
        known = self.claims.find(ObjectKey(POD.namespace, name))
        if known is not None:
            self.claims.observe_delete(known)

    def class_comes(self, name: str) -> None:
        made = device_class(name)
        version = attrs.evolve(made.metadata, resource_version=self.next_version(), uid=name)
        self.classes.observe(attrs.evolve(made, metadata=version))

    def class_goes(self, name: str) -> None:
        known = self.classes.find(ObjectKey("", name))
        if known is not None:
            self.classes.observe_delete(known)

    def start(self, name: str) -> None:
        """Another pod takes a claim in flight."""
        known = self.claims.find(ObjectKey(POD.namespace, name))
        if known is None or known.allocation or self.tracker.pending(known.metadata.uid):
            return
        self.tracker.start([attrs.evolve(known, allocation=ALLOCATIONS[name])], "other-pod")

    def finish(self, name: str, stored: bool) -> None:
        """Its write succeeds, or the other pod gives up."""
        known = self.claims.find(ObjectKey(POD.namespace, name))
        if known is None or self.tracker.pending(known.metadata.uid) is None:
            return
        if not stored:
            self.tracker.release(known.metadata.uid, "other-pod")
            return
        meta = attrs.evolve(known.metadata, resource_version=self.next_version())
        written = attrs.evolve(known, metadata=meta, allocation=ALLOCATIONS[name])
        self.tracker.succeeded(known.metadata.uid, written)

    def record(self, statuses: dict[str, str | None]) -> None:
        """The pod's status is changed."""
        new: Pod = attrs.evolve(
            self.pod, resource_claim_statuses=make_pod(statuses=statuses).resource_claim_statuses
        )
        old, parked = self.pod, self.pod
        self.pod = new
        # The queue may still hold the pod as it was when it was parked.
        change = CacheEvent(new.metadata.key, old, new)
        self.answers.append(wake_up(parked, change, self.lookups))


@st.composite
def statuses(draw: st.DrawFn) -> dict[str, Any]:
    """The status of a claim."""
    if draw(st.booleans()):
        return {}
    return {
        "reserved_for": consumers(draw(st.integers(0, 2))),
        "deallocation_requested": draw(st.booleans()),
    }


names = st.sampled_from(("gpu", "made", "gpu", "made", "other"))
classes = st.sampled_from(["class-a", "class-b"])
rarely = st.integers(0, 5).map(lambda number: number == 5)
steps = st.one_of(
    st.tuples(st.just("observe"), names, statuses(), rarely.map(lambda no: not no), rarely),
    st.tuples(st.just("observe"), names, statuses(), st.just(True), st.just(False)),
    st.tuples(st.just("observe"), names, st.just({}), st.just(True), st.just(False)),
    st.tuples(st.just("start"), names),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("class_comes"), classes),
    st.tuples(st.just("class_goes"), classes),
    st.tuples(st.just("start"), names),
    st.tuples(st.just("finish"), names, st.booleans()),
    st.tuples(st.just("record"), st.sampled_from(STATUSES)),
)


@given(rarely, st.lists(steps, min_size=4, max_size=25))
def test_no_lost_wake_up(empty: bool, script: list[tuple[Any, ...]]) -> None:
    """If the reason for which the pod sleeps ends, the event that ends it wakes the pod.

    Both before the first attempt and before filtering; the pod is looked at after every
    step, whatever happened before.
    """
    world = World()
    if not empty:
        for name in ("class-a", "class-b"):
            world.class_comes(name)
        for name in ("gpu", "made"):
            world.observe(name, {}, True, False)
        world.record({"e-made": "made"})
    for step in script:
        asleep = before_filtering(world.pod, world.lookups)
        unready = pre_enqueue(world.pod, world.lookups)
        world.answers.clear()
        getattr(world, step[0])(*step[1:])
        awake = any(found.wakes for found in world.answers)
        if isinstance(asleep, Stopped) and before_filtering(world.pod, world.lookups) == PASSED:
            event(f"{asleep.reason.name} ended")
            assert awake, (asleep, world.answers)
        if unready != PASSED and pre_enqueue(world.pod, world.lookups) == PASSED:
            assert awake, (unready, world.answers)
    assert world.errors == []
    world.tracker._check()
