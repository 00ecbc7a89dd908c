"""The probes controller: checks the members of annotated EndpointSlices or Endpoints and writes which are ready.

The members of an object are checked in rounds, all at once but no more than ``concurrency`` checks in the process.
A round ends in one patch if anything changed, and in none otherwise.  A member that is new is checked without waiting
for the next round.  What is counted lives in memory only: after a restart the object itself says where things stand.
"""

from __future__ import annotations

import asyncio
import random as _random
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Literal, TypeVar

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.correlation import Reference
from seamark.access.informer import Informer
from seamark.controllers.probes.checks import check, impossible
from seamark.controllers.settings import ProbeSettings
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, Resource
from seamark.rules import probing
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.probing import Health, Probe, Result, Target
from seamark.runtime.controller import Again, Controller
from seamark.runtime.ledger import Ledger
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "probes"
# A member that stays unhealthy is reported again so often, because Events expire.
REMIND_SECONDS = 600.0
# Rounds begin up to this part of the interval earlier or later, so that those of many objects spread out.
JITTER = 0.05
# So many objects may be in a round at once; the number of checks is limited by itself.
ROUNDS = 1000

Check = Callable[[Probe, Target], Coroutine[Any, Any, Result]]
T = TypeVar("T", EndpointSlice, Endpoints)


class Round(msgspec.Struct):
    """What is known of one object: the health of its members, when the next round is, and what Events said."""

    probe: Probe
    health: dict[Target, Health] = {}
    due: float = 0.0
    reported: dict[Target, float] = {}


def add_probes(
    manager: Manager,
    cluster: Cluster,
    settings: ProbeSettings,
    *,
    check: Check = check,
    random: Callable[[], float] = _random.random,
) -> None:
    """Add the controllers of both kinds to the manager; they share the limit of checks."""
    slots = asyncio.Semaphore(settings.concurrency)

    async def limited(probe: Probe, target: Target) -> Result:
        async with slots:
            return await check(probe, target)

    informers = manager.informers
    slices = informers.of(ENDPOINT_SLICES, as_=EndpointSlice)
    endpoints = informers.of(ENDPOINTS, as_=Endpoints)
    for controller in (
        ProbesController(manager, cluster, ENDPOINT_SLICES, slices, settings, check=limited, random=random),
        ProbesController(manager, cluster, ENDPOINTS, endpoints, settings, check=limited, random=random),
    ):
        manager.add(controller)


class ProbesController(Controller, Generic[T]):
    """Checks the members of the annotated objects of one kind."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        resource: Resource,
        objects: Informer[T],
        settings: ProbeSettings,
        *,
        check: Check,
        random: Callable[[], float],
    ) -> None:
        super().__init__(f"{NAME}-{resource.plural}", manager, workers=ROUNDS)
        self._cluster = cluster
        self._resource = resource
        self._settings = settings
        self._check = check
        self._random = random
        self._clock = manager.clock
        self._recorder = manager.recorder(cluster, "seamark-probes")
        self._objects: Informer[T] = self.watch(objects, self._changed)
        self._ledger: Ledger[T] = Ledger(objects, clock=manager.clock)
        self._rounds: dict[Key, Round] = {}
        self._complained: dict[Key, tuple[str, ...]] = {}

    def _changed(self, key: Key, old: T | None, new: T | None) -> None:
        if key in self._rounds or key in self._complained or (new is not None and _annotated(new)):
            self.queue.add(key)

    # --- one object --------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        obj = self._objects.by_key(key)
        probe = self._probe(key, obj)
        if obj is None or probe is None:
            self._rounds.pop(key, None)
            self._ledger.forget(key)
            return
        known = self._rounds.setdefault(key, Round(probe))
        known.probe = probe
        await self._round(obj, known)
        await self._write(key, known)
        raise Again(max(0.0, known.due - self._clock.monotonic()))

    def _probe(self, key: Key, obj: T | None) -> Probe | None:
        """How to check the object; None if it is not to be checked.  An Event says what is wrong, once."""
        probe: Probe | None = None
        complaints: tuple[str, ...] = ()
        if obj is not None and _annotated(obj):
            probe, complaints = probing.parse(obj.metadata.annotations)
            if probe is not None:
                reason = impossible(probe, commands=self._settings.commands)
                complaints = (reason,) if reason else probing.members(probe, obj)[1]
                probe = None if reason else probe
        if obj is not None and complaints != self._complained.get(key, ()):
            for complaint in complaints:
                self._record(obj, "Warning", probing.INVALID, complaint)
        if complaints:
            self._complained[key] = complaints
        else:
            self._complained.pop(key, None)
        return probe

    async def _round(self, obj: T, known: Round) -> None:
        """Check the members that are due and count the results."""
        probe, now = known.probe, self._clock.monotonic()
        members, _ = probing.members(probe, obj)
        due = list(members) if now >= known.due else [target for target in members if target not in known.health]
        known.health = {target: known.health.get(target, Health(said)) for target, said in members.items()}
        known.reported = {target: at for target, at in known.reported.items() if target in members}
        if now >= known.due:
            known.due = now + probe.interval * (1 + JITTER * (2 * self._random() - 1))
        async with asyncio.TaskGroup() as checking:
            checks = {target: checking.create_task(self._check(probe, target)) for target in due}
        for target, done in checks.items():
            self._count(obj, known, target, done.result())

    def _count(self, obj: T, known: Round, target: Target, result: Result) -> None:
        before = known.health[target]
        after = known.health[target] = before.after(result.healthy, known.probe)
        now = self._clock.monotonic()
        if after.healthy is False and not result.healthy:
            if before.healthy is not False or now - known.reported.get(target, -REMIND_SECONDS) >= REMIND_SECONDS:
                known.reported[target] = now
                self._record(obj, "Warning", probing.UNHEALTHY, f"{target} is not ready: {result.said}")
        elif after.healthy and before.healthy is False:
            known.reported.pop(target, None)
            self._record(obj, "Normal", probing.HEALTHY, f"{target} is ready again: {result.said}")

    async def _write(self, key: Key, known: Round) -> None:
        """Write what the object says wrongly, if the informer shows our last write; its event comes back here."""
        obj = self._objects.by_key(key)
        if obj is None or not self._ledger.caught_up(key):
            return
        healthy = {target: health.healthy for target, health in known.health.items() if health.healthy is not None}
        patch = probing.changes(known.probe, obj, healthy)
        if not patch:
            return
        meta = obj.metadata
        try:
            written = await self._cluster.patch(
                self._resource, meta.name, patch, namespace=meta.namespace, type="json", as_=Receipt
            )
        except (errors.Conflict, errors.NotFound):
            return  # it has just changed, as the informer will show
        self._ledger.wrote(key, written.version)

    def _record(self, obj: T, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        self._recorder.record(Reference.of(self._resource, obj.metadata), type, reason=reason, message=message)


def _annotated(obj: EndpointSlice | Endpoints) -> bool:
    return probing.PROBE_ANNOTATION in obj.metadata.annotations and probing.hand_made(obj)
