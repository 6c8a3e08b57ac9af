"""Why nothing fits, as data."""

import pickle

from dra_core.allocator.results import (
    Conflict,
    ConflictKind,
    Rejected,
    RejectedFor,
    RequestReport,
    Unsatisfiable,
)
from dra_core.api.objects import DeviceTaint
from dra_core.testing.problem import Problem
from support.allocation_builders import (
    claim,
    device,
    device_id,
    devices,
    distinct,
    everything,
    exactly,
    in_use,
    match,
    pool_slice,
    problem,
    shared_use,
)
from support.allocator import allocate


def reported(one: Problem) -> Unsatisfiable:
    outcome = allocate(one)
    assert isinstance(outcome, Unsatisfiable)
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    return outcome


def conflict(one: Problem) -> Conflict:
    (found,) = reported(one).conflicts
    return found


def test_every_reason_a_device_can_be_rejected_for() -> None:
    """Each device stands under the first check that it fails, in candidate order."""
    members = [
        device("used", {"k": 1}),
        device("other", {"k": 2}),
        device("tainted", {"k": 1}, taints=(DeviceTaint("t", "v", "NoSchedule"),)),
        device("small", {"k": 1}, capacity={"m": "1Gi"}),
        device("no-attribute", {"k": 1}, capacity={"m": "8Gi"}),
        device("full", {"k": 1, "a": 1}, capacity={"m": "8Gi"}, shared=True),
        device("lacks", {"k": 1, "a": 1}),
        device("starved", {"k": 1, "a": 1}, capacity={"m": "8Gi"}, counters={"cs": {"c": "2"}}),
    ]
    asked = exactly("r", 1, 'device.attributes["driver-a"].k == 1', capacity={"m": "2Gi"})
    one = problem(
        claim(asked, constraints=(match("a"),)),
        pool_slice("s", *members, offers={"cs": {"c": "1"}}),
        allocated=shared_use({"full": {"m": "7Gi"}}).with_unavailable([device_id("used")]),
    )
    (request,) = reported(one).requests
    assert request == RequestReport(
        0,
        "r",
        1,
        0,
        (
            Rejected(RejectedFor.IN_USE, (device_id("used"),)),
            Rejected(RejectedFor.SELECTOR, (device_id("other"),)),
            Rejected(RejectedFor.CAPACITY_MISSING, (device_id("tainted"), device_id("lacks")), "m"),
            Rejected(RejectedFor.CAPACITY_TOO_SMALL, (device_id("small"),), "m"),
            Rejected(RejectedFor.CAPACITY_EXHAUSTED, (device_id("full"),), "m"),
            Rejected(RejectedFor.COUNTERS_EXHAUSTED, (device_id("starved"),), "cs/c"),
            Rejected(RejectedFor.ATTRIBUTE, (device_id("no-attribute"),), "driver-a/a"),
        ),
    )


def test_taint_and_features() -> None:
    """A taint is named; features that are off are reasons."""
    members = [
        device("tainted", taints=(DeviceTaint("t", "v", "NoExecute"),)),
        device("binding", binding_conditions=("ready",)),
        device("part", counters={"cs": {"c": "1"}}),
    ]
    off = ["DeviceBindingAndStatus", "PartitionableDevices"]
    one = problem(claim(exactly("r")), pool_slice("s", *members), off=off)
    (request,) = reported(one).requests
    assert [(r.why, r.detail) for r in request.rejected] == [
        (RejectedFor.BINDING_CONDITIONS_OFF, ""),
        (RejectedFor.PARTITIONS_OFF, ""),
        (RejectedFor.TAINT, "t=v:NoExecute"),
    ]


def test_slices_that_skip_node_operations() -> None:
    """A node that does not declare the feature cannot use them."""
    one = problem(
        claim(exactly("r")), pool_slice("s", device("d1"), skip_node_operations=("Prepare",))
    )
    (request,) = reported(one).requests
    assert [r.why for r in request.rejected] == [RejectedFor.NODE_OPERATIONS]


def test_conflicts() -> None:
    """The proof names the requests, the subject and the numbers."""
    four = pool_slice("s", *devices(4))
    assert conflict(problem(claim(exactly("r", 5)), four)) == Conflict(
        ConflictKind.TOO_FEW, ((0, "r"),), "", 5, 4
    )
    pair = claim(exactly("r", 3), exactly("q", 2))
    assert conflict(problem(pair, four)) == Conflict(
        ConflictKind.JOINTLY_TOO_FEW, ((0, "r"), (0, "q")), "", 5, 4
    )
    numbered = pool_slice("s", *(device(f"d{n}", {"a": n % 2}) for n in range(4)))
    asked = claim(exactly("r", 3), constraints=(match("a"),))
    assert conflict(problem(asked, numbered)) == Conflict(
        ConflictKind.MATCH_ATTRIBUTE, ((0, "r"),), "driver-a/a", 3, -1
    )
    asked = claim(exactly("r", 3), constraints=(distinct("a"),))
    assert conflict(problem(asked, numbered)) == Conflict(
        ConflictKind.DISTINCT_ATTRIBUTE, ((0, "r"),), "driver-a/a", 3, -1
    )


def test_mode_all() -> None:
    """Nothing selected, and something selected that cannot be had."""
    four = pool_slice("s", *devices(4))
    none = claim(everything("r", "false"))
    assert conflict(problem(none, four)).kind is ConflictKind.NO_DEVICES
    used = problem(claim(everything("r")), four, allocated=in_use("d2"))
    assert conflict(used) == Conflict(ConflictKind.ALL_UNAVAILABLE, ((0, "r"),), "", 4, 3)


def test_pools_are_named() -> None:
    """BUG-35: an invalid pool is the coarse reason, and it is named with its fault."""
    one = problem(claim(exactly("r")), pool_slice("s", device("d1"), device("d1")))
    outcome = reported(one)
    assert outcome.reason == "invalid-pool"
    (fault,) = outcome.pools
    assert (fault.pool, str(fault.fault), fault.subject) == ("pool-1", "duplicate-device", "d1")
