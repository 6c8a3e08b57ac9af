"""Is the pod worth another attempt? Pure functions, asked after every event.

What may live here: the two checks before an attempt, and ``wake_up``, which finds the rule
for an event. The rules are in ``wakeups_rules``.

A pod that cannot be scheduled sleeps until an event *for it*. Trying everything again
after every event would stop a large cluster, and overlooking the one event that helps
would leave a pod sleeping for ever.

* ``pre_enqueue``, before the first attempt: are the pod's claims there at all?
* ``before_filtering``: is there something that makes looking at nodes useless? Whatever
  that is, an event will say when it is over.
* ``wake_up``: does this event change anything for the pod? ``waker`` asks for many pods.

Events of claims come from the assume cache, with the objects as it saw them, and look-ups
go to the same cache. Comparing what an informer showed would miss what was assumed in
between (k/k#123698, k/k#124595).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from dra_core.api.core import Node, Pod
from dra_core.api.objects import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.claims.names import SkippedClaim, UnresolvedClaim
from dra_core.claims.reservation import can_be_reserved, is_reserved_for, pod_reference
from dra_core.errors import AllocationError, DeviceClassNotFoundError
from dra_core.scheduling import wakeups_rules as rules
from dra_core.scheduling.assume_cache import CacheEvent
from dra_core.scheduling.cycle_verdicts import PASSED, Stopped, StopReason, Verdict
from dra_core.scheduling.errors import UnexpectedEventError
from dra_core.scheduling.in_flight import DevicesFreed, InFlight
from dra_core.scheduling.wakeups_demand import Lookups, WakingKind
from dra_core.scheduling.wakeups_slices import SliceChange
from dra_core.scheduling.wakeups_verdict import Queueing, WakeUp


def pre_enqueue(pod: Pod, lookups: Lookups) -> Verdict:
    """Whether the pod is worth a first attempt: every claim is there and the pod's to use.

    Otherwise the first problem in the pod's order; an event of a claim or of the pod will
    end it. Cost: one look-up per claim.
    """
    for problem in lookups.claims_of(pod).problems:
        return Stopped(StopReason.UNRESOLVED, problem.pod_claim, cause=problem.reason)
    return PASSED


def before_filtering(pod: Pod, lookups: Lookups) -> Verdict:
    """Whether looking at nodes makes sense: the first problem of the first claim that has one.

    In the pod's order. The pod waits for an event, except where the input is at fault
    (``Stopped.retry``).
    """
    for answer in lookups.claims_of(pod).answers:
        if isinstance(answer, SkippedClaim):
            continue
        if isinstance(answer, UnresolvedClaim):
            return Stopped(StopReason.UNRESOLVED, answer.pod_claim, cause=answer.reason)
        stopped = _obstacle(pod, answer.pod_claim, answer.claim, lookups)
        if stopped is not None:
            return stopped
    return PASSED


def _obstacle(pod: Pod, entry: str, claim: ResourceClaim, lookups: Lookups) -> Stopped | None:
    facts = lookups.facts_of(claim)
    if claim.deallocation_requested:
        return Stopped(StopReason.DEALLOCATION_REQUESTED, entry)
    if claim.allocation is not None:
        reserved = is_reserved_for(claim, pod, workload_claims=lookups.workload_claims)
        if not reserved and not can_be_reserved(claim, pod_reference(pod), facts.limit(claim)):
            return Stopped(StopReason.FULL, entry)
        return None
    if facts.by_driver(claim) and facts.immediate(claim):
        return Stopped(StopReason.IMMEDIATE, entry)
    pending = lookups.pending(claim.metadata.uid)
    if pending is not None:
        if _may_share(pod, pending, lookups):
            return None
        return Stopped(StopReason.IN_FLIGHT, entry, cause=pending)
    try:
        missing = facts.missing(claim)
    except AllocationError as error:
        return Stopped(StopReason.INVALID, entry, retry=True, cause=error)
    if missing is None:
        return None
    is_class = missing.reason == DeviceClassNotFoundError.reason
    reason = StopReason.CLASS_MISSING if is_class else StopReason.PARAMETERS_MISSING
    return Stopped(reason, entry, cause=missing)


def _may_share(pod: Pod, pending: InFlight, lookups: Lookups) -> bool:
    """Pods of one gang share an entry, and a pod goes on with what it left itself."""
    same_session = lookups.session is not None and pending.session == lookups.session
    return same_session or pod.metadata.uid in pending.users


def wake_up(pod: Pod, event: CacheEvent[Any] | DevicesFreed, lookups: Lookups) -> WakeUp:
    """Whether the pod, which sleeps, is worth another attempt after the event.

    ``event``: a change of an object as an ``AssumeCache`` tells it (for kinds without one,
    make a ``CacheEvent``), or that devices in flight became free. Raises
    ``UnexpectedEventError`` for an object of a kind that no rule is about. Cost: one look-up
    per claim of the pod, some 20 µs; for slices, linear in the pool if devices were removed.
    """
    return waker(event, lookups)(pod)


def waker(event: CacheEvent[Any] | DevicesFreed, lookups: Lookups) -> Callable[[Pod], WakeUp]:
    """``wake_up`` for many pods: what does not depend on the pod is worked out once.

    Ask it right away; what it found out does not follow the caches. Raises
    ``UnexpectedEventError`` at once.
    """
    if isinstance(event, DevicesFreed):
        freed = event.claim
        return lambda pod: rules.devices_freed(pod, freed, lookups)
    old, new = event.old, event.new
    changed = _rule_for(old, new, lookups)
    if old is None or new is None or _uid(old) == _uid(new):
        return changed
    # Another UID is another object. An AssumeCache tells of both by itself, others may not.
    gone, added = _rule_for(old, None, lookups), _rule_for(None, new, lookups)
    return lambda pod: _most_urgent(gone(pod), added(pod))


def _uid(obj: object) -> str:
    uid: str = getattr(getattr(obj, "metadata", None), "uid", "")
    return uid


def _most_urgent(one: WakeUp, other: WakeUp) -> WakeUp:
    return max(one, other, key=lambda answer: _URGENCY.index(answer.queueing))


_URGENCY = (Queueing.SKIP, Queueing.QUEUE, Queueing.QUEUE_AT_ONCE)


def _rule_for(old: object, new: object, lookups: Lookups) -> Callable[[Pod], WakeUp]:
    """The rule for these objects. Raises ``UnexpectedEventError``."""
    for kind in lookups.kinds:
        if kind.concerns(old if new is None else new):
            return partial(_of_kind, kind, old, new, lookups)
    rule = _rule(old, new, lookups)
    if rule is None:
        raise UnexpectedEventError(*(type(obj).__name__ for obj in (old, new)))
    return rule


def _of_kind(kind: WakingKind, old: object, new: object, lookups: Lookups, pod: Pod) -> WakeUp:
    claims = [claim for claim in lookups.claims_of(pod).claims if kind.handles(claim)]
    return kind.changed(claims, old, new)


def _rule(old: object, new: object, lookups: Lookups) -> Callable[[Pod], WakeUp] | None:
    """The rule for these objects, ``None`` if there is none."""
    match old, new:
        case None, None:
            return None
        case ((ResourceClaim() | None), (ResourceClaim() | None)):
            return lambda pod: rules.claim_changed(pod, old, new, lookups)
        case ((Pod() | None), (Pod() | None)):
            return lambda pod: rules.pod_changed(pod, old, new, lookups)
        case ((DeviceClass() | None), (DeviceClass() | None)):
            return lambda pod: rules.class_changed(pod, old, new, lookups)
        case ((ResourceSlice() | None), (ResourceSlice() | None)):
            change = SliceChange(old, new, lookups.pool)
            return lambda pod: rules.slice_changed(pod, change, lookups)
        case ((DeviceTaintRule() | None), (DeviceTaintRule() | None)):
            return lambda pod: rules.taint_rule_changed(pod, old, new, lookups)
        case ((Node() | None), (Node() | None)):
            return lambda pod: rules.node_changed(pod, old, new)
        case ((PodSchedulingContext() | None), (PodSchedulingContext() | None)):
            return lambda pod: rules.context_changed(pod, old, new, lookups)
    return None
