"""What a scheduling cycle finds: about the pod, and about the pod on one node.

What may live here: the findings, as frozen values. A verdict is for programs; the words
of the enums are for people and no API.
"""

from collections.abc import Sequence
from enum import StrEnum

import attrs

from dra_core.allocator.results import Undecided
from dra_core.api.core import ContainerExtendedResourceRequest, Node
from dra_core.api.objects import AllocationResult, ResourceClaim
from dra_core.errors import AllocationError


class StopReason(StrEnum):
    """Why an attempt to schedule a pod ends. ``Stopped.cause`` is what the comment says."""

    # Before any node is looked at.
    UNRESOLVED = "a claim of the pod is not there, or not the pod's"
    """``ClaimError`` or ``ClaimNotOwnedError``."""
    UNKNOWN_KIND = "nobody here allocates claims of this kind"
    DEALLOCATION_REQUESTED = "a claim is about to be deallocated"
    FULL = "a claim is reserved for as many consumers as it can have"
    IMMEDIATE = "a claim waits for its controller, which allocates without a pod"
    IN_FLIGHT = "a claim is being allocated for another pod, or in another cycle of this one"
    """``InFlight`` or ``ClaimInFlightError``."""
    CLASS_MISSING = "a class that a claim names does not exist"
    """``DeviceClassNotFoundError``."""
    PARAMETERS_MISSING = "parameters that a claim or class refers to do not exist"
    """An ``AllocationError``."""
    INVALID = "the input is at fault"
    """A ``DraError``."""
    CONTEXT_NOT_OWNED = "the PodSchedulingContext of that name is not the pod's"
    """``ContextNotOwnedError``."""

    # No node fits.
    NO_NODE = "no node fits"
    """The first ``AllocationError`` that a node met with, if one did."""
    UNDECIDED = "the search was stopped before it knew whether a node fits"
    LEFT_OVER = "a claim of an earlier attempt was in the way, and is removed"
    DEALLOCATED = "a claim that was in the way is deallocated"
    READ_AGAIN = "what became of an earlier write is known now"

    # A node was picked.
    TAKEN = "devices were taken since they were picked"
    """``InFlightError``."""
    WAIT_FOR_DRIVER = "drivers have to allocate claims, or to say where they can"
    NOT_PUBLISHED = "the node could not be negotiated with drivers"
    """``NotPublished``."""
    CLAIM_LOST = "a claim cannot be had any more"
    """``Impossible``."""
    NOT_BOUND = "a claim could not be bound in this attempt"
    """``RetryLater``."""
    NOT_CREATED = "the claim for extended resources could not be created"
    """The HTTP status, ``None`` without an answer."""
    NOT_RECORDED = "the pod's status could not be changed"
    """The HTTP status, ``None`` without an answer."""
    DEVICE_FAILED = "a device failed to become ready"
    """``BindingStatus``."""
    DEVICE_OVERDUE = "a device took too long to become ready"
    """``BindingStatus``."""
    UNDONE = "the host has undone an attempt in which nothing was wrong"
    """Because the pod could not be bound, for instance."""


@attrs.frozen
class Passed:
    """Go on."""


@attrs.frozen
class Stopped:
    """The attempt ends here.

    ``retry``: something may have changed already, so try again after a while (backoff).
    Otherwise the pod sleeps until an event for it. ``pod_claim`` is the entry of the pod
    that is concerned, "" for none. ``cause`` is more about it, see the reason.
    """

    reason: StopReason
    pod_claim: str = ""
    retry: bool = False
    cause: object = None


Verdict = Passed | Stopped

PASSED = Passed()


