"""Releasing claims, as the claim controller does it."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.core import Pod
from dra_core.api.names import ObjectKey
from dra_core.api.objects import FINALIZER
from dra_core.claims.releasing import (
    Absent,
    PodLookup,
    delete_generated,
    finish_release,
    lapsed_consumers,
    release_claim,
)
from support.api_server import Server
from support.claim_json import OTHER_FINALIZER, allocation_json, claim_json, read
from support.claims import make_pod

Json = dict[str, Any]

PODS: dict[str, Pod | Absent] = {
    "running": make_pod(uid="running", node="n"),
    "pending": make_pod(uid="pending"),
    "gone": Absent.GONE,
    "unknown": Absent.UNKNOWN,
    "replaced": make_pod(uid="another"),
    "succeeded": make_pod(uid="succeeded", node="n", phase="Succeeded"),
    "failed": make_pod(uid="failed", node="n", phase="Failed"),
    "deleted": make_pod(uid="deleted", deleted=True),
    "stopping": make_pod(uid="stopping", node="n", deleted=True),
}
LAPSED = ("gone", "replaced", "succeeded", "failed", "deleted")
VALID = ("running", "pending", "unknown", "stopping")


def lookup(key: ObjectKey) -> Pod | Absent:
    assert key.namespace == "team-a"
    return PODS[key.name.removeprefix("pod-")]


def claim_of(
    *users: str, finalizers: tuple[str, ...] = (FINALIZER,), allocated: bool = True, **extra: Any
) -> Json:
    allocation = allocation_json() if allocated else None
    return claim_json(allocation=allocation, reserved_for=users, finalizers=finalizers, **extra)


@pytest.mark.parametrize("user", LAPSED)
def test_lapsed(user: str) -> None:
    """Known to be gone, another UID, finished, or being deleted and never assigned."""
    assert lapsed_consumers(read(claim_of(user)), lookup) == (user,)


@pytest.mark.parametrize("user", VALID)
def test_not_lapsed(user: str) -> None:
    """Everything else keeps its entry, also a pod that is merely not seen yet."""
    claim = read(claim_of(user))
    assert lapsed_consumers(claim, lookup) == ()
    assert release_claim(claim, lookup) is None


def test_other_consumers_stay() -> None:
    """Entries that are no pods are not this rule's."""
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gone", "uid": "g"}
    claim = read(claim_json(allocation=allocation_json(), reservedFor=[group]))
    assert lapsed_consumers(claim, lookup) == ()


def release(obj: Json, **options: Any) -> tuple[Server, Json]:
    """Send the first update; the server and the claim afterwards."""
    request = release_claim(read(obj), lookup, **options)
    assert request is not None
    assert request.target.subresource == "status"
    server, status, body = Server().with_object(obj).send(request)
    assert status == 200
    return server, body


def test_some_entries_lapse() -> None:
    """Only lapsed entries are dropped; the rest of the claim stays, unknown fields too."""
    obj = claim_of("gone", "running", "failed")
    _, now = release(obj)
    expected = copy.deepcopy(obj)
    expected["status"]["reservedFor"] = [obj["status"]["reservedFor"][1]]
    expected["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"]
    assert now == expected


def test_the_last_entry_of_our_claim() -> None:
    """The same update clears allocation and devices; a second one removes the finalizer."""
    obj = claim_of("gone", finalizers=(OTHER_FINALIZER, FINALIZER))
    obj["status"]["devices"] = [{"driver": "d", "pool": "p", "device": "x"}]
    server, now = release(obj)
    assert now["status"] == {"futureStatus": {"b": None}}
    assert FINALIZER in now["metadata"]["finalizers"]
    second = finish_release(read(now))
    assert second is not None
    assert second.target.subresource == ""
    server, status, body = server.send(second)
    assert status == 200
    assert body["metadata"]["finalizers"] == [OTHER_FINALIZER]
    assert finish_release(read(body)) is None


def test_the_second_update_has_the_version_of_the_first_answer() -> None:
    """If anybody changed the claim in between, the finalizer stays."""
    server, now = release(claim_of("gone"))
    second = finish_release(read(now))
    assert second is not None
    touched = copy.deepcopy(now)
    touched["metadata"]["resourceVersion"] = "999"
    _, status, _ = server.with_object(touched).send(second)
    assert status == 409


