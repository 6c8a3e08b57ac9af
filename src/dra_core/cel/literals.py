"""Literals: what can be known and refused before anything is evaluated.

What may live here: the checks of literal values and the folding of constants that the
reference does too, so that what is folded here costs nothing there either.

Source: cel-go's validators of durations, timestamps, patterns and homogeneous aggregates,
its optimizer, and the check of ``format()`` calls.
"""

from typing import Final

from dra_core.cel.ast import (
    Call,
    Const,
    ListLiteral,
    MapLiteral,
    Node,
    Visit,
    replace_children,
    trampoline,
)
from dra_core.cel.library import dispatch
from dra_core.cel.library_core import in_list
from dra_core.cel.library_regex import PATTERN_FUNCTIONS
from dra_core.cel.problems import BudgetExceeded, CompileProblem, EvalProblem
from dra_core.cel.regex import compile_regex
from dra_core.cel.text_format import check_format
from dra_core.cel.types import Type
from dra_core.cel.values import MapValue, Value
from dra_core.cel.versions import SemVer
from dra_core.errors import DraError

CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Functions that the reference applies to constants when compiling."""

PRIMITIVES: Final = frozenset({"bool", "int", "uint", "double", "string", "bytes"})


def fold(root: Node) -> Node:
    """The tree with constants folded. Raises CompileProblem for a literal that is wrong."""
    return trampoline(_visit(root, False))


def _visit(node: Node, in_format: bool) -> Visit[Node]:
    # Inside format() lists may mix types, however deep.
    inside = in_format or (isinstance(node, Call) and node.function == "format")
    if isinstance(node, Call):
        _check_call(node)
    elif isinstance(node, ListLiteral):
        _check_list(node, inside)
    elif isinstance(node, MapLiteral):
        _check_map(node, inside)
    children = []
    for child in node.children():
        children.append((yield _visit(child, inside)))
    replace_children(node, children)
    return _folded(node)


def _check_call(node: Call) -> None:
    if node.member and node.function == "format" and len(node.args) == 2:
        target, args = node.args
        if isinstance(target, Const) and isinstance(args, ListLiteral):
            problem = check_format(str(target.value), [item.type for item in args.items])
            if problem:
                raise CompileProblem(node.offset, problem)


def _check_list(node: ListLiteral, mixed: bool) -> None:
    types = [
        item.type.params[0] if i in node.optional and item.type.params else item.type
        for i, item in enumerate(node.items)
    ]
    _check_same(node.items, types, mixed)


def _check_map(node: MapLiteral, mixed: bool) -> None:
    types = [
        value.type.params[0] if i in node.optional and value.type.params else value.type
        for i, value in enumerate(node.values)
    ]
    _check_same(node.keys, [key.type for key in node.keys], mixed)
    _check_same(node.values, types, mixed)


def _check_same(nodes: list[Node], types: list[Type], mixed: bool) -> None:
    if mixed:
        return
    for node, t in zip(nodes, types, strict=True):
        if t != types[0]:
            raise CompileProblem(node.offset, f"a {t} beside a {types[0]}: use one type")


def _folded(node: Node) -> Node:
    if isinstance(node, Call):
        return _folded_call(node)
    if isinstance(node, ListLiteral) and not node.optional:
        if all(isinstance(item, Const) for item in node.items):
            values = tuple(item.value for item in node.items if isinstance(item, Const))
            return Const(node.offset, values, node.type)
    elif isinstance(node, MapLiteral) and not node.optional:
        keys = [key.value for key in node.keys if isinstance(key, Const)]
        values_ = [value.value for value in node.values if isinstance(value, Const)]
        if len(keys) == len(values_) == len(node.keys):
            return _const_map(node, keys, values_)
    return node


def _const_map(node: MapLiteral, keys: list[object], values: list[object]) -> Const:
    try:
        return Const(node.offset, MapValue(zip(keys, values, strict=True)), node.type)
    except EvalProblem as problem:
        raise CompileProblem(node.offset, problem.problem) from None


def _folded_call(node: Call) -> Node:
    if node.function in PATTERN_FUNCTIONS and len(node.args) >= 2:
        pattern = node.args[1]
        if isinstance(pattern, Const) and isinstance(pattern.value, str):
            try:
                compile_regex(pattern.value)
            except DraError as problem:
                raise CompileProblem(pattern.offset, str(problem)) from None
    if is_set_test(node):
        items = node.args[1]
        empty = isinstance(items, Const) and not items.value
        return Const(node.offset, False, node.type) if empty else node
    if node.member or node.function not in CONVERSIONS or len(node.args) != 1:
        return node
    (arg,) = node.args
    if not isinstance(arg, Const):
        return node
    try:
        value = dispatch(node.overloads)(arg.value)
    except EvalProblem as problem:
        raise CompileProblem(node.offset, problem.problem) from None
    except (DraError, BudgetExceeded) as error:
        raise CompileProblem(node.offset, str(error)) from None
    return Const(node.offset, value, node.type)


class SetTest:
    """``in`` for a constant list of primitives."""

    __slots__ = ("items", "texts")

    def __init__(self, items: tuple[Value, ...]) -> None:
        self.items = items
        self.texts = frozenset(item for item in items if item.__class__ is str)

    def __call__(self, value: Value) -> bool:
        """Whether the value equals an item. Raises EvalProblem for a version, which the
        reference cannot look up in a set."""
        if value.__class__ is str:
            return value in self.texts
        if value.__class__ is SemVer:
            raise EvalProblem("a version cannot be looked up in a list of constants")
        return in_list(value, self.items)


def is_set_test(node: Call) -> bool:
    """Whether ``in`` tests against a constant list of primitives, which costs nothing."""
    if node.function != "@in" or len(node.overloads) != 1:
        return False
    items = node.args[1]
    if node.overloads[0].args[1].name != "list" or not isinstance(items, Const):
        return False
    element = items.type.params[0] if items.type.params else None
    return not items.value or (element is not None and element.name in PRIMITIVES)
