"""Faults that other allocators had in their search, each as a test of both of ours.

What may live here: one test or more per entry of section A of the list of known faults
(``k/k`` is kubernetes/kubernetes), and those of section F that are about allocation.
The docstring says where it was reported and what went wrong.
"""

import copy
from typing import Any

import attrs
import pytest

from dra_core.allocator.results import Allocated, RejectedFor, StoppedBy, Undecided, Unsatisfiable
from dra_core.api.names import SharedDeviceId
from dra_core.api.objects import (
    AllocationResult,
    AttributeValue,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
    DeviceClaimConfiguration,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    DeviceToleration,
    ResourceClaim,
)
from dra_core.errors import AllocationError, SelectorFailedError, TooManyDevicesError
from dra_core.inventory.allocated import AllocatedState
from dra_core.inventory.taint_rules import apply_taint_rules
from dra_core.values.quantity import Quantity
from support.allocation_builders import (
    DRIVER,
    POOL,
    amounts,
    claim,
    device,
    device_class,
    device_id,
    devices,
    distinct,
    everything,
    exactly,
    first,
    granted,
    in_use,
    match,
    opaque,
    pool_slice,
    problem,
    served,
    shared_use,
    sub,
)
from support.solvers import SOLVERS, Solve, allocate

both = pytest.mark.parametrize("solve", SOLVERS)


def assert_does_not_fit(outcome: object, reason: str = "") -> None:
    """Nothing fits: an answer, no error."""
    assert isinstance(outcome, Unsatisfiable), outcome
    assert outcome.reason == reason


# --- mode All ------------------------------------------------------------------------------


def mixed_slice() -> Any:
    """Two GPUs and three channels of one driver."""
    gpus = [device(f"gpu-{n}", {"type": "gpu", "large": n == 1}) for n in range(2)]
    channels = [device(f"channel-{n}", {"type": "imex-channel"}) for n in range(3)]
    return pool_slice("s", *gpus, *channels)


GPU_CLASS = device_class("gpu", f'device.attributes["{DRIVER}"].type == "gpu"')


@both
def test_bug_01_all_minds_the_class_selector(solve: Solve) -> None:
    """k/k#127554: "all" was every device of the driver, channels too."""
    found = solve(problem(claim(everything("r", of="gpu")), mixed_slice(), classes=[GPU_CLASS]))
    assert granted(found) == [["gpu-0", "gpu-1"]]


@both
def test_bug_01_all_minds_the_selector_of_the_request(solve: Solve) -> None:
    """k/k#127554: the same with a selector of the request on top."""
    request = everything("r", f'device.attributes["{DRIVER}"].large', of="gpu")
    assert granted(solve(problem(claim(request), mixed_slice(), classes=[GPU_CLASS]))) == [
        ["gpu-1"]
    ]


@both
def test_bug_02_all_does_not_mind_an_unrelated_device(solve: Solve) -> None:
    """k/k#127565: a device outside the selected set, here in use, ended the request."""
    slices = [
        pool_slice("a", device("d1", {"mine": True})),
        pool_slice("b", device("d1", {"mine": False}), pool="pool-2"),
    ]
    request = everything("r", f'device.attributes["{DRIVER}"].mine')
    used = AllocatedState.from_parts([device_id("d1", pool="pool-2")])
    assert granted(solve(problem(claim(request), *slices, allocated=used))) == [["d1"]]


@both
def test_bug_02_all_in_use_is_an_answer(solve: Solve) -> None:
    """k/k#127565: "does not fit" is an answer, not an internal error."""
    used = in_use("d2")
    assert_does_not_fit(
        solve(problem(claim(everything("r")), pool_slice("s", *devices(2)), allocated=used))
    )


@both
@pytest.mark.parametrize("slices", [[], [pool_slice("s")]], ids=["no slice", "no devices"])
def test_bug_03_all_of_nothing_does_not_fit(solve: Solve, slices: list[Any]) -> None:
    """k/k#129310: All succeeded with no devices, and the pod ran without any."""
    assert_does_not_fit(solve(problem(claim(everything("r")), *slices)))


