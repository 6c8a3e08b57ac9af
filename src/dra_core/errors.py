"""Exceptions of the library: one root, facts as fields, text made last.

What may live here: exception types only, the root and those that several rooms need;
``dra_core.scheduling.errors`` has those of the stores. An exception says what was wrong
in fields that a program can read; ``__str__`` puts the fact and the likely fix into
words, and its wording is no API. Exceptions are for bad input and bad use. "Does not
fit" and "gave up" are outcomes, see ``dra_core.allocator.results``.

Fields are positional, never keyword-only: such exceptions survive pickling, which
embedders with worker processes rely on.
"""

import attrs


class DraError(Exception):
    """Root of all exceptions that this library raises on purpose."""


@attrs.frozen
class QuantityError(DraError, ValueError):
    """A text is not a Kubernetes quantity.

    ``text`` is the offending input (cut to 100 characters), ``problem`` what is
    wrong with it.
    """

    text: str
    problem: str

    def __str__(self) -> str:
        return f"invalid quantity {self.text!r}: {self.problem}"


@attrs.frozen
class MalformedObjectError(DraError, ValueError):
    """Decoded JSON does not have the shape of the API object that it claims to be.

    ``kind`` and ``name`` identify the object ("namespace/name" where it has a
    namespace, "" where it has no name), ``path`` is the field
    (``spec.devices[3].capacity``, "" for the object itself), ``problem`` what is
    wrong with it.
    """

    kind: str
    name: str
    path: str
    problem: str

    def __str__(self) -> str:
        where = f"{self.kind} {self.name!r}" if self.name else f"{self.kind} without a name"
        return f"{where}: {self.path}: {self.problem}" if self.path else f"{where}: {self.problem}"


@attrs.frozen
class AllocationError(DraError):
    """A claim, its class, a selector or a slice is at fault: allocation cannot be attempted.

    Ends the call for every node, except ``SelectorFailedError`` at run time, which
    other nodes need not meet. ``claim`` is "namespace/name" ("" where no claim is at
    fault), ``request`` the request (``main/sub`` for a subrequest, "" where none is).
    ``reason`` is a stable word for programs.
    """

    claim: str
    request: str

    reason = "error"

    def _where(self) -> str:
        parts = [f"claim {self.claim}"] if self.claim else []
        if self.request:
            parts.append(f"request {self.request}")
        return ", ".join(parts) + ": " if parts else ""


@attrs.frozen
class FeatureDisabledError(AllocationError):
    """A request needs a feature (``feature``, the gate's name) that is switched off."""

    feature: str
    field: str

    reason = "feature-off"

    def __str__(self) -> str:
        return f"{self._where()}{self.field} is set, but the feature {self.feature} is off"


@attrs.frozen
class UnknownSelectorError(AllocationError):
    """A selector of the class or request is of a kind not known here (no ``cel``)."""

    device_class: str
    index: int

    reason = "unknown-selector"

    def __str__(self) -> str:
        owner = f"class {self.device_class}, " if self.device_class else ""
        return f"{self._where()}{owner}selector #{self.index}: no CEL expression"


@attrs.frozen
class MissingClassNameError(AllocationError):
    """A request names no device class."""

    reason = "no-class-name"

    def __str__(self) -> str:
        return f"{self._where()}missing device class name (unsupported kind of request?)"


@attrs.frozen
class DeviceClassNotFoundError(AllocationError):
    """A request names a device class that does not exist."""

    device_class: str

    reason = "class-not-found"

    def __str__(self) -> str:
        return f"{self._where()}device class {self.device_class!r} does not exist"


@attrs.frozen
class UnknownAllocationModeError(AllocationError):
    """A request's allocation mode is neither ExactCount nor All."""

    mode: str

    reason = "unknown-mode"

    def __str__(self) -> str:
        return f"{self._where()}unsupported allocation mode {self.mode!r}"


@attrs.frozen
class UnknownRequestError(AllocationError):
    """A request has neither ``exactly`` nor ``firstAvailable``."""

    reason = "unknown-request"

    def __str__(self) -> str:
        return f"{self._where()}neither exactly nor firstAvailable is set"


@attrs.frozen
class InvalidCountError(AllocationError):
    """An exact count is negative."""

    count: int

    reason = "invalid-count"

    def __str__(self) -> str:
        return f"{self._where()}count must not be negative, is {self.count}"


