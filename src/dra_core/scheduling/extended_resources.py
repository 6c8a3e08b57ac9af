"""Extended resources that a DeviceClass serves: which ones, and where.

What may live here: what a pod asks for, which class offers it, and which of it a node
needs a claim for. The claim itself is made in ``extended_claim``.

A pod may ask for ``vendor.example/gpu: 1`` among a container's resources, as for a device
plugin's. A DeviceClass offers such a resource by ``spec.extendedResourceName``; each class
also offers ``deviceclass.resource.kubernetes.io/<class>`` without being told. Whether a
device plugin or a claim serves it is a matter of the node: a node that has an amount of it
serves it by its plugin.

Source: KEP-5004; core/v1, ResourceRequirements; resource.k8s.io/v1, DeviceClassSpec.
"""

from collections.abc import Iterable, Mapping

import attrs

from dra_core.api.core import Container, Node, Pod
from dra_core.api.objects import DeviceClass
from dra_core.values.quantity import Quantity

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""With a class's name after it: what every class offers (ResourceDeviceClassPrefix)."""

SIDECAR_RESTART_POLICY = "Always"
"""An init container with this restart policy goes on running beside the containers."""

_NOTHING = Quantity(0)


def is_sidecar(container: Container) -> bool:
    """Whether an init container goes on running beside the containers."""
    return container.restart_policy == SIDECAR_RESTART_POLICY


def container_requests(container: Container) -> dict[str, Quantity]:
    """What a container asks for: its requests; where there is none, the limit stands in."""
    return {**container.limits, **container.requests}


def effective_requests(pod: Pod) -> dict[str, Quantity]:
    """How much of each resource a node must have for the pod, by name, sorted.

    The containers and sidecars run together; before that each ordinary init container runs
    alone with the sidecars that were started before it. The larger of both counts.
    Pod overhead and resources set for the pod as a whole know no extended resources.
    Cost: linear in what the containers ask for.
    Source: core/v1, "Differences from regular containers" of init containers.
    """
    running: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in pod.init_containers:
        asked = container_requests(container)
        together = _sum(running, asked)
        if is_sidecar(container):
            running = together
        peak = _larger(peak, together)
    for container in pod.containers:
        running = _sum(running, container_requests(container))
    return dict(sorted(_larger(peak, running).items()))


def _sum(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> dict[str, Quantity]:
    added = {name: one.get(name, _NOTHING) + amount for name, amount in other.items()}
    return {**one, **added}


def _larger(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> dict[str, Quantity]:
    raised = {name: max(one.get(name, _NOTHING), amount) for name, amount in other.items()}
    return {**one, **raised}


def is_extended_resource(name: str) -> bool:
    """Whether a resource of that name may be served by a class.

    Resources of Kubernetes itself have no domain or ``kubernetes.io``; quotas for requests
    start with ``requests.``. Those that classes offer implicitly are an exception.
    Source: core/v1 helpers, IsExtendedResourceName; KEP-5004.
    """
    if name.startswith(IMPLICIT_PREFIX):
        return True
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def asked_for(pod: Pod) -> tuple[str, ...]:
    """The extended resources of which the pod asks for more than nothing, sorted.

    Whether a class offers them or a device plugin does is another question.
    """
    return tuple(
        name
        for name, amount in effective_requests(pod).items()
        if amount.sign() > 0 and is_extended_resource(name)
    )


def offered_by(device_class: DeviceClass) -> tuple[str, ...]:
    """The names of the resources that a class offers: the explicit one first, if it has one."""
    implicit = IMPLICIT_PREFIX + device_class.name
    explicit = device_class.extended_resource_name
    return (explicit, implicit) if is_extended_resource(explicit) else (implicit,)


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Which class serves which resource.

    Of classes that offer the same the newest serves it, by ``creationTimestamp``; of these
    the first by name (k/k#135037). Cost: linear.
    """
    found: dict[str, DeviceClass] = {}
    for device_class in classes:
        for resource in offered_by(device_class):
            other = found.get(resource)
            if other is None or _goes_before(device_class, other):
                found[resource] = device_class
    return found


def _goes_before(one: DeviceClass, other: DeviceClass) -> bool:
    # The API server writes all times in one form, UTC without fractions: text order will do.
    mine, others = one.metadata.creation_timestamp, other.metadata.creation_timestamp
    return mine > others or (mine == others and one.name < other.name)


@attrs.frozen
class ResourceSplit:
    """How a node would serve a pod's extended resources, each list sorted.

    ``through_claim``: a class has to, because the node has none. ``by_plugin``: the node
    has an amount; whether enough of it is free is not looked at here. ``nowhere``: the
    node has none and no class offers it, so the pod does not fit.
    """

    through_claim: tuple[str, ...] = ()
    by_plugin: tuple[str, ...] = ()
    nowhere: tuple[str, ...] = ()


def split_resources(
    resources: Iterable[str], classes: Mapping[str, DeviceClass], node: Node
) -> ResourceSplit:
    """Sort extended resources (``asked_for``) by how the node would serve them.

    ``classes`` is what ``classes_by_resource`` returns. An allocatable amount of zero, as
    a device plugin leaves behind when it is removed, is as good as none.
    """
    through_claim: list[str] = []
    by_plugin: list[str] = []
    nowhere: list[str] = []
    for resource in sorted(resources):
        if node.allocatable.get(resource, _NOTHING).sign() > 0:
            by_plugin.append(resource)
        elif resource in classes:
            through_claim.append(resource)
        else:
            nowhere.append(resource)
    return ResourceSplit(tuple(through_claim), tuple(by_plugin), tuple(nowhere))
