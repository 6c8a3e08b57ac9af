"""Pods that are gone: what they left in flight is given back, but never what was written."""

import attrs
import pytest

from dra_core.api.wire import encode
from dra_core.scheduling.cycle_release import PodRelease, release_pod
from dra_core.scheduling.cycle_verdicts import Stopped, TroubleKind
from dra_core.scheduling.in_flight import DevicesFreed
from dra_core.scheduling.wakeups import wake_up
from dra_core.scheduling.wakeups_demand import Lookups
from dra_core.testing.faults import Fault, script
from support import allocation_builders as build
from support.cycle_site import NOW, Site, claim, pod

POD = pod("c")


@pytest.fixture
def site() -> Site:
    """One node with two devices, and two unallocated claims."""
    site = Site(nodes=("node-1",))
    site.add(*build.CLASSES)
    site.devices("node-1", "a1", "a2")
    site.add(claim("c"), claim("d"))
    return site


def unclear(site: Site, *, happened: bool) -> None:
    """An attempt of POD whose write got no clear answer, undone; then the pod is deleted."""
    site.attempt_unclear(POD, happened=happened)
    assert site.in_use() == ["a1"]


def released(site: Site) -> PodRelease:
    """The way to its end, the devices checked after each answer."""
    release = release_pod(POD, site.tracker, site.kinds())
    while release.request is not None:
        release.answered(*site.line.send(release.request))
        site.check()
    return release


@pytest.mark.parametrize("shown", [True, False])
def test_what_was_written_stays_taken(site: Site, shown: bool) -> None:
    """Also while the informer does not show it: the devices are the claim's."""
    unclear(site, happened=True)
    if shown:
        site.show()
    release = released(site)
    assert (release.left, release.troubles) == ((), ())
    assert site.tracker.in_flight() == ()
    assert site.in_use() == ["a1"]
    site.show()
    assert site.in_use() == ["a1"]


def test_what_was_not_written_is_free(site: Site) -> None:
    """One read, and an event that devices became free."""
    unclear(site, happened=False)
    freed: list[object] = []
    site.tracker.add_handler(freed.append)
    release = released(site)
    assert release.left == ()
    assert site.in_use() == []
    assert len(freed) == 1


def test_a_claim_that_is_gone_or_another_by_now(site: Site) -> None:
    """Nothing is allocated for it any more."""
    unclear(site, happened=True)
    site.server.unseed("resourceclaims", "default", "c")
    assert released(site).left == ()
    assert site.tracker.in_flight() == ()


def test_another_claim_of_that_name_is_left_alone(site: Site) -> None:
    """A new claim has the name: it is not the one in flight."""
    unclear(site, happened=True)
    site.server.unseed("resourceclaims", "default", "c")
    made = claim("c")
    other = attrs.evolve(made, metadata=attrs.evolve(made.metadata, uid="new"))
    site.server.seed(encode(other, "v1"))
    assert released(site).left == ()
    assert site.tracker.in_flight() == ()


def test_no_clear_answer_gives_nothing_back(site: Site) -> None:
    """The devices stay taken; the next time finds out."""
    unclear(site, happened=False)
    site.line.source = script([Fault.UNAVAILABLE])
    release = released(site)
    assert [entry.uid for entry in release.left] == ["uid-c"]
    assert [trouble.kind for trouble in release.troubles] == [TroubleKind.READ]
    assert site.in_use() == ["a1"]
    assert released(site).left == ()
    assert site.in_use() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "d"},
        {"namespace": "other"},
        {"uid": ""},
        {"resourceVersion": ""},
        {"resourceVersion": "x7"},
    ],
    ids=str,
)
def test_an_answer_that_is_no_stored_claim_of_that_name_gives_nothing_back(
    site: Site, wrong: dict[str, str]
) -> None:
    """It does not say that the claim is gone, or another one by now: it was allocated."""
    unclear(site, happened=True)
    release = release_pod(POD, site.tracker, site.kinds())
    assert release.request is not None
    status, body = site.server.send(release.request)
    body["metadata"] |= wrong
    assert release.answered(status, body) is None
    assert [entry.uid for entry in release.left] == ["uid-c"]
    kinds = [trouble.kind for trouble in release.troubles]
    assert kinds == [TroubleKind.UNREADABLE, TroubleKind.READ]
    assert site.in_use() == ["a1"]
    assert released(site).left == ()
    assert site.in_use() == ["a1"]


def test_other_pods_keep_what_is_theirs(site: Site) -> None:
    """And a pod that left nothing costs no request."""
    site.reserved(pod("d", name="other"))
    release = release_pod(POD, site.tracker, site.kinds())
    assert release.request is None
    assert site.in_use() == ["a1"]
    with pytest.raises(ValueError, match="no answer"):
        release.answered(200)


def test_a_cycle_that_was_dropped_is_found_out_too(site: Site) -> None:
    """A host that lost a cycle half-way does not know what it had written."""
    cycle = site.reserved(POD)
    request = cycle.pre_bind(NOW)
    assert request is not None
    cycle.answered(*site.server.send(request))
    del cycle
    assert released(site).left == ()
    assert site.in_use() == []


def test_a_claim_of_no_kind_is_left(site: Site) -> None:
    """Nobody here can read it: nothing is given back unread."""
    unclear(site, happened=False)
    release = release_pod(POD, site.tracker, [])
    assert release.request is None
    assert len(release.left) == 1


def test_the_rest_of_a_gang_goes_on(site: Site) -> None:
    """Only the pod that is gone lets go of what is shared."""
    first = site.reserved(POD, session="gang")
    site.reserved(pod("c", name="second"), session="gang")
    assert released(site).left == ()
    [entry] = site.tracker.in_flight()
    assert entry.users == ("second-uid",)
    assert site.in_use() == ["a1"]
    del first


def test_a_pod_that_goes_to_sleep_keeps_nobody_out(site: Site) -> None:
    """Its next attempt ends at another claim, before it can find out about the one that it
    has left in flight; others that need that one are woken once it is given back."""
    both = pod("d", "c")
    cycle = site.reserved(both)
    site.line.source = script([None, None, None, *([Fault.LOST_REQUEST] * 9)])
    site.drive(cycle, cycle.pre_bind(NOW))
    site.drive(cycle, cycle.unreserve())
    site.line.source = script(())
    site.server.unseed("resourceclaims", "default", "d")
    for informer in site.informers:
        informer.list_anew()
    again = site.cycle(both)
    stopped = again.pre_enqueue()
    assert isinstance(stopped, Stopped)
    assert not stopped.retry
    other = pod("c", name="other")
    waits = site.cycle(other)
    waits.pre_enqueue()
    assert isinstance(waits.pre_filter(NOW), Stopped)
    freed: list[DevicesFreed] = []
    site.tracker.add_handler(freed.append)
    release = release_pod(both, site.tracker, site.kinds())
    while release.request is not None:
        release.answered(*site.line.send(release.request))
    [event] = freed
    assert wake_up(other, event, Lookups(site.claims.find, pending=site.tracker.pending)).wakes
    site.bound(other)
