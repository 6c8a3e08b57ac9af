"""Claims of control plane controllers in a cycle, alone and together with structured ones."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from dra_core.api.core import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
)
from dra_core.api.objects import AllocationResult, DeviceClass, ResourceClaim
from dra_core.api.request import ApiRequest, Target
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.api.wire import encode
from dra_core.errors import ReadInOtherVersionError
from dra_core.scheduling.context import context_record
from dra_core.scheduling.context_publishing import NotPublished
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_classic import ClassicClaims
from dra_core.scheduling.cycle_structured import StructuredClaims
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import (
    NodeProblem,
    NodeReason,
    NodeUnfit,
    Passed,
    Stopped,
    StopReason,
    TroubleKind,
)
from dra_core.scheduling.errors import IncompleteContextError, SuitableNodesError
from dra_core.testing.faults import Fault, script
from support import allocation_builders as build
from support.claims import named
from support.cycle_site import GROUP, NAMESPACE, NOW, Site, claim, fitting, is_in, key, pod

CONTROLLER = "driver-a.example.com"
WAITS = Stopped(StopReason.WAIT_FOR_DRIVER)


@pytest.fixture
def site() -> Site:
    """Three nodes with one device each for structured claims, and claims of a driver."""
    site = Site(version="v1alpha3", nodes=("node-1", "node-2", "node-3"))
    site.add(*build.CLASSES)
    for name in site.nodes:
        site.devices(name, f"{name}-d")
    site.add(classic("c"), classic("d"), claim("s"))
    return site


def classic(name: str, **fields: Any) -> ResourceClaim:
    """A claim that a driver allocates."""
    return claim(name, controller=CONTROLLER, **fields)


# --- the driver


def context(site: Site, name: str = "pod") -> dict[str, Any] | None:
    """The pod's PodSchedulingContext on the server."""
    return site.server.find("podschedulingcontexts", NAMESPACE, name)


def spec_of(site: Site) -> tuple[str, list[str]]:
    """Selected node and potential nodes, as published."""
    found = context(site)
    assert found is not None
    spec = found.get("spec") or {}
    return spec.get("selectedNode") or "", list(spec.get("potentialNodes") or [])


def reports(site: Site, **unsuitable: list[str]) -> None:
    """The driver says on which nodes it cannot allocate claims of these entries."""
    found = context(site)
    assert found is not None
    found["status"] = {
        "resourceClaims": [
            {"name": entry, "unsuitableNodes": nodes} for entry, nodes in unsuitable.items()
        ]
    }
    target = Target(GROUP, "v1alpha3", "podschedulingcontexts", NAMESPACE, "pod", "status")
    assert site.server.send(target.update(found)).status == 200
    site.show()


def allocates(site: Site, name: str, node: str) -> None:
    """The driver allocates a claim for a node, as it does for the selected one."""
    selector = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    allocation = {
        "controller": CONTROLLER,
        "nodeSelector": {"nodeSelectorTerms": [selector]},
        "devices": {"results": []},
    }
    site.change_status(name, allocation=allocation)
    site.show()


def deallocates(site: Site, name: str) -> None:
    """The driver does what it was asked for."""
    site.change_status(name, allocation=None, deallocationRequested=None)
    site.show()


def attempt(site: Site, *claims: str, node: str = "") -> PodCycle:
    """An attempt up to its end: bindable, or over."""
    cycle = site.reserved(pod(*claims), node)
    if is_in(cycle, CycleState.RESERVED):
        site.drive(cycle, cycle.pre_bind(NOW))
    if not is_in(cycle, CycleState.BINDABLE):
        site.drive(cycle, cycle.unreserve())
    site.show()
    return cycle


# --- delayed allocation


