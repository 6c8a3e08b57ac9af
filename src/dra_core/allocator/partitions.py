"""Can the shared counters still serve the rest? A bound by components.

Devices linked by the counters they consume form components (the partitions of one
GPU). What a component can serve depends only on its own counters: for each state of
them there is a set of maximal vectors "so many devices for the first kind of request,
so many for the second, …". The vectors of all components add up; if no sum reaches
the demand, the rest of the search is hopeless. Components of one shape (eight equal
GPUs) share what was worked out, and so do states met again on other branches.

Before that, the cheapest bound of all: per name of a counter, summed over all sets, the
smallest amounts that the demand can do with against what is left.

The bounds err only towards "may fit": they ignore constraints, count devices that
consume nothing as free for everybody, estimate the last kind of request of a component
per counter, and give up on components with too many states.
"""

from collections.abc import Collection, Iterable, Sequence
from operator import mul
from typing import Final, Protocol

from dra_core.allocator.counters import CounterTable, Field
from dra_core.allocator.problem import Problem
from dra_core.allocator.static import bits

Vector = int
"""Numbers of devices, one field per kind of request, packed (``_Fields``)."""
Cost = tuple[int, int]
"""(packed amounts, guard bits to test) within a component."""

MAX_KINDS: Final = 6
"""More kinds of requests than this: no bound, the vectors would be too many."""
MAX_STATES: Final = 2_000
"""States expanded for one state of a component before it is only estimated."""


class Counting(Protocol):
    """Counts steps, and the work of a proof that steps do not show."""

    def step(self) -> None:
        """Count a state that is expanded."""

    def work(self, operations: int) -> None:
        """Count operations on packed numbers."""


class _Fields:
    """How vectors are packed: fields of equal width, each with a guard bit above it.

    Adding is ``+``; one vector covers another if no guard bit is lost when the other is
    subtracted from it with all guard bits set.
    """

    __slots__ = ("_most", "_stride", "_width", "guards")

    def __init__(self, most: Sequence[int]) -> None:
        # Two clipped vectors add up to less than twice the most before they are clipped.
        self._width = (2 * max(most, default=0) + 1).bit_length()
        self._stride = self._width + 1
        self.guards = self.pack([1 << self._width] * len(most))
        self._most = self.pack(most)

    def pack(self, numbers: Sequence[int]) -> Vector:
        return sum(number << place * self._stride for place, number in enumerate(numbers))

    def at(self, kind: int, number: int) -> Vector:
        """A vector that is zero but for one field."""
        return number << kind * self._stride

    def clip(self, vector: Vector) -> Vector:
        """No field above the most that is ever needed."""
        over = ~(self._most + self.guards - vector) & self.guards
        if not over:
            return vector
        fields = over - (over >> self._width)
        return vector & ~fields | self._most & fields

    def maximal(self, vectors: Iterable[Vector]) -> list[Vector]:
        """The vectors that no other one covers, in a fixed order."""
        guards = self.guards
        kept: list[Vector] = []
        # A vector that covers another is the larger number, so it comes first.
        for vector in sorted(vectors, reverse=True):
            for other in kept:
                if (other + guards - vector) & guards == guards:
                    break
            else:
                kept.append(vector)
        return kept


class _Shape:
    """Components that look the same: for each kind of request the costs of its devices."""

    __slots__ = ("fields", "kinds", "order")

    def __init__(self, kinds: tuple[tuple[Cost, ...], ...], fields: tuple[Cost, ...]) -> None:
        self.kinds = kinds
        self.fields = fields
        """(shift, guard bit) of each counter."""
        self.order = sorted((k for k in range(len(kinds)) if kinds[k]), key=lambda k: len(kinds[k]))


