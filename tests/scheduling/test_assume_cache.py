"""Assume cache: every rule and every error, with and without an index."""

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.core import ObjectMeta, PodResourceClaim
from dra_core.api.names import ObjectKey
from dra_core.api.objects import ResourceClaim
from dra_core.errors import DraError
from dra_core.scheduling.assume_cache import AssumeCache, CacheEvent
from dra_core.scheduling.errors import (
    HandlerFailedError,
    NoIndexError,
    NoUsableNameError,
    ObjectExistsError,
    ObjectNotFoundError,
    ObjectReplacedError,
    StoreError,
    UnreadableVersionError,
    VersionTooOldError,
    WrongTypeError,
)

KEY = ObjectKey("ns", "x")


def obj(
    version: str, name: str = "x", uid: str = "u", mark: str = "", namespace: str = "ns"
) -> ResourceClaim:
    """A claim as a plain object; ``mark`` tells equally old copies apart."""
    return ResourceClaim(ObjectMeta(name, namespace, uid, version), controller=mark)


class Log:
    """A handler that remembers (old, new, initial) by version and mark."""

    def __init__(self) -> None:
        self.events: list[CacheEvent[ResourceClaim]] = []

    def __call__(self, event: CacheEvent[ResourceClaim]) -> None:
        self.events.append(event)

    def take(self) -> list[tuple[str | None, str | None]]:
        """What came since the last call, as versions with marks."""
        taken, self.events = self.events, []
        return [(_short(event.old), _short(event.new)) for event in taken]


def _short(what: ResourceClaim | None) -> str | None:
    return None if what is None else what.metadata.resource_version + what.controller


def facts(*errors: BaseException) -> list[tuple[Any, ...]]:
    """Type and fields of errors: as exceptions they are equal by identity only."""
    return [(type(error), error.args) for error in errors]


@attrs.define
class Setup:
    """A cache with one handler and everything it reported."""

    cache: AssumeCache[ResourceClaim]
    log: Log
    errors: list[DraError]


def by_mark(claim: ResourceClaim) -> tuple[str, ...]:
    """An index function: every letter of the mark."""
    return tuple(claim.controller)


@pytest.fixture(params=["plain", "indexed"])
def setup(request: pytest.FixtureRequest) -> Setup:
    """Every test runs with and without index."""
    errors: list[DraError] = []
    index = by_mark if request.param == "indexed" else None
    cache = AssumeCache(ResourceClaim, errors.append, index=index)
    log = Log()
    cache.add_handler(log)
    return Setup(cache, log, errors)


def latest(setup: Setup) -> str | None:
    """The latest copy of the one object, and that the cache is consistent."""
    setup.cache._check()
    return _short(setup.cache.find(KEY))


def observed(setup: Setup) -> str | None:
    """The observed copy of the one object."""
    return _short(setup.cache.get_api_object(KEY))


# --- reading


def test_get(setup: Setup) -> None:
    """``get`` gives the latest object, ``get_api_object`` the observed one."""
    setup.cache.observe(obj("1"))
    setup.cache.assume(obj("2"))
    assert setup.cache.get(KEY) == obj("2")
    assert setup.cache.find(KEY) == obj("2")
    assert setup.cache.get_api_object(KEY) == obj("1")


def test_not_found(setup: Setup) -> None:
    """Unknown keys are errors by type, or None where that was asked for."""
    for read in (setup.cache.get, setup.cache.get_api_object):
        with pytest.raises(ObjectNotFoundError) as caught:
            read(KEY)
        assert (caught.value.kind, caught.value.key) == ("ResourceClaim", "ns/x")
    assert setup.cache.find(KEY) is None


def test_list(setup: Setup) -> None:
    """``list`` gives every latest object once, in the order in which they were added."""
    for name in ("b", "a", "c"):
        setup.cache.observe(obj("1", name))
    setup.cache.assume(obj("2", "a"))
    assert setup.cache.list() == (obj("1", "b"), obj("2", "a"), obj("1", "c"))
    assert AssumeCache(ResourceClaim, setup.errors.append).list() == ()


def test_objects_of_two_namespaces_are_two(setup: Setup) -> None:
    """Objects are keyed by namespace and name."""
    setup.cache.observe(obj("1"))
    setup.cache.observe(obj("2", namespace="other", uid="v"))
    assert setup.cache.get(KEY) == obj("1")
    assert setup.cache.get(ObjectKey("other", "x")).metadata.uid == "v"


