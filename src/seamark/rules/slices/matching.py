"""When two endpoints, or the ports of two slices, are the same (pure)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seamark.rules.membership import Port
from seamark.rules.objects.endpointslice import Endpoint, SlicePort

Identity = tuple[tuple[str, ...], str, str, str]
PortKey = tuple[Port, ...]


def identity(endpoint: Endpoint) -> Identity:
    """What makes an endpoint the same one after a change: addresses, hostname and the object behind it."""
    addresses = endpoint.addresses
    if len(addresses) > 1:
        addresses = tuple(sorted(addresses))
    ref = endpoint.target_ref
    if ref is None:
        return addresses, endpoint.hostname or "", "", ""
    return addresses, endpoint.hostname or "", ref.namespace, ref.name


def same_endpoint(one: Endpoint, other: Endpoint) -> bool:
    """Whether nothing about an endpoint needs to be written.  The version of the object behind it does not count."""
    return one == other or _comparable(one) == _comparable(other)


def _comparable(endpoint: Endpoint) -> Endpoint:
    ref = endpoint.target_ref
    if ref is not None and ref.resource_version:
        ref = msgspec.structs.replace(ref, resource_version="")
    return msgspec.structs.replace(endpoint, addresses=tuple(sorted(endpoint.addresses)), target_ref=ref)


def port_key(ports: Iterable[SlicePort]) -> PortKey:
    """Slices with the same key offer the same ports and may share endpoints."""
    found = [Port(p.name or "", p.port or 0, p.protocol or "TCP", p.app_protocol or "") for p in ports]
    return tuple(sorted(found)) if len(found) > 1 else tuple(found)


def slice_ports(ports: Iterable[Port]) -> tuple[SlicePort, ...]:
    return tuple(SlicePort(p.name, p.port, p.protocol, p.app_protocol or None) for p in ports)
