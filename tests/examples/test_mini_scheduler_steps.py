"""The mini scheduler, one step at a time: what its threads would do, in the order of the test.

Informers show things when a test says so, and everything is sent over HTTP to the double.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import attrs
import pytest
from kubernetes import client as kube

from dra_core.api.request import ApiRequest, Target
from dra_core.api.wire import decode
from dra_core.scheduling.cycle_table import CycleState
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import ClaimController
from dra_core.testing.faults import Fault, FaultyServer, script
from dra_core.testing.watch import Informer
from examples import mini_scheduler
from examples.mini_scheduler import MiniScheduler, Work
from examples.support import demo_cluster, http_api_server
from examples.support.demo_cluster import NAMESPACE
from examples.support.doubles import Drivers

NAME = "mini-scheduler"
BIND, WRITE = "create pods/binding", "patch resourceclaims/status"
UNREADABLE = [("get resourceclaims", Fault.UNAVAILABLE)] * 20
CONTEXTS = "podschedulingcontexts"
PODS = Target("", "v1", "pods", NAMESPACE)
CLAIMS = Target("resource.k8s.io", "v1", "resourceclaims", NAMESPACE)
GPU_POD, NIC_POD = 3, 5
"""Numbers of pods of the demo: with one GPU, and with a GPU and a network card."""


class Workers:
    """Workers that work when they are told to."""

    def __init__(self) -> None:
        self.submitted: list[Callable[[], object]] = []

    def submit(self, call: Callable[..., object], *arguments: object) -> None:
        self.submitted.append(partial(call, *arguments))

    def run(self) -> None:
        """Do what was submitted."""
        while self.submitted:
            self.submitted.pop(0)()


class Stage:
    """A cluster with one node, and a scheduler whose threads do not run.

    ``sent`` are the verbs and resources of its requests.
    """

    def __init__(self, server: ApiServer, devices: int = 1) -> None:
        self.server = server
        server.seed(*demo_cluster.cluster_objects(10, 1))
        self.line = FaultyServer(server, script(()))
        self.sent: list[str] = []
        self.controller = ClaimController(server)
        self.drivers = Drivers(server, server.send, ["node-00"], devices)
        self.drivers.step()
        self.drivers.step()
        self.errors: list[Exception] = []

    def send(self, request: ApiRequest) -> Any:
        self.sent.append(f"{request.verb.value} {request.target.full_resource}")
        return self.line.send(request)

    def serve(self, url: str, version: str = "v1") -> None:
        """The server listens there: now there can be a scheduler."""
        client = kube.ApiClient(kube.Configuration(host=url))
        self.scheduler = made = MiniScheduler(client, NAME, self.errors.append, version)
        self.workers = Workers()
        made._workers = self.workers  # type: ignore[assignment]
        followed: dict[str, Any] = {
            "deviceclasses": made.classes,
            "resourceslices": made.slices,
            "resourceclaims": made.claims,
            "nodes": made.nodes,
            "pods": made.pods,
        }
        if version == "v1alpha3":
            followed["podschedulingcontexts"] = made.contexts
        self.informers = {
            resource: Informer[Any](self.server, _target(resource, version), decode, cache)
            for resource, cache in followed.items()
        }

    def show(self, *resources: str) -> None:
        """Informers show everything that there is to show; all of them if none is named."""
        for resource in resources or self.informers:
            while self.informers[resource].show():
                pass

    def create_pod(self, number: int) -> str:
        """A pod appears, with its claim; its name."""
        body = demo_cluster.pod(number, NAME)
        assert self.server.send(PODS.create(body)).status == 201
        self.controller.settle()
        self.show()
        name: str = body["metadata"]["name"]
        return name

    def take(self) -> Work:
        """What is due next."""
        work = self.scheduler.queue.take(5.0)
        assert work is not None
        return work

    def attempt(self, work: Work) -> CycleState:
        """An attempt, up to the point where it rests; the state in which it does."""
        self.scheduler._attempt(work)
        cycle = work.cycle
        assert cycle is not None
        self.workers.run()
        return cycle.state

    def node_of(self, pod: str) -> str | None:
        """The pod's node, as the server has it."""
        found = self.server.find("pods", NAMESPACE, pod)
        assert found is not None
        node: str | None = found["spec"].get("nodeName")
        return node

    def claim(self) -> Any:
        """The claim of the pod that was created last."""
        claims = self.server.objects("resourceclaims")
        return [found for found in claims if found["metadata"].get("ownerReferences")][-1]

    def fail(self, *coming: tuple[str, Fault]) -> None:
        """Bad luck to come, in this order, for requests of these verbs and resources."""
        left = list(coming)

        def source(request: ApiRequest) -> Fault | None:
            what = f"{request.verb.value} {request.target.full_resource}"
            return left.pop(0)[1] if left and left[0][0] == what else None

        self.line.source = source


