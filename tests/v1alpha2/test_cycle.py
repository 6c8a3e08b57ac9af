"""Whole scheduling cycles for pods with claims of v1alpha2, on an API server in memory."""

import copy
from typing import Any

import attrs
import pytest

from dra_core.api.objects import ResourceClaim as AnyClaim
from dra_core.api.request import ApiRequest
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import (
    NodeFailed,
    NodeFits,
    NodeProblem,
    NodeReason,
    NodeUndecided,
    NodeUnfit,
    Passed,
    Stopped,
    StopReason,
)
from dra_core.scheduling.errors import SeparateLocksError, StaleInputError
from dra_core.scheduling.in_flight import ClaimTracker
from dra_core.testing.faults import Fault, FaultyServer, script
from dra_core.v1alpha2.claims import ResourceClaim
from dra_core.v1alpha2.errors import (
    ParametersNotFoundError,
    ResourceClassNotFoundError,
    SeveralParametersError,
)
from dra_core.v1alpha2.kinds import claim_kinds
from dra_core.v1alpha2.objects import FINALIZER
from dra_core.v1alpha2.source import NamedSource
from support import named_json as objects
from support.cycle_site import NAMESPACE, NOW, fitting, is_in, pod
from support.named_site import CONTROLLER, PROTECTION, NamedSite, key

Json = dict[str, Any]

CLASS = objects.class_json("gpu", "d")
CLASSIC = objects.class_json("classic", CONTROLLER, structured=False)


def slices(*nodes: str, count: int = 1) -> list[Json]:
    names = [f"i{n}" for n in range(count)]
    return [objects.slice_json(node, node, "d", objects.plain(*names)) for node in nodes]


@pytest.fixture
def site() -> NamedSite:
    """Three nodes with one instance each, a structured class and one of a controller."""
    site = NamedSite(nodes=("node-1", "node-2", "node-3"))
    site.seed(CLASS, CLASSIC, *slices("node-1", "node-2", "node-3"))
    return site


def claim(name: str, class_name: str = "gpu", **members: Any) -> Json:
    return objects.claim_json(name, class_name, **members)


def attempt(site: NamedSite, *claims: str, node: str = "", name: str = "pod") -> PodCycle:
    """An attempt up to its end: bindable, or over."""
    cycle = site.reserved(pod(*claims, name=name), node)
    if is_in(cycle, CycleState.RESERVED):
        site.drive(cycle, cycle.pre_bind(NOW))
    if not is_in(cycle, CycleState.BINDABLE):
        site.drive(cycle, cycle.unreserve())
    site.show()
    return cycle


def stopped(site: NamedSite, *claims: str, name: str = "other") -> Stopped:
    """Why a pod waits before any node is looked at."""
    cycle = site.cycle(pod(*claims, name=name))
    cycle.pre_enqueue()
    cycle.pre_filter(NOW)
    assert isinstance(cycle.verdict, Stopped)
    return cycle.verdict


# --- structured claims -------------------------------------------------------------------


def test_a_structured_claim_is_allocated_with_finalizer_and_driver(site: NamedSite) -> None:
    """Finalizer first, then allocation, driver's name and reservation in one patch."""
    site.seed(claim("c"))
    cycle = attempt(site, "c", node="node-2")
    assert is_in(cycle, CycleState.BINDABLE)
    assert site.take_sent() == ["patch resourceclaims c", "patch resourceclaims/status c"]
    found = site.json("c")
    assert found["metadata"]["finalizers"] == [FINALIZER]
    assert found["status"] == {
        "driverName": "d",
        "allocation": objects.allocation_json(
            "node-2", objects.handle_json("d", "node-2", "i0"), shareable=True
        ),
        "reservedFor": [{"resource": "pods", "name": "pod", "uid": "pod-uid"}],
    }
    assert site.tracker.in_flight() == ()
    assert cycle.post_bind() is None
    # The next pod gets the claim as it is, on its node only.
    other = attempt(site, "c", name="other")
    assert fitting(other) == ["node-2"]
    assert other.nodes["node-1"] == NodeUnfit(
        site.nodes["node-1"], (NodeProblem(NodeReason.ELSEWHERE, "c"),), ("uid-c",)
    )
    assert site.take_sent() == ["patch resourceclaims/status c"]
    assert len(site.claim("c").reserved_for) == 2


