"""A claim cache with its tracker and a record of everything they told, for tests."""

import attrs

from dra_core.api.names import DeviceId, SharedDeviceId
from dra_core.api.objects import FINALIZER, DeviceRequestAllocationResult, ResourceClaim
from dra_core.errors import DraError
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.scheduling.in_flight import ClaimTracker, DevicesFreed
from support import in_use

What = DeviceId | SharedDeviceId | DeviceRequestAllocationResult


class Tracked:
    """A cache and its tracker; ``freed`` has the names of claims whose devices became free."""

    def __init__(self, consumable_capacity: bool = True) -> None:
        self.errors: list[DraError] = []
        self.cache = AssumeCache(ResourceClaim, self.errors.append)
        self.tracker = ClaimTracker(self.cache, consumable_capacity)
        self.freed: list[str] = []
        self.tracker.add_handler(self._note)

    def _note(self, event: DevicesFreed) -> None:
        self.freed.append(event.claim.name)

    def in_use(self) -> set[DeviceId | SharedDeviceId]:
        """What is in use, after everything was checked against a fresh count."""
        self.tracker._check()
        state = self.tracker.allocated()
        return {*state.devices, *state.shares}


def at(claim: ResourceClaim, version: int | str) -> ResourceClaim:
    """The claim at another resourceVersion."""
    metadata = attrs.evolve(claim.metadata, resource_version=str(version))
    return attrs.evolve(claim, metadata=metadata)


def finalized(claim: ResourceClaim, version: int | str) -> ResourceClaim:
    """The claim at another version, with our finalizer."""
    metadata = attrs.evolve(claim.metadata, resource_version=str(version), finalizers=(FINALIZER,))
    return attrs.evolve(claim, metadata=metadata)


def with_devices(claim: ResourceClaim, *results: What) -> ResourceClaim:
    """The claim with an allocation."""
    return attrs.evolve(claim, allocation=in_use.allocation(*results))


def without_devices(claim: ResourceClaim) -> ResourceClaim:
    """The claim without allocation and reservations."""
    return attrs.evolve(claim, allocation=None, reserved_for=())


def with_uid(claim: ResourceClaim, uid: str) -> ResourceClaim:
    """The claim in another incarnation."""
    return attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, uid=uid))
