"""Answers over UDP: reads all waiting datagrams whenever the event loop reports that there are some.

Datagrams are read and sent in batches on Linux (``sockets.mmsg``), elsewhere one by one.  Both look each query up in
the ready answers first; for most queries that is all that happens.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from functools import partial

from seamark.dns.responder import Reply, Responder
from seamark.dns.sockets import mmsg

log = logging.getLogger(__name__)

# Batches to read before other work on the event loop, such as the informers', gets its turn.
_ROUNDS = 4
_RECEIVE_BUFFER = 4 * 1024 * 1024
_LONGEST_QUERY = mmsg.SLOT

Background = Callable[[Awaitable[None]], None]  # runs an awaitable in the background


def bind_udp(host: str, port: int, *, shared: bool) -> socket.socket:
    """A socket at this address; if ``shared``, several processes can bind one, and the kernel distributes clients."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


class UdpListener:
    """Answers the queries of one socket until :meth:`close`; ``failed`` is called if it can no longer be read."""

    def __init__(
        self, sock: socket.socket, responder: Responder, background: Background, *, failed: Callable[[OSError], None]
    ) -> None:
        self._sock = sock
        self._responder = responder
        self._background = background
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        wildcard = sock.getsockname()[0] in ("0.0.0.0", "::")
        if mmsg.available:
            if wildcard:
                _ask_for_destination(sock)
            self._batch = mmsg.Batch(sock, keep_source=wildcard)
            self._loop.add_reader(sock, self._drain_batches)
        else:
            self._loop.add_reader(sock, self._drain_singly)

    def close(self) -> None:
        self._loop.remove_reader(self._sock)
        self._sock.close()

    # --- in batches --------------------------------------------------------------------------------

    def _drain_batches(self) -> None:
        batch = self._batch
        for _ in range(_ROUNDS):
            try:
                count = batch.receive()
            except OSError as error:
                self._loop.remove_reader(self._sock)  # which would call this again and again
                self._failed(error)
                return
            if not count:
                return
            self._answer_batch(count)
            batch.renew(count)
            if count < mmsg.BATCH:
                return

    def _answer_batch(self, count: int) -> None:
        began = time.perf_counter()
        batch, plain = self._batch, self._responder.udp.ready.plain
        slots, lengths = batch.slots, batch.lengths
        for at in range(count):
            packet = slots[at][: lengths[at]].tobytes()
            entry = plain.get(packet[2:])
            if entry is None:
                self._answer_unready(at, packet)
                continue
            hits = entry.hits = entry.hits + 1
            batch.reply(at, packet[:2] + entry.forms[hits % entry.spread])
        unsent = batch.send()
        measures = self._responder.measures
        if unsent:
            measures.unsent.add(unsent)
        measures.took("udp", (time.perf_counter() - began) / count, count)

    def _answer_unready(self, at: int, packet: bytes) -> None:
        outcome = self._responder.try_to_respond(packet, self._responder.udp)
        if isinstance(outcome, bytes):
            self._batch.reply(at, outcome)
        elif isinstance(outcome, Awaitable):
            address, control = self._batch.sender(at)
            self._background(
                self._answer_later(outcome, partial(self._batch.send_alone, address=address, control=control))
            )

    # --- one by one --------------------------------------------------------------------------------

    def _drain_singly(self) -> None:
        plain = self._responder.udp.ready.plain
        for _ in range(_ROUNDS * mmsg.BATCH):
            try:
                packet, address = self._sock.recvfrom(_LONGEST_QUERY)
            except OSError:
                # Nothing waits, or the kernel reports that an earlier reply did not reach its client.
                return
            began = time.perf_counter()
            entry = plain.get(packet[2:])
            if entry is not None:
                hits = entry.hits = entry.hits + 1
                self._send_singly(packet[:2] + entry.forms[hits % entry.spread], address)
            else:
                outcome = self._responder.try_to_respond(packet, self._responder.udp)
                if isinstance(outcome, bytes):
                    self._send_singly(outcome, address)
                elif isinstance(outcome, Awaitable):
                    self._background(self._answer_later(outcome, partial(self._send_singly, address=address)))
            self._responder.measures.took("udp", time.perf_counter() - began)

    def _send_singly(self, data: bytes, address: tuple[str, int]) -> None:
        try:
            self._sock.sendto(data, address)
        except OSError:
            # The send buffer is full, or there is no route back to this client.
            self._responder.measures.unsent.add()

    # --- later -------------------------------------------------------------------------------------

    async def _answer_later(self, outcome: Awaitable[Reply], send: Callable[[bytes], None]) -> None:
        began = time.perf_counter()
        reply = await outcome
        if isinstance(reply, bytes) and self._sock.fileno() >= 0:
            try:
                send(reply)
            except OSError as problem:
                self._responder.measures.unsent.add()
                log.debug("a reply could not be sent: %s", problem)
        self._responder.measures.took("udp", time.perf_counter() - began)


def _ask_for_destination(sock: socket.socket) -> None:
    """Let the kernel report the destination address of each datagram."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    else:
        # IP_PKTINFO, which Python's socket module lacks.
        sock.setsockopt(socket.IPPROTO_IP, 8, 1)
