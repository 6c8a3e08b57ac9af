"""What one node sees: its usable pools with their devices as bits, and pool problems.

Bit ``i`` of every mask of a view stands for candidate ``i``: devices in the order in
which the first fit is searched (pools by driver and name, those with a device that
has binding conditions last; slices by name; devices as listed). Index per node, never
per cluster: a mask stays as short as the node's list of devices.

A view never changes. It keeps what was derived from it (selector masks, attribute
columns, tolerated taints) for the next call; the caches are filled without a lock
and bounded, as in ``dra_core.inventory.slices``.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from dra_core.api.core import Node
from dra_core.api.names import DeviceId, PoolId
from dra_core.api.objects import Device
from dra_core.inventory.pools import ResolvedPool
from dra_core.inventory.problems import PoolProblem
from dra_core.inventory.slices import StoredSlice

MAX_DERIVED: Final = 1024
"""Derived values kept per view."""


class Part:
    """One slice's place in a view: its devices are candidates from ``start`` on."""

    __slots__ = ("elsewhere", "start", "stored")

    def __init__(self, stored: StoredSlice, start: int, elsewhere: int) -> None:
        self.stored = stored
        self.start = start
        self.elsewhere = elsewhere


class PoolView:
    """A usable pool: candidates ``start`` to ``stop`` are its devices for the node."""

    __slots__ = ("_index", "members", "parts", "pool_id", "start", "stop")

    def __init__(self, pool: ResolvedPool, parts: list[Part], start: int, stop: int) -> None:
        self.pool_id: PoolId = pool.pool_id
        self.members = pool.members
        self.parts = parts
        self.start = start
        self.stop = stop
        self._index: dict[str, int] | None = None

    @property
    def index(self) -> dict[str, int]:
        """Candidate by device name; built on first use."""
        index = self._index
        if index is None:
            index = self._index = {
                device.name: part.start + place
                for part in self.parts
                for place, device in enumerate(part.stored.slice.devices)
            }
        return index


class NodeView:
    """The supply of one node, frozen; see the module.

    ``devices`` lists the candidates; ``binding``, ``consuming``, ``multiple`` and
    ``tainted`` are masks of devices with binding conditions, counters, multiple
    allocations and taints; ``elsewhere`` of those whose own node selection excludes
    the node; ``skipping`` of those whose slice skips node operations.
    """

    __slots__ = (
        "binding",
        "consuming",
        "derived",
        "devices",
        "elsewhere",
        "multiple",
        "node_name",
        "owners",
        "parts",
        "pools",
        "problems",
        "skipping",
        "tainted",
    )

    def __init__(
        self, node: Node, pools: Iterable[ResolvedPool], problems: tuple[PoolProblem, ...]
    ) -> None:
        self.node_name = node.metadata.name
        self.problems = problems
        self.derived: dict[object, Any] = {}
        self.multiple = self.binding = self.consuming = self.tainted = 0
        self.elsewhere = self.skipping = 0
        self.parts: list[Part] = []
        self.pools: list[PoolView] = []
        self.owners: list[PoolView] = []
        """The pool of each candidate."""
        devices: list[Device] = []
        for pool in pools:
            start = len(devices)
            parts = [self._add(stored, devices, node) for stored in pool.local]
            view = PoolView(pool, parts, start, len(devices))
            self.pools.append(view)
            self.owners += [view] * (len(devices) - start)
        self.devices = devices

    def _add(self, stored: StoredSlice, devices: list[Device], node: Node) -> Part:
        start = len(devices)
        part = Part(stored, start, stored.elsewhere(node))
        flags = stored.look()
        self.multiple |= flags.multiple << start
        self.binding |= flags.binding << start
        self.consuming |= flags.consuming << start
        self.tainted |= flags.tainted << start
        self.elsewhere |= part.elsewhere << start
        if stored.slice.skip_node_operations:
            self.skipping |= ((1 << len(stored.slice.devices)) - 1) << start
        devices.extend(stored.slice.devices)
        self.parts.append(part)
        return part

    def device_id(self, candidate: int) -> DeviceId:
        """The identity of a candidate."""
        return DeviceId(*self.owners[candidate].pool_id, self.devices[candidate].name)

    def part_of(self, candidate: int) -> Part:
        """The slice of a candidate, with its place. Cost: the slices of its pool."""
        parts = self.owners[candidate].parts
        found = parts[0]
        for part in parts:
            if part.start > candidate:
                break
            if part.stored.slice.devices:
                found = part
        return found

    def combine(
        self, key: object, compute: Callable[[StoredSlice], tuple[int, int]]
    ) -> tuple[int, int]:
        """A pair of masks over the candidates, from the same of every slice.

        Computed once per slice and once per view for each ``key``.
        """
        masks: tuple[int, int] | None = self.derived.get(key)
        if masks is None and len(self.parts) == 1:
            masks = self.parts[0].stored.remember(key, compute)
            self.keep(key, masks)
        elif masks is None:
            first = second = 0
            for part in self.parts:
                one, two = part.stored.remember(key, compute)
                first |= one << part.start
                second |= two << part.start
            masks = first, second
            self.keep(key, masks)
        return masks

    def keep(self, key: object, value: object) -> None:
        """Remember a derived value."""
        if len(self.derived) >= MAX_DERIVED:
            self.derived.clear()
        self.derived[key] = value
