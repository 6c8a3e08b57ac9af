"""The special claim for a pod's extended resources."""

import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.core import Container, ContainerExtendedResourceRequest, ObjectMeta, Pod
from dra_core.api.objects import ResourceClaim
from dra_core.api.wire import decode_pod, decode_resource_claim
from dra_core.errors import PatchError
from dra_core.scheduling.extended_claim import (
    ANNOTATION,
    IN_MEMORY_NAME,
    ClaimLayout,
    create_claim,
    in_memory_claim,
    is_in_memory,
    is_special_claim_of,
    lay_out,
    left_over,
    record_in_pod,
)
from dra_core.scheduling.extended_resources import classes_by_resource, effective_requests
from support.pods import GPU, NIC, container, offering, pod_of, sidecar

CLASSES = classes_by_resource([offering("gpus", GPU), offering("nics", NIC)])


def counts(layout: ClaimLayout) -> dict[str, int | None]:
    """Requests by name, with their counts."""
    return {r.name: r.exactly.count for r in layout.requests if r.exactly is not None}


def mapped(layout: ClaimLayout) -> list[tuple[str, str, str]]:
    """Mappings as (container, resource, request)."""
    return [(m.container_name, m.resource_name, m.request_name) for m in layout.mappings]


# --- requests and mappings


def test_each_container_gets_its_own_request() -> None:
    """Requests container-<i>-request-<j>: i over initContainers then containers, j the place
    among the container's sorted request names; ExactCount."""
    pod = pod_of(
        container("c1", nic=1, gpu=2, cpu=1),
        container("c2", gpu=1),
        init=(container("i1", cpu=1),),
    )
    layout = lay_out(pod, (NIC, GPU), CLASSES)
    assert counts(layout) == {
        "container-1-request-1": 2,
        "container-1-request-2": 1,
        "container-2-request-0": 1,
    }
    assert mapped(layout) == [
        ("c1", GPU, "container-1-request-1"),
        ("c2", GPU, "container-2-request-0"),
        ("c1", NIC, "container-1-request-2"),
    ]
    for request in layout.requests:
        assert request.exactly is not None
        assert request.exactly.allocation_mode == "ExactCount"
        wanted = "nics" if request.name == "container-1-request-2" else "gpus"
        assert request.exactly.device_class_name == wanted


def test_only_the_given_resources_are_laid_out() -> None:
    """What the node's device plugin serves is not in the claim."""
    pod = pod_of(container("c1", gpu=2, nic=1))
    assert counts(lay_out(pod, (NIC,), CLASSES)) == {"container-0-request-1": 1}
    assert lay_out(pod, (), CLASSES) == ClaimLayout()


def test_bug_93_init_containers_counted_as_extra() -> None:
    """ic1 1 gpu, sidecar 1, ic2 2, c1 1: 3 devices in total, devices reused (k/k#134880)."""
    pod = pod_of(
        container("c1", gpu=1),
        init=(container("ic1", gpu=1), sidecar("side", gpu=1), container("ic2", gpu=2)),
    )
    layout = lay_out(pod, (GPU,), CLASSES)
    assert counts(layout) == {
        "container-1-request-0": 1,
        "container-2-request-0": 1,
        "container-3-request-0": 1,
    }
    assert mapped(layout) == [
        ("side", GPU, "container-1-request-0"),
        ("c1", GPU, "container-3-request-0"),
        # The first comes before the sidecar, so the sidecar's device is free for it.
        ("ic1", GPU, "container-1-request-0"),
        # The second runs beside the sidecar: the container's device, and one more.
        ("ic2", GPU, "container-3-request-0"),
        ("ic2", GPU, "container-2-request-0"),
    ]


