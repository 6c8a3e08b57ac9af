"""CEL's types and how they unify.

What may live here: the type terms, substitution and assignability as the checker of
cel-go decides them. No expressions.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple


class Type(NamedTuple):
    """A type: its name and its parameters.

    ``list``, ``map``, ``optional`` and ``type`` have parameters. Type variables have the
    name ``"$"`` and their number (or letter, in a signature) as ``label``.
    """

    name: str
    params: tuple["Type", ...] = ()
    label: str = ""

    def __str__(self) -> str:
        if self.name == VARIABLE:
            return self.label
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"


VARIABLE: Final = "$"

DYN: Final = Type("dyn")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null_type")
DURATION: Final = Type("google.protobuf.Duration")
TIMESTAMP: Final = Type("google.protobuf.Timestamp")
TYPE: Final = Type("type")
LIST: Final = Type("list", (DYN,))
MAP: Final = Type("map", (DYN, DYN))
QUANTITY: Final = Type("kubernetes.Quantity")
SEMVER: Final = Type("kubernetes.Semver")
URL: Final = Type("kubernetes.URL")
IP: Final = Type("net.IP")
CIDR: Final = Type("net.CIDR")
FORMAT: Final = Type("kubernetes.NamedFormat")

NULLABLE: Final = frozenset(
    {DURATION.name, TIMESTAMP.name, QUANTITY.name, SEMVER.name, URL.name, IP.name, CIDR.name,
     FORMAT.name, "optional_type"}
)  # fmt: skip
"""What ``null`` may stand for."""


def list_of(element: Type) -> Type:
    """``list(element)``."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type("map", (key, value))


def optional_of(inner: Type) -> Type:
    """``optional_type(inner)``."""
    return Type("optional_type", (inner,))


def type_of(inner: Type) -> Type:
    """``type(inner)``: the type of a type."""
    return Type("type", (inner,))


Bindings = dict[str, Type]
"""What the type variables stand for, by label."""


