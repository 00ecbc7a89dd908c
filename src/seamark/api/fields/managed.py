"""Which manager set which field: ``metadata.managedFields`` after ordinary writes (after an apply: :mod:`.apply`).

There is one entry per manager, operation, apiVersion and subresource.  A create or update gives its manager every field
it added or changed and takes those fields from all other managers; removed fields leave all entries.

:func:`track` compares what the client asked for with what was there.  So it runs after defaulting and *before* the
server adds what it decides by itself (addresses, generation, status): no manager owns that.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seamark.api.fields import fieldsets
from seamark.api.fields.fieldsets import Fields
from seamark.api.fields.typed import Struct, struct
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.language.shape import Shape
from seamark.kinds.subresource import Part, Paths

LONGEST_MANAGER = 128  # bytes
MOST_UPDATERS = 10
ANCIENT = "ancient-changes"

Entries = list[Object]

# The system's own fields; no manager is ever said to own them.
_NEVER_OWNED = (
    ("apiVersion",),
    ("kind",),
    *(
        ("metadata", name)
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)


def owned(kind: Kind, part: Part) -> Struct:
    """The shape of a kind as far as a write to this part of it can give its manager anything."""
    return kind.shape.form(_owned, part.reset, part.edits)


def _owned(shape: Shape, reset: Paths, edits: Paths) -> Struct:
    return struct(shape).only(*edits) if edits else struct(shape).less(*_NEVER_OWNED, *reset)


def manager_name(user_agent: str, field_manager: str) -> str:
    """``fieldManager`` if given, else what stands before the first slash of the user agent."""
    if field_manager:
        return field_manager
    name = "".join(character for character in user_agent.partition("/")[0] if character.isprintable())
    return name.encode()[:LONGEST_MANAGER].decode(errors="ignore") or "unknown"


# --- updates ----------------------------------------------------------------------------------------


def track(new: Object, old: Object | None, kind: Kind, part: Part, *, manager: str, now: str) -> None:
    """Sets ``new["metadata"]["managedFields"]`` for a write other than apply; ``old`` is None for a creation.

    Clients may edit managedFields themselves; ``[]`` and ``[{}]`` turn tracking off until the object is next applied.
    """
    meta = new["metadata"]
    kept: Entries = [] if old is None else old["metadata"].get("managedFields") or []
    entries = _sent_or_kept(meta.pop("managedFields", None), kept, part)
    if old is None or entries:
        known = owned(kind, part)
        changed: Fields = {}
        removed: Fields = {}
        try:
            known.compare(known.zero if old is None else old, new, changed, removed)
        except (AttributeError, TypeError):
            if kind.built_in:
                raise
            # Some values of this custom resource have other types than the schema says.  Validation refuses them.
            changed, removed = {}, {}
        if changed or removed:
            who = identity(manager, "Update", kind.resource.api_version, part.name)
            entries = _updated(usable(entries, kind), changed, removed, who, now)
    if entries:
        meta["managedFields"] = list(entries)


def _sent_or_kept(sent: Any, kept: Entries, part: Part) -> Entries:
    """The entries to start from: those sent, if they can be read, else those of the object as it is."""
    if sent is None or part.name or sent == kept:
        return kept
    if not sent or sent == [{}]:
        return []
    try:
        return parse(sent) or kept
    except fieldsets.MalformedFields:
        return kept


def _updated(entries: Entries, changed: Fields, removed: Fields, who: Object, now: str) -> Entries:
    """``entries`` after the manager ``who`` changed and removed these fields."""
    mine: Fields = {}
    out: Entries = []
    for entry in entries:
        fields = entry["fieldsV1"]
        rest = fieldsets.difference(fieldsets.difference(fields, changed), removed)
        if changed and _same_identity(entry, who):
            mine = rest
        elif rest is fields:
            out.append(entry)
        elif rest:
            out.append({**entry, "fieldsV1": rest})
    if changed:
        out.append(entry_of(who, fieldsets.union(mine, changed), now))
        if len(out) > MOST_UPDATERS:
            out = _capped(out)
    return arranged(out)


def usable(entries: Entries, kind: Kind) -> Entries:
    """Without those of versions the kind does not have."""
    versions = kind.sibling_versions or (kind.resource.api_version,)
    return [entry for entry in entries if entry["apiVersion"] in versions]


def _capped(entries: Entries) -> Entries:
    """At most ten updaters: the oldest are merged into one entry per apiVersion."""
    updates = [entry for entry in entries if entry["operation"] == "Update"]
    surplus = len(updates) - MOST_UPDATERS
    if surplus <= 0:
        return entries
    updates.sort(key=lambda entry: (entry.get("time", ""), identifier(entry)))
    buckets: dict[str, Object] = {e["apiVersion"]: e for e in updates if e.get("manager") == ANCIENT}
    first: dict[str, Object] = {}
    gone: list[Object] = []
    for entry in updates:
        version = entry["apiVersion"]
        if surplus <= 0:
            break
        if version not in first:
            first[version] = entry
            continue
        into = buckets.get(version, first[version])
        gone += [entry, into]
        fields = fieldsets.union(entry["fieldsV1"], into["fieldsV1"])
        who = identity(ANCIENT, "Update", version, "")
        buckets[version] = first[version] = entry_of(who, fields, entry.get("time"))
        surplus -= 1
    without = set(map(id, gone))
    left = [entry for entry in entries if id(entry) not in without]
    without.update(map(id, left))
    return left + [bucket for bucket in buckets.values() if id(bucket) not in without]


def keep_times(new: Object, old: Object) -> None:
    """Takes back the new times of managedFields if nothing else changed: a write without effect changes nothing.

    To be called at the end of the write path, after defaulting and preparation.
    """
    entries, before = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if not entries or not before or len(entries) != len(before) or entries == before:
        return
    # Most writes do change something, and that is quickly seen.
    if _unmanaged(new) == _unmanaged(old) and _timeless(entries) == _timeless(before):
        new["metadata"]["managedFields"] = before


def _timeless(entries: Entries) -> dict[str, Object]:
    """By identity, because their order depends on the times."""
    return {identifier(entry): {k: v for k, v in entry.items() if k != "time"} for entry in entries}


def _unmanaged(obj: Object) -> Object:
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    return {**rest, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


# --- entries ----------------------------------------------------------------------------------------


def identity(manager: str, operation: str, api_version: str, subresource: str) -> Object:
    """What tells one entry from another."""
    who = {"manager": manager, "operation": operation, "apiVersion": api_version}
    if subresource:
        who["subresource"] = subresource
    return who


def entry_of(who: Object, fields: Fields, time: str | None) -> Object:
    entry = {"operation": who["operation"], "apiVersion": who["apiVersion"]}
    if who.get("manager"):  # a manager may have no name
        entry = {"manager": who["manager"], **entry}
    if time is not None:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fields
    if "subresource" in who:
        entry["subresource"] = who["subresource"]
    return entry


def _same_identity(entry: Object, who: Object) -> bool:
    return (
        entry.get("manager", "") == who.get("manager", "")
        and entry["operation"] == who["operation"]
        and entry["apiVersion"] == who["apiVersion"]
        and entry.get("subresource") == who.get("subresource")
    )


def identifier(entry: Object) -> str:
    """An entry's identity as text.  An applier keeps its identity from one apiVersion to the next."""
    who: Object = {"manager": entry.get("manager", ""), "operation": entry["operation"]}
    if entry["operation"] != "Apply":
        who["apiVersion"] = entry["apiVersion"]
    if entry.get("subresource"):
        who["subresource"] = entry["subresource"]
    return msgspec.json.encode(who).decode()


def arranged(entries: Entries) -> Entries:
    """In the order Kubernetes keeps them: appliers first, then the oldest."""
    return sorted(entries, key=_order)


def _order(entry: Object) -> tuple[str, str, str, str, str]:
    return (
        entry["operation"],
        entry.get("time", ""),
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def parse(sent: Any) -> Entries:
    """Entries as a client sent them; of two with one identity the last counts.

    Raises ``fieldsets.MalformedFields``.
    """
    entries: dict[str, Object] = {}
    for number, entry in enumerate(sent):
        if entry.get("operation") not in ("Apply", "Update"):
            raise fieldsets.MalformedFields("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise fieldsets.MalformedFields("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise fieldsets.MalformedFields(f"invalid fieldsType in managed fields entry {number}")
        who = identity(
            entry.get("manager", ""), entry["operation"], entry["apiVersion"], entry.get("subresource") or ""
        )
        fields = fieldsets.parse(entry.get("fieldsV1"))
        entries[identifier(who)] = entry_of(who, fields, entry.get("time"))
    return arranged(list(entries.values()))
