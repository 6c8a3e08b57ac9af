"""The objects of resource.k8s.io/v1 that scheduling reads, frozen.

All served versions are decoded into these (``dra_core.api.wire``). The
conventions are those of ``dra_core.api.core``: absent strings are ``""``, absent
lists and maps are empty, ``None`` only where absent and empty differ.

Attribute values carry their type (``AttributeValue``), because ``1``, ``True`` and
``"1"`` are different values to the API and some of them equal to Python.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import attrs

from dra_core.api.core import NodeSelector, ObjectMeta
from dra_core.api.names import DeviceId, PoolId
from dra_core.values.quantity import Quantity

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Must be on a claim before its status carries an allocation (resource.k8s.io/v1, Finalizer)."""

ALLOCATION_MODE_EXACT_COUNT = "ExactCount"
ALLOCATION_MODE_ALL = "All"

MAX_DEVICES_PER_CLAIM = 32
"""AllocationResultsMaxSize: a claim never gets more devices."""


class AttributeValue(NamedTuple):
    """A device attribute: its type and its value.

    ``kind`` is the API's member name: "int" (int), "bool" (bool), "string" (str),
    "version" (str, the text as given), "ints", "bools", "strings", "versions"
    (tuples), or ``""`` with value ``None`` when no known member is set.
    """

    kind: str
    value: int | bool | str | tuple[int, ...] | tuple[bool, ...] | tuple[str, ...] | None


@attrs.frozen
class CapacityRequestPolicyRange:
    """Amounts from ``min`` to ``max`` in steps of ``step``; absent ones do not bound."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


@attrs.frozen
class CapacityRequestPolicy:
    """Which amounts of a capacity may be consumed."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


@attrs.frozen
class DeviceCapacity:
    """How much of something a device has, and how it may be shared out."""

    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


@attrs.frozen
class DeviceTaint:
    """A reason to stay away from a device. ``time_added`` is the API's text."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str = ""


@attrs.frozen
class DeviceToleration:
    """What taint a request puts up with. Operator "" means Equal."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


@attrs.frozen
class DeviceCounterConsumption:
    """What a device takes from one counter set of its pool."""

    counter_set: str = ""
    counters: Mapping[str, Quantity] = attrs.field(factory=dict)


@attrs.frozen
class CounterSet:
    """Amounts that the devices of a pool share."""

    name: str = ""
    counters: Mapping[str, Quantity] = attrs.field(factory=dict)


# Without the slot for weak references: decoding fills the slots through a class of the
# same layout (wire_slices), which a slot that attrs adds would prevent.
@attrs.frozen(weakref_slot=False)
class Device:
    """One device of a slice. ``node_name`` "" means not tied to one node."""

    name: str = ""
    attributes: Mapping[str, AttributeValue] = attrs.field(factory=dict)
    capacity: Mapping[str, DeviceCapacity] = attrs.field(factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


@attrs.frozen
class ResourceSlice:
    """Some devices or counter sets of a pool; ``spec`` flattened.

    ``node_name`` "" and ``all_nodes`` False mean absent. ``generation`` and
    ``resource_slice_count`` are the pool's.
    """

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    driver: str = ""
    pool: str = ""
    generation: int = 0
    resource_slice_count: int = 0
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def pool_id(self) -> PoolId:
        """``(driver, pool)``."""
        return PoolId(self.driver, self.pool)


@attrs.frozen
class OpaqueDeviceConfiguration:
    """Parameters for a driver. ``parameters`` is decoded JSON; never printed, it may be secret."""

    driver: str = ""
    parameters: Any = attrs.field(default=None, repr=False)


@attrs.frozen
class DeviceSelector:
    """One selector; ``cel`` None is a kind of selector that is not known here."""

    cel: str | None = None


@attrs.frozen
class DeviceClassConfiguration:
    """Configuration that a class adds; ``opaque`` None is a kind not known here."""

    opaque: OpaqueDeviceConfiguration | None = None


@attrs.frozen
class DeviceClass:
    """A named set of selectors and configuration; ``spec`` flattened.

    ``suitable_nodes`` existed in v1alpha3 only.
    """

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str = ""
    suitable_nodes: NodeSelector | None = None
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name


@attrs.frozen
class CapacityRequirements:
    """How much capacity each device of a request must give; an empty one is still one."""

    requests: Mapping[str, Quantity] = attrs.field(factory=dict)


@attrs.frozen
class ExactDeviceRequest:
    """A request for devices of one class. ``count`` None means absent: 1."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int | None = None
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


@attrs.frozen
class DeviceSubRequest:
    """One alternative of ``firstAvailable``: as ``ExactDeviceRequest``, named, no admin access."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


@attrs.frozen
class DeviceRequest:
    """One request of a claim: ``exactly`` or ``first_available``."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


@attrs.frozen
class DeviceConstraint:
    """What the devices of several requests must have in common, or must not.

    ``requests`` empty means all; an entry is a request or ``request/subrequest``.
    """

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


@attrs.frozen
class DeviceClaimConfiguration:
    """Configuration of a claim for some requests; empty ``requests`` means all."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


@attrs.frozen
class DeviceClaim:
    """``spec.devices`` of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


@attrs.frozen
class DeviceRequestAllocationResult:
    """One device that a claim got. ``share_id`` "" means the whole device.

    ``consumed_capacity`` and ``admin_access`` are ``None`` when absent.
    """

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str = ""
    consumed_capacity: Mapping[str, Quantity] | None = None
    skip_node_operations: tuple[str, ...] = ()

    @property
    def device_id(self) -> DeviceId:
        """``(driver, pool, device)``."""
        return DeviceId(self.driver, self.pool, self.device)


@attrs.frozen
class DeviceAllocationConfiguration:
    """Configuration that goes with an allocation; ``source`` is FromClass or FromClaim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


@attrs.frozen
class AllocationResult:
    """What a claim got: ``status.allocation``, with ``devices`` flattened.

    ``node_selector`` None means available everywhere. ``allocation_timestamp`` is
    the API's text. ``controller`` existed in v1alpha3 only.
    """

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str = ""
    controller: str = ""


@attrs.frozen
class ResourceClaimConsumerReference:
    """Who uses a claim: one entry of ``status.reservedFor``."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


@attrs.frozen
class Condition:
    """metav1.Condition, what binding conditions read of it."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | None = None


@attrs.frozen
class AllocatedDeviceStatus:
    """What a driver reports about an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str = ""
    conditions: tuple[Condition, ...] = ()
    data: Any = attrs.field(default=None, repr=False)
    network_data: Mapping[str, Any] | None = None


@attrs.frozen
class ResourceClaim:
    """A demand for devices and what became of it; ``spec`` and ``status`` flattened.

    ``controller`` (``spec.controller``) and ``deallocation_requested`` existed in
    v1alpha3 only.
    """

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    devices: DeviceClaim = attrs.field(factory=DeviceClaim)
    controller: str = ""
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    device_statuses: tuple[AllocatedDeviceStatus, ...] = ()
    deallocation_requested: bool = False
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``."""
        return self.metadata.namespace


@attrs.frozen
class ResourceClaimTemplate:
    """What claims to generate; ``claim_metadata`` and ``devices`` are the claim's."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    claim_metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    devices: DeviceClaim = attrs.field(factory=DeviceClaim)
    controller: str = ""
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class DeviceTaintSelector:
    """Which devices a taint rule means; ``None`` fields select everything."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


@attrs.frozen
class DeviceTaintRule:
    """Adds a taint to devices; without a selector it selects nothing (k/k#141620)."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = attrs.field(factory=DeviceTaint)
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)
