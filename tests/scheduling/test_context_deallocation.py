"""Deallocating a claim only after the selected node is gone."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.objects import ResourceClaim
from dra_core.api.wire import decode_resource_claim
from dra_core.claims.deallocation import Deallocation, choose_deallocation
from dra_core.scheduling.context import context_record
from dra_core.scheduling.context_deallocation import (
    ClaimDeallocation,
    Deallocated,
    NotDeallocated,
    start_deallocation,
)
from dra_core.scheduling.context_publishing import NotPublishedReason, start_publishing
from dra_core.testing.api_server import ApiServer
from support.claim_json import allocation_json, claim_json
from support.contexts import (
    POD,
    POLICY,
    context_json,
    driver_reports,
    finish,
    make_context,
    record_of,
    spec_of,
    stored,
)

Json = dict[str, Any]
VERSION = "v1alpha3"


def classic_claim(node: str = "n1", **rest: Any) -> Json:
    """A claim that a control plane controller allocated for a node."""
    allocation = {**allocation_json(node=node), "controller": "ctl"}
    obj = claim_json(VERSION, allocation=allocation, finalizers=("ctl/keep",), **rest)
    obj["spec"]["controller"] = "ctl"
    return obj


class Cluster:
    """An API server with a classic claim and its controller, which is quick to act."""

    def __init__(self, context: Json | None, claim: Json | None = None) -> None:
        self.server = ApiServer()
        self.server.seed(claim or classic_claim())
        if context is not None:
            self.server.seed(context)
        self.allocations: list[str] = []
        self.deallocations = 0

    def claim(self) -> ResourceClaim:
        obj = self.server.find("resourceclaims", "team-a", "gpu")
        assert obj is not None
        return decode_resource_claim(obj, VERSION)

    def chosen(self) -> Deallocation:
        claim = self.claim()
        found = choose_deallocation(POD, [claim], [claim.metadata.uid], version=VERSION)
        assert found is not None
        return found

    def controller(self) -> None:
        """Deallocate if asked to, allocate for the selected node if not allocated."""
        obj = self.server.find("resourceclaims", "team-a", "gpu")
        assert obj is not None
        status = obj["status"]
        if status.get("deallocationRequested"):
            self.deallocations += 1
            obj["status"] = {}
            self.server.seed(obj)
        context = stored(self.server)
        selected = context["spec"].get("selectedNode") if context else None
        if selected and not obj["status"].get("allocation"):
            self.allocations.append(selected)
            obj["status"] = classic_claim(selected)["status"]
            self.server.seed(obj)

    def step(self, state: ClaimDeallocation) -> ClaimDeallocation:
        assert state.request is not None
        if state.request.target.resource == "resourceclaims" and self.claim().allocation:
            assert state.request == state.chosen.request
            assert not selected_node(self.server)
        answer = self.server.send(state.request)
        return state.answered(answer.status, answer.body if answer.status < 300 else None)


def selected_node(server: ApiServer) -> str:
    context = stored(server)
    return str(context["spec"].get("selectedNode", "")) if context else ""


def run(cluster: Cluster, state: ClaimDeallocation) -> tuple[ClaimDeallocation, list[str]]:
    """Send until there is an outcome; which resources were written or read."""
    sent = []
    while state.request is not None:
        sent.append(f"{state.request.method} {state.request.target.resource}")
        state = cluster.step(state)
        cluster.controller()
    return state, sent


GET, PUT, PATCH = (f"{method} podschedulingcontexts" for method in ("GET", "PUT", "PATCH"))
STATUS = "PUT resourceclaims"


def test_bug_80_the_reallocation_flake() -> None:
    """The selected node goes first, so the driver cannot allocate for it again (k/k#120428).

    The sequence of the flake: allocated for n1, another node has to be used, deallocation
    requested, deallocated, and before the scheduler reacts allocated again for n1.
    """
    cluster = Cluster(context_json("n1", ("n1", "n2"), {"gpu": []}))
    state = start_deallocation(record_of(cluster.server), cluster.chosen(), POLICY)
    state, sent = run(cluster, state)
    assert sent == [GET, PUT, STATUS]
    assert isinstance(state.outcome, Deallocated)
    assert cluster.claim().allocation is None
    assert (cluster.deallocations, cluster.allocations) == (1, [])
    assert spec_of(cluster.server) == ("", ("n1", "n2"))
    # Now another node is selected, and the pod gets its claim there.
    record = state.outcome.record.select_node("n2")
    finish(cluster.server, start_publishing(record, POLICY))
    cluster.controller()
    assert (cluster.deallocations, cluster.allocations) == (1, ["n2"])


def test_the_other_order_is_the_flake() -> None:
    """The double does fall for the wrong order, so the test above shows something."""
    cluster = Cluster(context_json("n1"))
    cluster.server.send(cluster.chosen().request)
    cluster.controller()
    assert cluster.allocations == ["n1"]


def test_bug_80_a_stale_copy_is_no_proof() -> None:
    """The copy at hand shows no selected node, but one was published since: it is removed."""
    cluster = Cluster(context_json("n1", ("n1", "n2")))
    for stale in (context_record(POD), context_record(POD, make_context())):
        state, sent = run(cluster, start_deallocation(stale, cluster.chosen(), POLICY))
        assert sent[-1] == STATUS
        assert isinstance(state.outcome, Deallocated)
        assert spec_of(cluster.server) == ("", ("n1", "n2"))
        cluster = Cluster(context_json("n1", ("n1", "n2")))


def test_conflicts_on_the_way() -> None:
    """Driver reports meanwhile: apply instead of update, and the same order."""
    cluster = Cluster(context_json("n1", ("n1",)))
    state = cluster.step(start_deallocation(record_of(cluster.server), cluster.chosen(), POLICY))
    driver_reports(cluster.server, "gpu", ["n1"])
    state, sent = run(cluster, state)
    assert sent == [PUT, PATCH, STATUS]
    assert isinstance(state.outcome, Deallocated)


@pytest.mark.parametrize("context", [None, context_json("", ("n1",))])
def test_nothing_selected(context: Json | None) -> None:
    """Without selected node nothing has to be removed, only looked at."""
    cluster = Cluster(context)
    state, sent = run(
        cluster, start_deallocation(record_of(cluster.server), cluster.chosen(), POLICY)
    )
    assert sent == [GET, STATUS]
    assert isinstance(state.outcome, Deallocated)
    assert decode_resource_claim(state.outcome.body, VERSION).deallocation_requested


def test_what_a_scheduler_allocated_needs_no_context() -> None:
    """A claim that a scheduler allocated is cleared in one request."""
    claim = claim_json(VERSION, allocation=allocation_json())
    cluster = Cluster(context_json("n1"), claim)
    chosen = cluster.chosen()
    assert not chosen.deselect_first
    record = record_of(cluster.server).set_potential_nodes(["n5"])
    state = start_deallocation(record, chosen, POLICY)
    assert state.request == chosen.request
    answer = cluster.server.send(chosen.request)
    state = state.answered(answer.status, answer.body)
    assert isinstance(state.outcome, Deallocated)
    assert state.outcome.record == record
    assert selected_node(cluster.server) == "n1"
    assert cluster.claim().allocation is None


@pytest.mark.parametrize("status", [None, 403, 409, 429, 500])
@pytest.mark.parametrize("answers_before", [0, 1, 2])
def test_failures(status: int | None, answers_before: int) -> None:
    """Whatever fails, the claim is not touched before the selected node is gone."""
    cluster = Cluster(context_json("n1"))
    before = copy.deepcopy(cluster.claim())
    state = start_deallocation(record_of(cluster.server), cluster.chosen(), POLICY)
    for _ in range(answers_before):
        state = cluster.step(state)
    state = state.answered(status)
    while state.request is not None and status == 409:
        state = state.answered(409)
    assert isinstance(state.outcome, NotDeallocated)
    assert state.outcome.status == status
    assert state.publishing is None
    unclear = status in (None, 429, 500) and answers_before > 0
    assert state.outcome.reason is (
        NotPublishedReason.UNCLEAR if unclear else NotPublishedReason.REFUSED
    )
    assert cluster.claim() == before
    # What was wanted is still recorded unless it was published.
    assert state.outcome.record.dirty is (answers_before < 2)


def test_another_pods_context() -> None:
    """The context of that name is another pod's: left alone, and the claim with it."""
    cluster = Cluster(context_json("n1", owner_uid="other"))
    state = start_deallocation(context_record(POD), cluster.chosen(), POLICY)
    state, sent = run(cluster, state)
    assert sent == [GET]
    assert state.outcome == NotDeallocated(
        context_record(POD).deselect_node(), NotPublishedReason.OTHER_OWNER, 200
    )


def test_a_node_selected_all_the_same() -> None:
    """What came back still has a selected node (a webhook?): the claim is left alone."""
    cluster = Cluster(context_json("n1"))
    state = cluster.step(start_deallocation(record_of(cluster.server), cluster.chosen(), POLICY))
    state = state.answered(200, stored(cluster.server))
    assert isinstance(state.outcome, NotDeallocated)
    assert state.outcome.record.existing.selected_node == "n1"
    with pytest.raises(ValueError, match="no answer is awaited"):
        state.answered(200)


@given(st.data())
def test_never_while_a_node_is_selected(data: st.DataObject) -> None:
    """Whatever answers come and go: deallocation is never requested while a node is selected."""
    exists, selected = data.draw(st.booleans()), data.draw(st.sampled_from(["", "n1", "n2"]))
    cluster = Cluster(context_json(selected, ("n1",)) if exists else None)
    known = data.draw(
        st.sampled_from([None, record_of(cluster.server).known, make_context("n2"), make_context()])
    )
    state = start_deallocation(context_record(POD, known), cluster.chosen(), POLICY)
    while state.request is not None:
        if data.draw(st.booleans()):
            cluster.server.touch(POLICY.target(POD.metadata.key))
        fate = data.draw(st.sampled_from(["sent", "sent", "lost", "unheard"]))
        if fate == "sent":
            state = cluster.step(state)
        else:
            if fate == "unheard":
                cluster.step(state)
            state = state.answered(None)
        if cluster.claim().deallocation_requested:
            assert not selected_node(cluster.server)
        cluster.controller()
    assert cluster.allocations in ([], [selected])
    assert cluster.deallocations == 0 or cluster.allocations == []
