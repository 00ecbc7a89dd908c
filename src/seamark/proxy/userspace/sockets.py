"""Opens the sockets that clients use, and the small tricks of closing them."""

from __future__ import annotations

import socket
import struct

_IP_FREEBIND, _IPV6_FREEBIND = 15, 78  # Linux; Python's socket module lacks them
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def family_of(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


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
