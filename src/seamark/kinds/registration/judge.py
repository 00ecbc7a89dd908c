"""Judges the expressions of one admission policy, in the order in which they are listed."""

from __future__ import annotations

from collections.abc import Sequence

from seamark.cel import Environment
from seamark.cel.types import DYN, Type
from seamark.errors import Object
from seamark.kinds.registration import expressions
from seamark.kinds.registration.expressions import Unfit, Variables, environment
from seamark.kinds.values.fields import Errors, invalid


class Judge:
    """What is wrong with each expression; a variable can be named by the expressions that are judged after it."""

    def __init__(self, *, params: bool) -> None:
        self._base = environment(params=params)
        self._variables = Variables(self._base)
        self._telling = Variables(environment(params=params, authorizer=False))

    def condition(self, text: str, at: str) -> Errors:
        """Match conditions are evaluated before the variables."""
        return _judged(self._base, text, at, expressions.BOOLEAN)[1]

    def variable(self, name: str, text: str, at: str) -> Errors:
        type, errors = _judged(self._variables.env, text, at)
        self._variables.declare(name, type)
        self._telling.declare(name, type)
        return errors

    def validation(self, text: str, at: str) -> Errors:
        return _judged(self._variables.env, text, at, expressions.BOOLEAN)[1]

    def message(self, text: str, at: str) -> Errors:
        """A message cannot ask the authorizer."""
        return _judged(self._telling.env, text, at, expressions.TEXT)[1]

    def note(self, text: str, at: str) -> Errors:
        return _judged(self._variables.env, text, at, expressions.TEXT_OR_NOTHING)[1]

    def mutation(self, mutation: Object, text: str, at: str) -> Errors:
        try:
            expressions.mutation_program(self._variables.env, mutation)
        except Unfit as error:
            return [invalid(at, text, str(error))]
        return []


def _judged(env: Environment, text: str, at: str, wanted: Sequence[Type] = ()) -> tuple[Type, Errors]:
    try:
        return expressions.compiled(env, text, wanted).type, []
    except Unfit as error:
        return DYN, [invalid(at, text, str(error))]
