"""Writes replies with records: in full, truncated, or in several forms with a different first address in each."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import cast

from msgspec import structs

from seamark.dns.wire.message import HEADER, RECORD, TC, Query, name_bytes, opt_record, question_bytes, reply_flags
from seamark.dns.zone.answers import ADDRESS_LENGTHS, Answer
from seamark.dns.zone.records import IN, Question, Record, Spelled, Type

_LARGEST_FORMS = 48 * 1024
_FIRST_POINTER = 0x4000  # offsets beyond this do not fit a compression pointer


class ReplyWriter:
    """Builds a reply record by record until it is full."""

    def __init__(self, question: Question, limit: int) -> None:
        self.truncated = False
        self._limit = limit
        self._out = bytearray(12)
        self._out += question_bytes(question)
        self._offsets: dict[Spelled, int] = {}
        at = 12
        spelled = question.spelled
        for number, label in enumerate(spelled):
            self._offsets[spelled[number:]] = at
            at += 1 + len(label)

    def section(self, records: Sequence[Record]) -> int:
        """Add records until one does not fit; returns how many were added.  After that nothing more is added."""
        out = self._out
        for number, record in enumerate(records):
            if self.truncated:
                return number
            before = len(out)
            self._record(record)
            if len(out) > self._limit:
                del out[before:]
                self.truncated = True
                return number
        return len(records)

    def finish(self, ident: int, flags: int, counts: Sequence[int], opt: bytes) -> bytes:
        flags |= TC if self.truncated else 0
        answers, authorities, additionals = counts
        HEADER.pack_into(self._out, 0, ident, flags, 1, answers, authorities, additionals + (1 if opt else 0))
        return bytes(self._out + opt)

    def _record(self, record: Record) -> None:
        out = self._out
        self._name(record.owner)
        at = len(out)
        out += RECORD.pack(record.type, IN, record.ttl, 0)
        # RFC 2782: the target of an SRV record is not compressed.
        compress = record.type != Type.SRV
        for part in record.data:
            if isinstance(part, bytes):
                out += part
            else:
                self._name(part, compress=compress)
        struct.pack_into("!H", out, at + 8, len(out) - at - 10)

    def _name(self, labels: Spelled, *, compress: bool = True) -> None:
        out, offsets = self._out, self._offsets
        for number in range(len(labels)):
            suffix = labels[number:]
            known = offsets.get(suffix)
            if known is not None and compress:
                out += struct.pack("!H", 0xC000 | known)
                return
            if known is None and len(out) < _FIRST_POINTER:
                offsets[suffix] = len(out)
            out.append(len(labels[number]))
            out += labels[number]
        out.append(0)


def write_answer(query: Query, answer: Answer, limit: int) -> bytes:
    """The reply, truncated at a whole record if it does not fit."""
    if not answer.answers and answer.zone:
        return _write_negative(query, answer)
    opt = opt_record(query)
    writer = ReplyWriter(query.question, limit - len(opt))
    counts = [writer.section(part) for part in (answer.answers, answer.authority, answer.additional)]
    return writer.finish(query.id, reply_flags(query, answer.rcode, authoritative=True), counts, opt)


def _write_negative(query: Query, answer: Answer) -> bytes:
    """A reply with only the zone's SOA record.

    The zone is a suffix of the question's name, so all names in the record are pointers into the question, and the
    reply always fits.  It has its own function because a flood of non-existent names is answered by it.
    """
    opt, question = opt_record(query), name_bytes(query.question.spelled)
    soa = answer.authority[0]
    pointer = (0xC000 | 12 + len(question) - len(name_bytes(soa.owner))).to_bytes(2, "big")
    numbers = cast(bytes, soa.data[2])
    data = b"\2ns\3dns" + pointer + b"\nhostmaster" + pointer + numbers
    return b"".join(
        (
            HEADER.pack(query.id, reply_flags(query, answer.rcode, authoritative=True), 1, 0, 1, 1 if opt else 0),
            question,
            struct.pack("!HH", query.question.type, query.question.klass),
            pointer,
            RECORD.pack(Type.SOA, IN, soa.ttl, len(data)),
            data,
            opt,
        )
    )


def write_forms(query: Query, answer: Answer, limit: int, *, most: int) -> list[bytes]:
    """The reply in several forms, each with a different first address; aliases stay in front of addresses.

    ``most`` limits the number of forms, and :data:`_LARGEST_FORMS` their total size.
    """
    addresses = [record for record in answer.answers if record.type in ADDRESS_LENGTHS]
    if len(addresses) < 2 or most < 2:
        return [write_answer(query, answer, limit)]
    others = answer.answers[: len(answer.answers) - len(addresses)]
    if not others and all(record.owner == query.question.spelled for record in addresses):
        return _write_address_forms(query, answer, limit, most)
    first = write_answer(query, answer, limit)
    forms = [first]
    for start in _starts(len(addresses), len(first), most)[1:]:
        turned = [*others, *addresses[start:], *addresses[:start]]
        forms.append(write_answer(query, structs.replace(answer, answers=turned), limit))
    return forms


def _write_address_forms(query: Query, answer: Answer, limit: int, most: int) -> list[bytes]:
    """The forms of a reply whose records are all addresses of the question's name.

    Such records differ only in the address, so they are joined without the general writer.  A headless Service can have
    thousands of them.
    """
    records = answer.answers
    length = len(records[0].data[0])
    head = b"\xc0\x0c" + RECORD.pack(records[0].type, IN, records[0].ttl, length)
    pieces = [head + cast(bytes, record.data[0]) for record in records]
    opt, question = opt_record(query), question_bytes(query.question)
    fitting = min(len(pieces), (limit - 12 - len(question) - len(opt)) // (len(head) + length))
    flags = reply_flags(query, answer.rcode, authoritative=True) | (TC if fitting < len(pieces) else 0)
    before = HEADER.pack(query.id, flags, 1, fitting, 0, 1 if opt else 0) + question
    size = len(before) + fitting * (len(head) + length) + len(opt)
    circle = pieces + pieces
    return [b"".join((before, *circle[start : start + fitting], opt)) for start in _starts(len(pieces), size, most)]


def _starts(count: int, size: int, most: int) -> list[int]:
    """The indexes of the first addresses: as many as the limits allow, evenly spread."""
    forms = max(1, min(count, most, _LARGEST_FORMS // size))
    return [count * number // forms for number in range(forms)]
