"""Publishing a context: which request comes next, and every interleaving that matters."""

from typing import Any

import attrs
import pytest

from dra_core.api.request import Verb
from dra_core.errors import MalformedObjectError
from dra_core.scheduling.context import (
    ChangeForm,
    ContextPolicy,
    ContextRecord,
    ContextSpec,
    context_record,
    delete_context,
)
from dra_core.scheduling.context_nodes import ReserveAnswer, propose_node
from dra_core.scheduling.context_publishing import (
    MAX_ROUNDS,
    ContextPhase,
    ContextPublishing,
    NotPublished,
    NotPublishedReason,
    Published,
    start_publishing,
)
from dra_core.scheduling.errors import IncompleteContextError
from dra_core.testing.api_server import ApiServer
from support.claims import make_pod
from support.contexts import (
    MANAGER,
    POD,
    POLICY,
    context_json,
    driver_reports,
    finish,
    make_context,
    record_of,
    seen,
    spec_of,
    step,
    stored,
)

Json = dict[str, Any]

CREATE, CHANGE, APPLY, READ = (
    ContextPhase.CREATE,
    ContextPhase.CHANGE,
    ContextPhase.APPLY,
    ContextPhase.READ,
)
PATCH = attrs.evolve(POLICY, form=ChangeForm.MERGE_PATCH)
FREE_PATCH = attrs.evolve(POLICY, form=ChangeForm.MERGE_PATCH_ANY_VERSION)
SET = ContextPolicy(MANAGER, "v1alpha1")
POLICIES = [POLICY, PATCH, FREE_PATCH, ContextPolicy(MANAGER, "v1alpha2"), SET]


def server_with(*objects: Json) -> ApiServer:
    server = ApiServer()
    server.seed(*objects)
    return server


def touch(server: ApiServer, policy: ContextPolicy = POLICY) -> None:
    server.touch(policy.target(POD.metadata.key))


def published(publishing: ContextPublishing) -> Published:
    assert isinstance(publishing.outcome, Published)
    assert not publishing.outcome.record.dirty
    assert publishing.outcome.record.selected_node is None
    assert publishing.outcome.record.potential_nodes is None
    assert publishing.record == publishing.outcome.record
    return publishing.outcome


def failed(publishing: ContextPublishing) -> NotPublished:
    """The failure; what was recorded is still recorded."""
    assert isinstance(publishing.outcome, NotPublished)
    assert publishing.outcome.record == publishing.record
    assert publishing.request is None
    return publishing.outcome


# The way


def test_nothing_to_publish() -> None:
    """A payload is made if, and only if, one is needed."""
    for record in (
        context_record(POD),
        context_record(POD).deselect_node(),
        context_record(POD, make_context("n1")).select_node("n1"),
    ):
        publishing = start_publishing(record, POLICY)
        assert publishing.request is None
        outcome = published(publishing)
        assert outcome.context is None
        assert outcome.record.known == record.known
        assert outcome.sent == record


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_create_then_change(policy: ContextPolicy) -> None:
    """No object yet: create. Object there: change. What came back is known, changes forgotten."""
    server = ApiServer()
    record = context_record(POD).set_potential_nodes(["n1", "n2"])
    publishing, phases = finish(server, start_publishing(record, policy))
    assert phases == [CREATE]
    record = published(publishing).record
    assert record.known == published(publishing).context == seen(server, policy)
    driver_reports(server, "gpu", ["n2"], policy)
    record = record.load(seen(server, policy)).select_node("n1")
    publishing, phases = finish(server, start_publishing(record, policy))
    assert phases == [CHANGE]
    assert spec_of(server, policy) == ("n1", ("n1", "n2"))
    record = published(publishing).record
    assert record.known is not None
    assert record.known.status_of("gpu") is not None
    assert record.known == seen(server, policy)


def test_bug_81_conflict_on_update_then_apply() -> None:
    """A conflict costs one more call, not the attempt; nothing unchanged is lost (k/k#120534)."""
    server = server_with(context_json("n1", ("n1", "n2"), {"gpu": ["n9"]}, future=1))
    record = record_of(server).select_node("n2")
    touch(server)  # as a driver's report would
    publishing, phases = finish(server, start_publishing(record, POLICY))
    assert phases == [CHANGE, APPLY]
    assert spec_of(server) == ("n2", ("n1", "n2"))
    now = stored(server)
    assert now is not None
    assert now["spec"]["future"] == 1
    assert now["status"]["resourceClaims"][0]["unsuitableNodes"] == ["n9"]
    assert published(publishing).record.known == seen(server)


