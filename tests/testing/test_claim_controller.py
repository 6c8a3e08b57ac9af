"""The claim controller's double: it converges, whatever goes wrong in between."""

import random
from typing import Any

import pytest

from dra_core.api.objects import FINALIZER
from dra_core.api.request import ApiRequest, Target
from dra_core.claims.generation import POD_CLAIM_ANNOTATION
from dra_core.testing.api_server import ApiServer
from dra_core.testing.claim_controller import ClaimController, garbage
from dra_core.testing.faults import Fault, FaultyServer, random_faults, script
from support.claim_json import allocation_json, claim_json

Json = dict[str, Any]

PODS = Target("", "v1", "pods", "team-a")
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "tpl", "namespace": "team-a"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu"}]}}},
}


def pod_json(name: str, *templates: str, **status: Any) -> Json:
    """A pod with claims from templates, called like these."""
    claims = [{"name": entry, "resourceClaimTemplateName": "tpl"} for entry in templates]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team-a", "uid": name.removeprefix("pod-")},
        "spec": {"resourceClaims": claims},
        "status": status,
    }


def world(*objects: Json) -> ApiServer:
    server = ApiServer()
    server.seed(TEMPLATE, *objects)
    return server


def used(*users: str, **more: Any) -> Json:
    """A claim that a scheduler allocated for pods."""
    return claim_json(
        finalizers=(FINALIZER,), allocation=allocation_json(), reserved_for=users, **more
    )


def claim(server: ApiServer, name: str = "gpu") -> Json:
    found = server.find("resourceclaims", "team-a", name)
    assert found is not None
    return found


def test_generates_claims() -> None:
    """Claims are made from templates, with the annotation and the owner, and recorded."""
    server = world(pod_json("web", "a", "b"))
    ClaimController(server).settle()
    claims = server.objects("resourceclaims")
    entries = [obj["metadata"]["annotations"][POD_CLAIM_ANNOTATION] for obj in claims]
    assert entries == ["a", "b"]
    assert claims[0]["metadata"]["ownerReferences"][0]["uid"] == "web"
    pod = server.find("pods", "team-a", "web")
    assert pod is not None
    assert pod["status"]["resourceClaimStatuses"] == [
        {"name": entry, "resourceClaimName": obj["metadata"]["name"]}
        for entry, obj in zip(entries, claims, strict=True)
    ]


def test_missing_template() -> None:
    """Without the template nothing is made, and nothing is left to do."""
    server = ApiServer()
    server.seed(pod_json("web", "a"))
    ClaimController(server).settle()
    assert server.objects("resourceclaims") == []


def test_releases_in_two_steps() -> None:
    """First the status, then the finalizer; between them the claim is free and protected."""
    server = world(used("gone"))
    controller = ClaimController(server)
    controller.look()
    assert controller.busy == 1
    assert controller.step()
    between = claim(server)
    assert "allocation" not in between["status"]
    assert between["metadata"]["finalizers"] == [FINALIZER]
    assert controller.step()
    assert "finalizers" not in claim(server)["metadata"]
    assert not controller.step()


def test_a_faster_scheduler_keeps_the_finalizer() -> None:
    """The second update is made from the answer to the first: a change in between stops it."""
    server = world(used("gone"))
    controller = ClaimController(server)
    controller.look()
    controller.step()
    server.touch(Target("resource.k8s.io", "v1", "resourceclaims", "team-a", "gpu"))
    controller.step()
    assert claim(server)["metadata"]["finalizers"] == [FINALIZER]


def test_leaves_alone_what_is_needed() -> None:
    """A claim of a running pod stays, also one that was never reserved."""
    server = world(pod_json("pod-a", phase="Running"), used("a"), used(name="idle"))
    before = server.objects()
    ClaimController(server).settle()
    assert server.objects() == before


