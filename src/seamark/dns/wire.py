"""DNS messages as bytes: just enough to read a question and to write an answer, because that is what a flood costs.

Everything else about messages (other servers' answers, zone transfers, the client side) is dnspython's.  What is
tolerated and what is refused in a query follows the recordings of CoreDNS, whose parser forgives a lot.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import cast

import msgspec
from msgspec import structs

from seamark.dns.answers import Answer
from seamark.dns.records import IN, Question, Rcode, Record, Spelled, Type, lowered

HEADER = struct.Struct("!6H")
_FIXED = struct.Struct("!HHIH")  # type, class, TTL, length of the data
_OPT = struct.Struct("!BHHIH")
_NUMBERS = struct.Struct("!HH")

QR, AA, TC, RD, RA, CD = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080, 0x0010
_OPCODE = 0x7800
_QUERY, _NOTIFY = 0, 4
_DO = 0x8000

SMALLEST_LIMIT = 512
LARGEST = 65535
_LARGEST_DATAGRAM = 65507
_LONGEST_NAME = 255
_MOST_POINTERS = 126
_LARGEST_FORMS = 48 * 1024
_ADDRESSES = (Type.A, Type.AAAA)
_FIRST_POINTER = 0x4000  # offsets beyond this do not fit a compression pointer


class Malformed(Exception):
    """Bytes that are no message; ``question`` holds what could still be read."""

    def __init__(self, reason: str, question: Question | None = None) -> None:
        super().__init__(reason)
        self.question = question


class Query(msgspec.Struct, frozen=True, gc=False):
    """A query as far as it matters.

    ``edns_size`` is None without EDNS; ``end`` is where its last record ends; ``serial`` is that of an SOA record in
    the authority section, with which an incremental transfer is asked for.
    """

    id: int
    flags: int
    question: Question
    edns_size: int | None = None
    edns_version: int = 0
    dnssec_ok: bool = False
    end: int = 0
    serial: int | None = None

    def limit(self, *, datagram: bool) -> int:
        """How long a reply may be."""
        if not datagram:
            return LARGEST
        return min(max(self.edns_size or 0, SMALLEST_LIMIT), _LARGEST_DATAGRAM)


# --- reading ---------------------------------------------------------------------------------------


def read_name(packet: bytes, at: int) -> tuple[Spelled, int]:
    """The name at an offset and where it ends; pointers may lead anywhere, but not for ever."""
    labels: list[bytes] = []
    end = -1
    budget, pointers, size = _LONGEST_NAME, 0, len(packet)
    while True:
        if at >= size:
            raise Malformed("a name runs off the message")
        length = packet[at]
        at += 1
        if length == 0:
            return tuple(labels), at if end < 0 else end
        if length < 64:
            label = packet[at : at + length]
            at += length
            budget -= length + 1
            if len(label) < length or budget <= 0:
                raise Malformed("a name is too long")
            labels.append(label)
        elif length >= 192:
            if at >= size:
                raise Malformed("a pointer runs off the message")
            pointers += 1
            if pointers > _MOST_POINTERS:
                raise Malformed("pointers go round in circles")
            if end < 0:
                end = at + 1
            at = (length & 0x3F) << 8 | packet[at]
        else:
            raise Malformed("a label of an unknown kind")


def read_query(packet: bytes) -> Query | bytes | None:
    """A query to answer, or the reply to something that is none; None if it deserves silence."""
    if len(packet) < 12:
        return None
    ident, flags, questions, answers, authorities, additionals = HEADER.unpack_from(packet)
    if flags & QR:
        return None
    if (flags & _OPCODE) >> 11 not in (_QUERY, _NOTIFY):
        return _refusal(ident, flags, Rcode.NOTIMP)
    if questions != 1 or answers > 1 or authorities > 1 or additionals > 2:
        return _refusal(ident, flags & ~_OPCODE, Rcode.FORMERR)
    if len(packet) == 12:
        return _refusal(ident, flags, Rcode.SERVFAIL)
    try:
        question, at = _read_question(packet)
        return _read_rest(packet, at, ident, flags, question, answers + authorities, additionals)
    except Malformed as problem:
        return _refusal(ident, flags & ~_OPCODE, Rcode.FORMERR, problem.question)


def _read_question(packet: bytes) -> tuple[Question, int]:
    """A question whose class, or type and class, are missing is taken to have 0 there."""
    spelled, at = read_name(packet, 12)
    numbers = packet[at : at + 4]
    if len(numbers) % 2:
        raise Malformed("the question ends in the middle of a number")
    wanted, klass = struct.unpack("!HH", numbers.ljust(4, b"\0"))
    return Question(spelled, lowered(spelled), wanted, klass), at + len(numbers)


def _read_rest(
    packet: bytes, at: int, ident: int, flags: int, question: Question, skip: int, additionals: int
) -> Query:
    """Go over the other records for the sake of EDNS; fewer than announced are forgiven, broken ones are not."""
    size: int | None = None
    serial: int | None = None
    version, dnssec_ok = 0, False
    for number in range(skip + additionals):
        if at == len(packet):
            break
        try:
            _, at = read_name(packet, at)
        except Malformed as problem:
            raise Malformed(str(problem), question) from problem
        if at + 10 > len(packet):
            raise Malformed("a record is cut short", question)
        kind, klass, ttl, length = _FIXED.unpack_from(packet, at)
        at += 10
        data, at = packet[at : at + length], at + length
        if at > len(packet):
            raise Malformed("a record's data runs off the message", question)
        if kind == Type.OPT and number >= skip:
            _check_options(data, question)
            size, version, dnssec_ok = klass, (ttl >> 16) & 0xFF, bool(ttl & _DO)
        elif kind == Type.SOA and number < skip and length > 20:
            serial = int.from_bytes(data[-20:-16], "big")
    return Query(ident, flags, question, size, version, dnssec_ok, at, serial)


def _check_options(data: bytes, question: Question) -> None:
    at = 0
    while at < len(data):
        if at + 4 > len(data):
            raise Malformed("an EDNS option is cut short", question)
        at += 4 + int.from_bytes(data[at + 2 : at + 4], "big")
    if at > len(data):
        raise Malformed("an EDNS option runs off its record", question)


# --- writing ---------------------------------------------------------------------------------------


def name_bytes(spelled: Spelled) -> bytes:
    """A name in full, uncompressed."""
    return b"".join([bytes((len(label),)) + label for label in spelled]) + b"\0"


def question_bytes(question: Question) -> bytes:
    return name_bytes(question.spelled) + _NUMBERS.pack(question.type, question.klass)


def _refusal(ident: int, flags: int, rcode: Rcode, question: Question | None = None) -> bytes:
    kept = flags & (_OPCODE | RD | CD)
    if question is None:
        return HEADER.pack(ident, QR | kept | rcode, 0, 0, 0, 0)
    return HEADER.pack(ident, QR | kept | rcode, 1, 0, 0, 0) + question_bytes(question)


def reply_flags(query: Query, rcode: int, *, authoritative: bool) -> int:
    """RD and CD are repeated for plain queries only."""
    kept = query.flags & (RD | CD) if not query.flags & _OPCODE else query.flags & _OPCODE
    return QR | kept | (AA if authoritative else 0) | (rcode & 15)


def opt_record(query: Query, rcode: int = 0) -> bytes:
    """The answer to a query's EDNS: none if it had none.  Options, cookies too, are not answered."""
    if query.edns_size is None:
        return b""
    size = 0 if rcode == Rcode.BADVERS else query.edns_size
    return _OPT.pack(0, Type.OPT, size, (rcode >> 4) << 24 | (_DO if query.dnssec_ok else 0), 0)


