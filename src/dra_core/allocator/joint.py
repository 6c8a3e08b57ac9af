"""Can several requests be served by distinct devices? Hall's condition.

A demand is a mask of candidates and how many of them are needed; no candidate serves
two demands. All demands can be met exactly if every group of them sees at least as
many candidates as it needs. Few different masks: every group is looked at. Many: a
flow from demands to kinds of candidates (equal in all masks), which is the same
condition in polynomial time.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final, NamedTuple

MAX_MASKS: Final = 5
"""Up to here all groups are looked at (31 unions); beyond, the flow is cheaper."""


Work = Callable[[int], None]
"""Told how many operations on masks come next; it may end the proof by an exception."""


def _unpaid(_operations: int) -> None:
    """Nobody counts."""


class Demand(NamedTuple):
    """``need`` candidates out of ``mask``."""

    mask: int
    need: int


class Shortage(NamedTuple):
    """A group of demands (places in the list given) that sees too few candidates."""

    demands: tuple[int, ...]
    need: int
    available: int


def shortage(demands: Sequence[Demand], work: Work = _unpaid) -> Shortage | None:
    """The first group of demands that cannot be met, or ``None`` if all can be.

    Cost: 2^m for m ≤ ``MAX_MASKS`` distinct masks, else a flow over m demands and at
    most m + candidates kinds; ``work`` is told.
    """
    needs: dict[int, int] = {}
    for mask, need in demands:
        if need > 0:
            needs[mask] = needs.get(mask, 0) + need
    masks = list(needs)
    if len(masks) > MAX_MASKS:
        group = _flow(masks, [needs[mask] for mask in masks], work)
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
    wanted = frozenset(group)
    for place, demand in enumerate(demands):
        if demand.need > 0 and demand.mask in wanted:
            members.append(place)
            union |= demand.mask
            need += demand.need
    return Shortage(tuple(members), need, union.bit_count())


class _Kinds:
    """Candidates that are equal in all masks, as one kind each.

    ``of[m]`` are the kinds in mask ``m``, ``left[k]`` how many of kind ``k`` are free,
    ``takers[k]`` the masks that have some of it, with their number.
    """

    __slots__ = ("left", "of", "takers")

    def __init__(self, masks: Sequence[int], work: Work) -> None:
        kinds = _kinds(masks, work)
        self.left = [size for _, size in kinds]
        self.takers: list[dict[int, int]] = [{} for _ in kinds]
        self.of: list[list[int]] = [[] for _ in masks]
        for kind, (members, _) in enumerate(kinds):
            for mask in members:
                self.of[mask].append(kind)


def _flow(masks: list[int], needs: list[int], work: Work = _unpaid) -> tuple[int, ...]:
    """The masks of a group that cannot be met (empty: all can be), by augmenting paths."""
    kinds = _Kinds(masks, work)
    for source, need in enumerate(needs):
        missing = need
        while missing:
            path = _augmenting_path(source, kinds, work)
            if isinstance(path, set):
                return tuple(masks[m] for m in sorted(path))
            amount = min(missing, kinds.left[path[-1][1]])
            for demand, _, back in path:
                amount = min(amount, kinds.takers[back][demand]) if back >= 0 else amount
            for demand, kind, back in path:
                taken = kinds.takers[kind]
                taken[demand] = taken.get(demand, 0) + amount
                if back >= 0:
                    _give_back(kinds.takers[back], demand, amount)
            kinds.left[path[-1][1]] -= amount
            missing -= amount
    return ()


def _give_back(takers: dict[int, int], demand: int, amount: int) -> None:
    takers[demand] -= amount
    if not takers[demand]:
        del takers[demand]


def _kinds(masks: Sequence[int], work: Work) -> list[tuple[list[int], int]]:
    """Kinds of candidates: (which masks contain them, how many there are)."""
    atoms: list[tuple[list[int], int]] = []
    rest = -1
    for place, mask in enumerate(masks):
        work(len(atoms) + 1)
        split: list[tuple[list[int], int]] = []
        for members, atom in atoms:
            inside = atom & mask
            if not inside:
                split.append((members, atom))
            elif inside == atom:
                members.append(place)
                split.append((members, atom))
            else:
                split.append(([*members, place], inside))
                split.append((members, atom ^ inside))
        if mask & rest:
            split.append(([place], mask & rest))
            rest &= ~mask
        atoms = split
    return [(members, atom.bit_count()) for members, atom in atoms]


def _augmenting_path(
    source: int, kinds: _Kinds, work: Work
) -> list[tuple[int, int, int]] | set[int]:
    """Steps (demand, kind it takes more of, kind it gives back or -1), source first.

    A set of demands if there is no path: together they see too few candidates.
    """
    came: dict[int, tuple[int, int] | None] = {source: None}
    seen: set[int] = set()
    queue = [source]
    for demand in queue:
        work(len(kinds.of[demand]))
        for kind in kinds.of[demand]:
            if kinds.left[kind]:
                return _trace(demand, kind, came)
            if kind in seen:
                continue
            seen.add(kind)
            for other in kinds.takers[kind]:
                if other not in came:
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
