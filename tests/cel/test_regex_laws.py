"""Regular expressions against two other engines, and the work they take."""

import re
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dra_core.cel import regex, regex_nfa
from dra_core.cel.regex import Regex, compile_regex
from dra_core.cel.regex_nfa import compile_program
from dra_core.cel.regex_parser import parse_regex
from support.patterns import patterns, simulate, wild_patterns

texts = st.text(alphabet="abc1 -", max_size=12)
wild_texts = st.text(alphabet="ab1_ \né", max_size=12)


def all_matches(pattern: "re.Pattern[str]", text: str) -> list[str]:
    """What Go's FindAllString returns, by repeated search."""
    found = []
    position, last_end = 0, -1
    while position <= len(text) and (match := pattern.search(text, position)):
        if match.start() != match.end() or match.start() != last_end:
            found.append(match.group())
        position = match.end() + (match.end() == position)
        last_end = match.end()
    return found


@given(patterns(), texts)
def test_agrees_with_re(pattern: str, text: str) -> None:
    """On the common part of the two syntaxes the same matches are found as by ``re``."""
    # In RE2 $ means the end of the text, not also before a last line feed.
    other = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    ours = compile_regex(pattern)
    match = other.search(text)
    assert ours.find(text) == (match.group() if match else None)
    assert ours.search(text) == (match is not None)
    assert ours.find_all(text) == all_matches(other, text)


@given(wild_patterns(), wild_texts)
@example("((?:a)*|(?:b))*", "aabb")
@example("(|(?:a))*(?:b)", "aab")
@example("((?:|a))+", "aa")
def test_agrees_with_thread_simulation(pattern: str, text: str) -> None:
    """The preferred match is the one that the textbook simulation finds, empty loops too."""
    program = compile_program(parse_regex(pattern))
    expected = simulate(program, text)
    ours = compile_regex(pattern)
    assert ours.find(text) == (None if expected is None else text[slice(*expected)])
    assert ours.search(text) == (expected is not None)


@given(wild_patterns(), wild_texts)
def test_search_find_and_find_all_agree(pattern: str, text: str) -> None:
    """There is a match if one is found, and it is the first of all."""
    ours = compile_regex(pattern)
    found = ours.find_all(text)
    assert ours.search(text) == bool(found)
    assert ours.find(text) == (found[0] if found else None)
    assert all(piece in text for piece in found)


@given(wild_patterns(), wild_texts, st.integers(-2, 5))
def test_limit_cuts_the_list(pattern: str, text: str, limit: int) -> None:
    """A limit that is not negative keeps the first matches; a negative one keeps all."""
    ours = compile_regex(pattern)
    everything = ours.find_all(text)
    assert ours.find_all(text, limit) == (everything if limit < 0 else everything[:limit])


@given(wild_patterns(), st.lists(wild_texts, max_size=4))
def test_remembered_work_changes_nothing(pattern: str, samples: list[str]) -> None:
    """An expression that has matched other texts gives the answers of a new one."""
    used = compile_regex(pattern)
    for text in samples:
        assert used.find_all(text) == compile_regex(pattern).find_all(text)


HOSTILE = [
    r"^(a+)+$",
    r"(a|a)*b",
    r"(a|aa)+$",
    r"(x+x+)+y",
    r"(.*)*c",
    r"a.*b|a",
    r".*b|a",
    r"(?:a?){30}a{30}!",
    r"([ab]*a[ab]{100}){1}",
    r"(a?){1000}b",
    r"\b(?:a|b)*\b!",
    r"(?m)^(a*)*$",
    r"([a-z]{0,30}-){30}q",
]


@pytest.mark.parametrize("pattern", HOSTILE)
@pytest.mark.parametrize("length", [100, 1_000])
def test_reads_every_character_twice_at_most(pattern: str, length: int) -> None:
    """All matches are found by reading the text once backward and once forward."""
    text = ("ab" * length)[:length] + "!"
    expression = compile_regex(pattern)
    _, steps = expression.find_all_counted(text)
    assert steps <= 2 * len(text)
    # What is worked out beyond look-ups is at most one transition a character.
    assert expression._automaton.computed <= len(text)


@given(wild_patterns(), wild_texts, st.integers(1, 5))
def test_blocks_change_nothing(pattern: str, text: str, block: int) -> None:
    """Looking at a long text block by block finds the same, reading it three times at most."""
    expected = compile_regex(pattern).find_all(text)
    with mock.patch.object(regex, "_BLOCK", block):
        found, steps = compile_regex(pattern).find_all_counted(text)
    assert found == expected
    assert steps <= 3 * len(text)


def test_states_of_a_long_text_are_not_kept() -> None:
    """While matches are looked for, only the states of a block are held, and some more."""
    text = "ab" * 20_000
    states = regex._States(compile_regex("[ab]*c?$")._automaton, text)
    for index in range(len(text) + 1):
        states.at(index)
        assert len(states._block) <= regex._BLOCK + 1
    assert len(states._ends) == len(text) // regex._BLOCK + 2


def test_repeated_matching_works_nothing_out() -> None:
    """A text like one seen before costs look-ups only."""
    expression = compile_regex(r"^[a-z]+-[0-9]+$")
    text = "gpu-0123456789" * 20
    expression.search(text)
    worked_out = expression._automaton.computed
    for _ in range(3):
        expression.search(text)
        expression.find_all(text)
    assert expression._automaton.computed == worked_out


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered is forgotten at a bound, and the answers stay the same."""
    monkeypatch.setattr(regex_nfa, "MAX_REMEMBERED", 50)
    # From the end of the text any "a" may be the one; only its beginning tells.
    expression = compile_regex(r"^[ab]{7}a[ab]*$")
    samples = [
        f"{number:014b}".replace("0", "a").replace("1", "b") for number in range(0, 16_384, 40)
    ]
    for text in samples:
        assert expression.search(text) == (text[7] == "a")
        assert remembered(expression) <= 50
    assert expression._automaton.computed > 50


def remembered(expression: Regex) -> int:
    states = expression._automaton._states.values()
    return sum(len(state.before) + len(state.first) for state in states)
