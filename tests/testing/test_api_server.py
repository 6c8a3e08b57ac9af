"""The API server double: what it stores, what it refuses, and what it says."""

import copy
from typing import Any

import attrs
import pytest

from dra_core.api.request import APPLY, JSON, ApiRequest, Target, Verb
from dra_core.testing.api_server import ApiServer
from dra_core.testing.server_answers import RefusedError
from support.claim_json import allocation_json, claim_json, entry_json

Json = dict[str, Any]

CLAIMS = Target("resource.k8s.io", "v1", "resourceclaims", "team-a")
CLAIM = attrs.evolve(CLAIMS, name="gpu")
PODS = Target("", "v1", "pods", "team-a")
POD = attrs.evolve(PODS, name="web")
NODES = Target("", "v1", "nodes")
SLICES = Target("resource.k8s.io", "v1", "resourceslices")
CONTEXT = Target("resource.k8s.io", "v1alpha3", "podschedulingcontexts", "team-a", "web")

NEW_CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu"},
    "spec": {"devices": {"requests": [{"name": "gpu"}]}},
}


def new(kind: str, name: str, api_version: str = "v1", **parts: Any) -> Json:
    """An object to be created."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **parts}


def created(body: Json = NEW_CLAIM, target: Target = CLAIMS) -> tuple[ApiServer, Json]:
    """A server with one object, and the object."""
    server = ApiServer()
    answer = server.send(target.create(body, "me"))
    assert answer.status == 201
    return server, answer.body


def seeded(obj: Json, **options: Any) -> ApiServer:
    server = ApiServer(**options)
    server.seed(obj)
    return server


# Creating


def test_create() -> None:
    """The server gives UID, version and time, and starts with an empty status."""
    server, obj = created(NEW_CLAIM | {"status": {"reservedFor": [entry_json("a")]}})
    assert obj["metadata"] | {"managedFields": None} == {
        "name": "gpu",
        "namespace": "team-a",
        "uid": "uid-101",
        "resourceVersion": "101",
        "creationTimestamp": "2026-01-01T00:01:40Z",
        "managedFields": None,
    }
    assert obj["status"] == {}
    assert obj["spec"] == NEW_CLAIM["spec"]
    assert server.send(CLAIM.get()) == (200, obj)
    (managed,) = obj["metadata"]["managedFields"]
    assert (managed["manager"], managed["operation"]) == ("me", "Update")
    assert managed["fieldsV1"] == {"f:spec": {"f:devices": {"f:requests": {}}}}


def test_create_from_the_callers_sources() -> None:
    """UIDs, suffixes and times are the caller's, if given."""
    server = ApiServer(
        clock=lambda: "2030-01-01T00:00:00Z", new_uid=lambda: "u", suffix=lambda: "zzzzz"
    )
    body = NEW_CLAIM | {"metadata": {"generateName": "web-gpu-"}}
    meta = server.send(CLAIMS.create(body)).body["metadata"]
    assert (meta["name"], meta["uid"]) == ("web-gpu-zzzzz", "u")
    assert meta["creationTimestamp"] == "2030-01-01T00:00:00Z"
    again = server.send(CLAIMS.create(body))
    assert (again.status, again.body["reason"]) == (409, "AlreadyExists")


def test_generated_names_differ() -> None:
    """By default, names, UIDs and times count up, so that two runs are the same."""
    server = ApiServer()
    body = NEW_CLAIM | {"metadata": {"generateName": "gpu-"}}
    names = [server.send(CLAIMS.create(body)).body["metadata"]["name"] for _ in range(3)]
    assert names == ["gpu-00101", "gpu-00102", "gpu-00103"]


