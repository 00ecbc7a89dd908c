"""The bytes: read back by dnspython, cut where they must be, and no octets whatever that bring the server down."""

from __future__ import annotations

import random
import struct

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import pytest
from asking import query_packet, respond, responder_over, zone_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from watched_cluster import endpoint, service, slice_of

from seamark.dns.config import ZoneConfig
from seamark.dns.wire import message as wire
from seamark.dns.zone.records import Type

ZONE = zone_of(
    [
        service("web", "10.96.0.1"),
        service("hl", "None"),
        slice_of("hl", *(endpoint(f"10.1.{n // 200}.{n % 200 + 1}", f"host-{n}") for n in range(900))),
        service("e", "", type="ExternalName", externalName="web.default.svc.cluster.local"),
    ]
)
RESPONDER = responder_over(ZONE, ZoneConfig(pods="insecure"))
QUESTION = query_packet("web.default.svc.cluster.local", Type.A)


def _check_reply(packet: bytes, reply: bytes | None, *, datagram: bool = True) -> None:
    """Whatever was sent, a reply is a message, with its identity, and no longer than it may be."""
    if reply is None:
        assert len(packet) < 12 or packet[2] & 0x80
        return
    assert reply[:2] == packet[:2]
    assert reply[2] & 0x80
    dns.message.from_wire(reply)
    query = wire.read_query(packet)
    if isinstance(query, wire.Query):
        assert len(reply) <= query.limit(datagram=datagram)
    else:
        assert reply == query


@settings(max_examples=200)  # `make fuzz` tries many more
@given(st.binary(max_size=200), st.booleans())
@example(b"", True)
def test_any_octets(packet: bytes, datagram: bool) -> None:
    _check_reply(packet, respond(RESPONDER, packet, datagram=datagram), datagram=datagram)


@settings(max_examples=200)  # `make fuzz` tries many more
@given(
    st.integers(0, 15),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.binary(max_size=120),
    st.integers(0, 255),
)
def test_any_octets_behind_a_header(opcode: int, counts: list[int], body: bytes, low: int) -> None:
    packet = struct.pack("!6H", 7, opcode << 11 | low, *counts) + body
    _check_reply(packet, respond(RESPONDER, packet))


@settings(max_examples=200)  # `make fuzz` tries many more
@given(st.randoms(use_true_random=False), st.integers(1, 6))
def test_good_queries_with_octets_changed(chance: random.Random, changes: int) -> None:
    name = chance.choice(["web", "hl", "x.hl", "_http._tcp.hl", "e", "nope"]) + ".default.svc.cluster.local"
    packet = bytearray(query_packet(name, chance.choice(list(Type)), edns=chance.choice([None, 0, 512, 4096, 65535])))
    for _ in range(changes):
        packet[chance.randrange(len(packet))] = chance.randrange(256)
    packet = packet[: chance.randrange(2, len(packet) + 1)] if chance.random() < 0.3 else packet
    _check_reply(bytes(packet), respond(RESPONDER, bytes(packet)))


@given(st.integers(0, 2**16 - 1), st.integers(12, 300))
def test_pointers_anywhere(pointer: int, at: int) -> None:
    packet = bytearray(query_packet("web.default.svc.cluster.local", Type.A).ljust(310, b"\xc0"))
    struct.pack_into("!H", packet, at, 0xC000 | pointer)
    _check_reply(bytes(packet), respond(RESPONDER, bytes(packet)))


def test_a_message_of_64_kib() -> None:
    packet = QUESTION.ljust(65535, b"\xff")
    reply = respond(RESPONDER, packet, datagram=False)
    assert reply is not None
    assert dns.message.from_wire(reply).answer
    assert packet[2:] not in RESPONDER.tcp.ready.plain, "what trails is not worth keeping"


def test_a_long_chain_of_pointers_is_given_up() -> None:
    chain = b"".join(struct.pack("!H", 0xC000 | 12 + 2 * n) for n in range(1, 200))
    packet = struct.pack("!6H", 1, 0, 1, 0, 0, 0) + chain + b"\0\0\1\0\1"
    reply = respond(RESPONDER, packet)
    assert reply is not None
    assert reply[3] & 15 == dns.rcode.FORMERR


@pytest.mark.parametrize("edns", [None, 512, 1232, 4096, 65535])
@pytest.mark.parametrize("kind", [Type.A, Type.SRV])
@pytest.mark.parametrize("datagram", [True, False])
def test_what_does_not_fit_is_cut_at_whole_records(edns: int | None, kind: Type, datagram: bool) -> None:
    limit = min(max(edns or 0, 512), 65507) if datagram else 65535
    packet = query_packet("hl.default.svc.cluster.local", kind, edns=edns)
    reply = respond(RESPONDER, packet, datagram=datagram)
    assert reply is not None
    message = dns.message.from_wire(reply, one_rr_per_rrset=True)
    assert len(reply) <= limit
    complete = len(message.answer) == 900 and (kind == Type.A or len(message.additional) == 900)
    assert bool(message.flags & dns.flags.TC) == (not complete)
    assert (message.edns == 0) == (edns is not None)
    if not complete:
        record = 16 if kind == Type.A else 80
        assert len(reply) > limit - record, "as much as fits is given"


