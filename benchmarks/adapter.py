"""From a recorded problem to calls of the library: the only module here that knows both.

``load`` decodes a problem and builds what a scheduler keeps between pods. ``solve`` is
one warm call.
"""

import uuid
from collections.abc import Sequence

import attrs

from benchmarks.problems import Problem
from dra_core.allocator.allocation import Allocator
from dra_core.allocator.plan import Plan
from dra_core.allocator.results import Allocated, Unsatisfiable
from dra_core.api.core import Node, ObjectMeta
from dra_core.api.objects import ResourceClaim
from dra_core.api.wire import Decoder
from dra_core.features import Features
from dra_core.inventory.index import Inventory


@attrs.frozen
class Answer:
    """What a call said: the outcome in the words of ``reference.json``, and its steps."""

    outcome: str
    steps: int


@attrs.frozen
class Loaded:
    """A problem, decoded and indexed. Nothing is in use in any of them."""

    allocator: Allocator
    claims: tuple[ResourceClaim, ...]
    node: Node


def _share_id() -> str:
    return str(uuid.uuid4())


def load(problem: Problem) -> Loaded:
    """Decode a problem and index its inventory; no node is looked at yet.

    Raises ``ValueError`` for a problem with devices in use, which none has.
    """
    if problem["allocated"]:
        raise ValueError(f"{problem['id']}: devices in use are not read")
    decoder = Decoder()
    inventory = Inventory(decoder.resource_slice(item) for item in problem["slices"])
    allocator = Allocator(
        inventory,
        [decoder.device_class(item) for item in problem["classes"]],
        share_ids=_share_id,
        features=Features.from_gates(problem["features"]),
    )
    claims = tuple(decoder.resource_claim(item) for item in problem["claims"])
    return Loaded(allocator, claims, decoder.node(problem["node"]))


def node_called(name: str) -> Node:
    """A node of that name, with the label that real nodes have."""
    return Node(ObjectMeta(name=name, labels={"kubernetes.io/hostname": name}))


def plan(loaded: Loaded) -> Plan:
    """The problem's claims, prepared for many nodes."""
    return loaded.allocator.plan(loaded.claims)


def solve(
    loaded: Loaded, node: Node | None = None, claims: Sequence[ResourceClaim] | Plan | None = None
) -> Answer:
    """Allocate the problem's claims on its node from scratch, or others, or elsewhere."""
    outcome = loaded.allocator.allocate(
        loaded.claims if claims is None else claims,
        loaded.node if node is None else node,
    )
    if isinstance(outcome, Allocated):
        return Answer("allocated", outcome.steps)
    if isinstance(outcome, Unsatisfiable):
        return Answer("unsatisfiable", outcome.steps)
    return Answer("undecided", outcome.steps)
