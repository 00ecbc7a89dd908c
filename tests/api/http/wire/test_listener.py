"""Sockets for real: both event loops, slow readers, half requests, shutting down."""

import asyncio
import socket

import pytest
import uvloop

from seamark.api.http.wire import listener as listener_module
from seamark.api.http.wire.incoming import HEAD_SECONDS
from seamark.api.http.wire.listener import IDLE_SECONDS, STALLED_SECONDS, Listener
from seamark.api.http.wire.messages import Response, Streaming
from seamark.api.http.wire.pieces import frame
from seamark.api.streaming.sockets import Tasks
from turns import until

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


async def opened(handler, tls=None):
    listener = Listener(handler, tls=tls)
    await listener.open("127.0.0.1", 0)
    return listener


@LOOPS
def test_requests_and_answers_over_tls(run, authority, trust, tmp_path):
    certificate, key = authority.client("ann", ["system:masters"])
    (tmp_path / "client.pem").write_bytes(certificate + key)

    async def main():
        seen = []

        def handler(request):
            seen.append(request)
            return Response(200, request.body or b"none", "text/plain")

        listener = await opened(handler, authority.tls())
        assert listener.url.startswith("https://127.0.0.1:")
        for client in (None, tmp_path / "client.pem"):
            if client:
                trust.load_cert_chain(client)
            reader, writer = await asyncio.open_connection(*listener.address, ssl=trust)
            writer.write(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
            assert (await reader.read()).endswith(b"\r\n\r\nhi")
            writer.close()
        assert seen[0].certificate is None
        assert seen[1].certificate is not None
        assert seen[1].peer == "127.0.0.1"
        await listener.close()

    run(main())


@LOOPS
def test_a_watcher_that_never_reads_is_cut_off_and_the_others_go_on(run, monkeypatch):
    monkeypatch.setattr("seamark.api.http.wire.stream.MAX_STREAM_BACKLOG", 1_000_000)

    async def main():
        streams = []
        listener = await opened(lambda request: Streaming(streams.append))
        good, deaf = [await asyncio.open_connection(*listener.address, limit=2**26) for _ in range(2)]
        for _, writer in (good, deaf):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: len(streams) == 2)
        deaf[0]._transport.pause_reading()
        lost = []
        streams[1].on_close = lambda: lost.append(True)
        received = 0
        data = frame(b"x" * 100_000)
        alive = {0: True, 1: True}
        for _ in range(500):
            for number, stream in enumerate(streams):
                alive[number] = alive[number] and stream.write(data)
            received += len(await good[0].read(2**20))
            if not alive[1]:
                break
        assert alive == {0: True, 1: False}
        await until(lambda: lost)
        await until(lambda: len(listener.connections) == 1)
        streams[0].finish()
        for _, writer in (good, deaf):
            writer.close()
        await listener.close()
        assert not listener.connections

    run(main())


@LOOPS
def test_a_reader_of_a_large_answer_that_stops_is_cut_off_after_a_while(run):
    async def main():
        listener = await opened(lambda request: Response(200, b"x" * 30_000_000))
        _, writer = await asyncio.open_connection(*listener.address, limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        await until(lambda: any(c.stalled_since for c in listener.connections))
        (connection,) = listener.connections
        # The other requests are not even begun: no second answer piles up behind the first.
        assert connection.transport.get_write_buffer_size() < 31_000_000
        listener.sweep_once(connection.stalled_since + STALLED_SECONDS - 1)
        await asyncio.sleep(0)
        assert listener.connections
        listener.sweep_once(connection.stalled_since + STALLED_SECONDS + 1)
        await until(lambda: not listener.connections)
        writer.close()
        await listener.close()

    run(main())


@LOOPS
def test_a_reader_that_its_writer_waits_for_may_pause(run):
    """As of `kubectl logs -f | less`: nothing piles up for it meanwhile."""

    async def main():
        tasks = Tasks()

        async def pump(stream):
            while stream.write(frame(b"x" * 65536)) and (not stream.stalled or await stream.drain()):
                pass

        listener = await opened(lambda request: Streaming(tasks.starting(pump)))
        _, writer = await asyncio.open_connection(*listener.address, limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: any(c.stalled_since for c in listener.connections))
        (connection,) = listener.connections
        assert connection.transport.get_write_buffer_size() < 1_000_000
        listener.sweep_once(connection.stalled_since + 100 * STALLED_SECONDS)
        await asyncio.sleep(0)
        assert not connection.transport.is_closing()
        writer.close()
        await until(lambda: not listener.connections)
        await listener.close()

    run(main())


@LOOPS
def test_a_client_that_goes_while_it_is_not_read_is_noticed(run):
    async def main():
        listener = await opened(lambda request: Streaming(lambda stream: None))
        _, writer = await asyncio.open_connection(*listener.address)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: any(c.stream for c in listener.connections))
        (connection,) = listener.connections
        connection.transport.pause_reading()
        listener.sweep_once(connection.last_active)
        await asyncio.sleep(0)
        assert listener.connections
        writer.close()
        await writer.wait_closed()
        listener.sweep_once(connection.last_active)
        await until(lambda: not listener.connections)
        await listener.close()

    run(main())


