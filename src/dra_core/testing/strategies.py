"""Hypothesis strategies for small allocation problems, for this library and embedders.

What may live here: the demand side (classes, claims), and ``problems``, which puts
supply and demand together. A problem is about a few aspects at a time: each example
stays small enough to read and for the brute-force twin, and every pair of aspects is
met often.
"""

from typing import Final

import attrs
from hypothesis import strategies as st

from dra_core.api.core import Node, ObjectMeta
from dra_core.api.objects import (
    ALLOCATION_MODE_ALL,
    ALLOCATION_MODE_EXACT_COUNT,
    CapacityRequirements,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceClassConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaim,
)
from dra_core.features import Features
from dra_core.testing.problem import Problem
from dra_core.testing.rules import NODE_OPERATIONS_FEATURE
from dra_core.testing.selector_family import BROKEN, FAILING, GPU, NIC, SAFE, WANTED
from dra_core.testing.supply_strategies import (
    NODE,
    ROOT,
    ZONE,
    ZONE_LABEL,
    Chooser,
    allocated,
    amount,
    slices,
)

ASPECTS: Final = (
    "constraints",
    "in-use",
    "alternatives",
    "all-mode",
    "counters",
    "sharing",
    "lists",
    "admin",
    "taints",
    "pools",
    "network",
    "per-device",
    "selectors",
    "broken-pools",
    "binding",
    "features",
    "limit",
    "operations",
    "errors",
    "contested",
)
"""What a problem can be about. "contested": a late request wants what an early one takes."""

THEMES: Final = (
    "alternatives constraints",
    "lists constraints",
    "lists constraints alternatives",
    "all-mode constraints admin",
    "admin in-use counters",
    "counters in-use sharing",
    "counters alternatives",
    "sharing in-use",
    "sharing all-mode",
    "sharing alternatives in-use",
    "taints alternatives",
    "pools constraints",
    "pools binding network",
    "per-device counters in-use",
    "selectors alternatives",
    "broken-pools all-mode",
    "broken-pools counters",
    "features",
    "limit alternatives",
    "operations in-use",
    "errors",
)
"""Aspects that meet in some rule, and so are worth meeting often."""

_ASPECTS_OF_FEATURES: Final = {
    "AdminAccess": "admin",
    "ConsumableCapacity": "sharing",
    "DeviceBindingAndStatus": "binding",
    "DeviceTaints": "taints",
    "ListTypeAttributes": "lists",
    "OptionalNodeOperations": "operations",
    "PartitionableDevices": "counters",
    "PrioritizedList": "alternatives",
}

MAX_PICKS: Final = 5
"""Devices asked for at most, so that trying everything stays possible."""


@st.composite
def problems(
    draw: st.DrawFn,
    always: frozenset[str] = frozenset(),
    never: frozenset[str] = frozenset(),
) -> Problem:
    """A small problem: some 8 devices for up to 3 claims with up to 4 requests.

    It is about a few aspects: those in ``always``, or else one of the themes, and up to
    two more; never about those in ``never``.
    """
    theme = always or aspects_of(*draw(st.sampled_from(THEMES)).split())
    others = [aspect for aspect in ASPECTS if aspect not in theme | never]
    aspects = theme | draw(st.sets(st.sampled_from(others), max_size=2))
    aspects |= draw(st.sampled_from((frozenset(), frozenset(), aspects_of("contested"))))
    features = _features(Chooser(draw, aspects))
    off = {_ASPECTS_OF_FEATURES[gate] for gate, on in features.gates().items() if not on}
    # What is switched off is there all the same, and sometimes asked for, too.
    supply = Chooser(draw, (aspects | off) - never)
    demand = supply if supply.rarely() else Chooser(draw, aspects - off - never)
    made = slices(supply)
    in_use = allocated(supply, made)
    return Problem(_claims(demand), made, _classes(demand), _node(supply), in_use, features)


def aspects_of(*names: str) -> frozenset[str]:
    """The aspects by name. Raises ValueError for one that does not exist."""
    unknown = sorted(set(names) - set(ASPECTS))
    if unknown:
        raise ValueError(f"no aspects: {unknown}")
    return frozenset(names)


def _node(c: Chooser) -> Node:
    declared = (NODE_OPERATIONS_FEATURE,) if c.now_and_then("operations", 2) else ()
    return Node(ObjectMeta(name=NODE, labels={ZONE_LABEL: ZONE}), declared_features=declared)


