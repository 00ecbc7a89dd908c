"""TLS on sockets, for real: both event loops, slow readers, broken handshakes, and every way to end."""

import asyncio
import contextlib
import os
import shutil
import socket
import ssl
import struct
import subprocess

import pytest
import uvloop

from seamark.api.certificates import Authority
from seamark.api.http.wire import tls
from seamark.api.http.wire.incoming import MAX_BODY
from seamark.api.http.wire.listener import Listener
from seamark.api.http.wire.messages import Response, Streaming
from seamark.api.http.wire.pieces import frame
from seamark.api.http.wire.protocol import MAX_PIPELINED
from turns import until

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
ASKED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@contextlib.asynccontextmanager
async def serving(handler, authority):
    listener = Listener(handler, tls=authority.tls())
    await listener.open("127.0.0.1", 0)
    yield listener
    await listener.close()


def dial(listener, trust):
    """A blocking client, which asks once."""
    client = trust.wrap_socket(socket.create_connection(listener.address), server_hostname="127.0.0.1")
    client.sendall(ASKED)
    return client


async def answered(listener, trust):
    """A client that has its answer, and is still connected."""
    client = await asyncio.to_thread(dial, listener, trust)
    assert (await asyncio.to_thread(client.recv, 1000)).endswith(b"done")
    return client


def read_all(client):
    received = bytearray()
    while data := client.recv(1 << 16):
        received += data
    return bytes(received)


@LOOPS
def test_a_stream_waits_for_its_reader_and_loses_nothing(run, authority, trust):
    async def main():
        streams = []
        async with serving(lambda request: Streaming(streams.append), authority) as listener:
            client = await asyncio.to_thread(dial, listener, trust)
            await until(lambda: streams)
            (stream,) = streams
            writable = asyncio.Event()
            stream.on_writable = writable.set
            expected = b""
            while not stream.stalled:
                chunk = frame(b"%d" % len(expected) * 5000)
                expected += chunk
                assert stream.write(chunk)
            # The system has room again, but what it did not take before comes first.
            client.setblocking(False)
            received = b""
            with contextlib.suppress(ssl.SSLWantReadError):
                while True:
                    received += client.recv(1 << 20)
            client.setblocking(True)
            expected += frame(b"more")
            assert stream.write(frame(b"more"))
            assert not writable.is_set()

            def read():
                rest = b""
                while not rest.endswith(b"0\r\n\r\n"):
                    rest += client.recv(1 << 20)
                return rest

            reading = asyncio.create_task(asyncio.to_thread(read))
            await writable.wait()
            assert not stream.stalled
            stream.finish()
            received += await reading
            assert received.partition(b"\r\n\r\n")[2] == expected + b"0\r\n\r\n"
            client.close()

    run(main())


@LOOPS
def test_what_comes_does_not_pile_up_while_the_protocol_pauses_at_every_piece(run, authority, trust):
    class Pausing(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport, self.size, self.most = transport, 0, 0

        def data_received(self, data):
            self.size += len(data)
            self.most = max(self.most, self.transport._incoming.pending)
            self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self.transport.resume_reading)

    async def main():
        protocol, size = Pausing(), 1 << 23
        with socket.create_server(("127.0.0.1", 0)) as listening:
            sending = asyncio.to_thread(send, listening.getsockname(), size)
            task = asyncio.create_task(sending)
            accepted = (await asyncio.to_thread(listening.accept))[0]
        accepted.setblocking(False)
        await tls.secure(accepted, authority.tls(), protocol)
        await until(lambda: protocol.size == size)
        protocol.transport.abort()
        await task
        assert protocol.most < 1 << 20  # one piece of the event loop's, not all that the client sends

    def send(address, size):
        with trust.wrap_socket(socket.create_connection(address), server_hostname="127.0.0.1") as client:
            client.sendall(bytes(size))
            with contextlib.suppress(OSError):
                client.recv(1)

    run(main())


@LOOPS
def test_more_requests_than_are_taken_at_once_are_all_answered(run, authority, trust):
    async def main():
        gate = asyncio.Event()

        async def handler(request):
            await gate.wait()
            return Response(200, request.path.encode())

        async with serving(handler, authority) as listener:
            reader, writer = await asyncio.open_connection(*listener.address, ssl=trust)
            asked = [b"/%d!" % number for number in range(3 * MAX_PIPELINED)]
            for path in asked:
                writer.write(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % path)
            await until(lambda: any(not each.transport.is_reading() for each in listener.connections))
            gate.set()
            for path in asked:
                assert (await reader.readuntil(b"!")).endswith(path)
            writer.close()

    run(main())


