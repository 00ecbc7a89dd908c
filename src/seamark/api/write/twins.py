"""Objects that differ only in their names: what was worked out for one serves for those that follow.

The Pods of a workload are made one by one of one template.  Each takes most of a creation's time to be decoded, filled
up, judged and encoded, with the same result but for its name, uid and time.  So what became of a document is kept, and
when the same document comes again with another name, from the same user, only these three are set anew.

Nothing is guessed:

- two documents are alike if their JSON is the same, byte for byte, but for the one place where the name is written
- steps of admission that edit an object look at other objects, too: what is kept counts only while none of the kinds
  that they looked at has changed (:class:`seamark.api.admission.Noticing`)
- steps of admission that judge, quotas among them, are asked about every object
- what depends on the name, the uid or the time in any other place of the object is not kept
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from seamark.api.authorization import User
from seamark.api.call import Caller, Target
from seamark.api.intake import Document
from seamark.api.state.collection import Collection
from seamark.api.state.entries import stored
from seamark.api.write.recurring import Recurring
from seamark.errors import Object

MOST = 64
LONGEST_DOCUMENT = 16 << 10  # bytes


class _Name(msgspec.Struct, gc=False):
    name: msgspec.Raw


class _Named(msgspec.Struct, gc=False):
    metadata: _Name


_named = msgspec.json.Decoder(_Named)

# Every kind takes such names, and none warns of them.
_PLAIN_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?").fullmatch


class Likeness(NamedTuple):
    """What documents have in common that differ only in the name."""

    namespace: str
    user: User
    manager: str
    field_validation: str
    nameless: bytes


class Twin(NamedTuple):
    """An object as it was stored; ``rest`` is its JSON behind the metadata."""

    obj: Object
    rest: bytes
    seen: Mapping[Collection, int]

    @property
    def valid(self) -> bool:
        """Whether admission would still do the same to it."""
        return all(collection.changed == revision for collection, revision in self.seen.items())

    def named(self, name: str, uid: str, now: str) -> Object:
        """The object under another name.  Only its metadata may be edited: the rest belongs to all twins."""
        meta = {**self.obj["metadata"], "name": name, "uid": uid, "creationTimestamp": now}
        meta["managedFields"] = [{**each, "time": now} for each in meta.get("managedFields") or ()]
        return {**self.obj, "metadata": meta}

    def value(self, obj: Object) -> bytes:
        """The object as the store keeps it, given under another name."""
        return b'{"metadata":%b%b' % (msgspec.json.encode(obj["metadata"]), self.rest)


def likeness(target: Target, document: Document, caller: Caller) -> tuple[Likeness, str] | None:
    """What a document to be created has in common with its twins, and its name; None if it cannot have any."""
    body = document.body
    if not target.kind.has_twins or not document.json or caller.dry_run or len(body) > LONGEST_DOCUMENT:
        return None
    meta = document.value.get("metadata") if isinstance(document.value, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(name, str) or not _PLAIN_NAME(name):
        return None
    written = b'"%b"' % name.encode()
    nameless = body.replace(written, b'""')
    if len(body) - len(nameless) != len(name):  # the name is in other places, too
        return None
    try:
        if bytes(_named.decode(body).metadata.name) != written:  # it has escapes: what was found is another text
            return None
    except msgspec.ValidationError:  # the metadata are there several times
        return None
    return Likeness(target.namespace, caller.user, caller.manager, caller.field_validation, nameless), name


class Twins:
    """Objects that were made of documents that came more than once; those that are used are kept."""

    def __init__(self) -> None:
        self._kept: Recurring[Likeness, Twin] = Recurring()

    def find(self, like: Likeness) -> Twin | None:
        twin = self._kept.get(like)
        if twin is None or not twin.valid:
            return None
        self._kept.used(like)
        return twin

    def expects(self, like: Likeness) -> bool:
        """Whether the document came before, so that it pays to keep what becomes of it."""
        return like in self._kept

    def came(self, like: Likeness, obj: Object, seen: Mapping[Collection, int] | None) -> None:
        """Keep an object as it was stored, and the kinds that admission looked at; None if it is not worth keeping."""
        self._kept.put(like, None if seen is None else _twin(obj, seen), most=MOST)


def _twin(obj: Object, seen: Mapping[Collection, int]) -> Twin | None:
    """None if the object's name, uid or time is in another place than its metadata."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    rest = stored(obj)[len(b'{"metadata":') + len(msgspec.json.encode(meta)) :]
    own = (f'"{meta["name"]}"', meta["uid"], meta["creationTimestamp"])
    return None if any(each.encode() in rest for each in own) else Twin({**obj, "metadata": meta}, rest, seen)
