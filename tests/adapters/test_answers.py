"""Answers read from bytes."""

import pickle

import pytest

from dra_core.adapters.answers import NO_ANSWER, Answer, UnreadableAnswerError, read_answer


@pytest.mark.parametrize(
    ("status", "content", "answer"),
    [
        (200, b'{"a": null}', Answer(200, {"a": None})),
        (201, '{"a": "ü"}'.encode(), Answer(201, {"a": "ü"})),
        (404, b"{}", Answer(404, {})),
        (404, b"404 page not found", Answer(404, None)),
        (500, b"", Answer(500, None)),
        (500, b"null", Answer(500, None)),
        (302, b"", Answer(302, None)),
        (409, b"\xff\xfe\xff", Answer(409, None)),
        (200, b"", NO_ANSWER),
        (200, b'{"a": ', NO_ANSWER),
        (200, b"[1]", NO_ANSWER),
        (200, b"[" * 200_000, NO_ANSWER),
        (503, b'{"a":' * 200_000, Answer(503, None)),
    ],
)
def test_reading(status: int, content: bytes, answer: Answer) -> None:
    """A refusal stays one whatever its body; a success without an object is no answer."""
    assert read_answer(status, content) == answer


def test_the_reason_is_told() -> None:
    """Why there is no answer is told to those who ask, as an error with facts."""
    reasons: list[Exception] = []
    assert read_answer(200, b"<html>", reasons.append) == NO_ANSWER
    assert read_answer(404, b"<html>", reasons.append) == Answer(404, None)
    (reason,) = reasons
    for error in (reason, pickle.loads(pickle.dumps(reason))):
        assert isinstance(error, UnreadableAnswerError)
        assert error.status == 200
        assert "200" in str(error)
