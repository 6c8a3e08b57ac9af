"""What claims ask for, worked out once for all nodes.

What may live here: classes, parameters and selectors of claims, looked up, checked and
compiled. What is wrong with a claim is found here, so that a search on a node meets no
fault but that of a selector on an instance.

Entries of a claim's parameters for one driver are joined in order: they go to one handle,
whose vendor parameters are those of the driver's first entry. Filter and vendor parameters
of the class are those of the first entry for the driver. A driver that nothing is asked
of gets no handle.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from dra_core.api.objects import ResourceClaim as AnyClaim
from dra_core.errors import AllocationError, SelectorCompileError, SelectorFailedError
from dra_core.inventory.matching import (
    NodeMatcher,
    NodeSelectorProblem,
    compile_node_selector,
)
from dra_core.v1alpha2.claims import ResourceClaim
from dra_core.v1alpha2.errors import (
    NotStructuredError,
    ResourceClassNotFoundError,
    SuitableNodesError,
    UnknownModelError,
)
from dra_core.v1alpha2.objects import (
    DriverRequests,
    ResourceClass,
    ResourceClassParameters,
    ResourceRequest,
    request_name,
)
from dra_core.v1alpha2.parameters import FoundParameters, ParameterStore
from dra_core.v1alpha2.selectors import InstanceSelector, InstanceSelectors


@attrs.frozen(eq=False)
class PlannedRequest:
    """One instance that a claim asks for. ``name`` is for outcomes and errors."""

    name: str
    selector: InstanceSelector
    vendor_parameters: Any = attrs.field(repr=False)


@attrs.frozen(eq=False)
class PlannedFilter:
    """What a class allows. ``index`` is its place in the class parameters."""

    resource_class: str
    index: int
    selector: InstanceSelector


@attrs.frozen(eq=False)
class DriverPlan:
    """All that one claim asks of one driver: what becomes one handle."""

    claim: int
    driver: str
    requests: tuple[PlannedRequest, ...]
    filter: PlannedFilter | None
    vendor_class_parameters: Any = attrs.field(repr=False)
    vendor_claim_parameters: Any = attrs.field(repr=False)


@attrs.frozen(eq=False)
class ClaimPlan:
    """One claim: its class, whether it may be shared, and what it asks of each driver."""

    claim: ResourceClaim
    resource_class: ResourceClass
    suitable: NodeMatcher | None
    shareable: bool
    drivers: tuple[DriverPlan, ...]

    @property
    def name(self) -> str:
        """ "namespace/name" of the claim."""
        return str(self.claim.metadata.key)


@attrs.frozen(eq=False)
class Plan:
    """Claims of one pod, in order.

    ``error`` is what is wrong with the first claim that cannot be planned; then there are no
    ``claims``. A ``MissingObjectError`` says that the pod has to wait for an object.
    """

    claims: tuple[ClaimPlan, ...] = ()
    error: AllocationError | None = None

    def by_driver(self) -> Mapping[str, tuple[DriverPlan, ...]]:
        """What all claims ask of each driver, drivers in order of their first appearance."""
        found: dict[str, tuple[DriverPlan, ...]] = {}
        for claim in self.claims:
            for driver in claim.drivers:
                found[driver.driver] = (*found.get(driver.driver, ()), driver)
        return found


def find_class(classes: Mapping[str, ResourceClass], claim: ResourceClaim) -> ResourceClass:
    """The class of a claim. Raises ``ResourceClassNotFoundError``: wait for it."""
    found = classes.get(claim.spec.class_name)
    if found is None:
        raise ResourceClassNotFoundError(str(claim.metadata.key), "", claim.spec.class_name)
    return found


def suitable_nodes(claim: ResourceClaim, resource_class: ResourceClass) -> NodeMatcher | None:
    """Where a claim that is not allocated may be allocated; ``None``: everywhere.

    Raises ``SuitableNodesError``.
    """
    if resource_class.suitable_nodes is None:
        return None
    try:
        return compile_node_selector(resource_class.suitable_nodes)
    except NodeSelectorProblem as problem:
        name = str(claim.metadata.key)
        raise SuitableNodesError(name, "", resource_class.name, str(problem)) from None


class Planner:
    """Makes plans from classes, parameters and compiled selectors, all the caller's."""

    def __init__(
        self,
        classes: Mapping[str, ResourceClass],
        parameters: ParameterStore,
        selectors: InstanceSelectors,
    ) -> None:
        self._classes = classes
        self._parameters = parameters
        self._selectors = selectors

    def plan(self, claims: Sequence[AnyClaim]) -> Plan:
        """The plan for unallocated claims of one pod. Never raises for what they say.

        Cost: linear in the requests, and about a millisecond per new selector.
        """
        planned: list[ClaimPlan] = []
        try:
            for index, claim in enumerate(claims):
                if not isinstance(claim, ResourceClaim):
                    raise TypeError(f"{claim.metadata.key} is no claim of v1alpha2")
                planned.append(self._claim(index, claim))
        except AllocationError as error:
            # Without its traceback: a kept one would keep the caller's frames alive.
            return Plan(error=error.with_traceback(None))
        return Plan(tuple(planned))

    def _claim(self, index: int, claim: ResourceClaim) -> ClaimPlan:
        name = str(claim.metadata.key)
        resource_class = find_class(self._classes, claim)
        if not resource_class.structured_parameters:
            driver = resource_class.driver_name
            raise NotStructuredError(name, "", resource_class.name, driver)
        suitable = suitable_nodes(claim, resource_class)
        found = self._parameters.find(claim, resource_class)
        drivers = _ClaimPlanner(self._selectors, index, name, resource_class, found).drivers()
        return ClaimPlan(claim, resource_class, suitable, found.of_claim.shareable, tuple(drivers))


