"""Schedulers, drivers, controllers and bad luck around one API server, in any order.

Two schedulers run cycles for pods with structured claims, claims of a driver and extended
resources. The driver reports, allocates and deallocates; the claim controller releases
what nobody uses; the garbage collector deletes what belongs to pods that are gone.
Informers lag, requests and answers get lost, nodes come and go, processes restart. After
every step:

* no device is allocated twice, and no claim of a scheduler is allocated without finalizer;
* no pod is bound with a claim that is not allocated and reserved for it;
* a driver is never asked to deallocate while a node is selected by the same pod;
* trackers hold exactly what they should.

When the bad luck ends everything converges, and no wake-up was lost: an attempt for any
pod that sleeps then changes nothing.
"""

from typing import Any

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from dra_core.api.core import Node, ObjectMeta, Pod
from dra_core.api.objects import DeviceClass, ResourceClaim, ResourceSlice
from dra_core.api.request import Target
from dra_core.api.wire import decode_pod, decode_pod_scheduling_context, encode
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import ClaimController, garbage, read_claim
from dra_core.testing.faults import Fault, FaultyServer, script
from support import allocation_builders as build
from support.cycle_host import PODS, Host
from support.cycle_site import GROUP, NAMESPACE, claim, pod
from support.machines import machine_settings
from support.pods import GPU, container

VERSION = "v1alpha3"
CONTROLLER = "driver.example.com"
WHICH = st.integers(0, 7)
HOSTS = st.integers(0, 1)
FAULTS: list[Fault | None] = [*([None] * len(Fault)), *Fault]
COMMON = (
    *("create",) * 2, *("show",) * 4, *("start",) * 4, *("step",) * 6, "finish",
    *("drive",) * 3, "control",
)  # fmt: skip
"""What happens, as often as it is listed."""
TURNS = st.tuples(st.sampled_from(COMMON), WHICH, st.integers(0, len(FAULTS) - 1))

NODES = ("n0", "n1", "n2")
CLASSES = (
    attrs.evolve(
        build.device_class("class-a", 'device.driver == "driver-a"'), extended_resource_name=GPU
    ),
    build.device_class("class-b", 'device.driver == "driver-b"'),
    build.device_class("class-x", 'device.driver == "driver-x"'),
)
CLAIMS: dict[str, str] = {
    "a0": "class-a", "a1": "class-a", "a2": "class-a", "a3": "class-a",
    "b0": "class-b", "b1": "class-b", "x": "class-x", "c0": "", "c1": "", "c2": "",
}  # fmt: skip
"""Claims by class; "": a driver allocates it. Claim x is used by pods of both schedulers."""
MENU: tuple[tuple[int, str, tuple[str, ...]], ...] = (
    (0, "p0", ("a0",)),
    (0, "p1", ("a1", "x")),
    (0, "p2", ("a0", "a2")),
    (0, "p3", ("c0", "a3")),
    (0, "p4", ()),
    (1, "q0", ("b0", "x")),
    (1, "q1", ("b1",)),
    (1, "q2", ("c1", "c2")),
)
"""Pods: whose they are, and which claims they use. Without claims: an extended resource."""
UNSUITABLE = {"c0": ("n0",), "c1": ("n1",), "c2": ("n0", "n1")}
"""Where the driver cannot allocate; told only in reports."""


def supply() -> list[ResourceSlice]:
    """One device of each driver on each node, of the shared one on two."""
    return [
        build.pool_slice(
            f"{driver}-{node}",
            build.device(f"{driver}-{node}"),
            driver=driver,
            pool=node,
            node=node,
        )
        for driver in ("driver-a", "driver-b", "driver-x")
        for node in NODES
        if (driver, node) != ("driver-x", "n2")
    ]


def made(name: str) -> ResourceClaim:
    """A claim that nobody has allocated yet."""
    of = CLAIMS[name]
    if of:
        return claim(name, build.exactly("r", of=of))
    return claim(name, build.exactly("r", of="class-a"), controller=CONTROLLER)


