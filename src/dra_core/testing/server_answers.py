"""What the in-memory API server answers.

What may live here: the form of answers, and the refusal as an exception.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import attrs

from dra_core.errors import DraError

_REASONS: Mapping[int, str] = {
    400: "BadRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}


class Answer(NamedTuple):
    """An HTTP status, and a body that is the caller's to change."""

    status: int
    body: Any


@attrs.frozen
class RefusedError(DraError):
    """The server refuses a request: HTTP status ``code``, and why.

    ``reason`` is the word for programs in the answer; "" is the usual one of the code.
    """

    code: int
    problem: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.code} {self.reason or _REASONS[self.code]}: {self.problem}"

    def answer(self) -> Answer:
        """The refusal as the server sends it."""
        return Answer(self.code, failure(self.code, self.problem, self.reason))


def failure(code: int, message: str, reason: str = "") -> dict[str, Any]:
    """A ``Status`` object, the body of every refusal."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason or _REASONS[code],
        "code": code,
    }
