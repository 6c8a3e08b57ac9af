"""The checker notices every kind of wrong answer.

Two ways to a wrong answer: spoil a right one in one place, or solve the problem without
one of its rules and hold the answer against all of them.
"""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from dra_core.allocator.results import Allocated
from dra_core.api.core import NodeSelector
from dra_core.api.objects import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceToleration,
)
from dra_core.features import Features
from dra_core.testing.brute_force import brute_force
from dra_core.testing.checker import violations
from dra_core.testing.problem import Problem
from support.allocation_builders import (
    amounts,
    claim,
    device,
    devices,
    distinct,
    everything,
    exactly,
    first,
    in_use,
    match,
    pool_slice,
    problem,
    shared_use,
    sub,
)
from support.solvers import compiled


def solved(whole: Problem) -> tuple[AllocationResult, ...]:
    """The twin's answer, which has to be an allocation."""
    outcome = brute_force(whole, compiled)
    assert isinstance(outcome, Allocated)
    return outcome.results


# --- right answers spoilt --------------------------------------------------------------------

RIGHT = problem(
    [claim(exactly("r0", 2), first("r1", sub("s0", 9), sub("s1")), name="claim-0"),
     claim(exactly("r", admin_access=True), name="claim-1")],
    pool_slice("s", *devices(3), device("d4", capacity={"c": "4"}, shared=True)),
)  # fmt: skip


def test_right_answer_is_accepted() -> None:
    """The answer that the tests below spoil is right."""
    assert violations(RIGHT, solved(RIGHT), compiled) == []


def change(place: int, **fields: Any) -> Callable[[AllocationResult], AllocationResult]:
    """Change one device of the first claim's result."""

    def spoil(result: AllocationResult) -> AllocationResult:
        changed = list(result.results)
        changed[place] = attrs.evolve(changed[place], **fields)
        return attrs.evolve(result, results=tuple(changed))

    return spoil


def reorder(*places: int) -> Callable[[AllocationResult], AllocationResult]:
    """Give the devices of the first claim in another order, or some of them, or twice."""
    return lambda result: attrs.evolve(result, results=tuple(result.results[n] for n in places))


@pytest.mark.parametrize(
    "spoil",
    [
        reorder(0, 1),
        reorder(1, 2),
        reorder(0, 2, 1),
        reorder(1, 0, 2),
        reorder(2, 0, 1),
        reorder(0, 1, 2, 2),
        reorder(0, 0, 2),
        change(0, request="r9"),
        change(2, request="r1"),
        change(2, request="r1/s0"),
        change(0, device="d9"),
        change(0, pool="pool-9"),
        change(0, device="d2"),
        change(0, admin_access=True),
        change(0, tolerations=(DeviceToleration(operator="Exists"),)),
        change(0, binding_conditions=("ready",)),
        change(0, binding_failure_conditions=("failed",)),
        change(0, share_id="share"),
        change(0, consumed_capacity=amounts({"c": "4"})),
        change(0, skip_node_operations=("prepare",)),
        lambda result: attrs.evolve(result, node_selector=None),
        lambda result: attrs.evolve(result, node_selector=NodeSelector()),
        lambda result: attrs.evolve(result, config=(DeviceAllocationConfiguration("FromClass"),)),
    ],
)
def test_spoilt_answer_is_noticed(spoil: Callable[[AllocationResult], AllocationResult]) -> None:
    """One thing wrong in a right answer is one violation at least."""
    one, other = solved(RIGHT)
    assert violations(RIGHT, [spoil(one), other], compiled) != []


def test_number_of_results() -> None:
    """There is one result per claim."""
    assert violations(RIGHT, solved(RIGHT)[:1], compiled) == ["1 results for 2 claims"]


# --- answers to an easier problem --------------------------------------------------------------

ONE = claim(exactly("r"))
TWO = claim(exactly("r", 2))
EXHAUSTED = [
    pool_slice("s", *(device(f"d{n}", counters={"cs": {"c": "1"}}) for n in range(2)), count=2),
    pool_slice("t", offers={"cs": {"c": "2"}}, count=2),
]
SHARED = pool_slice("s", device("d1", capacity={"c": "4"}, shared=True))
TAINTED = pool_slice("s", device("d1", taints=(DeviceTaint("k", "", "NoSchedule"),)))
VALUES = pool_slice("s", device("d1", {"a": 1}), device("d2", {"a": 1}), device("d3", {"a": 2}))


def without(**features: bool) -> Features:
    """Some features off."""
    return attrs.evolve(Features(), **features)


def with_constraints(*constraints: Any, count: int = 3) -> Any:
    """A claim for some devices with constraints."""
    return claim(exactly("r", count), constraints=constraints)


