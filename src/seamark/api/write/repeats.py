"""Statuses that differ only in a few texts: what was worked out for one serves for those that follow.

The kubelets report the Pods of a workload one by one, each with the same words but for its addresses and its
containers' IDs.  A patch of a status takes longer to be merged, conformed, tracked, judged and encoded than to be
committed.  So what became of such a patch is kept, and when the same patch comes again, for an object that is the same,
only these texts are set anew.

Nothing is guessed:

- two patches are alike if their JSON is the same, byte for byte, but for texts that the kind calls the object's own
  (:meth:`seamark.kinds.kind.Kind.own_texts`), which are of the same form and equal to each other in the same places
- two objects are the same if their JSON is, but for name, uid and version, and for the node, which no status changes
- a text that was in the status or its managers' fields before is no own text: it could stay, or be compared with
- neither is one that other fields have too, or that is part of another text in what became of the object
- where outsiders have a say (webhooks, policies), each patch is worked out
- what is kept is tried on the patch that it was made of; if the result is not the same, byte for byte, it is dropped
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from seamark.api.call import Caller
from seamark.api.fields.patch import PatchType
from seamark.api.state.entries import Entry
from seamark.api.write.recurring import Recurring
from seamark.errors import Object
from seamark.kinds.kind import Kind

MOST = 64
LONGEST_PATCH = 16 << 10  # bytes
LONGEST_OBJECT = 32 << 10
# After so many patches in a row that were like none before, only one in so many is looked at.
PATIENCE = 256
SELDOM = 16

_PARTS = frozenset(("metadata", "status"))
_IDENTITY = frozenset(("uid", "resourceVersion"))
_OWN_METADATA = frozenset(("name", "uid", "resourceVersion"))
_node = re.compile(rb'"nodeName":"[^"\\]+"')
_number = re.compile(rb"\0(\d+)\0")

_Raws = dict[str, msgspec.Raw]
_read = msgspec.json.Decoder(_Raws).decode


class Report(NamedTuple):
    """A patch of a status.  ``words`` is its JSON with numbers in the place of the object's own texts.

    ``warnings`` are filled when the patch is worked out, and then it is not like others: each is to be warned of.
    """

    uid: str
    version: str
    how: tuple[str, ...]
    forms: tuple[str, ...]
    words: bytes
    texts: tuple[bytes, ...]
    warnings: tuple[list[str], ...]


class Occasion(NamedTuple):
    """A patch and the object it is for; ``likeness`` is what both have in common with their like."""

    likeness: tuple[Any, ...]
    parts: _Raws
    metadata: _Raws
    texts: tuple[bytes, ...]
    warnings: tuple[list[str], ...]


class Gaps(NamedTuple):
    """JSON with gaps for own texts: every second piece is one, and ``numbers`` says of which text."""

    pieces: list[bytes]
    numbers: list[int]

    def filled(self, texts: tuple[bytes, ...]) -> msgspec.Raw:
        pieces = self.pieces.copy()
        pieces[1::2] = [texts[number] for number in self.numbers]
        return msgspec.Raw(b"".join(pieces))


class Result(NamedTuple):
    """What became of an object: the order of its fields, and what is new, with gaps in the place of own texts."""

    order: tuple[str, ...]
    metadata: tuple[str, ...]
    managers: Gaps
    status: Gaps

    def value(self, occasion: Occasion) -> bytes:
        """The object as the store keeps it, given another occasion."""
        managers = self.managers.filled(occasion.texts)
        status = self.status.filled(occasion.texts)
        meta = {**occasion.metadata, "managedFields": managers}
        parts: Object = {**occasion.parts, "metadata": {name: meta[name] for name in self.metadata}, "status": status}
        return msgspec.json.encode({name: parts[name] for name in self.order})


def report(kind: Kind, type: PatchType, document: Any, caller: Caller, *warnings: list[str]) -> Report | None:
    """A patch as far as it can be like others; None if it cannot."""
    if type not in ("merge", "strategic") or caller.dry_run or caller.patience is not None:
        return None
    if not isinstance(document, dict) or not document.keys() <= _PARTS:
        return None
    meta, status = document.get("metadata", {}), document.get("status")
    if not isinstance(meta, dict) or not isinstance(status, dict) or not meta.keys() <= _IDENTITY:
        return None
    uid, version = meta.get("uid", ""), meta.get("resourceVersion", "")
    if not isinstance(uid, str) or not isinstance(version, str):
        return None
    words = msgspec.json.encode(status)
    own = kind.own_texts(words) if len(words) <= LONGEST_PATCH else None
    if own is None:
        return None
    words = _emptied(words, tuple(own), b'"')
    how = (kind.resource.qualified, type, caller.manager, caller.now, caller.field_validation)
    return Report(uid, version, how, tuple(own.values()), words, tuple(own), warnings)


def occasion(said: Report, entry: Entry) -> Occasion | None:
    """A patch for an object; None if the patch is not for this version of it, or the object has no like."""
    if said.version not in ("", str(entry.revision)) or len(entry.tail) > LONGEST_OBJECT:
        return None
    parts = _read(b"{" + entry.tail)
    meta = _read(parts["metadata"])
    if "status" not in parts or "managedFields" not in meta or "deletionTimestamp" in meta:
        return None
    if said.uid and bytes(meta["uid"]) != b'"%b"' % said.uid.encode():
        return None
    status, managers = bytes(parts["status"]), bytes(meta["managedFields"])
    if any(text in status or text in managers for text in said.texts):
        return None
    rest = {name: bytes(raw) for name, raw in parts.items() if name != "metadata"}
    if "spec" in rest:
        rest["spec"] = _node.sub(b'"nodeName":""', rest["spec"], count=1)
    others = [raw for name, raw in meta.items() if name not in _OWN_METADATA]
    likeness = (said.how, said.forms, said.words, *meta, b"\0".join(others), *rest, *rest.values())
    return Occasion(likeness, parts, meta, said.texts, said.warnings)


class Repeats:
    """What became of patches that came more than once; those that are used are kept."""

    def __init__(self) -> None:
        self._kept: Recurring[tuple[Any, ...], Result] = Recurring()
        self._in_vain = 0  # patches since the last that was like one before

    def promising(self) -> bool:
        """Whether to look at the next patch: where no two are alike, that would make each a fifth dearer."""
        self._in_vain += 1
        return self._in_vain <= PATIENCE or self._in_vain % SELDOM == 0

    def find(self, occasion: Occasion) -> bytes | None:
        """The object as it will be stored; None if that has to be worked out."""
        result = self._kept.get(occasion.likeness)
        if result is None:
            return None
        self._in_vain = 0
        self._kept.used(occasion.likeness)
        return result.value(occasion)

    def came(self, occasion: Occasion, written: Entry) -> None:
        """Keep what became of a patch, if it is not the first of its kind."""
        if any(occasion.warnings):
            return
        likeness = occasion.likeness
        self._kept.put(likeness, _result(occasion, written) if likeness in self._kept else None, most=MOST)


def _result(occasion: Occasion, written: Entry) -> Result | None:
    """None if what is kept would not make the same object again."""
    parts = _read(b"{" + written.tail)
    meta = _read(parts["metadata"])
    order = tuple(name for name in meta if name != "resourceVersion")
    if not (occasion.parts.keys() == parts.keys() and occasion.metadata.keys() >= set(order) >= {"managedFields"}):
        return None
    managers = _emptied(bytes(meta["managedFields"]), occasion.texts, b'\\"')
    status = _emptied(bytes(parts["status"]), occasion.texts, b'"')
    if any(text in managers or text in status for text in occasion.texts):
        return None
    result = Result(tuple(parts), order, _gaps(managers), _gaps(status))
    stored = b'{"metadata":{' + written.tail.partition(b'",')[2]
    return result if result.value(occasion) == stored else None


def _emptied(words: bytes, texts: tuple[bytes, ...], quote: bytes) -> bytes:
    """With numbers in the place of texts.  No JSON contains a NUL, so none is mistaken for another text."""
    for number, text in enumerate(texts):
        words = words.replace(quote + text + quote, b"%b\0%d\0%b" % (quote, number, quote))
    return words


def _gaps(emptied: bytes) -> Gaps:
    pieces = _number.split(emptied)
    return Gaps(pieces, [int(number) for number in pieces[1::2]])
