"""Answers over TCP.  Clients may send queries without waiting for replies; each reply is sent when it is ready.

A connection is closed after some time without a complete message (single bytes do not keep it open).  If there are too
many connections, the one that has been idle longest is closed for the new one (RFC 7766, section 6.2.3, leaves that to
the server), so that idle connections cannot keep other clients out.  A client that holds its full share of connections
loses one of its own.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Iterable
from itertools import takewhile
from typing import cast

from seamark.dns.responder import Reply, Responder
from seamark.dns.sockets.udp import Background
from seamark.runtime.turns import Turns

_MOST_WAITING = 64  # queries of one connection that wait for upstream resolvers
_AT_ONCE = 32  # queries of one connection that are answered before others have their turn
_BACKLOG = 512


def bind_tcp(host: str, port: int, *, shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


class TcpListener:
    """The connections of one listening socket."""

    def __init__(
        self,
        responder: Responder,
        background: Background,
        *,
        connections: int,
        per_client: int,
        idle_seconds: float,
    ) -> None:
        self.responder = responder
        self.background = background
        self.turns = Turns()  # of connections that have sent something
        self.open: dict[_Connection, None] = {}  # in the order of their last message, so that the first is idle longest
        self._of_client: dict[str, dict[_Connection, None]] = {}  # the same, in the order of their beginning
        self._connections = connections
        self._per_client = per_client
        self._idle_seconds = idle_seconds
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None

    async def start(self, sock: socket.socket) -> None:
        self._server = await self._loop.create_server(lambda: _Connection(self), sock=sock, backlog=_BACKLOG)
        self._close_idle()

    async def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self.open):
            connection.close()
        if self._server is not None:
            await self._server.wait_closed()

    def admit(self, connection: _Connection) -> bool:
        """Take a new connection, if need be in the place of one that is idle; False if there is none."""
        own = self._of_client.get(connection.client, {})
        if len(own) >= self._per_client:
            room = self._close_one(sorted(own, key=lambda each: each.active_at))
        else:
            room = len(self.open) < self._connections or self._close_one(self.open)
        if not room:
            self.responder.measures.refused_connections.add()
            return False
        self.open[connection] = None
        self._of_client.setdefault(connection.client, {})[connection] = None
        return True

    def _close_one(self, candidates: Iterable[_Connection]) -> bool:
        """Close the first connection that waits for no reply."""
        for connection in candidates:
            if not connection.waiting:
                self.responder.measures.displaced_connections.add()
                connection.close()
                self.forget(connection)
                return True
        return False

    def forget(self, connection: _Connection) -> None:
        """A connection is closed or about to be."""
        self.open.pop(connection, None)
        own = self._of_client.get(connection.client, {})
        own.pop(connection, None)
        if not own:
            self._of_client.pop(connection.client, None)

    def heard(self, connection: _Connection) -> None:
        """A connection had a message or sent a late reply: it moves to the end of the order of idleness."""
        connection.active_at = self._loop.time()
        if connection in self.open:
            del self.open[connection]
            self.open[connection] = None

    def _close_idle(self) -> None:
        """Close idle connections.  One timer serves all: a timer per connection would cost more than its queries."""
        oldest = self._loop.time() - self._idle_seconds
        idle = takewhile(lambda each: each.active_at < oldest, self.open)
        for connection in [each for each in idle if not each.waiting]:
            connection.close()
        self._sweep = self._loop.call_later(min(1.0, self._idle_seconds / 2), self._close_idle)


class _Connection(asyncio.Protocol):
    """One client's connection; each message is preceded by its length."""

    def __init__(self, listener: TcpListener) -> None:
        self.active_at = 0.0
        self.client = ""
        self.waiting = 0
        self._listener = listener
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._full = False  # the write buffer is full, because the client does not read its replies
        self._in_line = False  # what the client has sent waits for its turn

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio.Protocol --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.active_at = asyncio.get_running_loop().time()
        stream = cast(asyncio.Transport, transport)  # uvloop's class has its methods, but does not inherit from it
        peer = transport.get_extra_info("peername")
        self.client = peer[0] if peer else ""
        if not self._listener.admit(self):
            stream.abort()
            return
        self._transport = stream

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.forget(self)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._in_line:
            self._take_messages()

    def pause_writing(self) -> None:
        self._full = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._full = False
        self._wait_for_turn()

    # --- messages ----------------------------------------------------------------------------------

    def _wait_for_turn(self) -> None:
        """Read no more before that: a client that sends thousands of queries in one go delays only itself."""
        if self._transport is not None and not self._in_line:
            self._in_line = True
            self._transport.pause_reading()
            self._listener.turns.add(self._take_messages)

    def _take_messages(self) -> None:
        self._in_line = False
        buffer, at = self._buffer, 0
        for _ in range(_AT_ONCE):
            if not self._takes_more:
                break  # until the client has read its replies, or upstream resolvers have answered
            end = at + 2 + int.from_bytes(buffer[at : at + 2], "big")
            if len(buffer) < max(end, at + 2):
                if self._transport is not None:
                    self._transport.resume_reading()
                break
            packet = bytes(buffer[at + 2 : end])
            at = end
            self._listener.heard(self)
            self._answer(packet)
        else:
            self._wait_for_turn()
        del buffer[:at]

    @property
    def _takes_more(self) -> bool:
        closing = self._transport is None or self._transport.is_closing()
        return not closing and not self._full and self.waiting < _MOST_WAITING

    def _answer(self, packet: bytes) -> None:
        began = time.perf_counter()
        responder = self._listener.responder
        entry = responder.tcp.ready.plain.get(packet[2:])
        if entry is not None:
            hits = entry.hits = entry.hits + 1
            self._send(packet[:2] + entry.forms[hits % entry.spread])
        else:
            outcome = responder.try_to_respond(packet, responder.tcp, client=self.client)
            if isinstance(outcome, Awaitable):
                self.waiting += 1
                self._listener.background(self._answer_later(outcome))
                return
            self._send(outcome)
        responder.measures.took("tcp", time.perf_counter() - began)

    async def _answer_later(self, outcome: Awaitable[Reply]) -> None:
        began = time.perf_counter()
        try:
            self._send(await outcome)
        finally:
            self.waiting -= 1
            self._listener.heard(self)
            self._listener.responder.measures.took("tcp", time.perf_counter() - began)
            self._wait_for_turn()

    def _send(self, reply: Reply) -> None:
        if self._transport is None:
            return
        if reply is None:
            # The packet was not a query, or answering it failed: close the connection.
            self._transport.close()
            return
        messages = [reply] if isinstance(reply, bytes) else reply
        self._transport.write(b"".join([len(message).to_bytes(2, "big") + message for message in messages]))
