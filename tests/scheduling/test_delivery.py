"""Delivery: one queue, one thread delivering at a time, never under the lock."""

import threading
from collections.abc import Callable

import pytest

from dra_core.scheduling.delivery import Delivery

LONG = 20.0
"""Seconds after which a test gives up on another thread: it has hung."""


def run(*targets: Callable[[], object]) -> list[threading.Thread]:
    """Start a thread for each."""
    threads = [threading.Thread(target=target, daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    """Wait for threads that must end."""
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive(), "a thread hangs"


def wait(event: threading.Event) -> None:
    """Wait for something that must happen."""
    assert event.wait(LONG), "nothing happens"


def waiting(delivery: Delivery, number: int) -> None:
    """Wait until that many threads wait for their calls to be made."""
    for _ in range(int(LONG * 1_000)):
        with delivery._state:
            if len(delivery._waiting) == number:
                return
        threading.Event().wait(0.001)
    raise AssertionError("nobody waits")


def test_calls_are_made_in_order_when_the_step_ends() -> None:
    """Calls queued in a step are made when it is left, in order."""
    delivery, seen = Delivery(), list[int]()
    with delivery:
        delivery.put(seen.append, 1)
        delivery.put(seen.append, 2)
        assert seen == []
    assert seen == [1, 2]
    delivery._check()


def test_nested_steps_are_one() -> None:
    """The outermost block is the step."""
    delivery, seen = Delivery(), list[int]()
    with delivery:
        with delivery:
            delivery.put(seen.append, 1)
        assert seen == []
    assert seen == [1]


def test_calls_are_made_after_a_failed_step() -> None:
    """Leaving a step by an exception makes the calls too."""
    delivery, seen = Delivery(), list[int]()

    def failing_step() -> None:
        with delivery:
            delivery.put(seen.append, 1)
            raise KeyError

    with pytest.raises(KeyError):
        failing_step()
    assert seen == [1]


def test_never_under_the_lock() -> None:
    """While a call is made, other threads can take the lock."""
    delivery, entered = Delivery(), threading.Event()

    def other() -> None:
        with delivery:
            entered.set()

    def call(_: object) -> None:
        join(run(other))

    with delivery:
        delivery.put(call, None)
    assert entered.is_set()


def test_from_inside_at_once() -> None:
    """From inside a call a step returns at once, and its calls follow the current one."""
    delivery, seen = Delivery(), list[str]()

    def call(name: str) -> None:
        seen.append(f"{name} begins")
        if name == "first":
            with delivery:
                delivery.put(call, "third")
            seen.append("step done")
        seen.append(f"{name} ends")

    with delivery:
        delivery.put(call, "first")
        delivery.put(call, "second")
    assert seen == [
        "first begins", "step done", "first ends", "second begins", "second ends",
        "third begins", "third ends",
    ]  # fmt: skip


def test_from_outside_after_delivery() -> None:
    """A step of another thread returns after its calls were made, by whoever delivers."""
    delivery, seen = Delivery(), list[str]()
    started, proceed = threading.Event(), threading.Event()

    def slow(name: str) -> None:
        started.set()
        wait(proceed)
        seen.append(name)

    def first() -> None:
        with delivery:
            delivery.put(slow, "first")

    def second() -> None:
        with delivery:
            delivery.put(seen.append, "second")
        seen.append("second returned")

    threads = run(first)
    wait(started)
    threads += run(second)
    waiting(delivery, 1)
    assert seen == []
    proceed.set()
    join(threads)
    assert seen == ["first", "second", "second returned"]


def test_nobody_delivers_for_ever() -> None:
    """A thread whose calls were made hands over to one that waits for later calls."""
    delivery, makers = Delivery(), dict[str, int]()
    started, proceed = threading.Event(), threading.Event()

    def slow(name: str) -> None:
        makers[name] = threading.get_ident()
        started.set()
        wait(proceed)

    def quick(name: str) -> None:
        makers[name] = threading.get_ident()

    def step(call: Callable[[str], None], name: str) -> Callable[[], None]:
        def target() -> None:
            with delivery:
                delivery.put(call, name)

        return target

    threads = run(step(slow, "a"))
    wait(started)
    threads += run(step(quick, "b"))
    waiting(delivery, 1)
    proceed.set()
    join(threads)
    assert makers["b"] == threads[1].ident != makers["a"]


def test_calls_from_inside_are_never_left_behind() -> None:
    """Calls that were queued from inside are made although no thread waits for them."""
    delivery, seen = Delivery(), list[int]()

    def call(number: int) -> None:
        seen.append(number)
        if number:
            with delivery:
                delivery.put(call, number - 1)

    with delivery:
        delivery.put(call, 5)
    assert seen == [5, 4, 3, 2, 1, 0]


def test_a_call_that_raises_leaves_the_queue_usable() -> None:
    """An exception that gets out of a call ends the delivery, not the queue."""
    delivery, seen = Delivery(), list[int]()

    def call(_: object) -> None:
        raise KeyboardInterrupt

    def step() -> None:
        with delivery:
            delivery.put(call, None)
            delivery.put(seen.append, 1)

    with pytest.raises(KeyboardInterrupt):
        step()
    delivery._check()
    assert seen == []
    with delivery:
        delivery.put(seen.append, 2)
    assert seen == [1, 2]
    delivery._check()


def test_check_notices_a_lost_call() -> None:
    """The self-check can fail."""
    delivery = Delivery()
    delivery._queued += 1
    with pytest.raises(AssertionError, match="neither"):
        delivery._check()
