"""The most that an expression may cost, before anything is evaluated.

What may live here: the walk over a checked tree that adds up the reference's static
estimate. It is the number that the API server compares with its limit, and it tells
whether an evaluation needs to count.

Source: cel-go's static cost estimator. Macros are estimated as the loops that they stand
for there.
"""

from collections.abc import Callable, Iterable, Mapping
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
)
from dra_core.cel.cost import LIST_COST, MAP_COST, SORT_BY, Argument
from dra_core.cel.sizes import MOST, UNKNOWN, Shape, Size
from dra_core.cel.types import Type
from dra_core.cel.values import MapValue, Value

Path = tuple[str, ...]

_SCALARS: Final = frozenset(
    {"bool", "double", "google.protobuf.Duration", "int", "google.protobuf.Timestamp", "uint"}
)


class _Known:
    """What is known of a node: its path from a variable, its size, that of its elements."""

    __slots__ = ("element", "key", "path", "size")

    def __init__(
        self,
        path: Path = (),
        size: Size | None = None,
        key: Size | None = None,
        element: Size | None = None,
    ) -> None:
        self.path = path
        self.size = size
        self.key = key
        self.element = element


_NOTHING: Final = _Known()

Estimated = tuple[int, _Known]
"""The cost of a node, and what is known of its value."""


def estimate(root: Node, shapes: Mapping[str, Shape]) -> int:
    """The most that a checked tree may cost; ``shapes`` are those of the variables.

    Must run before constants are folded: the reference estimates what is written.
    Cost: linear in the tree.
    """
    cost, _ = trampoline(_Estimator(shapes).visit(root))
    return cost


def _add(*costs: int) -> int:
    return min(sum(costs), MOST)


