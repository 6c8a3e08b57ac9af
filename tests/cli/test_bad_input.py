"""Whatever the input: a clear error naming object and field, or an answer."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dra_core.cli.text import printable
from support.commands import (
    EXAMPLE,
    Json,
    allocated,
    claim,
    device,
    device_class,
    listed,
    node,
    pod,
    request,
    resource_slice,
    run,
    run_on,
    small_cluster,
    template,
)
from support.wire_objects import places, replaced, without

SHARED = device(
    "gpu-1",
    allowMultipleAllocations=True,
    attributes={"model": {"string": "a"}, "numa": {"ints": [0, 1]}},
    capacity={"memory": {"value": "8Gi", "requestPolicy": {
        "default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"}}}},
    consumesCounters=[{"counterSet": "set", "counters": {"slots": {"value": "1"}}}],
    taints=[{"key": "broken", "effect": "NoSchedule"}],
)  # fmt: skip

CLUSTER = [
    node(),
    resource_slice(
        "node-1", SHARED, device("gpu-2", attributes={"model": {"string": "b"}}),
        sharedCounters=[{"name": "set", "counters": {"slots": {"value": "2"}}}],
    ),
    device_class("gpu", 'device.driver != ""', config=[
        {"opaque": {"driver": "d", "parameters": {"a": 1}}}]),
    claim("claim", request(
        "gpu", "true", capacity={"requests": {"memory": "1Gi"}},
        tolerations=[{"key": "broken", "operator": "Exists", "effect": "NoSchedule"}])),
    allocated(claim("held"), "gpu-1", shareID="id", consumedCapacity={"memory": "1Gi"}),
    template("tpl", constraints=[{"requests": ["gpu"], "matchAttribute": "gpu.example.com/model"}]),
    pod("pod", gpu="claim", held="held", made="tpl:tpl"),
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "rule"},
     "spec": {"deviceSelector": {"device": "x"}, "taint": {"key": "k", "effect": "NoExecute"}}},
]  # fmt: skip

PLACES = [place for place in places(CLUSTER) if place]

WRONG = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([-1, 2**63, 2**64, 10**30, 1e300, "", "\0", "\ud800", "x" * 300, "a/b/c", "-1",
                     [], {}, [[]], [None], {"": None}, [{}], {"a": {"b": []}}]),
    st.text(max_size=5),
)  # fmt: skip

MENTION = re.compile(r"^dra-core: (?P<kind>.+?) (?:'(?P<name>.*)'|without a name): (?P<rest>.+)")


def check(objects: list[Any]) -> None:
    """Both commands answer, or name an object and a field; nothing of the input changes."""
    before = json.dumps(objects)
    for command in ("allocate", "lint"):
        ran = run_on(*objects, arguments=(command,))
        assert ran.code in ((0, 1, 2, 3) if command == "allocate" else (0, 1, 2))
        assert "Traceback" not in ran.err
        if command == "allocate" and ran.code == 2:
            assert ran.out == ""
            assert MENTION.match(ran.err), ran.err
        else:
            assert ran.err == ""
    assert json.dumps(objects) == before


def test_the_cluster_is_fine() -> None:
    """What the mutations start from is an answer without errors."""
    ran = run_on(*CLUSTER)
    assert ran.code == 0, ran.out
    check(CLUSTER)


@given(st.sampled_from(PLACES), WRONG)
@example((0, "metadata", "name"), "\ud800\0\x1b[31m")
@example((3, "spec", "devices", "requests", 0, "exactly", "count"), -1)
@example((3, "spec", "devices", "requests", 0, "exactly", "count"), 2**70)
@example((1, "spec", "pool", "resourceSliceCount"), 0)
@example((1, "spec", "pool", "generation"), 2**70)
def test_wrong_values_anywhere(place: tuple[str | int, ...], wrong: object) -> None:
    """A wrong value at any place of a valid dump is an error naming it, or an answer."""
    check(replaced(CLUSTER, place, wrong))


@given(st.sampled_from(PLACES))
def test_missing_values_anywhere(place: tuple[str | int, ...]) -> None:
    """A value that is missing at any place is an error naming it, or an answer."""
    check(without(CLUSTER, place))


@given(st.lists(st.tuples(st.sampled_from(PLACES), WRONG), min_size=2, max_size=6))
def test_several_wrong_values(changes: list[tuple[tuple[str | int, ...], object]]) -> None:
    """Several wrong values at once are no worse."""
    objects: Any = CLUSTER
    for place, wrong in changes:
        if place in set(places(objects)):
            objects = replaced(objects, place, wrong)
    check(objects)


@pytest.mark.parametrize(
    ("place", "wrong", "error"),
    [
        (("spec", "devices", "requests"), {}, "ResourceClaim 'ns/claim': spec.devices.requests: "),
        (("spec", "devices", "requests", 0, "exactly", "count"), "1",
         "ResourceClaim 'ns/claim': spec.devices.requests[0].exactly.count: "),
        (("metadata", "name"), 5, "ResourceClaim 'ns': metadata.name: must be a string"),
        (("metadata", "name"), "", "ResourceClaim without a name: metadata.name: is missing"),
        (("apiVersion",), 5, "document 'ns/claim': [0].apiVersion: |ResourceClaim 'ns/claim': "),
    ],
)  # fmt: skip
def test_errors_name_object_and_field(
    place: tuple[str | int, ...], wrong: object, error: str
) -> None:
    """An error says which object and which field."""
    ran = run_on(replaced(claim(), place, wrong))
    assert ran.code == 2
    assert any(ran.err.startswith(f"dra-core: {start}") for start in error.split("|")), ran.err


@pytest.mark.parametrize(
    "document", [5, "text", [5], {"items": 5}, {"kind": "List", "items": [5]}, {}]
)
def test_documents_that_are_no_objects(document: object) -> None:
    """A document that is no object is an error that says where."""
    for command in ("allocate", "lint"):
        ran = run(command, "-", stdin=f"{json.dumps(document)}\n")
        assert ran.code == 2, (command, document)
        assert "Traceback" not in ran.err


# --- printing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("é ✓", "é ✓"),
        ("a\0b", r"a\x00b"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\ud800", r"\ud800"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\u202eright", r"\u202eright"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    """What a terminal would obey, or cannot show, is escaped."""
    assert printable(text) == shown


NASTY = "x\0\x1b[2J"


def nasty_cluster() -> list[Json]:
    """A cluster whose every name is a threat to terminals."""
    held = allocated(claim("held"), NASTY)
    return [
        node(NASTY), resource_slice(NASTY, device(NASTY)), device_class(NASTY),
        claim("c", request(NASTY, deviceClassName=NASTY)), held,
        pod(NASTY, namespace="ns", gpu="c"), pod("q", gpu=NASTY), pod("r", gpu=f"tpl:{NASTY}"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments", [("allocate",), ("allocate", "-o", "json"), ("allocate", "-o", "yaml"), ("lint",)]
)
def test_nasty_names(arguments: tuple[str, ...]) -> None:
    """NUL and escapes in names print safely in every form."""
    ran = run_on(*nasty_cluster(), arguments=arguments)
    assert ran.code in (0, 1)
    assert ran.err == ""
    assert "\x1b" not in ran.out
    assert "\0" not in ran.out
    assert r"\x1b[2J" in ran.out or r"\u001b[2J" in ran.out or r"\e[2J" in ran.out


def test_nasty_names_in_errors() -> None:
    """The same in error messages; a lone surrogate is an error."""
    malformed = replaced(node(NASTY), ("metadata", "labels"), [])
    surrogate = node(f"{NASTY}\ud800")
    for bad in (malformed, surrogate, node(NASTY)):
        ran = run("allocate", "-", "--node", NASTY + "?", stdin=json.dumps(listed(bad)))
        assert ran.code == 2
        assert "\x1b" not in ran.err
        assert "\0" not in ran.err


def test_nasty_names_as_json() -> None:
    """JSON output gives such names back as they are."""
    ran = run_on(*nasty_cluster(), arguments=("allocate", "-o", "json"))
    report = json.loads(ran.out)
    assert f"ns/{NASTY}" in [answer["name"] for answer in report["answers"]]


# --- size ----------------------------------------------------------------------------


def test_selectors_at_their_limits() -> None:
    """Long and deep selectors are answered, never a crash or a hang."""
    for expression in (
        " && ".join(["true"] * 1500),
        "(" * 1000 + "true" + ")" * 1000,
        '"' + "a" * 10_000 + '" == ""',
        '"' + "a" * 40 + '!".matches("(a+)+$")',
        "[" * 500 + "]" * 500 + " == []",
    ):
        objects = [*small_cluster()[:2], device_class("gpu", expression), claim(), pod(gpu="claim")]
        check(objects)


def test_deep_parameters() -> None:
    """Opaque parameters may be nested deeply."""
    deep: Any = {}
    for _ in range(150):
        deep = {"a": [deep]}
    config = [{"opaque": {"driver": "d", "parameters": deep}}]
    check([*small_cluster()[:2], device_class(), claim("c", config=config), pod(gpu="c")])


def test_example_survives_yaml_and_json() -> None:
    """The example gives one answer, whichever of the two forms it is in."""
    from dra_core.cli.yaml_values import yaml_documents

    (document,) = yaml_documents(EXAMPLE.read_text(encoding="utf-8"))
    assert run("allocate", "-", stdin=json.dumps(document)).out == run("allocate", EXAMPLE).out
