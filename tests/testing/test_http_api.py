"""The API server double as HTTP has it, and behind a socket."""

import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest

from dra_core.api.request import ApiRequest, Target
from dra_core.testing.api_server import ApiServer
from dra_core.testing.faults import Fault, FaultyServer, script
from dra_core.testing.http_api import HttpAnswer, expired_line, handle, watch_line
from dra_core.testing.server_answers import RefusedError
from dra_core.testing.watch import WatchEvent
from support.http_api_server import HttpApiServer

Json = dict[str, Any]

PODS = Target("", "v1", "pods", "team-a")
POD = Target("", "v1", "pods", "team-a", "web")


def pod(name: str = "web", **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}}


def ask(server: ApiServer, method: str, url: str, body: Any = None, **headers: str) -> HttpAnswer:
    """A request by its URL; headers with underscores for dashes."""
    path, _, query = url.partition("?")
    pairs = dict(part.split("=", 1) for part in query.split("&") if part)
    content = b"" if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return handle(server, method, path, pairs, named, content)


def sent(server: ApiServer, request: ApiRequest) -> HttpAnswer:
    """A request through HTTP, as any client would send it."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    content = request.content or b""
    return handle(
        server, request.method, request.path, dict(request.query), headers, content
    )  # fmt: skip


def test_every_request_means_the_same_through_http() -> None:
    """What ApiRequest makes of itself for HTTP is understood as it was meant."""
    binding = {"metadata": {"name": "web"}, "target": {"name": "n1"}}
    claim = Target("resource.k8s.io", "v1", "resourceclaims", "team-a", "a")
    requests = [
        PODS.create(pod(), "me"),
        POD.get(),
        PODS.get(),
        Target("", "v1", "pods").get(),
        POD.merge_patch({"metadata": {"labels": {"a": "b"}}}, "you"),
        POD.strategic_merge_patch({"metadata": {"finalizers": ["x/y"]}}),
        POD.json_patch([{"op": "test", "path": "/kind", "value": "Pod"}]),
        POD.at("status").apply(pod() | {"status": {"phase": "Running"}}, "me", force=True),
        POD.at("binding").create(binding),
        POD.update(pod()),
        claim.apply(
            {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {}}, "me"
        ),
        POD.delete(uid="other"),
        POD.delete(),
        Target("", "v1", "nodes").create({"apiVersion": "v1", "kind": "Node", "metadata": {}}),
    ]
    direct, through = ApiServer(), ApiServer()
    for request in requests:
        answer = direct.send(request)
        http = sent(through, request)
        # The default manager is the client's agent, here none.
        assert (http.status, http.body) == answer
    assert through.objects() == direct.objects()


@pytest.mark.parametrize(
    ("method", "url", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/healthz", 404),
        ("GET", "/api/v1/namespaces/team-a", 404),
        ("GET", "/api/v1/namespaces/team-a/pods/web/status/more", 404),
        ("GET", "/apis/resource.k8s.io", 200),
        ("GET", "/apis/other", 404),
        ("GET", "/api/v9/pods", 404),
        ("GET", "/api/v1/pods?fieldSelector=a in (b)", 400),
        ("GET", "/api/v1/pods?watch=1&resourceVersion=x", 400),
        ("GET", "/api/v1/tables?watch=1", 404),
        ("HEAD", "/api/v1/pods", 405),
        ("POST", "/api/v1/namespaces/team-a/pods?dryRun=All", 400),
    ],
)
def test_requests_that_make_no_sense(method: str, url: str, status: int) -> None:
    """Unknown places, methods and parameters are refused."""
    answer = ask(ApiServer(), method, url)
    assert answer.status == status


def test_bodies_that_are_no_json() -> None:
    """Text that is no JSON is refused, YAML in an apply too."""
    for kind in ("application/json", "application/apply-patch+yaml"):
        answer = handle(
            ApiServer(), "PATCH", "/api/v1/nodes/n", {}, {"content-type": kind}, b"a: 1"
        )
        assert answer.status == 400


def test_the_manager_is_the_agent() -> None:
    """Without a field manager, it is the first word of the user agent."""
    server = ApiServer()
    ask(server, "POST", "/api/v1/namespaces/team-a/pods", pod(a="b"), user_agent="kubectl/v1 (x)")
    (managed,) = server.objects()[0]["metadata"]["managedFields"]
    assert managed["manager"] == "kubectl"


def test_selectors() -> None:
    """Fields and labels, by equality and difference, presence and absence."""
    server = ApiServer()
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y", "gpu": ""}), ("c", {})):
        server.send(PODS.create(pod(name, **labels)))
    cases = {
        "labelSelector=app=x": "a",
        "labelSelector=app==y": "b",
        "labelSelector=app!=x": "bc",
        "labelSelector=app": "ab",
        "labelSelector=!app": "c",
        "labelSelector=app,gpu=": "b",
        "fieldSelector=metadata.name=b": "b",
        "fieldSelector=spec.nodeName=": "abc",
        "fieldSelector=status.phase!=Pending": "",
        "fieldSelector=metadata.name!=a&labelSelector=app": "b",
    }
    for query, names in cases.items():
        body = ask(server, "GET", f"/api/v1/pods?{query}").body
        assert "".join(item["metadata"]["name"] for item in body["items"]) == names, query


def test_watches() -> None:
    """A watch goes on from a version, or begins with what there is; too old is gone."""
    server = ApiServer()
    server.send(PODS.create(pod("a")))
    watch = ask(server, "GET", "/api/v1/pods?watch=true&labelSelector=app").watch
    later = ask(server, "GET", "/api/v1/namespaces/team-b/pods?watch=1&resourceVersion=101").watch
    initial = ask(server, "GET", "/api/v1/pods?watch=1&resourceVersion=0").watch
    assert watch is not None
    assert later is not None
    assert initial is not None
    server.send(PODS.create(pod("b", app="x")))
    assert [event.object["metadata"]["name"] for event in watch.poll()] == ["b"]
    assert later.poll() == []
    assert len(initial.poll()) == 2
    server.restart()
    expired = ask(server, "GET", "/api/v1/pods?watch=1&resourceVersion=101")
    assert (expired.status, expired.body["reason"]) == (410, "Expired")


def test_lines() -> None:
    """A watch is one JSON object a line; the last one may be an error."""
    assert json.loads(watch_line(WatchEvent("ADDED", {"a": 1}))) == {
        "type": "ADDED", "object": {"a": 1},
    }  # fmt: skip
    line = json.loads(expired_line(RefusedError(410, "too old")))
    assert (line["type"], line["object"]["code"]) == ("ERROR", 410)


def test_discovery() -> None:
    """Every kind can be found by its group and version."""
    server = ApiServer()
    assert ask(server, "GET", "/api").body["versions"] == ["v1"]
    groups = ask(server, "GET", "/apis").body["groups"]
    assert [group["name"] for group in groups] == ["resource.k8s.io", "scheduling.k8s.io"]
    assert groups[0]["preferredVersion"]["version"] == "v1"
    assert ask(server, "GET", "/version").body["major"] == "1"
    assert "kind" in ask(server, "GET", "/apis/resource.k8s.io").body
    for kind in server.kinds:
        for version in kind.versions:
            place = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
            body = ask(server, "GET", place).body
            assert body["groupVersion"] == kind.api_version(version)
            names = {entry["name"]: entry for entry in body["resources"]}
            assert names[kind.resource]["kind"] == kind.kind
            assert names[kind.resource]["namespaced"] is kind.namespaced
            assert (f"{kind.resource}/status" in names) is kind.has_status


# Behind a socket


def fetch(url: str, method: str = "GET", body: Any = None) -> tuple[int, Any]:
    """One request with the standard library."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, content, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_socket() -> None:
    """Objects can be created, read and deleted over the wire; refusals have a body."""
    with HttpApiServer(ApiServer()) as shell:
        pods = f"{shell.url}/api/v1/namespaces/team-a/pods"
        assert fetch(pods, "POST", pod())[0] == 201
        status, body = fetch(f"{pods}/web")
        assert (status, body["metadata"]["name"]) == (200, "web")
        assert fetch(f"{pods}/web?x=1", "DELETE")[0] == 200
        status, body = fetch(f"{pods}/web")
        assert (status, body["reason"]) == (404, "NotFound")


