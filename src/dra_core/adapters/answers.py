"""The answer to a request, from whichever client it came.

What may live here: the form of answers, and reading them from bytes.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import attrs

from dra_core.errors import DraError


class Answer(NamedTuple):
    """What came back, in the form that every ``answered(status, body)`` takes.

    ``status`` is the HTTP status, also of a refusal; ``None`` means that no answer came,
    and nobody knows whether the request was carried out. ``body`` is the caller's to
    change; ``None`` where there was none, or where a refusal came without a JSON object.
    """

    status: int | None
    body: dict[str, Any] | None


NO_ANSWER = Answer(None, None)

Lost = Callable[[Exception], object]
"""Told why there is no answer; what it returns is ignored."""


@attrs.frozen
class UnreadableAnswerError(DraError, ValueError):
    """An answer with the HTTP status ``status``, a success, has no JSON object as body."""

    status: int

    def __str__(self) -> str:
        return f"HTTP {self.status} without a JSON object: not from an API server, or cut off"


def read_answer(status: int, content: bytes, lost: Lost | None = None) -> Answer:
    """An answer from its HTTP status and body.

    A success without a JSON object did not come from an API server, or not whole: it is no
    answer. A refusal stays one, whatever its body: proxies refuse in HTML.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):  # no JSON, or nested deeper than anything of Kubernetes
        body = None
    if isinstance(body, dict):
        return Answer(status, body)
    if 200 <= status < 300:
        return no_answer(UnreadableAnswerError(status), lost)
    return Answer(status, None)


def no_answer(error: Exception, lost: Lost | None) -> Answer:
    """``NO_ANSWER``, after ``lost`` was told why."""
    if lost is not None:
        lost(error)
    return NO_ANSWER