def test_an_instance_in_flight_is_taken(site: NamedSite) -> None:
    """From reserve on nobody else gets the instance; unreserve gives it back."""
    site.seed(claim("c"), claim("d"))
    first = site.reserved(pod("c"), "node-1")
    assert site.in_use() == ["i0"]
    second = site.filtered(pod("d", name="second"))
    assert fitting(second) == ["node-2", "node-3"]
    assert stopped(site, "c").reason is StopReason.IN_FLIGHT
    site.drive(first, first.unreserve())
    assert site.in_use() == []
    assert fitting(site.filtered(pod("d"))) == ["node-1", "node-2", "node-3"]


def test_bug_46_an_event_does_not_free_what_is_in_flight(site: NamedSite) -> None:
    """Our own finalizer is shown before the allocation is written: the instance stays taken."""
    site.seed(claim("c"), claim("d"))
    cycle = site.reserved(pod("c"), "node-1")
    seen = []

    def before(request: ApiRequest) -> None:
        site.show()
        seen.append((request.target.full_resource, site.in_use()))
        assert fitting(site.filtered(pod("d", name="other"))) == ["node-2", "node-3"]

    site.drive(cycle, cycle.pre_bind(NOW), before)
    assert seen == [("resourceclaims", ["i0"]), ("resourceclaims/status", ["i0"])]
    assert is_in(cycle, CycleState.BINDABLE)


def test_claims_of_one_pod_are_allocated_together(site: NamedSite) -> None:
    """Two claims need two instances of one node; the first greedy choice is taken back."""
    model = 'attributes.string["model"] == "x"'
    models = [
        objects.instance_json(f"i{n}", [{"name": "model", "string": letter}])
        for n, letter in enumerate("xy")
    ]
    reference = objects.direct("ResourceClaimParameters", "p")
    site.seed(
        claim("any"),
        claim("x", parameters=reference),
        objects.claim_parameters_json("p", NAMESPACE, ("d", [model])),
        objects.slice_json("node-2", "node-2", "d", models),
    )
    cycle = site.filtered(pod("any", "x"))
    assert fitting(cycle) == ["node-2"]
    assert isinstance(cycle.nodes["node-1"], NodeUnfit)
    cycle.reserve("node-2")
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BINDABLE)
    got = [site.claim(name).allocation for name in ("any", "x")]
    assert [one and [r.device for r in one.results] for one in got] == [["i1"], ["i0"]]
    assert [one and one.shareable for one in got] == [True, False]


def test_a_claim_that_is_not_shareable_has_one_consumer(site: NamedSite) -> None:
    """With ``shareable: false`` the claim is full with one entry."""
    reference = objects.direct("ResourceClaimParameters", "p")
    site.seed(
        claim("c", parameters=reference),
        objects.claim_parameters_json("p", NAMESPACE, ("d", ["true"])),
    )
    attempt(site, "c")
    assert stopped(site, "c") == Stopped(StopReason.FULL, "c")
    mine = site.cycle(pod("c", uid="pod-uid"))
    mine.pre_enqueue()
    assert mine.pre_filter(NOW) == Passed()


def test_a_shareable_claim_has_32_consumers(site: NamedSite) -> None:
    """The limit of this version."""
    entries = [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(32)]
    handle = objects.handle_json("d", "node-1", "i0")
    allocation = objects.allocation_json("node-1", handle, shareable=True)
    status: Json = {"driverName": "d", "allocation": allocation, "reservedFor": entries}
    site.seed(claim("c", finalizers=[FINALIZER], **status))
    assert stopped(site, "c") == Stopped(StopReason.FULL, "c")
    site.change_status("c", reservedFor=entries[:31])
    site.show()
    assert is_in(attempt(site, "c"), CycleState.BINDABLE)


