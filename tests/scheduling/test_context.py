"""What is recorded for a PodSchedulingContext, and the payloads made of it."""

import copy
import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.request import Next, Verb
from dra_core.api.scheduling_context import MAX_NODES
from dra_core.api.wire import decode_pod_scheduling_context
from dra_core.errors import ReadInOtherVersionError
from dra_core.scheduling.context import (
    ChangeForm,
    ContextPolicy,
    ContextRecord,
    ContextSpec,
    apply_context,
    change_context,
    context_record,
    create_context,
    delete_context,
    get_context,
    patch_context,
    update_context,
)
from dra_core.scheduling.errors import (
    ContextNotOwnedError,
    IncompleteContextError,
    PotentialNodesError,
)
from support.contexts import KINDS, MANAGER, POD, POLICY, context_json, make_context

Json = dict[str, Any]
NEW = context_record(POD)


def known(*args: Any, **rest: Any) -> ContextRecord:
    """A record of an object that exists."""
    return context_record(POD, make_context(*args, **rest))


# Recording


def test_recording_makes_a_new_record() -> None:
    """Recording changes nothing but the record that it returns, and makes no call."""
    record = known("n1", ("n1", "n2"))
    before = copy.deepcopy(record)
    changed = record.select_node("n2").set_potential_nodes(["n2", "n3"])
    assert changed.intent == ContextSpec("n2", ("n2", "n3"))
    assert changed.existing == ContextSpec("n1", ("n1", "n2"))
    assert changed.deselect_node().intent == ContextSpec("", ("n2", "n3"))
    assert record == before
    assert not record.dirty


@pytest.mark.parametrize(
    ("record", "dirty"),
    [
        (NEW, False),
        (NEW.deselect_node().set_potential_nodes([]), False),
        (NEW.select_node("n1"), True),
        (NEW.set_potential_nodes(["n1"]), True),
        (known("n1", ("n1",)).select_node("n1").set_potential_nodes(["n1"]), False),
        (known("n1", ("n1",)).select_node("n2"), True),
        (known("n1", ("n1",)).deselect_node(), True),
        (known("n1", ("n1",)).set_potential_nodes([]), True),
        (known("n1", ("n1", "n2")).set_potential_nodes(["n2", "n1"]), True),
        (known("n1", ("n1",)).select_node("n2").select_node("n1"), False),
    ],
)
def test_dirty_only_if_something_differs(record: ContextRecord, dirty: bool) -> None:
    """Something has to be sent only if a recorded change differs from what the object has."""
    assert record.dirty is dirty


def test_what_cannot_be_recorded() -> None:
    """A node has a name; potential nodes are at most 128, and different."""
    with pytest.raises(ValueError, match="deselect_node"):
        NEW.select_node("")
    names = [f"n{number}" for number in range(MAX_NODES)]
    assert NEW.set_potential_nodes(names).intent.potential_nodes == tuple(names)
    for wrong, problem in [([*names, "x"], "at most 128"), (["a", "b", "a"], "not all different")]:
        with pytest.raises(PotentialNodesError, match=problem) as caught:
            NEW.set_potential_nodes(wrong)
        assert caught.value.context == "team-a/web"
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "context",
    [
        make_context(owner_uid="old-uid"),
        make_context(owner_uid=""),
        attrs.evolve(make_context(), metadata=attrs.evolve(make_context().metadata, name="other")),
        attrs.evolve(
            make_context(), metadata=attrs.evolve(make_context().metadata, owner_references=())
        ),
    ],
    ids=["older pod", "no uid", "other name", "no owner"],
)
def test_bug_81_the_context_of_another_pod_is_left_alone(context: Any) -> None:
    """Loading checks that this pod's UID controls the object (k/k#120534)."""
    with pytest.raises(ContextNotOwnedError) as caught:
        context_record(POD, context)
    assert (caught.value.pod, caught.value.pod_uid) == ("team-a/web", "web-uid")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(ContextNotOwnedError):
        NEW.load(context)


def test_an_owner_that_does_not_control_is_none() -> None:
    """A reference to the pod that is not marked as controller is not enough."""
    obj = context_json()
    obj["metadata"]["ownerReferences"][0]["controller"] = False
    with pytest.raises(ContextNotOwnedError, match="controlled by nothing"):
        NEW.load(decode_pod_scheduling_context(obj))


