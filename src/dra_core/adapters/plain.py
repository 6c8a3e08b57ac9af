"""Objects of client packages as plain JSON, the form that ``dra_core.api.wire`` reads.

What may live here: ``to_plain``, and how each package's objects are taken apart. They are
told by what they have, not by their types, so no package is imported and any version will
do:

* ``kubernetes``: the models have ``attribute_map``, from attributes to JSON names;
* ``kr8s``: an object has what the API server sent as ``raw``;
* ``lightkube``: models and generic resources have ``to_dict``, and classes of resources
  know their kind by ``_api_info``.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from enum import Enum
from math import isfinite
from typing import Any

from dra_core.api.wire_read import Fault, identify, printable
from dra_core.api.wire_versions import (
    CONTEXT_KINDS,
    CORE_KINDS,
    RESOURCE_GROUP,
    SCHEDULING_GROUP,
    VERSIONS,
    is_known,
)
from dra_core.errors import MalformedObjectError

Json = dict[str, Any]

_MODEL_NAME = re.compile(r"(?:Core|Resource)?V(\d+(?:(?:alpha|beta)\d+)?)([A-Z]\w*)")
"""What the ``kubernetes`` package calls a model: ``V1Pod``, ``ResourceV1ResourceClaim``."""

_KINDS = {
    kind.lower(): kind
    for kinds in (*(v.kinds for v in VERSIONS.values()), CONTEXT_KINDS.values(), CORE_KINDS)
    for kind in kinds
} | {"podgroup": "PodGroup"}
"""The kinds that are decoded, by what ``kr8s`` calls those for which it has no class: it
takes their names from the discovery's ``singularName`` and writes them into ``raw``."""


def to_plain(obj: Any) -> Json:
    """The object as ``kubectl get -o json`` prints it. It shares nothing with ``obj``.

    ``obj`` is an object, or a list object, of ``kubernetes``, ``kr8s`` or ``lightkube``, or
    a mapping (which may hold such objects, and the times that YAML knows). Attributes that
    are ``None`` are dropped; a null inside a mapping is data, and kept. Times become text
    in UTC with seconds; microseconds are written only where there are some.

    Items of a list come from the API server without apiVersion and kind. Where the type of
    the object tells them, they are added (``kubernetes``: for kinds that are decoded here).
    What ``kr8s`` calls ``resourceslice`` is a ``ResourceSlice`` again.

    A typed model has forgotten the fields that its version of the package does not know.
    For writing whole objects back, take a mapping (``kr8s``, generic resources of
    ``lightkube``, the body of an answer).

    Raises ``MalformedObjectError`` for what is no object, for a value that JSON does not
    have, and for a time without a time zone. Cost: its size.
    """
    fields = _fields(obj)
    if fields is None:
        problem = f"{_type_name(obj)} is no object of a client package, nor a mapping"
        raise MalformedObjectError("object", "", "", problem)
    missing = _type_of(obj)
    try:
        plain = _members(fields)
    except Fault as fault:
        raise _malformed(fields, missing, fault) from None
    except RecursionError:
        raise _malformed(fields, missing, Fault("is nested too deep")) from None
    plain |= {key: value for key, value in missing.items() if not plain.get(key)}
    if not isinstance(obj, Mapping) and plain.get("kind") in _KINDS:
        plain["kind"] = _KINDS[plain["kind"]]
    return plain


def _malformed(fields: Mapping[str, Any], typed: Json, fault: Fault) -> MalformedObjectError:
    kind = fields.get("kind") or typed.get("kind")
    name = identify({"metadata": _fields(fields.get("metadata"))})
    shown = printable(kind) if isinstance(kind, str) else "object"
    return MalformedObjectError(shown, name, fault.path(), fault.problem)


def _at(piece: str, value: Any) -> Any:
    try:
        return _plain(value)
    except Fault as fault:
        fault.way.append(piece)
        raise


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, float) and not isfinite(value):
        raise Fault(f"JSON has no {value}")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_at(f"[{index}]", entry) for index, entry in enumerate(value)]
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, date):
        return value.isoformat()
    fields = _fields(value)
    if fields is None:
        raise Fault(f"JSON has no {_type_name(value)}")
    return _members(fields)


def _members(fields: Mapping[Any, Any]) -> Json:
    for key in fields:
        if not isinstance(key, str):
            raise Fault(f"has a member whose name is no text: {printable(str(key))}")
    return {key: _at(key, entry) for key, entry in fields.items()}


def _time(moment: datetime) -> str:
    """As the API server writes ``metav1.Time``; ``MicroTime`` where there is a fraction."""
    if moment.tzinfo is None:
        raise Fault("is a time without a time zone")
    try:
        utc = moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise Fault("is a time that UTC has no year for") from None
    return utc.isoformat(timespec="microseconds" if utc.microsecond else "seconds") + "Z"


def _fields(value: Any) -> Mapping[str, Any] | None:
    """The set fields of an object by their JSON names; ``None`` if it is none."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, type):
        return None
    names = getattr(value, "attribute_map", None)
    if isinstance(names, Mapping):
        pairs = ((names[attribute], getattr(value, attribute)) for attribute in names)
        return {name: field for name, field in pairs if field is not None}
    raw = getattr(value, "raw", None)
    if isinstance(raw, Mapping):
        return raw
    to_dict = getattr(value, "to_dict", None)
    found = to_dict() if callable(to_dict) else None
    return found if isinstance(found, Mapping) else None


def _type_of(obj: Any) -> Json:
    """apiVersion and kind, as far as the type of ``obj`` tells."""
    resource = getattr(getattr(type(obj), "_api_info", None), "resource", None)
    if resource is not None:
        return {"apiVersion": resource.api_version, "kind": resource.kind}
    names = getattr(type(obj), "attribute_map", None)
    if isinstance(names, Mapping) and "kind" in names.values():
        return _type_of_model(type(obj).__name__)
    return {}


def _type_of_model(name: str) -> Json:
    match = _MODEL_NAME.fullmatch(name)
    if match is None:
        return {}
    version, kind = f"v{match[1]}", match[2]
    for api_version in (f"{RESOURCE_GROUP}/{version}", f"{SCHEDULING_GROUP}/{version}", version):
        if is_known(api_version, kind):
            return {"apiVersion": api_version, "kind": kind}
    return {}


def _type_name(value: Any) -> str:
    return "null" if value is None else type(value).__name__
