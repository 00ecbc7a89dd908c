"""``seamark why --serve``: metrics about Services for Prometheus, from a look at every change."""

from __future__ import annotations

import argparse
import asyncio
import logging
from typing import TYPE_CHECKING

from seamark.cli import event_loop
from seamark.cli.failure import Failure
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.kinds.values.hosts import bracketed

if TYPE_CHECKING:
    from seamark.access.cluster import Cluster
    from seamark.access.kubeconfig import Connection
    from seamark.access.status import Page

log = logging.getLogger(__name__)


async def serve(options: argparse.Namespace, cluster: Cluster, connection: Connection) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    from seamark.access.status import StatusServer
    from seamark.settings import parse_listen

    try:
        listen = parse_listen(options.serve)
    except ValueError as error:
        raise Failure(f"--serve: {error}", 2) from error
    scope = "" if options.all_namespaces else options.namespace or connection.namespace
    exporter = Exporter(cluster, scope)
    server = StatusServer(ready=exporter.ready, metrics=exporter.metrics)
    try:
        await server.start([host for host, _ in listen], listen[0][1])
    except OSError as error:
        raise Failure(f"cannot serve metrics on {options.serve}: {error.strerror or error}") from error
    ended = event_loop.told_to_end()
    looking = asyncio.create_task(exporter.keep_looking())
    try:
        host, port = server.address
        print(f"metrics      http://{bracketed(host)}:{port}/metrics of {connection.server}", flush=True)
        await ended.wait()
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await server.close()
    return 0


class Exporter:
    """Looks at Services again and again, and keeps what the last look found."""

    def __init__(self, cluster: Cluster, namespace: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._clock = clock
        self._text = ""
        self._problem = "it has not looked yet"

    async def keep_looking(self) -> None:
        """Look until cancelled; while the cluster cannot be read, it is not ready and keeps what it knew."""
        from seamark.errors import ApiError
        from seamark.why.observe import CannotLook
        from seamark.why.telling.following import PACE, surveys
        from seamark.why.telling.gauges import metrics_text

        while True:
            try:
                async for survey in surveys(self._cluster, self._namespace, clock=self._clock):
                    self._text, self._problem = metrics_text(survey, self._clock.time()), ""
            except (ApiError, CannotLook) as error:
                self._problem = str(error)
                log.warning("Services were not looked at: %s", error)
            await self._clock.sleep(PACE)

    async def ready(self) -> Page:
        return (503, f"{self._problem}\n") if self._problem else (200, "OK\n")

    async def metrics(self) -> str:
        return self._text
