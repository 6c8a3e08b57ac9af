"""Shared counters, packed, against plain sums."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.allocator import counters
from dra_core.allocator.counters import CounterTable, counter_table
from dra_core.api.core import Node, ObjectMeta
from dra_core.api.objects import DeviceCounterConsumption
from dra_core.inventory.allocated import AllocatedState
from dra_core.inventory.index import Inventory
from dra_core.inventory.view import NodeView
from support.allocation_builders import amounts, device, device_id, in_use, pool_slice

NODE = Node(ObjectMeta(name="node-1"))


def table_of(view: NodeView) -> CounterTable:
    table = counter_table(view)
    assert table is not None
    return table


@pytest.mark.parametrize("packed", [True, False])
@given(
    st.lists(
        st.dictionaries(st.sampled_from("xyz"), st.integers(-2, 9), max_size=3),
        min_size=1,
        max_size=6,
    ),
    st.fixed_dictionaries({name: st.integers(-3, 30) for name in "xyz"}),
    st.data(),
)
def test_same_as_plain_sums(
    packed: bool, takes: list[dict[str, int]], offers: dict[str, int], data: st.DataObject
) -> None:
    """Any sequence of devices fits exactly when no counter that each touches is exceeded,
    packed ahead or when asked for.
    """
    devices = [
        device(f"d{n}", counters={"cs": {k: str(v) for k, v in take.items()}})
        for n, take in enumerate(takes)
    ]
    offered = {"cs": {name: str(amount) for name, amount in offers.items()}}
    view = Inventory([pool_slice("s", *devices, offers=offered)]).view(NODE)
    used = data.draw(st.sets(st.integers(0, len(takes) - 1)))
    state = in_use(*(f"d{n}" for n in sorted(used)))
    with pytest.MonkeyPatch.context() as patch:
        if not packed:
            patch.setattr(counters, "MAX_PACKED_BITS", -1)
        table = table_of(view)
    assert bool(table.weight) is not packed
    available, overdrawn = table.available(view, state)
    left = {k: v - sum(takes[n].get(k, 0) for n in used) for k, v in offers.items()}
    assert bool(overdrawn) == any(amount < 0 for amount in left.values())
    for place in data.draw(st.lists(st.integers(0, len(takes) - 1), max_size=8)):
        after = available - table.costs[place]
        fits = after & table.touches[place] == table.touches[place]
        assert fits == all(left[k] - v >= 0 for k, v in takes[place].items())
        if fits:
            available = after
            for name, amount in takes[place].items():
                left[name] -= amount


def test_devices_elsewhere_and_gone_ones_count() -> None:
    """What is allocated of the pool on another node, or was of a vanished device, is taken."""
    view = Inventory(
        [
            pool_slice("s1", device("d1", counters={"cs": {"c": "2"}}), count=3),
            pool_slice("s2", device("d2", counters={"cs": {"c": "3"}}), count=3, node="node-2"),
            pool_slice("s3", offers={"cs": {"c": "6"}}, count=3),
        ]
    ).view(NODE)
    gone = {device_id("d3"): (DeviceCounterConsumption("cs", amounts({"c": "2"})),)}
    table = table_of(view)

    def fits(state: AllocatedState) -> bool:
        available, _ = table.available(view, state)
        return (available - table.costs[0]) & table.touches[0] == table.touches[0]

    assert fits(in_use("d2"))
    assert fits(in_use("d2", "d3"))
    assert not fits(in_use("d2", "d3").with_gone_consumption(gone))


def test_no_counters() -> None:
    """A node whose devices consume nothing has no table."""
    assert counter_table(Inventory([pool_slice("s", device("d"))]).view(NODE)) is None


def test_fields_are_narrow() -> None:
    """Amounts are divided by what they have in common: 80Gi in pieces of 10Gi are 4 bits."""
    devices = [device(f"d{n}", counters={"cs": {"m": "10Gi"}}) for n in range(3)]
    view = Inventory([pool_slice("s", *devices, offers={"cs": {"m": "80Gi"}})]).view(NODE)
    ((_, field),) = table_of(view).fields()
    assert (field.width, table_of(view).costs[0]) == (4, 1)


def test_parts_of_packed_numbers() -> None:
    """What a candidate takes is the same in both forms, also moved down, also as a key."""
    devices = [
        device("d0", counters={"a": {"x": "3"}}),
        device("d1", counters={"b": {"x": "2", "y": "5"}}),
        device("d2", counters={"b": {"x": "2", "y": "5"}}),
    ]
    offers = {"a": {"x": "9"}, "b": {"x": "9", "y": "9"}}
    inventory = Inventory([pool_slice("s", *devices, offers=offers)])
    table = table_of(inventory.view(NODE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counters, "MAX_PACKED_BITS", -1)
        parts = CounterTable(inventory.view(NODE))
    assert [list(parts.costs), parts.touches[:]] == [list(table.costs), list(table.touches)]
    for one in (table, parts):
        low = one.taken[1][0][0].shift
        assert low > 0
        assert one.within(1, low) == (table.costs[1] >> low, table.touches[1] >> low)
        assert one.key(1) == one.key(2) != one.key(0)


def test_absurd_amounts() -> None:
    """Thousands of counters of a thousand digits take room in proportion to their text."""
    devices = [
        device(f"d{n}", {"x": n % 400}, counters={f"set-{n}": {"c": "1e500"}}) for n in range(800)
    ]
    offers = {f"set-{n}": {"c": "1e1000"} for n in range(800)}
    view = Inventory([pool_slice("s", *devices, offers=offers)]).view(NODE)
    table = table_of(view)
    assert table.weight > 100
    available, overdrawn = table.available(view, AllocatedState())
    assert not overdrawn
    for place in (0, 799):
        for times in range(3):
            after = available - times * table.costs[place]
            assert after & table.touches[place] == table.touches[place]
