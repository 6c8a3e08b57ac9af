"""Lists, sets and optional values.

What may live here: one row per function of these libraries and its implementation.

Source: the API server's lists library with ``includes`` (1.36), cel-go's lists extension
version 3 (1.34), sets, and optional types version 2.
"""

from collections.abc import Callable, Iterable
from typing import Final

from dra_core.cel import cost
from dra_core.cel.library import Row, function, member, no_overload
from dra_core.cel.library_core import in_list, int64, same, uint64
from dra_core.cel.problems import BudgetExceeded, EvalProblem
from dra_core.cel.times import Duration, Timestamp
from dra_core.cel.values import (
    MISSING,
    NONE,
    Budget,
    MapValue,
    OptionalValue,
    UInt,
    Value,
)

MAX_INCLUDES: Final = 48
"""``includes`` looks at that many elements (the most values an attribute may have)."""

MAX_FLATTENED: Final = 1_000_000
"""``flatten`` visits that many elements; the reference charges for the outermost ones only."""

List = tuple[Value, ...]

_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_COMPARABLE_CLASSES: Final = frozenset({int, UInt, float, bool, Duration, Timestamp, str, bytes})
_SUMMABLE: Final = ("int", "uint", "double", "duration")


# --- the API server's lists ---------------------------------------------------------------


def _is_sorted(items: List) -> bool:
    return all(not items[i] > items[i + 1] for i in range(len(items) - 1))


def _check_same_class(items: List) -> None:
    kinds = {item.__class__ for item in items}
    if len(kinds) > 1 or not kinds <= _COMPARABLE_CLASSES:
        raise EvalProblem("the elements have no order among them")


def _ordered(run: Callable[[List], Value]) -> Callable[[List], Value]:
    def call(items: List) -> Value:
        _check_same_class(items)
        return run(items)

    return call


def _max(items: List) -> Value:
    if not items:
        raise EvalProblem("max() of an empty list")
    best = items[0]
    for item in items:
        best = item if best < item else best
    return best


def _min(items: List) -> Value:
    if not items:
        raise EvalProblem("min() of an empty list")
    best = items[0]
    for item in items:
        best = item if best > item else best
    return best


def _sum_ints(items: List) -> int:
    total = 0
    for item in items:
        total = int64(total + item)
    return total


def _sum_uints(items: List) -> UInt:
    total = UInt(0)
    for item in items:
        total = uint64(int(total) + int(item))
    return total


def _sum_doubles(items: List) -> float:
    total = 0.0
    for item in items:
        total += item
    return total


def _sum_durations(items: List) -> Duration:
    total = Duration(0)
    for item in items:
        total = total.plus(item)
    return total


_SUMS: Final[dict[str, Callable[[List], Value]]] = {
    "int": _sum_ints,
    "uint": _sum_uints,
    "double": _sum_doubles,
    "duration": _sum_durations,
}


def _index_of(items: List, value: Value, budget: Budget | None = None) -> int:
    budget = Budget() if budget is None else budget
    budget.scan(len(items))
    return next((i for i, item in enumerate(items) if same(item, value, budget)), -1)


def _last_index_of(items: List, value: Value, budget: Budget | None = None) -> int:
    found = _index_of(items[::-1], value, budget)
    return found if found < 0 else len(items) - 1 - found


def includes(target: Value, value: Value, budget: Budget | None = None) -> bool:
    """Whether a list has an element, or whether a value that is no list equals it."""
    if target.__class__ is not tuple:
        return same(target, value, budget)
    for item in target[:MAX_INCLUDES]:
        if same(item, value, budget):
            return True
    if len(target) > MAX_INCLUDES:
        raise EvalProblem(f"includes() looks at no more than {MAX_INCLUDES} elements")
    return False


def _kubernetes_lists() -> Iterable[Row]:
    for t in _COMPARABLE:
        yield member("isSorted", f"list({t})", "bool", _ordered(_is_sorted), cost=cost.TRAVERSAL)
        yield member("max", f"list({t})", t, _ordered(_max), cost=cost.TRAVERSAL)
        yield member("min", f"list({t})", t, _ordered(_min), cost=cost.TRAVERSAL)
    for t in _SUMMABLE:
        yield member("sum", f"list({t})", t, _ordered(_SUMS[t]), cost=cost.TRAVERSAL)
    yield member("indexOf", "list(A), A", "int", _index_of, cost=cost.TRAVERSAL, visits=True)
    yield member(
        "lastIndexOf", "list(A), A", "int", _last_index_of, cost=cost.TRAVERSAL, visits=True
    )
    yield member("includes", "dyn, dyn", "bool", includes, cost=cost.INCLUDES, visits=True)


# --- cel-go's lists --------------------------------------------------------------------------


def _range(count: int) -> List:
    if count < 0:
        raise EvalProblem(f"lists.range({count}): a list has no negative size")
    # More is beyond the cost limit, and should not be built to find that out.
    if count > cost.LIMIT:
        raise BudgetExceeded(f"lists.range() of more than {cost.LIMIT:,}")
    return tuple(range(count))


def _slice(items: List, start: int, end: int) -> List:
    if not 0 <= start <= end <= len(items):
        raise EvalProblem(f"there is no slice from {start} to {end}")
    return items[start:end]


def _flatten(items: List, depth: int = 1) -> List:
    if depth < 0:
        raise EvalProblem("flatten() needs a depth that is not negative")
    out: list[Value] = []
    stack = [(iter(items), depth)]
    steps = 0
    while stack:
        iterator, left = stack[-1]
        item = next(iterator, MISSING)
        steps += 1
        if steps > MAX_FLATTENED:
            raise BudgetExceeded(f"flatten() visits more than {MAX_FLATTENED:,} elements")
        if item is MISSING:
            stack.pop()
        elif item.__class__ is tuple and left > 0:
            stack.append((iter(item), left - 1))
        else:
            out.append(item)
    return tuple(out)


