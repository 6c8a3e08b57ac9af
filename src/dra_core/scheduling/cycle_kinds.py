"""Kinds of claims, as far as a cycle has to know: a protocol.

What may live here: ``ClaimKind`` and what its methods return. The kinds themselves are
registered by the caller: ``cycle_structured`` and ``cycle_classic`` have those of the
versions that have DeviceClasses, ``dra_core.v1alpha2`` has those of that version.

A kind says who allocates a claim and how it is written. What all claims have in common
(names, reservations, the assume cache, what is in flight) is the cycle's own business. A
claim of another shape is a subclass of ``ResourceClaim``.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from dra_core.allocator.results import Undecided
from dra_core.api.core import Node
from dra_core.api.objects import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from dra_core.api.wire import decode_resource_claim
from dra_core.claims.binding import BindingPlan
from dra_core.inventory.allocated import AllocatedState
from dra_core.scheduling.cycle_verdicts import NodeProblem
from dra_core.scheduling.wakeups_demand import ClaimFacts


@attrs.frozen
class ClaimForm:
    """How claims of a kind are read and written.

    ``version`` is the served version of the API. ``extra_cleared`` are members of the
    status to be cleared with the allocation that later versions do not have. ``decode``
    makes a claim of an answer's JSON; default: ``decode_resource_claim``.
    """

    version: str = "v1"
    extra_cleared: tuple[str, ...] = ()
    decode: Callable[[Any], ResourceClaim] | None = None

    def read(self, body: Any) -> ResourceClaim:
        """The claim in an answer. Raises ``MalformedObjectError``."""
        return self.decode(body) if self.decode else decode_resource_claim(body, self.version)


@attrs.frozen
class Granted:
    """What the claims get on a node, in their order; empty if a driver has to allocate."""

    allocations: tuple[AllocationResult, ...] = ()


NodeAnswer = Granted | NodeProblem | Undecided


class PreparedClaims(Protocol):
    """Claims of one kind that need an allocation, made ready for asking about many nodes."""

    def on_node(self, node: Node) -> NodeAnswer:
        """What they would get on the node, all together. Changes nothing; any thread may ask.

        Raises ``AllocationError``.
        """


class ClaimKind(ClaimFacts, Protocol):
    """How claims of one kind come to an allocation.

    With what wake-ups have to know (``ClaimFacts``), so that one object can be registered
    for both.
    """

    @property
    def form(self) -> ClaimForm:
        """How they are read and written."""

    @property
    def basis(self) -> AllocatedState | None:
        """What was in use when devices are picked, if that is counted by the claim tracker."""

    def handles(self, claim: ResourceClaim) -> bool:
        """Whether the claim is of this kind. The first kind that says so has it."""

    def prepare(self, claims: Sequence[ResourceClaim]) -> PreparedClaims:
        """Unallocated claims of one pod, in its order, for which nothing is missing."""

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
        """What is to become of the claim; the arguments are the plan's fields.

        ``timestamp`` is "" where binding conditions are off.
        """

    def delayed(self, claim: ResourceClaim) -> bool:
        """Whether its controller would allocate it again only for a pod that needs it."""
