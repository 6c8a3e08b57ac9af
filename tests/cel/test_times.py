"""Durations and timestamps: texts, limits, arithmetic, parts, time zones."""

import contextlib
import datetime
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.cel.times import (
    MAX_DURATION,
    MAX_UNIX,
    MIN_DURATION,
    MIN_UNIX,
    Duration,
    Timestamp,
    duration_from_nanos,
    parse_date,
    parse_duration,
    parse_timestamp,
    timestamp_from_unix,
    zone_offset,
)
from dra_core.errors import CelValueError

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


# --- durations -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0),
        ("-0", 0),
        ("+0", 0),
        ("0s", 0),
        ("1ns", 1),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("1μs", 1_000),
        ("1ms", 1_000_000),
        ("1s", SECOND),
        ("1m", MINUTE),
        ("1h", HOUR),
        ("1h30m", 90 * MINUTE),
        ("90s", 90 * SECOND),
        ("-1.5s", -1_500_000_000),
        ("+1.5s", 1_500_000_000),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("1s1s1h", HOUR + 2 * SECOND),
        ("01h", HOUR),
        ("0.000000001s", 1),
        ("0.0000000001s", 0),
        ("1.9ns", 1),
        ("0.3333333333333333333h", 20 * MINUTE),
        ("0.9223372036854775807h", 3_320_413_933_267),
        ("0.9223372036854775808h", 3_320_413_933_267),
        ("0.100000000000000000000h", 6 * MINUTE),
        ("9223372036854775807ns", MAX_DURATION),
        ("-9223372036854775808ns", MIN_DURATION),
        ("9223372036.854775807s", MAX_DURATION),
        ("00000000000000000000000001s", SECOND),
        ("2562047h47m16.854775807s", MAX_DURATION),
    ],
)
def test_duration_texts(text: str, nanos: int) -> None:
    """A duration is a sign and numbers with units; fractions below a nanosecond are cut."""
    assert parse_duration(text) == Duration(nanos)


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "+", "bad", "1", "3", ".", ".s", "+.s", "-.s", "1x", "1d", "1S", "1 s", " 1s",
        "1s ", "--1s", "1s-1s", "1h1", "s", "1.5.5s", "1e3s", "１s", "1ks",
        "9223372036854775808ns", "-9223372036854775809ns", "9223372036854775809ns",
        "9223372036.854775808s", "2562048h", "99999999999999999999999999s", "3000000h",
        "9223372036854775807ns1ns", "1" * 10_000 + "s", "1" * 10_000,
    ],
)  # fmt: skip
def test_no_durations(text: str) -> None:
    """Missing or unknown units, blanks, and more than 64 bits are refused."""
    with pytest.raises(CelValueError) as caught:
        parse_duration(text)
    assert len(caught.value.problem) < 200


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0s"),
        ("1h30m", "5400s"),
        ("-1.5s", "-1.5s"),
        ("1ns", "0.000000001s"),
        ("-1ns", "-0.000000001s"),
        ("1ms", "0.001s"),
        ("9223372036854775807ns", "9223372036.854776s"),
        ("100000h", "360000000s"),
        ("0.1s", "0.1s"),
    ],
)
def test_duration_prints_seconds(text: str, printed: str) -> None:
    """A duration prints as its seconds, without an exponent, as precise as a float."""
    assert str(parse_duration(text)) == printed


def test_duration_parts_are_totals() -> None:
    """The accessors give the whole duration in a unit, towards zero."""
    duration = parse_duration("1h2m3.456s")
    assert duration.get_hours() == 1
    assert duration.get_minutes() == 62
    assert duration.get_seconds() == 3723
    assert duration.get_milliseconds() == 3_723_456
    negative = parse_duration("-1h2m3.456s")
    assert negative.get_hours() == -1
    assert negative.get_minutes() == -62
    assert negative.get_seconds() == -3723
    assert negative.get_milliseconds() == -3_723_456
    assert parse_duration("90s").get_minutes() == 1


