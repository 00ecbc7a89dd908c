"""Creates the discovery controllers, and the probes of hand-made members, over one set of informers."""

from __future__ import annotations

from collections.abc import Callable, Collection

from seamark.access.cluster import Cluster
from seamark.controllers.discovery.endpoints_controller import EndpointsController
from seamark.controllers.discovery.endpointslices_controller import EndpointSlicesController
from seamark.controllers.discovery.members import Members
from seamark.controllers.discovery.mirroring_controller import MirroringController
from seamark.controllers.probes.probes_controller import add_probes
from seamark.controllers.settings import ALL, DiscoverySettings, Name
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.runtime.following import Derived
from seamark.runtime.manager import Manager


def add_discovery(
    manager: Manager,
    cluster_for: Callable[[str], Cluster],
    *,
    which: Collection[Name] = ALL,
    settings: DiscoverySettings | None = None,
) -> None:
    """Add the discovery controllers to the manager; each writes to the cluster for its name."""
    unknown = set(which) - set(ALL)
    if unknown:
        raise ValueError(f"no such controller: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    settings = settings or DiscoverySettings()
    informers = manager.informers
    if "probes" in which:
        add_probes(manager, cluster_for("probes"), settings.probes)
    if set(which) <= {"probes"}:
        return
    services = informers.of(SERVICES, as_=Service)
    nodes = informers.of(NODES, as_=Node)
    members = Members(services=services, pods=informers.of(PODS, as_=Pod), nodes=nodes)
    states: list[Derived] = [members]
    if "endpoints" in which:
        states.append(
            EndpointsController(
                manager,
                cluster_for("endpoint-controller"),
                members=members,
                endpoints=informers.of(ENDPOINTS, as_=Endpoints),
                workers=settings.workers,
                batch=settings.batch,
            )
        )
    if "endpointslices" in which:
        states.append(
            EndpointSlicesController(
                manager,
                cluster_for("endpointslice-controller"),
                members=members,
                nodes=nodes,
                slices=informers.of(ENDPOINT_SLICES, as_=EndpointSlice),
                limit=settings.max_endpoints_per_slice,
                workers=settings.workers,
                batch=settings.batch,
            )
        )
    if "endpointslicemirroring" in which:
        states.append(
            MirroringController(
                manager,
                cluster_for("endpointslicemirroring-controller"),
                services=services,
                endpoints=informers.of(ENDPOINTS, as_=Endpoints),
                slices=informers.of(ENDPOINT_SLICES, as_=EndpointSlice),
                workers=settings.workers,
                batch=settings.batch,
            )
        )
    manager.add(*states)
