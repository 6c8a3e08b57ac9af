"""A time budget for the property tests of a run: many examples, and yet an end.

A pytest plugin. When ``DRA_CORE_PROPERTY_SECONDS`` is set, a property test that is still
running so many seconds after the run began stops as soon as it has had ``ENOUGH``
examples, and passes; the end of the report names every test that was cut short, with the
examples it had. A test that has found a failure is never cut: it goes on to the smallest
example and fails. State machines are not cut, they have no single test function.

Without the variable nothing is cut.
"""

import functools
import os
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest
from _pytest.outcomes import Skipped
from hypothesis.errors import UnsatisfiedAssumption

SECONDS = "DRA_CORE_PROPERTY_SECONDS"

ENOUGH = 100
"""Examples that every property gets however late it is: those of the default profile."""

_CUT = "property cut short after"
_STARTED = time.monotonic()


class EnoughExamples(Skipped):
    """Ends a property test. Hypothesis passes on at once what pytest uses for skipping."""


class Count:
    """What a property has been through: examples that held, and whether one did not."""

    def __init__(self) -> None:
        self.examples = 0
        self.failed = False


def counted(inner: Callable[..., object], count: Count, deadline: float) -> Callable[..., None]:
    """A property's function that counts its examples and stops when time is up."""

    @functools.wraps(inner)
    def run(*args: Any, **kwargs: Any) -> None:
        if count.examples >= ENOUGH and not count.failed and time.monotonic() > deadline:
            raise EnoughExamples(f"{count.examples} examples")
        try:
            inner(*args, **kwargs)
        except UnsatisfiedAssumption:
            raise  # rejected: neither an example nor a failure
        except Exception:
            count.failed = True
            raise
        count.examples += 1

    return run


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a property under the budget."""
    seconds = os.environ.get(SECONDS)
    handle = getattr(pyfuncitem.obj, "hypothesis", None)
    if not seconds or handle is None:
        return (yield)
    inner, count = handle.inner_test, Count()
    handle.inner_test = counted(inner, count, _STARTED + float(seconds))
    try:
        return (yield)
    except EnoughExamples:
        pyfuncitem.user_properties.append((_CUT, count.examples))
        return True
    finally:
        handle.inner_test = inner


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the properties that were cut short."""
    cut = [
        f"{examples:,} examples: {report.nodeid}"
        for report in terminalreporter.stats.get("passed", [])
        for name, examples in report.user_properties
        if name == _CUT
    ]
    if cut:
        terminalreporter.section(f"properties cut short by {SECONDS}")
        for line in sorted(cut):
            terminalreporter.line(line)
