"""Both allocators as functions of a problem, for tests of rules that both must follow.

What may live here: ``SOLVERS``, to parametrize a test with. A rule that the twin passes
and the allocator does not is a fault of the allocator; the other way round, of the
twin; a test that neither passes is a wrong test.
"""

from collections.abc import Callable
from itertools import count

import pytest

from dra_core.allocator.allocation import Allocator
from dra_core.allocator.results import Outcome
from dra_core.cel.selector import SelectorCache
from dra_core.inventory.index import Inventory
from dra_core.testing.brute_force import brute_force
from dra_core.testing.problem import Matches, Problem

Solve = Callable[[Problem], Outcome]

SELECTORS = SelectorCache()


def compiled(text: str) -> Matches:
    """A selector as the twin wants it."""
    return SELECTORS.compile(text).matches


def allocator_of(problem: Problem, inventory: Inventory | None = None) -> Allocator:
    """An allocator for a problem, with share IDs that are all different."""
    numbers = count()
    return Allocator(
        Inventory(problem.slices) if inventory is None else inventory,
        problem.classes,
        features=problem.features,
        selectors=SELECTORS,
        share_ids=lambda: f"share-{next(numbers)}",
    )


def allocate(problem: Problem, budget: int | None = None) -> Outcome:
    """The allocator, made anew for each problem."""
    return allocator_of(problem).allocate(
        problem.claims, problem.node, problem.allocated, budget=budget
    )


def twin(problem: Problem) -> Outcome:
    """The brute-force twin."""
    return brute_force(problem, compiled)


SOLVERS = [pytest.param(allocate, id="allocator"), pytest.param(twin, id="brute-force")]
