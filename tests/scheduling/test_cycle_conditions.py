"""Binding conditions in a cycle: what a bound pod still waits for, and what happens if it fails."""

from typing import Any

import attrs
import pytest

from dra_core.claims.binding import RetryLater, RetryReason
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_claims import CycleSettings
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import (
    NodeReason,
    NodeUnfit,
    Passed,
    Stopped,
    StopReason,
    TroubleKind,
)
from dra_core.testing.faults import Fault, script
from support import allocation_builders as build
from support.cycle_site import NOW, Site, claim, fitting, is_in, later, pod
from support.pods import GPU, container

POD = pod("c")


@pytest.fixture
def site() -> Site:
    """Two nodes, each with a device that has to be attached before it can be used."""
    site = Site()
    site.add(*build.CLASSES)
    for name, device in (("node-1", "a1"), ("node-2", "b1")):
        conditions = {
            "binding_conditions": ("Attached",),
            "binding_failure_conditions": ("Broken",),
        }
        site.devices(name, build.device(device, **conditions))  # type: ignore[arg-type]
    site.add(claim("c"))
    return site


def report(site: Site, name: str = "c", **conditions: str) -> None:
    """The driver reports conditions of the claim's device."""
    allocation = site.stored(name).allocation
    assert allocation is not None
    device: dict[str, Any] = {
        "driver": allocation.results[0].driver,
        "pool": allocation.results[0].pool,
        "device": allocation.results[0].device,
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": "Test",
                "message": "",
                "lastTransitionTime": "2026-01-01T12:00:00Z",
            }
            for kind, status in conditions.items()
        ],
    }
    site.change_status(name, devices=[device])
    site.show()


def waiting(site: Site) -> PodCycle:
    """A cycle that has written everything and waits for the device."""
    cycle = site.bound(POD)
    assert is_in(cycle, CycleState.WAITING)
    return cycle


def test_the_pod_must_not_be_bound_before_its_devices_are_ready(site: Site) -> None:
    """Waiting → look again when the claim changes; ready → bind."""
    cycle = waiting(site)
    assert cycle.verdict == Passed()
    assert cycle.deadline == later(600)
    assert cycle.look_again(later(1)) is None
    assert is_in(cycle, CycleState.WAITING)
    report(site, Attached="False")
    assert cycle.look_again(later(2)) is None
    report(site, Attached="True")
    assert cycle.look_again(later(3)) == Passed()
    assert is_in(cycle, CycleState.BINDABLE)
    assert cycle.deadline is None


def test_devices_that_are_ready_already(site: Site) -> None:
    """A claim that is ready when the pod comes: no waiting."""
    waiting(site)
    report(site, Attached="True")
    assert is_in(site.bound(pod("c", name="other")), CycleState.BINDABLE)


def test_the_feature_may_be_off(site: Site) -> None:
    """Without DeviceBindingAndStatus nothing is waited for (by a cycle; allocating such
    devices is another question)."""
    waiting(site)
    site.show()
    off = CycleSettings(binding_conditions=False)
    assert is_in(site.bound(pod("c", name="other"), settings=off), CycleState.BINDABLE)


def test_a_device_fails(site: Site) -> None:
    """Failed → the attempt fails, unreserve, and the next one finds the claim unavailable on
    every node: a candidate for deallocation."""
    cycle = waiting(site)
    report(site, Broken="True")
    verdict = cycle.look_again(later(5))
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.pod_claim) == (StopReason.DEVICE_FAILED, "c")
    assert is_in(cycle, CycleState.BROKEN)
    site.drive(cycle, cycle.unreserve())
    assert site.stored("c").reserved_for == ()
    assert site.stored("c").allocation is not None
    site.show()
    again = site.filtered(POD)
    assert fitting(again) == []
    for found in again.nodes.values():
        assert isinstance(found, NodeUnfit)
        assert [problem.reason for problem in found.problems] == [NodeReason.DEVICE_FAILED]
        assert found.in_the_way == ("uid-c",)
    site.drive(again, again.post_filter())
    assert again.verdict == Stopped(StopReason.DEALLOCATED, "c", retry=True)
    assert site.stored("c").allocation is None
    assert site.stored("c").device_statuses == ()
    site.show()
    assert site.in_use() == []
    assert is_in(site.bound(POD), CycleState.WAITING)


def test_a_device_takes_too_long(site: Site) -> None:
    """Overdue: allocationTimestamp + timeout is past and something waits."""
    cycle = waiting(site)
    assert cycle.look_again(later(600)) is None
    verdict = cycle.look_again(later(601))
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.pod_claim) == (StopReason.DEVICE_OVERDUE, "c")
    site.drive(cycle, cycle.unreserve())
    site.show()
    again = site.cycle(POD)
    again.pre_enqueue()
    again.pre_filter(later(700))
    found = again.filter(site.nodes["node-1"])
    assert isinstance(found, NodeUnfit)
    assert [problem.reason for problem in found.problems] == [NodeReason.DEVICE_OVERDUE]


