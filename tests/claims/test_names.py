"""Which claim a pod means, and whether the pod owns it."""

import copy
import pickle

import pytest

from dra_core.api.core import Pod, PodResourceClaim
from dra_core.api.names import ObjectKey
from dra_core.api.objects import ResourceClaim
from dra_core.claims.names import (
    ClaimName,
    NoClaimNeeded,
    ResolvedClaim,
    SkippedClaim,
    UnresolvedClaim,
    check_group_owner,
    check_owner,
    claim_name,
    group_claim_name,
    is_owned,
    resolve_claims,
)
from dra_core.errors import (
    ClaimBeingDeletedError,
    ClaimError,
    ClaimNotCreatedError,
    ClaimNotFoundError,
    ClaimNotOwnedError,
    ClaimUnsupportedError,
    DraError,
)
from support.claims import make_claim, make_group, make_pod, named, owner, template

GPU = template("gpu")


# Names


def test_bug_75_a_claim_by_name() -> None:
    """A user's claim is named by the entry and needs no owner check."""
    pod = make_pod(named("gpu", "x"), statuses={"gpu": "y"})
    assert claim_name(pod, pod.resource_claims[0]) == ClaimName("x", must_check_owner=False)


def test_bug_75_b_generated_name() -> None:
    """A generated claim is named by the status and must be checked."""
    pod = make_pod(GPU, statuses={"other": "z", "gpu": "y"})
    assert claim_name(pod, GPU) == ClaimName("y", must_check_owner=True)


def test_bug_75_c_no_claim_needed() -> None:
    """A status entry without a name says that no claim is needed; that is no error."""
    assert claim_name(make_pod(GPU, statuses={"gpu": None}), GPU) == NoClaimNeeded()


@pytest.mark.parametrize("statuses", [{}, {"other": "y"}, {"gpu": ""}])
def test_bug_75_d_not_created_yet(statuses: dict[str, str | None]) -> None:
    """A template without status entry is not created yet; an empty name counts as none."""
    with pytest.raises(ClaimNotCreatedError) as caught:
        claim_name(make_pod(GPU, statuses=statuses), GPU)
    assert (caught.value.owner, caught.value.pod_claim) == ("team-a/web", "gpu")


def test_bug_75_e_unsupported() -> None:
    """Neither field known is set: told apart from "not created", even with a status entry."""
    entry = PodResourceClaim("gpu")
    with pytest.raises(ClaimUnsupportedError) as caught:
        claim_name(make_pod(entry, statuses={"gpu": "y"}), entry)
    assert not isinstance(caught.value, ClaimNotCreatedError)


def test_errors_name_pod_and_pod_claim() -> None:
    """The text names the pod and the pod claim; the errors survive pickling."""
    for error in (
        ClaimNotCreatedError("Pod", "team-a/web", "gpu"),
        ClaimUnsupportedError("Pod", "team-a/web", "gpu"),
        ClaimNotFoundError("Pod", "team-a/web", "gpu", "y"),
        ClaimBeingDeletedError("Pod", "team-a/web", "gpu", "y"),
    ):
        assert "team-a/web" in str(error)
        assert "'gpu'" in str(error)
        assert isinstance(error, DraError)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.pod_claim) == (type(error), str(error), "gpu")


def test_bug_76_the_deterministic_name_is_a_policy_of_the_caller() -> None:
    """``<pod>-<pod claim>`` resolves without a status entry only when asked for."""
    pod = make_pod(GPU)
    assert claim_name(pod, GPU, deterministic=True) == ClaimName("web-gpu", must_check_owner=True)
    with pytest.raises(ClaimNotCreatedError):
        claim_name(pod, GPU)


@pytest.mark.parametrize(
    ("status", "answer"),
    [("y", ClaimName("y", must_check_owner=True)), (None, NoClaimNeeded())],
)
def test_bug_76_a_status_entry_wins_over_the_policy(
    status: str | None, answer: ClaimName | NoClaimNeeded
) -> None:
    """Also under the policy, what the status says holds."""
    assert claim_name(make_pod(GPU, statuses={"gpu": status}), GPU, deterministic=True) == answer


def test_bug_76_the_policy_does_not_make_unknown_entries_known() -> None:
    """An entry without any known field stays unsupported under the policy."""
    entry = PodResourceClaim("gpu")
    with pytest.raises(ClaimUnsupportedError):
        claim_name(make_pod(entry), entry, deterministic=True)


def test_names_of_a_group() -> None:
    """There is the same name resolution for a PodGroup's own claims."""
    unknown = PodResourceClaim("odd")
    group = make_group(
        named("a", "x"), template("b"), template("c"), unknown, statuses={"b": "y", "c": None}
    )
    assert group_claim_name(group, named("a", "x")) == ClaimName("x", must_check_owner=False)
    assert group_claim_name(group, template("b")) == ClaimName("y", must_check_owner=True)
    assert group_claim_name(group, template("c")) == NoClaimNeeded()
    with pytest.raises(ClaimNotCreatedError, match="PodGroup 'team-a/gang'"):
        group_claim_name(group, template("d"))
    with pytest.raises(ClaimUnsupportedError):
        group_claim_name(group, unknown)


