"""Bad luck: what becomes of a request, and what its sender hears of it."""

import random
from typing import Any

import pytest

from dra_core.api.request import ApiRequest, Target
from dra_core.testing.api_server import ApiServer
from dra_core.testing.faults import Fault, FaultyServer, random_delay, random_faults, script

POD = Target("", "v1", "pods", "team-a", "web")
LABEL = POD.merge_patch({"metadata": {"labels": {"a": "b"}}})


def world() -> tuple[ApiServer, dict[str, Any]]:
    """A server with one pod."""
    server = ApiServer()
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
    return server, server.send(POD.create(body)).body


@pytest.mark.parametrize(
    ("fault", "heard", "done"),
    [
        (None, 200, True),
        (Fault.LOST_REQUEST, None, False),
        (Fault.LOST_ANSWER, None, True),
        (Fault.CONTENTION, 200, True),
        (Fault.CONFLICT, 409, False),
        (Fault.TOO_MANY, 429, False),
        (Fault.UNAVAILABLE, 503, False),
        (Fault.HIDDEN, 503, True),
        (Fault.RESTART, 200, True),
    ],
)
def test_faults(fault: Fault | None, heard: int | None, done: bool) -> None:
    """What the sender hears, and whether the request was carried out."""
    server, _ = world()
    faulty = FaultyServer(server, script([fault]))
    status, body = faulty.send(LABEL)
    assert status == heard
    assert (body is None) is (heard is None)
    assert (server.objects()[0]["metadata"].get("labels") == {"a": "b"}) is done
    assert faulty.send(POD.get())[0] == 200  # the script is over


def test_contention() -> None:
    """Somebody was faster: a request that needs the newest copy fails, another succeeds."""
    server, obj = world()
    faulty = FaultyServer(server, script([Fault.CONTENTION] * 3))
    assert faulty.send(POD.update(obj))[0] == 409
    assert faulty.send(LABEL)[0] == 200
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}}
    assert faulty.send(POD.create(body))[0] == 201  # nothing there to change


def test_reads_have_no_conflicts() -> None:
    """Only a write can be refused as a conflict."""
    server, _ = world()
    assert FaultyServer(server, script([Fault.CONFLICT])).send(POD.get())[0] == 200


def test_restart() -> None:
    """After a restart the server remembers only what follows."""
    server, _ = world()
    FaultyServer(server, script([Fault.RESTART])).send(LABEL)
    assert len(server.events(server.version - 1)) == 1
    assert server.oldest == server.version - 1


def test_random_faults() -> None:
    """Each fault as often as asked for; the same seed gives the same faults."""
    rates = {Fault.LOST_ANSWER: 0.2, Fault.CONFLICT: 0.3}

    def drawn(seed: int) -> list[Fault | None]:
        source = random_faults(random.Random(seed), rates)
        return [source(LABEL) for _ in range(2000)]

    faults = drawn(1)
    assert faults == drawn(1)
    assert faults != drawn(2)
    assert 300 < faults.count(Fault.LOST_ANSWER) < 500
    assert 500 < faults.count(Fault.CONFLICT) < 700
    assert faults.count(None) == 2000 - sum(map(faults.count, rates))
    with pytest.raises(ValueError, match="sum up"):
        random_faults(random.Random(1), {Fault.CONFLICT: 0.6, Fault.HIDDEN: 0.6})


def test_random_delay() -> None:
    """From nothing to the most, both included."""
    delay = random_delay(random.Random(1), 2)
    assert {delay() for _ in range(100)} == {0, 1, 2}


def test_sources_see_the_request() -> None:
    """A source can choose by what is asked."""
    server, _ = world()

    def no_patches(request: ApiRequest) -> Fault | None:
        return Fault.UNAVAILABLE if request.method == "PATCH" else None

    faulty = FaultyServer(server, no_patches)
    assert (faulty.send(LABEL)[0], faulty.send(POD.get())[0]) == (503, 200)
    faulty.source = script(())
    assert faulty.send(LABEL)[0] == 200
