"""Sockets: accept connections, hand them to the HTTP protocol, stop without losing anything.

A connection is *silent* until its first byte (with TLS only), *entering* during the TLS handshake, then one of
``connections``.  Sockets are accepted here, not by asyncio's server, because that tells nothing of the first two, and
because a look at the first byte shows a client that speaks plain HTTP to a TLS port.

Stopping: no new connections, watches end cleanly, requests under way finish, idle connections close.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import heapq
import logging
import resource
import select
import socket
import ssl
import time
from collections.abc import Callable
from itertools import chain

from seamark.api.http.wire.messages import Admit, Handler
from seamark.api.http.wire.protocol import Connection, Connections
from seamark.api.http.wire.tls import secure
from seamark.api.http.wire.unread import Unread
from seamark.kinds.values.hosts import bracketed

log = logging.getLogger("seamark.api")

# A connection that has asked nothing for this long is closed, and so is one that does not read what it asked for.  How
# long a request may take to come is the protocol's rule.
IDLE_SECONDS = 300.0
STALLED_SECONDS = 60.0
SWEEP_SECONDS = 5.0
FINISH_SECONDS = 0.8
SIOCOUTQNSD = 0x894B  # Linux: how many bytes a socket has yet to send
# How long nothing is accepted after the system had no descriptor or memory for a connection: until those that made room
# are closed, or, where all are in use, one may have ended.  That is said once, and again only after a minute.
ACCEPT_SOON_SECONDS, ACCEPT_AGAIN_SECONDS = 0.01, 1.0
SAY_AGAIN_SECONDS = 60.0
# Descriptors that are not for connections: those of the store, the logs, DNS, and the requests that we send ourselves.
OWN_FILES = 48
BACKLOG = 1024
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # by the address that stands for all of the machine
# TCP keepalive: the kernel probes a quiet client, and closes the connection if it does not answer.
PROBE_AFTER_SECONDS, PROBE_EVERY_SECONDS, PROBES = 60, 15, 4
# Go's answer to a client that speaks plain HTTP to a TLS port.
NOT_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


class Listener:
    """One listening address."""

    def __init__(
        self,
        handler: Handler,
        *,
        tls: ssl.SSLContext | None,
        admit: Admit | None = None,
        max_connections: int = 10_000,
        unread: Unread | None = None,
    ) -> None:
        self._handler = handler
        self._admit = admit
        self._tls = tls
        self._max_connections = min(max_connections, most_connections(_open_files()))
        self._say_at = 0.0  # when it may be said again that nothing can be accepted
        self._listening: list[socket.socket] = []
        self._silent: dict[Connection, socket.socket] = {}  # the oldest first
        self.connections = Connections(unread)
        self.address = ("", 0)
        self.share: Callable[[socket.socket], bool] | None = (
            None  # hands a new connection to another process, if it can
        )

    @property
    def count(self) -> int:
        """All connections, those that have not got as far as HTTP included."""
        return len(self._silent) + len(self.connections.entering) + len(self.connections)

    async def open(self, host: str, port: int) -> None:
        """Raises OSError if the address cannot be had."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                listening = socket.create_server(address, family=family, backlog=BACKLOG)
                self._listening.append(listening)
                listening.setblocking(False)
                self._set_up(listening)
        except OSError:
            self._stop_listening()
            raise
        for listening in self._listening:
            loop.add_reader(listening, self._accept, listening)
        bound = self._listening[0].getsockname()
        self.address = (bound[0], bound[1])

    def add(self, bound: socket.socket) -> None:
        """Listen at another address too: this socket is bound there, maybe in another network namespace."""
        bound.listen(BACKLOG)
        bound.setblocking(False)
        self._set_up(bound)
        self._listening.append(bound)
        asyncio.get_running_loop().add_reader(bound, self._accept, bound)

    def remove(self, bound: socket.socket) -> None:
        """Listen no longer there; connections that came in stay."""
        if bound in self._listening:
            self._listening.remove(bound)
            asyncio.get_running_loop().remove_reader(bound)
            bound.close()

    def _set_up(self, listening: socket.socket) -> None:
        """Options that accepted connections inherit: send at once, and probe for clients that vanished."""
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
        """Where clients on this machine find it: one that listens everywhere is on loopback, too."""
        host, port = self.address
        host = LOOPBACK.get(host, host)
        return f"{'https' if self._tls else 'http'}://{bracketed(host)}:{port}"

    # --- coming in ---------------------------------------------------------------------------------

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(BACKLOG):
            try:
                client, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if loop.time() >= self._say_at:
                    log.warning("cannot accept connections for a moment: %s; see `ulimit -n`", error.strerror)
                    self._say_at = loop.time() + SAY_AGAIN_SECONDS
                pause = ACCEPT_SOON_SECONDS if self._close_idlest() else ACCEPT_AGAIN_SECONDS
                loop.remove_reader(listening)
                loop.call_later(pause, self._accept_again, listening)
                return
            if self.share is None or not self.share(client):
                self.take(client)

    def take(self, client: socket.socket) -> None:
        """Serve a connection that was just accepted."""
        client.setblocking(False)
        if self.count >= self._max_connections and not self._close_idlest():
            client.close()
            return
        connection = Connection(self._handler, self.connections, self._admit)
        if self._tls is None:
            self._enter(connection, client)
        else:
            self._silent[connection] = client
            asyncio.get_running_loop().add_reader(client, self._first_byte, connection, client)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._listening:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _first_byte(self, connection: Connection, client: socket.socket) -> None:
        """Only a look: the byte stays for TLS.  A TLS record does not begin with a letter, every HTTP request does."""
        try:
            first = client.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            first = b""
        self._forget_silent(connection)
        if not first:
            client.close()
        elif first.isalpha():
            with contextlib.suppress(OSError):
                client.send(NOT_TLS)
                client.recv(65536)  # a socket that is closed with unread data would take the answer back
            client.close()
        else:
            self._enter(connection, client)

    def _forget_silent(self, connection: Connection) -> socket.socket:
        client = self._silent.pop(connection)
        asyncio.get_running_loop().remove_reader(client)
        self.connections.changed()
        return client

    def _enter(self, connection: Connection, client: socket.socket) -> None:
        self.connections.entering[connection] = asyncio.ensure_future(self._connect(connection, client))

    async def _connect(self, connection: Connection, client: socket.socket) -> None:
        try:
            if self._tls is None:
                await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, client)
            else:
                await secure(client, self._tls, connection)
        except OSError:
            client.close()  # its client is gone already
        finally:
            self.connections.entering.pop(connection, None)
            self.connections.changed()

    # --- going out ---------------------------------------------------------------------------------

    def _close_idlest(self) -> bool:
        """Make room for a new connection; False if all the others are in use.

        Several at once, because to look for the idlest takes as long as there are connections.
        """
        idle = (connection for connection in self.connections if not connection.busy)
        candidates = chain(self._silent, self.connections.entering, idle)
        idlest = heapq.nsmallest(self._max_connections // 64 + 1, candidates, key=lambda each: each.last_active)
        for connection in idlest:
            self._cut(connection)
        return bool(idlest)

    def _cut(self, connection: Connection) -> None:
        if connection in self._silent:
            self._forget_silent(connection).close()
        elif connection in self.connections.entering:
            self.connections.entering.pop(connection).cancel()
        else:
            connection.cut()

    async def sweep(self) -> None:
        """Close idle and stalled connections, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep_once(time.monotonic())

    def sweep_once(self, now: float) -> None:
        for connection in list(self._silent):
            if connection.overdue(now):
                self._cut(connection)
        for connection in list(self.connections):
            transport = connection.transport
            if transport is None:
                continue
            stalled, stream = connection.stalled_since, connection.stream
            waited_for = stream is not None and stream.paced
            if stalled is not None and not waited_for and now - stalled > STALLED_SECONDS:
                # close() would wait until the client has read everything.
                transport.abort()
            elif not transport.is_reading() and not transport.is_closing() and _hung_up(transport):
                transport.abort()  # nothing else would notice: of exec, say, with more input than is taken
            elif connection.overdue(now):
                connection.time_out()
            elif not connection.busy and now - connection.last_active > IDLE_SECONDS:
                transport.close()

    async def _wait_for_the_last(self) -> None:
        """Give answers that are being sent a moment to finish."""
        if not self.connections:
            return
        gone = asyncio.Event()
        self.connections.on_empty = gone.set
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(gone.wait(), FINISH_SECONDS)

    def _stop_listening(self) -> None:
        loop = asyncio.get_running_loop()
        for listening in self._listening:
            loop.remove_reader(listening)
            listening.close()
        self._listening.clear()

    async def close(self) -> None:
        self._stop_listening()
        entering = list(self.connections.entering.values())
        for connection in [*self._silent, *self.connections.entering]:
            self._cut(connection)
        await asyncio.gather(*entering, return_exceptions=True)
        idle = [connection for connection in self.connections if not connection.busy]
        for connection in list(self.connections):
            connection.finish_soon()
        for connection in idle:
            # Its client was told that it ends; if it has a pool of connections, it never looks at this one again.
            if connection.transport is not None and _all_sent(connection.transport):
                connection.transport.abort()
        await self._wait_for_the_last()
        for connection in list(self.connections):
            if connection.transport is not None:
                connection.transport.abort()


def _all_sent(transport: asyncio.WriteTransport) -> bool:
    """Whether the system has sent all that was written.  Only Linux can tell."""
    try:
        unsent = fcntl.ioctl(transport.get_extra_info("socket").fileno(), SIOCOUTQNSD, bytes(4))
    except OSError:
        return False
    return unsent == bytes(4) and not transport.get_write_buffer_size()


def _hung_up(transport: asyncio.Transport) -> bool:
    """Whether the client has closed a connection that is not being read."""
    looking = select.poll()
    looking.register(transport.get_extra_info("socket").fileno(), getattr(select, "POLLRDHUP", 0))
    return bool(looking.poll(0))


def most_connections(files: int) -> int:
    """How many connections there may be where so many descriptors are allowed."""
    return max(1, min(files * 3 // 4, files - OWN_FILES))


def _open_files() -> int:
    """How many descriptors this process may have open at once."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**20 if soft == resource.RLIM_INFINITY else soft
