"""The twin gives the recorded answers, and the checker accepts them."""

from functools import partial

import pytest

from dra_core.allocator.results import Outcome
from dra_core.api.wire import decode_allocation_result
from dra_core.testing.brute_force import TooExpensiveError, brute_force
from dra_core.testing.checker import violations
from support.allocation_cases import answer, problem_of, recorded_share_id
from support.conformance import Case, load_conformance
from support.solvers import compiled

MAX_STEPS = 20_000
EXPENSIVE = {"table-167"}
"""Made to show an exponential search: nothing for a twin that tries everything."""


def twin_of(case: Case) -> Outcome:
    """What the twin says of a recorded problem."""
    return brute_force(
        problem_of(case), compiled, share_id=recorded_share_id(case), max_steps=MAX_STEPS
    )


@pytest.mark.parametrize("suite", ["allocation", "corrected", "table"])
def test_recorded_answers(suite: str) -> None:
    """Every recorded problem has its recorded answer, device for device and in order."""
    for case in load_conformance(suite):
        if case["id"] in EXPENSIVE:
            continue
        found = answer(partial(twin_of, case))
        assert found == case["expect"], case["id"]


@pytest.mark.parametrize("suite", ["allocation", "corrected", "table"])
def test_checker_accepts_recorded_answers(suite: str) -> None:
    """The recorded allocations break no rule."""
    for case in load_conformance(suite):
        if case["expect"]["outcome"] == "allocated":
            results = [decode_allocation_result(one) for one in case["expect"]["results"]]
            assert violations(problem_of(case), results, compiled) == [], case["id"]


def test_too_expensive() -> None:
    """The twin can be told to stop."""
    case = next(c for c in load_conformance("allocation") if c["expect"].get("results"))
    with pytest.raises(TooExpensiveError):
        brute_force(problem_of(case), compiled, max_steps=0)
