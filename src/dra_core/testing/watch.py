"""Watching the in-memory API server, as late as a test wants.

What may live here: ``Watch``, one stream of changes, and ``Informer``, which lists and
watches for a store such as ``AssumeCache``. Nothing happens by itself: the caller asks
for the next changes, and decides thereby how far a watcher lags behind.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from dra_core.api.request import Target
from dra_core.api.wire_free import copy_json
from dra_core.testing.api_server import ApiServer
from dra_core.testing.object_store import Event
from dra_core.testing.server_answers import RefusedError

Json = dict[str, Any]
T = TypeVar("T")
Observed = TypeVar("Observed", contravariant=True)

Selects = Callable[[Mapping[str, Any]], bool]
"""Whether an object is one that a watcher wants to see."""

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"


class WatchEvent(NamedTuple):
    """A change as a watcher sees it; ``object`` is a copy."""

    type: str
    object: Json


def everything(_obj: Mapping[str, Any]) -> bool:
    """Selects all objects."""
    return True


class Watch:
    """The changes of one kind of object, in one namespace or in all ("").

    It begins after the resourceVersion ``since``; with ``None`` it shows what there is as
    added, then what changes. Objects that ``selects`` refuses are not shown: one that
    becomes selected was added, one that ceases to be was deleted.

    ``delay`` is asked for every change how many times ``poll`` is to hold it back, and all
    that come after it. Raises RefusedError (404) for a kind that is not served.
    """

    def __init__(
        self,
        server: ApiServer,
        target: Target,
        since: int | None = None,
        *,
        selects: Selects = everything,
        delay: Callable[[], int] | None = None,
    ) -> None:
        server.kind_of(target)
        self._server, self._target, self._selects, self._delay = server, target, selects, delay
        self._wait: int | None = None
        self._initial: list[Json] = []
        self.version = server.version if since is None else since
        """The resourceVersion up to which everything was shown."""
        if since is None:
            self._initial = [
                obj for obj in server.objects(target.resource, target.namespace) if selects(obj)
            ]

    def poll(self, most: int | None = None) -> list[WatchEvent]:
        """The next changes, at most ``most``; empty when there are none yet.

        Raises RefusedError (410) if the server has forgotten changes that were not shown.
        """
        count = len(self._initial) if most is None else min(most, len(self._initial))
        shown = [WatchEvent(ADDED, obj) for obj in self._initial[:count]]
        del self._initial[:count]
        if self._initial:
            return shown
        for event in self._server.events(self.version):
            found = self._seen(event)
            if found is not None:
                if (most is not None and len(shown) >= most) or self._is_held():
                    break
                self._wait = None
                shown.append(found)
            self.version = event.version
        return shown

    def _is_held(self) -> bool:
        if self._delay is None:
            return False
        if self._wait is None:
            self._wait = self._delay()
        self._wait -= 1
        return self._wait >= 0

    def _seen(self, event: Event) -> WatchEvent | None:
        """The change as this watcher sees it; ``None`` if it does not."""
        key, target = event.key, self._target
        if key[:2] != (target.group, target.resource):
            return None
        if target.namespace not in ("", key.namespace):
            return None
        before = event.old is not None and self._selects(event.old)
        after = event.new is not None and self._selects(event.new)
        if not before and not after:
            return None
        kind = MODIFIED if before and after else ADDED if after else DELETED
        return WatchEvent(kind, copy_json(event.last))


class Sink(Protocol[Observed]):
    """What an informer tells: an ``AssumeCache``, for instance."""

    def observe(self, obj: Observed) -> None:
        """An object was added or changed."""

    def observe_delete(self, obj: Observed) -> None:
        """An object is gone; this is its last state."""

    def observe_all(self, objects: Iterable[Observed], version: str | None = None) -> None:
        """This is all there is, at a resourceVersion."""


class Informer(Generic[T]):
    """Lists once, then shows changes to a sink, a few at a time when it is told to.

    ``target`` says which objects, ``decode`` makes them of JSON. After the server has
    forgotten changes that were not shown, the next ``show`` lists anew.
    """

    def __init__(
        self,
        server: ApiServer,
        target: Target,
        decode: Callable[[Json], T],
        sink: Sink[T],
        *,
        delay: Callable[[], int] | None = None,
    ) -> None:
        self._server, self._decode, self._sink, self._delay = server, decode, sink, delay
        self.target = target
        self.list_anew()

    def list_anew(self) -> None:
        """Show everything that there is now; changes before are not shown one by one."""
        server, target = self._server, self.target
        objects = map(self._decode, server.objects(target.resource, target.namespace))
        self._watch = Watch(server, target, server.version, delay=self._delay)
        self._sink.observe_all(list(objects), str(server.version))

    def show(self, most: int | None = None) -> int:
        """Show the next changes, all or at most ``most``; how many there were."""
        try:
            events = self._watch.poll(most)
        except RefusedError:
            self.list_anew()
            return 1
        for event in events:
            tell = self._sink.observe_delete if event.type == DELETED else self._sink.observe
            tell(self._decode(event.object))
        return len(events)

    @property
    def version(self) -> int:
        """The resourceVersion up to which everything was shown."""
        return self._watch.version
