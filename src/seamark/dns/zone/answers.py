"""Answers questions about the cluster's names, with the reason, as CoreDNS's kubernetes plugin does.

It only reads the zone and knows nothing of sockets, bytes or upstream resolvers.  If an ExternalName leads out of the
zone, ``follow`` lists the names that the caller must resolve elsewhere.  Where CoreDNS and the DNS specification
differ, this follows CoreDNS, because that is what clusters run.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import msgspec

from seamark.dns.config import ZoneConfig
from seamark.dns.zone.lookup import Found, Lookup, spelled_service
from seamark.dns.zone.names import (
    Apex,
    Labels,
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
from seamark.dns.zone.records import Question, Rcode, Record, Spelled, Type, lowered, spell
from seamark.dns.zone.state import NO_PORT, SERIAL, ClusterZone, Fact

SPECIFICATION_VERSION = "1.1.0"
_VERSION_TTL = 28800
_SOA_TTL = 300
_LONGEST_CHAIN = 11
ADDRESS_LENGTHS: Mapping[int, int] = {Type.A: 4, Type.AAAA: 16}


class Answer(msgspec.Struct, gc=False):
    """What to reply.  ``depends`` are the facts it was made from; ``zone`` is the served zone of the name."""

    rcode: int
    why: str
    zone: Labels
    depends: set[Fact]
    answers: list[Record]
    authority: list[Record]
    additional: list[Record]
    follow: list[Spelled]


class _Asked(msgspec.Struct, gc=False):
    """A question, the zone that contains it (as configured and as spelled), and the facts read so far."""

    question: Question
    zone: Labels
    zone_spelled: Spelled
    depends: set[Fact]


class Authority:
    """The zones this server answers for."""

    def __init__(self, zone: ClusterZone, config: ZoneConfig, *, local_addresses: Sequence[bytes] = ()) -> None:
        self.zones = config.zone_labels
        self._zone = zone
        self._ttl = config.ttl
        self._lookup = Lookup(zone, config, local_addresses=local_addresses)

    def zone_of(self, name: Labels) -> Labels | None:
        """The served zone that contains a name; the longest if several do."""
        for zone in self.zones:
            if within(name, zone):
                return zone
        return None

    def answer(self, question: Question, zone: Labels) -> Answer:
        """The answer to a question about a name in one of the zones."""
        spelled = question.spelled
        asked = _Asked(question, zone, spelled[len(spelled) - len(zone) :], set())
        shape = _shape(question.name, asked)
        match question.type:
            case Type.A | Type.AAAA:
                return self._addresses(asked, shape)
            case Type.SRV:
                return self._services(asked, shape)
            case Type.PTR:
                return self._pointers(asked, shape)
            case Type.CNAME:
                return self._canonical(asked, shape)
            case Type.TXT:
                return self._text(asked, shape)
            case Type.SOA:
                soa = self.soa(asked.zone_spelled)
                asked.depends.add(SERIAL)
                if isinstance(shape, Apex):
                    return self._positive(asked, [soa], why="the zone's own record")
                return self._no_data(asked, "only the zone itself has an SOA record")
            case Type.NS if isinstance(shape, Apex):
                return self._name_servers(asked)
        found = self._lookup.find(shape, asked.depends)
        return self._negative(asked, found, f"there are no records of type {question.type}")

    def soa(self, zone_spelled: Spelled) -> Record:
        numbers = struct.pack("!5I", self._zone.serial, 7200, 1800, 86400, self._ttl)
        names = ((b"ns", b"dns", *zone_spelled), (b"hostmaster", *zone_spelled))
        return Record(zone_spelled, Type.SOA, min(self._ttl, _SOA_TTL), (*names, numbers))

    # --- by type -----------------------------------------------------------------------------------

    def _addresses(self, asked: _Asked, shape: Shape) -> Answer:
        found = self._lookup.find(shape, asked.depends)
        if not found.exists:
            return self._negative(asked, found, "")
        records: list[Record] = []
        follow: list[Spelled] = []
        self._resolve(asked, asked.question, found, records, follow, chain=[])
        if not records:
            return self._no_data(asked, f"{found.why}, but nothing of this family")
        return self._positive(asked, records, why=found.why, follow=follow)

    def _resolve(
        self,
        asked: _Asked,
        question: Question,
        found: Found,
        records: list[Record],
        follow: list[Spelled],
        *,
        chain: list[Labels],
    ) -> None:
        """Add the records for ``found``: addresses of the requested family, and aliases with their targets' records.

        An alias is left out if its target is in the zone but has no records, is already in the chain, or is below the
        alias itself.
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
            if not within(name, asked.zone):
                records.append(alias)
                follow.append(target)
                continue
            further: list[Record] = []
            onward = Question(target, name, question.type)
            there = self._lookup.find(_shape(name, asked), asked.depends)
            self._resolve(asked, onward, there, further, follow, chain=[*chain, name])
            if further:
                records += [alias, *further]

    def _services(self, asked: _Asked, shape: Shape) -> Answer:
        found = self._lookup.find(shape, asked.depends)
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
            if port == NO_PORT[2]:
                continue
            target = _target(shape, label, asked.zone_spelled)
            if (target, port) not in seen:
                seen.add((target, port))
                # Mask the port, because the API does not check the ports of EndpointSlices.
                data = (struct.pack("!3H", 0, weight, port & 0xFFFF), target)
                records.append(Record(asked.question.spelled, Type.SRV, self._ttl, data))
            if (target, packed) not in seen:
                seen.add((target, packed))
                glue.append(Record(target, Type.A if len(packed) == 4 else Type.AAAA, self._ttl, (packed,)))
        if not records:
            return self._negative(asked, found, "but no ports to name")
        return self._positive(asked, records, why=found.why, additional=glue)

    def _pointers(self, asked: _Asked, shape: Shape) -> Answer:
        match shape:
            case ReverseName(address):
                names = self._lookup.names_at(address, asked.depends)
                if not names:
                    why = f"{format_address(address)} is no cluster address of a Service and no ready endpoint"
                    return self._negative(asked, Found(False, why), "")
                records = [Record(asked.question.spelled, Type.PTR, self._ttl, (name,)) for name in names]
                return self._positive(asked, records, why=f"{format_address(address)} has a name")
            case ServerName():
                return self._negative(asked, Found(False, "ns.dns has addresses only"), "")
        return self._negative(asked, self._lookup.find(shape, asked.depends), "it is not the name of an address")

    def _canonical(self, asked: _Asked, shape: Shape) -> Answer:
        found = self._lookup.find(shape, asked.depends)
        if found.targets and not isinstance(shape, ServerName):
            host = found.targets[0][0]
            if parse_address(host) is None:
                record = Record(asked.question.spelled, Type.CNAME, self._ttl, (spell(host),))
                return self._positive(asked, [record], why=found.why)
        return self._negative(asked, found, "it is no alias")

    def _text(self, asked: _Asked, shape: Shape) -> Answer:
        if isinstance(shape, VersionName):
            text = SPECIFICATION_VERSION.encode()
            record = Record(asked.question.spelled, Type.TXT, _VERSION_TTL, (bytes([len(text)]) + text,))
            return self._positive(asked, [record], why="the version of the DNS specification")
        found = (
            Found(False, "ns.dns has no text")
            if isinstance(shape, ServerName)
            else self._lookup.find(shape, asked.depends)
        )
        if found.exists and not found.targets:
            # CoreDNS looks for records here, not for names: for TXT, a name without records does not exist.
            found = Found(False, f"{found.why}, and no records")
        return self._negative(asked, found, "nothing here has text")

    def _name_servers(self, asked: _Asked) -> Answer:
        records: dict[Spelled, Record] = {}
        glue = []
        for name, packed in self._lookup.server_addresses(asked.zone_spelled, asked.depends):
            records.setdefault(name, Record(asked.question.spelled, Type.NS, self._ttl, (name,)))
            glue.append(Record(name, Type.A if len(packed) == 4 else Type.AAAA, self._ttl, (packed,)))
        if not records:
            return self._no_data(asked, "this server knows no address of its own but loopback")
        return self._positive(asked, list(records.values()), why="the servers of this zone", additional=glue)

    # --- answers -----------------------------------------------------------------------------------

    def _positive(
        self,
        asked: _Asked,
        records: list[Record],
        *,
        why: str,
        additional: list[Record] | None = None,
        follow: list[Spelled] | None = None,
    ) -> Answer:
        return Answer(Rcode.NOERROR, why, asked.zone, asked.depends, records, [], additional or [], follow or [])

    def _negative(self, asked: _Asked, found: Found, lacks: str) -> Answer:
        if found.exists:
            return self._no_data(asked, f"{found.why}, but {lacks.removeprefix('but ')}")
        asked.depends.add(SERIAL)
        soa = [self.soa(asked.zone_spelled)]
        return Answer(Rcode.NXDOMAIN, found.why, asked.zone, asked.depends, [], soa, [], [])

    def _no_data(self, asked: _Asked, why: str) -> Answer:
        asked.depends.add(SERIAL)
        soa = [self.soa(asked.zone_spelled)]
        return Answer(Rcode.NOERROR, why, asked.zone, asked.depends, [], soa, [], [])


def _shape(name: Labels, asked: _Asked) -> Shape:
    """What a name stands for.  As in CoreDNS, ``ns.dns`` exists only if the zone is spelled in lower case."""
    shape = parse(name, asked.zone)
    if isinstance(shape, ServerName) and any(label != label.lower() for label in asked.zone_spelled):
        return Nowhere("the server's own name is known in lower case only")
    return shape


def _target(shape: Shape, label: str, zone_spelled: Spelled) -> Spelled:
    """The target of an SRV record."""
    if isinstance(shape, PodName):
        return (shape.pod.encode("latin-1"), shape.namespace.encode("latin-1"), b"pod", *zone_spelled)
    assert isinstance(shape, ServiceName), "only Services and Pods have ports"
    return spelled_service(shape.namespace, shape.service, label, zone_spelled)
