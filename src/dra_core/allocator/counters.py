"""Shared counters of a node's pools, packed into one integer.

Every counter that a candidate consumes gets a field: a guard bit above the amount
that is left. Taking a device is one subtraction, and it fits if the guard bits of all
counters it touches are still set; undoing it is putting the old int back. Amounts are
divided by the greatest common divisor of what is consumed of the counter, so fields
are narrow (a GPU's 80 GiB in pieces of 10 GiB need four bits), and nothing is rounded
except the remainder that no device could use.

Source: resource.k8s.io/v1, CounterSet; KEP-4815.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import Final, overload

from dra_core.api.objects import Device, DeviceCounterConsumption
from dra_core.inventory.allocated import (
    NOTHING_IN_USE,
    AllocatedState,
    DeviceUse,
    PoolAllocation,
)
from dra_core.inventory.view import NodeView, PoolView

MAX_PACKED_BITS: Final = 1 << 29
"""Bits of all packed consumptions together. Beyond (thousands of counters of absurd sizes)
they are packed when they are asked for: 64 MiB are enough for one node's view."""

_BLOCK_BITS: Final = 1 << 16
"""Fields are added up in blocks of so many bits, or adding each to all would be quadratic."""

_MANY: Final = 40
"""Extra bits for pools with negative consumption, where an amount can grow: room for
2**40 picks. (The API forbids negative amounts; hand-made objects may have them.)"""


class Field:
    """One counter of one counter set. ``shift`` is the place of its lowest bit."""

    __slots__ = ("counter", "counter_set", "grows", "offered", "shift", "unit", "width")

    def __init__(self, counter_set: str, counter: str, offered: int) -> None:
        self.counter_set = counter_set
        self.counter = counter
        self.offered = offered
        self.grows = False
        self.unit = 0
        self.width = 0
        self.shift = 0

    @property
    def guard(self) -> int:
        """The guard bit."""
        return 1 << self.shift + self.width


class PoolCounters:
    """The fields of one pool and what its devices take of them, by device name.

    ``takes``: the candidates; ``uses``: all devices that the pool's slices list, wherever.
    """

    __slots__ = ("_listed", "_members", "fields", "offers", "takes", "uses")

    def __init__(self, pool: PoolView, candidates: Iterable[Device]) -> None:
        self._members = pool.members
        self._listed: frozenset[str] | None = None
        self.takes = {device.name: amounts(device.consumes_counters) for device in candidates}
        wanted = {key: None for taken in self.takes.values() for key in taken}
        self.offers = {
            (counter_set.name, name): quantity.nano
            for stored in pool.members
            for counter_set in stored.slice.shared_counters
            for name, quantity in counter_set.counters.items()
        }
        self.fields = [Field(*key, self.offers[key]) for key in wanted]
        self.uses = {
            device.name: amounts(device.consumes_counters)
            for stored in pool.members
            if stored.look().consuming
            for device in stored.slice.devices
            if device.consumes_counters
        }

    def taken_by(self, name: str, in_use: DeviceUse) -> Mapping[tuple[str, str], int]:
        """What a device in use takes: what its slice says, or what it was allocated with."""
        taken = self.uses.get(name)
        if taken is None:
            return amounts(in_use.counters) if in_use.counters and not self._lists(name) else {}
        return taken

    def _lists(self, name: str) -> bool:
        if self._listed is None:
            self._listed = frozenset(
                device.name for stored in self._members for device in stored.slice.devices
            )
        return name in self._listed


def amounts(consumptions: Iterable[DeviceCounterConsumption]) -> dict[tuple[str, str], int]:
    """What is consumed, in billionths, by (counter set, counter)."""
    taken: dict[tuple[str, str], int] = {}
    for consumption in consumptions:
        for name, quantity in consumption.counters.items():
            key = (consumption.counter_set, name)
            taken[key] = taken.get(key, 0) + quantity.nano
    return taken


