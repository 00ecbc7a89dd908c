"""Questions to the cluster's authorizer: ``authorizer.group('').resource('pods').check('get').allowed()``.

The variable ``authorizer`` is an :class:`Authorizer`, made with a function that decides about a :class:`Question`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from seamark.cel.types import opaque, overload
from seamark.cel.values import Opaque

_PREFIX = "kubernetes.authorization."


class Question(msgspec.Struct, frozen=True):
    """What a user may do: the one who makes the request, or a ``service_account`` (namespace, name)."""

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None


class Answer(msgspec.Struct, frozen=True):
    allowed: bool
    reason: str = ""
    error: str = ""


Decide = Callable[[Question], Answer]


class _Asking(Opaque):
    def __init__(self, decide: Decide, question: Question | None = None) -> None:
        self.decide = decide
        self.question = question or Question()


class Authorizer(_Asking):
    type_name: ClassVar[str] = f"{_PREFIX}Authorizer"


class _Path(_Asking):
    type_name: ClassVar[str] = f"{_PREFIX}PathCheck"


class _Group(_Asking):
    type_name: ClassVar[str] = f"{_PREFIX}GroupCheck"


class ResourceCheck(_Asking):
    """What the variable ``authorizer.requestResource`` is, with the question of the request."""

    type_name: ClassVar[str] = f"{_PREFIX}ResourceCheck"


class _Decision(Opaque):
    type_name: ClassVar[str] = f"{_PREFIX}Decision"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


AUTHORIZER = opaque(Authorizer.type_name)
RESOURCE_CHECK = opaque(ResourceCheck.type_name)


def _with(made: type[_Asking], *fields: str) -> Callable[..., _Asking]:
    def asked(asking: _Asking, *given: str) -> _Asking:
        changes = dict(zip(fields, given, strict=True))
        return made(asking.decide, msgspec.structs.replace(asking.question, **changes))

    return asked


def _service_account(asking: _Asking, namespace: str, name: str) -> _Asking:
    return Authorizer(asking.decide, msgspec.structs.replace(asking.question, service_account=(namespace, name)))


def _check(asking: _Asking, verb: str) -> _Decision:
    return _Decision(asking.decide(msgspec.structs.replace(asking.question, verb=verb)))


_A, _P, _G = f"{_PREFIX}Authorizer", f"{_PREFIX}PathCheck", f"{_PREFIX}GroupCheck"
_R, _D = f"{_PREFIX}ResourceCheck", f"{_PREFIX}Decision"
FUNCTIONS = [
    overload(f"{_A}.path(string) -> {_P}", _with(_Path, "path")),
    overload(f"{_A}.group(string) -> {_G}", _with(_Group, "group")),
    overload(f"{_A}.serviceAccount(string, string) -> {_A}", _service_account),
    overload(f"{_G}.resource(string) -> {_R}", _with(ResourceCheck, "resource")),
    overload(f"{_R}.subresource(string) -> {_R}", _with(ResourceCheck, "subresource")),
    overload(f"{_R}.namespace(string) -> {_R}", _with(ResourceCheck, "namespace")),
    overload(f"{_R}.name(string) -> {_R}", _with(ResourceCheck, "name")),
    overload(f"{_R}.fieldSelector(string) -> {_R}", _with(ResourceCheck, "field_selector")),
    overload(f"{_R}.labelSelector(string) -> {_R}", _with(ResourceCheck, "label_selector")),
    overload(f"{_R}.check(string) -> {_D}", _check),
    overload(f"{_P}.check(string) -> {_D}", _check),
    overload(f"{_D}.allowed() -> bool", lambda decision: decision.answer.allowed),
    overload(f"{_D}.reason() -> string", lambda decision: decision.answer.reason),
    overload(f"{_D}.errored() -> bool", lambda decision: bool(decision.answer.error)),
    overload(f"{_D}.error() -> string", lambda decision: decision.answer.error),
]
