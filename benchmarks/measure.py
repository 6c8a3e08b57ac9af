"""Measuring a call against a machine that changes its speed.

The clock of a shared machine drifts by half within minutes. So a fixed loop, the
calibration, is timed before and after every measurement, problems are measured in
rounds, each problem a little in each round, and what is compared is the time in units
of the calibration beside it.

Time is the processor's time of this process: nothing here waits, so on an idle machine
it is what the clock on the wall shows, and other processes do not count.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

SAMPLE_NS = 10_000_000
"""A problem is called again and again for about so long in every round."""

MIN_CALLS = 3


clock_ns = time.process_time_ns


def calibrate() -> int:
    """Nanoseconds of the calibration loop: dictionary writes and small arithmetic."""
    start = clock_ns()
    x = 0
    d: dict[int, int] = {}
    for i in range(200_000):
        d[i & 1023] = x
        x = (x * 31 + i) & 0xFFFFFFFF
    return clock_ns() - start


@attrs.frozen
class Sample:
    """One round of one problem: the median call and the calibration beside it, in ns."""

    ns: float
    calibration_ns: int


def sample(call: Callable[[], object]) -> float:
    """The median time of a call in ns, over about ``SAMPLE_NS`` and ``MIN_CALLS`` calls."""
    times: list[int] = []
    spent = 0
    while spent < SAMPLE_NS or len(times) < MIN_CALLS:
        start = clock_ns()
        call()
        times.append(clock_ns() - start)
        spent += times[-1]
    return statistics.median(times)


def interleaved(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[Sample]]:
    """Samples of every call: each is measured once in every round, after a warm-up."""
    for call in calls.values():
        call()
    samples: dict[str, list[Sample]] = {name: [] for name in calls}
    for _ in range(rounds):
        before = calibrate()
        for name, call in calls.items():
            ns = sample(call)
            after = calibrate()
            samples[name].append(Sample(ns, min(before, after)))
            before = after
    return samples


def median_ns(samples: Sequence[Sample]) -> float:
    """The median time over the rounds, in ns."""
    return statistics.median(item.ns for item in samples)


def median_calibrated(samples: Sequence[Sample]) -> float:
    """The median over the rounds of time in units of calibration."""
    return statistics.median(item.ns / item.calibration_ns for item in samples)
