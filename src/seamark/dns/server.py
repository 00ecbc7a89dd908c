"""The DNS server of one process: connects the zone that follows a cluster, the responder, and the sockets."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from itertools import chain

from seamark.access.cluster import Cluster
from seamark.access.informers import Informers
from seamark.access.status import Page, StatusServer
from seamark.dns.config import DnsConfig
from seamark.dns.forwarding.forward import Forwarder
from seamark.dns.measures import Measures
from seamark.dns.ready import ReadyAnswers
from seamark.dns.responder import Responder
from seamark.dns.sockets.addresses import Address, own_addresses
from seamark.dns.sockets.tcp import TcpListener, bind_tcp
from seamark.dns.sockets.udp import UdpListener, bind_udp
from seamark.dns.wire.transfer import ZoneTransfers
from seamark.dns.zone.answers import Authority
from seamark.dns.zone.feed import OwnerFed, ZoneFeed
from seamark.dns.zone.state import ClusterZone, Touched
from seamark.dns.zone.static import HOSTS_TTL, StaticRecords
from seamark.metrics import Registry
from seamark.runtime.workers import Expected
from seamark.settings import parse_listen

log = logging.getLogger(__name__)

_ATTEMPTS_AT_A_FREE_PORT = 20

Pair = tuple[socket.socket, socket.socket]  # UDP and TCP at one address


class ListenError(Expected):
    """An address cannot be listened on; the text says which and why, in one line."""


def bind(listen: Sequence[str], *, shared: bool = False) -> list[Pair]:
    """A UDP and a TCP socket for each address; port 0 becomes a port that is free for both."""
    pairs: list[Pair] = []
    try:
        for text in listen:
            for host, port in parse_listen(text):
                pairs.append(_bind_pair(host, port, shared=shared))
    except OSError as error:
        for sock in (sock for pair in pairs for sock in pair):
            sock.close()
        raise ListenError(f"cannot listen on {text}: {error.strerror or error}") from error
    return pairs


def _bind_pair(host: str, port: int, *, shared: bool) -> Pair:
    for _ in range(_ATTEMPTS_AT_A_FREE_PORT):
        udp = bind_udp(host, port, shared=shared)
        try:
            return udp, bind_tcp(host, udp.getsockname()[1], shared=shared)
        except OSError as error:
            udp.close()
            if port or error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, "no port is free for both UDP and TCP")


async def listen_status(status: StatusServer, listen: str) -> None:
    """Serve the status on this address, if there is one."""
    if not listen:
        return
    host, port = parse_listen(listen)[0]
    try:
        await status.start(host, port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error  # asyncio's own text repeats the address
        raise ListenError(f"cannot serve the status on {listen}: {reason}") from error


class DnsServer:
    """Answers queries from a cluster's state inside the block of :meth:`running`."""

    def __init__(
        self,
        config: DnsConfig,
        cluster: Cluster | None,
        *,
        informers: Informers | None = None,
        registry: Registry | None = None,
    ) -> None:
        """``informers`` are shared informers that the caller runs; without them the server runs its own.

        Without a cluster the caller fills ``zone`` and ``static`` itself, and tells ``forget`` what it changed.
        """
        self.config = config
        self.registry = registry or Registry()
        self.addresses: list[Address] = []
        self.zone = ClusterZone(pod_names=config.zone.endpoint_pod_names)
        self._own_informers: Informers | None = None
        keep = partial(ReadyAnswers, self.zone, entries=config.ready_answers, octets=config.ready_octets)
        self._ready_answers = (keep(), keep())
        self.feed: ZoneFeed | OwnerFed = OwnerFed()
        if cluster is not None:
            if informers is None:
                informers = self._own_informers = Informers(cluster, metrics=self.registry)
            self.feed = ZoneFeed(
                cluster,
                informers,
                self.zone,
                config.zone,
                touched=self.forget,
                cleared=self.forget_all,
                metrics=self.registry,
            )
        self.static = StaticRecords(config.hosts, ttl=HOSTS_TTL if cluster is not None else config.zone.ttl)
        self.listening = asyncio.Event()
        self._failure: asyncio.Future[None]  # done when a socket has failed
        self._background: set[asyncio.Future[None]] = set()
        self._datagrams: list[UdpListener] = []
        self._streams: list[TcpListener] = []
        self.status = StatusServer(ready=self._ready_page, metrics=self._metrics_page)
        self._measure()

    @asynccontextmanager
    async def running(self, pairs: Sequence[Pair] | None = None) -> AsyncIterator[DnsServer]:
        """Serve inside the block, on these sockets or on those that the configuration names."""
        pairs = bind(self.config.listen) if pairs is None else pairs
        self._failure = asyncio.get_running_loop().create_future()
        with ExitStack() as sockets:
            for sock in chain.from_iterable(pairs):
                sockets.enter_context(sock)
            self.addresses = [udp.getsockname()[:2] for udp, _ in pairs]
            forwarder = Forwarder(self.config.forward, self.registry, own_addresses=self.addresses)
            self.responder = self._responder(forwarder)
            async with asyncio.TaskGroup() as tasks:
                working = [
                    tasks.create_task(self.feed.run(), name="follow the cluster"),
                    tasks.create_task(self._listen(pairs), name="listen once there is something to say"),
                    tasks.create_task(self._fail(), name="notice a socket that failed"),
                ]
                if self._own_informers is not None:
                    working.append(tasks.create_task(self._own_informers.run(), name="informers of DNS"))
                try:
                    await listen_status(self.status, self.config.status)
                    yield self
                finally:
                    for task in [*working, *self._background]:
                        task.cancel()
                    self.feed.stop()
                    await self._stop_listening()
                    await forwarder.close()

    async def synced(self) -> None:
        """Return once the cluster's state is known and the server answers from it."""
        await self.feed.complete.wait()
        await self.listening.wait()

    def ready(self) -> Page:
        """The page for ``/ready``: 200 or 503, and a sentence that says why."""
        if not self.feed.synced:
            return 503, "the cluster's state is not known yet\n"
        lag = self.feed.lag
        if not lag:
            return 200, "OK\n"
        lost = lag > self.config.lost_after and self.config.ready_policy == "connected"
        return 503 if lost else 200, f"the API has been out of sight for {lag:.0f} s; answering from what is known\n"

    def metrics(self) -> str:
        self.responder.settle()
        return self.registry.text()

    # --- parts -------------------------------------------------------------------------------------

    def _responder(self, forwarder: Forwarder) -> Responder:
        zone = self.config.zone
        local = own_addresses(host for host, _ in self.addresses)
        authority = Authority(self.zone, zone, local_addresses=local)
        return Responder(
            authority,
            ready=self._ready_answers,
            measures=Measures(self.registry),
            synced=lambda: self.feed.synced,
            falls_through=zone.falls_through,
            static=self.static,
            upstream=forwarder,
            transfers=ZoneTransfers(authority, self.zone, self.config.transfer_to),
            shuffle=self.config.shuffle,
        )

    async def _listen(self, pairs: Sequence[Pair]) -> None:
        """Start to answer when the state is known; if that takes long, start with SERVFAIL.

        Until then queries wait in the sockets' buffers, so that a short restart causes no failures.
        """
        try:
            async with asyncio.timeout(self.config.sync_patience):
                await self.feed.complete.wait()
        except TimeoutError:
            log.warning("the cluster's state is not known yet: answering SERVFAIL until it is")
        await self.answer_at(pairs)
        self.listening.set()

    async def answer_at(self, pairs: Sequence[Pair]) -> None:
        """Answer on these sockets too."""
        config = self.config
        for udp, tcp in pairs:
            self._datagrams.append(UdpListener(udp, self.responder, self._later, failed=self._failed))
            stream = TcpListener(
                self.responder,
                self._later,
                connections=config.tcp_connections,
                per_client=config.tcp_connections_per_client,
                idle_seconds=config.tcp_idle_seconds,
            )
            self._streams.append(stream)
            await stream.start(tcp)

    def _failed(self, error: OSError) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    async def _fail(self) -> None:
        """Raise the error of a socket that can no longer be read."""
        await self._failure

    async def _stop_listening(self) -> None:
        for listener in self._datagrams:
            listener.close()
        for stream in self._streams:
            await stream.close()
        await self.status.close()

    def forget(self, touched: Touched) -> None:
        """Drop the ready answers that depend on these facts."""
        if touched:
            for ready in self._ready_answers:
                ready.forget(touched)

    def forget_all(self) -> None:
        """Drop all ready answers, because the zone or a static record changed."""
        for ready in self._ready_answers:
            ready.clear()

    def _later(self, work: Awaitable[None]) -> None:
        future = asyncio.ensure_future(work)
        self._background.add(future)
        future.add_done_callback(self._done)

    def _done(self, future: asyncio.Future[None]) -> None:
        self._background.discard(future)
        if not future.cancelled() and (problem := future.exception()) is not None:
            self.responder.measures.failed.add()
            log.error("a query could not be answered", exc_info=problem)

    # --- status ------------------------------------------------------------------------------------

    async def _ready_page(self) -> Page:
        return self.ready()

    async def _metrics_page(self) -> str:
        return self.metrics()

    def _measure(self) -> None:
        read = self.registry.measured
        read("seamark_dns_synced", "1 once the cluster's state is known.", lambda: float(self.feed.synced))
        read("seamark_dns_api_lag_seconds", "For how long the API has been out of sight.", lambda: self.feed.lag)
        read("seamark_dns_services", "Services known.", lambda: float(len(self.zone.services)))
        read("seamark_dns_serial", "The zone's serial: the time of its last change.", lambda: float(self.zone.serial))
        read(
            "seamark_dns_ready_answers",
            "Answers kept as bytes.",
            lambda: float(sum(map(len, self._ready_answers))),
        )
