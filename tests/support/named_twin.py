"""The slow twin of the allocator of named resources, and problems to compare them on.

Everything is worked out anew from the JSON: parameters, order, what is in use. Selectors
are of a small family whose meaning is written down here as Python. There is nothing to
undo and nothing is left out, so the cost is exponential: small problems only.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import attrs
from hypothesis import strategies as st

from dra_core.allocator.results import Allocated, Undecided, Unsatisfiable
from dra_core.errors import SelectorFailedError
from dra_core.inventory.allocated import AllocatedState
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.allocation import NamedAllocator
from dra_core.v1alpha2.inventory import NamedInventory
from dra_core.v1alpha2.objects import AllocationResult
from dra_core.v1alpha2.parameters import ParameterStore
from dra_core.v1alpha2.selectors import InstanceSelectors
from support import named_json as objects

Json = dict[str, Any]

NODE = "n1"
DRIVERS = ("a", "b")
MODELS = ("x", "y")


class FailsError(Exception):
    """A selector fails on an instance."""


def _string(instance: Json, name: str) -> str:
    for attribute in instance.get("attributes", ()):
        if attribute["name"] == name and "string" in attribute:
            return str(attribute["string"])
    raise FailsError(name)


def _size(instance: Json) -> int:
    for attribute in instance.get("attributes", ()):
        if attribute["name"] == "size" and "int" in attribute:
            return int(attribute["int"])
    raise FailsError("size")


def _either(instance: Json, *parts: Callable[[Json], bool]) -> bool:
    """``||`` of CEL: a part that fails does not count if the other is true."""
    failed: FailsError | None = None
    for part in parts:
        try:
            if part(instance):
                return True
        except FailsError as error:
            failed = error
    if failed is not None:
        raise failed
    return False


SELECTORS: Mapping[str, Callable[[Json], bool]] = {
    "true": lambda instance: True,
    "false": lambda instance: False,
    'attributes.string["model"] == "x"': lambda i: _string(i, "model") == "x",
    'attributes.string["model"] != "x"': lambda i: _string(i, "model") != "x",
    'attributes.int["size"] > 1': lambda i: _size(i) > 1,
    'attributes.int["size"] <= 2': lambda i: _size(i) <= 2,
    'attributes.string["model"] == "y" || attributes.int["size"] == 1': lambda instance: _either(
        instance, lambda i: _string(i, "model") == "y", lambda i: _size(i) == 1
    ),
}
"""Expressions and what they mean. Instances of the usual problems have both attributes."""


@attrs.frozen
class Problem:
    """Everything one call is given, as JSON. ``node`` is the node's name."""

    claims: tuple[Json, ...]
    slices: tuple[Json, ...]
    classes: tuple[Json, ...]
    parameters: tuple[Json, ...]
    allocated: tuple[Json, ...] = ()
    node: str = NODE


class Picked(NamedTuple):
    """An instance: driver, node ("" for none), name."""

    driver: str
    node: str
    name: str


class Wanted(NamedTuple):
    """One request: the claim's position, the driver, the selectors that must hold."""

    claim: int
    driver: str
    selectors: tuple[str, ...]


def wanted(problem: Problem) -> dict[str, list[Wanted]]:
    """What is asked of each driver, in order; drivers in order of their first appearance."""
    classes = {obj["metadata"]["name"]: obj for obj in problem.classes}
    parameters = {obj["metadata"]["name"]: obj for obj in problem.parameters}
    found: dict[str, list[Wanted]] = {}
    for number, claim in enumerate(problem.claims):
        of_class = classes[claim["spec"]["resourceClassName"]]
        filters: dict[str, str] = {}
        if "parametersRef" in of_class:
            for entry in parameters[of_class["parametersRef"]["name"]]["filters"]:
                filters.setdefault(entry["driverName"], entry["namedResources"]["selector"])
        if "parametersRef" in claim["spec"]:
            requests = [
                (entry["driverName"], request["namedResources"]["selector"])
                for entry in parameters[claim["spec"]["parametersRef"]["name"]]["driverRequests"]
                for request in entry["requests"]
            ]
        else:
            requests = [(of_class["driverName"], "true")]
        for driver in dict.fromkeys(driver for driver, _ in requests):
            own = [driver] * (driver in filters)
            for selector in (s for d, s in requests if d == driver):
                texts = (*(filters[d] for d in own), selector)
                found.setdefault(driver, []).append(Wanted(number, driver, texts))
    return found


def in_use(problem: Problem) -> set[Picked]:
    """What the handles of allocated claims hold."""
    return {
        Picked(handle["driverName"], data.get("nodeName", ""), result["namedResources"]["name"])
        for claim in problem.allocated
        for handle in claim["status"]["allocation"].get("resourceHandles", ())
        for data in [handle["structuredData"]]
        for result in data["results"]
    }


