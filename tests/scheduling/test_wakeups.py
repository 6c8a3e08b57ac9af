"""Is a pod worth another attempt? The rules, one by one."""

import pickle
from typing import Any

import attrs
import pytest

from dra_core.api.core import Node, ObjectMeta
from dra_core.api.names import ObjectKey
from dra_core.api.objects import (
    AllocatedDeviceStatus,
    DeviceClass,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra_core.api.wire import decode_allocation_result
from dra_core.claims.names import ResolvedClaim
from dra_core.errors import DraError
from dra_core.scheduling.assume_cache import AssumeCache, CacheEvent
from dra_core.scheduling.cycle_verdicts import Stopped, StopReason
from dra_core.scheduling.errors import UnexpectedEventError
from dra_core.scheduling.extended_claim import in_memory_claim
from dra_core.scheduling.in_flight import ClaimTracker, DevicesFreed
from dra_core.scheduling.wakeups import before_filtering, wake_up
from dra_core.scheduling.wakeups_demand import Lookups, demand_of
from dra_core.scheduling.wakeups_verdict import Queueing, WakeReason, WakeUp, queue, skip
from support.allocation_builders import device_class, everything, exactly, first, sub
from support.claim_json import allocation_json
from support.claims import make_claim, make_pod, owner, template
from support.contexts import make_context
from support.pods import GPU, container, offering, pod_of
from support.sleeping import (
    AT_ONCE,
    QUEUE,
    SKIP,
    answer,
    change,
    claim,
    consumers,
    lookups,
    pod_using,
)

R = WakeReason
OURS = decode_allocation_result(allocation_json("gpu-0"))
THEIRS = decode_allocation_result(allocation_json("gpu-1"))
BY_DRIVER = attrs.evolve(OURS, controller="ctl")

POD = pod_using("gpu")
FREE = claim()
TAKEN = claim(allocation=OURS)
OTHER = claim(name="other", allocation=THEIRS)
KNOWN = lookups(FREE)
TEMPLATE_POD = make_pod(template("e"), statuses={"e": "gpu"})
CLASS_A = device_class("class-a")


# Claims


def test_bug_69_a_deleted_allocated_claim_frees_devices() -> None:
    """An allocation of the scheduler vanished, by update or delete: whoever used it
    (k/k#140831)."""
    for new in (None, claim(name="other")):
        assert answer(POD, OTHER, new, KNOWN) == (QUEUE, R.DEVICES_FREED)
    # Not if a controller had allocated it: its devices are not ours to give.
    theirs = attrs.evolve(OTHER, allocation=BY_DRIVER)
    assert answer(POD, theirs, None, KNOWN) == (SKIP, R.OTHER_CLAIM)
    # Nor if nothing was allocated.
    assert answer(POD, claim(name="other"), None, KNOWN) == (SKIP, R.OTHER_CLAIM)


def test_an_allocation_that_changes_in_place_frees_something() -> None:
    """What never happens counts as freed if it does; a time that is noted does not."""
    changed = attrs.evolve(OTHER, allocation=OURS)
    assert answer(POD, OTHER, changed, KNOWN) == (QUEUE, R.DEVICES_FREED)
    timed = attrs.evolve(THEIRS, allocation_timestamp="2026-01-01T00:00:00Z")
    noted = attrs.evolve(OTHER, allocation=timed)
    assert answer(POD, OTHER, noted, KNOWN) == (SKIP, R.OTHER_CLAIM)
    replaced = attrs.evolve(OTHER, metadata=attrs.evolve(OTHER.metadata, uid="new"))
    assert answer(POD, OTHER, replaced, KNOWN) == (QUEUE, R.DEVICES_FREED)


def test_claims_that_do_not_resolve() -> None:
    """The pod's claims do not resolve: skip, even if devices became free."""
    assert answer(POD, OTHER, None, lookups()) == (SKIP, R.CLAIMS_UNRESOLVED)
    waiting = make_pod(template("e"))
    assert answer(waiting, None, FREE, KNOWN) == (SKIP, R.CLAIMS_UNRESOLVED)
    both = pod_using("gpu", "net")
    assert answer(both, None, FREE, KNOWN) == (SKIP, R.CLAIMS_UNRESOLVED)
    deleted = claim(deleted=True)
    assert answer(POD, FREE, deleted, lookups(deleted)) == (SKIP, R.CLAIMS_UNRESOLVED)


def test_the_pods_claim() -> None:
    """Added: queue. Status equal: skip. Else queue."""
    assert answer(POD, None, FREE, KNOWN) == (QUEUE, R.CLAIM_ADDED)
    assert answer(POD, FREE, TAKEN, lookups(TAKEN)) == (QUEUE, R.CLAIM_CHANGED)
    marked = claim(finalizers=("x",), version="2", annotations={"a": "b"})
    assert answer(POD, FREE, marked, lookups(marked)) == (SKIP, R.SAME_STATUS)


@pytest.mark.parametrize(
    "changed",
    [
        {"reserved_for": consumers(1)},
        {"allocation": None},
        {"allocation": BY_DRIVER},
        {"deallocation_requested": True},
        {"device_statuses": (AllocatedDeviceStatus("d", "node-1", "gpu-0"),)},
    ],
)
def test_any_change_of_its_status(changed: Any) -> None:
    """Whatever changes in the status: it may be what the pod waits for."""
    new = attrs.evolve(TAKEN, **changed)
    assert answer(POD, TAKEN, new, lookups(new))[0] == QUEUE


def test_not_a_claim_of_the_pod() -> None:
    """Told by the UID, not by the name."""
    other = claim(name="other")
    assert answer(POD, None, other, lookups(FREE, other)) == (SKIP, R.OTHER_CLAIM)
    again = attrs.evolve(FREE, metadata=attrs.evolve(FREE.metadata, uid="older"))
    assert answer(POD, None, again, KNOWN) == (SKIP, R.OTHER_CLAIM)
    elsewhere = claim(namespace="team-b")
    elsewhere = attrs.evolve(elsewhere, metadata=attrs.evolve(elsewhere.metadata, uid="e"))
    assert answer(POD, None, elsewhere, lookups(FREE, elsewhere)) == (SKIP, R.OTHER_CLAIM)


def test_a_claim_that_becomes_the_pods() -> None:
    """A generated claim gets its owner after it was named: nothing else would say so."""
    owned = attrs.evolve(FREE, metadata=attrs.evolve(FREE.metadata, owner_references=(owner(),)))
    assert answer(TEMPLATE_POD, FREE, owned, lookups(owned)) == (QUEUE, R.OWNER_CHANGED)


def test_the_special_claim_that_was_in_the_way() -> None:
    """A claim for extended resources left from an earlier attempt goes: try again."""
    pod = pod_of(container("c", gpu=1))
    left = in_memory_claim(pod, "uid-1")
    assert answer(pod, left, None, lookups())[0] == QUEUE
    next_pod = attrs.evolve(pod, metadata=attrs.evolve(pod.metadata, uid="next"))
    assert answer(next_pod, left, None, lookups()) == (SKIP, R.OTHER_CLAIM)


def test_bug_59_events_of_the_cache() -> None:
    """What the caller assumed is the old state of the event (k/k#123698, k/k#124595).

    The informer shows the claim first without allocation, later without again: between
    the two the scheduler had assumed one. Comparing informer objects would see no change.
    """
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    known = Lookups(cache.find)
    answers: list[WakeUp] = []
    cache.observe(claim(version="1"))
    cache.observe(claim(name="other", version="1"))
    stop = cache.add_handler(lambda event: answers.append(wake_up(POD, event, known)))
    assert [found.reason for found in answers] == [R.CLAIM_ADDED, R.OTHER_CLAIM]
    answers.clear()
    cache.assume(claim(name="other", version="2", allocation=OURS))
    cache.observe(claim(name="other", version="2", allocation=OURS))
    cache.observe(claim(name="other", version="3"))
    assert answers == [skip(R.OTHER_CLAIM), queue(R.DEVICES_FREED)]
    answers.clear()
    # What was assumed for the pod's own claim and is undone.
    cache.assume(claim(version="4", allocation=OURS))
    cache.restore(ObjectKey("team-a", "gpu"))
    assert [found.queueing for found in answers] == [Queueing.QUEUE, Queueing.QUEUE]
    stop()


# In flight


def test_devices_freed_in_flight() -> None:
    """Removed without a stored allocation: whoever uses the claim or has a pending one."""
    event = DevicesFreed(OTHER)
    assert wake_up(POD, event, KNOWN) == queue(R.DEVICES_FREED)
    assert wake_up(POD, event, lookups(TAKEN)) == skip(R.NOTHING_PENDING)
    assert wake_up(POD, DevicesFreed(TAKEN), lookups(TAKEN)) == queue(R.DEVICES_FREED)
    assert wake_up(make_pod(), event, KNOWN) == skip(R.NOTHING_PENDING)
    asking = pod_of(container("c", gpu=1))
    assert wake_up(asking, event, lookups(classes=[offering("c", GPU)])).wakes
    assert not wake_up(asking, event, lookups(classes=[offering("c")])).wakes
    # A pod of which one claim is not there yet may have another one that waits.
    assert wake_up(pod_using("gone", "gpu"), event, KNOWN).wakes


def test_the_tracker_tells_of_freed_devices() -> None:
    """The event comes from the tracker: an entry released wakes a pod with a pending claim."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    cache.observe(claim(version="1"))
    cache.observe(claim(name="other", version="1"))
    tracker = ClaimTracker(cache)
    known = Lookups(cache.find, pending=tracker.pending)
    answers: list[WakeUp] = []
    tracker.add_handler(lambda event: answers.append(wake_up(POD, event, known)))
    tracker.start([claim(version="1", allocation=OURS)], "other-pod")
    verdict = before_filtering(POD, attrs.evolve(known, device_class=lambda _: CLASS_A))
    assert isinstance(verdict, Stopped)
    assert verdict.reason is StopReason.IN_FLIGHT
    tracker.release("gpu-uid", "other-pod")
    assert answers == [queue(R.DEVICES_FREED)]


# Pods


def test_bug_69_a_generated_name_is_recorded() -> None:
    """The pod is updated and all its claims resolve now (k/k#127497)."""
    parked = make_pod(template("e"))
    named_now = make_pod(template("e"), statuses={"e": "gpu"})
    owned = attrs.evolve(FREE, metadata=make_claim("gpu", owner()).metadata)
    assert answer(parked, parked, named_now, lookups(owned)) == (QUEUE, R.POD_UPDATED)
    # Before its cache shows the claim, the pod goes on waiting; the claim's event follows.
    assert answer(parked, parked, named_now, lookups()) == (SKIP, R.CLAIMS_UNRESOLVED)
    assert answer(named_now, None, owned, lookups(owned)) == (QUEUE, R.CLAIM_ADDED)


def test_other_pods() -> None:
    """Only this pod's update counts, told by the UID."""
    other = pod_using("gpu", uid="other-uid")
    assert answer(POD, other, other, KNOWN) == (SKIP, R.OTHER_POD)
    assert answer(POD, None, POD, KNOWN) == (QUEUE, R.POD_UPDATED)
    assert answer(POD, POD, None, KNOWN) == (SKIP, R.GONE)
    assert answer(POD, POD, POD, lookups()) == (SKIP, R.CLAIMS_UNRESOLVED)


# Classes


@pytest.mark.parametrize(
    ("old", "new"), [(None, CLASS_A), (CLASS_A, CLASS_A), (CLASS_A, None)], ids=str
)
def test_device_classes(old: DeviceClass | None, new: DeviceClass | None) -> None:
    """Added, updated, deleted: a pending request or subrequest names it."""
    assert answer(POD, old, new, KNOWN) == (QUEUE, R.CLASS_CHANGED)
    alternatives = claim(first("r", sub("a", of="class-b"), sub("b")))
    assert answer(POD, old, new, lookups(alternatives)) == (QUEUE, R.CLASS_CHANGED)
    of_driver = claim(driver="ctl")
    assert answer(POD, old, new, lookups(of_driver)) == (QUEUE, R.CLASS_CHANGED)
    others = claim(exactly("r", of="class-b"))
    assert answer(POD, old, new, lookups(others)) == (SKIP, R.OTHER_CLASS)
    assert answer(POD, old, new, lookups(TAKEN)) == (SKIP, R.OTHER_CLASS)


def test_classes_of_extended_resources() -> None:
    """The pod asks for what a class offers: before or after, explicitly or implicitly."""
    asking = pod_of(container("c", gpu=1))
    implicit = pod_of(container("c", **{"deviceclass.resource.kubernetes.io/c": 1}))
    without, with_gpu = offering("c"), offering("c", GPU)
    for old, new in [(None, with_gpu), (without, with_gpu), (with_gpu, without), (with_gpu, None)]:
        assert answer(asking, old, new, lookups()) == (QUEUE, R.CLASS_CHANGED)
        assert answer(implicit, old, new, lookups()) == (QUEUE, R.CLASS_CHANGED)
    assert answer(asking, None, without, lookups()) == (SKIP, R.OTHER_CLASS)
    assert answer(implicit, None, offering("d"), lookups()) == (SKIP, R.OTHER_CLASS)
    nothing = pod_of(container("c", gpu=0))
    assert answer(nothing, None, with_gpu, lookups()) == (SKIP, R.OTHER_CLASS)
    found = wake_up(asking, change(None, with_gpu), lookups())
    assert found.subject == GPU


# Taint rules

RULE = DeviceTaintRule(
    ObjectMeta("rule"), DeviceTaintSelector("driver-a"), DeviceTaint("k", "v", "NoSchedule")
)


def test_taint_rules() -> None:
    """Added: more taints cannot help. Changed or removed: they may have been in the way."""
    assert answer(POD, None, RULE, KNOWN) == (SKIP, R.CANNOT_HELP)
    assert answer(POD, RULE, None, KNOWN) == (QUEUE, R.SUPPLY_CHANGED)
    for changed in (
        attrs.evolve(RULE, device_selector=DeviceTaintSelector("driver-b")),
        attrs.evolve(RULE, device_selector=None),
        attrs.evolve(RULE, taint=DeviceTaint("k", "v", "None")),
    ):
        assert answer(POD, RULE, changed, KNOWN) == (QUEUE, R.SUPPLY_CHANGED)
    relabelled = attrs.evolve(RULE, metadata=ObjectMeta("rule", labels={"a": "b"}))
    assert answer(POD, RULE, relabelled, KNOWN) == (SKIP, R.UNCHANGED)


def test_taint_rules_and_requests_for_all() -> None:
    """With mode All a device that is tainted may be one less in the way."""
    known = lookups(claim(everything("r")))
    assert answer(POD, None, RULE, known) == (QUEUE, R.SUPPLY_CHANGED)
    alternatives = lookups(claim(first("r", sub("a"), sub("b", None))))
    assert answer(POD, None, RULE, alternatives) == (QUEUE, R.SUPPLY_CHANGED)


def test_taint_rules_and_pods_that_need_no_device() -> None:
    """Nothing to find devices for: no taint is in the way."""
    for known in (lookups(TAKEN), lookups(claim(driver="ctl"))):
        for old, new in [(None, RULE), (RULE, None)]:
            assert answer(POD, old, new, known) == (SKIP, R.NOTHING_PENDING)


# Nodes


def a_node(**changes: Any) -> Node:
    return attrs.evolve(Node(ObjectMeta("n", labels={"zone": "a"})), **changes)


def with_gpus(number: int, **others: int) -> Node:
    limits = container("c", gpu=number, **others).limits
    return a_node(allocatable=limits)


def test_nodes() -> None:
    """Added, labels changed, declared features changed: queue; else skip."""
    labelled = a_node(metadata=ObjectMeta("n", labels={"zone": "b"}))
    featured = a_node(declared_features=("f",))
    for old, new in [(None, a_node()), (a_node(), labelled), (a_node(), featured)]:
        assert answer(POD, old, new, KNOWN) == (QUEUE, R.NODE_CHANGED)
    touched = a_node(metadata=attrs.evolve(a_node().metadata, resource_version="9"))
    assert answer(POD, a_node(), touched, KNOWN) == (SKIP, R.UNCHANGED)
    assert answer(POD, a_node(), None, KNOWN) == (SKIP, R.GONE)


def test_allocatable_of_extended_resources() -> None:
    """Of a resource that the pod asks for, amounts count; of others they do not."""
    asking = pod_of(container("c", gpu=1, cpu=1))
    for old, new in [(a_node(), with_gpus(1)), (with_gpus(1), with_gpus(0))]:
        assert answer(asking, old, new, lookups()) == (QUEUE, R.NODE_CHANGED)
        assert answer(POD, old, new, KNOWN) == (SKIP, R.UNCHANGED)
    busier = with_gpus(1, cpu=3, nic=2)
    assert answer(asking, with_gpus(1, cpu=4), busier, lookups()) == (SKIP, R.UNCHANGED)


# PodSchedulingContext

CLASSIC = pod_using("gpu", "net")
PENDING = lookups(claim(driver="ctl"), claim(name="net", driver="ctl"))


def reports(**unsuitable: list[str]) -> Any:
    """A context with n1 selected and these reports."""
    return make_context("n1", (), {f"e-{name}": nodes for name, nodes in unsuitable.items()})


BOTH = reports(gpu=[], net=[])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (BOTH, None, (SKIP, R.GONE)),
        (None, reports(), (SKIP, R.REPORT_INCOMPLETE)),
        (None, reports(gpu=[]), (SKIP, R.REPORT_INCOMPLETE)),
        (reports(), reports(net=["n1"]), (SKIP, R.REPORT_INCOMPLETE)),
        (None, BOTH, (AT_ONCE, R.REPORTED)),
        (reports(gpu=[]), BOTH, (AT_ONCE, R.REPORTED)),
        (BOTH, reports(gpu=[], net=[], other=[]), (AT_ONCE, R.REPORTED)),
        (BOTH, reports(gpu=["n2", "n1"], net=[]), (AT_ONCE, R.SELECTED_UNSUITABLE)),
        (BOTH, BOTH, (SKIP, R.SAME_STATUS)),
        (BOTH, attrs.evolve(BOTH, potential_nodes=("n1",)), (SKIP, R.SAME_STATUS)),
        (BOTH, reports(gpu=["n2"], net=[]), (QUEUE, R.CONTEXT_CHANGED)),
        (reports(gpu=[], net=[], other=["n1"]), BOTH, (QUEUE, R.CONTEXT_CHANGED)),
    ],
)
def test_contexts(old: Any, new: Any, expected: tuple[str, WakeReason]) -> None:
    """Known new information is worth an attempt at once."""
    assert answer(CLASSIC, old, new, PENDING) == expected


