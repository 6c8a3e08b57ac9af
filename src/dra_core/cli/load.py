"""What is in the given files: the objects of a cluster, each once.

What may live here: decoding documents into objects, choosing among copies of one
object, and what has to be said about the input. Judging it is the business of
``judge`` and ``lint``.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import attrs

from dra_core.api import wire
from dra_core.api.core import Node, Pod
from dra_core.api.names import ObjectKey
from dra_core.api.objects import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dra_core.api.wire_versions import CONTEXT_KINDS
from dra_core.cli.documents import STDIN, BadInputError, read_documents
from dra_core.errors import MalformedObjectError
from dra_core.v1alpha2 import wire as v1alpha2

DEFAULT_NAMESPACE: Final = "default"
"""Where an object without namespace belongs, as ``kubectl apply`` would decide."""

_NAMESPACED: Final = (
    "Pod",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "PodGroup",
    *CONTEXT_KINDS.values(),
    *v1alpha2.NAMESPACED,
)

ApiObject = wire.ApiObject | v1alpha2.ApiObject
"""Everything that is read."""

T = TypeVar("T")


@attrs.frozen
class Loaded:
    """One object of the input: what it decodes to and where it was found."""

    kind: str
    api_version: str
    source: str
    value: ApiObject


@attrs.frozen
class Dump:
    """The objects of a cluster by kind. Order: that of the input, of the copy that counts.

    ``skipped`` counts objects of kinds or versions that are not read, ``notes`` says in
    words what else a reader of the answer should know about the input.
    """

    objects: tuple[Loaded, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, kind: type[T]) -> tuple[T, ...]:
        """All objects of one type."""
        return tuple(item.value for item in self.objects if isinstance(item.value, kind))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes."""
        return self.of(Node)

    @property
    def pods(self) -> tuple[Pod, ...]:
        """All pods."""
        return self.of(Pod)

    @property
    def slices(self) -> tuple[ResourceSlice, ...]:
        """All slices."""
        return self.of(ResourceSlice)

    @property
    def classes(self) -> tuple[DeviceClass, ...]:
        """All device classes."""
        return self.of(DeviceClass)

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        """All claims, those of v1alpha2 too."""
        return self.of(ResourceClaim)

    @property
    def templates(self) -> tuple[ResourceClaimTemplate, ...]:
        """All claim templates, those of v1alpha2 too."""
        return self.of(ResourceClaimTemplate)

    @property
    def rules(self) -> tuple[DeviceTaintRule, ...]:
        """All taint rules."""
        return self.of(DeviceTaintRule)


def api_version_of(value: ApiObject) -> str:
    """The version part of the apiVersion that an object was read in."""
    return str((value.raw or {}).get("apiVersion", "v1")).rpartition("/")[2]


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection inside: loading makes many objects and no garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Loader:
    """Collects objects from files.

    ``on_malformed`` is called with every error in an object, and may raise it to stop
    there; ``on_object`` after every object, for showing progress.
    """

    def __init__(
        self,
        on_malformed: Callable[[MalformedObjectError], None],
        on_object: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_malformed = on_malformed
        self._on_object = on_object
        self._decoder = wire.Decoder()
        self._found: dict[tuple[str, ObjectKey], Loaded] = {}
        self._skipped: Counter[str] = Counter()
        self._without_namespace = 0
        self._undated: dict[str, None] = {}

    def add_file(self, source: str) -> None:
        """All objects of a file; "-" is standard input. Raises ``BadInputError``."""
        self.add_documents(source, read_documents(source))

    def add_documents(self, source: str, documents: Iterable[object]) -> None:
        """All objects of decoded documents."""
        for document in documents:
            try:
                for item in wire.iter_objects(document):
                    self._add(source, item)
                    self._on_object()
            except MalformedObjectError as error:
                self._on_malformed(error)

    def dump(self) -> Dump:
        """What was found so far."""
        notes = []
        if self._without_namespace:
            count = counted(self._without_namespace, "object")
            notes.append(f'{count} without namespace: read as in "{DEFAULT_NAMESPACE}"')
        for name in self._undated:
            notes.append(f"{name} appears more than once with one resourceVersion: the last counts")
        skipped = tuple(sorted(self._skipped.items()))
        return Dump(tuple(self._found.values()), skipped, tuple(notes))

    def _add(self, source: str, item: wire.WireObject) -> None:
        older = v1alpha2.is_known(item.api_version, item.kind)
        if not item.known and not older:
            self._skipped[f"{item.api_version} {item.kind}".strip()] += 1
            return
        try:
            decode = v1alpha2.decode if older else self._decoder.decode
            value = self._in_namespace(item.kind, decode(item.data))
            if not value.metadata.name:
                raise MalformedObjectError(item.kind, "", "metadata.name", "is missing")
            self._keep(Loaded(item.kind, item.api_version, source, value))
        except MalformedObjectError as error:
            self._on_malformed(error)

    def _in_namespace(self, kind: str, value: ApiObject) -> ApiObject:
        if value.metadata.namespace or kind not in _NAMESPACED:
            return value
        self._without_namespace += 1
        metadata = attrs.evolve(value.metadata, namespace=DEFAULT_NAMESPACE)
        return attrs.evolve(value, metadata=metadata)

    def _keep(self, new: Loaded) -> None:
        """The newest copy counts: of equally new ones the last."""
        key = (new.kind, new.value.metadata.key)
        old = self._found.get(key)
        if old is not None:
            age, known_age = _age(new), _age(old)
            if age < known_age:
                return
            if age == known_age and new.value != old.value:
                self._undated[f"{new.kind} {new.value.metadata.key}"] = None
            del self._found[key]
        self._found[key] = new


def _age(item: Loaded) -> tuple[int, str]:
    """A key that orders resourceVersions, decimal numbers of any length; none is oldest."""
    version = item.value.metadata.resource_version
    if not version:
        return (0, "")
    if not (version.isascii() and version.isdecimal()):
        name = str(item.value.metadata.key)
        problem = f"{version!r} is not a decimal number, so copies cannot be compared"
        raise MalformedObjectError(item.kind, name, "metadata.resourceVersion", problem)
    digits = version.lstrip("0")
    return (len(digits), digits)


def counted(number: int, noun: str) -> str:
    """``1 node``, ``2 nodes``, ``3 classes``."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def load(
    sources: Sequence[str],
    on_malformed: Callable[[MalformedObjectError], None],
    on_object: Callable[[], None] = lambda: None,
) -> Dump:
    """All objects of the given files. See ``Loader``; raises ``BadInputError`` too."""
    with collector_off():
        loader = Loader(on_malformed, on_object)
        if sources.count(STDIN) > 1:
            raise BadInputError(STDIN, "is given more than once, but can be read once only")
        for source in sources:
            loader.add_file(source)
        return loader.dump()
