"""Code blocks of Markdown pages: found, and run in order, one namespace a page.

Blocks fenced with ``python`` are run; any other fence is not. As a script
(``python examples.py README.md …``) it needs nothing but the package, which shows
that the examples do without the extras.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)``` *$", re.M | re.S
)


class Block(NamedTuple):
    """One fenced block; ``line`` is that of its first line of code in the page."""

    line: int
    code: str


def python_blocks(text: str) -> Iterator[Block]:
    """The blocks of a page that are to be run, indentation of the fence removed."""
    for match in _FENCE.finditer(text):
        if match["info"].split()[:1] != ["python"]:
            continue
        indent = len(match["indent"])
        lines = [line[indent:] for line in match["body"].splitlines()]
        yield Block(text.count("\n", 0, match.start()) + 2, "\n".join(lines) + "\n")


def run_page(path: Path) -> int:
    """Run a page's blocks; how many there were. Whatever one raises is passed on.

    Later blocks see the names of earlier ones. Line numbers in tracebacks are the
    page's.
    """
    namespace: dict[str, Any] = {"__name__": "__example__"}
    blocks = list(python_blocks(path.read_text(encoding="utf-8")))
    for block in blocks:
        source = "\n" * (block.line - 1) + block.code
        exec(compile(source, str(path), "exec"), namespace)
    return len(blocks)


def main(pages: list[str]) -> int:
    """Run the pages; 1 when there was nothing to run."""
    total = 0
    for page in pages:
        count = run_page(Path(page))
        print(f"{page}: {count} examples ran")
        total += count
    return int(total == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
