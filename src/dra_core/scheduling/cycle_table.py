"""The states of one pod's scheduling cycle, and what leads from one to the next: as data.

What may live here: the table. ``PodCycle`` moves by it and by nothing else, so it is what
there is to know about the order of calls; the documentation draws its diagram from it.

The events are the extension points of the Kubernetes scheduler and the answers of the
API server. The part in which pods compete (up to and including *reserve*) makes no
request; requests come with *pre-bind*, *unreserve*, *post-filter* and *post-bind*, one at
a time, and each is followed by *answered*.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class CycleState(StrEnum):
    """Where a cycle stands."""

    QUEUED = "queued"
    """Nothing was looked at yet."""
    ADMITTED = "admitted"
    """The pod's claims are there: it is worth an attempt."""
    FILTERING = "filtering"
    """Nodes can be filtered and scored, in any number of threads."""
    RESERVED = "reserved"
    """A node was picked, and the devices are in flight."""
    BINDING = "binding"
    """A request of pre-bind waits for its answer."""
    WAITING = "waiting"
    """Everything is written; devices are not ready yet. The pod must not be bound."""
    BINDABLE = "bindable"
    """The pod can be bound to its node."""
    BROKEN = "broken"
    """The attempt has failed, and has to be undone by unreserve."""
    UNDOING = "undoing"
    """A request of unreserve waits for its answer."""
    HELPING = "helping"
    """A request of post-filter waits for its answer."""
    CLEANING = "cleaning"
    """A request of post-bind waits for its answer."""
    BOUND = "bound"
    """The end: the pod is bound."""
    OVER = "over"
    """The end: the pod is not bound, and holds nothing. The verdict says what next."""


class CycleEvent(StrEnum):
    """What happens to a cycle: a call of the method with that name."""

    PRE_ENQUEUE = "pre_enqueue"
    PRE_FILTER = "pre_filter"
    FILTER = "filter"
    SCORE = "score"
    RESERVE = "reserve"
    PRE_BIND = "pre_bind"
    ANSWERED = "answered"
    LOOK_AGAIN = "look_again"
    UNRESERVE = "unreserve"
    POST_FILTER = "post_filter"
    POST_BIND = "post_bind"


class CycleResult(StrEnum):
    """What came of an event."""

    PASSED = "passed"
    """Go on with the next step."""
    STOPPED = "stopped"
    """The attempt ends, for the reason in the verdict."""
    REQUEST = "request"
    """A request has to be sent."""
    NOT_READY = "not ready"
    """Devices have to become ready; look again when a claim changes, or time is up."""


class CycleRow(NamedTuple):
    """In ``state``, when ``event`` happens with ``result``, ``next`` is the state."""

    state: CycleState
    event: CycleEvent
    result: CycleResult
    next: CycleState


S, E, R = CycleState, CycleEvent, CycleResult

_BINDING_RESULTS = (
    (R.REQUEST, S.BINDING),
    (R.PASSED, S.BINDABLE),
    (R.NOT_READY, S.WAITING),
    (R.STOPPED, S.BROKEN),
)

_UNDOING_RESULTS = (
    (R.REQUEST, S.UNDOING),
    (R.PASSED, S.OVER),
    (R.STOPPED, S.BROKEN),  # by an exception: the rest has still to be undone
)

_ROWS: tuple[tuple[CycleState, CycleEvent, tuple[tuple[CycleResult, CycleState], ...]], ...] = (
    (S.QUEUED, E.PRE_ENQUEUE, ((R.PASSED, S.ADMITTED), (R.STOPPED, S.OVER))),
    (S.ADMITTED, E.PRE_FILTER, ((R.PASSED, S.FILTERING), (R.STOPPED, S.OVER))),
    (S.FILTERING, E.FILTER, ((R.PASSED, S.FILTERING), (R.STOPPED, S.FILTERING))),
    (S.FILTERING, E.SCORE, ((R.PASSED, S.FILTERING),)),
    (S.FILTERING, E.RESERVE, ((R.PASSED, S.RESERVED), (R.STOPPED, S.BROKEN))),
    (S.FILTERING, E.POST_FILTER, ((R.REQUEST, S.HELPING), (R.STOPPED, S.OVER))),
    (S.HELPING, E.ANSWERED, ((R.REQUEST, S.HELPING), (R.STOPPED, S.OVER))),
    (S.RESERVED, E.PRE_BIND, _BINDING_RESULTS),
    (S.BINDING, E.ANSWERED, _BINDING_RESULTS),
    (S.WAITING, E.LOOK_AGAIN, _BINDING_RESULTS[1:]),
    (S.BINDABLE, E.POST_BIND, ((R.REQUEST, S.CLEANING), (R.PASSED, S.BOUND))),
    (S.CLEANING, E.ANSWERED, ((R.REQUEST, S.CLEANING), (R.PASSED, S.BOUND))),
    *(
        (state, E.UNRESERVE, _UNDOING_RESULTS)
        for state in (S.RESERVED, S.WAITING, S.BINDABLE, S.BROKEN)
    ),
    (S.UNDOING, E.ANSWERED, _UNDOING_RESULTS),
)


def _rows() -> Iterator[CycleRow]:
    for state, event, results in _ROWS:
        for result, following in results:
            yield CycleRow(state, event, result, following)


_TABLE: tuple[CycleRow, ...] = tuple(_rows())

MOVES: dict[tuple[CycleState, CycleEvent], dict[CycleResult, CycleState]] = {
    (state, event): dict(results) for state, event, results in _ROWS
}
"""The same for looking up. Nobody changes it."""

FINAL = frozenset({CycleState.BOUND, CycleState.OVER})
"""States that nothing leads out of."""


def cycle_table() -> tuple[CycleRow, ...]:
    """Every move there is, in the order of a cycle. Any other call is an error."""
    return _TABLE