def test_objects_without_namespace() -> None:
    """Cluster-wide objects have an empty namespace."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    cache.observe(obj("1", namespace=""))
    assert cache.get(ObjectKey("", "x")) == obj("1", namespace="")


# --- event add/update


def test_event_adds(setup: Setup) -> None:
    """A new object is observed and latest, and handlers see an add."""
    setup.cache.observe(obj("1"))
    assert (latest(setup), observed(setup)) == ("1", "1")
    assert setup.log.take() == [(None, "1")]


def test_event_updates(setup: Setup) -> None:
    """A newer object replaces both copies, and handlers see an update."""
    setup.cache.observe(obj("1"))
    setup.cache.observe(obj("2"))
    assert (latest(setup), observed(setup)) == ("2", "2")
    assert setup.log.take() == [(None, "1"), ("1", "2")]


@pytest.mark.parametrize("version", ["4", "5"])
def test_event_not_newer_changes_nothing(setup: Setup, version: str) -> None:
    """An event not newer than the observed copy replaces nothing; a resync is one."""
    setup.cache.observe(obj("5"))
    setup.log.take()
    setup.cache.observe(obj(version, mark="again"))
    assert (latest(setup), observed(setup)) == ("5", "5")
    assert setup.log.take() == []


@pytest.mark.parametrize("version", ["6", "7"])
def test_event_not_newer_than_an_assumed_object(setup: Setup, version: str) -> None:
    """It becomes the observed copy, but changes nothing that readers or handlers see."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("7", mark="a"))
    setup.log.take()
    setup.cache.observe(obj(version))
    assert (latest(setup), observed(setup)) == ("7a", version)
    assert setup.log.take() == []


def test_event_newer_than_an_assumed_object(setup: Setup) -> None:
    """It replaces the latest too."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("7", mark="a"))
    setup.log.take()
    setup.cache.observe(obj("8"))
    assert (latest(setup), observed(setup)) == ("8", "8")
    assert setup.log.take() == [("7a", "8")]


def test_versions_are_numbers(setup: Setup) -> None:
    """10 is newer than 9, and numbers may be longer than 64 bits."""
    setup.cache.observe(obj("9"))
    setup.cache.observe(obj("10"))
    assert latest(setup) == "10"
    setup.cache.observe(obj("1" + "0" * 30))
    setup.cache.observe(obj("9" + "0" * 29))
    assert latest(setup) == "1" + "0" * 30


def test_another_uid_is_another_object(setup: Setup) -> None:
    """It replaces both copies, whatever the version; handlers see a delete, then an add."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("7", mark="a"))
    setup.log.take()
    setup.cache.observe(obj("6", uid="v", mark="n"))
    assert (latest(setup), observed(setup)) == ("6n", "6n")
    assert setup.log.take() == [("7a", None), (None, "6n")]


@pytest.mark.parametrize("version", ["", "abc", "-1", "1.0"])
def test_unreadable_version_is_reported_and_dropped(setup: Setup, version: str) -> None:
    """An event whose version cannot be read is reported, with the object's name."""
    setup.cache.observe(obj("5"))
    setup.cache.observe(obj(version, mark="bad"))
    setup.cache.observe(obj(version, uid="v"))
    assert latest(setup) == "5"
    assert facts(*setup.errors) == 2 * facts(
        UnreadableVersionError("ResourceClaim", "ns/x", version)
    )
    assert setup.log.take() == [(None, "5")]


def test_other_unusable_events_are_reported_and_dropped(setup: Setup) -> None:
    """So are events of another type, and without a name."""
    stranger: Any = PodResourceClaim("x")
    setup.cache.observe(stranger)
    setup.cache.observe_delete(stranger)
    setup.cache.observe(obj("1", name=""))
    setup.cache.observe_delete(obj("1", name=""))
    assert facts(*setup.errors) == facts(
        WrongTypeError("ResourceClaim", "PodResourceClaim"),
        WrongTypeError("ResourceClaim", "PodResourceClaim"),
        NoUsableNameError("ResourceClaim", "ns/"),
        NoUsableNameError("ResourceClaim", "ns/"),
    )
    assert setup.cache.list() == ()


