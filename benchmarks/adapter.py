"""From a recorded problem to calls of the library: the only module here that knows both.

``load`` decodes a problem and builds what a scheduler keeps between pods. ``solve`` is
one warm call.
"""

from typing import Any

import attrs

from benchmarks.problems import Problem


@attrs.frozen
class Answer:
    """What a call said: the outcome in the words of ``reference.json``, and its steps."""

    outcome: str
    steps: int


@attrs.frozen
class Loaded:
    """A problem, decoded and indexed."""

    state: Any
    node: Any


def load(problem: Problem) -> Loaded:
    """Decode a problem and index its inventory; no node is looked at yet."""
    raise NotImplementedError("the allocator is not there yet")


def node_called(loaded: Loaded, name: str) -> Any:
    """A node of that name, with the label that real nodes have."""
    raise NotImplementedError("the allocator is not there yet")


def solve(loaded: Loaded, node: Any = None) -> Answer:
    """Allocate the problem's claims on its node, or on another one, from scratch."""
    raise NotImplementedError("the allocator is not there yet")
