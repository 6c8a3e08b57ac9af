"""Binding one claim: which request comes next, and what each answer leads to."""

import copy
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.objects import FINALIZER, AllocationResult
from dra_core.api.wire import decode_allocation_result, decode_resource_claim
from dra_core.claims import patches
from dra_core.claims.binding import (
    MAX_ROUNDS,
    BindingPlan,
    Bound,
    ClaimBinding,
    Impossible,
    ImpossibleReason,
    Outcome,
    Phase,
    RetryLater,
    RetryReason,
    same_allocation,
    start_binding,
)
from dra_core.claims.reservation import pod_group_reference
from dra_core.errors import MalformedObjectError, PatchError
from support.api_server import Server
from support.claim_json import allocation_json, claim_json, claims_json, entry, read
from support.claims import make_claim, make_group, make_pod

Json = dict[str, Any]

OURS = decode_allocation_result(allocation_json("gpu-0"))
THEIRS = decode_allocation_result(allocation_json("gpu-1"))
NEW = BindingPlan(entry("p"), OURS, is_new=True)
USE = BindingPlan(entry("p"), OURS, is_new=False)
ANY_NODE = attrs.evolve(NEW, suits=lambda allocation: True)

BARE = claim_json()
READY = claim_json(finalizers=(FINALIZER,))
ALLOCATED = claim_json(finalizers=(FINALIZER,), allocation=allocation_json())
ELSEWHERE = claim_json(finalizers=(FINALIZER,), allocation=allocation_json("gpu-1"))
MINE = claim_json(finalizers=(FINALIZER,), allocation=allocation_json(), reserved_for=("p",))


def start(obj: Json, plan: BindingPlan = NEW) -> ClaimBinding:
    return start_binding(read(obj), plan)


def run(server: Server, binding: ClaimBinding) -> tuple[Server, ClaimBinding, list[Phase]]:
    """Send until there is an outcome; the phases passed through."""
    phases = []
    while binding.request is not None:
        phases.append(binding.phase)
        server, status, body = server.send(binding.request)
        binding = binding.answered(status, body)
        assert len(phases) < 20
    return server, binding, phases


def bind(obj: Json, plan: BindingPlan = NEW) -> tuple[Server, Outcome | None, list[Phase]]:
    """Bind a claim that nobody else touches."""
    server = Server().with_object(obj)
    server, binding, phases = run(server, start(obj, plan))
    return server, binding.outcome, phases


# The way


def test_finalizer_then_status() -> None:
    """A claim without finalizer gets it first, then allocation and reservation in one step."""
    server, outcome, phases = bind(BARE)
    assert phases == [Phase.FINALIZER, Phase.ALLOCATION]
    now = server.get("gpu")
    assert now["metadata"]["finalizers"] == [FINALIZER]
    assert now["status"]["allocation"] == allocation_json()
    assert [e["uid"] for e in now["status"]["reservedFor"]] == ["p"]
    assert outcome == Bound(read(now))


def test_only_the_status_if_the_finalizer_is_there() -> None:
    """The finalizer is added only if the newest known copy lacks it."""
    _, outcome, phases = bind(READY)
    assert phases == [Phase.ALLOCATION]
    assert isinstance(outcome, Bound)


def test_only_the_reservation_if_allocated() -> None:
    """A claim that is allocated as the pod was filtered gets the reservation only."""
    server, outcome, phases = bind(ALLOCATED, USE)
    assert phases == [Phase.RESERVATION]
    assert outcome == Bound(read(server.get("gpu")))


@pytest.mark.parametrize("plan", [NEW, USE])
def test_bug_67_nothing_to_send(plan: BindingPlan) -> None:
    """Already reserved for the pod: no request at all."""
    binding = start(MINE, plan)
    assert binding.request is None
    assert binding.outcome == Bound(read(MINE))
    assert not binding.from_server


def test_bug_63_reused_claim_without_its_finalizer() -> None:
    """An allocated claim that lost its finalizer gets it back, then the reservation."""
    lost = claim_json(allocation=allocation_json())
    server, outcome, phases = bind(lost, USE)
    assert phases == [Phase.FINALIZER, Phase.RESERVATION]
    assert server.get("gpu")["metadata"]["finalizers"] == [FINALIZER]
    assert isinstance(outcome, Bound)
    mine = claim_json(allocation=allocation_json(), reserved_for=("p",))
    _, outcome, phases = bind(mine, USE)
    assert phases == [Phase.FINALIZER]
    assert isinstance(outcome, Bound)


