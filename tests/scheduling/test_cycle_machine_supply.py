"""Schedulers while devices come, go, fail and take their time: no wake-up may be lost.

As in ``test_cycle_machine`` two schedulers work on one API server, with bad luck. Here the
supply changes: slices and classes are published, changed and deleted, devices have to be
attached before their pods may run, claims are made from templates, deleted and made again.

After every step the rules of ``examples.support.invariants`` hold, and every pod that sleeps
sleeps rightly: with what its scheduler's caches show now, no node fits, and there is nothing
that it could get out of the way. In the end everything converges.
"""

from typing import Any

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dra_core.api.core import Node, ObjectMeta, Pod, PodResourceClaim
from dra_core.api.objects import DeviceClass, DeviceTaint, ResourceSlice
from dra_core.api.request import Target
from dra_core.api.wire import decode_pod, encode
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import NodeFits
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import ClaimController, garbage
from dra_core.testing.faults import Fault, FaultyServer, script
from examples.support.invariants import Invariants
from support import allocation_builders as build
from support.claims import named
from support.cycle_host import PODS, Host
from support.cycle_site import GROUP, NAMESPACE, NOW, claim, later, pod
from support.machines import machine_settings

WHICH = st.integers(0, 5)
HOSTS = st.integers(0, 1)
LUCK = st.lists(st.sampled_from([*[None] * 16, *Fault]), max_size=3)
NODES = ("n0", "n1")
READY, BROKEN = "example.com/ready", "example.com/broken"
CLAIMS = Target(GROUP, "v1", "resourceclaims", NAMESPACE)
DRIVERS = ("driver-a", "driver-b")
"""Scheduler 0 has the devices of the first, scheduler 1 those of the second."""


def device_class(number: int) -> DeviceClass:
    """The class of a scheduler's devices."""
    driver = DRIVERS[number]
    return build.device_class(f"class-{driver[-1]}", f'device.driver == "{driver}"')


def supply(number: int, node: str, generation: int, devices: str) -> ResourceSlice:
    """Devices of a driver on a node: each has to be attached ("w"), is tainted ("t"), or plain."""
    driver = DRIVERS[number]
    made = []
    for index, kind in enumerate(devices):
        found = build.device(f"{driver}-{node}-{index}")
        if kind == "w":
            found = attrs.evolve(
                found, binding_conditions=(READY,), binding_failure_conditions=(BROKEN,)
            )
        elif kind == "t":
            found = attrs.evolve(found, taints=(DeviceTaint("key", "value", "NoSchedule"),))
        made.append(found)
    return build.pool_slice(
        f"{driver}-{node}", *made, driver=driver, pool=node, node=node, generation=generation
    )


class Supply(RuleBasedStateMachine):
    """The machine."""

    @initialize()
    def begin(self) -> None:
        """Classes and some devices are there, and templates; pods and claims come later."""
        self.server = ApiServer()
        self.line = FaultyServer(self.server, script(()))
        self.generation = 1
        self.nodes = {name: Node(ObjectMeta(name)) for name in NODES}
        for number in range(2):
            self.store(device_class(number))
            self.store(supply(number, "n0", 1, "pw"))
            self.create_claims(number)
            spec = encode(claim("t", build.exactly("r", of=f"class-{'ab'[number]}")), "v1")["spec"]
            meta = {"name": f"template-{number}", "namespace": NAMESPACE}
            kind = {"apiVersion": f"{GROUP}/v1", "kind": "ResourceClaimTemplate"}
            self.server.seed(kind | {"metadata": meta, "spec": {"spec": spec}})
        self.controller = ClaimController(self.server)
        self.watcher = Invariants(self.server)
        self.hosts = [Host(f"host-{number}", self.line, self.nodes, "v1") for number in range(2)]

    def store(self, obj: DeviceClass | ResourceSlice) -> None:
        """Create or replace an object of the cluster."""
        body = encode(obj, "v1")
        body["metadata"] = {"name": obj.name}
        resource = "deviceclasses" if isinstance(obj, DeviceClass) else "resourceslices"
        target = Target(GROUP, "v1", resource, "", obj.name)
        if self.server.send(target.update(body)).status != 200:
            assert self.server.send(target.create(body)).status == 201

    def create_claims(self, number: int) -> None:
        """The claims that pods of a scheduler share are made, if they are not there."""
        for name, count in ((f"one-{number}", 1), (f"two-{number}", 2)):
            made = claim(name, build.exactly("r", of=f"class-{'ab'[number]}", count=count))
            body = encode(made, "v1")
            body["metadata"] = {"name": name}
            self.server.send(CLAIMS.create(body))

    # --- users -----------------------------------------------------------------------------

    @rule(number=HOSTS, which=WHICH)
    def create_pod(self, number: int, which: int) -> None:
        """A pod appears, if there is none of the name: with one claim or two."""
        generated = PodResourceClaim("g", None, f"template-{number}")
        one, two = named("one", f"one-{number}"), named("two", f"two-{number}")
        entries = ((generated,), (one,), (two,), (one, generated), (one,), (generated,))[which]
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

    @rule(number=HOSTS, name=st.sampled_from(["one", "two"]))
    def replace_claim(self, number: int, name: str) -> None:
        """A claim is deleted; where it went at once, there is a new one of the name."""
        self.server.send(attrs.evolve(CLAIMS, name=f"{name}-{number}").delete())
        self.create_claims(number)

    # --- supply ----------------------------------------------------------------------------

    @rule(number=HOSTS, node=st.sampled_from(NODES), devices=st.text("pwt", max_size=3))
    def publish(self, number: int, node: str, devices: str) -> None:
        """A driver publishes other devices for a node, or none and no slice."""
        self.generation += 1
        made = supply(number, node, self.generation, devices)
        if devices:
            self.store(made)
        else:
            self.server.send(Target(GROUP, "v1", "resourceslices", "", made.name).delete())

    @rule(number=HOSTS, there=st.booleans())
    def turn_class(self, number: int, there: bool) -> None:
        """A class is deleted, or is there again."""
        made = device_class(number)
        if there:
            self.store(made)
        else:
            self.server.send(Target(GROUP, "v1", "deviceclasses", "", made.name).delete())

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
            self.watcher.look()

    @rule(number=HOSTS)
    def restart(self, number: int) -> None:
        """A scheduler process starts anew."""
        self.hosts[number].restart()

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
        known = host.pods.find(sleeper.metadata.key)
        if known is None or known.metadata.uid != sleeper.metadata.uid:
            return
        cycle = host.site.cycle(known)
        cycle.pre_enqueue()
        if cycle.state is CycleState.ADMITTED:
            # Of that time: that a device is overdue is no event.
            cycle.pre_filter(NOW)
        if cycle.state is CycleState.FILTERING:
            for node in host.nodes.values():
                assert not isinstance(cycle.filter(node), NodeFits), (known.name, node.name)
            assert cycle.post_filter() is None, (known.name, cycle.request)
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


def awaited(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Devices of a claim that have conditions, unless something was reported of it."""
    status = obj["status"]
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or []
    return [] if status.get("devices") else [got for got in results if "bindingConditions" in got]


TestSupply = Supply.TestCase
TestSupply.settings = machine_settings(40)
