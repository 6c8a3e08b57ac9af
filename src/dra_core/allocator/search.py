"""The search: depth first, in the order of the specification, on a stack of its own.

Theory. The answer is the first complete solution of a plain depth-first search over
claims, requests, options, devices of a request, and candidates in pool order, where
within one request candidates only move forward. One frame stands for one device to be
found. A frame remembers the state before its device was taken, all of it immutable
ints and tuples, so that going back is putting these back: one trail undoes everything.
The only mutable part, what is consumed of shared devices, is put back the same way.

Two modes. Until the first dead end the search descends greedily and proves nothing:
the everyday problem pays nothing for the hard ones. At the first dead end it asks for
a proof that the whole problem is hopeless (``dra_core.allocator.lookahead``), and from
then on after every device whether the rest can still be served, skips devices that
are interchangeable with one that failed, and remembers dead states. None of that
changes the answer: only subtrees without solution are left out.

Errors. A selector that fails, or mode All against a constraint, ends the call if the
search gets there. A subtree that may contain such an end is not left out: proofs look
only at the requests before the first risky one.

Steps. One for each device tried and each state expanded in a proof; a proof that takes
more than ``FREE_WORK`` operations costs a step for every further ``FREE_WORK``, so that a
step takes some 100 µs at most, however large the problem is. The budget counts them;
every ``CHECK_INTERVAL`` steps the caller's deadline and cancellation are asked.
"""

from collections.abc import Callable, Sequence
from operator import add, le
from typing import Final

from dra_core.allocator.lookahead import Lookahead
from dra_core.allocator.plan import claim_label
from dra_core.allocator.problem import Option, Problem
from dra_core.allocator.results import Conflict, ConflictKind, StoppedBy
from dra_core.api.objects import MAX_DEVICES_PER_CLAIM
from dra_core.errors import AllBreaksConstraintError

CHECK_INTERVAL: Final = 64

FREE_WORK: Final = 256
"""Operations on masks, of some 0.1 to 0.3 µs each, that a step of a proof pays for."""

FREE_PREPARATION: Final = 16 * FREE_WORK
"""Operations that are free while a search that met its first dead end is prepared."""

Amounts = tuple[int, ...]


class StopSearch(Exception):
    """Internal: budget, deadline or cancellation; becomes ``Undecided``."""

    def __init__(self, stopped_by: StoppedBy) -> None:
        super().__init__(stopped_by)
        self.stopped_by = stopped_by


