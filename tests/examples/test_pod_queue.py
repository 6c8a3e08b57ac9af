"""The queue of the example scheduler: when a pod is due, and that no event for it is lost."""

from math import inf
from typing import Any

import pytest

from dra_core.api.core import ObjectMeta, Pod
from dra_core.scheduling.wakeups_verdict import WakeReason, WakeUp, queue, queue_at_once, skip
from examples.support import pod_queue as module
from examples.support.pod_queue import PodQueue, QueuedPod

SKIP = skip(WakeReason.OTHER_POD)
QUEUE = queue(WakeReason.CLAIM_ADDED)
AT_ONCE = queue_at_once(WakeReason.REPORTED)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The queue's clock."""
    made = Clock()
    monkeypatch.setattr(module, "monotonic", made)
    return made


@pytest.fixture
def pods(clock: Clock) -> PodQueue[QueuedPod]:
    """A queue with a backoff of one second at first, four at most."""
    return PodQueue(QueuedPod, backoff=1.0, longest=4.0)


def pod(name: str) -> Pod:
    """A pod whose UID is its name."""
    return Pod(ObjectMeta(name, "default", name))


def judge(answer: WakeUp, name: str = "") -> Any:
    """The same answer for every pod, or for that of the name."""
    return lambda pod: answer if name in ("", pod.name) else SKIP


def taken(pods: PodQueue[QueuedPod], name: str) -> QueuedPod:
    """The pod that is due now."""
    entry = pods.take(0.0)
    assert entry is not None
    assert entry.pod.name == name
    return entry


def test_pods_are_taken_in_order_and_once(pods: PodQueue[QueuedPod]) -> None:
    """A pod that is tried is in nobody else's hands, whatever the informer shows of it."""
    pods.add(pod("a"))
    pods.add(pod("b"))
    entry = taken(pods, "a")
    pods.add(entry.pod)
    taken(pods, "b")
    assert pods.take(0.0) is None


def test_a_pod_without_an_event_sleeps(pods: PodQueue[QueuedPod], clock: Clock) -> None:
    """An event that is for another pod does not wake it; one for it does, after its backoff."""
    pods.add(pod("a"))
    pods.failed(taken(pods, "a"), retry=False)
    pods.wake(judge(QUEUE, "b"))
    clock.now += 299.0
    assert pods.take(0.0) is None
    pods.wake(judge(QUEUE, "a"))
    pods.failed(taken(pods, "a"), retry=False)
    pods.wake(judge(QUEUE))
    assert pods.take(0.0) is None
    clock.now += 2.0
    taken(pods, "a")


def test_a_pod_does_not_sleep_for_ever(pods: PodQueue[QueuedPod], clock: Clock) -> None:
    """Not everything that could help it is an event."""
    pods.add(pod("a"))
    pods.failed(taken(pods, "a"), retry=False)
    clock.now += 300.0
    taken(pods, "a")


@pytest.mark.parametrize(("event", "wait"), [(QUEUE, 1.0), (AT_ONCE, 0.0)])
def test_an_event_during_an_attempt_is_not_lost(
    pods: PodQueue[QueuedPod], clock: Clock, event: WakeUp, wait: float
) -> None:
    """The attempt may not have seen what has happened: the pod does not go to sleep."""
    pods.add(pod("a"))
    entry = taken(pods, "a")
    pods.wake(judge(event))
    pods.wake(judge(QUEUE))  # does not make the first one less urgent
    pods.failed(entry, retry=False)
    assert (pods.take(0.0) is entry) is (wait == 0.0)
    clock.now += wait
    if wait:
        assert pods.take(0.0) is entry
    pods.failed(entry, retry=False)  # this attempt has seen it
    clock.now += 299.0
    assert pods.take(0.0) is None


def test_a_pod_that_waits_for_devices_looks_after_an_event_or_at_its_deadline(
    pods: PodQueue[QueuedPod], clock: Clock
) -> None:
    """At once, also after one that came before it was put back; and there is no third time."""
    pods.add(pod("a"))
    entry = taken(pods, "a")
    pods.put_back(entry, 0.0, 600.0)
    assert pods.take(0.0) is None
    pods.wake(judge(QUEUE))
    assert pods.take(0.0) is entry
    pods.wake(judge(QUEUE))
    pods.put_back(entry, 0.0, inf)
    assert pods.take(0.0) is entry
    pods.put_back(entry, 0.0, 30.0)
    clock.now += 29.0
    assert pods.take(0.0) is None
    clock.now += 1.0
    assert pods.take(0.0) is entry
    pods.put_back(entry, 0.0, inf)
    clock.now += 1_000.0
    assert pods.take(0.0) is None


def test_backoff_doubles_up_to_its_limit_unless_the_event_says_at_once(
    pods: PodQueue[QueuedPod], clock: Clock
) -> None:
    """After failures a pod waits; for what it waited for, it does not."""
    pods.add(pod("a"))
    for wait in (1.0, 2.0, 4.0, 4.0):
        pods.failed(taken(pods, "a"), retry=True)
        clock.now += wait - 0.5
        assert pods.take(0.0) is None
        clock.now += 0.5
    pods.failed(taken(pods, "a"), retry=False)
    pods.wake(judge(AT_ONCE))
    taken(pods, "a")


def test_a_pod_that_is_gone_comes_once_more(pods: PodQueue[QueuedPod], clock: Clock) -> None:
    """So that what it left can be cleared away, wherever it was; then nothing is known of it."""
    for name in ("asleep", "tried", "due"):
        pods.add(pod(name))
    asleep, tried = taken(pods, "asleep"), taken(pods, "tried")
    pods.failed(asleep, retry=False)
    for name in ("asleep", "tried", "due"):
        pods.remove(name)
        pods.remove(name)
    assert {taken(pods, name).gone for name in ("due", "asleep")} == {True}
    assert pods.take(0.0) is None
    pods.failed(tried, retry=False)
    assert pods.take(0.0) is tried
    assert tried.gone
    pods.failed(tried, retry=False)  # nobody sends events for it any more
    clock.now += 2.0
    assert pods.take(0.0) is tried
    pods.wake(judge(QUEUE))
    clock.now += 1_000.0
    assert pods.take(0.0) is None


def test_a_pod_that_was_bound_is_not_tried_again(pods: PodQueue[QueuedPod], clock: Clock) -> None:
    """Nobody puts it back; events and what the informer still shows do not either."""
    pods.add(pod("a"))
    entry = taken(pods, "a")
    pods.wake(judge(AT_ONCE))
    pods.add(pod("a"))
    clock.now += 1_000.0
    assert pods.take(0.0) is None
    pods.remove("a")
    assert entry.gone
    assert pods.take(0.0) is None


def test_an_attempt_uses_the_newest_pod(pods: PodQueue[QueuedPod]) -> None:
    """What the informer shows of a pod that waits replaces it."""
    pods.add(pod("a"))
    newer = Pod(ObjectMeta("a", "default", "a", "7"))
    pods.add(newer)
    assert taken(pods, "a").pod is newer
