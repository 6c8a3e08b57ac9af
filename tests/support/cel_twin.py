"""A second opinion on selectors: expressions as trees, evaluated by walking them.

A node is a tuple of its kind and its parts. ``text`` prints a tree as CEL, ``value`` gives
its value on a device, or ``ERROR``. Slow and obvious, and nothing of the package is used:
not its parser, not its values. Quantities are whole units, versions triples.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

Tree = tuple[Any, ...]
Scope = Mapping[str, Any]


class Error:
    """The one value that stands for every failure."""

    def __repr__(self) -> str:
        return "ERROR"


ERROR: Final = Error()


class Version(tuple[int, int, int]):
    """A version; strict about what it is compared with."""


class Amount(int):
    """A quantity in whole units; strict as well."""


MIN, MAX = -(2**63), 2**63 - 1


# --- printing ----------------------------------------------------------------------------


def text(tree: Tree) -> str:
    """The expression."""
    kind, *parts = tree
    return _TEXTS[kind](*parts)


def _quoted(value: str) -> str:
    escaped = "".join(c if c.isalnum() or c in " .-_" else f"\\U{ord(c):08x}" for c in value)
    return f'"{escaped}"'


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Version):
        return 'semver("{}.{}.{}")'.format(*value)
    if isinstance(value, Amount):
        return f'quantity("{int(value)}")'
    return str(value)


_TEXTS: Final[dict[str, Callable[..., str]]] = {
    "literal": _literal,
    "list": lambda *items: f"[{', '.join(map(text, items))}]",
    "variable": lambda name: str(name),
    "driver": lambda: "device.driver",
    "multiple": lambda: "device.allowMultipleAllocations",
    "attribute": lambda domain, name: f"device.attributes[{_quoted(domain)}].{name}",
    "capacity": lambda domain, name: f"device.capacity[{_quoted(domain)}].{name}",
    "has": lambda domain, name: f"has(device.attributes[{_quoted(domain)}].{name})",
    "named": lambda domain, name: f"({_quoted(name)} in device.attributes[{_quoted(domain)}])",
    "or": lambda domain, name, other: (
        f"device.attributes[{_quoted(domain)}].?{name}.orValue({text(other)})"
    ),
    "binary": lambda sign, a, b: f"({text(a)} {sign} {text(b)})",
    "not": lambda a: f"!({text(a)})",
    "minus": lambda a: f"-({text(a)})",
    "ternary": lambda c, a, b: f"({text(c)} ? {text(a)} : {text(b)})",
    "method": lambda name, a, *args: f"({text(a)}).{name}({', '.join(map(text, args))})",
    "convert": lambda name, a: f"{name}({text(a)})",
    "loop": lambda kind, name, items, body: f"({text(items)}).{kind}({name}, {text(body)})",
    "bind": lambda name, init, body: f"cel.bind({name}, {text(init)}, {text(body)})",
    "index": lambda a, i: f"({text(a)})[{text(i)}]",
    "dyn": lambda a: f"dyn({text(a)})",
}


# --- evaluating ----------------------------------------------------------------------------


def value(tree: Tree, device: Scope, scope: Scope) -> Any:
    """The value of a tree.

    ``device`` has "driver", "multiple", "attributes" and "capacity", the latter two by
    (domain, name).
    """
    kind, *parts = tree
    return _VALUES[kind](device, scope, *parts)


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that fails if an argument, which is a tree, fails."""

    def call(device: Scope, scope: Scope, *trees: Tree) -> Any:
        values = [value(tree, device, scope) for tree in trees]
        return ERROR if any(v is ERROR for v in values) else function(*values)

    return call


def _same(a: Any, b: Any) -> Any:
    """``==``: by type, only numbers are of one kind here; strict types fail on others."""
    if isinstance(a, tuple) and not isinstance(a, Version):
        if not isinstance(b, tuple) or isinstance(b, Version) or len(a) != len(b):
            return False
        return all(_same(x, y) is not False for x, y in zip(a, b, strict=True))
    if type(a) is not type(b):
        return ERROR if isinstance(a, Version | Amount) else False
    return a == b


def _ordered(sign: str, a: Any, b: Any) -> Any:
    if type(a) is not type(b) or type(a) not in (int, str, bool):
        return ERROR
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]


def _in_range(number: int) -> Any:
    return number if MIN <= number <= MAX else ERROR


def _arithmetic(sign: str, a: Any, b: Any) -> Any:
    if type(a) is type(b) and sign == "+" and isinstance(a, str):
        return a + b
    if type(a) is tuple and type(b) is tuple and sign == "+":
        return a + b
    if type(a) is not int or type(b) is not int:
        return ERROR
    if sign in "/%":
        if b == 0:
            return ERROR
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        if _in_range(quotient) is ERROR:
            return ERROR
        return quotient if sign == "/" else a - b * quotient
    return _in_range({"+": a + b, "-": a - b, "*": a * b}[sign])


def _constant(items: Tree) -> bool:
    """A list of plain constants of one type, which becomes a set; no version fits in one."""
    kinds = {type(item[1]) if item[0] == "literal" else None for item in items[1:]}
    return items[0] == "list" and len(kinds) == 1 and kinds <= {int, str, bool}


