"""Which endpoints can take a connection, and which one takes the next (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from seamark.access.portforward.tunnels import PodKey
from seamark.kinds.values.addresses import canonical
from seamark.kinds.values.hosts import bracketed
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service, ServicePort


class Backend(msgspec.Struct, frozen=True):
    """Where a connection can go: a port of a Pod, or else of an address that this machine may reach by itself."""

    address: str
    port: int
    pod: PodKey | None = None
    label: str = ""  # of a headless Service's endpoint: its hostname, if it has one

    def __str__(self) -> str:
        if self.pod is not None:
            return f"Pod {self.pod[1]}"
        return bracketed(self.address)


def of_port(service: Service, port: ServicePort, slices: Iterable[EndpointSlice]) -> list[Backend]:
    """The ready endpoints of a port of a Service, each once; the order is that of their addresses."""
    found: dict[tuple[str, int], Backend] = {}
    for slice in slices:
        for listed in slice.ports or ():
            if (listed.name or "") != port.name or (listed.protocol or "TCP") != port.protocol or not listed.port:
                continue
            for endpoint in slice.endpoints or ():
                if not endpoint.ready or not endpoint.addresses:
                    continue
                target, pod = endpoint.target_ref, None
                if target is not None and target.kind == "Pod":
                    pod = (target.namespace or service.metadata.namespace, target.name, target.uid)
                # All addresses of one endpoint are the same backend; Kubernetes uses the first.
                made = Backend(canonical(endpoint.addresses[0]), listed.port, pod, endpoint.hostname or "")
                # In a dual-stack Service a Pod has an endpoint in each family, and the API knows only the Pod.
                found.setdefault((pod[1] if pod else made.address, made.port), made)
    return sorted(found.values(), key=lambda backend: (backend.address, backend.port))


def of_pods(pods: Iterable[Pod], port: int | str) -> list[Backend]:
    """The ports of Pods that are ready, the oldest Pod first; of others that run if none is."""
    running = [pod for pod in pods if pod.status.phase == "Running" and not pod.terminating]
    usable = [pod for pod in running if pod.ready] or running
    usable.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
    found = []
    for pod in usable:
        number = port if isinstance(port, int) else named_port(pod, port)
        if number:
            key = (pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
            found.append(Backend(pod.status.pod_ip, number, key))
    return found


def named_port(pod: Pod, name: str) -> int:
    """The number of a TCP port that a container declares; 0 if none has this name."""
    for port in pod.container_ports():
        if port.name == name and port.protocol == "TCP":
            return port.container_port
    return 0


class Sticky:
    """Keeps to one backend as long as it is there, as kubectl does."""

    def __init__(self) -> None:
        self.current: Backend | None = None

    def order(self, backends: Sequence[Backend]) -> list[Backend]:
        """The backends to try for the next connection, the current one first."""
        if self.current is None or self.current not in backends:
            return list(backends)
        return [self.current, *(each for each in backends if each != self.current)]


class InTurn:
    """Spreads connections over all backends, as a Service does."""

    def __init__(self) -> None:
        self.current: Backend | None = None
        self._count = 0

    def order(self, backends: Sequence[Backend]) -> list[Backend]:
        """The backends to try for the next connection: each time another is the first."""
        self._count += 1
        start = self._count % len(backends) if backends else 0
        return [*backends[start:], *backends[:start]]
