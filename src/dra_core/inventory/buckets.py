"""A frozen mapping whose changed copies are cheap.

What may live here: ``BucketMap``. It knows nothing of devices.

A copy of a dict of 40,000 entries takes 157 µs. Here the entries are spread over a
fixed number of small dicts, and a changed copy copies only those that change, so that
copies of one mapping share nearly everything: 2 µs for one change of 5,000 entries.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_FEW: Final = 128
"""Up to so many entries one dict holds all of them: copying it takes about 1 µs."""

_BUCKETS: Final = 256
"""Dicts beyond that. A power of two: the bucket is taken from bits of the hash."""

# A dict finds its slot by the lowest bits of the hash. Taking the bucket from the same
# bits would make all entries of a bucket collide.
_SHIFT: Final = 20


class BucketMap(Mapping[K, V]):
    """An immutable mapping with cheap changed copies.

    Iterates in sorted order of its keys, which is O(n log n); everything else is as
    fast as a dict, within a small factor. Keys must be hashable and sortable.
    """

    __slots__ = ("_buckets", "_length")

    _buckets: tuple[dict[K, V], ...]
    _length: int

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._fill(dict(items or {}))

    def _fill(self, items: dict[K, V]) -> None:
        self._length = len(items)
        if len(items) <= _FEW:
            self._buckets = (items,)
            return
        buckets: tuple[dict[K, V], ...] = tuple({} for _ in range(_BUCKETS))
        for key, value in items.items():
            buckets[hash(key) >> _SHIFT & _BUCKETS - 1][key] = value
        self._buckets = buckets

    def __len__(self) -> int:
        return self._length

    def _bucket(self, key: object) -> dict[K, V]:
        buckets = self._buckets
        # With one bucket the mask is zero.
        return buckets[hash(key) >> _SHIFT & len(buckets) - 1]

    def __getitem__(self, key: K) -> V:
        return self._bucket(key)[key]

    def __contains__(self, key: object) -> bool:
        return key in self._bucket(key)

    def __iter__(self) -> Iterator[K]:
        keys = [key for bucket in self._buckets for key in bucket]
        keys.sort()
        return iter(keys)

    def find(self, key: K) -> V | None:
        """``get`` without the detour through an exception: 0.15 µs."""
        return self._bucket(key).get(key)

    def unordered(self) -> Iterator[tuple[K, V]]:
        """All entries, in an order that differs between runs: never decide by it."""
        for bucket in self._buckets:
            yield from bucket.items()

    def updated(self, changes: Mapping[K, V | None]) -> "BucketMap[K, V]":
        """A copy with some entries set, and those whose new value is None removed.

        Cost for n entries and c changes: O(c · n / 256 + 256) beyond 128 entries,
        O(n + c) below, never more than O(n + c).
        """
        buckets = list(self._buckets)
        mask = len(buckets) - 1
        length = self._length
        copied = set()
        for key, value in changes.items():
            at = hash(key) >> _SHIFT & mask
            if at not in copied:
                copied.add(at)
                buckets[at] = buckets[at].copy()
            bucket = buckets[at]
            before = len(bucket)
            if value is None:
                bucket.pop(key, None)
            else:
                bucket[key] = value
            length += len(bucket) - before
        result: BucketMap[K, V] = BucketMap.__new__(BucketMap)
        if mask == 0 and length > _FEW:
            result._fill(buckets[0])
        else:
            result._buckets, result._length = tuple(buckets), length
        return result

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, BucketMap):
            return NotImplemented
        if self._length != other._length:
            return False
        if len(self._buckets) == len(other._buckets):
            # Buckets that both share are equal without being looked into.
            return self._buckets == other._buckets
        return dict(self.unordered()) == dict(other.unordered())

    def __hash__(self) -> int:
        return hash(frozenset(key for bucket in self._buckets for key in bucket))

    def __repr__(self) -> str:
        return f"BucketMap({dict(self.items())!r})"
