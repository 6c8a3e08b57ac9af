"""Claims of other shapes, registered by the caller."""

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from dra_core.api.core import ObjectMeta
from dra_core.api.objects import ResourceClaim
from dra_core.api.wire import decode_allocation_result
from dra_core.errors import AllocationError, MissingClassNameError
from dra_core.scheduling.cycle_verdicts import Stopped, StopReason
from dra_core.scheduling.errors import UnexpectedEventError
from dra_core.scheduling.wakeups import before_filtering
from dra_core.scheduling.wakeups_demand import demand_of
from dra_core.scheduling.wakeups_verdict import WakeReason, WakeUp, queue, skip
from support.claim_json import allocation_json
from support.claims import make_claim
from support.contexts import make_context
from support.sleeping import QUEUE, SKIP, answer, claim, consumers, lookups, pod_using

R = WakeReason
OURS = decode_allocation_result(allocation_json("gpu-0"))
POD = pod_using("gpu")
KNOWN = lookups(claim())


@attrs.frozen
class OldClaim(ResourceClaim):
    """A claim of another API version."""

    class_name: str = ""
    immediate: bool = False


@attrs.frozen
class OldClass:
    """What it names."""

    name: str
    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)


@attrs.frozen
class OldClaims:
    """A kind as its room would register it."""

    classes: tuple[str, ...] = ()

    def handles(self, claim: ResourceClaim) -> bool:
        return isinstance(claim, OldClaim)

    def by_driver(self, claim: ResourceClaim) -> bool:
        return isinstance(claim, OldClaim) and claim.class_name.startswith("driver")

    def immediate(self, claim: ResourceClaim) -> bool:
        return isinstance(claim, OldClaim) and claim.immediate

    def by_scheduler(self, claim: ResourceClaim) -> bool:
        return bool(claim.metadata.finalizers)

    def limit(self, claim: ResourceClaim) -> int:
        return 1

    def missing(self, claim: ResourceClaim) -> AllocationError | None:
        assert isinstance(claim, OldClaim)
        if not claim.class_name:
            raise MissingClassNameError(str(claim.metadata.key), "")
        if claim.class_name in self.classes:
            return None
        return AllocationError(str(claim.metadata.key), "")

    def concerns(self, obj: object) -> bool:
        return isinstance(obj, OldClass)

    def changed(
        self, claims: Sequence[ResourceClaim], old: object | None, new: object | None
    ) -> WakeUp:
        obj = new or old
        assert isinstance(obj, OldClass)
        names = [claim.class_name for claim in claims if isinstance(claim, OldClaim)]
        return queue(R.CLASS_CHANGED) if obj.name in names else skip(R.OTHER_CLASS)


def old_claim(name: str = "gpu", class_name: str = "c", **rest: Any) -> OldClaim:
    return OldClaim(make_claim(name, uid=f"{name}-uid").metadata, class_name=class_name, **rest)


def test_kinds_are_registered() -> None:
    """Other claims come by a protocol; their objects have the rules of their kind."""
    kinds = (OldClaims(classes=("c",)),)
    known = lookups(old_claim(), claim(name="net"), kinds=kinds)
    pod = pod_using("gpu", "net")
    assert answer(pod, None, OldClass("c"), known) == (QUEUE, R.CLASS_CHANGED)
    assert answer(pod, OldClass("d"), None, known) == (SKIP, R.OTHER_CLASS)
    assert answer(pod_using("net"), None, OldClass("c"), known) == (SKIP, R.OTHER_CLASS)
    with pytest.raises(UnexpectedEventError):
        answer(pod, None, OldClass("c"), KNOWN)


def test_kinds_say_who_allocates() -> None:
    """Whose allocation it was, who allocates, and how many may share, is the kind's to say."""
    kinds = (OldClaims(),)
    of_driver = old_claim("gpu", "driver-c")
    known = lookups(of_driver, kinds=kinds)
    assert answer(POD, None, make_context(), known) == (SKIP, R.REPORT_INCOMPLETE)
    assert not demand_of(POD, known).needs_devices
    taken = old_claim("other", allocation=OURS)
    assert answer(POD, taken, None, known) == (SKIP, R.OTHER_CLAIM)
    ours = attrs.evolve(taken, metadata=attrs.evolve(taken.metadata, finalizers=("f",)))
    assert answer(POD, ours, None, known) == (QUEUE, R.DEVICES_FREED)


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (old_claim("gpu", "driver-c", immediate=True), StopReason.IMMEDIATE),
        (old_claim("gpu", "driver-c"), StopReason.PARAMETERS_MISSING),
        (old_claim("gpu", "c", immediate=True), None),
        (old_claim("gpu", ""), StopReason.INVALID),
        (old_claim(allocation=OURS, reserved_for=consumers(1)), StopReason.FULL),
        (old_claim(allocation=OURS), None),
    ],
)
def test_kinds_say_what_is_missing(one: OldClaim, reason: StopReason | None) -> None:
    """Immediate allocation, what must appear first, and errors, as the kind has it."""
    verdict = before_filtering(POD, lookups(one, kinds=(OldClaims(classes=("c",)),)))
    assert (verdict.reason if isinstance(verdict, Stopped) else None) is reason
