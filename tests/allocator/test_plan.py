"""Plans: what the claims' own faults are, and when they are raised."""

import pickle

import attrs
import pytest

from dra_core.allocator.plan import CheckLimit, ExpandAll
from dra_core.allocator.results import Allocated, Unsatisfiable
from dra_core.api.core import ObjectMeta
from dra_core.api.objects import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
)
from dra_core.errors import (
    AllocationError,
    DeviceClassNotFoundError,
    FeatureDisabledError,
    InvalidCountError,
    MissingClassNameError,
    TooManyDevicesError,
    UnknownAllocationModeError,
    UnknownConstraintError,
    UnknownRequestError,
    UnknownSelectorError,
)
from support.allocation_builders import (
    CLASSES,
    claim,
    devices,
    everything,
    exactly,
    first,
    granted,
    pool_slice,
    problem,
    sub,
)
from support.allocator import allocate, allocator_for

SLICE = pool_slice("s", *devices(4))

ODD_CLASS = DeviceClass(ObjectMeta(name="odd"), (DeviceSelector("true"), DeviceSelector(None)))


@pytest.mark.parametrize(
    ("request_", "off", "expected"),
    [
        (first("r", sub("s")), ["PrioritizedList"],
         FeatureDisabledError("default/claim-0", "r", "PrioritizedList", "firstAvailable")),
        (exactly("r", capacity={}), ["ConsumableCapacity"],
         FeatureDisabledError("default/claim-0", "r", "ConsumableCapacity", "capacity")),
        (first("r", sub("s", capacity={})), ["ConsumableCapacity"],
         FeatureDisabledError("default/claim-0", "r/s", "ConsumableCapacity", "capacity")),
        (exactly("r", admin_access=False), ["AdminAccess"],
         FeatureDisabledError("default/claim-0", "r", "AdminAccess", "adminAccess")),
        (DeviceRequest("r", ExactDeviceRequest("class-a", (DeviceSelector(None),))), [],
         UnknownSelectorError("default/claim-0", "r", "", 0)),
        (exactly("r", of="odd"), [], UnknownSelectorError("default/claim-0", "r", "odd", 1)),
        (exactly("r", of=""), [], MissingClassNameError("default/claim-0", "r")),
        (exactly("r", of="nil"), [], DeviceClassNotFoundError("default/claim-0", "r", "nil")),
        (exactly("r", allocation_mode="Some"), [],
         UnknownAllocationModeError("default/claim-0", "r", "Some")),
        (exactly("r", -1), [], InvalidCountError("default/claim-0", "r", -1)),
        (DeviceRequest("r"), [], UnknownRequestError("default/claim-0", "r")),
        (exactly("r", 33), [], TooManyDevicesError("default/claim-0", "", 33, 32)),
        (first("r", sub("s", 40), sub("t", 34)), [],
         TooManyDevicesError("default/claim-0", "", 34, 32)),
    ],
)  # fmt: skip
def test_faults(request_: DeviceRequest, off: list[str], expected: AllocationError) -> None:
    """Each fault is an error of its type with its facts, known without a node."""
    one = problem(claim(request_), SLICE, off=off, classes=[*CLASSES, ODD_CLASS])
    with pytest.raises(type(expected)) as caught:
        allocate(one)
    facts = attrs.asdict(expected, recurse=False)
    assert {name: getattr(caught.value, name) for name in facts} == facts
    assert str(caught.value) == str(expected)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(expected)
    known = allocator_for(one).plan(one.claims).error
    assert type(known) is type(expected)


def test_unknown_constraint() -> None:
    """A constraint of no known kind is an error, after those of the requests."""
    one = claim(exactly("r"), constraints=(DeviceConstraint(),))
    with pytest.raises(UnknownConstraintError, match="constraint #0"):
        allocate(problem(one, SLICE))
    worse = claim(exactly("r", of="nil"), constraints=(DeviceConstraint(),))
    with pytest.raises(DeviceClassNotFoundError):
        allocate(problem(worse, SLICE))


def test_the_first_finding_ends_the_checks() -> None:
    """A pool in doubt under mode All comes before a later request's fault."""
    one = problem(
        claim(everything("all"), exactly("r", of="nil")), pool_slice("s", *devices(1), count=2)
    )
    outcome = allocate(one)
    assert isinstance(outcome, Unsatisfiable)
    assert outcome.reason == "incomplete-pool"
    plan = allocator_for(one).plan(one.claims)
    assert [type(check) for check in plan.checks] == [ExpandAll, DeviceClassNotFoundError]
    assert isinstance(plan.error, DeviceClassNotFoundError)
    with pytest.raises(DeviceClassNotFoundError):
        allocate(problem(one.claims, SLICE))


def test_limit_with_mode_all_needs_a_node() -> None:
    """What "all" is decides whether the claim asks for too much."""
    asked = claim(everything("all"), exactly("r", 30))
    plan = allocator_for(problem(asked, SLICE)).plan([asked])
    assert [type(check) for check in plan.checks] == [ExpandAll, CheckLimit]
    with pytest.raises(TooManyDevicesError, match="34"):
        allocate(problem(asked, SLICE))


def test_plan_for_many_nodes() -> None:
    """One plan serves every node, and calls with claims give the same."""
    one = problem(claim(exactly("r", 2)), SLICE)
    allocator = allocator_for(one)
    plan = allocator.plan(one.claims)
    assert plan.error is None
    outcome = allocator.allocate(plan, one.node)
    assert isinstance(outcome, Allocated)
    assert outcome == allocator.allocate(one.claims, one.node)


def test_nothing_asked_nothing_given() -> None:
    """A count of 0, a claim without requests, and no claim at all are allocated."""
    assert granted(allocate(problem(claim(exactly("r", 0)), SLICE))) == [[]]
    assert granted(allocate(problem(claim(), SLICE))) == [[]]
    assert granted(allocate(problem([], SLICE))) == []
    assert granted(allocate(problem(claim(exactly("r", None)), SLICE))) == [["d1"]]
