"""From the tree of a regular expression to a program, and the automaton that runs it.

What may live here: the program (instructions as arrays and bit masks) and the lazily
built automaton over sets of its instructions. The choice between matches is made by
the caller.

**Theory.** A position of the program is *live* at an index of the text if some path
from there reaches the match. Which ones are live at ``i`` follows from those at
``i + 1`` and the characters around ``i``, so one pass over the text from its end finds
all live sets, and there is a match that begins at ``i`` exactly if the start is live
there. With the live sets known, the preferred match (leftmost, then first in the order
of alternatives, as in Perl) is found going forward without a single wrong turn: of two
continuations take the first that is live. Both passes are linear in the text,
whatever the pattern; also when all matches are wanted, where restarting a forward
search is quadratic ("a.*b|a").

A set is one integer, bit ``p`` for instruction ``p``. Sets seen are states of an
automaton that remembers its transitions, so the usual step is one dictionary look-up.
What is remembered is bounded; when it is full it is forgotten and built again. States
may be shared between threads: everything remembered can be recomputed, and single
dictionary operations are atomic.
"""

from enum import IntEnum
from typing import Final

import attrs

from dra_core.cel.regex_classes import REPLACEMENT, CharSet, is_surrogate
from dra_core.cel.regex_tree import (
    Alternate,
    Assert,
    Assertion,
    Char,
    Concat,
    Empty,
    Group,
    Node,
    Repeat,
)

MAX_REMEMBERED: Final = 5_000
"""Transitions that one automaton remembers before it starts anew."""

_NEIGHBOURS: Final = int(
    Assertion.BEGIN_LINE | Assertion.END_LINE | Assertion.WORD_BOUNDARY | Assertion.NO_WORD_BOUNDARY
)
"""Assertions inside a text that depend on the characters on both sides."""

# As plain integers: a transition worked out takes half as long as with flags.
_AT_BEGIN: Final = int(Assertion.BEGIN_TEXT | Assertion.BEGIN_LINE)
_AT_END: Final = int(Assertion.END_TEXT | Assertion.END_LINE)
_BEGIN_LINE: Final = int(Assertion.BEGIN_LINE)
_END_LINE: Final = int(Assertion.END_LINE)
_WORD_BOUNDARY: Final = int(Assertion.WORD_BOUNDARY)
_NO_WORD_BOUNDARY: Final = int(Assertion.NO_WORD_BOUNDARY)

_WORD: Final = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class Op(IntEnum):
    """What an instruction does."""

    CHAR = 0
    """Reads one character of a set, then goes on with the next instruction."""
    SPLIT = 1
    """Goes on with either of two instructions, preferably the first."""
    JUMP = 2
    ASSERT = 3
    """Goes on with the next instruction if the assertion holds."""
    MATCH = 4


@attrs.frozen(eq=False)
class Program:
    """A compiled pattern. The first instruction is the start, the last the match.

    ``targets`` are the one or two instructions that a SPLIT or JUMP goes to, the
    assertion of an ASSERT. Masks have one bit for each instruction: ``literal_masks`` and
    ``set_masks`` those that read the character or one of the set, ``falls`` those that
    may go on with the next instruction without reading, ``assert_falls`` those that do if
    the assertion holds, ``sources`` for an instruction those that may jump to it.
    """

    ops: tuple[Op, ...]
    targets: tuple[tuple[int, ...], ...]
    literal_masks: dict[str, int]
    set_masks: tuple[tuple[CharSet, int], ...]
    falls: int
    assert_falls: tuple[tuple[int, int], ...]
    sources: dict[int, int]
    assertions: int


def compile_program(tree: Node) -> Program:
    """The program of a parsed pattern. Cost: linear in the size of the tree."""
    builder = _Builder()
    builder.emit(tree)
    return builder.program()


