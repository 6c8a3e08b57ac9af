"""BucketMap: a mapping like a dict, whose changed copies leave the original alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.inventory.buckets import BucketMap

KEYS = st.integers(0, 400).map(str)
# Sizes around the point where the layout changes; drawn by number, which is quick.
ITEMS = st.integers(0, 300).map(lambda size: {str(i): i % 4 for i in range(size)})
CHANGES = st.lists(st.dictionaries(KEYS, st.none() | st.integers(0, 3), max_size=6), max_size=6)


def apply(items: dict[str, int], changes: dict[str, int | None]) -> dict[str, int]:
    """What ``updated`` means, with a plain dict."""
    after: dict[str, int | None] = {**items, **changes}
    return {key: value for key, value in after.items() if value is not None}


@given(ITEMS, CHANGES)
def test_like_a_dict(items: dict[str, int], rounds: list[dict[str, int | None]]) -> None:
    """After any changes it reads like a dict with the same changes; no original changes."""
    bucket_map, expected = BucketMap(items), dict(items)
    history = [(bucket_map, expected)]
    for changes in rounds:
        bucket_map = bucket_map.updated(changes)
        expected = apply(expected, changes)
        history.append((bucket_map, expected))
    for seen, plain in history:
        assert dict(seen.items()) == dict(seen.unordered()) == plain
        assert list(seen) == sorted(plain)
        assert len(seen) == len(plain)
        assert all(seen[key] == seen.find(key) == plain[key] for key in plain)


@given(ITEMS, CHANGES)
def test_equal_by_content(items: dict[str, int], rounds: list[dict[str, int | None]]) -> None:
    """Two maps are equal, with equal hashes, if their content is, however they came about."""
    bucket_map, expected = BucketMap(items), dict(items)
    for changes in rounds:
        bucket_map = bucket_map.updated(changes)
        expected = apply(expected, changes)
    assert bucket_map == BucketMap(expected)
    assert hash(bucket_map) == hash(BucketMap(expected))
    assert bucket_map != BucketMap({**expected, "more": 1})
    if expected:
        first = next(iter(expected))
        assert bucket_map != BucketMap({**expected, first: expected[first] + 1})


def test_equal_across_layouts() -> None:
    """A map that was large once equals a small one of the same content."""
    shrunk = BucketMap({str(i): i for i in range(300)}).updated(
        {str(i): None for i in range(1, 300)}
    )
    assert shrunk == BucketMap({"0": 0})
    assert BucketMap({"0": 0}) == shrunk


def test_copies_share_what_did_not_change() -> None:
    """A changed copy copies only the small dicts that change."""
    before = BucketMap({str(i): i for i in range(5_000)})
    after = before.updated({"7": -7})
    same = [old is new for old, new in zip(before._buckets, after._buckets, strict=True)]
    assert same.count(False) == 1
    assert (before["7"], after["7"]) == (7, -7)


def test_entries_spread() -> None:
    """No bucket holds more than a small part, so that one change copies little."""
    buckets = BucketMap({("driver", f"pool-{i}"): i for i in range(5_000)})._buckets
    assert max(map(len, buckets)) < 100


def test_missing_keys() -> None:
    """A missing key is a KeyError by subscription, None by ``find``, and not contained."""
    bucket_map = BucketMap({"a": 1})
    assert bucket_map.find("b") is None
    assert "b" not in bucket_map
    with pytest.raises(KeyError):
        bucket_map["b"]


def test_the_given_dict_is_copied() -> None:
    """Changing the dict that a map was made from does not change the map."""
    items = {"a": 1}
    bucket_map = BucketMap(items)
    items["a"] = 2
    assert bucket_map["a"] == 1


def test_repr_and_comparison_with_others() -> None:
    """It prints its content, sorted, and never equals another type."""
    assert repr(BucketMap({"b": 2, "a": 1})) == "BucketMap({'a': 1, 'b': 2})"
    assert BucketMap({"a": 1}) != {"a": 1}
