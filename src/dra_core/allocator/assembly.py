"""From the devices that were found to allocation results.

Source: resource.k8s.io/v1, AllocationResult.
"""

from collections.abc import Callable, Sequence

from dra_core.allocator.plan import Alternative, claim_label
from dra_core.allocator.problem import Option, Problem
from dra_core.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.api.objects import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dra_core.errors import NodeSelectorError

Pick = tuple[Option, int]
"""An option and a candidate that it got."""

FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"


def assemble(
    problem: Problem, chosen: Sequence[Option], picks: Sequence[Pick], share_ids: Callable[[], str]
) -> tuple[AllocationResult, ...]:
    """One result per claim: ``chosen`` has an option per request, ``picks`` the devices.

    Raises ``NodeSelectorError`` if a device is tied to nodes by more than one term.
    """
    devices: list[list[DeviceRequestAllocationResult]] = [[] for _ in problem.plan.claims]
    candidates: list[list[int]] = [[] for _ in devices]
    for option, candidate in picks:
        place = option.alternative.claim
        devices[place].append(_device(problem, option, candidate, share_ids))
        candidates[place].append(candidate)
    return tuple(
        AllocationResult(
            tuple(devices[place]),
            _config(problem, place, chosen),
            _node_selector(problem, claim, candidates[place]),
        )
        for place, claim in enumerate(problem.plan.claims)
    )


def _device(
    problem: Problem, option: Option, candidate: int, share_ids: Callable[[], str]
) -> DeviceRequestAllocationResult:
    view = problem.view
    device = view.devices[candidate]
    driver, pool = view.owners[candidate].pool_id
    alternative = option.alternative
    share_id, consumed = "", None
    if problem.multiple >> candidate & 1:
        share_id = share_ids()
        consumed = dict(option.statics.amounts(candidate)) or None
    skipped: tuple[str, ...] = ()
    if view.skipping >> candidate & 1:
        skipped = view.part_of(candidate).stored.slice.skip_node_operations
    binding = problem.features.device_binding_and_status
    return DeviceRequestAllocationResult(
        alternative.name,
        driver,
        pool,
        device.name,
        True if alternative.admin else None,
        alternative.tolerations,
        device.binding_conditions if binding else (),
        device.binding_failure_conditions if binding else (),
        share_id,
        consumed,
        skipped,
    )


def _config(
    problem: Problem, place: int, chosen: Sequence[Option]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Configuration of the classes, once per class, then of the claim."""
    if not problem.plan.configured[place]:
        return ()
    alternatives = [o.alternative for o in chosen if o.alternative.claim == place]
    entries = []
    users: dict[str, list[str]] = {}
    for alternative in alternatives:
        if alternative.device_class.config:
            users.setdefault(alternative.device_class.name, []).append(alternative.name)
    for alternative in alternatives:
        names = users.pop(alternative.device_class.name, None)
        if names is None:
            continue
        covered = () if len(names) == len(alternatives) else tuple(names)
        entries += [
            DeviceAllocationConfiguration(FROM_CLASS, covered, config.opaque)
            for config in alternative.device_class.config
        ]
    for claim_config in problem.plan.claims[place].devices.config:
        wanted = claim_config.requests
        hits = [_names(wanted, alternative) for alternative in alternatives]
        if not wanted or any(hits):
            requests = () if all(hits) else wanted
            entries.append(DeviceAllocationConfiguration(FROM_CLAIM, requests, claim_config.opaque))
    return tuple(entries)


def _names(requests: Sequence[str], alternative: Alternative) -> bool:
    return alternative.name in requests or alternative.name.partition("/")[0] in requests


def _node_selector(
    problem: Problem, claim: ResourceClaim, candidates: Sequence[int]
) -> NodeSelector | None:
    """Where the devices can be used; ``None`` means everywhere."""
    view = problem.view
    fields: dict[object, NodeSelectorRequirement] = {}
    expressions: dict[object, NodeSelectorRequirement] = {}
    merged: set[int] = set()
    for candidate in candidates:
        device = view.devices[candidate]
        resource_slice = view.part_of(candidate).stored.slice
        own = device if resource_slice.per_device_node_selection else resource_slice
        if own.node_name or device.binds_to_node:
            return _this_node(problem)
        selector = own.node_selector
        if selector is None or not selector.terms:
            continue
        if len(selector.terms) > 1:
            at = device.name if resource_slice.per_device_node_selection else ""
            problem_text = f"{len(selector.terms)} terms, at most one is supported"
            where = (claim_label(claim), "", resource_slice.name, at)
            raise NodeSelectorError(*where, problem_text)
        if id(selector) not in merged:  # devices of one slice share theirs
            merged.add(id(selector))
            _merge(fields, selector.terms[0].match_fields)
            _merge(expressions, selector.terms[0].match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions.values()), tuple(fields.values())),))


def _merge(
    merged: dict[object, NodeSelectorRequirement], more: Sequence[NodeSelectorRequirement]
) -> None:
    """Add what is not there yet; requirements are the same if their sets of values are."""
    for requirement in more:
        key = (requirement.key, requirement.operator, frozenset(requirement.values))
        merged.setdefault(key, requirement)


def _this_node(problem: Problem) -> NodeSelector:
    known = problem.view.derived.get("this-node")
    if not isinstance(known, NodeSelector):
        requirement = NodeSelectorRequirement("metadata.name", "In", (problem.view.node_name,))
        known = NodeSelector((NodeSelectorTerm((), (requirement,)),))
        problem.view.keep("this-node", known)
    return known
