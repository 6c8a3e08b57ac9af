"""A whole scheduler around ``PodCycle``: queue, wake-ups, bindings in flight; one step at a time.

What may live here: ``Host``, which does what an embedder does and decides nothing by
itself: the caller says what happens next.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime
from random import Random
from typing import Any

import attrs

from dra_core.api.core import Node, ObjectMeta, Pod
from dra_core.api.names import ObjectKey, PoolId
from dra_core.api.objects import ResourceSlice
from dra_core.api.request import ApiRequest, Target
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.api.wire import decode_node, decode_pod, encode
from dra_core.scheduling.assume_cache import AssumeCache, CacheEvent
from dra_core.scheduling.context import ContextRecord
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_nodes import ExtendedResources
from dra_core.scheduling.cycle_release import release_pod
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import NodeFits, Stopped
from dra_core.scheduling.errors import (
    ObjectNotFoundError,
    ObjectReplacedError,
    VersionTooOldError,
)
from dra_core.scheduling.extended_resources import classes_by_resource
from dra_core.scheduling.in_flight import DevicesFreed
from dra_core.scheduling.wakeups import wake_up
from dra_core.scheduling.wakeups_demand import Lookups
from dra_core.testing.api_server import ApiServer
from dra_core.testing.faults import FaultyServer
from dra_core.testing.server_answers import RefusedError
from dra_core.testing.watch import Informer
from support.cycle_site import NAMESPACE, NOW, Site

PODS = Target("", "v1", "pods", NAMESPACE)
NODES = Target("", "v1", "nodes")


@attrs.define(eq=False)
class Running:
    """One attempt that waits for an answer. ``woken``: an event for the pod came meanwhile."""

    pod: Pod
    cycle: PodCycle
    request: ApiRequest
    node: str = ""
    phase: str = "cycle"
    woken: bool = False


class Host:
    """Schedules the pods of its name on the nodes that its informer has shown.

    ``now`` is its clock, which the caller sets. ``after`` is called when a request of an
    attempt was sent, before the attempt sees the answer.
    """

    def __init__(
        self,
        name: str,
        line: FaultyServer,
        version: str = "v1alpha3",
        after: Callable[[Running], object] = lambda _one: None,
    ) -> None:
        self.name, self.line, self.version, self.after = name, line, version, after
        self.now = NOW
        self.made_up = 0
        self.restart()

    def restart(self) -> None:
        """A new process: everything that was only remembered is lost."""
        self.site = Site(version=self.version, server=self.line.server, line=self.line)
        self.active: dict[str, Pod] = {}
        self.backoff: dict[str, Pod] = {}
        self.sleeping: dict[str, Pod] = {}
        self.running: list[Running] = []
        self.waiting: list[Running] = []
        self.records: dict[str, ContextRecord] = {}
        self.gone: dict[str, Pod] = {}
        """Pods that do not try again, and may have left something in flight."""
        self.looked: dict[str, datetime] = {}
        """When an attempt last looked at the cluster, by the pod's UID."""
        site, server = self.site, self.line.server
        lock = site.claims.atomic()
        self.pods = AssumeCache(Pod, site.errors.append, delivery=lock)
        self.known_nodes = AssumeCache(Node, site.errors.append, delivery=lock)
        for cache in (site.claims, site.slices, site.classes, site.contexts, self.known_nodes):
            cache.add_handler(self._changed)
        site.tracker.add_handler(self._changed)
        self.pods.add_handler(self._pod_changed)
        self.informers: list[Informer[Any]] = [
            *site.informers,
            Informer(server, NODES, decode_node, self.known_nodes),
            Informer(server, PODS, decode_pod, self.pods),
        ]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, by name."""
        return tuple(sorted(self.known_nodes.list(), key=lambda node: node.name))

    # --- events --------------------------------------------------------------------------

    def lookups(self) -> Lookups:
        """What wake-ups look up, in the caches that the events come from."""
        site = self.site

        def pool(wanted: PoolId) -> list[ResourceSlice]:
            return [found for found in site.slices.list() if found.pool_id == wanted]

        offered = classes_by_resource(site.classes.list())
        return Lookups(
            site.claims.find,
            lambda name: site.classes.find(ObjectMeta(name).key),
            pool,
            offered.__contains__,
            site.tracker.pending,
        )

    def _changed(self, event: CacheEvent[Any] | DevicesFreed) -> None:
        if isinstance(event, CacheEvent) and event.initial:
            return
        lookups = self.lookups()
        for uid, pod in list(self.sleeping.items()):
            if wake_up(pod, event, lookups).wakes:
                del self.sleeping[uid]
                self.backoff[uid] = pod
        for one in (*self.running, *self.waiting):
            one.woken = one.woken or wake_up(one.pod, event, lookups).wakes

    def _pod_changed(self, event: CacheEvent[Pod]) -> None:
        pod = event.new or event.old
        if pod is None or pod.scheduler_name != self.name:
            return
        uid = pod.metadata.uid
        if event.new is None or event.new.node_name:
            for queue in (self.active, self.backoff, self.sleeping):
                queue.pop(uid, None)
            attempts = (*self.running, *self.waiting)
            if event.new is None and not any(one.pod.metadata.uid == uid for one in attempts):
                self.gone[uid] = pod
                self.records.pop(uid, None)
        elif event.old is None:
            self.active[uid] = pod
        self._changed(event)

    def behind(self, resource: str, keys: Collection[ObjectKey]) -> bool:
        """Whether changes of objects are still to be shown."""
        informer = next(one for one in self.informers if one.target.resource == resource)
        try:
            events = self.line.server.events(informer.version)
        except RefusedError:
            return True  # there is a list to come
        return any(
            event.key.resource == resource
            and ObjectKey(event.key.namespace, event.key.name) in keys
            for event in events
        )

    def show(self, which: int, most: int | None = None) -> int:
        """One informer shows changes; how many."""
        return self.informers[which % len(self.informers)].show(most)

    def tick(self) -> None:
        """Backoff is over."""
        self.active |= self.backoff
        self.backoff.clear()

    def shuffle(self, chance: Random) -> None:
        """Who comes first is luck."""
        for queue in (self.active, self.backoff, self.sleeping):
            shuffled = list(queue.items())
            chance.shuffle(shuffled)
            queue.clear()
            queue.update(shuffled)

    def knows(self, pod: Pod) -> bool:
        """Whether the informer shows the pod: this one, not another of its name."""
        known = self.pods.find(pod.metadata.key)
        return known is not None and known.metadata.uid == pod.metadata.uid

    def adrift(self) -> list[Pod]:
        """Pods without a node that are in no queue and in no attempt."""
        attempts = {one.pod.metadata.uid for one in (*self.running, *self.waiting)}
        known = {*self.active, *self.backoff, *self.sleeping, *attempts}
        return [
            pod
            for pod in self.pods.list()
            if pod.scheduler_name == self.name
            and not pod.node_name
            and pod.metadata.uid not in known
        ]

    # --- attempts ------------------------------------------------------------------------

    def start(self) -> bool:
        """Begin the next attempt: everything up to its first request. Whether there was one."""
        self.give_back()
        if not self.active:
            return False
        uid = next(iter(self.active))
        self.active.pop(uid)
        pod = next((p for p in self.pods.list() if p.metadata.uid == uid), None)
        if pod is None or pod.node_name:
            return True
        self.attempt(pod)
        return True

    def attempt(self, pod: Pod) -> PodCycle:
        """An attempt for a pod, up to its first request."""
        uid = pod.metadata.uid
        site = self.site
        self.made_up += 1
        self.looked[uid] = self.now
        resources = site.source.take().resources
        cycle = site.cycle(
            pod,
            extended=ExtendedResources(resources, f"made-up-{self.name}-{self.made_up}"),
            negotiation=site.negotiation(pod, record=self.records.get(uid)),
        )
        cycle.pre_enqueue()
        if cycle.state is CycleState.ADMITTED:
            cycle.pre_filter(self.now)
        if cycle.state is CycleState.OVER:
            self._end(pod, cycle)
            return cycle
        for node in self.nodes:
            cycle.filter(node)
        fitting = [name for name, found in cycle.nodes.items() if isinstance(found, NodeFits)]
        if not fitting:
            self._go_on(pod, cycle, "", cycle.post_filter())
            return cycle
        scores = cycle.score(fitting)
        best = max(fitting, key=lambda name: scores[name])
        cycle.reserve(best)
        if cycle.state is CycleState.RESERVED:
            self._go_on(pod, cycle, best, cycle.pre_bind(self.now))
        else:
            self._go_on(pod, cycle, best, cycle.unreserve())
        return cycle

    def _go_on(self, pod: Pod, cycle: PodCycle, node: str, request: ApiRequest | None) -> None:
        one = Running(pod, cycle, request or bind(pod, node), node)
        if request is None and not self._next(one):
            return
        self.running.append(one)

    def step(self, which: int) -> bool:
        """Send the request of one attempt; whether there was one."""
        if not self.running:
            return False
        one = self.running[which % len(self.running)]
        status, body = self.line.send(one.request)
        self.after(one)
        if one.phase == "cycle":
            request = one.cycle.answered(status, body)
            if request is not None:
                one.request = request
                return True
        elif not self._bound(one, status, body):
            return True
        if not self._next(one):
            self.running.remove(one)
        return True

    def look_again(self) -> bool:
        """Look whether devices are ready that pods wait for; whether a pod waits no more."""
        waiting, self.waiting = self.waiting, []
        for one in waiting:
            there = any(pod.metadata.uid == one.pod.metadata.uid for pod in self.pods.list())
            if there:
                one.cycle.look_again(self.now)
            request = None if there else one.cycle.unreserve()
            if request is not None:
                one.request = request
            if request is not None or self._next(one):
                self.running.append(one)
        return len(self.waiting) < len(waiting)

    def give_back(self) -> bool:
        """Find out what pods in ``gone`` have written; whether that is known of one by now."""
        before = len(self.gone)
        busy = {one.pod.metadata.uid for one in (*self.running, *self.waiting)}
        for uid, pod in list(self.gone.items()):
            if uid in busy:
                continue
            release = release_pod(pod, self.site.tracker, self.site.kinds())
            while release.request is not None:
                release.answered(*self.line.send(release.request))
            if not release.left:
                del self.gone[uid]
        return len(self.gone) < before

    def _bound(self, one: Running, status: int | None, body: Any) -> bool:
        """An answer to the binding, or to the look whether it happened; False: look again."""
        if one.phase == "bind" and status == 201:
            one.phase = "bound"
        elif one.phase == "look" and status == 200:
            pod = decode_pod(body)
            same = pod.metadata.uid == one.pod.metadata.uid
            one.phase = "bound" if same and pod.node_name == one.node else "lost"
        elif one.phase == "look" and status == 404:
            one.phase = "lost"
        else:
            one.phase = "look"
            one.request = attrs.evolve(PODS, name=one.pod.name).get()
            return False
        return True

    def _next(self, one: Running) -> bool:
        """Begin the next part of an attempt; False: it is over."""
        request: ApiRequest | None = None
        while request is None:
            cycle = one.cycle
            if cycle.state is CycleState.BINDABLE and one.phase == "cycle":
                one.phase, one.request = "bind", bind(one.pod, one.node)
                return True
            if cycle.state is CycleState.BINDABLE:
                request = cycle.post_bind() if one.phase == "bound" else cycle.unreserve()
                one.phase = "cycle"
            elif cycle.state is CycleState.BROKEN:
                request = cycle.unreserve()
            elif cycle.state is CycleState.WAITING:
                self.waiting.append(one)
                return False
            else:
                self._end(one.pod, cycle, one)
                return False
        one.request = request
        return True

    def _end(self, pod: Pod, cycle: PodCycle, one: Running | None = None) -> None:
        uid = pod.metadata.uid
        if cycle.context is not None:
            self.records[uid] = cycle.context
            # This may be an event for the pod, like any that came during the attempt.
            self._assume(cycle.context.known)
        verdict = cycle.verdict
        known = next((p for p in self.pods.list() if p.metadata.uid == uid), None)
        if known is None or cycle.state is CycleState.BOUND or known.node_name:
            self.gone[uid] = pod
        elif (one is not None and one.woken) or (isinstance(verdict, Stopped) and verdict.retry):
            self.backoff[uid] = known
        else:
            assert isinstance(verdict, Stopped)
            self.sleeping[uid] = known
            # Others may wait for what this one has left, while it waits for something else.
            self.gone[uid] = known

    def _assume(self, context: PodSchedulingContext | None) -> None:
        """Use a context before the informer shows it, unless that has shown more by now."""
        if context is not None:
            # One that is gone must not come back to life.
            with suppress(ObjectNotFoundError, ObjectReplacedError, VersionTooOldError):
                self.site.contexts.assume(context)

    # --- the end -------------------------------------------------------------------------

    def settle(self) -> bool:
        """Everything that can happen now in this host; whether anything did."""
        happened = False
        for which in range(len(self.informers)):
            happened |= self.show(which) > 0
        happened |= bool(self.backoff)
        self.tick()
        happened |= self.give_back()
        happened |= self.look_again()
        while self.start():
            happened = True
        while self.step(0):
            happened = True
        return happened


def store_node(server: ApiServer, node: Node) -> None:
    """Create or replace a node, status and all."""
    body = encode(node)
    body["metadata"].pop("uid", None)
    target = attrs.evolve(NODES, name=node.name)
    if server.send(target.update(body)).status == 200:
        status = server.send(target.at("status").update(body | {"status": body.get("status", {})}))
        assert status.status == 200
    else:
        assert server.send(NODES.create(body)).status == 201


def bind(pod: Pod, node: str) -> ApiRequest:
    """Bind the pod to a node."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.name, "uid": pod.metadata.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    return attrs.evolve(PODS, name=pod.name, subresource="binding").create(body)
