"""Text to tokens: CEL's lexical grammar.

What may live here: the token rules and the decoding of literals. Whatever the text,
the time is linear in it, and the only exception is ``CompileProblem``.

Source: the lexis of the CEL language definition, as cel-go implements it; names in
backticks are not enabled by the API server.
"""

import re
from typing import Final, NamedTuple

from dra_core.cel.problems import CompileProblem

IDENT: Final = "identifier"
INT: Final = "int"
UINT: Final = "uint"
DOUBLE: Final = "double"
STRING: Final = "string"
BYTES: Final = "bytes"
OPERATOR: Final = "operator"
END: Final = "end of the expression"


class Token(NamedTuple):
    """``value`` is the decoded literal, the name or the operator's text."""

    kind: str
    value: str | bytes | float
    offset: int


_TOKEN: Final = re.compile(
    r"""
      (?P<blank>(?:[ \t\r\n\f]|//[^\n]*)+)
    | (?P<text>(?P<prefix>[bB]?[rR]?)(?P<quote>\"\"\"|'''|"|'))
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    | (?P<whole>0x[0-9a-fA-F]+|[0-9]+)(?P<unsigned>[uU]?)
    | (?P<operator>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE,
)

_SHORT_BODY: Final = {
    '"': re.compile(r'(?:[^\\"\r\n]|\\.)*+"', re.DOTALL),
    "'": re.compile(r"(?:[^\\'\r\n]|\\.)*+'", re.DOTALL),
}
_RAW_SHORT_BODY: Final = {
    '"': re.compile(r'[^"\r\n]*"'),
    "'": re.compile(r"[^'\r\n]*'"),
}
_LONG_BODY: Final = re.compile(r"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)", re.DOTALL)

_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})"
    r"|([0-3][0-7]{2})|(.)?)",
    re.DOTALL,
)
_SIMPLE_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip

_MAX_CODE_POINT: Final = 0x10FFFF


def tokenize(text: str) -> list[Token]:
    """All tokens of the text, closed by one of kind ``END``. Raises CompileProblem."""
    tokens: list[Token] = []
    offset, size = 0, len(text)
    while offset < size:
        match = _TOKEN.match(text, offset)
        if match is None:
            raise CompileProblem(offset, f"unexpected character {text[offset]!r}")
        kind = match.lastgroup
        if kind == "quote" or match.group("quote"):
            token, offset = _text(text, match)
            tokens.append(token)
            continue
        if kind == "name":
            tokens.append(Token(IDENT, match.group(), offset))
        elif kind == "operator":
            tokens.append(Token(OPERATOR, match.group(), offset))
        elif kind == "double":
            tokens.append(Token(DOUBLE, float(match.group()), offset))
        elif kind != "blank":
            name = UINT if match.group("unsigned") else INT
            tokens.append(Token(name, match.group("whole"), offset))
        offset = match.end()
    tokens.append(Token(END, "", size))
    return tokens


def _text(text: str, opening: re.Match[str]) -> tuple[Token, int]:
    """The string or bytes literal that starts with ``opening``, and where it ends."""
    start, quote = opening.end(), opening.group("quote")
    prefix = opening.group("prefix").lower()
    raw = "r" in prefix
    end = _closing(text, start, quote, raw)
    if end < 0:
        raise CompileProblem(opening.start(), "text without a closing quote")
    body = text[start:end]
    where = opening.start()
    if len(quote) == 3:
        # The reference reads line ends of long texts alike on every system.
        body = body.replace("\r\n", "\n").replace("\r", "\n")
    after = end + len(quote)
    if "b" in prefix:
        encoded = _utf8(body, where) if raw else _unescape_bytes(body, start)
        return Token(BYTES, encoded, where), after
    return Token(STRING, body if raw else _unescape(body, start), where), after


def _closing(text: str, start: int, quote: str, raw: bool) -> int:
    """Where the closing quote of a text begins, -1 if nowhere."""
    if len(quote) == 3:
        at = text.find(quote, start)
        while at >= 0 and not raw and _escaped(text, start, at):
            at = text.find(quote, at + 1)
        return at
    body = (_RAW_SHORT_BODY if raw else _SHORT_BODY)[quote].match(text, start)
    return body.end() - 1 if body else -1


def _escaped(text: str, start: int, at: int) -> bool:
    """Whether an odd number of backslashes stands before ``at``."""
    before = at
    while before > start and text[before - 1] == "\\":
        before -= 1
    return (at - before) % 2 == 1


def _unescape(body: str, start: int) -> str:
    """The text with its escapes decoded."""

    def decode(match: re.Match[str]) -> str:
        simple, byte, short, long, octal, _ = match.groups()
        if simple:
            return _SIMPLE_ESCAPES[simple]
        if byte or short or long:
            return _code_point(int(byte or short or long, 16), start + match.start())
        if octal:
            return chr(int(octal, 8))
        raise CompileProblem(start + match.start(), "unknown escape in a text")

    return _ESCAPE.sub(decode, body) if "\\" in body else body


def _code_point(code: int, offset: int) -> str:
    if code > _MAX_CODE_POINT or 0xD800 <= code <= 0xDFFF:
        raise CompileProblem(offset, "escape of something that is no character")
    return chr(code)


def _unescape_bytes(body: str, start: int) -> bytes:
    """The bytes that the body stands for: numeric escapes are bytes, the rest is UTF-8."""
    parts: list[bytes] = []
    last = 0
    for match in _ESCAPE.finditer(body):
        parts.append(_utf8(body[last : match.start()], start))
        last = match.end()
        simple, byte, short, long, octal, _ = match.groups()
        if simple:
            parts.append(_SIMPLE_ESCAPES[simple].encode())
        elif byte or octal:
            parts.append(bytes([int(byte, 16) if byte else int(octal, 8)]))
        elif short or long:
            raise CompileProblem(start + match.start(), "\\u and \\U are not for bytes")
        else:
            raise CompileProblem(start + match.start(), "unknown escape in bytes")
    parts.append(_utf8(body[last:], start))
    return b"".join(parts)


def _utf8(text: str, offset: int) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise CompileProblem(offset, "a lone surrogate has no bytes") from None
