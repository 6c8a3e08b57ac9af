"""Deallocating a claim to help a pod: which one, and how."""

from typing import Any

import attrs
import pytest

from dra_core.api.objects import ResourceClaim
from dra_core.api.request import ApiRequest
from dra_core.claims import patches
from dra_core.claims.deallocation import Deallocation, choose_deallocation
from support.api_server import Server
from support.claim_json import allocation_json, claim_json, read
from support.claims import make_pod

POD = make_pod(uid="p")


def claim(
    name: str = "gpu",
    users: tuple[str, ...] = (),
    controller: str = "",
    allocated: bool = True,
    requested: bool = False,
) -> ResourceClaim:
    """An allocated claim; its UID is its name."""
    version = "v1alpha3" if controller or requested else "v1"
    extra = {"controller": controller} if controller else {}
    status: dict[str, Any] = {"deallocationRequested": True} if requested else {}
    obj = claim_json(
        version,
        name=name,
        uid=name,
        allocation=allocation_json(**extra) if allocated else None,
        reserved_for=users,
        **status,
    )
    return read(obj)


def chosen(*claims: ResourceClaim, version: str = "v1") -> Deallocation | None:
    """The choice when every claim is in the way."""
    return choose_deallocation(POD, claims, [c.metadata.uid for c in claims], version=version)


def status_after(request: ApiRequest, before: ResourceClaim) -> dict[str, object]:
    assert before.raw is not None
    _, status, body = Server().with_object(dict(before.raw)).send(request)
    assert status == 200
    result: dict[str, object] = body["status"]
    return result


@pytest.mark.parametrize("users", [(), ("p",)])
def test_a_schedulers_claim_is_cleared(users: tuple[str, ...]) -> None:
    """Reserved for nobody or only this pod: allocation, reservedFor and devices go."""
    mine = claim(users=users)
    choice = chosen(mine)
    assert choice == Deallocation(mine, patches.deallocate(mine), deselect_first=False)
    assert choice is not None
    assert status_after(choice.request, mine) == {"futureStatus": {"b": None}}


@pytest.mark.parametrize("users", [("q",), ("p", "q")])
def test_others_claims_are_left_alone(users: tuple[str, ...]) -> None:
    """A claim that somebody else uses is no candidate."""
    assert chosen(claim(users=users)) is None


def test_only_claims_in_the_way() -> None:
    """Candidates are claims whose allocation excluded a node; unallocated ones never."""
    first, second = claim("a"), claim("b")
    choice = choose_deallocation(POD, [first, second], ["b"])
    assert choice is not None
    assert choice.claim is second
    assert choose_deallocation(POD, [first, second], []) is None
    assert chosen(claim(allocated=False)) is None


def test_one_per_attempt_the_first_in_order() -> None:
    """The first candidate in the pod's order, and no other."""
    used, first, second = claim("a", users=("q",)), claim("b"), claim("c")
    for order in ([used, first, second], [first, second, used]):
        choice = chosen(*order)
        assert choice is not None
        assert choice.claim is first


def test_bug_80_a_controllers_claim_deselects_first() -> None:
    """A controller's claim: first no node is selected, then deallocation is requested."""
    theirs = claim(users=("p",), controller="c.example.com")
    choice = chosen(theirs, version="v1alpha3")
    assert choice is not None
    assert choice.deselect_first
    after = status_after(choice.request, theirs)
    assert after["deallocationRequested"] is True
    assert "reservedFor" not in after
    assert "allocation" in after


def test_bug_83_immediate_claims_never() -> None:
    """Two claims in the way, one of them immediate: only the delayed one is a candidate."""
    immediate = claim("a", controller="c.example.com")
    delayed = claim("b", controller="c.example.com")

    def is_delayed(candidate: ResourceClaim) -> bool:
        return candidate.name == "b"

    both = ["a", "b"]
    choice = choose_deallocation(
        POD, [immediate, delayed], both, version="v1alpha3", delayed=is_delayed
    )
    assert choice is not None
    assert choice.claim is delayed
    alone = choose_deallocation(POD, [immediate], both, version="v1alpha3", delayed=is_delayed)
    assert alone is None


def test_a_request_is_made_once() -> None:
    """A claim whose deallocation was requested already is waited for."""
    assert chosen(claim(requested=True), version="v1alpha3") is None


def test_who_allocated_is_a_parameter() -> None:
    """v1alpha2 tells by the finalizer, and has one more member to clear."""
    obj = claim_json(allocation=allocation_json(), driverName="d.example.com")
    obj["metadata"]["finalizers"] = ["dra.k8s.io/delete-protection"]
    mine = read(obj)

    def by_scheduler(candidate: ResourceClaim) -> bool:
        return "dra.k8s.io/delete-protection" in candidate.metadata.finalizers

    choice = choose_deallocation(
        POD, [mine], ["claim-uid"], by_scheduler=by_scheduler, extra_cleared=("driverName",)
    )
    assert choice is not None
    assert not choice.deselect_first
    assert status_after(choice.request, mine) == {"futureStatus": {"b": None}}


def test_inputs_are_left_alone() -> None:
    """Choosing changes nothing."""
    mine = claim(users=("p",))
    before = attrs.evolve(mine)
    chosen(mine)
    assert mine == before
