"""Outcomes in plain words: what is told, and what is told first."""

import pytest

from dra_core.allocator.results import (
    Conflict,
    ConflictKind,
    Rejected,
    RejectedFor,
    RequestReport,
    StoppedBy,
    Undecided,
    Unsatisfiable,
)
from dra_core.api.names import DeviceId
from dra_core.errors import (
    ClaimNotFoundError,
    DeviceClassNotFoundError,
    SelectorEvaluationError,
    SelectorFailedError,
)
from dra_core.explanation import SHOWN_DEVICES, Cause, Names, explain, lines
from dra_core.inventory.problems import PoolFault, PoolProblem, PoolState


def devices(*names: str) -> tuple[DeviceId, ...]:
    return tuple(DeviceId("d", "p", name) for name in names)


def report(
    *rejected: Rejected, request: str = "gpu", claim: int = 0, needed: int = 1, usable: int = 0
) -> RequestReport:
    return RequestReport(claim, request, needed, usable, rejected)


def unsatisfiable(
    *reports: RequestReport,
    conflicts: tuple[Conflict, ...] = (),
    pools: tuple[PoolProblem, ...] = (),
    reason: str = "",
) -> Unsatisfiable:
    return Unsatisfiable(reason, conflicts, reports, pools, 0)


def too_few(*requests: str) -> Conflict:
    return Conflict(ConflictKind.TOO_FEW, tuple((0, name) for name in requests), needed=1)


def kinds(causes: tuple[Cause, ...]) -> list[str]:
    return [cause.kind for cause in causes]


OTHER_KIND = Rejected(RejectedFor.SELECTOR, devices("a", "b", "c"))
IN_USE = Rejected(RejectedFor.IN_USE, devices("g0"))

MISSING = PoolProblem("d", "p", PoolState.INCOMPLETE, PoolFault.MISSING_SLICES, 3, 1, 2)


# --- rejections ----------------------------------------------------------------------


def test_nearest_to_usable_is_told_first() -> None:
    """Of the devices that a request cannot have those nearest to usable come first."""
    outcome = unsatisfiable(
        report(
            OTHER_KIND,
            Rejected(RejectedFor.CAPACITY_MISSING, devices("x"), "memory"),
            IN_USE,
            Rejected(RejectedFor.CAPACITY_EXHAUSTED, devices("y"), "memory"),
        ),
        conflicts=(too_few("gpu"),),
    )
    (cause,) = explain(outcome)
    assert kinds(cause.because) == [
        "capacity-exhausted", "in-use", "capacity-missing", "selector",
    ]  # fmt: skip


def test_numbers_and_names() -> None:
    """A request is told with how many it needs, how many are usable, and names."""
    outcome = unsatisfiable(report(IN_USE, needed=2, usable=1), conflicts=(too_few("gpu"),))
    assert list(lines(explain(outcome))) == [
        "request gpu: needed 2, usable 1",
        "  1 in use: d/p/g0",
    ]


def test_many_devices_are_counted() -> None:
    """The first few devices are named, the others counted."""
    many = devices(*(f"g{n}" for n in range(SHOWN_DEVICES + 1200)))
    outcome = unsatisfiable(report(Rejected(RejectedFor.IN_USE, many)))
    (cause,) = explain(outcome)
    assert cause.because[0].text == "1,204 in use: d/p/g0, d/p/g1, d/p/g2, d/p/g3 and 1,200 more"


def test_devices_of_another_kind_are_only_counted() -> None:
    """Devices that the selectors do not choose are not named."""
    (cause,) = explain(unsatisfiable(report(IN_USE, OTHER_KIND)))
    assert cause.because[1].text == "3 not chosen by the selectors"


def test_nothing_of_the_wanted_kind() -> None:
    """A node without any device of the wanted kind is one line, whatever it has."""
    one = explain(unsatisfiable(report(OTHER_KIND), conflicts=(too_few("gpu"),)))
    other = explain(unsatisfiable(report(), conflicts=(too_few("gpu"),)))
    assert one == other == (Cause("too-few", "request gpu: the selectors choose no device"),)


def test_bug_95_features_off_are_told() -> None:
    """A device skipped because a feature is off says so (KAI-Scheduler#2100)."""
    skipped = [
        Rejected(RejectedFor.PARTITIONS_OFF, devices("m")),
        Rejected(RejectedFor.BINDING_CONDITIONS_OFF, devices("f")),
    ]
    told = "\n".join(lines(explain(unsatisfiable(report(*skipped)))))
    assert "1 skipped, needs the feature PartitionableDevices: d/p/m" in told
    assert "1 skipped, needs the feature DeviceBindingAndStatus: d/p/f" in told