def candidates(problem: Problem, driver: str) -> list[tuple[Picked, Json]]:
    """All free instances for the node in order: its own first, then those of no node."""
    found: dict[Picked, Json] = {}
    for place in (problem.node, ""):
        for obj in sorted(problem.slices, key=lambda obj: str(obj["metadata"]["name"])):
            if obj["driverName"] == driver and obj.get("nodeName", "") == place:
                for instance in obj["namedResources"]["instances"]:
                    found.setdefault(Picked(driver, place, instance["name"]), instance)
    taken = in_use(problem)
    return [(picked, instance) for picked, instance in found.items() if picked not in taken]


def matches(want: Wanted, instance: Json) -> bool:
    """Whether filter and selector hold, asked in this order. Raises FailsError."""
    return all(SELECTORS[text](instance) for text in want.selectors)


def _fits(want: Wanted, pick: Picked, before: Sequence[tuple[Wanted, Picked]]) -> bool:
    """Whether a pick goes with those before it: used once, one place per claim."""
    return all(
        pick != other and (want.claim != earlier.claim or pick.node == other.node)
        for earlier, other in before
    )


def first_solution(problem: Problem) -> list[tuple[Wanted, Picked]] | None:
    """The first solution in order, found by trying everything; None if there is none.

    Raises FailsError where a selector fails on an instance that is tried.
    """
    whole: list[tuple[Wanted, Picked]] = []
    for driver, wants in wanted(problem).items():
        supply = candidates(problem, driver)

        def search(picks: list[tuple[Wanted, Picked]]) -> list[tuple[Wanted, Picked]] | None:
            if len(picks) == len(wants):  # noqa: B023 - called at once
                return picks
            want = wants[len(picks)]  # noqa: B023
            for pick, instance in supply:  # noqa: B023
                if _fits(want, pick, picks) and matches(want, instance):
                    found = search([*picks, (want, pick)])
                    if found is not None:
                        return found
            return None

        found = search([])
        if found is None:
            return None
        whole += found
    return whole


def solutions(problem: Problem) -> Iterator[list[tuple[Wanted, Picked]]]:
    """All assignments of instances to requests that keep the rules, in no special order."""
    wants = [want for of_driver in wanted(problem).values() for want in of_driver]
    supplies = [candidates(problem, want.driver) for want in wants]
    for chosen in itertools.product(*supplies):
        picks = [(want, pick) for want, (pick, _) in zip(wants, chosen, strict=True)]
        good = all(
            matches(want, instance) for (want, _), (_, instance) in zip(picks, chosen, strict=True)
        )
        if good and all(_fits(w, p, picks[:place]) for place, (w, p) in enumerate(picks)):
            yield picks


# --- the allocator on the same problem -----------------------------------------------

COMPILED = InstanceSelectors()
"""For all problems: compiling takes most of the time otherwise."""


def allocator_for(problem: Problem) -> NamedAllocator:
    """An allocator made anew of the problem's objects."""
    classes = [wire.decode_resource_class(obj) for obj in problem.classes]
    parameters = [
        wire.decode_class_parameters(obj)
        if obj["kind"] == "ResourceClassParameters"
        else wire.decode_claim_parameters(obj)
        for obj in problem.parameters
    ]
    return NamedAllocator(
        NamedInventory(wire.decode_resource_slice(obj) for obj in problem.slices),
        {one.name: one for one in classes},
        ParameterStore(parameters),
        selectors=COMPILED,
    )


def allocate(problem: Problem, **limits: Any) -> Allocated | Unsatisfiable | Undecided:
    """One call. Raises AllocationError."""
    claims = [wire.decode_resource_claim(obj) for obj in problem.claims]
    state = AllocatedState.from_claims(wire.decode_resource_claim(obj) for obj in problem.allocated)
    labelled = objects.node(problem.node)
    return allocator_for(problem).allocate(claims, labelled, state, **limits)


def picks_of(outcome: Allocated) -> list[tuple[int, Picked]]:
    """What claims got: the claim's position and the instance, claims in order."""
    found = []
    for number, result in enumerate(outcome.results):
        if not isinstance(result, AllocationResult):
            raise TypeError(f"{result} is of another version")
        found += [(number, Picked(*one.device_id)) for one in result.results]
    return found


def answer(problem: Problem, **limits: Any) -> list[tuple[int, Picked]] | str:
    """The picks, sorted, or "fails" or "none"."""
    try:
        outcome = allocate(problem, **limits)
    except SelectorFailedError as error:
        if error.reason != "selector-runtime":
            raise
        return "fails"
    if isinstance(outcome, Allocated):
        return sorted(picks_of(outcome))
    return "none" if isinstance(outcome, Unsatisfiable) else "undecided"


def expected_answer(problem: Problem) -> list[tuple[int, Picked]] | str:
    """The same by the twin."""
    try:
        found = first_solution(problem)
    except FailsError:
        return "fails"
    return "none" if found is None else sorted((want.claim, pick) for want, pick in found)


