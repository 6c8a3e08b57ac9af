"""Everything that ``allocate`` has to say, before it is text or JSON.

What may live here: the value that the outputs share, and what they have to say about
the input.
"""

import attrs

from dra_core.cli.judge import Answer
from dra_core.cli.load import Dump, counted


@attrs.frozen
class Report:
    """``pending``: every pending pod was judged, none was asked for by name."""

    answers: tuple[Answer, ...]
    nodes: tuple[str, ...]
    pending: bool
    notes: tuple[str, ...] = ()


def input_notes(dump: Dump, nodes_from_slices: bool) -> tuple[str, ...]:
    """What a reader of the answer should know about the input."""
    notes = list(dump.notes)
    if nodes_from_slices:
        notes.insert(
            0,
            "no Node objects in the input: the nodes are those that slices name, "
            "their labels are not known",
        )
    finished = _held_by_finished_pods(dump)
    if finished:
        notes.append(
            f"{counted(finished, 'claim')} of finished pods not released yet: counted as in use"
        )
    if dump.skipped:
        kinds = ", ".join(f"{name} ({number:,})" for name, number in dump.skipped)
        total = sum(number for _, number in dump.skipped)
        notes.append(f"{counted(total, 'object')} of other kinds ignored: {kinds}")
    return tuple(notes)


def _held_by_finished_pods(dump: Dump) -> int:
    """Allocated claims that only finished pods are entered for."""
    finished = {pod.metadata.uid for pod in dump.pods if pod.finished}
    return sum(
        claim.allocation is not None
        and bool(claim.reserved_for)
        and all(entry.uid in finished for entry in claim.reserved_for)
        for claim in dump.claims
    )
