"""Devices for tests of selectors, from the form of the recorded answers or written short."""

from collections.abc import Mapping
from typing import Any

from dra_core.api.objects import AttributeValue, Device, DeviceCapacity
from dra_core.values.quantity import Quantity


def device_of_case(case: Mapping[str, Any]) -> Device:
    """The device of a line of ``cel.jsonl.gz`` and its kin."""
    return Device(
        name="device",
        attributes={name: attribute(value) for name, value in case["attributes"].items()},
        capacity={
            name: DeviceCapacity(Quantity.parse(value["value"]))
            for name, value in case["capacity"].items()
        },
        allow_multiple_allocations=bool(case["allowMultipleAllocations"]),
    )


def attribute(value: Mapping[str, Any]) -> AttributeValue:
    """An attribute in the API's form, ``{"string": "x"}``; an empty one has no value."""
    for kind, content in value.items():
        return AttributeValue(kind, tuple(content) if isinstance(content, list) else content)
    return AttributeValue("", None)


def device(
    attributes: Mapping[str, Any] | None = None,
    capacity: Mapping[str, str] | None = None,
    *,
    allow_multiple: bool = False,
) -> Device:
    """A device from Python values; a version is written ``{"version": "1.0.0"}``."""
    return Device(
        name="device",
        attributes={name: _attribute(value) for name, value in (attributes or {}).items()},
        capacity={n: DeviceCapacity(Quantity.parse(q)) for n, q in (capacity or {}).items()},
        allow_multiple_allocations=allow_multiple,
    )


def _attribute(value: Any) -> AttributeValue:
    if isinstance(value, Mapping):
        return attribute(value)
    if isinstance(value, list):
        kind = {bool: "bools", int: "ints", str: "strings"}[type(value[0])]
        return AttributeValue(kind, tuple(value))
    return AttributeValue({bool: "bool", int: "int", str: "string"}[type(value)], value)
