"""Selectors of named resources: CEL over the attributes of an instance, by type.

What may live here: the environment in which these expressions are compiled. The
language, the compiler and the costs are those of ``dra_core.cel``.

There are seven variables with qualified names, ``attributes.quantity``, ``.bool``,
``.int``, ``.intslice``, ``.string``, ``.stringslice`` and ``.version``, each a map from the
attribute's name to a value of that type. ``attributes`` alone is no variable, and no map
is made up for a name that is missing: a look-up of it fails. All types being known, the
result has to be known to be a bool when compiling, and a version is given strictly.

Source: the CEL environment of named resources in Kubernetes 1.30.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from dra_core.cel import library_core
from dra_core.cel.access import Entry, Place
from dra_core.cel.emitter import Module
from dra_core.cel.environment import ROWS, Environment
from dra_core.cel.library import Library
from dra_core.cel.problems import EvalProblem
from dra_core.cel.program import ENDS, Program, Prologue
from dra_core.cel.runtime import GUARD_HINT
from dra_core.cel.selector import DEFAULT_MAX_ENTRIES, ExpressionCache
from dra_core.cel.types import BOOL, INT, QUANTITY, SEMVER, STRING, Type, list_of, map_of
from dra_core.cel.values import MISSING, MapValue, Value
from dra_core.cel.versions import SemVer, parse_semver
from dra_core.errors import CelValueError, SelectorEvaluationError
from dra_core.v1alpha2.objects import Attribute, Instance

PARAMETERS: Final = ("instance",)
"""What a compiled selector is given: an ``InstanceView``."""

TYPES: Final[Mapping[str, Type]] = {
    "quantity": QUANTITY,
    "bool": BOOL,
    "int": INT,
    "intslice": list_of(INT),
    "string": STRING,
    "stringslice": list_of(STRING),
    "version": SEMVER,
}
"""The types of values; each is the second part of a variable's name."""

MAX_REMEMBERED_VERSIONS: Final = 4_096
"""Parsed versions kept by one reader; there are few distinct ones in a cluster."""

_PREFIX: Final = "attributes."


def _is_lenient(function: str, arguments: int) -> bool:
    """A form that accepts what is not quite a version; it came with Kubernetes 1.33."""
    return function in ("semver", "isSemver") and arguments == 2


ENVIRONMENT: Final = Environment(
    {_PREFIX + name: map_of(STRING, t) for name, t in TYPES.items()},
    library=Library(
        (row for row in ROWS if not _is_lenient(row.function, len(row.args))),
        library_core.SINGLETONS,
    ),
    dynamic_result=False,
)
"""The environment of selectors of named resources."""


class InstanceView:
    """An instance as selectors see it: a dict per type, versions parsed.

    ``fault`` says why every selector fails on it, "" if nothing is wrong: an attribute
    has no value, or a malformed version.
    """

    __slots__ = ("fault", "name", *TYPES)

    def __init__(self, instance: Instance) -> None:
        self.name = instance.name
        self.fault = ""
        for name in TYPES:
            setattr(self, name, {})

    def of_type(self, name: str) -> Mapping[str, Value]:
        """The attributes of one type, by name."""
        values: Mapping[str, Value] = getattr(self, name)
        return values


class InstanceReader:
    """Makes views of instances. Remembers parsed versions, a bounded number."""

    def __init__(self) -> None:
        self._versions: dict[str, SemVer] = {}

    def view(self, instance: Instance) -> InstanceView:
        """The view of an instance. Cost: linear in its attributes."""
        view = InstanceView(instance)
        for attribute in instance.attributes:
            try:
                values = self._values(attribute)
            except CelValueError as problem:
                view.fault = view.fault or f"attribute {attribute.name!r}: {problem}"
                continue
            if not values:
                view.fault = view.fault or f"attribute {attribute.name!r} has no value"
            for name, value in values:
                getattr(view, name)[attribute.name] = value
        return view

    def _values(self, attribute: Attribute) -> list[tuple[str, Value]]:
        version = attribute.version_value
        found = (
            ("quantity", attribute.quantity_value),
            ("bool", attribute.bool_value),
            ("int", attribute.int_value),
            ("intslice", attribute.int_slice_value),
            ("string", attribute.string_value),
            ("stringslice", attribute.string_slice_value),
            ("version", None if version is None else self._version(version)),
        )
        return [(name, value) for name, value in found if value is not None]

    def _version(self, text: str) -> SemVer:
        known = self._versions.get(text)
        if known is None:
            known = parse_semver(text)
            if len(self._versions) >= MAX_REMEMBERED_VERSIONS:
                self._versions.clear()
            self._versions[text] = known
        return known


# --- how an expression reads an instance -------------------------------------------------


