"""YAML to the values that JSON has.

What may live here: building values from the events of PyYAML's parser, which is the
only part of PyYAML that is used. No tag makes an object, nothing recurses, and what
aliases repeat is counted, so that no input can run code, exhaust the stack or grow
without bound.

Plain scalars mean what they mean in JSON, and nothing else: ``null`` (also ``~``),
``true``, ``false``, integers and decimal numbers. Everything else is a string: ``on``,
``yes``, ``2024-01-01``, ``0x10``, ``010``, ``1_000``, ``12:30``. Where a number is
meant the decoder then says so, instead of reading another one.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from dra_core.errors import DraError

MAX_DEPTH: Final = 200
"""Nested maps and lists; API objects have some twenty."""

MAX_REPEATED: Final = 100_000
"""Values that the aliases of one document may repeat. ``kubectl`` writes no aliases."""

_TAG: Final = "tag:yaml.org,2002:"
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_NUMBER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_WORDS: Final = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@attrs.frozen
class YamlMissingError(DraError):
    """PyYAML is not installed."""

    def __str__(self) -> str:
        return "YAML needs PyYAML (pip install 'dra-core[cli]'); JSON is read and written without"


@attrs.frozen
class YamlValueError(DraError, ValueError):
    """A text is no YAML, or not YAML that JSON could express. ``line`` counts from 1."""

    line: int
    problem: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.problem}" if self.line else self.problem


def yaml_documents(text: str) -> Iterator[Any]:
    """The documents of a YAML stream, one after the other; an empty one is ``None``.

    Raises ``YamlMissingError`` and, when the place is reached, ``YamlValueError``.
    """
    try:
        import yaml
    except ImportError:
        raise YamlMissingError from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        builder = _Builder()
        for event in yaml.parse(text, Loader=loader):
            handler = getattr(builder, type(event).__name__, None)
            if handler is not None:
                handler(event)
            if builder.complete:
                yield builder.documents.pop()
    except yaml.MarkedYAMLError as error:
        raise _syntax(error) from None
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise YamlValueError(0, str(error).partition("\n")[0]) from None


def _syntax(error: Any) -> YamlValueError:
    mark = error.problem_mark or error.context_mark
    pieces = [piece for piece in (error.context, error.problem) if piece]
    return YamlValueError(mark.line + 1 if mark else 0, ": ".join(pieces) or "is no YAML")


@attrs.define
class _Open:
    """A map or list that is being built. ``key`` waits for its value in a map."""

    value: Any
    anchor: str | None
    size: int = 1
    key: str | None = None


class _Builder:
    """Puts values together from events; the methods are named after the events."""

    def __init__(self) -> None:
        self.documents: list[Any] = []
        self._reset()

    def _reset(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._repeated = 0

    @property
    def complete(self) -> bool:
        return bool(self.documents)

    def DocumentStartEvent(self, event: Any) -> None:  # noqa: N802
        self._reset()

    def MappingStartEvent(self, event: Any) -> None:  # noqa: N802
        self._start(event, {}, "map")

    def SequenceStartEvent(self, event: Any) -> None:  # noqa: N802
        self._start(event, [], "seq")

    def MappingEndEvent(self, event: Any) -> None:  # noqa: N802
        self._end(event)

    def SequenceEndEvent(self, event: Any) -> None:  # noqa: N802
        self._end(event)

    def ScalarEvent(self, event: Any) -> None:  # noqa: N802
        if event.tag not in (None, "!", f"{_TAG}str"):
            raise _refused(event, f"the tag {event.tag} is not supported")
        plain = event.implicit[0] and event.tag is None
        if self._waits_for_key():
            if plain and event.value == "<<":
                raise _refused(event, "merge keys (<<) are not supported")
            self._take_key(event, event.value)
            return
        value = _scalar(event) if plain else event.value
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._add(value, 1)

    def AliasEvent(self, event: Any) -> None:  # noqa: N802
        found = self._anchors.get(event.anchor)
        if found is None:
            known = event.anchor in self._anchors
            problem = "contains itself" if known else "is not defined before"
            raise _refused(event, f"the alias *{event.anchor} {problem}")
        value, size = found
        if self._waits_for_key():
            self._take_key(event, value)
            return
        self._repeated += size
        if self._repeated > MAX_REPEATED:
            raise _refused(event, f"aliases repeat more than {MAX_REPEATED:,} values")
        self._add(value, size)

    def _start(self, event: Any, value: Any, tag: str) -> None:
        if event.tag not in (None, "!", f"{_TAG}{tag}"):
            raise _refused(event, f"the tag {event.tag} is not supported")
        if self._waits_for_key():
            raise _refused(event, "a key is a map or a list")
        if len(self._open) >= MAX_DEPTH:
            raise _refused(event, f"nested more than {MAX_DEPTH} levels deep")
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append(_Open(value, event.anchor))

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)
        self._add(done.value, done.size)

    def _add(self, value: Any, size: int) -> None:
        if not self._open:
            self.documents.append(value)
            return
        parent = self._open[-1]
        parent.size += size
        if parent.key is None:
            parent.value.append(value)
        else:
            parent.value[parent.key] = value
            parent.key = None

    def _waits_for_key(self) -> bool:
        if not self._open:
            return False
        parent = self._open[-1]
        return parent.key is None and isinstance(parent.value, dict)

    def _take_key(self, event: Any, key: Any) -> None:
        """Keys are strings as written; kubectl turns ``1:`` into ``"1":`` too."""
        if not isinstance(key, str):
            raise _refused(event, "a key is not a string")
        parent = self._open[-1]
        if key in parent.value:
            raise _refused(event, f"the key {key!r} appears twice")
        parent.key = key


def _refused(event: Any, problem: str) -> YamlValueError:
    return YamlValueError(event.start_mark.line + 1, problem)


def _scalar(event: Any) -> Any:
    """The meaning of a plain scalar."""
    text = event.value
    if text in _WORDS:
        return _WORDS[text]
    try:
        if _INTEGER.match(text):
            return int(text)
        if _NUMBER.match(text):
            return float(text)
    except ValueError as error:  # more digits than Python converts
        raise _refused(event, str(error)) from None
    return text