def test_loading_keeps_what_was_recorded() -> None:
    """A newer copy does not forget the wanted changes, it may make them needless."""
    record = NEW.select_node("n1").load(make_context("n1"))
    assert not record.dirty
    assert record.load(make_context("n2")).dirty
    assert record.load(None).dirty
    assert record.load(None).known is None


def test_what_was_sent_is_forgotten_and_nothing_else() -> None:
    """After success the sent changes are forgotten; what was recorded since then stays."""
    sent = known("n1", ("n1",)).select_node("n2").set_potential_nodes(["n2"])
    returned = make_context("n2", ("n2",), resource_version="8")
    assert sent.published(returned, sent) == known("n2", ("n2",), resource_version="8")
    newer = sent.set_potential_nodes(["n2", "n3"])
    after = newer.published(returned, sent)
    assert after.selected_node is None
    assert after.intent == ContextSpec("n2", ("n2", "n3"))
    assert after.dirty


# Payloads

VERSIONS = list(KINDS)


@pytest.mark.parametrize("version", VERSIONS)
def test_create(version: str) -> None:
    """No object yet: create, controlled by the pod, without claiming more than that."""
    policy = ContextPolicy(MANAGER, version)
    request = create_context(NEW.select_node("n1").set_potential_nodes(["n1", "n2"]), policy)
    kind, resource = KINDS[version]
    assert request.verb is Verb.CREATE
    assert request.url == (
        f"/apis/resource.k8s.io/{version}/namespaces/team-a/{resource}?fieldManager={MANAGER}"
    )
    assert request.body == {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": kind,
        "metadata": {
            "name": "web",
            "namespace": "team-a",
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": "web",
                    "uid": "web-uid",
                    "controller": True,
                }
            ],
        },
        "spec": {"selectedNode": "n1", "potentialNodes": ["n1", "n2"]},
    }


def test_bug_85_block_owner_deletion_is_off_by_default() -> None:
    """blockOwnerDeletion needs rights on pods/finalizers: only on request (k/k#123512)."""
    record = NEW.select_node("n1")
    (owner,) = create_context(record, POLICY).body["metadata"]["ownerReferences"]
    assert "blockOwnerDeletion" not in owner
    asked = attrs.evolve(POLICY, block_owner_deletion=True)
    (owner,) = create_context(record, asked).body["metadata"]["ownerReferences"]
    assert owner["blockOwnerDeletion"] is True


@pytest.mark.parametrize("version", VERSIONS)
def test_update_keeps_unknown_fields(version: str) -> None:
    """Update: the whole object with its resourceVersion; unknown fields are kept."""
    obj = context_json("n1", ("n1",), {"gpu": ["n1"]}, version=version, future={"a": None})
    obj["metadata"] |= {"uid": "ctx", "resourceVersion": "7", "managedFields": [{"manager": "x"}]}
    obj["status"]["resourceClaims"][0]["futureHint"] = 1
    before = copy.deepcopy(obj)
    record = context_record(POD, decode_pod_scheduling_context(obj)).deselect_node()
    request = update_context(record, ContextPolicy(MANAGER, version))
    expected = copy.deepcopy(obj)
    del expected["spec"]["selectedNode"]
    assert request.verb is Verb.UPDATE
    assert request.body == expected
    assert obj == before


def test_update_in_another_version_would_lose_fields() -> None:
    """A copy that was read in another version is not written."""
    with pytest.raises(ReadInOtherVersionError):
        update_context(known("n1").deselect_node(), ContextPolicy(MANAGER, "v1alpha2"))


def test_merge_patch_has_what_changed() -> None:
    """Merge patch: what changed, with the UID, and with the resourceVersion if wanted."""
    record = known("n1", ("n1",))
    guarded = attrs.evolve(POLICY, form=ChangeForm.MERGE_PATCH)
    request = change_context(record.deselect_node(), guarded)
    assert request.content_type == "application/merge-patch+json"
    assert request.body == {
        "metadata": {"uid": "ctx", "resourceVersion": "7"},
        "spec": {"selectedNode": None},
    }
    free = attrs.evolve(POLICY, form=ChangeForm.MERGE_PATCH_ANY_VERSION)
    assert change_context(record.set_potential_nodes([]), free).body == {
        "metadata": {"uid": "ctx"},
        "spec": {"potentialNodes": []},
    }
    assert patch_context(record.select_node("n2"), free).body["spec"] == {"selectedNode": "n2"}