def test_of_the_rests_only_the_largest_becomes_a_request() -> None:
    """Of these rests only the largest becomes a request, the other rests map to it."""
    pod = pod_of(
        container("c1", gpu=1),
        init=(container("i1", gpu=2), container("i2", gpu=5), container("i3", gpu=5)),
    )
    layout = lay_out(pod, (GPU,), CLASSES)
    assert counts(layout) == {"container-1-request-0": 4, "container-3-request-0": 1}
    assert mapped(layout) == [
        ("c1", GPU, "container-3-request-0"),
        ("i1", GPU, "container-3-request-0"),
        ("i1", GPU, "container-1-request-0"),
        ("i2", GPU, "container-3-request-0"),
        ("i2", GPU, "container-1-request-0"),
        ("i3", GPU, "container-3-request-0"),
        ("i3", GPU, "container-1-request-0"),
    ]


def test_requests_are_sorted_by_name() -> None:
    """The order of the requests does not depend on the resources' names."""
    pod = pod_of(container("c1", nic=1), container("c2", gpu=1))
    assert list(counts(lay_out(pod, (GPU, NIC), CLASSES))) == [
        "container-0-request-0",
        "container-1-request-0",
    ]


Wants = st.dictionaries(st.sampled_from(["gpu", "nic", "cpu"]), st.integers(0, 4), max_size=3)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """Pods with init containers, sidecars and containers."""

    def one(name: str, make_sidecar: bool) -> Container:
        return (sidecar if make_sidecar else container)(name, **draw(Wants))

    init = [one(f"i{n}", draw(st.booleans())) for n in range(draw(st.integers(0, 4)))]
    main = [one(f"c{n}", False) for n in range(draw(st.integers(0, 3)))]
    return pod_of(*main, init=tuple(init))


@given(pods())
def test_no_more_devices_than_kubernetes_counts(pod: Pod) -> None:
    """Init containers counted as Kubernetes does: the devices are the effective requests."""
    layout = lay_out(pod, (GPU, NIC), CLASSES)
    asked = effective_requests(pod)
    for resource, device_class in ((GPU, "gpus"), (NIC, "nics")):
        total = sum(
            request.exactly.count or 0
            for request in layout.requests
            if request.exactly is not None and request.exactly.device_class_name == device_class
        )
        assert total == (asked[resource].value() if resource in asked else 0)


@given(pods())
def test_every_container_has_enough_and_shares_with_nobody_beside_it(pod: Pod) -> None:
    """A container's requests cover what it asks for, and nobody beside it uses them."""
    layout = lay_out(pod, (GPU, NIC), CLASSES)
    count = counts(layout)
    containers = [*pod.init_containers, *pod.containers]
    lasting = {c.name for c in containers if c.restart_policy == "Always" or c in pod.containers}
    uses: dict[tuple[str, str], list[str]] = {}
    for name, resource, request in mapped(layout):
        assert request in count
        uses.setdefault((name, resource), []).append(request)
    for place, one in enumerate(containers):
        for resource in (GPU, NIC):
            asked = one.limits[resource].value() if resource in one.limits else 0
            mine = uses.get((one.name, resource), [])
            assert sum(count[request] or 0 for request in mine) >= asked
            assert bool(mine) == bool(asked)
            before = {c.name for c in containers[:place] if c.name in lasting}
            beside = lasting - {one.name} if one.name in lasting else before
            for other in sorted(beside):
                assert not set(mine) & set(uses.get((other, resource), []))


# --- the claim


POD = pod_of(container("c1", gpu=2))
LAYOUT = lay_out(POD, (GPU,), CLASSES)
IN_MEMORY = in_memory_claim(POD, "made-up", LAYOUT)


def created(
    name: str = "web-extended-resources-x1", namespace: str = "team-a", uid: str = "real"
) -> ResourceClaim:
    """The claim as the API server returns it."""
    meta = attrs.evolve(IN_MEMORY.metadata, name=name, namespace=namespace, uid=uid)
    return attrs.evolve(IN_MEMORY, metadata=meta)


