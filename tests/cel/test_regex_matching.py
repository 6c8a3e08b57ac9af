"""What regular expressions find: characters, anchors, alternatives, repetition, case."""

import copy
import pickle
import threading

import pytest

from dra_core.cel.regex import compile_regex
from dra_core.cel.regex_classes import fold_alike, fold_key


def matched_by(pattern: str, chars: str) -> str:
    """Those of the characters that the pattern matches as a whole text."""
    expression = compile_regex(f"^(?:{pattern})$")
    return "".join(char for char in chars if expression.search(char))


# --- whole expressions ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "abc", ""),
        ("b.", "abc", "bc"),
        ("z", "abc", None),
        ("^b", "abc", None),
        ("c$", "abc", "c"),
        ("^$", "", ""),
        ("a.b", "a\nb", None),
        ("(?s)a.b", "a\nb", "a\nb"),
        ("^b", "a\nb", None),
        ("(?m)^b", "a\nb", "b"),
        ("(?m)a$", "a\nb", "a"),
        ("a$", "a\n", None),
        (r"a\z", "a\n", None),
        (r"(?m)\Ab", "a\nb", None),
        (r"(?m)a\z", "a\nb", None),
        (r"\bfoo\b", "a foo b", "foo"),
        (r"\bfoo\b", "afoo b", None),
        (r"\Boo\B", "foob", "oo"),
        (r"\b", "é", None),
        (r"\B", "", ""),
        ("ab|a", "ab", "ab"),
        ("a|ab", "ab", "a"),
        ("(a|ab)(c|bcd)", "abcd", "abcd"),
        ("a*?", "aaa", ""),
        ("a+?", "aaa", "a"),
        ("a??b", "ab", "ab"),
        ("a{2}", "aaa", "aa"),
        ("a{2,}", "aaaa", "aaaa"),
        ("a{1,2}", "aaaa", "aa"),
        ("a{1,2}?", "aaaa", "a"),
        ("(?:ab){0}c", "abc", "c"),
        ("a{0,2}b", "aaab", "aab"),
        ("x*", "aaa", ""),
        ("[0-9]+", "v12.3", "12"),
        ("a{,2}", "xa{,2}", "a{,2}"),
        (r"\Qa.b\E", "aXb a.b", "a.b"),
        (r"\x61\x{62}\143\n", "abc\n", "abc\n"),
        (r"\0", "a\0", "\0"),
        (r"\08", "\x008", "\x008"),
        (r"\123", "S", "S"),
        (r"\1234", "S4", "S4"),
        ("[^a]", "a\n", "\n"),
        ("é+", "xéé", "éé"),
        (".", "\U0001f600", "\U0001f600"),
        ("(|a)*", "aa", ""),
        ("(|a)+", "aa", ""),
        ("(a|)*", "aa", "aa"),
        ("(?:|a)+b", "aab", "aab"),
        ("(a*)*", "aab", "aa"),
        ("(a*)+$", "aab", ""),
        ("(a?b??)*", "ab", "a"),
    ],
)
def test_find(pattern: str, text: str, expected: str | None) -> None:
    """The leftmost match is found, of several there the first alternative that works."""
    expression = compile_regex(pattern)
    assert expression.find(text) == expected
    assert expression.search(text) == (expected is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("[0-9]", "a1b2", ["1", "2"]),
        ("[0-9]*", "123 abc 456", ["123", "", "", "", "", "456"]),
        ("a*", "baaau", ["", "aaa", ""]),
        ("xyz", "123", []),
        ("", "ab", ["", "", ""]),
        ("a|", "ba", ["", "a"]),
        ("^a", "aaa", ["a"]),
        ("a$", "aaa", ["a"]),
        (r"\b", "ab cd", ["", "", "", ""]),
        (r"\ba", "aa", ["a"]),
        ("a?", "aXa", ["a", "a"]),
        (".*b|a", "aaa", ["a", "a", "a"]),
        ("(?:)", "", [""]),
        ("a", "", []),
    ],
)
def test_find_all(pattern: str, text: str, expected: list[str]) -> None:
    """Matches do not overlap; an empty one right after another match does not count."""
    assert compile_regex(pattern).find_all(text) == expected


