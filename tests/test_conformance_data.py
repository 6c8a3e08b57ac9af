"""The recorded answers are there, and a missing suite is noticed."""

import gzip
from pathlib import Path

import pytest

from support import conformance


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("allocation", 1388),
        ("corrected", 231),
        ("cel", 1179),
        ("real-cel", 537),
        ("quantity", 1029),
        ("claims", 1500),
    ],
)
def test_suite_is_complete(name: str, lines: int) -> None:
    """Every suite that is part of the project is there, with all its cases."""
    cases = conformance.load_conformance(name)
    assert len(cases) == lines


def test_missing_suite_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite that is part of the project and missing is a failure, not a skip."""
    monkeypatch.setattr(conformance, "DIRECTORY", tmp_path)
    with pytest.raises(FileNotFoundError, match="allocation"):
        conformance.load_conformance("allocation")
    with pytest.raises(FileNotFoundError, match="allocation"):
        conformance.conformance_params("allocation")


def test_empty_suite_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite without cases would pass whatever the code does."""
    monkeypatch.setattr(conformance, "DIRECTORY", tmp_path)
    (tmp_path / "cel.jsonl.gz").write_bytes(gzip.compress(b"\n"))
    with pytest.raises(ValueError, match="no cases"):
        conformance.load_conformance("cel")


def test_unknown_suite_is_an_error() -> None:
    """A misspelt name does not quietly run nothing."""
    with pytest.raises(ValueError, match="no suite"):
        conformance.load_conformance("alocation")


def test_table_suites_are_skipped_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a place to look for them, tests on tables are skipped and say so."""
    monkeypatch.delenv("DRA_CORE_TABLES", raising=False)
    with pytest.raises(pytest.skip.Exception, match="table suites not run"):
        conformance.load_conformance("table")
    (param,) = conformance.conformance_params("table-cel")
    assert param.marks[0].name == "skip"


def test_table_suites_named_but_missing_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of tables that lacks one is a mistake, not a reason to skip."""
    monkeypatch.setenv("DRA_CORE_TABLES", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="table"):
        conformance.load_conformance("table")
