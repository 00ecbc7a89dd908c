"""The canonical layout of the subsets of an Endpoints.

A subset is the product of its addresses and its ports, so the same endpoints can be written in many ways.  The
canonical layout puts ports with exactly the same addresses together and lists each address once, in a fixed order.  The
Endpoints controller writes and compares this layout, and the mirroring controller starts from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from seamark.rules.objects.endpoints import EndpointAddress, EndpointPort, EndpointSubset

AddressKey = tuple[str, str]


def address_key(address: EndpointAddress) -> AddressKey:
    """The key by which addresses are told apart and sorted.  Two objects may share an IP, so it includes the uid."""
    return address.ip, address.target_ref.uid if address.target_ref is not None else ""


def repack(subsets: Iterable[EndpointSubset]) -> tuple[EndpointSubset, ...]:
    """The canonical layout of these subsets."""
    known: dict[AddressKey, EndpointAddress] = {}
    by_port: dict[EndpointPort | None, dict[AddressKey, bool]] = {}
    for subset in subsets:
        for port in subset.ports or (None,):
            readiness = by_port.setdefault(port, {})
            for address in subset.addresses:
                key = address_key(address)
                known.setdefault(key, address)
                readiness.setdefault(key, True)
            for address in subset.not_ready_addresses:
                key = address_key(address)
                known.setdefault(key, address)
                readiness[key] = False  # an address that is both counts as not ready
    by_addresses: dict[tuple[tuple[AddressKey, bool], ...], list[EndpointPort]] = {}
    for port, readiness in by_port.items():
        if readiness:
            ports = by_addresses.setdefault(tuple(sorted(readiness.items())), [])
            if port is not None:
                ports.append(port)
    return in_order(
        EndpointSubset(
            addresses=tuple(known[key] for key, ready in addresses if ready),
            not_ready_addresses=tuple(known[key] for key, ready in addresses if not ready),
            ports=ports_in_order(ports),
        )
        for addresses, ports in by_addresses.items()
    )


def ports_in_order(ports: Iterable[EndpointPort]) -> tuple[EndpointPort, ...]:
    return tuple(sorted(ports, key=_rank))


def in_order(subsets: Iterable[EndpointSubset]) -> tuple[EndpointSubset, ...]:
    """Subsets in a fixed order.

    Kubernetes sorts them by a hash of everything they contain.  No client can depend on that order, and hashing a
    thousand addresses would cost more than the rest of the plan, so subsets are sorted by their ports alone.
    """
    return tuple(sorted(subsets, key=lambda s: rank(s.ports)))


def rank(ports: Iterable[EndpointPort]) -> list[int]:
    """The sort key of a subset with these ports; each port is in one subset only, so no two subsets share a rank."""
    return [_rank(port) for port in ports]


@lru_cache(maxsize=4096)
def _rank(port: EndpointPort) -> int:
    """The sort key of a port, the same as in Kubernetes because ``kubectl get endpoints`` shows the order.

    Kubernetes sorts ports by the FNV-1a hash of Go's debug print of the struct.
    """
    app_protocol = f"(*string){port.app_protocol}" if port.app_protocol is not None else "(*string)<nil>"
    dump = (
        f"(v1.EndpointPort){{Name:(string){port.name} Port:(int32){port.port} "
        f"Protocol:(v1.Protocol){port.protocol} AppProtocol:{app_protocol}}}"
    )
    rank = 0x6C62272E07BB014262B821756295C58D
    for byte in dump.encode():
        rank = ((rank ^ byte) * 0x0000000001000000000000000000013B) & ((1 << 128) - 1)
    return rank