@pytest.mark.parametrize(
    ("target", "body", "status"),
    [
        (CLAIMS, NEW_CLAIM | {"metadata": {}}, 422),
        (CLAIMS, NEW_CLAIM | {"metadata": {"name": "a", "namespace": "team-b"}}, 400),
        (CLAIMS, NEW_CLAIM | {"metadata": {"name": "a", "resourceVersion": "1"}}, 400),
        (CLAIMS, NEW_CLAIM | {"kind": "Pod"}, 400),
        (CLAIMS, NEW_CLAIM | {"apiVersion": "resource.k8s.io/v1beta1"}, 400),
        (CLAIMS, "text", 400),
        (CLAIMS, NEW_CLAIM | {"metadata": 1}, 400),
        (attrs.evolve(CLAIMS, namespace=""), NEW_CLAIM, 404),
        (attrs.evolve(NODES, namespace="team-a"), new("Node", "n"), 404),
        (attrs.evolve(CLAIMS, version="v9"), NEW_CLAIM, 404),
        (attrs.evolve(CLAIMS, resource="tables"), NEW_CLAIM, 404),
        (CLAIMS.at("scale"), NEW_CLAIM, 404),
        (SLICES.at("status"), NEW_CLAIM, 404),
    ],
)
def test_creations_that_are_refused(target: Target, body: Any, status: int) -> None:
    """A body that belongs elsewhere, or has no name, and a place that does not exist."""
    server = ApiServer()
    answer = server.send(target.create(body))
    assert (answer.status, answer.body["code"], answer.body["kind"]) == (status, status, "Status")
    assert server.objects() == []
    assert server.version == 100


def test_status_of_new_objects() -> None:
    """A pod is pending, whatever it says; a node may bring its status."""
    _, pod = created(new("Pod", "web", spec={}, status={"phase": "Running"}), PODS)
    assert pod["status"] == {"phase": "Pending"}
    _, node = created(new("Node", "n1", status={"allocatable": {"cpu": "1"}}), NODES)
    assert node["status"] == {"allocatable": {"cpu": "1"}}


# Reading


def test_list() -> None:
    """Each object once, in order, as a copy, without kind; of one namespace or all."""
    server = ApiServer()
    for namespace, name in (("team-b", "a"), ("team-a", "z"), ("team-a", "b")):
        target = attrs.evolve(CLAIMS, namespace=namespace)
        server.send(target.create(NEW_CLAIM | {"metadata": {"name": name}}))
    server.send(PODS.create(new("Pod", "web")))
    body = server.send(attrs.evolve(CLAIMS, namespace="").get()).body
    assert (body["kind"], body["apiVersion"]) == ("ResourceClaimList", "resource.k8s.io/v1")
    assert body["metadata"] == {"resourceVersion": "104"}
    assert [i["metadata"]["name"] for i in body["items"]] == ["b", "z", "a"]
    assert not any("kind" in item for item in body["items"])
    body["items"][0]["spec"].clear()
    here = server.send(CLAIMS.get()).body["items"]
    assert [item["metadata"]["name"] for item in here] == ["b", "z"]
    assert here[0]["spec"] == NEW_CLAIM["spec"]
    assert len(server.objects()) == 4
    assert len(server.objects("resourceclaims", "team-b")) == 1


def test_bodies_are_copies() -> None:
    """Changing an answer, or a request that was sent, changes nothing that is stored."""
    body = copy.deepcopy(NEW_CLAIM)
    server = ApiServer()
    first = server.send(CLAIMS.create(body)).body
    stored = copy.deepcopy(first)
    body["spec"]["devices"].clear()  # type: ignore[index]
    first["spec"]["devices"].clear()
    found = server.find("resourceclaims", "team-a", "gpu")
    assert found is not None
    assert found == stored
    found["spec"].clear()
    server.send(CLAIM.get()).body["spec"].clear()
    assert server.find("resourceclaims", "team-a", "gpu") == stored
    assert server.find("resourceclaims", "team-a", "other") is None


