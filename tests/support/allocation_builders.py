"""Short ways to write allocation problems down, for tests that are about one rule.

What may live here: builders with the defaults of a test (driver-a, pool-1, node-1,
class-a, which selects driver-a), and short readings of outcomes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dra_core.allocator.results import Allocated, Outcome
from dra_core.api.core import Node, ObjectMeta
from dra_core.api.names import DeviceId, SharedDeviceId
from dra_core.api.objects import (
    AttributeValue,
    CapacityRequirements,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassConfiguration,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceSlice,
)
from dra_core.features import Features
from dra_core.inventory.allocated import AllocatedState
from dra_core.testing.problem import Problem
from dra_core.values.quantity import Quantity

DRIVER = "driver-a"
POOL = "pool-1"
NODE = "node-1"

Amounts = Mapping[str, str]
Counters = Mapping[str, Amounts]

_LISTS = {int: "ints", str: "strings", bool: "bools"}
_SCALARS = {int: "int", str: "string", bool: "bool"}


def attribute(value: Any) -> AttributeValue:
    """A value with its type; lists become the list types, AttributeValue stays."""
    if isinstance(value, AttributeValue):
        return value
    if isinstance(value, list):
        return AttributeValue(_LISTS[type(value[0])], tuple(value))
    return AttributeValue(_SCALARS[type(value)], value)


def amounts(texts: Amounts) -> dict[str, Quantity]:
    """Quantities by name."""
    return {name: Quantity.parse(text) for name, text in texts.items()}


def device(
    name: str,
    attributes: Mapping[str, Any] | None = None,
    *,
    capacity: Mapping[str, str | DeviceCapacity] | None = None,
    counters: Counters | None = None,
    shared: bool = False,
    **fields: Any,
) -> Device:
    """A device; ``counters`` is what it consumes, by counter set."""
    return Device(
        name=name,
        attributes={key: attribute(value) for key, value in (attributes or {}).items()},
        capacity={
            key: value
            if isinstance(value, DeviceCapacity)
            else DeviceCapacity(Quantity.parse(value))
            for key, value in (capacity or {}).items()
        },
        consumes_counters=tuple(
            DeviceCounterConsumption(key, amounts(taken)) for key, taken in (counters or {}).items()
        ),
        allow_multiple_allocations=shared,
        **fields,
    )


def devices(number: int, first: int = 1) -> list[Device]:
    """Plain devices d1, d2, …"""
    return [device(f"d{index}") for index in range(first, first + number)]


def pool_slice(
    name: str,
    *members: Device,
    driver: str = DRIVER,
    pool: str = POOL,
    generation: int = 1,
    count: int = 1,
    node: str = NODE,
    offers: Counters | None = None,
    **fields: Any,
) -> ResourceSlice:
    """A slice; ``offers`` are its counter sets. ``node=""`` for one that is not of a node."""
    return ResourceSlice(
        metadata=ObjectMeta(name=name),
        driver=driver,
        pool=pool,
        generation=generation,
        resource_slice_count=count,
        node_name=node,
        devices=members,
        shared_counters=tuple(CounterSet(key, amounts(of)) for key, of in (offers or {}).items()),
        **fields,
    )


def device_class(name: str, *selectors: str, config: Sequence[str] = ()) -> DeviceClass:
    """A class; ``config`` are kinds of opaque parameters."""
    return DeviceClass(
        ObjectMeta(name=name),
        tuple(DeviceSelector(text) for text in selectors),
        tuple(DeviceClassConfiguration(opaque(kind)) for kind in config),
    )


def opaque(kind: str) -> OpaqueDeviceConfiguration:
    """Parameters for driver-a that say no more than their kind."""
    return OpaqueDeviceConfiguration(DRIVER, {"kind": kind})


CLASSES = (
    device_class("class-a", f'device.driver == "{DRIVER}"'),
    device_class("class-b", 'device.driver == "driver-b"'),
    device_class("class-any"),
)


def _spec(
    count: int | None, of: str, selectors: Sequence[str], capacity: Amounts | None, fields: Any
) -> dict[str, Any]:
    required = None if capacity is None else CapacityRequirements(amounts(capacity))
    return {
        "device_class_name": of,
        "selectors": tuple(DeviceSelector(text) for text in selectors),
        "count": count,
        "capacity": required,
        **fields,
    }


def exactly(
    name: str,
    count: int | None = 1,
    *selectors: str,
    of: str = "class-a",
    capacity: Amounts | None = None,
    **fields: Any,
) -> DeviceRequest:
    """A request for ``count`` devices of class ``of``."""
    return DeviceRequest(name, ExactDeviceRequest(**_spec(count, of, selectors, capacity, fields)))


def everything(
    name: str,
    *selectors: str,
    of: str = "class-a",
    capacity: Amounts | None = None,
    **fields: Any,
) -> DeviceRequest:
    """A request for all devices of class ``of``."""
    fields["allocation_mode"] = "All"
    return DeviceRequest(name, ExactDeviceRequest(**_spec(None, of, selectors, capacity, fields)))


def sub(
    name: str,
    count: int | None = 1,
    *selectors: str,
    of: str = "class-a",
    capacity: Amounts | None = None,
    **fields: Any,
) -> DeviceSubRequest:
    """An alternative; ``count`` None means all devices."""
    fields["allocation_mode"] = "All" if count is None else ""
    return DeviceSubRequest(name, **_spec(count, of, selectors, capacity, fields))


def first(name: str, *alternatives: DeviceSubRequest) -> DeviceRequest:
    """A request for the first of the alternatives that works."""
    return DeviceRequest(name, first_available=alternatives)


def match(name: str, *requests: str) -> DeviceConstraint:
    """All devices have the attribute in common."""
    return DeviceConstraint(requests, match_attribute=f"{DRIVER}/{name}")


def distinct(name: str, *requests: str) -> DeviceConstraint:
    """No two devices have the attribute in common."""
    return DeviceConstraint(requests, distinct_attribute=f"{DRIVER}/{name}")


def claim(*requests: DeviceRequest, name: str = "claim-0", **fields: Any) -> ResourceClaim:
    """A claim that is not allocated yet; ``fields`` are those of ``DeviceClaim``."""
    return ResourceClaim(
        ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        DeviceClaim(requests, **fields),
    )


def problem(
    claims: ResourceClaim | Sequence[ResourceClaim],
    *slices: ResourceSlice,
    node: str = NODE,
    labels: Mapping[str, str] | None = None,
    classes: Sequence[DeviceClass] = CLASSES,
    allocated: AllocatedState | None = None,
    off: Sequence[str] = (),
) -> Problem:
    """A problem on a node; ``off`` are features that are off."""
    return Problem(
        claims=(claims,) if isinstance(claims, ResourceClaim) else tuple(claims),
        slices=slices,
        classes=tuple(classes),
        node=Node(ObjectMeta(name=node, labels=dict(labels or {}))),
        allocated=AllocatedState() if allocated is None else allocated,
        features=Features.from_gates(dict.fromkeys(off, False)),
    )


def device_id(name: str, driver: str = DRIVER, pool: str = POOL) -> DeviceId:
    """A device by its name."""
    return DeviceId(driver, pool, name)


def in_use(*names: str) -> AllocatedState:
    """A state in which these devices of pool-1 are allocated exclusively."""
    return AllocatedState.from_parts([device_id(name) for name in names])


def shared_use(shares: Mapping[str, Amounts | None]) -> AllocatedState:
    """A state with one share of each device, by what it consumes (None: not known)."""
    return AllocatedState.from_parts(
        shares=[SharedDeviceId(*device_id(name), f"share-of-{name}") for name in shares],
        consumed_capacity={
            device_id(name): amounts(taken) for name, taken in shares.items() if taken is not None
        },
    )


def granted(outcome: Outcome) -> list[list[str]]:
    """The names of the devices that each claim got. Fails unless there is an allocation."""
    assert isinstance(outcome, Allocated), outcome
    return [[result.device for result in one.results] for one in outcome.results]


def served(outcome: Outcome) -> list[list[tuple[str, str]]]:
    """As ``granted``, each device with the request that it is for."""
    assert isinstance(outcome, Allocated), outcome
    return [[(result.request, result.device) for result in one.results] for one in outcome.results]


def without_steps(outcome: Outcome) -> Outcome:
    """The outcome with its count of work set to zero, to compare answers."""
    return attrs.evolve(outcome, steps=0)
