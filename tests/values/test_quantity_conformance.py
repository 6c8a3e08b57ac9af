"""Recorded answers of the reference on quantities, line by line.

The reference is wrong on some lines, each by one of three faults, listed here so
that every other line must match exactly:

* the canonical form of a multiple of 10^21 loses its power of ten ("1" for 10^21);
* the integer value of a negative amount that the reference keeps as a big decimal
  is one or two off or truncated to some bits (-174.08 → -173);
* the integer value of anything beyond 64 bits is some remainder, or not recorded.
"""

import re
from math import ceil, floor
from pathlib import Path

import pytest

from dra_core.errors import QuantityError
from dra_core.values.quantity import MAX_INT64, MIN_INT64, Quantity
from support.conformance import Case, conformance_params, load_conformance
from support.quantities import exact

LOST_POWER_OF_TEN = {"q-74": "1000E", "q-423": "505393469000E"}
"""Case → the canonical form that still denotes the amount."""

WRONG_NEGATIVE_VALUE = frozenset(
    f"q-{number}"
    for number in (
        *(68, 129, 151, 166, 181, 193, 213, 231, 253, 266, 273, 289, 304, 316, 339, 341, 354),
        *(378, 383, 400, 436, 452, 485, 491, 498, 502, 512),
    )
)
"""Cases with a negative amount within 64 bits whose recorded integer value is wrong."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"

NOT_RECORDED_FROM = 9 * 10**18
"""The reference's integers near the end of 64 bits are null in the file."""


def parse(text: str) -> Quantity | None:
    try:
        return Quantity.parse(text)
    except QuantityError:
        return None


def away_from_zero(case: Case) -> int:
    amount = exact(case["s"])
    return ceil(amount) if amount > 0 else floor(amount)


def is_value_reliable(case: Case) -> bool:
    """Whether the recorded integer value is what the text denotes."""
    if case["id"] in WRONG_NEGATIVE_VALUE or case["expect"]["value"] is None:
        return False
    return MIN_INT64 <= away_from_zero(case) <= MAX_INT64


CASES = conformance_params("quantity")


@pytest.mark.parametrize("case", [p for p in CASES if "s" in p.values[0]])
def test_text(case: Case) -> None:
    """Canonical form, integer value and sign of every recorded text, or the error."""
    quantity, expect = parse(case["s"]), case["expect"]
    if expect.get("error"):
        assert quantity is None
        return
    assert quantity is not None
    assert str(quantity) == LOST_POWER_OF_TEN.get(case["id"], expect["canonical"])
    assert quantity.sign() == expect["sign"]
    assert quantity.value() == away_from_zero(case)
    if is_value_reliable(case):
        assert quantity.value() == expect["value"]


@pytest.mark.parametrize("case", [p for p in CASES if "a" in p.values[0]])
def test_pair(case: Case) -> None:
    """Order, sum and difference of every recorded pair, or the error."""
    left, right, expect = parse(case["a"]), parse(case["b"]), case["expect"]
    if expect.get("error"):
        assert left is None or right is None
        return
    assert left is not None
    assert right is not None
    assert left.compare(right) == expect["cmp"]
    assert str(left + right) == expect["sum"]
    assert str(left - right) == expect["difference"]


def test_exceptions_are_what_they_claim_to_be() -> None:
    """Each listed exception is one: no list hides a line that could match."""
    cases = {case["id"]: case for case in load_conformance("quantity")}
    for name, canonical in LOST_POWER_OF_TEN.items():
        case = cases[name]
        assert exact(case["s"]) % 10**21 == 0
        assert exact(case["expect"]["canonical"]) != exact(case["s"]) == exact(canonical)
    for name in WRONG_NEGATIVE_VALUE:
        case = cases[name]
        assert MIN_INT64 <= away_from_zero(case) < 0
        assert case["expect"]["value"] != away_from_zero(case)
    for case in cases.values():
        if "value" in case["expect"] and case["expect"]["value"] is None:
            assert abs(away_from_zero(case)) >= NOT_RECORDED_FROM


def test_page_lists_every_line_that_differs() -> None:
    """docs/conformance.md lists the lines whose recorded answer is not ours, and no other."""
    forms, values = set(), set()
    for case in load_conformance("quantity"):
        quantity = parse(case["s"]) if "s" in case else None
        if quantity is not None and str(quantity) != case["expect"]["canonical"]:
            forms.add(case["id"])
        if quantity is not None and quantity.value() != case["expect"]["value"]:
            values.add(case["id"])
    section = PAGE.read_text(encoding="utf-8").partition("## Recorded lines that are wrong")[2]
    items = re.findall(r"^\d\. ((?:.*\n)+?)(?=\d\. |\n)", section, re.M)
    listed = [re.findall(r"q-\d+", item) for item in items]
    assert len(listed) == 4
    assert sorted(listed[0]) == sorted(forms)
    assert sorted(listed[1]) == sorted(WRONG_NEGATIVE_VALUE)
    assert sorted(listed[1] + listed[2] + listed[3]) == sorted(values)


def test_most_lines_are_compared() -> None:
    """The exceptions stay few: 388 of the 486 recorded integer values are compared."""
    recorded = [c for c in load_conformance("quantity") if "value" in c["expect"]]
    assert len(recorded) == 486
    assert sum(map(is_value_reliable, recorded)) == 388
