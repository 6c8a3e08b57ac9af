"""The supply of a cluster: instances by driver and place.

What may live here: slices turned into what a search on one node looks at, kept up to
date slice by slice.

A *place* is a node, or no node: instances of slices without node name are available on
every node. An instance is identified by driver, place and name, and can be used once;
one that is listed several times counts as it is listed first. The order is that of the
slices' names, then of the slice: it does not depend on the order of events.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import attrs

from dra_core.inventory.allocated import PoolAllocation
from dra_core.v1alpha2.objects import ResourceSlice
from dra_core.v1alpha2.selectors import InstanceReader, InstanceView

NO_NODE: Final = ""
"""The place of what is not local to a node."""


class PlaceId(NamedTuple):
    """Where instances of a driver are: on a node, or on none (``NO_NODE``)."""

    driver: str
    node: str


@attrs.frozen(eq=False)
class Place:
    """The instances of one driver at one place, in order. No name comes twice."""

    id: PlaceId
    views: tuple[InstanceView, ...] = ()

    def free(self, allocation: PoolAllocation) -> int:
        """Mask of the instances that are not in use (bit ``i``: ``views[i]``)."""
        mask = (1 << len(self.views)) - 1
        if not allocation:
            return mask
        use = allocation.use
        for index, view in enumerate(self.views):
            if use(view.name) is not None:
                mask ^= 1 << index
        return mask


def _place(place_id: PlaceId, slices: Mapping[str, tuple[InstanceView, ...]]) -> Place:
    found: dict[str, InstanceView] = {}
    for name in sorted(slices):
        for view in slices[name]:
            found.setdefault(view.name, view)
    return Place(place_id, tuple(found.values()))


class NamedInventory:
    """All slices of a cluster, by place.

    A change costs O(its instances), the next look at its place O(its slices); other places
    are not touched. Not safe to change while another thread reads. ``revision`` grows with
    every change.
    """

    def __init__(self, slices: Iterable[ResourceSlice] = ()) -> None:
        self.revision = 0
        self._reader = InstanceReader()
        self._ids: dict[str, PlaceId] = {}
        self._slices: dict[PlaceId, dict[str, tuple[InstanceView, ...]]] = {}
        # Forgotten with every change; made again when somebody looks.
        self._places: dict[PlaceId, Place] = {}
        for one in slices:
            self.put(one)

    def put(self, resource_slice: ResourceSlice) -> None:
        """Add a slice, or replace the one of its name.

        A slice of a model that is not known here adds nothing.
        """
        name = resource_slice.name
        self.remove(name)
        self.revision += 1
        if resource_slice.instances is None:
            return
        place_id = PlaceId(resource_slice.driver_name, resource_slice.node_name)
        views = tuple([self._reader.view(instance) for instance in resource_slice.instances])
        self._ids[name] = place_id
        self._slices.setdefault(place_id, {})[name] = views
        self._places.pop(place_id, None)

    def remove(self, name: str) -> None:
        """Remove the slice of that name; none is fine."""
        place_id = self._ids.pop(name, None)
        if place_id is None:
            return
        self.revision += 1
        self._places.pop(place_id, None)
        slices = self._slices[place_id]
        del slices[name]
        if not slices:
            del self._slices[place_id]

    def changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """A slice was added (no ``old``), replaced, or deleted (no ``new``)."""
        if new is not None:
            self.put(new)
        elif old is not None:
            self.remove(old.name)

    def place(self, driver: str, node: str) -> Place:
        """The instances of a driver on a node, or of no node (``NO_NODE``)."""
        place_id = PlaceId(driver, node)
        known = self._places.get(place_id)
        if known is None:
            slices = self._slices.get(place_id)
            if slices is None:
                return Place(place_id)
            known = self._places[place_id] = _place(place_id, slices)
        return known

    def nodes(self) -> tuple[str, ...]:
        """The nodes that slices name, sorted."""
        return tuple(sorted({place_id.node for place_id in self._slices} - {NO_NODE}))

    def _check(self) -> None:
        """Raise AssertionError unless what is kept agrees with the slices."""
        names = {name: pid for pid, slices in self._slices.items() for name in slices}
        if names != self._ids:
            raise AssertionError(f"slices {self._ids} are stored as {names}")
        for place_id, place in self._places.items():
            if place.views != _place(place_id, self._slices[place_id]).views:
                raise AssertionError(f"{place_id} is outdated")