# --- event delete


@pytest.mark.parametrize("version", ["1", "5", "9", "", "abc"])
def test_event_delete(setup: Setup, version: str) -> None:
    """It removes both copies, whatever the versions; handlers get the latest object."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("7", mark="a"))
    setup.log.take()
    setup.cache.observe_delete(obj(version))
    assert latest(setup) is None
    with pytest.raises(ObjectNotFoundError):
        setup.cache.get_api_object(KEY)
    assert setup.log.take() == [("7a", None)]
    assert not setup.errors


def test_event_delete_of_an_unknown_object(setup: Setup) -> None:
    """For an unknown key or another UID nothing happens."""
    setup.cache.observe(obj("5"))
    setup.log.take()
    setup.cache.observe_delete(obj("9", name="y"))
    setup.cache.observe_delete(obj("9", uid="v"))
    assert latest(setup) == "5"
    assert setup.log.take() == []


# --- assume


def test_assume(setup: Setup) -> None:
    """It replaces the latest copy only; handlers see an update."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("7"))
    assert (latest(setup), observed(setup)) == ("7", "5")
    assert setup.log.take() == [(None, "5"), ("5", "7")]


def test_assume_of_an_equal_version(setup: Setup) -> None:
    """An equal version is fine."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("5", mark="a"))
    assert latest(setup) == "5a"
    assert setup.log.take() == [(None, "5"), ("5", "5a")]


def test_assume_of_what_is_there_already(setup: Setup) -> None:
    """An object that equals the latest is no change of it, so there is no event."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("5"))
    assert setup.log.take() == [(None, "5")]


Case = Callable[[], Any]
BAD_ASSUMES: Mapping[str, tuple[Case, DraError]] = {
    "wrong type": (
        lambda: PodResourceClaim("x"),
        WrongTypeError("ResourceClaim", "PodResourceClaim"),
    ),
    "no usable name": (
        lambda: obj("abc", name="", uid="v"),
        NoUsableNameError("ResourceClaim", "ns/"),
    ),
    "unknown key": (
        lambda: obj("abc", name="y", uid="v"),
        ObjectNotFoundError("ResourceClaim", "ns/y"),
    ),
    "another UID": (
        lambda: obj("abc", uid="v"),
        ObjectReplacedError("ResourceClaim", "ns/x", "v", "u"),
    ),
    "unreadable version": (
        lambda: obj("abc"),
        UnreadableVersionError("ResourceClaim", "ns/x", "abc"),
    ),
    "older than the latest": (
        lambda: obj("6"),
        VersionTooOldError("ResourceClaim", "ns/x", "6", "7"),
    ),
}


@pytest.mark.parametrize("case", BAD_ASSUMES)
def test_assume_refuses(setup: Setup, case: str) -> None:
    """Checked in order: usable name, known key, same UID, readable version, not older than
    the latest. Failing changes nothing."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("7", mark="a"))
    setup.log.take()
    make, error = BAD_ASSUMES[case]
    with pytest.raises(type(error)) as caught:
        setup.cache.assume(make())
    assert facts(caught.value) == facts(error)
    assert (latest(setup), observed(setup)) == ("7a", "5")
    assert setup.log.take() == []
    assert not setup.errors


# --- restore


def test_restore(setup: Setup) -> None:
    """The latest becomes the observed one again; handlers see an update."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("7"))
    setup.log.take()
    setup.cache.restore(KEY)
    assert (latest(setup), observed(setup)) == ("5", "5")
    assert setup.log.take() == [("7", "5")]


def test_restore_takes_the_newest_observed(setup: Setup) -> None:
    """What was observed since is what is restored."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("7"))
    setup.cache.observe(obj("6"))
    setup.cache.restore(KEY)
    assert latest(setup) == "6"


def test_restore_of_an_equally_old_copy(setup: Setup) -> None:
    """Of two copies with one version the observed one is restored, if it differs."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("5", mark="a"))
    setup.log.take()
    setup.cache.restore(KEY)
    assert latest(setup) == "5"
    assert setup.log.take() == [("5a", "5")]


