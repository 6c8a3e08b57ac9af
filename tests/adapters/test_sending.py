"""Requests through real clients, answered by the API server double over HTTP on loopback."""

import asyncio
import threading
from collections.abc import Iterator
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from dra_core.adapters import kubernetes_client
from dra_core.adapters.answers import UnreadableAnswerError
from dra_core.api import wire
from dra_core.api.objects import ResourceClaimConsumerReference
from dra_core.api.request import ApiRequest, Cause, Next, Target
from dra_core.claims.binding import BindingPlan, Bound, start_binding
from dra_core.testing.api_server import ApiServer
from dra_core.testing.faults import Fault, FaultyServer, script
from support import clients
from support.clients import SENDERS, Sender
from support.http_api_server import HttpApiServer

Json = dict[str, Any]

CLAIM = Target("resource.k8s.io", "v1", "resourceclaims", "team-a", "gpus")
POD = Target("", "v1", "pods", "team-a", "web")
EXACTLY = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
BODY: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpus", "namespace": "team-a"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": EXACTLY}]}},
}
RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [RESULT]}}


POD_REFERENCE = ResourceClaimConsumerReference("", "pods", "web", "uid-of-web")


def consumer(name: str) -> Json:
    return {"resource": "pods", "name": name, "uid": f"uid-of-{name}"}


class World:
    """The double behind a socket, and one client of it."""

    def __init__(self, server: ApiServer, shell: HttpApiServer, send: Sender) -> None:
        self.server = server
        self.shell = shell
        self.send = send

    def stored(self, target: Target = CLAIM) -> Json:
        """The object as it is stored."""
        found = self.server.find(target.resource, target.namespace, target.name)
        assert found is not None
        return found


@pytest.fixture(params=SENDERS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    server = ApiServer()
    with HttpApiServer(server) as shell, SENDERS[request.param](shell.url) as send:
        yield World(server, shell, send)


def test_create_and_get(world: World) -> None:
    """What was created can be read; both answers are what the server has."""
    before = deepcopy(BODY)
    created = world.send(CLAIM.create(BODY, "tester"))
    assert created.status == 201
    assert created.body == world.stored()
    assert world.stored()["metadata"]["managedFields"][0]["manager"] == "tester"
    assert world.send(CLAIM.get()) == (200, world.stored())
    assert before == BODY


def test_status_json_patch(world: World) -> None:
    """A JSON patch of the status is applied when its test holds, else refused."""
    world.server.seed(BODY | {"status": {"allocation": ALLOCATION}})
    uid = world.stored()["metadata"]["uid"]
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "add", "path": "/status/reservedFor", "value": [consumer("web")]},
    ]
    status, body = world.send(CLAIM.at("status").json_patch(patch))
    assert (status, body) == (200, world.stored())
    assert world.stored()["status"]["reservedFor"] == [consumer("web")]
    patch[0]["value"] = "another"
    request = CLAIM.at("status").json_patch(patch)
    status, body = world.send(request)
    assert body is not None
    assert (status, body["kind"], body["code"]) == (422, "Status", 422)
    assert Cause.TEST_FAILED in request.meaning(status).causes


def test_strategic_merge_patch(world: World) -> None:
    """One entry of reservedFor is added beside those that are there."""
    status = {"allocation": ALLOCATION, "reservedFor": [consumer("a")]}
    world.server.seed(BODY | {"status": status})
    patch = {"status": {"reservedFor": [consumer("b")]}}
    answer = world.send(CLAIM.at("status").strategic_merge_patch(patch))
    assert answer == (200, world.stored())
    reserved = world.stored()["status"]["reservedFor"]
    assert sorted(entry["name"] for entry in reserved) == ["a", "b"]


def test_merge_patch(world: World) -> None:
    """A merge patch sets and removes; text beyond ASCII arrives as it was."""
    world.server.seed(BODY | {"metadata": BODY["metadata"] | {"labels": {"old": "x"}}})
    patch = {"metadata": {"labels": {"old": None}, "annotations": {"note": "größer 🙂"}}}
    assert world.send(CLAIM.merge_patch(patch)).status == 200
    meta = world.stored()["metadata"]
    assert not meta.get("labels")
    assert meta["annotations"] == {"note": "größer 🙂"}


def test_server_side_apply(world: World) -> None:
    """Apply needs its content type, the field manager, and force against another's field."""
    world.server.seed(BODY)
    labels = {"metadata": {"name": "gpus", "namespace": "team-a", "labels": {"a": "1"}}}
    document = {"apiVersion": BODY["apiVersion"], "kind": BODY["kind"]} | labels
    assert world.send(CLAIM.apply(document, "one")).status == 200
    document["metadata"] = labels["metadata"] | {"labels": {"a": "2"}}
    refused = CLAIM.apply(document, "two")
    status, _ = world.send(refused)
    assert status == 409
    assert Cause.OTHER_MANAGER in refused.meaning(status).causes
    assert world.send(CLAIM.apply(document, "two", force=True)).status == 200
    assert world.stored()["metadata"]["labels"] == {"a": "2"}


