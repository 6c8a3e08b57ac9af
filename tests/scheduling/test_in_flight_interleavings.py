"""Every order in which answers and events can arrive, one by one.

Steps happen in several threads: what the scheduler does, and what the informer shows.
Each step is atomic, so all interleavings are all orders of the steps that keep what
causality demands. After every step of every order the devices that must be taken are,
for readers, for handlers, and for a competitor that tries to take them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs
import pytest

from dra_core.api.names import DeviceId, SharedDeviceId
from dra_core.api.objects import ResourceClaim
from dra_core.scheduling.errors import DevicesTakenError
from support.in_use import amounts, claim, device, key, result, share
from support.tracking import (
    Tracked,
    at,
    finalized,
    with_devices,
    with_uid,
    without_devices,
)

C = claim("c", version="10")
P1, P2 = "p1-uid", "p2-uid"
What = DeviceId | SharedDeviceId
EXCLUSIVE: What = device("d1")
SHARED: What = share("d1", "s1")
OTHERS: What = device("d9")


def picked(what: What) -> ResourceClaim:
    """The claim with the device or share, which consumes some capacity."""
    consumed = amounts(mem="2Gi") if isinstance(what, SharedDeviceId) else None
    return with_devices(C, result(what, consumed))


def written(what: What, version: int = 12) -> ResourceClaim:
    """The claim as the API server stores it: finalizer at 11, allocation at 12."""
    return finalized(picked(what), version)


@attrs.frozen
class Race:
    """Steps by name, which must come before which, and when devices are taken.

    ``taken`` says from the steps done so far whether the device must be in use (None:
    either is right). At the end the device is in use or not as ``finally_taken`` says.
    """

    steps: Mapping[str, Callable[[Tracked, What], object]]
    order: Sequence[tuple[str, str]]
    taken: Callable[[frozenset[str]], bool | None]
    finally_taken: bool


def orders(names: Sequence[str], before: Sequence[tuple[str, str]]) -> Iterator[tuple[str, ...]]:
    """Every order of the names that keeps the pairs."""
    if not names:
        yield ()
    for name in names:
        if not any(later == name and earlier in names for earlier, later in before):
            rest = [other for other in names if other != name]
            for tail in orders(rest, before):
                yield (name, *tail)


def start(pod: str, session: str | None = None) -> Callable[[Tracked, What], object]:
    return lambda t, what: t.tracker.start([picked(what)], pod, session=session)


def release(pod: str) -> Callable[[Tracked, What], object]:
    return lambda t, what: t.tracker.release("c-uid", pod)


def assume_finalizer(t: Tracked, what: What) -> None:
    """The answer to adding the finalizer; it may come later than newer events."""
    current = t.cache.find(key("c"))
    if current is not None and current.metadata.uid == "c-uid":
        newest = t.cache.version_of(current)
        if newest <= t.cache.version_of(finalized(C, 11)):
            t.cache.assume(finalized(C, 11))


def succeed(t: Tracked, what: What) -> None:
    t.tracker.succeeded("c-uid", written(what))


def show(make: Callable[[What], ResourceClaim]) -> Callable[[Tracked, What], object]:
    return lambda t, what: t.cache.observe(make(what))


def show_finalizer(t: Tracked, what: What) -> None:
    t.cache.observe(finalized(C, 11))


def show_deleted(t: Tracked, what: What) -> None:
    t.cache.observe_delete(C)


def show_recreated(t: Tracked, what: What) -> None:
    t.cache.observe(with_uid(at(C, 20), "c-uid-2"))


SUCCESS = Race(
    {
        "start": start(P1),
        "finalizer answered": assume_finalizer,
        "finalizer shown": show_finalizer,
        "allocation answered": succeed,
        "allocation shown": show(written),
        "resync": show(lambda what: C),
    },
    [
        ("start", "finalizer answered"),
        ("start", "finalizer shown"),
        ("finalizer answered", "allocation answered"),
        ("finalizer answered", "allocation shown"),
        ("finalizer shown", "allocation shown"),
    ],
    lambda done: "start" in done,
    True,
)

FAILURE = Race(
    {
        "start": start(P1),
        "finalizer answered": assume_finalizer,
        "finalizer shown": show_finalizer,
        "release": release(P1),
        "released again": release(P1),
        "resync": show(lambda what: C),
    },
    [
        ("start", "finalizer answered"),
        ("start", "finalizer shown"),
        ("finalizer answered", "release"),
        ("release", "released again"),
    ],
    lambda done: "start" in done and "release" not in done,
    False,
)

FREED_LATER = Race(
    {
        "start": start(P1),
        "finalizer shown": show_finalizer,
        "allocation answered": succeed,
        "allocation shown": show(written),
        "deallocation shown": show(lambda what: finalized(without_devices(C), 13)),
        "release": release(P1),
    },
    [
        ("start", "finalizer shown"),
        ("start", "allocation answered"),
        ("finalizer shown", "allocation shown"),
        ("allocation shown", "deallocation shown"),
        ("allocation answered", "release"),
    ],
    lambda done: (
        "start" in done
        and (None if "deallocation shown" in done and "allocation answered" not in done else
             "deallocation shown" not in done)
    ),
    False,
)  # fmt: skip

DELETED = Race(
    {
        "start": start(P1),
        "finalizer answered": assume_finalizer,
        "finalizer shown": show_finalizer,
        "deletion shown": show_deleted,
        "recreation shown": show_recreated,
        "release": release(P1),
    },
    [
        ("start", "finalizer answered"),
        ("start", "finalizer shown"),
        ("finalizer shown", "deletion shown"),
        ("deletion shown", "recreation shown"),
        ("finalizer answered", "release"),
    ],
    # An entry whose object was deleted stays in use until removed.
    lambda done: "start" in done and "release" not in done,
    False,
)

WRITTEN_THEN_DELETED = Race(
    {
        "start": start(P1),
        "allocation answered": succeed,
        "allocation shown": show(written),
        "deletion shown": show_deleted,
        "recreation shown": show_recreated,
    },
    [
        ("start", "allocation answered"),
        ("start", "allocation shown"),
        ("allocation shown", "deletion shown"),
        ("deletion shown", "recreation shown"),
    ],
    lambda done: (
        "start" in done
        and ("deletion shown" not in done or "allocation answered" not in done)
    ),
    False,
)  # fmt: skip

REPLACED_UNSEEN = Race(
    # The informer listed anew: the new incarnation is shown without a delete.
    {
        "start": start(P1),
        "finalizer shown": show_finalizer,
        "allocation answered": succeed,
        "recreation shown": show_recreated,
    },
    [
        ("start", "finalizer shown"),
        ("start", "allocation answered"),
        ("finalizer shown", "recreation shown"),
    ],
    lambda done: (
        "start" in done
        and ("recreation shown" not in done or "allocation answered" not in done)
    ),
    False,
)  # fmt: skip

GANG = Race(
    {
        "p1 starts": start(P1, "gang"),
        "p2 joins": start(P2, "gang"),
        "p1 releases": release(P1),
        "finalizer shown": show_finalizer,
        "allocation answered": succeed,
        "allocation shown": show(written),
        "p2 releases": release(P2),
    },
    [
        ("p1 starts", "p2 joins"),
        ("p2 joins", "p1 releases"),
        ("p1 starts", "finalizer shown"),
        ("p2 joins", "allocation answered"),
        ("p2 joins", "allocation shown"),
        ("finalizer shown", "allocation shown"),
        ("allocation answered", "p2 releases"),
    ],
    lambda done: "p1 starts" in done,
    True,
)

GANG_GIVES_UP = Race(
    {
        "p1 starts": start(P1, "gang"),
        "p2 joins": start(P2, "gang"),
        "finalizer shown": show_finalizer,
        "p1 releases": release(P1),
        "p1 releases again": release(P1),
        "p2 releases": release(P2),
    },
    [
        ("p1 starts", "p2 joins"),
        ("p2 joins", "p1 releases"),
        ("p2 joins", "p2 releases"),
        ("p1 releases", "p1 releases again"),
        ("p1 starts", "finalizer shown"),
    ],
    lambda done: "p1 starts" in done and not {"p1 releases", "p2 releases"} <= done,
    False,
)

OTHER_SCHEDULER = Race(
    {
        "start": start(P1),
        "finalizer shown": show_finalizer,
        "other allocation shown": show(lambda what: finalized(with_devices(C, OTHERS), 12)),
        "release": release(P1),
        "other deallocation shown": show(lambda what: finalized(C, 13)),
    },
    [
        ("start", "finalizer shown"),
        ("finalizer shown", "other allocation shown"),
        ("start", "release"),
        ("other allocation shown", "other deallocation shown"),
    ],
    lambda done: "start" in done and "release" not in done,
    False,
)

SAME_ALLOCATION_BY_A_PEER = Race(
    # Another process of ours wrote the very same allocation; our write fails.
    {
        "start": start(P1),
        "finalizer shown": show_finalizer,
        "allocation shown": show(written),
        "release": release(P1),
    },
    [
        ("start", "finalizer shown"),
        ("finalizer shown", "allocation shown"),
        ("start", "release"),
    ],
    # Between our release and the informer's news nobody here can know.
    lambda done: "start" in done and ("release" not in done or "allocation shown" in done),
    True,
)

RACES = {
    "success": SUCCESS,
    "failure": FAILURE,
    "freed later": FREED_LATER,
    "deleted": DELETED,
    "written, then deleted": WRITTEN_THEN_DELETED,
    "replaced unseen": REPLACED_UNSEEN,
    "gang": GANG,
    "gang gives up": GANG_GIVES_UP,
    "other scheduler": OTHER_SCHEDULER,
    "same allocation by a peer": SAME_ALLOCATION_BY_A_PEER,
}


def can_be_taken(t: Tracked, what: What) -> bool:
    """Whether a competitor gets the device or share; leaves everything as it was."""
    try:
        t.tracker.start([claim("competitor", what)], "competitor-pod")
    except DevicesTakenError:
        return False
    t.tracker.remove("competitor-uid")
    return True


@pytest.mark.parametrize("what", [EXCLUSIVE, SHARED], ids=["exclusive", "shared"])
@pytest.mark.parametrize("name", RACES)
def test_every_interleaving(name: str, what: What) -> None:
    """Devices stay taken from the pick to the end of the allocation, in every interleaving of
    steps and events; afterwards they are free, and no entry is left."""
    race = RACES[name]
    count = 0
    for order in orders(list(race.steps), race.order):
        count += 1
        t = Tracked()
        t.cache.observe(C)
        now: list[str] = []

        def look(
            event: object, t: Tracked = t, now: list[str] = now, order: tuple[str, ...] = order
        ) -> None:
            # Handlers run after the step: it is in `now` already.
            expected = race.taken(frozenset(now))
            assert expected is None or (what in t.in_use()) is expected, (order, now, event)

        t.cache.add_handler(look)
        for step in order:
            now.append(step)
            race.steps[step](t, what)
            assert not t.errors, (order, step, t.errors)
            expected = race.taken(frozenset(now))
            present = what in t.in_use()
            assert expected is None or present is expected, (order, step)
            assert can_be_taken(t, what) is not present, (order, step)
        assert (what in t.in_use()) is race.finally_taken, order
        assert t.tracker.in_flight() == (), order
    assert count > 2


@pytest.mark.parametrize("what", [EXCLUSIVE, SHARED], ids=["exclusive", "shared"])
def test_bug_44_reader_in_two_steps(what: What) -> None:
    """A reader that reads what is in flight first and the cache later sees the device, with
    any steps of a successful write in between."""
    steps = list(SUCCESS.steps)
    for order in orders(steps, SUCCESS.order):
        begin = order.index("start") + 1
        for first in range(begin, len(order) + 1):
            for second in range(first, len(order) + 1):
                t = Tracked()
                t.cache.observe(C)
                for step in order[:first]:
                    SUCCESS.steps[step](t, what)
                in_flight = [entry.claim for entry in t.tracker.in_flight()]
                for step in order[first:second]:
                    SUCCESS.steps[step](t, what)
                claims = [*in_flight, *t.cache.list()]
                held = {
                    (each.device_id, each.share_id)
                    for seen in claims
                    if seen.allocation is not None
                    for each in seen.allocation.results
                }
                assert (DeviceId(*what[:3]), "".join(what[3:])) in held, (order, first, second)


def test_orders_are_all_orders() -> None:
    """The enumeration finds exactly the orders that keep the pairs."""
    assert list(orders(["a", "b", "c"], [("a", "c")])) == [
        ("a", "b", "c"), ("a", "c", "b"), ("b", "a", "c"),
    ]  # fmt: skip
    assert len(list(orders("abcd", []))) == 24