def test_restore_without_difference(setup: Setup) -> None:
    """Unknown keys are ignored; no difference, no event."""
    setup.cache.restore(KEY)
    setup.cache.observe(obj("5"))
    setup.log.take()
    setup.cache.restore(KEY)
    assert latest(setup) == "5"
    assert setup.log.take() == []


def test_older_versions_count_from_the_restored_one(setup: Setup) -> None:
    """After restore an object may be assumed that is older than the forgotten one."""
    setup.cache.observe(obj("5"))
    setup.cache.assume(obj("7"))
    setup.cache.restore(KEY)
    setup.cache.assume(obj("6"))
    assert latest(setup) == "6"


# --- hypothetical objects


def test_hypothetical(setup: Setup) -> None:
    """A hypothetical object is one that nobody has observed; handlers see an add."""
    setup.cache.add_hypothetical(obj("0"))
    assert latest(setup) == "0"
    assert setup.log.take() == [(None, "0")]
    with pytest.raises(ObjectNotFoundError):
        setup.cache.get_api_object(KEY)


def test_restore_removes_a_hypothetical(setup: Setup) -> None:
    """Restoring removes it; handlers get what it was last."""
    setup.cache.add_hypothetical(obj("0"))
    setup.cache.assume(obj("0", mark="a"))
    setup.log.take()
    setup.cache.restore(KEY)
    assert latest(setup) is None
    assert setup.log.take() == [("0a", None)]


def test_hypothetical_is_observed(setup: Setup) -> None:
    """Once observed it is like any other object."""
    setup.cache.add_hypothetical(obj("1"))
    setup.cache.observe(obj("2"))
    assert (latest(setup), observed(setup)) == ("2", "2")
    setup.cache.restore(KEY)
    assert latest(setup) == "2"


def test_older_observation_of_a_hypothetical(setup: Setup) -> None:
    """An observation not newer than the hypothetical gives it an observed copy only."""
    setup.cache.add_hypothetical(obj("3", mark="h"))
    setup.cache.observe(obj("3"))
    assert (latest(setup), observed(setup)) == ("3h", "3")
    setup.cache.restore(KEY)
    assert latest(setup) == "3"


def test_real_object_replaces_a_hypothetical(setup: Setup) -> None:
    """The real object has another UID: a delete, then an add."""
    setup.cache.add_hypothetical(obj("0"))
    setup.log.take()
    setup.cache.observe(obj("2", uid="real"))
    assert setup.log.take() == [("0", None), (None, "2")]


def test_hypothetical_is_deleted(setup: Setup) -> None:
    """A delete with its UID removes it."""
    setup.cache.add_hypothetical(obj("0"))
    setup.cache.observe_delete(obj("0"))
    assert latest(setup) is None


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (obj("1"), ObjectExistsError("ResourceClaim", "ns/x")),
        (obj("1", name=""), NoUsableNameError("ResourceClaim", "ns/")),
        (obj("", name="y"), UnreadableVersionError("ResourceClaim", "ns/y", "")),
        (PodResourceClaim("y"), WrongTypeError("ResourceClaim", "PodResourceClaim")),
    ],
)
def test_hypothetical_refused(setup: Setup, bad: Any, error: DraError) -> None:
    """It needs a free and usable name and a readable version."""
    setup.cache.observe(obj("5"))
    setup.log.take()
    with pytest.raises(type(error)) as caught:
        setup.cache.add_hypothetical(bad)
    assert facts(caught.value) == facts(error)
    assert latest(setup) == "5"
    assert setup.log.take() == []


# --- a full list


def test_full_list(setup: Setup) -> None:
    """Everything listed is observed, everything else observed before is gone."""
    setup.cache.observe(obj("1"))
    setup.cache.observe(obj("2", "y"))
    setup.cache.assume(obj("9", "y", mark="a"))
    setup.cache.add_hypothetical(obj("0", "h"))
    setup.log.take()
    setup.cache.observe_all([obj("3"), obj("4", "z")])
    assert setup.log.take() == [("1", "3"), (None, "4"), ("9a", None)]
    assert [each.name for each in setup.cache.list()] == ["x", "h", "z"]


def test_full_list_at_a_version(setup: Setup) -> None:
    """What was observed after the list was made stays."""
    for version, name in (("5", "x"), ("6", "y"), ("7", "z")):
        setup.cache.observe(obj(version, name))
    setup.cache.observe_all([], "6")
    assert [each.name for each in setup.cache.list()] == ["z"]


