"""What the API server makes of patches: JSON patch, merge patch, strategic merge patch.

What may live here: functions from a document and a patch to the new document. They know
lists by a schema (``api_kinds``) and nothing else of objects; whether the result is
valid is asked elsewhere (``server_validation``). Inputs are never changed.

Three facts are easy to get wrong, and payloads depend on them:

* a JSON patch ``test`` for null passes where the member is absent, if its parent exists;
* ``add`` to ``…/-`` fails where the list is absent;
* a strategic merge puts new entries of a list before those it does not mention.

Source: RFC 6902, RFC 7396; k8s.io/apimachinery/pkg/util/strategicpatch.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import jsonpatch
import jsonpointer

from dra_core.api.wire_free import copy_json
from dra_core.errors import DraError
from dra_core.testing.api_kinds import DEFAULT, Merging, Schema

Json = dict[str, Any]

_DIRECTIVE = "$patch"
_DELETIONS = "$deleteFromPrimitiveList/"


@attrs.frozen
class PatchRefusedError(DraError, ValueError):
    """A patch cannot be applied.

    ``problem`` says why. ``malformed``: the patch is no patch at all, whatever it is
    applied to (HTTP 400); otherwise the document does not allow it (422).
    """

    problem: str
    malformed: bool = False

    def __str__(self) -> str:
        return self.problem


# JSON patch


def json_patch(document: Json, operations: Any) -> Json:
    """``document`` after ``operations``, all of them or a PatchRefusedError."""
    if not isinstance(operations, list | tuple):
        raise PatchRefusedError("a JSON patch is a list of operations", malformed=True)
    result: Any = copy_json(document)
    for operation in operations:
        result = _operated(result, operation)
    if not isinstance(result, dict):
        raise PatchRefusedError("the result is no object")
    return result


def _operated(document: Any, operation: Any) -> Any:
    try:
        if operation["op"] == "test":
            _test(document, operation["path"], operation.get("value"))
            return document
        return jsonpatch.apply_patch(document, [copy_json(operation)])
    except (jsonpatch.JsonPatchConflict, jsonpointer.JsonPointerException) as error:
        raise PatchRefusedError(f"{operation}: {error}") from error
    except (jsonpatch.JsonPatchException, KeyError, TypeError, AttributeError) as error:
        raise PatchRefusedError(f"{operation!r} is no operation", malformed=True) from error


def _test(document: Any, path: str, expected: Any) -> None:
    """Null equals absent, if the parent is there; ``true`` is not 1."""
    *parent, name = jsonpointer.JsonPointer(path).parts or [""]
    found = jsonpointer.JsonPointer.from_parts(parent).resolve(document) if path else document
    if path:
        is_map = isinstance(found, dict)
        found = found.get(name) if is_map else jsonpointer.resolve_pointer(document, path)
    if not same_json(found, expected):
        raise PatchRefusedError(f"test of {path} failed: found {found!r}, not {expected!r}")


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same. Unlike ``==``, true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


# Merge patch


def merge_patch(document: Any, patch: Any) -> Any:
    """RFC 7396: members are set, null ones removed, lists replaced."""
    if not isinstance(patch, Mapping):
        return copy_json(patch)
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return copy_json(result)


# Strategic merge patch


def strategic_merge_patch(document: Json, patch: Any, schema: Schema) -> Json:
    """A merge patch that merges the lists that have a merge key, entry by entry.

    Directives: ``$patch`` (delete, replace) in maps and entries, and
    ``$deleteFromPrimitiveList``. Others raise PatchRefusedError: they are what kubectl
    computes, and this server does not know them.
    """
    if not isinstance(patch, Mapping):
        raise PatchRefusedError("a merge patch is an object", malformed=True)
    result = _merged_map(document, patch, "", schema)
    return copy_json(result)  # type: ignore[no-any-return]


def _merged_map(old: Any, patch: Mapping[str, Any], path: str, schema: Schema) -> Json:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    result: Json = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if name.startswith(_DELETIONS):
            field = name.removeprefix(_DELETIONS)
            result[field] = [item for item in result.get(field) or [] if item not in value]
        elif name.startswith("$"):
            raise PatchRefusedError(f"directive {name} is not known here", malformed=True)
        elif value is None:
            result.pop(name, None)
        else:
            where = f"{path}.{name}" if path else name
            result[name] = _merged(result.get(name), value, where, schema)
    return result


def _merged(old: Any, value: Any, path: str, schema: Schema) -> Any:
    if isinstance(value, Mapping):
        return _merged_map(old, value, path, schema)
    merging = schema.get(path, DEFAULT)
    if not isinstance(value, list) or not (merging.patch_key or merging.patched_set):
        return value
    before = old if isinstance(old, list) else []
    if merging.patched_set:
        if not all(isinstance(item, str) for item in (*before, *value)):
            raise PatchRefusedError(f"{path} is a list of strings")
        return _ordered(list(dict.fromkeys([*before, *value])), value, before, _itself)
    return _merged_list(before, value, path, schema, merging)


def _merged_list(
    old: list[Any], patch: Sequence[Any], path: str, schema: Schema, merging: Merging
) -> list[Any]:
    if any(_is_replacement(entry) for entry in patch):
        return [entry for entry in patch if not _is_replacement(entry)]
    key = _key_reader(merging.patch_key, path)
    wanted = {key(entry): entry for entry in patch}
    gone = [name for name, entry in wanted.items() if entry.get(_DIRECTIVE) == "delete"]
    changes = [entry for name, entry in wanted.items() if name not in gone]
    result = [entry for entry in old if key(entry) not in gone]
    for change in changes:
        place = next((i for i, entry in enumerate(result) if key(entry) == key(change)), None)
        merged = _merged_map(None if place is None else result[place], change, path, schema)
        if place is None:
            result.append(merged)
        else:
            result[place] = merged
    return _ordered(result, changes, old, key)


def _is_replacement(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get(_DIRECTIVE) == "replace" and len(entry) == 1


def _itself(item: Any) -> Any:
    return item


def _key_reader(name: str, path: str) -> Any:
    def key(entry: Any) -> Any:
        if not isinstance(entry, Mapping) or name not in entry:
            raise PatchRefusedError(f"an entry of {path} has no {name}, its merge key")
        return entry[name]

    return key


def _ordered(items: list[Any], patch: Sequence[Any], old: list[Any], key: Any) -> list[Any]:
    """Entries of the patch in its order, the others in theirs, and the two lists merged.

    An entry of the patch that was there before keeps its place relative to the others; a
    new one goes before whatever is left of them.
    """
    by_key = {key(item): item for item in items}
    mentioned = list(dict.fromkeys(key(entry) for entry in patch))
    others = [key(item) for item in items if key(item) not in mentioned]
    place = {key(entry): index for index, entry in enumerate(old)}
    result = []
    while others and mentioned:
        first = others if place[others[0]] < place.get(mentioned[0], -1) else mentioned
        result.append(by_key[first.pop(0)])
    return result + [by_key[name] for name in (*others, *mentioned)]
