"""A whole scheduler for pods with claims, on the ``kubernetes`` client package.

It has what every scheduler has: informers (list and watch), a queue with backoff, one
cycle after the other, bindings beside them. What is DRA about it is this library's.

    config.load_incluster_config()
    scheduler = MiniScheduler(client.ApiClient(), "mini-scheduler")
    scheduler.start()

It looks at claims only: not at CPU, memory, affinity, taints of nodes and the rest. Run
``make demo-scheduler`` to see it at work.
"""

import heapq
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from kubernetes import client as kube
from kubernetes import watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from dra_core.adapters.kubernetes_client import send
from dra_core.api.core import Node, Pod
from dra_core.api.names import ObjectKey
from dra_core.api.objects import DeviceClass, ResourceClaim, ResourceSlice
from dra_core.api.request import ApiRequest, Target
from dra_core.api.wire import Decoder, decode_pod
from dra_core.scheduling.assume_cache import AssumeCache, CacheEvent
from dra_core.scheduling.cycle import PodCycle, release_pod
from dra_core.scheduling.cycle_input import CycleSource
from dra_core.scheduling.cycle_nodes import ExtendedResources
from dra_core.scheduling.cycle_structured import StructuredClaims
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import NodeFits, Stopped
from dra_core.scheduling.in_flight import ClaimTracker, DevicesFreed
from dra_core.scheduling.wakeups import waker
from dra_core.scheduling.wakeups_demand import Lookups
from dra_core.scheduling.wakeups_verdict import Queueing, WakeUp

SECONDS = 10.0
"""How long a request may take."""
ENOUGH_NODES = 3
"""Fitting nodes after which no more are looked at."""


class Queue:
    """Pods that wait: to be tried now, after a backoff, or for an event.

    Its lock is never held while a cache is called, so events can come from any thread.
    """

    def __init__(self, backoff: float = 0.1, longest: float = 2.0) -> None:
        self._change = threading.Condition()
        self._backoff, self._longest = backoff, longest
        self._due: list[tuple[float, int, str]] = []
        self._number = 0
        self.pods: dict[str, Pod] = {}
        self.running: dict[str, bool] = {}
        """Pods that are being tried, and whether an event for them has come meanwhile."""
        self.asleep: dict[str, None] = {}
        self.failures: dict[str, int] = {}

    def add(self, pod: Pod) -> None:
        """A pod is new, or has changed."""
        with self._change:
            known = pod.metadata.uid in self.pods
            self.pods[pod.metadata.uid] = pod
            if not known:
                self._push(pod.metadata.uid, 0.0)

    def forget(self, uid: str) -> None:
        """A pod is bound or gone."""
        with self._change:
            for place in (self.pods, self.asleep, self.failures):
                place.pop(uid, None)

    def take(self, timeout: float) -> Pod | None:
        """The next pod to be tried, ``None`` if there is none for so many seconds."""
        end = time.monotonic() + timeout
        with self._change:
            while True:
                now = time.monotonic()
                while self._due and self._due[0][0] <= now:
                    uid = heapq.heappop(self._due)[2]
                    if uid in self.pods and uid not in self.running:
                        self.running[uid] = False
                        return self.pods[uid]
                if now >= end:
                    return None
                self._change.wait(min([end, *(due[0] for due in self._due[:1])]) - now)

    def done(self, uid: str, *, retry: bool) -> None:
        """The attempt is over, and the pod is not bound."""
        with self._change:
            woken = self.running.pop(uid, False)
            if uid not in self.pods:
                return
            self.failures[uid] = self.failures.get(uid, -1) + 1
            if retry or woken:
                self._push(uid, self._delay(uid))
            else:
                self.asleep[uid] = None

    def wake(self, judge: Callable[[Pod], WakeUp]) -> None:
        """Something has happened; ``judge`` says what it means for a pod."""
        with self._change:
            concerned = [*self.asleep, *self.running]
            pods = [self.pods[uid] for uid in concerned if uid in self.pods]
        for pod in pods:
            found = judge(pod)
            if found.wakes:
                self._woken(pod.metadata.uid, found.queueing is Queueing.QUEUE_AT_ONCE)

    def _woken(self, uid: str, at_once: bool) -> None:
        with self._change:
            if uid in self.running:
                self.running[uid] = True
            elif uid in self.asleep:
                del self.asleep[uid]
                self._push(uid, 0.0 if at_once else self._delay(uid))

    def _delay(self, uid: str) -> float:
        return min(self._longest, self._backoff * 2.0 ** min(self.failures.get(uid, 0), 10))

    def _push(self, uid: str, delay: float) -> None:
        self._number += 1
        heapq.heappush(self._due, (time.monotonic() + delay, self._number, uid))
        self._change.notify()


