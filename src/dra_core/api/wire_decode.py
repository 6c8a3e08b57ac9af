"""Decoded JSON to objects: the one place that knows kind, version and reader.

What may live here: ``Decoder``, which reads objects of every kind and version, and
nothing about the fields of any of them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from dra_core.api.core import Node, Pod, PodGroup
from dra_core.api.objects import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dra_core.api.scheduling_context import (
    PodSchedulingContext,
    read_pod_scheduling_context,
)
from dra_core.api.wire_claims import (
    read_allocation_result,
    read_device_class,
    read_device_taint_rule,
    read_resource_claim,
    read_resource_claim_template,
)
from dra_core.api.wire_core import read_node, read_pod, read_pod_group
from dra_core.api.wire_read import Fault, Memo, Obj, Reader, get_text, whole
from dra_core.api.wire_slices import read_resource_slice
from dra_core.api.wire_versions import VERSIONS, is_known, split_api_version

T = TypeVar("T")

ApiObject = (
    ResourceSlice
    | DeviceClass
    | ResourceClaim
    | ResourceClaimTemplate
    | DeviceTaintRule
    | PodSchedulingContext
    | Node
    | Pod
    | PodGroup
)
"""Every top-level object that is decoded."""

_READERS: Final[Mapping[str, Callable[[Obj, Reader], ApiObject]]] = {
    "ResourceSlice": read_resource_slice,
    "DeviceClass": read_device_class,
    "ResourceClaim": read_resource_claim,
    "ResourceClaimTemplate": read_resource_claim_template,
    "DeviceTaintRule": read_device_taint_rule,
    "PodSchedulingContext": read_pod_scheduling_context,
    "PodScheduling": read_pod_scheduling_context,
    "Node": read_node,
    "Pod": read_pod,
    "PodGroup": read_pod_group,
}


class Decoder:
    """Reads objects of one load: what one file, list or snapshot has in it.

    Equal attributes, capacities and quantities of everything that one decoder reads
    become one object. That makes a load fast and small; a decoder that lives on
    keeps every value it ever saw, so use one per load.

    All methods raise ``MalformedObjectError`` for an object that does not have the
    shape of its kind, and ``ValueError`` for a ``version`` that is none. They leave
    their argument alone and keep it as ``raw`` of what they return: whoever passes it
    in must not change it afterwards. Objects may be any ``Mapping``; unknown fields
    are ignored. Cost: linear in the size of the object.
    """

    def __init__(self) -> None:
        memo = Memo()
        self._readers = {
            version.name: Reader(memo, version.basic, version.flat_requests, version.alpha)
            for version in VERSIONS.values()
        }

    def decode(self, obj: Any) -> ApiObject:
        """Any known object, by its ``apiVersion`` and ``kind``.

        Kinds and versions that are not known (see ``wire_versions.is_known``) are
        malformed here; ``iter_objects`` tells them apart beforehand.
        """
        api_version, kind = whole("object", obj, _identity, self._readers["v1"])
        version = split_api_version(api_version)[1]
        reader = self._readers.get(version, self._readers["v1"])
        return whole(kind, obj, _READERS[kind], reader)

    def resource_slice(self, obj: Any, version: str = "v1") -> ResourceSlice:
        """A ResourceSlice of ``version``, whatever its apiVersion and kind say."""
        return self._read("ResourceSlice", obj, version, read_resource_slice)

    def device_class(self, obj: Any, version: str = "v1") -> DeviceClass:
        """A DeviceClass of ``version``."""
        return self._read("DeviceClass", obj, version, read_device_class)

    def resource_claim(self, obj: Any, version: str = "v1") -> ResourceClaim:
        """A ResourceClaim of ``version``."""
        return self._read("ResourceClaim", obj, version, read_resource_claim)

    def resource_claim_template(self, obj: Any, version: str = "v1") -> ResourceClaimTemplate:
        """A ResourceClaimTemplate of ``version``."""
        return self._read("ResourceClaimTemplate", obj, version, read_resource_claim_template)

    def device_taint_rule(self, obj: Any, version: str = "v1") -> DeviceTaintRule:
        """A DeviceTaintRule of ``version``."""
        return self._read("DeviceTaintRule", obj, version, read_device_taint_rule)

    def allocation_result(self, obj: Any, version: str = "v1") -> AllocationResult:
        """An AllocationResult of ``version``: ``status.allocation`` of a claim."""
        return self._read("AllocationResult", obj, version, read_allocation_result)

    def pod_scheduling_context(self, obj: Any) -> PodSchedulingContext:
        """A PodSchedulingContext, or PodScheduling: one shape in all versions."""
        return self._read("PodSchedulingContext", obj, "v1", read_pod_scheduling_context)

    def node(self, obj: Any) -> Node:
        """A v1.Node."""
        return self._read("Node", obj, "v1", read_node)

    def pod(self, obj: Any) -> Pod:
        """A v1.Pod."""
        return self._read("Pod", obj, "v1", read_pod)

    def pod_group(self, obj: Any) -> PodGroup:
        """A PodGroup of scheduling.k8s.io, any version."""
        return self._read("PodGroup", obj, "v1", read_pod_group)

    def _read(self, kind: str, obj: Any, version: str, read: Callable[[Obj, Reader], T]) -> T:
        reader = self._readers.get(version)
        if reader is None:
            raise ValueError(f"unknown version {version!r}; known: {', '.join(VERSIONS)}")
        return whole(kind, obj, read, reader)


def _identity(obj: Obj, _read: Reader) -> tuple[str, str]:
    """apiVersion and kind of an object that can be decoded."""
    api_version = get_text(obj, "apiVersion")
    kind = get_text(obj, "kind")
    if not kind:
        raise Fault("is missing", "kind")
    if not api_version:
        raise Fault("is missing", "apiVersion")
    if not is_known(api_version, kind):
        raise Fault(f"{api_version} {kind} is not a kind and version known here", "kind")
    return api_version, kind
