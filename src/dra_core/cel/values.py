"""CEL values as Python holds them, and the operations every part needs.

What may live here: the representation, equality, and the types of values. Functions of
the language's libraries are in the ``library_*`` modules.

=================  =====================================================
CEL                Python
=================  =====================================================
int, uint          int, UInt (both within 64 bits)
double             float
bool, string       bool, str
bytes, null        bytes, None
list, map          tuple, MapValue (or a subclass that looks into a device)
optional           OptionalValue
type               types.Type, without parameters
=================  =====================================================

``1 == True`` in Python, so nothing here compares values of unknown types with ``==``.
"""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from dra_core.cel.formats import Format
from dra_core.cel.network import Cidr, IpAddress
from dra_core.cel.problems import BudgetExceeded, EvalProblem
from dra_core.cel.times import Duration, Timestamp
from dra_core.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    FORMAT,
    INT,
    IP,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    URL,
    Type,
)
from dra_core.cel.urls import Url
from dra_core.cel.versions import SemVer
from dra_core.values.quantity import Quantity

MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)
MAX_UINT64: Final = 2**64 - 1

MAX_VISITED: Final = 250_000
"""How many elements one evaluation may look at without paying for them, see ``Budget``."""

FREE_VISITS: Final = 64
"""A list of so many elements is looked through for nothing: no attribute has more."""

Value = Any
"""A CEL value; the table above says what that can be."""

MISSING: Final = object()
"""What ``MapValue.find`` returns for a key that is not there."""


class UInt(int):
    """An unsigned integer; a type of its own to CEL."""

    __slots__ = ()


class _BoolKey:
    """A bool as a dict key: ``True`` itself would be the same key as ``1``."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


_TRUE: Final = _BoolKey(True)
_FALSE: Final = _BoolKey(False)


class MapValue:
    """A map. Numbers that are equal are one key, whatever their types."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Value, Value]] = ()) -> None:
        self._entries: dict[Any, Value] = {_key(key): value for key, value in entries}

    def find(self, key: Value) -> Value:
        """The value of a key, or ``MISSING``."""
        return self._entries.get(_key(key), MISSING)

    def contains(self, key: Value) -> bool:
        """Whether the key is there (``in``)."""
        return _key(key) in self._entries

    def size(self) -> int:
        """The number of keys."""
        return len(self._entries)

    def keys(self) -> Iterable[Value]:
        """The keys, in order of insertion."""
        return [k.value if type(k) is _BoolKey else k for k in self._entries]

    def items(self) -> Iterable[tuple[Value, Value]]:
        """Keys and values, in order of insertion."""
        return zip(self.keys(), self._entries.values(), strict=True)


def _key(key: Value) -> Any:
    if key is True:
        return _TRUE
    if key is False:
        return _FALSE
    if isinstance(key, str | int | float):
        return key
    raise EvalProblem(f"a map has no keys of type {type_of(key)}")


EMPTY_MAP: Final = MapValue()


