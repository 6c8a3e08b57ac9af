"""The slow, obvious twin of cache and tracker: the rules in a few lines, nothing incremental.

What may live here: ``Model``. It is written from the rules, not from the code: copies
by key, entries by UID, and everything that is asked is computed from these each time.
"""

from collections.abc import Hashable, Iterable

import attrs

from dra_core.api.names import DeviceId, ObjectKey, SharedDeviceId
from dra_core.api.objects import (
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dra_core.values.quantity import Quantity

Change = tuple[ResourceClaim | None, ResourceClaim | None]


def number(claim: ResourceClaim) -> int | None:
    """The version as an int."""
    text = claim.metadata.resource_version
    return int(text) if text.isdecimal() and text.isascii() else None


def newer(claim: ResourceClaim, than: ResourceClaim | None) -> bool:
    """Whether the claim's version is above the other's, or there is no other."""
    mine, other = number(claim), None if than is None else number(than)
    assert mine is not None
    return other is None or mine > other


def _same(one: ResourceClaim, other: ResourceClaim) -> bool:
    return one.metadata.uid == other.metadata.uid


def held(result: DeviceRequestAllocationResult) -> DeviceId | SharedDeviceId:
    """What a result holds."""
    device = result.device_id
    if not result.share_id:
        return device
    return SharedDeviceId(device.driver, device.pool, device.device, result.share_id)


def _all_held(claim: ResourceClaim) -> set[DeviceId | SharedDeviceId]:
    """What an allocated claim holds."""
    results = claim.allocation.results if claim.allocation is not None else ()
    return {held(result) for result in results if not result.admin_access}


@attrs.define
class Entry:
    """What is in flight for one UID."""

    claim: ResourceClaim
    users: set[str]
    session: Hashable
    awaited: ResourceClaim | None = None
    gone: bool = False
    unclear: set[str] = attrs.Factory(set)


class Model:
    """What cache and tracker should show."""

    def __init__(self) -> None:
        self.observed: dict[ObjectKey, ResourceClaim] = {}
        self.latest: dict[ObjectKey, ResourceClaim] = {}
        self.entries: dict[str, Entry] = {}
        self.changes: list[Change | str] = []
        self.complete = 0

    # --- the cache

    def observe(self, claim: ResourceClaim) -> None:
        """Event add or update."""
        key = claim.metadata.key
        if number(claim) is None:
            return
        known = self.latest.get(key)
        if known is not None and known.metadata.uid != claim.metadata.uid:
            self._set(key, None)
            self.observed.pop(key, None)
        if newer(claim, self.observed.get(key)):
            self.observed[key] = claim
        if newer(claim, self.latest.get(key)):
            self._set(key, claim)

    def observe_delete(self, claim: ResourceClaim) -> None:
        """Event delete."""
        key = claim.metadata.key
        if key in self.latest and self.latest[key].metadata.uid == claim.metadata.uid:
            self.observed.pop(key, None)
            self._set(key, None)

    def observe_all(self, claims: list[ResourceClaim], version: int) -> None:
        """A full list."""
        for claim in claims:
            self.observe(claim)
        listed = {claim.metadata.key for claim in claims}
        for key in list(self.latest):
            seen = self.observed.get(key)
            if key not in listed and seen is not None and (number(seen) or 0) <= version:
                self.observe_delete(seen)
        self.complete = max(self.complete, version)
        for uid, entry in list(self.entries.items()):
            awaited = entry.awaited
            if awaited and not self._ahead(awaited):
                self._end(uid)

    def assume(self, claim: ResourceClaim) -> str:
        """ "" or why it is refused."""
        key, known = claim.metadata.key, self.latest.get(claim.metadata.key)
        if known is None:
            return "ObjectNotFoundError"
        if known.metadata.uid != claim.metadata.uid:
            return "ObjectReplacedError"
        if number(claim) is None:
            return "UnreadableVersionError"
        if newer(known, claim):
            return "VersionTooOldError"
        if claim != known:
            self._set(key, claim)
        return ""

    def restore(self, key: ObjectKey) -> None:
        """The observed copy is the latest again."""
        observed = self.observed.get(key)
        if key in self.latest and self.latest[key] != observed:
            self._set(key, observed)

    def add_hypothetical(self, claim: ResourceClaim) -> None:
        """Something nobody has observed."""
        self._set(claim.metadata.key, claim)

    def _set(self, key: ObjectKey, new: ResourceClaim | None) -> None:
        old = self.latest.get(key)
        if new is not None:
            self.latest[key] = new
        else:
            self.latest.pop(key, None)
        for changed in (old if new is None else None, new if old is None else None):
            if changed is not None and changed.metadata.uid in self.entries:
                self.entries[changed.metadata.uid].gone = changed is old
                self._settle(changed.metadata.uid)
        for uid, entry in list(self.entries.items()):
            awaited = entry.awaited
            if awaited is None or awaited.metadata.key != key:
                continue
            deleted = new is None and old is not None and _same(old, awaited)
            if deleted or (new is not None and not newer(awaited, new)):
                self._end(uid)
        self.changes.append((old, new))

    # --- the tracker

    def overridden(self, claim: ResourceClaim) -> ResourceClaim:
        """A cached claim as it is read: in flight overrides unallocated."""
        entry = self.entries.get(claim.metadata.uid)
        if entry is None or claim.allocation is not None:
            return claim
        return attrs.evolve(entry.claim, metadata=claim.metadata)

    def claims(self) -> tuple[ResourceClaim, ...]:
        """All claims of the cache as they are read, then those only in flight."""
        cached = {claim.metadata.uid for claim in self.latest.values()}
        only = (entry.claim for uid, entry in self.entries.items() if uid not in cached)
        return (*map(self.overridden, self.latest.values()), *only)

    def in_use(self) -> set[DeviceId | SharedDeviceId]:
        """Devices and shares that somebody holds, in the cache or in flight."""
        return {held(result) for result in self._results()}

    def consumed(self) -> dict[DeviceId, int]:
        """The consumed capacity "mem" by device, in billionths; every share once."""
        shares: dict[DeviceId | SharedDeviceId, int] = {}
        for result in self._results():
            if result.share_id and result.consumed_capacity:
                share = held(result)
                amount = result.consumed_capacity.get("mem", Quantity(0)).nano
                shares[share] = max(shares.get(share, 0), amount)
        total: dict[DeviceId, int] = {}
        for share, amount in shares.items():
            device = DeviceId(*share[:3])
            total[device] = total.get(device, 0) + amount
        return total

    def _results(self) -> list[DeviceRequestAllocationResult]:
        allocations: Iterable[AllocationResult | None] = [
            *(claim.allocation for claim in self.latest.values()),
            *(entry.claim.allocation for entry in self.entries.values()),
        ]
        return [r for a in allocations if a is not None for r in a.results if not r.admin_access]

    def start(self, claim: ResourceClaim, pod: str, session: Hashable) -> str:
        """ "" or why it is refused."""
        uid, cached = claim.metadata.uid, self.latest.get(claim.metadata.key)
        if cached is not None and cached.metadata.uid == uid and cached.allocation is not None:
            return "ClaimAllocatedError"
        entry = self.entries.get(uid)
        if entry is not None:
            if session is None or session != entry.session:
                return "ClaimInFlightError"
            entry.users.add(pod)
            entry.unclear.discard(pod)
            return ""
        if self._conflicts(claim):
            return "DevicesTakenError"
        self.entries[uid] = Entry(claim, {pod}, session)
        return ""

    def _conflicts(self, claim: ResourceClaim) -> bool:
        used = self.in_use()
        devices = {DeviceId(*what[:3]) for what in used}
        assert claim.allocation is not None
        for result in claim.allocation.results:
            if result.admin_access:
                continue
            if result.share_id:
                if held(result) in used or result.device_id in used:
                    return True
            elif result.device_id in devices:
                return True
        return False

    def release(self, uid: str, pod: str) -> None:
        """A pod lets go."""
        entry = self.entries.get(uid)
        if entry is None or pod not in entry.users:
            return
        entry.users.discard(pod)
        entry.unclear.discard(pod)
        if not entry.users and entry.awaited is None:
            self.remove(uid)

    def leave(self, uid: str, pod: str) -> None:
        """A pod's attempt is over, and what became of its write is not known."""
        entry = self.entries.get(uid)
        if entry is not None and pod in entry.users:
            entry.unclear.add(pod)
            self._settle(uid)

    def _settle(self, uid: str) -> None:
        """Nobody has to find out what was written to a claim that is gone."""
        entry = self.entries[uid]
        if entry.gone:
            for pod in sorted(entry.unclear):
                self.release(uid, pod)

    def resume(self, uid: str, pod: str) -> bool:
        """Its next attempt goes on."""
        entry = self.entries.get(uid)
        left = entry is not None and pod in entry.unclear
        if entry is not None:
            entry.unclear.discard(pod)
        return left

    def remove(self, uid: str) -> None:
        """The entry goes, the cached claim is restored unless it is allocated."""
        entry = self.entries.get(uid)
        if entry is None:
            return
        key = entry.claim.metadata.key
        cached = self.latest.get(key)
        if cached is not None and cached.metadata.uid == uid and cached.allocation is None:
            self.restore(key)
        self._end(uid)

    def abort(self, session: Hashable) -> None:
        """All unwritten entries of a session go."""
        for uid, entry in list(self.entries.items()):
            if entry.session != session or entry.awaited is not None:
                continue
            entry.users = set(entry.unclear)
            if not entry.users:
                self.remove(uid)

    def succeeded(self, uid: str, written: ResourceClaim) -> None:
        """The write was stored."""
        refused = self.assume(written)
        entry = self.entries.get(uid)
        if entry is None:
            return
        if refused in ("", "VersionTooOldError"):
            self._end(uid, written)
            return
        known = self.latest.get(written.metadata.key)
        passed = known is not None and not newer(written, known)
        if entry.gone or passed or not self._ahead(written):
            self._end(uid)
            return
        entry.awaited, entry.users, entry.unclear = written, set(), set()

    def _ahead(self, claim: ResourceClaim) -> bool:
        return (number(claim) or 0) > self.complete

    def _end(self, uid: str, written: ResourceClaim | None = None) -> None:
        entry = self.entries.pop(uid, None)
        if entry is None:
            return
        for form in (entry.claim, entry.awaited, written):
            cached = self.latest.get(form.metadata.key) if form else None
            stored = form and cached and _same(form, cached) and cached.allocation is not None
            if stored and cached and _all_held(entry.claim) <= _all_held(cached):
                return
        self.changes.append(f"freed {entry.claim.name}")
