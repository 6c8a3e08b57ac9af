"""The search: it stops when told, needs no deep stack, and counts its work."""

import inspect
import sys
import threading
from collections.abc import Callable

import pytest

from dra_core.allocator.results import Allocated, StoppedBy, Undecided, Unsatisfiable
from dra_core.testing.problem import Problem
from support.allocation_builders import (
    claim,
    device,
    devices,
    distinct,
    exactly,
    first,
    granted,
    match,
    pool_slice,
    problem,
    sub,
)
from support.allocator import allocate, allocator_for


def hard() -> Problem:
    """Needs backtracking: two attributes that have to be matched crosswise."""
    members = [device(f"d{n}", {"a": n % 5, "b": n % 7, "c": n % 4}) for n in range(40)]
    requests = [exactly(f"r{n}", 2) for n in range(4)]
    constraints = (match("a", "r0", "r1"), match("b", "r1", "r2"), distinct("c", "r2", "r3"))
    return problem(claim(*requests, constraints=constraints), pool_slice("s", *members))


def test_budget() -> None:
    """With too small a budget the outcome is Undecided with all of it spent, no verdict."""
    unlimited = allocate(hard(), budget=None)
    assert unlimited.steps > 20
    for budget in (0, 1, unlimited.steps // 2, unlimited.steps - 1):
        assert allocate(hard(), budget=budget) == Undecided(StoppedBy.BUDGET, budget)
    assert allocate(hard(), budget=unlimited.steps) == unlimited


class After:
    """True from the n-th question on."""

    def __init__(self, questions: int) -> None:
        self.left = questions

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("which", ["deadline", "cancel"])
@pytest.mark.parametrize("questions", [0, 1, 2])
def test_deadline_and_cancel(which: str, questions: int) -> None:
    """Both end the call as Undecided, before it begins or in the middle."""
    told: dict[str, Callable[[], bool]] = {which: After(questions)}
    stopped = StoppedBy.DEADLINE if which == "deadline" else StoppedBy.CANCELLED
    outcome = allocate(hard(), **told)  # type: ignore[arg-type]
    assert isinstance(outcome, Undecided)
    assert outcome.stopped_by is stopped


def test_deadline_is_asked_while_selectors_run() -> None:
    """Selectors that take long are evaluated with the deadline in view."""
    slow = "[1, 2, 3].all(a, " * 9 + "a > 0" + ")" * 9
    one = problem(claim(exactly("r", 1, slow)), pool_slice("s", *devices(50)))
    assert allocate(one, deadline=After(10)) == Undecided(StoppedBy.DEADLINE, 0)


def test_no_recursion() -> None:
    """30 claims of 32 devices: more than Python's stack is deep."""
    total = 30 * 32
    claims = [claim(exactly("r", 32), name=f"claim-{n}") for n in range(30)]
    slices = [pool_slice(f"s{n}", *devices(32, first=1), pool=f"pool-{n:02}") for n in range(30)]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 120)
    try:
        outcome = allocate(problem(claims, *slices))
    finally:
        sys.setrecursionlimit(limit)
    assert sum(map(len, granted(outcome))) == total
    assert outcome.steps == total


def test_steps_of_an_everyday_problem() -> None:
    """A request that fits at once costs one step per device: nothing is proved."""
    one = problem(claim(exactly("r", 3)), pool_slice("s", *devices(8)))
    assert allocate(one).steps == 3


def test_shared_capacity_is_decided_quickly() -> None:
    """17 requests of 30Gi on 8 shared devices of 80Gi: no; 16: yes, without trying much."""
    members = [device(f"d{n}", capacity={"m": "80Gi"}, shared=True) for n in range(8)]

    def ask(number: int) -> int:
        requests = [exactly(f"r{n}", capacity={"m": "30Gi"}) for n in range(number)]
        outcome = allocate(problem(claim(*requests), pool_slice("s", *members)))
        assert isinstance(outcome, Unsatisfiable if number > 16 else Allocated)
        return outcome.steps

    assert ask(16) < 200
    assert ask(17) < 400


def test_mixed_amounts_on_shared_devices() -> None:
    """Amounts that pack badly: 5 x 50Gi and 4 x 30Gi on 5 x 80Gi fit only paired."""
    members = [device(f"d{n}", capacity={"m": "80Gi"}, shared=True) for n in range(5)]
    small = [exactly(f"s{n}", capacity={"m": "30Gi"}) for n in range(4)]
    large = [exactly(f"l{n}", capacity={"m": "50Gi"}) for n in range(5)]
    outcome = allocate(problem(claim(*small, *large), pool_slice("s", *members)))
    assert isinstance(outcome, Allocated)
    assert outcome.steps < 2_000


def test_bug_09_no_early_exit_when_a_subrequest_passes_the_cap() -> None:
    """BUG-09: 30 + 8 devices pass 32, so the small alternative is taken at once."""
    one = problem(
        claim(first("r0", sub("s0", 30), sub("s1", 1)), exactly("r1", 8)),
        pool_slice("s", *devices(60)),
    )
    outcome = allocate(one)
    assert len(granted(outcome)[0]) == 9
    assert outcome.steps < 200


def test_threads_share_an_allocator() -> None:
    """BUG-61: calls do not see each other's state."""
    one = hard()
    allocator = allocator_for(one)
    expected = allocator.allocate(one.claims, one.node)
    seen: list[object] = []

    def work() -> None:
        for _ in range(20):
            seen.append(allocator.allocate(one.claims, one.node))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80
    assert all(outcome == expected for outcome in seen)
