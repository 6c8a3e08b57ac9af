"""Requests through a client of the ``kr8s`` package, blocking or not.

What may live here: ``send`` and ``send_async``. Objects of the package are read by ``plain``.

One private name of the package is used: ``kr8s._async_utils.as_sync_func``, with which
``kr8s.Api`` makes its own methods blocking. Its connections live in the event loop behind
that function, and no public method sends an arbitrary request there.
"""

from typing import Any

from dra_core.adapters.answers import Answer, Lost, no_answer, read_answer
from dra_core.api.request import ApiRequest


def send(api: Any, request: ApiRequest, *, timeout: float, lost: Lost | None = None) -> Answer:
    """Send ``request`` and wait; every HTTP status comes back as an answer.

    ``api`` is what ``kr8s.api()`` gives. Otherwise like ``send_async``. Raises
    ``TypeError`` for an API object of ``kr8s.asyncio``.
    """
    import kr8s
    from kr8s._async_utils import as_sync_func

    if not isinstance(api, kr8s.Api):
        raise TypeError(f"send needs what kr8s.api() gives, not {type(api).__name__}")
    answer: Answer = as_sync_func(_send)(api, request, timeout, lost)
    return answer


async def send_async(
    api: Any, request: ApiRequest, *, timeout: float, lost: Lost | None = None
) -> Answer:
    """Send ``request``; every HTTP status comes back as an answer.

    ``api`` is what ``await kr8s.asyncio.api()`` gives. ``timeout`` is how many seconds
    connecting may take, and each wait for more of the answer. ``lost`` is told why no
    answer came.

    Sent once, but after a 401 once more: ``kr8s`` then reads its credentials anew. Nothing
    was carried out before. When cancelled, nobody knows whether the request was carried
    out, as after no answer. Raises ``TypeError`` for an API object of blocking ``kr8s``.
    """
    import kr8s

    if isinstance(api, kr8s.Api):
        raise TypeError("send_async needs what kr8s.asyncio.api() gives, not that of kr8s.api()")
    return await _send(api, request, timeout, lost)


async def _send(api: Any, request: ApiRequest, timeout: float, lost: Lost | None) -> Answer:
    from httpx import RequestError
    from kr8s import APITimeoutError

    try:
        answer = await _call(api, request, timeout, lost, renew=False)
        if answer.status == 401:
            answer = await _call(api, request, timeout, lost, renew=True)
    except (RequestError, APITimeoutError) as error:
        return no_answer(error, lost)
    return answer


async def _call(
    api: Any, request: ApiRequest, timeout: float, lost: Lost | None, *, renew: bool
) -> Answer:
    """One call. The client renews its credentials only where refusals are exceptions."""
    from kr8s import ServerError

    # The client joins base and url by "/".
    base, _, url = request.path.rpartition("/")
    try:
        async with api.call_api(
            request.method,
            version="",
            base=base,
            url=url,
            raise_for_status=renew,
            params=list(request.query),
            headers=request.headers,
            content=request.content,
            timeout=timeout,
        ) as response:
            return read_answer(response.status_code, response.content, lost)
    except ServerError as error:
        if error.response is None:
            raise
        return read_answer(error.response.status_code, error.response.content, lost)
