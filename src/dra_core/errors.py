"""Every exception of the library: one root, facts as fields, text made last.

What may live here: exception types only. An exception says what was wrong in
fields that a program can read; ``__str__`` puts the fact and the likely fix into
words, and its wording is no API. Exceptions are for bad input and bad use.
"Does not fit" and "gave up" are outcomes, see ``dra_core.allocator.results``.

Fields are positional, never keyword-only: such exceptions survive pickling, which
embedders with worker processes rely on.
"""

import attrs


class DraError(Exception):
    """Root of all exceptions that this library raises on purpose."""


@attrs.frozen
class QuantityError(DraError, ValueError):
    """A text is not a Kubernetes quantity.

    ``text`` is the offending input (cut to 100 characters), ``problem`` what is
    wrong with it.
    """

    text: str
    problem: str

    def __str__(self) -> str:
        return f"invalid quantity {self.text!r}: {self.problem}"


@attrs.frozen
class MalformedObjectError(DraError, ValueError):
    """Decoded JSON does not have the shape of the API object that it claims to be.

    ``kind`` and ``name`` identify the object ("namespace/name" where it has a
    namespace, "" where it has no name), ``path`` is the field
    (``spec.devices[3].capacity``, "" for the object itself), ``problem`` what is
    wrong with it.
    """

    kind: str
    name: str
    path: str
    problem: str

    def __str__(self) -> str:
        where = f"{self.kind} {self.name!r}" if self.name else f"{self.kind} without a name"
        return f"{where}: {self.path}: {self.problem}" if self.path else f"{where}: {self.problem}"