@attrs.frozen
class TooManyDevicesError(AllocationError):
    """Even the smallest choice of subrequests needs more devices than a claim may have."""

    needed: int
    limit: int

    reason = "too-many-devices"

    def __str__(self) -> str:
        return f"{self._where()}needs {self.needed} devices, a claim gets at most {self.limit}"


@attrs.frozen
class UnknownConstraintError(AllocationError):
    """A constraint is neither matchAttribute nor distinctAttribute."""

    index: int

    reason = "unknown-constraint"

    def __str__(self) -> str:
        return f"{self._where()}constraint #{self.index}: of an unknown kind"


@attrs.frozen
class AllBreaksConstraintError(AllocationError):
    """A request for all devices cannot have one of them because of a constraint."""

    device: str
    index: int

    reason = "all-breaks-constraint"

    def __str__(self) -> str:
        return (
            f"{self._where()}asks for all devices, but {self.device} "
            f"breaks constraint #{self.index} of the claim"
        )


@attrs.frozen
class SelectorFailedError(AllocationError):
    """A selector does not compile, or failed on a device.

    ``device_class`` is the class the selector belongs to ("" for the request's own),
    ``index`` its place there, ``device`` the device ("" when it does not compile),
    ``cause`` the error of the selector itself.
    """

    device_class: str
    index: int
    device: str
    cause: DraError

    @property
    def reason(self) -> str:  # type: ignore[override]
        """ "selector-runtime" or "selector-compile"."""
        return "selector-runtime" if self.device else "selector-compile"

    def __str__(self) -> str:
        owner = f"class {self.device_class}, " if self.device_class else ""
        where = f" on device {self.device}" if self.device else ""
        return f"{self._where()}{owner}selector #{self.index}{where}: {self.cause}"


@attrs.frozen
class NodeSelectorError(AllocationError):
    """A node selector of a slice (or of a device in it) cannot be used.

    ``slice_name`` is the ResourceSlice, ``device`` the device ("" for the slice's own).
    """

    slice_name: str
    device: str
    problem: str

    reason = "node-selector"

    def __str__(self) -> str:
        device = f", device {self.device}" if self.device else ""
        return (
            f"{self._where()}ResourceSlice {self.slice_name}{device}: nodeSelector: {self.problem}"
        )


@attrs.frozen
class ClaimError(DraError):
    """A claim that a pod (or a PodGroup) names cannot be used: the root of the reasons.

    ``kind`` is what names it ("Pod" or "PodGroup"), ``owner`` its "namespace/name",
    ``pod_claim`` the entry of its ``spec.resourceClaims``.
    """

    kind: str
    owner: str
    pod_claim: str

    def __str__(self) -> str:
        return f"{self.kind} {self.owner!r}: claim {self.pod_claim!r}: {self._problem()}"

    def _problem(self) -> str:
        return "cannot be used"


@attrs.frozen
class ClaimNotCreatedError(ClaimError):
    """The claim is generated from a template, and no status entry names it yet. Wait."""

    def _problem(self) -> str:
        return "not created from its template yet"


@attrs.frozen
class ClaimUnsupportedError(ClaimError):
    """The entry sets no field known here: it was made for a newer API."""

    def _problem(self) -> str:
        return "neither resourceClaimName nor resourceClaimTemplateName is set"


@attrs.frozen
class ClaimNotFoundError(ClaimError):
    """There is no claim of the name. ``claim`` is the name, without namespace."""

    claim: str

    def _problem(self) -> str:
        return f"ResourceClaim {self.claim!r} does not exist"


@attrs.frozen
class ClaimBeingDeletedError(ClaimError):
    """The claim is going away. ``claim`` is the name, without namespace."""

    claim: str

    def _problem(self) -> str:
        return f"ResourceClaim {self.claim!r} is being deleted"


@attrs.frozen
class ClaimNotOwnedError(DraError):
    """A generated claim belongs to something else, often an older pod of the same name.

    ``claim`` and ``owner`` are "namespace/name", ``uid`` is the owner's; ``kind`` is "Pod"
    or "PodGroup". ``problem`` says what differs: "namespace" or "controller".
    """

    kind: str
    owner: str
    uid: str
    claim: str
    problem: str

    def __str__(self) -> str:
        return (
            f"ResourceClaim {self.claim!r} was not generated for {self.kind} {self.owner!r} "
            f"(UID {self.uid}): another {self.problem}"
        )


