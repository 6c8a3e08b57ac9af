"""Is an attempt worth it at all? Before the first one, and before any node is looked at."""

from typing import Any

import attrs
import pytest

from dra_core.api.core import Pod
from dra_core.api.objects import DeviceRequest, ResourceClaim
from dra_core.api.wire import decode_allocation_result
from dra_core.errors import (
    ClaimBeingDeletedError,
    ClaimNotCreatedError,
    ClaimNotFoundError,
    ClaimNotOwnedError,
    ClaimUnsupportedError,
    DeviceClassNotFoundError,
    MissingClassNameError,
    UnknownRequestError,
)
from dra_core.scheduling.cycle_verdicts import PASSED, Stopped, StopReason
from dra_core.scheduling.in_flight import InFlight
from dra_core.scheduling.wakeups import before_filtering, pre_enqueue
from support.allocation_builders import device_class, exactly, first, sub
from support.claim_json import allocation_json, entry
from support.claims import make_claim, make_pod, owner, template
from support.sleeping import claim, consumers, lookups, pod_using

OURS = decode_allocation_result(allocation_json("gpu-0"))

POD = pod_using("gpu")
FREE = claim()
TAKEN = claim(allocation=OURS)


# Before the first attempt

TEMPLATE_POD = make_pod(template("e"), statuses={"e": "gpu"})


@pytest.mark.parametrize(
    ("pod", "claims", "error"),
    [
        (POD, [FREE], None),
        (make_pod(), [], None),
        (make_pod(template("e"), statuses={"e": None}), [], None),
        (TEMPLATE_POD, [claim()], ClaimNotOwnedError),
        (TEMPLATE_POD, [attrs.evolve(FREE, metadata=make_claim("gpu", owner()).metadata)], None),
        (make_pod(template("e")), [FREE], ClaimNotCreatedError),
        (make_pod(template("e"), statuses={"e": ""}), [FREE], ClaimNotCreatedError),
        (make_pod(attrs.evolve(template("e"), resource_claim_template_name=None)), [],
         ClaimUnsupportedError),
        (POD, [], ClaimNotFoundError),
        (POD, [claim(deleted=True)], ClaimBeingDeletedError),
        (pod_using("gpu", "gone"), [FREE], ClaimNotFoundError),
    ],
)  # fmt: skip
def test_pre_enqueue(pod: Pod, claims: list[ResourceClaim], error: type | None) -> None:
    """Every pod claim resolves, exists, is not being deleted, is owned; else the reason."""
    verdict = pre_enqueue(pod, lookups(*claims))
    if error is None:
        assert verdict == PASSED
        return
    assert isinstance(verdict, Stopped)
    assert verdict.reason is StopReason.UNRESOLVED
    assert isinstance(verdict.cause, error)
    assert not verdict.retry
    later = before_filtering(pod, lookups(*claims, classes=[device_class("class-a")]))
    assert str(later) == str(verdict)


def test_the_policies_of_names_count() -> None:
    """Deterministic names and workload claims are the caller's policies, here as elsewhere."""
    pod = make_pod(template("e"))
    made = attrs.evolve(claim(name="web-e"), metadata=make_claim("web-e", owner()).metadata)
    assert pre_enqueue(pod, lookups(made)) != PASSED
    assert pre_enqueue(pod, lookups(made, deterministic_names=True)) == PASSED
    gang = owner("g", kind="PodGroup", api_version="scheduling.k8s.io/v1", name="gang")
    pod = make_pod(template("e"), statuses={"e": "gpu"}, group="gang")
    made = attrs.evolve(FREE, metadata=make_claim("gpu", gang).metadata)
    assert pre_enqueue(pod, lookups(made)) != PASSED
    assert pre_enqueue(pod, lookups(made, workload_claims=True)) == PASSED


# Before filtering

CLASS_A = device_class("class-a")
FLYING = InFlight(TAKEN, users=("other",), session="s")


