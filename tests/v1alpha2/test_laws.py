"""What holds of the allocator of named resources, for small problems of every kind."""

import copy
import itertools
import random
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.allocator.results import Allocated, Undecided, Unsatisfiable
from dra_core.explanation import explain, lines
from dra_core.v1alpha2.allocation import on_node
from dra_core.v1alpha2.objects import AllocationResult
from support import named_json as objects
from support import named_twin as twin

Json = dict[str, Any]


@given(twin.problems())
def test_the_answer_is_the_first_solution(problem: twin.Problem) -> None:
    """Complete and first in order: the answer is that of trying everything."""
    assert twin.answer(problem) == twin.expected_answer(problem)


@given(twin.problems(sound=False))
def test_selectors_that_fail_end_the_search_where_it_meets_them(problem: twin.Problem) -> None:
    """With instances on which selectors fail the answer is that of the plain search, too."""
    assert twin.answer(problem) == twin.expected_answer(problem)


@given(twin.problems(most_claims=2))
def test_a_solution_is_found_exactly_when_there_is_one(problem: twin.Problem) -> None:
    """Whatever the order: any assignment that keeps the rules counts as a solution."""
    if sum(len(wants) for wants in twin.wanted(problem).values()) > 5:
        return
    exists = next(twin.solutions(problem), None) is not None
    assert isinstance(twin.allocate(problem), Allocated if exists else Unsatisfiable)


@given(twin.problems())
def test_what_is_allocated_keeps_the_rules(problem: twin.Problem) -> None:
    """Each request has a free instance that matches; none is used twice; one handle per driver
    that is asked for something, in order, each for one place; nothing else is written."""
    outcome = twin.allocate(problem)
    if not isinstance(outcome, Allocated):
        return
    picks = [pick for _, pick in twin.picks_of(outcome)]
    assert len(set(picks)) == len(picks)
    wants = twin.wanted(problem)
    parameters = {obj["metadata"]["name"]: obj for obj in problem.parameters}
    assert len(outcome.results) == len(problem.claims)
    for number, (result, claim) in enumerate(zip(outcome.results, problem.claims, strict=True)):
        assert isinstance(result, AllocationResult)
        asked = {d: [w for w in ws if w.claim == number] for d, ws in wants.items()}
        drivers = [handle.driver_name for handle in result.resource_handles]
        reference = claim["spec"].get("parametersRef")
        default: Json = {"shareable": True, "driverRequests": [{"driverName": d} for d in asked]}
        given_parameters = parameters[reference["name"]] if reference else default
        named = [entry["driverName"] for entry in given_parameters["driverRequests"]]
        assert drivers == [driver for driver in dict.fromkeys(named) if asked.get(driver)]
        for handle in result.resource_handles:
            data = handle.structured_data
            assert data is not None
            assert data.node_name in ("", problem.node)
            supply = dict(twin.candidates(problem, handle.driver_name))
            assert len(data.results) == len(asked[handle.driver_name])
            for want, one in zip(asked[handle.driver_name], data.results, strict=True):
                name = one.name or ""
                pick = twin.Picked(handle.driver_name, data.node_name, name)
                assert twin.matches(want, supply[pick])
        assert result.shareable is given_parameters.get("shareable", False)
        assert result.node_selector == on_node(problem.node)


@given(twin.problems(), st.randoms(use_true_random=False))
def test_the_order_in_which_objects_come_plays_no_part(
    problem: twin.Problem, chance: random.Random
) -> None:
    """Slices, parameters and classes may come in any order: the same answer, the same reasons."""
    shuffled = attrs.evolve(
        problem,
        slices=tuple(chance.sample(problem.slices, len(problem.slices))),
        parameters=tuple(chance.sample(problem.parameters, len(problem.parameters))),
        classes=tuple(chance.sample(problem.classes, len(problem.classes))),
        allocated=tuple(chance.sample(problem.allocated, len(problem.allocated))),
    )
    assert twin.allocate(shuffled) == twin.allocate(problem)


@given(twin.problems(sound=False))
def test_the_input_stays_as_it_is(problem: twin.Problem) -> None:
    """Nothing that is given changes, and a second call says the same."""
    before = copy.deepcopy(problem)
    first = twin.answer(problem)
    assert problem == before
    assert twin.answer(problem) == first


@given(twin.problems(), st.data())
def test_an_instance_that_is_not_picked_may_go(problem: twin.Problem, data: st.DataObject) -> None:
    """Without an instance that nobody got the answer stays the same."""
    outcome = twin.allocate(problem)
    if not isinstance(outcome, Allocated):
        return
    picked = {pick for _, pick in twin.picks_of(outcome)}
    slices = copy.deepcopy(problem.slices)
    spare = [
        (obj["namedResources"]["instances"], instance)
        for obj in slices
        for instance in obj["namedResources"]["instances"]
        if (obj["driverName"], obj.get("nodeName", ""), instance["name"]) not in picked
    ]
    if not spare:
        return
    found, instance = data.draw(st.sampled_from(spare))
    found.remove(instance)
    assert twin.answer(attrs.evolve(problem, slices=slices)) == twin.answer(problem)


