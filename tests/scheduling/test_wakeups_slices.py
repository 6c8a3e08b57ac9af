"""Can a changed slice help? What cannot is skipped, and nothing else."""

from typing import Any

import attrs
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from dra_core.allocator.results import Allocated, Outcome, Unsatisfiable
from dra_core.api.core import ObjectMeta
from dra_core.api.names import PoolId
from dra_core.api.objects import (
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
)
from dra_core.errors import AllocationError
from dra_core.inventory.taint_rules import apply_taint_rules
from dra_core.scheduling.wakeups import wake_up, waker
from dra_core.scheduling.wakeups_verdict import WakeReason, WakeUp, skip
from dra_core.testing.problem import Problem
from dra_core.testing.strategies import aspects_of, problems
from support.allocation_builders import (
    device,
    devices,
    everything,
    exactly,
    first,
    in_use,
    pool_slice,
    problem,
    sub,
)
from support.allocator import allocate
from support.pods import GPU, container, offering, pod_of
from support.sleeping import QUEUE, SKIP, answer, change, claim, lookups, pod_using

R = WakeReason
POD = pod_using("gpu")
ALL = claim(everything("r"))
TAINT = DeviceTaint("k", "v", "NoSchedule")

THREE = pool_slice("s", *devices(3))
TWO = pool_slice("s", *devices(2))
THREE_OF_TWO = attrs.evolve(THREE, resource_slice_count=2)
TWO_OF_TWO = attrs.evolve(TWO, resource_slice_count=2)
"""The same as slices of a pool that has two."""


def tainted(*names: str, taint: DeviceTaint = TAINT, of: ResourceSlice = THREE) -> ResourceSlice:
    """The slice with one more taint on some devices."""
    return attrs.evolve(
        of,
        devices=tuple(
            attrs.evolve(d, taints=(*d.taints, taint)) if d.name in names else d for d in of.devices
        ),
    )


def change_of(
    old: ResourceSlice | None,
    new: ResourceSlice | None,
    others: tuple[ResourceSlice, ...] = (),
    one: Any = None,
) -> tuple[str, WakeReason]:
    """The answer with the pool as the cache shows it after the change."""
    now = [*others, *([new] if new else [])]
    return answer(POD, old, new, lookups(claim() if one is None else one, slices=now))


def test_bug_69_a_slice_added_after_a_failure() -> None:
    """A new slice may have what was missing (k/k#126807)."""
    assert change_of(None, THREE) == (QUEUE, R.SUPPLY_CHANGED)


def test_pods_that_need_no_device() -> None:
    """Allocated, or to be allocated by a driver, or no claim at all: skip."""
    taken = claim(allocation=None, driver="ctl")
    assert change_of(None, THREE, one=taken) == (SKIP, R.NOTHING_PENDING)
    asking = pod_of(container("c", gpu=1))
    known = lookups(classes=[offering("c", GPU)])
    assert answer(asking, None, THREE, known) == (QUEUE, R.SUPPLY_CHANGED)
    assert answer(asking, None, THREE, lookups()) == (SKIP, R.NOTHING_PENDING)


def test_a_deleted_slice() -> None:
    """What it meant for its pool is not worked out: queue."""
    assert change_of(THREE, None) == (QUEUE, R.SUPPLY_CHANGED)


def test_removed_devices() -> None:
    """Devices removed from a pool that was and stays complete and valid cannot help."""
    assert change_of(THREE, TWO) == (SKIP, R.CANNOT_HELP)
    middle = pool_slice("s", *devices(1), *devices(1, first=3))
    assert change_of(THREE, middle) == (SKIP, R.CANNOT_HELP)
    assert change_of(THREE, pool_slice("s")) == (SKIP, R.CANNOT_HELP)
    other = pool_slice("t", *devices(2, first=7), count=2)
    assert change_of(THREE_OF_TWO, TWO_OF_TWO, (other,)) == (SKIP, R.CANNOT_HELP)


