"""Decoding what asks for devices: classes, claims, templates, allocations, taint rules.

What may live here: one function per type, from decoded JSON to the frozen object. The
primitives and their rules are those of ``wire_read``.
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
    DeviceTaintRule,
    DeviceTaintSelector,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from dra_core.api.wire_core import read_metadata, read_node_selector
from dra_core.api.wire_free import free_json
from dra_core.api.wire_read import (
    At,
    Fault,
    Obj,
    Reader,
    each_object,
    get_boolean,
    get_object,
    get_optional_boolean,
    get_optional_integer,
    get_optional_object,
    get_optional_text,
    get_text,
    get_texts,
    member,
    refuse,
)
from dra_core.api.wire_slices import read_taint

EXACT_FIELDS = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)
"""What sits under ``exactly`` in v1 and v1beta2, and directly in a request before."""

_TAINT_SELECTOR_FIELDS = ("driver", "pool", "device")


def read_device_class(obj: Obj, read: Reader) -> DeviceClass:
    """A DeviceClass of the reader's version."""
    metadata = read_metadata(obj)
    spec = get_object(obj, "spec")
    with At("spec"):
        return DeviceClass(
            metadata=metadata,
            selectors=each_object(spec, "selectors", _selector),
            config=each_object(spec, "config", lambda c: DeviceClassConfiguration(_opaque(c))),
            extended_resource_name=get_text(spec, "extendedResourceName"),
            suitable_nodes=read_node_selector(spec, "suitableNodes") if read.alpha else None,
            raw=obj,
        )


def _selector(obj: Obj) -> DeviceSelector:
    cel = get_optional_object(obj, "cel")
    if cel is None:
        return DeviceSelector()
    with At("cel"):
        return DeviceSelector(get_text(cel, "expression"))


def _opaque(obj: Obj) -> OpaqueDeviceConfiguration | None:
    opaque = get_optional_object(obj, "opaque")
    if opaque is None:
        return None
    with At("opaque"):
        return OpaqueDeviceConfiguration(
            get_text(opaque, "driver"), free_json(opaque, "parameters")
        )


def read_resource_claim(obj: Obj, read: Reader) -> ResourceClaim:
    """A ResourceClaim of the reader's version."""
    metadata = read_metadata(obj)
    spec = get_object(obj, "spec")
    status = get_object(obj, "status")
    with At("spec"):
        devices = _device_claim(spec, read)
        controller = get_text(spec, "controller") if read.alpha else ""
    with At("status"):
        allocation = get_optional_object(status, "allocation")
        with At("allocation"):
            result = None if allocation is None else read_allocation_result(allocation, read)
        return ResourceClaim(
            metadata=metadata,
            devices=devices,
            controller=controller,
            allocation=result,
            reserved_for=each_object(status, "reservedFor", read_consumer),
            device_statuses=each_object(status, "devices", _device_status),
            deallocation_requested=read.alpha and get_boolean(status, "deallocationRequested"),
            raw=obj,
        )


def read_resource_claim_template(obj: Obj, read: Reader) -> ResourceClaimTemplate:
    """A ResourceClaimTemplate of the reader's version."""
    metadata = read_metadata(obj)
    spec = get_object(obj, "spec")
    with At("spec"):
        claim_metadata = read_metadata(spec)
        claim_spec = get_object(spec, "spec")
        with At("spec"):
            devices = _device_claim(claim_spec, read)
            controller = get_text(claim_spec, "controller") if read.alpha else ""
    return ResourceClaimTemplate(metadata, claim_metadata, devices, controller, raw=obj)


def _device_claim(spec: Obj, read: Reader) -> DeviceClaim:
    obj = get_object(spec, "devices")
    with At("devices"):
        return DeviceClaim(
            each_object(obj, "requests", partial(_request, read=read)),
            each_object(obj, "constraints", _constraint),
            each_object(obj, "config", _claim_config),
        )


def _request(obj: Obj, read: Reader) -> DeviceRequest:
    name = get_text(obj, "name")
    alternatives = each_object(obj, "firstAvailable", partial(_sub_request, read=read))
    if read.flat_requests:
        refuse(obj, ("exactly",), "does not exist in this version, whose requests are flat")
        exists = any(obj.get(field) is not None for field in EXACT_FIELDS)
        return DeviceRequest(name, _exactly(obj, read) if exists else None, alternatives)
    refuse(obj, EXACT_FIELDS, "belongs under exactly in this version")
    inner = get_optional_object(obj, "exactly")
    with At("exactly"):
        exactly = None if inner is None else _exactly(inner, read)
    return DeviceRequest(name, exactly, alternatives)


def _exactly(obj: Obj, read: Reader) -> ExactDeviceRequest:
    return ExactDeviceRequest(
        device_class_name=get_text(obj, "deviceClassName"),
        selectors=each_object(obj, "selectors", _selector),
        allocation_mode=get_text(obj, "allocationMode"),
        count=get_optional_integer(obj, "count"),
        admin_access=get_optional_boolean(obj, "adminAccess"),
        tolerations=each_object(obj, "tolerations", read_toleration),
        capacity=_capacity_requirements(obj, read),
    )


