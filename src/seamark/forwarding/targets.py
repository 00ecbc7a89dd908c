"""Follows what ``port-forward`` was asked for: a Service, a Pod, or the Pods of a workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seamark.access.cluster import Cluster
from seamark.access.informer import Informer
from seamark.access.informers import Informers
from seamark.errors import Object
from seamark.forwarding.backends import Backend, named_port, of_pods, of_port
from seamark.forwarding.ports import PortPair, Remote
from seamark.kinds.resource import ENDPOINT_SLICES, PODS, REPLICATION_CONTROLLERS, SERVICES, Resource
from seamark.kinds.values.selectors import from_label_selector, from_pairs
from seamark.kinds.wellknown import SERVICE_NAME_LABEL
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service, ServicePort


class Impossible(Exception):
    """What was asked for cannot be forwarded; the text says why."""


class Target(Protocol):
    """What connections go to."""

    name: str  # for people: Service web

    def local_port(self, pair: PortPair) -> int:
        """The local port to listen on; raises :class:`Impossible` if there is no such remote port."""
        ...

    def backends(self, remote: Remote) -> Sequence[Backend]: ...


class ServiceTarget:
    """A Service: the ready endpoints of its ports, from its EndpointSlices."""

    def __init__(self, service: Informer[Service], slices: Informer[EndpointSlice], key: str, name: str) -> None:
        self.name = f"Service {name}"
        self._key = key
        self._services = service
        self._slices = slices

    def local_port(self, pair: PortPair) -> int:
        service = self._services.by_key(self._key)
        if service is None:
            raise Impossible(f"{self.name} is gone")
        if service.external:
            raise Impossible(f"{self.name} is only another name for {service.spec.external_name}: connect to that")
        port = _port(service, pair.remote)
        if port is None:
            listed = ", ".join(_listed(each) for each in service.spec.ports) or "none"
            raise Impossible(f"{self.name} has no port {pair.remote}; its ports: {listed}")
        if port.protocol != "TCP":
            raise Impossible(
                f"port {pair.remote} of {self.name} is {port.protocol}: Kubernetes forwards only TCP through its API"
            )
        return port.port if pair.local is None else pair.local

    def backends(self, remote: Remote) -> Sequence[Backend]:
        service = self._services.by_key(self._key)
        port = _port(service, remote) if service is not None else None
        return of_port(service, port, self._slices.objects()) if service is not None and port is not None else ()


class PodTarget:
    """Pods: one by its name, or those of a workload."""

    def __init__(self, pods: Informer[Pod], name: str) -> None:
        self.name = name
        self._pods = pods

    def local_port(self, pair: PortPair) -> int:
        if pair.local is not None:
            return pair.local
        if isinstance(pair.remote, int):
            return pair.remote
        numbers = [named_port(pod, pair.remote) for pod in self._pods.objects()]
        if not any(numbers):
            raise Impossible(f"{self.name} declares no TCP port {pair.remote}")
        return next(number for number in numbers if number)

    def backends(self, remote: Remote) -> Sequence[Backend]:
        return of_pods(self._pods.objects(), remote)


async def follow(cluster: Cluster, informers: Informers, resource: Resource, name: str, namespace: str) -> Target:
    """The named object as a target, once its state is known; raises :class:`Impossible` or an ``ApiError``."""
    found = await cluster.get(resource, name, namespace=namespace)
    only = f"metadata.name={name}"
    if resource == SERVICES:
        of_service = f"{SERVICE_NAME_LABEL}={name}"
        # The informers would retry what is forbidden; this list fails instead.
        await cluster.list(ENDPOINT_SLICES, namespace=namespace, labels=of_service)
        services = informers.of(SERVICES, as_=Service, namespace=namespace, fields=only)
        slices = informers.of(ENDPOINT_SLICES, as_=EndpointSlice, namespace=namespace, labels=of_service)
        await services.synced.wait()
        await slices.synced.wait()
        return ServiceTarget(services, slices, f"{namespace}/{name}", name)
    which = {"fields": only} if resource == PODS else {"labels": _selector(resource, name, found)}
    await cluster.list(PODS, namespace=namespace, **which)
    pods = informers.of(PODS, as_=Pod, namespace=namespace, **which)
    await pods.synced.wait()
    return PodTarget(pods, f"{resource.kind} {name}")


def _port(service: Service, remote: Remote) -> ServicePort | None:
    """The port that is meant; of two with one number, the one that can be forwarded."""
    fits = [port for port in service.spec.ports if remote in (port.port, port.name)]
    return next((port for port in fits if port.protocol == "TCP"), fits[0] if fits else None)


def _listed(port: ServicePort) -> str:
    name = f" ({port.name})" if port.name else ""
    return f"{port.port}{name}" if port.protocol == "TCP" else f"{port.port}/{port.protocol}{name}"


def _selector(resource: Resource, name: str, workload: Object) -> str:
    """The selector of a workload's Pods, as the API takes it."""
    selector = (workload.get("spec") or {}).get("selector")
    if not isinstance(selector, dict) or not selector:
        raise Impossible(f"{resource.kind} {name} selects no Pods; name a Pod, a Service or a workload")
    return str(from_pairs(selector) if resource == REPLICATION_CONTROLLERS else from_label_selector(selector))