def test_contexts_of_other_pods() -> None:
    """Told by namespace and name; and the pod's claims have to be there."""
    other = attrs.evolve(BOTH, metadata=attrs.evolve(BOTH.metadata, namespace="team-b"))
    assert answer(CLASSIC, None, other, PENDING) == (SKIP, R.OTHER_POD)
    assert answer(CLASSIC, None, BOTH, lookups()) == (SKIP, R.CLAIMS_UNRESOLVED)


def test_reports_are_awaited_for_claims_of_drivers_only() -> None:
    """A claim that is allocated, or that the scheduler allocates, needs no report."""
    known = lookups(claim(driver="ctl"), claim(name="net"))
    assert answer(CLASSIC, None, reports(gpu=[]), known) == (AT_ONCE, R.REPORTED)
    known = lookups(claim(driver="ctl"), claim(name="net", driver="ctl", allocation=BY_DRIVER))
    assert answer(CLASSIC, None, reports(gpu=[]), known) == (AT_ONCE, R.REPORTED)
    none_selected = attrs.evolve(reports(gpu=[""], net=[]), selected_node="")
    assert answer(CLASSIC, BOTH, none_selected, PENDING) == (QUEUE, R.CONTEXT_CHANGED)
    found = wake_up(CLASSIC, change(None, reports(gpu=[])), PENDING)
    assert found.subject == "e-net"


