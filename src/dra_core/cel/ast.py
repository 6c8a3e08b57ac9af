"""The syntax tree: what the parser builds and the checker annotates.

What may live here: node classes and the walk over them, without recursion, because a
legal tree may be deeper than Python's stack. Macros have become ``Loop``, ``Bind`` and
``OptionalMap`` nodes already; the checker fills ``type`` and ``overloads``.

Nodes are mutable only while one compilation owns them.
"""

from collections.abc import Generator, Iterator
from typing import Any, TypeVar

from dra_core.cel.types import DYN, Type

Value = Any
"""A CEL value as Python holds it, see ``dra_core.cel.values``."""


class Node:
    """Anything with a value. ``offset`` is where errors about it point."""

    __slots__ = ("offset", "type")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.type: Type = DYN

    def children(self) -> Iterator["Node"]:
        """The parts, in order of evaluation."""
        return iter(())


class Const(Node):
    """A literal, or what was folded to one. ``type`` is set from the start."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: Value, type_: Type) -> None:
        super().__init__(offset)
        self.value = value
        self.type = type_


class Ident(Node):
    """A name. The checker turns those of types into ``Const``."""

    __slots__ = ("name",)

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name


class Select(Node):
    """``operand.field``, ``operand.?field`` (``optional``), ``has(…)`` (``test``)."""

    __slots__ = ("field", "operand", "optional", "test")

    def __init__(
        self, offset: int, operand: Node, field: str, *, test: bool = False, optional: bool = False
    ) -> None:
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test = test
        self.optional = optional

    def children(self) -> Iterator[Node]:
        yield self.operand


class Index(Node):
    """``operand[key]`` or ``operand[?key]``."""

    __slots__ = ("key", "operand", "optional")

    def __init__(self, offset: int, operand: Node, key: Node, *, optional: bool = False) -> None:
        super().__init__(offset)
        self.operand = operand
        self.key = key
        self.optional = optional

    def children(self) -> Iterator[Node]:
        yield self.operand
        yield self.key


class Call(Node):
    """A function or operator; ``args`` starts with the receiver if ``member``.

    ``overloads`` are the rows of the library that the argument types allow.
    """

    __slots__ = ("args", "function", "member", "overloads")

    def __init__(
        self, offset: int, function: str, args: list[Node], *, member: bool = False
    ) -> None:
        super().__init__(offset)
        self.function = function
        self.args = args
        self.member = member
        self.overloads: tuple[Any, ...] = ()

    def children(self) -> Iterator[Node]:
        return iter(self.args)


class Logic(Node):
    """A chain of ``&&`` or ``||`` (``conjunction`` says which)."""

    __slots__ = ("conjunction", "terms")

    def __init__(self, offset: int, terms: list[Node], *, conjunction: bool) -> None:
        super().__init__(offset)
        self.terms = terms
        self.conjunction = conjunction

    def children(self) -> Iterator[Node]:
        return iter(self.terms)


class Ternary(Node):
    """``condition ? then : otherwise``."""

    __slots__ = ("condition", "otherwise", "then")

    def __init__(self, offset: int, condition: Node, then: Node, otherwise: Node) -> None:
        super().__init__(offset)
        self.condition = condition
        self.then = then
        self.otherwise = otherwise

    def children(self) -> Iterator[Node]:
        yield self.condition
        yield self.then
        yield self.otherwise


class ListLiteral(Node):
    """``[a, ?b]``; ``optional`` holds the positions with a question mark."""

    __slots__ = ("items", "optional")

    def __init__(self, offset: int, items: list[Node], optional: frozenset[int]) -> None:
        super().__init__(offset)
        self.items = items
        self.optional = optional

    def children(self) -> Iterator[Node]:
        return iter(self.items)


class MapLiteral(Node):
    """``{k: v, ?k: v}``; ``optional`` holds the positions with a question mark."""

    __slots__ = ("keys", "optional", "values")

    def __init__(
        self, offset: int, keys: list[Node], values: list[Node], optional: frozenset[int]
    ) -> None:
        super().__init__(offset)
        self.keys = keys
        self.values = values
        self.optional = optional

    def children(self) -> Iterator[Node]:
        for key, value in zip(self.keys, self.values, strict=True):
            yield key
            yield value


class Loop(Node):
    """A macro over the elements of ``range``.

    ``kind`` is the macro's name (``all``, ``map``, ``transformMap``, …); ``names`` are its
    one or two variables, ``condition`` the optional filter, ``body`` what is asked or
    built per element. ``sortBy`` is the loop that makes pairs of element and key.
    """

    __slots__ = ("body", "condition", "kind", "names", "range")

    def __init__(
        self,
        offset: int,
        kind: str,
        range_: Node,
        names: tuple[str, ...],
        condition: Node | None,
        body: Node,
    ) -> None:
        super().__init__(offset)
        self.kind = kind
        self.range = range_
        self.names = names
        self.condition = condition
        self.body = body

    def children(self) -> Iterator[Node]:
        yield self.range
        if self.condition is not None:
            yield self.condition
        yield self.body


class Bind(Node):
    """``cel.bind(name, init, body)``."""

    __slots__ = ("body", "init", "name")

    def __init__(self, offset: int, name: str, init: Node, body: Node) -> None:
        super().__init__(offset)
        self.name = name
        self.init = init
        self.body = body

    def children(self) -> Iterator[Node]:
        yield self.init
        yield self.body


class OptionalMap(Node):
    """``target.optMap(name, body)``, or ``optFlatMap`` if ``flat``.

    The reference writes the target out twice; here it is evaluated once.
    """

    __slots__ = ("body", "flat", "name", "target")

    def __init__(self, offset: int, target: Node, name: str, body: Node, *, flat: bool) -> None:
        super().__init__(offset)
        self.target = target
        self.name = name
        self.body = body
        self.flat = flat

    def children(self) -> Iterator[Node]:
        yield self.target
        yield self.body


R = TypeVar("R")

Visit = Generator[Any, Any, R]
"""A visit of a node: yields visits of its parts, gets their results, returns its own."""


def trampoline(visit: Visit[R]) -> R:
    """Run a visit and all that it yields, with a stack of our own.

    Legal trees are some thousand nodes deep, which Python's stack is not.
    """
    stack: list[Visit[Any]] = [visit]
    result: Any = None
    while True:
        try:
            stack.append(stack[-1].send(result))
            result = None
        except StopIteration as done:
            stack.pop()
            result = done.value
            if not stack:
                final: R = result
                return final


def done(value: R) -> Visit[R]:
    """A visit that needs no other."""
    yield from ()
    return value


def walk(root: Node) -> Iterator[Node]:
    """The node and everything below it, parents first, in order of evaluation."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(node.children())))


def replace_children(node: Node, children: list[Node]) -> None:
    """Put other nodes in place of the parts, in the order of ``children``."""
    if isinstance(node, Call):
        node.args = children
    elif isinstance(node, Logic):
        node.terms = children
    elif isinstance(node, ListLiteral):
        node.items = children
    elif isinstance(node, MapLiteral):
        node.keys, node.values = children[::2], children[1::2]
    elif isinstance(node, Select):
        (node.operand,) = children
    elif isinstance(node, Index):
        node.operand, node.key = children
    elif isinstance(node, Ternary):
        node.condition, node.then, node.otherwise = children
    elif isinstance(node, Bind):
        node.init, node.body = children
    elif isinstance(node, OptionalMap):
        node.target, node.body = children
    elif isinstance(node, Loop):
        node.range, node.body = children[0], children[-1]
        if node.condition is not None:
            node.condition = children[1]
