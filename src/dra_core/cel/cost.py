"""What a call costs, in the reference's units.

What may live here: the cost models of functions, each with what it costs at run time and
what it may cost at most. They are data for the rows of the library; who adds them up is
``dra_core.cel.tracker`` and ``dra_core.cel.estimate``.

Source: the cost tracker and estimator of cel-go and the API server's cost estimator, with
``has()`` free of charge and strict costs, as Kubernetes configures them.
"""

import math
from collections.abc import Callable
from typing import Any, Final

import attrs

from dra_core.cel.formats import Format
from dra_core.cel.network import Cidr, IpAddress
from dra_core.cel.sizes import ONE_ELEMENT, UNKNOWN, Size, scaled
from dra_core.cel.types import Type
from dra_core.cel.urls import Url
from dra_core.cel.values import Budget, MapValue, Value, size_of
from dra_core.cel.versions import SemVer
from dra_core.values.quantity import Quantity

LIMIT: Final = 1_000_000
"""CELSelectorExpressionMaxCost of resource.k8s.io: a selector that costs more fails."""

LIST_COST: Final = 10
MAP_COST: Final = 30

PER_CHARACTER: Final = 0.1
PER_PATTERN_CHARACTER: Final = 0.25

_LARGEST_PATTERN: Final = 128
"""MaxNameFormatRegexSize of the API server: what a format may cost at most, in pattern."""

_MOST_INCLUDED: Final = 48
"""The most elements that ``includes`` looks at."""

Actual = Callable[[tuple[Value, ...], Value], int]
"""Arguments and result to cost; a failed result counts as a value of size 1."""


@attrs.frozen
class Argument:
    """What is known of an argument when compiling.

    ``element`` is the size of a list's elements, ``constant`` the value of a literal.
    """

    size: Size
    type: Type
    element: Size | None = None
    constant: Any = None


Arguments = tuple[Argument, ...]
Most = Callable[[Arguments], tuple[int, Size | None]]
"""Arguments to the most that a call may cost, and the size of its result if that is known."""


def _one(args: Arguments) -> tuple[int, Size | None]:
    return 1, None


@attrs.frozen(eq=False)
class Cost:
    """A cost model. ``resolved`` ones apply at run time only where types single out one
    overload; where they do not, the reference charges 1. ``after`` ones ask for the result,
    so that the work is done before it is paid."""

    actual: Actual
    most: Most = _one
    resolved: bool = False
    after: bool = False


def scan(size: float, factor: float = PER_CHARACTER) -> int:
    """The cost of looking at every character."""
    return math.ceil(size * factor)


def _first(factor: float) -> Actual:
    return lambda args, result: scan(size_of(args[0]), factor)


def _most_first(factor: float, *, keeps_size: bool = False) -> Most:
    def most(args: Arguments) -> tuple[int, Size | None]:
        size = args[0].size
        return scaled(size.max, factor), size if keeps_size else None

    return most


# --- texts and patterns --------------------------------------------------------------------


def _pattern(args: tuple[Value, ...], result: Value) -> int:
    # One is added so that an empty text does not make a long pattern free.
    text = scan(1.0 + size_of(args[0]))
    return text * scan(size_of(args[1]), PER_PATTERN_CHARACTER)


def _most_pattern(args: Arguments) -> tuple[int, Size | None]:
    text = Size(scaled(args[0].size.plus(ONE_ELEMENT).max, PER_CHARACTER))
    pattern = Size(scaled(args[1].size.max, PER_PATTERN_CHARACTER))
    return text.times(pattern).max, Size(0, args[0].size.max)


def _most_contains(args: Arguments) -> tuple[int, Size | None]:
    text, part = (Size(scaled(arg.size.max, PER_CHARACTER)) for arg in args)
    return text.times(part).max, None


def _contains(args: tuple[Value, ...], result: Value) -> int:
    return scan(size_of(args[0])) * scan(size_of(args[1]))


def _most_second(args: Arguments) -> tuple[int, Size | None]:
    return scaled(args[1].size.max, PER_CHARACTER), None


