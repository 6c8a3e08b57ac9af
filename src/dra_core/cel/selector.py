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
from typing import Any, Final

import attrs

from dra_core.api.objects import Device
from dra_core.cel.checker import check
from dra_core.cel.compiler import FAULTS, Compiler
from dra_core.cel.cost import LIMIT
from dra_core.cel.device import DevicePlace, Devices, Reads, device_environment
from dra_core.cel.emitter import Module
from dra_core.cel.literals import fold
from dra_core.cel.parser import parse
from dra_core.cel.problems import BudgetExceeded, CompileProblem, EvalProblem, line_and_column
from dra_core.errors import SelectorCompileError, SelectorEvaluationError

DEFAULT_MAX_ENTRIES: Final = 1_000
"""Expressions that a cache keeps, unless told otherwise."""

MAX_EXPRESSION_LENGTH: Final = 10 * 1024
"""CELSelectorExpressionMaxLength of resource.k8s.io, in bytes. The API server checks it,
and so does validation; compiling and evaluating do not."""

_ENVIRONMENT: Final = device_environment()
_PARAMETERS: Final = ("driver", "device")


@attrs.frozen
class SelectorReads:
    """What a selector reads of a device.

    ``attributes`` and ``capacity`` are (domain, name) pairs in the order of the text, or
    ``None`` if any of them may be read.
    """

    driver: bool
    allow_multiple: bool
    attributes: tuple[tuple[str, str], ...] | None
    capacity: tuple[tuple[str, str], ...] | None


class Selector:
    """One compiled expression. Made by ``SelectorCache.compile``.

    ``matches(driver, device)`` tells whether the device is selected; ``driver`` is the
    slice's. Raises SelectorEvaluationError if the expression fails on the device, if its
    result is no bool, or if it costs more than the limit.

    ``values_read(driver, device)`` is a key: two devices with equal keys get the same
    result, or the same error. Cheap.
    """

    __slots__ = ("_devices", "expression", "matches", "max_cost", "reads", "values_read")

    def __init__(self, expression: str, devices: Devices) -> None:
        self.expression = expression
        self.max_cost: int | None = None
        self._devices = devices
        try:
            root = fold(check(parse(expression), _ENVIRONMENT))
        except CompileProblem as problem:
            line, column = line_and_column(expression, problem.offset)
            raise SelectorCompileError(expression, line, column, problem.problem) from None
        reads = Reads()
        module = Module(_PARAMETERS)
        place = DevicePlace(devices, reads)
        Compiler(module, {"device": place}).function("run", root, _prologue(module, devices))
        self.reads = SelectorReads(
            reads.driver,
            reads.allow_multiple,
            None if reads.attributes is None else tuple(reads.attributes),
            None if reads.capacity is None else tuple(reads.capacity),
        )
        run, offsets = _load(module)
        self.matches: Callable[[str, Device], bool] = _guarded(expression, run, offsets)
        self.values_read: Callable[[str, Device], Hashable] = _key_function(self.reads, devices)

    def evaluate(self, driver: str, device: Device) -> tuple[bool, int]:
        """The result and what it cost, in the reference's units. Slower than ``matches``."""
        return self.matches(driver, device), 0

    def __repr__(self) -> str:
        return f"Selector({self.expression!r})"


def _prologue(module: Module, devices: Devices) -> tuple[str, ...]:
    """Refuse a device with an attribute that has no value, once per device."""
    module.namespace["sound"] = devices.sound
    module.namespace["inspect"] = devices.inspect
    return ("if sound.get(id(device)) is not device: inspect(device)",)


def _load(module: Module) -> tuple[Callable[..., Any], list[int]]:
    source, offsets = module.render()
    code = compile(source, "<selector>", "exec")
    exec(code, module.namespace)
    run: Callable[..., Any] = module.namespace["run"]
    return run, offsets


def _guarded(
    expression: str, run: Callable[..., Any], offsets: list[int]
) -> Callable[[str, Device], bool]:
    namespace = run.__globals__

    def matches(driver: str, device: Device) -> bool:
        try:
            return run(driver, device)  # type: ignore[no-any-return]
        except FAULTS as problem:
            raise located(expression, problem, namespace, offsets) from None
        except (BudgetExceeded, RecursionError, MemoryError) as problem:
            raise located(expression, problem, namespace, offsets) from None

    return matches


def located(
    expression: str, problem: BaseException, namespace: dict[str, Any], offsets: list[int]
) -> SelectorEvaluationError:
    """The public error for a problem, with the place of the generated line that raised it."""
    offset = 0
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals is namespace:
            offset = offsets[trace.tb_lineno]
        trace = trace.tb_next
    line, column = line_and_column(expression, offset)
    if isinstance(problem, RecursionError):
        return SelectorEvaluationError(expression, line, column, "values are nested too deep")
    if isinstance(problem, MemoryError):
        return SelectorEvaluationError(expression, line, column, "out of memory")
    hint = problem.hint if isinstance(problem, EvalProblem) else ""
    return SelectorEvaluationError(expression, line, column, str(problem), hint)


def _key_function(reads: SelectorReads, devices: Devices) -> Callable[[str, Device], Hashable]:
    module = Module(_PARAMETERS)
    module.namespace["fault"] = devices.fault
    parts = ["fault(device)"]
    prologue = []
    if reads.driver:
        parts.append("driver")
    if reads.allow_multiple:
        parts.append("device.allow_multiple_allocations")
    for which in ("attributes", "capacity"):
        names: tuple[tuple[str, str], ...] | None = getattr(reads, which)
        if names is None:
            part = f"tuple(device.{which}.items())"
            if which == "capacity":
                part = "tuple([(n, c.value.nano) for n, c in device.capacity.items()])"
            parts.append(part)
            continue
        if names:
            prologue.append(f"{which} = device.{which}")
        parts += [_part(module, which, domain, name) for domain, name in names]
    lines = ["def run(driver, device):", *(f" {line}" for line in prologue)]
    lines.append(f" return ({', '.join(parts)},)")
    code = compile("\n".join(lines), "<selector key>", "exec")
    exec(code, module.namespace)
    run: Callable[[str, Device], Hashable] = module.namespace["run"]
    return run


def _part(module: Module, which: str, domain: str, name: str) -> str:
    """The expression for one value that is read."""
    full = f"{which}.get({module.constant(f'{domain}/{name}')})"
    bare = (
        f"({which}.get({module.constant(name)}) if driver == {module.constant(domain)} else None)"
    )
    if "/" in domain:
        found = "None" if "/" in name else bare
    elif "/" in name:
        found = full
    else:
        found = f"({full} or {bare})"
    if which == "capacity":
        return f"(q.value.nano if (q := {found}) is not None else None)"
    return found


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

        Raises SelectorCompileError. Cost: a dict look-up if it is known, else some
        hundred microseconds.
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


__all__ = ["LIMIT", "Selector", "SelectorCache", "SelectorReads"]
