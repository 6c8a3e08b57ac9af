"""What one scheduling cycle looks at: the cluster as it is at one moment.

What may live here: ``NamedSource``, which follows the caches, and ``NamedInput``, what it
hands out. They do for this version what ``dra_core.scheduling.cycle_input`` does for the
later ones, and for the same reasons: all caches share one lock, events only note what has
changed, and ``take`` brings everything up to date in the scheduling thread.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import attrs

from dra_core.api.names import DeviceId
from dra_core.inventory.allocated import AllocatedState
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.scheduling.errors import SeparateLocksError, StaleInputError
from dra_core.scheduling.in_flight import ClaimTracker
from dra_core.v1alpha2.allocation import NamedAllocator
from dra_core.v1alpha2.inventory import NamedInventory
from dra_core.v1alpha2.objects import (
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceSlice,
)
from dra_core.v1alpha2.parameters import ParameterStore
from dra_core.v1alpha2.selectors import InstanceSelectors

T = TypeVar("T")


@attrs.frozen(eq=False)
class NamedInput:
    """Consistent slices, classes, parameters and state of use, for one cycle.

    ``allocator`` has the first three, ``allocated`` is what is in use, and ``basis`` the part
    of it that the claim tracker knows. Valid until the next
    ``take`` of its source; any number of threads may read it until then. Its classes stay
    as they are even longer: what is bound later still knows its driver.
    """

    allocator: NamedAllocator
    allocated: AllocatedState
    revision: int
    basis: AllocatedState = attrs.field()

    @basis.default
    def _all_of_it(self) -> AllocatedState:
        return self.allocated

    @property
    def classes(self) -> Mapping[str, ResourceClass]:
        """The classes by name."""
        return self.allocator.classes

    def check_current(self) -> None:
        """Raise ``StaleInputError`` if the slices have changed since this was taken."""
        revision = self.allocator.inventory.revision
        if revision != self.revision:
            raise StaleInputError(self.revision, revision)

    def with_allocated(self, allocated: AllocatedState) -> "NamedInput":
        """The same slices, classes and parameters with another state of use."""
        return attrs.evolve(self, allocated=allocated, basis=allocated)

    def with_unavailable(self, devices: Iterable[DeviceId]) -> "NamedInput":
        """The same, in which some more devices cannot be had: their node still has them."""
        return attrs.evolve(self, allocated=self.allocated.with_unavailable(devices))


class NamedSource:
    """Follows slices, classes and parameters, and hands them out with what is in use.

    ``tracker`` knows the claims. The other caches must share the lock of its cache: make
    them with ``delivery=tracker.cache.atomic()``, else ``SeparateLocksError`` is raised.

    Use one source per scheduling thread. An event costs O(1), ``take`` what has changed
    since the last call.
    """

    def __init__(
        self,
        tracker: ClaimTracker,
        slices: AssumeCache[ResourceSlice],
        classes: AssumeCache[ResourceClass],
        class_parameters: AssumeCache[ResourceClassParameters],
        claim_parameters: AssumeCache[ResourceClaimParameters],
        *,
        selectors: InstanceSelectors | None = None,
    ) -> None:
        self._tracker = tracker
        self._lock = tracker.cache.atomic()
        self._classes = classes
        self._inventory = NamedInventory()
        self._parameters = ParameterStore()
        self._selectors = InstanceSelectors() if selectors is None else selectors
        self._allocator = self._with_classes(())
        # What has changed since the last take, in order. Only touched under the lock.
        self._slice_changes: list[tuple[ResourceSlice | None, ResourceSlice | None]] = []
        self._parameter_changes: list[
            tuple[
                ResourceClassParameters | ResourceClaimParameters | None,
                ResourceClassParameters | ResourceClaimParameters | None,
            ]
        ] = []
        self._new_classes = True
        self._check_lock(slices, "ResourceSlice")
        self._check_lock(classes, "ResourceClass")
        self._check_lock(class_parameters, "ResourceClassParameters")
        self._check_lock(claim_parameters, "ResourceClaimParameters")
        slices.attach(lambda old, new: self._slice_changes.append((old, new)))
        classes.attach(self._class_changed)
        class_parameters.attach(lambda old, new: self._parameter_changes.append((old, new)))
        claim_parameters.attach(lambda old, new: self._parameter_changes.append((old, new)))

    def _check_lock(self, cache: AssumeCache[T], kind: str) -> None:
        if cache.atomic() is not self._lock:
            raise SeparateLocksError(kind)

    def _class_changed(self, _old: ResourceClass | None, _new: ResourceClass | None) -> None:
        self._new_classes = True

    def take(self) -> NamedInput:
        """The cluster as it is now; what was taken before is not valid any more.

        The same allocator comes again as long as no class changed.
        """
        with self._lock:
            slice_changes, self._slice_changes = self._slice_changes, []
            parameter_changes, self._parameter_changes = self._parameter_changes, []
            classes = self._classes.list() if self._new_classes else None
            self._new_classes = False
            allocated = self._tracker.allocated()
        for old_slice, new_slice in slice_changes:
            self._inventory.changed(old_slice, new_slice)
        for old, new in parameter_changes:
            self._parameters.changed(old, new)
        if classes is not None:
            self._allocator = self._with_classes(classes)
        return NamedInput(self._allocator, allocated, self._inventory.revision)

    def _with_classes(self, classes: tuple[ResourceClass, ...]) -> NamedAllocator:
        return NamedAllocator(
            self._inventory,
            {resource_class.name: resource_class for resource_class in classes},
            self._parameters,
            selectors=self._selectors,
        )
