"""Files and standard input: JSON, YAML, several of either, and what is neither."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.cli.documents import BadInputError, parse, read_documents
from support.commands import captured_streams, listed, node, run, small_cluster

DUMP = json.dumps(listed(*small_cluster()))


@pytest.mark.parametrize(
    ("name", "text", "documents"),
    [
        ("a.json", '{"a": 1}', [{"a": 1}]),
        ("a.json", ' \n[1, 2]\n', [[1, 2]]),
        ("a.json", '{"a": 1}{"b": 2}\n{"c": 3}', [{"a": 1}, {"b": 2}, {"c": 3}]),
        ("a.jsonl", '{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
        ("-", '{"a": 1}', [{"a": 1}]),
        ("a", '{"a": 1}', [{"a": 1}]),
        ("a.yaml", '{"a": 1}', [{"a": 1}]),
        ("a.yml", "a: 1\n---\nb: 2", [{"a": 1}, {"b": 2}]),
        ("a.yaml", "{a: 1}", [{"a": 1}]),
        ("a.yaml", '{"a": 1}\n---\n{"b": 2}', [{"a": 1}, {"b": 2}]),
        ("-", "a: 1", [{"a": 1}]),
        ("a.YAML", "- 1", [[1]]),
        ("a.json", '"\\ud800\\u0000"', ["\ud800\0"]),
    ],
)  # fmt: skip
def test_formats(name: str, text: str, documents: list[object]) -> None:
    """JSON is told from YAML by the name, else by its first character."""
    assert list(parse(name, text.encode())) == documents


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(encoding: str) -> None:
    """UTF-8 is meant; a byte order mark says otherwise (PowerShell writes UTF-16)."""
    assert list(parse("a.json", '{"a": "é"}'.encode(encoding))) == [{"a": "é"}]


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.json", DUMP[:-3].encode(), "is not JSON: .*the text ends there"),
        ("a.json", b'{"a": }', r"is not JSON: Expecting value \(line 1, column 7\)"),
        ("a.json", b"a: 1", "is not JSON"),
        ("-", b"{a: 1}", "is not JSON"),
        ("a.json", b'{"a": NaN}', "NaN is not a JSON value"),
        ("a.json", b'{"a": -Infinity}', "-Infinity is not a JSON value"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.json", b'{"a": ' + b"1" * 5000 + b"}", "digits"),
        ("a.json", b'{"a": "\x01"}', "control character"),
        ("a.json", b'{"a": "\xff"}', r"is not utf-8 text \(byte 7\)"),
        ("a.json", b"\xff\xfe{", "is not utf-16 text"),
        ("a.yaml", b"a: b: c", "line 1: mapping values"),
        ("a.yaml", b'{"a": 1', "line [12]: "),
    ],
)
def test_bad_input(name: str, data: bytes, problem: str) -> None:
    """What is neither is an error with the place."""
    with pytest.raises(BadInputError, match=problem) as caught:
        list(parse(name, data))
    assert caught.value.source == name


def test_files(tmp_path: Path) -> None:
    """Files that cannot be read, or have nothing in them, are named."""
    for name, problem in (("missing.json", "No such file"), ("", "directory"), ("a\0b", "null")):
        with pytest.raises(BadInputError, match=problem):
            read_documents(f"{tmp_path}/{name}")
    for content in ("", " \n", "null"):
        (tmp_path / "empty").write_text(content)
        with pytest.raises(BadInputError, match="is empty"):
            read_documents(str(tmp_path / "empty"))


def test_standard_input() -> None:
    """ "-" is standard input, and its name in errors."""
    with captured_streams(b'{"a": 1}'):
        assert read_documents("-") == [{"a": 1}]
    ran = run("lint", "-", stdin="{")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("dra-core: standard input: is not JSON")


def test_json_needs_no_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the extra "cli" JSON works both ways, and YAML says what is missing."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert run("allocate", "-", "-o", "json", stdin=DUMP).code == 0
    assert run("allocate", "-", stdin=DUMP).code == 0
    for arguments, stdin in ((("-",), "a: 1"), (("-", "-o", "yaml"), DUMP)):
        ran = run("allocate", *arguments, stdin=stdin)
        assert (ran.code, ran.out) == (2, "")
        assert "pip install 'dra-core[cli]'" in ran.err


@given(st.binary())
def test_any_bytes(data: bytes) -> None:
    """Any bytes are documents or one error, under any name."""
    for name in ("a.json", "a.yaml", "-"):
        problem = "none"
        try:
            json.dumps(list(parse(name, data)))
        except BadInputError as error:
            problem = error.problem
        assert problem


@given(st.integers(min_value=1, max_value=len(DUMP) - 1))
def test_truncated_json(length: int) -> None:
    """A dump that was cut off anywhere is bad input, never half read."""
    ran = run("allocate", "-", stdin=DUMP[:length])
    assert (ran.code, ran.out) == (2, "")
    assert "is not JSON" in ran.err
    assert "the text ends there" in ran.err or "Unterminated" in ran.err or "delimiter" in ran.err


def test_several_files(tmp_path: Path) -> None:
    """Several files make one dump, in any mixture of forms."""
    first, second = tmp_path / "first.yaml", tmp_path / "second.json"
    objects = small_cluster()
    first.write_text("---\n".join(json.dumps(one) + "\n" for one in objects[:2]))
    second.write_text(json.dumps(listed(*objects[2:4])))
    ran = run("allocate", first, second, "-", stdin=json.dumps([objects[4], node("other")]))
    assert ran.code == 0
    assert ran.out.startswith("1 pending pod on 2 nodes: 1 fits.")
