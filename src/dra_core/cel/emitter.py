"""Python source as it is put together: functions, blocks, lines and constants.

What may live here: the text of generated code and the place in the expression that each
line comes from. Nothing here knows CEL.

Text of an expression never gets into the source: constants are globals of the generated
code, and every name in it is made here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

MAX_DEPTH: Final = 8
"""Deepest block; what is deeper becomes a function of its own. Python allows 20 nested
loops and ``try``s and 100 levels of indentation."""


class Block:
    """Lines and blocks in it. ``fallible`` if a line of it may raise."""

    __slots__ = ("depth", "fallible", "items")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.fallible = False
        self.items: list[tuple[str, int, Block | None]] = []


class Function:
    """One generated function; ``prologue`` lines come first, each once."""

    __slots__ = ("body", "name", "parameters", "prologue")

    def __init__(self, name: str, parameters: tuple[str, ...]) -> None:
        self.name = name
        self.parameters = parameters
        self.prologue: dict[str, None] = {}
        self.body = Block(1)


class Module:
    """Generated functions, their constants, and the block that is being written."""

    def __init__(self, parameters: tuple[str, ...]) -> None:
        self.parameters = parameters
        self.namespace: dict[str, Any] = {}
        self._constants: dict[int, str] = {}
        self._kept: list[Any] = []
        self._functions: list[Function] = []
        self._count = 0
        self.function: Function
        self.block: Block

    def name(self, prefix: str = "t") -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, value: Any) -> str:
        """The name (or the literal) by which the code calls a value."""
        if value is None or value is True or value is False:
            return repr(value)
        if value.__class__ is int and 0 <= value < 2**31:
            return f"({value})"  # a part of it could not be named otherwise
        return self.named(value)

    def named(self, value: Any) -> str:
        """The name by which the code calls a value; never a literal."""
        known = self._constants.get(id(value))
        if known is not None:
            return known
        name = self.name("c")
        self.namespace[name] = value
        self._constants[id(value)] = name
        self._kept.append(value)  # an id is only good as long as its object lives
        return name

    def line(self, text: str, offset: int, *, fallible: bool = False) -> None:
        """Add a line to the current block."""
        self.block.items.append((text, offset, None))
        if fallible:
            self.block.fallible = True

    def assign(self, expression: str, offset: int, *, fallible: bool = False) -> str:
        """Add a line that keeps a value; returns its name."""
        name = self.name()
        self.line(f"{name} = {expression}", offset, fallible=fallible)
        return name

    def prologue(self, text: str) -> None:
        """Put a line at the start of the current function, if it is not there yet."""
        self.function.prologue[text] = None

    @contextmanager
    def nested(self, header: str, offset: int, *, absorbs: bool = False) -> Iterator[Block]:
        """Write what follows into a new block under a header.

        ``absorbs`` says that the header keeps exceptions from going further.
        """
        outer, inner = self.block, Block(self.block.depth + 1)
        outer.items.append((header, offset, inner))
        self.block = inner
        yield inner
        self.block = outer
        if inner.fallible and not absorbs:
            outer.fallible = True

    @contextmanager
    def detached(self) -> Iterator[Block]:
        """Write what follows into a block that is put somewhere later."""
        outer, inner = self.block, Block(self.block.depth + 1)
        self.block = inner
        yield inner
        self.block = outer

    def attach(self, header: str, offset: int, block: Block, *, absorbs: bool = False) -> None:
        """Put a detached block under a header."""
        self.block.items.append((header, offset, block))
        if block.fallible and not absorbs:
            self.block.fallible = True

    def inline(self, block: Block) -> None:
        """Put the content of a detached block here."""
        self.block.items.extend(block.items)
        if block.fallible:
            self.block.fallible = True

    @contextmanager
    def new_function(self, name: str, parameters: tuple[str, ...]) -> Iterator[Function]:
        """Write what follows into a function of its own."""
        before = (self.function, self.block) if self._functions else None
        function = Function(name, parameters)
        self._functions.append(function)
        self.function, self.block = function, function.body
        yield function
        if before is not None:
            self.function, self.block = before

    def render(self) -> tuple[str, list[int]]:
        """The source, and for each of its lines (from 1) the offset it belongs to."""
        lines: list[str] = []
        offsets: list[int] = [0]
        for function in self._functions:
            lines.append(f"def {function.name}({', '.join(function.parameters)}):")
            offsets.append(0)
            for text in function.prologue:
                lines.append(f" {text}")
                offsets.append(0)
            _render(function.body, lines, offsets)
        return "\n".join(lines) + "\n", offsets


def _render(block: Block, lines: list[str], offsets: list[int]) -> None:
    if not block.items:
        lines.append(" " * block.depth + "pass")
        offsets.append(0)
    for text, offset, inner in block.items:
        lines.append(" " * block.depth + text)
        offsets.append(offset)
        if inner is not None:
            inner.depth = block.depth + 1
            _render(inner, lines, offsets)
