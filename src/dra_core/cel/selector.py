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
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, Generic, TypeVar

import attrs

from dra_core.api.objects import Device
from dra_core.cel.device import (
    DEVICE_PARAMETERS,
    PLAIN_KINDS,
    DevicePlace,
    Devices,
    Reads,
    SelectorReads,
    device_environment,
)
from dra_core.cel.device_key import key_function
from dra_core.cel.problems import EvalProblem
from dra_core.cel.program import ENDS, Located, Program, Prologue
from dra_core.errors import SelectorCompileError

DEFAULT_MAX_ENTRIES: Final = 1_000
"""Expressions that a cache keeps, unless told otherwise."""

MAX_EXPRESSION_LENGTH: Final = 10 * 1024
"""CELSelectorExpressionMaxLength of resource.k8s.io, in bytes. The API server checks it,
and so does validation; compiling and evaluating do not."""

REMEMBER_FROM: Final = 40
"""Static cost from which results are remembered by the values read. Finding the key takes
about as long as evaluating ten comparisons (cost 4 each)."""

MAX_REMEMBERED_VALUES: Final = 4_096
"""Outcomes kept per selector."""

_ENVIRONMENT: Final = device_environment()


class Selector:
    """One compiled expression. Made by ``SelectorCache.compile``.

    An evaluation raises SelectorEvaluationError if the expression fails on the device, if
    its result is no bool, or if it costs more than the limit (``dra_core.cel.cost.LIMIT``).

    ``max_cost`` is the most that the expression may cost on a device within the API's
    limits, in the reference's units; the API server refuses what may pass the limit.
    """

    __slots__ = (
        "_devices",
        "_key",
        "_known",
        "_located",
        "_program",
        "_run",
        "expression",
        "max_cost",
        "reads",
    )

    def __init__(self, expression: str, devices: Devices) -> None:
        reads = Reads()
        place = DevicePlace(devices, reads)
        program = Program(
            expression, _ENVIRONMENT, DEVICE_PARAMETERS, {"device": place}, Prologue()
        )
        self.expression = expression
        self.max_cost = program.max_cost
        run, located = program.bare()
        self._run: Callable[[str, Device], bool] = run
        self._located: Located = located
        self.reads: SelectorReads = reads.frozen()
        self._program = program
        self._devices = devices
        self._key: Callable[[str, Device], Hashable] | None = None
        self._known: dict[Hashable, bool | None] = {}

    def matches(self, driver: str, device: Device) -> bool:
        """Whether the device is selected; ``driver`` is the slice's.

        Raises SelectorEvaluationError.
        """
        try:
            self._devices.inspect(device)
            return self._run(driver, device)
        except ENDS as problem:
            raise self._located(problem) from None

    def matching(self, driver: str, devices: Sequence[Device], wanted: int) -> tuple[int, int]:
        """Masks of the devices that are selected, and of those on which it fails.

        Only devices in ``wanted`` are looked at (bit ``i``: ``devices[i]``); they must be
        sound (``SelectorCache.unsound``). Where evaluating costs more than finding a key,
        it is done once for all devices that agree on what the expression reads, also
        those of other calls. Cost: some 0.3 µs a device for a simple expression.
        """
        if self.max_cost >= REMEMBER_FROM:
            return self._matching_by_values(driver, devices, wanted)
        run = self._run
        matching = failing = 0
        while wanted:
            low = wanted & -wanted
            try:
                # The net is spread once, not once per device.
                while wanted:
                    low = wanted & -wanted
                    wanted ^= low
                    if run(driver, devices[low.bit_length() - 1]):
                        matching |= low
            except ENDS:
                failing |= low
        return matching, failing

    def _matching_by_values(
        self, driver: str, devices: Sequence[Device], wanted: int
    ) -> tuple[int, int]:
        known = self._known
        matching = failing = 0
        while wanted:
            low = wanted & -wanted
            wanted ^= low
            device = devices[low.bit_length() - 1]
            key = self.values_read(driver, device)
            if key not in known:
                if len(known) >= MAX_REMEMBERED_VALUES:
                    known.clear()
                known[key] = self._outcome(driver, device)
            outcome = known[key]
            if outcome is None:
                failing |= low
            elif outcome:
                matching |= low
        return matching, failing

    def _outcome(self, driver: str, device: Device) -> bool | None:
        try:
            return self._run(driver, device)
        except ENDS:
            return None

    def evaluate(self, driver: str, device: Device) -> tuple[bool, int]:
        """The result and what it cost, in the reference's units. Slower than ``matches``.

        Raises SelectorEvaluationError, with the cost until then.
        """
        try:
            self._devices.inspect(device)
        except EvalProblem as problem:
            raise self._located(problem) from None
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


S = TypeVar("S")


class ExpressionCache(Generic[S]):
    """Compiles expressions by ``build``, and keeps the last ``max_entries`` of them.

    Also keeps the error of an expression that does not compile. Safe to share between
    threads. Raises ``ValueError`` if ``max_entries`` is less than 1.
    """

    def __init__(self, build: Callable[[str], S], max_entries: int = DEFAULT_MAX_ENTRIES) -> None:
        if max_entries < 1:
            raise ValueError("a cache of selectors needs room for at least one")
        self.max_entries = max_entries
        self._build = build
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, S | SelectorCompileError] = OrderedDict()

    def compile(self, expression: str) -> S:
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

    def _compiled(self, expression: str) -> S | SelectorCompileError:
        try:
            return self._build(expression)
        except SelectorCompileError as error:
            return error

    def __len__(self) -> int:
        return len(self._entries)


class SelectorCache(ExpressionCache[Selector]):
    """The selectors of devices, compiled."""

    def __init__(self, max_entries: int = DEFAULT_MAX_ENTRIES) -> None:
        self._devices = devices = Devices()
        super().__init__(lambda expression: Selector(expression, devices), max_entries)

    def unsound(self, devices: Iterable[Device]) -> int:
        """Mask of the devices on which every selector fails.

        They have an attribute without value, or with a malformed version.
        """
        mask = 0
        fault = self._devices.fault
        for place, device in enumerate(devices):
            # What ``inspect`` looks at first, without two calls for every device.
            for attribute in device.attributes.values():
                if attribute[0] not in PLAIN_KINDS:
                    mask |= bool(fault(device)) << place
                    break
        return mask
