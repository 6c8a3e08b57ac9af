"""A tiny API server for claims and pods as a pure function: (objects, request) → answer.

What may live here: the rules of the server that the payloads of this project rely on,
each in its simplest form, and no more. Being a function of frozen-in-time state, it can
be asked about every interleaving of several clients.

Rules: JSON patch with the server's reading of ``test`` null; merge and strategic merge
patch; the status subresource changes nothing but the status, the main resource all but
the status; resourceVersion and uid are preconditions; ``reservedFor`` needs an
allocation, has no UID twice and a limit; an allocation cannot be replaced, only cleared;
an object being deleted goes with its last finalizer.
"""

import copy
from collections.abc import Mapping
from typing import Any

import attrs
import jsonpatch
import jsonpointer

from dra_core.api.request import (
    APPLY,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    ApiRequest,
    Verb,
)

Json = dict[str, Any]
Key = tuple[str, str, str]

MERGE_KEYS = {"reservedFor": "uid", "resourceClaimStatuses": "name"}


@attrs.frozen
class Server:
    """All objects by (resource, namespace, name), and the last resourceVersion given."""

    objects: Mapping[Key, Json] = attrs.field(factory=dict)
    version: int = 100
    limit: int = 256

    def get(self, name: str, namespace: str = "team-a", resource: str = "resourceclaims") -> Json:
        """A stored object."""
        return self.objects[(resource, namespace, name)]

    def with_object(self, resource: str, obj: Json) -> "Server":
        """The server with ``obj`` stored as it is, whatever was there."""
        key = (resource, obj["metadata"]["namespace"], obj["metadata"]["name"])
        return attrs.evolve(self, objects={**self.objects, key: obj})

    def without(self, key: Key) -> "Server":
        """The server without an object."""
        return attrs.evolve(self, objects={k: v for k, v in self.objects.items() if k != key})

    def send(self, request: ApiRequest) -> tuple["Server", int, Any]:
        """The answer to a request: the server afterwards, HTTP status, body."""
        target = request.target
        key = (target.resource, target.namespace, target.name)
        if request.verb is Verb.CREATE:
            return self._create(request)
        old = self.objects.get(key)
        if old is None:
            return self, 409 if request.content_type == APPLY and _uid(request.body) else 404, None
        if request.verb is Verb.GET:
            return self, 200, copy.deepcopy(old)
        if request.verb is Verb.DELETE:
            return self._delete(key, old, request.body)
        status, new = changed(old, request)
        if new is None:
            return self, status, None
        return self._store(key, old, new, target.subresource)

    def _create(self, request: ApiRequest) -> tuple["Server", int, Any]:
        new: Json = copy.deepcopy(request.body)
        meta = new["metadata"]
        number = self.version + 1
        meta.setdefault("name", f"{meta.get('generateName', '')}{number:05}")
        meta |= {"uid": f"uid-{number}", "resourceVersion": str(number)}
        meta["creationTimestamp"] = f"2026-01-01T00:00:00.{number}Z"
        new.setdefault("status", {})
        key = (request.target.resource, meta["namespace"], meta["name"])
        if key in self.objects:
            return self, 409, None
        server = attrs.evolve(self, objects={**self.objects, key: new}, version=number)
        return server, 201, copy.deepcopy(new)

    def _delete(self, key: Key, old: Json, body: Json) -> tuple["Server", int, Any]:
        meta = old["metadata"]
        if any(meta.get(k) != v for k, v in body.get("preconditions", {}).items()):
            return self, 409, None
        if not meta.get("finalizers"):
            return self.without(key), 200, copy.deepcopy(old)
        new = copy.deepcopy(old)
        new["metadata"].setdefault("deletionTimestamp", "2026-01-02T00:00:00Z")
        return self._store(key, old, new, "")

    def _store(self, key: Key, old: Json, new: Json, subresource: str) -> tuple["Server", int, Any]:
        if old["metadata"].get("uid") != new["metadata"].get("uid"):
            return self, 422, None
        if subresource == "status":
            new = {**old, "status": new.get("status") or {}}
        else:
            new = {**new, "status": old.get("status") or {}}
        new = _without_empty(new)
        if not self._valid(old, new):
            return self, 422, None
        if new == old:
            return self, 200, copy.deepcopy(old)
        number = self.version + 1
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": str(number)}}
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            return attrs.evolve(self.without(key), version=number), 200, copy.deepcopy(new)
        server = attrs.evolve(self, objects={**self.objects, key: new}, version=number)
        return server, 200, copy.deepcopy(new)

    def _valid(self, old: Json, new: Json) -> bool:
        if _added_finalizer_while_deleting(old, new):
            return False
        before, after = old.get("status") or {}, new["status"]
        uids = [entry["uid"] for entry in after.get("reservedFor", [])]
        if uids and "allocation" not in after:
            return False
        if len(uids) > self.limit or len(uids) != len(set(uids)):
            return False
        was, now = before.get("allocation"), after.get("allocation")
        return was is None or now is None or _untimed(was) == _untimed(now)


