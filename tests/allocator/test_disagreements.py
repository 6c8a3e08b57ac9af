"""Problems on which the allocator and its twin once disagreed, made small by hand.

What may live here: one test per disagreement that random problems brought up, run on
both. The docstring says what the wrong answer was.
"""

import pytest

from dra_core.errors import AllBreaksConstraintError
from support.allocation_builders import (
    claim,
    device,
    devices,
    distinct,
    everything,
    exactly,
    first,
    match,
    pool_slice,
    problem,
    served,
    sub,
)
from support.solvers import SOLVERS, Solve

both = pytest.mark.parametrize("solve", SOLVERS)


@both
def test_alternative_with_count_zero_gets_nothing(solve: Solve) -> None:
    """It got the device that the alternative before it had left over."""
    request = first("r", sub("s0", 3), sub("s1", 0))
    assert served(solve(problem(claim(request), pool_slice("s", *devices(2))))) == [[]]


@both
def test_all_breaks_a_constraint_after_an_exchange(solve: Solve) -> None:
    """It was "does not fit": the first pick was not exchanged, so the error was not met."""
    requests = [exactly("r0", admin_access=True), everything("r1", admin_access=True)]
    members = [device(f"d{n}", {"numa": 0}) for n in range(3)]
    whole = claim(*requests, constraints=[distinct("numa")])
    with pytest.raises(AllBreaksConstraintError):
        solve(problem(whole, pool_slice("s", *members)))


@both
def test_device_that_leaves_nothing_for_its_partners(solve: Solve) -> None:
    """The first alternative was given up with the first device, which nothing goes with."""
    members = [
        device("d0", {"numa": 1}, counters={"cs": {"c": "3"}}),
        device("d1", {"numa": 0}, counters={"cs": {"c": "1"}}),
        device("d2", {"numa": 0}, counters={"cs": {"c": "1"}}),
    ]
    slices = [
        pool_slice("s", *members, count=2),
        pool_slice("t", count=2, offers={"cs": {"c": "4"}}),
    ]
    whole = claim(first("r", sub("s0", 2), sub("s1", 0)), constraints=[match("numa")])
    assert served(solve(problem(whole, *slices))) == [[("r/s0", "d1"), ("r/s0", "d2")]]


@both
def test_shared_device_serves_twice_in_another_order(solve: Solve) -> None:
    """It was "does not fit": the shared device had to serve both requests."""
    slices = [
        pool_slice("s", device("d1")),
        pool_slice("t", device("x1", shared=True), pool="pool-2"),
    ]
    requests = [exactly("r0", 1), exactly("r1", 2)]
    found = solve(problem(claim(*requests), *slices))
    assert served(found) == [[("r0", "x1"), ("r1", "d1"), ("r1", "x1")]]
