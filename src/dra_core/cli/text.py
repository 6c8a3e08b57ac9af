"""Answers as text for people.

What may live here: layout and wording of the text output. Text is made line by line and
every line goes through ``printable``, because names come from the input and a terminal
obeys control characters. Opaque parameters never get here: no answer is printed whole.
"""

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

from dra_core.api.names import DeviceId
from dra_core.api.objects import AllocationResult, DeviceRequestAllocationResult
from dra_core.cli.judge import (
    Answer,
    ClaimState,
    ClaimUse,
    NodeAnswer,
    Verdict,
    names_on,
)
from dra_core.cli.load import counted
from dra_core.cli.report import Report
from dra_core.explanation import lines as explanation_lines

NOT_CONSIDERED: Final = (
    "Devices only: taints, affinity, CPU and memory of nodes are not considered."
)

_NODES_WIDTH: Final = 30
_NODES_LINES: Final = 4
_VERDICTS: Final = {
    Verdict.FITS: "fits",
    Verdict.UNDECIDED: "undecided",
    Verdict.ERROR: "error",
    Verdict.DOES_NOT_FIT: "no",
}
"""In the order in which the rows of a table come."""

_STATES: Final = {
    ClaimState.ALLOCATED: "allocated already",
    ClaimState.UNALLOCATED: "",
    ClaimState.WOULD_BE_CREATED: "would be created",
    ClaimState.NOT_NEEDED: "not needed",
    ClaimState.UNUSABLE: "not usable",
}


