"""Claims, classes, templates and allocations to the JSON of a version.

What may live here: for each type that asks for devices, or answers, the function that
states its JSON form. Members that are absent are left out, except those that the API
always writes. What a version cannot express is never dropped in silence.
"""

from functools import partial

from dra_core.api.objects import (
    AllocatedDeviceStatus,
    AllocationResult,
    CapacityRequirements,
    Condition,
    DeviceAllocationConfiguration,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceClassConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from dra_core.api.wire_encode_core import write_metadata, write_node_selector
from dra_core.api.wire_free import copy_json
from dra_core.api.wire_read import At, Fault
from dra_core.api.wire_versions import Version
from dra_core.api.wire_write import (
    Json,
    compact,
    given,
    write_each,
    write_quantities,
)


def write_device_class(obj: DeviceClass, version: Version) -> Json:
    """A DeviceClass, without apiVersion and kind."""
    with At("spec"):
        if obj.suitable_nodes is not None:
            _only_alpha("suitableNodes", version)
        spec = compact(
            {
                "selectors": [_selector(item) for item in obj.selectors],
                "config": [_class_config(item) for item in obj.config],
                "extendedResourceName": obj.extended_resource_name,
            }
        )
    spec |= given(suitableNodes=write_node_selector(obj.suitable_nodes))
    return {"metadata": write_metadata(obj.metadata), "spec": spec}


def _only_alpha(field: str, version: Version) -> None:
    if not version.alpha:
        raise Fault("existed in v1alpha3 only", field)


def _class_config(config: DeviceClassConfiguration) -> Json:
    return given(opaque=_opaque(config.opaque))


def _selector(selector: DeviceSelector) -> Json:
    return {} if selector.cel is None else {"cel": {"expression": selector.cel}}


def _opaque(opaque: OpaqueDeviceConfiguration | None) -> Json | None:
    if opaque is None:
        return None
    return {"driver": opaque.driver} | given(parameters=copy_json(opaque.parameters))


def write_resource_claim(obj: ResourceClaim, version: Version) -> Json:
    """A ResourceClaim, without apiVersion and kind."""
    status: Json = {}
    with At("status"):
        if obj.allocation is not None:
            with At("allocation"):
                status["allocation"] = write_allocation_result(obj.allocation, version)
        if obj.deallocation_requested:
            _only_alpha("deallocationRequested", version)
    status |= compact(
        {
            "reservedFor": [write_consumer(item) for item in obj.reserved_for],
            "devices": [_device_status(item) for item in obj.device_statuses],
            "deallocationRequested": obj.deallocation_requested or None,
        }
    )
    with At("spec"):
        spec = _claim_spec(obj.devices, obj.controller, version)
    return (
        compact({"metadata": write_metadata(obj.metadata)})
        | {"spec": spec}
        | compact({"status": status})
    )


def write_resource_claim_template(obj: ResourceClaimTemplate, version: Version) -> Json:
    """A ResourceClaimTemplate, without apiVersion and kind."""
    with At("spec"), At("spec"):
        claim_spec = _claim_spec(obj.devices, obj.controller, version)
    spec = compact({"metadata": write_metadata(obj.claim_metadata)}) | {"spec": claim_spec}
    return {"metadata": write_metadata(obj.metadata), "spec": spec}


def _claim_spec(claim: DeviceClaim, controller: str, version: Version) -> Json:
    if controller:
        _only_alpha("controller", version)
    with At("devices"):
        devices = compact(
            {
                "requests": write_each(
                    "requests", claim.requests, partial(_request, version=version)
                ),
                "constraints": [_constraint(item) for item in claim.constraints],
                "config": [_claim_config(item) for item in claim.config],
            }
        )
    return compact({"devices": devices, "controller": controller})


def _request(request: DeviceRequest, version: Version) -> Json:
    result: Json = {"name": request.name}
    if request.exactly is not None:
        exactly = _exactly(request.exactly)
        if not version.flat_requests:
            result["exactly"] = exactly
        elif exactly:
            result |= exactly
        else:
            raise Fault("is set and empty, which this version cannot tell from absent", "exactly")
    return result | compact(
        {"firstAvailable": [_sub_request(item) for item in request.first_available]}
    )


def _exactly(request: ExactDeviceRequest) -> Json:
    return _request_fields(request) | given(adminAccess=request.admin_access)


def _sub_request(request: DeviceSubRequest) -> Json:
    return {"name": request.name} | _request_fields(request)


def _request_fields(request: ExactDeviceRequest | DeviceSubRequest) -> Json:
    return compact(
        {
            "deviceClassName": request.device_class_name,
            "selectors": [_selector(item) for item in request.selectors],
            "allocationMode": request.allocation_mode,
            "count": request.count,
            "tolerations": [write_toleration(item) for item in request.tolerations],
        }
    ) | given(capacity=_capacity_requirements(request.capacity))


def _capacity_requirements(capacity: CapacityRequirements | None) -> Json | None:
    return None if capacity is None else compact({"requests": write_quantities(capacity.requests)})


def write_toleration(toleration: DeviceToleration) -> Json:
    """A toleration of a request or of an allocation result."""
    return compact(
        {
            "key": toleration.key,
            "operator": toleration.operator,
            "value": toleration.value,
            "effect": toleration.effect,
            "tolerationSeconds": toleration.toleration_seconds,
        }
    )


def _constraint(constraint: DeviceConstraint) -> Json:
    return compact({"requests": list(constraint.requests)}) | given(
        matchAttribute=constraint.match_attribute,
        distinctAttribute=constraint.distinct_attribute,
    )


def _claim_config(config: DeviceClaimConfiguration) -> Json:
    return compact({"requests": list(config.requests)}) | given(opaque=_opaque(config.opaque))


def write_allocation_result(result: AllocationResult, version: Version) -> Json:
    """``status.allocation`` of a claim. ``devices`` is always there, as the API has it."""
    if result.controller:
        _only_alpha("controller", version)
    devices = compact(
        {
            "results": [_result(item) for item in result.results],
            "config": [_allocation_config(item) for item in result.config],
        }
    )
    return (
        {"devices": devices}
        | given(nodeSelector=write_node_selector(result.node_selector))
        | compact(
            {"allocationTimestamp": result.allocation_timestamp, "controller": result.controller}
        )
    )


def _result(result: DeviceRequestAllocationResult) -> Json:
    consumed = result.consumed_capacity
    return (
        {
            "request": result.request,
            "driver": result.driver,
            "pool": result.pool,
            "device": result.device,
        }
        | compact(
            {
                "adminAccess": result.admin_access,
                "tolerations": [write_toleration(item) for item in result.tolerations],
                "bindingConditions": list(result.binding_conditions),
                "bindingFailureConditions": list(result.binding_failure_conditions),
                "shareID": result.share_id,
                "skipNodeOperations": list(result.skip_node_operations),
            }
        )
        | given(consumedCapacity=None if consumed is None else write_quantities(consumed))
    )


def _allocation_config(config: DeviceAllocationConfiguration) -> Json:
    return (
        {"source": config.source}
        | compact({"requests": list(config.requests)})
        | given(opaque=_opaque(config.opaque))
    )


def write_consumer(consumer: ResourceClaimConsumerReference) -> Json:
    """One entry of ``status.reservedFor``."""
    return compact({"apiGroup": consumer.api_group}) | {
        "resource": consumer.resource,
        "name": consumer.name,
        "uid": consumer.uid,
    }


def _device_status(status: AllocatedDeviceStatus) -> Json:
    return (
        {
            "driver": status.driver,
            "pool": status.pool,
            "device": status.device,
        }
        | compact(
            {
                "shareID": status.share_id,
                "conditions": [_condition(item) for item in status.conditions],
            }
        )
        | given(data=copy_json(status.data), networkData=copy_json(status.network_data))
    )


def _condition(condition: Condition) -> Json:
    return {
        "type": condition.type,
        "status": condition.status,
    } | compact(
        {
            "observedGeneration": condition.observed_generation,
            "lastTransitionTime": condition.last_transition_time,
            "reason": condition.reason,
            "message": condition.message,
        }
    )
