"""One query in, one reply out: which of the sources answers, in which order, and what is kept for the next time.

    static records → the cluster's zones → (ExternalName, fall-through, other names) upstream resolvers

What can be answered from memory is answered at once; only what needs an upstream resolver comes back as an awaitable.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from seamark.dns import replies, wire
from seamark.dns.answers import Answer, Authority
from seamark.dns.measures import Measures
from seamark.dns.names import Labels
from seamark.dns.ready import ReadyAnswers
from seamark.dns.records import IN, Question, Rcode, Record, Type
from seamark.dns.static import StaticRecords
from seamark.dns.wire import Query
from seamark.dns.zone import SERIAL
from seamark.metrics import Value

Reply = bytes | Sequence[bytes] | None  # a zone transfer is several messages
Outcome = Reply | Awaitable[Reply]

_MOST_FORMS = 8
_SERIAL_FROM_END = 20


class Upstream(Protocol):
    """What the responder needs of :mod:`seamark.dns.forward`."""

    def covers(self, name: Labels) -> bool:
        """Whether there is anybody to ask about this name."""
        ...

    async def reply(self, query: Query, *, datagram: bool) -> bytes:
        """The upstream's reply, made to fit this query."""
        ...

    async def records(self, question: Question) -> list[Record]:
        """The answer section for a name that an alias leads to; empty if nobody knows."""
        ...


class Transfers(Protocol):
    """What the responder needs of :mod:`seamark.dns.transfer`."""

    def messages(self, query: Query, zone: Labels, client: str) -> Sequence[bytes] | None:
        """The whole zone, or None if this client may not have it."""
        ...


