"""What must hold at every moment, read off the changes that an API server has stored.

What may live here: ``Invariants``, which sees every change once, in order, and writes down
each that breaks a rule:

* no device is allocated to two claims;
* no claim is allocated without a finalizer, unless a driver allocated it;
* no pod is on a node with a claim that is not allocated for that node and reserved for it.

A node whose labels change keeps its pods, and schedulers learn of it late: an allocation is
for a node if it is for the node as it has ever been.

It knows the rules and nothing of who wrote what.
"""

from typing import Any

from dra_core.api.core import Node, ObjectMeta, Pod
from dra_core.api.names import DeviceId, ObjectKey
from dra_core.api.objects import ResourceClaim
from dra_core.api.wire import decode_node, decode_pod
from dra_core.inventory.matching import compile_node_selector
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import read_claim
from dra_core.testing.object_store import Event

DeviceUse = tuple[DeviceId, str]
"""A device, and the share of it; "" for all of it."""


class Invariants:
    """Follows ``server`` from now on; ``violations`` are in the order in which they came.

    Call ``look`` before the server forgets changes, under the lock that guards the server.
    """

    def __init__(self, server: ApiServer) -> None:
        self.violations: list[str] = []
        self._server = server
        self._claims: dict[ObjectKey, ResourceClaim] = {}
        self._running: dict[str, Pod] = {}
        self._users: dict[ObjectKey, set[str]] = {}
        self._holders: dict[DeviceUse, dict[str, None]] = {}
        self._nodes: dict[str, list[Node]] = {}
        self._version = server.version
        for obj in server.objects("nodes"):
            self._node_seen(decode_node(obj))
        for obj in server.objects("resourceclaims"):
            self._claim_changed(None, read_claim(obj))
        for obj in server.objects("pods"):
            self._pod_changed(None, decode_pod(obj))

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        """All claims as of the last look."""
        return tuple(self._claims.values())

    def look(self) -> None:
        """Check what has changed since the last look. Cost: linear in that."""
        for event in self._server.events(self._version):
            self._seen(event)
            self._version = event.version

    def _seen(self, event: Event) -> None:
        if event.key.resource == "resourceclaims":
            self._claim_changed(_read(event.old, read_claim), _read(event.new, read_claim))
        elif event.key.resource == "pods":
            self._pod_changed(_read(event.old, decode_pod), _read(event.new, decode_pod))
        elif event.key.resource == "nodes" and event.new is not None:
            self._node_seen(decode_node(event.new))

    def _node_seen(self, node: Node) -> None:
        known = self._nodes.setdefault(node.name, [])
        if all(node.labels != earlier.labels for earlier in known):
            known.append(node)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new or old
        if claim is None:
            return
        key = claim.metadata.key
        for use in device_uses(old):
            self._holders[use].pop(str(key), None)
        if new is None:
            self._claims.pop(key, None)
        else:
            self._claims[key] = new
            self._check_claim(new)
        for uid in sorted(self._users.get(key, ())):
            if uid in self._running:
                self._check_use(self._running[uid], key)

    def _check_claim(self, claim: ResourceClaim) -> None:
        allocation = claim.allocation
        if allocation is None or allocation.controller:
            return
        if not claim.metadata.finalizers:
            self.violations.append(f"claim {claim.metadata.key} is allocated without finalizer")
        for use in device_uses(claim):
            holders = self._holders.setdefault(use, {})
            holders[str(claim.metadata.key)] = None
            if len(holders) > 1:
                self.violations.append(f"device {use[0]} is allocated to {' and '.join(holders)}")

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        uid = pod.metadata.uid
        if new is None or new.finished or not new.node_name:
            self._running.pop(uid, None)
            return
        self._running[uid] = new
        for key in claims_of(new):
            self._users.setdefault(key, set()).add(uid)
            self._check_use(new, key)

    def _check_use(self, pod: Pod, key: ObjectKey) -> None:
        claim = self._claims.get(key)
        if claim is None or claim.allocation is None:
            what = "is not there" if claim is None else "is not allocated"
        elif all(entry.uid != pod.metadata.uid for entry in claim.reserved_for):
            what = "is not reserved for it"
        elif not self._is_for(claim, pod.node_name):
            what = "is allocated for another node"
        else:
            return
        self.violations.append(f"pod {pod.name} is on {pod.node_name}, and its claim {key} {what}")

    def _is_for(self, claim: ResourceClaim, node: str) -> bool:
        known = self._nodes.get(node) or [Node(ObjectMeta(node))]
        return any(is_for_node(claim, one) for one in known)


def _read(obj: Any, decode: Any) -> Any:
    return None if obj is None else decode(obj)


def claims_of(pod: Pod) -> list[ObjectKey]:
    """The claims that the pod uses, as far as they have names."""
    generated = {status.name: status.resource_claim_name for status in pod.resource_claim_statuses}
    names = [e.resource_claim_name or generated.get(e.name) for e in pod.resource_claims]
    if pod.extended_resource_claim_status is not None:
        names.append(pod.extended_resource_claim_status.resource_claim_name)
    return [ObjectKey(pod.namespace, name) for name in names if name]


def device_uses(claim: ResourceClaim | None) -> list[DeviceUse]:
    """What the claim has for itself alone. Whoever looks after devices takes none."""
    allocation = None if claim is None else claim.allocation
    if allocation is None or allocation.controller:
        return []
    return [(got.device_id, got.share_id) for got in allocation.results if not got.admin_access]


def is_for_node(claim: ResourceClaim, node: Node) -> bool:
    """Whether the claim's allocation is for this node."""
    selector = claim.allocation.node_selector if claim.allocation else None
    return selector is None or compile_node_selector(selector).matches(node)
