"""A checked tree to Python code that counts what the reference would charge.

What may live here: what each node becomes where costs are counted. Failures are values
(see ``dra_core.cel.tracker``), because the reference charges for what is done with them.
This code is some five times slower than that of ``dra_core.cel.compiler`` and is used for
expressions that may pass the limit, and to report costs.

Source: cel-go's interpreter and its run-time cost tracker. Names of things it charges for:
an identifier or a chain of selections 1 as a whole and 1 for each selection, a list 10, a
map 30; ``&&``, ``||``, ``?:`` and constants nothing; other calls by the library's models.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dra_core.cel.access import Place
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
)
from dra_core.cel.cost import LIST_COST, MAP_COST, ONE
from dra_core.cel.emitter import MAX_DEPTH, Module
from dra_core.cel.library import Library, Rows, dispatch, dispatch_within
from dra_core.cel.library_regex import PATTERN_FUNCTIONS, bind_pattern
from dra_core.cel.literals import SetTest, is_set_test
from dra_core.cel.tracker import HAS_VALUE, SORT, Callee, Failure, Lazy
from dra_core.cel.values import MISSING, NONE, MapValue, OptionalValue

HELPERS: Final[dict[str, Any]] = {
    "Failure": Failure,
    "Lazy": Lazy,
    "MISSING": MISSING,
    "MapValue": MapValue,
    "NONE": NONE,
    "Optional": OptionalValue,
}
"""Names that counted code may use."""

_ATTRIBUTES: Final = (Ident, Select, Index, Ternary)
"""Nodes that the reference evaluates as one chain together with what selects from them."""


_FLAT: Final = (Const, Ident, Select)
"""Nodes that open no block of their own."""


class _Chain(NamedTuple):
    """The value of a chain so far, and whether the whole of it costs one."""

    text: str
    whole: bool


class Accountant:
    """Writes the counting function for one expression."""

    def __init__(self, module: Module, places: dict[str, Place], library: Library) -> None:
        self._module = module
        self._places = places
        self._library = library
        self._scope: list[tuple[str, str, bool]] = []

    def function(self, name: str, root: Node, prologue: tuple[str, ...] = ()) -> None:
        """Write the function ``name`` that is given a tracker ``k`` and returns a bool."""
        module = self._module
        module.namespace.update(HELPERS)
        with module.new_function(name, (*module.parameters, "k")):
            for line in prologue:
                module.line(line, 0)
            text = trampoline(self._visit(root))
            module.line(f"return k.result({text})", root.offset)

    def _visit(self, node: Node) -> Visit[str]:
        if self._module.block.depth >= MAX_DEPTH and not isinstance(node, _FLAT):
            return self._outlined(node)
        return _VISITORS[node.__class__](self, node)

    def _outlined(self, node: Node) -> Visit[str]:
        call: str = yield self._own_function(node)
        return self._module.assign(call, node.offset)

    def _own_function(self, node: Node) -> Visit[str]:
        """The node as a function that is given all variables in scope; the call of it."""
        module = self._module
        name, parameters = module.name("f"), self._in_scope()
        with module.new_function(name, parameters):
            text: str = yield _VISITORS[node.__class__](self, node)
            module.line(f"return {text}", node.offset)
        return f"{name}({', '.join(parameters)})"

    def _in_scope(self) -> tuple[str, ...]:
        variables = dict.fromkeys(text for _, text, _ in self._scope)
        return (*self._module.parameters, "k", *variables)

    def _charge(self, cost: int, offset: int) -> None:
        self._module.line(f"k.cost += {cost}", offset)

    def _const(self, node: Const) -> Visit[str]:
        return done(self._module.named(node.value))

    # --- chains ------------------------------------------------------------------------

    def _attribute(self, node: Node) -> Visit[str]:
        chain: _Chain = yield self._chain(node)
        if chain.whole:
            self._charge(1, node.offset)
        return chain.text

    def _chain(self, node: Node) -> Visit[_Chain]:
        """The value of an identifier with what is selected from it, without the whole's cost."""
        if isinstance(node, Ident):
            return done(_Chain(self._identifier(node), True))
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Index):
            deep = self._module.block.depth >= MAX_DEPTH
            return self._deep_index(node) if deep else self._index(node)
        return self._whole(node)

    def _deep_index(self, node: Index) -> Visit[_Chain]:
        """The same as a function of its own."""
        module = self._module
        name, parameters = module.name("f"), self._in_scope()
        with module.new_function(name, parameters):
            chain: _Chain = yield self._index(node)
            module.line(f"return {chain.text}", node.offset)
        text = module.assign(f"{name}({', '.join(parameters)})", node.offset)
        return _Chain(text, chain.whole)

    def _whole(self, node: Node) -> Visit[_Chain]:
        text: str = yield self._visit(node)
        return _Chain(text, not isinstance(node, Ternary))

    def _identifier(self, node: Ident) -> str:
        for name, text, lazy in reversed(self._scope):
            if name == node.name:
                return self._module.assign(f"{text}.get()", node.offset) if lazy else text
        return self._places[node.name].read(self._module, node.offset)

    def _select(self, node: Select) -> Visit[_Chain]:
        base: _Chain = yield self._chain(node.operand)
        name = self._module.constant(node.field)
        if node.test:
            text = f"k.test({base.text}, {name}, {node.offset})"
            return _Chain(self._module.assign(text, node.offset), False)
        method = "optional_part" if node.optional else "part"
        text = f"k.{method}({base.text}, {name}, {node.offset}, 1)"
        return _Chain(self._module.assign(text, node.offset), base.whole)

    def _index(self, node: Index) -> Visit[_Chain]:
        module, offset = self._module, node.offset
        base: _Chain = yield self._chain(node.operand)
        method = "optional_part" if node.optional else "part"
        if isinstance(node.key, Const):
            text = f"k.{method}({base.text}, {module.constant(node.key.value)}, {offset}, 1)"
            return _Chain(module.assign(text, offset), base.whole)
        result = module.assign(base.text, offset)
        with module.nested(f"if k.reached({result}):", offset):
            # A key that is a chain itself pays as a selection, not as a whole.
            charge = 1
            if isinstance(node.key, _ATTRIBUTES):
                chain: _Chain = yield self._chain(node.key)
                key, charge = chain.text, int(not isinstance(node.key, Ternary))
            else:
                key = yield self._visit(node.key)
            module.line(f"{result} = k.{method}({result}, {key}, {offset}, {charge})", offset)
        return _Chain(result, base.whole)

    # --- calls -------------------------------------------------------------------------

    def _call(self, node: Call) -> Visit[str]:
        if node.member and node.function in ("or", "orValue"):
            taken: str = yield self._or_value(node)
            return taken
        if is_set_test(node):
            tested: str = yield self._set_test(node)
            return tested
        callee = self._module.constant(self._callee(node))
        args: str = ""
        if self._eager(node):
            texts = []
            for arg in node.args:
                text: str = yield self._visit(arg)
                texts.append(text)
            args = "".join(f"{text}, " for text in texts)
            return self._module.assign(f"k.call({callee}, ({args}))", node.offset)
        called: str = yield self._in_turn(node, callee)
        return called

    def _eager(self, node: Call) -> bool:
        if len(node.args) < 2:
            return True
        if node.function in PATTERN_FUNCTIONS and isinstance(node.args[1], Const):
            return False
        return len(node.args) == 2 and self._library.eager(node.overloads)

    def _in_turn(self, node: Call, callee: str) -> Visit[str]:
        """Arguments one by one; the first failure ends it, unpaid unless it is the last one."""
        module, offset = self._module, node.offset
        result = module.assign("None", offset)
        texts = []
        for i, arg in enumerate(node.args):
            header = f"if {result} is None:" if i else "if True:"
            with module.nested(header, offset):
                text: str = yield self._visit(arg)
                texts.append(text)
                if i < len(node.args) - 1:
                    module.line(f"if {text}.__class__ is Failure: {result} = {text}", offset)
                else:
                    args = "".join(f"{t}, " for t in texts)
                    module.line(f"{result} = k.call({callee}, ({args}))", offset)
        return result

    def _callee(self, node: Call) -> Callee:
        rows = node.overloads
        run = dispatch(rows)
        pattern = node.args[1] if len(node.args) > 1 else None
        if node.function in PATTERN_FUNCTIONS and isinstance(pattern, Const) and len(rows) == 1:
            run = _guarded(run, rows[0], bind_pattern(node.function, str(pattern.value)))
        model = rows[0].cost
        callee = Callee(run, node.offset, ONE if model.resolved and len(rows) > 1 else model)
        callee.grows = any(row.grows for row in rows)
        if any(row.visits for row in rows):
            callee.run = _within(rows)
            callee.visits = True
        return callee

    def _set_test(self, node: Call) -> Visit[str]:
        text: str = yield self._visit(node.args[0])
        items = node.args[1]
        test = SetTest(items.value if isinstance(items, Const) else ())
        callee = self._module.constant(Callee(test, node.offset))
        return self._module.assign(f"k.free({callee}, {text})", node.offset)

    def _or_value(self, node: Call) -> Visit[str]:
        module, offset = self._module, node.offset
        target: str = yield self._visit(node.args[0])
        result = module.assign(f"k.optional({target}, {offset})", offset)
        with module.nested(f"if {result} is NONE or {result}.__class__ is Optional:", offset):
            with module.nested(f"if {result}.value is MISSING:", offset):
                other: str = yield self._visit(node.args[1])
                module.line(f"{result} = {other}", offset)
            if node.function == "orValue":
                with module.nested("else:", offset):
                    module.line(f"{result} = {result}.value", offset)
        return result

    # --- logic -------------------------------------------------------------------------

    def _logic(self, node: Logic) -> Visit[str]:
        module = self._module
        method, stop = ("both", "False") if node.conjunction else ("either", "True")
        first: str = yield self._visit(node.terms[0])
        result = module.assign(first, node.offset)
        for term in node.terms[1:]:
            with module.nested(f"if {result} is not {stop}:", term.offset):
                text: str = yield self._visit(term)
                module.line(f"{result} = k.{method}({result}, {text}, {term.offset})", term.offset)
        return result

    def _ternary(self, node: Ternary) -> Visit[str]:
        module, offset = self._module, node.offset
        condition: str = yield self._visit(node.condition)
        result = module.assign(f"{condition}", offset)
        with module.nested(f"if {condition} is True:", offset):
            then: str = yield self._branch(node.then)
            module.line(f"{result} = {then}", offset)
        with module.nested(f"elif {condition} is False:", offset):
            otherwise: str = yield self._branch(node.otherwise)
            module.line(f"{result} = {otherwise}", offset)
        with module.nested("else:", offset):
            module.line(f"{result} = k.condition({condition}, {offset})", offset)
        return result

    def _branch(self, node: Node) -> Visit[str]:
        """A branch that is a chain does not pay for the whole: the reference looks through."""
        if not isinstance(node, _ATTRIBUTES):
            return self._visit(node)
        return self._unpaid(node)

    def _unpaid(self, node: Node) -> Visit[str]:
        chain: _Chain = yield self._chain(node)
        return chain.text

    # --- literals ----------------------------------------------------------------------

    def _list(self, node: ListLiteral) -> Visit[str]:
        parts: list[str] = yield self._parts(node)
        self._charge(LIST_COST, node.offset)
        optional = self._module.constant(node.optional)
        items = "".join(f"{part}, " for part in parts)
        text = f"k.new_list(({items}), {optional}, {node.offset})"
        return self._module.assign(text, node.offset)

    def _map(self, node: MapLiteral) -> Visit[str]:
        parts: list[str] = yield self._parts(node)
        self._charge(MAP_COST, node.offset)
        optional = self._module.constant(node.optional)
        items = "".join(f"{part}, " for part in parts)
        text = f"k.new_map(({items}), {optional}, {node.offset})"
        return self._module.assign(text, node.offset)

    def _parts(self, node: Node) -> Visit[list[str]]:
        """The parts of a literal; after a failure the rest is not evaluated."""
        module = self._module
        failed = ""
        texts: list[str] = []
        for child in node.children():
            if isinstance(child, Const):
                text: str = yield self._visit(child)
                texts.append(text)
                continue
            name = module.name()
            if failed:
                module.line(f"{name} = {failed}", child.offset)
            with module.nested(
                f"if {failed}.__class__ is not Failure:" if failed else "if True:", child.offset
            ):
                text = yield self._visit(child)
                module.line(f"{name} = {text}", child.offset)
            texts.append(name)
            failed = name
        return texts

    # --- macros ------------------------------------------------------------------------

    def _loop(self, node: Loop) -> Visit[str]:
        module, offset = self._module, node.offset
        source: str = yield self._visit(node.range)
        two = len(node.names) == 2
        result = module.name()
        over = module.assign(f"k.elements({source}, {offset}, two={two})", offset)
        names = [module.name("v") for _ in node.names]
        before = len(self._scope)
        self._scope += [(n, v, False) for n, v in zip(node.names, names, strict=True)]
        with module.nested(f"if {over}.__class__ is Failure:", offset):
            module.line(f"{result} = {over}", offset)
        with module.nested("else:", offset):
            yield _LOOPS[node.kind](self, node, f"for {', '.join(names)} in {over}:", result, names)
        del self._scope[before:]
        if node.kind == "sortBy":
            return self._sorted(node, source, result)
        return result

    def _quantifier(self, node: Loop, header: str, result: str, names: list[str]) -> Visit[None]:
        module, offset = self._module, node.offset
        conjunction = node.kind == "all"
        module.line(f"{result} = {conjunction}", offset)
        with module.nested(header, offset):
            # The test of the accumulator, "not strictly false", comes before each round.
            self._charge(2 if conjunction else 3, offset)
            module.line(f"if {result} is {not conjunction}: break", offset)
            self._charge(1, offset)
            body: str = yield self._visit(node.body)
            method = "both" if conjunction else "either"
            module.line(f"{result} = k.{method}({result}, {body}, {node.body.offset})", offset)
            module.line("k.check()", offset)
        self._charge(1, offset)

    def _exists_one(self, node: Loop, header: str, result: str, names: list[str]) -> Visit[None]:
        module, offset = self._module, node.offset
        module.line(f"{result} = 0", offset)
        with module.nested(header, offset):
            body: str = yield self._visit(node.body)
            with module.nested(f"if {body} is True:", offset):
                self._charge(2, offset)
                module.line(f"if {result}.__class__ is not Failure: {result} += 1", offset)
            with module.nested(f"elif {body} is not False:", offset):
                module.line(f"{result} = k.condition({body}, {node.body.offset})", offset)
            module.line("k.check()", offset)
        self._charge(2, offset)
        module.line(f"if {result}.__class__ is not Failure: {result} = {result} == 1", offset)

    def _collect(self, node: Loop, header: str, result: str, names: list[str]) -> Visit[None]:
        module, offset = self._module, node.offset
        values, failed = module.assign("[]", offset), module.assign("None", offset)
        with module.nested(header, offset):
            if node.condition is None:
                yield self._element(node, names, values, failed)
            else:
                condition: str = yield self._visit(node.condition)
                with module.nested(f"if {condition} is True:", offset):
                    yield self._element(node, names, values, failed)
                with module.nested(f"elif {condition} is not False:", offset):
                    module.line(f"{failed} = k.condition({condition}, {offset})", offset)
            module.line("k.check()", offset)
        self._charge(1, offset)
        kind = repr(node.kind)
        module.line(f"{result} = k.collected({kind}, {values}, {failed}, {offset})", offset)

    def _element(self, node: Loop, names: list[str], values: str, failed: str) -> Visit[None]:
        """One round: the accumulator, the element, and the operation that adds it."""
        module, offset = self._module, node.body.offset
        if node.kind == "transformMap":
            # The reference stops at an accumulator that failed before.
            self._charge(1, offset)
            with module.nested(f"if {failed} is None:", offset):
                text: str = yield self._visit(node.body)
                self._charge(2, offset)
                self._add(f"({names[0]}, {text})", text, values, failed, offset)
            return
        body: str = yield self._visit(node.body)
        if node.kind == "filter":
            with module.nested(f"if {body} is True:", offset):
                self._charge(LIST_COST + 3, offset)
                module.line(f"{values}.append({names[0]})", offset)
            with module.nested(f"elif {body} is not False:", offset):
                module.line(f"{failed} = k.condition({body}, {offset})", offset)
            return
        if node.kind == "transformMapEntry":
            self._charge(2, offset)
        else:
            self._charge(2 + (0 if isinstance(node.body, Const) else LIST_COST), offset)
        self._add(body, body, values, failed, offset)

    def _add(self, item: str, part: str, values: str, failed: str, offset: int) -> None:
        module = self._module
        with module.nested(f"if {part}.__class__ is Failure:", offset):
            module.line(f"{failed} = {failed} or {part}", offset)
        with module.nested("else:", offset):
            module.line(f"{values}.append({item})", offset)

    def _sorted(self, node: Loop, source: str, keys: str) -> str:
        """The call that sorts; the reference names its input twice."""
        module, offset = self._module, node.offset
        self._charge(2, offset)
        rows = self._library.members("@sortBy")
        element = node.body.type.name
        matching = [r for r in rows if r.args[1].params[0].name == element]
        callee = module.constant(Callee(SORT, offset, rows[0].cost if matching else ONE))
        return module.assign(f"k.call({callee}, ({source}, {keys}))", offset)

    def _bind(self, node: Bind) -> Visit[str]:
        """The value is computed when it is first used, or never."""
        call: str = yield self._own_function(node.init)
        function, _, args = call.partition("(")
        lazy = self._module.assign(f"Lazy({function}, ({args[:-1]},))", node.offset)
        self._scope.append((node.name, lazy, True))
        body: str = yield self._visit(node.body)
        del self._scope[-1]
        return body

    def _optional_map(self, node: OptionalMap) -> Visit[str]:
        """The reference evaluates the target twice, the second time if the variable is used."""
        module, offset = self._module, node.offset
        before = module.assign("k.cost", offset)
        target: str = yield self._visit(node.target)
        spent = module.assign(f"k.cost - {before}", offset)
        has_value = module.constant(Callee(HAS_VALUE, offset))
        checked = module.assign(f"k.optional({target}, {offset})", offset)
        result = module.assign(f"k.call({has_value}, ({checked},))", offset)
        with module.nested(f"if {result} is True:", offset):
            again = module.constant(_again)
            lazy = module.assign(f"Lazy({again}, (k, {spent}, {target}))", offset)
            self._scope.append((node.name, lazy, True))
            body: str = yield self._visit(node.body)
            del self._scope[-1]
            if node.flat:
                module.line(f"{result} = {body}", offset)
            else:
                of = module.constant(Callee(OptionalValue, offset))
                module.line(f"{result} = k.call({of}, ({body},))", offset)
        with module.nested(f"elif {result} is False:", offset):
            self._charge(1, offset)
            module.line(f"{result} = NONE", offset)
        return result


