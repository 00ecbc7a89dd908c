"""Names outside the cluster: whom we ask, what we keep of their answers, and what happens when they fail."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest
from asking import query_packet
from scripted_upstream import FOREVER, ScriptedUpstream, forwarding

from seamark.dns.config import ForwardConfig, Route
from seamark.dns.forwarding import cache
from seamark.dns.forwarding.cache import fetched
from seamark.dns.forwarding.forward import Forwarder
from seamark.dns.forwarding.upstream import parse_upstream, system_upstreams
from seamark.dns.wire import message as wire
from seamark.dns.zone.records import Question, Type, presented, spell
from seamark.metrics import Registry
from virtual_time import VirtualClock

DEAD = "127.0.0.1:1"


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    made = ScriptedUpstream()
    made.records["www.example.com.", "A"] = ["300 192.0.2.1", "60 192.0.2.2"]
    async with made.running():
        yield made


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1000.0)


Asking = Callable[..., Awaitable[dns.message.Message]]


@pytest.fixture
async def forwarder(upstream: ScriptedUpstream, clock: VirtualClock) -> AsyncIterator[Callable[..., Forwarder]]:
    made: list[Forwarder] = []

    def make(*to: str, **config: Any) -> Forwarder:
        made.append(Forwarder(forwarding(*(to or (upstream.text,)), **config), Registry(), clock=clock))
        return made[-1]

    yield make
    for each in made:
        await each.close()


def wait_for(forwarder: Forwarder, seconds: float) -> None:
    """From now on wait so long for each resolver."""
    for _, resolvers in forwarder._routes:
        for resolver in resolvers:
            resolver._timeout = seconds


async def ask(
    forwarder: Forwarder, name: str = "www.example.com", kind: int = Type.A, *, datagram: bool = True, **packet: Any
) -> dns.message.Message:
    query = wire.read_query(query_packet(name, kind, **packet))
    assert isinstance(query, wire.Query)
    reply = await forwarder.reply(query, datagram=datagram)
    assert len(reply) <= query.limit(datagram=datagram)
    message = dns.message.from_wire(reply, one_rr_per_rrset=True)
    assert message.id == query.id
    return message


def _ttls(message: dns.message.Message) -> list[int]:
    return [rrset.ttl for rrset in message.answer]


async def test_an_answer_is_passed_on_and_kept(upstream: ScriptedUpstream, forwarder: Any, clock: VirtualClock) -> None:
    f = forwarder()
    assert _ttls(await ask(f)) == [300, 60]
    clock.now += 25
    message = await ask(f, "WWW.example.COM", ident=99)
    assert _ttls(message) == [275, 35]
    assert message.question[0].name.to_text() == "WWW.example.COM."
    assert message.answer[0].name.to_text() == "WWW.example.COM."
    assert message.flags & dns.flags.RA
    assert len(upstream.asked) == 1
    clock.now += 36
    assert _ttls(await ask(f)) == [300, 60]
    assert len(upstream.asked) == 2


@pytest.mark.parametrize(
    ("soa", "lifetime"),
    [
        ("example.com. 900 ns.example.com. h.example.com. 1 2 3 4 60", 60),
        ("example.com. 30 ns.example.com. h.example.com. 1 2 3 4 900", 30),
        ("example.com. 9999999 ns.example.com. h.example.com. 1 2 3 4 9999999", 1800),
        ("", 0),
    ],
)
@pytest.mark.parametrize(("name", "kind"), [("nope.example.com", Type.A), ("www.example.com", Type.AAAA)])
async def test_negative_answers_live_as_long_as_their_soa_says(
    upstream: ScriptedUpstream, forwarder: Any, clock: VirtualClock, soa: str, lifetime: int, name: str, kind: Type
) -> None:
    upstream.soa = soa
    f = forwarder()
    first = await ask(f, name, kind)
    assert first.rcode() == (dns.rcode.NXDOMAIN if name.startswith("nope") else dns.rcode.NOERROR)
    clock.now += max(0, lifetime - 0.5)
    await ask(f, name, kind)
    assert len(upstream.asked) == (1 if lifetime else 2)
    clock.now += 1
    await ask(f, name, kind)
    assert len(upstream.asked) == (2 if lifetime else 3)


async def test_ttls_are_capped_and_0_is_not_kept(
    upstream: ScriptedUpstream, forwarder: Any, clock: VirtualClock
) -> None:
    upstream.records["www.example.com.", "A"] = ["86400 192.0.2.1"]
    upstream.records["zero.example.com.", "A"] = ["0 192.0.2.1"]
    f = forwarder(longest_ttl=100)
    await ask(f)
    clock.now += 101
    await ask(f)
    await ask(f, "zero.example.com")
    await ask(f, "zero.example.com")
    assert len(upstream.asked) == 4


async def test_who_asks_the_same_at_once_shares_one_question(upstream: ScriptedUpstream, forwarder: Any) -> None:
    upstream.hold = asyncio.Event()
    f = forwarder(cache_entries=0)
    waiting = [asyncio.create_task(ask(f, ident=n)) for n in range(20)]
    while not upstream.asked:
        await asyncio.sleep(0)
    upstream.hold.set()
    for message in await asyncio.gather(*waiting):
        assert _ttls(message) == [300, 60]
    assert len(upstream.asked) == 1


async def test_too_many_questions_are_refused(upstream: ScriptedUpstream, forwarder: Any) -> None:
    upstream.hold = asyncio.Event()
    f = forwarder(most_concurrent=3)
    waiting = [asyncio.create_task(ask(f, f"n{n}.example.com")) for n in range(3)]
    while len(upstream.asked) < 3:
        await asyncio.sleep(0)
    assert (await ask(f, "one.too.many")).rcode() == dns.rcode.REFUSED
    assert await f.records(Question.about(spell("one.too.many"), Type.A)) == []
    upstream.hold.set()
    await asyncio.gather(*waiting)
    assert (await ask(f)).rcode() == dns.rcode.NOERROR


async def test_too_many_queries_for_one_question_are_refused(upstream: ScriptedUpstream, forwarder: Any) -> None:
    upstream.hold = asyncio.Event()
    f = forwarder(most_concurrent=3)
    waiting = [asyncio.create_task(ask(f)) for _ in range(12)]
    while not upstream.asked:
        await asyncio.sleep(0)
    assert (await ask(f)).rcode() == dns.rcode.REFUSED
    assert await f.records(Question.about(spell("www.example.com"), Type.A)) == []
    upstream.hold.set()
    await asyncio.gather(*waiting)
    assert (await ask(f)).rcode() == dns.rcode.NOERROR


async def test_a_cut_reply_is_asked_for_again_over_tcp(upstream: ScriptedUpstream, forwarder: Any) -> None:
    upstream.records["big.example.com.", "A"] = [f"300 192.0.2.{n}" for n in range(1, 200)]

    def cut(query: dns.message.Message, tcp: bool) -> bytes:
        reply = upstream.answer(query)
        if tcp:
            return reply.to_wire(max_size=65535)
        reply.answer.clear()
        reply.flags |= dns.flags.TC
        return reply.to_wire()

    upstream.script = cut
    f = forwarder()
    whole = await ask(f, "big.example.com", datagram=False)
    assert len(whole.answer) == 199
    assert [tcp for _, _, tcp in upstream.asked] == [False, True]
    short = await ask(f, "big.example.com")
    assert short.flags & dns.flags.TC
    assert 0 < len(short.answer) < 199
    assert len(upstream.asked) == 2, "the whole was kept, each client gets what fits"


async def test_a_dead_resolver_is_passed_over(upstream: ScriptedUpstream, forwarder: Any) -> None:
    f = forwarder(DEAD, upstream.text, probe_seconds=FOREVER)
    for number in range(8):
        assert (await ask(f, f"n{number}.example.com")).rcode() == dns.rcode.NXDOMAIN
    dead = next(r for _, resolvers in f._routes for r in resolvers if r.address[1] == 1)
    assert dead.failures <= 2, "once it is known to be down it is asked last"


async def test_servfail_when_nobody_answers(forwarder: Any) -> None:
    f = forwarder(DEAD)
    assert (await ask(f)).rcode() == dns.rcode.SERVFAIL
    assert await f.records(Question.about(spell("www.example.com"), Type.A)) == []


async def test_silence_is_waited_for_no_longer_than_the_timeout(upstream: ScriptedUpstream, forwarder: Any) -> None:
    upstream.script = lambda query, tcp: None
    f = forwarder(timeout=0.05, probe_seconds=FOREVER)
    assert (await ask(f)).rcode() == dns.rcode.SERVFAIL


async def test_a_resolver_that_comes_back_is_found_well_again(upstream: ScriptedUpstream, forwarder: Any) -> None:
    answering = False
    upstream.script = lambda query, tcp: upstream.answer(query).to_wire() if answering else None
    f = forwarder(timeout=0.05, most_failures=1, probe_seconds=0.01)
    assert (await ask(f)).rcode() == dns.rcode.SERVFAIL
    assert f.unhealthy == 1
    answering = True
    wait_for(f, FOREVER)
    while f.unhealthy:
        await asyncio.sleep(0.01)
    assert (await ask(f)).rcode() == dns.rcode.NOERROR


async def test_expired_answers_serve_when_nobody_answers(
    upstream: ScriptedUpstream, forwarder: Any, clock: VirtualClock
) -> None:
    f = forwarder(stale_seconds=3600, probe_seconds=FOREVER)
    await ask(f)
    upstream.script = lambda query, tcp: None
    wait_for(f, 0.05)
    clock.now += 61
    assert _ttls(await ask(f)) == [30, 30]
    clock.now += 3600
    assert (await ask(f)).rcode() == dns.rcode.SERVFAIL


async def test_replies_to_other_questions_are_not_taken(upstream: ScriptedUpstream, forwarder: Any) -> None:
    def forge(query: dns.message.Message, tcp: bool) -> bytes:
        other = dns.message.make_query("evil.example.com", "A", id=query.id)
        return dns.message.make_response(other).to_wire()

    upstream.script = forge
    f = forwarder(timeout=0.05, probe_seconds=FOREVER)
    assert (await ask(f)).rcode() == dns.rcode.SERVFAIL


@pytest.mark.parametrize("empty", [True, False])
async def test_resolvers_without_edns_are_asked_without(
    upstream: ScriptedUpstream, forwarder: Any, empty: bool
) -> None:
    def old(query: dns.message.Message, tcp: bool) -> bytes:
        if query.edns < 0:
            return upstream.answer(query).to_wire()
        refusal = dns.message.make_response(query)
        refusal.use_edns(False)
        refusal.set_rcode(dns.rcode.FORMERR)
        if empty:
            refusal.question.clear()
        return refusal.to_wire()

    upstream.script = old
    assert _ttls(await ask(forwarder())) == [300, 60]


async def test_an_rcode_and_nothing_else_is_passed_on(upstream: ScriptedUpstream, forwarder: Any) -> None:
    def refuse(query: dns.message.Message, tcp: bool) -> bytes:
        return query.id.to_bytes(2, "big") + b"\x81\x05" + b"\0" * 8

    upstream.script = refuse
    message = await ask(forwarder())
    assert message.rcode() == dns.rcode.REFUSED
    assert message.question[0].name.to_text() == "www.example.com."


async def test_garbage_from_upstream_is_a_failure(upstream: ScriptedUpstream, forwarder: Any) -> None:
    def garbage(query: dns.message.Message, tcp: bool) -> bytes:
        reply = bytearray(dns.message.make_response(query).to_wire())
        reply[6:8] = b"\0\5"  # five answers that are not there
        return bytes(reply)

    upstream.script = garbage
    assert (await ask(forwarder())).rcode() == dns.rcode.SERVFAIL


async def test_edns_is_between_neighbours(upstream: ScriptedUpstream, forwarder: Any) -> None:
    f = forwarder()
    assert (await ask(f, edns=1400)).payload == 1400
    assert (await ask(f)).edns == -1


@pytest.mark.parametrize("last", [True, False])
async def test_spelling_is_the_upstreams_and_edns_is_not_passed_on(
    upstream: ScriptedUpstream, forwarder: Any, last: bool
) -> None:
    def spell_out(query: dns.message.Message, tcp: bool) -> bytes:
        """An owner written in full and lower case, and EDNS before or behind another record."""
        address = b"\3www\7example\3com\0\0\1\0\1\0\0\1\x2c\0\4\xc0\0\2\1"
        edns, glue = b"\0\0\x29\x10\0\0\0\0\0\0\0", b"\2ns\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\2"
        header = query.id.to_bytes(2, "big") + b"\x81\x80\0\1\0\1\0\0\0\2"
        asked = query.to_wire()[12 : 12 + 17 + 4]
        return header + asked + address + (glue + edns if last else edns + glue)

    upstream.script = spell_out
    message = await ask(forwarder(), "WWW.Example.com")
    assert message.question[0].name.to_text() == "WWW.Example.com."
    assert message.answer[0].ttl == 300
    assert message.edns == -1
    assert message.additional[0].to_text().endswith("60 IN A 192.0.2.2")
    if last:
        assert message.answer[0].name.to_text() == "www.example.com."


async def test_the_longest_zone_decides_whom_to_ask(upstream: ScriptedUpstream, forwarder: Any) -> None:
    f = forwarder(routes=(Route(zone=".", to=(DEAD,)), Route(zone="example.com", to=(upstream.text,))))
    assert (await ask(f)).rcode() == dns.rcode.NOERROR
    assert (await ask(f, "example.org")).rcode() == dns.rcode.SERVFAIL
    only = forwarder(routes=(Route(zone="example.com", to=(upstream.text,)),))
    assert only.covers(("www", "example", "com"))
    assert not only.covers(("example", "org"))


async def test_records_for_an_alias_are_whole(upstream: ScriptedUpstream, forwarder: Any, clock: VirtualClock) -> None:
    f = forwarder()
    question = Question.about(spell("www.example.com"), Type.A)
    await f.records(question)
    clock.now += 10
    found = await f.records(question)
    assert [(presented(r.owner), r.ttl, r.data) for r in found] == [
        ("www.example.com.", 290, (bytes([192, 0, 2, 1]),)),
        ("www.example.com.", 50, (bytes([192, 0, 2, 2]),)),
    ]


async def test_a_reply_with_thousands_of_records_is_not_taken_apart(
    upstream: ScriptedUpstream, forwarder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = wire.read_query(query_packet("www.example.com", Type.A))
    assert isinstance(query, wire.Query)
    made = dns.message.make_response(dns.message.from_wire(query_packet("www.example.com", Type.A)))
    for number in range(4000):
        made.answer.append(dns.rrset.from_text("www.example.com.", 60, "IN", "A", str(ipaddress.ip_address(number))))
    reply, known = made.to_wire(), dns.message.from_wire
    monkeypatch.setattr(dns.message, "from_wire", lambda *_, **__: pytest.fail("every record takes its time"))
    found = fetched(reply, query.question, 0.0, longest=60, longest_negative=60)
    short, whole = (found.reply_to(query, datagram=datagram, age=1) for datagram in (True, False))
    monkeypatch.undo()
    assert (len(short), known(short).flags & dns.flags.TC, len(known(short).answer[0])) == (497, dns.flags.TC, 29)
    assert (len(whole), known(whole).flags & dns.flags.TC, known(whole).answer[0].ttl) == (len(reply), 0, 59)
    upstream.script = lambda asked, tcp: asked.id.to_bytes(2, "big") + reply[2:]
    f = forwarder()
    followed = await f.records(query.question)
    assert [record.data for record in followed] == [(number.to_bytes(4, "big"),) for number in range(64)]


@pytest.mark.parametrize("kind", ["A", "OPT"])
async def test_long_replies_that_are_not_whole_are_failures(
    upstream: ScriptedUpstream, forwarder: Any, kind: str
) -> None:
    record = b"\xc0\x0c" + wire.RECORD.pack(dns.rdatatype.from_text(kind), 1, 60, 4) + b"\0\0\0\0"

    def script(query: dns.message.Message, tcp: bool) -> bytes:
        head = bytearray(dns.message.make_response(query).to_wire())
        head[6:12] = struct.pack("!3H", 101 if kind == "A" else 100, 0, 0)
        return bytes(head[: len(query_packet("www.example.com", Type.A))]) + record * 100

    upstream.script = script
    assert (await ask(forwarder())).rcode() == dns.rcode.SERVFAIL


async def test_what_is_kept_is_bounded_in_octets(
    upstream: ScriptedUpstream, forwarder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_MOST_OCTETS", 1000)
    upstream.soa = "example.com. 900 ns.example.com. h.example.com. 1 2 3 4 60"
    f = forwarder()
    for number in range(30):
        await ask(f, f"n{number}.example.com")
    assert 0 < f._cache._held <= 1000
    assert f._cache._held == sum(each.size for each in f._cache._kept.values())


async def test_what_is_kept_is_bounded(upstream: ScriptedUpstream, forwarder: Any) -> None:
    upstream.soa = "example.com. 900 ns.example.com. h.example.com. 1 2 3 4 60"
    f = forwarder(cache_entries=5)
    for number in range(30):
        await ask(f, f"n{number}.example.com")
    assert len(f._cache) == 5


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", ("10.0.0.1", 53)),
        ("10.0.0.1:5353", ("10.0.0.1", 5353)),
        ("fd00::1", ("fd00::1", 53)),
        ("[fd00::1]:5353", ("fd00::1", 5353)),
        ("[fd00::1]", ("fd00::1", 53)),
    ],
)
def test_addresses_of_upstreams(text: str, address: tuple[str, int]) -> None:
    assert parse_upstream(text) == address


@pytest.mark.parametrize("text", ["", "dns.example.com", "10.0.0.1:0", "10.0.0.1:70000", "10.0.0.1:x", "[::1"])
def test_what_is_no_address_of_an_upstream(text: str) -> None:
    with pytest.raises(ValueError, match="not the address"):
        parse_upstream(text)


def test_the_systems_resolvers(tmp_path: Any) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("# us\nsearch example.com\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\nnameserver\noptions x\n")
    assert system_upstreams(path) == (("10.0.0.1", 53), ("fe80::1", 53))
    assert system_upstreams(tmp_path / "nothing") == ()


def test_we_do_not_ask_ourselves(tmp_path: Any) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 127.0.0.1\nnameserver 10.0.0.1\n")
    config = ForwardConfig(routes=(Route(to=(str(path),)),))
    f = Forwarder(config, Registry(), own_addresses=[("127.0.0.1", 53)])
    assert [r.address for _, resolvers in f._routes for r in resolvers] == [("10.0.0.1", 53)]
