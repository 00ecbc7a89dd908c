"""Short ways to ask: a zone made of objects, and questions with answers as text."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import dns.message
import dns.rcode
import msgspec

from seamark.dns.config import ZoneConfig
from seamark.dns.measures import Measures
from seamark.dns.ready import ReadyAnswers
from seamark.dns.responder import Responder
from seamark.dns.wire.message import Query
from seamark.dns.wire.replies import write_answer
from seamark.dns.zone.answers import Answer, Authority
from seamark.dns.zone.records import Question, Type, spell
from seamark.dns.zone.state import ClusterZone, Touched
from seamark.metrics import Registry
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.namespace import Namespace
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from virtual_time import VirtualClock


def put(zone: ClusterZone, obj: dict[str, Any]) -> Touched:
    match obj["kind"]:
        case "Namespace":
            return zone.put_namespace(msgspec.convert(obj, Namespace).metadata.name)
        case "Service":
            return zone.put_service(msgspec.convert(obj, Service))
        case "EndpointSlice":
            return zone.put_slice(msgspec.convert(obj, EndpointSlice))
        case "Endpoints":
            return zone.put_endpoints(msgspec.convert(obj, Endpoints))
        case "Pod":
            return zone.put_pod(msgspec.convert(obj, Pod))
    raise ValueError(obj["kind"])


def remove(zone: ClusterZone, obj: dict[str, Any]) -> Touched:
    metadata = obj["metadata"]
    match obj["kind"]:
        case "Namespace":
            return zone.remove_namespace(metadata["name"])
        case "Service":
            return zone.remove_service(metadata["namespace"], metadata["name"])
        case "EndpointSlice":
            return zone.remove_slice(metadata["namespace"], metadata["name"])
        case "Endpoints":
            return zone.remove_endpoints(metadata["namespace"], metadata["name"])
        case "Pod":
            return zone.remove_pod(metadata["namespace"], metadata["name"])
    raise ValueError(obj["kind"])


def zone_of(objects: Iterable[dict[str, Any]], **options: Any) -> ClusterZone:
    zone = ClusterZone(clock=VirtualClock(1000.0), **options)
    zone.put_namespace("default")
    for obj in objects:
        put(zone, obj)
    return zone


def ask(zone: ClusterZone, name: str, kind: str, config: ZoneConfig | None = None, **options: Any) -> Answer:
    authority = Authority(zone, config or ZoneConfig(), **options)
    question = Question.about(spell(name), Type[kind])
    served = authority.zone_of(question.name)
    assert served is not None, f"{name} is in no served zone"
    return authority.answer(question, served)


def texts(answer: Answer, section: str = "answer") -> list[str]:
    """The records of a section as ``TYPE data``, sorted; read back by dnspython, not by us."""
    record = (answer.answers or answer.authority)[0]
    question = Question.about(answer.answers[0].owner if answer.answers else record.owner, 1)
    message = dns.message.from_wire(write_answer(Query(1, 0, question), answer, 65535), one_rr_per_rrset=True)
    found = getattr(message, section)
    return sorted(f"{dns.rdatatype.to_text(rrset.rdtype)} {rrset[0].to_text()}" for rrset in found)


def outcome(answer: Answer) -> str:
    if answer.rcode:
        return dns.rcode.to_text(answer.rcode)
    return "NOERROR" if answer.answers else "NODATA"


def query_packet(name: str, kind: int, *, ident: int = 1, edns: int | None = None, flags: int = 0x0100) -> bytes:
    spelled = b"".join(bytes([len(label)]) + label for label in spell(name)) + b"\0"
    opt = struct.pack("!BHHIH", 0, 41, edns, 0, 0) if edns is not None else b""
    header = struct.pack("!6H", ident, flags, 1, 0, 0, 1 if opt else 0)
    return header + spelled + struct.pack("!HH", kind, 1) + opt


def responder_over(zone: ClusterZone, config: ZoneConfig | None = None, **options: Any) -> Responder:
    entries = options.pop("entries", 1000)
    return Responder(
        Authority(zone, config or ZoneConfig()),
        ready=(
            ReadyAnswers(zone, entries=entries, octets=1 << 22),
            ReadyAnswers(zone, entries=entries, octets=1 << 22),
        ),
        measures=Measures(Registry()),
        synced=options.pop("synced", lambda: True),
        **options,
    )


def respond(responder: Responder, packet: bytes, *, datagram: bool = True) -> bytes | None:
    """As a listener would: the ready answers first."""
    transport = responder.udp if datagram else responder.tcp
    entry = transport.ready.plain.get(packet[2:])
    if entry is not None:
        entry.hits += 1
        return packet[:2] + entry.forms[entry.hits % entry.spread]
    reply = responder.respond(packet, transport)
    assert reply is None or isinstance(reply, bytes)
    return reply
