"""From devices to results: configuration, node selectors, what is copied."""

import pytest

from dra_core.allocator.results import Allocated
from dra_core.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.api.objects import (
    AllocationResult,
    DeviceClaimConfiguration,
    DeviceTaint,
    DeviceToleration,
    ResourceSlice,
)
from dra_core.errors import NodeSelectorError
from dra_core.testing.problem import Problem
from support.allocation_builders import (
    claim,
    device,
    device_class,
    devices,
    exactly,
    first,
    opaque,
    pool_slice,
    problem,
    sub,
)
from support.allocator import allocate

CLASSES = (
    device_class("class-a", config=["X"]),
    device_class("class-b", config=["Y"]),
    device_class("class-c"),
)


def result(one: Problem) -> AllocationResult:
    outcome = allocate(one)
    assert isinstance(outcome, Allocated), outcome
    (allocation,) = outcome.results
    return allocation


def config(*requests: str) -> DeviceClaimConfiguration:
    return DeviceClaimConfiguration(requests, opaque("Z"))


def configured(*entries: DeviceClaimConfiguration) -> list[tuple[str, str, tuple[str, ...]]]:
    """(kind, source, requests) of the configuration of a claim of three requests."""
    asked = claim(
        exactly("req0", of="class-a"),
        exactly("req1", of="class-a"),
        first("req2", sub("s0", 9, of="class-a"), sub("s1", of="class-b")),
        config=entries,
    )
    found = result(problem(asked, pool_slice("s", *devices(4)), classes=CLASSES)).config
    return [(c.opaque.parameters["kind"], c.source, c.requests) for c in found if c.opaque]


OF_CLASSES = [("X", "FromClass", ("req0", "req1")), ("Y", "FromClass", ("req2/s1",))]


def test_bug_12_class_config_loses_its_requests() -> None:
    """BUG-12: a class's configuration once, with all requests of the class."""
    assert configured() == OF_CLASSES


def test_bug_13_claim_config_repeated() -> None:
    """BUG-13: once, however many of its requests there are."""
    entry = ("Z", "FromClaim", ("req0", "req1"))
    assert configured(config("req0", "req1")) == [*OF_CLASSES, entry]


@pytest.mark.parametrize(
    ("wanted", "requests"),
    [
        ((), ()),
        (("req0", "req1", "req2"), ()),
        (("req0", "req1", "req2/s1"), ()),
        (("req0", "req1", "req2/s0"), ("req0", "req1", "req2/s0")),
        (("req2/s0",), None),
        (("req2/s1",), ("req2/s1",)),
        (("nobody",), None),
    ],
)
def test_bug_14_config_for_everything(
    wanted: tuple[str, ...], requests: tuple[str, ...] | None
) -> None:
    """BUG-14: a configuration that covers all requests loses its list; others keep theirs."""
    entries = [] if requests is None else [("Z", "FromClaim", requests)]
    assert configured(config(*wanted)) == [*OF_CLASSES, *entries]


def test_class_for_all_requests_has_no_list() -> None:
    """A class that serves every request of the claim."""
    asked = claim(exactly("r", of="class-a"), exactly("q", of="class-a"))
    (entry,) = result(problem(asked, pool_slice("s", *devices(2)), classes=CLASSES)).config
    assert (entry.source, entry.requests) == ("FromClass", ())


def test_bug_16_tolerations_missing_in_the_result() -> None:
    """BUG-16: the tolerations of the request, or of the chosen subrequest, are in the result."""
    tolerated = DeviceToleration(key="t", operator="Exists")
    tainted = device("d1", taints=(DeviceTaint("t", "", "NoExecute"),))
    asked = claim(first("r", sub("s0"), sub("s1", tolerations=(tolerated,))))
    (given,) = result(problem(asked, pool_slice("s", tainted))).results
    assert (given.request, given.tolerations) == ("r/s1", (tolerated,))


def term(*requirements: tuple[str, str]) -> NodeSelector:
    expressions = tuple(NodeSelectorRequirement(k, "In", (v,)) for k, v in requirements)
    return NodeSelector((NodeSelectorTerm(expressions),))


def everywhere(name: str, selector: NodeSelector | None) -> ResourceSlice:
    fields = {"all_nodes": True} if selector is None else {"node_selector": selector}
    return pool_slice(name, device(name), pool=name, node="", **fields)


LABELS = {"zone": "west", "rack": "7"}


def selector_of(number: int, *slices: ResourceSlice) -> NodeSelector | None:
    return result(problem(claim(exactly("r", number)), *slices, labels=LABELS)).node_selector


def test_node_selector_is_what_all_devices_need() -> None:
    """The union of the requirements, in order, without duplicates; none: everywhere."""
    zone, both = term(("zone", "west")), term(("rack", "7"), ("zone", "west"))
    assert selector_of(1, everywhere("a", None)) is None
    assert selector_of(2, everywhere("a", None), everywhere("b", zone)) == zone
    merged = term(("zone", "west"), ("rack", "7"))
    assert selector_of(2, everywhere("a", zone), everywhere("b", both)) == merged


@pytest.mark.parametrize(
    "local",
    [
        pool_slice("b", device("b"), pool="b"),
        pool_slice("b", device("b", binds_to_node=True), pool="b", node="", all_nodes=True),
        pool_slice("b", device("b", node_name="node-1"), pool="b", node="",
                   per_device_node_selection=True),
    ],
)  # fmt: skip
def test_a_device_of_the_node_ties_to_the_node(local: ResourceSlice) -> None:
    """By the slice's name, by binding to the node, by the device's own name."""
    here = NodeSelectorRequirement("metadata.name", "In", ("node-1",))
    expected = NodeSelector((NodeSelectorTerm(match_fields=(here,)),))
    assert selector_of(2, everywhere("a", term(("zone", "west"))), local) == expected


def test_more_than_one_term_is_an_error_of_the_solution() -> None:
    """Only if such a device is picked."""
    two = NodeSelector(term(("zone", "west")).terms * 2)
    with pytest.raises(NodeSelectorError, match="2 terms"):
        selector_of(1, everywhere("a", two))
    assert selector_of(1, everywhere("a", None), everywhere("b", two)) is None


def test_what_the_slice_and_device_say_is_copied() -> None:
    """Binding conditions, failure conditions and skipped node operations."""
    binding = device("d1", binding_conditions=("ok",), binding_failure_conditions=("no",))
    one = problem(
        claim(exactly("r", admin_access=True)),
        pool_slice("s", binding, skip_node_operations=("Prepare", "Unprepare")),
    )
    declared = Problem(
        one.claims,
        one.slices,
        one.classes,
        type(one.node)(one.node.metadata, ("DRAOptionalNodeOperations",)),
    )
    (given,) = result(declared).results
    assert (given.binding_conditions, given.binding_failure_conditions) == (("ok",), ("no",))
    assert given.skip_node_operations == ("Prepare", "Unprepare")
    assert given.admin_access is True


def test_share_ids_are_asked_for_in_order() -> None:
    """One for every share, of a solution only."""
    shared = [device(f"d{n}", capacity={"m": "8Gi"}, shared=True) for n in range(2)]
    given = result(problem(claim(exactly("r", 2)), pool_slice("s", *shared))).results
    assert [one.share_id for one in given] == ["share-0", "share-1"]
