"""Reading decoded JSON with care: types checked, the place of a fault known.

What may live here: the primitives that the decoders of ``wire_core``,
``wire_slices`` and ``wire_claims`` are made of, and nothing that knows an API type.

Rules for all of them. Null equals absent. Any ``Mapping`` is an object, a list or a
tuple is a list. An integer is a JSON integer of 64 bits: ``1.0`` is not one (the API
server refuses it too) and neither is ``true``. A text with a lone surrogate is
refused: it cannot be written in UTF-8, so it would fail later, where nobody knows
where it came from. Null inside a list is refused, because dropping it would move
the entries behind it.

No path is put together while all is well. A fault travels up as ``Fault``; each level
on its way adds its piece, and the top level turns it into ``MalformedObjectError``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import attrs

from dra_core.api.objects import AttributeValue, DeviceCapacity
from dra_core.errors import MalformedObjectError
from dra_core.values.quantity import Quantity

T = TypeVar("T")
Obj = Mapping[str, Any]

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

MAX_SHOWN = 100
"""Characters of a key or name that an error repeats."""


class Fault(Exception):
    """A value of the wrong shape and the way to it, innermost piece first.

    Never leaves the wire modules: ``whole`` turns it into ``MalformedObjectError``.
    """

    def __init__(self, problem: str, *way: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.way = list(reversed(way))

    def path(self) -> str:
        """The way from the object down to the fault: ``spec.devices[3].name``."""
        text = ""
        for piece in reversed(self.way):
            text += piece if piece.startswith("[") or not text else f".{piece}"
        return text


class At:
    """``with At("spec"):`` adds ``spec`` to the way of a fault from inside."""

    __slots__ = ("piece",)

    def __init__(self, piece: str) -> None:
        self.piece = piece

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Fault):
            error.way.append(self.piece)


@attrs.define
class Memo:
    """Values seen during one load. Equal values become one object, made once.

    Keys are the JSON values themselves, so a hit of the same type also proves that the
    value is well formed. ``names`` holds the names of attributes found to be text;
    ``strings``, ``integers`` and ``others`` (by member and value) hold attributes;
    ``capacities`` whole maps of capacities, by name and amount in turn.
    """

    names: set[str] = attrs.field(factory=set)
    strings: dict[Any, AttributeValue] = attrs.field(factory=dict)
    integers: dict[Any, AttributeValue] = attrs.field(factory=dict)
    others: dict[tuple[str, Any], AttributeValue] = attrs.field(factory=dict)
    quantities: dict[str, Quantity] = attrs.field(factory=dict)
    capacities: dict[tuple[str, ...], Mapping[str, DeviceCapacity]] = attrs.field(factory=dict)


@attrs.frozen
class Reader:
    """How one version of the API is read.

    ``basic``: a device's fields sit under ``basic``. ``flat_requests``: a request's
    fields sit in the request instead of under ``exactly``. ``alpha``: v1alpha3, where
    capacities are plain quantities and some fields exist that later went away.
    """

    memo: Memo = attrs.field(factory=Memo)
    basic: bool = False
    flat_requests: bool = False
    alpha: bool = False

    def quantity(self, value: Any) -> Quantity:
        """A quantity from its JSON form, a string or a number."""
        if value.__class__ is str:
            known = self.memo.quantities.get(value)
            if known is None:
                known = self.memo.quantities[value] = _quantity(value)
            return known
        return _quantity(value)

    def quantities(self, obj: Obj, key: str) -> dict[str, Quantity]:
        """A map of quantities; absent is empty."""
        return dict(self.entries(obj, key, self.quantity))

    def entries(self, obj: Obj, key: str, read: Callable[[Any], T]) -> list[tuple[str, T]]:
        """The entries of a map, each value read by ``read``. Null ones are absent."""
        result = []
        for name, value in get_map(obj, key).items():
            with At(key), At(bracket(name)):
                check_text(name)
                if value is not None:
                    result.append((name, read(value)))
        return result


def type_name(value: Any) -> str:
    """What a JSON value is, in the words of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return f"a Python {type(value).__name__}"


def bracket(key: object) -> str:
    """The piece of a path for a key of a map: ``["name"]``, safe to print."""
    return f"[{json.dumps(key[:MAX_SHOWN])}]" if isinstance(key, str) else f"[{type_name(key)}]"


def member(key: object) -> str:
    """The piece of a path for a member of an object: its name where that is one."""
    plain = isinstance(key, str) and key.isascii() and key.isidentifier()
    return str(key)[:MAX_SHOWN] if plain else bracket(key)


def printable(text: str) -> str:
    """``text`` cut to a sensible length and with lone surrogates escaped."""
    return text[:MAX_SHOWN].encode("utf-8", "backslashreplace").decode("utf-8")


def check_text(value: Any) -> str:
    """``value`` if it is a string that UTF-8 can express."""
    if not isinstance(value, str):
        raise Fault(f"must be a string, not {type_name(value)}")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise Fault("contains a lone surrogate, which is no text") from None
    return value