class _Total:
    """One counter name over all sets: ``least`` amount per kind of request, and the fields."""

    __slots__ = ("fields", "least")

    def __init__(self, least: list[int], fields: list[tuple[int, int, int]]) -> None:
        self.least = least
        self.fields = fields
        """(shift, guard bit above the amount, unit) of each counter of that name."""

    def exceeded(self, demand: Sequence[int], available: int) -> bool:
        needed: int = sum(map(mul, demand, self.least))
        for shift, guard, unit in self.fields:
            left = available >> shift
            if left & guard:
                needed -= (left & guard - 1) * unit
                if needed <= 0:
                    return False
        return needed > 0


class _Component:
    __slots__ = ("low", "mask", "shape")

    def __init__(self, shape: int, low: int, mask: int) -> None:
        self.shape = shape
        self.low = low
        self.mask = mask


class Partitions:
    """The bound for one problem.

    ``kind_of`` gives the kind of each request, -1 for those that take no part
    (admin access). Requests with equal candidates are one kind.
    """

    def __init__(self, problem: Problem, meter: Counting) -> None:
        self._meter = meter
        self.kinds: list[int] = []
        self.kind_of: list[int] = []
        self._most: list[int] = []
        for slot in problem.slots:
            self._add_kind(
                0 if slot.options[0].admin else _union(o.mask for o in slot.options),
                max(option.need for option in slot.options),
            )
        self._shared = problem.multiple
        table = problem.table
        self._costly = table.taking & ~problem.multiple if table is not None else 0
        self._shapes: list[_Shape] = []
        self._components = self._find_components(problem) if len(self.kinds) <= MAX_KINDS else []
        self._width = 1 + (problem.available.bit_length() >> 12)
        """Operations on long numbers count as several."""
        self._totals = self._find_totals(problem)
        self._fields = _Fields(self._most)
        self._state_ids: dict[tuple[int, int], int] = {}
        self._frontiers: list[list[Vector]] = []
        self._sums: dict[tuple[int, int], int] = {}
        self._chain: list[tuple[int, int]] = [(0, 0)]
        """For each sum the sum and the state that it was made of."""
        self._sum_frontiers: list[dict[Vector, tuple[Vector, Vector]]] = [{0: (0, 0)}]
        """For each sum its maximal vectors, with the two that each was added from."""
        self._witness: list[Vector] = []
        self._witness_states: list[int] = []

    def _add_kind(self, mask: int, need: int) -> None:
        if not mask:
            self.kind_of.append(-1)
            return
        if mask not in self.kinds:
            self.kinds.append(mask)
            self._most.append(0)
        kind = self.kinds.index(mask)
        self._most[kind] += need
        self.kind_of.append(kind)

    def hopeless(self, needs: Iterable[tuple[int, int]], available: int, picked: int) -> bool:
        """Whether devices for all ``needs`` (request, count) cannot be had.

        ``available``: packed counters; ``picked``: candidates that are taken.
        Cost: one expansion per new state of a component, one sum per new combination.
        """
        if not self._components and not self._totals:
            return False
        demand = [0] * len(self.kinds)
        for slot, need in needs:
            kind = self.kind_of[slot]
            if kind >= 0:
                # A shared device may serve every request, but each of them only once.
                demand[kind] += max(0, need - (self.kinds[kind] & self._shared).bit_count())
        for kind, mask in enumerate(self.kinds):
            free = (mask & ~self._costly & ~self._shared & ~picked).bit_count()
            demand[kind] = max(0, demand[kind] - free)
        if not any(demand):
            return False
        for total in self._totals:
            self._meter.work(len(total.fields) * self._width)
            if total.exceeded(demand, available):
                return True
        if not self._components:
            return False
        self._meter.work(len(self._components) * self._width)
        states = [
            self._state(component.shape, available >> component.low & component.mask)
            for component in self._components
        ]
        wanted = self._fields.pack(demand)
        return not (self._still_witnessed(states, wanted) or self._find_witness(states, wanted))

    def _still_witnessed(self, states: list[int], wanted: Vector) -> bool:
        """Whether the last way to serve everybody still does, with one component changed."""
        if not self._witness:
            return False
        changed = [
            place for place, state in enumerate(states) if state != self._witness_states[place]
        ]
        if len(changed) > 1:
            return False
        guards = self._fields.guards
        total = sum(self._witness) + guards - wanted
        if changed:
            place = changed[0]
            total -= self._witness[place]
            for vector in self._frontiers[states[place]]:
                if (total + vector) & guards == guards:
                    self._witness[place] = vector
                    self._witness_states[place] = states[place]
                    return True
            return False
        return total & guards == guards

    def _find_witness(self, states: list[int], wanted: Vector) -> bool:
        """Add up what all components can serve, and look for a sum that covers the demand."""
        # Old states come first, so that sums of what has not changed are found again.
        order = sorted(range(len(states)), key=states.__getitem__)
        total = 0
        for place in order:
            total = self._sum(total, states[place])
        guards = self._fields.guards
        for vector in self._sum_frontiers[total]:
            if (vector + guards - wanted) & guards == guards:
                break
        else:
            return False
        witness = [0] * len(states)
        for place in reversed(order):
            vector, witness[place] = self._sum_frontiers[total][vector]
            total = self._chain[total][0]
        self._witness, self._witness_states = witness, states
        return True

    def _find_totals(self, problem: Problem) -> list[_Total]:
        """The counter names that every device of some kind consumes."""
        table = problem.table
        if table is None:
            return []
        named: dict[str, list[Field]] = {}
        for _, field in table.fields():
            named.setdefault(field.counter, []).append(field)
        least = [_least_taken(table, bits(kind & self._costly)) for kind in self.kinds]
        return [
            _Total(
                [of_kind.get(name, 0) for of_kind in least],
                [(field.shift, 1 << field.width, field.unit) for field in fields],
            )
            for name, fields in named.items()
            if any(name in of_kind for of_kind in least)
        ]

    # --- components ---------------------------------------------------------------------

    def _find_components(self, problem: Problem) -> list[_Component]:
        table = problem.table
        if table is None:
            return []
        shapes: dict[object, int] = {}
        components = []
        for candidates, fields in _linked(table, bits(_union(self.kinds) & self._costly)):
            low = fields[0].shift
            mask = sum((1 << field.width + 1) - 1 << field.shift - low for field in fields)
            kinds = tuple(
                tuple(table.within(c, low) for c in candidates if kind >> c & 1)
                for kind in self.kinds
            )
            packed = tuple(
                (field.shift - low, 1 << field.shift + field.width - low) for field in fields
            )
            shape = shapes.setdefault((kinds, packed), len(shapes))
            if shape == len(self._shapes):
                self._shapes.append(_Shape(kinds, packed))
            components.append(_Component(shape, low, mask))
        return components

    def _state(self, shape: int, available: int) -> int:
        key = (shape, available)
        known = self._state_ids.get(key)
        if known is None:
            known = self._state_ids[key] = len(self._frontiers)
            self._frontiers.append(self._frontier(self._shapes[shape], available))
        return known

    def _sum(self, total: int, state: int) -> int:
        key = (total, state)
        known = self._sums.get(key)
        if known is None:
            known = self._sums[key] = len(self._sum_frontiers)
            clip = self._fields.clip
            self._meter.work(len(self._sum_frontiers[total]) * len(self._frontiers[state]))
            sums = {
                clip(one + other): (one, other)
                for one in self._sum_frontiers[total]
                for other in self._frontiers[state]
            }
            maximal = self._maximal(sums)
            self._sum_frontiers.append({vector: sums[vector] for vector in maximal})
            self._chain.append(key)
        return known

    def _frontier(self, shape: _Shape, available: int) -> list[Vector]:
        """The maximal vectors that a component can serve in a state."""
        if not shape.order:
            return [0]
        at = self._fields.at
        layer: dict[int, set[Vector]] = {available: {0}}
        budget = MAX_STATES
        for kind in shape.order[:-1]:
            following: dict[int, set[Vector]] = {}
            for state, vectors in layer.items():
                reached = self._reach(shape.kinds[kind], state, self._most[kind], budget)
                budget -= len(reached)
                if budget <= 0:
                    return [self._estimate(shape, available)]
                self._meter.work(len(reached) * len(vectors))
                for after, count in reached:
                    following.setdefault(after, set()).update(
                        vector + at(kind, count) for vector in vectors
                    )
            layer = following
        last = shape.order[-1]
        found: set[Vector] = set()
        for state, vectors in layer.items():
            bound = at(last, self._bound(shape, last, state))
            found.update(vector + bound for vector in vectors)
        return self._maximal(found)

    def _maximal(self, vectors: Collection[Vector]) -> list[Vector]:
        self._meter.work(len(vectors) * len(vectors) >> 3)
        return self._fields.maximal(vectors)

    def _reach(
        self, costs: Sequence[Cost], start: int, most: int, budget: int
    ) -> list[tuple[int, int]]:
        """(state, count) after any choice of up to ``most`` devices of one kind."""
        reached = [(start, 0)]
        long = 1 + (start.bit_length() >> 11)
        current = {start: 0}
        count = 0
        while current and count < most and len(reached) < budget:
            count += 1
            following: dict[int, int] = {}
            for state, first in current.items():
                self._meter.step()
                self._meter.work(len(costs) * long)
                for place in range(first, len(costs)):
                    cost, touch = costs[place]
                    after = state - cost
                    if after & touch == touch and following.get(after, len(costs)) > place:
                        following[after] = place + 1
            reached += [(state, count) for state in following]
            current = following
        return reached

    def _estimate(self, shape: _Shape, available: int) -> Vector:
        return sum(
            self._fields.at(kind, self._bound(shape, kind, available)) for kind in shape.order
        )

    def _bound(self, shape: _Shape, kind: int, available: int) -> int:
        """At most so many devices of one kind, by number and by each counter all take."""
        fitting = [
            (cost, touch)
            for cost, touch in shape.kinds[kind]
            if (available - cost) & touch == touch
        ]
        bound = min(len(fitting), self._most[kind])
        common = -1
        for _, touch in fitting:
            common &= touch
        for shift, guard in shape.fields if bound > 1 else ():
            if guard & common:
                amount = (guard - 1 >> shift << shift) & guard - 1
                least = min((cost & amount) >> shift for cost, _ in fitting)
                if least > 0:
                    bound = min(bound, ((available & amount) >> shift) // least)
        return bound


def _least_taken(table: CounterTable, candidates: list[int]) -> dict[str, int]:
    """The least that any of the candidates takes, in billionths, by name of the counter.

    Only names of which all of them take something.
    """
    least: dict[str, int] | None = None
    for candidate in candidates:
        taken: dict[str, int] = {}
        for field, amount in table.taken[candidate]:
            taken[field.counter] = taken.get(field.counter, 0) + amount
        if least is None:
            least = {name: amount for name, amount in taken.items() if amount > 0}
        else:
            both = {name: min(amount, taken.get(name, 0)) for name, amount in least.items()}
            least = {name: amount for name, amount in both.items() if amount > 0}
        if not least:
            break
    return least or {}


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _linked(table: CounterTable, candidates: list[int]) -> list[tuple[list[int], list[Field]]]:
    """Groups of candidates that have a counter in common, with their counters.

    Both in order, groups by their first candidate. Cost: linear in what is taken.
    """
    leader: dict[int, int] = {}

    def find(shift: int) -> int:
        while leader[shift] != shift:
            leader[shift] = shift = leader[leader[shift]]
        return shift

    for candidate in candidates:
        first = table.taken[candidate][0][0].shift
        for field, _ in table.taken[candidate]:
            leader.setdefault(field.shift, field.shift)
            leader[find(field.shift)] = find(first)
    groups: dict[int, tuple[list[int], list[Field]]] = {}
    for candidate in candidates:
        group = find(table.taken[candidate][0][0].shift)
        groups.setdefault(group, ([], []))[0].append(candidate)
    for _, field in table.fields():
        if field.shift in leader:
            groups[find(field.shift)][1].append(field)
    return list(groups.values())