@pytest.mark.parametrize("moments", [(0,), (1,), (0, 1), (0, 0, 1, 1)])
def test_driver_reports_during_both(moments: tuple[int, ...]) -> None:
    """A driver changes the status before update, before apply, or both: no report is lost."""
    server = server_with(context_json("n1", ("n1", "n2")))
    publishing = start_publishing(record_of(server).deselect_node(), POLICY)
    calls = 0
    while publishing.request is not None:
        for number, moment in enumerate(moments):
            if moment == calls:
                driver_reports(server, f"claim-{number}", [f"n{number}"])
        publishing = step(server, publishing)
        calls += 1
    assert calls == (2 if 0 in moments else 1)
    assert spec_of(server) == ("", ("n1", "n2"))
    context = seen(server)
    assert context is not None
    # One that came while nobody had to hear of it is found out by its event.
    reported = {entry.name for entry in context.resource_claims}
    assert reported == {f"claim-{number}" for number, m in enumerate(moments) if m < calls}
    if calls == 2:
        assert published(publishing).record.known == context


def test_merge_patch_of_any_version_meets_no_conflict() -> None:
    """Without a resourceVersion a merge patch is never stale."""
    server = server_with(context_json("n1", ("n1",)))
    record = record_of(server).select_node("n2")
    touch(server)
    _, phases = finish(server, start_publishing(record, FREE_PATCH))
    assert phases == [CHANGE]
    touch(server)
    _, phases = finish(server, start_publishing(record.select_node("n3"), PATCH))
    assert phases == [CHANGE, APPLY]
    assert spec_of(server) == ("n3", ("n1",))


def test_where_nodes_are_a_set_the_object_is_read_instead() -> None:
    """v1alpha1: an apply would only add nodes, so after a conflict get and update."""
    server = server_with(context_json("n1", ("n1", "n2"), version="v1alpha1"))
    record = record_of(server, SET).set_potential_nodes(["n3"])
    touch(server, SET)
    publishing, phases = finish(server, start_publishing(record, SET))
    assert phases == [CHANGE, READ, CHANGE]
    assert spec_of(server, SET) == ("n1", ("n3",))
    published(publishing)


def test_already_exists() -> None:
    """Create answered with "already exists": load, check owner, continue as update."""
    server = server_with(context_json("n1", ("n1",), {"gpu": []}))
    record = context_record(POD).set_potential_nodes(["n1", "n2"])
    publishing, phases = finish(server, start_publishing(record, POLICY))
    assert phases == [CREATE, READ, CHANGE]
    # Nothing was recorded about the selected node, so what is there stays.
    assert spec_of(server) == ("n1", ("n1", "n2"))
    published(publishing)


def test_already_exists_as_wanted() -> None:
    """The same where the object says already what is wanted: done."""
    server = server_with(context_json("n1"))
    record = context_record(POD).select_node("n1")
    publishing, phases = finish(server, start_publishing(record, POLICY))
    assert phases == [CREATE, READ]
    assert published(publishing).context == seen(server)


def test_bug_81_another_pods_object_is_left_alone() -> None:
    """The object of an older pod of that name: an error, not something to update."""
    old = context_json("n1", owner_uid="old-uid")
    server = server_with(old)
    before = stored(server)
    record = context_record(POD).select_node("n2")
    publishing, phases = finish(server, start_publishing(record, POLICY))
    assert phases == [CREATE, READ]
    outcome = failed(publishing)
    assert outcome.reason is NotPublishedReason.OTHER_OWNER
    assert outcome.record == record
    assert stored(server) == before


def test_not_found_on_update() -> None:
    """Not found on update: create, with all that the object was to say."""
    server = server_with(context_json("n1", ("n1", "n2")))
    record = record_of(server).select_node("n2")
    server.send(delete_context(record, POLICY))
    publishing, phases = finish(server, start_publishing(record, POLICY))
    assert phases == [CHANGE, CREATE]
    assert spec_of(server) == ("n2", ("n1", "n2"))
    published(publishing)


def replaced(server: ApiServer, by: Json) -> None:
    """The object is deleted and another one of that name made."""
    server.send(delete_context(context_record(POD), POLICY))
    server.seed(by)