def test_one_claim_of_a_driver(site: Site) -> None:
    """Exactly one pending and nothing else to allocate: select the node; publish and stop;
    nothing is allocated, reserved or bound."""
    cycle = site.filtered(pod("c"))
    cycle.score(list(site.nodes))
    assert cycle.reserve("node-2") == Passed()
    assert site.sent == []
    site.drive(cycle, cycle.pre_bind(NOW))
    assert is_in(cycle, CycleState.BROKEN)
    assert cycle.verdict == WAITS
    assert site.take_sent() == ["create podschedulingcontexts"]
    assert spec_of(site) == ("node-2", ["node-1", "node-2", "node-3"])
    found = context(site)
    assert found is not None
    assert found["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "pod-uid", "controller": True}
    ]
    assert cycle.unreserve() is None
    assert is_in(cycle, CycleState.OVER)
    assert cycle.verdict == WAITS
    site.show()
    # Nothing new to tell: the pod waits for the driver.
    again = site.reserved(pod("c"), "node-2")
    assert again.verdict == Stopped(StopReason.WAIT_FOR_DRIVER, "c")
    assert is_in(again, CycleState.BROKEN)
    assert again.unreserve() is None
    # The driver allocates, and what is left is reserving.
    allocates(site, "c", "node-2")
    last = site.reserved(pod("c"))
    assert fitting(last) == ["node-2"]
    site.drive(last, last.pre_bind(NOW))
    assert is_in(last, CycleState.BINDABLE)
    assert site.take_sent() == ["patch resourceclaims/status c"]
    assert [entry.uid for entry in site.stored("c").reserved_for] == ["pod-uid"]
    site.drive(last, last.post_bind())
    assert site.take_sent() == ["delete podschedulingcontexts pod"]
    assert context(site) is None
    assert is_in(last, CycleState.BOUND)


def test_several_claims_wait_for_reports(site: Site) -> None:
    """Several pending: nothing is selected before every pending claim has status, and
    unsuitable nodes are filtered out."""
    attempt(site, "c", "d")
    assert spec_of(site) == ("", ["node-1", "node-2", "node-3"])
    reports(site, c=["node-1"])
    half = site.reserved(pod("c", "d"))
    assert half.nodes["node-1"] == NodeUnfit(
        site.nodes["node-1"], (NodeProblem(NodeReason.UNSUITABLE, "c"),)
    )
    assert half.verdict == Stopped(StopReason.WAIT_FOR_DRIVER, "c")
    half.unreserve()
    reports(site, c=["node-1"], d=["node-3"])
    both = attempt(site, "c", "d")
    assert fitting(both) == ["node-2"]
    assert spec_of(site)[0] == "node-2"
    allocates(site, "c", "node-2")
    # One is pending now, and its node is selected already.
    rest = site.reserved(pod("c", "d"))
    assert fitting(rest) == ["node-2"]
    assert rest.verdict == Stopped(StopReason.WAIT_FOR_DRIVER, "d")
    rest.unreserve()
    allocates(site, "d", "node-2")
    assert is_in(attempt(site, "c", "d"), CycleState.BINDABLE)


def test_structured_and_classic_together(site: Site) -> None:
    """A pod with both: the driver allocates first, and nothing structured is taken until then."""
    first = site.reserved(pod("c", "s"), "node-2")
    # Something else is to be allocated: selecting now could allocate c in vain.
    assert site.in_use() == []
    site.drive(first, first.pre_bind(NOW))
    assert spec_of(site) == ("", ["node-1", "node-2", "node-3"])
    assert site.stored("s").allocation is None
    site.drive(first, first.unreserve())
    site.show()
    reports(site, c=["node-1"])
    attempt(site, "c", "s", node="node-3")
    assert spec_of(site)[0] == "node-3"
    allocates(site, "c", "node-3")
    last = attempt(site, "c", "s")
    assert is_in(last, CycleState.BINDABLE)
    stored = site.stored("s")
    assert stored.allocation is not None
    assert [result.device for result in stored.allocation.results] == ["node-3-d"]
    assert [entry.uid for entry in site.stored("c").reserved_for] == ["pod-uid"]


def test_immediate_allocation(site: Site) -> None:
    """A claim that its controller has allocated before any pod: reserve it, like any other."""
    allocates(site, "c", "node-1")
    cycle = attempt(site, "c")
    assert is_in(cycle, CycleState.BINDABLE)
    assert context(site) is None
    assert site.take_sent() == ["patch resourceclaims/status c"]
    # The controller protects what it allocates with a finalizer of its own.
    assert site.stored("c").metadata.finalizers == ()


