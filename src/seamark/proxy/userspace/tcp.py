"""Accepts TCP connections and watches over all of them: how many there are, what takes too long, what broke.

:mod:`~seamark.proxy.userspace.link` carries each of them.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import select
import socket

from seamark.clock import SYSTEM_CLOCK, Cancellable, Clock
from seamark.metrics import Registry
from seamark.proxy.userspace.link import CHUNK, Link, Picker, prepare
from seamark.proxy.userspace.sockets import OwnSockets, Sockets, open_socket, reset

log = logging.getLogger(__name__)

BACKLOG = 1024
_ACCEPTED_AT_ONCE = 64
_SWEEP_SECONDS = 0.5
_LOOK_AT_HALF_CLOSED_SECONDS = 15.0
_MOST_HELD = 256  # connections that are met with silence
_HELD_SECONDS = 60.0
_TELL_AGAIN_SECONDS = 60.0
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def bind_tcp(address: str, port: int, *, free: bool = False) -> socket.socket:
    """A socket that listens here; raises ``OSError``."""
    sock = open_socket(socket.SOCK_STREAM, address, free=free)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        prepare(sock)  # accepted sockets inherit these options
        sock.bind((address, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


class TcpForwarder:
    """All TCP connections of one engine, up to ``most``; beyond that, new ones wait until another ends."""

    def __init__(
        self,
        *,
        most: int,
        dial_seconds: float = 2.0,
        sockets: Sockets | None = None,
        clock: Clock = SYSTEM_CLOCK,
        metrics: Registry | None = None,
    ) -> None:
        self.most = most
        self.sockets = sockets or OwnSockets()
        self.dial_seconds = dial_seconds
        self.clock = clock
        self.loop = asyncio.get_running_loop()
        self.buffer = memoryview(bytearray(CHUNK))
        self.links: set[Link] = set()
        self.dialing: dict[Link, float] = {}  # in the order in which they are given up
        self.half_closed: set[Link] = set()
        self._held: dict[socket.socket, float] = {}
        self._listeners: set[TcpListener] = set()
        self._paused = False
        self._sweeper: Cancellable | None = None
        self._looked_at = clock.monotonic()
        self._told_at = float("-inf")  # when it was last said that there are too many connections
        registry = metrics or Registry()
        count = registry.counter
        self.accepted = count("seamark_proxy_connections_total", "TCP connections that clients opened.")
        self.refused = count("seamark_proxy_connections_refused_total", "TCP connections that no backend took.")
        self.redialed = count("seamark_proxy_redials_total", "Dials that failed, so that another backend was tried.")
        registry.measured("seamark_proxy_connections_open", "TCP connections open now.", lambda: float(len(self.links)))

    def listen(self, sock: socket.socket, picker: Picker) -> TcpListener:
        listener = TcpListener(self, sock, picker)
        self._listeners.add(listener)
        if not self._paused:
            listener.resume()
        return listener

    def forget(self, listener: TcpListener) -> None:
        self._listeners.discard(listener)

    def close(self) -> None:
        """Close everything, connections included."""
        for listener in list(self._listeners):
            listener.close()
        for link in list(self.links):
            link.close()
        for sock in self._held:
            sock.close()
        self._held.clear()
        if self._sweeper is not None:
            self._sweeper.cancel()

    def local_addresses(self) -> set[str]:
        """The addresses to which clients of open connections have connected."""
        return {link.front.sock.getsockname()[0] for link in self.links}

    # --- limits ----------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        return len(self.links) >= self.most

    def pause(self) -> None:
        """Accept nothing for a while: clients wait in the kernel's queue until a connection ends."""
        if not self._paused:
            self._paused = True
            if self.clock.monotonic() >= self._told_at + _TELL_AGAIN_SECONDS:
                self._told_at = self.clock.monotonic()
                log.warning("%d connections are open: no more are accepted until one ends", len(self.links))
            for listener in self._listeners:
                listener.pause()
            self.sweep_soon()

    def ended(self, link: Link) -> None:
        self.links.discard(link)
        self.dialing.pop(link, None)
        self.half_closed.discard(link)
        if self._paused and not self.full:
            self._resume()

    def _resume(self) -> None:
        self._paused = False
        for listener in self._listeners:
            listener.resume()

    # --- time ------------------------------------------------------------------------------------------

    def hold(self, client: socket.socket) -> None:
        """Meet a client with silence, as if its packets were dropped; its own patience ends the connection."""
        if len(self._held) >= _MOST_HELD:
            oldest = next(iter(self._held))
            del self._held[oldest]
            reset(oldest)
        self._held[client] = self.clock.monotonic() + _HELD_SECONDS
        self.sweep_soon()

    def sweep_soon(self) -> None:
        """Have what takes too long looked for; one timer serves all connections."""
        if self._sweeper is None:
            self._sweeper = self.clock.call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        now = self.clock.monotonic()
        for link, deadline in list(self.dialing.items()):
            if deadline > now:
                break
            link.dial_failed("no answer")
        for client, deadline in list(self._held.items()):
            if deadline > now:
                break
            del self._held[client]
            reset(client)
        if self.half_closed and now >= self._looked_at + _LOOK_AT_HALF_CLOSED_SECONDS:
            self._looked_at = now
            self._close_broken()
        if self._paused and not self.full:  # it was for want of file descriptors
            self._resume()
        if self.dialing or self._held or self.half_closed or self._paused:
            self.sweep_soon()

    def _close_broken(self) -> None:
        """Close half-closed connections whose peer is gone: nothing is read from such a socket, so no event tells."""
        poll = select.poll()
        links = {half.sock.fileno(): link for link in self.half_closed for half in (link.front, link.front.peer)}
        for number in links:
            poll.register(number, 0)  # for no event, so that only errors are reported
        for number, _ in poll.poll(0):
            links[number].abort()


class TcpListener:
    """One listening socket.  ``picker`` may be exchanged at any time: it decides about new connections only."""

    def __init__(self, forwarder: TcpForwarder, sock: socket.socket, picker: Picker) -> None:
        self.picker = picker
        self._forwarder = forwarder
        self._sock = sock

    def resume(self) -> None:
        self._forwarder.loop.add_reader(self._sock, self._accept)

    def pause(self) -> None:
        self._forwarder.loop.remove_reader(self._sock)

    def close(self) -> None:
        """Listen no longer; connections that are open go on."""
        self.pause()
        self._forwarder.forget(self)
        self._sock.close()

    def _accept(self) -> None:
        forwarder = self._forwarder
        for _ in range(_ACCEPTED_AT_ONCE):
            if forwarder.full:
                forwarder.pause()
                return
            try:
                client, address = self._sock.accept()
            except OSError as error:
                if error.errno in _OUT_OF_FILES:
                    forwarder.pause()
                return
            client.setblocking(False)
            forwarder.accepted.add()
            Link(forwarder, client, address[0], self.picker).dial()
