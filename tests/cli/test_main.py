"""The command line itself: streams, terminals, interruption."""

import io
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dra_core.cli import INTERRUPTED, batch, main, text
from dra_core.cli.progress import PATIENCE, Progress
from support.commands import EXAMPLE, captured_streams, run


def test_version() -> None:
    """--version says the version of the package."""
    from dra_core._version import __version__

    ran = run("--version")
    assert (ran.code, ran.out) == (0, f"dra-core {__version__}\n")


@pytest.mark.parametrize("arguments", [(), ("bogus",), ("allocate",), ("lint",)])
def test_wrong_use(arguments: tuple[str, ...]) -> None:
    """A command line that makes no sense ends with code 2."""
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.err.startswith("usage: dra-core")


@pytest.mark.parametrize(
    "arguments", [("-h",), ("allocate", "-h"), ("lint", "-h"), ("batch", "-h")]
)
def test_help(arguments: tuple[str, ...]) -> None:
    """Every command explains itself."""
    ran = run(*arguments)
    assert ran.code == 0
    assert "usage: dra-core" in ran.out


def test_help_has_the_dump_command_and_exit_codes() -> None:
    """The help tells how to make a dump, and what the exit codes mean."""
    told = run("-h").out
    assert "kubectl get nodes,pods,resourceslices" in told
    assert "undecided" in told


def test_as_a_module() -> None:
    """``python -m dra_core`` is the command."""
    ran = subprocess.run(
        [sys.executable, "-m", "dra_core", "allocate", str(EXAMPLE), "--pod", "ml/vgpu-1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("1 pod on 14 nodes: 1 fits.")


def test_terminals_without_unicode(tmp_path: Path) -> None:
    """Where the encoding lacks a character it is escaped, also in errors."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    name = tmp_path / "é.json"
    ran = subprocess.run(
        [sys.executable, "-m", "dra_core", "lint", str(name)],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert ran.returncode == 2
    assert b"\\xe9.json: No such file" in ran.stderr


COMMANDS = (("allocate", str(EXAMPLE)), ("lint", str(EXAMPLE)), ("batch", "--kind", "quantity"))


def shell(redirections: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command with its streams redirected by a shell."""
    return subprocess.run(
        [
            "/bin/sh",
            "-c",
            f'"$@" {redirections}',
            "sh",
            sys.executable,
            "-m",
            "dra_core",
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=False,
        input='{"id": 1, "s": "1"}\n',
    )


@pytest.mark.parametrize("arguments", COMMANDS)
def test_closed_output(arguments: tuple[str, ...]) -> None:
    """With standard output closed only the exit code is told."""
    ran = shell(">&-", *arguments)
    assert (ran.stdout, ran.stderr) == ("", "")
    assert ran.returncode == run(*arguments).code


def test_closed_input() -> None:
    """A closed standard input is an empty one."""
    ran = shell("<&-", "allocate", "-")
    assert (ran.returncode, ran.stderr) == (2, "dra-core: standard input: is empty\n")
    assert shell("<&-", "batch", "--kind", "cel").returncode == 0


def test_closed_errors() -> None:
    """With standard error closed an error is not told, least of all on standard output."""
    ran = shell("2>&-", "allocate", "/nonexistent")
    assert (ran.returncode, ran.stdout) == (2, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("arguments", COMMANDS)
def test_full_device(arguments: tuple[str, ...]) -> None:
    """An output that takes nothing more is an error without a traceback."""
    ran = shell(">/dev/full", *arguments)
    assert ran.returncode == 2
    assert ran.stderr == "dra-core: standard input or output: No space left on device\n"
    assert shell(">/dev/full 2>/dev/full", *arguments).returncode == 2


def test_input_that_cannot_be_read(tmp_path: Path) -> None:
    """An input that was opened for writing is an error without a traceback."""
    ran = shell(f"0>{tmp_path / 'x'}", "batch", "--kind", "cel")
    assert ran.returncode == 2
    assert ran.stderr.startswith("dra-core: standard input or output: ")
    assert ran.stderr.count("\n") == 1


def test_input_twice() -> None:
    """Standard input can be read once, and is not taken for empty the second time."""
    ran = run("lint", "-", "-", stdin=EXAMPLE.read_bytes())
    assert ran.code == 2
    assert ran.err.startswith("dra-core: standard input: is given more than once")


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control-C ends the command as shells expect, without a traceback."""

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, "run", interrupted)
    with captured_streams() as (out, err):
        assert main(["batch", "--kind", "cel"]) == INTERRUPTED
    assert out.tell() == err.tell() == 0


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as the terminal; files and pipes get a fixed width."""
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setattr(sys, "stdout", out := Terminal())
    assert main(["allocate", str(EXAMPLE), "--pod", "db/postgres-1"]) == 0
    assert max(map(len, out.getvalue().splitlines()[3:])) <= 76
    assert "cpu-2" in out.getvalue()


# --- progress ------------------------------------------------------------------------


def advance(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, seconds: float) -> Any:
    """A bar on ``stream`` after three steps, the last one ``seconds`` after the start."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Progress("judging", 10) as progress:
        for _ in range(3):
            progress.advance()
        now[0] += seconds
        progress.advance()
        progress.advance()
        return progress._bar


def test_progress_is_shown_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar appears on a terminal when the work takes longer than a second."""
    bar = advance(monkeypatch, terminal := Terminal(), PATIENCE * 1.1)
    assert bar is not None
    assert [task.completed for task in bar.tasks] == [5]
    assert "judging" in terminal.getvalue()


@pytest.mark.parametrize(("stream", "seconds"), [(io.StringIO(), 60.0), (Terminal(), PATIENCE / 2)])
def test_no_progress(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, seconds: float) -> None:
    """No bar without a terminal, and none for work of less than a second."""
    assert advance(monkeypatch, stream, seconds) is None
    assert stream.getvalue() == ""


def test_no_progress_while_somebody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever types questions at a terminal gets answers only."""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Progress("answering", shown=False) as progress:
        now[0] += 60
        progress.advance()
    assert terminal.getvalue() == ""


def test_no_progress_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without rich there is no bar, and no error."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert advance(monkeypatch, Terminal(), 60.0) is None


def test_output_is_not_mixed_with_progress() -> None:
    """Nothing but the answer goes to standard output."""
    ran = run("allocate", EXAMPLE)
    assert ran.err == ""
    assert ran.out.splitlines()[1] == text.NOT_CONSIDERED
