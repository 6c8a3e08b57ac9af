"""Random expressions that type-check, and random devices for them.

Attributes have any type or are missing, so evaluations often fail; expressions are typed
as CEL sees them, so that they compile: what comes from an attribute is of unknown type.
"""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from dra_core.api.objects import AttributeValue, Device, DeviceCapacity
from dra_core.values.quantity import Quantity
from support.cel_twin import Amount, Tree, Version

DOMAINS = ("gpu.example.com", "other.example.org")
NAMES = ("a", "b", "c", "d")
DRIVER = DOMAINS[0]

numbers = st.sampled_from([0, 1, 2, 3, -1, 7, 2**63 - 1, -(2**63)]) | st.integers(-9, 9)
texts = st.sampled_from(["", "a", "b", "ab", "1", "-7", "x y", "é"])
versions = st.builds(lambda *n: Version(n), *[st.integers(0, 2)] * 3)
amounts = st.integers(0, 3).map(Amount)

plain_values = st.booleans() | numbers | texts | versions
value_lists = st.one_of(
    *(
        st.lists(s, min_size=1, max_size=3).map(tuple)
        for s in (st.booleans(), numbers, texts, versions)
    )
)


@st.composite
def devices(draw: st.DrawFn) -> tuple[Device, dict[str, Any]]:
    """A device, and the same as the twin sees it."""
    names = st.tuples(st.sampled_from(DOMAINS), st.sampled_from(NAMES))
    attributes = draw(st.dictionaries(names, plain_values | value_lists, max_size=8))
    capacity = draw(st.dictionaries(names, amounts, max_size=4))
    multiple = draw(st.booleans())
    full = draw(st.booleans())
    return (
        Device(
            name="d",
            attributes={_name(n, full): _attribute(v) for n, v in attributes.items()},
            capacity={
                _name(n, full): DeviceCapacity(Quantity.from_int(v)) for n, v in capacity.items()
            },
            allow_multiple_allocations=multiple,
        ),
        {
            "driver": DRIVER,
            "multiple": multiple,
            "attributes": attributes,
            "capacity": capacity,
        },
    )


def _name(name: tuple[str, str], full: bool) -> str:
    domain, identifier = name
    return f"{domain}/{identifier}" if full or domain != DRIVER else identifier


def _attribute(value: Any) -> AttributeValue:
    if isinstance(value, Version):
        return AttributeValue("version", "{}.{}.{}".format(*value))
    if isinstance(value, tuple):
        inner = [_attribute(item) for item in value]
        contents: Any = tuple(item.value for item in inner)
        return AttributeValue(inner[0].kind + "s", contents)
    return AttributeValue({bool: "bool", int: "int", str: "string"}[type(value)], value)


# --- expressions ---------------------------------------------------------------------------

domains = st.sampled_from(DOMAINS)
names = st.sampled_from(NAMES)


def literal(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Tree]:
    """A literal of what a strategy gives."""
    return strategy.map(lambda value: ("literal", value))


unknown = st.one_of(
    st.tuples(st.just("attribute"), domains, names),
    st.tuples(st.just("dyn"), literal(st.booleans() | numbers | texts)),
)
"""Leaves whose type the checker does not know."""


def signs(*which: str) -> st.SearchStrategy[str]:
    """One of some operators."""
    return st.sampled_from(which)


Scope = tuple[tuple[str, ...], tuple[str, ...]]
"""Names in scope: those of unknown type, and those that are ints."""


@cache
def expressions(kind: str, depth: int, scope: Scope = ((), ())) -> st.SearchStrategy[Tree]:
    """Trees of a kind: "bool", "int", "string", "ints" (a list), "unknown"."""
    return st.deferred(lambda: st.one_of(*_CHOICES[kind](depth, scope)))


Choices = list[st.SearchStrategy[Tree]]


def _of(kind: str, depth: int, scope: Scope) -> st.SearchStrategy[Tree]:
    return expressions(kind, depth - 1, scope)


def _unknowns(depth: int, scope: Scope) -> Choices:
    choices: Choices = [unknown]
    if scope[0]:
        choices.append(st.tuples(st.just("variable"), st.sampled_from(scope[0])))
    if depth > 0:
        any_kind = st.one_of(*(_of(k, depth, scope) for k in ("bool", "int", "string", "unknown")))
        choices.append(st.tuples(st.just("or"), domains, names, any_kind))
        choices.append(st.tuples(st.just("ternary"), _of("bool", depth, scope), unknown, any_kind))
        choices.append(st.tuples(st.just("index"), unknown, _of("int", depth, scope)))
    return choices


def _ints(depth: int, scope: Scope) -> Choices:
    choices: Choices = [literal(numbers)]
    if scope[1]:
        choices.append(st.tuples(st.just("variable"), st.sampled_from(scope[1])))
    if depth > 0:
        either = _of("int", depth, scope) | _of("unknown", depth, scope)
        one = _of("int", depth, scope)
        choices += [
            st.tuples(st.just("binary"), signs("+", "-", "*", "/", "%"), one, either),
            st.tuples(st.just("binary"), signs("-", "*", "/", "%"), either, one),
            st.tuples(st.just("minus"), one),
            st.tuples(st.just("method"), st.just("size"), _of("string", depth, scope)),
            st.tuples(st.just("method"), st.just("size"), _of("ints", depth, scope) | unknown),
            st.tuples(st.just("convert"), st.just("int"), _of("unknown", depth, scope)),
            st.tuples(st.just("index"), _of("ints", depth, scope), one),
        ]
    return choices


