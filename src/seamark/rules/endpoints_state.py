"""One Service's Endpoints, kept Pod by Pod.

Pods that offer the same ports form a group, in the order Endpoints lists them.  A Pod's change moves one entry of one
group; subsets are read off the groups, and never more addresses than one Endpoints may hold.  The result is that of
:func:`seamark.rules.endpoints.plan` over all Pods, without going through all Pods.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice

import msgspec

from seamark.kinds.wellknown import ENDPOINTS_CAPACITY
from seamark.rules.changes import Changes
from seamark.rules.endpoints import address_of, changes, endpoint_ports, shares
from seamark.rules.membership import Port, judge
from seamark.rules.objects.endpoints import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.subsets import AddressKey, address_key, ports_in_order, rank


class _Entry(msgspec.Struct, frozen=True, gc=False):
    """What one Pod contributes."""

    ports: tuple[Port, ...]
    ready: bool
    address: EndpointAddress


class _Roster:
    """Addresses in order.  Moving the tail of a plain list beats any tree up to far more than is ever listed."""

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


class _Draft(msgspec.Struct, frozen=True):
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


class EndpointsState:
    """Feed it Pods, ask it for the plan.  A new Service object means a new state, or every Pod again."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._entries: dict[str, _Entry] = {}
        self._groups: dict[tuple[Port, ...], _Group] = {}
        self._settled: Endpoints | None = None

    def __len__(self) -> int:
        """How many Pods it lists, as many as an Endpoints can hold."""
        return min(len(self._entries), ENDPOINTS_CAPACITY)

    def put(self, name: str, pod: Pod | None) -> None:
        """This is the Pod of that name now; None if there is none, or none that the Service selects."""
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
        """Go on with a changed Service; False if it changed too much, and every Pod must be judged again."""
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
        return True

    def plan(self, current: Endpoints | None, *, trigger_time: str = "", canonical: bool = False) -> Changes[Endpoints]:
        """What to write; ``canonical`` as for :func:`seamark.rules.endpoints.changes`."""
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
        return wanted

    def _judge(self, pod: Pod) -> _Entry | None:
        # Endpoints does not care whether the Pod's Node exists, so none is looked up.
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

    def _drafts(self) -> list[_Draft]:
        """Ports offered by the same groups of Pods have the same addresses, and so share a subset."""
        offered_by: dict[Port | None, list[tuple[Port, ...]]] = {}
        for key in sorted(self._groups):
            for port in key or (None,):
                offered_by.setdefault(port, []).append(key)
        together: dict[tuple[tuple[Port, ...], ...], list[Port]] = {}
        for port, keys in offered_by.items():
            ports = together.setdefault(tuple(keys), [])
            if port is not None:
                ports.append(port)
        drafts = [
            _Draft(ports_in_order(endpoint_ports(ports)), [self._groups[key] for key in keys])
            for keys, ports in together.items()
        ]
        return sorted(drafts, key=lambda draft: rank(draft.ports))


def _listed(drafts: Sequence[_Draft], ready: int) -> Iterator[EndpointSubset]:
    """The subsets cut to capacity, as :func:`seamark.rules.endpoints.truncated` cuts them."""
    if ready > ENDPOINTS_CAPACITY:
        fit = [(share, 0) for share in shares((d.ready() for d in drafts), ENDPOINTS_CAPACITY)]
    else:
        waiting = shares((d.waiting() for d in drafts), ENDPOINTS_CAPACITY - ready)
        fit = [(d.ready(), share) for d, share in zip(drafts, waiting, strict=True)]
    for draft, (first_ready, first_waiting) in zip(drafts, fit, strict=True):
        if first_ready or first_waiting:
            yield draft.listed(ready=first_ready, waiting=first_waiting)


def _first(count: int, rosters: Sequence[_Roster]) -> tuple[EndpointAddress, ...]:
    """The first addresses of several rosters, in order."""
    if len(rosters) == 1:
        by_key = rosters[0].by_key
        return tuple([by_key[key] for key in rosters[0].keys[:count]])
    merged = merge(*([(key, roster.by_key[key]) for key in roster.keys[:count]] for roster in rosters))
    return tuple(address for _, address in islice(merged, count))
