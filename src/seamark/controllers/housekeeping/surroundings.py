"""Creates the controllers for addresses of Services, contents of namespaces, and Event expiry.

``standalone`` adds them beside garbage collection and the workload controllers.
"""

from __future__ import annotations

from collections.abc import Callable

from seamark.access.cluster import Cluster
from seamark.controllers.housekeeping import (
    address_repair,
    flow_schemas,
    loadbalancers,
    role_aggregation,
    service_cidrs,
)
from seamark.controllers.housekeeping.address_repair import AddressRepair
from seamark.controllers.housekeeping.event_expiry import EventExpiry
from seamark.controllers.housekeeping.flow_schemas import FlowSchemaStatusController
from seamark.controllers.housekeeping.loadbalancers import LoadBalancerController
from seamark.controllers.housekeeping.namespace_contents import DEFAULT_ACCOUNT, NamespaceContents, root_certificate
from seamark.controllers.housekeeping.role_aggregation import RoleAggregation
from seamark.controllers.housekeeping.service_cidrs import ServiceCIDRController
from seamark.controllers.settings import SurroundingsSettings
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager


def add_surroundings(
    manager: Manager,
    cluster_for: Callable[[str], Cluster],
    settings: SurroundingsSettings,
    *,
    authority: str,
) -> None:
    """Add these controllers to the manager; each writes to the cluster under its own name.

    ``authority`` is the CA certificate of the API server (PEM).
    """
    controllers: list[Controller] = [
        ServiceCIDRController(manager, cluster_for(service_cidrs.NAME)),
        AddressRepair(manager, cluster_for(address_repair.NAME)),
        RoleAggregation(manager, cluster_for(role_aggregation.NAME)),
        FlowSchemaStatusController(manager, cluster_for(flow_schemas.NAME)),
        EventExpiry(manager, cluster_for("event-expiry"), keep=settings.keep_events_seconds),
    ]
    if settings.namespace_contents:
        given = [DEFAULT_ACCOUNT]
        if authority and settings.root_certificates:
            given.append(root_certificate(authority))
        controllers += [NamespaceContents(manager, cluster_for(each.controller), each) for each in given]
    if settings.load_balancer_pool:
        balancers = cluster_for(loadbalancers.NAME)
        controllers.append(LoadBalancerController(manager, balancers, settings.load_balancer_pool))
    for controller in controllers:
        manager.add(controller)
