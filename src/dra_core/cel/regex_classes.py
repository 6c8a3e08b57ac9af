"""Sets of characters for regular expressions.

What may live here: the character classes of RE2 syntax (ranges, Perl, POSIX and
Unicode classes), case folding, and the test whether a character is in a set.

A set is never written out: ``\\pL`` is a question to ``unicodedata``, not a table,
and a set that ignores case asks for every character that folds alike. The matcher
asks once per character and remembers the answer, so nothing is built in advance and
importing this module costs nothing.

Case folding is simple folding (one character to one), as in Go: ``k``, ``K`` and
the Kelvin sign fold alike, as do ``s``, ``S`` and the long s; ``ß`` does not fold
to ``ss``. Characters are those of the running Python's Unicode version.
"""

import unicodedata
from bisect import bisect_right
from typing import Final

import attrs

MAX_CODE_POINT: Final = 0x10FFFF
REPLACEMENT: Final = "\ufffd"
"""What Go sees in place of a byte that is no UTF-8, and what a lone surrogate counts as."""

# Characters whose simple folding is not reached from the folded character by
# upper(), title() or lower(): "folded character": the others that fold to it.
_ODD_FOLDS: Final = {
    "k": "\u212a",
    "s": "\u017f",
    "\u00e5": "\u212b",
    "\u00df": "\u1e9e",
    "\u03b2": "\u03d0",
    "\u03b5": "\u03f5",
    "\u03b8": "\u03d1\u03f4",
    "\u03b9": "\u0345\u1fbe",
    "\u03ba": "\u03f0",
    "\u03bc": "\u00b5",
    "\u03c0": "\u03d6",
    "\u03c1": "\u03f1",
    "\u03c3": "\u03c2",
    "\u03c6": "\u03d5",
    "\u03c9": "\u2126",
    "\u0432": "\u1c80",
    "\u0434": "\u1c81",
    "\u043e": "\u1c82",
    "\u0441": "\u1c83",
    "\u0442": "\u1c84\u1c85",
    "\u044a": "\u1c86",
    "\u0463": "\u1c87",
    "\ua64b": "\u1c88",
    "\u1e61": "\u1e9b",
}


@attrs.frozen
class Category:
    """The characters of Unicode general categories, given by prefix ("L", "Lu")."""

    prefixes: tuple[str, ...]

    def contains(self, char: str) -> bool:
        """Is the character in one of the categories?"""
        return unicodedata.category(char).startswith(self.prefixes)


@attrs.frozen
class CharSet:
    """A set of characters: ranges and other sets, united.

    ``ranges`` are pairs of first and last code point, in ascending order and
    disjoint (see ``char_set``). ``fold`` ignores case in what ``ranges`` and
    ``parts`` contain, ``negated`` takes all other characters instead; folding comes
    first.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    parts: "tuple[CharSet | Category, ...]" = ()
    fold: bool = False
    negated: bool = False

    def contains(self, char: str) -> bool:
        """Is the character in the set?"""
        candidates = fold_alike(char) if self.fold else char
        return any(self._has(candidate) for candidate in candidates) != self.negated

    def _has(self, char: str) -> bool:
        at = bisect_right(self.ranges, (ord(char), MAX_CODE_POINT + 1)) - 1
        if at >= 0 and ord(char) <= self.ranges[at][1]:
            return True
        return any(part.contains(char) for part in self.parts)

    def complement(self) -> "CharSet":
        """All characters that are not in this set."""
        return attrs.evolve(self, negated=not self.negated)


def char_set(
    ranges: list[tuple[int, int]],
    parts: "tuple[CharSet | Category, ...]" = (),
    fold: bool = False,
    negated: bool = False,
) -> CharSet:
    """A set from ranges in any order, overlapping or not."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return CharSet(tuple(merged), parts, fold, negated)


ANY: Final = CharSet(((0, MAX_CODE_POINT),))
NOT_NEWLINE: Final = CharSet(((0, 9), (11, MAX_CODE_POINT)))

_DIGIT: Final = ((0x30, 0x39),)
_UPPER: Final = ((0x41, 0x5A),)
_LOWER: Final = ((0x61, 0x7A),)
_WORD: Final = (*_DIGIT, *_UPPER, (0x5F, 0x5F), *_LOWER)

