"""Addresses for Services of type LoadBalancer, out of a pool of our own.

An address is held by nothing but the Service's status: when the Service goes or changes its type, the address is free
again, and after a restart the statuses say who has what.  That is why Services get no
``service.kubernetes.io/load-balancer-cleanup`` finalizer, which would only make deletion wait; one that is there
already is removed when its time has come, as a cloud's controller would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.correlation import Reference
from seamark.access.events import EventRecorder
from seamark.access.informer import key_of
from seamark.access.informers import Informers
from seamark.controllers.housekeeping.loadbalancer_pool import Pool
from seamark.kinds.resource import SERVICES
from seamark.kinds.values.addresses import Family, canonical, family
from seamark.rules.objects.service import Service
from seamark.runtime.loop import Key, Loop

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"


class Plan(msgspec.Struct, frozen=True):
    """Which addresses a Service should have, and why not all it wants."""

    addresses: tuple[str, ...] = ()
    problem: str = ""


def wanted(service: Service) -> bool:
    """Whether the Service is ours to serve: a class means that somebody else's controller does."""
    return (
        service.is_load_balancer
        and service.spec.load_balancer_class is None
        and service.metadata.deletion_timestamp is None
    )


def plan(service: Service, pool: Pool) -> Plan:
    """One address per family of the Service that the pool has: those it has, the one it asks for, or a free one."""
    key = _key(service)
    mine = [a for a in service.ingress_addresses if pool.contains(a) and pool.owner(a) in (None, key)]
    asked = canonical(service.spec.load_balancer_ip)
    addresses: list[str] = []
    problem = ""
    families = [f for f in _families(service) if pool.has(f)]
    if not families:
        return Plan(problem=f"the pool has no {' or '.join(_families(service))} addresses")
    for each in families:
        has = next((address for address in mine if family(address) == each), None)
        if asked and family(asked) == each and asked != has:
            if problem := _why_not(asked, key, pool):
                addresses += [has] if has else []  # what it has is better than nothing
            else:
                addresses.append(asked)
            continue
        found = has or pool.free(each)
        if found is None:
            problem = problem or f"the pool has no free {each} address"
        else:
            addresses.append(found)
    return Plan(tuple(addresses), problem)


def _why_not(asked: str, key: Key, pool: Pool) -> str:
    if not pool.contains(asked):
        return f"the requested address {asked} is not in the pool"
    owner = pool.owner(asked)
    return f"the requested address {asked} belongs to Service {owner}" if owner not in (None, key) else ""


def _families(service: Service) -> Sequence[Family]:
    return service.spec.ip_families or ("IPv4",)


def _key(service: Service) -> Key:
    return key_of(service.metadata.namespace, service.metadata.name)


def _version(service: Service) -> int:
    return int(service.metadata.resource_version)


class _Written(msgspec.Struct, frozen=True):
    """Addresses that a write gives, until the informer has seen the version it came to; None while it is under way."""

    addresses: tuple[str, ...]
    version: int | None = None