def test_duration_parts_are_rounded_like_floats() -> None:
    """A nanosecond below a large whole unit counts as the unit, by the reference's floats."""
    assert Duration(2_000_000 * HOUR - 1).get_hours() == 2_000_000
    assert Duration(2 * HOUR - 1).get_hours() == 1


def test_duration_arithmetic() -> None:
    """Sums, differences and opposites; order is by length."""
    hour, minute = parse_duration("1h"), parse_duration("1m")
    assert hour.plus(minute) == parse_duration("61m")
    assert hour.minus(minute) == parse_duration("59m")
    assert minute.negated() == parse_duration("-1m")
    assert minute < hour
    assert hour >= hour


def test_duration_overflow() -> None:
    """A result beyond 64 bits is an error."""
    longest, shortest, tick = Duration(MAX_DURATION), Duration(MIN_DURATION), Duration(1)
    assert longest.minus(tick).plus(tick) == longest
    cases: list[Callable[[], object]] = [
        lambda: longest.plus(tick),
        lambda: shortest.minus(tick),
        shortest.negated,
        lambda: duration_from_nanos(MAX_DURATION + 1),
        lambda: duration_from_nanos(MIN_DURATION - 1),
    ]
    for overflowing in cases:
        with pytest.raises(CelValueError):
            overflowing()
    assert duration_from_nanos(MIN_DURATION) == shortest


# --- timestamps ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "unix", "nanos", "printed"),
    [
        ("1970-01-01T00:00:00Z", 0, 0, None), ("2024-01-02T03:04:05Z", 1_704_164_645, 0, None),
        ("2024-02-29T00:00:00Z", 1_709_164_800, 0, None),
        ("1969-12-31T23:59:59.5Z", -1, 500_000_000, None),
        ("0001-01-01T00:00:00Z", MIN_UNIX, 0, None),
        ("9999-12-31T23:59:59.999999999Z", MAX_UNIX, 999_999_999, None),
        ("2024-01-02T03:04:05.120Z", 1_704_164_645, 120_000_000, "2024-01-02T03:04:05.12Z"),
        ("2024-01-02T03:04:05.1234567891Z", 1_704_164_645, 123_456_789,
         "2024-01-02T03:04:05.123456789Z"),
        ("2024-01-02T03:04:05,5Z", 1_704_164_645, 500_000_000, "2024-01-02T03:04:05.5Z"),
        ("2024-01-02T3:04:05Z", 1_704_164_645, 0, "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05+05:30", 1_704_144_845, 0, None),
        ("2024-01-02T03:04:05-08:00", 1_704_193_445, 0, None),
        ("2024-01-02T03:04:05+00:00", 1_704_164_645, 0, "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05-00:00", 1_704_164_645, 0, "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05+24:60", 1_704_074_645, 0, "2024-01-02T03:04:05+25:00"),
        ("0000-12-31T23:30:00-01:00", MIN_UNIX + 1_800, 0, None),
    ],
)  # fmt: skip
def test_timestamp_texts(text: str, unix: int, nanos: int, printed: str | None) -> None:
    """A timestamp is RFC 3339 with nanoseconds, and prints in the zone that it was written in."""
    timestamp = parse_timestamp(text)
    assert (timestamp.unix, timestamp.nanos) == (unix, nanos)
    assert str(timestamp) == (text if printed is None else printed)


