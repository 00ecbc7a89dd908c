"""Objects as the server holds them: encoded once, under a key.

An :class:`Entry` keeps an object's JSON from ``"metadata"`` on: put the kind's head before it and it is the object, or
join many with commas and they are a list.  So nothing is decoded only to be encoded again.
"""

from __future__ import annotations

from sys import intern
from typing import Any, Literal

import msgspec

from seamark.errors import Object
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


class Entry(msgspec.Struct, gc=False):
    """One object as it was last written.

    ``path`` is its key below its kind (``namespace/name`` or ``name``).  ``tail`` is its JSON from ``"metadata"`` on,
    the resourceVersion included.  Its labels, and ``fields``, its values for field selectors, are found when first
    asked for: most versions of most objects are never selected.  So is ``message``, the object in protobuf.
    """

    path: str
    namespace: str
    name: str
    revision: int
    tail: bytes
    fields: dict[str, str] | None = None
    known_labels: dict[str, str] | None = None
    message: bytes | None = None

    @property
    def labels(self) -> dict[str, str]:
        if self.known_labels is None:
            self.known_labels = _labels.decode(b"{" + self.tail).metadata.labels or _NO_LABELS
        return self.known_labels

    def decode(self) -> Object:
        """A fresh dict of the object, without apiVersion and kind."""
        return _object.decode(b"{" + self.tail)


def entry_of(path: str, value: bytes, revision: int) -> Entry:
    namespace, _, name = path.rpartition("/")
    tail = b'"metadata":{"resourceVersion":"%d",%b' % (revision, value[len(_OPENING) :])
    return Entry(path, intern(namespace), name, revision, tail)


def stored(obj: Object) -> bytes:
    """An object as the store keeps it: no apiVersion, kind or resourceVersion, metadata first."""
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    rest = {k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata")}
    return msgspec.json.encode({"metadata": metadata, **rest})


def restamped(entry: Entry, revision: int) -> Entry:
    """The same object under another version: watchers see a deleted object under the version of its deletion."""
    _, _, rest = entry.tail.partition(b'",')
    tail = b'"metadata":{"resourceVersion":"%d",%b' % (revision, rest)
    return Entry(entry.path, entry.namespace, entry.name, revision, tail, entry.fields, entry.known_labels)


class Event(msgspec.Struct, gc=False):
    """One change of an object.  In a DELETED event, ``entry`` is the last state under the version of the deletion.

    ``encoded`` keeps what was made of it for watchers, by representation: made once, sent to all.
    """

    type: EventType
    entry: Entry
    previous: Entry | None
    encoded: dict[object, bytes]
