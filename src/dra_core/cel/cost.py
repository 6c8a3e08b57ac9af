"""What a call costs, in the reference's units.

What may live here: the cost models of functions, each with its run-time side. They are
data for the rows of the library; who adds them up is elsewhere.

Source: the cost tracker of cel-go and the cost estimator of the API server's library,
with ``has()`` free of charge and strict costs, as Kubernetes configures them.
"""

import math
from collections.abc import Callable
from typing import Final

import attrs

from dra_core.cel.formats import Format
from dra_core.cel.network import Cidr, IpAddress
from dra_core.cel.urls import Url
from dra_core.cel.values import MapValue, Value, size_of
from dra_core.cel.versions import SemVer
from dra_core.values.quantity import Quantity

LIMIT: Final = 1_000_000
"""CELSelectorExpressionMaxCost of resource.k8s.io: a selector that costs more fails."""

IDENT_COST: Final = 1
LIST_COST: Final = 10
MAP_COST: Final = 30

PER_CHARACTER: Final = 0.1
PER_PATTERN_CHARACTER: Final = 0.25

Actual = Callable[[tuple[Value, ...], Value], int]
"""Arguments and result to cost; a failed result counts as a value of size 1."""


@attrs.frozen(eq=False)
class Cost:
    """A cost model. ``resolved`` ones apply only where types single out one overload;
    where they do not, the reference charges 1."""

    actual: Actual
    resolved: bool = False


def scan(size: float, factor: float = PER_CHARACTER) -> int:
    """The cost of looking at every character."""
    return math.ceil(size * factor)


def _first(factor: float) -> Actual:
    return lambda args, result: scan(size_of(args[0]), factor)


def _pattern(args: tuple[Value, ...], result: Value) -> int:
    # One is added so that an empty text does not make a long pattern free.
    text = scan(1.0 + size_of(args[0]))
    return text * scan(size_of(args[1]), PER_PATTERN_CHARACTER)


def _contains(args: tuple[Value, ...], result: Value) -> int:
    return scan(size_of(args[0])) * scan(size_of(args[1]))


def _sum(args: tuple[Value, ...], result: Value) -> int:
    return scan(size_of(args[0]) + size_of(args[1]))


def _smaller(args: tuple[Value, ...], result: Value) -> int:
    return scan(min(size_of(args[0]), size_of(args[1])))


_UNIT_EQUALITY: Final = frozenset({Quantity, IpAddress, Cidr, Format, Url, SemVer})


def _equal(args: tuple[Value, ...], result: Value) -> int:
    return 1 if args[0].__class__ in _UNIT_EQUALITY else _smaller(args, result)


def _cidr(args: tuple[Value, ...], result: Value) -> int:
    size, other = size_of(args[0]), args[1]
    # Comparing the address bytes, and reading the other one if it is a text.
    return scan(size + size) + (scan(len(other)) if isinstance(other, str) else 0)


def _cidr_in_cidr(args: tuple[Value, ...], result: Value) -> int:
    return _cidr(args, result) + scan(size_of(args[0])) + 1


def traversal(value: Value) -> int:
    """The cost of walking through a value; texts count in bytes here, rounded down."""
    total = 0
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            total += int(len(value.encode("utf-8", "surrogatepass")) * PER_CHARACTER)
        elif isinstance(value, bytes):
            total += int(len(value) * PER_CHARACTER)
        elif isinstance(value, tuple) and value.__class__ is tuple:
            stack.extend(value)
        elif isinstance(value, MapValue):
            for pair in value.items():
                stack.extend(pair)
        else:
            total += 1
        if total > LIMIT or len(stack) > 10 * LIMIT:
            break
    return total


def _validate(args: tuple[Value, ...], result: Value) -> int:
    if not isinstance(args[0], Format):
        return 1
    text = scan(1.0 + size_of(args[1]))
    return text * scan(args[0].max_regex_size, PER_PATTERN_CHARACTER)


def _allocating(factor: float, size: int) -> int:
    return int(size * factor) + 1 + LIST_COST


def _flatten(args: tuple[Value, ...], result: Value) -> int:
    depth = args[1] if len(args) == 2 else 1
    return _allocating(depth, size_of(args[0]))


def _self_compare(items: Value) -> int:
    size = size_of(items)
    texts = isinstance(items, tuple) and bool(items) and isinstance(items[0], str | bytes)
    return _allocating(2.0 + PER_CHARACTER if texts else 2.0, size * size)


def _sets(factor: int) -> Actual:
    return lambda args, result: 1 + factor * size_of(args[0]) * size_of(args[1])


ONE: Final = Cost(lambda args, result: 1)
SCAN: Final = Cost(_first(PER_CHARACTER))
SCAN_TWICE: Final = Cost(_first(2 * PER_CHARACTER))
SCAN_RESOLVED: Final = Cost(_first(PER_CHARACTER), resolved=True)
SCAN_ARGUMENT: Final = SCAN_RESOLVED
JOIN: Final = Cost(lambda args, result: scan(size_of(result), 2 * PER_CHARACTER))
FIND: Final = Cost(_pattern)
MATCHES: Final = Cost(_pattern, resolved=True)
CONTAINS: Final = Cost(_contains, resolved=True)
ADD_TEXT: Final = Cost(_sum, resolved=True)
ADD_LIST: Final = ONE
COMPARE: Final = Cost(_smaller, resolved=True)
EQUAL: Final = Cost(_equal)
NOT_EQUAL: Final = Cost(_smaller)
IN_LIST: Final = Cost(lambda args, result: size_of(args[1]), resolved=True)
TEXT_TO_BYTES: Final = SCAN_RESOLVED
BYTES_TO_TEXT: Final = SCAN_RESOLVED
TRAVERSAL: Final = Cost(lambda args, result: traversal(args[0]))
CIDR_IP: Final = Cost(_cidr)
CIDR_CIDR: Final = Cost(_cidr_in_cidr)
VALIDATE: Final = Cost(_validate)
NEW_LIST: Final = Cost(lambda args, result: _allocating(1, size_of(result)), resolved=True)
FLATTEN: Final = Cost(_flatten, resolved=True)
SELF_COMPARE: Final = Cost(lambda args, result: _self_compare(args[0]), resolved=True)
SORT_BY: Final = Cost(lambda args, result: _self_compare(args[1]), resolved=True)
SETS: Final = Cost(_sets(1), resolved=True)
SETS_TWICE: Final = Cost(_sets(2), resolved=True)
