"""Who may use a claim: entries, limits, duplicates, whom to enter."""

import copy
import pickle

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.core import Pod, PodResourceClaim
from dra_core.api.objects import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from dra_core.claims.reservation import (
    MAX_CONSUMERS,
    MAX_CONSUMERS_1_32,
    can_be_reserved,
    check_consumers,
    check_reservable,
    consumer_reference,
    is_in_use,
    is_reserved_for,
    pod_group_reference,
    pod_reference,
    preset_node,
    with_consumer,
    without_consumers,
)
from dra_core.errors import ClaimFullError, DuplicateConsumerError, PodGroupMismatchError
from support.claims import make_claim, make_group, make_pod, named, template

Reference = ResourceClaimConsumerReference


def reserved(*uids: str, allocated: bool = True) -> ResourceClaim:
    """A claim with entries of pods."""
    return attrs.evolve(
        make_claim(),
        allocation=AllocationResult() if allocated else None,
        reserved_for=tuple(Reference("", "pods", f"pod-{uid}", uid) for uid in uids),
    )


# Whom to enter


def test_entry_of_a_pod() -> None:
    """{resource: pods, name, uid}, no apiGroup."""
    assert pod_reference(make_pod()) == Reference("", "pods", "web", "web-uid")


def test_entry_of_a_group() -> None:
    """{apiGroup: scheduling.k8s.io, resource: podgroups, name, uid}."""
    expected = Reference("scheduling.k8s.io", "podgroups", "gang", "gang-uid")
    assert pod_group_reference(make_group()) == expected


@pytest.mark.parametrize(
    ("entry", "for_group"),
    [
        (template("gpu", "tpl"), True),
        (named("net", "shared"), True),
        (template("gpu", "other"), False),
        (template("mine", "tpl"), False),
        (named("gpu", "tpl"), False),
        (PodResourceClaim("gpu", "shared", "tpl"), False),
    ],
)
def test_the_group_is_entered_for_its_own_claims(entry: PodResourceClaim, for_group: bool) -> None:
    """The PodGroup, if one of its claims has the same name *and* both references equal."""
    pod, group = make_pod(entry, group="gang"), make_group(template("gpu"), named("net", "shared"))
    expected = pod_group_reference(group) if for_group else pod_reference(pod)
    assert consumer_reference(pod, entry, group) == expected


def test_without_group_the_pod_is_entered() -> None:
    """No group given: the pod, also when it names one."""
    pod = make_pod(template("gpu"), group="gang")
    assert consumer_reference(pod, template("gpu")) == pod_reference(pod)


def test_extended_resources_are_the_pods() -> None:
    """The claim of a pod's extended resources has no entry and is the pod's own."""
    pod = make_pod(group="gang")
    assert consumer_reference(pod, None, make_group(template("gpu"))) == pod_reference(pod)


@pytest.mark.parametrize(
    "pod", [make_pod(), make_pod(group="other"), make_pod(group="gang", namespace="team-b")]
)
def test_the_pod_must_name_the_group(pod: Pod) -> None:
    """The pod must name that group, in its namespace, else error."""
    with pytest.raises(PodGroupMismatchError) as caught:
        consumer_reference(pod, template("gpu"), make_group(template("gpu")))
    assert caught.value.group == "team-a/gang"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# Reserved for


def test_reserved_for_a_pod() -> None:
    """A claim is reserved for a pod if an entry has its UID; the name alone says nothing."""
    assert is_reserved_for(reserved("other", "web-uid"), make_pod())
    same_name = attrs.evolve(make_claim(), reserved_for=(Reference("", "pods", "web", "old"),))
    assert not is_reserved_for(same_name, make_pod())
    assert not is_reserved_for(make_claim(), make_pod())


def test_reserved_for_the_pods_group() -> None:
    """With workload claims, an entry that names its PodGroup counts; else not."""
    claim = attrs.evolve(make_claim(), reserved_for=(pod_group_reference(make_group()),))
    pod = make_pod(group="gang")
    assert is_reserved_for(claim, pod, workload_claims=True)
    assert not is_reserved_for(claim, pod)
    assert not is_reserved_for(claim, make_pod(group="other"), workload_claims=True)
    assert not is_reserved_for(claim, make_pod(), workload_claims=True)


@pytest.mark.parametrize(
    "entry",
    [
        Reference("", "podgroups", "gang", "u"),
        Reference("scheduling.k8s.io", "pods", "gang", "u"),
        Reference("scheduling.k8s.io", "podgroups", "", "u"),
    ],
)
def test_an_entry_for_something_else(entry: Reference) -> None:
    """API group, resource and name must be the group's; no name is no group."""
    claim = attrs.evolve(make_claim(), reserved_for=(entry,))
    for group in ("gang", ""):
        assert not is_reserved_for(claim, make_pod(group=group), workload_claims=True)


def test_in_use() -> None:
    """A claim is in use while it is reserved for anybody."""
    assert is_in_use(reserved("a"))
    assert not is_in_use(reserved())


# Limits