class ImmediateKind(ClassicClaims):
    """The kind as v1alpha2 has it: allocated at once, and never again."""

    def immediate(self, claim: ResourceClaim) -> bool:
        return True

    def delayed(self, claim: ResourceClaim) -> bool:
        return False


def immediate(site: Site, name: str = "c") -> PodCycle:
    """A cycle in which claims of the driver are immediate."""
    given = site.source.take()
    kinds = [StructuredClaims(given, version="v1alpha3"), ImmediateKind(given.classes)]
    return site.cycle(pod(name, "s"), kinds=kinds)


def test_unallocated_with_immediate_allocation(site: Site) -> None:
    """Unallocated with immediate allocation by a controller: the pod waits."""
    cycle = immediate(site)
    cycle.pre_enqueue()
    assert cycle.pre_filter(NOW) == Stopped(StopReason.IMMEDIATE, "c")


def test_bug_79_deadlock_when_selected_node_is_not_potential(site: Site) -> None:
    """Only one node fits, scoring is skipped: the list is that node, and it is selected
    (k/k#120871)."""
    site.nodes = {"node-2": site.nodes["node-2"]}
    cycle = site.filtered(pod("c"))
    cycle.reserve("node-2")
    site.drive(cycle, cycle.pre_bind(NOW))
    assert spec_of(site) == ("node-2", ["node-2"])


def test_bug_79_the_selected_node_is_in_the_sample() -> None:
    """128 nodes of 200 are asked about, and the selected one is among them."""
    names = [f"n{number:03}" for number in range(200)]
    many = Site(version="v1alpha3", nodes=names)
    many.add(*build.CLASSES)
    many.add(classic("c"))
    attempt(many, "c", node="n199")
    selected, potential = spec_of(many)
    assert selected == "n199"
    assert len(potential) == 128
    assert "n199" in potential
    assert potential == sorted(potential)


def test_a_superset_is_good_enough(site: Site) -> None:
    """Potential nodes are recorded only when a fitting node is missing from the list."""
    attempt(site, "c", "d")
    site.take_sent()
    del site.nodes["node-3"]
    cycle = attempt(site, "c", "d")
    assert cycle.verdict == Stopped(StopReason.WAIT_FOR_DRIVER, "c")
    assert site.take_sent() == []


# --- publishing


def concurrently(site: Site) -> Callable[[ApiRequest], None]:
    """The driver writes its report just before each update of the context."""

    def before(request: ApiRequest) -> None:
        if request.verb == "update":
            found = context(site)
            assert found is not None
            found["status"] = {"resourceClaims": [{"name": "c", "unsuitableNodes": ["node-1"]}]}
            target = Target(GROUP, "v1alpha3", "podschedulingcontexts", NAMESPACE, "pod", "status")
            site.server.send(target.update(found))

    return before


def test_bug_81_conflict_then_apply(site: Site) -> None:
    """Conflict on update then apply, with a concurrent change of the driver's status: one
    extra call, and both changes are there (k/k#120534)."""
    attempt(site, "c", "d")
    reports(site, c=[], d=[])
    site.take_sent()
    cycle = site.reserved(pod("c", "d"), "node-3")
    site.drive(cycle, cycle.pre_bind(NOW), concurrently(site))
    assert cycle.verdict == WAITS
    assert site.take_sent() == [
        "update podschedulingcontexts pod",
        "patch podschedulingcontexts pod",
    ]
    assert spec_of(site) == ("node-3", ["node-1", "node-2", "node-3"])
    found = context(site)
    assert found is not None
    assert found["status"]["resourceClaims"][0]["unsuitableNodes"] == ["node-1"]


