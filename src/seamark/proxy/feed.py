"""Follows a cluster and has an engine carry out the routes that follow from it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from seamark.access.backoff import Backoff
from seamark.access.informer import Informer, Key, split_key
from seamark.access.informers import Informers
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.kinds.resource import ENDPOINT_SLICES, NODES, PODS, SERVICE_CIDRS, SERVICES
from seamark.kinds.values.times import TimeError
from seamark.kinds.values.times import parse as parse_time
from seamark.kinds.wellknown import TRIGGER_TIME_ANNOTATION
from seamark.metrics import Registry
from seamark.proxy.engine import Engine, Unsupported, Update
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.network import ServiceCIDR
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.routing.model import Frontend, ServiceRoutes
from seamark.rules.routing.surroundings import Surroundings, ThisNode
from seamark.rules.routing.table import RouteTable, Touched
from seamark.runtime.following import Derived, Following

log = logging.getLogger(__name__)

T = TypeVar("T")

# kube-proxy's: by quarters of a second, seconds, five and thirty seconds.
_PROGRAMMING_BUCKETS = (0.25, 0.5, *range(1, 60), *range(60, 120, 5), *range(120, 301, 30))


class RouteFeed(Derived):
    """Keeps an engine in step with a cluster's Services and EndpointSlices, seen from one node.

    Needs permission to list and watch Services and EndpointSlices and, if ``surroundings`` name a node, that Node and
    ServiceCIDRs.  While the API server is away, the engine goes on with what is known.

    Every ``period`` seconds the engine is given an empty update, so that it can look after what it made.  With
    ``pods_of_node`` the Node's own ranges tell Pods from other clients.  With ``host_ports`` those of the node's
    Pods are carried out as well, which otherwise is a task of the network plugin.  ``served`` says which frontends the
    engine can serve.
    """

    def __init__(
        self,
        informers: Informers,
        engine: Engine,
        surroundings: Surroundings,
        *,
        period: float | None = None,
        pods_of_node: bool = False,
        host_ports: bool = False,
        served: Callable[[Frontend], bool] = lambda frontend: True,
        clock: Clock = SYSTEM_CLOCK,
        metrics: Registry | None = None,
    ) -> None:
        super().__init__("proxy")
        self.table = RouteTable(surroundings, served)
        self.problem: str | None = None  # why the last update could not be carried out
        self.waiting_since: float | None = None  # the time of the oldest change that is not carried out yet
        self._engine = engine
        self._period = period
        self._pods_of_node = pods_of_node
        self._clock = clock
        self._following = Following(self, clock=clock, metrics=metrics)
        self._touched: Touched = set()
        self._changed = asyncio.Event()
        self._everything = True
        self._began = clock.time()
        self._causes: dict[str, float] = {}  # by slice: when what is not carried out yet was caused
        self._left_out: dict[str, int] = {}  # by Service: what was told of places that are too many
        self._delays = (metrics or Registry()).histogram(
            "kubeproxy_network_programming_duration_seconds",
            "Time from a change of a Pod or Service to the routes that follow from it.",
            buckets=_PROGRAMMING_BUCKETS,
        )
        table = self.table
        self._needed: list[Informer[Any]] = [
            self._follow(informers.of(SERVICES, as_=Service), table.put_service, table.remove_service),
            self._follow(informers.of(ENDPOINT_SLICES, as_=EndpointSlice), self._put_slice, table.remove_slice),
        ]
        if host_ports:
            self._needed.append(self.watch(informers.of(PODS, as_=Pod), self._pod_changed))
        self._ranges: dict[str, tuple[str, ...]] = {}
        if name := surroundings.node.name:
            node = informers.of(NODES, as_=Node, fields=f"metadata.name={name}")
            self._needed.append(self._follow(node, self._put_node, lambda *_: set()))
            # Not needed: Kubernetes has them since 1.33, and without them only unused addresses behave differently.
            self._follow(informers.of(SERVICE_CIDRS, as_=ServiceCIDR), self._put_range, self._remove_range)

    async def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Carry out changes until cancelled; ``started`` is called once everything there is has been carried out."""
        await self._engine.start()
        self._following.connect()
        try:
            for informer in self._needed:
                await informer.synced.wait()
            await self._carry_out()
            started()
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._period):
                        await self._changed.wait()
                await self._carry_out()
        finally:
            self._following.close()
            await self._engine.close()

    def reset(self) -> None:
        self.table.clear()
        self._everything = True

    def look_around(self) -> None:
        self._changed.set()

    def _follow(
        self, informer: Informer[T], put: Callable[[T], Touched], remove: Callable[[str, str], Touched]
    ) -> Informer[T]:
        def changed(key: Key, old: T | None, new: T | None) -> None:
            self._touch(put(new) if new is not None else remove(*split_key(key)))

        return self.watch(informer, changed)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        touched = self.table.put_pod(new) if new is not None else self.table.remove_pod(key)
        if touched:  # nearly all Pods have no host ports
            self._touch(touched)

    def _touch(self, touched: Touched) -> None:
        self._touched |= touched
        if self.waiting_since is None:
            self.waiting_since = self._clock.monotonic()
        self._changed.set()

    def _put_slice(self, slice: EndpointSlice) -> Touched:
        touched = self.table.put_slice(slice)
        if touched and (cause := slice.metadata.annotations.get(TRIGGER_TIME_ANNOTATION)):
            with suppress(TimeError):
                if (at := parse_time(cause)) > self._began:
                    self._causes.setdefault(slice.metadata.key, at)
        return touched

    def _put_node(self, node: Node) -> Touched:
        this, around = ThisNode.of(node), self.table.surroundings
        pods = this.pod_cidrs if self._pods_of_node else around.cluster_cidrs
        return self.table.put_surroundings(msgspec.structs.replace(around, node=this, cluster_cidrs=pods))

    def _put_range(self, service_cidr: ServiceCIDR) -> Touched:
        self._ranges[service_cidr.metadata.name] = service_cidr.spec.cidrs
        return self._ranges_changed()

    def _remove_range(self, namespace: str, name: str) -> Touched:
        self._ranges.pop(name, None)
        return self._ranges_changed()

    def _ranges_changed(self) -> Touched:
        known = tuple(sorted({cidr for cidrs in self._ranges.values() for cidr in cidrs}))
        return self.table.put_surroundings(msgspec.structs.replace(self.table.surroundings, service_cidrs=known))

    def _tell_what_is_left_out(self, routes: Mapping[str, ServiceRoutes | None]) -> None:
        """Say it once for each Service, and again when it has changed."""
        for key, found in routes.items():
            count = found.left_out if found is not None else 0
            if count != self._left_out.pop(key, 0) and count:
                log.warning("%s has too many addresses, ports and endpoints: %d places are not served", key, count)
            if count:
                self._left_out[key] = count

    async def _carry_out(self) -> None:
        """Have the engine carry out what has changed; until it can, with growing pauses."""
        backoff = Backoff()
        while True:
            self._changed.clear()
            touched, everything = self._touched, self._everything
            causes, self._causes = self._causes, {}
            self._touched, self._everything = set(), False
            began = self._clock.monotonic()
            routes = {key: self.table.routes(key) for key in (self.table if everything else touched)}
            self._tell_what_is_left_out(routes)
            try:
                await self._engine.apply(Update(routes, self.table.surroundings, everything))
            except Unsupported:
                raise
            except Exception as error:
                self._touched |= touched
                self._everything |= everything
                self._causes |= causes
                self.problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
                pause = backoff.next()
                log.exception("the routes could not be carried out; they are tried again in %.1f s", pause)
                await self._clock.sleep(pause)
            else:
                self.problem = None
                self.waiting_since = began if self._touched else None
                now = self._clock.time() if causes else 0.0
                for at in causes.values():
                    self._delays.observe(max(0.0, now - at))
                return
