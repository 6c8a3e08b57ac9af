"""Exceptions of scheduling: what cannot be stored, be in flight, be published or wake a pod.

What may live here: exception types only, by the rules of ``dra_core.errors``, whose
root they have.
"""

import attrs

from dra_core.errors import AllocationError, DraError


@attrs.frozen
class WrongTypeError(DraError, TypeError):
    """A store of ``kind`` was given an object of another type, ``found``. Both are type names."""

    kind: str
    found: str

    def __str__(self) -> str:
        return f"a cache of {self.kind} objects cannot hold a {self.found}"


@attrs.frozen
class NoIndexError(DraError, LookupError):
    """A store of ``kind`` was asked by index, but was made without one."""

    kind: str

    def __str__(self) -> str:
        return f"the cache of {self.kind} objects has no index"


@attrs.frozen
class StoreError(DraError):
    """A store of ``kind`` cannot do what was asked with the object ``key`` ("namespace/name")."""

    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key!r}: {self._problem()}"

    def _problem(self) -> str:
        return "cannot be stored"


@attrs.frozen
class NoUsableNameError(StoreError):
    """An object has no name, so that nothing can be stored under it (``key`` shows what it has)."""

    def _problem(self) -> str:
        return "has no usable name"


@attrs.frozen
class ObjectNotFoundError(StoreError, LookupError):
    """Nothing is stored under the key, or nothing that was observed where that was asked for."""

    def _problem(self) -> str:
        return "not found"


@attrs.frozen
class ObjectExistsError(StoreError):
    """Something is stored under the key already."""

    def _problem(self) -> str:
        return "exists already"


@attrs.frozen
class ObjectReplacedError(StoreError):
    """An object of the same name but another UID (``known_uid``) is stored."""

    uid: str
    known_uid: str

    def _problem(self) -> str:
        return f"UID {self.uid!r} is not the stored object's, {self.known_uid!r}"


@attrs.frozen
class UnreadableVersionError(StoreError, ValueError):
    """A resourceVersion (``version``) is no decimal number, so that age cannot be told."""

    version: str

    def _problem(self) -> str:
        return f"resourceVersion {self.version[:100]!r} is no decimal number"


@attrs.frozen
class VersionTooOldError(StoreError):
    """An object is older than the stored one: its version against ``known_version``."""

    version: str
    known_version: str

    def _problem(self) -> str:
        known = self.known_version[:100]
        return f"version {self.version[:100]} is older than the stored one, {known}"


@attrs.frozen
class HandlerFailedError(StoreError):
    """A handler raised ``cause`` when it was told of a change; others were told all the same."""

    cause: Exception

    def _problem(self) -> str:
        return f"an event handler failed: {self.cause!r}"


@attrs.frozen
class InFlightError(DraError):
    """An allocation of ``claim`` ("namespace/name") cannot be taken in flight."""

    claim: str

    def __str__(self) -> str:
        return f"ResourceClaim {self.claim!r}: {self._problem()}"

    def _problem(self) -> str:
        return "cannot be in flight"


@attrs.frozen
class NothingToTrackError(InFlightError, ValueError):
    """The claim was given without an allocation to come."""

    def _problem(self) -> str:
        return "has no allocation that could be in flight"


@attrs.frozen
class NoUidError(InFlightError, ValueError):
    """The claim was given without a UID, by which claims in flight are told apart.

    Claims that were not created yet need one that is made up.
    """

    def _problem(self) -> str:
        return "has no UID: one that was not created yet needs a made-up one"


@attrs.frozen
class ClaimAllocatedError(InFlightError):
    """The claim is allocated already: use that allocation."""

    def _problem(self) -> str:
        return "is allocated already"


@attrs.frozen
class ClaimInFlightError(InFlightError):
    """Somebody else is allocating the claim. Wait. ``users`` are the UIDs of their pods."""

    users: tuple[str, ...]

    def _problem(self) -> str:
        return f"is being allocated for {', '.join(self.users) or 'a pod'}"


@attrs.frozen
class DevicesTakenError(InFlightError):
    """Devices or shares were taken since they were picked. Pick again. As text, in order."""

    devices: tuple[str, ...]

    def _problem(self) -> str:
        return f"taken by others: {', '.join(self.devices)}"


