"""AllocatedState: what counts as in use, and a value that shares what did not change."""

import copy
import pickle

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.names import DeviceId, PoolId
from dra_core.api.objects import DeviceCounterConsumption, ResourceClaim
from dra_core.inventory.allocated import (
    NOTHING_ALLOCATED,
    NOTHING_IN_USE,
    WHOLE_DEVICE,
    AllocatedState,
    DeviceUse,
    holdings,
)
from dra_core.values.quantity import BINARY_SI, DECIMAL_SI
from support.in_use import DRIVER, allocation, amounts, claim, device, result, share

D1, D2, D3 = device("d1"), device("d2"), device("d3")
FAR = device("d1", pool="pool-b")
CONSUMES = (DeviceCounterConsumption("set", amounts(memory="4Gi")),)


# --- what counts as in use


def test_exclusive_device() -> None:
    """A result without share ID is the whole device."""
    state = AllocatedState.from_claims([claim("c", D1)])
    assert state.devices == {D1}
    assert not state.shares
    assert not state.consumed_capacity


def test_share() -> None:
    """With ConsumableCapacity on, a result with a shareID is a share."""
    state = AllocatedState.from_claims([claim("c", result(share("d1", "s"), amounts(mem="2Gi")))])
    assert state.shares == {share("d1", "s")}
    assert state.consumed_capacity == {D1: amounts(mem="2Gi")}
    assert not state.devices


def test_share_without_consumed_capacity() -> None:
    """... also without consumed capacity."""
    state = AllocatedState.from_claims([claim("c", share("d1", "s"))])
    assert state.shares == {share("d1", "s")}
    assert D1 not in state.consumed_capacity


def test_share_with_the_feature_off() -> None:
    """With ConsumableCapacity off every result is exclusive."""
    shared = claim("c", result(share("d1", "s"), amounts(mem="2Gi")))
    state = AllocatedState.from_claims([shared], consumable_capacity=False)
    assert state.devices == {D1}
    assert not state.shares
    assert not state.consumed_capacity


def test_consumed_capacity_without_share_id_is_exclusive() -> None:
    """Without a share ID consumed capacity does not make a share."""
    state = AllocatedState.from_claims([claim("c", result(D1, amounts(mem="2Gi")))])
    assert state == AllocatedState.from_parts([D1])


@pytest.mark.parametrize("what", [D1, share("d1", "s")])
def test_bug_08_admin_access_holds_nothing(what: DeviceId) -> None:
    """Admin-access results do not count."""
    admin = claim("c", result(what, amounts(mem="1"), admin=True))
    assert AllocatedState.from_claims([admin]) == NOTHING_ALLOCATED
    assert holdings(admin.allocation) == ()


def test_admin_access_false_holds() -> None:
    """adminAccess set to false is no admin access."""
    assert AllocatedState.from_claims([claim("c", result(D1, admin=False))]).devices == {D1}


def test_unallocated_claim_holds_nothing() -> None:
    """A claim without allocation holds nothing."""
    assert AllocatedState.from_claims([claim("c")]) == NOTHING_ALLOCATED
    assert not NOTHING_ALLOCATED


def test_bug_45_share_ids_and_capacity() -> None:
    """The state of a claim with shareID and consumedCapacity holds both."""
    state = AllocatedState.from_claims([claim("c", result(share("d1", "s"), amounts(mem="2Gi")))])
    view = state.pool(DRIVER, "pool-a")
    assert view.shares == {"d1": frozenset({"s"})}
    assert view.consumed_capacity == {"d1": amounts(mem="2Gi")}


def test_capacity_is_summed_over_shares() -> None:
    """Consumed capacity is the sum over the shares of a device, per name."""
    state = AllocatedState.from_claims(
        [
            claim("a", result(share("d1", "s1"), amounts(mem="2Gi", cores="1"))),
            claim("b", result(share("d1", "s2"), amounts(mem="3Gi"))),
            claim("c", result(share("d2", "s3"), amounts(mem="1Gi"))),
        ]
    )
    assert state.consumed_capacity == {
        D1: amounts(mem="5Gi", cores="1"),
        D2: amounts(mem="1Gi"),
    }


