"""Small allocated claims for tests of what is in use: one line each."""

from collections.abc import Mapping

from dra_core.api.core import NodeSelector, ObjectMeta
from dra_core.api.names import DeviceId, ObjectKey, SharedDeviceId
from dra_core.api.objects import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from dra_core.values.quantity import Quantity

DRIVER = "gpu.example.com"
NAMESPACE = "team-a"


def device(name: str, pool: str = "pool-a", driver: str = DRIVER) -> DeviceId:
    """A device."""
    return DeviceId(driver, pool, name)


def share(name: str, share_id: str, pool: str = "pool-a", driver: str = DRIVER) -> SharedDeviceId:
    """A share of a device."""
    return SharedDeviceId(driver, pool, name, share_id)


def amounts(**texts: str) -> dict[str, Quantity]:
    """Capacity by name, written as quantities."""
    return {name: Quantity.parse(text) for name, text in texts.items()}


def result(
    what: DeviceId | SharedDeviceId,
    consumed: Mapping[str, Quantity] | None = None,
    admin: bool | None = None,
) -> DeviceRequestAllocationResult:
    """One allocated device, or a share of one."""
    share_id = what.share_id if isinstance(what, SharedDeviceId) else ""
    return DeviceRequestAllocationResult(
        "req", what.driver, what.pool, what.device, admin, share_id=share_id,
        consumed_capacity=consumed,
    )  # fmt: skip


def allocation(
    *results: DeviceId | SharedDeviceId | DeviceRequestAllocationResult,
    node_selector: NodeSelector | None = None,
) -> AllocationResult:
    """An allocation of devices, shares or complete results."""
    return AllocationResult(
        tuple(
            item if isinstance(item, DeviceRequestAllocationResult) else result(item)
            for item in results
        ),
        node_selector=node_selector,
    )


def claim(
    name: str = "claim",
    *results: DeviceId | SharedDeviceId | DeviceRequestAllocationResult,
    uid: str | None = None,
    version: str = "1",
    namespace: str = NAMESPACE,
    finalizers: tuple[str, ...] = (),
) -> ResourceClaim:
    """A claim, allocated if it is given results. UID ``<name>-uid`` unless given."""
    return ResourceClaim(
        ObjectMeta(
            name, namespace, f"{name}-uid" if uid is None else uid, version, finalizers=finalizers
        ),
        allocation=allocation(*results) if results else None,
    )


def key(name: str = "claim", namespace: str = NAMESPACE) -> ObjectKey:
    """The key of such a claim."""
    return ObjectKey(namespace, name)
