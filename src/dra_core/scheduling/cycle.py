"""One pod's scheduling cycle: what the host has to do next comes back as data.

What may live here: ``PodCycle``, which knows when what may happen, by the table in
``cycle_table``. What is done in each step is in ``cycle_claims``, ``cycle_nodes`` and
``cycle_steps``.

The part in which pods compete makes no request and never waits:

    cycle = PodCycle(pod, tracker, kinds)
    cycle.pre_enqueue()                               # are the claims there?
    cycle.pre_filter(now)                             # is looking at nodes useful?
    fitting = [n for n in nodes if isinstance(cycle.filter(n), NodeFits)]
    scores = cycle.score([n.name for n in fitting])
    cycle.reserve(best)                               # its devices are taken from now on

Each returns a verdict; after one that is ``Stopped`` look at ``cycle.state``. The rest may
run beside the next pod's cycle. It makes requests, one at a time:

    request = cycle.pre_bind(now)
    while request is not None:
        request = cycle.answered(*send(request))

After that the pod can be bound (``BINDABLE``), has to wait for its devices (``WAITING``), or
the attempt has failed (``BROKEN``) and is undone by ``unreserve``, in the same way. If no
node fits ``post_filter`` gets a claim out of the way, if it can; ``post_bind`` tidies up.

Everything that is remembered between two attempts is in the caches, the tracker, and for
pods with claims of drivers in ``cycle.context``. A cycle that is dropped before ``reserve``
leaves nothing behind.

Source: the extension points of the Kubernetes scheduler; KEP-3063, KEP-4381.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from dra_core.api.core import Node, Pod, PodGroup
from dra_core.api.request import ApiRequest
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.scheduling.context import ContextRecord, context_record
from dra_core.scheduling.cycle_claims import (
    DEFAULT_SETTINGS,
    ClaimGathering,
    CycleSettings,
    HeldClaim,
    pending_entries,
)
from dra_core.scheduling.cycle_classic import Negotiation
from dra_core.scheduling.cycle_kinds import ClaimKind
from dra_core.scheduling.cycle_nodes import ExtendedResources, NodeFilter, special_claim
from dra_core.scheduling.cycle_requests import ApiAnswer, Steps, Surroundings
from dra_core.scheduling.cycle_steps import CycleSteps
from dra_core.scheduling.cycle_table import MOVES, CycleEvent, CycleResult, CycleState
from dra_core.scheduling.cycle_verdicts import (
    PASSED,
    NodeFits,
    NodeVerdict,
    Passed,
    Stopped,
    StopReason,
    Trouble,
    Verdict,
)
from dra_core.scheduling.errors import (
    ContextNotOwnedError,
    CycleStateError,
    NotFilteredError,
)
from dra_core.scheduling.in_flight import ClaimTracker
from dra_core.scheduling.score import normalized
from dra_core.scheduling.versions import read_version
from dra_core.scheduling.wakeups import pre_enqueue


class PodCycle:
    """One attempt to schedule one pod. Make a new one for each attempt.

    ``tracker`` knows the claims and what is in flight. ``kinds`` are the kinds of claims
    that can be scheduled, see ``ClaimKind``; the first that handles a claim has it.
    ``settings`` are the cluster's. ``group`` is the pod's PodGroup where it has claims of
    its own; ``session`` what the pods of a gang have in common to share allocations that
    are not written yet. ``negotiation`` is needed for claims that drivers have to allocate,
    ``extended`` for extended resources that classes serve.

    One thread at a time calls it, but any number may call ``filter``. A call out of order
    raises ``CycleStateError`` and changes nothing.

    From ``reserve`` to ``BOUND`` or ``OVER`` it is the only cycle of its pod: while one is on
    the way with a claim, another stops at ``IN_FLIGHT``. Bring it to its end, also when
    sending a request failed in whatever way, which is ``answered(None)``.
    """

    def __init__(
        self,
        pod: Pod,
        tracker: ClaimTracker,
        kinds: Sequence[ClaimKind],
        *,
        settings: CycleSettings = DEFAULT_SETTINGS,
        group: PodGroup | None = None,
        session: Hashable = None,
        negotiation: Negotiation | None = None,
        extended: ExtendedResources | None = None,
    ) -> None:
        self._gathering = ClaimGathering(pod, tracker, tuple(kinds), settings, group, session)
        self._negotiation = negotiation
        self._extended = extended
        self._troubles: list[Trouble] = []
        self._steps = CycleSteps(
            Surroundings(pod, tracker, self._troubles.append), tuple(kinds), settings, [],
            negotiation=negotiation, session=session,
        )  # fmt: skip
        self._filter = NodeFilter((), ())
        self._nodes: dict[str, NodeVerdict] = {}
        self._fitting: tuple[str, ...] = ()
        self._state = CycleState.QUEUED
        self._verdict: Verdict = PASSED
        self._request: ApiRequest | None = None
        self._running: Steps[Verdict | None] | None = None

    # --- looking -------------------------------------------------------------------------

    @property
    def pod(self) -> Pod:
        """The pod."""
        return self._gathering.pod

    @property
    def state(self) -> CycleState:
        """Where the cycle stands."""
        return self._state

    @property
    def verdict(self) -> Verdict:
        """The last verdict about the pod; why the attempt ended, once it has."""
        return self._verdict

    @property
    def request(self) -> ApiRequest | None:
        """The request that waits for its answer."""
        return self._request

    @property
    def nodes(self) -> Mapping[str, NodeVerdict]:
        """What was found about each node, by name, in the order in which it was found."""
        return self._nodes

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What went wrong without ending anything, for the log."""
        return tuple(self._troubles)

    @property
    def deadline(self) -> datetime | None:
        """While waiting for devices: when to look again at the latest, if time can be up."""
        return self._steps.deadline

    @property
    def context(self) -> ContextRecord | None:
        """The negotiation with drivers, for ``Negotiation.record`` of the next attempt.

        What it knows of the object came from the API server: assume it. ``None`` for pods
        without claims of drivers.
        """
        return self._steps.record

    # --- before nodes are looked at ------------------------------------------------------

    def pre_enqueue(self) -> Verdict:
        """Whether an attempt is worth it: all claims are there, and the pod's to use.

        The same as ``wakeups.pre_enqueue``, which asks without a cycle.
        """
        self._check(CycleEvent.PRE_ENQUEUE)
        return self._judged(CycleEvent.PRE_ENQUEUE, pre_enqueue(self.pod, self._gathering.lookups))

    def pre_filter(self, now: datetime) -> Verdict:
        """Whether looking at nodes is useful: the first problem of a claim stops the pod.

        ``now`` is a time with a time zone; it tells which devices are overdue. Raises
        ``PodGroupMismatchError`` if the pod is not in its group, and ``ValueError`` for a
        time without zone.
        """
        self._check(CycleEvent.PRE_FILTER)
        return self._judged(CycleEvent.PRE_FILTER, self._prepare(_zoned(now)))

    def _prepare(self, now: datetime) -> Verdict:
        gathering, steps = self._gathering, self._steps
        held = gathering.gather(now)
        if isinstance(held, Stopped):
            return held
        steps.held = held
        pending = pending_entries(held, by_driver=True)
        if pending and self._negotiation is None:
            return Stopped(StopReason.UNKNOWN_KIND, pending[0])
        if self._negotiation is not None and any(map(_is_of_driver, held)):
            try:
                steps.record = _loaded(self.pod, self._negotiation)
            except ContextNotOwnedError as error:
                return Stopped(StopReason.CONTEXT_NOT_OWNED, retry=True, cause=error)
        kinds = gathering.kinds
        special = special_claim(self.pod, gathering.tracker, kinds, self._extended)
        if isinstance(special, Stopped):
            return special
        steps.special = special
        known = None if steps.record is None else steps.record.known
        self._filter = NodeFilter(held, kinds, steps.special, known)
        return PASSED

    # --- nodes ---------------------------------------------------------------------------

    def filter(self, node: Node) -> NodeVerdict:
        """Whether the pod fits on a node as far as its devices go, and what it would get.

        May be called by several threads, and again for a node that has changed.
        """
        self._check(CycleEvent.FILTER)
        verdict = self._nodes[node.name] = self._filter.on_node(node)
        return verdict

    def score(self, nodes: Iterable[str]) -> dict[str, int]:
        """How well the nodes serve prioritized lists, from 0 to 100.

        ``nodes`` are those that fit in every respect. Drivers are asked about them; without
        this call, as where only one node fits, about the one that is reserved. Raises
        ``NotFilteredError``.
        """
        self._check(CycleEvent.SCORE)
        fitting = {name: self._found(name).score for name in nodes}
        self._fitting = tuple(fitting)
        return normalized(fitting)

    def _found(self, name: str) -> NodeFits:
        found = self._nodes.get(name)
        if not isinstance(found, NodeFits):
            raise NotFilteredError(str(self.pod.metadata.key), name)
        return found

    def reserve(self, node: str) -> Verdict:
        """Pick a node. From now on nobody else gets the devices that the pod would get there.

        If this is ``Stopped``, or anything later fails, ``unreserve`` has to follow. With
        claims that drivers have to allocate nothing is taken: it passes if there is something
        to tell them, which ``pre_bind`` does. Raises ``NotFilteredError``.
        """
        self._check(CycleEvent.RESERVE)
        fits = self._found(node)
        return self._judged(CycleEvent.RESERVE, self._steps.reserve(fits, self._fitting))

    # --- requests ------------------------------------------------------------------------

    def pre_bind(self, now: datetime) -> ApiRequest | None:
        """Write the claims; the first request, ``None`` if there is nothing to send.

        ``now`` is noted as the time of the allocation. Raises ``ValueError`` for a time
        without zone.
        """
        self._check(CycleEvent.PRE_BIND)
        return self._begin(CycleEvent.PRE_BIND, self._steps.pre_bind(_zoned(now)))

    def look_again(self, now: datetime) -> Verdict | None:
        """Whether devices are ready, after a claim has changed or time is up; ``None``: not yet."""
        self._check(CycleEvent.LOOK_AGAIN)
        verdict = self._steps.readiness(_zoned(now))
        self._conclude(CycleEvent.LOOK_AGAIN, verdict)
        return verdict

    def unreserve(self) -> ApiRequest | None:
        """Undo the attempt; the first request, ``None`` if there is nothing to send.

        The verdict goes on saying why the attempt ended, which is ``UNDONE`` if it had passed
        so far. If an exception comes out, of a kind of claims for instance, the cycle is
        ``BROKEN`` again: unreserve once more, which skips what is undone already.
        """
        self._check(CycleEvent.UNRESERVE)
        if isinstance(self._verdict, Passed):
            self._verdict = Stopped(StopReason.UNDONE, retry=True)
        return self._begin(CycleEvent.UNRESERVE, self._steps.unreserve())

    def post_filter(self) -> ApiRequest | None:
        """No node fits: get a claim out of the way, if that can help; the first request.

        At most one claim per attempt. Call it when no node was found that fits in every
        respect; only what devices have to do with that counts here.
        """
        self._check(CycleEvent.POST_FILTER)
        verdicts = tuple(self._nodes.values())
        return self._begin(CycleEvent.POST_FILTER, self._steps.post_filter(verdicts))

    def post_bind(self) -> ApiRequest | None:
        """The pod is bound: tidy up; the first request, ``None`` if there is nothing to send."""
        self._check(CycleEvent.POST_BIND)
        return self._begin(CycleEvent.POST_BIND, self._steps.post_bind())

    def answered(self, status: int | None, body: Any = None) -> ApiRequest | None:
        """Go on after an answer to ``request``; the next request, ``None`` if that was the last.

        ``status`` is the HTTP status, ``None`` for no answer; ``body`` the decoded JSON of a
        success.
        """
        self._check(CycleEvent.ANSWERED)
        return self._advance(CycleEvent.ANSWERED, ApiAnswer(status, body))

    # --- inside --------------------------------------------------------------------------

    def _check(self, event: CycleEvent) -> None:
        if (self._state, event) not in MOVES:
            allowed = tuple(e.value for state, e in MOVES if state is self._state)
            key = str(self.pod.metadata.key)
            raise CycleStateError(key, self._state.value, event.value, allowed)

    def _move(self, event: CycleEvent, result: CycleResult) -> None:
        self._state = MOVES[self._state, event][result]

    def _judged(self, event: CycleEvent, verdict: Verdict) -> Verdict:
        self._conclude(event, verdict)
        return verdict

    def _conclude(self, event: CycleEvent, verdict: Verdict | None) -> None:
        """Note what came of an event, and move on. ``None``: devices are not ready."""
        if verdict is None:
            self._move(event, CycleResult.NOT_READY)
            return
        passed = isinstance(verdict, Passed)
        self._move(event, CycleResult.PASSED if passed else CycleResult.STOPPED)
        if not passed or self._state is not CycleState.OVER:
            # That everything is undone is no reason why the attempt ended.
            self._verdict = verdict

    def _begin(self, event: CycleEvent, steps: Steps[Verdict | None]) -> ApiRequest | None:
        self._running = steps
        return self._advance(event, None)

    def _advance(self, event: CycleEvent, answer: ApiAnswer | None) -> ApiRequest | None:
        """Run the steps to their next request, or to their end."""
        steps, self._request = self._running, None
        if steps is None:
            return None
        try:
            self._request = next(steps) if answer is None else steps.send(answer)
        except StopIteration as end:
            self._running = None
            self._conclude(event, end.value)
            return None
        except BaseException as error:
            # Not ours to handle; but what was begun can still be undone.
            self._running = None
            self._give_up(event, error)
            raise
        self._move(event, CycleResult.REQUEST)
        return self._request

    def _give_up(self, event: CycleEvent, error: BaseException) -> None:
        """Move on after an exception. The first reason to stop is the one that stays."""
        if CycleResult.STOPPED not in MOVES[self._state, event]:
            self._move(event, CycleResult.PASSED)  # only tidying up: the pod is bound
            return
        first = self._verdict
        stopped = isinstance(first, Stopped)
        broken = Stopped(StopReason.INVALID, retry=True, cause=error)
        self._conclude(event, first if stopped else broken)


