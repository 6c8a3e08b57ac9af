"""One stored slice with what is derived from it once, for all nodes that see it.

Devices are bits: bit ``i`` of a mask stands for ``slice.devices[i]``. What depends
on the slice alone (flags, selector results, tolerated taints) is computed on first
use and kept here, so that a slice shared by many nodes is looked at once, and a
slice of one node only when that node is.

The caches are filled without a lock: two threads may compute the same value, either
result may be kept, both are equal.
"""

from collections.abc import Callable
from typing import Final

from dra_core.api.core import Node
from dra_core.api.objects import Device, ResourceSlice
from dra_core.errors import NodeSelectorError
from dra_core.inventory.matching import NodeMatcher, NodeSelectorProblem, compile_node_selector

MAX_REMEMBERED: Final = 256
"""Results kept per slice and kind; a host that asks for more distinct things starts over."""


class StoredSlice:
    """A ResourceSlice in an inventory. ``order`` breaks ties between equal names.

    ``multiple``, ``binding``, ``consuming`` and ``tainted`` are masks of the devices that
    allow multiple allocations, have binding conditions, consume counters, have taints.
    They are there after ``look`` was called once.
    """

    __slots__ = (
        "_looked",
        "_unsound",
        "binding",
        "consuming",
        "device_matchers",
        "error",
        "key",
        "matcher",
        "multiple",
        "remembered",
        "slice",
        "tainted",
    )

    def __init__(self, resource_slice: ResourceSlice, order: int) -> None:
        self.slice = resource_slice
        self.key = (resource_slice.metadata.name, order)
        self.matcher: NodeMatcher | None = None
        self.device_matchers: tuple[NodeMatcher | None, ...] = ()
        self.error: NodeSelectorError | None = None
        self.remembered: dict[object, tuple[int, int]] | None = None
        self.multiple = self.binding = self.consuming = self.tainted = 0
        self._looked = False
        self._unsound = -1
        if not resource_slice.node_name:
            self._compile_selectors()

    def look(self) -> "StoredSlice":
        """Compute the masks on first use; returns the slice itself."""
        if not self._looked:
            multiple = binding = consuming = tainted = 0
            bit = 1
            for device in self.slice.devices:
                if device.allow_multiple_allocations:
                    multiple |= bit
                if device.binding_conditions:
                    binding |= bit
                if device.consumes_counters:
                    consuming |= bit
                if device.taints:
                    tainted |= bit
                bit <<= 1
            self.multiple, self.binding = multiple, binding
            self.consuming, self.tainted = consuming, tainted
            self._looked = True
        return self

    def unsound(self, find: Callable[[tuple[Device, ...]], int]) -> int:
        """Mask of the devices on which every selector fails, computed once by ``find``."""
        if self._unsound < 0:
            self._unsound = find(self.slice.devices)
        return self._unsound

    def _compile_selectors(self) -> None:
        resource_slice = self.slice
        device_name = ""
        try:
            if resource_slice.node_selector is not None:
                self.matcher = compile_node_selector(resource_slice.node_selector)
            if resource_slice.per_device_node_selection:
                matchers: list[NodeMatcher | None] = []
                for device in resource_slice.devices:
                    device_name = device.name
                    selector = device.node_selector
                    matchers.append(compile_node_selector(selector) if selector else None)
                self.device_matchers = tuple(matchers)
        except NodeSelectorProblem as problem:
            self.error = NodeSelectorError("", "", resource_slice.name, device_name, str(problem))

    def is_for(self, node: Node) -> bool:
        """Whether the slice is relevant for the node.

        The slice must have compiled (``error`` is None).
        """
        resource_slice = self.slice
        if resource_slice.node_name:
            return resource_slice.node_name == node.metadata.name
        if resource_slice.all_nodes:
            return True
        if self.matcher is not None:
            return self.matcher.matches(node)
        if resource_slice.per_device_node_selection:
            return any(self.device_is_for(index, node) for index in range(len(self.slice.devices)))
        return False

    def device_is_for(self, index: int, node: Node) -> bool:
        """Whether one device of a per-device slice is for the node."""
        device = self.slice.devices[index]
        if device.node_name:
            return device.node_name == node.metadata.name
        if device.all_nodes:
            return True
        matcher = self.device_matchers[index]
        return matcher is not None and matcher.matches(node)

    def elsewhere(self, node: Node) -> int:
        """Mask of the devices whose own node selection excludes the node."""
        if not self.slice.per_device_node_selection:
            return 0
        return sum(
            1 << index
            for index in range(len(self.slice.devices))
            if not self.device_is_for(index, node)
        )

    def remember(
        self, key: object, compute: Callable[["StoredSlice"], tuple[int, int]]
    ) -> tuple[int, int]:
        """The pair of masks computed for ``key``.

        Remembered if the slice is for many nodes; one node's view remembers its own.
        """
        if self.slice.node_name:
            return compute(self)
        if self.remembered is None:
            self.remembered = {}
        masks = self.remembered.get(key)
        if masks is None:
            masks = compute(self)
            if len(self.remembered) >= MAX_REMEMBERED:
                self.remembered.clear()
            self.remembered[key] = masks
        return masks
