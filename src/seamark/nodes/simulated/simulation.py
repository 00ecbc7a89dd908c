"""Connects all parts of the simulated nodes: this is what ``seamark up --nodes 3`` runs.

    informers ──▶ roster ──▶ heartbeats ──▶ lifecycle ──▶ evictions
        │            └──────▶ kubelets                     orphans
        └──▶ scheduler

All parts react to informers and write through a ``Cluster``, like every other client.  Their state can be read from the
cluster, so a simulation may stop at any time and another one continues.

Events about problems are always written, those about healthy Pods (scheduled, pulled, created, started) up to a rate:
they cost more than the Pod itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from seamark.access.backoff import patiently
from seamark.access.cluster import Cluster
from seamark.kinds.resource import LEASES, NODES, PODS
from seamark.kinds.wellknown import NOT_READY_TAINT
from seamark.nodes.choosing import Choice
from seamark.nodes.running.hosting import Hosting
from seamark.nodes.running.kubelet import RunningKubelets
from seamark.nodes.scheduling.scheduler import Scheduler
from seamark.nodes.simulated import registration
from seamark.nodes.simulated.acceptance import Acceptance, Tenants
from seamark.nodes.simulated.evictions import Evictions
from seamark.nodes.simulated.heartbeats import Heartbeats
from seamark.nodes.simulated.kubelet import Kubelets
from seamark.nodes.simulated.lifecycle import MANAGER, Lifecycle, Silence
from seamark.nodes.simulated.node_objects import SIMULATED, unannounced
from seamark.nodes.simulated.orphans import Orphans
from seamark.nodes.simulated.registration import Registrations
from seamark.nodes.simulated.roster import Roster
from seamark.nodes.simulated.settings import NodeSettings
from seamark.rules.objects.node import Lease, Node
from seamark.rules.objects.pod import Pod
from seamark.runtime.following import Derived
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

MakeHosting = Callable[[Manager], Hosting]


def add_scheduler(manager: Manager, cluster: Cluster, settings: NodeSettings) -> None:
    """Add the scheduler alone, for simulated nodes in another process."""
    manager.add(Scheduler(manager, cluster, settings.paced()))


def add_nodes(
    manager: Manager,
    cluster: Cluster,
    settings: NodeSettings,
    *,
    hosting: MakeHosting | None = None,
    schedules: bool,
) -> Simulation | None:
    """Add the simulated nodes to the manager.  If the count is 0, remove the Nodes of an earlier run.

    ``schedules`` is false if the scheduler runs in another process.
    """
    if not settings.count:

        async def dismiss() -> None:
            await patiently(lambda: registration.dismiss_all(cluster, settings), clock=manager.clock)

        manager.beside("removal of simulated nodes", dismiss)
        return None
    return Simulation(manager, cluster, settings.paced(), hosting, schedules=schedules)


class Simulation(Derived):
    """The simulated nodes of one process.  ``ready`` is set once the Nodes are ready."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        settings: NodeSettings,
        hosting: MakeHosting | None = None,
        *,
        schedules: bool = True,
    ) -> None:
        super().__init__("simulated nodes")
        self.ready = asyncio.Event()
        self._awaited = set(settings.names)  # Nodes that are not ready yet
        self._cluster = cluster
        self._settings = settings
        self._clock = manager.clock
        informers = manager.informers
        self.pods = pods = informers.of(PODS, as_=Pod)
        self.nodes = nodes = self.watch(informers.of(NODES, as_=Node), self._node_changed)
        leases = informers.of(LEASES, as_=Lease)
        events = manager.recorder(cluster, MANAGER)
        self.roster = Roster()
        self._hosting = hosting(manager) if hosting is not None else None
        self._system = self._hosting.system if self._hosting is not None else SIMULATED
        self._registrations = Registrations(manager, cluster, settings, self._system)
        self.scheduler: Scheduler | Tenants
        self.scheduler = Scheduler(manager, cluster, settings) if schedules else Tenants(pods, nodes)
        acceptance = Acceptance(pods, lambda: self.scheduler.occupancy)
        self.kubelets = self._kubelets(manager, acceptance)
        self._heartbeats = Heartbeats(manager, cluster, roster=self.roster, settings=settings)
        silence = Silence(
            manager,
            cluster,
            pods=pods,
            nodes=nodes,
            settings=settings,
            events=events,
            alive=lambda node: lifecycle.alive(node),
        )
        lifecycle = Lifecycle(
            manager,
            cluster,
            nodes=nodes,
            leases=leases,
            settings=settings,
            events=events,
            died=silence.died,
            late=self._heartbeats.late,
        )
        evictions = Evictions(manager, cluster, pods=pods, nodes=nodes, settings=settings, events=events)
        orphans = Orphans(manager, cluster, pods=pods, nodes=nodes, settings=settings)
        manager.add(
            self,  # first, because the others look up a changed Node in the roster
            self._registrations,
            self._heartbeats,
            lifecycle,
            silence,
            self.scheduler,
            *self.kubelets,
            evictions,
            orphans,
            first=self._register,
        )

    def _kubelets(self, manager: Manager, acceptance: Acceptance) -> list[Kubelets | RunningKubelets]:
        """Those of simulated Pods, and where Pods run on this machine, those of Pods that do."""
        hosting, cluster, settings = self._hosting, self._cluster, self._settings
        choice = None if hosting is None else Choice(hosting.usual)
        simulated = Kubelets(
            manager,
            cluster,
            pods=self.pods,
            roster=self.roster,
            settings=settings,
            acceptance=acceptance,
            choice=choice,
        )
        if hosting is None or choice is None:
            return [simulated]
        running = RunningKubelets(
            manager,
            cluster,
            pods=self.pods,
            roster=self.roster,
            hosting=hosting,
            acceptance=acceptance,
            choice=choice,
            settings=settings,
        )
        manager.beside("machine", hosting.run)
        return [simulated, running]

    async def _register(self) -> None:
        if self._hosting is not None:
            await self._hosting.ready.wait()
        await patiently(
            lambda: registration.register(self._cluster, self._settings, self._system, now=self._clock.time()),
            clock=self._clock,
        )

    def reset(self) -> None:
        self.roster.retain(self.nodes.keys())

    def _node_changed(self, name: Key, old: Node | None, new: Node | None) -> None:
        self._note_whether_ready(name, new)
        if new is None:
            self.roster.remove(name)
            return
        was_running = (before := self.roster.get(name)) is not None and before.running
        member, another = self.roster.put(new)
        if new.simulated and (member is None or unannounced(new)):
            self._registrations.queue.add(name)
        if member is not None and (another or member.running != was_running):
            for each in self.kubelets:
                each.node_changed(member, new=another)
        if member is not None:
            self._heartbeats.node_changed(member)

    def _note_whether_ready(self, name: Key, node: Node | None) -> None:
        if self.ready.is_set():
            return
        if node is not None and _settled(node):
            self._awaited.discard(name)
        elif (number := self._settings.number(name)) is not None and 1 <= number <= self._settings.count:
            self._awaited.add(name)
        if not self._awaited:
            self.ready.set()


def _settled(node: Node) -> bool:
    """Whether the node takes Pods, or is switched off."""
    if not node.simulated or node.stopped:
        return True
    return node.ready and not any(taint.key == NOT_READY_TAINT for taint in node.spec.taints)
