"""Each law notices an allocator that breaks it, and passes the twin, which breaks none."""

import copy
import itertools
from collections.abc import Callable

import attrs
import pytest

from dra_core.allocator.results import Allocated, Outcome, StoppedBy, Undecided, Unsatisfiable
from dra_core.api.names import PoolId
from dra_core.errors import AllocationError, TooManyDevicesError
from dra_core.inventory.allocated import AllocatedState, DeviceUse
from dra_core.testing import laws
from dra_core.testing.problem import Problem
from support.allocation_builders import (
    claim,
    device,
    device_id,
    devices,
    everything,
    exactly,
    match,
    pool_slice,
    problem,
)
from support.solvers import compiled, twin

SOLVABLE = problem(
    claim(exactly("r", 2), constraints=[match("numa")]),
    pool_slice("s", *(device(f"d{n}", {"numa": n % 2}) for n in range(4))),
)
HOPELESS = problem(claim(exactly("r", 3)), pool_slice("s", *devices(2)))
FAULTY = problem(claim(exactly("r", 33)), pool_slice("s", *devices(2)))


def nothing(reason: str = "", steps: int = 0) -> Unsatisfiable:
    """An answer that nothing fits."""
    return Unsatisfiable(reason, (), (), (), steps)


def never(_: Problem) -> Outcome:
    """An allocator that finds nothing."""
    return nothing()


def last_fit(whole: Problem) -> Outcome:
    """An allocator that takes the last devices instead of the first."""
    backwards = [attrs.evolve(one, devices=one.devices[::-1]) for one in whole.slices]
    return twin(attrs.evolve(whole, slices=tuple(backwards)))


def careless(whole: Problem) -> Outcome:
    """An allocator that forgets constraints."""
    claims = [
        attrs.evolve(one, devices=attrs.evolve(one.devices, constraints=())) for one in whole.claims
    ]
    return twin(attrs.evolve(whole, claims=tuple(claims)))


def raises(_: Problem) -> Outcome:
    """An allocator that finds fault with everything."""
    raise TooManyDevicesError("c", "", 33, 32)


@pytest.mark.parametrize("whole", [SOLVABLE, HOPELESS, FAULTY])
def test_the_twin_agrees_with_itself(whole: Problem) -> None:
    """Solvable, hopeless and faulty problems have one answer each."""
    laws.agrees_with_brute_force(twin, whole, compiled)


@pytest.mark.parametrize("allocate", [never, last_fit, careless, raises])
def test_disagreement_is_noticed(allocate: Callable[[Problem], Outcome]) -> None:
    """No solution, another one, a wrong one, an error: all differ from the first one."""
    with pytest.raises(AssertionError):
        laws.agrees_with_brute_force(allocate, SOLVABLE, compiled)


def test_wrong_error_is_noticed() -> None:
    """An error where nothing fits, and "does not fit" where an error is right, are wrong."""
    with pytest.raises(AssertionError):
        laws.agrees_with_brute_force(raises, HOPELESS, compiled)
    with pytest.raises(AssertionError):
        laws.agrees_with_brute_force(never, FAULTY, compiled)
    with pytest.raises(AssertionError):
        laws.agrees_with_brute_force(lambda _: nothing("invalid-pool"), HOPELESS, compiled)


def test_broken_rule_is_noticed() -> None:
    """The checker looks at allocations only."""
    laws.passes_checker(never, SOLVABLE, compiled)
    laws.passes_checker(raises, SOLVABLE, compiled)
    with pytest.raises(AssertionError, match="constraint"):
        laws.passes_checker(careless, SOLVABLE, compiled)


def test_changed_input_is_noticed() -> None:
    """Also where the changed value is buried."""

    def meddling(whole: Problem) -> Outcome:
        attributes = whole.slices[0].devices[0].attributes
        attributes.clear()  # type: ignore[attr-defined]
        return nothing()

    laws.leaves_inputs_alone(twin, SOLVABLE)
    fresh = problem(claim(exactly("r")), pool_slice("s", device("d1", {"a": 1})))
    with pytest.raises(AssertionError, match="changed"):
        laws.leaves_inputs_alone(meddling, fresh)


def test_a_copy_of_a_set_may_come_in_another_order() -> None:
    """That is no change of the inputs: sets of texts have an order of their own each run."""

    def turned(one: str, other: str) -> bool:
        shares = frozenset([one, other])
        return list(copy.deepcopy(shares)) != list(shares)

    names = [f"share-{number}" for number in range(200)]
    one, other = next(pair for pair in itertools.permutations(names, 2) if turned(*pair))
    use = DeviceUse(shares=frozenset([one, other]))
    state = AllocatedState.from_parts().updated({PoolId("driver", "pool"): {"taken": use}})
    laws.leaves_inputs_alone(twin, attrs.evolve(SOLVABLE, allocated=state))


