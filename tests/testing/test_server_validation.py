"""What the API server double refuses, rule by rule."""

from typing import Any

import attrs
import pytest

from dra_core.api.objects import FINALIZER
from dra_core.api.request import Target
from dra_core.testing.api_kinds import KINDS, Kind
from dra_core.testing.api_server import ApiServer
from dra_core.testing.server_validation import violations
from support.claim_json import allocation_json, claim_json, entry_json

Json = dict[str, Any]

CLAIM = Target("resource.k8s.io", "v1", "resourceclaims", "team-a", "gpu")


def kind(name: str, version: str = "v1") -> Kind:
    """The row of a kind."""
    return next(row for row in KINDS if row.kind == name and version in row.versions)


def broken(old: Json, new: Json, row: Kind | None = None) -> list[str]:
    """The paths that are complained about."""
    return [found.path for found in violations(row or kind("ResourceClaim"), old, new)]


def claim(*users: str, allocated: bool = True, **more: Any) -> Json:
    """A claim, allocated and reserved."""
    allocation = allocation_json() if allocated else None
    return claim_json(allocation=allocation, reserved_for=users, **more)


# Claims


@pytest.mark.parametrize("finalizers", [(), (FINALIZER,)])
def test_an_allocation_without_finalizer_is_accepted(finalizers: tuple[str, ...]) -> None:
    """As the real server does: nothing but its clients keeps that from happening."""
    server = ApiServer()
    server.seed(claim(allocated=False, finalizers=finalizers))
    patch = {"status": {"allocation": allocation_json(), "reservedFor": [entry_json("a")]}}
    assert server.send(CLAIM.at("status").merge_patch(patch)).status == 200


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        (claim("a"), claim("a", "b"), []),
        (claim("a"), claim("b"), []),
        (claim("a"), claim(allocated=False), []),
        (claim(allocated=False), claim("a"), []),
        (claim(allocated=False), claim("a", allocated=False), ["status.reservedFor"]),
        (claim("a"), claim("a", allocated=False), ["status.reservedFor"]),
        (claim("a"), claim("a", "a"), ["status.reservedFor"]),
        (claim("a"), claim("a", deleted=True), []),
        (claim("a", "b"), claim("b", deleted=True), []),
        (claim("a"), claim("a", "b", deleted=True), ["status.reservedFor"]),
        (claim("a"), claim("a", "b", deallocationRequested=True),
         ["status.reservedFor", "status.deallocationRequested"]),
    ],
)  # fmt: skip
def test_reservations(old: Json, new: Json, paths: list[str]) -> None:
    """Only what is allocated, no UID twice, and nobody new for what is on its way out."""
    assert broken(old, new) == paths


def test_the_limit_of_reservations() -> None:
    """256 consumers and no more; 32 in v1alpha2, and one where it is not shareable."""
    users = [f"u{number}" for number in range(257)]
    assert broken(claim(), claim(*users[:256])) == []
    assert broken(claim(), claim(*users)) == ["status.reservedFor"]
    old = kind("ResourceClaim", "v1alpha2")
    shared = {"shareable": True}
    spec = {"spec": {}, "metadata": {"name": "a"}}
    reserved = [entry_json(user) for user in users]

    def classic(allocation: Json, count: int) -> Json:
        return spec | {"status": {"allocation": allocation, "reservedFor": reserved[:count]}}

    assert broken({}, classic(shared, 32), old) == []
    assert broken({}, classic(shared, 33), old) == ["status.reservedFor"]
    assert broken({}, classic({}, 1), old) == []
    assert broken({}, classic({}, 2), old) == ["status.reservedFor"]


@pytest.mark.parametrize("member", ["resource", "name", "uid"])
def test_entries_are_complete(member: str) -> None:
    """A consumer needs resource, name and uid."""
    new = claim("a")
    del new["status"]["reservedFor"][0][member]
    assert broken(claim(), new) == [f"status.reservedFor.{member}"]


@pytest.mark.parametrize(
    ("before", "after", "fine"),
    [
        ("gpu-0", "gpu-0", True),
        ("gpu-0", None, True),
        (None, "gpu-0", True),
        ("gpu-0", "gpu-1", False),
    ],
)
def test_allocations_are_never_modified(before: str | None, after: str | None, fine: bool) -> None:
    """An allocation is set or cleared, never changed in place."""
    old, new = (claim_json(allocation=allocation_json(device) if device else None)
                for device in (before, after))  # fmt: skip
    assert broken(old, new) == ([] if fine else ["status.allocation"])