def test_a_claim_without_requests_fits_every_node(site: NamedSite) -> None:
    """An allocation without handles, on a node without resources."""
    reference = objects.direct("ResourceClaimParameters", "p")
    site.seed(claim("c", parameters=reference), objects.claim_parameters_json("p", NAMESPACE))
    site.nodes["empty"] = objects.node("empty")
    cycle = attempt(site, "c", node="empty")
    assert is_in(cycle, CycleState.BINDABLE)
    found = site.json("c")
    assert found["status"]["allocation"] == {"availableOnNodes": objects.on_node("empty")}
    assert found["status"]["driverName"] == "d"
    assert FINALIZER in found["metadata"]["finalizers"]


def test_bug_63_a_lost_finalizer_is_put_back(site: NamedSite) -> None:
    """A claim that a scheduler allocated gets its finalizer again before it is reserved."""
    allocation = objects.allocation_json(
        "node-1", objects.handle_json("d", "node-1", "i0"), shareable=True
    )
    site.seed(claim("c", driverName="d", allocation=allocation))
    cycle = site.reserved(pod("c"))
    site.drive(cycle, cycle.pre_bind(NOW), checked=False)
    assert is_in(cycle, CycleState.BINDABLE)
    assert site.take_sent() == ["patch resourceclaims c", "patch resourceclaims/status c"]
    assert site.claim("c").metadata.finalizers == (FINALIZER,)


def test_resources_of_no_node_are_taken_once(site: NamedSite) -> None:
    """What is of no node fits on every node, and then on none."""
    site.seed(
        objects.class_json("net", "n"),
        objects.slice_json("net", "", "n", objects.plain("f0")),
        claim("a", "net"),
        claim("b", "net"),
    )
    first = attempt(site, "a", node="node-3")
    assert fitting(first) == ["node-1", "node-2", "node-3"]
    second = site.filtered(pod("b"))
    assert fitting(second) == []
    (problem,) = second.nodes["node-1"].problems  # type: ignore[union-attr]
    assert problem.reason is NodeReason.DOES_NOT_FIT


# --- what the pod waits for --------------------------------------------------------------


def test_a_missing_class_makes_the_pod_wait(site: NamedSite) -> None:
    """There are no blind retries: the pod waits for the class."""
    site.seed(claim("c", "later"))
    verdict = stopped(site, "c")
    assert (verdict.reason, verdict.pod_claim, verdict.retry) == (
        StopReason.CLASS_MISSING, "c", False,
    )  # fmt: skip
    assert isinstance(verdict.cause, ResourceClassNotFoundError)
    site.seed(objects.class_json("later", "d"))
    assert is_in(attempt(site, "c"), CycleState.BINDABLE)


def test_missing_parameters_make_the_pod_wait(site: NamedSite) -> None:
    """First those of the class, then those of the claim; generated ones, too."""
    site.seed(
        objects.class_json("late", "d", parametersRef=objects.vendor("f", NAMESPACE)),
        claim("c", "late", parameters=objects.vendor("x")),
    )
    for kind, made in (
        (
            "ResourceClassParameters",
            objects.class_parameters_json(
                "f", NAMESPACE, generatedFrom=objects.vendor("f", NAMESPACE)
            ),
        ),
        (
            "ResourceClaimParameters",
            objects.claim_parameters_json(
                "p", NAMESPACE, ("d", ["true"]), generatedFrom=objects.vendor("x")
            ),
        ),
    ):
        verdict = stopped(site, "c")
        assert (verdict.reason, verdict.retry) == (StopReason.PARAMETERS_MISSING, False)
        assert isinstance(verdict.cause, ParametersNotFoundError)
        assert verdict.cause.kind == kind
        site.seed(made)
    assert is_in(attempt(site, "c"), CycleState.BINDABLE)


def test_several_parameters_are_an_error(site: NamedSite) -> None:
    """That is no wait for anything: the pod is tried again after a while."""
    site.seed(
        claim("c", parameters=objects.vendor("x")),
        *(
            objects.claim_parameters_json(name, NAMESPACE, generatedFrom=objects.vendor("x"))
            for name in ("b", "a")
        ),
    )
    verdict = stopped(site, "c")
    assert (verdict.reason, verdict.retry) == (StopReason.INVALID, True)
    assert isinstance(verdict.cause, SeveralParametersError)
    assert verdict.cause.found == (f"{NAMESPACE}/a", f"{NAMESPACE}/b")