@LOOPS
def test_idle_connections_and_half_requests_end(run):
    async def main():
        listener = await opened(lambda request: Response(200, b"ok"))
        clients = [await asyncio.open_connection(*listener.address) for _ in range(2)]
        clients[0][1].write(b"GET / HTTP/1.1\r\nHost: x\r\n")
        clients[1][1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await clients[1][0].readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        await until(lambda: sum(bool(c.incoming._url) for c in listener.connections) == 1)
        latest = max(c.last_active for c in listener.connections)
        listener.sweep_once(latest + HEAD_SECONDS + 1)
        await until(lambda: len(listener.connections) == 1)
        assert (await clients[0][0].read()).startswith(b"HTTP/1.1 408 ")
        listener.sweep_once(latest + IDLE_SECONDS + 1)
        await until(lambda: not listener.connections)
        for _, writer in clients:
            writer.close()
        await listener.close()

    run(main())


@LOOPS
def test_closing_finishes_what_is_under_way(run):
    async def main():
        gate = asyncio.Event()
        streams = []

        async def slow():
            await gate.wait()
            return Response(201, b"written")

        listener = await opened(lambda r: slow() if r.method == "POST" else Streaming(streams.append))
        writing = await asyncio.open_connection(*listener.address)
        watching = await asyncio.open_connection(*listener.address)
        idle = await asyncio.open_connection(*listener.address)
        writing[1].write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        watching[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: streams and len(listener.connections) == 3)
        closing = asyncio.create_task(listener.close())
        await until(lambda: len(listener.connections) == 2)  # the idle one went at once
        gate.set()
        streams[0].finish()
        await closing
        assert (await writing[0].read()).endswith(b"written")
        assert (await watching[0].read()).endswith(b"0\r\n\r\n")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*listener.address)
        for _, writer in (writing, watching, idle):
            writer.close()

    run(main())


@LOOPS
def test_closing_does_not_wait_for_clients_that_keep_an_idle_connection(run, authority, trust, monkeypatch):
    """A client that pools its connections never says goodbye.  Its last answer has come, so nothing is left to do."""
    monkeypatch.setattr(listener_module, "FINISH_SECONDS", 3600.0)

    def ask(address):
        client = trust.wrap_socket(socket.create_connection(address), server_hostname="127.0.0.1")
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        return client

    async def main():
        listener = await opened(lambda request: Response(200, b"done"), authority.tls())
        client = await asyncio.to_thread(ask, listener.address)
        await listener.close()
        assert not listener.connections
        assert client.recv(1000) == b""  # told that it ends, not cut off
        client.close()

    run(main())


@LOOPS
def test_closing_waits_for_a_client_that_still_reads(run, authority, trust, monkeypatch):
    monkeypatch.setattr(listener_module, "FINISH_SECONDS", 3600.0)
    large = b"x" * 30_000_000

    async def main():
        listener = await opened(lambda request: Response(200, large), authority.tls())
        reader, writer = await asyncio.open_connection(*listener.address, ssl=trust)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        closing = asyncio.create_task(listener.close())
        assert f"Content-Length: {len(large)}".encode() in head
        assert await reader.readexactly(len(large)) == large
        writer.close()
        await closing

    run(main())


async def test_vanished_clients_are_probed_for():
    listener = await opened(lambda request: Response(200))
    _, writer = await asyncio.open_connection(*listener.address)
    await until(lambda: listener.connections)
    (connection,) = listener.connections
    sock = connection.transport.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
    writer.close()
    await listener.close()


async def test_an_address_in_use_is_an_error():
    first = await opened(lambda request: Response(200))
    with pytest.raises(OSError, match="in use"):
        await Listener(lambda request: Response(200), tls=None).open(*first.address)
    await first.close()
    await first.close()


def test_an_ipv6_address_is_shown_in_brackets():
    listener = Listener(lambda request: Response(200), tls=None)
    listener.address = ("::1", 80)
    assert listener.url == "http://[::1]:80"
