"""Laws of contexts, against server-side apply: what is published is what was meant."""

import copy
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.request import ApiRequest
from dra_core.scheduling.context import (
    ChangeForm,
    ContextPolicy,
    ContextRecord,
    ContextSpec,
    apply_context,
    context_record,
    create_context,
    update_context,
)
from dra_core.scheduling.context_publishing import (
    ContextPublishing,
    NotPublished,
    NotPublishedReason,
    Published,
    start_publishing,
)
from dra_core.testing.api_server import ApiServer
from support.contexts import (
    MANAGER,
    POD,
    POLICY,
    context_json,
    driver_reports,
    finish,
    record_of,
    spec_of,
    stored,
)

Json = dict[str, Any]

POLICIES = [
    POLICY,
    attrs.evolve(POLICY, form=ChangeForm.MERGE_PATCH),
    attrs.evolve(POLICY, form=ChangeForm.MERGE_PATCH_ANY_VERSION),
    ContextPolicy(MANAGER, "v1alpha2"),
    ContextPolicy(MANAGER, "v1alpha1"),
]


def server_with(*objects: Json) -> ApiServer:
    server = ApiServer()
    server.seed(*objects)
    return server


nodes = st.sampled_from(["n1", "n2", "n3"])
lists = st.lists(nodes, max_size=3, unique=True).map(tuple)
specs = st.builds(ContextSpec, st.just("") | nodes, lists)
managers = st.sampled_from([MANAGER, "other"])


def wanted(record: ContextRecord, spec: ContextSpec) -> ContextRecord:
    """Both fields recorded."""
    record = record.set_potential_nodes(spec.potential_nodes)
    return record.select_node(spec.selected_node) if spec.selected_node else record.deselect_node()


def partial_apply(spec: ContextSpec, fields: list[str], manager: str) -> ApiRequest:
    """An apply that leaves fields out, as other clients may send it."""
    full = {"selectedNode": spec.selected_node, "potentialNodes": list(spec.potential_nodes)}
    body: Json = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "PodSchedulingContext",
        "metadata": {"name": POD.name, "namespace": POD.namespace},
        "spec": {name: full[name] for name in fields},
    }
    return POLICY.target(POD.metadata.key).apply(body, manager, force=True)


@st.composite
def histories(draw: st.DrawFn) -> ApiServer:
    """A server with a context of the pod and any earlier managed fields."""
    server = ApiServer()
    policy = attrs.evolve(POLICY, field_manager=draw(managers))
    server.send(create_context(wanted(context_record(POD), draw(specs)), policy))
    if draw(st.booleans()):
        server = server_with(context_json(*draw(specs)))  # nobody manages anything
    for _ in range(draw(st.integers(0, 4))):
        policy = attrs.evolve(POLICY, field_manager=draw(managers))
        record = wanted(record_of(server), draw(specs))
        fields = draw(st.sampled_from([["selectedNode"], ["potentialNodes"], []]))
        match draw(st.integers(0, 3)):
            case 0:
                request = update_context(record, policy)
            case 1:
                request = apply_context(record, policy)
            case 2:
                request = partial_apply(record.intent, fields, policy.field_manager)
            case _:
                driver_reports(server, "gpu", list(draw(lists)))
                continue
        assert server.send(request).status == 200
    return server


