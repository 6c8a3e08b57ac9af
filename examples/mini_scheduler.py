"""A whole scheduler for pods with claims, on the ``kubernetes`` client package.

It has what every scheduler has: informers (list and watch), a queue with backoff, one
cycle after the other, bindings beside them. What is DRA about it is this library's.

    config.load_incluster_config()
    scheduler = MiniScheduler(client.ApiClient(), "mini-scheduler")
    scheduler.start()

It looks at claims only: not at CPU, memory, affinity, taints of nodes and the rest. Run
``make demo-scheduler`` to see it at work.
"""

import logging
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from math import inf
from typing import Any
from uuid import uuid4

import attrs
from kubernetes import client as kube

from dra_core import AssumeCache, ClaimTracker, DeviceClass, Node, ObjectKey, Pod
from dra_core.adapters.kubernetes_client import send
from dra_core.api import wire
from dra_core.api.objects import ResourceClaim, ResourceSlice
from dra_core.api.request import ApiRequest, Target
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.scheduling.assume_cache import CacheEvent
from dra_core.scheduling.context import ContextPolicy, ContextRecord
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_classic import ClassicClaims, Negotiation
from dra_core.scheduling.cycle_input import CycleSource
from dra_core.scheduling.cycle_kinds import ClaimKind
from dra_core.scheduling.cycle_nodes import ExtendedResources
from dra_core.scheduling.cycle_release import release_pod
from dra_core.scheduling.cycle_structured import StructuredClaims
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import NodeFits, Stopped
from dra_core.scheduling.errors import StoreError
from dra_core.scheduling.in_flight import DevicesFreed
from dra_core.scheduling.wakeups import waker
from dra_core.scheduling.wakeups_demand import Lookups
from examples.support.informer import Informer
from examples.support.pod_queue import PodQueue, QueuedPod

TIMEOUT = 60.0
"""Seconds after which a request has no answer: no sooner than the API server gives up on it."""
PAUSE = 1.0
"""Seconds after which to come back to what was not clear."""
ENOUGH_NODES = 3
"""Fitting nodes after which no more are looked at."""

LOG = logging.getLogger(__name__)
Report = Callable[[Exception], object]


@attrs.define(eq=False)
class Work(QueuedPod):
    """A pod, and how far its attempt is, in the hands of whoever has taken it from the queue.

    ``cycle`` is the attempt, if there is one, and ``node`` the one that was picked in it.
    ``record`` is what earlier attempts left of a negotiation with drivers.
    """

    cycle: PodCycle | None = None
    node: str = ""
    record: ContextRecord | None = None


