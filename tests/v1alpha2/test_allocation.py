"""Allocating named resources, rule by rule."""

import copy
import pickle
from typing import Any

import attrs
import pytest

from dra_core.allocator.results import (
    Allocated,
    ConflictKind,
    RejectedFor,
    StoppedBy,
    Undecided,
    Unsatisfiable,
)
from dra_core.api.core import Node, ObjectMeta
from dra_core.api.names import DeviceId
from dra_core.api.objects import ResourceClaim as AnyClaim
from dra_core.errors import AllocationError, SelectorFailedError
from dra_core.explanation import explain, lines
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.errors import (
    MissingObjectError,
    NotStructuredError,
    ParametersNotFoundError,
    ResourceClassNotFoundError,
    SeveralParametersError,
    SuitableNodesError,
    UnknownModelError,
)
from dra_core.v1alpha2.objects import AllocationResult
from support import named_json as objects
from support import named_twin as twin

Json = dict[str, Any]

MODEL_X = 'attributes.string["model"] == "x"'
REFERENCE = objects.direct("ResourceClaimParameters", "p")


def problem(
    *requests: tuple[str, list[str | None]],
    slices: list[Json] | None = None,
    filters: list[tuple[str, str | None]] | None = None,
    **more: Any,
) -> twin.Problem:
    """One claim that asks for ``requests``, by default of one node with two instances."""
    if slices is None:
        slices = [objects.slice_json("s", "n1", "d", objects.plain("i0", "i1"))]
    class_members: Json = {}
    parameters = [objects.claim_parameters_json("p", "ns", *requests)]
    if filters is not None:
        class_members["parametersRef"] = objects.direct("ResourceClassParameters", "f", "ns")
        parameters.append(objects.class_parameters_json("f", "ns", *filters))
    whole = twin.Problem(
        (objects.claim_json(parameters=REFERENCE),),
        tuple(slices),
        (objects.class_json("gpu", "d", **class_members),),
        tuple(parameters),
    )
    return attrs.evolve(whole, **more)


def given(outcome: Any) -> AllocationResult:
    """The result for the one claim."""
    assert isinstance(outcome, Allocated)
    (result,) = outcome.results
    assert isinstance(result, AllocationResult)
    return result


# --- what is written ---------------------------------------------------------------------


def test_a_default_claim_gets_one_instance() -> None:
    """Without any parameters: one instance of the class's driver, shareable."""
    whole = problem(claims=(objects.claim_json(),), parameters=())
    result = given(twin.allocate(whole))
    assert wire.encode_allocation_result(result) == {
        "resourceHandles": [
            {
                "driverName": "d",
                "structuredData": {
                    "nodeName": "n1",
                    "results": [{"namedResources": {"name": "i0"}}],
                },
            }
        ],
        "availableOnNodes": objects.on_node("n1"),
        "shareable": True,
    }


def test_the_handle_has_all_vendor_parameters() -> None:
    """Those of the class for the driver, of the driver's first entry, and of each request."""
    claim_parameters = objects.claim_parameters_json(
        "p",
        driverRequests=[
            {"driverName": "e", "requests": [objects.request_json()]},
            {
                "driverName": "d",
                "vendorParameters": {"entry": 1},
                "requests": [objects.request_json(parameters={"request": 1})],
            },
            {
                "driverName": "d",
                "vendorParameters": {"entry": 2},
                "requests": [objects.request_json(parameters=[2]), objects.request_json()],
            },
        ],
    )
    class_parameters = objects.class_parameters_json(
        "f",
        vendorParameters=[
            {"driverName": "x", "parameters": 0},
            {"driverName": "d", "parameters": {"class": 1}},
            {"driverName": "d", "parameters": {"class": 2}},
        ],
    )
    slices = [
        objects.slice_json("s", "n1", "d", objects.plain("i0", "i1", "i2")),
        objects.slice_json("t", "n1", "e", objects.plain("j0")),
    ]
    whole = problem(slices=slices, filters=[], parameters=(claim_parameters, class_parameters))
    encoded = wire.encode_allocation_result(given(twin.allocate(whole)))
    assert encoded["resourceHandles"] == [
        objects.handle_json("e", "n1", "j0"),
        {
            "driverName": "d",
            "structuredData": {
                "vendorClassParameters": {"class": 1},
                "vendorClaimParameters": {"entry": 1},
                "nodeName": "n1",
                "results": [
                    {
                        "vendorRequestParameters": {"request": 1},
                        "namedResources": {"name": "i0"},
                    },
                    {"vendorRequestParameters": [2], "namedResources": {"name": "i1"}},
                    {"namedResources": {"name": "i2"}},
                ],
            },
        },
    ]


