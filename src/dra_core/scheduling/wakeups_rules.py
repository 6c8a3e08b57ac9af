"""The rules: is a pod worth another attempt after this change?

What may live here: one pure function per kind of object, from the object before and after
to an answer. ``wakeups`` finds the rule for an event. Of each rule's lines the first one
that applies decides, and when in doubt the answer is to queue: a lost wake-up is worse than
an attempt in vain.
"""

import attrs

from dra_core.api.core import Node, Pod
from dra_core.api.objects import DeviceClass, DeviceTaintRule, ResourceClaim
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.claims.binding import same_allocation
from dra_core.scheduling.extended_claim import is_special_claim_of
from dra_core.scheduling.extended_resources import asked_for, offered_by
from dra_core.scheduling.wakeups_demand import Lookups, demand_of, requested
from dra_core.scheduling.wakeups_slices import SliceChange
from dra_core.scheduling.wakeups_verdict import (
    WakeReason,
    WakeUp,
    queue,
    queue_at_once,
    skip,
)


def claim_changed(
    pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None, lookups: Lookups
) -> WakeUp:
    """A claim was added, updated or deleted, as the assume cache saw it."""
    claim = new or old
    demand = demand_of(pod, lookups)
    if claim is None or not demand.resolved:
        return skip(WakeReason.CLAIMS_UNRESOLVED)
    if old is not None and _freed(old, new, lookups):
        return queue(WakeReason.DEVICES_FREED)
    if not demand.uses(claim) and not is_special_claim_of(claim, pod):
        return skip(WakeReason.OTHER_CLAIM)
    if old is None:
        return queue(WakeReason.CLAIM_ADDED)
    if new is None:
        # Only the special claim, whose being there was in the way: others do not resolve.
        return queue(WakeReason.CLAIM_CHANGED)
    if old.metadata.controller() != new.metadata.controller():
        return queue(WakeReason.OWNER_CHANGED)
    if _same_status(old, new):
        return skip(WakeReason.SAME_STATUS)
    return queue(WakeReason.CLAIM_CHANGED)


def _freed(old: ResourceClaim, new: ResourceClaim | None, lookups: Lookups) -> bool:
    """Whether devices that a scheduler had allocated are free now, at least some of them."""
    if old.allocation is None or not lookups.facts_of(old).by_scheduler(old):
        return False
    if new is None or new.metadata.uid != old.metadata.uid:
        return True
    # An allocation never changes in place; if one does, something may have become free.
    return not same_allocation(old.allocation, new.allocation)


def _same_status(old: ResourceClaim, new: ResourceClaim) -> bool:
    # Other fields are not compared by name, so that those of other versions count, too.
    return old == attrs.evolve(new, metadata=old.metadata, devices=old.devices)


def devices_freed(pod: Pod, claim: ResourceClaim, lookups: Lookups) -> WakeUp:
    """An entry in flight was removed without a stored allocation (``DevicesFreed``)."""
    demand = demand_of(pod, lookups)
    pending = any(True for _ in demand.unallocated()) or bool(demand.extended_resources())
    if pending or demand.uses(claim) or is_special_claim_of(claim, pod):
        return queue(WakeReason.DEVICES_FREED)
    return skip(WakeReason.NOTHING_PENDING)


def pod_changed(pod: Pod, old: Pod | None, new: Pod | None, lookups: Lookups) -> WakeUp:
    """A pod was updated; its status may name a generated claim now."""
    changed = new or old
    if changed is None or changed.metadata.uid != pod.metadata.uid:
        return skip(WakeReason.OTHER_POD)
    if new is None:
        return skip(WakeReason.GONE)
    # What the pod was like when it was parked does not count any more.
    if not demand_of(new, lookups).resolved:
        return skip(WakeReason.CLAIMS_UNRESOLVED)
    return queue(WakeReason.POD_UPDATED)


def class_changed(
    pod: Pod, old: DeviceClass | None, new: DeviceClass | None, lookups: Lookups
) -> WakeUp:
    """A device class was added, updated or deleted."""
    classes = [found for found in (old, new) if found is not None]
    names = {found.name for found in classes}
    for _, claim in demand_of(pod, lookups).unallocated():
        if any(choice.device_class_name in names for choice in requested(claim)):
            return queue(WakeReason.CLASS_CHANGED)
    offered = {resource for found in classes for resource in offered_by(found)}
    for resource in asked_for(pod):
        if resource in offered:
            return queue(WakeReason.CLASS_CHANGED, resource)
    return skip(WakeReason.OTHER_CLASS)


def slice_changed(pod: Pod, change: SliceChange, lookups: Lookups) -> WakeUp:
    """A resource slice was added, updated or deleted."""
    demand = demand_of(pod, lookups)
    if not demand.needs_devices:
        return skip(WakeReason.NOTHING_PENDING)
    if change.difference.nothing:
        return skip(WakeReason.UNCHANGED)
    if demand.wants_all or change.can_help:
        return queue(WakeReason.SUPPLY_CHANGED)
    return skip(WakeReason.CANNOT_HELP)


def taint_rule_changed(
    pod: Pod, old: DeviceTaintRule | None, new: DeviceTaintRule | None, lookups: Lookups
) -> WakeUp:
    """A DeviceTaintRule was added, updated or deleted."""
    demand = demand_of(pod, lookups)
    if not demand.needs_devices:
        return skip(WakeReason.NOTHING_PENDING)
    if old is None:
        # More taints, see slices.
        wants_all = demand.wants_all
        return queue(WakeReason.SUPPLY_CHANGED) if wants_all else skip(WakeReason.CANNOT_HELP)
    if new is not None and (old.device_selector, old.taint) == (new.device_selector, new.taint):
        return skip(WakeReason.UNCHANGED)
    return queue(WakeReason.SUPPLY_CHANGED)


def node_changed(pod: Pod, old: Node | None, new: Node | None) -> WakeUp:
    """A node was added, updated or deleted."""
    if new is None:
        return skip(WakeReason.GONE)
    if old is None or old.labels != new.labels or old.declared_features != new.declared_features:
        return queue(WakeReason.NODE_CHANGED)
    for resource in asked_for(pod):
        if old.allocatable.get(resource) != new.allocatable.get(resource):
            return queue(WakeReason.NODE_CHANGED, resource)
    return skip(WakeReason.UNCHANGED)


def context_changed(
    pod: Pod,
    old: PodSchedulingContext | None,
    new: PodSchedulingContext | None,
    lookups: Lookups,
) -> WakeUp:
    """A PodSchedulingContext was added, updated or deleted."""
    if new is None:
        return skip(WakeReason.GONE)
    if new.metadata.key != pod.metadata.key:
        return skip(WakeReason.OTHER_POD)
    demand = demand_of(pod, lookups)
    if not demand.resolved:
        return skip(WakeReason.CLAIMS_UNRESOLVED)
    for pod_claim in demand.of_drivers():
        if new.status_of(pod_claim) is None:
            return skip(WakeReason.REPORT_INCOMPLETE, pod_claim)
    if old is None or len(new.resource_claims) > len(old.resource_claims):
        return queue_at_once(WakeReason.REPORTED)
    for report in new.resource_claims:
        if new.selected_node and new.selected_node in report.unsuitable_nodes:
            return queue_at_once(WakeReason.SELECTED_UNSUITABLE, report.name)
    if old.resource_claims == new.resource_claims:
        return skip(WakeReason.SAME_STATUS)
    return queue(WakeReason.CONTEXT_CHANGED)