class _Estimator:
    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = shapes
        self._scope: list[tuple[str, _Known]] = []

    def visit(self, node: Node) -> Visit[Estimated]:
        """The estimate of a node."""
        return _VISITORS[node.__class__](self, node)

    # --- sizes -------------------------------------------------------------------------

    def _declared(self, path: Path) -> Size | None:
        """What the environment says about the size of something with a path."""
        shape = self._shapes.get(path[0]) if path else None
        for name in path[1:]:
            shape = None if shape is None else shape.part(name)
        return None if shape is None else Size(0, shape.size)

    def _size(self, node: Node, known: _Known) -> Size | None:
        # The order is the reference's; a literal's size beats all but a computed one.
        if known.size is not None and not isinstance(node, Ident):
            return known.size
        written = _written_size(node)
        if written is not None:
            return written
        declared = self._declared(known.path)
        if declared is not None:
            return declared
        return Size(1) if _is_scalar(node.type) else known.size

    def _argument(self, node: Node, known: _Known) -> Argument:
        size = self._size(node, known)
        element = self._declared((*known.path, "@items")) if known.path else None
        constant = node.value if isinstance(node, Const) else None
        return Argument(UNKNOWN if size is None else size, node.type, element, constant)

    # --- nodes -------------------------------------------------------------------------

    def _const(self, node: Const) -> Visit[Estimated]:
        # A type's name is an identifier to the reference, and costs one.
        return done((int(isinstance(node.value, Type)), _NOTHING))

    def _ident(self, node: Ident) -> Visit[Estimated]:
        for name, known in reversed(self._scope):
            if name == node.name:
                return done((1, known))
        return done((1, _Known((node.name,))))

    def _select(self, node: Select) -> Visit[Estimated]:
        cost, known = yield self.visit(node.operand)
        if node.test:
            return cost, _NOTHING
        path = (*known.path, node.field) if known.path else ()
        if node.optional:
            return _add(cost, 1), _NOTHING
        countable = node.operand.type.name == "map" or node.operand.type.name not in _PLAIN
        return _add(cost, int(countable)), _Known(path)

    def _index(self, node: Index) -> Visit[Estimated]:
        cost, known = yield self.visit(node.operand)
        key_cost, _ = yield self.visit(node.key)
        total = _add(cost, key_cost, 1)
        if node.optional:
            return total, _NOTHING
        step = "@items" if node.operand.type.name == "list" else "@values"
        path = (*known.path, step) if known.path else ()
        return total, _Known(path, known.element)

    def _call(self, node: Call) -> Visit[Estimated]:
        if node.function == "dyn":
            cost, known = yield self.visit(node.args[0])
            size = self._size(node.args[0], known)
            return _add(cost, 1), _Known((), size, known.key, known.element)
        total = 0
        args: list[Argument] = []
        all_known: list[_Known] = []
        for arg in node.args:
            cost, known = yield self.visit(arg)
            total = _add(total, cost)
            args.append(self._argument(arg, known))
            all_known.append(known)
        most, size = self._most(node, args)
        result = _Known((), size)
        if node.function == "_+_" and size is not None:
            result.key = _union(known.key for known in all_known)
            result.element = _union(known.element for known in all_known)
        return _add(total, most), result

    def _most(self, node: Call, args: list[Argument]) -> tuple[int, Size | None]:
        """Over all overloads that the types allow."""
        most, size = 0, None
        for row in node.overloads:
            cost, result = row.cost.most(tuple(args))
            most = max(most, cost)
            if result is not None:
                size = result if size is None else size.union(result)
        return most, size

    def _logic(self, node: Logic) -> Visit[Estimated]:
        total = 0
        for term in node.terms:
            cost, _ = yield self.visit(term)
            total = _add(total, cost)
        return total, _NOTHING

    def _ternary(self, node: Ternary) -> Visit[Estimated]:
        condition, _ = yield self.visit(node.condition)
        then, then_known = yield self.visit(node.then)
        otherwise, other_known = yield self.visit(node.otherwise)
        sizes = (self._size(node.then, then_known), self._size(node.otherwise, other_known))
        known = _Known(
            (),
            (sizes[0] or UNKNOWN).union(sizes[1] or UNKNOWN),
            _union((then_known.key, other_known.key)),
            _union((then_known.element, other_known.element)),
        )
        return _add(condition, max(then, otherwise)), known

    def _list(self, node: ListLiteral) -> Visit[Estimated]:
        total = LIST_COST
        sizes = []
        for item in node.items:
            cost, known = yield self.visit(item)
            total = _add(total, cost)
            sizes.append(self._size(item, known) or UNKNOWN)
        element = _union(sizes) if sizes else Size(0)
        return total, _Known((), Size(len(node.items)), Size(1), element)

    def _map(self, node: MapLiteral) -> Visit[Estimated]:
        total = MAP_COST
        keys, values = [], []
        for key, value in zip(node.keys, node.values, strict=True):
            cost, known = yield self.visit(key)
            keys.append(self._size(key, known) or UNKNOWN)
            value_cost, value_known = yield self.visit(value)
            values.append(self._size(value, value_known) or UNKNOWN)
            total = _add(total, cost, value_cost)
        key_size = _union(keys) if keys else Size(0)
        element = _union(values) if values else Size(0)
        return total, _Known((), Size(len(node.keys)), key_size, element)

    # --- macros ------------------------------------------------------------------------

    def _loop(self, node: Loop) -> Visit[Estimated]:
        cost, known = yield self.visit(node.range)
        if node.kind == "sortBy":
            sort: Estimated = yield self._sort_by(node, cost, known)
            return sort
        before = len(self._scope)
        self._scope += self._variables(node, known)
        condition = 0
        if node.condition is not None:
            condition, _ = yield self.visit(node.condition)
        body, body_known = yield self.visit(node.body)
        step = _add(condition, _step_cost(node, body))
        del self._scope[before:]
        count = self._size(node.range, known) or UNKNOWN
        total = _add(cost, _ONCE[node.kind], min(count.max * step, MOST))
        return total, self._collected(node, known, body_known, count)

    def _variables(self, node: Loop, known: _Known) -> Iterable[tuple[str, _Known]]:
        is_list = node.range.type.name == "list"
        keys = _Known(_down(known, "@indices" if is_list else "@keys"), known.key)
        values = _Known(_down(known, "@items" if is_list else "@values"), known.element)
        if len(node.names) == 2:
            return zip(node.names, (keys, values), strict=True)
        return [(node.names[0], values if is_list else keys)]

    def _collected(self, node: Loop, range_: _Known, body: _Known, count: Size) -> _Known:
        if node.kind not in _COLLECTING:
            return _Known((), Size(1))
        element = self._size(node.body, body) or UNKNOWN
        if node.kind == "filter":
            is_list = node.range.type.name == "list"
            variable = _Known(
                _down(range_, "@items" if is_list else "@keys"),
                range_.element if is_list else range_.key,
            )
            element = self._size(Ident(0, ""), variable) or UNKNOWN
        key = Size(1) if node.kind in ("map", "filter", "transformList") else None
        return _Known((), count, key, element if key is not None else None)

    def _sort_by(self, node: Loop, cost: int, known: _Known) -> Visit[Estimated]:
        """``cel.bind(input, range, input.sort(input.map(name, body)))`` to the reference."""
        self._scope += self._variables(node, known)
        body, body_known = yield self.visit(node.body)
        del self._scope[-1]
        count = self._size(node.range, known) or UNKNOWN
        mapped = _add(1, LIST_COST, 1, min(count.max * _add(body, LIST_COST + 2), MOST))
        element = self._size(node.body, body_known)
        keys = Argument(count, Type("list", (node.body.type,)), element)
        items = Argument(count, node.range.type, known.element)
        sort, size = SORT_BY.most((items, keys))
        return _add(LIST_COST, cost, 1, mapped, sort), _Known((), size)

    def _bind(self, node: Bind) -> Visit[Estimated]:
        cost, known = yield self.visit(node.init)
        size = self._size(node.init, known)
        variable = _Known(known.path, size, known.key, known.element)
        self._scope.append((node.name, variable))
        body, body_known = yield self.visit(node.body)
        del self._scope[-1]
        body_size = self._size(node.body, body_known)
        result = _Known((), body_size, body_known.key, body_known.element)
        return _add(LIST_COST, cost, body), result

    def _optional_map(self, node: OptionalMap) -> Visit[Estimated]:
        cost, _ = yield self.visit(node.target)
        self._scope.append((node.name, _NOTHING))
        body, _ = yield self.visit(node.body)
        del self._scope[-1]
        # target.hasValue() ? optional.of(cel.bind(name, target.value(), body)) : none
        then = _add(LIST_COST, cost, 1, body, int(not node.flat))
        return _add(cost, 1, max(then, 1)), _Known((), UNKNOWN)


