"""A second, slow opinion on quantities, and strategies that make texts of them."""

import re
from fractions import Fraction
from math import ceil

from hypothesis import strategies as st

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_LIMIT = 2**63 - 1


def exact(text: str) -> Fraction:
    """What a well-formed text denotes, by fractions: at most nine decimals, clipped."""
    negative = text.startswith("-")
    body = text.lstrip("+-")
    end = next((n for n, c in enumerate(body) if c not in "0123456789."), len(body))
    number, suffix = body[:end], body[end:]
    amount = Fraction(f"0{number}0" if "." in number else number or "0")
    if suffix in BINARY:
        amount *= 2 ** BINARY[suffix]
    elif suffix in DECIMAL:
        amount *= Fraction(10) ** DECIMAL[suffix]
    else:
        amount *= Fraction(10) ** int(re.fullmatch("[eE](.+)", suffix)[1])  # type: ignore[index]
    amount = Fraction(ceil(amount * 10**9), 10**9)
    if suffix in BINARY:
        amount = min(amount, Fraction(_LIMIT))
    return -amount if negative else amount


def texts() -> st.SearchStrategy[str]:
    """Well-formed texts of all families, with short and long numbers."""
    digits = st.one_of(
        st.sampled_from(["0", "1", "9", "10", "1000", "1024", "1048576", str(_LIMIT)]),
        st.text("0123456789", max_size=25),
    )
    fraction = st.one_of(st.just(""), digits.map(lambda text: "." + text))
    exponent = st.builds(
        "{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 40)
    )
    suffix = st.one_of(st.sampled_from([*DECIMAL, *BINARY]), exponent)
    sign = st.sampled_from(["", "+", "-"])
    # A digit in front: without any digit some exponents are refused.
    return st.builds("{}0{}{}{}".format, sign, digits, fraction, suffix)
