"""Measure the allocator against the recorded reference, and print what came out.

``python -m benchmarks.run [--rounds N] [PROBLEM ...]``. Returns 1 when an outcome is
wrong; a figure over its bound is said, and no failure: machines differ.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence

import attrs

from benchmarks import adapter, bounds, cluster, measure, named_resources, problems

LARGE = "cluster-5000"

_ROW = "{:<19} {:<14} {:>7} {:>12} {:>12} {:>8}  {:<22} {}"


@attrs.frozen
class Row:
    """One problem: what was measured, what was expected."""

    name: str
    answer: adapter.Answer
    expected: str
    ns: float
    calibration_ns: float
    ratio: float | None
    bound: bounds.Bound

    @property
    def verdict(self) -> str:
        """ "OK", "over: …", or "WRONG" with the outcome that is right."""
        if self.answer.outcome != self.expected:
            return f"WRONG: expected {self.expected}"
        over = self.bound.broken(ratio=self.ratio, steps=self.answer.steps, ns=self.ns)
        return f"over: {', '.join(over)}" if over else "OK"

    def __str__(self) -> str:
        return _ROW.format(
            self.name,
            self.answer.outcome,
            f"{self.answer.steps:,}",
            f"{self.ns:,.0f}",
            f"{self.calibration_ns:,.0f}",
            "-" if self.ratio is None else f"{self.ratio:.4f}",
            str(self.bound),
            self.verdict,
        )


def row(
    name: str,
    answer: adapter.Answer,
    samples: Sequence[measure.Sample],
    reference: problems.Reference,
) -> Row:
    """A row of the table from a problem's samples."""
    theirs = reference.calibrated
    ratio = None if theirs is None else measure.median_calibrated(samples) / theirs
    calibration = statistics.median(item.calibration_ns for item in samples)
    return Row(
        name,
        answer,
        reference.outcome,
        measure.median_ns(samples),
        calibration,
        ratio,
        bounds.BOUNDS[name],
    )


def _call(loaded: adapter.Loaded) -> Callable[[], object]:
    return lambda: adapter.solve(loaded)


def single_calls(wanted: Sequence[str], rounds: int) -> list[Row]:
    """Measure the warm calls of all wanted problems and print the table."""
    references = problems.read_references()
    loaded = {
        problem["id"]: adapter.load(problem)
        for problem in problems.read_problems()
        if problem["id"] in wanted
    }
    answers = {name: adapter.solve(item) for name, item in loaded.items()}
    samples = measure.interleaved({n: _call(item) for n, item in loaded.items()}, rounds)
    print(_ROW.format(
        "problem", "outcome", "steps", "ns", "calibration", "ratio", "bound", "verdict"
    ))  # fmt: skip
    rows = [row(name, answers[name], samples[name], references[name]) for name in loaded]
    for item in rows:
        print(item)
    return rows


@attrs.frozen
class Figure:
    """A measured number with its upper limit."""

    what: str
    value: float
    bound: float
    unit: str = ""

    @property
    def over(self) -> bool:
        """Whether it is beyond the limit."""
        return self.value > self.bound

    def __str__(self) -> str:
        verdict = "over" if self.over else "OK"
        value = f"{self.value:.2f}{self.unit}"
        return f"{self.what:<58} {value:>10}  bound {self.bound:g}{self.unit}  {verdict}"


def large_problem() -> list[Figure]:
    """Load the large problem and ask all its nodes; print the figures."""
    text = next(line for line in problems.read_lines() if json.loads(line)["id"] == LARGE)
    print(f"\n{LARGE}: {len(text) / 1e6:.1f} MB of JSON")
    figures = [*_loading(text), *_all_nodes(json.loads(text))]
    for figure in figures:
        print(figure)
    return figures


def _loading(text: str) -> Iterator[Figure]:
    runs = cluster.loadings(text)
    json_ms = statistics.median(run.json_ns for run in runs) / 1e6
    load_ms = statistics.median(run.load_ns for run in runs) / 1e6
    times = statistics.median(run.load_ns / run.json_ns for run in runs)
    label = f"text to index {load_ms:.0f} ms, json.loads {json_ms:.0f} ms: times"
    yield Figure(label, times, bounds.LOAD_TIMES_JSON)
    peak_mb = cluster.peak_of_loading(text) / 1e6
    yield Figure("the same in a new process: peak", peak_mb, bounds.LOAD_PEAK_MB, " MB")


def _all_nodes(problem: problems.Problem) -> Iterator[Figure]:
    theirs = problems.read_references()[LARGE].calibrated
    if theirs is None:
        raise ValueError(f"reference.json has no figure for {LARGE}")
    count = len(cluster.node_names(problem))
    first, warm = cluster.all_nodes(problem)
    for what, runs, bound in (
        ("for the first time", first, bounds.ALL_NODES_FIRST),
        ("warm", warm, bounds.ALL_NODES_WARM),
    ):
        ratio = statistics.median(run.ns / run.calibration_ns for run in runs) / theirs / count
        ms = statistics.median(run.ns for run in runs) / 1e6
        label = f"{runs[0].fitting:,} of {count:,} nodes fit, {what} {ms:.0f} ms: ratio"
        yield Figure(label, ratio, bound)


def older_version() -> list[Figure]:
    """Filter pods with named resources (v1alpha2) on all nodes; print the figures."""
    figures = [
        Figure(found.label, found.seconds, named_resources.BOUND_S, " s")
        for found in named_resources.filterings()
    ]
    print()
    for figure in figures:
        print(figure)
    return figures


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 when an outcome is wrong."""
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__)
    parser.add_argument("problems", nargs="*", help="which ones (default: all)")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each problem")
    options = parser.parse_args(arguments)
    wanted = options.problems or list(bounds.BOUNDS)
    if unknown := sorted(set(wanted) - set(bounds.BOUNDS)):
        parser.error(f"no such problem: {', '.join(unknown)}")
    rows = single_calls(wanted, options.rounds)
    figures = large_problem() if LARGE in wanted else []
    if not options.problems:
        figures += older_version()
    wrong = [item.name for item in rows if item.verdict.startswith("WRONG")]
    over = sum(item.verdict.startswith("over") for item in rows)
    over += sum(figure.over for figure in figures)
    print(f"\n{len(rows)} problems, {len(wrong)} wrong; {over} figures over their bound")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
