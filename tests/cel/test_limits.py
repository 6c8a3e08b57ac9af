"""Nothing hangs, nothing grows without bound, nothing nests too deep for Python."""

from collections.abc import Callable

import pytest

from support.expressions import CACHE, COMPILE, DEVICE, DRIVER, FAILS, outcome, problem

A = 'device.attributes["gpu.example.com"].index'


def nested(opening: str, inner: str, closing: str, times: int) -> str:
    """``inner`` between as many openings and closings."""
    return opening * times + inner + closing * times


@pytest.mark.parametrize("times", [250, 1_000])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("[", "]"), ("!(", ")"), ("-(", ")"), ("size(", ")"), ("{1: ", "}"), ("a[", "]")],
)
def test_nesting_is_limited(opening: str, closing: str, times: int) -> None:
    """Over 250 nested brackets do not compile, and are no RecursionError."""
    error = problem(nested(opening, "1", closing, times))
    assert "nested more than 250 deep" in error.problem


def test_the_last_legal_nesting() -> None:
    """250 nested lists, whose innermost holds nothing, and 249 parentheses do compile."""
    assert outcome(nested("(", "true", ")", 249)) is True
    assert outcome(f"{nested('[', '', ']', 250)} == []") is False
    assert outcome(f"{nested('[', '', ']', 251)} == []") == COMPILE


@pytest.mark.parametrize("operator", ["+", "*", "=="])
def test_chains_are_limited(operator: str) -> None:
    """A chain of one operator, but && and ||, is as deep as it is long."""
    link = {"+": "0", "*": "1", "==": "true"}[operator]
    end = "" if operator == "==" else " < 2"
    legal, too_long = (operator.join([link] * n) + end for n in (249, 250))
    assert outcome(legal) is True
    assert "nested" in problem(too_long).problem


@pytest.mark.parametrize("operator", ["&&", "||"])
def test_long_logical_chains(operator: str) -> None:
    """An expression of 10 KiB with a long chain of && or || compiles and evaluates."""
    link = f"{A} == 3" if operator == "&&" else f"{A} == 4"
    expression = f" {operator} ".join([link] * 180)
    assert 9_000 < len(expression) <= 10 * 1024
    assert outcome(expression) is (operator == "&&")


def test_signs_do_not_nest() -> None:
    """Any number of signs in a row is one or none, as in the reference."""
    assert outcome("!" * 1_001 + "false") is True
    assert outcome("-" * 1_001 + "1 == -1") is True


@pytest.mark.parametrize(
    "expression",
    [
        nested("!(", f"{A} == 3", ")", 200),
        nested("(", "true", " ? true : false)", 200),
        "".join(f"{A} == {n + 10} ? false : " for n in range(200)) + "true",
        nested("[", A, "]", 200) + " == " + nested("[", A, "]", 200),
        nested("[", "1", "]", 200) + "[0]" * 200 + " == 1",
        nested("string(", A, ")", 200) + " == '3'",
        f"string({A})" + ".trim()" * 200 + " == '3'",
        "".join(f"[1].all(v{n}, " for n in range(100)) + f"{A} == 3" + ")" * 100,
        "".join(f"[{A}].exists(v{n}, " for n in range(100)) + "v99 == v0" + ")" * 100,
        "".join(f"cel.bind(v{n}, {f'v{n - 1} + 1' if n else A}, " for n in range(100))
        + "v99 == 102" + ")" * 100,
        "".join(f"cel.bind(v{n}, {f'v{n - 1} || v{n - 1}' if n else f'{A} == 3'}, "
                for n in range(100)) + "v99" + ")" * 100,
        nested("optional.of(", "1", ")", 100) + ".hasValue()",
        "".join('device.attributes["a"].?b.orValue(' for _ in range(40)) + "true" + ")" * 40,
        "optional.of(1)" + ".optMap(x, x + 1)" * 10 + ".value() == 11",
        "[1]" + ".map(x, [x])" * 60 + ".size() == 1",
        "({'a': " * 100 + A + "})" * 100 + ".size() == 1",
    ],
)  # fmt: skip
def test_deep_but_legal(expression: str) -> None:
    """Deep expressions compile and evaluate, whatever Python allows itself."""
    assert outcome(expression) is True


def doubling(step: Callable[[str], str], start: str, times: int, end: str) -> str:
    """Bindings that each use the one before, and what is asked of the last."""
    names = [f"v{n}" for n in range(times)]
    values = [start, *(step(name) for name in names)]
    bound = "".join(f"cel.bind({n}, {v}, " for n, v in zip(names, values, strict=False))
    return bound + end.format(names[-1]) + ")" * times