def _target(resource: str, version: str) -> Target:
    core = resource in ("nodes", "pods")
    return Target("", "v1", resource) if core else Target("resource.k8s.io", version, resource)


@pytest.fixture(autouse=True)
def _short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mini_scheduler, "PAUSE", 0.01)


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A cluster with one node, which has one GPU and one network card."""
    made = Stage(ApiServer())
    with http_api_server.HttpApiServer(made.server, made.send) as shell:
        made.serve(shell.url)
        yield made


def test_a_pod_is_bound(stage: Stage) -> None:
    """The usual way; the pod is not tried again while the informer shows it without a node."""
    name = stage.create_pod(GPU_POD)
    work = stage.take()
    assert stage.attempt(work) is CycleState.BOUND
    assert stage.node_of(name) == "node-00"
    scheduler = stage.scheduler
    stage.show("resourceclaims")
    assert scheduler.queue.take(0.0) is None
    stage.show()
    assert scheduler.queue.take(0.0) is None
    assert scheduler.tracker.in_flight() == ()
    assert stage.errors == []


def test_devices_that_are_ready_before_the_pod_waits_for_them(stage: Stage) -> None:
    """The event may come after the look that found them missing, and before the pod is put
    back: it must not wait for another one."""
    name = stage.create_pod(NIC_POD)
    work = stage.take()
    queue = stage.scheduler.queue
    put_back = queue.put_back

    def late(entry: Work, earliest: float, latest: float) -> None:
        assert entry.cycle is not None
        assert entry.cycle.state is CycleState.WAITING
        assert latest > 60.0
        stage.drivers.step()
        stage.show("resourceclaims")
        put_back(entry, earliest, latest)

    queue.put_back = late  # type: ignore[method-assign]
    assert stage.attempt(work) is CycleState.WAITING
    queue.put_back = put_back  # type: ignore[method-assign]
    assert queue.take(0.0) is work
    stage.scheduler._go_on(work)
    assert stage.node_of(name) == "node-00"
    assert stage.errors == []


def test_a_pod_that_waits_for_devices_and_is_deleted(stage: Stage) -> None:
    """Its attempt ends without a binding."""
    stage.create_pod(NIC_POD)
    work = stage.take()
    assert stage.attempt(work) is CycleState.WAITING
    stage.show()
    while stage.scheduler.queue.take(0.0) is not None:  # what it wrote itself was an event, too
        stage.scheduler._go_on(work)
    stage.server.send(attrs.evolve(PODS, name=work.pod.name).delete())
    stage.drivers.step()
    stage.show()
    assert stage.scheduler.queue.take(0.0) is work
    stage.scheduler._go_on(work)
    assert "create pods/binding" not in stage.sent
    assert stage.scheduler.queue.take(0.0) is None


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.HIDDEN])
def test_an_unclear_binding_that_has_happened(stage: Stage, fault: Fault) -> None:
    """The pod runs: its claims stay."""
    name = stage.create_pod(GPU_POD)
    stage.fail((BIND, fault))
    assert stage.attempt(stage.take()) is CycleState.BOUND
    assert stage.node_of(name) == "node-00"
    assert stage.claim()["status"]["reservedFor"]


def test_an_unclear_binding_stays_unclear_until_the_pod_was_read(stage: Stage) -> None:
    """No worker is held meanwhile; what has happened once does not happen twice."""
    name = stage.create_pod(GPU_POD)
    stage.fail((BIND, Fault.LOST_ANSWER), ("get pods", Fault.UNAVAILABLE))
    work = stage.take()
    assert stage.attempt(work) is CycleState.BINDABLE
    assert stage.claim()["status"]["reservedFor"]
    assert stage.take() is work
    stage.scheduler._go_on(work)
    assert work.cycle is not None
    assert work.cycle.state is CycleState.BOUND
    assert stage.node_of(name) == "node-00"


def test_a_failed_binding_gives_everything_back(stage: Stage) -> None:
    """The reservation goes, and the pod is tried again after a backoff."""
    name = stage.create_pod(GPU_POD)
    stage.fail((BIND, Fault.UNAVAILABLE))
    work = stage.take()
    assert stage.attempt(work) is CycleState.OVER
    assert stage.node_of(name) is None
    assert not stage.claim()["status"].get("reservedFor")
    assert stage.take() is work


def test_a_pod_that_is_gone_keeps_devices_that_may_be_written(stage: Stage) -> None:
    """The allocation was written, but nobody has heard of it: until it has been looked at, and
    as long as it is there, nobody else gets the device."""
    name = stage.create_pod(GPU_POD)
    stage.fail((WRITE, Fault.LOST_ANSWER), *UNREADABLE)
    work = stage.take()
    assert stage.attempt(work) is CycleState.OVER
    tracker = stage.scheduler.tracker
    assert len(tracker.in_flight()) == 1
    stage.server.send(attrs.evolve(PODS, name=name).delete())
    stage.show("pods")
    assert stage.take() is work
    assert work.gone
    stage.scheduler._go_on(work)
    assert len(tracker.in_flight()) == 1
    stage.fail()
    assert stage.take() is work
    stage.scheduler._go_on(work)
    assert tracker.in_flight() == ()
    assert len(tracker.allocated().devices) == 1
    assert stage.scheduler.queue.take(0.0) is None
    assert stage.errors == []


def test_what_a_gone_pod_has_not_written_is_free(stage: Stage) -> None:
    """The request never arrived: the device is anybody's."""
    name = stage.create_pod(GPU_POD)
    stage.fail((WRITE, Fault.LOST_REQUEST), *UNREADABLE)
    work = stage.take()
    assert stage.attempt(work) is CycleState.OVER
    assert len(stage.scheduler.tracker.in_flight()) == 1
    stage.server.send(attrs.evolve(PODS, name=name).delete())
    stage.show("pods")
    stage.fail()
    stage.scheduler._go_on(stage.take())
    assert stage.scheduler.tracker.in_flight() == ()
    assert len(stage.scheduler.tracker.allocated().devices) == 0


