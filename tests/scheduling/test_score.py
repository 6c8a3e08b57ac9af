"""Scores of nodes from prioritized lists."""

from dra_core.api.objects import (
    AllocationResult,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ResourceClaim,
)
from dra_core.scheduling.score import normalized, raw_score
from support import allocation_builders as build


def got(*requests: str) -> AllocationResult:
    """An allocation of one device for each of the requests."""
    return AllocationResult(tuple(DeviceRequestAllocationResult(name) for name in requests))


def alternatives(number: int) -> tuple[DeviceSubRequest, ...]:
    """Alternatives a0, a1, …"""
    return tuple(build.sub(f"a{place}") for place in range(number))


LIST = build.claim(build.first("r", *alternatives(8)), build.exactly("x"), name="list")


def test_the_first_alternative_is_worth_eight() -> None:
    """8 minus the index of the chosen subrequest."""
    assert [raw_score([(LIST, got(f"r/a{place}", "x"))]) for place in range(8)] == [
        8, 7, 6, 5, 4, 3, 2, 1,
    ]  # fmt: skip


def test_scores_are_summed_over_claims_and_requests() -> None:
    """For every claim allocated in this attempt and every request with firstAvailable."""
    two = build.claim(build.first("r", *alternatives(2)), build.first("s", *alternatives(3)))
    pairs: list[tuple[ResourceClaim, AllocationResult]] = [
        (LIST, got("r/a1", "r/a1", "x")),
        (two, got("r/a0", "s/a2")),
    ]
    assert raw_score(pairs) == 7 + 8 + 6
    assert raw_score([(build.claim(build.exactly("x")), got("x"))]) == 0
    assert raw_score([]) == 0


def test_an_alternative_without_devices_leaves_no_trace() -> None:
    """What the result does not tell counts nothing."""
    assert raw_score([(LIST, got("x"))]) == 0


def test_normalized_by_the_largest_with_integer_division() -> None:
    """Normalised to 0-100 by the largest (integer division)."""
    assert normalized({"b": 3, "a": 8, "c": 0}) == {"b": 37, "a": 100, "c": 0}
    assert list(normalized({"b": 3, "a": 8})) == ["b", "a"]
    assert normalized({"a": 0, "b": 0}) == {"a": 0, "b": 0}
    assert normalized({}) == {}
