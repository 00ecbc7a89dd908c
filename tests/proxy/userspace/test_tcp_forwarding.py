"""TCP connections through the forwarder, over real sockets."""

import asyncio
import socket
import struct
from contextlib import asynccontextmanager

import pytest
from backends import Fixed, ask, echo, named, never_answers, tcp_server

from seamark.proxy.userspace.link import CHUNK
from seamark.proxy.userspace.tcp import TcpForwarder, bind_tcp
from turns import until
from virtual_time import VirtualClock


@asynccontextmanager
async def forwarding(picker, *, most=100, clock=None):
    """Dialing takes at most two seconds of a clock that a test has in hand; by the real one, as long as it has to."""
    own = {"clock": clock, "dial_seconds": 2.0} if clock else {"dial_seconds": 3600.0}
    forwarder = TcpForwarder(most=most, **own)
    sock = bind_tcp("127.0.0.1", 0)
    try:
        yield forwarder, forwarder.listen(sock, picker), sock.getsockname()
    finally:
        forwarder.close()


def unused():
    """An address at which connections are refused: bound, but not listening."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock


async def test_bytes_go_both_ways_whole_and_in_order():
    data = bytes(range(256)) * 20_000
    async with tcp_server(echo) as backend, forwarding(Fixed(backend)) as (forwarder, _, address):
        reader, writer = await asyncio.open_connection(*address)

        async def send():
            writer.write(data)
            await writer.drain()
            writer.write_eof()

        sending = asyncio.create_task(send())
        assert await reader.read(-1) == data
        await sending
        writer.close()
        await until(lambda: not forwarder.links)


async def test_a_client_that_has_sent_all_still_gets_its_answer():
    async def count(reader, writer):
        writer.write(str(len(await reader.read(-1))).encode())

    async with tcp_server(count) as backend, forwarding(Fixed(backend)) as (_, _, address):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"x" * 100_000)
        writer.write_eof()
        assert await reader.read(-1) == b"100000"
        writer.close()


async def test_a_slow_reader_makes_its_sender_wait():
    """What the forwarder keeps for a client that does not read is bounded, however much the backend has to say."""
    sent = 0

    async def pour(reader, writer):
        nonlocal sent
        while True:
            writer.write(b"x" * CHUNK)
            await writer.drain()
            sent += CHUNK

    async with tcp_server(pour) as backend, forwarding(Fixed(backend)) as (forwarder, _, address):
        client = socket.create_connection(address)
        client.setblocking(False)
        await until(lambda: any(link.front.unsent for link in forwarder.links))
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.05)  # until the kernel's buffers are full as well
        (link,) = forwarder.links
        assert 0 < len(link.front.unsent) <= CHUNK
        got = 0
        while got <= before:  # and all of it arrives once the client reads, and then more
            got += len(await asyncio.get_running_loop().sock_recv(client, 1 << 20))
        client.close()


async def test_a_backend_that_refuses_is_passed_over():
    with unused() as dead:
        async with (
            tcp_server(named("alive")) as backend,
            forwarding(Fixed(dead.getsockname(), backend)) as (forwarder, _, address),
        ):
            assert await ask(address) == "alive"
            assert forwarder.redialed.value == 1


async def test_a_client_is_reset_when_no_backend_takes_it():
    with unused() as dead:
        async with forwarding(Fixed(dead.getsockname())) as (forwarder, _, address):
            reader, writer = await asyncio.open_connection(*address)
            with pytest.raises(ConnectionResetError):
                await reader.read(1)
            writer.close()
            assert forwarder.refused.value == 1
            assert not forwarder.links


async def test_of_many_backends_only_a_few_are_tried():
    with unused() as one:
        host, port = one.getsockname()
        dead = [(f"127.0.0.{number}", port) for number in range(2, 100)]
        async with forwarding(Fixed(*dead, (host, port))) as (forwarder, _, address):
            reader, writer = await asyncio.open_connection(*address)
            with pytest.raises(ConnectionResetError):
                await reader.read(1)
            writer.close()
            assert forwarder.redialed.value == 4


async def test_a_backend_that_keeps_a_client_waiting_is_given_up():
    clock = VirtualClock()
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        filling = []
        for _ in range(3):  # Linux leaves connections unanswered when the queue of those to accept is full
            each = socket.socket()
            each.setblocking(False)
            each.connect_ex(full.getsockname())
            filling.append(each)
        async with (
            tcp_server(named("alive")) as backend,
            forwarding(Fixed(full.getsockname(), backend), clock=clock) as (forwarder, _, address),
        ):
            asking = asyncio.create_task(ask(address))
            await until(lambda: forwarder.dialing)
            clock.pass_without_tasks(1.9)
            assert len(forwarder.dialing) == 1
            clock.pass_without_tasks(0.6)
            assert await asking == "alive"
        for each in filling:
            each.close()


async def test_silence_for_those_that_are_dropped_until_their_patience_should_be_over():
    clock = VirtualClock()
    async with forwarding(Fixed(otherwise="drop"), clock=clock) as (forwarder, _, address):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"hello?\n")
        reading = asyncio.create_task(reader.read(1))
        await until(lambda: forwarder.accepted.value == 1)
        clock.pass_without_tasks(59)
        await asyncio.sleep(0.01)
        assert not reading.done()
        clock.pass_without_tasks(2)
        with pytest.raises(ConnectionResetError):
            await reading
        writer.close()


async def test_the_number_of_those_met_with_silence_is_bounded():
    async with forwarding(Fixed(otherwise="drop"), clock=VirtualClock()) as (forwarder, _, address):
        clients = [await asyncio.open_connection(*address) for _ in range(260)]
        await until(lambda: forwarder.accepted.value == 260)
        assert len(forwarder._held) == 256
        with pytest.raises(ConnectionResetError):
            await clients[0][0].read(1)
        for _, writer in clients:
            writer.close()


async def test_beyond_the_limit_clients_wait_for_their_turn():
    async with tcp_server(named("alive")) as backend, forwarding(Fixed(backend), most=2) as (forwarder, _, address):
        first, second = [await asyncio.open_connection(*address) for _ in range(2)]
        for _, writer in (first, second):
            writer.write(b"?\n")
        assert [await reader.readline() for reader, _ in (first, second)] == [b"alive\n"] * 2
        third = asyncio.create_task(ask(address))
        await until(lambda: forwarder._paused)
        assert len(forwarder.links) == 2
        assert not third.done()
        first[1].close()
        assert await third == "alive"
        second[1].close()


async def test_that_there_are_too_many_is_said_once_a_minute(caplog):
    clock = VirtualClock()
    async with (
        tcp_server(named("alive")) as backend,
        forwarding(Fixed(backend), most=1, clock=clock) as (_, _, address),
    ):
        for _ in range(3):
            assert await asyncio.gather(ask(address), ask(address)) == ["alive"] * 2
        assert len([each for each in caplog.records if "no more are accepted" in each.message]) == 1
        clock.now += 60
        await asyncio.gather(ask(address), ask(address))
        assert len([each for each in caplog.records if "no more are accepted" in each.message]) == 2


async def test_established_connections_outlive_their_listener_and_their_route():
    async with (
        tcp_server(named("old")) as old,
        tcp_server(named("new")) as new,
        forwarding(Fixed(old)) as (_, listener, address),
    ):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"?\n")
        assert await reader.readline() == b"old\n"
        listener.picker = Fixed(new)
        assert await ask(address) == "new"
        listener.close()
        with pytest.raises(ConnectionRefusedError):
            await ask(address)
        writer.write(b"?\n")
        assert await reader.readline() == b"old\n"
        writer.close()


def abort(writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def test_a_reset_of_the_backend_reaches_the_client():
    async def reset(reader, writer):
        await reader.readline()
        abort(writer)

    async with tcp_server(reset) as backend, forwarding(Fixed(backend)) as (forwarder, _, address):
        with pytest.raises(ConnectionResetError):
            await ask(address)
        assert not forwarder.links


async def test_a_client_that_gave_up_leaves_nothing_behind_at_a_backend_that_never_answers():
    clock = VirtualClock()
    async with tcp_server(never_answers) as backend, forwarding(Fixed(backend), clock=clock) as (forwarder, _, address):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"hello?\n")
        writer.write_eof()
        await until(lambda: forwarder.half_closed)
        clock.pass_without_tasks(20)
        assert len(forwarder.links) == 1  # it may still wait for the answer
        abort(writer)
        await asyncio.sleep(0.01)
        clock.pass_without_tasks(20)
        assert not forwarder.links
        assert reader is not None


async def test_others_are_served_beside_a_backend_that_never_answers():
    async with (
        tcp_server(never_answers) as silent,
        tcp_server(named("alive")) as alive,
        forwarding(Fixed(silent)) as (forwarder, listener, address),
    ):
        waiting = [await asyncio.open_connection(*address) for _ in range(20)]
        await until(lambda: len(forwarder.links) == 20)
        listener.picker = Fixed(alive)
        assert await ask(address) == "alive"
        for _, writer in waiting:
            writer.close()


async def test_a_thousand_connections_at_once():
    async with tcp_server(named("alive")) as backend, forwarding(Fixed(backend), most=2000) as (forwarder, _, address):
        clients = await asyncio.gather(*(asyncio.open_connection(*address) for _ in range(1000)))
        for _, writer in clients:
            writer.write(b"?\n")
        assert {await reader.readline() for reader, _ in clients} == {b"alive\n"}
        assert len(forwarder.links) == 1000
        for _, writer in clients:
            writer.close()
        await until(lambda: not forwarder.links)


async def test_want_of_file_descriptors_costs_one_connection_and_delays_others(monkeypatch):
    clock = VirtualClock()
    async with (
        tcp_server(named("alive")) as backend,
        forwarding(Fixed(backend), clock=clock) as (_forwarder, _, address),
    ):

        def none_left(address):
            raise OSError(24, "Too many open files")

        monkeypatch.setattr("seamark.proxy.userspace.sockets.family_of", none_left)
        with pytest.raises(ConnectionResetError):
            await ask(address)
        monkeypatch.undo()
        waiting = asyncio.create_task(ask(address))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        clock.pass_without_tasks(1)
        assert await waiting == "alive"
