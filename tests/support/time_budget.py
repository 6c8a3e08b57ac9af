"""A time budget for the property tests of a run: many examples, and yet an end.

A pytest plugin. ``DRA_CORE_PROPERTY_SECONDS`` is the time that all property tests of a
run may take together. Each has its share of it, and what one leaves over is for those
after it. A property that is still running when its time is up stops after the example at
hand, and passes, unless it has had fewer than ``ENOUGH`` examples; the end of the report
names every test that was cut short, with the examples it had. A test that has found a
failure is never cut: it goes on to the smallest example and fails. State machines are
not cut, they have no single test function.

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


class Budget:
    """The seconds of this process, and how they are shared out among its properties."""

    def __init__(self, seconds: float, properties: int, workers: int) -> None:
        self._started = time.monotonic()
        self._share = seconds * workers / max(properties, 1)
        self._begun = 0

    def next_deadline(self) -> float:
        """The time at which the next property has had its share and all that was left over."""
        self._begun += 1
        return self._started + self._share * self._begun


_budget = pytest.StashKey[Budget]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the clock when it is known how many properties there are."""
    seconds = os.environ.get(SECONDS)
    if seconds:
        properties = sum(
            item.get_closest_marker("hypothesis") is not None for item in session.items
        )
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        session.stash[_budget] = Budget(float(seconds), properties, workers)


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
        try:
            inner(*args, **kwargs)
        except UnsatisfiedAssumption:
            raise  # rejected: neither an example nor a failure
        except Exception:
            count.failed = True
            raise
        count.examples += 1
        # After the example, not instead of it: Hypothesis takes a function that draws
        # less than before for an unreliable one.
        if count.examples >= ENOUGH and not count.failed and time.monotonic() > deadline:
            raise EnoughExamples(f"{count.examples} examples")

    return run


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a property under the budget."""
    budget = pyfuncitem.session.stash.get(_budget, None)
    handle = getattr(pyfuncitem.obj, "hypothesis", None)
    if budget is None or handle is None:
        return (yield)
    inner, count = handle.inner_test, Count()
    handle.inner_test = counted(inner, count, budget.next_deadline())
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
