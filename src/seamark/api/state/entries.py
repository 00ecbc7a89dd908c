"""Objects as the server holds them: encoded once, under a key.

An :class:`Entry` keeps an object's JSON from ``"metadata"`` on: put the kind's head before it and it is the object, or
join many with commas and they are a list.  So nothing is decoded only to be encoded again.

A custom resource may be shown in other versions than it is stored in.  Each such :class:`Form` is made when it is first
asked for, and kept with the entry.
"""

from __future__ import annotations

import asyncio
from sys import intern
from typing import Any, Literal

import msgspec

from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.resource import Resource

_OPENING = b'{"metadata":{'

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


def prefix_of(resource: Resource, namespace: str = "") -> str:
    """The beginning of the store keys of a kind, or of one namespace's objects of it."""
    prefix = f"/{resource.group or 'core'}/{resource.plural}/"
    return f"{prefix}{namespace}/" if namespace else prefix


def key_of(resource: Resource, namespace: str, name: str) -> str:
    """Where an object lives in the store."""
    return prefix_of(resource, namespace) + name


class _Meta(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct, gc=False):
    metadata: _Meta


_labels = msgspec.json.Decoder(_Labelled)
_object = msgspec.json.Decoder(dict[str, Any])
_NO_LABELS: dict[str, str] = {}


class Form(msgspec.Struct, gc=False):
    """An object as one kind shows it.  When a definition changes, new kinds replace its kinds, and make new forms.

    ``tail`` and ``fields`` are as in :class:`Entry`; ``tail`` is empty while ``conversion`` asks a webhook for it.
    """

    kind: Kind
    tail: bytes = b""
    fields: dict[str, str] | None = None
    conversion: asyncio.Task[None] | None = None


class Entry(msgspec.Struct, gc=False):
    """One object as it was last written.

    ``path`` is its key below its kind (``namespace/name`` or ``name``).  ``tail`` is its JSON from ``"metadata"`` on,
    the resourceVersion included.  Its labels, and ``fields``, its values for field selectors, are found when first
    asked for: most versions of most objects are never selected.  So is ``message``, the object in protobuf, and so are
    ``forms``, by kind.
    """

    path: str
    namespace: str
    name: str
    revision: int
    tail: bytes
    fields: dict[str, str] | None = None
    known_labels: dict[str, str] | None = None
    message: bytes | None = None
    forms: dict[Kind, Form] | None = None

    @property
    def labels(self) -> dict[str, str]:
        if self.known_labels is None:
            self.known_labels = _labels.decode(b"{" + self.tail).metadata.labels or _NO_LABELS
        return self.known_labels

    def decode(self) -> Object:
        """A fresh dict of the object as it is stored, without apiVersion and kind."""
        return _object.decode(b"{" + self.tail)

    # --- as a kind shows it --------------------------------------------------------------------------

    def shown(self, kind: Kind) -> Object:
        """A fresh dict of the object as this kind shows it, without apiVersion and kind."""
        if kind.built_in:  # Few of them show another form than they store, which is cheap to make.
            return kind.from_stored(self.decode())
        return _object.decode(b"{" + self.tail_of(kind))

    def tail_of(self, kind: Kind) -> bytes:
        """The JSON from ``"metadata"`` on as this kind, a custom one, shows it."""
        if kind.shows_as_stored:
            return self.tail
        form = self.form(kind)
        assert form is not None, "what a webhook converts is converted before it is shown: state.forms"
        return form.tail

    def form(self, kind: Kind) -> Form | None:
        """The object as this kind shows it; None if a webhook has yet to convert it."""
        form = self.forms.get(kind) if self.forms is not None else None
        if form is not None:
            return form if form.tail else None
        obj = self.decode()
        if kind.conversion is not None and kind.conversion.needed(obj):
            return None
        return self.keep(kind, kind.from_stored(obj))

    def keep(self, kind: Kind, obj: Object) -> Form:
        """Keep the object as this kind shows it."""
        tail = msgspec.json.encode(_version_first(obj))[1:]
        return self._put(Form(kind, self.tail if tail == self.tail else tail))

    def keep_asking(self, kind: Kind, conversion: asyncio.Task[None]) -> None:
        """Keep that a webhook is being asked for it."""
        self._put(Form(kind, conversion=conversion))

    def _put(self, form: Form) -> Form:
        forms = self.forms = self.forms if self.forms is not None else {}
        # The form of the kind before this one may still be shown, those of kinds before that are not.
        version = form.kind.resource.version
        # A thread may do the same at the same time, so a copy is looked through.
        for kind in [kind for kind in list(forms) if kind.resource.version == version and kind is not form.kind][:-1]:
            forms.pop(kind, None)
        forms[form.kind] = form
        return form


def entry_of(path: str, value: bytes, revision: int) -> Entry:
    namespace, _, name = path.rpartition("/")
    tail = b'"metadata":{"resourceVersion":"%d",%b' % (revision, value[len(_OPENING) :])
    return Entry(path, intern(namespace), name, revision, tail)


def stored(obj: Object) -> bytes:
    """An object as the store keeps it: no apiVersion, kind or resourceVersion, metadata first."""
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    rest = {k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata")}
    return msgspec.json.encode({"metadata": metadata, **rest})


def _version_first(obj: Object) -> Object:
    """The object with the parts in front that every tail begins with."""
    meta = obj["metadata"]
    if "resourceVersion" in meta:
        meta = {"resourceVersion": meta["resourceVersion"], **meta}
    return {"metadata": meta, **{k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata")}}


def restamped(entry: Entry, revision: int) -> Entry:
    """The same object under another version: watchers see a deleted object under the version of its deletion."""
    tail = _restamped(entry.tail, revision)
    again = Entry(entry.path, entry.namespace, entry.name, revision, tail, entry.fields, entry.known_labels)
    if entry.forms is not None:
        again.forms = {
            kind: Form(kind, _restamped(form.tail, revision), form.fields)
            for kind, form in entry.forms.items()
            if form.tail
        }
    return again


def _restamped(tail: bytes, revision: int) -> bytes:
    _, _, rest = tail.partition(b'",')
    return b'"metadata":{"resourceVersion":"%d",%b' % (revision, rest)


class Event(msgspec.Struct, gc=False):
    """One change of an object.  In a DELETED event, ``entry`` is the last state under the version of the deletion.

    ``encoded`` keeps what was made of it for watchers, by representation: made once, sent to all.
    """

    type: EventType
    entry: Entry
    previous: Entry | None
    encoded: dict[object, bytes]