class _Builder:
    """Emits instructions from a work list: nodes to compile and jumps to set later."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.targets: list[tuple[int, ...]] = []
        self.literals: dict[str, int] = {}
        self.sets: dict[CharSet, int] = {}
        self.work: list[Node | _Patch] = []

    def emit(self, tree: Node) -> None:
        self.work = [tree]
        while self.work:
            item = self.work.pop()
            if isinstance(item, _Patch):
                self._apply(item)
            else:
                self._node(item)
        self._add(Op.MATCH)

    def _add(self, op: Op, *targets: int) -> int:
        self.ops.append(op)
        self.targets.append(targets)
        return len(self.ops) - 1

    def _node(self, node: Node) -> None:
        match node:
            case Char(chars=chars, literal=literal):
                bit = 1 << self._add(Op.CHAR)
                if literal:
                    self.literals[literal] = self.literals.get(literal, 0) | bit
                else:
                    self.sets[chars] = self.sets.get(chars, 0) | bit
            case Assert(assertion=assertion):
                self._add(Op.ASSERT, int(assertion))
            case Concat(parts=parts):
                self.work += reversed(parts)
            case Alternate(branches=branches):
                self._alternate(branches)
            case Group(child=child):
                self.work.append(child)
            case Repeat():
                self._repeat(node)
            case Empty():
                pass

    def _alternate(self, branches: tuple[Node, ...]) -> None:
        end = _Label()
        steps: list[Node | _Patch] = []
        for branch in branches[:-1]:
            next_branch = _Label()
            steps += [
                _Patch(Op.SPLIT, next_branch, True),
                branch,
                _Patch(Op.JUMP, end),
                _Patch(None, next_branch),
            ]
        steps += [branches[-1], _Patch(None, end)]
        self.work += reversed(steps)

    def _repeat(self, node: Repeat) -> None:
        child, low, high, greedy = node.child, node.low, node.high, node.greedy
        steps: list[Node | _Patch] = []
        end = _Label()
        if high is None:
            loop = _Label()
            steps += [child] * (low - 1)
            if low == 0:
                # A nullable child is compiled as (child+)?: in child* its empty match
                # would come before its first branch is tried.
                steps.append(_Patch(Op.SPLIT, end, greedy))
            if low == 0 and not child.nullable:
                again = _Label(len(self.ops))
                steps += [child, _Patch(Op.JUMP, again)]
            else:
                steps += [_Patch(None, loop), child, _Patch(Op.SPLIT, loop, not greedy)]
        else:
            steps += [child] * low
            for _ in range(high - low):
                steps += [_Patch(Op.SPLIT, end, greedy), child]
        steps.append(_Patch(None, end))
        self.work += reversed(steps)

    def _apply(self, patch: "_Patch") -> None:
        label = patch.label
        here = len(self.ops)
        if patch.op is None:
            label.position = here
            for at in label.waiting:
                self.targets[at] = tuple(here if t < 0 else t for t in self.targets[at])
        else:
            both = (here + 1, label.position) if patch.next_first else (label.position, here + 1)
            at = self._add(patch.op, *(both if patch.op == Op.SPLIT else (label.position,)))
            if label.position < 0:
                label.waiting.append(at)

    def program(self) -> Program:
        falls = 0
        asserts: dict[int, int] = {}
        sources: dict[int, int] = {}
        for at, (op, targets) in enumerate(zip(self.ops, self.targets, strict=True)):
            bit = 1 << at
            if op == Op.ASSERT:
                asserts[targets[0]] = asserts.get(targets[0], 0) | bit
                continue
            for target in targets:
                if target == at + 1:
                    falls |= bit
                else:
                    sources[target] = sources.get(target, 0) | bit
        return Program(
            tuple(self.ops),
            tuple(self.targets),
            self.literals,
            tuple(self.sets.items()),
            falls,
            tuple(asserts.items()),
            sources,
            sum(asserts),
        )


class _Label:
    """A place in the program, known (``position`` at least 0) or yet to come."""

    def __init__(self, position: int = -1) -> None:
        self.position = position
        self.waiting: list[int] = []


@attrs.frozen(eq=False)
class _Patch:
    """Emit a split or jump to ``label``; without ``op``, the label is here.

    ``next_first``: the split prefers the next instruction to the label.
    """

    op: Op | None
    label: _Label
    next_first: bool = True


class State:
    """The instructions that are live at an index of a text.

    ``live`` is the set; ``matches`` tells whether a match begins here. The rest is
    remembered work: ``before`` maps the character to the left to the state there,
    ``first`` the same if it is the first of the text, ``chosen`` maps an instruction
    to the one that reads the next character (or is the match) when coming from it.
    """

    __slots__ = ("before", "chosen", "first", "live", "matches")

    def __init__(self, live: int) -> None:
        self.live = live
        self.matches = bool(live & 1)
        self.before: dict[str, State] = {}
        self.first: dict[str, State] = {}
        self.chosen: dict[int, int] = {}


class Automaton:
    """The live sets of a program over any text, computed from the end of the text.

    ``sees_neighbours``: a state depends on characters on both sides. ``computed`` counts
    the transitions worked out so far, which is what matching costs beyond look-ups.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._char_bits: dict[str, int] = {}
        self._states: dict[int, State] = {}
        self._ends: dict[str, State] = {}
        self._remembered = 0
        self.computed = 0
        self._match = 1 << (len(program.ops) - 1)
        self._jump_targets = sum(1 << target for target in program.sources)
        self.sees_neighbours = bool(program.assertions & _NEIGHBOURS)

    def last(self, text: str) -> State:
        """The state at the end of the text."""
        left = text[-1:]
        # Only what assertions can tell apart: no text, a line feed, a word character, others.
        kind = left if left in ("", "\n") else "w" if left in _WORD else "."
        state = self._ends.get(kind)
        if state is None:
            state = self._state(self._closed(self._match, self._holding(left, "")))
            self._ends[kind] = state
        return state

    def before(self, state: State, char: str, left: str) -> State:
        """The state before ``char`` if ``state`` is the one after it.

        ``char`` is preceded by ``left``, which is empty at the beginning of the text.
        If the automaton does not see neighbours, any other ``left`` will do. Cost:
        one look-up if remembered, else at most proportional to the program.
        """
        memory = state.before if left else state.first
        key = left + char if self.sees_neighbours else char
        found = memory.get(key)
        if found is None:
            self.computed += 1
            reads = self._reading(char) & (state.live >> 1)
            found = self._state(self._closed(self._match | reads, self._holding(left, char)))
            self._remember(memory, key, found)
        return found

    def choose(self, state: State, start: int) -> int:
        """The instruction that reads on, or the match, preferred among those that are
        reached from the live instruction ``start``."""
        found = state.chosen.get(start)
        if found is None:
            found = state.chosen[start] = self._preferred(state.live, start)
        return found

    def is_match(self, instruction: int) -> bool:
        """Is this the instruction of a match?"""
        return self._program.ops[instruction] == Op.MATCH

    def _preferred(self, live: int, start: int) -> int:
        """Follow the first live branches; come back only from loops that read nothing."""
        ops, targets = self._program.ops, self._program.targets
        stack = [start]
        while True:
            at = stack.pop()
            if not live >> at & 1:
                continue
            live ^= 1 << at
            op = ops[at]
            if op in (Op.CHAR, Op.MATCH):
                return at
            if op == Op.ASSERT:
                stack.append(at + 1)
            else:
                stack += reversed(targets[at])

    def _reading(self, char: str) -> int:
        """The instructions that read this character."""
        bits = self._char_bits.get(char)
        if bits is None:
            seen = REPLACEMENT if is_surrogate(char) else char
            bits = self._program.literal_masks.get(seen, 0)
            bits += sum(mask for chars, mask in self._program.set_masks if chars.contains(seen))
            self._char_bits[char] = bits
        return bits

    def _holding(self, left: str, right: str) -> int:
        """The assertions that hold between two characters, empty at an end of the text."""
        boundary = (left in _WORD) != (right in _WORD)
        holding = _WORD_BOUNDARY if boundary else _NO_WORD_BOUNDARY
        if not left:
            holding |= _AT_BEGIN
        elif left == "\n":
            holding |= _BEGIN_LINE
        if not right:
            holding |= _AT_END
        elif right == "\n":
            holding |= _END_LINE
        return holding

    def _closed(self, live: int, holding: int) -> int:
        """All instructions from which one of ``live`` is reached without reading."""
        falls = self._program.falls
        for kind, mask in self._program.assert_falls:
            if kind & holding:
                falls |= mask
        sources = self._program.sources
        pending = self._jump_targets
        while True:
            grown = live | (live >> 1 & falls)
            hit = grown & pending
            pending ^= hit
            while hit:
                lowest = hit & -hit
                grown |= sources[lowest.bit_length() - 1]
                hit ^= lowest
            if grown == live:
                return live
            live = grown

    def _state(self, live: int) -> State:
        state = self._states.get(live)
        if state is None:
            state = self._states.setdefault(live, State(live))
        return state

    def _remember(self, memory: dict[str, State], key: str, state: State) -> None:
        if self._remembered >= MAX_REMEMBERED:
            self._forget()
        # Two threads may count one less or more: the bound is not exact.
        self._remembered += 1
        memory[key] = state

    def _forget(self) -> None:
        states = list(self._states.values())
        self._states.clear()
        self._ends.clear()
        self._char_bits.clear()
        self._remembered = 0
        for state in states:
            state.before.clear()
            state.first.clear()
            state.chosen.clear()
