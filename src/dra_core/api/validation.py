"""The API's limits and cross-field rules: every violation at once, each with its path.

What may live here: ``validate``, which knows the checks of each kind. The rules are in
the ``validation_*`` modules beside this one.

Decoding checks the types of JSON, and that is all that allocation needs; whether the
API server would accept an object is asked here, by those who lint or publish objects.
What was legal once, or is legal but probably a mistake, is a warning.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_core.api.core import Node, Pod, PodGroup
from dra_core.api.objects import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dra_core.api.scheduling_context import PodSchedulingContext
from dra_core.api.validation_claims import (
    check_device_class,
    check_device_taint_rule,
    check_node,
    check_pod,
    check_pod_group,
    check_pod_scheduling_context,
    check_resource_claim,
    check_resource_claim_template,
)
from dra_core.api.validation_report import Report, SelectorCheck, Severity, Violation
from dra_core.api.validation_slices import check_resource_slice
from dra_core.api.wire_versions import VERSIONS, split_api_version

__all__ = ["SelectorCheck", "Severity", "Violation", "validate"]

_CHECKS: Final[Mapping[type, Callable[[Report, Any], None]]] = {
    ResourceSlice: check_resource_slice,
    DeviceClass: check_device_class,
    ResourceClaim: check_resource_claim,
    ResourceClaimTemplate: check_resource_claim_template,
    DeviceTaintRule: check_device_taint_rule,
    PodSchedulingContext: check_pod_scheduling_context,
    Pod: check_pod,
    PodGroup: check_pod_group,
    Node: check_node,
}

_DEVICE = re.compile(r"^(spec\.devices\[\d+\])\.(?!name$)")
_REQUEST = re.compile(r"^((?:spec\.)+devices\.requests\[\d+\])\.exactly(?=\.|$)")


def validate(obj: object, check_selector: SelectorCheck | None = None) -> tuple[Violation, ...]:
    """All rules of resource.k8s.io that an object breaks, in the order of its fields.

    ``check_selector`` is asked about every CEL expression: it returns what is wrong
    with one, or ``None``. Without it only presence and length are checked. Paths are
    those of the version that the object was decoded from (``obj.raw``), v1 for objects
    made by hand. What needs more than one object (the slices of a pool, classes
    that exist) is not looked at. An object of another type has no rules.

    Never raises. Cost: linear in the size of the object. Source: the API's types and
    pkg/apis/resource/validation of Kubernetes 1.37.
    """
    check = _CHECKS.get(type(obj))
    if check is None:
        return ()
    report = Report(check_selector)
    check(report, obj)
    version = VERSIONS.get(_version_of(obj))
    if version is None or not version.flat_requests:
        return tuple(report.violations)
    return tuple(
        Violation(_older_path(found.path), found.problem, found.severity)
        for found in report.violations
    )


def _version_of(obj: object) -> str:
    raw = getattr(obj, "raw", None)
    if not isinstance(raw, Mapping):
        return "v1"
    return split_api_version(str(raw.get("apiVersion") or "v1"))[1]


def _older_path(path: str) -> str:
    """The path of a field until v1beta1: devices have ``basic``, requests no ``exactly``."""
    return _REQUEST.sub(r"\1", _DEVICE.sub(r"\1.basic.", path))
