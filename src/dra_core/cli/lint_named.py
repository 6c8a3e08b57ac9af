"""What takes more than one object of v1alpha2 to check: selectors, classes, parameters.

What may live here: the walk over classes, parameters and claims of that version, and the
findings about them. Rules about single objects are ``dra_core.v1alpha2.validation``'s.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from dra_core.cli.lint_selectors import SHOWN_DEVICES, Finding
from dra_core.cli.load import Dump, counted
from dra_core.cli.selectors import nearest
from dra_core.errors import AllocationError, SelectorCompileError, SelectorEvaluationError
from dra_core.v1alpha2.claims import ClaimSpec, ResourceClaim, ResourceClaimTemplate
from dra_core.v1alpha2.objects import (
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceSlice,
)
from dra_core.v1alpha2.parameters import ParameterStore
from dra_core.v1alpha2.selectors import (
    TYPES,
    InstanceReader,
    InstanceSelector,
    InstanceSelectors,
    InstanceView,
)

_MISSING: Final = re.compile(r"no such key: '(.*)' \(the instance has no (\w+) attribute")


@attrs.frozen
class _Listed:
    """An instance where a slice lists it."""

    node: str
    view: InstanceView

    def __str__(self) -> str:
        return f"{self.node}/{self.view.name}" if self.node else self.view.name


def lint_named(dump: Dump, on_object: Callable[[], None]) -> list[Finding]:
    """Compile every selector, try it on the instances of its driver, look up references.

    ``on_object`` is called after every class, claim, template and object with parameters.
    Cost: selectors × instances of their driver.
    """
    lint = _Lint(dump)
    for resource_class in dump.of(ResourceClass):
        lint.resource_class(resource_class)
        on_object()
    for of_class in dump.of(ResourceClassParameters):
        lint.class_parameters(of_class)
        on_object()
    for of_claim in dump.of(ResourceClaimParameters):
        lint.claim_parameters(of_claim)
        on_object()
    for claim in dump.of(ResourceClaim):
        lint.claim(claim)
        on_object()
    for template in dump.of(ResourceClaimTemplate):
        lint.template(template)
        on_object()
    return lint.findings


class _Lint:
    """Collects findings while it is led through the objects."""

    def __init__(self, dump: Dump) -> None:
        self.findings: list[Finding] = []
        self._compiled = InstanceSelectors(max_entries=100_000)
        reader = InstanceReader()
        self._instances: dict[str, list[_Listed]] = {}
        for one in dump.of(ResourceSlice):
            listed = self._instances.setdefault(one.driver_name, [])
            listed += [_Listed(one.node_name, reader.view(i)) for i in one.instances or ()]
        self._classes = {one.name: one for one in dump.of(ResourceClass)}
        self._parameters = ParameterStore(dump.of(ResourceClassParameters))
        for of_claim in dump.of(ResourceClaimParameters):
            self._parameters.put(of_claim)
        self._kind = self._name = ""

    # --- objects -----------------------------------------------------------------------

    def resource_class(self, resource_class: ResourceClass) -> None:
        self._at("ResourceClass", resource_class.name)
        if resource_class.structured_parameters:
            self._look_up("parametersRef", lambda: self._parameters.of_class(resource_class))

    def class_parameters(self, parameters: ResourceClassParameters) -> None:
        self._at("ResourceClassParameters", str(parameters.metadata.key))
        for index, entry in enumerate(parameters.filters):
            self._selector(f"filters[{index}]", entry.driver_name, entry.selector)

    def claim_parameters(self, parameters: ResourceClaimParameters) -> None:
        self._at("ResourceClaimParameters", str(parameters.metadata.key))
        for index, entry in enumerate(parameters.driver_requests):
            for number, request in enumerate(entry.requests):
                path = f"driverRequests[{index}].requests[{number}]"
                self._selector(path, entry.driver_name, request.selector)

    def claim(self, claim: ResourceClaim) -> None:
        self._at("ResourceClaim", str(claim.metadata.key))
        if claim.allocation is None:
            self._spec("spec", claim.spec, claim)

    def template(self, template: ResourceClaimTemplate) -> None:
        self._at("ResourceClaimTemplate", str(template.metadata.key))
        self._spec("spec.spec", template.spec, ResourceClaim(template.metadata, spec=template.spec))

    def _spec(self, path: str, spec: ClaimSpec, claim: ResourceClaim) -> None:
        """Class and parameters of a claim; those of a controller's claim are its own business."""
        resource_class = self._classes.get(spec.class_name)
        if resource_class is None:
            if spec.class_name and self._classes:
                hint = _hint(spec.class_name, self._classes)
                problem = f"there is no ResourceClass {spec.class_name}{hint}"
                self._warn(f"{path}.resourceClassName", problem)
        elif resource_class.structured_parameters:
            found = resource_class
            self._look_up(f"{path}.parametersRef", lambda: self._parameters.of_claim(claim, found))

    def _look_up(self, path: str, look_up: Callable[[], object]) -> None:
        try:
            look_up()
        except AllocationError as error:
            self._warn(path, str(attrs.evolve(error, claim="")))

    # --- selectors ---------------------------------------------------------------------

    def _selector(self, path: str, driver: str, expression: str | None) -> None:
        if not expression:
            return  # a rule of the API, which validation knows
        at = f"{path}.namedResources.selector"
        try:
            selector = self._compiled.compile(expression)
        except SelectorCompileError as error:
            self.findings.append(Finding(True, self._kind, self._name, at, str(error)))
            return
        listed = self._instances.get(driver, [])
        if listed:
            self._try(at, selector, listed)
        elif self._instances:
            hint = _hint(driver, self._instances)
            self._warn(f"{path.partition('.')[0]}.driverName", f"no slice is of {driver}{hint}")

    def _try(self, path: str, selector: InstanceSelector, listed: Sequence[_Listed]) -> None:
        views = [one.view for one in listed]
        matching, failing = selector.matching(views, (1 << len(views)) - 1)
        if failing:
            failed = [one for place, one in enumerate(listed) if failing >> place & 1]
            problem = _problem(selector, failed[0].view)
            lacking = self._lacking(problem, listed)
            self._warn(path, f"fails on {_shown(failed)}: {problem}{lacking}")
        elif not matching:
            self._warn(path, f"matches none of {_shown(listed)}")

    def _lacking(self, problem: str, listed: Sequence[_Listed]) -> str:
        """The nearest attribute of the type, if one is missing."""
        found = _MISSING.search(problem)
        if found is None or found[2] not in TYPES:
            return ""
        names = dict.fromkeys(name for one in listed for name in one.view.of_type(found[2]))
        return "" if found[1] in names else _hint(found[1], names)

    def _at(self, kind: str, name: str) -> None:
        """The object that findings are about from now on."""
        self._kind, self._name = kind, name

    def _warn(self, path: str, problem: str) -> None:
        self.findings.append(Finding(False, self._kind, self._name, path, problem))


def _problem(selector: InstanceSelector, view: InstanceView) -> str:
    try:
        selector.matches(view)
    except SelectorEvaluationError as error:
        return error.problem
    return ""


def _shown(listed: Sequence[_Listed]) -> str:
    shown = ", ".join(map(str, listed[:SHOWN_DEVICES]))
    more = len(listed) - SHOWN_DEVICES
    return (
        f"{counted(len(listed), 'instance')} ({shown}{f' and {more:,} more' if more > 0 else ''})"
    )


def _hint(name: str, existing: Iterable[str]) -> str:
    near = nearest(name, existing)
    return f"; the nearest name is {near[0]}" if near else ""
