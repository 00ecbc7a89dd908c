"""The expressions of admission policies and webhooks: what they can name, and what they have to evaluate to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from seamark.cel import CompileError, Environment, Program
from seamark.cel.library.authorizer import AUTHORIZER, RESOURCE_CHECK
from seamark.cel.types import BOOL, DYN, INT, NULL, STRING, TIMESTAMP, Field, Type, list_of, map_of, object_of, overload
from seamark.kinds.expressions import environments

_TEXTS = map_of(STRING, STRING)
_KIND = object_of("kubernetes.GroupVersionKind", {"group": STRING, "version": STRING, "kind": STRING})
_RESOURCE = object_of("kubernetes.GroupVersionResource", {"group": STRING, "version": STRING, "resource": STRING})
_USER = object_of(
    "kubernetes.UserInfo",
    {"username": STRING, "uid": STRING, "groups": list_of(STRING), "extra": map_of(STRING, list_of(STRING))},
)
REQUEST = object_of(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)
_METADATA = {
    **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
    **dict.fromkeys(("labels", "annotations"), _TEXTS),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
    **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), INT),
    "finalizers": list_of(STRING),
}
NAMESPACE = object_of(
    "kubernetes.Namespace",
    {
        "metadata": object_of("kubernetes.NamespaceMetadata", _METADATA),
        "spec": object_of("kubernetes.NamespaceSpec", {"finalizers": list_of(STRING)}),
        "status": object_of("kubernetes.NamespaceStatus", {"phase": STRING}),
    },
)

# What every expression can name.
VARIABLES: dict[str, Type] = {
    "object": DYN,
    "oldObject": DYN,
    "request": REQUEST,
    "namespaceObject": NAMESPACE,
    "authorizer": AUTHORIZER,
    "authorizer.requestResource": RESOURCE_CHECK,
}

BOOLEAN, TEXT, TEXT_OR_NOTHING = (BOOL,), (STRING,), (STRING, NULL)


class Unfit(Exception):
    """An expression that cannot be used; the text says why."""


@cache
def environment(*, params: bool = False, authorizer: bool = True) -> Environment:
    """What every expression can name: parameters if the policy has some, and the authorizer but in messages."""
    known = VARIABLES if authorizer else {name: VARIABLES[name] for name in VARIABLES if "authorizer" not in name}
    return environments.environment(known | ({"params": DYN} if params else {}), _ESCAPE)


class Variables:
    """The environment of a policy's expressions, in which ``variables`` has those that were declared so far.

    It is one environment that grows: a new one for each of thousands of variables would copy all earlier ones.
    """

    def __init__(self, base: Environment) -> None:
        self._fields: dict[str, Field] = {}
        self.env = base.with_variables({"variables": Type("object", "kubernetes.variables", fields=self._fields)})

    def declare(self, name: str, type: Type) -> None:
        """Expressions that are compiled from now on can name this variable."""
        self._fields[name] = Field(name, type)


def compiled(base: Environment, text: str, wanted: Sequence[Type] = ()) -> Program:
    """The program for an expression, which has to evaluate to one of the types; raises :class:`Unfit`."""
    try:
        program = base.compile(text)
    except CompileError as error:
        raise Unfit(f"compilation failed: {error}") from None
    if wanted and program.type.kind not in {type.kind for type in wanted}:
        names = str(wanted[0]) if len(wanted) == 1 else f"one of [{' '.join(map(str, wanted))}]"
        raise Unfit(f"must evaluate to {names} but got {program.type}")
    return program


# --- mutations ---------------------------------------------------------------------------------------

_object_name = re.compile(r"\bObject(?:\.[A-Za-z_]\w*)*(?=\s*\{)")


class _AnyFields(dict[str, Field]):
    """The fields of ``Object``: what an object may have is judged when the result is merged into it."""

    def __bool__(self) -> bool:
        return True

    def __missing__(self, name: str) -> Field:
        return Field(name, DYN)

    def get(self, name: str, default: object = None) -> Field:  # every name is known
        return Field(name, DYN)


PATCH = object_of("JSONPatch", {"op": STRING, "path": STRING, "from": STRING, "value": DYN})
_ESCAPE = overload(
    "jsonpatch.escapeKey(string) -> string",
    lambda key: key.replace("~", "~0").replace("/", "~1"),
    name="jsonpatch.escapeKey",
)


def mutation_program(base: Environment, mutation: Mapping[str, Any]) -> Program:
    """The program of a mutation: an ``Object{…}`` to merge, or a list of ``JSONPatch{…}``; raises :class:`Unfit`."""
    applied = mutation["patchType"] == "ApplyConfiguration"
    text = mutation["applyConfiguration" if applied else "jsonPatch"]["expression"]
    names = {"Object", *_object_name.findall(text)}
    types = {name: Type("object", name, fields=_AnyFields()) for name in names}
    program = compiled(base.with_types(types if applied else {"JSONPatch": PATCH, **types}), text)
    if applied:
        if program.type.kind != "dyn" and program.type.name != "Object":
            raise Unfit(f"must evaluate to Object but got {program.type}")
        return program
    if program.type.kind != "list":
        raise Unfit(f"must evaluate to list(JSONPatch) but got {program.type}")
    return program
