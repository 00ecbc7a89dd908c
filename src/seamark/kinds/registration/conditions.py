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

AUTHORIZER = "kubernetes.authorization.Authorizer"


class ConditionError(Exception):
    """A condition that has no value for this request; the text is Kubernetes' own."""


@cache
def environment() -> Environment:
    """What the expressions of webhooks and policies can name."""
    from seamark.cel import Environment
    from seamark.cel.types import BOOL, DYN, STRING, list_of, map_of, object_of, opaque

    def record(name: str, *fields: str) -> Any:
        return object_of(f"kubernetes.{name}", dict.fromkeys(fields, STRING))

    kind = record("GroupVersionKind", "group", "version", "kind")
    resource = record("GroupVersionResource", "group", "version", "resource")
    user = object_of(
        "kubernetes.UserInfo",
        {"username": STRING, "uid": STRING, "groups": list_of(STRING), "extra": map_of(STRING, list_of(STRING))},
    )
    request = object_of(
        "kubernetes.AdmissionRequest",
        {
            "kind": kind,
            "resource": resource,
            "subResource": STRING,
            "requestKind": kind,
            "requestResource": resource,
            "requestSubResource": STRING,
            "name": STRING,
            "namespace": STRING,
            "operation": STRING,
            "userInfo": user,
            "dryRun": BOOL,
            "options": DYN,
        },
    )
    variables = {"object": DYN, "oldObject": DYN, "request": request, "authorizer": opaque(AUTHORIZER)}
    return Environment(variables)


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
