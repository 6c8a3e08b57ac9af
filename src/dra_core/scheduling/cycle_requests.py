"""The parts of a cycle that talk to the API server: what to send, and what answers mean.

What may live here: sequences of requests as generators. They yield one request at a time
and are sent its answer; nothing here sends anything. What is known from an answer is
stored at once, whatever happens afterwards (k/k#133590).
"""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

import attrs

from dra_core.api.core import Node, Pod
from dra_core.api.names import ObjectKey
from dra_core.api.objects import ResourceClaim
from dra_core.api.request import ApiRequest, Cause, Next
from dra_core.claims import patches
from dra_core.claims.binding import (
    ClaimBinding,
    Impossible,
    ImpossibleReason,
    Phase,
    RetryLater,
    RetryReason,
    check_returned,
    same_allocation,
    start_binding,
)
from dra_core.claims.reservation import without_consumers
from dra_core.errors import DraError, MalformedObjectError
from dra_core.scheduling.context import ContextPolicy, ContextRecord
from dra_core.scheduling.context_publishing import ContextPublishing, start_publishing
from dra_core.scheduling.cycle_claims import HeldClaim, allocation_suits
from dra_core.scheduling.cycle_kinds import ClaimForm
from dra_core.scheduling.cycle_verdicts import Stopped, StopReason, Trouble, TroubleKind
from dra_core.scheduling.errors import (
    ObjectNotFoundError,
    ObjectReplacedError,
    StoreError,
    VersionTooOldError,
    WrongTypeError,
)
from dra_core.scheduling.in_flight import ClaimTracker

MAX_ROUNDS = 5
"""Times that the removal of a claim is begun anew before it is left to the next attempt."""

T = TypeVar("T")


class ApiAnswer(NamedTuple):
    """What the API server answered: the HTTP status, ``None`` for nothing, and the JSON."""

    status: int | None
    body: Any = None


Steps = Generator[ApiRequest, ApiAnswer, T]
"""Requests one after the other, and what came of them."""


@attrs.frozen
class Surroundings:
    """What all sequences of one cycle share. ``report`` is told of what only goes wrong."""

    pod: Pod
    tracker: ClaimTracker
    report: Callable[[Trouble], object]

    def trouble(self, kind: TroubleKind, subject: str, cause: object = None) -> None:
        """Report something that failed without ending anything."""
        self.report(Trouble(kind, subject, cause))

    def assume(self, claim: ResourceClaim) -> None:
        """Use a claim that the API server returned, before the informer shows it.

        That the cache is ahead, or does not know it yet, is no trouble.
        """
        key = str(claim.metadata.key)
        try:
            self.tracker.cache.assume(claim)
        except (VersionTooOldError, ObjectNotFoundError, ObjectReplacedError):
            pass  # what the cache shows is newer, or the informer will show the object
        except (StoreError, WrongTypeError) as error:
            self.trouble(TroubleKind.NOT_ASSUMED, key, error)

    def succeeded(self, uid: str, claim: ResourceClaim) -> None:
        """The allocation that was in flight for ``uid`` is stored in ``claim``."""
        try:
            self.tracker.succeeded(uid, claim)
        except (StoreError, WrongTypeError) as error:
            self.trouble(TroubleKind.NOT_ASSUMED, str(claim.metadata.key), error)

    def read(self, form: ClaimForm, answer: ApiAnswer, key: ObjectKey) -> ResourceClaim | None:
        """The claim of that key in a successful answer, if there is one."""
        try:
            return None if answer.body is None else check_returned(form.read(answer.body), key)
        except MalformedObjectError as error:
            self.trouble(TroubleKind.UNREADABLE, str(key), error)
            return None


def is_done(request: ApiRequest, answer: ApiAnswer) -> bool:
    """Whether the answer says that what was wanted is so."""
    return request.meaning(answer.status).then is Next.DONE


# Binding a claim