class LoadBalancerController:
    """Gives addresses out and takes them back."""

    name = "service-lb-controller"

    def __init__(self, cluster: Cluster, informers: Informers, recorder: EventRecorder, pool: Sequence[str]) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._pool = Pool(pool)
        self._services = informers.of(SERVICES, as_=Service)
        self._held: dict[Key, frozenset[str]] = {}
        self._written: dict[Key, _Written] = {}
        self._waiting: dict[Key, str] = {}  # who waits for an address, and why there is none
        self._loop: Loop | None = None

    def attach(self, loop: Loop) -> None:
        self._loop = loop
        self._services.on_change(self._changed)

    async def synced(self) -> None:
        # Before all statuses are known, an address that has an owner could be taken for free.
        await self._services.synced.wait()

    # --- following ---------------------------------------------------------------------------------

    def _changed(self, old: Service | None, new: Service | None) -> None:
        assert self._loop is not None
        present = new if new is not None else old
        assert present is not None
        key = _key(present)
        if new is None:
            self._waiting.pop(key, None)
            self._written.pop(key, None)
        self._hold(key, new)
        if old is not None and wanted(old) and not (new is not None and wanted(new)):
            self._say_gone(old, new)
        if new is not None and (new.is_load_balancer or FINALIZER in new.metadata.finalizers):
            self._loop.add(key)

    def _hold(self, key: Key, service: Service | None) -> None:
        """Bring the pool up to date with what a Service has and is about to have."""
        assert self._loop is not None
        addresses: set[str] = set()
        if service is not None:
            addresses.update(service.ingress_addresses)
            written = self._written.get(key)
            if written is not None and written.version is not None and _version(service) >= written.version:
                del self._written[key]
            elif written is not None:
                addresses.update(written.addresses)
        before = self._held.pop(key, frozenset())
        if addresses:
            self._held[key] = frozenset(addresses)
        for address in addresses - before:
            assert service is not None
            for rival in self._pool.claimants(address):
                self._loop.add(rival)
            self._pool.claim(address, key, service.metadata.creation_timestamp or "")
        for address in before - addresses:
            self._pool.release(address, key)
        if before - addresses:
            for waiting in self._waiting:
                self._loop.add(waiting)

    # --- one Service -------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        service = self._services.by_key(key)
        if service is None or key in self._written:
            return  # what was written comes back, and brings the key with it
        if not wanted(service):
            self._waiting.pop(key, None)
            await self._let_go(service)
            return
        planned = plan(service, self._pool)
        if not planned.problem:
            self._waiting.pop(key, None)
        elif self._waiting.get(key) != planned.problem:
            self._waiting[key] = planned.problem
            self._say(service, "Warning", "SyncLoadBalancerFailed", _failed(planned.problem))
        if planned.addresses != service.ingress_addresses:
            await self._give(key, service, planned.addresses)

    async def _give(self, key: Key, service: Service, addresses: tuple[str, ...]) -> None:
        meta = service.metadata
        self._say(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer")
        self._written[key] = _Written(addresses)
        self._hold(key, service)
        ingress = [{"ip": address, "ipMode": "VIP"} for address in addresses]
        patch = {"metadata": {"uid": meta.uid}, "status": {"loadBalancer": {"ingress": ingress}}}
        try:
            given = await self._cluster.patch(
                SERVICES, meta.name, patch, namespace=meta.namespace, subresource="status", as_=Receipt
            )
        except errors.ApiError as error:
            self._written.pop(key, None)
            self._hold(key, self._services.by_key(key))
            if isinstance(error, errors.NotFound | errors.Conflict | errors.Invalid):
                return  # it is gone, another one, or no LoadBalancer any more: the change will say so
            self._say(service, "Warning", "SyncLoadBalancerFailed", _failed(str(error)))
            raise
        if key in self._written:
            self._written[key] = _Written(addresses, int(given.version))
            self._hold(key, self._services.by_key(key))
        self._say(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")

    async def _let_go(self, service: Service) -> None:
        """Whatever the Service was, nobody has to clean up after it any more."""
        meta = service.metadata
        if FINALIZER not in meta.finalizers or service.spec.load_balancer_class is not None:
            return
        patch = {"metadata": {"uid": meta.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
        try:
            await self._cluster.patch(SERVICES, meta.name, patch, namespace=meta.namespace, type="strategic")
        except errors.NotFound:
            return

    # --- telling -----------------------------------------------------------------------------------

    def _say_gone(self, old: Service, new: Service | None) -> None:
        if new is not None and new.spec.type != old.spec.type:
            self._say(new, "Normal", "Type", f"{old.spec.type} -> {new.spec.type}")
        if old.ingress_addresses:
            self._say(new or old, "Normal", "DeletingLoadBalancer", "Deleting load balancer")
            self._say(new or old, "Normal", "DeletedLoadBalancer", "Deleted load balancer")

    def _say(self, service: Service, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        self._recorder.record(Reference.of(SERVICES, service.metadata), type, reason=reason, message=message)


def _failed(problem: str) -> str:
    return f"Error syncing load balancer: failed to ensure load balancer: {problem}"
