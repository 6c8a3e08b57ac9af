"""Odd and hostile problems: the answer of the rules, and an end in sight."""

import pytest

from dra_core.allocator.joint import Demand, Shortage, shortage
from dra_core.allocator.results import Allocated, RejectedFor, Undecided, Unsatisfiable
from dra_core.api.names import SharedDeviceId
from dra_core.api.objects import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
    DeviceConstraint,
    DeviceCounterConsumption,
)
from dra_core.errors import TooManyDevicesError
from dra_core.inventory.allocated import AllocatedState
from dra_core.inventory.view import MAX_DERIVED
from dra_core.values.quantity import Quantity
from support.allocation_builders import (
    amounts,
    claim,
    device,
    device_id,
    devices,
    everything,
    exactly,
    first,
    granted,
    match,
    pool_slice,
    problem,
    sub,
)
from support.allocator import allocate as allocate_within
from support.solvers import SOLVERS, Solve

# --- answers ----------------------------------------------------------------------------


@pytest.mark.parametrize("solve", SOLVERS)
def test_empty_consumption_takes_nothing(solve: Solve) -> None:
    """A consumption without counters takes nothing, also where counters are overdrawn."""
    members = [device("d0", {"x": 0}, counters={"set": {}}), device("d1", {"x": 1})]
    members += [device("d2", {"x": 1}, counters={"set": {"c": "2"}})]
    one = problem(
        claim(exactly("r", 2), constraints=(match("x"),)),
        pool_slice("s", *members, offers={"set": {"c": "2"}}),
    )
    assert granted(solve(one)) == [["d1", "d2"]]
    overdrawn = problem(
        claim(exactly("r", 1)),
        pool_slice("s", *members, offers={"set": {"c": "1"}}),
        allocated=AllocatedState.from_parts([device_id("d1"), device_id("d2")]),
    )
    assert granted(solve(overdrawn)) == [["d0"]]


@pytest.mark.parametrize("solve", SOLVERS)
def test_negative_consumption_hides_no_solution(solve: Solve) -> None:
    """What a device gives back may be what the next one takes, or the one before it took."""
    members = [
        device("d0", counters={"set": {"a": "1", "b": "2"}}),
        device("d1", counters={"set": {"b": "2"}}),
        device("d2", counters={"set": {"b": "-1", "a": "1"}}),
    ]
    one = problem(
        claim(exactly("r", 2)), pool_slice("s", *members, offers={"set": {"a": "1", "b": "2"}})
    )
    assert granted(solve(one)) == [["d1", "d2"]]


@pytest.mark.parametrize("solve", SOLVERS)
def test_memory_of_a_listed_device_does_not_count(solve: Solve) -> None:
    """A device that a slice lists takes what the slice says, be it nothing."""
    held = device_id("d0")
    state = AllocatedState.from_parts(
        [held], gone_consumption={held: (DeviceCounterConsumption("set", amounts({"c": "5"})),)}
    )
    members = [device("d0"), device("d1", counters={"set": {"c": "1"}})]
    slices = pool_slice("s", *members, offers={"set": {"c": "1"}})
    one = problem(claim(exactly("r", 1)), slices, allocated=state)
    assert granted(solve(one)) == [["d1"]]


@pytest.mark.parametrize("solve", SOLVERS)
def test_share_known_by_its_capacity_pays_the_counters(solve: Solve) -> None:
    """A shared device of which only consumed capacity is known takes its counters once."""
    held = device_id("d0")
    state = AllocatedState.from_parts(consumed_capacity={held: amounts({"m": "1"})})
    shared = device("d0", capacity={"m": "2"}, counters={"set": {"c": "1"}}, shared=True)
    one = problem(
        claim(exactly("r", 1, capacity={"m": "1"})),
        pool_slice("s", shared, offers={"set": {"c": "1"}}),
        allocated=state,
    )
    assert granted(solve(one)) == [["d0"]]


@pytest.mark.parametrize("solve", SOLVERS)
def test_limit_comes_before_constraints(solve: Solve) -> None:
    """Too many devices are found before an unknown constraint, whatever an alternative means."""
    mixed = first("r0", sub("s0", 1), sub("s1", None))
    one = problem(
        claim(mixed, exactly("r1", 32), constraints=(DeviceConstraint(),)),
        pool_slice("s", *devices(2)),
    )
    with pytest.raises(TooManyDevicesError) as caught:
        solve(one)
    assert caught.value.needed == 33


@pytest.mark.parametrize("solve", SOLVERS)
@pytest.mark.parametrize(
    ("low", "asked", "consumed"), [("2", "1", "2"), ("2", "3", "3"), (None, "-1", "-1")]
)
def test_range_counts_before_values(
    solve: Solve, low: str | None, asked: str, consumed: str
) -> None:
    """Of a policy with a range and values (the API allows one) the range counts; a range
    without minimum has none.
    """
    bounds = CapacityRequestPolicyRange(None if low is None else Quantity.parse(low))
    policy = CapacityRequestPolicy(None, (Quantity.parse("8"),), bounds)
    shared = device("d", capacity={"m": DeviceCapacity(Quantity.parse("9"), policy)}, shared=True)
    one = problem(claim(exactly("r", 1, capacity={"m": asked})), pool_slice("s", shared))
    outcome = solve(one)
    assert granted(outcome) == [["d"]]
    assert isinstance(outcome, Allocated)
    assert outcome.results[0].results[0].consumed_capacity == amounts({"m": consumed})


