"""Can several requests be served by distinct devices? Hall's condition.

A demand is a mask of candidates and how many of them are needed; no candidate serves
two demands. All demands can be met exactly if every group of them sees at least as
many candidates as it needs. Few different masks: every group is looked at. Many: a
flow from demands to kinds of candidates (equal in all masks), which is the same
condition in polynomial time.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

MAX_MASKS: Final = 5
"""Up to here all groups are looked at (31 unions); beyond, the flow is cheaper."""


class Demand(NamedTuple):
    """``need`` candidates out of ``mask``."""

    mask: int
    need: int


class Shortage(NamedTuple):
    """A group of demands (places in the list given) that sees too few candidates."""

    demands: tuple[int, ...]
    need: int
    available: int


def shortage(demands: Sequence[Demand]) -> Shortage | None:
    """The first group of demands that cannot be met, or ``None`` if all can be.

    Cost: 2^m for m ≤ ``MAX_MASKS`` distinct masks, else a flow over m demands and at
    most m + candidates kinds.
    """
    needs: dict[int, int] = {}
    for mask, need in demands:
        if need > 0:
            needs[mask] = needs.get(mask, 0) + need
    masks = list(needs)
    if len(masks) > MAX_MASKS:
        group = _flow(masks, [needs[mask] for mask in masks])
        return _shortage(demands, group) if group else None
    for size in range(1, len(masks) + 1):
        for group in combinations(masks, size):
            union = need = 0
            for mask in group:
                union |= mask
                need += needs[mask]
            if union.bit_count() < need:
                return _shortage(demands, group)
    return None


def _shortage(demands: Sequence[Demand], group: Sequence[int]) -> Shortage:
    union = need = 0
    members = []
    for place, demand in enumerate(demands):
        if demand.need > 0 and demand.mask in group:
            members.append(place)
            union |= demand.mask
            need += demand.need
    return Shortage(tuple(members), need, union.bit_count())


def _flow(masks: list[int], needs: list[int]) -> tuple[int, ...]:
    """The masks of a group that cannot be met (empty: all can be), by augmenting paths."""
    kinds = _kinds(masks)
    left = [size for _, size in kinds]
    sent = [[0] * len(kinds) for _ in masks]
    open_kinds = [
        [k for k, (members, _) in enumerate(kinds) if members >> m & 1] for m in range(len(masks))
    ]
    for source, need in enumerate(needs):
        missing = need
        while missing:
            path = _augmenting_path(source, open_kinds, sent, left)
            if isinstance(path, set):
                return tuple(masks[m] for m in sorted(path))
            amount = min(missing, left[path[-1][1]])
            for demand, _, back in path:
                amount = min(amount, sent[demand][back]) if back >= 0 else amount
            for demand, kind, back in path:
                sent[demand][kind] += amount
                if back >= 0:
                    sent[demand][back] -= amount
            left[path[-1][1]] -= amount
            missing -= amount
    return ()


def _kinds(masks: list[int]) -> list[tuple[int, int]]:
    """Kinds of candidates: (which masks contain them, how many there are)."""
    kinds: list[tuple[int, int]] = []
    atoms = [(0, -1)]
    for place, mask in enumerate(masks):
        split: list[tuple[int, int]] = []
        for members, atom in atoms:
            inside, outside = atom & mask, atom & ~mask
            if inside:
                split.append((members | 1 << place, inside))
            if outside and (members or outside < 0):
                split.append((members, outside))
        atoms = split
    for members, atom in atoms:
        if members:
            kinds.append((members, atom.bit_count()))
    return kinds


def _augmenting_path(
    source: int, open_kinds: list[list[int]], sent: list[list[int]], left: list[int]
) -> list[tuple[int, int, int]] | set[int]:
    """Steps (demand, kind it takes more of, kind it gives back or -1), source first.

    A set of demands if there is no path: together they see too few candidates.
    """
    came: dict[int, tuple[int, int] | None] = {source: None}
    queue = [source]
    for demand in queue:
        for kind in open_kinds[demand]:
            if left[kind]:
                return _trace(demand, kind, came)
            for other, flows in enumerate(sent):
                if flows[kind] and other not in came:
                    came[other] = (demand, kind)
                    queue.append(other)
    return set(came)


def _trace(
    demand: int, kind: int, came: dict[int, tuple[int, int] | None]
) -> list[tuple[int, int, int]]:
    """Walk back to the source: each demand gives back what the one before it takes."""
    path: list[tuple[int, int, int]] = []
    step = came[demand]
    while step is not None:
        path.append((demand, kind, step[1]))
        demand, kind = step
        step = came[demand]
    path.append((demand, kind, -1))
    return path[::-1]
