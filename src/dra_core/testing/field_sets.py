"""Which fields an object has, and who owns which: the bookkeeping of server-side apply.

What may live here: objects as sets of fields, their comparison, and ``managedFields`` to
owners and back. What an apply or another write makes of the owners is in
``server_side_apply``.

A field is a path of elements as ``fieldsV1`` spells them: ``f:spec`` is a member,
``k:{"uid":"a"}`` the item of a list with that key, ``v:"x"`` the item of a set. What has
no fields of its own is owned as a whole: scalars, empty maps, atomic lists and maps. An
item of a list is a field by itself, besides its members.

Source: KEP-555; sigs.k8s.io/structured-merge-diff.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from dra_core.testing.api_kinds import DEFAULT, Merging, Schema
from dra_core.testing.patching import same_json

Json = dict[str, Any]
Path = tuple[str, ...]

ITEM: Final = object()
"""The value of a field that is an item of a list: it is there, and no more."""

_NEVER_OWNED: Final = frozenset({("f:apiVersion",), ("f:kind",)}) | {
    ("f:metadata", f"f:{name}")
    for name in (
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    )
}
"""What says which object it is, or is the server's own."""


def fields(obj: Mapping[str, Any], schema: Schema) -> dict[Path, Any]:
    """All fields of an object that can be owned, with their values, in order."""
    return dict(_fields(obj, (), "", schema))


def _fields(value: Any, path: Path, where: str, schema: Schema) -> Iterator[tuple[Path, Any]]:
    merging = schema.get(where, DEFAULT)
    if path in _NEVER_OWNED:
        return
    if isinstance(value, Mapping) and value and not merging.atomic:
        for name, member in value.items():
            yield from _fields(member, (*path, f"f:{name}"), _below(where, name), schema)
    elif isinstance(value, list) and value and is_granular(value, merging):
        for item in value:
            item_path = (*path, item_element(item, merging))
            yield item_path, ITEM
            if not merging.is_set:
                for name, member in item.items():
                    member_path = (*item_path, f"f:{name}")
                    yield from _fields(member, member_path, _below(where, name), schema)
    elif path not in ((), ("f:metadata",)):
        yield path, value


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def is_granular(items: list[Any], merging: Merging) -> bool:
    """Whether the items are fields by themselves: told apart as the schema says.

    Items without any of the keys, or two alike, make the list one field.
    """
    if merging.is_set:
        usable = all(isinstance(item, str | int) for item in items)
    else:
        usable = bool(merging.keys) and all(
            isinstance(item, Mapping) and any(key in item for key in merging.keys) for item in items
        )
    return usable and len({item_element(item, merging) for item in items}) == len(items)


def item_element(item: Any, merging: Merging) -> str:
    """The element of a path that means an item of a list."""
    if merging.is_set:
        return f"v:{_compact(item)}"
    return f"k:{_compact({key: item[key] for key in sorted(merging.keys) if key in item})}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@attrs.frozen
class Changes:
    """How two objects differ, by field. ``written`` are added or have another value."""

    written: frozenset[Path]
    removed: frozenset[Path]


def changes(old: Mapping[str, Any], new: Mapping[str, Any], schema: Schema) -> Changes:
    """The fields that differ between two states of an object."""
    before, after = fields(old, schema), fields(new, schema)
    written = {
        path
        for path, value in after.items()
        if path not in before or not _same(before[path], value)
    }
    return Changes(frozenset(written), frozenset(before.keys() - after.keys()))


def _same(one: Any, other: Any) -> bool:
    return one is other or same_json(one, other)


# Owners


@attrs.frozen
class Manager:
    """Who owns fields, and by which operation ("Apply" or "Update").

    ``version`` is the apiVersion that the fields were written in; it tells managers apart
    for updates only, so it is "" for apply.
    """

    name: str
    operation: str
    subresource: str = ""
    version: str = ""


@attrs.frozen
class Owned:
    """What a manager owns, in which apiVersion, and since when it is so."""

    paths: frozenset[Path]
    version: str
    time: str


Owners = Mapping[Manager, Owned]

APPLY: Final = "Apply"
UPDATE: Final = "Update"


def read_owners(obj: Mapping[str, Any]) -> dict[Manager, Owned]:
    """The owners by ``metadata.managedFields``; entries without fields are nobody's."""
    result: dict[Manager, Owned] = {}
    for entry in obj.get("metadata", {}).get("managedFields") or []:
        paths = frozenset(_read_tree(entry.get("fieldsV1") or {}, ()))
        version = entry.get("apiVersion", "")
        manager = Manager(
            entry.get("manager", ""),
            entry.get("operation", UPDATE),
            entry.get("subresource", ""),
            "" if entry.get("operation") == APPLY else version,
        )
        if paths:
            result[manager] = Owned(paths, version, entry.get("time", ""))
    return result


def _read_tree(tree: Mapping[str, Any], path: Path) -> Iterator[Path]:
    for element, below in tree.items():
        if element == ".":
            yield path
        elif below:
            yield from _read_tree(below, (*path, element))
        else:
            yield (*path, element)


def written_owners(owners: Owners) -> list[Json]:
    """``metadata.managedFields`` for owners; those who own nothing are left out."""
    return [
        {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": owned.version,
            "time": owned.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _tree(sorted(owned.paths)),
        }
        | ({"subresource": manager.subresource} if manager.subresource else {})
        for manager, owned in owners.items()
        if owned.paths
    ]


def _tree(paths: Iterable[Path]) -> Json:
    """Sorted paths as a tree; a path that others go through is marked by "."."""
    tree: Json = {}
    owned = set(paths)
    for path in sorted(owned):
        node = tree
        for depth, element in enumerate(path, start=1):
            node = node.setdefault(element, {})
            if depth < len(path) and path[:depth] in owned:
                node["."] = {}
    return tree
