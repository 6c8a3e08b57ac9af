"""PodSchedulingContext: how a scheduler and the controllers of drivers agree on a node.

What may live here: the object, what it is called in the versions that had it, and its
JSON form, which is the same in all of them.

The scheduler writes the spec: which nodes may do for the pod, and which it would like to
use. The control plane controllers of drivers write the status: on which of these nodes
they could not allocate. The object has the pod's name and namespace and is controlled by
it. It existed until Kubernetes 1.31; in v1alpha1 (1.26) it was called PodScheduling.

Source: k8s.io/api/resource/v1alpha3, v1alpha2 and v1alpha1; KEP-3063.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from dra_core.api.core import ObjectMeta
from dra_core.api.wire_core import read_metadata
from dra_core.api.wire_encode_core import write_metadata
from dra_core.api.wire_read import (
    At,
    Obj,
    Reader,
    each_object,
    get_object,
    get_text,
    get_texts,
)
from dra_core.api.wire_write import Json, compact

MAX_NODES: Final = 128
"""PodSchedulingNodeListMaxSize: a longer list of nodes is refused by the API server."""


@attrs.frozen
class ResourceClaimSchedulingStatus:
    """What a driver's controller says about one claim of the pod.

    ``name`` is that of the pod's entry in ``spec.resourceClaims``, not of the claim.
    ``unsuitable_nodes`` are those of the nodes asked about on which the claim cannot be
    allocated.
    """

    name: str = ""
    unsuitable_nodes: tuple[str, ...] = ()


@attrs.frozen
class PodSchedulingContext:
    """The negotiation for one pod; ``spec`` and ``status`` flattened.

    ``selected_node`` "" is none. ``resource_claims`` is the status, one entry per claim
    that a controller has reported on.
    """

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    selected_node: str = ""
    potential_nodes: tuple[str, ...] = ()
    resource_claims: tuple[ResourceClaimSchedulingStatus, ...] = ()
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        """``metadata.name``: the pod's."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``: the pod's."""
        return self.metadata.namespace

    def status_of(self, pod_claim: str) -> ResourceClaimSchedulingStatus | None:
        """The report on the pod's entry ``pod_claim``, ``None`` while there is none."""
        return next((entry for entry in self.resource_claims if entry.name == pod_claim), None)


def read_pod_scheduling_context(obj: Obj, _read: Reader) -> PodSchedulingContext:
    """A PodSchedulingContext, or PodScheduling, of any version."""
    metadata = read_metadata(obj)
    spec = get_object(obj, "spec")
    status = get_object(obj, "status")
    with At("spec"):
        selected_node = get_text(spec, "selectedNode")
        potential_nodes = get_texts(spec, "potentialNodes")
    with At("status"):
        return PodSchedulingContext(
            metadata=metadata,
            selected_node=selected_node,
            potential_nodes=potential_nodes,
            resource_claims=each_object(status, "resourceClaims", _claim_status),
            raw=obj,
        )


def _claim_status(obj: Obj) -> ResourceClaimSchedulingStatus:
    return ResourceClaimSchedulingStatus(get_text(obj, "name"), get_texts(obj, "unsuitableNodes"))


def write_pod_scheduling_context(context: PodSchedulingContext) -> Json:
    """The same, without apiVersion and kind."""
    statuses = [
        {"name": entry.name} | compact({"unsuitableNodes": list(entry.unsuitable_nodes)})
        for entry in context.resource_claims
    ]
    return {
        "metadata": write_metadata(context.metadata),
        "spec": compact(
            {
                "selectedNode": context.selected_node,
                "potentialNodes": list(context.potential_nodes),
            }
        ),
    } | compact({"status": compact({"resourceClaims": statuses})})
