"""Claims as the API server stores them, and Hypothesis strategies for them."""

import copy
from typing import Any

from hypothesis import strategies as st

from dra_core.api.objects import FINALIZER, ResourceClaim, ResourceClaimConsumerReference
from dra_core.api.wire import decode_resource_claim

Json = dict[str, Any]

VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")
OTHER_FINALIZER = "example.com/keep"


def allocation_json(device: str = "gpu-0", node: str = "node-1", **members: Any) -> Json:
    """``status.allocation`` with one device."""
    selector = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    result = {"request": "gpu", "driver": "d", "pool": node, "device": device}
    return {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [selector]},
        **members,
    }


def entry_json(uid: str) -> Json:
    """An entry of ``reservedFor`` for a pod."""
    return {"resource": "pods", "name": f"pod-{uid}", "uid": uid}


def entry(uid: str) -> ResourceClaimConsumerReference:
    """The same as an object."""
    return ResourceClaimConsumerReference("", "pods", f"pod-{uid}", uid)


def claim_json(
    version: str = "v1",
    *,
    name: str = "gpu",
    uid: str = "claim-uid",
    resource_version: str = "7",
    finalizers: tuple[str, ...] = (),
    allocation: Json | None = None,
    reserved_for: tuple[str, ...] = (),
    deleted: bool = False,
    owner: Json | None = None,
    **status: Any,
) -> Json:
    """A claim with a request, and with fields that no version of the library knows."""
    exactly = {"deviceClassName": "gpu"}
    flat = version in ("v1beta1", "v1alpha3")
    request = {"name": "gpu"} | (exactly if flat else {"exactly": exactly})
    meta: Json = {
        "name": name,
        "namespace": "team-a",
        "uid": uid,
        "resourceVersion": resource_version,
        "futureMeta": [{"a": 1}],
    }
    if finalizers:
        meta["finalizers"] = list(finalizers)
    if deleted:
        meta["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    if owner is not None:
        meta["ownerReferences"] = [owner]
    if allocation is not None:
        status["allocation"] = allocation
    if reserved_for:
        status["reservedFor"] = [
            {**entry_json(consumer), "futureHint": consumer} for consumer in reserved_for
        ]
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": {"devices": {"requests": [request]}, "futureSpec": {"a": [1]}},
        "status": {"futureStatus": {"b": None}, **status},
    }


def read(obj: Json) -> ResourceClaim:
    """Decode in the version that the object says."""
    return decode_resource_claim(copy.deepcopy(obj), obj["apiVersion"].rpartition("/")[2])


@st.composite
def claims_json(draw: st.DrawFn, version: str = "v1") -> Json:
    """A claim as a server may hold it: reserved only if allocated, no UID twice."""
    allocation = draw(
        st.sampled_from(
            [
                None,
                allocation_json(),
                allocation_json("gpu-1", futureAllocation=1),
                allocation_json(allocationTimestamp="2026-01-01T00:00:00Z"),
            ]
        )
    )
    users = draw(st.lists(st.sampled_from("abcd"), max_size=4, unique=True)) if allocation else []
    finalizers = draw(st.permutations([FINALIZER, OTHER_FINALIZER]))
    result = claim_json(
        version,
        uid=draw(st.sampled_from(["claim-uid", "claim-uid", "claim-uid", "new-uid"])),
        resource_version=draw(st.sampled_from(["7", "7", "8"])),
        finalizers=tuple(finalizers[: draw(st.integers(0, 2))]),
        allocation=allocation,
        reserved_for=tuple(users),
    )
    if allocation and draw(st.booleans()):
        device = {"driver": "d", "pool": "node-1", "device": "gpu-0", "futureReport": 1}
        result["status"]["devices"] = [device]
    return result