# Owners


def test_owner_is_the_controller_with_the_pods_uid() -> None:
    """The claim's controller owner reference has the pod's UID."""
    claim = make_claim("y", owner("someone", controller=False), owner())
    check_owner(claim, make_pod())
    assert is_owned(claim, make_pod())


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        (make_claim("y", owner("old-uid")), "controller"),  # an earlier pod of the same name
        (make_claim("y", owner(controller=False)), "controller"),
        (make_claim("y"), "controller"),
        (make_claim("y", owner(), namespace="team-b"), "namespace"),
        (make_claim("y", owner("old-uid"), namespace="team-b"), "namespace"),  # first in order
    ],
)
def test_not_the_owner(claim: ResourceClaim, problem: str) -> None:
    """Another namespace, another incarnation or a mere owner is refused, in this order."""
    with pytest.raises(ClaimNotOwnedError) as caught:
        check_owner(claim, make_pod())
    assert (caught.value.problem, caught.value.uid) == (problem, "web-uid")
    assert str(claim.metadata.key) in str(caught.value)
    assert not is_owned(claim, make_pod())


@pytest.mark.parametrize("block", [False, True])
def test_bug_98_block_owner_deletion_does_not_matter(block: bool) -> None:
    """Ownership does not require blockOwnerDeletion."""
    check_owner(make_claim("y", owner(block=block)), make_pod())


GANG = owner("gang-uid", kind="PodGroup", api_version="scheduling.k8s.io/v1alpha2", name="gang")


def test_a_groups_claim_if_the_caller_says_so() -> None:
    """With workload claims the controller may be the pod's PodGroup, else not."""
    claim = make_claim("y", GANG)
    check_owner(claim, make_pod(group="gang"), workload_claims=True)
    with pytest.raises(ClaimNotOwnedError):
        check_owner(claim, make_pod(group="gang"))
    assert not is_owned(claim, make_pod(group="gang"))


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1", "v1"])
def test_a_group_is_recognised_in_any_version(version: str) -> None:
    """UID and version are not known to pods, so they are not compared."""
    reference = owner(
        "any", kind="PodGroup", api_version=f"scheduling.k8s.io/{version}", name="gang"
    )
    assert is_owned(make_claim("y", reference), make_pod(group="gang"), workload_claims=True)


@pytest.mark.parametrize(
    ("claim", "pod"),
    [
        (make_claim("y", GANG), make_pod(group="other")),
        (make_claim("y", GANG), make_pod()),
        (make_claim("y", GANG, namespace="team-b"), make_pod(group="gang")),
        (
            make_claim("y", owner(kind="PodGroup", uid="u", api_version="v1", name="gang")),
            make_pod(group="gang"),
        ),
        (
            make_claim(
                "y",
                owner(
                    "u", kind="PodGroup", api_version="scheduling.k8s.io.example/v1", name="gang"
                ),
            ),
            make_pod(group="gang"),
        ),
        (
            make_claim(
                "y", owner("u", kind="Workload", api_version="scheduling.k8s.io/v1", name="gang")
            ),
            make_pod(group="gang"),
        ),
        (
            make_claim(
                "y",
                owner(
                    "u",
                    kind="PodGroup",
                    api_version="scheduling.k8s.io/v1",
                    name="gang",
                    controller=False,
                ),
            ),
            make_pod(group="gang"),
        ),
        (
            make_claim(
                "y", owner("u", kind="PodGroup", api_version="scheduling.k8s.io/v1", name="")
            ),
            make_pod(group=""),
        ),
    ],
)
def test_another_groups_claim(claim: ResourceClaim, pod: Pod) -> None:
    """Group, kind and name must be those of the pod's group, as controller, in its namespace."""
    assert not is_owned(claim, pod, workload_claims=True)


def test_group_owner() -> None:
    """A PodGroup's generated claim has the group's UID as controller and its namespace."""
    check_group_owner(make_claim("y", GANG), make_group())
    for claim, problem in (
        (make_claim("y", owner()), "controller"),
        (make_claim("y"), "controller"),
        (make_claim("y", GANG, namespace="team-b"), "namespace"),
    ):
        with pytest.raises(ClaimNotOwnedError) as caught:
            check_group_owner(claim, make_group())
        assert (caught.value.problem, caught.value.kind) == (problem, "PodGroup")


# All claims of a pod


class Lookup:
    """Claims by key; remembers what was asked."""

    def __init__(self, *claims: ResourceClaim) -> None:
        self.claims = {claim.metadata.key: claim for claim in claims}
        self.asked: list[ObjectKey] = []

    def __call__(self, key: ObjectKey) -> ResourceClaim | None:
        self.asked.append(key)
        return self.claims.get(key)


