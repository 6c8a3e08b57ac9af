"""The supply side of a cluster: ResourceSlices, kept sorted, seen node by node.

``Inventory`` takes single slices (add, update, delete) and gives a node's view. A
view costs work proportional to the node's own slices plus those without a node name,
and is kept until one of its slices changes.

An inventory is changed by one thread at a time; views may be used by any number of
threads. Slices are never changed; what taint rules add is added before
(``dra_core.inventory.taint_rules``).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sortedcontainers import SortedKeyList

from dra_core.api.core import Node
from dra_core.api.names import PoolId
from dra_core.api.objects import ResourceSlice
from dra_core.inventory.pools import PoolBucket, ResolvedPool, resolve_pool, slice_order
from dra_core.inventory.problems import PoolProblem
from dra_core.inventory.slices import StoredSlice
from dra_core.inventory.view import NodeView

MAX_VIEWS: Final = 100_000
"""Views kept; beyond that the oldest goes. Twenty times the largest supported cluster."""

_Stamp = tuple["_Local | PoolBucket | int", ...]
"""What a view depends on, each followed by its version."""


class _Local:
    """The slices of one node name. ``version`` changes with them."""

    __slots__ = ("slices", "version")

    def __init__(self) -> None:
        self.slices: list[StoredSlice] = []
        self.version = 0


class _KeptView:
    """A view with what it depends on.

    ``revision`` of the inventory at which it was last known to be current.
    """

    __slots__ = ("labels", "revision", "shared_version", "stamp", "view")

    def __init__(
        self,
        view: NodeView,
        labels: Mapping[str, str],
        revision: int,
        shared_version: int,
        stamp: _Stamp,
    ) -> None:
        self.view = view
        self.labels = labels
        self.revision = revision
        self.shared_version = shared_version
        self.stamp = stamp

    def is_current(self, shared_version: int) -> bool:
        stamp = self.stamp
        return self.shared_version == shared_version and all(
            source.version == version
            for source, version in zip(stamp[::2], stamp[1::2], strict=True)
            if not isinstance(source, int)
        )


class Inventory:
    """All ResourceSlices of a cluster.

    Slices with equal names (possible in hand-made input) are all kept in the order
    given; ``update`` and ``delete`` go by name.

    ``visited`` counts the slices looked at for building views, for tests of the cost.
    """

    def __init__(self, slices: Iterable[ResourceSlice] = ()) -> None:
        """Cost: O(n log n) for n slices."""
        self._by_name: dict[str, list[StoredSlice]] = {}
        self._by_node: dict[str, _Local] = {}
        self._shared: SortedKeyList[StoredSlice, tuple[str, int]] = SortedKeyList(key=slice_order)
        self._shared_version = 0
        self._pools: dict[PoolId, PoolBucket] = {}
        self._views: dict[tuple[str, bool], _KeptView] = {}
        self._added = 0
        self._revision = 0
        self.visited = 0
        for resource_slice in slices:
            self.add(resource_slice)

    def __len__(self) -> int:
        """Number of slices."""
        return sum(len(stored) for stored in self._by_name.values())

    def slices(self) -> list[ResourceSlice]:
        """All slices by name, equal names in the order given."""
        return [s.slice for name in sorted(self._by_name) for s in self._by_name[name]]

    def node_names(self) -> list[str]:
        """The names of nodes that slices name themselves, sorted."""
        return sorted(name for name, local in self._by_node.items() if local.slices)

    @property
    def revision(self) -> int:
        """Grows with every change."""
        return self._revision

    def add(self, resource_slice: ResourceSlice) -> None:
        """Add a slice, also beside one of the same name. Cost: O(log n)."""
        self._added += 1
        stored = StoredSlice(resource_slice, self._added)
        self._by_name.setdefault(resource_slice.name, []).append(stored)
        if resource_slice.node_name:
            local = self._by_node.get(resource_slice.node_name)
            if local is None:
                local = self._by_node[resource_slice.node_name] = _Local()
            local.slices.append(stored)
            local.version += 1
        else:
            self._shared.add(stored)
            self._shared_version += 1
        bucket = self._pools.get(resource_slice.pool_id)
        if bucket is None:
            bucket = self._pools[resource_slice.pool_id] = PoolBucket(resource_slice.pool_id)
        bucket.add(stored)
        self._revision += 1

    def update(self, resource_slice: ResourceSlice) -> None:
        """Replace all slices of that name by this one, or add it. Cost: O(log n)."""
        self.delete(resource_slice.name)
        self.add(resource_slice)

    def delete(self, name: str) -> None:
        """Remove all slices of that name; none is no error. Cost: O(log n)."""
        for stored in self._by_name.pop(name, ()):
            self._remove(stored)

    def _remove(self, stored: StoredSlice) -> None:
        resource_slice = stored.slice
        if resource_slice.node_name:
            # The list is kept when it is empty: views compare its version.
            local = self._by_node[resource_slice.node_name]
            local.slices.remove(stored)
            local.version += 1
        else:
            self._shared.remove(stored)
            self._shared_version += 1
        self._pools[resource_slice.pool_id].remove(stored)
        self._revision += 1

    def view(self, node: Node, partitionable: bool = True) -> NodeView:
        """What the node sees.

        ``partitionable`` is the feature PartitionableDevices: off, slices with counters
        or per-device node selection do not apply to any node.

        Raises ``NodeSelectorError`` if a node selector of any slice without node name,
        or of a device in one, is invalid. Cost: the slices of the node and those
        without a node name; constant if nothing of that changed since the last call.
        """
        key = (node.metadata.name, partitionable)
        kept = self._views.get(key)
        if kept is not None and kept.labels == node.metadata.labels:
            if kept.revision == self._revision:
                return kept.view
            if kept.is_current(self._shared_version):
                kept.revision = self._revision
                return kept.view
        view, stamp = self._build(node, partitionable)
        if len(self._views) >= MAX_VIEWS:
            del self._views[next(iter(self._views))]
        labels = node.metadata.labels
        self._views[key] = _KeptView(view, labels, self._revision, self._shared_version, stamp)
        return view

    def _build(self, node: Node, partitionable: bool) -> tuple[NodeView, _Stamp]:
        local = self._by_node.get(node.metadata.name)
        if local is None:
            local = self._by_node[node.metadata.name] = _Local()
        relevant = self._relevant(node, local.slices, partitionable)
        stamp: list[_Local | PoolBucket | int] = [local, local.version]
        pools: list[ResolvedPool] = []
        problems: list[PoolProblem] = []
        for pool_id in sorted(relevant):
            bucket = self._pools[pool_id]
            stamp += (bucket, bucket.version)
            resolved = resolve_pool(bucket, relevant[pool_id], partitionable)
            if isinstance(resolved, ResolvedPool):
                pools.append(resolved)
            elif resolved is not None:
                problems.append(resolved)
        if len(pools) > 1:
            pools.sort(key=_has_binding_conditions)
        return NodeView(node, pools, tuple(problems)), tuple(stamp)

    def _relevant(
        self, node: Node, local: list[StoredSlice], partitionable: bool
    ) -> dict[PoolId, list[StoredSlice]]:
        relevant: dict[PoolId, list[StoredSlice]] = {}
        self.visited += len(local) + len(self._shared)
        for stored in local:
            if partitionable or not _is_partitioned(stored.slice):
                relevant.setdefault(stored.slice.pool_id, []).append(stored)
        for stored in self._shared:
            if not partitionable and _is_partitioned(stored.slice):
                continue
            if stored.error is not None:
                error = stored.error
                raise type(error)(
                    error.claim, error.request, error.slice_name, error.device, error.problem
                )
            if stored.is_for(node):
                relevant.setdefault(stored.slice.pool_id, []).append(stored)
        return relevant


def _is_partitioned(resource_slice: ResourceSlice) -> bool:
    return resource_slice.per_device_node_selection or bool(resource_slice.shared_counters)


def _has_binding_conditions(pool: ResolvedPool) -> bool:
    return any(stored.look().binding for stored in pool.local)
