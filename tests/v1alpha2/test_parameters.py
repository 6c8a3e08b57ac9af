"""Which parameters a claim and its class mean, and that the store keeps up."""

import pickle
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.api.names import ObjectKey
from dra_core.scheduling.assume_cache import AssumeCache
from dra_core.v1alpha2 import wire
from dra_core.v1alpha2.claims import ResourceClaim
from dra_core.v1alpha2.errors import (
    MissingObjectError,
    ParametersNotFoundError,
    SeveralParametersError,
)
from dra_core.v1alpha2.objects import (
    DriverRequests,
    ParametersReference,
    ResourceClaimParameters,
    ResourceClass,
    ResourceClassParameters,
    ResourceRequest,
)
from dra_core.v1alpha2.parameters import (
    FoundParameters,
    ParameterStore,
    uses_claim_parameters,
    uses_class_parameters,
)
from support import named_json as objects

Json = dict[str, Any]
Parameters = ResourceClaimParameters | ResourceClassParameters


def a_class(**members: Any) -> ResourceClass:
    return wire.decode_resource_class(objects.class_json(**members))


def of_claim(name: str, namespace: str = "ns", **members: Any) -> ResourceClaimParameters:
    return wire.decode_claim_parameters(objects.claim_parameters_json(name, namespace, **members))


def of_class(name: str, namespace: str = "ns", **members: Any) -> ResourceClassParameters:
    return wire.decode_class_parameters(objects.class_parameters_json(name, namespace, **members))


def a_claim(reference: Json | None = None, namespace: str = "ns") -> ResourceClaim:
    return objects.claim(namespace=namespace, parameters=reference)


# --- defaults ----------------------------------------------------------------------------


def test_missing_parameters_crash_has_a_default() -> None:
    """No parameters at all: shareable, one request ``true`` to the class's driver.

    The reference assumed that there are parameters and that they have a request, and
    crashed in the scheduler where neither claim nor class refers to any.
    """
    found = ParameterStore().find(a_claim(), a_class(driver="gpu.example.com"))
    request = ResourceRequest(selector="true")
    assert found.of_claim == ResourceClaimParameters(
        shareable=True, driver_requests=(DriverRequests("gpu.example.com", requests=(request,)),)
    )
    assert found.of_class == ResourceClassParameters()


# --- direct references -------------------------------------------------------------------


def test_a_direct_reference_names_the_object() -> None:
    """Group resource.k8s.io and the kind of parameters: the object in the claim's namespace,
    and for a class in the reference's."""
    wanted, elsewhere = of_claim("p", shareable=True), of_claim("p", "other")
    class_wanted = of_class("p", "far")
    store = ParameterStore([elsewhere, wanted, of_class("p"), class_wanted])
    claim = a_claim(objects.direct("ResourceClaimParameters", "p"))
    resource_class = a_class(parametersRef=objects.direct("ResourceClassParameters", "p", "far"))
    found = store.find(claim, resource_class)
    assert found == FoundParameters(class_wanted, wanted)


@pytest.mark.parametrize(
    "reference",
    [
        objects.direct("ResourceClassParameters", "p"),
        {"apiGroup": "", "kind": "ResourceClaimParameters", "name": "p"},
        {"apiGroup": "gpu.example.com", "kind": "ResourceClaimParameters", "name": "p"},
        {"apiGroup": "resource.k8s.io", "kind": "ConfigMap", "name": "p"},
    ],
)
def test_other_references_are_no_direct_ones(reference: Json) -> None:
    """Both group and kind make a reference direct; any other is looked up by its origin."""
    store = ParameterStore([of_claim("p"), of_claim("q", generatedFrom=reference)])
    assert store.of_claim(a_claim(reference), a_class()).metadata.name == "q"


# --- generated parameters ----------------------------------------------------------------


def test_generated_parameters_are_found_by_their_origin() -> None:
    """Any other reference means the one object whose generatedFrom equals it."""
    reference = objects.vendor("x", kind="GpuConfig", group="gpu.example.com")
    others = [
        of_claim(f"other-{index}", generatedFrom=other)
        for index, other in enumerate(
            [
                objects.vendor("y", kind="GpuConfig", group="gpu.example.com"),
                objects.vendor("x", kind="Other", group="gpu.example.com"),
                objects.vendor("x", kind="GpuConfig"),
            ]
        )
    ]
    store = ParameterStore([*others, of_claim("p", generatedFrom=reference)])
    assert store.of_claim(a_claim(reference), a_class()).metadata.name == "p"