def test_bug_81_apply_states_the_full_intent() -> None:
    """Apply: both fields always, an unchanged one as it is, an empty one as "" or []."""
    record = known("n1", ("n1", "n2"), {"gpu": []})

    def spec(changed: ContextRecord) -> Json:
        spec: Json = apply_context(changed, POLICY).body["spec"]
        return spec

    both = {"selectedNode": "n1", "potentialNodes": ["n1", "n2"]}
    assert spec(record) == both
    assert spec(record.select_node("n2")) == both | {"selectedNode": "n2"}
    assert spec(record.deselect_node()) == both | {"selectedNode": ""}
    assert spec(record.set_potential_nodes(["n3"])) == both | {"potentialNodes": ["n3"]}
    assert spec(record.set_potential_nodes([])) == both | {"potentialNodes": []}


def test_apply_is_forced_and_guarded() -> None:
    """Apply: apiVersion, kind, name, namespace, uid and spec, no resourceVersion, forced."""
    request = apply_context(known("n1").select_node("n2"), POLICY)
    assert request.query == (("fieldManager", MANAGER), ("force", "true"))
    assert request.body == {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "PodSchedulingContext",
        "metadata": {"name": "web", "namespace": "team-a", "uid": "ctx"},
        "spec": {"selectedNode": "n2", "potentialNodes": []},
    }


def test_where_nodes_are_a_set_there_is_no_apply() -> None:
    """v1alpha1 and early v1alpha2: an apply would only add."""
    for policy in (
        ContextPolicy(MANAGER, "v1alpha1"),
        ContextPolicy(MANAGER, "v1alpha2", nodes_are_a_set=True),
    ):
        assert not policy.can_apply
        with pytest.raises(ValueError, match="would only add"):
            apply_context(known("n1"), policy)
    assert ContextPolicy(MANAGER, "v1alpha2").can_apply


@pytest.mark.parametrize("build", [update_context, patch_context, apply_context])
def test_changing_needs_a_copy(build: Any) -> None:
    """Without UID and resourceVersion a change could hit another object."""
    record = NEW.select_node("n1")
    for context, missing in [
        (None, "a copy of it"),
        (make_context(uid=""), "metadata.uid"),
        (make_context(resource_version=""), "metadata.resourceVersion"),
    ]:
        with pytest.raises(IncompleteContextError) as caught:
            build(record.load(context), POLICY)
        assert caught.value.missing == missing
        assert missing in str(pickle.loads(pickle.dumps(caught.value)))


def test_get_and_delete() -> None:
    """After binding the object is deleted without asking whether it exists."""
    assert get_context(NEW, POLICY).method == "GET"
    request = delete_context(NEW, POLICY)
    assert request.path == get_context(NEW, POLICY).path
    assert request.body == {"apiVersion": "v1", "kind": "DeleteOptions"}
    assert request.meaning(404).then is Next.DONE
    assert delete_context(known("n1"), POLICY).body["preconditions"] == {"uid": "ctx"}


def test_versions() -> None:
    """Only versions that had the kind can be meant."""
    with pytest.raises(ValueError, match="unknown version 'v1'"):
        ContextPolicy(MANAGER, "v1")
    assert ContextPolicy(MANAGER, "v1alpha1").kind == "PodScheduling"


nodes = st.sampled_from(["n1", "n2", "n3", "n4"])
lists = st.lists(nodes, max_size=4, unique=True).map(tuple)


@given(st.none() | st.builds(make_context, st.just("") | nodes, lists), st.data())
def test_the_last_change_of_each_field_counts(context: Any, data: st.DataObject) -> None:
    """Whatever is recorded in whatever order, the intent is the last of each, else as it is."""
    record = context_record(POD, context)
    spec = record.intent
    for _ in range(data.draw(st.integers(0, 5))):
        match data.draw(st.integers(0, 2)):
            case 0:
                spec = spec._replace(selected_node=data.draw(nodes))
                record = record.select_node(spec.selected_node)
            case 1:
                spec = spec._replace(selected_node="")
                record = record.deselect_node()
            case _:
                spec = spec._replace(potential_nodes=data.draw(lists))
                record = record.set_potential_nodes(spec.potential_nodes)
    assert record.intent == spec
    assert record.dirty == (spec != context_record(POD, context).intent)
