"""Semantic versions: what is one, how they compare, what normalisation does."""

import itertools
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.cel.versions import MAX_NUMBER, SemVer, is_semver, parse_semver
from dra_core.errors import CelValueError, DraError


def v(text: str, normalize: bool = False) -> SemVer:
    return parse_semver(text, normalize)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.2.3", SemVer(1, 2, 3)),
        ("0.0.0", SemVer(0, 0, 0)),
        ("1.0.0-alpha.1", SemVer(1, 0, 0, ("alpha", "1"))),
        ("0.9.0-beta.2+build5", SemVer(0, 9, 0, ("beta", "2"), ("build5",))),
        ("1.0.0--", SemVer(1, 0, 0, ("-",))),
        ("1.0.0-0a", SemVer(1, 0, 0, ("0a",))),
        ("1.0.0+001", SemVer(1, 0, 0, (), ("001",))),
        ("1.0.0+a-b.c", SemVer(1, 0, 0, (), ("a-b", "c"))),
        (f"{MAX_NUMBER}.{MAX_NUMBER}.{MAX_NUMBER}", SemVer(MAX_NUMBER, MAX_NUMBER, MAX_NUMBER)),
        (f"1.0.0-{MAX_NUMBER}", SemVer(1, 0, 0, (str(MAX_NUMBER),))),
    ],
)
def test_parsed(text: str, expected: SemVer) -> None:
    """A version has its parts, and prints as it was written."""
    parsed = v(text)
    assert (parsed, parsed.build) == (expected, expected.build)
    assert str(parsed) == text
    assert is_semver(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "200K", "1", "1.2", "1.2.3.4", "v1.2.3", "1.2.x", " 1.2.3", "1.2.3 ", "1.2.3\n",
        "01.2.3", "1.02.3", "1.2.03", "-1.2.3", "+1.2.3", "1..3", ".1.2", "1.2.", "1.2.3-",
        "1.2.3+", "1.2.3-a..b", "1.2.3-01", "1.2.3-a.00", "1.2.3+a..b", "1.2.3+a+b", "1.2.3-é",
        "1.2.3-a_b", "１.2.3", "1.2.3-\u0661", f"{MAX_NUMBER + 1}.0.0", f"0.0.{MAX_NUMBER + 1}",
        f"1.0.0-{MAX_NUMBER + 1}", "9" * 5_000 + ".0.0", "1.0.0-" + "9" * 5_000,
    ],
)  # fmt: skip
def test_refused(text: str) -> None:
    """Leading zeros, missing or empty parts, other alphabets and 65 bits are no versions."""
    assert not is_semver(text)
    with pytest.raises(CelValueError) as caught:
        v(text)
    assert isinstance(caught.value, DraError)
    assert pickle.loads(pickle.dumps(caught.value)).problem == caught.value.problem
    assert len(caught.value.problem) < 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v1.0", "1.0.0"),
        ("v1", "1.0.0"),
        ("1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("01.01.01", "1.1.1"),
        ("000.00.0", "0.0.0"),
        ("v01.2.003-rc.1+b", "1.2.3-rc.1+b"),
        ("1.2.0-rc", "1.2.0-rc"),
        ("1.2.00-rc", "1.2.0-rc"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_normalized(text: str, expected: str) -> None:
    """Normalising drops one "v" and leading zeros, and fills in minor and patch."""
    assert str(v(text, normalize=True)) == expected
    assert is_semver(text, normalize=True)


@pytest.mark.parametrize(
    "text",
    ["", "v", "vv1", "V1.0.0", "1-rc", "1.2-rc", "1.2+b", " 1.0", "1.x", "1.2.3-01", "1..3", "v."],
)
def test_refused_even_normalized(text: str) -> None:
    """Normalising does not repair a pre-release without patch number, blanks or letters."""
    assert not is_semver(text, normalize=True)
    with pytest.raises(CelValueError):
        v(text, normalize=True)


ASCENDING = [
    "0.0.1",
    "0.9.0-beta.2+build5",
    "1.0.0-0",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0--",
    "1.0.0-0a",
    "1.0.0-alpha",
    "1.0.0-alpha.2",
    "1.0.0-alpha.10",
    "1.0.0-alpha.10.0",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0",
    "1.0.1",
    "1.9.0",
    "1.12.3",
    f"10.0.0-{MAX_NUMBER}a",
    "10.0.0-a",
    "10.0.0",
    f"{MAX_NUMBER}.0.0",
]


@pytest.mark.parametrize(("lower", "higher"), list(itertools.combinations(ASCENDING, 2)))
def test_order(lower: str, higher: str) -> None:
    """Numbers compare by value, pre-releases come before the release, numbers before words."""
    low, high = v(lower), v(higher)
    assert low.is_less_than(high)
    assert not high.is_less_than(low)
    assert high.is_greater_than(low)
    assert not low.is_greater_than(high)
    assert (low.compare(high), high.compare(low)) == (-1, 1)
    assert low != high


def test_build_metadata_does_not_count() -> None:
    """Versions that differ in build metadata only are equal, also as keys."""
    one, other = v("1.0.0+a"), v("1.0.0+b")
    assert one == other
    assert hash(one) == hash(other)
    assert one.compare(other) == 0
    assert not one.is_less_than(other)
    assert not one.is_greater_than(other)
    assert v("1.0.0-a+x") != v("1.0.0-b+x")


def test_components_are_signed_integers() -> None:
    """major(), minor() and patch() wrap around beyond 63 bits, as in the reference."""
    version = v(f"1.{2**63}.{MAX_NUMBER}")
    assert (version.major_int(), version.minor_int(), version.patch_int()) == (1, -(2**63), -1)
    assert v(f"{2**63 - 1}.0.0").major_int() == 2**63 - 1


def test_answers_of_recorded_selectors() -> None:
    """The recorded expressions about versions hold."""
    assert v("2.1.0-rc.1").is_greater_than(v("2.0.0"))
    assert v("1.12.3").is_greater_than(v("1.9.0"))
    assert v("0.9.0-beta.2+build5").is_less_than(v("1.0.0"))
    assert v("1.12.3").compare(v("1.12.3")) == 0
    assert not is_semver("v1.2.3")
    assert not is_semver("1.2")
    assert v("1.2.3-alpha").is_less_than(v("1.2.3"))
    assert v("v1.0", True).major_int() == 1
    assert is_semver("01.0.0", True)
    assert v("1.0.0-alpha.10").is_greater_than(v("1.0.0-alpha.2"))


numbers = st.integers(0, 12) | st.integers(0, MAX_NUMBER)
identifiers = numbers.map(str) | st.from_regex(r"[0-9]*[a-zA-Z-][0-9a-zA-Z-]*", fullmatch=True)
versions = st.builds(
    SemVer,
    numbers,
    numbers,
    numbers,
    st.lists(identifiers, max_size=3).map(tuple),
    st.lists(st.from_regex(r"[0-9a-zA-Z-]+", fullmatch=True), max_size=2).map(tuple),
)


@given(versions)
def test_text_round_trip(version: SemVer) -> None:
    """A version prints as a text that parses to it, build metadata included."""
    copy = v(str(version))
    assert copy == version
    assert copy.build == version.build
    assert v(str(version), normalize=True) == version


@given(versions, versions, versions)
def test_order_is_total(a: SemVer, b: SemVer, c: SemVer) -> None:
    """Comparison is antisymmetric, transitive, and zero exactly for equal versions."""
    assert a.compare(b) == -b.compare(a)
    assert (a.compare(b) == 0) == (a == b)
    if a.compare(b) <= 0 and b.compare(c) <= 0:
        assert a.compare(c) <= 0


@given(st.text(alphabet="01a-+. v", max_size=12))
def test_agrees_with_the_grammar(text: str) -> None:
    """A short text is a version exactly if the pattern of semver.org matches it."""
    number = r"(?:0|[1-9][0-9]*)"
    word = rf"(?:{number}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
    grammar = (
        rf"{number}\.{number}\.{number}(?:-{word}(?:\.{word})*)?"
        r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
    )
    assert is_semver(text) == bool(re.fullmatch(grammar, text))
