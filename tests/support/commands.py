"""Running the command line inside a test, and the JSON of small clusters for it."""

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

from dra_core.cli import main

Json = dict[str, Any]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cluster.yaml"
"""The cluster dump that is part of the project."""

OLDER_EXAMPLE = EXAMPLE.with_name("cluster-v1alpha2.yaml")
"""The same of a cluster with named resources."""

DRIVER = "gpu.example.com"


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@contextlib.contextmanager
def captured_streams(stdin: bytes = b"") -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Standard streams that encode as UTF-8 and are no terminal."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    standard_input = SimpleNamespace(buffer=io.BytesIO(stdin))
    with (
        mock.patch.object(sys, "stdin", standard_input),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        yield out, err


def run(*arguments: str | Path, stdin: bytes | str = b"") -> Ran:
    """Run one command; what argparse refuses counts as its exit code."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    with captured_streams(data) as (out, err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    texts = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    return Ran(code, *texts)


def run_on(*objects: Json, arguments: tuple[str, ...] = ("allocate",)) -> Ran:
    """Run a command on objects given as a JSON list on standard input."""
    command, *rest = arguments
    return run(command, "-", *rest, stdin=json.dumps(listed(*objects)))


def report_on(*objects: Json, arguments: tuple[str, ...] = ()) -> Json:
    """The JSON report of ``allocate`` on objects."""
    ran = run_on(*objects, arguments=("allocate", "-o", "json", *arguments))
    assert ran.err == ""
    report: Json = json.loads(ran.out)
    return report


# --- objects -------------------------------------------------------------------------


def listed(*objects: Json) -> Json:
    """A List, as kubectl prints it."""
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


def _object(version: str, kind: str, name: str, namespace: str = "", **members: Any) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **members}


def node(name: str = "node-1", **labels: str) -> Json:
    """A node."""
    made = _object("v1", "Node", name)
    made["metadata"]["labels"] = labels
    return made


def device(name: str = "gpu-0", **members: Any) -> Json:
    """A device of v1."""
    return {"name": name, **members}


def resource_slice(node: str = "node-1", *devices: Json, **spec: Any) -> Json:
    """A slice that is its pool, called like the node; one GPU unless told otherwise."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    found = list(devices) or [device()]
    whole = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": found, **spec}
    name = f"{node}-{whole['driver']}"
    return _object("resource.k8s.io/v1", "ResourceSlice", name, spec=whole)


def device_class(name: str = "gpu", *selectors: str, **spec: Any) -> Json:
    """A class; without selectors it means every device."""
    terms = [{"cel": {"expression": text}} for text in selectors]
    return _object("resource.k8s.io/v1", "DeviceClass", name, spec={"selectors": terms, **spec})


def request(name: str = "gpu", *selectors: str, **members: Any) -> Json:
    """A request for one device of class ``gpu``."""
    terms = [{"cel": {"expression": text}} for text in selectors]
    exactly: Json = {"deviceClassName": "gpu", "selectors": terms, "allocationMode": "ExactCount"}
    if members.get("allocationMode") != "All":
        exactly["count"] = 1
    return {"name": name, "exactly": {**exactly, **members}}


def claim_spec(*requests: Json, **members: Any) -> Json:
    """``spec`` of a claim; one request unless told otherwise."""
    return {"devices": {"requests": list(requests) or [request()], **members}}


def claim(name: str = "claim", *requests: Json, namespace: str = "ns", **spec: Any) -> Json:
    """An unallocated claim."""
    whole = claim_spec(*requests, **spec)
    return _object("resource.k8s.io/v1", "ResourceClaim", name, namespace, spec=whole)


def template(name: str = "tpl", *requests: Json, namespace: str = "ns", **spec: Any) -> Json:
    """A claim template."""
    inner = {"spec": claim_spec(*requests, **spec)}
    kind = "ResourceClaimTemplate"
    return _object("resource.k8s.io/v1", kind, name, namespace, spec=inner)


def allocated(
    claim: Json, *devices: str, node: str = "node-1", reserved: tuple[str, ...] = (), **more: Any
) -> Json:
    """The claim, holding devices of the node's pool. ``more`` goes into every result."""
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": node, "device": name, **more}
        for name in devices
    ]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    consumers = [{"resource": "pods", "name": uid, "uid": uid} for uid in reserved]
    return {**claim, "status": {"allocation": allocation, "reservedFor": consumers}}


def pod(name: str = "pod", *, namespace: str = "ns", phase: str = "Pending", **claims: str) -> Json:
    """A pod with claims by entry; ``tpl:NAME`` is a template. UID: ``uid-NAME``."""
    entries = [
        {"name": entry, "resourceClaimTemplateName": target.removeprefix("tpl:")}
        if target.startswith("tpl:")
        else {"name": entry, "resourceClaimName": target}
        for entry, target in claims.items()
    ]
    made = _object("v1", "Pod", name, namespace, spec={"resourceClaims": entries})
    made["metadata"]["uid"] = f"uid-{name}"
    made["status"] = {"phase": phase}
    return made


def small_cluster(*more: Json, devices: int = 1) -> list[Json]:
    """A node with GPUs, their class, a claim, and a pod that wants it."""
    gpus = [device(f"gpu-{number}") for number in range(devices)]
    return [
        node(),
        resource_slice("node-1", *gpus),
        device_class(),
        claim(),
        pod(gpu="claim"),
        *more,
    ]
