"""What holds of every allocator, as functions that raise AssertionError.

What may live here: laws, each stated in the docstring of its function. An allocator is
any function from a ``Problem`` to an outcome that raises AllocationError; so a law can
be asked of this library's allocator, of the brute-force twin and of an embedder's own.
"""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import attrs

from dra_core.allocator.results import Allocated, Outcome, Unsatisfiable
from dra_core.api.names import DeviceId
from dra_core.api.objects import AllocationResult, ResourceClaim
from dra_core.errors import AllocationError, SelectorFailedError
from dra_core.testing.brute_force import brute_force
from dra_core.testing.checker import violations
from dra_core.testing.problem import Compile, Problem

Allocate = Callable[[Problem], Outcome]
"""An allocator: a problem to its outcome. Raises AllocationError."""

Answer = tuple[str, Any]
"""What an outcome says, without what it cost: a kind and the facts to compare."""


def answer(allocate: Allocate, problem: Problem) -> Answer:
    """What an allocator says of a problem, errors included, share IDs left out."""
    try:
        outcome = allocate(problem)
    except AllocationError as error:
        device = error.device if isinstance(error, SelectorFailedError) else ""
        return "error", (error.reason, device)
    return answer_of(outcome)


def answer_of(outcome: Outcome) -> Answer:
    """The answer in an outcome."""
    if isinstance(outcome, Allocated):
        return "allocated", tuple(_comparable(one) for one in outcome.results)
    if isinstance(outcome, Unsatisfiable):
        return "unsatisfiable", outcome.reason
    return "undecided", outcome.stopped_by


def _comparable(result: AllocationResult) -> tuple[AllocationResult, tuple[str, ...]]:
    """A result without share IDs, and its quantities as they are written."""
    devices = [attrs.evolve(one, share_id="*" * bool(one.share_id)) for one in result.results]
    consumed = [
        f"{name}={amount}"
        for one in devices
        for name, amount in sorted((one.consumed_capacity or {}).items())
    ]
    return attrs.evolve(result, results=tuple(devices)), tuple(consumed)


# --- laws ----------------------------------------------------------------------------------


def agrees_with_brute_force(
    allocate: Allocate, problem: Problem, selectors: Compile, max_steps: int | None = None
) -> Answer:
    """A solution exists exactly when brute force finds one, and it is the first in order.

    Errors and coarse reasons are the same, too. Returns the answer. Raises
    TooExpensiveError if the twin needs more than ``max_steps``.
    """
    expected = answer(lambda one: brute_force(one, selectors, max_steps=max_steps), problem)
    found = answer(allocate, problem)
    assert found == expected, f"allocator: {found}\nbrute force: {expected}"
    return found


def passes_checker(allocate: Allocate, problem: Problem, selectors: Compile) -> None:
    """Every allocation passes a checker that knows only the rules, not the search."""
    try:
        outcome = allocate(problem)
    except AllocationError:
        return
    if isinstance(outcome, Allocated):
        faults = violations(problem, outcome.results, selectors)
        assert not faults, "\n".join(faults)


def leaves_inputs_alone(allocate: Allocate, problem: Problem) -> None:
    """What goes in is the same afterwards, down to the last quantity, and so is the answer."""
    # The same objects are spelled out twice: a copy of a set may come in another order.
    same, before = copy.deepcopy(problem), _spelled_out(problem)
    found = answer(allocate, problem)
    assert _spelled_out(problem) == before, "the inputs were changed"
    assert answer(allocate, same) == found, "a copy of the inputs gives another answer"


def _spelled_out(problem: Problem) -> str:
    """All values in their own words: two quantities may be equal and print differently."""
    parts = (problem.claims, problem.slices, problem.classes, problem.node, problem.features)
    allocated = problem.allocated
    state = (list(allocated.devices), list(allocated.shares), list(allocated.pools.items()))
    return repr((parts, state))


def is_deterministic(allocate: Allocate, problem: Problem, same: Problem) -> None:
    """Same inputs, same outcome, same work, in whatever order slices and classes are given."""
    assert _outcome(allocate, problem) == _outcome(allocate, same)


def _outcome(allocate: Allocate, problem: Problem) -> object:
    """The whole outcome with its steps; an error by everything it says."""
    try:
        outcome = allocate(problem)
    except AllocationError as error:
        return type(error), attrs.astuple(error, recurse=False)[:2], error.reason, str(error)
    if isinstance(outcome, Allocated):
        return answer_of(outcome), outcome.steps
    return outcome


