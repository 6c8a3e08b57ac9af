"""Outcomes of one call of the allocator, as data.

What may live here: the three outcomes that are no exceptions and the facts inside
them. They are frozen, compare by value and pickle. Words for people are made
elsewhere (``dra_core.explanation``).

``Allocated``, ``Unsatisfiable`` and ``Undecided`` are never confused: the second is
a proof that nothing fits on this node, the third is no verdict at all.
"""

from enum import StrEnum

import attrs

from dra_core.api.names import DeviceId
from dra_core.api.objects import AllocationResult
from dra_core.inventory.problems import PoolProblem


class RejectedFor(StrEnum):
    """Why a device cannot serve a request, the first check that failed."""

    BINDING_CONDITIONS_OFF = "binding-conditions-off"
    IN_USE = "in-use"
    SELECTOR = "selector"
    NODE = "node"
    CAPACITY_MISSING = "capacity-missing"
    CAPACITY_POLICY = "capacity-policy"
    CAPACITY_TOO_SMALL = "capacity-too-small"
    CAPACITY_EXHAUSTED = "capacity-exhausted"
    PARTITIONS_OFF = "partitions-off"
    NODE_OPERATIONS = "node-operations"
    COUNTERS_EXHAUSTED = "counters-exhausted"
    TAINT = "taint"
    ATTRIBUTE = "attribute"


@attrs.frozen
class Rejected:
    """Devices that one check ruled out for a request, in candidate order.

    ``detail`` is the thing that was missing or in the way where there is exactly one
    (an attribute, a capacity, a taint as ``key=value:effect``), else "".
    """

    why: RejectedFor
    devices: tuple[DeviceId, ...]
    detail: str = ""


@attrs.frozen
class RequestReport:
    """What one request (or subrequest, ``main/sub``) found on the node.

    ``needed`` devices (all of them for mode All: the number selected), ``usable`` of
    them pass every check that does not depend on other picks, ``rejected`` did not.
    ``claim`` is the claim's position in the call.
    """

    claim: int
    request: str
    needed: int
    usable: int
    rejected: tuple[Rejected, ...]


class ConflictKind(StrEnum):
    """Why requests that may be satisfiable one by one are not all together."""

    TOO_FEW = "too-few"
    """One request: fewer usable devices than needed."""
    JOINTLY_TOO_FEW = "jointly-too-few"
    """Several requests compete for too few devices."""
    MATCH_ATTRIBUTE = "match-attribute"
    """No attribute value is shared by enough devices."""
    DISTINCT_ATTRIBUTE = "distinct-attribute"
    """Too few different attribute values."""
    COUNTERS = "counters"
    """The shared counters of the pools do not suffice."""
    CAPACITY = "capacity"
    """The capacity left on shareable devices does not suffice."""
    NO_DEVICES = "no-devices"
    """Mode All selected nothing."""
    ALL_UNAVAILABLE = "all-unavailable"
    """Mode All: a selected device cannot be had."""
    CLAIM_LIMIT = "claim-limit"
    """Every choice of subrequests passes the limit of devices per claim."""
    UNSUITABLE_NODE = "unsuitable-node"
    """The class of a claim (``subject``) leaves the node out: only v1alpha2 has this."""
    POOL = "pool"
    """Mode All while a pool of the node is incomplete or invalid."""
    EXHAUSTED = "exhausted"
    """Every combination was tried; no single cause."""


@attrs.frozen
class Conflict:
    """One proof that nothing fits.

    ``requests`` are the requests involved as ``(claim position, request name)``;
    ``subject`` is the attribute, counter or capacity, "" where there is none;
    ``needed`` and ``available`` are numbers of devices, -1 where they say nothing.
    """

    kind: ConflictKind
    requests: tuple[tuple[int, str], ...] = ()
    subject: str = ""
    needed: int = -1
    available: int = -1


@attrs.frozen
class Allocated:
    """Every claim got its devices: one result per claim, in the order given.

    ``steps`` counts the work: one for each device tried and each state expanded in
    a proof, more for proofs that take long (``dra_core.allocator.search``).
    """

    results: tuple[AllocationResult, ...]
    steps: int


@attrs.frozen
class Unsatisfiable:
    """Nothing fits on this node; other nodes may do.

    ``reason`` is a coarse word for programs: "incomplete-pool", "invalid-pool" or "".
    """

    reason: str
    conflicts: tuple[Conflict, ...]
    requests: tuple[RequestReport, ...]
    pools: tuple[PoolProblem, ...]
    steps: int


class StoppedBy(StrEnum):
    """What ended an undecided call."""

    BUDGET = "budget"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"


@attrs.frozen
class Undecided:
    """The call was stopped before it knew. Never to be read or cached as "does not fit"."""

    stopped_by: StoppedBy
    steps: int


Outcome = Allocated | Unsatisfiable | Undecided
