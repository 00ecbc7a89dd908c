"""Server-side apply: merge a configuration into the live object, and record which manager owns which field.

    merge     every field the configuration names replaces the live one
    prune     fields that the manager applied last time, does not apply now, and that no other manager owns are removed
    conflict  a changed field that another manager owns is an error, unless the apply is forced

The result is what the client asked for, not yet an object: like any body it goes through decoding, defaulting and
validation, and like the result of an update its times are settled by :func:`managed.keep_times` at the end.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from seamark.api.fields import declared, fieldsets, managed, merging
from seamark.api.fields.fieldsets import Fields
from seamark.api.fields.managed import Entries
from seamark.api.fields.typed import Struct, struct
from seamark.api.fields.values import copied
from seamark.errors import ApiError, BadRequest, Cause, Conflict, Object
from seamark.kinds.kind import Kind
from seamark.kinds.language import inner_json
from seamark.kinds.language.shape import Shape
from seamark.kinds.subresource import Part
from seamark.kinds.values.metadata import TOTAL_ANNOTATIONS_LIMIT
from seamark.kinds.wellknown import LAST_APPLIED_ANNOTATION

BEFORE_FIRST_APPLY = "before-first-apply"

KUBECTL = "kubectl"


def apply(
    config: Object, live: Object | None, *, kind: Kind, part: Part, manager: str, force: bool, now: str
) -> Object:
    """The live object (None: there is none yet) with ``config`` applied to it, managedFields included.

    The result shares with both what it takes over unchanged; decoding makes it independent.  Raises :class:`Conflict`
    if other managers own what would change.
    """
    shape, api_version = kind.shape, kind.resource.api_version
    _check(config, shape, api_version)
    known = managed.owned(kind, part)
    before = dict(known.zero if live is None else live)
    before["metadata"] = dict(before["metadata"])
    entries: Entries = before["metadata"].pop("managedFields", None) or []
    if not entries and live is not None:
        entries = _before_first_apply(known, before, api_version, part, now)
    attempt = _Attempt(known, struct(shape), managed.identity(manager, "Apply", api_version, part.name), now)
    try:
        step = partial(attempt.run, config, before, managed.usable(entries, kind))
        conflicts, after = declared.typed(step, before, shape)
    except declared.Untyped as error:
        raise ApiError(f"failed to create typed live object ({declared.described(config)}): {error}") from None
    if conflicts and not force:
        if manager == KUBECTL:
            conflicts = _less_last_applied(conflicts, before, shape, api_version)
        if conflicts:
            raise _refusal(conflicts)
    if manager == KUBECTL:
        _remember(after, config)
    return after


def _check(config: Object, shape: Shape, api_version: str) -> None:
    if config.get("apiVersion") != api_version or config.get("kind") != shape.go_name:
        raise BadRequest(f"invalid object type: {declared.group_version_kind(config)}")
    meta = config.get("metadata")
    if isinstance(meta, dict) and isinstance(meta.get("managedFields"), list):
        raise BadRequest("metadata.managedFields must be nil")
    if found := declared.mistakes(config, shape):
        described = declared.described(config)
        raise ApiError(f"failed to create typed patch object ({described}): {declared.summary(found)}")


class _Attempt:
    """One apply by one manager; ``known`` is the shape as far as managers own it, ``full`` all of it."""

    def __init__(self, known: Struct, full: Struct, who: Object, now: str) -> None:
        self.known, self.full, self.who, self.now = known, full, who, now
        self.me = managed.identifier(who)

    def run(self, config: Object, live: Object, entries: Entries) -> tuple[dict[str, Fields], Object]:
        """The conflicts by manager, and the result if they are overruled."""
        others = [entry for entry in entries if managed.identifier(entry) != self.me]
        last = next((entry for entry in entries if managed.identifier(entry) == self.me), None)
        mine = merging.named_fields(self.known, config)
        after: Object = merging.merge(self.full, live, config)
        # Most applies leave nothing out that was there last time.
        if last is not None and fieldsets.difference(last["fieldsV1"], mine):
            after = self._pruned(after, last["fieldsV1"], config, others)
        after.setdefault("metadata", {})
        changed: Fields = {}
        removed: Fields = {}
        self.known.compare(live, after, changed, removed)
        conflicts: dict[str, Fields] = {}
        left: Entries = []
        for entry in others:
            fields = entry["fieldsV1"]
            if disputed := fieldsets.intersection(fields, changed):
                conflicts[managed.identifier(entry)] = disputed
            rest = fieldsets.difference(fieldsets.difference(fields, changed), removed)
            if rest:
                left.append(entry if rest is fields else {**entry, "fieldsV1": rest})
        if mine:
            # An apply that changes nothing gets no time, not even in a manager's first entry.
            time = self.now if not _same(after, live) else last.get("time") if last is not None else None
            left.append(managed.entry_of(self.who, fieldsets.ordered(mine), time))
        if left:
            after["metadata"]["managedFields"] = managed.arranged(left)
        return conflicts, after

    def _pruned(self, merged: Object, last: Fields, config: Object, others: Entries) -> Object:
        """``merged`` without what only the manager's last configuration had."""
        full = self.full
        everything = self._fields(merged)
        owned = self._fields(config)
        for entry in others:
            owned = fieldsets.union(owned, merging.with_structs(full, entry["fieldsV1"]))
        last = merging.with_structs(full, last)
        # Take out all of it, put back what other managers own and the structs it is in, then see what is missing.
        kept = self._fields(merging.remove(full, merged, last))
        surplus = fieldsets.difference(everything, fieldsets.union(kept, owned))
        kept = self._fields(merging.remove(full, merged, surplus))
        surplus = fieldsets.intersection(fieldsets.difference(everything, kept), last)
        pruned: Object = merging.remove(full, merged, surplus) or {}
        return pruned

    def _fields(self, value: Any) -> Fields:
        return merging.with_structs(self.full, merging.named_fields(self.full, value))