def test_a_controllers_allocation_gets_no_finalizer() -> None:
    """What a control plane controller (v1alpha3) allocated is its own to protect."""
    allocation = allocation_json(controller="c.example.com")
    obj = claim_json("v1alpha3", allocation=allocation)
    plan = attrs.evolve(
        USE, allocation=decode_allocation_result(allocation, "v1alpha3"), version="v1alpha3"
    )
    _, outcome, phases = bind(obj, plan)
    assert phases == [Phase.RESERVATION]
    assert isinstance(outcome, Bound)


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1", "v1alpha3"])
def test_every_version(version: str) -> None:
    """Requests go to the served version and carry its form."""
    server, outcome, _ = bind(claim_json(version), attrs.evolve(NEW, version=version))
    assert isinstance(outcome, Bound)
    assert server.get("gpu")["status"]["allocation"] == allocation_json()
    binding = start(claim_json(version), attrs.evolve(NEW, version=version))
    assert binding.request is not None
    assert f"/{version}/" in binding.request.path


def test_time_of_allocation() -> None:
    """The caller's time is noted, also by a reservation that finds none."""
    timed = attrs.evolve(NEW, timestamp="2026-02-01T00:00:00Z")
    for obj, plan in ((BARE, timed), (ALLOCATED, attrs.evolve(timed, is_new=False))):
        server, outcome, _ = bind(obj, plan)
        allocation = server.get("gpu")["status"]["allocation"]
        assert allocation["allocationTimestamp"] == "2026-02-01T00:00:00Z"
        assert isinstance(outcome, Bound)
    noted = claim_json(
        finalizers=(FINALIZER,),
        allocation=allocation_json(allocationTimestamp="2026-01-01T00:00:00Z"),
    )
    server, outcome, _ = bind(noted, attrs.evolve(timed, is_new=False))
    allocation = server.get("gpu")["status"]["allocation"]
    assert allocation["allocationTimestamp"] == "2026-01-01T00:00:00Z"
    assert isinstance(outcome, Bound)


def test_forms_of_other_versions() -> None:
    """Finalizer, further members of the status, the JSON and decoding are parameters."""
    old = "dra.k8s.io/delete-protection"

    def decode(body: Json) -> Any:
        return decode_resource_claim({**body, "spec": {}})

    plan = attrs.evolve(
        NEW,
        finalizer=old,
        extra_status={"driverName": "d"},
        encoded={**allocation_json(), "shareable": True},
        decode=decode,
    )
    server, outcome, phases = bind(claim_json(finalizers=(FINALIZER,)), plan)
    assert phases == [Phase.FINALIZER, Phase.ALLOCATION]
    assert server.get("gpu")["metadata"]["finalizers"] == [FINALIZER, old]
    assert server.get("gpu")["status"]["driverName"] == "d"
    assert server.get("gpu")["status"]["allocation"]["shareable"] is True
    assert isinstance(outcome, Bound)


# What the newest copy says


@pytest.mark.parametrize(
    ("obj", "plan", "reason"),
    [
        (claim_json(deleted=True, finalizers=(FINALIZER,)), NEW, ImpossibleReason.BEING_DELETED),
        (ELSEWHERE, NEW, ImpossibleReason.ALLOCATED_ELSEWHERE),
        (ELSEWHERE, USE, ImpossibleReason.ALLOCATED_ELSEWHERE),
        (
            claim_json(allocation=allocation_json(), reserved_for=("a", "b")),
            attrs.evolve(USE, limit=2),
            ImpossibleReason.FULL,
        ),
        (
            claim_json(allocation=allocation_json(), reserved_for=("a",)),
            attrs.evolve(USE, limit=1),
            ImpossibleReason.FULL,
        ),
    ],
)
def test_impossible(obj: Json, plan: BindingPlan, reason: ImpossibleReason) -> None:
    """Being deleted, allocated elsewhere, full → impossible, with which, without a request."""
    binding = start(obj, plan)
    assert binding.request is None
    assert binding.outcome == Impossible(reason)


