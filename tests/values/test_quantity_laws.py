"""Laws of quantities, against exact fractions."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import TypeVar

from hypothesis import assume, example, given
from hypothesis import strategies as st

from dra_core.errors import QuantityError
from dra_core.values.quantity import BINARY_SI, DECIMAL_EXPONENT, DECIMAL_SI, Quantity
from support.quantities import BINARY, DECIMAL, exact, texts

T = TypeVar("T")

FORMATS = (DECIMAL_SI, BINARY_SI, DECIMAL_EXPONENT)
NANOS = st.one_of(
    st.integers(-(10**12), 10**12),
    st.integers(-(2**63), 2**63).map(lambda units: units * 10**9),
    st.builds(lambda n, k: n * 10**k, st.integers(-5000, 5000), st.integers(0, 40)),
    st.builds(lambda n, k: n * 2**k * 10**9, st.integers(-5000, 5000), st.integers(0, 80)),
)
QUANTITIES = st.one_of(
    st.builds(Quantity, NANOS, st.sampled_from(FORMATS)), texts().map(Quantity.parse)
)
ARBITRARY = st.one_of(
    st.text(st.characters(exclude_categories=())),
    st.text("+-.0123456789eEinumkKMGTP \0\ud800", max_size=12),
)


def attempt(read: Callable[[T], Quantity], value: T) -> Quantity | QuantityError:
    """What reading the value gives: a quantity or the one permitted error."""
    try:
        return read(value)
    except QuantityError as error:
        return error


def fraction(quantity: Quantity) -> Fraction:
    return Fraction(quantity.nano, 10**9)


@given(texts())
def test_parsing_is_exact(text: str) -> None:
    """A text denotes what exact fractions make of it."""
    assert fraction(Quantity.parse(text)) == exact(text)


@given(QUANTITIES)
@example(Quantity(10**30))
@example(Quantity(10_000 * 10**9, BINARY_SI))
@example(Quantity(2**70 * 10**9, BINARY_SI))
def test_canonical_text_reads_back(quantity: Quantity) -> None:
    """The canonical form denotes the same amount and, read as its own family, stays.

    One text changes once more: a binary amount without a suffix (10000) reads as a
    decimal one (10k).
    """
    text = str(quantity)
    # Binary input is clipped, sums are not: past that point a binary form cannot be read.
    assume(text[-1] != "i" or abs(quantity.nano) < 2**63 * 10**9)
    again = Quantity.parse(text)
    assert again == quantity
    if quantity.format != BINARY_SI or not text.lstrip("-").isdecimal():
        assert str(again) == text
    assert str(Quantity.parse(str(again))) == str(again)


@given(QUANTITIES)
def test_canonical_text_is_shortest_without_decimals(quantity: Quantity) -> None:
    """No point, one suffix, and no larger suffix of the family would do."""
    text = str(quantity)
    number = text.rstrip("numkMGTPEKi") if "e" not in text else text[: text.index("e")]
    suffix = text[len(number) :]
    assert number.lstrip("-").isdecimal()
    if suffix in BINARY:
        assert suffix == "Ei" or int(number) % 1024
    elif suffix in DECIMAL:
        assert suffix == "E" or int(number) % 1000 or quantity.format != DECIMAL_SI or text == "0"
    else:
        assert int(number) % 1000
        assert int(suffix[1:]) % 3 == 0


@given(QUANTITIES, QUANTITIES)
def test_order_agrees_with_fractions(left: Quantity, right: Quantity) -> None:
    """Comparing quantities is comparing numbers."""
    a, b = fraction(left), fraction(right)
    assert left.compare(right) == (a > b) - (a < b)
    assert (left < right, left <= right) == (a < b, a <= b)
    assert (left > right, left >= right) == (a > b, a >= b)
    assert (left == right, left != right) == (a == b, a != b)


@given(QUANTITIES, QUANTITIES)
def test_arithmetic_is_exact(left: Quantity, right: Quantity) -> None:
    """Sums, differences and negations lose nothing; form is the left's unless it is zero."""
    assert fraction(left + right) == fraction(left) + fraction(right)
    assert fraction(left - right) == fraction(left) - fraction(right)
    assert fraction(-left) == -fraction(left)
    form = left.format if left.nano else right.format
    assert (left + right).format == (left - right).format == form


@given(QUANTITIES, st.integers(-(2**63), 2**63 - 1))
def test_arithmetic_with_units_is_exact(left: Quantity, units: int) -> None:
    """Adding an integer is adding that many whole units."""
    assert fraction(left.add(units)) == fraction(left) + units
    assert fraction(left.sub(units)) == fraction(left) - units


@given(NANOS, st.sampled_from(FORMATS), st.sampled_from(FORMATS))
def test_equal_quantities_have_one_hash(nano: int, one: str, other: str) -> None:
    """The form takes no part in equality and hash."""
    assert Quantity(nano, one) == Quantity(nano, other)
    assert hash(Quantity(nano, one)) == hash(Quantity(nano, other))


@given(QUANTITIES)
def test_integers_agree_with_fractions(quantity: Quantity) -> None:
    """Integer value, sign and integer test are those of the number."""
    number = fraction(quantity)
    assert quantity.value() == (ceil(number) if number > 0 else floor(number))
    assert quantity.sign() == (number > 0) - (number < 0)
    whole = number.denominator == 1 and -(2**63) <= number < 2**63
    assert quantity.as_integer() == (number if whole else None)
    assert quantity.as_approximate_float() == float(number)


@given(ARBITRARY)
def test_any_text_parses_or_is_a_quantity_error(text: str) -> None:
    """No text leads to another exception, or to an amount that does not print."""
    for read in (Quantity.parse, Quantity.from_json):
        quantity = attempt(read, text)
        if isinstance(quantity, Quantity):
            assert Quantity.parse(str(quantity)) == quantity
        else:
            assert str(quantity)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | ARBITRARY,
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=3,
    )
)
def test_any_json_value_decodes_or_is_a_quantity_error(value: object) -> None:
    """No decoded JSON leads to another exception."""
    quantity = attempt(Quantity.from_json, value)
    if isinstance(quantity, QuantityError):
        assert str(quantity)
        return
    assert not isinstance(value, bool | list | dict)
    if isinstance(value, int):
        assert fraction(quantity) == value
