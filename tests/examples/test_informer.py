"""The informer of the example scheduler: whatever comes, it goes on."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from kubernetes.client.exceptions import ApiException

from dra_core.api.core import Node
from dra_core.errors import MalformedObjectError
from dra_core.scheduling.assume_cache import AssumeCache
from examples.support import informer as module
from examples.support.informer import Informer

Json = dict[str, Any]


def node(name: str, version: int, **members: Any) -> Json:
    """A node as a list has it: without kind."""
    return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version)}} | members


def broken(name: str, version: int) -> Json:
    """A node that cannot be read."""
    return node(name, version, status={"allocatable": "many"})


def event(what: str, obj: Json) -> str:
    """A line of a watch."""
    return json.dumps({"type": what, "object": {"apiVersion": "v1", "kind": "Node"} | obj})


def listed(version: int, *items: Json, status: int = 200) -> "Response":
    """The answer to a list."""
    meta = {"resourceVersion": str(version)}
    body = {"apiVersion": "v1", "kind": "NodeList", "metadata": meta, "items": items}
    return Response(json.dumps(body).encode(), status)


def watched(*lines: str) -> "Response":
    """The answer to a watch that ends after these lines."""
    return Response("".join(f"{line}\n" for line in lines).encode())


@attrs.define
class Response:
    """As much of a response as the client's ``Watch`` uses."""

    data: bytes
    status: int = 200
    reason: str = ""

    def stream(self, **_options: object) -> Iterator[bytes]:
        yield self.data

    def close(self) -> None: ...

    def release_conn(self) -> None: ...


class Script:
    """Answers lists and watches in this order; then the process is told to stop.

    Whether each was a list or a watch, and from where, is in ``asked``.
    """

    def __init__(self, *answers: Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.before: Callable[[], object] = list
        self.stopping = threading.Event()
        self.reported: list[Exception] = []
        self.cache = AssumeCache(Node, self.reported.append)
        self.informer = Informer(self.answer, self.cache, self.reported.append, self.stopping)

    def answer(self, **options: Any) -> Response:
        self.before()
        self.asked.append(f"watch {options['resource_version']}" if "watch" in options else "list")
        if not self.answers:
            self.stopping.set()
            return listed(0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run(self) -> dict[str, str]:
        """Let it run to its end; the nodes that the cache has then, with their versions."""
        self.informer.run()
        return {found.name: found.metadata.resource_version for found in self.cache.list()}


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)


def test_what_cannot_be_read_is_reported_and_left_out() -> None:
    """In a list and in a watch, with object and field; and what comes after it is shown."""
    script = Script(
        listed(5, node("a", 1), broken("b", 2), node("c", 3)),
        watched(event("ADDED", broken("d", 6)), event("ADDED", node("e", 7))),
    )
    assert script.run() == {"a": "1", "c": "3", "e": "7"}
    assert script.asked == ["list", "watch 5", "watch 7"]
    errors = script.reported
    assert all(isinstance(error, MalformedObjectError) for error in errors)
    assert [str(error).split(":")[0] for error in errors] == ["Node 'b'", "Node 'd'"]
    assert all("status.allocatable" in str(error) for error in errors)


def test_a_known_object_that_becomes_unreadable_stays_until_it_is_gone() -> None:
    """Its devices are in use: neither a watch nor a list takes its older copy away."""
    changes = Script(
        listed(1, node("a", 1)),
        watched(event("MODIFIED", broken("a", 2)), event("ADDED", node("b", 3))),
        ApiException(status=410),
        listed(5, broken("a", 4), node("b", 3)),
    )
    assert changes.run() == {"a": "1", "b": "3"}
    assert len(changes.reported) == 2
    gone = Script(listed(1, node("a", 1)), watched(event("DELETED", broken("a", 2))))
    assert gone.run() == {}
    assert gone.asked == ["list", "watch 1", "watch 2"]
    assert gone.reported == []


def test_another_object_of_the_name_is_another_object() -> None:
    """The older copy stands for an unreadable object only if the UID is the same."""
    other = broken("a", 4)
    other["metadata"]["uid"] = "other"
    script = Script(listed(1, node("a", 1)), ApiException(status=410), listed(5, other))
    assert script.run() == {}


@pytest.mark.parametrize(
    ("trouble", "reported"),
    [
        (ApiException(status=410), []),
        (watched(json.dumps({"type": "ERROR", "object": {"code": 410, "reason": "Expired",
                                                         "message": "too old"}})), []),
        (watched("no JSON"), [TypeError]),
        (watched(event("DELETED", {})), [KeyError]),
        (RuntimeError("nobody has foreseen this"), [RuntimeError]),
    ],
)  # fmt: skip
def test_after_any_trouble_it_lists_anew(
    trouble: Response | Exception, reported: list[type[Exception]]
) -> None:
    """A watch that fails is no end; what is not usual is reported."""
    script = Script(
        listed(1), trouble, listed(5, node("a", 4)), watched(event("ADDED", node("b", 6))),
    )  # fmt: skip
    assert script.run() == {"a": "4", "b": "6"}
    assert script.asked[:4] == ["list", "watch 1", "list", "watch 5"]
    assert [type(error) for error in script.reported] == reported


def test_a_first_list_that_fails_is_tried_again() -> None:
    """Only a list that was shown counts: before that, devices that are in use look free."""
    script = Script(listed(1, status=503), Response(b"<html>"), listed(2, node("a", 1)))
    at_first: list[bool] = []
    script.before = lambda: at_first.append(script.informer.listed.is_set())
    assert script.run() == {"a": "1"}
    assert script.asked == ["list", "list", "list", "watch 2"]
    assert at_first == [False, False, False, True]
    assert [type(error) for error in script.reported] == [json.JSONDecodeError]
