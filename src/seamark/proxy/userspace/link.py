"""One TCP connection: bytes in both directions, half-closed, back pressure, and another try at another backend.

The sockets are used directly: the event loop says when one can be read, the bytes go through one buffer that all
connections share, and only what a slow reader does not take at once is kept, while its sender waits.  This costs less
time and a third of the memory of a transport and a protocol per socket.

A connection that is established belongs to its client and its backend: no change of routes touches it.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from seamark.proxy.userspace.balancing import Target
from seamark.proxy.userspace.sockets import reset, reset_on_close

if TYPE_CHECKING:
    from seamark.proxy.userspace.tcp import TcpForwarder

log = logging.getLogger(__name__)

CHUNK = 64 * 1024  # read at once; also the most that is kept for a slow reader
_MOST_DIALS = 4  # backends tried for one connection
_KEEPALIVE_SECONDS = 60
_UNDER_WAY = (errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR)


class Picker(Protocol):
    """Says which backend a client gets, after those ``tried``; or that it is refused, or met with silence."""

    def pick(self, client: str, tried: Sequence[Target] = ()) -> Target | Literal["refuse", "drop"]: ...


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
        target = self.picker.pick(self.client, self.tried) if len(self.tried) < _MOST_DIALS else "refuse"
        if isinstance(target, str):
            self._turn_away(target)
            return
        self.tried = (*self.tried, target)
        self.forwarder.sockets.tcp(target[0], self._connect)

    def _connect(self, sock: socket.socket | None) -> None:
        if self not in self.forwarder.links:  # closed while the socket was being opened
            if sock is not None:
                sock.close()
            return
        if sock is None:
            self._turn_away("refuse")
            self.forwarder.pause()
            return
        sock.setblocking(False)
        prepare(sock)
        if sock.connect_ex(self.tried[-1]) not in (0, *_UNDER_WAY):
            sock.close()
            self.forwarder.redialed.add()
            self.dial()
            return
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


def prepare(sock: socket.socket) -> None:
    """Send small messages at once, and notice a peer that is gone without a word."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
