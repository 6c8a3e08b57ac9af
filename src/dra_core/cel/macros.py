"""Macros: calls that are rewritten before types are checked.

What may live here: recognising a macro by name, form and number of arguments, and
building its node. A call that is none stays a call.

Source: cel-go's standard macros, its bindings, optional, two-variable and list
extensions. The one-variable ``existsOne`` is not enabled by the API server.
"""

from typing import Final

from dra_core.cel.ast import Bind, Call, Ident, Loop, Node, OptionalMap, Select
from dra_core.cel.problems import CompileProblem

_ONE_VARIABLE: Final = frozenset({"all", "exists", "exists_one", "map", "filter"})
_TWO_VARIABLES: Final = frozenset(
    {"all", "exists", "existsOne", "exists_one"}
    | {"transformList", "transformMap", "transformMapEntry"}
)
_TRANSFORMS: Final = frozenset({"transformList", "transformMap", "transformMapEntry"})
COLLECTING: Final = frozenset({"map", "filter", "sortBy"}) | _TRANSFORMS
"""Macros that build a list or a map."""

_OPTIONAL_MAPS: Final = {"optMap": False, "optFlatMap": True}

ACCUMULATORS: Final = frozenset({"__result__", "@result"})
"""Names that the reference keeps for itself inside macros."""


def expand_global(offset: int, name: str, args: list[Node]) -> Node:
    """The node of ``name(args)``."""
    if name == "has" and len(args) == 1:
        tested = args[0]
        if not isinstance(tested, Select) or tested.test or tested.optional:
            raise CompileProblem(offset, "has() takes a field selection: has(a.b)")
        return Select(tested.offset, tested.operand, tested.field, test=True)
    return Call(offset, name, args)


def expand_member(offset: int, name: str, target: Node, args: list[Node]) -> Node:
    """The node of ``target.name(args)``."""
    if len(args) == 2 and name in _ONE_VARIABLE:
        return _loop(offset, name, target, args[:1], None, args[1])
    if len(args) == 3 and name == "map":
        return _loop(offset, name, target, args[:1], args[1], args[2])
    if len(args) == 3 and name in _TWO_VARIABLES:
        return _loop(offset, name, target, args[:2], None, args[2])
    if len(args) == 4 and name in _TRANSFORMS:
        return _loop(offset, name, target, args[:2], args[2], args[3])
    if len(args) == 2 and name == "sortBy":
        return _loop(offset, name, target, args[:1], None, args[1])
    if len(args) == 2 and name in _OPTIONAL_MAPS:
        variable = _variable(args[0])
        return OptionalMap(offset, target, variable, args[1], flat=_OPTIONAL_MAPS[name])
    if len(args) == 3 and name == "bind" and isinstance(target, Ident) and target.name == "cel":
        return Bind(offset, _variable(args[0]), args[1], args[2])
    return Call(offset, name, [target, *args], member=True)


def _loop(
    offset: int, kind: str, target: Node, names: list[Node], condition: Node | None, body: Node
) -> Loop:
    variables = tuple(_variable(name) for name in names)
    if len(set(variables)) < len(variables):
        raise CompileProblem(names[1].offset, f"{kind}() needs two different names")
    return Loop(offset, kind, target, variables, condition, body)


def _variable(node: Node) -> str:
    if not isinstance(node, Ident) or node.name.startswith(".") or node.name in ACCUMULATORS:
        raise CompileProblem(node.offset, "a plain name is needed here")
    return node.name