# --- strategies ----------------------------------------------------------------------


@st.composite
def instances(draw: st.DrawFn, *, sound: bool, least: int = 0, most: int = 4) -> list[Json]:
    """Instances with a model and a size; not ``sound``: some lack one of them."""
    made = []
    for number in range(draw(st.integers(least, most))):
        attributes: list[Json] = [
            {"name": "model", "string": draw(st.sampled_from(MODELS))},
            {"name": "size", "int": draw(st.integers(1, 3))},
        ]
        if not sound and draw(st.integers(0, 3)) == 0:
            attributes.pop(draw(st.integers(0, 1)))
        made.append(objects.instance_json(f"i{number}", attributes))
    return made


CHOOSING = tuple(text for text in SELECTORS if text != "false")


def problems(*, sound: bool = True, most_claims: int = 3) -> st.SearchStrategy[Problem]:
    """Small problems: mixed ones with everything in them, and tight ones that take search.

    ``sound``: no selector fails on an instance.
    """
    return _mixed(sound, most_claims) | _tight(sound, most_claims) | _tight(sound, most_claims)


@st.composite
def _tight(draw: st.DrawFn, sound: bool, most_claims: int) -> Problem:
    """One driver, with hardly more instances than are asked for, some of them of no node."""
    places = (NODE, "") if draw(st.booleans()) else (NODE,)
    slices = tuple(
        objects.slice_json(f"s{number}", node, "a", draw(instances(sound=sound, least=1)))
        for number, node in enumerate(places)
    )
    supply = sum(len(one["namedResources"]["instances"]) for one in slices)
    asked = draw(st.integers(max(1, supply - 2), supply))
    texts = [draw(st.sampled_from(CHOOSING)) for _ in range(asked)]
    count = draw(st.integers(1, min(most_claims, asked)))
    ends = sorted(draw(st.sets(st.integers(1, asked), min_size=count, max_size=count)) | {asked})
    claims, parameters = [], []
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        name = f"p{number}"
        parameters.append(objects.claim_parameters_json(name, "ns", ("a", texts[start:end])))
        reference = objects.direct("ResourceClaimParameters", name)
        claims.append(objects.claim_json(f"c{number}", "gpu", parameters=reference))
    classes = (objects.class_json("gpu", "a"),)
    return Problem(tuple(claims), slices, classes, tuple(parameters))


@st.composite
def _mixed(draw: st.DrawFn, sound: bool, most_claims: int) -> Problem:
    """Up to three claims, two drivers, filters, several slices of any place."""
    places = st.tuples(st.sampled_from(DRIVERS), st.sampled_from([NODE, NODE, "", "n2"]))
    slices = [
        objects.slice_json(
            f"{draw(st.sampled_from('pqr'))}{number}", node, driver, draw(instances(sound=sound))
        )
        for number, (driver, node) in enumerate(draw(st.lists(places, min_size=1, max_size=4)))
    ]
    texts = st.sampled_from((*CHOOSING, *CHOOSING, "false"))
    filters = draw(st.lists(st.tuples(st.sampled_from(DRIVERS), texts), max_size=2))
    of_class = objects.direct("ResourceClassParameters", "filters", "ns")
    classes = (
        objects.class_json("plain", "a"),
        objects.class_json("filtered", "b", parametersRef=of_class),
    )
    parameters = [objects.class_parameters_json("filters", "ns", *filters)]
    entry = st.tuples(st.sampled_from(DRIVERS), st.lists(texts, max_size=2))
    claims = []
    for number in range(draw(st.integers(1, most_claims))):
        entries, name = draw(st.lists(entry, max_size=2)), f"p{number}"
        made = objects.claim_parameters_json(name, "ns", *entries, shareable=draw(st.booleans()))
        parameters.append(made)
        named = draw(st.integers(0, 4)) > 0
        reference = objects.direct("ResourceClaimParameters", name) if named else None
        class_name = draw(st.sampled_from(["plain", "filtered"]))
        claims.append(objects.claim_json(f"c{number}", class_name, parameters=reference))
    held = draw(allocated_claims())
    return Problem(tuple(claims), tuple(slices), classes, tuple(parameters), held)


@st.composite
def allocated_claims(draw: st.DrawFn) -> tuple[Json, ...]:
    """Claims that hold instances, some of which there may be."""
    held = st.tuples(
        st.sampled_from(DRIVERS),
        st.sampled_from([NODE, "", "n2"]),
        st.sampled_from(["i0", "i1", "i2"]),
    )
    return tuple(
        objects.claim_json(
            f"held-{number}",
            allocation=objects.allocation_json(node, objects.handle_json(driver, node, name)),
        )
        for number, (driver, node, name) in enumerate(draw(st.lists(held, max_size=2)))
    )