class Driver:
    """A control plane controller: reports, allocates for selected nodes, deallocates.

    It reports on all nodes that it knows. One that forgets what it said about nodes which
    are not asked about any more would be asked about each of them for ever, for a pod that
    fits nowhere.
    """

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    def todo(self) -> list[tuple[str, Any]]:
        """What there is to do, in order."""
        claims = {c.name: c for c in claims_of(self.server) if c.controller}
        found: list[tuple[str, Any]] = [
            ("deallocate", c) for c in claims.values() if c.deallocation_requested
        ]
        pods = {p["metadata"]["name"]: decode_pod(p) for p in self.server.objects("pods")}
        for obj in self.server.objects("podschedulingcontexts"):
            context = decode_pod_scheduling_context(obj)
            user = pods.get(context.name)
            if user is None:
                continue
            reports: list[dict[str, Any]] = []
            for entry in user.resource_claims:
                wanted = claims.get(entry.resource_claim_name or "")
                if wanted is None:
                    continue
                bad = UNSUITABLE[wanted.name]
                reports.append({"name": entry.name, "unsuitableNodes": list(bad)})
                if wanted.allocation or wanted.metadata.deletion_timestamp:
                    continue
                selected = context.selected_node
                if selected and selected not in bad and not wanted.deallocation_requested:
                    found.append(("allocate", (wanted, selected)))
            known = (obj.get("status") or {}).get("resourceClaims") or []
            if reports and [r for r in reports if r not in known]:
                found.append(("report", (obj, reports)))
        return found

    def step(self, which: int) -> bool:
        """Do one of these things; whether there was one."""
        todo = self.todo()
        if not todo:
            return False
        what, about = todo[which % len(todo)]
        if what == "report":
            obj, reports = about
            obj["status"] = {"resourceClaims": reports}
            self._update("podschedulingcontexts", obj)
            return True
        wanted, node = (about, "") if what == "deallocate" else about
        obj = self.server.find("resourceclaims", NAMESPACE, wanted.name)
        if obj is None:
            return True
        if what == "deallocate":
            obj["status"] = {}
        else:
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            obj["status"]["allocation"] = {
                "controller": CONTROLLER,
                "nodeSelector": {"nodeSelectorTerms": [term]},
                "devices": {"results": []},
            }
        self._update("resourceclaims", obj)
        return True

    def _update(self, resource: str, obj: Any) -> None:
        target = Target(GROUP, VERSION, resource, NAMESPACE, obj["metadata"]["name"], "status")
        assert self.server.send(target.update(obj)).status in (200, 404)


def claims_of(server: ApiServer) -> list[ResourceClaim]:
    """The claims as the server has them."""
    return [read_claim(obj) for obj in server.objects("resourceclaims")]


