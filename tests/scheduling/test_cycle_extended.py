"""Extended resources in a cycle: the special claim from filtering to the pod's status."""

import json

import attrs
import pytest

from dra_core.api.core import ContainerExtendedResourceRequest, Node, ObjectMeta, Pod
from dra_core.api.objects import FINALIZER, ResourceClaim
from dra_core.api.request import ApiRequest, Verb
from dra_core.api.wire import encode
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_nodes import ExtendedResources
from dra_core.scheduling.cycle_release import release_pod
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import (
    NodeFits,
    NodeProblem,
    NodeReason,
    NodeUnfit,
    Passed,
    Stopped,
    StopReason,
    TroubleKind,
)
from dra_core.scheduling.extended_claim import ANNOTATION, IN_MEMORY_NAME
from dra_core.testing.faults import Fault, script
from support import allocation_builders as build
from support.cycle_site import MADE_UP, NOW, Site, claim, fitting, is_in, pod
from support.pods import GPU, NIC, amounts, container

POD = pod(containers=(container("c1", gpu=2),))


@pytest.fixture
def site() -> Site:
    """Two nodes with two devices each, a class that offers the resource, and the pod."""
    return make_site()


def make_site() -> Site:
    """The same without a fixture."""
    site = Site()
    site.add(attrs.evolve(build.CLASSES[0], extended_resource_name=GPU), *build.CLASSES[1:])
    site.devices("node-1", "a1", "a2")
    site.devices("node-2", "b1", "b2")
    site.add(POD)
    return site


def special(site: Site) -> ResourceClaim:
    """The only special claim that there is on the server."""
    (found,) = [
        found["metadata"]["name"]
        for found in site.server.objects("resourceclaims")
        if found["metadata"].get("annotations", {}).get(ANNOTATION) == "true"
    ]
    return site.stored(found)


def with_amount(site: Site, node: str, **allocatable: int) -> None:
    """The node's device plugins offer resources."""
    known = {"gpu": GPU, "nic": NIC}
    quantities = amounts({known[name]: value for name, value in allocatable.items()})
    site.nodes[node] = Node(ObjectMeta(node), allocatable=quantities)


def test_from_resources_to_status(site: Site) -> None:
    """Create, then as any claim, then pods/status extendedResourceClaimStatus."""
    cycle = site.reserved(POD)
    assert site.in_use() == ["a1", "a2"]
    assert [entry.uid for entry in site.tracker.in_flight()] == [MADE_UP]
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BINDABLE)
    made = special(site)
    assert site.take_sent() == [
        "create resourceclaims",
        f"patch resourceclaims {made.name}",
        f"patch resourceclaims/status {made.name}",
        "patch pods/status pod",
    ]
    assert made.name.startswith("pod-extended-resources-")
    assert made.metadata.finalizers == (FINALIZER,)
    assert made.allocation is not None
    assert [result.device for result in made.allocation.results] == ["a1", "a2"]
    assert [entry.uid for entry in made.reserved_for] == ["pod-uid"]
    status = site.stored_pod().extended_resource_claim_status
    assert status is not None
    assert status.resource_claim_name == made.name
    assert status.request_mappings == (
        ContainerExtendedResourceRequest("c1", GPU, "container-0-request-0"),
    )


def test_in_flight_until_the_cache_shows_the_claim(site: Site) -> None:
    """In flight under the made-up UID until the cache shows the real one."""
    site.bound(POD)
    made = special(site)
    assert site.claims.find(made.metadata.key) is None
    assert site.in_use() == ["a1", "a2"]
    assert [entry.uid for entry in site.tracker.in_flight()] == [made.metadata.uid]
    assert site.tracker.pending(MADE_UP) is not None
    site.show()
    assert site.tracker.in_flight() == ()
    assert site.in_use() == ["a1", "a2"]


