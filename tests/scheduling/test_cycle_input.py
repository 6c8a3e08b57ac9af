"""A consistent (inventory, classes, allocated) for one cycle, in one call."""

import sys
import threading
import time
from collections.abc import Iterator

import attrs
import pytest

from dra_core.allocator.results import Allocated
from dra_core.api.core import Node, ObjectMeta
from dra_core.api.objects import (
    DeviceClass,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceClaim,
    ResourceSlice,
)
from dra_core.errors import DraError
from dra_core.features import Features
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.scheduling.cycle_input import CycleInput, CycleSource
from dra_core.scheduling.errors import SeparateLocksError, StaleInputError
from dra_core.scheduling.in_flight import ClaimTracker
from support import allocation_builders as build
from support import in_use
from support.pods import GPU, offering
from support.tracking import with_devices

D1 = in_use.device("d1", build.POOL, build.DRIVER)
D2 = in_use.device("d2", build.POOL, build.DRIVER)


class Cluster:
    """Caches that share a lock, and a source that follows them."""

    def __init__(self, features: Features | None = None) -> None:
        self.errors: list[DraError] = []
        self.claims = AssumeCache(ResourceClaim, self.errors.append)
        lock = self.claims.atomic()
        self.slices = AssumeCache(ResourceSlice, self.errors.append, delivery=lock)
        self.classes = AssumeCache(DeviceClass, self.errors.append, delivery=lock)
        self.rules = AssumeCache(DeviceTaintRule, self.errors.append, delivery=lock)
        self.tracker = ClaimTracker(self.claims)
        self.source = CycleSource(
            self.tracker,
            self.slices,
            self.classes,
            self.rules,
            share_ids=lambda: "share",
            features=features or Features(),
        )

    def show_slice(self, version: int, *names: str, name: str = "s1") -> None:
        """The informer shows a slice of node-1 with these devices."""
        made = build.pool_slice(name, *map(build.device, names), generation=version)
        self.slices.observe(versioned(made, version))


def versioned(obj: ResourceSlice, version: int) -> ResourceSlice:
    """The slice at a resourceVersion."""
    meta = attrs.evolve(obj.metadata, resource_version=str(version), uid=f"{obj.name}-uid")
    return attrs.evolve(obj, metadata=meta)


def class_at(version: int, resource: str = "", name: str = "class-a") -> DeviceClass:
    """A class at a resourceVersion; it selects every device."""
    made = offering(name, resource)
    meta = attrs.evolve(made.metadata, resource_version=str(version), uid=f"{name}-uid")
    return attrs.evolve(made, metadata=meta)


def rule(version: int, device: str, effect: str = "NoSchedule") -> DeviceTaintRule:
    """A rule that taints one device."""
    return DeviceTaintRule(
        ObjectMeta("rule", uid="rule-uid", resource_version=str(version)),
        DeviceTaintSelector(device=device),
        DeviceTaint("broken", effect=effect),
    )


@pytest.fixture
def cluster() -> Cluster:
    """A cluster with one slice of two devices and one class."""
    cluster = Cluster()
    cluster.show_slice(1, "d1", "d2")
    cluster.classes.observe(class_at(1, GPU))
    return cluster


def devices(given: CycleInput) -> list[str]:
    """The devices of all slices."""
    return [device.name for found in given.inventory.slices() for device in found.devices]


def granted(given: CycleInput) -> list[str]:
    """Which device a claim for one would get on node-1; none if it does not fit."""
    claim = build.claim(build.exactly("r"))
    outcome = given.allocator.allocate([claim], Node(ObjectMeta("node-1")), given.allocated)
    if not isinstance(outcome, Allocated):
        return []
    return [result.device for result in outcome.results[0].results]


def test_one_call_gives_slices_classes_and_what_is_in_use(cluster: Cluster) -> None:
    """Everything that was observed before is in."""
    cluster.claims.observe(in_use.claim("other", D1))
    given = cluster.source.take()
    assert devices(given) == ["d1", "d2"]
    assert list(given.classes) == ["class-a"]
    assert given.resources[GPU].name == "class-a"
    assert set(given.allocated.devices) == {D1}
    assert granted(given) == ["d2"]
    assert cluster.errors == []


def test_in_flight_counts(cluster: Cluster) -> None:
    """What is allocated = all claims of the cache with overrides, plus those in flight."""
    claim = in_use.claim("c")
    cluster.claims.observe(claim)
    cluster.tracker.start([with_devices(claim, D1)], "p1")
    assert granted(cluster.source.take()) == ["d2"]


