"""Which nodes to ask drivers about, and when to select one: decisions for the record.

What may live here: pure functions from what is known to a record with more in it. A claim
is *pending* here if it is not allocated and a control plane controller is to allocate it,
once a node is selected; claims are named by the pod's entries in ``spec.resourceClaims``.

The order in an attempt: nodes that drivers found unsuitable are filtered out; the fitting
ones become potential nodes; the node that was picked is selected if that is safe. What was
recorded is published before binding, and the pod waits.

Source: KEP-3063.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

import attrs

from dra_core.api.scheduling_context import MAX_NODES, PodSchedulingContext
from dra_core.scheduling.context import ContextRecord

Sampler = Callable[[Sequence[str], int], Sequence[str]]
"""Some of the given names, chosen at random without repetition: ``random.Random(…).sample``.
The caller's, so that an attempt can be repeated."""


def unsuitable_claims(
    context: PodSchedulingContext | None, node: str, pending: Iterable[str]
) -> tuple[str, ...]:
    """The pending claims that cannot be allocated on ``node``, as far as drivers have said."""
    if context is None:
        return ()
    reports = ((claim, context.status_of(claim)) for claim in pending)
    return tuple(claim for claim, report in reports if report and node in report.unsuitable_nodes)


def choose_potential_nodes(
    fitting: Iterable[str], existing: Iterable[str], sample: Sampler, selected: str = ""
) -> tuple[str, ...] | None:
    """For which nodes to ask, sorted; ``None`` if the ``existing`` list will do.

    It does if no fitting node is missing from it; more nodes than fit are no harm. More than
    128 fitting nodes: a random sample, with ``selected`` in it if that fits. Drivers need
    not look at any node but these, so a selected one must be among them (k/k#120871).
    Cost: O(n log n) for n fitting nodes.
    """
    names = sorted(set(fitting))
    if set(existing).issuperset(names):
        return None
    if len(names) <= MAX_NODES:
        return tuple(names)
    kept = [name for name in names if name == selected]
    others = [name for name in names if name != selected]
    return tuple(sorted([*kept, *sample(others, MAX_NODES - len(kept))]))


class ReserveAnswer(StrEnum):
    """What has to happen with the context before the pod can be bound."""

    NOTHING = "no claim waits for a driver"
    PUBLISH = "publish what was recorded, then wait for drivers"
    WAIT = "wait for drivers"


@attrs.frozen
class ContextReservation:
    """The record after a node was picked, and what comes next.

    Unless that is ``NOTHING``, the attempt ends: nothing is allocated, reserved or bound.
    """

    record: ContextRecord
    answer: ReserveAnswer


def propose_node(
    record: ContextRecord,
    node: str,
    fitting: Iterable[str],
    pending: Sequence[str],
    sample: Sampler,
    *,
    others_to_allocate: bool = False,
) -> ContextReservation:
    """Record what drivers have to be told now that ``node`` was picked among the ``fitting``.

    The potential nodes as ``choose_potential_nodes`` has them. And the selected node, unless
    it is selected already, if drivers may allocate: exactly one claim is pending and
    nothing else is to be allocated for the pod (``others_to_allocate``: by a scheduler), so
    that no claim can be allocated in vain; or every pending claim has a report, which
    filtering has taken into account. What an earlier attempt recorded in vain gives way.
    """
    if not pending:
        return ContextReservation(record, ReserveAnswer.NOTHING)
    if _may_select(record, pending, others_to_allocate):
        record = record.select_node(node)
    elif record.selected_node:
        # Of an earlier attempt, and never published: nothing vouches for it any more.
        record = attrs.evolve(record, selected_node=None)
    names = choose_potential_nodes(
        {*fitting, node}, record.existing.potential_nodes, sample, selected=node
    )
    record = attrs.evolve(record, potential_nodes=None)
    if names is not None:
        record = record.set_potential_nodes(names)
    return ContextReservation(record, ReserveAnswer.PUBLISH if record.dirty else ReserveAnswer.WAIT)


def _may_select(record: ContextRecord, pending: Sequence[str], others_to_allocate: bool) -> bool:
    if len(pending) == 1 and not others_to_allocate:
        return True
    known = record.known
    return known is not None and all(known.status_of(claim) is not None for claim in pending)
