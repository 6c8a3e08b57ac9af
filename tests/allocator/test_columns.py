"""Attribute values as bits."""

from dra_core.allocator.columns import Column, column
from dra_core.api.core import Node, ObjectMeta
from dra_core.api.objects import AttributeValue, Device
from dra_core.inventory.index import Inventory
from support.allocation_builders import device, pool_slice

NODE = Node(ObjectMeta(name="node-1"))


def made(*devices: Device, attribute: str = "driver-a/a", lists: bool = True) -> Column:
    view = Inventory([pool_slice("s", *devices)]).view(NODE)
    return column(view, attribute, lists)


def shares(one: Column, first: int, second: int) -> bool:
    return bool(one.masks[first] & one.masks[second])


def test_same_value_of_same_type() -> None:
    """1, true, "1" and version 1 are different values."""
    values = [1, True, "1", AttributeValue("version", "1"), 1]
    one = made(*(device(f"d{i}", {"a": value}) for i, value in enumerate(values)))
    same = [(i, j) for i in range(5) for j in range(i) if shares(one, i, j)]
    assert same == [(4, 0)]
    assert one.present == 0b11111


def test_versions_compare_as_text() -> None:
    """Build metadata included."""
    texts = ["1.0.0+a", "1.0.0+b", "1.0.0+a"]
    versions = [AttributeValue("version", text) for text in texts]
    one = made(*(device(f"d{n}", {"a": v}) for n, v in enumerate(versions)))
    assert (shares(one, 0, 1), shares(one, 0, 2)) == (False, True)


def test_lists_are_sets_and_scalars_sets_of_one() -> None:
    """Lists intersect with lists and with scalars of the same type."""
    one = made(*(device(str(v), {"a": v}) for v in ([1, 2], [2, 3], 3, ["2"])))
    assert [shares(one, 0, n) for n in range(1, 4)] == [True, False, False]
    assert shares(one, 1, 2)


def test_unusable_values() -> None:
    """Missing, of no known type, an empty list; a list when the feature is off."""
    odd = [
        device("d0"),
        device("d1", {"a": AttributeValue("", None)}),
        device("d2", {"a": AttributeValue("ints", ())}),
        device("d3", {"a": [1]}),
    ]
    assert made(*odd).masks == [0, 0, 0, 1]
    assert made(*odd, lists=False).masks == [0, 0, 0, 0]


def test_lookup_of_names() -> None:
    """The full name first; in the driver's domain also without domain."""
    one = made(
        device("d0", {"driver-a/a": "full", "a": "bare"}),
        device("d1", {"a": "bare"}),
        device("d2", {"driver-b/a": "bare"}),
    )
    assert [bool(mask) for mask in one.masks] == [True, True, False]
    assert not shares(one, 0, 1)
    other = made(device("d0", {"a": "bare"}), attribute="driver-b/a")
    assert other.masks == [0]
    assert made(device("d0", {"a": "bare"}), attribute="a").masks == [1]


def test_holding() -> None:
    """Which devices have one of the values."""
    one = made(*(device(str(v), {"a": v}) for v in ([1, 2], 2, 3)))
    assert one.holding(one.masks[1]) == 0b011
    assert one.holding(one.masks[1] | one.masks[2]) == 0b111
    assert one.holding(0) == 0
