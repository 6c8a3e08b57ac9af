"""The allocator: claims, a node and what is in use in; an outcome out.

``Allocator`` ties an inventory, the device classes and the features together. It keeps
no state per call: any number of threads may allocate with one allocator, as long as
nobody changes the inventory meanwhile.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from dra_core.allocator.assembly import assemble
from dra_core.allocator.plan import Plan, Planner
from dra_core.allocator.problem import Problem
from dra_core.allocator.report import unsatisfiable
from dra_core.allocator.results import Allocated, Conflict, ConflictKind, Outcome, Undecided
from dra_core.allocator.search import Meter, Search, StopSearch
from dra_core.api.core import Node
from dra_core.api.objects import DeviceClass, ResourceClaim
from dra_core.cel.selector import SelectorCache
from dra_core.features import Features
from dra_core.inventory.allocated import NOTHING_ALLOCATED, AllocatedState
from dra_core.inventory.index import Inventory

DEFAULT_BUDGET: Final = 100_000
"""Steps after which a call gives up as undecided: some seconds at worst."""

ALL_FEATURES: Final = Features()


class Allocator:
    """Allocates devices for claims on single nodes.

    ``inventory``: the slices, after taint rules were applied. ``classes``: all device
    classes (of equal names the last counts). ``share_ids``: makes the ID of a share,
    a new UUID each time; called for the devices of a solution only, in order.
    ``selectors``: compiled selectors, to share them between allocators.
    """

    def __init__(
        self,
        inventory: Inventory,
        classes: Iterable[DeviceClass],
        *,
        share_ids: Callable[[], str],
        features: Features = ALL_FEATURES,
        selectors: SelectorCache | None = None,
    ) -> None:
        self.inventory = inventory
        self.features = features
        self.selectors = SelectorCache() if selectors is None else selectors
        self._share_ids = share_ids
        self._planner = Planner({c.name: c for c in classes}, features)

    def plan(self, claims: Sequence[ResourceClaim]) -> Plan:
        """Prepare claims for ``allocate`` on many nodes.

        Never raises for what the claims say: a fault of theirs is ``Plan.error``, and
        ``allocate`` raises it.
        """
        return self._planner.plan(claims)

    def allocate(
        self,
        claims: Sequence[ResourceClaim] | Plan,
        node: Node,
        allocated: AllocatedState = NOTHING_ALLOCATED,
        *,
        budget: int | None = DEFAULT_BUDGET,
        deadline: Callable[[], bool] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Allocate all claims together on one node, or say why not.

        ``claims``: unallocated claims of one pod, in order, or a plan for them made by
        this allocator. ``allocated``: what is in use. ``budget``: steps after which the
        call ends as ``Undecided`` (``None``: never). ``deadline`` and ``cancel`` are asked
        now and then; True ends the call likewise.

        Returns the first solution in the order of the specification, a proof that there
        is none, or ``Undecided``. Raises ``AllocationError`` if a claim, its class, a
        selector or a slice is at fault. Changes nothing.

        Cost: a warm call on an everyday problem some 10 to 50 µs; problems that cannot be
        met are mostly proved without trying combinations.
        Source: resource.k8s.io/v1; KEP-4381 and the KEPs of the features.
        """
        plan = claims if isinstance(claims, Plan) else self._planner.plan(claims)
        view = self.inventory.view(node, self.features.partitionable_devices)
        meter = Meter(budget, deadline, cancel)
        try:
            meter.start()
            problem = Problem(
                plan, view, node, allocated, self.selectors, self.features, meter.pause
            )
            finding = problem.prepare()
            if finding is not None:
                return unsatisfiable(problem, finding.conflict, finding.reason, meter.steps)
            search = Search(problem, meter)
            if search.run():
                results = assemble(problem, *search.solution(), self._share_ids)
                return Allocated(results, meter.steps)
        except StopSearch as stop:
            return Undecided(stop.stopped_by, meter.steps)
        conflict = search.conflict or Conflict(ConflictKind.EXHAUSTED)
        return unsatisfiable(problem, conflict, None, meter.steps)
