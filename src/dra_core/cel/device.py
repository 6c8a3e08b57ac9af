"""A device as selectors see it: the variable ``device``.

What may live here: reading devices without copying them. ``device.attributes`` and
``device.capacity`` map domains to maps of names; a name without domain belongs to the
driver's; a domain that a device lacks is an empty map.

Source: resource.k8s.io, the environment of device selectors.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

import attrs

from dra_core.api.names import qualified_name
from dra_core.api.objects import AttributeValue, Device, DeviceCapacity
from dra_core.cel.access import Entry, Place
from dra_core.cel.emitter import Module
from dra_core.cel.environment import Environment
from dra_core.cel.problems import EvalProblem
from dra_core.cel.runtime import GUARD_HINT
from dra_core.cel.sizes import Shape
from dra_core.cel.types import BOOL, DYN, QUANTITY, STRING, Type, map_of
from dra_core.cel.values import MISSING, MapValue, Value
from dra_core.cel.versions import SemVer, parse_semver
from dra_core.errors import CelValueError

DEVICE_PARAMETERS: Final = ("driver", "device")
"""What a compiled selector is given."""

DEVICE: Final = Type("kubernetes.DRADevice")

_ATTRIBUTES: Final = map_of(STRING, map_of(STRING, DYN))
_CAPACITY: Final = map_of(STRING, map_of(STRING, QUANTITY))

PLAIN_KINDS: Final = frozenset({"int", "bool", "string", "ints", "bools", "strings"})
"""Kinds of attributes whose value is a CEL value as it is."""

MAX_REMEMBERED_VERSIONS: Final = 4_096
"""Parsed versions kept; there are few distinct ones in a cluster."""


class Devices:
    """Reads what needs more than a look-up: parsed versions, and faults of devices.

    One belongs to one cache of selectors. It remembers parsed versions, a bounded number.
    """

    def __init__(self) -> None:
        self._versions: dict[str, SemVer] = {}

    def inspect(self, device: Device) -> None:
        """Raise EvalProblem if an attribute has no value or a malformed version.

        Such a device makes every expression fail. Cost: linear in the attributes.
        """
        known = self._versions
        for kind, value in device.attributes.values():
            if kind not in PLAIN_KINDS and (
                kind != "version" or value.__class__ is not str or value not in known
            ):
                break
        else:
            return
        for name, attribute in device.attributes.items():
            try:
                self.value(attribute)
            except (CelValueError, EvalProblem) as problem:
                raise EvalProblem(f"attribute {name!r}: {problem}") from None

    def fault(self, device: Device) -> str:
        """What ``inspect`` says about the device, "" if nothing."""
        try:
            self.inspect(device)
        except EvalProblem as problem:
            return problem.problem
        return ""

    def value(self, attribute: AttributeValue) -> Value:
        """The CEL value of an attribute. Raises CelValueError or EvalProblem."""
        kind, value = attribute
        if kind in PLAIN_KINDS:
            return value
        if kind == "version" and isinstance(value, str):
            return self._version(value)
        if kind == "versions" and isinstance(value, tuple):
            return tuple(self._version(str(text)) for text in value)
        raise EvalProblem("it has no value")

    def _version(self, text: str) -> SemVer:
        known = self._versions.get(text)
        if known is None:
            known = parse_semver(text)
            if len(self._versions) >= MAX_REMEMBERED_VERSIONS:
                self._versions.clear()
            self._versions[text] = known
        return known


Convert = Callable[[Any], Value]


def capacity_value(capacity: DeviceCapacity) -> Value:
    """The CEL value of a capacity."""
    return capacity.value


class DomainView(MapValue):
    """The names of one domain of a device, as a map."""

    __slots__ = ("_convert", "_domain", "_driver", "_source")

    def __init__(
        self, source: Mapping[str, Any], driver: str, domain: str, convert: Convert
    ) -> None:
        self._source = source
        self._driver = driver
        self._domain = domain
        self._convert = convert

    def find(self, key: Value) -> Value:
        found = lookup(self._source, self._driver, self._domain, key)
        return MISSING if found is None else self._convert(found)

    def contains(self, key: Value) -> bool:
        return lookup(self._source, self._driver, self._domain, key) is not None

    def size(self) -> int:
        return len(self._names())

    def keys(self) -> Iterable[Value]:
        return list(self._names())

    def items(self) -> Iterable[tuple[Value, Value]]:
        return [(name, self.find(name)) for name in self._names()]

    def _names(self) -> dict[str, None]:
        split = (qualified_name(name, self._driver) for name in self._source)
        return dict.fromkeys(name for domain, name in split if domain == self._domain)


class DomainsView(MapValue):
    """The domains of a device, as a map in which every domain is found."""

    __slots__ = ("_convert", "_driver", "_source")

    def __init__(self, source: Mapping[str, Any], driver: str, convert: Convert) -> None:
        self._source = source
        self._driver = driver
        self._convert = convert

    def find(self, key: Value) -> Value:
        domain = key if isinstance(key, str) else "\0"
        return DomainView(self._source, self._driver, domain, self._convert)

    def contains(self, key: Value) -> bool:
        return key.__class__ is str and key in self._domains()

    def size(self) -> int:
        return len(self._domains())

    def keys(self) -> Iterable[Value]:
        return list(self._domains())

    def items(self) -> Iterable[tuple[Value, Value]]:
        return [(domain, self.find(domain)) for domain in self._domains()]

    def _domains(self) -> dict[str, None]:
        return dict.fromkeys(qualified_name(name, self._driver)[0] for name in self._source)


def lookup(source: Mapping[str, Any], driver: str, domain: str, name: Value) -> Any:
    """The entry of a qualified name, ``None`` if there is none.

    The full name wins over the bare one, which belongs to the driver's domain.
    """
    if name.__class__ is not str:
        return None
    found = None if "/" in domain else source.get(f"{domain}/{name}")
    if found is None and domain == driver and "/" not in name:
        found = source.get(name)
    return found


# --- places ------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class DevicePlace(Place):
    """``device``."""

    devices: Devices
    reads: "Reads"
    type: Type = DYN
    parted: ClassVar[bool] = True

    def child(self, name: str) -> Place | None:
        if name == "driver":
            return _Driver(self.reads)
        if name == "allowMultipleAllocations":
            return _AllowMultiple(self.reads)
        if name == "attributes":
            return _Domains(self.reads, "attributes", self.devices.value)
        if name == "capacity":
            return _Domains(self.reads, "capacity", capacity_value)
        return None

    def entry(self, module: Module, offset: int, name: str) -> Entry | None:
        child = self.child(name)
        return None if child is None else Entry("True", child.read(module, offset))

    def read(self, module: Module, offset: int) -> str:
        fields = []
        for name in ("driver", "attributes", "capacity", "allowMultipleAllocations"):
            child = self.child(name)
            if child is not None:
                fields.append(f"({name!r}, {child.read(module, offset)})")
        return module.assign(f"{module.constant(MapValue)}(({', '.join(fields)},))", offset)


@attrs.frozen(eq=False)
class _Driver(Place):
    reads: "Reads"
    type: Type = STRING

    def read(self, module: Module, offset: int) -> str:
        self.reads.driver = True
        return "driver"


@attrs.frozen(eq=False)
class _AllowMultiple(Place):
    reads: "Reads"
    type: Type = BOOL

    def read(self, module: Module, offset: int) -> str:
        self.reads.allow_multiple = True
        return module.assign("device.allow_multiple_allocations", offset)


@attrs.frozen(eq=False)
class _Domains(Place):
    """``device.attributes`` or ``device.capacity``."""

    reads: "Reads"
    which: str
    convert: Convert
    type: Type = DYN
    parted: ClassVar[bool] = True

    def child(self, name: str) -> Place | None:
        return _Domain(self.reads, self.which, self.convert, name)

    def entry(self, module: Module, offset: int, name: str) -> Entry | None:
        return Entry("True", _Domain(self.reads, self.which, self.convert, name).expression(module))

    def read(self, module: Module, offset: int) -> str:
        self.reads.everything(self.which)
        source = _source(module, self.which)
        view, convert = module.constant(DomainsView), module.constant(self.convert)
        return module.assign(f"{view}({source}, driver, {convert})", offset)


@attrs.frozen(eq=False)
class _Domain(Place):
    """``device.attributes[domain]``."""

    reads: "Reads"
    which: str
    convert: Convert
    domain: str
    type: Type = DYN
    parted: ClassVar[bool] = True

    def child(self, name: str) -> Place | None:
        return _Named(self, name, QUANTITY if self.which == "capacity" else DYN)

    def entry(self, module: Module, offset: int, name: str) -> Entry:
        found = self.find(module, offset, name)
        return Entry(f"{found} is not None", self.converted(module, found))

    def contains(self, module: Module, offset: int, name: str) -> str | None:
        return f"{self.find(module, offset, name)} is not None"

    def find(self, module: Module, offset: int, name: str) -> str:
        """Write the look-up of a name; returns the variable with the entry or None."""
        self.reads.add(self.which, self.domain, name)
        source = _source(module, self.which)
        bare = f"driver == {module.constant(self.domain)}"
        get_bare = f"{source}.get({module.constant(name)})"
        if "/" in self.domain:
            if "/" in name:
                return module.assign("None", offset)
            return module.assign(f"{get_bare} if {bare} else None", offset)
        full = module.constant(f"{self.domain}/{name}")
        found = module.assign(f"{source}.get({full})", offset)
        if "/" not in name:
            module.line(f"if {found} is None and {bare}: {found} = {get_bare}", offset)
        return found

    def converted(self, module: Module, found: str) -> str:
        """The expression for the value of an entry that is there."""
        if self.which == "capacity":
            return f"{found}.value"
        plain, convert = module.constant(PLAIN_KINDS), module.constant(self.convert)
        return f"{found}[1] if {found}[0] in {plain} else {convert}({found})"

    def expression(self, module: Module) -> str:
        """The expression for the domain as a map."""
        self.reads.everything(self.which)
        source = _source(module, self.which)
        view, convert = module.constant(DomainView), module.constant(self.convert)
        return f"{view}({source}, driver, {module.constant(self.domain)}, {convert})"

    def read(self, module: Module, offset: int) -> str:
        return module.assign(self.expression(module), offset)


@attrs.frozen(eq=False)
class _Named(Place):
    """``device.attributes[domain].name``."""

    domain: _Domain
    name: str
    type: Type

    def read(self, module: Module, offset: int) -> str:
        found = self.domain.find(module, offset, self.name)
        problem = module.constant(_Missing(self.domain.which, self.domain.domain, self.name))
        module.line(f"if {found} is None: {problem}()", offset, fallible=True)
        return module.assign(self.domain.converted(module, found), offset)


@attrs.frozen(eq=False)
class _Missing:
    """Raises the error for a name that a device does not have."""

    which: str
    domain: str
    name: str

    def __call__(self) -> None:
        what = "attribute" if self.which == "attributes" else "capacity"
        raise EvalProblem(
            f"no such key: {self.name!r} (the device has no {what} {self.domain}/{self.name})",
            GUARD_HINT,
        )


def _source(module: Module, which: str) -> str:
    module.prologue(f"{which} = device.{which}")
    return which


# --- what an expression reads --------------------------------------------------------------


@attrs.frozen
class SelectorReads:
    """What a selector reads of a device.

    ``attributes`` and ``capacity`` are (domain, name) pairs in the order of the text, or
    ``None`` if any of them may be read.
    """

    driver: bool
    allow_multiple: bool
    attributes: tuple[tuple[str, str], ...] | None
    capacity: tuple[tuple[str, str], ...] | None


class Reads:
    """What an expression reads of a device, as found while compiling it.

    ``attributes`` and ``capacity`` are (domain, name) pairs, ``None`` for all of them.
    """

    def __init__(self) -> None:
        self.driver = False
        self.allow_multiple = False
        self.attributes: dict[tuple[str, str], None] | None = {}
        self.capacity: dict[tuple[str, str], None] | None = {}

    def add(self, which: str, domain: str, name: str) -> None:
        """Note a name."""
        names: dict[tuple[str, str], None] | None = getattr(self, which)
        if names is not None:
            names[domain, name] = None

    def everything(self, which: str) -> None:
        """Note that all names may be read; which are the driver's depends on the driver."""
        setattr(self, which, None)
        self.driver = True

    def frozen(self) -> SelectorReads:
        """What was noted."""
        return SelectorReads(
            self.driver,
            self.allow_multiple,
            None if self.attributes is None else tuple(self.attributes),
            None if self.capacity is None else tuple(self.capacity),
        )


