"""Endpoints and EndpointSlices as the discovery controllers read and write them.

Unlike the views in ``rules.membership`` these are written back, so they hold everything an update would otherwise
wipe out: all of ``metadata`` but ``managedFields``, which the API server keeps by itself when a write leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from seamark.rules.membership import Family, Port, View

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"
SKIP_MIRROR_LABEL = "endpointslice.kubernetes.io/skip-mirror"
ENDPOINTS_MANAGED_BY_LABEL = "endpoints.kubernetes.io/managed-by"
HEADLESS_LABEL = "service.kubernetes.io/headless"
TRIGGER_TIME_ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time"
OVER_CAPACITY_ANNOTATION = "endpoints.kubernetes.io/over-capacity"
LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

T = TypeVar("T")


class Changes(msgspec.Struct, Generic[T], frozen=True):
    """What a plan wants written.  ``delete`` holds the objects as last seen."""

    create: tuple[T, ...] = ()
    update: tuple[T, ...] = ()
    delete: tuple[T, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.update or self.delete)


class OwnerReference(View, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(View, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Written(View, frozen=True):
    """The answer to a write, as far as it is read: what was sent need not be read back."""

    metadata: Metadata


class ObjectReference(View, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


# --- Endpoints -------------------------------------------------------------------------------------


class EndpointAddress(View, frozen=True):
    ip: str
    hostname: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(View, frozen=True):
    name: str = ""
    port: int = 0
    protocol: str = "TCP"
    app_protocol: str | None = None


class EndpointSubset(View, frozen=True):
    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(View, frozen=True):
    metadata: Metadata
    subsets: tuple[EndpointSubset, ...] | None = None


# --- EndpointSlice ---------------------------------------------------------------------------------


class Conditions(View, frozen=True):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Target(View, frozen=True):
    """A zone or a node that should use an endpoint."""

    name: str


class Hints(View, frozen=True):
    for_zones: tuple[Target, ...] | None = None
    for_nodes: tuple[Target, ...] | None = None


class Endpoint(View, frozen=True):
    addresses: tuple[str, ...] = ()
    conditions: Conditions = Conditions()
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    node_name: str | None = None
    zone: str | None = None
    hints: Hints | None = None

    @property
    def ready(self) -> bool:
        return self.conditions.ready is True


class SlicePort(View, frozen=True):
    name: str | None = None
    port: int | None = None
    protocol: str | None = None
    app_protocol: str | None = None


class EndpointSlice(View, frozen=True):
    """``endpoints`` and ``ports`` are None on the wire where there are none; what we write is never None."""

    metadata: Metadata
    address_type: str = ""
    endpoints: tuple[Endpoint, ...] | None = None
    ports: tuple[SlicePort, ...] | None = None


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
    """Whether nothing about an endpoint needs to be written; the version of the object behind it does not count."""
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


def address_family(endpoint_slice: EndpointSlice) -> Family | None:
    """The family the slice is for; None for FQDN and whatever else is not made from Pods."""
    kind = endpoint_slice.address_type
    return "IPv4" if kind == "IPv4" else "IPv6" if kind == "IPv6" else None


def name_prefix(name: str) -> str:
    """The ``generateName`` of a Service's slices; the dash goes where it would make the name too long."""
    return f"{name}-" if len(name) < 253 else name


def with_trigger_time(annotations: dict[str, str], trigger_time: str) -> dict[str, str]:
    """The annotations of an object about to be written because of something that happened then ("": unknown)."""
    if trigger_time:
        return {**annotations, TRIGGER_TIME_ANNOTATION: trigger_time}
    if TRIGGER_TIME_ANNOTATION in annotations:
        return {k: v for k, v in annotations.items() if k != TRIGGER_TIME_ANNOTATION}
    return annotations
