"""Rules for the status of a claim: allocation, reservations, device status.

What may live here: the limits and cross-field rules of what schedulers and drivers
write about a claim.

Source: resource.k8s.io/v1 and pkg/apis/resource/validation of Kubernetes 1.37.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from dra_core.api import validation_formats as formats
from dra_core.api.objects import (
    MAX_DEVICES_PER_CLAIM,
    AllocatedDeviceStatus,
    AllocationResult,
    Condition,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dra_core.api.validation_common import (
    check_binding,
    check_json_object,
    check_node_selector,
    check_opaque,
    check_skipped,
    check_tolerations,
)
from dra_core.api.validation_report import Report

MAX_RESERVED: Final = 256
"""ResourceClaimReservedForMaxSize; 32 up to Kubernetes 1.32."""
MAX_ALLOCATION_CONFIGS: Final = 64
"""Twice DeviceConfigMaxSize: those of the classes and those of the claim."""
MAX_CONDITIONS: Final = 8
"""AllocatedDeviceStatusMaxConditions."""
MAX_INTERFACE_NAME: Final = 256
MAX_HARDWARE_ADDRESS: Final = 128
MAX_IPS: Final = 16
"""NetworkDeviceData…MaxLength, NetworkDeviceDataMaxIPs."""

CONFIG_SOURCES: Final = ("FromClass", "FromClaim")
CONDITION_STATUSES: Final = ("True", "False", "Unknown")


def check_status(report: Report, claim: ResourceClaim, names: Collection[str]) -> None:
    """The status of a claim whose requests are called ``names``."""
    if claim.allocation is not None:
        _check_allocation(report, "status.allocation", claim.allocation, names)
    _check_reservations(report, claim)
    _check_device_statuses(report, claim)


def _check_reservations(report: Report, claim: ResourceClaim) -> None:
    path = "status.reservedFor"
    report.at_most(path, claim.reserved_for, MAX_RESERVED)
    report.unique(path, (consumer.uid for consumer in claim.reserved_for))
    for index, consumer in enumerate(claim.reserved_for):
        report.required(f"{path}[{index}].resource", consumer.resource)
        report.required(f"{path}[{index}].name", consumer.name)
        report.required(f"{path}[{index}].uid", consumer.uid)
    if claim.reserved_for and claim.allocation is None:
        report.error(path, "must be empty unless the claim is allocated")


def _check_allocation(
    report: Report, path: str, allocation: AllocationResult, names: Collection[str]
) -> None:
    where = f"{path}.devices.results"
    report.at_most(where, allocation.results, MAX_DEVICES_PER_CLAIM)
    for index, result in enumerate(allocation.results):
        _check_result(report, f"{where}[{index}]", result, names)
    where = f"{path}.devices.config"
    report.at_most(where, allocation.config, MAX_ALLOCATION_CONFIGS)
    for index, config in enumerate(allocation.config):
        report.required(f"{where}[{index}].source", config.source)
        report.known(f"{where}[{index}].source", config.source, CONFIG_SOURCES)
        check_references(report, f"{where}[{index}].requests", config.requests, names)
        check_opaque(report, f"{where}[{index}]", config.opaque)
    check_node_selector(report, f"{path}.nodeSelector", allocation.node_selector)


def check_references(
    report: Report, path: str, references: Collection[str], names: Collection[str]
) -> None:
    """A list of requests that must exist in the claim."""
    report.at_most(path, references, MAX_DEVICES_PER_CLAIM)
    report.unique(path, references)
    for index, reference in enumerate(references):
        _check_reference(report, f"{path}[{index}]", reference, names)


def _check_reference(report: Report, path: str, reference: str, names: Collection[str]) -> None:
    if reference not in names:
        report.error(path, "must name a request of the claim, or request/subrequest")


def _check_result(
    report: Report, path: str, result: DeviceRequestAllocationResult, names: Collection[str]
) -> None:
    _check_reference(report, f"{path}.request", result.request, names)
    _check_device(report, path, result)
    check_binding(report, path, result.binding_conditions, result.binding_failure_conditions)
    check_tolerations(report, f"{path}.tolerations", result.tolerations)
    check_skipped(report, f"{path}.skipNodeOperations", result.skip_node_operations)


def _check_device(
    report: Report, path: str, device: DeviceRequestAllocationResult | AllocatedDeviceStatus
) -> None:
    report.error(f"{path}.driver", formats.driver_name(device.driver))
    report.error(f"{path}.pool", formats.pool_name(device.pool))
    report.error(f"{path}.device", formats.dns_label(device.device))
    if device.share_id:
        report.error(f"{path}.shareID", formats.uid(device.share_id))


def _check_device_statuses(report: Report, claim: ResourceClaim) -> None:
    path = "status.devices"
    results = () if claim.allocation is None else claim.allocation.results
    allocated = {(r.driver, r.pool, r.device, r.share_id) for r in results}
    keys = [(s.driver, s.pool, s.device, s.share_id) for s in claim.device_statuses]
    report.unique(path, keys)
    for index, (status, key) in enumerate(zip(claim.device_statuses, keys, strict=True)):
        where = f"{path}[{index}]"
        _check_device(report, where, status)
        if key not in allocated:
            report.error(where, "must be a device that is allocated for the claim")
        report.at_most(f"{where}.conditions", status.conditions, MAX_CONDITIONS)
        report.unique(f"{where}.conditions", (c.type for c in status.conditions))
        for number, condition in enumerate(status.conditions):
            _check_condition(report, f"{where}.conditions[{number}]", condition)
        if status.data is not None:
            check_json_object(report, f"{where}.data", status.data)
        if status.network_data is not None:
            _check_network(report, f"{where}.networkData", status.network_data)


def _check_condition(report: Report, path: str, condition: Condition) -> None:
    report.error(f"{path}.type", formats.label_key(condition.type))
    report.required(f"{path}.status", condition.status)
    report.known(f"{path}.status", condition.status, CONDITION_STATUSES)
    report.required(f"{path}.reason", condition.reason)
    report.required(f"{path}.lastTransitionTime", condition.last_transition_time)
    if condition.observed_generation is not None and condition.observed_generation < 0:
        report.error(f"{path}.observedGeneration", "must not be negative")


def _check_network(report: Report, path: str, data: Mapping[str, Any]) -> None:
    limits = {"interfaceName": MAX_INTERFACE_NAME, "hardwareAddress": MAX_HARDWARE_ADDRESS}
    for field, limit in limits.items():
        value = data.get(field)
        if isinstance(value, str):
            report.error(f"{path}.{field}", formats.too_long(value, limit))
    addresses = data.get("ips")
    if isinstance(addresses, list | tuple):
        report.at_most(f"{path}.ips", addresses, MAX_IPS)
        report.unique(f"{path}.ips", (str(address) for address in addresses))
