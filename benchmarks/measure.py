"""Measuring a call against a machine that changes its speed.

The clock of a shared machine drifts by half within minutes. So a fixed loop, the
calibration, is timed beside every measurement, problems are measured in rounds, each
problem a little in each round, and what is compared is the time in units of the
calibration of the same round.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

SAMPLE_NS = 10_000_000
"""A problem is called again and again for about so long in every round."""

MIN_CALLS = 3


def calibrate() -> int:
    """Nanoseconds of the calibration loop: dictionary writes and small arithmetic."""
    start = time.perf_counter_ns()
    x = 0
    d: dict[int, int] = {}
    for i in range(200_000):
        d[i & 1023] = x
        x = (x * 31 + i) & 0xFFFFFFFF
    return time.perf_counter_ns() - start


@attrs.frozen
class Sample:
    """One round of one problem: the median call and the round's calibration, in ns."""

    ns: float
    calibration_ns: int


def sample(call: Callable[[], object]) -> float:
    """The median time of a call in ns, over about ``SAMPLE_NS`` and ``MIN_CALLS`` calls."""
    times: list[int] = []
    spent = 0
    while spent < SAMPLE_NS or len(times) < MIN_CALLS:
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
        spent += times[-1]
    return statistics.median(times)


def interleaved(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[Sample]]:
    """Samples of every call: each is measured once in every round, after a warm-up."""
    for call in calls.values():
        call()
    samples: dict[str, list[Sample]] = {name: [] for name in calls}
    for _ in range(rounds):
        calibrations = [calibrate()]
        times = {}
        for name, call in calls.items():
            times[name] = sample(call)
            calibrations.append(calibrate())
        for name, ns in times.items():
            samples[name].append(Sample(ns, min(calibrations)))
    return samples


def median_ns(samples: Sequence[Sample]) -> float:
    """The median time over the rounds, in ns."""
    return statistics.median(item.ns for item in samples)


def median_calibrated(samples: Sequence[Sample]) -> float:
    """The median over the rounds of time in units of calibration."""
    return statistics.median(item.ns / item.calibration_ns for item in samples)
