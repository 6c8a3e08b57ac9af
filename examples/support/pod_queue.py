"""A queue of pods that wait: to be tried, for a backoff to end, or for an event.

What may live here: times and places. What an event means for a pod, what is done with a pod
and when it is to be tried again are the scheduler's business.
"""

import heapq
import threading
from collections.abc import Callable
from itertools import count
from math import inf
from time import monotonic
from typing import Generic, TypeVar

import attrs

from dra_core.api.core import Pod
from dra_core.scheduling.wakeups_verdict import Queueing, WakeUp


@attrs.define(eq=False)
class QueuedPod:
    """A pod that has no node. ``gone``: nothing is left to schedule.

    The rest is the queue's: ``woken`` is the most urgent event since the pod was taken;
    ``asleep`` says that an event can bring it forward, ``between`` when it is due with an
    event, and without.
    """

    pod: Pod
    gone: bool = False
    failures: int = 0
    woken: Queueing = Queueing.SKIP
    taken: bool = False
    asleep: bool = False
    between: tuple[float, float] = (0.0, 0.0)
    place: int = 0


Q = TypeVar("Q", bound=QueuedPod)


class PodQueue(Generic[Q]):
    """Each pod is in one place: due at some time, asleep, or taken by whoever tries it.

    ``make`` makes the entry of a new pod. The backoff after a failed attempt is ``backoff``
    seconds, twice as long after each further one, at most ``longest``. A pod that sleeps is
    tried again after ``sleep`` seconds even without an event: not everything that could help
    it is one.

    Its lock is never held while a cache is called, so events can come from any thread.
    """

    def __init__(
        self,
        make: Callable[[Pod], Q],
        backoff: float = 0.1,
        longest: float = 2.0,
        sleep: float = 300.0,
    ) -> None:
        self._make, self._backoff, self._longest, self._sleep = make, backoff, longest, sleep
        self._change = threading.Condition()
        self._entries: dict[str, Q] = {}
        self._due: list[tuple[float, int, Q]] = []
        self._places = count(1)

    def add(self, pod: Pod) -> None:
        """A pod is new, or has changed."""
        with self._change:
            entry = self._entries.get(pod.metadata.uid)
            if entry is None:
                entry = self._entries[pod.metadata.uid] = self._make(pod)
                self._queue(entry)
            entry.pod = pod

    def remove(self, uid: str) -> None:
        """A pod is gone, or has a node. It comes once more, as ``gone``, or comes back so."""
        with self._change:
            entry = self._entries.pop(uid, None)
            if entry is not None:
                entry.gone = True
                self._wake(entry, Queueing.QUEUE_AT_ONCE)

    def take(self, timeout: float) -> Q | None:
        """The next pod that is due, ``None`` if there is none for so many seconds.

        It is the caller's until ``put_back``.
        """
        end = monotonic() + timeout
        with self._change:
            while True:
                now = monotonic()
                while self._due and self._due[0][0] <= now:
                    _, place, entry = heapq.heappop(self._due)
                    if place == entry.place:  # it has not got another one since
                        entry.taken, entry.asleep, entry.woken = True, False, Queueing.SKIP
                        return entry
                if now >= end:
                    return None
                self._change.wait(min([end, *(due[0] for due in self._due[:1])]) - now)

    def put_back(self, entry: Q, earliest: float, latest: float) -> None:
        """It is due after an event, but no sooner and no later than so many seconds from now.

        An event that came while it was taken counts: what was done then may not have seen
        what has happened.
        """
        with self._change:
            now = monotonic()
            entry.taken, entry.between = False, (now + earliest, now + latest)
            self._queue(entry)

    def failed(self, entry: Q, *, retry: bool) -> None:
        """The attempt is over. Without ``retry`` it waits for an event after the backoff."""
        delay = min(self._longest, self._backoff * 2.0 ** min(entry.failures, 10))
        entry.failures += 1
        asleep = not (retry or entry.gone)
        self.put_back(entry, delay, max(delay, self._sleep) if asleep else delay)

    def wake(self, judge: Callable[[Pod], WakeUp]) -> None:
        """Something has happened; ``judge`` says what it means for a pod.

        A pod that is due anyway will be tried on what there is then, so it is not asked for.
        """
        with self._change:
            entries = [(e, e.pod) for e in self._entries.values() if e.taken or e.asleep]
        for entry, pod in entries:
            found = judge(pod)
            if found.wakes:
                with self._change:
                    self._wake(entry, found.queueing)

    def _wake(self, entry: Q, queueing: Queueing) -> None:
        if entry.woken is not Queueing.QUEUE_AT_ONCE:
            entry.woken = queueing
        if entry.asleep:
            self._queue(entry)

    def _queue(self, entry: Q) -> None:
        """Give an entry its place, by the events that there were for it."""
        earliest, latest = entry.between
        due = latest if entry.woken is Queueing.SKIP else earliest
        if entry.woken is Queueing.QUEUE_AT_ONCE:
            due = earliest = 0.0
        entry.asleep, entry.place = due > earliest, next(self._places)
        if due < inf:
            heapq.heappush(self._due, (max(due, monotonic()), entry.place, entry))
            self._change.notify()
