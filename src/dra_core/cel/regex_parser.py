"""From the text of a regular expression in RE2 syntax to its tree.

What may live here: the parser. Nodes and classes of characters are next door.

The language is what Go's ``regexp`` accepts, flags included; lookaround,
backreferences, possessive repetition and ``\\C`` are errors, because no automaton
can match them in linear time. The parser keeps its own stack, one frame per open
group, so a deep pattern is an error and never a ``RecursionError``.

Source: https://github.com/google/re2/wiki/Syntax and Go's ``regexp/syntax``.
"""

from typing import Final, NamedTuple, NoReturn

import attrs

from dra_core.cel.regex_classes import (
    ANY,
    MAX_CODE_POINT,
    NOT_NEWLINE,
    REPLACEMENT,
    Category,
    CharSet,
    char_set,
    is_surrogate,
    perl_class,
    posix_class,
    unicode_class,
)
from dra_core.cel.regex_tree import (
    MAX_HEIGHT,
    MAX_INSTRUCTIONS,
    MAX_REPEAT,
    Assert,
    Assertion,
    Char,
    Group,
    Node,
    alternate,
    concat,
    multiplied,
    repeated,
)
from dra_core.errors import RegexError

MAX_PATTERN: Final = 65_536
"""Longest pattern in code points; it would hardly compile to fewer instructions."""


class _Flags(NamedTuple):
    fold: bool = False
    multi_line: bool = False
    dot_newline: bool = False
    ungreedy: bool = False


_FLAG_LETTERS: Final = {
    "i": "fold",
    "m": "multi_line",
    "s": "dot_newline",
    "U": "ungreedy",
}
_ESCAPED_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SIMPLE_REPEATS: Final[dict[str, tuple[int, int | None]]] = {
    "*": (0, None),
    "+": (1, None),
    "?": (0, 1),
}
_OCTAL: Final = frozenset("01234567")
_DECIMAL: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_NAME: Final = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


@attrs.define
class _Frame:
    """An open group: finished branches, the parts of the current one, and how to go back."""

    position: int
    flags: _Flags
    captures: bool
    branches: list[Node] = attrs.Factory(list)
    parts: list[Node] = attrs.Factory(list)


def parse_regex(pattern: str) -> Node:
    """The tree of a pattern.

    Raises ``RegexError`` if the pattern is malformed, nests too deeply, or would
    compile to more than ``MAX_INSTRUCTIONS``. Cost: linear in the pattern.
    """
    return _Parser(pattern).parse()


