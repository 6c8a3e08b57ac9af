"""Requests through a client of the ``kubernetes`` package (the official one).

What may live here: ``send``. Objects of the package are read by ``plain``.
"""

from typing import Any

from dra_core.adapters.answers import Answer, Lost, no_answer, read_answer
from dra_core.api.request import ApiRequest


def send(client: Any, request: ApiRequest, *, timeout: float, lost: Lost | None = None) -> Answer:
    """Send ``request`` once; every HTTP status comes back as an answer.

    ``client`` is a ``kubernetes.client.ApiClient`` (an API object has it as
    ``api_client``). Its connections, TLS, credentials and default headers are used, also
    the hook that renews credentials. ``timeout`` is how many seconds connecting may take,
    and each wait for more of the answer. ``lost`` is told why no answer came.

    Nothing is retried: whether the request may be repeated is the answer's meaning to
    tell. The pool below the client is used directly, because the client's own methods
    retry, change bodies and content types, and differ between versions of the package.
    """
    from urllib3.exceptions import HTTPError

    configuration = client.configuration
    try:
        response = client.rest_client.pool_manager.request(
            request.method,
            configuration.host.rstrip("/") + request.url,
            body=request.content,
            headers=_headers(client, request),
            timeout=timeout,
            retries=False,
            redirect=False,
        )
    except HTTPError as error:
        return no_answer(error, lost)
    return read_answer(response.status, response.data, lost)


def _headers(client: Any, request: ApiRequest) -> dict[str, str]:
    """By names in lower case, so that none comes twice; those of the request win."""
    headers: dict[str, str] = {name.lower(): text for name, text in client.default_headers.items()}
    if client.cookie:
        headers["cookie"] = client.cookie
    for setting in client.configuration.auth_settings().values():
        if setting["in"] == "header" and setting["value"]:
            headers[setting["key"].lower()] = setting["value"]
    return headers | {name.lower(): text for name, text in request.headers.items()}
