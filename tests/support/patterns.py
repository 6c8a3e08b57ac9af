"""Regular expressions to test with: a strategy, and a slow matcher to compare with.

What may live here: the strategy for patterns that Python's ``re`` and RE2 read alike,
and the textbook simulation of a compiled program with a list of threads.
"""

from hypothesis import strategies as st

from dra_core.cel.regex_nfa import Op, Program
from dra_core.cel.regex_tree import Assertion

Fragment = tuple[str, bool]
"""A pattern and whether it can match the empty string."""

_ATOMS = ("a", "b", "c", "1", ".", "[ab]", "[^a]", "[a-c]", "[^ab1]", r"\d", r"\w", r"\W", r"\x61")
_ASSERTIONS = ("^", "$", r"\b", r"\A")
_REPEATS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{1,3}?", "{0}", "{2,}?")
_NULLABLE_REPEATS = ("*", "?", "*?", "??", "{0,2}", "{0}")
# The two engines agree on loops only if each round of the loop reads something.
_REPEATS_OF_NULLABLE = ("{2}", "{0}")


def _repeated(fragment: Fragment, repeat: str) -> Fragment:
    text, nullable = fragment
    return text + repeat, nullable or repeat in _NULLABLE_REPEATS


def _with_repeat(fragment: Fragment) -> st.SearchStrategy[Fragment]:
    repeats = _REPEATS_OF_NULLABLE if fragment[1] else _REPEATS
    return st.sampled_from(("", *repeats)).map(lambda repeat: _repeated(fragment, repeat))


def _joined(fragments: list[Fragment]) -> Fragment:
    return "".join(text for text, _ in fragments), all(nullable for _, nullable in fragments)


def _grouped(branches: list[Fragment]) -> Fragment:
    text = "|".join(text for text, _ in branches)
    return f"(?:{text})", any(nullable for _, nullable in branches)


def _composed(inner: st.SearchStrategy[Fragment]) -> st.SearchStrategy[Fragment]:
    joined = st.lists(inner, max_size=3).map(_joined)
    grouped = st.lists(joined, min_size=1, max_size=3).map(_grouped).flatmap(_with_repeat)
    return joined | grouped


def patterns() -> st.SearchStrategy[str]:
    """Patterns that ``re`` (with ASCII classes) and RE2 understand in the same way, for
    texts without line feeds."""
    atoms = st.sampled_from(_ATOMS).map(lambda text: (text, False)).flatmap(_with_repeat)
    assertions = st.sampled_from(_ASSERTIONS).map(lambda text: (text, True))
    return st.recursive(atoms | assertions, _composed, max_leaves=12).map(lambda pair: pair[0])


def wild_patterns() -> st.SearchStrategy[str]:
    """Patterns that may loop over the empty string or look at line ends and word bounds."""
    atoms = st.sampled_from((*_ATOMS, *_ASSERTIONS, r"\B", r"\z", "(?m:^)", "(?m:$)", "(?s:.)", ""))
    repeats = st.sampled_from(("", *_REPEATS))

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        joined = st.lists(inner, max_size=3).map("".join)
        branches = st.lists(joined, min_size=1, max_size=3).map("|".join)
        return st.builds("({}){}".format, branches, repeats)

    return st.recursive(atoms.map("(?:{})".format), grow, max_leaves=10)


def simulate(program: Program, text: str, start: int = 0) -> tuple[int, int] | None:
    """Where the preferred match from ``start`` on begins and ends.

    All threads go through the text together, in the order in which a backtracking search
    would try them; one that matches cuts off all after it. Slow and obvious.
    """
    threads: list[tuple[int, int]] = []
    found: tuple[int, int] | None = None
    for at in range(start, len(text) + 1):
        if found is None:
            threads.append((0, at))
        following: list[tuple[int, int]] = []
        visited: set[int] = set()
        for instruction, begin in threads:
            reading = _reached(program, instruction, text, at, visited)
            for reader in reading:
                if program.ops[reader] == Op.MATCH:
                    found = (begin, at)
                    break
                if at < len(text) and _reads(program, reader, text[at]):
                    following.append((reader + 1, begin))
            else:
                continue
            break
        threads = following
        if not threads and found is not None:
            break
    return found


def _reached(
    program: Program, instruction: int, text: str, at: int, visited: set[int]
) -> list[int]:
    stack, reading = [instruction], []
    while stack:
        here = stack.pop()
        if here in visited:
            continue
        visited.add(here)
        op, targets = program.ops[here], program.targets[here]
        if op in (Op.CHAR, Op.MATCH):
            reading.append(here)
        elif op == Op.ASSERT:
            if _holds(Assertion(targets[0]), text, at):
                stack.append(here + 1)
        else:
            stack += reversed(targets)
    return reading


def _reads(program: Program, instruction: int, char: str) -> bool:
    if program.literal_masks.get(char, 0) >> instruction & 1:
        return True
    return any(
        mask >> instruction & 1 and chars.contains(char) for chars, mask in program.set_masks
    )


def _holds(assertion: Assertion, text: str, at: int) -> bool:
    def word(char: str) -> bool:
        return char == "_" or (char.isascii() and char.isalnum())

    boundary = word(text[at - 1 : at] if at else "") != word(text[at : at + 1])
    return {
        Assertion.BEGIN_TEXT: at == 0,
        Assertion.END_TEXT: at == len(text),
        Assertion.BEGIN_LINE: at == 0 or text[at - 1] == "\n",
        Assertion.END_LINE: at == len(text) or text[at] == "\n",
        Assertion.WORD_BOUNDARY: boundary,
        Assertion.NO_WORD_BOUNDARY: not boundary,
    }[assertion]
