"""The control plane controller of a driver, for tests: it reports, allocates, deallocates.

What may live here: ``ClassicDriver``, which does one thing at a time, when it is told to.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import attrs

from dra_core.api.core import Pod
from dra_core.api.objects import ResourceClaim
from dra_core.api.request import Target
from dra_core.api.wire import decode_pod, decode_pod_scheduling_context
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import read_claim
from support.cycle_site import GROUP, NAMESPACE

VERSION = "v1alpha3"
CONTROLLER = "driver.example.com"
PROTECTION = "driver.example.com/deletion-protection"
CLAIMS = Target(GROUP, VERSION, "resourceclaims", NAMESPACE)
CONTEXTS = Target(GROUP, VERSION, "podschedulingcontexts", NAMESPACE)

Json = dict[str, Any]


class Task(NamedTuple):
    """Something to do about a claim or, for a report, about a context; ``detail``: with what."""

    what: str
    name: str
    detail: Any = None


class ClassicDriver:
    """Allocates for selected nodes, and deallocates when asked to, or before a deletion.

    ``unsuitable``: on which nodes it cannot allocate a claim, by the claim's name; the
    caller may change that. It reports on all nodes that it knows. One that forgets what it
    said about nodes which are not asked about any more would be asked about each of them
    for ever, for a pod that fits nowhere. A finalizer of its own protects what it allocated.
    """

    def __init__(self, server: ApiServer, unsuitable: Mapping[str, frozenset[str]]) -> None:
        self.server = server
        self.unsuitable = dict(unsuitable)

    def todo(self) -> list[Task]:
        """What there is to do, in order."""
        found = [read_claim(obj) for obj in self.server.objects("resourceclaims")]
        claims = {claim.name: claim for claim in found}
        tasks = [Task("deallocate", c.name) for c in found if c.controller and _is_over(c)]
        pods = {p["metadata"]["name"]: decode_pod(p) for p in self.server.objects("pods")}
        for obj in self.server.objects("podschedulingcontexts"):
            user = pods.get(obj["metadata"]["name"])
            if user is not None:
                tasks += self._about(user, obj, claims)
        return tasks

    def _about(self, user: Pod, obj: Json, claims: Mapping[str, ResourceClaim]) -> list[Task]:
        """What a pod's context asks for. Nothing while a claim of the pod is missing, or goes."""
        used = {e.name: claims.get(e.resource_claim_name or "") for e in user.resource_claims}
        if any(claim is None or claim.metadata.deletion_timestamp for claim in used.values()):
            return []
        mine = {entry: c for entry, c in used.items() if c is not None and c.controller}
        reports = [
            {"name": entry, "unsuitableNodes": sorted(self.unsuitable[claim.name])}
            for entry, claim in mine.items()
        ]
        selected = decode_pod_scheduling_context(obj).selected_node
        waiting = [claim for claim in mine.values() if claim.allocation is None]
        tasks: list[Task] = []
        if selected and all(selected not in self.unsuitable[claim.name] for claim in waiting):
            tasks += [Task("allocate", c.name, selected) for c in waiting if not _is_over(c)]
        known = (obj.get("status") or {}).get("resourceClaims") or []
        if any(report not in known for report in reports):
            tasks.append(Task("report", user.name, reports))
        return tasks

    def is_due(self, pod: Pod) -> bool:
        """Whether it has something to do about the pod or its claims."""
        claims = {entry.resource_claim_name for entry in pod.resource_claims}
        return any(
            task.name == pod.name if task.what == "report" else task.name in claims
            for task in self.todo()
        )

    def step(self, which: int) -> bool:
        """Do one of these things; whether there was one."""
        todo = self.todo()
        if not todo:
            return False
        task = todo[which % len(todo)]
        if task.what == "report":
            self._update(CONTEXTS, task.name, {"resourceClaims": task.detail})
        elif task.what == "allocate":
            self._protect(task.name, True)
            allocation = allocated_for(task.detail)
            self._update(CLAIMS, task.name, {"allocation": allocation})
        else:
            self._update(CLAIMS, task.name, {})
            self._protect(task.name, False)
        return True

    def _update(self, where: Target, name: str, status: Json) -> None:
        obj = self.server.find(where.resource, NAMESPACE, name)
        target = attrs.evolve(where, name=name, subresource="status")
        assert obj is not None
        assert self.server.send(target.update(obj | {"status": status})).status == 200

    def _protect(self, name: str, protected: bool) -> None:
        """Set the driver's finalizer, or take it off; others' stay."""
        obj = self.server.find("resourceclaims", NAMESPACE, name)
        assert obj is not None
        others = [one for one in obj["metadata"].get("finalizers") or [] if one != PROTECTION]
        obj["metadata"]["finalizers"] = [*others, PROTECTION] if protected else others
        target = attrs.evolve(CLAIMS, name=name)
        assert self.server.send(target.update(obj)).status == 200


def allocated_for(node: str) -> Json:
    """The allocation of a claim for a node."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        "controller": CONTROLLER,
        "nodeSelector": {"nodeSelectorTerms": [term]},
        "devices": {"results": []},
    }


def _is_over(claim: ResourceClaim) -> bool:
    """Whether the allocation, or the finalizer, has to go."""
    deleted = bool(claim.metadata.deletion_timestamp and claim.metadata.finalizers)
    return claim.deallocation_requested or (deleted and not claim.reserved_for)
