"""Proofs that the rest of a search is hopeless, and what need not be tried twice.

Used from the first dead end on. ``refute`` looks at the whole problem, ``promising`` at
what remains after a pick, with the same proofs, cheapest first:

* a request has fewer candidates left than it needs;
* several requests together have (Hall's condition over distinct devices);
* no value of a matchAttribute serves all its requests, a distinctAttribute has too
  few values;
* the shared counters cannot serve the rest (``dra_core.allocator.partitions``);
* the capacity left on shared devices cannot.

Every proof relaxes the problem, so it never cuts off a solution. It looks only at the
requests before the first risky one, so it never cuts off an error either.

``equals`` and ``entry`` are the memory: devices that no check can tell apart, and
states that are the same up to exchanging such devices.
"""

from typing import NamedTuple, Protocol

from dra_core.allocator.joint import Demand, shortage
from dra_core.allocator.partitions import Counting, Partitions
from dra_core.allocator.problem import Option, Problem
from dra_core.allocator.results import Conflict, ConflictKind
from dra_core.allocator.static import bits


class Proving(Counting, Protocol):
    """Counts the steps and the work of proofs (``dra_core.allocator.search.Meter``)."""

    def proof(self) -> None:
        """Count the step of a proof that begins."""

    def prepare(self) -> None:
        """A preparation begins."""


class StateLike(Protocol):
    """What is read of the search's state."""

    picked: int
    mine: int
    count: int
    available: int
    bounds: tuple[int, ...]
    paid: int
    consumed: dict[int, tuple[int, ...]]


class FrameLike(Protocol):
    """What is read of a frame."""

    slot: int
    taken: int
    rest: int
    option: Option


class Want(NamedTuple):
    """What a request still needs: ``need`` of ``mask``, under ``constraints``."""

    slot: int
    option: Option
    mask: int
    need: int
    constraints: tuple[int, ...]


