"""Pods with all kinds of claims, attempted in any order while controllers act and calls fail.

After every request the site checks what must hold at every moment: no instance is allocated
twice, an allocation of a scheduler has its finalizer and a driver, one of a controller does
not look like a scheduler's, and the tracker agrees with itself.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.core import Pod
from dra_core.api.request import Target
from dra_core.scheduling.cycle import PodCycle
from dra_core.scheduling.cycle_table import CycleState
from dra_core.testing.faults import Fault, FaultyServer, script
from support import named_json as objects
from support.cycle_site import GROUP, NAMESPACE, NOW, fitting, is_in, pod
from support.named_site import CONTROLLER, VERSION, NamedSite

CLAIMS = {
    "s0": objects.claim_json("s0"),
    "s1": objects.claim_json("s1"),
    "s2": objects.claim_json("s2"),
    "d0": objects.claim_json("d0", "classic"),
    "d1": objects.claim_json("d1", "classic"),
    "i0": objects.claim_json("i0", "classic", mode="Immediate"),
}
CLASSIC = ("d0", "d1", "i0")
PODS = {
    "a": ("s0",),
    "b": ("s1", "s0"),
    "c": ("s2", "d0", "i0"),
    "d": ("d1", "s1"),
}


class Story:
    """The site, and who is bound."""

    def __init__(self, faults: list[Fault | None]) -> None:
        self.site = NamedSite(nodes=("node-1", "node-2"))
        self.site.line = FaultyServer(self.site.server, script(faults))
        self.site.seed(
            objects.class_json("gpu", "d"),
            objects.class_json("classic", CONTROLLER, structured=False),
            objects.slice_json("node-1", "node-1", "d", objects.plain("i0", "i1")),
            objects.slice_json("node-2", "node-2", "d", objects.plain("i0")),
            objects.slice_json("shared", "", "d", objects.plain("f0")),
            *CLAIMS.values(),
        )
        self.bound: dict[str, str] = {}

    def attempt(self, name: str, drops: bool) -> None:
        """One attempt to its end; ``drops``: it is given up after a node was picked."""
        if name in self.bound:
            return
        sleeping = pod(*PODS[name], name=name)
        cycle = self.site.cycle(sleeping)
        cycle.pre_enqueue()
        if not is_in(cycle, CycleState.ADMITTED):
            return
        cycle.pre_filter(NOW)
        if not is_in(cycle, CycleState.FILTERING):
            return
        for node in self.site.nodes.values():
            cycle.filter(node)
        self._go_on(cycle, sleeping, drops)

    def _go_on(self, cycle: PodCycle, sleeping: Pod, drops: bool) -> None:
        site, found = self.site, fitting(cycle)
        if not found:
            site.drive(cycle, cycle.post_filter())
            return
        cycle.score(found)
        cycle.reserve(found[0])
        if is_in(cycle, CycleState.RESERVED) and not drops:
            site.drive(cycle, cycle.pre_bind(NOW))
        if is_in(cycle, CycleState.BINDABLE):
            self.bound[sleeping.name] = found[0]
            site.drive(cycle, cycle.post_bind())
        else:
            site.drive(cycle, cycle.unreserve())

    def controller(self, _name: str, _drops: bool) -> None:
        """The controller answers all negotiations and does what it is asked for."""
        site = self.site
        for name in CLASSIC:
            claim = site.claim(name)
            if claim.deallocation_requested:
                site.deallocates(name)
        if site.claim("i0").allocation is None:
            site.allocates("i0", "node-1", shareable=True)
        for owner, claims in PODS.items():
            context = site.context(owner)
            if context is None:
                continue
            mine = [name for name in claims if name.startswith("d")]
            selected = (context.get("spec") or {}).get("selectedNode")
            for name in mine:
                claim = site.claim(name)
                if selected and claim.allocation is None and not claim.deallocation_requested:
                    site.allocates(name, selected)
            self._report(context, mine)
        site.show()

    def _report(self, context: dict[str, Any], claims: list[str]) -> None:
        """Every claim can be allocated on every node."""
        entries = [{"name": name} for name in claims]
        if (context.get("status") or {}).get("resourceClaims") == entries:
            return
        context["status"] = {"resourceClaims": entries}
        name = context["metadata"]["name"]
        target = Target(GROUP, VERSION, "podschedulingcontexts", NAMESPACE, name, "status")
        assert self.site.server.send(target.update(context)).status == 200

    def informers(self, _name: str, _drops: bool) -> None:
        """The informers catch up."""
        self.site.show()


STEPS: dict[str, Callable[[Story, str, bool], None]] = {
    "attempt": Story.attempt,
    "controller": Story.controller,
    "informers": Story.informers,
}

Step = tuple[str, str, bool]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["attempt", "attempt", "attempt", "controller", "informers"]),
            st.sampled_from(sorted(PODS)),
            st.integers(0, 4).map(lambda number: number == 0),
        ),
        max_size=15,
    ),
    st.lists(st.none() | st.none() | st.sampled_from(list(Fault)), max_size=25),
)
def test_cycles_keep_the_invariants(steps: list[Step], faults: list[Fault | None]) -> None:
    """Whatever happens, the invariants hold; with good luck afterwards nobody waits for ever."""
    story = Story(faults)
    for step, name, drops in steps:
        STEPS[step](story, name, drops)
        story.site.check()
    story.site.line = FaultyServer(story.site.server, script(()))
    for _ in range(8):
        for name in PODS:
            story.attempt(name, False)
            story.controller("", False)
    # Three instances of nodes and a shared one are enough for the three structured claims.
    assert sorted(story.bound) == sorted(PODS)
    for name, node in story.bound.items():
        for claim in map(story.site.claim, PODS[name]):
            assert claim.allocation is not None
            assert any(entry.name == name for entry in claim.reserved_for)
            assert node in str(claim.allocation.node_selector)
