"""Server-side apply: objects whose fields have owners.

What may live here: what an apply, or another write, makes of an object and of its
owners. Functions from state to state; what is stored where is the server's business.

The rules. Who applies states everything that is to be so:

* what is stated is set, and owned by the applier from then on, by "Apply";
* what the applier owned by its last *apply*, does not state any more, and nobody else
  owns, is removed. What it set by a create or an update is another ownership, "Update",
  and is never removed so;
* setting a field to another value while somebody else owns it is a conflict, unless
  forced; then the others lose it. Setting it to the value it has is sharing.

Any other write owns what it changes, takes it from everybody else, and cannot conflict.

Source: KEP-555; sigs.k8s.io/structured-merge-diff, package merge.
"""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from dra_core.api.wire_free import copy_json
from dra_core.errors import DraError
from dra_core.testing.api_kinds import DEFAULT, Merging, Schema
from dra_core.testing.field_sets import (
    APPLY,
    Changes,
    Json,
    Manager,
    Owned,
    Owners,
    Path,
    changes,
    fields,
    is_granular,
    item_element,
)


@attrs.frozen
class ApplyConflictError(DraError):
    """Others own fields that an apply would change: pairs of manager and path, in order."""

    conflicts: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "; ".join(f"conflict with {manager!r}: {path}" for manager, path in self.conflicts)


def updated_owners(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    owners: Owners,
    manager: Manager,
    version: str,
    time: str,
    schema: Schema,
) -> dict[Manager, Owned]:
    """The owners after a write other than apply that turned ``old`` into ``new``."""
    difference = changes(old, new, schema)
    mine = owners.get(manager)
    paths = (mine.paths if mine else frozenset()) | difference.written
    result = _without(owners, difference, manager)
    result.pop(manager, None)
    return _with(result, owners, manager, paths - difference.removed, version, time)


def _without(owners: Owners, difference: Changes, manager: Manager) -> dict[Manager, Owned]:
    """What is left to everybody but ``manager`` after a write."""
    gone = difference.removed | difference.written
    return {
        other: owned if other == manager else attrs.evolve(owned, paths=owned.paths - gone)
        for other, owned in owners.items()
    }


def _with(
    result: dict[Manager, Owned],
    before: Owners,
    manager: Manager,
    paths: frozenset[Path],
    version: str,
    time: str,
) -> dict[Manager, Owned]:
    """``result`` with the manager's fields; its time stays where they are the same."""
    known = before.get(manager)
    same = known is not None and (known.paths, known.version) == (paths, version)
    result[manager] = known if known is not None and same else Owned(paths, version, time)
    return {each: owned for each, owned in result.items() if owned.paths}


def apply(
    live: Json,
    stated: Json,
    owners: Owners,
    manager: Manager,
    version: str,
    time: str,
    schema: Schema,
    *,
    force: bool = False,
) -> tuple[Json, dict[Manager, Owned]]:
    """The object and its owners after ``manager`` applied ``stated`` to ``live``.

    ``live`` is ``{}`` for an object that is to be created. Raises ApplyConflictError.
    """
    mine = frozenset(fields(stated, schema))
    last = owners.get(manager)
    others = [owned.paths for other, owned in owners.items() if other != manager]
    kept = mine.union(*others)
    merged = copy_json(_merged(live, stated, "", schema))
    if last is not None:
        dropped = sorted(last.paths - kept, key=lambda path: (-len(path), path))
        for path in dropped:
            _remove(merged, path, kept, schema)
    difference = changes(live, merged, schema)
    # What became empty because its members were removed is nothing that was stated.
    difference = attrs.evolve(difference, written=difference.written & mine)
    conflicts = _conflicts(owners, difference, manager)
    if conflicts and not force:
        raise ApplyConflictError(conflicts)
    result = _without(owners, difference, manager)
    result.pop(manager, None)
    return merged, _with(result, owners, manager, mine, version, time)


def applier(name: str, subresource: str) -> Manager:
    """The manager that an apply means."""
    return Manager(name, APPLY, subresource)


def _conflicts(
    owners: Owners, difference: Changes, manager: Manager
) -> tuple[tuple[str, str], ...]:
    return tuple(
        (other.name, "/".join(path))
        for other, owned in owners.items()
        if other != manager
        for path in sorted(owned.paths & difference.written)
    )


# Setting what is stated


def _merged(live: Any, stated: Any, where: str, schema: Schema) -> Any:
    merging = schema.get(where, DEFAULT)
    if isinstance(stated, Mapping):
        if merging.atomic or not isinstance(live, Mapping):
            return stated
        return _merged_map(live, stated, where, schema)
    if isinstance(stated, list) and isinstance(live, list) and is_granular(stated, merging):
        return _merged_list(live, stated, where, schema, merging)
    return stated


def _merged_map(live: Mapping[str, Any], stated: Any, where: str, schema: Schema) -> Json:
    result = dict(live)
    for name, value in stated.items():
        below = f"{where}.{name}" if where else name
        result[name] = _merged(live.get(name), value, below, schema)
    return result


def _merged_list(
    live: list[Any], stated: list[Any], where: str, schema: Schema, merging: Merging
) -> list[Any]:
    """Items that are there keep their places, new ones follow."""
    if live and not is_granular(live, merging):
        return stated
    result = {item_element(item, merging): item for item in live}
    for item in stated:
        element = item_element(item, merging)
        there = result.get(element)
        if there is not None and not merging.is_set:
            result[element] = _merged_map(there, item, where, schema)
        else:
            result[element] = item
    return list(result.values())


# Removing what is not stated any more


def _remove(obj: Json, path: Path, kept: frozenset[Path], schema: Schema) -> None:
    """Remove a field, unless somebody still owns something in it.

    What becomes empty by that goes, too, except spec and status.
    """
    if any(other[: len(path)] == path for other in kept):
        return
    chain = _containers(obj, path, schema)
    if chain is None or _is_key(path):
        return
    container, key = chain[-1]
    del container[key]
    for (outer, outer_key), depth in zip(chain[-2::-1], range(len(path) - 1, 1, -1), strict=False):
        if outer[outer_key] or path[:depth] in kept or isinstance(outer, list):
            return
        del outer[outer_key]


def _is_key(path: Path) -> bool:
    """Whether a field tells its item from the others; it goes with the item only."""
    if len(path) < 2 or not path[-2].startswith("k:"):
        return False
    return path[-1][2:] in json.loads(path[-2][2:])


def _containers(obj: Any, path: Path, schema: Schema) -> list[tuple[Any, Any]] | None:
    """For every element of the path the container and the key or index in it."""
    result: list[tuple[Any, Any]] = []
    where = ""
    for element in path:
        key: Any = None
        if element.startswith("f:"):
            key = element[2:]
            where = f"{where}.{key}" if where else key
            if not isinstance(obj, dict) or key not in obj:
                return None
        else:
            merging = schema.get(where, DEFAULT)
            if not isinstance(obj, list):
                return None
            found = [i for i, item in enumerate(obj) if item_element(item, merging) == element]
            if not found:
                return None
            key = found[0]
        result.append((obj, key))
        obj = obj[key]
    return result
