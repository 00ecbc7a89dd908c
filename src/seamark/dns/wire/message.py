"""Reads queries, and writes the parts that every reply has.

Written here because it runs for every query, also in a flood; everything else (upstream replies, the client side) uses
dnspython.  Which malformed queries are accepted follows recordings of CoreDNS, whose parser is lenient.  Replies with
records are written by :mod:`seamark.dns.wire.replies`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

import msgspec

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


class MalformedMessage(Exception):
    """The packet is not a well-formed message; ``question`` is its question if that could be read."""

    def __init__(self, reason: str, question: Question | None = None) -> None:
        super().__init__(reason)
        self.question = question


class Query(msgspec.Struct, frozen=True, gc=False):
    """The parts of a query that matter.

    ``edns_size`` is None without EDNS; ``end`` is the offset where the last record ends; ``serial`` comes from an SOA
    record in the authority section, which a client sends to request an incremental transfer.
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
        """The maximal size of a reply."""
        if not datagram:
            return LARGEST
        return min(max(self.edns_size or 0, SMALLEST_LIMIT), _LARGEST_DATAGRAM)


# --- reading ---------------------------------------------------------------------------------------


def read_name(packet: bytes, at: int) -> tuple[Spelled, int]:
    """The name at an offset, and the offset behind it.  Pointers may lead anywhere; their number is limited."""
    labels: list[bytes] = []
    end = -1
    budget, pointers, size = _LONGEST_NAME, 0, len(packet)
    while True:
        if at >= size:
            raise MalformedMessage("a name runs off the message")
        length = packet[at]
        at += 1
        if length == 0:
            return tuple(labels), at if end < 0 else end
        if length < 64:
            label = packet[at : at + length]
            at += length
            budget -= length + 1
            if len(label) < length or budget <= 0:
                raise MalformedMessage("a name is too long")
            labels.append(label)
        elif length >= 192:
            if at >= size:
                raise MalformedMessage("a pointer runs off the message")
            pointers += 1
            if pointers > _MOST_POINTERS:
                raise MalformedMessage("pointers go round in circles")
            if end < 0:
                end = at + 1
            at = (length & 0x3F) << 8 | packet[at]
        else:
            raise MalformedMessage("a label of an unknown kind")


def read_query(packet: bytes) -> Query | bytes | None:
    """The query in a packet; or, if it is malformed, the bytes of the error reply; None: send no reply."""
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
    except MalformedMessage as problem:
        return _refusal(ident, flags & ~_OPCODE, Rcode.FORMERR, problem.question)


def _read_question(packet: bytes) -> tuple[Question, int]:
    """Read the question; a missing class, or missing type and class, count as 0."""
    spelled, at = read_name(packet, 12)
    numbers = packet[at : at + 4]
    if len(numbers) % 2:
        raise MalformedMessage("the question ends in the middle of a number")
    wanted, klass = struct.unpack("!HH", numbers.ljust(4, b"\0"))
    return Question(spelled, lowered(spelled), wanted, klass), at + len(numbers)


def _read_rest(
    packet: bytes, at: int, ident: int, flags: int, question: Question, skip: int, additionals: int
) -> Query:
    """Read the other records, to find EDNS.  Fewer records than announced are accepted, malformed ones are not."""
    size: int | None = None
    serial: int | None = None
    version, dnssec_ok = 0, False
    for number in range(skip + additionals):
        if at == len(packet):
            break
        try:
            _, at = read_name(packet, at)
        except MalformedMessage as problem:
            raise MalformedMessage(str(problem), question) from problem
        if at + 10 > len(packet):
            raise MalformedMessage("a record is cut short", question)
        kind, klass, ttl, length = RECORD.unpack_from(packet, at)
        at += 10
        data, at = packet[at : at + length], at + length
        if at > len(packet):
            raise MalformedMessage("a record's data runs off the message", question)
        if length and not (
            _options_whole(data) if kind == Type.OPT else _data_whole(packet, kind, at - length, length)
        ):
            raise MalformedMessage("a record's data is not what its type says", question)
        if kind == Type.OPT and number >= skip:
            size, version, dnssec_ok = klass, (ttl >> 16) & 0xFF, bool(ttl & _DO)
        elif kind == Type.SOA and number < skip and length:
            serial = int.from_bytes(data[-20:-16], "big")
    return Query(ident, flags, question, size, version, dnssec_ok, at, serial)


