"""The variables, functions and types that expressions can use, and the programs made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from seamark.cel.checker import check
from seamark.cel.compiling import Code, Meter
from seamark.cel.cost import CHECK_COST, PER_CALL_LIMIT, Range, estimate
from seamark.cel.errors import CompileError, CostError, Mistake
from seamark.cel.library import functions, grouped
from seamark.cel.nodes import Ident, Node, children
from seamark.cel.parser import DEEPEST, parse
from seamark.cel.types import UNKNOWN_SIZE, Overload, Type, named_type
from seamark.haste import Costly, left_at_once, spend

STEPS_PER_EXPRESSION, STEPS_PER_LETTER = 5000, 300  # to compile one
STEPS_PER_COST = 200


class Environment:
    """What expressions can name: variables with their types, functions, and the types of both."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        *,
        overloads: Iterable[Overload] = (),
    ) -> None:
        self._variables = dict(variables)
        more = list(overloads)
        self._functions = grouped(more, functions()) if more else functions()
        self._types = _library_types(self._functions)

    def compile(self, text: str) -> Program:
        """Parse and check an expression; raises :class:`seamark.cel.errors.CompileError`."""
        spend(STEPS_PER_EXPRESSION + STEPS_PER_LETTER * len(text))
        try:
            node = check(text, parse(text), self._variables, self._functions, self._types)
        except RecursionError:
            raise CompileError(text, [Mistake(0, f"expression recursion limit exceeded: {DEEPEST}")]) from None
        return Program(text, node, self._variables)

    def with_variables(self, variables: Mapping[str, Type]) -> Environment:
        """The same environment with more variables, or others."""
        made = Environment.__new__(Environment)
        made._functions, made._types = self._functions, self._types
        made._variables = {**self._variables, **variables}
        return made

    def with_types(self, types: Mapping[str, Type]) -> Environment:
        """The same environment with more types."""
        made = self.with_variables({})
        made._types = {**self._types, **types}
        return made


_TYPES: dict[int, dict[str, Type]] = {}


def _library_types(known: Mapping[str, list[Overload]]) -> dict[str, Type]:
    """The types that functions return, by name: ``type(x) == net.IP``."""
    found = _TYPES.get(id(known))
    if found is None:
        results = [overload.result for overloads in known.values() for overload in overloads]
        found = {type.name: type for type in results if type.kind == "opaque" and named_type(type.name) is None}
        if known is functions():
            _TYPES[id(known)] = found
    return found


class Program:
    """An expression that was checked; its code and its cost are made when they are first needed."""

    def __init__(self, text: str, node: Node, variables: dict[str, Type]) -> None:
        self.text = text
        self._node = node
        self._variables = variables

    @property
    def type(self) -> Type:
        """What the expression evaluates to."""
        assert self._node.type is not None
        return self._node.type

    @cached_property
    def cost_estimate(self) -> Range:
        """What an evaluation costs at least and at most: more than is allowed, if it is nested too deeply to tell."""
        try:
            return estimate(self._node, self._variables)
        except RecursionError:
            return Range(0, UNKNOWN_SIZE)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that are read, those of loops included."""
        found: set[str] = set()
        todo = [self._node]
        while todo:
            node = todo.pop()
            if isinstance(node, Ident):
                found.add(node.name.removeprefix("."))
            todo += children(node)
        return frozenset(found)

    @cached_property
    def _questions(self) -> int:
        """How many questions to the authorizer fit into an evaluation."""
        return PER_CALL_LIMIT // CHECK_COST if any(name.startswith("authorizer") for name in self.names) else 0

    @cached_property
    def _code(self) -> Code:
        return Code(self._node, self._variables)

    def evaluate(self, given: dict[str, Any], budget: Meter | None = None, *, limit: int = PER_CALL_LIMIT) -> Any:
        """The value for these variables.

        Raises :class:`seamark.cel.errors.EvaluationError`, or :class:`seamark.cel.errors.CostError` if it costs more
        than ``limit``, or more than is left of a ``budget`` that several evaluations share.  On the event loop there is
        :class:`seamark.haste.Costly` when it has taken long; then nothing of the budget is used.
        """
        most = limit if budget is None else min(limit, budget.left)
        left = left_at_once()
        room = most if left is None else min(most, self._affordable(left[0]))
        meter = Meter(room)
        try:
            return self._code.evaluate(given, meter)
        except CostError:
            if left is None or room == most:
                raise
            left[0], meter.left = 0, room
            raise Costly from None
        finally:
            used = room - meter.left
            if budget is not None:
                budget.left -= used
            if left is not None:
                left[0] -= used % CHECK_COST * STEPS_PER_COST

    def _affordable(self, steps: int) -> int:
        """What it may cost on the event loop.  A question to the authorizer costs much and takes little."""
        return max(0, steps) // STEPS_PER_COST + self._questions * CHECK_COST