@pytest.mark.parametrize("happened", [True, False])
def test_a_pod_that_sleeps_keeps_nothing_that_is_not_known(stage: Stage, happened: bool) -> None:
    """Another of its claims is gone, so that it does not come to find out: the scheduler does
    before the pod sleeps, because nothing may wake it for long."""
    second = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "second", "namespace": NAMESPACE},
        "spec": {"devices": {}},
    }
    assert stage.server.send(CLAIMS.create(second)).status == 201
    body = demo_cluster.pod(GPU_POD, NAME)
    body["spec"]["resourceClaims"].append({"name": "second", "resourceClaimName": "second"})
    assert stage.server.send(PODS.create(body)).status == 201
    stage.controller.settle()
    stage.show()
    stage.fail((WRITE, Fault.LOST_ANSWER if happened else Fault.LOST_REQUEST), *UNREADABLE)
    work, tracker = stage.take(), stage.scheduler.tracker
    assert stage.attempt(work) is CycleState.OVER
    assert len(tracker.in_flight()) == 1
    assert stage.server.send(attrs.evolve(CLAIMS, name="second").delete()).status == 200
    stage.show()
    assert stage.take() is work
    assert stage.attempt(work) is CycleState.OVER  # still unreadable: it has to come again
    assert len(tracker.in_flight()) == 1
    stage.fail()
    assert stage.take() is work
    assert stage.attempt(work) is CycleState.OVER
    assert tracker.in_flight() == ()
    assert len(tracker.allocated().devices) == (1 if happened else 0)
    assert stage.errors == []


