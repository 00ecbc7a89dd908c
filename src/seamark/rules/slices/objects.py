"""The EndpointSlice objects themselves: how one is made for a Service, and when one is the Service's own (pure)."""

from __future__ import annotations

import msgspec

from seamark.kinds.values.addresses import Family
from seamark.kinds.wellknown import HEADLESS_LABEL, SERVICE_NAME_LABEL, SLICE_CONTROLLER, SLICE_MANAGED_BY_LABEL
from seamark.rules import hints
from seamark.rules.membership import Verdict
from seamark.rules.objects.endpointslice import Conditions, Endpoint, EndpointSlice
from seamark.rules.objects.metadata import Metadata, ObjectReference, OwnerReference
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.slices.matching import PortKey, identity, same_endpoint, slice_ports
from seamark.rules.slices.packing import Content
from seamark.rules.trigger_time import with_trigger_time

_RESERVED_LABELS = frozenset((SERVICE_NAME_LABEL, SLICE_MANAGED_BY_LABEL, HEADLESS_LABEL))


def ours(endpoint_slice: EndpointSlice) -> bool:
    """Whether this controller manages the slice; others' slices are never touched."""
    return endpoint_slice.managed_by == SLICE_CONTROLLER


def owned(endpoint_slice: EndpointSlice, service: Service) -> bool:
    """Whether it belongs to this very Service and not to an earlier one of the same name."""
    return any(
        owner.uid == service.metadata.uid and owner.kind == "Service" and owner.api_version == "v1"
        for owner in endpoint_slice.metadata.owner_references
    )


def endpoint_of(pod: Pod, verdict: Verdict, *, family: Family, mode: hints.Mode) -> Endpoint:
    """The Pod as an endpoint; it has an address of that family."""
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
    """Those a Service hands down to its slices.  The others say what a slice is, and a Service cannot change that."""
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
    """The slice with other endpoints and the labels of today."""
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
    """Whether a slice whose own labels are not those of today keeps them.

    That a Service is headless no longer, or the label was edited away, is no reason to write a slice; nor is it put
    right where a slice only gets endpoints or hints, but where endpoints change or go.
    """
    if free_labels(endpoint_slice.metadata.labels) != free_labels(service.metadata.labels):
        return False
    for held in endpoint_slice.endpoints or ():
        wanted = content.get(identity(held))
        if wanted is None or not same_endpoint(held, msgspec.structs.replace(wanted, hints=held.hints)):
            return False
    return True


def recycled(made: EndpointSlice, discarded: EndpointSlice) -> EndpointSlice:
    """A new slice written over one that would be deleted: one write instead of two, and one event for watchers."""
    meta = msgspec.structs.replace(
        discarded.metadata,
        generate_name=made.metadata.generate_name,
        labels=made.metadata.labels,
        annotations=made.metadata.annotations,
        owner_references=made.metadata.owner_references,
    )
    return msgspec.structs.replace(made, metadata=meta)


def name_prefix(name: str) -> str:
    """The ``generateName`` of a Service's slices; the dash goes where it would make the name too long."""
    return f"{name}-" if len(name) < 253 else name


def is_placeholder(endpoint_slice: EndpointSlice, service: Service) -> bool:
    """An empty slice that says: this Service is taken care of, it just has no endpoints."""
    return (
        not endpoint_slice.endpoints
        and not endpoint_slice.ports
        and endpoint_slice.metadata.labels == labels_for(service)
    )
