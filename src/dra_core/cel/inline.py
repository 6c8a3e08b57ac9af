"""Calls that are written out as Python instead of called.

What may live here: expressions for the calls that selectors are made of, valid where the
arguments have exactly the named types. Everything else is a call of the library.
"""

from typing import Final

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