@pytest.mark.parametrize(
    ("strict", "easier"),
    [
        (problem(ONE, pool_slice("s", *devices(1)), allocated=in_use("d1")), {"allocated": None}),
        (problem(TWO, *EXHAUSTED, allocated=in_use("d0")), {"allocated": None}),
        (
            problem(claim(exactly("r", capacity={"c": "3"})), SHARED,
                    allocated=shared_use({"d1": {"c": "2"}})),
            {"allocated": None},
        ),
        (problem(ONE, TAINTED), {"features": without(device_taints=False)}),
        (
            problem(with_constraints(match("a")), VALUES),
            {"claims": (with_constraints(),)},
        ),
        (
            problem(with_constraints(distinct("a"), count=2), VALUES),
            {"claims": (with_constraints(count=2),)},
        ),
        (
            problem(claim(exactly("r", 1, "false")), pool_slice("s", *devices(1))),
            {"claims": (ONE,)},
        ),
        (problem(claim(everything("r")), pool_slice("s", *devices(2))), {"claims": (ONE,)}),
        (
            problem(ONE, pool_slice("s", device("d1", binding_conditions=("b",))),
                    off=["DeviceBindingAndStatus"]),
            {"features": Features()},
        ),
        (
            problem(ONE, *EXHAUSTED, off=["PartitionableDevices"]),
            {"features": Features()},
        ),
        (
            problem(ONE, SHARED, off=["ConsumableCapacity"]),
            {"features": Features()},
        ),
        (
            problem(ONE, pool_slice("s", *devices(1), count=2)),
            {"slices": (pool_slice("s", *devices(1)),)},
        ),
        (
            problem(ONE, pool_slice("s", device("d1"), node="", per_device_node_selection=True)),
            {"slices": (pool_slice("s", device("d1")),)},
        ),
        (
            problem(ONE, pool_slice("s", device("d1"), skip_node_operations=("prepare",))),
            {"slices": (pool_slice("s", device("d1")),)},
        ),
        (
            problem(claim(exactly("r", capacity={"d": "1"})), SHARED),
            {"claims": (ONE,)},
        ),
    ],
)  # fmt: skip
def test_answer_to_an_easier_problem_is_noticed(strict: Problem, easier: dict[str, Any]) -> None:
    """A rule that was not minded is a violation."""
    if "allocated" in easier:
        easier = {"allocated": in_use()}
    results = solved(attrs.evolve(strict, **easier))
    assert violations(strict, results, compiled) != []


def granted(name: str, request: str = "r", **fields: Any) -> DeviceRequestAllocationResult:
    """A result for a device of pool-1."""
    return DeviceRequestAllocationResult(request, "driver-a", "pool-1", name, **fields)


def allocation(whole: Problem, *results: DeviceRequestAllocationResult) -> AllocationResult:
    """An allocation on the node of the problem."""
    node_selector = solved(attrs.evolve(whole, claims=(ONE,)))[0].node_selector
    return AllocationResult(results, node_selector=node_selector)


def test_exclusive_device_for_two_claims() -> None:
    """A device cannot be given to two claims, unless the later one has admin access."""
    whole = problem([ONE, ONE], pool_slice("s", *devices(2)))
    both = [allocation(whole, granted("d1"))] * 2
    assert violations(whole, both, compiled) != []
    admin = problem([ONE, claim(exactly("r", admin_access=True))], pool_slice("s", *devices(2)))
    again = allocation(admin, granted("d1", admin_access=True))
    assert violations(admin, [both[0], again], compiled) == []
    swapped = attrs.evolve(admin, claims=admin.claims[::-1])
    assert violations(swapped, [again, both[0]], compiled) != []


def test_more_than_32_devices() -> None:
    """A claim never gets more than 32 devices, whatever its requests add up to."""
    whole = problem(claim(exactly("r", 33)), pool_slice("s", *devices(33)))
    results = [granted(f"d{n}") for n in range(1, 34)]
    assert violations(whole, [allocation(whole, *results)], compiled) == ["claim #0: 33 devices"]


def test_two_shares_of_too_little() -> None:
    """Shares given in one call add up."""
    wants = claim(exactly("r", capacity={"c": "3"}))
    whole = problem([wants, wants], SHARED)
    share = granted("d1", share_id="share", consumed_capacity=amounts({"c": "3"}))
    found = violations(whole, [allocation(whole, share)] * 2, compiled)
    assert len(found) == 1
    assert "consumed" in found[0]


def test_counters_of_the_picks_add_up() -> None:
    """Devices given in one call share the counters of their pool."""
    whole = problem(
        claim(exactly("r", 2)), EXHAUSTED[0], pool_slice("t", offers={"cs": {"c": "1"}}, count=2)
    )
    found = violations(whole, [allocation(whole, granted("d0"), granted("d1"))], compiled)
    assert len(found) == 1
    assert "overdrawn" in found[0]