def bind_claim(
    around: Surroundings, held: HeldClaim, node: Node, timestamp: str
) -> Steps[Stopped | None]:
    """Allocate and reserve a claim, as far as that is not done yet; why it cannot be."""
    newest = newest_copy(around, held)
    if newest is None or held.allocation is None:
        replaced = around.tracker.cache.find(held.claim.metadata.key) is not None
        why = ImpossibleReason.OTHER_INCARNATION if replaced else ImpossibleReason.GONE
        held.maybe_written = False
        return _lost(held, Impossible(why))
    pod_uid = around.pod.metadata.uid
    if around.tracker.doubts.has(held.uid, pod_uid):
        # Reserving again does no harm; to be bound without a reservation would.
        newest = without_consumers(newest, [pod_uid])
    plan = held.kind.binding_plan(
        newest,
        held.allocation,
        held.consumer,
        is_new=held.is_new and _is_ours(around, held),
        suits=lambda allocation: allocation_suits(allocation, node),
        timestamp=timestamp,
    )
    try:
        binding = start_binding(newest, plan)
        while binding.request is not None:
            if binding.phase is Phase.ALLOCATION and not _is_ours(around, held):
                return _outcome(around, held, binding, RetryLater(RetryReason.DEALLOCATED))
            answer = yield binding.request
            try:
                binding = _answered(around, binding, answer)
            except BaseException:
                # What was sent may have been carried out; the next attempt finds out.
                held.maybe_written |= binding.uncertain or binding.phase is Phase.ALLOCATION
                held.maybe_reserved |= binding.uncertain or binding.phase is Phase.RESERVATION
                raise
            _note(around, held, binding)
    except DraError as error:
        return Stopped(StopReason.INVALID, held.entry, retry=True, cause=error)
    return _outcome(around, held, binding)


def _answered(around: Surroundings, binding: ClaimBinding, answer: ApiAnswer) -> ClaimBinding:
    try:
        return binding.answered(answer.status, answer.body)
    except MalformedObjectError as error:
        subject = str(binding.claim.metadata.key)
        around.trouble(TroubleKind.UNREADABLE, subject, error)
        return binding.answered(None)


def _note(around: Surroundings, held: HeldClaim, binding: ClaimBinding) -> None:
    """Store at once what the API server has shown, whatever comes next."""
    if not binding.from_server or binding.claim.metadata.uid != held.uid:
        return
    held.claim, held.from_server = binding.claim, True
    if held.claim.allocation is not None and same_allocation(
        held.claim.allocation, held.allocation
    ):
        around.succeeded(held.uid, held.claim)
    else:
        around.assume(held.claim)


def _is_ours(around: Surroundings, held: HeldClaim) -> bool:
    """Whether the allocation is still in flight for this pod, and so may be written.

    A peer of the gang may have written the shared entry, and the claim may have lost its
    allocation again since: then the devices may be somebody else's by now.
    """
    pending = around.tracker.pending(held.uid)
    return (
        pending is not None
        and around.pod.metadata.uid in pending.users
        and same_allocation(pending.allocation, held.allocation)
    )


def _outcome(
    around: Surroundings,
    held: HeldClaim,
    binding: ClaimBinding,
    stopped: RetryLater | None = None,
) -> Stopped | None:
    outcome = stopped or binding.outcome
    # A copy that was read in this attempt is newer than any earlier write.
    held.maybe_written = held.maybe_written and not binding.from_server
    if isinstance(outcome, Impossible):
        return _lost(held, outcome)
    if isinstance(outcome, RetryLater):
        held.maybe_written |= outcome.may_have_happened and held.is_new
        held.maybe_reserved = outcome.may_have_happened or outcome.undo_failed
        return Stopped(StopReason.NOT_BOUND, held.entry, retry=True, cause=outcome)
    # Bound, perhaps with an allocation that another scheduler made and that suits the node,
    # or that another pod of the gang has written: nothing is in flight any more.
    held.claim, held.allocation, held.is_new = binding.claim, binding.claim.allocation, False
    held.maybe_written = False
    around.tracker.doubts.end(held.uid, around.pod.metadata.uid)
    around.succeeded(held.uid, binding.claim)
    return None


def _lost(held: HeldClaim, outcome: Impossible) -> Stopped:
    return Stopped(StopReason.CLAIM_LOST, held.entry, retry=True, cause=outcome)


# Undoing


def unreserve_claim(around: Surroundings, held: HeldClaim) -> Steps[None]:
    """Take the pod's reservation off a claim; a failure is reported, not retried."""
    claim = newest_copy(around, held)
    if claim is None:
        return
    version = held.kind.form.version
    request = patches.unreserve(claim, around.pod, version=version)
    if request is None and held.maybe_reserved and claim.allocation is not None:
        # A reservation may have been written that this copy does not show.
        request = patches.remove_consumer(claim, around.pod.metadata.uid, version=version)
    if request is None:
        return
    answer = yield request
    key, doubts, uid = str(claim.metadata.key), around.tracker.doubts, around.pod.metadata.uid
    done = is_done(request, answer)
    returned = around.read(held.kind.form, answer, claim.metadata.key) if done else None
    if returned is not None:
        doubts.end(held.uid, uid)
        held.claim = returned
        around.assume(returned)
    elif Cause.MISSING not in request.meaning(answer.status).causes:
        # What the cache shows must not pass for a reservation any more: the next attempt
        # would bind the pod without one.
        doubts.add(held.uid, uid)
        if not done:
            around.trouble(TroubleKind.UNRESERVE, key, answer.status)


