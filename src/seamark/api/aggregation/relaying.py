"""A client's request goes to an aggregated server, and the answer comes back piece by piece."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from functools import partial

from seamark.api.aggregation.backends import Backend
from seamark.api.aggregation.reaching import Servers, identity, passed_on, target
from seamark.api.authorization import User
from seamark.api.http.wire.messages import Request, Response, Streaming
from seamark.api.http.wire.pieces import frame
from seamark.api.http.wire.protocol import Connection
from seamark.api.http.wire.stream import MAX_STREAM_BACKLOG, Stream
from seamark.api.outgoing.calling import CallFailed

TEXT = "text/plain; charset=utf-8"
# What this server says about an answer itself.
OWN_HEADERS = frozenset(
    {"content-type", "content-length", "date", "cache-control", "connection", "transfer-encoding", "content-encoding"}
)
_PIECE = 64 * 1024
_switches = re.compile(rb"HTTP/1\.[01] 101[ \r]").match


def unavailable(sentence: str) -> Response:
    return Response(503, f"{sentence}\n".encode(), TEXT, (("X-Content-Type-Options", "nosniff"),))


async def relay(servers: Servers, backend: Backend, request: Request, user: User) -> Response | Streaming:
    """The other server's answer to a request of a user who may make it."""
    if not backend.available:
        return unavailable("service unavailable")
    request.waits = asyncio.current_task()
    try:
        headers = [*passed_on(request.headers), *identity(user), ("X-Forwarded-For", request.peer or "127.0.0.1")]
        if "upgrade" in request.headers:
            return await _switched(servers, backend, request, headers)
        return await _answered(servers, backend, request, headers)
    except CallFailed as error:
        return unavailable(f"error trying to reach service: {error}")


async def _answered(
    servers: Servers, backend: Backend, request: Request, headers: list[tuple[str, str]]
) -> Response | Streaming:
    client = servers.client(backend)
    asking = servers.answer(client, request.method, request.path, request.query, headers, request.body)
    answer = await asking.__aenter__()
    kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in OWN_HEADERS]
    content_type = answer.headers.get("Content-Type", "")
    if request.method == "HEAD" or answer.status in (204, 304):
        await asking.__aexit__(None, None, None)
        return Response(answer.status, b"", content_type, kept)

    async def pump(stream: Stream) -> None:
        try:
            async for piece in answer.content.iter_any():
                if not stream.write(frame(piece)) or (stream.stalled and not await stream.drain()):
                    return
            stream.finish()
        except Exception:  # the answer has begun: breaking it off is all that can be said
            stream.abort()
        finally:
            if not answer.content.at_eof():
                answer.close()
            await asking.__aexit__(None, None, None)

    return Streaming(_started(pump), content_type, kept, answer.status)


def _started(pump: Callable[[Stream], Coroutine[None, None, None]]) -> Callable[[Stream], None]:
    """What starts to pass pieces on, until the client goes."""

    def start(stream: Stream) -> None:
        task = asyncio.get_running_loop().create_task(pump(stream))

        def stop() -> None:
            task.cancel()

        stream.on_close = stop

    return start


# --- other protocols -------------------------------------------------------------------------------


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: Stream) -> None:
    """Pass on what the other server sends through a tunnel, until either side ends it."""
    try:
        while piece := await reader.read(_PIECE):
            if not stream.write(piece) or (stream.stalled and not await stream.drain()):
                return
        stream.finish()
    finally:
        writer.close()


class Tunnel(Stream):
    """The client's end of a connection that speaks another protocol: bytes pass both ways."""

    __slots__ = ("_writer",)

    def __init__(self, connection: Connection, writer: asyncio.StreamWriter) -> None:
        super().__init__(connection)
        self._writer = writer

    def received(self, data: bytes) -> bytes | None:
        self._writer.write(data)
        return None if self._writer.transport.get_write_buffer_size() > MAX_STREAM_BACKLOG else b""

    def last(self) -> bytes:
        return b""


async def _switched(
    servers: Servers, backend: Backend, request: Request, headers: list[tuple[str, str]]
) -> Response | Streaming:
    client = servers.client(backend)
    lines = [f"{request.method} {target(request.path, request.query)} HTTP/1.1", f"Host: {client.server_name}"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines += [f"Upgrade: {request.headers['upgrade']}", "Connection: Upgrade"]
    if request.body:
        lines.append(f"Content-Length: {len(request.body)}")
    asked = "\r\n".join([*lines, "", ""]).encode() + request.body
    head, reader, writer = await servers.tunnel(client, asked)
    if not _switches(head):
        # It refuses, which is a whole answer: ask again for it in the ordinary way.
        writer.close()
        return await _answered(servers, backend, request, headers)

    return Streaming(
        _started(partial(pump, reader, writer)),
        status=101,
        upgrade=lambda connection: (head, Tunnel(connection, writer)),
    )