def test_the_first_entry_counts_even_without_requests() -> None:
    """Order of handles and vendor parameters are the driver's first entry's."""
    entries = [
        {"driverName": "e", "vendorParameters": "first"},
        {"driverName": "d", "requests": [objects.request_json()]},
        {"driverName": "e", "vendorParameters": "second", "requests": [objects.request_json()]},
        {"driverName": "f", "vendorParameters": "none"},
    ]
    slices = [
        objects.slice_json("s", "n1", "d", objects.plain("i0")),
        objects.slice_json("t", "n1", "e", objects.plain("j0")),
    ]
    parameters = (objects.claim_parameters_json("p", driverRequests=entries),)
    handles = given(twin.allocate(problem(slices=slices, parameters=parameters))).resource_handles
    assert [handle.driver_name for handle in handles] == ["e", "d"]
    assert handles[0].structured_data is not None
    assert handles[0].structured_data.vendor_claim_parameters == "first"


@pytest.mark.parametrize("requests", [[], [("d", [])]])
def test_no_requests_fit_every_suitable_node(requests: list[Any]) -> None:
    """An allocation without handles, on any node, also one without any resources."""
    result = given(twin.allocate(problem(*requests, node="n9")))
    assert wire.encode_allocation_result(result) == {"availableOnNodes": objects.on_node("n9")}


def test_all_drivers_of_a_claim_must_fit() -> None:
    """One driver without resources on the node, and the claim does not fit."""
    outcome = twin.allocate(problem(("d", ["true"]), ("e", ["true"])))
    assert isinstance(outcome, Unsatisfiable)
    assert [c.kind for c in outcome.conflicts] == [ConflictKind.TOO_FEW]
    assert outcome.conflicts[0].requests == ((0, "e[0]"),)


def test_results_pickle() -> None:
    """Outcomes are values."""
    outcome = twin.allocate(problem(("d", ["true"])))
    assert pickle.loads(pickle.dumps(outcome)) == outcome


# --- selection ---------------------------------------------------------------------------


def models(*letters: str) -> list[Json]:
    return [
        objects.instance_json(f"i{n}", [{"name": "model", "string": letter}] if letter else ())
        for n, letter in enumerate(letters)
    ]


def test_the_greedy_choice_is_taken_back() -> None:
    """The reference takes the first that matches and misses this solution."""
    slices = [objects.slice_json("s", "n1", "d", models("x", "y"))]
    result = given(twin.allocate(problem(("d", ["true", MODEL_X]), slices=slices)))
    assert [r.device for r in result.results] == ["i1", "i0"]


def test_claims_of_one_pod_never_share_an_instance() -> None:
    """The reference checks each claim alone and lets them share."""
    claims = tuple(objects.claim_json(name) for name in ("c0", "c1"))
    outcome = twin.allocate(problem(claims=claims))
    assert isinstance(outcome, Allocated)
    assert [pick for _, pick in twin.picks_of(outcome)] == [("d", "n1", "i0"), ("d", "n1", "i1")]
    third = (*claims, objects.claim_json("c2"))
    refused = twin.allocate(problem(claims=third))
    assert isinstance(refused, Unsatisfiable)
    assert refused.conflicts[0].kind is ConflictKind.JOINTLY_TOO_FEW
    assert (refused.conflicts[0].needed, refused.conflicts[0].available) == (3, 2)


def test_filter_and_selector_must_both_hold() -> None:
    """The class's filter for the driver limits every request to it, and only to it."""
    slices = [
        objects.slice_json("s", "n1", "d", models("y", "x")),
        objects.slice_json("t", "n1", "e", models("y", "x")),
    ]
    filters: list[tuple[str, str | None]] = [("d", MODEL_X), ("d", "false"), ("f", None)]
    whole = problem(("d", ["true"]), ("e", ["true"]), slices=slices, filters=filters)
    assert [r.device for r in given(twin.allocate(whole)).results] == ["i1", "i0"]


