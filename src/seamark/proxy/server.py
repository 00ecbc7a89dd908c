"""The proxy of one node: an engine that follows a cluster, with health and metrics as kube-proxy has them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from seamark.access.informers import Informers
from seamark.metrics import Registry
from seamark.proxy.engine import Engine, Report, Unsupported, Update
from seamark.proxy.feed import RouteFeed
from seamark.proxy.health import Health, HealthChecks
from seamark.proxy.pages import NOT_FOUND, Page, PageServer
from seamark.proxy.settings import ProxySettings
from seamark.rules.routing.surroundings import Surroundings, ThisNode
from seamark.settings import parse_listen


class ProxyServer:
    """Runs an engine for one node, and tells how it is."""

    def __init__(
        self,
        informers: Informers,
        engine: Engine,
        settings: ProxySettings,
        *,
        node_name: str,
        metrics: Registry,
        report: Report = lambda problem: None,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._informers = informers
        around = Surroundings(
            ThisNode(node_name),
            cluster_cidrs=settings.cluster_cidrs,
            node_port_addresses=settings.node_port_addresses,
            masquerade_all=settings.masquerade_all,
        )
        self.health = Health(lambda: self.feed.waiting_since, lambda: self.feed.table.surroundings.node.eligible)
        self.feed = RouteFeed(
            self._informers,
            Watched(engine, HealthChecks(self.health, report), self.health, metrics, settings.mode),
            around,
            period=settings.sync_period,
            pods_of_node=settings.detect_local_mode == "NodeCIDR",
            metrics=metrics,
        )
        services = "Services that the proxy knows."
        metrics.measured("seamark_proxy_services", services, lambda: float(len(self.feed.table)))

    async def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Until cancelled.  Raises ``Unsupported`` where the engine cannot work, or a port is in use."""
        pages = [
            (self._settings.healthz, PageServer(self.health.page)),
            (self._settings.metrics, PageServer(self._page)),
        ]
        try:
            for listen, server in pages:
                if listen:
                    await _listen(server, listen)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._informers.run(), name="informers")
                group.create_task(self.feed.run(started), name="engine")
        finally:
            for _, server in pages:
                server.close()

    def _page(self, path: str) -> Page:
        plain = "text/plain; charset=utf-8"
        match path:
            case "/metrics":
                return Page(200, self._metrics.text().encode(), "text/plain; version=0.0.4; charset=utf-8")
            case "/healthz":
                return Page(200, b"ok", plain)
            case "/proxyMode":
                return Page(200, self._settings.mode.encode(), plain)
        return NOT_FOUND


class Watched:
    """An engine whose work is measured, and told to the health checks of Services."""

    def __init__(self, engine: Engine, checks: HealthChecks, health: Health, metrics: Registry, mode: str) -> None:
        self._engine = engine
        self._health = health
        self._checks = checks
        name = "kubeproxy_sync_proxy_rules"
        self._durations = metrics.histogram(f"{name}_duration_seconds", "How long it takes to carry changes out.")
        self._failures = metrics.counter(f"{name}_{mode}_sync_failures_total", "Changes that could not be carried out.")
        metrics.measured(f"{name}_{mode}_rules", "Rules, elements or listeners.", lambda: float(engine.rules))
        metrics.measured(
            f"{name}_last_timestamp_seconds", "When changes were last carried out.", lambda: health.updated
        )

    @property
    def rules(self) -> int:
        return self._engine.rules

    async def start(self) -> None:
        await self._engine.start()

    async def apply(self, update: Update) -> None:
        began = time.perf_counter()
        try:
            await self._engine.apply(update)
        except Exception:
            self._failures.add()
            raise
        await self._checks.apply(update)
        self._health.updated = time.time()
        if update.routes:
            self._durations.observe(time.perf_counter() - began)

    async def close(self) -> None:
        self._checks.close()
        await self._engine.close()


async def _listen(server: PageServer, listen: str) -> None:
    where = parse_listen(listen)
    try:
        await server.start([host for host, _ in where], where[0][1])
    except OSError as error:
        raise Unsupported(f"cannot listen on {listen}: {error.strerror or error}") from error
