"""Attribute values of a node's devices as bits, for the constraints of claims.

A column gives every candidate the set of its values of one attribute as a mask over
the distinct values on the node; a device without a usable value has 0. Then

* matchAttribute keeps the intersection of the masks and needs it to stay non-zero,
* distinctAttribute keeps the union and needs the next mask to be disjoint,

for scalars and lists alike, and undoing a step is putting the old int back.
Source: resource.k8s.io/v1, DeviceConstraint; KEP-5491 (lists).
"""

from dra_core.api.names import PoolId
from dra_core.api.objects import AttributeValue, Device
from dra_core.inventory.view import NodeView

_SCALARS = frozenset(("int", "bool", "string", "version"))
_LISTS = {"ints": "int", "bools": "bool", "strings": "string", "versions": "version"}


class Column:
    """One attribute on one node.

    ``masks[candidate]``: the values of a candidate; ``holders[bit]``: the candidates
    that have a value; ``present``: the candidates that have any.
    """

    __slots__ = ("holders", "masks", "present")

    def __init__(self, masks: list[int], holders: list[int]) -> None:
        self.masks = masks
        self.holders = holders
        self.present = 0
        for holder in holders:
            self.present |= holder

    def holding(self, values: int) -> int:
        """The candidates that have one of the values (a mask of values)."""
        found = 0
        while values:
            low = values & -values
            found |= self.holders[low.bit_length() - 1]
            values ^= low
        return found


def column(view: NodeView, attribute: str, lists: bool) -> Column:
    """The column of an attribute (full name), remembered in the view.

    ``lists`` is the feature ListTypeAttributes: off, a list is no usable value.
    Cost: linear in the devices, once per view.
    """
    key = (attribute, lists)
    known = view.derived.get(key)
    if isinstance(known, Column):
        return known
    numbers: dict[tuple[str, object], int] = {}
    masks: list[int] = []
    holders: list[int] = []
    for candidate, device in enumerate(view.devices):
        value = find_attribute(device, view.owners[candidate].pool_id, attribute)
        mask = 0
        for element in _elements(value, lists):
            number = numbers.setdefault(element, len(numbers))
            if number == len(holders):
                holders.append(0)
            holders[number] |= 1 << candidate
            mask |= 1 << number
        masks.append(mask)
    made = Column(masks, holders)
    view.keep(key, made)
    return made


def find_attribute(device: Device, pool_id: PoolId, attribute: str) -> AttributeValue | None:
    """A device's attribute by full name; a name in the driver's domain also without it."""
    value = device.attributes.get(attribute)
    if value is not None:
        return value
    domain, slash, identifier = attribute.partition("/")
    if slash and domain == pool_id.driver:
        return device.attributes.get(identifier)
    return None


def _elements(value: AttributeValue | None, lists: bool) -> list[tuple[str, object]]:
    if value is None:
        return []
    if value.kind in _SCALARS:
        return [(value.kind, value.value)]
    kind = _LISTS.get(value.kind)
    if kind is None or not lists or not isinstance(value.value, tuple):
        return []
    return [(kind, element) for element in value.value]