def test_one_answer_per_claim() -> None:
    """All of a pod's claims at once, in its order, with one reason per claim."""
    pod = make_pod(
        named("a", "shared"),
        template("b"),
        template("c"),
        template("d"),
        named("e", "gone"),
        named("f", "dying"),
        template("g"),
        PodResourceClaim("h"),
        template("i"),
        statuses={"b": "web-b-x", "c": None, "g": "web-g-x", "i": "dying"},
    )
    shared, mine = make_claim("shared"), make_claim("web-b-x", owner())
    lookup = Lookup(
        shared, mine, make_claim("dying", deleted=True), make_claim("web-g-x", owner("old-uid"))
    )
    before = copy.deepcopy(pod)
    found = resolve_claims(pod, lookup)
    assert found.answers[:3] == (
        ResolvedClaim("a", shared),
        ResolvedClaim("b", mine),
        SkippedClaim("c"),
    )
    assert found.claims == (shared, mine)
    assert [(p.pod_claim, type(p.reason)) for p in found.problems] == [
        ("d", ClaimNotCreatedError),
        ("e", ClaimNotFoundError),
        ("f", ClaimBeingDeletedError),
        ("g", ClaimNotOwnedError),
        ("h", ClaimUnsupportedError),
        ("i", ClaimBeingDeletedError),  # being deleted comes before the owner
    ]
    assert found.answers[3:] == found.problems
    assert pod == before
    assert [key.name for key in lookup.asked] == [
        "shared", "web-b-x", "gone", "dying", "web-g-x", "dying",
    ]  # fmt: skip


def test_reasons_hold_no_frames() -> None:
    """A kept reason keeps no traceback, and so none of the caller's objects."""
    (problem,) = resolve_claims(make_pod(GPU), Lookup()).problems
    assert problem.reason.__traceback__ is None


def test_policies_reach_every_claim() -> None:
    """Deterministic names and workload claims are parameters of the whole resolution."""
    pod = make_pod(GPU, template("nic"), statuses={"nic": "gang-nic"}, group="gang")
    gpu, nic = make_claim("web-gpu", owner()), make_claim("gang-nic", GANG)
    lookup = Lookup(gpu, nic)
    assert resolve_claims(pod, lookup).claims == ()
    assert resolve_claims(pod, lookup, deterministic=True).claims == (gpu,)
    assert resolve_claims(pod, lookup, workload_claims=True).claims == (nic,)
    both = resolve_claims(pod, lookup, deterministic=True, workload_claims=True)
    assert both.claims == (gpu, nic)
    assert both.problems == ()


def test_bug_76_somebody_elses_claim_of_the_deterministic_name() -> None:
    """A claim of the deterministic name that the pod does not own is refused."""
    (problem,) = resolve_claims(
        make_pod(GPU), Lookup(make_claim("web-gpu")), deterministic=True
    ).problems
    assert isinstance(problem.reason, ClaimNotOwnedError)


def test_bug_50_the_generated_name_is_looked_up() -> None:
    """A template's claim is looked up by the name in the status, not by the entry's."""
    lookup = Lookup()
    resolve_claims(make_pod(GPU, statuses={"gpu": "p-gpu-x7k2p"}), lookup)
    assert lookup.asked == [ObjectKey("team-a", "p-gpu-x7k2p")]


def test_bug_77_the_key_has_the_namespace() -> None:
    """Equal names in two namespaces are two claims."""
    ours, theirs = make_claim("gpu", namespace="ns-a"), make_claim("gpu", namespace="ns-b", uid="2")
    lookup = Lookup(ours, theirs)
    for namespace, claim in (("ns-a", ours), ("ns-b", theirs)):
        pod = make_pod(named("gpu", "gpu"), namespace=namespace)
        assert resolve_claims(pod, lookup).claims == (claim,)


def test_bug_77_claims_at_pod_level_count() -> None:
    """A claim that no container refers to is a claim of the pod all the same."""
    pod = make_pod(named("gpu", "gpu"))
    assert pod.containers == ()
    assert len(resolve_claims(pod, Lookup(make_claim("gpu"))).claims) == 1


def test_a_pod_without_claims() -> None:
    """Nothing to resolve: no claims, no problems, nothing asked."""
    lookup = Lookup()
    found = resolve_claims(make_pod(), lookup)
    assert (found.answers, found.claims, found.problems, lookup.asked) == ((), (), (), [])


def test_reasons_are_claim_errors() -> None:
    """Every reason but ownership has one root, for callers that only want the text."""
    (problem,) = resolve_claims(make_pod(GPU), Lookup()).problems
    assert isinstance(problem, UnresolvedClaim)
    assert isinstance(problem.reason, ClaimError)