def test_full_list_with_an_unusable_object(setup: Setup) -> None:
    """An object with an unreadable version is reported; it exists, so it is kept as it was."""
    stranger: Any = PodResourceClaim("x")
    setup.cache.observe(obj("1"))
    setup.cache.observe_all([obj("abc"), stranger])
    assert latest(setup) == "1"
    assert len(setup.errors) == 2


def test_full_list_at_an_unreadable_version(setup: Setup) -> None:
    """The list's own version must be readable; else nothing changes."""
    setup.cache.observe(obj("1"))
    with pytest.raises(UnreadableVersionError, match=r"\(list\)"):
        setup.cache.observe_all([], "new")
    assert latest(setup) == "1"


# --- index


@pytest.fixture
def indexed() -> AssumeCache[ResourceClaim]:
    """A cache in which every letter of an object's mark is an index key."""
    return AssumeCache(ResourceClaim, list[DraError]().append, index=by_mark)


def names(cache: AssumeCache[ResourceClaim], index_key: str) -> list[str]:
    """What ``list`` finds."""
    cache._check()
    return [each.name for each in cache.list(index_key)]


def test_index(indexed: AssumeCache[ResourceClaim]) -> None:
    """``list`` with an index key gives the objects that have it; every object once."""
    indexed.observe(obj("1", "x", mark="aab"))
    indexed.observe(obj("2", "y", mark="b"))
    indexed.observe(obj("3", "z"))
    assert names(indexed, "a") == ["x"]
    assert names(indexed, "b") == ["x", "y"]
    assert names(indexed, "c") == []
    assert len(indexed.list()) == 3


def test_index_follows_the_latest_object(indexed: AssumeCache[ResourceClaim]) -> None:
    """Assume, restore, update and delete move an object between index keys."""
    indexed.observe(obj("1", mark="a"))
    indexed.assume(obj("2", mark="b"))
    assert (names(indexed, "a"), names(indexed, "b")) == ([], ["x"])
    indexed.restore(KEY)
    assert (names(indexed, "a"), names(indexed, "b")) == (["x"], [])
    indexed.observe(obj("3", mark="bc"))
    assert (names(indexed, "a"), names(indexed, "c")) == ([], ["x"])
    indexed.observe(obj("1", uid="v", mark="d"))
    assert (names(indexed, "b"), names(indexed, "d")) == ([], ["x"])
    indexed.observe_delete(obj("1", uid="v"))
    assert names(indexed, "d") == []
    assert indexed._groups == {}


def test_no_index() -> None:
    """A cache without index has a type of error for that."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    with pytest.raises(NoIndexError) as caught:
        cache.list("a")
    assert caught.value.kind == "ResourceClaim"


def test_failing_index_function_changes_nothing() -> None:
    """If the index function fails, its error gets out and the store is as before."""

    def index(claim: ResourceClaim) -> tuple[str, ...]:
        if claim.controller == "bad":
            raise RuntimeError("index")
        return (claim.name,)

    cache = AssumeCache(ResourceClaim, list[DraError]().append, index=index)
    log = Log()
    cache.add_handler(log)
    cache.observe(obj("1"))
    for call in (cache.observe, cache.assume):
        with pytest.raises(RuntimeError):
            call(obj("2", mark="bad"))
    with pytest.raises(RuntimeError):
        cache.observe(obj("2", uid="v", mark="bad"))
    with pytest.raises(RuntimeError):
        cache.add_hypothetical(obj("2", "y", mark="bad"))
    cache._check()
    assert cache.list() == (obj("1"),)
    assert log.take() == [(None, "1")]


# --- handlers


def test_new_handler_sees_what_is_there(setup: Setup) -> None:
    """A new handler first sees an add, marked as initial, for everything in the store."""
    setup.cache.observe(obj("1"))
    setup.cache.assume(obj("2"))
    setup.cache.observe(obj("3", "y"))
    log = Log()
    setup.cache.add_handler(log)
    assert log.events == [
        CacheEvent(KEY, None, obj("2"), initial=True),
        CacheEvent(ObjectKey("ns", "y"), None, obj("3", "y"), initial=True),
    ]
    setup.cache.observe(obj("4"))
    assert log.events[2:] == [CacheEvent(KEY, obj("2"), obj("4"))]


def test_one_order_for_all() -> None:
    """All handlers see every change exactly once, in the same order."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    seen: list[tuple[int, str | None]] = []
    cache.add_handler(lambda event: seen.append((1, _short(event.new))))
    cache.add_handler(lambda event: seen.append((2, _short(event.new))))
    cache.observe(obj("1"))
    cache.observe(obj("2"))
    assert seen == [(1, "1"), (2, "1"), (1, "2"), (2, "2")]


