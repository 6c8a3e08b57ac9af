"""From the body of a request to an object that may be stored, if it is valid.

What may live here: reading bodies, choosing the patch, and what the server decides over
the head of its clients: which parts a resource writes, what of the metadata is its own,
what is left out because it is empty.
"""

from collections.abc import Mapping
from typing import Any

from dra_core.api.request import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    ApiRequest,
    Target,
    Verb,
)
from dra_core.api.wire_free import copy_json
from dra_core.testing.api_kinds import Kind
from dra_core.testing.patching import (
    PatchRefusedError,
    json_patch,
    merge_patch,
    strategic_merge_patch,
)
from dra_core.testing.server_answers import RefusedError

Json = dict[str, Any]

STATUS = "status"

_HEADER = ("apiVersion", "kind", "metadata")
_SERVERS_OWN = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
)
"""What a client cannot change in the metadata."""


def read_object(body: Any) -> Json:
    """A copy of a body that has to be an object with metadata."""
    if not isinstance(body, Mapping) or not isinstance(body.get("metadata", {}), Mapping):
        raise RefusedError(400, "the body is no object")
    result: Json = copy_json(body)
    result.setdefault("metadata", {})
    return result


def check_type(kind: Kind, target: Target, obj: Json) -> None:
    """A whole object must be of the kind and version that the request addresses."""
    said = obj.get("apiVersion"), obj.get("kind")
    meant = kind.api_version(target.version), kind.kind
    if said != meant:
        raise RefusedError(400, f"the object is a {said}, the request is about {meant}")


def check_place(kind: Kind, target: Target, meta: Json) -> None:
    """An object must not say that it belongs elsewhere."""
    if bool(target.namespace) != kind.namespaced:
        raise RefusedError(404, "the server could not find the requested resource")
    if meta.get("namespace") not in (None, "", target.namespace):
        raise RefusedError(400, "the namespace of the object does not match the request")
    if target.name and meta.get("name") not in (None, "", target.name):
        raise RefusedError(400, "the name of the object does not match the request")


def changed(kind: Kind, request: ApiRequest, old: Json) -> Json:
    """What an update or a patch makes of the object, before anybody looks at the result."""
    if request.verb is Verb.UPDATE:
        new = read_object(request.body)
        check_type(kind, request.target, new)
        if new["metadata"].get("uid") not in (None, "", old["metadata"]["uid"]):
            raise RefusedError(409, "precondition failed: the object was replaced")
        return new
    try:
        return read_object(_patched(kind, request, old))
    except PatchRefusedError as refused:
        raise RefusedError(400 if refused.malformed else 422, str(refused)) from refused


def _patched(kind: Kind, request: ApiRequest, old: Json) -> Any:
    if request.content_type == JSON_PATCH:
        return json_patch(old, request.body)
    if request.content_type == MERGE_PATCH:
        return merge_patch(old, request.body)
    if request.content_type == STRATEGIC_MERGE_PATCH:
        return strategic_merge_patch(old, request.body, kind.schema)
    raise RefusedError(415, f"a patch cannot have the content type {request.content_type!r}")


def relevant(kind: Kind, target: Target, obj: Json) -> Json:
    """The parts that a request to this resource writes, metadata apart.

    Writes to the status ignore the rest, others ignore the status.
    """
    return {
        name: value
        for name, value in obj.items()
        if name not in _HEADER
        and (not kind.has_status or (name == STATUS) == (target.subresource == STATUS))
    }


def stated(kind: Kind, target: Target, body: Json) -> Json:
    """What an apply states: the parts that this resource writes, and how it is called."""
    header = {name: body[name] for name in _HEADER}
    if target.subresource:
        names = ("name", "namespace", "uid", "resourceVersion")
        meta = {name: body["metadata"][name] for name in names if name in body["metadata"]}
        header["metadata"] = meta
    return header | relevant(kind, target, body)


def admitted(kind: Kind, target: Target, old: Json, new: Json) -> Json:
    """``new`` without what this resource does not write, and with what the server keeps.

    Raises RefusedError for another incarnation (422) and a stale resourceVersion (409).
    """
    meta, before = new["metadata"], old["metadata"]
    check_place(kind, target, meta)
    if meta.get("resourceVersion") not in (None, "", before["resourceVersion"]):
        raise RefusedError(409, "the object has been modified; read it again")
    if meta.get("uid") not in (None, "", before["uid"]):
        raise RefusedError(422, "metadata.uid: cannot be changed")
    mine = relevant(kind, target, old)
    result = relevant(kind, target, new)
    result |= {name: value for name, value in old.items() if name not in mine}
    if not target.subresource:
        kept = {name: before[name] for name in _SERVERS_OWN if name in before}
        written = {name: value for name, value in meta.items() if name not in _SERVERS_OWN}
        result["metadata"] = written | kept
        result["apiVersion"] = new.get("apiVersion", old["apiVersion"])
    return tidy(kind, result)


def fresh(kind: Kind, target: Target, body: Json, uid: str, time: str) -> Json:
    """A new object: what a client cannot decide is decided."""
    meta = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        meta.pop(name, None)
    if kind.namespaced:
        meta["namespace"] = target.namespace
    result = body | {
        "apiVersion": kind.api_version(target.version),
        "kind": kind.kind,
        "metadata": meta | {"uid": uid, "creationTimestamp": time},
    }
    if kind.status_at_creation is not None:
        result[STATUS] = copy_json(kind.status_at_creation)
    return tidy(kind, result)


def tidy(kind: Kind, obj: Json) -> Json:
    """Empty members of metadata, spec and status are left out, as the server does.

    ``status`` itself is always there where there is such a subresource.
    """
    result = dict(obj)
    if kind.has_status:
        result[STATUS] = result.get(STATUS) or {}
    for part in ("metadata", "spec", STATUS):
        members = result.get(part)
        if isinstance(members, Mapping):
            empty: tuple[Any, ...] = (None, "", [], {}) if part == "metadata" else (None, "", [])
            result[part] = {name: value for name, value in members.items() if value not in empty}
    return result