class _AttributesView(MapValue):
    """The attributes of one type as a map, not copied. Keys are strings."""

    __slots__ = ()

    def __init__(self, attributes: dict[Any, Value]) -> None:
        self._entries = attributes

    def find(self, key: Value) -> Value:
        return self._entries.get(key, MISSING) if key.__class__ is str else MISSING

    def contains(self, key: Value) -> bool:
        return key.__class__ is str and key in self._entries

    def keys(self) -> Iterable[Value]:
        return list(self._entries)

    def items(self) -> Iterable[tuple[Value, Value]]:
        return list(self._entries.items())


@attrs.frozen(eq=False)
class _AttributesPlace(Place):
    """``attributes.string`` and the like."""

    name: str
    type: Type
    value_type: Type

    def child(self, name: str) -> Place | None:
        return _AttributePlace(self, name, self.value_type)

    def entry(self, module: Module, offset: int, name: str) -> Entry | None:
        found = self.find(module, offset, name)
        return Entry(f"{found} is not None", found)

    def contains(self, module: Module, offset: int, name: str) -> str | None:
        return f"{self.find(module, offset, name)} is not None"

    def find(self, module: Module, offset: int, name: str) -> str:
        """Write the look-up of a name; returns the variable with the value or None."""
        return module.assign(f"{self._source(module)}.get({module.constant(name)})", offset)

    def read(self, module: Module, offset: int) -> str:
        view = module.constant(_AttributesView)
        return module.assign(f"{view}({self._source(module)})", offset)

    def _source(self, module: Module) -> str:
        source = f"of_{self.name}"  # the types are called like built-ins of Python
        module.prologue(f"{source} = instance.{self.name}")
        return source


@attrs.frozen(eq=False)
class _AttributePlace(Place):
    """``attributes.string["name"]``."""

    attributes: _AttributesPlace
    name: str
    type: Type

    def read(self, module: Module, offset: int) -> str:
        found = self.attributes.find(module, offset, self.name)
        problem = module.constant(_Missing(self.attributes.name, self.name))
        module.line(f"if {found} is None: {problem}()", offset, fallible=True)
        return found


@attrs.frozen(eq=False)
class _Missing:
    """Raises the error for an attribute that an instance does not have."""

    type_name: str
    name: str

    def __call__(self) -> None:
        what = f"the instance has no {self.type_name} attribute of that name"
        raise EvalProblem(f"no such key: {self.name!r} ({what})", GUARD_HINT)


def _places() -> dict[str, Place]:
    return {
        variable: _AttributesPlace(
            variable.removeprefix(_PREFIX), t, TYPES[variable.removeprefix(_PREFIX)]
        )
        for variable, t in ENVIRONMENT.variables.items()
    }


# --- selectors ---------------------------------------------------------------------------


class InstanceSelector:
    """One compiled expression. Made by ``InstanceSelectors.compile``.

    ``max_cost`` is the most that it may cost on any instance, in the reference's units;
    the API sets no limits to attributes in this version, so it is often unbounded.
    """

    __slots__ = ("_located", "_program", "_run", "expression", "max_cost")

    def __init__(self, expression: str) -> None:
        self._program = Program(expression, ENVIRONMENT, PARAMETERS, _places(), Prologue())
        self._run, self._located = self._program.bare()
        self.expression = expression
        self.max_cost = self._program.max_cost

    def matches(self, view: InstanceView) -> bool:
        """Whether the instance is selected. Raises SelectorEvaluationError."""
        if view.fault:
            raise self._faulty(view)
        try:
            return self._run(view)
        except ENDS as problem:
            raise self._located(problem) from None

    def matching(self, views: Sequence[InstanceView], wanted: int) -> tuple[int, int]:
        """Masks of the instances that are selected, and of those on which it fails.

        Only instances in ``wanted`` are looked at (bit ``i``: ``views[i]``).
        """
        run = self._run
        matching = failing = 0
        while wanted:
            low = wanted & -wanted
            wanted ^= low
            view = views[low.bit_length() - 1]
            try:
                if view.fault:
                    failing |= low
                elif run(view):
                    matching |= low
            except ENDS:
                failing |= low
        return matching, failing

    def evaluate(self, view: InstanceView) -> tuple[bool, int]:
        """The result and what it cost, in the reference's units. Slower than ``matches``.

        Raises SelectorEvaluationError.
        """
        if view.fault:
            raise self._faulty(view)
        return self._program.counted()(view)

    def _faulty(self, view: InstanceView) -> SelectorEvaluationError:
        """The error for an instance on which every selector fails, whatever it says."""
        return SelectorEvaluationError(self.expression, 1, 1, view.fault)

    def __repr__(self) -> str:
        return f"InstanceSelector({self.expression!r})"


class InstanceSelectors(ExpressionCache[InstanceSelector]):
    """The selectors of instances, compiled; the last ``max_entries`` are kept."""

    def __init__(self, max_entries: int = DEFAULT_MAX_ENTRIES) -> None:
        super().__init__(InstanceSelector, max_entries)