def test_a_selector_that_does_not_compile_is_an_error(site: NamedSite) -> None:
    """The pod is unschedulable with that reason."""
    reference = objects.direct("ResourceClaimParameters", "p")
    site.seed(
        claim("c", parameters=reference),
        objects.claim_parameters_json("p", NAMESPACE, ("d", ["attributes"])),
    )
    verdict = stopped(site, "c")
    assert verdict.reason is StopReason.INVALID
    assert "does not compile" in str(verdict.cause)


def test_an_immediate_claim_of_a_controller_is_waited_for(site: NamedSite) -> None:
    """Until its controller has allocated it there is nothing to do."""
    site.seed(claim("c", "classic", mode="Immediate"))
    assert stopped(site, "c") == Stopped(StopReason.IMMEDIATE, "c")
    site.allocates("c", "node-2")
    cycle = attempt(site, "c")
    assert is_in(cycle, CycleState.BINDABLE)
    assert fitting(cycle) == ["node-2"]
    assert site.claim("c").metadata.finalizers == (PROTECTION,)


def test_an_immediate_claim_of_an_unknown_class_waits_for_the_class(site: NamedSite) -> None:
    """Nobody knows yet whether a controller is to allocate it."""
    site.seed(claim("c", "later", mode="Immediate"))
    assert stopped(site, "c").reason is StopReason.CLASS_MISSING


def test_an_immediate_structured_claim_is_allocated_for_the_pod(site: NamedSite) -> None:
    """Only a scheduler can allocate it, and it does so for the first pod."""
    site.seed(claim("c", mode="Immediate"))
    assert is_in(attempt(site, "c"), CycleState.BINDABLE)


def test_a_claim_about_to_be_deallocated_is_waited_for(site: NamedSite) -> None:
    """Its controller was asked to deallocate it."""
    site.seed(claim("c", "classic"))
    site.allocates("c", "node-1")
    site.change_status("c", deallocationRequested=True)
    site.show()
    assert stopped(site, "c") == Stopped(StopReason.DEALLOCATION_REQUESTED, "c")


def test_claims_of_other_versions_are_of_no_kind_here() -> None:
    """The kinds leave them to others, extended resources, too."""
    site = NamedSite()
    for kind in site.kinds():
        assert not kind.handles(AnyClaim())


# --- nodes -------------------------------------------------------------------------------


def test_suitable_nodes_count_until_the_claim_is_allocated(site: NamedSite) -> None:
    """Both kinds of claims are limited by their classes, and only before allocation."""
    only: Json = {"suitableNodes": objects.on_node("node-3")}
    site.seed(
        objects.class_json("picky", "d", **only),
        objects.class_json("classy", CONTROLLER, structured=False, **only),
        claim("s", "picky"),
        claim("c", "classy"),
    )
    for name in ("s", "c"):
        cycle = site.filtered(pod(name))
        assert fitting(cycle) == ["node-3"]
        problem = NodeProblem(NodeReason.CLASS_NODES, cause=key(name))
        assert cycle.nodes["node-1"] == NodeUnfit(site.nodes["node-1"], (problem,))
    site.allocates("c", "node-1")
    assert fitting(site.filtered(pod("c"))) == ["node-1"]


def test_an_evaluation_error_makes_the_node_unsuitable(site: NamedSite) -> None:
    """Other nodes may do all the same."""
    model = 'attributes.string["model"] == "x"'
    reference = objects.direct("ResourceClaimParameters", "p")
    good = [objects.instance_json("i0", [{"name": "model", "string": "x"}])]
    site.seed(
        claim("c", parameters=reference),
        objects.claim_parameters_json("p", NAMESPACE, ("d", [model])),
        objects.slice_json("node-2", "node-2", "d", good),
    )
    cycle = site.filtered(pod("c"))
    assert fitting(cycle) == ["node-2"]
    assert isinstance(cycle.nodes["node-1"], NodeFailed)


