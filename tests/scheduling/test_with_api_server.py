"""Schedulers, the claim controller and bad luck around one API server, in any order.

Two schedulers bind claims by the state machine of ``claims.binding``, each with its
cache, its tracker and its informer. The claim controller deallocates what nobody uses any
more. Requests and answers get lost, others are faster, watches lag behind, the server and
the schedulers restart. After every request or step the
server's objects are looked at:

* no claim is allocated without the finalizer;
* no device is held twice, and every one that is held is in use for its scheduler;
* no pod is bound with a claim that is not reserved for it.

And when the bad luck ends, everything settles.
"""

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from dra_core.api.names import DeviceId
from dra_core.api.objects import FINALIZER, ResourceClaim
from dra_core.api.request import ApiRequest, Target
from dra_core.api.wire import decode_pod, encode_allocation_result
from dra_core.claims.patches import deallocate
from dra_core.inventory.allocated import AllocatedState
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import ClaimController, read_claim
from dra_core.testing.faults import Fault, FaultyServer, script
from support import in_use
from support.claim_json import claim_json
from support.claim_scheduler import CLAIMS, ClaimScheduler
from support.machines import machine_settings

NAMES = st.sampled_from(["a", "b"])
WHICH = st.integers(0, 5)
SCHEDULER = st.integers(0, 1)
NOTHING: list[Fault | None] = [None]
FAULTS = st.sampled_from(NOTHING * (2 * len(Fault)) + list(Fault))
OUTAGES: list[list[Fault | None]] = [
    [Fault.LOST_ANSWER, Fault.UNAVAILABLE, Fault.TOO_MANY],
    [Fault.HIDDEN, Fault.LOST_REQUEST, Fault.LOST_ANSWER],
    [Fault.LOST_REQUEST, Fault.LOST_REQUEST, Fault.LOST_REQUEST],
]
LUCK = st.lists(FAULTS, min_size=1, max_size=3) | st.sampled_from(OUTAGES)
PODS = Target("", "v1", "pods", in_use.NAMESPACE)
DEVICES = (
    (in_use.device("d1", "pool-0"),),
    (in_use.device("d1", "pool-1"), in_use.device("d2", "pool-1")),
)
DISTURBANCES = (
    "delete the pod",
    "delete the pod",
    "delete the claim",
    "touch the claim",
    "deallocate the claim",
    "list anew",
    "restart the scheduler",
    "restart the controller",
    "restart the server",
)


def claim_at(name: str) -> Target:
    """Where a claim is."""
    return attrs.evolve(CLAIMS, name=name)


def claims_of(server: ApiServer) -> list[ResourceClaim]:
    """The claims as the server has them."""
    return [read_claim(obj) for obj in server.objects("resourceclaims")]


class Inspected(FaultyServer):
    """Looks at the claims after every request."""

    def send(self, request: ApiRequest) -> tuple[int | None, Any]:
        """No state "allocated without finalizer" is ever stored."""
        answer = super().send(request)
        for claim in claims_of(self.server):
            assert claim.allocation is None or FINALIZER in claim.metadata.finalizers, claim
        return answer


