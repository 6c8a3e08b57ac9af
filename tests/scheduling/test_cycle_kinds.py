"""Kinds of claims come by a protocol that the caller registers."""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from dra_core.allocator.results import Undecided
from dra_core.api.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.api.objects import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from dra_core.api.wire import decode_resource_claim, encode_whole
from dra_core.claims.binding import BindingPlan
from dra_core.errors import AllocationError
from dra_core.inventory.allocated import AllocatedState
from dra_core.scheduling.cycle_kinds import ClaimForm, Granted, NodeAnswer
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import (
    NodeFailed,
    NodeFits,
    NodeProblem,
    NodeReason,
    NodeUndecided,
    NodeUnfit,
    Stopped,
    StopReason,
)
from dra_core.scheduling.extended_claim import IN_MEMORY_NAME
from support import allocation_builders as build
from support.cycle_site import NOW, Site, claim, fitting, is_in, pod
from support.pods import GPU, container


@attrs.frozen
class TokenClaim(ResourceClaim):
    """A claim of another shape: all it wants is a token of a node. ``tokens`` is what it reads."""

    tokens: int = 1

    def whole(self, version: str) -> dict[str, Any]:
        """As ``dra_core.claims.whole`` asks for it."""
        return encode_whole(ResourceClaim(**shared_fields(self)), version)


def shared_fields(claim: ResourceClaim) -> dict[str, Any]:
    """What every claim has."""
    return {field.name: getattr(claim, field.name) for field in attrs.fields(ResourceClaim)}


class TokenMissingError(AllocationError):
    """A kind has errors of its own."""


@attrs.define
class Tokens:
    """A kind: each node has a number of tokens, and hands out one per claim."""

    free: dict[str, int]
    mode: str = ""
    asked: list[str] = attrs.field(factory=list)

    @property
    def form(self) -> ClaimForm:
        return ClaimForm("v1", ("futureField",), self.decode)

    @property
    def basis(self) -> AllocatedState | None:
        return None

    def decode(self, body: Any) -> ResourceClaim:
        return TokenClaim(**shared_fields(decode_resource_claim(body)))

    def handles(self, claim: ResourceClaim) -> bool:
        return isinstance(claim, TokenClaim)

    def by_driver(self, claim: ResourceClaim) -> bool:
        return False

    def immediate(self, claim: ResourceClaim) -> bool:
        return False

    def by_scheduler(self, claim: ResourceClaim) -> bool:
        return True

    def delayed(self, claim: ResourceClaim) -> bool:
        return True

    def limit(self, claim: ResourceClaim) -> int:
        return 1

    def missing(self, claim: ResourceClaim) -> AllocationError | None:
        return TokenMissingError(str(claim.metadata.key), "") if not self.free else None

    def prepare(self, claims: Sequence[ResourceClaim]) -> "PreparedTokens":
        return PreparedTokens(self, len(claims))

    def binding_plan(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult,
        consumer: ResourceClaimConsumerReference,
        *,
        is_new: bool,
        suits: Callable[[AllocationResult], bool],
        timestamp: str,
    ) -> BindingPlan:
        self.asked.append(timestamp)
        return BindingPlan(
            consumer, allocation, is_new, suits, finalizer="example.com/token",
            limit=1, extra_status={"futureField": "set"}, decode=self.decode,
        )  # fmt: skip


@attrs.frozen
class PreparedTokens:
    """Claims that want tokens."""

    kind: Tokens
    number: int

    def on_node(self, node: Node) -> NodeAnswer:
        if self.kind.mode == "undecided":
            return Undecided("budget", 1)  # type: ignore[arg-type]
        if self.kind.mode == "error":
            raise AllocationError("a", "b")
        if self.kind.free.get(node.name, 0) < self.number:
            return NodeProblem(NodeReason.DOES_NOT_FIT, cause="no token left")
        requirement = NodeSelectorRequirement("metadata.name", "In", (node.name,))
        selector = NodeSelector((NodeSelectorTerm((), (requirement,)),))
        return Granted((AllocationResult(node_selector=selector),) * self.number)


@pytest.fixture
def site() -> Site:
    """Structured claims, and one that wants a token."""
    site = Site()
    site.add(*build.CLASSES)
    site.devices("node-1", "a1")
    site.devices("node-2", "b1")
    site.add(claim("s"), claim("t"))
    stored = site.claims.get(claim("t").metadata.key)
    token = TokenClaim(stored.metadata, stored.devices)
    site.claims.observe_delete(stored)
    site.claims.observe(token)
    return site


