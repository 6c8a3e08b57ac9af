"""Odd input for what a scheduler remembers: nothing is lost, mixed up or left half done."""

from collections.abc import Callable, Iterator

import attrs
import pytest

from dra_core.api.core import ObjectMeta
from dra_core.api.objects import ResourceClaim
from dra_core.errors import DraError
from dra_core.scheduling.assume_cache import AssumeCache, CacheEvent
from dra_core.scheduling.errors import (
    HandlerFailedError,
    NoUidError,
    UnreadableVersionError,
    VersionTooOldError,
)
from support.in_use import claim, device, key
from support.tracking import Tracked, at, finalized, with_devices

Event = CacheEvent[ResourceClaim]

HUGE = "9" * 10_000
D1, D2 = device("d1"), device("d2")
C = claim("c", version="10")


class Seen:
    """A handler that notes the versions that it is shown."""

    def __init__(self) -> None:
        self.versions: list[str] = []

    def __call__(self, event: Event) -> None:
        shown = event.new or event.old
        assert shown is not None
        self.versions.append(shown.metadata.resource_version)


class Told:
    """An error callback that raises when it is told of something."""

    def __init__(self) -> None:
        self.errors: list[DraError] = []

    def __call__(self, error: DraError) -> None:
        self.errors.append(error)
        raise RuntimeError(f"callback {len(self.errors)}")


# --- callbacks that raise, or change who is called


def test_error_callback_that_raises_holds_nothing_up() -> None:
    """What the error callback raises reaches the caller after all events were delivered."""
    told, seen = Told(), Seen()
    cache = AssumeCache(ResourceClaim, told)
    cache.add_handler(seen)
    with pytest.raises(RuntimeError, match="callback 1"):
        cache.observe_all([at(C, "x"), C, claim("d", version="11"), at(C, "y")])
    assert seen.versions == ["10", "11"]
    assert len(told.errors) == 2
    cache._check()
    cache.observe(at(C, 12))
    assert seen.versions == ["10", "11", "12"]


def test_failed_handler_with_a_callback_that_raises() -> None:
    """A handler's exception goes to an error callback and stops nothing, whatever that does."""
    told, seen = Told(), Seen()
    cache = AssumeCache(ResourceClaim, told)

    def fail(event: Event) -> None:
        raise ValueError("handler")

    cache.add_handler(fail)
    cache.add_handler(seen)
    for version in (10, 11):
        with pytest.raises(RuntimeError, match="callback"):
            cache.observe(at(C, version))
    assert seen.versions == ["10", "11"]
    assert [type(error) for error in told.errors] == [HandlerFailedError] * 2


def test_events_of_a_handler_are_delivered_although_another_raises() -> None:
    """Events that a handler causes follow the current one, also past an exception."""
    told, seen = Told(), Seen()
    cache = AssumeCache(ResourceClaim, told)

    def react(event: Event) -> None:
        if event.old is None:
            cache.assume(at(C, 11))
            raise ValueError("handler")

    cache.add_handler(react)
    cache.add_handler(seen)
    with pytest.raises(RuntimeError, match="callback 1"):
        cache.observe(C)
    assert seen.versions == ["10", "11"]


def test_error_callback_that_changes_the_cache() -> None:
    """The error callback may call in, and what it causes is delivered in order."""
    seen = Seen()
    cache: AssumeCache[ResourceClaim]

    def repair(error: DraError) -> None:
        if isinstance(error, UnreadableVersionError):
            cache.observe(at(C, 11))

    cache = AssumeCache(ResourceClaim, repair)
    cache.add_handler(seen)
    cache.observe_all([at(C, "x"), claim("d", version="5")])
    assert seen.versions == ["5", "11"]
    cache._check()


def test_handler_that_removes_itself() -> None:
    """Whoever unsubscribes in a call sees nothing more; the others see everything."""
    seen, calls = Seen(), list[Event]()
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    cancels: list[Callable[[], None]] = []

    def once(event: Event) -> None:
        calls.append(event)
        cancels[0]()
        cancels[0]()

    cancels.append(cache.add_handler(once))
    cache.add_handler(seen)
    with cache.atomic():
        cache.observe(C)
        cache.observe(at(C, 11))
    assert len(calls) == 1
    assert seen.versions == ["10", "11"]


