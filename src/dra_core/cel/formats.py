"""Named string formats as CEL selectors see them.

What may live here: the formats of the Kubernetes ``format`` library, each a name and
a check. Nothing here knows the CEL compiler.

A check returns the problems of a text, none if it is well formed. How many problems
there are follows the reference; the wording is our own. Lengths count UTF-8 bytes.

Source: Kubernetes CEL library ``format``.
"""

import string
from collections.abc import Callable
from typing import Final

import attrs

from dra_core.cel.times import parse_date
from dra_core.cel.urls import url_problem
from dra_core.errors import CelValueError

LABEL_MAX: Final = 63
"""Longest DNS label, label value and name part of a label key (RFC 1123), in bytes."""
SUBDOMAIN_MAX: Final = 253
"""Longest DNS subdomain (RFC 1123), in bytes."""

_LOWER: Final = frozenset(string.ascii_lowercase)
_DIGITS: Final = frozenset(string.digits)
_LOWER_ALNUM: Final = _LOWER | _DIGITS
_ALNUM: Final = frozenset(string.ascii_letters) | _DIGITS
_BASE64: Final = _ALNUM | frozenset("+/")
_HEX: Final = frozenset(string.hexdigits)


@attrs.frozen
class Format:
    """A named format. ``max_regex_size`` is the size that the cost of a check counts with."""

    name: str
    max_regex_size: int
    _check: Callable[[str], list[str]] = attrs.field(eq=False, repr=False)

    def validate(self, text: str) -> list[str] | None:
        """What is wrong with the text, or None if it has this format.

        Raises ``CelValueError`` where the reference fails: the text "-" against a
        prefix format.
        """
        return self._check(text) or None


def named_format(name: str) -> Format | None:
    """The format of that name, or None if there is none."""
    return FORMATS.get(name)


def _dns1123_label(text: str) -> list[str]:
    problems = _length_problems(text, LABEL_MAX)
    if not _is_word(text, _LOWER_ALNUM, _LOWER_ALNUM, _LOWER_ALNUM | {"-"}):
        if _is_subdomain(text):
            problems.append("dots are not allowed")
        else:
            problems.append(
                "only lower case letters, digits and '-' are allowed, '-' neither first nor last"
            )
    return problems


def _dns1123_subdomain(text: str) -> list[str]:
    problems = _length_problems(text, SUBDOMAIN_MAX)
    if not _is_subdomain(text):
        problems.append(
            "not one or more labels with dots between: lower case letters, digits and '-'"
        )
    return problems


def _dns1035_label(text: str) -> list[str]:
    problems = _length_problems(text, LABEL_MAX)
    if not _is_word(text, _LOWER, _LOWER_ALNUM, _LOWER_ALNUM | {"-"}):
        problems.append(
            "only lower case letters, digits and '-' are allowed, a letter first, '-' not last"
        )
    return problems


