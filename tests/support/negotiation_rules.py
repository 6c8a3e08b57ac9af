"""What must hold of negotiations at every moment, read off the changes that a server has stored.

What may live here: ``NegotiationRules``, which sees every change once, in order, knows for
which pod a scheduler made it, and writes down each that breaks a rule:

* a driver is asked to deallocate a claim to help a pod only while no node is selected for
  that pod: it would allocate for that node again (k/k#120428);
* a node is selected for a pod that needs more than one allocation only after the driver has
  reported on each claim that it has to allocate: none may be allocated in vain;
* a node that is selected is one of the potential nodes: drivers need not look at others;
* every PodSchedulingContext is controlled by a pod of its name.
"""

from collections.abc import Collection
from typing import Any

from dra_core.api.core import Pod
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.api.wire import decode_pod_scheduling_context
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import read_claim
from dra_core.testing.object_store import Event


class NegotiationRules:
    """Follows ``server`` from now on; ``violations`` are in the order in which they came.

    ``asked`` counts how often a driver was asked to deallocate to help a pod.
    """

    def __init__(self, server: ApiServer) -> None:
        self.violations: list[str] = []
        self.asked = 0
        self._server = server
        self._selected: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self._reported: dict[str, set[str]] = {}
        self._allocated: set[str] = set()
        for obj in server.objects("resourceclaims"):
            self._claim_seen(obj)
        self._version = server.version

    def look(self, sender: Pod | None = None) -> None:
        """Check what has changed since the last look: by an attempt for ``sender``, or others.

        Only one of them may have been at work.
        """
        for event in self._server.events(self._version):
            if event.key.resource == "podschedulingcontexts":
                self._context_changed(event, sender)
            elif event.key.resource == "resourceclaims":
                self._claim_seen(event.last)
                if sender is not None:
                    self._claim_changed(event, sender)
            self._version = event.version

    def _claim_seen(self, obj: Any) -> None:
        if (obj.get("status") or {}).get("allocation"):
            self._allocated.add(obj["metadata"]["uid"])

    def _context_changed(self, event: Event, sender: Pod | None) -> None:
        name = event.key.name
        if event.new is None:
            self._selected.pop(name, None)
            return
        context: PodSchedulingContext = decode_pod_scheduling_context(event.new)
        selected, owner = context.selected_node, context.metadata.controller()
        self._selected[name] = selected
        if owner is None or (owner.kind, owner.name) != ("Pod", name):
            self.violations.append(f"{name}: the context is not that of a pod of this name")
            return
        reported = self._reported.setdefault(owner.uid, set())
        reported |= {report.name for report in context.resource_claims}
        # One that was selected earlier may have become unfit since.
        is_new = bool(selected) and selected != self._last.get(owner.uid)
        self._last[owner.uid] = selected
        if is_new and selected not in context.potential_nodes:
            self.violations.append(f"{name}: {selected} is selected, and no driver looks at it")
        if is_new and sender is not None and not self._may_select(sender, reported):
            self.violations.append(f"{name}: {selected} is selected, and a report is missing")

    def _may_select(self, pod: Pod, reported: Collection[str]) -> bool:
        """Whether enough was reported on claims that nobody has ever seen with an allocation."""
        find, fresh = self._server.find, []
        for entry in pod.resource_claims:
            obj = find("resourceclaims", pod.namespace, entry.resource_claim_name or "")
            if obj is not None and obj["metadata"]["uid"] not in self._allocated:
                fresh.append((entry.name, read_claim(obj)))
        return len(fresh) < 2 or all(
            entry in reported for entry, claim in fresh if claim.controller
        )

    def _claim_changed(self, event: Event, sender: Pod) -> None:
        if not _is_requested(event.new) or _is_requested(event.old):
            return
        self.asked += 1
        selected = self._selected.get(sender.name)
        if selected:
            self.violations.append(
                f"deallocation of {event.key.name} is requested for {sender.name}"
                f" while {selected} is selected"
            )


def _is_requested(obj: Any) -> bool:
    return obj is not None and read_claim(obj).deallocation_requested
