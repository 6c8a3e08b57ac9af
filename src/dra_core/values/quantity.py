"""Exact Kubernetes quantities: suffixes, canonical form, order, arithmetic.

What may live here: the number type of capacities and counters, its text form, and the
methods that CEL's quantity library binds. No API object, no field name.

A quantity is a whole number of billionths plus the family of suffixes it was written
in. Nine decimals are the finest that the API keeps, so an int of billionths loses
nothing: there is no float, no overflow and no rounding after parsing. The family
decides only how the number is printed; equality, order and hash ignore it.

Source: the grammar and the canonical form are those of ``resource.Quantity`` in
k8s.io/apimachinery.
"""

import re
from collections.abc import Mapping
from typing import Final, final

import attrs

from dra_core.errors import QuantityError

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

NANO_PER_UNIT: Final = 10**9

# Limits of this library, not of the API: the reference builds the power of ten of any
# exponent and so hangs on "1e2147483648". Whatever passes both limits has at most
# about 2,000 digits.
MAX_EXPONENT: Final = 1_000
MAX_DIGITS: Final = 1_000

# Bounds of a 64-bit integer; what is written with a binary suffix is clipped at the
# positive one, on both sides of zero.
MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)

_DECIMAL_SUFFIXES: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_POWERS: Final[Mapping[str, int]] = {
    suffix: 3 * index - 9 for index, suffix in enumerate(_DECIMAL_SUFFIXES)
}
_BINARY_FACTORS: Final[Mapping[str, int]] = {
    suffix: 1024**index for index, suffix in enumerate(_BINARY_SUFFIXES) if suffix
}

_FINEST_POWER: Final = -9
_MAX_BINARY_NANO: Final = MAX_INT64 * NANO_PER_UNIT
_FIRST_TOO_LONG_INT: Final = 10**MAX_DIGITS
_SHOWN_CHARACTERS: Final = 100

# Each repeated class is disjoint from what may follow it, so matching is linear. The
# exponent is tried first because a lone "E" is the suffix exa.
_match_quantity = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+)|([A-Za-z]{0,2}))"
).fullmatch

