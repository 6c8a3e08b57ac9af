"""The time budget of property tests cuts what is slow, says so, and hides no failure."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis.errors import UnsatisfiedAssumption

from support import time_budget

ROOT = Path(__file__).resolve().parent.parent

PROPERTIES = """
from hypothesis import assume, given, settings, strategies as st

seen = []

@settings(max_examples=1_000, deadline=None, database=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_holds(number):
    assume(number % 5)
    seen.append(number)

@settings(max_examples=1_000, deadline=None, database=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_fails_early(number):
    assert number < 1_000

@settings(max_examples=1_000, deadline=None, database=None, derandomize=True)
@given(st.data())
def test_draws(data):
    for _ in range(data.draw(st.integers(0, 3))):
        data.draw(st.integers(0, 10**6))

def test_plain():
    print("examples seen:", len(seen))
"""


def run(directory: Path, seconds: str) -> str:
    """What pytest prints for ``PROPERTIES`` under a budget."""
    (directory / "test_properties.py").write_text(PROPERTIES)
    plugins = ["-p", "support.time_budget", "-p", "no:cacheprovider", "-p", "no:xdist"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-rP", "--rootdir=.", "."],
        capture_output=True,
        text=True,
        env=env | {time_budget.SECONDS: seconds, "PYTHONPATH": str(ROOT / "tests")},
        cwd=directory,
        check=False,
    )
    return done.stdout


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is printed when time is up from the beginning."""
    return run(tmp_path_factory.mktemp("late"), "0")


def test_cut_short_and_said(late: str) -> None:
    """When time is up a property stops after enough examples, passes, and is named."""
    assert f"examples seen: {time_budget.ENOUGH}\n" in late
    assert f"{time_budget.ENOUGH} examples: test_properties.py::test_holds" in late
    assert f"{time_budget.ENOUGH} examples: test_properties.py::test_draws" in late
    assert "1 failed, 3 passed" in late


def test_failure_is_shown_in_its_smallest_form(late: str) -> None:
    """A property that fails is reported as it is without a budget."""
    assert "number = 1000\n" in late


def test_failing_property_is_never_cut() -> None:
    """After a failure the search for the smallest example goes on however late it is."""
    count = time_budget.Count()

    def inner(number: int) -> None:
        if number == 1:
            raise UnsatisfiedAssumption
        assert number

    call = time_budget.counted(inner, count, deadline=0.0)
    with pytest.raises(UnsatisfiedAssumption):
        call(1)
    assert (count.examples, count.failed) == (0, False)
    with pytest.raises(AssertionError):
        call(0)
    for _ in range(2 * time_budget.ENOUGH):
        call(2)
    count.failed = False
    with pytest.raises(time_budget.EnoughExamples):
        call(2)


def test_shares_add_up_and_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each property has its share of the time, and what those before it left over."""
    monkeypatch.setattr(time, "monotonic", lambda: 1_000.0)
    budget = time_budget.Budget(60.0, properties=12, workers=2)
    assert [budget.next_deadline() for _ in range(6)] == [1010, 1020, 1030, 1040, 1050, 1060]


def test_nothing_is_cut_while_there_is_time(tmp_path: Path) -> None:
    """With time left, every property gets all its examples."""
    printed = run(tmp_path, "3600")
    assert "examples seen: 1000\n" in printed
    assert "cut short" not in printed
