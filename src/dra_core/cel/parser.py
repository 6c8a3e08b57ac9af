"""Tokens to a syntax tree: CEL's grammar.

What may live here: the grammar, its precedence and the limits on nesting. Macros are
handed to ``dra_core.cel.macros`` as soon as their arguments are parsed.

Every rule is a generator that yields the rules it needs, run by ``ast.trampoline``: the
text may nest deeper than Python's stack. The limit is the reference's: it counts, per
rule of its grammar, how many are open at once, and a chain of one left-recursive rule
(``a + b + c``, ``a.b.c``, ``a == b == c``) keeps all of its links open, while ``&&`` and
``||`` chains do not.
"""

import math
from typing import Final

from dra_core.cel import lexer, macros
from dra_core.cel.ast import (
    Call,
    Const,
    Ident,
    Index,
    ListLiteral,
    Logic,
    MapLiteral,
    Node,
    Select,
    Ternary,
    Visit,
    trampoline,
)
from dra_core.cel.lexer import Token, tokenize
from dra_core.cel.problems import CompileProblem
from dra_core.cel.types import BOOL, BYTES, DOUBLE, INT, NULL, STRING, UINT
from dra_core.cel.values import MAX_INT64, MAX_UINT64, MIN_INT64, UInt

MAX_NESTING: Final = 250
"""How many of one grammar rule may be open at once (cel-go's recursion limit)."""

