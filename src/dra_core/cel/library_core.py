"""Operators, conversions, sizes and times: the standard functions of CEL.

What may live here: one row per overload of the standard library and its implementation.

Source: the CEL language definition's list of standard definitions, with the numeric
comparisons across types that the API server enables.
"""

import math
from collections.abc import Callable
from typing import Final

from dra_core.cel import cost
from dra_core.cel.library import Row, function, member
from dra_core.cel.problems import BudgetExceeded, EvalProblem
from dra_core.cel.times import (
    Duration,
    Timestamp,
    duration_from_nanos,
    parse_duration,
    parse_timestamp,
    timestamp_from_unix,
)
from dra_core.cel.types import Type
from dra_core.cel.values import (
    MAX_INT64,
    MAX_UINT64,
    MIN_INT64,
    Budget,
    MapValue,
    UInt,
    Value,
    compare_numbers,
    equal,
    text_of_double,
    type_of,
)

MAX_SIZE: Final = 5_000_000
"""The longest text, list or bytes that an expression may build, in elements. Looking at
half as much again twice would cost more than the limit; the reference has no such limit
of its own, and building texts is cheap in its accounting."""


def grown(size: int) -> int:
    """The size itself. Raises BudgetExceeded if it is beyond ``MAX_SIZE``."""
    if size > MAX_SIZE:
        raise BudgetExceeded(f"a value has more than {MAX_SIZE:,} elements")
    return size


def int64(value: int) -> int:
    """The number itself. Raises EvalProblem beyond 64 bits."""
    if MIN_INT64 <= value <= MAX_INT64:
        return value
    raise EvalProblem("integer overflow")


def uint64(value: int) -> UInt:
    """The number as an unsigned one. Raises EvalProblem beyond 64 bits."""
    if 0 <= value <= MAX_UINT64:
        return UInt(value)
    raise EvalProblem("unsigned integer overflow")


# --- arithmetic ------------------------------------------------------------------------


def _int_div(a: int, b: int) -> int:
    if b == 0:
        raise EvalProblem("division by zero")
    quotient = abs(a) // abs(b)
    return int64(quotient if (a < 0) == (b < 0) else -quotient)