def _sub_request(obj: Obj, read: Reader) -> DeviceSubRequest:
    return DeviceSubRequest(
        name=get_text(obj, "name"),
        device_class_name=get_text(obj, "deviceClassName"),
        selectors=each_object(obj, "selectors", _selector),
        allocation_mode=get_text(obj, "allocationMode"),
        count=get_optional_integer(obj, "count"),
        tolerations=each_object(obj, "tolerations", read_toleration),
        capacity=_capacity_requirements(obj, read),
    )


def _capacity_requirements(obj: Obj, read: Reader) -> CapacityRequirements | None:
    capacity = get_optional_object(obj, "capacity")
    if capacity is None:
        return None
    with At("capacity"):
        return CapacityRequirements(read.quantities(capacity, "requests"))


def read_toleration(obj: Obj) -> DeviceToleration:
    """A toleration of a request or of an allocation result."""
    return DeviceToleration(
        key=get_text(obj, "key"),
        operator=get_text(obj, "operator"),
        value=get_text(obj, "value"),
        effect=get_text(obj, "effect"),
        toleration_seconds=get_optional_integer(obj, "tolerationSeconds"),
    )


def _constraint(obj: Obj) -> DeviceConstraint:
    return DeviceConstraint(
        get_texts(obj, "requests"),
        get_optional_text(obj, "matchAttribute"),
        get_optional_text(obj, "distinctAttribute"),
    )


def _claim_config(obj: Obj) -> DeviceClaimConfiguration:
    return DeviceClaimConfiguration(get_texts(obj, "requests"), _opaque(obj))


def read_allocation_result(obj: Obj, read: Reader) -> AllocationResult:
    """``status.allocation`` of a claim."""
    devices = get_object(obj, "devices")
    with At("devices"):
        results = each_object(devices, "results", partial(_result, read=read))
        config = each_object(devices, "config", _allocation_config)
    return AllocationResult(
        results=results,
        config=config,
        node_selector=read_node_selector(obj, "nodeSelector"),
        allocation_timestamp=get_text(obj, "allocationTimestamp"),
        controller=get_text(obj, "controller") if read.alpha else "",
    )


def _result(obj: Obj, read: Reader) -> DeviceRequestAllocationResult:
    consumed = get_optional_object(obj, "consumedCapacity")
    return DeviceRequestAllocationResult(
        request=get_text(obj, "request"),
        driver=get_text(obj, "driver"),
        pool=get_text(obj, "pool"),
        device=get_text(obj, "device"),
        admin_access=get_optional_boolean(obj, "adminAccess"),
        tolerations=each_object(obj, "tolerations", read_toleration),
        binding_conditions=get_texts(obj, "bindingConditions"),
        binding_failure_conditions=get_texts(obj, "bindingFailureConditions"),
        share_id=get_text(obj, "shareID"),
        consumed_capacity=None if consumed is None else read.quantities(obj, "consumedCapacity"),
        skip_node_operations=get_texts(obj, "skipNodeOperations"),
    )


def _allocation_config(obj: Obj) -> DeviceAllocationConfiguration:
    return DeviceAllocationConfiguration(
        get_text(obj, "source"), get_texts(obj, "requests"), _opaque(obj)
    )


def read_consumer(obj: Obj) -> ResourceClaimConsumerReference:
    """One entry of ``status.reservedFor``."""
    return ResourceClaimConsumerReference(
        api_group=get_text(obj, "apiGroup"),
        resource=get_text(obj, "resource"),
        name=get_text(obj, "name"),
        uid=get_text(obj, "uid"),
    )


def _device_status(obj: Obj) -> AllocatedDeviceStatus:
    get_optional_object(obj, "networkData")  # for its type
    return AllocatedDeviceStatus(
        driver=get_text(obj, "driver"),
        pool=get_text(obj, "pool"),
        device=get_text(obj, "device"),
        share_id=get_text(obj, "shareID"),
        conditions=each_object(obj, "conditions", _condition),
        data=free_json(obj, "data"),
        network_data=free_json(obj, "networkData"),
    )


def _condition(obj: Obj) -> Condition:
    return Condition(
        type=get_text(obj, "type"),
        status=get_text(obj, "status"),
        reason=get_text(obj, "reason"),
        message=get_text(obj, "message"),
        last_transition_time=get_text(obj, "lastTransitionTime"),
        observed_generation=get_optional_integer(obj, "observedGeneration"),
    )


def read_device_taint_rule(obj: Obj, _read: Reader) -> DeviceTaintRule:
    """A DeviceTaintRule.

    An unknown field of the selector is refused: it would narrow what the rule
    selects, and a rule that loses it taints more than its author meant.
    """
    metadata = read_metadata(obj)
    spec = get_object(obj, "spec")
    with At("spec"):
        selector = get_optional_object(spec, "deviceSelector")
        with At("deviceSelector"):
            device_selector = None if selector is None else _taint_selector(selector)
        taint = get_object(spec, "taint")
        with At("taint"):
            return DeviceTaintRule(metadata, device_selector, read_taint(taint), raw=obj)


def _taint_selector(obj: Obj) -> DeviceTaintSelector:
    unknown = [key for key in obj if key not in _TAINT_SELECTOR_FIELDS and obj[key] is not None]
    if unknown:
        raise Fault(
            "is no selector field known here; ignoring it would taint too much",
            member(unknown[0]),
        )
    return DeviceTaintSelector(*[get_optional_text(obj, key) for key in _TAINT_SELECTOR_FIELDS])