class _ClaimPlanner:
    """The work on one claim."""

    def __init__(
        self,
        selectors: InstanceSelectors,
        index: int,
        claim: str,
        resource_class: ResourceClass,
        found: FoundParameters,
    ) -> None:
        self._selectors = selectors
        self._index = index
        self._claim = claim
        self._class = resource_class
        self._found = found

    def drivers(self) -> Iterable[DriverPlan]:
        entries: dict[str, list[tuple[int, DriverRequests]]] = {}
        for number, entry in enumerate(self._found.of_claim.driver_requests):
            entries.setdefault(entry.driver_name, []).append((number, entry))
        for driver, own in entries.items():
            requests = self._requests(driver, own)
            if requests:
                yield DriverPlan(
                    self._index,
                    driver,
                    requests,
                    self._filter(driver),
                    _vendor_parameters(self._found.of_class, driver),
                    own[0][1].vendor_parameters,
                )

    def _requests(
        self, driver: str, entries: Sequence[tuple[int, DriverRequests]]
    ) -> tuple[PlannedRequest, ...]:
        made: list[PlannedRequest] = []
        for number, entry in entries:
            for place, request in enumerate(entry.requests):
                path = f"driverRequests[{number}].requests[{place}]"
                made.append(self._request(request_name(driver, len(made)), path, request))
        return tuple(made)

    def _request(self, name: str, path: str, request: ResourceRequest) -> PlannedRequest:
        if request.selector is None:
            owner = _owner("ResourceClaimParameters", self._found.of_claim)
            raise UnknownModelError(self._claim, name, owner, path)
        try:
            selector = self._selectors.compile(request.selector)
        except SelectorCompileError as error:
            raise SelectorFailedError(self._claim, name, "", 0, "", error) from None
        return PlannedRequest(name, selector, request.vendor_parameters)

    def _filter(self, driver: str) -> PlannedFilter | None:
        for index, entry in enumerate(self._found.of_class.filters):
            if entry.driver_name != driver:
                continue
            if entry.selector is None:
                owner = _owner("ResourceClassParameters", self._found.of_class)
                raise UnknownModelError(self._claim, "", owner, f"filters[{index}]")
            try:
                selector = self._selectors.compile(entry.selector)
            except SelectorCompileError as error:
                name = self._class.name
                raise SelectorFailedError(self._claim, "", name, index, "", error) from None
            return PlannedFilter(self._class.name, index, selector)
        return None


def _owner(kind: str, parameters: Any) -> str:
    return f"{kind} {parameters.metadata.key}"


def _vendor_parameters(parameters: ResourceClassParameters, driver: str) -> Any:
    """Those of the first entry for the driver."""
    for entry in parameters.vendor_parameters:
        if entry.driver_name == driver:
            return entry.parameters
    return None
