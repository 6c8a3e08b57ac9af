"""The mini scheduler in a cluster of v1alpha3, where drivers allocate claims, too."""

import time
from typing import Any

from kubernetes import client as kube

from dra_core.api.request import Target
from dra_core.testing.api_server import ApiServer
from examples.mini_scheduler import MiniScheduler
from examples.support.http_api_server import HttpApiServer
from examples.support.invariants import Invariants

GROUP, VERSION, NAMESPACE = "resource.k8s.io", "v1alpha3", "team-a"
CONTROLLER = "classic.example.com"
UNSUITABLE = ["node-0", "node-2"]
Json = dict[str, Any]


def made(api_version: str, kind: str, name: str, **members: Any) -> Json:
    """An object; classes, slices and nodes have no namespace."""
    meta = {"name": name}
    if kind in ("Pod", "ResourceClaim"):
        meta["namespace"] = NAMESPACE
    return {"apiVersion": api_version, "kind": kind, "metadata": meta} | members


def cluster() -> list[Json]:
    """Three nodes with one device each, and a pod with a claim of each kind."""
    api = f"{GROUP}/{VERSION}"
    wanted = {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}}
    entries = [{"name": name, "resourceClaimName": name} for name in ("classic", "structured")]
    found = [
        made(api, "DeviceClass", "gpu", spec={}),
        made(api, "ResourceClaim", "classic", spec={"controller": CONTROLLER} | wanted),
        made(api, "ResourceClaim", "structured", spec=wanted),
        made("v1", "Pod", "pod", spec={"schedulerName": "mini", "resourceClaims": entries}),
    ]
    for node in ("node-0", "node-1", "node-2"):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        device = {"name": "gpu-0", "basic": {}}
        spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [device]}
        found += [made("v1", "Node", node), made(api, "ResourceSlice", node, spec=spec)]
    return found


class Driver:
    """Says on which nodes it can allocate, and allocates for the selected one."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.selected: list[str] = []

    def step(self) -> None:
        """Look at the pod's context, and do what it asks for."""
        context = self.server.find("podschedulingcontexts", NAMESPACE, "pod")
        claim = self.server.find("resourceclaims", NAMESPACE, "classic")
        if context is None or claim is None:
            return
        if not context.get("status"):
            report = {"name": "classic", "unsuitableNodes": UNSUITABLE}
            self._update("podschedulingcontexts", context, {"resourceClaims": [report]})
        node = context["spec"].get("selectedNode")
        if node and not (claim.get("status") or {}).get("allocation"):
            self.selected.append(node)
            fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
            nodes = {"nodeSelectorTerms": [{"matchFields": fields}]}
            allocation = {"controller": CONTROLLER, "nodeSelector": nodes, "devices": {}}
            self._update("resourceclaims", claim, {"allocation": allocation})

    def _update(self, resource: str, obj: Json, status: Json) -> None:
        target = Target(GROUP, VERSION, resource, NAMESPACE, obj["metadata"]["name"], "status")
        answer = self.server.send(target.update(obj | {"status": status}))
        assert answer.status == 200, answer


def test_a_pod_with_a_claim_of_a_driver() -> None:
    """The scheduler asks about nodes, hears that one suits, and picks that for both claims;
    the object of the negotiation is deleted in the end."""
    server = ApiServer()
    server.seed(*cluster())
    invariants, driver = Invariants(server), Driver(server)
    errors: list[Exception] = []
    with HttpApiServer(server) as shell:
        client = kube.ApiClient(kube.Configuration(host=shell.url))
        scheduler = MiniScheduler(client, "mini", errors.append, VERSION)
        scheduler.start()
        end = time.monotonic() + 30.0
        bound = False
        while not bound and time.monotonic() < end:
            time.sleep(0.02)
            with shell.lock:
                driver.step()
                invariants.look()
                pod = server.find("pods", NAMESPACE, "pod")
                assert pod is not None
                bound = bool(pod["spec"].get("nodeName"))
        scheduler.stop()
    assert bound
    assert pod is not None
    assert pod["spec"]["nodeName"] == "node-1"
    assert driver.selected == ["node-1"]
    assert server.objects("podschedulingcontexts") == []
    assert invariants.violations == []
    assert errors == []
    assert scheduler.tracker.in_flight() == ()
    taken = scheduler.tracker.allocated().devices
    assert [device.pool for device in taken] == ["node-1"]
