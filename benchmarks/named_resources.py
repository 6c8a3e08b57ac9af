"""Named resources of v1alpha2: one pod filtered on 1,000 nodes with 8 instances each.

What may live here: the cluster, the pods, and timing them. As a script
(``python -m benchmarks.named_resources``) it prints the figures of ``filterings``.

Warm: the inventory is built and the selectors are compiled; parameters are looked up and
every node is searched from scratch, in the filter step of a scheduling cycle. The garbage
collector is on.
"""

import statistics
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from benchmarks.measure import clock_ns
from dra_core.api.core import Node, ObjectMeta, Pod, PodResourceClaim
from dra_core.api.objects import ResourceClaim as AnyClaim
from dra_core.errors import DraError
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_verdicts import NodeFits, Passed
from dra_core.scheduling.in_flight import ClaimTracker
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.claims import ResourceClaim
from dra_core.v1alpha2.kinds import claim_kinds
from dra_core.v1alpha2.objects import (
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceSlice,
)
from dra_core.v1alpha2.source import NamedSource

Json = dict[str, Any]

NODES = 1_000
INSTANCES = 8
IN_USE = 3
"""Instances of every node that allocated claims hold."""
REPEATS = 5

BOUND_S = 0.1
"""Seconds for one pod on all nodes."""

GROUP = "resource.k8s.io"
VERSION = f"{GROUP}/v1alpha2"
DRIVER = "gpu.example.com"
NOW = datetime(2026, 1, 1, tzinfo=UTC)

LARGE = 'attributes.quantity["memory"].isGreaterThan(quantity("32Gi"))'
NEWER = 'attributes.version["firmware"].isGreaterThan(semver("2.0.0"))'
NONE = 'attributes.string["model"] == "h200"'

PODS = {
    "one instance": (LARGE,),
    "four instances": (LARGE, LARGE, NEWER, NEWER),
    "fits nowhere": (LARGE, NONE),
}
"""What pods ask for, by what the figure is called."""


class Filtering(NamedTuple):
    """How many nodes fit, and the median time of asking all of them."""

    what: str
    fitting: int
    seconds: float

    @property
    def label(self) -> str:
        """What was asked for, and where it fits."""
        return f"v1alpha2, {self.what}: {self.fitting:,} of {NODES:,} nodes"


def _made(kind: str, name: str, namespace: str = "", **members: Any) -> Json:
    metadata = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "1"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": VERSION, "kind": kind, "metadata": metadata, **members}


def _slice(number: int) -> Json:
    instances = [
        {
            "name": f"gpu-{index}",
            "attributes": [
                {"name": "model", "string": "a100" if index % 2 else "l40"},
                {"name": "memory", "quantity": "40Gi" if index % 2 else "48Gi"},
                {"name": "index", "int": index},
                {"name": "ecc", "bool": True},
                {"name": "firmware", "version": f"{1 + index % 3}.{number % 7}.0"},
                {"name": "modes", "stringSlice": {"strings": ["full", "mig"]}},
            ],
        }
        for index in range(INSTANCES)
    ]
    model = {"instances": instances}
    name = f"node-{number:04}"
    return _made("ResourceSlice", name, nodeName=name, driverName=DRIVER, namedResources=model)


def _holder(number: int) -> Json:
    """A claim that holds some instances of a node."""
    node = f"node-{number:04}"
    results = [{"namedResources": {"name": f"gpu-{index}"}} for index in range(IN_USE)]
    handle = {"driverName": DRIVER, "structuredData": {"nodeName": node, "results": results}}
    status = {"driverName": DRIVER, "allocation": {"resourceHandles": [handle]}}
    return _made("ResourceClaim", f"held-{number}", "default", status=status)


def _claim(name: str, selectors: tuple[str, ...]) -> tuple[Json, Json]:
    """A claim, and its parameters."""
    requests = [{"namedResources": {"selector": selector}} for selector in selectors]
    entries = [{"driverName": DRIVER, "requests": requests}]
    parameters = _made("ResourceClaimParameters", name, "default", driverRequests=entries)
    reference = {"apiGroup": GROUP, "kind": "ResourceClaimParameters", "name": name}
    spec = {"resourceClassName": "gpu", "parametersRef": reference}
    return _made("ResourceClaim", name, "default", spec=spec), parameters


def _fail(error: DraError) -> None:
    raise error


class Cluster:
    """The caches of a scheduler that has seen everything."""

    def __init__(self) -> None:
        self.claims: AssumeCache[AnyClaim] = AssumeCache(ResourceClaim, _fail)
        lock = self.claims.atomic()
        self.tracker = ClaimTracker(self.claims)
        self.slices = AssumeCache(ResourceSlice, _fail, delivery=lock)
        classes = AssumeCache(ResourceClass, _fail, delivery=lock)
        class_parameters = AssumeCache(ResourceClassParameters, _fail, delivery=lock)
        claim_parameters = AssumeCache(ResourceClaimParameters, _fail, delivery=lock)
        self.source = NamedSource(
            self.tracker, self.slices, classes, class_parameters, claim_parameters
        )
        for number in range(NODES):
            self.slices.observe(wire.decode_resource_slice(_slice(number)))
            self.claims.observe(wire.decode_resource_claim(_holder(number)))
        members: Json = {"driverName": DRIVER, "structuredParameters": True}
        reference = {"apiGroup": GROUP, "kind": "ResourceClassParameters", "name": "gpu"}
        members["parametersRef"] = {**reference, "namespace": "default"}
        classes.observe(wire.decode_resource_class(_made("ResourceClass", "gpu", **members)))
        filters = [{"driverName": DRIVER, "namedResources": {"selector": "attributes.bool.ecc"}}]
        class_parameters.observe(
            wire.decode_class_parameters(
                _made("ResourceClassParameters", "gpu", "default", filters=filters)
            )
        )
        for number, selectors in enumerate(PODS.values()):
            claim, parameters = _claim(f"claim-{number}", selectors)
            self.claims.observe(wire.decode_resource_claim(claim))
            claim_parameters.observe(wire.decode_claim_parameters(parameters))
        self.nodes = [Node(ObjectMeta(f"node-{number:04}")) for number in range(NODES)]

    def filtered(self, number: int) -> tuple[int, int]:
        """How many nodes fit the pod of that number, and the nanoseconds of asking."""
        name = f"claim-{number}"
        pod = Pod(
            ObjectMeta("pod", "default", "pod-uid"), resource_claims=(PodResourceClaim(name, name),)
        )
        kinds = claim_kinds(self.source.take())
        cycle = PodCycle(pod, self.tracker, kinds)
        start = clock_ns()
        cycle.pre_enqueue()
        if cycle.pre_filter(NOW) != Passed():
            raise ValueError(f"{name}: {cycle.verdict}")
        fitting = sum(isinstance(cycle.filter(node), NodeFits) for node in self.nodes)
        return fitting, clock_ns() - start


def filterings() -> Iterator[Filtering]:
    """Every pod on all nodes, warm."""
    cluster = Cluster()
    for number, what in enumerate(PODS):
        runs = [cluster.filtered(number) for _ in range(REPEATS + 1)][1:]
        seconds = statistics.median(ns for _, ns in runs) / 1e9
        yield Filtering(what, runs[0][0], seconds)


def main() -> int:
    """Print the figures; 1 if one is over its bound."""
    over = 0
    for found in filterings():
        over += found.seconds > BOUND_S
        print(f"{found.label}: {found.seconds:.3f} s (bound {BOUND_S:g} s)")
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