@pytest.mark.parametrize("limit", [MAX_CONSUMERS, MAX_CONSUMERS_1_32, 1])
def test_bug_65_limit_is_a_parameter(limit: int) -> None:
    """A full claim cannot be reserved, with a reason; a pod already listed still can."""
    full = reserved(*(f"u{n}" for n in range(limit)))
    web = pod_reference(make_pod())
    assert not can_be_reserved(full, web, limit)
    with pytest.raises(ClaimFullError) as caught:
        check_reservable(full, web, limit)
    assert (caught.value.claim, caught.value.limit) == ("team-a/gpu", limit)
    listed = full.reserved_for[-1]
    assert can_be_reserved(full, listed, limit)
    check_reservable(full, listed, limit)
    room = attrs.evolve(full, reserved_for=full.reserved_for[1:])
    assert can_be_reserved(room, web, limit)


def test_bug_65_numbers() -> None:
    """256, and 32 for clusters up to 1.32; 256 unless said otherwise."""
    assert (MAX_CONSUMERS, MAX_CONSUMERS_1_32) == (256, 32)
    web = pod_reference(make_pod())
    assert can_be_reserved(reserved(*(f"u{n}" for n in range(255))), web)
    assert not can_be_reserved(reserved(*(f"u{n}" for n in range(256))), web)


def test_bug_67_same_uid_twice() -> None:
    """Two equal UIDs are rejected; adding an existing UID is a no-op."""
    claim = reserved("a", "b")
    check_consumers(claim)
    with pytest.raises(DuplicateConsumerError) as caught:
        check_consumers(reserved("a", "b", "a"))
    assert (caught.value.claim, caught.value.uid) == ("team-a/gpu", "a")
    again = Reference("", "pods", "other-name", "a")
    assert with_consumer(claim, again) is claim
    assert with_consumer(claim, again, limit=1) is claim


def test_changes_leave_the_claim_alone() -> None:
    """Adding and removing entries give new claims; beyond the limit there is none."""
    claim = reserved("a")
    before = copy.deepcopy(claim)
    web = pod_reference(make_pod())
    more = with_consumer(claim, web)
    assert [entry.uid for entry in more.reserved_for] == ["a", "web-uid"]
    assert without_consumers(more, ["web-uid"]) == claim
    assert without_consumers(claim, ["unknown"]) is claim
    with pytest.raises(ClaimFullError):
        with_consumer(claim, web, limit=1)
    assert claim == before


@given(uids=st.lists(st.sampled_from("abcdef"), max_size=12), limit=st.integers(1, 4))
def test_adding_never_makes_an_invalid_list(uids: list[str], limit: int) -> None:
    """Whatever is added in whatever order, no UID is there twice and the limit holds."""
    claim = make_claim()
    for uid in uids:
        entry = Reference("", "pods", uid, uid)
        if can_be_reserved(claim, entry, limit):
            claim = with_consumer(claim, entry, limit)
            assert any(e.uid == uid for e in claim.reserved_for)
        else:
            with pytest.raises(ClaimFullError):
                with_consumer(claim, entry, limit)
    check_consumers(claim)
    assert [e.uid for e in claim.reserved_for] == list(dict.fromkeys(uids))[:limit]


# Pods whose node is set


def test_bug_74_reservations_only() -> None:
    """A pod with a preset node whose claims are allocated needs its reservations only."""
    mine, other = reserved("web-uid"), reserved("other")
    found = preset_node(make_pod(node="node-1"), [mine, other])
    assert found is not None
    assert (found.node, found.to_reserve, found.unallocated) == ("node-1", (other,), ())
    assert found.reservations_only


def test_bug_74_an_unallocated_claim_needs_more() -> None:
    """A claim without allocation is told apart: reserving it is not enough."""
    bare, ready = reserved(allocated=False), reserved()
    found = preset_node(make_pod(node="node-1"), [bare, ready])
    assert found is not None
    assert (found.to_reserve, found.unallocated) == ((ready,), (bare,))
    assert not found.reservations_only


def test_bug_74_nothing_left_to_do() -> None:
    """A pod whose claims are reserved needs nothing."""
    found = preset_node(make_pod(node="node-1"), [reserved("web-uid")])
    assert found is not None
    assert (found.to_reserve, found.reservations_only) == ((), False)
    group = attrs.evolve(reserved(), reserved_for=(pod_group_reference(make_group()),))
    pod = make_pod(node="node-1", group="gang")
    of_group = preset_node(pod, [group], workload_claims=True)
    assert of_group is not None
    assert of_group.to_reserve == ()
    by_default = preset_node(pod, [group])
    assert by_default is not None
    assert by_default.to_reserve == (group,)


def test_pods_without_node_are_the_schedulers() -> None:
    """Every other pod goes through the scheduler."""
    assert preset_node(make_pod(), [reserved()]) is None


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_bug_64_finished_pods_never_qualify(phase: str) -> None:
    """A finished pod's entry is not added again after the controller removed it."""
    assert preset_node(make_pod(node="node-1", phase=phase), [reserved()]) is None


def test_bug_64_nor_do_deleted_ones() -> None:
    """A pod on its way out gets no new reservation."""
    assert preset_node(make_pod(node="node-1", deleted=True), [reserved()]) is None
