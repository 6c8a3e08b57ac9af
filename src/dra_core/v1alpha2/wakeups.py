"""Is a pod with claims of this version worth another attempt after an event?

What may live here: the rules for the kinds of objects that only this version has, in the
form in which ``dra_core.scheduling.wakeups`` takes them: ``NamedWaking``. Claims, pods and
nodes have the same rules in all versions.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import attrs

from dra_core.api import objects
from dra_core.errors import AllocationError
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.scheduling.wakeups_verdict import WakeReason, WakeUp, queue, skip
from dra_core.v1alpha2.allocation import NamedAllocator
from dra_core.v1alpha2.claims import ResourceClaim
from dra_core.v1alpha2.inventory import NamedInventory
from dra_core.v1alpha2.kinds import NamedFacts
from dra_core.v1alpha2.objects import (
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceSlice,
)
from dra_core.v1alpha2.parameters import (
    ParameterStore,
    uses_claim_parameters,
    uses_class_parameters,
)
from dra_core.v1alpha2.status import Allocation

_KINDS: Final = (ResourceSlice, ResourceClass, ResourceClassParameters, ResourceClaimParameters)


@attrs.frozen
class NamedWaking(NamedFacts):
    """All claims of this version, for wake-ups: ``Lookups(kinds=(NamedWaking(…),))``.

    The allocator's classes and parameters have to be those of the caches that the events
    come from; ``waking_kind`` makes one that follows caches. ``guard`` is held while they
    are read.
    """

    guard: AbstractContextManager[Any] = attrs.field(factory=nullcontext)

    def handles(self, claim: objects.ResourceClaim) -> bool:
        """Whether the claim is of this version."""
        return isinstance(claim, ResourceClaim)

    def concerns(self, obj: object) -> bool:
        """Whether the object is of a kind that only this version has."""
        return isinstance(obj, _KINDS)

    def missing(self, claim: objects.ResourceClaim) -> AllocationError | None:
        """As ``NamedFacts.missing``."""
        with self.guard:
            return NamedFacts(self.allocator).missing(claim)

    def changed(
        self,
        claims: Sequence[objects.ResourceClaim],
        old: object | None,
        new: object | None,
    ) -> WakeUp:
        """Whether the change of such an object is worth an attempt.

        ``claims`` are the pod's of this version, in its order.
        """
        mine = [claim for claim in claims if isinstance(claim, ResourceClaim)]
        changed = old if new is None else new
        with self.guard:
            if isinstance(changed, ResourceSlice):
                return self._slice_changed(mine, old, new)
            if isinstance(changed, ResourceClass):
                return _class_changed(mine, changed)
            return self._parameters_changed(mine, old, new)

    def _slice_changed(
        self, claims: Sequence[ResourceClaim], old: object | None, new: object | None
    ) -> WakeUp:
        """Fewer instances may help, too: a selector may have failed on one that is gone."""
        pending = [claim for claim in claims if claim.allocation is None]
        if not any(self.allocation_of(claim) is Allocation.STRUCTURED for claim in pending):
            return skip(WakeReason.NOTHING_PENDING)
        if (
            isinstance(old, ResourceSlice)
            and isinstance(new, ResourceSlice)
            and attrs.evolve(old, metadata=new.metadata) == new
        ):
            return skip(WakeReason.UNCHANGED)
        return queue(WakeReason.SUPPLY_CHANGED)

    def _parameters_changed(
        self, claims: Sequence[ResourceClaim], old: object | None, new: object | None
    ) -> WakeUp:
        """They are used, and they are new or what the search reads of them has changed."""
        if new is None:
            return skip(WakeReason.GONE)
        used = [obj for obj in (old, new) if any(self._uses(claim, obj) for claim in claims)]
        if not used:
            return skip(WakeReason.OTHER_PARAMETERS)
        # What is not used any more may have been one of several, which was the error.
        if len(used) == 2 and _read_by_search(old) == _read_by_search(new):
            return skip(WakeReason.UNCHANGED)
        return queue(WakeReason.PARAMETERS_CHANGED)

    def _uses(self, claim: ResourceClaim, parameters: object) -> bool:
        if isinstance(parameters, ResourceClaimParameters):
            return uses_claim_parameters(claim, parameters)
        resource_class = self.allocator.classes.get(claim.spec.class_name)
        return (
            isinstance(parameters, ResourceClassParameters)
            and resource_class is not None
            and uses_class_parameters(resource_class, parameters)
        )


def _class_changed(claims: Sequence[ResourceClaim], changed: ResourceClass) -> WakeUp:
    if any(c.allocation is None and c.spec.class_name == changed.name for c in claims):
        return queue(WakeReason.CLASS_CHANGED)
    return skip(WakeReason.OTHER_CLASS)


def _read_by_search(parameters: object) -> object:
    """What decides whether a claim fits."""
    if isinstance(parameters, ResourceClaimParameters):
        return parameters.driver_requests
    return parameters.filters if isinstance(parameters, ResourceClassParameters) else None


def waking_kind(
    classes: AssumeCache[ResourceClass],
    class_parameters: AssumeCache[ResourceClassParameters],
    claim_parameters: AssumeCache[ResourceClaimParameters],
) -> NamedWaking:
    """What wake-ups know, as the caches have it at any moment. They share one lock.

    Make one for the caches: it follows them from now on.
    """
    by_name: dict[str, ResourceClass] = {}
    store = ParameterStore()

    def class_changed(old: ResourceClass | None, new: ResourceClass | None) -> None:
        if new is not None:
            by_name[new.name] = new
        elif old is not None:
            del by_name[old.name]

    classes.attach(class_changed)
    class_parameters.attach(store.changed)
    claim_parameters.attach(store.changed)
    allocator = NamedAllocator(NamedInventory(), by_name, store)
    return NamedWaking(allocator, classes.atomic())