@attrs.frozen
class PoolsChangedError(InFlightError):
    """What is in use of these pools ("driver/pool") is not what the devices were picked from.

    Pick again.
    """

    pools: tuple[str, ...]

    def _problem(self) -> str:
        return f"use of pools changed since the devices were picked: {', '.join(self.pools)}"


@attrs.frozen
class SeparateLocksError(DraError, ValueError):
    """Caches that have to change together do not share a delivery. ``kind`` is what one holds.

    Make them with ``delivery=claims.atomic()``.
    """

    kind: str

    def __str__(self) -> str:
        return f"the cache of {self.kind} objects does not share the delivery of the claims' cache"


@attrs.frozen
class StaleInputError(DraError):
    """A cycle's input was used after the next one was taken: its slices have changed since."""

    taken_at: int
    now_at: int

    def __str__(self) -> str:
        return (
            f"the input was taken at revision {self.taken_at} of the inventory, "
            f"which is at {self.now_at} now: take a new one"
        )


@attrs.frozen
class ContextNotOwnedError(DraError):
    """A PodSchedulingContext is not this pod's: leave it alone, it may be an older pod's.

    ``context`` is "namespace/name" of the object, ``controller_uid`` the UID of what
    controls it ("" for nothing); ``pod`` is "namespace/name" of the pod, ``pod_uid`` its UID.
    """

    context: str
    controller_uid: str
    pod: str
    pod_uid: str

    def __str__(self) -> str:
        owner = f"UID {self.controller_uid!r}" if self.controller_uid else "nothing"
        return (
            f"PodSchedulingContext {self.context!r} is controlled by {owner}, "
            f"not by Pod {self.pod!r} (UID {self.pod_uid!r})"
        )


@attrs.frozen
class IncompleteContextError(DraError, ValueError):
    """A change of a PodSchedulingContext ("namespace/name") needs ``missing``.

    Objects that came from the API server have it.
    """

    context: str
    missing: str

    def __str__(self) -> str:
        return f"PodSchedulingContext {self.context!r} cannot be changed without {self.missing}"


@attrs.frozen
class PotentialNodesError(DraError, ValueError):
    """Potential nodes for ``context`` ("namespace/name") that the API server would refuse."""

    context: str
    problem: str

    def __str__(self) -> str:
        return f"PodSchedulingContext {self.context!r}: potential nodes {self.problem}"


@attrs.frozen
class CycleStateError(DraError, RuntimeError):
    """A cycle was called out of order. ``pod`` is "namespace/name".

    ``state`` is what it is in, ``event`` the method; ``allowed`` are those that may be called.
    """

    pod: str
    state: str
    event: str
    allowed: tuple[str, ...]

    def __str__(self) -> str:
        allowed = ", ".join(self.allowed) or "nothing: it is over"
        return f"Pod {self.pod!r}: {self.event} while {self.state}; allowed: {allowed}"


@attrs.frozen
class NotFilteredError(DraError, ValueError):
    """A node was to be scored or picked that was not found to fit. ``pod`` is "namespace/name"."""

    pod: str
    node: str

    def __str__(self) -> str:
        return f"Pod {self.pod!r}: node {self.node!r} was not filtered, or does not fit"


@attrs.frozen
class UnexpectedEventError(DraError, TypeError):
    """An event is about objects that no wake-up rule is about. Type names, "NoneType" for none."""

    old: str
    new: str

    def __str__(self) -> str:
        return f"no rule for an event from {self.old} to {self.new}"


@attrs.frozen
class UnknownClaimKindError(AllocationError):
    """No kind that a cycle was given handles the claim: nobody here can allocate it."""

    reason = "unknown-kind"

    def __str__(self) -> str:
        return f"{self._where()}no registered kind of claims handles it"


@attrs.frozen
class SuitableNodesError(AllocationError):
    """``suitableNodes`` of the class ``device_class`` cannot be used."""

    device_class: str
    problem: str

    reason = "node-selector"

    def __str__(self) -> str:
        return f"{self._where()}class {self.device_class!r}: suitableNodes: {self.problem}"
