"""The twin's allocation results: from picks to what goes into a claim's status.

What may live here: picks, and the text of one result from them.
"""

from collections.abc import Iterable, Mapping

import attrs

from dra_core.api.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.api.objects import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dra_core.errors import NodeSelectorError
from dra_core.features import Features
from dra_core.testing.problem import Demand, Entry, Problem
from dra_core.testing.rules import is_shareable
from dra_core.values.quantity import Quantity

MADE_UP_SHARE_ID = "00000000-0000-4000-8000-000000000000"
"""Stands for every share ID, because comparing random ones says nothing."""


@attrs.frozen
class Pick:
    """One device for one demand of one claim, and what it consumes of its capacities."""

    claim: int
    demand: Demand
    entry: Entry
    amounts: Mapping[str, Quantity] = attrs.field(factory=dict)


@attrs.frozen
class Progress:
    """How far the search has got: devices picked, and alternatives chosen, in order."""

    picks: tuple[Pick, ...]
    choices: tuple[tuple[int, Demand], ...]

    def of_claim(self, claim: int) -> list[Pick]:
        """The picks for one claim."""
        return [pick for pick in self.picks if pick.claim == claim]

    def with_pick(self, pick: Pick) -> "Progress":
        """One device further."""
        return Progress((*self.picks, pick), self.choices)


def allocation_result(
    claim: int, problem: Problem, progress: Progress, share_id: str
) -> AllocationResult:
    """What the claim at that position gets.

    Raises NodeSelectorError for a selector that cannot be passed on.
    """
    picks = progress.of_claim(claim)
    chosen = [demand for index, demand in progress.choices if index == claim]
    return AllocationResult(
        results=tuple(_device(pick, problem.features, share_id) for pick in picks),
        config=tuple(claim_config(problem.claims[claim], chosen)),
        node_selector=claim_node_selector([pick.entry for pick in picks], problem.node),
    )


def _device(pick: Pick, features: Features, share_id: str) -> DeviceRequestAllocationResult:
    device = pick.entry.device
    shared = is_shareable(device, features)
    return DeviceRequestAllocationResult(
        request=pick.demand.name,
        driver=pick.entry.id.driver,
        pool=pick.entry.id.pool,
        device=device.name,
        admin_access=pick.demand.admin_access or None,
        tolerations=pick.demand.spec.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=share_id if shared else "",
        consumed_capacity=(pick.amounts or None) if shared else None,
        skip_node_operations=pick.entry.resource_slice.skip_node_operations,
    )


# --- configuration -------------------------------------------------------------------------


def claim_config(
    claim: ResourceClaim, chosen: list[Demand]
) -> Iterable[DeviceAllocationConfiguration]:
    """The configuration that goes with the chosen alternatives, one per request."""
    done: list[str] = []
    for demand in chosen:
        if demand.device_class.name in done:
            continue
        done.append(demand.device_class.name)
        names = tuple(d.name for d in chosen if d.device_class.name == demand.device_class.name)
        for class_config in demand.device_class.config:
            yield DeviceAllocationConfiguration(
                "FromClass", _shortened(names, chosen), class_config.opaque
            )
    for config in claim.devices.config:
        mine = [name for d in chosen for name in (d.main, d.name)]
        if not config.requests or any(name in mine for name in config.requests):
            yield DeviceAllocationConfiguration(
                "FromClaim", _shortened(config.requests, chosen), config.opaque
            )


def _shortened(names: tuple[str, ...], chosen: list[Demand]) -> tuple[str, ...]:
    """The names; none if they cover all requests, because empty means all."""
    covers_all = all(demand.main in names or demand.name in names for demand in chosen)
    return () if covers_all else names


# --- node selector -------------------------------------------------------------------------


def claim_node_selector(entries: list[Entry], node: Node) -> NodeSelector | None:
    """Where devices together are available; None means everywhere.

    Raises NodeSelectorError for a selector that cannot be passed on.
    """
    if any(entry.device.binds_to_node or _node_name(entry) for entry in entries):
        name = NodeSelectorRequirement("metadata.name", "In", (node.name,))
        return NodeSelector((NodeSelectorTerm(match_fields=(name,)),))
    labels: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for entry in entries:
        per_device = entry.resource_slice.per_device_node_selection
        selector = (entry.device if per_device else entry.resource_slice).node_selector
        if selector is None:
            continue
        if len(selector.terms) > 1:
            device = entry.device.name if per_device else ""
            raise NodeSelectorError("", "", entry.resource_slice.name, device, "more than one term")
        for term in selector.terms:
            _add(labels, term.match_expressions)
            _add(fields, term.match_fields)
    if not labels and not fields:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(labels), tuple(fields)),))


def _node_name(entry: Entry) -> str:
    if entry.resource_slice.per_device_node_selection and entry.device.node_name:
        return entry.device.node_name
    return entry.resource_slice.node_name


def _add(known: list[NodeSelectorRequirement], new: tuple[NodeSelectorRequirement, ...]) -> None:
    for one in new:
        if not any(
            (one.key, one.operator, set(one.values)) == (old.key, old.operator, set(old.values))
            for old in known
        ):
            known.append(one)
