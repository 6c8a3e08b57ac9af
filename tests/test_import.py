"""What importing the package costs: none of the extras is pulled in."""

import json
import subprocess
import sys
from pathlib import Path

EXTRAS = frozenset({"yaml", "rich", "hypothesis", "jsonpatch", "kubernetes", "kr8s", "lightkube"})

HEAVY = frozenset({"asyncio", "socket", "ssl", "subprocess", "multiprocessing", "unittest"})
"""Of the standard library: slow to import, and of no use to a library without I/O."""


def modules_after(statement: str) -> set[str]:
    """Top-level modules that a new interpreter holds after a statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True
    )
    names: list[str] = json.loads(done.stdout)
    return {name.partition(".")[0] for name in names}


def test_import_needs_no_extra() -> None:
    """``import dra_core`` loads neither the extras nor anything heavy."""
    before = modules_after("pass")
    loaded = modules_after("import dra_core") - before
    assert "dra_core" in loaded
    assert loaded & (EXTRAS | HEAVY) == set()


def test_the_check_sees_what_is_loaded() -> None:
    """The check would notice an extra."""
    assert "yaml" in modules_after("import yaml")


def test_scripts_of_the_tests_find_the_standard_library() -> None:
    """Run as a script, a module of ``support`` has its neighbours before the library's."""
    support = Path(__file__).resolve().parent / "support"
    names = {path.stem for path in support.glob("*.py")}
    assert "import_time" in names
    assert names & sys.stdlib_module_names == set()