def test_what_is_not_published_stays_recorded(site: Site) -> None:
    """Other answers: the recorded changes stay recorded; unreserve publishes, and a failure
    there is only reported; the record goes on to the next attempt."""
    site.line.source = script([Fault.UNAVAILABLE] * 2)
    cycle = site.reserved(pod("c"), "node-2")
    site.drive(cycle, cycle.pre_bind(NOW))
    verdict = cycle.verdict
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.retry) == (StopReason.NOT_PUBLISHED, True)
    assert isinstance(verdict.cause, NotPublished)
    site.drive(cycle, cycle.unreserve())
    assert [trouble.kind for trouble in cycle.troubles] == [TroubleKind.PUBLISH]
    assert cycle.verdict is verdict
    record = cycle.context
    assert record is not None
    assert record.dirty
    assert record.intent.selected_node == "node-2"
    negotiation = site.negotiation(pod("c"), record=record)
    again = site.reserved(pod("c"), "node-3", negotiation=negotiation)
    site.drive(again, again.pre_bind(NOW))
    assert spec_of(site)[0] == "node-3"
    known = again.context
    assert known is not None
    assert not known.dirty
    assert known.known is not None


def test_unreserve_publishes_before_it_releases(site: Site) -> None:
    """Another plugin fails after reserve: what drivers have to know is published all the same."""
    cycle = site.reserved(pod("c", "s"))
    site.drive(cycle, cycle.unreserve())
    assert site.take_sent() == ["create podschedulingcontexts"]
    assert spec_of(site) == ("", ["node-1", "node-2", "node-3"])
    assert cycle.troubles == ()


def test_a_cache_that_lags_behind_a_context_costs_two_requests(site: Site) -> None:
    """A cache that does not show the object is no proof that it exists, or that it is gone."""
    first = site.reserved(pod("c"), "node-1")
    site.drive(first, first.pre_bind(NOW))
    first.unreserve()
    site.take_sent()
    negotiation = site.negotiation(pod("c"), record=first.context)
    assert negotiation.known is None
    again = site.reserved(pod("c"), "node-2", negotiation=negotiation)
    site.drive(again, again.pre_bind(NOW))
    assert site.take_sent() == [
        "create podschedulingcontexts",
        "get podschedulingcontexts pod",
        "update podschedulingcontexts pod",
    ]


def test_a_context_that_somebody_deleted_is_made_again(site: Site) -> None:
    """The pod does not wait for drivers that have nothing to look at."""
    first = site.reserved(pod("c"), "node-1")
    site.drive(first, first.pre_bind(NOW))
    site.drive(first, first.unreserve())
    site.server.send(Target(GROUP, "v1alpha3", "podschedulingcontexts", NAMESPACE, "pod").delete())
    site.show()
    site.take_sent()
    negotiation = site.negotiation(pod("c"), record=first.context)
    again = site.reserved(pod("c"), "node-1", negotiation=negotiation)
    site.drive(again, again.pre_bind(NOW))
    assert site.take_sent() == ["create podschedulingcontexts"]


def test_a_cache_that_shows_an_older_copy_changes_nothing_that_is_known(site: Site) -> None:
    """The record has the newer copy, which an answer brought: a node that was selected
    before, and is wanted again, is published."""
    first = attempt(site, "c", node="node-1")
    shown = site.negotiation(pod("c")).known
    assert shown is not None
    second = site.reserved(pod("c"), "node-2", negotiation=site.negotiation(pod("c")))
    site.drive(second, second.pre_bind(NOW))
    site.drive(second, second.unreserve())
    assert spec_of(site)[0] == "node-2"
    for record in (first.context, second.context):
        assert record is not None
        assert record.known is not None
    stale = attrs.evolve(site.negotiation(pod("c"), record=second.context), known=shown)
    third = site.reserved(pod("c"), "node-1", negotiation=stale)
    assert is_in(third, CycleState.RESERVED)
    site.drive(third, third.pre_bind(NOW))
    assert spec_of(site)[0] == "node-1"


def test_a_newer_copy_in_the_cache_is_the_one_that_counts(site: Site) -> None:
    """What somebody else has changed since the record was made."""
    first = attempt(site, "c", node="node-1")
    reports(site, c=["node-2"])
    found = context(site)
    assert found is not None
    found["spec"]["selectedNode"] = "node-3"
    target = Target(GROUP, "v1alpha3", "podschedulingcontexts", NAMESPACE, "pod")
    assert site.server.send(target.update(found)).status == 200
    site.show()
    again = site.filtered(pod("c"), negotiation=site.negotiation(pod("c"), record=first.context))
    assert fitting(again) == ["node-1", "node-3"]
    again.score(["node-1", "node-3"])
    assert again.reserve("node-3") == attrs.evolve(WAITS, pod_claim="c")