class NodeReason(StrEnum):
    """Why a pod does not fit on a node, as far as its devices are concerned."""

    ELSEWHERE = "a claim is allocated for other nodes"
    """``pod_claim``; a candidate for deallocation."""
    DEVICE_FAILED = "a device of a claim failed to become ready"
    """``pod_claim``, ``BindingStatus``; a candidate for deallocation, on every node."""
    DEVICE_OVERDUE = "a device of a claim took too long to become ready"
    """As before."""
    LEFT_OVER = "a claim for extended resources of an earlier attempt is in the way"
    """On every node."""
    NO_RESOURCE = "the node has no such resource, and no class offers it"
    """The names of the extended resources."""
    CLASS_NODES = "a class of a claim is not for this node"
    """The key of the claim."""
    UNSUITABLE = "a driver cannot allocate a claim on this node"
    """``pod_claim``."""
    DOES_NOT_FIT = "the devices do not suffice"
    """``Unsatisfiable``."""


@attrs.frozen
class NodeProblem:
    """One reason against a node. ``cause`` is more about it, see the reason."""

    reason: NodeReason
    pod_claim: str = ""
    cause: object = None


@attrs.frozen
class PlannedAllocation:
    """A claim, and what it would get. The claim is not allocated."""

    claim: ResourceClaim
    allocation: AllocationResult


@attrs.frozen
class NodeFits:
    """The pod fits.

    ``planned``: what the claims that are allocated by the scheduler would get, the one for
    extended resources last, if there is one; ``mappings`` are that one's. ``score`` is not
    normalized.
    """

    node: Node
    planned: tuple[PlannedAllocation, ...] = ()
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    score: int = 0


@attrs.frozen
class NodeUnfit:
    """The pod does not fit. ``in_the_way`` are UIDs of claims whose allocation is a reason."""

    node: Node
    problems: tuple[NodeProblem, ...]
    in_the_way: tuple[str, ...] = ()


@attrs.frozen
class NodeUndecided:
    """The search was stopped before it knew. Not to be remembered as "does not fit"."""

    node: Node
    outcome: Undecided


@attrs.frozen
class NodeFailed:
    """A claim, a class, a selector or a slice is at fault. Other nodes need not meet it."""

    node: Node
    error: AllocationError


NodeVerdict = NodeFits | NodeUnfit | NodeUndecided | NodeFailed


class TroubleKind(StrEnum):
    """A step that failed without ending anything: reported, and made up for later."""

    UNRESERVE = "a reservation could not be removed; the next attempt comes by again"
    PUBLISH = "the PodSchedulingContext could not be written; the changes stay recorded"
    REMOVE = "the claim for extended resources could not be removed; the next attempt does"
    TAKE_BACK = "the pod's status may name a claim that is removed; the next attempt sees to it"
    DEALLOCATE = "a claim could not be deallocated; the next attempt tries again"
    READ = "what became of an earlier write could not be found out"
    DELETE_CONTEXT = "the PodSchedulingContext could not be deleted; it goes with its pod"
    NOT_ASSUMED = "an answer could not be stored; the informer will show the object"
    UNREADABLE = "an answer was no such object; taken for no answer"


@attrs.frozen
class Trouble:
    """One such failure: ``subject`` is "namespace/name", ``cause`` an error or HTTP status."""

    kind: TroubleKind
    subject: str
    cause: object = None


def stop_for_nodes(verdicts: Sequence[NodeVerdict]) -> Stopped:
    """Why the pod cannot be scheduled, if none of the nodes fits.

    An undecided node is no proof, so the pod is tried again. So it is if a node met with an
    error: that may end when a device goes, which is no event for the pod otherwise. The
    first error is shown; ``INVALID`` if every node met with one.
    """
    errors = [verdict.error for verdict in verdicts if isinstance(verdict, NodeFailed)]
    if any(isinstance(verdict, NodeUndecided) for verdict in verdicts):
        return Stopped(StopReason.UNDECIDED, retry=True)
    if not errors:
        return Stopped(StopReason.NO_NODE)
    everywhere = len(errors) == len(verdicts)
    reason = StopReason.INVALID if everywhere else StopReason.NO_NODE
    return Stopped(reason, retry=True, cause=errors[0])