def _data_whole(packet: bytes, kind: int, at: int, length: int) -> bool:
    """Whether a record's data is well-formed.  Few queries have records, and their content is not used."""
    import dns.exception
    import dns.rdata
    from dns.rdataclass import IN
    from dns.rdatatype import RdataType

    try:
        dns.rdata.from_wire(IN, RdataType.make(kind), packet, at, length)
    except dns.exception.DNSException:
        return False
    return True


# --- EDNS options ----------------------------------------------------------------------------------

# No option is acted on, but a malformed option makes the whole query malformed, as in CoreDNS.


def _subnet_whole(data: bytes) -> bool:
    """Whether a client subnet is well-formed."""
    family = int.from_bytes(data[:2], "big")
    if len(data) < 4 or family not in _SUBNET_BITS:
        return False
    network, scope = _SUBNET_BITS[family]
    return data[2] <= network and data[3] <= scope


# Address family → the most bits that a client subnet and the scope of an answer can have.
_SUBNET_BITS = {0: (0, 255), 1: (32, 32), 2: (128, 128)}

# Option code → whether its data is well-formed; options that are not listed may have any data.
_OPTION_WHOLE: Mapping[int, Callable[[bytes], bool]] = {
    1: lambda data: len(data) >= 18,  # long-lived query
    2: lambda data: len(data) in (4, 8),  # update lease
    8: _subnet_whole,
    9: lambda data: not data or len(data) >= 4,  # expire
    11: lambda data: len(data) in (0, 2),  # TCP keepalive
    15: lambda data: len(data) >= 2,  # extended error
}


def _options_whole(data: bytes) -> bool:
    """Whether the data of an OPT record consists of well-formed options."""
    at, size = 0, len(data)
    while at < size:
        if at + 4 > size:
            return False
        whole = _OPTION_WHOLE.get(int.from_bytes(data[at : at + 2], "big"))
        end = at + 4 + int.from_bytes(data[at + 2 : at + 4], "big")
        if end > size or (whole is not None and not whole(data[at + 4 : end])):
            return False
        at = end
    return True


# --- writing ---------------------------------------------------------------------------------------


def name_bytes(spelled: Spelled) -> bytes:
    """A name without compression."""
    return b"".join([bytes((len(label),)) + label for label in spelled]) + b"\0"


def question_bytes(question: Question) -> bytes:
    return name_bytes(question.spelled) + _NUMBERS.pack(question.type, question.klass)


def _refusal(ident: int, flags: int, rcode: Rcode, question: Question | None = None) -> bytes:
    """An error reply to a malformed query, with the query's own flags."""
    kept = flags & (_OPCODE | TC | RD | RA | AD | CD)
    if question is None:
        return HEADER.pack(ident, QR | kept | rcode, 0, 0, 0, 0)
    return HEADER.pack(ident, QR | kept | rcode, 1, 0, 0, 0) + question_bytes(question)


def _repeated(flags: int) -> int:
    """The flags to repeat in a reply: RD and CD for plain queries, else only the opcode."""
    return flags & _OPCODE or flags & (RD | CD)


def reply_flags(query: Query, rcode: int, *, authoritative: bool) -> int:
    return QR | _repeated(query.flags) | (AA if authoritative else 0) | (rcode & 15)


def opt_record(query: Query, rcode: int = 0) -> bytes:
    """The OPT record of the reply, empty if the query had none.  Options, also cookies, are not answered."""
    if query.edns_size is None:
        return b""
    if rcode == Rcode.BADVERS:
        return _OPT.pack(0, Type.OPT, 0, (rcode >> 4) << 24, 0)
    return _OPT.pack(0, Type.OPT, query.edns_size, _DO if query.dnssec_ok else 0, 0)


def write_status(query: Query, rcode: int) -> bytes:
    """A reply without records, only an rcode."""
    opt = opt_record(query, rcode)
    flags = reply_flags(query, rcode, authoritative=False)
    header = HEADER.pack(query.id, flags, 1, 0, 0, 1 if opt else 0)
    return header + question_bytes(query.question) + opt
