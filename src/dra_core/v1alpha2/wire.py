"""Decoded JSON to objects and back: every kind of v1alpha2.

What may live here: the functions that callers use, and the one table of kinds.
PodSchedulingContext has the same shape in all versions that had it, and is read by
``dra_core.api.wire``.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_core.api.wire_read import Fault, Obj, Reader, get_text, whole
from dra_core.api.wire_versions import RESOURCE_GROUP, split_api_version
from dra_core.api.wire_whole import carry_over
from dra_core.api.wire_write import Json
from dra_core.v1alpha2.claims import (
    API_VERSION,
    ResourceClaim,
    ResourceClaimTemplate,
    read_claim,
    read_template,
    write_claim,
    write_template,
)
from dra_core.v1alpha2.objects import (
    VERSION,
    AllocationResult,
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceSlice,
)
from dra_core.v1alpha2.reading import (
    read_allocation_result,
    read_claim_parameters,
    read_class_parameters,
    read_resource_class,
    read_resource_slice,
)
from dra_core.v1alpha2.writing import (
    write_allocation_result,
    write_claim_parameters,
    write_class_parameters,
    write_resource_class,
    write_resource_slice,
)

ApiObject = (
    ResourceSlice
    | ResourceClass
    | ResourceClaim
    | ResourceClaimTemplate
    | ResourceClassParameters
    | ResourceClaimParameters
)
"""Every top-level object that is decoded here."""

_READERS: Final[Mapping[str, Callable[[Obj, Reader], ApiObject]]] = {
    "ResourceSlice": read_resource_slice,
    "ResourceClass": read_resource_class,
    "ResourceClaim": read_claim,
    "ResourceClaimTemplate": read_template,
    "ResourceClassParameters": read_class_parameters,
    "ResourceClaimParameters": read_claim_parameters,
}
_WRITERS: Final[Mapping[type, Callable[[Any], Json]]] = {
    ResourceSlice: write_resource_slice,
    ResourceClass: write_resource_class,
    ResourceClaim: write_claim,
    ResourceClaimTemplate: write_template,
    ResourceClassParameters: write_class_parameters,
    ResourceClaimParameters: write_claim_parameters,
}

NAMESPACED: Final = frozenset(
    {
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceClassParameters",
        "ResourceClaimParameters",
    }
)
"""Kinds that are in a namespace."""


def is_known(api_version: str, kind: str) -> bool:
    """Whether ``decode`` reads objects of this kind and version."""
    return split_api_version(api_version) == (RESOURCE_GROUP, VERSION) and kind in _READERS


def decode(obj: Any) -> ApiObject:
    """Any object of v1alpha2 by its ``kind``.

    As the methods of ``dra_core.api.wire.Decoder``: raises ``MalformedObjectError``, keeps
    its argument as ``raw``, ignores unknown fields. Cost: linear in the object.
    """
    kind = whole("object", obj, _kind, Reader())
    return whole(kind, obj, _READERS[kind], Reader())


def _kind(obj: Obj, _read: Reader) -> str:
    api_version, kind = get_text(obj, "apiVersion"), get_text(obj, "kind")
    if not is_known(api_version, kind):
        what = f"{api_version} {kind}".strip() or "an object without kind"
        raise Fault(f"{what} is not of {API_VERSION}", "kind")
    return kind


def decode_resource_slice(obj: Any) -> ResourceSlice:
    """A ResourceSlice, whatever its apiVersion and kind say."""
    return whole("ResourceSlice", obj, read_resource_slice, Reader())


def decode_resource_class(obj: Any) -> ResourceClass:
    """A ResourceClass."""
    return whole("ResourceClass", obj, read_resource_class, Reader())


def decode_resource_claim(obj: Any) -> ResourceClaim:
    """A ResourceClaim."""
    return whole("ResourceClaim", obj, read_claim, Reader())


def decode_resource_claim_template(obj: Any) -> ResourceClaimTemplate:
    """A ResourceClaimTemplate."""
    return whole("ResourceClaimTemplate", obj, read_template, Reader())


def decode_class_parameters(obj: Any) -> ResourceClassParameters:
    """A ResourceClassParameters object."""
    return whole("ResourceClassParameters", obj, read_class_parameters, Reader())


def decode_claim_parameters(obj: Any) -> ResourceClaimParameters:
    """A ResourceClaimParameters object."""
    return whole("ResourceClaimParameters", obj, read_claim_parameters, Reader())


def decode_allocation_result(obj: Any) -> AllocationResult:
    """``status.allocation`` of a claim."""
    return whole("AllocationResult", obj, read_allocation_result, Reader())


def encode(obj: ApiObject) -> Json:
    """The whole object as JSON, with apiVersion and kind, from its fields alone."""
    header = {"apiVersion": API_VERSION, "kind": type(obj).__name__}
    return header | _WRITERS[type(obj)](obj)


def encode_whole(obj: ApiObject) -> Json:
    """The object as JSON with the unknown fields that it was read with.

    ``obj.raw`` with everything changed that differs between it and ``obj``; see
    ``dra_core.api.wire.encode_whole``.
    """
    after = encode(obj)
    if obj.raw is None:
        return after
    header = {"apiVersion": API_VERSION, "kind": after["kind"]}
    before = encode(decode({**obj.raw, **header}))
    return header | carry_over({**obj.raw, **header}, before, after)


def encode_allocation_result(result: AllocationResult) -> Json:
    """``status.allocation`` of a claim. Shares nothing with ``result``."""
    return write_allocation_result(result)
