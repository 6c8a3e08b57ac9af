"""What an expression may name: variables and functions, as data.

What may live here: the description of an environment. How a variable is read at run time
is its ``Access``; the compiler knows no variable by name.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from dra_core.cel import (
    library_core,
    library_kubernetes,
    library_lists,
    library_regex,
    library_text,
)
from dra_core.cel.library import Library
from dra_core.cel.sizes import Shape
from dra_core.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    FORMAT,
    INT,
    IP,
    LIST,
    MAP,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    URL,
    Type,
    optional_of,
)  # fmt: skip

ROWS: Final = (
    *library_core.ROWS,
    *library_text.ROWS,
    *library_regex.ROWS,
    *library_lists.ROWS,
    *library_kubernetes.ROWS,
)
"""Every function of the language."""

LANGUAGE: Final = Library(ROWS, library_core.SINGLETONS)
"""Everything that the API server enables for selectors, up to 1.37."""

TYPE_NAMES: Final[Mapping[str, Type]] = {
    t.name: t
    for t in (
        BOOL, BYTES, DOUBLE, DURATION, INT, LIST, MAP, NULL, STRING, TIMESTAMP, TYPE, UINT,
        QUANTITY, SEMVER, URL, IP, CIDR, FORMAT, optional_of(DYN),
    )
}  # fmt: skip
"""Names that denote types."""


@attrs.frozen(eq=False)
class Environment:
    """The variables, by name (which may have dots), their types, and the functions.

    ``fields`` gives the fields of object types by the type's name. ``parameters`` are the
    names of the arguments of a compiled expression; what reads a variable is given them.
    ``shapes`` gives the largest sizes of variables, for estimates of cost. A result whose
    type is not known before evaluation compiles only with ``dynamic_result``.
    """

    variables: Mapping[str, Type]
    fields: Mapping[str, Mapping[str, Type]] = attrs.field(factory=dict)
    library: Library = LANGUAGE
    shapes: Mapping[str, Shape] = attrs.field(factory=dict)
    dynamic_result: bool = True
