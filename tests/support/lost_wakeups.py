"""Does a pod sleep rightly? An oracle of its own, for clusters of plain shape.

What may live here: ``reason_to_try``. It shares nothing with the library's filters and
wake-ups but the caches, which it reads as they are: what the scheduler could know by now.
Each structured claim asks for one device, class-a means all devices of driver-a and so on,
and a node is told by its name or by one label.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from dra_core.api.core import Node, NodeSelector, Pod
from dra_core.api.names import ObjectKey
from dra_core.api.objects import ResourceClaim
from support.classic_driver import ClassicDriver
from support.cycle_host import Host
from support.pods import GPU

SPECIAL = "resource.kubernetes.io/extended-resource-claim"


def reason_to_try(host: Host, pod: Pod, driver: ClassicDriver) -> str:
    """Why the pod, which sleeps, should be tried again; "" if there is no reason.

    It sleeps rightly while one of its claims is missing, about to go, or on its way for
    another pod; while no node fits and nothing of its own is in the way; and while a
    driver's answer is due, or has not been shown yet.
    """
    site, uid = host.site, pod.metadata.uid
    found = [site.claims.find(key) for key in claim_keys(pod)]
    claims = [claim for claim in found if claim is not None]
    users = {entry.uid: entry.users for entry in site.tracker.in_flight()}
    if len(claims) < len(found) or any(_is_leaving(claim) for claim in claims):
        return ""
    if any(uid not in users.get(claim.metadata.uid, (uid,)) for claim in claims):
        return ""
    outlook = Outlook(host, pod, claims)
    if any(claim.metadata.annotations.get(SPECIAL) for claim in outlook.owned()):
        return "a claim of an earlier attempt has to be removed"
    fitting = [node.name for node in host.nodes if outlook.fits(node)]
    by_driver = any(claim.controller and claim.allocation is None for claim in claims)
    if fitting and not by_driver:
        return f"it fits on {fitting}"
    if driver.is_due(pod) or is_behind(host, pod):
        return ""
    if fitting:
        return f"it fits on {fitting}, and nobody is asked to allocate"
    if any(claim.metadata.uid in users for claim in claims):
        return "it does not know what became of its own write"
    removable = [claim.name for claim in claims if outlook.is_in_the_way(claim)]
    return f"{removable} can be got out of the way" if removable else ""


def claim_keys(pod: Pod) -> list[ObjectKey]:
    """The claims that the pod names."""
    return [ObjectKey(pod.namespace, e.resource_claim_name or "") for e in pod.resource_claims]


def is_behind(host: Host, pod: Pod) -> bool:
    """Whether news of the pod, its claims or its context are on their way to the scheduler."""
    own = [pod.metadata.key]
    return (
        host.behind("pods", own)
        or host.behind("podschedulingcontexts", own)
        or host.behind("resourceclaims", claim_keys(pod))
    )


def _is_leaving(claim: ResourceClaim) -> bool:
    return bool(claim.metadata.deletion_timestamp) or claim.deallocation_requested


@attrs.frozen
class Outlook:
    """A pod and its claims in what a scheduler's caches show."""

    host: Host
    pod: Pod
    claims: Sequence[ResourceClaim]

    def owned(self) -> Iterator[ResourceClaim]:
        """Claims that belong to the pod."""
        for claim in self.host.site.claims.list():
            if any(o.uid == self.pod.metadata.uid for o in claim.metadata.owner_references):
                yield claim

    def fits(self, node: Node) -> bool:
        """Whether the pod's claims are for the node, or can be had there."""
        if any(claim.allocation and not _is_for(claim, node) for claim in self.claims):
            return False
        if self._refused(node):
            return False
        wanted: Counter[str] = Counter()
        for claim in self.claims:
            if claim.allocation is None and not claim.controller:
                request = claim.devices.requests[0].exactly
                assert request is not None
                wanted[request.device_class_name.replace("class", "driver")] += 1
        asks = any(GPU in container.limits for container in self.pod.containers)
        if asks and not (GPU in node.allocatable and node.allocatable[GPU].sign() > 0):
            wanted["driver-a"] += 1
        free = self._free(node)
        return all(free[driver] >= count for driver, count in wanted.items())

    def _refused(self, node: Node) -> bool:
        """Whether a driver has said that it cannot allocate there."""
        context = self.host.site.contexts.find(self.pod.metadata.key)
        if context is None:
            return False
        waiting = {claim.name for claim in self.claims if claim.allocation is None}
        return any(
            report.name in waiting and node.name in report.unsuitable_nodes
            for report in context.resource_claims
        )

    def _free(self, node: Node) -> Counter[str]:
        """How many devices of each driver can be had on the node."""
        site, mine = self.host.site, {claim.metadata.uid for claim in self.claims}
        entries = [e.claim for e in site.tracker.in_flight() if e.claim.metadata.uid not in mine]
        taken = {
            result.device_id
            for claim in (*site.claims.list(), *entries)
            if claim.allocation is not None
            for result in claim.allocation.results
        }
        return Counter(
            found.driver
            for found in site.slices.list()
            if found.node_name == node.name
            or (found.node_selector is not None and _selects(found.node_selector, node))
            for device in found.devices
            if (found.driver, found.pool, device.name) not in taken
        )

    def is_in_the_way(self, claim: ResourceClaim) -> bool:
        """Whether the claim's allocation rules a node out, and may be taken away."""
        mine = all(entry.uid == self.pod.metadata.uid for entry in claim.reserved_for)
        elsewhere = any(not _is_for(claim, node) for node in self.host.nodes)
        return bool(claim.allocation) and mine and elsewhere


def _is_for(claim: ResourceClaim, node: Node) -> bool:
    allocation = claim.allocation
    selector = None if allocation is None else allocation.node_selector
    return selector is None or _selects(selector, node)


def _selects(selector: NodeSelector, node: Node) -> bool:
    """All requirements of one term, each of which lists values."""
    return any(
        all(node.labels.get(one.key) in one.values for one in term.match_expressions)
        and all(node.name in one.values for one in term.match_fields)
        for term in selector.terms
    )