FIELDS: Final = {
    DEVICE.name: {
        "driver": STRING,
        "attributes": _ATTRIBUTES,
        "capacity": _CAPACITY,
        "allowMultipleAllocations": BOOL,
    }
}


# Limits of resource.k8s.io: DriverNameMaxLength, DeviceMaxDomainLength, DeviceMaxIDLength,
# DeviceAttributeMaxValueLength, ResourceSliceMaxAttributesAndCapacitiesPerDevice.
_DRIVER_LENGTH: Final = 63
_DOMAIN_LENGTH: Final = 63
_NAME_LENGTH: Final = 32
_VALUE_LENGTH: Final = 64
_MOST_NAMES: Final = 32

_DOMAIN_KEY: Final = Shape(_DOMAIN_LENGTH)
_NAMES: Final = Shape(_MOST_NAMES, Shape(_NAME_LENGTH), Shape(_VALUE_LENGTH), open=True)
_AMOUNTS: Final = Shape(_MOST_NAMES, Shape(_NAME_LENGTH))
_SHAPE: Final = Shape(
    0,
    fields={
        "driver": Shape(_DRIVER_LENGTH),
        "attributes": Shape(_MOST_NAMES, _DOMAIN_KEY, _NAMES),
        "capacity": Shape(_MOST_NAMES, _DOMAIN_KEY, _AMOUNTS),
    },
)


def device_environment() -> Environment:
    """The environment of device selectors."""
    return Environment({"device": DEVICE}, FIELDS, shapes={"device": _SHAPE})
