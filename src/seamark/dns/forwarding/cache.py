"""A cache of upstream resolvers' replies, kept for their TTL.  It never holds answers about the cluster's own zones.

Positive replies are kept for the smallest TTL of their answers; negative ones, by RFC 2308, for the smaller of the SOA
record's TTL and its last field, and not at all without an SOA record.  TTLs in a reply served from here are reduced by
its age.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from seamark.dns.wire import message as wire
from seamark.dns.wire.message import Query
from seamark.dns.zone.names import Labels
from seamark.dns.zone.records import Question, Rcode, Type

_ADDITIONAL = 2  # the last of the sections of records
# The data of records is checked as well, unless there are more than these: that takes 40 µs for each of them, and there
# is room for thousands.
_MOST_CHECKED = 64
_MOST_OCTETS = 64 * 1024 * 1024  # that the replies in a cache may take, about
_RECORD_COST = 128  # what the offset and the TTL of a record take

Key = tuple[Labels, int, int, bool, bool]  # name, type, class, DNSSEC wanted, checking disabled


class Fetched(msgspec.Struct, frozen=True, gc=False):
    """A reply without EDNS, and the offsets of its TTLs."""

    message: bytes
    ttls_at: tuple[tuple[int, int], ...]  # offset, TTL
    fetched_at: float
    lifetime: int

    @property
    def size(self) -> int:
        return len(self.message) + _RECORD_COST * len(self.ttls_at)

    @property
    def rcode(self) -> int:
        return self.message[3] & 15

    def age(self, now: float) -> int:
        return max(0, int(now - self.fetched_at))

    def reply_to(self, query: Query, *, datagram: bool, age: int, stale_ttl: int | None = None) -> bytes:
        """This reply, adapted to a query's id, spelling, flags and size limit."""
        opt = wire.opt_record(query)
        out = bytearray(self.cut(query.limit(datagram=datagram) - len(opt)))
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
            if at > len(out):
                break
            struct.pack_into("!I", out, at, max(0, ttl - age) if stale_ttl is None else stale_ttl)
        if opt:
            additionals = int.from_bytes(out[10:12], "big") + 1
            out[10:12] = additionals.to_bytes(2, "big")
            out += opt
        return bytes(out)

    def cut(self, limit: int, *, most: int = wire.LARGEST) -> bytes:
        """The message with as many of its first records as fit, ``most`` at most; it is marked if some are missing.

        Names refer to earlier ones only, so that the beginning of a message is a message.
        """
        if len(self.message) <= limit and len(self.ttls_at) <= most:
            return self.message
        kept, end = 0, 12 + _name_length(self.message, 12) + 4
        for at, _ in self.ttls_at[:most]:
            next_end = at + 6 + int.from_bytes(self.message[at + 4 : at + 6], "big")
            if next_end > limit:
                break
            kept, end = kept + 1, next_end
        ident, flags, questions, *counts = wire.HEADER.unpack_from(self.message)
        left = kept
        for section, count in enumerate(counts):
            counts[section] = min(count, left)
            left -= counts[section]
            if counts[section] < count and section < _ADDITIONAL:
                flags |= wire.TC
        return wire.HEADER.pack(ident, flags, questions, *counts) + self.message[12:end]


def fetched(reply: bytes, question: Question, now: float, *, longest: int, longest_negative: int) -> Fetched:
    """Parse an upstream's reply; raises ``DNSException`` or ``MalformedMessage`` if it is not a DNS message.

    Its octets are kept as they came.  So a name that is a pointer to the question takes the spelling of each query that
    the reply is used for; other names keep their spelling.
    """
    import dns.message

    questions, answers, authorities, additionals = wire.HEADER.unpack_from(reply)[2:]
    if not questions:
        # The reply is only an rcode: add the question.
        header = wire.HEADER.pack(0, int.from_bytes(reply[2:4], "big"), 1, 0, 0, 0)
        return Fetched(header + wire.question_bytes(question), (), now, 0)
    if answers + authorities + additionals <= _MOST_CHECKED:
        message = dns.message.from_wire(reply, ignore_trailing=True, one_rr_per_rrset=True)
        if message.opt is not None and _records(reply)[-1].type != Type.OPT:
            message.use_edns(False)
            reply = message.to_wire(want_shuffle=False)
    records = _records(reply)
    if additionals and records[-1].type == Type.OPT:
        # Without it, because EDNS is hop by hop.
        reply = reply[:10] + (additionals - 1).to_bytes(2, "big") + reply[12 : records[-1].start]
        records.pop()
    if any(record.type == Type.OPT for record in records):
        raise wire.MalformedMessage("an OPT record is not at the end")
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
    """The offsets of every record of a message with one question; raises :class:`wire.MalformedMessage`."""
    at = 12 + _name_length(message, 12) + 4
    found = []
    for _ in range(sum(wire.HEADER.unpack_from(message)[3:])):
        start, at = at, at + _name_length(message, at)
        data = at + wire.RECORD.size
        if data > len(message):
            raise wire.MalformedMessage("a record is cut short")
        kind, _, ttl, length = wire.RECORD.unpack_from(message, at)
        if data + length > len(message):
            raise wire.MalformedMessage("a record's data runs off the message")
        found.append(_Place(kind, start, at + 4, ttl, data + length))
        at = data + length
    return found


def _name_length(message: bytes, at: int) -> int:
    """How many octets a name has where it stands; what a pointer in it leads to is not looked at."""
    start = at
    while at < len(message):
        length = message[at]
        if length == 0 or length >= 192:
            return at + (1 if length == 0 else 2) - start
        at += 1 + length
    raise wire.MalformedMessage("a name runs off the message")


class AnswerCache:
    """A cache, bounded in number and octets; the least recently used reply is dropped first.

    Expired replies stay for ``stale_seconds``, to be served while no upstream resolver answers.
    """

    def __init__(self, *, entries: int, stale_seconds: float) -> None:
        self._entries = entries
        self._stale_seconds = stale_seconds
        self._kept: OrderedDict[Key, Fetched] = OrderedDict()
        self._held = 0  # octets

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key, now: float) -> Fetched | None:
        """A reply that has not expired."""
        found = self._kept.get(key)
        if found is None:
            return None
        if now >= found.fetched_at + found.lifetime:
            if now >= found.fetched_at + found.lifetime + self._stale_seconds:
                self._drop(key)
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
        self._drop(key)
        self._kept[key] = found
        self._held += found.size
        while len(self._kept) > self._entries or self._held > _MOST_OCTETS:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        if (dropped := self._kept.pop(key, None)) is not None:
            self._held -= dropped.size
