"""Addresses and node ports as part of the Service's own transaction.

An address is held by its IPAddress object, a node port by a key of its own; both are written with "must be absent", so
that the store itself refuses what is already taken, whoever else is writing.
"""

from __future__ import annotations

import random

import msgspec

from seamark.api.allocation import allocate
from seamark.api.state.cache import PORTS_PREFIX, Cache, key_of, stored
from seamark.config import ServiceNetwork
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.resource import ENDPOINTS, IP_ADDRESSES, SERVICE_CIDRS, SERVICES
from seamark.kinds.service.ipaddress import ip_address_object
from seamark.kinds.service.servicecidr import usable_ranges
from seamark.store.protocol import Write


class Reserved(msgspec.Struct):
    """The writes that go with an object's own, and what of the object they decided."""

    writes: list[Write]
    before: Object | None = None

    def take_back(self, obj: Object) -> None:
        """Undo what planning put into the object, to plan again after losing a race."""
        if self.before is not None:
            obj["spec"] = self.before


def port_reservation(port: int, namespace: str, name: str) -> Write:
    """The write that holds a node port for a Service; fails if somebody holds it already."""
    return Write(f"{PORTS_PREFIX}{port}", msgspec.json.encode({"service": f"{namespace}/{name}"}), 0)


class Taken:
    """What is in use right now."""

    def __init__(self, cache: Cache) -> None:
        self._addresses = cache.of(IP_ADDRESSES).entries
        self._ports = cache.ports

    def ip(self, address: str) -> bool:
        return address in self._addresses

    def port(self, port: int) -> bool:
        return port in self._ports


class Reservations:
    """Plans what a Service needs and turns it into writes; other kinds need nothing."""

    def __init__(self, cache: Cache, network: ServiceNetwork, chance: random.Random, now: allocate.Clock) -> None:
        self._taken = Taken(cache)
        self._endpoints = cache.of(ENDPOINTS).entries
        self._service_cidrs = cache.of(SERVICE_CIDRS).entries
        self._network = network
        self._random = chance
        self._now = now

    @staticmethod
    def none() -> Reserved:
        return Reserved([])

    def plan(self, kind: Kind, obj: Object, old: Object | None, *, dry_run: bool) -> Reserved:
        """Fill in what the Service leaves to the cluster; raises Invalid for what cannot be had."""
        if kind.resource != SERVICES:
            return Reserved([])
        before = msgspec.json.decode(msgspec.json.encode(obj["spec"]))
        plan = allocate.plan(
            obj,
            old,
            network=self._network,
            taken=self._taken,
            random=self._random,
            dry_run=dry_run,
            more_ranges=self._more_ranges(),
        )
        if dry_run:
            return Reserved([], before)
        meta = obj["metadata"]
        return Reserved(self._writes(plan, meta["namespace"], meta.get("name", "")), before)

    def _more_ranges(self) -> list[str]:
        """Ranges that ServiceCIDRs add to the configured ones; there are hardly ever any."""
        found = [cidr for entry in self._service_cidrs.values() for cidr in usable_ranges(entry.decode())]
        return [cidr for cidr in found if cidr not in self._network.ranges]

    def release(self, kind: Kind, obj: Object) -> list[Write]:
        """The writes that free everything an object holds, once it goes."""
        if kind.resource != SERVICES:
            return []
        writes = self._writes(allocate.release(obj), "", "")
        # Its Endpoints go with it, lest the next Service of that name begins with the addresses of the last.
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        left = self._endpoints.get(f"{namespace}/{name}")
        if left is not None and not left.decode()["metadata"].get("finalizers"):
            writes.append(Write(key_of(ENDPOINTS, namespace, name), None))
        return writes

    def _writes(self, plan: allocate.Allocation, namespace: str, name: str) -> list[Write]:
        writes = []
        for address in plan.reserve_ips:
            value = stored(ip_address_object(address, namespace, name, now=self._now()))
            writes.append(Write(key_of(IP_ADDRESSES, "", address), value, 0))
        writes += [port_reservation(port, namespace, name) for port in plan.reserve_ports]
        writes += [Write(key_of(IP_ADDRESSES, "", address), None) for address in plan.release_ips]
        writes += [Write(f"{PORTS_PREFIX}{port}", None) for port in plan.release_ports]
        return writes
