"""Can a changed ResourceSlice help a pod for which there were not enough devices?

What may live here: comparing two states of a slice, and of its pool. Whose pod it is, and
what it waits for, is the business of ``wakeups_rules``.

The less is compared the safer: whatever is not understood may help. Two changes cannot,
as long as no request asks for all devices (which a device that is in use, or tainted, can
stand in the way of): taints that were added, and devices that were removed from a pool
that was and stays complete and valid. Removing a device may make an invalid pool valid;
and removing one that consumes counters gives them back if it is in use.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import attrs

from dra_core.api.core import ObjectMeta
from dra_core.api.names import PoolId
from dra_core.api.objects import Device, DeviceTaint, ResourceSlice
from dra_core.inventory.pools import PoolBucket, ResolvedPool, resolve_pool
from dra_core.inventory.slices import StoredSlice


@attrs.frozen
class SliceDifference:
    """What is different in a slice.

    ``grows``: something that may help by itself, whatever else is different. ``removed``:
    devices that are gone. ``tainted``: names of devices with more taints than before.
    """

    grows: bool = False
    removed: tuple[Device, ...] = ()
    tainted: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether all that the scheduler reads is the same."""
        return self == _SAME


_SAME = SliceDifference()
_GROWS = SliceDifference(grows=True)


def slice_difference(old: ResourceSlice, new: ResourceSlice) -> SliceDifference:
    """What is different between two states of a slice. Cost: linear in the devices."""
    if _without_devices(old) != _without_devices(new):
        return _GROWS
    removed: list[Device] = []
    tainted: list[str] = []
    left = iter(old.devices)
    for device in new.devices:
        for before in left:
            if before.name == device.name:
                break
            removed.append(before)
        else:
            return _GROWS  # it is new, or has another place
        if before != device:
            if attrs.evolve(before, taints=device.taints) != device:
                return _GROWS
            if not _includes(device.taints, before.taints):
                return _GROWS
            tainted.append(device.name)
    return SliceDifference(False, (*removed, *left), tuple(tainted))


def _without_devices(slice_: ResourceSlice) -> ResourceSlice:
    return attrs.evolve(slice_, metadata=_NO_METADATA, devices=(), raw=None)


_NO_METADATA = ObjectMeta()


def _includes(taints: Sequence[DeviceTaint], others: Sequence[DeviceTaint]) -> bool:
    return all(taint in taints for taint in others)


@attrs.frozen
class SliceChange:
    """A change of one slice; what does not depend on the pod is worked out once, when asked.

    ``pool`` finds the slices of a pool as known now, of all generations; nothing known
    counts as an incomplete pool.
    """

    old: ResourceSlice | None
    new: ResourceSlice | None
    pool: Callable[[PoolId], Iterable[ResourceSlice]]

    @cached_property
    def difference(self) -> SliceDifference:
        """What is different. A whole slice that comes or goes may always help."""
        if self.old is None or self.new is None:
            return _GROWS
        return slice_difference(self.old, self.new)

    @cached_property
    def can_help(self) -> bool:
        """Whether it may help a pod of which no request asks for all devices."""
        old, new, difference = self.old, self.new, self.difference
        if difference.grows or old is None or new is None:
            return True
        if not difference.removed:
            return False
        if any(device.consumes_counters for device in difference.removed):
            return True
        others = [slice_ for slice_ in self.pool(new.pool_id) if slice_.name != new.name]
        return not (_is_sound([*others, old], old) and _is_sound([*others, new], new))


def _is_sound(slices: Sequence[ResourceSlice], one: ResourceSlice) -> bool:
    """Whether the newest generation is complete and valid, and is the one of that slice."""
    bucket = PoolBucket(PoolId(one.driver, one.pool))
    stored = [StoredSlice(slice_, order) for order, slice_ in enumerate(slices)]
    for entry in stored:
        bucket.add(entry)
    pool = resolve_pool(bucket, stored, counters=True)
    return isinstance(pool, ResolvedPool) and max(bucket.generations) == one.generation
