"""Which extended resources a pod asks for, which class offers them, and where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.core import Container
from dra_core.scheduling.extended_resources import (
    IMPLICIT_PREFIX,
    ResourceSplit,
    asked_for,
    classes_by_resource,
    container_requests,
    effective_requests,
    is_extended_resource,
    offered_by,
    split_resources,
)
from dra_core.values.quantity import Quantity
from support.pods import GPU, NIC, amounts, container, node, offering, pod_of, sidecar


def test_limits_stand_in_for_requests() -> None:
    """Effective requests: limits stand in, resource by resource."""
    asking = Container(
        "c", requests=amounts({"cpu": 1, GPU: 2}), limits=amounts({"cpu": 4, NIC: 1})
    )
    assert container_requests(asking) == amounts({"cpu": 1, GPU: 2, NIC: 1})


def test_containers_and_sidecars_add_up() -> None:
    """What runs at the same time is summed; of phases the larger counts."""
    pod = pod_of(
        container("c1", gpu=1, cpu="500m"),
        container("c2", gpu=2, cpu="1"),
        init=(container("i1", gpu=4), sidecar("s1", gpu=2, nic=1), container("i2", gpu=2)),
    )
    assert effective_requests(pod) == amounts({"cpu": "1500m", GPU: 5, NIC: 1})
    assert list(effective_requests(pod)) == ["cpu", GPU, NIC]


def test_an_init_container_runs_beside_earlier_sidecars_only() -> None:
    """Before that each ordinary init container runs alone with the sidecars before it."""
    late = pod_of(init=(container("i1", gpu=3), sidecar("s1", gpu=2)))
    early = pod_of(init=(sidecar("s1", gpu=2), container("i1", gpu=3)))
    assert effective_requests(late) == amounts({GPU: 3})
    assert effective_requests(early) == amounts({GPU: 5})


def test_a_pod_asks_for_what_it_wants_more_than_nothing_of() -> None:
    """Which: a resource of the pod's effective requests, count > 0."""
    pod = pod_of(container("c1", cpu=1, gpu=0), container("c2", nic=1))
    assert asked_for(pod) == (NIC,)
    assert asked_for(pod_of(container("c1", memory="1Gi"))) == ()
    assert asked_for(pod_of(init=(container("i1", gpu=1),))) == (GPU,)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (GPU, True),
        (IMPLICIT_PREFIX + "gpu", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("node.kubernetes.io/x", False),
        ("requests.vendor.example/gpu", False),
        ("", False),
    ],
)
def test_resources_of_kubernetes_are_no_extended_ones(name: str, expected: bool) -> None:
    """No class can take over CPU or memory."""
    assert is_extended_resource(name) is expected


def test_a_class_offers_two_names() -> None:
    """A class offers extendedResourceName, and deviceclass.resource.kubernetes.io/<class>."""
    assert offered_by(offering("gpu", GPU)) == (GPU, IMPLICIT_PREFIX + "gpu")
    assert offered_by(offering("gpu")) == (IMPLICIT_PREFIX + "gpu",)
    assert offered_by(offering("gpu", "cpu")) == (IMPLICIT_PREFIX + "gpu",)


@pytest.mark.parametrize("turned", [False, True])
def test_bug_96_two_classes_with_one_extended_resource_name(turned: bool) -> None:
    """Two classes, one name: newest creationTimestamp, then lower name (k/k#135037)."""
    old = offering("a", GPU, "2026-01-01T00:00:00Z")
    new = offering("z", GPU, "2026-01-02T00:00:00Z")
    also_new = offering("m", GPU, "2026-01-02T00:00:00Z")
    given = [old, new, also_new]
    found = classes_by_resource(reversed(given) if turned else given)
    assert found[GPU] is also_new
    assert [found[IMPLICIT_PREFIX + name].name for name in ("a", "m", "z")] == ["a", "m", "z"]


def test_a_node_serves_a_resource_by_plugin_or_claim() -> None:
    """Amount zero or absent → claim; an amount → the plugin's; neither → does not fit."""
    classes = classes_by_resource([offering("gpu", GPU)])
    both = (NIC, GPU)
    assert split_resources(both, classes, node()) == ResourceSplit((GPU,), (), (NIC,))
    assert split_resources(both, classes, node(gpu=0, nic=0)) == ResourceSplit((GPU,), (), (NIC,))
    assert split_resources(both, classes, node(gpu=4, nic=1)) == ResourceSplit((), (GPU, NIC), ())
    assert split_resources(both, classes, node(nic=1)) == ResourceSplit((GPU,), (NIC,), ())


Amounts = st.dictionaries(st.sampled_from(["gpu", "nic", "cpu"]), st.integers(0, 4), max_size=3)


@given(st.lists(st.tuples(Amounts, st.booleans()), max_size=4), st.lists(Amounts, max_size=3))
def test_no_moment_needs_more_than_the_effective_requests(
    init: list[tuple[dict[str, int], bool]], main: list[dict[str, int]]
) -> None:
    """The effective requests are the largest need of any moment, for each resource."""
    pod = pod_of(
        *(container(f"c{place}", **wants) for place, wants in enumerate(main)),
        init=tuple(
            (sidecar if stays else container)(f"i{place}", **wants)
            for place, (wants, stays) in enumerate(init)
        ),
    )
    moments: list[list[dict[str, int]]] = []
    running: list[dict[str, int]] = []
    for wants, stays in init:
        moments.append([*running, wants])
        if stays:
            running.append(wants)
    moments.append([*running, *main])
    for short, name in {"gpu": GPU, "nic": NIC, "cpu": "cpu"}.items():
        most = max(sum(wants.get(short, 0) for wants in moment) for moment in moments)
        assert effective_requests(pod).get(name, Quantity(0)) == Quantity.from_int(most)
