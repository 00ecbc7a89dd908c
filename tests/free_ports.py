"""Ports for servers that are started later, or again, at a place that is known beforehand."""

from __future__ import annotations

import contextlib
import random
import socket


def free_port() -> int:
    """A port that stays free until it is used: below those that the kernel gives to whoever asks for any."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp, contextlib.suppress(OSError):
            tcp.bind(("127.0.0.1", port))
            udp.bind(("127.0.0.1", port))
            return port
