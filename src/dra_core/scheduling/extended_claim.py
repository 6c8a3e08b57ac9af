"""The special claim for a pod's extended resources: what is in it and what is written.

What may live here: the claim in memory, the request that creates it, the pod's status,
and how a claim left behind is recognised. Which resources it is for is told by
``extended_resources``; allocating and reserving it is like any claim's.

There is at most one such claim per pod. It exists in memory only, under a name that no
object can have and a made-up UID, until the pod is about to be bound; neither ever goes
into a request (k/k#141467). What is in it depends on the node, because some nodes serve
some of the resources by device plugins.

Source: KEP-5004.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dra_core.api.core import (
    Container,
    ContainerExtendedResourceRequest,
    ObjectMeta,
    OwnerReference,
    Pod,
)
from dra_core.api.objects import (
    ALLOCATION_MODE_EXACT_COUNT,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dra_core.api.request import ApiRequest
from dra_core.api.wire import encode
from dra_core.claims.generation import pod_target
from dra_core.claims.patches import STATUS, claim_target
from dra_core.errors import PatchError
from dra_core.scheduling.extended_resources import container_requests, is_sidecar

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""Marks a special claim, with the value "true" (ExtendedResourceClaimAnnotation)."""

IN_MEMORY_NAME = "<extended-resources>"
"""The claim's name until it is created. No object can be called so."""


@attrs.frozen
class ClaimLayout:
    """The requests of a special claim, and which containers' resources each one serves."""

    requests: tuple[DeviceRequest, ...] = ()
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


def lay_out(pod: Pod, resources: Iterable[str], classes: Mapping[str, DeviceClass]) -> ClaimLayout:
    """The requests for these extended resources of the pod, by name, with their mappings.

    ``classes`` has the class of each resource. Containers and sidecars get requests of
    their own. An ordinary init container is gone before what comes after it starts, so it
    uses the devices of the sidecars and containers after it, in order, and asks for the
    rest only. These rests are not needed at the same time either: the largest becomes a
    request, and the others map to it (k/k#134880).

    Requests are called ``container-<i>-request-<j>``: ``i`` counts init containers, then
    containers, ``j`` is the place among the container's sorted resource names. Mappings
    go by resource, then containers and sidecars before ordinary init containers.
    """
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        one = _Resource(pod, resource, classes[resource].name)
        requests += one.requests()
        mappings += one.mappings()
    requests.sort(key=lambda request: request.name)
    return ClaimLayout(tuple(requests), tuple(mappings))


@attrs.frozen
class _Need:
    """What one container asks for of one resource. ``request`` is what it would be called."""

    container: str
    amount: int
    request: str


class _Resource:
    """The needs for one resource, sorted into requests."""

    def __init__(self, pod: Pod, resource: str, device_class: str) -> None:
        self._resource = resource
        self._class = device_class
        # Counts by name of the request, in the order of the containers.
        self._lasting: dict[str, int] = {}
        self._lasting_mappings: list[tuple[str, str]] = []
        self._passing_mappings: list[tuple[str, str]] = []
        self._rest: tuple[str, int] | None = None
        passing: list[tuple[_Need, int]] = []
        for container, lasts, need in _needs(pod, resource):
            if lasts:
                self._lasting[need.request] = need.amount
                self._lasting_mappings.append((container.name, need.request))
            else:
                passing.append((need, len(self._lasting)))
        self._place(passing)

    def _place(self, passing: list[tuple[_Need, int]]) -> None:
        """Map ordinary init containers to the requests after them, and to the rest."""
        rests: list[tuple[_Need, int]] = []
        for need, before in passing:
            missing = need.amount
            for request, count in list(self._lasting.items())[before:]:
                if missing <= 0:
                    break
                self._passing_mappings.append((need.container, request))
                missing -= count
            if missing > 0:
                rests.append((need, missing))
                # Which rest is the largest is not known yet; the place of the mapping is.
                self._passing_mappings.append((need.container, ""))
        if rests:
            largest, count = max(rests, key=lambda rest: rest[1])
            self._rest = (largest.request, count)

    def requests(self) -> list[DeviceRequest]:
        counts = [*self._lasting.items(), *([self._rest] if self._rest else [])]
        return [
            DeviceRequest(
                name,
                ExactDeviceRequest(
                    self._class, allocation_mode=ALLOCATION_MODE_EXACT_COUNT, count=count
                ),
            )
            for name, count in counts
        ]

    def mappings(self) -> list[ContainerExtendedResourceRequest]:
        rest = self._rest[0] if self._rest else ""
        return [
            ContainerExtendedResourceRequest(container, self._resource, request or rest)
            for container, request in (*self._lasting_mappings, *self._passing_mappings)
        ]


