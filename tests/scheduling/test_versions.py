"""resourceVersions: decimal numbers of any length; anything else is unreadable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.scheduling.versions import read_version

NUMBERS = st.integers(0, 10**40)


@given(NUMBERS, NUMBERS, st.integers(0, 3))
def test_compares_as_numbers(one: int, other: int, zeros: int) -> None:
    """Versions compare as the numbers that they denote, leading zeros or not."""
    first, second = read_version("0" * zeros + str(one)), read_version(str(other))
    assert first is not None
    assert second is not None
    assert (first < second, first == second, first > second) == (
        one < other, one == other, one > other,
    )  # fmt: skip
    assert str(first) == str(one)


def test_any_length() -> None:
    """A version may have more digits than Python turns into an int."""
    long = read_version("1" * 10_000)
    longer = read_version("1" * 9_999 + "2")
    assert long is not None
    assert longer is not None
    assert long < longer


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1 ", "1\n", "1.0", "1_0", "0x1", "abc", "٣", "²", "1e3"]
)
def test_unreadable(text: str) -> None:
    """What is no decimal number has no version."""
    assert read_version(text) is None