def _before_first_apply(known: Struct, live: Object, api_version: str, part: Part, now: str) -> Entries:
    """All that an untracked object has gets a manager, so that a first apply does not take it without a conflict."""
    changed: Fields = {}
    known.compare(known.zero, live, changed, {})
    who = managed.identity(BEFORE_FIRST_APPLY, "Update", api_version, part.name)
    return [managed.entry_of(who, changed, now)] if changed else []


def _same(one: Object, other: Object) -> bool:
    """Equal but for apiVersion and kind, which live objects may be without."""
    return all(one.get(key) == other.get(key) for key in (one.keys() | other.keys()) - {"apiVersion", "kind"})


# --- conflicts --------------------------------------------------------------------------------------


def _refusal(conflicts: dict[str, Fields]) -> Conflict:
    sentences: list[str] = []
    causes: list[Cause] = []
    for identifier in sorted(conflicts):
        who = _shown(msgspec.json.decode(identifier))
        sentences.append(f"conflicts with {who}:")
        for path in fieldsets.paths(conflicts[identifier]):
            shown = fieldsets.show(path)
            sentences.append(f"- {shown}")
            causes.append(Cause(reason="FieldManagerConflict", message=f"conflict with {who}", field=shown))
    if len(causes) == 1:
        text = f"1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        text = f"{len(causes)} conflicts: " + "\n".join(sentences)
    return Conflict(f"Apply failed with {text}", causes=causes)


def _shown(who: Object) -> str:
    text = msgspec.json.encode(who.get("manager", "")).decode()
    if "subresource" in who:
        text += f' with subresource "{who["subresource"]}"'
    return f"{text} using {who['apiVersion']}" if who["operation"] == "Update" else text


# --- kubectl's own annotation -----------------------------------------------------------------------


def _less_last_applied(conflicts: dict[str, Fields], live: Object, shape: Shape, api_version: str) -> dict[str, Fields]:
    """The conflicts, except about fields that kubectl's client-side apply set and that have not changed since."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED_ANNOTATION)
    if not text:
        return conflicts
    try:
        last = inner_json.read(text)
    except inner_json.Unreadable:
        return conflicts
    if not isinstance(last, dict) or last.get("apiVersion") != api_version or declared.mistakes(last, shape):
        return conflicts
    full = struct(shape)
    changed: Fields = {}
    removed: Fields = {}
    full.compare(last, live, changed, removed)
    untouched = fieldsets.difference(fieldsets.difference(merging.named_fields(full, last), changed), removed)
    left = {who: fieldsets.difference(fields, untouched) for who, fields in conflicts.items()}
    return {who: fields for who, fields in left.items() if fields}


def _remember(after: Object, config: Object) -> None:
    """Keeps the annotation of client-side apply up to date where there is one, so that a user can go back to it."""
    annotations = after["metadata"].get("annotations")
    if not annotations or not annotations.get(LAST_APPLIED_ANNOTATION):
        return
    last = copied(config)
    own = (last.get("metadata") or {}).get("annotations")
    if isinstance(own, dict):
        own.pop(LAST_APPLIED_ANNOTATION, None)
    text = msgspec.json.encode(last, order="sorted").decode() + "\n"
    for character in "<>&":  # Go's encoder writes JSON that is safe inside HTML
        text = text.replace(character, f"\\u{ord(character):04x}")
    annotations = {**annotations, LAST_APPLIED_ANNOTATION: text}
    if sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > TOTAL_ANNOTATIONS_LIMIT:
        del annotations[LAST_APPLIED_ANNOTATION]
    after["metadata"]["annotations"] = annotations