class ClaimsMachine(RuleBasedStateMachine):
    """Everything that can happen to two claims."""

    def __init__(self) -> None:
        super().__init__()
        self.server = ApiServer()
        self.sender = Inspected(self.server, script(()))
        self.controller = ClaimController(self.server, self.sender.send)
        self.schedulers: list[ClaimScheduler] = []
        self.pods = 0

    @initialize(steps=st.integers(0, 2))
    def begin(self, steps: int) -> None:
        """One claim was never used, one is being deallocated, because its pod is gone."""
        self.create("b")
        self.server.seed(
            claim_json(
                name="a",
                finalizers=(FINALIZER,),
                allocation=encode_allocation_result(in_use.allocation(DEVICES[0][0])),
                reserved_for=("gone",),
            )
        )
        self.controller.look()
        for _ in range(steps):
            self.controller.step()
        self.schedulers = [ClaimScheduler(self.server, self.sender, own) for own in DEVICES]

    def luck(self, fault: Fault | None) -> None:
        """What happens to the next request."""
        self.sender.source = script([fault])

    # --- what is to be done

    def create(self, name: str) -> None:
        """A user wants a device."""
        requests = [{"name": "req", "exactly": {"deviceClassName": "gpu"}}]
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": {"devices": {"requests": requests}},
        }
        self.server.send(CLAIMS.create(body))

    @rule(number=SCHEDULER, name=NAMES, shares=st.booleans())
    def start(self, number: int, name: str, shares: bool) -> None:
        """A new pod needs a claim, and the scheduler works on what its cache shows."""
        self.pods += 1
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{self.pods}"},
            "spec": {"resourceClaims": [{"name": "x", "resourceClaimName": name}]},
        }
        pod = decode_pod(self.server.send(PODS.create(body)).body)
        self.schedulers[number].start(pod, name, shares)

    def some(self, number: int, having: Callable[[ClaimScheduler], object]) -> ClaimScheduler:
        """A scheduler that has something to do, the one of that number if both have."""
        able = [scheduler for scheduler in self.schedulers if having(scheduler)]
        return able[number % len(able)]

    @precondition(lambda self: any(s.attempts for s in self.schedulers))
    @rule(number=SCHEDULER, which=WHICH, faults=LUCK)
    def step(self, number: int, which: int, faults: list[Fault | None]) -> None:
        """An attempt goes on by a few requests."""
        for fault in faults:
            self.luck(fault)
            if any(scheduler.attempts for scheduler in self.schedulers):
                self.some(number, lambda s: s.attempts).step(which)

    @precondition(lambda self: any(s.doubts for s in self.schedulers))
    @rule(number=SCHEDULER, fault=FAULTS)
    def resolve(self, number: int, fault: Fault | None) -> None:
        """Nobody knows what became of a write; the claim is read."""
        self.luck(fault)
        self.some(number, lambda s: s.doubts).resolve()

    @rule(number=SCHEDULER, most=st.integers(1, 4))
    def show(self, number: int, most: int) -> None:
        """The watch shows some of what happened."""
        self.schedulers[number].informer.show(most)

    @rule(which=WHICH, fault=FAULTS)
    def control(self, which: int, fault: Fault | None) -> None:
        """The claim controller goes on by a request, or looks what there is to do."""
        self.luck(fault)
        if not self.controller.step(which):
            self.controller.look()

    # --- what interferes, one thing at a time, so that it does not prevail

    @rule(what=st.sampled_from(DISTURBANCES), number=SCHEDULER, name=NAMES, which=WHICH)
    def disturb(self, what: str, number: int, name: str, which: int) -> None:
        """Users, another scheduler's preemption, and restarts."""
        scheduler = self.schedulers[number]
        if what == "delete the pod":
            pods = self.server.objects("pods")
            for obj in pods[which : which + 1]:
                self.server.send(attrs.evolve(PODS, name=obj["metadata"]["name"]).delete())
        elif what == "delete the claim":
            self.server.send(claim_at(name).delete())
            self.controller.settle()
            self.create(name)
        elif what == "touch the claim":
            self.server.touch(claim_at(name))
        elif what == "deallocate the claim":
            claim = scheduler.cache.find(in_use.key(name))
            if claim is not None and claim.allocation is not None and not claim.reserved_for:
                self.server.send(deallocate(claim))
        elif what == "list anew":
            scheduler.informer.list_anew()
        elif what == "restart the scheduler":
            scheduler.restart()
        elif what == "restart the controller":
            self.controller.look()
        else:
            self.server.restart()

    # --- the truth

    @invariant()
    def nothing_is_held_twice(self) -> None:
        """A device belongs to one claim: as stored, or as its scheduler has it in flight."""
        holders: dict[DeviceId, set[str]] = {}
        in_flight = [e.claim for s in self.schedulers for e in s.tracker.in_flight()]
        for claim in (*claims_of(self.server), *in_flight):
            for got in claim.allocation.results if claim.allocation else ():
                holders.setdefault(got.device_id, set()).add(claim.metadata.uid)
        for scheduler in self.schedulers:
            used = scheduler.in_use()
            for device in scheduler.devices:
                assert len(holders.get(device, ())) <= 1, (device, holders)
                assert device in used or device not in holders, device
            assert scheduler.errors == []

    @invariant()
    def bound_pods_have_reservations(self) -> None:
        """A pod that was bound, and is there, is an entry of its claim."""
        pods = {obj["metadata"]["uid"] for obj in self.server.objects("pods")}
        claims = {claim.metadata.uid: claim for claim in claims_of(self.server)}
        for scheduler in self.schedulers:
            for attempt in scheduler.bound:
                if attempt.pod.metadata.uid in pods:
                    claim = claims[attempt.uid]
                    entries = [entry.uid for entry in claim.reserved_for]
                    assert attempt.pod.metadata.uid in entries, attempt

    def teardown(self) -> None:
        """When bad luck ends, every attempt ends, and all caches show what is stored."""
        for scheduler in self.schedulers:
            self.luck(None)
            while scheduler.attempts:
                scheduler.step(0)
            while scheduler.doubts:
                scheduler.resolve()
        self.controller.settle()
        self.bound_pods_have_reservations()
        for scheduler in self.schedulers:
            scheduler.informer.show()
            assert scheduler.tracker.in_flight() == ()
            assert sorted(scheduler.cache.list(), key=lambda c: c.name) == claims_of(self.server)
            state = AllocatedState.from_claims(claims_of(self.server))
            assert scheduler.tracker.allocated() == state
        self.delete_everything()

    def delete_everything(self) -> None:
        """Without pods nothing stays reserved, and deleted claims go."""
        for obj in self.server.objects():
            place = PODS if obj["kind"] == "Pod" else CLAIMS
            self.server.send(attrs.evolve(place, name=obj["metadata"]["name"]).delete())
        self.controller.settle()
        assert self.server.objects() == []


TestClaims = ClaimsMachine.TestCase
TestClaims.settings = machine_settings(40)
