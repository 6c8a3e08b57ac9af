"""Several clients of one claim, in every order of their steps."""

from collections import Counter
from typing import Any

import attrs
import pytest

from dra_core.api.core import Pod
from dra_core.api.names import ObjectKey
from dra_core.api.objects import FINALIZER, ResourceClaim
from dra_core.api.request import ApiRequest
from dra_core.api.wire import decode_allocation_result
from dra_core.claims import patches
from dra_core.claims.binding import BindingPlan, Bound, Impossible, ImpossibleReason
from dra_core.claims.releasing import Absent
from support.api_server import Server
from support.claim_json import allocation_json, claim_json, entry
from support.claims import make_pod
from support.interleaving import Client, Controller, End, Naive, Scheduler, claim_of, explore

NEW_ALLOCATION = decode_allocation_result(allocation_json("gpu-9"))


def plan(uid: str, device: str = "gpu-9", **members: Any) -> BindingPlan:
    base = BindingPlan(entry(uid), decode_allocation_result(allocation_json(device)), is_new=True)
    return attrs.evolve(base, **members)


def only_new_pods(key: ObjectKey) -> Pod | Absent:
    """The pod "old" is gone, the others exist."""
    uid = key.name.removeprefix("pod-")
    return Absent.GONE if uid == "old" else make_pod(name=key.name, uid=uid)


USED = claim_json(finalizers=(FINALIZER,), allocation=allocation_json(), reserved_for=("old",))
"""Allocated for a pod that is gone: the controller is about to deallocate it."""

RELEASED = claim_json(finalizers=(FINALIZER,))


def server_with(obj: dict[str, Any], limit: int = 256) -> Server:
    return Server(limit=limit).with_object(obj)


def is_invalid(claim: ResourceClaim) -> bool:
    """Allocated without the finalizer: it could be deleted while its devices are in use."""
    return claim.allocation is not None and not patches.has_finalizer(claim)


def never_invalid(run: End) -> bool:
    return not any(is_invalid(claim_of(server)) for server in run.servers)


def scheduler(client: Client) -> Scheduler:
    assert isinstance(client, Scheduler)
    return client


# The finalizer race


@pytest.mark.parametrize(("losses", "expected_runs"), [(0, 5), (1, 22)])
def test_finalizer_race(losses: int, expected_runs: int) -> None:
    """The controller deallocates while a scheduler allocates: never without the finalizer."""
    outcomes: Counter[str] = Counter()
    runs = window = 0
    controller = Controller(only_new_pods)
    for run in explore(server_with(USED), controller, Scheduler(plan("p"), losses=losses)):
        runs += 1
        assert never_invalid(run)
        ended = scheduler(run.clients[1])
        outcome = ended.outcome
        # The window: the finalizer went between looking and writing, the test noticed.
        window += any(status == 422 for _, status in ended.sent)
        outcomes[type(outcome).__name__] += 1
        claim = claim_of(run.servers[-1])
        if isinstance(outcome, Bound):
            assert [e.uid for e in claim.reserved_for] == ["p"]
            assert claim.allocation == NEW_ALLOCATION
        else:
            # It looked while the old allocation was still there.
            assert outcome == Impossible(ImpossibleReason.ALLOCATED_ELSEWHERE)
            assert claim.allocation is None
    assert runs == expected_runs
    assert window > 0
    assert set(outcomes) == {"Bound", "Impossible"}


def _without_test(claim: ResourceClaim) -> ApiRequest | None:
    """The faulty scheduler: allocates an unallocated claim without testing the finalizer."""
    if claim.allocation is not None:
        return None
    request = patches.allocate(
        attrs.evolve(claim, metadata=attrs.evolve(claim.metadata, finalizers=(FINALIZER,))),
        NEW_ALLOCATION,
        entry("p"),
    )
    kept = [op for op in request.body if not op["path"].startswith("/metadata/finalizers")]
    return attrs.evolve(request, body=kept)


def test_finalizer_race_without_the_test_goes_wrong() -> None:
    """Control: the same orders, without the test of the finalizer, reach the invalid state."""
    runs = list(explore(server_with(USED), Controller(only_new_pods), Naive(_without_test)))
    assert any(not never_invalid(run) for run in runs)
    assert any(never_invalid(run) for run in runs)


def test_finalizer_race_when_the_new_pod_can_share() -> None:
    """A pod that the old allocation suits keeps it allocated, or gets a new one."""
    sharing = plan("p", suits=lambda allocation: True)
    devices = Counter[str]()
    for run in explore(server_with(USED), Controller(only_new_pods), Scheduler(sharing)):
        assert never_invalid(run)
        claim = claim_of(run.servers[-1])
        if isinstance(scheduler(run.clients[1]).outcome, Bound):
            assert claim.allocation is not None
            assert [e.uid for e in claim.reserved_for] == ["p"]
            devices[claim.allocation.results[0].device] += 1
    assert set(devices) == {"gpu-0", "gpu-9"}


