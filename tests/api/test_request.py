"""One call to the API server as data: its HTTP form and what answers mean."""

import json
from collections.abc import Callable
from types import MappingProxyType
from urllib.parse import parse_qsl, urlsplit

import pytest

from dra_core.api.request import (
    APPLY,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    ApiRequest,
    Cause,
    Meaning,
    Next,
    Permission,
    Target,
    Verb,
)

CLAIM = Target("resource.k8s.io", "v1", "resourceclaims", "team-a", "gpu")
POD = Target("", "v1", "pods", "team-a", "web")
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims"
CLASS = Target("resource.k8s.io", "v1beta1", "deviceclasses", name="gpu")

GET = CLAIM.get()
CREATE = CLAIM.create({"kind": "ResourceClaim"})
UPDATE = CLAIM.update({"kind": "ResourceClaim"})
PATCH = CLAIM.json_patch([{"op": "test", "path": "/metadata/uid", "value": "u"}])
MERGE = CLAIM.merge_patch({"metadata": {"uid": "u"}})
STRATEGIC = CLAIM.at("status").strategic_merge_patch({"metadata": {"uid": "u"}})
APPLIED = POD.at("status").apply({"kind": "Pod"}, "someone", force=True)
DELETE = CLAIM.delete("u", "7")
ALL = [GET, CREATE, UPDATE, PATCH, MERGE, STRATEGIC, APPLIED, DELETE]


@pytest.mark.parametrize(
    ("request_", "method", "url", "content_type"),
    [
        (GET, "GET", f"{CLAIMS}/gpu", None),
        (CREATE, "POST", CLAIMS, JSON),
        (UPDATE, "PUT", f"{CLAIMS}/gpu", JSON),
        (PATCH, "PATCH", f"{CLAIMS}/gpu", JSON_PATCH),
        (MERGE, "PATCH", f"{CLAIMS}/gpu", MERGE_PATCH),
        (
            STRATEGIC,
            "PATCH",
            f"{CLAIMS}/gpu/status",
            STRATEGIC_MERGE_PATCH,
        ),
        (
            APPLIED,
            "PATCH",
            "/api/v1/namespaces/team-a/pods/web/status?fieldManager=someone&force=true",
            APPLY,
        ),
        (DELETE, "DELETE", f"{CLAIMS}/gpu", JSON),
        (CLASS.get(), "GET", "/apis/resource.k8s.io/v1beta1/deviceclasses/gpu", None),
        (POD.get(), "GET", "/api/v1/namespaces/team-a/pods/web", None),
    ],
)
def test_http_form(request_: ApiRequest, method: str, url: str, content_type: str | None) -> None:
    """Method, path, query and headers are all that an HTTP client needs."""
    assert (request_.method, request_.url) == (method, url)
    assert request_.headers["Accept"] == JSON
    assert request_.headers.get("Content-Type") == content_type
    split = urlsplit(request_.url)
    assert split.path == request_.path
    assert tuple(parse_qsl(split.query)) == request_.query


def test_body_is_json_in_utf_8() -> None:
    """The content is the body; no body, no content; what JSON cannot express is refused."""
    request = CLAIM.update({"a": ["ü", 1, None]})
    assert request.content == '{"a":["ü",1,null]}'.encode()
    assert GET.content is None
    with pytest.raises(ValueError, match="JSON compliant"):
        _ = CLAIM.update({"a": float("nan")}).content


def test_parts_of_the_path_and_query_are_quoted() -> None:
    """A name cannot lead out of its place, nor a field manager into another parameter."""
    assert Target("g/h", "v1", "r", "n/..", "a b?c#d").path == (
        "/apis/g%2Fh/v1/namespaces/n%2F../r/a%20b%3Fc%23d"
    )
    url = CLAIM.update({}, "me & you=1").url
    assert parse_qsl(urlsplit(url).query) == [("fieldManager", "me & you=1")]


