"""The recorded problems and what the reference took for them."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

HERE = Path(__file__).resolve().parent

Problem = dict[str, Any]
"""A problem as decoded JSON: classes, slices, claims, node, features, allocated."""


@attrs.frozen
class Reference:
    """One entry of ``reference.json``. Figures are ``None`` where it gave up after 20 s."""

    outcome: str
    steps: int | None
    reference_ns: int | None
    calibration_ns: int | None

    @property
    def calibrated(self) -> float | None:
        """Its time in units of its own machine's calibration loop."""
        if self.reference_ns is None or self.calibration_ns is None:
            return None
        return self.reference_ns / self.calibration_ns


def read_lines() -> Iterator[str]:
    """The JSON text of every problem, in order."""
    with gzip.open(HERE / "problems.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield line


def read_problems() -> Iterator[Problem]:
    """Every problem, in order, one at a time: the last one has 40,000 devices."""
    for line in read_lines():
        yield json.loads(line)


def read_references() -> dict[str, Reference]:
    """What the reference took, by problem."""
    entries = json.loads((HERE / "reference.json").read_text(encoding="utf-8"))
    return {name: Reference(**entry) for name, entry in entries.items()}
