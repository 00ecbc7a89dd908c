"""The life of a Pod on a simulated node: what its status should be now, and when to look again.  Pure.

    Pending ──start-after──▶ Running ──ready-after──▶ Ready ◀──flap──▶ not ready
                               │  ▲
               fail-after or   │  │ back-off, unless it is not to be restarted
              complete-after   ▼  │
                             ended ──▶ Succeeded or Failed

    deleted ──stop-after, within the grace period──▶ Succeeded or Failed ──▶ removed

All containers of a Pod go through this together.  Everything is read back from the status, so a simulation that is
started anew goes on where the last one was; only :class:`Moments` remembers times more exactly than a status can, which
has whole seconds.
"""

from __future__ import annotations

from functools import partial

import msgspec
from msgspec.structs import replace

from seamark.kinds.values import times
from seamark.nodes.simulated import containers, pod_conditions
from seamark.nodes.simulated.containers import Ending
from seamark.nodes.simulated.orders import NO_ORDERS, Orders
from seamark.rules.objects.pod import Container, ContainerStatus, Pod, PodIP, PodStatus

KILLED = 137
_HAIR = 1e-5  # seconds since the epoch are no finer than a quarter of a microsecond: a turn is due a little early
FORGET_CRASHES_AFTER = 600.0  # whoever ran for so long does not count as crashing over and over


class Place(msgspec.Struct, frozen=True):
    """Where a Pod is: its node's addresses and its own; None while there is none to be had."""

    host_ips: tuple[str, ...]
    pod_ips: tuple[str, ...] | None


class Rules(msgspec.Struct, frozen=True):
    """What holds for all Pods alike."""

    stop_after: float = 0.1
    backoff: float = 10.0
    backoff_cap: float = 300.0


USUAL = Rules()


class Moments(msgspec.Struct, frozen=True):
    """When things happened to a Pod, in seconds since the epoch."""

    accepted: float
    started: float = 0.0  # the last start of its containers
    finished: float = 0.0  # their last end
    stopping: float | None = None  # when it was asked to go
    crashes: int = 0  # how many times in a row it has been started again


class Note(msgspec.Struct, frozen=True):
    """Something worth an Event."""

    reason: str
    message: str


class Step(msgspec.Struct, frozen=True):
    """What should be: the status, whether the Pod is to be removed, and when there is something to do again."""

    status: PodStatus
    moments: Moments
    again: float | None = None
    remove: bool = False
    notes: tuple[Note, ...] = ()


def recover(pod: Pod, now: float) -> Moments:
    """The moments of a Pod that somebody else has taken care of until now, as exactly as its status has them."""
    status = pod.status
    accepted = _time(status.start_time, now)
    started, finished, crashes = accepted, now, 0
    for container in status.container_statuses:
        crashes = max(crashes, container.restart_count)
        if (current := container.state.running) is not None:
            started = max(started, _time(current.started_at, now))
        elif (ended := (container.state.terminated or container.last_state.terminated)) is not None:
            finished = min(finished, _time(ended.finished_at, now))
    stopping = None
    if pod.metadata.deletion_timestamp:
        grace = pod.metadata.deletion_grace_period_seconds or 0
        stopping = min(now, _time(pod.metadata.deletion_timestamp, now) - grace)
    return Moments(accepted, started, finished, stopping, crashes)


def next_status(
    pod: Pod, *, now: float, place: Place, moments: Moments, orders: Orders = NO_ORDERS, rules: Rules = USUAL
) -> Step:
    """What becomes of the Pod now."""
    if pod.terminating:
        return _stop(pod, now, moments, orders, rules)
    if pod.finished:
        return Step(pod.status, moments)
    return _Life(pod, now, place, moments, orders, rules).step()


