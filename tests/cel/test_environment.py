"""The compiler in another environment: qualified variables of plain types."""

from collections.abc import Mapping
from typing import Any

import pytest

from dra_core.cel.access import VariablePlace
from dra_core.cel.environment import Environment
from dra_core.cel.problems import EvalProblem
from dra_core.cel.program import Program, Prologue
from dra_core.cel.types import BOOL, DYN, INT, STRING, list_of, map_of
from dra_core.cel.values import MapValue
from dra_core.errors import SelectorCompileError, SelectorEvaluationError

Instance = Mapping[str, Mapping[str, Any]]

# Made up after resource.k8s.io/v1alpha2, where attributes are split by their type.
TYPES = {
    "attributes.bool": map_of(STRING, BOOL),
    "attributes.int": map_of(STRING, INT),
    "attributes.intslice": map_of(STRING, list_of(INT)),
    "node": STRING,
}

INSTANCE: Instance = {"bool": {"healthy": True}, "int": {"a.b": 7}, "intslice": {"n": (1, 2)}}


def reader(kind: str) -> Any:
    """How a variable is read of an instance."""
    return lambda instance, node: MapValue(instance[kind].items())


def read_node(instance: Instance, node: str) -> str:
    """A variable that is not always there."""
    if not node:
        raise EvalProblem("no node")
    return node


ENVIRONMENT = Environment(TYPES)


def program(expression: str) -> Program:
    """An expression over an instance and the name of a node."""
    readers = {f"attributes.{kind}": reader(kind) for kind in ("bool", "int", "intslice")}
    readers["node"] = read_node
    places = {name: VariablePlace(DYN, read) for name, read in readers.items()}
    return Program(expression, ENVIRONMENT, ("instance", "node"), dict(places), Prologue())


@pytest.mark.parametrize(
    "expression",
    [
        'attributes.bool["healthy"]',
        "attributes.bool.healthy && attributes.int['a.b'] > 6",
        "attributes.intslice.n.exists(x, x == 2) && 2 in attributes.intslice['n']",
        "attributes.bool.all(k, v, v) && attributes.int.size() == 1",
        "!has(attributes.bool.nosuch) && attributes.int[?'nosuch'].orValue(1) == 1",
        "cel.bind(b, attributes.bool, b.healthy && node == 'n1')",
        "[1].all(attributes, attributes == 1)",
        "quantity('1Ki') == quantity('1024')",
    ],
)
def test_qualified_variables(expression: str) -> None:
    """A name with dots is one variable, and its type is checked."""
    compiled = program(expression)
    assert compiled.function()(INSTANCE, "n1") is True
    result, cost = compiled.counted()(INSTANCE, "n1")
    assert result is True
    assert cost > 0


@pytest.mark.parametrize(
    "expression",
    [
        "attributes == 1",
        "attributes.string['x'] == ''",
        "attributes.int['a.b']",
        "attributes.int['a.b'] == 'x'",
        "device.driver == ''",
        "attributes.bool['x'] > 1",
    ],
)
def test_what_is_not_there(expression: str) -> None:
    """Other names do not exist, and the result must be a bool."""
    with pytest.raises(SelectorCompileError):
        program(expression)


def test_no_default_for_missing_names() -> None:
    """A missing name is an error here as anywhere; a variable may fail, and be absorbed."""
    with pytest.raises(SelectorEvaluationError):
        program("attributes.bool['nosuch']").function()(INSTANCE, "n1")
    with pytest.raises(SelectorEvaluationError) as caught:
        program("node == 'n1'").function()(INSTANCE, "")
    assert caught.value.problem == "no node"
    assert program("node == 'n1' || attributes.bool.healthy").function()(INSTANCE, "") is True


def test_parameters_are_the_environments() -> None:
    """Compiled expressions take the parameters that the environment names, in that order."""
    compiled = program("node == 'n2'")
    assert [compiled.function()(INSTANCE, node) for node in ("n1", "n2")] == [False, True]
