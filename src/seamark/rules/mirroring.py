"""EndpointSlices for Endpoints that a user wrote by hand (pure).

The controllers make no endpoints for a Service without a selector: its user writes them.  Many still write Endpoints,
while proxies and DNS read EndpointSlices only.  So each subset of such Endpoints becomes one slice per address family.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain

import msgspec

from seamark.kinds.values.addresses import Family
from seamark.kinds.wellknown import (
    LAST_APPLIED_ANNOTATION,
    MIRROR_CONTROLLER,
    MIRRORED_ADDRESSES,
    MIRRORED_BYTES,
    SERVICE_NAME_LABEL,
    SKIP_MIRROR_LABEL,
    SLICE_MANAGED_BY_LABEL,
    TRIGGER_TIME_ANNOTATION,
)
from seamark.rules.changes import Changes, Notice
from seamark.rules.hints import stripped
from seamark.rules.membership import Port, parse_ip
from seamark.rules.objects.endpoints import EndpointAddress, EndpointPort, Endpoints
from seamark.rules.objects.endpointslice import Conditions, Endpoint, EndpointSlice
from seamark.rules.objects.metadata import Metadata, OwnerReference
from seamark.rules.objects.service import Service
from seamark.rules.slices.objects import (
    Content,
    PortKey,
    identity,
    name_prefix,
    port_key,
    same_endpoint,
    slice_ports,
    written_over,
)
from seamark.rules.subsets import laid_out

_NOT_COPIED = frozenset((TRIGGER_TIME_ANNOTATION, LAST_APPLIED_ANNOTATION))

# About as many bytes as an endpoint, and a slice without its labels and annotations, take.
_ENDPOINT_BYTES, _SLICE_BYTES = 150, 500

Key = tuple[Family, PortKey]


class Obstacle(Enum):
    """Why Endpoints are not mirrored."""

    NO_SERVICE = "there is no Service of that name"
    SELECTOR = "the Service has a selector"
    NO_ENDPOINTS = "there are no Endpoints"
    SKIP_LABEL = "a label forbids it"
    LEADER_LOCK = "they are the lock of a leader election"


class MirrorPlan(msgspec.Struct, frozen=True):
    """What to write, and which Events to record about the Endpoints.

    ``invalid`` are the addresses that are no IP addresses; ``skipped`` counts those beyond the limits.
    """

    changes: Changes[EndpointSlice]
    notes: tuple[Notice, ...] = ()
    invalid: tuple[str, ...] = ()
    skipped: int = 0


def ours(endpoint_slice: EndpointSlice) -> bool:
    """Whether the mirroring controller manages the slice."""
    return endpoint_slice.managed_by == MIRROR_CONTROLLER


def obstacle(service: Service | None, endpoints: Endpoints | None) -> Obstacle | None:
    """Why these Endpoints are not mirrored; None if they are."""
    if service is None:
        return Obstacle.NO_SERVICE
    if service.spec.selector:
        return Obstacle.SELECTOR
    if endpoints is None:
        return Obstacle.NO_ENDPOINTS
    return _refusal(endpoints)


def _refusal(endpoints: Endpoints) -> Obstacle | None:
    if endpoints.metadata.labels.get(SKIP_MIRROR_LABEL) == "true":
        return Obstacle.SKIP_LABEL
    return Obstacle.LEADER_LOCK if endpoints.leader_lock else None


def mirrorable(endpoints: Endpoints) -> bool:
    """Whether these Endpoints may be mirrored, whatever their Service."""
    return _refusal(endpoints) is None


def mirrors(service: Service | None, endpoints: Endpoints | None) -> bool:
    """Whether these Endpoints of this Service are mirrored."""
    return obstacle(service, endpoints) is None


def plan(service: Service | None, endpoints: Endpoints | None, slices: Iterable[EndpointSlice]) -> MirrorPlan:
    """What to write so that the mirrored slices list what the Endpoints list; without Endpoints, none are left."""
    existing = sorted(slices, key=lambda s: s.metadata.name)
    if endpoints is None or not mirrors(service, endpoints):
        return MirrorPlan(Changes(delete=tuple(existing)))
    wanted, invalid, skipped, crowded = _wanted(endpoints)
    by_key: dict[Key | None, list[EndpointSlice]] = {}
    for endpoint_slice in existing:
        family = endpoint_slice.family
        key = (family, port_key(endpoint_slice.ports or ())) if family is not None else None
        by_key.setdefault(key, []).append(endpoint_slice)
    create: list[EndpointSlice] = []
    update: list[EndpointSlice] = []
    for key in sorted(wanted):
        # One slice is enough for a subset, because both hold a thousand addresses.
        first = by_key[key].pop(0) if by_key.get(key) else None
        made = _slice(endpoints, wanted[key], key)
        if first is None:
            create.append(made)
        elif not _same(first, made):
            # Kubernetes removes ``generateName`` when it updates a slice in place.
            unnamed = msgspec.structs.replace(made.metadata, generate_name="")
            update.append(written_over(msgspec.structs.replace(made, metadata=unnamed), first))
    surplus = [endpoint_slice for left in by_key.values() for endpoint_slice in left]
    create, recycled, delete = _recycle(create, surplus)
    if endpoints.metadata.deletion_timestamp is not None:
        create = []
    changes = Changes(tuple(create), (*update, *recycled), tuple(delete))
    return MirrorPlan(changes, tuple(_notices(len(invalid), skipped, crowded)), invalid, skipped + crowded)


def _recycle(
    create: Sequence[EndpointSlice], surplus: Sequence[EndpointSlice]
) -> tuple[list[EndpointSlice], list[EndpointSlice], list[EndpointSlice]]:
    """Write new slices over those due for deletion, if they have the same family, which cannot change."""
    left: dict[str, deque[EndpointSlice]] = {}
    for endpoint_slice in sorted(surplus, key=lambda s: s.metadata.name):
        left.setdefault(endpoint_slice.address_type, deque()).append(endpoint_slice)
    made: list[EndpointSlice] = []
    over: list[EndpointSlice] = []
    for endpoint_slice in create:
        if spare := left.get(endpoint_slice.address_type):
            over.append(written_over(endpoint_slice, spare.popleft()))
        else:
            made.append(endpoint_slice)
    return made, over, sorted(chain.from_iterable(left.values()), key=lambda s: s.metadata.name)


# --- from subsets to endpoints ---------------------------------------------------------------------


def _wanted(endpoints: Endpoints) -> tuple[dict[Key, Content], tuple[str, ...], int, int]:
    """The slices' contents, and the addresses that are no IP addresses.

    Then how many addresses are too many for a subset, and for how many there is no room in all the slices together:
    each slice has the labels and annotations of the Endpoints, so half a megabyte could become gigabytes.
    """
    wanted: dict[Key, Content] = {}
    invalid: list[str] = []
    skipped = 0
    meta = endpoints.metadata
    copied = sum(len(key) + len(text) for texts in (meta.labels, meta.annotations) for key, text in texts.items())
    room = MIRRORED_BYTES
    layout = laid_out(endpoints.subsets or ())
    crowded = layout.left_out
    for subset in layout.subsets:
        ports = _ports(subset.ports)
        taken = 0
        listed = [(address, True) for address in subset.addresses]
        listed += [(address, False) for address in subset.not_ready_addresses]
        for address, ready in listed:
            if taken >= MIRRORED_ADDRESSES:
                skipped += 1
            elif (parsed := parse_ip(address.ip)) is None:
                invalid.append(address.ip)
            else:
                family, ip = parsed
                more = _ENDPOINT_BYTES + (0 if (family, ports) in wanted else _SLICE_BYTES + copied)
                if more > room:
                    crowded += 1
                    continue
                room -= more
                endpoint = _endpoint(address, ip, ready=ready)
                wanted.setdefault((family, ports), {})[identity(endpoint)] = endpoint
                taken += 1
    return wanted, tuple(invalid), skipped, crowded


def _notices(invalid: int, skipped: int, crowded: int) -> Iterator[Notice]:
    if invalid:
        message = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
        yield Notice("Warning", "InvalidIPAddress", message)
    if skipped:
        yield Notice(
            "Warning",
            "TooManyAddressesToMirror",
            f"A max of {MIRRORED_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset. "
            f"{skipped + invalid} addresses were skipped",
        )
    if crowded:
        yield Notice(
            "Warning",
            "TooManyAddressesToMirror",
            f"EndpointSlices that mirror one Endpoints can take {MIRRORED_BYTES >> 20} MiB in all, with the copies of"
            f" its labels and annotations. {crowded} addresses were skipped",
        )


def _ports(ports: Iterable[EndpointPort]) -> PortKey:
    return tuple(sorted(Port(p.name, p.port, p.protocol, p.app_protocol or "") for p in ports))


def _endpoint(address: EndpointAddress, ip: str, *, ready: bool) -> Endpoint:
    # Endpoints cannot express serving and terminating, so the mirrored slice leaves them out.
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
    """Whether the slice is right already, whatever the order of its endpoints.

    Endpoints cannot express hints, so hints that another writer gave the slice are not a difference.
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
