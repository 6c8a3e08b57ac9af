"""Status payloads of v1alpha2, and whose claims are whose."""

import copy
from typing import Any

import attrs
import pytest

from dra_core.api.core import ObjectMeta, Pod
from dra_core.api.objects import AllocationResult as AnyAllocation
from dra_core.api.objects import ResourceClaim as AnyClaim
from dra_core.api.request import ApiRequest
from dra_core.claims import patches
from dra_core.claims.binding import Bound, start_binding
from dra_core.claims.generation import plan_claims
from dra_core.claims.reservation import pod_reference
from dra_core.errors import PatchError
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.objects import FINALIZER
from dra_core.v1alpha2.status import (
    Allocation,
    allocated_by_scheduler,
    allocation_of,
    binding_plan,
    choose_claim_to_deallocate,
    deallocate,
    has_delayed_allocation,
    max_consumers,
    with_allocation,
)
from support import named_json as objects
from support.claims import named

Json = dict[str, Any]

POD = Pod(ObjectMeta("pod", "ns", "pod-uid"))
CONSUMER = pod_reference(POD)
OURS = objects.allocation_json("n1", objects.handle_json("d", "n1", "i0"), shareable=True)
THEIRS = objects.allocation_json("n1", {"driverName": "d", "data": "x"})


def body(request: ApiRequest | None) -> Any:
    assert request is not None
    return request.body


def test_allocating_writes_the_driver_with_the_allocation() -> None:
    """Finalizer dra.k8s.io/delete-protection, then allocation, reservation and driverName."""
    claim = objects.claim("c")
    allocation = wire.decode_allocation_result(OURS)
    plan = binding_plan(CONSUMER, allocation, is_new=True, driver="d")
    binding = start_binding(claim, plan)
    assert body(binding.request) == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]},
    ]
    protected = objects.claim_json("c", finalizers=["other", FINALIZER])
    binding = binding.answered(200, protected)
    assert binding.request is not None
    assert binding.request.path == (
        "/apis/resource.k8s.io/v1alpha2/namespaces/ns/resourceclaims/c/status"
    )
    assert body(binding.request) == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-c"},
        {"op": "test", "path": "/metadata/finalizers/1", "value": FINALIZER},
        {"op": "test", "path": "/status/allocation", "value": None},
        {"op": "add", "path": "/status/allocation", "value": OURS},
        {
            "op": "add",
            "path": "/status/reservedFor",
            "value": [{"resource": "pods", "name": "pod", "uid": "pod-uid"}],
        },
        {"op": "add", "path": "/status/driverName", "value": "d"},
    ]
    entry = {"resource": "pods", "name": "pod", "uid": "pod-uid"}
    status = {"allocation": OURS, "driverName": "d", "reservedFor": [entry]}
    bound = binding.answered(200, {**protected, "status": status})
    assert isinstance(bound.outcome, Bound)
    assert bound.outcome.claim == attrs.evolve(
        with_allocation(wire.decode_resource_claim(protected), allocation, "d"),
        reserved_for=(CONSUMER,),
    )


def test_a_claim_of_a_controller_is_only_reserved() -> None:
    """It never gets our finalizer, by which it would look like a scheduler's."""
    claim = objects.claim("c", driverName="d", allocation=THEIRS)
    assert claim.allocation is not None
    plan = binding_plan(CONSUMER, claim.allocation, is_new=False, by_scheduler=False)
    binding = start_binding(claim, plan)
    assert body(binding.request) == {
        "metadata": {"uid": "uid-c"},
        "status": {"reservedFor": [{"resource": "pods", "name": "pod", "uid": "pod-uid"}]},
    }


def test_allocations_of_other_versions_are_not_written() -> None:
    """That is a mistake of the caller."""
    with pytest.raises(TypeError):
        binding_plan(CONSUMER, AnyAllocation(), is_new=True)


def test_deallocating_clears_allocation_and_driver() -> None:
    """The status without allocation, reservations and driver; unknown members stay."""
    obj = objects.claim_json(
        "c", finalizers=[FINALIZER], driverName="d", allocation=OURS,
        reservedFor=[{"resource": "pods", "name": "p", "uid": "u"}], other=1,
    )  # fmt: skip
    obj["metadata"]["managedFields"] = [{}]
    before = copy.deepcopy(obj)
    request = deallocate(wire.decode_resource_claim(obj))
    assert body(request) == {**obj, "status": {"other": 1}}
    assert request.target.subresource == "status"
    assert obj == before


def test_deallocation_is_by_finalizer() -> None:
    """Without it the claim is not ours, whatever its handles say."""
    claim = objects.claim("c", driverName="d", allocation=OURS)
    with pytest.raises(PatchError, match=FINALIZER):
        deallocate(claim)


