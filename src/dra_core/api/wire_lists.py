"""What is in a document: single objects, lists, lists of lists, streams of documents.

What may live here: unfolding decoded documents into objects, before anything is known
about them but apiVersion and kind.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from dra_core.api.wire_read import (
    Fault,
    check_object,
    get_list,
    get_text,
    identify,
    printable,
)
from dra_core.api.wire_versions import is_known
from dra_core.errors import MalformedObjectError

MAX_LIST_DEPTH = 10
"""Lists inside lists that are followed; nobody prints more than one in another."""


@attrs.frozen
class WireObject:
    """One object of a document, not decoded yet.

    ``known`` says whether ``Decoder.decode`` reads this kind in this version; a dump of a
    cluster has many that it does not. ``data`` has apiVersion and kind, also where the
    document left them to the list.
    """

    api_version: str
    kind: str
    known: bool
    data: Mapping[str, Any] = attrs.field(repr=False)

    @property
    def name(self) -> str:
        """``namespace/name``, ``name``, or ``""``."""
        return identify(self.data)


def iter_objects(document: Any) -> Iterator[WireObject]:
    """The objects of a decoded document, in order, lists unfolded.

    ``document`` is an object, a ``List`` or ``ResourceSliceList`` (any kind that ends in
    "List" and has ``items``), or a sequence of these (the documents of a YAML stream;
    empty ones are skipped). Items without apiVersion or kind take them from their list, as in
    answers of the API server. Unknown kinds come with ``known`` false.

    Raises ``MalformedObjectError`` for what is no object, has no kind, or is a list
    inside more than ten others.
    """
    if isinstance(document, list | tuple):
        for index, entry in enumerate(document):
            if entry is not None:
                yield from _objects(entry, f"[{index}]")
    else:
        yield from _objects(document, "")


def _objects(document: Any, where: str) -> Iterator[WireObject]:
    """Depth first without recursion: a stack of (value, path, apiVersion, kind, depth)."""
    stack: list[tuple[Any, str, str, str, int]] = [(document, where, "", "", 0)]
    while stack:
        value, path, list_version, list_kind, depth = stack.pop()
        try:
            obj = check_object(value)
            kind = get_text(obj, "kind") or list_kind
            api_version = get_text(obj, "apiVersion") or list_version
            if not kind:
                raise Fault("is missing", "kind")
            if not (kind.endswith("List") and obj.get("items") is not None):
                yield _wire_object(obj, api_version, kind)
                continue
            if depth >= MAX_LIST_DEPTH:
                raise Fault(f"is a list inside {MAX_LIST_DEPTH} others", "items")
            items = get_list(obj, "items")
        except Fault as fault:
            raise _malformed(value, path, fault) from None
        item_kind = kind.removesuffix("List")
        item_version = api_version if item_kind else ""
        stack.extend(
            (item, f"{path}.items[{index}]".lstrip("."), item_version, item_kind, depth + 1)
            for index, item in reversed(list(enumerate(items)))
        )


def _wire_object(obj: Mapping[str, Any], api_version: str, kind: str) -> WireObject:
    if obj.get("kind") is None or obj.get("apiVersion") is None:
        obj = {**obj, "apiVersion": api_version, "kind": kind}
    return WireObject(api_version, kind, is_known(api_version, kind), obj)


def _malformed(value: Any, path: str, fault: Fault) -> MalformedObjectError:
    """The error for an entry of the document; ``path`` is its place in there."""
    kind, name = "document", ""
    if isinstance(value, Mapping):
        name = identify(value)
        if isinstance(value.get("kind"), str) and value["kind"]:
            kind = printable(value["kind"])
    where = ".".join(piece for piece in (path, fault.path()) if piece)
    return MalformedObjectError(kind, name, where, fault.problem)