def test_update_and_conflict(world: World) -> None:
    """An update of an old version is refused with 409 and the server's words."""
    world.server.seed(BODY)
    old = world.stored()
    new = old | {"metadata": old["metadata"] | {"labels": {"a": "b"}}}
    assert world.send(CLAIM.update(new)).status == 200
    status, body = world.send(CLAIM.update(new))
    assert body is not None
    assert (status, body["reason"]) == (409, "Conflict")


def test_not_found(world: World) -> None:
    """404 is an answer; names are quoted once."""
    status, body = world.send(CLAIM.get())
    assert body is not None
    assert (status, body["reason"]) == (404, "NotFound")
    odd = Target("", "v1", "nodes", name="a b/c%2F?x=1&ü")
    world.server.seed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": odd.name}})
    status, body = world.send(odd.get())
    assert body is not None
    assert (status, body["metadata"]["name"]) == (200, odd.name)


def test_delete(world: World) -> None:
    """The preconditions of a delete reach the server."""
    world.server.seed(BODY)
    uid = world.stored()["metadata"]["uid"]
    assert world.send(CLAIM.delete(uid="another")).status == 409
    assert world.send(CLAIM.delete(uid=uid)).status == 200
    assert world.send(CLAIM.delete(uid=uid)).status == 404


def test_subresource_create(world: World) -> None:
    """A pod is bound by creating its binding."""
    world.server.seed({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "web", "namespace": "team-a"}, "spec": {"containers": []}})  # fmt: skip
    target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    binding = {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web"}, "target": target,
    }  # fmt: skip
    assert world.send(POD.at("binding").create(binding)).status == 201
    assert world.stored(POD)["spec"]["nodeName"] == "n1"


def test_a_machine_runs_through_any_client(world: World) -> None:
    """A claim is allocated and reserved by the answers of ``send`` alone."""
    world.server.seed(BODY)
    claim = wire.decode_resource_claim(world.stored())
    allocation = wire.decode_allocation_result(ALLOCATION)
    binding = start_binding(claim, BindingPlan(POD_REFERENCE, allocation, is_new=True))
    for _ in range(10):
        if binding.request is None:
            break
        binding = binding.answered(*world.send(binding.request))
    assert isinstance(binding.outcome, Bound)
    status = world.stored()["status"]
    assert status["reservedFor"] == [consumer("web")]
    assert status["allocation"]["devices"]["results"] == [RESULT]


@pytest.mark.parametrize("client", SENDERS)
def test_lost_answers(client: str) -> None:
    """A lost answer is no answer, sent once; the reason can be had."""
    server = ApiServer()
    sent: list[ApiRequest] = []
    faulty = FaultyServer(server, script([Fault.LOST_ANSWER, Fault.LOST_REQUEST]))

    def send(request: ApiRequest) -> tuple[int | None, Any]:
        sent.append(request)
        return faulty.send(request)

    with HttpApiServer(server, send) as shell, SENDERS[client](shell.url) as sender:
        reasons: list[Exception] = []
        request = CLAIM.create(BODY)
        status, body = sender(request, lost=reasons.append)
        assert (status, body) == (None, None)
        assert request.meaning(status).then is Next.READ
        assert len(reasons) == len(sent) == 1
        assert sender(CLAIM.get()) == (None, None)
        assert sender(CLAIM.get()).status == 200
    assert len(sent) == 3


