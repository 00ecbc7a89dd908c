"""Turns a query into a reply: asks the sources in order, and keeps replies for the next time.

    static records → the cluster's zones → (ExternalName, fall-through, other names) upstream resolvers

Queries that can be answered from memory get their reply at once; the others get an awaitable.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from seamark.dns.measures import Measures
from seamark.dns.ready import ReadyAnswers
from seamark.dns.wire import message as wire
from seamark.dns.wire import replies
from seamark.dns.wire.message import Query
from seamark.dns.zone.answers import Answer, Authority
from seamark.dns.zone.names import Labels
from seamark.dns.zone.records import IN, Question, Rcode, Record, Type
from seamark.dns.zone.state import SERIAL
from seamark.dns.zone.static import StaticRecords
from seamark.metrics import Value

log = logging.getLogger(__name__)

Reply = bytes | Sequence[bytes] | None  # a zone transfer is several messages
Outcome = Reply | Awaitable[Reply]

_MOST_FORMS = 8
_SERIAL_FROM_END = 20


class Upstream(Protocol):
    """What the responder needs of :mod:`seamark.dns.forwarding.forward`."""

    @property
    def asks(self) -> bool:
        """Whether there is any upstream resolver."""
        ...

    def covers(self, name: Labels) -> bool:
        """Whether there is an upstream resolver for this name."""
        ...

    async def reply(self, query: Query, *, datagram: bool) -> bytes:
        """The upstream resolver's reply, adapted to this query's id, spelling, flags and size."""
        ...

    async def records(self, question: Question) -> list[Record]:
        """The answer section for the target of an alias; empty if there is no answer."""
        ...


class Transfers(Protocol):
    """What the responder needs of :mod:`seamark.dns.wire.transfer`."""

    def messages(self, query: Query, zone: Labels, client: str) -> Sequence[bytes] | None:
        """The whole zone, or None if this client may not transfer it."""
        ...


class Transport:
    """UDP or TCP: the size limit of its replies, and its cache of replies."""

    __slots__ = ("datagrams", "name", "ready")

    def __init__(self, name: Literal["udp", "tcp"], ready: ReadyAnswers) -> None:
        self.name = name
        self.datagrams = name == "udp"
        self.ready = ready

    def limit(self, query: Query) -> int:
        return query.limit(datagram=self.datagrams)


class _Request(NamedTuple):
    """A query, and where it came from."""

    query: Query
    packet: bytes
    transport: Transport
    client: str


class Responder:
    def __init__(
        self,
        authority: Authority,
        *,
        ready: tuple[ReadyAnswers, ReadyAnswers],
        measures: Measures,
        synced: Callable[[], bool],
        falls_through: Callable[[Labels], bool] = lambda name: False,
        static: StaticRecords | None = None,
        upstream: Upstream | None = None,
        transfers: Transfers | None = None,
        shuffle: bool = True,
    ) -> None:
        """``ready`` are the caches for UDP and for TCP: their replies differ in length."""
        self.udp = Transport("udp", ready[0])
        self.tcp = Transport("tcp", ready[1])
        self.measures = measures
        self._authority = authority
        self._synced = synced
        self._falls_through = falls_through
        self._static = StaticRecords() if static is None else static  # an empty one may be filled later
        self._upstream = upstream
        self._transfers = transfers
        self._shuffle = shuffle

    def respond(self, packet: bytes, transport: Transport, *, client: str = "") -> Outcome:
        """The reply to a packet that is not among the plain ready answers; None means: send no reply."""
        kept = transport.ready.negative(packet[2:])
        if kept is not None:
            return packet[:2] + kept
        query = wire.read_query(packet)
        if not isinstance(query, Query):
            self._count_unread(query, transport)
            return query
        request = _Request(query, packet, transport, client)
        question = query.question
        if question.klass != IN and not (self._upstream is not None and self._upstream.asks):
            # As in CoreDNS, a server that forwards ignores the class, even for the cluster's own names.
            return self._status(request, Rcode.REFUSED)
        if query.edns_version:
            return self._status(request, Rcode.BADVERS)
        if self._static:
            static = self._static.answer(question)
            if static is not None:
                return self._write(request, static)
        zone = self._authority.zone_of(question.name)
        if zone is None:
            return self._ask_upstream(request, otherwise=Rcode.REFUSED)
        if question.type in (Type.AXFR, Type.IXFR):
            return self._transfer(request, zone)
        return self._ours(request, zone)

    def try_to_respond(self, packet: bytes, transport: Transport, *, client: str = "") -> Outcome:
        """As :meth:`respond`, but log and count an unexpected exception, so that other queries get their replies."""
        try:
            return self.respond(packet, transport, client=client)
        except Exception:
            log.exception("a query could not be answered: %s", packet.hex())
            self.measures.failed.add()
            return None

    def settle(self) -> None:
        """Add the replies served from the caches to the metrics."""
        for transport in (self.udp, self.tcp):
            transport.ready.settle()

    # --- sources -----------------------------------------------------------------------------------

    def _ours(self, request: _Request, zone: Labels) -> Outcome:
        if not self._synced():
            # The cluster's state is not known yet, so NXDOMAIN could be wrong.
            return self._status(request, Rcode.SERVFAIL, zone)
        question = request.query.question
        answer = self._authority.answer(question, zone)
        if answer.rcode == Rcode.NXDOMAIN and self._falls_through(question.name):
            return self._ask_upstream(request, otherwise=Rcode.SERVFAIL)
        if answer.follow and self._can_follow(answer):
            return self._follow(request, answer)
        return self._write(request, answer)

    def _transfer(self, request: _Request, zone: Labels) -> Outcome:
        messages = None
        if self._transfers is not None and self._synced() and not request.transport.datagrams:
            messages = self._transfers.messages(request.query, zone, request.client)
        if messages is None:
            return self._status(request, Rcode.REFUSED, zone)
        self._count(request, Rcode.NOERROR, zone)
        return messages

    def _ask_upstream(self, request: _Request, *, otherwise: Rcode) -> Outcome:
        upstream = self._upstream
        if upstream is None or not upstream.covers(request.query.question.name):
            return self._status(request, otherwise)
        return self._forward(request, upstream)

    async def _forward(self, request: _Request, upstream: Upstream) -> bytes:
        reply = await upstream.reply(request.query, datagram=request.transport.datagrams)
        self._count(request, reply[3] & 15)
        return reply

    # --- aliases that lead out of the zone ---------------------------------------------------------

    def _can_follow(self, answer: Answer) -> bool:
        return any(self._knows_elsewhere(Question.about(target, Type.A)) for target in answer.follow)

    def _knows_elsewhere(self, question: Question) -> bool:
        return (
            self._static.answer(question) is not None
            or self._authority.zone_of(question.name) is not None
            or (self._upstream is not None and self._upstream.covers(question.name))
        )

    async def _follow(self, request: _Request, answer: Answer) -> bytes:
        for target in answer.follow:
            answer.answers.extend(await self._records(Question.about(target, request.query.question.type)))
        self._count(request, answer.rcode, answer.zone)
        return replies.write_answer(request.query, answer, request.transport.limit(request.query))

    async def _records(self, question: Question) -> list[Record]:
        """The records of an alias's target, from whichever source has that name; empty if none answers."""
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

    def _status(self, request: _Request, rcode: Rcode, zone: Labels | None = None) -> bytes:
        self._count(request, rcode, zone)
        return wire.write_status(request.query, rcode)

    def _write(self, request: _Request, answer: Answer) -> bytes:
        query, packet, transport, _ = request
        series = self._count(request, answer.rcode, answer.zone)
        limit, ready, key = transport.limit(query), transport.ready, packet[2:]
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

    def _count(self, request: _Request, rcode: int, zone: Labels | None = None) -> Value:
        kind = request.query.question.type
        series = self.measures.replies(proto=request.transport.name, kind=kind, rcode=rcode, zone=zone)
        series.add()
        return series

    def _count_unread(self, reply: bytes | None, transport: Transport) -> None:
        if reply is None:
            self.measures.dropped.add()
        else:
            self.measures.replies(proto=transport.name, kind=0, rcode=reply[3] & 15, zone=None).add()


def _shuffle_addresses(records: list[Record]) -> None:
    """Shuffle the addresses; the aliases that lead to them stay in front."""
    addresses = [record for record in records if record.type in (Type.A, Type.AAAA)]
    random.shuffle(addresses)
    records[len(records) - len(addresses) :] = addresses
