"""Watches over WebSockets, by a client that speaks them for real."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Sequence

import aiohttp
import pytest
from served import ADMIN, Served

from seamark.api.certificates import Authority
from seamark.api.http.websocket import MessageStream
from seamark.api.http.wire.listener import Listener
from seamark.api.http.wire.protocol import Connection
from seamark.api.http.wire.stream import Stream

BASE = "/api/v1/namespaces/default/configmaps"
BEARER = "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(ADMIN.encode()).decode().rstrip("=")
SPOKEN = (BEARER, "v1.example.com")


@contextlib.asynccontextmanager
async def listening(api: Served) -> AsyncIterator[tuple[aiohttp.ClientSession, Listener]]:
    listener = Listener(api.api.application, tls=None)
    await listener.open("127.0.0.1", 0)
    host, port = listener.address[:2]
    async with aiohttp.ClientSession(f"http://{host}:{port}") as session:
        yield session, listener
    await listener.close()


async def test_every_event_is_a_message(api: Served) -> None:
    async with listening(api) as (session, listener):
        for protocols in (SPOKEN, SPOKEN[::-1]):
            async with session.ws_connect(f"{BASE}?watch=1", protocols=protocols) as socket:
                assert socket.protocol == "v1.example.com"
                await api.post(BASE, {"metadata": {"name": "c"}, "data": {"k": "x" * 200_000}})
                await api.ask("DELETE", f"{BASE}/c")
                events = [await socket.receive_json() for _ in range(2)]
                assert [event["type"] for event in events] == ["ADDED", "DELETED"]
                assert len(events[0]["object"]["data"]["k"]) == 200_000
                await socket.ping()
                await socket.close()
                assert socket.close_code is not None
        assert len(listener.connections) <= 1  # the sockets are closed; the session may keep one for later


async def test_a_watch_that_ends_says_so(api: Served) -> None:
    async with listening(api) as (session, _), session.ws_connect(f"{BASE}?watch=1", protocols=SPOKEN) as socket:
        api.api.watches.end_all()
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 1000


async def test_events_in_protobuf_are_binary(api: Served) -> None:
    headers = {"Accept": "application/vnd.kubernetes.protobuf"}
    async with (
        listening(api) as (session, _),
        session.ws_connect(f"{BASE}?watch=1", protocols=SPOKEN, headers=headers) as socket,
    ):
        await api.post(BASE, {"metadata": {"name": "c"}})
        message = await socket.receive_bytes()
        assert (b"ADDED" in message, b"k8s\x00" in message) == (True, True)


@pytest.mark.parametrize(
    ("path", "protocols", "status"),
    [
        (f"{BASE}?watch=1", ("base64url.bearer.authorization.k8s.io.AAAA", "v1.example.com"), 401),
        (f"{BASE}?watch=1", ("base64url.bearer.authorization.k8s.io.%%%", "v1.example.com"), 401),
        (f"{BASE}?watch=1", (BEARER,), 401),  # a browser needs an answer that chooses a protocol
        (f"{BASE}?watch=1", (BEARER, BEARER, "v1.example.com"), 401),
        (f"{BASE}?watch=1", ("v1.example.com",), 403),
        (BASE, SPOKEN, 200),  # a list is answered in HTTP, whatever else is asked for
    ],
)
async def test_other_requests_are_answered_in_http(
    api: Served, path: str, protocols: tuple[str, ...], status: int
) -> None:
    async with listening(api) as (session, _):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(path, protocols=protocols)
        assert refused.value.status == status


async def dialled(
    listener: Listener, trust: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A watch by a client that writes its frames itself."""
    reader, writer = await asyncio.open_connection(*listener.address[:2], ssl=trust, limit=1 << 30)
    lines = [f"GET {BASE}?watch=1 HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: websocket"]
    lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA", f"Authorization: Bearer {ADMIN}", "", ""]
    writer.write("\r\n".join(lines).encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    return reader, writer


CLOSE, PING, PONG = 8, 9, 10


def masked(opcode: int, payload: bytes = b"") -> bytes:
    return struct.pack(">BB4x", 0x80 | opcode, 0x80 | len(payload)) + payload


async def test_bytes_that_are_no_messages_end_the_connection(api: Served) -> None:
    async with listening(api) as (_, listener):
        reader, writer = await dialled(listener)
        writer.write(b"\xff" * 100)
        assert await reader.read() == b""
        writer.close()


async def test_a_client_that_says_goodbye_and_stays_is_told_nothing_more(
    api: Served, authority: Authority, trust: ssl.SSLContext
) -> None:
    listener = Listener(api.api.application, tls=authority.tls())
    await listener.open("127.0.0.1", 0)
    leaving, staying = [await dialled(listener, trust) for _ in range(2)]
    leaving[1].write(masked(CLOSE, struct.pack(">H", 1000)))
    while not any(each.transport.is_closing() for each in listener.connections):
        await asyncio.sleep(0)
    await api.post(BASE, {"metadata": {"name": "c"}})
    assert b'"name":"c"' in await staying[0].readuntil(b"\n")
    for _, writer in (leaving, staying):
        writer.close()
    await listener.close()


@pytest.mark.parametrize("before", [[], ["a"], ["a", "b"]])
async def test_a_watch_that_fails_ends_alone(
    api: Served, monkeypatch: pytest.MonkeyPatch, before: Sequence[str]
) -> None:
    async with listening(api) as (_, listener):
        clients = [await dialled(listener) for _ in range(2)]
        for name in before:
            await api.post(BASE, {"metadata": {"name": name}})
            for reader, _ in clients:
                await reader.readuntil(b"\n")
        broken, sound = sorted(api.api.watches.open, key=lambda watch: watch._stream._connection.last_active)
        monkeypatch.setattr(MessageStream, "join", _raising(broken._stream, MessageStream.join))
        await api.post(BASE, {"metadata": {"name": "c"}})
        assert b'"name":"c"' in await clients[1][0].readuntil(b"\n")
        assert await clients[0][0].read() == b""
        assert api.api.watches.open == {sound}
        for _, writer in clients:
            writer.close()


def _raising(which: Stream, join: Callable[[MessageStream, list[bytes]], bytes]) -> object:
    def joined(stream: MessageStream, pieces: list[bytes]) -> bytes:
        return join(stream, 1 // 0 if stream is which else pieces)  # type: ignore[arg-type]

    return joined


# --- clients that send much, or do not read --------------------------------------------------------


async def test_many_short_messages_keep_no_other_client_waiting(api: Served) -> None:
    async with listening(api) as (session, listener):
        _, writer = await dialled(listener)
        (busy,) = listener.connections
        writer.write(masked(PONG) * 10_000)
        while not (busy.stream is not None and busy.stream.more):
            await asyncio.sleep(0)
        async with session.get("/livez") as answer:
            assert answer.status == 200
        assert busy.stream is not None
        assert busy.stream.more  # the other's request did not wait for all of them
        writer.close()


async def stalled(api: Served, listener: Listener) -> Connection:
    """The only connection, once its client has more to read than fits into the buffers."""
    (connection,) = listener.connections
    number = 0
    while connection.stalled_since is None:
        number += 1
        await api.post(BASE, {"metadata": {"name": f"c{number}"}, "data": {"k": "x" * 1_000_000}})
    return connection


async def test_pings_of_a_client_that_does_not_read_take_no_memory(api: Served) -> None:
    async with listening(api) as (_, listener):
        reader, writer = await dialled(listener)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        connection = await stalled(api, listener)
        before = connection.transport.get_write_buffer_size()
        for number in range(1000):
            writer.write(masked(PING, b"%0100d" % number))
        last = b"\x8a\x64" + b"%0100d" % 999
        while connection._owed != last:
            await asyncio.sleep(0)
        assert connection.transport.get_write_buffer_size() == before
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert (await reader.readuntil(last)).count(b"\x8a\x64") == 1
        writer.close()