class Odd:
    """A server that answers with what it is told to, and notes what it was sent."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.silence = threading.Event()
        odd = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.path.rstrip("/") == "/version":
                    self.respond(200, b'{"gitVersion": "v1.34.0"}')
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                odd.requests.append((self.command, self.path, headers))
                if not odd.answers:
                    odd.silence.wait(10)
                    return
                self.respond(*odd.answers.pop(0))

            def respond(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                if status == 302:
                    self.send_header("Location", "/version")
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

            def log_message(self, *args: Any) -> None:
                """Nothing."""

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def odd() -> Iterator[Odd]:
    server = Odd()
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.silence.set()
    server.http.shutdown()
    server.http.server_close()
    thread.join()


@pytest.mark.parametrize("client", SENDERS)
def test_nobody_listens(client: str, odd: Odd) -> None:
    """A refused connection is no answer."""
    reasons: list[Exception] = []
    with SENDERS[client](odd.url) as send:
        odd.answers = [(404, b"{}")]
        assert send(CLAIM.get()).status == 404
        odd.http.shutdown()
        odd.http.server_close()
        assert send(CLAIM.create(BODY), lost=reasons.append) == (None, None)
    assert len(reasons) == 1


@pytest.mark.parametrize("client", SENDERS)
def test_answers_of_something_else(client: str, odd: Odd) -> None:
    """A refusal keeps its status without JSON; a success without an object is no answer."""
    with SENDERS[client](odd.url) as send:
        odd.answers = [(502, b"<html>"), (404, b'["?"]'), (409, b"{}"), (403, b"no")]
        assert send(CLAIM.get()) == (502, None)
        assert send(CLAIM.get()) == (404, None)
        assert send(CLAIM.get()) == (409, {})
        assert send(CLAIM.get()) == (403, None)
        for content in (b"<html>", b"", b"[]", b'{"a":'):
            reasons: list[Exception] = []
            odd.answers = [(200, content)]
            assert send(CLAIM.get(), lost=reasons.append) == (None, None)
            assert [type(reason) for reason in reasons] == [UnreadableAnswerError]
        odd.answers = [(503, b"{}"), (429, b"{}")]
        assert send(CLAIM.delete()) == (503, {})
        assert send(CLAIM.delete()) == (429, {})
    assert len(odd.requests) == 10  # nothing was repeated


@pytest.mark.parametrize("client", SENDERS)
def test_silence_ends_with_the_timeout(client: str, odd: Odd) -> None:
    """A server that says nothing within the time is no answer."""
    reasons: list[Exception] = []
    with SENDERS[client](odd.url) as send:
        answer = send(CLAIM.update(BODY), timeout=0.2, lost=reasons.append)
    assert answer == (None, None)
    assert len(reasons) == 1
    assert "imeout" in type(reasons[0]).__name__


@pytest.mark.parametrize("client", SENDERS)
def test_credentials_and_headers(client: str, odd: Odd) -> None:
    """The client's credentials go with every request, beside the request's own headers."""
    with SENDERS[client](odd.url) as send:
        odd.answers = [(200, b"{}")]
        assert send(CLAIM.apply(BODY, "me & you", force=True)) == (200, {})
    ((method, path, headers),) = odd.requests
    assert method == "PATCH"
    assert path == f"{CLAIM.path}?fieldManager=me+%26+you&force=true"
    assert headers["authorization"] == "Bearer secret"
    assert headers["content-type"] == "application/apply-patch+yaml"
    assert headers["accept"] == "application/json"


@pytest.mark.parametrize("client", SENDERS)
def test_unauthorized(client: str, odd: Odd) -> None:
    """401 is an answer; kr8s has then read its credentials anew and tried again."""
    with SENDERS[client](odd.url) as send:
        odd.answers = [(401, b'{"message": "expired"}')] * 9
        assert send(CLAIM.get()) == (401, {"message": "expired"})
        odd.answers = [(401, b'{"message": "expired"}'), (200, b"{}")]
        assert send(CLAIM.get()).status == (200 if client.startswith("kr8s") else 401)


# What is peculiar to one package


def test_the_two_kinds_of_kr8s_do_not_mix(odd: Odd) -> None:
    """Each API object belongs to its own event loop; the wrong function says so."""
    import kr8s

    from dra_core.adapters import kr8s_client

    with clients.kr8s_api(odd.url) as api, pytest.raises(TypeError, match="asyncio"):
        asyncio.run(kr8s_client.send_async(api, CLAIM.get(), timeout=1))
    with pytest.raises(TypeError, match=r"kr8s\.api\(\)"):
        kr8s_client.send(object(), CLAIM.get(), timeout=1)
    assert odd.requests == []
    assert not issubclass(kr8s.asyncio.Api, kr8s.Api)


def test_credentials_of_kubernetes_are_renewed(odd: Odd) -> None:
    """The hook of the configuration is asked before each request; default headers go along."""

    def renew(configuration: Any) -> None:
        configuration.api_key["authorization"] = f"Bearer {len(odd.requests)}"

    with clients.kubernetes_api(odd.url) as api:
        api.configuration.api_key = {"authorization": "old"}
        api.configuration.refresh_api_key_hook = renew
        api.set_default_header("X-Mine", "1")
        api.set_default_header("ACCEPT", "text/html")
        api.cookie = "a=b"
        odd.answers = [(200, b"{}")] * 2
        for _ in range(2):
            kubernetes_client.send(api, CLAIM.get(), timeout=1)
    headers = [sent for _, _, sent in odd.requests]
    assert [sent["authorization"] for sent in headers] == ["Bearer 0", "Bearer 1"]
    assert {(sent["x-mine"], sent["cookie"], sent["accept"]) for sent in headers} == {
        ("1", "a=b", "application/json")
    }


def test_kubernetes_without_credentials(odd: Odd) -> None:
    """A client without a token sends none, and redirects are not followed."""
    with clients.kubernetes_api(odd.url) as api:
        api.configuration.api_key = {}
        odd.answers = [(302, b"")]
        assert kubernetes_client.send(api, CLAIM.get(), timeout=1) == (302, None)
    ((_, _, headers),) = odd.requests
    assert "authorization" not in headers
