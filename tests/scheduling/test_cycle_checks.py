"""What stops a pod before any node is looked at, and what nodes say."""

import attrs
import pytest

from dra_core.allocator.results import Undecided, Unsatisfiable
from dra_core.api.core import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodResourceClaim,
)
from dra_core.api.objects import (
    AllocationResult,
    DeviceTaint,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from dra_core.errors import (
    ClaimNotCreatedError,
    ClaimNotFoundError,
    DeviceClassNotFoundError,
    SelectorFailedError,
    UnknownRequestError,
)
from dra_core.scheduling.cycle_structured import StructuredClaims
from dra_core.scheduling.cycle_table import CycleState
from dra_core.scheduling.cycle_verdicts import (
    NodeFailed,
    NodeProblem,
    NodeReason,
    NodeUndecided,
    NodeUnfit,
    Passed,
    Stopped,
    StopReason,
    stop_for_nodes,
)
from dra_core.scheduling.errors import StaleInputError
from support import allocation_builders as build
from support import in_use
from support.claims import named, template
from support.cycle_site import NOW, Site, claim, fitting, is_in, pod


@pytest.fixture
def site() -> Site:
    """Two nodes with one device each, and an unallocated claim."""
    site = Site()
    site.add(*build.CLASSES)
    site.devices("node-1", "a1")
    site.devices("node-2", "b1")
    site.add(claim("c"))
    return site


def allocated(name: str, node: str = "node-1", **fields: object) -> ResourceClaim:
    """A claim that is allocated for a node."""
    requirement = NodeSelectorRequirement("metadata.name", "In", (node,))
    selector = NodeSelector((NodeSelectorTerm((), (requirement,)),))
    result = in_use.result(in_use.device("a1", "node-1", build.DRIVER))
    made = claim(name, allocation=AllocationResult((result,), node_selector=selector))
    return attrs.evolve(made, **fields)  # type: ignore[arg-type]


def stopped(site: Site, *entries: str | PodResourceClaim) -> Stopped:
    """The verdict of the pre-filter step for a pod that stops there."""
    cycle = site.cycle(pod(*entries))
    assert cycle.pre_enqueue() == Passed()
    verdict = cycle.pre_filter(NOW)
    assert is_in(cycle, CycleState.OVER)
    assert cycle.verdict is verdict
    assert isinstance(verdict, Stopped)
    return verdict


def test_pre_enqueue_stops_a_pod_whose_claims_are_not_there(site: Site) -> None:
    """Every pod claim resolves, the claim exists; else the reason, no attempt."""
    cycle = site.cycle(pod("c", "missing"))
    verdict = cycle.pre_enqueue()
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.pod_claim) == (StopReason.UNRESOLVED, "missing")
    assert isinstance(verdict.cause, ClaimNotFoundError)
    assert not verdict.retry
    assert is_in(cycle, CycleState.OVER)
    generated = site.cycle(pod(template("t")))
    verdict = generated.pre_enqueue()
    assert isinstance(verdict, Stopped)
    assert isinstance(verdict.cause, ClaimNotCreatedError)


def test_a_claim_may_vanish_between_pre_enqueue_and_pre_filter(site: Site) -> None:
    """Resolution is repeated before filtering."""
    cycle = site.cycle(pod("c"))
    cycle.pre_enqueue()
    site.claims.observe_delete(site.stored("c"))
    verdict = cycle.pre_filter(NOW)
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.pod_claim) == (StopReason.UNRESOLVED, "c")


def test_a_full_claim(site: Site) -> None:
    """Allocated, full and not reserved for this pod."""
    users = tuple(ResourceClaimConsumerReference("", "pods", f"p{n}", f"u{n}") for n in range(256))
    site.add(allocated("shared", reserved_for=users))
    assert stopped(site, "c", "shared") == Stopped(StopReason.FULL, "shared")
    mine = (*users[1:], ResourceClaimConsumerReference("", "pods", "pod", "pod-uid"))
    site.add(allocated("mine", reserved_for=mine))
    assert fitting(site.filtered(pod("mine"))) == ["node-1"]


def test_bug_65_the_limit_is_a_parameter(site: Site) -> None:
    """32 consumers for clusters up to 1.32."""
    users = tuple(ResourceClaimConsumerReference("", "pods", f"p{n}", f"u{n}") for n in range(32))
    site.add(allocated("shared", reserved_for=users))
    assert fitting(site.filtered(pod("shared"))) == ["node-1"]
    old = StructuredClaims(site.source.take(), consumers=32)
    cycle = site.cycle(pod("shared"), kinds=[old])
    cycle.pre_enqueue()
    assert cycle.pre_filter(NOW) == Stopped(StopReason.FULL, "shared")


