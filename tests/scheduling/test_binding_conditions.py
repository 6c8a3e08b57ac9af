"""What an allocated claim still waits for before its pod may be bound."""

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from dra_core.api.names import SharedDeviceId
from dra_core.api.objects import (
    AllocatedDeviceStatus,
    AllocationResult,
    Condition,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dra_core.errors import MalformedObjectError
from dra_core.scheduling.binding_conditions import (
    AwaitedCondition,
    BindingState,
    BindingStatus,
    binding_status,
)
from support.claims import make_claim

START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
TIMESTAMP = "2026-01-01T12:00:00Z"
D1 = SharedDeviceId("driver", "pool", "d1", "")


def result(
    device: str = "d1",
    wants: tuple[str, ...] = ("Attached",),
    fails: tuple[str, ...] = ("Broken",),
    share: str = "",
) -> DeviceRequestAllocationResult:
    """A device with binding conditions."""
    return DeviceRequestAllocationResult(
        "r", "driver", "pool", device, binding_conditions=wants,
        binding_failure_conditions=fails, share_id=share,
    )  # fmt: skip


def status(device: str = "d1", share: str = "", **conditions: str) -> AllocatedDeviceStatus:
    """What the driver reports: condition to status."""
    return AllocatedDeviceStatus(
        "driver", "pool", device, share,
        tuple(Condition(name, value, message=f"{name}?") for name, value in conditions.items()),
    )  # fmt: skip


def claim(
    *results: DeviceRequestAllocationResult,
    statuses: tuple[AllocatedDeviceStatus, ...] = (),
    timestamp: str = TIMESTAMP,
) -> ResourceClaim:
    """An allocated claim."""
    allocation = AllocationResult(results, allocation_timestamp=timestamp)
    return attrs.evolve(make_claim(), allocation=allocation, device_statuses=statuses)


def state(claim: ResourceClaim, seconds: float = 1) -> BindingState:
    """Where the claim stands some seconds after its allocation."""
    return binding_status(claim).state(START + timedelta(seconds=seconds))


def test_without_conditions_nothing_is_waited_for() -> None:
    """Only a result with bindingConditions has to be ready."""
    assert state(claim(result(wants=(), fails=()))) is BindingState.READY
    assert state(make_claim()) is BindingState.READY
    assert binding_status(make_claim()) == BindingStatus()


def test_no_entry_is_waiting() -> None:
    """No entry = waiting."""
    found = binding_status(claim(result()))
    assert found.awaited == (AwaitedCondition(D1, "Attached"),)
    assert found.state(START) is BindingState.WAITING


def test_ready_when_every_condition_is_true() -> None:
    """Its entry has every one of them with status True."""
    both = result(wants=("Attached", "Warm"))
    half = claim(both, statuses=(status(Attached="True", Warm="False"),))
    assert binding_status(half).awaited == (AwaitedCondition(D1, "Warm", "Warm?"),)
    assert state(half) is BindingState.WAITING
    unknown = claim(both, statuses=(status(Attached="True", Warm="Unknown"),))
    assert state(unknown) is BindingState.WAITING
    ready = claim(both, statuses=(status(Attached="True", Warm="True"),))
    assert state(ready) is BindingState.READY


def test_every_device_has_to_be_ready() -> None:
    """Same driver, pool, device, share: the entry of another device does not count."""
    two = (result("d1"), result("d2"))
    one = claim(*two, statuses=(status("d1", Attached="True"),))
    assert [a.device.device for a in binding_status(one).awaited] == ["d2"]
    shares = (result("d1", share="s1"), result("d1", share="s2"))
    other = claim(*shares, statuses=(status("d1", "s2", Attached="True"), status(Attached="True")))
    assert [a.device.share_id for a in binding_status(other).awaited] == ["s1"]


def test_failed_wins_over_waiting_and_ready() -> None:
    """A bindingFailureConditions entry with status True = failed, and failed wins."""
    waiting = claim(result(), statuses=(status(Broken="True"),))
    ready = claim(result(), statuses=(status(Attached="True", Broken="True"),))
    assert state(waiting) is BindingState.FAILED
    assert state(waiting, 10_000) is BindingState.FAILED
    assert state(ready) is BindingState.FAILED
    assert binding_status(ready).failed == (AwaitedCondition(D1, "Broken", "Broken?"),)
    unclear = claim(result(), statuses=(status(Attached="True", Broken="Unknown"),))
    assert state(unclear) is BindingState.READY


def test_overdue_when_the_time_is_past_and_something_waits() -> None:
    """Overdue: allocationTimestamp + timeout (600 s, a parameter) is past and something waits."""
    waiting = claim(result())
    assert state(waiting, 600) is BindingState.WAITING
    assert state(waiting, 601) is BindingState.OVERDUE
    ready = claim(result(), statuses=(status(Attached="True"),))
    assert state(ready, 601) is BindingState.READY
    short = binding_status(waiting, timedelta(seconds=5))
    assert short.deadline == START + timedelta(seconds=5)
    assert short.state(START + timedelta(seconds=6)) is BindingState.OVERDUE


def test_without_a_time_waiting_does_not_end() -> None:
    """A claim without allocationTimestamp is never overdue; the next reservation sets it."""
    found = binding_status(claim(result(), timestamp=""))
    assert found.deadline is None
    assert found.state(START + timedelta(days=9)) is BindingState.WAITING


def test_times_of_any_zone_are_understood() -> None:
    """RFC 3339 has zones, too."""
    found = binding_status(claim(result(), timestamp="2026-01-01T14:00:00+02:00"))
    assert found.deadline == START + timedelta(seconds=600)


@pytest.mark.parametrize("text", ["soon", "2026-01-01T12:00:00", "9999-12-31T23:59:59Z"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    """A malformed object is refused with its kind, name and the path of the field."""
    with pytest.raises(MalformedObjectError) as caught:
        binding_status(claim(result(), timestamp=text))
    assert caught.value.name == "team-a/gpu"
    assert caught.value.path == "status.allocation.allocationTimestamp"
    ready = claim(result(), statuses=(status(Attached="True"),), timestamp=text)
    assert state(ready) is BindingState.READY


def test_only_failure_conditions() -> None:
    """A device may have nothing to wait for and still fail."""
    only = result(wants=())
    assert state(claim(only)) is BindingState.READY
    assert state(claim(only, statuses=(status(Broken="True"),))) is BindingState.FAILED
