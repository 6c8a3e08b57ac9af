"""Binding one claim to a pod: which request comes next, and what an answer leads to.

What may live here: the state machine ``ClaimBinding`` and nothing that sends. It makes
no call and reads no clock: it says which request to send, is told the answer, and ends
in ``Bound``, ``RetryLater`` or ``Impossible``. Every state is a frozen value, so a step
can be tried and thrown away.

The way is: finalizer (unless the copy at hand has it), then the status (allocation and
reservation in one patch, or the reservation alone), then the caller assumes the object
that came back. After an answer that is not plain success the claim is read, and what to
do is decided again from what it says: an uncertain write may have happened, another
scheduler may have been faster, the finalizer may have been lost.

    binding = start_binding(claim, plan)
    while binding.request is not None:
        status, body = send(binding.request)
        binding = binding.answered(status, body)
"""

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum
from typing import Any

import attrs

from dra_core.api.names import ObjectKey
from dra_core.api.objects import (
    FINALIZER,
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from dra_core.api.request import ApiRequest, Cause, Next
from dra_core.api.wire import decode_resource_claim
from dra_core.claims import patches
from dra_core.claims.reservation import (
    MAX_CONSUMERS,
    POD_RESOURCE,
    can_be_reserved,
    has_consumer,
)
from dra_core.errors import MalformedObjectError, PatchError

MAX_ROUNDS = 5
"""Writes of one binding that may fail before it gives way to the next attempt."""


def same_allocation(one: AllocationResult | None, other: AllocationResult | None) -> bool:
    """Whether both allocate the same devices for the same nodes.

    Compared are the node selector and, in order, request, device and share of every
    result. The rest follows from these, and the API server may write it differently
    (defaults, an empty map left out); the time of allocation is no part of it.
    """
    if one is None or other is None:
        return one is other
    return one.node_selector == other.node_selector and _devices(one) == _devices(other)


def _devices(allocation: AllocationResult) -> list[tuple[str, str, str, str, str]]:
    return [(r.request, r.driver, r.pool, r.device, r.share_id) for r in allocation.results]


class ImpossibleReason(StrEnum):
    """Why the pod cannot have this claim now, whatever is tried."""

    GONE = "the claim does not exist any more"
    OTHER_INCARNATION = "the claim was replaced by another of the same name"
    BEING_DELETED = "the claim is being deleted"
    ALLOCATED_ELSEWHERE = "the claim got an allocation that does not suit the pod"
    FULL = "the claim is reserved for as many consumers as it can have"
    REFUSED = "the API server refused the request"


class RetryReason(StrEnum):
    """Why this attempt failed although a later one may succeed."""

    DEALLOCATED = "the claim lost its allocation meanwhile"
    DEALLOCATION_REQUESTED = "the claim is about to be deallocated"
    ALLOCATION_CHANGED = "the claim has another allocation than the pod was filtered with"
    TOO_MANY_ROUNDS = "the claim kept changing"
    UNAVAILABLE = "the API server could not be reached"


@attrs.frozen
class Bound:
    """The claim is allocated and reserved.

    ``claim`` is what the API server returned last, or the copy at hand if nothing had to
    be sent. Assume it first, then drop the in-flight entry: there must be no moment at
    which its devices are in neither set.
    """

    claim: ResourceClaim


@attrs.frozen
class RetryLater:
    """This attempt failed; undo and try again later.

    ``may_have_happened``: a write got no clear answer and could not be checked, so the
    devices must count as taken until the cache shows the claim. ``undo_failed``: the
    pod's entry was to be removed again and is still there; the next attempt comes by.
    """

    reason: RetryReason
    may_have_happened: bool = False
    undo_failed: bool = False


@attrs.frozen
class Impossible:
    """The pod cannot have this claim. ``status`` is the HTTP status of a refusal, else 0."""

    reason: ImpossibleReason
    status: int = 0


def _never(_allocation: AllocationResult) -> bool:
    return False


@attrs.frozen
class BindingPlan:
    """What is to become of one claim.

    ``consumer`` is whom to enter. ``allocation`` is the one that the pod was filtered
    with, and ``is_new`` whether it has yet to be written. ``suits`` is asked about any
    other allocation that the claim turns out to have: does it suit the chosen node?
    The default says no.

    ``version`` is the served version of the API, ``finalizer`` what must be on a claim
    that a scheduler allocates ("": the claim is a controller's, where the allocation does
    not say so), ``limit`` the most consumers, ``timestamp`` (RFC 3339) the
    time to note where binding conditions are on. ``extra_status``, ``encoded`` (the
    allocation in JSON) and ``decode`` (an answer's body to a claim) are for API versions
    of another shape.
    """

    consumer: ResourceClaimConsumerReference
    allocation: AllocationResult
    is_new: bool
    suits: Callable[[AllocationResult], bool] = _never
    version: str = "v1"
    finalizer: str = FINALIZER
    limit: int = MAX_CONSUMERS
    timestamp: str = ""
    max_rounds: int = MAX_ROUNDS
    extra_status: Mapping[str, Any] | None = None
    encoded: Mapping[str, Any] | None = None
    decode: Callable[[Any], ResourceClaim] | None = None


class Phase(Enum):
    """What the current request is for."""

    FINALIZER = "add the finalizer"
    ALLOCATION = "write the allocation and reserve"
    RESERVATION = "reserve"
    READ = "see what became of the claim"
    UNDO = "remove the reservation again"
    OVER = "nothing is left to send"


Outcome = Bound | RetryLater | Impossible


@attrs.frozen
class ClaimBinding:
    """One claim on its way to a pod: a state, made by ``start_binding``.

    ``request`` is to be sent next, ``None`` once there is an ``outcome``. ``claim`` is the
    newest copy: as given at first, later as the API server returned it (``from_server``).
    Such a copy is safe to assume, and should be assumed at once, whatever the outcome: a
    later failure must not forget an earlier write (k/k#133590).

    The rest is the machine's memory: ``uid`` of the claim meant, ``failures`` so far, the
    allocation ``expected`` in the answer, and whether a write is ``uncertain``.
    """

    plan: BindingPlan
    uid: str
    claim: ResourceClaim
    phase: Phase
    request: ApiRequest | None = None
    outcome: Outcome | None = None
    from_server: bool = False
    failures: int = 0
    expected: AllocationResult | None = None
    uncertain: bool = False

    def answered(self, status: int | None, body: Any = None) -> "ClaimBinding":
        """The next state, after the answer to ``request``.

        ``status`` is the HTTP status, ``None`` if there was no answer; ``body`` the
        decoded JSON of a successful answer. Raises ``MalformedObjectError`` if that is not
        the claim, as the API server states it: then nothing is known about the write, so
        pass ``None`` instead; and ``PatchError`` if there is no request to be answered.
        """
        if self.request is None:
            raise PatchError(str(self.claim.metadata.key), "nothing was asked: the binding is over")
        meaning = self.request.meaning(status)
        if self.phase is Phase.UNDO:
            undone = meaning.then is Next.DONE or Cause.MISSING in meaning.causes
            return self._end(RetryLater(RetryReason.ALLOCATION_CHANGED, undo_failed=not undone))
        if meaning.then is Next.DONE and body is not None:
            return self._returned(self._decode(body))
        if meaning.then is Next.GIVE_UP:
            return self._end(_refusal(meaning.causes, status))
        # A success without a body is as good as no answer.
        unclear = meaning.then is Next.DONE or Cause.MAY_HAVE_HAPPENED in meaning.causes
        return self._failed(uncertain=unclear and self.phase is not Phase.READ)

    def _decode(self, body: Any) -> ResourceClaim:
        decode = self.plan.decode
        claim = decode(body) if decode else decode_resource_claim(body, self.plan.version)
        return check_returned(claim, self.claim.metadata.key)

    def _failed(self, *, uncertain: bool) -> "ClaimBinding":
        """Read the claim next, whatever the write met with; unless reading fails too often."""
        failures = self.failures + 1
        state = attrs.evolve(self, failures=failures, uncertain=self.uncertain or uncertain)
        if self.phase is Phase.READ and failures >= self.plan.max_rounds:
            return state._end(RetryLater(RetryReason.UNAVAILABLE, state.uncertain))
        return state._send(Phase.READ, patches.get_claim(self.claim, self.plan.version))

    def _returned(self, claim: ResourceClaim) -> "ClaimBinding":
        """Go on from a copy that the API server returned."""
        state = attrs.evolve(self, claim=claim, from_server=True, uncertain=False)
        if self.phase not in (Phase.ALLOCATION, Phase.RESERVATION):
            return state._decide()
        if not same_allocation(claim.allocation, self.expected):
            return state._undo()
        # Bound, unless the answer shows something else to be mended, which counts.
        return attrs.evolve(state, failures=self.failures + 1)._decide()

    def _undo(self) -> "ClaimBinding":
        """Remove the entry again that went to a claim with another allocation.

        A group's entry stays: other pods of the group may rely on it by now.
        """
        consumer = self.plan.consumer
        if consumer.resource != POD_RESOURCE or not has_consumer(self.claim, consumer.uid):
            return self._end(RetryLater(RetryReason.ALLOCATION_CHANGED))
        request = patches.remove_consumer(self.claim, consumer.uid, version=self.plan.version)
        return self._send(Phase.UNDO, request)

    def _decide(self) -> "ClaimBinding":
        """What to do about the claim as the newest copy shows it."""
        obstacle = self._obstacle()
        if obstacle is not None:
            return self._end(obstacle)
        claim, plan = self.claim, self.plan
        write = self._next_write()
        if write is None:
            return self._end(Bound(claim))
        if self.failures >= plan.max_rounds:
            return self._end(RetryLater(RetryReason.TOO_MANY_ROUNDS))
        phase, request = write
        expected = plan.allocation if claim.allocation is None else claim.allocation
        return attrs.evolve(self, expected=expected)._send(phase, request)

    def _obstacle(self) -> Impossible | RetryLater | None:
        claim, plan = self.claim, self.plan
        if claim.metadata.uid != self.uid:
            return Impossible(ImpossibleReason.OTHER_INCARNATION)
        if claim.metadata.deletion_timestamp:
            return Impossible(ImpossibleReason.BEING_DELETED)
        if claim.allocation is None:
            return None if plan.is_new else RetryLater(RetryReason.DEALLOCATED)
        if not same_allocation(claim.allocation, plan.allocation) and not plan.suits(
            claim.allocation
        ):
            return Impossible(ImpossibleReason.ALLOCATED_ELSEWHERE)
        if claim.deallocation_requested:
            return RetryLater(RetryReason.DEALLOCATION_REQUESTED)
        if not can_be_reserved(claim, plan.consumer, plan.limit):
            return Impossible(ImpossibleReason.FULL)
        return None

    def _next_write(self) -> tuple[Phase, ApiRequest] | None:
        """The request that the claim still needs, if any."""
        claim, plan = self.claim, self.plan
        # A control plane controller protects what it allocates by itself.
        ours = plan.finalizer and (claim.allocation is None or not claim.allocation.controller)
        finalizer = (
            patches.add_finalizer(claim, version=plan.version, finalizer=plan.finalizer)
            if ours
            else None
        )
        if finalizer is not None:
            return Phase.FINALIZER, finalizer
        if claim.allocation is None:
            return Phase.ALLOCATION, patches.allocate(
                claim,
                plan.allocation if plan.encoded is None else plan.encoded,
                plan.consumer,
                version=plan.version,
                finalizer=plan.finalizer,
                timestamp=plan.timestamp,
                extra_status=plan.extra_status,
            )
        request = patches.reserve(
            claim, plan.consumer, version=plan.version, timestamp=plan.timestamp
        )
        return None if request is None else (Phase.RESERVATION, request)

    def _send(self, phase: Phase, request: ApiRequest) -> "ClaimBinding":
        return attrs.evolve(self, phase=phase, request=request)

    def _end(self, outcome: Outcome) -> "ClaimBinding":
        return attrs.evolve(self, phase=Phase.OVER, request=None, outcome=outcome)


def check_returned(claim: ResourceClaim, key: ObjectKey) -> ResourceClaim:
    """The claim, if it can be what the API server has stored under the key.

    Without a name in ``key`` the API server chose it. Raises ``MalformedObjectError``: such an
    answer says nothing about the claim, least of all that it is gone or another one.
    """
    metadata = claim.metadata
    if not metadata.name or metadata.key != ObjectKey(key.namespace, key.name or metadata.name):
        problem = f"is not that of {key}, which was asked for"
    elif not metadata.uid or not metadata.resource_version:
        problem = "lacks the uid or resourceVersion that every stored object has"
    elif not (metadata.resource_version.isascii() and metadata.resource_version.isdigit()):
        # Nobody could tell it from other copies; it would get lost on its way to a cache.
        problem = "has a resourceVersion that is no decimal number"
    else:
        return claim
    name = str(metadata.key) if metadata.name else ""
    raise MalformedObjectError("ResourceClaim", name, "metadata", problem)


def start_binding(claim: ResourceClaim, plan: BindingPlan) -> ClaimBinding:
    """The first state for ``claim``, the newest copy known.

    There may be nothing to send: the claim may be bound already, or not to be had.
    Raises ``PatchError`` if the copy lacks a name, or a UID or resourceVersion that is
    needed to guard a change.
    """
    return ClaimBinding(plan, claim.metadata.uid, claim, Phase.OVER)._decide()


def _refusal(causes: tuple[Cause, ...], status: int | None) -> Impossible:
    if Cause.MISSING in causes:
        return Impossible(ImpossibleReason.GONE)
    return Impossible(ImpossibleReason.REFUSED, status or 0)
