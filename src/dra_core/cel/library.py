"""What a function of the language is: its signatures, costs and implementations.

What may live here: the shape of a row, the look-up by name, and choosing a row at run
time. The rows themselves are in the ``library_*`` modules.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from dra_core.cel.cost import ONE, Cost
from dra_core.cel.problems import EvalProblem
from dra_core.cel.types import Type, has_variables, parse_types
from dra_core.cel.values import Budget, MapValue, UInt, Value, type_of

Implementation = Callable[..., Value]
"""Takes the values of the arguments, the receiver first. Raises EvalProblem or a DraError."""


@attrs.frozen(eq=False)
class Row:
    """One overload of one function.

    ``args`` has the receiver first if ``member``. ``eager`` says how the reference treats
    arguments that failed, which only shows in costs: with two arguments it evaluates both
    and charges for the call (True), or stops at the first failure and does not (False).
    ``grows`` marks functions whose result may be much larger than what they cost, ``visits``
    those that may look at far more elements than they cost; ``run`` takes a ``Budget`` for
    these as one more argument, which may be left out.
    """

    function: str
    args: tuple[Type, ...]
    result: Type
    run: Implementation
    member: bool = False
    cost: Cost = ONE
    eager: bool = True
    grows: bool = False
    visits: bool = False
    generic: bool = attrs.field(init=False)

    @generic.default
    def _is_generic(self) -> bool:
        return any(map(has_variables, (*self.args, self.result)))

    def accepts(self, args: tuple[Value, ...]) -> bool:
        """Whether values have the types of the signature, as far as the reference looks."""
        return len(args) == len(self.args) and all(map(fits, self.args, args))


def member(name: str, args: str, result: str, run: Implementation, **options: Any) -> Row:
    """A row for ``receiver.name(…)``; ``args`` starts with the receiver's type."""
    return Row(name, parse_types(args), parse_types(result)[0], run, member=True, **options)


def function(name: str, args: str, result: str, run: Implementation, **options: Any) -> Row:
    """A row for ``name(…)``."""
    return Row(name, parse_types(args), parse_types(result)[0], run, **options)


Rows = tuple[Row, ...]


class Library:
    """Rows by function name and form."""

    def __init__(self, rows: Iterable[Row], singletons: Iterable[str] = ()) -> None:
        members: dict[str, list[Row]] = {}
        functions: dict[str, list[Row]] = {}
        for row in rows:
            (members if row.member else functions).setdefault(row.function, []).append(row)
        self._members: Mapping[str, Rows] = {name: tuple(r) for name, r in members.items()}
        self._functions: Mapping[str, Rows] = {name: tuple(r) for name, r in functions.items()}
        self._singletons = frozenset(singletons)

    def members(self, name: str) -> Rows:
        """Overloads of a method, ``()`` if there is none of that name."""
        return self._members.get(name, ())

    def functions(self, name: str) -> Rows:
        """Overloads of a function that is no method."""
        return self._functions.get(name, ())

    def knows(self, name: str) -> bool:
        """Whether a function or method has that name."""
        return name in self._members or name in self._functions

    def eager(self, rows: Rows) -> bool:
        """How the reference calls what these rows allow, see ``Row.eager``."""
        if rows[0].function in self._singletons:
            return True
        return len(rows) == 1 and rows[0].eager


def fits(t: Type, value: Value) -> bool:
    """Whether a value has a type at run time. Of a list or map only the first is looked at."""
    name = t.name
    if name in ("dyn", "$"):
        return True
    actual = value.__class__
    if name == "int":
        return actual is int
    if name == "uint":
        return actual is UInt
    if name == "list":
        return actual is tuple and (not value or fits(t.params[0], value[0]))
    if name == "map":
        return isinstance(value, MapValue) and _fits_map(t, value)
    if name == "optional_type":
        return type_of(value).name == name
    return type_of(value).name == name


def _fits_map(t: Type, value: MapValue) -> bool:
    first = next(iter(value.items()), None)
    return first is None or (fits(t.params[0], first[0]) and fits(t.params[1], first[1]))


def dispatch(rows: Rows) -> Implementation:
    """A function that picks the row by the types of the values.

    Raises EvalProblem if none fits.
    """
    if len(rows) == 1:
        return _guarded(rows[0])
    name = rows[0].function

    def call(*args: Value) -> Value:
        for row in rows:
            if row.accepts(args):
                return row.run(*args)
        raise no_overload(name, args)

    return call


def dispatch_within(rows: Rows, budget: Budget, args: tuple[Value, ...]) -> Value:
    """Call the row that fits with a budget for what it looks at."""
    for row in rows:
        if row.accepts(args):
            return row.run(*args, budget) if row.visits else row.run(*args)
    raise no_overload(rows[0].function, args)


def _guarded(row: Row) -> Implementation:
    if all(t.name in ("dyn", "$") for t in row.args):
        return row.run

    def call(*args: Value) -> Value:
        if not row.accepts(args):
            raise no_overload(row.function, args)
        return row.run(*args)

    return call


OPERATORS: Final = {
    "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">=", "_+_": "+", "_-_": "-", "_*_": "*",
    "_/_": "/", "_%_": "%", "@in": "in", "-_": "-", "!_": "!", "_==_": "==", "_!=_": "!=",
    "_[_]": "[]", "_[?_]": "[?]",
}  # fmt: skip
"""How operators are written, for messages."""


def no_overload(name: str, args: Iterable[Value]) -> EvalProblem:
    """The error for values that no signature of a function takes."""
    types = ", ".join(str(type_of(arg)) for arg in args)
    return EvalProblem(f"{OPERATORS.get(name, name)} does not take ({types})")
