"""Which parameters a claim and its class mean.

What may live here: the store of parameter objects with its indexes, and the look-up.

A reference of the API's own kind names the parameters. Any other one names an object of
a vendor, which a controller of the vendor translates: the result says in
``generatedFrom`` what it was made from. Such a reference is looked up with its
*namespace*: the same text in two namespaces means two objects. For a claim it is the
claim's namespace, in which its parameters have to be; for a class the namespace is part
of the reference.
"""

from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, TypeVar

import attrs

from dra_core.api.core import ObjectMeta
from dra_core.api.names import ObjectKey
from dra_core.api.wire_versions import RESOURCE_GROUP
from dra_core.v1alpha2.claims import ResourceClaim
from dra_core.v1alpha2.errors import ParametersNotFoundError, SeveralParametersError
from dra_core.v1alpha2.objects import (
    DriverRequests,
    ParametersReference,
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceRequest,
)

CLAIM_PARAMETERS: Final = "ResourceClaimParameters"
CLASS_PARAMETERS: Final = "ResourceClassParameters"

DEFAULT_CLASS_PARAMETERS: Final = ResourceClassParameters()
"""Those of a class without reference: no filters."""


def default_claim_parameters(driver: str) -> ResourceClaimParameters:
    """Those of a claim without reference: shareable, one instance of the class's driver."""
    request = ResourceRequest(selector="true")
    return ResourceClaimParameters(
        shareable=True, driver_requests=(DriverRequests(driver, requests=(request,)),)
    )


class Origin(NamedTuple):
    """A reference with its namespace: what ``generatedFrom`` is looked up by."""

    namespace: str
    api_group: str
    kind: str
    name: str


def _origin(reference: ParametersReference, namespace: str) -> Origin:
    return Origin(namespace, reference.api_group, reference.kind, reference.name)


def origin_of(parameters: ResourceClaimParameters | ResourceClassParameters) -> Origin | None:
    """What an object was generated from; ``None`` if it was written as it is."""
    reference = parameters.generated_from
    if reference is None:
        return None
    if isinstance(parameters, ResourceClassParameters):
        return _origin(reference, reference.namespace)
    return _origin(reference, parameters.metadata.namespace)


def uses_claim_parameters(claim: ResourceClaim, parameters: ResourceClaimParameters) -> bool:
    """Whether the claim's reference means this object, directly or as what it was made from."""
    reference = claim.spec.parameters_ref
    if reference is None:
        return False
    if _is_direct(reference, CLAIM_PARAMETERS):
        return parameters.metadata.key == ObjectKey(claim.namespace, reference.name)
    return _origin(reference, claim.namespace) == origin_of(parameters)


def uses_class_parameters(
    resource_class: ResourceClass, parameters: ResourceClassParameters
) -> bool:
    """The same for a class."""
    reference = resource_class.parameters_ref
    if reference is None:
        return False
    if _is_direct(reference, CLASS_PARAMETERS):
        return parameters.metadata.key == ObjectKey(reference.namespace, reference.name)
    return _origin(reference, reference.namespace) == origin_of(parameters)


def _is_direct(reference: ParametersReference, kind: str) -> bool:
    return (reference.api_group, reference.kind) == (RESOURCE_GROUP, kind)


P = TypeVar("P", ResourceClaimParameters, ResourceClassParameters)