class _Life:
    """One look at a Pod that is to run."""

    def __init__(self, pod: Pod, now: float, place: Place, moments: Moments, orders: Orders, rules: Rules) -> None:
        self.pod, self.now, self.place, self.moments, self.orders, self.rules = pod, now, place, moments, orders, rules
        self.text = times.text(now)
        self.statuses = pod.status.container_statuses
        self.notes: tuple[Note, ...] = ()

    def step(self) -> Step:
        if all(containers.never_ran(status) for status in self.statuses):
            due = self.moments.accepted + self.orders.start_after
            if self.now < due or self.place.pod_ips is None:
                return self._pending(due)
            self._start()
        while True:
            if any(status.state.running is not None for status in self.statuses):
                ending = self._ending()
                if ending is None or self.now < ending[0]:
                    return self._running(None if ending is None else ending[0])
                self._end(ending[1])
            if self._over():
                return self._finished()
            delay = self._delay()
            due = self.moments.finished + delay
            if self.now < due:
                return self._backing_off(due, delay)
            self.moments = replace(self.moments, crashes=self.moments.crashes + 1)
            self._start()

    # --- what happens ------------------------------------------------------------------------------

    def _start(self) -> None:
        self._change(lambda container, status: containers.start(self.pod, container, status, now=self.text))
        self.moments = replace(self.moments, started=self.now)

    def _end(self, exit_code: int) -> None:
        ending = Ending(exit_code, self.text)
        self._change(lambda _, status: containers.end(status, ending))
        if self.now - self.moments.started >= FORGET_CRASHES_AFTER:
            self.moments = replace(self.moments, crashes=0)
        self.moments = replace(self.moments, finished=self.now)

    def _change(self, change: containers.Change) -> None:
        self.statuses = containers.changed(self.pod.spec.containers, self.statuses, change)

    def _ending(self) -> tuple[float, int] | None:
        """When the containers will end by themselves, and how."""
        orders, started = self.orders, self.moments.started
        endings = [
            (started + after, code)
            for after, code in ((orders.fail_after, orders.exit_code), (orders.complete_after, 0))
            if after is not None
        ]
        return min(endings, default=None)

    def _over(self) -> bool:
        """Whether containers that have ended stay so."""
        policy = self.pod.spec.restart_policy
        return policy == "Never" or (policy == "OnFailure" and not self._failed())

    def _failed(self) -> bool:
        return containers.any_failed(self.statuses) or any(s.state.waiting is not None for s in self.statuses)

    def _delay(self) -> float:
        """The first restart comes at once, the next ones later and later."""
        crashes = self.moments.crashes
        if crashes == 0:
            return 0.0
        return float(min(self.rules.backoff_cap, self.rules.backoff * 2.0 ** min(crashes - 1, 32)))

    # --- what it looks like ------------------------------------------------------------------------

    def _pending(self, due: float) -> Step:
        if self.place.pod_ips is None and self.now >= due:
            self.notes = (Note("FailedCreatePodSandBox", "no address is free in the node's Pod range"),)
        reason = "PodInitializing" if self.pod.spec.init_containers else "ContainerCreating"
        self._change(lambda _, status: containers.wait(status, reason))
        initial = containers.changed(
            self.pod.spec.init_containers, (), lambda _, status: containers.wait(status, "PodInitializing")
        )
        status = self._status("Pending", pod_conditions.before_start(self.pod), initial=initial, addresses=())
        return Step(status, self.moments, due if self.now < due else None, notes=self.notes)

    def _running(self, ends: float | None) -> Step:
        ready, turns = self._readiness()
        self._change(partial(_still_running, self.pod, now=self.text, ready=ready))
        status = self._status("Running", pod_conditions.running(self.pod, ready=ready), initial=self._initialized())
        again = [moment for moment in (ends, turns) if moment is not None]
        return Step(status, self.moments, min(again, default=None), notes=self.notes)

    def _readiness(self) -> tuple[bool, float | None]:
        """Whether the containers are ready, and when that changes by itself."""
        orders = self.orders
        if orders.never_ready:
            return False, None
        since = self.moments.started + orders.ready_after
        if self.now < since:
            return False, since
        if orders.flap is None:
            return True, None
        turns = int((self.now - since + _HAIR) / orders.flap)
        return turns % 2 == 0, since + (turns + 1) * orders.flap

    def _backing_off(self, due: float, delay: float) -> Step:
        pod, names = self.pod, [status.name for status in self.statuses if status.state.terminated is not None]
        self._change(lambda _, status: containers.back_off(pod, status, delay=delay))
        if names:
            where = f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"
            self.notes = tuple(
                Note("BackOff", f"Back-off restarting failed container {name} in pod {where}") for name in names
            )
        status = self._status("Running", pod_conditions.backing_off(pod), initial=self._initialized())
        return Step(status, self.moments, due, notes=self.notes)

    def _finished(self) -> Step:
        phase = "Failed" if self._failed() else "Succeeded"
        ending = Ending(0, self.text)
        initial = tuple(containers.end(status, ending) for status in self._initialized())
        return Step(self._status(phase, pod_conditions.ended(phase), initial=initial), self.moments, notes=self.notes)

    def _initialized(self) -> tuple[ContainerStatus, ...]:
        """Init containers are done; those that restart for ever (sidecars) run beside the others."""
        return containers.changed(
            self.pod.spec.init_containers,
            self.pod.status.init_container_statuses,
            partial(_initialized, self.pod, now=self.text),
        )

    def _status(
        self,
        phase: str,
        findings: tuple[pod_conditions.Finding, ...],
        *,
        initial: tuple[ContainerStatus, ...],
        addresses: tuple[str, ...] | None = None,
    ) -> PodStatus:
        given = (self.place.pod_ips or ()) if addresses is None else addresses
        was, host = self.pod.status, self.place.host_ips
        extra = was.ephemeral_container_statuses
        if self.pod.spec.ephemeral_containers and phase == "Running":
            extra = containers.changed(
                self.pod.spec.ephemeral_containers, extra, partial(_ephemeral, self.pod, now=self.text)
            )
        return replace(
            was,
            phase=phase,
            observed_generation=self.pod.metadata.generation,
            conditions=pod_conditions.apply(self.pod, findings, self.text),
            host_ip=host[0] if host else "",
            host_ips=tuple(PodIP(ip) for ip in host),
            pod_ip=given[0] if given else "",
            pod_ips=tuple(PodIP(ip) for ip in given),
            start_time=was.start_time or times.text(self.moments.accepted),
            init_container_statuses=initial,
            container_statuses=self.statuses,
            ephemeral_container_statuses=extra,
        )