def test_bug_58_deallocated_meanwhile() -> None:
    """A claim that lost the allocation the pod was filtered with: later, not never."""
    assert start(READY, USE).outcome == RetryLater(RetryReason.DEALLOCATED)


def test_bug_58_deallocated_while_reserving() -> None:
    """Between reading and patching the allocation goes: refused, read, retry later."""
    binding = start(ALLOCATED, USE)
    server, binding, phases = run(Server().with_object(READY), binding)
    assert phases == [Phase.RESERVATION, Phase.READ]
    assert binding.outcome == RetryLater(RetryReason.DEALLOCATED)
    assert server.get("gpu") == READY


def test_about_to_be_deallocated() -> None:
    """While deallocation is requested no consumer may be added."""
    obj = claim_json("v1alpha3", allocation=allocation_json(), deallocationRequested=True)
    plan = attrs.evolve(USE, version="v1alpha3")
    assert start(obj, plan).outcome == RetryLater(RetryReason.DEALLOCATION_REQUESTED)


def test_another_allocation_that_suits_the_node() -> None:
    """Another pod was faster: only the entry, and only if its allocation suits the node."""
    server, outcome, phases = bind(ELSEWHERE, ANY_NODE)
    assert phases == [Phase.RESERVATION]
    assert outcome == Bound(read(server.get("gpu")))
    asked: list[AllocationResult] = []

    def suits(allocation: AllocationResult) -> bool:
        asked.append(allocation)
        return False

    assert start(ELSEWHERE, attrs.evolve(NEW, suits=suits)).outcome == Impossible(
        ImpossibleReason.ALLOCATED_ELSEWHERE
    )
    assert asked == [THEIRS]


def test_copies_without_guard_are_refused() -> None:
    """A copy without UID or resourceVersion cannot be changed safely."""
    with pytest.raises(PatchError):
        start_binding(make_claim(version=""), NEW)


# What answers mean


def refuse(binding: ClaimBinding, *statuses: int | None) -> ClaimBinding:
    for status in statuses:
        binding = binding.answered(status, None)
    return binding


@pytest.mark.parametrize("obj", [BARE, READY])
@pytest.mark.parametrize("status", [409, 410, 422, 429, 500, 503, 408, None])
def test_get_then_decide(obj: Json, status: int | None) -> None:
    """After 409 or 422, and after no answer, 429 or 5xx: get first, then decide."""
    binding = refuse(start(obj), status)
    assert binding.phase is Phase.READ
    assert binding.request == patches.get_claim(read(obj))
    again = binding.answered(200, copy.deepcopy(READY))
    assert again.phase is Phase.ALLOCATION


@pytest.mark.parametrize("obj", [BARE, READY, ALLOCATED])
def test_gone(obj: Json) -> None:
    """Missing object: 404, to a write and to the read after it."""
    gone = Impossible(ImpossibleReason.GONE)
    plan = USE if obj is ALLOCATED else NEW
    assert start(obj, plan).answered(404, None).outcome == gone
    assert refuse(start(obj, plan), 422, 404).outcome == gone


@pytest.mark.parametrize("status", [400, 401, 403])
def test_refused(status: int) -> None:
    """A refusal that repeating cannot change ends it, with the status."""
    outcome = Impossible(ImpossibleReason.REFUSED, status)
    assert start(BARE).answered(status, None).outcome == outcome
    assert refuse(start(BARE), 409, status).outcome == outcome


@pytest.mark.parametrize("base", [BARE, READY, ALLOCATED])
def test_other_incarnation(base: Json) -> None:
    """Another UID is another claim, whatever it looks like."""
    plan = USE if base is ALLOCATED else NEW
    other = copy.deepcopy(base)
    other["metadata"] |= {"uid": "new-uid", "resourceVersion": "9"}
    _, binding, phases = run(Server().with_object(other), start(base, plan))
    assert phases[-1] is Phase.READ
    assert binding.outcome == Impossible(ImpossibleReason.OTHER_INCARNATION)