class MiniScheduler:
    """Schedules the pods whose ``schedulerName`` is ``name``.

    ``workers`` bindings are written at the same time. ``errors`` are what caches reported.
    """

    def __init__(self, client: kube.ApiClient, name: str, workers: int = 4) -> None:
        self.client, self.name = client, name
        self.errors: list[Exception] = []
        self.queue = Queue()
        self.attempts = 0
        self.stopping = threading.Event()
        self._workers = ThreadPoolExecutor(workers)
        self._waiting: list[tuple[PodCycle, str]] = []
        self._bound: set[str] = set()
        self._next_node = 0
        report = self.errors.append
        self.claims = AssumeCache(ResourceClaim, report)
        lock = self.claims.atomic()
        self.slices = AssumeCache(ResourceSlice, report, index=_pool, delivery=lock)
        self.classes = AssumeCache(DeviceClass, report, delivery=lock)
        self.nodes = AssumeCache(Node, report, delivery=lock)
        self.pods = AssumeCache(Pod, report, delivery=lock)
        self.tracker = ClaimTracker(self.claims)
        self.source = CycleSource(
            self.tracker, self.slices, self.classes, share_ids=lambda: str(uuid.uuid4())
        )
        self.lookups = Lookups(
            self.claims.find,
            device_class=lambda name: self.classes.find(ObjectKey("", name)),
            pool=lambda pool: self.slices.list(str(pool)),
            pending=self.tracker.pending,
        )
        for cache in (self.claims, self.slices, self.classes, self.nodes):
            cache.add_handler(self._changed)
        self.tracker.add_handler(self._changed)
        self.pods.add_handler(self._pod_changed)

    # --- threads -------------------------------------------------------------------------

    def start(self) -> None:
        """Start informers and the scheduling thread."""
        core, dra = kube.CoreV1Api(self.client), kube.ResourceV1Api(self.client)
        read = Decoder()
        followed: list[tuple[Callable[..., Any], Callable[[Any], Any], AssumeCache[Any]]] = [
            (core.list_node, read.node, self.nodes),
            (dra.list_device_class, read.device_class, self.classes),
            (dra.list_resource_slice, read.resource_slice, self.slices),
            (dra.list_resource_claim_for_all_namespaces, read.resource_claim, self.claims),
            (core.list_pod_for_all_namespaces, decode_pod, self.pods),
        ]
        listed = [threading.Event() for _ in followed]
        for args, event in zip(followed, listed, strict=True):
            threading.Thread(target=self._follow, args=(*args, event), daemon=True).start()
        self._thread = threading.Thread(target=self._run, args=(listed,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing new, and wait for what is being written."""
        self.stopping.set()
        self._thread.join()
        self._workers.shutdown()

    def _follow(
        self,
        listing: Callable[..., Any],
        decode: Callable[[Any], Any],
        cache: AssumeCache[Any],
        listed: threading.Event,
    ) -> None:
        """An informer: list, then watch; list anew when the watch has lost its place."""
        while not self.stopping.is_set():
            try:
                found = json.loads(listing(_preload_content=False).data)
                version = found["metadata"]["resourceVersion"]
                cache.observe_all([decode(item) for item in found["items"]], version)
                listed.set()
                while not self.stopping.is_set():
                    stream = watch.Watch(return_type="object")
                    for event in stream.stream(
                        listing, resource_version=version, timeout_seconds=30
                    ):
                        obj = decode(event["raw_object"])
                        version = obj.metadata.resource_version
                        gone = event["type"] == "DELETED"
                        (cache.observe_delete if gone else cache.observe)(obj)
            except (ApiException, HTTPError):
                self.stopping.wait(0.2)

    def _run(self, listed: list[threading.Event]) -> None:
        # Before the claims were listed, devices that are in use look free.
        while not self.stopping.is_set() and not all(event.wait(0.1) for event in listed):
            pass
        while not self.stopping.is_set():
            pod = self.queue.take(timeout=0.05)
            waiting, self._waiting = self._waiting, []
            for cycle, node in waiting:
                cycle.look_again(datetime.now(UTC))
                self._workers.submit(self._go_on, cycle, node)
            if pod is not None:
                self._attempt(pod)

    # --- events --------------------------------------------------------------------------

    def _changed(self, event: CacheEvent[Any] | DevicesFreed) -> None:
        self.queue.wake(waker(event, self.lookups))

    def _pod_changed(self, event: CacheEvent[Pod]) -> None:
        pod = event.new or event.old
        if pod is None or pod.scheduler_name != self.name:
            return
        uid = pod.metadata.uid
        if event.new is None:
            self._bound.discard(uid)
            release_pod(self.tracker, uid)
        # That a pod was bound may be known before the informer shows it. It must not be
        # tried again: an attempt that fails would take its claims away.
        if event.new is None or pod.node_name or pod.finished or uid in self._bound:
            self.queue.forget(uid)
        else:
            self.queue.add(pod)
            self._changed(event)

    # --- one pod -------------------------------------------------------------------------

    def _attempt(self, pod: Pod) -> None:
        """The part in which pods compete: look at nodes, pick one, take its devices."""
        self.attempts += 1
        given = self.source.take()
        extended = ExtendedResources(given.resources, str(uuid.uuid4()))
        cycle = PodCycle(pod, self.tracker, [StructuredClaims(given)], extended=extended)
        cycle.pre_enqueue()
        if cycle.state is CycleState.ADMITTED:
            cycle.pre_filter(datetime.now(UTC))
        best = ""
        if cycle.state is CycleState.FILTERING:
            scores = cycle.score(islice(self._fitting(cycle), ENOUGH_NODES))
            best = max(scores, key=lambda name: scores[name], default="")
            if best:
                cycle.reserve(best)
        self._workers.submit(self._go_on, cycle, best)

    def _fitting(self, cycle: PodCycle) -> Iterator[str]:
        """Nodes that fit; the search begins at another one each time."""
        nodes = self.nodes.list()
        self._next_node += 1
        for index in range(len(nodes)):
            node = nodes[(index + self._next_node) % len(nodes)]
            if isinstance(cycle.filter(node), NodeFits):
                yield node.name

    def _go_on(self, cycle: PodCycle, node: str) -> None:
        """Do what comes next until the pod is bound, waits for devices, or has to wait."""
        try:
            while cycle.state not in (CycleState.BOUND, CycleState.OVER):
                if cycle.state is CycleState.WAITING:
                    self._waiting.append((cycle, node))
                    return
                bound = cycle.state is CycleState.BINDABLE and self._bind(cycle.pod, node)
                if bound is None:
                    return
                request = cycle.post_bind() if bound else self._begin(cycle)
                while request is not None:
                    request = cycle.answered(*self._send(request))
        except Exception as error:
            self.errors.append(error)
            raise
        self._end(cycle)

    def _begin(self, cycle: PodCycle) -> ApiRequest | None:
        if cycle.state is CycleState.FILTERING:
            return cycle.post_filter()
        if cycle.state is CycleState.RESERVED:
            return cycle.pre_bind(datetime.now(UTC))
        return cycle.unreserve()

    def _bind(self, pod: Pod, node: str) -> bool | None:
        """Put the pod on the node; ``None`` if nobody knows whether it is there.

        After an unclear answer, look: it may have happened. As long as that is not known the
        claims stay as they are, because a pod that runs must not lose them.
        """
        target = Target("", "v1", "pods", pod.namespace, pod.name)
        body = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": node}}
        body["metadata"] = {"name": pod.name, "uid": pod.metadata.uid}
        status, found = self._send(target.at("binding").create(body))
        if status == 201:
            return True
        while not self.stopping.is_set():
            status, found = self._send(target.get())
            if status == 404:
                return False
            if status == 200:
                seen = decode_pod(found)
                return seen.metadata.uid == pod.metadata.uid and bool(seen.node_name)
            self.stopping.wait(0.1)
        return None

    def _end(self, cycle: PodCycle) -> None:
        uid, verdict = cycle.pod.metadata.uid, cycle.verdict
        if cycle.state is CycleState.BOUND:
            self._bound.add(uid)
            self.queue.forget(uid)
        if self.pods.find(cycle.pod.metadata.key) is None:
            self._bound.discard(uid)
            release_pod(self.tracker, uid)
        # A pod that passed everything, and is not bound: the binding has failed.
        self.queue.done(uid, retry=not isinstance(verdict, Stopped) or verdict.retry)

    def _send(self, request: ApiRequest) -> tuple[int | None, Any]:
        return send(self.client, request, timeout=SECONDS)


def _pool(found: ResourceSlice) -> list[str]:
    return [str(found.pool_id)]
