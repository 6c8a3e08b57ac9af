"""Generating claims from templates: the plan, its requests, and recovery."""

import copy
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.core import ObjectMeta, Pod, PodResourceClaim
from dra_core.api.names import ObjectKey
from dra_core.api.objects import DeviceClaim, DeviceRequest, ResourceClaim, ResourceClaimTemplate
from dra_core.api.request import APPLY, STRATEGIC_MERGE_PATCH
from dra_core.api.wire import decode_pod, decode_resource_claim, decode_resource_claim_template
from dra_core.claims.generation import (
    POD_CLAIM_ANNOTATION,
    GenerationPlan,
    generate_name,
    plan_claims,
)
from dra_core.errors import ReadInOtherVersionError, TemplateNotFoundError
from support.api_server import Server
from support.claims import make_claim, make_pod, named, owner, template

Json = dict[str, Any]

TEMPLATE: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "tpl", "namespace": "team-a"},
    "spec": {
        "metadata": {
            "labels": {"app": "x"},
            "annotations": {"note": "y"},
            "finalizers": ["example.com/not-copied"],
        },
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]},
            "futureSpec": 1,
        },
    },
}


def templates(key: ObjectKey) -> ResourceClaimTemplate | None:
    """One template, "tpl"; no other exists."""
    return decode_resource_claim_template(TEMPLATE) if key == ("team-a", "tpl") else None


def marked(name: str, entry: str = "gpu", uid: str = "web-uid", **more: Any) -> ResourceClaim:
    """A claim that was generated for an entry."""
    return make_claim(name, owner(uid), annotations={POD_CLAIM_ANNOTATION: entry}, **more)


def plan(pod: Pod, *claims: ResourceClaim, **options: Any) -> GenerationPlan:
    return plan_claims(pod, claims, templates, **options)


# Creating


def test_create() -> None:
    """Generated name, the template's labels, annotations and spec, the owner, the annotation."""
    pod = make_pod(template("gpu"), named("net", "shared"))
    (new,) = plan(pod).create
    assert new.pod_claim == "gpu"
    assert new.request.path == "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims"
    assert new.request.body == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": "web-gpu-",
            "namespace": "team-a",
            "labels": {"app": "x"},
            "annotations": {"note": "y", POD_CLAIM_ANNOTATION: "gpu"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": "web",
                    "uid": "web-uid",
                    "controller": True,
                }
            ],
        },
        "spec": TEMPLATE["spec"]["spec"],
    }


