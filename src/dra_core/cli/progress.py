"""A progress bar for whoever waits at a terminal.

What may live here: showing how far a long command is. It goes to standard error, only
if that is a terminal, rich is installed and the work takes longer than a second.
"""

import sys
import time
from types import TracebackType
from typing import Any, Final

PATIENCE: Final = 1.0
"""Seconds before anything is shown."""


class Progress:
    """Counts steps of ``what``; ``total`` None while nobody knows how many there will be.

    ``shown`` False never shows it.
    """

    def __init__(self, what: str, total: int | None = None, shown: bool = True) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._bar: Any = None
        self._task: Any = None
        self._start = time.monotonic()
        self._waiting = shown and sys.stderr.isatty()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self) -> None:
        """One step more is done. Cost: a clock reading, while it is not shown yet."""
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)
        elif self._waiting and time.monotonic() - self._start > PATIENCE:
            self._waiting = False
            self._show()

    def _show(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar
        except ImportError:
            return  # an extra; without it there is nothing to see, and nothing missing
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._what, total=self._total, completed=self._done)
        self._bar.start()
