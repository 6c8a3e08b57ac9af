"""The rules of allocation that need no search, one plain function each.

What may live here: what one device, one slice or one value means by itself. Both the
brute-force twin and the rule checker use these functions; the allocator does not, so
that two readings of the same rules meet in the tests. Nothing here is fast.
"""

import re
from collections.abc import Iterable, Mapping

from dra_core.api.core import Node, NodeSelector, NodeSelectorRequirement
from dra_core.api.objects import (
    AttributeValue,
    CapacityRequirements,
    Device,
    DeviceCapacity,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceTaint,
    DeviceToleration,
    ResourceSlice,
)
from dra_core.features import Features
from dra_core.values.quantity import BINARY_SI, Quantity

NODE_OPERATIONS_FEATURE = "DRAOptionalNodeOperations"
"""What a node declares in ``status.declaredFeatures`` if it can skip operations."""

# --- node selectors ----------------------------------------------------------------------

_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def node_selector_problem(selector: NodeSelector) -> str | None:
    """What makes the selector unusable; None if nothing does."""
    for term in selector.terms:
        for requirement in term.match_expressions:
            problem = _label_problem(requirement)
            if problem is not None:
                return problem
        for requirement in term.match_fields:
            if requirement.operator not in ("In", "NotIn"):
                return f"operator {requirement.operator!r} on a field"
            if len(requirement.values) != 1:
                return "a field needs exactly one value"
    return None


def _label_problem(requirement: NodeSelectorRequirement) -> str | None:
    operator, values = requirement.operator, requirement.values
    if not _is_label_key(requirement.key):
        return f"{requirement.key!r} is no key of a label"
    if operator in ("In", "NotIn"):
        if not values:
            return f"{operator} without values"
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            return f"{operator} with values"
    elif operator in ("Gt", "Lt"):
        if len(values) != 1 or _int64(values[0]) is None:
            return f"{operator} needs one 64-bit integer"
    else:
        return f"unknown operator {operator!r}"
    bad = [value for value in values if value and not _LABEL_NAME.fullmatch(value)]
    return f"{bad[0]!r} is no value of a label" if bad else None


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (_LABEL_PREFIX.fullmatch(prefix) and len(prefix) <= 253):
        return False
    return _LABEL_NAME.fullmatch(name) is not None