@pytest.mark.parametrize("policy", [POLICY, PATCH, FREE_PATCH], ids=str)
def test_replaced_by_our_own(policy: ContextPolicy) -> None:
    """Another incarnation, also the pod's (two schedulers): found out, loaded, changed."""
    server = server_with(context_json("n1", ("n1",)))
    record = record_of(server).select_node("n2")
    replaced(server, context_json("n3", ("n3",)))
    publishing, _ = finish(server, start_publishing(record, policy))
    # Only what was recorded is wanted of an object that nobody had seen.
    assert spec_of(server) == ("n2", ("n3",))
    published(publishing)


@pytest.mark.parametrize("policy", [POLICY, PATCH, FREE_PATCH], ids=str)
def test_replaced_by_another_pods(policy: ContextPolicy) -> None:
    """Another incarnation that belongs to another pod is left alone."""
    server = server_with(context_json("n1", ("n1",)))
    record = record_of(server).select_node("n2")
    replaced(server, context_json("n3", owner_uid="new-uid"))
    before = stored(server)
    publishing, _ = finish(server, start_publishing(record, policy))
    assert failed(publishing).reason is NotPublishedReason.OTHER_OWNER
    assert stored(server) == before


def test_deleted_between_update_and_apply() -> None:
    """The UID in the apply keeps it from creating an object without owner."""
    server = server_with(context_json("n1", ("n1",)))
    record = record_of(server).select_node("n2")
    touch(server)
    publishing = step(server, start_publishing(record, POLICY))
    assert publishing.phase is APPLY
    server.send(delete_context(record, POLICY))
    publishing = step(server, publishing)
    assert publishing.phase is READ
    assert stored(server) is None
    publishing, phases = finish(server, publishing)
    assert phases == [READ, CREATE]
    context = seen(server)
    assert context is not None
    assert context.metadata.controller() is not None
    assert spec_of(server)[0] == "n2"


def test_five_rounds() -> None:
    """An object that keeps changing: at most five rounds, and everything is still recorded."""
    server = server_with(context_json("n1", version="v1alpha1"))
    record = record_of(server, SET).select_node("n2")
    publishing = start_publishing(record, SET)
    reads = 0
    while publishing.request is not None:
        reads += publishing.phase is READ
        if publishing.phase is CHANGE:
            touch(server, SET)
        publishing = step(server, publishing)
    assert reads == MAX_ROUNDS == 5
    outcome = failed(publishing)
    assert outcome.reason is NotPublishedReason.TOO_MANY_ROUNDS
    assert outcome.status == 409
    assert outcome.record.dirty
    assert outcome.record.selected_node == "n2"
    publishing, phases = finish(
        server, start_publishing(outcome.record.load(seen(server, SET)), SET)
    )
    assert phases == [CHANGE]


def test_apply_refused_with_409_five_times() -> None:
    """The same where the answer to the apply is 409 every time."""
    record = context_record(POD, make_context("n1")).select_node("n2")
    publishing = start_publishing(record, POLICY)
    phases = []
    while publishing.request is not None:
        phases.append(publishing.phase)
        if publishing.phase is READ:
            obj = context_json("n1")
            obj["metadata"] |= {"uid": "ctx", "resourceVersion": "9"}
            publishing = publishing.answered(200, obj)
        else:
            publishing = publishing.answered(409)
    assert phases == [CHANGE, APPLY, READ] * 5 + [CHANGE, APPLY]
    assert failed(publishing).reason is NotPublishedReason.TOO_MANY_ROUNDS


# Other answers

ANSWERS = [None, 400, 401, 403, 408, 410, 413, 422, 429, 500, 503, 504]
UNCLEAR = (None, 408, 429, 500, 503, 504)


def states() -> list[ContextPublishing]:
    """A state in each phase."""
    new = start_publishing(context_record(POD).select_node("n2"), POLICY)
    change = start_publishing(context_record(POD, make_context("n1")).select_node("n2"), POLICY)
    return [new, change, change.answered(409), new.answered(409)]