def test_a_registered_kind_takes_part(site: Site) -> None:
    """v1 here, others in rooms of their own: claims of both kinds in one pod."""
    tokens = Tokens({"node-2": 1})
    cycle = site.filtered(pod("t", "s"), kinds=[tokens, *site.kinds()])
    assert fitting(cycle) == ["node-2"]
    refused = cycle.nodes["node-1"]
    assert refused == NodeUnfit(
        site.nodes["node-1"], (NodeProblem(NodeReason.DOES_NOT_FIT, cause="no token left"),)
    )
    fits = cycle.nodes["node-2"]
    assert isinstance(fits, NodeFits)
    assert [one.claim.name for one in fits.planned] == ["t", "s"]
    cycle.reserve("node-2")
    assert len(site.tracker.in_flight()) == 2
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BINDABLE)
    stored = site.server.find("resourceclaims", "default", "t")
    assert stored is not None
    # Written in the way of the kind, and read in its way.
    assert stored["metadata"]["finalizers"] == ["example.com/token"]
    assert stored["status"]["futureField"] == "set"
    assert isinstance(site.claims.get(claim("t").metadata.key), TokenClaim)
    assert tokens.asked == ["2026-01-01T12:00:00Z"]


def test_the_first_kind_that_handles_a_claim_has_it(site: Site) -> None:
    """Order of registration decides."""
    structured = site.kinds()
    cycle = site.filtered(pod("t"), kinds=[*structured, Tokens({})])
    assert fitting(cycle) == ["node-1", "node-2"]


def test_limits_and_what_is_missing_are_the_kinds(site: Site) -> None:
    """A kind says how many consumers a claim may have, and what has to appear first."""
    cycle = site.cycle(pod("t"), kinds=[Tokens({})])
    cycle.pre_enqueue()
    verdict = cycle.pre_filter(NOW)
    assert isinstance(verdict, Stopped)
    assert verdict.reason is StopReason.PARAMETERS_MISSING
    assert isinstance(verdict.cause, TokenMissingError)
    tokens = Tokens({"node-1": 5})
    used = site.filtered(pod("t"), kinds=[tokens])
    used.reserve("node-1")
    site.drive(used, used.pre_bind(NOW))
    second = site.cycle(pod("t", name="other"), kinds=[tokens])
    second.pre_enqueue()
    assert second.pre_filter(NOW) == Stopped(StopReason.FULL, "t")


def test_what_a_kind_deallocates_is_cleared_in_its_way(site: Site) -> None:
    """Members of the status that later versions do not have are cleared, too."""
    tokens = Tokens({"node-1": 1})
    cycle = site.filtered(pod("t"), kinds=[tokens])
    cycle.reserve("node-1")
    site.drive(cycle, cycle.pre_bind(NOW))
    site.drive(cycle, cycle.unreserve())
    del site.nodes["node-1"]
    again = site.filtered(pod("t"), kinds=[tokens])
    assert fitting(again) == []
    site.drive(again, again.post_filter())
    assert again.verdict == Stopped(StopReason.DEALLOCATED, "t", retry=True)
    stored = site.server.find("resourceclaims", "default", "t")
    assert stored is not None
    assert "futureField" not in stored["status"]
    assert "allocation" not in stored["status"]


def test_undecided_and_failing_kinds(site: Site) -> None:
    """A kind may not know, or find the input at fault: on this node."""
    unsure = site.filtered(pod("t"), kinds=[Tokens({"node-1": 1}, "undecided")])
    assert isinstance(unsure.nodes["node-1"], NodeUndecided)
    failing = site.filtered(pod("t"), kinds=[Tokens({"node-1": 1}, "error")])
    assert isinstance(failing.nodes["node-1"], NodeFailed)


def test_the_special_claim_is_of_one_kind(site: Site) -> None:
    """The claim for extended resources goes to the first kind that handles it, beside the
    pod's claims of other kinds."""
    site.add(attrs.evolve(build.CLASSES[0], extended_resource_name=GPU))
    tokens = Tokens({"node-1": 1, "node-2": 1})
    asking = pod("t", containers=(container("c1", gpu=1),))
    cycle = site.filtered(asking, kinds=[tokens, *site.kinds()])
    fits = cycle.nodes["node-1"]
    assert isinstance(fits, NodeFits)
    assert [len(one.allocation.results) for one in fits.planned] == [0, 1]
    assert [one.claim.name for one in fits.planned] == ["t", IN_MEMORY_NAME]


def test_extended_resources_without_a_kind_for_their_claim_stop_the_pod(site: Site) -> None:
    """A class offers the resource, but nobody here could make the claim: not "it fits"."""
    site.add(attrs.evolve(build.CLASSES[0], extended_resource_name=GPU))
    asking = pod("t", containers=(container("c1", gpu=1),))
    cycle = site.cycle(asking, kinds=[Tokens({"node-1": 1})])
    cycle.pre_enqueue()
    assert cycle.pre_filter(NOW) == Stopped(StopReason.UNKNOWN_KIND)
    assert is_in(cycle, CycleState.OVER)