def _again(tracker: Any, spent: int, target: OptionalValue) -> Any:
    """The value of an optional one that is charged for a second time."""
    tracker.cost += spent + 1
    tracker.check()
    return target.value


def _within(rows: Rows) -> Callable[..., Any]:
    return lambda *args: dispatch_within(rows, args[-1], args[:-1])


def _guarded(slow: Callable[..., Any], row: Any, bound: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return bound(*args) if row.accepts(args) else slow(*args)

    return call


_LOOPS: Final[dict[str, Callable[..., Visit[None]]]] = {
    "all": Accountant._quantifier,
    "exists": Accountant._quantifier,
    "exists_one": Accountant._exists_one,
    "existsOne": Accountant._exists_one,
    "map": Accountant._collect,
    "filter": Accountant._collect,
    "transformList": Accountant._collect,
    "transformMap": Accountant._collect,
    "transformMapEntry": Accountant._collect,
    "sortBy": Accountant._collect,
}

_VISITORS: Final[dict[type[Node], Callable[[Accountant, Any], Visit[str]]]] = {
    Const: Accountant._const,
    Ident: Accountant._attribute,
    Select: Accountant._attribute,
    Index: Accountant._attribute,
    Call: Accountant._call,
    Logic: Accountant._logic,
    Ternary: Accountant._ternary,
    ListLiteral: Accountant._list,
    MapLiteral: Accountant._map,
    Loop: Accountant._loop,
    Bind: Accountant._bind,
    OptionalMap: Accountant._optional_map,
}
