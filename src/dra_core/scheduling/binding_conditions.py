"""Binding conditions: what an allocated claim still waits for before its pod may run.

What may live here: reading a claim's status. What a scheduler does about the finding is
``cycle``'s business.

Devices of a fabric are attached after they were allocated. Until then a pod must not be
bound, and if it fails another device should be tried. So a device lists conditions, which
its driver sets in ``status.devices``: those that have to be true, and those of which none
may be. The clock is the caller's.

Source: KEP-5007; resource.k8s.io/v1, DeviceRequestAllocationResult.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import attrs

from dra_core.api.names import SharedDeviceId
from dra_core.api.objects import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dra_core.errors import MalformedObjectError

DEFAULT_TIMEOUT: Final = timedelta(seconds=600)
"""How long after the allocation the conditions may take (the scheduler's bindingTimeout)."""


class BindingState(StrEnum):
    """Where a claim stands; the first that applies, in this order."""

    FAILED = "a device failed"
    READY = "nothing is waited for"
    OVERDUE = "a device took too long"
    WAITING = "a device is not ready yet"


@attrs.frozen
class AwaitedCondition:
    """A condition of a device that is not true yet, or a failure condition that is.

    ``share_id`` of ``device`` is "" for a whole device. ``message`` is what the driver
    says about the condition, "" if nothing.
    """

    device: SharedDeviceId
    type: str
    message: str = ""


@attrs.frozen
class BindingStatus:
    """What a claim waits for, in the order of its results.

    ``failed``: failure conditions that are true. ``awaited``: conditions that are not true
    yet. ``deadline``: when waiting ends, ``None`` while the claim has no
    ``allocationTimestamp``, which the next reservation sets.
    """

    failed: tuple[AwaitedCondition, ...] = ()
    awaited: tuple[AwaitedCondition, ...] = ()
    deadline: datetime | None = None

    def state(self, now: datetime) -> BindingState:
        """Where the claim stands at ``now``, a time with a time zone."""
        if self.failed:
            return BindingState.FAILED
        if not self.awaited:
            return BindingState.READY
        if self.deadline is not None and now > self.deadline:
            return BindingState.OVERDUE
        return BindingState.WAITING


def binding_status(claim: ResourceClaim, timeout: timedelta = DEFAULT_TIMEOUT) -> BindingStatus:
    """What the claim's devices wait for; nothing for a claim without allocation.

    A device without an entry in ``status.devices`` waits for all its conditions. Raises
    ``MalformedObjectError`` for an ``allocationTimestamp`` that is no time, if it matters.
    Cost: linear in results and conditions.
    """
    allocation = claim.allocation
    if allocation is None:
        return BindingStatus()
    failed: list[AwaitedCondition] = []
    awaited: list[AwaitedCondition] = []
    statuses = {_status_id(status): status for status in claim.device_statuses}
    for result in allocation.results:
        if not result.binding_conditions and not result.binding_failure_conditions:
            continue
        device = _result_id(result)
        conditions = _conditions(statuses.get(device))
        for name in result.binding_failure_conditions:
            true, message = conditions.get(name, (False, ""))
            if true:
                failed.append(AwaitedCondition(device, name, message))
        for name in result.binding_conditions:
            true, message = conditions.get(name, (False, ""))
            if not true:
                awaited.append(AwaitedCondition(device, name, message))
    deadline = _deadline(claim, allocation.allocation_timestamp, timeout) if awaited else None
    return BindingStatus(tuple(failed), tuple(awaited), deadline)


def _status_id(status: AllocatedDeviceStatus) -> SharedDeviceId:
    return SharedDeviceId(status.driver, status.pool, status.device, status.share_id)


def _result_id(result: DeviceRequestAllocationResult) -> SharedDeviceId:
    return SharedDeviceId(result.driver, result.pool, result.device, result.share_id)


def _conditions(status: AllocatedDeviceStatus | None) -> dict[str, tuple[bool, str]]:
    """For each condition whether it is true, and its message."""
    if status is None:
        return {}
    return {c.type: (c.status == "True", c.message) for c in status.conditions}


def _deadline(claim: ResourceClaim, timestamp: str, timeout: timedelta) -> datetime | None:
    if not timestamp:
        return None
    path = "status.allocation.allocationTimestamp"
    try:
        end = datetime.fromisoformat(timestamp) + timeout
    except (ValueError, OverflowError):
        end = None
    if end is None or end.tzinfo is None:
        problem = f"no RFC 3339 time that a time-out can be counted from: {timestamp[:100]!r}"
        raise MalformedObjectError("ResourceClaim", str(claim.metadata.key), path, problem)
    return end
