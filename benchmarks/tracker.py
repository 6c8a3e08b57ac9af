"""What it costs to know what is allocated: events and snapshots of the claim tracker.

``python -m benchmarks.tracker`` prints, for 10,000 claims with 40,000 devices in 5,000
pools, and for the same number of devices in one pool and as shares, the median and the
99th percentile of one event, of one snapshot after it, and of a snapshot after the
in-flight life of a claim; and the time of a snapshot from nothing. Each has its bound.
The garbage collector is on.
"""

import statistics
import sys
from collections.abc import Callable, Iterator

import attrs

from benchmarks.measure import clock_ns
from dra_core.api.core import ObjectMeta
from dra_core.api.objects import (
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dra_core.errors import DraError
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.scheduling.in_flight import ClaimTracker
from dra_core.values.quantity import Quantity

CLAIMS = 10_000
PER_CLAIM = 4
ROUNDS = 2_000

EVENT_US = 50.0
SNAPSHOT_US = 100.0
FROM_NOTHING_MS = 300.0

Place = Callable[[int], tuple[str, str]]
"""From the number of an allocated device to its pool and name."""


def own_pools(number: int) -> tuple[str, str]:
    """Eight devices a pool: one pool per node."""
    return f"pool-{number // 8}", f"device-{number % 8}"


def one_pool(number: int) -> tuple[str, str]:
    """All devices in one pool, as of a fabric."""
    return "fabric", f"device-{number}"


def shared(number: int) -> tuple[str, str]:
    """Ten shares of each device."""
    return f"pool-{number // 80}", f"device-{number // 10 % 8}"


def claims(place: Place, shares: bool) -> Iterator[ResourceClaim]:
    """Allocated claims."""
    consumed = {"memory": Quantity.parse("2Gi")} if shares else None
    for number in range(CLAIMS):
        results = []
        for part in range(number * PER_CLAIM, (number + 1) * PER_CLAIM):
            pool, device = place(part)
            result = DeviceRequestAllocationResult(
                request="req",
                driver="driver.example.com",
                pool=pool,
                device=device,
                share_id=f"share-{part}" if shares else "",
                consumed_capacity=consumed,
            )
            results.append(result)
        metadata = ObjectMeta(f"claim-{number}", "default", f"uid-{number}", "1")
        yield ResourceClaim(metadata, allocation=AllocationResult(tuple(results)))


def took(call: Callable[[], object]) -> float:
    """Microseconds of one call."""
    start = clock_ns()
    call()
    return (clock_ns() - start) / 1_000


def fail(error: DraError) -> None:
    """Nothing here may go wrong."""
    raise error


def report(what: str, times: list[float], bound: float) -> bool:
    """Print one line; whether the median is within the bound."""
    median = statistics.median(times)
    last = statistics.quantiles(times, n=100)[-1]
    good = median <= bound
    verdict = "ok" if good else "OVER"
    print(f"  {what:34} {median:8.1f} µs  p99 {last:8.1f} µs  bound {bound:6.0f} µs  {verdict}")
    return good


def run(name: str, place: Place, shares: bool) -> bool:
    """Measure one layout; whether all bounds hold."""
    print(f"{name}: {CLAIMS} claims, {CLAIMS * PER_CLAIM} results")
    everything = list(claims(place, shares))
    cache = AssumeCache(ResourceClaim, fail)
    for claim in everything:
        cache.observe(claim)
    trackers: list[ClaimTracker] = []

    def from_nothing() -> None:
        trackers.append(ClaimTracker(cache))
        trackers[0].allocated()

    first = took(from_nothing) / 1_000
    tracker = trackers[0]
    events, snapshots, lives, after = [], [], [], []
    for number in range(ROUNDS):
        claim = everything[number * (CLAIMS // ROUNDS)]
        metadata = attrs.evolve(claim.metadata, resource_version="2")
        freed = attrs.evolve(claim, metadata=metadata, allocation=None)
        picked = attrs.evolve(freed, allocation=claim.allocation)
        written = attrs.evolve(picked, metadata=attrs.evolve(metadata, resource_version="3"))
        events.append(took(lambda: cache.observe(freed)))  # noqa: B023 - called at once
        snapshots.append(took(tracker.allocated))

        def life() -> None:
            tracker.start([picked], "pod-uid")  # noqa: B023 - called at once
            tracker.succeeded(picked.metadata.uid, written)  # noqa: B023 - called at once

        lives.append(took(life))
        after.append(took(tracker.allocated))
    good = [
        report("event: a claim is deallocated", events, EVENT_US),
        report("snapshot after one event", snapshots, SNAPSHOT_US),
        report("start and succeed", lives, 2 * EVENT_US),
        report("snapshot after these", after, SNAPSHOT_US),
        first <= FROM_NOTHING_MS,
    ]
    print(f"  {'snapshot from nothing':34} {first:8.1f} ms  bound {FROM_NOTHING_MS:.0f} ms")
    tracker._check()
    return all(good)


def main() -> int:
    """Every layout. 0 if all bounds hold, else 1."""
    good = [
        run("eight devices a pool", own_pools, False),
        run("one pool", one_pool, False),
        run("ten shares a device", shared, True),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