def test_what_there_was_before_the_source_is_in() -> None:
    """A source that comes late sees what the caches hold already."""
    early = Cluster()
    early.show_slice(1, "d1")
    early.classes.observe(class_at(1))
    early.rules.observe(rule(1, "d1"))
    late = CycleSource(
        early.tracker, early.slices, early.classes, early.rules, share_ids=lambda: ""
    )
    given = late.take()
    assert devices(given) == ["d1"]
    assert granted(given) == []


def test_nothing_changes_until_the_next_take(cluster: Cluster) -> None:
    """Between two calls of take nothing that a cycle looks at can change."""
    given = cluster.source.take()
    cluster.show_slice(2, "d3")
    cluster.show_slice(1, "d9", name="s2")
    cluster.classes.observe_delete(class_at(1))
    cluster.claims.observe(in_use.claim("other", D1))
    given.check_current()
    assert devices(given) == ["d1", "d2"]
    assert list(given.classes) == ["class-a"]
    assert granted(given) == ["d1"]
    after = cluster.source.take()
    assert sorted(devices(after)) == ["d3", "d9"]
    assert after.classes == {}
    assert set(after.allocated.devices) == {D1}


def test_an_old_input_says_so(cluster: Cluster) -> None:
    """Valid until the next take of its source."""
    given = cluster.source.take()
    same = cluster.source.take()
    given.check_current()
    cluster.show_slice(2, "d3")
    cluster.source.take()
    with pytest.raises(StaleInputError):
        given.check_current()
    with pytest.raises(StaleInputError):
        same.check_current()


def test_deleted_slices_are_gone(cluster: Cluster) -> None:
    """Deleting, and deleting and making again between two takes."""
    cluster.source.take()
    cluster.slices.observe_delete(versioned(build.pool_slice("s1"), 1))
    assert devices(cluster.source.take()) == []
    cluster.show_slice(5, "d5")
    cluster.slices.observe_delete(versioned(build.pool_slice("s1"), 5))
    cluster.show_slice(6, "d6")
    assert devices(cluster.source.take()) == ["d6"]
    # Shown and gone again before anybody looked.
    cluster.show_slice(7, "d7", name="s2")
    cluster.slices.observe_delete(versioned(build.pool_slice("s2"), 7))
    assert devices(cluster.source.take()) == ["d6"]


def test_taint_rules_are_applied(cluster: Cluster) -> None:
    """The patched view of slices is what the allocator sees."""
    assert granted(cluster.source.take()) == ["d1"]
    cluster.rules.observe(rule(1, "d1"))
    assert granted(cluster.source.take()) == ["d2"]
    cluster.rules.observe(rule(2, "d2"))
    assert granted(cluster.source.take()) == ["d1"]
    cluster.show_slice(2, "d2", "d3")
    assert granted(cluster.source.take()) == ["d3"]
    cluster.rules.observe_delete(rule(2, "d2"))
    assert granted(cluster.source.take()) == ["d2"]


def test_rules_do_not_count_with_device_taints_off() -> None:
    """With the feature off rules are ignored."""
    off = Cluster(Features.from_gates({"DeviceTaints": False}))
    off.show_slice(1, "d1")
    off.classes.observe(class_at(1))
    off.rules.observe(rule(1, "d1"))
    assert granted(off.source.take()) == ["d1"]


def test_a_rule_leaves_other_slices_alone(cluster: Cluster) -> None:
    """A rule leaves most slices as they were, and views of them stay valid."""
    for number in range(2, 12):
        made = build.pool_slice(
            f"s{number}", build.device("x"), pool=f"p{number}", node=f"n{number}"
        )
        cluster.slices.observe(versioned(made, 1))
    before = cluster.source.take().revision
    cluster.rules.observe(rule(1, "d1"))
    # One slice is replaced: a deletion and an addition.
    assert cluster.source.take().revision == before + 2
    assert cluster.source.take().revision == before + 2


def test_the_allocator_stays_while_classes_stay(cluster: Cluster) -> None:
    """The same allocator comes again as long as no class changed."""
    first = cluster.source.take()
    cluster.show_slice(2, "d3")
    assert cluster.source.take().allocator is first.allocator
    cluster.classes.observe(class_at(2))
    second = cluster.source.take()
    assert second.allocator is not first.allocator
    assert second.resources.get(GPU) is None
    assert second.inventory is first.inventory


