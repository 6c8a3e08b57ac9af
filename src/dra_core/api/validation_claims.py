"""Rules for classes, claims, templates, taint rules, pods: the demand side.

What may live here: the limits and cross-field rules of what users and schedulers write.

Source: resource.k8s.io/v1 and pkg/apis/resource/validation of Kubernetes 1.37.
"""

from collections.abc import Collection, Sequence
from typing import Final

from dra_core.api import validation_formats as formats
from dra_core.api.core import Node, Pod, PodGroup, PodResourceClaim
from dra_core.api.objects import (
    ALLOCATION_MODE_ALL,
    ALLOCATION_MODE_EXACT_COUNT,
    MAX_DEVICES_PER_CLAIM,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaintRule,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra_core.api.scheduling_context import MAX_NODES, PodSchedulingContext
from dra_core.api.validation_common import (
    check_labels,
    check_metadata,
    check_node_selector,
    check_opaque,
    check_taint,
    check_tolerations,
)
from dra_core.api.validation_report import Report
from dra_core.api.validation_status import check_references, check_status
from dra_core.api.wire_read import bracket

MAX_REQUESTS: Final = MAX_DEVICES_PER_CLAIM
"""DeviceRequestsMaxSize."""
MAX_CONSTRAINTS: Final = 32
"""DeviceConstraintsMaxSize."""
MAX_CONFIGS: Final = 32
"""DeviceConfigMaxSize."""
MAX_SELECTORS: Final = 32
"""DeviceSelectorsMaxSize."""
MAX_ALTERNATIVES: Final = 8
"""FirstAvailableDeviceRequestMaxSize."""
MAX_EXPRESSION: Final = 10 * 1024
"""CELSelectorExpressionMaxLength, bytes."""


def check_device_class(report: Report, obj: DeviceClass) -> None:
    """A DeviceClass."""
    check_metadata(report, obj.metadata, namespaced=False)
    _check_selectors(report, "spec.selectors", obj.selectors)
    report.at_most("spec.config", obj.config, MAX_CONFIGS)
    for index, config in enumerate(obj.config):
        check_opaque(report, f"spec.config[{index}]", config.opaque)
    if obj.extended_resource_name:
        problem = formats.extended_resource_name(obj.extended_resource_name)
        report.error("spec.extendedResourceName", problem)
    check_node_selector(report, "spec.suitableNodes", obj.suitable_nodes)


def _check_selectors(report: Report, path: str, selectors: Sequence[DeviceSelector]) -> None:
    report.at_most(path, selectors, MAX_SELECTORS)
    for index, selector in enumerate(selectors):
        where = f"{path}[{index}].cel"
        if selector.cel is None:
            report.error(where, "is required")
        elif not selector.cel:
            report.error(f"{where}.expression", "is required")
        elif formats.length(selector.cel) > MAX_EXPRESSION:
            limit = f"must not be longer than {MAX_EXPRESSION:,} bytes"
            report.error(f"{where}.expression", limit)
        elif report.check_selector is not None:
            report.error(f"{where}.expression", report.check_selector(selector.cel))


def check_resource_claim(report: Report, obj: ResourceClaim) -> None:
    """A ResourceClaim with its status."""
    check_metadata(report, obj.metadata, namespaced=True)
    _check_claim(report, "spec.devices", obj.devices)
    check_status(report, obj, request_names(obj.devices))


def check_resource_claim_template(report: Report, obj: ResourceClaimTemplate) -> None:
    """A ResourceClaimTemplate."""
    check_metadata(report, obj.metadata, namespaced=True)
    check_labels(report, "spec.metadata", obj.claim_metadata)
    _check_claim(report, "spec.spec.devices", obj.devices)


def request_names(claim: DeviceClaim) -> frozenset[str]:
    """What constraints, configs and results may name: requests and ``request/subrequest``."""
    names = {request.name for request in claim.requests}
    for request in claim.requests:
        names.update(f"{request.name}/{sub.name}" for sub in request.first_available)
    return frozenset(names)


def _check_claim(report: Report, path: str, claim: DeviceClaim) -> None:
    names = request_names(claim)
    report.at_most(f"{path}.requests", claim.requests, MAX_REQUESTS)
    report.unique(f"{path}.requests", (request.name for request in claim.requests))
    for index, request in enumerate(claim.requests):
        _check_request(report, f"{path}.requests[{index}]", request)
    report.at_most(f"{path}.constraints", claim.constraints, MAX_CONSTRAINTS)
    for index, constraint in enumerate(claim.constraints):
        _check_constraint(report, f"{path}.constraints[{index}]", constraint, names)
    report.at_most(f"{path}.config", claim.config, MAX_CONFIGS)
    for index, config in enumerate(claim.config):
        where = f"{path}.config[{index}]"
        check_references(report, f"{where}.requests", config.requests, names)
        check_opaque(report, where, config.opaque)


def _check_request(report: Report, path: str, request: DeviceRequest) -> None:
    report.error(f"{path}.name", formats.dns_label(request.name))
    report.one_of(
        path,
        {
            "exactly": request.exactly is not None,
            "firstAvailable": bool(request.first_available),
        },
    )
    if request.exactly is not None:
        _check_details(report, f"{path}.exactly", request.exactly)
    report.at_most(f"{path}.firstAvailable", request.first_available, MAX_ALTERNATIVES)
    report.unique(f"{path}.firstAvailable", (sub.name for sub in request.first_available))
    for index, sub in enumerate(request.first_available):
        where = f"{path}.firstAvailable[{index}]"
        report.error(f"{where}.name", formats.dns_label(sub.name))
        _check_details(report, where, sub)


def _check_details(
    report: Report, path: str, request: ExactDeviceRequest | DeviceSubRequest
) -> None:
    report.error(f"{path}.deviceClassName", formats.subdomain(request.device_class_name))
    _check_selectors(report, f"{path}.selectors", request.selectors)
    _check_amount(report, path, request)
    check_tolerations(report, f"{path}.tolerations", request.tolerations)
    if request.capacity is not None:
        # The API server takes any key. One that no device can have fits nowhere.
        for key in request.capacity.requests:
            if (problem := formats.qualified_name(key)) is not None:
                report.warning(f"{path}.capacity.requests{bracket(key)}", problem)


def _check_amount(
    report: Report, path: str, request: ExactDeviceRequest | DeviceSubRequest
) -> None:
    mode, count = request.allocation_mode, request.count
    if mode == ALLOCATION_MODE_ALL:
        if count:
            report.error(f"{path}.count", "must be absent for allocationMode All")
    elif mode not in ("", ALLOCATION_MODE_EXACT_COUNT):
        report.error(f"{path}.allocationMode", "must be ExactCount or All")
    elif count is not None and count <= 0:
        report.error(f"{path}.count", "must be greater than zero")
    elif count is not None and count > MAX_DEVICES_PER_CLAIM:
        report.warning(
            f"{path}.count", f"can never be met: a claim gets {MAX_DEVICES_PER_CLAIM} at most"
        )


def _check_constraint(
    report: Report, path: str, constraint: DeviceConstraint, names: Collection[str]
) -> None:
    check_references(report, f"{path}.requests", constraint.requests, names)
    match, distinct = constraint.match_attribute, constraint.distinct_attribute
    if match is None and distinct is None:
        report.error(path, "must have matchAttribute or distinctAttribute")
    if match is not None:
        report.error(f"{path}.matchAttribute", formats.fully_qualified_name(match))
    if distinct is not None:
        report.error(f"{path}.distinctAttribute", formats.fully_qualified_name(distinct))
        if match is not None:
            report.warning(f"{path}.distinctAttribute", "is ignored next to matchAttribute")


def check_device_taint_rule(report: Report, obj: DeviceTaintRule) -> None:
    """A DeviceTaintRule."""
    check_metadata(report, obj.metadata, namespaced=False)
    selector = obj.device_selector
    if selector is None:
        report.warning("spec.deviceSelector", "is absent, and so the rule selects nothing")
    else:
        checks = (
            ("driver", selector.driver, formats.driver_name),
            ("pool", selector.pool, formats.pool_name),
            ("device", selector.device, formats.dns_label),
        )
        for field, value, check in checks:
            if value is not None:
                report.error(f"spec.deviceSelector.{field}", check(value))
    check_taint(report, "spec.taint", obj.taint)


def check_pod_scheduling_context(report: Report, obj: PodSchedulingContext) -> None:
    """A PodSchedulingContext: its lists of nodes are sets of limited size."""
    check_metadata(report, obj.metadata, namespaced=True)
    _check_nodes(report, "spec.potentialNodes", obj.potential_nodes)
    path = "status.resourceClaims"
    report.unique(path, (entry.name for entry in obj.resource_claims))
    for index, entry in enumerate(obj.resource_claims):
        _check_nodes(report, f"{path}[{index}].unsuitableNodes", entry.unsuitable_nodes)


def _check_nodes(report: Report, path: str, nodes: Sequence[str]) -> None:
    report.at_most(path, nodes, MAX_NODES)
    report.unique(path, nodes)


def check_pod(report: Report, obj: Pod) -> None:
    """The claims of a Pod; the rest of it is not looked at."""
    check_metadata(report, obj.metadata, namespaced=True)
    _check_pod_claims(report, obj.resource_claims)


def check_pod_group(report: Report, obj: PodGroup) -> None:
    """The claims of a PodGroup."""
    check_metadata(report, obj.metadata, namespaced=True)
    _check_pod_claims(report, obj.resource_claims)


def check_node(report: Report, obj: Node) -> None:
    """A Node: its name and labels."""
    check_metadata(report, obj.metadata, namespaced=False)


def _check_pod_claims(report: Report, claims: Sequence[PodResourceClaim]) -> None:
    path = "spec.resourceClaims"
    report.unique(path, (claim.name for claim in claims))
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        report.error(f"{where}.name", formats.dns_label(claim.name))
        references = {
            "resourceClaimName": claim.resource_claim_name,
            "resourceClaimTemplateName": claim.resource_claim_template_name,
        }
        report.one_of(where, {field: name is not None for field, name in references.items()})
        for field, name in references.items():
            if name is not None:
                report.error(f"{where}.{field}", formats.subdomain(name))
