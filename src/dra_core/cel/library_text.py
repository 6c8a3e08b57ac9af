"""Texts: searching, cutting and joining.

What may live here: one row per string function and its implementation. Positions count
code points. Formatting is in ``text_format``, patterns are in ``library_regex``.

Source: CEL's standard string functions and cel-go's strings extension, version 2.
"""

from typing import Final

from dra_core.cel import cost
from dra_core.cel.library import function, member
from dra_core.cel.library_core import grown
from dra_core.cel.problems import EvalProblem
from dra_core.cel.text_format import format_text

# Unicode's White_Space, which is what the reference trims.
_BLANKS: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)

_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}

_ESCAPES: Final = str.maketrans(
    {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
     "\v": "\\v", "\\": "\\\\", '"': '\\"'}
)  # fmt: skip


def _out_of_range(index: int) -> EvalProblem:
    return EvalProblem(f"index {index} is out of range")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_of_before(text: str, part: str, last: int) -> int:
    if not part:
        return last
    if last < 0:
        raise _out_of_range(last)
    # Beyond the end there is nothing, although a match could start before.
    return text.rfind(part, 0, last + len(part)) if last < len(text) else -1


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    count = text.count(old)
    if limit >= 0:
        count = min(count, limit)
    grown(len(text) + count * (len(new) - len(old)))
    return text.replace(old, new, count)


def _split(text: str, separator: str, limit: int = -1) -> tuple[str, ...]:
    if limit == 0:
        return ()
    if separator:
        return tuple(text.split(separator, limit - 1 if limit > 0 else -1))
    if limit < 0 or limit > len(text):
        return tuple(text)
    return (*text[: limit - 1], text[limit - 1 :])


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if not start <= end <= len(text):
        raise EvalProblem(f"there is no substring from {start} to {end}")
    return text[start:end]


def _join(parts: tuple[str, ...], separator: str = "") -> str:
    for part in parts:
        if part.__class__ is not str:
            raise EvalProblem("join() takes a list of texts")
    grown(sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0))
    return separator.join(parts)


def _quote(text: str) -> str:
    grown(2 * len(text))
    return f'"{text.translate(_ESCAPES)}"'


ROWS: Final = (
    member("contains", "string, string", "bool", str.__contains__, cost=cost.CONTAINS),
    member("startsWith", "string, string", "bool", str.startswith, cost=cost.SCAN_ARGUMENT),
    member("endsWith", "string, string", "bool", str.endswith, cost=cost.SCAN_ARGUMENT),
    member("charAt", "string, int", "string", _char_at),
    member("indexOf", "string, string", "int", _index_of, cost=cost.TRAVERSAL),
    member("indexOf", "string, string, int", "int", _index_of, cost=cost.TRAVERSAL),
    member("lastIndexOf", "string, string", "int", _last_index_of, cost=cost.TRAVERSAL),
    member("lastIndexOf", "string, string, int", "int", _last_index_of_before, cost=cost.TRAVERSAL),
    member("lowerAscii", "string", "string", lambda a: a.translate(_LOWER), cost=cost.SCAN_KEEP),
    member("upperAscii", "string", "string", lambda a: a.translate(_UPPER), cost=cost.SCAN_KEEP),
    member("trim", "string", "string", lambda a: a.strip(_BLANKS), cost=cost.SCAN_KEEP),
    member("substring", "string, int", "string", _substring, cost=cost.SCAN_KEEP),
    member("substring", "string, int, int", "string", _substring, cost=cost.SCAN_KEEP),
    member(
        "replace", "string, string, string", "string", _replace, cost=cost.REPLACE, grows=True
    ),
    member(
        "replace", "string, string, string, int", "string", _replace, cost=cost.REPLACE,
        grows=True,
    ),
    member("split", "string, string", "list(string)", _split, cost=cost.SPLIT),
    member("split", "string, string, int", "list(string)", _split, cost=cost.SPLIT),
    member("join", "list(string)", "string", _join, cost=cost.JOIN, grows=True),
    member("join", "list(string), string", "string", _join, cost=cost.JOIN, grows=True),
    member(
        "format", "string, list(dyn)", "string", format_text, cost=cost.FORMAT, eager=False,
        grows=True,
    ),
    function("strings.quote", "string", "string", _quote, cost=cost.QUOTE, grows=True),
)  # fmt: skip
