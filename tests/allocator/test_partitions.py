"""The bound on shared counters: it never cuts off a solution, and it does cut."""

from hypothesis import given
from hypothesis import strategies as st

from dra_core.allocator.counters import counter_table
from dra_core.allocator.partitions import _Fields, _linked
from dra_core.allocator.results import Allocated, Unsatisfiable
from dra_core.api.core import Node, ObjectMeta
from dra_core.api.objects import Device, DeviceRequest
from dra_core.inventory.index import Inventory
from support.allocation_builders import claim, device, exactly, in_use, pool_slice, problem
from support.allocator import allocate

vectors = st.lists(st.tuples(*(st.integers(0, 5) for _ in range(3))), min_size=1, max_size=12)


@given(vectors, st.tuples(*(st.integers(0, 5) for _ in range(3))))
def test_packed_vectors(numbers: list[tuple[int, int, int]], most: tuple[int, int, int]) -> None:
    """Clipping, covering and the maximal vectors, as on plain tuples."""
    fields = _Fields([5, 5, 5])
    packed = {fields.pack(vector): vector for vector in numbers}
    kept = {packed[vector] for vector in fields.maximal(packed)}
    assert kept == {
        one
        for one in packed.values()
        if not any(
            other != one and all(a >= b for a, b in zip(other, one, strict=True))
            for other in packed.values()
        )
    }
    clipped = _Fields(most)
    for one in numbers:
        bounded = [min(value, 2 * bound) for value, bound in zip(one, most, strict=True)]
        expected = [min(value, bound) for value, bound in zip(one, most, strict=True)]
        assert clipped.clip(clipped.pack(bounded)) == clipped.pack(expected)


@given(st.lists(st.sets(st.sampled_from("uvwxyz"), max_size=3), min_size=1, max_size=8))
def test_linked_by_counters(takes: list[set[str]]) -> None:
    """Devices are in one group exactly when a chain of common counters joins them."""
    members = [
        device(f"d{n}", counters={"set": dict.fromkeys(sorted(names), "1")} if names else None)
        for n, names in enumerate(takes)
    ]
    offered = {"set": dict.fromkeys("uvwxyz", "9")}
    view = Inventory([pool_slice("s", *members, offers=offered)]).view(Node(ObjectMeta("node-1")))
    table = counter_table(view)
    taking = [n for n, names in enumerate(takes) if names]
    linked = _linked(table, taking) if table is not None else []
    expected: list[tuple[set[int], set[str]]] = []
    for place in taking:
        joined = ({place}, set(takes[place]))
        for group in [group for group in expected if group[1] & takes[place]]:
            expected.remove(group)
            joined = (group[0] | joined[0], group[1] | joined[1])
        expected.append(joined)
    expected.sort(key=lambda group: min(group[0]))
    assert [
        (set(found), {field.counter for field in fields}) for found, fields in linked
    ] == expected


def gpu(number: int) -> list[Device]:
    """One GPU in the pieces of a MIG geometry: 2 x 3g, 3 x 2g, 7 x 1g."""
    pieces = [("3g", 40, range(4)), ("3g", 40, range(4, 8))]
    pieces += [("2g", 20, range(n, n + 2)) for n in (0, 2, 4)]
    pieces += [("1g", 10, range(n, n + 1)) for n in range(7)]
    return [
        device(
            f"gpu-{number}-{profile}-{slots[0]}",
            {"profile": profile},
            counters={
                f"gpu-{number}": {"memory": f"{memory}Gi", **{f"slice-{s}": "1" for s in slots}}
            },
        )
        for profile, memory, slots in pieces
    ]


def offers(number: int) -> dict[str, dict[str, str]]:
    whole = {"memory": "80Gi", **{f"slice-{s}": "1" for s in range(8)}}
    return {f"gpu-{n}": whole for n in range(number)}


def ask(**counts: int) -> list[DeviceRequest]:
    return [
        exactly(name, count, f'device.attributes["driver-a"].profile == "{name[1:]}"')
        for name, count in counts.items()
    ]


def solve(number: int, used: tuple[str, ...] = (), **counts: int) -> tuple[bool, int]:
    members = [piece for n in range(number) for piece in gpu(n)]
    one = problem(
        claim(*ask(**counts)),
        pool_slice("s", *members, offers=offers(number)),
        allocated=in_use(*used),
    )
    outcome = allocate(one)
    assert isinstance(outcome, Allocated | Unsatisfiable)
    return isinstance(outcome, Allocated), outcome.steps


def test_what_fits_exactly_and_one_more() -> None:
    """3g + 2g + 2 x 1g fill one GPU; eight of each fill eight, and not one more."""
    assert solve(1, p3g=1, p2g=1, p1g=1)[0]
    assert solve(4, p3g=4, p2g=4, p1g=4)[0]
    assert not solve(4, p3g=8, p2g=1)[0]
    cases: list[dict[str, int]] = [{"p1g": 4, "p2g": 4, "p3g": 4}, {"p2g": 4, "p3g": 4, "p1g": 8}]
    for counts in cases:
        _, steps = solve(4, (), **counts)
        assert steps < 2_000


def test_what_is_in_use_counts() -> None:
    """One 3g in use leaves room for one more on that GPU."""
    assert solve(1, ("gpu-0-3g-0",), p3g=1)[0]
    assert not solve(1, ("gpu-0-3g-0",), p3g=2)[0]
    assert not solve(1, ("gpu-0-1g-0", "gpu-0-1g-4"), p3g=1)[0]


def test_no_component_is_too_large() -> None:
    """200 devices on one counter are estimated, not enumerated, and decided at once."""
    members = [device(f"d{n}", {"k": n % 3}, counters={"cs": {"c": "1"}}) for n in range(200)]
    requests = [exactly(f"r{k}", 10, f'device.attributes["driver-a"].k == {k}') for k in range(3)]
    for offered, fits in (("30", True), ("29", False)):
        one = problem(claim(*requests), pool_slice("s", *members, offers={"cs": {"c": offered}}))
        outcome = allocate(one)
        assert isinstance(outcome, Allocated if fits else Unsatisfiable)
        assert outcome.steps < 5_000


def test_witness_is_checked_again_after_backtracking() -> None:
    """Requests in the unhelpful order, with a constraint that the bound ignores."""
    members = [
        device(f"d{n}", {"k": n % 2, "a": n % 5}, counters={f"cs-{n % 3}": {"c": "2"}})
        for n in range(12)
    ]
    one = problem(
        claim(exactly("r0", 2, 'device.attributes["driver-a"].k == 0'), exactly("r1", 3)),
        pool_slice("s", *members, offers={f"cs-{n}": {"c": "4"} for n in range(3)}),
    )
    assert isinstance(allocate(one), Allocated)