def _without_version(shown: PodSchedulingContext) -> PodSchedulingContext:
    return attrs.evolve(shown, metadata=attrs.evolve(shown.metadata, resource_version=""))


def _of_another_version(shown: PodSchedulingContext) -> PodSchedulingContext:
    raw = {**(shown.raw or {}), "apiVersion": f"{GROUP}/v1alpha2"}
    return attrs.evolve(shown, raw=raw)


@pytest.mark.parametrize(
    ("spoilt", "error"),
    [
        pytest.param(_without_version, IncompleteContextError, id="no version"),
        pytest.param(_of_another_version, ReadInOtherVersionError, id="another API version"),
    ],
)
def test_a_copy_that_cannot_be_changed_ends_the_attempt(
    site: Site,
    spoilt: Callable[[PodSchedulingContext], PodSchedulingContext],
    error: type[Exception],
) -> None:
    """With a reason, not with an exception; unreserve reports it and gives everything back."""
    site.add(claim("s2"))
    attempt(site, "c", "s", node="node-1")
    shown = site.negotiation(pod("c")).known
    assert shown is not None
    negotiation = attrs.evolve(site.negotiation(pod("c")), known=spoilt(shown))
    cycle = site.reserved(pod("c"), "node-2", negotiation=negotiation)
    assert cycle.pre_bind(NOW) is None
    assert is_in(cycle, CycleState.BROKEN)
    verdict = cycle.verdict
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.retry) == (StopReason.INVALID, True)
    assert isinstance(verdict.cause, error)
    site.drive(cycle, cycle.unreserve())
    assert is_in(cycle, CycleState.OVER)
    assert cycle.verdict is verdict
    [trouble] = cycle.troubles
    assert trouble.kind is TroubleKind.PUBLISH
    assert isinstance(trouble.cause, error)


def test_reports_of_a_context_that_is_gone_count_no_more(site: Site) -> None:
    """Also while something is still to be published: drivers will say it anew, and the pod
    must not sleep because of what they said once."""
    attempt(site, "c", node="node-1")
    reports(site, c=["node-1", "node-2", "node-3"])
    known = site.negotiation(pod("c")).known
    assert known is not None
    record = context_record(pod("c"), known).deselect_node()
    assert record.dirty
    site.server.send(Target(GROUP, "v1alpha3", "podschedulingcontexts", NAMESPACE, "pod").delete())
    site.show()
    again = site.filtered(pod("c"), negotiation=site.negotiation(pod("c"), record=record))
    assert fitting(again) == ["node-1", "node-2", "node-3"]
    assert again.reserve("node-1") == Passed()
    site.drive(again, again.pre_bind(NOW))
    assert spec_of(site)[0] == "node-1"


def test_the_record_of_another_pod_is_not_used(site: Site) -> None:
    """Neither that of an earlier pod of the same name: nothing of it is written."""
    earlier = site.reserved(pod("c", uid="earlier"), "node-1")
    negotiation = site.negotiation(pod("c"), record=earlier.context)
    now = site.reserved(pod("c"), "node-1", negotiation=negotiation)
    site.drive(now, now.pre_bind(NOW))
    stored = site.server.find("podschedulingcontexts", NAMESPACE, "pod")
    assert stored is not None
    assert [owner["uid"] for owner in stored["metadata"]["ownerReferences"]] == ["pod-uid"]


def test_nothing_is_published_once_nothing_is_pending(site: Site) -> None:
    """What was recorded in vain is of no use after the claim was allocated."""
    site.line.source = script([Fault.UNAVAILABLE] * 2)
    lost = site.reserved(pod("c"), "node-2")
    site.drive(lost, lost.pre_bind(NOW))
    site.drive(lost, lost.unreserve())
    site.line.source = script(())
    allocates(site, "c", "node-1")
    negotiation = site.negotiation(pod("c"), record=lost.context)
    cycle = site.bound(pod("c"), negotiation=negotiation)
    site.take_sent()
    site.drive(cycle, cycle.unreserve())
    assert site.take_sent() == ["patch resourceclaims/status c"]
    assert context(site) is None


