"""What a Service's EndpointSlices should be (pure).

:func:`plan` is the whole decision, from everything observed to what should be written: a fresh
:class:`~seamark.rules.slices.state.SlicesState` fed with everything.  The running controller keeps one per
Service and feeds it what changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seamark.kinds.wellknown import ENDPOINTS_PER_SLICE
from seamark.rules.changes import Changes
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.slices.state import Plan, SlicesState, Topology


def plan(
    service: Service,
    pods: Iterable[Pod],
    slices: Iterable[EndpointSlice],
    *,
    nodes: Mapping[str, Node],
    limit: int = ENDPOINTS_PER_SLICE,
    topology: Topology | None = None,
    trigger_time: str = "",
) -> Plan:
    """What to write so that the Service's slices list these Pods; nothing for a Service that is not managed."""
    if not service.managed:
        return Plan(Changes())
    state = SlicesState(service, limit=limit)
    for endpoint_slice in slices:
        state.observe(endpoint_slice)
    for pod in pods:
        state.put(pod.metadata.name, pod, nodes.get(pod.spec.node_name))
    return state.plan(topology=topology, trigger_time=trigger_time)
