"""Real clients of the API server double: one way to open each, one to send a request."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from dra_core.adapters import kr8s_client, kubernetes_client, lightkube_client
from dra_core.adapters.answers import Answer, Lost
from dra_core.api.request import ApiRequest

TIMEOUT = 5.0


class Sender(Protocol):
    """Sends a request through a real client."""

    def __call__(
        self, request: ApiRequest, *, timeout: float = TIMEOUT, lost: Lost | None = None
    ) -> Answer:
        """The answer, for which it waits."""


def config(url: str, token: str = "secret") -> dict[str, Any]:
    """A kubeconfig for the server at ``url``."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "double", "cluster": {"server": url}}],
        "users": [{"name": "tester", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "double", "user": "tester"}}],
        "current-context": "test",
    }


@contextmanager
def kubernetes_api(url: str, token: str = "secret") -> Iterator[Any]:
    """A ``kubernetes.client.ApiClient``."""
    from kubernetes.client import ApiClient
    from kubernetes.config import new_client_from_config_dict

    client: ApiClient = new_client_from_config_dict(config(url, token))
    with client:
        yield client


@contextmanager
def lightkube_api(url: str, token: str = "secret") -> Iterator[Any]:
    """A ``lightkube.Client``."""
    from lightkube import Client, KubeConfig

    client = Client(KubeConfig.from_dict(config(url, token)), trust_env=False)
    try:
        yield client
    finally:
        client._client._client.close()  # older versions have no close()


@contextmanager
def kr8s_api(url: str, token: str = "secret") -> Iterator[Any]:
    """What ``kr8s.api()`` gives."""
    import kr8s
    from kr8s._async_utils import as_sync_func

    api = kr8s.api(kubeconfig=config(url, token))
    try:
        yield api
    finally:
        session = api._session
        if session is not None:
            as_sync_func(type(session).aclose)(session)


@contextmanager
def _kubernetes(url: str) -> Iterator[Sender]:
    with kubernetes_api(url) as client:
        yield _through(kubernetes_client.send, client)


@contextmanager
def _lightkube(url: str) -> Iterator[Sender]:
    with lightkube_api(url) as client:
        yield _through(lightkube_client.send, client)


@contextmanager
def _kr8s(url: str) -> Iterator[Sender]:
    with kr8s_api(url) as api:
        yield _through(kr8s_client.send, api)


@contextmanager
def _kr8s_async(url: str) -> Iterator[Sender]:
    import kr8s.asyncio

    async def opened() -> Any:
        return await kr8s.asyncio.api(kubeconfig=config(url))

    with asyncio.Runner() as runner:
        api = runner.run(opened())
        try:
            yield _waiting(runner, kr8s_client.send_async, api)
        finally:
            runner.run(api._session.aclose())


@contextmanager
def _lightkube_async(url: str) -> Iterator[Sender]:
    from lightkube import AsyncClient, KubeConfig

    async def opened() -> Any:
        return AsyncClient(KubeConfig.from_dict(config(url)), trust_env=False)

    with asyncio.Runner() as runner:
        client = runner.run(opened())
        try:
            yield _waiting(runner, lightkube_client.send_async, client)
        finally:
            runner.run(client._client._client.aclose())


def _through(send: Callable[..., Answer], client: Any) -> Sender:
    def sender(
        request: ApiRequest, *, timeout: float = TIMEOUT, lost: Lost | None = None
    ) -> Answer:
        return send(client, request, timeout=timeout, lost=lost)

    return sender


def _waiting(runner: asyncio.Runner, send: Callable[..., Any], client: Any) -> Sender:
    def sender(
        request: ApiRequest, *, timeout: float = TIMEOUT, lost: Lost | None = None
    ) -> Answer:
        answer: Answer = runner.run(send(client, request, timeout=timeout, lost=lost))
        return answer

    return sender


SENDERS: dict[str, Callable[[str], AbstractContextManager[Sender]]] = {
    "kubernetes": _kubernetes,
    "kr8s": _kr8s,
    "kr8s.asyncio": _kr8s_async,
    "lightkube": _lightkube,
    "lightkube.AsyncClient": _lightkube_async,
}
"""Every supported client, opened by the URL of a server."""
