"""``format()``: values put into a text.

What may live here: the clauses of format strings, how each value prints, and the check of
a literal format string when compiling. Nothing of the compiler.

Source: cel-go's strings extension, versions 1 and 2, in the locale en_US: fixed-point
numbers have thousands separators, scientific ones superscripts.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from dra_core.cel.problems import BudgetExceeded, EvalProblem
from dra_core.cel.types import Type
from dra_core.cel.values import MapValue, UInt, Value, text_of_double, type_of

MAX_FORMATTED: Final = 1_000_000
"""The longest text that ``format()`` builds, in characters."""

MAX_PRECISION: Final = 1_000
"""The most decimals that are printed; a double has no more than 1,074."""

_DEFAULT_PRECISION: Final = 6
_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.([0-9]*))?(.)?)", re.DOTALL)
_SUPERSCRIPTS: Final = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_THIN: Final = "\u202f"


class Clause(NamedTuple):
    """One ``%``: ``letter`` says how, ``precision`` how exactly; "%" prints itself."""

    letter: str
    precision: int | None


def clauses(pattern: str) -> Iterator[str | Clause]:
    """The parts of a format string. Raises EvalProblem for a clause that is none."""
    last = 0
    for match in _CLAUSE.finditer(pattern):
        yield pattern[last : match.start()]
        last = match.end()
        percent, precision, letter = match.groups()
        if percent:
            yield "%"
        elif letter is None or letter not in _TYPES or precision == "":
            raise EvalProblem(f"{match.group()!r} is no formatting clause")
        else:
            yield Clause(letter, _precision(precision))
    yield pattern[last:]


def _precision(digits: str | None) -> int | None:
    if digits is None:
        return None
    if len(digits) > 4 or int(digits) > MAX_PRECISION:
        raise EvalProblem(f"a precision above {MAX_PRECISION:,}")
    return int(digits)


_ANYTHING: Final = frozenset(
    {
        "list", "map", "int", "uint", "double", "bool", "string", "google.protobuf.Timestamp",
        "bytes", "google.protobuf.Duration", "type", "null_type",
    }
)  # fmt: skip
_TYPES: Final = {
    "s": _ANYTHING,
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "X": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}
"""The types that each clause takes."""


def check_format(pattern: str, types: Sequence[Type]) -> str:
    """What is wrong with a literal format string for arguments of these types, "" if nothing."""
    used = 0
    try:
        for part in clauses(pattern):
            if isinstance(part, str):
                continue
            if used >= len(types):
                return f"there are only {len(types)} arguments"
            name = types[used].name
            if name != "dyn" and name not in _TYPES[part.letter]:
                return f"%{part.letter} does not take a {types[used]}"
            used += 1
    except EvalProblem as problem:
        return problem.problem
    return "" if used == len(types) else f"{len(types)} arguments for {used} clauses"


def format_text(pattern: str, args: tuple[Value, ...]) -> str:
    """The format string with its clauses replaced by the arguments.

    Raises EvalProblem for a clause that is none, a missing argument, or one of a type
    that the clause does not take.
    """
    out = _Output()
    used = 0
    for part in clauses(pattern):
        if isinstance(part, str):
            out.add(part)
            continue
        if used >= len(args):
            raise EvalProblem(f"format() has no argument {used}")
        _FORMATTERS[part.letter](out, args[used], part)
        used += 1
    return out.text()


class _Output:
    """The text so far, never longer than allowed."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0

    def add(self, text: str) -> None:
        # Empty parts count too: lists that share their parts may have very many.
        self._size += len(text) + 1
        if self._size > MAX_FORMATTED:
            raise BudgetExceeded(f"a text has more than {MAX_FORMATTED:,} characters")
        self._parts.append(text)

    def text(self) -> str:
        return "".join(self._parts)


def _wrong(clause: Clause, value: Value) -> EvalProblem:
    return EvalProblem(f"%{clause.letter} does not take a {type_of(value)}")


def _as_text(out: _Output, value: Value, clause: Clause) -> None:
    if value.__class__ is tuple:
        _add_list(out, value, clause)
    elif isinstance(value, MapValue):
        _add_map(out, value, clause)
    else:
        out.add(_plain(value, clause))


