"""The text output for the example dump, word for word.

The wording is no API, but it should change on purpose. After such a change, look at
what ``DRA_CORE_WRITE_GOLDEN=1 python -m pytest tests/cli/test_golden.py`` makes of the
files in ``golden/``.
"""

import os
from pathlib import Path

import pytest

from support.commands import EXAMPLE, OLDER_EXAMPLE, run

GOLDEN = Path(__file__).parent / "golden"

CASES = {
    "allocate.txt": (1, ("allocate", EXAMPLE)),
    "allocate-one-pod.txt": (0, ("allocate", EXAMPLE, "--pod", "ml/render-0")),
    "allocate-node.txt": (1, ("allocate", EXAMPLE, "--node", "mig-1")),
    "allocate-features-off.txt": (
        1,
        (
            "allocate", EXAMPLE, "--feature", "PartitionableDevices=off",
            "--feature", "DeviceBindingAndStatus=off", "--pod", "ml/render-0",
            "--pod", "ml/notebook-0",
        ),
    ),
    "lint.txt": (0, ("lint", EXAMPLE)),
    "allocate-v1alpha2.txt": (1, ("allocate", OLDER_EXAMPLE)),
    "lint-v1alpha2.txt": (0, ("lint", OLDER_EXAMPLE)),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_golden(name: str) -> None:
    """The whole output is as it was looked at last."""
    code, arguments = CASES[name]
    ran = run(*arguments)
    assert (ran.code, ran.err) == (code, "")
    path = GOLDEN / name
    if os.environ.get("DRA_CORE_WRITE_GOLDEN"):
        path.write_text(ran.out, encoding="utf-8")
    assert ran.out == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    """Every golden file belongs to a case."""
    assert sorted(path.name for path in GOLDEN.iterdir()) == sorted(CASES)
