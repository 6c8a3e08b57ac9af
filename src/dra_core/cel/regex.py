"""Regular expressions in RE2 syntax that match in time linear in the text.

What may live here: the compiled expression that selectors use. How it works is told in
``regex_nfa``; what the syntax is, in ``regex_parser``.

Results are those of Go's ``regexp``: of all matches the leftmost, of those the one that
a backtracking search finds first. Text is read by code points; a lone surrogate counts
as U+FFFD.
"""

from collections.abc import Callable, Iterator
from typing import Final

from dra_core.cel.regex_nfa import Automaton, State, compile_program
from dra_core.cel.regex_parser import parse_regex
from dra_core.cel.regex_tree import Assert, Assertion, Char, Concat, Node

_START: Final = 0
_SOME_CHAR: Final = "x"
"""Stands for the left neighbour where only its being there matters."""
_BLOCK: Final = 4_096
"""Characters whose states are held at a time while matches are looked for: states can be
large, and all different, so those of a long text are computed a second time instead."""


class Regex:
    """A compiled expression. Immutable to its users and safe to share between threads.

    Make one with ``compile_regex``. Every method takes time linear in the text; the
    factor is a dictionary look-up in the usual case and bounded by the size of the
    compiled pattern always.
    """

    __slots__ = ("_lazy_automaton", "_literal", "_required", "_tree", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._tree = parse_regex(pattern)
        self._literal = _Literal.of(self._tree)
        self._required = _required_text(self._tree)
        self._lazy_automaton: Automaton | None = None

    @property
    def _automaton(self) -> Automaton:
        # Many patterns never need it: plain texts, and those whose required text is absent.
        # Should two threads build it at once, one of the two is kept.
        automaton = self._lazy_automaton
        if automaton is None:
            automaton = self._lazy_automaton = Automaton(compile_program(self._tree))
        return automaton

    def __repr__(self) -> str:
        return f"compile_regex({self.pattern!r})"

    def __reduce__(self) -> tuple[Callable[[str], "Regex"], tuple[str]]:
        return compile_regex, (self.pattern,)

    def search(self, text: str) -> bool:
        """Is there a match anywhere in the text?"""
        if self._literal is not None:
            return self._literal.found_in(text)
        if self._required not in text:
            return False
        if self._automaton.sees_neighbours:
            return any(state.matches for state in _backward(self._automaton, text))
        return self._search_plain(text)

    def find(self, text: str) -> str | None:
        """The leftmost match, None if there is none."""
        if self._literal is not None:
            return self._literal.text if self._literal.found_in(text) else None
        found = self.find_all(text, 1)
        return found[0] if found else None

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """The matches from left to right that do not overlap, at most ``limit`` if that is
        not negative. An empty match right after another match does not count."""
        return self.find_all_counted(text, limit)[0]

    def find_all_counted(self, text: str, limit: int = -1) -> tuple[list[str], int]:
        """Like ``find_all``, with the number of characters that were read.

        It is at most twice the length of the text, once backward and once forward, and
        three times for texts of more than ``_BLOCK``.
        """
        if limit == 0 or self._required not in text:
            return [], 0
        states = _States(self._automaton, text)
        found: list[str] = []
        forward = 0
        position, last_end = 0, -1
        while position <= len(text) and len(found) != limit:
            if not states.at(position).matches:
                position += 1
                continue
            end = self._end_of_match(states, position)
            forward += end - position
            if end > position or position != last_end:
                found.append(text[position:end])
            # After an empty match go on one character later, or it would repeat forever.
            position = end + (end == position)
            last_end = end
        return found, states.steps + forward

    def _search_plain(self, text: str) -> bool:
        # What most selectors spend their time in: 2.4 µs for 41 characters, against 9.3 µs
        # by way of _backward.
        automaton = self._automaton
        state = automaton.last(text)
        if not text or state.matches:
            return state.matches
        for char in text[:0:-1]:
            following = state.before.get(char)
            state = automaton.before(state, char, _SOME_CHAR) if following is None else following
            if state.matches:
                return True
        return automaton.before(state, text[0], "").matches

    def _end_of_match(self, states: "_States", position: int) -> int:
        automaton = self._automaton
        instruction = automaton.choose(states.at(position), _START)
        while not automaton.is_match(instruction):
            position += 1
            instruction = automaton.choose(states.at(position), instruction + 1)
        return position


def compile_regex(pattern: str) -> Regex:
    """The compiled expression of a pattern in RE2 syntax.

    Raises ``RegexError`` if the pattern is malformed, uses what no automaton can match
    (lookaround, backreferences, possessive repetition), or is too large.
    """
    return Regex(pattern)


def _backward(
    automaton: Automaton, text: str, begin: int = 0, end: int = -1, state: State | None = None
) -> Iterator[State]:
    """The states from index ``end`` to ``begin`` of the text; ``state`` is the one at
    ``end``. Without them, those of the whole text."""
    if state is None:
        end, state = len(text), automaton.last(text)
    yield state
    for at in range(end - 1, begin - 1, -1):
        state = automaton.before(state, text[at], text[at - 1] if at else "")
        yield state


class _States:
    """The states of a text by index, for indices that stay or go up by one.

    ``steps`` counts the characters that were read to find them.
    """

    __slots__ = ("_automaton", "_block", "_block_begin", "_ends", "_text", "steps")

    def __init__(self, automaton: Automaton, text: str) -> None:
        self._automaton = automaton
        self._text = text
        self._ends: dict[int, State] = {}
        self._block: list[State] = []
        self._block_begin = 0
        self.steps = len(text)
        for back, state in enumerate(_backward(automaton, text)):
            index = len(text) - back
            if index % _BLOCK == 0 or back == 0:
                self._ends[index] = state
            if index <= _BLOCK:
                self._block.append(state)
        self._block.reverse()

    def at(self, index: int) -> State:
        """The state at an index of the text."""
        offset = index - self._block_begin
        if offset >= len(self._block):
            self._load(index)
            offset = 0
        return self._block[offset]

    def _load(self, begin: int) -> None:
        end = min(-(-begin // _BLOCK) * _BLOCK, len(self._text))
        states = list(_backward(self._automaton, self._text, begin, end, self._ends[end]))
        states.reverse()
        self._block, self._block_begin = states, begin
        self.steps += end - begin


class _Literal:
    """A pattern that is a plain text, possibly anchored: ``str`` finds it faster."""

    __slots__ = ("_at_begin", "_at_end", "text")

    def __init__(self, text: str, at_begin: bool, at_end: bool) -> None:
        self.text = text
        self._at_begin = at_begin
        self._at_end = at_end

    @staticmethod
    def of(tree: Node) -> "_Literal | None":
        """The literal that the tree matches, None if it is none."""
        parts = list(tree.parts) if isinstance(tree, Concat) else [tree]
        at_begin = _is_assertion(parts[0], Assertion.BEGIN_TEXT)
        at_end = len(parts) > at_begin and _is_assertion(parts[-1], Assertion.END_TEXT)
        inner = parts[at_begin : len(parts) - at_end]
        letters = [part.literal for part in inner if isinstance(part, Char)]
        if len(letters) < len(inner) or not all(letters):
            return None
        return _Literal("".join(letters), at_begin, at_end)

    def found_in(self, text: str) -> bool:
        if self._at_begin and self._at_end:
            return text == self.text
        if self._at_begin:
            return text.startswith(self.text)
        return text.endswith(self.text) if self._at_end else self.text in text


def _is_assertion(node: Node, assertion: Assertion) -> bool:
    return isinstance(node, Assert) and node.assertion == assertion


def _required_text(tree: Node) -> str:
    """The longest text that the pattern's top level names: every match contains it."""
    longest = current = ""
    for part in tree.parts if isinstance(tree, Concat) else (tree,):
        literal = part.literal if isinstance(part, Char) else ""
        current = current + literal if literal else ""
        longest = max(longest, current, key=len)
    return longest
