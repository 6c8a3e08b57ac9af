"""Faults that other schedulers had with state kept between calls of the allocator.

What may live here: one test per entry of section C of the list of known faults that is
about the allocator. ``k/k`` is kubernetes/kubernetes.
"""

import sys
import threading
from collections.abc import Iterator

import pytest

from dra_core.allocator.allocation import Allocator
from dra_core.api.core import Node, ObjectMeta
from dra_core.inventory.index import Inventory
from support.allocation_builders import (
    CLASSES,
    claim,
    device,
    distinct,
    exactly,
    granted,
    pool_slice,
)

NODES = ("node-1", "node-2")
SLICES = [
    pool_slice(
        node,
        *(device(f"{node}-{i}", {"slot": i // 2}) for i in range(8)),
        pool=node,
        node=node,
    )
    for node in NODES
]
CLAIMS = [
    claim(exactly("two", 2), constraints=(distinct("slot"),), name="a"),
    claim(exactly("one"), name="b"),
]


@pytest.fixture(autouse=True)
def switch_often() -> Iterator[None]:
    """Threads take turns a hundred times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


def test_bug_61_per_call_state_kept_on_the_allocator() -> None:
    """k/k#133587: two threads allocate for node-1 and node-2 on one allocator, and the claims
    do not mix: each gets what it gets alone."""

    def ask(allocator: Allocator, node: str) -> list[list[str]]:
        return granted(allocator.allocate(CLAIMS, Node(ObjectMeta(node))))

    shares = iter(range(1_000_000))
    alone = {
        node: ask(Allocator(Inventory(SLICES), CLASSES, share_ids=lambda: "s"), node)
        for node in NODES
    }
    assert alone["node-1"] == [["node-1-0", "node-1-2"], ["node-1-1"]]
    both = Allocator(Inventory(SLICES), CLASSES, share_ids=lambda: str(next(shares)))
    found: dict[str, list[list[list[str]]]] = {node: [] for node in NODES}

    def work(node: str) -> None:
        found[node].extend(ask(both, node) for _ in range(100))

    threads = [threading.Thread(target=work, args=(node,)) for node in NODES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == {node: [alone[node]] * 100 for node in NODES}
