"""Hypothesis strategies for the supply side: slices, devices, and what of them is in use.

What may live here: how random pools are laid out. Numbers are small on purpose: few
values, tight amounts, so that constraints and counters collide often.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import attrs
from hypothesis import strategies as st

from dra_core.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from dra_core.api.names import DeviceId, SharedDeviceId
from dra_core.api.objects import (
    AttributeValue,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourceSlice,
)
from dra_core.inventory.allocated import AllocatedState
from dra_core.testing.problem import Entry
from dra_core.testing.selector_family import DRIVERS
from dra_core.values.quantity import Quantity

T = TypeVar("T")

NODE: Final = "node-a"
ELSEWHERE: Final = "node-b"
ZONE_LABEL: Final = "zone"
ZONE: Final = "east"
ROOT: Final = "resource.kubernetes.io/root"
"""An attribute that devices of several drivers have in common."""


@attrs.frozen
class Chooser:
    """What the parts of a strategy share: where values are drawn, which aspects are on."""

    draw: Any
    aspects: frozenset[str]

    def has(self, aspect: str) -> bool:
        """Whether the problem is about this aspect."""
        return aspect in self.aspects

    def one_of(self, *options: T) -> T:
        """One of the options; the first is the simplest."""
        choice: T = self.draw(st.sampled_from(options))
        return choice

    def now_and_then(self, aspect: str, one_in: int = 2) -> bool:
        """False without the aspect, else true once in so many times."""
        return self.has(aspect) and self.draw(st.integers(1, one_in)) == one_in

    def mostly(self) -> bool:
        """True three times out of four."""
        return self.one_of(True, True, True, False)

    def rarely(self) -> bool:
        """True once in six times."""
        return self.one_of(False, False, False, False, False, True)

    def some_of(self, options: Sequence[T]) -> list[T]:
        """Any of the options, in their order."""
        return [option for option in options if self.draw(st.booleans())]


def amount(text: str) -> Quantity:
    """A quantity by its text."""
    return Quantity.parse(text)


def in_zone(*zones: str) -> NodeSelector:
    """A selector for nodes of one of the zones."""
    requirement = NodeSelectorRequirement(ZONE_LABEL, "In", zones)
    return NodeSelector((NodeSelectorTerm(match_expressions=(requirement,)),))


_NODE_SELECTORS: Final = (
    in_zone(ZONE),
    in_zone("west"),
    in_zone("west", ZONE),
    NodeSelector(
        (NodeSelectorTerm((NodeSelectorRequirement(ZONE_LABEL, "Exists"),)),),
    ),
    NodeSelector(
        (NodeSelectorTerm((), (NodeSelectorRequirement("metadata.name", "In", (NODE,)),)),)
    ),
    NodeSelector((NodeSelectorTerm(),)),
)

_POLICIES: Final = (
    None,
    CapacityRequestPolicy(default=amount("1")),
    CapacityRequestPolicy(amount("2"), (amount("1"), amount("2"), amount("4"))),
    CapacityRequestPolicy(
        amount("1"), (), CapacityRequestPolicyRange(amount("1"), amount("4"), amount("2"))
    ),
    CapacityRequestPolicy(
        amount("500m"), (), CapacityRequestPolicyRange(amount("0"), None, amount("1500m"))
    ),
    CapacityRequestPolicy(None, (), CapacityRequestPolicyRange(amount("2"), amount("3"))),
    CapacityRequestPolicy(None, (amount("3"), amount("5"))),
    CapacityRequestPolicy(
        None, (), CapacityRequestPolicyRange(amount("1"), amount("5"), amount("2"))
    ),
)

_LARGE_POLICIES: Final = (
    CapacityRequestPolicy(
        amount("1k"), (), CapacityRequestPolicyRange(amount("1k"), None, amount("500"))
    ),
    CapacityRequestPolicy(amount("1k"), (amount("1k"), amount("2e3"), amount("4Ki"))),
)
"""Amounts large enough for their suffixes to show how they came about."""

# --- devices -------------------------------------------------------------------------------


def _device(c: Chooser, index: int, driver: str, sets: Sequence[CounterSet]) -> Device:
    """The device at that place of its pool.

    The first ones are the most wanted (model a) and the most expensive: what is taken
    first has to be given back often.
    """
    placed = _own_placement(c) if c.has("per-device") else {}
    binding = c.now_and_then("binding", 3)
    return Device(
        name=f"dev-{index}",
        attributes=_attributes(c, index, driver),
        capacity=_capacity(c),
        consumes_counters=_consumption(c, index, sets),
        taints=_taints(c),
        binds_to_node=binding and c.one_of(False, True),
        binding_conditions=("attached",) if binding else (),
        binding_failure_conditions=("failed",) if binding else (),
        allow_multiple_allocations=c.now_and_then("sharing", 2),
        **placed,
    )


def _own_placement(c: Chooser) -> dict[str, Any]:
    return c.one_of(
        {"all_nodes": True},
        {"node_name": NODE},
        {"node_name": ELSEWHERE},
        {"node_selector": c.one_of(*_NODE_SELECTORS)},
        {},
    )


def _attributes(c: Chooser, index: int, driver: str) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {}
    numa = _numa(c)
    if numa is not None:
        attributes[c.one_of("numa", f"{driver}/numa")] = numa
    model = c.one_of("a", "a", "b", None) if index < 2 else c.one_of("b", "b", "b", "a", None)
    if model is not None:
        attributes["model"] = AttributeValue("string", model)
    root = c.one_of("r0", "r1", "r0", "r1", "r0", None) if c.has("constraints") else None
    if root is not None:
        attributes[ROOT] = AttributeValue("string", root)
    if c.has("contested") and (index == 0 or (index == 1 and c.one_of(True, False))):
        attributes["wanted"] = AttributeValue("bool", True)
    if c.now_and_then("errors", 12):
        attributes["odd"] = AttributeValue("", None)
    return attributes


def _numa(c: Chooser) -> AttributeValue | None:
    if c.has("lists") and c.mostly():
        return AttributeValue("ints", c.one_of((0, 1), (1, 2), (2, 0), (1,), (2,), (0, 1, 2), ()))
    number = c.one_of(0, 1, 0, 1, 2, 0, 1, None, "0")
    if number is None:
        return None
    if isinstance(number, str):
        return AttributeValue("string", number) if c.has("errors") else None
    return AttributeValue("int", number)


def _capacity(c: Chooser) -> dict[str, DeviceCapacity]:
    capacity: dict[str, DeviceCapacity] = {}
    if c.has("sharing"):
        for name in c.one_of(("memory",), ("memory", "slots"), ()):
            value = amount(c.one_of("4", "2", "3", "5", "4500m", "6"))
            capacity[name] = DeviceCapacity(value, c.one_of(*_POLICIES))
        if c.mostly():
            capacity["bytes"] = DeviceCapacity(amount("4k"), c.one_of(*_LARGE_POLICIES))
    return capacity


def _consumption(
    c: Chooser, index: int, sets: Sequence[CounterSet]
) -> tuple[DeviceCounterConsumption, ...]:
    consumed = []
    for counter_set in sets:
        if c.one_of(True, True, False):
            sizes = ("3", "2", "4") if index == 0 else ("1", "2", "1", "3")
            counters = {name: amount(c.one_of(*sizes)) for name in counter_set.counters}
            consumed.append(DeviceCounterConsumption(counter_set.name, counters))
    return tuple(consumed)


def _taints(c: Chooser) -> tuple[DeviceTaint, ...]:
    if not c.now_and_then("taints", 2):
        return ()
    effects = ("NoSchedule", "NoExecute", "None")
    return tuple(
        DeviceTaint(c.one_of("k", "l"), c.one_of("v", ""), c.one_of(*effects))
        for _ in range(c.one_of(1, 1, 2))
    )


# --- pools ---------------------------------------------------------------------------------

_POOLS: Final = ((DRIVERS[0], "pool"), (DRIVERS[1], "pool"), (DRIVERS[0], "pool-1"))
"""Two drivers use one pool name, and one driver has two pools."""

_SIZES: Final = {1: (5, 6, 4, 7, 8, 3, 1), 2: (3, 4, 2, 4, 1), 3: (2, 3, 3, 1)}
"""Devices of a pool, by the number of pools."""

_MANY: Final = 35
"""More devices than a claim may have."""


def slices(c: Chooser) -> tuple[ResourceSlice, ...]:
    """All slices of the cluster, in any order, with names that say nothing about it."""
    pools = c.draw(st.permutations(_POOLS))[: c.one_of(2, 3)] if c.has("pools") else _POOLS[:1]
    made: list[ResourceSlice] = []
    for driver, name in pools:
        devices = c.one_of(*_SIZES[len(pools)])
        made += _pool(c, driver, name, devices)
    names = c.draw(st.permutations(range(len(made))))
    return tuple(
        attrs.evolve(one, metadata=ObjectMeta(name=f"slice-{name}"))
        for one, name in zip(made, names, strict=True)
    )


def _pool(c: Chooser, driver: str, name: str, count: int) -> list[ResourceSlice]:
    sets = _counter_sets(c)
    devices = [_device(c, index, driver, sets) for index in range(count)]
    if c.has("limit"):  # enough for the limit of a claim to be the only obstacle
        more = range(count, _MANY if c.mostly() else count)
        devices += [attrs.evolve(devices[-1], name=f"dev-{index}") for index in more]
    cut = c.draw(st.integers(0, count)) if c.has("pools") or c.has("network") else 0
    made = [
        attrs.evolve(_place(c, driver, name), devices=tuple(part))
        for part in (devices[:cut], devices[cut:])
        if part
    ]
    if sets and c.mostly():
        made.append(attrs.evolve(_place(c, driver, name, local=True), shared_counters=sets))
    elif sets:  # counters and devices in one slice: the form of 1.34
        made[0] = attrs.evolve(made[0], shared_counters=sets)
    if c.now_and_then("operations", 2):
        made[0] = attrs.evolve(made[0], skip_node_operations=("prepare",))
    made = [attrs.evolve(one, resource_slice_count=len(made)) for one in made]
    return _damaged(c, made) if c.has("broken-pools") and c.mostly() else made


def _counter_sets(c: Chooser) -> tuple[CounterSet, ...]:
    if not c.has("counters"):
        return ()
    names = c.one_of(("set-0",), ("set-0", "set-1"))
    return tuple(
        CounterSet(name, {"c": amount(c.one_of("4", "3", "5", "2"))} | _second_counter(c))
        for name in names
    )


def _second_counter(c: Chooser) -> dict[str, Quantity]:
    return {"d": amount(c.one_of("4", "6"))} if c.one_of(False, True) else {}


def _place(c: Chooser, driver: str, name: str, local: bool = False) -> ResourceSlice:
    """An empty slice of the pool; ``local``: certainly for the node."""
    empty = ResourceSlice(driver=driver, pool=name, generation=1)
    if c.has("network"):
        everywhere = attrs.evolve(empty, all_nodes=True)
        if local or c.one_of(True, False):
            return everywhere
        if c.one_of(True, True, False):
            return attrs.evolve(empty, node_selector=c.one_of(*_NODE_SELECTORS))
    if c.has("per-device") and not local:
        return attrs.evolve(empty, per_device_node_selection=True)
    return attrs.evolve(empty, node_name=NODE)


def _damaged(c: Chooser, made: list[ResourceSlice]) -> list[ResourceSlice]:
    """A pool that is being updated, spans nodes, or that a driver got wrong."""
    first = made[0]
    count = len(made)
    more = [attrs.evolve(one, resource_slice_count=count + 1) for one in made]
    double = attrs.evolve(first, devices=(*first.devices, *first.devices[:1]))
    wrong = Device(name="wrong", consumes_counters=(DeviceCounterConsumption("no-set"),))
    far = attrs.evolve(_elsewhere(first), resource_slice_count=count + 1)
    # Of two devices of one name the rules do not say whose counters an allocation holds.
    twins = [attrs.evolve(device, consumes_counters=()) for device in first.devices]
    newer = attrs.evolve(_elsewhere(first), generation=2)
    differs = attrs.evolve(_elsewhere(first), resource_slice_count=9)
    return c.one_of(
        more,
        [*more, far],
        [*more, attrs.evolve(far, devices=tuple(twins))],
        [*more, attrs.evolve(far, devices=(wrong,))],
        [double, *made[1:]],
        [attrs.evolve(first, devices=(*first.devices, wrong)), *made[1:]],
        [attrs.evolve(one, generation=2) for one in made] + [_stale(first)],
        [*made, newer],
        [*more, newer],
        [*made, differs],
        [*made, differs, newer],
        [*more, *(one for one in more if one.shared_counters)],
    )


def _stale(one: ResourceSlice) -> ResourceSlice:
    """What the pool was before: other devices."""
    return attrs.evolve(one, devices=(Device(name="old"),), resource_slice_count=1)


def _elsewhere(one: ResourceSlice) -> ResourceSlice:
    """A part of the pool on another node, with a device of its own."""
    device = Device(name="far", consumes_counters=one.devices[0].consumes_counters)
    return attrs.evolve(
        one,
        node_name=ELSEWHERE,
        all_nodes=False,
        node_selector=None,
        per_device_node_selection=False,
        devices=(device,),
        shared_counters=(),
    )


# --- what is in use ------------------------------------------------------------------------


def allocated(c: Chooser, made: Sequence[ResourceSlice]) -> AllocatedState:
    """What is in use of the slices' devices, sometimes of devices that are gone, too."""
    if not c.has("in-use"):
        return AllocatedState.from_parts()
    exclusive: list[DeviceId] = []
    shares: list[SharedDeviceId] = []
    consumed: dict[DeviceId, dict[str, Quantity]] = {}
    for entry in [Entry(one, device) for one in made for device in one.devices]:
        name, device = entry.id, entry.device
        if not c.one_of(False, False, True):
            continue
        if not device.allow_multiple_allocations or c.one_of(False, False, False, True):
            exclusive.append(name)
            continue
        shares += [SharedDeviceId(*name, f"share-{number}") for number in range(c.one_of(1, 2))]
        used = {key: amount(c.one_of("1", "2", "500m")) for key in device.capacity}
        if used and c.mostly():
            consumed[name] = used
    gone: dict[DeviceId, tuple[DeviceCounterConsumption, ...]] = {}
    if c.now_and_then("counters", 3):
        ghost = DeviceId(made[0].driver, made[0].pool, "gone")
        exclusive.append(ghost)
        gone[ghost] = (DeviceCounterConsumption("set-0", {"c": amount("1")}),)
    return AllocatedState.from_parts(exclusive, shares, consumed, gone)