def _needs(pod: Pod, resource: str) -> Iterable[tuple[Container, bool, _Need]]:
    """The containers that ask for the resource, and whether each runs beside the others."""
    for place, container in enumerate((*pod.init_containers, *pod.containers)):
        asked = container_requests(container)
        amount = asked[resource].value() if resource in asked else 0
        if amount <= 0:
            continue
        lasts = place >= len(pod.init_containers) or is_sidecar(container)
        name = f"container-{place}-request-{sorted(asked).index(resource)}"
        yield container, lasts, _Need(container.name, amount, name)


# The claim


def in_memory_claim(
    pod: Pod,
    made_up_uid: str,
    layout: ClaimLayout = ClaimLayout(),
) -> ResourceClaim:
    """The special claim of a pod before it is created.

    ``made_up_uid`` comes from the caller and is used by no other object; the claim is in
    flight under it. ``layout`` is the one for a node.
    """
    owner = OwnerReference("v1", "Pod", pod.name, pod.metadata.uid, controller=True)
    metadata = ObjectMeta(
        IN_MEMORY_NAME,
        pod.namespace,
        made_up_uid,
        generate_name=f"{pod.name}-extended-resources-",
        annotations={ANNOTATION: "true"},
        owner_references=(owner,),
    )
    return ResourceClaim(metadata, DeviceClaim(layout.requests))


def is_in_memory(claim: ResourceClaim) -> bool:
    """Whether the special claim is not created yet."""
    return claim.name == IN_MEMORY_NAME


def create_claim(claim: ResourceClaim, *, version: str = "v1") -> ApiRequest:
    """Create the special claim: without name, UID and status, which are not real.

    If the answer is lost, the claim is found and removed in the next attempt
    (``left_over``). Raises ``PatchError`` for a claim that exists already.
    """
    if not is_in_memory(claim):
        raise PatchError(str(claim.metadata.key), "exists already and cannot be created")
    metadata = attrs.evolve(claim.metadata, name="", uid="", resource_version="")
    bare = ResourceClaim(metadata, claim.devices)
    return claim_target(bare, version).create(encode(bare, version))


def record_in_pod(
    pod: Pod, claim: ResourceClaim, mappings: Iterable[ContainerExtendedResourceRequest]
) -> ApiRequest:
    """Tell the kubelet, in the pod's status, which claim serves which container's resources.

    Refused by the API server if the pod was replaced meanwhile. Raises ``PatchError`` for
    a claim that is not created yet: its name must not leak (k/k#141556).
    """
    if is_in_memory(claim) or not claim.name:
        raise PatchError(str(claim.metadata.key), "is not created yet and has no name to record")
    status: dict[str, Any] = {
        "resourceClaimName": claim.name,
        "requestMappings": [
            {
                "containerName": mapping.container_name,
                "resourceName": mapping.resource_name,
                "requestName": mapping.request_name,
            }
            for mapping in mappings
        ],
    }
    return _set_status(pod, status)


def take_back_in_pod(pod: Pod) -> ApiRequest:
    """Tell the kubelet that no claim serves the pod's resources, after an attempt that had one.

    Refused by the API server if the pod was replaced meanwhile.
    """
    return _set_status(pod, None)


def _set_status(pod: Pod, status: dict[str, Any] | None) -> ApiRequest:
    body = {
        "metadata": {"uid": pod.metadata.uid},
        "status": {"extendedResourceClaimStatus": status},
    }
    return pod_target(pod).at(STATUS).strategic_merge_patch(body)


def is_special_claim_of(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the claim was made for extended resources of this very pod."""
    if claim.namespace != pod.namespace or claim.metadata.annotations.get(ANNOTATION) != "true":
        return False
    controller = claim.metadata.controller()
    return controller is not None and controller.uid == pod.metadata.uid


def left_over(pod: Pod, claims: Iterable[ResourceClaim]) -> tuple[ResourceClaim, ...]:
    """Special claims of the pod from earlier attempts, in the order given.

    What they were allocated for may not be what the pod needs on another node, so they
    are of no use: while there is one no node fits, and it has to be removed.
    """
    return tuple(claim for claim in claims if is_special_claim_of(claim, pod))
