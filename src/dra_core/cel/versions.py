"""Semantic versions as CEL selectors see them.

What may live here: the version value of the Kubernetes ``semver`` library, its
parser, its normalisation and its order. Nothing here knows the CEL compiler.

The grammar is that of semver.org 2.0.0, for which the ``semver`` package is the
parser. Two things are added: every number, also one between the dots of a
pre-release, must fit 64 bits without a sign, and equality and order ignore build
metadata, which semver.org excludes from precedence.

Source: Kubernetes CEL library ``kubernetes.Semver``, version 1 (KEP-4381).
"""

from typing import Final

import attrs
import semver

from dra_core.cel.quoting import shown
from dra_core.errors import CelValueError

MAX_NUMBER: Final = 2**64 - 1
"""Largest number in a version: the reference keeps 64 bits without a sign."""

_Identifier = tuple[int, int, str]


@attrs.frozen
class SemVer:
    """A semantic version.

    ``prerelease`` and ``build`` are the identifiers between the dots, in the order
    written. Two versions that differ in ``build`` only are equal and have the same
    hash.
    """

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    build: tuple[str, ...] = attrs.field(default=(), eq=False)
    _precedence: tuple[int, int, int, bool, tuple[_Identifier, ...]] = attrs.field(
        init=False, eq=False, repr=False
    )

    @_precedence.default
    def _compute_precedence(self) -> tuple[int, int, int, bool, tuple[_Identifier, ...]]:
        # A release comes after all its pre-releases, hence the flag before them.
        identifiers = tuple(_identifier_key(part) for part in self.prerelease)
        return (self.major, self.minor, self.patch, not self.prerelease, identifiers)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(self.prerelease)
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def compare(self, other: "SemVer") -> int:
        """-1, 0 or 1: does this version come before, with, or after the other?"""
        mine, theirs = self._precedence, other._precedence
        return (mine > theirs) - (mine < theirs)

    def is_less_than(self, other: "SemVer") -> bool:
        """Does this version come before the other? Build metadata does not count."""
        return self._precedence < other._precedence

    def is_greater_than(self, other: "SemVer") -> bool:
        """Does this version come after the other? Build metadata does not count."""
        return self._precedence > other._precedence

    def major_int(self) -> int:
        """``major()`` of CEL: the number as a signed 64-bit integer."""
        return _signed(self.major)

    def minor_int(self) -> int:
        """``minor()`` of CEL: the number as a signed 64-bit integer."""
        return _signed(self.minor)

    def patch_int(self) -> int:
        """``patch()`` of CEL: the number as a signed 64-bit integer."""
        return _signed(self.patch)


def parse_semver(text: str, normalize: bool = False) -> SemVer:
    """The version that ``text`` spells.

    With ``normalize``, one leading "v" is dropped, missing minor and patch numbers
    are 0, and leading zeros of the three numbers are dropped; a version without a
    patch number must then not have a pre-release or build metadata.

    Raises ``CelValueError`` if the text is not a version. Cost: linear in the text.
    """
    spelled = _normalized(text) if normalize else text
    try:
        parsed = semver.Version.parse(spelled)
    except (ValueError, TypeError) as error:
        raise CelValueError(f"not a semantic version: {shown(text)}") from error
    version = SemVer(
        parsed.major,
        parsed.minor,
        parsed.patch,
        tuple(parsed.prerelease.split(".")) if parsed.prerelease else (),
        tuple(parsed.build.split(".")) if parsed.build else (),
    )
    _check_numbers(version, text)
    return version


def is_semver(text: str, normalize: bool = False) -> bool:
    """Would ``parse_semver`` accept the text?"""
    try:
        parse_semver(text, normalize)
    except CelValueError:
        return False
    return True


def _check_numbers(version: SemVer, text: str) -> None:
    numbers = [version.major, version.minor, version.patch]
    numbers += [number for kind, number, _ in version._precedence[4] if kind == 0]
    if max(numbers) > MAX_NUMBER:
        raise CelValueError(f"a number has more than 64 bits in the version {shown(text)}")


def _identifier_key(identifier: str) -> _Identifier:
    # Numbers come before words, numbers by value, words by their ASCII codes.
    if identifier.isdigit():
        # More than 20 digits cannot fit 64 bits: no need for an exact value.
        return (0, int(identifier) if len(identifier) <= 20 else MAX_NUMBER + 1, "")
    return (1, 0, identifier)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    parts = [_without_leading_zeros(part) for part in parts]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise CelValueError(
                f"a version without patch number has pre-release or build metadata: {shown(text)}"
            )
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in tuple("0123456789") else "0" + stripped


def _signed(number: int) -> int:
    # The reference converts without a check: the upper half wraps around.
    return number - 2**64 if number >= 2**63 else number
