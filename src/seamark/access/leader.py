"""Leader election on a Lease: one of several processes does the work, and another takes over when it stops.

The record is client-go's, so that Seamark's processes and Go's can compete for one Lease.  Clocks of different machines
are never compared: a candidate takes over when it has not seen the record change for the lease's duration, measured by
its own clock.  A leader stops working when it could not renew for ``renew_deadline`` seconds, which is shorter than
that duration, so that two leaders never work at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random as _random
from collections.abc import Awaitable, Callable

import msgspec

from seamark.access.backoff import Random
from seamark.access.cluster import Cluster
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.errors import ApiError, Conflict, NotFound, Object
from seamark.kinds.resource import LEASES
from seamark.kinds.values.times import micro_text

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]

# A candidate waits up to this many retry periods longer, at random, so that two candidates do not always collide.
_JITTER = 1.2

# How long releasing the lease may take at shutdown; if it fails, the next leader waits until the lease expires.
_RELEASE_SECONDS = 5.0


class Timing(msgspec.Struct, frozen=True):
    """All in seconds.

    Others wait ``duration`` before they take over; the leader stops after ``renew_deadline`` without a renewal; both
    leader and candidates try every ``retry_period``.
    """

    duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.retry_period * _JITTER < self.renew_deadline < self.duration:
            raise ValueError(
                f"leader election needs {_JITTER} * retry_period < renew_deadline < duration, "
                f"not {self.retry_period}, {self.renew_deadline} and {self.duration}"
            )


class LeaderElection:
    """One process's candidacy for one Lease."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespace: str,
        name: str,
        identity: str,
        timing: Timing | None = None,
        on_new_leader: Callable[[str], None] = lambda leader: None,
        clock: Clock = SYSTEM_CLOCK,
        random: Random = _random.random,
    ) -> None:
        if not identity:
            raise ValueError("leader election needs an identity that no other process has")
        self.identity = identity
        self.leader = ""  # the lease's holder when it was last read
        self.leading = False
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._timing = timing or Timing()
        self._on_new_leader = on_new_leader
        self._clock = clock
        self._random = random
        self._lease: Object | None = None
        self._seen_at = 0.0

    async def run(self, work: Work) -> None:
        """Run ``work`` while this process is the leader; return when ``work`` returns.

        If the lease is lost, ``work`` is cancelled, and started anew once the lease is held again.  When this method is
        cancelled or ``work`` ends, the lease is released, so that another process can take it at once.
        """
        while True:
            await self._acquire()
            log.info("%s leads %s/%s", self.identity, self._namespace, self._name)
            try:
                if await self._lead(work):
                    return
            finally:
                if self.leading:
                    await self._release()
            log.warning("%s no longer leads %s/%s", self.identity, self._namespace, self._name)

    async def _acquire(self) -> None:
        while not await self._attempt():
            await self._clock.sleep(self._timing.retry_period * (1 + _JITTER * self._random()))
        self.leading = True

    async def _lead(self, work: Work) -> bool:
        """Run ``work`` and renew the lease; True when ``work`` is done, False when the lease is lost."""
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._renew(), name=f"renewing {self._name}")
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
                return True
            await renewing
            return False
        finally:
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)

    async def _renew(self) -> None:
        """Renew the lease; returns when it is lost."""
        timing = self._timing
        renewed = self._clock.monotonic()
        while True:
            deadline = renewed + timing.renew_deadline
            await self._clock.sleep(min(timing.retry_period, max(0.0, deadline - self._clock.monotonic())))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, deadline - self._clock.monotonic())):
                    if await self._attempt():
                        renewed = self._clock.monotonic()
                        continue
            if self.leader != self.identity or self._clock.monotonic() >= deadline:
                self.leading = False
                return

    # --- the lease ---------------------------------------------------------------------------------

    async def _attempt(self) -> bool:
        """Try once to take or renew the lease; returns whether this process holds it now."""
        try:
            if self.leading and self._lease is not None:
                # No other process should have written it meanwhile, so try without reading it first.
                with contextlib.suppress(ApiError):
                    return self._observe(await self._write(self._lease))
            try:
                lease = await self._cluster.get(LEASES, self._name, namespace=self._namespace)
            except NotFound:
                return self._observe(await self._create())
            self._observe(lease)
            if self._held_by_another():
                return False
            return self._observe(await self._write(lease))
        except ApiError as error:
            # A conflict is normal when two candidates race; other errors are worth a warning.
            level = logging.DEBUG if error.code == 409 else logging.WARNING
            log.log(level, "cannot take or renew lease %s/%s: %s", self._namespace, self._name, error)
            return False

    def _held_by_another(self) -> bool:
        spec = _spec(self._lease)
        holder = spec.get("holderIdentity") or ""
        if not holder or holder == self.identity:
            return False
        return self._clock.monotonic() < self._seen_at + (spec.get("leaseDurationSeconds") or 0)

    def _observe(self, lease: Object) -> bool:
        """Remember the lease, and when it last changed; returns whether this process holds it."""
        if _spec(lease) != _spec(self._lease):
            self._seen_at = self._clock.monotonic()
        self._lease = lease
        leader = _spec(lease).get("holderIdentity") or ""
        if leader != self.leader:
            self.leader = leader
            if leader:
                self._on_new_leader(leader)
        return leader == self.identity

    async def _create(self) -> Object:
        now = micro_text(self._clock.time())
        return await self._cluster.create(
            LEASES,
            {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": self._name, "namespace": self._namespace},
                "spec": {
                    "holderIdentity": self.identity,
                    "leaseDurationSeconds": self._timing.duration,
                    "acquireTime": now,
                    "renewTime": now,
                    "leaseTransitions": 0,
                },
            },
            namespace=self._namespace,
        )

    async def _write(self, lease: Object) -> Object:
        """Take or renew the lease; raises a conflict if another process wrote it since it was read."""
        now = micro_text(self._clock.time())
        before = _spec(lease)
        spec = {**before, "leaseDurationSeconds": self._timing.duration, "renewTime": now}
        if before.get("holderIdentity") != self.identity:
            transitions = (before.get("leaseTransitions") or 0) + 1
            spec.update(holderIdentity=self.identity, acquireTime=now, leaseTransitions=transitions)
        return await self._cluster.update(LEASES, {**lease, "spec": spec}, namespace=self._namespace)

    async def _release(self) -> None:
        """Release the lease, so that the next leader need not wait until it expires."""
        self.leading = False
        lease = self._lease
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                while lease is not None and _spec(lease).get("holderIdentity") == self.identity:
                    lease = await self._released(lease)
        except (ApiError, TimeoutError) as error:
            log.warning("cannot release lease %s/%s: %s", self._namespace, self._name, error or "no answer")
            return
        if lease is not None:
            self._observe(lease)

    async def _released(self, lease: Object) -> Object:
        """Write the lease without a holder; returns it as it is now, if it was written since it was read."""
        now = micro_text(self._clock.time())
        # One second, because a duration of zero would be invalid.
        spec = {**_spec(lease), "holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
        try:
            return await self._cluster.update(LEASES, {**lease, "spec": spec}, namespace=self._namespace)
        except Conflict:
            # The server wrote our last renewal, but we were cancelled before its answer came.
            return await self._cluster.get(LEASES, self._name, namespace=self._namespace)


def _spec(lease: Object | None) -> Object:
    return (lease or {}).get("spec") or {}
