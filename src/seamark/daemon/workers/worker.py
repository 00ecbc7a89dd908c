"""A worker: an API server whose store and new connections come from the main process.

The first worker also runs the controllers.  They write through this process's API server, and so through the channel to
the main process: a worker that has lost it can write no more, before another one takes its place.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Mapping, Set
from pathlib import Path

import msgspec

from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.api.certificates import Authority
from seamark.api.http.documents import Report
from seamark.api.renewal import Renewal
from seamark.api.server import ApiServer
from seamark.channel import Channel, Handler
from seamark.config import Config
from seamark.daemon.controlling import Controlling, moved
from seamark.daemon.requirements import opened_store, serving_tls
from seamark.daemon.serving import api_server
from seamark.daemon.workers.forking import Birth
from seamark.metrics import Exposed, Registry
from seamark.runtime.supervisor import Supervisor
from seamark.store.opening import is_shared
from seamark.store.protocol import Store
from seamark.store.relayed import Board, RelayedStore

log = logging.getLogger(__name__)

TO_MAIN, TO_WORKER = "main", "worker"  # topics of the channel
READY, TELL, STOP, REPORT = b"ready", b"tell", b"stop", b"report"
FIRST = 1  # the number of the worker that runs the controllers, too
AT_ONCE = 64  # connections taken in one turn of the event loop


class Told(msgspec.Struct, frozen=True):
    """What a worker says of itself: what is wrong with its parts, and its metrics."""

    problems: Mapping[str, str | None]
    metrics: Exposed


class Worker(Handler):
    """One worker; it answers what the main process asks of it."""

    def __init__(self, config: Config, board: Board, birth: Birth, components: Set[str] = frozenset()) -> None:
        """``components`` are those of the whole daemon."""
        self._config = config
        self._board = board
        self._birth = birth
        self._components = moved(config, components) if birth.number == FIRST else frozenset[str]()
        self._metrics = Registry()
        self.supervisor = Supervisor(metrics=self._metrics)
        self._problems: Mapping[str, str | None] = {}  # of the main process's parts, as it last told
        self._taken = 0
        self._ready, self._stopping, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._connections = birth.connections
        self.api: ApiServer
        self.renewal: Renewal

    async def run(self) -> None:
        """Serve until the main process says stop, or is gone."""
        self._channel = await Channel.over(self._birth.channel, {TO_WORKER: self})
        store = await self._store()
        keys = Path(self._config.data_dir) / "pki"
        authority = Authority(keys)
        self.api = api_server(
            self._config,
            store,
            authority,
            FrontProxy(keys),
            metrics=self._metrics,
            readiness=lambda: self._problems,
            report=self._report,
            supervisor=self.supervisor,
        )
        try:
            await self.api.load()
            await self._serve(authority)
        finally:
            self._connections.close()
            await store.close()
            self._ended.set()
            if self._stopping.is_set():
                await self._channel.closed.wait()  # by the main process, once it has the answer
            await self._channel.close()

    async def _store(self) -> Store:
        if is_shared(self._config.store_url):
            return await opened_store(self._config.store_url)
        store = RelayedStore(self._channel, self._board)
        await store.open()
        return store

    async def _serve(self, authority: Authority) -> None:
        loop = asyncio.get_running_loop()
        settings = self._config.api
        tls = None if settings.plain_http else serving_tls(authority, settings)
        self.renewal = self._renewal(authority, tls)
        background = [loop.create_task(self.api.follow(), name="follow the store")]
        told = [loop.create_task(event.wait()) for event in (self._stopping, self._channel.closed)]
        control: asyncio.Task[None] | None = None
        try:
            await self.api.definitions.caught_up.wait()
            self._listener = self.api.take_connections(self._birth.address, tls)
            self._listener.connections.on_change = self._count
            background.append(loop.create_task(self._listener.sweep()))
            background.append(loop.create_task(self.renewal.follow()))
            self._connections.setblocking(False)
            loop.add_reader(self._connections, self._take)
            self._ready.set()
            if self._components:
                background.append(control := loop.create_task(self._control(authority), name="controllers"))
            done, _ = await asyncio.wait([*told, *background], return_when=asyncio.FIRST_COMPLETED)
            for task in done.difference(told):
                task.result()  # raises what it failed with
        finally:
            loop.remove_reader(self._connections)
            if control is not None:  # first, because the controllers write
                control.cancel()
                await asyncio.wait([control])
            await self.api.close()
            for task in (*told, *background):
                task.cancel()
            await asyncio.gather(*told, *background, return_exceptions=True)

    async def _control(self, authority: Authority) -> None:
        """Run the controllers that are this worker's."""
        control = Controlling(
            self._config,
            self._components,
            api=self.api,
            authority=authority,
            renewal=self.renewal,
            supervisor=self.supervisor,
            metrics=self._metrics,
        )
        await control.run("controllers-informers")

    def _renewal(self, authority: Authority, tls: ssl.SSLContext | None) -> Renewal:
        """Follows the certificates.  Our own is as if given, because the main process renews it."""
        settings = self._config.api
        certificate, key = authority.serving
        given = (settings.tls_certificate or str(certificate), settings.tls_key or str(key))

        async def tell() -> None:
            self.api.authenticator.dropped = self.renewal.dropped

        return Renewal(authority, tls, (), tell, given=given)

    # --- connections -------------------------------------------------------------------------------

    def _take(self) -> None:
        for _ in range(AT_ONCE):
            try:
                _, handed, _, _ = socket.recv_fds(self._connections, 1, 1)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                handed = []
            if not handed:
                asyncio.get_running_loop().remove_reader(self._connections)
                return
            self._taken += 1
            self._listener.take(socket.socket(fileno=handed[0]))
            self._count()

    def _count(self) -> None:
        """Tell the main process how many of the connections that it handed over have ended."""
        self._board.numbers[self._birth.number] = self._taken - self._listener.count

    # --- reports -----------------------------------------------------------------------------------

    async def _report(self) -> Report:
        """What all processes together are to be asked for; the main one knows."""
        report = msgspec.json.decode(await self._channel.ask(TO_MAIN, REPORT), type=Report)
        self._problems = report.problems
        return report

    async def answer(self, body: bytes) -> bytes:
        match body:
            case b"ready":
                await self._ready.wait()
                return b"%d" % os.getpid()
            case b"tell":
                metrics = self._metrics.exposed(worker=str(self._birth.number))
                return msgspec.json.encode(Told(self.supervisor.problems(), metrics))
            case _:
                self._stopping.set()
                await self._ended.wait()
                return b""
