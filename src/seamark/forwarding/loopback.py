"""An address of this machine for each Service, and the ports to use where its own are refused (pure).

Linux answers on every address of 127.0.0.0/8.  The address of a Service follows from its name, so that it is the same
tomorrow.  macOS has only 127.0.0.1 until others are added by hand.
"""

from __future__ import annotations

import errno
import zlib
from collections.abc import Hashable, Iterator

LOCALHOST = "127.0.0.1"
HIGHER = 8000  # added to a port that needs a right: 80 becomes 8080, 443 becomes 8443

_HOSTS, _NETWORKS = 254, 64 * 256  # 127.64.0.1 to 127.127.255.254

Place = tuple[str, int]


class Addresses:
    """The addresses in use."""

    def __init__(self) -> None:
        self._of: dict[Hashable, str] = {}
        self._taken: set[str] = set()

    def take(self, key: tuple[str, ...]) -> str:
        """The address of this key: always the same, unless another key has it."""
        if key in self._of:
            return self._of[key]
        number = zlib.crc32("/".join(key).encode())
        while (address := _address(number)) in self._taken:
            number += 1
        self._of[key] = address
        self._taken.add(address)
        return address

    def give_back(self, key: tuple[str, ...]) -> None:
        self._taken.discard(self._of.pop(key, ""))


def _address(number: int) -> str:
    network, host = divmod(number % (_NETWORKS * _HOSTS), _HOSTS)
    return f"127.{64 + network // 256}.{network % 256}.{host + 1}"


def places(address: str, port: int) -> Iterator[Place]:
    """Where to listen for a port, the best first: 0 stands for any free port."""
    for host in (address, LOCALHOST):
        yield host, port
        if port + HIGHER <= 65535:
            yield host, port + HIGHER
        yield host, 0


def advice(error: OSError, address: str, port: int) -> str:
    """Why the best place could not be had, and what to do about it."""
    match error.errno:
        case errno.EACCES:
            return (
                f"port {port} needs a right that you do not have; on Linux, "
                "`sudo sysctl net.ipv4.ip_unprivileged_port_start=0` lets everybody use all ports"
            )
        case errno.EADDRNOTAVAIL:
            return (
                f"this machine has no {address}, so {LOCALHOST} is used; on macOS, "
                f"`sudo ifconfig lo0 alias {address}` adds it"
            )
        case errno.EADDRINUSE:
            return f"port {port} of {address} is in use by another program"
    return f"port {port} of {address} cannot be used: {error.strerror or error}"
