"""The pools that one node sees, worked out from all slices each time.

What may live here: the part of the brute-force twin that turns slices into pools.
Nothing is indexed and nothing is remembered.
"""

from collections.abc import Iterable, Sequence

import attrs

from dra_core.api.core import Node, NodeSelector
from dra_core.api.names import PoolId
from dra_core.api.objects import ResourceSlice
from dra_core.errors import NodeSelectorError
from dra_core.features import Features
from dra_core.inventory.problems import PoolState
from dra_core.testing.problem import Entry
from dra_core.testing.rules import counters_of, node_selector_problem, slice_is_for_node


@attrs.frozen
class NodePool:
    """A pool as a node sees it: what it consists of, and the part for this node.

    ``problem`` is None for a pool whose devices may be used.
    """

    id: PoolId
    slices: tuple[ResourceSlice, ...]
    local: tuple[ResourceSlice, ...]
    problem: PoolState | None

    def entries(self) -> list[Entry]:
        """The devices in the slices for this node, in order."""
        return [Entry(s, device) for s in self.local for device in s.devices]

    def all_entries(self) -> list[Entry]:
        """Every device of the pool, also those for other nodes."""
        return [Entry(s, device) for s in self.slices for device in s.devices]


def check_node_selectors(slices: Iterable[ResourceSlice]) -> None:
    """Raise NodeSelectorError for a selector that cannot be used, wherever it is read."""
    for resource_slice in slices:
        if resource_slice.node_name:
            continue
        selectors: list[tuple[str, NodeSelector | None]] = [("", resource_slice.node_selector)]
        if resource_slice.per_device_node_selection:
            selectors += [(d.name, d.node_selector) for d in resource_slice.devices]
        for device, selector in selectors:
            problem = node_selector_problem(selector) if selector is not None else None
            if problem is not None:
                raise NodeSelectorError("", "", resource_slice.name, device, problem)


def pools_of_node(
    slices: Sequence[ResourceSlice], node: Node, features: Features
) -> list[NodePool]:
    """The pools of the node in the order in which their devices are tried."""
    by_name = sorted(slices, key=lambda s: s.name)
    pools = []
    for pool_id in sorted({s.pool_id for s in slices}):
        pool = _pool([s for s in by_name if s.pool_id == pool_id], node, features)
        if pool is not None:
            pools.append(pool)
    return sorted(pools, key=_has_binding_conditions)


def _has_binding_conditions(pool: NodePool) -> bool:
    return any(entry.device.binding_conditions for entry in pool.entries())


def _pool(everywhere: list[ResourceSlice], node: Node, features: Features) -> NodePool | None:
    """One pool from all its slices; None if it is not on the node or obsolete."""
    relevant = [s for s in everywhere if _is_relevant(s, node, features)]
    if not relevant:
        return None
    generation = max(s.generation for s in relevant)
    local = [s for s in relevant if s.generation == generation]
    current = [s for s in everywhere if s.generation == generation]
    newer = any(s.generation > generation for s in everywhere)
    count = local[0].resource_slice_count
    if any(s.resource_slice_count != count for s in current):
        return None if newer else _made(current, local, PoolState.INVALID)
    if len(local) == count:
        return _made(local, local, _problem(local, local, features))
    if newer:
        return None
    if len(current) != count:
        return _made(current, local, PoolState.INCOMPLETE)
    return _made(current, local, _problem(current, local, features))


def _made(
    slices: list[ResourceSlice], local: list[ResourceSlice], problem: PoolState | None
) -> NodePool:
    return NodePool(local[0].pool_id, tuple(slices), tuple(local), problem)


def _is_relevant(resource_slice: ResourceSlice, node: Node, features: Features) -> bool:
    needs_partitions = resource_slice.per_device_node_selection or resource_slice.shared_counters
    if needs_partitions and not features.partitionable_devices:
        return False
    return slice_is_for_node(resource_slice, node)


def _problem(
    slices: list[ResourceSlice], local: list[ResourceSlice], features: Features
) -> PoolState | None:
    names = [device.name for s in local for device in s.devices]
    if len(set(names)) < len(names):
        return PoolState.INVALID
    if not features.partitionable_devices:
        return None
    sets = [counter_set for s in slices for counter_set in s.shared_counters]
    if len({counter_set.name for counter_set in sets}) < len(sets):
        return PoolState.INVALID
    offered = {(one.name, counter) for one in sets for counter in one.counters}
    known_sets = {one.name for one in sets}
    for device in (device for s in slices for device in s.devices):
        if not {c.counter_set for c in device.consumes_counters} <= known_sets:
            return PoolState.INVALID
        if not counters_of(device).keys() <= offered:
            return PoolState.INVALID
    return None