def test_bug_94_placeholder_name_leaks(site: Site) -> None:
    """No request of the whole cycle has the made-up name or UID (k/k#141467, #141556)."""
    cycle = site.bound(POD)
    site.drive(cycle, cycle.unreserve())
    written = json.dumps([[r.url, r.body] for r in site.sent])
    assert len(site.sent) > 5
    assert IN_MEMORY_NAME not in written
    assert MADE_UP not in written


def test_nodes_with_an_amount_serve_by_plugin(site: Site) -> None:
    """Has an amount → the device plugin's: no claim is made there."""
    with_amount(site, "node-2", gpu=4)
    cycle = site.filtered(POD)
    by_claim, by_plugin = cycle.nodes["node-1"], cycle.nodes["node-2"]
    assert isinstance(by_claim, NodeFits)
    assert [one.claim.name for one in by_claim.planned] == [IN_MEMORY_NAME]
    assert by_plugin == NodeFits(site.nodes["node-2"])
    cycle.reserve("node-2")
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BINDABLE)
    assert site.sent == []
    assert site.in_use() == []


def test_a_mixed_node_needs_a_claim_for_the_rest(site: Site) -> None:
    """One special claim per pod; what is in it depends on the node."""
    both = pod(containers=(container("c1", gpu=1, nic=1),), name="both")
    cycle = site.filtered(both)
    for verdict in cycle.nodes.values():
        assert verdict == NodeUnfit(
            verdict.node, (NodeProblem(NodeReason.NO_RESOURCE, "", (NIC,)),)
        )
    with_amount(site, "node-1", nic=1)
    with_amount(site, "node-2", nic=1, gpu=1)
    cycle = site.filtered(both)
    mixed, plugins = cycle.nodes["node-1"], cycle.nodes["node-2"]
    assert isinstance(mixed, NodeFits)
    assert [mapping.resource_name for mapping in mixed.mappings] == [GPU]
    assert plugins == NodeFits(site.nodes["node-2"])


def test_together_with_claims_of_the_pod(site: Site) -> None:
    """The pod's own claims and the special claim are allocated together."""
    site.add(claim("c"))
    three = pod("c", containers=(container("c1", gpu=2),), name="three")
    assert fitting(site.filtered(three)) == []
    two = pod("c", containers=(container("c1", gpu=1),), name="two")
    site.add(two)
    site.bound(two)
    assert site.in_use() == ["a1", "a2"]
    site.show()
    assert [r.device for r in site.stored("c").allocation.results] == ["a1"]  # type: ignore[union-attr]
    assert [r.device for r in special(site).allocation.results] == ["a2"]  # type: ignore[union-attr]


def test_bug_93_devices_of_init_containers_are_reused() -> None:
    """ic1 1, sidecar 1, ic2 2, c1 1: 3 devices in total (k/k#134882)."""
    site = make_site()
    site.devices("node-2", "b1", "b2", "b3")
    init = (
        container("ic1", gpu=1),
        attrs.evolve(container("side", gpu=1), restart_policy="Always"),
        container("ic2", gpu=2),
    )
    with_init = pod(containers=(container("c1", gpu=1),), init_containers=init)
    cycle = site.reserved(with_init)
    assert fitting(cycle) == ["node-2"]
    assert site.in_use() == ["b1", "b2", "b3"]


def test_implicit_names_do(site: Site) -> None:
    """The implicit deviceclass.resource.kubernetes.io/<class> of every class."""
    implicit = attrs.evolve(
        container("c1"), limits=amounts({"deviceclass.resource.kubernetes.io/class-a": 1})
    )
    assert fitting(site.filtered(pod(containers=(implicit,)))) == ["node-1", "node-2"]


def test_what_no_class_offers_is_not_looked_at(site: Site) -> None:
    """Without a class the resource is a device plugin's, and none of this library's business."""
    other = pod(containers=(container("c1", nic=1),))
    cycle = site.filtered(other)
    assert cycle.nodes["node-1"] == NodeFits(site.nodes["node-1"])
    off = site.filtered(POD, extended=None)
    assert off.nodes["node-1"] == NodeFits(site.nodes["node-1"])


