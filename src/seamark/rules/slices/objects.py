"""The EndpointSlices of a Service as objects: how one is made, and when two of them say the same (pure)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seamark.kinds.values.addresses import Family
from seamark.kinds.wellknown import HEADLESS_LABEL, SERVICE_NAME_LABEL, SLICE_CONTROLLER, SLICE_MANAGED_BY_LABEL
from seamark.rules import hints
from seamark.rules.changes import with_trigger_time
from seamark.rules.membership import Port, Verdict
from seamark.rules.objects.endpointslice import Conditions, Endpoint, EndpointSlice, SlicePort
from seamark.rules.objects.metadata import Metadata, ObjectReference, OwnerReference
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service

Identity = tuple[tuple[str, ...], str, str, str]
PortKey = tuple[Port, ...]
Content = dict[Identity, Endpoint]

_RESERVED_LABELS = frozenset((SERVICE_NAME_LABEL, SLICE_MANAGED_BY_LABEL, HEADLESS_LABEL))

# --- comparing -------------------------------------------------------------------------------------


def identity(endpoint: Endpoint) -> Identity:
    """What stays the same when an endpoint changes: addresses, hostname and the object behind it."""
    addresses = endpoint.addresses
    if len(addresses) > 1:
        addresses = tuple(sorted(addresses))
    ref = endpoint.target_ref
    if ref is None:
        return addresses, endpoint.hostname or "", "", ""
    return addresses, endpoint.hostname or "", ref.namespace, ref.name


def same_endpoint(one: Endpoint, other: Endpoint) -> bool:
    """Whether both say the same.  The version of the object behind the endpoint does not count."""
    return one == other or _comparable(one) == _comparable(other)


def _comparable(endpoint: Endpoint) -> Endpoint:
    ref = endpoint.target_ref
    if ref is not None and ref.resource_version:
        ref = msgspec.structs.replace(ref, resource_version="")
    return msgspec.structs.replace(endpoint, addresses=tuple(sorted(endpoint.addresses)), target_ref=ref)


def port_key(ports: Iterable[SlicePort]) -> PortKey:
    """The ports in one order.  Slices with the same key belong to one group and may take each other's endpoints."""
    found = [Port(p.name or "", p.port or 0, p.protocol or "TCP", p.app_protocol or "") for p in ports]
    return tuple(sorted(found)) if len(found) > 1 else tuple(found)


def slice_ports(ports: Iterable[Port]) -> tuple[SlicePort, ...]:
    return tuple(SlicePort(p.name, p.port, p.protocol, p.app_protocol or None) for p in ports)


# --- making ----------------------------------------------------------------------------------------


def ours(endpoint_slice: EndpointSlice) -> bool:
    """Whether the EndpointSlice controller manages the slice; it never touches any other."""
    return endpoint_slice.managed_by == SLICE_CONTROLLER


def owned(endpoint_slice: EndpointSlice, service: Service) -> bool:
    """Whether it belongs to this very Service and not to an earlier one of the same name."""
    return any(
        owner.uid == service.metadata.uid and owner.kind == "Service" and owner.api_version == "v1"
        for owner in endpoint_slice.metadata.owner_references
    )


def endpoint_of(pod: Pod, verdict: Verdict, *, family: Family, mode: hints.Mode) -> Endpoint:
    """The Pod as an endpoint of that family, of which it has an address."""
    meta = pod.metadata
    endpoint = Endpoint(
        addresses=tuple(sorted(verdict.addresses(family))),
        conditions=Conditions(verdict.ready, verdict.serving, verdict.terminating),
        hostname=verdict.hostname or None,
        target_ref=ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
        node_name=verdict.node or None,
        zone=verdict.zone or None,
    )
    wanted = hints.own_hints(mode, endpoint)
    return msgspec.structs.replace(endpoint, hints=wanted) if wanted is not None else endpoint


def labels_for(service: Service) -> dict[str, str]:
    labels = free_labels(service.metadata.labels)
    labels[SERVICE_NAME_LABEL] = service.metadata.name
    labels[SLICE_MANAGED_BY_LABEL] = SLICE_CONTROLLER
    if not service.has_cluster_ip:
        labels[HEADLESS_LABEL] = ""
    return labels


def free_labels(labels: dict[str, str]) -> dict[str, str]:
    """The labels that a Service passes on to its slices: all but those that say what a slice is."""
    return {key: value for key, value in labels.items() if key not in _RESERVED_LABELS}


def new_slice(
    service: Service, content: Content, *, family: Family, ports: PortKey, trigger_time: str
) -> EndpointSlice:
    owner = OwnerReference(
        api_version="v1",
        kind="Service",
        name=service.metadata.name,
        uid=service.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    return EndpointSlice(
        metadata=Metadata(
            generate_name=name_prefix(service.metadata.name),
            namespace=service.metadata.namespace,
            labels=labels_for(service),
            annotations=with_trigger_time({}, trigger_time),
            owner_references=(owner,),
        ),
        address_type=family,
        endpoints=tuple(content.values()),
        ports=slice_ports(ports),
    )


def edited(endpoint_slice: EndpointSlice, service: Service, content: Content, *, trigger_time: str) -> EndpointSlice:
    """The slice with other endpoints, and with the labels that the Service has now."""
    meta = endpoint_slice.metadata
    labels = labels_for(service)
    if meta.labels != labels and _keeps_labels(endpoint_slice, service, content):
        labels = meta.labels
    return msgspec.structs.replace(
        endpoint_slice,
        metadata=msgspec.structs.replace(
            meta, labels=labels, annotations=with_trigger_time(meta.annotations, trigger_time)
        ),
        endpoints=tuple(content.values()),
        ports=endpoint_slice.ports or (),
    )


def _keeps_labels(endpoint_slice: EndpointSlice, service: Service, content: Content) -> bool:
    """Whether a slice keeps labels that differ from those a new slice would get.

    The headless label alone is never a reason to write a slice.  As in Kubernetes it is corrected when endpoints of the
    slice change or go, and kept when the slice only gets more endpoints or hints.
    """
    if free_labels(endpoint_slice.metadata.labels) != free_labels(service.metadata.labels):
        return False
    for held in endpoint_slice.endpoints or ():
        wanted = content.get(identity(held))
        if wanted is None or not same_endpoint(held, msgspec.structs.replace(wanted, hints=held.hints)):
            return False
    return True


def written_over(made: EndpointSlice, existing: EndpointSlice) -> EndpointSlice:
    """A new slice, written over an existing one: one write and one watch event instead of two."""
    meta = msgspec.structs.replace(
        existing.metadata,
        generate_name=made.metadata.generate_name,
        labels=made.metadata.labels,
        annotations=made.metadata.annotations,
        owner_references=made.metadata.owner_references,
    )
    return msgspec.structs.replace(made, metadata=meta)


def name_prefix(name: str) -> str:
    """The ``generateName`` of a Service's slices; without the dash where it would be too long."""
    return f"{name}-" if len(name) < 253 else name


def is_placeholder(endpoint_slice: EndpointSlice, service: Service) -> bool:
    """Whether it is the empty slice that says that the Service has no endpoints."""
    return (
        not endpoint_slice.endpoints
        and not endpoint_slice.ports
        and endpoint_slice.metadata.labels == labels_for(service)
    )
