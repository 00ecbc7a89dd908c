"""Follows a cluster and has an engine carry out the routes that follow from it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec

from seamark.access.backoff import Backoff
from seamark.access.informer import Informer, Key, split_key
from seamark.access.informers import Informers
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.kinds.resource import ENDPOINT_SLICES, NODES, SERVICES
from seamark.metrics import Registry
from seamark.proxy.engine import Engine, Update
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.service import Service
from seamark.rules.routing.surroundings import Surroundings, ThisNode
from seamark.rules.routing.table import RouteTable, Touched
from seamark.runtime.following import Derived, Following

log = logging.getLogger(__name__)

T = TypeVar("T")


class RouteFeed(Derived):
    """Keeps an engine in step with a cluster's Services and EndpointSlices, seen from one node.

    Needs permission to list and watch Services and EndpointSlices and, if ``surroundings`` name a node, that Node.
    While the API server is away, the engine goes on with what is known.
    """

    def __init__(
        self,
        informers: Informers,
        engine: Engine,
        surroundings: Surroundings,
        *,
        clock: Clock = SYSTEM_CLOCK,
        metrics: Registry | None = None,
    ) -> None:
        super().__init__("proxy")
        self.table = RouteTable(surroundings)
        self.problem: str | None = None  # why the last update could not be carried out
        self._engine = engine
        self._clock = clock
        self._following = Following(self, clock=clock, metrics=metrics)
        self._touched: Touched = set()
        self._changed = asyncio.Event()
        self._everything = True
        table = self.table
        self._follow(informers.of(SERVICES, as_=Service), table.put_service, table.remove_service)
        self._follow(informers.of(ENDPOINT_SLICES, as_=EndpointSlice), table.put_slice, table.remove_slice)
        if name := surroundings.node.name:
            node = informers.of(NODES, as_=Node, fields=f"metadata.name={name}")
            self._follow(node, self._put_node, lambda *_: set())

    async def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Carry out changes until cancelled; ``started`` is called once everything there is has been carried out."""
        self._following.connect()
        try:
            await self._following.synced()
            await self._engine.start()
            try:
                await self._carry_out()
                started()
                while True:
                    await self._changed.wait()
                    await self._carry_out()
            finally:
                await self._engine.close()
        finally:
            self._following.close()

    def reset(self) -> None:
        self.table.clear()
        self._everything = True

    def look_around(self) -> None:
        self._changed.set()

    def _follow(
        self, informer: Informer[T], put: Callable[[T], Touched], remove: Callable[[str, str], Touched]
    ) -> None:
        def changed(key: Key, old: T | None, new: T | None) -> None:
            self._touched |= put(new) if new is not None else remove(*split_key(key))
            self._changed.set()

        self.watch(informer, changed)

    def _put_node(self, node: Node) -> Touched:
        return self.table.put_surroundings(msgspec.structs.replace(self.table.surroundings, node=ThisNode.of(node)))

    async def _carry_out(self) -> None:
        """Have the engine carry out what has changed; until it can, with growing pauses."""
        backoff = Backoff()
        while True:
            self._changed.clear()
            touched, everything = self._touched, self._everything
            self._touched, self._everything = set(), False
            routes = {key: self.table.routes(key) for key in (self.table if everything else touched)}
            try:
                await self._engine.apply(Update(routes, self.table.surroundings, everything))
            except Exception as error:
                self._touched |= touched
                self._everything |= everything
                self.problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
                pause = backoff.next()
                log.exception("the routes could not be carried out; they are tried again in %.1f s", pause)
                await self._clock.sleep(pause)
            else:
                self.problem = None
                return
