"""Consumable capacity: what a request takes of a device, in exact arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.allocator.capacity import CapacityRejection, consumption
from dra_core.allocator.results import RejectedFor
from dra_core.api.objects import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceCapacity,
)
from dra_core.values.quantity import Quantity

parse = Quantity.parse


def policy(
    default: str | None = None,
    values: tuple[str, ...] = (),
    low: str | None = None,
    high: str | None = None,
    step: str | None = None,
) -> CapacityRequestPolicy:
    valid_range = None
    if low or high or step:
        bounds = [parse(text) if text else None for text in (low, high, step)]
        valid_range = CapacityRequestPolicyRange(*bounds)
    return CapacityRequestPolicy(
        parse(default) if default else None, tuple(map(parse, values)), valid_range
    )


def taken(request: str | None, value: str, rules: CapacityRequestPolicy | None) -> str:
    """The consumed amount as text, or the reason for a rejection."""
    device = Device("d", capacity={"c": DeviceCapacity(parse(value), rules)})
    result = consumption({"c": parse(request)} if request else {}, device)
    return str(result.why) if isinstance(result, CapacityRejection) else str(result["c"])


@pytest.mark.parametrize(
    ("request_", "value", "rules", "expected"),
    [
        (None, "8Gi", None, "8Gi"),
        (None, "8Gi", policy(default="1Gi"), "1Gi"),
        (None, "8Gi", policy(low="1Gi", step="3Gi"), "capacity-policy"),
        (None, "7Gi", policy(low="1Gi", step="3Gi"), "7Gi"),
        (None, "8Gi", policy(low="1Gi", high="4Gi"), "capacity-policy"),
        (None, "8Gi", policy(values=("1Gi", "8Gi")), "8Gi"),
        (None, "8Gi", policy(values=("1Gi", "2Gi")), "capacity-policy"),
        ("3Gi", "8Gi", None, "3Gi"),
        ("3Gi", "8Gi", policy(default="1Gi"), "3Gi"),
        ("9Gi", "8Gi", None, "capacity-too-small"),
        ("1", "8", policy(low="2"), "2"),
        ("3", "8", policy(low="2", step="2"), "4"),
        ("4", "8", policy(low="2", step="2"), "4"),
        ("7", "8", policy(low="2", high="6", step="2"), "capacity-policy"),
        ("1200M", "2G", policy(low="1G", step="500M"), "1500000000"),
        ("250m", "1", policy(low="100m", step="100m"), "300m"),
        ("3", "8", policy(values=("8", "4", "2")), "4"),
        ("9", "10", policy(values=("8", "4")), "capacity-policy"),
        ("5", "8", policy(default="5", low="1", high="4"), "5"),
        ("3", "8", policy(low="1", step="0"), "capacity-policy"),
        ("3", "8", policy(low="1", step="-1"), "capacity-policy"),
        (None, "8", policy(default="3", low="1", step="0"), "3"),
        ("2e30", "4e30", policy(low="1", step="1e30"), str(Quantity((2 * 10**30 + 1) * 10**9))),
        (
            "9223372036854775807",
            "9223372036854775807",
            policy(low="0", step="100"),
            "capacity-too-small",
        ),
    ],
)
def test_amounts(
    request_: str | None, value: str, rules: CapacityRequestPolicy | None, expected: str
) -> None:
    """Defaults, rounding up to ranges, steps and values, and what the policy forbids."""
    assert taken(request_, value, rules) == expected


def test_names_match_literally() -> None:
    """A request for d/m does not name m."""
    device = Device("d", capacity={"m": DeviceCapacity(parse("1"))})
    assert consumption({"d/m": parse("1")}, device) == CapacityRejection(
        RejectedFor.CAPACITY_MISSING, "d/m"
    )


def test_every_capacity_is_consumed_in_the_order_of_the_device() -> None:
    """What is not requested is consumed as well."""
    device = Device("d", capacity={n: DeviceCapacity(parse("4")) for n in ("b", "a", "c")})
    result = consumption({"a": parse("1")}, device)
    assert not isinstance(result, CapacityRejection)
    assert [(name, str(amount)) for name, amount in result.items()] == [
        ("b", "4"),
        ("a", "1"),
        ("c", "4"),
    ]


@given(
    st.integers(-(10**12), 10**22),
    st.integers(0, 10**12),
    st.integers(1, 10**21),
    st.integers(0, 10**23),
)
def test_steps_are_exact(asked: int, low: int, step: int, value: int) -> None:
    """The amount is the least min + k·step that is not below the request, at any size."""
    rules = CapacityRequestPolicy(
        valid_range=CapacityRequestPolicyRange(Quantity(low), None, Quantity(step))
    )
    device = Device("d", capacity={"c": DeviceCapacity(Quantity(value), rules)})
    result = consumption({"c": Quantity(asked)}, device)
    steps = max(0, -((-Fraction(asked - low) / step).__floor__()))
    expected = low + steps * step
    if isinstance(result, CapacityRejection):
        assert expected > value
    else:
        assert result["c"].nano == expected <= value
