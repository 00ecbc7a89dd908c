"""Kept answers: bounded whatever is asked, turned so that every address comes first, counted."""

from __future__ import annotations

from collections import Counter

import dns.message
from asking import put, query_packet, respond, responder_over, zone_of
from hypothesis import given
from hypothesis import strategies as st
from watched_cluster import endpoint, service, slice_of

from seamark.dns.ready import ReadyAnswers
from seamark.dns.zone.records import Type
from seamark.metrics import Value


def test_a_flood_of_names_does_not_grow_the_memory() -> None:
    responder = responder_over(zone_of([service("web", "10.96.0.1")]), entries=50)
    for number in range(2000):
        reply = respond(responder, query_packet(f"r{number // 2}.default.svc.cluster.local", Type.A))
        assert reply is not None
        assert reply[3] & 15 == 3
    ready = responder.udp.ready
    assert 0 < len(ready) <= 50
    assert len(ready._by_fact) <= 2 * 50 + 1


def test_a_flood_of_spellings_does_not_grow_the_memory() -> None:
    responder = responder_over(zone_of([service("web", "10.96.0.1")]), entries=50)
    for number in range(2000):
        name = "".join(
            c.upper() if number // 2 >> at & 1 else c for at, c in enumerate("web.default.svc.cluster.local")
        )
        assert respond(responder, query_packet(name, Type.A)) is not None
    assert len(responder.udp.ready) <= 50


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=60), st.integers(0, 3000), st.booleans()), max_size=60))
def test_octets_are_bounded_too(kept: list[tuple[bytes, int, bool]]) -> None:
    ready = ReadyAnswers(zone_of([]), entries=40, octets=10_000)
    for key, size, dated in kept:
        form = b"\0" * (size + 24)
        ready.keep(key, [form], {("service", "default", key.hex())}, Value(), serial_at=0 if dated else None)
    held = sum(e.size + len(k) for shelf in (ready.plain, ready._dated) for k, e in shelf.items())
    assert held == ready._held <= 10_000
    ready.clear()
    assert (len(ready), ready._held, ready._by_fact) == (0, 0, {})


def test_questions_longer_than_any_sane_one_are_not_kept() -> None:
    ready = ReadyAnswers(zone_of([]), entries=40, octets=10_000)
    assert [ready.wants(b"\0" * 500) for _ in range(3)] == [False, False, False]


def test_what_is_asked_once_is_not_kept() -> None:
    responder = responder_over(zone_of([service("web", "10.96.0.1")]), entries=50)
    packets = [query_packet(f"{name}.default.svc.cluster.local", Type.A) for name in ("web", "nope")]
    for packet in packets:
        respond(responder, packet)
    assert len(responder.udp.ready) == 0
    for number in range(500):
        for packet in packets:
            respond(responder, packet)
        respond(responder, query_packet(f"r{number}.default.svc.cluster.local", Type.A))
    assert set(responder.udp.ready.plain) == {packets[0][2:]}
    assert set(responder.udp.ready._dated) == {packets[1][2:]}
    assert len(responder.udp.ready._asked_once) <= 50


def test_every_address_comes_first_as_often_as_the_others() -> None:
    endpoints = [endpoint(f"10.1.0.{n}") for n in range(1, 6)]
    responder = responder_over(zone_of([service("hl", "None"), slice_of("hl", *endpoints)]))
    packet = query_packet("hl.default.svc.cluster.local", Type.A)
    first: Counter[str] = Counter()
    for _ in range(2):
        respond(responder, packet)
    for _ in range(100):
        message = dns.message.from_wire(respond(responder, packet) or b"", one_rr_per_rrset=True)
        assert len(message.answer) == 5
        first[message.answer[0][0].to_text()] += 1
    assert set(first.values()) == {20}


def test_order_is_kept_where_shuffling_is_off() -> None:
    endpoints = [endpoint(f"10.1.0.{n}") for n in range(1, 6)]
    responder = responder_over(zone_of([service("hl", "None"), slice_of("hl", *endpoints)]), shuffle=False)
    packet = query_packet("hl.default.svc.cluster.local", Type.A)
    assert len({respond(responder, packet) for _ in range(10)}) == 1


def test_aliases_stay_in_front_of_the_addresses() -> None:
    endpoints = [endpoint(f"10.1.0.{n}") for n in range(1, 6)]
    alias = service("e", "", type="ExternalName", externalName="hl.default.svc.cluster.local")
    responder = responder_over(zone_of([service("hl", "None"), slice_of("hl", *endpoints), alias]))
    seen = set()
    for _ in range(20):
        reply = respond(responder, query_packet("e.default.svc.cluster.local", Type.A))
        message = dns.message.from_wire(reply or b"", one_rr_per_rrset=True)
        assert message.answer[0].rdtype == Type.CNAME
        seen.add(message.answer[1][0].to_text())
    assert len(seen) == 5


def test_ready_answers_are_counted() -> None:
    responder = responder_over(zone_of([service("web", "10.96.0.1")]))
    for name in ("web", "nope"):
        for _ in range(7):
            respond(responder, query_packet(f"{name}.default.svc.cluster.local", Type.A))
    responder.settle()
    text = responder.measures.registry.text()
    head = 'seamark_dns_replies_total{proto="udp",type="A",rcode='
    assert f'{head}"NOERROR",zone="cluster.local."}} 7\n' in text
    assert f'{head}"NXDOMAIN",zone="cluster.local."}} 7\n' in text


def test_a_dropped_answer_leaves_its_count_behind() -> None:
    zone = zone_of([service("web", "10.96.0.1")])
    responder = responder_over(zone)
    packet = query_packet("web.default.svc.cluster.local", Type.A)
    for _ in range(3):
        respond(responder, packet)
    responder.udp.ready.forget(put(zone, service("web", "10.96.0.2")))
    assert 'rcode="NOERROR",zone="cluster.local."} 3\n' in responder.measures.registry.text()


def test_negative_answers_carry_the_serial_of_now() -> None:
    zone = zone_of([])
    responder = responder_over(zone)
    packets = [query_packet("nope.default.svc.cluster.local", Type.A, edns=edns) for edns in (None, 1232)]
    for packet in packets * 2:
        respond(responder, packet)
    zone._clock.now = 2000.0
    responder.udp.ready.forget(put(zone, service("web", "10.96.0.1")))
    for packet in packets:
        assert packet[2:] in responder.udp.ready._dated
        message = dns.message.from_wire(respond(responder, packet) or b"")
        assert message.authority[0][0].serial == 2000