def test_crash_between_recording_and_publishing(site: Site) -> None:
    """What was recorded and never published is recorded again by the next process."""
    site.reserved(pod("c"), "node-1")
    site.restart()
    attempt(site, "c", node="node-2")
    assert spec_of(site)[0] == "node-2"


def test_the_informer_does_not_show_the_object_yet(site: Site) -> None:
    """Already exists → load, check the owner, continue as update."""
    cycle = site.reserved(pod("c"), "node-1")
    site.drive(cycle, cycle.pre_bind(NOW))
    cycle.unreserve()
    again = site.reserved(pod("c"), "node-2")
    site.take_sent()
    site.drive(again, again.pre_bind(NOW))
    assert site.take_sent() == [
        "create podschedulingcontexts",
        "get podschedulingcontexts pod",
        "update podschedulingcontexts pod",
    ]
    assert spec_of(site)[0] == "node-2"


def test_a_context_of_an_older_pod(site: Site) -> None:
    """An existing context that this pod does not control is left alone."""
    owner = OwnerReference("v1", "Pod", "pod", "older-uid", True)
    old = PodSchedulingContext(ObjectMeta("pod", NAMESPACE, "ctx", owner_references=(owner,)))
    site.server.seed(encode(old, "v1alpha3"))
    for informer in site.informers:
        informer.list_anew()
    cycle = site.cycle(pod("c"))
    cycle.pre_enqueue()
    verdict = cycle.pre_filter(NOW)
    assert isinstance(verdict, Stopped)
    assert verdict.reason is StopReason.CONTEXT_NOT_OWNED
    assert site.sent == []
    # Claims that need no negotiation do not care.
    assert is_in(attempt(site, "s"), CycleState.BINDABLE)


def test_deleting_the_context_may_fail(site: Site) -> None:
    """Without asking whether it exists; a failure is reported, the pod is bound."""
    allocates(site, "c", "node-1")
    cycle = attempt(site, "c")
    site.line.source = script([Fault.UNAVAILABLE])
    site.drive(cycle, cycle.post_bind())
    assert is_in(cycle, CycleState.BOUND)
    assert [trouble.kind for trouble in cycle.troubles] == [TroubleKind.DELETE_CONTEXT]


def test_negotiation_is_needed_for_pending_claims_only(site: Site) -> None:
    """Without a way to negotiate a pending claim of a driver is nobody's; an allocated one can
    be used."""
    cycle = site.cycle(pod("c"), negotiation=None)
    cycle.pre_enqueue()
    assert cycle.pre_filter(NOW) == Stopped(StopReason.UNKNOWN_KIND, "c")
    allocates(site, "c", "node-1")
    used = site.bound(pod("c"), negotiation=None)
    assert used.post_bind() is None
    assert used.context is None


# --- classes


def test_classes_limit_the_nodes_of_classic_claims(site: Site) -> None:
    """DeviceClass.spec.suitableNodes filters nodes for unallocated claims of controllers only."""
    requirement = NodeSelectorRequirement("metadata.name", "In", ("node-2",))
    nodes = NodeSelector((NodeSelectorTerm((), (requirement,)),))
    limited = DeviceClass(ObjectMeta("limited"), suitable_nodes=nodes)
    site.add(limited, classic("e"), claim("f", build.exactly("r", of="limited")))
    site.add(attrs.evolve(claim("g", build.exactly("r", of="limited")), controller=CONTROLLER))
    cycle = site.filtered(pod("g"))
    assert fitting(cycle) == ["node-2"]
    assert cycle.nodes["node-1"] == NodeUnfit(
        site.nodes["node-1"], (NodeProblem(NodeReason.CLASS_NODES, cause=key("g")),)
    )
    assert fitting(site.filtered(pod("f"))) == ["node-1", "node-2", "node-3"]
    allocates(site, "g", "node-3")
    assert fitting(site.filtered(pod("g"))) == ["node-3"]


