"""Assume cache: observed and assumed versions of the objects of one kind, with handlers.

What may live here: ``AssumeCache``, which knows names, UIDs and versions of objects and
nothing else about them. It is safe to use from any thread and starts none.

A scheduler hears of its own writes twice: from the answer of the API server, and later
from the informer's stream of events. It must not act on the older state in between. So
for each object the cache keeps two copies:

* the *observed* one, the newest that the informer has shown;
* the *latest*, which is what readers and handlers get. It is the observed one, or newer
  because the caller *assumed* what the API server answered.

Invariants (``_check``): both copies have one UID; the latest is not older than the
observed; the index holds exactly the latest objects' keys. An object without observed
copy is hypothetical: a simulator added it.

Only objects that came back from the API server are safe to assume. A locally changed
object with its old version would be replaced by the next event; use
``dra_core.scheduling.in_flight`` for what is not written yet.

All changes of the latest objects are events, in one order for all handlers; see
``dra_core.scheduling.delivery`` for who delivers them and when.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import attrs

from dra_core.api.core import ObjectMeta
from dra_core.api.names import ObjectKey
from dra_core.errors import DraError
from dra_core.scheduling.delivery import Delivery, Handlers
from dra_core.scheduling.errors import (
    HandlerFailedError,
    NoIndexError,
    NoUsableNameError,
    ObjectExistsError,
    ObjectNotFoundError,
    ObjectReplacedError,
    UnreadableVersionError,
    VersionTooOldError,
    WrongTypeError,
)
from dra_core.scheduling.versions import ResourceVersion, read_version

T = TypeVar("T")

ErrorCallback = Callable[[DraError], object]
"""Is told of dropped events and failed handlers. What it raises reaches the thread that
happens to deliver, after that has delivered everything."""


@attrs.frozen
class CacheEvent(Generic[T]):
    """A change of a latest object: ``old`` None is an add, ``new`` None a delete.

    ``initial``: an add for something that was in the store before the handler was.
    """

    key: ObjectKey
    old: T | None
    new: T | None
    initial: bool = False


@attrs.frozen
class _Shown(Generic[T]):
    """An object as the informer shows it, with all that was to be worked out about it."""

    key: ObjectKey
    uid: str
    obj: T
    version: ResourceVersion
    groups: tuple[str, ...]


Handler = Callable[[CacheEvent[T]], object]
Listener = Callable[[T | None, T | None], object]


def metadata_of(obj: object) -> ObjectMeta:
    """The attribute ``metadata``, which the objects of ``dra_core.api`` have."""
    metadata: ObjectMeta = obj.metadata  # type: ignore[attr-defined]
    return metadata


@attrs.define
class _Entry(Generic[T]):
    """What is stored under one key. ``groups`` are the index keys of the latest object."""

    uid: str
    latest: T
    version: ResourceVersion
    groups: tuple[str, ...]
    observed: T | None
    observed_version: ResourceVersion | None


class AssumeCache(Generic[T]):
    """The objects of one kind, as observed and as assumed.

    ``object_type``: what is stored; anything else is refused. ``on_error`` is told of
    events that had to be dropped (an unreadable version, another type, no name) and of
    handlers' exceptions. ``metadata`` finds an object's name, namespace, UID and version;
    default: its attribute ``metadata``. ``index``: a pure function from an object to the
    index keys by which ``list`` shall find it. ``delivery``: share one (``atomic`` of the
    first) among caches whose handlers call each other's caches, else two threads that
    deliver can wait for each other; their events then have one order, too.

    Every call is atomic. Calls that change something return after the events that they
    caused were delivered; from inside a handler they return at once. Costs: all single
    object calls are O(1) plus the events, about 10 µs with one handler.
    """

    def __init__(
        self,
        object_type: type[T],
        on_error: ErrorCallback,
        *,
        metadata: Callable[[T], ObjectMeta] = metadata_of,
        index: Callable[[T], Iterable[str]] | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        self._type = object_type
        self._kind = object_type.__name__
        self._on_error = on_error
        self._metadata = metadata
        self._index = index
        self._delivery = Delivery() if delivery is None else delivery
        self._entries: dict[ObjectKey, _Entry[T]] = {}
        self._groups: dict[str, dict[ObjectKey, None]] = {}
        self._handlers: Handlers[CacheEvent[T]] = Handlers(self._delivery, self._handler_failed)
        self._listeners: tuple[Listener[T], ...] = ()
        self._list_listeners: tuple[Callable[[ResourceVersion], object], ...] = ()

    def atomic(self) -> Delivery:
        """``with cache.atomic():`` makes several calls one step that nobody sees half done.

        Events are delivered when the block is left. Do not wait in it for anything.
        """
        return self._delivery

    # --- reading ---------------------------------------------------------------------

    def get(self, key: ObjectKey) -> T:
        """The latest object. Raises ObjectNotFoundError."""
        found = self.find(key)
        if found is None:
            raise ObjectNotFoundError(self._kind, str(key))
        return found

    def find(self, key: ObjectKey) -> T | None:
        """The latest object, None if there is none."""
        with self._delivery:
            entry = self._entries.get(key)
            return entry.latest if entry is not None else None

    def get_api_object(self, key: ObjectKey) -> T:
        """The observed object, whatever was assumed since.

        Raises ObjectNotFoundError, also for an object that nobody has observed.
        """
        with self._delivery:
            entry = self._entries.get(key)
            if entry is None or entry.observed is None:
                raise ObjectNotFoundError(self._kind, str(key))
            return entry.observed

    def version_of(self, obj: T) -> ResourceVersion:
        """The resourceVersion of an object, stored or not. Raises UnreadableVersionError."""
        metadata = self._metadata(obj)
        return self._version(metadata.key, metadata)

    def list(self, index_key: str | None = None) -> tuple[T, ...]:
        """All latest objects, or those with the index key; each once, in the order in
        which they were added (with an index key: in which they got it).

        Raises NoIndexError. Cost: O(objects returned).
        """
        with self._delivery:
            if index_key is None:
                return tuple(entry.latest for entry in self._entries.values())
            if self._index is None:
                raise NoIndexError(self._kind)
            return tuple(self._entries[key].latest for key in self._groups.get(index_key, ()))

    # --- the informer's events -------------------------------------------------------

    def observe(self, obj: T) -> None:
        """The informer shows an object: its event add or update.

        Replaces the observed copy if newer than that, and the latest if newer than the
        latest. Another UID is another object: handlers see a delete, then an add. What
        has no readable version or name is reported and dropped.
        """
        with self._delivery:
            shown = self._shown(obj)
            if shown is not None:
                self._show(shown)

    def _shown(self, obj: T) -> _Shown[T] | None:
        """Work out what can fail; ``None`` for what was reported."""
        try:
            key, metadata = self._identify(obj)
            version = self._version(key, metadata)
        except DraError as error:
            self._delivery.put(self._on_error, error)
            return None
        return _Shown(key, metadata.uid, obj, version, self._groups_of(obj))

    def _show(self, shown: _Shown[T]) -> None:
        key, obj, version = shown.key, shown.obj, shown.version
        entry = self._entries.get(key)
        if entry is not None and entry.uid != shown.uid:
            self._drop(key, entry)
            entry = None
        if entry is None:
            self._add(key, _Entry(shown.uid, obj, version, shown.groups, obj, version))
            return
        if entry.observed_version is None or version > entry.observed_version:
            entry.observed, entry.observed_version = obj, version
        if version > entry.version:
            self._replace(key, entry, obj, version, shown.groups)

    def observe_delete(self, obj: T) -> None:
        """The informer shows that an object is gone, whatever its last version.

        Handlers get the latest object. Nothing happens for an unknown key or another UID.
        """
        with self._delivery:
            try:
                key, metadata = self._identify(obj)
            except DraError as error:
                self._delivery.put(self._on_error, error)
                return
            entry = self._entries.get(key)
            if entry is not None and entry.uid == metadata.uid:
                self._drop(key, entry)

    def observe_all(self, objects: Iterable[T], version: str | None = None) -> None:
        """The informer has listed everything there is, at the list's resourceVersion.

        Each object is observed; what was observed before and is not in the list is gone,
        unless it was observed at a newer version than the list's. Hypothetical objects
        stay. Raises UnreadableVersionError for the list's version. One atomic step: if
        ``objects`` or the index function raises, nothing of the list was observed.
        """
        listed = None if version is None else self._version(None, ObjectMeta("", "", "", version))
        with self._delivery:
            present = set()
            usable = []
            for obj in objects:
                if isinstance(obj, self._type):
                    present.add(self._metadata(obj).key)
                shown = self._shown(obj)
                if shown is not None:
                    usable.append(shown)
            for shown in usable:
                self._show(shown)
            for key, entry in list(self._entries.items()):
                seen = entry.observed_version
                if key in present or seen is None or (listed is not None and seen > listed):
                    continue
                self._drop(key, entry)
            if listed is not None:
                for listener in self._list_listeners:
                    listener(listed)

    # --- the caller's knowledge ------------------------------------------------------

    def assume(self, obj: T) -> None:
        """Use an object that the API server returned, before the informer shows it.

        Replaces the latest copy only. Raises, checked in this order and changing nothing:
        WrongTypeError, NoUsableNameError, ObjectNotFoundError, ObjectReplacedError (the
        stored object has another UID), UnreadableVersionError, VersionTooOldError (older
        than the latest; an equal version is fine).
        """
        with self._delivery:
            key, metadata = self._identify(obj)
            entry = self._entries.get(key)
            if entry is None:
                raise ObjectNotFoundError(self._kind, str(key))
            if entry.uid != metadata.uid:
                raise ObjectReplacedError(self._kind, str(key), metadata.uid, entry.uid)
            version = self._version(key, metadata)
            if version < entry.version:
                raise VersionTooOldError(self._kind, str(key), str(version), str(entry.version))
            self._replace(key, entry, obj, version, self._groups_of(obj))

    def restore(self, key: ObjectKey) -> None:
        """Forget what was assumed: the latest object is the observed one again.

        A hypothetical object is removed. Unknown keys are ignored; without a difference
        there is no event.
        """
        with self._delivery:
            entry = self._entries.get(key)
            if entry is None:
                return
            if entry.observed is None or entry.observed_version is None:
                self._drop(key, entry)
                return
            groups = self._groups_of(entry.observed)
            self._replace(key, entry, entry.observed, entry.observed_version, groups)

    def add_hypothetical(self, obj: T) -> None:
        """Add an object that nobody has observed, for simulators. Handlers see an add.

        It can be assumed, restored (which removes it) and observed like any other.
        Raises WrongTypeError, NoUsableNameError, ObjectExistsError and
        UnreadableVersionError ("0" will do for a version).
        """
        with self._delivery:
            key, metadata = self._identify(obj)
            if key in self._entries:
                raise ObjectExistsError(self._kind, str(key))
            version = self._version(key, metadata)
            groups = self._groups_of(obj)
            self._add(key, _Entry(metadata.uid, obj, version, groups, None, None))

    # --- handlers --------------------------------------------------------------------

    def add_handler(self, handler: Handler[T]) -> Callable[[], None]:
        """Call ``handler(event)`` for every change of the latest objects, from now on.

        First come adds, marked as initial, for everything in the store. All handlers see
        all changes exactly once and in one order, one call at a time. A handler may call
        the cache; it must not wait for another thread that does, nor take a lock that is
        held somewhere while the cache is called. Its exceptions go to ``on_error``. Returns
        a function that ends the subscription.
        """

        def initial() -> Iterable[CacheEvent[T]]:
            for key, entry in self._entries.items():
                yield CacheEvent(key, None, entry.latest, initial=True)

        return self._handlers.add(handler, initial)

    def attach(
        self,
        listener: Listener[T],
        listed: Callable[[ResourceVersion], object] | None = None,
    ) -> None:
        """Call ``listener(old, new)`` as part of every change, for state that must not lag.

        Unlike a handler it runs under the lock, before anybody sees the change: it must be
        quick, and neither raise nor call the cache. It is told of what is in the store at
        once. ``listed(version)`` is called at the end of an ``observe_all``.
        """
        with self._delivery:
            for entry in self._entries.values():
                listener(None, entry.latest)
            self._listeners += (listener,)
            if listed is not None:
                self._list_listeners += (listed,)

    def handler_failed(self, key: ObjectKey, error: Exception) -> None:
        """Report what a handler raised about an object; for whoever adds handlers of its own
        kind to the cache's order of events (``dra_core.scheduling.in_flight``)."""
        self._on_error(HandlerFailedError(self._kind, str(key), error))

    # --- inside ----------------------------------------------------------------------

    def _handler_failed(self, event: CacheEvent[T], error: Exception) -> None:
        self.handler_failed(event.key, error)

    def _identify(self, obj: T) -> tuple[ObjectKey, ObjectMeta]:
        if not isinstance(obj, self._type):
            raise WrongTypeError(self._kind, type(obj).__name__)
        metadata = self._metadata(obj)
        if not metadata.name:
            raise NoUsableNameError(self._kind, str(metadata.key))
        return metadata.key, metadata

    def _version(self, key: ObjectKey | None, metadata: ObjectMeta) -> ResourceVersion:
        version = read_version(metadata.resource_version)
        if version is None:
            name = "(list)" if key is None else str(key)
            raise UnreadableVersionError(self._kind, name, metadata.resource_version)
        return version

    def _groups_of(self, obj: T) -> tuple[str, ...]:
        return () if self._index is None else tuple(dict.fromkeys(self._index(obj)))

    def _add(self, key: ObjectKey, entry: _Entry[T]) -> None:
        self._entries[key] = entry
        self._regroup(key, (), entry.groups)
        self._changed(key, None, entry.latest)

    def _drop(self, key: ObjectKey, entry: _Entry[T]) -> None:
        del self._entries[key]
        self._regroup(key, entry.groups, ())
        self._changed(key, entry.latest, None)

    def _replace(
        self,
        key: ObjectKey,
        entry: _Entry[T],
        obj: T,
        version: ResourceVersion,
        groups: tuple[str, ...],
    ) -> None:
        """Set the latest object; no event where it does not differ."""
        old = entry.latest
        same = old is obj or (version == entry.version and old == obj)
        self._regroup(key, entry.groups, groups)
        entry.latest, entry.version, entry.groups = obj, version, groups
        if not same:
            self._changed(key, old, obj)

    def _regroup(self, key: ObjectKey, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        if before == after:
            return
        for group in before:
            if group not in after:
                members = self._groups[group]
                del members[key]
                if not members:
                    del self._groups[group]
        for group in after:
            self._groups.setdefault(group, {}).setdefault(key)

    def _changed(self, key: ObjectKey, old: T | None, new: T | None) -> None:
        for listener in self._listeners:
            listener(old, new)
        self._handlers.tell(CacheEvent(key, old, new))

    def _check(self) -> None:
        """Raise AssertionError if an invariant of the module's opening does not hold."""
        with self._delivery:
            self._delivery._check()
            groups: dict[str, set[ObjectKey]] = {}
            for key, entry in self._entries.items():
                self._check_entry(key, entry)
                for group in self._groups_of(entry.latest):
                    groups.setdefault(group, set()).add(key)
            if {group: set(keys) for group, keys in self._groups.items()} != groups:
                raise AssertionError(f"index {self._groups} is not {groups}")

    def _check_entry(self, key: ObjectKey, entry: _Entry[T]) -> None:
        copies = [(entry.latest, entry.version)]
        if entry.observed is not None and entry.observed_version is not None:
            copies.append((entry.observed, entry.observed_version))
        for obj, version in copies:
            metadata = self._metadata(obj)
            facts = (metadata.key, metadata.uid, read_version(metadata.resource_version))
            if facts != (key, entry.uid, version):
                raise AssertionError(f"{facts} is stored as {(key, entry.uid, version)}")
        if entry.observed_version is not None and entry.observed_version > entry.version:
            raise AssertionError(f"{key}: the latest is older than the observed")