def test_same_share_counts_once() -> None:
    """The same (device, shareID) counts once, its capacity too."""
    once = claim("a", result(share("d1", "s"), amounts(mem="2Gi")))
    twice = claim("b", result(share("d1", "s"), amounts(mem="2Gi")))
    assert AllocatedState.from_claims([once, twice]) == AllocatedState.from_claims([once])


def test_same_share_stated_differently_counts_the_larger() -> None:
    """One share stated with two amounts takes the larger, in any order."""
    small = claim("a", result(share("d1", "s"), amounts(mem="2Gi", cores="4")))
    large = claim("b", result(share("d1", "s"), amounts(mem="3Gi", cores="1", slots="1")))
    for claims in ([small, large], [large, small]):
        state = AllocatedState.from_claims(claims)
        assert state.consumed_capacity == {D1: amounts(mem="3Gi", cores="4", slots="1")}


def test_same_device_of_two_claims() -> None:
    """A device that two claims name is in use once."""
    assert AllocatedState.from_claims([claim("a", D1), claim("b", D1, D2)]).devices == {D1, D2}


def test_sums_print_the_same_in_any_order() -> None:
    """The printed form of a sum does not depend on the order of the claims."""
    one = claim("a", result(share("d1", "s1"), amounts(mem="1Gi")))
    two = claim("b", result(share("d1", "s2"), amounts(mem="1G")))
    forms = {
        AllocatedState.from_claims(claims).consumed_capacity[D1]["mem"].format
        for claims in ([one, two], [two, one])
    }
    assert forms == {BINARY_SI}
    decimal = claim("c", result(share("d2", "s1"), amounts(mem="1G")))
    state = AllocatedState.from_claims([decimal])
    assert state.consumed_capacity[D2]["mem"].format == DECIMAL_SI


def test_pools_of_two_drivers_are_apart() -> None:
    """Two drivers may use one pool name."""
    other = device("d1", driver="other.example.com")
    state = AllocatedState.from_claims([claim("c", D1)])
    assert D1 in state.devices
    assert other not in state.devices
    assert state.pool("other.example.com", "pool-a") is NOTHING_IN_USE


def test_bug_70_claims_are_not_changed() -> None:
    """Building a state leaves the claims as they were."""
    claims = [
        claim("a", result(share("d1", "s"), amounts(mem="2Gi"))),
        claim("b", result(share("d1", "s"), amounts(mem="3Gi"))),
    ]
    before = copy.deepcopy(claims)
    AllocatedState.from_claims(claims).with_unavailable([D1])
    assert claims == before


# --- reading


def test_from_parts() -> None:
    """A state from its parts reads as these parts."""
    state = AllocatedState.from_parts(
        [D1, FAR], [share("d2", "s2"), share("d2", "s1")], {D2: amounts(mem="2Gi")}
    )
    assert list(state.devices) == [D1, FAR]
    assert list(state.shares) == [share("d2", "s1"), share("d2", "s2")]
    assert dict(state.consumed_capacity) == {D2: amounts(mem="2Gi")}
    assert (len(state.devices), len(state.shares), len(state.consumed_capacity)) == (2, 2, 1)
    assert list(state.pools) == [PoolId(DRIVER, "pool-a"), PoolId(DRIVER, "pool-b")]


def test_from_parts_is_what_from_claims_gives() -> None:
    """Both constructors lead to the same value."""
    claims = [claim("a", D1), claim("b", result(share("d2", "s"), amounts(mem="1")))]
    parts = AllocatedState.from_parts([D1], [share("d2", "s")], {D2: amounts(mem="1")})
    assert AllocatedState.from_claims(claims) == parts


