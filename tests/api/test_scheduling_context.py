"""PodSchedulingContext in the versions that had it: reading, writing, limits."""

import copy
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api import wire
from dra_core.api.scheduling_context import (
    MAX_NODES,
    PodSchedulingContext,
    ResourceClaimSchedulingStatus,
)
from dra_core.api.validation import validate
from dra_core.errors import MalformedObjectError, NotExpressibleError
from support import wire_objects as strategies

Json = dict[str, Any]

VERSIONS = {
    "v1alpha3": "PodSchedulingContext",
    "v1alpha2": "PodSchedulingContext",
    "v1alpha1": "PodScheduling",
}
"""By version, what it is called."""


def published(version: str = "v1alpha2") -> Json:
    """As a cluster of that time showed it, with a field that nobody here knows."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod1", "uid": "u1", "controller": True}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": VERSIONS[version],
        "metadata": {
            "name": "pod1",
            "namespace": "team-a",
            "resourceVersion": "7",
            "ownerReferences": [owner],
            "managedFields": [{"manager": "kube-scheduler"}],
        },
        "spec": {"selectedNode": "n3", "potentialNodes": ["n1", "n2"], "futureSpec": 1},
        "status": {
            "resourceClaims": [
                {"name": "gpu", "unsuitableNodes": ["n3"], "futureHint": "x"},
                {"name": "net"},
            ],
            "futureStatus": None,
        },
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_reading(version: str) -> None:
    """Spec and status are read; the node selected need not be a potential one."""
    raw = published(version)
    before = copy.deepcopy(raw)
    context = wire.decode(raw)
    assert context == wire.decode_pod_scheduling_context(raw)
    assert isinstance(context, PodSchedulingContext)
    assert (context.namespace, context.name) == ("team-a", "pod1")
    assert context.selected_node == "n3"
    assert context.potential_nodes == ("n1", "n2")
    assert context.status_of("gpu") == ResourceClaimSchedulingStatus("gpu", ("n3",))
    assert context.status_of("net") == ResourceClaimSchedulingStatus("net")
    assert context.status_of("disk") is None
    assert context.raw is raw == before


@pytest.mark.parametrize("version", VERSIONS)
def test_writing_whole_keeps_unknown_fields(version: str) -> None:
    """What changed is written, everything else stays as it came."""
    raw = published(version)
    context = wire.decode_pod_scheduling_context(raw)
    assert wire.encode_whole(context) == raw
    changed = attrs.evolve(context, selected_node="", potential_nodes=("n1", "n4"))
    expected = copy.deepcopy(raw)
    del expected["spec"]["selectedNode"]
    expected["spec"]["potentialNodes"] = ["n1", "n4"]
    assert wire.encode_whole(changed) == expected
    assert raw == published(version)


@given(strategies.pod_scheduling_contexts, st.sampled_from(list(VERSIONS)))
def test_survives(context: PodSchedulingContext, version: str) -> None:
    """decode after encode is the identity, under the name of the version."""
    written = wire.encode(context, version)
    assert written["kind"] == VERSIONS[version]
    assert wire.decode(written) == context


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
def test_versions_without_it(version: str) -> None:
    """Later versions have no place for it; a version that is none is another mistake."""
    context = wire.decode_pod_scheduling_context(published())
    with pytest.raises(NotExpressibleError) as caught:
        wire.encode(context, version)
    assert (caught.value.kind, caught.value.name) == ("PodSchedulingContext", "team-a/pod1")
    with pytest.raises(ValueError, match="unknown version 'v2'"):
        wire.encode(context, "v2")
    with pytest.raises(MalformedObjectError, match="is not a kind and version known here"):
        wire.decode({**published(), "apiVersion": f"resource.k8s.io/{version}"})


@pytest.mark.parametrize(
    ("member", "value", "path"),
    [
        ("spec", {"selectedNode": 1}, "spec.selectedNode"),
        ("spec", {"potentialNodes": ["n1", None]}, "spec.potentialNodes[1]"),
        ("status", {"resourceClaims": [{}, {"name": 1}]}, "status.resourceClaims[1].name"),
        (
            "status",
            {"resourceClaims": [{"unsuitableNodes": "n1"}]},
            "status.resourceClaims[0].unsuitableNodes",
        ),
    ],
)
def test_wrong_shapes_are_refused_with_their_path(member: str, value: Json, path: str) -> None:
    """A malformed object is refused with kind, name and the path of the field."""
    with pytest.raises(MalformedObjectError) as caught:
        wire.decode(published("v1alpha1") | {member: value})
    error = caught.value
    assert (error.kind, error.name, error.path) == ("PodScheduling", "team-a/pod1", path)


def test_limits() -> None:
    """Lists of nodes have at most 128 entries, none twice."""
    many = tuple(f"n{number}" for number in range(MAX_NODES))
    good = attrs.evolve(wire.decode_pod_scheduling_context(published()), potential_nodes=many)
    assert validate(good) == ()
    bad = attrs.evolve(
        good,
        potential_nodes=(*many, "n0"),
        resource_claims=(
            ResourceClaimSchedulingStatus("gpu", ("n1", "n1")),
            ResourceClaimSchedulingStatus("gpu"),
        ),
    )
    assert [violation.path for violation in validate(bad)] == [
        "spec.potentialNodes",
        "spec.potentialNodes[128]",
        "status.resourceClaims[1]",
        "status.resourceClaims[0].unsuitableNodes[1]",
    ]
