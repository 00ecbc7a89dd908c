"""An upstream resolver that does as it is told, over UDP and TCP at one port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from free_ports import free_port
from seamark.dns.config import ForwardConfig, Route

FOREVER = 1e6  # seconds: how slow a busy machine may be is no test's business
Script = Callable[[dns.message.Message, bool], "bytes | None"]


def forwarding(*to: str, **config: Any) -> ForwardConfig:
    """Forwarding to these addresses without limits in seconds, unless the test sets some."""
    return ForwardConfig(**{"routes": (Route(to=to),), "timeout": FOREVER, "deadline": FOREVER, **config})


class ScriptedUpstream:
    """Answers from ``records`` (``TTL data`` by name and type); ``script`` may take over."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], list[str]] = {}
        self.soa = ""  # for negative answers
        self.script: Script | None = None
        self.asked: list[tuple[str, str, bool]] = []  # name, type, over TCP
        self.hold: asyncio.Event | None = None
        self.address = ("", 0)

    @property
    def text(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    def forward(self, **config: Any) -> ForwardConfig:
        """Forwarding to here; its answers are waited for."""
        return forwarding(self.text, **config)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ScriptedUpstream]:
        loop = asyncio.get_running_loop()
        self.address = ("127.0.0.1", free_port())
        server = await asyncio.start_server(self._stream, *self.address)
        transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), local_addr=self.address)
        try:
            yield self
        finally:
            transport.close()
            server.close()

    async def reply(self, packet: bytes, tcp: bool) -> bytes | None:
        query = dns.message.from_wire(packet)
        question = query.question[0]
        name, kind = question.name.to_text().lower(), dns.rdatatype.to_text(question.rdtype)
        self.asked.append((name, kind, tcp))
        if self.hold is not None:
            await self.hold.wait()
        if self.script is not None:
            return self.script(query, tcp)
        return self.answer(query).to_wire()

    def answer(self, query: dns.message.Message) -> dns.message.Message:
        reply = dns.message.make_response(query, recursion_available=True)
        question = query.question[0]
        name, kind = question.name.to_text().lower(), dns.rdatatype.to_text(question.rdtype)
        for line in self.records.get((name, kind), ()):
            ttl, data = line.split(" ", 1)
            reply.answer.append(dns.rrset.from_text(question.name, int(ttl), "IN", kind, data))
        if not reply.answer:
            if not any(known == name for known, _ in self.records):
                reply.set_rcode(dns.rcode.NXDOMAIN)
            if self.soa:
                owner, ttl, data = self.soa.split(" ", 2)
                reply.authority.append(dns.rrset.from_text(owner, int(ttl), "IN", "SOA", data))
        return reply

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(2), "big")
                reply = await self.reply(await reader.readexactly(length), True)
                if reply is not None:
                    writer.write(len(reply).to_bytes(2, "big") + reply)
        except asyncio.IncompleteReadError:
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, upstream: ScriptedUpstream) -> None:
        self._upstream = upstream
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._reply(data, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reply(self, data: bytes, addr: Any) -> None:
        reply = await self._upstream.reply(data, False)
        if reply is not None and not self._transport.is_closing():
            self._transport.sendto(reply, addr)
