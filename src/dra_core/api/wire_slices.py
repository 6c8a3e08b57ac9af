"""Decoding ResourceSlices: the bulk of what is ever decoded.

What may live here: slices, devices, attributes, capacities, counters, taints, from
decoded JSON to frozen objects. The primitives and their rules are those of
``wire_read``.

A cluster has tens of thousands of devices, and reading them must not take much longer
than ``json.loads`` took. So the loops over attributes and capacities look a value up
in the memo before they look at it closely: equal values are checked and built once
per load. What is not in the memo takes the ordinary, careful way.
"""

from collections.abc import Mapping
from typing import Any

from dra_core.api.objects import (
    AttributeValue,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourceSlice,
)
from dra_core.api.wire_core import read_metadata, read_node_selector
from dra_core.api.wire_read import (
    At,
    Fault,
    Obj,
    Reader,
    bracket,
    check_boolean,
    check_integer,
    check_object,
    check_text,
    each,
    each_object,
    get_boolean,
    get_integer,
    get_object,
    get_optional_object,
    get_text,
    get_texts,
    refuse,
)
from dra_core.values.quantity import Quantity

_DEVICE_FIELDS = (
    "attributes",
    "capacity",
    "consumesCounters",
    "nodeName",
    "nodeSelector",
    "allNodes",
    "taints",
    "bindsToNode",
    "bindingConditions",
    "bindingFailureConditions",
    "allowMultipleAllocations",
)

_ATTRIBUTE_SCALARS = {
    "int": check_integer,
    "bool": check_boolean,
    "string": check_text,
    "version": check_text,
}
_ATTRIBUTE_LISTS = {f"{member}s": check for member, check in _ATTRIBUTE_SCALARS.items()}

_NO_ATTRIBUTE = AttributeValue("", None)
_ZERO = Quantity(0)


def read_resource_slice(obj: Obj, read: Reader) -> ResourceSlice:
    """A ResourceSlice of the reader's version."""
    metadata = read_metadata(obj)
    spec = get_object(obj, "spec")

    def device(item: Any) -> Device:
        return _device(item, read)

    def counter_set(item: Obj) -> CounterSet:
        return CounterSet(get_text(item, "name"), _counters(item, read))

    with At("spec"):
        pool = get_object(spec, "pool")
        with At("pool"):
            pool_name = get_text(pool, "name")
            generation = get_integer(pool, "generation")
            count = get_integer(pool, "resourceSliceCount")
        return ResourceSlice(
            metadata=metadata,
            driver=get_text(spec, "driver"),
            pool=pool_name,
            generation=generation,
            resource_slice_count=count,
            node_name=get_text(spec, "nodeName"),
            node_selector=read_node_selector(spec, "nodeSelector"),
            all_nodes=get_boolean(spec, "allNodes"),
            per_device_node_selection=get_boolean(spec, "perDeviceNodeSelection"),
            devices=each(spec, "devices", device),
            shared_counters=each_object(spec, "sharedCounters", counter_set),
            skip_node_operations=get_texts(spec, "skipNodeOperations"),
            raw=obj,
        )


def _device(value: Any, read: Reader) -> Device:
    obj = value if value.__class__ is dict else check_object(value)
    if read.basic:
        refuse(obj, _DEVICE_FIELDS, "belongs under basic in this version")
        fields = get_object(obj, "basic")
        with At("basic"):
            return _device_fields(get_text(obj, "name"), fields, read)
    if obj.get("basic") is not None:
        raise Fault("belongs to v1beta1; this version has the device's fields flat", "basic")
    return _device_fields(get_text(obj, "name"), obj, read)


def _device_fields(name: str, obj: Obj, read: Reader) -> Device:
    attributes = _attributes(obj, read)
    capacity = _capacity(obj, read)
    # Most devices have nothing else, and asking nine times costs as much as the rest.
    if len(obj) == 3 and "name" in obj and "attributes" in obj and "capacity" in obj:
        return Device(name, attributes, capacity)
    return Device(
        name=name,
        attributes=attributes,
        capacity=capacity,
        consumes_counters=each_object(obj, "consumesCounters", lambda item: _consumes(item, read)),
        node_name=get_text(obj, "nodeName"),
        node_selector=read_node_selector(obj, "nodeSelector"),
        all_nodes=get_boolean(obj, "allNodes"),
        taints=each_object(obj, "taints", read_taint),
        binds_to_node=get_boolean(obj, "bindsToNode"),
        binding_conditions=get_texts(obj, "bindingConditions"),
        binding_failure_conditions=get_texts(obj, "bindingFailureConditions"),
        allow_multiple_allocations=get_boolean(obj, "allowMultipleAllocations"),
    )


