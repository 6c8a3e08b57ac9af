"""``allocate`` and ``lint`` on dumps with named resources."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import commands
from support import named_json as objects
from support.commands import report_on, run_on
from support.wire_objects import places, replaced, without

Json = dict[str, Any]

DIRECT = objects.direct("ResourceClaimParameters", "p")
CLASS = objects.class_json("gpu", "d")
HELD: Json = {
    "driverName": "d",
    "allocation": objects.allocation_json("n1", objects.handle_json("d", "n1", "i0")),
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
}


def a_slice(node: str = "n1", *names: str) -> Json:
    return objects.slice_json(f"s-{node}", node, "d", objects.plain(*(names or ("i0", "i1"))))


def small(*more: Json) -> list[Json]:
    """A node's slice, a class, a claim for one instance, and a pod that wants it."""
    return [a_slice(), CLASS, objects.claim_json("c"), commands.pod(gpu="c"), *more]


def only(report: Json) -> Json:
    (answer,) = report["answers"]
    found: Json = answer
    return found


# --- allocate ----------------------------------------------------------------------------


def test_a_pod_is_judged() -> None:
    """The allocation is shown as ``status.allocation`` of that version would have it."""
    answer = only(report_on(*small()))
    assert answer["verdict"] == "fits"
    (node,) = answer["nodes"]
    assert node["allocations"] == [
        {
            "claim": "gpu",
            "apiVersion": "resource.k8s.io/v1alpha2",
            "allocation": objects.allocation_json(
                "n1", objects.handle_json("d", "n1", "i0"), shareable=True
            ),
        }
    ]
    ran = run_on(*small())
    assert ran.code == 0
    assert "n1    fits: d[0]: i0\n" in ran.out


def test_what_handles_hold_is_in_use() -> None:
    """Instances of allocated claims are not free, and are named as the reason."""
    held = [
        objects.claim_json(f"h{n}", **{**HELD, "allocation": objects.allocation_json(
            "n1", objects.handle_json("d", "n1", f"i{n}"))})
        for n in range(2)
    ]  # fmt: skip
    assert "i1" in run_on(*small(held[0])).out
    ran = run_on(*small(*held))
    assert ran.code == 1
    assert "2 in use: i0, i1" in ran.out


def test_an_allocated_claim_limits_the_nodes() -> None:
    """Without nodes in the dump the hostname label of those that slices name is known."""
    given = [a_slice("n1"), a_slice("n2"), CLASS, objects.claim_json("c", **HELD)]
    pod = commands.pod(gpu="c")
    pod["metadata"]["uid"] = "u"
    verdicts = {n["name"]: n["verdict"] for n in only(report_on(*given, pod))["nodes"]}
    assert verdicts == {"n1": "fits", "n2": "does-not-fit"}


def test_a_claim_that_is_not_shareable_is_full() -> None:
    """One consumer, unless the allocation says more."""
    given = [a_slice(), CLASS, objects.claim_json("c", **HELD), commands.pod(gpu="c")]
    (problem,) = only(report_on(*given))["problem"]
    assert "reserved for 1 consumers" in problem["text"]
    by_many = {**HELD, "allocation": {**HELD["allocation"], "shareable": True}}
    given[2] = objects.claim_json("c", **by_many)
    assert only(report_on(*given))["verdict"] == "fits"


def test_a_claim_about_to_be_deallocated_is_of_no_use() -> None:
    """No scheduler reserves it: the pod waits until its controller has allocated it anew."""
    status = HELD | {"reservedFor": [], "deallocationRequested": True}
    claim = objects.claim_json("c", **status)
    answer = only(report_on(a_slice(), CLASS, claim, commands.pod(gpu="c")))
    assert (answer["verdict"], answer["nodes"]) == ("does-not-fit", [])
    assert [cause["kind"] for cause in answer["problem"]] == ["deallocation-requested"]
    assert [use["state"] for use in answer["claims"]] == ["unusable"]


def test_resources_of_no_node_are_called_by_their_name() -> None:
    """They have no pool to be told apart by."""
    shared = objects.slice_json("shared", "", "d", objects.plain("f0"))
    ran = run_on(commands.node("n1"), shared, *small()[1:])
    assert "fits: d[0]: f0\n" in ran.out