def test_missing() -> None:
    """What does not exist is not found, whatever is done to it."""
    server = ApiServer()
    for request in (
        CLAIM.get(),
        CLAIM.update(NEW_CLAIM),
        CLAIM.json_patch([]),
        CLAIM.merge_patch({}),
        CLAIM.strategic_merge_patch({}),
        CLAIM.delete(),
        CLAIM.at("status").apply(NEW_CLAIM, "me"),
        CLAIM.at("status").apply(NEW_CLAIM | {"metadata": {"uid": "x"}}, "me"),
    ):
        assert server.send(request).status == 404


def test_collections_cannot_be_written() -> None:
    """A write needs a name."""
    answer = ApiServer().send(ApiRequest(Verb.DELETE, CLAIMS))
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")


# Versions, UIDs


def test_update_and_conflict() -> None:
    """A stale resourceVersion is a conflict; without one, the last write wins."""
    server, obj = created()
    changed = copy.deepcopy(obj)
    changed["metadata"]["labels"] = {"a": "1"}
    assert server.send(CLAIM.update(changed)).body["metadata"]["resourceVersion"] == "102"
    assert server.send(CLAIM.update(obj)).status == 409
    del obj["metadata"]["resourceVersion"]
    answer = server.send(CLAIM.update(obj))
    assert (answer.status, answer.body["metadata"].get("labels")) == (200, None)


def test_nothing_changed() -> None:
    """A write that changes nothing makes no version and no event."""
    server, obj = created()
    for request in (
        CLAIM.update(obj, "other"),
        CLAIM.merge_patch({"metadata": {"labels": None}}),
        CLAIM.strategic_merge_patch({"metadata": {"finalizers": []}}),
        CLAIM.json_patch([{"op": "test", "path": "/kind", "value": "ResourceClaim"}]),
    ):
        assert server.send(request) == (200, obj)
    assert server.version == 101
    assert len(server.events(100)) == 1


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (CLAIM.update(NEW_CLAIM | {"metadata": {"name": "gpu", "uid": "other"}}), 409),
        (CLAIM.merge_patch({"metadata": {"uid": "other"}}), 422),
        (CLAIM.at("status").strategic_merge_patch({"metadata": {"uid": "other"}}), 422),
        (CLAIM.json_patch([{"op": "replace", "path": "/metadata/uid", "value": "other"}]), 422),
        (CLAIM.apply(NEW_CLAIM | {"metadata": {"uid": "other"}}, "me"), 422),
        (CLAIM.delete(uid="other"), 409),
        (CLAIM.delete(resource_version="1"), 409),
        (CLAIM.merge_patch({"metadata": {"resourceVersion": "1"}}), 409),
        (CLAIM.apply(NEW_CLAIM | {"metadata": {"resourceVersion": "1"}}, "me"), 409),
        (CLAIM.merge_patch({"metadata": {"name": "other"}}), 400),
        (CLAIM.merge_patch({"metadata": {"namespace": "other"}}), 400),
        (CLAIM.json_patch([{"op": "remove", "path": "/nothing"}]), 422),
        (attrs.evolve(CLAIM.json_patch([]), body={}), 400),
        (attrs.evolve(CLAIM.merge_patch({}), body=[]), 400),
        (ApiRequest(Verb.PATCH, CLAIM, JSON, {}), 415),
        (CLAIM.update(NEW_CLAIM | {"kind": "Pod"}), 400),
        (CLAIM.merge_patch({"spec": {"devices": None}}), 422),
    ],
)
def test_writes_that_are_refused(request_: ApiRequest, status: int) -> None:
    """Other incarnations, stale versions, other names, bad patches; nothing is written."""
    server, obj = created()
    body = copy.deepcopy(request_.body)
    assert server.send(request_).status == status
    assert server.find("resourceclaims", "team-a", "gpu") == obj
    assert request_.body == body


def test_the_servers_own_metadata() -> None:
    """UID, version, times and managed fields stay, whatever an update says of them."""
    server, obj = created()
    bare = {"name": "gpu", "labels": {"a": "b"}, "managedFields": [], "creationTimestamp": "never"}
    now = server.send(CLAIM.update(NEW_CLAIM | {"metadata": bare})).body["metadata"]
    assert now["labels"] == {"a": "b"}
    for name in ("uid", "creationTimestamp"):
        assert now[name] == obj["metadata"][name]
    assert len(now["managedFields"]) == 2


