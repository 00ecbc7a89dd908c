"""The zone: the cluster's objects indexed by name and address, updated per change.

Every ``put`` and ``remove`` returns the facts that it touched, and an answer lists the facts that it was made from
(``zone.answers``).  So a cache of answers can drop exactly those that a change makes stale.  The cost of a change
depends on the object that changed (one EndpointSlice), not on the size of the Service or the zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.dns.zone.names import dashed, parse_address
from seamark.kinds.wellknown import FINISHED_PHASES
from seamark.rules.objects.endpoints import EndpointPort, Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice, SlicePort
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service, ServicePort

# What an answer can depend on.  Plain tuples, because they are hashed often:
#   ("namespace", NAMESPACE)            whether it exists
#   ("service", NAMESPACE, NAME)        the Service itself
#   ("endpoints", NAMESPACE, NAME)      all of its endpoints
#   ("endpoint", NAMESPACE, NAME, LABEL) the endpoints with this label
#   ("address", PACKED)                 the Services and endpoints with this address
#   ("pod", NAMESPACE, ADDRESS)         the Pods with this address (as text)
#   SERIAL                              the time of the last change
Fact = tuple[str | bytes, ...]
Touched = set[Fact]
SERIAL: Fact = ("serial",)

ServiceKey = tuple[str, str]  # namespace, name
Port = tuple[str, str, int]  # name and protocol in lower case, number
Place = tuple[str, str]  # an endpoint's label and its host, an address or a name as the API has it

AnyPort = ServicePort | SlicePort | EndpointPort

NO_PORT: Port = ("", "", -1)  # stands for the missing ports of endpoints, which then have no SRV records
_LONGEST_LABEL = 63

# How often an address of one slice counts that is listed again and again.  Weights are parts of 100, and 1 at least, so
# more make no difference.
_MOST_TIMES = 100

# Phases in which a Pod's address may belong to another Pod already, as in CoreDNS.
_GONE = (*FINISHED_PHASES, "Unknown")


class Ports:
    """The ports of a slice, shared by its endpoints: both may be thousands, and their product millions."""

    __slots__ = ("_by_name", "all")

    def __init__(self, ports: Iterable[AnyPort] | None) -> None:
        self.all: tuple[Port, ...] = tuple(port_of(port) for port in ports) if ports else (NO_PORT,)
        self._by_name: dict[str, list[Port]] | None = None  # made when a name is first asked for

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ports) and self.all == other.all

    __hash__ = object.__hash__

    def matching(self, name: str, protocol: str) -> Sequence[Port]:
        """Those with this name and protocol, both in lower case; empty for any."""
        if not name and not protocol:
            return self.all
        if self._by_name is None:
            self._by_name = {}
            for port in self.all:
                self._by_name.setdefault(port[0], []).append(port)
        called = self._by_name.get(name, ()) if name else self.all
        return [port for port in called if protocol in ("", port[1])]


Listed = tuple[Ports, ...]  # the ports of an endpoint, once for each time that it is listed


class ServiceEndpoints:
    """The ready endpoints of one Service, by slice and by label."""

    __slots__ = ("by_label", "slices")

    def __init__(self) -> None:
        self.slices: dict[str, Mapping[Place, Listed]] = {}
        self.by_label: dict[str, dict[tuple[str, str], Listed]] = {}  # label → (slice, host) → ports

    def __iter__(self) -> Iterator[tuple[str, str, Listed]]:
        """Label, host and ports of each endpoint."""
        for places in self.slices.values():
            for (label, host), ports in places.items():
                yield label, host, ports

    def labelled(self, label: str) -> Iterator[tuple[str, str, Listed]]:
        for (_, host), ports in self.by_label.get(label, {}).items():
            yield label, host, ports

    def ports(self) -> Iterator[Port]:
        """The ports of all endpoints, those of a slice once."""
        for ports in dict.fromkeys(ports for _, _, listed in self for ports in listed):
            yield from ports.all


NO_ENDPOINTS = ServiceEndpoints()


class NamedEndpoint(msgspec.Struct, frozen=True, gc=False):
    """The parts of an endpoint's name, which its address's PTR record points to."""

    namespace: str
    service: str
    label: str


class ClusterZone:
    """Services, endpoints, Pods and namespaces as DNS needs them, and the serial, which changes with them."""

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK, pod_names: bool = False) -> None:
        self.serial = 0
        self._clock = clock
        self._pod_names = pod_names
        self.clear()

    def clear(self) -> None:
        """Forget everything but the serial, to be told it all again."""
        self.namespaces: set[str] = set()
        self.services: dict[ServiceKey, Service] = {}
        self._endpoints: dict[ServiceKey, ServiceEndpoints] = {}
        self._service_of_slice: dict[tuple[str, str], str] = {}
        self._services_by_address: dict[bytes, dict[ServiceKey, None]] = {}
        self._endpoints_by_address: dict[bytes, dict[NamedEndpoint, int]] = {}
        self._pods_by_address: dict[tuple[str, str], set[str]] = {}
        self._pod_addresses: dict[tuple[str, str], str] = {}

    # --- reading -----------------------------------------------------------------------------------

    def endpoints(self, namespace: str, service: str) -> ServiceEndpoints:
        return self._endpoints.get((namespace, service), NO_ENDPOINTS)

    def services_at(self, address: bytes) -> Iterable[ServiceKey]:
        """The Services with this cluster address: for a moment two, if one took it over from the other.

        In the order of their names, so that the answer does not depend on which was heard of first.
        """
        return sorted(self._services_by_address.get(address, ()))

    def endpoints_at(self, address: bytes) -> Iterable[NamedEndpoint]:
        """The names of the endpoints at this address."""
        return self._endpoints_by_address.get(address, ())

    def pods_at(self, namespace: str, address: str) -> int:
        """How many Pods of a namespace have this address."""
        return len(self._pods_by_address.get((namespace, address), ()))

    def addresses(self) -> Iterator[bytes]:
        """Every address of a Service or endpoint."""
        yield from self._services_by_address.keys() | self._endpoints_by_address.keys()

    # --- namespaces and Services -------------------------------------------------------------------

    def put_namespace(self, name: str) -> Touched:
        if name in self.namespaces:
            return set()
        self.namespaces.add(name)
        return self._changed({("namespace", name)})

    def remove_namespace(self, name: str) -> Touched:
        if name not in self.namespaces:
            return set()
        self.namespaces.discard(name)
        return self._changed({("namespace", name)})

    def put_service(self, service: Service) -> Touched:
        key = (service.metadata.namespace, service.metadata.name)
        before = self.services.get(key)
        if before is not None and _named_by(before) == _named_by(service):
            return set()
        self.services[key] = service
        return self._changed(self._move_service(key, before, service))

    def remove_service(self, namespace: str, name: str) -> Touched:
        key = (namespace, name)
        before = self.services.pop(key, None)
        return self._changed(self._move_service(key, before, None)) if before is not None else set()

    def _move_service(self, key: ServiceKey, before: Service | None, after: Service | None) -> Touched:
        touched: Touched = {("service", *key)}
        old, new = _cluster_addresses(before), _cluster_addresses(after)
        for address in old - new:
            holders = self._services_by_address[address]
            del holders[key]
            if not holders:
                del self._services_by_address[address]
        for address in new - old:
            self._services_by_address.setdefault(address, {})[key] = None
        touched.update(("address", address) for address in old ^ new)
        return touched

    # --- endpoints ---------------------------------------------------------------------------------

    def put_slice(self, slice: EndpointSlice) -> Touched:
        ports = self._known_ports(slice, Ports(slice.ports))
        places: dict[Place, Listed] = {}
        for endpoint in slice.endpoints or ():
            if endpoint.ready:
                target = endpoint.target_ref.name if endpoint.target_ref else ""
                for host in endpoint.addresses or ():
                    place = (self._label(endpoint.hostname or "", target, host), host)
                    # An address listed twice gets its ports twice, which halves the weight of its SRV records, as in
                    # CoreDNS.
                    listed = places.get(place, ())
                    if len(listed) < _MOST_TIMES:
                        places[place] = (*listed, ports)
        return self._replace_slice(slice.metadata.namespace, slice.metadata.name, slice.service_name, places)

    def _known_ports(self, slice: EndpointSlice, ports: Ports) -> Ports:
        """The ports that the slice had before, if they are the same: they are not compared for each endpoint then."""
        places = self.endpoints(slice.metadata.namespace, slice.service_name).slices.get(slice.metadata.name, {})
        before = next(iter(places.values()), (ports,))[0]
        return before if before == ports else ports

    def remove_slice(self, namespace: str, name: str) -> Touched:
        return self._replace_slice(namespace, name, "", {})

    def put_endpoints(self, endpoints: Endpoints) -> Touched:
        listed: dict[Place, list[Ports]] = {}
        for subset in endpoints.subsets or ():
            ports = Ports(subset.ports)
            for address in subset.addresses or ():
                target = address.target_ref.name if address.target_ref else ""
                place = (self._label(address.hostname, target, address.ip), address.ip)
                listed.setdefault(place, []).append(ports)
        name = endpoints.metadata.name
        places = {place: tuple(ports) for place, ports in listed.items()}
        return self._replace_slice(endpoints.metadata.namespace, name, name, places)

    def remove_endpoints(self, namespace: str, name: str) -> Touched:
        return self._replace_slice(namespace, name, "", {})

    def _label(self, hostname: str, target: str, host: str) -> str:
        if hostname:
            return hostname.lower()
        if self._pod_names and target and len(target) <= _LONGEST_LABEL:
            return target.lower()
        return dashed(host.lower())

    def _replace_slice(self, namespace: str, name: str, service: str, places: Mapping[Place, Listed]) -> Touched:
        """Replace a slice's places; an empty ``service`` removes the slice."""
        touched: Touched = set()
        slice_key = (namespace, name)
        before = self._service_of_slice.pop(slice_key, "")
        if before and before != service:
            touched |= self._swap_places(namespace, before, name, {})
        if service:
            self._service_of_slice[slice_key] = service
            touched |= self._swap_places(namespace, service, name, places)
        return self._changed(touched)

    def _swap_places(self, namespace: str, service: str, slice: str, after: Mapping[Place, Listed]) -> Touched:
        of_service = self._endpoints.get((namespace, service))
        if of_service is None:
            of_service = self._endpoints[namespace, service] = ServiceEndpoints()
        before = of_service.slices.pop(slice, {})
        if after:
            of_service.slices[slice] = after
        touched: Touched = set()
        for place in before.keys() | after.keys():
            old, new = before.get(place), after.get(place)
            if old == new:
                continue
            label, host = place
            touched.add(("endpoint", namespace, service, label))
            if new is None:
                of_label = of_service.by_label[label]
                del of_label[slice, host]
                if not of_label:
                    del of_service.by_label[label]
            else:
                of_service.by_label.setdefault(label, {})[slice, host] = new
            if (old is None) != (new is None):
                address = parse_address(host)
                if address is not None:
                    touched.add(("address", address))
                    self._count_name(address, NamedEndpoint(namespace, service, label), 1 if old is None else -1)
        if touched:
            touched.add(("endpoints", namespace, service))
        if not of_service.slices:
            del self._endpoints[namespace, service]
        return touched

    def _count_name(self, address: bytes, name: NamedEndpoint, difference: int) -> None:
        names = self._endpoints_by_address.setdefault(address, {})
        count = names.get(name, 0) + difference
        if count:
            names[name] = count
            return
        del names[name]
        if not names:
            del self._endpoints_by_address[address]

    # --- Pods --------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> Touched:
        """Add or update a Pod.  As in CoreDNS, updates of a Pod that is being deleted are ignored."""
        if pod.status.phase in _GONE:
            return self.remove_pod(pod.metadata.namespace, pod.metadata.name)
        if pod.metadata.deletion_timestamp:
            return set()
        return self._move_pod(pod.metadata.namespace, pod.metadata.name, pod.status.pod_ip)

    def remove_pod(self, namespace: str, name: str) -> Touched:
        return self._move_pod(namespace, name, "")

    def _move_pod(self, namespace: str, name: str, address: str) -> Touched:
        before = self._pod_addresses.pop((namespace, name), "")
        if address:
            self._pod_addresses[namespace, name] = address
        if before == address:
            return set()
        touched: Touched = set()
        if before:
            holders = self._pods_by_address[namespace, before]
            holders.discard(name)
            if not holders:
                del self._pods_by_address[namespace, before]
            touched.add(("pod", namespace, before))
        if address:
            self._pods_by_address.setdefault((namespace, address), set()).add(name)
            touched.add(("pod", namespace, address))
        return self._changed(touched)

    # --- the serial --------------------------------------------------------------------------------

    def _changed(self, touched: Touched) -> Touched:
        """If anything was touched, set the serial to the current time, and add it to the touched facts."""
        if touched:
            now = int(self._clock.time()) & 0xFFFFFFFF
            if now != self.serial:
                self.serial = now
                touched.add(SERIAL)
        return touched


def _named_by(service: Service) -> tuple[object, ...]:
    """All that the names of a Service depend on."""
    spec = service.spec
    ports = [(port.name, port.protocol, port.port) for port in spec.ports]
    return spec.type, service.addresses, spec.external_name, ports


def _cluster_addresses(service: Service | None) -> set[bytes]:
    if service is None:
        return set()
    return {packed for text in service.addresses if (packed := parse_address(text)) is not None}


def port_of(port: AnyPort) -> Port:
    number = -1 if port.port is None else port.port
    return (port.name or "").lower(), (port.protocol or "TCP").lower(), number