@pytest.mark.parametrize(
    ("more", "kind", "text"),
    [
        ([], "class-not-found", "resource class 'gpu' does not exist"),
        ([objects.class_json("gpu", "x.y", structured=False)], "other-controller", "x.y"),
        (
            [objects.class_json(parametersRef=objects.vendor("f", "ns"))],
            "parameters-not-found",
            "no ResourceClassParameters generated from ConfigMap ns/f yet",
        ),
        ([CLASS], "parameters-not-found", "no ResourceClaimParameters ns/p yet"),
        (
            [CLASS, objects.claim_parameters_json("p", "ns", ("d", ["?"]))],
            "selector-compile",
            "request d[0]: selector #0",
        ),
    ],
)
def test_what_is_wrong_with_a_claim(more: list[Json], kind: str, text: str) -> None:
    """It is told once, and no node is tried."""
    claim = objects.claim_json("c", parameters=DIRECT)
    answer = only(report_on(a_slice(), claim, commands.pod(gpu="c"), *more))
    assert answer["nodes"] == []
    (problem,) = answer["problem"]
    assert problem["kind"] == kind
    assert text in problem["text"]


def test_a_template_is_tried() -> None:
    """A claim that does not exist yet is tried from its template."""
    given = [a_slice(), CLASS, objects.template_json("t"), commands.pod(gpu="tpl:t")]
    answer = only(report_on(*given))
    assert answer["claims"][0]["state"] == "would-be-created"
    assert answer["verdict"] == "fits"


def test_a_failing_selector_is_an_error_of_the_node() -> None:
    """Other nodes are tried."""
    selector = 'attributes.string["model"] == "x"'
    good = [objects.instance_json("i0", [{"name": "model", "string": "x"}])]
    answer = only(
        report_on(
            a_slice("n1"),
            objects.slice_json("s-n2", "n2", "d", good),
            CLASS,
            objects.claim_parameters_json("p", "ns", ("d", [selector])),
            objects.claim_json("c", parameters=DIRECT),
            commands.pod(gpu="c"),
        )
    )
    assert {n["name"]: n["verdict"] for n in answer["nodes"]} == {"n1": "error", "n2": "fits"}


def test_vendor_parameters_are_never_shown() -> None:
    """They may be secrets, as opaque configuration may."""
    secret = {"password": "hunter2"}
    entry = {
        "driverName": "d",
        "vendorParameters": secret,
        "requests": [objects.request_json(parameters=secret)],
    }
    given = [
        a_slice(),
        objects.class_json(parametersRef=objects.direct("ResourceClassParameters", "f", "ns")),
        objects.class_parameters_json(
            "f", vendorParameters=[{"driverName": "d", "parameters": secret}]
        ),
        objects.claim_parameters_json("p", driverRequests=[entry]),
        objects.claim_json("c", parameters=DIRECT),
        commands.pod(gpu="c"),
    ]
    for form in ("text", "json", "yaml"):
        ran = run_on(*given, arguments=("allocate", "-o", form))
        assert ran.code == 0
        assert "hunter2" not in ran.out


def test_claims_are_judged_by_name() -> None:
    """Several claims are allocated together, as those of one pod."""
    more = [objects.claim_json(name) for name in ("d", "e")]
    two = run_on(*small(*more), arguments=("allocate", "--claim", "ns/c", "--claim", "ns/d"))
    assert two.code == 0
    names = ("ns/c", "ns/d", "ns/e")
    arguments = [word for name in names for word in ("--claim", name)]
    three = run_on(*small(*more), arguments=("allocate", *arguments))
    assert three.code == 1
    assert "needed 3, usable 2" in three.out


def test_a_budget_ends_a_search() -> None:
    """A node that needs more steps is undecided."""
    ran = run_on(
        *small(objects.claim_json("d")),
        arguments=("allocate", "--claim", "ns/c", "--claim", "ns/d", "--budget", "1"),
    )
    assert ran.code == 3


def test_claims_of_both_shapes_in_one_pod() -> None:
    """A dump of several clusters may have both: results stay with their claims."""
    newer = [
        commands.resource_slice("n1"),
        commands.device_class("gpu"),
        commands.claim("new"),
    ]
    pod = commands.pod(old="c", new="new", again="c2")
    given = [*small()[:3], objects.claim_json("c2"), *newer, pod]
    (node,) = only(report_on(*given))["nodes"]
    told = [(one["claim"], one["apiVersion"].rpartition("/")[2]) for one in node["allocations"]]
    assert told == [("old", "v1alpha2"), ("new", "v1"), ("again", "v1alpha2")]
    short = [one for one in given if one is not newer[0]]
    short.append(commands.resource_slice("n1", driver="other.example.com"))
    selector = 'device.driver == "gpu.example.com"'
    short[short.index(newer[1])] = commands.device_class("gpu", selector)
    (node,) = only(report_on(*short))["nodes"]
    assert node["verdict"] == "does-not-fit"


