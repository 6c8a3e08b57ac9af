"""What is in use: the devices, shares and capacity that claims hold, as a frozen value.

What may live here: ``AllocatedState``, which the allocator takes, and the rules for
what a claim's allocation holds. Keeping it up to date while claims come and go is the
work of ``dra_core.scheduling.in_flight``.

The rules (one function, ``holdings``):

* a result with admin access holds nothing;
* with ConsumableCapacity on, a result with a share ID holds a share of the device,
  also without consumed capacity; any other result holds the whole device;
* the same share of the same device counts once, and so does its capacity, however
  many claims name it.

A state is two levels of persistent maps, pool → device → ``DeviceUse``. A changed copy
shares everything that did not change: with 40,000 devices in 5,000 pools it costs some
5 µs per pool that changed, and ``pool()`` returns the identical object for every other
pool, so that whatever is derived from it can be kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Final, NamedTuple, TypeVar

import attrs

from dra_core.api.names import DeviceId, PoolId, SharedDeviceId
from dra_core.api.objects import AllocationResult, DeviceCounterConsumption, ResourceClaim
from dra_core.inventory.buckets import BucketMap
from dra_core.values.quantity import Quantity

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Capacity = Mapping[str, Quantity]
"""Amounts by capacity name."""

NO_CAPACITY: Final[Capacity] = {}


class Holding(NamedTuple):
    """One device that an allocation holds: whole (``share_id`` "") or one share of it."""

    pool: PoolId
    device: str
    share_id: str
    consumed: Capacity


def holdings(
    allocation: AllocationResult | None, consumable_capacity: bool = True
) -> tuple[Holding, ...]:
    """What an allocation holds, in the order of its results; None holds nothing.

    ``consumable_capacity`` says whether the feature of that name is on: off, shares
    count as whole devices. Cost: O(results), about 1 µs each.
    """
    if allocation is None:
        return ()
    held = []
    for result in allocation.results:
        if result.admin_access:
            continue
        share_id = result.share_id if consumable_capacity else ""
        consumed = (result.consumed_capacity or NO_CAPACITY) if share_id else NO_CAPACITY
        held.append(Holding(PoolId(result.driver, result.pool), result.device, share_id, consumed))
    return tuple(held)


@attrs.frozen
class DeviceUse:
    """How one device is in use.

    ``exclusive``: somebody has all of it. ``shares``: the share IDs that are taken.
    ``consumed_capacity``: the sum over the shares. ``counters``: what the device takes
    from the counter sets of its pool, given only for devices that no slice lists.
    """

    exclusive: bool = False
    shares: frozenset[str] = frozenset()
    consumed_capacity: Capacity = NO_CAPACITY
    counters: tuple[DeviceCounterConsumption, ...] = ()


WHOLE_DEVICE: Final = DeviceUse(exclusive=True)
"""The most frequent use; one object for all of them."""


def device_use(exclusive: bool, shares: Mapping[str, Capacity]) -> DeviceUse | None:
    """The use of a device by what is taken of it; None if that is nothing.

    ``shares``: consumed capacity by share ID. Cost: O(shares × capacities).
    """
    if shares:
        return DeviceUse(exclusive, frozenset(shares), total(shares.values()))
    return WHOLE_DEVICE if exclusive else None


def total(amounts: Iterable[Capacity]) -> Capacity:
    """The sums by name; exact, and the same for any order of the summands."""
    summed: dict[str, Quantity] = {}
    for capacity in amounts:
        for name, amount in capacity.items():
            known = summed.get(name)
            if known is None:
                summed[name] = amount
            else:
                # The family only says how to print the sum: the lowest name, which
                # is BinarySI, whatever came first.
                family = min(known.format, amount.format)
                summed[name] = Quantity(known.nano + amount.nano, family)
    return dict(sorted(summed.items()))


def larger(one: Capacity, other: Capacity) -> Capacity:
    """The larger amount of each name: what counts if one share is stated twice."""
    if one == other or not other:
        return one
    merged = dict(one)
    for name, amount in other.items():
        if name not in merged or merged[name] < amount:
            merged[name] = amount
    return merged


@attrs.frozen
class PoolAllocation:
    """What is in use of one pool. Equal by value, hashable; build it with ``AllocatedState``.

    Attributes are computed when first read: O(devices in use in the pool) once each.
    """

    _uses: BucketMap[str, DeviceUse] = attrs.field(factory=BucketMap)

    def use(self, device: str) -> DeviceUse | None:
        """How the device is in use, None if it is not. O(1)."""
        return self._uses.find(device)

    @property
    def uses(self) -> Mapping[str, DeviceUse]:
        """Every device in use, by name, sorted."""
        return self._uses

    @cached_property
    def devices(self) -> frozenset[str]:
        """Names of the devices that are allocated exclusively."""
        return frozenset(name for name, use in self._uses.unordered() if use.exclusive)

    @cached_property
    def shares(self) -> Mapping[str, frozenset[str]]:
        """Share IDs that are taken, by name of the device."""
        return self._select(lambda use: use.shares)

    @cached_property
    def consumed_capacity(self) -> Mapping[str, Capacity]:
        """Consumed capacity, the sum over the shares, by name of the device."""
        return self._select(lambda use: use.consumed_capacity)

    @cached_property
    def gone_consumption(self) -> Mapping[str, tuple[DeviceCounterConsumption, ...]]:
        """Counters of devices in use that no slice lists, where the caller knew them."""
        return self._select(lambda use: use.counters)

    def _select(self, part: Callable[[DeviceUse], T]) -> Mapping[str, T]:
        """One part of the uses by device, sorted; devices without it are left out."""
        found = {name: part(use) for name, use in self._uses.unordered()}
        return {name: found[name] for name in sorted(found) if found[name]}

    def __bool__(self) -> bool:
        return len(self._uses) > 0

    def _updated(self, changes: Mapping[str, DeviceUse | None]) -> "PoolAllocation":
        """A changed copy; this object itself if nothing would differ."""
        real = {name: use for name, use in changes.items() if self._uses.find(name) != use}
        return PoolAllocation(self._uses.updated(real)) if real else self


NOTHING_IN_USE: Final = PoolAllocation()
"""The view of every pool of which nothing is in use."""

_Pools = BucketMap[PoolId, PoolAllocation]


class _View(AbstractSet[T_co]):
    """What the set views of a state share. Unions and the like give plain sets."""

    __slots__ = ("_pools",)

    def __init__(self, pools: _Pools) -> None:
        self._pools = pools

    @classmethod
    def _from_iterable(cls, it: Iterable[T]) -> AbstractSet[T]:
        return frozenset(it)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(str, self))}}}"


class _Devices(_View[DeviceId]):
    """The devices of a state that are allocated exclusively."""

    __slots__ = ()

    def __contains__(self, item: object) -> bool:
        if not (isinstance(item, tuple) and len(item) == 3):
            return False
        use = _find(self._pools, *item)
        return use is not None and use.exclusive

    def __iter__(self) -> Iterator[DeviceId]:
        for (driver, pool), allocation in self._pools.items():
            for device in sorted(allocation.devices):
                yield DeviceId(driver, pool, device)

    def __len__(self) -> int:
        return sum(len(allocation.devices) for _, allocation in self._pools.unordered())


class _Shares(_View[SharedDeviceId]):
    """The shares of a state."""

    __slots__ = ()

    def __contains__(self, item: object) -> bool:
        if not (isinstance(item, tuple) and len(item) == 4):
            return False
        use = _find(self._pools, *item[:3])
        return use is not None and item[3] in use.shares

    def __iter__(self) -> Iterator[SharedDeviceId]:
        for (driver, pool), allocation in self._pools.items():
            for device, share_ids in allocation.shares.items():
                for share_id in sorted(share_ids):
                    yield SharedDeviceId(driver, pool, device, share_id)

    def __len__(self) -> int:
        return sum(
            len(share_ids)
            for _, allocation in self._pools.unordered()
            for share_ids in allocation.shares.values()
        )


class _ConsumedCapacity(Mapping[DeviceId, Capacity]):
    """The consumed capacity of a state, for devices of which some is consumed."""

    __slots__ = ("_pools",)

    def __init__(self, pools: _Pools) -> None:
        self._pools = pools

    def __getitem__(self, key: DeviceId) -> Capacity:
        use = _find(self._pools, *key)
        if use is None or not use.consumed_capacity:
            raise KeyError(key)
        return use.consumed_capacity

    def __iter__(self) -> Iterator[DeviceId]:
        for (driver, pool), allocation in self._pools.items():
            for device in allocation.consumed_capacity:
                yield DeviceId(driver, pool, device)

    def __len__(self) -> int:
        return sum(len(allocation.consumed_capacity) for _, allocation in self._pools.unordered())

    def __repr__(self) -> str:
        return repr({device: dict(amounts) for device, amounts in self.items()})


def _find(pools: _Pools, driver: str, pool: str, device: str) -> DeviceUse | None:
    allocation = pools.find(PoolId(driver, pool))
    return allocation.use(device) if allocation is not None else None


@attrs.frozen(repr=False)
class AllocatedState:
    """What is in use in the whole cluster: a frozen value, equal by content.

    Built by ``from_claims``, ``from_parts``, or by the claim tracker, whose states share
    everything that did not change. Iteration over its parts is sorted.
    """

    _pools: _Pools = attrs.field(factory=BucketMap)

    __hash__ = None  # type: ignore[assignment]  # hash the views of single pools instead

    @classmethod
    def from_claims(
        cls, claims: Iterable[ResourceClaim], consumable_capacity: bool = True
    ) -> "AllocatedState":
        """What the given claims hold; claims without allocation hold nothing.

        ``consumable_capacity``: whether that feature is on. Cost: O(results of all
        claims), 40,000 of them about 0.2 s.
        """
        whole: dict[DeviceId, None] = {}
        shares: dict[DeviceId, dict[str, Capacity]] = {}
        for claim in claims:
            for (driver, pool), device, share_id, consumed in holdings(
                claim.allocation, consumable_capacity
            ):
                device_id = DeviceId(driver, pool, device)
                if not share_id:
                    whole[device_id] = None
                    continue
                known = shares.setdefault(device_id, {})
                known[share_id] = larger(known.get(share_id, NO_CAPACITY), consumed)
        changes: dict[PoolId, dict[str, DeviceUse | None]] = {}
        for device_id in whole | dict.fromkeys(shares):
            use = device_use(device_id in whole, shares.get(device_id, {}))
            changes.setdefault(PoolId(*device_id[:2]), {})[device_id.device] = use
        return cls().updated(changes)

    @classmethod
    def from_parts(
        cls,
        devices: Iterable[DeviceId] = (),
        shares: Iterable[SharedDeviceId] = (),
        consumed_capacity: Mapping[DeviceId, Capacity] | None = None,
        gone_consumption: Mapping[DeviceId, tuple[DeviceCounterConsumption, ...]] | None = None,
    ) -> "AllocatedState":
        """A state from its parts: devices in exclusive use, shares, and consumed capacity
        per device (the sum over its shares). ``gone_consumption`` as in
        ``with_gone_consumption``. Cost: linear.
        """
        amounts = consumed_capacity or {}
        whole = dict.fromkeys(devices)
        share_ids: dict[DeviceId, list[str]] = {}
        for share in shares:
            share_ids.setdefault(share.device_id, []).append(share.share_id)
        changes: dict[PoolId, dict[str, DeviceUse | None]] = {}
        for device_id in whole | dict.fromkeys(share_ids) | dict.fromkeys(amounts):
            changes.setdefault(PoolId(*device_id[:2]), {})[device_id.device] = DeviceUse(
                device_id in whole,
                frozenset(share_ids.get(device_id, ())),
                amounts.get(device_id, NO_CAPACITY),
            )
        return cls().updated(changes).with_gone_consumption(gone_consumption or {})

    # --- reading ---------------------------------------------------------------------

    def pool(self, driver: str, pool: str) -> PoolAllocation:
        """What is in use of one pool: the identical object as long as that is unchanged.

        A pool of which nothing is in use gives ``NOTHING_IN_USE``. O(1), 0.3 µs.
        """
        return self._pools.find(PoolId(driver, pool)) or NOTHING_IN_USE

    @property
    def pools(self) -> Mapping[PoolId, PoolAllocation]:
        """The pools of which something is in use, sorted."""
        return self._pools

    @property
    def devices(self) -> AbstractSet[DeviceId]:
        """The devices allocated exclusively. ``in`` is O(1), iteration sorted."""
        return _Devices(self._pools)

    @property
    def shares(self) -> AbstractSet[SharedDeviceId]:
        """The shares that are taken. ``in`` is O(1), iteration sorted."""
        return _Shares(self._pools)

    @property
    def consumed_capacity(self) -> Mapping[DeviceId, Capacity]:
        """Consumed capacity per device, the sum over its shares. Lookup is O(1)."""
        return _ConsumedCapacity(self._pools)

    def __bool__(self) -> bool:
        return len(self._pools) > 0

    def __repr__(self) -> str:
        devices, shares = len(self.devices), len(self.shares)
        return f"<AllocatedState: {devices} devices, {shares} shares in {len(self._pools)} pools>"

    # --- changed copies --------------------------------------------------------------

    def updated(self, changes: Mapping[PoolId, Mapping[str, DeviceUse | None]]) -> "AllocatedState":
        """A copy in which some devices are in use differently (None: not any more).

        Pools that do not really change keep their objects; if none does, the result is
        this state. Cost: see the module; O(what changes), not O(what is in use).
        """
        real: dict[PoolId, PoolAllocation | None] = {}
        for pool_id, uses in changes.items():
            before = self._pools.find(pool_id) or NOTHING_IN_USE
            after = before._updated(uses)
            if after is not before:
                real[pool_id] = after or None
        return AllocatedState(self._pools.updated(real)) if real else self

    def with_unavailable(self, devices: Iterable[DeviceId]) -> "AllocatedState":
        """A copy in which some more devices count as exclusively in use.

        For devices that no claim holds any more but that their node has not released
        yet, which only the host can know (k/k#141471). Cost: O(devices given).
        """
        changes: dict[PoolId, dict[str, DeviceUse | None]] = {}
        for driver, pool, device in devices:
            use = self.pool(driver, pool).use(device)
            changes.setdefault(PoolId(driver, pool), {})[device] = (
                WHOLE_DEVICE if use is None else attrs.evolve(use, exclusive=True)
            )
        return self.updated(changes)

    def with_gone_consumption(
        self, counters: Mapping[DeviceId, tuple[DeviceCounterConsumption, ...]]
    ) -> "AllocatedState":
        """A copy that knows what devices in use take from their pools' counters.

        For devices that no slice lists any more: they still hold what they were
        allocated with (k/k#140802). For a device that a slice lists the slice's own
        consumption counts. Devices that are not in use are ignored, so the caller may
        give all it remembers. Cost: O(devices given).
        """
        changes: dict[PoolId, dict[str, DeviceUse | None]] = {}
        for (driver, pool, device), consumed in counters.items():
            use = self.pool(driver, pool).use(device)
            if use is not None:
                changes.setdefault(PoolId(driver, pool), {})[device] = attrs.evolve(
                    use, counters=tuple(consumed)
                )
        return self.updated(changes)


NOTHING_ALLOCATED: Final = AllocatedState()
"""The state in which nothing is in use."""
