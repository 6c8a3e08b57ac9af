"""Requests through a client of the ``lightkube`` package, blocking or not.

What may live here: ``send`` and ``send_async``. Objects of the package are read by ``plain``.

The HTTP client inside the package's client is private; nothing public sends an arbitrary
request (a delete with preconditions, a binding).
"""

from typing import Any

from dra_core.adapters.answers import Answer, Lost, no_answer, read_answer
from dra_core.api.request import ApiRequest


def send(client: Any, request: ApiRequest, *, timeout: float, lost: Lost | None = None) -> Answer:
    """Send ``request`` once and wait; every HTTP status comes back as an answer.

    ``client`` is a ``lightkube.Client``. Its connections, TLS and credentials are used; after
    a 401 it may read credentials anew and send once more. Its default field manager and
    dry run are not used: the request says it all. ``timeout`` is how many seconds connecting
    may take, and each wait for more of the answer. ``lost`` is told why no answer came.
    """
    try:
        response = _http(client).request(**_call(request, timeout))
    except _failures() as error:
        return no_answer(error, lost)
    return read_answer(response.status_code, response.content, lost)


async def send_async(
    client: Any, request: ApiRequest, *, timeout: float, lost: Lost | None = None
) -> Answer:
    """Like ``send``, with a ``lightkube.AsyncClient``.

    When cancelled, nobody knows whether the request was carried out, as after no answer.
    """
    try:
        response = await _http(client).request(**_call(request, timeout))
    except _failures() as error:
        return no_answer(error, lost)
    return read_answer(response.status_code, response.content, lost)


def _http(client: Any) -> Any:
    """The ``httpx`` client: ``Client`` has a generic client, which has it."""
    return client._client._client


def _call(request: ApiRequest, timeout: float) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": request.url,
        "headers": request.headers,
        "content": request.content,
        "timeout": timeout,
    }


def _failures() -> tuple[type[Exception], ...]:
    """What is raised without an answer: lightkube is built on httpx2, older versions on httpx.

    Both may be installed, so both are listed.
    """
    found: list[type[Exception]] = []
    try:
        import httpx2

        found.append(httpx2.RequestError)
    except ImportError:
        pass  # an older lightkube
    try:
        import httpx

        found.append(httpx.RequestError)
    except ImportError:
        pass  # a newer lightkube, and nothing else that needs it
    return tuple(found)
