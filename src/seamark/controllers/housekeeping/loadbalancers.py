"""Gives addresses from a pool to Services of type LoadBalancer.

Only the Service's status records its address: when the Service is deleted or changes its type, the address is free
again, and after a restart the statuses tell which addresses are taken.  So there is nothing to clean up, and Services
get no ``service.kubernetes.io/load-balancer-cleanup`` finalizer, which would only delay deletion.  One that is there
already is removed when the Service needs no load balancer any more, as a cloud's controller does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.controllers.housekeeping.loadbalancer_pool import Pool
from seamark.kinds.resource import SERVICES
from seamark.kinds.values.addresses import Family, canonical, family
from seamark.rules.objects.service import Service
from seamark.runtime.controller import Controller
from seamark.runtime.ledger import Ledger
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "service-lb-controller"
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"


class AddressPlan(msgspec.Struct, frozen=True):
    """Which addresses a Service should have, and why it does not get all it asks for."""

    addresses: tuple[str, ...] = ()
    problem: str = ""


def wanted(service: Service) -> bool:
    """Whether the Service gets addresses here; one with a load balancer class belongs to another controller."""
    return (
        service.is_load_balancer
        and service.spec.load_balancer_class is None
        and service.metadata.deletion_timestamp is None
    )


def plan(service: Service, pool: Pool) -> AddressPlan:
    """One address for each family of the Service: the one it has, the one it asks for, or a free one."""
    key = service.metadata.key
    mine = [a for a in service.ingress_addresses if pool.contains(a) and pool.owner(a) in (None, key)]
    asked = canonical(service.spec.load_balancer_ip)
    addresses: list[str] = []
    problem = ""
    families = [f for f in _families(service) if pool.has(f)]
    if not families:
        return AddressPlan(problem=f"the pool has no {' or '.join(_families(service))} addresses")
    for each in families:
        has = next((address for address in mine if family(address) == each), None)
        if asked and family(asked) == each and asked != has:
            if problem := _why_not(asked, key, pool):
                addresses += [has] if has else []  # keep the address it has, which is better than none
            else:
                addresses.append(asked)
            continue
        found = has or pool.free(each)
        if found is None:
            problem = problem or f"the pool has no free {each} address"
        else:
            addresses.append(found)
    return AddressPlan(tuple(addresses), problem)


def _why_not(asked: str, key: Key, pool: Pool) -> str:
    if not pool.contains(asked):
        return f"the requested address {asked} is not in the pool"
    owner = pool.owner(asked)
    return f"the requested address {asked} belongs to Service {owner}" if owner not in (None, key) else ""


def _families(service: Service) -> Sequence[Family]:
    return service.spec.ip_families or ("IPv4",)


class LoadBalancerController(Controller):
    """Assigns addresses to Services and releases them."""

    def __init__(self, manager: Manager, cluster: Cluster, pool: Sequence[str]) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        # Events have the source of the controller that runs in clouds.
        self._recorder = manager.recorder(cluster, "service-controller")
        self._ranges = pool
        self._pool = Pool(pool)
        self._services = self.watch(manager.informers.of(SERVICES, as_=Service), self._changed)
        self._ledger = Ledger(self._services, clock=manager.clock)
        self._held: dict[Key, frozenset[str]] = {}
        self._promised: dict[Key, tuple[str, ...]] = {}  # addresses in writes that are under way
        self._waiting: dict[Key, str] = {}  # Services that wait for an address, and why

    def reset(self) -> None:
        self._pool = Pool(self._ranges)
        self._held.clear()
        self._waiting.clear()

    # --- following ---------------------------------------------------------------------------------

    def _changed(self, key: Key, old: Service | None, new: Service | None) -> None:
        self._ledger.news(key, old, new)
        if new is None:
            self._waiting.pop(key, None)
        self._hold(key)
        if old is not None and wanted(old) and not (new is not None and wanted(new)):
            self._say_gone(old, new)
        if new is not None and (new.is_load_balancer or FINALIZER in new.metadata.finalizers):
            self.queue.add(key)

    def _hold(self, key: Key) -> None:
        """Claim in the pool the addresses that a Service has and is about to have."""
        service = self._ledger.latest(key)
        addresses: set[str] = set()
        if service is not None:
            addresses.update(service.ingress_addresses, self._promised.get(key, ()))
        before = self._held.pop(key, frozenset())
        if addresses:
            self._held[key] = frozenset(addresses)
        for address in addresses - before:
            assert service is not None
            for rival in self._pool.claimants(address):
                self.queue.add(rival)
            self._pool.claim(address, key, service.metadata.creation_timestamp or "")
        for address in before - addresses:
            self._pool.release(address, key)
        if before - addresses:
            for waiting in self._waiting:
                self.queue.add(waiting)

    # --- one Service -------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        service = self._ledger.latest(key)
        if service is None:
            return
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
        self._promised[key] = addresses
        self._hold(key)
        ingress = [{"ip": address, "ipMode": "VIP"} for address in addresses]
        patch = {"metadata": {"uid": meta.uid}, "status": {"loadBalancer": {"ingress": ingress}}}
        try:
            answer = await self._cluster.patch(
                SERVICES, meta.name, patch, namespace=meta.namespace, subresource="status", as_=Service
            )
            self._ledger.put(key, answer)
        except (errors.NotFound, errors.Conflict, errors.Invalid):
            return  # deleted, replaced, or no longer a LoadBalancer: that change queues the key again
        except errors.ApiError as error:
            self._say(service, "Warning", "SyncLoadBalancerFailed", _failed(str(error)))
            raise
        finally:
            del self._promised[key]
            self._hold(key)
        self._say(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")

    async def _let_go(self, service: Service) -> None:
        """Remove the finalizer of a Service that needs no load balancer, so that it can be deleted."""
        meta = service.metadata
        if FINALIZER not in meta.finalizers or service.spec.load_balancer_class is not None:
            return
        patch = {"metadata": {"uid": meta.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
        try:
            await self._cluster.patch(SERVICES, meta.name, patch, namespace=meta.namespace, type="strategic")
        except errors.NotFound:
            return

    # --- Events ------------------------------------------------------------------------------------

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
