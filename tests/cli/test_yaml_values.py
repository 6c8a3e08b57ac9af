"""YAML means what JSON could say, and no YAML can hurt."""

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.cli import structured
from dra_core.cli.yaml_values import (
    MAX_DEPTH,
    MAX_REPEATED,
    YamlMissingError,
    YamlValueError,
    yaml_documents,
)


def one(text: str) -> Any:
    """The only document of a text."""
    (document,) = yaml_documents(text)
    return document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None),
        ("true", True), ("False", False),
        ("0", 0), ("-12", -12), ("+3", 3), ("1.5", 1.5), ("1e3", 1000.0), ("-0.5E-1", -0.05),
        ("on", "on"), ("yes", "yes"), ("n", "n"), ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"), ("0x10", "0x10"), ("0o7", "0o7"),
        ("010", "010"), ("1_000", "1_000"), ("12:30", "12:30"), (".inf", ".inf"), ("1.", "1."),
        ("16Gi", "16Gi"), ("1.2.3", "1.2.3"), ("'5'", "5"), ('"true"', "true"),
        ("!!str 5", "5"), ("|\n  5", "5"), ("=", "="),
    ],
)  # fmt: skip
def test_plain_scalars(text: str, value: Any) -> None:
    """Plain scalars mean what they mean in JSON, and nothing else."""
    found = one(f"key: {text}")["key"]
    assert found == value
    assert type(found) is type(value)


def test_keys_are_strings_as_written() -> None:
    """Keys are strings, whatever they look like."""
    assert one("1: a\ntrue: b\n~: c\n'2': d") == {"1": "a", "true": "b", "~": "c", "2": "d"}


def test_several_documents() -> None:
    """A stream has any number of documents; empty ones are None."""
    assert list(yaml_documents("a: 1\n---\n- 2\n---\n...\n")) == [{"a": 1}, [2], None]
    assert list(yaml_documents("# nothing\n")) == []


def test_aliases_share() -> None:
    """An alias stands for the value of its anchor; anchors end with their document."""
    assert one("a: &x {b: [1]}\nc: *x\nd: &k key\n*k : e") == {
        "a": {"b": [1]}, "c": {"b": [1]}, "d": "key", "key": "e",
    }  # fmt: skip
    with pytest.raises(YamlValueError, match="not defined before"):
        list(yaml_documents("a: &x 1\n---\nb: *x"))


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: b: c", 1, "mapping values"),
        ("a: 1\n\tb: 2", 2, "token|tab"),
        ("a: &x [*x]", 1, "contains itself"),
        ("a:\n- *x", 2, "not defined"),
        ("a: 1\nb: 2\na: 3", 3, "twice"),
        ("<<: {a: 1}", 1, "merge"),
        ("? [a]\n: b", 1, "key is a map or a list"),
        ("a: &x {}\n*x : b", 2, "key is not a string"),
        ("a: !!python/object:os.system x", 1, "tag"),
        ("!!binary a", 1, "tag"),
        ('a: !!int "5"', 1, "tag"),
        ("a: !!set {b}", 1, "tag"),
        ("a: \x00", 0, "control character|special character"),
        ('"', 1, "quoted scalar"),
        ("a: " + "1" * 5000, 1, "digits"),
    ],
)
def test_refused(text: str, line: int, problem: str) -> None:
    """What JSON could not say, or what is no YAML, is an error with its line."""
    with pytest.raises(YamlValueError, match=problem) as caught:
        list(yaml_documents(text))
    assert caught.value.line == line
    assert str(caught.value).startswith(f"line {line}: " if line else caught.value.problem)


def test_bomb() -> None:
    """Aliases of aliases end with an error as soon as they repeat too many values."""
    rows = ["a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    with pytest.raises(YamlValueError, match=f"more than {MAX_REPEATED:,}"):
        list(yaml_documents("\n".join(rows)))


def test_depth_is_bounded() -> None:
    """Nesting has a limit, far below what exhausts a stack."""
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert json.dumps(one(deep)) == deep
    with pytest.raises(YamlValueError, match="levels deep"):
        one(f"[{deep}]")
    with pytest.raises(YamlValueError, match=r"levels deep|nesting depth"):
        one("[" * 100_000)


def test_without_pyyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PyYAML the error says what to install, and that JSON works."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(YamlMissingError) as caught:
        list(yaml_documents("a: 1"))
    assert "dra-core[cli]" in str(caught.value)
    assert "JSON is read and written without" in str(caught.value)


def test_the_python_parser_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML built without libyaml gives the same values."""
    import yaml

    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert one("a: [1, x, {b: on}]\nc: &d '5'\ne: *d") == {
        "a": [1, "x", {"b": "on"}], "c": "5", "e": "5",
    }  # fmt: skip


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda values: (
        st.lists(values) | st.dictionaries(st.text(st.characters(codec="utf-8")), values)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), _JSON))
def test_what_is_written_reads_back(value: dict[str, Any]) -> None:
    """YAML output reads back as the value that it was made from."""
    assert one(structured.as_yaml(value)) == value


@given(st.text())
def test_any_text(text: str) -> None:
    """Any text is values or an error that says what is wrong."""
    problem = ""
    try:
        json.dumps(list(yaml_documents(text)))
    except YamlValueError as error:
        problem = error.problem
    assert problem == problem.strip()
