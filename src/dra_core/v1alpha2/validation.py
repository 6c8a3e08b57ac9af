"""The API's limits and cross-field rules for v1alpha2: every violation, with its path.

What may live here: one check per kind. As in ``dra_core.api.validation``, allocation never
runs these; lint does.

Source: pkg/apis/resource/validation of Kubernetes 1.30.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dra_core.api import validation_formats as formats
from dra_core.api.validation_claims import MAX_EXPRESSION
from dra_core.api.validation_common import check_labels, check_metadata, check_node_selector
from dra_core.api.validation_report import Report, SelectorCheck, Violation
from dra_core.v1alpha2.claims import ClaimSpec, ResourceClaim, ResourceClaimTemplate
from dra_core.v1alpha2.objects import (
    IMMEDIATE,
    MAX_CONSUMERS,
    WAIT_FOR_FIRST_CONSUMER,
    AllocationResult,
    Attribute,
    ParametersReference,
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceHandle,
    ResourceSlice,
    StructuredResourceHandle,
)
from dra_core.v1alpha2.reading import MODEL

MAX_HANDLES: Final = 32
"""AllocationResultResourceHandlesMaxSize."""
MAX_HANDLE_DATA: Final = 16 * 1024
"""ResourceHandleDataMaxSize, bytes."""

ALLOCATION_MODES: Final = (WAIT_FOR_FIRST_CONSUMER, IMMEDIATE)


def validate(obj: object, check_selector: SelectorCheck | None = None) -> tuple[Violation, ...]:
    """All rules of v1alpha2 that an object breaks, in the order of its fields.

    As ``dra_core.api.validation.validate``: ``check_selector`` is asked about every
    expression, an object of another type has no rules. Never raises. Cost: linear.
    """
    check = _CHECKS.get(type(obj))
    if check is None:
        return ()
    report = Report(check_selector)
    check(report, obj)
    return tuple(report.violations)


# --- supply ------------------------------------------------------------------------------


def check_resource_slice(report: Report, obj: ResourceSlice) -> None:
    """A ResourceSlice."""
    check_metadata(report, obj.metadata, namespaced=False)
    if obj.node_name:
        report.error("nodeName", formats.subdomain(obj.node_name))
    report.error("driverName", formats.driver_name(obj.driver_name))
    if obj.instances is None:
        report.error(MODEL, "is required: there is no other structured model")
        return
    path = f"{MODEL}.instances"
    report.unique(path, (instance.name for instance in obj.instances))
    for index, instance in enumerate(obj.instances):
        where = f"{path}[{index}]"
        report.error(f"{where}.name", formats.subdomain(instance.name))
        report.unique(f"{where}.attributes", (one.name for one in instance.attributes))
        for number, attribute in enumerate(instance.attributes):
            _check_attribute(report, f"{where}.attributes[{number}]", attribute)


def _check_attribute(report: Report, path: str, attribute: Attribute) -> None:
    report.error(f"{path}.name", formats.subdomain(attribute.name))
    values = {
        "quantity": attribute.quantity_value,
        "bool": attribute.bool_value,
        "int": attribute.int_value,
        "intSlice": attribute.int_slice_value,
        "string": attribute.string_value,
        "stringSlice": attribute.string_slice_value,
        "version": attribute.version_value,
    }
    given = [member for member, value in values.items() if value is not None]
    if not given:
        report.error(path, f"one of {', '.join(values)} is required")
    elif len(given) > 1:
        report.error(path, f"must have one value only, has {', '.join(given)}")
    if attribute.version_value is not None:
        report.error(f"{path}.version", _version(attribute.version_value))


def _version(text: str) -> str | None:
    """As ``formats.version``, without its limit of length, which came later."""
    problem = formats.version(text)
    return None if problem == formats.too_long(text, formats.MAX_ATTRIBUTE) else problem


# --- classes and parameters --------------------------------------------------------------


def check_resource_class(report: Report, obj: ResourceClass) -> None:
    """A ResourceClass."""
    check_metadata(report, obj.metadata, namespaced=False)
    report.error("driverName", formats.driver_name(obj.driver_name))
    _check_reference(report, "parametersRef", obj.parameters_ref, of_class=True)
    check_node_selector(report, "suitableNodes", obj.suitable_nodes)


def _check_reference(
    report: Report, path: str, reference: ParametersReference | None, *, of_class: bool = False
) -> None:
    if reference is None:
        return
    report.required(f"{path}.kind", reference.kind)
    report.required(f"{path}.name", reference.name)
    if of_class and reference.namespace:
        report.error(f"{path}.namespace", formats.dns_label(reference.namespace))


def check_class_parameters(report: Report, obj: ResourceClassParameters) -> None:
    """A ResourceClassParameters object."""
    check_metadata(report, obj.metadata, namespaced=True)
    _check_reference(report, "generatedFrom", obj.generated_from, of_class=True)
    _check_drivers(report, "vendorParameters", [one.driver_name for one in obj.vendor_parameters])
    _check_drivers(report, "filters", [one.driver_name for one in obj.filters])
    for index, entry in enumerate(obj.filters):
        _check_selector(report, f"filters[{index}]", entry.selector)


def _check_drivers(report: Report, path: str, drivers: Sequence[str]) -> None:
    """One entry per driver."""
    for index, driver in enumerate(drivers):
        report.error(f"{path}[{index}].driverName", formats.driver_name(driver))
        if driver in drivers[:index]:
            report.error(f"{path}[{index}].driverName", "is a duplicate")


def _check_selector(report: Report, path: str, selector: str | None) -> None:
    where = f"{path}.{MODEL}.selector"
    if selector is None:
        report.error(f"{path}.{MODEL}", "is required: there is no other structured model")
    elif not selector:
        report.error(where, "is required")
    elif formats.length(selector) > MAX_EXPRESSION:
        report.error(where, f"must not be longer than {MAX_EXPRESSION:,} bytes")
    elif report.check_selector is not None:
        report.error(where, report.check_selector(selector))


def check_claim_parameters(report: Report, obj: ResourceClaimParameters) -> None:
    """A ResourceClaimParameters object."""
    check_metadata(report, obj.metadata, namespaced=True)
    _check_reference(report, "generatedFrom", obj.generated_from)
    _check_drivers(report, "driverRequests", [one.driver_name for one in obj.driver_requests])
    for index, entry in enumerate(obj.driver_requests):
        path = f"driverRequests[{index}].requests"
        if not entry.requests:
            report.error(path, "must have at least one entry")
        for number, request in enumerate(entry.requests):
            _check_selector(report, f"{path}[{number}]", request.selector)


# --- claims ------------------------------------------------------------------------------


def check_resource_claim(report: Report, obj: ResourceClaim) -> None:
    """A ResourceClaim with its status."""
    check_metadata(report, obj.metadata, namespaced=True)
    _check_spec(report, "spec", obj.spec)
    if obj.driver_name:
        report.error("status.driverName", formats.driver_name(obj.driver_name))
    elif obj.allocation is not None:
        report.error("status.driverName", "is required where allocation is set")
    if obj.allocation is not None:
        _check_allocation(report, "status.allocation", obj.allocation)
    _check_reservations(report, obj)
    if obj.deallocation_requested and obj.allocation is None:
        report.error("status.deallocationRequested", "must not be set unless allocation is")
    if obj.deallocation_requested and obj.reserved_for:
        report.error("status.deallocationRequested", "must not be set while reservedFor is")


def check_resource_claim_template(report: Report, obj: ResourceClaimTemplate) -> None:
    """A ResourceClaimTemplate."""
    check_metadata(report, obj.metadata, namespaced=True)
    check_labels(report, "spec.metadata", obj.claim_metadata)
    _check_spec(report, "spec.spec", obj.spec)


def _check_spec(report: Report, path: str, spec: ClaimSpec) -> None:
    report.error(f"{path}.resourceClassName", formats.subdomain(spec.class_name))
    _check_reference(report, f"{path}.parametersRef", spec.parameters_ref)
    report.known(f"{path}.allocationMode", spec.allocation_mode, ALLOCATION_MODES)


def _check_allocation(report: Report, path: str, allocation: AllocationResult) -> None:
    report.at_most(f"{path}.resourceHandles", allocation.resource_handles, MAX_HANDLES)
    for index, handle in enumerate(allocation.resource_handles):
        _check_handle(report, f"{path}.resourceHandles[{index}]", handle)
    check_node_selector(report, f"{path}.availableOnNodes", allocation.node_selector)


def _check_handle(report: Report, path: str, handle: ResourceHandle) -> None:
    report.error(f"{path}.driverName", formats.driver_name(handle.driver_name))
    report.error(f"{path}.data", formats.too_long(handle.data, MAX_HANDLE_DATA))
    if handle.structured_data is not None:
        if handle.data:
            report.error(f"{path}.data", "must be empty where structuredData is set")
        _check_structured(report, f"{path}.structuredData", handle.structured_data)


def _check_structured(report: Report, path: str, data: StructuredResourceHandle) -> None:
    if data.node_name:
        report.error(f"{path}.nodeName", formats.subdomain(data.node_name))
    for index, result in enumerate(data.results):
        where = f"{path}.results[{index}].{MODEL}"
        if result.name is None:
            report.error(where, "is required: there is no other structured model")
        else:
            report.error(f"{where}.name", formats.subdomain(result.name))


def _check_reservations(report: Report, claim: ResourceClaim) -> None:
    path = "status.reservedFor"
    report.at_most(path, claim.reserved_for, MAX_CONSUMERS)
    report.unique(path, (consumer.uid for consumer in claim.reserved_for))
    for index, consumer in enumerate(claim.reserved_for):
        report.required(f"{path}[{index}].resource", consumer.resource)
        report.required(f"{path}[{index}].name", consumer.name)
        report.required(f"{path}[{index}].uid", consumer.uid)
    if not claim.reserved_for:
        return
    if claim.allocation is None:
        report.error(path, "must be empty unless the claim is allocated")
    elif not claim.allocation.shareable and len(claim.reserved_for) > 1:
        report.error(path, "must not have more than one entry unless the claim is shareable")


_CHECKS: Final[Mapping[type, Callable[[Report, Any], None]]] = {
    ResourceSlice: check_resource_slice,
    ResourceClass: check_resource_class,
    ResourceClassParameters: check_class_parameters,
    ResourceClaimParameters: check_claim_parameters,
    ResourceClaim: check_resource_claim,
    ResourceClaimTemplate: check_resource_claim_template,
}