def test_another_state_of_use(cluster: Cluster) -> None:
    """A session goes on with one view of the cluster; devices may not be free yet."""
    given = cluster.source.take()
    for held in (
        given.with_unavailable([D1]),
        given.with_allocated(given.allocated.with_unavailable([D1])),
    ):
        assert granted(held) == ["d2"]
    assert granted(given) == ["d1"]


def test_bug_48_session_sees_live_updates(cluster: Cluster) -> None:
    """Three pods simulated, an informer update in the middle, rollback: the view equals its
    start, whatever the informer did (kai-scheduler#1217)."""
    given = cluster.source.take()
    session = given
    for name, device in (("c1", D1), ("c2", D2)):
        assert granted(session) == [device.device]
        cluster.show_slice(len(name) + device.device.count("2") + 2, "d7", "d8")
        cluster.claims.observe(in_use.claim(f"unrelated-{name}", in_use.device("z")))
        session = session.with_allocated(session.allocated.with_unavailable([device]))
    assert granted(session) == []
    # Rolled back: the values from the start are still there.
    given.check_current()
    assert granted(given) == ["d1"]
    assert set(given.allocated.devices) == set()


def test_caches_must_share_a_lock(cluster: Cluster) -> None:
    """Without one lock there is no one moment."""
    apart = AssumeCache(ResourceSlice, cluster.errors.append)
    with pytest.raises(SeparateLocksError) as caught:
        CycleSource(cluster.tracker, apart, cluster.classes, share_ids=lambda: "")
    assert caught.value.kind == "ResourceSlice"
    classes = AssumeCache(DeviceClass, cluster.errors.append)
    with pytest.raises(SeparateLocksError):
        CycleSource(cluster.tracker, cluster.slices, classes, share_ids=lambda: "")
    rules = AssumeCache(DeviceTaintRule, cluster.errors.append)
    with pytest.raises(SeparateLocksError):
        CycleSource(cluster.tracker, cluster.slices, cluster.classes, rules, share_ids=lambda: "")


# --- threads


@pytest.fixture
def switch_often() -> Iterator[None]:
    """Threads take turns a hundred times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


ROUNDS = 300


@pytest.mark.usefixtures("switch_often")
@pytest.mark.parametrize("together", [True, False])
def test_what_is_taken_is_of_one_moment(together: bool) -> None:
    """Taken under one lock: steps are seen whole, and events in the order of the calls."""
    cluster = Cluster()
    finished, taken = threading.Event(), threading.Event()

    def write() -> None:
        try:
            for number in range(1, ROUNDS + 1):
                if number % 50 == 0:
                    # However busy the machine is, the reader has had a look by now.
                    taken.clear()
                    taken.wait(30)
                if together:
                    with cluster.claims.atomic():
                        show(number)
                else:
                    show(number)
        finally:
            finished.set()

    def show(number: int) -> None:
        """Slice, class, claim, in this order; each tells the number of the round."""
        device = in_use.device(f"d{number}", build.POOL, build.DRIVER)
        cluster.show_slice(number, f"d{number}")
        cluster.classes.observe(class_at(number, f"vendor.example/{number}"))
        cluster.claims.observe(in_use.claim("c", device, version=str(number)))

    writer = threading.Thread(target=write)
    writer.start()
    seen: list[tuple[int, int, int]] = []
    while not finished.is_set() or not seen:
        seen.append(numbers(cluster.source.take()))
        taken.set()
        time.sleep(0.0005)  # let the writer have the lock
    seen.append(numbers(cluster.source.take()))
    writer.join(30)
    assert cluster.errors == []
    assert seen[-1] == (ROUNDS, ROUNDS, ROUNDS)
    for of_slice, of_class, of_claim in seen:
        assert of_slice >= of_class >= of_claim
        assert of_slice - of_claim <= 1
        if together:
            assert of_slice == of_class == of_claim
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


def numbers(given: CycleInput) -> tuple[int, int, int]:
    """The rounds that slice, class and claim are of."""
    given.check_current()
    of_slice = [int(name[1:]) for name in devices(given)]
    of_class = [int(c.extended_resource_name.partition("/")[2]) for c in given.classes.values()]
    of_claim = [int(device.device[1:]) for device in given.allocated.devices]
    return (*of_slice, 0)[0], (*of_class, 0)[0], (*of_claim, 0)[0]
