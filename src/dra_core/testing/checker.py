"""Is an allocation right? Every rule checked on the finished answer, without a search.

What may live here: the rules as statements about a whole allocation. Unlike the
brute-force twin this says nothing about which allocation comes first or whether there
is one, so its cost is small and it can be used on problems of any size.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import attrs

from dra_core.api.names import DeviceId, PoolId
from dra_core.api.objects import (
    ALLOCATION_MODE_ALL,
    MAX_DEVICES_PER_CLAIM,
    AllocationResult,
    Device,
    DeviceClass,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dra_core.testing.brute_result import claim_config, claim_node_selector
from dra_core.testing.node_pools import NodePool, pools_of_node
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


@attrs.frozen
class _Granted:
    """One device of the answer, with what it was granted for."""

    claim: int
    position: int
    demand: Demand
    result: DeviceRequestAllocationResult
    entry: Entry

    def __str__(self) -> str:
        return f"claim #{self.claim}, {self.demand.name}, {self.entry.id}"


def violations(
    problem: Problem, results: Sequence[AllocationResult], selectors: Compile
) -> list[str]:
    """Every rule that the allocation breaks, as text; none if it is right.

    ``results`` has one allocation per claim, in order; ``selectors`` compiles the text
    of a selector. Cost: the devices of the node times the rules, quadratic in the
    devices granted.
    """
    if len(results) != len(problem.claims):
        return [f"{len(results)} results for {len(problem.claims)} claims"]
    return list(_Checker(problem, results, selectors).run())


class _Checker:
    def __init__(
        self, problem: Problem, results: Sequence[AllocationResult], selectors: Compile
    ) -> None:
        self.problem = problem
        self.results = results
        self.selectors = selectors
        self.pools = pools_of_node(problem.slices, problem.node, problem.features)
        self.candidates = [
            entry for pool in self.pools if pool.problem is None for entry in pool.entries()
        ]
        self.order = {entry.id: index for index, entry in enumerate(self.candidates)}
        self.granted: list[_Granted] = []

    def run(self) -> Iterator[str]:
        """All violations: first what cannot be understood, then rule by rule."""
        for index, claim in enumerate(self.problem.claims):
            yield from self._read(index, claim)
        for index, claim in enumerate(self.problem.claims):
            yield from self._check_requests(index, claim)
            yield from self._check_claim(index, claim)
        for one in self.granted:
            yield from (f"{one}: {fault}" for fault in self._check_device(one))
        yield from self._check_exclusive_use()
        yield from self._check_capacity()
        for pool in self.pools:
            yield from self._check_counters(pool)

    # --- from the answer to what it means ----------------------------------------------------

    def _read(self, index: int, claim: ResourceClaim) -> Iterator[str]:
        for result in self.results[index].results:
            demand = self._demand(claim, result.request)
            position = self.order.get(result.device_id)
            if demand is None:
                yield f"claim #{index}: {result.request} is no request of the claim"
            elif position is None:
                yield f"claim #{index}: {result.device_id} is in no usable pool of the node"
            else:
                entry = self.candidates[position]
                self.granted.append(_Granted(index, len(self.granted), demand, result, entry))

    def _demand(self, claim: ResourceClaim, name: str) -> Demand | None:
        """The request or subrequest of that name; None if the claim has none."""
        for request in claim.devices.requests:
            for demand in self._alternatives(request):
                if demand.name == name:
                    return demand
        return None

    def _alternatives(self, request: DeviceRequest) -> Iterator[Demand]:
        specs: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]] = [
            (f"{request.name}/{sub.name}", sub) for sub in request.first_available
        ]
        if request.exactly is not None:
            specs.append((request.name, request.exactly))
        for name, spec in specs:
            known = self.problem.device_class(spec.device_class_name) or DeviceClass()
            count = 1 if spec.count is None else spec.count
            demand = Demand(request.name, name, spec, known, count)
            if spec.allocation_mode == ALLOCATION_MODE_ALL:
                wanted = tuple(entry for entry in self.candidates if self._belongs(demand, entry))
                demand = attrs.evolve(demand, count=len(wanted), everything=wanted)
            yield demand

    def _belongs(self, demand: Demand, entry: Entry) -> bool:
        """Whether the device is one of "all devices"."""
        features, device = self.problem.features, entry.device
        if device.binding_conditions and not features.device_binding_and_status:
            return False
        if not self._selected(demand, entry):
            return False
        if not device_is_for_node(entry.resource_slice, device, self.problem.node):
            return False
        if not features.consumable_capacity:
            return True
        amounts = consumed_capacity(device, demand.spec.capacity)
        return amounts is not None and all(
            amounts[name] <= capacity.value for name, capacity in device.capacity.items()
        )

    def _selected(self, demand: Demand, entry: Entry) -> bool:
        texts = [s.cel or "" for s in (*demand.device_class.selectors, *demand.spec.selectors)]
        driver = entry.resource_slice.driver
        return all(self.selectors(text)(driver, entry.device) for text in texts)

    # --- one claim -----------------------------------------------------------------------------

    def _check_requests(self, index: int, claim: ResourceClaim) -> Iterator[str]:
        """Every request has what it asks for, in order; only one alternative was taken."""
        mine = [one for one in self.granted if one.claim == index]
        mains = [request.name for request in claim.devices.requests]
        for one, following in pairwise(mine):
            if mains.index(one.demand.main) > mains.index(following.demand.main):
                yield f"{following}: out of the order of requests"
            same = one.demand.name == following.demand.name
            if same and self.order[one.entry.id] >= self.order[following.entry.id]:
                yield f"{following}: out of the order of devices within the request"
        for request in claim.devices.requests:
            taken = [one for one in mine if one.demand.main == request.name]
            alternatives = list(self._alternatives(request))
            if not any(self._is_satisfied(demand, taken) for demand in alternatives):
                yield f"claim #{index}, {request.name}: got {[str(one) for one in taken]}"

    def _is_satisfied(self, demand: Demand, taken: Sequence[_Granted]) -> bool:
        if any(one.demand.name != demand.name for one in taken):
            return False
        if demand.everything is None:
            return len(taken) == demand.count
        return taken != [] and [one.entry for one in taken] == list(demand.everything)

    def _check_claim(self, index: int, claim: ResourceClaim) -> Iterator[str]:
        mine = [one for one in self.granted if one.claim == index]
        if len(mine) > MAX_DEVICES_PER_CLAIM:
            yield f"claim #{index}: {len(mine)} devices"
        for number, constraint in enumerate(claim.devices.constraints):
            values = [
                attribute_values(
                    one.entry.device,
                    one.entry.resource_slice.driver,
                    constrained_attribute(constraint),
                    self.problem.features,
                )
                for one in mine
                if applies(constraint, one.demand.main, one.demand.name)
            ]
            if not constraint_holds(constraint, values):
                yield f"claim #{index}: constraint #{number} is broken"
        if self.results[index].node_selector != claim_node_selector(
            [one.entry for one in mine], self.problem.node
        ):
            yield f"claim #{index}: wrong node selector"
        if not any(
            self.results[index].config == tuple(claim_config(claim, chosen))
            for chosen in self._possible_choices(claim, mine)
        ):
            yield f"claim #{index}: wrong configuration"

    def _possible_choices(
        self, claim: ResourceClaim, mine: Sequence[_Granted]
    ) -> Iterator[list[Demand]]:
        """The alternatives that may have been chosen: only one, save for counts of zero."""
        choices: list[list[Demand]] = [[]]
        for request in claim.devices.requests:
            taken = [one for one in mine if one.demand.main == request.name]
            fitting = [d for d in self._alternatives(request) if self._is_satisfied(d, taken)]
            choices = [[*before, demand] for before in choices for demand in fitting]
        yield from choices

    # --- one device ----------------------------------------------------------------------------

    def _check_device(self, one: _Granted) -> Iterator[str]:
        features, device = self.problem.features, one.entry.device
        resource_slice, demand = one.entry.resource_slice, one.demand
        if device.binding_conditions and not features.device_binding_and_status:
            yield "binding conditions, but the feature is off"
        if not self._selected(demand, one.entry):
            yield "a selector says no"
        if not device_is_for_node(resource_slice, device, self.problem.node):
            yield "not for this node"
        if device.consumes_counters and not features.partitionable_devices:
            yield "a partition, but the feature is off"
        if resource_slice.skip_node_operations and not (
            features.optional_node_operations
            and NODE_OPERATIONS_FEATURE in self.problem.node.declared_features
        ):
            yield "node operations that the node cannot skip"
        if features.device_taints and untolerated(device.taints, demand.spec.tolerations):
            yield "a taint that is not tolerated"
        yield from self._check_result(one)

    def _check_result(self, one: _Granted) -> Iterator[str]:
        """The fields of the result that follow from the device and the request."""
        features, device, result = self.problem.features, one.entry.device, one.result
        amounts = (
            consumed_capacity(device, one.demand.spec.capacity)
            if features.consumable_capacity
            else {}
        )
        if amounts is None:
            yield "a capacity that it does not have, or against its policy"
        shared = is_shareable(device, features)
        if bool(result.share_id) is not shared:
            yield "share ID without share, or the other way round"
        if result.consumed_capacity != ((amounts or None) if shared else None):
            yield "wrong consumed capacity"
        if result.admin_access is not (one.demand.admin_access or None):
            yield "wrong admin access"
        if result.tolerations != one.demand.spec.tolerations:
            yield "wrong tolerations"
        conditions = (device.binding_conditions, device.binding_failure_conditions)
        if (result.binding_conditions, result.binding_failure_conditions) != conditions:
            yield "wrong binding conditions"
        if result.skip_node_operations != one.entry.resource_slice.skip_node_operations:
            yield "wrong skipped node operations"

    # --- all devices together ------------------------------------------------------------------

    def _check_exclusive_use(self) -> Iterator[str]:
        for one in self.granted:
            admin = one.demand.admin_access
            if one.entry.id in self.problem.allocated.devices and not admin:
                yield f"{one}: in use"
            for other in self._same_device(one):
                same_request = one.claim == other.claim and one.demand.main == other.demand.main
                shared = is_shareable(one.entry.device, self.problem.features)
                later = one.position > other.position
                allowed = shared or not later or (admin and one.claim != other.claim)
                if same_request or not allowed:
                    yield f"{one}: given already to {other}"

    def _same_device(self, one: _Granted) -> Iterator[_Granted]:
        return (o for o in self.granted if o.entry.id == one.entry.id and o is not one)

    def _check_capacity(self) -> Iterator[str]:
        if not self.problem.features.consumable_capacity:
            return
        by_device: dict[DeviceId, list[_Granted]] = {}
        for one in self.granted:
            by_device.setdefault(one.entry.id, []).append(one)
        for device_id, shares in by_device.items():
            device = shares[0].entry.device
            before = self.problem.allocated.consumed_capacity.get(device_id, {})
            # Only shares add up: two claims with admin access may have all of a device.
            counted = shares if is_shareable(device, self.problem.features) else shares[:1]
            for name, capacity in device.capacity.items():
                total = before[name].nano if name in before else 0
                for one in counted:
                    amounts = consumed_capacity(device, one.demand.spec.capacity) or {}
                    total += amounts[name].nano if name in amounts else 0
                if total > capacity.value.nano:
                    yield f"{device_id}: more than its {name} is consumed"

    def _check_counters(self, pool: NodePool) -> Iterator[str]:
        """The counters of the pool suffice, unless nothing new takes from them."""
        charged = list(self._charged(pool.id))
        if not charged:
            return
        left = {
            (one.name, name): amount.nano
            for s in pool.slices
            for one in s.shared_counters
            for name, amount in one.counters.items()
        }
        allocated = self.problem.allocated.pool(*pool.id)
        listed = {entry.device.name for entry in pool.all_entries()}
        gone = [c for name, c in allocated.gone_consumption.items() if name not in listed]
        held = [e.device for e in pool.all_entries() if e.device.name in allocated.uses]
        takers = [counters_of(device) for device in (*held, *charged)]
        for taken in (*takers, *(sum_of_counters(one) for one in gone)):
            for counter, amount in taken.items():
                if counter in left:  # devices that are gone may name one that is gone too
                    left[counter] -= amount
        for counter, amount in left.items():
            if amount < 0:
                yield f"pool {pool.id}: counter {counter} is overdrawn"

    def _charged(self, pool: PoolId) -> Iterable[Device]:
        """The devices of the answer that take from the counters of the pool."""
        seen: set[DeviceId] = set()
        uses = self.problem.allocated.pool(*pool).uses
        for one in self.granted:
            if one.entry.pool_id != pool or not one.entry.device.consumes_counters:
                continue
            once = is_shareable(one.entry.device, self.problem.features)
            if not once or (one.entry.id not in seen and one.entry.device.name not in uses):
                yield one.entry.device
            seen.add(one.entry.id)
