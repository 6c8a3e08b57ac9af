"""An expression from its text to functions, in any environment.

What may live here: the stages of compilation in their order, the loading of generated
code, and public errors with their place in the text.
"""

from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, Final

import attrs

from dra_core.cel.access import Place
from dra_core.cel.accounting import Accountant
from dra_core.cel.ast import Call, ListLiteral, Loop, MapLiteral, Node, walk
from dra_core.cel.checker import check
from dra_core.cel.compiler import Compiler
from dra_core.cel.cost import LIMIT
from dra_core.cel.emitter import Module
from dra_core.cel.environment import Environment
from dra_core.cel.estimate import estimate
from dra_core.cel.literals import fold
from dra_core.cel.macros import COLLECTING
from dra_core.cel.parser import parse
from dra_core.cel.problems import (
    FAULTS,
    BudgetExceeded,
    CompileProblem,
    EvalProblem,
    line_and_column,
)
from dra_core.cel.tracker import Tracker
from dra_core.errors import SelectorCompileError, SelectorEvaluationError

_FATAL: Final = (BudgetExceeded, RecursionError, MemoryError)
"""What ends an evaluation whatever surrounds it."""

ENDS: Final = (*FAULTS, *_FATAL, SelectorEvaluationError)
"""What a bare function may raise."""

COUNTED_FROM: Final = LIMIT // 4
"""From which static estimate on costs are counted. The reference's estimates miss a little:
one unit for a test of a prefix, a few for comparing what is of unknown type."""

Located = Callable[[BaseException], SelectorEvaluationError]


@attrs.frozen
class Prologue:
    """Lines of Python that come before an expression, and what they name."""

    lines: tuple[str, ...] = ()
    names: Mapping[str, Any] = attrs.field(factory=dict)


class Program:
    """A compiled expression over some parameters, which ``places`` read.

    ``function()`` evaluates fast, ``counted()`` counts the cost; each is made when it is
    first asked for. Raises SelectorCompileError.
    """

    def __init__(
        self,
        expression: str,
        environment: Environment,
        parameters: tuple[str, ...],
        places: dict[str, Place],
        prologue: Prologue,
    ) -> None:
        self._expression = expression
        self._environment = environment
        self._parameters = parameters
        self._places = places
        self._prologue = prologue
        try:
            root = check(parse(expression), environment)
            self.max_cost = estimate(root, environment.shapes)
            self._root = fold(root)
        except CompileProblem as problem:
            line, column = line_and_column(expression, problem.offset)
            raise SelectorCompileError(expression, line, column, problem.problem) from None
        self._counted: Callable[..., tuple[bool, int]] | None = None

    def function(self) -> Callable[..., bool]:
        """The function from the parameters to the result. Raises SelectorEvaluationError."""
        run, located = self.bare()

        def matches(*args: Any) -> bool:
            try:
                return run(*args)
            except ENDS as problem:
                raise located(problem) from None

        return matches

    def bare(self) -> tuple[Callable[..., bool], "Located"]:
        """The function without its safety net, and what makes its problems public errors.

        It raises one of ``ENDS``. It counts costs only where the static estimate does not
        rule out that the limit is passed, or where values may grow beyond what they cost.
        """
        module = self._module()
        Compiler(module, self._places).function("run", self._root, self._prologue.lines)
        if self.max_cost > COUNTED_FROM or any(map(_builds, walk(self._root))):
            counted = self.counted()
            return lambda *args: counted(*args)[0], _as_it_is
        run, offsets = _load(module)
        return run, lambda problem: _located(self._expression, problem, run, offsets)

    def counted(self) -> Callable[..., tuple[bool, int]]:
        """The function from the parameters to the result and its cost."""
        if self._counted is None:
            module = self._module()
            accountant = Accountant(module, self._places, self._environment.library)
            accountant.function("run", self._root, self._prologue.lines)
            self._counted = _counting(self._expression, *_load(module))
        return self._counted

    def _module(self) -> Module:
        module = Module(self._parameters)
        module.namespace.update(self._prologue.names)
        return module


def _builds(node: Node) -> bool:
    """Whether a node builds values that may have more parts than they cost to build.

    Of built lists others can be built that share them, and so on: few nodes, very many
    parts. Constants and what a device has are no larger than they are.
    """
    if isinstance(node, Call):
        return any(row.grows for row in node.overloads)
    if isinstance(node, Loop):
        return node.kind in COLLECTING
    return isinstance(node, ListLiteral | MapLiteral)


Run = Callable[..., Any]


def _load(module: Module) -> tuple[Run, list[int]]:
    source, offsets = module.render()
    code: CodeType = compile(source, "<selector>", "exec")
    exec(code, module.namespace)
    run: Run = module.namespace["run"]
    return run, offsets


def _as_it_is(problem: BaseException) -> SelectorEvaluationError:
    """The counting function raises public errors itself."""
    if isinstance(problem, SelectorEvaluationError):
        return problem
    raise problem


def _counting(expression: str, run: Run, offsets: list[int]) -> Callable[..., tuple[bool, int]]:
    def evaluate(*args: Any) -> tuple[bool, int]:
        tracker = Tracker()
        try:
            return run(*args, tracker), tracker.cost
        except FAULTS as problem:
            raise _located(expression, problem, run, offsets, tracker.cost) from None
        except _FATAL as problem:
            # Charges are made in small groups; the reference stops at the first one too many.
            cost = min(tracker.cost, LIMIT + 1)
            raise _located(expression, problem, run, offsets, cost) from None

    return evaluate


def _located(
    expression: str, problem: BaseException, run: Run, offsets: list[int], cost: int = -1
) -> SelectorEvaluationError:
    """The public error for a problem, with the place of the generated line that raised it."""
    offset, hint = 0, ""
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals is run.__globals__:
            offset = offsets[trace.tb_lineno]
        trace = trace.tb_next
    text = str(problem)
    if isinstance(problem, EvalProblem):
        hint = problem.hint
        offset = offset if problem.offset is None else problem.offset
    elif isinstance(problem, RecursionError):
        text = "values are nested too deep"
    elif isinstance(problem, MemoryError):
        text = "out of memory"
    line, column = line_and_column(expression, offset)
    return SelectorEvaluationError(expression, line, column, text, hint, cost)