@pytest.mark.parametrize("part", [".", ".."])
def test_no_part_of_the_path_leads_elsewhere(part: str) -> None:
    """A name or namespace that an HTTP client would resolve is refused."""
    for target in (Target("", "v1", "pods", "team-a", part), Target("", "v1", "pods", part, "web")):
        with pytest.raises(ValueError, match="another path"):
            _ = target.get().url


def test_force_goes_with_apply_only() -> None:
    """Apply needs a field manager; force is said only when wanted."""
    with pytest.raises(ValueError, match="field manager"):
        POD.apply({}, "")
    assert ("force", "true") not in POD.apply({}, "me").query
    assert [r.force for r in ALL] == [r is APPLIED for r in ALL]


def test_create_addresses_the_collection() -> None:
    """Whatever name the target has."""
    assert CREATE.target.name == ""
    assert CREATE.path.endswith("/resourceclaims")


def test_create_of_a_subresource() -> None:
    """A binding is created below the pod that it is about."""
    request = Target("", "v1", "pods", "team-a", "web", "binding").create({"kind": "Binding"})
    assert request.path == "/api/v1/namespaces/team-a/pods/web/binding"


@pytest.mark.parametrize(
    ("uid", "version", "preconditions"),
    [
        ("u", "7", {"uid": "u", "resourceVersion": "7"}),
        ("u", "", {"uid": "u"}),
        ("", "", None),
    ],
)
def test_delete_preconditions(uid: str, version: str, preconditions: object) -> None:
    """A delete names the incarnation, and the version if wanted."""
    body = json.loads(CLAIM.delete(uid, version).content or b"")
    assert body.get("preconditions") == preconditions
    assert (body["apiVersion"], body["kind"]) == ("v1", "DeleteOptions")


@pytest.mark.parametrize(
    ("request_", "verb", "resource"),
    [
        (GET, "get", "resourceclaims"),
        (CREATE, "create", "resourceclaims"),
        (UPDATE, "update", "resourceclaims"),
        (PATCH, "patch", "resourceclaims"),
        (STRATEGIC, "patch", "resourceclaims/status"),
        (DELETE, "delete", "resourceclaims"),
    ],
)
def test_permission(request_: ApiRequest, verb: str, resource: str) -> None:
    """What a role must allow."""
    assert request_.permission == Permission(verb, "resource.k8s.io", resource)


@pytest.mark.parametrize("request_", ALL)
@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_success(request_: ApiRequest, status: int) -> None:
    """Every 2xx is success."""
    assert request_.meaning(status) == Meaning(Next.DONE)


READ, STOP, LATER = Next.READ, Next.GIVE_UP, Next.RETRY_LATER


@pytest.mark.parametrize(
    ("request_", "status", "then", "causes"),
    [
        (GET, 404, STOP, [Cause.MISSING]),
        (GET, 429, LATER, [Cause.UNAVAILABLE]),
        (GET, 500, LATER, [Cause.UNAVAILABLE]),
        (GET, None, LATER, [Cause.UNAVAILABLE]),
        (GET, 408, LATER, [Cause.UNAVAILABLE]),
        (GET, 403, STOP, [Cause.REFUSED]),
        (CREATE, 404, STOP, [Cause.MISSING]),
        (CREATE, 409, READ, [Cause.ALREADY_EXISTS]),
        (CREATE, 422, STOP, [Cause.INVALID]),
        (UPDATE, 404, STOP, [Cause.MISSING]),
        (UPDATE, 409, READ, [Cause.STALE, Cause.OTHER_INCARNATION]),
        (UPDATE, 422, READ, [Cause.INVALID]),
        (PATCH, 404, STOP, [Cause.MISSING]),
        (PATCH, 409, READ, [Cause.STALE]),
        (PATCH, 422, READ, [Cause.TEST_FAILED, Cause.INVALID]),
        (MERGE, 409, READ, [Cause.STALE]),
        (MERGE, 422, READ, [Cause.OTHER_INCARNATION, Cause.INVALID]),
        (STRATEGIC, 404, STOP, [Cause.MISSING]),
        (STRATEGIC, 409, READ, [Cause.STALE]),
        (STRATEGIC, 422, READ, [Cause.OTHER_INCARNATION, Cause.INVALID]),
        (APPLIED, 409, READ, [Cause.MISSING, Cause.OTHER_INCARNATION, Cause.OTHER_MANAGER]),
        (APPLIED, 422, READ, [Cause.OTHER_INCARNATION, Cause.INVALID]),
        (DELETE, 404, Next.DONE, [Cause.MISSING]),
        (DELETE, 409, READ, [Cause.OTHER_INCARNATION, Cause.STALE]),
    ],
)
def test_meaning(request_: ApiRequest, status: int, then: Next, causes: list[Cause]) -> None:
    """What a status code means depends on the kind of request."""
    assert request_.meaning(status) == Meaning(then, tuple(causes))


