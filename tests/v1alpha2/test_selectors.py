"""Selectors over attributes by type."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_core.errors import SelectorCompileError, SelectorEvaluationError
from dra_core.v1alpha2.objects import Attribute, Instance
from dra_core.v1alpha2.selectors import InstanceReader, InstanceSelectors, InstanceView
from dra_core.values.quantity import Quantity

WHOLE = Instance(
    "gpu-0",
    (
        Attribute("memory", quantity_value=Quantity.parse("40Gi")),
        Attribute("ecc", bool_value=True),
        Attribute("cores", int_value=7),
        Attribute("links", int_slice_value=(1, 2, 3)),
        Attribute("model", string_value="a100"),
        Attribute("modes", string_slice_value=("full", "mig")),
        Attribute("driver", version_value="1.10.0-rc.1+b5"),
        Attribute("none", string_slice_value=()),
        Attribute("off", bool_value=False),
        Attribute("zero", int_value=0),
    ),
)


def view(*attributes: Attribute) -> InstanceView:
    return InstanceReader().view(Instance("x", attributes))


VIEW = InstanceReader().view(WHOLE)


COMPILED = InstanceSelectors()


def result(expression: str, instance: InstanceView = VIEW) -> bool:
    """The result, the same by every way to get it."""
    selector = COMPILED.compile(expression)
    found = selector.matches(instance)
    assert selector.evaluate(instance)[0] is found
    assert selector.matching([instance], 1) == (int(found), 0)
    assert selector.matching([instance], 0) == (0, 0)
    return found


@pytest.mark.parametrize(
    "expression",
    [
        "true",
        'attributes.quantity["memory"].isGreaterThan(quantity("39Gi"))',
        'attributes.quantity["memory"] == quantity("40960Mi")',
        'attributes.bool["ecc"]',
        "attributes.bool.ecc && !attributes.bool.off",
        'attributes.int["cores"] > 6 && attributes.int["zero"] == 0',
        'attributes.intslice["links"].isSorted() && attributes.intslice["links"].indexOf(3) == 2',
        'attributes.string["model"] == "a100"',
        'attributes.string["model"].startsWith("a")',
        'attributes.stringslice["modes"].exists(m, m == "mig")',
        'size(attributes.stringslice["none"]) == 0',
        'attributes.version["driver"].isGreaterThan(semver("1.9.0"))',
        'attributes.version["driver"] == semver("1.10.0-rc.1")',
        'attributes.version["driver"].major() == 1',
        'isSemver("1.2.3") && !isSemver("1.2")',
        '"cores" in attributes.int && !("cores" in attributes.string)',
        "has(attributes.int.cores) && !has(attributes.int.model)",
        'attributes.string[?"no"].orValue("x") == "x"',
        "attributes.string.?no.hasValue() == false",
        'attributes.string.exists(name, name == "model")',
        'attributes.string.exists(name, value, name == "model" && value == "a100")',
        "size(attributes.bool) == 2 && size(attributes.int) == 2",
        'attributes.int[["cores"][0]] == 7',
        'cel.bind(s, attributes.string, s["model"] == "a100")',
        'attributes.int["cores"] in attributes.intslice["links"] || true',
        '!attributes.bool["no"] || true',
    ],
)
def test_attributes_are_read_by_type(expression: str) -> None:
    """Seven maps, one per type; a look-up gives a value of that type."""
    assert result(expression) is True


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("attributes", "not known"),
        ('attributes["a"] == "b"', "not known"),
        ("attributes.unknown", "not known"),
        ('device.attributes["d"].a == "b"', "not known"),
        ('attributes.string["model"]', "not a bool"),
        ('attributes.int["cores"]', "not a bool"),
        ("dyn(true)", "not a bool"),
        ('dyn(attributes.bool["ecc"])', "not a bool"),
        ('attributes.string["model"] == 1', "=="),
        ("attributes.string[1] == 'a'", "[]"),
        ('attributes.quantity["memory"] > quantity("1")', ">"),
        ('attributes.version["driver"] == "1.2.3"', "=="),
        ('semver("v1.2", true) == semver("1.2.0")', "semver"),
        ('isSemver("v1.2", true)', "isSemver"),
        ("", "expression"),
        ("?!", ""),
    ],
)
def test_what_does_not_compile(expression: str, problem: str) -> None:
    """Types are known, so that what makes no sense does not compile; ``attributes`` alone and
    lenient versions are unknown, and the result has to be known to be a bool."""
    with pytest.raises(SelectorCompileError, match="does not compile") as caught:
        InstanceSelectors().compile(expression)
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ('attributes.string["no"] == "x"', "no such key: 'no'"),
        ('attributes.string["cores"] == "x"', "no such key: 'cores'"),
        ("attributes.bool.no", "no such key: 'no'"),
        ('attributes.quantity["no"].isGreaterThan(quantity("0"))', "no such key: 'no'"),
        ('attributes.int["zero"] == 1 / attributes.int["zero"]', "division by zero"),
        ('attributes.version["driver"] == semver("v1.2.3")', "not a semantic version"),
        ('attributes.version["driver"] == semver("1.2")', "not a semantic version"),
        ('attributes.quantity["memory"] == quantity("1K")', "invalid quantity"),
    ],
)
def test_what_fails_on_an_instance(expression: str, problem: str) -> None:
    """A name that is missing is an error: no default is made up. Versions are strict."""
    selector = InstanceSelectors().compile(expression)
    for evaluate in (selector.matches, selector.evaluate):
        with pytest.raises(SelectorEvaluationError) as caught:
            evaluate(VIEW)
        assert problem in caught.value.problem
        assert caught.value.expression == expression
    assert selector.matching([VIEW, view()], 3) == (0, 3)


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        (Attribute("a"), "attribute 'a' has no value"),
        (Attribute("a", version_value="v1"), "attribute 'a': not a semantic version: 'v1'"),
    ],
)
@pytest.mark.parametrize("expression", ["true", '[attributes.int["cores"]].size() == 1'])
def test_faulty_attributes_make_every_selector_fail(
    expression: str, attribute: Attribute, problem: str
) -> None:
    """An attribute without value or with a malformed version: even ``true`` is an error.

    So it is for a selector that counts its costs, whose errors are made elsewhere.
    """
    faulty = view(Attribute("b", bool_value=True), attribute, Attribute("c"))
    selector = InstanceSelectors().compile(expression)
    for evaluate in (selector.matches, selector.evaluate):
        with pytest.raises(SelectorEvaluationError) as caught:
            evaluate(faulty)
        assert caught.value.problem == problem
        assert (caught.value.line, caught.value.column) == (1, 1)
    assert selector.matching([VIEW, faulty], 3) == (1, 2)


def test_an_attribute_with_two_values_has_both() -> None:
    """The API forbids it; where it happens the attribute is in both maps, as in the reference."""
    both = view(Attribute("a", int_value=1, string_value="x"))
    assert result('attributes.int["a"] == 1 && attributes.string["a"] == "x"', both)


def test_costs_are_limited() -> None:
    """An expensive expression ends with an error, whatever the instance has."""
    ints = tuple(range(2_000))
    big = view(Attribute("many", int_slice_value=ints))
    nested = 'attributes.intslice["many"].all(a, attributes.intslice["many"].all(b, a + b >= 0))'
    selector = InstanceSelectors().compile(nested)
    with pytest.raises(SelectorEvaluationError, match="cost"):
        selector.matches(big)
    assert result(nested, view(Attribute("many", int_slice_value=(1, 2))))


def test_the_cache_is_bounded() -> None:
    """The last expressions are kept, with the errors of those that do not compile."""
    selectors = InstanceSelectors(max_entries=2)
    first = selectors.compile("true")
    assert selectors.compile("true") is first
    selectors.compile("false")
    with pytest.raises(SelectorCompileError):
        selectors.compile("1")
    assert len(selectors) == 2
    assert selectors.compile("true") is not first


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "quantity_value": st.sampled_from(["1", "2Gi", "500m"]).map(Quantity.parse),
    "bool_value": st.booleans(),
    "int_value": st.integers(-2, 2),
    "int_slice_value": st.lists(st.integers(-2, 2), max_size=3).map(tuple),
    "string_value": st.sampled_from(["", "x", "y"]),
    "string_slice_value": st.lists(st.sampled_from(["x", "y"]), max_size=3).map(tuple),
    "version_value": st.sampled_from(["1.0.0", "2.0.0-a"]),
}
MAPS = {
    "quantity_value": "quantity",
    "bool_value": "bool",
    "int_value": "int",
    "int_slice_value": "intslice",
    "string_value": "string",
    "string_slice_value": "stringslice",
    "version_value": "version",
}


@st.composite
def attributes(draw: st.DrawFn) -> list[Attribute]:
    names = draw(st.lists(st.sampled_from("abcd"), unique=True))
    members = [draw(st.sampled_from(sorted(VALUES))) for _ in names]
    return [
        Attribute(name, **{member: draw(VALUES[member])})
        for name, member in zip(names, members, strict=True)
    ]


@given(attributes())
def test_names_are_found_in_the_map_of_their_type_only(given_attributes: list[Attribute]) -> None:
    """``in`` and ``has`` say for each map exactly which attributes have that type."""
    instance = view(*given_attributes)
    for member, name in MAPS.items():
        there = {a.name for a in given_attributes if getattr(a, member) is not None}
        for letter in "abcd":
            assert result(f'"{letter}" in attributes.{name}', instance) is (letter in there)
            assert result(f"has(attributes.{name}.{letter})", instance) is (letter in there)
        assert result(f"size(attributes.{name}) == {len(there)}", instance)
