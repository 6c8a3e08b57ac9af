"""Consumable capacity: how much of a device a request takes.

What may live here: the rules of one device and one request, in exact arithmetic. What
is left on a device while the search goes on is the search's business.

Source: resource.k8s.io/v1, CapacityRequirements and CapacityRequestPolicy; KEP-5075.
"""

from collections.abc import Mapping
from typing import NamedTuple

from dra_core.allocator.results import RejectedFor
from dra_core.api.objects import CapacityRequestPolicy, CapacityRequestPolicyRange, Device
from dra_core.values.quantity import BINARY_SI, Quantity

ZERO = Quantity(0)


class CapacityRejection(NamedTuple):
    """Why a device can never serve a request: the rule and the capacity's name."""

    why: RejectedFor
    name: str


def consumption(
    requested: Mapping[str, Quantity], device: Device
) -> dict[str, Quantity] | CapacityRejection:
    """What a request takes of every capacity of a device, in the device's order.

    A rejection if the device lacks a requested capacity, an amount breaks the policy, or
    the device could not give it even when nothing is in use. Cost: linear in both, times
    the number of valid values of a policy.
    """
    for name in requested:
        if name not in device.capacity:
            return CapacityRejection(RejectedFor.CAPACITY_MISSING, name)
    taken: dict[str, Quantity] = {}
    for name, capacity in device.capacity.items():
        amount = _amount(requested.get(name), capacity.value, capacity.request_policy)
        if amount is None:
            return CapacityRejection(RejectedFor.CAPACITY_POLICY, name)
        if amount > capacity.value:
            return CapacityRejection(RejectedFor.CAPACITY_TOO_SMALL, name)
        taken[name] = amount
    return taken


def _amount(
    requested: Quantity | None, whole: Quantity, policy: CapacityRequestPolicy | None
) -> Quantity | None:
    """The consumed amount, ``None`` if the policy forbids it."""
    if policy is None:
        return whole if requested is None else requested
    if requested is None:
        amount: Quantity | None = whole if policy.default is None else policy.default
    elif policy.valid_range is not None:
        amount = _rounded_up(requested, policy.valid_range)
    elif policy.valid_values:
        amount = min((v for v in policy.valid_values if v >= requested), default=None)
    else:
        amount = requested
    return None if amount is None or _violates(amount, policy) else amount


def _rounded_up(requested: Quantity, valid: CapacityRequestPolicyRange) -> Quantity | None:
    """At least ``min``, on a step; ``None`` if the step leads nowhere."""
    if valid.min is not None and requested < valid.min:
        return valid.min
    if valid.step is None:
        return requested
    if valid.step.nano <= 0:
        return None
    low = ZERO if valid.min is None else valid.min
    steps = -((low.nano - requested.nano) // valid.step.nano)
    # The reference computes a new amount here and writes it in binary form.
    return Quantity(low.nano + steps * valid.step.nano, BINARY_SI)


def _violates(amount: Quantity, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and amount == policy.default:
        return False
    valid = policy.valid_range
    if valid is None:
        return bool(policy.valid_values) and amount not in policy.valid_values
    if valid.max is not None and amount > valid.max:
        return True
    if valid.step is None:
        return False
    low = ZERO if valid.min is None else valid.min
    return valid.step.nano <= 0 or (amount.nano - low.nano) % valid.step.nano != 0
