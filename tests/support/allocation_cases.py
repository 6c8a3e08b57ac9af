"""Recorded allocation problems as values, and outcomes in the form of recorded answers.

What may live here: the way between one line of ``allocation.jsonl.gz`` (or of the
table) and ``dra_core.testing.Problem``, shared by the tests of the allocator and of
the twin.
"""

from collections.abc import Callable
from typing import Any

from dra_core.allocator.results import Allocated, Outcome, Unsatisfiable
from dra_core.api.names import DeviceId, SharedDeviceId
from dra_core.api.wire import (
    decode_device_class,
    decode_node,
    decode_resource_claim,
    decode_resource_slice,
    encode_allocation_result,
)
from dra_core.errors import AllocationError
from dra_core.features import Features
from dra_core.inventory.allocated import AllocatedState
from dra_core.testing.problem import Problem
from dra_core.values.quantity import Quantity
from support.conformance import Case

Json = dict[str, Any]


def problem_of(case: Case) -> Problem:
    """The problem of one line; objects are told apart by where they stand."""
    allocated = case.get("allocated", {})
    return Problem(
        claims=tuple(decode_resource_claim(claim) for claim in case.get("claims", ())),
        slices=tuple(decode_resource_slice(one) for one in case.get("slices", ())),
        classes=tuple(decode_device_class(one) for one in case.get("classes", ())),
        node=decode_node(case["node"]),
        allocated=AllocatedState.from_parts(
            [_device(entry) for entry in allocated.get("devices", ())],
            [SharedDeviceId(*_device(e), e["shareID"]) for e in allocated.get("sharedDevices", ())],
            {
                _device(entry): {k: Quantity.parse(v) for k, v in entry["capacity"].items()}
                for entry in allocated.get("consumedCapacity", ())
            },
        ),
        features=Features.from_gates(case.get("features", {})),
    )


def _device(entry: Json) -> DeviceId:
    return DeviceId(entry["driver"], entry["pool"], entry["device"])


def answer(call: Callable[[], Outcome]) -> Json:
    """What a call came to, in the form of the recorded answers."""
    try:
        outcome = call()
    except AllocationError as error:
        return {"outcome": "error", "reason": error.reason}
    if isinstance(outcome, Allocated):
        results = [encode_allocation_result(result) for result in outcome.results]
        return {"outcome": "allocated", "results": results}
    if isinstance(outcome, Unsatisfiable):
        return {"outcome": "unsatisfiable"} | ({"reason": outcome.reason} if outcome.reason else {})
    return {"outcome": "undecided"}


def recorded_share_id(case: Case) -> str:
    """The made-up UUID that stands for every share ID of an answer; "" without shares."""
    return next(
        (
            device["shareID"]
            for result in case["expect"].get("results", ())
            for device in result.get("devices", {}).get("results", ())
            if "shareID" in device
        ),
        "",
    )
