"""One call to the API server as data: what to send, and what each answer would mean.

What may live here: ``Target`` (what is addressed), ``ApiRequest`` (one call), the
meaning of answers, and how all that looks in HTTP. Sending is the caller's: any HTTP
client can be used, see ``ApiRequest.method``, ``url``, ``headers`` and ``content``.

Which status code means what depends on the kind of request. A patch whose body does
not carry a resourceVersion cannot be stale; a failed ``test`` of a JSON patch looks
like invalid input; and after a missing answer nobody knows whether the write happened.
``Answers`` holds this as a table per kind of request.
"""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlencode

import attrs

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
"""Server-side apply. JSON is YAML, so the body is JSON like all others."""


class Verb(StrEnum):
    """The verb that the API server authorizes."""

    GET = "get"
    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"


_METHODS = {
    Verb.GET: "GET",
    Verb.CREATE: "POST",
    Verb.UPDATE: "PUT",
    Verb.PATCH: "PATCH",
    Verb.DELETE: "DELETE",
}


class Cause(StrEnum):
    """What may be behind an answer."""

    MISSING = "the object does not exist"
    OTHER_INCARNATION = "the object was replaced by another of the same name"
    STALE = "the object was changed meanwhile"
    TEST_FAILED = "a precondition of the patch does not hold"
    ALREADY_EXISTS = "an object of that name exists"
    OTHER_MANAGER = "another field manager owns a field"
    INVALID = "the API server refuses the result"
    EXPIRED = "the resource version is too old"
    UNAVAILABLE = "the API server could not answer; nothing was written"
    MAY_HAVE_HAPPENED = "the write may have happened"
    REFUSED = "the API server refuses the request"


class Next(StrEnum):
    """What to do after an answer."""

    DONE = "done"
    READ = "get the object, then decide"
    RETRY_LATER = "try again later"
    GIVE_UP = "sending it again cannot help"


@attrs.frozen
class Meaning:
    """What an answer means: what to do next, and what may be behind it."""

    then: Next
    causes: tuple[Cause, ...] = ()


SUCCESS = Meaning(Next.DONE)
REFUSED = Meaning(Next.GIVE_UP, (Cause.REFUSED,))
_GONE = Meaning(Next.GIVE_UP, (Cause.MISSING,))
_EXPIRED = Meaning(Next.READ, (Cause.EXPIRED,))
_UNKNOWN = Meaning(Next.READ, (Cause.MAY_HAVE_HAPPENED,))
_UNAVAILABLE = Meaning(Next.RETRY_LATER, (Cause.UNAVAILABLE,))


@attrs.frozen
class Answers:
    """What the answers to one kind of request mean, apart from success.

    ``no_answer`` covers a lost connection and a time-out (408 too). A 429 or a server
    error may have come from something in front of the API server, after the write.
    """

    not_found: Meaning = _GONE
    conflict: Meaning = REFUSED
    expired: Meaning = _EXPIRED
    invalid: Meaning = REFUSED
    too_many: Meaning = _UNKNOWN
    server_error: Meaning = _UNKNOWN
    no_answer: Meaning = _UNKNOWN

    def meaning(self, status: int | None) -> Meaning:
        """The meaning of an HTTP status; ``None`` is no answer at all."""
        if status is None or status == 408:
            return self.no_answer
        if 200 <= status < 300:
            return SUCCESS
        if status >= 500:
            return self.server_error
        return self._client_errors().get(status, REFUSED)

    def _client_errors(self) -> dict[int, Meaning]:
        return {
            404: self.not_found,
            409: self.conflict,
            410: self.expired,
            422: self.invalid,
            429: self.too_many,
        }


_REPLACED_OR_INVALID = Meaning(Next.READ, (Cause.OTHER_INCARNATION, Cause.INVALID))
_STALE = Meaning(Next.READ, (Cause.STALE,))

TO_GET = Answers(
    expired=_UNAVAILABLE,
    too_many=_UNAVAILABLE,
    server_error=_UNAVAILABLE,
    no_answer=_UNAVAILABLE,
)
"""A get that fails has changed nothing."""