def write_status(query: Query, rcode: int, *, authoritative: bool = False) -> bytes:
    """A reply that says only how it went."""
    opt = opt_record(query, rcode)
    flags = reply_flags(query, rcode, authoritative=authoritative)
    header = HEADER.pack(query.id, flags, 1, 0, 0, 1 if opt else 0)
    return header + question_bytes(query.question) + opt


class Writer:
    """A reply growing record by record until it is full."""

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
        """Add as many as fit; once one does not, nothing fits any more."""
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
        out += _FIXED.pack(record.type, IN, record.ttl, 0)
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
    """The reply, cut at whole records where it does not fit."""
    if not answer.answers and answer.zone:
        return _write_negative(query, answer)
    opt = opt_record(query)
    writer = Writer(query.question, limit - len(opt))
    counts = [writer.section(part) for part in (answer.answers, answer.authority, answer.additional)]
    return writer.finish(query.id, reply_flags(query, answer.rcode, authoritative=True), counts, opt)


def _write_negative(query: Query, answer: Answer) -> bytes:
    """Nothing but the zone's SOA record.

    The zone is the end of the name that was asked for, so all its names are pointers there; and it always fits.  A
    flood of names that do not exist is answered by this.
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
            _NUMBERS.pack(query.question.type, IN),
            pointer,
            _FIXED.pack(Type.SOA, IN, soa.ttl, len(data)),
            data,
            opt,
        )
    )


def write_forms(query: Query, answer: Answer, limit: int, *, most: int) -> list[bytes]:
    """The reply several times over, another address first in each; aliases stay in front of addresses.

    ``most`` bounds the number of forms, and :data:`_LARGEST_FORMS` their size together.
    """
    addresses = [record for record in answer.answers if record.type in _ADDRESSES]
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
    """Many addresses of one name are all alike: an owner that points to the question, and the address.

    Headless Services can have thousands, so these are put together without going over them one by one.
    """
    records = answer.answers
    length = len(records[0].data[0])
    head = b"\xc0\x0c" + _FIXED.pack(records[0].type, IN, records[0].ttl, length)
    pieces = [head + cast(bytes, record.data[0]) for record in records]
    opt, question = opt_record(query), question_bytes(query.question)
    fitting = min(len(pieces), (limit - 12 - len(question) - len(opt)) // (len(head) + length))
    flags = reply_flags(query, answer.rcode, authoritative=True) | (TC if fitting < len(pieces) else 0)
    before = HEADER.pack(query.id, flags, 1, fitting, 0, 1 if opt else 0) + question
    size = len(before) + fitting * (len(head) + length) + len(opt)
    circle = pieces + pieces
    return [b"".join((before, *circle[start : start + fitting], opt)) for start in _starts(len(pieces), size, most)]


def _starts(count: int, size: int, most: int) -> list[int]:
    """Which addresses come first: as many as there is room for, evenly spread."""
    forms = max(1, min(count, most, _LARGEST_FORMS // size))
    return [count * number // forms for number in range(forms)]
