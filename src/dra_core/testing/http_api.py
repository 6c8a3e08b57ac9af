"""The in-memory API server as HTTP has it: what a path means, what to answer. No socket.

What may live here: ``handle``, a function from a request in the words of HTTP to the
answer. A shell that listens on a socket needs some 60 lines around it (an example is in
``examples/support``).

Understood are objects, lists, ``fieldSelector`` and ``labelSelector`` by equality,
watches, patches of all kinds, ``status`` and ``binding``, and the discovery documents that
clients read to learn what there is.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

import attrs

from dra_core.api.request import APPLY, JSON, ApiRequest, Target, Verb
from dra_core.testing.api_kinds import Kind
from dra_core.testing.api_server import BINDING, ApiServer
from dra_core.testing.server_admission import STATUS
from dra_core.testing.server_answers import RefusedError
from dra_core.testing.watch import Selects, Watch, WatchEvent

Json = dict[str, Any]
Send = Callable[[ApiRequest], tuple[int | None, Any]]

_VERBS = {
    "GET": Verb.GET,
    "POST": Verb.CREATE,
    "PUT": Verb.UPDATE,
    "PATCH": Verb.PATCH,
    "DELETE": Verb.DELETE,
}
_SERVED_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


@attrs.frozen
class HttpAnswer:
    """What to send: ``status``, and ``body`` as JSON, or what ``watch`` shows, line by line.

    ``status`` is ``None`` where bad luck took the answer: close the connection.
    """

    status: int | None
    body: Any = None
    watch: Watch | None = None

    @property
    def content(self) -> bytes:
        """The body as bytes."""
        return json.dumps(self.body, separators=(",", ":")).encode()


def watch_line(event: WatchEvent) -> bytes:
    """One change as a line of a watch."""
    return json.dumps(event._asdict(), separators=(",", ":")).encode() + b"\n"


def expired_line(refused: RefusedError) -> bytes:
    """The last line of a watch that cannot go on."""
    return json.dumps({"type": "ERROR", "object": refused.answer().body}).encode() + b"\n"


def handle(
    server: ApiServer,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes = b"",
    *,
    send: Send | None = None,
) -> HttpAnswer:
    """The answer to a request.

    ``path`` is as it was sent, quoted, without the query; ``query`` unquoted; ``headers``
    by their names in lower case. ``send`` is used instead of the server's own, to give it
    bad luck.
    """
    try:
        document = _discovery(server, path) if method == "GET" else None
        if document is not None:
            return HttpAnswer(200, document)
        request = _request(method, _target(path), query, headers, body)
        if request.verb is Verb.GET and not request.target.name:
            return _collection(server, request, query, send)
        return HttpAnswer(*(send or server.send)(request))
    except RefusedError as refused:
        return HttpAnswer(*refused.answer())


# Reading


def _target(path: str) -> Target:
    """What a path means: ``/api/v1/…`` or ``/apis/<group>/<version>/…``."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[:1] == ["api"]:
        group, version, rest = "", parts[1:2], parts[2:]
    elif parts[:1] == ["apis"]:
        group, version, rest = "".join(parts[1:2]), parts[2:3], parts[3:]
    else:
        version, rest, group = [], [], ""
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    if not version or not 1 <= len(rest) <= 3:
        raise RefusedError(404, "the server could not find the requested resource")
    return Target(group, version[0], rest[0], namespace, *rest[1:])


def _request(
    method: str, target: Target, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
) -> ApiRequest:
    verb = _VERBS.get(method)
    if verb is None:
        raise RefusedError(405, f"method {method} is not known")
    if "dryRun" in query:
        raise RefusedError(400, "dryRun is not known here")
    content_type = headers.get("content-type", JSON).partition(";")[0].strip()
    try:
        document = json.loads(body) if body else None
    except ValueError as error:
        what = "YAML is read only where it is JSON" if content_type == APPLY else "no JSON"
        raise RefusedError(400, f"{what}: {error}") from error
    agent = headers.get("user-agent", "").partition("/")[0]
    return ApiRequest(
        verb,
        target,
        content_type if document is not None else "",
        document,
        query.get("fieldManager", agent),
        query.get("force", "") in ("true", "1"),
    )