def test_bug_98_and_85_block_owner_deletion_only_on_request() -> None:
    """It needs rights on pods/finalizers, so it is off unless asked for."""
    pod = make_pod(template("gpu"))
    (new,) = plan(pod, block_owner_deletion=True).create
    assert new.request.body["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is True
    (plain,) = plan(pod).create
    assert "blockOwnerDeletion" not in plain.request.body["metadata"]["ownerReferences"][0]


def test_the_template_is_not_shared_with_the_request() -> None:
    """The body is a copy: changing it changes no template."""
    before = copy.deepcopy(TEMPLATE)
    (new,) = plan(make_pod(template("gpu"))).create
    new.request.body["spec"]["devices"].clear()
    assert before == TEMPLATE


def test_missing_template() -> None:
    """A missing template is an error naming it; other entries are planned all the same."""
    found = plan(make_pod(template("a", "nope"), template("gpu")))
    (problem,) = found.problems
    assert isinstance(problem, TemplateNotFoundError)
    assert (problem.pod_claim, problem.template) == ("a", "nope")
    assert "'nope'" in str(problem)
    assert [new.pod_claim for new in found.create] == ["gpu"]


def test_template_of_another_version() -> None:
    """A spec cannot be converted without losing fields: refused, not guessed."""
    with pytest.raises(ReadInOtherVersionError, match="ResourceClaimTemplate"):
        plan(make_pod(template("gpu")), version="v1beta1")


def test_template_made_in_python() -> None:
    """A template without JSON is written from its fields, in the version asked for."""
    made = ResourceClaimTemplate(
        ObjectMeta("tpl", "team-a"), devices=DeviceClaim((DeviceRequest("gpu"),))
    )
    found = plan_claims(make_pod(template("gpu")), [], lambda key: made, version="v1beta1")
    (new,) = found.create
    assert new.request.body["apiVersion"] == "resource.k8s.io/v1beta1"
    assert new.request.body["spec"] == {"devices": {"requests": [{"name": "gpu"}]}}


@pytest.mark.parametrize(
    "pod",
    [
        make_pod(template("gpu"), phase="Succeeded"),
        make_pod(template("gpu"), phase="Failed"),
        make_pod(template("gpu"), deleted=True),
        make_pod(named("gpu", "shared")),
        make_pod(PodResourceClaim("gpu", "shared", "tpl")),  # the name comes first
        make_pod(),
    ],
)
def test_nothing_to_do(pod: Pod) -> None:
    """Nothing is done for pods deleted or finished, nor for claims by name."""
    found = plan(pod, marked("web-gpu-1"))
    assert found == GenerationPlan(pod)
    assert found.status_request() is None


# Names


@pytest.mark.parametrize(
    ("pod", "entry", "expected"),
    [
        ("web", "gpu", "web-gpu-"),
        ("p" * 50, "c" * 5, f"{'p' * 50}-ccccc-"),
        ("p" * 50, "c" * 6, f"{'p' * (50 * 57 // 58)}-{'c' * (6 * 57 // 58)}"),
        ("p" * 100, "c" * 100, f"{'p' * 28}-{'c' * 28}"),
        ("p" * 200, "c" * 20, f"{'p' * 51}-{'c' * 5}"),
        # 102 characters: parts of 27 and 27, which end in dashes and dots.
        ("p" * 20 + "-.-" + "p" * 27, "c" * 24 + "..." + "c" * 23, None),
    ],
)
def test_generate_name(pod: str, entry: str, expected: str | None) -> None:
    """Longer than 57: both parts cut in proportion, stripped of dashes and dots, no final dash."""
    name = generate_name(pod, entry)
    if expected is not None:
        assert name == expected
        return
    n = len(f"{pod}-{entry}-")
    first, second = pod[: len(pod) * 57 // n], entry[: len(entry) * 57 // n]
    assert second.endswith(".")
    assert name == f"{first.rstrip('-.')}-{second.rstrip('-.')}"


LABELS = st.from_regex(r"\A[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?\Z")


@given(pod=LABELS, entry=LABELS)
def test_law_generate_name(pod: str, entry: str) -> None:
    """Never longer than 57, never a dot or dash before a dash, and the whole if it fits."""
    name = generate_name(pod, entry)
    assert len(name) <= 57
    assert pod.startswith(name.split("-")[0])
    if len(pod) + len(entry) + 2 <= 57:
        assert name == f"{pod}-{entry}-"


# Recovery


def test_reuse_by_annotation() -> None:
    """A claim that was created while the status update was lost is used."""
    found = plan(make_pod(template("gpu")), marked("web-gpu-1"))
    assert (dict(found.names), found.create) == ({"gpu": "web-gpu-1"}, ())


@pytest.mark.parametrize(
    "claim",
    [
        marked("web-gpu-1", uid="old-uid"),
        marked("web-gpu-1", entry="nic"),
        marked("web-gpu-1", deleted=True),
        marked("web-gpu-1", namespace="team-b"),
        make_claim("web-gpu-1", owner()),
        make_claim("web-gpu-1", owner(controller=False), annotations={POD_CLAIM_ANNOTATION: "gpu"}),
    ],
)
def test_not_reused(claim: ResourceClaim) -> None:
    """Owned by the pod as controller, annotated with the entry, not being deleted: all of it."""
    assert [new.pod_claim for new in plan(make_pod(template("gpu")), claim).create] == ["gpu"]


def test_several_are_found() -> None:
    """Several: the oldest, then by name, whatever the order given."""
    claims = [
        marked("b", created="2026-01-02T00:00:00Z"),
        marked("c", created="2026-01-01T00:00:00Z"),
        marked("a", created="2026-01-02T00:00:00Z"),
        marked("d", created="2026-01-01T00:00:00Z"),
    ]
    pod = make_pod(template("gpu"))
    for order in (claims, claims[::-1]):
        assert plan(pod, *order).names == {"gpu": "c"}
    assert plan(pod, claims[0], claims[2]).names == {"gpu": "a"}


def test_transition_from_deterministic_names() -> None:
    """An owned claim without annotation and of the old name is used, if the policy says so."""
    pod, old = make_pod(template("gpu")), make_claim("web-gpu", owner())
    assert plan(pod, old, adopt_deterministic=True).names == {"gpu": "web-gpu"}
    assert len(plan(pod, old).create) == 1
    new = marked("web-gpu-1")
    assert plan(pod, old, new, adopt_deterministic=True).names == {"gpu": "web-gpu-1"}


@pytest.mark.parametrize(
    "claim",
    [
        make_claim("web-gpu"),
        make_claim("web-gpu", owner("old-uid")),
        make_claim("web-gpu", owner(), annotations={POD_CLAIM_ANNOTATION: "nic"}),
        make_claim("web-gpu", owner(), deleted=True),
        make_claim("web-nic", owner()),
    ],
)
def test_somebody_elses_claim_of_the_old_name(claim: ResourceClaim) -> None:
    """A claim of that name that the pod does not own is somebody else's and no obstacle."""
    found = plan(make_pod(template("gpu")), claim, adopt_deterministic=True)
    assert [new.pod_claim for new in found.create] == ["gpu"]


def test_usable_status_entry() -> None:
    """An entry whose claim exists and is the pod's is left as it is."""
    pod = make_pod(template("gpu"), statuses={"gpu": "mine"})
    for claim in (make_claim("mine", owner()), make_claim("mine", owner(), deleted=True)):
        found = plan(pod, claim, marked("other"))
        assert (dict(found.names), found.create) == ({"gpu": "mine"}, ())
        assert found.status_request() is None


@pytest.mark.parametrize(
    "claims", [(), (make_claim("mine", owner("old-uid")),), (make_claim("mine"),)]
)
@pytest.mark.parametrize("name", ["mine", ""])
def test_unusable_status_entry(claims: tuple[ResourceClaim, ...], name: str) -> None:
    """An entry whose claim is gone or not the pod's is made again."""
    pod = make_pod(template("gpu"), statuses={"gpu": name})
    assert len(plan(pod, *claims).create) == 1


def test_no_claim_needed_is_kept() -> None:
    """An entry without name stays, also in the next apply."""
    pod = make_pod(template("nic"), template("gpu"), statuses={"nic": None})
    found = plan(pod)
    assert [new.pod_claim for new in found.create] == ["gpu"]
    request = found.status_request({"gpu": "web-gpu-1"})
    assert request is not None
    assert request.body["status"]["resourceClaimStatuses"] == [
        {"name": "nic"},
        {"name": "gpu", "resourceClaimName": "web-gpu-1"},
    ]


def test_a_groups_claim_is_usable() -> None:
    """With workload claims, a name that belongs to the pod's group is left as it is."""
    group = owner("g", kind="PodGroup", api_version="scheduling.k8s.io/v1", name="gang")
    pod = make_pod(template("gpu"), statuses={"gpu": "gang-gpu"}, group="gang")
    claim = make_claim("gang-gpu", group)
    assert plan(pod, claim, workload_claims=True).create == ()
    assert len(plan(pod, claim).create) == 1


# The status


POD = make_pod(
    template("a"), named("by-name", "x"), template("b"), template("c"), statuses={"a": "web-a-1"}
)


def test_apply_names_all_generated_entries() -> None:
    """Forced apply on pods/status: an apply naming only the new ones deletes the others."""
    found = plan(POD, make_claim("web-a-1", owner()), marked("web-b-1", "b"))
    request = found.status_request({"c": "web-c-1"}, field_manager="me")
    assert request is not None
    assert (request.content_type, request.force, request.field_manager) == (APPLY, True, "me")
    assert request.path == "/api/v1/namespaces/team-a/pods/web/status"
    assert request.body == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "team-a", "uid": "web-uid"},
        "status": {
            "resourceClaimStatuses": [
                {"name": "a", "resourceClaimName": "web-a-1"},
                {"name": "b", "resourceClaimName": "web-b-1"},
                {"name": "c", "resourceClaimName": "web-c-1"},
            ]
        },
    }


