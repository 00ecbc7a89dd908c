"""EndpointSlices for Endpoints that somebody wrote by hand (pure).

A Service without a selector has no endpoints but those its user writes.  Many still write Endpoints, while everybody
reads EndpointSlices: each subset becomes one slice per address family.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from seamark.kinds.values.addresses import Family
from seamark.kinds.wellknown import (
    LAST_APPLIED_ANNOTATION,
    LEADER_ANNOTATION,
    MIRROR_CONTROLLER,
    MIRRORED_ADDRESSES,
    SERVICE_NAME_LABEL,
    SKIP_MIRROR_LABEL,
    SLICE_MANAGED_BY_LABEL,
    TRIGGER_TIME_ANNOTATION,
)
from seamark.rules.changes import Changes
from seamark.rules.hints import stripped
from seamark.rules.membership import Port, parse_ip
from seamark.rules.objects.endpoints import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from seamark.rules.objects.endpointslice import Conditions, Endpoint, EndpointSlice
from seamark.rules.objects.metadata import Metadata, OwnerReference
from seamark.rules.objects.service import Service
from seamark.rules.slices.matching import PortKey, identity, port_key, same_endpoint, slice_ports
from seamark.rules.slices.objects import name_prefix
from seamark.rules.slices.packing import Content
from seamark.rules.slices.state import Note
from seamark.rules.subsets import repack

_NOT_COPIED = frozenset((TRIGGER_TIME_ANNOTATION, LAST_APPLIED_ANNOTATION))

Key = tuple[Family, PortKey]


class MirrorPlan(msgspec.Struct, frozen=True):
    """What to write, and what to tell the owner of the Endpoints."""

    changes: Changes[EndpointSlice]
    notes: tuple[Note, ...] = ()


def ours(endpoint_slice: EndpointSlice) -> bool:
    return endpoint_slice.managed_by == MIRROR_CONTROLLER


def mirrorable(endpoints: Endpoints) -> bool:
    """Whether these may be mirrored at all: not if their owner forbids it, nor if they are a leader's lock."""
    meta = endpoints.metadata
    return meta.labels.get(SKIP_MIRROR_LABEL) != "true" and LEADER_ANNOTATION not in meta.annotations


def mirrors(service: Service | None, endpoints: Endpoints | None) -> bool:
    """Whether there is anything to mirror: Endpoints that may be, of a Service that has none but those."""
    return service is not None and not service.spec.selector and endpoints is not None and mirrorable(endpoints)


def plan(service: Service | None, endpoints: Endpoints | None, slices: Iterable[EndpointSlice]) -> MirrorPlan:
    """What to write so that the mirrored slices say what the Endpoints say, and none are left where nothing is said."""
    existing = sorted(slices, key=lambda s: s.metadata.name)
    if endpoints is None or not mirrors(service, endpoints):
        return MirrorPlan(Changes(delete=tuple(existing)))
    wanted, notes = _wanted(endpoints)
    by_key: dict[Key | None, list[EndpointSlice]] = {}
    for endpoint_slice in existing:
        family = endpoint_slice.family
        key = (family, port_key(endpoint_slice.ports or ())) if family is not None else None
        by_key.setdefault(key, []).append(endpoint_slice)
    create: list[EndpointSlice] = []
    update: list[EndpointSlice] = []
    for key in sorted(wanted):
        # One slice is enough for a subset, as both hold a thousand.
        first = by_key[key].pop(0) if by_key.get(key) else None
        made = _slice(endpoints, wanted[key], key)
        if first is None:
            create.append(made)
        elif not _same(first, made):
            update.append(_written_over(made, first, generate_name=""))
    surplus = [endpoint_slice for left in by_key.values() for endpoint_slice in left]
    create, recycled, delete = _recycle(create, surplus)
    if endpoints.metadata.deletion_timestamp is not None:
        create = []
    return MirrorPlan(Changes(tuple(create), (*update, *recycled), tuple(delete)), tuple(notes))


def _recycle(
    create: Sequence[EndpointSlice], surplus: Sequence[EndpointSlice]
) -> tuple[list[EndpointSlice], list[EndpointSlice], list[EndpointSlice]]:
    """Write new slices over those due for deletion, where the family, which cannot change, is the same."""
    left = sorted(surplus, key=lambda s: s.metadata.name)
    made: list[EndpointSlice] = []
    over: list[EndpointSlice] = []
    for endpoint_slice in create:
        spare = next((s for s in left if s.address_type == endpoint_slice.address_type), None)
        if spare is None:
            made.append(endpoint_slice)
        else:
            left.remove(spare)
            over.append(_written_over(endpoint_slice, spare, generate_name=endpoint_slice.metadata.generate_name))
    return made, over, left


