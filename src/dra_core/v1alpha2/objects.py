"""The kinds of v1alpha2 that are not claims, and the parts that kinds share, frozen.

What may live here: what the API has, under its names, by the conventions of
``dra_core.api.core``: absent strings are ``""``, absent lists empty, ``None`` where absent
and empty differ. Claims and their templates are in ``dra_core.v1alpha2.claims``.

A *structured model* describes resources so that a scheduler can allocate them. There is
one, named resources; where a field for a model is ``None``, it is of a model that is not
known here.

Source: k8s.io/api/resource/v1alpha2 of Kubernetes 1.30.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from dra_core.api import objects
from dra_core.api.core import NodeSelector, ObjectMeta
from dra_core.api.objects import DeviceRequestAllocationResult
from dra_core.values.quantity import Quantity

VERSION: Final = "v1alpha2"

FINALIZER: Final = "dra.k8s.io/delete-protection"
"""On every claim that a scheduler allocated, before its status says so (Finalizer)."""

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
IMMEDIATE: Final = "Immediate"
"""Allocation modes; the first is the default."""

MAX_CONSUMERS: Final = 32
"""ResourceClaimReservedForMaxSize; one for a claim that is not shareable."""


# --- supply ------------------------------------------------------------------------------


@attrs.frozen
class Attribute:
    """One attribute of an instance. Exactly one value is meant to be set.

    The members of the API are ``quantity``, ``bool``, ``int``, ``intSlice``, ``string``,
    ``stringSlice`` and ``version``; the last is the text as given.
    """

    name: str = ""
    quantity_value: Quantity | None = None
    bool_value: bool | None = None
    int_value: int | None = None
    int_slice_value: tuple[int, ...] | None = None
    string_value: str | None = None
    string_slice_value: tuple[str, ...] | None = None
    version_value: str | None = None


@attrs.frozen
class Instance:
    """One named resource. Its name is unique per node and driver."""

    name: str = ""
    attributes: tuple[Attribute, ...] = ()


@attrs.frozen
class ResourceSlice:
    """Resources of one driver. ``node_name`` "": they are not local to a node.

    ``instances`` is ``None`` if the slice is of a model that is not known here.
    """

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    node_name: str = ""
    driver_name: str = ""
    instances: tuple[Instance, ...] | None = None
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name


# --- classes and parameters --------------------------------------------------------------


@attrs.frozen
class ParametersReference:
    """An object with parameters: ``parametersRef`` or ``generatedFrom``.

    ``namespace`` exists where a class refers to something; the references of claims are
    to objects in their own namespace.
    """

    api_group: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.api_group}" if self.api_group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


@attrs.frozen
class ResourceClass:
    """How claims of the class are allocated.

    ``structured_parameters``: a scheduler allocates, else a control plane controller.
    ``suitable_nodes`` limits the nodes of claims that are not allocated yet.
    """

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    driver_name: str = ""
    parameters_ref: ParametersReference | None = None
    suitable_nodes: NodeSelector | None = None
    structured_parameters: bool = False
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name


@attrs.frozen
class VendorParameters:
    """Parameters of a class for one driver; any JSON, never printed."""

    driver_name: str = ""
    parameters: Any = attrs.field(default=None, repr=False)


@attrs.frozen
class ResourceFilter:
    """What a class allows of one driver's resources; ``selector`` ``None``: unknown model."""

    driver_name: str = ""
    selector: str | None = None


@attrs.frozen
class ResourceClassParameters:
    """Parameters of a class. ``generated_from`` is what a controller translated them from."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    generated_from: ParametersReference | None = None
    vendor_parameters: tuple[VendorParameters, ...] = ()
    filters: tuple[ResourceFilter, ...] = ()
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class ResourceRequest:
    """One instance that is asked for; ``selector`` ``None``: of a model not known here."""

    vendor_parameters: Any = attrs.field(default=None, repr=False)
    selector: str | None = None


@attrs.frozen
class DriverRequests:
    """What a claim asks of one driver."""

    driver_name: str = ""
    vendor_parameters: Any = attrs.field(default=None, repr=False)
    requests: tuple[ResourceRequest, ...] = ()


@attrs.frozen
class ResourceClaimParameters:
    """Parameters of a claim. ``shareable``: several consumers may use it at a time."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    generated_from: ParametersReference | None = None
    shareable: bool = False
    driver_requests: tuple[DriverRequests, ...] = ()
    raw: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)


# --- allocations -------------------------------------------------------------------------


@attrs.frozen
class DriverAllocationResult:
    """The instance that one request got; ``name`` ``None``: of a model not known here."""

    vendor_request_parameters: Any = attrs.field(default=None, repr=False)
    name: str | None = None


@attrs.frozen
class StructuredResourceHandle:
    """What a scheduler allocated of one driver.

    ``node_name`` is that of the slices: "" if the resources are not local to a node.
    """

    vendor_class_parameters: Any = attrs.field(default=None, repr=False)
    vendor_claim_parameters: Any = attrs.field(default=None, repr=False)
    node_name: str = ""
    results: tuple[DriverAllocationResult, ...] = ()


@attrs.frozen
class ResourceHandle:
    """What one kubelet plugin gets: ``data`` of a controller, or ``structured_data``."""

    driver_name: str = ""
    data: str = attrs.field(default="", repr=False)
    structured_data: StructuredResourceHandle | None = None


def request_name(driver: str, index: int) -> str:
    """What outcomes and explanations call a request: in this version they have no names."""
    return f"{driver}[{index}]"


@attrs.frozen
class AllocationResult(objects.AllocationResult):
    """What a claim got: ``status.allocation``. ``node_selector`` is ``availableOnNodes``.

    ``results`` follow from the handles: an instance counts as a device whose pool is
    called like the node, and "" where it is of no node. Handles of a controller hold
    nothing that a scheduler could allocate.
    """

    resource_handles: tuple[ResourceHandle, ...] = ()
    shareable: bool = False
    results: tuple[DeviceRequestAllocationResult, ...] = attrs.field(init=False)

    @results.default
    def _results_of_handles(self) -> tuple[DeviceRequestAllocationResult, ...]:
        return tuple(
            DeviceRequestAllocationResult(
                request=request_name(handle.driver_name, index),
                driver=handle.driver_name,
                pool=handle.structured_data.node_name,
                device=result.name,
            )
            for handle in self.resource_handles
            if handle.structured_data is not None
            for index, result in enumerate(handle.structured_data.results)
            if result.name is not None
        )

    @property
    def is_structured(self) -> bool:
        """Whether a handle says that a scheduler allocated; without handles none can."""
        return any(handle.structured_data is not None for handle in self.resource_handles)