def test_strategic_merge_patch_names_the_new_ones() -> None:
    """Merge key name, with the new ones and the pod's UID."""
    found = plan(POD, make_claim("web-a-1", owner()), marked("web-b-1", "b"))
    request = found.status_request({"c": "web-c-1"}, apply=False)
    assert request is not None
    assert (request.content_type, request.force) == (STRATEGIC_MERGE_PATCH, False)
    assert request.body == {
        "metadata": {"uid": "web-uid"},
        "status": {
            "resourceClaimStatuses": [
                {"name": "b", "resourceClaimName": "web-b-1"},
                {"name": "c", "resourceClaimName": "web-c-1"},
            ]
        },
    }


def test_bug_94_only_real_names() -> None:
    """A claim that could not be made gets no entry; the others do."""
    found = plan(POD, make_claim("web-a-1", owner()))
    request = found.status_request({"b": "web-b-1", "c": ""})
    assert request is not None
    names = [e["name"] for e in request.body["status"]["resourceClaimStatuses"]]
    assert names == ["a", "b"]
    assert found.status_request({}) is None


def test_a_recorded_name_stays_until_there_is_another() -> None:
    """An entry that cannot be made anew now is not dropped by an apply for others."""
    pod = make_pod(template("a", "nope"), template("gpu"), statuses={"a": "gone"})
    request = plan(pod).status_request({"gpu": "web-gpu-1"})
    assert request is not None
    assert request.body["status"]["resourceClaimStatuses"] == [
        {"name": "a", "resourceClaimName": "gone"},
        {"name": "gpu", "resourceClaimName": "web-gpu-1"},
    ]


