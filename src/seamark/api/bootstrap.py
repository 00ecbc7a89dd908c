"""What every cluster has from its first moment: namespaces, classes, service ranges, its own Services, Pod and groups.

All of it goes through the write path like a client's objects, and is made again when it is missing or wrong.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec

from seamark import __version__, errors
from seamark.access.cluster import Cluster, Receipt
from seamark.api.aggregation.front_proxy import NAME as FRONT_PROXY
from seamark.api.certificates import single
from seamark.api.settings import ServiceNetwork
from seamark.errors import Object
from seamark.kinds.flowcontrol import defaults
from seamark.kinds.kind import Kind
from seamark.kinds.pod.annotations import MIRROR
from seamark.kinds.policy.priority_class import SYSTEM_CLASSES
from seamark.kinds.registration.apiservice import local_services
from seamark.kinds.resource import (
    API_SERVICES,
    CONFIGMAPS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    FLOW_SCHEMAS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    PRIORITY_LEVELS,
    SERVICE_CIDRS,
    SERVICES,
    STORAGE_CLASSES,
    Resource,
)
from seamark.kinds.service.allocation import address_in
from seamark.kinds.service.servicecidr import DEFAULT_CIDR
from seamark.kinds.storage.storageclass import DEFAULT_ANNOTATION
from seamark.kinds.wellknown import HOW_PODS_ARE, SERVICE_NAME_LABEL, SKIP_MIRROR_LABEL

log = logging.getLogger("seamark.api")

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
DNS_PORT = 53
REPAIR_SECONDS = 10.0


async def make_namespaces(cluster: Cluster) -> None:
    await _ensure_all(cluster, NAMESPACES, [{"metadata": {"name": name}} for name in SYSTEM_NAMESPACES])


async def make_ranges(cluster: Cluster, network: ServiceNetwork) -> None:
    """The default ServiceCIDR.

    If it has other ranges than those configured, it keeps them, because Services have addresses there.  But a second
    family is added.
    """
    wanted = list(network.ranges)
    await _ensure(cluster, SERVICE_CIDRS, {"metadata": {"name": DEFAULT_CIDR}, "spec": {"cidrs": wanted}})
    found = await cluster.get(SERVICE_CIDRS, DEFAULT_CIDR)
    had = found["spec"]["cidrs"]
    if had != wanted and had == wanted[:1]:
        await cluster.update(SERVICE_CIDRS, {**found, "spec": {"cidrs": wanted}})


async def warn_of_other_ranges(cluster: Cluster, network: ServiceNetwork) -> None:
    """Tell who configured ranges that they are not used."""
    had, wanted = (await cluster.get(SERVICE_CIDRS, DEFAULT_CIDR))["spec"]["cidrs"], list(network.ranges)
    if had != wanted:
        message = "Services get addresses of %s, as the ServiceCIDR %s says, not of %s; delete it to change that"
        log.warning(message, ",".join(had), DEFAULT_CIDR, ",".join(wanted))


async def make_priority_classes(cluster: Cluster) -> None:
    await _ensure_all(cluster, PRIORITY_CLASSES, SYSTEM_CLASSES)


async def make_priority_levels(cluster: Cluster) -> None:
    await _ensure_all(cluster, PRIORITY_LEVELS, defaults.priority_levels())
    await _ensure_all(cluster, FLOW_SCHEMAS, defaults.flow_schemas())


async def make_api_services(cluster: Cluster, kinds: Iterable[Kind]) -> None:
    """One APIService for each version of each group that this server answers for."""
    served = {(kind.resource.group, kind.resource.version) for kind in kinds}
    await _ensure_all(cluster, API_SERVICES, local_services(sorted(served)))


async def publish_authorities(
    cluster: Cluster, clients: bytes, front_proxy: bytes, *, shared: bool, dropped: Sequence[bytes] = ()
) -> None:
    """Tell aggregated servers by which certificates they know users, and this server (PEM).

    Servers that share a store may have authorities of their own: all of them are told, but those that were dropped.
    """
    name = "extension-apiserver-authentication"
    try:
        found = (await cluster.get(CONFIGMAPS, name, namespace="kube-system")).get("data") or {} if shared else {}
    except errors.NotFound:
        found = {}
    data = {
        "client-ca-file": _joined(found.get("client-ca-file", ""), clients, dropped),
        "requestheader-client-ca-file": _joined(found.get("requestheader-client-ca-file", ""), front_proxy, ()),
        "requestheader-allowed-names": f'["{FRONT_PROXY}"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }
    wanted = {"metadata": {"name": name, "namespace": "kube-system"}, "data": data}
    await _ensure(cluster, CONFIGMAPS, wanted, compare="data")


def _joined(bundle: str, more: bytes, dropped: Sequence[bytes]) -> str:
    certificates = dict.fromkeys((*single(bundle.encode()), *single(more)))
    return b"".join(each for each in certificates if each not in dropped).decode()


async def make_storage_class(cluster: Cluster, name: str, provisioner: str) -> None:
    """The default StorageClass of a cluster with simulated nodes."""
    annotations = {DEFAULT_ANNOTATION: "true"}
    # As other distributions mark the class that they bring: users may change it, and it is made again when it is gone.
    labels = {"addonmanager.kubernetes.io/mode": "EnsureExists"}
    wanted = {
        "metadata": {"name": name, "annotations": annotations, "labels": labels},
        "provisioner": provisioner,
        "allowVolumeExpansion": True,
    }
    await _ensure(cluster, STORAGE_CLASSES, wanted)


class OwnService(msgspec.Struct, frozen=True):
    """A Service that a server of this process is behind; ``ports`` are those of the Service by name and protocol."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    cluster_ip: str
    ports: Sequence[tuple[str, str, int]]
    address: str  # where the server is reached; "" if it is not
    target: int  # its port


