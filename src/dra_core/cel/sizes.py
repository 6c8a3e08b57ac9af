"""Sizes and costs as ranges that never overflow.

What may live here: the arithmetic of estimates, which saturates at 2^64−1 like the
reference's.
"""

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1
"""What an estimate that knows nothing says."""


class _Range(NamedTuple):
    min: int
    max: int


class Size(_Range):
    """How many elements there are: between ``min`` and ``max``; one argument is both."""

    __slots__ = ()

    def __new__(cls, low: int, high: int | None = None) -> "Size":
        return super().__new__(cls, low, low if high is None else high)

    def plus(self, other: "Size") -> "Size":
        """Both together."""
        return Size(min(self.min + other.min, MOST), min(self.max + other.max, MOST))

    def times(self, other: "Size") -> "Size":
        """One for each of the other."""
        return Size(min(self.min * other.min, MOST), min(self.max * other.max, MOST))

    def union(self, other: "Size") -> "Size":
        """One or the other."""
        return Size(min(self.min, other.min), max(self.max, other.max))


UNKNOWN: Final = Size(0, MOST)
ONE_ELEMENT: Final = Size(1)


def scaled(size: int, factor: float) -> int:
    """``size`` times ``factor``, rounded up, in floating point like the reference."""
    product = math.ceil(float(size) * factor) if size else 0
    return min(product, MOST)


class Shape(NamedTuple):
    """What is known of the sizes of a variable: its own, of its keys, values and fields.

    ``open`` shapes have any field, of the size of their values.
    """

    size: int
    key: "Shape | None" = None
    value: "Shape | None" = None
    fields: Mapping[str, "Shape"] = {}
    open: bool = False

    def part(self, name: str) -> "Shape | None":
        """The shape one step down a path of field names, ``@keys``, ``@values``, ``@items``."""
        if name == "@keys":
            return self.key
        if name in ("@values", "@items"):
            return self.value
        return self.fields.get(name, self.value if self.open else None)
