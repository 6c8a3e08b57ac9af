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
and if there is none it names the requests that compete. From then on a pick counts only if
the requests after it can still be matched, given that the rest of its block stays at its
place. Where instances are at one place only, this test is exact, and no pick is ever
taken back twice. Otherwise two more things keep the work small: an instance that serves
the same requests as one that failed fails too, and at the beginning of a block only the
numbers of instances of each sort matter, so that a state that led nowhere is not tried
again. None of this leaves out a subtree with a solution.

A selector that fails on an instance ends the search where a plain search would meet that
instance, so with such instances around nothing is left out at all.

Steps. One for each instance tried and for each request looked at by the matching.
"""

from collections.abc import Iterator, Sequence
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
        self._masks = [request.matching for request in requests]
        self._may_fail = any(request.failing for request in requests)
        self._taken = 0
        self._proving = False
        # For every request an instance it may get: a matching, or the remains of one.
        self._hints = [0] * len(requests)
        self._columns: dict[int, int] = {}
        self._sorts: dict[int, list[int]] = {}
        self._dead: set[object] = set()

    def run(self) -> Found | Refuted | Failed:
        """The first solution, or why there is none, or the selector that failed."""
        if not self._requests:
            return Found(())
        frames = [self._open(0, -1)]
        while frames:
            frame, request = frames[-1], len(frames) - 1
            taken = self._take(request, frame)
            if isinstance(taken, Failed):
                return taken
            if not taken:
                frames.pop()
                refuted = self._dead_end(frame)
                if refuted is not None:
                    return refuted
            elif len(frames) == len(self._requests):
                return Found(tuple(frame.pick.bit_length() - 1 for frame in frames))
            else:
                frames.append(self._open(request + 1, self._place_after(request, frame.pick)))
        return NO_SINGLE_REASON

    # --- frames ------------------------------------------------------------------------

    def _open(self, request: int, place: int) -> _Frame:
        wanted = self._requests[request]
        rest = (wanted.matching | wanted.failing) & place & ~self._taken
        key = self._state(request) if self._proving and place == -1 else None
        return _Frame(0 if key in self._dead else rest, key)

    def _place_after(self, request: int, pick: int) -> int:
        """Where the request after this one may look, given its pick."""
        if self._requests[request + 1].block != self._requests[request].block:
            return -1
        return self._own if pick & self._own else ~self._own

    def _take(self, request: int, frame: _Frame) -> bool | Failed:
        """Take the next instance that will do; False if there is none left."""
        rest = frame.rest
        if frame.pick:
            self._taken ^= frame.pick
            if self._proving:
                rest &= ~self._equals(request, frame.pick)
            frame.pick = 0
        failing = self._requests[request].failing
        while rest:
            low = rest & -rest
            rest ^= low
            self._meter.step()
            if low & failing:
                return Failed(request, low.bit_length() - 1)
            self._taken |= low
            if not self._proving or self._can_go_on(request, low):
                frame.rest, frame.pick = rest, low
                return True
            self._taken ^= low
            rest &= ~self._equals(request, low)
        return False

    def _dead_end(self, frame: _Frame) -> Refuted | None:
        if self._may_fail:
            return None
        if self._proving:
            if frame.key is not None:
                self._dead.add(frame.key)
            return None
        self._proving = True
        taken, self._taken = self._taken, 0
        refuted = self._match(0, -1, 0)
        self._taken = taken
        return refuted

    # --- what is left out --------------------------------------------------------------

    def _can_go_on(self, request: int, pick: int) -> bool:
        following = request + 1
        if following == len(self._requests):
            return True
        end = following
        block = self._requests[request].block
        while end < len(self._requests) and self._requests[end].block == block:
            end += 1
        place = self._own if pick & self._own else ~self._own
        return self._match(following, place, end) is None

    def _match(self, start: int, place: int, end: int) -> Refuted | None:
        """Match the requests from ``start`` on; those before ``end`` at ``place`` only.

        The hints are mended, not made anew: after one more pick few of them are wrong.
        """
        masks = {
            request: self._masks[request] & ~self._taken & (place if request < end else -1)
            for request in range(start, len(self._masks))
        }
        owners: dict[int, int] = {}
        without = []
        for request, mask in masks.items():
            hint = self._hints[request]
            if hint & mask and hint not in owners:
                owners[hint] = request
            else:
                without.append(request)
        for request in without:
            refuted = self._augment(request, masks, owners)
            if refuted is not None:
                return refuted
        for instance, request in owners.items():
            self._hints[request] = instance
        return None

    def _augment(
        self, request: int, masks: dict[int, int], owners: dict[int, int]
    ) -> Refuted | None:
        """Find an instance for a request, moving others if that helps."""
        queue = [request]
        wanted_by: dict[int, int] = {}
        seen = 0
        for one in queue:
            self._meter.step()
            for low in _bits(masks[one] & ~seen):
                seen |= low
                wanted_by[low] = one
                if low in owners:
                    queue.append(owners[low])
                    continue
                self._move(request, low, wanted_by, owners)
                return None
        return Refuted(tuple(sorted(queue)), seen.bit_count())

    def _move(
        self, request: int, free: int, wanted_by: dict[int, int], owners: dict[int, int]
    ) -> None:
        """Give the free instance to who wants it, its former one to the next, and so on."""
        had = {owner: instance for instance, owner in owners.items()}
        while True:
            owner = wanted_by[free]
            owners[free] = owner
            if owner == request:
                return
            free = had[owner]

    def _equals(self, request: int, pick: int) -> int:
        """Instances at the same place that serve the same requests from this one on."""
        if self._may_fail:
            return pick
        sort = self._sort(request, pick)
        return sum(low for low in self._all_columns() if self._sort(request, low) == sort)

    def _sort(self, request: int, instance: int) -> tuple[bool, int]:
        return bool(instance & self._own), self._all_columns()[instance] >> request

    def _all_columns(self) -> dict[int, int]:
        """By instance the mask of the requests that it serves."""
        if not self._columns:
            for request, mask in enumerate(self._masks):
                for low in _bits(mask):
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


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        mask ^= low
        yield low
