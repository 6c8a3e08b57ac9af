"""What goes wrong inside the compiler and inside a running selector.

What may live here: the internal exceptions, which know a place in the text as an
offset, and the turning of offsets into lines and columns. ``dra_core.cel.selector``
turns them into the public errors of ``dra_core.errors``.
"""

from typing import Final

from dra_core.errors import DraError


class CompileProblem(Exception):
    """The text is no valid selector: ``problem`` at ``offset`` (code points from 0)."""

    def __init__(self, offset: int, problem: str) -> None:
        super().__init__(offset, problem)
        self.offset = offset
        self.problem = problem


class EvalProblem(Exception):
    """Evaluation failed in a way that ``&&``, ``||`` and macros may absorb.

    ``hint`` is advice, "" without any. ``offset`` is known where it cannot be told from
    the line of generated code that raised it.
    """

    def __init__(self, problem: str, hint: str = "", offset: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.offset = offset


class BudgetExceeded(Exception):
    """A limit on time or memory was hit; nothing absorbs that."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


FAULTS: Final = (EvalProblem, DraError)
"""What an evaluation may fail with and an operator may absorb."""


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The line (from 1) and the column (from 1, in code points) of an offset."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
