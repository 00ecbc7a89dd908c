"""The objects that a binding names as the parameters of its policy."""

from __future__ import annotations

from collections.abc import Sequence

from seamark.errors import Object
from seamark.kinds.admission import Request
from seamark.kinds.kind import Kind
from seamark.kinds.table import Kinds
from seamark.kinds.values.selectors import from_label_selector


class Misconfigured(Exception):
    """The parameters cannot be had; the text says why."""


def param_kind(kinds: Kinds, wanted: Object | None) -> Kind | None:
    """The kind of a policy's parameters; None if it has none."""
    if wanted is None:
        return None
    kind = kinds.by_kind(wanted["apiVersion"], wanted["kind"])
    if kind is None:
        said = f"{wanted['apiVersion']}, Kind={wanted['kind']}"
        raise Misconfigured(f"failed to configure policy: failed to find resource referenced by paramKind: '{said}'")
    return kind


async def params(kind: Kind | None, request: Request, reference: Object | None) -> Sequence[Object | None]:
    """The parameters to evaluate a policy with, one after the other; None stands for no parameter."""
    if kind is None or reference is None:
        return [None]
    found = [await _headed(kind, each) for each in _found(kind, request, reference)]
    if not found and reference.get("parameterNotFoundAction") != "Allow":
        sentence = "no params found for policy binding with `Deny` parameterNotFoundAction"
        raise Misconfigured(f"failed to configure binding: {sentence}")
    return found


async def _headed(kind: Kind, obj: Object) -> Object:
    if kind.conversion is not None and kind.conversion.needed(obj):
        (shown,) = await kind.conversion.shown([obj])
    else:
        shown = kind.from_stored(obj)
    return {**shown, "kind": kind.resource.kind, "apiVersion": kind.resource.api_version}


def _found(kind: Kind, request: Request, reference: Object) -> Sequence[Object]:
    namespace = reference.get("namespace") or ""
    if not kind.resource.namespaced:
        if namespace:
            sentence = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            raise Misconfigured(f"failed to configure binding: {sentence}")
    else:
        namespace = namespace or request.namespace
        if not namespace:
            sentence = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise Misconfigured(f"failed to configure binding: {sentence}")
    if name := reference.get("name"):
        one = request.others.get(kind.resource, name, namespace)
        return [] if one is None else [one]
    selector = from_label_selector(reference.get("selector") or {})
    return [
        each
        for each in request.others.all(kind.resource, namespace)
        if selector.matches(each["metadata"].get("labels") or {})
    ]