TO_CREATE = Answers(
    conflict=Meaning(Next.READ, (Cause.ALREADY_EXISTS,)),
    invalid=Meaning(Next.GIVE_UP, (Cause.INVALID,)),
)
"""404 means that the namespace, or the version of the API, does not exist."""

TO_UPDATE = Answers(
    conflict=Meaning(Next.READ, (Cause.STALE, Cause.OTHER_INCARNATION)),
    invalid=Meaning(Next.READ, (Cause.INVALID,)),
)
TO_JSON_PATCH = Answers(
    conflict=_STALE, invalid=Meaning(Next.READ, (Cause.TEST_FAILED, Cause.INVALID))
)
"""409 comes only where the patch sets a resourceVersion."""

TO_PATCH = Answers(conflict=_STALE, invalid=_REPLACED_OR_INVALID)
"""Merge patches. A uid in the body is a guard, because the field cannot be changed."""

TO_APPLY = Answers(
    conflict=Meaning(Next.READ, (Cause.MISSING, Cause.OTHER_INCARNATION, Cause.OTHER_MANAGER)),
    invalid=_REPLACED_OR_INVALID,
)
"""Apply creates what is missing; with a uid in the body it cannot, and that is a conflict."""

TO_DELETE = Answers(
    not_found=Meaning(Next.DONE, (Cause.MISSING,)),
    conflict=Meaning(Next.READ, (Cause.OTHER_INCARNATION, Cause.STALE)),
)


@attrs.frozen
class Permission:
    """What a role must allow: a verb on a resource (``resourceclaims/status``) of a group."""

    verb: str
    group: str
    resource: str


@attrs.frozen
class ApiRequest:
    """One call to the API server.

    ``body`` is decoded JSON or ``None``; nobody changes it. ``field_manager`` "" leaves
    the name to the server, ``force`` goes with apply only. ``answers`` says what each
    answer means; ask ``meaning``.
    """

    verb: Verb
    target: "Target"
    content_type: str = ""
    body: Any = None
    field_manager: str = ""
    force: bool = False
    answers: Answers = attrs.field(default=TO_GET, repr=False)

    @property
    def method(self) -> str:
        """The HTTP method."""
        return _METHODS[self.verb]

    @property
    def path(self) -> str:
        """The path below the server's address, quoted: ``/api/v1/…`` or ``/apis/…``."""
        return self.target.path

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """Query parameters, not yet quoted."""
        pairs = [("fieldManager", self.field_manager)] if self.field_manager else []
        if self.force:
            pairs.append(("force", "true"))
        return tuple(pairs)

    @property
    def url(self) -> str:
        """``path`` and ``query``, quoted."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def headers(self) -> dict[str, str]:
        """Headers that matter; authentication is the caller's."""
        headers = {"Accept": JSON}
        if self.content_type:
            headers["Content-Type"] = self.content_type
        return headers

    @property
    def content(self) -> bytes | None:
        """The body as bytes, ``None`` when there is none.

        Raises ``ValueError`` for what JSON in UTF-8 has no form for: numbers that are not
        finite, halves of surrogate pairs; and ``TypeError`` for what is no JSON at all.
        """
        if self.body is None:
            return None
        text = json.dumps(
            self.body,
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
            default=_as_dict,
        )
        return text.encode()

    @property
    def permission(self) -> Permission:
        """What RBAC must allow. Some fields need more, see ``docs/permissions.md``."""
        # RBAC has a name of its own for reading a collection.
        verb = "list" if self.verb is Verb.GET and not self.target.name else self.verb.value
        return Permission(verb, self.target.group, self.target.full_resource)

    def meaning(self, status: int | None) -> Meaning:
        """What the HTTP status of the answer means; ``None`` is no answer at all."""
        return self.answers.meaning(status)