def test_handlers_that_remove_each_other() -> None:
    """Of two that unsubscribe each other the first one wins, and nothing breaks."""
    calls: list[int] = []
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    cancels: list[Callable[[], None]] = []

    def handler(number: int) -> Callable[[Event], None]:
        def call(event: Event) -> None:
            calls.append(number)
            cancels[1 - number]()

        return call

    for number in (0, 1):
        cancels.append(cache.add_handler(handler(number)))
    cache.observe(C)
    cache.observe(at(C, 11))
    assert calls == [0, 0]


def test_handler_added_for_every_event() -> None:
    """Handlers that add handlers: each sees the store as it is then, and what follows."""
    cache = AssumeCache(ResourceClaim, list[DraError]().append)
    added: list[Seen] = []

    def add(event: Event) -> None:
        added.append(Seen())
        cache.add_handler(added[-1])

    cache.add_handler(add)
    for version in (10, 11, 12):
        cache.observe(at(C, version))
    assert [seen.versions for seen in added] == [["10", "11", "12"], ["11", "12"], ["12"]]


# --- functions of the caller that raise or change their mind


def raising(*objects: ResourceClaim) -> Iterator[ResourceClaim]:
    """A list that ends in an error."""
    yield from objects
    raise OSError("connection lost")


def marked(found: ResourceClaim) -> tuple[str, ...]:
    """An index that one claim is too much for."""
    if found.name == "bad":
        raise LookupError("index")
    return (found.name,)


def test_list_that_breaks_off_is_not_observed() -> None:
    """observe_all is one atomic step: half a list changes nothing, and deletes nothing."""
    seen = Seen()
    cache = AssumeCache(ResourceClaim, list[DraError]().append, index=marked)
    cache.add_handler(seen)
    cache.observe(C)
    with pytest.raises(OSError, match="lost"):
        cache.observe_all(raising(claim("d", version="11"), at(C, 12)), "12")
    with pytest.raises(LookupError):
        cache.observe_all([claim("d", version="11"), at(C, 12), claim("bad")], "12")
    assert cache.list() == (C,)
    assert seen.versions == ["10"]
    cache._check()


def test_index_function_that_changes_its_mind() -> None:
    """Whatever it says later, an object is where it was put, and leaves that place."""
    answers = [["a", "a"], ["b"], ["c"], ["d"]]
    cache = AssumeCache(ResourceClaim, list[DraError]().append, index=lambda found: answers.pop(0))
    cache.observe(C)
    cache.assume(at(C, 11))
    assert (cache.list("a"), cache.list("b")) == ((), (at(C, 11),))
    cache.restore(key("c"))
    cache.observe_delete(C)
    assert cache.list() == cache.list("a") == cache.list("b") == cache.list("c") == ()
    assert cache._groups == {}


def test_devices_are_not_lost_if_restoring_fails() -> None:
    """An error of the index function on the last release leaves the entry to its user."""
    broken: list[bool] = []

    def index(found: ResourceClaim) -> tuple[str, ...]:
        if broken:
            raise LookupError("index")
        return (found.name,)

    t = Tracked()
    t.cache._index = index
    t.cache.observe(C)
    t.tracker.start([with_devices(C, D1)], "p1")
    t.cache.assume(finalized(C, 11))
    broken.append(True)
    with pytest.raises(LookupError):
        t.tracker.release("c-uid", "p1")
    broken.clear()
    pending = t.tracker.pending("c-uid")
    assert pending is not None
    assert pending.users == ("p1",)
    assert t.in_use() == {D1}
    t.tracker.release("c-uid", "p1")
    assert t.in_use() == set()


# --- names, UIDs, versions


