"""Places for servers: ports that are known beforehand, and an address that is not loopback."""

from __future__ import annotations

import contextlib
import ipaddress
import random
import socket

import pytest

from seamark.proxy.userspace.addresses import own_addresses


def free_port(first: int = 20000, end: int = 30000) -> int:
    """A port that stays free until it is used: below those that the kernel gives to whoever asks for any."""
    while True:
        port = random.randrange(first, end)
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp, contextlib.suppress(OSError):
            tcp.bind(("127.0.0.1", port))
            udp.bind(("127.0.0.1", port))
            return port


def free_node_port() -> int:
    """One of the range that Services have by default."""
    return free_port(30000, 32768)


def reachable_address() -> str:
    """An address of this machine that an EndpointSlice may hold, so no loopback address.

    Skips the test where there is none.
    """
    for each in own_addresses():
        address = ipaddress.ip_address(each)
        if address.version == 4 and not address.is_loopback and not address.is_link_local:
            return each
    pytest.skip("this machine has no IPv4 address besides loopback")
