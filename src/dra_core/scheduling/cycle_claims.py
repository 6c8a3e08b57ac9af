"""The claims of a pod, as one attempt to schedule it sees them.

What may live here: finding them and the checks that come before any node is looked at.
"""

from collections.abc import Hashable, Iterator, Sequence
from datetime import datetime, timedelta

import attrs

from dra_core.api.core import Node, Pod, PodGroup, PodResourceClaim
from dra_core.api.objects import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from dra_core.claims.names import ResolvedClaim
from dra_core.claims.reservation import consumer_reference
from dra_core.errors import AllocationError, DraError
from dra_core.inventory.matching import NodeMatcher, compile_node_selector
from dra_core.scheduling.binding_conditions import (
    DEFAULT_TIMEOUT,
    BindingState,
    BindingStatus,
    binding_status,
)
from dra_core.scheduling.cycle_kinds import ClaimKind
from dra_core.scheduling.cycle_verdicts import Stopped, StopReason
from dra_core.scheduling.errors import UnknownClaimKindError
from dra_core.scheduling.in_flight import ClaimTracker, InFlight
from dra_core.scheduling.wakeups import before_filtering
from dra_core.scheduling.wakeups_demand import ClaimFacts, DeviceClaims, Lookups


@attrs.frozen
class CycleSettings:
    """What is the same for all pods of a cluster.

    ``deterministic_names`` (clusters up to 1.27) and ``workload_claims`` (from 1.36 on) are
    the policies of ``dra_core.claims.names``. ``binding_conditions``: the feature
    DeviceBindingAndStatus is on, in the cluster and in ``Features``; ``binding_timeout`` is
    how long devices may take to become ready.
    """

    deterministic_names: bool = False
    workload_claims: bool = False
    binding_conditions: bool = True
    binding_timeout: timedelta = DEFAULT_TIMEOUT


DEFAULT_SETTINGS = CycleSettings()


@attrs.define(eq=False)
class HeldClaim:
    """One claim in the hands of a cycle, which alone changes it.

    ``entries`` are the pod's names for it: two may mean the same claim. ``claim`` is the
    newest copy that the cycle has seen, ``consumer`` whom to enter. ``allocation`` is the
    one that the pod is filtered with, ``None`` until a node is picked for a claim without
    one. ``is_new``: it is not stored yet. ``in_flight``: it was in flight before this
    attempt, for pods of the same gang, or left by an attempt of this pod whose write got
    no clear answer: ``maybe_written``. ``maybe_reserved``: the same of the reservation.
    ``from_server``: ``claim`` is what the API server returned in this attempt, which may have
    ``created`` it. ``taken``: this attempt has it in flight. ``unusable``: a device has failed
    or is overdue.
    """

    entries: tuple[str, ...]
    kind: ClaimKind
    claim: ResourceClaim
    consumer: ResourceClaimConsumerReference
    allocation: AllocationResult | None = None
    is_new: bool = False
    in_flight: bool = False
    maybe_written: bool = False
    maybe_reserved: bool = False
    from_server: bool = False
    created: bool = False
    taken: bool = False
    matcher: NodeMatcher | None = None
    unusable: tuple[BindingState, BindingStatus] | None = None

    @property
    def entry(self) -> str:
        """The pod's first name for the claim."""
        return self.entries[0]

    @property
    def uid(self) -> str:
        """The claim's UID."""
        return self.claim.metadata.uid

    @property
    def pending(self) -> bool:
        """Whether an allocation has yet to be found."""
        return self.allocation is None

    def suits(self, node: Node) -> bool:
        """Whether the allocation is for this node, too."""
        return self.matcher is None or self.matcher.matches(node)


def allocation_suits(allocation: AllocationResult, node: Node) -> bool:
    """Whether an allocation is for this node. A selector that is not valid is for none."""
    try:
        matcher = _matcher(allocation)
    except DraError:
        return False
    return matcher is None or matcher.matches(node)


def _matcher(allocation: AllocationResult) -> NodeMatcher | None:
    selector = allocation.node_selector
    return None if selector is None else compile_node_selector(selector)


@attrs.frozen
class CycleLookups(Lookups):
    """Look-ups for the checks before filtering, which know claims by the cycle's kinds."""

    claim_kinds: tuple[ClaimKind, ...] = ()

    def facts_of(self, claim: ResourceClaim) -> ClaimFacts:
        return kind_of(claim, self.claim_kinds) or _UnknownKind(self.device_class)


def kind_of(claim: ResourceClaim, kinds: Sequence[ClaimKind]) -> ClaimKind | None:
    """The first kind that handles the claim."""
    return next((kind for kind in kinds if kind.handles(claim)), None)


