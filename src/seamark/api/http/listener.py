"""Sockets: accept connections, hand them to the HTTP protocol, stop without losing anything.

Stopping: no new connections, watches end cleanly, requests under way finish, idle connections close.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable

from seamark.api.http.protocol import Connection, Handler

# A connection that has asked nothing for this long is closed; one in the middle of a request gets less, and so does one
# that does not read what it asked for.
IDLE_SECONDS = 300.0
HALF_REQUEST_SECONDS = 60.0
STALLED_SECONDS = 60.0
SWEEP_SECONDS = 15.0
FINISH_SECONDS = 0.8
# TCP keepalive: the kernel probes a quiet client, and closes the connection if it does not answer.
PROBE_AFTER_SECONDS, PROBE_EVERY_SECONDS, PROBES = 60, 15, 4


class Connections(set[Connection]):
    """The open connections; says when the last one has gone."""

    on_empty: Callable[[], None] | None = None

    def discard(self, connection: object) -> None:
        super().discard(connection)
        if not self and self.on_empty is not None:
            self.on_empty()


class Listener:
    """One listening address."""

    def __init__(self, handler: Handler, *, tls: ssl.SSLContext | None) -> None:
        self._handler = handler
        self._tls = tls
        self._server: asyncio.Server | None = None
        self.connections = Connections()
        self.address = ("", 0)

    async def open(self, host: str, port: int) -> None:
        """Raises OSError if the address cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._connection, host, port, ssl=self._tls, backlog=1024, ssl_handshake_timeout=30 if self._tls else None
        )
        for listening in self._server.sockets:
            self._probe(listening)
        bound = self._server.sockets[0].getsockname()
        self.address = (bound[0], bound[1])

    def _connection(self) -> Connection:
        return Connection(self._handler, self.connections)

    def _probe(self, listening: socket.socket) -> None:
        """Turn on TCP keepalive, which accepted connections inherit: it detects clients that vanished."""
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            ("TCP_KEEPIDLE", PROBE_AFTER_SECONDS),
            ("TCP_KEEPINTVL", PROBE_EVERY_SECONDS),
            ("TCP_KEEPCNT", PROBES),
        ):
            if hasattr(socket, option):
                listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    @property
    def url(self) -> str:
        host, port = self.address
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self._tls else 'http'}://{shown}:{port}"

    async def sweep(self) -> None:
        """Close idle and stalled connections, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep_once(time.monotonic())

    def sweep_once(self, now: float) -> None:
        for connection in list(self.connections):
            transport = connection.transport
            if transport is None:
                continue
            stalled = connection.stalled_since
            if stalled is not None and now - stalled > STALLED_SECONDS:
                # close() would wait until the client has read everything.
                transport.abort()
            elif not connection.busy:
                patience = HALF_REQUEST_SECONDS if connection.in_request else IDLE_SECONDS
                if now - connection.last_active > patience:
                    transport.close()

    async def _wait_for_the_last(self) -> None:
        """Give answers that are being sent a moment to finish."""
        if not self.connections:
            return
        gone = asyncio.Event()
        self.connections.on_empty = gone.set
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(gone.wait(), FINISH_SECONDS)

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for connection in list(self.connections):
            connection.finish_soon()
        await self._wait_for_the_last()
        for connection in list(self.connections):
            if connection.transport is not None:
                connection.transport.abort()
        self._server = None