def test_an_allocation_in_flight(site: Site) -> None:
    """Allocation in flight: another pod that needs the claim waits."""
    site.reserved(pod("c"))
    cycle = site.cycle(pod("c", name="other"))
    cycle.pre_enqueue()
    verdict = cycle.pre_filter(NOW)
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.pod_claim, verdict.retry) == (StopReason.IN_FLIGHT, "c", False)
    assert verdict.cause is site.tracker.pending("uid-c")


def test_a_missing_class_makes_the_pod_wait(site: Site) -> None:
    """A class of a request or subrequest missing: the pod waits for it, no blind retries."""
    for request in (
        build.exactly("r", of="new"),
        build.first("r", build.sub("x"), build.sub("y", of="new")),
    ):
        site.add(claim("d", request))
        verdict = stopped(site, "c", "d")
        assert (verdict.reason, verdict.pod_claim) == (StopReason.CLASS_MISSING, "d")
        assert isinstance(verdict.cause, DeviceClassNotFoundError)
        assert verdict.cause.device_class == "new"
        assert not verdict.retry


def test_faults_of_a_claim_are_errors(site: Site) -> None:
    """An empty class name or unknown request kind is an error."""
    site.add(claim("d", attrs.evolve(build.exactly("r"), exactly=None)))
    verdict = stopped(site, "d")
    assert (verdict.reason, verdict.retry) == (StopReason.INVALID, True)
    assert isinstance(verdict.cause, UnknownRequestError)
    site.add(claim("e", build.exactly("r", of="")))
    assert stopped(site, "e").reason is StopReason.INVALID
    site.add(claim("f", build.exactly("r", -1)))
    assert stopped(site, "f").reason is StopReason.INVALID


def test_nobody_handles_the_claim(site: Site) -> None:
    """A claim for a control plane controller is nobody's where no such kind is registered."""
    classic = attrs.evolve(claim("d"), controller="driver-a")
    site.claims.observe(
        attrs.evolve(classic, metadata=attrs.evolve(classic.metadata, resource_version="9"))
    )
    assert stopped(site, "c", "d") == Stopped(StopReason.UNKNOWN_KIND, "d")


def test_the_first_problem_in_the_pods_order(site: Site) -> None:
    """Per claim in the pod's order, the first problem makes the pod wait."""
    site.add(claim("d", build.exactly("r", of="new")), claim("e", build.exactly("r", of="")))
    assert stopped(site, "c", "e", "d").pod_claim == "e"
    assert stopped(site, "d", "e").pod_claim == "d"


def test_an_entry_that_needs_no_claim_is_skipped(site: Site) -> None:
    """No claim needed: everyone skips this pod claim."""
    from support.claims import make_pod

    skipping = make_pod(
        template("t"), named("c", "c"), statuses={"t": None}, namespace="default", name="pod"
    )
    site.bound(skipping)
    assert site.in_use() == ["a1"]


def test_an_allocation_with_a_bad_selector_is_an_error(site: Site) -> None:
    """A node selector that cannot be used is the input's fault."""
    bad = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("x", "Near"),)),))
    made = allocated("d")
    assert made.allocation is not None
    site.add(attrs.evolve(made, allocation=attrs.evolve(made.allocation, node_selector=bad)))
    assert stopped(site, "d").reason is StopReason.INVALID


# --- nodes


def test_each_node_says_why(site: Site) -> None:
    """All problems of allocated claims come first: they tell which claims are in the way."""
    site.add(allocated("d", "node-2"), allocated("e", "node-2"))
    cycle = site.filtered(pod("c", "d", "e"))
    assert cycle.nodes["node-1"] == NodeUnfit(
        site.nodes["node-1"],
        (NodeProblem(NodeReason.ELSEWHERE, "d"), NodeProblem(NodeReason.ELSEWHERE, "e")),
        ("uid-d", "uid-e"),
    )
    site.add(claim("big", build.exactly("r", 2)))
    verdict = site.filtered(pod("big")).nodes["node-1"]
    assert isinstance(verdict, NodeUnfit)
    assert isinstance(verdict.problems[0].cause, Unsatisfiable)
    assert verdict.in_the_way == ()


def test_bug_37_one_nodes_fault_does_not_stop_the_others(site: Site) -> None:
    """A selector that fails on one node's device ends that node's attempt; others go on."""
    site.devices("node-3", build.device("c1", {"driver-a/ready": True}))
    site.nodes["node-3"] = Node(attrs.evolve(site.nodes["node-1"].metadata, name="node-3"))
    selector = 'device.attributes["driver-a"].ready'
    site.add(claim("picky", build.exactly("r", 1, selector)))
    cycle = site.filtered(pod("picky"))
    assert fitting(cycle) == ["node-3"]
    failed = cycle.nodes["node-1"]
    assert isinstance(failed, NodeFailed)
    assert isinstance(failed.error, SelectorFailedError)
    assert failed.error.__traceback__ is None


