"""An informer on the ``kubernetes`` client package: list, watch, and list anew, for ever.

What may live here: what every controller has and nothing of scheduling. It ends with the
process that it serves, never before that: whatever happens is reported, and it goes on.
"""

import json
import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kubernetes import watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from dra_core.api.names import ObjectKey
from dra_core.api.wire import decode
from dra_core.errors import MalformedObjectError
from dra_core.scheduling.assume_cache import AssumeCache, metadata_of

PAUSE_SECONDS = 0.2
WATCH_SECONDS = 30
"""How long the API server is asked to go on with a watch."""
CONNECT_AND_READ_SECONDS = (10, WATCH_SECONDS + 10)

LOG = logging.getLogger(__name__)

T = TypeVar("T")
Json = dict[str, Any]


class Informer(threading.Thread, Generic[T]):
    """Shows ``cache`` the objects of one kind until ``stopping`` is set.

    ``listing`` is a method of the client that lists them. What cannot be read is told to
    ``report`` and left out; where the cache has an older copy, that stays. ``listed`` is set
    when the first list was shown.
    """

    def __init__(
        self,
        listing: Callable[..., Any],
        cache: AssumeCache[T],
        report: Callable[[Exception], object],
        stopping: threading.Event,
    ) -> None:
        super().__init__(daemon=True)
        self.listed = threading.Event()
        self._listing, self._cache = listing, cache
        self._report, self._stopping = report, stopping

    def run(self) -> None:
        """The thread."""
        while not self._stopping.is_set():
            try:
                self._follow(self._list())
            except (ApiException, HTTPError) as error:
                LOG.info("listing anew: %s", error)  # happens now and then
            except Exception as error:  # noqa: BLE001 - reported; nobody else would go on
                self._report(error)
            self._stopping.wait(PAUSE_SECONDS)

    def _list(self) -> str:
        """Show everything there is; its resourceVersion."""
        response = self._listing(_preload_content=False, _request_timeout=CONNECT_AND_READ_SECONDS)
        if response.status != 200:
            raise ApiException(status=response.status, reason=response.reason)
        found = json.loads(response.data)
        # The objects of a list do not say what they are.
        kind = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
        objects = [self._read(kind | item) for item in found["items"]]
        version: str = found["metadata"]["resourceVersion"]
        self._cache.observe_all([obj for obj in objects if obj is not None], version)
        self.listed.set()
        return version

    def _follow(self, version: str) -> None:
        """Show what changes after a version, until the watch has lost its place."""
        while not self._stopping.is_set():
            events = watch.Watch(return_type="object").stream(
                self._listing,
                resource_version=version,
                timeout_seconds=WATCH_SECONDS,
                _request_timeout=CONNECT_AND_READ_SECONDS,
            )
            for event in events:
                if self._stopping.is_set():
                    return
                self._show(event["type"], event["raw_object"])
                version = event["raw_object"]["metadata"]["resourceVersion"]

    def _show(self, what: str, item: Json) -> None:
        if what == "DELETED":
            known = self._known(item)  # so that what cannot be read can go, too
            if known is not None:
                self._cache.observe_delete(known)
        elif what in ("ADDED", "MODIFIED"):
            obj = self._read(item)
            if obj is not None:
                self._cache.observe(obj)

    def _read(self, item: Json) -> Any:
        """The object; if it cannot be read, what the cache has of it: its devices are in use."""
        try:
            return decode(item)
        except MalformedObjectError as error:
            self._report(error)
            return self._known(item)

    def _known(self, item: Json) -> T | None:
        """The cache's copy of the object, ``None`` if that is another object or none."""
        meta = item["metadata"]
        found = self._cache.find(ObjectKey(meta.get("namespace", ""), meta["name"]))
        return found if found is not None and metadata_of(found).uid == meta["uid"] else None
