"""Counting while evaluating: costs, memory, and failures as values.

What may live here: what counted code calls (see ``dra_core.cel.accounting``). The reference
charges for operations on values that failed, so here a failure is a value that travels
like any other.

Source: cel-go's run-time cost tracker.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from dra_core.cel.cost import LIMIT, ONE, TRAVERSAL, Actual, Cost, traversal
from dra_core.cel.library_lists import has_value, optional_value, sort_by
from dra_core.cel.problems import FAULTS, BudgetExceeded, EvalProblem
from dra_core.cel.runtime import elements, entries, entry_map, find, get, pairs
from dra_core.cel.values import (
    MISSING,
    NONE,
    Budget,
    MapValue,
    OptionalValue,
    Value,
    size_of,
    type_of,
)
from dra_core.errors import DraError

MAX_GROWN: Final = 10_000_000
"""How many elements the texts and lists that one evaluation builds may have together. The
reference has no such limit: it charges next to nothing for building them."""


VISITS_PER_UNIT: Final = 10
"""How many elements a unit of cost pays for: what the reference charges for characters."""


class Failure:
    """A value that could not be computed, and the place in the expression."""

    __slots__ = ("offset", "problem")

    def __init__(self, problem: EvalProblem | DraError, offset: int) -> None:
        self.problem = problem
        self.offset = offset


class Callee:
    """A function as one call uses it.

    ``run`` takes the arguments, and a budget if ``visits``. ``cost`` None means 1, ``walks``
    that the first argument is walked through; ``after`` that the cost needs the result.
    """

    __slots__ = ("after", "cost", "grows", "offset", "run", "visits", "walks")

    def __init__(self, run: Callable[..., Value], offset: int, model: Cost = ONE) -> None:
        self.run = run
        self.offset = offset
        self.cost: Actual | None = None if model is ONE else model.actual
        self.after = model.after
        self.walks = model is TRAVERSAL
        self.grows = False
        self.visits = False


class Lazy:
    """A bound variable, computed when it is first used."""

    __slots__ = ("_args", "_function", "_value")

    def __init__(self, function: Callable[..., Value], args: tuple[Any, ...]) -> None:
        self._function = function
        self._args = args
        self._value: Value = MISSING

    def get(self) -> Value:
        """The value."""
        if self._value is MISSING:
            self._value = self._function(*self._args)
        return self._value


class Tracker:
    """What one evaluation has cost so far."""

    __slots__ = ("budget", "cost", "grown")

    def __init__(self) -> None:
        self.cost = 0
        self.grown = 0
        self.budget = Budget()

    def check(self) -> None:
        """Raise BudgetExceeded if the limit is passed."""
        if self.cost > LIMIT:
            raise BudgetExceeded(f"it costs more than {LIMIT:,}")

    def result(self, value: Value) -> bool:
        """The final bool. Raises what failed."""
        self.check()
        if value is True or value is False:
            return bool(value)
        if value.__class__ is not Failure:
            raise EvalProblem(f"a bool is needed, not a {type_of(value)}")
        problem: EvalProblem | DraError = value.problem
        if isinstance(problem, EvalProblem):
            problem.offset = value.offset
            raise problem
        raise EvalProblem(str(problem), "", value.offset)

    # --- parts ---------------------------------------------------------------------------

    def part(self, container: Value, key: Value, offset: int, charge: int) -> Value:
        """``container.key`` and ``container[key]``: charged unless it is not reached."""
        kind = container.__class__
        if kind is Failure:
            return container
        if kind is OptionalValue:
            return self.optional_part(container, key, offset, charge)
        self.cost += charge
        if key.__class__ is Failure:
            return key
        try:
            return get(container, key)
        except FAULTS as problem:
            return Failure(problem, offset)

    def optional_part(self, container: Value, key: Value, offset: int, charge: int) -> Value:
        """``container.?key``: charged if it is there."""
        if container.__class__ is Failure:
            return container
        if container.__class__ is OptionalValue:
            if container.value is MISSING:
                return NONE
            container = container.value
        if key.__class__ is Failure:
            return key
        try:
            found = find(container, key)
        except FAULTS as problem:
            return Failure(problem, offset)
        if found is MISSING:
            return NONE
        self.cost += charge
        return OptionalValue(found)

    def test(self, container: Value, key: str, offset: int) -> Value:
        """``has(container.key)``: charged if it is reached."""
        if container.__class__ is Failure:
            return container
        if container.__class__ is OptionalValue:
            if container.value is MISSING:
                return False
            container = container.value
        self.cost += 1
        try:
            return find(container, key) is not MISSING
        except FAULTS as problem:
            return Failure(problem, offset)

    def reached(self, container: Value) -> bool:
        """Whether a key into it is evaluated at all."""
        if container.__class__ is OptionalValue:
            return container.value is not MISSING
        return container.__class__ is not Failure

    # --- operations ------------------------------------------------------------------------

    def call(self, callee: Callee, args: tuple[Value, ...]) -> Value:
        """A call and its cost. A failed argument is the result, and is paid for."""
        if not callee.after:
            self._charge(callee, args, None)
        for arg in args:
            if arg.__class__ is Failure:
                result: Value = arg
                break
        else:
            result = self._run(callee, args)
        if callee.after:
            self._charge(callee, args, result)
        return result

    def _charge(self, callee: Callee, args: tuple[Value, ...], result: Value) -> None:
        before = self.cost
        if callee.cost is None:
            self.cost += 1
        elif callee.walks:
            self.cost += traversal(args[0], self.budget)
        else:
            self.cost += callee.cost(args, result)
        if callee.visits:
            self.budget.left += VISITS_PER_UNIT * (self.cost - before)
        if self.cost > LIMIT:
            self.check()

    def _run(self, callee: Callee, args: tuple[Value, ...]) -> Value:
        try:
            result = callee.run(*args, self.budget) if callee.visits else callee.run(*args)
        except FAULTS as problem:
            return Failure(problem, callee.offset)
        if callee.grows:
            self.grown += size_of(result)
            if self.grown > MAX_GROWN:
                raise BudgetExceeded(f"it builds more than {MAX_GROWN:,} elements")
        return result

    def free(self, callee: Callee, arg: Value) -> Value:
        """A call that the reference does without calling: a test against constants."""
        if arg.__class__ is Failure:
            return arg
        try:
            return callee.run(arg)
        except FAULTS as problem:
            return Failure(problem, callee.offset)

    def both(self, left: Value, right: Value, offset: int) -> Value:
        """``&&`` of a left side that is not False."""
        if right is False:
            return False
        if left is not True:
            return self.condition(left, offset)
        return True if right is True else self.condition(right, offset)

    def either(self, left: Value, right: Value, offset: int) -> Value:
        """``||`` of a left side that is not True."""
        if right is True:
            return True
        if left is not False:
            return self.condition(left, offset)
        return False if right is False else self.condition(right, offset)

    def condition(self, value: Value, offset: int) -> Failure:
        """What is wrong with a value that should be a bool."""
        if value.__class__ is Failure:
            return value
        return Failure(EvalProblem(f"a bool is needed, not a {type_of(value)}"), offset)

    def optional(self, value: Value, offset: int) -> Value:
        """The value, if it is optional; else what is wrong."""
        if value.__class__ in (OptionalValue, Failure):
            return value
        problem = f"an optional value is needed, not a {type_of(value)}"
        return Failure(EvalProblem(problem), offset)

    # --- literals ----------------------------------------------------------------------------

    def new_list(self, items: Iterable[Value], optional: frozenset[int], offset: int) -> Value:
        """A list from its elements; those at the positions in ``optional`` may be absent."""
        out = []
        for i, item in enumerate(items):
            if i in optional:
                item = self.optional(item, offset)
            if item.__class__ is Failure:
                return item
            if i not in optional:
                out.append(item)
            elif item.value is not MISSING:
                out.append(item.value)
        return tuple(out)

    def new_map(self, parts: tuple[Value, ...], optional: frozenset[int], offset: int) -> Value:
        """A map from keys and values in turn."""
        out = []
        for i in range(0, len(parts), 2):
            key, value = parts[i], parts[i + 1]
            if i // 2 in optional:
                value = self.optional(value, offset)
            for part in (key, value):
                if part.__class__ is Failure:
                    return part
            if i // 2 not in optional:
                out.append((key, value))
            elif value.value is not MISSING:
                out.append((key, value.value))
        try:
            return MapValue(out)
        except EvalProblem as problem:
            return Failure(problem, offset)

    # --- loops -------------------------------------------------------------------------------

    def elements(self, container: Value, offset: int, *, two: bool) -> Value:
        """What a loop goes over, or why it cannot."""
        if container.__class__ is Failure:
            return container
        try:
            return pairs(container) if two else elements(container)
        except EvalProblem as problem:
            return Failure(problem, offset)

    def collected(self, kind: str, values: list[Value], failed: Value, offset: int) -> Value:
        """What a loop has built; ``failed`` is the first failure, if any."""
        if failed is not None:
            return failed
        if kind not in ("transformMap", "transformMapEntry"):
            return tuple(values)
        try:
            if kind == "transformMapEntry":
                return entry_map(pair for value in values for pair in entries(value))
            return entry_map(values)
        except EvalProblem as problem:
            return Failure(problem, offset)


HAS_VALUE: Final = has_value
VALUE: Final = optional_value
SORT: Final = sort_by
