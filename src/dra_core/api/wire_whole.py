"""Whole objects: what is modelled from the object, everything else as it came.

What may live here: ``encode``, which states a whole object in any version, and
``encode_whole``, which writes it back into the JSON that it came in, for updates that
must not lose fields unknown to this library.

How ``encode_whole`` works. Three trees: ``raw`` as it came; ``before``, what decoding
understood of it, encoded; ``after``, the object now, encoded. What is equal in
``before`` and ``after`` stays as it is in ``raw``, down to the spelling of a quantity or
an explicit null; only the differences are carried over. Entries of lists are paired by
value first, then by the keys that the API merges them by. No field is listed here, so
none can be forgotten.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dra_core.api.core import Node, Pod, PodGroup
from dra_core.api.objects import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dra_core.api.scheduling_context import (
    PodSchedulingContext,
    write_pod_scheduling_context,
)
from dra_core.api.wire_decode import ApiObject, Decoder
from dra_core.api.wire_encode import (
    write_device_class,
    write_resource_claim,
    write_resource_claim_template,
)
from dra_core.api.wire_encode_core import write_node, write_pod, write_pod_group
from dra_core.api.wire_encode_slices import write_device_taint_rule, write_resource_slice
from dra_core.api.wire_free import copy_json
from dra_core.api.wire_versions import (
    CONTEXT_KINDS,
    RESOURCE_GROUP,
    SCHEDULING_GROUP,
    Version,
    split_api_version,
    version_named,
)
from dra_core.api.wire_write import Json, written
from dra_core.errors import NotExpressibleError

_WRITERS: Final[Mapping[type, Callable[[Any, Version], Json]]] = {
    ResourceSlice: write_resource_slice,
    DeviceClass: write_device_class,
    ResourceClaim: write_resource_claim,
    ResourceClaimTemplate: write_resource_claim_template,
    DeviceTaintRule: write_device_taint_rule,
}
_CORE_WRITERS: Final[Mapping[type, Callable[[Any], Json]]] = {Node: write_node, Pod: write_pod}

_PARTS: Final = ("metadata", "spec", "status")
"""Members that a whole object always has, to the API: absent and empty are the same."""

_MERGE_KEYS: Final[tuple[tuple[str, ...], ...]] = (
    ("uid",),
    ("request", "driver", "pool", "device", "shareID"),
    ("driver", "pool", "device", "shareID"),
    ("name",),
    ("counterSet",),
    ("type",),
    ("key", "effect"),
    ("containerName", "resourceName"),
    ("driverName",),
)
"""What tells the entries of a list apart; the first of which an entry has a member."""


def encode(obj: ApiObject, version: str = "v1") -> Json:
    """The whole object as JSON of ``version``, with apiVersion and kind.

    Only what the object has in its fields: ``raw`` plays no part, see ``encode_whole``.
    A PodSchedulingContext is a PodScheduling in v1alpha1.
    Nothing of the result is shared with ``obj``. For a Pod or Node the version is v1,
    for a PodGroup whatever the caller's cluster serves.

    Raises ``NotExpressibleError`` for what the version has no place for, the object's
    kind included, and ``ValueError`` for a version that is none. Cost: linear.
    """
    kind = type(obj).__name__
    if isinstance(obj, PodGroup):
        header = {"apiVersion": f"{SCHEDULING_GROUP}/{version}", "kind": kind}
        return header | write_pod_group(obj)
    if isinstance(obj, PodSchedulingContext):
        header = {"apiVersion": f"{RESOURCE_GROUP}/{version}", "kind": _context_kind(obj, version)}
        return header | write_pod_scheduling_context(obj)
    core = _CORE_WRITERS.get(type(obj))
    if core is not None:
        if version != "v1":
            raise ValueError(f"{kind} has no version {version!r}; known: v1")
        return {"apiVersion": "v1", "kind": kind} | core(obj)
    target = version_named(version)
    name = str(obj.metadata.key)
    if kind not in target.kinds:
        raise _no_such_kind(kind, name, version)
    write = _WRITERS[type(obj)]
    body = written(kind, name, version, lambda: write(obj, target))
    return {"apiVersion": f"{RESOURCE_GROUP}/{version}", "kind": kind} | body


def _context_kind(obj: PodSchedulingContext, version: str) -> str:
    kind = CONTEXT_KINDS.get(version)
    if kind is None:
        name = version_named(version).name
        raise _no_such_kind(type(obj).__name__, str(obj.metadata.key), name)
    return kind


def _no_such_kind(kind: str, name: str, version: str) -> NotExpressibleError:
    return NotExpressibleError(kind, name, "", version, "the version does not have this kind")


def encode_whole(obj: ApiObject, version: str | None = None) -> Json:
    """The object as JSON of the version it came in, unknown fields included.

    ``obj.raw`` with everything changed that differs between it and ``obj``; without
    ``raw`` the same as ``encode``. ``version`` is the one that ``raw`` is in, for
    objects that lack apiVersion; by default what that says, else v1. The
    result is a copy: neither ``raw`` nor ``obj`` changes. An entry of a list that was
    changed keeps its unknown fields if its name (or UID, key, …) is the same.

    Raises what ``encode`` raises, and ``MalformedObjectError`` if ``raw`` no longer
    decodes. Cost: linear in the sizes, times the depth of nesting.
    """
    raw = obj.raw
    if raw is None:
        return encode(obj, version or "v1")
    if version is None:
        version = split_api_version(str(raw.get("apiVersion") or "v1"))[1]
    after = encode(obj, version)
    original = Decoder().decode({**raw, "apiVersion": after["apiVersion"], "kind": after["kind"]})
    before = encode(original, version)
    result = carry_over(raw, before, after)
    return {"apiVersion": after["apiVersion"], "kind": after["kind"]} | result


def carry_over(raw: Mapping[str, Any], before: Json, after: Json) -> Json:
    """A copy of ``raw`` with what differs between ``before`` and ``after``.

    ``before`` is what was understood of ``raw``, ``after`` what the object is now, both as
    encoded. For kinds that are encoded elsewhere. Cost: as of ``encode_whole``.
    """
    for part in _PARTS:
        # Empty or new to us is not empty or new: raw may have unknown members there.
        if isinstance(raw.get(part), Mapping):
            before = {part: {}} | before
            after = {part: {}} | after
    result: Json = _merge(copy_json(raw), before, after)
    return result


def _merge(raw: Any, before: Any, after: Any) -> Any:
    """``raw`` with the differences between ``before`` and ``after`` carried over."""
    if _text(before) == _text(after):
        return raw
    if isinstance(raw, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _merge_object(raw, before, after)
    if isinstance(raw, list) and isinstance(before, list) and isinstance(after, list):
        return _merge_list(raw, before, after)
    return after


def _merge_object(raw: Json, before: Json, after: Json) -> Json:
    result = {key: value for key, value in raw.items() if key in after or key not in before}
    for key, value in after.items():
        if key not in before:
            # An object in raw was empty so far, apart from what nobody here knows.
            both = isinstance(raw.get(key), dict) and isinstance(value, dict)
            result[key] = _merge_object(raw[key], {}, value) if both else value
        elif key in raw:
            result[key] = _merge(raw[key], before[key], value)
        elif _text(before[key]) != _text(value):
            result[key] = value
    return result


def _merge_list(raw: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    """Pair each entry of ``after`` with one of ``before``, which is at its place in ``raw``."""
    result: list[Any] = list(after)
    texts = [_text(entry) for entry in before]
    places = _pair(range(len(before)), texts, range(len(after)), [_text(e) for e in after])
    for index, place in places.items():
        result[index] = raw[place]
    used = set(places.values())
    old = [i for i in range(len(before)) if i not in used and _identity(before[i])]
    new = [i for i in range(len(after)) if i not in places and _identity(after[i])]
    same = _pair(old, [_identity(before[i]) for i in old], new, [_identity(after[i]) for i in new])
    for index, place in same.items():
        result[index] = _merge(raw[place], before[place], after[index])
    return result


def _pair(
    places: Iterable[int], values: list[str], wanted: Iterable[int], keys: list[str]
) -> dict[int, int]:
    """For each of ``wanted`` the first place, not yet taken, whose value is its key."""
    free: dict[str, deque[int]] = {}
    for place, value in zip(places, values, strict=True):
        free.setdefault(value, deque()).append(place)
    return {
        index: free[key].popleft() for index, key in zip(wanted, keys, strict=True) if free.get(key)
    }


def _text(value: Any) -> str:
    """JSON with its types: in Python 1 equals True, in JSON it does not."""
    return json.dumps(value, sort_keys=True)


def _identity(entry: Any) -> str:
    """What tells an entry of a list apart from the others, ``""`` if nothing does."""
    if isinstance(entry, dict):
        for keys in _MERGE_KEYS:
            if keys[0] in entry:
                return _text([keys, [entry.get(key) for key in keys]])
    return ""
