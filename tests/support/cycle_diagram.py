"""The diagram of a scheduling cycle, drawn from its state table.

    python tests/support/cycle_diagram.py docs/guides/cycle.svg

What may live here: the drawing. Each state is a box; below it, a line for each event and
the state that it leads to. A line ends, with a dot, at the rail of that state, which leads
into its box. What stays in the state has no rail, but a ↺.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from dra_core.scheduling.cycle_table import FINAL, CycleRow, CycleState, cycle_table

LINE, BOX, GAP = 18, 22, 12
LEFT, WIDTH, TEXT, RAILS, STEP = 16, 110, 34, 215, 22
COLORS = (
    "#1b6ca8", "#b5531c", "#2d7d46", "#8a3ffc", "#a8174e", "#0f7173", "#7a5c00", "#5b5b5b",
)  # fmt: skip


class Move(NamedTuple):
    """One line below a state: what happens, and where it leads."""

    label: str
    to: CycleState


def moves_of(state: CycleState, table: Sequence[CycleRow]) -> list[Move]:
    """The lines of a state, in the order of the table."""
    rows = [row for row in table if row.state is state]
    found = []
    for (event, following), same in groupby(rows, key=lambda row: (row.event, row.next)):
        results = " or ".join(row.result.value for row in same)
        found.append(Move(f"{event.value}: {results}", following))
    return found


def draw(table: Sequence[CycleRow]) -> str:
    """The diagram as SVG. The same table gives the same text."""
    states = list(CycleState)
    tops, height = {}, GAP
    for state in states:
        tops[state] = height
        height += BOX + LINE * len(moves_of(state, table)) + GAP
    targets = [s for s in states if any(r.next is s is not r.state for r in table)]
    rails = {state: RAILS + STEP * index for index, state in enumerate(targets)}
    width = RAILS + STEP * len(targets)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        "<title>The states of a scheduling cycle</title>",
        f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
    ]
    ends: dict[CycleState, list[int]] = {}
    for state in states:
        lines += _box(state, tops[state])
        for index, move in enumerate(moves_of(state, table)):
            y = tops[state] + BOX + LINE * index + LINE // 2 + 3
            label = f"{move.label} ↺" if move.to is state else move.label
            lines.append(f'<text x="{TEXT}" y="{y + 4}" fill="#333333">{label}</text>')
            if move.to is not state:
                ends.setdefault(move.to, []).append(y)
                lines += _way(TEXT + 12 + 6 * len(move.label), y, rails[move.to], _color(move.to))
    for state in targets:
        lines += _rail(rails[state], tops[state] + BOX // 2, ends[state], _color(state))
    return "\n".join([*lines, "</svg>", ""])


def _color(state: CycleState) -> str:
    return COLORS[list(CycleState).index(state) % len(COLORS)]


def _box(state: CycleState, top: int) -> Iterator[str]:
    fill = _color(state)
    edge = ' stroke="#000000" stroke-width="2"' if state in FINAL else ""
    yield f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{BOX}" rx="4" fill="{fill}"{edge}/>'
    x, y = LEFT + WIDTH // 2, top + BOX // 2 + 4
    yield (
        f'<text x="{x}" y="{y}" fill="#ffffff" font-weight="bold" text-anchor="middle">'
        f"{state.value}</text>"
    )


def _way(start: int, y: int, rail: int, color: str) -> Iterator[str]:
    """From the text of a line to the rail of the state that it leads to."""
    yield f'<path d="M{start} {y}H{rail}" stroke="{color}" stroke-dasharray="2 2" fill="none"/>'
    yield f'<circle cx="{rail}" cy="{y}" r="3" fill="{color}"/>'


def _rail(x: int, into: int, ends: Sequence[int], color: str) -> Iterator[str]:
    """The rail of a state, and its arrow into the box."""
    first, last = min(into, *ends), max(into, *ends)
    right = LEFT + WIDTH
    yield f'<path d="M{x} {first}V{last}" stroke="{color}" stroke-width="2" fill="none"/>'
    yield f'<path d="M{x} {into}H{right + 8}" stroke="{color}" stroke-width="2" fill="none"/>'
    yield f'<path d="M{right} {into}l9 -4v8z" fill="{color}"/>'


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(cycle_table()), encoding="utf-8")
