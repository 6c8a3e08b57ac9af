"""What takes more than one object to check: selectors, classes, names of attributes.

What may live here: the walk over everything that has selectors, and the findings about
them. How a selector is tried is the business of ``selectors``.
"""

from collections.abc import Callable, Iterable, Sequence

import attrs

from dra_core.api.objects import (
    DeviceClaim,
    DeviceConstraint,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from dra_core.api.wire_versions import VERSIONS
from dra_core.cel.selector import Selector, SelectorCache
from dra_core.cli.load import Dump, api_version_of, counted
from dra_core.cli.named import is_named
from dra_core.cli.selectors import (
    Listed,
    Names,
    Trial,
    listed_devices,
    missing_names,
    nearest,
    try_selector,
)
from dra_core.errors import SelectorCompileError

SHOWN_DEVICES = 3

Devices = tuple[Listed, ...]
Demand = ExactDeviceRequest | DeviceSubRequest


@attrs.frozen
class Finding:
    """One thing that is wrong (``error``), or may be. ``path`` "" is the object itself."""

    error: bool
    kind: str
    name: str
    path: str
    problem: str

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        word = "error" if self.error else "warning"
        return f"{word}: {self.kind} {self.name}: {path}{self.problem}"


def lint_selectors(dump: Dump, on_object: Callable[[], None]) -> list[Finding]:
    """Compile every selector and try it on the devices that its class leaves to it.

    ``on_object`` is called after every class, claim and template. Cost: selectors ×
    distinct values that they read, and a key per device.
    """
    lint = _Lint(dump)
    for device_class in dump.classes:
        lint.device_class(device_class.name, device_class.selectors)
        on_object()
    for claim in dump.claims:
        if is_named(claim):
            continue
        lint.at("ResourceClaim", str(claim.metadata.key), api_version_of(claim))
        lint.claim("spec.devices", claim.devices)
        on_object()
    for template in dump.templates:
        if is_named(template):
            continue
        lint.at("ResourceClaimTemplate", str(template.metadata.key), api_version_of(template))
        lint.claim("spec.spec.devices", template.devices)
        on_object()
    return lint.findings


class _Lint:
    """Collects findings while it is led through the objects, classes first."""

    def __init__(self, dump: Dump) -> None:
        self.findings: list[Finding] = []
        self._compiled = SelectorCache(max_entries=100_000)
        self._devices: Devices = tuple(listed_devices(dump.slices))
        self._names = (Names("attribute", self._devices), Names("capacity", self._devices))
        self._classes: dict[str, Devices] = {}
        self._kind = self._name = ""
        self._flat = False

    def at(self, kind: str, name: str, version: str) -> None:
        """The object that findings are about from now on."""
        self._kind, self._name = kind, name
        self._flat = VERSIONS[version].flat_requests

    def device_class(self, name: str, selectors: Sequence[DeviceSelector]) -> None:
        self.at("DeviceClass", name, "v1")
        self._classes[name] = self._selectors("spec", selectors, self._devices)

    def claim(self, path: str, claim: DeviceClaim) -> None:
        for index, request in enumerate(claim.requests):
            at = f"{path}.requests[{index}]"
            if request.exactly is not None:
                self._demand(at if self._flat else f"{at}.exactly", request.exactly)
            for number, sub in enumerate(request.first_available):
                self._demand(f"{at}.firstAvailable[{number}]", sub)
        for index, constraint in enumerate(claim.constraints):
            self._constraint(f"{path}.constraints[{index}]", constraint)

    # --- parts of claims -------------------------------------------------------------

    def _demand(self, path: str, demand: Demand) -> None:
        name = demand.device_class_name
        if name and self._classes and name not in self._classes:
            hint = _hint(name, self._classes)
            self._warn(f"{path}.deviceClassName", f"there is no DeviceClass {name}{hint}")
        left = self._selectors(path, demand.selectors, self._classes.get(name, ()))
        requested = demand.capacity.requests if demand.capacity is not None else ()
        offered = dict.fromkeys(name for listed in left for name in listed.device.capacity)
        for name in requested:  # looked up literally: d/m does not name m
            if left and name not in offered:
                problem = f"no selected device has the capacity {name}{_hint(name, offered)}"
                self._warn(f"{path}.capacity.requests[{name}]", problem)

    def _constraint(self, path: str, constraint: DeviceConstraint) -> None:
        attributes = self._names[0]
        for field, name in (
            ("matchAttribute", constraint.match_attribute),
            ("distinctAttribute", constraint.distinct_attribute),
        ):
            if name and self._devices and name not in attributes:
                problem = f"no device has the attribute {name}{attributes.hint(name)}"
                self._warn(f"{path}.{field}", problem)

    # --- selectors -------------------------------------------------------------------

    def _selectors(
        self, path: str, selectors: Sequence[DeviceSelector], devices: Devices
    ) -> Devices:
        """Try selectors one after the other; returns the devices that all of them choose."""
        for index, one in enumerate(selectors):
            if one.cel is None:
                continue  # a rule of the API, which validation knows
            at = f"{path}.selectors[{index}].cel.expression"
            try:
                selector = self._compiled.compile(one.cel)
            except SelectorCompileError as error:
                self.findings.append(Finding(True, self._kind, self._name, at, str(error)))
                return ()
            if devices:
                trial = try_selector(selector, devices)
                self._judge(at, selector, devices, trial)
                devices = trial.chosen
        return devices

    def _judge(self, path: str, selector: Selector, devices: Devices, trial: Trial) -> None:
        if trial.failed:
            failed = tuple(listed for listed, _ in trial.failed)
            error = trial.failed[0][1]
            lacking = self._lacking(selector, failed, error.problem)
            problem = f"fails on {_listed(failed)}: {error.problem}{lacking}"
            self._warn(path, problem)
        elif not trial.chosen:
            lacking = self._lacking(selector, devices)
            self._warn(path, f"matches none of {_listed(devices)}{lacking}")

    def _lacking(self, selector: Selector, devices: Devices, problem: str = "") -> str:
        """The names that devices lack and the selector reads.

        When it fails, those that the error mentions, if any; when it matches nothing,
        those that none of the devices has.
        """
        told = []
        for names in self._names:
            lacking = missing_names(selector, names.what, devices)
            if problem:
                blamed = [name for name in lacking if name.rpartition("/")[2] in problem]
                lacking = {name: lacking[name] for name in blamed or lacking}
            for name, count in lacking.items():
                if name not in names:
                    told.append(f"no device has the {names.what} {name}{names.hint(name)}")
                elif count == len(devices):
                    told.append(f"without the {names.what} {name}, which others have")
                elif problem:
                    told.append(f"{count:,} without the {names.what} {name}")
        return "".join(f"; {fact}" for fact in told)

    def _warn(self, path: str, problem: str) -> None:
        self.findings.append(Finding(False, self._kind, self._name, path, problem))


def _listed(devices: Devices) -> str:
    shown = ", ".join(str(listed.id) for listed in devices[:SHOWN_DEVICES])
    more = len(devices) - SHOWN_DEVICES
    return f"{counted(len(devices), 'device')} ({shown}{f' and {more:,} more' if more > 0 else ''})"


def _hint(name: str, existing: Iterable[str]) -> str:
    near = nearest(name, existing)
    return f"; the nearest name is {near[0]}" if near else ""