def test_the_write_may_have_happened() -> None:
    """A write that got no answer is found to have happened: done, without a second write."""
    binding = start(READY)
    assert binding.request is not None
    server, status, _ = Server().with_object(READY).send(binding.request)
    assert status == 200
    for lost in (None, 429, 504):
        _, ended, phases = run(server, binding.answered(lost, None))
        assert phases == [Phase.READ]
        assert ended.outcome == Bound(read(server.get("gpu")))


def test_a_success_without_body_is_no_answer() -> None:
    """Nothing is known about the claim then, so it is read."""
    binding = start(READY).answered(200, None)
    assert (binding.phase, binding.uncertain) == (Phase.READ, True)


def test_rounds_are_limited() -> None:
    """A claim that keeps changing is given up after five rounds, for later."""
    binding = start(READY)
    for round_ in range(MAX_ROUNDS):
        assert binding.phase is Phase.ALLOCATION, round_
        binding = binding.answered(422, None)
        assert binding.phase is Phase.READ
        binding = binding.answered(200, copy.deepcopy(READY))
    assert binding.outcome == RetryLater(RetryReason.TOO_MANY_ROUNDS)
    assert MAX_ROUNDS == 5


def test_the_last_read_still_decides() -> None:
    """After the last round, what the claim says goes before "kept changing"."""
    for obj, expected in (
        (MINE, Bound(read(MINE))),
        (ELSEWHERE, Impossible(ImpossibleReason.ALLOCATED_ELSEWHERE)),
    ):
        binding = start(READY, attrs.evolve(NEW, max_rounds=1)).answered(422, None)
        assert binding.answered(200, copy.deepcopy(obj)).outcome == expected


@pytest.mark.parametrize(("first", "happened"), [(422, False), (500, True), (None, True)])
def test_a_server_that_does_not_answer(first: int | None, happened: bool) -> None:
    """Reading fails too: later, and it is told whether the write may have happened."""
    binding = start(READY).answered(first, None)
    for _ in range(MAX_ROUNDS - 1):
        assert binding.phase is Phase.READ
        binding = binding.answered(None, None)
    assert binding.outcome == RetryLater(RetryReason.UNAVAILABLE, may_have_happened=happened)


def test_a_successful_read_ends_the_doubt() -> None:
    """Once the claim was read, it is known what became of the write."""
    binding = start(READY).answered(None, None).answered(200, copy.deepcopy(READY))
    assert not binding.uncertain
    for status in [422, *[None] * (MAX_ROUNDS - 2)]:
        binding = binding.answered(status, None)
    assert binding.outcome == RetryLater(RetryReason.UNAVAILABLE)


def test_malformed_answers_are_the_callers_to_judge() -> None:
    """A body that is no claim raises; the state is as before and can be told "no answer"."""
    binding = start(READY)
    with pytest.raises(MalformedObjectError):
        binding.answered(200, {"metadata": 1})
    assert binding.answered(None, None).phase is Phase.READ


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "Status", "status": "Success", "metadata": {}},
        claim_json(name="other"),
        claim_json() | {"metadata": {"name": "gpu", "namespace": "team-a"}},
        claim_json() | {"metadata": {"name": "gpu", "namespace": "team-a", "uid": "claim-uid"}},
        claim_json() | {"metadata": {"name": "gpu", "namespace": "b", "uid": "claim-uid"}},
    ],
)
def test_answers_about_something_else_tell_nothing(body: Json) -> None:
    """A success with another body than the stored claim says nothing about the write: it does
    not mean that the claim is impossible, which would give its devices away."""
    binding = start(claim_json(finalizers=(FINALIZER,)), NEW)
    assert binding.phase is Phase.ALLOCATION
    with pytest.raises(MalformedObjectError):
        binding.answered(200, body)
    unknown = binding.answered(None)
    assert (unknown.phase, unknown.uncertain) == (Phase.READ, True)


def test_an_answer_too_many() -> None:
    """When nothing was asked there is nothing to answer."""
    with pytest.raises(PatchError, match="over"):
        start(MINE).answered(200, MINE)


# Success that is none


