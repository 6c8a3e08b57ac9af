"""Durations and timestamps as CEL selectors see them.

What may live here: the two time values of CEL, their parsers, printers, arithmetic
and accessors. Nothing here knows the CEL compiler, reads a clock or a file.

Both are counted in whole nanoseconds. A duration has 64 bits; a timestamp lies in
the years 1 to 9999 of the proleptic Gregorian calendar. Python's ``datetime`` is not
used: it has microseconds, and a time zone can carry a timestamp out of its range.

Time zones: "" and "UTC" (and the names that mean it) and fixed offsets ``+05:30``
need no data. Any other name is resolved by a ``ZoneLookup`` of the caller, because
zone data come from files; without one such a name is an error.

Source: cel-spec, "Dates and times"; Go's ``time`` package for the two grammars.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Final

import attrs

from dra_core.cel.quoting import shown
from dra_core.errors import CelValueError

ZoneLookup = Callable[[str, int], int | None]
"""From a time zone's name and a time (seconds since 1970 UTC) to the offset from UTC
in seconds, east positive; None if there is no such zone."""

NANOS_PER_SECOND: Final = 1_000_000_000
MIN_DURATION: Final = -(2**63)
MAX_DURATION: Final = 2**63 - 1
MIN_UNIX: Final = -62_135_596_800
"""0001-01-01T00:00:00Z in seconds since 1970."""
MAX_UNIX: Final = 253_402_300_799
"""9999-12-31T23:59:59Z in seconds since 1970."""

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, the micro sign
    "μs": 1_000,  # U+03BC, the Greek letter
    "ms": 1_000_000,
    "s": NANOS_PER_SECOND,
    "m": 60 * NANOS_PER_SECOND,
    "h": 3600 * NANOS_PER_SECOND,
}
_UTC_NAMES: Final = frozenset(("", "UTC", "UCT", "Universal", "Zulu", "GMT", "Etc/UTC", "Etc/GMT"))


@attrs.frozen(order=True)
class Duration:
    """A span of time in nanoseconds, within 64 bits."""

    nanos: int

    def __str__(self) -> str:
        # The reference prints a binary floating point number of seconds, shortest form.
        text = f"{Decimal(repr(self._seconds())):f}"
        return f"{text.removesuffix('.0')}s"

    def plus(self, other: "Duration") -> "Duration":
        """The sum. Raises ``CelValueError`` on overflow."""
        return _checked_duration(self.nanos + other.nanos)

    def minus(self, other: "Duration") -> "Duration":
        """The difference. Raises ``CelValueError`` on overflow."""
        return _checked_duration(self.nanos - other.nanos)

    def negated(self) -> "Duration":
        """The opposite. Raises ``CelValueError`` on overflow."""
        return _checked_duration(-self.nanos)

    def get_hours(self) -> int:
        """The whole duration in hours, towards zero."""
        return self._in_units(3600 * NANOS_PER_SECOND)

    def get_minutes(self) -> int:
        """The whole duration in minutes, towards zero."""
        return self._in_units(60 * NANOS_PER_SECOND)

    def get_seconds(self) -> int:
        """The whole duration in seconds, towards zero."""
        return int(self._seconds())

    def get_milliseconds(self) -> int:
        """The whole duration in milliseconds, towards zero."""
        return _towards_zero(self.nanos, 1_000_000)

    def _seconds(self) -> float:
        return self._as_float(NANOS_PER_SECOND)

    def _in_units(self, unit: int) -> int:
        return int(self._as_float(unit))

    def _as_float(self, unit: int) -> float:
        # In floating point like the reference: close below a whole unit it may round up.
        whole = _towards_zero(self.nanos, unit)
        return float(whole) + float(self.nanos - whole * unit) / float(unit)


@attrs.frozen(order=True)
class Timestamp:
    """A point in time. Equality and order ignore the zone that it was written in.

    ``unix`` is whole seconds since 1970 UTC, ``nanos`` the nanoseconds after that,
    ``offset`` the written zone's offset from UTC in seconds, which only printing
    and arithmetic keep: accessors use UTC unless they are given a zone.
    """

    unix: int
    nanos: int = 0
    offset: int = attrs.field(default=0, eq=False)

    def __str__(self) -> str:
        days, rest = divmod(self.unix + self.offset, 86_400)
        year, month, day = _civil(days)
        text = f"{year:04d}-{month:02d}-{day:02d}T"
        text += f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
        if self.nanos:
            text += f".{self.nanos:09d}".rstrip("0")
        return text + _spelled_offset(self.offset)

    def plus(self, duration: Duration) -> "Timestamp":
        """The time after the duration. Raises ``CelValueError`` outside years 1 to 9999."""
        nanos = self.unix * NANOS_PER_SECOND + self.nanos + duration.nanos
        return _checked_timestamp(nanos, self.offset)

    def minus(self, other: Duration) -> "Timestamp":
        """The time before the duration. Raises ``CelValueError`` outside years 1 to 9999,
        and if the duration has no opposite."""
        return self.plus(other.negated())

    def since(self, other: "Timestamp") -> Duration:
        """The time from the other to this. Raises ``CelValueError`` on overflow."""
        # The reference checks the whole seconds first.
        seconds = _checked_duration((self.unix - other.unix) * NANOS_PER_SECOND)
        return _checked_duration(seconds.nanos + self.nanos - other.nanos)

    def get_full_year(self, zone: str = "", lookup: ZoneLookup | None = None) -> int:
        """The year. Raises ``CelValueError`` for an unknown zone, like all accessors."""
        return self._date(zone, lookup)[0]

    def get_month(self, zone: str = "", lookup: ZoneLookup | None = None) -> int:
        """The month, 0 to 11."""
        return self._date(zone, lookup)[1] - 1

    def get_date(self, zone: str = "", lookup: ZoneLookup | None = None) -> int:
        """The day of the month, 1 to 31."""
        return self._date(zone, lookup)[2]

    def get_day_of_month(self, zone: str = "", lookup: ZoneLookup | None = None) -> int:
        """The day of the month, 0 to 30."""
        return self._date(zone, lookup)[2] - 1

    def get_day_of_week(self, zone: str = "", lookup: ZoneLookup | None = None) -> int:
        """The day of the week, Sunday 0 to Saturday 6."""
        return (self._local(zone, lookup) // 86_400 + 4) % 7

    def get_day_of_year(self, zone: str = "", lookup: ZoneLookup | None = None) -> int:
        """The day of the year, 0 to 365."""
        days = self._local(zone, lookup) // 86_400
        return days - _days_from_civil(_civil(days)[0], 1, 1)

    def get_hours(self, zone: str = "", lookup: ZoneLookup | None = None) -> int:
        """The hour, 0 to 23."""
        return self._local(zone, lookup) // 3600 % 24

    def get_minutes(self, zone: str = "", lookup: ZoneLookup | None = None) -> int:
        """The minute, 0 to 59."""
        return self._local(zone, lookup) // 60 % 60

    def get_seconds(self, zone: str = "", lookup: ZoneLookup | None = None) -> int:
        """The second, 0 to 59."""
        return self._local(zone, lookup) % 60

    def get_milliseconds(self, zone: str = "", lookup: ZoneLookup | None = None) -> int:
        """The millisecond, 0 to 999."""
        self._local(zone, lookup)
        return self.nanos // 1_000_000

    def _local(self, zone: str, lookup: ZoneLookup | None) -> int:
        return self.unix + zone_offset(zone, self.unix, lookup)

    def _date(self, zone: str, lookup: ZoneLookup | None) -> tuple[int, int, int]:
        return _civil(self._local(zone, lookup) // 86_400)


def parse_duration(text: str) -> Duration:
    """The duration that ``text`` spells: a sign, then numbers with units ("-1h30m", "1.5s").

    Units: ns, us (also with either micro sign), ms, s, m, h. "0" needs no unit.
    Raises ``CelValueError`` for anything else and beyond 64 bits of nanoseconds.
    """
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    if not rest:
        raise CelValueError(f"not a duration: {shown(text)}")
    total = 0
    while rest:
        amount, rest = _duration_part(rest, text)
        total += amount
        if total > 2**63:
            raise CelValueError(f"the duration does not fit 64 bits: {shown(text)}")
    return _checked_duration(-total if negative else total)


def duration_from_nanos(nanos: int) -> Duration:
    """``duration(int)`` of CEL. Raises ``CelValueError`` beyond 64 bits."""
    return _checked_duration(nanos)


def parse_timestamp(text: str) -> Timestamp:
    """The time that ``text`` spells in RFC 3339.

    As in the reference, the hour may have one digit, the fraction may follow a
    comma, and digits beyond nanoseconds are dropped. Raises ``CelValueError`` for
    anything else and outside the years 1 to 9999.
    """
    year, month, day = parse_date(text[:10])
    clock = text[10:]
    # One digit for the hour, by the leniency of the reference's parser.
    if clock[:1] == "T" and clock[2:3] == ":":
        clock = "T0" + clock[1:]
    hour, minute, second = (_two_digits(clock[at : at + 2]) for at in (1, 4, 7))
    well_formed = clock[:1] == "T" and clock[3:4] == ":" and clock[6:7] == ":"
    if not well_formed or not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        raise CelValueError(f"not an RFC 3339 time: {shown(text)}")
    nanos, zone = _split_fraction(clock[9:])
    offset = _written_offset(zone)
    if offset is None:
        raise CelValueError(f"not an RFC 3339 time: {shown(text)}")
    seconds = _days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
    return _checked_timestamp((seconds - offset) * NANOS_PER_SECOND + nanos, offset)


def timestamp_from_unix(seconds: int) -> Timestamp:
    """``timestamp(int)`` of CEL. Raises ``CelValueError`` outside the years 1 to 9999."""
    return _checked_timestamp(seconds * NANOS_PER_SECOND, 0)


def parse_date(text: str) -> tuple[int, int, int]:
    """Year, month and day of a date ``2006-01-02``. Raises ``CelValueError`` if it is none."""
    plain = len(text) == 10 and text[4] == "-" and text[7] == "-"
    digits = text[:4] + text[5:7] + text[8:10]
    if not (plain and digits.isascii() and digits.isdigit()):
        raise CelValueError(f"not a date: {shown(text)}")
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    if not (1 <= month <= 12 and 1 <= day <= _days_in(year, month)):
        raise CelValueError(f"there is no such date: {shown(text)}")
    return year, month, day


def zone_offset(zone: str, unix: int, lookup: ZoneLookup | None = None) -> int:
    """The offset of a zone from UTC in seconds at a time (seconds since 1970 UTC).

    ``zone`` is a fixed offset ("-08:00", "02:00") or a name; see the module for
    the names that need no ``lookup``. Raises ``CelValueError`` for any other.
    """
    hours, colon, minutes = zone.partition(":")
    if colon:
        return _fixed_offset(zone, hours, minutes)
    if zone in _UTC_NAMES:
        return 0
    offset = None if lookup is None else lookup(zone, unix)
    if offset is None:
        hint = "no time zone data were supplied" if lookup is None else "no such time zone"
        raise CelValueError(f"unknown time zone {shown(zone)}: {hint}")
    return offset


def _fixed_offset(zone: str, hours: str, minutes: str) -> int:
    hour_digits = hours[1:] if hours[:1] in ("+", "-") else hours
    digits = hour_digits + minutes
    plain = bool(hour_digits and minutes) and digits.isascii() and digits.isdigit()
    # Six digits of hours are more than a century.
    if not plain or len(hour_digits) > 6 or len(minutes) > 2 or int(minutes) > 59:
        raise CelValueError(f"not an offset from UTC: {shown(zone)}")
    seconds = int(hour_digits) * 3600 + int(minutes) * 60
    return -seconds if zone.startswith("-") else seconds


def _duration_part(rest: str, text: str) -> tuple[int, str]:
    """The first number with its unit in nanoseconds, and what follows it."""
    whole, rest = _split_digits(rest)
    fraction = ""
    if rest[:1] == ".":
        fraction, rest = _split_digits(rest[1:])
    if not whole and not fraction:
        raise CelValueError(f"not a duration: {shown(text)}")
    end = 0
    while end < len(rest) and rest[end] not in "0123456789.":
        end += 1
    unit = _UNITS.get(rest[:end])
    if unit is None:
        problem = "missing" if end == 0 else "unknown"
        raise CelValueError(f"{problem} unit in the duration {shown(text)}")
    # 20 digits are more than 64 bits hold; the exact value does not matter then.
    amount = int(whole.lstrip("0")[:20] or "0") * unit
    return amount + _fraction_of(fraction, unit), rest[end:]


def _fraction_of(digits: str, unit: int) -> int:
    # Floating point, cut off: the reference's arithmetic, which is not always exact.
    # Digits that no longer fit 63 bits are dropped.
    count = min(len(digits), 18)
    while (
        count < len(digits)
        and int(digits[: count + 1]) <= 2**63
        and (int(digits[:count]) <= (2**63 - 1) // 10)
    ):
        count += 1
    value = int(digits[:count] or "0")
    return int(float(value) * (float(unit) / float(10**count))) if value else 0


def _split_digits(text: str) -> tuple[str, str]:
    end = 0
    while end < len(text) and "0" <= text[end] <= "9":
        end += 1
    return text[:end], text[end:]


def _split_fraction(text: str) -> tuple[int, str]:
    """Nanoseconds of the fraction of a second at the start of the text, and the rest."""
    if text[:1] not in (".", ","):
        return 0, text
    digits, rest = _split_digits(text[1:])
    if not digits:
        return 0, text
    return int(digits[:9].ljust(9, "0")), rest


def _written_offset(zone: str) -> int | None:
    if zone == "Z":
        return 0
    hours, minutes = _two_digits(zone[1:3]), _two_digits(zone[4:6])
    plain = len(zone) == 6 and zone[0] in "+-" and zone[3] == ":"
    # 24 hours and 60 minutes are allowed by the reference's parser.
    if not plain or not (0 <= hours <= 24 and 0 <= minutes <= 60):
        return None
    seconds = hours * 3600 + minutes * 60
    return -seconds if zone[0] == "-" else seconds


def _two_digits(text: str) -> int:
    """The number that two digits spell, -1 for anything else."""
    return int(text) if len(text) == 2 and text.isascii() and text.isdigit() else -1


def _spelled_offset(offset: int) -> str:
    if offset == 0:
        return "Z"
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _checked_duration(nanos: int) -> Duration:
    if not MIN_DURATION <= nanos <= MAX_DURATION:
        raise CelValueError("the duration does not fit 64 bits")
    return Duration(nanos)


def _checked_timestamp(nanos: int, offset: int) -> Timestamp:
    unix, rest = divmod(nanos, NANOS_PER_SECOND)
    if not MIN_UNIX <= unix <= MAX_UNIX:
        raise CelValueError("the timestamp is outside the years 1 to 9999")
    return Timestamp(unix, rest, offset)


def _towards_zero(value: int, unit: int) -> int:
    return value // unit if value >= 0 else -(-value // unit)


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_from_civil(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date. Years start in March here, so a leap day ends one."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of the date that many days after 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    return era * 400 + year_of_era + (month <= 2), month, day