def _still_running(
    pod: Pod, container: Container, status: ContainerStatus, *, now: str, ready: bool
) -> ContainerStatus:
    if status.state.running is None:
        status = containers.start(pod, container, status, now=now)
    return containers.with_readiness(containers.update_image(pod, container, status, now=now), ready=ready)


def _initialized(pod: Pod, container: Container, status: ContainerStatus, *, now: str) -> ContainerStatus:
    if not container.sidecar:
        return containers.complete(pod, container, status, now=now)
    return _still_running(pod, container, status, now=now, ready=True)


def _ephemeral(pod: Pod, container: Container, status: ContainerStatus, *, now: str) -> ContainerStatus:
    if containers.never_ran(status):
        return replace(containers.start(pod, container, status, now=now), started=None)
    return status


# --- the end -----------------------------------------------------------------------------------------


def _stop(pod: Pod, now: float, moments: Moments, orders: Orders, rules: Rules) -> Step:
    """A Pod that was asked to go: its processes take their time, but no longer than the grace period."""
    if moments.stopping is None:
        moments = replace(moments, stopping=now)
    assert moments.stopping is not None
    # Once the period is 0, nothing keeps the object but finalizers, which are others' business.
    remove = pod.metadata.deletion_grace_period_seconds != 0
    statuses = pod.status.container_statuses
    if pod.finished or all(containers.never_ran(status) for status in statuses):
        return Step(pod.status, moments, remove=remove)
    grace = pod.metadata.deletion_grace_period_seconds or 0
    # A second deletion may be more impatient; its period begins with it, which only the timestamp knows of.
    deadline = max(moments.stopping + grace, _time(pod.metadata.deletion_timestamp, now)) if grace else now
    wanted = rules.stop_after if orders.stop_after is None else orders.stop_after
    due = min(moments.stopping + wanted, deadline)
    if now < due and any(status.state.running is not None for status in statuses):
        return Step(pod.status, moments, due)
    ending = Ending(KILLED if moments.stopping + wanted > deadline else 0, times.text(now))
    ended = tuple(containers.end(status, ending) for status in statuses)
    phase = "Failed" if containers.any_failed(ended) else "Succeeded"
    status = replace(
        pod.status,
        phase=phase,
        observed_generation=pod.metadata.generation,
        conditions=pod_conditions.apply(pod, pod_conditions.ended(phase), ending.at),
        init_container_statuses=tuple(containers.end(status, ending) for status in pod.status.init_container_statuses),
        container_statuses=ended,
        ephemeral_container_statuses=tuple(
            containers.end(status, ending) for status in pod.status.ephemeral_container_statuses
        ),
    )
    return Step(status, moments, remove=remove)


def _time(text: str | None, otherwise: float) -> float:
    if not text:
        return otherwise
    try:
        return times.parse(text)
    except times.TimeError:
        return otherwise
