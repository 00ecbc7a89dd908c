"""Runs the discovery controllers as a separate process, against any cluster, with leader election and status pages.

Of several processes one leads; the others wait for its lease and watch nothing, so that a second replica hardly costs
the API server anything.  A new leader lists everything again: only then is it certain to see all that the last leader
wrote, and to write nothing twice.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.access.leader import LeaderElection
from seamark.controllers.discovery.discovery import add_discovery
from seamark.controllers.settings import ALL, DiscoverySettings, ElectionSettings, Name
from seamark.kinds.resource import LEASES
from seamark.metrics import Registry, Value
from seamark.runtime.manager import Manager

log = logging.getLogger(__name__)

COMPONENT = "seamark-controllers"


class Readiness(msgspec.Struct, frozen=True):
    """Whether the process is ready, and one line about what it is doing."""

    ready: bool
    text: str


class ControllerProcess:
    """What ``seamark controllers`` runs.  Without ``election`` it starts at once, and must be the only process."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        which: Collection[Name] = ALL,
        settings: DiscoverySettings | None = None,
        election: ElectionSettings | None = None,
        beside: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
    ) -> None:
        """``beside`` is other work of the leader."""
        self.settled = asyncio.Event()  # set once this process works, or another process leads
        self.metrics = Registry()
        self._cluster = cluster
        self._which = tuple(which)
        self._beside = tuple(beside)
        self._settings = settings or DiscoverySettings()
        self._manager: Manager | None = None
        self._recorder = EventRecorder(cluster, component=COMPONENT)
        self._election: LeaderElection | None = None
        self._led: Value | None = None
        if election is not None:
            self._election = self._stand(election)
            # The name of this metric in client-go.
            status = "leader_election_master_status"
            self._led = self.metrics.gauge(status, "1 for the leader.", election.name, labels=("name",))
        self.metrics.measured(
            "seamark_controllers_lag_seconds",
            "For how long the API server has been out of sight.",
            lambda: self._manager.informers.lag if self._manager is not None else 0.0,
        )

    def _stand(self, asked: ElectionSettings) -> LeaderElection:
        lease = Reference(kind=LEASES.kind, name=asked.name, namespace=asked.namespace, api_version=LEASES.api_version)

        def elected(leader: str) -> None:
            if leader == identity:
                self._recorder.record(lease, "Normal", reason="LeaderElection", message=f"{identity} became leader")
            else:
                log.info("%s leads", leader)
                self.settled.set()

        identity = asked.identity or f"{socket.gethostname()}_{uuid4()}"
        return LeaderElection(
            self._cluster,
            namespace=asked.namespace,
            name=asked.name,
            identity=identity,
            timing=asked.timing,
            on_new_leader=elected,
        )

    # --- status --------------------------------------------------------------------------------------

    @property
    def leading(self) -> bool:
        """Whether this process is the one that works."""
        return self._election is None or self._election.leading

    @property
    def readiness(self) -> Readiness:
        working = self._manager is not None and self._manager.ready.is_set()
        if self._election is None:
            return Readiness(True, "at work") if working else Readiness(False, "the cluster is not known yet")
        if self._election.leading:
            return (
                Readiness(True, "leading") if working else Readiness(False, "leading, but not everything is known yet")
            )
        if self._manager is not None:
            return Readiness(False, "no longer leading, finishing what is under way")
        if self._election.leader:
            return Readiness(True, f"standing by: {self._election.leader} leads")
        return Readiness(False, "it is not known yet who leads")

    def metrics_text(self) -> str:
        if self._led is not None:
            self._led.set(1.0 if self.leading else 0.0)
        return self.metrics.text()

    # --- working -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work, or wait for the lease, until cancelled; then release it, so that another process need not wait."""
        if self._election is None:
            await self._work()
            return
        try:
            await self._election.run(self._work)
        finally:
            await self._recorder.stop()

    async def _work(self) -> None:
        manager = self._manager = Manager(Informers(self._cluster, metrics=self.metrics), metrics=self.metrics)
        add_discovery(manager, lambda _: self._cluster, which=self._which, settings=self._settings)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(manager.run(), name="discovery controllers")
                for work in self._beside:
                    tasks.create_task(work(), name=work.__name__)
                await manager.ready.wait()
                self.settled.set()
        finally:
            self._manager = None
