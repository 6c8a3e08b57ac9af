"""How the value libraries quote an offending text in a problem.

What may live here: that one function.
"""

from typing import Final

_MAX_SHOWN: Final = 100
"""Longer texts are cut: a problem is read by people and travels in conditions."""


def shown(text: str) -> str:
    """The text in quotes, cut after 100 characters."""
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…")
