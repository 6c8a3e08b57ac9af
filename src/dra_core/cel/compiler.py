"""A checked tree to fast Python code, without accounting of costs.

What may live here: what each node becomes. Errors are exceptions; what CEL absorbs is
caught where it is absorbed. Code that fails costs more time than code that does not.

A legal tree may be deeper than Python allows blocks or expressions to nest, so every node
becomes statements, and what would nest too deep becomes a function of its own.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dra_core.cel import runtime
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
from dra_core.cel.emitter import MAX_DEPTH, Block, Module
from dra_core.cel.inline import (
    CLASSES,
    TEMPLATES,
    Code,
    fold_call,
    is_known,
    result_type,
    wanted_types,
    with_guard,
)
from dra_core.cel.library import dispatch
from dra_core.cel.library_lists import sort_by
from dra_core.cel.library_regex import PATTERN_FUNCTIONS, bind_pattern
from dra_core.cel.literals import SetTest, is_set_test
from dra_core.cel.problems import FAULTS
from dra_core.cel.types import BOOL, DYN, Type
from dra_core.cel.values import MISSING, NONE, MapValue, OptionalValue, UInt
from dra_core.cel.versions import SemVer
from dra_core.values.quantity import Quantity

HELPERS: Final[dict[str, Any]] = {
    "Faults": FAULTS,
    "Failed": runtime.Failed,
    "MISSING": MISSING,
    "NONE": NONE,
    "MapValue": MapValue,
    "Optional": OptionalValue,
    "Quantity": Quantity,
    "SemVer": SemVer,
    "UInt": UInt,
    "elements": runtime.elements,
    "entries": runtime.entries,
    "entry_map": runtime.entry_map,
    "get": runtime.get,
    "has": runtime.has,
    "need_optional": runtime.need_optional,
    "not_a_bool": runtime.not_a_bool,
    "optional_get": runtime.optional_get,
    "pairs": runtime.pairs,
    "sort_by": sort_by,
}
"""Names that generated code may use."""


_FLAT: Final = (Const, Ident, Select, Index)
"""Nodes that open no block of their own, or are better known as places."""


class Variable(NamedTuple):
    """A variable of the expression: how the code calls it, or the place it stands for."""

    code: Code
    fallible: bool = False


class Compiler:
    """Writes the function for one expression."""

    def __init__(self, module: Module, places: dict[str, Place]) -> None:
        self._module = module
        self._places = places
        self._scope: list[tuple[str, Variable]] = []

    def function(self, name: str, root: Node, prologue: tuple[str, ...] = ()) -> None:
        """Write the function ``name`` that returns the value of the tree, a bool."""
        module = self._module
        module.namespace.update(HELPERS)
        with module.new_function(name, module.parameters):
            for line in prologue:
                module.line(line, 0, fallible=True)
            code = trampoline(self._visit(root))
            module.line(f"return {self._bool(code, root.offset)}", root.offset)

    # --- helpers ---------------------------------------------------------------------

    def _visit(self, node: Node) -> Visit[Code]:
        if self._module.block.depth >= MAX_DEPTH and not isinstance(node, _FLAT):
            return self._outlined(node)
        return _VISITORS[node.__class__](self, node)

    def _outlined(self, node: Node) -> Visit[Code]:
        """The node as a function of its own, which is given all variables in scope."""
        module = self._module
        variables = dict.fromkeys(v.code.text for _, v in self._scope if v.code.place is None)
        parameters = (*module.parameters, *variables)
        name = module.name("f")
        with module.new_function(name, parameters) as function:
            code: Code = yield _VISITORS[node.__class__](self, node)
            module.line(f"return {self._value(code, node.offset)}", node.offset)
        call = f"{name}({', '.join(parameters)})"
        fallible = function.body.fallible
        return Code(module.assign(call, node.offset, fallible=fallible), code.type)

    def _value(self, code: Code, offset: int) -> str:
        """The expression for the value, reading the place if it is one."""
        if code.place is not None:
            return code.place.read(self._module, offset)
        return code.text

    def _read(self, code: Code, offset: int) -> Code:
        if code.place is None:
            return code
        return Code(code.place.read(self._module, offset), code.place.type)

    def _name(self, code: Code, offset: int) -> str:
        """A variable with the value."""
        value = self._value(code, offset)
        return value if value.isidentifier() else self._module.assign(value, offset)

    def _bool(self, code: Code, offset: int) -> str:
        code = self._read(code, offset)
        if code.type == BOOL:
            return code.text
        name = self._name(code, offset)
        check = f"if {name} is not True and {name} is not False: not_a_bool({name})"
        self._module.line(check, offset, fallible=True)
        return name

    def _const(self, node: Const) -> Visit[Code]:
        return done(Code(self._module.constant(node.value), node.type, constant=node))

    # --- names and parts ---------------------------------------------------------------

    def _ident(self, node: Ident) -> Visit[Code]:
        for name, variable in reversed(self._scope):
            if name == node.name:
                return done(self._variable(variable, node.offset))
        place = self._places[node.name]
        return done(Code("", place.type, place))

    def _variable(self, variable: Variable, offset: int) -> Code:
        if variable.fallible:
            name = variable.code.text
            check = f"if {name}.__class__ is Failed: raise {name}.problem"
            self._module.line(check, offset, fallible=True)
        return variable.code

    def _select(self, node: Select) -> Visit[Code]:
        operand: Code = yield self._visit(node.operand)
        return self._part(node, operand, node.field, node.offset)

    def _index(self, node: Index) -> Visit[Code]:
        operand: Code = yield self._visit(node.operand)
        if isinstance(node.key, Const) and isinstance(node.key.value, str):
            return self._part(node, operand, node.key.value, node.offset)
        module = self._module
        container = self._name(operand, node.offset)
        with module.detached() as block:
            key: Code = yield self._visit(node.key)
            function = "optional_get" if node.optional else "get"
            call = f"{function}({container}, {self._value(key, node.offset)})"
            result = module.assign(call, node.offset, fallible=True)
        if operand.place is not None or node.operand.type.name not in ("dyn", "optional_type"):
            module.inline(block)
            return Code(result)
        # Into an optional value that is absent no key is evaluated.
        absent = f"{container}.__class__ is Optional and {container}.value is MISSING"
        module.line(f"{result} = NONE", node.offset)
        module.attach(f"if not ({absent}):", node.offset, block)
        return Code(result)

    def _part(self, node: Select | Index, operand: Code, name: str, offset: int) -> Code:
        """A part with a name that is known: of a place where possible, else of the value."""
        module = self._module
        test = isinstance(node, Select) and node.test
        if operand.place is not None:
            if test or node.optional:
                entry = operand.place.entry(module, offset, name)
                if entry is not None and test:
                    return Code(module.assign(entry.present, offset), BOOL)
                if entry is not None:
                    value = f"Optional({entry.value})"
                    if entry.present != "True":
                        value = f"{value} if {entry.present} else NONE"
                    return Code(module.assign(value, offset))
            else:
                child = operand.place.child(name)
                if child is not None:
                    return Code("", child.type, child)
        function = "has" if test else "optional_get" if node.optional else "get"
        call = f"{function}({self._value(operand, offset)}, {module.constant(name)})"
        text = module.assign(call, offset, fallible=True)
        return Code(text, BOOL if test else DYN)

    # --- calls -----------------------------------------------------------------------

    def _call(self, node: Call) -> Visit[Code]:
        if node.member and node.function in ("or", "orValue"):
            code: Code = yield self._or_value(node)
            return code
        if node.function == "@in" and isinstance(node.args[0], Const):
            contained: Code = yield self._visit(node.args[1])
            tested = self._in_place(node, contained)
            if tested is not None:
                return tested
            item: Code = yield self._visit(node.args[0])
            codes = [item, self._read(contained, node.offset)]
            return self._called(node, codes)
        codes = []
        for arg in node.args:
            arg_code: Code = yield self._visit(arg)
            codes.append(self._read(arg_code, arg.offset))
        return self._called(node, codes)

    def _in_place(self, node: Call, container: Code) -> Code | None:
        key = node.args[0]
        if container.place is None or not isinstance(key, Const) or not isinstance(key.value, str):
            return None
        condition = container.place.contains(self._module, node.offset, key.value)
        if condition is None:
            return None
        return Code(self._module.assign(condition, node.offset), BOOL)

    def _called(self, node: Call, codes: list[Code]) -> Code:
        if is_set_test(node):
            return self._set_test(node, codes[0])
        folded = fold_call(node, codes)
        if folded is not None:
            return Code(self._module.constant(folded.value), folded.type, constant=folded)
        inlined = self._inlined(node, codes)
        if inlined is not None:
            return inlined
        function = self._module.constant(self._function(node, codes))
        call = f"{function}({', '.join(code.text for code in codes)})"
        result = result_type(node)
        return Code(self._module.assign(call, node.offset, fallible=True), result)

    def _set_test(self, node: Call, code: Code) -> Code:
        items = node.args[1]
        test = SetTest(items.value if isinstance(items, Const) else ())
        slow, texts = self._module.constant(test), self._module.constant(test.texts)
        name = self._name(code, node.offset)
        expression = f"{name} in {texts} if {name}.__class__ is str else {slow}({name})"
        return Code(self._module.assign(expression, node.offset, fallible=True), BOOL)

    def _function(self, node: Call, codes: list[Code]) -> Any:
        if node.function in PATTERN_FUNCTIONS and codes[1].constant is not None:
            pattern = codes[1].constant.value
            if isinstance(pattern, str) and len(node.overloads) == 1:
                bound = bind_pattern(node.function, pattern)
                return with_guard(node, bound)
        if len(node.overloads) == 1:
            row = node.overloads[0]
            known = (is_known(code.type, t) for code, t in zip(codes, row.args, strict=True))
            if all(known):
                return row.run
        return dispatch(node.overloads)

    def _inlined(self, node: Call, codes: list[Code]) -> Code | None:
        """The call as an expression, if the types that are needed are known or cheap to test."""
        wanted = wanted_types(node, codes)
        template = TEMPLATES.get((node.function, wanted))
        if template is None:
            return None
        tests = []
        names = []
        for code, name in zip(codes, wanted, strict=True):
            text = code.text
            if code.type.name != name:
                text = self._name(code, node.offset)
                tests.append(f"{text}.__class__ is {CLASSES[name]}")
            names.append(text)
        expression = template.format(*names)
        if tests:
            slow = self._module.constant(dispatch(node.overloads))
            fallback = f"{slow}({', '.join(names)})"
            expression = f"({expression}) if {' and '.join(tests)} else {fallback}"
        text = self._module.assign(expression, node.offset, fallible=bool(tests))
        return Code(text, result_type(node))

    def _or_value(self, node: Call) -> Visit[Code]:
        """``a.orValue(b)`` and ``a.or(b)``: ``b`` is evaluated only if it is needed."""
        module = self._module
        target: Code = yield self._visit(node.args[0])
        name = self._name(target, node.offset)
        result = module.name()
        module.line(f"need_optional({name})", node.offset, fallible=True)
        taken = f"{name}.value" if node.function == "orValue" else name
        with module.nested(f"if {name}.value is not MISSING:", node.offset):
            module.line(f"{result} = {taken}", node.offset)
        with module.nested("else:", node.offset):
            other: Code = yield self._visit(node.args[1])
            module.line(f"{result} = {self._value(other, node.offset)}", node.offset)
            if node.function == "or":
                module.line(f"need_optional({result})", node.offset, fallible=True)
        return Code(result)

    # --- logic -----------------------------------------------------------------------

    def _logic(self, node: Logic) -> Visit[Code]:
        """A chain, term by term: the absorbing value ends it, errors wait until the end."""
        module = self._module
        result, problem = module.name(), module.name("e")
        go_on = result if node.conjunction else f"not {result}"
        neutral = str(node.conjunction)
        start = len(module.block.items)
        waiting = False
        for i, term in enumerate(node.terms):
            with module.detached() as block:
                code: Code = yield self._visit(term)
                module.line(f"{result} = {self._bool(code, term.offset)}", term.offset)
            last = i == len(node.terms) - 1
            header = "" if i == 0 else f"if {go_on}:"
            if not block.fallible or (last and not waiting):
                self._put(block, header, term.offset)
                continue
            waiting = True
            with module.detached() as guarded:
                module.attach("try:", term.offset, block, absorbs=True)
                with module.nested("except Faults as x:", term.offset):
                    module.line(f"{problem} = {problem} or x", term.offset)
                    module.line(f"{result} = {neutral}", term.offset)
            self._put(guarded, header, term.offset)
        if waiting:
            module.block.items.insert(start, (f"{problem} = None", node.offset, None))
            check = f"if {problem} is not None and {go_on}: raise {problem}"
            module.line(check, node.offset, fallible=True)
        return Code(result, BOOL)

    def _put(self, block: Block, header: str, offset: int) -> None:
        if header:
            self._module.attach(header, offset, block)
        else:
            self._module.inline(block)

    def _ternary(self, node: Ternary) -> Visit[Code]:
        module = self._module
        condition: Code = yield self._visit(node.condition)
        test = self._bool(condition, node.condition.offset)
        result = module.name()
        with module.nested(f"if {test}:", node.offset):
            then: Code = yield self._visit(node.then)
            then = self._read(then, node.offset)
            module.line(f"{result} = {then.text}", node.offset)
        with module.nested("else:", node.offset):
            otherwise: Code = yield self._visit(node.otherwise)
            otherwise = self._read(otherwise, node.offset)
            module.line(f"{result} = {otherwise.text}", node.offset)
        return Code(result, then.type if then.type == otherwise.type else DYN)

    # --- literals ----------------------------------------------------------------------

    def _list(self, node: ListLiteral) -> Visit[Code]:
        parts = []
        for i, item in enumerate(node.items):
            code: Code = yield self._visit(item)
            if i in node.optional:
                name = self._name(code, item.offset)
                self._module.line(f"need_optional({name})", item.offset, fallible=True)
                parts.append(f"*(() if {name}.value is MISSING else ({name}.value,))")
            else:
                parts.append(self._value(code, item.offset))
        text = f"({', '.join(parts)},)" if parts else "()"
        return Code(self._module.assign(text, node.offset), Type("list"))

    def _map(self, node: MapLiteral) -> Visit[Code]:
        parts = []
        for i, (key_node, value_node) in enumerate(zip(node.keys, node.values, strict=True)):
            key: Code = yield self._visit(key_node)
            key_text = self._value(key, key_node.offset)
            value: Code = yield self._visit(value_node)
            if i in node.optional:
                name = self._name(value, value_node.offset)
                self._module.line(f"need_optional({name})", value_node.offset, fallible=True)
                entry = f"({key_text}, {name}.value)"
                parts.append(f"*(() if {name}.value is MISSING else ({entry},))")
            else:
                parts.append(f"({key_text}, {self._value(value, value_node.offset)})")
        text = f"MapValue(({', '.join(parts)},))" if parts else "MapValue()"
        return Code(self._module.assign(text, node.offset, fallible=True), Type("map"))

    # --- macros ------------------------------------------------------------------------

    def _loop(self, node: Loop) -> Visit[Code]:
        module = self._module
        source: Code = yield self._visit(node.range)
        items = self._name(source, node.offset)
        names = [module.name("v") for _ in node.names]
        over = f"{'pairs' if len(names) == 2 else 'elements'}({items})"
        iterated = module.assign(over, node.offset, fallible=True)
        before = len(self._scope)
        for known, name in zip(node.names, names, strict=True):
            self._scope.append((known, Variable(Code(name))))
        header = f"for {', '.join(names)} in {iterated}:"
        writer = _LOOPS[node.kind]
        code: Code = yield writer(self, node, header, names, items)
        del self._scope[before:]
        return code

    def _quantifier(self, node: Loop, header: str, names: list[str], items: str) -> Visit[Code]:
        """``all`` and ``exists``: errors wait, the deciding value ends the loop."""
        module = self._module
        result, problem = module.name(), module.name("e")
        deciding, neutral = ("False", "True") if node.kind == "all" else ("True", "False")
        start = len(module.block.items)
        module.line(f"{result} = {neutral}", node.offset)
        with module.nested(header, node.offset):
            with module.detached() as block:
                code: Code = yield self._visit(node.body)
                test = self._bool(code, node.body.offset)
                decides = test if deciding == "True" else f"not {test}"
                with module.nested(f"if {decides}:", node.body.offset):
                    module.line(f"{result} = {deciding}", node.body.offset)
                    module.line("break", node.body.offset)
            if block.fallible:
                module.attach("try:", node.body.offset, block, absorbs=True)
                with module.nested("except Faults as x:", node.offset):
                    module.line(f"{problem} = {problem} or x", node.offset)
            else:
                module.inline(block)
        if block.fallible:
            module.block.items.insert(start, (f"{problem} = None", node.offset, None))
            undecided = f"{problem} is not None and {result} is {neutral}"
            module.line(f"if {undecided}: raise {problem}", node.offset, fallible=True)
        return Code(result, BOOL)

    def _exists_one(self, node: Loop, header: str, names: list[str], items: str) -> Visit[Code]:
        module = self._module
        count = module.assign("0", node.offset)
        with module.nested(header, node.offset):
            code: Code = yield self._visit(node.body)
            test = self._bool(code, node.body.offset)
            module.line(f"if {test}: {count} += 1", node.body.offset)
        return Code(module.assign(f"{count} == 1", node.offset), BOOL)

    def _collect(self, node: Loop, header: str, names: list[str], items: str) -> Visit[Code]:
        """The macros that build a list or a map, element by element."""
        module = self._module
        collected = module.assign("[]", node.offset)
        with module.nested(header, node.offset):
            if node.condition is not None:
                condition: Code = yield self._visit(node.condition)
                test = self._bool(condition, node.condition.offset)
                with module.nested(f"if {test}:", node.offset):
                    yield self._element(node, names, collected)
            else:
                yield self._element(node, names, collected)
        if node.kind in ("transformMap", "transformMapEntry"):
            built = f"entry_map({collected})"
            return Code(module.assign(built, node.offset, fallible=True), Type("map"))
        if node.kind == "sortBy":
            built = f"sort_by(tuple(elements({items})), tuple({collected}))"
            return Code(module.assign(built, node.offset, fallible=True), Type("list"))
        return Code(module.assign(f"tuple({collected})", node.offset), Type("list"))

    def _element(self, node: Loop, names: list[str], collected: str) -> Visit[None]:
        module, offset = self._module, node.body.offset
        code: Code = yield self._visit(node.body)
        if node.kind == "filter":
            module.line(f"if {self._bool(code, offset)}: {collected}.append({names[0]})", offset)
            return
        value = self._value(code, offset)
        if node.kind == "transformMap":
            module.line(f"{collected}.append(({names[0]}, {value}))", offset)
        elif node.kind == "transformMapEntry":
            module.line(f"{collected}.extend(entries({value}))", offset, fallible=True)
        else:
            module.line(f"{collected}.append({value})", offset)

    def _bind(self, node: Bind) -> Visit[Code]:
        """The value is computed once; if that fails, using it fails, not binding it."""
        module = self._module
        with module.detached() as block:
            code: Code = yield self._visit(node.init)
            if code.place is not None and not code.place.parted:
                code = self._read(code, node.init.offset)
            if code.place is None:
                name = module.assign(code.text, node.offset)
        if code.place is None and block.fallible:
            module.attach("try:", node.offset, block, absorbs=True)
            with module.nested("except Faults as x:", node.offset):
                module.line(f"{name} = Failed(x)", node.offset)
            variable = Variable(Code(name), fallible=True)
        else:
            module.inline(block)
            variable = Variable(code if code.place else Code(name, code.type))
        self._scope.append((node.name, variable))
        body: Code = yield self._visit(node.body)
        body = self._read(body, node.offset)
        del self._scope[-1]
        return body

    def _optional_map(self, node: OptionalMap) -> Visit[Code]:
        module = self._module
        target: Code = yield self._visit(node.target)
        name = self._name(target, node.offset)
        module.line(f"need_optional({name})", node.offset, fallible=True)
        result = module.name()
        with module.nested(f"if {name}.value is not MISSING:", node.offset):
            variable = module.assign(f"{name}.value", node.offset)
            self._scope.append((node.name, Variable(Code(variable))))
            body: Code = yield self._visit(node.body)
            value = self._value(body, node.body.offset)
            module.line(f"{result} = {value if node.flat else f'Optional({value})'}", node.offset)
            del self._scope[-1]
        with module.nested("else:", node.offset):
            module.line(f"{result} = NONE", node.offset)
        return Code(result)


_LOOPS: Final[dict[str, Callable[..., Visit[Code]]]] = {
    "all": Compiler._quantifier,
    "exists": Compiler._quantifier,
    "exists_one": Compiler._exists_one,
    "existsOne": Compiler._exists_one,
    "map": Compiler._collect,
    "filter": Compiler._collect,
    "transformList": Compiler._collect,
    "transformMap": Compiler._collect,
    "transformMapEntry": Compiler._collect,
    "sortBy": Compiler._collect,
}

_VISITORS: Final[dict[type[Node], Callable[[Compiler, Any], Visit[Code]]]] = {
    Const: Compiler._const,
    Ident: Compiler._ident,
    Select: Compiler._select,
    Index: Compiler._index,
    Call: Compiler._call,
    Logic: Compiler._logic,
    Ternary: Compiler._ternary,
    ListLiteral: Compiler._list,
    MapLiteral: Compiler._map,
    Loop: Compiler._loop,
    Bind: Compiler._bind,
    OptionalMap: Compiler._optional_map,
}
