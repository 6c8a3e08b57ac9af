"""Payloads: applied to any base they give the intended object, or are refused.

The server is ``support.api_server``. Every law takes the copy that the payload was made
from and, drawn independently, the object that the server has by then.
"""

import copy
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.objects import FINALIZER, ResourceClaim
from dra_core.api.request import (
    JSON_PATCH,
    STRATEGIC_MERGE_PATCH,
    ApiRequest,
    Verb,
)
from dra_core.api.wire import decode_allocation_result, decode_resource_claim
from dra_core.claims import patches
from dra_core.errors import NotExpressibleError, PatchError, ReadInOtherVersionError
from support.api_server import Server
from support.claim_json import (
    OTHER_FINALIZER,
    VERSIONS,
    allocation_json,
    claim_json,
    claims_json,
    entry,
    entry_json,
    read,
)
from support.claims import make_claim, make_pod

Json = dict[str, Any]
ALLOCATION = decode_allocation_result(allocation_json("gpu-9"))


def applied(base: Json, request: ApiRequest, limit: int = 256) -> tuple[int, Json | None]:
    """Status, and what the server has afterwards; the base and the request survive."""
    before = copy.deepcopy((base, request.body))
    server, status, _ = Server(limit=limit).with_object(base).send(request)
    assert (base, request.body) == before
    return status, server.objects.get(("resourceclaims", "team-a", "gpu"))


def intended(base: Json, change: Callable[[Json], None]) -> Json:
    """A copy of the base, changed by hand, with the version that the server gives next."""
    result = copy.deepcopy(base)
    change(result)
    if result != base:
        result["metadata"]["resourceVersion"] = "101"
    return result


def check(base: Json, request: ApiRequest, holds: bool, change: Callable[[Json], None]) -> None:
    """The law: intended object if the precondition holds, else refused and nothing changed."""
    status, now = applied(base, request)
    if holds:
        assert (status, now) == (200, intended(base, change))
    else:
        assert status in (409, 422)
        assert now == base


def same_object(copy_: Json, base: Json) -> bool:
    return bool(copy_["metadata"]["uid"] == base["metadata"]["uid"])


VERSION = st.sampled_from(VERSIONS)

# The laws


@given(copy_=claims_json(), base=claims_json())
def test_law_add_finalizer(copy_: Json, base: Json) -> None:
    """The finalizer is added if nobody changed the claim; the status is left alone."""
    request = patches.add_finalizer(read(copy_))
    if FINALIZER in copy_["metadata"].get("finalizers", []):
        assert request is None
        return
    assert request is not None
    fresh = copy_["metadata"]["resourceVersion"] == base["metadata"]["resourceVersion"]
    if fresh:
        base = copy_  # one version, one object

    def change(obj: Json) -> None:
        obj["metadata"].setdefault("finalizers", []).append(FINALIZER)

    check(base, request, fresh, change)
    whole = patches.add_finalizer_by_update(read(copy_))
    assert whole is not None
    check(base, whole, fresh, change)


@given(version=VERSION, data=st.data())
def test_law_allocate(version: str, data: st.DataObject) -> None:
    """Allocation and entry are written to this claim, with its finalizer, if unallocated."""
    copy_ = data.draw(
        claims_json(version).filter(lambda c: FINALIZER in c["metadata"].get("finalizers", []))
    )
    base = data.draw(claims_json(version))
    request = patches.allocate(read(copy_), ALLOCATION, entry("p"), version=version)
    place = copy_["metadata"]["finalizers"].index(FINALIZER)
    finalizers = base["metadata"].get("finalizers", [])
    holds = (
        same_object(copy_, base)
        and finalizers[place : place + 1] == [FINALIZER]
        and "allocation" not in base["status"]
        and "reservedFor" not in copy_["status"]  # the form of the patch fits what it saw
    )

    def change(obj: Json) -> None:
        obj["status"] |= {"allocation": allocation_json("gpu-9"), "reservedFor": [entry_json("p")]}

    check(base, request, holds, change)


@given(version=VERSION, data=st.data())
def test_law_reserve(version: str, data: st.DataObject) -> None:
    """One entry is added, first, to whatever list the allocated claim has by then."""
    copy_, base = data.draw(claims_json(version)), data.draw(claims_json(version))
    request = patches.reserve(read(copy_), entry("p"), version=version)
    assert request is not None
    holds = same_object(copy_, base) and "allocation" in base["status"]

    def change(obj: Json) -> None:
        obj["status"].setdefault("reservedFor", []).insert(0, entry_json("p"))

    check(base, request, holds, change)


