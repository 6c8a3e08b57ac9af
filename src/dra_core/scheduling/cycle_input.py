"""What one scheduling cycle looks at: slices, classes and what is in use, of one moment.

What may live here: ``CycleSource``, which follows the caches, and ``CycleInput``, what it
hands out.

The theory. Events for slices, classes, taint rules and claims arrive on different threads
at any time. A cycle must not see a claim released from a device and still the slice from
before the release, nor change what it sees half-way. So all caches share one lock
(``Delivery``). Under it ``take`` collects in one step what has changed since it was last
called, together with what is in use: everything that was observed before is in, and
nothing that is observed later. Events only note what has changed; the inventory itself is
brought up to date by ``take``, in the scheduling thread, which is the only one that
touches it. Between two calls of ``take`` nothing that a cycle looks at can change.
"""

from collections.abc import Callable, Iterable, Mapping

import attrs

from dra_core.allocator.allocation import ALL_FEATURES, Allocator
from dra_core.api.names import DeviceId
from dra_core.api.objects import DeviceClass, DeviceTaintRule, ResourceSlice
from dra_core.cel.selector import SelectorCache
from dra_core.features import Features
from dra_core.inventory.allocated import AllocatedState
from dra_core.inventory.index import Inventory
from dra_core.inventory.taint_rules import apply_taint_rules
from dra_core.scheduling.assume_cache import AssumeCache, T
from dra_core.scheduling.errors import SeparateLocksError, StaleInputError
from dra_core.scheduling.extended_resources import classes_by_resource
from dra_core.scheduling.in_flight import ClaimTracker


@attrs.frozen(eq=False)
class CycleInput:
    """A consistent inventory, classes and state of use, for one cycle.

    ``allocator`` has the inventory and the features, ``classes`` are by name, ``resources``
    says which class serves which extended resource, ``allocated`` is what is in use, and
    ``basis`` the part of it that the claim tracker knows. ``revision`` is the inventory's.
    Valid until the next ``take`` of its source; any number of threads may read it until then.
    """

    allocator: Allocator
    classes: Mapping[str, DeviceClass]
    resources: Mapping[str, DeviceClass]
    allocated: AllocatedState
    revision: int
    basis: AllocatedState = attrs.field()

    @basis.default
    def _all_of_it(self) -> AllocatedState:
        return self.allocated

    @property
    def inventory(self) -> Inventory:
        """The slices, after taint rules."""
        return self.allocator.inventory

    def check_current(self) -> None:
        """Raise ``StaleInputError`` if the inventory has changed since this was taken."""
        if self.inventory.revision != self.revision:
            raise StaleInputError(self.revision, self.inventory.revision)

    def with_allocated(self, allocated: AllocatedState) -> "CycleInput":
        """The same slices and classes with another state of use.

        For the next pod of a session that goes on with one view of the cluster:
        ``ClaimTracker.allocated()`` after the last pod has reserved, or any state to find
        out what would be.
        """
        return attrs.evolve(self, allocated=allocated, basis=allocated)

    def with_unavailable(self, devices: Iterable[DeviceId]) -> "CycleInput":
        """The same, in which some more devices cannot be had.

        For devices that no claim holds any more but that their node has not released yet,
        which only the host can know (k/k#141471). Others of the same pools can be reserved.
        """
        return attrs.evolve(self, allocated=self.allocated.with_unavailable(devices))


