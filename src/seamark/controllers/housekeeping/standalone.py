"""Creates the controllers that a cluster of our own needs, because no kube-controller-manager runs beside it.

Against a foreign cluster none of these runs; its own control plane does this work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seamark.access.cluster import Cluster
from seamark.controllers.housekeeping.everything import Everything
from seamark.controllers.housekeeping.garbage import GarbageCollector
from seamark.controllers.housekeeping.namespaces import NamespaceController
from seamark.controllers.housekeeping.surroundings import add_surroundings
from seamark.controllers.settings import SurroundingsSettings
from seamark.controllers.workloads.controllers import VIEWS, add_workloads
from seamark.kinds import resource as resources
from seamark.kinds.resource import Resource
from seamark.kinds.table import Kinds
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.namespace import Namespace
from seamark.rules.objects.network import IPAddress, ServiceCIDR
from seamark.rules.objects.node import Lease, Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.runtime.manager import Manager

# The views that other controllers of this process use.  The garbage collector uses the same ones, so that every object
# is decoded once.
SHARED: Mapping[Resource, type[Any]] = {
    resources.PODS: Pod,
    resources.SERVICES: Service,
    resources.NODES: Node,
    resources.NAMESPACES: Namespace,
    resources.ENDPOINTS: Endpoints,
    resources.ENDPOINT_SLICES: EndpointSlice,
    resources.LEASES: Lease,
    resources.IP_ADDRESSES: IPAddress,
    resources.SERVICE_CIDRS: ServiceCIDR,
    **VIEWS,
}


def add_housekeeping(
    manager: Manager,
    cluster_for: Callable[[str], Cluster],
    kinds: Kinds,
    *,
    settings: SurroundingsSettings,
    authority: str = "",
) -> None:
    """Add garbage collection, namespace deletion, the workload controllers and the surroundings to the manager.

    ``kinds`` are those of the server, which may change.  ``authority`` is the CA certificate of the API server (PEM).
    """
    add_cleaning(manager, cluster_for, kinds)
    add_workloads(manager, cluster_for("kube-controller-manager"))
    add_surroundings(manager, cluster_for, settings, authority=authority)


def add_cleaning(manager: Manager, cluster_for: Callable[[str], Cluster], kinds: Kinds) -> None:
    """Add garbage collection and namespace deletion to the manager."""
    everything = Everything(manager.informers, kinds, SHARED)
    manager.add(
        everything,
        GarbageCollector(manager, cluster_for("generic-garbage-collector"), everything),
        NamespaceController(manager, cluster_for("namespace-controller"), everything),
    )