@pytest.mark.parametrize("status", ANSWERS)
@pytest.mark.parametrize("state", states(), ids=lambda state: str(state.phase))
def test_other_answers_are_the_callers(state: ContextPublishing, status: int | None) -> None:
    """Other answers are the caller's: the recorded changes stay recorded."""
    after = state.answered(status)
    if state.phase is APPLY and status == 422:
        assert after.phase is READ  # another incarnation, or refused
        return
    outcome = failed(after)
    assert outcome.status == status
    assert outcome.record == state.record
    assert outcome.record.dirty
    # Reading writes nothing, so there is nothing unclear about it.
    unclear = status in UNCLEAR and state.phase is not READ
    assert outcome.reason is (NotPublishedReason.UNCLEAR if unclear else NotPublishedReason.REFUSED)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_what_a_read_finds_gone_is_created_whole(policy: ContextPolicy) -> None:
    """Deleted after a conflict: the new object says all that the old one was to, not only news.

    Otherwise a node would be selected that is none of the potential nodes (k/k#120871).
    """
    server = server_with(context_json(potential=("n1", "n2"), version=policy.version))
    publishing = start_publishing(record_of(server, policy).select_node("n1"), policy)
    conflict = publishing.answered(409)
    server.send(policy.target(POD.metadata.key).delete())
    publishing, phases = finish(server, conflict)
    assert phases[-2:] == [READ, CREATE]
    published(publishing)
    assert spec_of(server, policy) == ("n1", ("n1", "n2"))


def test_what_a_read_finds_gone_is_not_created_to_say_nothing() -> None:
    """A node is to be deselected, and the object is gone: there is nothing to publish."""
    record = context_record(POD, make_context("n1", ("n1", "n2"))).deselect_node()
    publishing, phases = finish(server_with(), start_publishing(record, POLICY, read_first=True))
    assert phases == [READ]
    assert published(publishing).record.known is None


def test_404_is_the_callers_where_it_says_nothing_of_the_object() -> None:
    """A create or apply answered with 404: the namespace or the API does not exist."""
    create, change, apply, _read = states()
    for state in (create, apply, change.answered(404)):
        assert failed(state.answered(404)).status == 404


@pytest.mark.parametrize("policy", [POLICY, PATCH, FREE_PATCH], ids=str)
def test_an_invalid_change_is_told_from_another_incarnation(policy: ContextPolicy) -> None:
    """422 to a request that names the UID: the same object is there, so it was a refusal."""
    server = server_with(context_json("n1"))
    record = record_of(server).select_node("n2")
    publishing = start_publishing(record, policy)
    if policy is POLICY:
        publishing = publishing.answered(409)
    publishing = step(server, publishing.answered(422))
    outcome = failed(publishing)
    assert (outcome.reason, outcome.status) == (NotPublishedReason.REFUSED, 422)


def test_a_success_without_body_is_read() -> None:
    """What the object says after a success without body is not known, so it is read."""
    server = server_with(context_json("n1"))
    publishing = start_publishing(record_of(server).select_node("n2"), POLICY)
    assert publishing.request is not None
    server.send(publishing.request)
    publishing, phases = finish(server, publishing.answered(200))
    assert phases == [READ]
    assert published(publishing).record.known == seen(server)
    assert failed(publishing_read().answered(200)).reason is NotPublishedReason.UNCLEAR


def publishing_read() -> ContextPublishing:
    return start_publishing(context_record(POD).select_node("n1"), POLICY, read_first=True)


def test_reading_first() -> None:
    """On request the copy at hand is not trusted."""
    server = server_with(context_json("n1"))
    stale = context_record(POD).deselect_node()
    assert start_publishing(stale, POLICY).request is None
    _, phases = finish(server, start_publishing(stale, POLICY, read_first=True))
    assert phases == [READ, CHANGE]
    assert spec_of(server) == ("", ())
    empty, phases = finish(ApiServer(), start_publishing(stale, POLICY, read_first=True))
    assert phases == [READ]
    assert published(empty).record.known is None


def test_the_owner_taken_away_meanwhile() -> None:
    """A success whose object is not the pod's any more is no success."""
    server = server_with(context_json("n1"))
    publishing = start_publishing(record_of(server).select_node("n2"), POLICY)
    assert publishing.request is not None
    body = server.send(publishing.request).body
    del body["metadata"]["ownerReferences"]
    outcome = failed(publishing.answered(200, body))
    assert outcome.reason is NotPublishedReason.OTHER_OWNER