class OptionalValue:
    """A value that may be absent; ``NONE`` is the absent one."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


NONE: Final = OptionalValue(MISSING)

_TYPES: Final[Mapping[type, Type]] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
    tuple: Type("list"),
    MapValue: Type("map"),
    OptionalValue: Type("optional_type"),
    Type: TYPE,
    Duration: DURATION,
    Timestamp: TIMESTAMP,
    Quantity: QUANTITY,
    SemVer: SEMVER,
    IpAddress: IP,
    Cidr: CIDR,
    Url: URL,
    Format: FORMAT,
}


def type_of(value: Value) -> Type:
    """The run-time type, without parameters (CEL's ``type``)."""
    found = _TYPES.get(value.__class__)
    return found if found is not None else Type("map")


class Budget:
    """How many elements may still be looked at where looking is not charged by the element.

    Lists that share their parts can be written in a few characters and have more elements
    than could ever be visited.
    """

    __slots__ = ("left",)

    def __init__(self, left: int = MAX_VISITED) -> None:
        self.left = left

    def scan(self, elements: int) -> None:
        """Take some away for looking through a list of that many. Raises BudgetExceeded."""
        if elements > FREE_VISITS:
            self.spend(elements)

    def spend(self, elements: int) -> None:
        """Take some away. Raises BudgetExceeded if there are not that many left."""
        self.left -= elements
        if self.left < 0:
            raise BudgetExceeded(f"it looks at more than {MAX_VISITED:,} elements")


def equal(left: Value, right: Value, budget: Budget | None = None) -> bool:
    """CEL's ``==`` for values of any types.

    Values of different types are unequal, except that numbers compare across types.
    Raises EvalProblem where the left one is a quantity, a version, an address, a URL or
    a format and the right one something else, as the reference does. Inside containers
    that counts as equal: there the reference asks "is it False?", and an error is not.

    Raises BudgetExceeded after too many elements.
    """
    kind = left.__class__
    if kind is str or kind is bool:
        return kind is right.__class__ and bool(left == right)
    found = _compared(left, right)
    if found.__class__ is bool:
        return found
    return _equal_parts(found, Budget() if budget is None else budget)


# The reference's own types answer == only among themselves.
_STRICT: Final = frozenset({Quantity, SemVer, IpAddress, Cidr, Url, Format})
_NUMBERS: Final = frozenset({int, UInt, float})
_LONG: Final = 16
_ATOMS: Final = frozenset({str, bool, int, bytes})

_Pairs = list[tuple[Value, Value]]


def _compared(left: Value, right: Value) -> Any:
    """Whether two values are equal, or the pairs of parts that decide it.

    Raises EvalProblem as ``equal`` does.
    """
    if left is None or right is None:
        return left is right
    kind, other = left.__class__, right.__class__
    if kind in _NUMBERS:
        return other in _NUMBERS and compare_numbers(left, right) == 0
    if kind is tuple:
        if other is not tuple or len(left) != len(right):
            return False
        # Long lists are mostly of one type, which Python compares fast.
        if len(left) > _LONG:
            kinds = set(map(type, left))
            if len(kinds) == 1 and kinds <= _ATOMS and kinds == set(map(type, right)):
                return bool(left == right)
        return list(zip(left, right, strict=True))
    if isinstance(left, MapValue):
        return isinstance(right, MapValue) and _compared_maps(left, right)
    if kind is OptionalValue:
        if other is not OptionalValue or left.value is MISSING or right.value is MISSING:
            return other is OptionalValue and left.value is right.value
        return _compared(left.value, right.value)
    if kind is not other:
        if kind in _STRICT:
            raise EvalProblem(f"a {type_of(left)} cannot be compared with a {type_of(right)}")
        return False
    if kind is Type:
        return left.name == right.name
    return bool(left == right)


def _compared_maps(left: MapValue, right: MapValue) -> bool | _Pairs:
    if left.size() != right.size():
        return False
    pairs = [(value, right.find(key)) for key, value in left.items()]
    return all(found is not MISSING for _, found in pairs) and pairs


def _equal_parts(pairs: _Pairs | bool, budget: Budget) -> bool:
    """Whether no pair is unequal. Goes down with its own stack: values may nest deep."""
    stack = [pairs]
    while stack:
        pairs = stack.pop()
        if isinstance(pairs, bool):
            continue
        budget.spend(len(pairs))
        for left, right in pairs:
            if left.__class__ in _ATOMS and left.__class__ is right.__class__:
                if left != right:
                    return False
                continue
            try:
                found = _compared(left, right)
            except EvalProblem:
                continue
            if found is False:
                return False
            if found is not True:
                stack.append(found)
    return True


def compare_numbers(left: int | float, right: int | float) -> int | None:
    """-1, 0 or 1 for numbers of any types; ``None`` if one of them is not a number (NaN).

    As in the reference, an integer is rounded to a double to meet one.
    """
    if left.__class__ is float or right.__class__ is float:
        left, right = float(left), float(right)
    if left < right:
        return -1
    if left > right:
        return 1
    return 0 if left == right else None


def text_of_double(value: float) -> str:
    """The shortest decimal text, with an exponent below 1e-4 and from 1e6 on (Go's ``%g``)."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        # In this range the shortest text has no exponent in Python either.
        return repr(value).removesuffix(".0")
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not finite")
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    power = exponent + len(rest)
    mantissa = f"{first}.{rest}" if rest else first
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def size_of(value: Value) -> int:
    """How large the reference counts a value in costs: its ``size()``, or 1."""
    kind = value.__class__
    if kind is str or kind is bytes or kind is tuple:
        return len(value)
    if isinstance(value, MapValue):
        return value.size()
    if isinstance(value, Cidr):
        return -(-value.prefix_length // 8)
    if isinstance(value, IpAddress):
        return 4 if value.family == 4 else 16
    return 1
