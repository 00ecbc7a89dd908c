"""What load balancers and probes are told: the health of the proxy, and of Services with ``healthCheckNodePort``."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from seamark.kinds.values.addresses import Family
from seamark.proxy.engine import Update
from seamark.proxy.pages import NOT_FOUND, Page, PageServer
from seamark.rules.routing.model import HealthCheck
from seamark.rules.routing.surroundings import PRIMARY, Surroundings

log = logging.getLogger(__name__)

_LATE = 60.0  # seconds for which changes may wait before the proxy is not healthy


class Health:
    """Whether changes are carried out in time.  A proxy without any changes to make is healthy."""

    def __init__(self, waiting_since: Callable[[], float | None], eligible: Callable[[], bool]) -> None:
        self.updated = 0.0  # when changes were last carried out; 0: never yet
        self._waiting_since = waiting_since
        self._eligible = eligible

    @property
    def healthy(self) -> bool:
        since = self._waiting_since()
        return bool(self.updated) and (since is None or time.monotonic() - since < _LATE)

    def page(self, path: str) -> Page:
        if path not in ("/healthz", "/livez"):
            return NOT_FOUND
        healthy = self.healthy
        updated = _shown(self.updated)
        found: dict[str, object] = {"lastUpdated": updated, "currentTime": _shown(time.time()), "healthy": healthy}
        found["status"] = {each: {"lastUpdated": updated, "healthy": healthy} for each in ("IPv4", "IPv6")}
        if path == "/healthz":
            found["nodeEligible"] = eligible = self._eligible()
            healthy = healthy and eligible
        return Page(200 if healthy else 503, msgspec.json.encode(found))


def _shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC")


class HealthChecks:
    """One small server for each ``healthCheckNodePort`` and family, on the addresses that serve node ports."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._around: Surroundings | None = None
        self._servers: dict[tuple[str, int, Family], PageServer] = {}
        self._counts: dict[tuple[str, int, Family], int] = {}
        self._of: dict[str, tuple[HealthCheck, ...]] = {}

    async def apply(self, update: Update) -> None:
        around = update.surroundings
        moved = self._around is not None and around.node_port_networks != self._around.node_port_networks
        self._around = around
        if update.everything:
            self._of = {}
        for service, routes in update.routes.items():
            self._of.pop(service, None)
            if routes is not None and routes.health_checks:
                self._of[service] = routes.health_checks
        self._counts = {
            (service, check.port, check.family): check.local_endpoints
            for service, checks in self._of.items()
            for check in checks
        }
        for key in [key for key in self._servers if key not in self._counts or moved]:
            self._servers.pop(key).close()
        for key in self._counts.keys() - self._servers.keys():
            await self._open(key, around)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()

    async def _open(self, key: tuple[str, int, Family], around: Surroundings) -> None:
        service, port, family = key
        if PRIMARY in around.node_port_addresses:
            hosts = [each for each in around.node.addresses if (":" in each) == (family == "IPv6")]
            server = PageServer(lambda path: self._page(key))
        else:
            hosts = ["::" if family == "IPv6" else "0.0.0.0"]
            server = PageServer(lambda path: self._page(key), admits=around.serves_node_ports)
        try:
            if hosts:
                await server.start(hosts, port)
                self._servers[key] = server
        except OSError as error:
            log.warning("health check of %s cannot be served on port %d: %s", service, port, error.strerror or error)

    def _page(self, key: tuple[str, int, Family]) -> Page:
        namespace, _, name = key[0].partition("/")
        count, healthy = self._counts.get(key, 0), self._health.healthy
        body = {
            "service": {"namespace": namespace, "name": name},
            "localEndpoints": count,
            "serviceProxyHealthy": healthy,
        }
        headers = {"X-Load-Balancing-Endpoint-Weight": str(count)}
        return Page(200 if count and healthy else 503, msgspec.json.encode(body), headers=headers)
