"""The allocator for a problem, for tests that are about one call."""

from collections.abc import Callable

from dra_core.allocator.allocation import Allocator
from dra_core.allocator.results import Outcome
from dra_core.inventory.index import Inventory
from dra_core.testing.problem import Problem


def allocator_for(problem: Problem) -> Allocator:
    """An allocator made anew; share IDs are share-0, share-1, …"""
    numbers = iter(range(10_000))
    return Allocator(
        Inventory(problem.slices),
        problem.classes,
        features=problem.features,
        share_ids=lambda: f"share-{next(numbers)}",
    )


def allocate(
    problem: Problem,
    *,
    budget: int | None = 100_000,
    deadline: Callable[[], bool] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Outcome:
    """One call for a problem."""
    return allocator_for(problem).allocate(
        problem.claims,
        problem.node,
        problem.allocated,
        budget=budget,
        deadline=deadline,
        cancel=cancel,
    )
