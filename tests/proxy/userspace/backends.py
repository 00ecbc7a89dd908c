"""Servers on loopback that stand for the backends of a Service, and pickers that send every client to some of them."""

import asyncio
from contextlib import asynccontextmanager


class Fixed:
    """Sends clients to these backends in order, or turns them away."""

    def __init__(self, *targets, otherwise="refuse"):
        self.targets = list(targets)
        self.otherwise = otherwise
        self.asked = 0

    def pick(self, client, tried=()):
        self.asked += 1
        return next((each for each in self.targets if each not in tried), self.otherwise)


@asynccontextmanager
async def tcp_server(serve, host="127.0.0.1"):
    """A server whose connections are handled by ``serve(reader, writer)``; yields its address and port."""
    tasks = set()

    async def handle(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            await serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, host, 0)
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


def named(name):
    """Says its name to everyone who sends a line."""

    async def serve(reader, writer):
        while await reader.readline():
            writer.write(f"{name}\n".encode())
            await writer.drain()

    return serve


async def never_answers(reader, writer):
    await asyncio.Event().wait()


class UdpBackend(asyncio.DatagramProtocol):
    """Answers every datagram with its name and what it got; ``got`` are the datagrams."""

    def __init__(self, name, *, answers=True):
        self.name = name
        self.answers = answers
        self.got = []

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.got.append(data)
        if self.answers:
            self.transport.sendto(self.name.encode() + b":" + data, address)


@asynccontextmanager
async def udp_server(name, *, answers=True, port=0):
    made = lambda: UdpBackend(name, answers=answers)  # noqa: E731
    transport, backend = await asyncio.get_running_loop().create_datagram_endpoint(made, ("127.0.0.1", port))
    backend.address = transport.get_extra_info("sockname")[:2]
    try:
        yield backend
    finally:
        transport.close()


class UdpClient(asyncio.DatagramProtocol):
    def __init__(self):
        self.answers = asyncio.Queue()

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.answers.put_nowait(data)

    def error_received(self, error):
        self.answers.put_nowait(error)

    async def ask(self, data):
        self.transport.sendto(data)
        return await self.answers.get()


@asynccontextmanager
async def udp_client(address):
    transport, client = await asyncio.get_running_loop().create_datagram_endpoint(UdpClient, remote_addr=address)
    try:
        yield client
    finally:
        transport.close()


async def ask(address, text=b"?\n"):
    """One connection: sends a line and returns the line that comes back."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(text)
        return (await reader.readline()).decode().strip()
    finally:
        writer.close()