def _strings(depth: int, scope: Scope) -> Choices:
    choices: Choices = [literal(texts), st.just(("driver",))]
    if depth > 0:
        either = _of("string", depth, scope) | _of("unknown", depth, scope)
        choices += [
            st.tuples(st.just("binary"), st.just("+"), _of("string", depth, scope), either),
            st.tuples(
                st.just("convert"), st.just("string"),
                _of("int", depth, scope) | _of("bool", depth, scope) | unknown,
            ),
        ]  # fmt: skip
    return choices


def _lists(depth: int, scope: Scope) -> Choices:
    choices: Choices = [st.lists(literal(numbers), max_size=3).map(lambda items: ("list", *items))]
    if depth > 0:
        items = _of("int", depth, scope)
        inner = (scope[0], (*scope[1], "i"))
        some = _of("ints", depth, scope)
        choices += [
            st.lists(items, min_size=1, max_size=3).map(lambda found: ("list", *found)),
            st.tuples(
                st.just("loop"), st.just("filter"), st.just("i"), some, _of("bool", depth, inner)
            ),
            st.tuples(
                st.just("loop"), st.just("map"), st.just("i"), some, _of("int", depth, inner)
            ),
            st.tuples(st.just("binary"), st.just("+"), some, some),
        ]
    return choices


def _bools(depth: int, scope: Scope) -> Choices:
    choices: Choices = [
        literal(st.booleans()),
        st.just(("multiple",)),
        st.tuples(st.just("has"), domains, names),
        st.tuples(st.just("named"), domains, names),
        st.tuples(
            st.just("method"), signs("isGreaterThan", "isLessThan"),
            st.tuples(st.just("capacity"), domains, names), literal(amounts),
        ),
        st.tuples(
            st.just("method"), signs("isGreaterThan", "isLessThan"), unknown, literal(versions)
        ),
        st.tuples(st.just("binary"), signs("==", "!="), unknown, literal(plain_values)),
        st.tuples(st.just("binary"), signs("==", "!="), literal(plain_values), unknown),
    ]  # fmt: skip
    if depth > 0:
        choices += _deep_bools(depth, scope)
    return choices


def _deep_bools(depth: int, scope: Scope) -> Choices:
    test = _of("bool", depth, scope)
    maybe = test | _of("unknown", depth, scope)
    anything = st.one_of(
        *(_of(kind, depth, scope) for kind in ("int", "string", "unknown", "bool"))
    )
    unknowns = _of("unknown", depth, scope)
    outer, ints = scope
    return [
        st.tuples(st.just("binary"), signs("&&", "||"), maybe, maybe),
        st.tuples(st.just("binary"), signs("&&", "||"), maybe, maybe),
        st.tuples(st.just("not"), maybe),
        st.tuples(st.just("ternary"), maybe, test, test),
        st.tuples(st.just("binary"), signs("==", "!="), unknowns, anything),
        st.tuples(
            st.just("binary"), signs("==", "!=", "<", "<=", ">", ">="),
            _of("int", depth, scope), _of("int", depth, scope) | unknowns,
        ),
        st.tuples(
            st.just("binary"), signs("==", "<", ">="), unknowns, _of("string", depth, scope)
        ),
        st.tuples(st.just("binary"), signs("==", "!="), *[_of("ints", depth, scope)] * 2),
        st.tuples(st.just("binary"), st.just("in"), anything, unknowns),
        st.tuples(
            st.just("binary"), st.just("in"), _of("int", depth, scope) | unknowns,
            _of("ints", depth, scope),
        ),
        st.tuples(
            st.just("method"), signs("startsWith", "endsWith", "contains"),
            _of("string", depth, scope) | unknowns, _of("string", depth, scope) | unknowns,
        ),
        st.tuples(st.just("method"), st.just("includes"), unknowns, anything),
        st.tuples(
            st.just("loop"), signs("all", "exists", "exists_one"), st.just("i"),
            _of("ints", depth, scope), _of("bool", depth, (outer, (*ints, "i"))),
        ),
        st.tuples(
            st.just("loop"), signs("all", "exists", "exists_one"), st.just("u"),
            unknown, _of("bool", depth, ((*outer, "u"), ints)) | _of(
                "unknown", depth, ((*outer, "u"), ints)),
        ),
        st.tuples(
            st.just("bind"), st.just("u"), unknowns, _of("bool", depth, ((*outer, "u"), ints))
        ),
        st.tuples(
            st.just("bind"), st.just("i"), _of("int", depth, scope),
            _of("bool", depth, (outer, (*ints, "i"))),
        ),
    ]  # fmt: skip


_CHOICES = {
    "bool": _bools,
    "int": _ints,
    "string": _strings,
    "ints": _lists,
    "unknown": _unknowns,
}