# Lists and watches


def _collection(
    server: ApiServer, request: ApiRequest, query: Mapping[str, str], send: Send | None
) -> HttpAnswer:
    selects = _selection(query)
    if query.get("watch", "") in ("true", "1"):
        since = query.get("resourceVersion", "")
        if since not in ("", "0") and not since.isdecimal():
            raise RefusedError(400, f"resourceVersion {since!r} is no number")
        version = None if since in ("", "0") else int(since)
        watch = Watch(server, request.target, version, selects=selects)
        if version is not None:
            server.events(version)  # 410 at once, if they are forgotten
        return HttpAnswer(200, watch=watch)
    status, body = (send or server.send)(request)
    if status == 200:
        body["items"] = [item for item in body["items"] if selects(item)]
    return HttpAnswer(status, body)


def _selection(query: Mapping[str, str]) -> Selects:
    fields = [_condition(text) for text in _conditions(query.get("fieldSelector", ""))]
    labels = [_condition(text) for text in _conditions(query.get("labelSelector", ""))]

    def selects(obj: Mapping[str, Any]) -> bool:
        present = obj["metadata"].get("labels") or {}
        return all((_field(obj, name) == value) is equal for name, value, equal in fields) and all(
            (name in present if value is None else present.get(name) == value) is equal
            for name, value, equal in labels
        )

    return selects


def _conditions(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _condition(text: str) -> tuple[str, str | None, bool]:
    """Name, value (``None``: any), and whether it has to be so or must not be."""
    if "(" in text or " " in text:
        raise RefusedError(400, f"selector {text!r}: only equality is known here")
    for operator, equal in (("!=", False), ("==", True), ("=", True)):
        name, found, value = text.partition(operator)
        if found:
            return name, value, equal
    return text.removeprefix("!"), None, not text.startswith("!")


def _field(obj: Any, path: str) -> str:
    for name in path.split("."):
        obj = obj.get(name) if isinstance(obj, Mapping) else None
    return "" if obj is None else str(obj)


# Discovery


def _discovery(server: ApiServer, path: str) -> Json | None:
    """What there is: ``/version``, ``/api``, ``/apis``, ``/api/v1``, ``/apis/<group>``, …"""
    parts = path.strip("/").split("/")
    groups = _groups(server)
    if parts == ["version"]:
        return {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"]}
    if parts == ["apis"]:
        found = [_group_document(name, versions) for name, versions in groups.items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}
    if parts[0] == "apis" and len(parts) == 2 and parts[1] in groups:
        return _group_document(parts[1], groups[parts[1]]) | {"kind": "APIGroup"}
    group = "" if parts[0] == "api" else parts[1] if len(parts) > 1 else None
    if len(parts) == (2 if group == "" else 3) and parts[-1] in groups.get(group or "", []):
        return _resources(server, group or "", parts[-1])
    return None


def _groups(server: ApiServer) -> dict[str, list[str]]:
    """Versions by group, in the order of the rows."""
    result: dict[str, list[str]] = {}
    for kind in server.kinds:
        versions = result.setdefault(kind.group, [])
        versions += [version for version in kind.versions if version not in versions]
    return result


def _group_document(name: str, versions: list[str]) -> Json:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _resources(server: ApiServer, group: str, version: str) -> Json:
    entries = [
        entry
        for kind in server.kinds
        if kind.group == group and version in kind.versions
        for entry in _resource_entries(kind)
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": entries,
    }


def _resource_entries(kind: Kind) -> list[Json]:
    common = {"singularName": kind.kind.lower(), "namespaced": kind.namespaced, "kind": kind.kind}
    entries: list[Json] = [{"name": kind.resource, **common, "verbs": _SERVED_VERBS}]
    if kind.has_status:
        verbs = ["get", "patch", "update"]
        entries.append({"name": f"{kind.resource}/{STATUS}", **common, "verbs": verbs})
    if kind.kind == "Pod":
        bind = {"name": f"pods/{BINDING}", **common, "kind": "Binding", "verbs": ["create"]}
        entries.append(bind)
    return entries
