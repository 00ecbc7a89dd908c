"""The Endpoints of one Service, kept up to date Pod by Pod.

Pods that offer the same ports form a group, sorted as Endpoints lists them.  A Pod's change moves one entry of one
group; the subsets are read off the groups, and never more addresses than one Endpoints may hold.  The cost of a change
therefore does not grow with the number of Pods.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import eq

import msgspec

from seamark.kinds.wellknown import (
    ENDPOINTS_CAPACITY,
    ENDPOINTS_CONTROLLER,
    ENDPOINTS_MANAGED_BY_LABEL,
    HEADLESS_LABEL,
    OVER_CAPACITY_ANNOTATION,
)
from seamark.rules.changes import Changes, with_trigger_time
from seamark.rules.membership import Port, Verdict, judge
from seamark.rules.objects.endpoints import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from seamark.rules.objects.metadata import Metadata, ObjectReference
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.subsets import AddressKey, address_key, ports_in_order, rank, repack

Subsets = tuple[EndpointSubset, ...]


class EndpointsState:
    """Feed it Pods and ask it for the plan.  After a change of the Service, :meth:`renew` it or make a new one."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._entries: dict[str, _Entry] = {}
        self._groups: dict[tuple[Port, ...], _Group] = {}
        self._settled: Endpoints | None = None
        # An object that was right, and what it was compared with.  That shares its addresses with the groups, and equal
        # addresses are found fastest if they are the same.
        self._matched: tuple[Endpoints | None, bool, Subsets] = (None, False, ())

    def __len__(self) -> int:
        """How many addresses its Endpoints list."""
        return min(len(self._entries), ENDPOINTS_CAPACITY)

    def put(self, name: str, pod: Pod | None) -> None:
        """Note the Pod of that name as it is now; None if the Service no longer selects one."""
        entry = self._judge(pod) if pod is not None else None
        before = self._entries.get(name)
        if entry == before:
            return
        self._settled = None
        if before is not None:
            self._take_out(before)
            del self._entries[name]
        if entry is not None:
            self._put_in(entry)
            self._entries[name] = entry

    def renew(self, service: Service) -> bool:
        """Go on with a changed Service; False if every Pod must be judged again, in a new state."""
        old = self.service
        if (old.metadata.uid, old.metadata.name, old.spec) != (
            service.metadata.uid,
            service.metadata.name,
            service.spec,
        ):
            return False
        if old is not service:
            self.service = service
            self._settled = None
            self._matched = (None, False, ())
        return True

    def plan(self, current: Endpoints | None, *, trigger_time: str = "", canonical: bool = False) -> Changes[Endpoints]:
        """What to write so that the Endpoints list these Pods.

        ``canonical`` says that we wrote ``current`` ourselves, in the canonical layout.
        """
        if current is not None and current is self._settled:
            return Changes()
        drafts = self._drafts()
        ready, waiting = sum(d.ready() for d in drafts), sum(d.waiting() for d in drafts)
        over_capacity = ready + waiting > ENDPOINTS_CAPACITY
        subsets = (
            tuple(_listed(drafts, ready))
            if over_capacity
            else tuple(d.listed(ready=d.ready(), waiting=d.waiting()) for d in drafts)
        )
        before, was_over, listed = self._matched
        if before is not None and current is before and over_capacity == was_over and subsets == listed:
            self._settled = current
            return Changes()
        wanted = changes(
            self.service,
            subsets,
            current,
            over_capacity=over_capacity,
            trigger_time=trigger_time,
            canonical=canonical,
        )
        if not wanted:
            self._settled = current
            self._matched = (current, over_capacity, subsets)
        return wanted

    def _judge(self, pod: Pod) -> _Entry | None:
        # Endpoints list a Pod whether or not its Node exists, so none is looked up.
        verdict = judge(self.service, pod, None)
        if not verdict.in_endpoints:
            return None
        return _Entry(verdict.ports, verdict.ready, address_of(pod, verdict))

    def _put_in(self, entry: _Entry) -> None:
        group = self._groups.get(entry.ports)
        if group is None:
            group = self._groups[entry.ports] = _Group()
        group.roster(entry).add(entry.address)

    def _take_out(self, entry: _Entry) -> None:
        group = self._groups[entry.ports]
        group.roster(entry).remove(entry.address)
        if not group.ready and not group.waiting:
            del self._groups[entry.ports]

    def _drafts(self) -> list[_SubsetDraft]:
        """Ports offered by the same groups of Pods have the same addresses, and so share a subset."""
        keys = sorted(self._groups)
        groups = [self._groups[key] for key in keys]
        # Groups by their numbers here: to look one up by its ports takes as long as it has many.
        offered_by: dict[Port | None, list[int]] = {}
        for number, key in enumerate(keys):
            for port in key or (None,):
                offered_by.setdefault(port, []).append(number)
        together: dict[tuple[int, ...], list[Port]] = {}
        for port, numbers in offered_by.items():
            ports = together.setdefault(tuple(numbers), [])
            if port is not None:
                ports.append(port)
        drafts = [
            _SubsetDraft(ports_in_order(endpoint_ports(ports)), [groups[number] for number in numbers])
            for numbers, ports in together.items()
        ]
        return sorted(drafts, key=lambda draft: rank(draft.ports))