class _Parser:
    """A position in the pattern, the flags that hold there, and the open groups."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.flags = _Flags()
        self.frames = [_Frame(0, self.flags, False)]
        self.after_repeat = False

    def parse(self) -> Node:
        if len(self.pattern) > MAX_PATTERN:
            self._fail(MAX_PATTERN, "expression too large")
        for at, char in enumerate(self.pattern):
            if is_surrogate(char):
                self._fail(at, "invalid Unicode: a lone surrogate")
        while self.position < len(self.pattern):
            start = self.position
            char = self.pattern[start]
            self.position += 1
            repeated = False
            match char:
                case "(":
                    self._open(start)
                case ")":
                    self._close(start)
                case "|":
                    self._end_branch(self.frames[-1])
                case "*" | "+" | "?":
                    self._repeat(start, *_SIMPLE_REPEATS[char])
                    repeated = True
                case "{":
                    repeated = self._counted_repeat(start)
                case _:
                    self._atom(start, char)
            self.after_repeat = repeated
        if len(self.frames) > 1:
            self._fail(self.frames[-1].position, "missing closing )")
        return self._finish(self.frames[0])

    def _fail(self, position: int, problem: str) -> NoReturn:
        raise RegexError(self.pattern, position, problem)

    def _checked(self, node: Node, position: int) -> Node:
        if node.height > MAX_HEIGHT:
            self._fail(position, "expression nests too deeply")
        if node.size > MAX_INSTRUCTIONS:
            self._fail(position, "expression too large")
        return node

    def _next_is(self, text: str) -> bool:
        return self.pattern.startswith(text, self.position)

    # Groups

    def _open(self, start: int) -> None:
        if not self._next_is("?"):
            self.frames.append(_Frame(start, self.flags, True))
        elif self._next_is("?P<") or self._next_is("?<"):
            self._skip_group_name(start)
            self.frames.append(_Frame(start, self.flags, True))
        else:
            self._group_flags(start)

    def _skip_group_name(self, start: int) -> None:
        begin = self.pattern.index("<", start) + 1
        end = self.pattern.find(">", begin)
        if end <= begin or not _NAME.issuperset(self.pattern[begin:end]):
            self._fail(start, "invalid named group or unsupported Perl syntax")
        self.position = end + 1

    def _group_flags(self, start: int) -> None:
        """``(?flags)``, ``(?flags:`` or ``(?:``, with ``-`` before flags to clear."""
        changes: dict[str, bool] = {}
        value = True
        seen_since_minus = True
        self.position += 1
        while self.position < len(self.pattern):
            char = self.pattern[self.position]
            self.position += 1
            if char in _FLAG_LETTERS:
                changes[_FLAG_LETTERS[char]] = value
                seen_since_minus = True
            elif char == "-" and value:
                value = seen_since_minus = False
            elif char in ":)" and seen_since_minus:
                if char == ":":
                    self.frames.append(_Frame(start, self.flags, False))
                self.flags = self.flags._replace(**changes)
                return
            else:
                break
        self._fail(start, "invalid or unsupported Perl syntax")

    def _close(self, start: int) -> None:
        if len(self.frames) == 1:
            self._fail(start, "unexpected )")
        frame = self.frames.pop()
        node = self._finish(frame)
        if frame.captures:
            node = Group(
                node,
                height=node.height + 1,
                size=node.size,
                nullable=node.nullable,
                repeats=node.repeats,
            )
        self.frames[-1].parts.append(self._checked(node, frame.position))
        self.flags = frame.flags

    def _end_branch(self, frame: _Frame) -> None:
        frame.branches.append(self._checked(concat(frame.parts), frame.position))
        frame.parts = []

    def _finish(self, frame: _Frame) -> Node:
        self._end_branch(frame)
        return self._checked(alternate(frame.branches), frame.position)

    # Repetition

    def _repeat(self, start: int, low: int, high: int | None) -> None:
        greedy = not self.flags.ungreedy
        if self._next_is("?"):
            self.position += 1
            greedy = not greedy
        if self.after_repeat:
            self._fail(start, "invalid nested repetition operator")
        parts = self.frames[-1].parts
        if not parts:
            self._fail(start, "missing argument to repetition operator")
        parts[-1] = self._checked(repeated(parts[-1], low, high, greedy), start)

    def _counted_repeat(self, start: int) -> bool:
        """``{n}``, ``{n,}`` or ``{n,m}``; anything else after the brace is a literal."""
        low = self._count()
        high: int | None = low
        if self._next_is(","):
            self.position += 1
            high = None if self._next_is("}") else self._count()
        if low < 0 or (high is not None and high < 0) or not self._next_is("}"):
            self.position = start + 1
            self._literal("{")
            return False
        self.position += 1
        top = low if high is None else high
        if top > MAX_REPEAT or low > top:
            self._fail(start, "invalid repeat count")
        self._repeat(start, low, high)
        node = self.frames[-1].parts[-1]
        node = attrs.evolve(node, repeats=multiplied(node, top, high))
        if top >= 2 and node.repeats > MAX_REPEAT:
            self._fail(start, "invalid repeat count: nested counts multiply beyond the limit")
        self.frames[-1].parts[-1] = node
        return True

    def _count(self) -> int:
        """The number that follows, -1 if none does. A leading zero is not allowed."""
        begin = self.position
        while self._next_in(_DECIMAL):
            self.position += 1
        digits = self.pattern[begin : self.position]
        if not digits or (digits[0] == "0" and digits != "0"):
            return -1
        # More than five digits are too many whatever they are.
        return int(digits[:6])

    # Atoms

    def _add(self, node: Node) -> None:
        self.frames[-1].parts.append(node)

    def _add_set(self, chars: CharSet) -> None:
        self._add(Char(chars, size=1, nullable=False))

    def _add_assertion(self, assertion: Assertion) -> None:
        self._add(Assert(assertion, size=1))

    def _literal(self, char: str) -> None:
        code = ord(char)
        folds = self.flags.fold and (char.lower() != char or char.upper() != char)
        chars = CharSet(((code, code),), (), folds)
        # A surrogate in a text reads as U+FFFD, so for these two str would be wrong.
        plain = not folds and char != REPLACEMENT and not is_surrogate(char)
        self._add(Char(chars, char if plain else "", size=1, nullable=False))

    def _atom(self, start: int, char: str) -> None:
        multi_line = self.flags.multi_line
        match char:
            case ".":
                self._add_set(ANY if self.flags.dot_newline else NOT_NEWLINE)
            case "^":
                self._add_assertion(Assertion.BEGIN_LINE if multi_line else Assertion.BEGIN_TEXT)
            case "$":
                self._add_assertion(Assertion.END_LINE if multi_line else Assertion.END_TEXT)
            case "[":
                self._add_set(self._bracket(start))
            case "\\":
                self._escape(start)
            case _:
                self._literal(char)

    def _escape(self, start: int) -> None:
        char = self.pattern[self.position : self.position + 1]
        assertion = _ESCAPED_ASSERTIONS.get(char)
        if assertion is not None:
            self.position += 1
            self._add_assertion(assertion)
        elif char == "Q":
            begin = self.position + 1
            end = self.pattern.find("\\E", begin)
            self.position = len(self.pattern) if end < 0 else end + 2
            for literal in self.pattern[begin : len(self.pattern) if end < 0 else end]:
                self._literal(literal)
        else:
            chars = self._escaped_class(start)
            if chars is None:
                self._literal(self._escaped_char(start))
            else:
                self._add_set(chars)

    def _escaped_class(self, start: int) -> CharSet | None:
        """The set of ``\\d``, ``\\pL`` and the like after the backslash at ``start``, if any."""
        char = self.pattern[start + 1 : start + 2]
        chars = perl_class(char, self.flags.fold) if char else None
        if chars is not None:
            self.position = start + 2
            return chars
        if char not in ("p", "P"):
            return None
        name = self.pattern[start + 2 : start + 3]
        self.position = start + 3
        if name == "{":
            end = self.pattern.find("}", start)
            name = self.pattern[start + 3 : max(end, start)]
            self.position = end + 1
        chars = unicode_class(name.removeprefix("^"), self.flags.fold) if name else None
        if chars is None:
            self._fail(start, f"invalid Unicode class {name!r}")
        return chars.complement() if (char == "P") != name.startswith("^") else chars

    def _escaped_char(self, start: int) -> str:
        """The character that the escape at ``start`` denotes."""
        char = self.pattern[start + 1 : start + 2]
        self.position = start + 2
        if not char:
            self._fail(start, "trailing backslash at end of expression")
        if char in _ESCAPED_CONTROLS:
            return _ESCAPED_CONTROLS[char]
        if char == "x":
            return self._hex_char(start)
        following = self.pattern[self.position : self.position + 1]
        # A single digit but 0 would be a backreference.
        if char == "0" or (char in _OCTAL and following and following in _OCTAL):
            while self.position < start + 4 and self._next_in(_OCTAL):
                self.position += 1
            return chr(int(self.pattern[start + 1 : self.position], 8))
        if char != "_" and (char in _NAME or not char.isascii()):
            self._fail(start, "invalid escape sequence")
        return char

    def _next_in(self, chars: frozenset[str]) -> bool:
        return self.position < len(self.pattern) and self.pattern[self.position] in chars

    def _hex_char(self, start: int) -> str:
        """``\\x`` with two digits, or any number of them in braces."""
        if self._next_is("{"):
            end = self.pattern.find("}", start)
            digits = self.pattern[self.position + 1 : max(end, self.position)]
            self.position = end + 1
        else:
            digits = self.pattern[self.position : self.position + 2]
            self.position += 2
            if len(digits) < 2:
                digits = ""
        significant = digits.lstrip("0")
        if not digits or not _HEX.issuperset(digits) or len(significant) > 6:
            self._fail(start, "invalid escape sequence")
        code = int(significant or "0", 16)
        if code > MAX_CODE_POINT:
            self._fail(start, "invalid escape sequence: beyond the last Unicode character")
        return chr(code)

    # Classes in brackets

    def _bracket(self, start: int) -> CharSet:
        negated = self._next_is("^")
        self.position += negated
        ranges: list[tuple[int, int]] = []
        parts: list[CharSet | Category] = []
        first = True
        while first or not self._next_is("]"):
            first = False
            chars = self._bracket_class()
            if chars is not None:
                parts.append(chars)
            else:
                ranges.append(self._bracket_range(start))
        self.position += 1
        return char_set(ranges, tuple(parts), self.flags.fold, negated)

    def _bracket_class(self) -> CharSet | None:
        """A class inside brackets, if one follows: ``[:alpha:]``, ``\\d``, ``\\pL``."""
        at = self.position
        if self._next_is("[:"):
            end = self.pattern.find(":]", at + 2)
            if end < 0:
                return None
            chars = posix_class(self.pattern[at + 2 : end], self.flags.fold)
            if chars is None:
                self._fail(at, "invalid character class name")
            self.position = end + 2
            return chars
        return self._escaped_class(at) if self._next_is("\\") else None

    def _bracket_range(self, start: int) -> tuple[int, int]:
        at = self.position
        low = high = self._bracket_char(start)
        # A dash before the closing bracket stands for itself.
        more = self.position + 1 < len(self.pattern)
        if self._next_is("-") and not self._next_is("-]") and more:
            self.position += 1
            high = self._bracket_char(start)
            if high < low:
                self._fail(at, "invalid character class range")
        return low, high

    def _bracket_char(self, start: int) -> int:
        at = self.position
        if at >= len(self.pattern):
            self._fail(start, "missing closing ]")
        if self.pattern[at] == "\\":
            return ord(self._escaped_char(at))
        self.position += 1
        return ord(self.pattern[at])


_ESCAPED_ASSERTIONS: Final = {
    "A": Assertion.BEGIN_TEXT,
    "z": Assertion.END_TEXT,
    "b": Assertion.WORD_BOUNDARY,
    "B": Assertion.NO_WORD_BOUNDARY,
}