def api_service(network: ServiceNetwork, address: str, port: int) -> OwnService:
    """``default/kubernetes``, through which Pods find the API server."""
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [("https", "TCP", 443)]
    return OwnService("default", "kubernetes", labels, address_in(network.ranges[0], 1), ports, address, port)


def dns_service(network: ServiceNetwork, address: str, port: int) -> OwnService:
    """``kube-system/kube-dns``, whose address Pods have in their resolv.conf."""
    labels = {"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "SeamarkDNS"}
    ports = [("dns", "UDP", DNS_PORT), ("dns-tcp", "TCP", DNS_PORT)]
    return OwnService("kube-system", "kube-dns", labels, address_in(network.ranges[0], 10), ports, address, port)


async def make_own_pod(cluster: Cluster, node: str) -> None:
    """This process as a Pod of ``kube-system``, because programs and people look there for what makes up a cluster.

    It is a mirror Pod, by which Kubernetes shows what runs on a node without the API's doing: nothing drains it,
    evicts it or starts it, and it is made again if it is deleted.
    """
    labels = {"component": "kube-apiserver", "tier": "control-plane", "k8s-app": "kube-dns"}
    wanted = {
        "metadata": {
            "name": f"seamark-{node}",
            "namespace": "kube-system",
            "labels": {**labels, "app.kubernetes.io/part-of": "seamark"},
            "annotations": {MIRROR: "seamark", HOW_PODS_ARE: "simulated"},
        },
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
            # No ports: they would be taken on the node, and Pods of users may want them.
            "containers": [{"name": "seamark", "image": f"seamark:{__version__}"}],
        },
    }
    await _ensure(cluster, PODS, wanted)


async def keep(makes: Mapping[str, Callable[[], Awaitable[None]]], started: Callable[[], None]) -> None:
    """Call these again and again, until cancelled: each makes what is missing or wrong of what its name says.

    ``started`` is called once all have been called.
    """

    told: dict[str, str] = {}  # what was told of each, which need not be told again

    async def try_to(make: Callable[[], Awaitable[None]], name: str) -> None:
        try:
            await make()
            told.pop(name, None)
        except errors.ApiError as error:
            if told.get(name) != error.message:
                told[name] = error.message
                log.warning("%s could not be kept right: %s", name, error.message)

    while True:
        await asyncio.gather(*(try_to(make, name) for name, make in makes.items()))
        started()
        await asyncio.sleep(REPAIR_SECONDS)


async def make_own_service(cluster: Cluster, own: OwnService) -> None:
    """The Service with its Endpoints and EndpointSlice, made by hand since no Pod is behind it."""
    meta: Object = {"name": own.name, "namespace": own.namespace}
    service = {
        "metadata": {**meta, "labels": dict(own.labels)},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": own.cluster_ip,
            "ports": [
                {"name": name, "protocol": protocol, "port": port, "targetPort": own.target}
                for name, protocol, port in own.ports
            ],
            "sessionAffinity": "None",
        },
    }
    await _ensure(cluster, SERVICES, service)
    if not own.address:
        return
    ports = [{"name": name, "port": own.target, "protocol": protocol} for name, protocol, _ in own.ports]
    subset = {"addresses": [{"ip": own.address}], "ports": ports}
    skip = {SKIP_MIRROR_LABEL: "true"}
    endpoints = {"metadata": {**meta, "labels": skip}, "subsets": [subset]}
    slice_ = {
        "metadata": {**meta, "labels": {SERVICE_NAME_LABEL: own.name}},
        "addressType": "IPv6" if ":" in own.address else "IPv4",
        "endpoints": [{"addresses": [own.address], "conditions": {"ready": True}}],
        "ports": ports,
    }
    await asyncio.gather(
        _ensure(cluster, ENDPOINTS, endpoints, compare="subsets"),
        _ensure(cluster, ENDPOINT_SLICES, slice_, compare="endpoints", also="ports"),
    )


async def _ensure_all(cluster: Cluster, resource: Resource, wanted: Iterable[Object]) -> None:
    """Several at once, because the store commits writes that come together in one transaction."""
    await asyncio.gather(*(_ensure(cluster, resource, each) for each in wanted))


async def _ensure(cluster: Cluster, resource: Resource, wanted: Object, *, compare: str = "", also: str = "") -> None:
    """Create what is missing; where ``compare`` names a field, put back what is different there."""
    meta = wanted["metadata"]
    namespace = meta.get("namespace", "")
    try:
        found = await cluster.get(resource, meta["name"], namespace=namespace)
    except errors.NotFound:
        try:
            await cluster.create(resource, wanted, namespace=namespace, as_=Receipt)
        except errors.AlreadyExists:
            return  # another server sharing the store was faster
        return
    if any(field and found.get(field) != wanted.get(field) for field in (compare, also)):
        fields = {field: wanted[field] for field in (compare, also) if field}
        await cluster.update(resource, {**found, **fields}, namespace=namespace)


def advertised_address(bound: str) -> str:
    """An address at which other hosts reach this one (endpoints may not be loopback addresses); "" if it has none."""
    if bound not in ("0.0.0.0", "::", "127.0.0.1", "::1", "localhost"):
        return bound
    # Connecting a UDP socket sends nothing: it only asks the routing table which of our addresses would be used.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        address = str(probe.getsockname()[0])
    return "" if address.startswith("127.") else address