# --- undoing


def test_unreserve_before_the_claim_is_created(site: Site) -> None:
    """In memory only: the devices are free, nothing is sent."""
    cycle = site.reserved(POD)
    assert cycle.unreserve() is None
    assert site.in_use() == []


def test_unreserve_removes_the_claim(site: Site) -> None:
    """The allocation first, then the finalizer, then the claim: never an allocation without
    finalizer."""
    cycle = site.bound(POD)
    made = special(site)
    site.take_sent()
    site.drive(cycle, cycle.unreserve())
    assert site.take_sent() == [
        f"update resourceclaims/status {made.name}",
        f"update resourceclaims {made.name}",
        f"delete resourceclaims {made.name}",
        "patch pods/status pod",
    ]
    assert site.server.objects("resourceclaims") == []
    assert site.stored_pod().extended_resource_claim_status is None
    assert site.in_use() == []
    assert site.tracker.in_flight() == ()
    assert cycle.troubles == ()
    site.show()
    site.bound(POD)


def test_the_informer_shows_the_claim_in_between(site: Site) -> None:
    """Whatever the cache knows of the claim when it is removed."""
    cycle = site.bound(POD)
    site.show()
    site.drive(cycle, cycle.unreserve(), lambda _request: site.show())
    site.show()
    assert site.claims.list() == ()
    assert site.in_use() == []


def left_over(site: Site) -> PodCycle:
    """The scheduler crashes after it has bound the claim, before the pod's status."""
    cycle = site.reserved(POD)
    request = cycle.pre_bind(NOW)
    for _ in range(3):
        assert request is not None
        request = cycle.answered(*site.line.send(request))
    site.restart()
    return cycle


def test_a_claim_left_from_an_earlier_attempt(site: Site) -> None:
    """No node fits, remove finalizer, delete, try again."""
    left_over(site)
    stale = special(site)
    assert site.in_use() == ["a1", "a2"]
    cycle = site.filtered(POD)
    assert fitting(cycle) == []
    verdict = cycle.nodes["node-2"]
    assert isinstance(verdict, NodeUnfit)
    assert [problem.reason for problem in verdict.problems] == [NodeReason.LEFT_OVER]
    site.take_sent()
    site.drive(cycle, cycle.post_filter())
    assert cycle.verdict == Stopped(StopReason.LEFT_OVER, retry=True)
    assert site.take_sent() == [
        f"update resourceclaims/status {stale.name}",
        f"update resourceclaims {stale.name}",
        f"delete resourceclaims {stale.name}",
    ]
    site.show()
    again = site.bound(POD)
    assert is_in(again, CycleState.BINDABLE)
    assert special(site).name != stale.name


def test_an_index_for_claims_left_over(site: Site) -> None:
    """The host may say where to look; only for pods that ask for extended resources."""
    asked: list[str] = []

    def candidates() -> list[ResourceClaim]:
        asked.append("asked")
        return []

    left_over(site)
    extended = ExtendedResources(site.source.take().resources, MADE_UP, candidates)
    site.filtered(POD, extended=extended)
    assert asked == ["asked"]
    site.filtered(pod(), extended=extended)
    assert asked == ["asked"]


def test_a_left_over_claim_counts_without_a_class(site: Site) -> None:
    """The class may be gone meanwhile; the claim is removed all the same."""
    left_over(site)
    cycle = site.filtered(POD, extended=ExtendedResources({}, MADE_UP))
    assert fitting(cycle) == []
    site.drive(cycle, cycle.post_filter())
    assert site.server.objects("resourceclaims") == []


