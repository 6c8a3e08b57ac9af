"""Evaluating selectors in tests: outcomes as values."""

from typing import Final, Literal

from dra_core.api.objects import Device
from dra_core.cel.selector import SelectorCache
from dra_core.errors import SelectorCompileError, SelectorEvaluationError
from support.devices import device

COMPILE: Final = "does not compile"
FAILS: Final = "fails"

Outcome = bool | Literal["does not compile", "fails"]

DRIVER: Final = "gpu.example.com"

CACHE: Final = SelectorCache(max_entries=500)

DEVICE: Final = device(
    {
        "model": "A100",
        "index": 3,
        "healthy": True,
        "firmware": {"version": "1.12.3"},
        "numa": [0, 2],
        "links": ["x", "y"],
        "flags": [True, False],
        "builds": {"versions": ["1.0.0", "2.1.0"]},
        "empty": "",
        "big": 2**63 - 1,
        "other.example.org/zone": "east",
    },
    {"memory": "80Gi", "other.example.org/rate": "1500m"},
)


def outcome(expression: str, on: Device = DEVICE, driver: str = DRIVER) -> Outcome:
    """What comes of an expression; both ways of evaluating must agree on it."""
    try:
        selector = CACHE.compile(expression)
    except SelectorCompileError:
        return COMPILE
    fast: Outcome
    counted: Outcome
    try:
        fast = selector.matches(driver, on)
    except SelectorEvaluationError:
        fast = FAILS
    try:
        counted, _ = selector.evaluate(driver, on)
    except SelectorEvaluationError:
        counted = FAILS
    assert fast == counted, f"{fast}, but {counted} when counting: {expression}"
    return fast


def problem(expression: str, on: Device = DEVICE) -> SelectorCompileError | SelectorEvaluationError:
    """The error of an expression that has one."""
    try:
        CACHE.compile(expression).matches(DRIVER, on)
    except (SelectorCompileError, SelectorEvaluationError) as error:
        return error
    raise AssertionError(f"{expression} has no error")