def test_counters_are_one_line() -> None:
    """Devices short of different counters of a set are told together."""
    rejected = [
        Rejected(RejectedFor.COUNTERS_EXHAUSTED, devices(f"m{n}"), f"gpu-0/slice-{n}")
        for n in range(3)
    ]
    (cause,) = explain(unsatisfiable(report(*rejected)))
    assert [c.text for c in cause.because] == [
        "3 with too little of the shared counters gpu-0 left: d/p/m0, d/p/m1, d/p/m2"
    ]
    (cause,) = explain(unsatisfiable(report(rejected[0])))
    assert "gpu-0/slice-0 left: d/p/m0" in cause.because[0].text


@pytest.mark.parametrize(
    ("taint", "told"),
    [("k=v:NoSchedule", "k=v:NoSchedule"), ("k=:NoExecute", "k:NoExecute")],
)
def test_taints_are_told_as_kubectl_does(taint: str, told: str) -> None:
    """A taint is key=value:effect, or key:effect without value."""
    (cause,) = explain(unsatisfiable(report(Rejected(RejectedFor.TAINT, devices("g"), taint))))
    assert cause.because[0].text == f"1 with a taint {told} that is not tolerated: d/p/g"


@pytest.mark.parametrize("why", list(RejectedFor))
def test_every_rejection_has_words(why: RejectedFor) -> None:
    """Every check has words, with the thing in the way where there is one."""
    (cause,) = explain(unsatisfiable(report(Rejected(why, devices("g"), "DETAIL"), usable=0)))
    told = list(lines((cause,)))
    assert "{" not in "".join(told)
    if why is not RejectedFor.SELECTOR:
        assert told[1].startswith("  1 ")
        assert told[1].endswith(": d/p/g")


# --- conflicts -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(ConflictKind))
def test_every_conflict_has_words(kind: ConflictKind) -> None:
    """Every conflict has words that name the requests and the subject where it has one."""
    requests = ((0, "gpu"), (0, "nic"))
    conflict = Conflict(kind, requests, "d/SUBJECT", 2, 1)
    reports = (report(usable=1), report(request="nic", usable=1))
    (cause,) = explain(unsatisfiable(*reports, conflicts=(conflict,)))
    assert cause.kind == kind
    assert "{" not in cause.text
    if kind is ConflictKind.UNSUITABLE_NODE:
        assert "d/SUBJECT" in cause.text
    elif kind is not ConflictKind.EXHAUSTED:
        assert "requests gpu, nic: " in cause.text
        assert cause.text.endswith("(needed 2, usable 1)")
    if kind in (
        ConflictKind.MATCH_ATTRIBUTE,
        ConflictKind.DISTINCT_ATTRIBUTE,
        ConflictKind.COUNTERS,
        ConflictKind.CAPACITY,
    ):
        assert "d/SUBJECT" in cause.text


def test_joint_conflicts_tell_each_request() -> None:
    """A conflict of several requests has each of them behind it, without other kinds."""
    conflict = Conflict(ConflictKind.JOINTLY_TOO_FEW, ((0, "a"), (0, "b")), needed=3, available=2)
    outcome = unsatisfiable(
        report(IN_USE, OTHER_KIND, request="a", usable=2),
        report(OTHER_KIND, request="b", usable=2),
        report(IN_USE, request="c"),
        conflicts=(conflict,),
    )
    assert list(lines(explain(outcome))) == [
        "requests a, b: too few devices for all of them together (needed 3, usable 2)",
        "  request a: needed 1, usable 2",
        "    1 in use: d/p/g0",
        "  request b: needed 1, usable 2",
    ]


def test_more_telling_conflicts_come_first() -> None:
    """A lack of one request is told before one of several, whatever the order found."""
    conflicts = (
        Conflict(ConflictKind.COUNTERS, ((0, "a"),)),
        Conflict(ConflictKind.NO_DEVICES, ((0, "b"),)),
        Conflict(ConflictKind.MATCH_ATTRIBUTE, ((0, "c"),), "x"),
    )
    assert kinds(explain(unsatisfiable(conflicts=conflicts))) == [
        "no-devices", "match-attribute", "counters",
    ]  # fmt: skip


def test_exhausted_with_a_request_that_is_short() -> None:
    """Numbers of the request that is short say more than "all combinations were tried"."""
    outcome = unsatisfiable(report(IN_USE), conflicts=(Conflict(ConflictKind.EXHAUSTED),))
    assert next(lines(explain(outcome))) == "request gpu: needed 1, usable 0"


def test_alternatives() -> None:
    """A prioritised list is short only if every alternative is."""
    conflict = too_few("gpu/big", "gpu/small")
    both = explain(
        unsatisfiable(
            report(IN_USE, request="gpu/big"),
            report(OTHER_KIND, request="gpu/small"),
            conflicts=(conflict,),
        )
    )
    assert list(lines(both)) == [
        "request gpu: too few devices for any alternative",
        "  request gpu/big: needed 1, usable 0",
        "    1 in use: d/p/g0",
        "  request gpu/small: the selectors choose no device",
    ]
    none = explain(
        unsatisfiable(
            report(OTHER_KIND, request="gpu/big"),
            report(OTHER_KIND, request="gpu/small"),
            conflicts=(conflict,),
        )
    )
    assert list(lines(none)) == ["request gpu: the selectors choose no device"]
    one = explain(
        unsatisfiable(report(OTHER_KIND, request="gpu/big"), report(request="gpu/small", usable=1))
    )
    assert kinds(one) == ["exhausted"]


