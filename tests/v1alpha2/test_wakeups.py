"""Wake-ups by the kinds of objects that only v1alpha2 has."""

from typing import Any

import pytest

from dra_core.api.core import Pod
from dra_core.api.names import ObjectKey
from dra_core.scheduling.assume_cache import CacheEvent
from dra_core.scheduling.cycle_verdicts import Stopped, StopReason
from dra_core.scheduling.wakeups import before_filtering, wake_up
from dra_core.scheduling.wakeups_demand import Lookups
from dra_core.scheduling.wakeups_verdict import Queueing, WakeReason
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.errors import ParametersNotFoundError
from support import named_json as objects
from support.cycle_site import NAMESPACE, pod
from support.named_site import CONTROLLER, NamedSite

Json = dict[str, Any]

ALLOCATED: Json = {
    "driverName": "d",
    "allocation": objects.allocation_json("n1", objects.handle_json("d", "n1", "i0")),
}


@pytest.fixture
def site() -> NamedSite:
    """A structured class and one of a controller; claims of both kinds, and an allocated one."""
    site = NamedSite()
    site.seed(
        objects.class_json("gpu", "d", parametersRef=objects.vendor("f", NAMESPACE)),
        objects.class_json("classic", CONTROLLER, structured=False),
        objects.claim_json("s", parameters=objects.vendor("x")),
        objects.claim_json("c", "classic"),
        objects.claim_json("held", finalizers=["dra.k8s.io/delete-protection"], **ALLOCATED),
    )
    return site


def lookups(site: NamedSite) -> Lookups:
    return Lookups(site.claims.find, pending=site.tracker.pending, kinds=(site.waking,))


def woken(site: NamedSite, sleeping: Pod, old: Json | None, new: Json | None) -> WakeReason:
    """The reason; whether it wakes the pod is told by it."""
    values = [None if obj is None else wire.decode(obj) for obj in (old, new)]
    name = ObjectKey("", "x")
    answer = wake_up(sleeping, CacheEvent(name, values[0], values[1]), lookups(site))
    assert answer.queueing in (Queueing.SKIP, Queueing.QUEUE)
    assert answer.wakes is (answer.reason in WAKING)
    return answer.reason


WAKING = (WakeReason.SUPPLY_CHANGED, WakeReason.CLASS_CHANGED, WakeReason.PARAMETERS_CHANGED)

SLICE = objects.slice_json("s", "n1", "d", objects.plain("i0"))
BIGGER = objects.slice_json("s", "n1", "d", objects.plain("i0", "i1"))
MOVED = objects.slice_json("s", "n2", "d", objects.plain("i0"))


@pytest.mark.parametrize(
    ("claim", "old", "new", "reason"),
    [
        ("s", None, SLICE, WakeReason.SUPPLY_CHANGED),
        ("s", SLICE, BIGGER, WakeReason.SUPPLY_CHANGED),
        ("s", SLICE, MOVED, WakeReason.SUPPLY_CHANGED),
        # A selector may have failed on what is gone.
        ("s", BIGGER, SLICE, WakeReason.SUPPLY_CHANGED),
        ("s", SLICE, None, WakeReason.SUPPLY_CHANGED),
        ("s", SLICE, {**SLICE, "metadata": {"name": "s", "labels": {}}}, WakeReason.UNCHANGED),
        ("c", None, SLICE, WakeReason.NOTHING_PENDING),
        ("held", None, SLICE, WakeReason.NOTHING_PENDING),
    ],
)
def test_slices(
    site: NamedSite, claim: str, old: Json | None, new: Json | None, reason: WakeReason
) -> None:
    """A claim that the scheduler has to allocate may be helped by any real change."""
    assert woken(site, pod(claim), old, new) is reason


@pytest.mark.parametrize(
    ("claim", "name", "reason"),
    [
        ("s", "gpu", WakeReason.CLASS_CHANGED),
        ("c", "classic", WakeReason.CLASS_CHANGED),
        ("s", "classic", WakeReason.OTHER_CLASS),
        ("held", "gpu", WakeReason.OTHER_CLASS),
    ],
)
def test_classes(site: NamedSite, claim: str, name: str, reason: WakeReason) -> None:
    """Added, updated or deleted: a pending claim names it."""
    obj = objects.class_json(name, "d")
    for old, new in ((None, obj), (obj, obj), (obj, None)):
        assert woken(site, pod(claim), old, new) is reason