def test_chance_is_noticed() -> None:
    """Neither the answer nor the work may differ between equal problems."""
    numbers = iter(range(9))

    def fickle(_: Problem) -> Outcome:
        return nothing(steps=next(numbers))

    laws.is_deterministic(twin, SOLVABLE, SOLVABLE)
    laws.is_deterministic(raises, SOLVABLE, SOLVABLE)
    with pytest.raises(AssertionError):
        laws.is_deterministic(fickle, HOPELESS, HOPELESS)


class SpoiltError(AllocationError):
    """An error that does not survive pickling, because its field has no default."""

    def __init__(self, claim: str, request: str, *, detail: str) -> None:
        super().__init__(claim, request)
        self.__dict__["detail"] = detail


def test_error_that_does_not_pickle_is_noticed() -> None:
    """Positional attrs exceptions pickle, keyword-only ones do not."""

    def spoilt(_: Problem) -> Outcome:
        raise SpoiltError("c", "r", detail="x")

    laws.survives_pickling(twin, SOLVABLE)
    laws.survives_pickling(raises, SOLVABLE)
    with pytest.raises((AssertionError, TypeError)):
        laws.survives_pickling(spoilt, SOLVABLE)


def test_lying_budget_is_noticed() -> None:
    """Out of budget may not read as "does not fit"."""

    def honest(whole: Problem, budget: int | None) -> Outcome:
        outcome = twin(whole)
        if budget is not None and budget < outcome.steps:
            return Undecided(StoppedBy.BUDGET, budget)
        return outcome

    def lying(whole: Problem, budget: int | None) -> Outcome:
        outcome = honest(whole, budget)
        return nothing() if isinstance(outcome, Undecided) else outcome

    for budget in (0, 2, 100):
        laws.budget_never_lies(honest, SOLVABLE, budget)
    with pytest.raises(AssertionError):
        laws.budget_never_lies(lying, SOLVABLE, 1)


def test_deaf_allocator_is_noticed() -> None:
    """Who is told to stop has no verdict."""

    def deaf(whole: Problem, stop: Callable[[], bool]) -> Outcome:
        stop()
        return twin(whole)

    def obedient(whole: Problem, stop: Callable[[], bool]) -> Outcome:
        return Undecided(StoppedBy.CANCELLED, 0) if stop() else twin(whole)

    laws.stops_when_told(obedient, SOLVABLE, 0)
    laws.stops_when_told(obedient, SOLVABLE, 1)
    with pytest.raises(AssertionError, match="went on"):
        laws.stops_when_told(deaf, SOLVABLE, 0)


def test_dropped_rules_and_devices() -> None:
    """Fewer rules and unpicked devices do not make a claim unsolvable; the laws look."""

    def needs_everything(whole: Problem) -> Outcome:
        same = len(whole.slices[0].devices) == 4 and whole.claims[0].devices.constraints
        return twin(whole) if same else nothing()

    unpicked = device_id("d3")
    laws.dropping_a_constraint_keeps_it_solvable(twin, SOLVABLE, 0, 0)
    laws.dropping_an_unpicked_device_keeps_it_solvable(twin, SOLVABLE, unpicked)
    laws.dropping_an_unpicked_device_keeps_it_solvable(raises, SOLVABLE, unpicked)
    with pytest.raises(AssertionError):
        laws.dropping_a_constraint_keeps_it_solvable(needs_everything, SOLVABLE, 0, 0)
    with pytest.raises(AssertionError):
        laws.dropping_an_unpicked_device_keeps_it_solvable(needs_everything, SOLVABLE, unpicked)


def test_picked_device_may_be_needed() -> None:
    """The law is about devices that were not picked."""
    exact = problem(claim(exactly("r", 2)), pool_slice("s", *devices(2)))
    laws.dropping_an_unpicked_device_keeps_it_solvable(twin, exact, device_id("d1"))


def test_removal_that_helps_is_noticed() -> None:
    """It may for mode All, which is why the law excludes it."""
    laws.removing_a_device_does_not_help(twin, HOPELESS, device_id("d1"))
    all_of_them = problem(
        claim(everything("r"), constraints=()),
        pool_slice("s", device("d1"), device("d2", counters={"cs": {"c": "2"}}), count=2),
        pool_slice("t", offers={"cs": {"c": "1"}}, count=2),
    )
    assert isinstance(twin(laws.without_device(all_of_them, device_id("d2"))), Allocated)
    with pytest.raises(AssertionError):
        laws.removing_a_device_does_not_help(twin, all_of_them, device_id("d2"))
