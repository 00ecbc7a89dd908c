"""Other servers' answers, kept for as long as their owners allow: never the cluster's own.

Positive answers live for the smallest TTL among their records; negative ones as RFC 2308 says, for the smaller of the
SOA record's TTL and its last field, and without one not at all.  Whatever is served from here has its TTLs reduced by
its age.
"""

from __future__ import annotations

import struct
from collections import OrderedDict

import msgspec

from seamark.dns import wire
from seamark.dns.names import Labels
from seamark.dns.records import Question, Rcode, Type
from seamark.dns.wire import Query

Key = tuple[Labels, int, bool, bool]  # name, type, DNSSEC wanted, checking disabled

_FIXED = struct.Struct("!HHIH")
_AD = 0x0020


class Fetched(msgspec.Struct, frozen=True, gc=False):
    """A reply without EDNS, and where its TTLs stand."""

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
        """This reply as an answer to that query: its identity, its spelling, its flags, its size."""
        out = bytearray(self.message)
        flags = int.from_bytes(out[2:4], "big") & ~(wire.RD | wire.CD)
        flags |= query.flags & (wire.RD | wire.CD) | wire.RA
        if age:
            flags &= ~wire.AA
        if not query.dnssec_ok:
            flags &= ~_AD
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

    # As single records: dnspython drops whole sets, and part of an answer is more than none.
    whole = dns.message.from_wire(message, one_rr_per_rrset=True)
    return whole.to_wire(max_size=limit, prefer_truncation=True)


def fetched(reply: bytes, question: Question, now: float, *, longest: int, longest_negative: int) -> Fetched:
    """Take in an upstream's reply; raises :class:`dns.exception.DNSException` if it is no message."""
    import dns.message

    message = dns.message.from_wire(reply, ignore_trailing=True, one_rr_per_rrset=True)
    if not message.question:
        # Nothing but an rcode: the question is ours to add.
        header = wire.HEADER.pack(0, int.from_bytes(reply[2:4], "big"), 1, 0, 0, 0)
        return Fetched(header + wire.question_bytes(question), (), now, 0)
    message.use_edns(False)
    plain = message.to_wire(want_shuffle=False)
    ttls_at = []
    answers, authorities = len(message.answer), len(message.authority)
    smallest, negative = longest, -1
    for number, (kind, at, ttl, data_end) in enumerate(_records(plain)):
        ttls_at.append((at, ttl))
        if number < answers:
            smallest = min(smallest, ttl)
        elif number < answers + authorities and kind == Type.SOA:
            negative = min(ttl, int.from_bytes(plain[data_end - 4 : data_end], "big"), longest_negative)
    rcode = plain[3] & 15
    if rcode not in (Rcode.NOERROR, Rcode.NXDOMAIN) or int.from_bytes(plain[2:4], "big") & wire.TC:
        lifetime = 0
    elif rcode == Rcode.NXDOMAIN or not answers:
        lifetime = max(0, negative)
    else:
        lifetime = smallest
    return Fetched(plain, tuple(ttls_at), now, lifetime)


def _records(message: bytes) -> list[tuple[int, int, int, int]]:
    """Type, offset of the TTL, TTL and end of every record of a well-formed message with one question."""
    _, at = wire.read_name(message, 12)
    at += 4
    found = []
    while at < len(message):
        _, at = wire.read_name(message, at)
        kind, _, ttl, length = _FIXED.unpack_from(message, at)
        end = at + _FIXED.size + length
        found.append((kind, at + 4, ttl, end))
        at = end
    return found


class AnswerCache:
    """Bounded; the least recently used goes first.  Expired answers stay for ``stale_seconds``, in case of need."""

    def __init__(self, *, entries: int, stale_seconds: float) -> None:
        self._entries = entries
        self._stale_seconds = stale_seconds
        self._kept: OrderedDict[Key, Fetched] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key, now: float) -> Fetched | None:
        """An answer that is still good."""
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
        """An answer that is no longer good, but better than none."""
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