class Responder:
    def __init__(
        self,
        authority: Authority,
        *,
        ready: ReadyAnswers,
        ready_stream: ReadyAnswers,
        measures: Measures,
        synced: Callable[[], bool],
        falls_through: Callable[[Labels], bool] = lambda name: False,
        static: StaticRecords | None = None,
        upstream: Upstream | None = None,
        transfers: Transfers | None = None,
        shuffle: bool = True,
    ) -> None:
        self.ready = {True: ready, False: ready_stream}
        self.measures = measures
        self._authority = authority
        self._synced = synced
        self._falls_through = falls_through
        self._static = static or StaticRecords()
        self._upstream = upstream
        self._transfers = transfers
        self._shuffle = shuffle

    def respond(self, packet: bytes, *, datagram: bool, client: str = "") -> Outcome:
        """The reply to a packet that is not among the plain ready answers; None is silence."""
        kept = self.ready[datagram].negative(packet[2:])
        if kept is not None:
            return packet[:2] + kept
        query = wire.read_query(packet)
        if not isinstance(query, Query):
            self._count_unread(query, datagram)
            return query
        question = query.question
        if question.klass != IN:
            return self._status(query, Rcode.REFUSED, None, datagram)
        if query.edns_version:
            return self._status(query, Rcode.BADVERS, None, datagram)
        if self._static:
            static = self._static.answer(question)
            if static is not None:
                return self._write(query, static, packet, datagram)
        zone = self._authority.zone_of(question.name)
        if zone is None:
            return self._elsewhere(query, datagram)
        if question.type in (Type.AXFR, Type.IXFR):
            return self._transfer(query, zone, datagram, client)
        return self._ours(query, zone, packet, datagram)

    def settle(self) -> None:
        """Bring the counters up to date with the answers served ready-made."""
        for ready in self.ready.values():
            ready.settle()

    # --- sources -----------------------------------------------------------------------------------

    def _ours(self, query: Query, zone: Labels, packet: bytes, datagram: bool) -> Outcome:
        if not self._synced():
            # Nothing is known yet, which is not the same as nothing being there.
            return self._status(query, Rcode.SERVFAIL, zone, datagram)
        answer = self._authority.answer(query.question, zone)
        if answer.rcode == Rcode.NXDOMAIN and self._falls_through(query.question.name):
            return self._fall_through(query, zone, datagram)
        if answer.follow and self._can_follow(answer):
            return self._follow(query, answer, datagram)
        return self._write(query, answer, packet, datagram)

    def _fall_through(self, query: Query, zone: Labels, datagram: bool) -> Outcome:
        if self._upstream is None or not self._upstream.covers(query.question.name):
            return self._status(query, Rcode.SERVFAIL, zone, datagram)
        return self._forward(query, datagram)

    def _elsewhere(self, query: Query, datagram: bool) -> Outcome:
        if self._upstream is None or not self._upstream.covers(query.question.name):
            return self._status(query, Rcode.REFUSED, None, datagram)
        return self._forward(query, datagram)

    async def _forward(self, query: Query, datagram: bool) -> bytes:
        assert self._upstream is not None
        reply = await self._upstream.reply(query, datagram=datagram)
        self._count(query, reply[3] & 15, None, datagram)
        return reply

    def _transfer(self, query: Query, zone: Labels, datagram: bool, client: str) -> Outcome:
        messages = None
        if self._transfers is not None and self._synced() and not datagram:
            messages = self._transfers.messages(query, zone, client)
        if messages is None:
            return self._status(query, Rcode.REFUSED, zone, datagram)
        self._count(query, Rcode.NOERROR, zone, datagram)
        return messages

    # --- aliases that lead out of the zone ---------------------------------------------------------

    def _can_follow(self, answer: Answer) -> bool:
        return any(self._knows_elsewhere(Question.about(target, Type.A)) for target in answer.follow)

    def _knows_elsewhere(self, question: Question) -> bool:
        return (
            self._static.answer(question) is not None
            or self._authority.zone_of(question.name) is not None
            or (self._upstream is not None and self._upstream.covers(question.name))
        )

    async def _follow(self, query: Query, answer: Answer, datagram: bool) -> bytes:
        for target in answer.follow:
            answer.answers.extend(await self._records(Question.about(target, query.question.type)))
        self._count(query, answer.rcode, answer.zone, datagram)
        return replies.write_answer(query, answer, query.limit(datagram=datagram))

    async def _records(self, question: Question) -> list[Record]:
        """What anybody knows about a name an alias leads to; nothing if nobody answers."""
        static = self._static.answer(question)
        if static is not None:
            return static.answers
        zone = self._authority.zone_of(question.name)
        if zone is not None:
            return self._authority.answer(question, zone).answers
        if self._upstream is not None and self._upstream.covers(question.name):
            return await self._upstream.records(question)
        return []

    # --- replies -----------------------------------------------------------------------------------

    def _status(self, query: Query, rcode: Rcode, zone: Labels | None, datagram: bool) -> bytes:
        self._count(query, rcode, zone, datagram)
        return wire.write_status(query, rcode)

    def _write(self, query: Query, answer: Answer, packet: bytes, datagram: bool) -> bytes:
        series = self._count(query, answer.rcode, answer.zone, datagram)
        limit, ready, key = query.limit(datagram=datagram), self.ready[datagram], packet[2:]
        if self._shuffle and len(answer.answers) > 1:
            _shuffle_addresses(answer.answers)
        if query.end != len(packet) or not ready.wants(key):
            return replies.write_answer(query, answer, limit)
        forms = replies.write_forms(query, answer, limit, most=_MOST_FORMS if self._shuffle else 1)
        serial_at = None
        if SERIAL in answer.depends:
            serial_at = len(forms[0]) - 2 - len(wire.opt_record(query)) - _SERIAL_FROM_END
        ready.keep(key, [form[2:] for form in forms], answer.depends, series, serial_at=serial_at)
        return forms[0]

    # --- counting ----------------------------------------------------------------------------------

    def _count(self, query: Query, rcode: int, zone: Labels | None, datagram: bool) -> Value:
        series = self.measures.replies("udp" if datagram else "tcp", query.question.type, rcode, zone)
        series.add()
        return series

    def _count_unread(self, reply: bytes | None, datagram: bool) -> None:
        if reply is None:
            self.measures.dropped.add()
        else:
            self.measures.replies("udp" if datagram else "tcp", 0, reply[3] & 15, None).add()


def _shuffle_addresses(records: list[Record]) -> None:
    """Addresses in any order, behind the aliases that lead to them."""
    addresses = [record for record in records if record.type in (Type.A, Type.AAAA)]
    random.shuffle(addresses)
    records[len(records) - len(addresses) :] = addresses