def _is_of_driver(one: HeldClaim) -> bool:
    """Whether a driver has to allocate the claim, or has done so."""
    if one.pending:
        return one.kind.by_driver(one.claim)
    return not one.is_new and not one.kind.by_scheduler(one.claim)


def _loaded(pod: Pod, negotiation: Negotiation) -> ContextRecord:
    """What is recorded, with the newest copy of the object."""
    record, known = negotiation.record, negotiation.known
    if record is None or (record.key, record.pod_uid) != (pod.metadata.key, pod.metadata.uid):
        # What was recorded for another pod, or for an earlier one of that name, is not ours.
        return context_record(pod, known)
    if known is not None:
        return record if _is_newer(record.known, known) else record.load(known)
    # The cache does not show the object: not yet, or not any more. What is still to be
    # published stays, but nothing is known; a create finds out. Taking the object for granted
    # would let the pod wait for drivers that see nothing, or trust what they said once.
    return record.load(None) if record.dirty else context_record(pod)


def _is_newer(recorded: PodSchedulingContext | None, known: PodSchedulingContext) -> bool:
    """Whether the API server has returned a newer copy of the same object than the cache has."""
    if recorded is None or recorded.metadata.uid != known.metadata.uid:
        return False
    ours = read_version(recorded.metadata.resource_version)
    cached = read_version(known.metadata.resource_version)
    return ours is not None and cached is not None and ours > cached


def _zoned(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise ValueError(f"a time with a time zone is needed, not {now}")
    return now
