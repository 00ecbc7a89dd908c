"""What a cluster of our own has around its Services: addresses for them, furnished namespaces, Events that expire.

``housekeeping`` runs these beside garbage collection and the workload controllers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from seamark.access.cluster import Cluster
from seamark.access.events import EventRecorder
from seamark.access.informers import Informers
from seamark.controllers.housekeeping.address_repair import AddressRepair
from seamark.controllers.housekeeping.event_expiry import EventExpiry
from seamark.controllers.housekeeping.loadbalancer_pool import EXAMPLE_POOL, check_pool
from seamark.controllers.housekeeping.loadbalancers import LoadBalancerController
from seamark.controllers.housekeeping.namespace_contents import DEFAULT_ACCOUNT, NamespaceContents, root_certificate
from seamark.controllers.housekeeping.service_cidrs import ServiceCIDRController
from seamark.metrics import Registry


class SurroundingsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What there is around Services.

    ``namespace_contents``: whether namespaces have a ``default`` ServiceAccount, and with ``root_certificates`` also
    the CA's certificate.
    ``load_balancer_pool``: CIDRs and ranges FIRST-LAST for Services of type LoadBalancer; without, those stay pending.
    ``keep_events_seconds``: how long an Event stays after it last changed.
    """

    namespace_contents: bool = True
    root_certificates: bool = True
    load_balancer_pool: tuple[str, ...] = EXAMPLE_POOL
    keep_events_seconds: float = 3600.0

    def __post_init__(self) -> None:
        check_pool(self.load_balancer_pool)
        if self.keep_events_seconds <= 0:
            raise ValueError(f"keep_events_seconds is a time in seconds, not {self.keep_events_seconds}")

    def bare(self) -> SurroundingsSettings:
        """For an API server alone: it keeps its books, and leaves the rest to the controllers of whoever runs it."""
        return msgspec.structs.replace(self, namespace_contents=False, load_balancer_pool=())


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
