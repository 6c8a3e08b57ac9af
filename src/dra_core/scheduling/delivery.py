"""Calls that are made in order, one at a time, and never under the lock.

What may live here: ``Delivery``, the lock of a store together with the queue of calls
to its handlers, and ``Handlers``, who is told of one kind of event. They know nothing
of what is stored. Of the modules of this library only those of ``dra_core.scheduling``
know that there are threads; they start none.

The theory. A store changes under its lock, and in the same step puts the calls that
tell of the change in a queue, so that the queue has the order of the changes. After
the lock is released, some thread must make the calls:

* the thread that caused them becomes the deliverer, if there is none;
* if there is one, it waits until its own calls were made;
* the deliverer works until the queue is empty, or until its own calls were made and
  another thread waits for later ones, which then takes over. So nobody delivers for
  ever, and no call stays behind, also if one raises: its exception reaches the deliverer
  when it has done its work;
* the deliverer itself, that is a handler which changes the store, never waits: its
  calls are in the queue, and it will come to them when the handler has returned.

There are two locks: ``_lock`` protects the store, ``_state`` the queue. ``_state`` is
only held for a few instructions and nothing else is acquired under it, and no call is
made under either, so there is no deadlock unless a handler waits for another thread
that waits for the handler's own store.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Generic, TypeVar

import attrs

E = TypeVar("E")


class Delivery:
    """A re-entrant lock, and a queue of calls to make after it was released.

    ``with delivery:`` is one atomic step: nobody sees the store half changed. Calls
    queued in it are made when the outermost block of the thread is left, before that
    returns; inside of such a call, later.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        # Number of the last call that the current step queued; 0: none.
        self._ticket = 0

        self._state = threading.Condition(threading.Lock())
        self._queue: deque[tuple[Callable[[Any], object], Any]] = deque()
        self._queued = 0
        self._done = 0
        self._deliverer: int | None = None
        self._waiting: list[int] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        ticket = 0
        self._depth -= 1
        if not self._depth:
            ticket, self._ticket = self._ticket, 0
        self._lock.release()
        if ticket:
            self._settle(ticket)

    def put(self, call: Callable[[Any], object], argument: object) -> None:
        """Queue ``call(argument)``. Only inside of a step."""
        with self._state:
            self._queue.append((call, argument))
            self._queued += 1
            self._ticket = self._queued

    def _settle(self, ticket: int) -> None:
        """Return when the calls up to the given number were made, or will be by this thread."""
        me = threading.get_ident()
        with self._state:
            if self._deliverer == me:
                return
            self._waiting.append(ticket)
            try:
                while self._deliverer is not None and self._done < ticket:
                    self._state.wait()
            finally:
                self._waiting.remove(ticket)
            if self._done >= ticket:
                return
            self._deliverer = me
        try:
            self._deliver(ticket)
        finally:
            # The loop has resigned already, unless the thread is to end.
            with self._state:
                if self._deliverer == me:
                    self._resign()

    def _deliver(self, ticket: int) -> None:
        """Make calls until the queue is empty or somebody takes over; then raise what the
        first of them raised, which would otherwise leave the calls behind it unmade."""
        raised: Exception | None = None
        more = True
        while more:
            try:
                more = self._deliver_one(ticket)
            except Exception as error:  # noqa: BLE001 - raised below
                raised = raised or error
        if raised is not None:
            raise raised

    def _deliver_one(self, ticket: int) -> bool:
        """Make the next call; False: this thread is not the deliverer any more."""
        with self._state:
            mine_done = self._done >= ticket
            if not self._queue or (mine_done and max(self._waiting, default=0) > self._done):
                self._resign()
                return False
            call, argument = self._queue.popleft()
        try:
            call(argument)
        finally:
            with self._state:
                self._done += 1
                if self._waiting:
                    self._state.notify_all()
        return True

    def _resign(self) -> None:
        self._deliverer = None
        self._state.notify_all()

    def _check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        with self._state:
            out = self._queued - self._done - len(self._queue)
            if out not in ((0,) if self._deliverer is None else (0, 1)):
                raise AssertionError(f"{out} calls neither queued nor made")


@attrs.define(eq=False)
class _Subscription(Generic[E]):
    handler: Callable[[E], object]
    failed: Callable[[E, Exception], object]
    active: bool = True

    def deliver(self, event: E) -> None:
        if not self.active:
            return
        try:
            self.handler(event)
        except Exception as error:  # noqa: BLE001 - reported; it must not stop the others
            self.failed(event, error)


class Handlers(Generic[E]):
    """Who is told of events of type E, through a ``Delivery``.

    ``failed(event, error)`` is told of what handlers raise.
    """

    def __init__(self, delivery: Delivery, failed: Callable[[E, Exception], object]) -> None:
        self._delivery = delivery
        self._failed = failed
        self._subscriptions: tuple[_Subscription[E], ...] = ()

    def add(
        self, handler: Callable[[E], object], first: Callable[[], Iterable[E]] = tuple
    ) -> Callable[[], None]:
        """Tell a handler of the events of ``first()``, then of every later one.

        Returns a function that ends the subscription: what is queued is dropped, too.
        """
        subscription = _Subscription(handler, self._failed)
        with self._delivery:
            for event in first():
                self._delivery.put(subscription.deliver, event)
            self._subscriptions += (subscription,)

        def cancel() -> None:
            with self._delivery:
                subscription.active = False
                self._subscriptions = tuple(s for s in self._subscriptions if s.active)

        return cancel

    def tell(self, event: E) -> None:
        """Queue an event for everybody who is subscribed now. Only inside of a step."""
        for subscription in self._subscriptions:
            self._delivery.put(subscription.deliver, event)
