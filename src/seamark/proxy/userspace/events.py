"""Tells by Events on Services which of their places cannot be served."""

from __future__ import annotations

from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.kinds.resource import SERVICES
from seamark.proxy.userspace.engine import Problem
from seamark.rules.objects.service import Service
from seamark.rules.routing.model import NOT_SERVED

COMPONENT = "seamark-proxy"


class ProblemEvents:
    """Records the problems of an engine.  Needs permission to create and patch Events."""

    def __init__(self, cluster: Cluster, informers: Informers, *, host: str = "") -> None:
        self._recorder = EventRecorder(cluster, component=COMPONENT, host=host)
        self._services = informers.of(SERVICES, as_=Service)

    def record(self, problem: Problem) -> None:
        service = self._services.by_key(problem.service)
        if service is not None:
            about = Reference.of(SERVICES, service.metadata)
            self._recorder.record(about, "Warning", reason=NOT_SERVED, message=f"{problem.text}; it is tried again")

    async def stop(self) -> None:
        await self._recorder.stop()