def test_in_use_is_told_by_handles() -> None:
    """What handles of allocated claims name is taken on their node, and nowhere else."""
    slices = [objects.slice_json(f"s{n}", f"n{n}", "d", objects.plain("i0")) for n in (1, 2)]
    holder = objects.claim_json(
        "holder", allocation=objects.allocation_json("n1", objects.handle_json("d", "n1", "i0"))
    )
    whole = problem(("d", ["true"]), slices=slices, allocated=(holder,))
    outcome = twin.allocate(whole)
    assert isinstance(outcome, Unsatisfiable)
    (report,) = outcome.requests
    assert [(r.why, r.devices) for r in report.rejected] == [
        (RejectedFor.IN_USE, (DeviceId("d", "n1", "i0"),))
    ]
    assert isinstance(twin.allocate(attrs.evolve(whole, node="n2")), Allocated)


@pytest.mark.parametrize(
    "handle",
    [
        {"driverName": "d", "data": "i0"},
        objects.handle_json("e", "n1", "i0"),
        objects.handle_json("d", "", "i0"),
        {"driverName": "d", "structuredData": {"nodeName": "n1", "results": [{"other": {}}]}},
    ],
)
def test_other_handles_hold_nothing_here(handle: Json) -> None:
    """Data of a controller, other drivers, places and models take no instance of the node."""
    holder = objects.claim_json("holder", allocation=objects.allocation_json("n1", handle))
    outcome = twin.allocate(problem(("d", ["true", "true"]), allocated=(holder,)))
    assert isinstance(outcome, Allocated)


# --- resources of no node ----------------------------------------------------------------

NO_NODE = objects.slice_json("shared", "", "d", objects.plain("f0", "f1"))


def test_resources_of_no_node_are_available_everywhere() -> None:
    """The reference never matches them. Their handle has no node name; the allocation is tied
    to the node all the same, and once taken they are taken for all nodes."""
    for name in ("n1", "n2"):
        whole = problem(("d", ["true"]), slices=[NO_NODE], node=name)
        encoded = wire.encode_allocation_result(given(twin.allocate(whole)))
        assert encoded == objects.allocation_json(name, objects.handle_json("d", "", "f0"))
    holder = objects.claim_json("holder", allocation=encoded)
    whole = problem(("d", ["true", "true"]), slices=[NO_NODE], allocated=(holder,))
    assert isinstance(twin.allocate(whole), Unsatisfiable)


def test_the_nodes_own_come_first() -> None:
    """Instances of the node before those of no node, whatever the slices are called."""
    slices = [NO_NODE, objects.slice_json("z", "n1", "d", objects.plain("i0"))]
    result = given(twin.allocate(problem(("d", ["true"]), slices=slices)))
    assert result.results[0].device_id == ("d", "n1", "i0")


def test_one_handle_has_instances_of_one_place() -> None:
    """A handle has one node name: requests to one driver are met all here or all there."""
    own = objects.slice_json("z", "n1", "d", objects.plain("i0"))
    both = [NO_NODE, own]
    result = given(twin.allocate(problem(("d", ["true", "true"]), slices=both)))
    assert [r.device for r in result.results] == ["f0", "f1"]
    three = twin.allocate(problem(("d", ["true"] * 3), slices=both))
    assert isinstance(three, Unsatisfiable)
    assert three.conflicts[0].kind is ConflictKind.EXHAUSTED
    claims = tuple(objects.claim_json(name) for name in ("c0", "c1", "c2"))
    assert isinstance(twin.allocate(problem(slices=both, claims=claims)), Allocated)


# --- classes -----------------------------------------------------------------------------


