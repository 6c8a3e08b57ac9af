"""The syntax of regular expressions: what is accepted, what is refused, and where."""

import pickle

import pytest

from dra_core.cel.regex import compile_regex
from dra_core.cel.regex_tree import MAX_INSTRUCTIONS
from dra_core.errors import DraError, RegexError


def problem(pattern: str) -> RegexError:
    with pytest.raises(RegexError) as caught:
        compile_regex(pattern)
    return caught.value


@pytest.mark.parametrize(
    "pattern",
    [
        "", "|", "a||b", "()", "(|a)", "a{2}", "a{2,}", "a{2,3}", "a{0}", "a{2}?", "a*?", "(?:a)",
        "(?P<name>a)", "(?<name>a)", "(?P<1>a)", "(?i)a", "(?i-s:a)", "(?)a", "(?-i)a", "(?imsU)a",
        r"\d\D\s\S\w\W", r"\pL\PL\p{L}\p{^L}\P{Greek}", r"\a\f\n\r\t\v", r"\x41\x{1F600}",
        r"\x{0000041}",
        r"\101\07\0", r"\Q*+\E", r"\Q*+", r"\A\b\B\z", r"\.\*\_\-\!\ ", "[]a]", "[^]a]", "[a-]",
        "[-a]", "[a-b-c]", r"[\d-z]", "[[:alpha:]]", "[[:^alpha:]x]", "[[:alpha]", "[[a]", "[^^]",
        r"[\]\-\\]", r"[\x41-\x5a]", r"[\pL\p{Nd}]", "a{,2}", "a{", "a{x", "a{1", "a{1,", "a{01}",
        "{", "}", "]", "^*", "$+", r"\b*", "a|b*", "(a*)*", "(a*)+", "x{1000}", "(?:x{10}){100}",
        "(?:[a-z]{4}){0,250}", "(x{0}){1000}", "a*(?i)*",
    ],
)  # fmt: skip
def test_accepted(pattern: str) -> None:
    """RE2 syntax compiles; braces that are no repetition are literals."""
    compile_regex(pattern)


@pytest.mark.parametrize(
    ("pattern", "position", "part"),
    [
        ("a(", 1, "missing closing )"),
        ("a)", 1, "unexpected )"),
        ("(a|b", 0, "missing closing )"),
        ("x[a-z", 1, "missing closing ]"),
        ("[]", 0, "missing closing ]"),
        ("[a-", 0, "missing closing ]"),
        ("ab[z-a]", 3, "range"),
        ("[a-\\d]", 3, "escape"),
        ("[[:foo:]]", 1, "class name"),
        ("*", 0, "missing argument"),
        ("a|*", 2, "missing argument"),
        ("(*)", 1, "missing argument"),
        ("(?i)*", 4, "missing argument"),
        (r"\Q\E*", 4, "missing argument"),
        ("{2}", 0, "missing argument"),
        ("a**", 2, "nested repetition"),
        ("a+*", 2, "nested repetition"),
        ("a{2}{3}", 4, "nested repetition"),
        ("a*?*", 3, "nested repetition"),
        ("a{1001}", 1, "repeat count"),
        ("a{2,1}", 1, "repeat count"),
        ("a{9876543210}", 1, "repeat count"),
        ("a{1,9876543210}", 1, "repeat count"),
        ("(?:[a-z]{4}){0,251}", 12, "repeat count"),
        ("((x{10}){10}){11}", 13, "repeat count"),
        ("a\\", 1, "trailing backslash"),
        (r"\x", 0, "escape"),
        (r"\x4", 0, "escape"),
        (r"\x{}", 0, "escape"),
        (r"\x{41", 0, "escape"),
        (r"\x{110000}", 0, "escape"),
        (r"\xg1", 0, "escape"),
        (r"\é", 0, "escape"),
        (r"\e", 0, "escape"),
        (r"\8", 0, "escape"),
        (r"\pX", 0, "Unicode class"),
        (r"\p{Klingon}", 0, "Unicode class"),
        (r"\p{}", 0, "Unicode class"),
        (r"\p{L", 0, "Unicode class"),
        (r"\p", 0, "Unicode class"),
        ("\ud800", 0, "surrogate"),
    ],
)
def test_refused(pattern: str, position: int, part: str) -> None:
    """A malformed pattern is refused with the place and the problem."""
    error = problem(pattern)
    assert error.pattern == pattern
    assert error.position == position
    assert part in error.problem


