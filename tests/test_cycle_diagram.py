"""The diagram of the cycle in the guide is the one that the state table gives."""

from pathlib import Path
from xml.etree import ElementTree

from dra_core.scheduling.cycle_table import CycleRow, CycleState, cycle_table
from support.cycle_diagram import draw, moves_of

GUIDES = Path(__file__).resolve().parent.parent / "docs" / "guides"


def test_the_diagram_is_up_to_date() -> None:
    """Else: python tests/support/cycle_diagram.py docs/guides/cycle.svg"""
    assert (GUIDES / "cycle.svg").read_text(encoding="utf-8") == draw(cycle_table())


def test_the_guide_shows_it() -> None:
    """The page has the diagram in it."""
    assert "](cycle.svg)" in (GUIDES / "cycle.md").read_text(encoding="utf-8")


def test_every_move_is_drawn() -> None:
    """Each row of the table is in one line of its state; each state has a box."""
    table = cycle_table()
    drawn = draw(table)
    texts = [element.text for element in ElementTree.fromstring(drawn).iter() if element.text]
    assert set(CycleState) <= {text for text in texts if text in set(CycleState)}
    for state in CycleState:
        mine = [row for row in table if row.state is state]
        lines = moves_of(state, table)
        assert sum(line.label.count(" or ") + 1 for line in lines) == len(mine)
    stays = sum(text.endswith("↺") for text in texts)
    moves = sum(len(moves_of(state, table)) for state in CycleState)
    assert drawn.count("<circle") + stays == moves


def test_a_changed_table_is_another_diagram() -> None:
    """Not a picture that is always the same."""
    table = cycle_table()
    first: CycleRow = table[0]
    assert draw([first._replace(next=CycleState.OVER), *table[1:]]) != draw(table)
