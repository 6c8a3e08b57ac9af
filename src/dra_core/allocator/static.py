"""What a device is checked against regardless of other picks and of what is in use.

The ``Statics`` of a request on a node are masks, remembered in the node's view: which
candidates the selectors choose, on which a selector fails, and which of the chosen
ones pass the other fixed checks. A failing selector is no "no": the error ends the
call, but only if the search gets to that device, so it is kept as a mask and the
exception is made when it is needed.
"""

from collections.abc import Callable, Sequence

from dra_core.allocator.capacity import CapacityRejection, consumption
from dra_core.allocator.plan import Alternative
from dra_core.api.objects import Device, DeviceTaint, DeviceToleration
from dra_core.api.tolerations import tolerates
from dra_core.cel.selector import SelectorCache
from dra_core.errors import SelectorCompileError, SelectorEvaluationError, SelectorFailedError
from dra_core.features import Features
from dra_core.inventory.slices import StoredSlice
from dra_core.inventory.view import NodeView
from dra_core.values.quantity import Quantity

Checkpoint = Callable[[], None]
"""Called between expensive steps; it ends the call by an exception of its own."""

CHECKPOINT_COST = 10_000
"""A selector that may cost more is checked device by device for the caller's deadline: it
takes milliseconds."""

_AVOIDED_EFFECTS = ("NoSchedule", "NoExecute")


class Statics:
    """Masks over a node's candidates for one request.

    ``chosen``: by the selectors; ``selected``: chosen, on this node, with enough capacity
    in all (the devices that mode All means). ``failing``: a selector fails on them.
    ``usable``: selected, and no feature or taint is in the way.
    """

    __slots__ = (
        "_amounts",
        "_vectors",
        "_view",
        "capacity",
        "chosen",
        "failing",
        "selected",
        "usable",
    )

    def __init__(
        self,
        view: NodeView,
        alternative: Alternative,
        features: Features,
        selected: int,
        failing: int,
    ) -> None:
        self._view = view
        # Most requests need neither, and there is one of these for every node.
        self._amounts: dict[int, dict[str, Quantity]] | None = None
        self._vectors: dict[int, tuple[int, ...]] | None = None
        self.chosen = selected
        self.capacity = alternative.capacity
        allowed = -1 if features.device_binding_and_status else ~view.binding
        self.failing = failing & allowed
        selected &= allowed & ~view.elsewhere
        if features.consumable_capacity:
            selected &= ~self._without_capacity(selected)
        self.selected = selected
        if not features.partitionable_devices:
            selected &= ~view.consuming
        if features.device_taints and view.tainted & selected:
            selected &= ~_avoided(view, view.tainted & selected, alternative.tolerations)
        self.usable = selected

    def amounts(self, candidate: int) -> dict[str, Quantity]:
        """What the request takes of each capacity of a selected candidate."""
        if self._amounts is None:
            self._amounts = {}
        known = self._amounts.get(candidate)
        if known is None:
            taken = consumption(self.capacity, self._view.devices[candidate])
            known = {} if isinstance(taken, CapacityRejection) else taken
            self._amounts[candidate] = known
        return known

    def vector(self, candidate: int) -> tuple[int, ...]:
        """``amounts`` in billionths, in the order of the device's capacities."""
        if self._vectors is None:
            self._vectors = {}
        known = self._vectors.get(candidate)
        if known is None:
            known = tuple(amount.nano for amount in self.amounts(candidate).values())
            self._vectors[candidate] = known
        return known

    def _without_capacity(self, selected: int) -> int:
        """The selected candidates that could never give what is requested."""
        asked = selected if self.capacity else selected & _policied(self._view)
        rejected = 0
        for candidate in bits(asked):
            taken = consumption(self.capacity, self._view.devices[candidate])
            if isinstance(taken, CapacityRejection):
                rejected |= 1 << candidate
        return rejected


