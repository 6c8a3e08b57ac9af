"""The allocator obeys the laws, and agrees with its slow twin."""

from collections.abc import Callable

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from dra_core.allocator.allocation import Allocator
from dra_core.allocator.results import Outcome
from dra_core.api.names import DeviceId
from dra_core.api.objects import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from dra_core.inventory.index import Inventory
from dra_core.testing import laws
from dra_core.testing.brute_force import TooExpensiveError
from dra_core.testing.problem import Problem
from dra_core.testing.strategies import THEMES, aspects_of, problems, reordered
from dra_core.values.quantity import Quantity
from support.allocation_builders import claim, device, exactly, pool_slice
from support.allocation_builders import problem as builders_problem
from support.solvers import SELECTORS, allocate, allocator_of, compiled

MAX_STEPS = 3_000
"""What the twin may spend on one problem; few of the small ones need more."""

HARMLESS = aspects_of("errors", "selectors", "all-mode")
"""Without these no error can be met in a search, so that fewer rules mean more solutions."""


@pytest.mark.parametrize("theme", THEMES)
@given(data=st.data())
def test_agrees_with_brute_force(theme: str, data: st.DataObject) -> None:
    """A solution exists exactly when brute force finds one, and it is the first in order."""
    problem = data.draw(problems(always=aspects_of(*theme.split())))
    try:
        laws.agrees_with_brute_force(allocate, problem, compiled, MAX_STEPS)
    except TooExpensiveError:
        reject()


@given(problems())
def test_passes_checker(problem: Problem) -> None:
    """Every allocation passes a checker that knows only the rules, not the search."""
    laws.passes_checker(allocate, problem, compiled)


@given(problems(), st.data())
def test_order_of_slices_does_not_matter(problem: Problem, data: st.DataObject) -> None:
    """Same inputs, same answer, same work, in any order of the slices given."""
    laws.is_deterministic(allocate, problem, data.draw(reordered(problem)))


@given(problems(), st.data())
def test_inventory_grown_slice_by_slice(problem: Problem, data: st.DataObject) -> None:
    """The way to an inventory does not matter: added one by one, with a detour or at once."""

    def detour(one: Problem) -> Outcome:
        inventory = Inventory()
        for resource_slice in one.slices:
            inventory.add(resource_slice)
        gone = data.draw(st.sampled_from(one.slices))
        inventory.delete(gone.name)
        inventory.add(gone)
        same = Allocator(
            inventory,
            one.classes,
            features=one.features,
            selectors=SELECTORS,
            share_ids=lambda: "share",
        )
        return same.allocate(one.claims, one.node, one.allocated, budget=None)

    assert laws.answer(detour, problem) == laws.answer(allocate, problem)


@given(problems())
def test_leaves_inputs_alone(problem: Problem) -> None:
    """What goes in is the same afterwards."""
    laws.leaves_inputs_alone(allocate, problem)


@given(problems())
def test_survives_pickling(problem: Problem) -> None:
    """Outcomes and errors can be sent to another process."""
    laws.survives_pickling(allocate, problem)


@given(problems(), st.integers(0, 40))
def test_budget_never_lies(problem: Problem, budget: int) -> None:
    """A budget gives the answer that no budget gives, or none."""
    laws.budget_never_lies(allocate, problem, budget)


@pytest.mark.parametrize("how", ["deadline", "cancel"])
@given(problem=problems(), calls=st.integers(0, 3))
def test_stops_when_told(how: str, problem: Problem, calls: int) -> None:
    """A caller who stops the call gets no verdict or the right one."""

    def stoppable(one: Problem, stop: Callable[[], bool]) -> Outcome:
        told: dict[str, Callable[[], bool]] = {how: stop}
        return allocator_of(one).allocate(
            one.claims,
            one.node,
            one.allocated,
            budget=None,
            **told,
        )

    laws.stops_when_told(stoppable, problem, calls)