# Several schedulers


@pytest.mark.parametrize("losses", [0, 1])
def test_two_schedulers_reserve_one_claim(losses: int) -> None:
    """Two schedulers add different pods to one claim at the same time: both succeed."""
    allocated = claim_json(finalizers=(FINALIZER,), allocation=allocation_json())
    clients = [
        Scheduler(plan(uid, "gpu-0", is_new=False), losses=losses * (uid == "p")) for uid in "pq"
    ]
    runs = list(explore(server_with(allocated), *clients))
    assert len(runs) >= 6
    for run in runs:
        assert all(isinstance(scheduler(c).outcome, Bound) for c in run.clients)
        assert sorted(e.uid for e in claim_of(run.servers[-1]).reserved_for) == ["p", "q"]
        if not losses:
            # Nobody needed the newest copy: one request each.
            assert [len(scheduler(c).sent) for c in run.clients] == [1, 1]


def test_two_schedulers_up_to_the_limit() -> None:
    """With room for one, exactly one of the two gets in, and the other is told that it is full."""
    allocated = claim_json(
        finalizers=(FINALIZER,), allocation=allocation_json(), reserved_for=("a",)
    )
    clients = [Scheduler(plan(uid, "gpu-0", is_new=False, limit=2)) for uid in "pq"]
    winners = Counter[str]()
    for run in explore(server_with(allocated, limit=2), *clients):
        by_kind = {type(scheduler(c).outcome): scheduler(c) for c in run.clients}
        assert set(by_kind) == {Bound, Impossible}
        assert by_kind[Impossible].outcome == Impossible(ImpossibleReason.FULL)
        uids = [e.uid for e in claim_of(run.servers[-1]).reserved_for]
        assert uids == [by_kind[Bound].plan.consumer.uid, "a"]
        winners[uids[0]] += 1
    assert set(winners) == {"p", "q"}


@pytest.mark.parametrize("finalizers", [(), (FINALIZER,)])
@pytest.mark.parametrize("shares", [True, False])
def test_two_schedulers_allocate_one_claim(finalizers: tuple[str, ...], shares: bool) -> None:
    """One allocation wins; the other pod shares it if it suits, or cannot have the claim."""
    clients = [Scheduler(plan(uid, f"gpu-{uid}", suits=lambda allocation: shares)) for uid in "pq"]
    winners = Counter[str]()
    for run in explore(server_with(claim_json(finalizers=finalizers)), *clients):
        assert never_invalid(run)
        claim = claim_of(run.servers[-1])
        assert claim.allocation is not None
        device = claim.allocation.results[0].device
        winners[device] += 1
        for client in map(scheduler, run.clients):
            won = device == f"gpu-{client.plan.consumer.uid}"
            expected = Bound if won or shares else Impossible
            assert isinstance(client.outcome, expected)
        assert len(claim.reserved_for) == (2 if shares else 1)
    assert set(winners) == {"gpu-p", "gpu-q"}


def test_bug_56_two_pods_of_a_gang() -> None:
    """Both write the allocation that they share in flight: both succeed in every order."""
    clients = [Scheduler(plan(uid)) for uid in "pq"]
    for run in explore(server_with(RELEASED), *clients):
        assert all(isinstance(scheduler(c).outcome, Bound) for c in run.clients)
        claim = claim_of(run.servers[-1])
        assert sorted(e.uid for e in claim.reserved_for) == ["p", "q"]
        assert claim.allocation == NEW_ALLOCATION


def _replace_list(claim: ResourceClaim) -> ApiRequest | None:
    """The faulty scheduler: states the whole list as it saw it, plus its pod."""
    request = patches.reserve(claim, entry("q"))
    assert request is not None
    return patches.claim_target(claim).at("status").merge_patch(request.body)


def test_bug_66_a_merge_patch_loses_entries() -> None:
    """Control: with a plain merge patch, one scheduler's pod loses its reservation."""
    allocated = claim_json(finalizers=(FINALIZER,), allocation=allocation_json())
    clients = (Scheduler(plan("p", "gpu-0", is_new=False)), Naive(_replace_list))
    lists = {
        tuple(sorted(e.uid for e in claim_of(run.servers[-1]).reserved_for))
        for run in explore(server_with(allocated), *clients)
    }
    assert ("q",) in lists


def test_scheduler_and_controller_on_a_shared_claim() -> None:
    """The controller drops an old entry while a new one is added: neither is lost."""
    shared = claim_json(
        finalizers=(FINALIZER,), allocation=allocation_json(), reserved_for=("old", "a")
    )
    client = Scheduler(plan("p", "gpu-0", is_new=False))
    runs = list(explore(server_with(shared), Controller(only_new_pods), client))
    for run in runs:
        assert isinstance(scheduler(run.clients[1]).outcome, Bound)
        assert sorted(e.uid for e in claim_of(run.servers[-1]).reserved_for) == ["a", "p"]
    assert len(runs) > 3
