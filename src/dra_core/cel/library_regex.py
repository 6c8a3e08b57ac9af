"""Patterns: matching and finding.

What may live here: one row per function that takes a regular expression, and the binding
of a literal pattern, which is compiled once.

Source: CEL's ``matches`` and the API server's ``find`` and ``findAll``.
"""

from collections.abc import Callable
from typing import Final

from dra_core.cel import cost
from dra_core.cel.library import function, member
from dra_core.cel.regex import Regex, compile_regex
from dra_core.cel.values import Value


def _matches(text: str, pattern: str) -> bool:
    return compile_regex(pattern).search(text)


def _find(text: str, pattern: str) -> str:
    return _first_match(compile_regex(pattern), text)


def _find_all(text: str, pattern: str, limit: int = -1) -> tuple[str, ...]:
    return _all_matches(compile_regex(pattern), text, limit)


def _first_match(regex: Regex, text: str) -> str:
    return regex.find(text) or ""


def _all_matches(regex: Regex, text: str, limit: int = -1) -> tuple[str, ...]:
    return tuple(regex.find_all(text, limit))


_BINDERS: Final[dict[str, Callable[[Regex], Callable[..., Value]]]] = {
    "matches": lambda regex: lambda text, pattern: regex.search(text),
    "find": lambda regex: lambda text, pattern: _first_match(regex, text),
    "findAll": lambda regex: lambda text, pattern, *limit: _all_matches(regex, text, *limit),
}

PATTERN_FUNCTIONS: Final = frozenset(_BINDERS)
"""Functions whose second argument is a pattern; a literal one is checked when compiling."""


def bind_pattern(name: str, pattern: str) -> Callable[..., Value]:
    """The function of that name for one pattern, with the arguments of the row.

    Raises RegexError if the pattern is none.
    """
    return _BINDERS[name](compile_regex(pattern))


ROWS: Final = (
    function("matches", "string, string", "bool", _matches),
    member("matches", "string, string", "bool", _matches, cost=cost.MATCHES),
    member("find", "string, string", "string", _find, cost=cost.FIND),
    member("findAll", "string, string", "list(string)", _find_all, cost=cost.FIND),
    member("findAll", "string, string, int", "list(string)", _find_all, cost=cost.FIND),
)