_PERL: Final = {
    "d": _DIGIT,
    "s": ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)),
    "w": _WORD,
}
_POSIX: Final = {
    "alnum": (*_DIGIT, *_UPPER, *_LOWER),
    "alpha": (*_UPPER, *_LOWER),
    "ascii": ((0x00, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": _DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": _LOWER,
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": (*_DIGIT, (0x41, 0x46), (0x61, 0x66)),
}
# Long names of the general categories (Unicode's PropertyValueAliases), folded as
# by _loose_name.
_CATEGORY_NAMES: Final = {
    "other": "C", "control": "Cc", "cntrl": "Cc", "format": "Cf", "unassigned": "Cn",
    "privateuse": "Co", "surrogate": "Cs",
    "letter": "L", "lowercaseletter": "Ll", "modifierletter": "Lm", "otherletter": "Lo",
    "titlecaseletter": "Lt", "uppercaseletter": "Lu",
    "mark": "M", "combiningmark": "M", "spacingmark": "Mc", "enclosingmark": "Me",
    "nonspacingmark": "Mn",
    "number": "N", "decimalnumber": "Nd", "digit": "Nd", "letternumber": "Nl",
    "othernumber": "No",
    "punctuation": "P", "punct": "P", "connectorpunctuation": "Pc", "dashpunctuation": "Pd",
    "closepunctuation": "Pe", "finalpunctuation": "Pf", "initialpunctuation": "Pi",
    "otherpunctuation": "Po", "openpunctuation": "Ps",
    "symbol": "S", "currencysymbol": "Sc", "modifiersymbol": "Sk", "mathsymbol": "Sm",
    "othersymbol": "So",
    "separator": "Z", "lineseparator": "Zl", "paragraphseparator": "Zp", "spaceseparator": "Zs",
}  # fmt: skip
_CATEGORY_LETTERS: Final = {
    "C": "cfnos",
    "L": "lmotu",
    "M": "cen",
    "N": "dlo",
    "P": "cdefios",
    "S": "ckmo",
    "Z": "lps",
}


def perl_class(letter: str, fold: bool) -> CharSet | None:
    """The set of ``\\d``, ``\\s``, ``\\w`` or, in upper case, of its complement."""
    ranges = _PERL.get(letter.lower())
    return None if ranges is None else CharSet(ranges, (), fold, letter.isupper())


def posix_class(name: str, fold: bool) -> CharSet | None:
    """The set of a POSIX class name ("alpha", "^alpha"), None if there is none."""
    ranges = _POSIX.get(name.removeprefix("^"))
    return None if ranges is None else CharSet(ranges, (), fold, name.startswith("^"))


def unicode_class(name: str, fold: bool) -> CharSet | None:
    """The set of a Unicode class name as in ``\\p{name}``, None if there is none.

    Names are general categories, short or long, scripts, and Any, ASCII, Assigned
    and LC. Case, spaces, dashes and underscores do not matter.
    """
    loose = _loose_name(name)
    if loose == "any":
        return ANY
    if loose == "ascii":
        return CharSet(((0, 0x7F),), (), fold)
    if loose == "assigned":
        return CharSet((), (Category(("Cn",)),), False, True)
    if loose in ("lc", "casedletter"):
        return CharSet((), (Category(("Lu", "Ll", "Lt")),), fold)
    short = _CATEGORY_NAMES.get(loose, loose.capitalize())
    if short[:1] in _CATEGORY_LETTERS and short[1:] in ("", *_CATEGORY_LETTERS[short[:1]]):
        return CharSet((), (Category((short,)),), fold)
    ranges = _script(loose)
    return None if ranges is None else CharSet(ranges, (), fold)


def is_surrogate(char: str) -> bool:
    """Is this half of a UTF-16 pair, which no Unicode text contains?"""
    return "\ud800" <= char <= "\udfff"


def fold_key(char: str) -> str:
    """The character that stands for all that fold alike, by Unicode's simple folding."""
    folded = char.casefold()
    if len(folded) == 1:
        return folded
    # casefold() may give several characters; the simple folding is then lower().
    lowered = char.lower()
    return lowered if len(lowered) == 1 else char


def fold_alike(char: str) -> tuple[str, ...]:
    """The character and all others that fold alike, in ascending order."""
    key = fold_key(char)
    candidates = {char, key, key.upper(), key.title(), key.lower(), *_ODD_FOLDS.get(key, "")}
    return tuple(
        sorted(other for other in candidates if len(other) == 1 and fold_key(other) == key)
    )


def _loose_name(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "").lower()


def _script(loose: str) -> tuple[tuple[int, int], ...] | None:
    # The table is large and hardly ever needed: it is read when a pattern names a script.
    from dra_core.cel.regex_scripts import script_ranges

    return script_ranges(loose)