@given(copy_=claims_json(), base=claims_json())
def test_law_reserve_with_timestamp(copy_: Json, base: Json) -> None:
    """With the time: only for an allocation without one, and for the list as it was seen."""
    request = patches.reserve(read(copy_), entry("p"), timestamp="2026-02-01T00:00:00Z")
    assert request is not None
    allocation = copy_["status"].get("allocation")
    if allocation is None or "allocationTimestamp" in allocation:
        assert request == patches.reserve(read(copy_), entry("p"))
        return
    now = base["status"].get("allocation")
    holds = (
        same_object(copy_, base)
        and now is not None
        and "allocationTimestamp" not in now
        and ("reservedFor" in copy_["status"]) == ("reservedFor" in base["status"])
    )

    def change(obj: Json) -> None:
        obj["status"]["allocation"]["allocationTimestamp"] = "2026-02-01T00:00:00Z"
        obj["status"].setdefault("reservedFor", []).append(entry_json("p"))

    check(base, request, holds, change)


@given(version=VERSION, data=st.data(), uid=st.sampled_from("abcdx"))
def test_law_remove_consumer(version: str, data: st.DataObject, uid: str) -> None:
    """One entry is removed from whatever list the claim has by then; others stay in order."""
    copy_, base = data.draw(claims_json(version)), data.draw(claims_json(version))
    request = patches.remove_consumer(read(copy_), uid, version=version)

    def change(obj: Json) -> None:
        kept = [e for e in obj["status"].get("reservedFor", []) if e["uid"] != uid]
        obj["status"].pop("reservedFor", None)
        if kept:
            obj["status"]["reservedFor"] = kept

    check(base, request, same_object(copy_, base), change)


@given(uids=st.lists(st.sampled_from("abcd"), max_size=4, unique=True), base=claims_json())
def test_law_reserve_and_remove_are_inverse(uids: list[str], base: Json) -> None:
    """Adding entries one by one and removing them again gives the base's list."""
    if "allocation" not in base["status"]:
        return
    server = Server().with_object(base)
    claim = read(base)
    for uid in uids:
        request = patches.reserve(claim, entry(f"new-{uid}"))
        assert request is not None
        server, status, _ = server.send(request)
        assert status == 200
    for uid in uids:
        server, status, _ = server.send(patches.remove_consumer(claim, f"new-{uid}"))
        assert status == 200
    assert server.get("gpu")["status"] == base["status"]


Whole = Callable[[ResourceClaim, str], ApiRequest]


def _deallocate(claim: ResourceClaim, version: str) -> ApiRequest:
    return patches.deallocate(claim, version=version)


def _request_deallocation(claim: ResourceClaim, version: str) -> ApiRequest:
    return patches.request_deallocation(claim, version=version)


def _cleared(obj: Json) -> None:
    for member in ("allocation", "reservedFor", "devices"):
        obj["status"].pop(member, None)


def _requested(obj: Json) -> None:
    obj["status"].pop("reservedFor", None)
    obj["status"]["deallocationRequested"] = True


WHOLE: list[tuple[str, Whole, Callable[[Json], None]]] = [
    *((version, _deallocate, _cleared) for version in VERSIONS),
    ("v1alpha3", _request_deallocation, _requested),
]


@given(case=st.sampled_from(WHOLE), data=st.data())
def test_law_whole_status(
    case: tuple[str, Whole, Callable[[Json], None]], data: st.DataObject
) -> None:
    """An update of the status applies to the copy it was made from; unknown fields stay."""
    version, build, change = case
    copy_, base = data.draw(claims_json(version)), data.draw(claims_json(version))
    request = build(read(copy_), version)
    fresh = copy_["metadata"]["resourceVersion"] == base["metadata"]["resourceVersion"]
    check(copy_ if fresh else base, request, fresh, change)


@given(copy_=claims_json(), base=claims_json())
def test_law_remove_finalizer(copy_: Json, base: Json) -> None:
    """The finalizer is taken off an unallocated claim that nobody changed; others stay."""
    claim = read(copy_)
    if claim.allocation is not None:
        with pytest.raises(PatchError):
            patches.remove_finalizer(claim)
        return
    request = patches.remove_finalizer(claim)
    if request is None:
        assert FINALIZER not in claim.metadata.finalizers
        return
    fresh = copy_["metadata"]["resourceVersion"] == base["metadata"]["resourceVersion"]

    def change(obj: Json) -> None:
        obj["metadata"]["finalizers"].remove(FINALIZER)
        if not obj["metadata"]["finalizers"]:
            del obj["metadata"]["finalizers"]

    check(copy_ if fresh else base, request, fresh, change)


