"""What may be wrong with a claim of v1alpha2, its class, and their parameters.

What may live here: exception types only, by the rules of ``dra_core.errors``. Errors of
the kind ``MissingObjectError`` say "not yet": the pod waits and is woken when the object
appears. All others end the attempt for the pod, on every node.
"""

import attrs

from dra_core.errors import AllocationError


@attrs.frozen
class MissingObjectError(AllocationError):
    """Something that the claim needs does not exist yet. Wait for it. ``name`` says what."""

    name: str

    reason = "missing-object"

    def __str__(self) -> str:
        return f"{self._where()}{self.name} does not exist"


@attrs.frozen
class ResourceClassNotFoundError(MissingObjectError):
    """There is no resource class of the name."""

    reason = "class-not-found"

    def __str__(self) -> str:
        return f"{self._where()}resource class {self.name!r} does not exist"


@attrs.frozen
class ParametersNotFoundError(MissingObjectError):
    """There are no parameters for a reference: ``name`` is the reference.

    ``kind`` is what was looked for, ResourceClassParameters or ResourceClaimParameters;
    ``generated`` whether by ``generatedFrom``.
    """

    kind: str
    generated: bool

    reason = "parameters-not-found"

    def __str__(self) -> str:
        how = f"generated from {self.name}" if self.generated else self.name
        return f"{self._where()}no {self.kind} {how} yet"


@attrs.frozen
class SeveralParametersError(AllocationError):
    """Several objects were generated from one reference. ``found`` are their names, sorted."""

    kind: str
    name: str
    found: tuple[str, ...]

    reason = "several-parameters"

    def __str__(self) -> str:
        found = ", ".join(self.found)
        return f"{self._where()}several {self.kind} are generated from {self.name}: {found}"


@attrs.frozen
class UnknownModelError(AllocationError):
    """Parameters are of a structured model that is not known here.

    ``owner`` is the object, ``path`` the field in it that should have ``namedResources``.
    """

    owner: str
    path: str

    reason = "unknown-model"

    def __str__(self) -> str:
        return f"{self._where()}{self.owner}: {self.path}: of an unknown structured model"


@attrs.frozen
class SuitableNodesError(AllocationError):
    """The node selector of a class cannot be used."""

    resource_class: str
    problem: str

    reason = "node-selector"

    def __str__(self) -> str:
        return f"{self._where()}class {self.resource_class}: suitableNodes: {self.problem}"


@attrs.frozen
class NotStructuredError(AllocationError):
    """The class has no structured parameters: a control plane controller allocates.

    ``driver`` is whose controller.
    """

    resource_class: str
    driver: str

    reason = "other-controller"

    def __str__(self) -> str:
        return (
            f"{self._where()}class {self.resource_class}: is allocated by the controller "
            f"of {self.driver}"
        )
