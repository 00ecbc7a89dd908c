"""The endpoints of one port of a Service, from all its slices: each address and port once (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from seamark.kinds.values.addresses import Family, canonical
from seamark.kinds.wellknown import HEADLESS_LABEL, PROXY_NAME_LABEL
from seamark.rules.objects.endpointslice import Endpoint, EndpointSlice, HintTarget, SlicePort
from seamark.rules.objects.service import ServicePort
from seamark.rules.routing.model import Backend


class Unusable(Enum):
    """Why a slice has nothing for a port of a Service."""

    OTHER_FAMILY = "it is for another address family"
    HEADLESS = "it has the label service.kubernetes.io/headless"
    OTHER_PROXY = "its label service.kubernetes.io/service-proxy-name names another proxy"
    NO_SUCH_PORT = "it has no port of this name and protocol"


def unusable(slice: EndpointSlice, port: ServicePort, family: Family) -> Unusable | None:
    """Why this slice has nothing for this port; None if it has.  Ports are matched by name and protocol."""
    if left := left_alone(slice):
        return left
    if slice.family != family:
        return Unusable.OTHER_FAMILY
    return None if any(_numbers(slice, port)) else Unusable.NO_SUCH_PORT


def left_alone(slice: EndpointSlice) -> Unusable | None:
    """Why a proxy does not read this slice at all."""
    if HEADLESS_LABEL in slice.metadata.labels:
        return Unusable.HEADLESS
    return Unusable.OTHER_PROXY if PROXY_NAME_LABEL in slice.metadata.labels else None


class ListedPorts:
    """The slices of a Service in one family, by the ports that they list: a Service may have as many as a slice."""

    def __init__(self, slices: Iterable[EndpointSlice], family: Family) -> None:
        self._listed: dict[tuple[str, str], list[tuple[EndpointSlice, int]]] = {}
        for slice in sorted(slices, key=lambda each: each.metadata.name):
            if slice.family == family:
                for each in slice.ports or ():
                    if each.port:
                        named = (each.name or "", each.protocol or "TCP")
                        self._listed.setdefault(named, []).append((slice, each.port))

    def backends_of(self, port: ServicePort, node: str) -> tuple[Backend, ...]:
        """Every endpoint of this port in these slices, once, ordered; ``node`` is where this is decided.

        Slices count in the order of their names.  An endpoint that is listed twice counts as listed last, but one that
        terminates never replaces another: it may have moved to a new slice while the old one still lists it.
        """
        found: dict[tuple[str, int], Backend] = {}
        for slice, number in self._listed.get((port.name, port.protocol), ()):
            for endpoint in slice.endpoints or ():
                if not endpoint.addresses:
                    continue
                key = (canonical(endpoint.addresses[0]), number)
                if key not in found or not endpoint.terminating:
                    found[key] = _backend(*key, endpoint, node)
        return tuple(found[key] for key in sorted(found))


def _numbers(slice: EndpointSlice, port: ServicePort) -> list[int]:
    return [each.port for each in slice.ports or () if each.port and _same(each, port)]


def _same(listed: SlicePort, port: ServicePort) -> bool:
    return (listed.name or "") == port.name and (listed.protocol or "TCP") == port.protocol


def _backend(address: str, port: int, endpoint: Endpoint, node: str) -> Backend:
    hints = endpoint.hints
    return Backend(
        address,
        port,
        endpoint.node_name or "",
        endpoint.zone or "",
        endpoint.node_name == node,
        endpoint.ready,
        endpoint.serving,
        endpoint.terminating,
        _names(hints.for_nodes) if hints else (),
        _names(hints.for_zones) if hints else (),
    )


def _names(targets: tuple[HintTarget, ...] | None) -> tuple[str, ...]:
    return tuple(target.name for target in targets or ())