class Meter:
    """Counts steps and asks the caller's conditions."""

    __slots__ = ("_budget", "_cancel", "_deadline", "_next", "_paid_work", "steps")

    def __init__(
        self,
        budget: int | None,
        deadline: Callable[[], bool] | None,
        cancel: Callable[[], bool] | None,
    ) -> None:
        self.steps = 0
        self._budget = None if budget is None else max(0, budget)
        self._deadline = deadline
        self._cancel = cancel
        self._next = 0
        self._paid_work = FREE_WORK

    def start(self) -> None:
        """Ask all conditions once; a call that is over before it began does nothing."""
        if self._cancel is not None or self._deadline is not None or self._budget is not None:
            self._ask()

    def step(self) -> None:
        """Count one step; raises ``StopSearch`` when the call must end."""
        self.steps += 1
        if self.steps >= self._next:
            self._ask()

    def proof(self) -> None:
        """Count the step of a proof that begins."""
        self.step()
        self._paid_work = FREE_WORK

    def prepare(self) -> None:
        """A preparation begins, which is done once."""
        self._paid_work = FREE_PREPARATION

    def work(self, operations: int) -> None:
        """Count operations of the proof: steps for what the last ones do not pay for."""
        self._paid_work -= operations
        if self._paid_work < 0:
            more = -(self._paid_work // FREE_WORK)
            self._paid_work += more * FREE_WORK
            self.steps += more
            if self.steps >= self._next:
                self._ask()

    def pause(self) -> None:
        """Ask the deadline and cancellation without counting a step."""
        if self._cancel is not None and self._cancel():
            raise StopSearch(StoppedBy.CANCELLED)
        if self._deadline is not None and self._deadline():
            raise StopSearch(StoppedBy.DEADLINE)

    def _ask(self) -> None:
        if self._budget is not None and self.steps > self._budget:
            self.steps = self._budget
            raise StopSearch(StoppedBy.BUDGET)
        self.pause()
        self._next = self.steps + CHECK_INTERVAL
        if self._budget is not None:
            self._next = min(self._next, self._budget + 1)


class State:
    """What a pick changes.

    ``picked``: candidates taken by any claim (never those that may be shared), ``mine``
    those of the current claim, ``count`` its number of devices; ``available``: packed
    counters; ``bounds``: one mask of attribute values per constraint; ``paid``: shared
    candidates whose counters are taken; ``consumed``: what is consumed of each tracked
    candidate that was taken, in the order of its capacities (the only mutable part).
    """

    __slots__ = ("available", "bounds", "consumed", "count", "mine", "paid", "picked")

    def __init__(self, available: int, bounds: tuple[int, ...], paid: int) -> None:
        self.picked = 0
        self.mine = 0
        self.count = 0
        self.available = available
        self.bounds = bounds
        self.paid = paid
        self.consumed: dict[int, Amounts] = {}


class Frame:
    """One device to be found: the ``taken``-th of an option of request ``slot``.

    ``rest`` are the candidates still to be tried, ``candidate`` the one that is taken
    now (-1: none was needed); ``entry`` is the key of the state in which the request was
    opened, if that is remembered. The other fields are the state before it was taken.
    """

    __slots__ = (
        "available",
        "bounds",
        "candidate",
        "choice",
        "consumed",
        "count",
        "entry",
        "mine",
        "option",
        "paid",
        "passed",
        "picked",
        "rest",
        "slot",
        "taken",
    )

    def __init__(self, slot: int, option: Option, taken: int, rest: int, state: State) -> None:
        self.slot = slot
        self.choice = 0
        self.option = option
        self.taken = taken
        self.rest = rest
        self.candidate = -1
        self.passed = False
        self.entry: object = None
        self.consumed: Amounts | None = None
        self.picked = state.picked
        self.mine = state.mine
        self.count = state.count
        self.available = state.available
        self.bounds = state.bounds
        self.paid = state.paid


class Search:
    """Finds the first solution of a problem, or that there is none.

    After ``run`` returned True, ``stack`` holds the solution; after False,
    ``conflict`` what was proved.
    """

    def __init__(self, problem: Problem, meter: Meter) -> None:
        self.problem = problem
        self.meter = meter
        self.conflict: Conflict | None = None
        self.stack: list[Frame] = []
        self._distinct = [constraint.distinct for constraint in problem.plan.constraints]
        bounds = tuple([0 if distinct else -1 for distinct in self._distinct])
        self.state = State(problem.available, bounds, problem.paid)
        table = problem.table
        self._costs: Sequence[int] = table.costs if table is not None else ()
        self._touches: Sequence[int] = table.touches if table is not None else ()
        self._weight = table.weight if table is not None else 0
        self._consuming = problem.view.consuming if table is not None else 0
        self._tracked = problem.tracked
        self._start = bounds
        self._lookahead: Lookahead | None = None
        self._dead: set[object] = set()

    def run(self) -> bool:
        """Search; True if a solution was found.

        Raises ``StopSearch``, and ``AllocationError`` where the search meets one.
        """
        self.conflict = short_of_candidates(self.problem)
        if self.conflict is not None:
            return False
        if not self.problem.slots:
            return True
        stack = self.stack
        stack.append(self._open(0))
        while True:
            frame = stack[-1]
            if self._next(frame):
                following = self._following(frame)
                if following is None:
                    return True
                stack.append(following)
                continue
            stack.pop()
            if not stack or not self._dead_end(frame, stack[-1]):
                break
        if self.conflict is None:
            self.conflict = Conflict(ConflictKind.EXHAUSTED)
        return False

    def solution(self) -> tuple[list[Option], list[tuple[Option, int]]]:
        """The option chosen for each request, and the devices in the order taken."""
        chosen = [frame.option for frame in self.stack if not frame.taken]
        picks = [(frame.option, frame.candidate) for frame in self.stack if frame.candidate >= 0]
        return chosen, picks

    # --- frames -------------------------------------------------------------------------

    def _open(self, number: int) -> Frame:
        """The first frame of a request."""
        state = self.state
        slots = self.problem.slots
        slot = slots[number]
        if number and slots[number - 1].claim != slot.claim:
            state.mine = state.count = 0
        option = slot.options[0]
        frame = Frame(number, option, 0, self._candidates(option), state)
        if self._lookahead is not None:
            frame.entry = self._lookahead.entry(number, state)
            if frame.entry in self._dead:
                frame.rest = 0
                frame.passed = True
                frame.choice = len(slot.options)
        return frame

    def _candidates(self, option: Option) -> int:
        """Where the search for an option's first device looks."""
        state = self.state
        if option.need and state.count + option.need > MAX_DEVICES_PER_CLAIM:
            return 0
        taken = state.mine if option.admin else state.picked
        if option.every:
            return 1 << option.rows[0] & option.mask & ~taken if option.rows else 0
        return (option.mask | option.failing) & ~taken

    def _following(self, frame: Frame) -> Frame | None:
        """The frame after one that has its device; None if all requests are served."""
        option, taken = frame.option, frame.taken + 1
        if taken < option.need:
            rest = frame.rest
            if option.every:
                barred = self.state.mine if option.admin else self.state.picked
                rest = 1 << option.rows[taken] & option.mask & ~barred
            return Frame(frame.slot, option, taken, rest, self.state)
        if frame.slot + 1 == len(self.problem.slots):
            return None
        return self._open(frame.slot + 1)

    def _next(self, frame: Frame) -> bool:
        """Give the frame its next device; False if there is none left."""
        while True:
            option = frame.option
            if not option.need and not option.every:
                if not frame.passed:
                    frame.passed = True
                    return True
            elif frame.rest and self._try(frame, option):
                return True
            if frame.taken or not self._next_option(frame):
                return False

    def _next_option(self, frame: Frame) -> bool:
        options = self.problem.slots[frame.slot].options
        frame.choice += 1
        if frame.choice >= len(options):
            return False
        frame.option = options[frame.choice]
        frame.candidate = -1
        frame.passed = False
        frame.rest = self._candidates(frame.option)
        return True

    def _try(self, frame: Frame, option: Option) -> bool:
        """Try the candidates that are left until one is taken."""
        rest = frame.rest
        lookahead = self._lookahead
        step = self.meter.step
        while rest:
            low = rest & -rest
            rest ^= low
            step()
            candidate = low.bit_length() - 1
            if low & option.failing:
                raise self.problem.selector_failure(option.alternative, candidate)
            frame.candidate = candidate
            if self._take(frame, option, candidate, low):
                if lookahead is None:
                    frame.rest = rest
                    return True
                frame.rest = rest
                if lookahead.promising(frame, self.state):
                    return True
                self._put_back(frame)
            if lookahead is not None:
                rest &= ~lookahead.equals(candidate, self.state)
        frame.rest = 0
        return False

    def _dead_end(self, frame: Frame, previous: Frame) -> bool:
        """A frame found nothing: go back to the previous one. False ends the search."""
        lookahead = self._lookahead
        if lookahead is None:
            lookahead = self._lookahead = Lookahead(self.problem, self.meter)
            self.conflict = lookahead.refute(
                State(self.problem.available, self._start, self.problem.paid)
            )
            if self.conflict is not None:
                return False
            lookahead.tell_apart()
        elif not frame.taken and frame.entry is not None:
            self._dead.add(frame.entry)
        self._put_back(previous)
        if previous.candidate >= 0:
            previous.rest &= ~lookahead.equals(previous.candidate, self.state)
        return True

    # --- devices ------------------------------------------------------------------------

    def _take(self, frame: Frame, option: Option, candidate: int, low: int) -> bool:
        """Take a device if it is usable now; the state is unchanged if it is not."""
        state = self.state
        consumed: Amounts | None = None
        if low & self._tracked:
            consumed = self._consume(option, candidate)
            if consumed is None:
                return False
        available = state.available
        shared = low & self.problem.multiple
        if low & self._consuming and not (shared and low & state.paid):
            if self._weight:
                self.meter.work(self._weight)
            available -= self._costs[candidate]
            touch = self._touches[candidate]
            if available & touch != touch:
                return False
        bounds = state.bounds
        if option.constraints:
            narrowed = self._narrow(option, candidate)
            if narrowed is None:
                return False
            bounds = narrowed
        state.available = available
        state.bounds = bounds
        state.count += 1
        if shared:
            state.paid |= low
        else:
            state.picked |= low
            state.mine |= low
        if consumed is not None:
            frame.consumed = state.consumed.get(candidate)
            state.consumed[candidate] = consumed
        return True

    def _put_back(self, frame: Frame) -> None:
        """Undo what the frame's device changed."""
        state = self.state
        state.picked = frame.picked
        state.mine = frame.mine
        state.count = frame.count
        state.available = frame.available
        state.bounds = frame.bounds
        state.paid = frame.paid
        candidate = frame.candidate
        if candidate >= 0 and self._tracked >> candidate & 1:
            if frame.consumed is None:
                state.consumed.pop(candidate, None)
            else:
                state.consumed[candidate] = frame.consumed

    def _consume(self, option: Option, candidate: int) -> Amounts | None:
        """What is consumed of a device with this request on top; None if it is too much."""
        consumed = self.state.consumed.get(candidate)
        if consumed is None:
            consumed = self.problem.consumed_amounts(candidate)
        wanted = option.statics.vector(candidate)
        limits = self.problem.limits(candidate)
        if len(limits) == 1:  # One capacity is the rule, and a third of the time.
            amount = consumed[0] + wanted[0]
            return (amount,) if amount <= limits[0] else None
        total = tuple(map(add, consumed, wanted))
        return total if all(map(le, total, limits)) else None

    def _narrow(self, option: Option, candidate: int) -> tuple[int, ...] | None:
        """The constraints' bounds with this device; None if it breaks one."""
        bounds = list(self.state.bounds)
        for number in option.constraints:
            values = self.problem.column(number).masks[candidate]
            bound = bounds[number]
            if self._distinct[number]:
                good = bool(values) and not bound & values
                bounds[number] = bound | values
            else:
                bounds[number] = bound & values
                good = bool(bounds[number])
            if not good:
                if option.every:
                    raise self._breaks(option, candidate, number)
                return None
        return tuple(bounds)

    def _breaks(self, option: Option, candidate: int, number: int) -> AllBreaksConstraintError:
        alternative = option.alternative
        return AllBreaksConstraintError(
            claim_label(self.problem.plan.claims[alternative.claim]),
            alternative.name,
            str(self.problem.view.device_id(candidate)),
            self.problem.plan.constraints[number].position,
        )


def short_of_candidates(problem: Problem) -> Conflict | None:
    """A request that has fewer candidates than it needs, before the first risky one."""
    for slot in problem.slots:
        if slot.risky:
            return None
        for option in slot.options:
            if option.mask.bit_count() >= option.need and (option.need or not option.every):
                break
        else:
            return _too_few(slot.options)
    return None


def _too_few(options: list[Option]) -> Conflict:
    option = min(options, key=lambda o: o.need - o.mask.bit_count())
    found = option.mask.bit_count()
    if option.every:
        kind = ConflictKind.ALL_UNAVAILABLE if option.need else ConflictKind.NO_DEVICES
    else:
        kind = ConflictKind.TOO_FEW
    names = tuple((o.alternative.claim, o.alternative.name) for o in options)
    return Conflict(kind, names, "", option.need, found)