def _attributes(obj: Obj, read: Reader) -> dict[str, AttributeValue]:
    memo = read.memo.attributes
    result = {}
    for name, value in get_object(obj, "attributes").items():
        if value.__class__ is dict and len(value) == 1 and name.__class__ is str and name.isascii():
            (item,) = value.items()
            if item[1].__class__ in _HASHABLE:
                known = memo.get(item)
                # 1 == True == 1.0 as keys, so equal is not yet the same.
                if known is not None and known[1].__class__ is item[1].__class__:
                    result[name] = known
                    continue
        with At("attributes"), At(bracket(name)):
            check_text(name)
            if value is not None:
                known = result[name] = _attribute(check_object(value))
                if len(value) == 1 and known[0] in _ATTRIBUTE_SCALARS:
                    memo[known] = known
    return result


_HASHABLE = frozenset({str, int, bool})


def _attribute(obj: Obj) -> AttributeValue:
    """The first member set, in the order of the API server; all are checked."""
    found = _NO_ATTRIBUTE
    for member, check in _ATTRIBUTE_SCALARS.items():
        value = obj.get(member)
        if value is not None:
            with At(member):
                check(value)
            if not found.kind:
                found = AttributeValue(member, value)
    for member, check in _ATTRIBUTE_LISTS.items():
        if obj.get(member) is not None:
            values: Any = each(obj, member, check)
            if not found.kind:
                found = AttributeValue(member, values)
    return found


def _capacity(obj: Obj, read: Reader) -> dict[str, DeviceCapacity]:
    memo = read.memo.capacities
    result = {}
    for name, value in get_object(obj, "capacity").items():
        if value.__class__ is dict and len(value) == 1 and name.__class__ is str and name.isascii():
            amount = value.get("value")
            if amount.__class__ is str:
                known = memo.get(amount)
                if known is not None:
                    result[name] = known
                    continue
        with At("capacity"), At(bracket(name)):
            check_text(name)
            if value is not None:
                result[name] = _device_capacity(value, read)
    return result


def _device_capacity(value: Any, read: Reader) -> DeviceCapacity:
    if read.alpha:
        return DeviceCapacity(read.quantity(value))
    obj = check_object(value)
    policy = get_optional_object(obj, "requestPolicy")
    amount = _amount(obj, "value", read) or _ZERO
    if policy is not None:
        with At("requestPolicy"):
            return DeviceCapacity(amount, _policy(policy, read))
    known = DeviceCapacity(amount)
    if isinstance(obj.get("value"), str):
        read.memo.capacities[obj["value"]] = known
    return known


def _policy(obj: Obj, read: Reader) -> CapacityRequestPolicy:
    bounds = get_optional_object(obj, "validRange")
    valid_range = None
    if bounds is not None:
        with At("validRange"):
            valid_range = CapacityRequestPolicyRange(
                *[_amount(bounds, key, read) for key in ("min", "max", "step")]
            )
    return CapacityRequestPolicy(
        _amount(obj, "default", read), each(obj, "validValues", read.quantity), valid_range
    )


def _amount(obj: Obj, key: str, read: Reader) -> Quantity | None:
    value = obj.get(key)
    if value is None:
        return None
    with At(key):
        return read.quantity(value)


def _consumes(obj: Obj, read: Reader) -> DeviceCounterConsumption:
    return DeviceCounterConsumption(get_text(obj, "counterSet"), _counters(obj, read))


def _counters(obj: Obj, read: Reader) -> Mapping[str, Quantity]:
    def counter(value: Any) -> Quantity:
        return _amount(check_object(value), "value", read) or _ZERO

    return dict(read.entries(obj, "counters", counter))


def read_taint(obj: Obj) -> DeviceTaint:
    """A taint of a device or of a taint rule."""
    return DeviceTaint(
        get_text(obj, "key"),
        get_text(obj, "value"),
        get_text(obj, "effect"),
        get_text(obj, "timeAdded"),
    )