def test_requests_for_all() -> None:
    """A request for all devices can be helped by a device that is gone, or tainted."""
    for one in (ALL, claim(exactly("a"), first("r", sub("x"), sub("y", None)))):
        assert change_of(THREE, TWO, one=one) == (QUEUE, R.SUPPLY_CHANGED)
        assert change_of(THREE, tainted("d1"), one=one) == (QUEUE, R.SUPPLY_CHANGED)
    # Once it is allocated, or another claim's request, it does not matter.
    assert change_of(THREE, TWO, one=claim(exactly("r"))) == (SKIP, R.CANNOT_HELP)


@pytest.mark.parametrize(
    ("old", "new", "others"),
    [
        # Was not complete.
        (THREE_OF_TWO, TWO_OF_TWO, ()),
        # Was not valid: a device twice, in one slice or in two.
        (pool_slice("s", *devices(2), device("d1")), TWO, ()),
        (
            THREE_OF_TWO,
            TWO_OF_TWO,
            (pool_slice("t", device("d3"), count=2),),
        ),
        # Not the newest generation.
        (THREE, TWO, (pool_slice("t", generation=2),)),
        # A newer generation now.
        (THREE, attrs.evolve(TWO, generation=2), ()),
        # Another number of slices.
        (THREE, attrs.evolve(TWO, resource_slice_count=3), ()),
        # Not valid afterwards.
        (
            pool_slice("s", *devices(3), offers={"set": {"m": "1"}}, count=2),
            pool_slice("s", *devices(2), offers={"set": {"m": "1"}}, count=2),
            (pool_slice("t", device("x", counters={"no": {"m": "1"}}), count=2),),
        ),
    ],
    ids=["incomplete", "twice", "twice in two", "obsolete", "newer", "count", "invalid"],
)  # fmt: skip
def test_pools_that_are_not_sound(
    old: ResourceSlice, new: ResourceSlice, others: tuple[ResourceSlice, ...]
) -> None:
    """Removing a device from a pool with a problem may mend the pool."""
    assert change_of(old, new, others) == (QUEUE, R.SUPPLY_CHANGED)


def test_an_unknown_pool() -> None:
    """Nothing known of the pool: queue. The slice itself is known from the event."""
    assert answer(POD, THREE_OF_TWO, TWO_OF_TWO, lookups(claim())) == (QUEUE, R.SUPPLY_CHANGED)
    # The cache may be ahead of the event: its copy of the slice does not count.
    ahead = lookups(claim(), slices=[attrs.evolve(TWO, generation=1, devices=())])
    assert answer(POD, THREE, TWO, ahead) == (SKIP, R.CANNOT_HELP)


def test_removed_devices_that_consume_counters() -> None:
    """One that is in use gives its counters back when it is gone."""
    half = [device(name, counters={"set": {"m": "1"}}) for name in ("a", "b")]
    offers = {"set": {"m": "1"}}
    both = pool_slice("s", *half, offers=offers)
    one = pool_slice("s", half[1], offers=offers)
    assert change_of(both, one) == (QUEUE, R.SUPPLY_CHANGED)


def test_added_taints() -> None:
    """More taints cannot help, with removed devices or without."""
    assert change_of(THREE, tainted("d1", "d3")) == (SKIP, R.CANNOT_HELP)
    assert change_of(THREE, tainted("d1", of=TWO)) == (SKIP, R.CANNOT_HELP)
    twice = tainted("d1", taint=DeviceTaint("l"), of=tainted("d1"))
    assert change_of(tainted("d1"), twice) == (SKIP, R.CANNOT_HELP)
    # An incomplete pool gives no device before or after.
    assert change_of(THREE_OF_TWO, tainted("d1", of=THREE_OF_TWO)) == (SKIP, R.CANNOT_HELP)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (tainted("d1"), THREE),
        (tainted("d1"), tainted("d2")),
        (tainted("d1"), tainted("d1", taint=DeviceTaint("k", "v", "None"))),
        (tainted("d1", "d2"), tainted("d1", of=TWO)),
        (THREE, pool_slice("s", *devices(4))),
        (THREE, pool_slice("s", *devices(3, first=2))),
        (THREE, attrs.evolve(THREE, devices=THREE.devices[::-1])),
        (THREE, pool_slice("s", *devices(2), device("d3", {"model": "x"}))),
        (THREE, pool_slice("s", *devices(2), device("d3", capacity={"m": "1"}))),
        (THREE, attrs.evolve(THREE, generation=2)),
        (THREE, attrs.evolve(THREE, node_name="node-2")),
        (THREE, attrs.evolve(THREE, node_name="", all_nodes=True)),
        (THREE, pool_slice("s", *devices(3), offers={"set": {"m": "1"}})),
        (THREE, attrs.evolve(THREE, skip_node_operations=("*",))),
        (THREE, attrs.evolve(THREE, pool="other")),
    ],
)
def test_whatever_else_is_different_may_help(old: ResourceSlice, new: ResourceSlice) -> None:
    """Any other difference: queue."""
    assert change_of(old, new) == (QUEUE, R.SUPPLY_CHANGED)