# What the API server's decoder strips: Unicode's White_Space. (str.strip() would also
# take the separators U+001C to U+001F.)
_BLANKS: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@final
@attrs.frozen(eq=False, order=False, repr=False)
class Quantity:
    """An exact amount: ``nano`` billionths, printed in the family ``format``.

    Immutable and hashable. ``==``, order and hash go by the amount alone, so
    ``1k``, ``1e3`` and ``1000`` are equal. The constructor takes its arguments as they
    are; ``format`` is one of ``DECIMAL_SI``, ``BINARY_SI``, ``DECIMAL_EXPONENT``.
    """

    nano: int
    format: str = DECIMAL_SI

    @classmethod
    def parse(cls, text: str) -> "Quantity":
        """The quantity that ``text`` denotes, as the API server reads it.

        More than nine decimals round away from zero. Amounts with a binary suffix are
        clipped at ±(2^63−1), others have no bound but this library's limits: an
        exponent within ±1,000 and at most 1,000 digits.

        Raises QuantityError. Cost: linear in the text.
        """
        match = _match_quantity(text)
        if match is None or not text:
            raise _error(text, "not a number with an optional suffix" if text else "empty")
        sign, whole, fraction, exponent_sign, exponent_digits, suffix = match.groups("")
        if len(whole) + len(fraction) > MAX_DIGITS:
            raise _error(text, f"more than {MAX_DIGITS:,} digits")
        digits = whole + fraction
        # Without any digit the number is zero ("-", ".", "Ki"), as in the reference.
        number = int(digits or "0")
        places = 9 - len(fraction)
        if exponent_digits:
            power = _exponent(text, exponent_sign, exponent_digits)
            if not digits and power < _FINEST_POWER:
                raise _error(text, "no digits")  # the one such form it refuses: "e-10"
            family, nano = DECIMAL_EXPONENT, _shift(number, places + power)
        elif suffix in _DECIMAL_POWERS:
            family, nano = DECIMAL_SI, _shift(number, places + _DECIMAL_POWERS[suffix])
        elif suffix in _BINARY_FACTORS:
            nano = min(_shift(number * _BINARY_FACTORS[suffix], places), _MAX_BINARY_NANO)
            # Less than one unit has no binary form at all, not even in later sums.
            family = DECIMAL_SI if 0 < nano < NANO_PER_UNIT else BINARY_SI
        else:
            raise _error(text, f"unknown suffix {suffix!r}")
        return cls(-nano if sign == "-" else nano, family)

    @classmethod
    def from_json(cls, value: object) -> "Quantity":
        """The quantity in a decoded JSON field.

        Strings may have blanks around them; numbers are taken as they are written
        (a float by its shortest decimal form); ``None`` is zero.

        Raises QuantityError, also for booleans, containers, NaN and infinities.
        """
        if isinstance(value, str):
            return cls.parse(value.strip(_BLANKS))
        if value is None:
            return cls(0)
        if isinstance(value, bool):
            raise _error(str(value), "a boolean, not a string or number")
        if isinstance(value, int):
            if not -_FIRST_TOO_LONG_INT < value < _FIRST_TOO_LONG_INT:
                raise QuantityError("(integer)", f"more than {MAX_DIGITS:,} digits")
            return cls.from_int(value)
        if isinstance(value, float):
            return cls.parse(float.__repr__(value))
        raise QuantityError(f"({type(value).__name__})", "not a string or number")

    @classmethod
    def from_int(cls, units: int) -> "Quantity":
        """The quantity of ``units`` whole units, in the decimal family."""
        return cls(units * NANO_PER_UNIT)

    # --- reading ---------------------------------------------------------------------

    def value(self) -> int:
        """The amount in whole units, rounded away from zero; not limited to 64 bits."""
        nano = self.nano
        return -(-nano // NANO_PER_UNIT) if nano >= 0 else nano // NANO_PER_UNIT

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nano > 0) - (self.nano < 0)

    def as_integer(self) -> int | None:
        """The amount in whole units, or None if it is no whole number of 64 bits.

        The source of CEL's ``isInteger`` (not None) and ``asInteger`` (None is an error).
        """
        units, rest = divmod(self.nano, NANO_PER_UNIT)
        return units if not rest and MIN_INT64 <= units <= MAX_INT64 else None

    def is_integer(self) -> bool:
        """Whether ``as_integer`` has an answer."""
        return self.as_integer() is not None

    def as_approximate_float(self) -> float:
        """The nearest float; an infinity where the amount exceeds every float."""
        try:
            return self.nano / NANO_PER_UNIT
        except OverflowError:
            return float("inf") if self.nano > 0 else float("-inf")

    def __str__(self) -> str:
        """The canonical form: the largest suffix of the family that needs no decimals.

        Binary quantities that are fractional or nearer to zero than 1024 print with
        decimal suffixes, exponents are multiples of three.
        """
        nano = self.nano
        if nano == 0:
            return "0"
        if self.format == BINARY_SI:
            units, rest = divmod(nano, NANO_PER_UNIT)
            if not rest and not -1024 < units < 1024:
                number, index = _strip(units, 1024, len(_BINARY_SUFFIXES) - 1)
                return f"{number}{_BINARY_SUFFIXES[index]}"
        elif self.format == DECIMAL_EXPONENT:
            number, index = _strip(nano, 1000, None)
            power = 3 * index - 9
            return f"{number}e{power}" if power else str(number)
        number, index = _strip(nano, 1000, len(_DECIMAL_SUFFIXES) - 1)
        return f"{number}{_DECIMAL_SUFFIXES[index]}"

    def __repr__(self) -> str:
        return f"Quantity({self.nano}, {self.format!r})"

    # --- order -----------------------------------------------------------------------

    def compare(self, other: "Quantity") -> int:
        """-1, 0 or 1: this amount is below, at or above the other."""
        return (self.nano > other.nano) - (self.nano < other.nano)

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano if isinstance(other, Quantity) else NotImplemented

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano if isinstance(other, Quantity) else NotImplemented

    def __gt__(self, other: "Quantity") -> bool:
        return self.nano > other.nano if isinstance(other, Quantity) else NotImplemented

    def __ge__(self, other: "Quantity") -> bool:
        return self.nano >= other.nano if isinstance(other, Quantity) else NotImplemented

    # --- arithmetic ------------------------------------------------------------------

    def add(self, other: "Quantity | int") -> "Quantity":
        """The exact sum with a quantity or with whole units.

        It keeps this quantity's family, or takes the other's if this one is zero.
        """
        if isinstance(other, int):
            return Quantity(self.nano + other * NANO_PER_UNIT, self.format)
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def sub(self, other: "Quantity | int") -> "Quantity":
        """The exact difference with a quantity or with whole units; family as in ``add``."""
        if isinstance(other, int):
            return Quantity(self.nano - other * NANO_PER_UNIT, self.format)
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __add__(self, other: "Quantity") -> "Quantity":
        return self.add(other) if isinstance(other, Quantity) else NotImplemented

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self.sub(other) if isinstance(other, Quantity) else NotImplemented

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nano, self.format)


def is_quantity(text: str) -> bool:
    """Whether ``Quantity.parse`` accepts the text (CEL's ``isQuantity``)."""
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _error(text: str, problem: str) -> QuantityError:
    return QuantityError(text[:_SHOWN_CHARACTERS], problem)


def _exponent(text: str, sign: str, digits: str) -> int:
    """The written power of ten; a text too long to be in range is never converted."""
    significant = digits.lstrip("0")
    if len(significant) > len(str(MAX_EXPONENT)) or int(significant or "0") > MAX_EXPONENT:
        raise _error(text, f"exponent beyond ±{MAX_EXPONENT:,}")
    return -int(significant or "0") if sign == "-" else int(significant or "0")


def _shift(number: int, places: int) -> int:
    """``number`` times ten to the power of ``places``, rounded up; for numbers from zero."""
    power: int = 10 ** abs(places)
    return number * power if places >= 0 else -(-number // power)


def _strip(number: int, factor: int, limit: int | None) -> tuple[int, int]:
    """Divide by ``factor`` while that is exact, at most ``limit`` times; how often.

    The reference has no limit and prints 10^21 as "1", losing the amount; stopping at
    the largest suffix gives "1000E".
    """
    times = 0
    while times != limit:
        quotient, rest = divmod(number, factor)
        if rest:
            break
        number, times = quotient, times + 1
    return number, times
