"""What generated code calls: selection, indexing, iteration.

What may live here: operations on values of unknown types that are no library functions.
All raise EvalProblem.
"""

from collections.abc import Iterable
from typing import NoReturn

from dra_core.cel.problems import EvalProblem
from dra_core.cel.values import MISSING, NONE, MapValue, OptionalValue, UInt, Value, type_of

GUARD_HINT = "guard it with has(), or use .?name.orValue(default)"
"""What to do about something that is not there."""


class Failed:
    """A variable whose value could not be computed; using it is what fails."""

    __slots__ = ("problem",)

    def __init__(self, problem: Exception) -> None:
        self.problem = problem


def use(variable: Value) -> Value:
    """The variable's value."""
    if variable.__class__ is Failed:
        raise variable.problem
    return variable


def find(container: Value, key: Value) -> Value:
    """The element under a key, ``MISSING`` if it is not there."""
    if isinstance(container, MapValue):
        return container.find(key)
    if container.__class__ is tuple:
        index = _index(key)
        return container[index] if 0 <= index < len(container) else MISSING
    return MISSING


def _index(key: Value) -> int:
    kind = key.__class__
    if kind is int or kind is UInt:
        return int(key)
    if kind is float and key.is_integer():
        return int(key)
    raise EvalProblem(f"a list has no index of type {type_of(key)}")


def get(container: Value, key: Value) -> Value:
    """``container[key]`` and ``container.key``, also into an optional value."""
    if container.__class__ is OptionalValue:
        return optional_get(container, key)
    found = find(container, key)
    if found is MISSING:
        raise _missing(container, key)
    return found


def _missing(container: Value, key: Value) -> EvalProblem:
    if container.__class__ is tuple:
        return EvalProblem(f"index {key} is out of range of {len(container)} elements")
    if isinstance(container, MapValue):
        shown = repr(key) if isinstance(key, str) else str(key)
        return EvalProblem(f"no such key: {shown[:100]}", GUARD_HINT)
    return EvalProblem(f"a {type_of(container)} has no elements and no fields")


def optional_get(container: Value, key: Value) -> OptionalValue:
    """``container[?key]`` and ``container.?key``."""
    if container.__class__ is OptionalValue:
        if container.value is MISSING:
            return NONE
        container = container.value
    found = find(container, key)
    return NONE if found is MISSING else OptionalValue(found)


def has(container: Value, key: str) -> bool:
    """``has(container.key)``."""
    return optional_get(container, key).value is not MISSING


def elements(container: Value) -> Iterable[Value]:
    """What a loop with one variable goes over: elements, or keys of a map."""
    if container.__class__ is tuple:
        return container
    if isinstance(container, MapValue):
        return container.keys()
    raise _not_iterable(container)


def pairs(container: Value) -> Iterable[tuple[Value, Value]]:
    """What a loop with two variables goes over: index and element, or key and value."""
    if container.__class__ is tuple:
        return enumerate(container)
    if isinstance(container, MapValue):
        return container.items()
    raise _not_iterable(container)


def _not_iterable(container: Value) -> EvalProblem:
    return EvalProblem(f"a {type_of(container)} is neither a list nor a map")


def not_a_bool(value: Value) -> NoReturn:
    """A condition that is no bool."""
    raise EvalProblem(f"a bool is needed, not a {type_of(value)}")


def need_optional(value: Value) -> OptionalValue:
    """The optional value itself."""
    if value.__class__ is not OptionalValue:
        raise EvalProblem(f"an optional value is needed, not a {type_of(value)}")
    return value


def entry_map(pairs_: Iterable[tuple[Value, Value]]) -> MapValue:
    """The map of pairs. Raises EvalProblem if a key comes twice."""
    listed = list(pairs_)
    result = MapValue(listed)
    if result.size() < len(listed):
        raise EvalProblem("a key comes twice")
    return result


def entries(container: Value) -> Iterable[tuple[Value, Value]]:
    """The entries of a map that ``transformMapEntry`` makes."""
    if not isinstance(container, MapValue):
        raise EvalProblem(f"transformMapEntry() needs a map, not a {type_of(container)}")
    return container.items()
