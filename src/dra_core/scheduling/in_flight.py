"""Claims on their way to the API server: they override the cache.

What may live here: ``ClaimTracker``, which knows what is allocated at every moment: by
the claims of an ``AssumeCache``, and by allocations that were picked and are not stored
yet. It shares the cache's lock, so it is as safe to use from any thread, and its events
have their place in the cache's order.

The theory. Between picking devices for a claim and the API server's answer the claim is
*in flight*. Storing the coming allocation in the cache would not do: the next event
from the informer, for example because our own finalizer was added, would replace it by
a claim without allocation, and its devices would be given away twice. So what is in
flight is kept apart, and counted on top of the cache.

Each device is held for a reason: an allocation in the cache, or an entry in flight.
Reasons are counted, so it does not matter in which order they come and go, as long as
one begins before the other ends. Both kinds change under one lock: what the cache holds
is counted as part of the cache's own step (``AssumeCache.attach``), and a successful
write is one step in which the returned claim is assumed first and the entry removed
then. A reader therefore sees a device in use at every moment from the pick to the end
of the allocation, in whatever order events and answers arrive.

An entry ends in one of these ways:

* its write succeeded and the cache took the answer, or is newer already;
* its write succeeded, but the cache cannot take the answer yet: it *awaits* the cache,
  until that shows the object, or another of the same name, as new, or shows that it is
  gone;
* its last user released it, its session was aborted, or it was removed by force;
* its claim is gone, and no user is left but pods whose attempts are over.

Unless the allocation is stored by then, this is an event: its devices became free. So it
is if the claim is stored with other devices, which another scheduler has picked.
"""

from collections.abc import Callable, Hashable, Sequence

import attrs

from dra_core.api.core import NodeSelector
from dra_core.api.names import ObjectKey
from dra_core.api.objects import AllocationResult, ResourceClaim
from dra_core.inventory.allocated import AllocatedState, Holding, holdings
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.scheduling.delivery import Handlers
from dra_core.scheduling.doubts import Doubts
from dra_core.scheduling.errors import (
    ClaimAllocatedError,
    ClaimInFlightError,
    DevicesTakenError,
    NothingToTrackError,
    NoUidError,
    ObjectNotFoundError,
    ObjectReplacedError,
    PoolsChangedError,
    VersionTooOldError,
)
from dra_core.scheduling.ledger import DeviceLedger
from dra_core.scheduling.versions import ResourceVersion, read_version


@attrs.frozen
class InFlight:
    """An allocation on its way to the API server. Frozen: a change makes a new one.

    ``claim``: the claim with the allocation to come. ``users``: UIDs of the pods that
    wait for it, in the order in which they came. ``session``: what pods must have in
    common to share it, None if nobody may. ``awaited``: what the API server returned,
    while the cache cannot show it yet. ``gone``: the cache showed that the claim was
    deleted. ``made_up``: the UID under which it was started, if it was created since.
    ``unclear``: those of ``users`` whose attempt is over without knowing what became of its
    write, see ``ClaimTracker.leave``.
    """

    claim: ResourceClaim
    users: tuple[str, ...] = ()
    session: Hashable = None
    awaited: ResourceClaim | None = None
    gone: bool = False
    made_up: str = ""
    unclear: tuple[str, ...] = ()

    @property
    def uid(self) -> str:
        """The claim's UID."""
        return self.claim.metadata.uid

    @property
    def allocation(self) -> AllocationResult:
        """The allocation to come."""
        if self.claim.allocation is None:
            raise NothingToTrackError(str(self.claim.metadata.key))
        return self.claim.allocation

    @property
    def node_selector(self) -> NodeSelector | None:
        """Where a pod that shares the entry may run; None: everywhere."""
        return self.allocation.node_selector


@attrs.frozen
class DevicesFreed:
    """An entry ended and its allocation is not stored: devices became free.

    ``claim`` is the claim with the allocation that did not come.
    """

    claim: ResourceClaim