# --- groups ----------------------------------------------------------------------------------------


class _Entry(msgspec.Struct, frozen=True, gc=False):
    """What one Pod contributes."""

    ports: tuple[Port, ...]
    ready: bool
    address: EndpointAddress


class _Roster:
    """Sorted addresses.  Moving the tail of a plain list is faster than a tree, at any size that is ever listed."""

    __slots__ = ("by_key", "keys")

    def __init__(self) -> None:
        self.keys: list[AddressKey] = []
        self.by_key: dict[AddressKey, EndpointAddress] = {}

    def add(self, address: EndpointAddress) -> None:
        key = address_key(address)
        insort(self.keys, key)
        self.by_key[key] = address

    def remove(self, address: EndpointAddress) -> None:
        key = address_key(address)
        del self.keys[bisect_left(self.keys, key)]
        del self.by_key[key]

    def __len__(self) -> int:
        return len(self.keys)


class _Group:
    """Pods that offer the same ports."""

    __slots__ = ("ready", "waiting")

    def __init__(self) -> None:
        self.ready = _Roster()
        self.waiting = _Roster()

    def roster(self, entry: _Entry) -> _Roster:
        return self.ready if entry.ready else self.waiting


class _SubsetDraft(msgspec.Struct, frozen=True):
    """A subset before its addresses are listed."""

    ports: tuple[EndpointPort, ...]
    groups: list[_Group]

    def ready(self) -> int:
        return sum(len(group.ready) for group in self.groups)

    def waiting(self) -> int:
        return sum(len(group.waiting) for group in self.groups)

    def listed(self, *, ready: int, waiting: int) -> EndpointSubset:
        return EndpointSubset(
            addresses=_first(ready, [group.ready for group in self.groups]),
            not_ready_addresses=_first(waiting, [group.waiting for group in self.groups]),
            ports=self.ports,
        )


def _first(count: int, rosters: Sequence[_Roster]) -> tuple[EndpointAddress, ...]:
    """The first addresses of several rosters, in order."""
    if len(rosters) == 1:
        by_key = rosters[0].by_key
        return tuple([by_key[key] for key in rosters[0].keys[:count]])
    merged = merge(*([(key, roster.by_key[key]) for key in roster.keys[:count]] for roster in rosters))
    return tuple(address for _, address in islice(merged, count))


# --- capacity --------------------------------------------------------------------------------------


def _listed(drafts: Sequence[_SubsetDraft], ready: int) -> Iterator[EndpointSubset]:
    """The subsets, cut to what one Endpoints may hold.  Ready addresses are the last to be left out."""
    if ready > ENDPOINTS_CAPACITY:
        fit = [(share, 0) for share in shares((d.ready() for d in drafts), ENDPOINTS_CAPACITY)]
    else:
        waiting = shares((d.waiting() for d in drafts), ENDPOINTS_CAPACITY - ready)
        fit = [(d.ready(), share) for d, share in zip(drafts, waiting, strict=True)]
    for draft, (first_ready, first_waiting) in zip(drafts, fit, strict=True):
        if first_ready or first_waiting:  # an empty subset would not pass validation
            yield draft.listed(ready=first_ready, waiting=first_waiting)


def shares(counts: Iterable[int], capacity: int) -> list[int]:
    """How many of each subset's addresses fit, in proportion and rounded up while there is room."""
    counts = list(counts)
    total, left, fit = sum(counts), capacity, []
    for count in counts:
        share = min(math.ceil(count / total * capacity) if total else 0, left, count)
        fit.append(share)
        left -= share
    return fit


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


def address_of(pod: Pod, verdict: Verdict) -> EndpointAddress:
    meta = pod.metadata
    return EndpointAddress(
        ip=verdict.endpoints_address,
        hostname=verdict.hostname,
        # Written even if empty.  A Pod with an address but without a Node makes the API server refuse the whole
        # Endpoints; Kubernetes' own controller has the same flaw.  An Event reports it.
        node_name=verdict.node,
        target_ref=ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
    )


def endpoint_ports(ports: Iterable[Port]) -> tuple[EndpointPort, ...]:
    return tuple(EndpointPort(p.name, p.port, p.protocol, p.app_protocol or None) for p in ports)


def changes(
    service: Service,
    subsets: Subsets,
    current: Endpoints | None,
    *,
    over_capacity: bool,
    trigger_time: str,
    canonical: bool = False,
) -> Changes[Endpoints]:
    """The write that makes ``current`` hold these subsets; nothing if it does already.

    With ``canonical``, ``current`` has the canonical layout, and a plain comparison is enough.
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
    """Whether both list the same endpoints; another writer may have chosen another layout."""
    if stored == wanted:
        return True
    plain = tuple(
        EndpointSubset(
            tuple(map(_without_version, s.addresses)), tuple(map(_without_version, s.not_ready_addresses)), s.ports
        )
        for s in stored
    )
    return plain == wanted or repack(plain) == wanted


def _without_version(address: EndpointAddress) -> EndpointAddress:
    ref = address.target_ref
    if ref is None or not ref.resource_version:
        return address
    return msgspec.structs.replace(address, target_ref=msgspec.structs.replace(ref, resource_version=""))
