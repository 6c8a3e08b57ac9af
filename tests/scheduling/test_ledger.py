"""DeviceLedger: counts that follow single changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.names import DeviceId, SharedDeviceId
from dra_core.api.objects import ResourceClaim
from dra_core.inventory.allocated import AllocatedState, Holding, holdings
from dra_core.scheduling.ledger import DeviceLedger
from support.in_use import DRIVER, amounts, claim, device, result, share

D1 = device("d1")
S1, S2 = share("d1", "s1"), share("d1", "s2")


def held(*what: DeviceId | SharedDeviceId, mem: str = "1Gi") -> tuple[Holding, ...]:
    """Holdings of devices and shares."""
    results = (
        result(item, amounts(mem=mem) if isinstance(item, SharedDeviceId) else None)
        for item in what
    )
    return holdings(claim("c", *results).allocation)


def test_a_device_is_free_when_the_last_holder_lets_go() -> None:
    """Holders are counted."""
    ledger = DeviceLedger()
    ledger.add(held(D1))
    ledger.add(held(D1))
    ledger.remove(held(D1))
    assert ledger.state().devices == {D1}
    ledger.remove(held(D1))
    assert not ledger.state()


def test_a_share_counts_once_until_the_last_holder_lets_go() -> None:
    """The same share held twice counts once, its capacity too; the larger one, if they differ."""
    ledger = DeviceLedger()
    ledger.add(held(S1, mem="1Gi"))
    ledger.add(held(S1, mem="2Gi"))
    ledger.add(held(S2, mem="4Gi"))
    assert ledger.state().consumed_capacity == {D1: amounts(mem="6Gi")}
    ledger.remove(held(S1, mem="2Gi"))
    assert ledger.state().consumed_capacity == {D1: amounts(mem="5Gi")}
    ledger.remove(held(S1, mem="1Gi"))
    assert ledger.state().shares == {S2}


def test_state_is_kept_until_something_changes() -> None:
    """Without changes the state is the same object; what cancels out changes no pool."""
    ledger = DeviceLedger()
    ledger.add(held(D1))
    before = ledger.state()
    assert ledger.state() is before
    ledger.remove(held(D1))
    ledger.add(held(D1))
    assert ledger.state() is before
    ledger.add(held(device("d9", "pool-b")))
    assert ledger.state().pool(DRIVER, "pool-a") is before.pool(DRIVER, "pool-a")


@pytest.mark.parametrize(
    ("present", "wanted", "taken"),
    [
        ((), (D1,), []),
        ((D1,), (D1,), [D1]),
        ((S1,), (D1,), [D1]),
        ((D1,), (S1,), [S1]),
        ((S1,), (S1, S2), [S1]),
        ((D1, S1), (S2,), [S2]),
        ((device("d2"), device("d1", "pool-b")), (D1, S1), []),
    ],
)
def test_taken(
    present: tuple[DeviceId, ...],
    wanted: tuple[DeviceId, ...],
    taken: list[DeviceId | SharedDeviceId],
) -> None:
    """A whole device needs it free, a share needs that nobody has the device or the share."""
    ledger = DeviceLedger()
    ledger.add(held(*present))
    assert ledger.taken(held(*wanted)) == taken


WHAT = st.sampled_from(
    [D1, device("d2"), device("d1", "pool-b"), S1, S2, share("d1", "s1", "pool-b")]
)
CLAIM = st.builds(
    lambda what, mem: claim("c", *(result(item, amounts(mem=mem)) for item in what)),
    st.lists(WHAT, min_size=1, max_size=4, unique=True),
    st.sampled_from(["1", "1Gi", "2Gi"]),
)


@given(st.lists(st.tuples(CLAIM, st.booleans(), st.integers(0, 10))))
def test_like_counting_from_nothing(steps: list[tuple[ResourceClaim, bool, int]]) -> None:
    """However claims come and go, the state is what those present give from nothing."""
    ledger, present = DeviceLedger(), list[ResourceClaim]()
    for new, arrives, which in steps:
        if arrives or not present:
            present.append(new)
            ledger.add(holdings(new.allocation))
        else:
            ledger.remove(holdings(present.pop(which % len(present)).allocation))
        if which % 2:
            assert ledger.state() == AllocatedState.from_claims(present)
    assert ledger.state() == AllocatedState.from_claims(present)
