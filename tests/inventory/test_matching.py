"""Node selectors: which nodes they mean, and which of them are errors."""

import pytest

from dra_core.api.core import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
)
from dra_core.inventory.matching import NodeSelectorProblem, compile_node_selector

NODE = Node(ObjectMeta(name="n1", labels={"zone": "west", "size": "7", "word": "x", "empty": ""}))


def labels(*requirements: NodeSelectorRequirement) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(match_expressions=requirements),))


def fields(*requirements: NodeSelectorRequirement) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(match_fields=requirements),))


def need(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key, operator, values)


def matches(selector: NodeSelector) -> bool:
    return compile_node_selector(selector).matches(NODE)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (need("zone", "In", "east", "west"), True),
        (need("zone", "In", "east"), False),
        (need("absent", "In", "east"), False),
        (need("empty", "In", ""), True),
        (need("zone", "NotIn", "east"), True),
        (need("zone", "NotIn", "west"), False),
        (need("absent", "NotIn", "west"), True),
        (need("zone", "Exists"), True),
        (need("absent", "Exists"), False),
        (need("zone", "DoesNotExist"), False),
        (need("absent", "DoesNotExist"), True),
        (need("size", "Gt", "6"), True),
        (need("size", "Gt", "7"), False),
        (need("size", "Lt", "8"), True),
        (need("size", "Lt", "7"), False),
        (need("word", "Gt", "1"), False),
        (need("word", "Lt", "1"), False),
        (need("absent", "Gt", "1"), False),
        (need("example.com/zone", "DoesNotExist"), True),
    ],
)
def test_label_operators(requirement: NodeSelectorRequirement, expected: bool) -> None:
    """Each operator on labels; a label that is no integer never compares."""
    assert matches(labels(requirement)) is expected


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (need("metadata.name", "In", "n1"), True),
        (need("metadata.name", "In", "n2"), False),
        (need("metadata.name", "NotIn", "n2"), True),
        (need("metadata.name", "NotIn", "n1"), False),
        (need("metadata.uid", "In", "n1"), False),
        (need("metadata.uid", "NotIn", "n1"), True),
    ],
)
def test_field_operators(requirement: NodeSelectorRequirement, expected: bool) -> None:
    """A field other than metadata.name is never In and always NotIn."""
    assert matches(fields(requirement)) is expected


def test_terms_are_alternatives_requirements_are_not() -> None:
    """Terms are ORed, requirements within a term ANDed."""
    west, east = need("zone", "In", "west"), need("zone", "In", "east")
    assert not matches(labels(west, east))
    both = NodeSelector((NodeSelectorTerm((east,)), NodeSelectorTerm((west,))))
    assert matches(both)
    mixed = NodeSelectorTerm((west,), (need("metadata.name", "In", "n2"),))
    assert not matches(NodeSelector((mixed,)))


def test_nothing_matches_nothing() -> None:
    """No term matches nothing, and so does a term without requirements."""
    assert not matches(NodeSelector())
    assert not matches(NodeSelector((NodeSelectorTerm(),)))


@pytest.mark.parametrize(
    "selector",
    [
        labels(need("zone", "Like", "w")),
        labels(need("zone", "In")),
        labels(need("zone", "NotIn")),
        labels(need("zone", "Exists", "west")),
        labels(need("zone", "DoesNotExist", "west")),
        labels(need("size", "Gt")),
        labels(need("size", "Gt", "1", "2")),
        labels(need("size", "Lt", "x")),
        labels(need("size", "Gt", str(1 << 63))),
        labels(need("size", "Gt", "9" * 100_000)),
        labels(need("", "Exists")),
        labels(need("a/b/c", "Exists")),
        labels(need("Upper.com/x", "Exists")),
        labels(need("x" * 64, "Exists")),
        labels(need("zone", "In", "two words")),
        labels(need("zone\n", "In", "west")),
        fields(need("metadata.name", "Exists")),
        fields(need("metadata.name", "In")),
        fields(need("metadata.name", "In", "a", "b")),
    ],
)
def test_errors(selector: NodeSelector) -> None:
    """Wrong operators, keys, values and numbers of values are errors."""
    with pytest.raises(NodeSelectorProblem):
        compile_node_selector(selector)


def test_an_error_counts_even_if_another_term_matches() -> None:
    """One error in any term is an error of the selector."""
    good = NodeSelectorTerm((need("zone", "In", "west"),))
    bad = NodeSelectorTerm((need("zone", "In"),))
    with pytest.raises(NodeSelectorProblem, match="zone"):
        compile_node_selector(NodeSelector((good, bad)))