@pytest.mark.parametrize(
    ("before", "after", "fine"),
    [(None, "t1", True), ("t1", "t1", True), ("t1", "t2", False), ("t1", None, False)],
)
def test_the_time_of_an_allocation(before: str | None, after: str | None, fine: bool) -> None:
    """The time can be noted where there is none, once."""
    old, new = (
        claim_json(allocation=allocation_json(**({"allocationTimestamp": time} if time else {})))
        for time in (before, after)
    )
    assert broken(old, new) == ([] if fine else ["status.allocation"])


REQUESTED = {"deallocationRequested": True}


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        (claim(), claim(**REQUESTED), []),
        (claim("a"), claim("a", **REQUESTED), ["status.deallocationRequested"]),
        (claim(**REQUESTED), claim(), ["status.deallocationRequested"]),
        (claim(**REQUESTED), claim(allocated=False), []),
        (claim(allocated=False), claim(**REQUESTED), ["status.allocation"]),
    ],
)
def test_deallocation(old: Json, new: Json, paths: list[str]) -> None:
    """It is requested when nobody uses the claim, and ends with the allocation."""
    assert broken(old, new) == paths


def test_specs_that_cannot_change() -> None:
    """The spec of a claim is for good, that of a slice is not."""
    old, new = claim(), claim()
    new["spec"] = {}
    assert broken(old, new) == ["spec"]
    assert broken(old, new, kind("ResourceSlice")) == []


# Metadata


@pytest.mark.parametrize("member", ["uid", "name", "namespace", "creationTimestamp"])
def test_identity(member: str) -> None:
    """What an object is called, and when it was made, cannot be changed."""
    new = claim()
    new["metadata"][member] = "other"
    assert broken(claim(), new) == [f"metadata.{member}"]


def test_owners() -> None:
    """An owner is named once."""
    new = claim()
    new["metadata"]["ownerReferences"] = [{"uid": "a"}, {"uid": "b"}]
    assert broken(claim(), new) == []
    new["metadata"]["ownerReferences"] += [{"uid": "a"}]
    assert broken(claim(), new) == ["metadata.ownerReferences"]


# Other kinds


def test_claim_names_of_a_pod() -> None:
    """A pod's status names claims of its spec, each once."""
    pod: Json = {
        "metadata": {"name": "web"},
        "spec": {"resourceClaims": [{"name": "a"}]},
        "status": {"resourceClaimStatuses": [{"name": "a"}]},
    }
    row = kind("Pod")
    assert broken({}, pod, row) == []
    pod["status"]["resourceClaimStatuses"] = [{"name": "a"}, {"name": "a"}]
    assert broken({}, pod, row) == ["status.resourceClaimStatuses"]
    pod["status"]["resourceClaimStatuses"] = [{"name": "b"}]
    assert broken({}, pod, row) == ["status.resourceClaimStatuses"]


@pytest.mark.parametrize("name", ["PodSchedulingContext", "PodScheduling"])
def test_nodes_of_a_scheduling_context(name: str) -> None:
    """At most 128 potential and unsuitable nodes."""
    row = next(row for row in KINDS if row.kind == name)
    nodes = [f"n{number}" for number in range(129)]

    def context(potential: list[str], unsuitable: list[str]) -> Json:
        status = {"resourceClaims": [{"name": "a", "unsuitableNodes": unsuitable}]}
        spec = {"potentialNodes": potential}
        return {"metadata": {"name": "web"}, "spec": spec, "status": status}

    assert broken({}, context(nodes[:128], nodes[:128]), row) == []
    assert broken({}, context(nodes, []), row) == ["spec.potentialNodes"]
    assert broken({}, context([], nodes), row) == ["status.resourceClaims.unsuitableNodes"]


def test_refusals_say_what_is_wrong() -> None:
    """The message has the path and the problem of everything that is wrong."""
    server = ApiServer(max_consumers=1)
    server.seed(claim())
    entries = [entry_json("a"), entry_json("a")]
    answer = server.send(CLAIM.at("status").merge_patch({"status": {"reservedFor": entries}}))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"].count("status.reservedFor: ") == 2
    assert "at most 1 are fine" in answer.body["message"]


def test_rows() -> None:
    """Every resource of a version has one row."""
    places = [(row.group, version, row.resource) for row in KINDS for version in row.versions]
    assert len(places) == len(set(places))
    by_version = {row.kind: row for row in KINDS if "v1" in row.versions}
    assert set(by_version) == {
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
        "DeviceClass",
        "DeviceTaintRule",
        "Pod",
        "Node",
    }
    assert attrs.evolve(by_version["Pod"]).api_version("v1") == "v1"
    assert by_version["DeviceClass"].api_version("v1") == "resource.k8s.io/v1"
