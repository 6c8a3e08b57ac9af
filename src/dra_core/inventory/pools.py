"""From slices to pools, as one node sees them.

A pool is published piece by piece, so at any moment its slices may be of several
generations, or some may be missing. The rules here decide which pools a node can
use, which are incomplete or invalid and therefore give no device, and which are
obsolete and do not exist for the node at all.

Cost for one node: its own slices plus those without a node name, never the cluster.
"""

from collections import Counter
from collections.abc import Iterable
from operator import attrgetter

from sortedcontainers import SortedKeyList

from dra_core.api.names import PoolId
from dra_core.inventory.problems import PoolFault, PoolProblem, PoolState
from dra_core.inventory.slices import StoredSlice

slice_order = attrgetter("key")


class Generation:
    """All slices of one generation of a pool, anywhere in the cluster, by name."""

    __slots__ = ("counts", "slices")

    def __init__(self) -> None:
        self.slices: SortedKeyList[StoredSlice, tuple[str, int]] = SortedKeyList(key=slice_order)
        self.counts: Counter[int] = Counter()

    def add(self, stored: StoredSlice) -> None:
        """Count one more slice; none of this name is there. Cost: log(slices)."""
        self.slices.add(stored)
        self.counts[stored.slice.resource_slice_count] += 1

    def remove(self, stored: StoredSlice) -> None:
        """Forget a slice that is there. Cost: log(slices)."""
        self.slices.remove(stored)
        count = stored.slice.resource_slice_count
        self.counts[count] -= 1
        if not self.counts[count]:
            del self.counts[count]


class PoolBucket:
    """All slices of one pool. ``version`` changes with every change of a slice."""

    __slots__ = ("generations", "pool_id", "version")

    def __init__(self, pool_id: PoolId) -> None:
        self.pool_id = pool_id
        self.generations: dict[int, Generation] = {}
        self.version = 0

    def add(self, stored: StoredSlice) -> None:
        """Add a slice of this pool."""
        number = stored.slice.generation
        generation = self.generations.get(number)
        if generation is None:
            generation = self.generations[number] = Generation()
        generation.add(stored)
        self.version += 1

    def remove(self, stored: StoredSlice) -> None:
        """Remove a slice that was added."""
        number = stored.slice.generation
        self.generations[number].remove(stored)
        if not self.generations[number].slices:
            del self.generations[number]
        self.version += 1


class ResolvedPool:
    """A pool that a node can use.

    ``local`` are its slices for the node, ``members`` all slices it consists of (for
    counters); both by name.
    """

    __slots__ = ("local", "members", "pool_id")

    def __init__(
        self, pool_id: PoolId, local: list[StoredSlice], members: list[StoredSlice]
    ) -> None:
        self.pool_id = pool_id
        self.local = local
        self.members = members


def resolve_pool(
    bucket: PoolBucket, relevant: Iterable[StoredSlice], counters: bool
) -> ResolvedPool | PoolProblem | None:
    """Decide what a pool is for a node to which the ``relevant`` slices apply.

    Returns the pool, what is wrong with it, or ``None`` if it is obsolete.
    ``counters`` says whether counter sets are checked (PartitionableDevices on).
    Source: resource.k8s.io/v1, ResourcePool; KEP-4381, KEP-4815.
    """
    slices = list(relevant)
    newest = max(stored.slice.generation for stored in slices)
    local = sorted((s for s in slices if s.slice.generation == newest), key=slice_order)
    generation = bucket.generations[newest]
    superseded = len(bucket.generations) > 1 and max(bucket.generations) > newest
    if len(generation.counts) > 1:
        if superseded:
            return None
        return _problem(bucket.pool_id, newest, PoolFault.SLICE_COUNTS_DIFFER)
    expected = local[0].slice.resource_slice_count
    members = local
    if len(local) != expected:
        if superseded:
            return None
        if len(generation.slices) != expected:
            return PoolProblem(
                *bucket.pool_id,
                PoolState.INCOMPLETE,
                PoolFault.MISSING_SLICES,
                newest,
                len(generation.slices),
                expected,
            )
        members = list(generation.slices)
    problem = _duplicate_device(bucket.pool_id, newest, local)
    if problem is None and counters:
        problem = _counter_problem(bucket.pool_id, newest, members)
    return problem or ResolvedPool(bucket.pool_id, local, members)


def _problem(pool_id: PoolId, generation: int, fault: PoolFault, subject: str = "") -> PoolProblem:
    return PoolProblem(*pool_id, PoolState.INVALID, fault, generation, subject=subject)


def _duplicate_device(
    pool_id: PoolId, generation: int, local: list[StoredSlice]
) -> PoolProblem | None:
    names = [device.name for stored in local for device in stored.slice.devices]
    if len(set(names)) == len(names):
        return None
    duplicate = next(name for name, seen in Counter(names).items() if seen > 1)
    return _problem(pool_id, generation, PoolFault.DUPLICATE_DEVICE, duplicate)


def _counter_problem(
    pool_id: PoolId, generation: int, members: list[StoredSlice]
) -> PoolProblem | None:
    consuming = [stored for stored in members if stored.look().consuming]
    if not consuming and not any(stored.slice.shared_counters for stored in members):
        return None
    defined: dict[str, frozenset[str]] = {}
    for stored in members:
        for counter_set in stored.slice.shared_counters:
            if counter_set.name in defined:
                fault = PoolFault.DUPLICATE_COUNTER_SET
                return _problem(pool_id, generation, fault, counter_set.name)
            defined[counter_set.name] = frozenset(counter_set.counters)
    for stored in consuming:
        for device in stored.slice.devices:
            for consumption in device.consumes_counters:
                known = defined.get(consumption.counter_set)
                if known is None:
                    fault, subject = PoolFault.UNDEFINED_COUNTER_SET, consumption.counter_set
                    return _problem(pool_id, generation, fault, subject)
                missing = [name for name in consumption.counters if name not in known]
                if missing:
                    subject = f"{consumption.counter_set}/{missing[0]}"
                    return _problem(pool_id, generation, PoolFault.UNDEFINED_COUNTER, subject)
    return None