def test_the_second_update_needs_an_unallocated_claim() -> None:
    """An answer that shows an allocation ends it."""
    assert finish_release(read(claim_of())) is None


def test_without_our_finalizer() -> None:
    """Without our finalizer, the allocation stays; with delayed allocation a request is made."""
    _, now = release(claim_of("gone", finalizers=(OTHER_FINALIZER,)))
    assert now["status"] == {"futureStatus": {"b": None}, "allocation": allocation_json()}
    obj = claim_json("v1alpha3", allocation=allocation_json(), reserved_for=("gone",))
    _, asked = release(obj, version="v1alpha3", delayed=True)
    assert asked["status"]["deallocationRequested"] is True
    assert "allocation" in asked["status"]
    obj["spec"]["controller"] = "c.example.com"
    _, asked = release(obj, version="v1alpha3")
    assert asked["status"]["deallocationRequested"] is True
    _, kept = release(obj, version="v1alpha3", delayed=False)
    assert "deallocationRequested" not in kept["status"]


def test_never_reserved_stays_allocated() -> None:
    """A claim never reserved so far stays allocated."""
    assert release_claim(read(claim_of()), lookup) is None


def test_an_unused_claim_that_is_being_deleted() -> None:
    """Being deleted and unused, our claim is deallocated, and then it can go."""
    server, now = release(claim_of(deleted=True))
    assert "allocation" not in now["status"]
    second = finish_release(read(now))
    assert second is not None
    server, status, _ = server.send(second)
    assert (status, server.objects) == (200, {})
    others = claim_of(deleted=True, finalizers=(OTHER_FINALIZER,))
    assert release_claim(read(others), lookup) is None
    assert release_claim(read(claim_of("running", deleted=True)), lookup) is None


@given(users=st.lists(st.sampled_from(sorted(PODS)), unique=True))
def test_law_releasing_converges(users: list[str]) -> None:
    """After one update nothing more lapses, and exactly the valid entries are left, in order."""
    obj = claim_of(*users)
    request = release_claim(read(obj), lookup)
    valid = [user for user in users if user in VALID]
    if request is None:
        assert users == valid
        return
    _, status, now = Server().with_object(obj).send(request)
    assert status == 200
    assert [e["uid"] for e in now["status"].get("reservedFor", [])] == valid
    assert ("allocation" in now["status"]) == bool(valid)
    assert release_claim(read(now), lookup) is None


def owned(kind: str = "Pod", name: str = "pod-running", uid: str = "running", **more: Any) -> Json:
    api = {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": True}
    return {**api, **more}


@pytest.mark.parametrize(
    ("owner", "users", "deleted"),
    [
        (owned(name="pod-succeeded", uid="succeeded"), (), True),
        (owned(name="pod-failed", uid="failed"), ("failed",), True),
        (owned(name="pod-replaced", uid="replaced"), (), True),
        (owned(name="pod-replaced", uid="replaced"), ("running",), False),  # others use it
        (owned(), (), False),
        (owned(name="pod-gone", uid="gone"), (), False),  # the garbage collector's
        (owned(name="pod-unknown", uid="unknown"), (), False),
        (owned(name="pod-succeeded", uid="succeeded", controller=False), (), False),
        (owned("Job", name="pod-succeeded", uid="succeeded"), (), False),
        (None, (), False),
    ],
)
def test_generated_claims(owner: Json | None, users: tuple[str, ...], deleted: bool) -> None:
    """A generated claim whose pod is finished or replaced is deleted."""
    claim = read(claim_of(*users, owner=owner))
    request = delete_generated(claim, lookup)
    assert (request is not None) is deleted
    if request is not None:
        assert request.body["preconditions"] == {"uid": "claim-uid"}


def test_a_claim_is_deleted_once() -> None:
    """One that is being deleted already needs no second request."""
    owner = owned(name="pod-succeeded", uid="succeeded")
    assert delete_generated(read(claim_of(owner=owner, deleted=True)), lookup) is None


def test_bug_49_a_finished_pod_holds_nothing() -> None:
    """A terminal pod's entry lapses, whatever else still names the claim."""
    look: PodLookup = lookup
    assert lapsed_consumers(read(claim_of("succeeded", "running")), look) == ("succeeded",)