def _as_dict(value: object) -> dict[Any, Any]:
    """Mappings of other types than dict are objects, too."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no JSON")


@attrs.frozen
class Target:
    """What a request addresses; its methods make the requests.

    ``group`` "" is the core group. ``namespace`` "" is for cluster-wide objects, ``name``
    "" for a collection: it can be read and created in. All other methods raise
    ``ValueError``, because to delete a collection is to delete everything in it.
    ``subresource`` is "" or, for instance, "status".
    """

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """The path below the server's address, quoted.

        Raises ``ValueError`` for a part "." or "..", which no object can be called and
        which an HTTP client would resolve to something else.
        """
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespace:
            parts += ["namespaces", self.namespace]
        parts.append(self.resource)
        parts += [part for part in (self.name, self.subresource) if part]
        if "." in parts or ".." in parts:
            raise ValueError(f"{'/'.join(parts)!r} would lead to another path")
        return "".join(f"/{quote(part, safe='')}" for part in parts)

    @property
    def full_resource(self) -> str:
        """``resourceclaims`` or ``resourceclaims/status``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def at(self, subresource: str) -> "Target":
        """The same object's ``subresource``; "" is the object itself."""
        return attrs.evolve(self, subresource=subresource)

    def _one(self) -> "Target":
        if not self.name:
            raise ValueError(f"no name: the request would address all {self.full_resource}")
        return self

    def get(self) -> ApiRequest:
        """Read the object; without a name, list the collection."""
        return ApiRequest(Verb.GET, self)

    def create(self, body: Mapping[str, Any], field_manager: str = "") -> ApiRequest:
        """Create an object in the collection, or a subresource (``pods/binding``) of an object.

        For an object, a name in the target plays no part.
        """
        place = self if self.subresource else attrs.evolve(self, name="")
        return ApiRequest(Verb.CREATE, place, JSON, body, field_manager, answers=TO_CREATE)

    def update(self, body: Mapping[str, Any], field_manager: str = "") -> ApiRequest:
        """Replace the object; its resourceVersion in ``body`` guards against lost changes."""
        return ApiRequest(Verb.UPDATE, self._one(), JSON, body, field_manager, answers=TO_UPDATE)

    def json_patch(
        self, operations: Sequence[Mapping[str, Any]], field_manager: str = ""
    ) -> ApiRequest:
        """Apply ``operations`` all or none (RFC 6902)."""
        body, one = list(operations), self._one()
        return ApiRequest(Verb.PATCH, one, JSON_PATCH, body, field_manager, answers=TO_JSON_PATCH)

    def merge_patch(self, body: Mapping[str, Any], field_manager: str = "") -> ApiRequest:
        """Set the members of ``body``, remove the null ones, replace lists (RFC 7396)."""
        one = self._one()
        return ApiRequest(Verb.PATCH, one, MERGE_PATCH, body, field_manager, answers=TO_PATCH)

    def strategic_merge_patch(self, body: Mapping[str, Any], field_manager: str = "") -> ApiRequest:
        """Like ``merge_patch``, but lists with a merge key are merged entry by entry."""
        return ApiRequest(
            Verb.PATCH, self._one(), STRATEGIC_MERGE_PATCH, body, field_manager, answers=TO_PATCH
        )

    def apply(
        self, body: Mapping[str, Any], field_manager: str, *, force: bool = False
    ) -> ApiRequest:
        """Server-side apply: ``body`` is all that ``field_manager`` wants to be so.

        ``force`` takes over fields of other managers. Raises ``ValueError`` without a
        field manager, because the server insists on one.
        """
        if not field_manager:
            raise ValueError("server-side apply needs a field manager")
        return ApiRequest(Verb.PATCH, self._one(), APPLY, body, field_manager, force, TO_APPLY)

    def delete(self, uid: str = "", resource_version: str = "") -> ApiRequest:
        """Delete the object, if it is still the one with ``uid`` and ``resource_version``."""
        facts = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in facts.items() if value}
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions:
            body["preconditions"] = preconditions
        return ApiRequest(Verb.DELETE, self._one(), JSON, body, answers=TO_DELETE)
