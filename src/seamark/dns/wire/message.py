"""DNS messages as bytes: just enough to read a question, and the parts that every reply has.

Written here and not taken from dnspython because this is what a flood costs; whatever is off that path (other servers'
answers, the client side) is dnspython's.  What is tolerated and what is refused in a query follows the recordings of
CoreDNS, whose parser forgives a lot.  Replies with records are :mod:`seamark.dns.wire.replies`'.
"""

from __future__ import annotations

import struct

import msgspec

from seamark.dns.wire.edns import options_whole
from seamark.dns.zone.records import Question, Rcode, Spelled, Type, lowered

HEADER = struct.Struct("!6H")
RECORD = struct.Struct("!HHIH")  # type, class, TTL, length of the data
_OPT = struct.Struct("!BHHIH")
_NUMBERS = struct.Struct("!HH")

QR, AA, TC, RD, RA, AD, CD = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080, 0x0020, 0x0010
_OPCODE = 0x7800
_QUERY, _NOTIFY = 0, 4
_DO = 0x8000

SMALLEST_LIMIT = 512
LARGEST = 65535
_LARGEST_DATAGRAM = 65507
_LONGEST_NAME = 255
_MOST_POINTERS = 126


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
        return HEADER.pack(ident, QR | _repeated(flags) | Rcode.SERVFAIL, 0, 0, 0, 0)
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
        kind, klass, ttl, length = RECORD.unpack_from(packet, at)
        at += 10
        data, at = packet[at : at + length], at + length
        if at > len(packet):
            raise Malformed("a record's data runs off the message", question)
        if length and not (options_whole(data) if kind == Type.OPT else _data_whole(packet, kind, at - length, length)):
            raise Malformed("a record's data is not what its type says", question)
        if kind == Type.OPT and number >= skip:
            size, version, dnssec_ok = klass, (ttl >> 16) & 0xFF, bool(ttl & _DO)
        elif kind == Type.SOA and number < skip and length:
            serial = int.from_bytes(data[-20:-16], "big")
    return Query(ident, flags, question, size, version, dnssec_ok, at, serial)


def _data_whole(packet: bytes, kind: int, at: int, length: int) -> bool:
    """Whether a record's data can be read; hardly any query has records, and what they say does not matter."""
    import dns.exception
    import dns.rdata
    from dns.rdataclass import IN
    from dns.rdatatype import RdataType

    try:
        dns.rdata.from_wire(IN, RdataType.make(kind), packet, at, length)
    except dns.exception.DNSException:
        return False
    return True


# --- writing ---------------------------------------------------------------------------------------


def name_bytes(spelled: Spelled) -> bytes:
    """A name in full, uncompressed."""
    return b"".join([bytes((len(label),)) + label for label in spelled]) + b"\0"


def question_bytes(question: Question) -> bytes:
    return name_bytes(question.spelled) + _NUMBERS.pack(question.type, question.klass)


def _refusal(ident: int, flags: int, rcode: Rcode, question: Question | None = None) -> bytes:
    """What cannot be read goes back with the flags it came with."""
    kept = flags & (_OPCODE | TC | RD | RA | AD | CD)
    if question is None:
        return HEADER.pack(ident, QR | kept | rcode, 0, 0, 0, 0)
    return HEADER.pack(ident, QR | kept | rcode, 1, 0, 0, 0) + question_bytes(question)


def _repeated(flags: int) -> int:
    """RD and CD are repeated for plain queries only."""
    return flags & _OPCODE or flags & (RD | CD)


def reply_flags(query: Query, rcode: int, *, authoritative: bool) -> int:
    return QR | _repeated(query.flags) | (AA if authoritative else 0) | (rcode & 15)


def opt_record(query: Query, rcode: int = 0) -> bytes:
    """The answer to a query's EDNS: none if it had none.  Options, cookies too, are not answered."""
    if query.edns_size is None:
        return b""
    if rcode == Rcode.BADVERS:
        return _OPT.pack(0, Type.OPT, 0, (rcode >> 4) << 24, 0)
    return _OPT.pack(0, Type.OPT, query.edns_size, _DO if query.dnssec_ok else 0, 0)


def write_status(query: Query, rcode: int, *, authoritative: bool = False) -> bytes:
    """A reply that says only how it went."""
    opt = opt_record(query, rcode)
    flags = reply_flags(query, rcode, authoritative=authoritative)
    header = HEADER.pack(query.id, flags, 1, 0, 0, 1 if opt else 0)
    return header + question_bytes(query.question) + opt
