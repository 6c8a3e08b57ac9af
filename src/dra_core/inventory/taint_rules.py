"""DeviceTaintRules: the slices as they look with the rules' taints on their devices.

What may live here: which devices a rule selects, and the patched view of slices that
everything after it reads. Whether taints count at all (the feature DeviceTaints) is
the caller's to decide.

Source: resource.k8s.io/v1, DeviceTaintRule.
"""

from collections.abc import Iterable, Sequence

import attrs

from dra_core.api.objects import Device, DeviceTaintRule, DeviceTaintSelector, ResourceSlice


def apply_taint_rules(
    slices: Iterable[ResourceSlice], rules: Iterable[DeviceTaintRule]
) -> tuple[ResourceSlice, ...]:
    """The slices with the taint of each rule on every device that it selects.

    Same order; a slice that no rule touches is the same object, and so is an untouched
    device. A device's own taints come first, then those of rules by name, whatever
    order the rules are given in. A rule without a selector selects nothing, one with
    an empty selector every device.

    Cost: slices times rules, plus the devices of the slices that a rule may touch.
    """
    ordered = sorted(
        (rule for rule in rules if rule.device_selector is not None),
        key=lambda rule: rule.metadata.name,
    )
    return tuple(_patched(slice_, ordered) for slice_ in slices)


def _patched(slice_: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    relevant = [rule for rule in rules if _selects_pool(rule.device_selector, slice_)]
    if not relevant:
        return slice_
    devices = tuple(_tainted(device, relevant) for device in slice_.devices)
    changed = any(new is not old for new, old in zip(devices, slice_.devices, strict=True))
    return attrs.evolve(slice_, devices=devices) if changed else slice_


def _tainted(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    added = tuple(rule.taint for rule in rules if _selects_device(rule.device_selector, device))
    return attrs.evolve(device, taints=device.taints + added) if added else device


def _selects_pool(selector: DeviceTaintSelector | None, slice_: ResourceSlice) -> bool:
    return (
        selector is not None
        and selector.driver in (None, slice_.driver)
        and selector.pool in (None, slice_.pool)
    )


def _selects_device(selector: DeviceTaintSelector | None, device: Device) -> bool:
    return selector is not None and selector.device in (None, device.name)
