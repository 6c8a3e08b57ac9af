"""The work of the search on the benchmark's problems, counted and pinned.

A change of a count is a change of the search: look whether it is meant, then write the
new one here. Counts do not depend on the machine; seconds are reported by
``make bench`` and asserted nowhere.
"""

import json

import pytest

from benchmarks import adapter, bounds, problems

STEPS: dict[str, int] = {
    "small": 1,
    "wide": 29,
    "network": 16,
    "partitions": 4,
    "aligned": 28,
    "backtrack": 27,
    "hopeless-16": 0,
    "hopeless-20": 0,
    "hopeless-24": 0,
    "hopeless-32": 0,
    "oneshort-16": 16,
    "oneshort-24": 24,
    "oneshort-32": 32,
    "mismatch-12": 19,
    "mismatch-16": 26,
    "mismatch-24": 40,
    "overfull-2": 0,
    "overfull-4": 0,
    "overfull-8": 0,
    "fits-partitions-2": 107,
    "fits-partitions-3": 178,
    "fits-partitions-4": 264,
    "fits-partitions-8": 882,
    "mixed-partitions-2": 22,
    "mixed-partitions-3": 33,
    "mixed-partitions-4": 43,
    "mixed-partitions-8": 85,
    "shares": 72,
    "cluster-5000": 2,
}
"""Steps of the first call on each problem."""

LINES = dict(zip(bounds.BOUNDS, problems.read_lines(), strict=True))
REFERENCES = problems.read_references()


def test_every_problem_is_counted() -> None:
    """No problem of the benchmark is left out."""
    assert list(STEPS) == list(LINES)


@pytest.mark.parametrize("name", STEPS)
def test_steps(name: str) -> None:
    """The outcome is the reference's, the count is the pinned one and within its bound."""
    loaded = adapter.load(json.loads(LINES[name]))
    answer = adapter.solve(loaded)
    assert answer == adapter.Answer(REFERENCES[name].outcome, STEPS[name])
    limit = bounds.BOUNDS[name].steps
    assert limit is None or answer.steps <= limit


@pytest.mark.parametrize("name", [name for name in STEPS if name != "cluster-5000"])
def test_warm_calls_work_as_much(name: str) -> None:
    """What is remembered between calls is no result: a warm call searches again."""
    loaded = adapter.load(json.loads(LINES[name]))
    assert adapter.solve(loaded) == adapter.solve(loaded)
