"""Types: what an expression means, or why it means nothing.

What may live here: the rules that give every node its type and every call its overloads,
as cel-go's checker has them. The rules about literals are in ``dra_core.cel.literals``.
"""

from collections.abc import Callable
from typing import Any, Final

from dra_core.cel.ast import (
    Bind,
    Call,
    Const,
    Ident,
    Index,
    ListLiteral,
    Logic,
    Loop,
    MapLiteral,
    Node,
    OptionalMap,
    Select,
    Ternary,
    Visit,
    done,
    trampoline,
    walk,
)
from dra_core.cel.environment import TYPE_NAMES, Environment
from dra_core.cel.library import OPERATORS, Row, Rows
from dra_core.cel.problems import CompileProblem
from dra_core.cel.types import (
    BOOL,
    DYN,
    INT,
    VARIABLE,
    Type,
    Unifier,
    list_of,
    map_of,
    optional_of,
    type_of,
)

_KEYS: Final = frozenset({"bool", "int", "uint", "double", "string", "dyn", VARIABLE})


def check(root: Node, environment: Environment) -> Node:
    """Give every node its type; returns the root. Raises CompileProblem.

    The result must be a bool, or of unknown type, which is left to the evaluation if the
    environment allows that.
    """
    checker = _Checker(environment)
    root = trampoline(checker.visit(root))
    checker.finish(root)
    if root.type != BOOL and not (root.type == DYN and environment.dynamic_result):
        raise CompileProblem(root.offset, f"the result is a {root.type}, not a bool")
    return root


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._library = environment.library
        self._types = Unifier()
        self._scopes: list[tuple[str, Type]] = []

    def finish(self, root: Node) -> None:
        """Replace type variables by what they turned out to be."""
        for node in walk(root):
            node.type = self._types.substitute(node.type, variables_are_dyn=True)

    def visit(self, node: Node) -> Visit[Node]:
        """The node with its type set, or the node to put in its place."""
        return _VISITORS[node.__class__](self, node)

    # --- names -----------------------------------------------------------------------

    def _local(self, name: str) -> Type | None:
        for known, t in reversed(self._scopes):
            if known == name:
                return t
        return None

    def _named(self, node: Node, name: str) -> Node | None:
        """The node for a variable or type of that qualified name, if there is one."""
        name = name.removeprefix(".")
        t = self._environment.variables.get(name)
        if t is not None:
            found: Node = Ident(node.offset, name)
            found.type = t
            return found
        t = TYPE_NAMES.get(name)
        return None if t is None else Const(node.offset, Type(t.name), type_of(t))

    def _ident(self, node: Ident) -> Visit[Node]:
        return done(self._resolved(node))

    def _resolved(self, node: Ident) -> Node:
        local = None if node.name.startswith(".") else self._local(node.name)
        if local is not None:
            node.type = local
            return node
        named = self._named(node, node.name)
        if named is None:
            raise CompileProblem(node.offset, f"{node.name!r} is not known")
        return named

    def _qualified(self, node: Node) -> str | None:
        """``a.b.c`` as a name, if the node is that and ``a`` is no local variable."""
        parts = []
        while isinstance(node, Select) and not node.test and not node.optional:
            parts.append(node.field)
            node = node.operand
        if not isinstance(node, Ident) or self._local(node.name) is not None:
            return None
        return ".".join([node.name, *reversed(parts)])

    # --- selection -------------------------------------------------------------------

    def _select(self, node: Select) -> Visit[Node]:
        if not node.test and not node.optional:
            name = self._qualified(node)
            named = None if name is None else self._named(node, name)
            if named is not None:
                return named
        node.operand = yield self.visit(node.operand)
        operand = self._types.resolve(node.operand.type)
        optional = operand.name == "optional_type"
        inner = self._types.resolve(operand.params[0]) if optional else operand
        field = self._field(node, inner)
        if node.test:
            node.type = BOOL
        else:
            node.type = optional_of(field) if optional or node.optional else field
        return node

    def _field(self, node: Select, operand: Type) -> Type:
        if operand.name == "map":
            return operand.params[1]
        if operand.name in self._environment.fields:
            field = self._environment.fields[operand.name].get(node.field)
            if field is None:
                raise CompileProblem(node.offset, f"there is no field {node.field!r}")
            return field
        if operand.name == VARIABLE:
            self._types.assignable(DYN, operand)
        elif operand != DYN:
            raise CompileProblem(node.offset, f"a {operand} has no fields")
        return DYN

    def _index(self, node: Index) -> Visit[Node]:
        node.operand = yield self.visit(node.operand)
        node.key = yield self.visit(node.key)
        name = "_[?_]" if node.optional else "_[_]"
        rows = self._library.functions(name)
        node.type, _ = self._resolve(node.offset, rows, [node.operand, node.key])
        return node

    # --- calls -----------------------------------------------------------------------

    def _call(self, node: Call) -> Visit[Node]:
        if node.member:
            name = self._qualified(node.args[0])
            if name is not None and self._library.functions(f"{name}.{node.function}"):
                node.function = f"{name.removeprefix('.')}.{node.function}"
                node.member = False
                del node.args[0]
        for i, arg in enumerate(node.args):
            node.args[i] = yield self.visit(arg)
        rows = (self._library.members if node.member else self._library.functions)(
            node.function.removeprefix(".")
        )
        if not rows and not self._library.knows(node.function):
            raise CompileProblem(node.offset, f"there is no function {node.function!r}")
        node.type, node.overloads = self._resolve(node.offset, rows, node.args, node.function)
        return node

    def _resolve(
        self, offset: int, rows: Rows, args: list[Node], name: str = ""
    ) -> tuple[Type, Rows]:
        """The type of the result and the rows that the arguments' types allow."""
        types = tuple(arg.type for arg in args)
        result: Type | None = None
        found: list[Row] = []
        for row in rows:
            if len(row.args) != len(types):
                continue
            wanted = row.args
            row_result = row.result
            if row.generic:
                *instantiated, row_result = self._types.instantiate((*row.args, row.result))
                wanted = tuple(instantiated)
            if not self._types.all_assignable(types, wanted):
                continue
            found.append(row)
            row_result = self._types.substitute(row_result)
            if result is None:
                result = row_result
            elif result != DYN and result != row_result:
                result = DYN
        if result is None:
            shown = ", ".join(str(self._types.substitute(t)) for t in types)
            called = rows[0].function if rows else name
            raise CompileProblem(offset, f"{OPERATORS.get(called, called)} does not take ({shown})")
        return result, tuple(found)

    def _logic(self, node: Logic) -> Visit[Node]:
        for i, term in enumerate(node.terms):
            node.terms[i] = yield self.visit(term)
            self._need_bool(node.terms[i], "&&" if node.conjunction else "||")
        node.type = BOOL
        return node

    def _need_bool(self, node: Node, where: str) -> None:
        if not self._types.assignable(node.type, BOOL):
            shown = self._types.substitute(node.type)
            raise CompileProblem(node.offset, f"{where} takes a bool, not a {shown}")

    def _ternary(self, node: Ternary) -> Visit[Node]:
        node.condition = yield self.visit(node.condition)
        node.then = yield self.visit(node.then)
        node.otherwise = yield self.visit(node.otherwise)
        self._need_bool(node.condition, "?:")
        node.type = self._same(node.offset, node.then.type, node.otherwise.type)
        return node

    def _same(self, offset: int, left: Type, right: Type) -> Type:
        """The type of what may be either, as of a function over (A, A)."""
        one = self._types.fresh()
        if not self._types.all_assignable((left, right), (one, one)):
            left, right = self._types.substitute(left), self._types.substitute(right)
            raise CompileProblem(offset, f"one is a {left}, the other a {right}")
        return self._types.substitute(one)

    # --- literals --------------------------------------------------------------------

    def _const(self, node: Const) -> Visit[Node]:
        return done(node)

    def _list(self, node: ListLiteral) -> Visit[Node]:
        element: Type | None = None
        for i, item in enumerate(node.items):
            node.items[i] = item = yield self.visit(item)
            element = self._join(element, self._unwrapped(item, i in node.optional))
        node.type = list_of(self._types.fresh() if element is None else element)
        return node

    def _map(self, node: MapLiteral) -> Visit[Node]:
        key_type: Type | None = None
        value_type: Type | None = None
        for i, key in enumerate(node.keys):
            node.keys[i] = key = yield self.visit(key)
            key_type = self._join(key_type, self._key(key))
            node.values[i] = value = yield self.visit(node.values[i])
            value_type = self._join(value_type, self._unwrapped(value, i in node.optional))
        if key_type is None or value_type is None:
            node.type = map_of(self._types.fresh(), self._types.fresh())
        else:
            node.type = map_of(key_type, value_type)
        return node

    def _key(self, node: Node) -> Type:
        t = self._types.resolve(node.type)
        if t.name not in _KEYS:
            raise CompileProblem(node.offset, f"a {t} cannot be a key of a map")
        return t

    def _unwrapped(self, node: Node, optional: bool) -> Type:
        """The type of an element; one with a question mark must be optional."""
        if not optional:
            return node.type
        t = self._types.resolve(node.type)
        if t.name == "optional_type":
            return t.params[0]
        if t != DYN:
            raise CompileProblem(node.offset, f"after '?' comes an optional value, not a {t}")
        return DYN

    def _join(self, so_far: Type | None, t: Type) -> Type:
        if so_far is None:
            return t
        joined = self._types.join(so_far, t)
        return DYN if joined is None else joined

    # --- macros ----------------------------------------------------------------------

    def _loop(self, node: Loop) -> Visit[Node]:
        node.range = yield self.visit(node.range)
        variables, element = self._variables(node)
        before = len(self._scopes)
        self._scopes += zip(node.names, variables, strict=True)
        if node.condition is not None:
            node.condition = yield self.visit(node.condition)
            self._need_bool(node.condition, f"the filter of {node.kind}()")
        node.body = yield self.visit(node.body)
        del self._scopes[before:]
        node.type = self._loop_type(node, variables[0], element)
        return node

    def _variables(self, node: Loop) -> tuple[list[Type], Type]:
        """The types of the loop's variables, and that of the elements that ``filter`` keeps."""
        t = self._types.resolve(node.range.type)
        both = len(node.names) == 2
        if t.name == "list":
            return ([INT, t.params[0]] if both else [t.params[0]]), t.params[0]
        if t.name == "map":
            return ([t.params[0], t.params[1]] if both else [t.params[0]]), t.params[0]
        if t.name == VARIABLE:
            self._types.assignable(DYN, t)
        elif t != DYN:
            raise CompileProblem(node.range.offset, f"{node.kind}() needs a list or map, not a {t}")
        return [DYN] * len(node.names), DYN

    def _loop_type(self, node: Loop, key: Type, element: Type) -> Type:
        if node.kind in ("map", "transformList"):
            return list_of(node.body.type)
        if node.kind == "transformMap":
            return map_of(key, node.body.type)
        if node.kind == "transformMapEntry":
            return self._entry_type(node)
        if node.kind == "sortBy":
            keys = Ident(node.offset, "")
            keys.type = list_of(node.body.type)
            rows = self._library.members("@sortBy")
            return self._resolve(node.offset, rows, [node.range, keys], "sortBy")[0]
        self._need_bool(node.body, f"{node.kind}()")
        return list_of(element) if node.kind == "filter" else BOOL

    def _entry_type(self, node: Loop) -> Type:
        entry = map_of(self._types.fresh(), self._types.fresh())
        if not self._types.assignable(node.body.type, entry):
            raise CompileProblem(node.body.offset, "transformMapEntry() takes a map per entry")
        return self._types.substitute(entry)

    def _bind(self, node: Bind) -> Visit[Node]:
        node.init = yield self.visit(node.init)
        self._scopes.append((node.name, node.init.type))
        node.body = yield self.visit(node.body)
        del self._scopes[-1]
        node.type = node.body.type
        return node

    def _optional_map(self, node: OptionalMap) -> Visit[Node]:
        node.target = yield self.visit(node.target)
        inner = self._types.fresh()
        if not self._types.assignable(node.target.type, optional_of(inner)):
            t = self._types.substitute(node.target.type)
            raise CompileProblem(node.offset, f"optMap() needs an optional value, not a {t}")
        self._scopes.append((node.name, self._types.substitute(inner)))
        node.body = yield self.visit(node.body)
        del self._scopes[-1]
        result = node.body.type if node.flat else optional_of(node.body.type)
        node.type = self._same(node.body.offset, result, optional_of(self._types.fresh()))
        return node


_VISITORS: Final[dict[type[Node], Callable[[_Checker, Any], Visit[Node]]]] = {
    Const: _Checker._const,
    Ident: _Checker._ident,
    Select: _Checker._select,
    Index: _Checker._index,
    Call: _Checker._call,
    Logic: _Checker._logic,
    Ternary: _Checker._ternary,
    ListLiteral: _Checker._list,
    MapLiteral: _Checker._map,
    Loop: _Checker._loop,
    Bind: _Checker._bind,
    OptionalMap: _Checker._optional_map,
}