# --- bad luck


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.RESTART])
@pytest.mark.parametrize("where", range(8))
@pytest.mark.parametrize("shown", [True, False])
def test_one_fault_anywhere(fault: Fault, where: int, shown: bool) -> None:
    """Whatever happens to one request: the invariants hold after each, the next attempts
    converge, and in the end there is one claim, which the pod's status names."""
    site = make_site()
    site.line.source = script([None] * where + [fault])

    def before(_request: ApiRequest) -> None:
        if shown:
            site.show()

    for _ in range(6):
        cycle = site.filtered(POD)
        if fitting(cycle):
            cycle.reserve(fitting(cycle)[0])
            if is_in(cycle, CycleState.RESERVED):
                site.drive(cycle, cycle.pre_bind(NOW), before)
            if is_in(cycle, CycleState.BINDABLE):
                break
            site.drive(cycle, cycle.unreserve(), before)
        else:
            site.drive(cycle, cycle.post_filter(), before)
        site.show()
    assert is_in(cycle, CycleState.BINDABLE)
    site.show()
    made = special(site)
    assert made.allocation is not None
    assert site.in_use() == sorted(result.device for result in made.allocation.results)
    assert site.tracker.in_flight() == ()
    status = site.stored_pod().extended_resource_claim_status
    assert status is not None
    assert status.resource_claim_name == made.name


def test_an_answer_to_create_that_is_lost(site: Site) -> None:
    """The claim may exist or not: the attempt ends, and the next one finds it."""
    site.line.source = script([Fault.LOST_ANSWER])
    cycle = site.reserved(POD)
    site.drive(cycle, cycle.pre_bind(NOW))
    assert cycle.verdict == Stopped(StopReason.NOT_CREATED, retry=True)
    site.drive(cycle, cycle.unreserve())
    assert site.in_use() == []
    site.show()
    assert fitting(site.filtered(POD)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"namespace": "other"},
        {"uid": ""},
        {"resourceVersion": ""},
        {"resourceVersion": "x7"},
    ],
    ids=str,
)
def test_an_answer_to_create_that_is_no_stored_claim(site: Site, wrong: dict[str, str]) -> None:
    """As if it was lost: the devices are free again, and the next attempts get there."""
    cycle = site.reserved(POD)
    request = cycle.pre_bind(NOW)
    assert request is not None
    status, body = site.server.send(request)
    body["metadata"] |= wrong
    assert cycle.answered(status, body) is None
    assert cycle.verdict == Stopped(StopReason.NOT_CREATED, retry=True, cause=201)
    assert [trouble.kind for trouble in cycle.troubles] == [TroubleKind.UNREADABLE]
    assert cycle.unreserve() is None
    assert site.in_use() == []
    assert site.tracker.in_flight() == ()
    site.show()
    second = site.filtered(POD)
    site.drive(second, second.post_filter())
    assert second.verdict == Stopped(StopReason.LEFT_OVER, retry=True)
    site.show()
    site.bound(POD)


def test_an_answer_without_uid_does_not_end_a_removal(site: Site) -> None:
    """It does not say that the claim is gone, whose devices are still allocated."""
    cycle = site.bound(POD)
    site.show()
    removal = cycle.unreserve()
    assert removal is not None
    reading = cycle.answered(None)
    assert reading is not None
    status, body = site.server.send(reading)
    body["metadata"]["uid"] = ""
    taking_back = cycle.answered(status, body)
    assert taking_back is not None
    assert taking_back.target.resource == "pods"
    assert cycle.answered(*site.server.send(taking_back)) is None
    assert [t.kind for t in cycle.troubles] == [TroubleKind.UNREADABLE, TroubleKind.REMOVE]
    assert site.in_use() == ["a1", "a2"]


def test_a_pod_that_is_gone_never_asks_for_a_claim_in_memory(site: Site) -> None:
    """Nothing is written under its name, which goes into no request (k/k#141467)."""
    dropped = site.reserved(POD)
    assert is_in(dropped, CycleState.RESERVED)
    release = release_pod(POD, site.tracker, site.kinds())
    assert release.request is None
    assert release.left == ()
    assert site.in_use() == []


