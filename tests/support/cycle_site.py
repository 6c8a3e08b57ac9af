"""A small cluster for tests of cycles: the API server double, caches on it, a scheduler's parts.

What may live here: ``Site`` and short builders. Nothing happens by itself: informers show
changes when ``show`` is called, requests are sent by ``drive``.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from dra_core.api.core import Node, ObjectMeta, Pod, PodResourceClaim
from dra_core.api.names import ObjectKey
from dra_core.api.objects import (
    DeviceClass,
    DeviceRequest,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from dra_core.api.request import ApiRequest, Target
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.api.wire import Decoder, decode_pod, decode_resource_claim, encode
from dra_core.errors import DraError
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.scheduling.context import ContextPolicy
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_classic import ClassicClaims, Negotiation
from dra_core.scheduling.cycle_input import CycleSource
from dra_core.scheduling.cycle_kinds import ClaimKind
from dra_core.scheduling.cycle_nodes import ExtendedResources
from dra_core.scheduling.cycle_structured import StructuredClaims
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import NodeFits
from dra_core.scheduling.in_flight import ClaimTracker
from dra_core.testing.api_server import ApiServer
from dra_core.testing.faults import Fault, FaultyServer, script
from dra_core.testing.watch import Informer
from support import allocation_builders as build
from support.claims import named

GROUP = "resource.k8s.io"
NAMESPACE = "default"
NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
TIMESTAMP = "2026-01-01T12:00:00Z"
MADE_UP = "made-up-uid"

Json = dict[str, Any]


def later(seconds: float) -> datetime:
    """Some time after ``NOW``."""
    return NOW + timedelta(seconds=seconds)


class Site:
    """A server with one version of claims, and a scheduler's view of it.

    ``sent`` are all requests that ``drive`` has sent; ``errors`` what caches reported.
    """

    def __init__(
        self,
        *,
        version: str = "v1",
        nodes: Sequence[str] = ("node-1", "node-2"),
        server: ApiServer | None = None,
        line: FaultyServer | None = None,
    ) -> None:
        self.version = version
        self.server = server or ApiServer()
        self.line = line or FaultyServer(self.server, script(()))
        self.nodes = {name: Node(ObjectMeta(name)) for name in nodes}
        self.errors: list[DraError] = []
        self.sent: list[ApiRequest] = []
        self.share_ids = iter(range(1_000_000))
        self._scheduler()

    def _scheduler(self) -> None:
        """The memory of a scheduler process, as it is when it has just started."""
        self.claims = AssumeCache(ResourceClaim, self.errors.append)
        lock = self.claims.atomic()
        self.slices = AssumeCache(ResourceSlice, self.errors.append, delivery=lock)
        self.classes = AssumeCache(DeviceClass, self.errors.append, delivery=lock)
        self.rules = AssumeCache(DeviceTaintRule, self.errors.append, delivery=lock)
        self.contexts = AssumeCache(PodSchedulingContext, self.errors.append, delivery=lock)
        self.tracker = ClaimTracker(self.claims)
        self.source = CycleSource(
            self.tracker,
            self.slices,
            self.classes,
            self.rules,
            share_ids=lambda: f"share-{next(self.share_ids)}",
        )
        decoder, version = Decoder(), self.version
        targets = {name: Target(GROUP, version, name) for name in _PLURALS}
        self.informers: list[Informer[Any]] = [
            Informer(
                self.server,
                targets["resourceclaims"],
                lambda obj: decoder.resource_claim(obj, version),
                self.claims,
            ),
            Informer(
                self.server,
                targets["resourceslices"],
                lambda obj: decoder.resource_slice(obj, version),
                self.slices,
            ),
            Informer(
                self.server,
                targets["deviceclasses"],
                lambda obj: decoder.device_class(obj, version),
                self.classes,
            ),
        ]
        if version == "v1alpha3":
            target = Target(GROUP, version, "podschedulingcontexts")
            self.informers.append(
                Informer(self.server, target, decoder.pod_scheduling_context, self.contexts)
            )

    def restart(self) -> None:
        """The scheduler process starts anew: what only it knew is lost."""
        self._scheduler()

    def show(self) -> None:
        """The informers show everything that has happened."""
        for informer in self.informers:
            while informer.show():
                pass

    # --- objects ---------------------------------------------------------------------------

    def add(self, *objects: ResourceClaim | ResourceSlice | DeviceClass | Pod) -> None:
        """Objects appear on the server, status and all, and are shown."""
        for obj in objects:
            made = encode(obj) if isinstance(obj, Pod) else encode(obj, self.version)
            made["metadata"].pop("resourceVersion", None)
            self.server.seed(made)
        for informer in self.informers:
            informer.list_anew()

    def devices(self, node: str, *devices: Any, **fields: Any) -> None:
        """A node gets a pool of its own with these devices (names will do)."""
        made = [build.device(d) if isinstance(d, str) else d for d in devices]
        self.add(build.pool_slice(f"{node}-slice", *made, pool=node, node=node, **fields))

    def stored(self, name: str, namespace: str = NAMESPACE) -> ResourceClaim:
        """The claim as the server has it."""
        found = self.server.find("resourceclaims", namespace, name)
        assert found is not None, name
        return decode_resource_claim(found, self.version)

    def stored_pod(self, name: str = "pod", namespace: str = NAMESPACE) -> Pod:
        """The pod as the server has it."""
        return decode_pod(self.server.find("pods", namespace, name))

    def change_status(self, name: str, **status: Any) -> None:
        """Somebody else writes members of a claim's status; ``None`` removes one."""
        found = self.server.find("resourceclaims", NAMESPACE, name)
        assert found is not None, name
        new = {**found["status"], **status}
        found["status"] = {key: value for key, value in new.items() if value is not None}
        target = Target(GROUP, self.version, "resourceclaims", NAMESPACE, name, "status")
        answer = self.server.send(target.update(found))
        assert answer.status == 200, answer

    def check(self) -> None:
        """The invariants that hold at every moment."""
        self.tracker._check()
        seen: set[tuple[str, str, str]] = set()
        for found in self.server.objects("resourceclaims"):
            claim = decode_resource_claim(found, self.version)
            if claim.allocation is None:
                continue
            if not claim.allocation.controller:
                assert claim.metadata.finalizers, f"{claim.name} has no finalizer"
            for result in claim.allocation.results:
                if result.share_id or result.admin_access:
                    continue
                assert result.device_id not in seen, f"{result.device_id} is allocated twice"
                seen.add(result.device_id)

    # --- cycles ----------------------------------------------------------------------------

    def kinds(self) -> list[ClaimKind]:
        """The kinds of claims for one cycle, on the cluster as it is shown now."""
        given = self.source.take()
        structured = StructuredClaims(given, version=self.version)
        if self.version != "v1alpha3":
            return [structured]
        return [structured, ClassicClaims(given.classes)]

    def cycle(self, pod: Pod, **options: Any) -> PodCycle:
        """A new attempt for a pod."""
        kinds = options.pop("kinds", None) or self.kinds()
        if "extended" not in options:
            resources = self.source.take().resources
            options["extended"] = ExtendedResources(resources, MADE_UP)
        if self.version == "v1alpha3" and "negotiation" not in options:
            options["negotiation"] = self.negotiation(pod)
        return PodCycle(pod, self.tracker, kinds, **options)

    def negotiation(self, pod: Pod, **fields: Any) -> Negotiation:
        """How to talk to drivers about a pod."""
        known = self.contexts.find(pod.metadata.key)
        policy = ContextPolicy("test-scheduler")
        return Negotiation(policy, lambda names, number: list(names)[:number], known, **fields)

    def filtered(self, pod: Pod, **options: Any) -> PodCycle:
        """A cycle that has filtered all nodes."""
        cycle = self.cycle(pod, **options)
        cycle.pre_enqueue()
        cycle.pre_filter(NOW)
        assert cycle.state is CycleState.FILTERING, cycle.verdict
        for node in self.nodes.values():
            cycle.filter(node)
        return cycle

    def reserved(self, pod: Pod, node: str = "", **options: Any) -> PodCycle:
        """A cycle that has picked a node: the given one, or the first that fits."""
        cycle = self.filtered(pod, **options)
        found = fitting(cycle)
        cycle.score(found)
        cycle.reserve(node or found[0])
        return cycle

    def bound(self, pod: Pod, node: str = "", **options: Any) -> PodCycle:
        """A cycle that has written everything; it must be bindable, or wait for devices."""
        cycle = self.reserved(pod, node, **options)
        self.drive(cycle, cycle.pre_bind(NOW))
        assert cycle.state in (CycleState.BINDABLE, CycleState.WAITING), cycle.verdict
        return cycle

    def drive(
        self,
        cycle: PodCycle,
        request: ApiRequest | None,
        before: Callable[[ApiRequest], object] = lambda _request: None,
        *,
        checked: bool = True,
    ) -> None:
        """Send what the cycle asks for until it asks for nothing more.

        ``before`` is called with each request before that is sent. The invariants are
        checked after each, unless they did not hold to begin with.
        """
        while request is not None:
            before(request)
            self.sent.append(request)
            status, body = self.line.send(request)
            request = cycle.answered(status, body)
            if checked:
                self.check()

    def attempt_unclear(self, pod: Pod, *, happened: bool) -> None:
        """An attempt whose write of the first claim got no clear answer, undone.

        ``happened``: it was carried out all the same.
        """
        cycle = self.reserved(pod)
        write = Fault.LOST_ANSWER if happened else Fault.LOST_REQUEST
        self.line.source = script([None, write, *([Fault.UNAVAILABLE] * 9)])
        self.drive(cycle, cycle.pre_bind(NOW))
        self.drive(cycle, cycle.unreserve())
        self.line.source = script(())

    def take_sent(self) -> list[str]:
        """What was sent since the last call, as "verb resource name"."""
        sent = [f"{r.verb} {r.target.full_resource} {r.target.name}".rstrip() for r in self.sent]
        self.sent.clear()
        return sent

    def in_use(self) -> list[str]:
        """Devices in use, sorted, as the tracker knows."""
        state = self.tracker.allocated()
        return sorted(device.device for device in state.devices)


_PLURALS = ("resourceclaims", "resourceslices", "deviceclasses")


def is_in(cycle: PodCycle, state: CycleState) -> bool:
    """Whether the cycle is in the state (asked by a call, because states change)."""
    return cycle.state is state


def fitting(cycle: PodCycle) -> list[str]:
    """The nodes that fit, in the order in which they were filtered."""
    return [name for name, verdict in cycle.nodes.items() if isinstance(verdict, NodeFits)]


def pod(*claims: str | PodResourceClaim, name: str = "pod", uid: str = "", **fields: Any) -> Pod:
    """A pod that uses claims by their names, or by entries."""
    entries = tuple(named(c, c) if isinstance(c, str) else c for c in claims)
    metadata = ObjectMeta(name, NAMESPACE, uid or f"{name}-uid")
    return Pod(metadata, resource_claims=entries, **fields)


def claim(name: str, *requests: DeviceRequest, **fields: Any) -> ResourceClaim:
    """A claim for one device of class-a, or for these requests."""
    made = build.claim(*(requests or (build.exactly("r"),)), name=name)
    return attrs.evolve(made, **fields)


def key(name: str) -> ObjectKey:
    """The key of an object in the namespace of the tests."""
    return ObjectKey(NAMESPACE, name)