def _sum(args: tuple[Value, ...], result: Value) -> int:
    return scan(size_of(args[0]) + size_of(args[1]))


def _most_sum(args: Arguments) -> tuple[int, Size | None]:
    size = args[0].size.plus(args[1].size)
    return scaled(size.max, PER_CHARACTER), size


def _most_list_sum(args: Arguments) -> tuple[int, Size | None]:
    return 1, args[0].size.plus(args[1].size)


def _most_replace(args: Arguments) -> tuple[int, Size | None]:
    """The result is largest when the smallest parts are replaced by the largest ones."""
    text, old, new = (arg.size for arg in args[:3])
    if old.min == 0:
        most = Size(text.plus(ONE_ELEMENT).max).times(new).plus(text).max
    elif new.max <= old.min:
        most = text.max
    else:
        most = Size(math.ceil(text.max / old.min)).times(new).max
    return scaled(text.max, 2 * PER_CHARACTER), Size(0, most)


def _most_split(args: Arguments) -> tuple[int, Size | None]:
    text = args[0].size
    limit = args[2].constant if len(args) > 2 else None
    # A negative limit is none; the reference takes it for a very large one.
    parts = text.max if limit is None else limit % 2**64
    return scaled(text.max, 2 * PER_CHARACTER), Size(0, parts)


def _most_join(args: Arguments) -> tuple[int, Size | None]:
    items, size = args[0], Size(0, 0)
    if items.type.params:
        size = items.size.times(items.element or UNKNOWN)
    if len(args) > 1:
        separators = Size(max(items.size.min - 1, 0), max(items.size.max - 1, 0))
        size = size.plus(args[1].size.times(separators))
    return scaled(size.max, PER_CHARACTER), size


def _most_bytes(args: Arguments) -> tuple[int, Size | None]:
    size = args[0].size
    return scaled(size.max, PER_CHARACTER), Size(size.min, Size(4).times(size).max)