def test_the_timeout_is_a_parameter(site: Site) -> None:
    """600 s, a parameter."""
    short = CycleSettings(binding_timeout=later(5) - NOW)
    cycle = site.bound(POD, settings=short)
    assert cycle.deadline == later(5)
    assert cycle.look_again(later(5)) is None
    assert isinstance(cycle.look_again(later(6)), Stopped)


def test_the_first_deadline_counts(site: Site) -> None:
    """Several claims wait: look again at the earliest deadline at the latest."""
    site.add(claim("d"))
    pool = [build.device(name, binding_conditions=("Attached",)) for name in ("c1", "c2")]
    site.devices("node-1", *pool)
    for name, start in (("c", -100), ("d", 0)):
        first = site.reserved(pod(name, name=f"first-{name}"), "node-1")
        site.drive(first, first.pre_bind(later(start)))
        site.show()
    for order in (("c", "d"), ("d", "c")):
        both = site.bound(pod(*order, name=f"both-{order[0]}"))
        assert both.deadline == later(500)
    ready = site.bound(pod("c", "d", name="last"))
    report(site, "c", Attached="True")
    assert ready.look_again(later(1)) is None
    assert ready.deadline == later(600)


def test_what_others_make_the_cache_forget(site: Site) -> None:
    """What the API server returned in this attempt counts, also if the cache went back."""
    cycle = waiting(site)
    site.claims.restore(site.claims.list()[0].metadata.key)
    assert site.claims.list()[0].allocation is None
    assert cycle.look_again(later(1)) is None
    assert is_in(cycle, CycleState.WAITING)


def test_the_special_claim_is_lost_while_waiting(site: Site) -> None:
    """A claim that was just created is in flight until the cache shows it; later it may go."""
    extended = attrs.evolve(build.CLASSES[0], extended_resource_name=GPU)
    site.add(extended)
    asking = pod(containers=(container("c1", gpu=1),), name="asking")
    site.add(asking)
    cycle = site.bound(asking)
    assert is_in(cycle, CycleState.WAITING)
    assert cycle.look_again(later(1)) is None
    site.show()
    assert cycle.look_again(later(2)) is None
    (special,) = [c.name for c in site.claims.list() if c.name != "c"]
    site.server.unseed("resourceclaims", "default", special)
    for informer in site.informers:
        informer.list_anew()
    assert cycle.look_again(later(3)) == Stopped(StopReason.CLAIM_LOST, "", retry=True)
    site.drive(cycle, cycle.unreserve())
    assert cycle.troubles == ()
    assert site.in_use() == []


def test_failed_claims_of_others_are_not_deallocated(site: Site) -> None:
    """Reserved for somebody else: not a candidate."""
    waiting(site)
    report(site, Broken="True")
    other = site.filtered(pod("c", name="other"))
    assert fitting(other) == []
    assert other.post_filter() is None
    assert other.verdict == Stopped(StopReason.NO_NODE)


def test_the_claim_is_lost_while_waiting(site: Site) -> None:
    """While the pod waits its claim is deallocated, released or deleted: retry."""
    cycle = waiting(site)
    site.change_status("c", allocation=None, reservedFor=None)
    site.show()
    verdict = cycle.look_again(later(1))
    assert verdict == Stopped(
        StopReason.NOT_BOUND, "c", retry=True, cause=RetryLater(RetryReason.DEALLOCATED)
    )
    site.drive(cycle, cycle.unreserve())
    again = waiting(site)
    site.change_status("c", reservedFor=None)
    site.show()
    assert again.look_again(later(1)) == Stopped(StopReason.CLAIM_LOST, "c", retry=True)
    site.drive(again, again.unreserve())
    last = waiting(site)
    site.server.unseed("resourceclaims", "default", "c")
    site.claims.observe_delete(site.claims.list()[0])
    assert last.look_again(later(1)) == Stopped(StopReason.CLAIM_LOST, "c", retry=True)


def test_a_failed_deallocation_is_tried_again(site: Site) -> None:
    """A deallocation that meets with a conflict: reported, and the pod is tried again."""
    cycle = waiting(site)
    report(site, Broken="True")
    cycle.look_again(later(5))
    site.drive(cycle, cycle.unreserve())
    site.show()
    again = site.filtered(POD)
    site.line.source = script([Fault.CONTENTION])
    site.drive(again, again.post_filter())
    assert again.verdict == Stopped(StopReason.NO_NODE, retry=True)
    assert [trouble.kind for trouble in again.troubles] == [TroubleKind.DEALLOCATE]
    assert site.stored("c").allocation is not None