@LOOPS
def test_requests_may_come_in_pieces_of_records_and_in_many_records(run, authority, trust):
    async def main():
        async with serving(lambda request: Response(200, b"%d." % len(request.body)), authority) as listener:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = trust.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
            reader, writer = await asyncio.open_connection(*listener.address)

            async def repeat(step):
                while True:
                    try:
                        return step()
                    except ssl.SSLWantReadError:
                        writer.write(outgoing.read())
                        incoming.write(await reader.read(1 << 16))

            await repeat(client.do_handshake)
            body = b"x" * 100_000
            asked = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            at = 0
            while at < len(asked):
                at += client.write(asked[at:])
            sent = outgoing.read()
            for at in range(0, len(sent), 7001):
                writer.write(sent[at : at + 7001])
                await writer.drain()
                await asyncio.sleep(0)
            assert (await repeat(client.read)).endswith(b"\r\n\r\n100000.")
            writer.close()

    run(main())


@LOOPS
def test_large_bodies_go_both_ways_whole(run, authority, trust):
    async def main():
        async with serving(lambda request: Response(200, request.body), authority) as listener:
            reader, writer = await asyncio.open_connection(*listener.address, ssl=trust, limit=2**24)
            body = os.urandom(MAX_BODY)
            for _ in range(3):
                writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                assert b"Content-Length: %d" % len(body) in await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(len(body)) == body
            writer.close()

    run(main())


@LOOPS
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_comes_back_with_its_session(run, authority, trust, version):
    trust.maximum_version = version

    def ask(listener, session=None):
        with trust.wrap_socket(
            socket.create_connection(listener.address), server_hostname="127.0.0.1", session=session
        ) as client:
            client.sendall(ASKED)
            assert client.recv(1000).endswith(b"done")
            return client.session_reused, client.session

    async def main():
        async with serving(lambda request: Response(200, b"done"), authority) as listener:
            reused, session = await asyncio.to_thread(ask, listener)
            assert not reused
            reused, _ = await asyncio.to_thread(ask, listener, session)
            assert reused

    run(main())


