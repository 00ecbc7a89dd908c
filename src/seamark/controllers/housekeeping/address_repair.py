"""Keeps IPAddresses and the cluster IPs of Services in agreement: creates missing ones, deletes unused ones.

The API server writes both in one transaction, so there is something to repair only where a person deleted or made an
IPAddress by hand, or a store was restored.  The two informers are independent and one may be behind the
other, so the controller asks the server itself before it writes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.access.informer import key_of
from seamark.kinds.resource import IP_ADDRESSES, SERVICE_CIDRS, SERVICES
from seamark.kinds.service.ipaddress import FAMILY_LABEL, ip_address_object
from seamark.kinds.values import times
from seamark.kinds.values.addresses import family
from seamark.rules.objects.network import IPAddress, ParentReference, ServiceCIDR, covered
from seamark.rules.objects.service import Service
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "ipallocator-repair-controller"

# For how many seconds a new IPAddress may be without its Service.
ORPHAN_SECONDS = 60.0
LOOK_AGAIN_SECONDS = 0.1
CERTAIN_SECONDS = 1.0

Said = tuple[tuple[Hashable, str], ...]


class Note(msgspec.Struct, frozen=True):
    """A warning Event."""

    about: Reference
    reason: str
    message: str


class Repair(msgspec.Struct, frozen=True):
    """What to do about one address: delete the IPAddress, create one for ``owner``, retry after ``wait`` seconds."""

    remove: IPAddress | None = None
    owner: Service | None = None
    wait: float = 0.0
    notes: tuple[Note, ...] = ()
    complaints: tuple[Note, ...] = ()  # problems that only a user can solve


def plan(
    address: str,
    holders: Sequence[Service],
    found: IPAddress | None,
    *,
    in_range: bool,
    parent_exists: bool,
    now: float,
) -> Repair:
    """``holders`` are the Services with this cluster IP, ``found`` the IPAddress of its name.

    ``parent_exists`` says whether the Service that the IPAddress names exists.
    """
    if not holders:
        return _plan_without_service(address, found, parent_exists=parent_exists, now=now)
    shown = f"[{family(address)}]"
    if not in_range:
        text = f"Cluster IP {shown}: {address} is not within any configured Service CIDR; please recreate service"
        return Repair(complaints=tuple(_note(holder, "ClusterIPOutOfRange", text) for holder in holders))
    parent = found.parent if found is not None else None
    owner = next((holder for holder in holders if parent is not None and _names(parent, holder)), None)
    first = owner or min(
        holders, key=lambda h: (h.metadata.creation_timestamp or "", h.metadata.namespace, h.metadata.name)
    )
    text = f"Cluster IP {shown}:{address} was assigned to multiple services; please recreate service"
    doubles = tuple(_note(h, "ClusterIPAlreadyAllocated", text) for h in holders if h is not first)
    if found is None:
        text = f"Cluster IP {shown}: {address} is not allocated; repairing"
        return Repair(owner=first, notes=(_note(first, "ClusterIPNotAllocated", text),), complaints=doubles)
    if owner is None:
        name = key_of(first.metadata.namespace, first.metadata.name)
        text = f"the ClusterIP {shown}: {address} for Service {name} has a wrong reference; repairing"
        notes = (_note(first, "ClusterIPNotAllocated", text),)
        return Repair(remove=found, owner=first, notes=notes, complaints=doubles)
    if not found.managed or found.metadata.labels.get(FAMILY_LABEL) != family(address):
        return Repair(remove=found, owner=owner, complaints=doubles)
    return Repair(complaints=doubles)


def _plan_without_service(address: str, found: IPAddress | None, *, parent_exists: bool, now: float) -> Repair:
    if found is None or not found.managed:
        return Repair()
    parent = found.parent
    target = Reference.of(IP_ADDRESSES, found.metadata)
    if not parent.is_service:
        shown = "/".join(filter(None, (parent.group, parent.resource, parent.namespace, parent.name)))
        text = f"IPAddress {address} appears to have been modified, not referencing a Service {shown}: cleaning up"
        return Repair(remove=found, notes=(Note(target, "IPAddressNotAllocated", text),))
    service = key_of(parent.namespace, parent.name)
    if parent_exists:
        text = f"IPAddress: {address} for Service {service} has a wrong reference; cleaning up"
        return Repair(remove=found, notes=(Note(target, "IPAddressWrongReference", text),))
    age = now - times.parse(found.metadata.creation_timestamp) if found.metadata.creation_timestamp else ORPHAN_SECONDS
    if age < ORPHAN_SECONDS:
        return Repair(wait=ORPHAN_SECONDS - age)
    text = f"IPAddress: {address} for Service {service} appears to have leaked: cleaning up"
    return Repair(remove=found, notes=(Note(target, "IPAddressNotAllocated", text),))


def _names(parent: ParentReference, service: Service) -> bool:
    place = (service.metadata.namespace, service.metadata.name)
    return parent.is_service and (parent.namespace, parent.name) == place


def _note(service: Service, reason: str, message: str) -> Note:
    return Note(Reference.of(SERVICES, service.metadata), reason, message)


def _addresses_of(service: Service) -> tuple[str, ...]:
    return service.cluster_addresses


class AddressRepair(Controller):
    """Keeps IPAddresses and cluster IPs in agreement; a key is an address."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._recorder = manager.recorder(cluster, NAME)
        self._clock = manager.clock
        informers = manager.informers
        self._services = self.watch(informers.of(SERVICES, as_=Service), self._service_changed)
        self._by_address = self._services.index("cluster addresses", _addresses_of)
        self._addresses = self.watch(informers.of(IP_ADDRESSES, as_=IPAddress), self._address_changed)
        self._cidrs = self.watch(informers.of(SERVICE_CIDRS, as_=ServiceCIDR), self._range_changed)
        self._complained: dict[Key, tuple[Said, bool]] = {}  # what is wrong, and whether an Event said so

    def _service_changed(self, key: Key, old: Service | None, new: Service | None) -> None:
        before = old.cluster_addresses if old is not None else ()
        after = new.cluster_addresses if new is not None else ()
        if before != after:
            for address in {*before, *after}:
                self.queue.add(address)

    def _address_changed(self, address: Key, old: IPAddress | None, new: IPAddress | None) -> None:
        self.queue.add(address)

    def _range_changed(self, key: Key, old: ServiceCIDR | None, new: ServiceCIDR | None) -> None:
        for address in self._complained:
            self.queue.add(address)

    # --- one address -------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        found = self._addresses.get(key)
        parent = found.parent if found is not None else ParentReference()
        exists = parent.is_service and self._services.get(parent.name, parent.namespace) is not None
        repair = self._plan(key, self._by_address.objects(key), found, exists)
        if repair.remove is not None or repair.owner is not None:
            # Usually one informer is only behind the other, so ask the server itself.
            repair = await self._plan_afresh(key)
            await self._carry_out(key, repair)
        self._complain(key, repair.complaints)
        if repair.wait > 0:
            raise Again(repair.wait)

    def _plan(self, address: str, holders: Sequence[Service], found: IPAddress | None, parent_exists: bool) -> Repair:
        in_range = covered(address, self._cidrs.objects())
        return plan(address, holders, found, in_range=in_range, parent_exists=parent_exists, now=self._clock.time())

    async def _plan_afresh(self, address: str) -> Repair:
        try:
            found = await self._cluster.get(IP_ADDRESSES, address, as_=IPAddress)
        except errors.NotFound:
            found = None
        parent = found.parent if found is not None else ParentReference()
        candidates = {(s.metadata.namespace, s.metadata.name) for s in self._by_address.objects(address)}
        if parent.is_service:
            candidates.add((parent.namespace, parent.name))
        holders, parent_exists = [], False
        for namespace, name in sorted(candidates):
            try:
                service = await self._cluster.get(SERVICES, name, namespace=namespace, as_=Service)
            except errors.NotFound:
                continue
            parent_exists = parent_exists or _names(parent, service)
            if address in service.cluster_addresses:
                holders.append(service)
        return self._plan(address, holders, found, parent_exists)

    async def _carry_out(self, address: str, repair: Repair) -> None:
        try:
            if repair.remove is not None:
                meta = repair.remove.metadata
                await self._cluster.delete(IP_ADDRESSES, address, uid=meta.uid, version=meta.resource_version)
            if repair.owner is not None:
                meta = repair.owner.metadata
                made = ip_address_object(address, meta.namespace, meta.name, now=times.text(self._clock.time()))
                await self._cluster.create(IP_ADDRESSES, made)
        except (errors.NotFound, errors.Conflict):
            raise Again(LOOK_AGAIN_SECONDS) from None  # another writer changed it at the same time
        for note in repair.notes:
            self._recorder.record(note.about, "Warning", reason=note.reason, message=note.message)

    def _complain(self, address: str, complaints: tuple[Note, ...]) -> None:
        """Write an Event once a problem has lasted for a moment, and again when the problem changes."""
        if not complaints:
            self._complained.pop(address, None)
            return
        said = tuple((note.about.identity, note.reason) for note in complaints)
        before = self._complained.get(address)
        if before is None or before[0] != said:
            # The informer may not show a new range yet.
            self._complained[address] = (said, False)
            raise Again(CERTAIN_SECONDS)
        if not before[1]:
            self._complained[address] = (said, True)
            for note in complaints:
                self._recorder.record(note.about, "Warning", reason=note.reason, message=note.message)
