"""Resolves a name as a Pod does: tries the search path name by name, and reports each answer with its reason.

:func:`candidates` and :func:`walk` implement the rules of the resolver; :class:`StateAsker` answers from the cluster's
state, through the same responder as the server, so that its reasons are the server's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import msgspec

from seamark.access.cluster import Cluster
from seamark.access.informers import Informers
from seamark.dns.config import ForwardConfig, ZoneConfig
from seamark.dns.forwarding.forward import Forwarder
from seamark.dns.measures import Measures
from seamark.dns.ready import ReadyAnswers
from seamark.dns.responder import Responder
from seamark.dns.wire import message as wire
from seamark.dns.zone.answers import Authority
from seamark.dns.zone.feed import ZoneFeed
from seamark.dns.zone.records import Question, Rcode, presented, spell, spellable
from seamark.dns.zone.state import ClusterZone
from seamark.metrics import Registry

NDOTS = 5  # what the kubelet writes into a Pod's resolv.conf

SILENT = "no answer"  # in the place of a code, for a server that did not answer

Outcome = Literal["answer", "nodata", "nxdomain", "failure"]


class Told(msgspec.Struct, frozen=True):
    """The answer to one question; ``records`` are in presentation form."""

    rcode: str
    records: tuple[str, ...]
    why: str

    @property
    def outcome(self) -> Outcome:
        if self.rcode == "NOERROR":
            return "answer" if self.records else "nodata"
        return "nxdomain" if self.rcode == "NXDOMAIN" else "failure"


class Try(msgspec.Struct, frozen=True):
    """One name of the search path, with the answer for each record type."""

    name: str
    told: dict[str, Told]

    @property
    def answered(self) -> bool:
        return any(told.outcome == "answer" for told in self.told.values())


class Walk(msgspec.Struct, frozen=True):
    """The tries in order; if the name was found, the last try has its answer."""

    asked: str
    tries: tuple[Try, ...]

    @property
    def found(self) -> bool:
        return bool(self.tries) and self.tries[-1].answered


Ask = Callable[[str, str], Awaitable[Told]]  # absolute name, type


def search_path(namespace: str, zone: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """The ``search`` line of a Pod with dnsPolicy ClusterFirst; ``more`` are the search domains of its node."""
    zone = zone.rstrip(".")
    return (f"{namespace}.svc.{zone}", f"svc.{zone}", zone, *more)


def candidates(name: str, search: Sequence[str]) -> list[str]:
    """The absolute names that a resolver tries, in order: the name itself comes first if it has ``NDOTS`` dots."""
    if name.endswith("."):
        return [name]
    searched = [f"{name}.{domain.rstrip('.')}." for domain in search]
    return [f"{name}.", *searched] if name.count(".") >= NDOTS else [*searched, f"{name}."]


async def walk(name: str, types: Sequence[str], search: Sequence[str], ask: Ask) -> Walk:
    """Try one name after the other until one has an answer.  As glibc does, go on after NODATA too."""
    tries = []
    for candidate in candidates(name, search):
        if not spellable(spell(candidate)):
            told = {kind: Told("FORMERR", (), "a name has labels of 1 to 63 octets, 255 in all") for kind in types}
        else:
            told = {kind: await ask(candidate, kind) for kind in types}
        tries.append(Try(candidate, told))
        if tries[-1].answered:
            break
    return Walk(name, tuple(tries))


class StateAsker:
    """Asks a responder in this process, and its authority for the reasons."""

    def __init__(self, responder: Responder, authority: Authority) -> None:
        self._responder = responder
        self._authority = authority

    async def __call__(self, name: str, kind: str) -> Told:
        question = Question.about(spell(name), type_number(kind))
        packet = wire.HEADER.pack(1, wire.RD, 1, 0, 0, 0) + wire.question_bytes(question)
        reply = self._responder.respond(packet, self._responder.tcp)
        if isinstance(reply, Awaitable):
            reply = await reply
        assert isinstance(reply, bytes), "a well-formed question has a reply"
        return told(reply, self._why(question))

    def _why(self, question: Question) -> str:
        zone = self._authority.zone_of(question.name)
        if zone is None:
            return "outside the cluster's zones: asked of the upstream resolvers"
        return self._authority.answer(question, zone).why


@asynccontextmanager
async def asking(cluster: Cluster, zone_config: ZoneConfig, forward: ForwardConfig) -> AsyncIterator[StateAsker]:
    """A :class:`StateAsker` over the current state of a cluster; an ``ApiError`` if that cannot be read."""
    registry = Registry()
    zone = ClusterZone(pod_names=zone_config.endpoint_pod_names)
    informers = Informers(cluster)
    feed = ZoneFeed(cluster, informers, zone, zone_config)
    authority = Authority(zone, zone_config)
    forwarder = Forwarder(forward, registry)
    nothing_kept = ReadyAnswers(zone, entries=0, octets=0)
    responder = Responder(
        authority,
        ready=(nothing_kept, nothing_kept),
        measures=Measures(registry),
        synced=lambda: feed.synced,
        falls_through=zone_config.falls_through,
        upstream=forwarder,
    )
    await feed.try_to_read()
    following = asyncio.create_task(informers.run(), name="informers of resolve")
    try:
        await feed.run()
        yield StateAsker(responder, authority)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await forwarder.close()


def type_number(kind: str) -> int:
    """The number of a record type; raises ``ValueError`` if there is no such type."""
    import dns.rdatatype

    try:
        return int(dns.rdatatype.from_text(kind))
    except dns.rdatatype.UnknownRdatatype:
        raise ValueError(f"there is no record type {kind}") from None


def told(reply: bytes, why: str) -> Told:
    """A reply in presentation form."""
    import dns.message
    import dns.rcode

    message = dns.message.from_wire(reply, one_rr_per_rrset=True)
    records = tuple(rrset.to_text() for rrset in message.answer)
    rcode = message.rcode()
    if int(rcode) == Rcode.REFUSED and not records:
        why = "outside the cluster's zones, and there is no upstream resolver to ask"
    return Told(dns.rcode.to_text(rcode), records, why)


async def ask_server(address: tuple[str, int], name: str, kind: str, *, timeout: float = 5.0) -> Told:
    """Ask a DNS server over UDP, and over TCP if the reply is truncated; there is no reason to report then."""
    import dns.asyncquery
    import dns.exception
    import dns.message

    host, port = address
    query = dns.message.make_query(presented(spell(name)), kind)
    try:
        reply, _ = await dns.asyncquery.udp_with_fallback(query, host, timeout=timeout, port=port)
    except (dns.exception.DNSException, OSError) as problem:
        return Told(SILENT, (), f"{host}:{port} does not answer: {problem or type(problem).__name__}")
    return told(reply.to_wire(), "")
