"""From a question to an answer, and why: the cluster's names as CoreDNS's kubernetes plugin serves them.

Reads only the zone, decides nothing about sockets, bytes or upstream resolvers.  Where an ExternalName leads out of
the zone, ``follow`` says which names are still to be asked for elsewhere.  Where CoreDNS and the DNS specification
differ, CoreDNS is followed: that is what clusters run.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import msgspec

from seamark.dns.config import ZoneConfig
from seamark.dns.names import (
    Apex,
    BranchName,
    Labels,
    NamespaceName,
    Nowhere,
    PodName,
    ReverseName,
    ServerName,
    ServiceName,
    Shape,
    VersionName,
    format_address,
    parse,
    parse_address,
    within,
)
from seamark.dns.records import Question, Rcode, Record, Spelled, Type, lowered, spell, spellable
from seamark.dns.zone import NO_PORT, SERIAL, ClusterZone, Fact, Port, port_of

SPECIFICATION_VERSION = "1.1.0"
_VERSION_TTL = 28800
_SOA_TTL = 300
_LONGEST_CHAIN = 8
ADDRESS_LENGTHS: Mapping[int, int] = {Type.A: 4, Type.AAAA: 16}

Target = tuple[str, int, str]  # host, port, and the label of the endpoint (empty: the Service itself)


class Answer(msgspec.Struct, gc=False):
    """What to reply.  ``depends`` are the facts it rests on; ``zone`` is the served zone the name lies in."""

    rcode: int
    why: str
    zone: Labels
    depends: set[Fact]
    answers: list[Record]
    authority: list[Record]
    additional: list[Record]
    follow: list[Spelled]


class _Found(msgspec.Struct, frozen=True, gc=False):
    """Whether a name exists, where it points, and why so."""

    exists: bool
    why: str
    targets: Sequence[Target] = ()


class _Lookup(msgspec.Struct, gc=False):
    """One question on its way: the zone it lies in, as configured and as spelled, and what was looked at."""

    question: Question
    zone: Labels
    zone_spelled: Spelled
    depends: set[Fact]


class Authority:
    """The zones this server answers for."""

    def __init__(self, zone: ClusterZone, config: ZoneConfig, *, local_addresses: Sequence[bytes] = ()) -> None:
        self.zones = config.zone_labels
        self._state = zone
        self._config = config
        self._ttl = config.ttl
        self._primary: Spelled = tuple(label.encode() for label in config.primary)
        self._namespaces = frozenset(config.namespaces)
        self._filtered = bool(config.namespaces or config.namespace_labels)
        self._local_addresses = tuple(local_addresses)

    def zone_of(self, name: Labels) -> Labels | None:
        """The served zone a name lies in, the longest if several do."""
        for zone in self.zones:
            if within(name, zone):
                return zone
        return None

    def answer(self, question: Question, zone: Labels) -> Answer:
        """The answer to a question about a name in one of the zones."""
        spelled = question.spelled
        look = _Lookup(question, zone, spelled[len(spelled) - len(zone) :], set())
        shape = parse(question.name, zone)
        match question.type:
            case Type.A | Type.AAAA:
                return self._addresses(look, shape)
            case Type.SRV:
                return self._services(look, shape)
            case Type.PTR:
                return self._pointers(look, shape)
            case Type.CNAME:
                return self._canonical(look, shape)
            case Type.TXT:
                return self._text(look, shape)
            case Type.SOA:
                soa = self.soa(look.zone_spelled)
                look.depends.add(SERIAL)
                if isinstance(shape, Apex):
                    return self._positive(look, [soa], why="the zone's own record")
                return self._no_data(look, "only the zone itself has an SOA record")
            case Type.NS if isinstance(shape, Apex):
                return self._name_servers(look)
        found = self._find(look, shape)
        return self._negative(look, found, f"there are no records of type {question.type}")

    def soa(self, zone_spelled: Spelled) -> Record:
        numbers = struct.pack("!5I", self._state.serial, 7200, 1800, 86400, self._ttl)
        names = ((b"ns", b"dns", *zone_spelled), (b"hostmaster", *zone_spelled))
        return Record(zone_spelled, Type.SOA, min(self._ttl, _SOA_TTL), (*names, numbers))

    # --- by type -----------------------------------------------------------------------------------

    def _addresses(self, look: _Lookup, shape: Shape) -> Answer:
        found = self._find(look, shape)
        if not found.exists:
            return self._negative(look, found, "")
        records: list[Record] = []
        follow: list[Spelled] = []
        self._resolve(look, look.question, found, records, follow, chain=[])
        if not records:
            return self._no_data(look, f"{found.why}, but nothing of this family")
        return self._positive(look, records, why=found.why, follow=follow)

    def _resolve(
        self,
        look: _Lookup,
        question: Question,
        found: _Found,
        records: list[Record],
        follow: list[Spelled],
        *,
        chain: list[Labels],
    ) -> None:
        """Add what ``found`` points to: addresses of the family asked for, and where an alias leads.

        An alias is left out if it leads nowhere inside the zone, back to where the chain has been, or below itself.
        """
        length = ADDRESS_LENGTHS[question.type]
        seen: set[bytes] = set()
        for host, _, _ in found.targets:
            packed = parse_address(host)
            if packed is not None:
                if len(packed) == length and packed not in seen:
                    seen.add(packed)
                    records.append(Record(question.spelled, question.type, self._ttl, (packed,)))
                continue
            target = spell(host)
            name = lowered(target)
            if within(name, question.name) or name in chain or len(chain) >= _LONGEST_CHAIN:
                continue
            alias = Record(question.spelled, Type.CNAME, self._ttl, (target,))
            if not within(name, look.zone):
                records.append(alias)
                follow.append(target)
                continue
            further: list[Record] = []
            onward = Question(target, name, question.type)
            there = self._find(look, parse(name, look.zone))
            self._resolve(look, onward, there, further, follow, chain=[*chain, name])
            if further:
                records += [alias, *further]

    def _services(self, look: _Lookup, shape: Shape) -> Answer:
        found = self._find(look, shape)
        targets = [
            (host, port, label, packed) for host, port, label in found.targets if (packed := parse_address(host))
        ]
        if isinstance(shape, ServerName):
            targets = []
        records: list[Record] = []
        glue: list[Record] = []
        seen: set[tuple[object, ...]] = set()
        weight = max(1, 100 // len(targets)) if targets else 0
        for _, port, label, packed in targets:
            if port < 0:
                continue
            target = self._name_of(shape, label, look.zone_spelled)
            if (target, port) not in seen:
                seen.add((target, port))
                data = (struct.pack("!3H", 0, weight, port), target)
                records.append(Record(look.question.spelled, Type.SRV, self._ttl, data))
            if (target, packed) not in seen:
                seen.add((target, packed))
                glue.append(Record(target, Type.A if len(packed) == 4 else Type.AAAA, self._ttl, (packed,)))
        if not records:
            return self._negative(look, found, "but no ports to name")
        return self._positive(look, records, why=found.why, additional=glue)

    def _pointers(self, look: _Lookup, shape: Shape) -> Answer:
        match shape:
            case ReverseName(address):
                names = self._names_at(look, address)
                if not names:
                    why = f"{format_address(address)} is no cluster address of a Service and no ready endpoint"
                    return self._negative(look, _Found(False, why), "")
                records = [Record(look.question.spelled, Type.PTR, self._ttl, (name,)) for name in names]
                return self._positive(look, records, why=f"{format_address(address)} has a name")
            case ServerName():
                return self._negative(look, _Found(False, "ns.dns has addresses only"), "")
        return self._negative(look, self._find(look, shape), "it is not the name of an address")

    def _canonical(self, look: _Lookup, shape: Shape) -> Answer:
        found = self._find(look, shape)
        if found.targets and not isinstance(shape, ServerName):
            host = found.targets[0][0]
            if parse_address(host) is None:
                record = Record(look.question.spelled, Type.CNAME, self._ttl, (spell(host),))
                return self._positive(look, [record], why=found.why)
        return self._negative(look, found, "it is no alias")

    def _text(self, look: _Lookup, shape: Shape) -> Answer:
        if isinstance(shape, VersionName):
            text = SPECIFICATION_VERSION.encode()
            record = Record(look.question.spelled, Type.TXT, _VERSION_TTL, (bytes([len(text)]) + text,))
            return self._positive(look, [record], why="the version of the DNS specification")
        found = _Found(False, "ns.dns has no text") if isinstance(shape, ServerName) else self._find(look, shape)
        if found.exists and not found.targets:
            # CoreDNS looks for records here, not for names: what is empty does not exist for text.
            found = _Found(False, f"{found.why}, and no records")
        return self._negative(look, found, "nothing here has text")

    def _name_servers(self, look: _Lookup) -> Answer:
        records: dict[Spelled, Record] = {}
        glue = []
        for name, packed in self._server_addresses(look):
            records.setdefault(name, Record(look.question.spelled, Type.NS, self._ttl, (name,)))
            glue.append(Record(name, Type.A if len(packed) == 4 else Type.AAAA, self._ttl, (packed,)))
        if not records:
            return self._no_data(look, "this server knows no address of its own but loopback")
        return self._positive(look, list(records.values()), why="the servers of this zone", additional=glue)

    # --- finding -----------------------------------------------------------------------------------

    def _find(self, look: _Lookup, shape: Shape) -> _Found:
        """Whether the name exists and what it points to."""
        match shape:
            case Apex():
                return _Found(True, "the zone is here")
            case BranchName(branch):
                return _Found(True, f"{branch} has names below it")
            case ServerName():
                hosts = [(format_address(packed), 0, "") for _, packed in self._server_addresses(look)]
                return _Found(True, "the server itself", hosts)
            case NamespaceName(branch, namespace):
                return self._find_namespace(look, branch, namespace)
            case PodName(namespace):
                return self._find_namespace(look, "pod", namespace, shape)
            case ServiceName(namespace):
                return self._find_namespace(look, "svc", namespace, shape)
            case VersionName():
                return _Found(False, "dns-version has text only")
            case ReverseName(address):
                return _Found(False, f"{format_address(address)} has pointers only")
            case Nowhere(why):
                return _Found(False, why)

    def _find_namespace(
        self, look: _Lookup, branch: str, namespace: str, shape: PodName | ServiceName | None = None
    ) -> _Found:
        look.depends.add(("namespace", namespace))
        if not self._exposed(namespace):
            return _Found(False, f"there is no namespace {namespace}")
        if branch == "pod" and self._config.pods == "disabled":
            return _Found(False, "names of Pods are not served (pods disabled)")
        if isinstance(shape, PodName):
            return self._find_pod(look, shape)
        if isinstance(shape, ServiceName):
            return self._find_service(look, shape)
        return _Found(True, f"there is a namespace {namespace}")

    def _exposed(self, namespace: str) -> bool:
        return namespace in self._state.namespaces and (not self._namespaces or namespace in self._namespaces)

    def _find_pod(self, look: _Lookup, name: PodName) -> _Found:
        address = name.address
        if parse_address(address) is None:
            return _Found(False, f"{name.pod} is not a dashed address")
        if self._config.pods == "insecure":
            return _Found(True, f"{address} is taken for a Pod unseen (pods insecure)", [(address, 0, "")])
        look.depends.add(("pod", name.namespace, address))
        count = self._state.pods_at(name.namespace, address)
        if not count:
            return _Found(False, f"no Pod in namespace {name.namespace} has the address {address}")
        return _Found(
            True, f"a Pod in namespace {name.namespace} has the address {address}", [(address, 0, "")] * count
        )

    def _find_service(self, look: _Lookup, name: ServiceName) -> _Found:
        namespace, key = name.namespace, (name.namespace, name.service)
        look.depends.add(("service", *key))
        service = self._state.services.get(key)
        if service is None:
            return _Found(False, f"there is no Service {name.service} in namespace {namespace}")
        called = f"Service {name.service} in namespace {namespace}"
        if service.external:
            if name.endpoint or name.port or name.protocol:
                return _Found(False, f"{called} is an ExternalName, with nothing below it")
            external = service.spec.external_name.rstrip(".")
            if parse_address(external) is not None or not external or not spellable(spell(external)):
                return _Found(False, f"{called} is an ExternalName, but {external or 'nothing'} is not a name")
            return _Found(True, f"{called} is an ExternalName", [(external, 0, "")])
        if service.headless or name.endpoint:
            return self._find_endpoints(look, name, called)
        if self._config.ignore_empty_services:
            look.depends.add(("endpoints", *key))
            if not self._state.endpoints(*key).slices:
                return _Found(False, f"{called} has no ready endpoints, and empty Services are ignored")
        ports = [port_of(port) for port in service.spec.ports] or [NO_PORT]
        wanted = [port for port in ports if _matches(port, name)]
        if not wanted:
            return _Found(False, f"{called} has no port {_port_name(name)}")
        targets = [(host, number, "") for _, _, number in wanted for host in service.addresses if host]
        return _Found(True, f"{called} has a cluster address", targets)

    def _find_endpoints(self, look: _Lookup, name: ServiceName, called: str) -> _Found:
        endpoints = self._state.endpoints(name.namespace, name.service)
        if name.endpoint:
            look.depends.add(("endpoint", name.namespace, name.service, name.endpoint))
            places = endpoints.labelled(name.endpoint)
        else:
            look.depends.add(("endpoints", name.namespace, name.service))
            places = iter(endpoints)
        targets = [(host, port[2], label) for label, host, ports in places for port in ports if _matches(port, name)]
        if targets:
            return _Found(True, f"{called} has ready endpoints", targets)
        if name.endpoint:
            return _Found(False, f"{called} has no ready endpoint called {name.endpoint}")
        if endpoints.slices:
            return _Found(False, f"{called} has no endpoint with a port {_port_name(name)}")
        return _Found(False, f"{called} is headless and has no ready endpoints")

    def _names_at(self, look: _Lookup, address: bytes) -> list[Spelled]:
        """The Service with this cluster address, else every name that endpoints have there."""
        look.depends.add(("address", address))
        for namespace, service in self._state.services_at(address):
            if self._shown(look, namespace):
                return [_spelled_service(namespace, service, "", self._primary)]
        return [
            _spelled_service(named.namespace, named.service, named.label, self._primary)
            for named in self._state.endpoints_at(address)
            if self._shown(look, named.namespace)
        ]

    def _shown(self, look: _Lookup, namespace: str) -> bool:
        """Whether addresses of this namespace are named: where namespaces are filtered, only theirs are."""
        if not self._filtered:
            return True
        look.depends.add(("namespace", namespace))
        return self._exposed(namespace)

    def _server_addresses(self, look: _Lookup) -> list[tuple[Spelled, bytes]]:
        """Names and addresses of the DNS Service this server is an endpoint of; else where it listens."""
        found: list[tuple[Spelled, bytes]] = []
        for local in self._local_addresses:
            look.depends.add(("address", local))
            for named in self._state.endpoints_at(local):
                key = (named.namespace, named.service)
                look.depends.add(("service", *key))
                service = self._state.services.get(key)
                if service is None:
                    continue
                if not service.headless:
                    name = _spelled_service(*key, "", look.zone_spelled)
                    found += [(name, packed) for text in service.addresses if (packed := parse_address(text))]
                    continue
                look.depends.add(("endpoints", *key))
                for label, host, _ in self._state.endpoints(*key):
                    packed = parse_address(host)
                    if packed is not None:
                        found.append((_spelled_service(*key, label, look.zone_spelled), packed))
        if not found:
            name = (b"ns", b"dns", *look.zone_spelled)
            found = [(name, local) for local in self._local_addresses]
        return list(dict.fromkeys(found))

    def _name_of(self, shape: Shape, label: str, zone_spelled: Spelled) -> Spelled:
        if isinstance(shape, PodName):
            return (shape.pod.encode("latin-1"), shape.namespace.encode("latin-1"), b"pod", *zone_spelled)
        assert isinstance(shape, ServiceName), "only Services and Pods have ports"
        return _spelled_service(shape.namespace, shape.service, label, zone_spelled)

    # --- answers -----------------------------------------------------------------------------------

    def _positive(
        self,
        look: _Lookup,
        records: list[Record],
        *,
        why: str,
        additional: list[Record] | None = None,
        follow: list[Spelled] | None = None,
    ) -> Answer:
        return Answer(Rcode.NOERROR, why, look.zone, look.depends, records, [], additional or [], follow or [])

    def _negative(self, look: _Lookup, found: _Found, lacks: str) -> Answer:
        if found.exists:
            return self._no_data(look, f"{found.why}, but {lacks.removeprefix('but ')}")
        look.depends.add(SERIAL)
        soa = [self.soa(look.zone_spelled)]
        return Answer(Rcode.NXDOMAIN, found.why, look.zone, look.depends, [], soa, [], [])

    def _no_data(self, look: _Lookup, why: str) -> Answer:
        look.depends.add(SERIAL)
        soa = [self.soa(look.zone_spelled)]
        return Answer(Rcode.NOERROR, why, look.zone, look.depends, [], soa, [], [])


def _matches(port: Port, name: ServiceName) -> bool:
    return name.port in ("", port[0]) and name.protocol in ("", port[1])


def _port_name(name: ServiceName) -> str:
    return f"{name.port or 'any'}/{name.protocol or 'any'}"


def _spelled_service(namespace: str, service: str, label: str, zone: Spelled) -> Spelled:
    """A label may have dots where it is a Pod's name."""
    return (*spell(label), service.encode(), namespace.encode(), b"svc", *zone)