# Misuse


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, None),
        (None, "text"),
        (FREE, POD),
        (ResourceClaimTemplate(ObjectMeta("t")), None),
        (None, ResolvedClaim("e", FREE)),
    ],
    ids=["nothing", "no object", "two kinds", "template", "answer"],
)
def test_an_unexpected_object_is_an_error(old: Any, new: Any) -> None:
    """An event that no rule is about is an error, never a silent skip."""
    with pytest.raises(UnexpectedEventError) as caught:
        wake_up(POD, CacheEvent(ObjectKey("", ""), old, new), KNOWN)
    assert caught.value.old == type(old).__name__
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_what_is_not_looked_up_counts_on_the_safe_side() -> None:
    """Without look-ups for classes, pools and the rest, the answer is to queue."""
    known = Lookups({FREE.metadata.key: FREE}.get)
    asking = pod_of(container("c", gpu=1))
    assert demand_of(asking, known).needs_devices
    assert answer(asking, RULE, None, known) == (QUEUE, R.SUPPLY_CHANGED)


def test_inputs_survive() -> None:
    """No rule changes what it is given."""
    events = [(FREE, TAKEN), (None, RULE), (a_node(), with_gpus(1)), (BOTH, reports(gpu=["n1"]))]
    before = pickle.dumps((POD, events))
    for old, new in events:
        wake_up(POD, change(old, new), KNOWN)
    assert pickle.dumps((POD, events)) == before


def test_another_uid_is_another_object() -> None:
    """An update that shows another object is a delete and an add, the more urgent of both."""

    def earlier(obj: Any) -> Any:
        return attrs.evolve(obj, metadata=attrs.evolve(obj.metadata, uid="earlier-uid"))

    context, strange = make_context(pod=POD), make_context(pod=pod_using("gpu", name="strange"))
    for new, expected in (
        (FREE, (QUEUE, R.CLAIM_ADDED)),
        (claim(name="other"), (SKIP, R.OTHER_CLAIM)),
        (Node(ObjectMeta("n1", "", "n1-uid")), (QUEUE, R.NODE_CHANGED)),
        (context, (AT_ONCE, R.REPORTED)),
        (strange, (SKIP, R.GONE)),
    ):
        assert answer(POD, earlier(new), new, KNOWN) == expected
    with pytest.raises(UnexpectedEventError):
        wake_up(POD, change(Node(ObjectMeta("x", "", "1")), FREE), KNOWN)
