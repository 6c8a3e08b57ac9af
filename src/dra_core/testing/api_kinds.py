"""The kinds that the in-memory API server knows, as rows.

What may live here: facts about kinds, as data: where they are found, and how their lists
and maps are merged. The rules that use them are in ``patching`` and
``server_side_apply``.

Paths are dotted and leave out the items of lists: ``status.devices.conditions`` are the
conditions of each device. What is not listed is merged as the API's default has it:
members of a map one by one, a list as a whole.

Source: the markers ``listType``, ``listMapKey``, ``structType``, ``patchStrategy`` and
``patchMergeKey`` of k8s.io/api.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from dra_core.api.wire_versions import RESOURCE_GROUP, SCHEDULING_GROUP


@attrs.frozen
class Merging:
    """How a field is merged.

    ``keys``: a list whose items are told apart by these members, for server-side apply.
    ``patch_key``: the member by which a strategic merge patch tells them apart; "" means
    that it replaces the list. ``is_set``: a list of different scalars, to which apply adds;
    a strategic merge patch does so only where it is a ``patched_set``. ``atomic``: a map
    that apply replaces as a whole.
    """

    keys: tuple[str, ...] = ()
    patch_key: str = ""
    is_set: bool = False
    patched_set: bool = False
    atomic: bool = False


Schema = Mapping[str, Merging]
"""Merging by dotted path."""

DEFAULT: Final = Merging()


def by(key: str) -> Merging:
    """A list with one key for apply and strategic merge patch alike."""
    return Merging((key,), key)


def only_applied_by(*keys: str) -> Merging:
    """A list with keys that a strategic merge patch replaces all the same."""
    return Merging(keys)


_SET: Final = Merging(is_set=True)
_PATCHED_SET: Final = Merging(is_set=True, patched_set=True)
_WHOLE: Final = Merging(atomic=True)

_METADATA: Final[dict[str, Merging]] = {
    "metadata.finalizers": _PATCHED_SET,
    "metadata.ownerReferences": by("uid"),
}


@attrs.frozen
class Kind:
    """One kind in one or more versions of a group.

    ``has_status``: there is a ``status`` subresource; then the main resource ignores the
    status. ``status_at_creation`` replaces the status that an object is created with,
    ``None`` keeps it. ``immutable_spec``: the spec cannot be changed. ``max_consumers``:
    entries that ``status.reservedFor`` may have.
    """

    group: str
    versions: tuple[str, ...]
    kind: str
    resource: str
    schema: Schema
    namespaced: bool = True
    has_status: bool = False
    status_at_creation: Mapping[str, Any] | None = None
    immutable_spec: bool = False
    max_consumers: int = 256

    def api_version(self, version: str) -> str:
        """``group/version``, or the version alone in the core group."""
        return f"{self.group}/{version}" if self.group else version


def _resource(
    kind: str, resource: str, versions: tuple[str, ...], schema: Schema, **rest: Any
) -> Kind:
    return Kind(RESOURCE_GROUP, versions, kind, resource, _METADATA | dict(schema), **rest)


_STRUCTURED: Final = ("v1", "v1beta2", "v1beta1", "v1alpha3")
_CLASSIC: Final = ("v1alpha2",)

_CLAIM_STATUS: Final[Schema] = {
    "status.reservedFor": by("uid"),
    "status.allocation.nodeSelector": _WHOLE,
    "status.allocation.availableOnNodes": _WHOLE,
    "status.devices": only_applied_by("driver", "device", "pool", "shareID"),
    "status.devices.conditions": only_applied_by("type"),
}

_NEGOTIATION: Final[dict[str, Merging]] = {"status.resourceClaims": only_applied_by("name")}

_TEMPLATE: Final[Schema] = {
    "spec.metadata.finalizers": _PATCHED_SET,
    "spec.metadata.ownerReferences": by("uid"),
}

_CONTAINER: Final[Schema] = {
    "": by("name"),
    ".env": by("name"),
    ".ports": Merging(("containerPort", "protocol"), "containerPort"),
    ".volumeMounts": by("mountPath"),
    ".volumeDevices": by("devicePath"),
    ".resources.claims": only_applied_by("name"),
}

_POD: Final[dict[str, Merging]] = {
    f"spec.{containers}{path}": merging
    for containers in ("containers", "initContainers", "ephemeralContainers")
    for path, merging in _CONTAINER.items()
} | {
    "spec.resourceClaims": by("name"),
    "spec.volumes": by("name"),
    "spec.imagePullSecrets": by("name"),
    "spec.schedulingGates": by("name"),
    "spec.hostAliases": by("ip"),
    "spec.topologySpreadConstraints": Merging(("topologyKey", "whenUnsatisfiable"), "topologyKey"),
    "spec.nodeSelector": _WHOLE,
    "status.conditions": by("type"),
    "status.podIPs": by("ip"),
    "status.resourceClaimStatuses": by("name"),
}

KINDS: Final[tuple[Kind, ...]] = (
    _resource(
        "ResourceClaim",
        "resourceclaims",
        _STRUCTURED,
        _CLAIM_STATUS,
        has_status=True,
        status_at_creation={},
        immutable_spec=True,
    ),
    _resource(
        "ResourceClaim",
        "resourceclaims",
        _CLASSIC,
        _CLAIM_STATUS,
        has_status=True,
        status_at_creation={},
        immutable_spec=True,
        max_consumers=32,
    ),
    _resource(
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
        (*_STRUCTURED, *_CLASSIC),
        _TEMPLATE,
        immutable_spec=True,
    ),
    _resource(
        "ResourceSlice",
        "resourceslices",
        (*_STRUCTURED, *_CLASSIC),
        {"spec.nodeSelector": _WHOLE, "spec.devices.nodeSelector": _WHOLE},
        namespaced=False,
    ),
    _resource(
        "DeviceClass",
        "deviceclasses",
        _STRUCTURED,
        {"spec.suitableNodes": _WHOLE},
        namespaced=False,
    ),
    _resource(
        "DeviceTaintRule",
        "devicetaintrules",
        ("v1", "v1beta2", "v1alpha3"),
        {"status.conditions": by("type")},
        namespaced=False,
        has_status=True,
        status_at_creation={},
    ),
    _resource(
        "PodSchedulingContext",
        "podschedulingcontexts",
        ("v1alpha3", "v1alpha2"),
        _NEGOTIATION,
        has_status=True,
        status_at_creation={},
    ),
    # The older name. There potential and unsuitable nodes are sets, so apply only adds.
    _resource(
        "PodScheduling",
        "podschedulings",
        ("v1alpha1",),
        _NEGOTIATION
        | {
            "spec.potentialNodes": _SET,
            "status.resourceClaims.unsuitableNodes": _SET,
        },
        has_status=True,
        status_at_creation={},
    ),
    _resource(
        "ResourceClass",
        "resourceclasses",
        _CLASSIC,
        {"suitableNodes": _WHOLE},
        namespaced=False,
    ),
    _resource("ResourceClaimParameters", "resourceclaimparameters", _CLASSIC, {}),
    _resource("ResourceClassParameters", "resourceclassparameters", _CLASSIC, {}),
    Kind(
        SCHEDULING_GROUP,
        ("v1alpha1", "v1alpha2", "v1beta1"),
        "PodGroup",
        "podgroups",
        _METADATA
        | {
            "spec.resourceClaims": by("name"),
            "status.resourceClaimStatuses": by("name"),
            "status.conditions": by("type"),
        },
        has_status=True,
        status_at_creation={},
    ),
    Kind(
        "",
        ("v1",),
        "Pod",
        "pods",
        _METADATA | _POD,
        has_status=True,
        status_at_creation={"phase": "Pending"},
    ),
    Kind(
        "",
        ("v1",),
        "Node",
        "nodes",
        _METADATA
        | {
            "spec.podCIDRs": _PATCHED_SET,
            "status.conditions": by("type"),
            "status.addresses": by("type"),
        },
        namespaced=False,
        has_status=True,
    ),
)
"""All kinds. A version may be served for some kinds only, as in the cluster."""
