"""What a pod that sleeps needs, and where to look it up.

What may live here: ``Lookups``, which the caller fills with its caches; ``WakingKind``, by which
it registers claims of other shapes; and ``PodDemand``, a pod's claims and what
of them waits for what.

All look-ups have to be in the same caches that the events come from, so that "what is" and
"what changed" are of one view of the world (k/k#123698).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Protocol

import attrs

from dra_core.api.core import Pod
from dra_core.api.names import ObjectKey, PoolId
from dra_core.api.objects import (
    ALLOCATION_MODE_ALL,
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from dra_core.claims.deallocation import allocated_by_scheduler
from dra_core.claims.names import PodClaims, ResolvedClaim, resolve_claims
from dra_core.claims.reservation import MAX_CONSUMERS
from dra_core.errors import (
    AllocationError,
    DeviceClassNotFoundError,
    MissingClassNameError,
    UnknownRequestError,
)
from dra_core.scheduling.extended_resources import asked_for
from dra_core.scheduling.in_flight import InFlight
from dra_core.scheduling.wakeups_verdict import WakeUp


class ClaimFacts(Protocol):
    """What wake-ups have to know about claims of one shape."""

    def by_driver(self, claim: ResourceClaim) -> bool:
        """Whether a control plane controller allocates the claim, which is not allocated."""

    def immediate(self, claim: ResourceClaim) -> bool:
        """Whether that controller does so without waiting for a pod."""

    def by_scheduler(self, claim: ResourceClaim) -> bool:
        """Whether a scheduler allocated the claim, which is allocated."""

    def limit(self, claim: ResourceClaim) -> int:
        """How many consumers the claim, which is allocated, may have."""

    def missing(self, claim: ResourceClaim) -> AllocationError | None:
        """What must appear before the claim, which is not allocated, can be: the first such thing.

        Raises ``AllocationError`` for a claim that is at fault, which no event mends.
        """


class WakingKind(ClaimFacts, Protocol):
    """Claims of another shape than those of v1: a subclass of ``ResourceClaim``, and its objects.

    Register it in ``Lookups.kinds``.
    """

    def handles(self, claim: ResourceClaim) -> bool:
        """Whether the claim is of this kind. The first kind that says so has it."""

    def concerns(self, obj: object) -> bool:
        """Whether an object is of a type that only claims of this kind have to do with."""

    def changed(
        self, claims: Sequence[ResourceClaim], old: object | None, new: object | None
    ) -> WakeUp:
        """Whether the change of such an object is worth an attempt.

        ``claims`` are those of the pod that are of this kind, in its order, allocated or not.
        """


def _no_class(_name: str) -> DeviceClass | None:
    return None


def _no_slices(_pool: PoolId) -> Iterable[ResourceSlice]:
    return ()


def _always(_name: str) -> bool:
    return True


def _nothing_in_flight(_uid: str) -> InFlight | None:
    return None


@attrs.frozen
class Lookups:
    """Where wake-ups look things up. What is left out is answered on the safe side: queue.

    ``claim``: the newest claim by its key (``AssumeCache.find``). ``device_class``: a class
    by name. ``pool``: all slices of a pool, of any generation. ``offered``: whether a class
    offers an extended resource. ``pending``: what is in flight for a claim's UID
    (``ClaimTracker.pending``), and ``session`` what pods that share it have in common.

    ``kinds``: claims of other shapes. ``limit``: the most consumers of a claim.
    ``deterministic_names`` and ``workload_claims``: the policies of ``dra_core.claims.names``.
    """

    claim: Callable[[ObjectKey], ResourceClaim | None]
    device_class: Callable[[str], DeviceClass | None] = _no_class
    pool: Callable[[PoolId], Iterable[ResourceSlice]] = _no_slices
    offered: Callable[[str], bool] = _always
    pending: Callable[[str], InFlight | None] = _nothing_in_flight
    session: Hashable = None
    kinds: tuple[WakingKind, ...] = ()
    limit: int = MAX_CONSUMERS
    deterministic_names: bool = False
    workload_claims: bool = False

    def claims_of(self, pod: Pod) -> PodClaims:
        """What became of the entries of the pod's ``spec.resourceClaims``."""
        return resolve_claims(
            pod,
            self.claim,
            deterministic=self.deterministic_names,
            workload_claims=self.workload_claims,
        )

    def facts_of(self, claim: ResourceClaim) -> ClaimFacts:
        """Who knows about the claim: a registered kind, else what v1 and v1alpha3 have."""
        for kind in self.kinds:
            if kind.handles(claim):
                return kind
        return DeviceClaims(self.device_class, self.limit)