def test_the_claim_in_memory() -> None:
    """In memory <extended-resources> with a made-up UID, generateName, annotation, owner."""
    metadata = IN_MEMORY.metadata
    assert (metadata.name, metadata.namespace, metadata.uid) == (
        IN_MEMORY_NAME,
        "team-a",
        "made-up",
    )
    assert metadata.generate_name == "web-extended-resources-"
    assert metadata.annotations == {ANNOTATION: "true"}
    owner = metadata.controller()
    assert owner is not None
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == ("v1", "Pod", "web", "web-uid")
    assert IN_MEMORY.devices.requests == LAYOUT.requests
    assert is_in_memory(IN_MEMORY)
    assert not is_in_memory(created())


def test_bug_98_owner_does_not_block_deletion() -> None:
    """The owner reference needs no rights on pods/finalizers (k/k#134956)."""
    owner = IN_MEMORY.metadata.controller()
    assert owner is not None
    assert not owner.block_owner_deletion
    assert "blockOwnerDeletion" not in json.dumps(create_claim(IN_MEMORY).body)


def test_create_without_name_uid_and_status() -> None:
    """Pre-bind: create (no name, uid, status)."""
    allocated = attrs.evolve(IN_MEMORY, reserved_for=())
    request = create_claim(allocated)
    assert request.url == "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims"
    assert request.method == "POST"
    body = request.body
    assert "name" not in body["metadata"]
    assert "uid" not in body["metadata"]
    assert "status" not in body
    assert body["metadata"]["generateName"] == "web-extended-resources-"
    assert body["metadata"]["annotations"] == {ANNOTATION: "true"}
    assert decode_resource_claim(body).devices == IN_MEMORY.devices
    assert (
        create_claim(allocated, version="v1beta1").body["apiVersion"] == "resource.k8s.io/v1beta1"
    )


def test_the_status_of_the_pod() -> None:
    """pods/status extendedResourceClaimStatus {resourceClaimName, requestMappings}."""
    request = record_in_pod(POD, created(), LAYOUT.mappings)
    assert request.url == "/api/v1/namespaces/team-a/pods/web/status"
    assert request.content_type == "application/strategic-merge-patch+json"
    assert request.body == {
        "metadata": {"uid": "web-uid"},
        "status": {
            "extendedResourceClaimStatus": {
                "resourceClaimName": "web-extended-resources-x1",
                "requestMappings": [
                    {
                        "containerName": "c1",
                        "resourceName": GPU,
                        "requestName": "container-0-request-0",
                    }
                ],
            }
        },
    }
    status = decode_pod({"status": request.body["status"]}).extended_resource_claim_status
    assert status is not None
    assert status.request_mappings == (
        ContainerExtendedResourceRequest("c1", GPU, "container-0-request-0"),
    )


def test_bug_94_placeholder_name_leaks() -> None:
    """Only real names are ever written (k/k#141467, k/k#141556)."""
    with pytest.raises(PatchError):
        record_in_pod(POD, IN_MEMORY, LAYOUT.mappings)
    with pytest.raises(PatchError):
        record_in_pod(POD, created(name=""), LAYOUT.mappings)
    with pytest.raises(PatchError):
        create_claim(created())
    written = json.dumps(create_claim(IN_MEMORY).body)
    assert IN_MEMORY_NAME not in written
    assert "made-up" not in written


# --- left over


def test_a_claim_left_over_is_told_by_annotation_and_owner() -> None:
    """A claim left from an earlier attempt (annotation, owner)."""
    mine = created()
    unmarked = attrs.evolve(mine, metadata=attrs.evolve(mine.metadata, annotations={}))
    false = attrs.evolve(mine, metadata=attrs.evolve(mine.metadata, annotations={ANNOTATION: ""}))
    elsewhere = created(namespace="team-b")
    assert left_over(POD, [unmarked, false, elsewhere, mine]) == (mine,)
    assert is_special_claim_of(mine, POD)


def test_a_claim_of_an_older_pod_is_not_left_over() -> None:
    """The owner is told by UID: an older pod of the same name is another one."""
    younger = attrs.evolve(POD, metadata=ObjectMeta("web", "team-a", "other-uid"))
    assert left_over(younger, [created()]) == ()
    orphan = attrs.evolve(created(), metadata=attrs.evolve(created().metadata, owner_references=()))
    assert left_over(POD, [orphan]) == ()