def survives_pickling(allocate: Allocate, problem: Problem) -> None:
    """An outcome or error that went through pickle is equal to the original."""
    try:
        outcome = allocate(problem)
    except AllocationError as error:
        failure: AllocationError = error
    else:
        assert pickle.loads(pickle.dumps(outcome)) == outcome
        return
    again = pickle.loads(pickle.dumps(failure))
    assert type(again) is type(failure)
    assert (again.reason, str(again)) == (failure.reason, str(failure))


def budget_never_lies(
    allocate: Callable[[Problem, int | None], Outcome], problem: Problem, budget: int
) -> None:
    """A budget gives the answer that no budget gives, or none; enough budget gives it."""
    full = answer(lambda one: allocate(one, None), problem)
    found = answer(lambda one: allocate(one, budget), problem)
    assert found in (full, ("undecided", "budget")), f"{found} with {budget}, {full} without"
    if full[0] != "error":
        steps = allocate(problem, None).steps
        enough = answer(lambda one: allocate(one, steps), problem)
        assert enough == full, f"{steps} steps were said to be enough"
        if found[0] == "undecided":
            assert budget < steps


def dropping_a_constraint_keeps_it_solvable(
    allocate: Allocate, problem: Problem, claim: int, constraint: int
) -> None:
    """A solvable claim without one of its constraints is still solvable.

    Holds unless an error can be met on the way (selectors that fail, mode All with
    constraints).
    """
    if answer(allocate, problem)[0] == "allocated":
        assert answer(allocate, without_constraint(problem, claim, constraint))[0] == "allocated"


def dropping_an_unpicked_device_keeps_it_solvable(
    allocate: Allocate, problem: Problem, device: DeviceId
) -> None:
    """A solvable claim is still solvable without a device that it did not get.

    Holds unless an error can be met on the way, as above.
    """
    try:
        outcome = allocate(problem)
    except AllocationError:
        return
    if isinstance(outcome, Allocated) and not _got(outcome, device):
        assert answer(allocate, without_device(problem, device))[0] == "allocated"


def _got(outcome: Allocated, device: DeviceId) -> bool:
    return any(one.device_id == device for result in outcome.results for one in result.results)


def removing_a_device_does_not_help(allocate: Allocate, problem: Problem, device: DeviceId) -> None:
    """An unsolvable claim stays so when a device is removed.

    Holds for exact counts, devices of which nothing is in use, and valid pools; an
    error on the way is no answer.
    """
    if answer(allocate, problem)[0] == "unsatisfiable":
        assert answer(allocate, without_device(problem, device))[0] == "unsatisfiable"


def stops_when_told(
    allocate: Callable[[Problem, Callable[[], bool]], Outcome], problem: Problem, calls: int
) -> None:
    """A caller who stops the call gets no verdict or the right one, never a wrong one.

    ``allocate`` takes a function that says True from the moment on at which to stop;
    here that is when it was asked ``calls`` times before.
    """
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > calls

    full = answer(lambda one: allocate(one, lambda: False), problem)
    found = answer(lambda one: allocate(one, stop), problem)
    assert found[0] == "undecided" or found == full
    assert asked <= calls or found[0] == "undecided", "told to stop, went on"


# --- smaller problems ------------------------------------------------------------------------


def without_constraint(problem: Problem, claim: int, constraint: int) -> Problem:
    """The problem without one constraint of one claim, by position."""

    def changed(one: ResourceClaim) -> ResourceClaim:
        kept = list(one.devices.constraints)
        del kept[constraint]
        return attrs.evolve(one, devices=attrs.evolve(one.devices, constraints=tuple(kept)))

    claims = [changed(one) if at == claim else one for at, one in enumerate(problem.claims)]
    return attrs.evolve(problem, claims=tuple(claims))


def without_device(problem: Problem, device: DeviceId) -> Problem:
    """The problem without one device, wherever it is listed; its slices stay."""
    slices = [
        attrs.evolve(one, devices=tuple(d for d in one.devices if d.name != device.device))
        if (one.driver, one.pool) == device[:2]
        else one
        for one in problem.slices
    ]
    return attrs.evolve(problem, slices=tuple(slices))
