"""One request on its way to an answer: who asks, for what, with which options, and how the answer shall look."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from seamark import errors
from seamark.api.context import User, Writing
from seamark.api.fields import managed
from seamark.api.fields.edits import PatchType
from seamark.api.http.negotiate import negotiate
from seamark.api.http.options import Query, WriteOptions, first
from seamark.api.http.protocol import Request
from seamark.api.http.target import Target
from seamark.api.state.render import Renderer
from seamark.kinds.kind import Kind
from seamark.kinds.values import times

PATCH_TYPES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
APPLY_TYPE = "application/apply-patch+yaml"


class Call(msgspec.Struct):
    """A request whose target exists and whose sender may ask for it."""

    request: Request
    target: Target
    query: Query
    user: User
    clock: Callable[[], float]

    @property
    def kind(self) -> Kind:
        return self.target.kind

    @property
    def subresource(self) -> str:
        return self.target.subresource.name if self.target.subresource is not None else ""

    @property
    def applies(self) -> bool:
        """Whether it is a server-side apply."""
        return self.request.method == "PATCH" and self._media_type() == APPLY_TYPE

    def patch_type(self) -> PatchType:
        type = PATCH_TYPES.get(self._media_type())
        if type is None:
            raise errors.UnsupportedMediaType("415: Unsupported Media Type", details={})
        return type

    def _media_type(self) -> str:
        return self.request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()

    def renderer(self, allowed: frozenset[str]) -> Renderer:
        """What makes the form the client asked for; 406 if it is none of those ``allowed``."""
        representation = negotiate(self.request.headers.get("accept", ""), allowed)
        return Renderer(self.kind, representation, first(self.query, "includeObject"), self.clock)

    def how(self, options: WriteOptions) -> Writing:
        return Writing(
            manager=managed.manager_name(self.request.headers.get("user-agent", ""), options.field_manager),
            now=times.text(self.clock()),
            dry_run=options.dry_run,
            field_validation=options.field_validation,
            user=self.user,
        )

    def deleting(self, *, dry_run: bool) -> Writing:
        """As :meth:`how`, for what leaves nothing behind to be managed by anybody."""
        return Writing(manager="", now=times.text(self.clock()), dry_run=dry_run, user=self.user)


def verb_of(method: str, target: Target) -> str:
    """Kubernetes' name for what an HTTP method does to a target; "" for a method that does nothing."""
    match method:
        case "GET" | "HEAD":
            return "get" if target.name and not target.watch else "list"
        case "POST":
            return "create"
        case "PUT":
            return "update"
        case "PATCH":
            return "patch"
        case "DELETE":
            return "delete" if target.name else "deletecollection"
        case _:
            return ""
