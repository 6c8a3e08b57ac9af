"""Which nodes drivers are asked about, and when a node is selected."""

import random
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.scheduling_context import MAX_NODES
from dra_core.scheduling.context import ContextRecord, ContextSpec, context_record
from dra_core.scheduling.context_nodes import (
    ContextReservation,
    ReserveAnswer,
    choose_potential_nodes,
    propose_node,
    unsuitable_claims,
)
from support.contexts import POD, make_context

NOTHING, PUBLISH, WAIT = ReserveAnswer.NOTHING, ReserveAnswer.PUBLISH, ReserveAnswer.WAIT
NEW = context_record(POD)
MANY = [f"n{number:03}" for number in range(300)]


def first(names: Sequence[str], count: int) -> Sequence[str]:
    """A sampler without surprises."""
    return names[:count]


def no_sample(names: Sequence[str], count: int) -> Sequence[str]:
    raise AssertionError("nothing to sample")


def known(*args: Any, **rest: Any) -> ContextRecord:
    return context_record(POD, make_context(*args, **rest))


# Potential nodes


@pytest.mark.parametrize(
    ("fitting", "existing", "expected"),
    [
        (["n2", "n1"], [], ("n1", "n2")),
        (["n1", "n2"], ["n2", "n1"], None),
        (["n1"], ["n3", "n2", "n1"], None),  # a superset is good enough
        (["n1", "n4"], ["n3", "n2", "n1"], ("n1", "n4")),
        ([], ["n1"], None),
        (["n1", "n1"], [], ("n1",)),
    ],
)
def test_potential_nodes(
    fitting: list[str], existing: list[str], expected: tuple[str, ...] | None
) -> None:
    """Recorded when a fitting node is missing from the object's list; sorted."""
    assert choose_potential_nodes(fitting, existing, no_sample) == expected


def test_bug_79_one_fitting_node_is_asked_about() -> None:
    """Only one node fits: the list is that node (k/k#120871)."""
    assert choose_potential_nodes(["n7"], ["n1", "n2"], no_sample) == ("n7",)
    reservation = propose_node(NEW, "n7", ["n7"], ["a", "b"], no_sample)
    assert reservation.record.intent == ContextSpec("", ("n7",))
    assert reservation.answer is PUBLISH


def test_up_to_128_nodes_are_not_sampled() -> None:
    """All fitting nodes are asked about as long as the API allows that many."""
    assert choose_potential_nodes(MANY[:MAX_NODES], [], no_sample) == tuple(MANY[:MAX_NODES])


@given(
    st.permutations(MANY),
    st.integers(MAX_NODES + 1, len(MANY)),
    st.integers(0, len(MANY) - 1),
    st.integers(),
)
def test_more_are_sampled(names: list[str], count: int, place: int, seed: int) -> None:
    """More than 128: a random sample of the fitting with the selected node in it; sorted."""
    fitting, selected = names[:count], names[place]
    chosen = choose_potential_nodes(fitting, [], random.Random(seed).sample, selected)
    assert chosen is not None
    assert len(chosen) == len(set(chosen)) == MAX_NODES
    assert list(chosen) == sorted(chosen)
    assert set(chosen) <= set(fitting)
    assert (selected in chosen) or selected not in fitting
    # The source of randomness decides, not the order in which the nodes were given.
    again = choose_potential_nodes(fitting[::-1], [], random.Random(seed).sample, selected)
    assert again == chosen


def test_the_sample_is_random() -> None:
    """Another source of randomness means other nodes; each has its chance."""
    samples = [choose_potential_nodes(MANY, [], random.Random(n).sample) for n in range(40)]
    assert len(set(samples)) == 40
    assert set().union(*(sample or () for sample in samples)) == set(MANY)


# Selecting


def propose(
    record: ContextRecord,
    node: str = "n1",
    fitting: Sequence[str] = ("n1", "n2"),
    pending: Sequence[str] = ("gpu",),
    **rest: Any,
) -> ContextReservation:
    return propose_node(record, node, fitting, pending, first, **rest)


def test_nothing_pending() -> None:
    """Without a pending claim there is nothing to tell anybody."""
    assert propose(NEW, pending=[]) == ContextReservation(NEW, NOTHING)


def test_one_pending_claim_and_nothing_else() -> None:
    """Exactly one pending and nothing else to allocate here: select the node at once."""
    reservation = propose(NEW)
    assert reservation.record.intent == ContextSpec("n1", ("n1", "n2"))
    assert reservation.answer is PUBLISH
    # Then the pod waits for the driver.
    assert propose(known("n1", ("n1", "n2"))).answer is WAIT


def test_something_else_to_allocate_here() -> None:
    """A claim that a scheduler allocates, too: ask first, or it may be allocated in vain."""
    reservation = propose(NEW, others_to_allocate=True)
    assert reservation.record.intent == ContextSpec("", ("n1", "n2"))
    assert reservation.answer is PUBLISH
    asked = known("", ("n1", "n2"))
    assert propose(asked, others_to_allocate=True).answer is WAIT
    told = known("", ("n1", "n2"), {"gpu": ["n2"]})
    assert propose(told, others_to_allocate=True).record.intent.selected_node == "n1"


