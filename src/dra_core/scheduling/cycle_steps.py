"""What a cycle does when it has picked a node, or found none: the four steps with requests.

What may live here: ``CycleSteps``, the mutable part of one attempt, and its sequences of
requests. When which may begin is ``cycle``'s business; how one claim is written is in
``cycle_requests``.
"""

from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, datetime

import attrs

from dra_core.api.names import ObjectKey
from dra_core.api.objects import ResourceClaim
from dra_core.api.request import ApiRequest, Cause
from dra_core.claims.binding import RetryLater, RetryReason, same_allocation
from dra_core.claims.deallocation import Deallocation, choose_deallocation
from dra_core.claims.reservation import has_consumer, pod_reference
from dra_core.errors import DraError, MalformedObjectError
from dra_core.scheduling.binding_conditions import BindingState, binding_status
from dra_core.scheduling.context import ContextRecord, delete_context
from dra_core.scheduling.context_deallocation import Deallocated, start_deallocation
from dra_core.scheduling.context_nodes import ReserveAnswer, propose_node
from dra_core.scheduling.context_publishing import NotPublished
from dra_core.scheduling.cycle_claims import CycleSettings, HeldClaim, pending_entries
from dra_core.scheduling.cycle_classic import Negotiation
from dra_core.scheduling.cycle_kinds import ClaimKind
from dra_core.scheduling.cycle_nodes import SpecialClaim
from dra_core.scheduling.cycle_requests import (
    ApiAnswer,
    Steps,
    Surroundings,
    bind_claim,
    deallocate_claim,
    is_done,
    newest_copy,
    publish_context,
    read_uncertain,
    remove_claim,
    unreserve_claim,
)
from dra_core.scheduling.cycle_verdicts import (
    PASSED,
    NodeFits,
    NodeUnfit,
    NodeVerdict,
    Stopped,
    StopReason,
    TroubleKind,
    Verdict,
    stop_for_nodes,
)
from dra_core.scheduling.errors import ClaimInFlightError, InFlightError
from dra_core.scheduling.extended_claim import create_claim, record_in_pod, take_back_in_pod


