"""Simulated nodes, all together: what ``seamark up --nodes 3`` runs.

    informers ──▶ roster ──▶ heartbeats ──▶ lifecycle ──▶ evictions
        │            └──────▶ kubelets                     orphans
        └──▶ scheduler

Everything reacts to what the informers see and writes through the same ``Cluster`` as everybody else; nothing is known
that cannot be read back, so a simulation may end at any time and another one goes on.

Events tell of trouble only.  The four that a real cluster writes about every Pod that is well (scheduled, pulled,
created, started) would cost more than the Pod itself.
"""

from __future__ import annotations

import asyncio
import random as _random
from collections.abc import Awaitable, Callable

from seamark.access.clock import Clock, WallClock
from seamark.access.cluster import Cluster
from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.kinds.resource import LEASES, NAMESPACES, NODES, PODS
from seamark.kinds.wellknown import NOT_READY_TAINT
from seamark.nodes.scheduling.scheduler import Scheduler
from seamark.nodes.simulated import registration
from seamark.nodes.simulated.evictions import Evictions
from seamark.nodes.simulated.heartbeats import Heartbeats
from seamark.nodes.simulated.kubelet import Kubelets
from seamark.nodes.simulated.lifecycle import Lifecycle
from seamark.nodes.simulated.orphans import Orphans
from seamark.nodes.simulated.registration import LEASE_NAMESPACE
from seamark.nodes.simulated.roster import Roster
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.work import Work
from seamark.rules.objects.namespace import Namespace
from seamark.rules.objects.node import Lease, Node
from seamark.rules.objects.pod import Pod


class Simulation:
    """The simulated nodes of one process.  ``await run()``; ``ready`` is set once the Nodes are."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        settings: NodeSettings,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = _random.random,
    ) -> None:
        clock = clock or WallClock()
        self.ready = asyncio.Event()
        self._cluster = cluster
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._random = random
        self._informers = Informers(cluster, clock=clock.now, sleep=sleep, random=random)
        self.pods = self._informers.of(PODS, as_=Pod)
        self.nodes = self._informers.of(NODES, as_=Node)
        leases = self._informers.of(LEASES, as_=Lease, namespace=LEASE_NAMESPACE)
        namespaces = self._informers.of(NAMESPACES, as_=Namespace)
        self.recorders: list[EventRecorder] = []
        self.roster = Roster()
        self._registrations = Work("node registration", self._register, clock=clock, workers=8)
        self.kubelets = Kubelets(
            cluster,
            pods=self.pods,
            roster=self.roster,
            settings=settings,
            events=self._recorder("kubelet"),
            clock=clock,
        )
        self.heartbeats = Heartbeats(cluster, roster=self.roster, settings=settings, clock=clock)
        # The roster hears of a Node before anybody asks it about one.
        self.nodes.on_change(self._node_changed)
        node_events = self._recorder("node-controller")
        self.scheduler = Scheduler(
            cluster,
            pods=self.pods,
            nodes=self.nodes,
            namespaces=namespaces,
            settings=settings,
            events=self._recorder(settings.scheduler),
            clock=clock,
        )
        self.lifecycle = Lifecycle(
            cluster,
            pods=self.pods,
            nodes=self.nodes,
            leases=leases,
            settings=settings,
            events=node_events,
            clock=clock,
        )
        self.evictions = Evictions(
            cluster, pods=self.pods, nodes=self.nodes, events=node_events, clock=clock, workers=settings.workers
        )
        self.orphans = Orphans(cluster, pods=self.pods, nodes=self.nodes, settings=settings, clock=clock)

    def _recorder(self, component: str) -> EventRecorder:
        recorder = EventRecorder(
            self._cluster,
            component=component,
            now=self._clock.now,
            clock=self._clock.now,
            sleep=self._sleep,
            random=self._random,
        )
        self.recorders.append(recorder)
        return recorder

    @property
    def works(self) -> tuple[Work, ...]:
        return (
            self._registrations,
            self.heartbeats.work,
            self.lifecycle.work,
            self.lifecycle.silenced,
            self.scheduler.work,
            self.kubelets.work,
            self.evictions.work,
            self.orphans.work,
        )

    # --- life --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Simulate until cancelled; without nodes there is nothing to do and it returns."""
        if not self._settings.count:
            await registration.dismiss_all(self._cluster, self._settings)
            self.ready.set()
            return
        await registration.register(self._cluster, self._settings, now=self._clock.now())
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="nodes: informers")
            for recorder in self.recorders:
                group.create_task(recorder.run(), name="nodes: events")
            # Whoever knows only half of the Pods would give an address twice.
            await self._informers.synced()
            self.orphans.look_around()
            for work in self.works:
                group.create_task(work.run(), name=f"nodes: {work.name}")

    async def idle(self) -> None:
        """Return once nothing is left to be done about what has been heard so far."""
        while not all(work.idle for work in self.works):
            await asyncio.gather(*(work.done() for work in self.works))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            assert old is not None
            self.roster.remove(old.name)
            return
        was_running = (before := self.roster.get(new.name)) is not None and before.running
        member, another = self.roster.put(new)
        if new.simulated and member is None:
            self._registrations.add(new.name)
        if member is not None and (another or member.running != was_running):
            self.kubelets.node_changed(member, new=another)
        if member is not None:
            self.heartbeats.node_changed(member)
        self._look_whether_ready()

    async def _register(self, name: str) -> None:
        """A Node that says it is ours, whoever made it, is given what it lacks."""
        await registration.complete(self._cluster, self._settings, name)

    def _look_whether_ready(self) -> None:
        if not self.ready.is_set():
            named = [self.nodes.get(name) for name in self._settings.names]
            if all(node is not None and _settled(node) for node in named):
                self.ready.set()


def _settled(node: Node) -> bool:
    """Whether it takes Pods, or is not meant to."""
    if not node.simulated or node.stopped:
        return True
    return node.ready and not any(taint.key == NOT_READY_TAINT for taint in node.spec.taints)


async def run(cluster: Cluster, *, settings: NodeSettings) -> None:
    """Simulate nodes on this cluster until cancelled."""
    await Simulation(cluster, settings=settings).run()