def test_objects_without_namespace_are_in_default() -> None:
    """As for all kinds that are in a namespace."""
    claim, parameters = objects.claim_json("c", parameters=DIRECT), objects.claim_parameters_json
    made = parameters("p", "ns", ("d", ["true"]))
    pod = commands.pod(gpu="c")
    for obj in (claim, made, pod):
        del obj["metadata"]["namespace"]
    ran = run_on(a_slice(), CLASS, claim, made, pod)
    assert ran.code == 0
    assert "3 objects without namespace" in ran.out


def test_the_guide_shows_what_the_command_prints() -> None:
    """The demo in the documentation is part of the output for the example cluster."""
    root = Path(__file__).parent
    page = (root.parents[1] / "docs" / "guides" / "v1alpha2.md").read_text(encoding="utf-8")
    printed = (root / "golden" / "allocate-v1alpha2.txt").read_text(encoding="utf-8")
    shown = re.findall(r"^```text\n(.*?)^```", page, re.M | re.S)
    assert len(shown) == 4
    assert [part for part in shown if part not in printed] == []


# --- lint --------------------------------------------------------------------------------


def lint(*given: Json) -> commands.Ran:
    return run_on(*given, arguments=("lint",))


def test_lint_finds_nothing_wrong() -> None:
    """Sound objects give no findings; slices of this version are slices."""
    ran = lint(*small())
    assert (ran.code, ran.out) == (0, "4 objects: 0 errors, 0 warnings.\n")


def test_lint_knows_the_rules() -> None:
    """Rules of the API are errors."""
    ran = lint(objects.claim_parameters_json("p", driverRequests=[{"driverName": "d"}]))
    assert ran.code == 1
    assert (
        "error: ResourceClaimParameters ns/p: driverRequests[0].requests: "
        "must have at least one entry"
    ) in ran.out


def test_lint_compiles_selectors() -> None:
    """A selector that does not compile is an error."""
    ran = lint(
        objects.class_parameters_json("f", "ns", ("d", "attributes")),
        objects.claim_parameters_json("p", "ns", ("d", ["true", "1"])),
    )
    assert ran.code == 1
    assert "ResourceClassParameters ns/f: filters[0].namedResources.selector: selector" in ran.out
    assert "driverRequests[0].requests[1].namedResources.selector: selector does not" in ran.out


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        (
            'attributes.string["modle"] == "x"',
            "fails on 2 instances (n1/i0, f0): no such key: 'modle' (the instance has no string "
            "attribute of that name); the nearest name is model",
        ),
        ('attributes.string["model"] == "z"', "matches none of 2 instances (n1/i0, f0)"),
        ('attributes.int["cores"] > 1', "fails on 1 instance (f0): no such key: 'cores'"),
    ],
)
def test_lint_tries_selectors(selector: str, told: str) -> None:
    """On all instances of the driver; the nearest attribute of the type is named."""
    model = {"name": "model", "string": "x"}
    slices = [
        objects.slice_json(
            "s", "n1", "d", [objects.instance_json("i0", [model, {"name": "cores", "int": 2}])]
        ),
        objects.slice_json("t", "", "d", [objects.instance_json("f0", [model])]),
    ]
    ran = lint(*slices, objects.claim_parameters_json("p", "ns", ("d", [selector])))
    assert ran.code == 0
    assert told in ran.out


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            [CLASS, objects.claim_json("c", "gpus")],
            "ResourceClaim ns/c: spec.resourceClassName: there is no ResourceClass gpus; "
            "the nearest name is gpu",
        ),
        (
            [CLASS, objects.template_json("t", "gpus")],
            "ResourceClaimTemplate ns/t: spec.spec.resourceClassName: there is no",
        ),
        (
            [CLASS, objects.claim_json("c", parameters=DIRECT)],
            "ResourceClaim ns/c: spec.parametersRef: no ResourceClaimParameters ns/p yet",
        ),
        (
            [objects.class_json(parametersRef=objects.vendor("x", "ns"))],
            "ResourceClass gpu: parametersRef: no ResourceClassParameters generated from",
        ),
        (
            [
                CLASS,
                objects.claim_json("c", parameters=objects.vendor("x")),
                objects.claim_parameters_json("p", generatedFrom=objects.vendor("x")),
                objects.claim_parameters_json("q", generatedFrom=objects.vendor("x")),
            ],
            "spec.parametersRef: several ResourceClaimParameters are generated from ConfigMap ns/x",
        ),
        (
            [a_slice(), objects.claim_parameters_json("p", "ns", ("dd", ["true"]))],
            "driverRequests[0].driverName: no slice is of dd; the nearest name is d",
        ),
    ],
)
def test_lint_follows_references(given: list[Json], told: str) -> None:
    """What does not exist in the input is a warning, with the nearest name."""
    ran = lint(*given)
    assert ran.code == 0
    assert told in ran.out