# The forms


def test_form_of_add_finalizer() -> None:
    """``test`` of the resourceVersion, then the list, or one more entry of it."""
    first = patches.add_finalizer(read(claim_json()))
    more = patches.add_finalizer(read(claim_json(finalizers=(OTHER_FINALIZER,))))
    assert first is not None
    assert more is not None
    unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
    assert first.body == [
        unchanged,
        {"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]},
    ]
    assert more.body == [
        unchanged,
        {"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER},
    ]
    assert (first.content_type, first.target.subresource) == (JSON_PATCH, "")


@pytest.mark.parametrize("before", [(), (OTHER_FINALIZER,)])
def test_form_of_allocate(before: tuple[str, ...]) -> None:
    """Tests for UID, finalizer at its place and no allocation; then allocation and entry."""
    claim = read(claim_json(finalizers=(*before, FINALIZER)))
    request = patches.allocate(claim, ALLOCATION, entry("p"))
    assert request.body == [
        {"op": "test", "path": "/metadata/uid", "value": "claim-uid"},
        {"op": "test", "path": f"/metadata/finalizers/{len(before)}", "value": FINALIZER},
        {"op": "test", "path": "/status/allocation", "value": None},
        {"op": "add", "path": "/status/allocation", "value": allocation_json("gpu-9")},
        {"op": "add", "path": "/status/reservedFor", "value": [entry_json("p")]},
    ]
    assert (request.content_type, request.target.subresource) == (JSON_PATCH, "status")


def test_allocate_with_the_parts_of_other_versions() -> None:
    """Finalizer, extra members of the status, and the allocation's JSON are parameters."""
    old = "dra.k8s.io/delete-protection"
    claim = read(claim_json(finalizers=(FINALIZER, old)))
    form = {"shareable": True}
    request = patches.allocate(
        claim,
        form,
        entry("p"),
        version="v1alpha2",
        finalizer=old,
        extra_status={"driverName": "d.example.com"},
    )
    assert request.body[1] == {"op": "test", "path": "/metadata/finalizers/1", "value": old}
    assert request.body[3]["value"] == form
    assert request.body[5] == {"op": "add", "path": "/status/driverName", "value": "d.example.com"}
    assert request.target.version == "v1alpha2"
    cleared = patches.deallocate(
        read(claim_json(allocation=allocation_json(), driverName="d.example.com")),
        extra_cleared=("driverName",),
    )
    assert cleared.body["status"] == {"futureStatus": {"b": None}}


def test_allocation_timestamp() -> None:
    """With binding conditions on, the time is the caller's; otherwise none is written."""
    claim = read(claim_json(finalizers=(FINALIZER,)))
    request = patches.allocate(claim, ALLOCATION, entry("p"), timestamp="2026-02-01T00:00:00Z")
    assert request.body[3]["value"]["allocationTimestamp"] == "2026-02-01T00:00:00Z"
    plain = patches.allocate(claim, ALLOCATION, entry("p"))
    assert "allocationTimestamp" not in plain.body[3]["value"]
    form = allocation_json()
    patches.allocate(claim, form, entry("p"), timestamp="2026-02-01T00:00:00Z")
    assert form == allocation_json()


def test_allocate_needs_the_finalizer() -> None:
    """Without the finalizer in the copy at hand there is nothing to test for."""
    with pytest.raises(PatchError, match="finalizer"):
        patches.allocate(read(claim_json(finalizers=(OTHER_FINALIZER,))), ALLOCATION, entry("p"))


def test_allocation_that_the_version_cannot_express() -> None:
    """What a version has no place for is never dropped in silence."""
    claim = read(claim_json(finalizers=(FINALIZER,)))
    controlled = attrs.evolve(ALLOCATION, controller="c.example.com")
    with pytest.raises(NotExpressibleError):
        patches.allocate(claim, controlled, entry("p"))


def test_bug_66_reserve_is_a_strategic_merge_patch() -> None:
    """One entry and the claim's UID as guard; removal by the delete directive for one UID."""
    claim = read(claim_json(allocation=allocation_json(), reserved_for=("a",)))
    add = patches.reserve(claim, entry("p"))
    assert add is not None
    assert add.body == {
        "metadata": {"uid": "claim-uid"},
        "status": {"reservedFor": [entry_json("p")]},
    }
    remove = patches.remove_consumer(claim, "a")
    assert remove.body == {
        "metadata": {"uid": "claim-uid"},
        "status": {"reservedFor": [{"$patch": "delete", "uid": "a"}]},
    }
    for request in (add, remove):
        assert request.content_type == STRATEGIC_MERGE_PATCH
        assert request.target.subresource == "status"


def test_bug_66_a_plain_merge_patch_would_replace_the_list() -> None:
    """The wrong form, to show that the test server tells the difference."""
    base = claim_json(allocation=allocation_json(), reserved_for=("a",))
    body = {"metadata": {"uid": "claim-uid"}, "status": {"reservedFor": [entry_json("p")]}}
    target = patches.claim_target(read(base)).at("status")
    _, wrong = applied(base, target.merge_patch(body))
    _, right = applied(base, target.strategic_merge_patch(body))
    assert wrong is not None
    assert right is not None
    assert [e["uid"] for e in wrong["status"]["reservedFor"]] == ["p"]
    assert [e["uid"] for e in right["status"]["reservedFor"]] == ["p", "a"]


def test_bug_67_an_existing_uid_needs_no_request() -> None:
    """Already reserved for the pod: no request, with or without a time to note."""
    claim = read(claim_json(allocation=allocation_json(), reserved_for=("p",)))
    assert patches.reserve(claim, entry("p")) is None
    assert patches.reserve(claim, entry("p"), timestamp="2026-02-01T00:00:00Z") is None


def test_bug_65_the_server_keeps_the_limit() -> None:
    """One entry more than the limit is refused; the list stays."""
    base = claim_json(allocation=allocation_json(), reserved_for=("a", "b"))
    request = patches.reserve(read(base), entry("p"))
    assert request is not None
    assert applied(base, request, limit=2) == (422, base)
    assert applied(base, request, limit=3)[0] == 200


def test_bug_58_a_time_never_makes_an_allocation() -> None:
    """A claim that lost its allocation refuses the reservation, also the one with a time."""
    seen = read(claim_json(allocation=allocation_json()))
    now = claim_json()
    for timestamp in ("", "2026-02-01T00:00:00Z"):
        request = patches.reserve(seen, entry("p"), timestamp=timestamp)
        assert request is not None
        assert applied(now, request) == (422, now)


def test_bug_86_a_status_patch_holds_status_only() -> None:
    """Patches of the status hold the status, and of the metadata only the UID, as a guard."""
    claim = read(claim_json(allocation=allocation_json(), reserved_for=("a",)))
    merge = [patches.reserve(claim, entry("p")), patches.remove_consumer(claim, "a")]
    for request in merge:
        assert request is not None
        assert set(request.body) == {"metadata", "status"}
        assert set(request.body["metadata"]) == {"uid"}
    unallocated = read(claim_json(finalizers=(FINALIZER,)))
    json_patches = [
        patches.allocate(unallocated, ALLOCATION, entry("p")),
        patches.reserve(claim, entry("p"), timestamp="2026-02-01T00:00:00Z"),
    ]
    for request in json_patches:
        assert request is not None
        written = [op["path"] for op in request.body if op["op"] != "test"]
        assert all(path.startswith("/status/") for path in written)


@pytest.mark.parametrize("version", VERSIONS)
def test_bug_86_an_update_of_the_status_leaves_metadata_and_spec_as_read(version: str) -> None:
    """A whole object has to carry metadata and spec: exactly those that were read."""
    obj = claim_json(version, allocation=allocation_json(), reserved_for=("a",))
    changes = [patches.deallocate(read(obj), version=version)]
    if version == "v1alpha3":
        changes.append(patches.request_deallocation(read(obj), version=version))
    for change in changes:
        assert change.target.subresource == "status"
        assert {**change.body, "status": None} == {**obj, "status": None}


def test_bug_86_finalizers_go_to_the_main_resource() -> None:
    """Metadata (the finalizer) to the main resource, status patches to the subresource."""
    bare, kept = read(claim_json()), read(claim_json(finalizers=(FINALIZER,)))
    for request in (
        patches.add_finalizer(bare),
        patches.add_finalizer_by_update(bare),
        patches.remove_finalizer(kept),
    ):
        assert request is not None
        assert request.target.subresource == ""


def test_unreserve() -> None:
    """Claims that name the *pod* and are allocated; nothing else."""
    pod = make_pod(uid="a")
    claim = read(claim_json(allocation=allocation_json(), reserved_for=("a", "b")))
    assert patches.unreserve(claim, pod) == patches.remove_consumer(claim, "a")
    assert patches.unreserve(claim, make_pod(uid="c")) is None
    unallocated = attrs.evolve(claim, allocation=None)
    assert patches.unreserve(unallocated, pod) is None


def test_unreserve_leaves_the_group_alone() -> None:
    """An entry of the pod's group stays: other pods rely on it."""
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g-uid"}
    claim = read(claim_json(allocation=allocation_json(), reservedFor=[group]))
    assert patches.unreserve(claim, make_pod(group="g")) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_entries_of_groups_survive_the_wire(version: str) -> None:
    """The consumer reference of a PodGroup keeps its API group in every version."""
    reference = attrs.evolve(entry("g"), api_group="scheduling.k8s.io", resource="podgroups")
    base = claim_json(version, allocation=allocation_json())
    request = patches.reserve(read(base), reference, version=version)
    assert request is not None
    _, now = applied(base, request)
    assert now is not None
    assert read(now).reserved_for == (reference,)


def test_whole_objects_are_written_in_the_version_they_were_read_in() -> None:
    """Unknown fields cannot be converted, so another version is refused, not guessed."""
    claim = read(claim_json("v1beta1", allocation=allocation_json()))
    with pytest.raises(ReadInOtherVersionError) as caught:
        patches.deallocate(claim, version="v1")
    assert (caught.value.read_in, caught.value.wanted) == ("v1beta1", "v1")
    assert patches.deallocate(claim, version="v1beta1").target.version == "v1beta1"


@pytest.mark.parametrize("odd", [True, 1, {"v": 1}, ["v1"]])
def test_an_api_version_that_is_no_text_is_another_version(odd: object) -> None:
    """An answer is read as the version that was asked for, whatever it says that it is."""
    claim = decode_resource_claim(claim_json("v1") | {"apiVersion": odd}, "v1")
    with pytest.raises(ReadInOtherVersionError):
        patches.deallocate(claim)


def test_whole_objects_made_in_python() -> None:
    """A claim without JSON is written from its fields."""
    claim = attrs.evolve(make_claim(finalizers=(FINALIZER,)), allocation=ALLOCATION)
    request = patches.deallocate(claim)
    assert request.verb is Verb.UPDATE
    assert "allocation" not in request.body["status"]
    again = decode_resource_claim(request.body)
    assert again == attrs.evolve(claim, allocation=None)


def test_copies_that_cannot_guard_a_change() -> None:
    """Without UID or resourceVersion a change could hit anything, so it is refused."""
    no_uid = make_claim(uid="", finalizers=(FINALIZER,))
    no_version = make_claim(version="")
    allocated = attrs.evolve(no_version, allocation=ALLOCATION)
    calls: list[Callable[[], object]] = [
        lambda: patches.reserve(no_uid, entry("p")),
        lambda: patches.remove_consumer(no_uid, "p"),
        lambda: patches.allocate(no_uid, ALLOCATION, entry("p")),
        lambda: patches.delete_claim(no_uid),
        lambda: patches.add_finalizer(no_version),
        lambda: patches.add_finalizer_by_update(no_version),
        lambda: patches.deallocate(allocated),
        lambda: patches.request_deallocation(allocated),
    ]
    for call in calls:
        with pytest.raises(PatchError, match="guard"):
            call()


def test_delete_names_the_incarnation() -> None:
    """A delete does not hit another claim of the same name."""
    base = claim_json()
    request = patches.delete_claim(read(base))
    assert applied(base, request) == (200, None)
    other = claim_json(uid="new-uid")
    assert applied(other, request) == (409, other)


def test_get() -> None:
    """Reading goes to the main resource of the version asked for."""
    request = patches.get_claim(make_claim(), "v1beta1")
    assert request.path == "/apis/resource.k8s.io/v1beta1/namespaces/team-a/resourceclaims/gpu"


def test_claims_without_a_name_cannot_be_addressed() -> None:
    """A request without a name would be about all claims of the namespace, so it is refused."""
    bare = make_claim("", finalizers=(FINALIZER,))
    allocated = attrs.evolve(bare, allocation=ALLOCATION)
    used = attrs.evolve(allocated, reserved_for=(entry("p"),))
    calls: list[Callable[[], object]] = [
        lambda: patches.get_claim(bare),
        lambda: patches.add_finalizer(make_claim("")),
        lambda: patches.add_finalizer_by_update(make_claim("")),
        lambda: patches.remove_finalizer(bare),
        lambda: patches.allocate(bare, ALLOCATION, entry("p")),
        lambda: patches.reserve(allocated, entry("p")),
        lambda: patches.reserve(allocated, entry("p"), timestamp="2026-01-01T00:00:00Z"),
        lambda: patches.remove_consumer(used, "p"),
        lambda: patches.deallocate(allocated),
        lambda: patches.request_deallocation(allocated),
        lambda: patches.delete_claim(bare),
    ]
    for call in calls:
        with pytest.raises(PatchError, match="no name"):
            call()