@pytest.mark.parametrize(
    "text",
    [
        "", "nope", "2024-01-02", "2024-01-02T03:04:05", "2024-01-02 03:04:05Z",
        "2024-01-02t03:04:05Z", "2024-01-02T03:04:05z", "2024-01-02T03:04Z",
        "2024-1-02T03:04:05Z", "24-01-02T03:04:05Z", "2024-02-30T03:04:05Z",
        "2023-02-29T03:04:05Z", "2024-13-01T03:04:05Z", "2024-01-02T24:00:00Z",
        "2024-01-02T03:60:00Z", "2024-01-02T03:04:60Z", "2024-01-02T03:4:05Z",
        "2024-01-02T03:04:5Z", "2024-01-02T03:04:05.Z", "2024-01-02T03:04:05.5",
        "2024-01-02T03:04:05+5", "2024-01-02T03:04:05+0530", "2024-01-02T03:04:05+05:3",
        "2024-01-02T03:04:05+25:00", "2024-01-02T03:04:05+05:61", "2024-01-02T03:04:05ZZ",
        "2024-01-02T03:04:05Z ", " 2024-01-02T03:04:05Z", "-024-01-02T03:04:05Z",
        "10000-01-01T00:00:00Z", "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01", "２024-01-02T03:04:05Z", "2024-01-02T０3:04:05Z",
        "2024-01-02T:04:05Z", "2024-01-02T003:04:05Z", "2024-01-02T03:04:05.٣Z",
    ],
)  # fmt: skip
def test_no_timestamps(text: str) -> None:
    """Other forms, times that do not exist, and years beyond 1 to 9999 are refused."""
    with pytest.raises(CelValueError) as caught:
        parse_timestamp(text)
    assert len(caught.value.problem) < 200


def test_equal_in_any_zone() -> None:
    """Timestamps are equal, one key, and ordered by time, whatever zone they print."""
    here = parse_timestamp("2024-01-02T03:04:05+02:00")
    there = parse_timestamp("2024-01-02T01:04:05Z")
    assert here == there
    assert hash(here) == hash(there)
    assert not here < there
    assert here <= there
    assert here < parse_timestamp("2024-01-02T01:04:05.000000001Z")


def test_timestamp_arithmetic() -> None:
    """Adding and taking away durations keeps the zone; two timestamps differ by a duration."""
    start = parse_timestamp("2024-01-02T03:04:05+02:00")
    hour = parse_duration("1h")
    assert str(start.plus(hour)) == "2024-01-02T04:04:05+02:00"
    assert str(start.minus(hour)) == "2024-01-02T02:04:05+02:00"
    assert start.plus(hour).since(start) == hour
    assert start.since(start.plus(hour)) == hour.negated()
    assert str(start.minus(parse_duration("0.1s"))) == "2024-01-02T03:04:04.9+02:00"


def test_timestamp_overflow() -> None:
    """Results outside the years 1 to 9999, or beyond 64 bits of nanoseconds, are errors."""
    first, last = Timestamp(MIN_UNIX), Timestamp(MAX_UNIX, 999_999_999)
    tick = Duration(1)
    cases: list[Callable[[], object]] = [
        lambda: first.minus(tick),
        lambda: last.plus(tick),
        lambda: last.since(first),
        lambda: first.since(last),
        lambda: Timestamp(0).minus(Duration(MIN_DURATION)),
        lambda: timestamp_from_unix(MAX_UNIX + 1),
        lambda: timestamp_from_unix(MIN_UNIX - 1),
    ]
    for overflowing in cases:
        with pytest.raises(CelValueError):
            overflowing()
    assert timestamp_from_unix(MAX_UNIX).nanos == 0
    assert timestamp_from_unix(MIN_UNIX) == first


def test_parts() -> None:
    """The accessors use UTC, months and days of month and year from 0 but for getDate."""
    timestamp = parse_timestamp("2024-12-31T23:04:05.678+02:00")
    assert timestamp.get_full_year() == 2024
    assert timestamp.get_month() == 11
    assert timestamp.get_date() == 31
    assert timestamp.get_day_of_month() == 30
    assert timestamp.get_day_of_year() == 365
    assert timestamp.get_day_of_week() == 2
    assert timestamp.get_hours() == 21
    assert timestamp.get_minutes() == 4
    assert timestamp.get_seconds() == 5
    assert timestamp.get_milliseconds() == 678