class Unifier:
    """Type variables and their bindings, for one expression."""

    def __init__(self) -> None:
        self.bindings: Bindings = {}
        self._trail: list[str] = []
        self._count = 0

    def fresh(self) -> Type:
        """A new type variable."""
        self._count += 1
        return Type(VARIABLE, (), str(self._count))

    def instantiate(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types of a signature with fresh variables for its letters."""
        letters: dict[str, Type] = {}
        return tuple(self._instantiate(t, letters) for t in types)

    def _instantiate(self, t: Type, letters: dict[str, Type]) -> Type:
        if t.name == VARIABLE:
            if t.label not in letters:
                letters[t.label] = self.fresh()
            return letters[t.label]
        if not t.params:
            return t
        return Type(t.name, tuple(self._instantiate(p, letters) for p in t.params))

    def resolve(self, t: Type) -> Type:
        """The type itself, or what its variable stands for, one level deep."""
        while t.name == VARIABLE and t.label in self.bindings:
            t = self.bindings[t.label]
        return t

    def substitute(self, t: Type, *, variables_are_dyn: bool = False) -> Type:
        """The type with every bound variable replaced; free ones may become ``dyn``."""
        t = self.resolve(t)
        if t.name == VARIABLE:
            return DYN if variables_are_dyn else t
        if not t.params:
            return t
        params = []
        changed = False
        for param in t.params:
            new = self.substitute(param, variables_are_dyn=variables_are_dyn)
            changed = changed or new is not param
            params.append(new)
        return Type(t.name, tuple(params)) if changed else t

    def assignable(self, value: Type, target: Type) -> bool:
        """Whether a value of one type may stand for the other; binds variables if so."""
        mark = len(self._trail)
        if self._assignable(value, target):
            return True
        self._undo(mark)
        return False

    def all_assignable(self, values: tuple[Type, ...], targets: tuple[Type, ...]) -> bool:
        """The same for arguments one by one; binds all or nothing."""
        mark = len(self._trail)
        if all(map(self._assignable, values, targets)):
            return True
        self._undo(mark)
        return False

    def _undo(self, mark: int) -> None:
        while len(self._trail) > mark:
            del self.bindings[self._trail.pop()]

    def _assignable(self, value: Type, target: Type) -> bool:
        value, target = self.resolve(value), self.resolve(target)
        if target.name == VARIABLE:
            return value == target or self._bind(target, value)
        if value.name == VARIABLE:
            return self._bind(value, target)
        if DYN in (value, target) or value == target:
            return True
        if value == NULL:
            return target.name in NULLABLE
        if target == NULL:
            return value.name in NULLABLE
        if value.name == "type" == target.name:
            return True
        return (
            value.name == target.name
            and len(value.params) == len(target.params)
            and all(map(self._assignable, value.params, target.params))
        )

    def _bind(self, variable: Type, t: Type) -> bool:
        if self._occurs(variable, t):
            return False
        self.bindings[variable.label] = t
        self._trail.append(variable.label)
        return True

    def _occurs(self, variable: Type, t: Type) -> bool:
        t = self.resolve(t)
        if t.name == VARIABLE:
            return t == variable
        for param in t.params:  # noqa: SIM110 (a generator would double the depth of the stack)
            if self._occurs(variable, param):
                return True
        return False

    def join(self, left: Type, right: Type) -> Type | None:
        """The more general of two types that agree, ``None`` if they do not."""
        if not self.assignable(left, right):
            return None
        left, right = self.resolve(left), self.resolve(right)
        return left if _more_general(left, right) else right


def _more_general(left: Type, right: Type) -> bool:
    """Whether ``dyn`` or a variable stands in ``left`` where ``right`` is specific."""
    if left.name in ("dyn", VARIABLE):
        return True
    if right.name in ("dyn", VARIABLE) or left.name != right.name:
        return False
    if len(left.params) != len(right.params):
        return False
    return all(
        _more_general(a, b) or a == b for a, b in zip(left.params, right.params, strict=True)
    )


def has_variables(t: Type) -> bool:
    """Whether a type variable stands anywhere in the type."""
    return t.name == VARIABLE or any(map(has_variables, t.params))


def parse_types(text: str) -> tuple[Type, ...]:
    """The types of a signature: ``"list(T), int"``. Capital letters are variables.

    For the library's own tables: raises ``ValueError`` for anything unknown.
    """
    tokens = _tokens(text)
    types = []
    token = next(tokens)
    while token:
        parsed, token = _parse(token, tokens)
        types.append(parsed)
        if token == ",":
            token = next(tokens)
        elif token:
            raise ValueError(f"bad signature {text!r}")
    return tuple(types)


_NAMES: Final = {
    "dyn": DYN, "bool": BOOL, "int": INT, "uint": UINT, "double": DOUBLE, "string": STRING,
    "bytes": BYTES, "null": NULL, "duration": DURATION, "timestamp": TIMESTAMP, "type": TYPE,
    "quantity": QUANTITY, "semver": SEMVER, "url": URL, "ip": IP, "cidr": CIDR, "format": FORMAT,
}  # fmt: skip
_CONSTRUCTORS: Final = {"list": "list", "map": "map", "optional": "optional_type", "type": "type"}


def _tokens(text: str) -> Iterator[str]:
    word = ""
    for char in text + " ":
        if char.isalnum():
            word += char
            continue
        if word:
            yield word
        word = ""
        if char in "(),":
            yield char
    yield ""


def _parse(token: str, tokens: Iterator[str]) -> tuple[Type, str]:
    if len(token) == 1 and token.isupper():
        return Type(VARIABLE, (), token), next(tokens)
    following = next(tokens)
    if following != "(":
        return _NAMES[token], following
    params = []
    while following != ")":
        parsed, following = _parse(next(tokens), tokens)
        params.append(parsed)
    return Type(_CONSTRUCTORS[token], tuple(params)), next(tokens)
