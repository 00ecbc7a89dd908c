"""Protects ServiceCIDRs: each is ready once it has its finalizer, and is kept while an address depends on it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.correlation import Reference
from seamark.kinds.resource import IP_ADDRESSES, SERVICE_CIDRS
from seamark.kinds.service.servicecidr import FINALIZER, READY
from seamark.kinds.values import times
from seamark.rules.objects.network import IPAddress, Network, ServiceCIDR, covered
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "service-cidr-controller"

# API servers that do not know of the deletion yet may still allocate addresses from it.
GRACE_SECONDS = 10.0

_READY_MESSAGE = "Kubernetes Service CIDR is ready"
_BLOCKED_MESSAGE = (
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
)


class Duty(msgspec.Struct, frozen=True):
    """What to do about one ServiceCIDR; ``wait`` seconds first, if above zero."""

    protect: bool = False
    condition: tuple[str, str, str] | None = None  # status, reason, message of Ready
    let_go: bool = False
    wait: float = 0.0


def duty(cidr: ServiceCIDR, *, blocked: bool, now: float) -> Duty:
    """``blocked`` says whether an address needs the ServiceCIDR; it matters only during deletion."""
    meta = cidr.metadata
    protected = FINALIZER in meta.finalizers
    if meta.deletion_timestamp is None:
        return Duty(protect=not protected, condition=_news(cidr, "True", "", _READY_MESSAGE))
    if blocked:
        return Duty(condition=_news(cidr, "False", "Terminating", _BLOCKED_MESSAGE))
    left = GRACE_SECONDS - (now - times.parse(meta.deletion_timestamp))
    return Duty(wait=left) if left > 0 else Duty(let_go=protected)


def _news(cidr: ServiceCIDR, status: str, reason: str, message: str) -> tuple[str, str, str] | None:
    """The condition to write, or None if the ServiceCIDR has it already."""
    wanted = (status, reason, message)
    said = [(c.status, c.reason, c.message) for c in cidr.status.conditions if c.type == READY]
    return None if said == [wanted] else wanted


def blocker(cidr: ServiceCIDR, others: Iterable[ServiceCIDR], addresses: Iterable[IPAddress]) -> str:
    """An address that only this ServiceCIDR covers, "" if there is none."""
    rest = [each for each in others if each.metadata.name != cidr.metadata.name]
    if all(any(_inside(network, other) for each in rest for other in each.networks) for network in cidr.networks):
        return ""
    for address in addresses:
        name = address.metadata.name
        if address.managed and cidr.covers(name) and not covered(name, rest):
            return name
    return ""


def _inside(network: Network, other: Network) -> bool:
    return network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]  # same version


class ServiceCIDRController(Controller):
    """Protects ServiceCIDRs, reports whether they are ready, and releases those that no address depends on."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._recorder = manager.recorder(cluster, NAME)
        self._clock = manager.clock
        self._cidrs = self.watch(manager.informers.of(SERVICE_CIDRS, as_=ServiceCIDR), self._cidr_changed)
        self._addresses = self.watch(manager.informers.of(IP_ADDRESSES, as_=IPAddress), self._address_changed)
        # For each, one address that blocks its deletion: while it exists, the others need no check.
        self._blockers: dict[Key, str] = {}

    def reset(self) -> None:
        self._blockers.clear()

    def _cidr_changed(self, key: Key, old: ServiceCIDR | None, new: ServiceCIDR | None) -> None:
        if new is not None:
            self.queue.add(key)
        else:
            self._blockers.pop(key, None)
        if old is None or new is None or old.spec != new.spec:
            # Another range may now cover the address that blocks a deletion, or may have ceased to.
            for each in self._cidrs.objects():
                if each.metadata.deletion_timestamp is not None:
                    self._blockers.pop(each.metadata.name, None)
                    self.queue.add(each.metadata.name)

    def _address_changed(self, address: Key, old: IPAddress | None, new: IPAddress | None) -> None:
        if new is None:
            for key in [key for key, blocker in self._blockers.items() if blocker == address]:
                del self._blockers[key]
                self.queue.add(key)
        elif old is None:
            for each in self._cidrs.objects():
                if each.metadata.deletion_timestamp is not None and each.covers(address):
                    self.queue.add(each.metadata.name)

    # --- one ServiceCIDR ---------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        cidr = self._cidrs.by_key(key)
        if cidr is None:
            return
        decided = duty(cidr, blocked=self._blocked(cidr), now=self._clock.time())
        if decided.wait > 0:
            raise Again(decided.wait)
        try:
            if decided.protect:
                await self._patch(cidr, {"metadata": {"finalizers": [FINALIZER]}})
            if decided.condition is not None:
                await self._say(cidr, *decided.condition)
            if decided.let_go:
                await self._patch(cidr, {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}})
        except errors.NotFound:
            return  # it is gone, so there is nothing to do

    def _blocked(self, cidr: ServiceCIDR) -> bool:
        key = cidr.metadata.name
        if cidr.metadata.deletion_timestamp is None:
            return False
        if key not in self._blockers:
            found = blocker(cidr, self._cidrs.objects(), self._addresses.objects())
            if found:
                self._blockers[key] = found
        return key in self._blockers

    async def _patch(self, cidr: ServiceCIDR, patch: dict[str, object]) -> None:
        await self._cluster.patch(SERVICE_CIDRS, cidr.metadata.name, patch, type="strategic")

    async def _say(self, cidr: ServiceCIDR, status: str, reason: str, message: str) -> None:
        condition = {"type": READY, "status": status, "message": message}
        condition |= {"reason": reason, "lastTransitionTime": times.text(self._clock.time())}
        applied = {
            "apiVersion": SERVICE_CIDRS.api_version,
            "kind": SERVICE_CIDRS.kind,
            "metadata": {"name": cidr.metadata.name},
            "status": {"conditions": [condition]},
        }
        try:
            await self._cluster.patch(
                SERVICE_CIDRS,
                cidr.metadata.name,
                applied,
                type="apply",
                subresource="status",
                field_manager=NAME,
                force=True,
            )
        except errors.NotFound:
            raise
        except errors.ApiError:
            if status == "True":
                self._recorder.record(
                    Reference.of(SERVICE_CIDRS, cidr.metadata),
                    "Warning",
                    reason="KubernetesServiceCIDRError",
                    message="The ServiceCIDR Status can not be set to Ready=True",
                )
            raise