class Lookahead:
    """The proofs for one problem."""

    def __init__(self, problem: Problem, meter: Proving) -> None:
        self._problem = problem
        self._meter = meter
        self._distinct = [constraint.distinct for constraint in problem.plan.constraints]
        self._scale = 1 + (len(problem.view.devices) >> 12)
        """Operations on long masks count as several."""
        self._partitions = self._partition_bound()
        self._has_admin = any(o.admin for slot in problem.slots for o in slot.options)
        self._sizes: dict[tuple[int, int], tuple[int, ...]] = {}
        self._class_of: list[int] = []
        self._classes: list[int] = []
        self._future = self._futures()
        self._first_bound = self._first_bounds()

    def _partition_bound(self) -> Partitions | None:
        table = self._problem.table
        if table is None or table.grows:
            return None
        return Partitions(self._problem, self._meter)

    def _work(self, operations: int) -> None:
        self._meter.work(operations * self._scale)

    # --- proofs -------------------------------------------------------------------------

    def refute(self, state: StateLike) -> Conflict | None:
        """A proof that the whole problem has no solution, if one is found."""
        self._meter.proof()
        wants = self._later(0, -1, state)
        return self._check(wants, state)

    def promising(self, frame: FrameLike, state: StateLike) -> bool:
        """Whether the rest may still be served after the frame's pick."""
        option = frame.option
        need = option.need - frame.taken - 1
        wants: list[Want] = []
        if need > 0:
            if option.every:
                return True
            if option.failing & frame.rest:
                return True
            barred = state.mine if option.admin else state.picked
            mask = frame.rest & option.mask & ~barred
            wants.append(Want(frame.slot, option, mask, need, option.constraints))
        self._meter.proof()
        claim = self._problem.slots[frame.slot].claim
        wants += self._later(frame.slot + 1, claim, state)
        return not wants or self._check(wants, state) is None

    def _later(self, first: int, claim: int, state: StateLike) -> list[Want]:
        """What the requests from ``first`` on need, up to the first risky one."""
        wants = []
        for number in range(first, len(self._problem.slots)):
            slot = self._problem.slots[number]
            if slot.risky:
                break
            option = slot.options[0]
            if len(slot.options) > 1:
                mask = 0
                for other in slot.options:
                    mask |= other.mask
                need = min(o.need if o.need or not o.every else 1 for o in slot.options)
                wants.append(Want(number, option, mask & ~state.picked, need, ()))
                continue
            barred = state.picked
            if option.admin:
                barred = state.mine if slot.claim == claim else 0
            mask = option.mask & ~barred
            wants.append(Want(number, option, mask, option.need, option.constraints))
        return wants

    def _check(self, wants: list[Want], state: StateLike) -> Conflict | None:
        self._work(8 * len(wants))
        bounded = [self._within_bounds(want, state) for want in wants]
        return (
            self._too_few(bounded)
            or self._too_few_together(bounded)
            or self._constraint_conflict(bounded, state)
            or self._counter_conflict(bounded, state)
            or self._capacity_conflict(bounded, state)
        )

    def _within_bounds(self, want: Want, state: StateLike) -> Want:
        """Without the candidates that the constraints rule out by now."""
        mask = want.mask
        for number in want.constraints:
            column = self._problem.column(number)
            bound = state.bounds[number]
            mask &= column.present
            if self._distinct[number]:
                self._work(bound.bit_count())
                mask &= ~column.holding(bound)
            elif bound != -1:
                self._work(bound.bit_count())
                mask &= column.holding(bound)
        return want._replace(mask=mask)

    def _too_few(self, wants: list[Want]) -> Conflict | None:
        for want in wants:
            found = want.mask.bit_count()
            if found < want.need:
                return _conflict(ConflictKind.TOO_FEW, [want], "", want.need, found)
        return None

    def _too_few_together(self, wants: list[Want]) -> Conflict | None:
        competing = [want for want in wants if not want.option.admin]
        if len(competing) < 2:
            return None
        found = shortage([self._demand(want.mask, want.need) for want in competing], self._work)
        if found is None:
            return None
        members = [competing[place] for place in found.demands]
        return _conflict(ConflictKind.JOINTLY_TOO_FEW, members, "", found.need, found.available)

    def _demand(self, mask: int, need: int) -> Demand:
        """Shared devices serve every request once, the others only one."""
        shared = self._problem.multiple
        if not shared:
            return Demand(mask, need)
        return Demand(mask & ~shared, need - (mask & shared).bit_count())

    def _constraint_conflict(self, wants: list[Want], state: StateLike) -> Conflict | None:
        for number, distinct in enumerate(self._distinct):
            group = [want for want in wants if number in want.constraints]
            if not group:
                continue
            if distinct:
                hopeless = self._lacks_values(number, group, state.bounds[number])
            else:
                hopeless = not self._has_common_value(number, group, state.bounds[number])
            if hopeless:
                kind = ConflictKind.DISTINCT_ATTRIBUTE if distinct else ConflictKind.MATCH_ATTRIBUTE
                subject = self._problem.plan.constraints[number].attribute
                return _conflict(kind, group, subject, sum(w.need for w in group), -1)
        return None

    def _has_common_value(self, number: int, group: list[Want], bound: int) -> bool:
        for value, holders in enumerate(self._problem.column(number).holders):
            if not bound >> value & 1:
                continue
            self._work(len(group))
            if any((want.mask & holders).bit_count() < want.need for want in group):
                continue
            demands = [
                self._demand(want.mask & holders, want.need)
                for want in group
                if not want.option.admin
            ]
            if len(demands) < 2 or shortage(demands, self._work) is None:
                return True
        return not any(want.need for want in group)

    def _lacks_values(self, number: int, group: list[Want], bound: int) -> bool:
        """Each device needs a value of its own: Hall's condition over values."""
        column = self._problem.column(number)
        demands = []
        for want in group:
            values = 0
            self._work(len(column.holders))
            for value, holders in enumerate(column.holders):
                if holders & want.mask:
                    values |= 1 << value
            demands.append(Demand(values & ~bound, want.need))
        return shortage(demands, self._work) is not None

    def _counter_conflict(self, wants: list[Want], state: StateLike) -> Conflict | None:
        if self._partitions is None:
            return None
        needs = [(want.slot, want.need) for want in wants]
        if not self._partitions.hopeless(needs, state.available, state.picked):
            return None
        return _conflict(ConflictKind.COUNTERS, wants, "", sum(w.need for w in wants), -1)

    # --- shared capacity ----------------------------------------------------------------

    def _capacity_conflict(self, wants: list[Want], state: StateLike) -> Conflict | None:
        """Count how often each shared device can be given, at the smallest amounts."""
        tracked = self._problem.tracked & self._problem.multiple
        union = 0
        asking = []
        need = 0
        for want in wants:
            alone = (want.mask & ~tracked).bit_count()
            if want.need > alone:
                asking.append(want)
                need += want.need - alone
                union |= want.mask & tracked
        if need < 2:
            return None
        slots = 0
        for candidate in bits(union):
            self._work(6 * len(asking))
            slots += self._room(candidate, asking, state)
            if slots >= need:
                return None
        return _conflict(ConflictKind.CAPACITY, asking, "", need, slots)

    def _room(self, candidate: int, asking: list[Want], state: StateLike) -> int:
        """How many of the requests may get the device, each at most once."""
        takers = [want for want in asking if want.mask >> candidate & 1]
        room = len(takers)
        if not room or any(len(self._problem.slots[w.slot].options) > 1 for w in takers):
            return room
        limits = self._problem.limits(candidate)
        consumed = state.consumed.get(candidate)
        if consumed is None:
            consumed = self._problem.consumed_amounts(candidate)
        vectors = [want.option.statics.vector(candidate) for want in takers]
        for place, limit in enumerate(limits):
            least = min(vector[place] for vector in vectors)
            if least > 0:
                room = min(room, max(0, limit - consumed[place]) // least)
        return room

    # --- memory -------------------------------------------------------------------------

    def equals(self, candidate: int, state: StateLike) -> int:
        """The candidates that no check can tell from this one now (itself included)."""
        alike = self._classes[self._class_of[candidate]]
        if alike & alike - 1 == 0:
            return alike
        for taken in (state.picked, state.mine, state.paid):
            alike &= taken if taken >> candidate & 1 else ~taken
        if state.consumed:
            mine = state.consumed.get(candidate)
            for other, consumed in state.consumed.items():
                if consumed != mine:
                    alike &= ~(1 << other)
            if mine is not None:
                for other in bits(alike):
                    if other not in state.consumed:
                        alike &= ~(1 << other)
        return alike

    def entry(self, number: int, state: StateLike) -> object:
        """The state in which request ``number`` is opened, up to exchanging equal devices.

        Two openings with equal keys have the same solutions.
        """
        self._work(len(self._classes) + len(state.consumed))
        future = self._future[number]
        picked = state.picked & future
        paid = state.paid & future
        return (
            number,
            tuple((picked & alike).bit_count() for alike in self._classes if alike & future),
            tuple((paid & alike).bit_count() for alike in self._classes if alike & paid),
            state.mine if self._has_admin else 0,
            state.count,
            state.available,
            state.bounds[self._first_bound[number] :],
            tuple(
                sorted(
                    (self._class_of[candidate], consumed)
                    for candidate, consumed in state.consumed.items()
                    if future >> candidate & 1
                )
            ),
        )

    def tell_apart(self) -> None:
        """Number the classes of devices that are alike for every request of the problem.

        Comes before ``equals`` and ``entry``; a problem that is refuted does without.
        """
        self._meter.prepare()
        numbers: dict[object, int] = {}
        options = sum(len(slot.options) for slot in self._problem.slots)
        for candidate in range(len(self._problem.view.devices)):
            self._work(options)
            number = numbers.setdefault(self._signature(candidate), len(numbers))
            if number == len(self._classes):
                self._classes.append(0)
            self._classes[number] |= 1 << candidate
            self._class_of.append(number)

    def _signature(self, candidate: int) -> object:
        """Everything that any check of the search reads of a candidate."""
        problem = self._problem
        options = [option for slot in problem.slots for option in slot.options]
        if any(option.alternative.can_fail for option in options):
            # Mode All takes devices in a fixed order; which of two equal ones is taken
            # already decides whether it meets its constraint or a device in use first.
            return candidate
        member = tuple(
            (o.mask | o.statics.selected if o.every else o.mask) >> candidate & 1
            | (o.failing >> candidate & 1) << 1
            for o in options
        )
        if not any(member):
            return None
        columns = tuple(problem.column(n).masks[candidate] for n in range(len(self._distinct)))
        table = problem.table
        counters = table.key(candidate) if table else ()
        shared = problem.multiple >> candidate & 1, problem.paid >> candidate & 1
        amounts: object = ()
        if problem.tracked >> candidate & 1:
            amounts = (
                problem.limits(candidate),
                problem.consumed_amounts(candidate),
                tuple(o.statics.vector(candidate) for o in options if o.mask >> candidate & 1),
            )
        return member, columns, counters, shared, amounts

    def _futures(self) -> list[int]:
        """For each request the candidates that it or a later one may take."""
        futures = []
        union = 0
        for slot in reversed(self._problem.slots):
            for option in slot.options:
                union |= option.mask | option.failing
            futures.append(union)
        return futures[::-1]

    def _first_bounds(self) -> list[int]:
        """For each request the first constraint of its claim."""
        constraints = self._problem.plan.constraints
        return [
            next((n for n, c in enumerate(constraints) if c.claim >= slot.claim), len(constraints))
            for slot in self._problem.slots
        ]


def _conflict(
    kind: ConflictKind, wants: list[Want], subject: str, needed: int, available: int
) -> Conflict:
    names = tuple((w.option.alternative.claim, w.option.alternative.name) for w in wants)
    return Conflict(kind, names, subject, needed, available)
