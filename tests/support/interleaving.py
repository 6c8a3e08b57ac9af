"""Every order in which several clients of one API server can act.

What may live here: the exploration, and clients as frozen values: a scheduler that binds
a claim, and the claim controller that releases one. A step is one action: a look at the
claim, or one request with its answer. A client may have several possible next steps
(an answer that gets lost), and all are tried.
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import attrs

from dra_core.api.objects import ResourceClaim
from dra_core.api.request import ApiRequest
from dra_core.claims.binding import BindingPlan, ClaimBinding, Outcome, start_binding
from dra_core.claims.releasing import PodLookup, finish_release, release_claim
from support.api_server import Server
from support.claim_json import read


class Client(Protocol):
    """Something that acts on a server, one step at a time."""

    def steps(self, server: Server) -> "list[tuple[Server, Client]]":
        """All possible next steps; none when it is done."""


@attrs.frozen
class End:
    """One complete run: every state of the server, in order, and the clients at the end."""

    servers: tuple[Server, ...]
    clients: tuple[Client, ...]


def explore(server: Server, *clients: Client) -> Iterator[End]:
    """Every run of the clients, each step by step, in every order."""
    todo: list[End] = [End((server,), clients)]
    while todo:
        run = todo.pop()
        following = [
            End((*run.servers, after), _replaced(run.clients, index, client))
            for index, current in enumerate(run.clients)
            for after, client in current.steps(run.servers[-1])
        ]
        if following:
            todo.extend(following)
        else:
            yield run


def _replaced(clients: tuple[Client, ...], index: int, client: Client) -> tuple[Client, ...]:
    return (*clients[:index], client, *clients[index + 1 :])


def claim_of(server: Server, name: str = "gpu") -> ResourceClaim:
    """The claim as the server has it."""
    return read(server.get(name))


@attrs.frozen
class Scheduler:
    """Binds a claim by the state machine; looks at it first.

    ``losses``: how many answers may get lost, with or without the request before them.
    """

    plan: BindingPlan
    binding: ClaimBinding | None = None
    losses: int = 0
    sent: tuple[tuple[ApiRequest, int | None], ...] = ()

    @property
    def outcome(self) -> Outcome | None:
        return None if self.binding is None else self.binding.outcome

    def steps(self, server: Server) -> list[tuple[Server, Client]]:
        if self.binding is None:
            return [
                (server, attrs.evolve(self, binding=start_binding(claim_of(server), self.plan)))
            ]
        request = self.binding.request
        if request is None:
            return []
        after, status, body = server.send(request)
        options = [(after, self._told(request, status, body))]
        if self.losses:
            unlucky = attrs.evolve(self, losses=self.losses - 1)
            options += [(s, unlucky._told(request, None, None)) for s in (server, after)]
        return [(s, client) for s, client in options]

    def _told(self, request: ApiRequest, status: int | None, body: Any) -> "Scheduler":
        assert self.binding is not None
        return attrs.evolve(
            self,
            binding=self.binding.answered(status, body),
            sent=(*self.sent, (request, status)),
        )


@attrs.frozen
class Controller:
    """The claim controller, on one claim: look, release, take the finalizer off.

    After a conflict it looks again.
    """

    lookup: PodLookup
    request: ApiRequest | None = None
    finishing: bool = False
    done: bool = False

    def steps(self, server: Server) -> list[tuple[Server, Client]]:
        if self.done:
            return []
        if self.request is None:
            request = release_claim(claim_of(server), self.lookup)
            return [(server, attrs.evolve(self, request=request, done=request is None))]
        after, status, body = server.send(self.request)
        if status == 409:
            # Taking the finalizer off is not tried again: somebody uses the claim anew.
            again = attrs.evolve(self, request=None, done=self.finishing)
            return [(after, again)]
        assert status == 200
        request = None if self.finishing else finish_release(read(body))
        return [(after, attrs.evolve(self, request=request, finishing=True, done=request is None))]


@attrs.frozen
class Naive:
    """A scheduler that sends one request made from what it saw, and believes the answer."""

    build: Callable[[ResourceClaim], ApiRequest | None]
    request: ApiRequest | None = None
    done: bool = False

    def steps(self, server: Server) -> list[tuple[Server, Client]]:
        if self.done:
            return []
        if self.request is None:
            request = self.build(claim_of(server))
            return [(server, attrs.evolve(self, request=request, done=request is None))]
        after, _, _ = server.send(self.request)
        return [(after, attrs.evolve(self, done=True))]
