"""Why nothing fits, as data: every request with the devices that each check ruled out.

Made only for an unsatisfiable call. The checks go in the order of the specification,
each on the devices that the ones before left, so a device stands under the first
reason that holds for it.
"""

from collections.abc import Iterator
from operator import attrgetter

from dra_core.allocator.counters import CounterTable
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
    report = _Report(problem)
    requests = tuple(report.request(option) for slot in problem.slots for option in slot.options)
    return Unsatisfiable(reason, (conflict,), requests, problems, steps)


Rejections = tuple[int, tuple[Rejected, ...]]
"""How many devices are left, and what rules out the others."""


class _Report:
    """The reports on the requests of one problem; what they have in common is found once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._ids: dict[int, DeviceId] = {}
        self._masks: dict[int, tuple[DeviceId, ...]] = {}
        self._rejections: dict[object, Rejections] = {}
        self._drained: dict[int, str] | None = None

    def request(self, option: Option) -> RequestReport:
        """The report on one request, or one alternative of it."""
        alternative = option.alternative
        key = (alternative.static_key, option.admin, option.constraints)
        known = self._rejections.get(key)
        if known is None:
            known = self._rejections[key] = self._rejected(option)
        return RequestReport(alternative.claim, alternative.name, option.need, *known)

    def _rejected(self, option: Option) -> Rejections:
        left = (1 << len(self._problem.view.devices)) - 1
        reasons: dict[Reason, int] = {}
        for (why, detail), mask in self._checks(option):
            ruled_out = mask & left
            if ruled_out:
                left &= ~ruled_out
                reasons[why, detail] = reasons.get((why, detail), 0) | ruled_out
        return left.bit_count(), tuple(
            Rejected(why, self._devices(mask), detail) for (why, detail), mask in reasons.items()
        )

    def _devices(self, mask: int) -> tuple[DeviceId, ...]:
        known = self._masks.get(mask)
        if known is None:
            known = self._masks[mask] = tuple([self._id(candidate) for candidate in bits(mask)])
        return known

    def _id(self, candidate: int) -> DeviceId:
        known = self._ids.get(candidate)
        if known is None:
            known = self._ids[candidate] = self._problem.view.device_id(candidate)
        return known

    def _checks(self, option: Option) -> Iterator[tuple[Reason, int]]:
        """Reasons with the devices they hold for (also such that are ruled out already)."""
        problem, alternative, statics = self._problem, option.alternative, option.statics
        view, features = problem.view, problem.features
        if not features.device_binding_and_status:
            yield (RejectedFor.BINDING_CONDITIONS_OFF, ""), view.binding
        if not option.admin:
            # Of what is in use only devices of the wanted kind are worth a word.
            yield (RejectedFor.IN_USE, ""), problem.in_use & (statics.chosen | statics.failing)
        yield (RejectedFor.SELECTOR, ""), ~(statics.chosen | statics.failing)
        yield (RejectedFor.NODE, ""), view.elsewhere
        candidates = bits(statics.chosen)
        if features.consumable_capacity:
            yield from self._capacity_checks(option, candidates)
        if not features.partitionable_devices:
            yield (RejectedFor.PARTITIONS_OFF, ""), view.consuming
        yield (RejectedFor.NODE_OPERATIONS, ""), problem.unready
        drained = self._drained_counters()
        for candidate in candidates:
            if candidate in drained:
                yield (RejectedFor.COUNTERS_EXHAUSTED, drained[candidate]), 1 << candidate
        yield (RejectedFor.COUNTERS_EXHAUSTED, ""), problem.overdrawn
        if features.device_taints:
            for candidate in bits(view.tainted):
                taint = untolerated(view.devices[candidate], alternative.tolerations)
                if taint is not None:
                    text = f"{taint.key}={taint.value}:{taint.effect}"
                    yield (RejectedFor.TAINT, text), 1 << candidate
        for number in option.constraints:
            attribute = problem.plan.constraints[number].attribute
            yield (RejectedFor.ATTRIBUTE, attribute), ~problem.column(number).present

    def _capacity_checks(
        self, option: Option, candidates: list[int]
    ) -> Iterator[tuple[Reason, int]]:
        problem = self._problem
        for candidate in candidates:
            rejection = capacity_rejection(option.alternative, problem.view.devices[candidate])
            if rejection is not None:
                yield (rejection.why, rejection.name), 1 << candidate
            elif problem.tracked >> candidate & 1:
                name = _exhausted(problem, option, candidate)
                if name:
                    yield (RejectedFor.CAPACITY_EXHAUSTED, name), 1 << candidate

    def _drained_counters(self) -> dict[int, str]:
        """The first counter of which too little is left, for each candidate that has one."""
        if self._drained is None:
            self._drained = {}
            table = self._problem.table
            if table is not None:
                for candidate in bits(table.taking & ~self._problem.paid):
                    name = _drained_counter(self._problem, table, candidate)
                    if name:
                        self._drained[candidate] = name
        return self._drained


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


def _drained_counter(problem: Problem, table: CounterTable, candidate: int) -> str:
    """The first counter of which too little is left, "" if none."""
    touched = table.touches[candidate]
    left = problem.available - table.costs[candidate]
    if left & touched == touched:
        return ""
    fields = sorted((field for field, _ in table.taken[candidate]), key=attrgetter("shift"))
    field = next(field for field in fields if not left >> field.shift + field.width & 1)
    return f"{field.counter_set}/{field.counter}"