def _sort(items: List) -> List:
    return sort_by(items, items)


def sort_by(items: List, keys: List) -> List:
    """The elements in the order of their keys, equal ones in the order given."""
    if items.__class__ is not tuple:
        raise no_overload("sortBy", (items,))  # its type was not known when it was compiled
    _check_same_class(keys)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return tuple(items[index] for index in order)


def _distinct(items: List, budget: Budget | None = None) -> List:
    if all(item.__class__ is str for item in items):
        return tuple(dict.fromkeys(items))
    budget = Budget() if budget is None else budget
    out: list[Value] = []
    for item in items:
        budget.spend(len(out))
        if not any(same(item, seen, budget) for seen in out):
            out.append(item)
    return tuple(out)


def _language_lists() -> Iterable[Row]:
    yield function("lists.range", "int", "list(int)", _range, cost=cost.RANGE)
    yield member("slice", "list(T), int, int", "list(T)", _slice, eager=False, cost=cost.SLICE)
    yield member("flatten", "list(list(T))", "list(T)", _flatten, cost=cost.FLATTEN, grows=True)
    yield member("flatten", "list(dyn), int", "list(dyn)", _flatten, cost=cost.FLATTEN, grows=True)
    yield member("reverse", "list(T)", "list(T)", lambda a: a[::-1], cost=cost.REVERSE)
    yield member("distinct", "list(T)", "list(T)", _distinct, cost=cost.DISTINCT, visits=True)
    for t in _COMPARABLE:
        yield member("sort", f"list({t})", f"list({t})", _sort, cost=cost.SORT)
    for t in _COMPARABLE:
        yield member("@sortBy", f"list(T), list({t})", "list(T)", sort_by, cost=cost.SORT_BY)
    yield member("first", "list(T)", "optional(T)", lambda a: OptionalValue(a[0]) if a else NONE)
    yield member("last", "list(T)", "optional(T)", lambda a: OptionalValue(a[-1]) if a else NONE)


# --- sets ------------------------------------------------------------------------------------


def _contains(items: List, others: List, budget: Budget | None = None) -> bool:
    budget = Budget() if budget is None else budget
    return all(in_list(other, items, budget) for other in others)


def _equivalent(items: List, others: List, budget: Budget | None = None) -> bool:
    return _contains(items, others, budget) and _contains(others, items, budget)


def _intersects(items: List, others: List, budget: Budget | None = None) -> bool:
    budget = Budget() if budget is None else budget
    return any(in_list(item, others, budget) for item in items)


# --- optional values ---------------------------------------------------------------------------


def optional_value(value: OptionalValue) -> Value:
    """What is in it. Raises EvalProblem if nothing is."""
    if value.value is MISSING:
        raise EvalProblem("optional.none() has no value", "use orValue() to give one")
    return value.value


def has_value(value: OptionalValue) -> bool:
    """Whether something is in it."""
    return value.value is not MISSING


def _of_non_zero(value: Value) -> OptionalValue:
    return NONE if _is_zero(value) else OptionalValue(value)


def _is_zero(value: Value) -> bool:
    kind = value.__class__
    if value is None or kind is str or kind is bytes or kind is tuple:
        return not value
    if isinstance(value, MapValue):
        return value.size() == 0
    if kind is OptionalValue:
        return value.value is MISSING
    if kind is Duration:
        return bool(value.nanos == 0)
    if kind is Timestamp:
        return bool(value.unix == 0 and value.nanos == 0)
    return kind in (int, UInt, float, bool) and not value


def _set(name: str, run: Callable[..., bool], model: cost.Cost) -> Row:
    return function(f"sets.{name}", "list(T), list(T)", "bool", run, cost=model, visits=True)


_SETS: Final = (
    _set("contains", _contains, cost.SETS),
    _set("equivalent", _equivalent, cost.SETS_TWICE),
    _set("intersects", _intersects, cost.SETS),
)

_OPTIONALS: Final = (
    function("optional.of", "V", "optional(V)", OptionalValue),
    function("optional.ofNonZeroValue", "V", "optional(V)", _of_non_zero),
    function("optional.none", "", "optional(V)", lambda: NONE),
    member("value", "optional(V)", "V", optional_value),
    member("hasValue", "optional(V)", "bool", has_value),
)

# The compiler calls these itself; the rows tell the checker their types.
_SHAPES: Final = (
    member("or", "optional(V), optional(V)", "optional(V)", lambda a, b: b),
    member("orValue", "optional(V), V", "V", lambda a, b: b),
    function("_[_]", "list(A), int", "A", lambda a, b: a),
    function("_[_]", "map(A, B), A", "B", lambda a, b: a),
    function("_[_]", "optional(list(V)), int", "optional(V)", lambda a, b: a),
    function("_[_]", "optional(map(K, V)), K", "optional(V)", lambda a, b: a),
    function("_[?_]", "list(V), int", "optional(V)", lambda a, b: a),
    function("_[?_]", "optional(list(V)), int", "optional(V)", lambda a, b: a),
    function("_[?_]", "map(K, V), K", "optional(V)", lambda a, b: a),
    function("_[?_]", "optional(map(K, V)), K", "optional(V)", lambda a, b: a),
)

ROWS: Final = (*_kubernetes_lists(), *_language_lists(), *_SETS, *_OPTIONALS, *_SHAPES)
