"""The reference's recorded answers about selectors.

Outcomes must agree on every line. Costs are a guide; how many agree is pinned, so that
a change shows.
"""

from typing import Any

import pytest

from dra_core.cel.selector import SelectorCache
from dra_core.errors import SelectorCompileError, SelectorEvaluationError
from support.conformance import conformance_params, load_conformance
from support.devices import device_of_case

CACHE = SelectorCache(max_entries=2_000)


def outcome(case: dict[str, Any]) -> dict[str, bool]:
    """What comes of one line, in the form of the recorded answer."""
    try:
        selector = CACHE.compile(case["expr"])
    except SelectorCompileError:
        return {"compile_error": True}
    try:
        return {"matches": selector.matches(case["driver"], device_of_case(case))}
    except SelectorEvaluationError:
        return {"evaluation_error": True}


def expected(case: dict[str, Any]) -> dict[str, bool]:
    """The recorded outcome without its costs."""
    return {k: v for k, v in case["expect"].items() if k not in ("cost", "max_cost")}


SUITES = ("cel", "real-cel", "table-cel")

ORDER_DECIDES = frozenset({"cel-167-full", "cel-169-full", "cel-179-full"})
"""Lines whose cost depends on the order of a map, which is random in the reference."""


@pytest.mark.parametrize("case", [p for name in SUITES for p in conformance_params(name)])
def test_recorded_answers(case: dict[str, Any]) -> None:
    """Every recorded line has the recorded outcome."""
    assert outcome(case) == expected(case)


def recorded_costs(name: str) -> list[dict[str, Any]]:
    """The lines of a suite that have costs."""
    return [case for case in load_conformance(name) if "cost" in case["expect"]]


@pytest.mark.parametrize("name", SUITES)
def test_recorded_run_time_costs(name: str) -> None:
    """The run-time cost is the reference's, except where its own order is random."""
    different = []
    for case in recorded_costs(name):
        selector = CACHE.compile(case["expr"])
        try:
            _, cost = selector.evaluate(case["driver"], device_of_case(case))
        except SelectorEvaluationError as error:
            cost = error.cost
        if cost != case["expect"]["cost"] and case["id"] not in ORDER_DECIDES:
            different.append((case["id"], cost, case["expect"]["cost"]))
    assert different == []


@pytest.mark.parametrize("name", SUITES)
def test_recorded_static_estimates(name: str) -> None:
    """The static estimate of the cost is the reference's."""
    different = [
        case["id"]
        for case in recorded_costs(name)
        if CACHE.compile(case["expr"]).max_cost != case["expect"]["max_cost"]
    ]
    assert different == []


@pytest.mark.parametrize("case", [p for name in SUITES for p in conformance_params(name)])
def test_counting_changes_nothing(case: dict[str, Any]) -> None:
    """Both ways of evaluating have the same outcome."""
    try:
        selector = CACHE.compile(case["expr"])
    except SelectorCompileError:
        return
    try:
        found = {"matches": selector.evaluate(case["driver"], device_of_case(case))[0]}
    except SelectorEvaluationError:
        found = {"evaluation_error": True}
    assert found == expected(case)
