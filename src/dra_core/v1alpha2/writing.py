"""Encoding: from what ``objects`` has to JSON.

What may live here: one function per type, without apiVersion and kind of whole objects.
What is absent is left out; every result is a copy.
"""

from typing import Any

from dra_core.api.wire_encode_core import write_metadata, write_node_selector
from dra_core.api.wire_free import copy_json
from dra_core.api.wire_write import Json, compact, given
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
    ResourceHandle,
    ResourceRequest,
    ResourceSlice,
    StructuredResourceHandle,
)
from dra_core.v1alpha2.reading import MODEL


def write_resource_slice(obj: ResourceSlice) -> Json:
    """A ResourceSlice."""
    model = None
    if obj.instances is not None:
        model = {"instances": [_instance(item) for item in obj.instances]}
    return (
        {"metadata": write_metadata(obj.metadata)}
        | compact({"nodeName": obj.node_name})
        | {"driverName": obj.driver_name}
        | given(**{MODEL: model})
    )


def _instance(instance: Instance) -> Json:
    attributes = [_attribute(item) for item in instance.attributes]
    return {"name": instance.name} | compact({"attributes": attributes})


def _attribute(attribute: Attribute) -> Json:
    quantity, ints = attribute.quantity_value, attribute.int_slice_value
    strings = attribute.string_slice_value
    values = {
        "quantity": None if quantity is None else str(quantity),
        "bool": attribute.bool_value,
        "int": attribute.int_value,
        "intSlice": None if ints is None else {"ints": list(ints)},
        "string": attribute.string_value,
        "stringSlice": None if strings is None else {"strings": list(strings)},
        "version": attribute.version_value,
    }
    return {"name": attribute.name} | given(**values)


def write_reference(reference: ParametersReference | None) -> Json | None:
    """A reference; ``None`` stays ``None``."""
    if reference is None:
        return None
    return (
        compact({"apiGroup": reference.api_group})
        | {"kind": reference.kind, "name": reference.name}
        | compact({"namespace": reference.namespace})
    )


def write_resource_class(obj: ResourceClass) -> Json:
    """A ResourceClass."""
    return {"metadata": write_metadata(obj.metadata), "driverName": obj.driver_name} | given(
        parametersRef=write_reference(obj.parameters_ref),
        suitableNodes=write_node_selector(obj.suitable_nodes),
        structuredParameters=obj.structured_parameters or None,
    )


def write_class_parameters(obj: ResourceClassParameters) -> Json:
    """A ResourceClassParameters object."""
    vendor = [
        {"driverName": item.driver_name} | _free("parameters", item.parameters)
        for item in obj.vendor_parameters
    ]
    filters = [
        {"driverName": item.driver_name} | _named("selector", item.selector) for item in obj.filters
    ]
    return (
        {"metadata": write_metadata(obj.metadata)}
        | given(generatedFrom=write_reference(obj.generated_from))
        | compact({"vendorParameters": vendor, "filters": filters})
    )


def _named(key: str, value: str | None) -> Json:
    """The member for the named resources model; nothing for a model not known here."""
    return {} if value is None else {MODEL: {key: value}}


def _free(key: str, value: Any) -> Json:
    return {} if value is None else {key: copy_json(value)}


def write_claim_parameters(obj: ResourceClaimParameters) -> Json:
    """A ResourceClaimParameters object."""
    return (
        {"metadata": write_metadata(obj.metadata)}
        | given(generatedFrom=write_reference(obj.generated_from), shareable=obj.shareable or None)
        | compact({"driverRequests": [_driver_requests(item) for item in obj.driver_requests]})
    )


def _driver_requests(entry: DriverRequests) -> Json:
    return (
        {"driverName": entry.driver_name}
        | _free("vendorParameters", entry.vendor_parameters)
        | compact({"requests": [_request(item) for item in entry.requests]})
    )


def _request(request: ResourceRequest) -> Json:
    return _free("vendorParameters", request.vendor_parameters) | _named(
        "selector", request.selector
    )


def write_allocation_result(result: AllocationResult) -> Json:
    """``status.allocation`` of a claim."""
    return compact({"resourceHandles": [_handle(item) for item in result.resource_handles]}) | (
        given(
            availableOnNodes=write_node_selector(result.node_selector),
            shareable=result.shareable or None,
        )
    )


def _handle(handle: ResourceHandle) -> Json:
    structured = handle.structured_data
    return compact({"driverName": handle.driver_name, "data": handle.data}) | given(
        structuredData=None if structured is None else _structured(structured)
    )


def _structured(data: StructuredResourceHandle) -> Json:
    return (
        _free("vendorClassParameters", data.vendor_class_parameters)
        | _free("vendorClaimParameters", data.vendor_claim_parameters)
        | compact({"nodeName": data.node_name})
        | {"results": [_result(item) for item in data.results]}
    )


def _result(result: DriverAllocationResult) -> Json:
    return _free("vendorRequestParameters", result.vendor_request_parameters) | _named(
        "name", result.name
    )
