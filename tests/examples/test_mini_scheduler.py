"""The mini scheduler, in a small cluster of doubles, over HTTP; and what watches over it."""

from typing import Any

import pytest

from dra_core.api.objects import FINALIZER
from dra_core.testing.api_server import ApiServer
from examples.support import demo_cluster, scheduler_demo
from examples.support.invariants import Invariants
from support.claim_json import allocation_json, claim_json


def test_a_small_cluster() -> None:
    """Every pod is scheduled in spite of bad luck and a restart; every invariant holds."""
    result = scheduler_demo.run(20, 4, seconds=60, bad_luck=0.05)
    assert result.problems == []
    found = scheduler_demo.pods_of(result.server)
    assert len(found) == 20
    assert all(pod.node_name for pod in found)
    assert result.requests["create pods/binding"] >= 20
    assert len(result.schedulers) == 2
    assert all(scheduler.tracker.in_flight() == () for scheduler in result.schedulers)
    lines = scheduler_demo.report(result).splitlines()
    devices = demo_cluster.devices_per_node(20, 4)
    for line, node in zip(lines, demo_cluster.node_names(4), strict=False):
        name, _, gpus, _, nics = line.split()
        assert (name, len(gpus), len(nics)) == (node, devices, devices)


def test_out_of_time_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """What has not been scheduled is a problem, and the command says so."""
    assert scheduler_demo.main(["--pods", "2", "--nodes", "2", "--seconds", "0"]) == 1
    assert "pod pod-000 is not bound" in capsys.readouterr().out


# --- the invariants are noticed


def stored(name: str, device: str = "d1", **fields: Any) -> dict[str, Any]:
    """A claim that has a device, for node-1."""
    usual = {"finalizers": (FINALIZER,), "reserved_for": ("pod",), "uid": name}
    return claim_json(name=name, allocation=allocation_json(device), **(usual | fields))


def running(claim: str, node: str = "node-1") -> dict[str, Any]:
    """A pod on a node that uses a claim."""
    entries = [{"name": "devices", "resourceClaimName": claim}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "team-a", "uid": "pod"},
        "spec": {"nodeName": node, "resourceClaims": entries},
    }


@pytest.mark.parametrize(
    ("objects", "problems"),
    [
        ([stored("a"), running("a")], []),
        ([stored("a"), stored("b", "d2")], []),
        ([stored("a"), stored("b")], ["device d/node-1/d1 is allocated to"]),
        ([stored("a", finalizers=())], ["is allocated without finalizer"]),
        ([running("a")], ["is not there"]),
        ([claim_json(name="a"), running("a")], ["is not allocated"]),
        ([stored("a", reserved_for=("other",)), running("a")], ["is not reserved for it"]),
        ([stored("a"), running("a", "node-2")], ["is allocated for another node"]),
    ],
)
def test_what_is_wrong_is_noticed(objects: list[dict[str, Any]], problems: list[str]) -> None:
    """Each rule that is broken is a line, whether it was so before or becomes so."""
    server = ApiServer()
    server.seed(*objects)
    found = Invariants(server).violations
    assert len(found) == len(problems)
    for line, part in zip(found, problems, strict=True):
        assert part in line