def test_compression_reaches_only_as_far_as_pointers_do() -> None:
    packet = query_packet("hl.default.svc.cluster.local", Type.SRV)
    reply = respond(RESPONDER, packet, datagram=False)
    assert reply is not None
    assert len(reply) > 0x4000
    message = dns.message.from_wire(reply, one_rr_per_rrset=True)
    targets = {rrset[0].target for rrset in message.answer}
    assert {rrset.name for rrset in message.additional} <= targets


@given(st.integers(0, 2**16 - 1), st.sampled_from(["rd", "cd", "ad", "none"]), st.booleans())
def test_dnspython_accepts_every_reply_as_one_to_its_query(ident: int, flag: str, edns: bool) -> None:
    query = dns.message.make_query("Web.default.svc.Cluster.local", "A", use_edns=0 if edns else False, id=ident)
    query.flags = 0 if flag == "none" else dns.flags.from_text(flag)
    reply = respond(RESPONDER, query.to_wire())
    message = dns.message.from_wire(reply or b"")
    assert query.is_response(message)
    assert bool(message.flags & dns.flags.RD) == (flag == "rd")
    assert bool(message.flags & dns.flags.CD) == (flag == "cd")
    assert not message.flags & dns.flags.AD
    assert message.question[0].name.to_text() == "Web.default.svc.Cluster.local."


def test_a_name_of_the_greatest_length() -> None:
    labels = [b"a" * 63, b"b" * 63, b"c" * 63, b"d" * 47, b"cluster", b"local"]
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    assert len(name) == 255
    packet = struct.pack("!6H", 1, 0, 1, 0, 0, 0) + name + b"\0\1\0\1"
    reply = respond(RESPONDER, packet)
    assert reply is not None
    assert reply[3] & 15 == dns.rcode.NXDOMAIN
    longer = name.replace(b"\x2f" + b"d" * 47, b"\x30" + b"d" * 48)
    reply = respond(RESPONDER, struct.pack("!6H", 1, 0, 1, 0, 0, 0) + longer + b"\0\1\0\1")
    assert reply is not None
    assert reply[3] & 15 == dns.rcode.FORMERR


def _record(kind: int, data: bytes, *, owner: bytes = b"\0") -> bytes:
    return owner + struct.pack("!HHIH", kind, 1, 0, len(data)) + data


SOA = b"\xc0\x0c\xc0\x0c" + b"\0" * 20


@pytest.mark.parametrize(
    ("counts", "more", "rcode"),
    [
        ((0, 1, 0), _record(6, SOA), dns.rcode.NOERROR),
        ((0, 1, 0), _record(6, SOA[:-1]), dns.rcode.FORMERR),
        ((0, 1, 0), _record(6, SOA + b"x"), dns.rcode.FORMERR),
        ((0, 1, 0), _record(6, b""), dns.rcode.NOERROR),
        ((0, 2, 0), _record(6, SOA) * 2, dns.rcode.FORMERR),
        ((1, 0, 0), _record(5, b"\xc0\x0c"), dns.rcode.NOERROR),
        ((1, 0, 0), _record(5, b"\1a"), dns.rcode.FORMERR),
        ((1, 0, 0), _record(5, b"\1a\0\0"), dns.rcode.FORMERR),
        ((1, 0, 0), _record(41, b"\0\1"), dns.rcode.FORMERR),
        ((1, 0, 1), _record(1, b"\1\2\3\4") + _record(41, b""), dns.rcode.NOERROR),
        ((0, 0, 1), _record(1, b"\1\2\3"), dns.rcode.FORMERR),
        ((0, 0, 1), _record(28, b"\0" * 16), dns.rcode.NOERROR),
        ((0, 0, 1), _record(16, b"\5abc"), dns.rcode.FORMERR),
        ((0, 0, 1), _record(16, b"\3abc"), dns.rcode.NOERROR),
        ((0, 0, 1), _record(65280, b"whatever"), dns.rcode.NOERROR),
        ((0, 0, 2), _record(65280, b"whatever"), dns.rcode.NOERROR),
        ((0, 0, 1), _record(65280, b"whatever")[:-1], dns.rcode.FORMERR),
        ((0, 0, 1), b"\0", dns.rcode.FORMERR),
    ],
)
def test_records_in_a_query_are_to_be_whole(counts: tuple[int, int, int], more: bytes, rcode: int) -> None:
    packet = QUESTION[:6] + struct.pack("!3H", *counts) + QUESTION[12:] + more
    reply = respond(RESPONDER, packet)
    assert reply is not None
    assert reply[3] & 15 == rcode