def test_nothing_is_different() -> None:
    """Labels and versions are not read, so their change cannot help, not even mode All."""
    relabelled = attrs.evolve(THREE, metadata=ObjectMeta("s", resource_version="9"), raw={})
    assert change_of(THREE, relabelled) == (SKIP, R.UNCHANGED)
    assert change_of(THREE, relabelled, one=ALL) == (SKIP, R.UNCHANGED)


def test_many_pods_are_asked_for_the_price_of_one() -> None:
    """What does not depend on the pod is worked out once, whatever the pods wait for."""
    looked_up: list[PoolId] = []
    pods = [POD, pod_using("all"), pod_using("gpu", uid="other"), pod_using("gone")]
    known = lookups(claim(), claim(everything("r"), name="all"))

    def pool(wanted: PoolId) -> list[ResourceSlice]:
        looked_up.append(wanted)
        return [TWO]

    known = attrs.evolve(known, pool=pool)
    ask = waker(change(THREE, TWO), known)
    answers = [ask(pod) for pod in pods]
    assert looked_up == [THREE.pool_id]
    assert answers == [wake_up(pod, change(THREE, TWO), known) for pod in pods]
    assert [found.reason for found in answers] == [
        R.CANNOT_HELP, R.SUPPLY_CHANGED, R.CANNOT_HELP, R.NOTHING_PENDING,
    ]  # fmt: skip


# The law: no lost wake-up


def helped(before: Problem, after: Problem) -> bool:
    """Whether the claims can be allocated after the change, and could not before."""
    return isinstance(outcome(before), Unsatisfiable) and isinstance(outcome(after), Allocated)


def outcome(case: Problem) -> Outcome | AllocationError:
    """A selector that fails is an error; there the attempt is made again in any case."""
    try:
        return allocate(case)
    except AllocationError as error:
        return error


def wakes(case: Problem, old: Any, new: Any, slices: tuple[ResourceSlice, ...]) -> WakeUp:
    """The answer for a pod with all claims of the problem."""
    pod = pod_using(*(found.name for found in case.claims))
    in_namespace = [
        attrs.evolve(
            found, metadata=attrs.evolve(found.metadata, namespace=pod.namespace, uid=found.name)
        )
        for found in case.claims
    ]
    known = lookups(*in_namespace, classes=case.classes, slices=slices)
    return wake_up(pod, change(old, new), known)


def check(before: Problem, after: Problem, found: WakeUp) -> None:
    """What helps wakes."""
    if not found.wakes:
        assert not helped(before, after)


@st.composite
def smaller(draw: st.DrawFn, slice_: ResourceSlice) -> ResourceSlice:
    """The slice with fewer devices, or more taints, or (rarely) something else."""
    kept: list[Device] = []
    for found in slice_.devices:
        fate = draw(st.sampled_from(["remove", "taint", "keep", "keep", "untaint"]))
        if fate == "taint":
            found = attrs.evolve(found, taints=(*found.taints, draw(taints)))
        elif fate == "untaint" and draw(st.booleans()):
            found = attrs.evolve(found, taints=found.taints[1:])
        if fate != "remove":
            kept.append(found)
    return attrs.evolve(slice_, devices=tuple(kept))


