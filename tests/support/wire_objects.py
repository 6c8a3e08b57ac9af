"""Strategies for API objects as the decoder builds them, and for damaging their JSON.

The objects obey types, not the API's rules: names may be empty, lists long, amounts
negative. Laws of encoding and decoding have to hold for all of them.
"""

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from dra_core.api.core import (
    Container,
    ContainerExtendedResourceRequest,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodExtendedResourceClaimStatus,
    PodGroup,
    PodResourceClaim,
    PodResourceClaimStatus,
)
from dra_core.api.objects import (
    AllocatedDeviceStatus,
    AllocationResult,
    AttributeValue,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CapacityRequirements,
    Condition,
    CounterSet,
    Device,
    DeviceAllocationConfiguration,
    DeviceCapacity,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceClassConfiguration,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dra_core.api.scheduling_context import PodSchedulingContext, ResourceClaimSchedulingStatus
from dra_core.values.quantity import Quantity

texts = st.one_of(
    st.sampled_from(["", "a", "b", "gpu.example.com/model", "ä\0", "x" * 70]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
booleans = st.booleans()
int64s = st.one_of(st.integers(-2, 3), st.integers(-(2**63), 2**63 - 1))
quantities = st.sampled_from(
    ["0", "1", "80Gi", "1500m", "-3", "1e3", "100n", "12345678901234567890123", "0.5Ki"]
).map(Quantity.parse)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The strategy, or None."""
    return st.one_of(st.none(), strategy)


def tuples(strategy: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[tuple[Any, ...]]:
    """Up to ``most`` values."""
    return st.lists(strategy, max_size=most).map(tuple)


def maps(strategy: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    """Up to ``most`` named values."""
    return st.dictionaries(texts, strategy, max_size=most)


free_json = st.recursive(
    st.one_of(st.none(), booleans, int64s, st.just(10**30), texts, st.just(0.5)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), maps(inner)),
    max_leaves=4,
)
free_maps = maps(free_json)

attribute_values = st.one_of(
    st.just(AttributeValue("", None)),
    st.builds(AttributeValue, st.just("int"), int64s),
    st.builds(AttributeValue, st.just("bool"), booleans),
    st.builds(AttributeValue, st.sampled_from(["string", "version"]), texts),
    st.builds(AttributeValue, st.just("ints"), tuples(int64s)),
    st.builds(AttributeValue, st.just("bools"), tuples(booleans)),
    st.builds(AttributeValue, st.sampled_from(["strings", "versions"]), tuples(texts)),
)

owner_references = st.builds(
    OwnerReference, texts, texts, texts, texts, controller=booleans, block_owner_deletion=booleans
)
metadata = st.builds(
    ObjectMeta,
    name=texts,
    namespace=texts,
    uid=texts,
    resource_version=texts,
    generate_name=texts,
    labels=maps(texts),
    annotations=maps(texts),
    owner_references=tuples(owner_references),
    finalizers=tuples(texts),
    creation_timestamp=texts,
    deletion_timestamp=texts,
)

requirements = st.builds(NodeSelectorRequirement, texts, texts, tuples(texts))
terms = st.builds(NodeSelectorTerm, tuples(requirements), tuples(requirements))
node_selectors = maybe(st.builds(NodeSelector, tuples(terms)))

taints = st.builds(DeviceTaint, texts, texts, texts, texts)
tolerations = tuples(
    st.builds(DeviceToleration, texts, texts, texts, texts, toleration_seconds=maybe(int64s))
)
ranges = st.builds(
    CapacityRequestPolicyRange, maybe(quantities), maybe(quantities), maybe(quantities)
)
policies = st.builds(CapacityRequestPolicy, maybe(quantities), tuples(quantities), maybe(ranges))


def capacities(with_policy: bool) -> st.SearchStrategy[DeviceCapacity]:
    """Capacities of a device."""
    return st.builds(DeviceCapacity, quantities, maybe(policies) if with_policy else st.none())


def devices(with_policy: bool) -> st.SearchStrategy[Device]:
    """Devices with every field set now and then."""
    return st.builds(
        Device,
        name=texts,
        attributes=maps(attribute_values, 4),
        capacity=maps(capacities(with_policy)),
        consumes_counters=tuples(st.builds(DeviceCounterConsumption, texts, maps(quantities))),
        node_name=texts,
        node_selector=node_selectors,
        all_nodes=booleans,
        taints=tuples(taints),
        binds_to_node=booleans,
        binding_conditions=tuples(texts),
        binding_failure_conditions=tuples(texts),
        allow_multiple_allocations=booleans,
    )


def resource_slices(with_policy: bool = True) -> st.SearchStrategy[ResourceSlice]:
    """Slices; without policies they can be written as v1alpha3."""
    return st.builds(
        ResourceSlice,
        metadata=metadata,
        driver=texts,
        pool=texts,
        generation=int64s,
        resource_slice_count=int64s,
        node_name=texts,
        node_selector=node_selectors,
        all_nodes=booleans,
        per_device_node_selection=booleans,
        devices=tuples(devices(with_policy), 3),
        shared_counters=tuples(st.builds(CounterSet, texts, maps(quantities))),
        skip_node_operations=tuples(texts),
    )


opaques = maybe(st.builds(OpaqueDeviceConfiguration, texts, free_json))
selectors = tuples(st.builds(DeviceSelector, maybe(texts)))


def device_classes(alpha: bool = False) -> st.SearchStrategy[DeviceClass]:
    """Classes; ``suitable_nodes`` only where the version has them."""
    return st.builds(
        DeviceClass,
        metadata=metadata,
        selectors=selectors,
        config=tuples(st.builds(DeviceClassConfiguration, opaques)),
        extended_resource_name=texts,
        suitable_nodes=node_selectors if alpha else st.none(),
    )


requirements_of_capacity = maybe(st.builds(CapacityRequirements, maps(quantities)))
exact_requests = st.builds(
    ExactDeviceRequest,
    device_class_name=texts,
    selectors=selectors,
    allocation_mode=texts,
    count=maybe(int64s),
    admin_access=maybe(booleans),
    tolerations=tolerations,
    capacity=requirements_of_capacity,
)
sub_requests = st.builds(
    DeviceSubRequest,
    name=texts,
    device_class_name=texts,
    selectors=selectors,
    allocation_mode=texts,
    count=maybe(int64s),
    tolerations=tolerations,
    capacity=requirements_of_capacity,
)
device_claims = st.builds(
    DeviceClaim,
    tuples(st.builds(DeviceRequest, texts, maybe(exact_requests), tuples(sub_requests))),
    tuples(st.builds(DeviceConstraint, tuples(texts), maybe(texts), maybe(texts))),
    tuples(st.builds(DeviceClaimConfiguration, tuples(texts), opaques)),
)

results = st.builds(
    DeviceRequestAllocationResult,
    request=texts,
    driver=texts,
    pool=texts,
    device=texts,
    admin_access=maybe(booleans),
    tolerations=tolerations,
    binding_conditions=tuples(texts),
    binding_failure_conditions=tuples(texts),
    share_id=texts,
    consumed_capacity=maybe(maps(quantities)),
    skip_node_operations=tuples(texts),
)


def allocation_results(alpha: bool = False) -> st.SearchStrategy[AllocationResult]:
    """Allocation results; ``controller`` only where the version has one."""
    return st.builds(
        AllocationResult,
        results=tuples(results),
        config=tuples(st.builds(DeviceAllocationConfiguration, texts, tuples(texts), opaques)),
        node_selector=node_selectors,
        allocation_timestamp=texts,
        controller=texts if alpha else st.just(""),
    )


conditions = st.builds(Condition, texts, texts, texts, texts, texts, maybe(int64s))
device_statuses = st.builds(
    AllocatedDeviceStatus,
    texts,
    texts,
    texts,
    share_id=texts,
    conditions=tuples(conditions),
    data=free_json,
    network_data=maybe(free_maps),
)


def resource_claims(alpha: bool = False) -> st.SearchStrategy[ResourceClaim]:
    """Claims with status; what only v1alpha3 had only for it."""
    return st.builds(
        ResourceClaim,
        metadata=metadata,
        devices=device_claims,
        controller=texts if alpha else st.just(""),
        allocation=maybe(allocation_results(alpha)),
        reserved_for=tuples(st.builds(ResourceClaimConsumerReference, texts, texts, texts, texts)),
        device_statuses=tuples(device_statuses),
        deallocation_requested=booleans if alpha else st.just(False),
    )


def resource_claim_templates(alpha: bool = False) -> st.SearchStrategy[ResourceClaimTemplate]:
    """Claim templates."""
    return st.builds(
        ResourceClaimTemplate,
        metadata=metadata,
        claim_metadata=metadata,
        devices=device_claims,
        controller=texts if alpha else st.just(""),
    )


device_taint_rules = st.builds(
    DeviceTaintRule,
    metadata,
    maybe(st.builds(DeviceTaintSelector, maybe(texts), maybe(texts), maybe(texts))),
    taints,
)

pod_scheduling_contexts = st.builds(
    PodSchedulingContext,
    metadata,
    texts,
    tuples(texts),
    tuples(st.builds(ResourceClaimSchedulingStatus, texts, tuples(texts))),
)

containers = tuples(st.builds(Container, texts, maps(quantities), maps(quantities), texts))
claim_statuses = tuples(st.builds(PodResourceClaimStatus, texts, maybe(texts)))
pod_claims = tuples(st.builds(PodResourceClaim, texts, maybe(texts), maybe(texts)))
extended_statuses = st.builds(
    PodExtendedResourceClaimStatus,
    texts,
    tuples(st.builds(ContainerExtendedResourceRequest, texts, texts, texts)),
)
nodes = st.builds(Node, metadata, tuples(texts), maps(quantities))
pods = st.builds(
    Pod,
    metadata=metadata,
    node_name=texts,
    scheduler_name=texts,
    resource_claims=pod_claims,
    pod_group_name=maybe(texts),
    containers=containers,
    init_containers=containers,
    phase=texts,
    resource_claim_statuses=claim_statuses,
    extended_resource_claim_status=maybe(extended_statuses),
)
pod_groups = st.builds(PodGroup, metadata, pod_claims, claim_statuses)


def of_group(alpha: bool) -> st.SearchStrategy[Any]:
    """Objects of resource.k8s.io that every version but v1alpha3 has, or those it has."""
    return st.one_of(
        resource_slices(with_policy=not alpha),
        device_classes(alpha),
        resource_claims(alpha),
        resource_claim_templates(alpha),
    )


# --- damage ------------------------------------------------------------------------------

Place = tuple[str | int, ...]


def places(value: Any, here: Place = ()) -> Iterator[Place]:
    """The place of every value in decoded JSON, the root first."""
    yield here
    if isinstance(value, dict):
        for key, child in value.items():
            yield from places(child, (*here, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from places(child, (*here, index))


def replaced(value: Any, place: Place, new: Any) -> Any:
    """A copy of ``value`` with ``new`` at ``place``; what is not on the way is shared."""
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = replaced(value[place[0]], place[1:], new)
    return copy


def without(value: Any, place: Place) -> Any:
    """A copy of ``value`` that lacks what is at ``place``."""
    copy = value.copy()
    if len(place) > 1:
        copy[place[0]] = without(value[place[0]], place[1:])
    else:
        del copy[place[0]]
    return copy