class _Packed(Sequence[int]):
    """Numbers made of parts (shift, number) when they are asked for."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[list[tuple[int, int]]]) -> None:
        self._parts = parts

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [_sum(parts) for parts in self._parts[index]]
        return _sum(self._parts[index])

    def __len__(self) -> int:
        return len(self._parts)


def _sum(parts: Iterable[tuple[int, int]]) -> int:
    return sum(number << shift for shift, number in parts)


class CounterTable:
    """The counters of one node.

    ``costs[candidate]`` and ``touches[candidate]`` are the packed consumption and the
    guard bits to test, ``taken[candidate]`` what it takes of which field, in billionths;
    ``pools`` the fields by pool. ``taking`` masks the candidates that take anything (a
    consumption may be empty); ``grows``: some amount taken is negative; ``weight``: how
    many operations one on packed numbers counts as, 0 unless they are very long.
    """

    __slots__ = ("costs", "grows", "pools", "taken", "taking", "touches", "weight")

    def __init__(self, view: NodeView) -> None:
        self.taken: list[list[tuple[Field, int]]] = [[] for _ in view.devices]
        self.taking = 0
        self.grows = False
        self.pools: list[tuple[PoolView, PoolCounters]] = []
        shift = 0
        for pool in view.pools:
            places = [
                place for place in range(pool.start, pool.stop) if view.consuming >> place & 1
            ]
            if places:
                shift = self._add(pool, view, places, shift)
        costs = [[(f.shift, amount // f.unit) for f, amount in taken] for taken in self.taken]
        touches = [[(f.shift + f.width, 1) for f, _ in taken] for taken in self.taken]
        self.costs: Sequence[int] = _Packed(costs)
        self.touches: Sequence[int] = _Packed(touches)
        self.weight = 1 + (shift >> 12)
        if shift * self.taking.bit_count() <= MAX_PACKED_BITS:
            self.costs, self.touches, self.weight = self.costs[:], self.touches[:], 0

    def _add(self, pool: PoolView, view: NodeView, places: list[int], shift: int) -> int:
        counters = PoolCounters(pool, [view.devices[place] for place in places])
        self.pools.append((pool, counters))
        fields = {(field.counter_set, field.counter): field for field in counters.fields}
        amounts_of: dict[tuple[str, str], list[int]] = {key: [] for key in fields}
        for taken in counters.takes.values():
            for key, amount in taken.items():
                amounts_of[key].append(amount)
        for key, field in fields.items():
            shift = _place(field, amounts_of[key], shift)
            self.grows |= field.grows
        for place in places:
            takes = counters.takes[view.devices[place].name]
            self.taken[place] = [(fields[key], amount) for key, amount in takes.items()]
            if takes:
                self.taking |= 1 << place
        return shift

    def within(self, candidate: int, low: int) -> tuple[int, int]:
        """Cost and touched bits of a candidate that takes nothing of fields below ``low``."""
        if not self.weight:
            return self.costs[candidate] >> low, self.touches[candidate] >> low
        taken = self.taken[candidate]
        return (
            _sum((field.shift - low, amount // field.unit) for field, amount in taken),
            _sum((field.shift + field.width - low, 1) for field, _ in taken),
        )

    def key(self, candidate: int) -> object:
        """Equal for candidates that take the same of the same counters."""
        if not self.weight:
            return self.costs[candidate], self.touches[candidate]
        return tuple((field.shift, amount) for field, amount in self.taken[candidate])

    def available(self, view: NodeView, allocated: AllocatedState) -> tuple[int, int]:
        """What is left, packed, given what is in use; and the candidates of overdrawn pools.

        Where more is in use of any counter of a pool than it offers, no further device
        that consumes counters fits into that pool. Remembered per pool and its use.
        """
        total = overdrawn = 0
        for pool, counters in self.pools:
            use = allocated.pool(*pool.pool_id)
            key = ("counters", pool.start)
            known = view.derived.get(key)
            if known is None or known[0] is not use:
                known = use, *_left(counters, use)
                view.keep(key, known)
            total |= known[1]
            if known[2]:
                overdrawn |= view.consuming & (1 << pool.stop) - (1 << pool.start)
        return total, overdrawn

    def fields(self) -> Iterator[tuple[PoolView, Field]]:
        """All fields with their pools."""
        for pool, counters in self.pools:
            for field in counters.fields:
                yield pool, field


def counter_table(view: NodeView) -> CounterTable | None:
    """The counters of a node, remembered in its view; ``None`` if nothing consumes any."""
    if not view.consuming:
        return None
    table = view.derived.get(CounterTable)
    if not isinstance(table, CounterTable):
        table = CounterTable(view)
        view.keep(CounterTable, table)
    return table


def _place(field: Field, taken: list[int], shift: int) -> int:
    field.unit = gcd(*taken) or 1
    largest = max(abs(amount) for amount in taken) // field.unit
    field.width = max(abs(field.offered) // field.unit, largest + 1).bit_length()
    field.grows = min(taken) < 0
    if field.grows:
        field.width += _MANY
    field.shift = shift
    return shift + field.width + 1


def _left(counters: PoolCounters, use: PoolAllocation) -> tuple[int, bool]:
    """(what is left, packed; whether any counter of the pool is overdrawn)."""
    used: dict[tuple[str, str], int] = {}
    if use is not NOTHING_IN_USE:
        for name, in_use in use.uses.items():
            for key, amount in counters.taken_by(name, in_use).items():
                used[key] = used.get(key, 0) + amount
    packed = block = start = 0
    for field in counters.fields:
        if field.shift - start > _BLOCK_BITS:
            packed += block << start
            block, start = 0, field.shift
        left = (field.offered - used.get((field.counter_set, field.counter), 0)) // field.unit
        # More than the field holds cannot matter, less than nothing is nothing (unless
        # a negative consumption may make it more again).
        least = -(1 << field.width - 1) if field.grows else -1
        left = max(least, min(left, (1 << field.width) - 1))
        block += (1 << field.width) + left << field.shift - start
    packed += block << start
    overdrawn = any(used.get(key, 0) > offer for key, offer in counters.offers.items())
    return packed, overdrawn
