"""One of several processes behind one port: ``python -m seamark.dns.sockets.worker``, started by ``sockets.workers``.

Its sockets and a channel to its supervisor are inherited; the configuration arrives as JSON on standard input.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys

import msgspec

from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.dns.config import DnsConfig
from seamark.dns.server import DnsServer


class Assignment(msgspec.Struct, frozen=True):
    """What a worker is told: file descriptors of UDP and TCP sockets in turn, and of the channel."""

    config: DnsConfig
    descriptors: tuple[int, ...]
    channel: int
    kubeconfig: str = ""
    context: str = ""


async def work(assignment: Assignment) -> None:
    """Serve until told to end by SIGTERM, or until the supervisor is gone."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    sockets = [socket.socket(fileno=descriptor) for descriptor in assignment.descriptors]
    pairs = list(zip(sockets[::2], sockets[1::2], strict=True))
    connection = load(assignment.kubeconfig or None, context=assignment.context)
    async with RemoteCluster(connection, agent="seamark-dns") as cluster:
        server = DnsServer(assignment.config, cluster)
        async with server.running(pairs):
            tasks = [
                asyncio.create_task(_answer_supervisor(server, assignment.channel, ended)),
                asyncio.create_task(freeze_when_synced(server)),
            ]
            await ended.wait()
            for task in tasks:
                task.cancel()


async def freeze_when_synced(server: DnsServer) -> None:
    """Take what was loaded out of garbage collection: going over it again and again only makes queries wait.

    For processes that do nothing but DNS.
    """
    await server.synced()
    gc.collect()
    gc.freeze()


async def _answer_supervisor(server: DnsServer, descriptor: int, ended: asyncio.Event) -> None:
    """One line in, one JSON value out; the end of the channel is the end of the supervisor."""
    reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=descriptor))
    while line := await reader.readline():
        match line.strip():
            case b"ready":
                reply = msgspec.json.encode(server.ready())
            case b"metrics":
                reply = msgspec.json.encode(server.metrics())
            case _:
                reply = b"null"
        writer.write(reply + b"\n")
        await writer.drain()
    ended.set()


def main() -> None:
    import uvloop

    assignment = msgspec.json.decode(sys.stdin.buffer.read(), type=Assignment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is the supervisor's to handle
    uvloop.run(work(assignment))


if __name__ == "__main__":
    main()
