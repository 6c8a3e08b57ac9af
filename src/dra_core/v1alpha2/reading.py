"""Decoding: from JSON to what ``objects`` has.

What may live here: one function per type. The primitives and their rules are those of
``dra_core.api.wire_read``: JSON types are checked, unknown fields are ignored, null equals
absent. The API's own rules are the business of ``validation``.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from dra_core.api.wire_core import read_metadata, read_node_selector
from dra_core.api.wire_free import free_json
from dra_core.api.wire_read import (
    At,
    Obj,
    Reader,
    check_boolean,
    check_integer,
    check_object,
    check_text,
    each,
    each_object,
    get_boolean,
    get_optional_object,
    get_text,
    get_texts,
)
from dra_core.v1alpha2.objects import (
    AllocationResult,
    Attribute,
    DriverAllocationResult,
    DriverRequests,
    Instance,
    ParametersReference,
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceFilter,
    ResourceHandle,
    ResourceRequest,
    ResourceSlice,
    StructuredResourceHandle,
    VendorParameters,
)

MODEL: Final = "namedResources"


def read_resource_slice(obj: Obj, read: Reader) -> ResourceSlice:
    """A ResourceSlice. Its fields have no ``spec`` around them in this version."""
    model = get_optional_object(obj, MODEL)
    with At(MODEL):
        instances = (
            None if model is None else each_object(model, "instances", partial(_instance, read))
        )
    return ResourceSlice(
        metadata=read_metadata(obj),
        node_name=get_text(obj, "nodeName"),
        driver_name=get_text(obj, "driverName"),
        instances=instances,
        raw=obj,
    )


def _instance(read: Reader, obj: Obj) -> Instance:
    return Instance(
        get_text(obj, "name"), each_object(obj, "attributes", partial(_attribute, read))
    )


def _attribute(read: Reader, obj: Obj) -> Attribute:
    values: dict[str, Any] = {}
    for member, (field, check) in _VALUES.items():
        value = obj.get(member)
        if value is not None:
            with At(member):
                values[field] = read.quantity(value) if check is None else check(value)
    return Attribute(get_text(obj, "name"), **values)


def _ints(value: Any) -> tuple[int, ...]:
    return each(check_object(value), "ints", check_integer)


def _strings(value: Any) -> tuple[str, ...]:
    return get_texts(check_object(value), "strings")


_VALUES: Final[Mapping[str, tuple[str, Callable[[Any], Any] | None]]] = {
    "quantity": ("quantity_value", None),
    "bool": ("bool_value", check_boolean),
    "int": ("int_value", check_integer),
    "intSlice": ("int_slice_value", _ints),
    "string": ("string_value", check_text),
    "stringSlice": ("string_slice_value", _strings),
    "version": ("version_value", check_text),
}
"""Member of the JSON form: field of ``Attribute``, and how it is read."""


def read_resource_class(obj: Obj, _read: Reader) -> ResourceClass:
    """A ResourceClass."""
    return ResourceClass(
        metadata=read_metadata(obj),
        driver_name=get_text(obj, "driverName"),
        parameters_ref=read_reference(obj, "parametersRef"),
        suitable_nodes=read_node_selector(obj, "suitableNodes"),
        structured_parameters=get_boolean(obj, "structuredParameters"),
        raw=obj,
    )


def read_reference(obj: Obj, key: str) -> ParametersReference | None:
    """``obj[key]`` as a reference; absent is ``None``."""
    reference = get_optional_object(obj, key)
    if reference is None:
        return None
    with At(key):
        return ParametersReference(
            get_text(reference, "apiGroup"),
            get_text(reference, "kind"),
            get_text(reference, "name"),
            get_text(reference, "namespace"),
        )


def read_class_parameters(obj: Obj, _read: Reader) -> ResourceClassParameters:
    """A ResourceClassParameters object."""
    return ResourceClassParameters(
        metadata=read_metadata(obj),
        generated_from=read_reference(obj, "generatedFrom"),
        vendor_parameters=each_object(obj, "vendorParameters", _vendor_parameters),
        filters=each_object(obj, "filters", _filter),
        raw=obj,
    )


def _vendor_parameters(obj: Obj) -> VendorParameters:
    return VendorParameters(get_text(obj, "driverName"), free_json(obj, "parameters"))


def _filter(obj: Obj) -> ResourceFilter:
    return ResourceFilter(get_text(obj, "driverName"), _named(obj, "selector"))


def _named(obj: Obj, key: str) -> str | None:
    """A text of the named resources model; ``None`` if the object is of another model."""
    model = get_optional_object(obj, MODEL)
    if model is None:
        return None
    with At(MODEL):
        return get_text(model, key)


def read_claim_parameters(obj: Obj, _read: Reader) -> ResourceClaimParameters:
    """A ResourceClaimParameters object."""
    return ResourceClaimParameters(
        metadata=read_metadata(obj),
        generated_from=read_reference(obj, "generatedFrom"),
        shareable=get_boolean(obj, "shareable"),
        driver_requests=each_object(obj, "driverRequests", _driver_requests),
        raw=obj,
    )


def _driver_requests(obj: Obj) -> DriverRequests:
    return DriverRequests(
        get_text(obj, "driverName"),
        free_json(obj, "vendorParameters"),
        each_object(obj, "requests", _request),
    )


def _request(obj: Obj) -> ResourceRequest:
    return ResourceRequest(free_json(obj, "vendorParameters"), _named(obj, "selector"))


def read_allocation_result(obj: Obj, _read: Reader) -> AllocationResult:
    """``status.allocation`` of a claim."""
    return AllocationResult(
        node_selector=read_node_selector(obj, "availableOnNodes"),
        resource_handles=each_object(obj, "resourceHandles", _handle),
        shareable=get_boolean(obj, "shareable"),
    )


def _handle(obj: Obj) -> ResourceHandle:
    structured = get_optional_object(obj, "structuredData")
    with At("structuredData"):
        data = None if structured is None else _structured(structured)
    return ResourceHandle(get_text(obj, "driverName"), get_text(obj, "data"), data)


def _structured(obj: Obj) -> StructuredResourceHandle:
    return StructuredResourceHandle(
        free_json(obj, "vendorClassParameters"),
        free_json(obj, "vendorClaimParameters"),
        get_text(obj, "nodeName"),
        each_object(obj, "results", _result),
    )


def _result(obj: Obj) -> DriverAllocationResult:
    return DriverAllocationResult(free_json(obj, "vendorRequestParameters"), _named(obj, "name"))
