"""A whole scheduler around ``PodCycle``: queue, wake-ups, bindings in flight; one step at a time.

What may live here: ``Host``, which does what an embedder does and decides nothing by
itself: the caller says what happens next.
"""

from typing import Any

import attrs

from dra_core.api.core import Node, ObjectMeta, Pod
from dra_core.api.names import PoolId
from dra_core.api.objects import ResourceSlice
from dra_core.api.request import ApiRequest, Target
from dra_core.api.wire import decode_pod
from dra_core.scheduling.assume_cache import AssumeCache, CacheEvent
from dra_core.scheduling.context import ContextRecord
from dra_core.scheduling.cycle import PodCycle, release_pod
from dra_core.scheduling.cycle_nodes import ExtendedResources
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import NodeFits, Stopped
from dra_core.scheduling.extended_resources import classes_by_resource
from dra_core.scheduling.in_flight import DevicesFreed
from dra_core.scheduling.wakeups import wake_up
from dra_core.scheduling.wakeups_demand import Lookups
from dra_core.testing.faults import FaultyServer
from dra_core.testing.watch import Informer
from support.cycle_site import NAMESPACE, NOW, Site

PODS = Target("", "v1", "pods", NAMESPACE)


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
    """Schedules the pods of its name on ``nodes``, which all hosts share.

    ``now`` is its clock, which the caller sets.
    """

    def __init__(
        self, name: str, line: FaultyServer, nodes: dict[str, Node], version: str = "v1alpha3"
    ) -> None:
        self.name, self.line, self.nodes, self.version = name, line, nodes, version
        self.now = NOW
        self.made_up = 0
        self.progress = 0
        self.restart()

    def restart(self) -> None:
        """A new process: everything that was only remembered is lost."""
        self.site = Site(version=self.version, server=self.line.server, line=self.line)
        self.site.nodes = self.nodes
        self.active: dict[str, Pod] = {}
        self.backoff: dict[str, Pod] = {}
        self.sleeping: dict[str, Pod] = {}
        self.running: list[Running] = []
        self.waiting: list[Running] = []
        self.records: dict[str, ContextRecord] = {}
        site = self.site
        self.pods = AssumeCache(Pod, site.errors.append, delivery=site.claims.atomic())
        for cache in (site.claims, site.slices, site.classes, site.contexts):
            cache.add_handler(self._changed)
        site.tracker.add_handler(self._changed)
        self.pods.add_handler(self._pod_changed)
        informer = Informer(self.line.server, PODS, decode_pod, self.pods)
        self.informers: list[Informer[Any]] = [*site.informers, informer]

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
                release_pod(self.site.tracker, uid)
                self.records.pop(uid, None)
        elif event.old is None:
            self.active[uid] = pod
        self._changed(event)

    def node_added(self, node: Node) -> None:
        """The host is told of a node."""
        self._changed(CacheEvent(node.metadata.key, None, node))

    def show(self, which: int, most: int | None = None) -> int:
        """One informer shows changes; how many."""
        return self.informers[which % len(self.informers)].show(most)

    def tick(self) -> None:
        """Backoff is over."""
        self.active |= self.backoff
        self.backoff.clear()

    # --- attempts ------------------------------------------------------------------------

    def start(self) -> bool:
        """Begin the next attempt: everything up to its first request. Whether there was one."""
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
            self._end(pod, cycle, woken=False)
            return cycle
        for node in self.nodes.values():
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
        self.progress += 1
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
                self._end(one.pod, cycle, one.woken)
                return False
        one.request = request
        return True

    def _end(self, pod: Pod, cycle: PodCycle, woken: bool) -> None:
        uid = pod.metadata.uid
        if cycle.context is not None:
            self.records[uid] = cycle.context
            if cycle.context.known is not None:
                self.site.contexts.observe(cycle.context.known)
        verdict = cycle.verdict
        known = next((p for p in self.pods.list() if p.metadata.uid == uid), None)
        if known is None:
            release_pod(self.site.tracker, uid)
        elif cycle.state is CycleState.BOUND or known.node_name:
            return
        elif woken or (isinstance(verdict, Stopped) and verdict.retry):
            self.backoff[uid] = known
        elif isinstance(verdict, Stopped):
            self.sleeping[uid] = known
        else:
            self.backoff[uid] = known  # the binding failed

    # --- the end -------------------------------------------------------------------------

    def settle(self) -> bool:
        """Everything that can happen now in this host; whether anything did."""
        happened = False
        for which in range(len(self.informers)):
            happened |= self.show(which) > 0
        happened |= bool(self.backoff)
        self.tick()
        happened |= self.look_again()
        while self.start():
            happened = True
        while self.step(0):
            happened = True
        return happened


def bind(pod: Pod, node: str) -> ApiRequest:
    """Bind the pod to a node."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.name, "uid": pod.metadata.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    return attrs.evolve(PODS, name=pod.name, subresource="binding").create(body)