def printable(text: str) -> str:
    """The text with every character that is not printable escaped, lone surrogates too."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )


def render(report: Report, width: int = 100) -> Iterator[str]:
    """The whole output: the summary, what to know about the input, a table per pod."""
    for line in _render(report, width):
        yield printable(line.rstrip())


def _render(report: Report, width: int) -> Iterator[str]:
    yield summary(report)
    yield NOT_CONSIDERED
    for note in report.notes:
        yield f"Note: {note}."
    for answer in report.answers:
        yield ""
        yield from _render_answer(answer, len(report.nodes), width)


def summary(report: Report) -> str:
    """How many fit: the first line."""
    found = [answer.verdict for answer in report.answers]
    subject = "pending pod" if report.pending else "pod"
    if any(answer.kind != "Pod" for answer in report.answers):
        subject = "set of claims" if len(found) == 1 else "sets of claims"
    fits = found.count(Verdict.FITS)
    parts = [f"{fits:,} {'fits' if fits == 1 else 'fit'}"]
    nowhere = found.count(Verdict.DOES_NOT_FIT)
    if nowhere:
        parts.append(f"{nowhere:,} {'fits' if nowhere == 1 else 'fit'} nowhere")
    undecided = found.count(Verdict.UNDECIDED)
    if undecided:
        parts.append(f"{undecided:,} undecided")
    head = f"{counted(len(found), subject)} on {counted(len(report.nodes), 'node')}"
    return f"{head}: {', '.join(parts)}." if found else f"{head}: nothing to do."


def _render_answer(answer: Answer, nodes: int, width: int) -> Iterator[str]:
    yield f"{answer.name}: {_verdict(answer, nodes)}"
    for use in answer.uses:
        yield f"  {_claim_line(use)}"
    if answer.problem:
        for line in explanation_lines(answer.problem):
            yield from _wrapped(f"  {line}", width)
        return
    groups = _grouped(answer)
    names = [_node_names([node.node for node in members]) for members in groups]
    column = max(len(row) for rows in [["NODE"], *names] for row in rows)
    yield f"  {'NODE':<{column}}  RESULT"
    for members, rows in zip(groups, names, strict=True):
        right = [
            piece
            for line in _details(members[0], answer)
            for piece in _wrapped(line, max(width - column - 4, 40))
        ]
        for name, detail in zip_longest(rows, right, fillvalue=""):
            yield f"  {name:<{column}}  {detail}"


def _verdict(answer: Answer, nodes: int) -> str:
    if answer.verdict is Verdict.FITS:
        fits = sum(node.verdict is Verdict.FITS for node in answer.nodes)
        text = f"fits on {fits:,} of {counted(nodes, 'node')}"
    elif answer.verdict is Verdict.UNDECIDED:
        text = "undecided"
    elif answer.problem:
        text = "cannot be allocated"
    else:
        text = "fits nowhere"
    if answer.finished:
        return f"{text} (the pod has finished)"
    return f"{text} (the pod is on {answer.assigned} already)" if answer.assigned else text


def _claim_line(use: ClaimUse) -> str:
    facts = [f"template {use.template}"] if use.template else []
    if _STATES[use.state]:
        facts.append(_STATES[use.state])
    what = f"claim {use.entry}" if use.entry else "claim"
    if use.name:
        what = f"{what}: {use.name}" if use.entry else f"{what} {use.name}"
    return f"{what} ({', '.join(facts)})" if facts else what


def _grouped(answer: Answer) -> list[list[NodeAnswer]]:
    """Nodes with equal answers together; best verdict first, then by the first node."""
    groups: dict[tuple[Verdict, tuple[str, ...]], list[NodeAnswer]] = {}
    for node in answer.nodes:
        groups.setdefault((node.verdict, tuple(_details(node, answer))), []).append(node)
    order = list(_VERDICTS)
    return sorted(groups.values(), key=lambda members: order.index(members[0].verdict))


def _node_names(names: Sequence[str]) -> list[str]:
    """Names in a narrow column; those that do not fit in a few lines as a number."""
    rows = [""]
    for shown, name in enumerate(names):
        last = shown == len(names) - 1
        word = name if last else f"{name},"
        if not rows[-1]:
            rows[-1] = word
        elif len(rows[-1]) + 1 + len(word) <= _NODES_WIDTH:
            rows[-1] += f" {word}"
        elif len(rows) == _NODES_LINES:
            return [*rows, f"and {len(names) - shown:,} more"]
        else:
            rows.append(word)
    return rows


def _details(node: NodeAnswer, answer: Answer) -> list[str]:
    verdict = _VERDICTS[node.verdict]
    if node.verdict is Verdict.FITS:
        found = _devices(node, answer)
        return [f"{verdict}: {found[0]}", *(f"      {line}" for line in found[1:])]
    told = list(explanation_lines(node.causes))
    return [f"{verdict}: {told[0]}", *(f"  {line}" for line in told[1:])] if told else [verdict]


def _devices(node: NodeAnswer, answer: Answer) -> list[str]:
    """``request: device (driver)``, requests of equal name and driver together."""
    labels = [use.label for use in answer.open_claims]
    found = [
        line
        for label, result in zip(labels, node.results, strict=True)
        for line in _claim_devices(node.node, label if len(labels) > 1 else "", result)
    ]
    return found or ["no devices needed" if labels else "allocated already"]


def _claim_devices(node: str, label: str, result: AllocationResult) -> Iterator[str]:
    groups: dict[tuple[str, str], list[str]] = {}
    for picked in result.results:
        groups.setdefault((picked.request, picked.driver), []).append(_device(node, picked))
    for (request, driver), devices in groups.items():
        name = f"{label}/{request}" if label else request
        # Requests of v1alpha2 have no names of their own: they are called by their driver.
        told = "" if request.startswith(f"{driver}[") else f" ({driver})"
        yield f"{name}: {', '.join(devices)}{told}"


def _device(node: str, picked: DeviceRequestAllocationResult) -> str:
    device_id = DeviceId(picked.driver, picked.pool, picked.device)
    facts = [f"{name} {amount}" for name, amount in (picked.consumed_capacity or {}).items()]
    if picked.admin_access:
        facts.append("admin access")
    if picked.binding_conditions:
        facts.append(f"waits for {', '.join(picked.binding_conditions)}")
    name = names_on(node).device(device_id)
    return f"{name} [{', '.join(facts)}]" if facts else name


def _wrapped(line: str, width: int) -> list[str]:
    """A line in pieces no wider than ``width``, the later ones indented further."""
    indent = " " * (len(line) - len(line.lstrip(" ")) + 4)
    pieces = textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )
    return pieces or [line]
