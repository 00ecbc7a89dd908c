"""Match conditions: expressions in CEL that say whether a webhook is asked about a request.

The language is imported when the first condition is there: most servers have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from seamark.errors import Object
from seamark.kinds.values.fields import Errors, invalid

if TYPE_CHECKING:
    from seamark.cel import Environment, Program


class ConditionError(Exception):
    """A condition that has no value for this request; the text is Kubernetes' own."""


@cache
def environment() -> Environment:
    """What the conditions of webhooks can name."""
    from seamark.cel import Environment
    from seamark.kinds.registration import expressions

    known = ("object", "oldObject", "request", "authorizer")
    return Environment({name: expressions.VARIABLES[name] for name in known})


@lru_cache(maxsize=1024)
def compiled(expression: str) -> Program:
    """Raises :class:`seamark.cel.CompileError`."""
    return environment().compile(expression)


def expression_mistakes(expression: str, at: str) -> Errors:
    """What is wrong with the expression of a condition, which has to be true or false."""
    from seamark.cel import CompileError
    from seamark.cel.types import BOOL, shown

    try:
        type = compiled(expression).type
    except CompileError as error:
        return [invalid(at, expression, f"compilation failed: {error}")]
    return [] if type is BOOL else [invalid(at, expression, f"must evaluate to bool but got {shown(type)}")]


def met(conditions: Sequence[Object], variables: Mapping[str, Any]) -> bool:
    """Whether all conditions hold; raises :class:`ConditionError` if none fails to hold but one has no value."""
    from seamark.cel import CelError

    failures: list[str] = []
    for condition in conditions:
        text = condition["expression"]
        try:
            if not compiled(text).evaluate(dict(variables)):
                return False
        except CelError as error:
            failures.append(f"expression '{text}' resulted in error: {error}")
    if failures:
        raise ConditionError(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
    return True
