"""What validation finds, and what the checks write it into.

What may live here: ``Violation``, and checks that know no type of the API: limits,
uniqueness, one of several.
"""

from collections.abc import Callable, Iterable, Mapping, Sized
from enum import Enum
from typing import Any

import attrs

from dra_core.api.wire_read import bracket


class Severity(Enum):
    """How bad it is."""

    ERROR = "error"
    """The API server would refuse the object."""
    WARNING = "warning"
    """Legal now or once, and probably not what was meant."""


@attrs.frozen
class Violation:
    """One rule that an object breaks: the field's path, and what is wrong with it."""

    path: str
    problem: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


Format = Callable[[str], str | None]
SelectorCheck = Callable[[str], str | None]
"""From a CEL expression to what is wrong with it, ``None`` for nothing."""


@attrs.define
class Report:
    """Collects violations, in the order in which they are found."""

    check_selector: SelectorCheck | None = None
    violations: list[Violation] = attrs.field(factory=list)

    def error(self, path: str, problem: str | None) -> None:
        """``problem`` at ``path``, if there is one."""
        if problem is not None:
            self.violations.append(Violation(path, problem))

    def warning(self, path: str, problem: str) -> None:
        """Something that is legal, now or once."""
        self.violations.append(Violation(path, problem, Severity.WARNING))

    def required(self, path: str, value: str) -> None:
        """A text that must not be empty."""
        if not value:
            self.error(path, "is required")

    def at_most(self, path: str, items: Sized, limit: int) -> None:
        """No more than ``limit`` entries."""
        if len(items) > limit:
            self.error(path, f"must not have more than {limit} entries, has {len(items):,}")

    def unique(self, path: str, keys: Iterable[object], what: str = "is a duplicate") -> None:
        """No key twice; the later one is at fault."""
        seen: set[object] = set()
        for index, key in enumerate(keys):
            if key in seen:
                self.error(f"{path}[{index}]", what)
            seen.add(key)

    def keys(self, path: str, entries: Mapping[str, Any], check: Format) -> None:
        """Every key of a map has the format."""
        for key in entries:
            if (problem := check(key)) is not None:
                self.error(f"{path}{bracket(key)}", problem)

    def one_of(self, path: str, choices: Mapping[str, bool]) -> None:
        """Exactly one of the choices is set."""
        chosen = [name for name, is_set in choices.items() if is_set]
        if len(chosen) != 1:
            found = f"has {' and '.join(chosen)}" if chosen else "has none"
            self.error(path, f"must have exactly one of {', '.join(choices)}; {found}")

    def known(self, path: str, value: str, known: Iterable[str]) -> None:
        """The value is one of those that the API knows; empty is the caller's affair."""
        if value and value not in known:
            self.error(path, f"must be one of {', '.join(known)}")