@pytest.mark.parametrize(("limit", "count"), [(-1, 3), (-5, 3), (0, 0), (1, 1), (3, 3), (9, 3)])
def test_find_all_limit(limit: int, count: int) -> None:
    """A limit that is not negative bounds the number of matches."""
    assert compile_regex("a").find_all("aaa", limit) == ["a"] * count


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^NVIDIA-A[0-9]+.*$", "NVIDIA-A100-80GB", True),
        ("^NVIDIA-A[0-9]+.*$", "l4", False),
        ("a100", "NVIDIA-A100-80GB", False),
        ("(?i)a100", "NVIDIA-A100-80GB", True),
        ("L|l4", "NVIDIA-A100-80GB", False),
        ("L|l4", "l4", True),
        ("^a.c$", "abc", True),
        ("a.b", "a\nb", False),
        (r"^\w$", "é", False),
        (r"^\pL\d$", "x1", True),
        ("(?P<n>a)b", "ab", True),
        ("[^a]?sym", "sym", True),
        ("gpu.example.com", "gpu.example.com", True),
        ("^.*a100.*$", "nvidia-a100-80gb", True),
        ("^.*h300.*$", "nvidia-a100-80gb", False),
    ],
)
def test_patterns_of_selectors(pattern: str, text: str, expected: bool) -> None:
    """Patterns of recorded and published selectors give the reference's answers."""
    assert compile_regex(pattern).search(text) is expected


def test_nested_repetition_ends_at_once() -> None:
    """A pattern that makes a backtracking matcher hang is answered after one look at the text."""
    expression = compile_regex("(a+)+$")
    text = "a" * 40 + "!"
    assert not expression.search(text)
    assert expression.find_all_counted(text) == ([], len(text))


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("abc", "xabcx", "ab"),
        ("^abc", "abcx", "xabc"),
        ("abc$", "xabc", "abcx"),
        ("^abc$", "abc", "abcx"),
        ("^", "", None),
        ("$", "x", None),
        ("^$", "", "x"),
        (r"^\Qa.c\E$", "a.c", "abc"),
        ("(?i)^abc$", "aBc", "ab"),
        ("\ufffd", "\ufffd", "x"),
    ],
)
def test_plain_text_patterns(pattern: str, matching: str, other: str | None) -> None:
    """A text with or without anchors, which is looked for without the automaton."""
    expression = compile_regex(pattern)
    found = expression.find(matching)
    assert expression.search(matching)
    assert [found] == expression.find_all(matching, 1)
    if other is not None:
        assert not expression.search(other)
        assert expression.find(other) is None


# --- classes ---------------------------------------------------------------------------

ASCII = "".join(map(chr, range(128)))
DIGITS = "0123456789"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LOWER = UPPER.lower()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\d", DIGITS),
        (r"\s", "\t\n\f\r "),
        (r"\w", DIGITS + UPPER + "_" + LOWER),
        ("[[:alnum:]]", DIGITS + UPPER + LOWER),
        ("[[:alpha:]]", UPPER + LOWER),
        ("[[:ascii:]]", ASCII),
        ("[[:blank:]]", "\t "),
        ("[[:cntrl:]]", ASCII[:32] + "\x7f"),
        ("[[:digit:]]", DIGITS),
        ("[[:graph:]]", ASCII[33:127]),
        ("[[:lower:]]", LOWER),
        ("[[:print:]]", ASCII[32:127]),
        ("[[:punct:]]", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        ("[[:space:]]", "\t\n\v\f\r "),
        ("[[:upper:]]", UPPER),
        ("[[:word:]]", DIGITS + UPPER + "_" + LOWER),
        ("[[:xdigit:]]", DIGITS + "ABCDEFabcdef"),
        ("[a-cx]", "abcx"),
        ("[]-]", "-]"),
        (r"[\d\-]", "-" + DIGITS),
        ("[+--]", "+,-"),
        (r"[^\W\d_]", UPPER + LOWER),
        ("[[:^alpha:][:alpha:]]", ASCII),
        (r"[^\s\S]", ""),
        (r"[^\x00-\x{10FFFF}]", ""),
    ],
)
def test_ascii_classes(pattern: str, expected: str) -> None:
    """Perl and POSIX classes contain ASCII characters only, and can be combined."""
    assert matched_by(pattern, ASCII) == expected


@pytest.mark.parametrize("positive", [r"\d", r"\s", r"\w"])
def test_complements(positive: str) -> None:
    """An upper case class, or a caret, takes all other characters."""
    chars = ASCII + "éñ€\U0001f600"
    others = "".join(char for char in chars if char not in matched_by(positive, chars))
    assert matched_by(positive.upper(), chars) == others
    assert matched_by(f"[^{positive}]", chars) == others


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        (r"\pL", "aZéßλ漢", "1 _€"),
        (r"\PL", "1 _€", "aZéßλ漢"),
        (r"\p{Lu}", "AÉΛ", "aéλ1"),
        (r"\p{^Lu}", "aéλ1", "AÉΛ"),
        (r"\P{^Lu}", "AÉΛ", "aéλ1"),
        (r"\pN", "1²Ⅷ", "aé"),
        (r"\p{Nd}", "1٣", "²Ⅷ"),
        (r"\p{Letter}", "aλ", "1"),
        (r"\p{upper case-let ter}", "AΛ", "aλ"),
        (r"\p{__decimal_NUMBER}", "1", "a"),
        (r"\p{LC}", "aAǅ", "漢1"),
        (r"\p{Any}", "a\n\U0010ffff", ""),
        (r"\p{ASCII}", "a\x7f", "é"),
        (r"\p{Assigned}", "aé", "\u0378"),
        (r"\p{Cn}", "\u0378", "a"),
        (r"\p{C}", "\x00\u0378", "a"),
        (r"\p{Greek}", "αΩ", "aя"),
        (r"\P{Greek}", "aя", "αΩ"),
        (r"\p{greek}", "αΩ", "a"),
        (r"\p{Han}", "漢", "aα"),
        (r"\p{Braille}", "⠀⣿", "a"),
        (r"\p{Canadian_Aboriginal}", "ᐁ", "a"),
        (r"[\p{Greek}\d]", "α7", "a"),
        (r"[^\p{Greek}\d]", "a", "α7"),
    ],
)
def test_unicode_classes(pattern: str, inside: str, outside: str) -> None:
    """Categories and scripts, short or long names in any spelling."""
    assert matched_by(pattern, inside) == inside
    assert matched_by(pattern, outside) == ""


