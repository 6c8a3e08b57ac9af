"""Recorded answers: where they are, and what it means when they are not there.

``tests/conformance/NAME.jsonl.gz`` holds one JSON object a line. The two table
suites (``table``, ``table-cel``) are not part of the project: they are looked for
in the directory that ``DRA_CORE_TABLES`` names, and tests that need them are
skipped, in words, when it is unset. Every other suite must be there.
"""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

SUITES = ("allocation", "corrected", "cel", "real-cel", "quantity", "claims")
"""The suites that are part of the project."""

TABLES = ("table", "table-cel")
"""The suites that stay outside of it."""

DIRECTORY = Path(__file__).resolve().parent.parent / "conformance"

NOT_RUN = "table suites not run (set DRA_CORE_TABLES to a directory that has them)"

Case = dict[str, Any]


def conformance_path(name: str) -> Path | None:
    """Where the suite is; ``None`` for a table suite when no place for them is named.

    Raises ``FileNotFoundError`` for a suite that has to be there and is not, and
    ``ValueError`` for a name that is none.
    """
    if name in TABLES:
        tables = os.environ.get("DRA_CORE_TABLES", "")
        if not tables:
            return None
        directory = Path(tables)
    elif name in SUITES:
        directory = DIRECTORY
    else:
        raise ValueError(f"no suite is called {name!r}; known: {', '.join(SUITES + TABLES)}")
    path = directory / f"{name}.jsonl.gz"
    if not path.is_file():
        raise FileNotFoundError(f"conformance suite {name!r} is missing: {path}")
    return path


def read_cases(path: Path) -> list[Case]:
    """The cases of one gzipped file. Raises ``ValueError`` if it has none."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        cases: list[Case] = [json.loads(line) for line in lines if line.strip()]
    if not cases:
        raise ValueError(f"{path} has no cases")
    return cases


def load_conformance(name: str) -> list[Case]:
    """All cases of a suite, in order, for use inside a test or at the top of a module.

    Skips the test (or the module) when ``name`` is a table suite and none are at hand.
    """
    path = conformance_path(name)
    if path is None:
        pytest.skip(NOT_RUN, allow_module_level=True)
    return read_cases(path)


def conformance_params(name: str) -> list[Any]:
    """The same as arguments for ``pytest.mark.parametrize``, one test per case.

    The ids are the cases' own (``id``), else their number. A table suite that is not
    at hand becomes one skipped test, so that the report says so.
    """
    path = conformance_path(name)
    if path is None:
        return [pytest.param(None, id=name, marks=pytest.mark.skip(reason=NOT_RUN))]
    cases = read_cases(path)
    return [pytest.param(case, id=str(case.get("id", n))) for n, case in enumerate(cases)]