@pytest.mark.parametrize(
    ("one", "known", "reason"),
    [
        (FREE, {}, None),
        (attrs.evolve(FREE, deallocation_requested=True), {}, StopReason.DEALLOCATION_REQUESTED),
        (TAKEN, {"limit": 1}, None),
        (attrs.evolve(TAKEN, reserved_for=consumers(1)), {"limit": 1}, StopReason.FULL),
        (attrs.evolve(TAKEN, reserved_for=consumers(1)), {"limit": 2}, None),
        (attrs.evolve(TAKEN, reserved_for=consumers(256)), {}, StopReason.FULL),
        (attrs.evolve(TAKEN, reserved_for=(*consumers(255), entry("web-uid"))), {}, None),
        (TAKEN, {"classes": []}, None),
        (FREE, {"in_flight": [FLYING]}, StopReason.IN_FLIGHT),
        (FREE, {"in_flight": [FLYING], "session": "t"}, StopReason.IN_FLIGHT),
        (FREE, {"in_flight": [FLYING], "session": "s"}, None),
        (FREE, {"in_flight": [attrs.evolve(FLYING, session=None)]}, StopReason.IN_FLIGHT),
        (FREE, {"in_flight": [attrs.evolve(FLYING, users=("web-uid",))]}, None),
        (FREE, {"classes": []}, StopReason.CLASS_MISSING),
        (claim(driver="ctl"), {"classes": []}, StopReason.CLASS_MISSING),
        (claim(driver="ctl"), {}, None),
        (claim(first("r", sub("a"), sub("b", of="class-b"))), {}, StopReason.CLASS_MISSING),
        (claim(exactly("r", of="")), {"classes": []}, StopReason.INVALID),
        (claim(first("r", sub("a", of=""))), {}, StopReason.INVALID),
        (claim(DeviceRequest("r")), {}, StopReason.INVALID),
    ],
)  # fmt: skip
def test_before_filtering(
    one: ResourceClaim, known: dict[str, Any], reason: StopReason | None
) -> None:
    """The problems that make looking at nodes useless."""
    verdict = before_filtering(POD, lookups(one, **{"classes": [CLASS_A], **known}))
    if reason is None:
        assert verdict == PASSED
        return
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.pod_claim) == (reason, "e-gpu")
    # A missing class is waited for; only an error is tried again.
    assert verdict.retry is (reason is StopReason.INVALID)


def test_what_is_missing_is_told() -> None:
    """The cause names the class and the request; an error is one."""
    wanted = first("r", sub("a"), sub("b", of="class-b"))
    verdict = before_filtering(POD, lookups(claim(wanted), classes=[CLASS_A]))
    assert isinstance(verdict, Stopped)
    assert repr(verdict.cause) == repr(DeviceClassNotFoundError("team-a/gpu", "r/b", "class-b"))
    for request, error in [
        (exactly("r", of=""), MissingClassNameError("team-a/gpu", "r")),
        (first("r", sub("a", of="")), MissingClassNameError("team-a/gpu", "r/a")),
        (DeviceRequest("r"), UnknownRequestError("team-a/gpu", "r")),
    ]:
        verdict = before_filtering(POD, lookups(claim(request)))
        assert isinstance(verdict, Stopped)
        assert repr(verdict.cause) == repr(error)


def test_the_first_problem_in_the_pods_order() -> None:
    """Per claim in the pod's order: the first problem of the first claim that has one."""
    pod = make_pod(
        template("none"), *pod_using("free", "asked", "gone").resource_claims,
        statuses={"none": None},
    )  # fmt: skip
    asked = attrs.evolve(
        claim(name="asked", allocation=OURS), deallocation_requested=True,
        reserved_for=consumers(256),
    )  # fmt: skip
    known = lookups(claim(name="free"), asked, classes=[CLASS_A])
    verdict = before_filtering(pod, known)
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.pod_claim) == (StopReason.DEALLOCATION_REQUESTED, "e-asked")
    verdict = before_filtering(pod, lookups(claim(name="free"), asked))
    assert isinstance(verdict, Stopped)
    assert (verdict.reason, verdict.pod_claim) == (StopReason.CLASS_MISSING, "e-free")