def test_missing_and_faulty_classes(site: Site) -> None:
    """A class that is missing makes the pod wait; one that cannot be used is an error."""
    bad = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("x", "Near"),)),))
    site.add(DeviceClass(ObjectMeta("bad"), suitable_nodes=bad))
    for name in ("missing", "bad"):
        made = claim(f"of-{name}", build.exactly("r", of=name))
        site.add(attrs.evolve(made, controller=CONTROLLER))
    missing = site.cycle(pod("of-missing"))
    missing.pre_enqueue()
    verdict = missing.pre_filter(NOW)
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.retry) == (StopReason.CLASS_MISSING, False)
    faulty = site.cycle(pod("of-bad"))
    faulty.pre_enqueue()
    verdict = faulty.pre_filter(NOW)
    assert isinstance(verdict, Stopped)
    assert isinstance(verdict.cause, SuitableNodesError)


# --- deallocation


def in_the_way(site: Site, name: str = "c", node: str = "node-1") -> PodCycle:
    """The claim was allocated for a node that does not fit any more."""
    attempt(site, name, node=node)
    allocates(site, name, node)
    del site.nodes[node]
    cycle = site.filtered(pod(name))
    assert fitting(cycle) == []
    site.take_sent()
    return cycle


def test_bug_80_wrong_order(site: Site) -> None:
    """First publish that no node is selected, then ask to deallocate (k/k#120428)."""
    cycle = in_the_way(site)
    site.drive(cycle, cycle.post_filter())
    assert cycle.verdict == Stopped(StopReason.DEALLOCATION_REQUESTED, "c")
    assert site.take_sent() == [
        "get podschedulingcontexts pod",
        "update podschedulingcontexts pod",
        "update resourceclaims/status c",
    ]
    assert spec_of(site)[0] == ""
    stored = site.stored("c")
    assert stored.deallocation_requested
    assert stored.reserved_for == ()
    # The controller deallocates; no attempt is made before that.
    site.show()
    waiting = site.cycle(pod("c"))
    waiting.pre_enqueue()
    assert waiting.pre_filter(NOW) == Stopped(StopReason.DEALLOCATION_REQUESTED, "c")
    deallocates(site, "c")
    attempt(site, "c", node="node-2")
    assert spec_of(site)[0] == "node-2"


def test_no_deallocation_while_a_node_is_selected(site: Site) -> None:
    """The reallocation flake: deallocation while the selected node is still set must be
    impossible, whatever happens to the requests before."""
    for faults in (
        [Fault.LOST_REQUEST],
        [Fault.UNAVAILABLE],
        [None, Fault.LOST_REQUEST],
        [None, Fault.CONFLICT, Fault.UNAVAILABLE],
        [None, Fault.TOO_MANY],
    ):
        flaky = Site(version="v1alpha3", nodes=("node-1", "node-2"))
        flaky.add(*build.CLASSES)
        flaky.add(classic("c"))
        cycle = in_the_way(flaky)
        flaky.line.source = script(faults)

        def before(request: ApiRequest, at: Site = flaky) -> None:
            if request.target.resource == "resourceclaims":
                assert spec_of(at)[0] == "", "asked to deallocate while a node is selected"

        flaky.drive(cycle, cycle.post_filter(), before)
        assert not flaky.stored("c").deallocation_requested, faults
        verdict = cycle.verdict
        assert isinstance(verdict, Stopped)
        assert (verdict.reason, verdict.retry) == (StopReason.NO_NODE, True)
        assert [trouble.kind for trouble in cycle.troubles] == [TroubleKind.DEALLOCATE]
        flaky.show()
        again = flaky.filtered(pod("c"))
        flaky.drive(again, again.post_filter(), before)
        assert flaky.stored("c").deallocation_requested


def test_a_selection_that_the_cache_does_not_show_is_removed_too(site: Site) -> None:
    """The copy at hand is no proof that nothing is selected: it is read first."""
    attempt(site, "c", node="node-1")
    allocates(site, "c", "node-1")
    site.contexts.observe_delete(site.contexts.list()[0])
    del site.nodes["node-1"]
    cycle = site.filtered(pod("c"))
    site.drive(cycle, cycle.post_filter())
    assert spec_of(site)[0] == ""
    assert site.stored("c").deallocation_requested


