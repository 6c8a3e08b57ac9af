"""A fixed family of selectors, each with a plain function that says what it means.

What may live here: the expressions that the strategies use. The functions know nothing
of CEL; they let the twin be run without the selector compiler, and they are a second
opinion on it for this family.
"""

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from dra_core.api.names import qualified_name
from dra_core.api.objects import Device
from dra_core.errors import DraError
from dra_core.testing.problem import Matches
from dra_core.values.quantity import Quantity

GPU: Final = "gpu.example.com"
NIC: Final = "nic.example.com"
DRIVERS: Final = (GPU, NIC)


@attrs.frozen
class FamilySelectorError(DraError):
    """A selector of the family does not compile, or fails on a device."""

    problem: str

    def __str__(self) -> str:
        return self.problem


def _attribute(driver: str, device: Device, name: str) -> object:
    """The value of an attribute in the domain of GPU; None if the device lacks it."""
    for key, value in device.attributes.items():
        if qualified_name(key, driver) == (GPU, name):
            return value.value
    return None


def _needed(driver: str, device: Device, name: str) -> object:
    value = _attribute(driver, device, name)
    if value is None:
        raise FamilySelectorError(f"no such key: {name}")
    return value


def _numa(driver: str, device: Device, number: int) -> bool:
    value = _attribute(driver, device, "numa")
    return value is not None and number in (value if isinstance(value, tuple) else (value,))


def _memory(driver: str, device: Device) -> Quantity:
    for key, capacity in device.capacity.items():
        if qualified_name(key, driver) == (GPU, "memory"):
            return capacity.value
    return Quantity(0)


_GPU = f'device.attributes["{GPU}"]'

WANTED: Final = f"has({_GPU}.wanted)"
"""Selects devices with a mark that the strategies put on few."""

SAFE: Final[Mapping[str, Matches]] = {
    "true": lambda driver, device: True,
    f'device.driver == "{GPU}"': lambda driver, device: driver == GPU,
    f'device.driver == "{NIC}"': lambda driver, device: driver == NIC,
    f'{_GPU}.?model.orValue("") == "a"': (
        lambda driver, device: _attribute(driver, device, "model") == "a"
    ),
    f'has({_GPU}.model) && {_GPU}.model != "a"': (
        lambda driver, device: _attribute(driver, device, "model") not in (None, "a")
    ),
    f"has({_GPU}.numa) && {_GPU}.numa.includes(0)": lambda driver, device: _numa(driver, device, 0),
    f"has({_GPU}.numa) && {_GPU}.numa.includes(1)": lambda driver, device: _numa(driver, device, 1),
    f'device.capacity["{GPU}"].?memory.orValue(quantity("0")).compareTo(quantity("4")) >= 0': (
        lambda driver, device: _memory(driver, device) >= Quantity.from_int(4)
    ),
    "device.allowMultipleAllocations": lambda driver, device: device.allow_multiple_allocations,
    "false": lambda driver, device: False,
    WANTED: lambda driver, device: _attribute(driver, device, "wanted") is not None,
}
"""Selectors that never fail on a device, as long as its attributes have values."""

FAILING: Final[Mapping[str, Matches]] = {
    f'{_GPU}.model == "a"': lambda driver, device: _needed(driver, device, "model") == "a",
}
"""Selectors that fail on devices without an attribute."""

BROKEN: Final = ("device.driver ==", "1 + 1", "device.nosuch == 1")
"""Texts that do not compile to a selector."""


def family(text: str) -> Matches:
    """The plain function for a selector of the family.

    Raises FamilySelectorError for one that does not compile, ValueError for a text that
    is not of the family.
    """
    if text in BROKEN:
        raise FamilySelectorError("does not compile")
    known: Callable[[str, Device], bool] | None = SAFE.get(text) or FAILING.get(text)
    if known is None:
        raise ValueError(f"{text!r} is not of the family")
    return _careful(known)


def _careful(matches: Matches) -> Matches:
    """An attribute without a value makes every selector on the device an error."""

    def checked(driver: str, device: Device) -> bool:
        if any(not value.kind for value in device.attributes.values()):
            raise FamilySelectorError("an attribute without a value")
        return matches(driver, device)

    return checked
