"""The API server double as a frozen value: (server, request) → (server afterwards, answer).

What may live here: ``Server``, a thin shell around ``dra_core.testing.api_server``. Being
a function from state to state, it can be asked about every interleaving of several
clients; a server that was asked is still there, as it was.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from dra_core.api.request import ApiRequest
from dra_core.testing.api_server import ApiServer

Json = dict[str, Any]
Key = tuple[str, str, str]


def _empty(limit: int) -> ApiServer:
    return ApiServer(max_consumers=limit)


@attrs.frozen
class Server:
    """All objects by (resource, namespace, name). ``limit`` of entries in ``reservedFor``."""

    limit: int = 256
    double: ApiServer = attrs.field(
        default=attrs.Factory(lambda self: _empty(self.limit), takes_self=True), repr=False
    )

    @property
    def objects(self) -> Mapping[Key, Json]:
        """Everything that is stored, without ``managedFields``: they are the server's own."""
        resources = {kind.kind: kind.resource for kind in self.double.kinds}
        found: dict[Key, Json] = {}
        for obj in map(without_owners, self.double.objects()):
            meta = obj["metadata"]
            found[(resources[obj["kind"]], meta.get("namespace", ""), meta["name"])] = obj
        return found

    def get(self, name: str, namespace: str = "team-a", resource: str = "resourceclaims") -> Json:
        """A stored object."""
        return self.objects[(resource, namespace, name)]

    def with_object(self, obj: Json) -> "Server":
        """The server with ``obj`` stored as it is, whatever was there."""
        double = self.double.fork()
        double.seed(obj)
        return attrs.evolve(self, double=double)

    def without(self, key: Key) -> "Server":
        """The server without an object."""
        double = self.double.fork()
        double.unseed(*key)
        return attrs.evolve(self, double=double)

    def send(self, request: ApiRequest) -> tuple["Server", int, Any]:
        """The answer to a request: the server afterwards, HTTP status, body of a success.

        Without ``managedFields``, which nobody sends back.
        """
        double = self.double.fork()
        status, body = double.send(request)
        if status >= 300:
            return attrs.evolve(self, double=double), status, None
        return attrs.evolve(self, double=double), status, without_owners(body)


def without_owners(obj: Json) -> Json:
    """An object without its managed fields."""
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": meta}
