"""The benchmark's own arithmetic: what counts as over, and that nothing is left out."""

import math

import pytest

from benchmarks import adapter, bounds, cluster, measure, named_resources, problems, run

ALLOCATED = adapter.Answer("allocated", 10)


def test_every_problem_has_a_bound_and_a_reference() -> None:
    """Bounds, references and problems name the same problems."""
    names = [problem["id"] for problem in problems.read_problems()]
    assert len(names) == len(set(names)) == 29
    assert list(bounds.BOUNDS) == names
    assert set(problems.read_references()) == set(names)


@pytest.mark.parametrize(
    ("bound", "over"),
    [
        (bounds.Bound(), []),
        (bounds.Bound(ratio=0.5, steps=10, ns=1e6), []),
        (bounds.Bound(ratio=0.4), ["ratio"]),
        (bounds.Bound(steps=9), ["steps"]),
        (bounds.Bound(ns=1e6 - 1), ["time"]),
        (bounds.Bound(ratio=0.4, steps=9, ns=1), ["ratio", "steps", "time"]),
    ],
)
def test_bounds_are_upper_limits(bound: bounds.Bound, over: list[str]) -> None:
    """A measurement at the limit keeps it, one beyond breaks it."""
    assert bound.broken(ratio=0.5, steps=10, ns=1e6) == over


def test_unknown_ratio_breaks_nothing() -> None:
    """Where the reference never ended there is nothing to compare with."""
    assert bounds.Bound(ratio=0.1).broken(ratio=None, steps=0, ns=0) == []


def test_ratio_is_in_units_of_calibration() -> None:
    """The ratio is (our ns / our calibration) / (reference ns / its calibration)."""
    reference = problems.Reference("allocated", 4, reference_ns=300, calibration_ns=100)
    samples = [measure.Sample(ns, calibration_ns=200) for ns in (600.0, 300.0, 60.0)]
    row = run.row("small", ALLOCATED, samples, reference)
    assert row.ratio is not None
    assert math.isclose(row.ratio, 0.5)
    assert row.verdict == "OK"


@pytest.mark.parametrize(
    ("answer", "ns", "verdict"),
    [
        (ALLOCATED, 300.0, "OK"),
        (ALLOCATED, 301.0, "over: ratio"),
        (adapter.Answer("unsatisfiable", 10), 1.0, "WRONG: expected allocated"),
    ],
)
def test_verdicts(answer: adapter.Answer, ns: float, verdict: str) -> None:
    """A wrong outcome is said before any figure."""
    reference = problems.Reference("allocated", 4, reference_ns=300, calibration_ns=100)
    row = run.row("small", answer, [measure.Sample(ns, 200)], reference)
    assert row.verdict == verdict
    assert str(row).endswith(verdict)


def test_interleaved_measures_every_call_in_every_round() -> None:
    """Each call is warmed up once, then sampled in each round."""
    counts = {"a": 0, "b": 0}

    def count(name: str) -> None:
        counts[name] += 1

    samples = measure.interleaved({"a": lambda: count("a"), "b": lambda: count("b")}, rounds=2)
    assert {name: len(items) for name, items in samples.items()} == {"a": 2, "b": 2}
    assert min(counts.values()) >= 1 + 2 * measure.MIN_CALLS
    assert all(item.ns > 0 < item.calibration_ns for item in samples["a"])


def test_nodes_of_the_large_problem() -> None:
    """cluster-5000 is what its name says."""
    problem = next(item for item in problems.read_problems() if item["id"] == run.LARGE)
    assert len(cluster.node_names(problem)) == 5_000
    assert sum(len(item["spec"]["devices"]) for item in problem["slices"]) == 40_000


def test_pods_with_named_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pods fit where their figures say, whatever the size of the cluster."""
    monkeypatch.setattr(named_resources, "NODES", 14)
    fitting = [found.fitting for found in named_resources.filterings()]
    assert fitting == [14, 12, 0]