def test_misuse() -> None:
    """No answer without a request; a body that is no context; a copy without UID."""
    publishing = start_publishing(context_record(POD), POLICY)
    with pytest.raises(ValueError, match="no answer is awaited"):
        publishing.answered(200)
    with pytest.raises(MalformedObjectError):
        publishing_read().answered(200, {"spec": 1})
    incomplete = context_record(POD, make_context(uid="")).select_node("n1")
    with pytest.raises(IncompleteContextError):
        start_publishing(incomplete, POLICY)


# Crashes, threads, several schedulers


def attempt(server: ApiServer) -> tuple[ContextRecord, ReserveAnswer]:
    """What a scheduler records for the pod that knows nothing but what the server shows."""
    reservation = propose_node(
        record_of(server), "n1", ["n1", "n2"], ["gpu"], lambda names, count: names[:count]
    )
    return reservation.record, reservation.answer


def test_crash_between_recording_and_publishing() -> None:
    """What was recorded is lost in a crash; the next attempt records the same again."""
    server = ApiServer()
    lost, answer = attempt(server)
    assert answer is ReserveAnswer.PUBLISH
    again, answer = attempt(server)
    assert (again, answer) == (lost, ReserveAnswer.PUBLISH)
    publishing, phases = finish(server, start_publishing(again, POLICY))
    assert phases == [CREATE]
    published(publishing)
    assert attempt(server)[1] is ReserveAnswer.WAIT


@pytest.mark.parametrize("crash_before_answer", [False, True])
def test_crash_between_publishing_and_its_answer(crash_before_answer: bool) -> None:
    """The write happened, or not, and nobody heard: nothing is published twice, or missing."""
    server = server_with(context_json("", ("n1",)))
    record, _ = attempt(server)
    publishing = start_publishing(record, POLICY)
    assert publishing.request is not None
    if not crash_before_answer:
        server.send(publishing.request)
    record, answer = attempt(server)
    assert answer is (ReserveAnswer.PUBLISH if crash_before_answer else ReserveAnswer.WAIT)
    finish(server, start_publishing(record, POLICY))
    assert spec_of(server) == ("n1", ("n1", "n2"))


@pytest.mark.parametrize("happened", [False, True])
@pytest.mark.parametrize("start", [None, context_json("n1", ("n1",))])
def test_an_unclear_write_converges(start: Json | None, happened: bool) -> None:
    """No answer: the changes are still recorded, and publishing them again ends the same."""
    server = server_with(*([start] if start else []))
    publishing = start_publishing(record_of(server).select_node("n2"), POLICY)
    assert publishing.request is not None
    if happened:
        server.send(publishing.request)
    outcome = failed(publishing.answered(None))
    assert outcome.reason is NotPublishedReason.UNCLEAR
    publishing, phases = finish(server, start_publishing(outcome.record, POLICY))
    published(publishing)
    assert len(phases) <= 2
    assert spec_of(server)[0] == "n2"


def test_publishing_in_another_thread() -> None:
    """Recording goes on while a record is published; nothing of it is lost or forgotten."""
    server = ApiServer()
    record = context_record(POD).set_potential_nodes(["n1"])
    publishing = start_publishing(record, POLICY)
    record = record.select_node("n1")
    outcome = published(finish(server, publishing)[0])
    record = record.published(outcome.context, outcome.sent)
    assert record.intent == ContextSpec("n1", ("n1",))
    publishing, phases = finish(server, start_publishing(record, POLICY))
    assert phases == [CHANGE]
    assert spec_of(server) == ("n1", ("n1",))


def test_two_schedulers() -> None:
    """Both record from the same copy: the last to publish is right, as a whole."""
    server = server_with(context_json("n1", ("n1",)))
    one = record_of(server).select_node("n2")
    other = record_of(server).set_potential_nodes(["n3"])
    finish(server, start_publishing(one, POLICY))
    _, phases = finish(server, start_publishing(other, POLICY))
    assert phases == [CHANGE, APPLY]
    assert spec_of(server) == ("n1", ("n3",))


def test_after_binding_the_object_is_deleted() -> None:
    """Deleting asks nothing first; another pod's object is left alone if ours was known."""
    server = server_with(context_json("n1"))
    record = record_of(server)
    request = delete_context(record, POLICY)
    assert request.verb is Verb.DELETE
    assert server.send(request).status == 200
    assert server.send(request).status == 404
    server.seed(context_json("n1", pod=make_pod(uid="next")))
    assert server.send(request).status == 409