@pytest.mark.parametrize("solve", SOLVERS)
def test_amounts_stay_as_they_are_written(solve: Solve) -> None:
    """Equal amounts of one call keep their own forms."""
    one = problem(
        claim(
            exactly("r0", capacity={"m": "1024"}),
            exactly("r1", capacity={"m": "1Ki"}),
            exactly("r2", capacity={"m": "1024e0"}),
        ),
        pool_slice("s", device("d", capacity={"m": "1Mi"}, shared=True)),
    )
    outcome = solve(one)
    assert isinstance(outcome, Allocated)
    consumed = [str((picked.consumed_capacity or {})["m"]) for picked in outcome.results[0].results]
    assert consumed == ["1024", "1Ki", "1024"]


def test_budget_below_zero() -> None:
    """A negative budget is none."""
    outcome = allocate_within(problem(claim(exactly("r")), pool_slice("s", *devices(1))), budget=-5)
    assert outcome == Undecided(outcome.stopped_by, 0)  # type: ignore[union-attr]


# --- work -------------------------------------------------------------------------------


def chain(length: int) -> list[Demand]:
    """Demand i may have candidate i or i + 1, the last one only 0: all of them must move."""
    return [Demand(3 << place, 1) for place in range(length - 1)] + [Demand(1, 1)]


def test_flow_is_polynomial() -> None:
    """A chain of demands, each in the way of the next, takes work like its square."""
    work: list[int] = []
    assert shortage(chain(200), work.append) is None
    assert sum(work) < 200 * 200
    work.clear()
    assert shortage([*chain(200), Demand(3, 1)], work.append) == Shortage((0, 199, 200), 3, 2)
    assert sum(work) < 200 * 200


def test_large_proofs_count_as_many_steps() -> None:
    """The budget bounds the time of a call, not only the number of its proofs."""
    members = [device(f"d{n}", {"n": n}) for n in range(200)]
    requests = [
        exactly(f"r{n}", 1, f'device.attributes["driver-a"].n in [{n}, {n + 1}]')
        for n in range(199)
    ]
    requests.append(exactly("last", 1, 'device.attributes["driver-a"].n == 0'))
    claims = [claim(*requests[at : at + 20], name=f"claim-{at}") for at in range(0, 200, 20)]
    outcome = allocate_within(problem(claims, pool_slice("s", *members)), budget=20_000)
    assert outcome.steps > 5_000


def test_what_is_hopeless_needs_no_preparation() -> None:
    """Many requests and devices: what no device is enough for is told at once."""
    members = [device(f"d{n}", {"n": n}) for n in range(3_000)]
    requests = [exactly(f"r{n}", 1, f'device.attributes["driver-a"].n == {n}') for n in range(30)]
    claims = [claim(*requests, name=f"claim-{n}") for n in range(8)]
    outcome = allocate_within(problem(claims, pool_slice("s", *members)), budget=1_000)
    assert isinstance(outcome, Unsatisfiable)
    assert len(outcome.requests) == 240
    (rejected,) = outcome.requests[0].rejected
    assert len(rejected.devices) == 2_999
    assert outcome.requests[30].rejected[0].devices is rejected.devices


def test_report_on_many_requests() -> None:
    """More different selectors than a view remembers: still each request has its own reasons."""
    members = [device(f"d{n}", {"n": n}) for n in range(3)]
    claims = [
        claim(
            *(exactly(f"r{n}", 1, f'device.attributes["driver-a"].n == {n}') for n in numbers),
            name=f"claim-{numbers[0]}",
        )
        for numbers in (range(at, at + 30) for at in range(10, 10 + 2 * MAX_DERIVED // 3, 30))
    ]
    outcome = allocate_within(problem(claims, pool_slice("s", *members)))
    assert isinstance(outcome, Unsatisfiable)
    assert len(outcome.requests) > MAX_DERIVED // 2
    reasons = {(one.usable, tuple(gone.why for gone in one.rejected)) for one in outcome.requests}
    assert reasons == {(0, (RejectedFor.SELECTOR,))}


def test_all_of_many_shares() -> None:
    """Mode All, admin access, shares and counters at once."""
    members = [
        device(f"d{n}", capacity={"m": "2"}, counters={"set": {"c": "1"}}, shared=n % 2 == 0)
        for n in range(8)
    ]
    state = AllocatedState.from_parts(shares=[SharedDeviceId(*device_id("d0"), "share")])
    one = problem(
        [
            claim(everything("all", capacity={"m": "1"}), name="first"),
            claim(everything("spy", admin_access=True, capacity={"m": "1"}), name="second"),
        ],
        pool_slice("s", *members, offers={"set": {"c": "12"}}),
        allocated=state,
    )
    for solve in (allocate_within, *(param.values[0] for param in SOLVERS)):
        names = [f"d{n}" for n in range(8)]
        assert granted(solve(one)) == [names, names]  # type: ignore[operator]
