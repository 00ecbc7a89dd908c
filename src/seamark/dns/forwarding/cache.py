"""A cache of upstream resolvers' replies, kept for their TTL.  It never holds answers about the cluster's own zones.

Positive replies are kept for the smallest TTL of their answers; negative ones, by RFC 2308, for the smaller of the SOA
record's TTL and its last field, and not at all without an SOA record.  TTLs in a reply served from here are reduced by
its age.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from seamark.dns.wire import message as wire
from seamark.dns.wire.message import Query
from seamark.dns.zone.names import Labels
from seamark.dns.zone.records import Question, Rcode, Type

if TYPE_CHECKING:
    from dns.message import Message

Key = tuple[Labels, int, int, bool, bool]  # name, type, class, DNSSEC wanted, checking disabled


class Fetched(msgspec.Struct, frozen=True, gc=False):
    """A reply without EDNS, and the offsets of its TTLs."""

    message: bytes
    ttls_at: tuple[tuple[int, int], ...]  # offset, TTL
    fetched_at: float
    lifetime: int

    @property
    def rcode(self) -> int:
        return self.message[3] & 15

    def age(self, now: float) -> int:
        return max(0, int(now - self.fetched_at))

    def reply_to(self, query: Query, *, datagram: bool, age: int, stale_ttl: int | None = None) -> bytes:
        """This reply, adapted to a query's id, spelling, flags and size limit."""
        out = bytearray(self.message)
        flags = int.from_bytes(out[2:4], "big") & ~(wire.RD | wire.CD)
        flags |= query.flags & (wire.RD | wire.CD) | wire.RA
        if age:
            flags &= ~wire.AA
        if not query.dnssec_ok:
            flags &= ~wire.AD
        struct.pack_into("!HH", out, 0, query.id, flags)
        spelled = wire.name_bytes(query.question.spelled)
        out[12 : 12 + len(spelled)] = spelled
        for at, ttl in self.ttls_at:
            struct.pack_into("!I", out, at, max(0, ttl - age) if stale_ttl is None else stale_ttl)
        opt = wire.opt_record(query)
        limit = query.limit(datagram=datagram) - len(opt)
        if len(out) > limit:
            out = bytearray(_truncated(bytes(out), limit))
        if opt:
            additionals = int.from_bytes(out[10:12], "big") + 1
            out[10:12] = additionals.to_bytes(2, "big")
            out += opt
        return bytes(out)


def _truncated(message: bytes, limit: int) -> bytes:
    import dns.message

    # As single records, because dnspython drops whole sets, and part of a set is better than nothing.
    whole = dns.message.from_wire(message, one_rr_per_rrset=True)
    return whole.to_wire(max_size=limit, prefer_truncation=True)


def fetched(reply: bytes, question: Question, now: float, *, longest: int, longest_negative: int) -> Fetched:
    """Parse an upstream's reply; raises :class:`dns.exception.DNSException` if it is not a DNS message.

    Its octets are kept as they came.  So a name that is a pointer to the question takes the spelling of each query that
    the reply is used for; other names keep their spelling.
    """
    import dns.message

    message = dns.message.from_wire(reply, ignore_trailing=True, one_rr_per_rrset=True)
    if not message.question:
        # The reply is only an rcode: add the question.
        header = wire.HEADER.pack(0, int.from_bytes(reply[2:4], "big"), 1, 0, 0, 0)
        return Fetched(header + wire.question_bytes(question), (), now, 0)
    records = _records(reply)
    if any(record.type == Type.OPT for record in records):
        reply, records = _without_edns(reply, records, message)
    answers, authorities = len(message.answer), len(message.authority)
    negative = -1
    for record in records[answers : answers + authorities]:
        if record.type == Type.SOA:
            negative = min(record.ttl, int.from_bytes(reply[record.end - 4 : record.end], "big"), longest_negative)
    rcode = reply[3] & 15
    if rcode not in (Rcode.NOERROR, Rcode.NXDOMAIN) or int.from_bytes(reply[2:4], "big") & wire.TC:
        lifetime = 0
    elif rcode == Rcode.NXDOMAIN or not answers:
        lifetime = max(0, negative)
    else:
        lifetime = min(longest, *(record.ttl for record in records[:answers]))
    end = records[-1].end if records else 12 + len(wire.question_bytes(question))
    return Fetched(reply[:end], tuple((record.ttl_at, record.ttl) for record in records), now, lifetime)


class _Place(NamedTuple):
    """The offsets of a record in a message."""

    type: int
    start: int
    ttl_at: int
    ttl: int
    end: int


def _records(message: bytes) -> list[_Place]:
    """The offsets of every record of a well-formed message with one question."""
    _, at = wire.read_name(message, 12)
    at += 4
    found = []
    for _ in range(sum(wire.HEADER.unpack_from(message)[3:])):
        start = at
        _, at = wire.read_name(message, at)
        kind, _, ttl, length = wire.RECORD.unpack_from(message, at)
        end = at + wire.RECORD.size + length
        found.append(_Place(kind, start, at + 4, ttl, end))
        at = end
    return found


def _without_edns(reply: bytes, records: list[_Place], message: Message) -> tuple[bytes, list[_Place]]:
    """Remove the OPT record, because EDNS is hop by hop.  It is nearly always the last record, and simply cut off."""
    if records[-1].type == Type.OPT:
        additionals = int.from_bytes(reply[10:12], "big") - 1
        return reply[:10] + additionals.to_bytes(2, "big") + reply[12 : records[-1].start], records[:-1]
    message.use_edns(False)
    plain = message.to_wire(want_shuffle=False)
    return plain, _records(plain)


class AnswerCache:
    """A bounded cache; the least recently used reply is dropped first.

    Expired replies stay for ``stale_seconds``, to be served while no upstream resolver answers.
    """

    def __init__(self, *, entries: int, stale_seconds: float) -> None:
        self._entries = entries
        self._stale_seconds = stale_seconds
        self._kept: OrderedDict[Key, Fetched] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key, now: float) -> Fetched | None:
        """A reply that has not expired."""
        found = self._kept.get(key)
        if found is None:
            return None
        if now >= found.fetched_at + found.lifetime:
            if now >= found.fetched_at + found.lifetime + self._stale_seconds:
                del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return found

    def stale(self, key: Key, now: float) -> Fetched | None:
        """A reply that may have expired, but at most ``stale_seconds`` ago."""
        found = self._kept.get(key)
        if found is None or now >= found.fetched_at + found.lifetime + self._stale_seconds:
            return None
        return found

    def put(self, key: Key, found: Fetched) -> None:
        if not self._entries or found.lifetime <= 0:
            return
        self._kept[key] = found
        self._kept.move_to_end(key)
        while len(self._kept) > self._entries:
            self._kept.popitem(last=False)
