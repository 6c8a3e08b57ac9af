"""Why nothing fits, as data: every request with the devices that each check ruled out.

Made only for an unsatisfiable call. The checks go in the order of the specification,
each on the devices that the ones before left, so a device stands under the first
reason that holds for it.
"""

from collections.abc import Iterator
from operator import attrgetter

from dra_core.allocator.problem import Option, Problem
from dra_core.allocator.results import (
    Conflict,
    Rejected,
    RejectedFor,
    RequestReport,
    Unsatisfiable,
)
from dra_core.allocator.static import bits, capacity_rejection, untolerated
from dra_core.api.names import DeviceId
from dra_core.inventory.problems import PoolState

Reason = tuple[RejectedFor, str]


def unsatisfiable(
    problem: Problem, conflict: Conflict, reason: str | None, steps: int
) -> Unsatisfiable:
    """The outcome for a problem without solution.

    ``reason`` is that of a check before the search, ``None`` after a search. Cost:
    devices × requests.
    """
    problems = problem.view.problems
    if reason is None:
        invalid = any(fault.state is PoolState.INVALID for fault in problems)
        reason = "invalid-pool" if invalid else ""
    names = _Names(problem)
    requests = tuple(
        _request(problem, option, names) for slot in problem.slots for option in slot.options
    )
    return Unsatisfiable(reason, (conflict,), requests, problems, steps)


class _Names:
    """Identities of the candidates in a mask; requests that rule out the same share them."""

    def __init__(self, problem: Problem) -> None:
        self._view = problem.view
        self._ids: dict[int, DeviceId] = {}
        self._of: dict[int, tuple[DeviceId, ...]] = {}

    def of(self, mask: int) -> tuple[DeviceId, ...]:
        known = self._of.get(mask)
        if known is None:
            known = self._of[mask] = tuple([self._id(candidate) for candidate in bits(mask)])
        return known

    def _id(self, candidate: int) -> DeviceId:
        known = self._ids.get(candidate)
        if known is None:
            known = self._ids[candidate] = self._view.device_id(candidate)
        return known


def _request(problem: Problem, option: Option, names: _Names) -> RequestReport:
    left = (1 << len(problem.view.devices)) - 1
    reasons: dict[Reason, int] = {}
    for (why, detail), mask in _checks(problem, option):
        ruled_out = mask & left
        if ruled_out:
            left &= ~ruled_out
            reasons[why, detail] = reasons.get((why, detail), 0) | ruled_out
    alternative = option.alternative
    rejected = tuple(
        Rejected(why, names.of(mask), detail) for (why, detail), mask in reasons.items()
    )
    return RequestReport(
        alternative.claim, alternative.name, option.need, left.bit_count(), rejected
    )


def _checks(problem: Problem, option: Option) -> Iterator[tuple[Reason, int]]:
    """Reasons with the devices they hold for (also such that are ruled out already)."""
    view, features, alternative = problem.view, problem.features, option.alternative
    if not features.device_binding_and_status:
        yield (RejectedFor.BINDING_CONDITIONS_OFF, ""), view.binding
    chosen, failing = view.derived.get(alternative.match_key, (-1, 0))
    if not option.admin:
        # Of what is in use only devices of the wanted kind are worth a word.
        yield (RejectedFor.IN_USE, ""), problem.in_use & (chosen | failing)
    yield (RejectedFor.SELECTOR, ""), ~(chosen | failing)
    yield (RejectedFor.NODE, ""), view.elsewhere
    candidates = bits(chosen & ((1 << len(view.devices)) - 1))
    if features.consumable_capacity:
        for candidate in candidates:
            rejection = capacity_rejection(alternative, view.devices[candidate])
            if rejection is not None:
                yield (rejection.why, rejection.name), 1 << candidate
            elif problem.tracked >> candidate & 1:
                name = _exhausted(problem, option, candidate)
                if name:
                    yield (RejectedFor.CAPACITY_EXHAUSTED, name), 1 << candidate
    if not features.partitionable_devices:
        yield (RejectedFor.PARTITIONS_OFF, ""), view.consuming
    yield (RejectedFor.NODE_OPERATIONS, ""), problem.unready
    yield from _counter_checks(problem, candidates)
    if features.device_taints:
        for candidate in bits(view.tainted):
            taint = untolerated(view.devices[candidate], alternative.tolerations)
            if taint is not None:
                text = f"{taint.key}={taint.value}:{taint.effect}"
                yield (RejectedFor.TAINT, text), 1 << candidate
    for number in option.constraints:
        attribute = problem.plan.constraints[number].attribute
        yield (RejectedFor.ATTRIBUTE, attribute), ~problem.column(number).present


def _exhausted(problem: Problem, option: Option, candidate: int) -> str:
    """The first capacity of which too little is left, "" if none."""
    names = problem.view.devices[candidate].capacity
    consumed = problem.consumed_amounts(candidate)
    wanted = option.statics.vector(candidate)
    for name, used, more, limit in zip(
        names, consumed, wanted, problem.limits(candidate), strict=True
    ):
        if used + more > limit:
            return name
    return ""


def _counter_checks(problem: Problem, candidates: list[int]) -> Iterator[tuple[Reason, int]]:
    table = problem.table
    if table is None:
        return
    for candidate in candidates:
        if problem.paid >> candidate & 1:
            continue
        touched = table.touches[candidate]
        left = problem.available - table.costs[candidate]
        if left & touched == touched:
            continue
        for field in sorted((f for f, _ in table.taken[candidate]), key=attrgetter("shift")):
            if not left >> field.shift + field.width & 1:
                detail = f"{field.counter_set}/{field.counter}"
                yield (RejectedFor.COUNTERS_EXHAUSTED, detail), 1 << candidate
                break
    yield (RejectedFor.COUNTERS_EXHAUSTED, ""), problem.overdrawn