def test_bug_62_a_written_claim_is_known_whatever_follows() -> None:
    """The finalizer was written, then the status fails: the newer copy is there to assume."""
    server = Server().with_object(BARE)
    binding = start(BARE)
    assert binding.request is not None
    server, status, body = server.send(binding.request)
    binding = binding.answered(status, body)
    assert binding.from_server
    assert binding.claim == read(server.get("gpu"))
    failed = binding.answered(403, None)
    assert failed.outcome == Impossible(ImpossibleReason.REFUSED, 403)
    assert failed.claim == read(server.get("gpu"))


def reserved_elsewhere(consumer_json: Json | None = None) -> Json:
    obj = copy.deepcopy(ELSEWHERE)
    obj["status"]["reservedFor"] = [consumer_json or {"resource": "pods", "name": "p", "uid": "p"}]
    return obj


def test_success_on_another_allocation_is_undone() -> None:
    """If the returned allocation is not the one decided on, remove the entry, retry later."""
    server = Server().with_object(ELSEWHERE)
    binding = start(ALLOCATED, USE)
    server, ended, phases = run(server, binding)
    assert phases == [Phase.RESERVATION, Phase.UNDO]
    assert ended.outcome == RetryLater(RetryReason.ALLOCATION_CHANGED)
    assert server.get("gpu")["status"] == ELSEWHERE["status"]


@pytest.mark.parametrize(
    ("status", "failed"), [(200, False), (404, False), (422, True), (500, True), (None, True)]
)
def test_a_failed_undo_is_reported(status: int | None, failed: bool) -> None:
    """A failure is reported, not retried: the next attempt comes by again."""
    binding = start(ALLOCATED, USE).answered(200, reserved_elsewhere())
    assert binding.phase is Phase.UNDO
    ended = binding.answered(status, None)
    assert ended.outcome == RetryLater(RetryReason.ALLOCATION_CHANGED, undo_failed=failed)


def test_success_that_left_no_entry_needs_no_undo() -> None:
    """There is nothing to remove from a claim that does not name the pod."""
    ended = start(ALLOCATED, USE).answered(200, copy.deepcopy(ELSEWHERE))
    assert ended.outcome == RetryLater(RetryReason.ALLOCATION_CHANGED)
    gone = start(ALLOCATED, USE).answered(200, copy.deepcopy(READY))
    assert gone.outcome == RetryLater(RetryReason.ALLOCATION_CHANGED)


def test_a_groups_entry_is_not_undone() -> None:
    """Other pods of the group may rely on its entry by now."""
    group = pod_group_reference(make_group())
    consumer = {
        "apiGroup": group.api_group,
        "resource": group.resource,
        "name": group.name,
        "uid": group.uid,
    }
    binding = start(ALLOCATED, attrs.evolve(USE, consumer=group))
    ended = binding.answered(200, reserved_elsewhere(consumer))
    assert ended.outcome == RetryLater(RetryReason.ALLOCATION_CHANGED)


def test_a_server_that_drops_what_it_was_told_is_given_up() -> None:
    """Success without the entry is tried again, but not for ever."""
    binding = start(ALLOCATED, USE)
    for _ in range(MAX_ROUNDS):
        assert binding.phase is Phase.RESERVATION
        binding = binding.answered(200, copy.deepcopy(ALLOCATED))
    assert binding.outcome == RetryLater(RetryReason.TOO_MANY_ROUNDS)


def test_bug_56_a_peers_identical_write_is_no_conflict() -> None:
    """A pod of the gang wrote the same allocation first: just the entry is added."""
    by_peer = copy.deepcopy(ALLOCATED)
    by_peer["metadata"]["resourceVersion"] = "9"
    by_peer["status"]["allocation"]["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    by_peer["status"]["reservedFor"] = [{"resource": "pods", "name": "peer", "uid": "peer"}]
    server, ended, phases = run(Server().with_object(by_peer), start(READY))
    assert phases == [Phase.ALLOCATION, Phase.READ, Phase.RESERVATION]
    assert ended.outcome == Bound(read(server.get("gpu")))
    uids = [e["uid"] for e in server.get("gpu")["status"]["reservedFor"]]
    assert uids == ["p", "peer"]


# Equal allocations


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (allocation_json("gpu-0"), True),
        (allocation_json("gpu-0", allocationTimestamp="2026-01-01T00:00:00Z"), True),
        (allocation_json("gpu-1"), False),
        (allocation_json("gpu-0", node="node-2"), False),
    ],
)
def test_same_allocation(other: Json, equal: bool) -> None:
    """Same devices, in order, for the same nodes; the time plays no part."""
    assert same_allocation(OURS, decode_allocation_result(other)) is equal


