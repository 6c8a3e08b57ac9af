"""PodSchedulingContexts for tests: as the API server stores them, and how they are published."""

from typing import Any

from dra_core.api.core import Pod
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.api.wire import decode_pod_scheduling_context
from dra_core.scheduling.context import ContextPolicy, ContextRecord, context_record
from dra_core.scheduling.context_publishing import ContextPhase, ContextPublishing
from dra_core.testing.api_server import ApiServer
from support.claims import NAMESPACE, make_pod

Json = dict[str, Any]

MANAGER = "scheduler"
POLICY = ContextPolicy(MANAGER)
POD = make_pod()

KINDS = {
    "v1alpha3": ("PodSchedulingContext", "podschedulingcontexts"),
    "v1alpha2": ("PodSchedulingContext", "podschedulingcontexts"),
    "v1alpha1": ("PodScheduling", "podschedulings"),
}
"""By version: kind and resource."""


def context_json(
    selected: str = "",
    potential: tuple[str, ...] = (),
    reports: dict[str, list[str]] | None = None,
    *,
    pod: Pod = POD,
    version: str = "v1alpha3",
    owner_uid: str | None = None,
    **spec: Any,
) -> Json:
    """A context of the pod; ``reports``: pod claim → unsuitable nodes."""
    uid = pod.metadata.uid if owner_uid is None else owner_uid
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": uid, "controller": True}
    if selected:
        spec["selectedNode"] = selected
    if potential:
        spec["potentialNodes"] = list(potential)
    entries = [{"name": name, "unsuitableNodes": nodes} for name, nodes in (reports or {}).items()]
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": KINDS[version][0],
        "metadata": {"name": pod.name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": spec,
        "status": {"resourceClaims": entries} if entries else {},
    }


def make_context(*args: Any, uid: str = "ctx", resource_version: str = "7", **rest: Any) -> Any:
    """The same as an object that was read."""
    obj = context_json(*args, **rest)
    obj["metadata"] |= {"uid": uid, "resourceVersion": resource_version}
    return decode_pod_scheduling_context(obj)


def stored(server: ApiServer, policy: ContextPolicy = POLICY, pod: Pod = POD) -> Json | None:
    """The pod's context as the server has it."""
    return server.find(KINDS[policy.version][1], pod.namespace, pod.name)


def seen(
    server: ApiServer, policy: ContextPolicy = POLICY, pod: Pod = POD
) -> PodSchedulingContext | None:
    """The same, decoded."""
    obj = stored(server, policy, pod)
    return None if obj is None else decode_pod_scheduling_context(obj)


def record_of(server: ApiServer, policy: ContextPolicy = POLICY, pod: Pod = POD) -> ContextRecord:
    """A record with the newest copy known."""
    return context_record(pod, seen(server, policy, pod))


def spec_of(server: ApiServer, policy: ContextPolicy = POLICY) -> tuple[str, tuple[str, ...]]:
    """What the stored context says: selected node and potential nodes."""
    context = seen(server, policy)
    assert context is not None
    return context.selected_node, context.potential_nodes


def driver_reports(
    server: ApiServer, claim: str, unsuitable: list[str], policy: ContextPolicy = POLICY
) -> None:
    """A driver's controller writes the status, as only it does."""
    target = policy.target(POD.metadata.key).at("status")
    body = {
        "apiVersion": f"resource.k8s.io/{policy.version}",
        "kind": policy.kind,
        "metadata": {"name": POD.name, "namespace": POD.namespace},
        "status": {"resourceClaims": [{"name": claim, "unsuitableNodes": unsuitable}]},
    }
    answer = server.send(target.apply(body, f"driver-{claim}", force=True))
    assert answer.status == 200, answer


def step(server: ApiServer, publishing: ContextPublishing) -> ContextPublishing:
    """Send one request and hand over the answer."""
    assert publishing.request is not None
    answer = server.send(publishing.request)
    return publishing.answered(answer.status, answer.body if answer.status < 300 else None)


def finish(
    server: ApiServer, publishing: ContextPublishing
) -> tuple[ContextPublishing, list[ContextPhase]]:
    """Send until there is an outcome; the phases passed through."""
    phases = []
    while publishing.request is not None:
        phases.append(publishing.phase)
        publishing = step(server, publishing)
        assert len(phases) < 20
    return publishing, phases