def test_deleted_claims_go() -> None:
    """A claim that is being deleted is released, and gone with the finalizer."""
    server = world(used("gone", deleted=True), used(name="idle", deleted=True))
    server.seed(claim_json(name="free", finalizers=(FINALIZER,), deleted=True))
    ClaimController(server).settle()
    assert server.objects("resourceclaims") == []


def test_generated_claims_of_finished_pods_are_deleted() -> None:
    """A generated claim goes when its pod is finished."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod-a", "uid": "a", "controller": True}
    server = world(pod_json("pod-a", phase="Succeeded"), used("a", owner=owner))
    ClaimController(server).settle()
    assert server.objects("resourceclaims") == []


def test_works_in_turns() -> None:
    """Several things to do can be taken in any order, each in its own."""
    server = world(used("gone"), used("gone", name="other"))
    controller = ClaimController(server)
    controller.look()
    assert controller.busy == 2
    controller.step(1)
    assert "allocation" in claim(server)["status"]
    assert "allocation" not in claim(server, "other")["status"]


def test_looking_again_gives_up_what_was_begun() -> None:
    """A restart between the two updates: the finalizer stays until the claim is deleted."""
    server = world(used("gone"))
    controller = ClaimController(server)
    controller.look()
    controller.step()
    controller.settle()
    assert claim(server)["metadata"]["finalizers"] == [FINALIZER]


def test_lost_answers() -> None:
    """A lost answer ends the work; the next look goes on from what there is."""
    server = world(pod_json("web", "a"))
    faulty = FaultyServer(server, script([Fault.LOST_ANSWER]))
    ClaimController(server, faulty.send).settle()
    assert len(server.objects("resourceclaims")) == 1
    pod = server.find("pods", "team-a", "web")
    assert pod is not None
    assert len(pod["status"]["resourceClaimStatuses"]) == 1


@pytest.mark.parametrize("seed", range(5))
def test_converges_under_bad_luck(seed: int) -> None:
    """With faults, then without: every claim is made once, every unused one is released."""
    server = world(
        *(pod_json(f"web-{number}", "a", "b") for number in range(3)), used("gone"),
        used("gone", name="old", deleted=True),
    )  # fmt: skip
    rates = dict.fromkeys(Fault, 0.1)
    faulty = FaultyServer(server, random_faults(random.Random(seed), rates))
    controller = ClaimController(server, faulty.send)
    for _ in range(5):
        controller.look()
        while controller.step(seed):
            pass
    faulty.source = script(())
    controller.settle()
    made = [obj for obj in server.objects("resourceclaims") if "ownerReferences" in obj["metadata"]]
    assert len(made) == 6
    assert "allocation" not in claim(server)["status"]
    assert server.find("resourceclaims", "team-a", "old") is None


def test_settling_is_bounded() -> None:
    """Work that never succeeds is given up with an error, not in silence."""

    def refuse(_request: ApiRequest) -> tuple[int | None, Any]:
        return 503, None

    server = world(pod_json("web", "a"))
    with pytest.raises(RuntimeError, match="3 rounds"):
        ClaimController(server, refuse).settle(3)


def test_claims_of_other_shapes_are_left_alone() -> None:
    """The kinds of v1alpha2 have a controller of their own."""
    server = ApiServer()
    old = claim_json(allocation=allocation_json(), reserved_for=("gone",))
    server.seed(old | {"apiVersion": "resource.k8s.io/v1alpha2"})
    ClaimController(server).settle()
    assert server.version == 100


def test_garbage() -> None:
    """What belonged to objects that are all gone is deleted, in this incarnation only."""
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "web"}]
    server = world(pod_json("web"), claim_json(owner=owners[0]))
    assert garbage(server) == []
    server.send(Target("", "v1", "pods", "team-a", "web").delete())
    (request,) = garbage(server)
    assert request.path.endswith("/resourceclaims/gpu")
    assert request.body["preconditions"] == {"uid": "claim-uid"}
    server.send(request)
    assert server.objects("resourceclaims") == []
