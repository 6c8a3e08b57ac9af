"""The command ``lint``: objects against the rules of the API, selectors against devices.

What may live here: what is looked at and how findings are told. The rules are those of
``dra_core.api.validation``; selectors are the business of ``lint_selectors``.
"""

from collections.abc import Iterator, Sequence

import attrs

from dra_core.api.validation import Severity, validate
from dra_core.cli.lint_named import lint_named
from dra_core.cli.lint_selectors import Finding, lint_selectors
from dra_core.cli.load import counted, load
from dra_core.cli.progress import Progress
from dra_core.errors import MalformedObjectError
from dra_core.v1alpha2 import validation as v1alpha2
from dra_core.v1alpha2.objects import ResourceSlice as NamedSlice


@attrs.frozen
class LintResult:
    """What was found. ``malformed``: objects that could not be read at all."""

    objects: int
    malformed: tuple[MalformedObjectError, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def errors(self) -> int:
        """How many errors there are, malformed objects included."""
        return len(self.malformed) + sum(finding.error for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """2 for malformed objects, else 1 for errors, else 0."""
        return 2 if self.malformed else int(self.errors > 0)

    def lines(self) -> Iterator[str]:
        """The output: a summary, notes, a line per finding."""
        warnings = sum(not finding.error for finding in self.findings)
        found = f"{counted(self.errors, 'error')}, {counted(warnings, 'warning')}"
        yield f"{counted(self.objects, 'object')}: {found}."
        for note in self.notes:
            yield f"Note: {note}."
        for error in self.malformed:
            yield f"error: {error}"
        for finding in self.findings:
            yield str(finding)


def lint(sources: Sequence[str]) -> LintResult:
    """Check all objects of the files. Raises ``BadInputError`` for files that are unreadable."""
    malformed: list[MalformedObjectError] = []
    with Progress("reading") as progress:
        dump = load(sources, malformed.append, progress.advance)
    findings: list[Finding] = []
    with Progress("checking", len(dump.objects)) as progress:
        for item in dump.objects:
            findings += _violations(item.kind, str(item.value.metadata.key), item.value)
            progress.advance()
    with Progress("trying selectors") as progress:
        findings += lint_selectors(dump, progress.advance)
        findings += lint_named(dump, progress.advance)
    notes = list(dump.notes)
    if not dump.slices and not dump.of(NamedSlice):
        notes.append("no ResourceSlices in the input: selectors were not tried on devices")
    if dump.skipped:
        total = sum(number for _, number in dump.skipped)
        kinds = ", ".join(f"{name} ({number:,})" for name, number in dump.skipped)
        notes.append(f"{counted(total, 'object')} of other kinds not checked: {kinds}")
    total = len(dump.objects) + len(malformed)
    return LintResult(total, tuple(malformed), tuple(findings), tuple(notes))


def _violations(kind: str, name: str, value: object) -> list[Finding]:
    return [
        Finding(found.severity is Severity.ERROR, kind, name, found.path, found.problem)
        for found in (*validate(value), *v1alpha2.validate(value))
    ]
