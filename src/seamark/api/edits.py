"""What a patch or an apply makes of an object: functions for :meth:`seamark.api.write.change.Changes.change`.

The writer calls such a function again, with the newer object, when another write came first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seamark import errors
from seamark.api.fields import apply, fieldsets, managed, patch
from seamark.api.fields.managed import Entries
from seamark.api.fields.patch import PatchType
from seamark.api.intake import conform_patched
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.language import decode
from seamark.kinds.subresource import Part, View

NOT_STRATEGIC = (
    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
    "application/merge-patch+json, application/apply-patch+yaml"
)


def shown(kind: Kind, obj: Object) -> Object:
    """The object with its apiVersion and kind, which the stored form leaves to its key."""
    return {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version, **obj}


def patched(
    kind: Kind,
    part: Part,
    type: PatchType,
    document: Any,
    *,
    field_validation: str,
    mistakes: Sequence[str] = (),
    warnings: list[str],
) -> Callable[[Object], Object]:
    """What a JSON, merge or strategic merge patch makes of an object (which has its apiVersion and kind).

    ``mistakes`` are those of the document itself; ``warnings`` is set to them and to the fields the kind does not have.
    """

    if type == "strategic" and not kind.strategic_merge:
        raise errors.UnsupportedMediaType(NOT_STRATEGIC)

    def make(current: Object) -> Object:
        return conform_patched(
            patch.apply_patch(type, document, current, kind.shape),
            kind,
            part,
            current=current,
            strategic=document if type == "strategic" else None,
            field_validation=field_validation,
            mistakes=mistakes,
            warnings=warnings,
        )

    return make


def applied(
    kind: Kind, part: Part, config: Object, *, manager: str, force: bool, now: str
) -> Callable[[Object | None], Object]:
    """What server-side apply makes of the live object (which has its apiVersion and kind), or of None."""

    def make(live: Object | None) -> Object:
        merged = apply.apply(config, live, kind=kind, part=part, manager=manager, force=force, now=now)
        try:
            return kind.conform(merged)[0]
        except decode.DecodeError as error:
            raise errors.BadRequest(f"failed to convert new object to proper version: {error}") from error

    return make


# --- through a view ---------------------------------------------------------------------------------


def applied_to_view(view: View, kind: Kind, edit: Callable[[Object | None], Object]) -> Callable[[Object], Object]:
    """What a server-side apply of a view (a Scale) makes of the object behind it; ``edit`` applies to the view itself.

    The fields that both share have the same managers in both.
    """
    shared = fieldsets.of_paths(view.shares)

    def make(current: Object) -> Object:
        entries = managed.parse(current["metadata"].get("managedFields") or ())
        live = view.start(kind, current)
        live["metadata"]["managedFields"] = [
            {**entry, "apiVersion": view.sent.resource.api_version, "fieldsV1": shared}
            for entry in entries
            if fieldsets.intersection(entry["fieldsV1"], shared)
        ]
        new = edit(live)
        changed = view.change(kind, current, new)
        owners = managed.parse(new["metadata"].get("managedFields") or ())
        changed["metadata"]["managedFields"] = _with_owners(kind, entries, owners, shared)
        return changed

    return make


def _with_owners(kind: Kind, entries: Entries, owners: Entries, shared: fieldsets.Fields) -> Entries:
    """The object's managers, if ``owners`` are the managers of the shared fields."""
    new = {_who(owner): owner for owner in owners}
    left: Entries = []
    for entry in entries:
        fields = entry["fieldsV1"]
        if _who(entry) not in new:
            fields = fieldsets.difference(fields, shared)
        elif fieldsets.intersection(fields, shared):
            del new[_who(entry)]
        if fields:
            left.append({**entry, "fieldsV1": fields})
    left += ({**owner, "apiVersion": kind.resource.api_version} for owner in new.values())
    return managed.arranged(left)


def _who(entry: Object) -> tuple[str, str, str]:
    return entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")
