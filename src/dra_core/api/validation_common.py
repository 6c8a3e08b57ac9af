"""Rules for what several kinds have in common: metadata, node selectors, taints, conditions.

What may live here: checks of types that more than one kind contains.

Source: pkg/apis/core/validation and pkg/apis/resource/validation of Kubernetes 1.37.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_core.api import validation_formats as formats
from dra_core.api.core import NodeSelector, NodeSelectorRequirement, ObjectMeta
from dra_core.api.objects import DeviceTaint, DeviceToleration, OpaqueDeviceConfiguration
from dra_core.api.validation_report import Report
from dra_core.api.wire_read import bracket

MAX_TOLERATIONS: Final = 16
"""DeviceTolerationsMaxLength."""
MAX_BINDING_CONDITIONS: Final = 4
"""BindingConditionsMaxSize, BindingFailureConditionsMaxSize."""
MAX_PARAMETERS: Final = 10 * 1024
"""OpaqueParametersMaxLength, AllocatedDeviceStatusDataMaxLength: bytes of JSON."""

TAINT_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
OPERATORS: Final = ("Equal", "Exists")
SKIP_PREPARE: Final = "NodePrepareResources"
SKIP_UNPREPARE: Final = "NodeUnprepareResources"
SKIP_ALL: Final = "*"


def check_metadata(report: Report, meta: ObjectMeta, namespaced: bool) -> None:
    """Name, namespace and labels. A missing namespace is fine: kubectl adds one."""
    if meta.name or not meta.generate_name:
        report.error("metadata.name", formats.subdomain(meta.name))
    if meta.namespace and not namespaced:
        report.error("metadata.namespace", "must be absent: the kind is not namespaced")
    elif meta.namespace:
        report.error("metadata.namespace", formats.dns_label(meta.namespace))
    check_labels(report, "metadata", meta)


def check_labels(report: Report, path: str, meta: ObjectMeta) -> None:
    """Labels and the keys of annotations."""
    for key, value in meta.labels.items():
        where = f"{path}.labels{bracket(key)}"
        report.error(where, formats.label_key(key))
        report.error(where, formats.label_value(value))
    report.keys(f"{path}.annotations", meta.annotations, lambda key: formats.label_key(key.lower()))


def check_node_selector(report: Report, path: str, selector: NodeSelector | None) -> None:
    """Terms, keys, operators and values. ``None`` is fine."""
    if selector is None:
        return
    if not selector.terms:
        report.error(f"{path}.nodeSelectorTerms", "must have at least one term")
    for index, term in enumerate(selector.terms):
        where = f"{path}.nodeSelectorTerms[{index}]"
        for number, requirement in enumerate(term.match_expressions):
            _check_expression(report, f"{where}.matchExpressions[{number}]", requirement)
        for number, requirement in enumerate(term.match_fields):
            _check_field(report, f"{where}.matchFields[{number}]", requirement)
        if not term.match_expressions and not term.match_fields:
            report.warning(where, "has no requirements, and so matches nothing")


def check_one_term(report: Report, path: str, selector: NodeSelector | None) -> None:
    """Selectors of slices and devices have one term: merging several is not defined."""
    if selector is not None and len(selector.terms) > 1:
        report.error(f"{path}.nodeSelectorTerms", "must have exactly one term")
    check_node_selector(report, path, selector)


def _check_expression(report: Report, path: str, requirement: NodeSelectorRequirement) -> None:
    report.error(f"{path}.key", formats.label_key(requirement.key))
    operator, values = requirement.operator, requirement.values
    if operator in ("In", "NotIn"):
        if not values:
            report.error(f"{path}.values", f"is required for operator {operator}")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            report.error(f"{path}.values", f"must be empty for operator {operator}")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1 or not _is_integer(values[0]):
            report.error(f"{path}.values", f"must be one integer for operator {operator}")
        return
    else:
        report.error(f"{path}.operator", "must be In, NotIn, Exists, DoesNotExist, Gt or Lt")
    for index, value in enumerate(values):
        report.error(f"{path}.values[{index}]", formats.label_value(value))


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return len(digits) <= 19 and digits.isascii() and digits.isdigit()


def _check_field(report: Report, path: str, requirement: NodeSelectorRequirement) -> None:
    if requirement.key != "metadata.name":
        report.error(f"{path}.key", "must be metadata.name")
    if requirement.operator not in ("In", "NotIn"):
        report.error(f"{path}.operator", "must be In or NotIn")
    if len(requirement.values) != 1:
        report.error(f"{path}.values", "must have exactly one value")
    else:
        report.error(f"{path}.values[0]", formats.subdomain(requirement.values[0]))


def check_taint(report: Report, path: str, taint: DeviceTaint) -> None:
    """A taint of a device or a rule."""
    report.error(f"{path}.key", formats.label_key(taint.key))
    report.error(f"{path}.value", formats.label_value(taint.value))
    report.required(f"{path}.effect", taint.effect)
    report.known(f"{path}.effect", taint.effect, TAINT_EFFECTS)


def check_tolerations(report: Report, path: str, tolerations: Sequence[DeviceToleration]) -> None:
    """Tolerations of a request or of an allocation result."""
    report.at_most(path, tolerations, MAX_TOLERATIONS)
    for index, toleration in enumerate(tolerations):
        _check_toleration(report, f"{path}[{index}]", toleration)


def _check_toleration(report: Report, path: str, toleration: DeviceToleration) -> None:
    report.known(f"{path}.operator", toleration.operator, OPERATORS)
    report.known(f"{path}.effect", toleration.effect, TAINT_EFFECTS)
    if toleration.key:
        report.error(f"{path}.key", formats.label_key(toleration.key))
    elif toleration.operator in ("", "Equal"):
        report.warning(
            f"{path}.key", "is empty: without operator Exists only taints that have no value match"
        )
    if toleration.operator == "Exists":
        if toleration.value:
            report.error(f"{path}.value", "must be empty for operator Exists")
    else:
        report.error(f"{path}.value", formats.label_value(toleration.value))


def check_binding(
    report: Report, path: str, conditions: Sequence[str], failures: Sequence[str]
) -> None:
    """Binding conditions and binding failure conditions: both or none, no overlap."""
    names = {"bindingConditions": conditions, "bindingFailureConditions": failures}
    for name, entries in names.items():
        report.at_most(f"{path}.{name}", entries, MAX_BINDING_CONDITIONS)
        report.unique(f"{path}.{name}", entries)
        for index, entry in enumerate(entries):
            report.error(f"{path}.{name}[{index}]", formats.label_key(entry))
    for index, entry in enumerate(failures):
        if entry in conditions:
            report.error(f"{path}.bindingFailureConditions[{index}]", "is a binding condition, too")
    if bool(conditions) != bool(failures):
        missing, other = names if failures else reversed(names)
        report.error(f"{path}.{missing}", f"is required where {other} is set")


def check_skipped(report: Report, path: str, operations: Sequence[str]) -> None:
    """skipNodeOperations: preparing is not skipped alone."""
    known = (SKIP_PREPARE, SKIP_UNPREPARE, SKIP_ALL)
    report.unique(path, operations)
    for index, operation in enumerate(operations):
        report.required(f"{path}[{index}]", operation)
        report.known(f"{path}[{index}]", operation, known)
    if SKIP_PREPARE in operations and not {SKIP_UNPREPARE, SKIP_ALL} & set(operations):
        report.error(path, f"{SKIP_PREPARE} cannot be skipped without {SKIP_UNPREPARE}")


def check_opaque(report: Report, path: str, opaque: OpaqueDeviceConfiguration | None) -> None:
    """Configuration for a driver: its parameters are an object of limited size."""
    if opaque is None:
        report.error(f"{path}.opaque", "is required")
        return
    report.error(f"{path}.opaque.driver", formats.driver_name(opaque.driver))
    if opaque.parameters is None:
        report.error(f"{path}.opaque.parameters", "is required")
    else:
        check_json_object(report, f"{path}.opaque.parameters", opaque.parameters)


def check_json_object(report: Report, path: str, value: Any) -> None:
    """Free-form JSON: an object of up to 10 KiB. Its content is not repeated: it may be secret."""
    if not isinstance(value, Mapping):
        report.error(path, "must be a JSON object")
        return
    try:
        # As clients send it. Objects made by hand may hold what JSON cannot express.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    except (TypeError, ValueError, RecursionError):
        report.error(path, "cannot be written as JSON")
        return
    if formats.length(text) > MAX_PARAMETERS:
        report.error(path, f"must not be longer than {MAX_PARAMETERS:,} bytes of JSON")
