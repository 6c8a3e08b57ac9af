"""Structured claims: the scheduler allocates them, from ResourceSlices.

What may live here: the kind of claims of resource.k8s.io/v1, v1beta2 and v1beta1, and of
v1alpha3 where ``spec.controller`` is not set.
"""

from collections.abc import Callable, Sequence

import attrs

from dra_core.allocator.allocation import DEFAULT_BUDGET
from dra_core.allocator.plan import Plan
from dra_core.allocator.results import Allocated, Unsatisfiable
from dra_core.api.core import Node
from dra_core.api.objects import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from dra_core.claims.binding import BindingPlan
from dra_core.claims.deallocation import allocated_by_scheduler
from dra_core.claims.reservation import MAX_CONSUMERS
from dra_core.errors import AllocationError
from dra_core.inventory.allocated import AllocatedState
from dra_core.scheduling.cycle_input import CycleInput
from dra_core.scheduling.cycle_kinds import ClaimForm, Granted, NodeAnswer
from dra_core.scheduling.cycle_verdicts import NodeProblem, NodeReason
from dra_core.scheduling.wakeups_demand import DeviceClaims


@attrs.frozen
class StructuredClaims:
    """Claims that are allocated from the slices of ``given``.

    ``version`` is the served version of the API, ``consumers`` the most consumers of a claim
    (256, or 32 in clusters up to 1.32). ``budget``, ``deadline`` and ``cancel`` bound the
    search on each node, see ``Allocator.allocate``.
    """

    given: CycleInput
    version: str = "v1"
    consumers: int = MAX_CONSUMERS
    budget: int | None = DEFAULT_BUDGET
    deadline: Callable[[], bool] | None = None
    cancel: Callable[[], bool] | None = None

    @property
    def form(self) -> ClaimForm:
        return ClaimForm(self.version)

    @property
    def basis(self) -> AllocatedState:
        return self.given.basis

    def handles(self, claim: ResourceClaim) -> bool:
        return not claim.controller and allocated_by_scheduler_if_at_all(claim)

    def by_driver(self, claim: ResourceClaim) -> bool:
        return False

    def immediate(self, claim: ResourceClaim) -> bool:
        return False

    def missing(self, claim: ResourceClaim) -> AllocationError | None:
        """The first missing class. Raises ``AllocationError`` for any other fault of the claim."""
        missing = DeviceClaims(self.given.classes.get).missing(claim)
        error = None if missing else self.given.allocator.plan([claim]).error
        if error is not None:
            raise error
        return missing

    def prepare(self, claims: Sequence[ResourceClaim]) -> "PreparedStructured":
        return PreparedStructured(self, self.given.allocator.plan(claims))

    def limit(self, claim: ResourceClaim) -> int:
        return self.consumers

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
        return BindingPlan(
            consumer,
            allocation,
            is_new,
            suits,
            version=self.version,
            limit=self.consumers,
            timestamp=timestamp,
        )

    def by_scheduler(self, claim: ResourceClaim) -> bool:
        return allocated_by_scheduler(claim)

    def delayed(self, claim: ResourceClaim) -> bool:
        return True


def allocated_by_scheduler_if_at_all(claim: ResourceClaim) -> bool:
    """False for a claim that a controller allocated, whatever its spec says."""
    return claim.allocation is None or allocated_by_scheduler(claim)


@attrs.frozen
class PreparedStructured:
    """Structured claims of one pod, laid out for the search on any node."""

    kind: StructuredClaims
    plan: Plan

    def on_node(self, node: Node) -> NodeAnswer:
        """As the protocol says. Raises ``StaleInputError`` if the input is of the past."""
        kind = self.kind
        if not self.plan.claims:
            return Granted()
        kind.given.check_current()
        outcome = kind.given.allocator.allocate(
            self.plan,
            node,
            kind.given.allocated,
            budget=kind.budget,
            deadline=kind.deadline,
            cancel=kind.cancel,
        )
        if isinstance(outcome, Allocated):
            return Granted(outcome.results)
        if isinstance(outcome, Unsatisfiable):
            return NodeProblem(NodeReason.DOES_NOT_FIT, cause=outcome)
        return outcome
