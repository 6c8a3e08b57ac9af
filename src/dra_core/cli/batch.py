"""Questions as JSON lines, one answer each.

What may live here: reading and answering a stream of lines. What a line of each kind
asks, and its answer, is in ``batch_kinds``. A line never ends the stream: whatever is
wrong with it is its answer.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, TextIO

from dra_core.cli.batch_kinds import Json, allocation, cel, claims, quantity
from dra_core.cli.documents import refuse_constant
from dra_core.errors import DraError

Answerer = Callable[[Json], Json]

KINDS: Final = ("allocation", "cel", "quantity", "claims")


def answerer(kind: str, repeat: int) -> Answerer:
    """The function that answers lines of a kind. ``repeat``: warm calls to measure."""
    if kind == "allocation":
        return allocation(repeat)
    if kind == "cel":
        return cel()
    return {"quantity": quantity, "claims": claims}[kind]


def run(
    answer: Answerer,
    lines: Iterable[bytes],
    out: TextIO,
    on_line: Callable[[], None] = lambda: None,
) -> None:
    """Answer every line that is not blank, in order, each as soon as it is there."""
    for line in lines:
        if line.strip():
            out.write(json.dumps(answer_line(answer, line)) + "\n")
            out.flush()
            on_line()


def _is_json(value: Any) -> bool:
    """Whether what was read can be written: no number beyond floats, not nested too deep."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True


def answer_line(answer: Answerer, line: bytes) -> Json:
    """The answer to one line: ``{"id", "error"}`` for one that cannot be answered."""
    asked: Any = None
    try:
        asked = json.loads(line, parse_constant=refuse_constant)
        if not isinstance(asked, dict):
            return {"id": None, "error": "a line is a JSON object"}
        if not _is_json(asked.get("id")):
            return {"id": None, "error": "id: cannot be repeated as JSON"}
        return {"id": asked.get("id"), **answer(asked)}
    except DraError as error:
        problem = str(error)
    except RecursionError:
        problem = "nested too deeply"
    except ValueError as error:  # no JSON, no UTF-8, or a number beyond what Python converts
        problem = f"not JSON: {error}" if asked is None else str(error)
    except Exception as error:  # noqa: BLE001  # a fault of ours must not end the stream
        problem = f"internal error: {type(error).__name__}: {error}"
    return {"id": asked.get("id") if isinstance(asked, dict) else None, "error": problem}