def test_socket_watch() -> None:
    """A watch shows changes as they happen, and ends when its time is up."""
    server = ApiServer()
    with HttpApiServer(server, watch_delay=0.01) as shell:
        url = f"{shell.url}/api/v1/pods?watch=1&timeoutSeconds=2"
        with urllib.request.urlopen(url, timeout=5) as stream:
            for name in "ab":
                with shell.lock:
                    server.send(PODS.create(pod(name)))
                event = json.loads(stream.readline())
                assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)
            with shell.lock:
                server.send(PODS.create(pod("c")))
                server.restart()
            assert json.loads(stream.readline())["type"] == "ERROR"
            assert stream.read() == b""


def test_socket_without_answer() -> None:
    """A lost answer closes the connection; the request was carried out."""
    server = ApiServer()
    faulty = FaultyServer(server, script([Fault.LOST_ANSWER]))
    with HttpApiServer(server, faulty.send) as shell:
        with pytest.raises(OSError, match=r"closed|reset"):
            fetch(f"{shell.url}/api/v1/namespaces/team-a/pods", "POST", pod())
        assert fetch(f"{shell.url}/api/v1/namespaces/team-a/pods/web")[0] == 200


def test_socket_with_several_clients() -> None:
    """Many clients at once: every request is carried out once."""
    with HttpApiServer(ApiServer()) as shell:
        pods = f"{shell.url}/api/v1/namespaces/team-a/pods"
        statuses: list[int] = []

        def create(number: int) -> None:
            statuses.append(fetch(pods, "POST", pod(f"pod-{number // 2}"))[0])

        threads = [threading.Thread(target=create, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [201] * 8 + [409] * 8
        assert len(fetch(pods)[1]["items"]) == 8