@given(twin.problems(), st.data())
def test_what_does_not_fit_does_not_fit_with_less(
    problem: twin.Problem, data: st.DataObject
) -> None:
    """Fewer slices never help, and neither does another claim that holds something."""
    if twin.answer(problem) != "none":
        return
    left = data.draw(st.sets(st.sampled_from(range(len(problem.slices))))) if problem.slices else ()
    fewer = tuple(problem.slices[index] for index in sorted(left))
    assert twin.answer(attrs.evolve(problem, slices=fewer)) == "none"
    more = (*problem.allocated, *data.draw(twin.allocated_claims()))
    assert twin.answer(attrs.evolve(problem, allocated=more)) == "none"


@given(twin.problems())
def test_every_no_has_a_reason(problem: twin.Problem) -> None:
    """The explanation of what does not fit names a request, and its numbers are right."""
    outcome = twin.allocate(problem)
    if not isinstance(outcome, Unsatisfiable):
        return
    assert "request" in "\n".join(lines(explain(outcome)))
    (conflict,) = outcome.conflicts
    assert conflict.needed > conflict.available or not conflict.requests
    wants = [want for of_driver in twin.wanted(problem).values() for want in of_driver]
    for report in outcome.requests:
        driver, _, index = report.request.rstrip("]").partition("[")
        own = [w for w in wants if (w.claim, w.driver) == (report.claim, driver)]
        want = own[int(index)]
        free = dict(twin.candidates(problem, driver))
        assert report.usable == sum(twin.matches(want, one) for one in free.values())
        rejected = [tuple(device) for one in report.rejected for device in one.devices]
        everything = dict(twin.candidates(attrs.evolve(problem, allocated=()), driver))
        assert len(rejected) + report.usable == len(everything)
        assert set(rejected) <= set(everything)


@given(twin.problems(sound=False), st.integers(0, 12))
def test_a_short_budget_gives_no_wrong_answer(problem: twin.Problem, budget: int) -> None:
    """A call that is stopped says so; otherwise it says what it says with time enough."""
    told = twin.answer(problem, budget=budget)
    assert told in ("undecided", twin.answer(problem))


@given(twin.problems(sound=False))
def test_a_call_that_is_over_before_it_began_does_nothing(problem: twin.Problem) -> None:
    """Deadline and cancellation are asked first."""
    for limit in ("deadline", "cancel"):
        outcome = twin.allocate(problem, **{limit: lambda: True})
        assert isinstance(outcome, Undecided)
        assert outcome.steps == 0


# --- the twin itself ---------------------------------------------------------------------


def small(*selectors: str, models: str = "xy") -> twin.Problem:
    """One claim, one driver, an instance per letter of ``models``."""
    given_instances = [
        objects.instance_json(f"i{n}", [{"name": "model", "string": m}, {"name": "size", "int": 1}])
        for n, m in enumerate(models)
    ]
    return twin.Problem(
        (objects.claim_json(parameters=objects.direct("ResourceClaimParameters", "p")),),
        (objects.slice_json("s", twin.NODE, "a", given_instances),),
        (objects.class_json("gpu", "a"),),
        (objects.claim_parameters_json("p", "ns", ("a", selectors)),),
    )


X, NOT_X = 'attributes.string["model"] == "x"', 'attributes.string["model"] != "x"'


@pytest.mark.parametrize(
    ("problem", "names"),
    [
        (small("true"), ["i0"]),
        (small(NOT_X, "true"), ["i1", "i0"]),
        (small("true", X), ["i1", "i0"]),
        (small("true", X, models="xx"), ["i0", "i1"]),
        (small(X, X), None),
        (small("true", "true", "true"), None),
        (small(), []),
    ],
)
def test_the_twin_knows_small_answers(problem: twin.Problem, names: list[str] | None) -> None:
    """Answers that can be told by hand."""
    found = twin.first_solution(problem)
    told = None if found is None else [pick.name for _, pick in found]
    assert told == names
    assert (next(twin.solutions(problem), None) is None) is (names is None)


def test_the_twin_finds_every_solution() -> None:
    """Two requests for anything on three instances: six ways."""
    problem = small("true", "true", models="xyx")
    found = {tuple(pick.name for _, pick in picks) for picks in twin.solutions(problem)}
    assert found == set(itertools.permutations(["i0", "i1", "i2"], 2))
