"""Quantities: rules of the text form, of decoding, of integers, and known faults."""

import copy
import pickle

import attrs
import pytest

from dra_core.errors import DraError, QuantityError
from dra_core.values.quantity import (
    BINARY_SI,
    DECIMAL_EXPONENT,
    DECIMAL_SI,
    MAX_INT64,
    MIN_INT64,
    Quantity,
    is_quantity,
)

MAX_DIGITS_AND_EXPONENT = 1_000


def q(text: str) -> Quantity:
    return Quantity.parse(text)


# --- parsing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("1n", 1),
        ("1u", 10**3),
        ("1m", 10**6),
        ("1", 10**9),
        ("1k", 10**12),
        ("1M", 10**15),
        ("1G", 10**18),
        ("1T", 10**21),
        ("1P", 10**24),
        ("1E", 10**27),
    ],
)
def test_decimal_suffixes(text: str, nano: int) -> None:
    """Each decimal suffix is a thousand times the one before, from n to E."""
    assert q(text).nano == nano
    assert q(text).format == DECIMAL_SI


@pytest.mark.parametrize(
    ("suffix", "power"), [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)]
)
def test_binary_suffixes(suffix: str, power: int) -> None:
    """Each binary suffix is 1024 times the one before, from Ki to Ei."""
    assert q(f"1{suffix}").nano == 2**power * 10**9
    assert q(f"1{suffix}").format == BINARY_SI


@pytest.mark.parametrize("text", ["1e3", "1E3", "1e+3", "1E+3", "+1e03", "10e2", "0.001e6"])
def test_exponents(text: str) -> None:
    """An exponent may be written with e or E, with a sign, with leading zeros."""
    assert q(text) == q("1k")
    assert q(text).format == DECIMAL_EXPONENT


@pytest.mark.parametrize(
    "text", ["-", "+", ".", "-.", "Ki", "k", "E", ".Gi", "e3", "-e-9", "0", "-0", "0e-1000"]
)
def test_no_digits_are_zero(text: str) -> None:
    """A sign, a point or a suffix alone is zero."""
    assert q(text).nano == 0
    assert str(q(text)) == "0"


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1e", "1K", "1e3Ki", "1e3k", "1e+", "1ee3", "1 Gi", "1\n", " 1", "1 "),
        *("--1", "+-1", "1-", "1.2.3", "1,000", "1_000", "0x10", "Inf", "NaN", "\u0661"),
        *("\uff11", "1Kii", "1iK", "1kk", "1\x00", "\ud800", "1µ", "e-10", ".e-10", "1e3.5"),
    ],
)
def test_malformed(text: str) -> None:
    """What is not sign, digits and one known suffix or exponent is refused."""
    with pytest.raises(QuantityError) as caught:
        q(text)
    assert caught.value.text == text
    assert caught.value.problem
    assert isinstance(caught.value, DraError)
    assert not is_quantity(text)


@pytest.mark.parametrize("text", ["1", "-1.5Gi", "1e3", "Ki"])
def test_is_quantity(text: str) -> None:
    """Whatever parses is a quantity."""
    assert is_quantity(text)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0.0000000001", 1),
        ("-0.0000000001", -1),
        ("1.0000000001", 10**9 + 1),
        ("0.1n", 1),
        ("1e-1000", 1),
        ("-1e-10", -1),
        ("0.00000000000001Ki", 1),
        ("0.0000000000", 0),
    ],
)
def test_ten_decimals_round_away_from_zero(text: str, nano: int) -> None:
    """More than nine decimals round up, away from zero."""
    assert q(text).nano == nano


@pytest.mark.parametrize("text", ["8Ei", "1024Ei", "9223372036854775808Ki", "9" * 1000 + "Ti"])
def test_binary_input_is_clipped(text: str) -> None:
    """Input with a binary suffix is clipped at ±(2^63−1)."""
    assert q(text).nano == MAX_INT64 * 10**9
    assert q("-" + text).nano == -MAX_INT64 * 10**9


def test_decimal_input_and_arithmetic_are_not_clipped() -> None:
    """Only binary input is clipped: decimal input and sums may leave 64 bits."""
    assert q("100E").nano == 10**29
    assert q("1e100").nano == 10**109
    assert q("8Ei") + q("8Ei") == Quantity(2 * MAX_INT64 * 10**9)


@pytest.mark.parametrize(
    "text",
    [
        *("1e2147483648", "1e-2147483648", "1e4294967296", "1e1001", "1e-1001", "0e1001"),
        *("1e" + "9" * 1_000_000, "1" * 1001, "0" * 1001, "." + "1" * 1001, "1" * 5_000_000),
        "1" * 600 + "." + "1" * 401,
        "1" * 1_000_000 + "x",
    ],
    ids=len,
)
def test_huge_input_is_an_error(text: str) -> None:
    """Exponents beyond ±1,000 and more than 1,000 digits are errors, and soon."""
    with pytest.raises(QuantityError) as caught:
        q(text)
    assert caught.value.text == text[:100]