def _plain(value: Value, clause: Clause) -> str:
    kind = value.__class__
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is UInt:
        return str(int(value))
    if kind is float:
        return text_of_double(value)
    if kind is bytes:
        try:
            return str(value.decode())
        except UnicodeDecodeError:
            raise EvalProblem("the bytes are not UTF-8") from None
    if value is None:
        return "null"
    name = type_of(value).name
    if kind is Type:
        return str(value.name)
    if name.startswith("google.protobuf."):
        return str(value)
    raise _wrong(clause, value)


def _add_list(out: _Output, items: tuple[Value, ...], clause: Clause) -> None:
    out.add("[")
    for index, item in enumerate(items):
        out.add(", " if index else "")
        _add_literal(out, item, clause)
    out.add("]")


def _add_map(out: _Output, items: MapValue, clause: Clause) -> None:
    printed = []
    for key, value in items.items():
        inner = _Output()
        _add_literal(inner, value, clause)
        text = inner.text()
        out.add("")
        printed.append((_quoted(key, _plain(key, clause)), text))
    out.add("{")
    for index, (key_text, text) in enumerate(sorted(printed, key=lambda pair: pair[0])):
        out.add(f"{', ' if index else ''}{key_text}:{text}")
    out.add("}")


def _add_literal(out: _Output, value: Value, clause: Clause) -> None:
    """A value inside a list or map prints much like a literal of the language."""
    kind = value.__class__
    if kind is tuple or isinstance(value, MapValue):
        _as_text(out, value, clause)
    elif kind is float:
        out.add(_quoted(value, f"{value:.6f}" if math.isfinite(value) else _go_infinite(value)))
    elif type_of(value).name == "google.protobuf.Timestamp":
        out.add(f'timestamp("{value}")')
    elif type_of(value).name == "google.protobuf.Duration":
        out.add(f'duration("{value}")')
    else:
        out.add(_quoted(value, _plain(value, clause)))


def _go_infinite(value: float) -> str:
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")


def _quoted(value: Value, text: str) -> str:
    kind = value.__class__
    if kind is str:
        return _go_quoted(text)
    if kind is bytes:
        return "b" + _go_quoted(text)
    if kind is float and not math.isfinite(value):
        return _go_quoted(text)
    return text


_GO_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
    "\v": "\\v", "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def _go_quoted(text: str) -> str:
    """The text in double quotes; what does not print is escaped."""
    return '"' + "".join(map(_go_escaped, text)) + '"'


def _go_escaped(char: str) -> str:
    if char in _GO_ESCAPES:
        return _GO_ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _decimal(out: _Output, value: Value, clause: Clause) -> None:
    if value.__class__ not in (int, UInt):
        raise _wrong(clause, value)
    out.add(str(int(value)))


_TEXT_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _double(value: Value, clause: Clause) -> float:
    if value.__class__ is float:
        return float(value)
    if value.__class__ is str and value in _TEXT_NUMBERS:
        return _TEXT_NUMBERS[value]
    raise _wrong(clause, value)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else ("∞" if value > 0 else "-∞")


def _fixed(out: _Output, value: Value, clause: Clause) -> None:
    number = _double(value, clause)
    digits = _DEFAULT_PRECISION if clause.precision is None else clause.precision
    out.add(f"{number:,.{digits}f}" if math.isfinite(number) else _not_finite(number))


def _scientific(out: _Output, value: Value, clause: Clause) -> None:
    number = _double(value, clause)
    if not math.isfinite(number):
        out.add(_not_finite(number))
        return
    digits = _DEFAULT_PRECISION if clause.precision is None else clause.precision
    mantissa, _, exponent = f"{number:.{digits}e}".partition("e")
    raised = exponent.removeprefix("+").translate(_SUPERSCRIPTS)
    out.add(f"{mantissa}{_THIN}×{_THIN}10{raised}")


def _in_base(base: str) -> Callable[[_Output, Value, Clause], None]:
    def formatter(out: _Output, value: Value, clause: Clause) -> None:
        if value.__class__ is bool and base == "b":
            out.add("1" if value else "0")
        elif value.__class__ in (int, UInt):
            out.add(format(int(value), base))
        elif base in "xX" and value.__class__ in (str, bytes):
            raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
            out.add(raw.hex().upper() if base == "X" else raw.hex())
        else:
            raise _wrong(clause, value)

    return formatter


_FORMATTERS: Final[dict[str, Callable[[_Output, Value, Clause], None]]] = {
    "s": _as_text,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _in_base("b"),
    "x": _in_base("x"),
    "X": _in_base("X"),
    "o": _in_base("o"),
}
