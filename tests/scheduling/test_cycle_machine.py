"""Schedulers, drivers, controllers and bad luck around one API server, in any order.

Two schedulers run cycles for pods with structured claims, claims of a driver and extended
resources. The driver reports, allocates, deallocates and changes its mind; the claim
controller releases what nobody uses; the garbage collector deletes what belongs to pods
that are gone. Informers lag, requests and answers get lost, nodes come, change and go,
pods, claims and negotiations are deleted by others, processes restart, also with something
on their mind that they have not written yet. After every step:

* the rules of ``examples.support.invariants`` hold: no device is allocated twice, no claim
  of a scheduler is allocated without finalizer, no pod is bound with a claim that is not
  allocated for its node and reserved for it;
* the rules of ``support.negotiation_rules`` hold: a driver is never asked to deallocate
  while a node is selected for the same pod;
* trackers hold exactly what they should;
* no wake-up is lost: every pod is in a queue, and one that sleeps does so rightly, as
  ``support.lost_wakeups`` judges.

When the bad luck ends everything converges, and an attempt for any pod that sleeps then
changes nothing.
"""

from collections.abc import Sequence
from random import Random

import attrs
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dra_core.api.core import Node, ObjectMeta, Pod
from dra_core.api.request import APPLY, ApiRequest, Verb
from dra_core.api.wire import decode_node, decode_pod, encode
from dra_core.scheduling.cycle_table import CycleState
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import ClaimController, garbage
from dra_core.testing.faults import Fault, FaultyServer, script
from dra_core.values.quantity import Quantity
from examples.support.invariants import Invariants
from support.classic_driver import CLAIMS, CONTEXTS, VERSION, ClassicDriver
from support.cycle_host import NODES, PODS, Host, Running, store_node
from support.cycle_site import NAMESPACE, pod
from support.cycle_world import BY_CLASS, CLASSES, MENU, NAMES, UNSUITABLE, ZONES, made, supply
from support.lost_wakeups import reason_to_try
from support.machines import machine_settings
from support.negotiation_rules import NegotiationRules
from support.pods import GPU, container

WHICH = st.integers(0, 7)
LUCK = st.integers(0, 23)
COMMON = (
    *("create",) * 3, *("show",) * 5, *("start",) * 5, *("step",) * 7, *("finish",) * 2,
    *("drive",) * 4, "control", "crash", *("turn_node",) * 2, "change_node", "delete_pod",
    "replace_claim", "delete_context", *("change_mind",) * 2, "restart", *("negotiate",) * 2,
)  # fmt: skip
"""What happens, as often as it is listed."""
TURNS = st.tuples(st.sampled_from(COMMON), WHICH, LUCK)

PLACES = st.sampled_from((None, None, *NAMES))


def bad_luck(request: ApiRequest, luck: int) -> list[Fault]:
    """What happens to a request and those that follow, such as is worst for it."""
    if luck < 8 or (luck < 16 and request.verb is Verb.GET):
        return []
    if luck < 16 and request.target.resource == "podschedulingcontexts":
        return [Fault.CONTENTION if luck % 2 else Fault.CONFLICT]
    if luck < 16 and request.target.resource == "resourceclaims":
        # Reading what came of it fails, too.
        return [Fault.LOST_ANSWER if luck % 2 else Fault.LOST_REQUEST] * (1 + luck % 3)
    return [tuple(Fault)[luck % len(Fault)]]


def contended(request: ApiRequest) -> Fault | None:
    """A driver is always quicker than a scheduler that wants to change a negotiation."""
    about = request.target.resource == "podschedulingcontexts"
    return Fault.CONTENTION if about and request.verb is Verb.UPDATE else None


def unknown(request: ApiRequest) -> Fault | None:
    """What becomes of an allocation, whether it is written or not, is not to be found out."""
    where = request.target.full_resource
    if where == "resourceclaims/status" and request.verb is Verb.PATCH:
        return Fault.LOST_ANSWER if len(request.target.name) % 2 else Fault.LOST_REQUEST
    return Fault.LOST_REQUEST if where == "resourceclaims" and request.verb is Verb.GET else None


