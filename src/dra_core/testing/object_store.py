"""Where the in-memory API server keeps its objects, and what happened to them.

What may live here: storing, finding, and the history that watches read. No rule of the
API beyond two: each write has a resourceVersion of its own, and an object that is being
deleted goes with its last finalizer.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import attrs

from dra_core.api.request import Target
from dra_core.api.wire_free import copy_json
from dra_core.testing.server_answers import RefusedError

Json = dict[str, Any]


class StoreKey(NamedTuple):
    """Where an object is stored; all versions of a resource have one place."""

    group: str
    resource: str
    namespace: str
    name: str


def key_of(target: Target) -> StoreKey:
    """Where the object that a target means is stored."""
    return StoreKey(target.group, target.resource, target.namespace, target.name)


@attrs.frozen
class Event:
    """One change: ``old`` is ``None`` for a new object, ``new`` for one that is gone.

    ``last`` is the object as it was last, at the resourceVersion of the event.
    """

    version: int
    key: StoreKey
    old: Json | None = attrs.field(repr=False)
    new: Json | None = attrs.field(repr=False)
    last: Json = attrs.field(repr=False)


class ObjectStore:
    """Objects by key. They are values: a write stores a new one and changes none.

    ``version`` is the resourceVersion of the last write. Changes up to ``oldest`` are
    forgotten.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self.oldest = version
        self._objects: dict[StoreKey, Json] = {}
        self._events: list[Event] = []

    def fork(self) -> "ObjectStore":
        """An independent store in the same state. Cost: a pointer per object and event."""
        result = ObjectStore(self.version)
        result.oldest = self.oldest
        result._objects = dict(self._objects)
        result._events = list(self._events)
        return result

    def get(self, key: StoreKey) -> Json | None:
        """The stored object itself, not to be changed; ``None`` if there is none."""
        return self._objects.get(key)

    def find(self, resource: str, namespace: str, name: str) -> Json | None:
        """A copy of an object, by the plural name of its kind."""
        for key, obj in self._objects.items():
            if (key.resource, key.namespace, key.name) == (resource, namespace, name):
                return _copy(obj)
        return None

    def copies(self, accepts: Callable[[StoreKey], bool]) -> list[Json]:
        """Copies of objects, each once, in the order of their keys."""
        keys = sorted(key for key in self._objects if accepts(key))
        return [_copy(self._objects[key]) for key in keys]

    def write(self, key: StoreKey, new: Json) -> Json:
        """Store an object at the next version, or let go of it; a copy of what it is then."""
        self.version += 1
        meta = {**new["metadata"], "resourceVersion": str(self.version)}
        last = {**new, "metadata": meta}
        gone = bool(meta.get("deletionTimestamp")) and not meta.get("finalizers")
        old = self._objects.get(key)
        if gone:
            del self._objects[key]
        else:
            self._objects[key] = last
        self._events.append(Event(self.version, key, old, None if gone else last, last))
        return _copy(last)

    def seed(self, key: StoreKey, obj: Json) -> None:
        """Store an object as it is; no change that anybody is shown."""
        if not obj["metadata"].get("resourceVersion"):
            self.version += 1
            obj["metadata"]["resourceVersion"] = str(self.version)
        self._objects[key] = obj

    def remove(self, key: StoreKey) -> None:
        """Take an object away as if it had never been."""
        self._objects.pop(key, None)

    def events(self, since: int) -> list[Event]:
        """The changes after a version, in order; their objects are not copies.

        Raises RefusedError (410) if they are forgotten. Cost: their number.
        """
        if since < self.oldest:
            raise RefusedError(410, f"changes since {since} are forgotten, up to {self.oldest}")
        count = 0
        for event in reversed(self._events):
            if event.version <= since:
                break
            count += 1
        return self._events[len(self._events) - count :]

    def forget(self) -> None:
        """Forget all changes so far."""
        self._events.clear()
        self.oldest = self.version


def _copy(obj: Json) -> Json:
    result: Json = copy_json(obj)
    return result
