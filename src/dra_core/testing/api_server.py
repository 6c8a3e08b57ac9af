"""An API server in memory, for tests: it answers requests as the real one does.

What may live here: ``ApiServer``. What patches and applies make of objects is in
``patching`` and ``server_side_apply``, what clients may say in ``server_admission``, what
is refused of the result in ``server_validation``, where it is kept in ``object_store``;
the kinds are rows of ``api_kinds``. HTTP is spoken by ``http_api``, watching done by
``watch``, bad luck is in ``faults``.

The state is values that nobody changes: each write stores a new object, and a fork shares
all of them. Everything is deterministic; UIDs, generated names and times come from a
counter unless the caller has better ones.

What it leaves out: it has no namespaces as objects, converts nothing between versions
(an object is served as it was written), does not page lists, fills in no defaults, and
deletes pods at once, without a grace period.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import attrs

from dra_core.api.request import APPLY, ApiRequest, Target, Verb
from dra_core.api.wire_free import copy_json
from dra_core.testing.api_kinds import KINDS, Kind
from dra_core.testing.field_sets import UPDATE, Manager, Owners, read_owners, written_owners
from dra_core.testing.object_store import Event, ObjectStore, StoreKey, key_of
from dra_core.testing.patching import same_json
from dra_core.testing.server_admission import (
    STATUS,
    admitted,
    changed,
    check_place,
    check_type,
    fresh,
    read_object,
    stated,
)
from dra_core.testing.server_answers import Answer, RefusedError
from dra_core.testing.server_side_apply import (
    ApplyConflictError,
    applier,
    apply,
    updated_owners,
)
from dra_core.testing.server_validation import violations

Json = dict[str, Any]

BINDING = "binding"

_EPOCH = datetime(2026, 1, 1)
_NO_RESOURCE = "the server could not find the requested resource"


class ApiServer:
    """Objects by kind, namespace and name, and the answers to requests about them.

    ``clock`` gives the time as RFC 3339 text, ``new_uid`` a UID, ``suffix`` what is added
    to a generateName; by default all three count. ``max_consumers`` is the most entries of
    ``reservedFor``, by default as the version of the API has it. ``first_version`` is
    the resourceVersion before the first write.

    Not thread-safe: a shell that serves several clients has a lock.
    """

    def __init__(
        self,
        kinds: Iterable[Kind] = KINDS,
        *,
        clock: Callable[[], str] | None = None,
        new_uid: Callable[[], str] | None = None,
        suffix: Callable[[], str] | None = None,
        max_consumers: int | None = None,
        first_version: int = 100,
    ) -> None:
        self.kinds = tuple(
            kind if max_consumers is None else attrs.evolve(kind, max_consumers=max_consumers)
            for kind in kinds
        )
        self._clock, self._new_uid, self._suffix = clock, new_uid, suffix
        self._store = ObjectStore(first_version)

    def fork(self) -> "ApiServer":
        """An independent server in the same state.

        Objects are shared, because none is ever changed. Cost: one pointer for each object
        and remembered event. Callables given for clock, UIDs and suffixes are shared, too.
        """
        result = ApiServer(
            self.kinds, clock=self._clock, new_uid=self._new_uid, suffix=self._suffix
        )
        result._store = self._store.fork()
        return result

    # --- looking -----------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The resourceVersion of the last write."""
        return self._store.version

    @property
    def oldest(self) -> int:
        """Changes up to this resourceVersion are forgotten."""
        return self._store.oldest

    def find(self, resource: str, namespace: str, name: str) -> Json | None:
        """A copy of an object by the plural name of its kind; ``None`` if there is none."""
        return self._store.find(resource, namespace, name)

    def objects(self, resource: str = "", namespace: str = "") -> list[Json]:
        """Copies of all objects, each once, in the order of their keys."""
        return self._store.copies(
            lambda key: resource in ("", key.resource) and namespace in ("", key.namespace)
        )

    def events(self, since: int) -> list[Event]:
        """The changes after a version, in order. Their objects are not copies: leave them alone.

        Raises RefusedError (410) if they are forgotten. Cost: their number.
        """
        return self._store.events(since)

    def kind_of(self, target: Target) -> Kind:
        """The row for what is addressed. Raises RefusedError (404) if it is not served."""
        for kind in self.kinds:
            if (kind.group, kind.resource) == (target.group, target.resource) and (
                target.version in kind.versions
            ):
                return kind
        raise RefusedError(404, _NO_RESOURCE)

    # --- what is not done by requests -----------------------------------------------------

    def seed(self, *objects: Mapping[str, Any]) -> None:
        """Store objects as they are, whatever was there; status, UID and all.

        For the state that a test begins with: it is no change that a watch shows. A UID (with
        the time of creation) and a resourceVersion are given to objects that have none.
        """
        for obj in objects:
            new = copy_json(obj)
            kind, key = self._place(new)
            meta = new["metadata"]
            if not meta.get("uid"):
                meta |= {"uid": self._uid(), "creationTimestamp": self._time()}
            if kind.has_status:
                new.setdefault(STATUS, {})
            self._store.seed(key, new)

    def unseed(self, resource: str, namespace: str, name: str) -> None:
        """Take an object away, finalizers or not, as if it had never been."""
        for kind in self.kinds:
            self._store.remove(StoreKey(kind.group, resource, namespace, name))

    def touch(self, target: Target) -> None:
        """Somebody else changes an annotation; nothing happens where there is no object."""
        annotation = {"example.com/touched": str(self.version + 1)}
        body = {"metadata": {"annotations": annotation}}
        self.send(target.at("").merge_patch(body, "somebody"))

    def restart(self) -> None:
        """Forget all changes: whoever watches from before the last one has to list anew."""
        self._store.forget()

    # --- requests ----------------------------------------------------------------------

    def send(self, request: ApiRequest) -> Answer:
        """The answer to a request. Its body is a copy of what is stored."""
        try:
            return self._answer(request)
        except RefusedError as refused:
            return refused.answer()

    def _answer(self, request: ApiRequest) -> Answer:
        kind, target = self.kind_of(request.target), request.target
        if target.subresource == BINDING and kind.kind == "Pod":
            return self._bind(request)
        if target.subresource not in ("", STATUS if kind.has_status else ""):
            raise RefusedError(404, _NO_RESOURCE)
        if request.verb is Verb.CREATE:
            return self._create(kind, request)
        if not target.name:
            if request.verb is Verb.GET:
                return Answer(200, self._list(kind, target))
            raise RefusedError(405, f"cannot {request.verb.value} a collection")
        old = self._store.get(key_of(target))
        if old is None:
            return self._missing(kind, request)
        if request.verb is Verb.GET:
            return Answer(200, copy_json(old))
        if request.verb is Verb.DELETE:
            return self._delete(key_of(target), old, request.body or {})
        if request.content_type == APPLY:
            return self._apply(kind, request, old)
        return self._change(kind, request, old)

    def _missing(self, kind: Kind, request: ApiRequest) -> Answer:
        """Apply creates what is missing, but not a certain incarnation of it."""
        target = request.target
        if request.content_type != APPLY or target.subresource:
            raise RefusedError(404, f"{target.resource} {target.name!r} not found")
        if read_object(request.body)["metadata"].get("uid"):
            raise RefusedError(409, "uid mismatch: no object exists, and a uid was given")
        return self._apply(kind, request, None)

    def _list(self, kind: Kind, target: Target) -> Json:
        """As the real server, without apiVersion and kind in the items."""
        items = self._store.copies(
            lambda key: (
                key[:2] == (target.group, target.resource)
                and target.namespace in ("", key.namespace)
            )
        )
        for item in items:
            del item["apiVersion"], item["kind"]
        return {
            "kind": f"{kind.kind}List",
            "apiVersion": kind.api_version(target.version),
            "metadata": {"resourceVersion": str(self.version)},
            "items": items,
        }

    # --- creating and deleting --------------------------------------------------------------

    def _create(self, kind: Kind, request: ApiRequest) -> Answer:
        new = read_object(request.body)
        meta = new["metadata"]
        check_type(kind, request.target, new)
        if not meta.get("name") and meta.get("generateName"):
            suffix = self._suffix() if self._suffix else f"{self.version + 1:05}"
            meta["name"] = f"{meta['generateName']}{suffix}"
        return self._add(kind, request, new, {})

    def _add(self, kind: Kind, request: ApiRequest, new: Json, owners: Owners) -> Answer:
        """Store a new object; ``owners`` of an apply, otherwise the creator owns it."""
        target, meta = request.target, new["metadata"]
        check_place(kind, target, meta)
        if meta.get("resourceVersion"):
            raise RefusedError(400, "resourceVersion must not be set on objects to be created")
        key = StoreKey(target.group, target.resource, target.namespace, meta.get("name", ""))
        if self._store.get(key) is not None:
            raise RefusedError(409, f"{key.resource} {key.name!r} already exists", "AlreadyExists")
        new = fresh(kind, target, new, self._uid(), self._time())
        _refuse_invalid(kind, {}, new)
        mine = stated(kind, target, new)
        owners = owners or self._owners_after_update({}, mine, kind, request)
        return Answer(201, self._store.write(key, _owned(new, owners, {})))

    def _delete(self, key: StoreKey, old: Json, options: Json) -> Answer:
        meta = old["metadata"]
        for name, value in (options.get("preconditions") or {}).items():
            if value is not None and meta.get(name) != value:
                raise RefusedError(409, f"precondition failed: {name} is {meta.get(name)}")
        if meta.get("deletionTimestamp"):
            return Answer(200, copy_json(old))
        gone = {"deletionTimestamp": self._time(), "deletionGracePeriodSeconds": 0}
        return Answer(200, self._store.write(key, {**old, "metadata": meta | gone}))

    def _bind(self, request: ApiRequest) -> Answer:
        """``pods/binding``: the only way to assign a pod to a node."""
        if request.verb is not Verb.CREATE:
            raise RefusedError(405, "a binding can only be created")
        body = read_object(request.body)
        name = request.target.name or body["metadata"].get("name", "")
        key = key_of(attrs.evolve(request.target, name=name))
        old = self._store.get(key)
        if old is None:
            raise RefusedError(404, f"pods {name!r} not found")
        node = (body.get("target") or {}).get("name")
        if not node:
            raise RefusedError(422, "target.name: is required")
        if body["metadata"].get("uid") not in (None, "", old["metadata"]["uid"]):
            raise RefusedError(409, "precondition failed: the pod was replaced")
        spec = old.get("spec") or {}
        if spec.get("nodeName") or old["metadata"].get("deletionTimestamp"):
            raise RefusedError(409, f"pod {name} is assigned to a node, or being deleted")
        self._store.write(key, {**old, "spec": {**spec, "nodeName": node}})
        return Answer(201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201})

    # --- changing --------------------------------------------------------------------------

    def _change(self, kind: Kind, request: ApiRequest, old: Json) -> Answer:
        """An update, or a patch other than apply."""
        new = admitted(kind, request.target, old, changed(kind, request, old))
        owners = self._owners_after_update(old, new, kind, request)
        return self._finish(kind, request, old, _owned(new, owners, old))

    def _apply(self, kind: Kind, request: ApiRequest, old: Json | None) -> Answer:
        """Server-side apply, of a new object where ``old`` is ``None``."""
        body, target = read_object(request.body), request.target
        if not request.field_manager:
            raise RefusedError(422, "fieldManager: is required for apply")
        if body["metadata"].get("managedFields"):
            raise RefusedError(400, "metadata.managedFields must be nil")
        check_type(kind, target, body)
        check_place(kind, target, body["metadata"])
        try:
            new, owners = apply(
                old or {},
                stated(kind, target, body),
                read_owners(old or {}),
                applier(request.field_manager, target.subresource),
                body["apiVersion"],
                self._time(),
                kind.schema,
                force=request.force,
            )
        except ApplyConflictError as conflict:
            raise RefusedError(409, str(conflict)) from conflict
        if old is None:
            new["metadata"].setdefault("name", target.name)
            return self._add(kind, request, new, owners)
        return self._finish(
            kind, request, old, _owned(admitted(kind, target, old, new), owners, old)
        )

    def _finish(self, kind: Kind, request: ApiRequest, old: Json, new: Json) -> Answer:
        _refuse_invalid(kind, old, new)
        if same_json(old, new):
            return Answer(200, copy_json(old))
        return Answer(200, self._store.write(key_of(request.target), new))

    # --- pieces ----------------------------------------------------------------------------

    def _owners_after_update(self, old: Json, new: Json, kind: Kind, request: ApiRequest) -> Owners:
        version = kind.api_version(request.target.version)
        name = request.field_manager or "unknown"
        manager = Manager(name, UPDATE, request.target.subresource, version)
        owners = read_owners(old)
        return updated_owners(old, new, owners, manager, version, self._time(), kind.schema)

    def _place(self, obj: Json) -> tuple[Kind, StoreKey]:
        """The row and the key for an object by what it says of itself."""
        group, _, version = obj["apiVersion"].rpartition("/")
        for kind in self.kinds:
            if (kind.group, kind.kind) == (group, obj["kind"]) and version in kind.versions:
                meta = obj["metadata"]
                namespace = meta.get("namespace", "") if kind.namespaced else ""
                return kind, StoreKey(group, kind.resource, namespace, meta["name"])
        raise RefusedError(404, f"no kind {obj['kind']} in {obj['apiVersion']}")

    def _uid(self) -> str:
        return self._new_uid() if self._new_uid else f"uid-{self.version + 1}"

    def _time(self) -> str:
        """By default as many seconds after the epoch as there were writes."""
        if self._clock:
            return self._clock()
        return f"{(_EPOCH + timedelta(seconds=self.version)).isoformat()}Z"


def _owned(obj: Json, owners: Owners, old: Json) -> Json:
    """The object with ``managedFields`` for the owners, none where there are no owners."""
    if old and owners == read_owners(old):
        return obj
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    if written := written_owners(owners):
        meta["managedFields"] = written
    return {**obj, "metadata": meta}


def _refuse_invalid(kind: Kind, old: Json, new: Json) -> None:
    found = violations(kind, old, new)
    if found:
        raise RefusedError(422, "; ".join(map(str, found)))