class MiniScheduler:
    """Schedules the pods whose ``schedulerName`` is ``name``.

    ``version`` is the one of resource.k8s.io that it uses; in v1alpha3 drivers may allocate
    claims, too. ``report`` is told of what must not happen: objects that cannot be read, and
    errors that nobody has foreseen.
    """

    def __init__(
        self, client: kube.ApiClient, name: str, report: Report = LOG.exception, version: str = "v1"
    ) -> None:
        self.client, self.name, self.report, self.version = client, name, report, version
        self.queue = PodQueue(Work)
        self.attempts = 0
        self._kinds: list[ClaimKind] = []
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._workers = ThreadPoolExecutor()
        self.claims = AssumeCache(ResourceClaim, report)
        cache = partial(AssumeCache, on_error=report, delivery=self.claims.atomic())
        self.slices: AssumeCache[ResourceSlice] = cache(
            ResourceSlice, index=lambda one: [str(one.pool_id)]
        )
        self.classes: AssumeCache[DeviceClass] = cache(DeviceClass)
        self.contexts: AssumeCache[PodSchedulingContext] = cache(PodSchedulingContext)
        self.nodes: AssumeCache[Node] = cache(Node)
        self.pods: AssumeCache[Pod] = cache(Pod)
        self.tracker = ClaimTracker(self.claims)
        self.source = CycleSource(
            self.tracker, self.slices, self.classes, share_ids=lambda: str(uuid4())
        )
        self.lookups = Lookups(
            self.claims.find,
            device_class=lambda name: self.classes.find(ObjectKey("", name)),
            pool=lambda pool: self.slices.list(str(pool)),
            pending=self.tracker.pending,
        )
        for followed in (self.claims, self.slices, self.classes, self.contexts, self.nodes):
            followed.add_handler(self._changed)
        self.tracker.add_handler(self._changed)
        self.pods.add_handler(self._pod_changed)

    # --- threads -------------------------------------------------------------------------

    def start(self) -> None:
        """Start informers and the scheduling thread."""
        core, custom = kube.CoreV1Api(self.client), kube.CustomObjectsApi(self.client)
        resources = partial(custom.list_cluster_custom_object, "resource.k8s.io", self.version)
        followed: list[tuple[Callable[..., Any], AssumeCache[Any]]] = [
            (core.list_node, self.nodes),
            (core.list_pod_for_all_namespaces, self.pods),
            (partial(resources, "deviceclasses"), self.classes),
            (partial(resources, "resourceslices"), self.slices),
            (partial(resources, "resourceclaims"), self.claims),
        ]
        if self.version == "v1alpha3":
            followed.append((partial(resources, "podschedulingcontexts"), self.contexts))
        self._informers = [Informer(*one, self.report, self.stopping) for one in followed]
        for thread in (*self._informers, self._thread):
            thread.start()

    def stop(self) -> None:
        """Begin nothing new, and wait for what is being written."""
        self.stopping.set()
        self._thread.join()
        self._workers.shutdown()

    def _run(self) -> None:
        # Before the claims were listed, devices that are in use look free.
        while not self.stopping.is_set() and not all(i.listed.wait(0.1) for i in self._informers):
            pass
        while not self.stopping.is_set():
            work = self.queue.take(timeout=0.05)
            if work is None:
                continue
            if work.cycle is None and not work.gone:
                self._guarded(self._attempt, work)
            else:
                self._workers.submit(self._guarded, self._go_on, work)

    def _guarded(self, step: Callable[[Work], None], work: Work) -> None:
        """Whatever is wrong with one pod, others go on, and it comes again."""
        try:
            step(work)
        except Exception as error:  # noqa: BLE001 - reported
            self.report(error)
            self.queue.put_back(work, PAUSE, PAUSE)

    # --- events --------------------------------------------------------------------------

    def _changed(self, event: CacheEvent[Any] | DevicesFreed) -> None:
        self.queue.wake(waker(event, self.lookups))

    def _pod_changed(self, event: CacheEvent[Pod]) -> None:
        pod = event.new or event.old
        if pod is None or pod.scheduler_name != self.name:
            return
        if event.new is None or pod.node_name or pod.finished:
            self.queue.remove(pod.metadata.uid)
        else:
            self.queue.add(pod)
            self._changed(event)

    # --- one pod -------------------------------------------------------------------------

    def _attempt(self, work: Work) -> None:
        """The part in which pods compete: look at nodes, pick one, take its devices."""
        self.attempts += 1
        pod, given = work.pod, self.source.take()
        known = self.contexts.find(pod.metadata.key)
        self._kinds = [StructuredClaims(given, self.version), ClassicClaims(given.classes)]
        cycle = PodCycle(
            pod,
            self.tracker,
            self._kinds,
            negotiation=Negotiation(ContextPolicy(self.name), random.sample, known, work.record),
            extended=ExtendedResources(given.resources, str(uuid4())),
        )
        cycle.pre_enqueue()
        if cycle.state is CycleState.ADMITTED:
            cycle.pre_filter(datetime.now(UTC))
        if cycle.state is CycleState.FILTERING:
            scores = cycle.score(islice(self._fitting(cycle), ENOUGH_NODES))
            work.node = max(scores, key=lambda name: scores[name], default="")
            if work.node:
                cycle.reserve(work.node)
        work.cycle = cycle
        self._workers.submit(self._guarded, self._go_on, work)

    def _fitting(self, cycle: PodCycle) -> Iterator[str]:
        """Nodes that fit; the search begins at another one each time."""
        nodes = self.nodes.list()
        for index in range(self.attempts, self.attempts + len(nodes)):
            node = nodes[index % len(nodes)]
            if isinstance(cycle.filter(node), NodeFits):
                yield node.name

    def _go_on(self, work: Work) -> None:
        """Do what comes next until the pod is bound, or has to wait for something."""
        cycle = work.cycle
        if cycle is None or (work.gone and cycle.state is CycleState.WAITING):
            if not self._gives_back(work):
                self.queue.put_back(work, PAUSE, PAUSE)
            return None
        if cycle.state is CycleState.WAITING:
            cycle.look_again(datetime.now(UTC))
        while cycle.state not in (CycleState.WAITING, CycleState.BOUND, CycleState.OVER):
            bound = cycle.state is CycleState.BINDABLE and self._bind(work)
            if bound is None:
                return self.queue.put_back(work, PAUSE, PAUSE)
            request = cycle.post_bind() if bound else self._begin(cycle)
            while request is not None:
                request = cycle.answered(*self._send(request))
        return self._rest(work, cycle)

    def _begin(self, cycle: PodCycle) -> ApiRequest | None:
        if cycle.state is CycleState.FILTERING:
            return cycle.post_filter()  # no node was found
        if cycle.state is CycleState.RESERVED:
            return cycle.pre_bind(datetime.now(UTC))
        return cycle.unreserve()  # BROKEN, or the binding has failed

    def _bind(self, work: Work) -> bool | None:
        """Put the pod on its node; ``None`` if nobody knows whether it is there.

        After an unclear answer, look: it may have happened. As long as that is not known the
        claims stay as they are, because a pod that runs must not lose them. To ask once more
        does no harm: a pod is bound once.
        """
        pod = work.pod
        target = Target("", "v1", "pods", pod.namespace, pod.name)
        what: dict[str, Any] = {"apiVersion": "v1", "kind": "Binding"}
        what["metadata"] = {"name": pod.name, "uid": pod.metadata.uid}
        what["target"] = {"kind": "Node", "name": work.node}
        if self._send(target.at("binding").create(what))[0] == 201:
            return True
        status, found = self._send(target.get())
        if status == 200:
            seen = wire.decode_pod(found)
            return seen.metadata.uid == pod.metadata.uid and bool(seen.node_name)
        return False if status == 404 else None

    def _rest(self, work: Work, cycle: PodCycle) -> None:
        """Nothing is left to be sent: what the pod waits for now."""
        if cycle.state is CycleState.WAITING:
            if cycle.deadline is None:
                return self.queue.put_back(work, 0.0, inf)
            left = cycle.deadline - datetime.now(UTC)
            return self.queue.put_back(work, 0.0, left.total_seconds())
        for trouble in cycle.troubles:
            LOG.info("%s: %s", work.pod.metadata.key, trouble)
        if cycle.state is CycleState.BOUND:
            return None  # taken for good: the informer may show for a while that it has no node
        work.cycle, work.record = None, cycle.context
        if work.record is not None and work.record.known is not None:
            with suppress(StoreError):  # the informer will show it, or has shown something newer
                self.contexts.assume(work.record.known)
        retry = isinstance(cycle.verdict, Stopped) and cycle.verdict.retry
        # Asleep, it must not keep others out with what it does not know.
        retry = retry or not self._gives_back(work)
        return self.queue.failed(work, retry=retry)

    def _gives_back(self, work: Work) -> bool:
        """What the pod's attempts left in flight is free, unless it was written.

        What was written for a pod that is gone is the claim controller's business.
        """
        release = release_pod(work.pod, self.tracker, self._kinds)
        while release.request is not None:
            release.answered(*self._send(release.request))
        return not release.left

    def _send(self, request: ApiRequest) -> tuple[int | None, Any]:
        try:
            return send(self.client, request, timeout=TIMEOUT, lost=LOG.info)
        except Exception as error:  # noqa: BLE001 - reported; a cycle that was begun goes on
            self.report(error)
            return None, None
