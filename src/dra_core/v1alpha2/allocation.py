"""The allocator of named resources: claims, a node and what is in use in; an outcome out.

What may live here: ``NamedAllocator``, and making results and reports of what a search
found. Outcomes are those of ``dra_core.allocator.results``, so that explanations and
callers need to know no others; an instance counts as a device whose pool is called like
the node.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from dra_core.allocator.allocation import DEFAULT_BUDGET
from dra_core.allocator.results import (
    Allocated,
    Conflict,
    ConflictKind,
    Outcome,
    Rejected,
    RejectedFor,
    RequestReport,
    Undecided,
    Unsatisfiable,
)
from dra_core.allocator.search import Meter, StopSearch
from dra_core.api.core import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from dra_core.api.names import DeviceId
from dra_core.api.objects import ResourceClaim as AnyClaim
from dra_core.errors import SelectorEvaluationError, SelectorFailedError
from dra_core.inventory.allocated import NOTHING_ALLOCATED, AllocatedState
from dra_core.v1alpha2.inventory import NO_NODE, NamedInventory, Place
from dra_core.v1alpha2.objects import (
    AllocationResult,
    DriverAllocationResult,
    ResourceClass,
    ResourceHandle,
    StructuredResourceHandle,
)
from dra_core.v1alpha2.parameters import ParameterStore
from dra_core.v1alpha2.plan import (
    ClaimPlan,
    DriverPlan,
    Plan,
    PlannedFilter,
    PlannedRequest,
    Planner,
)
from dra_core.v1alpha2.search import Candidates, Failed, Found, Refuted, Search
from dra_core.v1alpha2.selectors import InstanceSelector, InstanceSelectors, InstanceView

HOSTNAME: Final = "kubernetes.io/hostname"
"""The label by which an allocation is tied to its node (LabelHostname)."""


class NamedAllocator:
    """Allocates named resources for claims on single nodes.

    ``inventory``, ``classes`` (by name) and ``parameters`` are looked at whenever a plan is
    made or a node is asked; whoever changes them sees to it that nobody allocates at the
    time. ``selectors``: compiled selectors, to share them between allocators.
    """

    def __init__(
        self,
        inventory: NamedInventory,
        classes: Mapping[str, ResourceClass],
        parameters: ParameterStore,
        *,
        selectors: InstanceSelectors | None = None,
    ) -> None:
        self.inventory = inventory
        self.classes = classes
        self.parameters = parameters
        self.selectors = InstanceSelectors() if selectors is None else selectors
        self._planner = Planner(classes, parameters, self.selectors)

    def plan(self, claims: Sequence[AnyClaim]) -> Plan:
        """Prepare unallocated claims of one pod, in order, for many nodes.

        Never raises for what the claims say: their fault is ``Plan.error``, and ``allocate``
        raises it. If that is a ``MissingObjectError``, the pod waits for the object.
        """
        return self._planner.plan(claims)

    def allocate(
        self,
        claims: Sequence[AnyClaim] | Plan,
        node: Node,
        allocated: AllocatedState = NOTHING_ALLOCATED,
        *,
        budget: int | None = DEFAULT_BUDGET,
        deadline: Callable[[], bool] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Allocate all claims together on one node, or say why not.

        Arguments and outcomes are those of ``dra_core.allocator.allocation.Allocator``; the
        results are ``AllocationResult`` of v1alpha2. ``allocated`` is what handles of
        allocated claims hold, as a ``ClaimTracker`` tells.

        Returns the first solution in order (claims, drivers, requests; instances in the
        order of their slices' names, the node's own first), a proof that there is none, or
        ``Undecided``. Raises ``AllocationError`` for a fault of the claims, and
        ``SelectorFailedError`` where a selector fails on an instance: the node is
        unsuitable, others may do. Changes nothing.

        Cost: a warm call with one request and eight instances some 20 to 30 µs.
        """
        plan = claims if isinstance(claims, Plan) else self._planner.plan(claims)
        if plan.error is not None:
            # A new one: raising the same object again would grow its traceback.
            raise attrs.evolve(plan.error)
        meter = Meter(budget, deadline, cancel)
        try:
            meter.start()
            return self._allocate(plan, node, allocated, meter)
        except StopSearch as stop:
            return Undecided(stop.stopped_by, meter.steps)

    def _allocate(self, plan: Plan, node: Node, allocated: AllocatedState, meter: Meter) -> Outcome:
        unsuitable = [
            Conflict(ConflictKind.UNSUITABLE_NODE, ((index, ""),), claim.resource_class.name)
            for index, claim in enumerate(plan.claims)
            if claim.suitable is not None and not claim.suitable.matches(node)
        ]
        if unsuitable:
            return Unsatisfiable("", tuple(unsuitable), (), (), meter.steps)
        handles: dict[tuple[int, str], ResourceHandle] = {}
        for driver, plans in plan.by_driver().items():
            supply = _Supply(self.inventory, driver, node.name, allocated)
            search = _DriverSearch(plan, plans, supply)
            found = search.run(meter)
            if isinstance(found, Unsatisfiable):
                return found
            handles |= found
        results = tuple(
            _result(index, claim, node.name, handles) for index, claim in enumerate(plan.claims)
        )
        return Allocated(results, meter.steps)