@pytest.mark.parametrize(
    "expression",
    [
        doubling(lambda v: f"{v} + {v}", f"string({A})", 60, "{0} == ''"),
        doubling(lambda v: f"{v} + {v}", f"[{A}]", 60, "{0}.size() == 1"),
        doubling(lambda v: f"'%s%s'.format([{v}, {v}])", f"string({A})", 60, "{0} == ''"),
        doubling(lambda v: f"{v}.replace('3', {v})", f"'33' + string({A})", 60, "{0} == ''"),
        doubling(lambda v: f"[{v}, {v}].join({v})", f"string({A})", 60, "{0} == ''"),
        doubling(lambda v: f"strings.quote({v})", f"string({A}) + '\"'", 60, "{0} == ''"),
        doubling(lambda v: f"[{v}, {v}]", f"[{A}]", 60, "{0} == {0}"),
        doubling(lambda v: f"[{v}, {v}]", f"[{A}]", 60, "'%s'.format([{0}]) == ''"),
        doubling(lambda v: f"[{v}, {v}]", f"[{A}]", 60, "dyn({0}).indexOf(1) == 1"),
        doubling(lambda v: f"[{v}, {v}]", f"[{A}]", 60, "dyn({0}).flatten(99) == []"),
        doubling(lambda v: f"[{v}, {v}]", f"[{A}]", 60, "{0}.distinct().size() == 2"),
        doubling(lambda v: f"{{'a': {v}, 'b': {v}}}", f"{{'c': {A}}}", 60, "{0} == {0}"),
        "lists.range(9223372036854775807).size() > 0",
        "lists.range(1000001).size() > 0",
        "lists.range(50000).sort().size() > 0",
        "lists.range(50000).distinct().size() > 0",
        "sets.contains(lists.range(50000), lists.range(50000))",
        "lists.range(50000).all(x, x in lists.range(50000))",
        "cel.bind(l, dyn(lists.range(90000)), lists.range(20000).all(x, x in l))",
        "cel.bind(l, lists.range(90000), lists.range(900).all(x, l == l))",
        "cel.bind(l, lists.range(90000), lists.range(9000).all(x, (l + l).size() > 0))",
        "lists.range(99999).map(x, 'a'.replace('', '12345678')).size() > 0",
    ],
)
def test_what_would_not_end(expression: str) -> None:
    """What would take too long or too much memory is an evaluation error, soon."""
    assert outcome(expression) == FAILS


def test_cost_is_limited_to_a_million() -> None:
    """Exceeding the limit is an evaluation error that nothing absorbs."""
    costly = "lists.range(99999).all(x, x + x + x + x >= 0)"
    assert outcome(f"lists.range(99998).all(x, x >= 0) && {A} == 3") is True
    assert outcome(f"{costly} || true") == FAILS
    assert outcome(f"cel.bind(x, {costly}, x || true)") == FAILS
    assert "costs more than 1,000,000" in problem(costly).problem


@pytest.mark.parametrize(
    "expression",
    [
        "", "\0", "true\0", "\ud800", "'\ud800'", "b'\ud800'", "1" * 10_000, "0x" + "f" * 10_000,
        "1e" + "9" * 5_000, "'" + "\\" * 9_999, '"""' * 3_000, "(" * 10_000, "[" * 10_000,
        "a." * 5_000, "-" * 10_000, "!" * 10_000, "?" * 5_000, "//" * 5_000, "{" * 10_000,
        "'" * 9_999,
        "a(" * 5_000, "1 +" * 3_000, "&&" * 5_000, "\u2028", "é", "\n" * 10_000, "`" * 100,
    ],
)  # fmt: skip
def test_hostile_text(expression: str) -> None:
    """Text that is no expression is a compile error, whatever it holds."""
    assert outcome(expression) == COMPILE


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'\ud800' == '\ud800'", True),
        ("'\0'.size() == 1", True),
        (f"int('{'9' * 5_000}') == 1", COMPILE),
        (f"'{'9' * 5_000}'.size() == 5000", True),
        (f"1.{'1' * 5_000} > 1.0", True),
        ("[" + ", ".join(["1"] * 3_000) + "].size() == 3000", True),
        ("{" + ", ".join(f"{n}: {n}" for n in range(800)) + "}.size() == 800", True),
        (f"'{'a' * 5_000}b'.matches('(a|aa)+$')", False),
        (f"string({A}).matches('(a*)*(a*)*b')", False),
    ],
)
def test_large_but_harmless(expression: str, expected: bool) -> None:
    """Large literals and patterns are no trouble."""
    assert outcome(expression) == expected


def test_compiling_is_linear_in_joined_types() -> None:
    """A type that contains itself many times over does not explode."""
    keys = doubling(lambda v: f"{{{v}: {v}}}", f"{A}", 60, "{0} == {0}")
    assert outcome(keys) == COMPILE
    assert CACHE.compile(nested("[", "", "]", 200) + " == []").matches(DRIVER, DEVICE) is False