def test_membership() -> None:
    """Sets of a state answer ``in`` for anything, and behave as sets."""
    state = AllocatedState.from_parts([D1], [share("d2", "s")])
    assert tuple(D1) in state.devices
    assert share("d2", "s") in state.shares
    no_devices: list[object] = [D2, FAR, "d1", ("a", "b"), None]
    for stranger in no_devices:
        assert stranger not in state.devices
    no_shares: list[object] = [share("d2", "t"), share("d1", "s"), D1, share("d2", "s", "pool-b")]
    for stranger in no_shares:
        assert stranger not in state.shares
    assert state.devices | {D2} == {D1, D2}
    assert state.devices & {D2} == frozenset()


def test_consumed_capacity_as_mapping() -> None:
    """Devices of which nothing is consumed are no keys."""
    state = AllocatedState.from_parts([D1], [share("d2", "s")], {D3: amounts(mem="1")})
    assert state.consumed_capacity[D3] == amounts(mem="1")
    for absent in (D1, D2, FAR):
        assert absent not in state.consumed_capacity
        with pytest.raises(KeyError):
            state.consumed_capacity[absent]


def test_pool_view() -> None:
    """The view of a pool has what is in use of it by device name."""
    state = AllocatedState.from_parts(
        [D1, FAR], [share("d2", "s"), share("d2", "t")], {D2: amounts(mem="1")}, {D1: CONSUMES}
    )
    view = state.pool(DRIVER, "pool-a")
    assert view.devices == frozenset({"d1"})
    assert view.shares == {"d2": frozenset({"s", "t"})}
    assert view.consumed_capacity == {"d2": amounts(mem="1")}
    assert view.gone_consumption == {"d1": CONSUMES}
    assert view.use("d1") == DeviceUse(exclusive=True, counters=CONSUMES)
    assert view.use("d3") is None
    assert list(view.uses) == ["d1", "d2"]
    assert view


def test_unused_pool() -> None:
    """A pool of which nothing is in use has one shared, empty view."""
    state = AllocatedState.from_parts([D1])
    assert state.pool(DRIVER, "pool-z") is NOTHING_IN_USE
    assert not NOTHING_IN_USE
    assert NOTHING_IN_USE.devices == frozenset()
    assert state.with_unavailable([]).pool("x", "y") is NOTHING_IN_USE


def test_printing() -> None:
    """A state prints how much is in use; its parts print what."""
    state = AllocatedState.from_parts([D1], [share("d2", "s")], {D2: amounts(mem="1")})
    assert repr(state) == "<AllocatedState: 1 devices, 1 shares in 1 pools>"
    assert repr(state.devices) == f"{{{D1}}}"
    assert "d2" in repr(state.shares)
    assert "mem" in repr(state.consumed_capacity)


def test_values() -> None:
    """States and views are frozen and equal by content; views are hashable; both pickle."""
    one = AllocatedState.from_parts([D1], [share("d2", "s")], {D2: amounts(mem="1")})
    other = AllocatedState.from_parts([D1], [share("d2", "s")], {D2: amounts(mem="1")})
    assert one == other
    assert one != AllocatedState.from_parts([D1])
    assert hash(one.pool(DRIVER, "pool-a")) == hash(other.pool(DRIVER, "pool-a"))
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(TypeError):
        hash(one)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one._pools = other._pools  # type: ignore[misc]


# --- changed copies


def test_untouched_pools_stay_identical() -> None:
    """The view of a pool is the identical object as long as nothing changed in it."""
    before = AllocatedState.from_parts([D1, FAR])
    after = before.updated({PoolId(DRIVER, "pool-a"): {"d2": WHOLE_DEVICE}})
    assert after.devices == {D1, D2, FAR}
    assert after.pool(DRIVER, "pool-b") is before.pool(DRIVER, "pool-b")
    assert before.devices == {D1, FAR}


def test_no_change_is_the_same_object() -> None:
    """Changes that change nothing give the state itself."""
    state = AllocatedState.from_parts([D1])
    assert state.updated({PoolId(DRIVER, "pool-a"): {"d1": WHOLE_DEVICE, "d2": None}}) is state
    assert state.updated({}) is state
    assert state.with_unavailable([D1]) is state
    assert state.with_gone_consumption({D2: CONSUMES}) is state


