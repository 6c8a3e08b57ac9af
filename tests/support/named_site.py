"""A small cluster of v1alpha2 for tests of cycles: the server double, caches, a scheduler's
parts, and the driver's control plane controller.

What may live here: ``NamedSite``, which is ``cycle_site.Site`` with the kinds of this
version, and what a controller does with its claims.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dra_core.api.names import ObjectKey
from dra_core.api.request import Target
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.api.wire import Decoder
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.scheduling.context import ContextPolicy
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_classic import Negotiation
from dra_core.scheduling.cycle_kinds import ClaimKind
from dra_core.scheduling.in_flight import ClaimTracker
from dra_core.testing.watch import Informer
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.claims import ResourceClaim
from dra_core.v1alpha2.kinds import claim_kinds
from dra_core.v1alpha2.objects import (
    FINALIZER,
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceSlice,
)
from dra_core.v1alpha2.source import NamedSource
from dra_core.v1alpha2.wakeups import NamedWaking, waking_kind
from support import named_json as objects
from support.cycle_site import GROUP, NAMESPACE, Site
from support.cycle_site import pod as pod_with

Json = dict[str, Any]

VERSION = "v1alpha2"
CONTROLLER = "classic.example.com"
PROTECTION = f"{CONTROLLER}/deletion-protection"
"""What a controller of that time puts on the claims that it allocates."""


class NamedSite(Site):
    """A server with kinds of v1alpha2, and a scheduler's view of it."""

    def __init__(self, *, nodes: Sequence[str] = ("node-1", "node-2"), **options: Any) -> None:
        super().__init__(version=VERSION, nodes=nodes, **options)
        self.nodes = {name: objects.node(name) for name in nodes}

    def _scheduler(self) -> None:
        report = self.errors.append
        self.claims = AssumeCache(ResourceClaim, report)
        lock = self.claims.atomic()
        self.tracker = ClaimTracker(self.claims)
        self.contexts = AssumeCache(PodSchedulingContext, report, delivery=lock)
        self.named_slices = AssumeCache(ResourceSlice, report, delivery=lock)
        self.named_classes = AssumeCache(ResourceClass, report, delivery=lock)
        self.class_parameters = AssumeCache(ResourceClassParameters, report, delivery=lock)
        self.claim_parameters = AssumeCache(ResourceClaimParameters, report, delivery=lock)
        parts = (self.named_classes, self.class_parameters, self.claim_parameters)
        self.named_source = NamedSource(self.tracker, self.named_slices, *parts)
        self.waking: NamedWaking = waking_kind(*parts)
        followed: Mapping[str, tuple[Any, Any]] = {
            "resourceclaims": (wire.decode_resource_claim, self.claims),
            "resourceslices": (wire.decode_resource_slice, self.named_slices),
            "resourceclasses": (wire.decode_resource_class, self.named_classes),
            "resourceclassparameters": (wire.decode_class_parameters, self.class_parameters),
            "resourceclaimparameters": (wire.decode_claim_parameters, self.claim_parameters),
            "podschedulingcontexts": (Decoder().pod_scheduling_context, self.contexts),
        }
        self.informers = [
            Informer(self.server, Target(GROUP, VERSION, resource), decode, cache)
            for resource, (decode, cache) in followed.items()
        ]

    def seed(self, *made: Json) -> None:
        """Objects appear on the server, status and all, and are shown."""
        for obj in made:
            if obj["metadata"].get("namespace") == "ns":
                obj["metadata"]["namespace"] = NAMESPACE
            obj["metadata"].pop("resourceVersion", None)
            self.server.seed(obj)
        for informer in self.informers:
            informer.list_anew()

    def claim(self, name: str) -> ResourceClaim:
        """The claim as the server has it."""
        return wire.decode_resource_claim(self.json(name))

    def json(self, name: str) -> Json:
        """The same as JSON."""
        found = self.server.find("resourceclaims", NAMESPACE, name)
        assert found is not None, name
        return found

    def context(self, name: str = "pod") -> Json | None:
        """The pod's PodSchedulingContext on the server."""
        return self.server.find("podschedulingcontexts", NAMESPACE, name)

    def check(self) -> None:
        """The invariants that hold at every moment."""
        self.tracker._check()
        seen: set[tuple[str, str, str]] = set()
        for found in self.server.objects("resourceclaims"):
            claim = wire.decode_resource_claim(found)
            if claim.allocation is None:
                continue
            assert claim.driver_name, f"{claim.name} has no driver"
            if claim.allocation.is_structured:
                assert FINALIZER in claim.metadata.finalizers, f"{claim.name} has no finalizer"
            elif claim.allocation.resource_handles:
                assert FINALIZER not in claim.metadata.finalizers, f"{claim.name} looks like ours"
            for result in claim.allocation.results:
                assert result.device_id not in seen, f"{result.device_id} is allocated twice"
                seen.add(result.device_id)

    def kinds(self) -> list[ClaimKind]:
        """The kinds of claims for one cycle, on the cluster as it is shown now."""
        return list(claim_kinds(self.named_source.take()))

    def cycle(self, pod: Any, **options: Any) -> PodCycle:
        """A new attempt for a pod."""
        kinds = options.pop("kinds", None) or self.kinds()
        if "negotiation" not in options:
            options["negotiation"] = self.negotiation(pod)
        return PodCycle(pod, self.tracker, kinds, **options)

    def negotiation(self, pod: Any, **fields: Any) -> Negotiation:
        """How to talk to drivers about a pod."""
        known = self.contexts.find(pod.metadata.key)
        policy = ContextPolicy("test-scheduler", VERSION)
        return Negotiation(policy, lambda names, number: list(names)[:number], known, **fields)

    # --- the controller of a driver --------------------------------------------------------

    def reports(self, **unsuitable: list[str]) -> None:
        """The controller says on which nodes it cannot allocate claims of these entries."""
        found = self.context()
        assert found is not None
        found["status"] = {
            "resourceClaims": [
                {"name": entry, "unsuitableNodes": nodes} for entry, nodes in unsuitable.items()
            ]
        }
        target = Target(GROUP, VERSION, "podschedulingcontexts", NAMESPACE, "pod", "status")
        assert self.server.send(target.update(found)).status == 200
        self.show()

    def allocates(self, name: str, node: str, *, shareable: bool = False) -> None:
        """The controller allocates a claim for a node: its finalizer, then the status."""
        found = self.json(name)
        found["metadata"]["finalizers"] = [PROTECTION]
        target = Target(GROUP, VERSION, "resourceclaims", NAMESPACE, name)
        assert self.server.send(target.update(found)).status == 200
        handle = {"driverName": CONTROLLER, "data": "opaque"}
        allocation = objects.allocation_json(node, handle, shareable=shareable)
        self.change_status(name, driverName=CONTROLLER, allocation=allocation)
        self.show()

    def deallocates(self, name: str) -> None:
        """The controller does what it was asked for."""
        self.change_status(name, driverName=None, allocation=None, deallocationRequested=None)
        found = self.json(name)
        found["metadata"]["finalizers"] = []
        target = Target(GROUP, VERSION, "resourceclaims", NAMESPACE, name)
        assert self.server.send(target.update(found)).status == 200
        self.show()


def key(name: str) -> ObjectKey:
    """The key of an object in the namespace of the tests."""
    return ObjectKey(NAMESPACE, name)


pod = pod_with
