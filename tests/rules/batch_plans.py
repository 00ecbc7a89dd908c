"""Plans from everything at once: what the states of :mod:`seamark.rules`, fed change by change, must come to as well.

The batch plan of Endpoints lays the subsets out by :func:`seamark.rules.subsets.repack`, not by groups of Pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seamark.kinds.wellknown import ENDPOINTS_PER_SLICE
from seamark.rules import endpoints
from seamark.rules.changes import Changes
from seamark.rules.endpoints import address_of, endpoint_ports, shares
from seamark.rules.membership import judge
from seamark.rules.objects.endpoints import Endpoints, EndpointSubset
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.slices.state import SlicesPlan, SlicesState, Topology
from seamark.rules.subsets import repack


def endpoints_plan(
    service: Service, pods: Iterable[Pod], current: Endpoints | None, *, trigger_time: str = ""
) -> Changes[Endpoints]:
    """What to write so that the Endpoints of the Service list these Pods."""
    if not service.managed:
        return Changes()
    subsets = repack(subset for pod in pods if (subset := _subset_of(service, pod)))
    return endpoints.changes(
        service,
        _truncated(subsets),
        current,
        over_capacity=size(subsets) > endpoints.ENDPOINTS_CAPACITY,
        trigger_time=trigger_time,
    )


def slices_plan(
    service: Service,
    pods: Iterable[Pod],
    slices: Iterable[EndpointSlice],
    *,
    nodes: Mapping[str, Node],
    limit: int = ENDPOINTS_PER_SLICE,
    topology: Topology | None = None,
    trigger_time: str = "",
) -> SlicesPlan:
    """What to write so that the slices of the Service list these Pods."""
    if not service.managed:
        return SlicesPlan(Changes())
    state = SlicesState(service, limit=limit)
    for endpoint_slice in slices:
        state.observe(endpoint_slice)
    for pod in pods:
        state.put(pod.metadata.name, pod, nodes.get(pod.spec.node_name))
    return state.plan(topology=topology, trigger_time=trigger_time)


def size(subsets: Iterable[EndpointSubset]) -> int:
    return sum(len(s.addresses) + len(s.not_ready_addresses) for s in subsets)


def _subset_of(service: Service, pod: Pod) -> EndpointSubset | None:
    """This one Pod as a subset of its own; None if it is not listed."""
    verdict = judge(service, pod, None)
    if not verdict.in_endpoints:
        return None
    address = (address_of(pod, verdict),)
    ports = endpoint_ports(verdict.ports)
    if verdict.ready:
        return EndpointSubset(addresses=address, ports=ports)
    return EndpointSubset(not_ready_addresses=address, ports=ports)


def _truncated(subsets: tuple[EndpointSubset, ...]) -> tuple[EndpointSubset, ...]:
    """The subsets cut down to what one Endpoints may hold; ready addresses are the last to go."""
    capacity = endpoints.ENDPOINTS_CAPACITY
    if size(subsets) <= capacity:
        return subsets
    ready = sum(len(s.addresses) for s in subsets)
    if ready > capacity:
        fit = shares((len(s.addresses) for s in subsets), capacity)
        cut = [EndpointSubset(addresses=s.addresses[:n], ports=s.ports) for s, n in zip(subsets, fit, strict=True)]
    else:
        fit = shares((len(s.not_ready_addresses) for s in subsets), capacity - ready)
        cut = [
            EndpointSubset(s.addresses, s.not_ready_addresses[:n], s.ports) for s, n in zip(subsets, fit, strict=True)
        ]
    return tuple(s for s in cut if s.addresses or s.not_ready_addresses)