# The status subresource


def test_the_main_resource_ignores_the_status() -> None:
    """Writes to the main resource change all but the status."""
    server = seeded(claim_json(allocation=allocation_json()))
    before = server.find("resourceclaims", "team-a", "gpu")
    assert before is not None
    patch = {"status": {"allocation": None}, "metadata": {"labels": {"a": "b"}}}
    for request in (CLAIM.update(before | {"status": {}}), CLAIM.merge_patch(patch)):
        now = server.send(request).body
        assert now["status"] == before["status"]
    assert now["metadata"]["labels"] == {"a": "b"}


def test_the_status_ignores_the_rest() -> None:
    """Writes to the status change nothing of spec and metadata."""
    server = seeded(claim_json(finalizers=("a",), allocation=allocation_json()))
    before = server.find("resourceclaims", "team-a", "gpu")
    assert before is not None
    status = CLAIM.at("status")
    patch = {
        "metadata": {"finalizers": None, "labels": {"a": "b"}},
        "spec": {"devices": None},
        "status": {"allocation": None},
    }
    now = server.send(status.merge_patch(patch)).body
    assert "allocation" not in now["status"]
    assert {**now["metadata"], "resourceVersion": "7"} == before["metadata"]
    assert now["spec"] == before["spec"]


def test_kinds_without_status() -> None:
    """Where there is no subresource, a status is nothing special."""
    body = new("ResourceSlice", "s", "resource.k8s.io/v1", spec={"driver": "d"}, status={"a": 1})
    _, obj = created(body, SLICES)
    assert obj["status"] == {"a": 1}


def test_empty_members_are_left_out() -> None:
    """Empty lists, strings and nulls of metadata, spec and status are not stored."""
    server = seeded(claim_json(allocation=allocation_json(), reserved_for=("a",)))
    patch = [{"op": "replace", "path": "/status/reservedFor", "value": []}]
    assert "reservedFor" not in server.send(CLAIM.at("status").json_patch(patch)).body["status"]
    labels = server.send(CLAIM.merge_patch({"metadata": {"labels": {}}})).body
    assert "labels" not in labels["metadata"]


# Deleting


def test_delete_with_and_without_finalizers() -> None:
    """An object goes with its last finalizer; until then it is being deleted."""
    server, obj = created()
    assert server.send(CLAIM.delete(uid=obj["metadata"]["uid"])).status == 200
    assert server.objects() == []
    server.seed(claim_json(finalizers=("a", "b")))
    first = server.send(CLAIM.delete()).body
    assert first["metadata"]["deletionTimestamp"] == "2026-01-01T00:01:42Z"
    assert server.send(CLAIM.delete()) == (200, first)
    remove = [{"op": "remove", "path": "/metadata/finalizers/0"}]
    assert server.send(CLAIM.json_patch(remove)).body["metadata"]["finalizers"] == ["b"]
    assert server.send(CLAIM.json_patch(remove)).status == 200
    assert server.objects() == []


def test_no_new_finalizers_while_being_deleted() -> None:
    """The finalizer cannot be added to a claim on its way out."""
    server = seeded(claim_json(finalizers=("a",), deleted=True))
    for finalizers in (["a", "b"], ["b"]):
        patch = {"metadata": {"finalizers": finalizers}}
        assert server.send(CLAIM.merge_patch(patch)).status == 422
    undelete = server.send(CLAIM.merge_patch({"metadata": {"deletionTimestamp": None}}))
    assert undelete.body["metadata"]["deletionTimestamp"] == "2026-01-02T00:00:00Z"


# Apply


def context(uid: str = "", **spec: Any) -> Json:
    """What is applied to a PodSchedulingContext."""
    body = new("PodSchedulingContext", "web", "resource.k8s.io/v1alpha3", spec=spec)
    if uid:
        body["metadata"]["uid"] = uid
    return body