def check_object(value: Any) -> Obj:
    """``value`` if it is an object."""
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 (quick first)
        return value
    raise Fault(f"must be an object, not {type_name(value)}")


def check_integer(value: Any) -> int:
    """``value`` if it is an integer of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        problem = f"must be an integer, not {type_name(value)}"
        raise Fault(problem + " with a fraction or exponent" * isinstance(value, float))
    if not INT64_MIN <= value <= INT64_MAX:
        raise Fault("does not fit into 64 bits")
    return value


def check_boolean(value: Any) -> bool:
    """``value`` if it is a boolean."""
    if isinstance(value, bool):
        return value
    raise Fault(f"must be a boolean, not {type_name(value)}")


def get_text(obj: Obj, key: str) -> str:
    """A string; absent is ``""``."""
    value = obj.get(key)
    if value is None:
        return ""
    if value.__class__ is str and value.isascii():
        return value
    with At(key):
        return check_text(value)


def get_optional_text(obj: Obj, key: str) -> str | None:
    """A string or ``None``."""
    return None if obj.get(key) is None else get_text(obj, key)


def get_integer(obj: Obj, key: str) -> int:
    """An integer; absent is 0."""
    value = obj.get(key)
    if value.__class__ is int and INT64_MIN <= value <= INT64_MAX:
        return value
    return get_optional_integer(obj, key) or 0


def get_optional_integer(obj: Obj, key: str) -> int | None:
    """An integer or ``None``."""
    value = obj.get(key)
    if value is None:
        return None
    with At(key):
        return check_integer(value)


def get_boolean(obj: Obj, key: str) -> bool:
    """A boolean; absent is false."""
    return obj.get(key) is not None and get_optional_boolean(obj, key) is True


def get_optional_boolean(obj: Obj, key: str) -> bool | None:
    """A boolean or ``None``."""
    value = obj.get(key)
    if value is None:
        return None
    with At(key):
        return check_boolean(value)


def get_object(obj: Obj, key: str) -> Obj:
    """An object; absent is an empty one."""
    value = obj.get(key)
    return value if value.__class__ is dict else get_optional_object(obj, key) or {}


def get_optional_object(obj: Obj, key: str) -> Obj | None:
    """An object or ``None``."""
    value = obj.get(key)
    if value is None:
        return None
    with At(key):
        return check_object(value)


get_map = get_object


def get_list(obj: Obj, key: str) -> Sequence[Any]:
    """A list; absent is an empty one. The entries are not looked at."""
    value = obj.get(key)
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    raise Fault(f"must be a list, not {type_name(value)}", key)


def each(obj: Obj, key: str, read: Callable[[Any], T]) -> tuple[T, ...]:
    """A list, each entry read by ``read``."""
    items = get_list(obj, key)
    if not items:
        return ()
    result: list[T] = []
    try:
        for item in items:
            result.append(read(item))  # its length places a fault
    except Fault as fault:
        fault.way += (f"[{len(result)}]", key)
        raise
    return tuple(result)


def each_object(obj: Obj, key: str, read: Callable[[Obj], T]) -> tuple[T, ...]:
    """A list of objects, each read by ``read``."""
    if obj.get(key) is None:
        return ()
    return each(obj, key, lambda item: read(check_object(item)))


def get_texts(obj: Obj, key: str) -> tuple[str, ...]:
    """A list of strings."""
    if obj.get(key) is None:
        return ()
    return each(obj, key, check_text)


def get_text_map(obj: Obj, key: str) -> dict[str, str]:
    """A map of strings. Null entries are absent."""
    result = {}
    for name, value in get_map(obj, key).items():
        with At(key), At(bracket(name)):
            check_text(name)
            if value is not None:
                result[name] = check_text(value)
    return result


def refuse(obj: Obj, keys: tuple[str, ...], problem: str) -> None:
    """A fault at the first of ``keys`` that is set in ``obj``."""
    for key in keys:
        if obj.get(key) is not None:
            raise Fault(problem, key)


def _quantity(value: Any) -> Quantity:
    """A quantity from a string or number, with a fault for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Fault(f"must be a quantity, not {type_name(value)}")
    try:
        return Quantity.from_json(value)
    except ValueError as error:
        problem = getattr(error, "problem", "not a number")
        raise Fault(f"is not a quantity: {problem}") from None


def identify(obj: Obj) -> str:
    """``namespace/name`` of an object that may be malformed, as far as it has them."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    parts = [metadata.get(key) for key in ("namespace", "name")]
    return "/".join(printable(part) for part in parts if isinstance(part, str) and part)


def whole(kind: str, value: Any, read: Callable[[Obj, Reader], T], reader: Reader) -> T:
    """Read a whole object by ``read``; a fault becomes ``MalformedObjectError``."""
    try:
        return read(check_object(value), reader)
    except Fault as fault:
        name = identify(value) if isinstance(value, Mapping) else ""
        raise MalformedObjectError(kind, name, fault.path(), fault.problem) from None
