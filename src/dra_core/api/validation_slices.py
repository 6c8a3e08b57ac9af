"""Rules for ResourceSlices, their devices and counters.

What may live here: the limits and cross-field rules of what drivers publish.

Source: resource.k8s.io/v1 and pkg/apis/resource/validation of Kubernetes 1.37.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from dra_core.api import validation_formats as formats
from dra_core.api.objects import (
    AttributeValue,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
    ResourceSlice,
)
from dra_core.api.validation_common import (
    check_binding,
    check_metadata,
    check_one_term,
    check_skipped,
    check_taint,
)
from dra_core.api.validation_report import Report
from dra_core.api.wire_read import bracket
from dra_core.values.quantity import MAX_INT64, NANO_PER_UNIT, Quantity

MAX_DEVICES: Final = 128
"""ResourceSliceMaxDevices."""
MAX_ADVANCED_DEVICES: Final = 64
"""ResourceSliceMaxDevicesWithAdvancedFeatures: with taints, counters or list attributes."""
MAX_ATTRIBUTES_AND_CAPACITIES: Final = 32
"""ResourceSliceMaxAttributesAndCapacitiesPerDevice."""
MAX_ATTRIBUTE_VALUES: Final = 48
"""ResourceSliceMaxAttributeValuesPerDevice: entries of lists counted one by one."""
MAX_TAINTS: Final = 16
"""DeviceTaintsMaxLength."""
MAX_COUNTER_SETS: Final = 8
"""ResourceSliceMaxCounterSets."""
MAX_COUNTERS: Final = 32
"""ResourceSliceMaxCountersPerCounterSet and …PerDeviceCounterConsumption."""
MAX_CONSUMPTIONS: Final = 2
"""ResourceSliceMaxDeviceCounterConsumptionsPerDevice."""
MAX_VALID_VALUES: Final = 10
"""CapacityRequestPolicyDiscreteMaxOptions."""

_NANO_PER_MILLI: Final = NANO_PER_UNIT // 1_000


def check_resource_slice(report: Report, obj: ResourceSlice) -> None:
    """Everything about one slice; what needs the whole pool is not looked at."""
    check_metadata(report, obj.metadata, namespaced=False)
    report.error("spec.driver", formats.driver_name(obj.driver))
    report.error("spec.pool.name", formats.pool_name(obj.pool))
    if obj.resource_slice_count <= 0:
        report.error("spec.pool.resourceSliceCount", "must be greater than zero")
    if obj.generation < 0:
        report.error("spec.pool.generation", "must not be negative")
    report.one_of("spec", _node_selection(obj) | {
        "perDeviceNodeSelection": obj.per_device_node_selection,
    })  # fmt: skip
    if obj.node_name:
        report.error("spec.nodeName", formats.subdomain(obj.node_name))
    check_one_term(report, "spec.nodeSelector", obj.node_selector)
    if obj.devices and obj.shared_counters:
        report.warning(
            "spec", "has both devices and sharedCounters, which is not allowed since 1.35"
        )
    _check_devices(report, obj)
    _check_counter_sets(report, obj)
    check_skipped(report, "spec.skipNodeOperations", obj.skip_node_operations)


def _node_selection(obj: ResourceSlice | Device) -> dict[str, bool]:
    return {
        "nodeName": bool(obj.node_name),
        "nodeSelector": obj.node_selector is not None,
        "allNodes": obj.all_nodes,
    }


def _check_devices(report: Report, obj: ResourceSlice) -> None:
    advanced = any(
        device.taints or device.consumes_counters or _has_lists(device) for device in obj.devices
    )
    limit = MAX_ADVANCED_DEVICES if advanced else MAX_DEVICES
    if len(obj.devices) > limit:
        why = " if one has taints, counters or list attributes" if advanced else ""
        report.error(
            "spec.devices",
            f"must not have more than {limit} entries{why}, has {len(obj.devices):,}",
        )
    report.unique(
        "spec.devices", (device.name for device in obj.devices), "has the name of another device"
    )
    for index, device in enumerate(obj.devices):
        _check_device(report, f"spec.devices[{index}]", device, obj.per_device_node_selection)


def _has_lists(device: Device) -> bool:
    return any(isinstance(value, tuple) for _, value in device.attributes.values())


def _check_device(report: Report, path: str, device: Device, per_device: bool) -> None:
    report.error(f"{path}.name", formats.dns_label(device.name))
    _check_sizes(report, path, device)
    report.keys(f"{path}.attributes", device.attributes, formats.qualified_name)
    for name, value in device.attributes.items():
        _check_attribute(report, f"{path}.attributes{bracket(name)}", value)
    report.keys(f"{path}.capacity", device.capacity, formats.qualified_name)
    for name, capacity in device.capacity.items():
        where = f"{path}.capacity{bracket(name)}.requestPolicy"
        _check_capacity(report, where, capacity, device.allow_multiple_allocations)
    report.at_most(f"{path}.taints", device.taints, MAX_TAINTS)
    for index, taint in enumerate(device.taints):
        check_taint(report, f"{path}.taints[{index}]", taint)
    _check_consumption(report, f"{path}.consumesCounters", device)
    _check_node(report, path, device, per_device)
    check_binding(report, path, device.binding_conditions, device.binding_failure_conditions)


def _check_sizes(report: Report, path: str, device: Device) -> None:
    names = len(device.attributes) + len(device.capacity)
    if names > MAX_ATTRIBUTES_AND_CAPACITIES:
        report.error(
            path,
            "must not have more than "
            f"{MAX_ATTRIBUTES_AND_CAPACITIES} attributes and capacities, has {names:,}",
        )
    values = sum(
        len(value) if isinstance(value, tuple) and value else 1
        for _, value in device.attributes.values()
    )
    if values > MAX_ATTRIBUTE_VALUES:
        report.error(
            path, f"must not have more than {MAX_ATTRIBUTE_VALUES} attribute values, has {values:,}"
        )


def _check_attribute(report: Report, path: str, attribute: AttributeValue) -> None:
    kind, value = attribute
    if not kind:
        report.error(path, "must have a value of a known type")
    elif isinstance(value, tuple):
        if not value:
            report.error(f"{path}.{kind}", "must not be empty")
        for index, item in enumerate(value):
            report.error(f"{path}.{kind}[{index}]", _attribute_problem(kind[:-1], item))
    else:
        report.error(f"{path}.{kind}", _attribute_problem(kind, value))


def _attribute_problem(kind: str, value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return (
        formats.version(value)
        if kind == "version"
        else formats.too_long(value, formats.MAX_ATTRIBUTE)
    )


def _check_consumption(report: Report, path: str, device: Device) -> None:
    report.at_most(path, device.consumes_counters, MAX_CONSUMPTIONS)
    report.unique(path, (item.counter_set for item in device.consumes_counters))
    for index, item in enumerate(device.consumes_counters):
        report.error(f"{path}[{index}].counterSet", formats.dns_label(item.counter_set))
        _check_counters(report, f"{path}[{index}].counters", item.counters)


def _check_counter_sets(report: Report, obj: ResourceSlice) -> None:
    path = "spec.sharedCounters"
    report.at_most(path, obj.shared_counters, MAX_COUNTER_SETS)
    report.unique(path, (item.name for item in obj.shared_counters))
    for index, item in enumerate(obj.shared_counters):
        report.error(f"{path}[{index}].name", formats.dns_label(item.name))
        _check_counters(report, f"{path}[{index}].counters", item.counters)


def _check_counters(report: Report, path: str, counters: Mapping[str, Quantity]) -> None:
    if not counters:
        report.error(path, "is required")
    report.at_most(path, counters, MAX_COUNTERS)
    report.keys(path, counters, formats.dns_label)


def _check_node(report: Report, path: str, device: Device, per_device: bool) -> None:
    selection = _node_selection(device)
    if per_device:
        report.one_of(path, selection)
    else:
        for field, is_set in selection.items():
            if is_set:
                report.error(
                    f"{path}.{field}", "is only allowed if the slice has perDeviceNodeSelection"
                )
    if device.node_name:
        report.error(f"{path}.nodeName", formats.subdomain(device.node_name))
    check_one_term(report, f"{path}.nodeSelector", device.node_selector)


# --- request policies ---------------------------------------------------------------------


def _check_capacity(report: Report, path: str, capacity: DeviceCapacity, shared: bool) -> None:
    policy = capacity.request_policy
    if policy is None:
        return
    if not shared:
        report.error(path, "is only allowed on devices with allowMultipleAllocations")
    if policy.valid_values and policy.valid_range is not None:
        report.error(path, "must not have both validValues and validRange")
    if policy.default is None and (policy.valid_values or policy.valid_range is not None):
        report.error(f"{path}.default", "is required where validValues or validRange is set")
    if policy.valid_values:
        _check_values(report, f"{path}.validValues", capacity.value, policy)
    if policy.valid_range is not None:
        default = policy.default
        _check_range(report, f"{path}.validRange", capacity.value, policy.valid_range, default)
        if policy.valid_range.step is not None:
            _check_step(report, path, capacity.value, policy.valid_range, default)


def _check_values(
    report: Report, path: str, whole: Quantity, policy: CapacityRequestPolicy
) -> None:
    values: Sequence[Quantity] = policy.valid_values
    report.at_most(path, values, MAX_VALID_VALUES)
    report.unique(path, values)
    for index, value in enumerate(values):
        if index and value < values[index - 1]:
            report.error(f"{path}[{index}]", "must be in ascending order")
        if value > whole:
            report.error(f"{path}[{index}]", f"is larger than the capacity ({whole})")
    if policy.default is not None and policy.default not in values:
        report.error(path, f"must contain the default ({policy.default})")


def _check_range(
    report: Report,
    path: str,
    whole: Quantity,
    bounds: CapacityRequestPolicyRange,
    default: Quantity | None,
) -> None:
    low, high = bounds.min, bounds.max
    if low is None:
        report.error(f"{path}.min", "is required")
    elif low.sign() < 0:
        report.error(f"{path}.min", "must not be negative")
    elif low > whole:
        report.error(f"{path}.min", f"is larger than the capacity ({whole})")
    if high is not None and high > whole:
        report.error(f"{path}.max", f"is larger than the capacity ({whole})")
    if low is not None and high is not None and low > high:
        report.error(f"{path}.max", f"is smaller than min ({low})")
    if default is not None and low is not None and default < low:
        report.error(f"{path}.min", f"is larger than the default ({default})")
    if default is not None and high is not None and default > high:
        report.error(f"{path}.max", f"is smaller than the default ({default})")


def _check_step(
    report: Report,
    path: str,
    whole: Quantity,
    bounds: CapacityRequestPolicyRange,
    default: Quantity | None,
) -> None:
    """Steps count from ``min``; the default and ``max`` are on one.

    The API server computes with 64-bit integers, in thousandths if there is a fraction;
    amounts that do not fit were the cause of divisions by zero (k/k#139698).
    """
    where = f"{path}.validRange"
    amounts = {
        f"{path}.default": default,
        f"{where}.min": bounds.min,
        f"{where}.max": bounds.max,
        f"{where}.step": bounds.step,
    }
    given = {field: amount for field, amount in amounts.items() if amount is not None}
    for field, amount in given.items():
        if abs(amount.nano) > MAX_INT64 * NANO_PER_UNIT:
            report.error(field, "does not fit into 64 bits, which steps are counted in")
        elif amount.nano % _NANO_PER_MILLI:
            report.error(field, "is finer than a thousandth, which steps are counted in")
    step = given[f"{where}.step"]
    if step.sign() <= 0:
        report.error(f"{where}.step", "must be greater than zero")
        return
    low = Quantity(0) if bounds.min is None else bounds.min
    if low.nano + step.nano > whole.nano:
        report.error(f"{where}.step", f"one step from min is larger than the capacity ({whole})")
    for field in (f"{path}.default", f"{where}.max"):
        if field in given and (given[field].nano - low.nano) % step.nano:
            report.error(field, f"is not a whole number of steps ({step}) from min ({low})")