# --- from subsets to endpoints ---------------------------------------------------------------------


def _wanted(endpoints: Endpoints) -> tuple[dict[Key, Content], list[Note]]:
    wanted: dict[Key, Content] = {}
    invalid = skipped = 0
    for subset in repack(endpoints.subsets or ()):
        ports = _ports(subset.ports)
        taken, bad = _mirror(subset, ports, wanted)
        invalid += bad
        skipped += len(subset.addresses) + len(subset.not_ready_addresses) - taken
    notes = []
    if invalid:
        message = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
        notes.append(Note("Warning", "InvalidIPAddress", message))
    if skipped > invalid:
        notes.append(
            Note(
                "Warning",
                "TooManyAddressesToMirror",
                f"A max of {MIRRORED_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{skipped} addresses were skipped",
            )
        )
    return wanted, notes


def _mirror(subset: EndpointSubset, ports: PortKey, wanted: dict[Key, Content]) -> tuple[int, int]:
    """Add a subset's endpoints, the ready ones first; says how many were taken and how many are no addresses."""
    taken = invalid = 0
    for addresses, ready in ((subset.addresses, True), (subset.not_ready_addresses, False)):
        for address in addresses:
            if taken >= MIRRORED_ADDRESSES:
                return taken, invalid
            parsed = parse_ip(address.ip)
            if parsed is None:
                invalid += 1
                continue
            family, ip = parsed
            endpoint = _endpoint(address, ip, ready=ready)
            wanted.setdefault((family, ports), {})[identity(endpoint)] = endpoint
            taken += 1
    return taken, invalid


def _ports(ports: Iterable[EndpointPort]) -> PortKey:
    return tuple(sorted(Port(p.name, p.port, p.protocol, p.app_protocol or "") for p in ports))


def _endpoint(address: EndpointAddress, ip: str, *, ready: bool) -> Endpoint:
    # An Endpoints says nothing about serving and terminating, so neither does its mirror.
    return Endpoint(
        addresses=(ip,),
        conditions=Conditions(ready=ready),
        hostname=address.hostname or None,
        target_ref=address.target_ref,
        node_name=address.node_name,
    )


# --- the object ------------------------------------------------------------------------------------


def _slice(endpoints: Endpoints, content: Content, key: Key) -> EndpointSlice:
    meta = endpoints.metadata
    owner = OwnerReference("v1", "Endpoints", meta.name, meta.uid, controller=True, block_owner_deletion=True)
    return EndpointSlice(
        metadata=Metadata(
            generate_name=name_prefix(meta.name),
            namespace=meta.namespace,
            labels={**meta.labels, SERVICE_NAME_LABEL: meta.name, SLICE_MANAGED_BY_LABEL: MIRROR_CONTROLLER},
            annotations={k: v for k, v in meta.annotations.items() if k not in _NOT_COPIED},
            owner_references=(owner,),
        ),
        address_type=key[0],
        endpoints=tuple(content[which] for which in sorted(content)),
        ports=slice_ports(key[1]),
    )


def _same(existing: EndpointSlice, made: EndpointSlice) -> bool:
    """Whether the slice says it all already, whatever the order of its endpoints.

    Hints are nothing that Endpoints could say, so those somebody gave the slice do not count against it.
    """
    old, new = existing.metadata, made.metadata
    if old.labels != new.labels or old.annotations != new.annotations:
        return False
    if [owner.uid for owner in old.owner_references] != [owner.uid for owner in new.owner_references]:
        return False
    endpoints, wanted = stripped(existing.endpoints or ()), made.endpoints or ()
    held = {identity(endpoint): endpoint for endpoint in endpoints}
    return len(endpoints) == len(wanted) and all(
        (found := held.get(identity(endpoint))) is not None and same_endpoint(found, endpoint) for endpoint in wanted
    )


def _written_over(made: EndpointSlice, existing: EndpointSlice, *, generate_name: str) -> EndpointSlice:
    """The existing slice with the new content.  Kubernetes forgets ``generateName`` when it updates one in place."""
    meta = msgspec.structs.replace(
        existing.metadata,
        generate_name=generate_name,
        labels=made.metadata.labels,
        annotations=made.metadata.annotations,
        owner_references=made.metadata.owner_references,
    )
    return msgspec.structs.replace(made, metadata=meta)
