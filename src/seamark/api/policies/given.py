"""What expressions are given of a request."""

from __future__ import annotations

from typing import Any

from seamark.api.authorization import Authorizer
from seamark.api.webhooks.evaluating import authorizer_of
from seamark.api.webhooks.review import Document, options
from seamark.cel.library.authorizer import Question, ResourceCheck
from seamark.errors import Object
from seamark.kinds.admission import Request
from seamark.kinds.resource import NAMESPACES, Resource


def given(request: Request, shown: Document, by: Resource, authorizer: Authorizer) -> dict[str, Any]:
    """The variables of all expressions, but for ``params`` and ``variables``."""
    asks = authorizer_of(authorizer, request.user)
    resource = request.kind.resource
    question = Question(
        group=resource.group,
        resource=resource.plural,
        subresource=request.part,
        namespace=request.namespace,
        name=_name(request, shown),
    )
    return {
        "object": shown.obj,
        "oldObject": shown.old,
        "request": asked(request, shown, by),
        "namespaceObject": _namespace(request),
        "authorizer": asks,
        "authorizer.requestResource": ResourceCheck(asks.decide, question),
    }


def _name(request: Request, shown: Document) -> str:
    if request.place is not None:
        return request.name
    return str((shown.obj or shown.old or {}).get("metadata", {}).get("name") or "")


def asked(request: Request, shown: Document, by: Resource) -> Object:
    """The request as expressions see it."""
    own, user = request.kind.resource, request.user
    name = _name(request, shown)
    said: Object = {
        "kind": {"group": shown.resource.group, "version": shown.resource.version, "kind": shown.resource.kind},
        "resource": {"group": by.group, "version": by.version, "resource": by.plural},
        "subResource": request.part,
        "requestKind": {"group": own.group, "version": own.version, "kind": own.kind},
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        "requestSubResource": request.part,
        "name": name,
        "namespace": name if own == NAMESPACES else request.namespace,
        "operation": request.operation,
        "userInfo": {
            "username": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra},
        },
        "dryRun": request.dry_run,
        "options": options(request),
    }
    # As in JSON, what is empty is not there.
    said["userInfo"] = {key: value for key, value in said["userInfo"].items() if value}
    return {
        key: value
        for key, value in said.items()
        if value or key not in ("subResource", "requestSubResource", "name", "namespace")
    }


def _namespace(request: Request) -> Object | None:
    """The Namespace of a request; None if it is in none, or if it is about a Namespace itself."""
    if request.kind.resource == NAMESPACES or not request.namespace:
        return None
    return request.others.get(NAMESPACES, request.namespace)
