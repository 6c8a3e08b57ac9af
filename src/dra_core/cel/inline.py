"""What a call becomes in fast code: a constant, an expression, or a call of the library.

What may live here: expressions for the calls that selectors are made of, valid where the
arguments have exactly the named types, and the decisions about them.
"""

from typing import Any, Final, NamedTuple

from dra_core.cel.access import Place
from dra_core.cel.ast import Call, Const
from dra_core.cel.library import dispatch
from dra_core.cel.problems import FAULTS, BudgetExceeded
from dra_core.cel.types import DYN, Type

TEMPLATES: Final[dict[tuple[str, tuple[str, ...]], str]] = {
    ("_==_", ("string", "string")): "{0} == {1}",
    ("_==_", ("bool", "bool")): "{0} is {1}",
    ("_==_", ("int", "int")): "{0} == {1}",
    ("_==_", ("uint", "uint")): "{0} == {1}",
    ("_==_", ("double", "double")): "{0} == {1}",
    ("_==_", ("kubernetes.Quantity", "kubernetes.Quantity")): "{0}.nano == {1}.nano",
    ("_==_", ("kubernetes.Semver", "kubernetes.Semver")): "{0} == {1}",
    ("_!=_", ("string", "string")): "{0} != {1}",
    ("_!=_", ("bool", "bool")): "{0} is not {1}",
    ("_!=_", ("int", "int")): "{0} != {1}",
    ("_!=_", ("kubernetes.Quantity", "kubernetes.Quantity")): "{0}.nano != {1}.nano",
    ("!_", ("bool",)): "not {0}",
    ("isGreaterThan", ("kubernetes.Quantity",) * 2): "{0}.nano > {1}.nano",
    ("isLessThan", ("kubernetes.Quantity",) * 2): "{0}.nano < {1}.nano",
    ("compareTo", ("kubernetes.Quantity",) * 2): "({0}.nano > {1}.nano) - ({0}.nano < {1}.nano)",
    ("isGreaterThan", ("kubernetes.Semver",) * 2): "{0}.is_greater_than({1})",
    ("isLessThan", ("kubernetes.Semver",) * 2): "{0}.is_less_than({1})",
    ("compareTo", ("kubernetes.Semver",) * 2): "{0}.compare({1})",
    ("contains", ("string", "string")): "{1} in {0}",
    ("startsWith", ("string", "string")): "{0}.startswith({1})",
    ("endsWith", ("string", "string")): "{0}.endswith({1})",
    ("size", ("string",)): "len({0})",
    ("size", ("list",)): "len({0})",
    **{
        (f"_{sign}_", (t, t)): f"{{0}} {sign} {{1}}"
        for sign in ("<", "<=", ">", ">=")
        for t in ("int", "uint", "double", "string")
    },
}

CLASSES: Final = {
    "string": "str",
    "bool": "bool",
    "int": "int",
    "double": "float",
    "list": "tuple",
    "uint": "UInt",
    "kubernetes.Quantity": "Quantity",
    "kubernetes.Semver": "SemVer",
}
"""The Python class of each type that templates know, as generated code calls it."""


class Code(NamedTuple):
    """What a node became: an expression without side effects, or a place not read yet.

    ``type`` is what the value has for certain, whatever the checker says: types that
    passed through ``dyn`` may be wrong at run time. ``constant`` is the node if the value
    is known.
    """

    text: str
    type: Type = DYN
    place: Place | None = None
    constant: Const | None = None


def wanted_types(node: Call, codes: list[Code]) -> tuple[str, ...]:
    """The types that an inlined call would need, by what is known and what rows ask for."""
    if node.function in ("_==_", "_!=_"):
        known = next((code.type.name for code in codes if code.type.name in CLASSES), "")
        return (known,) * len(codes)
    if len(node.overloads) == 1:
        return tuple(t.name for t in node.overloads[0].args)
    known = next((code.type.name for code in codes if code.type.name in CLASSES), "")
    return (known,) * len(codes)


def result_type(node: Call) -> Type:
    """The type that a call's result has for certain."""
    results = {row.result for row in node.overloads}
    result = results.pop()
    if results or result.name in ("$", "dyn"):
        return DYN
    return Type(result.name)


def is_known(actual: Type, wanted: Type) -> bool:
    """Whether a value of type ``actual`` is for certain one that ``wanted`` accepts."""
    if wanted.name in ("dyn", "$"):
        return True
    return actual.name == wanted.name and not wanted.params


def with_guard(node: Call, bound: Any) -> Any:
    """``bound`` for arguments of the types of the overload; others fail as they would anywhere."""
    row = node.overloads[0]

    def call(*args: Any) -> Any:
        if not row.accepts(args):
            return dispatch(node.overloads)(*args)
        return bound(*args)

    return call


MAX_FOLDED: Final = 10_000
"""Results of more elements are not kept as constants."""


def fold_call(node: Call, codes: list[Code]) -> Const | None:
    """The result of a call whose arguments are all known, if it has one."""
    constants = [code.constant for code in codes]
    if any(constant is None for constant in constants) or not node.overloads:
        return None
    if node.function == "lists.range" or any(row.grows for row in node.overloads):
        return None
    args = [constant.value for constant in constants if constant is not None]
    try:
        value = dispatch(node.overloads)(*args)
    except (*FAULTS, BudgetExceeded):
        return None
    if isinstance(value, str | bytes | tuple) and len(value) > MAX_FOLDED:
        return None
    return Const(node.offset, value, result_type(node))