def test_a_spent_budget_is_undecided(site: NamedSite) -> None:
    """A search that was stopped is no proof."""
    site.seed(claim("c"), claim("d"))
    kinds = claim_kinds(site.named_source.take(), budget=0)
    cycle = site.filtered(pod("c", "d"), kinds=kinds)
    assert all(isinstance(verdict, NodeUndecided) for verdict in cycle.nodes.values())
    request = cycle.post_filter()
    assert request is None
    assert cycle.verdict == Stopped(StopReason.UNDECIDED, retry=True)


# --- claims of a controller --------------------------------------------------------------


def test_a_delayed_claim_is_negotiated(site: NamedSite) -> None:
    """Select the node, wait for the controller, then only reserve; tidy up after binding."""
    site.seed(claim("c", "classic"))
    first = attempt(site, "c", node="node-2")
    assert first.verdict == Stopped(StopReason.WAIT_FOR_DRIVER)
    found = site.context()
    assert found is not None
    assert found["apiVersion"] == "resource.k8s.io/v1alpha2"
    assert found["spec"]["selectedNode"] == "node-2"
    site.allocates("c", "node-2")
    site.take_sent()
    second = attempt(site, "c")
    assert is_in(second, CycleState.BINDABLE)
    assert site.take_sent() == ["patch resourceclaims/status c"]
    assert site.claim("c").metadata.finalizers == (PROTECTION,)
    site.drive(second, second.post_bind())
    assert site.context() is None


def test_structured_delayed_and_immediate_claims_together(site: NamedSite) -> None:
    """One pod with all three: the immediate claim limits the nodes, the controller allocates
    the delayed one for the selected node, and then the structured one is allocated there."""
    site.seed(claim("s"), claim("d", "classic"), claim("i", "classic", mode="Immediate"))
    everything = ("s", "d", "i")
    assert stopped(site, *everything) == Stopped(StopReason.IMMEDIATE, "i")
    site.allocates("i", "node-2")
    first = attempt(site, *everything)
    assert fitting(first) == ["node-2"]
    assert first.verdict == Stopped(StopReason.WAIT_FOR_DRIVER)
    # Nothing structured is taken or written before the controller has answered.
    assert site.in_use() == []
    assert site.claim("s").allocation is None
    spec = (site.context() or {})["spec"]
    assert (spec.get("selectedNode") or "", spec["potentialNodes"]) == ("", ["node-2"])
    site.reports(d=[])
    second = attempt(site, *everything)
    assert second.verdict == Stopped(StopReason.WAIT_FOR_DRIVER)
    assert (site.context() or {})["spec"]["selectedNode"] == "node-2"
    site.allocates("d", "node-2")
    third = attempt(site, *everything)
    assert is_in(third, CycleState.BINDABLE)
    owners = {name: site.claim(name).metadata.finalizers for name in everything}
    assert owners == {"s": (FINALIZER,), "d": (PROTECTION,), "i": (PROTECTION,)}
    for name in everything:
        assert [entry.uid for entry in site.claim(name).reserved_for] == ["pod-uid"]
    assert [r.device for r in _allocation(site, "s").results] == ["i0"]
    site.drive(third, third.post_bind())
    assert site.context() is None


def _allocation(site: NamedSite, name: str) -> Any:
    allocation = site.claim(name).allocation
    assert allocation is not None
    return allocation