class _UnknownKind(DeviceClaims):
    """A claim that nobody here allocates, and nobody knows how to write."""

    def missing(self, claim: ResourceClaim) -> AllocationError | None:
        raise UnknownClaimKindError(str(claim.metadata.key), "")


@attrs.frozen
class ClaimGathering:
    """Finds a pod's claims and checks them, in the pod's order; the first problem stops it.

    ``session`` is what the pods of a gang have in common to share what is in flight.
    """

    pod: Pod
    tracker: ClaimTracker
    kinds: tuple[ClaimKind, ...]
    settings: CycleSettings = DEFAULT_SETTINGS
    group: PodGroup | None = None
    session: Hashable = None

    @property
    def lookups(self) -> CycleLookups:
        """Where the claims, and what is in flight for them, are looked up."""
        return CycleLookups(
            self.tracker.cache.find,
            pending=self.tracker.pending,
            session=self.session,
            deterministic_names=self.settings.deterministic_names,
            workload_claims=self.settings.workload_claims,
            claim_kinds=self.kinds,
        )

    def gather(self, now: datetime) -> list[HeldClaim] | Stopped:
        """The claims, or the first problem in the pod's order; all of one moment.

        Raises ``PodGroupMismatchError`` if the pod is not in the group.
        """
        held: dict[str, HeldClaim] = {}
        with self.tracker.cache.atomic():
            verdict = before_filtering(self.pod, self.lookups)
            if isinstance(verdict, Stopped):
                return _named(verdict)
            named = {entry.name: entry for entry in reversed(self.pod.resource_claims)}
            for answer in self.lookups.claims_of(self.pod).answers:
                if not isinstance(answer, ResolvedClaim):
                    continue
                uid = answer.claim.metadata.uid
                if uid in held:
                    held[uid].entries += (answer.pod_claim,)
                    continue
                found = self._hold(answer, named[answer.pod_claim], now)
                if isinstance(found, Stopped):
                    return attrs.evolve(found, pod_claim=answer.pod_claim)
                held[uid] = found
        return list(held.values())

    def _hold(
        self, answer: ResolvedClaim, entry: PodResourceClaim, now: datetime
    ) -> HeldClaim | Stopped:
        claim = answer.claim
        kind = kind_of(claim, self.kinds)
        if kind is None:
            return Stopped(StopReason.UNKNOWN_KIND)
        consumer = consumer_reference(self.pod, entry, self.group)
        held = HeldClaim((answer.pod_claim,), kind, claim, consumer, claim.allocation)
        try:
            if not self._join(held):
                return Stopped(StopReason.IN_FLIGHT, retry=True, cause=self._pending(held))
            if claim.allocation is not None and self.settings.binding_conditions:
                held.unusable = self._unusable(claim, now)
            if held.allocation is not None:
                held.matcher = _matcher(held.allocation)
        except DraError as error:
            return Stopped(StopReason.INVALID, retry=True, cause=error)
        return held

    def _pending(self, held: HeldClaim) -> InFlight | None:
        return self.tracker.pending(held.uid)

    def _join(self, held: HeldClaim) -> bool:
        """Use what is in flight for the claim, which this pod may share, as its allocation.

        False: another cycle of this pod is on the way with it, and may have sent a request
        that is not carried out yet. Reading the claim would prove nothing.
        """
        pending, pod = self._pending(held), self.pod.metadata.uid
        if pending is None:
            return True
        own = pod in pending.users
        if held.claim.allocation is not None:
            if own:
                # An earlier attempt did not know whether its write happened: now it is known.
                self.tracker.succeeded(held.uid, held.claim)
            return True
        held.allocation, held.is_new, held.in_flight = pending.allocation, True, True
        held.maybe_written = own
        return not own or pod in pending.unclear

    def _unusable(
        self, claim: ResourceClaim, now: datetime
    ) -> tuple[BindingState, BindingStatus] | None:
        status = binding_status(claim, self.settings.binding_timeout)
        state = status.state(now)
        bad = state in (BindingState.FAILED, BindingState.OVERDUE)
        return (state, status) if bad else None


def _named(stopped: Stopped) -> Stopped:
    """A claim of no kind is not the input's fault: it waits for somebody else."""
    if isinstance(stopped.cause, UnknownClaimKindError):
        return Stopped(StopReason.UNKNOWN_KIND, stopped.pod_claim)
    return stopped


def pending_entries(held: Sequence[HeldClaim], *, by_driver: bool) -> tuple[str, ...]:
    """The pod's names for claims without allocation, of kinds that drivers allocate or not."""
    return tuple(_entries(held, by_driver))


def _entries(held: Sequence[HeldClaim], by_driver: bool) -> Iterator[str]:
    for one in held:
        if one.pending and one.kind.by_driver(one.claim) is by_driver:
            yield from one.entries
