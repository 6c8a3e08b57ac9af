"""Watching the API server double: what is shown, when, and to whom."""

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.request import Target
from dra_core.testing.api_server import ApiServer
from dra_core.testing.faults import random_delay
from dra_core.testing.server_answers import RefusedError
from dra_core.testing.watch import Informer, Watch, WatchEvent

Json = dict[str, Any]

PODS = Target("", "v1", "pods", "team-a")
ALL_PODS = Target("", "v1", "pods")
NODES = Target("", "v1", "nodes")


def pod(name: str, label: str = "") -> Json:
    """A pod to be created."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": label}},
        "spec": {},
    }


def at(name: str) -> Target:
    """One pod."""
    return attrs.evolve(PODS, name=name)


def create(server: ApiServer, name: str, label: str = "") -> None:
    assert server.send(PODS.create(pod(name, label))).status == 201


def label(server: ApiServer, name: str, value: str) -> None:
    assert server.send(at(name).merge_patch({"metadata": {"labels": {"app": value}}})).status == 200


def shown(events: list[WatchEvent]) -> list[tuple[str, str]]:
    """Types and names."""
    return [(event.type, event.object["metadata"]["name"]) for event in events]


def test_changes_in_order() -> None:
    """Additions, changes and deletions, each once, with the object as it was then."""
    server = ApiServer()
    watch = Watch(server, PODS, server.version)
    assert watch.poll() == []
    create(server, "a")
    label(server, "a", "x")
    server.send(at("a").delete())
    events = watch.poll()
    assert shown(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    versions = [event.object["metadata"]["resourceVersion"] for event in events]
    assert versions == ["101", "102", "103"]
    assert watch.poll() == []
    assert watch.version == server.version == 103


def test_only_what_is_watched() -> None:
    """Other kinds, other namespaces and what is not selected are not shown."""
    server = ApiServer()
    everywhere = Watch(server, ALL_PODS, server.version)
    here = Watch(server, PODS, server.version)
    elsewhere = attrs.evolve(PODS, namespace="team-b")
    create(server, "a")
    server.send(elsewhere.create(pod("b")))
    server.send(NODES.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
    assert shown(everywhere.poll()) == [("ADDED", "a"), ("ADDED", "b")]
    assert shown(here.poll()) == [("ADDED", "a")]
    assert here.version == server.version
    with pytest.raises(RefusedError):
        Watch(server, attrs.evolve(PODS, resource="tables"))


def test_selection_of_changing_objects() -> None:
    """What becomes selected was added, what ceases to be was deleted."""
    server = ApiServer()
    watch = Watch(
        server, PODS, server.version, selects=lambda obj: obj["metadata"]["labels"]["app"] == "x"
    )
    create(server, "a", "y")
    for value in ("x", "z"):
        label(server, "a", value)
    server.send(at("a").delete())
    assert shown(watch.poll()) == [("ADDED", "a"), ("DELETED", "a")]


def test_initial_state() -> None:
    """Without a version, what there is comes first, as added; then what changes."""
    server = ApiServer()
    for name in "abc":
        create(server, name)
    watch = Watch(server, PODS)
    label(server, "a", "x")
    assert shown(watch.poll(2)) == [("ADDED", "a"), ("ADDED", "b")]
    assert shown(watch.poll()) == [("ADDED", "c"), ("MODIFIED", "a")]


def test_events_are_copies() -> None:
    """A watcher can do with an object what it likes."""
    server = ApiServer()
    watches = [Watch(server, PODS, server.version) for _ in range(2)]
    create(server, "a")
    (first,) = watches[0].poll()
    first.object.clear()
    assert shown(watches[1].poll()) == [("ADDED", "a")]
    assert len(server.objects("pods")) == 1


def test_a_few_at_a_time() -> None:
    """A poll shows no more than it is asked for, and the next goes on there."""
    server = ApiServer()
    watch = Watch(server, PODS, server.version)
    for name in "abc":
        create(server, name)
    assert [shown(watch.poll(1)) for _ in range(4)] == [
        [("ADDED", "a")], [("ADDED", "b")], [("ADDED", "c")], [],
    ]  # fmt: skip


def test_delay() -> None:
    """A change is held back for as many polls as its delay says, and what follows, too."""
    server = ApiServer()
    delays = iter([2, 0, 1])
    watch = Watch(server, PODS, server.version, delay=lambda: next(delays))
    for name in "abc":
        create(server, name)
    assert [shown(watch.poll()) for _ in range(5)] == [
        [], [], [("ADDED", "a"), ("ADDED", "b")], [("ADDED", "c")], [],
    ]  # fmt: skip


def test_forgotten_changes() -> None:
    """A watch from before what the server remembers is told so; one that is up to date goes on."""
    server = ApiServer()
    late, current = (Watch(server, PODS, server.version) for _ in range(2))
    create(server, "a")
    current.poll()
    server.restart()
    create(server, "b")
    assert shown(current.poll()) == [("ADDED", "b")]
    with pytest.raises(RefusedError) as raised:
        late.poll()
    assert raised.value.code == 410


class Store:
    """Keeps what an informer tells, and how."""

    def __init__(self) -> None:
        self.objects: dict[str, str] = {}
        self.lists: list[str | None] = []

    def observe(self, obj: Json) -> None:
        self.objects[obj["metadata"]["name"]] = obj["metadata"]["resourceVersion"]

    def observe_delete(self, obj: Json) -> None:
        del self.objects[obj["metadata"]["name"]]

    def observe_all(self, objects: Iterable[Json], version: str | None = None) -> None:
        self.objects.clear()
        self.lists.append(version)
        for obj in objects:
            self.observe(obj)


def plain(obj: Json) -> Json:
    return obj


def truth(server: ApiServer) -> dict[str, str]:
    """What a store should hold."""
    return {
        obj["metadata"]["name"]: obj["metadata"]["resourceVersion"]
        for obj in server.objects("pods")
    }


def test_informer() -> None:
    """It lists, then shows as many changes as it is told to."""
    server, store = ApiServer(), Store()
    create(server, "a")
    informer = Informer(server, ALL_PODS, plain, store)
    assert (store.objects, store.lists) == ({"a": "101"}, ["101"])
    create(server, "b")
    server.send(at("a").delete())
    assert informer.show(1) == 1
    assert store.objects == {"a": "101", "b": "102"}
    assert (informer.show(), informer.show()) == (1, 0)
    assert store.objects == truth(server) == {"b": "102"}
    assert informer.version == 103


def test_informer_lists_anew() -> None:
    """After changes were forgotten that it had not shown, it lists again."""
    server, store = ApiServer(), Store()
    informer = Informer(server, ALL_PODS, plain, store)
    create(server, "a")
    server.restart()
    assert informer.show() == 1
    assert store.objects == {"a": "101"}
    assert store.lists == ["100", "101"]


STEPS = st.lists(
    st.sampled_from(["create", "label", "delete", "show", "show one", "restart"]), max_size=12
)


@given(steps=STEPS, names=st.lists(st.sampled_from("ab"), min_size=12, max_size=12))
def test_law_informers_catch_up(steps: list[str], names: list[str]) -> None:
    """Whatever happened, and however slow it is, in the end a store holds what the server does."""
    server, store = ApiServer(), Store()
    drawn = iter(range(100))

    class Chance:
        def random(self) -> float:
            return (next(drawn, 0) * 0.37) % 1

    informer = Informer(server, ALL_PODS, plain, store, delay=random_delay(Chance(), 2))
    actions: dict[str, Callable[[str], object]] = {
        "create": lambda name: server.send(PODS.create(pod(name))),
        "label": lambda name: server.touch(at(name)),
        "delete": lambda name: server.send(at(name).delete()),
        "show": lambda name: informer.show(),
        "show one": lambda name: informer.show(1),
        "restart": lambda name: server.restart(),
    }
    for step, name in zip(steps, names, strict=False):
        actions[step](name)
    for _ in range(50):
        informer.show()
    assert store.objects == truth(server)
    assert informer.version == server.version