@given(histories(), specs, st.booleans(), st.booleans())
def test_an_apply_gives_exactly_the_intended_spec(
    server: ApiServer, spec: ContextSpec, selects: bool, lists_nodes: bool
) -> None:
    """Applied on any base with any earlier managed fields: exactly the intended spec."""
    record = record_of(server)
    if selects:
        record = wanted(record, spec._replace(potential_nodes=record.intent.potential_nodes))
    if lists_nodes:
        record = record.set_potential_nodes(spec.potential_nodes)
    before = stored(server)
    answer = server.send(apply_context(record, POLICY))
    assert answer.status == 200, answer
    assert ContextSpec(*spec_of(server)) == record.intent
    now = stored(server)
    assert before is not None
    assert now is not None
    assert now["status"] == before["status"]
    assert now["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]


@given(histories(), st.data())
def test_an_apply_replayed_on_any_later_base(server: ApiServer, data: st.DataObject) -> None:
    """The same where anything happened between the copy that it was made of and the apply."""
    record = wanted(record_of(server), data.draw(specs))
    request = apply_context(record, POLICY)
    for _ in range(data.draw(st.integers(0, 3))):
        later = wanted(record_of(server), data.draw(specs))
        policy = attrs.evolve(POLICY, field_manager=data.draw(managers))
        build = data.draw(st.sampled_from([update_context, apply_context]))
        server.send(build(later, policy))
        server.send(partial_apply(later.intent, ["selectedNode"], policy.field_manager))
    assert server.send(request).status == 200
    assert ContextSpec(*spec_of(server)) == record.intent


class Script:
    """What happens before each request of a publishing, drawn by Hypothesis."""

    def __init__(self, data: st.DataObject, server: ApiServer, policy: ContextPolicy) -> None:
        self.data, self.server, self.policy = data, server, policy

    def between(self) -> None:
        """Something that others may do."""
        key = POD.metadata.key
        version = self.policy.version
        match self.data.draw(st.sampled_from(["", "touch", "report", "delete", "theirs", "ours"])):
            case "touch":
                self.server.touch(self.policy.target(key))
            case "report" if stored(self.server, self.policy) is not None:
                driver_reports(self.server, "gpu", ["n1"], self.policy)
            case "delete":
                self.server.send(self.policy.target(key).delete())
            case "theirs" if stored(self.server, self.policy) is None:
                self.server.seed(context_json("n9", owner_uid="other", version=version))
            case "ours" if stored(self.server, self.policy) is None:
                self.server.seed(context_json("n3", ("n3",), version=version))

    def answer(self, publishing: ContextPublishing) -> ContextPublishing:
        """Send, lose the request, or lose the answer."""
        assert publishing.request is not None
        fate = self.data.draw(st.sampled_from(["sent", "sent", "sent", "lost", "unheard", 429]))
        if fate in ("lost", 429):
            return publishing.answered(None if fate == "lost" else 429)
        answer = self.server.send(publishing.request)
        if fate == "unheard":
            return publishing.answered(None)
        return publishing.answered(answer.status, answer.body if answer.status < 300 else None)


@given(st.sampled_from(POLICIES), st.booleans(), specs, st.data())
def test_any_interleaving(
    policy: ContextPolicy, exists: bool, spec: ContextSpec, data: st.DataObject
) -> None:
    """Whatever happens: success means the object says it, failure that all is recorded.

    Nothing ever touches the object of another pod, and nothing is made without owner. When
    the disturbance ends, publishing succeeds, unless the object is another pod's.
    """
    server = ApiServer()
    if exists:
        server.seed(context_json("n1", ("n1", "n2"), version=policy.version))
    script = Script(data, server, policy)
    record = wanted(record_of(server, policy), spec)
    publishing = start_publishing(record, policy)
    before = copy.deepcopy(record)
    while publishing.request is not None:
        script.between()
        theirs = stored(server, policy)
        publishing = script.answer(publishing)
        check_foreign(theirs, stored(server, policy))
    assert record == before
    outcome = publishing.outcome
    if isinstance(outcome, NotPublished):
        assert outcome.record.intent == record.intent
        outcome = final(server, policy, outcome.record)
        if isinstance(outcome, NotPublished):
            assert outcome.reason is NotPublishedReason.OTHER_OWNER
            return
    assert isinstance(outcome, Published)
    assert outcome.record.existing == record.intent
    if outcome.context is not None and stored(server, policy) is not None:
        assert ContextSpec(*spec_of(server, policy)) == record.intent


def final(
    server: ApiServer, policy: ContextPolicy, record: ContextRecord
) -> Published | NotPublished | None:
    """Publish without disturbance."""
    publishing, phases = finish(server, start_publishing(record, policy))
    assert len(phases) <= 4
    return publishing.outcome


def check_foreign(before: Json | None, after: Json | None) -> None:
    """An object of another pod is as it was; a new one is the pod's."""
    if before is not None and _controller(before) != POD.metadata.uid:
        assert after == before
    elif after is not None:
        assert _controller(after) == POD.metadata.uid


def _controller(obj: Json) -> str:
    (owner,) = obj["metadata"]["ownerReferences"]
    return str(owner["uid"])
