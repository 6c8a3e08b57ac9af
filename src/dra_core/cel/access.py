"""How variables are read: places, which are known when compiling.

What may live here: the protocol between the compiler and an environment's variables, and
the plain variable that any environment can have.

A place is something that an expression names with constants only, ``device.attributes``
or ``device.attributes["d"].model``. It becomes a value only where one is needed.
"""

from typing import ClassVar, NamedTuple

import attrs

from dra_core.cel.emitter import Module
from dra_core.cel.types import Type


class Entry(NamedTuple):
    """Part of a place that may be absent: conditions and values as Python expressions."""

    present: str
    value: str


class Place:
    """Something nameable; this one has no parts that are known when compiling.

    ``type`` is what its value has for certain, ``dyn`` if that is not known. ``parted``
    places are there for their parts: bound to a variable, they stay places.
    """

    type: Type
    parted: ClassVar[bool] = False

    def child(self, name: str) -> "Place | None":
        """The part ``name`` as a place, ``None`` if only the value can tell."""
        return None

    def entry(self, module: Module, offset: int, name: str) -> Entry | None:
        """Look up the part ``name``, ``None`` if only the value can tell."""
        return None

    def contains(self, module: Module, offset: int, name: str) -> str | None:
        """The condition ``name in place``, ``None`` if only the value can tell."""
        return None

    def read(self, module: Module, offset: int) -> str:
        """Write what it takes to get the value; returns its expression."""
        raise NotImplementedError


@attrs.frozen(eq=False)
class VariablePlace(Place):
    """A variable that a function of the compiled expression's arguments gives.

    It may raise EvalProblem; its values are not trusted to have the declared type.
    """

    type: Type
    reader: object

    def read(self, module: Module, offset: int) -> str:
        call = f"{module.constant(self.reader)}({', '.join(module.parameters)})"
        return module.assign(call, offset, fallible=True)