# Converging


def pod_json(*entries: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "team-a",
            "uid": "web-uid",
            "resourceVersion": "1",
        },
        "spec": {
            "resourceClaims": [{"name": e, "resourceClaimTemplateName": "tpl"} for e in entries]
        },
        "status": {"phase": "Pending"},
    }


def all_claims(server: Server) -> list[ResourceClaim]:
    return [decode_resource_claim(obj) for key, obj in server.objects.items() if key[0] != "pods"]


def controller_round(server: Server, applies: bool, budget: Iterator[bool]) -> Server:
    """Plan from what is there and send all of it, until ``budget`` says that a request fails.

    A failing request may or may not have happened: it did, but its answer is lost.
    """
    pod = decode_pod(server.get("web", resource="pods"))
    found = plan_claims(pod, all_claims(server), templates)
    created = {}
    for new in found.create:
        server, _, body = server.send(new.request)
        if not next(budget, True):
            return server
        created[new.pod_claim] = body["metadata"]["name"]
    request = found.status_request(created, apply=applies)
    if request is not None and next(budget, True):
        server, status, _ = server.send(request)
        assert status == 200
    return server


@pytest.mark.parametrize("applies", [True, False])
@pytest.mark.parametrize("entries", [("a",), ("a", "b"), ("a", "b", "c")])
@given(failures=st.lists(st.integers(0, 4), max_size=4))
def test_law_plans_converge(applies: bool, entries: tuple[str, ...], failures: list[int]) -> None:
    """After any partial failures, running it again creates nothing twice and records all."""
    server = Server().with_object(pod_json(*entries))
    for failing_at in failures:
        budget = iter([True] * failing_at + [False])
        server = controller_round(server, applies, budget)
    server = controller_round(server, applies, iter(()))
    claims = all_claims(server)
    by_entry = {c.metadata.annotations[POD_CLAIM_ANNOTATION]: c.name for c in claims}
    assert len(claims) == len(entries)
    assert sorted(by_entry) == sorted(entries)
    pod = decode_pod(server.get("web", resource="pods"))
    recorded = {s.name: s.resource_claim_name for s in pod.resource_claim_statuses}
    assert recorded == by_entry
    last = plan_claims(pod, claims, templates)
    assert (last.create, last.status_request()) == ((), None)


def test_a_replaced_pod_is_not_written_to() -> None:
    """Either form of the status request is refused by a pod with another UID."""
    replaced = pod_json("gpu")
    replaced["metadata"]["uid"] = "new-uid"
    server = Server().with_object(replaced)
    found = plan(make_pod(template("gpu")))
    for applies in (True, False):
        request = found.status_request({"gpu": "web-gpu-1"}, apply=applies)
        assert request is not None
        assert server.send(request)[1] == 422


def test_inputs_are_left_alone() -> None:
    """Planning changes neither the pod nor the claims."""
    pod, claim = attrs.evolve(POD), marked("web-b-1", "b")
    before = copy.deepcopy((pod, claim))
    plan(pod, claim).status_request({"c": "x"})
    assert (pod, claim) == before