def test_all_with_nothing_chosen() -> None:
    """Mode All without any device has nothing behind it."""
    conflict = Conflict(ConflictKind.NO_DEVICES, ((0, "gpu"),))
    (cause,) = explain(unsatisfiable(report(OTHER_KIND, needed=0), conflicts=(conflict,)))
    assert cause.because == ()


def test_never_empty() -> None:
    """An outcome without any detail still has a reason."""
    assert kinds(explain(unsatisfiable())) == ["exhausted"]


# --- names ---------------------------------------------------------------------------


def test_claims_are_named_where_there_are_several() -> None:
    """A request is told with its claim only if the call has more than one."""
    outcome = unsatisfiable(
        report(claim=1), conflicts=(Conflict(ConflictKind.TOO_FEW, ((1, "gpu"),)),)
    )
    one, two = Names(("first",)), Names(("first", "second"))
    assert explain(outcome, one)[0].text.startswith("request gpu: ")
    assert explain(outcome, two)[0].text.startswith("request gpu of claim second: ")


def test_names_of_devices_and_pools_are_the_callers() -> None:
    """The caller says how devices and pools are called."""
    names = Names(device=lambda device: device.device, pool=lambda pool: f"<{pool.pool}>")
    told = list(lines(explain(unsatisfiable(report(IN_USE), pools=(MISSING,)), names)))
    assert "  1 in use: g0" in told
    assert any(line.startswith("pool <p> is incomplete") for line in told)


# --- pools ---------------------------------------------------------------------------


@pytest.mark.parametrize("fault", list(PoolFault))
def test_every_fault_of_a_pool_has_words(fault: PoolFault) -> None:
    """Every fault of a pool has words with the fact."""
    problem = PoolProblem("d", "p", PoolState.INVALID, fault, 7, 1, 2, "SUBJECT")
    (cause,) = explain(unsatisfiable(pools=(problem,)))
    assert cause.kind == fault
    assert cause.text.startswith("pool d/p is invalid: ")
    assert "SUBJECT" in cause.text or "7" in cause.text


def test_bug_42_incomplete_pool_says_how_many() -> None:
    """A pool that lacks slices says how many there are of how many (autoscaler#10199)."""
    (cause,) = explain(unsatisfiable(pools=(MISSING,)))
    assert cause.text == "pool d/p is incomplete: 1 of 2 slices of generation 3 exist"


def test_pools_come_first_where_they_are_the_reason() -> None:
    """A broken pool is told first where it decides, else after the lack of devices."""
    short = report(IN_USE)
    first = explain(unsatisfiable(short, pools=(MISSING,), reason="incomplete-pool"))
    later = explain(unsatisfiable(short, pools=(MISSING,)))
    assert kinds(first) == ["missing-slices", "too-few"]
    assert kinds(later) == ["too-few", "missing-slices"]


# --- other outcomes ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stopped_by", "text"),
    [
        (StoppedBy.BUDGET, "no verdict after 1,000 steps: the step budget is spent"),
        (StoppedBy.DEADLINE, "no verdict after 1,000 steps: the time is up"),
        (StoppedBy.CANCELLED, "no verdict after 1,000 steps: it was cancelled"),
    ],
)
def test_bug_11_undecided_is_no_verdict(stopped_by: StoppedBy, text: str) -> None:
    """Giving up is never told as "does not fit" (k/k#132033)."""
    assert explain(Undecided(stopped_by, 1000)) == (Cause(stopped_by, text),)


def test_errors() -> None:
    """An error is told in its own words, with its stable reason as kind."""
    error = DeviceClassNotFoundError("ns/claim", "gpu", "missing")
    assert explain(error) == (Cause("class-not-found", str(error)),)
    plain = ClaimNotFoundError("Pod", "ns/pod", "gpu", "claim")
    assert explain(plain) == (Cause("error", str(plain)),)


def test_a_selector_that_fails_has_its_error_behind_it() -> None:
    """The failure of a selector says where it stands, and behind that what went wrong."""
    inner = SelectorEvaluationError("device.x", 1, 7, "no such key: 'x'")
    error = SelectorFailedError("ns/claim", "gpu", "cls", 2, "d/p/g0", inner)
    (cause,) = explain(error)
    assert cause.kind == "selector-runtime"
    assert cause.because == (Cause("error", str(inner)),)
    assert cause.text.endswith("class cls, selector #2 on device d/p/g0")


def test_lines_indent() -> None:
    """Reasons behind a reason stand below it, indented, in order."""
    tree = (
        Cause("a", "1", (Cause("b", "2", (Cause("c", "3"),)), Cause("d", "4"))),
        Cause("e", "5"),
    )
    assert list(lines(tree, indent="-")) == ["1", "-2", "--3", "-4", "5"]