def test_parts_in_a_zone() -> None:
    """With a zone the accessors give the parts that a clock there shows."""
    timestamp = parse_timestamp("2024-12-31T23:34:05.678Z")
    assert timestamp.get_full_year("+05:30") == 2025
    assert timestamp.get_month("+05:30") == 0
    assert timestamp.get_date("+05:30") == 1
    assert timestamp.get_day_of_month("+05:30") == 0
    assert timestamp.get_day_of_year("+05:30") == 0
    assert timestamp.get_day_of_week("+05:30") == 3
    assert timestamp.get_hours("+05:30") == 5
    assert timestamp.get_minutes("+05:30") == 4
    assert timestamp.get_minutes("-00:35") == 59
    assert timestamp.get_seconds("+05:30") == 5
    assert timestamp.get_milliseconds("+05:30") == 678


def test_a_zone_may_lead_out_of_the_years() -> None:
    """At the ends of time a zone can show a year that no timestamp has."""
    assert Timestamp(MIN_UNIX).get_full_year("-00:01") == 0
    assert Timestamp(MIN_UNIX).get_month("-00:01") == 11
    assert Timestamp(MAX_UNIX).get_full_year("+00:01") == 10_000
    assert Timestamp(MAX_UNIX).get_day_of_year("+00:01") == 0


@pytest.mark.parametrize(
    ("zone", "offset"),
    [
        ("", 0),
        ("UTC", 0),
        ("Etc/UTC", 0),
        ("GMT", 0),
        ("+05:30", 19_800),
        ("-08:30", -30_600),
        ("-00:30", -1_800),
        ("02:00", 7_200),
        ("2:5", 7_500),
        ("+23:00", 82_800),
    ],
)
def test_zones_without_data(zone: str, offset: int) -> None:
    """UTC by its names and fixed offsets need no data."""
    assert zone_offset(zone, 0) == offset


@pytest.mark.parametrize(
    "zone",
    [
        "Europe/Paris", "Local", "utc", "+0530", "+05:60", "+00:99", "+05:-30", ":30", "+:30",
        "05:", "+-5:30", "++5:30", "a:b", "5:30:00", " 05:30", "+1234567:00", "+05:030", "+٣:00",
    ],
)  # fmt: skip
def test_zones_that_need_data(zone: str) -> None:
    """Names need a look-up of the caller, and malformed offsets are errors always."""
    with pytest.raises(CelValueError):
        zone_offset(zone, 0)
    with pytest.raises(CelValueError):
        Timestamp(0).get_hours(zone)


def test_supplied_zones() -> None:
    """A look-up of the caller resolves names at the time in question."""

    def lookup(name: str, unix: int) -> int | None:
        return (3_600 if unix < 1_000 else 7_200) if name == "Europe/Paris" else None

    assert Timestamp(0).get_hours("Europe/Paris", lookup) == 1
    assert Timestamp(3_600).get_hours("Europe/Paris", lookup) == 3
    assert Timestamp(0).get_hours("UTC", lookup) == 0
    assert Timestamp(0).get_hours("+05:00", lookup) == 5
    with pytest.raises(CelValueError, match="no such time zone"):
        Timestamp(0).get_hours("Europe/Nowhere", lookup)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2024-02-29", (2024, 2, 29)), ("0000-02-29", (0, 2, 29)), ("1900-02-28", (1900, 2, 28))],
)
def test_dates(text: str, expected: tuple[int, int, int]) -> None:
    """A date is year, month and day of the proleptic Gregorian calendar."""
    assert parse_date(text) == expected


@pytest.mark.parametrize("text", ["1900-02-29", "2024-04-31", "2024-00-10", "2024-1-01", ""])
def test_no_dates(text: str) -> None:
    """Dates that do not exist are refused."""
    with pytest.raises(CelValueError):
        parse_date(text)


def test_answers_of_recorded_selectors() -> None:
    """The recorded expressions about times hold."""
    assert parse_duration("1h") > parse_duration("1m")
    assert parse_duration("90s").get_minutes() == 1
    timestamp = parse_timestamp("2024-01-02T03:04:05Z")
    assert timestamp.get_full_year() == 2024
    assert timestamp.get_hours() == 3
    assert timestamp.get_day_of_week() == 2
    assert timestamp.plus(parse_duration("1h")) > timestamp