_PLAIN: Final = frozenset({"dyn", "optional_type"})
_COLLECTING: Final = frozenset(
    {"map", "filter", "transformList", "transformMap"} | {"transformMapEntry"}
)

_ONCE: Final = {
    "all": 1,
    "exists": 1,
    "exists_one": 2,
    "existsOne": 2,
    "map": LIST_COST + 1,
    "filter": LIST_COST + 1,
    "transformList": LIST_COST + 1,
    "transformMap": MAP_COST + 1,
    "transformMapEntry": MAP_COST + 1,
}
"""What a loop costs beside its range and its steps: the start value and the result."""


def _step_cost(node: Loop, body: int) -> int:
    """What one round of a loop costs; accumulator, test and operation included."""
    if node.kind == "all":
        return _add(body, 3)
    if node.kind == "exists":
        return _add(body, 4)
    if node.kind in ("exists_one", "existsOne"):
        return _add(body, 2)
    if node.kind == "filter":
        return _add(body, LIST_COST + 3)
    if node.kind == "transformMap":
        return _add(body, 3)
    if node.kind == "transformMapEntry":
        return _add(body, 2)
    return _add(body, LIST_COST + 2)


def _down(known: _Known, step: str) -> Path:
    return (*known.path, step) if known.path else ()


def _union(sizes: Iterable[Size | None]) -> Size | None:
    result: Size | None = None
    for size in sizes:
        if size is None:
            return None
        result = size if result is None else result.union(size)
    return result


def _written_size(node: Node) -> Size | None:
    if isinstance(node, Const):
        return _constant_size(node.value)
    if isinstance(node, ListLiteral):
        return Size(len(node.items))
    if isinstance(node, MapLiteral):
        return Size(len(node.keys))
    return None


def _constant_size(value: Value) -> Size | None:
    if isinstance(value, Type):
        return None
    if isinstance(value, str | bytes):
        return Size(len(value))
    return None if isinstance(value, tuple | MapValue) else Size(1)


def _is_scalar(t: Type) -> bool:
    while t.name == "optional_type" and t.params:
        t = t.params[0]
    return t.name in _SCALARS


_VISITORS: Final[dict[type[Node], Callable[[_Estimator, Any], Visit[Estimated]]]] = {
    Const: _Estimator._const,
    Ident: _Estimator._ident,
    Select: _Estimator._select,
    Index: _Estimator._index,
    Call: _Estimator._call,
    Logic: _Estimator._logic,
    Ternary: _Estimator._ternary,
    ListLiteral: _Estimator._list,
    MapLiteral: _Estimator._map,
    Loop: _Estimator._loop,
    Bind: _Estimator._bind,
    OptionalMap: _Estimator._optional_map,
}
