"""The rest of a cluster, for the scheduler demo: drivers, kubelets, the claim controller.

What may live here: doubles that do one thing at a time when ``step`` is called, on an API
server in memory, and ``Loop``, the thread that calls it.
"""

import threading
from collections.abc import Callable
from typing import Any

from dra_core.api.request import ApiRequest, Target
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import ClaimController, garbage
from dra_core.testing.watch import Watch
from examples.support import demo_cluster as demo

Send = Callable[[ApiRequest], tuple[int | None, Any]]
RESOURCES = Target("resource.k8s.io", "v1", "")


class Loop(threading.Thread):
    """Calls ``step`` every so many seconds, under ``lock``, until ``stop`` is set.

    ``error`` is what it raised, which ends it.
    """

    def __init__(
        self,
        step: Callable[[], object],
        seconds: float,
        lock: threading.RLock,
        stop: threading.Event,
    ) -> None:
        super().__init__(name=getattr(step, "__qualname__", "loop"), daemon=True)
        self.error: Exception | None = None
        self._step, self._seconds, self._lock, self._stop_event = step, seconds, lock, stop

    def run(self) -> None:
        """The thread."""
        try:
            while not self._stop_event.wait(self._seconds):
                with self._lock:
                    self._step()
        except Exception as error:  # noqa: BLE001 - whoever started the thread looks at it
            self.error = error


class Drivers:
    """Publish the devices of one node after the other, and attach network cards."""

    def __init__(self, server: ApiServer, send: Send, nodes: list[str], devices: int) -> None:
        self._send = send
        self._unpublished = [
            body
            for number, node in enumerate(nodes)
            for body in demo.slices_of_node(node, number, devices)
        ]
        self._claims = Watch(server, _target("resourceclaims"))
        self._attached: set[tuple[str, str]] = set()

    def step(self) -> None:
        """Publish the next slice, and look at the claims that have changed."""
        if self._unpublished:
            self._send(_target("resourceslices").create(self._unpublished.pop(0), "drivers"))
        for event in self._claims.poll():
            self._attach(event.object)

    def _attach(self, claim: dict[str, Any]) -> None:
        """Report that the network cards of a claim are attached, once per allocation."""
        allocation = claim["status"].get("allocation") or {}
        results = (allocation.get("devices") or {}).get("results") or []
        nics = [result for result in results if result["driver"] == demo.NIC_DRIVER]
        meta = claim["metadata"]
        once = (meta["uid"], str(nics))
        if not nics or once in self._attached:
            return
        condition = {
            "type": demo.ATTACHED,
            "status": "True",
            "reason": "Attached",
            "message": "the card is there",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        entries = [
            {key: result[key] for key in ("driver", "pool", "device")} | {"conditions": [condition]}
            for result in nics
        ]
        body = {
            "apiVersion": claim["apiVersion"],
            "kind": "ResourceClaim",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
            "status": {"devices": entries},
        }
        target = _target("resourceclaims", meta["namespace"], meta["name"], "status")
        status, _ = self._send(target.apply(body, "nic-driver", force=True))
        if status == 200:
            self._attached.add(once)


class Kubelets:
    """Jobs come to an end some time after they were bound."""

    def __init__(self, server: ApiServer, send: Send, steps: int = 20) -> None:
        self._send, self._steps = send, steps
        self._pods = Watch(server, Target("", "v1", "pods"))
        self._left: dict[str, int] = {}

    def step(self) -> None:
        """Time passes."""
        for event in self._pods.poll():
            obj = event.object
            is_job = "job" in (obj["metadata"].get("labels") or {})
            if is_job and obj["spec"].get("nodeName"):
                self._left.setdefault(obj["metadata"]["name"], self._steps)
        for name, left in self._left.items():
            self._left[name] = left - 1
            if left == 0:
                target = Target("", "v1", "pods", demo.NAMESPACE, name, "status")
                self._send(target.merge_patch({"status": {"phase": "Succeeded"}}, "kubelet"))


class Controllers:
    """The claim controller and the garbage collector, whenever something has changed."""

    def __init__(self, server: ApiServer, send: Send) -> None:
        self._server, self._send = server, send
        self._controller = ClaimController(server, send)
        self._seen = -1

    def step(self) -> None:
        """Look, if there is something new, and do all that is to be done."""
        if self._server.version == self._seen:
            return
        self._seen = self._server.version
        self._controller.look()
        while self._controller.step():
            pass
        for request in garbage(self._server):
            self._send(request)


def _target(resource: str, namespace: str = "", name: str = "", subresource: str = "") -> Target:
    return Target(RESOURCES.group, RESOURCES.version, resource, namespace, name, subresource)
