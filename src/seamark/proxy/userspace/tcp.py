"""Forwards TCP: bytes in both directions, half-closed connections, back pressure, and another try at another backend.

The sockets are used directly: the event loop says when one can be read, the bytes go through one buffer that all
connections share, and only what a slow reader does not take at once is kept, while its sender waits.  This costs less
time and a third of the memory of a transport and a protocol per socket.

A connection that is established belongs to its client and its backend: no change of routes touches it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import select
import socket
from collections.abc import Sequence
from typing import Literal, Protocol

from seamark.clock import SYSTEM_CLOCK, Cancellable, Clock
from seamark.metrics import Registry
from seamark.proxy.userspace.balancing import Target
from seamark.proxy.userspace.sockets import family_of, open_socket, reset, reset_on_close

log = logging.getLogger(__name__)

BACKLOG = 1024
CHUNK = 64 * 1024  # read at once; also the most that is kept for a slow reader
_ACCEPTED_AT_ONCE = 64
_MOST_DIALS = 4  # backends tried for one connection
_SWEEP_SECONDS = 0.5
_LOOK_AT_HALF_CLOSED_SECONDS = 15.0
_MOST_HELD = 256  # connections that are met with silence
_HELD_SECONDS = 60.0
_KEEPALIVE_SECONDS = 60
_TELL_AGAIN_SECONDS = 60.0
_UNDER_WAY = (errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR)
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Picker(Protocol):
    """Says which backend a client gets, after those ``tried``; or that it is refused, or met with silence."""

    def pick(self, client: str, tried: Sequence[Target] = ()) -> Target | Literal["refuse", "drop"]: ...


def bind_tcp(address: str, port: int, *, free: bool = False) -> socket.socket:
    """A socket that listens here; raises ``OSError``."""
    sock = open_socket(socket.SOCK_STREAM, address, free=free)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _prepare(sock)  # accepted sockets inherit these options
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
        clock: Clock = SYSTEM_CLOCK,
        metrics: Registry | None = None,
    ) -> None:
        self.most = most
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


class _Half:
    """One of the two sockets of a connection, with the bytes that it has yet to be sent."""

    __slots__ = ("ended", "link", "peer", "sock", "unsent")

    def __init__(self, link: Link, sock: socket.socket) -> None:
        self.link = link
        self.sock = sock
        self.peer: _Half
        self.unsent = b""
        self.ended = False  # whether it has sent all it will send

    def read(self) -> None:
        """Pass on what there is to read."""
        buffer, peer = self.link.forwarder.buffer, self.peer
        try:
            count = self.sock.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.link.abort()
            return
        if not count:
            self._end()
            return
        try:
            sent = peer.sock.send(buffer[:count])
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._stop_reading()
            if peer.ended:
                self.link.abort()
            return  # the other side takes no more; what it has sent before is still read and passed on
        if sent < count:
            peer.unsent = bytes(buffer[sent:count])
            loop = self.link.forwarder.loop
            loop.remove_reader(self.sock)
            loop.add_writer(peer.sock, peer.flush)

    def flush(self) -> None:
        """Send what is left; then its sender is read again."""
        try:
            sent = self.sock.send(self.unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.link.abort()
            return
        self.unsent = self.unsent[sent:]
        if not self.unsent:
            loop = self.link.forwarder.loop
            loop.remove_writer(self.sock)
            loop.add_reader(self.peer.sock, self.peer.read)

    def _end(self) -> None:
        """It sends no more: tell the other side, which may go on sending."""
        self._stop_reading()
        try:
            self.peer.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.link.abort()
            return
        if self.peer.ended:
            self.link.close()
        else:
            self.link.forwarder.half_closed.add(self.link)
            self.link.forwarder.sweep_soon()

    def _stop_reading(self) -> None:
        self.ended = True
        self.link.forwarder.loop.remove_reader(self.sock)


class Link:
    """One connection: a client, and the backend that it gets.  Nothing is read from the client before that."""

    __slots__ = ("back", "client", "forwarder", "front", "picker", "tried")

    def __init__(self, forwarder: TcpForwarder, sock: socket.socket, client: str, picker: Picker) -> None:
        self.forwarder = forwarder
        self.client = client
        self.picker = picker
        self.tried: tuple[Target, ...] = ()
        self.front = _Half(self, sock)
        self.back: _Half | None = None
        forwarder.links.add(self)

    def dial(self) -> None:
        """Connect to a backend, and to another if that fails at once."""
        while True:
            target = self.picker.pick(self.client, self.tried) if len(self.tried) < _MOST_DIALS else "refuse"
            if isinstance(target, str):
                self._turn_away(target)
                return
            self.tried = (*self.tried, target)
            try:
                sock = socket.socket(family_of(target[0]), socket.SOCK_STREAM)
            except OSError:  # no more file descriptors
                self._turn_away("refuse")
                self.forwarder.pause()
                return
            sock.setblocking(False)
            _prepare(sock)
            if sock.connect_ex(target) in (0, *_UNDER_WAY):
                break
            sock.close()
            self.forwarder.redialed.add()
        self.back = _Half(self, sock)
        self.front.peer, self.back.peer = self.back, self.front
        self.forwarder.dialing[self] = self.forwarder.clock.monotonic() + self.forwarder.dial_seconds
        self.forwarder.sweep_soon()
        self.forwarder.loop.add_writer(sock, self._dialed)

    def _dialed(self) -> None:
        assert self.back is not None
        error = self.back.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self.dial_failed(errno.errorcode.get(error, str(error)))
            return
        del self.forwarder.dialing[self]
        self.tried = ()
        loop = self.forwarder.loop
        loop.remove_writer(self.back.sock)
        loop.add_reader(self.back.sock, self.back.read)
        loop.add_reader(self.front.sock, self.front.read)

    def dial_failed(self, reason: str) -> None:
        """The backend did not take the connection: no byte was sent, so another one can have it."""
        assert self.back is not None
        log.debug("%s did not take a connection: %s", self.tried[-1], reason)
        del self.forwarder.dialing[self]
        self.forwarder.redialed.add()
        self.forwarder.loop.remove_writer(self.back.sock)
        self.back.sock.close()
        self.back = None
        self.dial()

    def _turn_away(self, verdict: Literal["refuse", "drop"]) -> None:
        self.forwarder.ended(self)
        if verdict == "drop":
            self.forwarder.hold(self.front.sock)
        else:
            self.forwarder.refused.add()
            reset(self.front.sock)

    def abort(self) -> None:
        """One side is gone in an unusual way: the other learns that by a reset, not by a quiet end."""
        if self not in self.forwarder.links:
            return
        for half in (self.front, self.back):
            if half is not None:
                reset_on_close(half.sock)
        self.close()

    def close(self) -> None:
        loop = self.forwarder.loop
        for half in (self.front, self.back):
            if half is not None:
                loop.remove_reader(half.sock)
                loop.remove_writer(half.sock)
                half.sock.close()
        self.forwarder.ended(self)


def _prepare(sock: socket.socket) -> None:
    """Send small messages at once, and notice a peer that is gone without a word."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
