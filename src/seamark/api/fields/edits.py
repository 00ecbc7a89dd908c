"""What a patch makes of an object: functions for :meth:`Writer.change`, which calls them again after a conflict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from seamark import errors
from seamark.api.fields import apply, patch
from seamark.api.http.body import Mistakes, conform_patched
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.language import decode

_NOT_STRATEGIC = (
    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
    "application/merge-patch+json, application/apply-patch+yaml"
)

PatchType = Literal["json", "merge", "strategic"]


def shown(kind: Kind, obj: Object) -> Object:
    """The object with its apiVersion and kind, which the stored form leaves to its key."""
    return {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version, **obj}


def patched(
    kind: Kind,
    type: PatchType,
    document: Any,
    *,
    subresource: str,
    field_validation: str = "Ignore",
    warnings: list[str] | None = None,
    mistakes: Mistakes = (),
) -> Callable[[Object], Object]:
    """What a JSON, merge or strategic merge patch makes; ``warnings`` gets what the kind has no field for.

    ``mistakes`` are those of the document itself.
    """
    if type == "strategic" and not kind.strategic_merge:
        raise errors.UnsupportedMediaType(_NOT_STRATEGIC)
    complaints = [] if warnings is None else warnings

    def make(old: Object) -> Object:
        current = shown(kind, old)
        result = patch.apply_patch(type, document, current, kind.shape)
        return conform_patched(
            result, kind, field_validation, complaints, current, subresource=subresource, mistakes=mistakes
        )

    return make


def applied(
    kind: Kind, config: Object, *, manager: str, force: bool, subresource: str, now: str
) -> Callable[[Object | None], Object]:
    """What server-side apply makes of the live object, or of nothing."""

    def make(live: Object | None) -> Object:
        merged = apply.apply(
            config,
            None if live is None else shown(kind, live),
            shape=kind.shape,
            manager=manager,
            force=force,
            api_version=kind.resource.api_version,
            subresource=subresource,
            now=now,
        )
        return decode.conform(merged, kind.shape)[0]

    return make
