"""The search alone: its order, what it leaves out, and how much work it takes."""

import pytest

from dra_core.allocator.search import Meter, StopSearch
from dra_core.v1alpha2.search import Candidates, Failed, Found, Refuted, Search


def run(
    requests: list[tuple[int, int]], own: int = -1, *, failing: int = 0, budget: int | None = None
) -> tuple[Found | Refuted | Failed, int]:
    """The outcome and the steps; ``requests`` are mask and block, ``failing`` fails for all."""
    meter = Meter(budget, None, None)
    meter.start()
    wanted = [Candidates(mask & ~failing, mask & failing, block) for mask, block in requests]
    return Search(wanted, own, meter).run(), meter.steps


def test_nothing_asked_is_found() -> None:
    """No requests, no instances, no steps."""
    assert run([]) == (Found(()), 0)


def test_the_first_instances_are_taken() -> None:
    """Without a dead end each request takes the first instance that is left: a step each."""
    assert run([(0b1111, 0)] * 3) == (Found((0, 1, 2)), 3)


def test_a_request_gives_way() -> None:
    """The reference picks greedily and misses this: the first request takes what the second
    needs."""
    found, _ = run([(0b11, 0), (0b01, 0)])
    assert found == Found((1, 0))


def test_a_single_request_without_instance_is_named() -> None:
    """What cannot be met alone is told as that."""
    assert run([(0b1, 0), (0, 0)])[0] == Refuted((1,), 0)


def test_requests_that_compete_are_named() -> None:
    """Three requests for two instances; a fourth has nothing to do with it."""
    found, _ = run([(0b1000, 0), (0b11, 0), (0b01, 0), (0b11, 0)])
    assert found == Refuted((1, 2, 3), 2)


def test_a_block_stays_at_one_place() -> None:
    """Instances 0 and 1 are the node's own, 2 and 3 of no node."""
    assert run([(0b1111, 0), (0b1111, 0)], 0b0011)[0] == Found((0, 1))
    assert run([(0b1101, 0), (0b1101, 0)], 0b0011)[0] == Found((2, 3))
    assert run([(0b1101, 0), (0b1101, 1)], 0b0011)[0] == Found((0, 2))
    assert run([(0b0101, 0), (0b0101, 0)], 0b0011)[0] == Refuted(())


def test_a_block_gives_way_for_another() -> None:
    """The first block could be on the node, but then the second has no place."""
    own, other = 0b0011, 0b1100
    assert run([(own | other, 0), (own | other, 0), (own, 1)], own)[0] == Found((2, 3, 0))


def test_a_failing_selector_ends_the_search_where_it_is_met() -> None:
    """An instance that comes first is taken, whatever happens on later ones."""
    assert run([(0b11, 0)], failing=0b10)[0] == Found((0,))
    assert run([(0b11, 0)], failing=0b01)[0] == Failed(0, 0)
    assert run([(0b101, 0), (0b111, 0)], failing=0b010)[0] == Failed(1, 1)


def test_what_competes_is_named_although_a_selector_could_fail() -> None:
    """The failing instance is taken by the first request, and nothing is left for the second."""
    meter = Meter(None, None, None)
    wanted = [Candidates(0b1, 0, 0), Candidates(0, 0b1, 0)]
    assert Search(wanted, -1, meter).run() == Refuted((0, 1), 1)


def test_failing_instances_are_not_left_out_of_a_hopeless_search() -> None:
    """Before it is known that nothing fits the plain search meets the failing instance."""
    assert run([(0b011, 0), (0b001, 0), (0, 0)], failing=0b010)[0] == Failed(0, 1)


@pytest.mark.parametrize("count", [10, 40, 200])
def test_bug_10_equal_instances_are_no_reason_to_try_permutations(count: int) -> None:
    """One request too many, or a last one that nothing meets: work that grows like a proof,
    not like the number of permutations."""
    every = (1 << count) - 1
    found, steps = run([(every, n) for n in range(count)] + [(every, count)])
    assert found == Refuted(tuple(range(count + 1)), count)
    assert steps <= 4 * count
    found, steps = run([(every, n) for n in range(count - 1)] + [(0, count)])
    assert found == Refuted((count - 1,), 0)
    assert steps <= 2 * count


def test_a_long_chain_of_giving_way_is_no_recursion() -> None:
    """Request i takes i or i + 1, the last one only 0: each has to move by one."""
    count = 1_500
    requests = [(0b11 << n, n) for n in range(count)] + [(1, count)]
    found, steps = run(requests)
    assert found == Found((*range(1, count + 1), 0))
    assert steps <= 10 * count


def test_blocks_of_equal_instances_are_counted_not_permuted() -> None:
    """Blocks of three on two places with 3k + 2 instances each, one block too many: only the
    numbers that are left matter."""
    blocks = 8
    each = 3 * (blocks // 2) + 2
    own, every = (1 << each) - 1, (1 << 2 * each) - 1
    requests = [(every, block) for block in range(blocks + 1) for _ in range(3)]
    found, steps = run(requests, own)
    assert found == Refuted(())
    assert steps < 20_000


def test_the_budget_is_kept() -> None:
    """A search that is not over by then is stopped."""
    requests = [(0b11 << n, n) for n in range(50)] + [(1, 50)]
    with pytest.raises(StopSearch):
        run(requests, budget=20)
    assert run(requests, budget=2_000)[0] == Found((*range(1, 51), 0))