def test_one_reference_in_eight_namespaces_never_meets() -> None:
    """Equal references in different namespaces mean different objects.

    The reference's index left the namespace out: eight namespaces with a ConfigMap
    ``parameters-3`` each made "multiple generated claim parameters" of them.
    """
    namespaces = [
        "dra-4729", "dra-7328", "dra-8794", "dra-3402", "dra-6156", "dra-1839", "dra-7434",
        "dra-6504",
    ]  # fmt: skip
    reference = objects.vendor("parameters-3")
    store = ParameterStore(
        of_claim("parameters-4", namespace, generatedFrom=reference) for namespace in namespaces
    )
    for namespace in namespaces:
        found = store.of_claim(a_claim(reference, namespace), a_class())
        assert found.metadata.key == (namespace, "parameters-4")
    with pytest.raises(ParametersNotFoundError):
        store.of_claim(a_claim(reference, "dra-0"), a_class())


def test_the_namespace_of_a_class_reference_counts() -> None:
    """For a class the namespace is the reference's own, wherever its parameters are."""
    near, far = objects.vendor("x", "near"), objects.vendor("x", "far")
    store = ParameterStore(
        [
            of_class("p", "somewhere", generatedFrom=near),
            of_class("q", "somewhere", generatedFrom=far),
        ]
    )
    assert store.of_class(a_class(parametersRef=near)).metadata.name == "p"
    assert store.of_class(a_class(parametersRef=far)).metadata.name == "q"
    with pytest.raises(ParametersNotFoundError):
        store.of_class(a_class(parametersRef=objects.vendor("x")))


@pytest.mark.parametrize(
    ("reference", "name", "generated"),
    [
        (objects.direct("ResourceClaimParameters", "p"), "ns/p", False),
        (objects.vendor("x"), "ConfigMap ns/x", True),
        (objects.vendor("x", group="a.b", kind="K"), "K.a.b ns/x", True),
    ],
)
def test_nothing_found_means_wait(reference: Json, name: str, generated: bool) -> None:
    """None is no fault of anybody: an error that says what is waited for."""
    store = ParameterStore([of_claim("p", "other"), of_claim("q", generatedFrom=None)])
    with pytest.raises(ParametersNotFoundError) as caught:
        store.of_claim(a_claim(reference), a_class())
    error = caught.value
    assert isinstance(error, MissingObjectError)
    assert (error.claim, error.name) == ("ns/claim", name)
    assert (error.kind, error.generated) == ("ResourceClaimParameters", generated)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_several_found_is_an_error_that_lists_them_sorted() -> None:
    """More than one is an error, told apart from none, with all of them in order."""
    reference = objects.vendor("x", "ns")
    store = ParameterStore(
        of_class(name, namespace, generatedFrom=reference)
        for namespace, name in [("b", "p"), ("a", "z"), ("a", "b")]
    )
    with pytest.raises(SeveralParametersError) as caught:
        store.find(a_claim(), a_class(parametersRef=reference))
    error = caught.value
    assert not isinstance(error, MissingObjectError)
    assert error.found == ("a/b", "a/z", "b/p")
    assert str(error) == (
        "claim ns/claim: several ResourceClassParameters are generated from ConfigMap ns/x: "
        "a/b, a/z, b/p"
    )


def test_the_class_is_looked_up_first() -> None:
    """Class parameters are looked up before claim parameters: the first missing is the reason."""
    reference = objects.vendor("x", "ns")
    store = ParameterStore()
    claim, resource_class = a_claim(objects.vendor("y")), a_class(parametersRef=reference)
    with pytest.raises(ParametersNotFoundError) as caught:
        store.find(claim, resource_class)
    assert caught.value.kind == "ResourceClassParameters"
    store.put(of_class("p", generatedFrom=reference))
    with pytest.raises(ParametersNotFoundError) as caught:
        store.find(claim, resource_class)
    assert caught.value.kind == "ResourceClaimParameters"
    store.put(of_claim("p", generatedFrom=objects.vendor("y")))
    assert store.find(claim, resource_class).of_claim.metadata.name == "p"


# --- keeping up --------------------------------------------------------------------------


