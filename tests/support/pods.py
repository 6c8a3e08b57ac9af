"""Pods whose containers ask for resources, nodes and classes that have them, for tests."""

from collections.abc import Mapping

import attrs

from dra_core.api.core import Container, Node, ObjectMeta, Pod
from dra_core.api.objects import DeviceClass
from dra_core.values.quantity import Quantity

GPU = "vendor.example/gpu"
NIC = "vendor.example/nic"


def amounts(texts: Mapping[str, str | int]) -> dict[str, Quantity]:
    """Quantities by name."""
    return {name: Quantity.parse(str(text)) for name, text in texts.items()}


def container(name: str, **resources: str | int) -> Container:
    """A container that asks for ``gpu``, ``nic`` and others by limits, as people write it.

    Names without a domain that are ``gpu`` or ``nic`` get the vendor's.
    """
    known = {"gpu": GPU, "nic": NIC}
    return Container(
        name, limits=amounts({known.get(key, key): value for key, value in resources.items()})
    )


def sidecar(name: str, **resources: str | int) -> Container:
    """An init container that goes on running."""
    return attrs.evolve(container(name, **resources), restart_policy="Always")


def pod_of(*containers: Container, init: tuple[Container, ...] = ()) -> Pod:
    """A pod of containers, with init containers and sidecars in ``init``."""
    metadata = ObjectMeta("web", "team-a", "web-uid")
    return Pod(metadata, containers=containers, init_containers=init)


def node(name: str = "node-1", **allocatable: str | int) -> Node:
    """A node with allocatable ``gpu`` and ``nic``."""
    known = {"gpu": GPU, "nic": NIC}
    return Node(
        ObjectMeta(name),
        allocatable=amounts({known.get(key, key): value for key, value in allocatable.items()}),
    )


def offering(name: str, resource: str = "", created: str = "2026-01-01T00:00:00Z") -> DeviceClass:
    """A class that offers an extended resource."""
    metadata = ObjectMeta(name, creation_timestamp=created)
    return DeviceClass(metadata, extended_resource_name=resource)