def _most_text(args: Arguments) -> tuple[int, Size | None]:
    size = args[0].size
    return scaled(size.max, PER_CHARACTER), Size(size.min // 4, size.max)


def _most_quoted(args: Arguments) -> tuple[int, Size | None]:
    size = args[0].size
    return scaled(size.max, PER_CHARACTER), size.plus(size).plus(Size(2))


# --- comparison ------------------------------------------------------------------------------


def _smaller(args: tuple[Value, ...], result: Value) -> int:
    return scan(min(size_of(args[0]), size_of(args[1])))


def _most_smaller(args: Arguments) -> tuple[int, Size | None]:
    return scaled(min(args[0].size.max, args[1].size.max), PER_CHARACTER), None


_UNIT_EQUALITY: Final = frozenset({Quantity, IpAddress, Cidr, Format, Url, SemVer})
_UNIT_TYPES: Final = frozenset(
    {"kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR", "kubernetes.URL"}
)
_LARGEST_FORMAT: Final = 64


def _equal(args: tuple[Value, ...], result: Value) -> int:
    return 1 if args[0].__class__ in _UNIT_EQUALITY else _smaller(args, result)


def _most_equal(args: Arguments) -> tuple[int, Size | None]:
    left, right = args
    if left.type == right.type:
        if left.type.name in _UNIT_TYPES:
            return 1, None
        if left.type.name == "kubernetes.NamedFormat":
            return scaled(_LARGEST_FORMAT, PER_CHARACTER), None
    return _most_smaller(args)


# --- networks --------------------------------------------------------------------------------


def _cidr(args: tuple[Value, ...], result: Value) -> int:
    size, other = size_of(args[0]), args[1]
    # Comparing the address bytes, and reading the other one if it is a text.
    return scan(size + size) + (scan(len(other)) if isinstance(other, str) else 0)


def _cidr_in_cidr(args: tuple[Value, ...], result: Value) -> int:
    return _cidr(args, result) + scan(size_of(args[0])) + 1


_ADDRESS_BYTES: Final = 16


def _most_cidr(args: Arguments) -> tuple[int, Size | None]:
    text = scaled(args[1].size.max, PER_CHARACTER) if args[1].type.name == "string" else 0
    return scan(2 * _ADDRESS_BYTES) + text, None


def _most_cidr_in_cidr(args: Arguments) -> tuple[int, Size | None]:
    return _most_cidr(args)[0] + scan(_ADDRESS_BYTES) + 1, None


# --- lists -----------------------------------------------------------------------------------


def traversal(value: Value, budget: Budget | None = None) -> int:
    """The cost of walking through a value; texts count in bytes here, rounded down.

    Short texts cost nothing, so the walk has a budget.
    """
    budget = Budget() if budget is None else budget
    total = 0
    stack: list[tuple[Value, ...]] = [(value,)]
    while stack and total <= LIMIT:
        for part in stack.pop():
            if isinstance(part, str):
                total += int(len(part.encode("utf-8", "surrogatepass")) * PER_CHARACTER)
            elif isinstance(part, bytes):
                total += int(len(part) * PER_CHARACTER)
            elif part.__class__ is tuple:
                budget.spend(len(part))
                stack.append(part)
            elif isinstance(part, MapValue):
                budget.spend(part.size())
                stack.extend(part.items())
            else:
                total += 1
    return total


def _most_traversal(args: Arguments) -> tuple[int, Size | None]:
    target = args[0]
    if not target.type.params:
        return scaled(target.size.max, PER_CHARACTER), None
    each = Size(1)
    if target.type.params[0].name in ("string", "bytes"):
        each = each.plus(Size(scaled((target.element or UNKNOWN).max, PER_CHARACTER)))
    return target.size.times(each).max, None


def _allocating(factor: float, size: int) -> int:
    return int(size * factor) + 1 + LIST_COST


def _most_allocating(factor: float, size: Size) -> tuple[int, Size]:
    return Size(scaled(size.max, factor)).plus(Size(1 + LIST_COST)).max, size


def _constant(arg: Argument, default: int) -> int:
    value = arg.constant
    return max(value, 0) if value.__class__ is int else default


def _most_range(args: Arguments) -> tuple[int, Size | None]:
    return _most_allocating(1, Size(_constant(args[0], UNKNOWN.max)))


def _most_slice(args: Arguments) -> tuple[int, Size | None]:
    start, end = _constant(args[1], 0), _constant(args[2], args[0].size.max)
    return _most_allocating(1, Size((end - start) % 2**64))


def _most_copy(args: Arguments) -> tuple[int, Size | None]:
    return _most_allocating(1, args[0].size)


def _flatten(args: tuple[Value, ...], result: Value) -> int:
    depth = args[1] if len(args) == 2 and args[1].__class__ is int else 1
    return _allocating(depth, size_of(args[0]))


def _most_flatten(args: Arguments) -> tuple[int, Size | None]:
    depth = _constant(args[1], UNKNOWN.max) if len(args) == 2 else 1
    return _most_allocating(depth, args[0].size)


def _self_compare(items: Value) -> int:
    size = size_of(items)
    texts = items.__class__ is tuple and bool(items) and isinstance(items[0], str | bytes)
    return _allocating(2.0 + PER_CHARACTER if texts else 2.0, size * size)


def _most_distinct(args: Arguments) -> tuple[int, Size | None]:
    return _most_allocating(2.0, args[0].size.times(args[0].size))


def _most_sorted(position: int) -> Most:
    def most(args: Arguments) -> tuple[int, Size | None]:
        keys = args[position]
        element = keys.type.params[0].name if keys.type.params else "dyn"
        texts = element in ("string", "bytes", "dyn")
        factor = 2.0 + PER_CHARACTER if texts else 2.0
        return _most_allocating(factor, keys.size.times(keys.size))

    return most


def _sets(factor: int) -> Actual:
    return lambda args, result: 1 + factor * size_of(args[0]) * size_of(args[1])


def _most_sets(factor: int) -> Most:
    def most(args: Arguments) -> tuple[int, Size | None]:
        pairs = args[0].size.times(args[1].size)
        return Size(scaled(pairs.max, factor)).plus(Size(1)).max, None

    return most


# --- formats -----------------------------------------------------------------------------------


def _validate(args: tuple[Value, ...], result: Value) -> int:
    if not isinstance(args[0], Format):
        return 1
    text = scan(1.0 + size_of(args[1]))
    return text * scan(args[0].max_regex_size, PER_PATTERN_CHARACTER)


def _most_validate(args: Arguments) -> tuple[int, Size | None]:
    text = scaled(args[1].size.max, PER_CHARACTER)
    return scaled(text, _LARGEST_PATTERN * PER_PATTERN_CHARACTER), None


ONE: Final = Cost(lambda args, result: 1)
SCAN: Final = Cost(_first(PER_CHARACTER), _most_first(PER_CHARACTER))
SCAN_KEEP: Final = Cost(_first(PER_CHARACTER), _most_first(PER_CHARACTER, keeps_size=True))
SCAN_TWICE: Final = Cost(_first(2 * PER_CHARACTER), _most_first(2 * PER_CHARACTER))
SCAN_ARGUMENT: Final = Cost(_first(PER_CHARACTER), _most_second, resolved=True)
REPLACE: Final = Cost(_first(2 * PER_CHARACTER), _most_replace)
SPLIT: Final = Cost(_first(2 * PER_CHARACTER), _most_split)
JOIN: Final = Cost(
    lambda args, result: scan(size_of(result), 2 * PER_CHARACTER), _most_join, after=True
)
FORMAT: Final = Cost(lambda args, result: 1, _most_first(PER_CHARACTER))
QUOTE: Final = Cost(lambda args, result: 1, _most_quoted)
FIND: Final = Cost(_pattern, _most_pattern)
MATCHES: Final = Cost(_pattern, lambda args: (_most_pattern(args)[0], None), resolved=True)
CONTAINS: Final = Cost(_contains, _most_contains, resolved=True)
ADD_TEXT: Final = Cost(_sum, _most_sum, resolved=True)
ADD_LIST: Final = Cost(lambda args, result: 1, _most_list_sum)
COMPARE: Final = Cost(_smaller, _most_smaller, resolved=True)
EQUAL: Final = Cost(_equal, _most_equal)
NOT_EQUAL: Final = Cost(_smaller, _most_smaller)
IN_LIST: Final = Cost(
    lambda args, result: size_of(args[1]), lambda args: (args[1].size.max, None), resolved=True
)
TEXT_TO_BYTES: Final = Cost(_first(PER_CHARACTER), _most_bytes, resolved=True)
BYTES_TO_TEXT: Final = Cost(_first(PER_CHARACTER), _most_text, resolved=True)
TRAVERSAL: Final = Cost(lambda args, result: traversal(args[0]), _most_traversal)
INCLUDES: Final = Cost(lambda args, result: 1, lambda args: (_MOST_INCLUDED, None))
CIDR_IP: Final = Cost(_cidr, _most_cidr)
CIDR_CIDR: Final = Cost(_cidr_in_cidr, _most_cidr_in_cidr)
VALIDATE: Final = Cost(_validate, _most_validate)
RANGE: Final = Cost(
    lambda args, result: _allocating(1, size_of(result)), _most_range, resolved=True, after=True
)
SLICE: Final = Cost(
    lambda args, result: _allocating(1, size_of(result)), _most_slice, resolved=True, after=True
)
REVERSE: Final = Cost(
    lambda args, result: _allocating(1, size_of(result)), _most_copy, resolved=True, after=True
)
FLATTEN: Final = Cost(_flatten, _most_flatten, resolved=True)
DISTINCT: Final = Cost(lambda args, result: _self_compare(args[0]), _most_distinct, resolved=True)
SORT: Final = Cost(lambda args, result: _self_compare(args[0]), _most_sorted(0), resolved=True)
SORT_BY: Final = Cost(lambda args, result: _self_compare(args[1]), _most_sorted(1), resolved=True)
SETS: Final = Cost(_sets(1), _most_sets(1), resolved=True)
SETS_TWICE: Final = Cost(_sets(2), _most_sets(2), resolved=True)
