"""Taint rules: which devices they select, in which order their taints come."""

import copy
import itertools

from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.core import ObjectMeta
from dra_core.api.objects import (
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
)
from dra_core.inventory.taint_rules import apply_taint_rules


def rule(name: str, selector: DeviceTaintSelector | None) -> DeviceTaintRule:
    return DeviceTaintRule(ObjectMeta(name=name), selector, DeviceTaint(name, "", "NoSchedule"))


def slice_of(driver: str, pool: str, *devices: str) -> ResourceSlice:
    """A slice whose last device has a taint of its own."""
    *others, last = devices
    own = DeviceTaint("own", "", "None")
    made = (*(Device(name) for name in others), Device(last, taints=(own,)))
    return ResourceSlice(driver=driver, pool=pool, devices=made)


SLICES = (slice_of("d1", "p", "a", "b"), slice_of("d2", "p", "a"), slice_of("d1", "q", "b"))


def tainted(*rules: DeviceTaintRule) -> dict[str, list[str]]:
    """Keys of the taints of each device, by ``driver/pool/device``."""
    return {
        f"{s.driver}/{s.pool}/{d.name}": [taint.key for taint in d.taints]
        for s in apply_taint_rules(SLICES, rules)
        for d in s.devices
    }


NOTHING = {"d1/p/a": [], "d1/p/b": ["own"], "d2/p/a": ["own"], "d1/q/b": ["own"]}


def test_bug_91_rule_without_selector_taints_nothing() -> None:
    """A rule with no deviceSelector matches nothing (k/k#141620)."""
    assert tainted(rule("r", None)) == NOTHING


def test_an_empty_selector_selects_all() -> None:
    """The empty selector matches every device."""
    assert tainted(rule("r", DeviceTaintSelector())) == {
        name: [*keys, "r"] for name, keys in NOTHING.items()
    }


def test_every_field_must_match() -> None:
    """driver, pool and device each narrow the selection."""
    expected = {
        (None, None, None): set(NOTHING),
        ("d1", None, None): {"d1/p/a", "d1/p/b", "d1/q/b"},
        (None, "p", None): {"d1/p/a", "d1/p/b", "d2/p/a"},
        (None, None, "a"): {"d1/p/a", "d2/p/a"},
        ("d1", "p", None): {"d1/p/a", "d1/p/b"},
        ("d1", None, "b"): {"d1/p/b", "d1/q/b"},
        (None, "q", "b"): {"d1/q/b"},
        ("d2", "p", "a"): {"d2/p/a"},
        ("d2", "q", None): set(),
        ("", None, None): set(),
        (None, "", None): set(),
        (None, None, ""): set(),
    }
    for fields, names in expected.items():
        result = tainted(rule("r", DeviceTaintSelector(*fields)))
        assert {name for name, keys in result.items() if "r" in keys} == names


def test_own_taints_come_first_then_rules_by_name() -> None:
    """The order of taints does not depend on the order of the rules."""
    rules = [
        rule("b", DeviceTaintSelector(device="b")),
        rule("a", DeviceTaintSelector()),
        rule("c", DeviceTaintSelector(driver="d1")),
    ]
    for order in itertools.permutations(rules):
        result = tainted(*order)
        assert result["d1/p/b"] == ["own", "a", "b", "c"]
        assert result["d2/p/a"] == ["own", "a"]


def test_what_no_rule_touches_stays_the_same_object() -> None:
    """Slices and devices that are not selected are not copied; inputs are unchanged."""
    before = copy.deepcopy(SLICES)
    first, second, third = apply_taint_rules(
        SLICES, [rule("r", DeviceTaintSelector(driver="d1", device="a"))]
    )
    assert first is not SLICES[0]
    assert first.devices[0].taints == (DeviceTaint("r", "", "NoSchedule"),)
    assert first.devices[1] is SLICES[0].devices[1]
    assert second is SLICES[1]
    assert third is SLICES[2]
    assert before == SLICES


def test_without_rules_nothing_is_copied() -> None:
    """No rules, no work."""
    assert all(a is b for a, b in zip(apply_taint_rules(SLICES, ()), SLICES, strict=True))


names = st.sampled_from(["a", "b", "c"])
selectors = st.one_of(
    st.none(),
    st.builds(
        DeviceTaintSelector,
        st.one_of(st.none(), names),
        st.one_of(st.none(), names),
        st.one_of(st.none(), names),
    ),
)


@given(
    st.lists(st.tuples(names, names, names), max_size=8),
    st.lists(st.tuples(names, selectors), max_size=5, unique_by=lambda pair: pair[0]),
)
def test_each_device_has_exactly_the_taints_that_select_it(
    devices: list[tuple[str, str, str]],
    rules: list[tuple[str, DeviceTaintSelector | None]],
) -> None:
    """A device gets a rule's taint exactly if every field that the selector sets is equal."""
    slices = [ResourceSlice(driver=d, pool=p, devices=(Device(n),)) for d, p, n in devices]
    patched = apply_taint_rules(slices, [rule(name, selector) for name, selector in rules])
    for slice_, (driver, pool, device) in zip(patched, devices, strict=True):
        assert [taint.key for taint in slice_.devices[0].taints] == sorted(
            name
            for name, selector in rules
            if selector is not None
            and all(
                wanted is None or wanted == actual
                for wanted, actual in (
                    (selector.driver, driver),
                    (selector.pool, pool),
                    (selector.device, device),
                )
            )
        )
