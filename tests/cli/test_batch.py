"""``batch``: JSON lines in, one JSON line each out."""

import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.cli.batch import KINDS, answer_line, answerer, run
from dra_core.cli.batch_kinds import SHARE_ID
from support import commands
from support.commands import Json, claim, device_class, node, request, resource_slice
from support.conformance import Case, load_conformance
from support.quantities import exact


def ask(kind: str, *questions: object, repeat: int = 0) -> list[Json]:
    """Answers to questions, in order."""
    out = io.StringIO()
    lines = [json.dumps(question).encode() + b"\n" for question in questions]
    run(answerer(kind, repeat), lines, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def answers(kind: str, suite: str) -> list[tuple[Case, Json]]:
    """The cases of a suite with our answers; ``expect`` is not part of the question."""
    cases = load_conformance(suite)
    questions = [{key: case[key] for key in case if key != "expect"} for case in cases]
    found = ask(kind, *questions)
    assert [answer["id"] for answer in found] == [case["id"] for case in cases]
    return list(zip(cases, found, strict=True))


# --- recorded answers ----------------------------------------------------------------


@pytest.mark.parametrize("suite", ["allocation", "corrected", "table"])
def test_recorded_allocations(suite: str) -> None:
    """Outcome, results and reason of every recorded problem, exactly."""
    for case, answer in answers("allocation", suite):
        assert list(answer) == ["id", "outcome", "results", "reason", "message", "steps", "ns"]
        found = {key: answer[key] for key in ("outcome", "results", "reason")}
        expect = {"results": None, "reason": None, **case["expect"]}
        assert found == expect, case["id"]
        assert (answer["message"] is None) is (answer["outcome"] == "allocated")
        assert (answer["steps"] is None) is (answer["outcome"] == "error")


@pytest.mark.parametrize("suite", ["cel", "real-cel", "table-cel"])
def test_recorded_selectors(suite: str) -> None:
    """Compile error, evaluation error or match of every recorded selector."""
    for case, answer in answers("cel", suite):
        expect = case["expect"]
        for outcome in ("compile_error", "evaluation_error"):
            assert bool(answer.get(outcome)) is bool(expect.get(outcome)), case["id"]
        assert answer.get("matches") is expect.get("matches"), case["id"]
        assert ("cost" in answer) is ("matches" in answer)


def test_recorded_claims() -> None:
    """Every recorded answer about claims."""
    for case, answer in answers("claims", "claims"):
        assert answer == {"id": case["id"], **case["expect"]}


def test_recorded_quantities() -> None:
    """Every recorded answer about quantities; tests/values knows where the record is wrong."""
    for case, answer in answers("quantity", "quantity"):
        expect = case["expect"]
        assert ("error" in answer) is ("error" in expect), case["id"]
        if "sum" in expect:
            assert answer == {"id": case["id"], **expect}
        elif "error" not in expect:
            assert list(answer) == ["id", "canonical", "value", "sign"]
            assert answer["sign"] == expect["sign"]
            assert exact(answer["canonical"]) == exact(case["s"]) or "i" in case["s"]


# --- allocation ----------------------------------------------------------------------

PROBLEM = {
    "id": "p",
    "classes": [device_class()],
    "slices": [resource_slice()],
    "claims": [claim()],
    "node": node(),
}


def test_time_is_the_median_of_warm_calls() -> None:
    """``ns`` is measured; without calls to measure it is null."""
    (answer,) = ask("allocation", PROBLEM, repeat=3)
    assert answer["outcome"] == "allocated"
    assert 0 < answer["ns"] < 10**9
    (answer,) = ask("allocation", PROBLEM)
    assert answer["ns"] is None


def test_errors_are_measured_too() -> None:
    """A problem that is an error has its time as well."""
    asked = {**PROBLEM, "claims": [claim("c", request(deviceClassName="none"))]}
    (answer,) = ask("allocation", asked, repeat=2)
    assert (answer["outcome"], answer["reason"]) == ("error", "class-not-found")
    assert "'none' does not exist" in answer["message"]
    assert answer["ns"] > 0


def test_reasons_that_are_not_recorded() -> None:
    """An error of a kind that recorded answers do not name has no reason, but a message."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Bogus"}]}]}
    asked = {**PROBLEM, "slices": [resource_slice(nodeName=None, nodeSelector=selector)]}
    (answer,) = ask("allocation", asked)
    assert (answer["outcome"], answer["reason"]) == ("error", None)
    assert "Bogus" in answer["message"]


def test_why_not() -> None:
    """What does not fit says why in its message."""
    asked = {**PROBLEM, "allocated": {"devices": [
        {"driver": commands.DRIVER, "pool": "node-1", "device": "gpu-0"}]}}  # fmt: skip
    (answer,) = ask("allocation", asked)
    assert (answer["outcome"], answer["reason"]) == ("unsatisfiable", None)
    assert answer["message"].startswith("request gpu: needed 1, usable 0; 1 in use: ")


def test_share_ids() -> None:
    """Every share ID is the made-up one of the recorded answers."""
    gpu = {"name": "gpu-0", "allowMultipleAllocations": True}
    (answer,) = ask("allocation", {**PROBLEM, "slices": [resource_slice("node-1", gpu)]})
    assert answer["results"][0]["devices"]["results"][0]["shareID"] == SHARE_ID


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"slices": {}}, "slices: is not a list"),
        ({"slices": [5]}, "ResourceSlice"),
        ({"claims": [{"spec": 1}]}, "ResourceClaim"),
        ({"node": None}, "Node"),
        ({"features": {"Bogus": True}}, "unknown features"),
        ({"features": {"AdminAccess": "off"}}, "features: is not a map of booleans"),
        ({"features": 1}, "features"),
        ({"allocated": 1}, "allocated"),
        ({"allocated": {"devices": [1]}}, "entry that is not an object"),
        ({"allocated": {"devices": [{"driver": "d", "pool": "p"}]}}, "device: is not a string"),
        ({"allocated": {"sharedDevices": [{"driver": "d", "pool": "p"}]}}, "device"),
        ({"allocated": {"consumedCapacity": [{}]}}, "driver"),
        (
            {"allocated": {"consumedCapacity": [
                {"driver": "d", "pool": "p", "device": "d", "capacity": {"m": "x"}}]}},
            "invalid quantity 'x'",
        ),
        (
            {"allocated": {"consumedCapacity": [
                {"driver": "d", "pool": "p", "device": "d", "capacity": [1]}]}},
            "capacity: is not an object",
        ),
    ],
)  # fmt: skip
def test_malformed_problems(change: Json, problem: str) -> None:
    """A malformed problem is answered with an error that says where."""
    (answer,) = ask("allocation", {**PROBLEM, **change})
    assert list(answer) == ["id", "error"]
    assert answer["id"] == "p"
    assert problem in answer["error"]


# --- lines ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("line", "name", "problem"),
    [
        (b"{", None, "not JSON"),
        (b"\xff", None, "not JSON"),
        (b"5", None, "a line is a JSON object"),
        (b'{"id": "x"}', "x", ""),
        (b'{"id": [1]}', [1], ""),
        (b'{"id": "x", "s": NaN}', None, "NaN is not a JSON value"),
        (b'{"id": "x", "s": 5, "op": 5, "expr": 5, "claims": 5}', "x", ""),
        (b"[" * 100_000, None, "nested too deeply"),
        (b'{"id": 1' + b"1" * 5000 + b"}", None, "digits"),
        (b'{"id": 1e999}', None, "id: cannot be repeated as JSON"),
        (b'{"id": [{"a": -1e999}]}', None, "id: cannot be repeated as JSON"),
    ],
)
def test_bad_lines(kind: str, line: bytes, name: object, problem: str) -> None:
    """A bad line is answered with an error and its id, if it has one."""
    answer = answer_line(answerer(kind, 1), line)
    assert list(answer) == ["id", "error"]
    assert answer["id"] == name
    assert answer["error"]
    assert problem in answer["error"]


def test_the_next_line_is_read() -> None:
    """A bad line does not stop the stream; blank lines are no questions."""
    lines = [
        b"{\n",
        b"\n",
        b'{"id": 1, "s": "1Ki"}\n',
        b'{"id": 2, "s": "x"}\r\n',
        b'{"id": 3, "s": "1"}',
    ]
    out = io.StringIO()
    run(answerer("quantity", 1), lines, out)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [answer["id"] for answer in found] == [None, 1, 2, 3]
    assert found[1] == {"id": 1, "canonical": "1Ki", "value": 1024, "sign": 1}
    assert "invalid quantity 'x'" in found[2]["error"]


def test_a_fault_of_ours_is_an_answer() -> None:
    """Even an exception that nobody expects is the answer to its line only."""

    def broken(asked: Json) -> Json:
        raise ZeroDivisionError("oops")

    assert answer_line(broken, b'{"id": 1}') == {
        "id": 1, "error": "internal error: ZeroDivisionError: oops",
    }  # fmt: skip


def test_strings_of_any_kind_come_back() -> None:
    """Lone surrogates and NUL in a line come back escaped."""
    answer = ask("quantity", {"id": "\ud800\0", "s": "\ud800\0"})[0]
    assert answer["id"] == "\ud800\0"
    assert "invalid quantity" in answer["error"]


@given(st.binary())
def test_any_line(line: bytes) -> None:
    """Any line is answered by one line, whatever the kind."""
    for kind in KINDS:
        text = json.dumps(answer_line(_ANSWERERS[kind], line), allow_nan=False)
        assert "\n" not in text
        assert "internal error" not in text


_ANSWERERS: dict[str, Any] = {kind: answerer(kind, 1) for kind in KINDS}


def test_every_line_is_flushed() -> None:
    """An answer is there before the next question is asked: the stream is a conversation."""
    command = [sys.executable, "-m", "dra_core", "batch", "--kind", "quantity"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(json.dumps({"id": number, "s": f"{number}k"}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--kind", "other"),
        ("--kind", "cel", "--repeat", "0"),
        ("--kind", "cel", "--repeat", "x"),
    ],
)
def test_wrong_options(arguments: tuple[str, ...]) -> None:
    """Options that are wrong end with code 2."""
    assert commands.run("batch", *arguments).code == 2


def test_reader_that_goes_away() -> None:
    """A closed pipe ends the command without a traceback."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as out:
        ran = subprocess.run(
            [sys.executable, "-m", "dra_core", "batch", "--kind", "quantity"],
            input=b'{"id": 1, "s": "1"}\n' * 10,
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ran.returncode == 1
    assert ran.stderr == b""
