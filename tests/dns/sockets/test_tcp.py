"""Over TCP: queries in a row, in pieces, too many, too slow; and whole zones for those who may have them."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import dns.message
import dns.rcode
import dns.rdatatype
import pytest
from asking import query_packet, zone_of
from scripted_upstream import ScriptedUpstream
from watched_cluster import WatchedCluster, endpoint, service, slice_of

from seamark.dns.config import ZoneConfig
from seamark.dns.wire.transfer import ZoneTransfers
from seamark.dns.zone.answers import Authority
from seamark.dns.zone.records import Question, Type

QUERY = query_packet("web.default.svc.cluster.local", Type.A)


def framed(packet: bytes) -> bytes:
    return len(packet).to_bytes(2, "big") + packet


async def read(reader: asyncio.StreamReader) -> dns.message.Message:
    length = int.from_bytes(await reader.readexactly(2), "big")
    return dns.message.from_wire(await reader.readexactly(length), one_rr_per_rrset=True)


async def connect(server: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(*server.addresses[0])


@pytest.fixture(autouse=True)
def web(cluster: WatchedCluster) -> None:
    cluster.put(service("web", "10.96.0.1"))


async def test_queries_in_a_row_are_all_answered(serve: Any) -> None:
    async with serve() as server:
        reader, writer = await connect(server)
        packets = [query_packet("web.default.svc.cluster.local", Type.A, ident=n) for n in range(200)]
        writer.write(b"".join(map(framed, packets)))
        assert [(await read(reader)).id for _ in packets] == list(range(200))
        writer.close()


async def test_thousands_of_queries_in_one_go_keep_no_other_client_waiting(serve: Any) -> None:
    async with serve() as server:
        reader, writer = await connect(server)
        writer.write(framed(QUERY) * 4000)
        while not (busy := [each for each in server._streams[0].open if each._in_line]):
            await asyncio.sleep(0)
        other, asking = await connect(server)
        asking.write(framed(QUERY))
        assert (await read(other)).rcode() == dns.rcode.NOERROR
        assert busy[0]._buffer  # they have not all been answered before
        for _ in range(4000):
            await read(reader)
        for each in (writer, asking):
            each.close()


async def test_nothing_is_looked_at_behind_what_ends_a_connection(serve: Any) -> None:
    async with serve() as server:
        reader, writer = await connect(server)
        writer.write(framed(b"") * 20)
        assert await reader.read() == b""
        assert "seamark_dns_dropped_total 1\n" in server.metrics()
        writer.close()


async def test_a_query_octet_by_octet(serve: Any) -> None:
    async with serve() as server:
        reader, writer = await connect(server)
        for octet in framed(QUERY):
            writer.write(bytes([octet]))
            await writer.drain()
            await asyncio.sleep(0)
        assert (await read(reader)).answer[0][0].to_text() == "10.96.0.1"
        writer.close()


async def test_the_longest_message_there_can_be(serve: Any) -> None:
    async with serve() as server:
        reader, writer = await connect(server)
        writer.write(framed(QUERY.ljust(65535, b"\0")))
        assert (await read(reader)).rcode() == dns.rcode.NOERROR
        writer.write(framed(QUERY))
        assert (await read(reader)).rcode() == dns.rcode.NOERROR
        writer.close()


async def test_what_is_no_query_ends_the_connection(serve: Any) -> None:
    async with serve() as server:
        reader, writer = await connect(server)
        writer.write(framed(b"\0" * 8))
        assert await reader.read() == b""
        writer.close()


async def test_idle_connections_are_closed_also_those_that_dribble(serve: Any) -> None:
    async with serve(tcp_idle_seconds=0.2) as server:
        idle, dribbling = await connect(server), await connect(server)

        async def dribble() -> None:
            for octet in b"\xff\xff" + b"\0" * 1000:
                dribbling[1].write(bytes([octet]))
                await asyncio.sleep(0.02)

        task = asyncio.create_task(dribble())
        assert await idle[0].read() == b""
        with pytest.raises(ConnectionError):
            await _until_refused(dribbling)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for _, writer in (idle, dribbling):
            writer.close()


async def _until_refused(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    reader, writer = connection
    if await reader.read() == b"":
        raise ConnectionResetError
    await writer.drain()


async def ask(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    connection[1].write(framed(QUERY))
    assert (await read(connection[0])).rcode() == dns.rcode.NOERROR


async def test_a_new_connection_takes_the_place_of_the_one_idle_longest(serve: Any) -> None:
    async with serve(tcp_connections=2) as server:
        first, second = await connect(server), await connect(server)
        for connection in (first, second, first):
            await ask(connection)
        third = await connect(server)
        await ask(third)
        assert await second[0].read() == b""
        await ask(first)
        assert "seamark_dns_tcp_connections_displaced_total 1\n" in server.metrics()
        assert len(server._streams[0].open) == 2
        for _, writer in (first, second, third):
            writer.close()


async def test_idle_connections_do_not_shut_others_out(serve: Any) -> None:
    async with serve(tcp_connections=20) as server:
        idle = [await connect(server) for _ in range(50)]
        for _ in range(5):
            late = await connect(server)
            await ask(late)
            idle.append(late)
        assert len(server._streams[0].open) <= 20
        for _, writer in idle:
            writer.close()


async def test_one_connection_too_many_is_closed_if_all_others_wait_for_replies(serve: Any) -> None:
    upstream = ScriptedUpstream()
    upstream.hold = asyncio.Event()
    async with upstream.running(), serve(forward=upstream.forward(), tcp_connections=2) as server:
        kept = [await connect(server) for _ in range(2)]
        for number, (_, writer) in enumerate(kept):
            writer.write(framed(query_packet(f"n{number}.example.com", Type.A, ident=number)))
        while len(upstream.asked) < 2:
            await asyncio.sleep(0.001)
        late = await connect(server)
        late[1].write(framed(QUERY))
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await read(late[0])
        assert "seamark_dns_tcp_connections_refused_total 1\n" in server.metrics()
        upstream.hold.set()
        assert [(await read(reader)).id for reader, _ in kept] == [0, 1]
        for _, writer in (*kept, late):
            writer.close()


@pytest.mark.skipif(sys.platform == "darwin", reason="has 127.0.0.1 only")
async def test_a_client_with_its_share_of_connections_loses_one_of_its_own(serve: Any) -> None:
    async with serve(tcp_connections=10, tcp_connections_per_client=2) as server:
        other = await asyncio.open_connection(*server.addresses[0], local_addr=("127.0.0.2", 0))
        await ask(other)
        greedy = [await connect(server) for _ in range(3)]
        await ask(greedy[2])
        assert await greedy[0][0].read() == b""
        for connection in (greedy[1], other):
            await ask(connection)
        for _, writer in (*greedy, other):
            writer.close()
        while server._streams[0].open:
            await asyncio.sleep(0.001)
        assert not server._streams[0]._of_client


async def test_a_slow_answer_does_not_hold_up_the_next(serve: Any) -> None:
    upstream = ScriptedUpstream()
    upstream.hold = asyncio.Event()
    async with upstream.running():
        forward = upstream.forward()
        async with serve(forward=forward) as server:
            reader, writer = await connect(server)
            slow = [query_packet(f"n{n}.example.com", Type.A, ident=n) for n in range(100)]
            writer.write(framed(slow[0]) + framed(query_packet("web.default.svc.cluster.local", Type.A, ident=777)))
            assert (await read(reader)).id == 777
            writer.write(b"".join(map(framed, slow[1:])))  # more than one connection may have under way
            while len(upstream.asked) < 64:
                await asyncio.sleep(0.001)
            assert len(upstream.asked) == 64
            upstream.hold.set()
            assert {(await read(reader)).id for _ in slow} == set(range(100))
            writer.close()


async def test_a_client_that_does_not_read_is_not_read_from(serve: Any, cluster: WatchedCluster) -> None:
    cluster.put(service("hl", "None"))
    cluster.put(slice_of("hl", *(endpoint(f"10.1.{n // 200}.{n % 200 + 1}") for n in range(900))))
    async with serve() as server:
        reader, writer = await connect(server)
        packet = framed(query_packet("hl.default.svc.cluster.local", Type.A))
        for _ in range(2000):  # 28 MB of replies
            writer.write(packet)
        for _ in range(200):
            await asyncio.sleep(0.001)
        (connection,) = server._streams[0].open
        assert connection._transport.get_write_buffer_size() < 2_000_000
        for _ in range(2000):
            assert len(await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))) > 14_000
        writer.close()


class TestTransfers:
    async def _transfer(self, server: Any, zone: str, kind: int = Type.AXFR) -> list[dns.message.Message]:
        reader, writer = await connect(server)
        writer.write(framed(query_packet(zone, kind)))
        messages = [await read(reader)]
        while messages[0].answer and len(messages[-1].answer) + len(messages) > 1:
            if messages[-1].answer[-1].rdtype == Type.SOA and sum(len(m.answer) for m in messages) > 1:
                break
            messages.append(await read(reader))
        writer.close()
        return messages

    async def test_whole_zones_are_refused(self, serve: Any) -> None:
        async with serve() as server:
            (message,) = await self._transfer(server, "cluster.local")
            assert message.rcode() == dns.rcode.REFUSED

    async def test_those_who_may_get_everything(self, serve: Any, cluster: WatchedCluster) -> None:
        cluster.put(service("hl", "None"))
        cluster.put(slice_of("hl", *(endpoint(f"10.1.{n // 200}.{n % 200 + 1}", f"host-{n}") for n in range(900))))
        async with serve(transfer_to=("127.0.0.0/8",)) as server:
            messages = await self._transfer(server, "cluster.local")
            records = [rrset for message in messages for rrset in message.answer]
            assert len(messages) > 1
            assert records[0].rdtype == records[-1].rdtype == Type.SOA
            assert len([r for r in records if r.rdtype == Type.A]) == 1 + 900 + 900
            assert len([r for r in records if r.rdtype == Type.SRV]) == 1 + 900
            pointers = await self._transfer(server, "in-addr.arpa")
            names = {r.name.to_text() for m in pointers for r in m.answer if r.rdtype == Type.PTR}
            assert len(names) == 901

    async def test_only_from_the_top(self, serve: Any) -> None:
        async with serve(transfer_to=("*",)) as server:
            (message,) = await self._transfer(server, "svc.cluster.local")
            assert message.rcode() == dns.rcode.REFUSED

    async def test_not_for_others(self, serve: Any) -> None:
        async with serve(transfer_to=("192.0.2.0/24", "fd00::1")) as server:
            (message,) = await self._transfer(server, "cluster.local")
            assert message.rcode() == dns.rcode.REFUSED

    async def test_who_has_the_serial_gets_just_that(self, serve: Any) -> None:
        async with serve(transfer_to=("*",)) as server:
            query = dns.message.make_query("cluster.local", "IXFR")
            serial = server.zone.serial
            query.authority.append(dns.rrset.from_text("cluster.local.", 0, "IN", "SOA", f"a. b. {serial} 1 1 1 1"))
            reader, writer = await connect(server)
            writer.write(framed(query.to_wire()))
            message = await read(reader)
            assert [rrset.rdtype for rrset in message.answer] == [Type.SOA]
            writer.close()

    def test_a_transfer_says_what_the_answers_say(self) -> None:
        zone = zone_of(
            [
                service("web", "10.96.0.1"),
                service("hl", "None"),
                slice_of("hl", endpoint("10.1.0.1", "a"), endpoint("fd00::1")),
                service("e", "", type="ExternalName", externalName="example.com"),
            ]
        )
        authority = Authority(zone, ZoneConfig())
        transfers = ZoneTransfers(authority, zone, ())
        for served in authority.zones:
            records = list(transfers.records(served))
            assert records
            for record in records:
                answer = authority.answer(Question.about(record.owner, record.type), served)
                assert record in answer.answers