def test_same_allocation_looks_at_every_part_of_a_device() -> None:
    """Request, driver, pool, device and share tell; what the server may reword does not."""
    (result,) = OURS.results
    for changed in (
        attrs.evolve(result, request="x"),
        attrs.evolve(result, driver="x"),
        attrs.evolve(result, pool="x"),
        attrs.evolve(result, device="x"),
        attrs.evolve(result, share_id="x"),
    ):
        assert not same_allocation(OURS, attrs.evolve(OURS, results=(changed,)))
        assert not same_allocation(OURS, attrs.evolve(OURS, results=(result, changed)))
    reworded = attrs.evolve(OURS, results=(attrs.evolve(result, consumed_capacity={}),))
    assert same_allocation(OURS, reworded)
    assert same_allocation(None, None)
    assert not same_allocation(OURS, None)
    assert not same_allocation(None, OURS)


# Laws

ANSWERS = st.one_of(
    st.sampled_from([None, 403, 404, 409, 410, 422, 429, 500]).map(lambda status: (status, None)),
    claims_json().map(lambda claim: (200, claim)),
)


@given(data=st.data())
def test_law_it_ends(data: st.DataObject) -> None:
    """Whatever the answers are, there is an outcome after a bounded number of requests."""
    first, plan = data.draw(claims_json()), data.draw(st.sampled_from([NEW, USE, ANY_NODE]))
    binding = start(first, plan)
    writes = reads = 0
    while binding.request is not None:
        reads += binding.phase is Phase.READ
        writes += binding.phase is not Phase.READ
        # Each round may cost a finalizer that was lost in between, the write, and reading.
        assert reads <= MAX_ROUNDS
        assert writes <= 2 * MAX_ROUNDS + 1
        status, body = data.draw(ANSWERS)
        before = copy.deepcopy(binding)
        following = binding.answered(status, body)
        assert binding == before
        binding = following
    assert binding.outcome is not None
    assert (binding.request, binding.phase) == (None, Phase.OVER)
    if isinstance(binding.outcome, Bound):
        claim = binding.outcome.claim
        assert claim.metadata.uid == first["metadata"]["uid"]
        assert claim.allocation is not None
        assert FINALIZER in claim.metadata.finalizers
        assert any(e.uid == "p" for e in claim.reserved_for)
        assert plan is ANY_NODE or same_allocation(claim.allocation, OURS)


# A pod with several claims


def test_a_second_claim_that_fails_leaves_the_first_reserved_until_unreserve() -> None:
    """Two claims, the second fails at binding: every claim is compared after each step."""
    pod = make_pod(uid="p")
    claims = {
        name: claim_json(
            name=name,
            uid=f"uid-{name}",
            finalizers=(FINALIZER,),
            allocation=allocation_json(device),
        )
        for name, device in (("one", "gpu-0"), ("two", "gpu-1"))
    }
    server = Server()
    for obj in claims.values():
        server = server.with_object(obj)

    def reserved() -> dict[str, list[str]]:
        return {
            name: [e["uid"] for e in server.get(name)["status"].get("reservedFor", [])]
            for name in claims
        }

    assert reserved() == {"one": [], "two": []}
    server, first, _ = run(server, start(claims["one"], USE))
    assert isinstance(first.outcome, Bound)
    assert reserved() == {"one": ["p"], "two": []}
    server, second, _ = run(server, start(claims["two"], USE))
    assert second.outcome == Impossible(ImpossibleReason.ALLOCATED_ELSEWHERE)
    assert reserved() == {"one": ["p"], "two": []}

    known = {"one": first.claim, "two": second.claim}
    for name, claim in known.items():
        request = patches.unreserve(claim, pod)
        assert (request is None) == (name == "two")
        if request is not None:
            server, status, _ = server.send(request)
            assert status == 200
    assert reserved() == {"one": [], "two": []}
    for name, obj in claims.items():
        now = server.get(name)
        assert {**now, "metadata": None} == {**obj, "metadata": None}