def test_several_pending_claims() -> None:
    """Several: select only when every pending one has status."""
    pending = ["gpu", "net"]
    reservation = propose(NEW, pending=pending)
    assert reservation.record.intent == ContextSpec("", ("n1", "n2"))
    partly = known("", ("n1", "n2"), {"gpu": []})
    assert propose(partly, pending=pending).answer is WAIT
    fully = known("", ("n1", "n2"), {"gpu": [], "net": ["n2"], "other": []})
    reservation = propose(fully, pending=pending)
    assert reservation.record.intent == ContextSpec("n1", ("n1", "n2"))
    assert reservation.answer is PUBLISH


def test_another_node_than_the_selected_one() -> None:
    """The node that was picked now replaces the selected one, if it may be selected."""
    record = known("n2", ("n1", "n2"), {"gpu": ["n2"]})
    assert propose(record).record.intent.selected_node == "n1"
    pending = ["gpu", "net"]
    assert propose(record, pending=pending).answer is WAIT
    assert propose(record, pending=pending).record.intent.selected_node == "n2"


def test_a_fitting_node_nobody_was_asked_about() -> None:
    """Selected or not, a missing node makes the list be published again."""
    record = known("n1", ("n1",))
    reservation = propose(record)
    assert reservation.record.intent == ContextSpec("n1", ("n1", "n2"))
    assert reservation.answer is PUBLISH


def test_bug_79_the_selected_node_is_a_potential_one() -> None:
    """A driver need not look at a selected node outside potentialNodes (k/k#120871)."""
    asked = known("", tuple(MANY[:MAX_NODES]), {"gpu": []})
    reservation = propose(asked, node="n200", fitting=MANY)
    assert reservation.record.intent.selected_node == "n200"
    assert "n200" in reservation.record.intent.potential_nodes
    assert len(reservation.record.intent.potential_nodes) == MAX_NODES


def test_bug_79_a_node_that_was_not_scored_is_asked_about() -> None:
    """The node that was picked is a potential one, also if it is not among those given."""
    for fitting in (["n1", "n2"], []):
        reservation = propose_node(NEW, "n3", fitting, ["a"], no_sample)
        assert reservation.record.intent == ContextSpec("n3", (*fitting, "n3"))


def test_what_an_earlier_attempt_recorded_gives_way() -> None:
    """Recorded and never published: this attempt decides again, from the object."""
    stale = known("", ("n1", "n2")).select_node("n9").set_potential_nodes(["n9"])
    reservation = propose(stale, pending=["gpu", "net"])
    assert reservation.answer is WAIT
    assert reservation.record.intent == ContextSpec("", ("n1", "n2"))
    # A deselection is no choice of an attempt; it stays wanted.
    deselected = known("n2", ("n1", "n2")).deselect_node()
    reservation = propose(deselected, pending=["gpu", "net"])
    assert reservation.answer is PUBLISH
    assert reservation.record.intent == ContextSpec("", ("n1", "n2"))
    assert propose(deselected).record.intent == ContextSpec("n1", ("n1", "n2"))


node_names = st.sampled_from(["n1", "n2", "n3", "n4"])
reports = st.dictionaries(st.sampled_from("abc"), st.lists(node_names, max_size=2, unique=True))


@given(
    st.none()
    | st.builds(
        make_context,
        st.just("") | node_names,
        st.lists(node_names, max_size=4, unique=True).map(tuple),
        reports,
    ),
    st.lists(node_names, min_size=1, unique=True),
    st.lists(st.sampled_from("abc"), unique=True, min_size=1),
    st.booleans(),
)
def test_attempts_come_to_rest(
    context: Any, fitting: list[str], pending: list[str], others: bool
) -> None:
    """Publishing what an attempt recorded leaves the next one, same node, with nothing to record.

    And the selected node that it records is always among the potential ones.
    """
    node = fitting[0]
    record = context_record(POD, context)
    one = propose(record, node, fitting, pending, others_to_allocate=others)
    assert one.answer is (PUBLISH if one.record.dirty else WAIT)
    intent = one.record.intent
    assert set(fitting) <= set(intent.potential_nodes)
    if one.record.selected_node is not None:
        assert intent.selected_node == node in intent.potential_nodes
    returned = attrs.evolve(
        make_context() if context is None else context,
        selected_node=intent.selected_node,
        potential_nodes=intent.potential_nodes,
    )
    after = one.record.published(returned, one.record)
    assert propose(after, node, fitting, pending, others_to_allocate=others).answer is WAIT


# What drivers said


def test_unsuitable_nodes() -> None:
    """A node that a driver found unsuitable for a pending claim is out; no word is no no."""
    context = make_context("", (), {"gpu": ["n1", "n2"], "net": ["n2"], "disk": []})
    assert unsuitable_claims(context, "n1", ["net", "gpu"]) == ("gpu",)
    assert unsuitable_claims(context, "n2", ["net", "gpu", "other"]) == ("net", "gpu")
    assert unsuitable_claims(context, "n2", ["disk"]) == ()
    assert unsuitable_claims(context, "n3", ["net", "gpu"]) == ()
    assert unsuitable_claims(None, "n1", ["gpu"]) == ()
