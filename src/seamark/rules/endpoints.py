"""What a Service's Endpoints should be (pure).

:func:`plan` is the whole decision, from everything observed to what should be written.  The running controller reaches
the same result through :class:`seamark.rules.endpoints_state.EndpointsState`, which keeps what did not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from operator import eq

import msgspec

from seamark.kinds.wellknown import (
    ENDPOINTS_CAPACITY,
    ENDPOINTS_CONTROLLER,
    ENDPOINTS_MANAGED_BY_LABEL,
    HEADLESS_LABEL,
    OVER_CAPACITY_ANNOTATION,
)
from seamark.rules.changes import Changes
from seamark.rules.membership import Port, Verdict, judge
from seamark.rules.objects.endpoints import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from seamark.rules.objects.metadata import Metadata, ObjectReference
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.subsets import repack
from seamark.rules.trigger_time import with_trigger_time

Subsets = tuple[EndpointSubset, ...]


def plan(
    service: Service, pods: Iterable[Pod], current: Endpoints | None, *, trigger_time: str = ""
) -> Changes[Endpoints]:
    """What to write so that the Service's Endpoints list these Pods; nothing for a Service that is not managed."""
    if not service.managed:
        return Changes()
    subsets = repack(subset for pod in pods if (subset := subset_of(pod, judge(service, pod, None))))
    return changes(
        service,
        truncated(subsets),
        current,
        over_capacity=size(subsets) > ENDPOINTS_CAPACITY,
        trigger_time=trigger_time,
    )


def address_of(pod: Pod, verdict: Verdict) -> EndpointAddress:
    meta = pod.metadata
    return EndpointAddress(
        ip=verdict.endpoints_address,
        hostname=verdict.hostname,
        # Never left out: a Pod that has an address but no Node yet makes the API server refuse the whole, as it does
        # where Kubernetes' own controller writes.  An event tells of it.
        node_name=verdict.node,
        target_ref=ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
    )


def endpoint_ports(ports: Iterable[Port]) -> tuple[EndpointPort, ...]:
    return tuple(EndpointPort(p.name, p.port, p.protocol, p.app_protocol or None) for p in ports)


def subset_of(pod: Pod, verdict: Verdict) -> EndpointSubset | None:
    """This one Pod as a subset of its own; None if it is not listed."""
    if not verdict.in_endpoints:
        return None
    address = (address_of(pod, verdict),)
    ports = endpoint_ports(verdict.ports)
    # A terminating Pod is listed only where not ready ones are published too, and then counts as ready.
    if verdict.ready:
        return EndpointSubset(addresses=address, ports=ports)
    return EndpointSubset(not_ready_addresses=address, ports=ports)


# --- capacity --------------------------------------------------------------------------------------


def size(subsets: Iterable[EndpointSubset]) -> int:
    return sum(len(s.addresses) + len(s.not_ready_addresses) for s in subsets)


def shares(counts: Iterable[int], capacity: int) -> list[int]:
    """How many of each subset's addresses fit, in proportion and rounded up while there is room."""
    counts = list(counts)
    total, left, fit = sum(counts), capacity, []
    for count in counts:
        share = min(math.ceil(count / total * capacity) if total else 0, left, count)
        fit.append(share)
        left -= share
    return fit


def truncated(subsets: Subsets) -> Subsets:
    """The subsets cut down to what one Endpoints may hold; ready addresses are the last to go."""
    ready = sum(len(s.addresses) for s in subsets)
    if size(subsets) <= ENDPOINTS_CAPACITY:
        return subsets
    if ready > ENDPOINTS_CAPACITY:
        fit = shares((len(s.addresses) for s in subsets), ENDPOINTS_CAPACITY)
        cut = [EndpointSubset(addresses=s.addresses[:n], ports=s.ports) for s, n in zip(subsets, fit, strict=True)]
    else:
        fit = shares((len(s.not_ready_addresses) for s in subsets), ENDPOINTS_CAPACITY - ready)
        cut = [
            EndpointSubset(s.addresses, s.not_ready_addresses[:n], s.ports) for s, n in zip(subsets, fit, strict=True)
        ]
    # A subset left without any address would not pass validation.
    return tuple(s for s in cut if s.addresses or s.not_ready_addresses)


# --- the object ------------------------------------------------------------------------------------


def labels_for(service: Service) -> dict[str, str]:
    labels = {**service.metadata.labels, ENDPOINTS_MANAGED_BY_LABEL: ENDPOINTS_CONTROLLER}
    if not service.has_cluster_ip:
        labels[HEADLESS_LABEL] = ""
    else:
        labels.pop(HEADLESS_LABEL, None)
    return labels


def _without(mapping: dict[str, str], key: str) -> dict[str, str]:
    return {k: v for k, v in mapping.items() if k != key} if key in mapping else mapping


def changes(
    service: Service,
    subsets: Subsets,
    current: Endpoints | None,
    *,
    over_capacity: bool,
    trigger_time: str,
    canonical: bool = False,
) -> Changes[Endpoints]:
    """The write that makes ``current`` hold these subsets, if it takes one.

    ``canonical`` says that we wrote ``current`` ourselves: if it reads differently, it says something different.
    """
    labels = labels_for(service)
    if current is None:
        meta = Metadata(name=service.metadata.name, namespace=service.metadata.namespace, labels=labels)
        return Changes(create=(_written(meta, subsets, over_capacity=over_capacity, trigger_time=trigger_time),))
    meta = current.metadata
    settled = (
        (OVER_CAPACITY_ANNOTATION in meta.annotations) == over_capacity
        # Whether a Service is headless never changes, so its mark alone is not worth a write.
        and _without(meta.labels, HEADLESS_LABEL) == _without(labels, HEADLESS_LABEL)
        and (same_subsets if not canonical else eq)(current.subsets or (), subsets)
    )
    if settled:
        return Changes()
    return Changes(
        update=(
            _written(
                msgspec.structs.replace(meta, labels=labels),
                subsets,
                over_capacity=over_capacity,
                trigger_time=trigger_time,
            ),
        )
    )


def _written(meta: Metadata, subsets: Subsets, *, over_capacity: bool, trigger_time: str) -> Endpoints:
    annotations = with_trigger_time(meta.annotations, trigger_time)
    if over_capacity:
        annotations = {**annotations, OVER_CAPACITY_ANNOTATION: "truncated"}
    else:
        annotations = _without(annotations, OVER_CAPACITY_ANNOTATION)
    return Endpoints(msgspec.structs.replace(meta, annotations=annotations), subsets or None)


def same_subsets(stored: Subsets, wanted: Subsets) -> bool:
    """Whether these say the same; another writer may have laid them out in another way."""
    if stored == wanted:
        return True
    plain = tuple(_map_addresses(s, _without_version) for s in stored)
    return plain == wanted or repack(plain) == wanted


def _map_addresses(subset: EndpointSubset, change: Callable[[EndpointAddress], EndpointAddress]) -> EndpointSubset:
    return EndpointSubset(
        tuple(map(change, subset.addresses)), tuple(map(change, subset.not_ready_addresses)), subset.ports
    )


def _without_version(address: EndpointAddress) -> EndpointAddress:
    ref = address.target_ref
    if ref is None or not ref.resource_version:
        return address
    return msgspec.structs.replace(address, target_ref=msgspec.structs.replace(ref, resource_version=""))