RESERVED: Final = frozenset(
    {
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
        "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
_RELATIONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!=", "in"})
_CALC_LEVEL: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_NUMBERS: Final = frozenset({lexer.INT, lexer.UINT, lexer.DOUBLE})

# Why rows of the library are named as they are: the reference's names of operators.
OPERATOR_NAMES: Final = {
    "<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_",
    "in": "@in", "+": "_+_", "-": "_-_", "*": "_*_", "/": "_/_", "%": "_%_",
}  # fmt: skip


def parse(text: str) -> Node:
    """The syntax tree of a whole expression. Raises CompileProblem.

    Cost: linear in the text.
    """
    parser = _Parser(tokenize(text))
    return trampoline(parser.start())


class _Parser:
    """The tokens, the place in them, and how many of each rule are open."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._expressions = 0
        self._relations = 0
        self._calcs = 0
        self._members = 0

    # --- tokens ----------------------------------------------------------------------

    def _is(self, operator: str) -> bool:
        token = self._tokens[self._at]
        return token.value == operator and token.kind == lexer.OPERATOR

    def _accept(self, operator: str) -> bool:
        if self._is(operator):
            self._at += 1
            return True
        return False

    def _expect(self, operator: str) -> Token:
        token = self._tokens[self._at]
        if not self._accept(operator):
            raise self._unexpected(f"{operator!r}")
        return token

    def _name(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != lexer.IDENT or token.value in _KEYWORDS:
            raise self._unexpected("a name")
        self._at += 1
        return token

    def _unexpected(self, wanted: str) -> CompileProblem:
        token = self._tokens[self._at]
        found = token.kind if token.kind == lexer.END else f"{token.value!r}"
        return CompileProblem(token.offset, f"found {found}, expected {wanted}")

    def _limit(self, open_rules: int) -> None:
        if open_rules > MAX_NESTING:
            offset = self._tokens[self._at].offset
            raise CompileProblem(offset, f"nested more than {MAX_NESTING} deep")

    # --- rules -----------------------------------------------------------------------

    def start(self) -> Visit[Node]:
        """The whole text is one expression."""
        node: Node = yield self._expression()
        if self._tokens[self._at].kind != lexer.END:
            raise self._unexpected("an operator or the end")
        return node

    def _expression(self) -> Visit[Node]:
        self._expressions += 1
        self._limit(self._expressions)
        node: Node = yield self._or()
        if self._is("?"):
            offset = self._tokens[self._at].offset
            self._at += 1
            then: Node = yield self._or()
            self._expect(":")
            otherwise: Node = yield self._expression()
            node = Ternary(offset, node, then, otherwise)
        self._expressions -= 1
        return node

    def _or(self) -> Visit[Node]:
        node: Node = yield self._and()
        if not self._is("||"):
            return node
        offset, terms = self._tokens[self._at].offset, [node]
        while self._accept("||"):
            terms.append((yield self._and()))
        return Logic(offset, terms, conjunction=False)

    def _and(self) -> Visit[Node]:
        node: Node = yield self._relation()
        if not self._is("&&"):
            return node
        offset, terms = self._tokens[self._at].offset, [node]
        while self._accept("&&"):
            terms.append((yield self._relation()))
        return Logic(offset, terms, conjunction=True)

    def _relation(self) -> Visit[Node]:
        links = 1
        self._relations += 1
        self._limit(self._relations)
        left: Node = yield self._calc(1)
        while True:
            token = self._tokens[self._at]
            if token.value not in _RELATIONS or token.kind in (lexer.STRING, lexer.BYTES):
                break
            self._at += 1
            links += 1
            self._relations += 1
            self._limit(self._relations + 1)
            right: Node = yield self._calc(1)
            left = Call(token.offset, OPERATOR_NAMES[str(token.value)], [left, right])
        self._relations -= links
        return left

    def _calc(self, level: int) -> Visit[Node]:
        links = 1
        self._calcs += 1
        self._limit(self._calcs)
        left: Node = yield self._unary()
        while True:
            token = self._tokens[self._at]
            its_level = _CALC_LEVEL.get(str(token.value), 0)
            if its_level < level or token.kind != lexer.OPERATOR:
                break
            self._at += 1
            links += 1
            self._calcs += 1
            right: Node = yield self._calc(its_level + 1)
            left = Call(token.offset, OPERATOR_NAMES[str(token.value)], [left, right])
        self._calcs -= links
        return left

    def _unary(self) -> Visit[Node]:
        """Signs and negations; an even number of them is none, as in the reference."""
        token = self._tokens[self._at]
        for sign, function in (("!", "!_"), ("-", "-_")):
            if not self._is(sign) or (sign == "-" and self._number_follows()):
                continue
            count = 0
            while self._accept(sign):
                count += 1
            node: Node = yield self._member()
            return Call(token.offset, function, [node]) if count % 2 else node
        node = yield self._member()
        return node

    def _number_follows(self) -> bool:
        return self._tokens[self._at + 1].kind in _NUMBERS

    def _member(self) -> Visit[Node]:
        links = 1
        self._members += 1
        self._limit(self._members)
        node: Node = yield self._primary()
        while self._is(".") or self._is("["):
            links += 1
            self._members += 1
            self._limit(self._members)
            if self._accept("."):
                node = yield self._selection(node)
            else:
                offset = self._expect("[").offset
                optional = self._accept("?")
                key: Node = yield self._expression()
                self._expect("]")
                node = Index(offset, node, key, optional=optional)
        if self._is("{"):
            raise CompileProblem(self._tokens[self._at].offset, "there are no message types here")
        self._members -= links
        return node

    def _selection(self, operand: Node) -> Visit[Node]:
        optional = self._accept("?")
        name = self._name()
        if optional or not self._is("("):
            return Select(name.offset, operand, str(name.value), optional=optional)
        args: list[Node] = yield self._arguments()
        return macros.expand_member(name.offset, str(name.value), operand, args)

    def _arguments(self) -> Visit[list[Node]]:
        self._expect("(")
        args: list[Node] = []
        if not self._is(")"):
            args.append((yield self._expression()))
            while self._accept(","):
                args.append((yield self._expression()))
        self._expect(")")
        return args

    def _primary(self) -> Visit[Node]:
        token = self._tokens[self._at]
        if token.kind != lexer.OPERATOR:
            if token.kind == lexer.IDENT and token.value not in _KEYWORDS:
                node: Node = yield self._named("")
                return node
            return self._literal()
        if self._accept("("):
            node = yield self._expression()
            self._expect(")")
            return node
        if self._accept("."):
            node = yield self._named(".")
            return node
        if self._accept("["):
            node = yield self._list(token.offset)
            return node
        if self._accept("{"):
            node = yield self._map(token.offset)
            return node
        return self._literal()

    def _named(self, dot: str) -> Visit[Node]:
        token = self._name()
        if token.value in RESERVED:
            raise CompileProblem(token.offset, f"{token.value!r} is a reserved word")
        name = dot + str(token.value)
        if not self._is("("):
            return Ident(token.offset, name)
        args: list[Node] = yield self._arguments()
        return macros.expand_global(token.offset, name, args)

    def _list(self, offset: int) -> Visit[Node]:
        items: list[Node] = []
        optional: set[int] = set()
        while not self._accept("]"):
            if self._accept("?"):
                optional.add(len(items))
            items.append((yield self._expression()))
            if not self._accept(","):
                self._expect("]")
                break
        return ListLiteral(offset, items, frozenset(optional))

    def _map(self, offset: int) -> Visit[Node]:
        keys: list[Node] = []
        values: list[Node] = []
        optional: set[int] = set()
        while not self._accept("}"):
            if self._accept("?"):
                optional.add(len(keys))
            keys.append((yield self._expression()))
            self._expect(":")
            values.append((yield self._expression()))
            if not self._accept(","):
                self._expect("}")
                break
        return MapLiteral(offset, keys, values, frozenset(optional))

    # --- literals --------------------------------------------------------------------

    def _literal(self) -> Node:
        offset = self._tokens[self._at].offset
        negative = self._is("-") and self._number_follows()
        self._at += negative
        token = self._tokens[self._at]
        self._at += 1
        if token.kind == lexer.STRING:
            return Const(offset, token.value, STRING)
        if token.kind == lexer.BYTES:
            return Const(offset, token.value, BYTES)
        if token.kind in _NUMBERS:
            return _number(offset, token, negative)
        if token.kind == lexer.IDENT and token.value in ("true", "false"):
            return Const(offset, token.value == "true", BOOL)
        if token.kind == lexer.IDENT and token.value == "null":
            return Const(offset, None, NULL)
        self._at -= 1
        raise self._unexpected("a value")


def _number(offset: int, token: Token, negative: bool) -> Const:
    if token.kind == lexer.DOUBLE:
        double = float(token.value)
        if math.isinf(double):
            raise CompileProblem(offset, "beyond the range of a double")
        return Const(offset, -double if negative else double, DOUBLE)
    digits = str(token.value)
    number = _whole(digits)
    if token.kind == lexer.UINT:
        if negative:
            raise CompileProblem(offset, "an unsigned number has no sign")
        if number > MAX_UINT64:
            raise CompileProblem(offset, "beyond the range of an unsigned 64-bit integer")
        return Const(offset, UInt(number), UINT)
    number = -number if negative else number
    if not MIN_INT64 <= number <= MAX_INT64:
        raise CompileProblem(offset, "beyond the range of a 64-bit integer")
    return Const(offset, number, INT)


def _whole(digits: str) -> int:
    """The number; of too many digits only that it is beyond every range matters."""
    hexadecimal = digits.startswith("0x")
    significant = (digits[2:] if hexadecimal else digits).lstrip("0") or "0"
    if len(significant) > 20:
        return MAX_UINT64 + 1
    return int(significant, 16 if hexadecimal else 10)