def test_apply_creates_unless_an_incarnation_is_meant() -> None:
    """Without uid a missing object is created, with one it is a conflict."""
    server = ApiServer()
    assert server.send(CONTEXT.apply(context("u", selectedNode="n"), "me")).status == 409
    answer = server.send(CONTEXT.apply(context(selectedNode="n"), "me"))
    assert answer.status == 201
    (managed,) = answer.body["metadata"]["managedFields"]
    assert (managed["operation"], managed["fieldsV1"]) == (
        "Apply",
        {"f:spec": {"f:selectedNode": {}}},
    )


def test_apply_removes_only_what_it_applied() -> None:
    """Fields that the same manager created stay when an apply leaves them out."""
    server = ApiServer()
    collection = attrs.evolve(CONTEXT, name="")
    server.send(collection.create(context(selectedNode="a", potentialNodes=["a"]), "me"))
    refused = server.send(CONTEXT.apply(context(selectedNode="b"), "me"))
    assert refused.status == 409
    assert "me" in refused.body["message"]
    forced = CONTEXT.apply(context(selectedNode="b"), "me", force=True)
    assert server.send(forced).body["spec"] == {"selectedNode": "b", "potentialNodes": ["a"]}
    left_out = CONTEXT.apply(context(potentialNodes=["a"]), "me", force=True)
    assert server.send(left_out).body["spec"] == {"potentialNodes": ["a"]}
    emptied = CONTEXT.apply(context(selectedNode="", potentialNodes=[]), "me", force=True)
    assert server.send(emptied).body["spec"] == {}


def test_apply_to_the_status_is_another_ownership() -> None:
    """Ownership is per manager, operation and subresource; the status is all that is written."""
    server = ApiServer()
    spec = {"containers": [], "resourceClaims": [{"name": "a"}, {"name": "b"}]}
    server.send(PODS.create(new("Pod", "web", spec=spec)))

    def status(*names: str) -> Json:
        entries = [{"name": name, "resourceClaimName": f"x-{name}"} for name in names]
        return new("Pod", "web", spec={"nodeName": "n"}, status={"resourceClaimStatuses": entries})

    target = POD.at("status")
    assert server.send(target.apply(status("a", "b"), "c")).status == 200
    now = server.send(target.apply(status("b"), "c")).body
    assert [e["name"] for e in now["status"]["resourceClaimStatuses"]] == ["b"]
    assert now["status"]["phase"] == "Pending"
    assert "nodeName" not in now["spec"]
    server.send(POD.apply(new("Pod", "web"), "c"))
    assert "resourceClaimStatuses" in server.objects("pods")[0]["status"]


@pytest.mark.parametrize(
    ("body", "manager", "status"),
    [
        (context(), "", 422),
        ({"metadata": {}}, "me", 400),
        (context() | {"kind": "Pod"}, "me", 400),
        (context() | {"metadata": {"managedFields": [{}]}}, "me", 400),
        (context() | {"metadata": {"name": "other"}}, "me", 400),
        ([], "me", 400),
    ],
)
def test_applies_that_are_refused(body: Any, manager: str, status: int) -> None:
    """Apply needs a manager, and an object that says what it is."""
    request = ApiRequest(Verb.PATCH, CONTEXT, APPLY, body, manager)
    server, _ = created(context(), attrs.evolve(CONTEXT, name=""))
    assert server.send(request).status == status


def test_potential_nodes_were_a_set() -> None:
    """In v1alpha1 apply only adds nodes; from v1alpha2 on the list is replaced."""
    old = Target("resource.k8s.io", "v1alpha1", "podschedulings", "team-a", "web")
    for target, kind, expected in (
        (old, "PodScheduling", ["a", "b"]),
        (CONTEXT, "PodSchedulingContext", ["b"]),
    ):
        version = f"resource.k8s.io/{target.version}"
        server = ApiServer()
        first = new(kind, "web", version, spec={"potentialNodes": ["a"]})
        server.send(attrs.evolve(target, name="").create(first, "me"))
        second = new(kind, "web", version, spec={"potentialNodes": ["b"]})
        now = server.send(target.apply(second, "me", force=True)).body
        assert now["spec"]["potentialNodes"] == expected