# --- case ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("k", "Kk\u212a"),
        ("S", "Ss\u017f"),
        ("\u212a", "Kk\u212a"),
        ("[j-l]", "JKLjkl\u212a"),
        ("[[:lower:]]", UPPER + LOWER + "\u017f\u212a"),
        (r"\w", DIGITS + UPPER + "_" + LOWER + "\u017f\u212a"),
        ("ß", "ß\u1e9e"),
        ("\u1e9e", "ß\u1e9e"),
        ("σ", "Σςσ"),
        ("[α-ω]", "Σςσ\u00b5μ"),
        (r"\p{Lu}", UPPER + LOWER + "ß\u017f\u00b5\u0130Σςσμ\u1e9e\u212a"),
        ("1", "1"),
        ("i", "Ii"),
    ],
)
def test_case_folding(pattern: str, expected: str) -> None:
    """Case is ignored by simple folding: one character stands for one character."""
    chars = DIGITS + UPPER + LOWER + "_ß\u017f\u00b5\u0130\u0131Σςσμ\u1e9e\u212a"
    assert sorted(matched_by(f"(?i){pattern}", chars)) == sorted(expected)


def test_folded_class_is_negated_after_folding() -> None:
    """[^k] without case excludes all that folds like k; so does \\W for what \\w gains."""
    chars = "kK\u212axS\u017f-"
    assert matched_by("(?i)[^k]", chars) == "xS\u017f-"
    assert matched_by(r"(?i)\W", chars) == "-"
    assert matched_by("(?i)[^[:upper:]]", chars) == "-"


def test_fold_groups_are_complete() -> None:
    """For every character, those that fold alike are exactly its group."""
    groups: dict[str, list[str]] = {}
    # Beyond the second plane of Unicode nothing has case.
    for code in range(0x20000):
        groups.setdefault(fold_key(chr(code)), []).append(chr(code))
    for group in groups.values():
        for char in group:
            assert fold_alike(char) == tuple(group)
        if len(group) > 1:
            # What the parser asks before it makes a literal ignore case.
            assert all(char.lower() != char or char.upper() != char for char in group)


def test_lone_surrogate_reads_as_replacement_character() -> None:
    """A text that is no Unicode reads as Go reads bytes that are no UTF-8."""
    assert compile_regex("^.$").search("\udcff")
    assert compile_regex("^\ufffd$").search("\udcff")
    assert compile_regex(r"^\x{FFFD}$").search("\udcff")
    assert not compile_regex(r"^\x{DCFF}$").search("\udcff")
    assert compile_regex(".").find_all("a\udcff") == ["a", "\udcff"]


# --- sharing ---------------------------------------------------------------------------


def test_threads_share_an_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that use one expression, also while it forgets, all get right answers."""
    monkeypatch.setattr("dra_core.cel.regex_nfa.MAX_REMEMBERED", 20)
    expression = compile_regex(r"^[ab]{5}a[ab]*$")
    texts = [f"{number:010b}".replace("0", "a").replace("1", "b") for number in range(0, 1024, 7)]
    wrong: list[str] = []

    def match_all() -> None:
        wrong.extend(text for text in texts if expression.search(text) != (text[5] == "a"))

    threads = [threading.Thread(target=match_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_expression_can_be_copied() -> None:
    """An expression that has matched can be pickled and copied: its pattern is compiled anew."""
    expression = compile_regex("(a+)+$")
    expression.search("aaa")
    for other in (pickle.loads(pickle.dumps(expression)), copy.deepcopy(expression)):
        assert other.pattern == expression.pattern
        assert other.find("baa") == "aa"


def test_expression_shows_its_pattern() -> None:
    """An expression knows its pattern."""
    assert compile_regex("a+").pattern == "a+"
    assert repr(compile_regex("a+")) == "compile_regex('a+')"
