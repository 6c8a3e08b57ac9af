"""The cluster of the machine of cycles: nodes, classes, devices, claims and pods, as data.

What may live here: what there is and what it is called. What happens to it is in
``test_cycle_machine``.
"""

from typing import Any

import attrs

from dra_core.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.api.objects import FINALIZER, ResourceSlice
from dra_core.api.wire import encode
from support import allocation_builders as build
from support.classic_driver import CONTROLLER, PROTECTION, VERSION, allocated_for
from support.cycle_site import claim
from support.pods import GPU

Json = dict[str, Any]

ZONE = "example.com/zone"
ZONES: tuple[dict[str, str], ...] = ({ZONE: "east"}, {ZONE: "west"}, {})
NAMES = ("n0", "n1", "n2")
CLASSES = (
    attrs.evolve(
        build.device_class("class-a", 'device.driver == "driver-a"'), extended_resource_name=GPU
    ),
    build.device_class("class-b", 'device.driver == "driver-b"'),
    build.device_class("class-x", 'device.driver == "driver-x"'),
)
BY_CLASS: dict[str, str] = {
    "a0": "class-a", "a1": "class-a", "a2": "class-a", "b0": "class-b", "b1": "class-b",
    "x": "class-x", "c0": "", "c1": "", "c2": "",
}  # fmt: skip
"""Claims by class; "": a driver allocates it. Claims x and c1 are used by both schedulers."""
MENU: tuple[tuple[int, str, tuple[str, ...]], ...] = (
    (0, "p0", ("a0",)),
    (0, "p1", ("a1", "x")),
    (0, "p2", ("a0", "a2")),
    (0, "p3", ("c0", "a1")),
    (0, "p4", ()),
    (0, "p5", ("c0", "c1")),
    (1, "q0", ("b0", "x")),
    (1, "q1", ("b1", "c2")),
    (1, "q2", ("c1", "c2")),
    (1, "q3", ("b0", "b1", "c1")),
)
"""Pods: whose they are, and which claims they use. Without claims: an extended resource."""
UNSUITABLE = {"c0": frozenset({"n0"}), "c1": frozenset({"n1"}), "c2": frozenset(NAMES)}
"""Where the driver cannot allocate at first; told only in reports."""


def supply() -> list[ResourceSlice]:
    """One device of each driver on each node, of the shared one on two; one where it is east."""
    east = NodeSelectorRequirement(ZONE, "In", ("east",))
    selector = NodeSelector((NodeSelectorTerm((east,)),))
    somewhere = build.pool_slice(
        "driver-a-east", build.device("east"), pool="east", node="", node_selector=selector
    )
    return [somewhere] + [
        build.pool_slice(
            f"{driver}-{node}", build.device(node), driver=driver, pool=node, node=node
        )
        for driver in ("driver-a", "driver-b", "driver-x")
        for node in NAMES
        if (driver, node) != ("driver-x", "n2")
    ]


def made(name: str, place: str | None = None) -> Json:
    """A claim that nobody has allocated yet, or that is allocated for a node."""
    of = BY_CLASS[name]
    controller = "" if of else CONTROLLER
    obj = encode(
        claim(name, build.exactly("r", of=of or "class-a"), controller=controller), VERSION
    )
    del obj["metadata"]["uid"]
    if place is not None and (of, place) != ("class-x", "n2"):
        allocation = allocated_for(place)
        if of:
            del allocation["controller"]
            driver = of.replace("class", "driver")
            got = {"request": "r", "driver": driver, "pool": place, "device": place}
            allocation["devices"] = {"results": [got]}
        obj["status"] = {"allocation": allocation}
        obj["metadata"]["finalizers"] = [FINALIZER if of else PROTECTION]
    return obj
