"""Pods that sleep, and what their wake-ups look things up in, for tests."""

from collections.abc import Iterable
from typing import Any

import attrs

from dra_core.api.core import Pod
from dra_core.api.names import ObjectKey
from dra_core.api.objects import (
    AllocationResult,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceSlice,
)
from dra_core.scheduling.assume_cache import CacheEvent
from dra_core.scheduling.extended_resources import classes_by_resource
from dra_core.scheduling.in_flight import InFlight
from dra_core.scheduling.wakeups import wake_up
from dra_core.scheduling.wakeups_demand import Lookups
from dra_core.scheduling.wakeups_verdict import WakeReason
from support.allocation_builders import exactly
from support.claim_json import entry
from support.claims import make_claim, make_pod, named

SKIP, QUEUE, AT_ONCE = "skip", "queue", "queue at once"


def claim(
    *requests: DeviceRequest,
    name: str = "gpu",
    allocation: AllocationResult | None = None,
    reserved_for: Iterable[str] = (),
    driver: str = "",
    **rest: Any,
) -> ResourceClaim:
    """A claim, by default for one device of class-a. ``driver``: of a controller, v1alpha3."""
    made = make_claim(name, uid=f"{name}-uid", **rest)
    return attrs.evolve(
        made,
        devices=DeviceClaim(requests or (exactly("r"),)),
        allocation=allocation,
        reserved_for=tuple(map(entry, reserved_for)),
        controller=driver,
    )


def lookups(
    *claims: ResourceClaim,
    classes: Iterable[DeviceClass] = (),
    slices: Iterable[ResourceSlice] = (),
    in_flight: Iterable[InFlight] = (),
    **rest: Any,
) -> Lookups:
    """What is known, of everything that a rule may ask for."""
    by_key = {found.metadata.key: found for found in claims}
    by_name = {found.name: found for found in classes}
    pending = {found.uid: found for found in in_flight}
    known = tuple(slices)
    return Lookups(
        by_key.get,
        by_name.get,
        lambda pool: [found for found in known if found.pool_id == pool],
        classes_by_resource(by_name.values()).__contains__,
        pending.get,
        **rest,
    )


def pod_using(*names: str, **rest: Any) -> Pod:
    """A pod with claims of these names, made by users; entry ``e-gpu`` names claim ``gpu``."""
    return make_pod(*(named(f"e-{name}", name) for name in names), **rest)


def change(old: Any, new: Any) -> CacheEvent[Any]:
    """An event as the cache tells it."""
    obj = old if new is None else new
    return CacheEvent(ObjectKey("", "") if obj is None else obj.metadata.key, old, new)


def answer(pod: Pod, old: Any, new: Any, known: Lookups) -> tuple[str, WakeReason]:
    """What the event means for the pod, and why."""
    found = wake_up(pod, change(old, new), known)
    assert found.wakes == (found.queueing != SKIP)
    return found.queueing.value, found.reason


def consumers(number: int) -> tuple[ResourceClaimConsumerReference, ...]:
    """Entries of reservedFor for other pods."""
    return tuple(entry(f"other-{index}") for index in range(number))
