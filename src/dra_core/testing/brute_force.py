"""The brute-force twin of the allocator: slow, obvious, no pruning.

What may live here: a plain depth-first search in the order of the rules. There is
nothing to undo: the picks so far are a tuple, and every check looks at all of them
again. Whatever the real allocator does to be fast, its answer has to be this one.

Small inputs only: the cost is exponential in the number of devices asked for.
"""

from typing import NamedTuple

from dra_core.allocator.results import Allocated, RejectedFor, Unsatisfiable
from dra_core.api.names import DeviceId
from dra_core.api.objects import MAX_DEVICES_PER_CLAIM
from dra_core.errors import AllBreaksConstraintError, DraError
from dra_core.inventory.problems import PoolState
from dra_core.testing.brute_checks import Checks, DoesNotFitError, key
from dra_core.testing.brute_result import MADE_UP_SHARE_ID, Pick, Progress, allocation_result
from dra_core.testing.node_pools import check_node_selectors, pools_of_node
from dra_core.testing.problem import Compile, Demand, Entry, Problem
from dra_core.testing.rules import (
    NODE_OPERATIONS_FEATURE,
    applies,
    attribute_values,
    constrained_attribute,
    constraint_holds,
    consumed_capacity,
    counters_of,
    device_is_for_node,
    is_shareable,
    sum_of_counters,
    untolerated,
)


class TooExpensiveError(DraError):
    """The twin was stopped after the number of steps it was allowed."""


def brute_force(
    problem: Problem,
    selectors: Compile,
    *,
    share_id: str = MADE_UP_SHARE_ID,
    max_steps: int | None = None,
) -> Allocated | Unsatisfiable:
    """The answer of the rules, found by trying everything in order.

    ``selectors`` compiles the text of a selector; every share gets ``share_id``. An
    ``Unsatisfiable`` carries its coarse reason only. ``steps`` counts devices tried.

    Raises AllocationError as the allocator does, and TooExpensiveError after
    ``max_steps`` steps. Cost: exponential.
    """
    check_node_selectors(problem.slices)
    search = _Search(problem, selectors, max_steps)
    try:
        search.demands = search.checks.demands()
    except DoesNotFitError as error:
        return Unsatisfiable(error.reason, (), (), (), search.steps)
    found = search.requests(0, 0, Progress((), ()))
    if found is None:
        invalid = any(pool.problem is PoolState.INVALID for pool in search.pools)
        return Unsatisfiable("invalid-pool" if invalid else "", (), (), (), search.steps)
    results = [
        allocation_result(index, problem, found, share_id) for index in range(len(problem.claims))
    ]
    return Allocated(tuple(results), search.steps)


class _Place(NamedTuple):
    """Where in the claims the search is."""

    claim: int
    request: int
    demand: Demand