@pytest.mark.parametrize(
    "pattern",
    [
        "a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", r"(ab)\1", r"(?P<n>a)(?P=n)", r"\k<n>", r"(?>a)",
        "a++", "a*+", "a?+", "a{1,2}+", r"\C", r"\Z", r"\G", r"\h", r"\R", r"\X", r"\c", "(?#x)",
        "(?x)a", "(?i", "(?i:", "(?-)", "(?-:a)", "(?i-)", "(?i--s)", "(?P<>a)", "(?P<a b>c)",
        "(?P<n", "(?P<n>", "(?<é>a)", "(?P>n)", "(?R)", "(?1)", "(?(1)a|b)", "(?'n'a)", r"[\b]",
    ],
)  # fmt: skip
def test_refused_because_not_re2(pattern: str) -> None:
    """Lookaround, backreferences, possessive and other Perl syntax do not compile."""
    problem(pattern)


def test_nesting_is_limited() -> None:
    """A thousand levels compile less one; more is an error and no RecursionError."""
    compile_regex("(" * 999 + ")" * 999)
    compile_regex("(?:" * 999 + ")*" * 999)
    compile_regex("(" + "|" * 2_000 + ")")
    assert "nests too deeply" in problem("(" * 1_000 + ")" * 1_000).problem
    assert "nests too deeply" in problem("(?:" * 1_000 + ")*" * 1_000).problem
    assert "missing closing" in problem("(" * 60_000).problem


def test_plain_groups_do_not_nest() -> None:
    """Groups that neither capture nor repeat leave no level behind."""
    compile_regex("(?:" * 5_000 + "a" + ")" * 5_000)


@pytest.mark.parametrize(
    "pattern",
    [
        "a" * (MAX_INSTRUCTIONS + 1),
        "(xx?){1000}" * 10,
        "(" + "(xx?)" * 1000 + "){1000}",
        "a|" * 8_000,
        "[" + "ab" * 40_000 + "]",
    ],
)
def test_size_is_limited(pattern: str) -> None:
    """A pattern that would compile to too much is refused."""
    assert "too large" in problem(pattern).problem


@pytest.mark.parametrize(
    "pattern", ["a|" * 5_119 + "a", "a*" * 5_120, "a" * 10_240, "(a|b)*" * 1_700, "x{1000}" * 19]
)
def test_long_patterns_of_selectors_compile(pattern: str) -> None:
    """No pattern of a selector's greatest length is too large, unless it counts repetitions."""
    compile_regex(pattern)


def test_largest_program_compiles() -> None:
    """The limit itself is allowed, and matches."""
    pattern = "a" * MAX_INSTRUCTIONS
    assert compile_regex(pattern + "").search(pattern)


def test_error_is_a_value() -> None:
    """The error has facts as fields, is a DraError and a ValueError, and can be pickled."""
    error = problem("a(")
    assert isinstance(error, DraError)
    assert isinstance(error, ValueError)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.pattern, copy.position, copy.problem) == ("a(", 1, error.problem)
    assert "'a('" in str(error)
    assert "1" in str(error)


def test_flags_end_with_their_group() -> None:
    """Flags hold until the group ends, across alternatives, or for the group they open."""
    assert compile_regex("(a(?i)b|c)d").find("AB aBd Cd CD") == "aBd"
    assert compile_regex("(a(?i)b|c)d").find("Cd") == "Cd"
    assert compile_regex("(?i:a)b").find("Ab") == "Ab"
    assert compile_regex("(?i:a)b").find("AB") is None
    assert compile_regex("(?i)a(?-i)b").find("Ab") == "Ab"
    assert compile_regex("(?i)a(?-i)b").find("AB") is None


def test_repetition_after_flags() -> None:
    """A repetition after flags or an empty quotation applies to what stands before them."""
    assert compile_regex("a(?i)*").find("aaA") == "aa"
    assert compile_regex(r"a\Q\E+").find("baa") == "aa"
    assert compile_regex("a*(?i)*").find("aa") == "aa"
    assert compile_regex(r"\Qab\E+").find("abb") == "abb"


def test_ungreedy_flag() -> None:
    """(?U) swaps greedy and lazy."""
    assert compile_regex("(?U)a+").find("aaa") == "a"
    assert compile_regex("(?U)a+?").find("aaa") == "aaa"
    assert compile_regex("(?U)a{1,2}").find("aaa") == "a"