class Cluster(RuleBasedStateMachine):
    """The machine."""

    @initialize()
    def begin(self) -> None:
        """Classes, slices and claims are there; pods come later."""
        self.server = ApiServer()
        self.line = FaultyServer(self.server, script(()))
        objects: list[DeviceClass | ResourceSlice | ResourceClaim] = [
            *CLASSES, *supply(), *map(made, CLAIMS),
        ]  # fmt: skip
        for obj in objects:
            found = encode(obj, VERSION)
            found["metadata"].pop("uid", None)
            self.server.seed(found)
        self.all_nodes = {name: Node(ObjectMeta(name)) for name in NODES}
        self.nodes = dict(self.all_nodes)
        self.driver = Driver(self.server)
        self.controller = ClaimController(self.server, version=VERSION)
        self.hosts = [Host(f"host-{number}", self.line, self.nodes) for number in range(2)]

    # --- what happens --------------------------------------------------------------------

    @rule(turns=st.lists(TURNS, min_size=5, max_size=12))
    def act(self, turns: list[tuple[str, int, int]]) -> None:
        """A dozen things happen, one after the other."""
        for what, which, luck in turns:
            getattr(self, what)(which, luck)
            self.check()

    @rule(which=WHICH, first=HOSTS)
    def disturb(self, which: int, first: int) -> None:
        """Something that is rare in a cluster."""
        if which == 0:
            self.hosts[first].restart()
        elif which == 1:
            self.server.restart()
        elif which < 4:
            self._turn_node(NODES[which % len(NODES)])
        else:
            self._delete_pod(which + first)

    def _delete_pod(self, which: int) -> None:
        """A pod is deleted, bound or not."""
        pods = self.server.objects("pods")
        if pods:
            name = pods[which % len(pods)]["metadata"]["name"]
            self.server.send(attrs.evolve(PODS, name=name).delete())

    def _turn_node(self, name: str) -> None:
        """A node goes or comes back. One always stays."""
        if name not in self.nodes:
            self.nodes[name] = self.all_nodes[name]
            for host in self.hosts:
                host.node_added(self.nodes[name])
        elif len(self.nodes) > 1:
            del self.nodes[name]

    def create(self, which: int, _luck: int) -> None:
        """A pod appears, if there is none of the name."""
        host, name, claims = MENU[which % len(MENU)]
        containers = () if claims else (container("c", gpu=1),)
        wanted: Pod = pod(*claims, name=name, scheduler_name=f"host-{host}", containers=containers)
        body = encode(wanted)
        del body["metadata"]["uid"]
        self.server.send(PODS.create(body))

    def show(self, which: int, luck: int) -> None:
        """An informer shows one change, or all of them do."""
        host = self.hosts[which % 2]
        if luck % 4 == 0:
            host.show(which // 2, 1)
        else:
            for informer in range(len(host.informers)):
                host.show(informer)

    def start(self, which: int, _luck: int) -> None:
        """A scheduler begins an attempt."""
        host = self.hosts[which % 2]
        if not host.active:
            host.tick()
        host.start()

    def step(self, which: int, luck: int) -> None:
        """Some requests of attempts are sent, with good or bad luck for the first."""
        self.line.source = script([FAULTS[luck % len(FAULTS)]])
        for _ in range(1 + which % 3):
            self.hosts[which % 2].step(which // 2)

    def finish(self, which: int, _luck: int) -> None:
        """All attempts of a scheduler come to their end, without bad luck."""
        self.line.source = script(())
        while self.hosts[which % 2].step(0):
            self.check_server()

    def drive(self, which: int, _luck: int) -> None:
        """The driver does something."""
        self.driver.step(which)

    def control(self, _which: int, luck: int) -> None:
        """The claim controller looks, and does one thing; the garbage collector acts, too."""
        if not self.controller.step():
            self.controller.look()
            self.controller.step()
        if luck % 4 == 0:
            self.collect()

    def collect(self) -> None:
        """The garbage collector deletes what belongs to pods that are gone."""
        for request in garbage(self.server):
            self.server.send(request)

    # --- what always holds -----------------------------------------------------------------

    @invariant()
    def check(self) -> None:
        """The invariants of the module's opening."""
        if not hasattr(self, "server"):
            return
        self.check_server()
        for host in self.hosts:
            host.site.tracker._check()
            assert host.site.errors == []

    def check_server(self) -> None:
        """Those that the server alone shows."""
        claims = {c.name: c for c in claims_of(self.server)}
        seen: set[tuple[str, str, str]] = set()
        for one in claims.values():
            if one.allocation is None:
                continue
            assert one.allocation.controller or one.metadata.finalizers, one.name
            for result in one.allocation.results:
                assert result.device_id not in seen, result.device_id
                seen.add(result.device_id)
        for obj in self.server.objects("pods"):
            user = decode_pod(obj)
            if not user.node_name:
                continue
            names = [entry.resource_claim_name or "" for entry in user.resource_claims]
            status = user.extended_resource_claim_status
            if not names:
                assert status is not None
                names.append(status.resource_claim_name)
            for name in names:
                assert name in claims, (user.name, name)
                used = claims[name]
                assert used.allocation is not None, (user.name, name)
                uids = [entry.uid for entry in used.reserved_for]
                assert user.metadata.uid in uids, (user.name, name, uids)

    def teardown(self) -> None:
        """The bad luck ends: everything converges, and no wake-up was lost."""
        if not hasattr(self, "server"):
            return
        self.line.source = script(())
        for _ in range(60):
            happened = False
            self.collect()
            self.controller.look()
            while self.controller.step():
                happened = True
            while self.driver.step(0):
                happened = True
            for host in self.hosts:
                happened |= host.settle()
                self.check()
            if not happened:
                break
        else:
            raise AssertionError("nothing comes to rest")
        for host in self.hosts:
            assert host.site.tracker.in_flight() == ()
            for sleeper in list(host.sleeping.values()):
                before = self.server.version
                cycle = host.attempt(sleeper)
                while host.step(0):
                    pass
                assert self.server.version == before, (sleeper.name, cycle.verdict)
            pods = [decode_pod(obj) for obj in self.server.objects("pods")]
            waiting = {p.name for p in pods if p.scheduler_name == host.name and not p.node_name}
            assert {p.name for p in host.sleeping.values()} == waiting


TestCluster = Cluster.TestCase
TestCluster.settings = machine_settings(12)