def _prefix_of(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """A check of a text to which characters will be appended: it may end in a dash."""

    def check_prefix(text: str) -> list[str]:
        if text == "-":
            raise CelValueError("the text '-' cannot be checked as a prefix")
        # The reference replaces the last two characters, not only the dash.
        return check(text[:-2] + "a" if text.endswith("-") else text)

    return check_prefix


def _label_value(text: str) -> list[str]:
    problems = _length_problems(text, LABEL_MAX)
    if text and not _is_label_name(text):
        problems.append(_LABEL_NAME_PROBLEM)
    return problems


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        return ["more than one '/': a label key is a name with an optional domain and '/' before"]
    problems: list[str] = []
    if len(parts) == 2:
        prefix_problems = _dns1123_subdomain(parts[0]) if parts[0] else ["empty"]
        problems += [f"prefix: {problem}" for problem in prefix_problems]
    name = parts[-1]
    name_problems = _length_problems(name, LABEL_MAX) if name else ["empty"]
    if not _is_label_name(name):
        name_problems.append(_LABEL_NAME_PROBLEM)
    return problems + [f"name: {problem}" for problem in name_problems]


def _uri(text: str) -> list[str]:
    problem = url_problem(text)
    return [] if problem is None else [f"not a URI: {problem}"]


def _uuid(text: str) -> list[str]:
    """Groups of 8, 4, 4, 4 and 12 hexadecimal digits; each dash between may be missing."""
    rest = text
    for length in (8, 4, 4, 4, 12):
        group, rest = rest[:length], rest[length:]
        if len(group) < length or not _HEX.issuperset(group):
            return ["not a UUID"]
        if length != 12:
            rest = rest.removeprefix("-")
    return ["not a UUID"] if rest else []


def _byte(text: str) -> list[str]:
    digits = text.removesuffix("=").removesuffix("=")
    valid = bool(text) and len(text) % 4 == 0 and _BASE64.issuperset(digits)
    return [] if valid else ["not base64"]


def _date(text: str) -> list[str]:
    try:
        parse_date(text)
    except CelValueError:
        return ["not a date"]
    return []


def _datetime(text: str) -> list[str]:
    """A date, "T" and a time with a zone, in either case; text after a second "T" is ignored."""
    parts = text.replace("t", "T").split("T")
    valid = len(parts) >= 2 and not _date(parts[0]) and _is_time_of_day(parts[1])
    return [] if valid else ["not a date and time"]


def _is_time_of_day(text: str) -> bool:
    clock, rest = text[:8], text[8:]
    digits = clock[0:2] + clock[3:5] + clock[6:8]
    shaped = len(clock) == 8 and clock[2] == clock[5] == ":"
    if not (shaped and _DIGITS.issuperset(digits)):
        return False
    if clock[0:2] > "23" or clock[3:5] > "59" or clock[6:8] > "59":
        return False
    fraction = rest[:-1] if rest[-1:] in ("z", "Z") else rest[:-6]
    return (rest[-1:] in ("z", "Z") or _is_offset(rest[-6:])) and _is_fraction(fraction)


def _is_offset(text: str) -> bool:
    digits = text[1:3] + text[4:6]
    return len(text) == 6 and text[0] in "+-" and text[3] == ":" and _DIGITS.issuperset(digits)


def _is_fraction(text: str) -> bool:
    # Any character but a line feed may stand for the point, as in the reference's pattern.
    return not text or (text[0] != "\n" and len(text) > 1 and _DIGITS.issuperset(text[1:]))


def _is_subdomain(text: str) -> bool:
    return all(
        _is_word(label, _LOWER_ALNUM, _LOWER_ALNUM, _LOWER_ALNUM | {"-"})
        for label in text.split(".")
    )


def _is_label_name(text: str) -> bool:
    return _is_word(text, _ALNUM, _ALNUM, _ALNUM | frozenset("-_."))


_LABEL_NAME_PROBLEM: Final = (
    "only letters, digits, '-', '_' and '.' are allowed, a letter or digit first and last"
)


def _is_word(text: str, first: frozenset[str], last: frozenset[str], inner: frozenset[str]) -> bool:
    return bool(text) and text[0] in first and text[-1] in last and inner.issuperset(text)


def _length_problems(text: str, limit: int) -> list[str]:
    if len(text.encode("utf-8", "surrogatepass")) > limit:
        return [f"longer than {limit} bytes"]
    return []


FORMATS: Final[dict[str, Format]] = {
    format_name: Format(format_name, size, check)
    for format_name, size, check in (
        ("dns1123Label", 30, _dns1123_label),
        ("dns1123Subdomain", 60, _dns1123_subdomain),
        ("dns1035Label", 30, _dns1035_label),
        ("qualifiedName", 60, _qualified_name),
        ("dns1123LabelPrefix", 30, _prefix_of(_dns1123_label)),
        ("dns1123SubdomainPrefix", 60, _prefix_of(_dns1123_subdomain)),
        ("dns1035LabelPrefix", 30, _prefix_of(_dns1035_label)),
        ("labelValue", 40, _label_value),
        ("uri", 1080, _uri),
        ("uuid", 70, _uuid),
        ("byte", 84, _byte),
        ("date", 71, _date),
        ("datetime", 71, _datetime),
    )
}
"""Every format by its name. Sizes: the lengths of the patterns that the reference counts
with, also where it checks by other means."""
