"""The command ``allocate``: from files to a report.

What may live here: the order of the steps, and what is wrong with the question itself.
"""

import uuid
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import NoReturn

import attrs

from dra_core.api.core import Node
from dra_core.api.names import ObjectKey
from dra_core.cli.judge import Judge, Subject, nodes_of_slices, pending_pods
from dra_core.cli.load import Dump, load
from dra_core.cli.progress import Progress
from dra_core.cli.report import Report, input_notes
from dra_core.cli.selectors import nearest
from dra_core.errors import DraError, MalformedObjectError
from dra_core.features import Features


@attrs.frozen
class NotInInputError(DraError, LookupError):
    """Something that was asked for by name is not in the input."""

    kind: str
    name: str
    nearest: tuple[str, ...] = ()

    def __str__(self) -> str:
        hint = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        return f"{self.kind} {self.name!r} is not in the input{hint}"


def allocate(options: Namespace) -> Report:
    """Read, judge, report. Raises ``DraError`` for input that cannot be used."""
    with Progress("reading") as progress:
        dump = load(options.files, _raise, progress.advance)
    nodes = sorted(dump.nodes, key=lambda node: node.name)
    from_slices = not nodes
    if from_slices:
        nodes = nodes_of_slices(dump)
    if options.node is not None:
        nodes = [_node_named(options.node, nodes)]
    subjects = _subjects(dump, options.pod, options.claim)
    with Progress("judging", len(subjects) * len(nodes)) as progress:
        judge = Judge(
            dump,
            nodes,
            Features.from_gates(dict(options.feature)),
            share_ids=lambda: str(uuid.uuid4()),
            budget=options.budget,
            on_node=progress.advance,
        )
        answers = tuple(judge.judge(subject) for subject in subjects)
    names = tuple(node.name for node in nodes)
    pending = not options.pod and not options.claim
    return Report(answers, names, pending, input_notes(dump, from_slices))


def _raise(error: MalformedObjectError) -> NoReturn:
    raise error


def _node_named(name: str, nodes: Sequence[Node]) -> Node:
    found = next((node for node in nodes if node.name == name), None)
    return found or _not_found("Node", name, (node.name for node in nodes))


def _subjects(dump: Dump, pods: Sequence[ObjectKey], claims: Sequence[ObjectKey]) -> list[Subject]:
    if claims:
        known_claims = {claim.metadata.key: claim for claim in dump.claims}
        wanted = tuple(
            known_claims.get(key) or _not_found("ResourceClaim", str(key), map(str, known_claims))
            for key in dict.fromkeys(claims)
        )
        return [Subject(", ".join(str(claim.metadata.key) for claim in wanted), claims=wanted)]
    if pods:
        known_pods = {pod.metadata.key: pod for pod in dump.pods}
        return [
            Subject(
                str(key), known_pods.get(key) or _not_found("Pod", str(key), map(str, known_pods))
            )
            for key in dict.fromkeys(pods)
        ]
    return pending_pods(dump)


def _not_found(kind: str, name: str, known: Iterable[str]) -> NoReturn:
    raise NotInInputError(kind, name, tuple(nearest(name, known, 2)))
