"""Every Service of a namespace on an address of its own, with its own ports, as Services and endpoints come and go.

A Service with a cluster IP has one address, and its connections go to its ready endpoints in turn.  A headless Service
has one address for each of its ready endpoints.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable, Sequence

import msgspec

from seamark.access.informer import Informer
from seamark.access.informers import Informers
from seamark.dns.zone.names import dashed
from seamark.forwarding.backends import Backend, InTurn, of_port
from seamark.forwarding.dialing import Dialer
from seamark.forwarding.listener import Listener
from seamark.forwarding.loopback import LOCALHOST, Addresses, Place, advice, places
from seamark.kinds.resource import ENDPOINT_SLICES, SERVICES
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.service import Service, ServicePort

Key = tuple[str, str, str]  # namespace, Service, and the label of the endpoint for a headless Service


class LocalPort(msgspec.Struct, frozen=True):
    """A port of a Service here; ``local`` differs from ``port`` where that was refused."""

    port: int
    local: int
    host: str
    name: str = ""


class LocalService(msgspec.Struct, frozen=True):
    """A Service, or one endpoint of a headless Service, on this machine.

    ``left_out`` are ports that are not TCP, and such as cannot be listened on.
    """

    namespace: str
    name: str
    address: str
    endpoint: str = ""
    ports: tuple[LocalPort, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        return self.namespace, self.name, self.endpoint


class Wanted(msgspec.Struct, frozen=True):
    """What should be listened on: the ports by their number and name."""

    ports: tuple[ServicePort, ...]
    left_out: tuple[str, ...]


def wanted(services: Iterable[Service], slices_of: Callable[[str], Sequence[EndpointSlice]]) -> dict[Key, Wanted]:
    """What follows from the Services and their EndpointSlices (by the key of the Service): pure."""
    found: dict[Key, Wanted] = {}
    for service in services:
        if service.external:
            continue
        ports = tuple(port for port in service.spec.ports if port.protocol == "TCP")
        left_out = tuple(f"{port.port}/{port.protocol}" for port in service.spec.ports if port.protocol != "TCP")
        namespace, name = service.metadata.namespace, service.metadata.name
        if not service.headless:
            found[namespace, name, ""] = Wanted(ports, left_out)
            continue
        of_endpoint: dict[str, list[ServicePort]] = {}
        for port in ports:
            for backend in of_port(service, port, slices_of(service.metadata.key)):
                # Clients of a headless Service use the port of the endpoint itself.
                of_endpoint.setdefault(label_of(backend), []).append(msgspec.structs.replace(port, port=backend.port))
        for label, theirs in of_endpoint.items():
            found[namespace, name, label] = Wanted(tuple(theirs), left_out)
    return found


def label_of(backend: Backend) -> str:
    """The label of an endpoint in DNS."""
    return (backend.label or dashed(backend.address)).lower()


class ForwardedServices:
    """Keeps a listener for each port of each Service; ``changed`` is called with all of them after every change."""

    def __init__(
        self,
        informers: Informers,
        dialer: Dialer,
        *,
        namespace: str,
        labels: str,
        tell: Callable[[str], None],
        changed: Callable[[Sequence[Service], Sequence[LocalService]], None],
    ) -> None:
        self._services: Informer[Service] = informers.of(SERVICES, as_=Service, namespace=namespace, labels=labels)
        self._slices: Informer[EndpointSlice] = informers.of(ENDPOINT_SLICES, as_=EndpointSlice, namespace=namespace)
        self._by_service = self._slices.index("service", _service_key)
        self._dialer = dialer
        self._tell = tell
        self._changed = changed
        self._addresses = Addresses()
        self._dirty = asyncio.Event()
        self._wanted: dict[Key, Wanted] = {}
        self._here: dict[Key, LocalService] = {}
        self._listeners: dict[Key, list[Listener]] = {}
        self._advised: set[int | None] = set()

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        self._services.on_change(self._touch)
        self._slices.on_change(self._touch)
        await self._services.synced.wait()
        await self._slices.synced.wait()
        first = True
        try:
            while True:
                self._dirty.clear()
                if await self._settle() or first:
                    self._changed(self._services.objects(), list(self._here.values()))
                first = False
                await self._dirty.wait()
        finally:
            self._services.forget(self._touch)
            self._slices.forget(self._touch)
            for key in list(self._here):
                await self._close(key)

    def _touch(self, *_change: object) -> None:
        self._dirty.set()

    async def _settle(self) -> bool:
        """Listen on what should be listened on; whether anything changed."""
        want = wanted(self._services.objects(), self._by_service.objects)
        gone = [key for key in self._here if want.get(key) != self._wanted.get(key)]
        for key in gone:
            await self._close(key)
        new = [key for key in want if key not in self._here]
        for key in sorted(new):
            self._here[key] = await self._open(key, want[key])
        self._wanted = want
        return bool(gone or new)

    async def _open(self, key: Key, want: Wanted) -> LocalService:
        namespace, name, label = key
        address = self._addresses.take(key)
        listeners = self._listeners[key] = []
        ports: list[LocalPort] = []
        left_out = list(want.left_out)
        for port in want.ports:
            listener = Listener(
                f"Service {namespace}/{name}", self._chooser(key, port), self._dialer, policy=InTurn(), tell=self._tell
            )
            try:
                host, local = await self._listen(listener, address, port.port)
            except OSError as error:
                left_out.append(f"{port.port} ({error.strerror or error})")
                continue
            listeners.append(listener)
            ports.append(LocalPort(port.port, local, host, port.name))
            address = host
        return LocalService(namespace, name, address, label, tuple(ports), tuple(left_out))

    def _chooser(self, key: Key, port: ServicePort) -> Callable[[], Sequence[Backend]]:
        namespace, name, label = key

        def backends() -> Sequence[Backend]:
            service = self._services.get(name, namespace)
            if service is None:
                return ()
            found = of_port(service, port, self._by_service.objects(f"{namespace}/{name}"))
            return [each for each in found if label_of(each) == label] if label else found

        return backends

    async def _listen(self, listener: Listener, address: str, port: int) -> Place:
        missing = False
        refusal: OSError | None = None
        for host, number in places(address, port):
            if missing and host != LOCALHOST:
                continue
            try:
                place = await listener.listen(host, number)
            except OSError as error:
                missing = missing or error.errno == errno.EADDRNOTAVAIL
                refusal = refusal or error
                continue
            if refusal is not None and refusal.errno not in self._advised:
                self._advised.add(refusal.errno)
                self._tell(advice(refusal, address, port))
            return place
        raise refusal or OSError(errno.EADDRNOTAVAIL, "no port is free")

    async def _close(self, key: Key) -> None:
        del self._here[key]
        self._addresses.give_back(key)
        for listener in self._listeners.pop(key):
            await listener.close()


def _service_key(slice: EndpointSlice) -> tuple[str, ...]:
    return (f"{slice.metadata.namespace}/{slice.service_name}",) if slice.service_name else ()
