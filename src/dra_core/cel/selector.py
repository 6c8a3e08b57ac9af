"""Selectors: CEL expressions that tell devices apart, and the cache that compiles them.

What may live here: the public face of this package. An expression compiles once, to
Python code that looks into a device without copying it. What it reads of a device is
known, so that a result can serve every device that agrees on those values.

The cache has one lock, held while it looks up or compiles. Selectors have none: they
change nothing but what is remembered about devices, by single dict operations.

Source: resource.k8s.io, CELDeviceSelector; KEP-4381.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

import attrs

from dra_core.api.objects import Device
from dra_core.cel.device import (
    DEVICE_PARAMETERS,
    DevicePlace,
    Devices,
    Reads,
    SelectorReads,
    device_environment,
)
from dra_core.cel.device_key import key_function
from dra_core.cel.program import Program, Prologue
from dra_core.errors import SelectorCompileError

DEFAULT_MAX_ENTRIES: Final = 1_000
"""Expressions that a cache keeps, unless told otherwise."""

MAX_EXPRESSION_LENGTH: Final = 10 * 1024
"""CELSelectorExpressionMaxLength of resource.k8s.io, in bytes. The API server checks it,
and so does validation; compiling and evaluating do not."""

_ENVIRONMENT: Final = device_environment()


class Selector:
    """One compiled expression. Made by ``SelectorCache.compile``.

    ``matches(driver, device)`` tells whether the device is selected; ``driver`` is the
    slice's. Raises SelectorEvaluationError if the expression fails on the device, if its
    result is no bool, or if it costs more than the limit (``dra_core.cel.cost.LIMIT``).

    ``max_cost`` is the most that the expression may cost on a device within the API's
    limits, in the reference's units; the API server refuses what may pass the limit.
    """

    __slots__ = ("_devices", "_key", "_program", "expression", "matches", "max_cost", "reads")

    def __init__(self, expression: str, devices: Devices) -> None:
        reads = Reads()
        place = DevicePlace(devices, reads)
        program = Program(
            expression, _ENVIRONMENT, DEVICE_PARAMETERS, {"device": place}, _prologue(devices)
        )
        self.expression = expression
        self.max_cost = program.max_cost
        self.matches: Callable[[str, Device], bool] = program.function()
        self.reads: SelectorReads = reads.frozen()
        self._program = program
        self._devices = devices
        self._key: Callable[[str, Device], Hashable] | None = None

    def evaluate(self, driver: str, device: Device) -> tuple[bool, int]:
        """The result and what it cost, in the reference's units. Slower than ``matches``.

        Raises SelectorEvaluationError, with the cost until then.
        """
        return self._program.counted()(driver, device)

    def values_read(self, driver: str, device: Device) -> Hashable:
        """A key: two devices with equal keys get the same result, or the same error.

        Cost: a look-up per name that is read; linear in the device if all may be read.
        """
        key = self._key
        if key is None:
            key = self._key = key_function(self.reads, self._devices)
        return key(driver, device)

    def __repr__(self) -> str:
        return f"Selector({self.expression!r})"


def _prologue(devices: Devices) -> Prologue:
    """Refuse a device with an attribute that has no value, once per device."""
    return Prologue(
        ("if sound.get(id(device)) is not device: inspect(device)",),
        {"sound": devices.sound, "inspect": devices.inspect},
    )


class SelectorCache:
    """Compiles expressions, and keeps the last ``max_entries`` of them.

    Also keeps the error of an expression that does not compile. Safe to share between
    threads. Raises ``ValueError`` if ``max_entries`` is less than 1.
    """

    def __init__(self, max_entries: int = DEFAULT_MAX_ENTRIES) -> None:
        if max_entries < 1:
            raise ValueError("a cache of selectors needs room for at least one")
        self.max_entries = max_entries
        self._devices = Devices()
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, Selector | SelectorCompileError] = OrderedDict()

    def compile(self, expression: str) -> Selector:
        """The selector for an expression, compiled now or before.

        Raises SelectorCompileError. Cost: a dict look-up if it is known, else about a
        millisecond, linear in the text.
        """
        with self._lock:
            entry = self._entries.get(expression)
            if entry is None:
                entry = self._compiled(expression)
                self._entries[expression] = entry
                if len(self._entries) > self.max_entries:
                    self._entries.popitem(last=False)
            else:
                self._entries.move_to_end(expression)
        if isinstance(entry, SelectorCompileError):
            # A new one: raising the same object again would grow its traceback.
            raise attrs.evolve(entry)
        return entry

    def _compiled(self, expression: str) -> Selector | SelectorCompileError:
        try:
            return Selector(expression, self._devices)
        except SelectorCompileError as error:
            return error

    def __len__(self) -> int:
        return len(self._entries)