@attrs.define(eq=False)
class CycleSteps:
    """One attempt: what it holds, and what it does with it.

    ``held`` are the pod's claims; ``special`` says how a claim for extended resources would
    be made, ``made`` is it once a node was picked, and ``recorded`` says that the pod's status
    may name it. ``record`` is the state of the negotiation, if claims of drivers are there.
    ``deadline`` is when waiting for devices ends.
    """

    around: Surroundings
    kinds: Sequence[ClaimKind]
    settings: CycleSettings
    held: list[HeldClaim]
    special: SpecialClaim | None = None
    negotiation: Negotiation | None = None
    record: ContextRecord | None = None
    session: Hashable = None
    fits: NodeFits | None = None
    made: HeldClaim | None = None
    recorded: bool = False
    deadline: datetime | None = None

    # --- reserve -------------------------------------------------------------------------

    def reserve(self, fits: NodeFits, fitting: Sequence[str]) -> Verdict:
        """Pick a node: negotiate it with drivers, or take the devices in flight."""
        self.fits = fits
        waiting = pending_entries(self.held, by_driver=True)
        if waiting and self.negotiation is not None and self.record is not None:
            proposal = propose_node(
                self.record,
                fits.node.name,
                fitting,
                waiting,
                self.negotiation.sample,
                others_to_allocate=bool(fits.planned),
            )
            self.record = proposal.record
            if proposal.answer is ReserveAnswer.WAIT:
                return Stopped(StopReason.WAIT_FOR_DRIVER, waiting[0])
            return PASSED  # to be published by pre-bind, or by unreserve
        return self._take(fits)

    def _take(self, fits: NodeFits) -> Verdict:
        """Take the devices in flight: all of them, or none."""
        by_uid = {one.uid: one for one in self.held}
        to_start: list[ResourceClaim] = []
        for planned in fits.planned:
            claim, allocation = planned.claim, planned.allocation
            one = by_uid.get(claim.metadata.uid)
            if one is None and self.special is not None:
                consumer = pod_reference(self.around.pod)
                one = self.made = HeldClaim(("",), self.special.kind, claim, consumer)
            if one is not None:
                one.allocation, one.is_new = allocation, True
            to_start.append(attrs.evolve(claim, allocation=allocation))
        to_start += [
            attrs.evolve(one.claim, allocation=one.allocation)
            for one in self.held
            if one.in_flight and not one.maybe_written and not self._was_written(one)
        ]
        basis = next((kind.basis for kind in self.kinds if kind.basis is not None), None)
        tracker, uid = self.around.tracker, self.around.pod.metadata.uid
        for one in self.held:
            if one.maybe_written:
                one.taken = tracker.resume(one.uid, uid)
                if not one.taken:  # another attempt of this pod has it, or has found out
                    return Stopped(StopReason.IN_FLIGHT, one.entry, retry=True)
        try:
            tracker.start(to_start, uid, session=self.session, basis=basis)
        except ClaimInFlightError as error:
            return Stopped(StopReason.IN_FLIGHT, cause=error)
        except InFlightError as error:
            return Stopped(StopReason.TAKEN, retry=True, cause=error)
        started = {claim.metadata.uid for claim in to_start}
        for one in self._all_held():
            one.taken = one.taken or one.uid in started
        return PASSED

    def _was_written(self, one: HeldClaim) -> bool:
        """Whether another pod of the gang has written what it shares with this one."""
        claim = newest_copy(self.around, one)
        return claim is not None and same_allocation(claim.allocation, one.allocation)

    # --- pre-bind ------------------------------------------------------------------------

    def pre_bind(self, now: datetime) -> Steps[Verdict | None]:
        """Write everything; ``None``: written, but devices are not ready yet."""
        fits = self.fits
        if fits is None or pending_entries(self.held, by_driver=True):
            return (yield from self._negotiate())
        timestamp = api_time(now) if self.settings.binding_conditions else ""
        for one in self.held:
            stopped = yield from bind_claim(self.around, one, fits.node, timestamp)
            if stopped is not None:
                return stopped
        if self.made is not None:
            stopped = yield from self._bind_special(self.made, fits, timestamp)
            if stopped is not None:
                return stopped
        elif self.around.pod.extended_resource_claim_status is not None:
            # Of an earlier attempt: the kubelet would look for a claim that is removed.
            stopped = yield from self._record(take_back_in_pod(self.around.pod))
            if stopped is not None:
                return stopped
        return self.readiness(now)

    def _negotiate(self) -> Steps[Verdict]:
        """Publish what was recorded, and stop: drivers have to answer first."""
        outcome = yield from self._publish()
        if isinstance(outcome, DraError):
            return Stopped(StopReason.INVALID, retry=True, cause=outcome)
        if isinstance(outcome, NotPublished):
            return Stopped(StopReason.NOT_PUBLISHED, retry=True, cause=outcome)
        return Stopped(StopReason.WAIT_FOR_DRIVER)

    def _publish(self) -> Steps[NotPublished | DraError | None]:
        """Publish; why that failed. A copy of the object that is no good is an error."""
        if self.record is None or self.negotiation is None:
            return None
        try:
            last = yield from publish_context(self.around, self.record, self.negotiation.policy)
        except DraError as error:
            return error
        self.record = last.record
        return last.outcome if isinstance(last.outcome, NotPublished) else None

    def _bind_special(
        self, made: HeldClaim, fits: NodeFits, timestamp: str
    ) -> Steps[Stopped | None]:
        """Create the claim for extended resources, bind it, tell the kubelet about it."""
        form, made_up = made.kind.form, made.uid
        request = create_claim(made.claim, version=form.version)
        answer = yield request
        created = None
        if is_done(request, answer):
            created = self.around.read(form, answer, ObjectKey(request.target.namespace, ""))
        if created is None:
            # If it was created all the same, an attempt after the cache shows it removes it.
            return Stopped(StopReason.NOT_CREATED, retry=True, cause=answer.status)
        self.around.tracker.created(made_up, created)
        made.claim, made.from_server, made.created = created, True, True
        stopped = yield from bind_claim(self.around, made, fits.node, timestamp)
        if stopped is not None:
            return stopped
        self.recorded = True
        return (yield from self._record(record_in_pod(self.around.pod, made.claim, fits.mappings)))

    def _record(self, request: ApiRequest) -> Steps[Stopped | None]:
        answer = yield request
        if not is_done(request, answer):
            return Stopped(StopReason.NOT_RECORDED, retry=True, cause=answer.status)
        return None

    # --- waiting for devices -------------------------------------------------------------

    def readiness(self, now: datetime) -> Verdict | None:
        """Whether all devices are ready, as the newest copies say; ``None``: not yet."""
        self.deadline = None
        waits = False
        for one in self._all_held():
            claim = newest_copy(self.around, one)
            lost = self._lost(one, claim)
            if lost is not None or claim is None:
                return lost
            if not self.settings.binding_conditions:
                continue
            try:
                status = binding_status(claim, self.settings.binding_timeout)
            except DraError as error:
                return Stopped(StopReason.INVALID, one.entry, retry=True, cause=error)
            state = status.state(now)
            if state in _UNUSABLE:
                return Stopped(_UNUSABLE[state], one.entry, retry=True, cause=status)
            if state is BindingState.WAITING:
                waits = True
                times = [t for t in (self.deadline, status.deadline) if t is not None]
                self.deadline = min(times, default=None)
        return None if waits else PASSED

    def _lost(self, one: HeldClaim, claim: ResourceClaim | None) -> Stopped | None:
        """Why a claim that was bound is not the pod's any more."""
        if claim is None:
            return Stopped(StopReason.CLAIM_LOST, one.entry, retry=True)
        if claim.allocation is None:
            why = RetryLater(RetryReason.DEALLOCATED)
        elif not same_allocation(claim.allocation, one.allocation):
            why = RetryLater(RetryReason.ALLOCATION_CHANGED)
        elif has_consumer(claim, one.consumer.uid):
            return None
        else:
            return Stopped(StopReason.CLAIM_LOST, one.entry, retry=True)
        return Stopped(StopReason.NOT_BOUND, one.entry, retry=True, cause=why)

    def _all_held(self) -> Iterator[HeldClaim]:
        yield from self.held
        if self.made is not None:
            yield self.made

    # --- unreserve -----------------------------------------------------------------------

    def unreserve(self) -> Steps[Verdict]:
        """Publish what drivers have to know all the same, then give everything back.

        May be begun again after an exception: what is undone already is not done twice.
        """
        if pending_entries(self.held, by_driver=True):
            outcome = yield from self._publish()
            if outcome is not None:
                key = str(self.around.pod.metadata.key)
                self.around.trouble(TroubleKind.PUBLISH, key, outcome)
        for one in self._all_held():
            self._release(one)
        for one in self.held:
            yield from self._give_up_reservation(one)
        if self.made is not None and self.made.created:
            claim = newest_copy(self.around, self.made) or self.made.claim
            yield from remove_claim(self.around, self.made.kind.form, claim)
        if self.recorded:
            yield from self._take_back()
        return PASSED

    def _take_back(self) -> Steps[None]:
        """The pod's status must not go on naming a claim that is removed.

        The next attempt sees to that, too, but only if it is made with a copy that shows it.
        """
        request = take_back_in_pod(self.around.pod)
        answer = yield request
        self.recorded = False
        meaning = request.meaning(answer.status)
        if not is_done(request, answer) and Cause.MISSING not in meaning.causes:
            key = str(self.around.pod.metadata.key)
            self.around.trouble(TroubleKind.TAKE_BACK, key, answer.status)

    def _give_up_reservation(self, one: HeldClaim) -> Steps[None]:
        try:
            yield from unreserve_claim(self.around, one)
        except DraError as error:
            # A copy from which no request can be made must not stop what comes after.
            self.around.trouble(TroubleKind.UNRESERVE, str(one.claim.metadata.key), error)

    def _release(self, one: HeldClaim) -> None:
        """Give the devices back, unless it is not known whether they are allocated by now."""
        tracker, uid = self.around.tracker, self.around.pod.metadata.uid
        if one.maybe_written:
            if one.taken:
                tracker.leave(one.uid, uid)
            return
        if one.taken:
            one.taken = False
            tracker.release(one.uid, uid)
        if one.from_server:
            # Releasing forgets what was assumed; what the server returned stays true.
            self.around.assume(one.claim)

    # --- post-filter ---------------------------------------------------------------------

    def post_filter(self, verdicts: Sequence[NodeVerdict]) -> Steps[Stopped]:
        """No node fits: get one thing out of the way, if one can be; why the attempt ends."""
        unclear = [one for one in self.held if one.maybe_written]
        for one in unclear:
            yield from read_uncertain(self.around, one)
        if unclear:
            return Stopped(StopReason.READ_AGAIN, unclear[0].entry, retry=True)
        if self.special is not None and self.special.left_over:
            for claim in self.special.left_over:
                yield from remove_claim(self.around, self.special.kind.form, claim)
            return Stopped(StopReason.LEFT_OVER, retry=True)
        unfit = stop_for_nodes(verdicts)
        chosen = self._choose(verdicts)
        if chosen is None:
            return unfit
        one, deallocation = chosen
        if deallocation.deselect_first:
            done = yield from self._ask_driver(one, deallocation)
            asked = Stopped(StopReason.DEALLOCATION_REQUESTED, one.entry)
        else:
            form, claim = one.kind.form, deallocation.claim
            done = yield from deallocate_claim(self.around, form, claim, deallocation.request)
            asked = Stopped(StopReason.DEALLOCATED, one.entry, retry=True)
        return asked if done else attrs.evolve(unfit, retry=True)

    def _choose(self, verdicts: Sequence[NodeVerdict]) -> tuple[HeldClaim, Deallocation] | None:
        """The first claim in the pod's order that is in the way and may be deallocated."""
        in_the_way = {
            uid for verdict in verdicts if isinstance(verdict, NodeUnfit)
            for uid in verdict.in_the_way
        }  # fmt: skip
        for one in self.held:
            claim, kind = newest_copy(self.around, one), one.kind
            if claim is None:
                continue
            try:
                chosen = choose_deallocation(
                    self.around.pod,
                    [claim],
                    in_the_way,
                    version=kind.form.version,
                    by_scheduler=kind.by_scheduler,
                    delayed=kind.delayed,
                    extra_cleared=kind.form.extra_cleared,
                )
            except DraError as error:
                self.around.trouble(TroubleKind.DEALLOCATE, str(claim.metadata.key), error)
                continue
            if chosen is not None and (not chosen.deselect_first or self.record is not None):
                return one, chosen
        return None

    def _ask_driver(self, one: HeldClaim, chosen: Deallocation) -> Steps[bool]:
        """Remove the selected node, then ask the claim's controller to deallocate it."""
        if self.record is None or self.negotiation is None:
            return False
        key = str(chosen.claim.metadata.key)
        machine = start_deallocation(self.record, chosen, self.negotiation.policy)
        while machine.request is not None:
            answer = yield machine.request
            try:
                machine = machine.answered(answer.status, answer.body)
            except MalformedObjectError as error:
                self.around.trouble(TroubleKind.UNREADABLE, key, error)
                machine = machine.answered(None)
            except DraError as error:
                # The object that was read cannot be changed.
                self.around.trouble(TroubleKind.DEALLOCATE, key, error)
                return False
        self.record = machine.record
        outcome = machine.outcome
        if not isinstance(outcome, Deallocated):
            self.around.trouble(TroubleKind.DEALLOCATE, key, outcome)
            return False
        returned = self.around.read(
            one.kind.form, ApiAnswer(200, outcome.body), chosen.claim.metadata.key
        )
        if returned is not None:
            self.around.assume(returned)
        return True

    # --- post-bind -----------------------------------------------------------------------

    def post_bind(self) -> Steps[Verdict]:
        """The negotiation is over: delete its object, without asking whether it exists."""
        if self.record is None or self.negotiation is None:
            return PASSED
        request = delete_context(self.record, self.negotiation.policy)
        answer = yield request
        if not is_done(request, answer):
            key = str(self.around.pod.metadata.key)
            self.around.trouble(TroubleKind.DELETE_CONTEXT, key, answer.status)
        return PASSED


_UNUSABLE = {
    BindingState.FAILED: StopReason.DEVICE_FAILED,
    BindingState.OVERDUE: StopReason.DEVICE_OVERDUE,
}


def api_time(time: datetime) -> str:
    """A time with a time zone in the form of the API: UTC, whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