def _features(c: Chooser) -> Features:
    if not c.has("features"):
        return Features()
    gates = list(Features().gates())
    off = c.draw(st.lists(st.sampled_from(gates), min_size=1, max_size=2, unique=True))
    return Features.from_gates(dict.fromkeys(off, False))


_ONLY_MODEL_A: Final = f'device.attributes["{GPU}"].?model.orValue("") == "a"'

# --- classes -------------------------------------------------------------------------------


def _classes(c: Chooser) -> tuple[DeviceClass, ...]:
    picky = DeviceSelector(c.one_of(*SAFE) if c.has("selectors") else _ONLY_MODEL_A)
    return (
        DeviceClass(ObjectMeta(name="any")),
        DeviceClass(
            ObjectMeta(name="gpu"),
            (DeviceSelector(f'device.driver == "{GPU}"'),),
            (_class_config("x"),),
        ),
        DeviceClass(ObjectMeta(name="picky"), (picky,), (_class_config("y"), _class_config("z"))),
    )


def _class_config(kind: str) -> DeviceClassConfiguration:
    return DeviceClassConfiguration(OpaqueDeviceConfiguration(GPU, {"kind": kind}))


def _class_name(c: Chooser, position: int) -> str:
    """Later requests are often the choosier ones, so that first come is not best served."""
    if c.now_and_then("errors", 12):
        return c.one_of("no-such-class", "")
    if position == 0:
        return c.one_of("any", "any", "picky", "gpu")
    return c.one_of("any", "picky", "gpu")


def _selectors(c: Chooser) -> tuple[DeviceSelector, ...]:
    if c.now_and_then("errors", 8):
        return (c.one_of(*map(DeviceSelector, BROKEN), DeviceSelector()),)
    if not c.has("selectors"):
        return ()
    texts = c.draw(st.lists(st.sampled_from([*SAFE, *FAILING]), max_size=2))
    return tuple(DeviceSelector(text) for text in texts)


# --- claims --------------------------------------------------------------------------------


def _claims(c: Chooser) -> tuple[ResourceClaim, ...]:
    if c.has("limit") and c.mostly():
        return (_claim_at_the_limit(c),)
    left = MAX_PICKS - 2 * c.has("contested")
    claims: list[ResourceClaim] = []
    for index in range(c.one_of(1, 1, 1, 2, 1, 3)):
        requests: list[DeviceRequest] = []
        for number in range(c.one_of(2, 1, 2, 3, 1, 2, 4) if index == 0 else c.one_of(1, 1, 2)):
            count = min(c.one_of(1, 2, 1, 2, 1, 3), left)
            left -= count
            requests.append(_request(c, index + number, f"r{number}", count))
            if not left:
                break
        claims.append(_claim(c, index, tuple(requests)))
        if not left:
            break
    if c.has("contested"):
        claims[-1] = _with_request(claims[-1], _contested_request(c))
    return tuple(claims)


def _contested_request(c: Chooser) -> DeviceRequest:
    sub = _sub(c, 0, "", 1)
    selectors = (DeviceSelector(WANTED),)
    return DeviceRequest("wanted", ExactDeviceRequest("any", selectors, capacity=sub.capacity))


def _with_request(claim: ResourceClaim, request: DeviceRequest) -> ResourceClaim:
    requests = (*claim.devices.requests, request)
    return attrs.evolve(claim, devices=attrs.evolve(claim.devices, requests=requests))


def _claim_at_the_limit(c: Chooser) -> ResourceClaim:
    """A claim whose first alternative may be too much, given what came before."""
    before = _request(c, 0, "r0", c.one_of(1, 2, 3))
    after = _request(c, 1, "r2", 1) if c.one_of(False, True) else None
    large = _sub(c, 0, "s0", c.one_of(30, 31, 29, 32))
    small = _sub(c, 0, "s1", c.one_of(1, 2))
    requests = (before, DeviceRequest("r1", first_available=(large, small)), after)
    return _claim(c, 0, tuple(one for one in requests if one is not None))


def _claim(c: Chooser, index: int, requests: tuple[DeviceRequest, ...]) -> ResourceClaim:
    names = [name for request in requests for name in _names(request)]
    config = tuple(
        DeviceClaimConfiguration(
            tuple(c.some_of(names)), OpaqueDeviceConfiguration(GPU, {"kind": f"claim-{number}"})
        )
        for number in range(c.one_of(0, 1, 2))
    )
    return ResourceClaim(
        ObjectMeta(name=f"claim-{index}", namespace="default", uid=f"uid-{index}"),
        DeviceClaim(requests, _constraints(c, names), config),
    )


