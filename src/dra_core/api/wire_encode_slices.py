"""ResourceSlices and DeviceTaintRules to the JSON of a version.

What may live here: slices, devices, attributes, capacities, counters, taints, and rules
that add taints: for each the function that states its JSON form. Members that are
absent are left out, except those that the API always writes. What a version cannot
express is never dropped in silence.
"""

from collections.abc import Mapping
from functools import partial

from dra_core.api.objects import (
    AttributeValue,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
)
from dra_core.api.wire_encode_core import write_metadata, write_node_selector
from dra_core.api.wire_read import At, Fault, bracket
from dra_core.api.wire_versions import Version
from dra_core.api.wire_write import Json, compact, given, write_each
from dra_core.values.quantity import Quantity


def write_resource_slice(obj: ResourceSlice, version: Version) -> Json:
    """A ResourceSlice, without apiVersion and kind."""
    with At("spec"):
        devices = write_each("devices", obj.devices, partial(_device, version=version))
    spec = (
        {
            "driver": obj.driver,
            "pool": {
                "name": obj.pool,
                "generation": obj.generation,
                "resourceSliceCount": obj.resource_slice_count,
            },
        }
        | _node_selection(obj)
        | compact(
            {
                "perDeviceNodeSelection": obj.per_device_node_selection or None,
                "devices": devices,
                "sharedCounters": [_counter_set(item) for item in obj.shared_counters],
                "skipNodeOperations": list(obj.skip_node_operations),
            }
        )
    )
    return compact({"metadata": write_metadata(obj.metadata)}) | {"spec": spec}


def _node_selection(obj: ResourceSlice | Device) -> Json:
    return compact({"nodeName": obj.node_name, "allNodes": obj.all_nodes or None}) | given(
        nodeSelector=write_node_selector(obj.node_selector)
    )


def _device(device: Device, version: Version) -> Json:
    with At("basic"):  # only v1alpha3 has faults, and there it is so
        capacity = _capacities(device.capacity, version)
    fields = compact(
        {
            "attributes": {name: _attribute(v) for name, v in device.attributes.items()},
            "capacity": capacity,
            "consumesCounters": [_consumption(item) for item in device.consumes_counters],
            "taints": [write_taint(item) for item in device.taints],
            "bindsToNode": device.binds_to_node or None,
            "bindingConditions": list(device.binding_conditions),
            "bindingFailureConditions": list(device.binding_failure_conditions),
            "allowMultipleAllocations": device.allow_multiple_allocations or None,
        }
    ) | _node_selection(device)
    if version.basic:
        fields = {"basic": fields}  # the API demands it even if empty
    return {"name": device.name} | fields


def _attribute(attribute: AttributeValue) -> Json:
    kind, value = attribute
    if not kind:
        return {}
    return {kind: list(value) if isinstance(value, tuple) else value}


def _capacities(capacities: Mapping[str, DeviceCapacity], version: Version) -> Json:
    result: Json = {}
    for name, capacity in capacities.items():
        if not version.alpha:
            result[name] = _capacity(capacity)
        elif capacity.request_policy is None:
            result[name] = str(capacity.value)
        else:
            with At(f"capacity{bracket(name)}"):
                raise Fault("cannot hold a requestPolicy")
    return result


def _capacity(capacity: DeviceCapacity) -> Json:
    policy = capacity.request_policy
    return {"value": str(capacity.value)} | given(
        requestPolicy=None if policy is None else _policy(policy)
    )


def _policy(policy: CapacityRequestPolicy) -> Json:
    bounds = policy.valid_range
    return given(
        default=_amount(policy.default),
        validRange=None if bounds is None else _range(bounds),
    ) | compact({"validValues": [str(value) for value in policy.valid_values]})


def _range(bounds: CapacityRequestPolicyRange) -> Json:
    return given(min=_amount(bounds.min), max=_amount(bounds.max), step=_amount(bounds.step))


def _amount(amount: Quantity | None) -> str | None:
    return None if amount is None else str(amount)


def _counters(counters: Mapping[str, Quantity]) -> Json:
    return {name: {"value": str(amount)} for name, amount in counters.items()}


def _consumption(consumption: DeviceCounterConsumption) -> Json:
    return {"counterSet": consumption.counter_set} | compact(
        {"counters": _counters(consumption.counters)}
    )


def _counter_set(counter_set: CounterSet) -> Json:
    return {"name": counter_set.name} | compact({"counters": _counters(counter_set.counters)})


def write_taint(taint: DeviceTaint) -> Json:
    """A taint of a device or of a taint rule."""
    return {"key": taint.key} | compact(
        {"value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added}
    )


def write_device_taint_rule(obj: DeviceTaintRule, _version: Version) -> Json:
    """A DeviceTaintRule, without apiVersion and kind."""
    selector = obj.device_selector
    spec = given(
        deviceSelector=None
        if selector is None
        else given(driver=selector.driver, pool=selector.pool, device=selector.device)
    ) | {"taint": write_taint(obj.taint)}
    return compact({"metadata": write_metadata(obj.metadata)}) | {"spec": spec}