@attrs.frozen
class PodDemand:
    """The claims of a pod, as the caches have them now, and what waits for an allocation."""

    pod: Pod
    claims: PodClaims
    lookups: Lookups

    @property
    def resolved(self) -> bool:
        """Whether all claims are there and the pod's to use."""
        return not self.claims.problems

    def uses(self, claim: ResourceClaim) -> bool:
        """Whether the claim, told by its UID, is one of the pod's."""
        return any(mine.metadata.uid == claim.metadata.uid for mine in self.claims.claims)

    def unallocated(self) -> Iterator[tuple[str, ResourceClaim]]:
        """The pod's entries and claims without allocation, whoever is to allocate them."""
        for answer in self.claims.answers:
            if isinstance(answer, ResolvedClaim) and answer.claim.allocation is None:
                yield answer.pod_claim, answer.claim

    def of_drivers(self) -> Iterator[str]:
        """The pod's entries for claims that a control plane controller has to allocate."""
        for entry, claim in self.unallocated():
            if self.lookups.facts_of(claim).by_driver(claim):
                yield entry

    def of_scheduler(self) -> Iterator[ResourceClaim]:
        """The claims that the scheduler has to allocate."""
        for _, claim in self.unallocated():
            if not self.lookups.facts_of(claim).by_driver(claim):
                yield claim

    def extended_resources(self) -> tuple[str, ...]:
        """The extended resources that the pod asks for and a class offers."""
        return tuple(name for name in asked_for(self.pod) if self.lookups.offered(name))

    @property
    def needs_devices(self) -> bool:
        """Whether the scheduler has to find devices for the pod."""
        return any(True for _ in self.of_scheduler()) or bool(self.extended_resources())

    @property
    def wants_all(self) -> bool:
        """Whether a request that the scheduler has to serve asks for all devices.

        Such a request can be helped by devices that go away.
        """
        return any(
            choice.allocation_mode == ALLOCATION_MODE_ALL
            for claim in self.of_scheduler()
            for choice in requested(claim)
        )


def demand_of(pod: Pod, lookups: Lookups) -> PodDemand:
    """The pod's demand now. Cost: one look-up per claim."""
    return PodDemand(pod, lookups.claims_of(pod), lookups)


def requested(claim: ResourceClaim) -> Iterator[ExactDeviceRequest | DeviceSubRequest]:
    """What a claim's requests ask for, in order, alternatives one by one."""
    for request in claim.devices.requests:
        if request.exactly is not None:
            yield request.exactly
        yield from request.first_available


@attrs.frozen
class DeviceClaims:
    """The facts about claims of v1 and of v1alpha3, with or without ``spec.controller``."""

    device_class: Callable[[str], DeviceClass | None]
    consumers: int = MAX_CONSUMERS

    def by_driver(self, claim: ResourceClaim) -> bool:
        return bool(claim.controller)

    def immediate(self, claim: ResourceClaim) -> bool:
        return False  # existed in v1alpha2 only

    def by_scheduler(self, claim: ResourceClaim) -> bool:
        return allocated_by_scheduler(claim)

    def limit(self, claim: ResourceClaim) -> int:
        return self.consumers

    def missing(self, claim: ResourceClaim) -> AllocationError | None:
        """The first class that does not exist."""
        key = str(claim.metadata.key)
        for request in claim.devices.requests:
            if request.exactly is None and not request.first_available:
                raise UnknownRequestError(key, request.name)
            for name, class_name in _classes(request):
                if not class_name:
                    raise MissingClassNameError(key, name)
                if self.device_class(class_name) is None:
                    return DeviceClassNotFoundError(key, name, class_name)
        return None


def _classes(request: DeviceRequest) -> Iterator[tuple[str, str]]:
    """Name and class of a request, or of each of its alternatives."""
    if request.exactly is not None:
        yield request.name, request.exactly.device_class_name
    for choice in request.first_available:
        yield f"{request.name}/{choice.name}", choice.device_class_name