@both
def test_bug_22_all_with_counters_in_another_slice(solve: Solve) -> None:
    """k/k#138882: All met a device whose counters another slice defines, and crashed."""
    slices = [
        pool_slice("s1", device("d1", counters={"cs": {"memory": "4Gi"}}), count=2),
        pool_slice("s2", offers={"cs": {"memory": "8Gi"}}, count=2),
    ]
    assert granted(solve(problem(claim(everything("r")), *slices))) == [["d1"]]


@both
def test_bug_26_all_does_not_drop_an_exhausted_device(solve: Solve) -> None:
    """k/k#140769: a device with too little left was quietly left out of "all"."""
    members = [device(name, capacity={"c": "1"}, shared=True) for name in ("d1", "d2")]
    request = everything("r", capacity={"c": "1"})
    used = shared_use({"d1": {"c": "1"}})
    assert_does_not_fit(solve(problem(claim(request), pool_slice("s", *members), allocated=used)))


@both
def test_bug_26_all_leaves_out_what_could_never_serve(solve: Solve) -> None:
    """k/k#140769: too small, or without the capacity at all, is not part of "all"."""
    members = [
        device("small", capacity={"c": "1"}, shared=True),
        device("other", capacity={"d": "9"}, shared=True),
        device("large", capacity={"c": "2"}, shared=True),
    ]
    found = solve(problem(claim(everything("r", capacity={"c": "2"})), pool_slice("s", *members)))
    assert granted(found) == [["large"]]


# --- alternatives and limits -----------------------------------------------------------------


@both
def test_bug_04_failed_alternative_gives_devices_back(solve: Solve) -> None:
    """k/k#131660: what a failed subrequest had taken stayed taken."""
    request = first("req0", sub("sub0", None), sub("sub1", 1))
    found = solve(problem(claim(request), pool_slice("s", *devices(2)), allocated=in_use("d2")))
    assert served(found) == [[("req0/sub1", "d1")]]


@both
def test_bug_06_32_devices_are_possible(solve: Solve) -> None:
    """k/k#131662: devices counted twice, so that 17 were too many."""
    found = solve(problem(claim(exactly("r", 32)), pool_slice("s", *devices(40))))
    assert granted(found) == [[f"d{n}" for n in range(1, 33)]]


@both
@pytest.mark.parametrize(
    "requests", [[exactly("r", 33)], [exactly("a", 20), exactly("b", 13)]], ids=["one", "two"]
)
def test_bug_06_33_devices_are_too_many(solve: Solve, requests: list[Any]) -> None:
    """k/k#131662: more than 32 is an error, before any search."""
    with pytest.raises(TooManyDevicesError) as caught:
        solve(problem(claim(*requests), pool_slice("s", *devices(40))))
    assert (caught.value.needed, caught.value.limit) == (33, 32)


def test_bug_09_alternative_over_the_limit_is_dropped_at_once() -> None:
    """k/k#130593: 30 of 60 devices were tried in every combination before 8 were too many."""
    requests = [first("req0", sub("sub0", 30), sub("sub1", 1)), exactly("req1", 8)]
    found = allocate(problem(claim(*requests), pool_slice("s", *devices(60))))
    assert isinstance(found, Allocated)
    assert [one.request for one in found.results[0].results] == ["req0/sub1"] + ["req1"] * 8
    assert found.steps < 500


@pytest.mark.parametrize(
    ("last", "constraints"),
    [
        (exactly("last", 1, "false"), ()),
        (exactly("last", 1), (match("never"),)),
        (exactly("last", 8), ()),
    ],
    ids=["selects nothing", "nothing in common", "one too many"],
)
def test_bug_10_last_request_that_cannot_be_met(last: Any, constraints: Any) -> None:
    """k/k#131730: every permutation of identical devices was tried, minutes per node."""
    requests = [exactly(f"r{n}", 6) for n in range(4)]
    slices = pool_slice("s", *devices(24 + 7))
    found = allocate(problem(claim(*requests, last, constraints=constraints), slices))
    assert_does_not_fit(found)
    assert isinstance(found, Unsatisfiable)
    assert found.steps < 500