def _untimed(allocation: Json) -> Json:
    return {k: v for k, v in allocation.items() if k != "allocationTimestamp"}


def _added_finalizer_while_deleting(old: Json, new: Json) -> bool:
    before = old["metadata"].get("finalizers", [])
    after = new["metadata"].get("finalizers", [])
    return bool(old["metadata"].get("deletionTimestamp")) and any(f not in before for f in after)


def _uid(body: Any) -> str:
    return str(body.get("metadata", {}).get("uid", "")) if isinstance(body, dict) else ""


def _without_empty(new: Json) -> Json:
    """Empty lists are left out, as the server does; ``status`` is always there."""
    result = copy.deepcopy(new)
    for part in (result["metadata"], result["status"]):
        for name in [name for name, value in part.items() if value in ([], None)]:
            del part[name]
    return result


def changed(old: Json, request: ApiRequest) -> tuple[int, Json | None]:
    """What a write makes of ``old``, before validation; status and ``None`` if refused."""
    if request.verb is Verb.UPDATE:
        meta = request.body["metadata"]
        version = meta.get("resourceVersion")
        if version is not None and version != old["metadata"]["resourceVersion"]:
            return 409, None
        if meta.get("uid") not in (None, old["metadata"]["uid"]):
            return 409, None
        return 200, copy.deepcopy(request.body)
    if request.content_type == JSON_PATCH:
        new = json_patched(old, request.body)
        return (200, new) if new is not None else (422, None)
    if request.content_type == STRATEGIC_MERGE_PATCH:
        return 200, merged(old, request.body, strategic=True)
    if request.content_type == MERGE_PATCH:
        return 200, merged(old, request.body, strategic=False)
    if request.content_type == APPLY:
        return _applied(old, request.body)
    raise AssertionError(f"content type {request.content_type}")


def json_patched(old: Json, operations: list[Json]) -> Json | None:
    """RFC 6902, with the server's addition; ``None`` if an operation fails."""
    document = copy.deepcopy(old)
    for operation in operations:
        if operation["op"] == "test" and operation["value"] is None:
            if _test_null(document, operation["path"]):
                continue
            return None
        try:
            document = jsonpatch.apply_patch(document, [operation])
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
            return None
    return document


def _test_null(document: Json, path: str) -> bool:
    """Null equals absent, if the parent is there."""
    parent, _, name = path.rpartition("/")
    try:
        found = jsonpointer.resolve_pointer(document, parent)
    except jsonpointer.JsonPointerException:
        return False
    return isinstance(found, dict) and found.get(name) is None


def merged(old: Any, patch: Any, *, strategic: bool, name: str = "") -> Any:
    """A merge patch; a strategic one merges lists by key and puts new entries first."""
    if isinstance(patch, dict) and isinstance(old, dict | None):
        result = dict(old or {})
        for key, value in patch.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = merged(result.get(key), value, strategic=strategic, name=key)
        return result
    if strategic and isinstance(patch, list) and name in MERGE_KEYS:
        return _merged_list(old or [], patch, MERGE_KEYS[name])
    return copy.deepcopy(patch)


def _merged_list(old: list[Json], patch: list[Json], key: str) -> list[Json]:
    gone = {entry[key] for entry in patch if entry.get("$patch") == "delete"}
    changes = {entry[key]: entry for entry in patch if "$patch" not in entry}
    present = {entry[key] for entry in old}
    kept = [{**e, **changes.get(e[key], {})} for e in old if e[key] not in gone]
    return [entry for uid, entry in changes.items() if uid not in present] + kept


def _applied(old: Json, body: Json) -> tuple[int, Json | None]:
    """Apply by the only manager of the list: what is stated is, what is left out goes."""
    if body["metadata"].get("uid") not in (None, old["metadata"]["uid"]):
        return 409, None
    new = copy.deepcopy(old)
    new["status"] = {**(old.get("status") or {}), **copy.deepcopy(body["status"])}
    return 200, new