def test_an_object_moves_with_its_origin() -> None:
    """A changed origin is found under the new reference, no more under the old one."""
    store = ParameterStore([of_claim("p", generatedFrom=objects.vendor("x"))])
    store.changed(None, of_claim("p", generatedFrom=objects.vendor("y")))
    assert store.of_claim(a_claim(objects.vendor("y")), a_class()).metadata.name == "p"
    with pytest.raises(ParametersNotFoundError):
        store.of_claim(a_claim(objects.vendor("x")), a_class())
    store.changed(of_claim("p"), None)
    with pytest.raises(ParametersNotFoundError):
        store.of_claim(a_claim(objects.vendor("y")), a_class())
    store._check()


def test_a_cache_keeps_the_store_up_to_date() -> None:
    """The store can follow an assume cache of each kind."""
    store = ParameterStore()
    errors: list[object] = []
    claims = AssumeCache(ResourceClaimParameters, errors.append)
    claims.attach(store.changed)
    obj = objects.claim_parameters_json("p", generatedFrom=objects.vendor("x"))
    obj["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    claims.observe(wire.decode_claim_parameters(obj))
    assert store.of_claim(a_claim(objects.vendor("x")), a_class()).metadata.name == "p"
    claims.observe_delete(wire.decode_claim_parameters(obj))
    with pytest.raises(ParametersNotFoundError):
        store.of_claim(a_claim(objects.vendor("x")), a_class())
    assert errors == []


NAMESPACES = st.sampled_from(["a", "b"])
ORIGINS = st.none() | st.builds(
    lambda kind, name, namespace: ParametersReference("", kind, name, namespace),
    st.sampled_from(["K", "L"]),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["", "a", "b"]),
)


@st.composite
def parameters(draw: st.DrawFn) -> Parameters:
    origin, name, namespace = draw(ORIGINS), draw(st.sampled_from("pq")), draw(NAMESPACES)
    if draw(st.booleans()):
        made = None if origin is None else objects.vendor(origin.name, "", origin.kind)
        return of_claim(name, namespace, generatedFrom=made)
    made = None if origin is None else objects.vendor(origin.name, origin.namespace, origin.kind)
    return of_class(name, namespace, generatedFrom=made)


@given(st.lists(st.tuples(st.booleans(), parameters())), NAMESPACES, ORIGINS)
def test_changes_lead_to_what_was_built_at_once(
    changes: list[tuple[bool, Parameters]], namespace: str, origin: ParametersReference | None
) -> None:
    """After any changes the store answers as one built from what is left, and as a scan does."""
    store, left = ParameterStore(), dict[Any, Parameters]()
    for removed, obj in changes:
        key = (type(obj), obj.metadata.key)
        if removed:
            store.changed(obj, None)
            left.pop(key, None)
        else:
            store.changed(left.get(key), obj)
            left[key] = obj
        store._check()
    claim, resource_class = a_claim(None, namespace), a_class()
    if origin is not None:
        claim = a_claim(objects.vendor(origin.name, "", origin.kind), namespace)
        of_origin = objects.vendor(origin.name, origin.namespace, origin.kind)
        resource_class = a_class(parametersRef=of_origin)
    answers = _answers(store, claim, resource_class)
    assert answers == _answers(ParameterStore(left.values()), claim, resource_class)
    if origin is not None:
        assert answers == _scan(left.values(), claim, resource_class)


Answers = list[ObjectKey | int]
"""The name of what is found for the class and for the claim, or how many there are."""


def _answers(store: ParameterStore, claim: ResourceClaim, resource_class: ResourceClass) -> Answers:
    def of(look_up: Callable[[], Parameters]) -> ObjectKey | int:
        try:
            return look_up().metadata.key
        except ParametersNotFoundError:
            return 0
        except SeveralParametersError as error:
            return len(error.found)

    return [
        of(lambda: store.of_class(resource_class)),
        of(lambda: store.of_claim(claim, resource_class)),
    ]


def _scan(
    left: Iterable[Parameters], claim: ResourceClaim, resource_class: ResourceClass
) -> Answers:
    found: list[list[ObjectKey]] = [[], []]
    for obj in left:
        if isinstance(obj, ResourceClassParameters):
            if uses_class_parameters(resource_class, obj):
                found[0].append(obj.metadata.key)
        elif uses_claim_parameters(claim, obj):
            found[1].append(obj.metadata.key)
    return [keys[0] if len(keys) == 1 else len(keys) for keys in found]