def bits(mask: int) -> list[int]:
    """The places of the set bits, lowest first."""
    places = []
    while mask:
        low = mask & -mask
        places.append(low.bit_length() - 1)
        mask ^= low
    return places


def find_statics(
    view: NodeView,
    alternative: Alternative,
    selectors: SelectorCache,
    features: Features,
    checkpoint: Checkpoint,
) -> Statics:
    """The masks of a request on a node, remembered in its view.

    Cost: each selector once per device of each slice, the first time.
    """
    known = view.derived.get(alternative.static_key)
    if isinstance(known, Statics):
        return known

    def evaluate(stored: StoredSlice) -> tuple[int, int]:
        return _evaluate(stored, alternative, selectors, checkpoint)

    selected, failing = view.combine(alternative.match_key, evaluate)
    made = Statics(view, alternative, features, selected, failing)
    view.keep(alternative.static_key, made)
    return made


def _evaluate(
    stored: StoredSlice, alternative: Alternative, selectors: SelectorCache, checkpoint: Checkpoint
) -> tuple[int, int]:
    """(chosen, failing) devices of a slice: selectors in order, the first "no" decides."""
    devices = stored.slice.devices
    chosen, failing = (1 << len(devices)) - 1, 0
    if alternative.selectors:
        failing = stored.unsound(selectors.unsound)
        chosen &= ~failing
    for use in alternative.selectors:
        try:
            selector = selectors.compile(use.expression)
        except SelectorCompileError:
            return 0, failing | chosen
        if selector.max_cost < CHECKPOINT_COST:
            checkpoint()
            chosen, failed = selector.matching(stored.slice.driver, devices, chosen)
            failing |= failed
            continue
        for candidate in bits(chosen):
            checkpoint()
            matching, failed = selector.matching(stored.slice.driver, devices, 1 << candidate)
            chosen &= matching | ~(1 << candidate)
            failing |= failed
    return chosen, failing


def selector_failure(
    view: NodeView,
    candidate: int,
    alternative: Alternative,
    selectors: SelectorCache,
    claim: str,
) -> SelectorFailedError:
    """The error of a candidate in ``Statics.failing``."""
    device, driver = view.devices[candidate], view.owners[candidate].pool_id.driver
    for use in alternative.selectors:
        where = (claim, alternative.name, use.device_class, use.position)
        try:
            selector = selectors.compile(use.expression)
        except SelectorCompileError as error:
            return SelectorFailedError(*where, "", error)
        try:
            if not selector.matches(driver, device):
                break
        except SelectorEvaluationError as error:
            return SelectorFailedError(*where, str(view.device_id(candidate)), error)
    raise LookupError(f"no selector of {alternative.name} fails on {view.device_id(candidate)}")


def _policied(view: NodeView) -> int:
    """Candidates with a capacity whose policy may forbid even the default."""
    return view.combine("policied", _policied_in_slice)[0]


def _policied_in_slice(stored: StoredSlice) -> tuple[int, int]:
    mask = 0
    for place, device in enumerate(stored.slice.devices):
        for capacity in device.capacity.values():
            if capacity.request_policy is not None:
                mask |= 1 << place
    return mask, 0


def _avoided(view: NodeView, tainted: int, tolerations: Sequence[DeviceToleration]) -> int:
    avoided = 0
    for candidate in bits(tainted):
        if untolerated(view.devices[candidate], tolerations) is not None:
            avoided |= 1 << candidate
    return avoided


def untolerated(device: Device, tolerations: Sequence[DeviceToleration]) -> DeviceTaint | None:
    """The first taint of a device that keeps the request away from it."""
    for taint in device.taints:
        if taint.effect in _AVOIDED_EFFECTS and not any(
            tolerates(toleration, taint) for toleration in tolerations
        ):
            return taint
    return None


def capacity_rejection(alternative: Alternative, device: Device) -> CapacityRejection | None:
    """Why a device can never give the capacity that is requested."""
    taken = consumption(alternative.capacity, device)
    return taken if isinstance(taken, CapacityRejection) else None
