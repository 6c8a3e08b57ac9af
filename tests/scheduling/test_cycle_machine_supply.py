"""Schedulers while devices come, go, fail and take their time: no wake-up may be lost.

As in ``test_cycle_machine`` two schedulers work on one API server, with bad luck. Here the
supply changes: slices and classes are published, changed and deleted, nodes come, go and
change, devices have to be attached before their pods may run, claims are made from
templates, deleted and made again.

After every step the rules of ``examples.support.invariants`` hold, and every pod that sleeps
sleeps rightly: with what its scheduler's caches show now, no node fits, and there is nothing
that it could get out of the way. In the end everything converges.
"""

from typing import Any

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dra_core.api.core import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    Pod,
    PodResourceClaim,
)
from dra_core.api.objects import DeviceClass, DeviceTaint, ResourceSlice
from dra_core.api.request import Target
from dra_core.api.wire import decode_node, decode_pod, encode
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import NodeFits
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import ClaimController, garbage
from dra_core.testing.faults import Fault, FaultyServer, script
from examples.support.invariants import Invariants
from support import allocation_builders as build
from support.claims import named
from support.cycle_host import NODES, PODS, Host, Running, store_node
from support.cycle_site import GROUP, NAMESPACE, NOW, claim, later, pod
from support.machines import machine_settings

WHICH = st.integers(0, 7)
HOSTS = st.integers(0, 1)
LUCK = st.lists(st.sampled_from([*[None] * 16, *Fault]), max_size=3)
NAMES = ("n0", "n1")
PLACES = (*NAMES, "east", "bare")
"""Where devices can be: on a node, where nodes are in the east, where nodes need not prepare."""
ZONE = "example.com/zone"
ABLE = ("DRAOptionalNodeOperations",)
READY, BROKEN = "example.com/ready", "example.com/broken"
CLAIMS = Target(GROUP, "v1", "resourceclaims", NAMESPACE)
DRIVERS = ("driver-a", "driver-b", "driver-c")
"""Scheduler 0 has the devices of the first, scheduler 1 those of the second.

Those of the third are for the claim that pods of both use.
"""
NUMBERS = st.integers(0, len(DRIVERS) - 1)


def device_class(number: int) -> DeviceClass:
    """The class of a scheduler's devices."""
    driver = DRIVERS[number]
    return build.device_class(f"class-{driver[-1]}", f'device.driver == "{driver}"')


def supply(number: int, place: str, generation: int, devices: str) -> ResourceSlice:
    """Devices of a driver in a place: each has to be attached ("w"), is tainted ("t"), or plain."""
    driver = DRIVERS[number]
    made = []
    for index, kind in enumerate(devices):
        device = build.device(f"{driver}-{place}-{index}")
        if kind == "w":
            device = attrs.evolve(
                device, binding_conditions=(READY,), binding_failure_conditions=(BROKEN,)
            )
        elif kind == "t":
            device = attrs.evolve(device, taints=(DeviceTaint("key", "value", "NoSchedule"),))
        made.append(device)
    found = build.pool_slice(
        f"{driver}-{place}", *made, driver=driver, pool=place, node=place, generation=generation
    )
    if place == "east":
        east = NodeSelectorRequirement(ZONE, "In", ("east",))
        selector = NodeSelector((NodeSelectorTerm((east,)),))
        return attrs.evolve(found, node_name="", node_selector=selector)
    if place == "bare":
        skipped = ("NodePrepareResources", "NodeUnprepareResources")
        return attrs.evolve(found, node_name="n1", skip_node_operations=skipped)
    return found