class ClaimTracker:
    """What is allocated: by the claims of a cache, and in flight on top of it.

    ``consumable_capacity``: whether that feature is on (with it off shares count as
    whole devices). Make one per cache; it counts what the cache holds at once.

    Costs, for r results of the claims concerned: an event of the cache adds O(r) to the
    cache's own cost, ``start``, ``release`` and ``succeeded`` take O(r), and a state after
    changes O(devices changed). Nothing depends on how much is allocated in total.
    """

    def __init__(self, cache: AssumeCache[ResourceClaim], consumable_capacity: bool = True) -> None:
        self._cache = cache
        self._consumable_capacity = consumable_capacity
        self._ledger = DeviceLedger()
        self._entries: dict[str, InFlight] = {}
        # UIDs of entries that await an object, by the object's key.
        self._awaiting: dict[ObjectKey, dict[str, None]] = {}
        # Made-up UIDs of claims that were created since, to their real UIDs.
        self._created: dict[str, str] = {}
        # The cache has shown everything up to here that there still is.
        self._complete = ResourceVersion(0, "")
        self._doubts = Doubts(cache.atomic())
        self._handlers: Handlers[DevicesFreed] = Handlers(
            cache.atomic(),
            lambda event, error: cache.handler_failed(event.claim.metadata.key, error),
        )
        cache.attach(self._changed, self._listed)

    # --- reading ---------------------------------------------------------------------

    @property
    def cache(self) -> AssumeCache[ResourceClaim]:
        """The claims as the cache shows them, without what is in flight."""
        return self._cache

    @property
    def doubts(self) -> Doubts:
        """Reservations that may be gone although the cache shows them."""
        return self._doubts

    def allocated(self) -> AllocatedState:
        """Everything that is in use now, as a frozen value.

        The same object as long as nothing changed; otherwise pools that did not change
        keep their views. Cost: O(devices whose use changed since the last call); after
        one event of a claim with four devices, among 40,000 in use, some 20 µs.
        """
        with self._cache.atomic():
            return self._ledger.state()

    def pending(self, uid: str) -> InFlight | None:
        """What is in flight for the claim of that UID, None if nothing is."""
        with self._cache.atomic():
            return self._find(uid)

    def in_flight(self) -> tuple[InFlight, ...]:
        """Everything in flight, in the order in which it was started."""
        with self._cache.atomic():
            return tuple(self._entries.values())

    def get(self, key: ObjectKey) -> ResourceClaim:
        """The cached claim; if it is not allocated, with the status that is in flight for it.

        Raises ObjectNotFoundError.
        """
        with self._cache.atomic():
            return self._overridden(self._cache.get(key))

    def claims(self) -> tuple[ResourceClaim, ...]:
        """All claims of the cache as ``get`` shows them, then those only in flight."""
        with self._cache.atomic():
            cached = self._cache.list()
            known = {claim.metadata.uid for claim in cached}
            only = (entry.claim for uid, entry in self._entries.items() if uid not in known)
            return (*map(self._overridden, cached), *only)

    def _overridden(self, cached: ResourceClaim) -> ResourceClaim:
        entry = self._entries.get(cached.metadata.uid)
        if entry is None or cached.allocation is not None:
            return cached
        return _with_status(cached, entry.claim)

    # --- the life of an entry --------------------------------------------------------

    def start(
        self,
        claims: Sequence[ResourceClaim],
        pod_uid: str,
        *,
        session: Hashable = None,
        basis: AllocatedState | None = None,
    ) -> tuple[InFlight, ...]:
        """Take allocations in flight for a pod: all of the claims or, on any error, none.

        ``claims``: with the allocations to come. Where one is in flight already, in the
        same ``session`` (not None), the pod becomes one more user of that entry, whose
        allocation stays as it is. ``basis``: the state that ``allocated`` returned and
        the devices were picked from; give it if other threads may have taken capacity or
        counters of the same pools meanwhile. Returns the entries, one per claim.

        Raises NothingToTrackError (no allocation given), NoUidError, ClaimAllocatedError
        (allocated in the cache: use that), ClaimInFlightError (somebody else's: wait),
        DevicesTakenError and PoolsChangedError (pick again).
        """
        with self._cache.atomic():
            before = self._ledger.state()
            entries: dict[str, InFlight] = {}
            added: list[Holding] = []
            try:
                for claim in claims:
                    entry = self._joined(claim, entries, pod_uid, session)
                    if entry is None:
                        held = self._holdings(claim)
                        self._refuse_taken(claim, held, before, basis)
                        self._ledger.add(held)
                        added += held
                        entry = InFlight(claim, (pod_uid,), session)
                    entries[claim.metadata.uid] = entry
            except BaseException:
                self._ledger.remove(added)
                raise
            self._entries |= entries
            return tuple(entries.values())

    def _joined(
        self,
        claim: ResourceClaim,
        entries: dict[str, InFlight],
        pod_uid: str,
        session: Hashable,
    ) -> InFlight | None:
        """The existing entry with one more user; None if a new one may be made."""
        key = claim.metadata.key
        if claim.allocation is None:
            raise NothingToTrackError(str(key))
        if not claim.metadata.uid:
            raise NoUidError(str(key))
        cached = self._same(key, claim.metadata.uid)
        if cached is not None and cached.allocation is not None:
            raise ClaimAllocatedError(str(key))
        if claim.metadata.uid in entries:
            raise ClaimInFlightError(str(key), (pod_uid,))
        entry = self._find(claim.metadata.uid)
        if entry is None:
            return None
        if session is None or entry.session != session:
            raise ClaimInFlightError(str(key), entry.users)
        users = dict.fromkeys((*entry.users, pod_uid))
        unclear = _without(entry.unclear, pod_uid)
        return attrs.evolve(entry, users=tuple(users), unclear=unclear)

    def _refuse_taken(
        self,
        claim: ResourceClaim,
        held: tuple[Holding, ...],
        now: AllocatedState,
        basis: AllocatedState | None,
    ) -> None:
        taken = self._ledger.taken(held)
        if taken:
            raise DevicesTakenError(str(claim.metadata.key), tuple(map("/".join, taken)))
        if basis is None:
            return
        pools = dict.fromkeys(holding.pool for holding in held)
        changed = tuple(str(pool) for pool in pools if basis.pool(*pool) != now.pool(*pool))
        if changed:
            raise PoolsChangedError(str(claim.metadata.key), changed)

    def release(self, uid: str, pod_uid: str) -> None:
        """A pod does not wait for the claim any more (unreserve, or its attempt failed).

        The last user's release removes the entry and restores the cached claim. Releasing
        twice, or what is unknown or written already, does nothing.
        """
        with self._cache.atomic():
            entry = self._find(uid)
            if entry is None or pod_uid not in entry.users:
                return
            users, unclear = _without(entry.users, pod_uid), _without(entry.unclear, pod_uid)
            if users or entry.awaited is not None:
                self._entries[entry.uid] = attrs.evolve(entry, users=users, unclear=unclear)
            else:
                self.remove(uid)

    def leave(self, uid: str, pod_uid: str) -> None:
        """A pod's attempt is over, and nobody knows whether the allocation was written.

        The entry stays, its devices may be in use: until the pod's next attempt has found
        out and calls ``succeeded`` or ``release``, or the cache shows that the claim is gone,
        which releases it. Ignored if the pod is not among the entry's users.
        """
        with self._cache.atomic():
            entry = self._find(uid)
            if entry is None or pod_uid not in entry.users or pod_uid in entry.unclear:
                return
            unclear = (*entry.unclear, pod_uid)
            left = self._entries[entry.uid] = attrs.evolve(entry, unclear=unclear)
            if self._is_gone(left):
                self._release_unclear(left)

    def _release_unclear(self, entry: InFlight) -> None:
        """The claim is gone: no write can reach it, and no attempt will ask for it again."""
        for pod in entry.unclear:
            self.release(entry.uid, pod)

    def _is_gone(self, entry: InFlight) -> bool:
        """Whether the cache has shown the end of the claim, or should show it and does not."""
        if entry.gone or self._same(entry.claim.metadata.key, entry.uid) is not None:
            return entry.gone
        # Created by an attempt, so the cache may never have shown it.
        version = read_version(entry.claim.metadata.resource_version)
        return bool(entry.made_up) and version is not None and self._complete >= version

    def resume(self, uid: str, pod_uid: str) -> bool:
        """The pod's next attempt goes on with an entry that it left; whether it may.

        False: nothing was left there, another attempt may be on the way with it.
        """
        with self._cache.atomic():
            entry = self._find(uid)
            if entry is None or pod_uid not in entry.unclear:
                return False
            unclear = _without(entry.unclear, pod_uid)
            self._entries[entry.uid] = attrs.evolve(entry, unclear=unclear)
            return True

    def remove(self, uid: str) -> None:
        """Remove an entry whatever users it has, and restore the cached claim.

        A claim that the API server has shown as allocated stays as it is: that is the work
        of another scheduler, and its devices would look free until the informer shows it.
        Also for an entry that awaits the cache, if the caller knows that its claim is
        gone for good. Unknown UIDs are ignored. (Restoring a hypothetical claim removes it.)
        """
        with self._cache.atomic():
            entry = self._find(uid)
            if entry is None:
                return
            key = entry.claim.metadata.key
            cached = self._same(key, entry.uid)
            if cached is not None and cached.allocation is None:
                self._cache.restore(key)
            self._end(entry.uid)

    def abort(self, session: Hashable) -> None:
        """Remove all entries of a session whose allocations are not written.

        For a gang that was discarded. In the order in which they were started; one step.
        Where a pod does not know whether it was written (``leave``) the entry stays, with
        these pods as its only users.
        """
        with self._cache.atomic():
            for uid, entry in list(self._entries.items()):
                if entry.session != session or session is None or entry.awaited is not None:
                    continue
                if entry.unclear:
                    self._entries[uid] = attrs.evolve(entry, users=entry.unclear)
                else:
                    self.remove(uid)

    def created(self, uid: str, claim: ResourceClaim) -> None:
        """The claim that was in flight under a made-up UID was created as ``claim``.

        From now on the entry is the real claim's, so that it overrides the cached one and
        that its deletion is noticed. The made-up UID goes on meaning the entry, too.
        Ignored for an unknown UID, for a claim without one, and where the real claim has an
        entry of its own.
        """
        real = claim.metadata.uid
        with self._cache.atomic():
            entry = self._entries.get(uid)
            if entry is None or entry.made_up or not real or real in self._entries:
                return
            del self._entries[uid]
            to_come = _with_status(claim, entry.claim)
            self._entries[real] = attrs.evolve(entry, claim=to_come, made_up=uid)
            self._created[uid] = real

    def succeeded(self, uid: str, written: ResourceClaim) -> None:
        """The API server stored the allocation and returned ``written``.

        One step: the returned claim is assumed, then the entry of ``uid`` removed, whatever
        users it has. If the cache does not know the object (or still shows an older one of
        that name), the entry stays until it does. Call it as soon as the write succeeded,
        whatever fails afterwards; without an entry the claim is assumed all the same.

        Raises, changing nothing, WrongTypeError, NoUsableNameError, UnreadableVersionError.
        """
        with self._cache.atomic():
            try:
                self._cache.assume(written)
            except VersionTooOldError:
                # The cache shows something newer, and that is the truth.
                pass
            except (ObjectNotFoundError, ObjectReplacedError):
                self._await(uid, written)
                return
            self._end(self._created.get(uid, uid), written)

    def _await(self, uid: str, written: ResourceClaim) -> None:
        """Keep an entry until the cache has caught up with the written claim."""
        key, version = written.metadata.key, self._cache.version_of(written)
        entry = self._find(uid)
        if entry is None:
            return
        known = self._cache.find(key)
        passed = known is not None and self._cache.version_of(known) >= version
        if entry.gone or passed or self._complete >= version:
            self._end(entry.uid)
            return
        self._forget_awaited(entry)
        self._entries[entry.uid] = attrs.evolve(entry, users=(), unclear=(), awaited=written)
        self._awaiting.setdefault(key, {})[entry.uid] = None

    def _forget_awaited(self, entry: InFlight) -> None:
        if entry.awaited is None:
            return
        key = entry.awaited.metadata.key
        del self._awaiting[key][entry.uid]
        if not self._awaiting[key]:
            del self._awaiting[key]

    def _end(self, uid: str, written: ResourceClaim | None = None) -> None:
        """Remove an entry; an event unless the cache shows its claim with its devices."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return
        self._forget_awaited(entry)
        if entry.made_up:
            del self._created[entry.made_up]
        held = self._holdings(entry.claim)
        self._ledger.remove(held)
        # A claim made up in memory is another object than what was written for it.
        forms = (entry.claim, entry.awaited, written)
        if not any(form is not None and self._is_stored(form, held) for form in forms):
            self._handlers.tell(DevicesFreed(entry.claim))

    def _is_stored(self, claim: ResourceClaim, held: tuple[Holding, ...]) -> bool:
        """Whether the cache shows the claim as allocated, with all that was held in flight.

        Another scheduler may have been faster, and have picked other devices.
        """
        cached = self._same(claim.metadata.key, claim.metadata.uid)
        if cached is None or cached.allocation is None:
            return False
        # What a share consumes may be written differently by the API server.
        stored = {(pool, device, share) for pool, device, share, _ in self._holdings(cached)}
        return all((pool, device, share) in stored for pool, device, share, _ in held)

    # --- events ----------------------------------------------------------------------

    def add_handler(self, handler: Callable[[DevicesFreed], object]) -> Callable[[], None]:
        """Call ``handler(event)`` whenever devices in flight became free.

        As ``AssumeCache.add_handler``, and in one order with the cache's events.
        """
        return self._handlers.add(handler)

    def _changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Part of every change of the cache, under its lock."""
        if old is None or new is None or old.allocation is not new.allocation:
            before = () if old is None else self._holdings(old)
            after = () if new is None else self._holdings(new)
            # An allocation never changes in place; if it does, the difference counts.
            if before != after:
                self._ledger.add(after)
                self._ledger.remove(before)
        if old is None or new is None:
            self._note_existence(old if new is None else new, exists=new is not None)
        if self._awaiting:
            self._resolve(old, new)

    def _note_existence(self, claim: ResourceClaim | None, exists: bool) -> None:
        if claim is not None and not exists:
            self._doubts.forget(claim.metadata.uid)
        entry = None if claim is None else self._entries.get(claim.metadata.uid)
        if entry is None or entry.gone is not exists:
            return
        changed = self._entries[entry.uid] = attrs.evolve(entry, gone=not exists)
        if changed.gone:
            self._release_unclear(changed)

    def _resolve(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """End the entries for which the cache has caught up by this change."""
        shown = new if new is not None else old
        if shown is None:
            return
        for uid in list(self._awaiting.get(shown.metadata.key, ())):
            awaited = self._entries[uid].awaited
            if awaited is None:
                continue
            version_of = self._cache.version_of
            if new is None:
                caught_up = shown.metadata.uid == awaited.metadata.uid
            else:
                caught_up = version_of(new) >= version_of(awaited)
            if caught_up:
                self._end(uid)

    def _listed(self, version: ResourceVersion) -> None:
        """The informer listed everything at a version: what it should show and did not is gone."""
        self._complete = max(self._complete, version)
        for uids in list(self._awaiting.values()):
            for uid in list(uids):
                awaited = self._entries[uid].awaited
                if awaited is not None and self._cache.version_of(awaited) <= version:
                    self._end(uid)
        for entry in list(self._entries.values()):
            if entry.unclear and self._is_gone(entry):
                self._release_unclear(entry)

    # --- inside ----------------------------------------------------------------------

    def _find(self, uid: str) -> InFlight | None:
        """The entry of a claim's UID, real or made up."""
        return self._entries.get(self._created.get(uid, uid))

    def _same(self, key: ObjectKey, uid: str) -> ResourceClaim | None:
        """The cached claim of the key, if it has the UID."""
        cached = self._cache.find(key)
        return cached if cached is not None and cached.metadata.uid == uid else None

    def _holdings(self, claim: ResourceClaim) -> tuple[Holding, ...]:
        return holdings(claim.allocation, self._consumable_capacity)

    def _check(self) -> None:
        """Raise AssertionError if an invariant does not hold: O(everything).

        The cache's own; what is in use is what the cached claims and the entries hold, no
        more and no less; entries have users or await the cache, never both ways wrong.
        """
        with self._cache.atomic():
            self._cache._check()
            claims = [*self._cache.list(), *(entry.claim for entry in self._entries.values())]
            expected = AllocatedState.from_claims(claims, self._consumable_capacity)
            if self.allocated() != expected:
                raise AssertionError(f"{self.allocated()!r} is not {expected!r}")
            awaiting = {
                (entry.awaited.metadata.key, uid)
                for uid, entry in self._entries.items()
                if entry.awaited is not None
            }
            if awaiting != {(key, uid) for key, uids in self._awaiting.items() for uid in uids}:
                raise AssertionError(f"awaiting {self._awaiting}, entries {awaiting}")
            created = {e.made_up: uid for uid, e in self._entries.items() if e.made_up}
            if created != self._created:
                raise AssertionError(f"created {self._created}, entries {created}")
            for uid, entry in self._entries.items():
                if entry.uid != uid or not (entry.users or entry.awaited):
                    raise AssertionError(f"{uid}: {entry.users}, {entry.awaited}")
                if not set(entry.unclear) <= set(entry.users):
                    raise AssertionError(f"{uid}: {entry.users}, unclear {entry.unclear}")


def _without(pods: tuple[str, ...], pod_uid: str) -> tuple[str, ...]:
    return tuple(pod for pod in pods if pod != pod_uid)


def _with_status(claim: ResourceClaim, to_come: ResourceClaim) -> ResourceClaim:
    """The claim with the status of another."""
    return attrs.evolve(
        claim,
        allocation=to_come.allocation,
        reserved_for=to_come.reserved_for,
        device_statuses=to_come.device_statuses,
        deallocation_requested=to_come.deallocation_requested,
    )
