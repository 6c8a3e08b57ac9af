"""Bad luck between a client and the in-memory API server.

What may live here: faults, where they come from (a script or chance, both the caller's),
and ``FaultyServer``, which sends with them. Slow watches are the business of
``watch``: its ``delay`` takes ``random_delay``.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Protocol

from dra_core.api.request import ApiRequest, Verb
from dra_core.testing.api_server import ApiServer
from dra_core.testing.server_answers import failure


class Fault(StrEnum):
    """What can happen to a request."""

    LOST_REQUEST = "the request never arrives; there is no answer"
    LOST_ANSWER = "the request is carried out; there is no answer"
    CONTENTION = "somebody changes the object just before"
    CONFLICT = "409 to a write, and nothing is written"
    TOO_MANY = "429, and nothing is written"
    UNAVAILABLE = "503, and nothing is written"
    HIDDEN = "the request is carried out; something in front of the server answers 503"
    RESTART = "the server has just restarted: watches from before have to list anew"


FaultSource = Callable[[ApiRequest], Fault | None]
"""What happens to a request; ``None``: nothing."""

_REFUSALS: Mapping[Fault, int] = {Fault.CONFLICT: 409, Fault.TOO_MANY: 429, Fault.UNAVAILABLE: 503}


class Chance(Protocol):
    """A source of chance, such as ``random.Random(seed)``."""

    def random(self) -> float:
        """A number from 0 up to, not including, 1."""


def script(faults: Iterable[Fault | None]) -> FaultSource:
    """One fault after the other, then none."""
    following = iter(faults)
    return lambda request: next(following, None)


def random_faults(chance: Chance, rates: Mapping[Fault, float]) -> FaultSource:
    """Each fault with its probability, at most one at a time.

    Raises ``ValueError`` if the probabilities sum up to more than 1.
    """
    if sum(rates.values()) > 1:
        raise ValueError(f"probabilities sum up to {sum(rates.values())}")

    def source(_request: ApiRequest) -> Fault | None:
        drawn = chance.random()
        for fault, rate in rates.items():
            if drawn < rate:
                return fault
            drawn -= rate
        return None

    return source


def random_delay(chance: Chance, most: int) -> Callable[[], int]:
    """For ``Watch``: hold a change back for up to ``most`` polls."""
    return lambda: int(chance.random() * (most + 1))


class FaultyServer:
    """A server as a client with bad luck sees it.

    ``source`` decides what happens to each request. Set it to ``script(())`` to end the
    bad luck.
    """

    def __init__(self, server: ApiServer, source: FaultSource) -> None:
        self.server = server
        self.source = source

    def send(self, request: ApiRequest) -> tuple[int | None, Any]:
        """HTTP status and body of the answer; a status of ``None`` is no answer."""
        fault = self.source(request)
        if fault is Fault.LOST_REQUEST:
            return None, None
        if fault is Fault.CONFLICT and request.verb is Verb.GET:
            fault = None
        if fault is not None and fault in _REFUSALS:
            code = _REFUSALS[fault]
            return code, failure(code, fault.value)
        if fault is Fault.RESTART:
            self.server.restart()
        elif fault is Fault.CONTENTION and request.target.name:
            self.server.touch(request.target)
        answer = self.server.send(request)
        if fault is Fault.LOST_ANSWER:
            return None, None
        if fault is Fault.HIDDEN:
            return 503, failure(503, fault.value)
        return answer
