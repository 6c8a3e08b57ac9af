"""Decoded JSON to objects and back, per served version.

What may live here: the functions that the other rooms call. The work is done in the
``wire_*`` modules beside this one; ``Decoder`` is the form to use for many objects.
"""

from typing import Any

from dra_core.api.core import Node, Pod, PodGroup
from dra_core.api.objects import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.api.wire_decode import ApiObject, Decoder
from dra_core.api.wire_encode import write_allocation_result
from dra_core.api.wire_lists import WireObject, iter_objects
from dra_core.api.wire_versions import version_named
from dra_core.api.wire_whole import encode, encode_whole
from dra_core.api.wire_write import Json, written

__all__ = [
    "ApiObject",
    "Decoder",
    "WireObject",
    "decode",
    "decode_allocation_result",
    "decode_device_class",
    "decode_device_taint_rule",
    "decode_node",
    "decode_pod",
    "decode_pod_group",
    "decode_pod_scheduling_context",
    "decode_resource_claim",
    "decode_resource_claim_template",
    "decode_resource_slice",
    "encode",
    "encode_allocation_result",
    "encode_whole",
    "iter_objects",
]


def decode(obj: Any) -> ApiObject:
    """``Decoder.decode`` of a single object."""
    return Decoder().decode(obj)


def decode_resource_slice(obj: Any, version: str = "v1") -> ResourceSlice:
    """``Decoder.resource_slice`` of a single object."""
    return Decoder().resource_slice(obj, version)


def decode_device_class(obj: Any, version: str = "v1") -> DeviceClass:
    """``Decoder.device_class`` of a single object."""
    return Decoder().device_class(obj, version)


def decode_resource_claim(obj: Any, version: str = "v1") -> ResourceClaim:
    """``Decoder.resource_claim`` of a single object."""
    return Decoder().resource_claim(obj, version)


def decode_resource_claim_template(obj: Any, version: str = "v1") -> ResourceClaimTemplate:
    """``Decoder.resource_claim_template`` of a single object."""
    return Decoder().resource_claim_template(obj, version)


def decode_device_taint_rule(obj: Any, version: str = "v1") -> DeviceTaintRule:
    """``Decoder.device_taint_rule`` of a single object."""
    return Decoder().device_taint_rule(obj, version)


def decode_allocation_result(obj: Any, version: str = "v1") -> AllocationResult:
    """``Decoder.allocation_result`` of a single result."""
    return Decoder().allocation_result(obj, version)


def decode_pod_scheduling_context(obj: Any) -> PodSchedulingContext:
    """``Decoder.pod_scheduling_context`` of a single object."""
    return Decoder().pod_scheduling_context(obj)


def decode_node(obj: Any) -> Node:
    """``Decoder.node`` of a single object."""
    return Decoder().node(obj)


def decode_pod(obj: Any) -> Pod:
    """``Decoder.pod`` of a single object."""
    return Decoder().pod(obj)


def decode_pod_group(obj: Any) -> PodGroup:
    """``Decoder.pod_group`` of a single object."""
    return Decoder().pod_group(obj)


def encode_allocation_result(result: AllocationResult, version: str = "v1") -> Json:
    """``status.allocation`` in the JSON form of ``version``.

    Raises ``NotExpressibleError`` for a controller's name outside v1alpha3, and
    ``ValueError`` for an unknown version. The result shares nothing with ``result``.
    """
    target = version_named(version)
    return written("AllocationResult", "", version, lambda: write_allocation_result(result, target))
