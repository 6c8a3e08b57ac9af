"""The allocator gives the recorded answers: device for device, in order, errors too."""

import copy

import pytest

from dra_core.allocator.allocation import Allocator
from dra_core.allocator.results import Outcome
from dra_core.inventory.index import Inventory
from dra_core.testing.problem import Problem
from support.allocation_cases import answer, problem_of, recorded_share_id
from support.conformance import Case, conformance_params
from support.solvers import SELECTORS

STEPS = 2_000
"""More than any recorded problem may take: pruning has to end what trying would not."""


def recorded(problem: Problem, share_id: str) -> Outcome:
    """The allocator's answer with the share ID of the recorded one."""
    allocator = Allocator(
        Inventory(problem.slices),
        problem.classes,
        features=problem.features,
        selectors=SELECTORS,
        share_ids=lambda: share_id,
    )
    outcome = allocator.allocate(problem.claims, problem.node, problem.allocated, budget=None)
    assert outcome.steps <= STEPS
    return outcome


def check(case: Case) -> None:
    """One line: the answer is exactly the recorded one, and the inputs survive."""
    problem = problem_of(case)
    before = copy.deepcopy(problem)
    assert answer(lambda: recorded(problem, recorded_share_id(case))) == case["expect"]
    assert problem == before


@pytest.mark.parametrize("case", conformance_params("allocation"))
def test_allocation(case: Case) -> None:
    """Random problems: the reference with its known faults corrected gives this answer."""
    check(case)


@pytest.mark.parametrize("case", conformance_params("corrected"))
def test_corrected(case: Case) -> None:
    """Problems that the reference of July 2026 gets wrong: the right answer."""
    check(case)


@pytest.mark.parametrize("case", conformance_params("table"))
def test_table(case: Case) -> None:
    """The problems of the reference's own test table."""
    check(case)
