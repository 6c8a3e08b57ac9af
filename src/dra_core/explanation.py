"""Why not: outcomes as a tree of reasons in plain words, and the tree as text.

What may live here: wording, and which reason is told first. Facts come from the
outcomes (``dra_core.allocator.results``) and errors, nothing is looked up or worked out
again. Programs read the outcomes themselves, or ``Cause.kind``: the wording is no API
and changes with any release.

Told first is what a reader can act on: a broken pool before a lack of devices, a lack
of one request before one of several, and of the devices that a request cannot have
those that came nearest to being usable. Devices that the selectors do not choose come
last and are only counted: in a mixed cluster these are most of them, and say least.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from dra_core.allocator.results import (
    Conflict,
    ConflictKind,
    Rejected,
    RejectedFor,
    RequestReport,
    StoppedBy,
    Undecided,
    Unsatisfiable,
)
from dra_core.api.names import DeviceId, PoolId
from dra_core.errors import DraError, SelectorFailedError
from dra_core.inventory.problems import PoolFault, PoolProblem

SHOWN_DEVICES: Final = 4
"""Devices that are named in one line; the others are counted."""


@attrs.frozen
class Cause:
    """One reason in words. ``because`` are the reasons behind it, most telling first.

    ``kind`` is a stable word: a value of ``ConflictKind``, ``RejectedFor``, ``PoolFault``
    or ``StoppedBy``, the ``reason`` of an ``AllocationError``, "request", or "error".
    """

    kind: str
    text: str
    because: tuple["Cause", ...] = ()


@attrs.frozen
class Names:
    """How things are called in an explanation.

    ``claims`` are names for the claims of the call by position; requests are called by
    their own name alone where there is one claim or no name. ``device`` and ``pool`` make
    names shorter where the reader knows the rest.
    """

    claims: tuple[str, ...] = ()
    device: Callable[[DeviceId], str] = str
    pool: Callable[[PoolId], str] = str

    def request(self, claim: int, request: str) -> str:
        """A request of the claim at a position."""
        if len(self.claims) > 1 and claim < len(self.claims):
            return f"{request} of claim {self.claims[claim]}"
        return request

    def requests(self, requests: Sequence[tuple[int, str]]) -> str:
        """``request a`` or ``requests a, b``."""
        listed = ", ".join(self.request(*request) for request in requests)
        return f"request{'s' if len(requests) > 1 else ''} {listed}"

    def devices(self, devices: Sequence[DeviceId]) -> str:
        """The first few by name, the others as a number."""
        shown = ", ".join(self.device(device) for device in devices[:SHOWN_DEVICES])
        hidden = len(devices) - SHOWN_DEVICES
        return f"{shown} and {hidden:,} more" if hidden > 0 else shown


_PLAIN_NAMES: Final = Names()


def explain(
    outcome: Unsatisfiable | Undecided | DraError, names: Names = _PLAIN_NAMES
) -> tuple[Cause, ...]:
    """The reasons behind an outcome or an error, most telling first; never empty.

    Cost: linear in the outcome.
    """
    if isinstance(outcome, Unsatisfiable):
        return _explain_unsatisfiable(outcome, names)
    if isinstance(outcome, Undecided):
        return (_explain_undecided(outcome),)
    return (explain_error(outcome),)


def explain_error(error: DraError) -> Cause:
    """An error as a reason; the failure of a selector has its own cause behind it."""
    kind = str(getattr(error, "reason", "error"))
    if isinstance(error, SelectorFailedError):
        whole = str(error)
        inner = str(error.cause)
        text = whole.removesuffix(inner).rstrip(": ") if inner else whole
        return Cause(kind, text, (Cause("error", inner),))
    return Cause(kind, str(error))


def lines(causes: Sequence[Cause], indent: str = "  ") -> Iterator[str]:
    """The tree as text, one line per reason, those behind a reason indented below it."""
    stack = [("", cause) for cause in reversed(causes)]
    while stack:
        margin, cause = stack.pop()
        yield margin + cause.text
        stack.extend((margin + indent, behind) for behind in reversed(cause.because))


def _explain_undecided(outcome: Undecided) -> Cause:
    why = {
        StoppedBy.BUDGET: "the step budget is spent",
        StoppedBy.DEADLINE: "the time is up",
        StoppedBy.CANCELLED: "it was cancelled",
    }[outcome.stopped_by]
    steps = f"{outcome.steps:,} step{'' if outcome.steps == 1 else 's'}"
    return Cause(outcome.stopped_by, f"no verdict after {steps}: {why}")


# --- nothing fits --------------------------------------------------------------------

_TOLD_FIRST: Final = (
    ConflictKind.UNSUITABLE_NODE,
    ConflictKind.POOL,
    ConflictKind.CLAIM_LIMIT,
    ConflictKind.NO_DEVICES,
    ConflictKind.ALL_UNAVAILABLE,
    ConflictKind.TOO_FEW,
    ConflictKind.JOINTLY_TOO_FEW,
    ConflictKind.MATCH_ATTRIBUTE,
    ConflictKind.DISTINCT_ATTRIBUTE,
    ConflictKind.COUNTERS,
    ConflictKind.CAPACITY,
    ConflictKind.EXHAUSTED,
)


def _explain_unsatisfiable(outcome: Unsatisfiable, names: Names) -> tuple[Cause, ...]:
    pools = [_explain_pool(problem, names) for problem in outcome.pools]
    left = list(outcome.requests)
    causes = []
    for conflict in sorted(outcome.conflicts, key=lambda c: _TOLD_FIRST.index(c.kind)):
        involved = [report for report in left if _is_involved(report, conflict)]
        left = [report for report in left if report not in involved]
        causes += _explain_conflict(conflict, involved, names)
    if not outcome.conflicts:
        causes += _explain_short(left, names)
    told = (*pools, *causes) if outcome.reason else (*causes, *pools)
    return told or (Cause(ConflictKind.EXHAUSTED, _EXHAUSTED),)


def _is_involved(report: RequestReport, conflict: Conflict) -> bool:
    """A conflict names requests or subrequests; one that names none is about all."""
    main = report.request.partition("/")[0]
    return not conflict.requests or any(
        claim == report.claim and name in (report.request, main)
        for claim, name in conflict.requests
    )


def _explain_short(reports: Sequence[RequestReport], names: Names) -> list[Cause]:
    """The requests that have too few devices whatever the others get."""
    by_request: dict[tuple[int, str], list[RequestReport]] = {}
    for report in reports:
        main = report.request.partition("/")[0]
        by_request.setdefault((report.claim, main), []).append(report)
    return [
        _too_few(alternatives, names)
        for alternatives in by_request.values()
        if all(report.usable < report.needed for report in alternatives)
    ]


def _too_few(alternatives: Sequence[RequestReport], names: Names) -> Cause:
    """A request none of whose alternatives has enough devices."""
    main = alternatives[0].request.partition("/")[0]
    request = names.requests([(alternatives[0].claim, main)])
    if all(_none_chosen(report) for report in alternatives):
        return Cause(ConflictKind.TOO_FEW, f"{request}: {_NONE_CHOSEN}")
    if len(alternatives) == 1:
        return attrs.evolve(_explain_report(alternatives[0], names), kind=ConflictKind.TOO_FEW)
    because = tuple(_explain_report(report, names) for report in alternatives)
    return Cause(ConflictKind.TOO_FEW, f"{request}: too few devices for any alternative", because)


def _none_chosen(report: RequestReport) -> bool:
    """Whether the selectors leave nothing at all."""
    return not report.usable and all(r.why is RejectedFor.SELECTOR for r in report.rejected)


_NONE_CHOSEN: Final = "the selectors choose no device"
_EXHAUSTED: Final = "every combination of usable devices was tried, none serves all requests"

_CONFLICTS: Final = {
    ConflictKind.TOO_FEW: "{requests}: too few devices",
    ConflictKind.JOINTLY_TOO_FEW: "{requests}: too few devices for all of them together",
    ConflictKind.MATCH_ATTRIBUTE: (
        "{requests}: not enough devices with the same value of {subject}"
    ),
    ConflictKind.DISTINCT_ATTRIBUTE: (
        "{requests}: not enough devices with different values of {subject}"
    ),
    ConflictKind.COUNTERS: "{requests}: not enough left of the shared counters {subject}",
    ConflictKind.CAPACITY: "{requests}: not enough capacity {subject} left",
    ConflictKind.NO_DEVICES: "{requests}: asks for all devices, and there are none",
    ConflictKind.ALL_UNAVAILABLE: "{requests}: asks for all devices, and some cannot be had",
    ConflictKind.CLAIM_LIMIT: "{requests}: more devices than a claim may have",
    ConflictKind.UNSUITABLE_NODE: "the class {subject} is not for this node",
    ConflictKind.POOL: "{requests}: asks for all devices, and a pool is not usable",
    ConflictKind.EXHAUSTED: _EXHAUSTED,
}


def _explain_conflict(
    conflict: Conflict, involved: Sequence[RequestReport], names: Names
) -> list[Cause]:
    if conflict.kind in (ConflictKind.TOO_FEW, ConflictKind.EXHAUSTED):
        # Numbers per request say more than either of these does.
        short = _explain_short(involved, names)
        if short:
            return short
    if conflict.kind is ConflictKind.NO_DEVICES and all(map(_none_chosen, involved)):
        because: tuple[Cause, ...] = ()
    else:
        because = tuple(_explain_report(report, names, joint=True) for report in involved)
    text = _CONFLICTS[conflict.kind].format(
        requests=names.requests(_mains(conflict)) if conflict.requests else "the requests",
        subject=conflict.subject or "they need",
    )
    return [Cause(conflict.kind, f"{text}{_numbers(conflict)}", because)]


def _mains(conflict: Conflict) -> list[tuple[int, str]]:
    """The requests of a conflict; subrequests go by the name of their request."""
    return list(dict.fromkeys((c, name.partition("/")[0]) for c, name in conflict.requests))


def _numbers(conflict: Conflict) -> str:
    pairs = (("needed", conflict.needed), ("usable", conflict.available))
    numbers = [f"{word} {number:,}" for word, number in pairs if number >= 0]
    return f" ({', '.join(numbers)})" if numbers else ""


def _explain_report(report: RequestReport, names: Names, joint: bool = False) -> Cause:
    """``joint``: as part of a conflict of several, where other kinds of devices tell nothing."""
    request = names.requests([(report.claim, report.request)])
    if _none_chosen(report):
        return Cause("request", f"{request}: {_NONE_CHOSEN}")
    text = f"{request}: needed {report.needed:,}, usable {report.usable:,}"
    told = _rejections(report, names)
    if joint and report.usable >= report.needed:
        told = tuple(cause for cause in told if cause.kind != RejectedFor.SELECTOR)
    return Cause("request", text, told)


# --- devices that a request cannot have ----------------------------------------------

_NEAREST_FIRST: Final = (
    RejectedFor.CAPACITY_EXHAUSTED,
    RejectedFor.COUNTERS_EXHAUSTED,
    RejectedFor.TAINT,
    RejectedFor.IN_USE,
    RejectedFor.ATTRIBUTE,
    RejectedFor.CAPACITY_TOO_SMALL,
    RejectedFor.CAPACITY_POLICY,
    RejectedFor.CAPACITY_MISSING,
    RejectedFor.BINDING_CONDITIONS_OFF,
    RejectedFor.PARTITIONS_OFF,
    RejectedFor.NODE_OPERATIONS,
    RejectedFor.NODE,
    RejectedFor.SELECTOR,
)

_REJECTIONS: Final = {
    RejectedFor.BINDING_CONDITIONS_OFF: "skipped, needs the feature DeviceBindingAndStatus",
    RejectedFor.IN_USE: "in use",
    RejectedFor.SELECTOR: "not chosen by the selectors",
    RejectedFor.NODE: "not for this node",
    RejectedFor.CAPACITY_MISSING: "without the capacity{detail}",
    RejectedFor.CAPACITY_POLICY: "that do not offer such an amount of capacity{detail}",
    RejectedFor.CAPACITY_TOO_SMALL: "with less capacity{detail} than asked for",
    RejectedFor.CAPACITY_EXHAUSTED: "with too little capacity{detail} left",
    RejectedFor.PARTITIONS_OFF: "skipped, needs the feature PartitionableDevices",
    RejectedFor.NODE_OPERATIONS: "that skip node operations, which the node does not support",
    RejectedFor.COUNTERS_EXHAUSTED: "with too little of the shared counters{detail} left",
    RejectedFor.TAINT: "with a taint{detail} that is not tolerated",
    RejectedFor.ATTRIBUTE: "without the attribute{detail} that a constraint compares",
}


def _rejections(report: RequestReport, names: Names) -> tuple[Cause, ...]:
    """Nearest to usable first; of equally near ones the more numerous."""
    ordered = sorted(
        _one_for_counters(report.rejected),
        key=lambda rejected: (_NEAREST_FIRST.index(rejected.why), -len(rejected.devices)),
    )
    return tuple(_explain_rejected(rejected, names) for rejected in ordered)


def _one_for_counters(rejected: Sequence[Rejected]) -> Iterator[Rejected]:
    """Which of many counters a device fails on first is an accident of their order."""
    short = [one for one in rejected if one.why is RejectedFor.COUNTERS_EXHAUSTED]
    yield from (one for one in rejected if one not in short)
    if short:
        sets = dict.fromkeys(one.detail.partition("/")[0] for one in short if one.detail)
        detail = short[0].detail if len(short) == 1 else ", ".join(sets)
        devices = tuple(device for one in short for device in one.devices)
        yield Rejected(RejectedFor.COUNTERS_EXHAUSTED, devices, detail)


def _explain_rejected(rejected: Rejected, names: Names) -> Cause:
    # A taint without value is key:effect to kubectl.
    detail = f" {rejected.detail.replace('=:', ':')}" if rejected.detail else ""
    words = _REJECTIONS[rejected.why].replace("{detail}", detail)
    text = f"{len(rejected.devices):,} {words}"
    if rejected.why is not RejectedFor.SELECTOR:
        text = f"{text}: {names.devices(rejected.devices)}"
    return Cause(rejected.why, text)


# --- pools ---------------------------------------------------------------------------

_POOLS: Final = {
    PoolFault.MISSING_SLICES: "{seen:,} of {expected:,} slices of generation {generation} exist",
    PoolFault.SLICE_COUNTS_DIFFER: (
        "its slices of generation {generation} disagree on how many they are"
    ),
    PoolFault.DUPLICATE_DEVICE: "it has two devices {subject}",
    PoolFault.DUPLICATE_COUNTER_SET: "it has two counter sets {subject}",
    PoolFault.UNDEFINED_COUNTER_SET: "a device consumes from {subject}, which no slice defines",
    PoolFault.UNDEFINED_COUNTER: "a device consumes {subject}, which no slice defines",
}


def _explain_pool(problem: PoolProblem, names: Names) -> Cause:
    fact = _POOLS[problem.fault].format(
        seen=problem.seen,
        expected=problem.expected,
        generation=problem.generation,
        subject=problem.subject,
    )
    pool = names.pool(PoolId(problem.driver, problem.pool))
    return Cause(problem.fault, f"pool {pool} is {problem.state}: {fact}")