def claim_parameters(name: str = "p", namespace: str = NAMESPACE, **members: Any) -> Json:
    members.setdefault("generatedFrom", objects.vendor("x"))
    return objects.claim_parameters_json(name, namespace, ("d", ["true"]), **members)


def class_parameters(**members: Any) -> Json:
    members.setdefault("generatedFrom", objects.vendor("f", NAMESPACE))
    return objects.class_parameters_json("f", "anywhere", ("d", "true"), **members)


OTHER_REQUEST: Json = {
    "driverRequests": [{"driverName": "d", "requests": [objects.request_json("1==1")]}]
}
OTHER_FILTER: Json = {"filters": [{"driverName": "d", **objects.request_json("1==1")}]}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (None, claim_parameters(), WakeReason.PARAMETERS_CHANGED),
        (claim_parameters(), claim_parameters(**OTHER_REQUEST), WakeReason.PARAMETERS_CHANGED),
        (claim_parameters(), claim_parameters(shareable=True), WakeReason.UNCHANGED),
        (claim_parameters(), None, WakeReason.GONE),
        (None, claim_parameters(namespace="other"), WakeReason.OTHER_PARAMETERS),
        (None, claim_parameters(generatedFrom=objects.vendor("y")), WakeReason.OTHER_PARAMETERS),
        (
            claim_parameters(),
            claim_parameters(generatedFrom=objects.vendor("y")),
            WakeReason.PARAMETERS_CHANGED,
        ),
        (
            claim_parameters(generatedFrom=objects.vendor("y")),
            claim_parameters(),
            WakeReason.PARAMETERS_CHANGED,
        ),
        (None, class_parameters(), WakeReason.PARAMETERS_CHANGED),
        (class_parameters(), class_parameters(**OTHER_FILTER), WakeReason.PARAMETERS_CHANGED),
        (
            class_parameters(),
            class_parameters(vendorParameters=[{"driverName": "d", "parameters": 1}]),
            WakeReason.UNCHANGED,
        ),
        (
            None,
            class_parameters(generatedFrom=objects.vendor("f", "other")),
            WakeReason.OTHER_PARAMETERS,
        ),
    ],
)
def test_parameters(
    site: NamedSite, old: Json | None, new: Json | None, reason: WakeReason
) -> None:
    """The pod's claims use them, directly or as what they were generated from, in the claim's
    namespace, and they are new, or their requests or filters have changed."""
    assert woken(site, pod("s"), old, new) is reason


def test_direct_references_count_too(site: NamedSite) -> None:
    """Parameters that a claim names itself."""
    reference = objects.direct("ResourceClaimParameters", "p")
    site.seed(objects.claim_json("direct", parameters=reference))
    obj = claim_parameters(generatedFrom=None)
    assert woken(site, pod("direct"), None, obj) is WakeReason.PARAMETERS_CHANGED
    assert woken(site, pod("s"), None, obj) is WakeReason.OTHER_PARAMETERS


def test_claims_of_the_scheduler_free_devices_for_everybody(site: NamedSite) -> None:
    """A claim with the finalizer is deallocated or deleted: whoever used it, pods may go on."""
    held = site.claim("held")
    gone: CacheEvent[Any] = CacheEvent(held.metadata.key, held, None)
    assert wake_up(pod("s"), gone, lookups(site)).reason is WakeReason.DEVICES_FREED
    site.seed(objects.claim_json("theirs", "classic", driverName=CONTROLLER, allocation={}))
    theirs = site.claim("theirs")
    other: CacheEvent[Any] = CacheEvent(theirs.metadata.key, theirs, None)
    assert wake_up(pod("s"), other, lookups(site)).reason is WakeReason.OTHER_CLAIM


def test_what_was_waited_for_is_found(site: NamedSite) -> None:
    """The checks before filtering follow the caches at any moment, without a cycle."""
    sleeping = pod("s")
    for made in (class_parameters(), claim_parameters()):
        verdict = before_filtering(sleeping, lookups(site))
        assert isinstance(verdict, Stopped)
        assert verdict.reason is StopReason.PARAMETERS_MISSING
        assert isinstance(verdict.cause, ParametersNotFoundError)
        assert woken(site, sleeping, None, made) is WakeReason.PARAMETERS_CHANGED
        site.seed(made)
    assert not isinstance(before_filtering(sleeping, lookups(site)), Stopped)
    site.server.unseed("resourceclasses", "", "gpu")
    for informer in site.informers:
        informer.list_anew()
    verdict = before_filtering(sleeping, lookups(site))
    assert isinstance(verdict, Stopped)
    assert verdict.reason is StopReason.CLASS_MISSING