def test_limits_themselves_are_accepted() -> None:
    """A thousand digits and an exponent of ±1,000 are still fine."""
    digits = "9" * MAX_DIGITS_AND_EXPONENT
    assert q(digits).nano == int(digits) * 10**9
    assert q(f"{digits}e1000").nano == int(digits) * 10**1009
    assert q(f"{digits}e-1000").nano == 10**9
    assert q("1e" + "0" * 5_000 + "1000").nano == 10**1009


# --- decoding -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        ("80Gi", "80Gi"),
        ("  80Gi ", "80Gi"),
        ("\t1\n", "1"),
        ("\u00a01k\u3000", "1k"),
        (None, "0"),
        (5, "5"),
        (-(10**30), "-1000000000000E"),
        (10**1000 - 1, "9" * 1000),
        (1.5, "1500m"),
        (0.1, "100m"),
        (-0.0, "0"),
        (1e-7, "100e-9"),
        (1e22, "10e21"),
        (1e300, "1e300"),
        (5e-324, "1e-9"),
    ],
)
def test_json_values(value: object, canonical: str) -> None:
    """In JSON numbers are allowed, null is 0 and blanks around a string are trimmed."""
    assert str(Quantity.from_json(value)) == canonical


@pytest.mark.parametrize(
    "value",
    [
        *(True, False, "", "  ", "1 Gi", "\x1c1", float("nan"), float("inf"), float("-inf")),
        *(10**1000, -(10**1000), [], {}, b"1", ("1",), object()),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_json_values_that_are_none(value: object) -> None:
    """Booleans, containers, numbers without a value and malformed strings are errors."""
    with pytest.raises(QuantityError):
        Quantity.from_json(value)


def test_parse_does_not_trim() -> None:
    """Blanks are trimmed when decoding JSON fields, only there."""
    assert Quantity.from_json(" 1 ") == q("1")
    with pytest.raises(QuantityError):
        q(" 1 ")


# --- canonical form -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("1500k", "1500k"),
        ("1000k", "1M"),
        ("0.1Ki", "102400m"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("-0.5Ki", "-512"),
        ("-1Ki", "-1Ki"),
        ("0.0001Ki", "102400u"),
        ("1e4", "10e3"),
        ("1e2", "100"),
        ("1e-9", "1e-9"),
        ("123e-4", "12300e-6"),
        ("1e999", "1e999"),
        ("0Gi", "0"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    """The largest suffix of the family without decimals; fractions of binary are decimal."""
    assert str(q(text)) == canonical


def test_canonical_form_past_the_largest_suffix() -> None:
    """Beyond E and Ei the number grows, where the reference drops the suffix."""
    assert str(q("1000000000000000000000")) == "1000E"
    assert str(q("4Ei") + q("4Ei")) == "8Ei"
    assert str(Quantity(2**70 * 10**9, BINARY_SI)) == "1024Ei"
    assert str(Quantity(-(2**70) * 10**9, BINARY_SI)) == "-1024Ei"


def test_fraction_of_a_unit_leaves_the_binary_family() -> None:
    """Binary input below one unit is decimal from then on."""
    assert q("0.0001Ki").format == DECIMAL_SI
    assert q("-0.0001Ki").format == DECIMAL_SI
    assert str(q("0.0001Ki") + q("1Gi")) == "1073741824102400u"


# --- integers and floats ------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.5", 2), ("-1.5", -2), ("1n", 1), ("-1n", -1), ("3", 3), ("-3", -3), ("0", 0)],
)
def test_value_rounds_away_from_zero(text: str, value: int) -> None:
    """The integer value rounds away from zero."""
    assert q(text).value() == value


def test_value_is_not_limited() -> None:
    """The integer value is exact beyond 64 bits."""
    assert q("1e100").value() == 10**100
    assert q("-1e100").value() == -(10**100)


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("108", 108),
        ("1Ki", 1024),
        ("100Ti", 100 * 2**40),
        ("1000m", 1),
        ("-2.0", -2),
        ("9223372036854775807", MAX_INT64),
        ("-9223372036854775808", MIN_INT64),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("1500m", None),
        ("1n", None),
        ("1e100", None),
    ],
)
def test_as_integer(text: str, integer: int | None) -> None:
    """A whole number of 64 bits is an integer, anything else is none."""
    assert q(text).as_integer() == integer
    assert q(text).is_integer() is (integer is not None)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0.0),
        ("1.5", 1.5),
        ("-100m", -0.1),
        ("80Gi", float(80 * 2**30)),
        ("1e1000", float("inf")),
        ("-1e1000", float("-inf")),
    ],
)
def test_as_approximate_float(text: str, number: float) -> None:
    """The nearest float; an infinity where no float is large enough."""
    assert q(text).as_approximate_float() == number


