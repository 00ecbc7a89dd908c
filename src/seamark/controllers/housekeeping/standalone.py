"""The controllers a cluster of our own needs, because there is no kube-controller-manager beside it.

Against a foreign cluster none of these runs; its own control plane does this work.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from seamark.access.cluster import Cluster
from seamark.access.informers import Informers
from seamark.controllers.housekeeping.everything import Everything
from seamark.controllers.housekeeping.garbage import GarbageCollector
from seamark.controllers.housekeeping.namespaces import NamespaceController
from seamark.controllers.housekeeping.surroundings import Surroundings
from seamark.controllers.settings import SurroundingsSettings
from seamark.controllers.workloads.controllers import BATCH_SECONDS, Workloads
from seamark.kinds.table import Kinds
from seamark.metrics import Registry
from seamark.runtime.loop import Controller, Loop

Work = tuple[str, Coroutine[Any, Any, None]]


class Attached(Controller, Protocol):
    """A controller that finds its own keys once it is given a loop."""

    def attach(self, loop: Loop) -> None: ...

    async def synced(self) -> None:
        """Return once it knows enough to act."""
        ...


def housekeeping(
    cluster_for: Callable[[str], Cluster],
    kinds: Kinds,
    metrics: Registry,
    *,
    settings: SurroundingsSettings,
    authority: str = "",
) -> Sequence[Work]:
    """Named tasks to run: informers, garbage collection, the end of namespaces, workloads, what is around Services.

    ``kinds`` are the server's own, which come and go.  ``authority`` is the PEM of the CA that the API server is known
    by.
    """
    informers = Informers(cluster_for("controllers"))
    everything = Everything(informers, kinds)
    workloads = Workloads(cluster_for("kube-controller-manager"), informers)
    surroundings = Surroundings(cluster_for, informers, settings, authority=authority, metrics=metrics)
    controllers: list[Attached] = [
        GarbageCollector(cluster_for("generic-garbage-collector"), everything),
        NamespaceController(cluster_for("namespace-controller"), everything),
        *workloads.controllers,
        *surroundings.controllers,
    ]
    work: list[Work] = [("informers", _follow(informers, everything)), *workloads.recording(), *surroundings.running()]
    for controller in controllers:
        loop = Loop(controller, metrics=metrics, batch=BATCH_SECONDS)
        controller.attach(loop)
        work.append((controller.name, _run(controller, loop)))
    return work


async def _follow(informers: Informers, everything: Everything) -> None:
    try:
        await informers.run()
    finally:
        everything.stop()


async def _run(controller: Attached, loop: Loop) -> None:
    # Before everything is listed, an object whose owner is not listed yet would look like garbage.
    await controller.synced()
    await loop.run()