class CycleSource:
    """Follows slices, classes and taint rules, and hands them out with what is in use.

    ``tracker`` knows the claims. The other caches must share the lock of its cache: make
    them with ``delivery=tracker.cache.atomic()``, else ``SeparateLocksError`` is raised.
    ``rules`` may be left out, and are ignored with the feature DeviceTaints off.
    ``share_ids``, ``features`` and ``selectors`` are the allocator's.

    Use one source per scheduling thread. An event costs O(1); ``take`` costs what changed
    since the last call: O(log n) per slice, and where a taint rule changed O(slices).
    """

    def __init__(
        self,
        tracker: ClaimTracker,
        slices: AssumeCache[ResourceSlice],
        classes: AssumeCache[DeviceClass],
        rules: AssumeCache[DeviceTaintRule] | None = None,
        *,
        share_ids: Callable[[], str],
        features: Features = ALL_FEATURES,
        selectors: SelectorCache | None = None,
    ) -> None:
        self._tracker = tracker
        self._lock = tracker.cache.atomic()
        self._slices = slices
        self._classes = classes
        self._share_ids = share_ids
        self._features = features
        self._selectors = SelectorCache() if selectors is None else selectors
        self._inventory = Inventory()
        # What is in the inventory, after taint rules.
        self._patched: dict[str, ResourceSlice] = {}
        self._given: CycleInput | None = None
        # What has changed since the last take. Only touched under the lock.
        self._changed_slices: dict[str, ResourceSlice | None] = {}
        self._new_classes = True
        self._new_rules = False
        self._check_lock(slices, "ResourceSlice")
        self._check_lock(classes, "DeviceClass")
        slices.attach(self._slice_changed)
        classes.attach(self._class_changed)
        self._rules: AssumeCache[DeviceTaintRule] | None = None
        if rules is not None and features.device_taints:
            self._check_lock(rules, "DeviceTaintRule")
            rules.attach(self._rule_changed)
            self._rules = rules

    def _check_lock(self, cache: AssumeCache[T], kind: str) -> None:
        if cache.atomic() is not self._lock:
            raise SeparateLocksError(kind)

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if new is not None:
            self._changed_slices[new.name] = new
        elif old is not None:
            self._changed_slices[old.name] = None

    def _class_changed(self, _old: DeviceClass | None, _new: DeviceClass | None) -> None:
        self._new_classes = True

    def _rule_changed(self, _old: DeviceTaintRule | None, _new: DeviceTaintRule | None) -> None:
        self._new_rules = True

    def take(self) -> CycleInput:
        """The cluster as it is now; what was taken before is not valid any more.

        The same allocator comes again as long as no class changed, so that what it has
        worked out is kept.
        """
        with self._lock:
            changes, self._changed_slices = self._changed_slices, {}
            rules = () if self._rules is None else self._rules.list()
            if self._new_rules:
                changes |= {found.name: found for found in self._slices.list()}
            classes = self._classes.list() if self._new_classes else None
            self._new_rules = self._new_classes = False
            allocated = self._tracker.allocated()
        self._bring_up_to_date(changes, rules)
        if classes is not None or self._given is None:
            self._given = self._with_classes(classes or (), allocated)
        revision = self._inventory.revision
        given = self._given
        return attrs.evolve(given, allocated=allocated, basis=allocated, revision=revision)

    def _with_classes(
        self, classes: tuple[DeviceClass, ...], allocated: AllocatedState
    ) -> CycleInput:
        allocator = Allocator(
            self._inventory,
            classes,
            share_ids=self._share_ids,
            features=self._features,
            selectors=self._selectors,
        )
        by_name = {device_class.name: device_class for device_class in classes}
        resources = classes_by_resource(classes)
        return CycleInput(allocator, by_name, resources, allocated, self._inventory.revision)

    def _bring_up_to_date(
        self, changes: Mapping[str, ResourceSlice | None], rules: tuple[DeviceTaintRule, ...]
    ) -> None:
        for name, changed in changes.items():
            if changed is None and self._patched.pop(name, None) is not None:
                self._inventory.delete(name)
        present = [changed for changed in changes.values() if changed is not None]
        for patched in apply_taint_rules(present, rules):
            # A rule leaves most slices as they were, and views of them stay valid.
            if self._patched.get(patched.name) != patched:
                self._patched[patched.name] = patched
                self._inventory.update(patched)