@attrs.frozen
class NotExpressibleError(DraError, ValueError):
    """A version of the API has no place for something that an object holds.

    ``kind`` and ``name`` identify the object as in ``MalformedObjectError``, ``path`` is
    the field in the form of ``version``, ``problem`` what it cannot hold.
    """

    kind: str
    name: str
    path: str
    version: str
    problem: str

    def __str__(self) -> str:
        what = f"{self.kind} {self.name!r}" if self.name else self.kind
        return f"{what} cannot be written as {self.version}: {self.path}: {self.problem}"


@attrs.frozen
class PodGroupMismatchError(DraError, ValueError):
    """A PodGroup was given for a pod that does not name it. Both are "namespace/name"."""

    pod: str
    group: str

    def __str__(self) -> str:
        return f"Pod {self.pod!r} is not in PodGroup {self.group!r}"


@attrs.frozen
class DuplicateConsumerError(DraError, ValueError):
    """``status.reservedFor`` of ``claim`` ("namespace/name") lists a UID more than once."""

    claim: str
    uid: str

    def __str__(self) -> str:
        return f"ResourceClaim {self.claim!r}: reservedFor has UID {self.uid!r} more than once"


@attrs.frozen
class ClaimFullError(DraError):
    """A claim ("namespace/name") is reserved for as many consumers as ``limit`` allows."""

    claim: str
    limit: int

    def __str__(self) -> str:
        return f"ResourceClaim {self.claim!r} is reserved for {self.limit} consumers already"


@attrs.frozen
class PatchError(DraError, ValueError):
    """A change of a claim ("namespace/name") was asked for that cannot be expressed.

    ``problem`` says what the copy at hand lacks.
    """

    claim: str
    problem: str

    def __str__(self) -> str:
        return f"ResourceClaim {self.claim!r}: {self.problem}"


@attrs.frozen
class RegexError(DraError, ValueError):
    """A pattern is not an RE2 regular expression, or is too large to compile.

    ``pattern`` is the whole pattern, ``position`` the index of the code point at
    which the offending part begins, ``problem`` what is wrong there.
    """

    pattern: str
    position: int
    problem: str

    def __str__(self) -> str:
        return f"invalid regular expression {self.pattern!r}: {self.problem} at {self.position}"


@attrs.frozen
class CelValueError(DraError, ValueError):
    """A value of the CEL libraries cannot be built, or an operation has no result.

    ``problem`` says what is wrong, with the offending input in it where there is one.
    """

    problem: str

    def __str__(self) -> str:
        return self.problem


@attrs.frozen
class TemplateNotFoundError(ClaimError):
    """There is no ResourceClaimTemplate of the name ``template``, without namespace."""

    template: str

    def _problem(self) -> str:
        return f"ResourceClaimTemplate {self.template!r} does not exist"


@attrs.frozen
class ReadInOtherVersionError(DraError, ValueError):
    """A whole object was to be written in another API version than it was read in.

    Fields unknown to this library cannot be converted and would be lost. ``kind`` and
    ``name`` identify the object, ``read_in`` and ``wanted`` are the versions. Read the
    object in the wanted version, or write it in the one that it was read in.
    """

    kind: str
    name: str
    read_in: str
    wanted: str

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.name!r} was read as {self.read_in} and cannot be written as "
            f"{self.wanted} without losing fields"
        )


@attrs.frozen
class SelectorCompileError(DraError, ValueError):
    """An expression is no valid selector.

    ``line`` and ``column`` count from 1, columns in code points.
    """

    expression: str
    line: int
    column: int
    problem: str

    def __str__(self) -> str:
        return (
            f"selector does not compile: {self.problem} "
            f"(line {self.line}, column {self.column} of {_shortened(self.expression)})"
        )


@attrs.frozen
class SelectorEvaluationError(DraError):
    """A selector failed on a device.

    ``line`` and ``column`` count from 1; ``hint`` is advice, "" without any. ``cost`` is
    what the evaluation had cost until then, in the reference's units, -1 where that was
    not counted.
    """

    expression: str
    line: int
    column: int
    problem: str
    hint: str = ""
    cost: int = -1

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return (
            f"selector failed: {self.problem}{hint} "
            f"(line {self.line}, column {self.column} of {_shortened(self.expression)})"
        )


def _shortened(expression: str) -> str:
    """The expression for a message: quoted, long ones cut."""
    return repr(expression if len(expression) <= 200 else expression[:200] + "…")
