"""What a cluster of our own has around its Services: addresses for them, furnished namespaces, Events that expire.

``housekeeping`` runs these beside garbage collection and the workload controllers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from seamark.access.cluster import Cluster
from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.controllers.housekeeping.address_repair import AddressRepair
from seamark.controllers.housekeeping.event_expiry import EventExpiry
from seamark.controllers.housekeeping.loadbalancers import LoadBalancerController
from seamark.controllers.housekeeping.namespace_contents import DEFAULT_ACCOUNT, NamespaceContents, root_certificate
from seamark.controllers.housekeeping.service_cidrs import ServiceCIDRController
from seamark.controllers.settings import SurroundingsSettings
from seamark.metrics import Registry

Controllers = AddressRepair | LoadBalancerController | NamespaceContents | ServiceCIDRController


class Surroundings:
    """The controllers, each to be attached to a loop, and what else must run for them.

    ``authority`` is the PEM of the CA that the API server is known by.
    """

    def __init__(
        self,
        cluster_for: Callable[[str], Cluster],
        informers: Informers,
        settings: SurroundingsSettings,
        *,
        authority: str = "",
        metrics: Registry | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._recorders: dict[str, EventRecorder] = {}

        def recorder(component: str) -> EventRecorder:
            self._recorders[component] = EventRecorder(cluster_for(component), component=component, now=now)
            return self._recorders[component]

        cidrs, repair = ServiceCIDRController.name, AddressRepair.name
        self.controllers: list[Controllers] = [
            ServiceCIDRController(cluster_for(cidrs), informers, recorder(cidrs), now=now),
            AddressRepair(cluster_for(repair), informers, recorder(repair), now=now),
        ]
        if settings.namespace_contents:
            given = [DEFAULT_ACCOUNT]
            if authority and settings.root_certificates:
                given.append(root_certificate(authority))
            self.controllers += [NamespaceContents(cluster_for(g.controller), informers, g) for g in given]
        if settings.load_balancer_pool:
            # Its events are those of the controller that clouds run.
            balancers = cluster_for(LoadBalancerController.name)
            told = recorder("service-controller")
            self.controllers.append(LoadBalancerController(balancers, informers, told, settings.load_balancer_pool))
        self._expiry = EventExpiry(
            cluster_for("event-expiry"), informers, keep=settings.keep_events_seconds, metrics=metrics, now=now
        )

    def running(self) -> Sequence[tuple[str, Coroutine[Any, Any, None]]]:
        """Named tasks to run beside the controllers' loops."""
        recorders = [(f"events of {name}", recorder.run()) for name, recorder in self._recorders.items()]
        return [*recorders, ("expiry of events", self._expiry.run())]