@pytest.mark.parametrize(
    "given",
    [
        [objects.class_json(structured=False, parametersRef=objects.vendor("x"))],
        [
            objects.class_json(structured=False),
            objects.claim_json("c", parameters=objects.vendor("x")),
        ],
        [CLASS, objects.claim_json("c", parameters=DIRECT, **HELD)],
    ],
)
def test_lint_leaves_alone_what_nobody_looks_up(given: list[Json]) -> None:
    """Parameters for a controller, and of claims that are allocated."""
    ran = lint(*given)
    assert "parametersRef" not in ran.out


def test_lint_tells_malformed_objects() -> None:
    """With kind, name and path; the others are checked all the same."""
    bad = objects.class_json(structured=False, structuredParameters="yes")
    ran = lint(bad, *small())
    assert ran.code == 2
    assert "error: ResourceClass 'gpu': structuredParameters: must be a boolean" in ran.out


# --- bad input ---------------------------------------------------------------------------

COSTLY = '[attributes.string["model"]] == ["x"]'


def wanting(selector: str, *attributes: Json) -> list[Json]:
    """Two nodes, the first one's instance with ``attributes``, and a pod that selects."""
    model = {"name": "model", "string": "x"}
    slices = [
        objects.slice_json("s-n1", "n1", "d", [objects.instance_json("i0", [model, *attributes])]),
        objects.slice_json("s-n2", "n2", "d", [objects.instance_json("i0", [model])]),
    ]
    parameters = objects.claim_parameters_json("p", "ns", ("d", [selector]))
    claim = objects.claim_json("c", parameters=DIRECT)
    return [*slices, CLASS, parameters, claim, commands.pod(gpu="c")]


@pytest.mark.parametrize("selector", ["true", COSTLY])
def test_a_faulty_attribute_is_an_error_of_its_node(selector: str) -> None:
    """Also for a selector that counts its costs: no internal exception ends the command."""
    given = wanting(selector, {"name": "speed", "version": "fast"})
    told = "attribute 'speed': not a semantic version: 'fast'"
    first, second = only(report_on(*given))["nodes"]
    assert (first["verdict"], second["verdict"]) == ("error", "fits")
    assert told in first["causes"][0]["because"][0]["text"]
    assert f"fails on 1 instance (n1/i0): {told}" in lint(*given).out


CLUSTER = [
    *objects.one_of_each(),
    *wanting(COSTLY, *objects.instance_json("")["attributes"][:3]),
    objects.claim_json("held", **HELD),
    objects.template_json("tpl", parametersRef=objects.vendor("x")),
    commands.pod("other", held="held", made="tpl:tpl"),
]
PLACES = [place for place in places(CLUSTER) if place]
WRONG: st.SearchStrategy[object] = st.sampled_from(
    [None, True, 0, -1, 2**63, 1.5, "", "x", "a/b", "\ud800", "1e3", [], {}, [None], [{}], {"x": 1}]
)


@given(st.sampled_from(PLACES), WRONG | st.just(...))
def test_wrong_and_missing_values_anywhere(place: tuple[str | int, ...], wrong: object) -> None:
    """Anything wrong, or missing (...), is an error naming object and field, or an answer."""
    changed = without(CLUSTER, place) if wrong is ... else replaced(CLUSTER, place, wrong)
    assert lint(*changed).code in (0, 1, 2)
    ran = run_on(*changed)
    assert ran.code in (0, 1, 2)
    if ran.code == 2:
        assert re.match(r"dra-core: \S+ ('.*'|without a name): \S+: .", ran.err), ran.err
