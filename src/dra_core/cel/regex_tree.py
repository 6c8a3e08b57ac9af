"""The tree of a regular expression.

What may live here: the nodes, what each knows about itself, and how they are put
together. Every node knows its height and how many instructions it compiles to, so
the parser can refuse a pattern as soon as it is too deep or too large.
"""

from collections.abc import Iterable
from enum import IntFlag
from typing import Final

import attrs

from dra_core.cel.regex_classes import CharSet

MAX_REPEAT: Final = 1_000
"""Largest repetition count, also multiplied over nested ones, as in Go."""
MAX_HEIGHT: Final = 1_000
"""Deepest nesting of the tree, as in Go."""
MAX_INSTRUCTIONS: Final = 20_000
"""Largest compiled program. Any pattern without counted repetition that fits a selector
(10 KiB) needs less. Go allows some 3 million; here a transition that is worked out for
the first time costs time in proportion to the program, at worst some milliseconds."""


class Assertion(IntFlag):
    """What can hold between two characters."""

    BEGIN_TEXT = 1
    END_TEXT = 2
    BEGIN_LINE = 4
    END_LINE = 8
    WORD_BOUNDARY = 16
    NO_WORD_BOUNDARY = 32


@attrs.frozen(kw_only=True, eq=False)
class Node:
    """Part of a pattern. ``height``: levels below and including it; ``size``: compiled
    instructions; ``nullable``: it can match the empty string; ``repeats``: how often
    counted repetitions multiply what is in it."""

    height: int = 1
    size: int = 0
    nullable: bool = True
    repeats: int = 1


@attrs.frozen(eq=False)
class Empty(Node):
    """Matches the empty string."""


@attrs.frozen(eq=False)
class Char(Node):
    """One character of a set. ``literal`` is the character if ``str`` can look for it."""

    chars: CharSet
    literal: str = ""


@attrs.frozen(eq=False)
class Assert(Node):
    """Matches the empty string where the assertion holds."""

    assertion: Assertion


@attrs.frozen(eq=False)
class Concat(Node):
    """One part after the other."""

    parts: tuple[Node, ...]


@attrs.frozen(eq=False)
class Alternate(Node):
    """The first branch that leads to a match."""

    branches: tuple[Node, ...]


@attrs.frozen(eq=False)
class Group(Node):
    """A capturing group. What it captures is never asked for."""

    child: Node


@attrs.frozen(eq=False)
class Repeat(Node):
    """``low`` to ``high`` times the child, None for no bound. Greedy: as often as possible."""

    child: Node
    low: int
    high: int | None
    greedy: bool


def concat(parts: Iterable[Node]) -> Node:
    """The parts one after the other; nested sequences become one, empty parts go."""
    flat: list[Node] = []
    for part in parts:
        if isinstance(part, Concat):
            flat += part.parts
        elif not isinstance(part, Empty):
            flat.append(part)
    if len(flat) <= 1:
        return flat[0] if flat else Empty()
    return Concat(
        tuple(flat),
        height=1 + max(part.height for part in flat),
        size=sum(part.size for part in flat),
        nullable=all(part.nullable for part in flat),
        repeats=max(part.repeats for part in flat),
    )


def alternate(branches: Iterable[Node]) -> Node:
    """One of the branches, earlier ones first; nested alternatives become one."""
    flat: list[Node] = []
    for branch in branches:
        flat += branch.branches if isinstance(branch, Alternate) else (branch,)
    if len(flat) == 1:
        return flat[0]
    return Alternate(
        tuple(flat),
        height=1 + max(branch.height for branch in flat),
        # A split before each branch but the last, and a jump after it.
        size=sum(branch.size for branch in flat) + 2 * (len(flat) - 1),
        nullable=any(branch.nullable for branch in flat),
        repeats=max(branch.repeats for branch in flat),
    )


def repeated(child: Node, low: int, high: int | None, greedy: bool) -> Node:
    """The child ``low`` to ``high`` times (``None``: no bound), sized as it unfolds."""
    if high is None:
        # The last of the required copies loops; an optional nullable loop needs two splits.
        size = child.size * max(low, 1) + (1 if low else 2)
    else:
        size = child.size * high + (high - low)
    return Repeat(
        child,
        low,
        high,
        greedy,
        height=child.height + 1,
        size=size,
        nullable=low == 0 or child.nullable,
        repeats=child.repeats,
    )


def multiplied(node: Node, top: int, high: int | None) -> int:
    """How often the innermost part repeats when the node is repeated ``top`` times itself."""
    # {0} repeats nothing, {0,} counts like *; otherwise the largest count multiplies.
    return 1 if high == 0 else node.repeats * max(top, 1)
