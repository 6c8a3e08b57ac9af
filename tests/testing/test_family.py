"""The strategies' problems, answered by the twin and judged by the checker."""

from collections import Counter

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_core.allocator.results import Allocated, Unsatisfiable
from dra_core.api.objects import AllocationResult
from dra_core.errors import AllocationError
from dra_core.testing.brute_force import TooExpensiveError, brute_force
from dra_core.testing.checker import violations
from dra_core.testing.problem import Problem
from dra_core.testing.selector_family import FamilySelectorError, family
from dra_core.testing.strategies import ASPECTS, aspects_of, problems

MAX_STEPS = 3_000


@given(problems())
def test_twin_passes_checker(problem: Problem) -> None:
    """Every allocation passes a checker that knows only the rules, not the search."""
    try:
        outcome = brute_force(problem, family, max_steps=MAX_STEPS)
    except (AllocationError, TooExpensiveError):
        return
    if isinstance(outcome, Allocated):
        assert violations(problem, outcome.results, family) == []


@given(problems(never=aspects_of("errors")), st.data())
def test_checker_notices_a_missing_device(problem: Problem, data: st.DataObject) -> None:
    """An answer that lacks one of its devices is wrong."""
    try:
        outcome = brute_force(problem, family, max_steps=MAX_STEPS)
    except (AllocationError, TooExpensiveError):
        return
    if not isinstance(outcome, Allocated):
        return
    full = [index for index, one in enumerate(outcome.results) if one.results]
    if full:
        index = data.draw(st.sampled_from(full))
        place = data.draw(st.integers(0, len(outcome.results[index].results) - 1))
        results = list(outcome.results)
        results[index] = _without(results[index], place)
        assert violations(problem, results, family) != []


def _without(result: AllocationResult, place: int) -> AllocationResult:
    kept = [one for index, one in enumerate(result.results) if index != place]
    return attrs.evolve(result, results=tuple(kept))


def test_problems_are_of_every_kind() -> None:
    """Solvable, unsolvable and faulty problems are all frequent, and so is backtracking."""
    seen: Counter[str] = Counter()

    @settings(max_examples=400, database=None, derandomize=True)
    @given(problems())
    def look(problem: Problem) -> None:
        seen["all"] += 1
        try:
            outcome = brute_force(problem, family, max_steps=MAX_STEPS)
        except AllocationError:
            seen["error"] += 1
            return
        except TooExpensiveError:
            seen["expensive"] += 1
            return
        seen[type(outcome).__name__] += 1
        if isinstance(outcome, Unsatisfiable):
            seen["long search"] += outcome.steps > 20

    look()
    assert seen["Allocated"] > seen["all"] // 5
    assert seen["Unsatisfiable"] > seen["all"] // 5
    assert seen["error"] > seen["all"] // 50
    assert seen["long search"] > seen["all"] // 40
    assert seen["expensive"] < seen["all"] // 20


def test_unknown_aspect_is_an_error() -> None:
    """A misspelt aspect does not quietly mean none."""
    assert aspects_of("lists", "admin") <= set(ASPECTS)
    with pytest.raises(ValueError, match="lsits"):
        aspects_of("lsits")


def test_unknown_selector_is_no_selector_error() -> None:
    """A text outside the family is a mistake of the test, not of the problem."""
    with pytest.raises(ValueError, match="not of the family"):
        family("device.whatever")
    with pytest.raises(FamilySelectorError):
        family("1 + 1")
