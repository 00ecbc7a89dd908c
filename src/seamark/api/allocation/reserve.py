"""Addresses and node ports as part of an object's own transaction.

A kind plans what its object takes and frees (:meth:`seamark.kinds.kind.Kind.allocate`); here the plan becomes writes.
An address is held by its IPAddress object, a node port by a key of its own.  Both are written with "must be absent", so
that the store itself refuses what another server has taken meanwhile.
"""

from __future__ import annotations

import random as chance

import msgspec

from seamark.api.settings import ServiceNetwork
from seamark.api.state.cache import PORTS_PREFIX, Cache
from seamark.api.state.entries import key_of, stored
from seamark.clock import Clock
from seamark.errors import Object
from seamark.kinds.allocation import Allocation
from seamark.kinds.kind import Kind
from seamark.kinds.resource import IP_ADDRESSES, SERVICE_CIDRS
from seamark.kinds.service.ipaddress import ip_address_object
from seamark.kinds.service.servicecidr import DEFAULT_CIDR, usable_ranges
from seamark.kinds.subresource import Part
from seamark.kinds.values import times
from seamark.store.protocol import Write


class Reserved(msgspec.Struct):
    """The writes that go with an object's own; ``before`` is the object's spec before anything was filled in."""

    writes: list[Write]
    before: Object | None = None

    def take_back(self, obj: Object) -> None:
        """Undo what planning put into the object, to plan again after losing a race."""
        if self.before is not None:
            obj["spec"] = self.before


def port_reservation(port: int, namespace: str, name: str) -> Write:
    """The write that holds a node port for a Service; it fails if the port is taken."""
    return Write(f"{PORTS_PREFIX}{port}", msgspec.json.encode({"service": f"{namespace}/{name}"}), 0)


class ClusterPool:
    """The ranges of this cluster, and what is taken of them right now (:class:`seamark.kinds.allocation.Pool`)."""

    def __init__(self, cache: Cache, network: ServiceNetwork, random: chance.Random) -> None:
        self._addresses = cache.of(IP_ADDRESSES).entries
        self._ports = cache.ports
        self._service_cidrs = cache.of(SERVICE_CIDRS).entries
        self.ranges = network.ranges
        self.node_ports = network.node_ports
        self.random = random

    @property
    def open_ranges(self) -> list[str]:
        """The ranges of the ServiceCIDRs, the configured ones first: those alone count until there is a default one."""
        configured = [] if DEFAULT_CIDR in self._service_cidrs else self.ranges
        found = [cidr for entry in self._service_cidrs.values() for cidr in usable_ranges(entry.decode())]
        return sorted(dict.fromkeys((*configured, *found)), key=lambda cidr: cidr not in self.ranges)

    def has_address(self, address: str) -> bool:
        return address in self._addresses

    def has_port(self, port: int) -> bool:
        return port in self._ports


class Reservations:
    """Turns the plans of kinds into writes."""

    def __init__(self, cache: Cache, network: ServiceNetwork, random: chance.Random, clock: Clock) -> None:
        self._cache = cache
        self._pool = ClusterPool(cache, network, random)
        self._clock = clock

    def plan(self, kind: Kind, part: Part, obj: Object, old: Object | None, *, dry_run: bool) -> Reserved:
        """Fill in what the object leaves to the cluster; raises Invalid for what cannot be had."""
        if not (kind.allocates and part.allocates):
            return Reserved([])
        before = msgspec.json.decode(msgspec.json.encode(obj["spec"]))
        plan = kind.allocate(obj, old, self._pool, dry_run=dry_run)
        meta = obj["metadata"]
        return Reserved([] if dry_run else self._writes(plan, meta["namespace"], meta.get("name", "")), before)

    def release(self, kind: Kind, obj: Object) -> list[Write]:
        """The writes that free everything an object holds, for when it goes."""
        return self._writes(kind.release(obj), "", "") if kind.allocates else []

    def _writes(self, plan: Allocation, namespace: str, name: str) -> list[Write]:
        """``namespace`` and ``name`` are those of the object that takes what is reserved."""
        writes = []
        for address in plan.reserve_ips:
            value = stored(ip_address_object(address, namespace, name, now=times.text(self._clock.time())))
            writes.append(Write(key_of(IP_ADDRESSES, "", address), value, 0))
        writes += [port_reservation(port, namespace, name) for port in plan.reserve_ports]
        writes += [Write(key_of(IP_ADDRESSES, "", address), None) for address in plan.release_ips]
        writes += [Write(f"{PORTS_PREFIX}{port}", None) for port in plan.release_ports]
        for resource, place, other in plan.removes:
            entry = self._cache.of(resource).get(f"{place}/{other}" if place else other)
            if entry is not None and not entry.decode()["metadata"].get("finalizers"):
                writes.append(Write(key_of(resource, place, other), None))
        return writes
