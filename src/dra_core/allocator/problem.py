"""One call laid out for the search: a plan, on a node, with what is in use.

Everything that stays the same while the search runs is here: for each request its
options with their candidates as masks, the counters and capacity that are left, the
columns of the constraints. Making it runs the checks that come before any search, in
their order; the first finding ends them.
"""

from collections.abc import Mapping

import attrs

from dra_core.allocator.columns import Column, column
from dra_core.allocator.counters import CounterTable, counter_table
from dra_core.allocator.plan import (
    Alternative,
    CheckLimit,
    Constraint,
    ExpandAll,
    Plan,
    claim_label,
)
from dra_core.allocator.results import Conflict, ConflictKind
from dra_core.allocator.static import (
    Checkpoint,
    Statics,
    bits,
    find_statics,
    selector_failure,
)
from dra_core.api.core import Node
from dra_core.api.objects import MAX_DEVICES_PER_CLAIM
from dra_core.cel.selector import SelectorCache
from dra_core.errors import AllocationError, TooManyDevicesError
from dra_core.features import Features
from dra_core.inventory.allocated import NOTHING_IN_USE, AllocatedState, PoolAllocation
from dra_core.inventory.problems import PoolState
from dra_core.inventory.slices import StoredSlice
from dra_core.inventory.view import NodeView, PoolView

NODE_OPERATIONS = frozenset(("DRAOptionalNodeOperations", "OptionalNodeOperations"))
"""``node.status.declaredFeatures``: either form of the gate's name counts."""


class Option:
    """An alternative of a request on this node.

    ``mask``: candidates that pass every check that does not depend on other picks.
    ``failing``: candidates whose selector fails when the search gets there. ``rows``:
    for mode All the candidates that must all be taken. ``need``: how many devices.
    ``risky``: reaching this option may end the call with an error.
    """

    __slots__ = (
        "admin",
        "alternative",
        "constraints",
        "every",
        "failing",
        "mask",
        "need",
        "risky",
        "rows",
        "statics",
    )

    def __init__(
        self, alternative: Alternative, statics: Statics, need: int, mask: int, failing: int
    ) -> None:
        self.alternative = alternative
        self.statics = statics
        self.every = alternative.every
        self.admin = alternative.admin
        self.constraints = alternative.constraints
        self.need = need
        self.mask = mask
        self.failing = failing
        self.rows = bits(statics.selected) if alternative.every else []
        self.risky = bool(failing) or alternative.can_fail


class Slot:
    """A request on this node: its options in order."""

    __slots__ = ("claim", "options", "risky")

    def __init__(self, claim: int, options: list[Option]) -> None:
        self.claim = claim
        self.options = options
        self.risky = options[0].risky if len(options) == 1 else any(o.risky for o in options)


@attrs.frozen
class Finding:
    """A check before the search found that nothing fits. ``reason`` as in ``Unsatisfiable``."""

    reason: str
    conflict: Conflict


class PoolUse:
    """What is in use of one pool, as masks over the candidates.

    ``exclusive``: taken; ``shared``: somebody has a share; ``consumed`` by candidate.
    """

    __slots__ = ("consumed", "exclusive", "shared")

    def __init__(self, pool: PoolView, allocation: PoolAllocation) -> None:
        self.exclusive = self.shared = 0
        self.consumed: dict[int, Mapping[str, int]] = {}
        index = pool.index
        for name, use in allocation.uses.items():
            candidate = index.get(name)
            if candidate is None:
                continue
            if use.exclusive:
                self.exclusive |= 1 << candidate
            else:
                self.shared |= 1 << candidate
            if use.consumed_capacity:
                self.consumed[candidate] = {
                    key: amount.nano for key, amount in use.consumed_capacity.items()
                }


