"""One event to many watchers over TLS: what it costs per watcher, beside the least that it can cost.

The floor is a bare loop that does only what cannot be left out: encrypt (OpenSSL) and hand over to the kernel.  Then
the API server's HTTP protocol on its event loop, which writes the same bytes to every connection, and a whole API
server, in which an object is changed that all of them watch, with the change itself and without it.  Clients are in a
process of their own.  All take turns; figures are medians, and ratios those within a round.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import selectors
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from operator import sub, truediv
from pathlib import Path

import uvloop

from seamark.api.certificates import Authority
from seamark.api.http.wire.listener import Listener
from seamark.api.http.wire.messages import Streaming
from seamark.api.http.wire.pieces import frame
from seamark.api.http.wire.stream import Stream
from seamark.config import settled
from seamark.daemon import Daemon
from seamark.kinds.resource import CONFIGMAPS

SENT_TURNS = 3  # of the event loop, after which all is sent

PATH = "/api/v1/namespaces/default/configmaps?watch=true"


def read_all(ports: list[int], connections: int, keys: Path) -> None:
    """The clients: connect, send a request on every connection, then read and forget whatever comes."""
    context = ssl.create_default_context(cafile=str(keys / "ca.crt"))
    token = (keys / "admin.token").read_text()
    request = f"GET {PATH} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    reading = selectors.DefaultSelector()
    for port in ports:
        for _ in range(connections):
            client = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
            client.sendall(request)
            plain = socket.socket(fileno=client.detach())  # the bytes are not decrypted: that is not what is measured
            plain.setblocking(False)
            reading.register(plain, selectors.EVENT_READ)
    while reading.get_map():
        for key, _ in reading.select():
            if not key.fileobj.recv(1 << 20):  # type: ignore[union-attr]  # only sockets are registered
                reading.unregister(key.fileobj)


class Bare:
    """TLS connections without an event loop, each a socket that does not wait."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self._listening.getsockname()[1]
        self._connections: list[ssl.SSLSocket] = []

    def accept(self, count: int) -> None:
        for _ in range(count):
            client, _ = self._listening.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            secured = self._context.wrap_socket(client, server_side=True)
            secured.recv(1 << 16)  # the request
            secured.setblocking(False)
            self._connections.append(secured)

    def write(self, data: bytes) -> None:
        for connection in self._connections:
            connection.send(data)


async def run(options: argparse.Namespace) -> None:
    event = frame(os.urandom(options.bytes))
    with tempfile.TemporaryDirectory() as folder:
        config = settled({"data_dir": folder, "ephemeral": True, "profile": "plain", "api": {"port": 0}})
        async with Daemon(config, []).running() as daemon:
            keys = Path(folder) / "pki"
            authority = Authority(keys)
            streams: list[Stream] = []
            all_there = asyncio.Event()

            def begin(stream: Stream) -> None:
                streams.append(stream)
                if len(streams) == options.watchers:
                    all_there.set()

            listener = Listener(lambda request: Streaming(begin), tls=authority.tls())
            await listener.open("127.0.0.1", 0)
            bare = Bare(authority.tls())
            assert daemon.api.listener is not None
            ports = ",".join(str(port) for port in (daemon.api.listener.address[1], listener.address[1], bare.port))
            clients = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bench.fanout", "--watchers", str(options.watchers)),
                *("--clients-of", ports, "--keys", str(keys)),
            )
            await all_there.wait()
            await asyncio.to_thread(bare.accept, options.watchers)
            cluster = daemon.api.cluster("bench")
            values = itertools.count()
            padding = "x" * (options.bytes - 300)
            made = {"metadata": {"name": "watched"}, "data": {"padding": padding}}
            for namespace in ("default", "kube-public"):
                await cluster.create(CONFIGMAPS, made, namespace=namespace)

            async def encrypt_and_send() -> None:
                bare.write(event)

            async def write() -> None:
                for stream in streams:
                    stream.write(event)

            async def change(namespace: str = "default") -> None:
                change = {"data": {"n": str(next(values))}}
                await cluster.patch(CONFIGMAPS, "watched", change, namespace=namespace)

            ways: dict[str, Callable[[], Awaitable[None]]] = {
                "the floor: encrypt, send": encrypt_and_send,
                "HTTP protocol, event loop": write,
                "the whole API server": change,
                "of this, the change itself": partial(change, "kube-public"),
            }
            spent: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, way in ways.items():
                    began = time.thread_time()
                    await way()
                    for _ in range(SENT_TURNS):
                        await asyncio.sleep(0)
                    spent[name].append(time.thread_time() - began)
                    await asyncio.sleep(options.pause)
            clients.kill()
            await clients.wait()
            await listener.close()
    floor, _, whole, change = spent.values()
    spent["what each watcher adds"] = list(map(sub, whole, change))
    print(f"  about {options.bytes} bytes to {options.watchers} watchers, µs of CPU each")
    for name, seconds in spent.items():
        ratio = statistics.median(map(truediv, seconds, floor))
        each = statistics.median(seconds) / options.watchers * 1e6
        print(f"  {name:<28} {each:6.1f} {ratio:6.2f} × the floor", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watchers", type=int, default=300)
    parser.add_argument("--bytes", type=int, default=1200)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds for the clients to read")
    parser.add_argument("--clients-of", help=argparse.SUPPRESS)
    parser.add_argument("--keys", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.clients_of:
        read_all([int(port) for port in options.clients_of.split(",")], options.watchers, Path(options.keys))
    else:
        uvloop.run(run(options))


if __name__ == "__main__":
    main()
