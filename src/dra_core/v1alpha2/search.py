"""The search for instances of one driver, on one node.

What may live here: the search alone, on masks; nothing about objects of the API.

Theory. Drivers have nothing to do with each other, so each is searched alone, for all
claims of the pod together. A request takes one instance; no two requests share one. The
requests of one claim are a *block*: they go into one handle, and a handle has one node
name, so they are met all from the node's own instances or all from instances of no node.
The answer is the first complete solution of a plain depth-first search over requests in
order and instances in order, the node's own before the others.

Until the first dead end the search just descends. Then it asks whether the requests can
be met at all if blocks may be torn apart: that is a matching of requests and instances,
and if there is none it names the requests that compete. Otherwise it begins anew with that
matching at hand: a pick counts only if the matching of the requests after it can be mended,
the rest of its block staying at its place. Where instances are at one place only, this test
is exact, and no pick is ever taken back. Where there are two, it may not be, and two more
things keep the work small: an instance that serves the same requests as one that failed
fails too, and at the beginning of a block only the numbers of instances of each sort
matter, so that a state that led nowhere is not tried again. None of this leaves out a
subtree with a solution.

A selector that fails on an instance ends the search where a plain search would meet that
instance, so with such instances around nothing is left out at all.

Steps. One for each instance tried and for each request looked at by the matching.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

import attrs

from dra_core.allocator.search import Meter


class Candidates(NamedTuple):
    """For one request: masks of the free instances that match, and of those that fail."""

    matching: int
    failing: int
    block: int


class Failed(NamedTuple):
    """A selector of request ``request`` failed on instance ``instance``."""

    request: int
    instance: int


@attrs.frozen
class Found:
    """One instance for each request, in order."""

    instances: tuple[int, ...]


@attrs.frozen
class Refuted:
    """These requests compete for fewer instances than they need. No requests: no single
    reason, every combination was tried."""

    requests: tuple[int, ...]
    available: int = -1


NO_SINGLE_REASON: Final = Refuted(())

EVERYWHERE: Final = -1
"""The mask of all instances."""


class _Frame:
    """One request; ``rest`` is still to be tried, ``pick`` is taken now (0: nothing is)."""

    __slots__ = ("key", "pick", "rest")

    def __init__(self, rest: int, key: object) -> None:
        self.rest = rest
        self.pick = 0
        self.key = key


class Search:
    """One search. ``own`` is the mask of the node's own instances among all of them.

    ``run`` raises ``StopSearch`` when the meter says so.
    """

    def __init__(self, requests: Sequence[Candidates], own: int, meter: Meter) -> None:
        self._requests = requests
        self._own = own
        self._meter = meter
        self._may_fail = any(request.failing for request in requests)
        used = reduce(or_, (request.matching for request in requests), 0)
        self._is_exact = not used & own or not used & ~own
        self._taken = 0
        # After the first dead end; see ``Matching`` for what it always holds.
        self._matching: Matching | None = None
        self._columns: dict[int, int] = {}
        self._sorts: dict[int, list[int]] = {}
        self._dead: set[object] = set()

    def run(self) -> Found | Refuted | Failed:
        """The first solution, or why there is none, or the selector that failed."""
        found = self._descend()
        if found is not NO_SINGLE_REASON:
            return found
        # An instance on which a selector fails might have done: what compete even so compete.
        masks = [request.matching | request.failing for request in self._requests]
        matching = Matching(masks, self._meter)
        refuted = matching.make()
        if refuted is not None or self._may_fail:
            return refuted or NO_SINGLE_REASON
        self._taken = 0
        self._matching = matching
        return self._descend()

    def _descend(self) -> Found | Refuted | Failed:
        """Depth first; without a matching only until a dead end, if nothing can fail."""
        if not self._requests:
            return Found(())
        frames = [self._open(0, EVERYWHERE)]
        while frames:
            frame, request = frames[-1], len(frames) - 1
            taken = self._take(request, frame)
            if isinstance(taken, Failed):
                return taken
            if not taken:
                frames.pop()
                if frame.key is not None:
                    self._dead.add(frame.key)
                if self._matching is None and not self._may_fail:
                    break
            elif len(frames) == len(self._requests):
                return Found(tuple(frame.pick.bit_length() - 1 for frame in frames))
            else:
                frames.append(self._open(request + 1, self._place_after(request, frame.pick)))
        return NO_SINGLE_REASON

    # --- frames ------------------------------------------------------------------------

    def _open(self, request: int, place: int) -> _Frame:
        wanted = self._requests[request]
        rest = (wanted.matching | wanted.failing) & place & ~self._taken
        key = None
        if self._matching is not None and place == EVERYWHERE and not self._is_exact:
            key = self._state(request)
        return _Frame(0 if key in self._dead else rest, key)

    def _place_after(self, request: int, pick: int) -> int:
        """Where the request after this one may look, given its pick."""
        if self._requests[request + 1].block != self._requests[request].block:
            return EVERYWHERE
        return self._place_of(pick)

    def _place_of(self, pick: int) -> int:
        return self._own if pick & self._own else ~self._own

    def _take(self, request: int, frame: _Frame) -> bool | Failed:
        """Take the next instance that will do; False if there is none left."""
        rest, matching = frame.rest, self._matching
        if frame.pick:
            self._taken ^= frame.pick
            if matching is not None:
                matching.give_back(request, frame.pick)
                rest &= ~self._equals(request, frame.pick, rest)
            frame.pick = 0
        failing = self._requests[request].failing
        while rest:
            low = rest & -rest
            rest ^= low
            self._meter.step()
            if low & failing:
                return Failed(request, low.bit_length() - 1)
            if matching is None or matching.take(request, low, *self._rest_of_block(request, low)):
                self._taken |= low
                frame.rest, frame.pick = rest, low
                return True
            rest &= ~self._equals(request, low, rest)
        return False

    def _rest_of_block(self, request: int, pick: int) -> tuple[int, int]:
        """Where the requests of the block that come after this one end, and their place."""
        end, block = request + 1, self._requests[request].block
        while end < len(self._requests) and self._requests[end].block == block:
            end += 1
        return end, self._place_of(pick)

    # --- what is left out --------------------------------------------------------------

    def _equals(self, request: int, pick: int, among: int) -> int:
        """Instances at the same place that serve the same requests from this one on."""
        sort = self._sort(request, pick)
        return sum(low for low in _bits(among) if self._sort(request, low) == sort)

    def _sort(self, request: int, instance: int) -> tuple[bool, int]:
        return bool(instance & self._own), self._all_columns()[instance] >> request

    def _all_columns(self) -> dict[int, int]:
        """By instance the mask of the requests that it serves."""
        if not self._columns:
            for request, wanted in enumerate(self._requests):
                for low in _bits(wanted.matching):
                    self._columns[low] = self._columns.get(low, 0) | 1 << request
        return self._columns

    def _state(self, request: int) -> object:
        """What matters for the requests from the beginning of a block on."""
        sorts = self._sorts.get(request)
        if sorts is None:
            grouped: dict[tuple[bool, int], int] = {}
            for low in self._all_columns():
                sort = self._sort(request, low)
                grouped[sort] = grouped.get(sort, 0) | low
            sorts = self._sorts[request] = list(grouped.values())
        return request, *[(mask & ~self._taken).bit_count() for mask in sorts]


class Matching:
    """An instance for each request that has no pick yet, all different.

    Instances that are taken belong to no request here. So after every call the requests
    without a pick could all be met, if only their blocks may be torn apart.
    """

    def __init__(self, masks: Sequence[int], meter: Meter) -> None:
        self._masks = masks
        self._meter = meter
        self._taken = 0
        self._instances = [0] * len(masks)
        self._owners: dict[int, int] = {}

    def make(self) -> Refuted | None:
        """Match all requests, or say which ones compete."""
        for request, mask in enumerate(self._masks):
            if not mask:
                return Refuted((request,), 0)
        for request in range(len(self._masks)):
            refuted = self._augment(request, 0, EVERYWHERE)
            if refuted is not None:
                return refuted
        return None

    def take(self, request: int, pick: int, end: int, place: int) -> bool:
        """Give a request its pick for good, and mend the rest.

        The requests after it and before ``end`` have to be met at ``place``. False, and
        nothing changed, if that cannot be.
        """
        before, owners = self._instances.copy(), self._owners.copy()
        self._forget(request)
        self._taken |= pick
        homeless = [] if pick not in self._owners else [self._owners[pick]]
        homeless += [
            other
            for other in range(request + 1, end)
            if self._instances[other] & ~place and other not in homeless
        ]
        for other in homeless:
            self._forget(other)
        for other in homeless:
            if self._augment(other, end, place) is not None:
                self._instances, self._owners = before, owners
                self._taken ^= pick
                return False
        return True

    def give_back(self, request: int, pick: int) -> None:
        """A request has no pick any more; it keeps the instance as one that it could get."""
        self._taken ^= pick
        self._instances[request] = pick
        self._owners[pick] = request

    def _forget(self, request: int) -> None:
        instance = self._instances[request]
        if instance:
            del self._owners[instance]
        self._instances[request] = 0

    def _augment(self, request: int, end: int, place: int) -> Refuted | None:
        """Find an instance for a request, moving others if that helps."""
        queue = [request]
        wanted_by: dict[int, int] = {}
        seen = self._taken
        for one in queue:
            self._meter.step()
            for low in _bits(self._masks[one] & ~seen & (place if one < end else EVERYWHERE)):
                seen |= low
                wanted_by[low] = one
                if low in self._owners:
                    queue.append(self._owners[low])
                    continue
                self._move(low, wanted_by)
                return None
        return Refuted(tuple(sorted(queue)), len(wanted_by))

    def _move(self, free: int, wanted_by: dict[int, int]) -> None:
        """Give a free instance to who wants it, its former one to the next, and so on."""
        while free:
            request = wanted_by[free]
            former = self._instances[request]
            self._instances[request] = free
            self._owners[free] = request
            free = former


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        mask ^= low
        yield low