class _Objects(Generic[P]):
    """The parameter objects of one kind, by name and by origin."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.by_key: dict[ObjectKey, P] = {}
        self.by_origin: dict[Origin, dict[ObjectKey, None]] = {}

    def put(self, obj: P) -> None:
        key = obj.metadata.key
        self.remove(key)
        self.by_key[key] = obj
        origin = origin_of(obj)
        if origin is not None:
            self.by_origin.setdefault(origin, {})[key] = None

    def remove(self, key: ObjectKey) -> None:
        obj = self.by_key.pop(key, None)
        origin = None if obj is None else origin_of(obj)
        if origin is None:
            return
        keys = self.by_origin[origin]
        del keys[key]
        if not keys:
            del self.by_origin[origin]

    def find(self, claim: str, reference: ParametersReference, namespace: str) -> P:
        """The one object that the reference means. ``claim`` is for the error."""
        shown = str(attrs.evolve(reference, namespace=namespace))
        if _is_direct(reference, self.kind):
            obj = self.by_key.get(ObjectKey(namespace, reference.name))
            if obj is None:
                name = str(ObjectKey(namespace, reference.name))
                raise ParametersNotFoundError(claim, "", name, self.kind, generated=False)
            return obj
        keys = self.by_origin.get(_origin(reference, namespace), {})
        if not keys:
            raise ParametersNotFoundError(claim, "", shown, self.kind, generated=True)
        if len(keys) > 1:
            found = tuple(sorted(map(str, keys)))
            raise SeveralParametersError(claim, "", self.kind, shown, found)
        return self.by_key[next(iter(keys))]

    def check(self) -> None:
        expected: dict[Origin, set[ObjectKey]] = {}
        for key, obj in self.by_key.items():
            origin = origin_of(obj)
            if obj.metadata.key != key:
                raise AssertionError(f"{obj.metadata.key} is stored as {key}")
            if origin is not None:
                expected.setdefault(origin, set()).add(key)
        if {origin: set(keys) for origin, keys in self.by_origin.items()} != expected:
            raise AssertionError(f"index {self.by_origin} is not {expected}")


Parameters = ResourceClaimParameters | ResourceClassParameters


@attrs.frozen
class FoundParameters:
    """The parameters of a claim and of its class."""

    of_class: ResourceClassParameters
    of_claim: ResourceClaimParameters


class ParameterStore:
    """All parameter objects of a cluster, kept up to date one change at a time.

    A look-up costs O(1), a change O(1). Not safe to change while another thread looks
    something up; ``changed`` can be attached to an ``AssumeCache`` or called by a handler.
    """

    def __init__(self, objects: Iterable[Parameters] = ()) -> None:
        self._claims: _Objects[ResourceClaimParameters] = _Objects(CLAIM_PARAMETERS)
        self._classes: _Objects[ResourceClassParameters] = _Objects(CLASS_PARAMETERS)
        for obj in objects:
            self.put(obj)

    def put(self, obj: Parameters) -> None:
        """Add an object, or replace the one of its name."""
        if isinstance(obj, ResourceClaimParameters):
            self._claims.put(obj)
        else:
            self._classes.put(obj)

    def remove(self, obj: Parameters) -> None:
        """Remove the object of that kind and name, whatever is in it; none is fine."""
        if isinstance(obj, ResourceClaimParameters):
            self._claims.remove(obj.metadata.key)
        else:
            self._classes.remove(obj.metadata.key)

    def changed(self, old: Parameters | None, new: Parameters | None) -> None:
        """An object was added (no ``old``), replaced, or deleted (no ``new``)."""
        if new is not None:
            self.put(new)
        elif old is not None:
            self.remove(old)

    def of_class(
        self, resource_class: ResourceClass, claim: ObjectMeta | None = None
    ) -> ResourceClassParameters:
        """The parameters of a class. ``claim`` is named in errors.

        Raises ``ParametersNotFoundError`` (wait) and ``SeveralParametersError``.
        """
        reference = resource_class.parameters_ref
        if reference is None:
            return DEFAULT_CLASS_PARAMETERS
        name = "" if claim is None else str(claim.key)
        return self._classes.find(name, reference, reference.namespace)

    def of_claim(
        self, claim: ResourceClaim, resource_class: ResourceClass
    ) -> ResourceClaimParameters:
        """The parameters of a claim; ``resource_class`` gives the driver of the default.

        Raises ``ParametersNotFoundError`` (wait) and ``SeveralParametersError``.
        """
        reference = claim.spec.parameters_ref
        if reference is None:
            return default_claim_parameters(resource_class.driver_name)
        return self._claims.find(str(claim.metadata.key), reference, claim.namespace)

    def find(self, claim: ResourceClaim, resource_class: ResourceClass) -> FoundParameters:
        """Both, the class's first: what is missing first is the reason to wait."""
        return FoundParameters(
            self.of_class(resource_class, claim.metadata), self.of_claim(claim, resource_class)
        )

    def _check(self) -> None:
        """Raise AssertionError unless the indexes are what the objects say."""
        self._claims.check()
        self._classes.check()
