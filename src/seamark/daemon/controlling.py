"""The controllers of a daemon, in parts that fail and start again on their own, and the election of who runs them.

Each part has a manager of its own on shared informers, so what is derived from objects is built anew with the part.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.access.leader import LeaderElection
from seamark.api.certificates import Authority
from seamark.api.renewal import Renewal
from seamark.api.server import ApiServer
from seamark.config import Config
from seamark.controllers.housekeeping.standalone import add_cleaning, add_housekeeping
from seamark.controllers.identity.controllers import add_identity
from seamark.daemon.requirements import host_name
from seamark.kinds.resource import NODES, SERVICES
from seamark.kinds.service.allocation import address_in
from seamark.metrics import Registry
from seamark.rules.objects.service import Service
from seamark.runtime.manager import Manager
from seamark.runtime.supervisor import Part, Started, Supervisor, at_once
from seamark.store.opening import is_shared

if TYPE_CHECKING:
    from seamark.nodes.running.hosting import Attach, Hosting

# The user name with which shared informers read.
INFORMERS = "informers"

# Where there are nodes, what schedules Pods to them.  In one process with the nodes it is a part of theirs.
SCHEDULER = "scheduler"

# What a worker runs rather than the main process, if there are workers: it needs nothing but the API.  Kubelets stay
# with the store, so that the work is shared: for a Pod of a Deployment, those two do about as much as these.
MOVABLE = frozenset({"controllers", "surroundings", "discovery", SCHEDULER})


def moved(config: Config, components: Set[str]) -> Set[str]:
    """The components that a worker runs rather than the main process.

    None on a store that other servers share: there the elected leader runs them all, and one process has its lease.
    """
    if config.api.workers == 1 or is_shared(config.store_url):
        return frozenset()
    return with_scheduler(components) & MOVABLE


def with_scheduler(components: Set[str]) -> Set[str]:
    return components | {SCHEDULER} if "nodes" in components else components


def informing(supervisor: Supervisor, name: str, informers: Informers) -> Part:
    """A part that runs informers.  An informer retries by itself, so its last error is shown as the part's."""
    return supervisor.part(name, at_once(informers.run), lambda: informers.problem)


async def _never() -> None:
    await asyncio.Event().wait()


