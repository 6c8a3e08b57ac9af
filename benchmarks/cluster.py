"""The large problem: loading it, and asking every one of its nodes.

As a script (``python -m benchmarks.cluster FILE``) it loads a problem from a file of
JSON and prints the peak memory of its process, in bytes.
"""

import gc
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from benchmarks import adapter, measure
from benchmarks.problems import Problem
from dra_core.api.core import Node

REPEATS = 5


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection meanwhile: it doubles the time of building large objects."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@attrs.frozen
class Loading:
    """Nanoseconds of ``json.loads``, and of all from text to index, one after the other."""

    json_ns: int
    load_ns: int


def _once(call: Callable[[], object]) -> int:
    with collector_off():
        start = measure.clock_ns()
        kept = call()
        ns = measure.clock_ns() - start
        del kept
    return ns


def load_text(text: str) -> adapter.Loaded:
    """From JSON text to an indexed inventory."""
    problem: Problem = json.loads(text)
    return adapter.load(problem)


def loadings(text: str) -> list[Loading]:
    """Measure loading several times, each beside ``json.loads`` of the same text."""
    return [
        Loading(_once(lambda: json.loads(text)), _once(lambda: load_text(text)))
        for _ in range(REPEATS)
    ]


def peak_of_loading(text: str) -> int:
    """The peak memory, in bytes, of a new process that loads the text from a file."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
        file.write(text)
        file.flush()
        command = [sys.executable, "-m", "benchmarks.cluster", file.name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)


@attrs.frozen
class AllNodes:
    """All nodes once: nanoseconds, the calibration beside it, and how many nodes fit."""

    ns: int
    calibration_ns: int
    fitting: int


def node_names(problem: Problem) -> list[str]:
    """The nodes that slices name, in order of appearance."""
    names = (item["spec"].get("nodeName", "") for item in problem["slices"])
    return [name for name in dict.fromkeys(names) if name]


def all_nodes(problem: Problem) -> tuple[list[AllNodes], list[AllNodes]]:
    """Every node asked for the first time, and again; several times each."""
    first, warm = [], []
    names = node_names(problem)
    for _ in range(REPEATS):
        loaded = adapter.load(problem)
        nodes = [adapter.node_called(name) for name in names]
        first.append(_ask(loaded, nodes))
        warm.append(_ask(loaded, nodes))
        del loaded
    return first, warm


def _ask(loaded: adapter.Loaded, nodes: list[Node]) -> AllNodes:
    gc.collect()
    before = min(measure.calibrate() for _ in range(3))
    start = measure.clock_ns()
    plan = adapter.plan(loaded)
    fitting = sum(adapter.solve(loaded, node, plan).outcome == "allocated" for node in nodes)
    ns = measure.clock_ns() - start
    return AllNodes(ns, min(before, measure.calibrate()), fitting)


def peak_bytes() -> int:
    """The largest resident set that this process had (Linux counts it in KiB)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main(path: Path) -> None:
    """Load a problem and print the peak of this process."""
    gc.disable()  # as the command line does while loading
    loaded = load_text(path.read_text(encoding="utf-8"))
    print(peak_bytes())
    del loaded


if __name__ == "__main__":
    main(Path(sys.argv[1]))