def test_the_pod_is_gone(site: Site) -> None:
    """The status of a replaced pod is not changed, and the claim goes again."""
    cycle = site.reserved(POD)
    replaced = attrs.evolve(POD, metadata=attrs.evolve(POD.metadata, uid="new-uid"))
    site.server.unseed("pods", "default", "pod")
    site.add(replaced)
    site.drive(cycle, cycle.pre_bind(NOW))
    verdict = cycle.verdict
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.cause) == (StopReason.NOT_RECORDED, 422)
    site.drive(cycle, cycle.unreserve())
    assert site.server.objects("resourceclaims") == []


def test_a_removal_that_fails_is_reported(site: Site) -> None:
    """A failure is reported; the next attempt finds the claim and removes it."""
    cycle = site.bound(POD)
    made = special(site)
    site.line.source = script([Fault.UNAVAILABLE] * 20)
    site.drive(cycle, cycle.unreserve())
    assert [(t.kind, t.subject) for t in cycle.troubles] == [
        (TroubleKind.REMOVE, f"default/{made.name}"),
        (TroubleKind.TAKE_BACK, "default/pod"),
    ]
    site.line.source = script(())
    assert site.in_use() == ["a1", "a2"]
    site.show()
    again = site.filtered(POD)
    site.drive(again, again.post_filter())
    assert site.server.objects("resourceclaims") == []
    site.show()
    assert site.in_use() == []


def test_removing_goes_on_after_a_conflict(site: Site) -> None:
    """A conflict is no reason to give up: the claim is read again."""
    cycle = site.bound(POD)
    site.line.source = script([Fault.CONTENTION, None, None, Fault.CONTENTION])
    site.drive(cycle, cycle.unreserve())
    assert site.server.objects("resourceclaims") == []
    assert cycle.troubles == ()


def test_removing_gives_up_at_last(site: Site) -> None:
    """At most five rounds, then it is left to the next attempt."""
    cycle = site.bound(POD)
    site.take_sent()
    site.line.source = script([Fault.CONTENTION, None] * 40)
    site.drive(cycle, cycle.unreserve())
    *removal, last = site.take_sent()
    assert len(removal) == 11
    assert last == "patch pods/status pod"
    assert [(trouble.kind, trouble.cause) for trouble in cycle.troubles] == [
        (TroubleKind.REMOVE, 409)
    ]


def test_a_claim_of_that_name_that_is_another_is_left_alone(site: Site) -> None:
    """The claim was deleted by somebody else, and there is a new one of its name."""
    cycle = site.bound(POD)
    made = special(site)
    other = attrs.evolve(claim(made.name), metadata=ObjectMeta(made.name, "default", "other-uid"))

    def before(request: ApiRequest) -> None:
        if request.verb == "update" and not request.target.subresource:
            site.server.unseed("resourceclaims", "default", made.name)
            site.server.seed(encode(other))

    site.drive(cycle, cycle.unreserve(), before)
    assert cycle.troubles == ()
    assert site.stored(made.name).metadata.uid == "other-uid"
    assert site.tracker.in_flight() == ()


def test_the_pod_passes_if_nothing_is_asked_for(site: Site) -> None:
    """A pod without extended resources is as before."""
    plain: Pod = pod(containers=(container("c1", cpu=1),))
    cycle = site.bound(plain)
    assert cycle.verdict == Passed()
    assert site.sent == []


def test_a_special_claim_of_which_neither_write_nor_removal_was_clear(site: Site) -> None:
    """It was allocated and then deleted, both without an answer: once its end is shown its
    devices are free, although no claim is left over that the next attempt could read."""
    cycle = site.reserved(POD, "node-1")
    site.line.source = script([None, None, Fault.LOST_ANSWER, *([Fault.UNAVAILABLE] * 5)])
    site.drive(cycle, cycle.pre_bind(NOW))
    site.line.source = script(())
    request, deleted = cycle.unreserve(), False
    while request is not None:
        status, body = site.server.send(request)
        deleted = deleted or request.verb is Verb.DELETE
        request = cycle.answered(*((None, None) if deleted else (status, body)))
    assert [trouble.kind for trouble in cycle.troubles] == [TroubleKind.REMOVE]
    assert site.server.objects("resourceclaims") == []
    assert site.in_use() == ["a1", "a2"]
    site.show()
    assert site.tracker.in_flight() == ()
    assert fitting(site.filtered(POD)) == ["node-1", "node-2"]