# --- laws ------------------------------------------------------------------------------

durations = st.integers(MIN_DURATION, MAX_DURATION).map(Duration)
short_durations = st.integers(-(2**53) // SECOND, 2**53 // SECOND).map(
    lambda millis: Duration(millis * 1_000_000)
)
offsets = st.integers(-24 * 60, 24 * 60).map(lambda minutes: minutes * 60)
timestamps = st.builds(
    Timestamp, st.integers(MIN_UNIX, MAX_UNIX), st.integers(0, SECOND - 1), offsets
)


@given(short_durations)
def test_duration_round_trip(duration: Duration) -> None:
    """What a duration prints parses to it, but for a nanosecond lost in floating point."""
    assert abs(parse_duration(str(duration)).nanos - duration.nanos) <= 1


@given(durations, durations)
def test_duration_laws(one: Duration, other: Duration) -> None:
    """A sum less one part is the other part; order agrees with the sign of the difference."""
    try:
        total = one.plus(other)
    except CelValueError:
        assert not MIN_DURATION <= one.nanos + other.nanos <= MAX_DURATION
        return
    assert total.minus(other) == one
    assert (one < total) == (other.nanos > 0)


@given(timestamps)
def test_timestamp_round_trip(timestamp: Timestamp) -> None:
    """A timestamp prints as a text that parses to it, zone included."""
    year = timestamp.get_full_year(zone_text(timestamp.offset))
    if not 0 <= year <= 9999:
        return
    copy = parse_timestamp(str(timestamp))
    assert copy == timestamp
    assert copy.offset == timestamp.offset


def zone_text(offset: int) -> str:
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


@given(timestamps, offsets)
def test_parts_agree_with_datetime(timestamp: Timestamp, offset: int) -> None:
    """Within its years, the parts are those that datetime computes."""
    start = datetime.datetime(1970, 1, 1)
    try:
        expected = start + datetime.timedelta(seconds=timestamp.unix + offset)
    except OverflowError:
        return
    zone = zone_text(offset)
    assert timestamp.get_full_year(zone) == expected.year
    assert timestamp.get_month(zone) == expected.month - 1
    assert timestamp.get_date(zone) == expected.day
    assert timestamp.get_day_of_month(zone) == expected.day - 1
    assert timestamp.get_day_of_year(zone) == expected.timetuple().tm_yday - 1
    assert timestamp.get_day_of_week(zone) == expected.isoweekday() % 7
    assert timestamp.get_hours(zone) == expected.hour
    assert timestamp.get_minutes(zone) == expected.minute
    assert timestamp.get_seconds(zone) == expected.second


@given(timestamps, durations)
def test_timestamp_laws(timestamp: Timestamp, duration: Duration) -> None:
    """What is added can be taken away again, and is the time between."""
    try:
        later = timestamp.plus(duration)
    except CelValueError:
        nanos = timestamp.unix * SECOND + timestamp.nanos + duration.nanos
        assert not MIN_UNIX * SECOND <= nanos < (MAX_UNIX + 1) * SECOND
        return
    if duration.nanos > MIN_DURATION:
        assert later.minus(duration) == timestamp
    if abs(duration.nanos) < MAX_DURATION - 2 * SECOND:
        assert later.since(timestamp) == duration
    assert (later > timestamp) == (duration.nanos > 0)


@given(st.text(alphabet="0123456789.hmsnuµ-+T:Z", max_size=30))
def test_never_fails_otherwise(text: str) -> None:
    """No text makes a parser fail in any other way than by its own error."""
    parsers: list[Callable[[str], object]] = [parse_duration, parse_timestamp, parse_date]
    for parse in parsers:
        with contextlib.suppress(CelValueError):
            parse(text)
