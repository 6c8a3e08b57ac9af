"""From a file's bytes to decoded documents.

What may live here: reading files and standard input, telling JSON from YAML, and the
error for input that is neither. What the documents mean is ``load``'s business.
"""

import codecs
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import attrs

from dra_core.cli.yaml_values import YamlMissingError, YamlValueError, yaml_documents
from dra_core.errors import DraError

STDIN: Final = "-"

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""``kubectl … > dump.json`` in PowerShell writes UTF-16."""

_JSON_BLANKS: Final = " \t\r\n"


@attrs.frozen
class BadInputError(DraError, ValueError):
    """A file cannot be used. ``source`` is its name, "-" for standard input."""

    source: str
    problem: str

    def __str__(self) -> str:
        source = "standard input" if self.source == STDIN else self.source
        return f"{source}: {self.problem}"


def read_documents(source: str) -> list[Any]:
    """All documents of a file, or of standard input for "-".

    JSON may be one document or several after one another; YAML may have several too.
    Empty documents are left out. Raises ``BadInputError``.
    """
    try:
        data = sys.stdin.buffer.read() if source == STDIN else Path(source).read_bytes()
    except (OSError, ValueError) as error:
        raise BadInputError(source, getattr(error, "strerror", None) or str(error)) from None
    documents = [document for document in parse(source, data) if document is not None]
    if not documents:
        raise BadInputError(source, "is empty")
    return documents


def parse(source: str, data: bytes) -> Iterator[Any]:
    """The documents in ``data``; ``source`` names it and tells YAML by its extension."""
    text = _text(source, data)
    suffix = Path(source).suffix.lower()
    looks_like_json = text.lstrip(_JSON_BLANKS)[:1] in ("{", "[")
    if suffix in (".json", ".jsonl") or (looks_like_json and suffix not in (".yaml", ".yml")):
        return iter(_json_documents(source, text))
    if looks_like_json:  # JSON is YAML, but its own parser is many times as fast
        try:
            return iter(_json_documents(source, text))
        except BadInputError:
            pass  # not JSON; the YAML parser gives the verdict
    return _yaml_documents(source, text)


def _text(source: str, data: bytes) -> str:
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadInputError(source, f"is not {encoding} text (byte {error.start})") from None


def _json_documents(source: str, text: str) -> list[Any]:
    documents = []
    position = 0
    try:
        while (position := _skip_blanks(text, position)) < len(text):
            document, position = _JSON.raw_decode(text, position)
            documents.append(document)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        end = "; the text ends there" if error.pos >= len(text.rstrip()) else ""
        raise BadInputError(source, f"is not JSON: {error.msg} ({place}{end})") from None
    except RecursionError:
        raise BadInputError(source, "is nested too deeply") from None
    except ValueError as error:  # NaN, or more digits than Python converts
        raise BadInputError(source, f"is not JSON: {error}") from None
    return documents


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in _JSON_BLANKS:
        position += 1
    return position


def refuse_constant(name: str) -> NoReturn:
    """For ``parse_constant``: JSON has no NaN and no infinities."""
    raise ValueError(f"{name} is not a JSON value")


_JSON: Final = json.JSONDecoder(parse_constant=refuse_constant)


def _yaml_documents(source: str, text: str) -> Iterator[Any]:
    try:
        yield from yaml_documents(text)
    except (YamlMissingError, YamlValueError) as error:
        raise BadInputError(source, str(error)) from None
