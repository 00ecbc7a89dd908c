"""A DNS server that answers with the local addresses of Services.

The names are ``web.ns.svc.cluster.local``, ``web.ns.svc``, ``web.ns`` and, with one namespace, plain ``web``.  SRV
records have the local ports.  All other names are asked upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from seamark.dns.config import REVERSE_ZONES, DnsConfig, ZoneConfig
from seamark.dns.server import DnsServer
from seamark.forwarding.services import LocalService
from seamark.kinds.wellknown import SERVICE_NAME_LABEL
from seamark.rules.objects.endpointslice import Endpoint, EndpointSlice, SlicePort
from seamark.rules.objects.metadata import Metadata
from seamark.rules.objects.service import Service, ServiceSpec


def local_dns(domain: str) -> DnsServer:
    """A server without names; it asks the resolvers of this machine about names outside of the domain."""
    zone = ZoneConfig(zones=(domain, *REVERSE_ZONES), fallthrough=REVERSE_ZONES)
    return DnsServer(DnsConfig(zone=zone), None)


class LocalNames:
    """Keeps the names of a server in step with the Services on this machine."""

    def __init__(self, server: DnsServer, *, plain: bool) -> None:
        """``plain``: whether a Service is known by its bare name as well."""
        self._server = server
        self._plain = plain
        self._names: set[str] = set()

    def update(self, services: Sequence[Service], here: Sequence[LocalService]) -> None:
        """Answer for these from now on, and for no others."""
        zone, static = self._server.zone, self._server.static
        zone.clear()
        of_service: dict[tuple[str, str], list[LocalService]] = {}
        for local in here:
            of_service.setdefault((local.namespace, local.name), []).append(local)
        names: dict[str, list[str]] = {}
        for service in services:
            zone.put_namespace(service.metadata.namespace)
            zone.put_service(localized(service, of_service))
            for local in of_service.get((service.metadata.namespace, service.metadata.name), ()):
                if local.endpoint:
                    zone.put_slice(_slice(local))
                for name in short_names(local, plain=self._plain):
                    names.setdefault(name, []).append(local.address)
        for name in self._names | names.keys():
            static.put(name, names.get(name, ()))
        self._names = set(names)
        self._server.forget_all()


def short_names(local: LocalService, *, plain: bool) -> Iterable[str]:
    """All names but the full one, of a Service and, if it is one, of its endpoint."""
    service = f"{local.name}.{local.namespace}"
    for prefix in ("", f"{local.endpoint}.") if local.endpoint else ("",):
        yield from (f"{prefix}{service}.svc", f"{prefix}{service}")
        if plain:
            yield f"{prefix}{local.name}"


def localized(service: Service, of_service: dict[tuple[str, str], list[LocalService]]) -> Service:
    """The Service with its local address and ports; one that is headless or an alias stays as it is."""
    found = of_service.get((service.metadata.namespace, service.metadata.name), ())
    if service.headless or not found:
        return service
    (local,) = found
    number = {(port.port, port.name): port.local for port in local.ports}
    ports = tuple(
        msgspec.structs.replace(port, port=number.get((port.port, port.name), port.port))
        for port in service.spec.ports
        if port.protocol == "TCP"
    )
    spec = ServiceSpec(cluster_ip=local.address, cluster_ips=(local.address,), ports=ports)
    return Service(metadata=service.metadata, spec=spec)


def _slice(local: LocalService) -> EndpointSlice:
    return EndpointSlice(
        metadata=Metadata(
            name=f"{local.name}-{local.endpoint}", namespace=local.namespace, labels={SERVICE_NAME_LABEL: local.name}
        ),
        address_type="IPv4",
        endpoints=(Endpoint(addresses=(local.address,), hostname=local.endpoint),),
        ports=tuple(SlicePort(name=port.name, port=port.local, protocol="TCP") for port in local.ports),
    )