class Controlling:
    """Makes the parts that control one cluster: discovery, workloads, identities, simulated nodes and cleaning."""

    def __init__(
        self,
        config: Config,
        components: Set[str],
        *,
        api: ApiServer,
        authority: Authority,
        renewal: Renewal,
        supervisor: Supervisor,
        metrics: Registry,
        attach: Attach | None = None,
    ) -> None:
        self._config = config
        self._components = components
        self._api = api
        self._authority = authority
        self._renewal = renewal
        self._supervisor = supervisor
        self._metrics = metrics
        self._attach = attach  # given if Pods run as processes

    def election(self) -> Part:
        """For servers that share a store: a part that runs the controllers while this server is the elected leader."""
        settings = self._config.election
        identity = settings.identity or f"{host_name()}_{os.getpid()}_{secrets.token_hex(4)}"

        async def stand() -> None:
            election = LeaderElection(
                self._api.cluster("leader-election"),
                namespace=settings.namespace,
                name=settings.name,
                identity=identity,
                timing=settings.timing,
            )
            # A new leader lists everything again, to be certain that it sees all that the last leader wrote.
            await election.run(partial(self.run, "leader-informers"))

        return self._supervisor.part("election", at_once(stand))

    async def run(self, name: str) -> None:
        """Run all parts on informers of their own, a part of this name, until cancelled."""
        informers = Informers(self._api.cluster(INFORMERS), metrics=self._metrics)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(informing(self._supervisor, name, informers).run())
            try:
                await self._supervisor.run(*self.parts(informers))
            finally:
                reading.cancel()  # after the controllers, which may still handle a key

    def parts(self, informers: Informers) -> list[Part]:
        parts: list[Part] = []
        if "controllers" in self._components:
            parts.append(self._managed("controllers", informers, self._add_housekeeping, self._renewal.replaced))
            if self._config.profile == "full":
                parts.append(self._managed("identity", informers, self._add_identity, self._renewal.replaced))
            parts.append(self._supervisor.part("node-ports", at_once(self._repair_ports)))
        if "discovery" in self._components:
            from seamark.controllers.discovery.discovery import add_discovery

            settings = self._config.discovery
            which = [each for each in settings.controllers if each != "why"]
            discovery = partial(add_discovery, cluster_for=self._api.cluster, which=which, settings=settings)
            parts.append(self._managed("discovery", informers, discovery))
            if "why" in settings.controllers:
                parts.append(self._supervisor.part("why", at_once(self._keep_events)))
        if "nodes" in self._components and (self._config.nodes.count or self._api.cache.of(NODES).entries):
            parts.append(self._managed("nodes", informers, self._add_nodes))
        elif SCHEDULER in self._components and self._config.nodes.count:
            parts.append(self._managed(SCHEDULER, informers, self._add_scheduler))
        if "controllers" in self._components:
            # Last, to share the informers of the others.
            clean = partial(
                add_cleaning, cluster_for=self._api.cluster, kinds=self._api.kinds, foreign=self._api.aggregation
            )
            parts.append(self._managed("cleaning", informers, clean))
        return parts

    def _managed(
        self,
        name: str,
        informers: Informers,
        add: Callable[[Manager], asyncio.Event | None],
        until: Callable[[], Awaitable[object]] = _never,
    ) -> Part:
        """A part that runs controllers.  ``add`` adds them to a manager, and may return when they are ready.

        When ``until`` returns, something has changed that they were made with, and they are made anew.
        """

        async def manage(started: Started) -> None:
            while True:
                manager = Manager(informers, metrics=self._metrics)
                ready = add(manager) or manager.ready
                async with asyncio.TaskGroup() as tasks:
                    working = tasks.create_task(manager.work(), name=name)
                    await ready.wait()
                    started()
                    await until()
                    working.cancel()

        return self._supervisor.part(name, manage)

    def _add_housekeeping(self, manager: Manager) -> None:
        around = self._config.surroundings
        if "surroundings" not in self._components:
            around = around.bare()
        add_housekeeping(manager, self._api.cluster, around, authority=self._authority.ca_pem.decode())

    def _add_identity(self, manager: Manager) -> None:
        add_identity(
            manager,
            self._api.cluster,
            issue=self._api.accounts.issue_legacy,
            sign=self._authority.sign,
            authority=self._authority.ca_pem.decode(),
        )

    def _add_nodes(self, manager: Manager) -> asyncio.Event | None:
        from seamark.nodes.simulated.simulation import add_nodes

        hosting = None if self._attach is None else self._hosting
        cluster, settings = self._api.cluster("nodes"), self._config.nodes
        schedules = SCHEDULER in self._components
        simulation = add_nodes(manager, cluster, settings, hosting=hosting, schedules=schedules)
        return None if simulation is None else simulation.ready

    def _add_scheduler(self, manager: Manager) -> None:
        from seamark.nodes.simulated.simulation import add_scheduler

        add_scheduler(manager, self._api.cluster("nodes"), self._config.nodes)

    def _hosting(self, manager: Manager) -> Hosting:
        """What Pods that run need of this process."""
        from seamark.nodes.running.hosting import Hosting
        from seamark.nodes.running.streaming.pods import RunningPods

        config = self._config
        assert self._attach is not None
        cluster = self._api.cluster("kubelets")
        hosting = Hosting(
            cluster,
            services=manager.informers.of(SERVICES, as_=Service),
            events=manager.recorder(cluster, "kubelet"),
            clock=manager.clock,
            settings=config.pods,
            nodes=config.nodes,
            folder=Path(config.data_dir).absolute() / "pods",
            domain=config.cluster_domain,
            dns=[address_in(config.network.ranges[0], 10)],
            attach=self._attach,
        )
        self._api.connecting.pods = RunningPods(hosting, (*config.nodes.pod_ranges, *config.nodes.node_ranges))
        return hosting

    async def _keep_events(self) -> None:
        from seamark.why.telling.notices import keep_events

        await keep_events(self._api.cluster("why"))

    async def _repair_ports(self) -> None:
        name = "portallocator-repair-controller"
        recorder = EventRecorder(self._api.cluster(name), component=name)
        try:
            await self._api.port_repair(recorder).run()
        finally:
            await recorder.stop()