def test_bug_83_immediate_claims_deallocated(site: Site) -> None:
    """Two unavailable claims, one Immediate: only the one with delayed allocation is a
    candidate, and only claims that are in the way (k/k#122415)."""
    allocates(site, "c", "node-1")
    del site.nodes["node-1"]
    cycle = immediate(site)
    cycle.pre_enqueue()
    cycle.pre_filter(NOW)
    for node in site.nodes.values():
        cycle.filter(node)
    assert cycle.post_filter() is None
    assert cycle.verdict == Stopped(StopReason.NO_NODE)
    assert not site.stored("c").deallocation_requested
    # Both are allocated, d is not in the way: nobody touches it.
    allocates(site, "d", "node-2")
    del site.nodes["node-3"]
    mixed = site.filtered(pod("d", "c"))
    site.drive(mixed, mixed.post_filter())
    assert mixed.verdict == Stopped(StopReason.DEALLOCATION_REQUESTED, "c")
    assert not site.stored("d").deallocation_requested


def test_one_claim_per_attempt_the_first_in_the_pods_order(site: Site) -> None:
    """One per attempt, the first in the pod's order."""
    allocates(site, "c", "node-1")
    allocates(site, "d", "node-1")
    del site.nodes["node-1"]
    cycle = site.filtered(pod("d", "c"))
    site.drive(cycle, cycle.post_filter())
    assert cycle.verdict == Stopped(StopReason.DEALLOCATION_REQUESTED, "d")
    assert not site.stored("c").deallocation_requested


def test_no_deallocation_without_negotiation(site: Site) -> None:
    """Nobody could be told to stop first: the claim is left alone."""
    allocates(site, "c", "node-1")
    del site.nodes["node-1"]
    cycle = site.filtered(pod("c"), negotiation=None)
    assert cycle.post_filter() is None
    assert cycle.verdict == Stopped(StopReason.NO_NODE)


def test_two_entries_for_one_claim(site: Site) -> None:
    """Drivers report by the pod's names for a claim: both have to be reported on."""
    twice = pod(named("one", "c"), named("two", "c"))
    cycle = site.reserved(twice, "node-2")
    site.drive(cycle, cycle.pre_bind(NOW))
    assert spec_of(site) == ("", ["node-1", "node-2", "node-3"])
    site.show()
    reports(site, one=[])
    assert site.reserved(twice, "node-2").verdict == Stopped(StopReason.WAIT_FOR_DRIVER, "one")
    reports(site, one=[], two=[])
    last = site.reserved(twice, "node-2")
    site.drive(last, last.pre_bind(NOW))
    assert spec_of(site)[0] == "node-2"


def test_claims_that_a_controller_allocated_are_not_structured(site: Site) -> None:
    """Whatever the spec says, the allocation tells who made it."""
    odd = attrs.evolve(claim("odd"), allocation=AllocationResult(controller=CONTROLLER))
    structured, by_controller = site.kinds()
    assert not structured.handles(odd)
    assert by_controller.handles(odd)


def test_structured_claims_are_deallocated_by_the_scheduler(site: Site) -> None:
    """Allocated by the scheduler → status update clearing allocation, reservedFor and devices;
    a request to a controller would reach nobody."""
    done = site.bound(pod("s"), "node-1")
    site.drive(done, done.unreserve())
    site.show()
    site.take_sent()
    del site.nodes["node-1"]
    cycle = site.filtered(pod("s"))
    site.drive(cycle, cycle.post_filter())
    assert cycle.verdict == Stopped(StopReason.DEALLOCATED, "s", retry=True)
    assert site.take_sent() == ["update resourceclaims/status s"]
    stored = site.stored("s")
    assert stored.allocation is None
    assert not stored.deallocation_requested
    # The cache knows at once, so that the devices are free for the next attempt.
    assert site.in_use() == []
    assert is_in(site.bound(pod("s")), CycleState.BINDABLE)


def test_claims_of_others_are_left_alone(site: Site) -> None:
    """Reserved for nobody or only this pod."""
    site.bound(pod("s", name="other"), "node-1")
    site.show()
    del site.nodes["node-1"]
    cycle = site.filtered(pod("s"))
    assert cycle.post_filter() is None
    assert cycle.verdict == Stopped(StopReason.NO_NODE)
