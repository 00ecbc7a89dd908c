"""What an API server asks of the kubelets of its own process: logs, commands in containers, connections to Pods.

The nodes whose Pods run implement :class:`PodStreams`; the API server is given it and knows no more of them.
"""

from __future__ import annotations

import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from functools import cache
from socket import socket
from typing import Literal, Protocol

import msgspec

from seamark.kinds.autoscaling.usage import Measurement

STDIN, STDOUT, STDERR = 0, 1, 2


class LogOptions(msgspec.Struct, frozen=True):
    """Which part of the log of one run of a container, and in which form."""

    run: int = 0  # 0 for the first run of the container, 1 for the next
    follow: bool = False
    since: float | None = None  # seconds since 1970
    tail: int | None = None  # lines
    limit: int | None = None  # bytes
    timestamps: bool = False
    stream: Literal["All", "Stdout", "Stderr"] = "All"


class Command(msgspec.Struct, frozen=True):
    """A command that is to run in a container; ``words`` are empty to attach to what runs there."""

    words: tuple[str, ...] = ()
    streams: frozenset[int] = frozenset({STDOUT, STDERR})  # those that the client wants
    terminal: bool = False


class Session(Protocol):
    """A command that runs in a container, or the attachment to the container itself."""

    async def read(self, stream: int) -> bytes:
        """Some bytes of ``STDOUT`` or ``STDERR``; none at its end."""

    async def write(self, data: bytes) -> None:
        """Give bytes to its input; they are dropped if it reads no more."""

    def end_input(self) -> None: ...

    def resize(self, width: int, height: int) -> None: ...

    async def ended(self) -> int:
        """The exit code, once it has ended."""

    async def close(self) -> None:
        """End the command if it still runs; a container goes on."""


Connection = tuple[StreamReader, StreamWriter]


@cache
def unverified() -> ssl.SSLContext:
    """TLS to a server whose certificate is not looked at, as Kubernetes does for proxied requests and for probes."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class PodStreams(Protocol):
    """Pods are named by their uids.  Methods raise an ``ApiError`` with the sentence that a kubelet has for it."""

    def measured(self) -> Measurement:
        """What Pods used when it was measured last."""

    def runs(self, pod: str) -> bool:
        """Whether this Pod runs here as processes."""

    def logs(self, pod: str, container: str, options: LogOptions) -> AsyncIterator[bytes]: ...

    def check_open(self, pod: str, container: str) -> None:
        """Raise unless this container runs."""

    async def open(self, pod: str, container: str, command: Command) -> Session:
        """Start a command in a container, or attach to the container."""

    async def dial(self, pod: str, port: int) -> Connection:
        """Connect to a port at the loopback address of a Pod; raises ``OSError``."""

    async def reach(self, address: str, port: int, *, tls: bool = False) -> Connection | None:
        """Connect to an address of the Pods' network; None for other addresses; raises ``OSError``."""

    async def socket(self, address: str) -> socket | None:
        """A socket that can be connected to an address of the Pods' network; None for other addresses."""