def test_suitable_nodes_of_every_class_must_match() -> None:
    """A node that a class leaves out does not fit, and the class is the reason."""
    classes = (objects.class_json("gpu", "d", suitableNodes=objects.on_node("n2")),)
    outcome = twin.allocate(problem(("d", ["true"]), classes=classes))
    assert isinstance(outcome, Unsatisfiable)
    (conflict,) = outcome.conflicts
    assert (conflict.kind, conflict.subject) == (ConflictKind.UNSUITABLE_NODE, "gpu")
    assert list(lines(explain(outcome))) == ["the class gpu is not for this node"]


@pytest.mark.parametrize(
    ("whole", "error", "missing", "reason", "text"),
    [
        (
            problem(classes=()),
            ResourceClassNotFoundError,
            True,
            "class-not-found",
            "resource class 'gpu' does not exist",
        ),
        (
            problem(classes=(objects.class_json("gpu", "d", structured=False),)),
            NotStructuredError,
            False,
            "other-controller",
            "is allocated by the controller of d",
        ),
        (
            problem(parameters=()),
            ParametersNotFoundError,
            True,
            "parameters-not-found",
            "no ResourceClaimParameters ns/p yet",
        ),
        (
            problem(
                claims=(objects.claim_json(parameters=objects.vendor("x")),),
                parameters=tuple(
                    objects.claim_parameters_json(name, generatedFrom=objects.vendor("x"))
                    for name in ("q", "p")
                ),
            ),
            SeveralParametersError,
            False,
            "several-parameters",
            "ns/p, ns/q",
        ),
        (
            problem(("d", ["true", None])),
            UnknownModelError,
            False,
            "unknown-model",
            "request d[1]: ResourceClaimParameters ns/p: driverRequests[0].requests[1]",
        ),
        (
            problem(("d", ["true"]), filters=[("d", None), ("d", "true")]),
            UnknownModelError,
            False,
            "unknown-model",
            "ResourceClassParameters ns/f: filters[0]",
        ),
        (
            problem(("d", ["true", "attributes"])),
            SelectorFailedError,
            False,
            "selector-compile",
            "request d[1]: selector #0: selector does not compile",
        ),
        (
            problem(("d", ["true"]), filters=[("e", "?"), ("d", "1")]),
            SelectorFailedError,
            False,
            "selector-compile",
            "class gpu, selector #1: selector does not compile",
        ),
        (
            problem(
                classes=(
                    objects.class_json(
                        "gpu",
                        "d",
                        suitableNodes={
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "a", "operator": "Is"}]}
                            ]
                        },
                    ),
                )
            ),
            SuitableNodesError,
            False,
            "node-selector",
            "class gpu: suitableNodes: unknown operator 'Is'",
        ),
    ],
)
def test_what_is_wrong_with_a_claim(
    whole: twin.Problem, error: type[AllocationError], missing: bool, reason: str, text: str
) -> None:
    """A fault of the claim, its class or parameters is found by the plan, and ends the call;
    what is only missing is told apart: the pod waits."""
    claims = [wire.decode_resource_claim(obj) for obj in whole.claims]
    allocator = twin.allocator_for(whole)
    plan = allocator.plan(claims)
    assert type(plan.error) is error
    assert isinstance(plan.error, MissingObjectError) is missing
    assert plan.error.reason == reason
    assert str(plan.error).startswith("claim ns/claim")
    assert text in str(plan.error)
    assert str(pickle.loads(pickle.dumps(plan.error))) == str(plan.error)
    for _ in range(2):
        with pytest.raises(error) as caught:
            allocator.allocate(plan, objects.node("n1"))
        assert str(caught.value) == str(plan.error)


def test_filters_of_other_drivers_are_not_looked_at() -> None:
    """A filter that no request meets may be of any model and need not compile."""
    whole = problem(("d", ["true"]), filters=[("e", None), ("f", "?")])
    assert isinstance(twin.allocate(whole), Allocated)


def test_the_first_claim_at_fault_is_the_reason() -> None:
    """Claims are planned in order."""
    claims = (
        objects.claim_json("c0"),
        objects.claim_json("c1", "no"),
        objects.claim_json("c2", "x"),
    )
    with pytest.raises(ResourceClassNotFoundError) as caught:
        twin.allocate(problem(claims=claims))
    assert (caught.value.claim, caught.value.name) == ("ns/c1", "no")


