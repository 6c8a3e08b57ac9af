"""The twin's checks of requests, which come before any search.

What may live here: turning the requests of the claims into demands, in the order of
the rules, and the evaluation of selectors. The first finding ends the checks.
"""

from collections.abc import Sequence

import attrs

from dra_core.api.objects import (
    ALLOCATION_MODE_ALL,
    ALLOCATION_MODE_EXACT_COUNT,
    MAX_DEVICES_PER_CLAIM,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dra_core.errors import (
    DeviceClassNotFoundError,
    DraError,
    FeatureDisabledError,
    InvalidCountError,
    MissingClassNameError,
    SelectorFailedError,
    TooManyDevicesError,
    UnknownAllocationModeError,
    UnknownConstraintError,
    UnknownRequestError,
    UnknownSelectorError,
)
from dra_core.testing.node_pools import NodePool
from dra_core.testing.problem import Compile, Demand, Entry, Problem
from dra_core.testing.rules import consumed_capacity, device_is_for_node

Spec = ExactDeviceRequest | DeviceSubRequest


class DoesNotFitError(Exception):
    """A finding of the checks that is no error: nothing fits. ``reason`` is coarse."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Checks:
    """The checks of one problem."""

    def __init__(self, problem: Problem, pools: Sequence[NodePool], selectors: Compile) -> None:
        self.problem = problem
        self.pools = pools
        self.selectors = selectors

    def demands(self) -> list[list[list[Demand]]]:
        """By claim and request: the alternatives, of which one has to be satisfied.

        Raises AllocationError, and DoesNotFitError.
        """
        return [self._claim(claim) for claim in self.problem.claims]

    def _claim(self, claim: ResourceClaim) -> list[list[Demand]]:
        requests = [self._alternatives(claim, request) for request in claim.devices.requests]
        needed = sum(min(demand.count for demand in one) for one in requests)
        if needed > MAX_DEVICES_PER_CLAIM:
            raise TooManyDevicesError(key(claim), "", needed, MAX_DEVICES_PER_CLAIM)
        for index, constraint in enumerate(claim.devices.constraints):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                raise UnknownConstraintError(key(claim), "", index)
        return requests

    def _alternatives(self, claim: ResourceClaim, request: DeviceRequest) -> list[Demand]:
        if request.first_available:
            if not self.problem.features.prioritized_list:
                raise FeatureDisabledError(
                    key(claim), request.name, "DRAPrioritizedList", "firstAvailable"
                )
            return [
                self._demand(claim, request, f"{request.name}/{sub.name}", sub)
                for sub in request.first_available
            ]
        if request.exactly is None:
            raise UnknownRequestError(key(claim), request.name)
        return [self._demand(claim, request, request.name, request.exactly)]

    def _demand(
        self, claim: ResourceClaim, request: DeviceRequest, name: str, spec: Spec
    ) -> Demand:
        self._check_features(claim, name, spec)
        _check_selectors(claim, name, "", spec.selectors)
        if not spec.device_class_name:
            raise MissingClassNameError(key(claim), name)
        device_class = self.problem.device_class(spec.device_class_name)
        if device_class is None:
            raise DeviceClassNotFoundError(key(claim), name, spec.device_class_name)
        _check_selectors(claim, name, device_class.name, device_class.selectors)
        demand = Demand(request.name, name, spec, device_class)
        mode = spec.allocation_mode or ALLOCATION_MODE_EXACT_COUNT
        if mode == ALLOCATION_MODE_ALL:
            everything = tuple(self._everything(claim, demand))
            return attrs.evolve(demand, count=len(everything), everything=everything)
        if mode != ALLOCATION_MODE_EXACT_COUNT:
            raise UnknownAllocationModeError(key(claim), name, mode)
        count = 1 if spec.count is None else spec.count
        if count < 0:
            raise InvalidCountError(key(claim), name, count)
        return attrs.evolve(demand, count=count)

    def _check_features(self, claim: ResourceClaim, name: str, spec: Spec) -> None:
        features = self.problem.features
        if spec.capacity is not None and not features.consumable_capacity:
            raise FeatureDisabledError(key(claim), name, "DRAConsumableCapacity", "capacity")
        admin = spec.admin_access if isinstance(spec, ExactDeviceRequest) else None
        if admin is not None and not features.admin_access:
            raise FeatureDisabledError(key(claim), name, "DRAAdminAccess", "adminAccess")

    def _everything(self, claim: ResourceClaim, demand: Demand) -> list[Entry]:
        """What "all devices" means for a demand."""
        found = []
        for pool in self.pools:
            if pool.problem is not None:
                raise DoesNotFitError(f"{pool.problem}-pool")
            for entry in pool.entries():
                if (
                    self.selected(claim, demand, entry)
                    and device_is_for_node(entry.resource_slice, entry.device, self.problem.node)
                    and self._could_ever_fit(demand, entry)
                ):
                    found.append(entry)
        return found

    def _could_ever_fit(self, demand: Demand, entry: Entry) -> bool:
        """Whether the device, with nothing of it in use, can take the request."""
        features = self.problem.features
        if entry.device.binding_conditions and not features.device_binding_and_status:
            return False
        if not features.consumable_capacity:
            return True
        amounts = consumed_capacity(entry.device, demand.spec.capacity)
        return amounts is not None and all(
            amount <= entry.device.capacity[name].value for name, amount in amounts.items()
        )

    def selected(self, claim: ResourceClaim, demand: Demand, entry: Entry) -> bool:
        """Whether the selectors say yes: the class's, then the request's.

        Raises SelectorFailedError for one that does not compile or fails on the device.
        """
        for owner, selectors in (
            (demand.device_class.name, demand.device_class.selectors),
            ("", demand.spec.selectors),
        ):
            for index, selector in enumerate(selectors):
                where = (key(claim), demand.name, owner, index)
                try:
                    matches = self.selectors(selector.cel or "")
                except DraError as cause:
                    raise SelectorFailedError(*where, "", cause) from cause
                try:
                    if not matches(entry.resource_slice.driver, entry.device):
                        return False
                except DraError as cause:
                    raise SelectorFailedError(*where, str(entry.id), cause) from cause
        return True


def key(claim: ResourceClaim) -> str:
    """The claim as errors name it."""
    return str(claim.metadata.key)


def _check_selectors(
    claim: ResourceClaim, name: str, owner: str, selectors: Sequence[DeviceSelector]
) -> None:
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            raise UnknownSelectorError(key(claim), name, owner, index)
