"""Syntax: precedence, macros, and what is refused."""

import pytest

from dra_core.cel.ast import (
    Bind,
    Call,
    Const,
    Ident,
    Index,
    ListLiteral,
    Logic,
    Loop,
    MapLiteral,
    Node,
    OptionalMap,
    Select,
    Ternary,
)
from dra_core.cel.parser import parse
from dra_core.cel.problems import CompileProblem


def shown(node: Node) -> str:
    """The tree in a form that shows what belongs together."""
    if isinstance(node, Const):
        return repr(node.value)
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select):
        mark = "has:" if node.test else "?" if node.optional else ""
        return f"{shown(node.operand)}.{mark}{node.field}"
    if isinstance(node, Index):
        return f"{shown(node.operand)}[{'?' if node.optional else ''}{shown(node.key)}]"
    if isinstance(node, Call):
        return f"{node.function}{'.' if node.member else ''}({', '.join(map(shown, node.args))})"
    if isinstance(node, Logic):
        return f"({(' && ' if node.conjunction else ' || ').join(map(shown, node.terms))})"
    if isinstance(node, Ternary):
        parts = (node.condition, node.then, node.otherwise)
        return "({} ? {} : {})".format(*map(shown, parts))
    if isinstance(node, ListLiteral):
        items = [("?" if i in node.optional else "") + shown(n) for i, n in enumerate(node.items)]
        return f"[{', '.join(items)}]"
    if isinstance(node, MapLiteral):
        pairs = zip(node.keys, node.values, strict=True)
        entries = [
            f"{'?' if i in node.optional else ''}{shown(k)}: {shown(v)}"
            for i, (k, v) in enumerate(pairs)
        ]
        return f"{{{', '.join(entries)}}}"
    if isinstance(node, Loop):
        condition = "" if node.condition is None else f" if {shown(node.condition)}"
        names = ", ".join(node.names)
        return f"{node.kind}({names} in {shown(node.range)}{condition}: {shown(node.body)})"
    if isinstance(node, Bind):
        return f"bind({node.name} = {shown(node.init)}: {shown(node.body)})"
    assert isinstance(node, OptionalMap)
    return (
        f"{'flat' if node.flat else 'opt'}({node.name} of {shown(node.target)}: {shown(node.body)})"
    )


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c - d", "_-_(_+_(a, _*_(b, c)), d)"),
        ("a * b + c", "_+_(_*_(a, b), c)"),
        ("(a + b) * c", "_*_(_+_(a, b), c)"),
        ("a / b % c", "_%_(_/_(a, b), c)"),
        ("a < b == c", "_==_(_<_(a, b), c)"),
        ("a + 1 in b", "@in(_+_(a, 1), b)"),
        ("a && b && c || d && e", "((a && b && c) || (d && e))"),
        ("(a && b) && c", "((a && b) && c)"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a || b ? c : d", "((a || b) ? c : d)"),
        ("!a && b", "(!_(a) && b)"),
        ("!!a", "a"),
        ("!!!a.b", "!_(a.b)"),
        ("-a.b()", "-_(b.(a))"),
        ("-1", "-1"),
        ("- 1.5", "-1.5"),
        ("--1", "1"),
        ("---1", "-_(1)"),
        ("a - 1", "_-_(a, 1)"),
        ("a -1", "_-_(a, 1)"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("a.b.c", "a.b.c"),
        ("a.b(c).d[e]", "b.(a, c).d[e]"),
        ("a.?b[?c]", "a.?b[?c]"),
        ("a. ? b", "a.?b"),
        (".a.b", ".a.b"),
        (".f(a)", ".f(a)"),
        ("f()", "f()"),
        ("a.for", "a.for"),
        ("[a, ?b,]", "[a, ?b]"),
        ("{a: b, ?c: d,}", "{a: b, ?c: d}"),
        ("[]", "[]"),
        ("{}", "{}"),
        ("[1].b", "[1].b"),
        ("'a'.b()", "b.('a')"),
        ("has(a.b.c)", "a.b.has:c"),
        ("has((a.b))", "a.has:b"),
        ("a.all(x, x)", "all(x in a: x)"),
        ("a.exists_one(x, x)", "exists_one(x in a: x)"),
        ("a.map(x, y)", "map(x in a: y)"),
        ("a.map(x, y, z)", "map(x in a if y: z)"),
        ("a.filter(x, y)", "filter(x in a: y)"),
        ("a.all(k, v, x)", "all(k, v in a: x)"),
        ("a.existsOne(k, v, x)", "existsOne(k, v in a: x)"),
        ("a.exists_one(k, v, x)", "exists_one(k, v in a: x)"),
        ("a.transformList(k, v, x)", "transformList(k, v in a: x)"),
        ("a.transformMap(k, v, x, y)", "transformMap(k, v in a if x: y)"),
        ("a.transformMapEntry(k, v, x)", "transformMapEntry(k, v in a: x)"),
        ("a.sortBy(x, y)", "sortBy(x in a: y)"),
        ("cel.bind(x, a, b)", "bind(x = a: b)"),
        ("a.optMap(x, b)", "opt(x of a: b)"),
        ("a.optFlatMap(x, b)", "flat(x of a: b)"),
        ("all(x, y)", "all(x, y)"),
        ("a.all(x)", "all.(a, x)"),
        ("a.existsOne(x, y)", "existsOne.(a, x, y)"),
        ("c.bind(x, a, b)", "bind.(c, x, a, b)"),
        ("a.has(b.c)", "has.(a, b.c)"),
        ("null", "None"),
        ("true", "True"),
        ("a // comment", "a"),
        (" \n a \r", "a"),
    ],
)
def test_trees(text: str, tree: str) -> None:
    """Operators bind as in CEL; signs in pairs vanish; macros are recognised by their form."""
    assert shown(parse(text)) == tree


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "1 +", "(a", "a)", "a b", "a.", "a.1", "a[", "a[]", "[1, 2", "[,]", "{1}", "{1:",
        "{,}", "&& a", "a &&", "a ? b", "a ? b : ", "a ? b ? c : d : e", "a.?b()", "f(", "f(,)",
        "f(a,)", "if", "for == 1", "in", "in == 1", "let.a", "while(a)", "a = b", "!-", "-!a",
        "a ! b", "a.in", "a.true", "a{b: c}", "a.b{}", "true{}", "has(a)", "has(a.?b)",
        "has(has(a.b))",
        "has(1)", "has(a[b])", "[1].all(1, a)", "a.all(x.y, a)", "a.map(.x, a)", "a.all(x, x, a)",
        "cel.bind(1, 2, a)", "a.optMap(1, a)", "a.all(__result__, a)", "9223372036854775808",
        "-9223372036854775809", "0x8000000000000000", "18446744073709551616u", "-1u", "1e400",
    ],
)  # fmt: skip
def test_what_is_no_expression(text: str) -> None:
    """Everything else is a problem with a place in the text."""
    with pytest.raises(CompileProblem) as caught:
        parse(text)
    assert 0 <= caught.value.offset <= len(text)
    assert caught.value.problem


def test_offsets_point_at_what_they_mean() -> None:
    """A call's place is its name or operator, a selection's its field."""
    node = parse("  a.foo(b + c)")
    assert isinstance(node, Call)
    assert node.offset == 4
    assert [arg.offset for arg in node.args] == [2, 10]
