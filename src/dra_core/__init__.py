"""Kubernetes Dynamic Resource Allocation as a library: the door.

What may live here: the names that are promised (``docs/compatibility.md``), nothing
else. Everything else is reachable in its room and may move.

A name is imported from its room when it is first used. ``import dra_core`` alone costs
next to nothing, and a program that only resolves claim names never loads the allocator.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dra_core._version import __version__

if TYPE_CHECKING:
    from dra_core.allocator.allocation import Allocator
    from dra_core.allocator.results import Allocated, Undecided, Unsatisfiable
    from dra_core.api.core import Node, Pod, PodGroup
    from dra_core.api.names import DeviceId, ObjectKey, PoolId
    from dra_core.api.objects import (
        AllocationResult,
        DeviceClass,
        DeviceTaintRule,
        ResourceClaim,
        ResourceClaimTemplate,
        ResourceSlice,
    )
    from dra_core.api.request import ApiRequest
    from dra_core.api.validation import validate
    from dra_core.api.wire import Decoder, decode, encode
    from dra_core.cel.selector import SelectorCache
    from dra_core.claims.names import resolve_claims
    from dra_core.errors import AllocationError, DraError, MalformedObjectError
    from dra_core.explanation import explain
    from dra_core.features import Features
    from dra_core.inventory.allocated import AllocatedState
    from dra_core.inventory.index import Inventory
    from dra_core.inventory.taint_rules import apply_taint_rules
    from dra_core.scheduling.assume_cache import AssumeCache
    from dra_core.scheduling.in_flight import ClaimTracker
    from dra_core.values.quantity import Quantity

_ROOMS = {
    "Allocated": "allocator.results",
    "AllocatedState": "inventory.allocated",
    "AllocationError": "errors",
    "AllocationResult": "api.objects",
    "Allocator": "allocator.allocation",
    "ApiRequest": "api.request",
    "AssumeCache": "scheduling.assume_cache",
    "ClaimTracker": "scheduling.in_flight",
    "Decoder": "api.wire",
    "DeviceClass": "api.objects",
    "DeviceId": "api.names",
    "DeviceTaintRule": "api.objects",
    "DraError": "errors",
    "Features": "features",
    "Inventory": "inventory.index",
    "MalformedObjectError": "errors",
    "Node": "api.core",
    "ObjectKey": "api.names",
    "Pod": "api.core",
    "PodGroup": "api.core",
    "PoolId": "api.names",
    "Quantity": "values.quantity",
    "ResourceClaim": "api.objects",
    "ResourceClaimTemplate": "api.objects",
    "ResourceSlice": "api.objects",
    "SelectorCache": "cel.selector",
    "Undecided": "allocator.results",
    "Unsatisfiable": "allocator.results",
    "apply_taint_rules": "inventory.taint_rules",
    "decode": "api.wire",
    "encode": "api.wire",
    "explain": "explanation",
    "resolve_claims": "claims.names",
    "validate": "api.validation",
}

__all__ = [
    "Allocated",
    "AllocatedState",
    "AllocationError",
    "AllocationResult",
    "Allocator",
    "ApiRequest",
    "AssumeCache",
    "ClaimTracker",
    "Decoder",
    "DeviceClass",
    "DeviceId",
    "DeviceTaintRule",
    "DraError",
    "Features",
    "Inventory",
    "MalformedObjectError",
    "Node",
    "ObjectKey",
    "Pod",
    "PodGroup",
    "PoolId",
    "Quantity",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "SelectorCache",
    "Undecided",
    "Unsatisfiable",
    "__version__",
    "apply_taint_rules",
    "decode",
    "encode",
    "explain",
    "resolve_claims",
    "validate",
]


def __getattr__(name: str) -> object:
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{room}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