def test_bug_10_different_devices_that_cannot_meet_together() -> None:
    """k/k#131730: the same with devices that differ, one attribute value too few each."""
    members = [device(f"d{n}", {"numa": n // 3, "id": n}) for n in range(24)]
    requests = [exactly(f"r{n}", 2) for n in range(2)]
    found = allocate(
        problem(claim(*requests, constraints=[match("numa")]), pool_slice("s", *members))
    )
    assert_does_not_fit(found)
    assert isinstance(found, Unsatisfiable)
    assert found.steps < 2_000


def test_bug_11_out_of_budget_is_no_verdict() -> None:
    """k/k#132033, k/k#137607: running out of time was reported as "does not fit"."""
    whole = problem(claim(exactly("r", 3)), pool_slice("s", *devices(5)))
    assert isinstance(allocate(whole), Allocated)
    found = allocate(whole, budget=1)
    assert isinstance(found, Undecided)
    assert found.stopped_by is StoppedBy.BUDGET


# --- admin access ----------------------------------------------------------------------------


@both
def test_bug_07_admin_access_gives_no_device_twice(solve: Solve) -> None:
    """k/k#131269: two devices with admin access were one device twice."""
    slices = pool_slice("s", *devices(2))
    request = exactly("r", 2, admin_access=True)
    found = solve(problem(claim(request), slices, allocated=in_use("d1")))
    assert granted(found) == [["d1", "d2"]]


@both
@pytest.mark.parametrize("admin", [True, None], ids=["admin first", "normal first"])
def test_bug_07_two_claims_may_share_by_admin_access(solve: Solve, admin: bool | None) -> None:
    """k/k#131299: claims of one call may both get a device if the later one has admin access."""
    claims = [
        claim(exactly("r", admin_access=admin), name="claim-0"),
        claim(exactly("r", admin_access=True), name="claim-1"),
    ]
    assert granted(solve(problem(claims, pool_slice("s", device("d1"))))) == [["d1"], ["d1"]]


@both
def test_bug_07_admin_pick_blocks_a_normal_one(solve: Solve) -> None:
    """Within one call, a device picked with admin access is not free any more."""
    claims = [
        claim(exactly("r", admin_access=True), name="claim-0"),
        claim(exactly("r"), name="claim-1"),
    ]
    assert_does_not_fit(solve(problem(claims, pool_slice("s", device("d1")))))


@both
def test_bug_07_admin_one_and_all_of_the_same(solve: Solve) -> None:
    """k/k#131299: one claim cannot have a device by itself and again among all."""
    requests = [exactly("r", admin_access=True), everything("all", admin_access=True)]
    assert_does_not_fit(solve(problem(claim(*requests), pool_slice("s", *devices(2)))))


def allocated_claim(result: DeviceRequestAllocationResult, name: str = "other") -> ResourceClaim:
    """A claim that has one device already."""
    return attrs.evolve(claim(name=name), allocation=AllocationResult(results=(result,)))


@both
def test_bug_08_admin_access_holds_nothing(solve: Solve) -> None:
    """k/k#127266: a device that is only watched with admin access was not free."""
    watched = DeviceRequestAllocationResult("r", DRIVER, POOL, "d1", admin_access=True)
    used = AllocatedState.from_claims([allocated_claim(watched)])
    found = solve(problem(claim(exactly("r")), pool_slice("s", device("d1")), allocated=used))
    assert granted(found) == [["d1"]]


@both
def test_bug_08_flag_is_copied_to_the_result(solve: Solve) -> None:
    """k/k#127266: consumers tell admin access by the result."""
    claims = [
        claim(exactly("r", admin_access=True), name="claim-0"),
        claim(exactly("r", admin_access=False), name="claim-1"),
    ]
    found = solve(problem(claims, pool_slice("s", *devices(2))))
    assert isinstance(found, Allocated)
    assert [one.results[0].admin_access for one in found.results] == [True, None]


# --- results ---------------------------------------------------------------------------------

CONFIGURED = (device_class("a", config=["x"]), device_class("b", config=["y"]))


def configuration(found: object) -> list[tuple[str, tuple[str, ...], str]]:
    """Source, requests and kind of every configuration of the only claim."""
    assert isinstance(found, Allocated), found
    (result,) = found.results
    return [
        (one.source, one.requests, one.opaque.parameters["kind"])
        for one in result.config
        if one.opaque is not None
    ]


@both
def test_bug_12_class_config_names_its_requests(solve: Solve) -> None:
    """k/k#134789: configuration of a class applied to all requests, or was repeated."""
    requests = [exactly("req0", of="a"), exactly("req1", of="a"), exactly("req2", of="b")]
    found = solve(problem(claim(*requests), pool_slice("s", *devices(3)), classes=CONFIGURED))
    assert configuration(found) == [
        ("FromClass", ("req0", "req1"), "x"),
        ("FromClass", ("req2",), "y"),
    ]


@both
def test_bug_12_class_config_names_the_alternative(solve: Solve) -> None:
    """k/k#134789: the chosen subrequest stands for its request."""
    requests = [first("req0", sub("big", 9, of="b"), sub("small", of="a")), exactly("req1", of="b")]
    found = solve(problem(claim(*requests), pool_slice("s", *devices(3)), classes=CONFIGURED))
    assert configuration(found) == [
        ("FromClass", ("req0/small",), "x"),
        ("FromClass", ("req1",), "y"),
    ]


@both
def test_bug_13_claim_config_is_not_repeated(solve: Solve) -> None:
    """k/k#139730: configuration of a claim appeared once per request that it names."""
    requests = [exactly("req0"), exactly("req1"), exactly("req2")]
    config = (DeviceClaimConfiguration(("req0", "req1"), opaque("z")),)
    found = solve(problem(claim(*requests, config=config), pool_slice("s", *devices(3))))
    assert configuration(found) == [("FromClaim", ("req0", "req1"), "z")]


@both
def test_bug_14_config_for_everything_has_no_list(solve: Solve) -> None:
    """k/k#135074: configuration that names every request is stored without a list."""
    requests = [exactly("req0"), exactly("req1")]
    config = (DeviceClaimConfiguration(("req0", "req1"), opaque("z")),)
    found = solve(problem(claim(*requests, config=config), pool_slice("s", *devices(2))))
    assert configuration(found) == [("FromClaim", (), "z")]


@both
def test_bug_14_config_of_an_alternative_not_taken(solve: Solve) -> None:
    """Configuration for a subrequest that was not chosen is left out."""
    request = first("r", sub("s0", 9), sub("s1"))
    config = (
        DeviceClaimConfiguration(("r/s0",), opaque("not taken")),
        DeviceClaimConfiguration(("r/s1",), opaque("taken")),
        DeviceClaimConfiguration(("r",), opaque("whole")),
    )
    found = solve(problem(claim(request, config=config), pool_slice("s", *devices(1))))
    assert configuration(found) == [("FromClaim", (), "taken"), ("FromClaim", (), "whole")]


TOLERATION = DeviceToleration("k", "Exists", effect="NoExecute")


@both
@pytest.mark.parametrize(
    "request_", [exactly("r", tolerations=(TOLERATION,)),
                 first("r", sub("bad"), sub("good", tolerations=(TOLERATION,)))],
    ids=["exactly", "alternative"],
)  # fmt: skip
def test_bug_16_result_has_the_tolerations(solve: Solve, request_: Any) -> None:
    """k/k#134479: tolerations were lost, so the eviction controller removed the pod."""
    tainted = device("d1", taints=(DeviceTaint("k", "v", "NoExecute"),))
    found = solve(problem(claim(request_), pool_slice("s", tainted)))
    assert isinstance(found, Allocated)
    assert found.results[0].results[0].tolerations == (TOLERATION,)


# --- constraints -----------------------------------------------------------------------------


@both
def test_bug_17_list_intersection_is_restored(solve: Solve) -> None:
    """k/k#140300, k/k#140325: the common values stayed narrowed by a device given back."""
    members = [
        device("d1", {"numa": [1, 2]}),
        device("d2", {"numa": [1]}),
        device("d3", {"numa": [2]}),
        device("d4", {"numa": [2]}),
    ]
    request = claim(exactly("r", 3), constraints=[match("numa")])
    assert granted(solve(problem(request, pool_slice("s", *members)))) == [["d1", "d3", "d4"]]


@both
@pytest.mark.parametrize(
    "value", ["x", 1, True, AttributeValue("version", "1.0.0"), ["x"]],
    ids=["string", "int", "bool", "version", "list"],
)  # fmt: skip
def test_bug_27_distinct_compares_values(solve: Solve, value: Any) -> None:
    """k/k#135022: two equal values passed as distinct, because they are two objects."""
    members = [device("d1", {"a": value}), device("d2", {"a": copy.copy(value)})]
    request = claim(exactly("r", 2), constraints=[distinct("a")])
    assert_does_not_fit(solve(problem(request, pool_slice("s", *members))))


@both
def test_bug_27_distinct_needs_the_attribute(solve: Solve) -> None:
    """k/k#135022: a device without the attribute fails."""
    members = [device("d1", {"a": "x"}), device("d2")]
    request = claim(exactly("r", 2), constraints=[distinct("a")])
    assert_does_not_fit(solve(problem(request, pool_slice("s", *members))))


@both
@pytest.mark.parametrize("constraint", [distinct("a"), match("a")], ids=["distinct", "match"])
def test_bug_27_value_of_no_known_type_fails(solve: Solve, constraint: Any) -> None:
    """k/k#135022: a value from a newer API is no value to compare."""
    members = [device("d1", {"a": AttributeValue("", None)}), device("d2", {"a": "y"})]
    request = claim(exactly("r", of="class-any"), constraints=[constraint])
    assert granted(solve(problem(request, pool_slice("s", *members)))) == [["d2"]]


@both
def test_bug_27_all_devices_are_compared(solve: Solve) -> None:
    """The first and the third of three may not be equal either."""
    members = [device("d1", {"a": 1}), device("d2", {"a": 2}), device("d3", {"a": 1})]
    request = claim(exactly("r", 3), constraints=[distinct("a")])
    assert_does_not_fit(solve(problem(request, pool_slice("s", *members))))


# --- counters --------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("rebuilt", [False, True], ids=["given", "from claims"])
def test_bug_18_shared_device_pays_its_counters_once(solve: Solve, rebuilt: bool) -> None:
    """k/k#140433: a device known only by its share was charged for its counters again."""
    members = [device("d1", counters={"cs": {"c": "4"}}, shared=True)]
    slices = [
        pool_slice("s", *members, count=2),
        pool_slice("t", count=2, offers={"cs": {"c": "4"}}),
    ]
    share = DeviceRequestAllocationResult("r", DRIVER, POOL, "d1", share_id="share")
    used = (
        AllocatedState.from_claims([allocated_claim(share)])
        if rebuilt
        else AllocatedState.from_parts(shares=[SharedDeviceId(DRIVER, POOL, "d1", "share")])
    )
    assert granted(solve(problem(claim(exactly("r")), *slices, allocated=used))) == [["d1"]]


@both
def test_bug_19_share_from_before_is_charged(solve: Solve) -> None:
    """k/k#139034: a fresh allocator did not charge the counters of an existing share."""
    slices = [
        pool_slice(
            "s",
            device("d1", {"mode": "a"}, counters={"cs": {"c": "1"}}, shared=True),
            device("d2", {"mode": "b"}, counters={"cs": {"c": "1"}}, shared=True),
            count=2,
        ),
        pool_slice("t", count=2, offers={"cs": {"c": "1"}}),
    ]
    request = exactly("r", 1, f'device.attributes["{DRIVER}"].mode == "b"')
    used = shared_use({"d1": None})
    assert_does_not_fit(solve(problem(claim(request), *slices, allocated=used)))


@both
def test_bug_20_counters_belong_to_driver_and_pool(solve: Solve) -> None:
    """k/k#140434: drivers with equal names of pools and sets took from each other."""
    slices = [
        one
        for driver in ("driver-a", "driver-b")
        for one in (
            pool_slice(
                f"{driver}-s", device("d1", counters={"cs-1": {"c": "1"}}), driver=driver, count=2
            ),
            pool_slice(f"{driver}-t", driver=driver, count=2, offers={"cs-1": {"c": "1"}}),
        )
    ]
    requests = [exactly("a", of="class-a"), exactly("b", of="class-b")]
    assert granted(solve(problem(claim(*requests), *slices))) == [["d1", "d1"]]
    used = AllocatedState.from_parts([device_id("d1", driver="driver-b")])
    assert granted(solve(problem(claim(requests[0]), *slices, allocated=used))) == [["d1"]]


@both
def test_bug_23_feature_off_hides_partitions_only(solve: Solve) -> None:
    """One partition hid its whole slice when the feature was off."""
    members = [device("d1", counters={"cs": {"c": "1"}}), device("d2")]
    found = solve(
        problem(claim(exactly("r")), pool_slice("s", *members), off=["PartitionableDevices"])
    )
    assert granted(found) == [["d2"]]


@both
def test_bug_23_feature_off_hides_per_device_slices(solve: Solve) -> None:
    """A slice with per-device node selection is dropped whole."""
    one = pool_slice("s", device("d1", all_nodes=True), node="", per_device_node_selection=True)
    assert granted(solve(problem(claim(exactly("r")), one))) == [["d1"]]
    assert_does_not_fit(solve(problem(claim(exactly("r")), one, off=["PartitionableDevices"])))


@both
def test_bug_23_all_with_an_unusable_partition_does_not_fit(solve: Solve) -> None:
    """k/k#141091 (not taken): the unusable device is still one of all."""
    members = [device("d1", counters={"cs": {"c": "1"}}), device("d2")]
    found = solve(
        problem(claim(everything("r")), pool_slice("s", *members), off=["PartitionableDevices"])
    )
    assert_does_not_fit(found)


@both
def test_bug_25_device_that_paid_serves_again(solve: Solve) -> None:
    """k/k#134100: a shared device that had paid its counters in this call was refused."""

    def member(name: str, size: str) -> Any:
        return device(name, capacity={"size": size}, counters={"cs": {"c": size}}, shared=True)

    def at_least(size: int) -> str:
        capacity = f'device.capacity["{DRIVER}"].size'
        return f'{capacity}.compareTo(quantity("{size}")) >= 0'

    slices = [
        pool_slice("s", member("d1", "2"), member("d2", "4"), member("d3", "2"), count=2),
        pool_slice("t", count=2, offers={"cs": {"c": "4"}}),
    ]
    requests = [
        exactly("req0", capacity={"size": "1"}),
        exactly("req2", capacity={"size": "2"}),
        first(
            "req1",
            sub("sub0", 1, at_least(4), capacity={"size": "1"}),
            sub("sub1", 1, at_least(2), capacity={"size": "1"}),
        ),
    ]
    found = solve(problem(claim(*requests), *slices))
    assert served(found) == [[("req0", "d1"), ("req2", "d3"), ("req1/sub1", "d1")]]


# --- amounts ---------------------------------------------------------------------------------


def ranged(value: str, **limits: str) -> DeviceCapacity:
    """A capacity with a valid range; ``default`` is the policy's."""
    parsed = {key: Quantity.parse(text) for key, text in limits.items()}
    default = parsed.pop("default", None)
    return DeviceCapacity(
        Quantity.parse(value),
        CapacityRequestPolicy(default, (), CapacityRequestPolicyRange(**parsed)),
    )


@both
def test_bug_29_rounding_up_does_not_overflow(solve: Solve) -> None:
    """k/k#140441: rounding up 2^63-1 turned negative and passed every limit."""
    member = device("d1", capacity={"c": ranged("1000", min="0", step="100")}, shared=True)
    request = exactly("r", capacity={"c": "9223372036854775807"})
    assert_does_not_fit(solve(problem(claim(request), pool_slice("s", member))))


@both
def test_bug_29_amounts_beyond_64_bits_are_exact(solve: Solve) -> None:
    """k/k#140441: a device large enough takes the request, rounded to the next step."""
    capacity = {"c": ranged("1e25", min="0", step="100", default="0")}
    member = device("d1", capacity=capacity, shared=True)
    request = exactly("r", capacity={"c": "9223372036854775807"})
    found = solve(problem(claim(request), pool_slice("s", member)))
    assert isinstance(found, Allocated)
    assert found.results[0].results[0].consumed_capacity == amounts({"c": "9223372036854775900"})


@both
@pytest.mark.parametrize("step", ["0", "-1", "-100m"])
def test_bug_30_bad_step_cannot_be_satisfied(solve: Solve, step: str) -> None:
    """k/k#139698: a step of zero divided by zero."""
    member = device("d1", capacity={"c": ranged("1000", min="1", step=step)}, shared=True)
    request = exactly("r", capacity={"c": "5"})
    assert_does_not_fit(solve(problem(claim(request), pool_slice("s", member))))


@both
@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        ({"min": "1e20"}, False),
        ({"min": "1", "max": "1e20"}, True),
        ({"min": "1", "step": "1e20"}, False),
        ({"min": "0", "max": "2e20", "default": "1e20"}, True),
    ],
    ids=["min", "max", "step", "default"],
)
def test_bug_30_limits_beyond_64_bits(solve: Solve, limits: dict[str, str], fits: bool) -> None:
    """k/k#140666: limits larger than int64 were nonsense; here they are what they say."""
    member = device("d1", capacity={"c": ranged("1e19", **limits)}, shared=True)
    found = solve(problem(claim(exactly("r", capacity={"c": "5"})), pool_slice("s", member)))
    assert isinstance(found, Allocated) is fits


@both
def test_bug_30_fractions_of_a_step(solve: Solve) -> None:
    """250m on steps of 100m is 300m: nothing is rounded to whole units on the way."""
    capacity = {"c": ranged("1", min="0", step="100m", default="0")}
    found = solve(
        problem(
            claim(exactly("r", capacity={"c": "250m"})),
            pool_slice("s", device("d1", capacity=capacity, shared=True)),
        )
    )
    assert isinstance(found, Allocated)
    assert found.results[0].results[0].consumed_capacity == amounts({"c": "300m"})


@both
def test_bug_32_arithmetic_leaves_the_callers_objects_alone(solve: Solve) -> None:
    """k/k#140518: shared quantities were changed, so that a second run differed."""
    huge, tiny = "123456789012345678901234567890", "0.0000000000123"
    members = [
        device(
            f"d{n}",
            capacity={"c": huge, "t": tiny},
            counters={"cs": {"c": "1e20", "t": tiny}},
            shared=True,
        )
        for n in range(2)
    ]
    slices = [
        pool_slice("s", *members, count=2),
        pool_slice("t", count=2, offers={"cs": {"c": "2e20", "t": "1"}}),
    ]
    request = exactly("r", 2, capacity={"c": "18446744073709551617"})
    whole = problem(claim(request), *slices, allocated=shared_use({"d0": {"c": "1e21"}}))
    before = copy.deepcopy(whole)
    once, twice = solve(whole), solve(whole)
    assert granted(once) == [["d0", "d1"]]
    assert repr(whole.slices) == repr(before.slices)
    assert repr(whole.allocated.pools) == repr(before.allocated.pools)
    assert granted(twice) == granted(once)


# --- selectors (section F) -------------------------------------------------------------------


@both
def test_bug_87_missing_attribute_is_an_error(solve: Solve) -> None:
    """k/k#136709: an attribute that a device lacks is an error that names the device."""
    request = exactly("r", 1, f'device.attributes["{DRIVER}"].a == 1')
    with pytest.raises(SelectorFailedError) as caught:
        solve(problem(claim(request), pool_slice("s", device("d1"), device("d2", {"a": 1}))))
    assert caught.value.reason == "selector-runtime"
    assert caught.value.device == str(device_id("d1"))
    assert (caught.value.device_class, caught.value.index) == ("", 0)


@both
def test_bug_87_solution_found_before_stands(solve: Solve) -> None:
    """A selector that fails on a later device is no error: nobody asked."""
    request = exactly("r", 1, f'device.attributes["{DRIVER}"].a == 1')
    found = solve(problem(claim(request), pool_slice("s", device("d1", {"a": 1}), device("d2"))))
    assert granted(found) == [["d1"]]


@both
@pytest.mark.parametrize(
    ("slices", "used"),
    [([], []), ([pool_slice("s", device("d1"))], ["d1"])],
    ids=["no devices", "all in use"],
)
def test_bug_87_selector_that_nobody_reaches(solve: Solve, slices: Any, used: list[str]) -> None:
    """A bad selector that no candidate reaches is no error."""
    request = exactly("r", 1, "device.nosuch")
    assert_does_not_fit(solve(problem(claim(request), *slices, allocated=in_use(*used))))


@both
def test_bug_87_pruning_does_not_hide_an_error(solve: Solve) -> None:
    """Too few devices by a glance at the second request, but the first one's error is met."""
    requests = [exactly("a", 1, f'device.attributes["{DRIVER}"].a == 1'), exactly("b", 9)]
    with pytest.raises(AllocationError) as caught:
        solve(problem(claim(*requests), pool_slice("s", device("d1"), device("d2", {"a": 1}))))
    assert caught.value.reason == "selector-runtime"


@both
@pytest.mark.parametrize(
    "text",
    [
        f'device.attributes["{DRIVER}"].numa.includes(1)',
        f'device.attributes["{DRIVER}"].numa == [1, 2]',
        "device.allowMultipleAllocations == false",
    ],
    ids=["includes", "list", "shared"],
)
def test_bug_89_stored_selector_after_a_switch_is_off(solve: Solve, text: str) -> None:
    """k/k#139395: a selector stored while a feature was on did not evaluate any more."""
    found = solve(
        problem(
            claim(exactly("r", 1, text)),
            pool_slice("s", device("d1", {"numa": [1, 2]})),
            off=["ListTypeAttributes", "ConsumableCapacity"],
        )
    )
    assert granted(found) == [["d1"]]


# --- features (section G) --------------------------------------------------------------------


def test_bug_95_features_are_on_unless_switched_off() -> None:
    """kai-scheduler/KAI-Scheduler#2100: all switches were off, partitions skipped in silence."""
    members = [device("d1", counters={"cs": {"c": "1"}})]
    slices = [
        pool_slice("s", *members, count=2),
        pool_slice("t", count=2, offers={"cs": {"c": "1"}}),
    ]
    assert granted(allocate(problem(claim(exactly("r")), *slices))) == [["d1"]]


def test_bug_95_the_answer_says_which_feature_is_missing() -> None:
    """kai-scheduler/KAI-Scheduler#2100: a device that needs a feature is not skipped in silence."""
    members = [device("d1", counters={"cs": {"c": "1"}})]
    found = allocate(
        problem(claim(exactly("r")), pool_slice("s", *members), off=["PartitionableDevices"])
    )
    assert isinstance(found, Unsatisfiable)
    (report,) = found.requests
    assert [(one.why, one.devices) for one in report.rejected] == [
        (RejectedFor.PARTITIONS_OFF, (device_id("d1"),))
    ]


# --- taint rules (section G) -----------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("selector", "fits"),
    [(None, True), (DeviceTaintSelector(), False), (DeviceTaintSelector(driver="other"), True)],
    ids=["no selector", "empty selector", "other driver"],
)
def test_bug_91_rule_without_selector_keeps_nothing_away(
    solve: Solve, selector: DeviceTaintSelector | None, fits: bool
) -> None:
    """k/k#141620: a DeviceTaintRule without deviceSelector tainted every device."""
    rule = DeviceTaintRule(device_selector=selector, taint=DeviceTaint("k", "", "NoSchedule"))
    slices = apply_taint_rules([pool_slice("s", device("d1"))], [rule])
    assert isinstance(solve(problem(claim(exactly("r")), *slices)), Allocated) is fits
