"""Opens the sockets that clients use, and the small tricks of closing them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Protocol

Opened = Callable[["socket.socket | None"], None]

_IP_FREEBIND, _IPV6_FREEBIND = 15, 78  # Linux; Python's socket module lacks them
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def family_of(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


class Sockets(Protocol):
    """Opens the sockets that lead to backends."""

    def tcp(self, address: str, then: Opened) -> None:
        """Call ``then`` with a socket for a connection to this address, now or later; with None if there is none."""

    def udp(self, address: str) -> socket.socket:
        """A socket for datagrams to this address; raises OSError if there is none at the moment."""


class OwnSockets:
    """Sockets of this process's own network."""

    def tcp(self, address: str, then: Opened) -> None:
        try:
            opened = socket.socket(family_of(address), socket.SOCK_STREAM)
        except OSError:  # no more file descriptors
            then(None)
            return
        then(opened)

    def udp(self, address: str) -> socket.socket:
        return socket.socket(family_of(address), socket.SOCK_DGRAM)


def open_socket(kind: socket.SocketKind, address: str, *, free: bool = False) -> socket.socket:
    """A socket for this one family; ``free``: it may be bound to an address that no interface has."""
    sock = socket.socket(family_of(address), kind)
    sock.setblocking(False)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if free:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)
    elif free:
        sock.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
    return sock


def reset_on_close(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


def reset(sock: socket.socket) -> None:
    """End a connection by a reset, which a client sees as refused or broken, never as an empty answer."""
    reset_on_close(sock)
    sock.close()
