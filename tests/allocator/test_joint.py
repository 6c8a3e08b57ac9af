"""Hall's condition, against every assignment."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from dra_core.allocator import joint
from dra_core.allocator.joint import Demand, Shortage, shortage


def can_be_met(demands: list[Demand]) -> bool:
    """Give each candidate to one of the demands or to none, in every way."""
    for given_to in product(range(-1, len(demands)), repeat=6):
        if all(
            sum(d == place and mask >> c & 1 for c, d in enumerate(given_to)) >= need
            for place, (mask, need) in enumerate(demands)
        ):
            return True
    return False


small = st.lists(st.builds(Demand, st.integers(0, 63), st.integers(0, 3)), max_size=3)
many = st.lists(st.builds(Demand, st.integers(0, 255), st.integers(0, 2)), max_size=9)


@given(small)
def test_same_as_trying_everything(demands: list[Demand]) -> None:
    """A shortage is reported exactly when no assignment exists, and it is one."""
    found = shortage(demands)
    assert (found is None) == can_be_met(demands)
    if found is not None:
        check(demands, found)


def check(demands: list[Demand], found: Shortage) -> None:
    union = 0
    for place in found.demands:
        union |= demands[place].mask
    assert found.available == union.bit_count() < found.need
    assert found.need == sum(demands[place].need for place in found.demands)


@given(many)
def test_flow_agrees_with_groups(demands: list[Demand]) -> None:
    """Many masks are answered by a flow: the same answer as looking at all groups."""
    needs: dict[int, int] = {}
    for mask, need in demands:
        if need:
            needs[mask] = needs.get(mask, 0) + need
    masks = list(needs)
    short = any(
        (group_union(masks, group)).bit_count() < sum(needs[m] for m in pick(masks, group))
        for group in range(1, 1 << len(masks))
    )
    found = joint._flow(masks, [needs[mask] for mask in masks])
    assert bool(found) == short
    if found:
        union = 0
        for mask in found:
            union |= mask
        assert union.bit_count() < sum(needs[mask] for mask in found)


def pick(masks: list[int], group: int) -> list[int]:
    return [mask for place, mask in enumerate(masks) if group >> place & 1]


def group_union(masks: list[int], group: int) -> int:
    union = 0
    for mask in pick(masks, group):
        union |= mask
    return union


def test_many_demands_are_polynomial() -> None:
    """Thirty requests that each want one of the same twenty-nine devices."""
    demands = [Demand((1 << 29) - 1 & ~(1 << n), 1) for n in range(29)]
    assert shortage(demands) is None
    found = shortage([*demands, Demand((1 << 29) - 1, 1)])
    assert found is not None
    assert (found.need, found.available) == (30, 29)