class Supply(RuleBasedStateMachine):
    """The machine."""

    @initialize()
    def begin(self) -> None:
        """Classes and some devices are there, and templates; pods and claims come later."""
        self.server = ApiServer()
        self.line = FaultyServer(self.server, script(()))
        self.generation = 1
        for name in NAMES:
            store_node(self.server, Node(ObjectMeta(name)))
        for number in range(len(DRIVERS)):
            self.store(device_class(number))
            for place, devices in (("n0", "w"), ("east", "p"), ("bare", "p")):
                self.store(supply(number, place, 1, devices))
            self.create_claims(number)
        for number in range(2):
            spec = encode(claim("t", build.exactly("r", of=f"class-{'ab'[number]}")), "v1")["spec"]
            meta = {"name": f"template-{number}", "namespace": NAMESPACE}
            kind = {"apiVersion": f"{GROUP}/v1", "kind": "ResourceClaimTemplate"}
            self.server.seed(kind | {"metadata": meta, "spec": {"spec": spec}})
        self.controller = ClaimController(self.server)
        self.watcher = Invariants(self.server)
        self.hosts = [Host(f"host-{number}", self.line, "v1", self.sent) for number in range(2)]

    def store(self, obj: DeviceClass | ResourceSlice) -> None:
        """Create or replace an object of the cluster."""
        body = encode(obj, "v1")
        body["metadata"] = {"name": obj.name}
        target = target_of(obj)
        if self.server.send(target.update(body)).status != 200:
            assert self.server.send(target.create(body)).status == 201

    def create_claims(self, number: int) -> None:
        """The claims that pods share are made, if they are not there."""
        of = f"class-{DRIVERS[number][-1]}"
        names = ((f"one-{number}", 1), (f"two-{number}", 2)) if number < 2 else (("both", 1),)
        for name, count in names:
            made = claim(name, build.exactly("r", of=of, count=count))
            body = encode(made, "v1")
            body["metadata"] = {"name": name}
            self.server.send(CLAIMS.create(body))

    # --- users -----------------------------------------------------------------------------

    @rule(number=HOSTS, which=WHICH)
    def create_pod(self, number: int, which: int) -> None:
        """A pod appears, if there is none of the name: with one claim or two."""
        generated = PodResourceClaim("g", None, f"template-{number}")
        one, two = named("one", f"one-{number}"), named("two", f"two-{number}")
        both = named("both", "both")
        entries = (
            (generated,), (one,), (two,), (one, generated), (one,), (generated,), (both,),
            (both, one),
        )[which]  # fmt: skip
        made: Pod = pod(*entries, name=f"pod-{number}-{which}", scheduler_name=f"host-{number}")
        body = encode(made)
        del body["metadata"]["uid"]
        self.server.send(PODS.create(body))

    @rule(which=WHICH)
    def delete_pod(self, which: int) -> None:
        """A pod is deleted, bound or not."""
        pods = self.server.objects("pods")
        if pods:
            name = pods[which % len(pods)]["metadata"]["name"]
            self.server.send(attrs.evolve(PODS, name=name).delete())

    @rule(number=NUMBERS, name=st.sampled_from(["one", "two"]))
    def replace_claim(self, number: int, name: str) -> None:
        """A claim is deleted; where it went at once, there is a new one of the name."""
        deleted = "both" if number == 2 else f"{name}-{number}"
        self.server.send(attrs.evolve(CLAIMS, name=deleted).delete())
        self.create_claims(number)

    # --- supply ----------------------------------------------------------------------------

    @rule(number=NUMBERS, place=st.sampled_from(PLACES), devices=st.text("pwt", max_size=3))
    def publish(self, number: int, place: str, devices: str) -> None:
        """A driver publishes other devices for a place, or none and no slice."""
        self.generation += 1
        made = supply(number, place, self.generation, devices)
        if devices:
            self.store(made)
        else:
            self.server.send(target_of(made).delete())

    @precondition(lambda self: any(host.sleeping for host in self.hosts))
    @rule(
        place=st.sampled_from(("n0", "east", "bare", "class")),
        devices=st.text("pw", min_size=2, max_size=3),
    )
    def relieve(self, place: str, devices: str) -> None:
        """There are new devices for pods that sleep, then what else it takes to get them.

        That is a label or a feature of a node, or the class. The claims are there, so that
        nothing else is in the way.
        """
        self.controller.settle()
        number = next(number for number, host in enumerate(self.hosts) if host.sleeping)
        lacking = {"east": ZONE, "bare": ABLE[0]}.get(place, "")
        for name in NAMES if lacking else ():
            if self.node_has(name, lacking):
                self.change_node(name, lacking)
        self.turn_class(number, there=place != "class")
        for name in NAMES:
            self.change_node(name, "")
        if place not in NAMES:
            self.rest(number)
        self.publish(number, "n0" if place == "class" else place, devices)
        self.show_all()
        self.check()
        if place not in NAMES:
            self.rest(number)
        if place == "class":
            self.turn_class(number, there=True)
        elif lacking:
            self.change_node("n1", lacking)
        self.show_all()
        self.check()

    def node_has(self, name: str, what: str) -> bool:
        """Whether a node is there and has the label or the feature."""
        obj = self.server.find("nodes", "", name)
        node = Node(ObjectMeta(name)) if obj is None else decode_node(obj)
        return what in node.labels or what in node.declared_features

    def show_all(self) -> None:
        """All informers show everything."""
        for host in self.hosts:
            for informer in range(len(host.informers)):
                host.show(informer)

    @rule(name=st.sampled_from(NAMES), what=st.sampled_from(["", ZONE, *ABLE]))
    def change_node(self, name: str, what: str) -> None:
        """A node comes, or its label or its feature does, or goes."""
        obj = self.server.find("nodes", "", name)
        node = Node(ObjectMeta(name)) if obj is None else decode_node(obj)
        labels, features = dict(node.labels), node.declared_features
        if what == ZONE and not labels.pop(ZONE, ""):
            labels[ZONE] = "east"
        elif what in ABLE:
            features = () if features else ABLE
        store_node(self.server, Node(ObjectMeta(name, labels=labels), features))
        self.show_all()

    @rule(name=st.sampled_from(NAMES))
    def delete_node(self, name: str) -> None:
        """A node goes."""
        self.server.send(attrs.evolve(NODES, name=name).delete())

    @rule(number=NUMBERS, there=st.booleans())
    def turn_class(self, number: int, there: bool) -> None:
        """A class is deleted, or is there again."""
        made = device_class(number)
        if there:
            self.store(made)
        else:
            self.server.send(target_of(made).delete())

    @rule(which=WHICH, broken=st.booleans())
    def attach(self, which: int, broken: bool) -> None:
        """A driver says of a device whether it is attached."""
        self.report(which, BROKEN if broken else READY)

    def report(self, which: int, condition: str) -> bool:
        """Report on a claim of which nothing was reported; whether there is one."""
        found = [obj for obj in self.server.objects("resourceclaims") if awaited(obj)]
        if not found:
            return False
        obj = found[which % len(found)]
        times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R", "message": ""}
        conditions = [{"type": condition, "status": "True", **times}]
        obj["status"]["devices"] = [
            {key: got[key] for key in ("driver", "pool", "device")} | {"conditions": conditions}
            for got in awaited(obj)
        ]
        target = attrs.evolve(CLAIMS, name=obj["metadata"]["name"], subresource="status")
        assert self.server.send(target.update(obj)).status == 200
        return True

    # --- schedulers, controllers, time -------------------------------------------------------

    @rule(number=HOSTS, informer=WHICH, most=st.sampled_from([1, 3, None]))
    def show(self, number: int, informer: int, most: int | None) -> None:
        """An informer shows some changes."""
        self.hosts[number].show(informer, most)

    @rule(number=HOSTS)
    def start(self, number: int) -> None:
        """A scheduler catches up, and begins an attempt."""
        host = self.hosts[number]
        for informer in range(len(host.informers)):
            host.show(informer)
        if not host.active:
            host.tick()
        host.start()

    @precondition(lambda self: any(host.running for host in self.hosts))
    @rule(number=HOSTS, attempt=WHICH, luck=LUCK)
    def step(self, number: int, attempt: int, luck: list[Fault | None]) -> None:
        """A few requests of attempts are sent, with good or bad luck."""
        self.line.source = script(luck)
        for _ in range(max(1, len(luck))):
            self.hosts[number].step(attempt)

    @rule(number=HOSTS)
    def finish(self, number: int) -> None:
        """All attempts of a scheduler come to their end, without bad luck."""
        self.line.source = script(())
        self.hosts[number].look_again()
        while self.hosts[number].step(0):
            pass

    @rule(number=HOSTS)
    def rest(self, number: int) -> None:
        """A scheduler has time for everything; pods that cannot be scheduled sleep."""
        self.line.source = script(())
        self.hosts[number].settle()

    @rule(number=HOSTS)
    def restart(self, number: int) -> None:
        """A scheduler process starts anew."""
        self.hosts[number].restart()

    @precondition(lambda self: any(host.running for host in self.hosts))
    @rule()
    def crash(self) -> None:
        """A scheduler process dies with something on its mind that it has not written yet."""
        next(host for host in self.hosts if host.running).restart()

    @rule()
    def wait(self) -> None:
        """Time passes: less than devices may take, but not twice."""
        for host in self.hosts:
            host.now += later(400) - NOW

    @rule()
    def control(self) -> None:
        """Controllers act."""
        self.controller.look()
        self.controller.step()
        for request in garbage(self.server):
            self.server.send(request)

    # --- what always holds -----------------------------------------------------------------

    def sent(self, _one: Running) -> None:
        """The rules after each request: with the next one the server may forget its changes."""
        self.watcher.look()

    @invariant()
    def check(self) -> None:
        """The rules, on the server and in the schedulers' memory."""
        if not hasattr(self, "hosts"):
            return
        self.watcher.look()
        assert self.watcher.violations == []
        for host in self.hosts:
            host.site.tracker._check()
            assert host.site.errors == []
            for sleeper in list(host.sleeping.values()):
                self.sleeps_rightly(host, sleeper)

    def sleeps_rightly(self, host: Host, sleeper: Pod) -> None:
        """With what the caches show, an attempt would change nothing."""
        if not host.knows(sleeper):
            return
        cycle = host.site.cycle(sleeper)
        cycle.pre_enqueue()
        if cycle.state is CycleState.ADMITTED:
            # Of the time of the attempt: that a device is overdue since is no event.
            cycle.pre_filter(host.looked[sleeper.metadata.uid])
        if cycle.state is CycleState.FILTERING:
            for node in host.nodes:
                assert not isinstance(cycle.filter(node), NodeFits), (sleeper.name, node.name)
            assert cycle.post_filter() is None, (sleeper.name, cycle.request)
        assert getattr(cycle.verdict, "retry", False) is False, cycle.verdict

    def teardown(self) -> None:
        """The bad luck ends: everything converges, and whoever can be bound is."""
        if not hasattr(self, "hosts"):
            return
        self.line.source = script(())
        for _ in range(60):
            before = self.server.version
            self.controller.settle()
            for request in garbage(self.server):
                self.server.send(request)
            assert any(not self.report(0, READY) for _ in range(20))
            happened = [host.settle() for host in self.hosts]
            self.check()
            if not any(happened) and self.server.version == before:
                break
        else:
            raise AssertionError("nothing comes to rest")
        pods = [decode_pod(obj) for obj in self.server.objects("pods")]
        for host in self.hosts:
            assert host.waiting == []
            assert host.site.tracker.in_flight() == ()
            left = {p.name for p in pods if p.scheduler_name == host.name and not p.node_name}
            assert {p.name for p in host.sleeping.values()} == left
            # A scheduler that knows nothing of what was before finds nothing to do, either.
            host.restart()
            assert any(not host.settle() for _ in range(20)), "nothing comes to rest"
            assert {p.name for p in host.sleeping.values()} == left


def target_of(obj: DeviceClass | ResourceSlice) -> Target:
    """Where an object of the cluster is."""
    resource = "deviceclasses" if isinstance(obj, DeviceClass) else "resourceslices"
    return Target(GROUP, "v1", resource, "", obj.name)


def awaited(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Devices of a claim that have conditions, unless something was reported of it."""
    status = obj["status"]
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or []
    return [] if status.get("devices") else [got for got in results if "bindingConditions" in got]


TestSupply = Supply.TestCase
TestSupply.settings = machine_settings(60)
