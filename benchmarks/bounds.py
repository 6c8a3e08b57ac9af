"""What the benchmark promises, as data, and whether a measurement keeps it.

A bound limits the ratio to the reference (see ``README.md`` here), the steps of the
search, the time of one call, or several of these. Times depend on the machine, ratios
much less, steps not at all; the tests pin steps only.
"""

import attrs


@attrs.frozen
class Bound:
    """Upper limits, each ``None`` where there is none; ``ns`` is the time of one call."""

    ratio: float | None = None
    steps: int | None = None
    ns: float | None = None

    def __str__(self) -> str:
        parts = []
        if self.ratio is not None:
            parts.append(f"ratio {self.ratio:g}")
        if self.steps is not None:
            parts.append(f"{self.steps:,} steps")
        if self.ns is not None:
            parts.append(f"{self.ns / 1e6:g} ms")
        return ", ".join(parts) or "-"

    def broken(self, *, ratio: float | None, steps: int, ns: float) -> list[str]:
        """Which limits a measurement is over: "ratio", "steps", "time".

        A ratio that is not known, because the reference never ended, breaks no limit.
        """
        over = []
        if self.ratio is not None and ratio is not None and ratio > self.ratio:
            over.append("ratio")
        if self.steps is not None and steps > self.steps:
            over.append("steps")
        if self.ns is not None and ns > self.ns:
            over.append("time")
        return over


_EASY = Bound(ratio=0.5)
_MANY_DEVICES = Bound(ratio=0.2)
_DECIDED_AT_ONCE = Bound(steps=200, ns=1e6)
_HARD = Bound(steps=1_000, ns=0.5e9)

BOUNDS: dict[str, Bound] = {
    "small": _EASY,
    "wide": _MANY_DEVICES,
    "network": Bound(ratio=0.1),
    "partitions": _MANY_DEVICES,
    "aligned": _EASY,
    "backtrack": Bound(ratio=0.02),
    "hopeless-16": _DECIDED_AT_ONCE,
    "hopeless-20": _DECIDED_AT_ONCE,
    "hopeless-24": _DECIDED_AT_ONCE,
    "hopeless-32": _DECIDED_AT_ONCE,
    "oneshort-16": _DECIDED_AT_ONCE,
    "oneshort-24": _DECIDED_AT_ONCE,
    "oneshort-32": _DECIDED_AT_ONCE,
    "mismatch-12": _DECIDED_AT_ONCE,
    "mismatch-16": _DECIDED_AT_ONCE,
    "mismatch-24": _DECIDED_AT_ONCE,
    "overfull-2": _DECIDED_AT_ONCE,
    "overfull-4": _DECIDED_AT_ONCE,
    "overfull-8": _DECIDED_AT_ONCE,
    "fits-partitions-2": Bound(),
    "fits-partitions-3": Bound(ratio=0.05),
    "fits-partitions-4": Bound(ratio=0.05),
    "fits-partitions-8": _HARD,
    "mixed-partitions-2": _DECIDED_AT_ONCE,
    "mixed-partitions-3": _DECIDED_AT_ONCE,
    "mixed-partitions-4": _DECIDED_AT_ONCE,
    "mixed-partitions-8": _HARD,
    "shares": _EASY,
    "cluster-5000": Bound(),
}
"""The bound of every problem, in the order of the file."""

LOAD_TIMES_JSON = 4.0
"""cluster-5000, JSON text to index: at most this many times ``json.loads`` alone."""

LOAD_PEAK_MB = 200.0
"""The same in a new process: its peak resident set."""

ALL_NODES_WARM = 0.35
"""All nodes of cluster-5000, ratio to as many calls of the reference, seen before."""

ALL_NODES_FIRST = 1.0
"""The same for the first time, with each node's view of the inventory to be made."""
