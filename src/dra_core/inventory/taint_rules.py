"""DeviceTaintRules: the slices as they look with the rules' taints on their devices.

What may live here: which devices a rule selects, and the patched view of slices that
everything after it reads. Whether taints count at all (the feature DeviceTaints) is
the caller's to decide.

Source: resource.k8s.io/v1, DeviceTaintRule.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter

import attrs

from dra_core.api.objects import Device, DeviceTaint, DeviceTaintRule, ResourceSlice


def apply_taint_rules(
    slices: Iterable[ResourceSlice], rules: Iterable[DeviceTaintRule]
) -> tuple[ResourceSlice, ...]:
    """The slices with the taint of each rule on every device that it selects.

    Same order; a slice that no rule touches is the same object, and so is an untouched
    device. A device's own taints come first, then those of rules by name, whatever
    order the rules are given in. A rule without a selector selects nothing, one with
    an empty selector every device.

    Cost: linear in slices, devices, rules and the taints that are added.
    """
    selected: _Rules = {}
    for order, rule in enumerate(sorted(rules, key=lambda rule: rule.metadata.name)):
        selector = rule.device_selector
        if selector is not None:
            of_pool = selected.setdefault((selector.driver, selector.pool), {})
            of_pool.setdefault(selector.device, []).append((order, rule.taint))
    return tuple(_patched(slice_, selected) for slice_ in slices)


_OfPool = dict[str | None, list[tuple[int, DeviceTaint]]]
"""The taints for one device, or for all (None), with the order of their rules."""

_Rules = dict[tuple[str | None, str | None], _OfPool]
"""By driver and pool; None is any."""


def _patched(slice_: ResourceSlice, rules: _Rules) -> ResourceSlice:
    driver, pool = slice_.driver, slice_.pool
    keys = ((driver, pool), (driver, None), (None, pool), (None, None))
    relevant = [rules[key] for key in keys if key in rules]
    if not relevant:
        return slice_
    devices = tuple(_tainted(device, relevant) for device in slice_.devices)
    changed = any(new is not old for new, old in zip(devices, slice_.devices, strict=True))
    return attrs.evolve(slice_, devices=devices) if changed else slice_


def _tainted(device: Device, rules: Sequence[_OfPool]) -> Device:
    found = [
        entry
        for of_pool in rules
        for name in (None, device.name)
        for entry in of_pool.get(name, ())
    ]
    if not found:
        return device
    found.sort(key=itemgetter(0))
    return attrs.evolve(device, taints=device.taints + tuple(taint for _, taint in found))
