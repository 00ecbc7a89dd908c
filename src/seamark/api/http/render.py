"""Objects, lists and events as the bytes a client asked for.

The plain case never decodes: an object is its kind's head and its kept tail, a list is tails joined.  All else (YAML,
Tables, metadata only, a kind that is stored as another) decodes and is built from dicts.  A protobuf message is made
once from each version of an object and kept with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from weakref import ref

import msgspec

from seamark import errors
from seamark.api.http.negotiate import Representation
from seamark.api.state.entries import Entry
from seamark.clock import Clock
from seamark.errors import Object
from seamark.haste import LARGE_STORED, LARGE_YAML
from seamark.kinds.kind import Kind
from seamark.kinds.language import protobuf_writing as protobuf

INCLUDE = ("", "None", "Metadata", "Object")


def encode(value: Object, representation: Representation) -> bytes:
    """Any document that has a kind."""
    match representation.format:
        case "yaml":
            from seamark.kinds.language import yaml_text

            return yaml_text.dump(value)
        case "protobuf":
            return protobuf.document(value)
        case _:
            return msgspec.json.encode(value) + b"\n"


class Renderer:
    """Makes the bytes of one kind's objects in one representation."""

    def __init__(self, kind: Kind, representation: Representation, include: str, clock: Clock) -> None:
        if representation.as_ == "Table" and include not in INCLUDE:
            raise errors.BadRequest(
                f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
                "must be 'Metadata', 'Object', 'None', or empty"
            )
        resource = kind.resource
        self.kind = kind
        self.representation = representation
        self.include = include or "Metadata"
        self.clock = clock
        self.head = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()
        self.direct = representation.plain and (kind.shows_as_stored or not kind.built_in)
        # Watches with the same key share the bytes of an event.  A definition that changes has another kind; events
        # outlive kinds that are gone, and must not keep them.
        self.key = (
            ref(kind),
            representation.format,
            representation.as_,
            representation.version,
            self.include,
        )

    def lengthy(self, entries: Sequence[Entry]) -> bool:
        """Whether the answer takes so long to make that others must be answered meanwhile."""
        if self.direct:
            return False
        limit = LARGE_YAML if self.representation.format == "yaml" else LARGE_STORED
        return sum(len(entry.tail) for entry in entries) >= limit

    # --- one object --------------------------------------------------------------------------------

    def object(self, entry: Entry) -> Object:
        """The whole object as a dict, in this kind's own version."""
        return {
            "kind": self.kind.resource.kind,
            "apiVersion": self.kind.resource.api_version,
            **entry.shown(self.kind),
        }

    def one(self, entry: Entry) -> bytes:
        """The answer to a read of one object."""
        if self.direct:
            return b"%b%b\n" % (self.head, entry.tail_of(self.kind))
        if self._messages:
            resource = self.kind.resource
            return protobuf.envelope(resource.api_version, resource.kind, self._message(entry))
        return self.encode(self.shown(self.object(entry)))

    def shown(self, obj: Object) -> Object:
        """One object under the representation asked for."""
        match self.representation.as_:
            case "Table":
                meta = obj["metadata"]
                listing = {"resourceVersion": meta["resourceVersion"]} if "resourceVersion" in meta else {}
                return {**self._table(listing), "rows": [self._row(obj)]}
            case "PartialObjectMetadata":
                return self._metadata(obj)
            case "PartialObjectMetadataList":
                raise self._other_form("not a list", obj["kind"])
            case _:
                return obj

    def encode(self, value: Object) -> bytes:
        return encode(value, self.representation)

    @property
    def _messages(self) -> bool:
        """Whether answers are made of messages that are kept with the objects."""
        return self.representation.format == "protobuf" and not self.representation.as_ and self.kind.shows_as_stored

    def _message(self, entry: Entry) -> bytes:
        if entry.message is None:
            entry.message = protobuf.write(entry.decode(), self.kind.shape)
        return entry.message

    # --- lists -------------------------------------------------------------------------------------

    def many(self, entries: Sequence[Entry], listing: Object) -> list[bytes]:
        """The answer to a list, in pieces; ``listing`` is its metadata.

        In the plain case the pieces are the kept tails themselves: a list that is being sent takes no memory for them.
        """
        if self.direct:
            kind = self.kind
            tails = [entry.tail for entry in entries] if kind.shows_as_stored else [e.tail_of(kind) for e in entries]
            return _spliced(self._list(listing), "items", b"{" if kind.built_in else self.head, tails)
        if self._messages:
            resource = self.kind.resource
            message = protobuf.listed(listing, map(self._message, entries))
            return [protobuf.envelope(resource.api_version, f"{resource.kind}List", message)]
        answer, part, show = self._frame(listing)
        entries = self._in_order(entries)
        if self.representation.format != "json":
            return [self.encode({**answer, part: [show(self.object(entry)) for entry in entries]})]
        # One after the other, because all of them as dicts take several times the memory of their bytes.
        return _spliced(answer, part, b"", [msgspec.json.encode(show(self.object(entry))) for entry in entries])

    @property
    def whole(self) -> bool:
        """Whether a list can only be written when all of its items are there as dicts."""
        return self.representation.format != "json" and not self._messages

    async def many_in_portions(self, entries: Sequence[Entry], listing: Object) -> list[bytes]:
        """As :meth:`many`, but others are answered after each portion of the objects; not if it is :attr:`whole`."""
        if self._messages:
            for portion in _portions(entries):
                for entry in portion:
                    self._message(entry)  # which is kept
                await asyncio.sleep(0)
            return self.many(entries, listing)
        answer, part, show = self._frame(listing)
        items: list[bytes] = []
        for portion in _portions(self._in_order(entries)):
            items += [msgspec.json.encode(show(self.object(entry))) for entry in portion]
            await asyncio.sleep(0)
        return _spliced(answer, part, b"", items)

    def _frame(self, listing: Object) -> tuple[Object, str, Callable[[Object], Object]]:
        """A list under the representation asked for: all but its items, their name, and how each of them is shown."""
        match self.representation.as_:
            case "Table":
                return self._table(listing), "rows", self._row
            case "PartialObjectMetadataList":
                return self._metadata_list(listing), "items", self._metadata
            case "PartialObjectMetadata":
                raise self._other_form("a list", self.kind.list_kind)
            case _:
                return self._list(listing), "items", self._item

    def _in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The entries of a list in the order in which they are shown."""
        if self.representation.as_ != "Table" or not self.kind.ranks_rows:
            return entries
        return sorted(entries, key=lambda entry: self.kind.row_rank(self.object(entry)))

    def _list(self, listing: Object) -> Object:
        """A list, but for its items."""
        if not self.kind.built_in:
            listing = {"continue": "", **listing}
        return {"kind": self.kind.list_kind, "apiVersion": self.kind.resource.api_version, "metadata": listing}

    def _item(self, obj: Object) -> Object:
        """An object as an item of a list: only custom resources have their kind and apiVersion there, too."""
        return {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")} if self.kind.built_in else obj

    def _metadata_list(self, listing: Object) -> Object:
        api_version = f"meta.k8s.io/{self.representation.version}"
        return {"kind": "PartialObjectMetadataList", "apiVersion": api_version, "metadata": listing}

    # --- events ------------------------------------------------------------------------------------

    def event(self, type: str, entry: Entry, *, first: bool) -> bytes:
        """One line of a watch; a Table names its columns in the first one only."""
        if self.direct:
            return b'{"type":"%b","object":%b%b}\n' % (type.encode(), self.head, entry.tail_of(self.kind))
        if self._messages:
            return protobuf.event(type, self.one(entry))
        return self.line(type, self.in_watch(self.object(entry), first=first))

    def line(self, type: str, shown: Object) -> bytes:
        """One event of a watch about any document that has a kind."""
        if self.representation.format == "protobuf":
            return protobuf.event(type, protobuf.document(shown))
        return msgspec.json.encode({"type": type, "object": shown}) + b"\n"

    def in_watch(self, obj: Object, *, first: bool) -> Object:
        """One object of a watch under the representation asked for."""
        shown = self.shown(obj)
        if not first and self.representation.as_ == "Table":
            shown["columnDefinitions"] = None
        return shown

    # --- parts -------------------------------------------------------------------------------------

    def _other_form(self, noun: str, type: str) -> errors.NotAcceptable:
        # Kubernetes names the Go type it has the object in.
        package = (self.kind.stored_as or self.kind.resource).group.partition(".")[0] or "core"
        return errors.NotAcceptable(
            f"you requested {self.representation.as_}, but the requested object is {noun} (*{package}.{type})"
        )

    def _metadata(self, obj: Object) -> Object:
        version = self.representation.version or "v1"
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": obj["metadata"],
        }

    def _row(self, obj: Object) -> Object:
        match self.include:
            case "None":
                shown = None
            case "Object":
                shown = obj
            case _:
                shown = self._metadata(obj)
        row: Object = {"cells": list(self.kind.row(obj, self.clock.time()))}
        if conditions := self.kind.row_conditions(obj):
            row["conditions"] = list(conditions)
        row["object"] = shown
        return row

    def _table(self, listing: Object) -> Object:
        """A Table, but for its rows."""
        return {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{self.representation.version}",
            "metadata": listing,
            "columnDefinitions": [msgspec.to_builtins(column) for column in self.kind.columns],
        }


def _spliced(answer: Object, part: str, head: bytes, tails: Sequence[bytes]) -> list[bytes]:
    """A list in pieces: the answer, and as its last part the items, which all begin with ``head``."""
    opening = b'%b,"%b":[' % (msgspec.json.encode(answer)[:-1], part.encode())
    if not tails:
        return [opening + b"]}\n"]
    pieces = [b"," + head] * (2 * len(tails) + 1)
    pieces[0] = opening + head
    pieces[1::2] = tails
    pieces[-1] = b"]}\n"
    return pieces


def _portions(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """The entries in parts that take a millisecond or two each."""
    portion, size = list[Entry](), 0
    for entry in entries:
        portion.append(entry)
        size += len(entry.tail)
        if size >= LARGE_STORED:
            yield portion
            portion, size = [], 0
    yield portion
