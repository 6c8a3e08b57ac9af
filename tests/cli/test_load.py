"""What is in the files: objects of all kinds, each once."""

import gc
import json
from pathlib import Path

import pytest

from dra_core.cli.load import Dump, Loader, api_version_of, collector_off, counted, load
from dra_core.errors import MalformedObjectError
from support.commands import (
    EXAMPLE,
    Json,
    claim,
    listed,
    node,
    pod,
    report_on,
    resource_slice,
    run,
    run_on,
    small_cluster,
)


def load_objects(*documents: object) -> tuple[Dump, list[MalformedObjectError]]:
    errors: list[MalformedObjectError] = []
    loader = Loader(errors.append)
    loader.add_documents("test", documents)
    return loader.dump(), errors


def versioned(obj: Json, version: str | None, **labels: str) -> Json:
    """A copy with a resourceVersion and labels, to tell copies apart."""
    metadata = {**obj["metadata"], "labels": labels}
    if version is not None:
        metadata["resourceVersion"] = version
    return {**obj, "metadata": metadata}


@pytest.mark.parametrize(
    ("versions", "winner"),
    [
        (("9", "10"), 1),
        (("10", "9"), 0),
        (("10", "0010"), 1),
        ((None, "1"), 1),
        (("1", None), 0),
        ((None, None), 1),
        (("1" * 30, "2" * 29), 0),
    ],
)
def test_newest_copy_counts(versions: tuple[str | None, str | None], winner: int) -> None:
    """Of an object in several files the newest resourceVersion counts, else the last."""
    copies = [versioned(node(), version, copy=str(n)) for n, version in enumerate(versions)]
    dump, errors = load_objects(listed(copies[0]), listed(copies[1]))
    assert errors == []
    assert [one.labels["copy"] for one in dump.nodes] == [str(winner)]


def test_versions_of_the_api_are_one_object() -> None:
    """An object printed in two versions of the API is one object."""
    old = versioned(resource_slice(devices=[]), "2")
    old["apiVersion"] = "resource.k8s.io/v1beta1"
    dump, _ = load_objects([versioned(resource_slice(), "1"), old])
    assert [len(one.devices) for one in dump.slices] == [0]


def test_kinds_namespaces_and_names_tell_objects_apart() -> None:
    """Equal names of different kinds or namespaces are different objects."""
    dump, _ = load_objects([claim("x", namespace="a"), claim("x", namespace="b"), node("x")])
    assert (len(dump.claims), len(dump.nodes)) == (2, 1)


def test_different_copies_of_one_version_are_told() -> None:
    """Copies that differ without a newer one are told: the choice was a guess."""
    dump, _ = load_objects([versioned(node(), None, copy="1"), versioned(node(), None, copy="2")])
    assert dump.notes == (
        "Node node-1 appears more than once with one resourceVersion: the last counts",
    )
    dump, _ = load_objects([node(), node()])
    assert dump.notes == ()


def test_versions_that_cannot_be_compared() -> None:
    """A resourceVersion that is no number is an error where it has to be compared."""
    dump, errors = load_objects([versioned(node(), "x")])
    assert (len(dump.nodes), errors) == (1, [])
    _, errors = load_objects([versioned(node(), "x"), versioned(node(), "1")])
    assert [(error.name, error.path) for error in errors] == [
        ("node-1", "metadata.resourceVersion")
    ]


def test_without_namespace() -> None:
    """Namespaced objects without namespace are in "default", which is told."""
    bare = claim()
    del bare["metadata"]["namespace"]
    dump, _ = load_objects([bare, node()])
    assert [str(one.metadata.key) for one in dump.claims] == ["default/claim"]
    assert dump.notes == ('1 object without namespace: read as in "default"',)


def test_missing_names() -> None:
    """An object without a name is malformed."""
    nameless = node("")
    _, errors = load_objects(nameless)
    assert [str(error) for error in errors] == ["Node without a name: metadata.name: is missing"]
    ran = run_on(*small_cluster(nameless))
    assert (ran.code, ran.err) == (2, "dra-core: Node without a name: metadata.name: is missing\n")


def test_all_malformed_objects_are_reported() -> None:
    """Every malformed object is reported, the others are kept."""
    bad = claim("bad")
    bad["spec"] = 5
    dump, errors = load_objects([bad, node(), claim("worse", request_="x") | {"spec": []}], 5)
    assert [error.name for error in errors] == ["ns/bad", "ns/worse", ""]
    assert len(dump.nodes) == 1


def test_versions_of_objects() -> None:
    """The version that an object came in is known."""
    dump, _ = load_objects([claim(), {**claim("b"), "apiVersion": "resource.k8s.io/v1beta2"}])
    assert [api_version_of(one) for one in dump.claims] == ["v1", "v1beta2"]


def test_example() -> None:
    """The example has what it promises."""
    dump = load([str(EXAMPLE)], lambda error: pytest.fail(str(error)))
    assert len(dump.nodes) >= 10
    assert len({one.driver for one in dump.slices}) >= 8
    slices = dump.slices
    assert any(one.shared_counters and one.devices for one in slices)
    assert any(one.shared_counters and not one.devices for one in slices)
    found = [gpu for one in slices for gpu in one.devices]
    assert any(gpu.allow_multiple_allocations and gpu.capacity for gpu in found)
    assert any(gpu.binding_conditions for gpu in found)
    assert any(gpu.taints for gpu in found)
    assert any(one.node_selector for one in slices)
    assert any(one.per_device_node_selection for one in slices)
    assert dump.rules
    assert any(one.allocation for one in dump.claims)
    assert not dump.skipped
    assert not dump.notes


def test_collector_is_off_while_loading() -> None:
    """The garbage collector rests while objects are made, and comes back also after errors."""
    assert gc.isenabled()
    with collector_off():
        assert not gc.isenabled()
        with collector_off():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collector_off():
        raise ZeroDivisionError
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "node", "0 nodes"), (1, "node", "1 node"), (1234, "class", "1,234 classes")],
)
def test_counted(number: int, noun: str, text: str) -> None:
    """Numbers with their noun."""
    assert counted(number, noun) == text


def test_newest_wins_end_to_end(tmp_path: Path) -> None:
    """An older file given later does not bring an old state back."""
    new, old = tmp_path / "new.json", tmp_path / "old.json"
    running = versioned(pod(gpu="claim"), "12")
    running["spec"] = {**running["spec"], "nodeName": "node-1"}
    new.write_text(json.dumps(listed(*small_cluster()[:4], running)))
    old.write_text(json.dumps(listed(versioned(pod(gpu="claim"), "5"))))
    assert "0 pending pods" in run("allocate", new, old).out
    assert "1 pending pod " in run("allocate", old).out


def test_ten_thousand_devices() -> None:
    """A slice of ten thousand devices is read and searched like any other."""
    devices = [{"name": f"d{n}"} for n in range(10_000)]
    report = report_on(*small_cluster()[2:], node(), resource_slice("node-1", *devices))
    assert report["answers"][0]["verdict"] == "fits"