@pytest.mark.parametrize(
    ("option", "rcode"),
    [
        ("0003 0000", dns.rcode.NOERROR),  # the name of the server
        ("000a 0008 0102030405060708", dns.rcode.NOERROR),
        ("000a 0001 01", dns.rcode.NOERROR),  # half a cookie is ignored
        ("000c 0004 00000000", dns.rcode.NOERROR),  # padding
        ("0008 0007 00011800c00002", dns.rcode.NOERROR),  # the client's network
        ("0008 0004 00000000", dns.rcode.NOERROR),
        ("0008 0004 00002000", dns.rcode.FORMERR),  # of no family, but 32 bits
        ("0008 0004 00012100", dns.rcode.FORMERR),
        ("0008 0004 00010021", dns.rcode.FORMERR),
        ("0008 0004 00028000", dns.rcode.NOERROR),
        ("0008 0004 00028100", dns.rcode.FORMERR),
        ("0008 0004 00030000", dns.rcode.FORMERR),
        ("0008 0003 000118", dns.rcode.FORMERR),
        ("0009 0000", dns.rcode.NOERROR),  # the expiry of a zone
        ("0009 0002 0000", dns.rcode.FORMERR),
        ("000b 0000", dns.rcode.NOERROR),  # how long a connection is kept
        ("000b 0002 0064", dns.rcode.NOERROR),
        ("000b 0001 64", dns.rcode.FORMERR),
        ("000f 0002 0000", dns.rcode.NOERROR),  # an error in words
        ("000f 0001 00", dns.rcode.FORMERR),
        ("0001 0002 0000", dns.rcode.FORMERR),  # questions for long, updates on lease
        ("0002 0004 00000000", dns.rcode.NOERROR),
        ("0002 0005 0000000000", dns.rcode.FORMERR),
        ("fde9 0003 616263", dns.rcode.NOERROR),
        ("fde9 0004 616263", dns.rcode.FORMERR),
        ("fde9", dns.rcode.FORMERR),
    ],
)
def test_options_of_edns_are_to_be_whole(option: str, rcode: int) -> None:
    more = _record(41, bytes.fromhex(option.replace(" ", "")))
    reply = respond(RESPONDER, QUESTION[:6] + struct.pack("!3H", 0, 0, 1) + QUESTION[12:] + more)
    assert reply is not None
    assert reply[3] & 15 == rcode


ALL_FLAGS = dns.flags.AA | dns.flags.TC | dns.flags.RD | dns.flags.RA | 0x0040 | dns.flags.AD | dns.flags.CD


@pytest.mark.parametrize(
    ("opcode", "questions", "rcode", "kept"),
    [
        (0, 2, dns.rcode.FORMERR, ALL_FLAGS & ~(dns.flags.AA | 0x0040)),
        (4, 2, dns.rcode.FORMERR, ALL_FLAGS & ~(dns.flags.AA | 0x0040)),
        (5, 1, dns.rcode.NOTIMP, 5 << 11 | ALL_FLAGS & ~(dns.flags.AA | 0x0040)),
        (0, 1, dns.rcode.NOERROR, dns.flags.AA | dns.flags.RD | dns.flags.CD),
        (4, 1, dns.rcode.NOERROR, 4 << 11 | dns.flags.AA),
    ],
)
def test_what_is_refused_keeps_its_flags(opcode: int, questions: int, rcode: int, kept: int) -> None:
    packet = struct.pack("!3H", 1, opcode << 11 | ALL_FLAGS | 3, questions) + QUESTION[6:]
    reply = respond(RESPONDER, packet)
    assert reply is not None
    assert int.from_bytes(reply[2:4], "big") == dns.flags.QR | kept | rcode


@pytest.mark.parametrize(("opcode", "kept"), [(0, dns.flags.RD | dns.flags.CD), (4, 4 << 11)])
def test_a_header_that_promises_a_question(opcode: int, kept: int) -> None:
    reply = respond(RESPONDER, struct.pack("!6H", 1, opcode << 11 | ALL_FLAGS, 1, 0, 0, 0))
    assert reply == struct.pack("!6H", 1, dns.flags.QR | kept | dns.rcode.SERVFAIL, 0, 0, 0, 0)


@pytest.mark.parametrize(("version", "dnssec_ok"), [(0, True), (1, False)])
def test_dnssec_is_not_promised_to_another_edns(version: int, dnssec_ok: bool) -> None:
    opt = struct.pack("!BHHBBHH", 0, 41, 1232, 0, version, 0x8000, 0)
    reply = respond(RESPONDER, QUESTION[:6] + struct.pack("!3H", 0, 0, 1) + QUESTION[12:] + opt)
    message = dns.message.from_wire(reply or b"")
    assert message.rcode() == (dns.rcode.BADVERS if version else dns.rcode.NOERROR)
    assert bool(message.ednsflags & dns.flags.DO) == dnssec_ok
