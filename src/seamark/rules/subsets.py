"""The canonical layout of the subsets of an Endpoints.

A subset is the product of its addresses and its ports, so the same endpoints can be written in many ways.  The
canonical layout puts ports with exactly the same addresses together and lists each address once, in a fixed order.  The
Endpoints controller writes and compares this layout, and the mirroring controller starts from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from seamark.rules.objects.endpoints import EndpointAddress, EndpointPort, EndpointSubset

# Addresses in the canonical layout, counted in every subset that lists them.  A short object can stand for billions.
LARGEST = 100_000

AddressKey = tuple[str, str]


class Layout(NamedTuple):
    """Subsets in the canonical layout, and how many addresses are left out because they are too many."""

    subsets: tuple[EndpointSubset, ...]
    left_out: int


def address_key(address: EndpointAddress) -> AddressKey:
    """The key by which addresses are told apart and sorted.  Two objects may share an IP, so it includes the uid."""
    return address.ip, address.target_ref.uid if address.target_ref is not None else ""


def repack(subsets: Iterable[EndpointSubset]) -> tuple[EndpointSubset, ...]:
    """The canonical layout of these subsets, as far as it is not too large."""
    return laid_out(subsets).subsets


def laid_out(subsets: Iterable[EndpointSubset]) -> Layout:
    """The canonical layout of these subsets.

    Addresses and ports are not multiplied out: subsets with the same ports are put together, and ports that the same
    ones of these have share their addresses.
    """
    known: dict[AddressKey, EndpointAddress] = {}
    by_ports: dict[tuple[EndpointPort | None, ...], dict[AddressKey, bool]] = {}
    for subset in subsets:
        readiness = by_ports.setdefault(subset.ports or (None,), {})
        for address in subset.addresses:
            key = address_key(address)
            known.setdefault(key, address)
            readiness.setdefault(key, True)
        for address in subset.not_ready_addresses:
            key = address_key(address)
            known.setdefault(key, address)
            readiness[key] = False  # an address that is both counts as not ready
    parts = tuple(by_ports.values())
    parts_with: dict[EndpointPort | None, dict[int, None]] = {}
    for number, ports in enumerate(by_ports):
        for port in ports:
            parts_with.setdefault(port, {})[number] = None
    together: dict[tuple[int, ...], list[EndpointPort]] = {}
    for port, found_in in parts_with.items():
        together.setdefault(tuple(found_in), []).extend(() if port is None else (port,))
    by_addresses: dict[tuple[tuple[AddressKey, bool], ...], list[EndpointPort]] = {}
    size = left_out = 0
    for numbers, found in together.items():
        more = sum(len(parts[number]) for number in numbers)
        if size + more > LARGEST:
            left_out += more
            continue
        size += more
        if readiness := _joined([parts[number] for number in numbers]):
            by_addresses.setdefault(tuple(sorted(readiness.items())), []).extend(found)
    listed = in_order(
        EndpointSubset(
            addresses=tuple(known[key] for key, ready in addresses if ready),
            not_ready_addresses=tuple(known[key] for key, ready in addresses if not ready),
            ports=ports_in_order(found),
        )
        for addresses, found in by_addresses.items()
    )
    return Layout(listed, left_out)


def _joined(parts: Sequence[dict[AddressKey, bool]]) -> dict[AddressKey, bool]:
    if len(parts) == 1:
        return parts[0]
    joined: dict[AddressKey, bool] = {}
    for part in parts:
        for key, ready in part.items():
            joined[key] = ready and joined.get(key, True)
    return joined


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
