"""What load balancers and probes are told: the health of the proxy, and of Services with ``healthCheckNodePort``."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from seamark.kinds.values.addresses import Family
from seamark.proxy.engine import Problem, Report, Update, reason_of
from seamark.proxy.pages import NOT_FOUND, Bind, Page, PageServer
from seamark.rules.routing.model import HEALTH_CHECK_NOT_SERVED, HealthCheck
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


_Key = tuple[str, int, Family]  # a Service, its port for health checks, and one of its families


class HealthChecks:
    """One small server for each ``healthCheckNodePort`` and family, on the addresses that serve node ports.

    A port that cannot be opened is told once and tried again with every update, so at the latest with the next look at
    the rules.
    """

    def __init__(self, health: Health, report: Report = lambda problem: None, *, bind: Bind | None = None) -> None:
        self._health = health
        self._report = report
        self._bind = bind
        self._around: Surroundings | None = None
        self._servers: dict[_Key, PageServer] = {}
        self._counts: dict[_Key, int] = {}
        self._of: dict[str, tuple[HealthCheck, ...]] = {}
        self._missing: dict[_Key, str] = {}  # which cannot be opened, and why

    async def apply(self, update: Update) -> None:
        around = update.surroundings
        moved = self._around is not None and around.node_port_networks != self._around.node_port_networks
        self._around = around
        if update.everything:
            self._of, self._counts = {}, {}
        for service, routes in update.routes.items():
            for check in self._of.pop(service, ()):
                del self._counts[service, check.port, check.family]
            if routes is not None and routes.health_checks:
                self._of[service] = routes.health_checks
                for check in routes.health_checks:
                    self._counts[service, check.port, check.family] = check.local_endpoints
        if moved:
            self.close()
        for key in self._servers.keys() - self._counts.keys():
            self._servers.pop(key).close()
        for key in self._missing.keys() - self._counts.keys():
            self._solved(key)
        for key in self._counts.keys() - self._servers.keys():
            await self._open(key, around)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()

    async def _open(self, key: _Key, around: Surroundings) -> None:
        service, port, family = key
        if PRIMARY in around.node_port_addresses:
            hosts = [each for each in around.node.addresses if (":" in each) == (family == "IPv6")]
            server = PageServer(lambda path: self._page(key), bind=self._bind)
        else:
            hosts = ["::" if family == "IPv6" else "0.0.0.0"]
            server = PageServer(lambda path: self._page(key), admits=around.serves_node_ports, bind=self._bind)
        try:
            if hosts:
                await server.start(hosts, port)
                self._servers[key] = server
            self._solved(key)
        except OSError as error:
            text = f"health-check port {port} cannot be served over {family}: {reason_of(error)}"
            if self._missing.get(key) != text:
                self._missing[key] = text
                log.warning("%s: %s; it is tried again", service, text)
                self._report(Problem(service, text, HEALTH_CHECK_NOT_SERVED))

    def _solved(self, key: _Key) -> None:
        if text := self._missing.pop(key, None):
            log.info("%s: no longer: %s", key[0], text)
            self._report(None)

    def _page(self, key: _Key) -> Page:
        namespace, _, name = key[0].partition("/")
        count, healthy = self._counts.get(key, 0), self._health.healthy
        body = {
            "service": {"namespace": namespace, "name": name},
            "localEndpoints": count,
            "serviceProxyHealthy": healthy,
        }
        headers = {"X-Load-Balancing-Endpoint-Weight": str(count)}
        return Page(200 if count and healthy else 503, msgspec.json.encode(body), headers=headers)
