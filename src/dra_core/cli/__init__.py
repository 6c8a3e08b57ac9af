"""The command line. Below this package nothing reads files, prints or knows the time.

What may live here: ``main``, which picks the command and turns what went wrong into an
exit code. Every command has a module; ``documents`` and ``load`` read, ``judge`` works,
``text`` and ``structured`` show.

YAML and the progress bar need the extra ``cli``; JSON works without it.
"""

import contextlib
import io
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence

from dra_core.cli import arguments, batch, structured, text
from dra_core.cli.allocate import allocate
from dra_core.cli.judge import exit_code
from dra_core.cli.lint import lint
from dra_core.cli.progress import Progress
from dra_core.errors import DraError

BAD_INPUT = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. ``argv``: arguments, default those given."""
    _open_closed_streams()
    options = arguments.parse(argv)
    _print_anything()
    try:
        return _COMMANDS[options.command](options)
    except DraError as error:
        _complain(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader went away, as head(1) does
        _drop_output()
        return 1
    except OSError as error:
        _drop_output()
        _complain(f"standard input or output: {error.strerror or error}")
        return BAD_INPUT


def _open_closed_streams() -> None:
    """A stream that the caller closed (``>&-``) is empty, or takes and drops everything."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # open until the end
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _complain(problem: str) -> None:
    """Say on standard error what is wrong; where even that fails the exit code has to do."""
    with contextlib.suppress(OSError):
        print(f"dra-core: {text.printable(problem)}", file=sys.stderr)


def _drop_output() -> None:
    """Let nothing be written any more.

    Python would complain once more when it flushes at exit, so there has to be something
    that takes the rest.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_anything() -> None:
    """Characters that the terminal's encoding lacks are escaped instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _allocate(options: Namespace) -> int:
    report = allocate(options)
    if options.output == "text":
        for line in text.render(report, _width()):
            print(line)
    else:
        form = structured.as_json if options.output == "json" else structured.as_yaml
        print(form(structured.report_json(report)))
    sys.stdout.flush()
    return exit_code(report.answers)


def _width() -> int:
    """The width of the terminal; a fixed one for files and pipes."""
    return max(shutil.get_terminal_size().columns, 60) if sys.stdout.isatty() else 100


def _lint(options: Namespace) -> int:
    found = lint(options.files)
    for line in found.lines():
        print(text.printable(line))
    sys.stdout.flush()
    return found.exit_code


def _batch(options: Namespace) -> int:
    # A bar would get in the way of somebody who types the questions.
    with Progress("answering", shown=not sys.stdout.isatty()) as progress:
        answer = batch.answerer(options.kind, options.repeat)
        batch.run(answer, sys.stdin.buffer, sys.stdout, progress.advance)
    return 0


_COMMANDS = {"allocate": _allocate, "lint": _lint, "batch": _batch}
