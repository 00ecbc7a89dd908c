"""Finds the server's own addresses."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

Address = tuple[str, int]

_GET_INTERFACE_ADDRESS = 0x8915  # SIOCGIFADDR
_IPV6_INTERFACES = Path("/proc/net/if_inet6")


def own_addresses(listening: Iterable[str]) -> list[bytes]:
    """The addresses at which other machines can reach this server, packed; without loopback and link-local ones."""
    found: dict[bytes, None] = {}
    for host in listening:
        if host == "0.0.0.0":
            candidates = _interface_addresses()
        elif host == "::":
            candidates = _interface_addresses_ipv6()
        else:
            candidates = [ipaddress.ip_address(host.partition("%")[0]).packed]
        for packed in candidates:
            address = ipaddress.ip_address(packed)
            if not address.is_loopback and not address.is_link_local:
                found[packed] = None
    return list(found)


def _interface_addresses() -> list[bytes]:
    import fcntl

    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            try:
                reply = fcntl.ioctl(sock, _GET_INTERFACE_ADDRESS, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # an interface without an IPv4 address
            found.append(reply[20:24])
    return found


def _interface_addresses_ipv6() -> list[bytes]:
    if not _IPV6_INTERFACES.exists():
        return []
    return [bytes.fromhex(line.split()[0]) for line in _IPV6_INTERFACES.read_text().splitlines()]
