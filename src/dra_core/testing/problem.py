"""One allocation problem as a value, and what its selectors are.

What may live here: the vocabulary that the twin, the checker, the strategies and the
laws share.
"""

from collections.abc import Callable

import attrs

from dra_core.api.core import Node
from dra_core.api.names import DeviceId, PoolId
from dra_core.api.objects import (
    Device,
    DeviceClass,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from dra_core.features import Features
from dra_core.inventory.allocated import NOTHING_ALLOCATED, AllocatedState

Matches = Callable[[str, Device], bool]
"""A compiled selector: driver and device to yes or no. Raises a DraError if it fails."""

Compile = Callable[[str], Matches]
"""The text of a selector to its compiled form. Raises a DraError if it is none."""


@attrs.frozen
class Problem:
    """Everything one call of the allocator is given."""

    claims: tuple[ResourceClaim, ...]
    slices: tuple[ResourceSlice, ...]
    classes: tuple[DeviceClass, ...]
    node: Node
    allocated: AllocatedState = NOTHING_ALLOCATED
    features: Features = attrs.field(factory=Features)

    def device_class(self, name: str) -> DeviceClass | None:
        """The class of that name; None if there is none."""
        return next((one for one in self.classes if one.name == name), None)


@attrs.frozen
class Entry:
    """A device where it is listed."""

    resource_slice: ResourceSlice
    device: Device

    @property
    def id(self) -> DeviceId:
        """``(driver, pool, device)``."""
        return DeviceId(self.resource_slice.driver, self.resource_slice.pool, self.device.name)

    @property
    def pool_id(self) -> PoolId:
        """``(driver, pool)``."""
        return self.resource_slice.pool_id


@attrs.frozen
class Demand:
    """One request, or one subrequest, that has passed the checks.

    ``name`` is ``main`` or ``main/sub``. ``count`` devices are needed; ``everything``
    lists them in mode All and is None otherwise.
    """

    main: str
    name: str
    spec: ExactDeviceRequest | DeviceSubRequest
    device_class: DeviceClass
    count: int = 0
    everything: tuple[Entry, ...] | None = None

    @property
    def admin_access(self) -> bool:
        """Whether devices in use may be taken."""
        return isinstance(self.spec, ExactDeviceRequest) and bool(self.spec.admin_access)