def _names(request: DeviceRequest) -> list[str]:
    return [request.name, *(f"{request.name}/{sub.name}" for sub in request.first_available)]


def _constraints(c: Chooser, names: list[str]) -> tuple[DeviceConstraint, ...]:
    if not c.has("constraints"):
        return ()
    made = []
    for _ in range(c.one_of(1, 2)):
        attribute = c.one_of(f"{GPU}/numa", ROOT, f"{GPU}/model", ROOT, f"{GPU}/numa")
        if c.has("lists") and c.mostly():
            attribute = f"{GPU}/numa"
        if c.now_and_then("pools", 6):
            attribute = f"{NIC}/numa"
        about = tuple(c.some_of(names)) if c.one_of(False, True) else ()
        if c.has("alternatives") and c.one_of(False, True):
            about = (c.one_of(*names),)
        if c.now_and_then("errors", 8):
            made.append(DeviceConstraint(about))
        elif c.one_of(True, False):
            made.append(DeviceConstraint(about, match_attribute=attribute))
        else:
            made.append(DeviceConstraint(about, distinct_attribute=attribute))
    return tuple(made)


# --- requests ------------------------------------------------------------------------------


def _request(c: Chooser, position: int, name: str, count: int) -> DeviceRequest:
    if c.now_and_then("alternatives", 2):
        first = _sub(c, position, "s0", count)
        others = [
            _sub(c, position, f"s{n}", c.one_of(1, 2, 0)) for n in range(1, c.one_of(2, 3, 1))
        ]
        return DeviceRequest(name, first_available=(first, *others))
    if c.now_and_then("errors", 12):
        return DeviceRequest(name)
    admin = c.one_of(True, None, False) if c.has("admin") else None
    sub = _sub(c, position, "", count)
    exactly = ExactDeviceRequest(
        sub.device_class_name,
        sub.selectors,
        sub.allocation_mode,
        sub.count,
        admin,
        sub.tolerations,
        sub.capacity,
    )
    return DeviceRequest(name, exactly)


def _sub(c: Chooser, position: int, name: str, count: int) -> DeviceSubRequest:
    everything = c.now_and_then("all-mode", 2)
    return DeviceSubRequest(
        name=name,
        device_class_name=_class_name(c, position),
        selectors=_selectors(c),
        allocation_mode=ALLOCATION_MODE_ALL if everything else _mode(c),
        count=None if everything else _count(c, count),
        tolerations=_tolerations(c),
        capacity=_capacity_request(c),
    )


def _mode(c: Chooser) -> str:
    if c.now_and_then("errors", 12):
        return "Some"
    return c.one_of(ALLOCATION_MODE_EXACT_COUNT, "")


def _count(c: Chooser, count: int) -> int | None:
    if c.now_and_then("limit", 12):
        return 33
    if count == 1 and c.one_of(False, True):
        return None
    return count


def _tolerations(c: Chooser) -> tuple[DeviceToleration, ...]:
    if not (c.has("taints") and c.mostly()):
        return ()
    made = []
    for _ in range(c.one_of(1, 2)):
        toleration = DeviceToleration(
            key=c.one_of("k", "", "l"),
            operator=c.one_of("Exists", "Equal", "", "Like"),
            value=c.one_of("v", ""),
            effect=c.one_of("", "", "NoSchedule", "NoExecute"),
        )
        made.append(toleration)
    return tuple(made)


def _capacity_request(c: Chooser) -> CapacityRequirements | None:
    if not c.now_and_then("sharing", 2):
        return None
    requests = {"memory": amount(c.one_of("1", "2", "3", "2500m", "5"))}
    if c.one_of(False, True):
        requests["slots"] = amount(c.one_of("1", "2"))
    if c.one_of(False, False, True):
        requests = {"bytes": amount(c.one_of("1200", "500", "1k", "2k", "2Ki", "3.5k"))}
    return CapacityRequirements(c.one_of(requests, requests, {}))


# --- variations of one problem -------------------------------------------------------------


@st.composite
def reordered(draw: st.DrawFn, problem: Problem) -> Problem:
    """The same problem with its slices and classes given in another order."""
    return attrs.evolve(
        problem,
        slices=tuple(draw(st.permutations(problem.slices))),
        classes=tuple(draw(st.permutations(problem.classes))),
    )
