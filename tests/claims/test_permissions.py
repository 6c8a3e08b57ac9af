"""The table of permissions in the documentation, held against the requests themselves."""

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import attrs
import pytest

from dra_core.api.core import ObjectMeta
from dra_core.api.objects import FINALIZER, ResourceClaimTemplate
from dra_core.api.request import ApiRequest, Permission
from dra_core.api.wire import decode_allocation_result
from dra_core.claims import generation, patches, releasing
from dra_core.scheduling import context, extended_claim
from support import contexts
from support.claim_json import allocation_json, claim_json, entry, read
from support.claims import make_pod, template

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"

BARE = read(claim_json())
READY = read(claim_json(finalizers=(FINALIZER,)))
USED = read(
    claim_json(
        finalizers=(FINALIZER,),
        allocation=allocation_json(),
        reserved_for=("p",),
        owner={"apiVersion": "v1", "kind": "Pod", "name": "pod-p", "uid": "p", "controller": True},
    )
)
POD = make_pod(template("gpu"), uid="p", name="pod-p")
DONE = attrs.evolve(POD, phase="Succeeded")
PLAN = generation.plan_claims(
    POD, [], lambda key: ResourceClaimTemplate(ObjectMeta(key.name, key.namespace))
)
CONTEXT = context.context_record(contexts.POD, contexts.make_context("n1")).select_node("n2")
POLICY = contexts.POLICY
ALLOCATION = decode_allocation_result(allocation_json())

BUILDERS: dict[str, Callable[[], ApiRequest | None]] = {
    "get_claim": lambda: patches.get_claim(BARE),
    "add_finalizer": lambda: patches.add_finalizer(BARE),
    "add_finalizer_by_update": lambda: patches.add_finalizer_by_update(BARE),
    "allocate": lambda: patches.allocate(READY, ALLOCATION, entry("p")),
    "reserve": lambda: patches.reserve(USED, entry("q")),
    "unreserve": lambda: patches.unreserve(USED, POD),
    "remove_consumer": lambda: patches.remove_consumer(USED, "p"),
    "deallocate": lambda: patches.deallocate(USED),
    "request_deallocation": lambda: patches.request_deallocation(
        read(claim_json("v1alpha3", allocation=allocation_json()))
    ),
    "release_claim": lambda: releasing.release_claim(USED, lambda key: releasing.Absent.GONE),
    "finish_release": lambda: releasing.finish_release(READY),
    "remove_finalizer": lambda: patches.remove_finalizer(READY),
    "delete_generated": lambda: releasing.delete_generated(USED, lambda key: DONE),
    "delete_claim": lambda: patches.delete_claim(USED),
    "plan_claims": lambda: PLAN.create[0].request,
    "status_request": lambda: PLAN.status_request({"gpu": "pod-p-gpu-1"}),
    "get_context": lambda: context.get_context(CONTEXT, POLICY),
    "create_context": lambda: context.create_context(CONTEXT, POLICY),
    "update_context": lambda: context.update_context(CONTEXT, POLICY),
    "patch_context": lambda: context.patch_context(CONTEXT, POLICY),
    "apply_context": lambda: context.apply_context(CONTEXT, POLICY),
    "delete_context": lambda: context.delete_context(CONTEXT, POLICY),
    "create_claim": lambda: extended_claim.create_claim(
        extended_claim.in_memory_claim(POD, "made-up")
    ),
    "record_in_pod": lambda: extended_claim.record_in_pod(POD, USED, ()),
    "take_back_in_pod": lambda: extended_claim.take_back_in_pod(POD),
}


def documented() -> dict[str, Permission]:
    """Permission by builder, from the tables of requests."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("`"):
            for builder in re.findall(r"`(\w+)`", cells[0]):
                rows[builder] = Permission(cells[3], cells[1], cells[2])
    return rows


@pytest.mark.parametrize("builder", sorted(BUILDERS))
def test_documented_permission(builder: str) -> None:
    """The page says of every builder what its request needs."""
    request = BUILDERS[builder]()
    assert request is not None
    assert request.permission == documented()[builder]


def test_every_builder_is_documented() -> None:
    """No row without builder, no builder without row; every public one is there."""
    assert set(documented()) == set(BUILDERS)
    assert public(patches) - {"claim_target", "has_finalizer", "update_status"} <= set(BUILDERS)
    builders = {name for name in public(context) if name.endswith("_context")}
    assert builders - {"change_context"} <= set(BUILDERS)  # which is one of two others
    requests = {
        name
        for name in public(extended_claim)
        if getattr(extended_claim, name).__annotations__.get("return") is ApiRequest
    }
    assert {"create_claim"} <= requests <= set(BUILDERS)


def public(module: ModuleType) -> set[str]:
    """The public functions and types that a module defines."""
    return {
        name
        for name, value in vars(module).items()
        if callable(value)
        and getattr(value, "__module__", "") == module.__name__
        and not name.startswith("_")
    }