class _Search:
    """The search of one problem. Nothing here changes but the number of steps."""

    def __init__(self, problem: Problem, selectors: Compile, max_steps: int | None) -> None:
        self.problem = problem
        self.pools = pools_of_node(problem.slices, problem.node, problem.features)
        self.checks = Checks(problem, self.pools, selectors)
        self.candidates = [entry for pool in self.pools for entry in pool.entries()]
        self.demands: list[list[list[Demand]]] = []
        self.max_steps = max_steps
        self.steps = 0

    # --- order -----------------------------------------------------------------------------

    def requests(self, claim: int, request: int, progress: Progress) -> Progress | None:
        """The first completion from the given request on; None if there is none."""
        if claim == len(self.demands):
            return progress
        if request == len(self.demands[claim]):
            return self.requests(claim + 1, 0, progress)
        for demand in self.demands[claim][request]:
            if len(progress.of_claim(claim)) + demand.count > MAX_DEVICES_PER_CLAIM:
                continue
            place = _Place(claim, request, demand)
            chosen = Progress(progress.picks, (*progress.choices, (claim, demand)))
            if demand.everything is None:
                found = self._count(place, 0, demand.count, chosen)
            else:
                found = self._all(place, demand.everything, chosen)
            if found is not None:
                return found
        return None

    def _count(self, place: _Place, start: int, left: int, progress: Progress) -> Progress | None:
        """Take ``left`` devices from the candidate at ``start`` on, then go on."""
        if left == 0:
            return self.requests(place.claim, place.request + 1, progress)
        for index in range(start, len(self.candidates)):
            pick = self._try(place, self.candidates[index], progress)
            if isinstance(pick, Pick):
                found = self._count(place, index + 1, left - 1, progress.with_pick(pick))
                if found is not None:
                    return found
        return None

    def _all(
        self, place: _Place, everything: tuple[Entry, ...], progress: Progress
    ) -> Progress | None:
        """Take all the devices given, then go on."""
        if not everything:
            return None
        for entry in everything:
            pick = self._try(place, entry, progress)
            if pick is RejectedFor.ATTRIBUTE:
                self._all_breaks_constraint(place, entry, progress)
            if not isinstance(pick, Pick):
                return None
            progress = progress.with_pick(pick)
        return self.requests(place.claim, place.request + 1, progress)

    def _all_breaks_constraint(self, place: _Place, entry: Entry, progress: Progress) -> None:
        claim = self.problem.claims[place.claim]
        raise AllBreaksConstraintError(
            key(claim), place.demand.name, str(entry.id), self._broken(place, entry, progress)
        )

    # --- checks of one candidate -------------------------------------------------------------

    def _try(self, place: _Place, entry: Entry, progress: Progress) -> Pick | RejectedFor:
        """The candidate as a pick, or the first check that it fails."""
        self.steps += 1
        if self.max_steps is not None and self.steps > self.max_steps:
            raise TooExpensiveError
        problem, demand, device = self.problem, place.demand, entry.device
        features = problem.features
        if any(pool.problem for pool in self.pools if pool.id == entry.pool_id):
            return RejectedFor.NODE
        if device.binding_conditions and not features.device_binding_and_status:
            return RejectedFor.BINDING_CONDITIONS_OFF
        if not self._is_free(place, entry, progress):
            return RejectedFor.IN_USE
        if not self.checks.selected(problem.claims[place.claim], demand, entry):
            return RejectedFor.SELECTOR
        if not device_is_for_node(entry.resource_slice, device, problem.node):
            return RejectedFor.NODE
        pick = Pick(place.claim, demand, entry)
        if features.consumable_capacity:
            amounts = consumed_capacity(device, demand.spec.capacity)
            if amounts is None:
                return RejectedFor.CAPACITY_POLICY
            pick = Pick(place.claim, demand, entry, amounts)
            if not self._has_capacity_left(pick, progress):
                return RejectedFor.CAPACITY_EXHAUSTED
        if device.consumes_counters and not features.partitionable_devices:
            return RejectedFor.PARTITIONS_OFF
        if entry.resource_slice.skip_node_operations and not self._node_skips_operations():
            return RejectedFor.NODE_OPERATIONS
        if not self._has_counters_left(entry, progress):
            return RejectedFor.COUNTERS_EXHAUSTED
        if features.device_taints and untolerated(device.taints, demand.spec.tolerations):
            return RejectedFor.TAINT
        if self._broken(place, entry, progress) >= 0:
            return RejectedFor.ATTRIBUTE
        return pick

    def _is_free(self, place: _Place, entry: Entry, progress: Progress) -> bool:
        shareable = is_shareable(entry.device, self.problem.features)
        picked = [] if shareable else [p for p in progress.picks if p.entry.id == entry.id]
        if place.demand.admin_access:
            return all(pick.claim != place.claim for pick in picked)
        return entry.id not in self.problem.allocated.devices and not picked

    def _has_capacity_left(self, pick: Pick, progress: Progress) -> bool:
        device = pick.entry.device
        consumed = self.problem.allocated.consumed_capacity.get(pick.entry.id, {})
        for name, capacity in device.capacity.items():
            amount = pick.amounts[name].nano
            amount += consumed[name].nano if name in consumed else 0
            if is_shareable(device, self.problem.features):
                amount += sum(
                    other.amounts[name].nano
                    for other in progress.picks
                    if other.entry.id == pick.entry.id
                )
            if amount > capacity.value.nano:
                return False
        return True

    def _node_skips_operations(self) -> bool:
        return (
            self.problem.features.optional_node_operations
            and NODE_OPERATIONS_FEATURE in self.problem.node.declared_features
        )

    def _has_counters_left(self, entry: Entry, progress: Progress) -> bool:
        """Whether the pool's counters allow this device too."""
        wanted = counters_of(entry.device)
        if is_shareable(entry.device, self.problem.features) and (
            self._is_allocated(entry.id) or any(p.entry.id == entry.id for p in progress.picks)
        ):
            return True
        pool = next(pool for pool in self.pools if pool.id == entry.pool_id)
        left = {
            (one.name, name): amount.nano
            for s in pool.slices
            for one in s.shared_counters
            for name, amount in one.counters.items()
        }
        entries = pool.all_entries()
        holders = [counters_of(e.device) for e in entries if self._is_allocated(e.id)]
        listed = {e.device.name for e in entries}
        gone = self.problem.allocated.pool(*pool.id).gone_consumption
        holders += [sum_of_counters(gone[name]) for name in gone if name not in listed]
        seen: set[DeviceId] = set()
        for pick in progress.picks:
            if pick.entry.pool_id == pool.id:
                charged_before = self._is_allocated(pick.entry.id) or pick.entry.id in seen
                seen.add(pick.entry.id)
                if not (is_shareable(pick.entry.device, self.problem.features) and charged_before):
                    holders.append(counters_of(pick.entry.device))
        for taken in holders:
            for counter, amount in taken.items():
                if counter in left:  # devices that are gone may name one that is gone too
                    left[counter] -= amount
        for counter, amount in wanted.items():
            left[counter] -= amount
        # A counter that is overdrawn already forbids every device that takes from any.
        return not wanted or min(left.values()) >= 0

    def _is_allocated(self, device: DeviceId) -> bool:
        """Whether anybody holds the device or a share of it."""
        use = self.problem.allocated.pool(device.driver, device.pool).use(device.device)
        return use is not None

    def _broken(self, place: _Place, entry: Entry, progress: Progress) -> int:
        """The first constraint that the device breaks; -1 if it breaks none."""
        claim = self.problem.claims[place.claim]
        for index, constraint in enumerate(claim.devices.constraints):
            concerned = [
                (pick.demand, pick.entry)
                for pick in progress.of_claim(place.claim)
                if applies(constraint, pick.demand.main, pick.demand.name)
            ]
            if not applies(constraint, place.demand.main, place.demand.name):
                continue
            values = [
                attribute_values(
                    e.device,
                    e.resource_slice.driver,
                    constrained_attribute(constraint),
                    self.problem.features,
                )
                for _, e in [*concerned, (place.demand, entry)]
            ]
            if not constraint_holds(constraint, values):
                return index
        return -1
