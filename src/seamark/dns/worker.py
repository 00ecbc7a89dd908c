"""One of several processes behind one port: ``python -m seamark.dns.worker``, started by ``workers``.

It inherits its sockets and a channel to the supervisor, and reads its configuration as JSON from standard input.
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
    """A worker's configuration; ``descriptors`` are its sockets, UDP and TCP alternating."""

    config: DnsConfig
    descriptors: tuple[int, ...]
    channel: int
    kubeconfig: str = ""
    context: str = ""


async def work(assignment: Assignment) -> None:
    """Serve until SIGTERM, or until the supervisor is gone."""
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
    """Exclude the loaded state from garbage collection, because each full collection of it would delay queries.

    Only for processes that do nothing but DNS.
    """
    await server.synced()
    gc.collect()
    gc.freeze()


async def _answer_supervisor(server: DnsServer, descriptor: int, ended: asyncio.Event) -> None:
    """Answer each line from the supervisor with a JSON value; the channel closes when the supervisor ends."""
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
    uvloop.run(work(assignment))


if __name__ == "__main__":
    main()
