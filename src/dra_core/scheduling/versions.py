"""resourceVersions as numbers of any length.

What may live here: reading and comparing them. Clients may compare the versions of two
objects of one resource: they are decimal numbers without a bound.
Source: KEP-5504, comparable resource version.
"""

from typing import NamedTuple


class ResourceVersion(NamedTuple):
    """A decimal number that compares by value; its text may have any length.

    Kept as digits without leading zeros: a longer one is larger, of two equally long
    ones the later in alphabetical order. Turning thousands of digits into an int would
    be quadratic, and Python refuses to do it.
    """

    length: int
    digits: str

    def __str__(self) -> str:
        return self.digits or "0"


def read_version(text: str) -> ResourceVersion | None:
    """The version that a text denotes, None if it is no decimal number. O(length)."""
    # isdigit alone accepts digits of every script.
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0")
    return ResourceVersion(len(digits), digits)
