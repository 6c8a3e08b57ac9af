"""Tokens: literals of every kind, and text that is none."""

import pytest

from dra_core.cel import lexer
from dra_core.cel.lexer import tokenize
from dra_core.cel.problems import CompileProblem


def values(text: str) -> list[object]:
    """The values of all tokens but the end."""
    return [token.value for token in tokenize(text)[:-1]]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("0", lexer.INT, "0"),
        ("12", lexer.INT, "12"),
        ("0xFf", lexer.INT, "0xFf"),
        ("7u", lexer.UINT, "7"),
        ("0x7U", lexer.UINT, "0x7"),
        ("1.5", lexer.DOUBLE, 1.5),
        (".5", lexer.DOUBLE, 0.5),
        ("1e3", lexer.DOUBLE, 1000.0),
        ("1.5E-1", lexer.DOUBLE, 0.15),
        ("a_B9", lexer.IDENT, "a_B9"),
        ('"a"', lexer.STRING, "a"),
        ("'a'", lexer.STRING, "a"),
        ('"\\n\\t\\\\\\"\\\'\\`\\?"', lexer.STRING, "\n\t\\\"'`?"),
        ('"\\a\\b\\f\\r\\v"', lexer.STRING, "\a\b\f\r\v"),
        ('"\\x41\\X42\\u00e9\\U0001F600\\101"', lexer.STRING, "ABé😀A"),
        ('r"\\n"', lexer.STRING, "\\n"),
        ("R'\\'", lexer.STRING, "\\"),
        ('"""a"b\n"c"""', lexer.STRING, 'a"b\n"c'),
        ("'''a\r\nb\rc'''", lexer.STRING, "a\nb\nc"),
        ('"""\\""""', lexer.STRING, '"'),
        ('r"""\\"""', lexer.STRING, "\\"),
        ('b"é"', lexer.BYTES, "é".encode()),
        ('b"\\xff\\377\\n"', lexer.BYTES, b"\xff\xff\n"),
        ('bR"\\xff"', lexer.BYTES, b"\\xff"),
        ('""', lexer.STRING, ""),
        ('""""""', lexer.STRING, ""),
    ],
)
def test_literals(text: str, kind: str, value: object) -> None:
    """Every kind of literal is decoded."""
    (token, end) = tokenize(text)
    assert (token.kind, token.value, token.offset) == (kind, value, 0)
    assert (end.kind, end.offset) == (lexer.END, len(text))


def test_operators_and_blanks() -> None:
    """The longest operator wins; blanks and comments separate."""
    assert values("a&&b||c==d!=e<=f>=g<h // no\n>\t?:") == [
        "a", "&&", "b", "||", "c", "==", "d", "!=", "e", "<=", "f", ">=", "g", "<", "h", ">", "?",
        ":",
    ]  # fmt: skip
    assert values("1__0") == ["1", "__0"]
    assert values("0x") == ["0", "x"]
    assert values("rb''") == ["rb", ""]
    assert values("\f\r\n\t ") == []


@pytest.mark.parametrize(
    "text",
    [
        "'", '"a', "'''a''", '"""a', '"a\nb"', '"a\rb"', '"\\', '"\\q"', '"\\x4"', '"\\u00"',
        '"\\U0011ffff"', '"\\ud800"', '"\\400"', '"\\08"', 'b"\\u0041"', "`a`", "a&b", "a|b", "a=b",
        "#", "\x00", "\u00e9", "$", "@in", "\ud800", "b'\ud800'",
    ],
)  # fmt: skip
def test_what_is_no_token(text: str) -> None:
    """Anything else is a problem with a place, names in backticks too."""
    with pytest.raises(CompileProblem) as caught:
        tokenize(text)
    assert 0 <= caught.value.offset <= len(text)


def test_offsets_count_code_points() -> None:
    """A place is a number of code points."""
    assert [token.offset for token in tokenize("'é😀' + b")] == [0, 5, 7, 8]