@pytest.mark.parametrize("request_", [r for r in ALL if r.verb is not Verb.GET])
@pytest.mark.parametrize("status", [None, 408, 429, 500, 502, 503, 504])
def test_a_write_without_clear_answer_may_have_happened(
    request_: ApiRequest, status: int | None
) -> None:
    """No answer, 429, 5xx: get first, the write may have happened."""
    assert request_.meaning(status) == Meaning(Next.READ, (Cause.MAY_HAVE_HAPPENED,))


@pytest.mark.parametrize("request_", [r for r in ALL if r.verb is not Verb.GET])
def test_expired(request_: ApiRequest) -> None:
    """410: what the request was made from is too old, so read again."""
    assert request_.meaning(410) == Meaning(Next.READ, (Cause.EXPIRED,))


@pytest.mark.parametrize("request_", ALL)
@pytest.mark.parametrize("status", [301, 400, 401, 403, 405, 415])
def test_refused(request_: ApiRequest, status: int) -> None:
    """Anything else is a refusal that repeating cannot change."""
    assert request_.meaning(status) == Meaning(Next.GIVE_UP, (Cause.REFUSED,))


# Odd input


@pytest.mark.parametrize(
    "build",
    [
        lambda target: target.update({}),
        lambda target: target.json_patch([]),
        lambda target: target.merge_patch({}),
        lambda target: target.strategic_merge_patch({}),
        lambda target: target.apply({}, "someone"),
        lambda target: target.delete("u"),
    ],
)
def test_no_collection_is_written_by_mistake(build: Callable[[Target], ApiRequest]) -> None:
    """Without a name, a delete would delete everything; so only create goes without one."""
    pods = Target("", "v1", "pods", "team-a")
    for nameless in (pods, pods.at("status")):
        with pytest.raises(ValueError, match="pods"):
            build(nameless)
    assert build(POD).path == "/api/v1/namespaces/team-a/pods/web"


def test_a_collection_can_be_read() -> None:
    """RBAC calls it "list"."""
    request = Target("", "v1", "pods", "team-a").get()
    assert request.path == "/api/v1/namespaces/team-a/pods"
    assert request.permission == Permission("list", "", "pods")


def test_bodies_are_any_mappings() -> None:
    """A body, or a part of one, that is a mapping but no dict is written all the same."""
    labels = MappingProxyType({"a": "b"})
    request = POD.update(MappingProxyType({"metadata": {"labels": labels}, "x": ()}))
    assert request.content == b'{"metadata":{"labels":{"a":"b"}},"x":[]}'


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("\ud800", ValueError),
        ({1}, TypeError),
        (b"bytes", TypeError),
    ],
)
def test_bodies_that_are_no_json(value: object, error: type[Exception]) -> None:
    """What has no form in JSON is an error, not something else on the wire."""
    with pytest.raises(error):
        _ = POD.update({"metadata": value}).content


@pytest.mark.parametrize("status", [-1, 0, 100, 302, 304, 418, 499])
def test_statuses_of_no_api_server(status: int) -> None:
    """A status that no API server answers with is a refusal, never a success."""
    for request in ALL:
        assert request.meaning(status) == Meaning(Next.GIVE_UP, (Cause.REFUSED,))
