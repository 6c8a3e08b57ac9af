"""Scoring nodes by how far down its prioritized lists a pod had to go.

What may live here: the score of a node from the allocations found for it. A request with
``firstAvailable`` says what its author likes best; a node that has it is the better node.
Source: KEP-4816, "Scoring".
"""

from collections.abc import Iterable, Mapping

from dra_core.api.objects import AllocationResult, DeviceRequest, ResourceClaim

MAX_ALTERNATIVES = 8
"""FirstAvailableDeviceRequestMaxSize: the first of the alternatives is worth as much."""

MAX_SCORE = 100
"""MaxNodeScore of the scheduler framework."""


def raw_score(allocated: Iterable[tuple[ResourceClaim, AllocationResult]]) -> int:
    """The score of a node for the claims that would be allocated on it in this attempt.

    For each request with ``firstAvailable``: 8 for the first alternative, 7 for the second,
    and so on; summed. An alternative that needs no device at all leaves no trace in the
    result and counts nothing.
    """
    return sum(
        _request_score(request, frozenset(result.request for result in allocation.results))
        for claim, allocation in allocated
        for request in claim.devices.requests
    )


def _request_score(request: DeviceRequest, served: frozenset[str]) -> int:
    for place, alternative in enumerate(request.first_available):
        if f"{request.name}/{alternative.name}" in served:
            return MAX_ALTERNATIVES - place
    return 0


def normalized(scores: Mapping[str, int]) -> dict[str, int]:
    """Scores by node on a scale from 0 to 100, in proportion to the largest, rounded down."""
    largest = max(scores.values(), default=0)
    if largest <= 0:
        return dict.fromkeys(scores, 0)
    return {node: score * MAX_SCORE // largest for node, score in scores.items()}
