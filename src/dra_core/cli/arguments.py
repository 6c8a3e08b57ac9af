"""The command line's own syntax.

What may live here: options, their help, and turning their text into values.
"""

import argparse
from collections.abc import Sequence
from typing import Final

from dra_core._version import __version__
from dra_core.allocator.allocation import DEFAULT_BUDGET
from dra_core.api.names import ObjectKey
from dra_core.cli.batch import KINDS
from dra_core.cli.load import DEFAULT_NAMESPACE
from dra_core.features import Features

_DUMP: Final = (
    "kubectl get nodes,pods,resourceslices,resourceclaims,resourceclaimtemplates,"
    "deviceclasses,devicetaintrules -A -o json"
)

_EXIT_CODES: Final = """\
exit codes of allocate:
  0  every pod fits on some node
  1  a pod fits nowhere
  2  the input or the command line is wrong
  3  a pod is undecided: the step budget was spent (see --budget)
exit codes of lint:
  0  no errors (there may be warnings)
  1  an object breaks a rule of the API, or a selector does not compile
  2  the input or the command line is wrong
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="dra-core",
        description="Kubernetes Dynamic Resource Allocation without a cluster.",
        epilog=f"A dump to read is made with:\n  {_DUMP}\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"dra-core {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_allocate(commands)
    _add_lint(commands)
    _add_batch(commands)
    return top


def _add_allocate(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    allocate = commands.add_parser(
        "allocate",
        help="which devices pending pods would get on which node, or why none",
        description="Judge pods against a dump of a cluster, each alone.",
        allow_abbrev=False,
    )
    _add_files(allocate)
    whom = allocate.add_mutually_exclusive_group()
    whom.add_argument(
        "--pod",
        metavar="NS/NAME",
        type=object_key,
        action="append",
        default=[],
        help="judge this pod (may be repeated); default: every pending pod with claims",
    )
    whom.add_argument(
        "--claim",
        metavar="NS/NAME",
        type=object_key,
        action="append",
        default=[],
        help="judge this claim; several are allocated together, as those of one pod",
    )
    allocate.add_argument("--node", metavar="NAME", help="try this node only")
    allocate.add_argument(
        "--feature",
        metavar="X=off",
        type=feature,
        action="append",
        default=[],
        help=f"switch a feature off (or on): {', '.join(Features().gates())}",
    )
    allocate.add_argument(
        "--budget",
        metavar="STEPS",
        type=positive,
        default=DEFAULT_BUDGET,
        help=f"search steps per node before it stays undecided (default {DEFAULT_BUDGET:,})",
    )
    allocate.add_argument(
        "-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: text"
    )


def _add_lint(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    lint = commands.add_parser(
        "lint",
        help="check objects and selectors",
        description="Check objects against the rules of the API, and selectors against devices.",
        allow_abbrev=False,
    )
    _add_files(lint)


def _add_batch(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    batch = commands.add_parser(
        "batch",
        help="answer questions given as JSON lines",
        description="Read JSON lines from standard input, write one JSON line each.",
        allow_abbrev=False,
    )
    batch.add_argument("--kind", choices=KINDS, required=True, help="what the lines ask")
    batch.add_argument(
        "--repeat",
        metavar="N",
        type=positive,
        default=1,
        help="warm calls per line to take the median time of (allocation only, default 1)",
    )


def _add_files(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help='JSON or YAML, "-" for standard input; of an object in several the newest counts',
    )


def object_key(text: str) -> ObjectKey:
    """``ns/name``, or a name in the default namespace."""
    namespace, slash, name = text.rpartition("/")
    if not name or (slash and not namespace) or "/" in namespace:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAMESPACE/NAME")
    return ObjectKey(namespace or DEFAULT_NAMESPACE, name)


def feature(text: str) -> tuple[str, bool]:
    """``Name=off`` or ``Name=on``; the gate's prefix ``DRA`` may be there."""
    name, _, state = text.partition("=")
    known = Features().gates()
    if name not in known:
        name = name.removeprefix("DRA")
    if name not in known:
        raise argparse.ArgumentTypeError(f"unknown feature {name!r}; known: {', '.join(known)}")
    if state not in ("on", "off"):
        raise argparse.ArgumentTypeError(f"{text!r}: say {name}=off or {name}=on")
    return name, state == "on"


def positive(text: str) -> int:
    """An integer of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return number


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The parsed command line; exits with code 2 if it is wrong."""
    return parser().parse_args(arguments)
