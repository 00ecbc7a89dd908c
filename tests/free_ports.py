"""Places for servers: ports that are known beforehand, and an address that is not loopback."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import os
import random
import socket
from collections.abc import Iterator

import pytest

from seamark.proxy.userspace.addresses import own_addresses


def _share(first: int, end: int) -> Iterator[int]:
    """The ports of a range that are this worker's, over and over: workers never choose the same one."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ports = range(first + worker, end, workers)
    begin = random.randrange(len(ports))  # another run of the tests may be under way on this machine
    return itertools.cycle([*ports[begin:], *ports[:begin]])


# Below those that the kernel gives to a socket that asks for any.
_PORTS = _share(20000, 30000)
_NODE_PORTS = _share(30000, 32768)


def _next_free(ports: Iterator[int]) -> int:
    for port in ports:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp, contextlib.suppress(OSError):
            tcp.bind(("", port))  # so that it is free at every address
            udp.bind(("", port))
            return port
    raise AssertionError("the ports go round for ever")


def free_port() -> int:
    """A port that stays free until it is used."""
    return _next_free(_PORTS)


def free_node_port() -> int:
    """One of the range that Services have by default."""
    return _next_free(_NODE_PORTS)


def reachable_address() -> str:
    """An address of this machine that an EndpointSlice may hold, so no loopback address.

    Skips the test where there is none.
    """
    for each in own_addresses():
        address = ipaddress.ip_address(each)
        if address.version == 4 and not address.is_loopback and not address.is_link_local:
            return each
    pytest.skip("this machine has no IPv4 address besides loopback")
