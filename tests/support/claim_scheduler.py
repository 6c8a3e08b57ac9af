"""A small scheduler of claims, for state machines: cache, tracker, informer, bindings.

What may live here: ``ClaimScheduler``, which does what an embedder would do, one step at a
time, and nothing for pods but their claims. It has devices of its own to give, so that
several can work on the same claims without ever agreeing on devices.
"""

import attrs

from dra_core.api.core import Pod
from dra_core.api.names import DeviceId
from dra_core.api.objects import ResourceClaim
from dra_core.api.request import Target
from dra_core.claims.binding import (
    BindingPlan,
    Bound,
    ClaimBinding,
    RetryLater,
    start_binding,
)
from dra_core.claims.patches import get_claim
from dra_core.claims.reservation import pod_reference
from dra_core.errors import DraError
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.scheduling.errors import InFlightError, StoreError
from dra_core.scheduling.in_flight import ClaimTracker
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import read_claim
from dra_core.testing.faults import FaultyServer
from dra_core.testing.watch import Informer
from support import in_use

MAX_ROUNDS = 3
"""Fewer than by default, so that giving up is met, too."""

CLAIMS = Target("resource.k8s.io", "v1", "resourceclaims", in_use.NAMESPACE)


@attrs.define
class Attempt:
    """One pod on its way to one claim. ``tracked``: its allocation is in flight."""

    pod: Pod
    claim: ResourceClaim
    binding: ClaimBinding
    tracked: bool

    @property
    def uid(self) -> str:
        """UID of the claim that was meant from the beginning."""
        return self.claim.metadata.uid


class ClaimScheduler:
    """Gives ``devices`` to claims of pods, of which some take any allocation."""

    def __init__(
        self, server: ApiServer, sender: FaultyServer, devices: tuple[DeviceId, ...]
    ) -> None:
        self.server, self.sender, self.devices = server, sender, devices
        self.errors: list[DraError] = []
        self.bound: list[Attempt] = []
        self.restart()

    def restart(self) -> None:
        """Forget everything, and list."""
        self.cache = AssumeCache(ResourceClaim, self.errors.append)
        self.tracker = ClaimTracker(self.cache)
        self.attempts: list[Attempt] = []
        self.doubts: list[Attempt] = []
        self.informer = Informer(self.server, CLAIMS, read_claim, self.cache)

    def start(self, pod: Pod, name: str, shares: bool) -> None:
        """Try to get a claim for a pod: pick a device for it, or take it as it is."""
        claim = self.cache.find(in_use.key(name))
        if claim is None:
            return
        allocation = claim.allocation
        if allocation is None:
            state = self.tracker.allocated()
            free = [device for device in self.devices if device not in state.devices]
            if not free:
                return
            allocation = in_use.allocation(free[0])
            to_come = attrs.evolve(claim, allocation=allocation)
            try:
                self.tracker.start([to_come], pod.metadata.uid, basis=state)
            except InFlightError:
                return
        new = claim.allocation is None
        plan = BindingPlan(
            pod_reference(pod), allocation, new, suits=lambda other: shares, max_rounds=MAX_ROUNDS
        )
        attempt = Attempt(pod, claim, start_binding(claim, plan), new)
        self.attempts.append(attempt)
        self.look_at(attempt)

    def step(self, which: int) -> None:
        """Send one request of one attempt."""
        attempt = self.attempts[which % len(self.attempts)]
        assert attempt.binding.request is not None
        attempt.binding = attempt.binding.answered(*self.sender.send(attempt.binding.request))
        self.look_at(attempt)

    def look_at(self, attempt: Attempt) -> None:
        """What an attempt's state means for cache and tracker."""
        binding = attempt.binding
        if binding.from_server and binding.claim.metadata.uid == attempt.uid:
            self.use(binding.claim)
        if binding.outcome is None:
            return
        self.attempts.remove(attempt)
        if isinstance(binding.outcome, Bound):
            self.bound.append(attempt)
        elif isinstance(binding.outcome, RetryLater) and binding.outcome.may_have_happened:
            self.doubts.append(attempt)
            return
        if attempt.tracked:
            self.tracker.release(attempt.uid, attempt.pod.metadata.uid)

    def use(self, claim: ResourceClaim) -> None:
        """Use a copy from the server at once: an allocation ends what is in flight."""
        if claim.allocation is not None:
            self.tracker.succeeded(claim.metadata.uid, claim)
            return
        try:
            self.cache.assume(claim)
        except StoreError:
            return  # older than what the cache shows, or not shown yet

    def resolve(self) -> None:
        """Ask what became of a write that may have happened."""
        attempt = self.doubts[0]
        status, body = self.sender.send(get_claim(attempt.claim))
        if status not in (200, 404):
            return
        self.doubts.remove(attempt)
        if status == 200:
            claim = read_claim(body)
            if claim.metadata.uid == attempt.uid:
                self.use(claim)
        if attempt.tracked:
            self.tracker.release(attempt.uid, attempt.pod.metadata.uid)

    def in_use(self) -> set[DeviceId]:
        """Devices that are in use, checked against a fresh count."""
        self.tracker._check()
        return set(self.tracker.allocated().devices)
