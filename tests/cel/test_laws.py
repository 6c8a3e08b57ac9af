"""Selectors against a second opinion, and what holds for every text and every device."""

import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from dra_core.api.objects import Device
from dra_core.cel.selector import Selector, SelectorCache
from dra_core.errors import SelectorCompileError, SelectorEvaluationError
from support import cel_twin
from support.cel_strategies import DRIVER, devices, expressions
from support.cel_twin import ERROR, Tree
from support.expressions import DEVICE

Seen = tuple[Device, dict[str, Any]]


def compiled(tree: Tree) -> Selector | None:
    """The selector of a tree, ``None`` if a constant in it cannot be converted."""
    selector = compiled_text(cel_twin.text(tree))
    if isinstance(selector, SelectorCompileError):
        # int(dyn("x")) is refused when compiling, as in the reference; types always fit.
        assert re.search("is not an|does not take|integer overflow", selector.problem), selector
        return None
    return selector


def compiled_text(expression: str) -> Selector | SelectorCompileError:
    """The selector of an expression, or why there is none."""
    try:
        return SelectorCache(max_entries=1).compile(expression)
    except SelectorCompileError as error:
        return error


def outcome(selector: Selector, device: Device, *, counted: bool = False) -> Any:
    """The result, or ``ERROR``."""
    try:
        if counted:
            return selector.evaluate(DRIVER, device)[0]
        return selector.matches(DRIVER, device)
    except SelectorEvaluationError:
        return ERROR


@given(expressions("bool", 3) | expressions("unknown", 2), devices())
def test_agrees_with_the_twin(tree: Tree, seen: Seen) -> None:
    """An expression is true, false or an error as a walk over its tree says."""
    device, plain = seen
    selector = compiled(tree)
    if selector is None:
        return
    assert outcome(selector, device) == cel_twin.result(tree, plain)


@given(expressions("bool", 3) | expressions("unknown", 2), devices())
def test_counting_changes_nothing(tree: Tree, seen: Seen) -> None:
    """Evaluating with costs has the same outcome as evaluating without."""
    selector = compiled(tree)
    if selector is None:
        return
    assert outcome(selector, seen[0], counted=True) == outcome(selector, seen[0])


@given(expressions("bool", 2) | expressions("unknown", 2), devices(), devices())
def test_equal_keys_mean_equal_results(tree: Tree, one: Seen, other: Seen) -> None:
    """Devices that agree on what is read get the same result, or the same error."""
    selector = compiled(tree)
    if selector is None:
        return
    keys = [selector.values_read(DRIVER, seen[0]) for seen in (one, other)]
    if keys[0] == keys[1]:
        assert outcome(selector, one[0]) == outcome(selector, other[0])


@given(expressions("bool", 3), devices())
def test_evaluating_changes_nothing(tree: Tree, seen: Seen) -> None:
    """The device is the same afterwards, and so is the outcome the second time."""
    selector = compiled(tree)
    if selector is None:
        return
    before = repr(seen[0])
    first = outcome(selector, seen[0])
    assert outcome(selector, seen[0]) == first
    assert repr(seen[0]) == before


PIECES = [
    "device", ".", "attributes", '["gpu.example.com"]', "model", "index", "numa", "capacity",
    "memory", "true", "false", "null", "1", "-1", "0u", "1.5", "'a'", "b'a'", "[", "]", "{", "}",
    "(", ")", ",", ":", "?", "&&", "||", "==", "!=", "<", ">=", "in", "+", "-", "*", "/", "%", "!",
    "has", "size", "all", "exists", "map", "filter", "x", "cel", "bind", "optional", "of",
    "orValue", "matches", "sum", "sortBy", "transformMap", "format", "quantity", "semver",
    "string", "int", "dyn", "type", " ", "9223372036854775807", "lists", "range", "split",
    "replace", "join", "?.", "[?", "//", "\n", "\\", '"', "'", "\0", "\ud800", "é", "duration",
    "timestamp", "isSorted", "includes", "flatten",
]  # fmt: skip


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
    | st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join)
)
@example("\0")
@example("'\ud800'.size() == 1")
def test_any_text(expression: str) -> None:
    """Text of any kind compiles or is refused, evaluates or fails; nothing else happens."""
    selector = compiled_text(expression)
    if isinstance(selector, SelectorCompileError):
        assert selector.expression == expression
        assert selector.line >= 1
        assert selector.column >= 1
        return
    assert outcome(selector, DEVICE) == outcome(selector, DEVICE, counted=True)


@given(st.data(), devices())
def test_broken_expressions(data: st.DataObject, seen: Seen) -> None:
    """An expression with a piece changed does no harm either."""
    text = cel_twin.text(data.draw(expressions("bool", 2)))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 3)))
    changed = text[:start] + data.draw(st.sampled_from(["", *PIECES])) + text[end:]
    selector = compiled_text(changed)
    if isinstance(selector, SelectorCompileError):
        return
    assert outcome(selector, seen[0]) == outcome(selector, seen[0], counted=True)
