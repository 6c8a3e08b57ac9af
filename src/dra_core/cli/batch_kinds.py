"""What a line of each kind asks, and its answer.

What may live here: the forms of questions and answers, which are those of the recorded
answers (tests/conformance). Absent members of an answer are null.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dra_core.allocator.allocation import Allocator
from dra_core.allocator.results import Allocated, Outcome, Undecided, Unsatisfiable
from dra_core.api import wire
from dra_core.api.names import DeviceId, SharedDeviceId
from dra_core.cel.selector import SelectorCache
from dra_core.claims.recorded import answer_claims_line
from dra_core.errors import (
    AllocationError,
    MalformedObjectError,
    SelectorCompileError,
    SelectorEvaluationError,
)
from dra_core.explanation import explain, lines
from dra_core.features import Features
from dra_core.inventory.allocated import AllocatedState
from dra_core.inventory.index import Inventory
from dra_core.values.quantity import Quantity

Json = dict[str, Any]

SHARE_ID: Final = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
"""Stands for the ID of every share, as in the recorded answers."""

RECORDED_REASONS: Final = frozenset(
    {
        "class-not-found", "no-class-name", "feature-off", "too-many-devices",
        "selector-compile", "selector-runtime", "unknown-mode", "unknown-constraint",
        "unknown-selector", "all-breaks-constraint", "incomplete-pool", "invalid-pool",
    }
)  # fmt: skip
"""Reasons that answers have; others have none, their message tells them apart."""


# --- quantity ------------------------------------------------------------------------


def quantity(asked: Json) -> Json:
    """``s``: canonical form, value, sign; ``a`` and ``b``: order, sum, difference."""
    if "s" in asked:
        one = Quantity.parse(_text(asked, "s"))
        return {"canonical": str(one), "value": one.value(), "sign": one.sign()}
    a, b = Quantity.parse(_text(asked, "a")), Quantity.parse(_text(asked, "b"))
    return {"cmp": a.compare(b), "sum": str(a + b), "difference": str(a - b)}


# --- claims --------------------------------------------------------------------------


def claims(asked: Json) -> Json:
    """``op`` and its objects: names of pod claims, ownership, reservation, tolerations."""
    return dict(answer_claims_line(asked))


# --- cel -----------------------------------------------------------------------------


def cel() -> Callable[[Json], Json]:
    """``expr`` on a device: a compile error, an evaluation error, or whether it matches."""
    selectors = SelectorCache()

    def answer(asked: Json) -> Json:
        device: Json = {"name": "device"}
        for member in ("attributes", "capacity", "allowMultipleAllocations"):
            device[member] = asked.get(member)
        spec = {"driver": asked.get("driver"), "devices": [device]}
        found = wire.decode_resource_slice({"metadata": {"name": ""}, "spec": spec})
        try:
            selector = selectors.compile(_text(asked, "expr"))
            matches, cost = selector.evaluate(found.driver, found.devices[0])
        except SelectorCompileError as error:
            return {"compile_error": str(error)}
        except SelectorEvaluationError as error:
            return {"evaluation_error": str(error)}
        return {"matches": matches, "cost": cost}

    return answer


# --- allocation ----------------------------------------------------------------------


def allocation(repeat: int) -> Callable[[Json], Json]:
    """A problem: its outcome, and the time of warm calls (``repeat`` 0: not measured)."""

    selectors = SelectorCache()

    def answer(asked: Json) -> Json:
        call = _allocation_call(asked, selectors)
        told = _outcome(call)
        times = []
        for _ in range(repeat):
            start = time.perf_counter_ns()
            _silently(call)
            times.append(time.perf_counter_ns() - start)
        return {**told, "ns": int(statistics.median(times)) if times else None}

    return answer


def _silently(call: Callable[[], Outcome]) -> None:
    with contextlib.suppress(AllocationError):  # the same one that was told already
        call()


def _allocation_call(asked: Json, selectors: SelectorCache) -> Callable[[], Outcome]:
    """The call to measure: inventory, classes and what is in use are built before."""
    decoder = wire.Decoder()
    allocator = Allocator(
        Inventory([decoder.resource_slice(one) for one in _list(asked, "slices")]),
        [decoder.device_class(one) for one in _list(asked, "classes")],
        share_ids=lambda: SHARE_ID,
        features=_features(asked.get("features") or {}),
        selectors=selectors,
    )
    wanted = [decoder.resource_claim(one) for one in _list(asked, "claims")]
    node = decoder.node(asked.get("node"))
    in_use = _in_use(asked.get("allocated") or {})
    return lambda: allocator.allocate(wanted, node, in_use)


def _outcome(call: Callable[[], Outcome]) -> Json:
    try:
        outcome = call()
    except AllocationError as error:
        return _told("error", error.reason, message=str(error))
    if isinstance(outcome, Allocated):
        results = [wire.encode_allocation_result(result) for result in outcome.results]
        return _told("allocated", results=results, steps=outcome.steps)
    kind = "unsatisfiable" if isinstance(outcome, Unsatisfiable) else "undecided"
    reason = "" if isinstance(outcome, Undecided) else outcome.reason
    message = "; ".join(lines(explain(outcome), indent=""))
    return _told(kind, reason, message=message, steps=outcome.steps)


def _told(
    outcome: str,
    reason: str = "",
    *,
    results: list[Json] | None = None,
    message: str | None = None,
    steps: int | None = None,
) -> Json:
    return {
        "outcome": outcome,
        "results": results,
        "reason": reason if reason in RECORDED_REASONS else None,
        "message": message,
        "steps": steps,
    }


def _features(gates: Any) -> Features:
    if not isinstance(gates, dict) or not all(isinstance(on, bool) for on in gates.values()):
        raise _malformed("features", "is not a map of booleans")
    return Features.from_gates(gates)


def _in_use(allocated: Any) -> AllocatedState:
    if not isinstance(allocated, dict):
        raise _malformed("allocated", "is not an object")
    return AllocatedState.from_parts(
        [_device(entry) for entry in _list(allocated, "devices")],
        [
            SharedDeviceId(*_device(entry), _text(entry, "shareID"))
            for entry in _list(allocated, "sharedDevices")
        ],
        {
            _device(entry): _capacity(entry.get("capacity") or {})
            for entry in _list(allocated, "consumedCapacity")
        },
    )


def _device(entry: Any) -> DeviceId:
    if not isinstance(entry, dict):
        raise _malformed("allocated", "has an entry that is not an object")
    return DeviceId(*(_text(entry, member) for member in ("driver", "pool", "device")))


def _capacity(amounts: Any) -> Mapping[str, Quantity]:
    if not isinstance(amounts, dict):
        raise _malformed("capacity", "is not an object")
    return {name: Quantity.from_json(amount) for name, amount in amounts.items()}


# --- members of a line ---------------------------------------------------------------


def _text(asked: Json, member: str) -> str:
    value = asked.get(member)
    if not isinstance(value, str):
        raise _malformed(member, "is not a string")
    return value


def _list(asked: Json, member: str) -> Iterable[Any]:
    value = asked.get(member)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _malformed(member, "is not a list")
    return value


def _malformed(member: str, problem: str) -> MalformedObjectError:
    return MalformedObjectError("line", "", member, problem)