def _int64(text: str) -> int | None:
    if not re.fullmatch(r"[+-]?[0-9]{1,100}", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def node_selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Whether any term holds on the node; a term without requirements does not."""
    for term in selector.terms:
        labels = [_label_holds(r, node.labels) for r in term.match_expressions]
        fields = [_field_holds(r, node) for r in term.match_fields]
        if labels + fields and all(labels + fields):
            return True
    return False


def _label_holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    label, bound = _int64(labels.get(key, "")), _int64(values[0])
    if label is None or bound is None:
        return False
    return label > bound if operator == "Gt" else label < bound


def _field_holds(requirement: NodeSelectorRequirement, node: Node) -> bool:
    equal = requirement.key == "metadata.name" and node.name == requirement.values[0]
    return equal if requirement.operator == "In" else not equal


# --- slices and devices --------------------------------------------------------------------


def device_is_for_node(resource_slice: ResourceSlice, device: Device, node: Node) -> bool:
    """Whether the device itself may be used on the node (its slice being for the node)."""
    if not resource_slice.per_device_node_selection:
        return True
    return _selects(device.node_name, device.all_nodes, device.node_selector, node)


def slice_is_for_node(resource_slice: ResourceSlice, node: Node) -> bool:
    """Whether the slice is relevant on the node, features aside."""
    if resource_slice.node_name:
        return resource_slice.node_name == node.name
    if _selects("", resource_slice.all_nodes, resource_slice.node_selector, node):
        return True
    return resource_slice.per_device_node_selection and any(
        device_is_for_node(resource_slice, device, node) for device in resource_slice.devices
    )


def _selects(name: str, everywhere: bool, selector: NodeSelector | None, node: Node) -> bool:
    by_selector = selector is not None and node_selector_matches(selector, node)
    return (name != "" and name == node.name) or everywhere or by_selector


def is_shareable(device: Device, features: Features) -> bool:
    """Whether several claims may have a share of the device."""
    return device.allow_multiple_allocations and features.consumable_capacity


def counters_of(device: Device) -> dict[tuple[str, str], int]:
    """What the device takes from the counters of its pool, in billionths."""
    return sum_of_counters(device.consumes_counters)


def sum_of_counters(
    consumptions: Iterable[DeviceCounterConsumption],
) -> dict[tuple[str, str], int]:
    """Amounts by (counter set, counter), in billionths."""
    taken: dict[tuple[str, str], int] = {}
    for consumption in consumptions:
        for name, amount in consumption.counters.items():
            key = (consumption.counter_set, name)
            taken[key] = taken.get(key, 0) + amount.nano
    return taken


# --- taints --------------------------------------------------------------------------------


def untolerated(
    taints: Iterable[DeviceTaint], tolerations: Iterable[DeviceToleration]
) -> DeviceTaint | None:
    """The first taint that forbids the device; None if there is none."""
    for taint in taints:
        if taint.effect not in ("NoSchedule", "NoExecute"):
            continue
        if not any(_covers(toleration, taint) for toleration in tolerations):
            return taint
    return None


def _covers(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    operator = toleration.operator or "Equal"
    return (
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (operator == "Exists" or (operator == "Equal" and toleration.value == taint.value))
    )


# --- constraints ---------------------------------------------------------------------------

Values = frozenset[tuple[str, object]]
"""The values of an attribute, each with its type."""


def applies(constraint: DeviceConstraint, main: str, name: str) -> bool:
    """Whether a constraint is about a request (``main``; ``name`` is ``main/sub`` for one)."""
    return not constraint.requests or main in constraint.requests or name in constraint.requests


def attribute_values(
    device: Device, driver: str, attribute: str, features: Features
) -> Values | None:
    """The set of values of a device's attribute; None where every constraint fails on it."""
    found = _attribute(device, driver, attribute)
    if found is None:
        return None
    if found.kind in ("int", "bool", "string", "version"):
        return frozenset({(found.kind, found.value)})
    if features.list_type_attributes and isinstance(found.value, tuple):
        singular = found.kind.removesuffix("s")
        return frozenset((singular, value) for value in found.value) or None
    return None


def _attribute(device: Device, driver: str, attribute: str) -> AttributeValue | None:
    if attribute in device.attributes:
        return device.attributes[attribute]
    domain, slash, name = attribute.partition("/")
    return device.attributes.get(name) if slash and domain == driver else None


def constraint_holds(constraint: DeviceConstraint, devices: Iterable[Values | None]) -> bool:
    """Whether the attribute values of the devices that a constraint is about satisfy it."""
    known: list[Values] = []
    for values in devices:
        if values is None:
            return False
        known.append(values)
    if constraint.match_attribute is not None:
        return not known or bool(frozenset.intersection(*known))
    return all(known[i].isdisjoint(known[j]) for i in range(len(known)) for j in range(i))


def constrained_attribute(constraint: DeviceConstraint) -> str:
    """The attribute that a constraint looks at; matchAttribute counts if both are set."""
    if constraint.match_attribute is not None:
        return constraint.match_attribute
    return constraint.distinct_attribute or ""


# --- consumable capacity -------------------------------------------------------------------


def consumed_capacity(
    device: Device, request: CapacityRequirements | None
) -> dict[str, Quantity] | None:
    """What one allocation of the device consumes of each capacity; None: it is impossible.

    Impossible are a requested capacity that the device does not have, and an amount
    that the policy does not allow. Whether the device has that much is not asked here.
    """
    requested = request.requests if request is not None else {}
    if any(name not in device.capacity for name in requested):
        return None
    consumed: dict[str, Quantity] = {}
    for name, capacity in device.capacity.items():
        amount = _amount(capacity, requested.get(name))
        if amount is None:
            return None
        consumed[name] = amount
    return consumed


def _amount(capacity: DeviceCapacity, requested: Quantity | None) -> Quantity | None:
    policy = capacity.request_policy
    if policy is None:
        return capacity.value if requested is None else requested
    if requested is None:
        amount = capacity.value if policy.default is None else policy.default
    elif policy.valid_range is not None:
        low, step = policy.valid_range.min, policy.valid_range.step
        amount = requested
        if low is not None and amount < low:
            amount = low
        elif step is not None:
            if step.nano <= 0:
                return None
            start = low.nano if low is not None else 0
            steps = -(-(amount.nano - start) // step.nano)
            amount = Quantity(start + steps * step.nano, BINARY_SI)
    elif policy.valid_values:
        enough = [value for value in policy.valid_values if value >= requested]
        if not enough:
            return None
        amount = min(enough)
    else:
        amount = requested
    return amount if _is_allowed(capacity, amount) else None


def _is_allowed(capacity: DeviceCapacity, amount: Quantity) -> bool:
    policy = capacity.request_policy
    if policy is None or amount == policy.default:
        return True
    if policy.valid_range is not None:
        low, high, step = policy.valid_range.min, policy.valid_range.max, policy.valid_range.step
        if high is not None and amount > high:
            return False
        start = low.nano if low is not None else 0
        return step is None or (step.nano > 0 and (amount.nano - start) % step.nano == 0)
    return not policy.valid_values or amount in policy.valid_values
