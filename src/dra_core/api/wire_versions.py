"""Which versions exist, what kinds each serves, and how it differs from v1.

What may live here: the facts about versions as data, for decoding and encoding alike.

Source: k8s.io/api/resource/v1, v1beta2, v1beta1 and v1alpha3, up to Kubernetes 1.37.
"""

from collections.abc import Mapping
from typing import Final

import attrs

RESOURCE_GROUP: Final = "resource.k8s.io"
SCHEDULING_GROUP: Final = "scheduling.k8s.io"


@attrs.frozen
class Version:
    """A version of resource.k8s.io, by its differences from v1.

    ``basic``: a device's fields sit under ``basic`` (until v1beta1).
    ``flat_requests``: a request's fields sit in the request, not under ``exactly``
    (until v1beta1). ``alpha``: v1alpha3, where capacities are plain quantities, and
    classes have ``suitableNodes``, claims and allocations a ``controller``.
    """

    name: str
    kinds: frozenset[str]
    basic: bool = False
    flat_requests: bool = False
    alpha: bool = False


_KINDS = frozenset({"ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"})
_WITH_RULES = _KINDS | {"DeviceTaintRule"}

VERSIONS: Final[Mapping[str, Version]] = {
    "v1": Version("v1", _WITH_RULES),
    "v1beta2": Version("v1beta2", _WITH_RULES),
    "v1beta1": Version("v1beta1", _KINDS, basic=True, flat_requests=True),
    "v1alpha3": Version("v1alpha3", _WITH_RULES, basic=True, flat_requests=True, alpha=True),
}
"""The versions that are read and written, newest first."""

CONTEXT_KINDS: Final[Mapping[str, str]] = {
    "v1alpha3": "PodSchedulingContext",
    "v1alpha2": "PodSchedulingContext",
    "v1alpha1": "PodScheduling",
}
"""The versions that had the context of a pod's scheduling, and what they called it. The
last two had nothing else that is read here."""

CORE_KINDS: Final = frozenset({"Pod", "Node"})
"""What is read of the core group, version v1."""


def split_api_version(api_version: str) -> tuple[str, str]:
    """``(group, version)``; the core group is ``""``."""
    group, slash, version = api_version.rpartition("/")
    return (group, version) if slash else ("", api_version)


def is_known(api_version: str, kind: str) -> bool:
    """Whether objects of this kind and version can be decoded."""
    group, version = split_api_version(api_version)
    if group == RESOURCE_GROUP:
        if kind == CONTEXT_KINDS.get(version):
            return True
        return version in VERSIONS and kind in VERSIONS[version].kinds
    if group == SCHEDULING_GROUP:
        return kind == "PodGroup"
    return group == "" and version == "v1" and kind in CORE_KINDS


def version_named(version: str) -> Version:
    """The version of that name. Raises ``ValueError`` for one that is not known."""
    known = VERSIONS.get(version)
    if known is None:
        raise ValueError(f"unknown version {version!r}; known: {', '.join(VERSIONS)}")
    return known