@pytest.mark.parametrize("written", [True, False])
def test_a_claim_that_no_cache_shows_yet_is_left_over_too(site: Site, written: bool) -> None:
    """Its write was unclear, and the informer lags behind: no second claim beside it."""
    fault = Fault.LOST_ANSWER if written else Fault.LOST_REQUEST
    site.line.source = script([None, None, fault, *[Fault.UNAVAILABLE] * 30])
    first = site.reserved(POD)
    site.drive(first, first.pre_bind(NOW))
    site.drive(first, first.unreserve())
    made = special(site)
    assert site.claims.find(made.metadata.key) is None
    assert site.in_use() == ["a1", "a2"]
    site.line.source = script(())
    second = site.filtered(POD)
    assert fitting(second) == []
    site.drive(second, second.post_filter())
    assert second.verdict == Stopped(StopReason.LEFT_OVER, retry=True)
    assert site.server.find("resourceclaims", "default", made.name) is None
    assert site.in_use() == []
    site.bound(POD)
    assert special(site).name != made.name


def test_a_second_cycle_leaves_a_claim_in_the_making_alone(site: Site) -> None:
    """The first is on the way with it: made up, then created."""
    first = site.reserved(POD)
    request = first.pre_bind(NOW)
    for _ in range(2):
        second = site.cycle(POD)
        second.pre_enqueue()
        verdict = second.pre_filter(NOW)
        assert isinstance(verdict, Stopped)
        assert (verdict.reason, verdict.retry) == (StopReason.IN_FLIGHT, True)
        assert request is not None
        request = first.answered(*site.server.send(request))
    site.drive(first, request)
    assert is_in(first, CycleState.BINDABLE)


def test_what_an_earlier_attempt_recorded_is_taken_back(site: Site) -> None:
    """The next node serves the resource by its device plugin: the kubelet is not told of a
    claim that is removed. Until that is said, the pod is not bound."""
    cycle = site.bound(POD, "node-1")

    def last_fails(request: ApiRequest) -> None:
        lost = request.target.resource == "pods"
        site.line.source = script([Fault.LOST_REQUEST] if lost else ())

    site.drive(cycle, cycle.unreserve(), last_fails)
    assert [trouble.kind for trouble in cycle.troubles] == [TroubleKind.TAKE_BACK]
    site.show()
    with_amount(site, "node-2", gpu=4)
    assert site.stored_pod().extended_resource_claim_status is not None
    for fault, state in ((Fault.UNAVAILABLE, CycleState.BROKEN), (None, CycleState.BINDABLE)):
        site.line.source = script([fault])
        again = site.reserved(site.stored_pod(), "node-2")
        site.take_sent()
        site.drive(again, again.pre_bind(NOW))
        assert is_in(again, state)
        assert site.take_sent() == ["patch pods/status pod"]
    assert site.stored_pod().extended_resource_claim_status is None


def test_what_was_recorded_is_taken_back_whatever_copy_of_the_pod_comes_next(site: Site) -> None:
    """The next attempt is made with a copy from before, and on a node with a device plugin:
    the pod is not bound while its status names a claim that is removed."""
    cycle = site.bound(POD, "node-1")
    site.drive(cycle, cycle.unreserve())
    with_amount(site, "node-2", gpu=4)
    site.show()
    again = site.reserved(POD, "node-2")
    site.drive(again, again.pre_bind(NOW))
    assert is_in(again, CycleState.BINDABLE)
    assert site.stored_pod().extended_resource_claim_status is None