@given(problems(), problems())
def test_nothing_is_kept_between_calls(one: Problem, other: Problem) -> None:
    """An allocator answers as if each call were its first."""
    same = allocator_of(one)

    def again(problem: Problem) -> Outcome:
        return same.allocate(problem.claims, problem.node, problem.allocated, budget=None)

    first = laws.answer(again, one)
    laws.answer(again, other)
    assert laws.answer(again, one) == first


@given(problems(always=aspects_of("constraints"), never=HARMLESS), st.data())
def test_dropping_a_constraint_keeps_it_solvable(problem: Problem, data: st.DataObject) -> None:
    """A solvable claim without one of its constraints is still solvable."""
    claim = data.draw(st.integers(0, len(problem.claims) - 1))
    constraints = problem.claims[claim].devices.constraints
    constraint = data.draw(st.integers(0, len(constraints) - 1))
    laws.dropping_a_constraint_keeps_it_solvable(allocate, problem, claim, constraint)


@given(problems(never=HARMLESS), st.data())
def test_dropping_an_unpicked_device_keeps_it_solvable(
    problem: Problem, data: st.DataObject
) -> None:
    """A solvable claim is still solvable without a device that it did not get."""
    device = data.draw(st.sampled_from(devices_of(problem)))
    laws.dropping_an_unpicked_device_keeps_it_solvable(allocate, problem, device)


@given(problems(never=HARMLESS | aspects_of("broken-pools")), st.data())
def test_removing_a_device_does_not_help(problem: Problem, data: st.DataObject) -> None:
    """An unsolvable claim stays so when devices are removed."""
    device = data.draw(st.sampled_from(devices_of(problem)))
    if problem.allocated.pool(device.driver, device.pool).use(device.device) is None:
        laws.removing_a_device_does_not_help(allocate, problem, device)


def devices_of(problem: Problem) -> list[DeviceId]:
    """Every device that is listed."""
    return [
        DeviceId(one.driver, one.pool, device.name)
        for one in problem.slices
        for device in one.devices
    ]


@pytest.mark.parametrize("low", [None, "0", "1", "1k"])
@pytest.mark.parametrize("high", [None, "2"])
@pytest.mark.parametrize("step", [None, "0", "-1", "2", "500m"])
def test_every_range_of_amounts(low: str | None, high: str | None, step: str | None) -> None:
    """Ranges of amounts mean the same to both, with defaults, requests and odd steps."""
    limits = CapacityRequestPolicyRange(*(optional(text) for text in (low, high, step)))
    for default in (None, "0", "1", "2"):
        policy = CapacityRequestPolicy(optional(default), (), limits)
        for value in ("3", "1500"):
            assert_same_amounts(DeviceCapacity(Quantity.parse(value), policy))


@pytest.mark.parametrize(
    "values", [(), ("1",), ("2", "1"), ("1", "2", "4"), ("1k",), ("500m", "1")]
)
def test_every_list_of_amounts(values: tuple[str, ...]) -> None:
    """Lists of amounts mean the same to both, in whatever order they are."""
    for default in (None, "1", "2", "1k"):
        allowed = tuple(Quantity.parse(text) for text in values)
        policy = CapacityRequestPolicy(optional(default), allowed)
        for value in ("3", "2k"):
            assert_same_amounts(DeviceCapacity(Quantity.parse(value), policy))


def optional(text: str | None) -> Quantity | None:
    """A quantity, or None."""
    return None if text is None else Quantity.parse(text)


def assert_same_amounts(capacity: DeviceCapacity) -> None:
    """Both answer requests for the capacity alike, down to the suffix."""
    members = pool_slice("s", device("d1", capacity={"c": capacity}, shared=True))
    for asked in (None, "0", "1", "2", "250m", "1100m", "5", "1200"):
        wanted = None if asked is None else {"c": asked}
        whole = builders_problem(claim(exactly("r", capacity=wanted)), members)
        laws.agrees_with_brute_force(allocate, whole, compiled)