def test_claims_of_other_versions_are_refused() -> None:
    """Mixing versions is a mistake of the caller."""
    with pytest.raises(TypeError):
        twin.allocator_for(problem()).plan([AnyClaim(ObjectMeta("c", "ns"))])


# --- selectors that fail -----------------------------------------------------------------


def test_a_failing_selector_makes_the_node_unsuitable() -> None:
    """The error says which selector of which request failed on which instance."""
    slices = [objects.slice_json("s", "n1", "d", models("x", ""))]
    whole = problem(("d", [MODEL_X, "true"]), slices=slices, filters=[("d", MODEL_X)])
    with pytest.raises(SelectorFailedError) as caught:
        twin.allocate(whole)
    error = caught.value
    assert (error.claim, error.request, error.device) == ("ns/claim", "d[1]", "d/n1/i1")
    assert (error.device_class, error.index, error.reason) == ("gpu", 0, "selector-runtime")
    without = problem(("d", ["true", MODEL_X]), slices=[slices[0]])
    without_filter = attrs.evolve(
        without, slices=(objects.slice_json("s", "n1", "d", models("y", "")),)
    )
    with pytest.raises(SelectorFailedError) as caught:
        twin.allocate(without_filter)
    assert (caught.value.request, caught.value.device_class) == ("d[1]", "")


def test_a_selector_may_fail_where_nobody_looks() -> None:
    """Instances in use, filtered out, or after the one that is taken do not matter."""
    slices = [objects.slice_json("s", "n1", "d", models("x", ""))]
    assert isinstance(twin.allocate(problem(("d", [MODEL_X]), slices=slices)), Allocated)
    slices = [objects.slice_json("s", "n1", "d", models("", "x"))]
    holder = objects.claim_json(
        "holder", allocation=objects.allocation_json("n1", objects.handle_json("d", "n1", "i0"))
    )
    whole = problem(("d", [MODEL_X]), slices=slices)
    with pytest.raises(SelectorFailedError):
        twin.allocate(whole)
    assert isinstance(twin.allocate(attrs.evolve(whole, allocated=(holder,))), Allocated)
    guarded = problem(
        ("d", [MODEL_X]), slices=slices, filters=[("d", "has(attributes.string.model)")]
    )
    assert isinstance(twin.allocate(guarded), Allocated)


# --- limits ------------------------------------------------------------------------------


def test_bug_11_a_spent_budget_is_no_proof() -> None:
    """Running out of steps is an outcome of its own, with the steps that were spent."""
    whole = problem(("d", ["true", "true"]))
    assert twin.allocate(whole, budget=1) == Undecided(StoppedBy.BUDGET, 1)
    outcome = twin.allocate(whole, budget=2)
    assert isinstance(outcome, Allocated)
    assert outcome.steps == 2


def test_a_thousand_claims_need_no_recursion() -> None:
    """The search keeps its own stack."""
    slices = [objects.slice_json("s", "n1", "d", objects.plain(*(f"i{n:04}" for n in range(1500))))]
    claims = tuple(objects.claim_json(f"c{n}") for n in range(1500))
    outcome = twin.allocate(problem(slices=slices, claims=claims))
    assert isinstance(outcome, Allocated)
    assert outcome.steps == 1500


def test_bug_32_a_call_changes_nothing() -> None:
    """Objects that are given are the same afterwards, and results share nothing with them."""
    whole = problem(
        parameters=(
            objects.claim_parameters_json(
                "p",
                driverRequests=[
                    {"driverName": "d", "requests": [objects.request_json(parameters={"a": []})]}
                ],
            ),
        )
    )
    before = copy.deepcopy(whole)
    encoded = wire.encode_allocation_result(given(twin.allocate(whole)))
    results = encoded["resourceHandles"][0]["structuredData"]["results"]
    results[0]["vendorRequestParameters"]["a"].append(1)
    assert whole == before


def test_a_node_without_labels_can_be_asked() -> None:
    """The node is told by its name."""
    whole = problem(("d", ["true"]))
    claims = [wire.decode_resource_claim(obj) for obj in whole.claims]
    outcome = twin.allocator_for(whole).allocate(claims, Node(ObjectMeta("n1")))
    assert isinstance(outcome, Allocated)