def test_events_from_inside_follow_the_current_one() -> None:
    """A call from inside a handler returns at once and its events follow the current one."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    seen: list[str] = []

    def reacting(event: CacheEvent[ResourceClaim]) -> None:
        seen.append(f"first sees {_short(event.new)}")
        if event.old is None:
            cache.assume(obj("2"))
            seen.append("assumed")
            assert cache.get(KEY) == obj("2")

    cache.add_handler(reacting)
    cache.add_handler(lambda event: seen.append(f"second sees {_short(event.new)}"))
    cache.observe(obj("1"))
    assert seen == [
        "first sees 1", "assumed", "second sees 1", "first sees 2", "second sees 2",
    ]  # fmt: skip


def test_handler_added_inside_a_handler() -> None:
    """It sees the store as it is then as initial, and only later changes after that."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    late = Log()

    def adding(event: CacheEvent[ResourceClaim]) -> None:
        if event.old is None:
            cache.assume(obj("2"))
            cache.add_handler(late)

    cache.add_handler(adding)
    cache.observe(obj("1"))
    assert late.events == [CacheEvent(KEY, None, obj("2"), initial=True)]


def test_failing_handler() -> None:
    """A handler's exception goes to the error callback and stops nothing."""
    errors: list[DraError] = []
    cache = AssumeCache(ResourceClaim, errors.append)
    log, problem = Log(), RuntimeError("handler")

    def failing(event: CacheEvent[ResourceClaim]) -> None:
        raise problem

    cache.add_handler(failing)
    cache.add_handler(log)
    cache.observe(obj("1"))
    cache.observe(obj("2"))
    assert log.take() == [(None, "1"), ("1", "2")]
    assert facts(*errors) == 2 * facts(HandlerFailedError("ResourceClaim", "ns/x", problem))


def test_cancelled_handler() -> None:
    """After its subscription ended a handler sees nothing, not even what is queued."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    log = Log()
    with cache.atomic():
        cancel = cache.add_handler(log)
        cache.observe(obj("1"))
        cancel()
    cache.observe(obj("2"))
    assert log.take() == []


def test_error_callback_may_call_in() -> None:
    """The error callback is called like a handler, not under the lock."""
    seen: list[object] = []
    cache: AssumeCache[ResourceClaim]

    def report(error: DraError) -> None:
        cache.observe(obj("1"))
        seen.append(cache.find(KEY))

    cache = AssumeCache(ResourceClaim, report)
    cache.observe(obj("bad"))
    assert seen == [obj("1")]


def test_atomic_step(setup: Setup) -> None:
    """Several calls in one step: events come when it is left."""
    with setup.cache.atomic():
        setup.cache.observe(obj("1"))
        setup.cache.assume(obj("2"))
        assert setup.log.take() == []
    assert setup.log.take() == [(None, "1"), ("1", "2")]


def test_listener_runs_with_the_change() -> None:
    """A listener is told at once of what is there, and of every change as part of it."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    cache.observe(obj("1"))
    seen: list[tuple[str | None, str | None]] = []
    lists: list[str] = []
    cache.attach(
        lambda old, new: seen.append((_short(old), _short(new))),
        lambda version: lists.append(str(version)),
    )
    with cache.atomic():
        cache.observe(obj("2"))
        assert seen == [(None, "1"), ("1", "2")]
    cache.observe_all([], "5")
    cache.observe_all([])
    assert seen[2:] == [("2", None)]
    assert lists == ["5"]


