"""JSON of any shape: checked and copied to the bottom, without recursion.

What may live here: what is done to values whose fields nobody here knows, such as the
parameters of a driver.
"""

import math
from collections.abc import Mapping
from typing import Any

from dra_core.api.wire_read import At, Fault, Obj, check_text, type_name

MAX_DEPTH = 200
"""Levels of nesting accepted in free-form JSON (opaque parameters, device data).

The API server takes 10,000, but ``json.dumps``, ``copy.deepcopy`` and comparison give
up before 1,000 with ``RecursionError``, wherever the value goes next.
"""

MAX_VALUES = 1_000_000
"""Values accepted in free-form JSON. No object that etcd stores has as many; what has
more is made of aliases (YAML) that multiply."""

MAX_INTEGER_BITS = 13_000
"""Largest integer in free-form JSON; ``json.dumps`` refuses more than 4,300 digits."""


def free_json(obj: Obj, key: str) -> Any:
    """A copy of a field that may hold any JSON, checked to the bottom; absent is ``None``.

    No recursion. Raises a fault for what JSON cannot express (objects of Python,
    keys that are no strings, NaN), lone surrogates, and what passes the limits above.
    """
    value = obj.get(key)
    stack: list[tuple[Any, int]] = [(value, 0)]
    count = 0
    with At(key):
        while stack:
            item, depth = stack.pop()
            count += 1
            if depth > MAX_DEPTH:
                raise Fault(f"is nested deeper than {MAX_DEPTH} levels")
            if count > MAX_VALUES:
                raise Fault(f"has more than {MAX_VALUES:,} values")
            if isinstance(item, Mapping):
                for name in item:
                    check_text(name)
                stack.extend((child, depth + 1) for child in item.values())
            elif isinstance(item, list | tuple):
                stack.extend((child, depth + 1) for child in item)
            else:
                _check_scalar(item)
    return copy_json(value)


def _check_scalar(value: Any) -> None:
    """A fault unless ``value`` is null, a boolean, a string or a number of JSON."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise Fault("contains a number that is too large")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise Fault("contains a number that JSON cannot express")
    elif isinstance(value, str):
        check_text(value)
    else:
        raise Fault(f"contains {type_name(value)}, which JSON cannot express")


def copy_json(value: Any) -> Any:
    """A deep copy of JSON in plain dicts and lists, without recursion."""
    holder: list[Any] = [value]
    todo: list[tuple[Any, Any]] = [(holder, 0)]
    while todo:
        container, key = todo.pop()
        item = container[key]
        if isinstance(item, dict | Mapping):
            copy: Any = dict(item)
            todo.extend((copy, name) for name in copy)
        elif isinstance(item, list | tuple):
            copy = list(item)
            todo.extend((copy, index) for index in range(len(copy)))
        else:
            continue
        container[key] = copy
    return holder[0]