def newest_copy(around: Surroundings, held: HeldClaim) -> ResourceClaim | None:
    """The newest copy of a claim, ``None`` if the claim is gone, or another has its name."""
    cache = around.tracker.cache
    cached = cache.find(held.claim.metadata.key)
    if cached is None:
        # A claim that was just created is in flight until the cache shows it.
        unseen = held.created and around.tracker.pending(held.uid) is not None
        return held.claim if unseen else None
    if cached.metadata.uid != held.uid:
        return None
    if held.from_server and cache.version_of(held.claim) > cache.version_of(cached):
        return held.claim
    return cached


def deallocate_claim(
    around: Surroundings, form: ClaimForm, claim: ResourceClaim, request: ApiRequest
) -> Steps[bool]:
    """Send a request that takes a claim's allocation away, or asks for that."""
    answer = yield request
    key = str(claim.metadata.key)
    if not is_done(request, answer):
        around.trouble(TroubleKind.DEALLOCATE, key, answer.status)
        return False
    returned = around.read(form, answer, claim.metadata.key)
    if returned is not None:
        around.assume(returned)
    return True


def read_uncertain(around: Surroundings, held: HeldClaim, *, last: bool = False) -> Steps[bool]:
    """Find out what became of a write of an earlier attempt, and let its devices go.

    If the claim is allocated, the cache holds them from now on. ``last``: the pod makes no
    other attempt.
    """
    request = patches.get_claim(held.claim, held.kind.form.version)
    answer = yield request
    key = held.claim.metadata.key
    gone = Cause.MISSING in request.meaning(answer.status).causes
    claim = around.read(held.kind.form, answer, key) if is_done(request, answer) else None
    if not gone and claim is None:
        around.trouble(TroubleKind.READ, str(key), answer.status)
        return False
    ours = claim if claim is not None and claim.metadata.uid == held.uid else None
    if ours is not None and same_allocation(ours.allocation, held.allocation):
        around.succeeded(held.uid, ours)
        return True
    pending, pod = around.tracker.pending(held.uid), around.pod.metadata.uid
    if last or (pending is not None and pod in pending.unclear):
        # Otherwise another attempt of the pod goes on with it, and may be writing it now.
        around.tracker.release(held.uid, pod)
    if ours is not None:
        around.assume(ours)
    return True


# The special claim


def remove_claim(around: Surroundings, form: ClaimForm, claim: ResourceClaim) -> Steps[bool]:
    """Remove a special claim: the allocation, then the finalizer, then the claim.

    In this order it is never allocated without finalizer. What comes back between the
    steps is built on; after a conflict the claim is read again.
    """
    key, uid = str(claim.metadata.key), claim.metadata.uid
    status: int | None = None
    rounds = 0
    while True:
        try:
            request = _next_removal(form, claim)
        except DraError as error:
            around.trouble(TroubleKind.REMOVE, key, error)
            return False
        answer = yield request
        status = answer.status
        if is_done(request, answer) and request.verb == "delete":
            around.tracker.remove(uid)
            return True
        if not is_done(request, answer) or answer.body is None:
            rounds += 1
            if rounds > MAX_ROUNDS:
                break
            request = patches.get_claim(claim, form.version)
            answer = yield request
            status = answer.status
        if Cause.MISSING in request.meaning(answer.status).causes:
            around.tracker.remove(uid)
            return True
        done = is_done(request, answer)
        newer = around.read(form, answer, claim.metadata.key) if done else None
        if newer is None:
            break
        if newer.metadata.uid != uid:
            around.tracker.remove(uid)
            return True
        around.assume(newer)
        claim = newer
    around.trouble(TroubleKind.REMOVE, key, status)
    return False


def _next_removal(form: ClaimForm, claim: ResourceClaim) -> ApiRequest:
    if claim.allocation is not None:
        return patches.deallocate(claim, version=form.version, extra_cleared=form.extra_cleared)
    finalizer = patches.remove_finalizer(claim, version=form.version)
    if finalizer is not None:
        return finalizer
    return patches.delete_claim(claim, version=form.version)


# Negotiating


def publish_context(
    around: Surroundings, record: ContextRecord, policy: ContextPolicy
) -> Steps[ContextPublishing]:
    """Publish what is recorded of the negotiation with drivers; the last state.

    Raises what ``start_publishing`` raises.
    """
    publishing = start_publishing(record, policy)
    while publishing.request is not None:
        answer = yield publishing.request
        try:
            publishing = publishing.answered(answer.status, answer.body)
        except MalformedObjectError as error:
            around.trouble(TroubleKind.UNREADABLE, str(record.key), error)
            publishing = publishing.answered(None)
    return publishing
