"""Tells by Events on Services which of their places cannot be served."""

from __future__ import annotations

from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.kinds.resource import SERVICES
from seamark.proxy.engine import Problem
from seamark.rules.objects.service import Service

COMPONENT = "seamark-proxy"


class ProblemEvents:
    """Records the problems of a proxy.  Needs permission to create and patch Events."""

    def __init__(self, cluster: Cluster, informers: Informers, *, host: str = "") -> None:
        self._recorder = EventRecorder(cluster, component=COMPONENT, host=host)
        self._services = informers.of(SERVICES, as_=Service)

    def record(self, problem: Problem | None) -> None:
        """Tell a problem; None, the end of one, is not told: an Event becomes old by itself."""
        service = self._services.by_key(problem.service) if problem is not None else None
        if problem is not None and service is not None:
            about, message = Reference.of(SERVICES, service.metadata), f"{problem.text}; it is tried again"
            self._recorder.record(about, "Warning", reason=problem.reason, message=message)

    async def stop(self) -> None:
        await self._recorder.stop()
