"""One upstream resolver: how it is asked, and whether it is healthy."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import secrets
import struct
from collections.abc import Callable
from pathlib import Path

from seamark.dns.wire import message as wire
from seamark.dns.zone.records import Question, Rcode, Type

log = logging.getLogger(__name__)

Address = tuple[str, int]

_EDNS_SIZE = 1232
_PORT = 53


class UpstreamFailed(Exception):
    """No upstream resolver gave a usable reply; the text names them and the reasons."""


def parse_upstream(text: str) -> Address:
    """``10.0.0.1``, ``10.0.0.1:5353``, ``fd00::1`` or ``[fd00::1]:5353``."""
    host, port = text.strip(), str(_PORT)
    if host.startswith("["):
        host, bracket, rest = host[1:].partition("]")
        port = (rest.removeprefix(":") or port) if bracket else ""
    elif host.count(":") == 1:
        host, port = host.split(":")
    try:
        return str(ipaddress.ip_address(host)), _port(port)
    except ValueError:
        raise ValueError(f"not the address of an upstream resolver: {text!r}") from None


def _port(text: str) -> int:
    number = int(text)
    if not 0 < number < 65536:
        raise ValueError(text)
    return number


def system_upstreams(path: Path) -> tuple[Address, ...]:
    """The name servers of a resolv.conf; none if there is no such file."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return ()
    servers = (line.split() for line in lines)
    return tuple(
        parse_upstream(words[1].partition("%")[0]) for words in servers if words[:1] == ["nameserver"] and words[1:]
    )


class UpstreamResolver:
    """Asks over UDP, and over TCP if the reply was truncated; after a failure it probes until there is an answer."""

    def __init__(self, address: Address, *, timeout: float, most_failures: int, probe_seconds: float) -> None:
        self.address = address
        self.failures = 0
        self._timeout = timeout
        self._most_failures = most_failures
        self._probe_seconds = probe_seconds
        self._probe: asyncio.Task[None] | None = None

    @property
    def healthy(self) -> bool:
        return self.failures < self._most_failures

    async def ask(self, question: Question, *, flags: int, dnssec_ok: bool) -> bytes:
        """The reply to a question; raises :class:`UpstreamFailed`."""
        try:
            reply = await self._ask(question, flags, dnssec_ok=dnssec_ok, edns=True)
            if reply[3] & 15 in (Rcode.FORMERR, Rcode.NOTIMP):
                # Servers without EDNS support answer like this: ask again without EDNS.
                reply = await self._ask(question, flags, dnssec_ok=False, edns=False)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as problem:
            self._failed()
            host, port = self.address
            raise UpstreamFailed(f"{host}:{port}: {problem or type(problem).__name__}") from problem
        self.failures = 0
        return reply

    async def close(self) -> None:
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.gather(self._probe, return_exceptions=True)

    async def _ask(self, question: Question, flags: int, *, dnssec_ok: bool, edns: bool) -> bytes:
        ident = secrets.randbits(16)
        header = wire.HEADER.pack(ident, flags, 1, 0, 0, 1 if edns else 0)
        packet = header + wire.question_bytes(question)
        if edns:
            packet += struct.pack("!BHHIH", 0, Type.OPT, _EDNS_SIZE, 0x8000 if dnssec_ok else 0, 0)
        matches = _matcher(ident, question)
        async with asyncio.timeout(self._timeout):
            reply = await self._exchange_datagrams(packet, matches)
        if int.from_bytes(reply[2:4], "big") & wire.TC:
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._exchange_stream(packet, matches)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as problem:
                log.debug("%s:%s does not answer over TCP: %s", *self.address, problem)
        return reply

    async def _exchange_datagrams(self, packet: bytes, matches: Callable[[bytes], bool]) -> bytes:
        """Use a new socket for every question: a random port, beside the random id, makes replies hard to forge."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_datagram_endpoint(lambda: _Exchange(matches), remote_addr=self.address)
        try:
            transport.sendto(packet)
            return await protocol.reply
        finally:
            transport.close()

    async def _exchange_stream(self, packet: bytes, matches: Callable[[bytes], bool]) -> bytes:
        reader, writer = await asyncio.open_connection(*self.address)
        try:
            writer.write(len(packet).to_bytes(2, "big") + packet)
            while True:
                length = int.from_bytes(await reader.readexactly(2), "big")
                reply = await reader.readexactly(length)
                if matches(reply):
                    return reply
        finally:
            writer.close()

    # --- health ------------------------------------------------------------------------------------

    def _failed(self) -> None:
        self.failures += 1
        if self._probe is None or self._probe.done():
            self._probe = asyncio.get_running_loop().create_task(self._until_well(), name=f"probe of {self.address[0]}")

    async def _until_well(self) -> None:
        root = Question((), (), Type.NS)
        while self.failures:
            await asyncio.sleep(self._probe_seconds)
            try:
                await self._ask(root, wire.RD, dnssec_ok=False, edns=False)
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                self.failures += 1
            else:
                self.failures = 0


class _Exchange(asyncio.DatagramProtocol):
    """Waits for the matching reply and ignores all others, which may be forged."""

    def __init__(self, matches: Callable[[bytes], bool]) -> None:
        self.reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._matches = matches

    def datagram_received(self, data: bytes, addr: object) -> None:
        if not self.reply.done() and self._matches(data):
            self.reply.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(exc)


def _matcher(ident: int, question: Question) -> Callable[[bytes], bool]:
    def matches(reply: bytes) -> bool:
        if len(reply) < 12 or int.from_bytes(reply[:2], "big") != ident or not reply[2] & 0x80:
            return False
        if reply[4:6] != b"\0\1":
            # Some servers answer with only an rcode if they cannot parse a query.
            return reply[4:6] == b"\0\0" and reply[3] & 15 != Rcode.NOERROR
        expected = wire.question_bytes(question).lower()
        return reply[12 : 12 + len(expected)].lower() == expected

    return matches