taints = st.builds(
    DeviceTaint,
    st.sampled_from(["k", "broken"]),
    st.just(""),
    st.sampled_from(["NoSchedule", "NoExecute", "None"]),
)

CASES = problems(never=aspects_of("errors"))
SUPPLY = problems(
    always=aspects_of("in-use", "counters", "broken-pools", "taints"), never=aspects_of("errors")
)


@given(CASES | SUPPLY, st.data())
def test_no_lost_wake_up_by_a_slice(before: Problem, data: st.DataObject) -> None:
    """If a pod could not be scheduled before a slice changed and can be now, it is woken."""
    old = data.draw(st.sampled_from(before.slices))
    new = data.draw(smaller(old))
    others = tuple(found for found in before.slices if found is not old)
    assume(all(found.name != old.name for found in others))
    after = attrs.evolve(before, slices=(*others, new))
    found = wakes(before, old, new, after.slices)
    event(found.reason.name)
    check(before, after, found)


@given(CASES, st.data())
def test_no_lost_wake_up_by_a_slice_that_comes_or_goes(
    before: Problem, data: st.DataObject
) -> None:
    """The same where a whole slice is added or deleted."""
    one = data.draw(st.sampled_from(before.slices))
    others = tuple(found for found in before.slices if found is not one)
    without = attrs.evolve(before, slices=others)
    check(without, before, wakes(before, None, one, before.slices))
    check(before, without, wakes(before, one, None, others))


@st.composite
def rules_for(draw: st.DrawFn, slices: tuple[ResourceSlice, ...]) -> DeviceTaintRule:
    """A rule about one device, one pool, or everything."""
    slice_ = draw(st.sampled_from(slices))
    names = [found.name for found in slice_.devices] or ["none"]
    fields = ("driver", "pool", "device")
    values = (slice_.driver, slice_.pool, draw(st.sampled_from(names)))
    given_fields = draw(st.sets(st.sampled_from(fields)))
    selector = DeviceTaintSelector(
        **{f: v for f, v in zip(fields, values, strict=True) if f in given_fields}
    )
    return DeviceTaintRule(ObjectMeta("rule"), selector, draw(taints))


@given(CASES, st.data())
def test_no_lost_wake_up_by_a_taint_rule(bare: Problem, data: st.DataObject) -> None:
    """The same where a taint rule is added, changed or removed."""
    found = data.draw(rules_for(bare.slices))
    changed = data.draw(rules_for(bare.slices))

    def with_rule(*rules: DeviceTaintRule) -> Problem:
        return attrs.evolve(bare, slices=apply_taint_rules(bare.slices, rules))

    before, after = with_rule(found), with_rule(changed)
    check(bare, before, wakes(bare, None, found, bare.slices))
    check(before, after, wakes(bare, found, changed, bare.slices))
    check(before, bare, wakes(bare, found, None, bare.slices))


def test_the_law_can_fail() -> None:
    """The law notices what helps: a skip where a device was added is a failure."""
    one = claim(exactly("r", 3), name="claim-0")
    before, after = problem(one, TWO), problem(one, THREE)
    assert helped(before, after)
    assert not helped(after, before)
    assert wakes(before, TWO, THREE, (THREE,)).wakes
    with pytest.raises(AssertionError):
        check(before, after, skip(R.CANNOT_HELP))


def test_the_allocator_agrees_about_counters() -> None:
    """The one case in which a removed device helps: it was in use and held counters."""
    half = [device(name, counters={"set": {"m": "1"}}) for name in ("a", "b")]
    offers = {"set": {"m": "1"}}
    both, fewer = pool_slice("s", *half, offers=offers), pool_slice("s", half[1], offers=offers)
    one = claim(name="claim-0")
    before = problem(one, both, allocated=in_use("a"))
    after = problem(one, fewer, allocated=in_use("a"))
    assert helped(before, after)
    assert wakes(before, both, fewer, (fewer,)).wakes
