"""Shares the informers of one process among their readers."""

from __future__ import annotations

import asyncio
import random as _random
from typing import Any, TypeVar, overload

from seamark.access.backoff import Random
from seamark.access.cluster import Cluster
from seamark.access.informer import Informer, Key
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.errors import Object
from seamark.kinds.resource import Resource
from seamark.metrics import Registry

T = TypeVar("T")

UNDECODABLE = "seamark_undecodable_objects"


class Informers:
    """The informers of one process: readers that ask for the same view of the same objects share one."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        clock: Clock = SYSTEM_CLOCK,
        random: Random = _random.random,
        metrics: Registry | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._metrics = metrics or Registry()
        self._random = random
        self._informers: dict[tuple[Resource, str, str, str, type], Informer[Any]] = {}
        self._tasks: dict[Informer[Any], asyncio.Task[None]] = {}  # of the informers that run
        self._group: asyncio.TaskGroup | None = None

    @overload
    def of(
        self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Informer[Object]: ...
    @overload
    def of(
        self, resource: Resource, *, as_: type[T], namespace: str = "", labels: str = "", fields: str = ""
    ) -> Informer[T]: ...
    def of(
        self, resource: Resource, *, as_: type[Any] = dict, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Informer[Any]:
        """The informer of exactly this view; it starts at once if ``run`` is already running."""
        question = (resource, namespace, labels, fields, as_)
        informer = self._informers.get(question)
        if informer is None:
            informer = self._informers[question] = Informer(
                self._cluster,
                resource,
                as_=as_,
                namespace=namespace,
                labels=labels,
                fields=fields,
                clock=self._clock,
                random=self._random,
            )
            self._metrics.measured(
                UNDECODABLE,
                "Objects of the API server that readers in this process cannot decode, so that they are left out.",
                lambda: float(len(self.unreadable(resource))),
                resource.qualified,
                labels=("resource",),
            )
            if self._group is not None:
                self._start(informer)
        return informer

    def in_any_view(self, resource: Resource, base: type[T], otherwise: type[Any]) -> Informer[Any]:
        """The informer of all objects of a resource in a view that another reader asked for before.

        The view is a subclass of ``base``; if no reader asked for one, it is ``otherwise``.
        """
        for (of, namespace, labels, fields, as_), informer in self._informers.items():
            if of == resource and not (namespace or labels or fields) and issubclass(as_, base):
                return informer
        return self.of(resource, as_=otherwise)

    def forget(self, resource: Resource) -> None:
        """Stop all informers of a resource that the server no longer has; tasks that wait for their sync continue."""
        for question, informer in list(self._informers.items()):
            if informer.resource == resource:
                del self._informers[question]
                if (task := self._tasks.pop(informer, None)) is not None:
                    task.cancel()
                informer.synced.set()
                informer.clear()
                if all(each.resource.qualified != resource.qualified for each in self._informers.values()):
                    self._metrics.forget(UNDECODABLE, resource.qualified)

    @property
    def running(self) -> bool:
        return self._group is not None

    @property
    def problem(self) -> str | None:
        """Why one of them cannot follow the server; None if all can."""
        for informer in self._informers.values():
            if informer.last_error is not None:
                return f"{informer.resource.qualified}: {informer.last_error}"
        return None

    @property
    def connected(self) -> bool:
        """Whether every informer is connected."""
        return all(informer.connected for informer in self._informers.values())

    @property
    def lag(self) -> float:
        """The longest time that one of them has been disconnected."""
        return max((informer.lag for informer in self._informers.values()), default=0.0)

    def unreadable(self, resource: Resource) -> set[Key]:
        """The objects of a resource that some of its informers cannot decode."""
        return {key for each in self._informers.values() if each.resource == resource for key in each.unreadable}

    async def synced(self) -> None:
        """Return once all informers requested so far have listed their objects."""
        for informer in list(self._informers.values()):
            await informer.synced.wait()

    async def run(self) -> None:
        """Run all informers until cancelled, including those requested later."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for informer in self._informers.values():
                    self._start(informer)
                await asyncio.Event().wait()
        finally:
            self._group = None
            self._tasks.clear()

    def _start(self, informer: Informer[Any]) -> None:
        assert self._group is not None
        name = f"informer of {informer.resource.qualified}"
        self._tasks[informer] = self._group.create_task(informer.run(), name=name)
