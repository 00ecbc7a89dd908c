"""What is wrong with the expressions of a ValidatingAdmissionPolicy, by the types of what it matches.

Only warnings follow from it: a policy is evaluated without types, since it may match kinds that come later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from seamark.cel import CompileError, Environment
from seamark.cel.types import DYN, Field, Type
from seamark.errors import Object
from seamark.kinds.expressions.schema_types import type_of_schema
from seamark.kinds.expressions.shape_types import type_of_shape
from seamark.kinds.kind import Kind
from seamark.kinds.registration.expressions import Variables, environment
from seamark.kinds.table import Kinds

MOST_TYPES = 10  # of one rule


def warnings(spec: Object, kinds: Kinds) -> list[Object]:
    """The ``expressionWarnings`` of a policy."""
    matched = [(kind, type_of(kind)) for kind in kinds_to_check(spec, kinds)]
    if not matched:
        return []
    params = _type_of_params(spec.get("paramKind"), kinds)
    environments = [(kind, _environment(spec, type, params)) for kind, type in matched]
    found = []
    for index, validation in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            if text := validation.get(field):
                said = [f"{_named(kind)}: {wrong}\n" for kind, env in environments if (wrong := _mistakes(env, text))]
                if said:
                    found.append({"fieldRef": f"spec.validations[{index}].{field}", "warning": "\n".join(said)})
    return found


def kinds_to_check(spec: Object, kinds: Kinds) -> list[Kind]:
    """The kinds that the rules name, of each rule a few; rules with a ``*`` for the group or version name none."""
    found: dict[tuple[str, str, str], Kind] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        for kind in list(_named_by(rule, kinds))[:MOST_TYPES]:
            resource = kind.resource
            found[resource.group, resource.version, resource.kind] = kind
    return [found[key] for key in sorted(found)]


def _named_by(rule: Object, kinds: Kinds) -> Iterator[Kind]:
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    if "*" in (*groups, *versions):
        return
    plurals = sorted(plural for plural in rule.get("resources") or () if not set(plural) & set("*/"))
    for group in sorted(groups):
        for version in sorted(versions):
            for plural in plurals:
                if (kind := kinds.by_plural(group, version, plural)) is not None:
                    yield kind


def type_of(kind: Kind) -> Type:
    """The type of a kind's objects."""
    shape, name = kind.shape, kind.resource.kind
    whole = type_of_shape(shape, name)
    if shape.schema is None:
        return whole
    made = type_of_schema(shape.schema, root=True, name=name)
    if made is None or made.fields is None or whole.fields is None:
        return DYN
    return replace(made, fields={**made.fields, "metadata": Field("metadata", whole.fields["metadata"].type)})


def _type_of_params(wanted: Object | None, kinds: Kinds) -> Type | None:
    kind = kinds.by_kind(wanted["apiVersion"], wanted["kind"]) if wanted else None
    if kind is None:
        return DYN if wanted else None
    return type_of(kind)


def _environment(spec: Object, type: Type, params: Type | None) -> Environment:
    types = {"object": type, "oldObject": type} | ({} if params is None else {"params": params})
    base = environment(params=params is not None).with_variables(types)
    variables = Variables(base)
    for each in spec.get("variables") or ():
        try:
            found = variables.env.compile(each["expression"]).type
        except CompileError:
            found = DYN
        variables.declare(each["name"], found)
    return variables.env


def _mistakes(env: Environment, text: str) -> str:
    try:
        env.compile(text)
    except CompileError as error:
        return str(error)
    return ""


def _named(kind: Kind) -> str:
    resource = kind.resource
    return f"{resource.group}/{resource.version}, Kind={resource.kind}"


def status(generation: int, found: Sequence[Object]) -> Object:
    """The status of a policy whose expressions were checked."""
    return {"observedGeneration": generation, "typeChecking": {"expressionWarnings": list(found)} if found else {}}