def test_bug_59_events_and_reads_agree() -> None:
    """Events come from the same cache as reads, with old and new as the cache saw them: an
    informer's update that was assumed before is no event, and is none of the old state."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    cache.observe(obj("1"))
    log = Log()
    cache.add_handler(log)
    log.take()
    cache.assume(obj("2", mark="allocated"))
    cache.observe(obj("2", mark="allocated"))
    cache.observe(obj("3", mark="freed"))
    assert log.take() == [("1", "2allocated"), ("2allocated", "3freed")]


def test_bug_70_objects_are_not_changed(setup: Setup) -> None:
    """The cache never changes an object that it was given."""
    given_objects = [obj("1"), obj("2", mark="a"), obj("3", uid="v")]
    before = copy.deepcopy(given_objects)
    setup.cache.observe(given_objects[0])
    setup.cache.assume(given_objects[1])
    setup.cache.restore(KEY)
    setup.cache.observe(given_objects[2])
    setup.cache.observe_delete(given_objects[2])
    assert given_objects == before


# --- other kinds of objects


def test_objects_with_metadata_elsewhere() -> None:
    """The cache is generic: the caller says where an object's metadata is."""

    def metadata(decoded: dict[str, Any]) -> ObjectMeta:
        meta = decoded["metadata"]
        return ObjectMeta(meta["name"], "", meta["uid"], meta["resourceVersion"])

    errors: list[DraError] = []
    cache: AssumeCache[dict[str, Any]] = AssumeCache(dict, errors.append, metadata=metadata)
    cache.observe({"metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}})
    assert cache.get(ObjectKey("", "n"))["metadata"]["uid"] == "u"
    wrong: Any = "text"
    cache.observe(wrong)
    assert facts(*errors) == facts(WrongTypeError("dict", "str"))


@pytest.mark.parametrize(
    "error",
    [
        *(error for _, error in BAD_ASSUMES.values()),
        ObjectExistsError("ResourceClaim", "ns/x"),
        NoIndexError("ResourceClaim"),
        StoreError("ResourceClaim", "ns/x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_pickle_and_name_the_object(error: DraError) -> None:
    """Errors survive pickling, and their text names what they are about."""
    assert facts(pickle.loads(pickle.dumps(error))) == facts(error)
    assert "ResourceClaim" in str(error)
    if isinstance(error, StoreError):
        assert error.key in str(error)


def test_failed_handler_names_its_cause() -> None:
    """The report of a failed handler shows what it raised."""
    assert "boom" in str(HandlerFailedError("ResourceClaim", "ns/x", ValueError("boom")))


def test_long_versions_are_cut_in_texts() -> None:
    """A text about an unreadable version shows only its beginning."""
    assert len(str(UnreadableVersionError("ResourceClaim", "ns/x", "a" * 10_000))) < 200


# --- laws

VERSIONS = st.integers(1, 20)


@given(VERSIONS, VERSIONS, VERSIONS)
def test_assume_then_restore(first: int, assumed: int, newer: int) -> None:
    """Assume then restore gives the observed object; a newer observed one always wins."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    cache.observe(obj(str(first)))
    assumed = max(first, assumed)
    cache.assume(obj(str(assumed), mark="a"))
    cache.restore(KEY)
    assert cache.get(KEY) == obj(str(first))
    cache.assume(obj(str(assumed), mark="a"))
    cache.observe(obj(str(newer), mark="n"))
    expected = obj(str(newer), mark="n") if newer > assumed else obj(str(assumed), mark="a")
    assert cache.get(KEY) == expected
    cache._check()


# --- the self-check can fail


def broken_index(cache: AssumeCache[ResourceClaim]) -> None:
    cache._groups["z"] = {KEY: None}


def broken_version(cache: AssumeCache[ResourceClaim]) -> None:
    cache._entries[KEY].latest = obj("9")


def broken_order(cache: AssumeCache[ResourceClaim]) -> None:
    cache.assume(obj("8"))
    entry = cache._entries[KEY]
    entry.observed, entry.observed_version = entry.latest, entry.version
    entry.latest, entry.version = obj("7"), entry.version._replace(digits="7")


@pytest.mark.parametrize("damage", [broken_index, broken_version, broken_order])
def test_check_notices(
    indexed: AssumeCache[ResourceClaim], damage: Callable[[AssumeCache[ResourceClaim]], None]
) -> None:
    """``_check`` notices a wrong index, a wrong version and a latest older than observed."""
    indexed.observe(obj("5"))
    indexed._check()
    damage(indexed)
    with pytest.raises(AssertionError):
        indexed._check()