@pytest.mark.parametrize(("text", "sign"), [("1n", 1), ("0Ki", 0), ("-1e100", -1)])
def test_sign(text: str, sign: int) -> None:
    """The sign is -1, 0 or 1."""
    assert q(text).sign() == sign


# --- order and arithmetic -----------------------------------------------------------


def test_equality_is_by_value() -> None:
    """However it is written, the same amount is equal and has one hash."""
    same = [q("1024"), q("1Ki"), q("1.024k"), q("1024e0"), q("1024000m")]
    assert all(a == b and a.compare(b) == 0 for a in same for b in same)
    assert len(set(same)) == 1


def test_other_types_are_neither_equal_nor_ordered() -> None:
    """A quantity equals no number or text, and comparing with one is a TypeError."""
    one = q("1")
    assert one != 1
    assert one != "1"
    assert one is not None
    for other in (1, "1", None):
        with pytest.raises(TypeError):
            one < other  # type: ignore[operator]  # noqa: B015
        with pytest.raises(TypeError):
            one >= other  # type: ignore[operator]  # noqa: B015
        with pytest.raises(TypeError):
            one + other  # type: ignore[operator]
        with pytest.raises(TypeError):
            one - other  # type: ignore[operator]


def test_negation() -> None:
    """Negation keeps the form."""
    assert str(-q("1Gi")) == "-1Gi"
    assert (-q("-5e3")).format == DECIMAL_EXPONENT


@pytest.mark.parametrize(
    ("left", "right", "total", "difference"),
    [
        ("1Gi", "1G", "2073741824", "73741824"),
        ("1Ki", "1k", "2024", "24"),
        ("2Gi", "1024e3", "2098152Ki", "2096152Ki"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("0Ki", "1e3", "1e3", "-1e3"),
        ("1e3", "0Gi", "1e3", "1e3"),
        ("1k", "1e3", "2k", "0"),
    ],
)
def test_sums_keep_the_left_form(left: str, right: str, total: str, difference: str) -> None:
    """Sums and differences keep the left form, unless the left is zero."""
    assert str(q(left) + q(right)) == total
    assert str(q(left) - q(right)) == difference


def test_whole_units_can_be_added() -> None:
    """CEL's add and sub also take a plain integer."""
    assert q("500m").add(1) == q("1.5")
    assert q("500m").sub(1) == q("-0.5")
    assert q("500m").add(q("1Ki")) == q("1024.5")
    assert q("500m").sub(q("1Ki")) == q("-1023.5")
    assert Quantity.from_int(MAX_INT64).add(1).as_integer() is None


# --- a value ------------------------------------------------------------------------


def test_is_immutable() -> None:
    """A quantity does not change once made."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        q("1").nano = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        q("1").other = 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["0", "1.5Gi", "-1e100", "100m"])
def test_pickle_and_copy(text: str) -> None:
    """A quantity survives pickling and copying, amount and form."""
    one = q(text)
    copies = [copy.copy(one), copy.deepcopy(one)]
    copies += [pickle.loads(pickle.dumps(one, n)) for n in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for other in copies:
        assert (other, other.format, hash(other)) == (one, one.format, hash(one))


def test_error_survives_pickling() -> None:
    """An error keeps its facts when it crosses a process."""
    error = QuantityError("1K", "unknown suffix 'K'")
    again = pickle.loads(pickle.dumps(error))
    assert (again.text, again.problem, str(again)) == (error.text, error.problem, str(error))


def test_repr_shows_amount_and_form() -> None:
    """The repr says exactly what the object holds."""
    assert repr(q("1Ki")) == "Quantity(1024000000000, 'BinarySI')"


# --- known faults of others ---------------------------------------------------------


def test_bug_29_overflow_when_rounding_up() -> None:
    """Rounding 2^63−1 up to a step of 100 exceeds it; nothing wraps negative."""
    step, asked = q("100"), q("9223372036854775807")
    steps = -(-asked.nano // step.nano)
    rounded = Quantity(steps * step.nano, BINARY_SI)
    assert rounded > asked
    assert rounded.sign() == 1
    assert str(rounded) == "9223372036854775900"


def test_bug_30_amounts_beyond_64_bits() -> None:
    """Amounts larger than 64 bits compare and add exactly."""
    big = q("100E")
    assert big > q("9223372036854775807")
    assert big + q("1n") > big
    assert (big + q("1n")) - big == q("1n")
    assert big.value() == 10**20


def test_bug_32_arithmetic_leaves_its_operands_alone() -> None:
    """Arithmetic on amounts outside 64 bits or with sub-nano digits changes no operand."""
    left, right = q("18446744073709551616"), q("0.00000000015Gi")
    before = copy.deepcopy((left, right))
    first = (left + right, left - right, -left, left.compare(right), str(left), left.value())
    assert (left, right) == before
    assert (left.format, right.format) == (before[0].format, before[1].format)
    again = (left + right, left - right, -left, left.compare(right), str(left), left.value())
    assert first == again