class Cluster(RuleBasedStateMachine):
    """The machine."""

    @initialize(places=st.lists(PLACES, min_size=len(BY_CLASS), max_size=len(BY_CLASS)))
    def begin(self, places: Sequence[str | None]) -> None:
        """Nodes, classes, slices and claims are there, some allocated; pods come later."""
        self.server = ApiServer()
        self.line = FaultyServer(self.server, script(()))
        for node, labels in zip(NAMES, ZONES, strict=True):
            store_node(self.server, Node(ObjectMeta(node, labels=labels)))
        self.server.seed(*(encode(one, VERSION) for one in CLASSES))
        self.server.seed(*(encode(one, VERSION) for one in supply()))
        taken: set[tuple[str, str]] = set()
        for name, place in zip(BY_CLASS, places, strict=True):
            device = (BY_CLASS[name], place or "")
            self.server.seed(made(name, None if device in taken else place))
            taken |= {device} if device[0] else set()
        self.with_plugin: set[str] = set()
        self.orphans: set[str] = set()
        self.driver = ClassicDriver(self.server, UNSUITABLE)
        self.controller = ClaimController(self.server, version=VERSION)
        self.watcher = Invariants(self.server)
        self.negotiations = NegotiationRules(self.server)
        self.hosts = [Host(f"host-{number}", self.line, VERSION, self.sent) for number in range(2)]

    # --- what happens --------------------------------------------------------------------

    @rule(turns=st.lists(TURNS, min_size=5, max_size=12))
    def act(self, turns: list[tuple[str, int, int]]) -> None:
        """A dozen things happen, one after the other."""
        for what, which, luck in turns:
            getattr(self, what)(which, luck)
            self.check()

    def create(self, which: int, luck: int) -> None:
        """A pod appears, if there is none of the name."""
        host, name, claims = MENU[(which + luck) % len(MENU)]
        containers = () if claims else (container("c", gpu=1),)
        wanted: Pod = pod(*claims, name=name, scheduler_name=f"host-{host}", containers=containers)
        body = encode(wanted)
        del body["metadata"]["uid"]
        self.server.send(PODS.create(body))

    def delete_pod(self, which: int, _luck: int) -> None:
        """A pod is deleted, bound or not."""
        pods = self.server.objects("pods")
        if pods:
            name = pods[which % len(pods)]["metadata"]["name"]
            self.server.send(attrs.evolve(PODS, name=name).delete())

    def replace_claim(self, which: int, luck: int) -> None:
        """A claim is deleted; where it went at once, there is a new one of the name."""
        name = tuple(BY_CLASS)[(which + luck) % len(BY_CLASS)]
        self.server.send(attrs.evolve(CLAIMS, name=name).delete())
        self.server.send(CLAIMS.create(made(name)))

    def delete_context(self, which: int, luck: int) -> None:
        """Somebody deletes a negotiation. That wakes nobody: schedulers do it all the time.

        Best between a conflict and what a scheduler does about it.
        """
        host = self.hosts[which % 2]
        if luck < 16 and not host.running:
            self.begin_all(host)
        names = [obj["metadata"]["name"] for obj in self.server.objects("podschedulingcontexts")]
        for index, one in enumerate(host.running):
            if one.request.verb is Verb.UPDATE and one.request.target.name in names:
                self.line.source = contended
                host.step(index)
                names = [one.request.target.name]
                break
        if names:
            self.delete_context_named(names[which % len(names)])

    def delete_context_named(self, name: str) -> None:
        """Somebody deletes the negotiation for a pod."""
        obj = self.server.find("podschedulingcontexts", NAMESPACE, name)
        if obj is not None:
            self.server.send(attrs.evolve(CONTEXTS, name=name).delete())
            self.orphans |= {owner["uid"] for owner in obj["metadata"]["ownerReferences"]}

    def turn_node(self, which: int, luck: int) -> None:
        """A node goes or comes back: one that a write is under way for, or any. One stays."""
        places = [
            result.pool
            for host in self.hosts
            for entry in host.site.tracker.in_flight()
            if entry.claim.allocation is not None
            for result in entry.claim.allocation.results
            if result.pool in NAMES
        ]
        name = places[which % len(places)] if places and luck < 16 else NAMES[which % len(NAMES)]
        there = [obj["metadata"]["name"] for obj in self.server.objects("nodes")]
        if name not in there:
            store_node(self.server, Node(ObjectMeta(name)))
        elif len(there) > 1:
            self.server.send(attrs.evolve(NODES, name=name).delete())

    def change_node(self, which: int, luck: int) -> None:
        """Labels, features or what a device plugin offers change: one of them alone, because
        each has to be noticed by itself."""
        name = NAMES[luck % len(NAMES)]
        obj = self.server.find("nodes", "", name)
        if obj is None:
            return
        node, what = decode_node(obj), which % 6
        labels, features, amounts = node.labels, node.declared_features, node.allocatable
        if what < 3:
            labels = ZONES[what]
        elif what == 3:
            features = () if features else ("DRAOptionalNodeOperations",)
        else:
            amounts = {GPU: Quantity.parse(str(what - 4))} if luck % 4 else {}
            self.with_plugin |= {name} if what == 5 else set()
        store_node(self.server, Node(ObjectMeta(name, labels=labels), features, amounts))

    def change_mind(self, which: int, luck: int) -> None:
        """The driver can allocate a claim on a node where it could not, or the other way round.

        At once it says so, to a scheduler that has heard all that it has said before.
        """
        if luck < 12:
            self.negotiate(which, 2)
        name = ("c0", "c1", "c2", "c2")[luck % 4]
        self.driver.unsuitable[name] ^= {NAMES[which % len(NAMES)]}
        if luck < 12:
            self.negotiate(which, 2)

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

    # --- schedulers ----------------------------------------------------------------------

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
        host = self.hosts[which % 2]
        if host.running:
            request = host.running[which // 2 % len(host.running)].request
            self.line.source = script(bad_luck(request, luck))
            for _ in range(1 + which % 3):
                host.step(which // 2)

    def negotiate(self, which: int, luck: int) -> None:
        """A driver says all that it has to say, and a scheduler makes the best of it."""
        while self.driver.step(which):
            pass
        self.begin_all(self.hosts[which % 2])
        self.finish(which, luck)

    def begin_all(self, host: Host) -> None:
        """A scheduler catches up, and begins all attempts that there are."""
        for informer in range(len(host.informers)):
            host.show(informer)
        host.tick()
        while host.start():
            pass

    def finish(self, which: int, luck: int) -> None:
        """All attempts of a scheduler come to their end, with the same luck for each."""
        self.line.source = (contended, unknown, script(()))[luck % 3]
        while self.hosts[which % 2].step(0):
            pass
        if luck % 3 == 1:
            self.turn_node(which, 0)
        self.line.source = script(())

    def crash(self, which: int, _luck: int) -> None:
        """A scheduler dies, with changes in mind that it has recorded and not published."""
        host = self.hosts[which % 2]
        if not host.running:
            self.begin_all(host)
        for about in sorted({one.request.target.resource for one in host.running}):
            event(f"a scheduler dies before a request about {about}")
        host.restart()

    def restart(self, which: int, _luck: int) -> None:
        """The API server forgets what it told watchers."""
        if which < 4:
            self.server.restart()

    # --- what always holds -----------------------------------------------------------------

    def sent(self, one: Running) -> None:
        """A request of a scheduler was answered: the rules that stored objects show."""
        request, resource = one.request, one.request.target.resource
        if request.content_type == APPLY and resource == "podschedulingcontexts":
            event("a context is applied after a conflict")
        if one.cycle.state is CycleState.HELPING and resource == "resourceclaims":
            what = "read" if request.verb is Verb.GET else "written"
            event(f"a claim is {what} because no node fits")
        self.watcher.look()
        self.negotiations.look(one.pod)

    @invariant()
    def check(self) -> None:
        """The invariants of the module's opening."""
        if not hasattr(self, "hosts"):
            return
        self.watcher.look()
        self.negotiations.look()
        assert self.watcher.violations == []
        assert self.negotiations.violations == []
        for obj in self.server.objects("pods"):
            spec, status = obj["spec"], obj["status"]
            if spec.get("nodeName") and "resourceClaims" not in spec:
                special = status.get("extendedResourceClaimStatus")
                assert special or spec["nodeName"] in self.with_plugin, obj["metadata"]["name"]
        for host in self.hosts:
            host.site.tracker._check()
            assert host.site.errors == []
            self.check_queues(host)

    def check_queues(self, host: Host) -> None:
        """Every pod is in a queue, bound or gone; and no pod sleeps that could be scheduled."""
        for known in host.adrift():
            obj = self.server.find("pods", NAMESPACE, known.name)
            gone = obj is None or obj["metadata"]["uid"] != known.metadata.uid
            assert gone or decode_pod(obj).node_name, f"{known.name} is forgotten"
        for sleeper in host.sleeping.values():
            if host.knows(sleeper) and not self.is_orphan(sleeper):
                reason = reason_to_try(host, sleeper, self.driver)
                assert reason == "", f"{sleeper.name} sleeps, but {reason}"

    def is_orphan(self, user: Pod) -> bool:
        """Whether somebody has deleted the pod's negotiation, which no event says."""
        context = self.server.find("podschedulingcontexts", NAMESPACE, user.name)
        return user.metadata.uid in self.orphans and context is None

    def wake_orphans(self, host: Host) -> None:
        """A scheduler tries those again that have slept for some minutes."""
        for uid, sleeper in list(host.sleeping.items()):
            if self.is_orphan(sleeper):
                self.orphans.discard(uid)
                host.backoff[uid] = host.sleeping.pop(uid)

    def teardown(self) -> None:
        """The bad luck ends: everything converges, and no wake-up was lost."""
        if not hasattr(self, "hosts"):
            return
        self.line.source = script(())
        # Who comes first is luck. Always the same order could let pods ask for a claim in turn,
        # and get it in time never.
        chance = Random(0)
        for number in range(200):
            happened = False
            self.collect()
            self.controller.look()
            while self.controller.step():
                happened = True
            while self.driver.step(number):
                happened = True
            self.check()
            for host in chance.sample(self.hosts, len(self.hosts)):
                host.shuffle(chance)
                self.wake_orphans(host)
                happened |= host.settle()
                self.check()
            if not happened:
                break
        else:
            raise AssertionError("nothing comes to rest")
        event(f"a driver was asked to deallocate: {self.negotiations.asked > 0}")
        for host in self.hosts:
            self.check_rest(host)

    def check_rest(self, host: Host) -> None:
        """Nothing is under way, and an attempt for any pod that sleeps changes nothing."""
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