def test_bug_80_the_node_is_deselected_before_deallocation(site: NamedSite) -> None:
    """Another pod takes the only instance of the selected node: the pod's delayed claim is in
    the way then, and its controller is asked to deallocate it, the node deselected first."""
    site.seed(claim("s"), claim("d", "classic"), claim("other"))
    attempt(site, "s", "d", node="node-2")
    site.reports(d=[])
    attempt(site, "s", "d", node="node-2")
    site.allocates("d", "node-2")
    assert is_in(attempt(site, "other", node="node-2", name="other"), CycleState.BINDABLE)
    cycle = site.filtered(pod("s", "d"))
    assert fitting(cycle) == []
    site.take_sent()
    site.drive(cycle, cycle.post_filter())
    assert cycle.verdict == Stopped(StopReason.DEALLOCATION_REQUESTED, "d")
    assert site.take_sent() == [
        "get podschedulingcontexts pod",
        "update podschedulingcontexts pod",
        "update resourceclaims/status d",
    ]
    assert ((site.context() or {})["spec"].get("selectedNode") or "") == ""
    assert site.claim("d").deallocation_requested
    site.show()
    site.deallocates("d")
    again = attempt(site, "s", "d", node="node-3")
    assert (site.context() or {})["spec"]["selectedNode"] == "node-3"
    assert again.verdict == Stopped(StopReason.WAIT_FOR_DRIVER)


# --- deallocating ------------------------------------------------------------------------


def test_a_claim_in_the_way_is_deallocated_by_its_finalizer(site: NamedSite) -> None:
    """A claim with the finalizer is the scheduler's: the status is cleared, driver and all."""
    handle = objects.handle_json("d", "gone", "i0")
    allocation = objects.allocation_json("gone", handle, shareable=True)
    site.seed(claim("c", finalizers=[FINALIZER], driverName="d", allocation=allocation))
    cycle = site.filtered(pod("c"))
    assert fitting(cycle) == []
    site.drive(cycle, cycle.post_filter())
    assert cycle.verdict == Stopped(StopReason.DEALLOCATED, "c", retry=True)
    assert site.take_sent() == ["update resourceclaims/status c"]
    assert site.json("c")["status"] == {}
    assert site.claim("c").metadata.finalizers == (FINALIZER,)
    site.show()
    assert is_in(attempt(site, "c"), CycleState.BINDABLE)


def test_bug_83_immediate_claims_are_never_deallocated(site: NamedSite) -> None:
    """Two claims are in the way, the first of them immediate: only the second is asked for."""
    site.seed(claim("i", "classic", mode="Immediate"), claim("d", "classic"))
    site.allocates("i", "gone")
    site.allocates("d", "gone")
    cycle = site.filtered(pod("i", "d"))
    assert fitting(cycle) == []
    site.drive(cycle, cycle.post_filter())
    assert cycle.verdict == Stopped(StopReason.DEALLOCATION_REQUESTED, "d")
    assert not site.claim("i").deallocation_requested
    assert site.claim("d").deallocation_requested


def test_an_orphan_of_the_scheduler_is_asked_of_nobody(site: NamedSite) -> None:
    """Handles of a scheduler without its finalizer: there is no controller to ask."""
    allocation = objects.allocation_json("gone", objects.handle_json("d", "gone", "i0"))
    site.seed(claim("c", driverName="d", allocation=allocation))
    cycle = site.filtered(pod("c"))
    assert cycle.post_filter() is None
    assert cycle.verdict == Stopped(StopReason.NO_NODE)


# --- bad luck ----------------------------------------------------------------------------


def test_the_finalizer_race_is_lost_without_harm(site: NamedSite) -> None:
    """The claim controller removes the finalizer between our two requests: the status is
    refused, and both are written again."""
    site.seed(claim("c"))
    cycle = site.reserved(pod("c"), "node-1")
    done: list[ApiRequest] = []

    def before(request: ApiRequest) -> None:
        if request.target.subresource and not done:
            done.append(request)
            found = site.json("c")
            found["metadata"]["finalizers"] = []
            target = attrs.evolve(request.target, subresource="")
            assert site.server.send(target.update(found)).status == 200

    site.drive(cycle, cycle.pre_bind(NOW), before)
    assert is_in(cycle, CycleState.BINDABLE)
    assert site.claim("c").metadata.finalizers == (FINALIZER,)
    assert site.take_sent() == [
        "patch resourceclaims c",
        "patch resourceclaims/status c",
        "get resourceclaims c",
        "patch resourceclaims c",
        "patch resourceclaims/status c",
    ]