class _Supply:
    """The instances of one driver that a node has: its own, then those of no node."""

    def __init__(
        self, inventory: NamedInventory, driver: str, node: str, allocated: AllocatedState
    ) -> None:
        own = inventory.place(driver, node)
        self.places: tuple[Place, ...] = (own, inventory.place(driver, NO_NODE))
        self.own = (1 << len(own.views)) - 1
        self.views: tuple[InstanceView, ...] = own.views
        self.free = own.free(allocated.pool(driver, node))
        elsewhere = self.places[1]
        if elsewhere.views:
            self.views = own.views + elsewhere.views
            self.free |= elsewhere.free(allocated.pool(driver, NO_NODE)) << len(own.views)

    def node_of(self, instance: int) -> str:
        """The node name that a handle with this instance has."""
        return self.places[not self.own >> instance & 1].id.node

    def device_ids(self, mask: int) -> tuple[DeviceId, ...]:
        """What outcomes call instances."""
        driver = self.places[0].id.driver
        return tuple(
            DeviceId(driver, self.node_of(instance), view.name)
            for instance, view in enumerate(self.views)
            if mask >> instance & 1
        )


class _DriverSearch:
    """All requests to one driver, of all claims, on one node."""

    def __init__(self, plan: Plan, plans: tuple[DriverPlan, ...], supply: _Supply) -> None:
        self._plan = plan
        self._plans = plans
        self._supply = supply
        self._requests: list[tuple[DriverPlan, PlannedRequest]] = [
            (driver, request) for driver in plans for request in driver.requests
        ]
        # Many requests have the same selector, and claims of a pod the same class.
        self._known: dict[tuple[int, int, int], tuple[int, int]] = {}

    def run(self, meter: Meter) -> dict[tuple[int, str], ResourceHandle] | Unsatisfiable:
        supply = self._supply
        wanted = [
            Candidates(*self._selected(driver.filter, request, supply.free), driver.claim)
            for driver, request in self._requests
        ]
        found = Search(wanted, supply.own, meter).run()
        if isinstance(found, Failed):
            raise self._failure(found)
        if isinstance(found, Refuted):
            return self._unsatisfiable(found, meter.steps)
        return self._handles(found)

    def _selected(
        self, class_filter: PlannedFilter | None, request: PlannedRequest, among: int
    ) -> tuple[int, int]:
        """Masks of the instances that filter and selector choose, and on which one fails."""
        key = (id(class_filter and class_filter.selector), id(request.selector), among)
        known = self._known.get(key)
        if known is None:
            failed = 0
            left = among
            if class_filter is not None:
                left, failed = class_filter.selector.matching(self._supply.views, among)
            matching, failing = request.selector.matching(self._supply.views, left)
            known = self._known[key] = (matching, failing | failed)
        return known

    def _handles(self, found: Found) -> dict[tuple[int, str], ResourceHandle]:
        handles = {}
        rest = iter(found.instances)
        for driver in self._plans:
            picked = [next(rest) for _ in driver.requests]
            results = tuple(
                DriverAllocationResult(request.vendor_parameters, self._supply.views[one].name)
                for request, one in zip(driver.requests, picked, strict=True)
            )
            data = StructuredResourceHandle(
                driver.vendor_class_parameters,
                driver.vendor_claim_parameters,
                self._supply.node_of(picked[0]),
                results,
            )
            handles[driver.claim, driver.driver] = ResourceHandle(driver.driver, "", data)
        return handles

    def _failure(self, failed: Failed) -> SelectorFailedError:
        """The error for a selector that fails on an instance."""
        driver, request = self._requests[failed.request]
        view = self._supply.views[failed.instance]
        device = str(self._supply.device_ids(1 << failed.instance)[0])
        claim = self._plan.claims[driver.claim].name
        if driver.filter is not None:
            cause = _error(driver.filter.selector, view)
            if cause is not None:
                of_class, index = driver.filter.resource_class, driver.filter.index
                return SelectorFailedError(claim, request.name, of_class, index, device, cause)
        cause = _error(request.selector, view)
        if cause is None:
            raise AssertionError(f"{request.selector} failed on {view.name} once, and now does not")
        return SelectorFailedError(claim, request.name, "", 0, device, cause)

    # --- why not -------------------------------------------------------------------------

    def _unsatisfiable(self, refuted: Refuted, steps: int) -> Unsatisfiable:
        reports = tuple(self._report(driver, request) for driver, request in self._requests)
        names = tuple(
            (self._requests[number][0].claim, self._requests[number][1].name)
            for number in refuted.requests
        )
        if not names:
            conflict = Conflict(ConflictKind.EXHAUSTED)
        elif len(names) == 1:
            conflict = Conflict(ConflictKind.TOO_FEW, names, "", 1, refuted.available)
        else:
            kind = ConflictKind.JOINTLY_TOO_FEW
            conflict = Conflict(kind, names, "", len(names), refuted.available)
        return Unsatisfiable("", (conflict,), reports, (), steps)

    def _report(self, driver: DriverPlan, request: PlannedRequest) -> RequestReport:
        supply = self._supply
        everything = (1 << len(supply.views)) - 1
        chosen, failing = self._selected(driver.filter, request, everything)
        wanted = chosen | failing
        masks = {
            RejectedFor.IN_USE: wanted & ~supply.free,
            RejectedFor.SELECTOR: everything & ~wanted,
        }
        rejected = tuple(
            Rejected(why, supply.device_ids(mask)) for why, mask in masks.items() if mask
        )
        usable = (wanted & supply.free).bit_count()
        return RequestReport(driver.claim, request.name, 1, usable, rejected)


def _error(selector: InstanceSelector, view: InstanceView) -> SelectorEvaluationError | None:
    try:
        selector.matches(view)
    except SelectorEvaluationError as error:
        # Without its traceback: a kept one would keep the caller's frames alive.
        return error.with_traceback(None)
    return None


def _result(
    index: int, claim: ClaimPlan, node: str, handles: Mapping[tuple[int, str], ResourceHandle]
) -> AllocationResult:
    """What ``status.allocation`` of a claim will be."""
    return AllocationResult(
        node_selector=on_node(node),
        resource_handles=tuple(handles[index, driver.driver] for driver in claim.drivers),
        shareable=claim.shareable,
    )


def on_node(node: str) -> NodeSelector:
    """The node selector of what is allocated for a node."""
    requirement = NodeSelectorRequirement(HOSTNAME, "In", (node,))
    return NodeSelector((NodeSelectorTerm((requirement,)),))