def test_emptied_pool_disappears() -> None:
    """When the last device of a pool is free, the pool is like one never used."""
    state = AllocatedState.from_parts([D1]).updated({PoolId(DRIVER, "pool-a"): {"d1": None}})
    assert state == NOTHING_ALLOCATED
    assert state.pool(DRIVER, "pool-a") is NOTHING_IN_USE


def test_bug_99_devices_not_free_yet() -> None:
    """A host may name devices that are not free yet: they count as exclusively in use."""
    state = AllocatedState.from_parts([D1], [share("d2", "s")], {D2: amounts(mem="1")})
    hosted = state.with_unavailable([D2, D3])
    assert hosted.devices == {D1, D2, D3}
    assert hosted.shares == {share("d2", "s")}
    assert hosted.consumed_capacity == {D2: amounts(mem="1")}
    assert state.devices == {D1}


def test_consumption_of_devices_that_are_gone() -> None:
    """Consumption of devices that no slice lists can be given along; free devices have none."""
    parts = AllocatedState.from_parts([D1], [share("d2", "s")])
    state = parts.with_gone_consumption({D1: CONSUMES, D2: CONSUMES, D3: CONSUMES, FAR: CONSUMES})
    assert state.pool(DRIVER, "pool-a").gone_consumption == {"d1": CONSUMES, "d2": CONSUMES}
    assert state.pool(DRIVER, "pool-b") is NOTHING_IN_USE
    assert state.devices == {D1}
    assert state != parts


# --- laws

SHARES = st.builds(
    share, st.sampled_from(["d1", "d2"]), st.sampled_from(["s1", "s2", "s3"]),
    st.sampled_from(["pool-a", "pool-b"]),
)  # fmt: skip
DEVICES = st.builds(
    device, st.sampled_from(["d1", "d2", "d3"]), st.sampled_from(["pool-a", "pool-b"])
)
CONSUMED = st.none() | st.dictionaries(
    st.sampled_from(["mem", "cores"]), st.sampled_from(["1", "1Gi", "250m"])
).map(lambda texts: amounts(**texts))
RESULTS = st.builds(result, SHARES | DEVICES, CONSUMED, st.sampled_from([None, True, False]))
CLAIMS = st.lists(st.lists(RESULTS, max_size=3).map(lambda rs: claim("c", *rs)), max_size=4)


@given(CLAIMS, st.booleans())
def test_states_hold_what_the_claims_hold(claims: list[ResourceClaim], feature: bool) -> None:
    """A state is the union of its claims' holdings, whatever their order."""
    held = [holding for each in claims for holding in holdings(each.allocation, feature)]
    state = AllocatedState.from_claims(claims, feature)
    assert state.devices == {DeviceId(*h.pool, h.device) for h in held if not h.share_id}
    assert state.shares == {
        share(h.device, h.share_id, h.pool.pool) for h in held if h.share_id
    }  # fmt: skip
    assert AllocatedState.from_claims(reversed(claims), feature) == state
    assert set(state.consumed_capacity) <= {s.device_id for s in state.shares}


@given(CLAIMS, CLAIMS)
def test_moving_between_states(before: list[ResourceClaim], after: list[ResourceClaim]) -> None:
    """Changing every device to its use in another state gives that state."""
    start, goal = AllocatedState.from_claims(before), AllocatedState.from_claims(after)
    changes = {
        pool: {
            name: goal.pool(*pool).use(name)
            for name in start.pool(*pool).uses.keys() | goal.pool(*pool).uses.keys()
        }
        for pool in start.pools.keys() | goal.pools.keys()
    }
    moved = start.updated(changes)
    assert moved == goal
    for pool in goal.pools:
        if start.pool(*pool) == goal.pool(*pool):
            assert moved.pool(*pool) is start.pool(*pool)


def test_allocation_helper_keeps_results() -> None:
    """The helper of these tests passes complete results on unchanged."""
    full = result(D1, amounts(mem="1"), admin=True)
    assert allocation(full).results == (full,)