def _binary(device: Scope, scope: Scope, sign: str, a: Tree, b: Tree) -> Any:
    if sign == "in" and b == ("list",):
        return False  # Kubernetes knows the answer before it looks at the left side.
    left = value(a, device, scope)
    if sign in ("&&", "||"):
        decides = sign == "||"
        # Left, then right: whichever decides wins over any error.
        if left is decides:
            return decides
        right = value(b, device, scope)
        if right is decides:
            return decides
        return (not decides) if left is right is (not decides) else ERROR
    right = value(b, device, scope)
    if left is ERROR or right is ERROR:
        return ERROR
    if sign == "==":
        return _same(left, right)
    if sign == "!=":
        return _same(left, right) is not True
    if sign == "in":
        if type(right) is not tuple or (_constant(b) and isinstance(left, Version)):
            return ERROR
        return any(_same(item, left) is True for item in right)
    return _ordered(sign, left, right) if sign[0] in "<>" else _arithmetic(sign, left, right)


def _method(name: str, a: Any, *args: Any) -> Any:
    if name == "size":
        return len(a) if type(a) in (str, tuple) else ERROR
    if name in ("startsWith", "endsWith", "contains"):
        if type(a) is not str or type(args[0]) is not str:
            return ERROR
        return {"startsWith": a.startswith, "endsWith": a.endswith, "contains": a.__contains__}[
            name
        ](args[0])
    if name in ("isGreaterThan", "isLessThan"):
        if type(a) is not type(args[0]) or not isinstance(a, Version | Amount):
            return ERROR
        return a > args[0] if name == "isGreaterThan" else a < args[0]
    if name == "includes":
        items = a if type(a) is tuple else (a,)
        return any(_same(item, args[0]) is True for item in items)
    raise ValueError(name)


def _convert(name: str, a: Any) -> Any:
    if name == "string":
        if type(a) is bool:
            return "true" if a else "false"
        return str(a) if type(a) in (str, int) else ERROR
    if type(a) is int:
        return a
    digits = a.removeprefix("-").removeprefix("+") if type(a) is str else ""
    plain = digits.isascii() and digits.isdigit() and len(a) - len(digits) <= 1
    return _in_range(int(a)) if plain else ERROR


def _loop(device: Scope, scope: Scope, kind: str, name: str, items: Tree, body: Tree) -> Any:
    source = value(items, device, scope)
    if type(source) is not tuple:
        return ERROR
    found = [value(body, device, {**scope, name: item}) for item in source]
    bools = [x if type(x) is bool else ERROR for x in found]
    if kind in ("all", "exists"):
        decides = kind == "exists"
        if decides in [x for x in bools if x is not ERROR]:
            return decides
        return ERROR if ERROR in bools else not decides
    if kind == "map":
        return ERROR if ERROR in found else tuple(found)
    if ERROR in bools:
        return ERROR
    if kind == "exists_one":
        return bools.count(True) == 1
    return tuple(item for item, keep in zip(source, bools, strict=True) if keep)


def _ternary(device: Scope, scope: Scope, c: Tree, a: Tree, b: Tree) -> Any:
    condition = value(c, device, scope)
    if type(condition) is not bool:
        return ERROR
    return value(a if condition else b, device, scope)


def _index(a: Any, i: Any) -> Any:
    if type(a) is not tuple or type(i) is not int:
        return ERROR
    return a[i] if 0 <= i < len(a) else ERROR


def _or_value(device: Scope, scope: Scope, domain: str, name: str, other: Tree) -> Any:
    found = device["attributes"].get((domain, name))
    return value(other, device, scope) if found is None else found


_VALUES: Final[dict[str, Callable[..., Any]]] = {
    "literal": lambda device, scope, v: v,
    "list": _strict(lambda *items: tuple(items)),
    "variable": lambda device, scope, name: scope[name],
    "driver": lambda device, scope: device["driver"],
    "multiple": lambda device, scope: device["multiple"],
    "attribute": lambda device, scope, d, n: device["attributes"].get((d, n), ERROR),
    "capacity": lambda device, scope, d, n: device["capacity"].get((d, n), ERROR),
    "has": lambda device, scope, d, n: (d, n) in device["attributes"],
    "named": lambda device, scope, d, n: (d, n) in device["attributes"],
    "or": _or_value,
    "binary": _binary,
    "not": _strict(lambda a: (not a) if type(a) is bool else ERROR),
    "minus": _strict(lambda a: _in_range(-a) if type(a) is int else ERROR),
    "ternary": _ternary,
    "method": lambda device, scope, name, *args: _strict(lambda *v: _method(name, *v))(
        device, scope, *args
    ),
    "convert": lambda device, scope, name, a: _strict(lambda v: _convert(name, v))(
        device, scope, a
    ),
    "loop": _loop,
    "bind": lambda device, scope, name, init, body: value(
        body, device, {**scope, name: value(init, device, scope)}
    ),
    "index": _strict(_index),
    "dyn": _strict(lambda a: a),
}


def result(tree: Tree, device: Scope) -> Any:
    """True, False, or ERROR, also for a result that is no bool."""
    found = value(tree, device, {})
    return found if type(found) is bool else ERROR