def _int_mod(a: int, b: int) -> int:
    if b == 0:
        raise EvalProblem("modulus by zero")
    if a == MIN_INT64 and b == -1:
        raise EvalProblem("integer overflow")
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _uint_div(a: int, b: int) -> UInt:
    if b == 0:
        raise EvalProblem("division by zero")
    return UInt(int(a) // int(b))


def _uint_mod(a: int, b: int) -> UInt:
    if b == 0:
        raise EvalProblem("modulus by zero")
    return UInt(int(a) % int(b))


def _double_div(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def add_texts(a: str, b: str) -> str:
    """Both texts in a row."""
    grown(len(a) + len(b))
    return a + b


def _add_bytes(a: bytes, b: bytes) -> bytes:
    grown(len(a) + len(b))
    return a + b


def _add_lists(a: tuple[Value, ...], b: tuple[Value, ...]) -> tuple[Value, ...]:
    grown(len(a) + len(b))
    return a + b


_ARITHMETIC: Final = (
    function("_+_", "int, int", "int", lambda a, b: int64(a + b)),
    function("_+_", "uint, uint", "uint", lambda a, b: uint64(int(a) + int(b))),
    function("_+_", "double, double", "double", lambda a, b: a + b),
    function("_+_", "string, string", "string", add_texts, cost=cost.ADD_TEXT, grows=True),
    function("_+_", "bytes, bytes", "bytes", _add_bytes, cost=cost.ADD_TEXT, grows=True),
    function("_+_", "list(A), list(A)", "list(A)", _add_lists, cost=cost.ADD_LIST, grows=True),
    function("_+_", "duration, duration", "duration", lambda a, b: a.plus(b)),
    function("_+_", "timestamp, duration", "timestamp", lambda a, b: a.plus(b)),
    function("_+_", "duration, timestamp", "timestamp", lambda a, b: b.plus(a)),
    function("_-_", "int, int", "int", lambda a, b: int64(a - b)),
    function("_-_", "uint, uint", "uint", lambda a, b: uint64(int(a) - int(b))),
    function("_-_", "double, double", "double", lambda a, b: a - b),
    function("_-_", "duration, duration", "duration", lambda a, b: a.minus(b)),
    function("_-_", "timestamp, duration", "timestamp", lambda a, b: a.minus(b)),
    function("_-_", "timestamp, timestamp", "duration", lambda a, b: a.since(b)),
    function("_*_", "int, int", "int", lambda a, b: int64(a * b)),
    function("_*_", "uint, uint", "uint", lambda a, b: uint64(int(a) * int(b))),
    function("_*_", "double, double", "double", lambda a, b: a * b),
    function("_/_", "int, int", "int", _int_div),
    function("_/_", "uint, uint", "uint", _uint_div),
    function("_/_", "double, double", "double", _double_div),
    function("_%_", "int, int", "int", _int_mod),
    function("_%_", "uint, uint", "uint", _uint_mod),
    function("-_", "int", "int", lambda a: int64(-a)),
    function("-_", "double", "double", lambda a: -a),
    function("!_", "bool", "bool", lambda a: not a),
)


# --- comparison ------------------------------------------------------------------------


def _orders() -> list[Row]:
    """``<`` and its kin for every pair of types that have an order."""
    numbers = ("int", "uint", "double")
    tests: dict[str, Callable[[int], bool]] = {
        "_<_": lambda sign: sign < 0,
        "_<=_": lambda sign: sign <= 0,
        "_>_": lambda sign: sign > 0,
        "_>=_": lambda sign: sign >= 0,
    }
    rows = []
    for name, test in tests.items():
        rows += [function(name, f"{t}, {t}", "bool", _ordered(test)) for t in ("bool", *numbers)]
        rows += [
            function(name, f"{t}, {t}", "bool", _ordered(test), cost=cost.COMPARE)
            for t in ("string", "bytes")
        ]
        rows += [
            function(name, f"{a}, {b}", "bool", _ordered_numbers(test))
            for a in numbers
            for b in numbers
            if a != b
        ]
        rows += [
            function(name, f"{t}, {t}", "bool", _ordered(test)) for t in ("timestamp", "duration")
        ]
    return rows


def _ordered(test: Callable[[int], bool]) -> Callable[[Value, Value], bool]:
    def compare(a: Value, b: Value) -> bool:
        if a < b:
            return test(-1)
        if a > b:
            return test(1)
        # Neither: equal, or one of them is not a number, which is never in order.
        return test(0) and bool(a == b)

    return compare


def _ordered_numbers(test: Callable[[int], bool]) -> Callable[[Value, Value], bool]:
    def compare(a: Value, b: Value) -> bool:
        sign = compare_numbers(a, b)
        return sign is not None and test(sign)

    return compare


def not_equal(a: Value, b: Value, budget: Budget | None = None) -> bool:
    """CEL's ``!=``: true also where ``==`` would fail."""
    return not same(a, b, budget)


def same(a: Value, b: Value, budget: Budget | None = None) -> bool:
    """``==``, but false where that would fail."""
    try:
        return equal(a, b, budget)
    except EvalProblem:
        return False


def in_list(value: Value, items: tuple[Value, ...], budget: Budget | None = None) -> bool:
    """Whether an element equals the value."""
    budget = Budget() if budget is None else budget
    budget.scan(len(items))
    if value.__class__ is str:
        return value in items
    return any(same(item, value, budget) for item in items)


def in_map(key: Value, items: MapValue) -> bool:
    """Whether the map has the key."""
    try:
        return items.contains(key)
    except EvalProblem:
        return False


_RELATIONS: Final = (
    *_orders(),
    function("_==_", "A, A", "bool", equal, cost=cost.EQUAL, visits=True),
    function("_!=_", "A, A", "bool", not_equal, cost=cost.NOT_EQUAL, visits=True),
    function("@in", "A, list(A)", "bool", in_list, cost=cost.IN_LIST, visits=True),
    function("@in", "A, map(A, B)", "bool", in_map),
)


# --- size, type and conversions ----------------------------------------------------------


def _size(value: Value) -> int:
    return len(value)


def _map_size(value: MapValue) -> int:
    return value.size()


def _int_of_double(value: float) -> int:
    # The reference refuses the borders: as a double, 2^63−1 is 2^63.
    if not -(2.0**63) < value < 2.0**63:
        raise EvalProblem("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> UInt:
    if not 0.0 <= value < 2.0**64:
        raise EvalProblem("unsigned integer overflow")
    return UInt(int(value))


def _digits(text: str, what: str) -> int:
    """The number that decimal digits with an optional sign spell."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise EvalProblem(f"{text[:40]!r} is not {what}")
    significant = digits.lstrip("0") or "0"
    number = int(significant) if len(significant) <= 20 else MAX_UINT64 + 1
    return -number if text[:1] == "-" else number


def _int_of_text(text: str) -> int:
    return int64(_digits(text, "an int"))


def _uint_of_text(text: str) -> UInt:
    if text[:1] in ("+", "-"):
        raise EvalProblem(f"{text[:40]!r} is not an unsigned int")
    return uint64(_digits(text, "an unsigned int"))


def _double_of_text(text: str) -> float:
    digits = text.lstrip("+-")
    try:
        if not text.isascii() or text.strip() != text:
            raise ValueError(text)
        hexadecimal = digits[:2] in ("0x", "0X") and "p" in digits.lower()
        value = float.fromhex(text) if hexadecimal else float(text)
    except (ValueError, OverflowError):
        raise EvalProblem(f"{text[:40]!r} is not a double") from None
    if math.isinf(value) and digits[:1] not in ("i", "I"):
        raise EvalProblem(f"{text[:40]!r} is beyond the range of a double")
    return value


_BOOLS: Final = {
    "1": True, "t": True, "T": True, "true": True, "TRUE": True, "True": True,
    "0": False, "f": False, "F": False, "false": False, "FALSE": False, "False": False,
}  # fmt: skip


def _bool_of_text(text: str) -> bool:
    if text not in _BOOLS:
        raise EvalProblem(f"{text[:40]!r} is not a bool")
    return _BOOLS[text]


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvalProblem("the bytes are not UTF-8") from None


def _bytes_of_text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _type(value: Value) -> Type:
    return type_of(value)


_CONVERSIONS: Final = (
    function("size", "string", "int", _size),
    function("size", "bytes", "int", _size),
    function("size", "list(A)", "int", _size),
    function("size", "map(A, B)", "int", _map_size),
    member("size", "string", "int", _size),
    member("size", "bytes", "int", _size),
    member("size", "list(A)", "int", _size),
    member("size", "map(A, B)", "int", _map_size),
    function("type", "A", "type(A)", _type),
    function("dyn", "A", "dyn", lambda a: a),
    function("int", "int", "int", lambda a: a),
    function("int", "uint", "int", lambda a: int64(int(a))),
    function("int", "double", "int", _int_of_double),
    function("int", "string", "int", _int_of_text),
    function("int", "timestamp", "int", lambda a: a.unix),
    function("int", "duration", "int", lambda a: a.nanos),
    function("uint", "uint", "uint", lambda a: a),
    function("uint", "int", "uint", uint64),
    function("uint", "double", "uint", _uint_of_double),
    function("uint", "string", "uint", _uint_of_text),
    function("double", "double", "double", lambda a: a),
    function("double", "int", "double", float),
    function("double", "uint", "double", float),
    function("double", "string", "double", _double_of_text),
    function("bool", "bool", "bool", lambda a: a),
    function("bool", "string", "bool", _bool_of_text),
    function("string", "string", "string", lambda a: a),
    function("string", "bool", "string", lambda a: "true" if a else "false"),
    function("string", "int", "string", str),
    function("string", "uint", "string", lambda a: str(int(a))),
    function("string", "double", "string", text_of_double),
    function("string", "bytes", "string", _text_of_bytes, cost=cost.BYTES_TO_TEXT),
    function("string", "timestamp", "string", str),
    function("string", "duration", "string", str),
    function("bytes", "bytes", "bytes", lambda a: a),
    function("bytes", "string", "bytes", _bytes_of_text, cost=cost.TEXT_TO_BYTES),
    function("duration", "duration", "duration", lambda a: a),
    function("duration", "string", "duration", parse_duration),
    function("duration", "int", "duration", duration_from_nanos),
    function("timestamp", "timestamp", "timestamp", lambda a: a),
    function("timestamp", "string", "timestamp", parse_timestamp),
    function("timestamp", "int", "timestamp", timestamp_from_unix),
)


# --- times -----------------------------------------------------------------------------

_TIMESTAMP_PARTS: Final[dict[str, Callable[..., int]]] = {
    "getFullYear": Timestamp.get_full_year,
    "getMonth": Timestamp.get_month,
    "getDayOfYear": Timestamp.get_day_of_year,
    "getDayOfMonth": Timestamp.get_day_of_month,
    "getDate": Timestamp.get_date,
    "getDayOfWeek": Timestamp.get_day_of_week,
    "getHours": Timestamp.get_hours,
    "getMinutes": Timestamp.get_minutes,
    "getSeconds": Timestamp.get_seconds,
    "getMilliseconds": Timestamp.get_milliseconds,
}
_DURATION_PARTS: Final[dict[str, Callable[..., int]]] = {
    "getHours": Duration.get_hours,
    "getMinutes": Duration.get_minutes,
    "getSeconds": Duration.get_seconds,
    "getMilliseconds": Duration.get_milliseconds,
}

_TIMES: Final = (
    *(member(name, "timestamp", "int", get) for name, get in _TIMESTAMP_PARTS.items()),
    *(member(name, "timestamp, string", "int", get) for name, get in _TIMESTAMP_PARTS.items()),
    *(member(name, "duration", "int", get) for name, get in _DURATION_PARTS.items()),
)

SINGLETONS: Final = frozenset(
    {"_+_", "_-_", "_*_", "_/_", "_%_", "_<_", "_<=_", "_>_", "_>=_", "@in", "_==_", "_!=_",
     "-_", "!_", "size", "matches", "contains", "startsWith", "endsWith"}
)  # fmt: skip
"""Functions with one implementation for all their overloads, see ``Library.eager``."""

ROWS: Final = (*_ARITHMETIC, *_RELATIONS, *_CONVERSIONS, *_TIMES)
