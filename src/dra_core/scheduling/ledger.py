"""How often each device is held, and by what: counts that follow single changes.

What may live here: ``DeviceLedger``. It knows holdings, not claims, and no threads; the
claim tracker calls it under its lock.

``AllocatedState`` says whether a device is in use; to know whether it still is when one
of several holders lets go, somebody has to count. One event costs O(its holdings), and
the next state O(devices that changed since the last one, and the shares of these), not
O(what is in use).
"""

from collections.abc import Iterable
from functools import reduce

from dra_core.api.names import DeviceId, PoolId, SharedDeviceId
from dra_core.inventory.allocated import (
    NOTHING_ALLOCATED,
    WHOLE_DEVICE,
    AllocatedState,
    Capacity,
    DeviceUse,
    Holding,
    device_use,
    larger,
)

_Key = tuple[PoolId, str]


class DeviceLedger:
    """Counts holdings of devices and turns them into ``AllocatedState`` values."""

    def __init__(self) -> None:
        # How often each device is held as a whole, and by share what each holder of it
        # consumes. Two flat dicts: an object per device doubles the time for 40,000.
        self._whole: dict[_Key, int] = {}
        self._shares: dict[_Key, dict[str, list[Capacity]]] = {}
        # Devices whose use may differ from that in _state.
        self._changed: dict[PoolId, dict[str, None]] = {}
        self._state = NOTHING_ALLOCATED

    def add(self, held: Iterable[Holding]) -> None:
        """Count some holdings. O(holdings)."""
        for pool, device, share_id, consumed in held:
            key = (pool, device)
            if share_id:
                shares = self._shares.setdefault(key, {})
                shares.setdefault(share_id, []).append(consumed)
            else:
                self._whole[key] = self._whole.get(key, 0) + 1
            self._changed.setdefault(pool, {})[device] = None

    def remove(self, held: Iterable[Holding]) -> None:
        """Take back holdings that were added. O(holdings)."""
        for pool, device, share_id, consumed in held:
            key = (pool, device)
            if share_id:
                self._remove_share(key, share_id, consumed)
            elif self._whole[key] == 1:
                del self._whole[key]
            else:
                self._whole[key] -= 1
            self._changed.setdefault(pool, {})[device] = None

    def _remove_share(self, key: _Key, share_id: str, consumed: Capacity) -> None:
        shares = self._shares[key]
        holders = shares[share_id]
        holders.remove(consumed)
        if not holders:
            del shares[share_id]
        if not shares:
            del self._shares[key]

    def taken(self, held: Iterable[Holding]) -> list[DeviceId | SharedDeviceId]:
        """Which holdings cannot be added, because somebody has the device or the share.

        Says nothing about capacity: that needs the slices.
        """
        found: list[DeviceId | SharedDeviceId] = []
        for pool, device, share_id, _ in held:
            key = (pool, device)
            shares = self._shares.get(key, {})
            if not share_id and (key in self._whole or shares):
                found.append(DeviceId(*pool, device))
            elif share_id and (key in self._whole or share_id in shares):
                found.append(SharedDeviceId(*pool, device, share_id))
        return found

    def state(self) -> AllocatedState:
        """What is in use now, as a frozen value; the same object if nothing changed."""
        if self._changed:
            self._state = self._state.updated(
                {
                    pool: {device: self._use(pool, device) for device in devices}
                    for pool, devices in self._changed.items()
                }
            )
            self._changed = {}
        return self._state

    def _use(self, pool: PoolId, device: str) -> DeviceUse | None:
        key = (pool, device)
        shares = self._shares.get(key)
        if shares is None:
            return WHOLE_DEVICE if key in self._whole else None
        merged = {share_id: reduce(larger, holders) for share_id, holders in shares.items()}
        return device_use(key in self._whole, merged)
