"""Zone transfers (AXFR, and IXFR answered with the whole zone) to allowed clients.

A transfer is built by asking the authority for every name in the zone, so that it always agrees with the answers.
Names of Pods are left out: in the insecure mode every possible address has one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from seamark.dns.wire.message import Query, reply_flags
from seamark.dns.wire.replies import ReplyWriter
from seamark.dns.zone.answers import Authority
from seamark.dns.zone.names import Labels, is_reverse_zone, reverse_labels, within
from seamark.dns.zone.records import Question, Record, Spelled, Type, spell
from seamark.dns.zone.state import ClusterZone, port_of

_LARGEST_MESSAGE = 16 * 1024


class ZoneTransfers:
    """Answers transfers to clients in ``allowed``: addresses and networks, or ``*`` for every client."""

    def __init__(self, authority: Authority, zone: ClusterZone, allowed: Sequence[str]) -> None:
        self._authority = authority
        self._zone = zone
        self._everybody = "*" in allowed
        self._networks = [ipaddress.ip_network(text, strict=False) for text in allowed if text != "*"]

    def messages(self, query: Query, zone: Labels, client: str) -> Sequence[bytes] | None:
        if not self._allowed(client) or query.question.name != zone:
            return None
        soa = self._authority.soa(query.question.spelled)
        if query.question.type == Type.IXFR and query.serial == self._zone.serial:
            return list(_written(query, [soa]))
        return list(_written(query, [soa, *self.records(zone), soa]))

    def records(self, zone: Labels) -> Iterator[Record]:
        """All records of a zone, each once."""
        seen: set[Record] = set()
        for question in self._questions(zone):
            for record in self._authority.answer(question, zone).answers:
                if record.owner == question.spelled and record not in seen:
                    seen.add(record)
                    yield record

    def _allowed(self, client: str) -> bool:
        if self._everybody:
            return True
        try:
            address = ipaddress.ip_address(client.partition("%")[0])
        except ValueError:
            return False
        return any(address in network for network in self._networks)

    def _questions(self, zone: Labels) -> Iterator[Question]:
        spelled: Spelled = tuple(label.encode() for label in zone)
        yield Question.about(spelled, Type.NS)
        yield Question.about((b"dns-version", *spelled), Type.TXT)
        for kind in (Type.A, Type.AAAA):
            yield Question.about((b"ns", b"dns", *spelled), kind)
        if is_reverse_zone(zone):
            for address in sorted(self._zone.addresses()):
                name = reverse_labels(address)
                if within(name, zone):
                    yield Question.about(tuple(label.encode() for label in name), Type.PTR)
            return
        for namespace, service in sorted(self._zone.services):
            yield from self._questions_about(namespace, service, spelled)

    def _questions_about(self, namespace: str, service: str, zone: Spelled) -> Iterator[Question]:
        base: Spelled = (service.encode(), namespace.encode(), b"svc", *zone)
        endpoints = self._zone.endpoints(namespace, service)
        for name in (base, *((*spell(label), *base) for label in sorted(endpoints.by_label))):
            for kind in (Type.CNAME, Type.A, Type.AAAA):
                yield Question.about(name, kind)
        found = self._zone.services[namespace, service]
        ports = {port_of(port)[:2] for port in found.spec.ports} | {port[:2] for port in endpoints.ports()}
        for port, protocol in sorted(ports):
            if port:
                labels = (f"_{port}".encode(), f"_{protocol}".encode())
                yield Question.about((*labels, *base), Type.SRV)


def _written(query: Query, records: Sequence[Record]) -> Iterator[bytes]:
    """The records, in order, as messages of limited size."""
    flags = reply_flags(query, 0, authoritative=True)
    rest = list(records)
    while rest:
        writer = ReplyWriter(query.question, _LARGEST_MESSAGE)
        count = writer.section(rest)
        writer.truncated = False
        yield writer.finish(query.id, flags, (count, 0, 0), b"")
        del rest[:count]