def test_bug_87_all_nodes_fail_and_the_error_is_shown(site: Site) -> None:
    """All nodes fail → error shown."""
    site.add(claim("picky", build.exactly("r", 1, 'device.attributes["driver-a"].ready')))
    cycle = site.filtered(pod("picky"))
    cycle.post_filter()
    verdict = cycle.verdict
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.retry) == (StopReason.INVALID, True)
    assert isinstance(verdict.cause, SelectorFailedError)


def test_an_error_on_one_node_of_several_is_not_the_reason(site: Site) -> None:
    """Some nodes fail, others do not fit: no node fits. But the pod is tried again, because
    the error may go with a device, whose removal is no event for the pod."""
    site.devices("node-2", build.device("b1", {"driver-a/ready": False}))
    site.add(claim("picky", build.exactly("r", 1, 'device.attributes["driver-a"].ready')))
    cycle = site.filtered(pod("picky"))
    assert isinstance(cycle.nodes["node-1"], NodeFailed)
    assert isinstance(cycle.nodes["node-2"], NodeUnfit)
    error = cycle.nodes["node-1"].error
    cycle.post_filter()
    assert cycle.verdict == Stopped(StopReason.NO_NODE, retry=True, cause=error)


def test_bug_11_an_undecided_node_is_no_proof(site: Site) -> None:
    """Running out of time never reads as "does not fit": the pod is tried again."""
    hurried = StructuredClaims(site.source.take(), cancel=lambda: True)
    cycle = site.filtered(pod("c"), kinds=[hurried])
    verdict = cycle.nodes["node-1"]
    assert isinstance(verdict, NodeUndecided)
    assert isinstance(verdict.outcome, Undecided)
    cycle.post_filter()
    assert cycle.verdict == Stopped(StopReason.UNDECIDED, retry=True)


def test_nothing_was_filtered() -> None:
    """Without any node no node fits."""
    assert stop_for_nodes([]) == Stopped(StopReason.NO_NODE)


def test_a_stale_input_is_noticed(site: Site) -> None:
    """An input of the past is refused by the next node, not mixed with the present."""
    cycle = site.cycle(pod("c"))
    cycle.pre_enqueue()
    cycle.pre_filter(NOW)
    site.devices("node-1", "a1", build.device("a2", taints=(DeviceTaint("k", "", "NoExecute"),)))
    site.source.take()
    with pytest.raises(StaleInputError):
        cycle.filter(site.nodes["node-1"])


def test_a_node_may_be_filtered_again(site: Site) -> None:
    """The last verdict about a node counts."""
    site.add(allocated("d", "node-1"))
    cycle = site.filtered(pod("d"))
    assert fitting(cycle) == ["node-1"]
    renamed = Node(attrs.evolve(site.nodes["node-1"].metadata, name="node-1", labels={"a": "b"}))
    cycle.filter(renamed)
    assert cycle.nodes["node-1"].node is renamed


def test_filtering_in_threads(site: Site) -> None:
    """Any number of threads may call filter."""
    from concurrent.futures import ThreadPoolExecutor

    for number in range(3, 40):
        name = f"node-{number}"
        site.nodes[name] = Node(attrs.evolve(site.nodes["node-1"].metadata, name=name))
        if number % 2:
            site.devices(name, f"d{number}")
    cycle = site.cycle(pod("c"))
    cycle.pre_enqueue()
    cycle.pre_filter(NOW)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(cycle.filter, site.nodes.values()))
    expected = {"node-1", "node-2"} | {f"node-{number}" for number in range(3, 40, 2)}
    assert set(fitting(cycle)) == expected


def test_scores_prefer_the_first_alternative() -> None:
    """Node scores from prioritized lists, normalized to 0-100."""
    site = Site()
    site.add(*build.CLASSES)
    site.devices("node-1", build.device("a1", {"size": "small"}))
    site.devices("node-2", build.device("b1", {"size": "large"}))
    wish = [
        build.sub(size, 1, f'device.attributes["driver-a"].size == "{size}"')
        for size in ("huge", "large", "small")
    ]
    site.add(claim("c", build.first("r", *wish)))
    cycle = site.filtered(pod("c"))
    assert cycle.score(["node-1", "node-2"]) == {"node-1": 85, "node-2": 100}
    assert cycle.score(["node-1"]) == {"node-1": 100}
    site.bound(pod("c"), "node-2")
    site.show()
    allocated_now = site.filtered(pod("c", name="other"))
    assert allocated_now.score(["node-2"]) == {"node-2": 0}