def test_the_finalizer_comes_off_after_the_allocation() -> None:
    """The claim controller's second update, in this version's form."""
    obj = objects.claim_json("c", finalizers=["other", FINALIZER], driverName="d")
    claim = wire.decode_resource_claim(obj)
    request = patches.remove_finalizer(claim, version="v1alpha2", finalizer=FINALIZER)
    expected = {**obj, "metadata": {**obj["metadata"], "finalizers": ["other"]}}
    assert body(request) == expected


def test_claims_are_generated_from_templates() -> None:
    """The template's spec, as it was read."""
    template = objects.template_json("t", parametersRef=objects.vendor("x"))
    template["spec"]["spec"]["newer"] = {"a": 1}
    decoded = wire.decode_resource_claim_template(template)
    pod = attrs.evolve(
        POD,
        resource_claims=(
            attrs.evolve(
                named("e", ""), resource_claim_name=None, resource_claim_template_name="t"
            ),
        ),
    )
    plan = plan_claims(pod, [], lambda key: decoded, version="v1alpha2")
    (new,) = plan.create
    assert new.request.body["apiVersion"] == "resource.k8s.io/v1alpha2"
    assert new.request.body["spec"] == template["spec"]["spec"]


STRUCTURED, CLASSIC = (
    wire.decode_resource_class(objects.class_json(structured=structured))
    for structured in (True, False)
)


@pytest.mark.parametrize(
    ("members", "of_class", "who"),
    [
        ({}, STRUCTURED, Allocation.STRUCTURED),
        ({"mode": "Immediate"}, STRUCTURED, Allocation.STRUCTURED),
        ({}, CLASSIC, Allocation.DELAYED),
        ({"mode": "WaitForFirstConsumer"}, CLASSIC, Allocation.DELAYED),
        ({"mode": "Immediate"}, CLASSIC, Allocation.IMMEDIATE),
        ({}, None, Allocation.DELAYED),
        ({"finalizers": [FINALIZER]}, CLASSIC, Allocation.DELAYED),
        ({"allocation": OURS, "finalizers": [FINALIZER]}, CLASSIC, Allocation.STRUCTURED),
        ({"allocation": {}, "finalizers": [FINALIZER]}, None, Allocation.STRUCTURED),
        ({"allocation": OURS}, None, Allocation.STRUCTURED),
        ({"allocation": THEIRS}, STRUCTURED, Allocation.DELAYED),
        ({"allocation": THEIRS, "mode": "Immediate"}, STRUCTURED, Allocation.IMMEDIATE),
    ],
)
def test_who_allocates_a_claim(members: Json, of_class: Any, who: Allocation) -> None:
    """The class says it before allocation; the finalizer, or the handles, afterwards."""
    assert allocation_of(objects.claim("c", **members), of_class) is who


@pytest.mark.parametrize(
    ("members", "by_scheduler", "delayed"),
    [
        ({"allocation": OURS, "finalizers": [FINALIZER]}, True, False),
        ({"allocation": OURS}, False, False),
        ({"allocation": THEIRS}, False, True),
        ({"allocation": THEIRS, "mode": "Immediate"}, False, False),
        ({"finalizers": [FINALIZER]}, False, True),
    ],
)
def test_what_is_told_by_the_finalizer(members: Json, by_scheduler: bool, delayed: bool) -> None:
    """Only claims with the finalizer are taken back; only delayed ones of a controller asked."""
    claim = objects.claim("c", **members)
    assert allocated_by_scheduler(claim) is by_scheduler
    assert has_delayed_allocation(claim) is delayed
    assert has_delayed_allocation(AnyClaim())


def test_consumers_are_limited_by_shareable() -> None:
    """32, or one."""
    assert max_consumers(wire.decode_allocation_result(OURS)) == 32
    assert max_consumers(wire.decode_allocation_result(THEIRS)) == 1
    assert max_consumers(None) == 1


def test_the_first_claim_that_may_go_is_chosen() -> None:
    """In the pod's order: immediate ones and those in use by others are left alone."""
    claims = [
        objects.claim("immediate", allocation=THEIRS, mode="Immediate", driverName="d"),
        objects.claim("used", allocation=OURS, finalizers=[FINALIZER], driverName="d",
                      reservedFor=[{"resource": "pods", "name": "p", "uid": "u"}]),
        objects.claim("delayed", allocation=THEIRS, driverName="d"),
        objects.claim("ours", allocation=OURS, finalizers=[FINALIZER], driverName="d"),
    ]  # fmt: skip
    uids = [claim.metadata.uid for claim in claims]
    chosen = choose_claim_to_deallocate(POD, claims, uids)
    assert chosen is not None
    assert (chosen.claim.name, chosen.deselect_first) == ("delayed", True)
    assert chosen.request.body["status"] == {
        "driverName": "d", "allocation": THEIRS, "deallocationRequested": True,
    }  # fmt: skip
    second = choose_claim_to_deallocate(POD, claims, uids[3:])
    assert second is not None
    assert (second.claim.name, second.deselect_first) == ("ours", False)
    assert second.request.body["status"] == {}