class Problem:
    """See the module. ``slots`` are the requests in search order.

    ``multiple`` masks the candidates that may be shared, ``paid`` those of them whose
    counters are taken already, ``tracked`` those whose capacity must be watched;
    ``consumed`` is what is in use of a candidate's capacities (billionths, by name).
    """

    def __init__(
        self,
        plan: Plan,
        view: NodeView,
        node: Node,
        allocated: AllocatedState,
        selectors: SelectorCache,
        features: Features,
        checkpoint: Checkpoint,
    ) -> None:
        self.plan = plan
        self.view = view
        self.features = features
        self.selectors = selectors
        self._checkpoint = checkpoint
        self.in_use = shared = 0
        self.consumed: dict[int, Mapping[str, int]] = {}
        for pool in view.pools if allocated else ():
            use = _pool_use(view, pool, allocated)
            if use is not None:
                self.in_use |= use.exclusive
                shared |= use.shared
                self.consumed.update(use.consumed)
        self.multiple = view.multiple if features.consumable_capacity else 0
        self.paid = (shared | self.in_use) & self.multiple
        self.tracked = self._tracked() if features.consumable_capacity else 0
        self._limits: dict[int, tuple[int, ...]] = {}
        if self.tracked:
            self._limits = view.derived.setdefault("limits", self._limits)
        self.unready = self._unready(node)
        self.table: CounterTable | None = None
        self.available = self.overdrawn = 0
        if view.consuming and features.partitionable_devices:
            self.table = counter_table(view)
        if self.table is not None:
            self.available, overdrawn = self.table.available(view, allocated)
            self.overdrawn = overdrawn & self.table.taking & ~self.paid
        self._columns: dict[int, Column] = {}
        self.slots: list[Slot] = []

    def _unready(self, node: Node) -> int:
        """Candidates whose slice skips node operations, if the node does not know that."""
        if not self.view.skipping or (
            self.features.optional_node_operations
            and NODE_OPERATIONS.intersection(node.declared_features)
        ):
            return 0
        return self.view.skipping

    def _tracked(self) -> int:
        tracked = self.multiple and self.multiple & self.view.combine("sized", _sized)[0]
        for candidate in self.consumed:
            tracked |= 1 << candidate
        return tracked

    def limits(self, candidate: int) -> tuple[int, ...]:
        """The capacities of a candidate in billionths, in its order. Kept in the view."""
        known = self._limits.get(candidate)
        if known is None:
            capacity = self.view.devices[candidate].capacity
            known = tuple([amount.value.nano for amount in capacity.values()])
            self._limits[candidate] = known
        return known

    def consumed_amounts(self, candidate: int) -> tuple[int, ...]:
        """What is in use of them."""
        used = self.consumed.get(candidate)
        if used is None:
            return (0,) * len(self.view.devices[candidate].capacity)
        return tuple([used.get(name, 0) for name in self.view.devices[candidate].capacity])

    def prepare(self) -> Finding | None:
        """Run the checks and lay out the requests.

        Raises the fault of the claims (``AllocationError``) when its turn comes.
        """
        for check in self.plan.checks:
            finding = None
            if isinstance(check, AllocationError):
                raise attrs.evolve(check)
            if isinstance(check, ExpandAll):
                finding = self._expand(check.alternative)
            else:
                self._check_limit(check)
            if finding is not None:
                return finding
        self.slots = [
            Slot(request.claim, [self.option(a) for a in request.alternatives])
            for request in self.plan.requests
        ]
        return None

    def statics(self, alternative: Alternative) -> Statics:
        """The fixed checks of an alternative."""
        return find_statics(self.view, alternative, self.selectors, self.features, self._checkpoint)

    def option(self, alternative: Alternative) -> Option:
        """An alternative with its candidates."""
        statics = self.statics(alternative)
        free = -1 if alternative.admin else ~self.in_use
        mask = statics.usable & free & ~self.unready & ~self.overdrawn
        if alternative.every:
            return Option(alternative, statics, statics.selected.bit_count(), mask, 0)
        return Option(alternative, statics, alternative.count, mask, statics.failing & free)

    def _expand(self, alternative: Alternative) -> Finding | None:
        """Mode All: no pool may be in doubt, no selector may fail."""
        statics = self.statics(alternative)
        problems = self.view.problems
        if statics.failing:
            candidate = bits(statics.failing)[0]
            pool = self.view.owners[candidate]
            late = bool(self.view.binding >> pool.start & ((1 << pool.stop - pool.start) - 1))
            first = (problems[0].driver, problems[0].pool) if problems else None
            if first is None or (not late and pool.pool_id < first):
                raise self.selector_failure(alternative, candidate)
        if not problems:
            return None
        incomplete = problems[0].state is PoolState.INCOMPLETE
        conflict = Conflict(ConflictKind.POOL, ((alternative.claim, alternative.name),))
        return Finding("incomplete-pool" if incomplete else "invalid-pool", conflict)

    def selector_failure(self, alternative: Alternative, candidate: int) -> AllocationError:
        """The error of a selector that fails on a candidate."""
        label = claim_label(self.plan.claims[alternative.claim])
        return selector_failure(self.view, candidate, alternative, self.selectors, label)

    def _check_limit(self, check: CheckLimit) -> None:
        needed = 0
        for request in self.plan.requests:
            if request.claim == check.claim:
                needed += min(self._least(a) for a in request.alternatives)
        if needed > MAX_DEVICES_PER_CLAIM:
            label = claim_label(self.plan.claims[check.claim])
            raise TooManyDevicesError(label, "", needed, MAX_DEVICES_PER_CLAIM)

    def _least(self, alternative: Alternative) -> int:
        if alternative.every:
            return self.statics(alternative).selected.bit_count()
        return alternative.count

    def column(self, number: int) -> Column:
        """The attribute values for constraint ``number`` of the plan."""
        known = self._columns.get(number)
        if known is None:
            constraint: Constraint = self.plan.constraints[number]
            lists = self.features.list_type_attributes
            known = self._columns[number] = column(self.view, constraint.attribute, lists)
        return known


def _sized(stored: StoredSlice) -> tuple[int, int]:
    """Devices with any capacity."""
    mask = 0
    for place, device in enumerate(stored.slice.devices):
        if device.capacity:
            mask |= 1 << place
    return mask, 0


def _pool_use(view: NodeView, pool: PoolView, allocated: AllocatedState) -> PoolUse | None:
    """What is in use of a pool, remembered as long as it is the same."""
    allocation = allocated.pool(*pool.pool_id)
    if allocation is NOTHING_IN_USE:
        return None
    key = ("use", pool.start)
    known = view.derived.get(key)
    if known is None or known[0] is not allocation:
        known = allocation, PoolUse(pool, allocation)
        view.keep(key, known)
    use: PoolUse = known[1]
    return use
