"""The filter step of a cycle: does the pod fit on this node, as far as devices go?

What may live here: ``NodeFilter``, everything that was worked out before any node is
looked at, and the question. Asking changes nothing, so any number of threads may ask.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from dra_core.allocator.results import Undecided
from dra_core.api.core import ContainerExtendedResourceRequest, Node, Pod
from dra_core.api.objects import DeviceClass, ResourceClaim
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.errors import AllocationError
from dra_core.scheduling.binding_conditions import BindingState
from dra_core.scheduling.context_nodes import unsuitable_claims
from dra_core.scheduling.cycle_claims import HeldClaim, pending_entries
from dra_core.scheduling.cycle_kinds import ClaimKind, Granted, PreparedClaims
from dra_core.scheduling.cycle_verdicts import (
    NodeFailed,
    NodeFits,
    NodeProblem,
    NodeReason,
    NodeUndecided,
    NodeUnfit,
    NodeVerdict,
    PlannedAllocation,
    Stopped,
    StopReason,
)
from dra_core.scheduling.extended_claim import (
    in_memory_claim,
    is_in_memory,
    is_special_claim_of,
    lay_out,
    left_over,
)
from dra_core.scheduling.extended_resources import asked_for, split_resources
from dra_core.scheduling.in_flight import ClaimTracker
from dra_core.scheduling.score import raw_score

LeftOver = Callable[[], Iterable[ResourceClaim]]


@attrs.frozen
class ExtendedResources:
    """What a cycle needs to serve extended resources by classes.

    ``classes`` is what ``classes_by_resource`` returns (``CycleInput.resources``).
    ``made_up_uid`` is a UID that nothing else has; the caller makes it. ``candidates``
    returns claims among which those left over from earlier attempts are looked for; it is
    asked for pods that ask for extended resources. Default: all claims of the cache, so
    give it an index where there are many.
    """

    classes: Mapping[str, DeviceClass]
    made_up_uid: str
    candidates: LeftOver | None = None


@attrs.frozen
class SpecialClaim:
    """The claim for a pod's extended resources, in an attempt.

    ``resources`` are all extended resources that the pod asks for. ``left_over`` are claims
    of earlier attempts; while there is one, no node fits.
    """

    pod: Pod
    kind: ClaimKind
    resources: tuple[str, ...]
    extended: ExtendedResources
    left_over: tuple[ResourceClaim, ...] = ()

    def variant(
        self, through_claim: Iterable[str]
    ) -> tuple[ResourceClaim, tuple[ContainerExtendedResourceRequest, ...]]:
        """The claim for some of the resources, and its mappings."""
        layout = lay_out(self.pod, through_claim, self.extended.classes)
        claim = in_memory_claim(self.pod, self.extended.made_up_uid, layout)
        return claim, layout.mappings


def special_claim(
    pod: Pod,
    tracker: ClaimTracker,
    kinds: Sequence[ClaimKind],
    extended: ExtendedResources | None,
) -> SpecialClaim | Stopped | None:
    """The claim for the pod's extended resources, if a class offers one, or one is left over.

    ``Stopped`` if it takes a claim, but none of the ``kinds`` is for such claims: without
    it the pod would run without its devices. So it is while another cycle of the pod is on
    the way with one.
    """
    resources = asked_for(pod) if extended is not None else ()
    if extended is None or not resources:
        return None
    unseen = _in_flight(pod, tracker)  # first: what the cache shows meanwhile is in both
    if isinstance(unseen, Stopped):
        return unseen
    candidates = tracker.cache.list() if extended.candidates is None else extended.candidates()
    remains = left_over(pod, candidates)
    seen = {claim.metadata.uid for claim in remains}
    remains += tuple(claim for claim in unseen if claim.metadata.uid not in seen)
    if not remains and not any(resource in extended.classes for resource in resources):
        return None
    empty = in_memory_claim(pod, extended.made_up_uid)
    kind = next((k for k in kinds if k.handles(empty) and not k.by_driver(empty)), None)
    if kind is None:
        return Stopped(StopReason.UNKNOWN_KIND)
    return SpecialClaim(pod, kind, resources, extended, remains)


def _in_flight(pod: Pod, tracker: ClaimTracker) -> list[ResourceClaim] | Stopped:
    """Special claims of the pod that earlier attempts have left and no cache shows yet."""
    entries = [e for e in tracker.in_flight() if is_special_claim_of(e.claim, pod)]
    for entry in entries:
        if pod.metadata.uid in entry.users and pod.metadata.uid not in entry.unclear:
            return Stopped(StopReason.IN_FLIGHT, retry=True, cause=entry)
    return [entry.awaited or entry.claim for entry in entries if not is_in_memory(entry.claim)]


class NodeFilter:
    """A pod's claims, ready for asking about nodes.

    ``context`` is what is known of the negotiation with drivers. Makes the plans at once,
    so that nodes cost no more than their search.
    """

    def __init__(
        self,
        held: Sequence[HeldClaim],
        kinds: Sequence[ClaimKind],
        special: SpecialClaim | None = None,
        context: PodSchedulingContext | None = None,
    ) -> None:
        self._held = tuple(held)
        self._special = special
        self._context = context
        self._by_driver = pending_entries(held, by_driver=True)
        self._pending = [
            (kind, [one for one in held if one.pending and one.kind is kind]) for kind in kinds
        ]
        self._plain = [
            (waiting, kind.prepare([one.claim for one in waiting]))
            for kind, waiting in self._pending
            if waiting
        ]
        self._variants: dict[tuple[str, ...], _Variant] = {}

    def on_node(self, node: Node) -> NodeVerdict:
        """Whether the pod fits, with what it would get, or why not.

        Problems of claims that are allocated come first, all of them: they tell which
        claims are in the way. Then follow extended resources, drivers, and the search,
        where the first problem ends it.
        """
        problems = list(self._obstacles(node))
        if problems:
            in_the_way = dict.fromkeys(uid for uid, _ in problems if uid)
            return NodeUnfit(node, tuple(problem for _, problem in problems), tuple(in_the_way))
        variant: _Variant | None = None
        if self._special is not None:
            wanted = self._special
            split = split_resources(wanted.resources, wanted.extended.classes, node)
            if split.nowhere:
                return NodeUnfit(node, (NodeProblem(NodeReason.NO_RESOURCE, "", split.nowhere),))
            if split.through_claim:
                variant = self._variant(wanted, split.through_claim)
        unsuitable = unsuitable_claims(self._context, node.name, self._by_driver)
        if unsuitable:
            reason = NodeReason.UNSUITABLE
            return NodeUnfit(node, tuple(NodeProblem(reason, entry) for entry in unsuitable))
        return self._search(node, variant)

    def _obstacles(self, node: Node) -> Iterator[tuple[str, NodeProblem]]:
        """Problems with what is allocated already; with the UID of a claim in the way."""
        if self._special is not None and self._special.left_over:
            yield "", NodeProblem(NodeReason.LEFT_OVER, cause=self._special.left_over)
        for one in self._held:
            if one.unusable is not None:
                state, status = one.unusable
                failed = state is BindingState.FAILED
                reason = NodeReason.DEVICE_FAILED if failed else NodeReason.DEVICE_OVERDUE
                yield one.uid, NodeProblem(reason, one.entry, status)
            elif not one.suits(node):
                yield one.uid, NodeProblem(NodeReason.ELSEWHERE, one.entry)

    def _variant(self, special: SpecialClaim, through_claim: tuple[str, ...]) -> "_Variant":
        """The plans for nodes that need a claim for these resources. Equal if made twice."""
        found = self._variants.get(through_claim)
        if found is None:
            claim, mappings = special.variant(through_claim)
            prepared = []
            for kind, waiting in self._pending:
                own = [one.claim for one in waiting]
                if kind is special.kind:
                    own.append(claim)
                if own:
                    prepared.append((waiting, kind.prepare(own)))
            found = self._variants[through_claim] = _Variant(claim, mappings, prepared)
        return found

    def _search(self, node: Node, variant: "_Variant | None") -> NodeVerdict:
        planned: list[PlannedAllocation] = []
        special: list[PlannedAllocation] = []
        for waiting, prepared in self._plain if variant is None else variant.prepared:
            try:
                answer = prepared.on_node(node)
            except AllocationError as error:
                # Without its traceback: a kept one would keep the frames of every node.
                return NodeFailed(node, error.with_traceback(None))
            if isinstance(answer, Undecided):
                return NodeUndecided(node, answer)
            if isinstance(answer, NodeProblem):
                return NodeUnfit(node, (answer,))
            planned += _planned(waiting, answer)
            if variant is not None and len(answer.allocations) > len(waiting):
                special.append(PlannedAllocation(variant.claim, answer.allocations[-1]))
        everything = (*planned, *special)
        score = raw_score((one.claim, one.allocation) for one in everything)
        mappings = () if variant is None else variant.mappings
        return NodeFits(node, everything, mappings, score)


@attrs.frozen
class _Variant:
    """The special claim for some resources, with the plans that include it."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]
    prepared: list[tuple[list[HeldClaim], PreparedClaims]]


def _planned(waiting: Sequence[HeldClaim], answer: Granted) -> Iterator[PlannedAllocation]:
    # A driver's kind grants nothing; the special claim comes after the pod's own.
    for one, allocation in zip(waiting, answer.allocations, strict=False):
        yield PlannedAllocation(one.claim, allocation)
