"""Claims and their templates: the objects, and their JSON form.

What may live here: the two kinds of v1alpha2 that are also what they are called in later
versions. Everything that works for any claim (names, reservations, stores, bindings) is
given these.

A claim that was read here is written here: ``whole`` and ``spec_json`` are what
``dra_core.claims`` asks for when it needs one as JSON.
"""

from typing import Any

import attrs

from dra_core.api import objects
from dra_core.api.core import ObjectMeta
from dra_core.api.wire_claims import read_consumer
from dra_core.api.wire_core import read_metadata
from dra_core.api.wire_encode import write_consumer
from dra_core.api.wire_encode_core import write_metadata
from dra_core.api.wire_free import copy_json
from dra_core.api.wire_read import (
    At,
    Obj,
    Reader,
    each_object,
    get_boolean,
    get_object,
    get_optional_object,
    get_text,
    whole,
)
from dra_core.api.wire_versions import RESOURCE_GROUP
from dra_core.api.wire_whole import carry_over
from dra_core.api.wire_write import Json, compact, given
from dra_core.errors import NotExpressibleError
from dra_core.v1alpha2.objects import (
    IMMEDIATE,
    VERSION,
    AllocationResult,
    ParametersReference,
)
from dra_core.v1alpha2.reading import read_allocation_result, read_reference
from dra_core.v1alpha2.writing import write_allocation_result, write_reference

API_VERSION = f"{RESOURCE_GROUP}/{VERSION}"


@attrs.frozen
class ClaimSpec:
    """What a claim asks for. ``allocation_mode`` "" is WaitForFirstConsumer."""

    class_name: str = ""
    parameters_ref: ParametersReference | None = None
    allocation_mode: str = ""

    @property
    def is_immediate(self) -> bool:
        """Whether a controller allocates the claim before any pod needs it."""
        return self.allocation_mode == IMMEDIATE


_NO_SPEC = ClaimSpec()


@attrs.frozen
class ResourceClaim(objects.ResourceClaim):
    """A claim of v1alpha2. ``devices``, ``controller`` and ``device_statuses`` stay empty.

    ``driver_name`` is ``status.driverName``: who allocated the claim, or is about to.
    """

    spec: ClaimSpec = _NO_SPEC
    driver_name: str = ""
    allocation: AllocationResult | None = None

    def whole(self, version: str) -> Json:
        """The claim as JSON, with the unknown fields that it was read with.

        Raises ``NotExpressibleError`` for any other version than v1alpha2.
        """
        _check_version("ResourceClaim", self.metadata, version)
        after = write_claim(self)
        if self.raw is None:
            return after
        before = write_claim(whole("ResourceClaim", self.raw, read_claim, Reader()))
        header = {"apiVersion": API_VERSION, "kind": "ResourceClaim"}
        return header | carry_over({**self.raw, **header}, before, after)


@attrs.frozen
class ResourceClaimTemplate(objects.ResourceClaimTemplate):
    """What claims to generate; ``spec`` is the claims'."""

    spec: ClaimSpec = _NO_SPEC

    def spec_json(self, version: str) -> Json:
        """The spec of the claims, as it was read if it was.

        Raises ``NotExpressibleError`` for any other version than v1alpha2.
        """
        _check_version("ResourceClaimTemplate", self.metadata, version)
        if self.raw is None:
            return write_spec(self.spec)
        found: Any = (self.raw.get("spec") or {}).get("spec") or {}
        result: Json = copy_json(found)
        return result


def _check_version(kind: str, metadata: ObjectMeta, version: str) -> None:
    if version != VERSION:
        problem = "the object is of another shape, and is not converted"
        raise NotExpressibleError(kind, str(metadata.key), "", version, problem)


# --- reading -----------------------------------------------------------------------------


def read_claim(obj: Obj, read: Reader) -> ResourceClaim:
    """A ResourceClaim from JSON."""
    metadata = read_metadata(obj)
    spec = get_object(obj, "spec")
    with At("spec"):
        read_spec = _read_spec(spec)
    status = get_object(obj, "status")
    with At("status"):
        allocation = get_optional_object(status, "allocation")
        with At("allocation"):
            result = None if allocation is None else read_allocation_result(allocation, read)
        return ResourceClaim(
            metadata=metadata,
            spec=read_spec,
            driver_name=get_text(status, "driverName"),
            allocation=result,
            reserved_for=each_object(status, "reservedFor", read_consumer),
            deallocation_requested=get_boolean(status, "deallocationRequested"),
            raw=obj,
        )


def read_template(obj: Obj, _read: Reader) -> ResourceClaimTemplate:
    """A ResourceClaimTemplate from JSON."""
    metadata = read_metadata(obj)
    spec = get_object(obj, "spec")
    with At("spec"):
        claim_metadata = read_metadata(spec)
        claim_spec = get_object(spec, "spec")
        with At("spec"):
            return ResourceClaimTemplate(
                metadata=metadata,
                claim_metadata=claim_metadata,
                spec=_read_spec(claim_spec),
                raw=obj,
            )


def _read_spec(obj: Obj) -> ClaimSpec:
    return ClaimSpec(
        get_text(obj, "resourceClassName"),
        read_reference(obj, "parametersRef"),
        get_text(obj, "allocationMode"),
    )


# --- writing -----------------------------------------------------------------------------


def write_claim(obj: ResourceClaim) -> Json:
    """A ResourceClaim as JSON, from its fields alone."""
    allocation = obj.allocation
    status = (
        compact({"driverName": obj.driver_name})
        | given(allocation=None if allocation is None else write_allocation_result(allocation))
        | compact(
            {
                "reservedFor": [write_consumer(item) for item in obj.reserved_for],
                "deallocationRequested": obj.deallocation_requested or None,
            }
        )
    )
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaim",
        "metadata": write_metadata(obj.metadata),
        "spec": write_spec(obj.spec),
    } | compact({"status": status})


def write_template(obj: ResourceClaimTemplate) -> Json:
    """A ResourceClaimTemplate as JSON, from its fields alone."""
    spec = compact({"metadata": write_metadata(obj.claim_metadata)})
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaimTemplate",
        "metadata": write_metadata(obj.metadata),
        "spec": spec | {"spec": write_spec(obj.spec)},
    }


def write_spec(spec: ClaimSpec) -> Json:
    """The spec of a claim, also inside a template."""
    return (
        {"resourceClassName": spec.class_name}
        | given(parametersRef=write_reference(spec.parameters_ref))
        | compact({"allocationMode": spec.allocation_mode})
    )