@pytest.mark.parametrize("at", range(2))
@pytest.mark.parametrize("fault", list(Fault))
def test_any_fault_of_the_line_is_survived(at: int, fault: Fault) -> None:
    """A lost request or answer, a time-out or an error: in the end the pod is bound, and at
    no time is an instance taken twice."""
    site = NamedSite()
    site.line = FaultyServer(site.server, script([None] * at + [fault]))
    site.seed(CLASS, *slices("node-1", "node-2"), claim("c"), claim("d"))
    for _ in range(4):
        if is_in(attempt(site, "c", node="node-1"), CycleState.BINDABLE):
            break
    else:
        pytest.fail("the pod is never bound")
    assert [entry.uid for entry in site.claim("c").reserved_for] == ["pod-uid"]
    other = site.filtered(pod("d", name="other"))
    assert fitting(other) == ["node-2"]


def test_another_scheduler_was_faster(site: NamedSite) -> None:
    """The claim got an allocation of somebody else for the same node: it is reserved as it is."""
    site.seed(claim("c"))
    cycle = site.reserved(pod("c"), "node-1")
    theirs = claim(
        "c",
        finalizers=[FINALIZER],
        driverName="d",
        allocation=objects.allocation_json(
            "node-1", objects.handle_json("d", "node-1", "i7"), shareable=True
        ),
    )
    obj = copy.deepcopy(theirs)
    obj["metadata"]["namespace"] = NAMESPACE
    obj["metadata"].pop("resourceVersion")
    site.server.seed(obj)
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BINDABLE)
    assert [r.device for r in _allocation(site, "c").results] == ["i7"]


# --- input -------------------------------------------------------------------------------


def test_an_input_of_the_past_is_noticed(site: NamedSite) -> None:
    """After the next take a plan may look at other slices: that is an error."""
    site.seed(claim("c"))
    cycle = site.filtered(pod("c"))
    site.seed(*slices("node-1", count=2))
    site.named_source.take()
    with pytest.raises(StaleInputError):
        cycle.filter(site.nodes["node-1"])


def test_the_source_follows_its_caches(site: NamedSite) -> None:
    """The allocator stays as long as no class changes; what was taken keeps its classes."""
    before = site.named_source.take()
    assert site.named_source.take().allocator is before.allocator
    site.seed(*slices("node-1", count=2), objects.claim_parameters_json("p", NAMESPACE))
    after = site.named_source.take()
    assert after.allocator is before.allocator
    assert after.revision > before.revision
    site.server.unseed("resourceclasses", "", "gpu")
    for informer in site.informers:
        informer.list_anew()
    last = site.named_source.take()
    assert sorted(last.classes) == ["classic"]
    assert sorted(before.classes) == ["classic", "gpu"]


def test_caches_have_to_share_one_lock(site: NamedSite) -> None:
    """Otherwise a cycle could see half of a change."""
    other = NamedSite()
    parts = (site.named_classes, site.class_parameters, site.claim_parameters)
    with pytest.raises(SeparateLocksError):
        NamedSource(ClaimTracker(other.claims), site.named_slices, *parts)


def test_bug_51_54_56_a_gang_shares_what_is_in_flight(site: NamedSite) -> None:
    """Pods of one session use one pending allocation, on its node only; the second reserves."""
    site.seed(claim("c"))
    first = site.reserved(pod("c", name="p1"), "node-2", session="gang")
    second = site.filtered(pod("c", name="p2"), session="gang")
    assert fitting(second) == ["node-2"]
    second.reserve("node-2")
    for cycle in (first, second):
        site.drive(cycle, cycle.pre_bind(NOW))
        assert is_in(cycle, CycleState.BINDABLE)
    assert sorted(entry.name for entry in site.claim("c").reserved_for) == ["p1", "p2"]


def test_what_a_node_would_give_is_of_this_version(site: NamedSite) -> None:
    """The planned allocation is that of the kind."""
    site.seed(claim("c"))
    fits = site.filtered(pod("c")).nodes["node-1"]
    assert isinstance(fits, NodeFits)
    (planned,) = fits.planned
    assert isinstance(planned.claim, ResourceClaim)
    assert [r.device_id for r in planned.allocation.results] == [("d", "node-1", "i0")]