# Binding pods


def binding(node: str = "n1", **meta: Any) -> Json:
    """The body that assigns a pod to a node."""
    body = new("Binding", "web", target={"kind": "Node", "name": node})
    body["metadata"] |= meta
    return body


def bind(body: Json) -> ApiRequest:
    return ApiRequest(Verb.CREATE, POD.at("binding"), JSON, body)


def test_binding() -> None:
    """A pod is assigned once; no other write can do it again."""
    server, _ = created(new("Pod", "web", spec={"containers": []}), PODS)
    assert server.send(bind(binding("n1", uid="other"))).status == 409
    assert server.send(bind(binding(""))).status == 422
    assert server.send(bind(binding())).status == 201
    pod = server.find("pods", "team-a", "web")
    assert pod is not None
    assert pod["spec"]["nodeName"] == "n1"
    assert server.send(bind(binding("n2"))).status == 409
    assert server.send(POD.merge_patch({"spec": {"nodeName": "n2"}})).status == 422
    assert server.send(POD.at("binding").get()).status == 405
    assert ApiServer().send(bind(binding())).status == 404


# Forks, seeds, history


def test_fork() -> None:
    """What happens to one of two forks is nothing to the other."""
    server, obj = created()
    fork = server.fork()
    fork.send(CLAIM.delete())
    assert server.find("resourceclaims", "team-a", "gpu") == obj
    assert fork.objects() == []
    assert (server.version, fork.version) == (101, 102)
    assert (len(server.events(100)), len(fork.events(100))) == (1, 2)
    server.send(CLAIM.merge_patch({"metadata": {"labels": {"a": "b"}}}))
    assert fork.objects() == []
    limited = ApiServer(max_consumers=1).fork()
    assert {kind.max_consumers for kind in limited.kinds} == {1}


def test_seed() -> None:
    """A seed is stored as it is, over whatever was there, and nobody is shown it."""
    obj = claim_json(allocation=allocation_json())
    server = seeded(obj)
    assert server.objects() == [obj]
    bare = {name: value for name, value in NEW_CLAIM.items() if name != "status"}
    server.seed(bare | {"metadata": {"name": "other", "namespace": "team-a"}})
    other = server.find("resourceclaims", "team-a", "other")
    assert other is not None
    assert (other["metadata"]["uid"], other["metadata"]["resourceVersion"]) == ("uid-101", "101")
    assert other["status"] == {}
    assert server.events(100) == []
    with pytest.raises(RefusedError):
        server.seed(new("Table", "t"))
    server.unseed("resourceclaims", "team-a", "other")
    server.unseed("resourceclaims", "team-a", "other")
    assert server.objects() == [obj]


def test_touch() -> None:
    """Somebody else's change makes copies stale; a missing object is left alone."""
    server, obj = created()
    server.touch(CLAIM.at("status"))
    server.touch(POD)
    assert server.version == 102
    assert server.send(CLAIM.update(obj)).status == 409


def test_events() -> None:
    """Each write is one event with old and new; a restart forgets them."""
    server, obj = created()
    server.touch(CLAIM)
    server.send(CLAIM.delete())
    first, second, third = server.events(100)
    assert (first.old, first.new, first.version) == (None, obj, 101)
    assert second.old is first.new
    assert third.new is None
    assert third.last["metadata"]["resourceVersion"] == "103"
    assert server.events(102) == [third]
    server.restart()
    assert server.events(103) == []
    with pytest.raises(RefusedError) as raised:
        server.events(102)
    assert (raised.value.code, raised.value.answer().body["reason"]) == (410, "Expired")
    assert "410 Expired" in str(raised.value)
