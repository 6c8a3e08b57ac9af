"""Which nodes a node selector means.

A selector is compiled once (``compile_node_selector``): every requirement of every
term is checked there, so that matching a node cannot fail and a bad selector is an
error even where another of its terms would match.
Source: v1.NodeSelector; component-helpers' semantics as scheduling uses them.
"""

import re
from collections.abc import Callable, Mapping

import attrs

from dra_core.api.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.errors import DraError

_NAME = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)\Z")
_SUBDOMAIN_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\Z")
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}\Z")
_MAX_SUBDOMAIN = 253
_INT64 = 1 << 63

LabelTest = Callable[[Mapping[str, str]], bool]


@attrs.frozen
class NodeSelectorProblem(DraError):
    """Internal: what is wrong with a selector; the caller knows whose it is."""

    problem: str

    def __str__(self) -> str:
        return self.problem


@attrs.frozen
class _Term:
    labels: tuple[LabelTest, ...]
    names: tuple[tuple[bool, str], ...]
    """``(wanted, name)``: the node's name must, or must not, be this."""
    never: bool

    def matches(self, node: Node) -> bool:
        if self.never:
            return False
        name = node.metadata.name
        labels = node.metadata.labels
        return all((name == value) is wanted for wanted, value in self.names) and all(
            test(labels) for test in self.labels
        )


@attrs.frozen
class NodeMatcher:
    """A compiled node selector."""

    terms: tuple[_Term, ...]

    def matches(self, node: Node) -> bool:
        """True if any term matches the node. Cost: the requirements of the selector."""
        return any(term.matches(node) for term in self.terms)


def compile_node_selector(selector: NodeSelector) -> NodeMatcher:
    """Check a node selector and make it ready for matching.

    Raises ``NodeSelectorProblem`` for operators, keys or values that are not allowed,
    in any term.
    """
    return NodeMatcher(tuple(_compile_term(term) for term in selector.terms))


def _compile_term(term: NodeSelectorTerm) -> _Term:
    labels = tuple(_compile_label(requirement) for requirement in term.match_expressions)
    names: list[tuple[bool, str]] = []
    never = not term.match_expressions and not term.match_fields
    for requirement in term.match_fields:
        wanted = _check_field(requirement)
        if requirement.key == "metadata.name":
            names.append((wanted, requirement.values[0]))
        elif wanted:
            never = True  # A field that nodes do not have: In never holds, NotIn always.
    return _Term(labels, tuple(names), never)


def _check_field(requirement: NodeSelectorRequirement) -> bool:
    if requirement.operator not in ("In", "NotIn"):
        raise NodeSelectorProblem(f"operator {requirement.operator!r} is not for matchFields")
    if len(requirement.values) != 1:
        raise NodeSelectorProblem(f"matchFields {requirement.key!r} needs exactly one value")
    return requirement.operator == "In"


def _compile_label(requirement: NodeSelectorRequirement) -> LabelTest:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    _check_key(key)
    match operator:
        case "In" | "NotIn":
            if not values:
                raise NodeSelectorProblem(f"operator {operator} on {key!r} needs values")
            wanted = frozenset(values)
            test: LabelTest
            if operator == "In":
                test = lambda labels: labels.get(key) in wanted  # noqa: E731
            else:
                test = lambda labels: labels.get(key) not in wanted  # noqa: E731
        case "Exists" | "DoesNotExist":
            if values:
                raise NodeSelectorProblem(f"operator {operator} on {key!r} takes no values")
            if operator == "Exists":
                test = lambda labels: key in labels  # noqa: E731
            else:
                test = lambda labels: key not in labels  # noqa: E731
        case "Gt" | "Lt":
            test = _compile_comparison(key, operator, values)
        case _:
            raise NodeSelectorProblem(f"unknown operator {operator!r} on {key!r}")
    for value in values:
        _check_value(key, value)
    return test


def _compile_comparison(key: str, operator: str, values: tuple[str, ...]) -> LabelTest:
    bound = _int64(values[0]) if len(values) == 1 else None
    if bound is None:
        raise NodeSelectorProblem(f"operator {operator} on {key!r} needs exactly one integer")

    def test(labels: Mapping[str, str]) -> bool:
        value = _int64(labels.get(key, ""))
        if value is None:
            return False
        return value > bound if operator == "Gt" else value < bound

    return test


def _int64(text: str) -> int | None:
    if not _INTEGER.match(text):
        return None
    value = int(text)
    return value if -_INT64 <= value < _INT64 else None


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if slash and not _is_subdomain(prefix):
        raise NodeSelectorProblem(f"invalid label key {key!r}")
    if not _NAME.match(name):
        raise NodeSelectorProblem(f"invalid label key {key!r}")


def _is_subdomain(text: str) -> bool:
    return len(text) <= _MAX_SUBDOMAIN and all(
        _SUBDOMAIN_LABEL.match(part) for part in text.split(".")
    )


def _check_value(key: str, value: str) -> None:
    if value and not _NAME.match(value):
        raise NodeSelectorProblem(f"invalid value {value!r} for label {key!r}")