@contextlib.asynccontextmanager
async def s_client(listener, *options):
    """``openssl s_client``, which asks the server for new keys when it reads a line "K", for a new handshake by "R"."""
    host, port = listener.address
    client = await asyncio.create_subprocess_exec(
        *("openssl", "s_client", "-quiet", "-no_ign_eof", *options, "-connect", f"{host}:{port}"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    yield client
    client.stdin.close()
    await client.wait()


@LOOPS
@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
def test_a_client_may_have_new_keys(run, authority):
    async def main():
        async with serving(lambda request: Response(200, request.path.encode()), authority) as listener:
            async with s_client(listener, "-tls1_3") as client:
                for number in range(3):
                    client.stdin.write(b"GET /%d! HTTP/1.1\r\nHost: x\r\n\r\n" % number)
                    assert (await client.stdout.readuntil(b"!")).endswith(b"/%d!" % number)
                    client.stdin.write(b"K\n")
                    await client.stderr.readuntil(b"KEYUPDATE\n")  # a request together with the "K" would be lost
            await until(lambda: not listener.connections)

    run(main())


@LOOPS
@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
def test_another_handshake_is_refused(run, authority):
    async def main():
        async with serving(lambda request: Response(200, b"done!"), authority) as listener:
            async with s_client(listener, "-tls1_2") as client:
                client.stdin.write(ASKED)
                await client.stdout.readuntil(b"done!")
                client.stdin.write(b"R\n")
                assert await client.wait() != 0  # it was told
            await until(lambda: not listener.connections)

    run(main())


@LOOPS
def test_a_client_that_sends_too_much_still_gets_its_answer(run, authority, trust, monkeypatch):
    monkeypatch.setattr(tls, "GOODBYE_SECONDS", 3600.0)

    def send(listener):
        client = trust.wrap_socket(socket.create_connection(listener.address), server_hostname="127.0.0.1")
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(9):
            client.sendall(frame(b"x" * MAX_BODY))
        answer = client.recv(1000)
        client.close()
        return answer

    async def main():
        async with serving(lambda request: Response(200), authority) as listener:
            assert (await asyncio.to_thread(send, listener)).startswith(b"HTTP/1.1 413 ")
            await until(lambda: not listener.connections)

    run(main())


@LOOPS
def test_a_client_that_resets_behind_much_that_is_unread_is_gone(run, authority, trust, monkeypatch):
    """The reader of a socket is called only once after a reset by uvloop, though more than it reads may wait there."""
    monkeypatch.setattr(tls, "GOODBYE_SECONDS", 3600.0)

    async def main():
        async with serving(lambda request: Response(200, b"done"), authority) as listener:
            client = await answered(listener, trust)
            (connection,) = listener.connections
            connection.transport.close()
            # Nothing is awaited from here on, so that all of it waits in the system.
            with contextlib.suppress(BlockingIOError):
                client.setblocking(False)
                for _ in range(100):
                    client.send(bytes(16384))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            await until(lambda: not listener.connections)

    run(main())


@LOOPS
def test_a_client_that_does_not_leave_is_left(run, authority, trust, monkeypatch):
    monkeypatch.setattr(tls, "GOODBYE_SECONDS", 0.01)

    async def main():
        async with serving(lambda request: Response(200, b"done"), authority) as listener:
            client = await answered(listener, trust)
            (connection,) = listener.connections
            connection.transport.close()
            connection.transport.close()
            connection.transport.write(b"ignored")
            await until(lambda: not listener.connections)
            assert client.recv(1000) == b""  # told that it ends
            client.close()

    run(main())


@LOOPS
def test_what_is_written_goes_out_when_the_server_ends_or_the_client_sends_no_more(run, authority, trust):
    chunk = frame(b"x" * 1_000_000)

    async def main():
        streams = []
        async with serving(lambda request: Streaming(streams.append), authority) as listener:
            for end in ("server", "client"):
                client = await asyncio.to_thread(dial, listener, trust)
                await until(lambda: streams)
                stream, (connection,) = streams.pop(), listener.connections
                data = b""
                while not stream.stalled:
                    data += chunk
                    assert stream.write(chunk)
                if end == "server":
                    connection.transport.close()
                else:
                    # Not shutdown(), after which this client could not read encrypted data.
                    with socket.socket(fileno=os.dup(client.fileno())) as plain:
                        plain.shutdown(socket.SHUT_WR)
                    await until(connection.transport.is_closing)
                received = await asyncio.to_thread(read_all, client)
                assert received.partition(b"\r\n\r\n")[2] == data
                client.close()
                await until(lambda: not listener.connections)

    run(main())


@LOOPS
def test_a_client_that_says_goodbye_is_answered_so(run, authority, trust):
    async def main():
        async with serving(lambda request: Response(200, b"done"), authority) as listener:
            client = await answered(listener, trust)
            plain = await asyncio.to_thread(client.unwrap)  # returns when the server has said goodbye too
            await until(lambda: not listener.connections)
            plain.close()

    run(main())


@LOOPS
def test_broken_handshakes_and_broken_records_end_the_connection(run, authority, trust, tmp_path):
    stranger = Authority(tmp_path)
    stranger.prepare(["127.0.0.1"])
    certificate, key = stranger.client("ann", ["system:masters"])
    (tmp_path / "client.pem").write_bytes(certificate + key)
    unknown = ssl.create_default_context(cafile=str(authority.ca_path))
    unknown.load_cert_chain(tmp_path / "client.pem")

    def ask_as_a_stranger(listener):
        # It asks nothing: a server that closes with a request unread may take its alert back.
        with unknown.wrap_socket(socket.create_connection(listener.address), server_hostname="127.0.0.1") as client:
            client.recv(1000)

    async def main():
        async with serving(lambda request: Response(200, b"done"), authority) as listener:
            with pytest.raises(ssl.SSLError, match="alert"):  # the client is told why
                await asyncio.to_thread(ask_as_a_stranger, listener)
            for start in (b"\x16\x03\x01", b"\x16 no handshake at all"):
                reader, writer = await asyncio.open_connection(*listener.address)
                writer.write(start)
                writer.write_eof()
                await reader.read()
                writer.close()
            client = await answered(listener, trust)
            plain = socket.socket(fileno=client.detach())
            plain.send(b"\x17\x03\x03\x00\x20" + bytes(32))
            assert await asyncio.to_thread(read_all, plain)  # an alert, and the end
            plain.close()
            await until(lambda: not listener.count)

    run(main())


@LOOPS
def test_a_handshake_that_takes_too_long_is_given_up(run, authority, monkeypatch):
    monkeypatch.setattr(tls, "HANDSHAKE_SECONDS", 0.01)

    async def main():
        async with serving(lambda request: Response(200), authority) as listener:
            reader, writer = await asyncio.open_connection(*listener.address)
            writer.write(b"\x16\x03\x01")
            assert await reader.read() == b""
            await until(lambda: not listener.count)
            writer.close()

    run(main())


@LOOPS
def test_what_cannot_be_encrypted_ends_the_connection(run, authority, trust):
    async def main():
        async with serving(lambda request: Response(200, b"done"), authority) as listener:
            client = await asyncio.to_thread(dial, listener, trust)
            await asyncio.to_thread(client.recv, 1000)
            (connection,) = listener.connections
            with contextlib.suppress(ssl.SSLWantReadError):
                connection.transport.get_extra_info("ssl_object").unwrap()
            connection.transport.write(b"after the end")
            assert connection.transport.is_closing()
            await until(lambda: not listener.connections)
            client.close()

    run(main())


@LOOPS
def test_an_error_of_the_protocol_ends_the_connection_and_is_told(run, authority, trust):
    async def main():
        told = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["exception"]))
        async with serving(lambda request: Response(200), authority) as listener:
            client = await asyncio.to_thread(dial, listener, trust)
            await asyncio.to_thread(client.recv, 1000)
            (connection,) = listener.connections
            connection.incoming._parser = object()  # which cannot parse
            client.sendall(ASKED)
            await until(lambda: not listener.connections)
            assert [type(error) for error in told] == [AttributeError]
            client.close()

    run(main())
