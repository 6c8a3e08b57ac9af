"""Decoding ResourceSlices: the bulk of what is ever decoded.

What may live here: slices, devices, attributes, capacities, counters, taints, from
decoded JSON to frozen objects. The primitives and their rules are those of
``wire_read``.

A cluster has tens of thousands of devices, and reading them must not take much longer
than ``json.loads`` took. So the loops over attributes and capacities look a value up
in the memo before they look at it closely: equal values are checked and built once
per load. What is not in the memo takes the ordinary, careful way.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs

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
    Memo,
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
    try:
        pool, generation, count = _pool(spec)
        return ResourceSlice(
            metadata,
            get_text(spec, "driver"),
            pool,
            generation,
            count,
            get_text(spec, "nodeName"),
            read_node_selector(spec, "nodeSelector"),
            get_boolean(spec, "allNodes"),
            get_boolean(spec, "perDeviceNodeSelection"),
            each(spec, "devices", partial(_device, read)),
            each_object(spec, "sharedCounters", partial(_counter_set, read=read)),
            get_texts(spec, "skipNodeOperations"),
            obj,
        )
    except Fault as fault:
        fault.way.append("spec")
        raise


def _pool(spec: Obj) -> tuple[str, int, int]:
    pool = get_object(spec, "pool")
    try:
        return (
            get_text(pool, "name"),
            get_integer(pool, "generation"),
            get_integer(pool, "resourceSliceCount"),
        )
    except Fault as fault:
        fault.way.append("pool")
        raise


class _NewDevice:
    """A device while it is made: the slots of ``Device``, not frozen yet.

    The generated constructor of a frozen class goes through ``object.__setattr__``
    twelve times, 0.85 µs; filling these slots and then changing the class takes 0.35.
    With 40,000 devices that is a fifth of what ``json.loads`` took.
    """

    __slots__ = tuple(field.name for field in attrs.fields(Device))

    def __init__(self, name: str, attributes: Any, capacity: Any) -> None:
        self.name = name
        self.attributes = attributes
        self.capacity = capacity
        self.consumes_counters = self.taints = ()
        self.binding_conditions = self.binding_failure_conditions = ()
        self.node_name = ""
        self.node_selector = None
        self.all_nodes = self.binds_to_node = self.allow_multiple_allocations = False


def _quick_device(
    name: str, attributes: Mapping[str, AttributeValue], capacity: Mapping[str, DeviceCapacity]
) -> Device:
    device: Any = _NewDevice(name, attributes, capacity)
    device.__class__ = Device
    return device  # type: ignore[no-any-return]


def _quick_or_plain() -> Callable[..., Device]:
    """The quick way where the interpreter allows it, else the constructor."""
    try:
        _quick_device("", {}, {})
    except TypeError:
        return Device
    return _quick_device


_make_device = _quick_or_plain()


def _device(read: Reader, value: Any) -> Device:
    obj = value if value.__class__ is dict else check_object(value)
    if read.basic:
        return _basic_device(obj, read)
    attributes = _attributes(obj, read)
    capacity = _capacity(obj, read)
    # Most devices have nothing else, and asking nine times costs as much as the rest.
    if len(obj) == 3 and "attributes" in obj and "capacity" in obj and "name" in obj:
        return _make_device(get_text(obj, "name"), attributes, capacity)
    refuse(obj, ("basic",), "belongs to v1beta1; in this version the device's fields are flat")
    return _full_device(get_text(obj, "name"), attributes, capacity, obj, read)


def _basic_device(obj: Obj, read: Reader) -> Device:
    refuse(obj, _DEVICE_FIELDS, "belongs under basic in this version")
    name = get_text(obj, "name")
    fields = get_object(obj, "basic")
    with At("basic"):
        return _full_device(name, _attributes(fields, read), _capacity(fields, read), fields, read)


def _full_device(
    name: str,
    attributes: Mapping[str, AttributeValue],
    capacity: Mapping[str, DeviceCapacity],
    obj: Obj,
    read: Reader,
) -> Device:
    return Device(
        name=name,
        attributes=attributes,
        capacity=capacity,
        consumes_counters=each_object(obj, "consumesCounters", partial(_consumes, read=read)),
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
    memo = read.memo
    names, strings, integers = memo.names, memo.strings, memo.integers
    result: dict[str, AttributeValue] = {}
    attributes = obj.get("attributes")
    if attributes.__class__ is not dict:
        attributes = get_object(obj, "attributes")
    for name, value in attributes.items():
        if value.__class__ is dict and len(value) == 1 and name in names:
            # True and 1.0 are the same keys as 1, but no integers.
            if "string" in value:
                text = value["string"]
                if text.__class__ is str and text in strings:
                    result[name] = strings[text]
                    continue
            elif "int" in value:
                number = value["int"]
                if number.__class__ is int and number in integers:
                    result[name] = integers[number]
                    continue
            else:
                known = _recall(value, memo)
                if known is not None:
                    result[name] = known
                    continue
        with At("attributes"), At(bracket(name)):
            names.add(check_text(name))
            if value is not None:
                result[name] = _remembered(check_object(value), memo)
    return result


def _remembered(obj: Obj, memo: Memo) -> AttributeValue:
    known = _attribute(obj)
    if known.kind == "string":
        memo.strings[known.value] = known
    elif known.kind == "int":
        memo.integers[known.value] = known
    else:
        memo.others[known] = known
    return known


def _recall(obj: Obj, memo: Memo) -> AttributeValue | None:
    """A version or boolean seen before; ``obj`` has one member."""
    (item,) = obj.items()
    if item[1].__class__ is str or item[1].__class__ is bool:
        known = memo.others.get(item)
        if known is not None and known[1].__class__ is item[1].__class__:
            return known
    return None


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


def _capacity(obj: Obj, read: Reader) -> Mapping[str, DeviceCapacity]:
    capacity = obj.get("capacity")
    if capacity.__class__ is not dict:
        capacity = get_object(obj, "capacity")
    # Devices of one model have equal capacities: one map serves them all.
    key: list[str] = []
    for name, value in capacity.items():
        if value.__class__ is dict and len(value) == 1 and "value" in value:
            amount = value["value"]
            if amount.__class__ is str and name.__class__ is str:
                key += (name, amount)
                continue
        return _new_capacity(capacity, read)
    known = read.memo.capacities.get(tuple(key))
    if known is None:
        known = read.memo.capacities[tuple(key)] = _new_capacity(capacity, read)
    return known


def _new_capacity(capacity: Obj, read: Reader) -> Mapping[str, DeviceCapacity]:
    result: dict[str, DeviceCapacity] = {}
    for name, value in capacity.items():
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
    return DeviceCapacity(amount)


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


def _counter_set(obj: Obj, read: Reader) -> CounterSet:
    return CounterSet(get_text(obj, "name"), _counters(obj, read))


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