def test_claims_without_uid_are_not_taken_in_flight() -> None:
    """Two claims without UID are two claims: neither is taken for the other's."""
    t = Tracked()
    for name, session in (("a", None), ("b", "gang"), ("c", "gang")):
        with pytest.raises(NoUidError) as caught:
            t.tracker.start([claim(name, D1, uid="")], "p1", session=session)
        assert caught.value.claim == f"team-a/{name}"
    assert t.tracker.in_flight() == ()
    assert t.in_use() == set()


def test_all_or_none_with_a_claim_without_uid() -> None:
    """Nothing of the others stays taken."""
    t = Tracked()
    with pytest.raises(NoUidError):
        t.tracker.start([claim("a", D1), claim("b", D2, uid="")], "p1")
    assert t.in_use() == set()


def test_created_claim_without_uid_is_ignored() -> None:
    """An answer that does not say which claim it is changes nothing."""
    t = Tracked()
    t.tracker.start([claim("a", D1, uid="made-up")], "p1")
    t.tracker.created("made-up", claim("a", uid=""))
    assert t.tracker.pending("") is None
    assert t.tracker.pending("made-up") is not None
    assert t.in_use() == {D1}


def test_cached_claims_without_uid_count() -> None:
    """What the informer shows is in use, also without UIDs; each by itself."""
    t = Tracked()
    t.cache.observe(claim("a", D1, uid=""))
    t.cache.observe(claim("b", D2, uid=""))
    assert t.in_use() == {D1, D2}
    t.cache.observe_delete(claim("a", uid=""))
    assert t.in_use() == {D2}


@pytest.mark.parametrize("name", ["é", "名前", "a/b", " ", "..", "x" * 10_000])
def test_names_are_only_compared(name: str) -> None:
    """No name is read as anything else."""
    t = Tracked()
    odd = claim(name, D1, namespace=name)
    t.cache.observe(odd)
    t.cache.observe(claim(name, namespace=f"{name}/{name}"))
    assert t.cache.get(key(name, name)) == odd
    assert len(t.cache.list()) == 2
    assert t.in_use() == {D1}


def test_huge_versions() -> None:
    """Versions of any length are compared as numbers, and cut in texts."""
    t = Tracked()
    t.cache.observe(at(C, HUGE))
    t.cache.observe(at(C, HUGE[:-1]))
    with pytest.raises(VersionTooOldError) as caught:
        t.cache.assume(at(C, HUGE[:-1]))
    assert len(str(caught.value)) < 400
    t.tracker.start([with_devices(at(C, HUGE), D1)], "p1")
    t.tracker.succeeded("c-uid", with_devices(at(C, f"1{HUGE}"), D1))
    assert t.tracker.in_flight() == ()
    assert t.in_use() == {D1}


@pytest.mark.parametrize("version", ["", " 1", "+1", "-1", "1.0", "1_0", "0x1", "١", "²", "1\n"])
def test_unreadable_versions(version: str) -> None:
    """A version that cannot be read is reported and dropped, and nothing else changes."""
    t = Tracked()
    t.cache.observe(C)
    t.cache.observe(with_devices(at(C, version), D1))
    assert [type(error) for error in t.errors] == [UnreadableVersionError]
    assert t.cache.list() == (C,)
    assert t.in_use() == set()


@attrs.frozen
class Bare:
    """Something with metadata that is no claim."""

    metadata: ObjectMeta


@pytest.mark.parametrize("odd", [None, "claim", 7, object(), Bare(ObjectMeta("c", "team-a"))])
def test_other_types(odd: object) -> None:
    """Anything else is reported by observe, refused by the rest, and changes nothing."""
    t = Tracked()
    t.cache.observe(C)
    t.cache.observe(odd)  # type: ignore[arg-type]
    t.cache.observe_delete(odd)  # type: ignore[arg-type]
    assert len(t.errors) == 2
    for call in (t.cache.assume, t.cache.add_hypothetical):
        with pytest.raises(TypeError):
            call(odd)  # type: ignore[arg-type]
    assert t.cache.list() == (C,)
