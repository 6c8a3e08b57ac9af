"""Writing JSON: what is left out, and how a version refuses.

What may live here: the primitives that the encoders of ``wire_encode*`` are made of.

A member that is absent is left out: ``None``, ``""``, an empty list or map. Where the
API tells absent from empty, the encoder adds the member itself. What a version
cannot express travels up as ``Fault``, as in reading, and ends as
``NotExpressibleError``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from dra_core.api.wire_read import Fault
from dra_core.errors import NotExpressibleError
from dra_core.values.quantity import Quantity

T = TypeVar("T")
Json = dict[str, Any]


def compact(members: Json) -> Json:
    """Without the members that are ``None``, ``""`` or empty. ``False`` and 0 stay."""
    return {
        key: value
        for key, value in members.items()
        if value is not None and (value.__class__ not in _EMPTY_WHEN_FALSE or value)
    }


_EMPTY_WHEN_FALSE = (str, list, dict)


def given(**members: Any) -> Json:
    """The members that are not ``None``: where empty and absent differ."""
    return {key: value for key, value in members.items() if value is not None}


def write_each(key: str, items: Iterable[T], write: Callable[[T], Any]) -> list[Any]:
    """A list, each entry written by ``write``; ``key`` places faults."""
    result: list[Any] = []
    try:
        for item in items:
            result.append(write(item))  # its length places a fault
    except Fault as fault:
        fault.way += (f"[{len(result)}]", key)
        raise
    return result


def write_quantities(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """A map of quantities in canonical form."""
    return {name: str(amount) for name, amount in amounts.items()}


def written(kind: str, name: str, version: str, write: Callable[[], T]) -> T:
    """What ``write`` returns; its fault becomes ``NotExpressibleError``."""
    try:
        return write()
    except Fault as fault:
        raise NotExpressibleError(kind, name, fault.path(), version, fault.problem) from None