def test_a_pod_that_fits_nowhere_sleeps_until_devices_are_free(stage: Stage) -> None:
    """The reason of the attempt decides: it is not tried before something has changed."""
    first, second = stage.create_pod(GPU_POD), stage.create_pod(GPU_POD + 1)
    scheduler = stage.scheduler
    work, other = stage.take(), stage.take()
    scheduler._attempt(work)
    scheduler._attempt(other)
    stage.workers.run()
    assert (stage.node_of(first), stage.node_of(second)) == ("node-00", None)
    stage.show()
    assert scheduler.queue.take(0.2) is None
    stage.server.send(attrs.evolve(PODS, name=first).delete())
    stage.controller.settle()
    stage.show()
    assert stage.take() is other


def test_an_error_that_nobody_has_foreseen(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported, ends neither thread nor attempt, and the pod comes again."""
    name = stage.create_pod(GPU_POD)
    work, scheduler = stage.take(), stage.scheduler
    with monkeypatch.context() as patched:
        patched.setattr(scheduler.source, "take", lambda: 1 / 0)
        scheduler._guarded(scheduler._attempt, work)
    assert [type(error) for error in stage.errors] == [ZeroDivisionError]
    assert stage.take() is work
    with monkeypatch.context() as patched:
        patched.setattr("examples.mini_scheduler.send", lambda *_args, **_options: 1 / 0)
        assert stage.attempt(work) is CycleState.OVER
    assert {type(error) for error in stage.errors} == {ZeroDivisionError}
    assert stage.take() is work
    assert stage.node_of(name) is None


def _is_dirty(work: Work) -> bool:
    assert work.record is not None
    return work.record.dirty


def test_what_was_published_is_known_before_the_informer_shows_it() -> None:
    """What could not be published is kept for the next attempt; what was is not published
    again, which would only meet with a conflict."""
    stage, api = Stage(ApiServer()), "resource.k8s.io/v1alpha3"
    spec = {"controller": "classic.example.com", "devices": {}}
    meta = {"name": "classic", "namespace": NAMESPACE}
    claim = {"apiVersion": api, "kind": "ResourceClaim", "metadata": meta, "spec": spec}
    entry = {"name": "claim", "resourceClaimName": "classic"}
    pod = demo_cluster.pod(GPU_POD, NAME)
    pod["spec"]["resourceClaims"] = [entry]
    stage.server.seed(claim, pod)
    with http_api_server.HttpApiServer(stage.server, stage.send) as shell:
        stage.serve(shell.url, "v1alpha3")
        stage.show()
        work = stage.take()
        stage.fail(*[(f"create {CONTEXTS}", Fault.UNAVAILABLE)] * 2)
        assert stage.attempt(work) is CycleState.OVER
        assert _is_dirty(work)
        assert stage.take() is work
        assert stage.attempt(work) is CycleState.OVER
        assert not _is_dirty(work)
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-01"}}
        assert stage.server.send(Target("", "v1", "nodes").create(node)).status == 201
        stage.show()
        assert stage.take() is work
        stage.scheduler.attempts = 1  # so that node-00 is the first to be looked at, and picked
        assert stage.attempt(work) is CycleState.OVER
        context = stage.server.objects(CONTEXTS)[0]
        assert context["spec"] == {
            "selectedNode": "node-00",
            "potentialNodes": ["node-00", "node-01"],
        }
        known = stage.scheduler.contexts.find(work.pod.metadata.key)
        assert known is not None
        assert known.potential_nodes == ("node-00", "node-01")
        stage.sent.clear()
        stage.scheduler.attempts = 1
        assert stage.attempt(work) is CycleState.OVER
        assert stage.sent == []
    assert stage.errors == []
