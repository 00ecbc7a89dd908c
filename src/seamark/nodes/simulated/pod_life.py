"""The life of a Pod on a simulated node: what its status should be now, and when to look again.  Pure.

    Pending ──start-after──▶ Running ──ready-after──▶ Ready ◀──flap──▶ not ready
                               │  ▲
               fail-after or   │  │ back-off, unless the restart policy forbids it
              complete-after   ▼  │
                             ended ──▶ Succeeded or Failed

    activeDeadlineSeconds after it came to its node ──▶ Failed

    deleted ──stop-after, within the grace period──▶ Succeeded or Failed ──▶ removed

A Pod one of whose images cannot be pulled stays pending.  Its init containers run one after the other before the others
start; most are done at once, and one whose command fails is started again, or fails the Pod.  The other containers of a
Pod go through all this together.  The state
is read from the Pod's status, so a restarted simulation continues where the last one stopped.  :class:`Moments` only
adds precision, because a status has whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import partial
from math import inf

import msgspec
from msgspec.structs import replace

from seamark.clock import doubling
from seamark.kinds.values import times
from seamark.kinds.wellknown import FINISHED_PHASES
from seamark.nodes import pod_conditions
from seamark.nodes.simulated import commands, containers
from seamark.nodes.simulated.containers import Ending
from seamark.nodes.simulated.orders import NO_ORDERS, Orders
from seamark.rules.objects.pod import Container, ContainerStatus, Pod, PodIP, PodStatus, ProbeTimes

KILLED = 137
TERMINATED = 143
_HAIR = 1e-5  # seconds: a flap is due this much early, because floats since the epoch are not exact
PULL_SECONDS = 1.0  # after which a kubelet pauses before it tries again to pull a missing image
FAIL_AFTER = 1.0  # seconds that a container with a failing image runs at most
FORGET_CRASHES_AFTER = 600.0  # after running for so many seconds, earlier crashes no longer count


class PodAddresses(msgspec.Struct, frozen=True):
    """The addresses of the Pod's node and of the Pod itself; the latter None while none is free."""

    host_ips: tuple[str, ...]
    pod_ips: tuple[str, ...] | None


class Rules(msgspec.Struct, frozen=True):
    """The settings for all Pods."""

    stop_after: float = 0.1
    backoff: float = 10.0
    backoff_cap: float = 300.0
    complete_after: float = 1.0  # of Pods that are not started again when they have ended well; infinite for never
    failing_images: tuple[str, ...] = ()
    missing_images: tuple[str, ...] = ()


USUAL = Rules()


class Moments(msgspec.Struct, frozen=True):
    """When things happened to a Pod, in seconds since the epoch."""

    accepted: float
    started: float = 0.0  # the last start of its containers
    finished: float = 0.0  # their last end
    stopping: float | None = None  # when its deletion was requested
    crashes: int = 0  # how many times in a row it has been started again


class Note(msgspec.Struct, frozen=True):
    """The content of an Event."""

    reason: str
    message: str


class Step(msgspec.Struct, frozen=True):
    """The result: the new status, whether to remove the Pod, and when the next change is due."""

    status: PodStatus
    moments: Moments
    again: float | None = None
    remove: bool = False
    notes: tuple[Note, ...] = ()


def recover(pod: Pod, now: float) -> Moments:
    """The moments of a Pod that another process simulated until now, as precisely as its status has them."""
    status = pod.status
    accepted = _time(status.start_time, now)
    started, finished, crashes = accepted, now, 0
    begun = not all(containers.never_ran(each) for each in status.container_statuses)
    at_work = status.container_statuses if begun else [s for s in status.init_container_statuses if not _ended_well(s)]
    for container in at_work:
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
    pod: Pod, *, now: float, ips: PodAddresses, moments: Moments, orders: Orders = NO_ORDERS, rules: Rules = USUAL
) -> Step:
    """The next status of the Pod."""
    if pod.terminating:
        return _stop(pod, now, moments, orders, rules)
    if pod.finished:
        return Step(pod.status, moments)
    life = _Life(pod, now, ips, moments, orders, rules)
    if pod.spec.active_deadline_seconds is None:
        return life.step()
    deadline = moments.accepted + pod.spec.active_deadline_seconds
    if now >= deadline:
        return life.overdue()
    step = life.step()
    return step if step.status.phase in FINISHED_PHASES else replace(step, again=min(step.again or inf, deadline))


class _Life:
    """Computes the next status of a Pod that should run."""

    def __init__(self, pod: Pod, now: float, ips: PodAddresses, moments: Moments, orders: Orders, rules: Rules) -> None:
        self.pod, self.now, self.ips, self.moments, self.orders, self.rules = pod, now, ips, moments, orders, rules
        self.text = times.text(now)
        self.statuses = pod.status.container_statuses
        self.initial = pod.status.init_container_statuses
        self.notes: tuple[Note, ...] = ()

    def step(self) -> Step:
        if all(containers.never_ran(status) for status in self.statuses):
            due = self.moments.accepted + self.orders.start_after
            if self.now < due or self.ips.pod_ips is None:
                return self._pending(due)
            if missing := self._missing():
                return self._unpulled(missing, due)
            if self.pod.spec.init_containers and (step := self._initialize()) is not None:
                return step
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

    def overdue(self) -> Step:
        """The Pod has been active for longer than ``activeDeadlineSeconds``."""
        ending = Ending(KILLED, self.text)
        self._change(lambda _, status: containers.end(status, ending))
        initial = tuple(containers.end(status, ending) for status in self.pod.status.init_container_statuses)
        status = self._status("Failed", pod_conditions.ended("Failed"), initial=initial)
        message = "Pod was active on the node longer than the specified deadline"
        status = replace(status, reason="DeadlineExceeded", message=message)
        return Step(status, self.moments, notes=(Note("DeadlineExceeded", message),))

    # --- init containers ---------------------------------------------------------------------------

    def _initialize(self) -> Step | None:
        """Run the init containers one after the other; None once all are done."""
        spec = self.pod.spec.init_containers
        ends = [commands.end(each.command, each.args) or (0.0, 0) for each in spec]
        if not any(lasts or code for lasts, code in ends):
            return None  # each is done the moment it starts
        found = list(containers.changed(spec, self.initial, _not_yet))
        for at, (container, (lasts, code)) in enumerate(zip(spec, ends, strict=True)):
            while not _done(container, found[at]):
                if found[at].state.running is not None:
                    due = self.moments.started + lasts
                    if self.now < due:
                        return self._initializing(found, due if due < inf else None)
                    found[at] = replace(containers.end(found[at], Ending(code, self.text)), ready=code == 0)
                    self.moments = replace(self.moments, finished=self.now)
                    continue
                if not containers.never_ran(found[at]):
                    if self.pod.spec.restart_policy == "Never":
                        return self._initializing(found, None, phase="Failed")
                    due = self.moments.finished + self._delay()
                    if self.now < due:
                        return self._initializing(found, due, failed=at)
                    self.moments = replace(self.moments, crashes=self.moments.crashes + 1)
                found[at] = containers.start(self.pod, container, found[at], now=self.text)
                self.moments = replace(self.moments, started=self.now)
        self.initial = tuple(found)
        self.moments = replace(self.moments, crashes=0)
        return None

    def _initializing(
        self, found: list[ContainerStatus], again: float | None, *, phase: str = "Pending", failed: int | None = None
    ) -> Step:
        """The Pod waits for its init containers, of which one may wait to be started again; or has failed by one."""
        if failed is not None:
            if found[failed].state.terminated is not None:
                self.notes = (self._back_off_note(found[failed].name),)
            found[failed] = containers.back_off(self.pod, found[failed], delay=self._delay())
        self._change(lambda _, status: containers.wait(status, "PodInitializing"))
        both = zip(self.pod.spec.init_containers, found, strict=True)
        findings = pod_conditions.initializing(
            self.pod, [each.name for each, status in both if not _done(each, status)]
        )
        return Step(self._status(phase, findings, initial=tuple(found)), self.moments, again, notes=self.notes)

    # --- changes -----------------------------------------------------------------------------------

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
        """When the containers will end by themselves, and with which exit code."""
        orders, started = self.orders, self.moments.started
        endings = [
            (started + after, code)
            for after, code in ((orders.fail_after, orders.exit_code), (orders.complete_after, 0))
            if after is not None
        ]
        usual = self.rules.complete_after
        if any(fnmatchcase(each.image, image) for image in self.rules.failing_images for each in self._containers):
            endings.append((started + min(usual, FAIL_AFTER), orders.exit_code))
        elif not endings and usual < inf:
            if (told := self._told()) is not None:
                endings.append((started + told[0], told[1]))
            elif self.pod.spec.restart_policy != "Always":
                endings.append((started + usual, 0))
        ending = min(endings, default=(inf, 0))
        return ending if ending[0] < inf else None

    def _told(self) -> commands.End | None:
        """How the containers end by their commands: all together, with the last of them; None if one does not tell."""
        ends = [commands.end(each.command, each.args) for each in self.pod.spec.containers]
        told = [end for end in ends if end is not None]
        if len(told) < len(ends) or not told:
            return None
        return max(lasts for lasts, _ in told), max(code for _, code in told)

    @property
    def _containers(self) -> tuple[Container, ...]:
        return self.pod.spec.containers + self.pod.spec.init_containers

    def _over(self) -> bool:
        """Whether containers that have ended are not restarted."""
        policy = self.pod.spec.restart_policy
        return policy == "Never" or (policy == "OnFailure" and not self._failed())

    def _failed(self) -> bool:
        return containers.any_failed(self.statuses) or any(s.state.waiting is not None for s in self.statuses)

    def _delay(self) -> float:
        """The delay of the next restart: none at first, then growing."""
        crashes = self.moments.crashes
        if crashes == 0:
            return 0.0
        return doubling(self.rules.backoff, self.rules.backoff_cap, crashes - 1)

    # --- the status --------------------------------------------------------------------------------

    def _pending(self, due: float) -> Step:
        if self.ips.pod_ips is None and self.now >= due:
            self.notes = (Note("FailedCreatePodSandBox", "no address is free in the node's Pod range"),)
        reason = "PodInitializing" if self.pod.spec.init_containers else "ContainerCreating"
        self._change(lambda _, status: containers.wait(status, reason))
        initial = containers.changed(
            self.pod.spec.init_containers, (), lambda _, status: containers.wait(status, "PodInitializing")
        )
        status = self._status("Pending", pod_conditions.before_start(self.pod), initial=initial, addresses=())
        return Step(status, self.moments, due if self.now < due else None, notes=self.notes)

    def _missing(self) -> dict[str, str]:
        """The images that cannot be pulled, by container."""
        patterns = self.rules.missing_images
        return {each.name: each.image for each in self._containers if any(fnmatchcase(each.image, p) for p in patterns)}

    def _unpulled(self, missing: dict[str, str], due: float) -> Step:
        """The Pod has its address, but containers wait for images that cannot be pulled."""
        pauses = self.now >= due + PULL_SECONDS
        initial = [each.name for each in self.pod.spec.init_containers]
        other = "PodInitializing" if any(name in missing for name in initial) else "ContainerCreating"

        def change(container: Container, status: ContainerStatus) -> ContainerStatus:
            if (image := missing.get(container.name)) is None:
                return containers.wait(status, other)
            error = f'failed to pull and unpack image "{image}": not found'
            message = f'Back-off pulling image "{image}": ErrImagePull: {error}' if pauses else error
            return containers.wait(status, "ImagePullBackOff" if pauses else "ErrImagePull", message)

        self._change(change)
        findings = pod_conditions.backing_off(self.pod)
        waiting = self._initialized()
        if other == "PodInitializing":
            waiting = containers.changed(self.pod.spec.init_containers, (), change)
            findings = (findings[0], *pod_conditions.before_start(self.pod)[1:])
        notes = (
            Note("BackOff", f'Back-off pulling image "{image}"')
            if pauses
            else Note("Failed", f'Failed to pull image "{image}": not found')
            for image in missing.values()
        )
        status = self._status("Pending", findings, initial=waiting)
        again = None if pauses else due + PULL_SECONDS
        return Step(status, self.moments, again, notes=tuple(notes) if status != self.pod.status else ())

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
        since = self.moments.started + max(orders.ready_after, probed_after(self.pod.spec.containers))
        if self.now < since:
            return False, since if since < inf else None
        if orders.flap is None:
            return True, None
        turns = int((self.now - since + _HAIR) / orders.flap)
        return turns % 2 == 0, since + (turns + 1) * orders.flap

    def _backing_off(self, due: float, delay: float) -> Step:
        pod, names = self.pod, [status.name for status in self.statuses if status.state.terminated is not None]
        self._change(lambda _, status: containers.back_off(pod, status, delay=delay))
        if names:
            self.notes = tuple(map(self._back_off_note, names))
        status = self._status("Running", pod_conditions.backing_off(pod), initial=self._initialized())
        return Step(status, self.moments, due, notes=self.notes)

    def _back_off_note(self, name: str) -> Note:
        meta = self.pod.metadata
        where = f"{meta.name}_{meta.namespace}({meta.uid})"
        return Note("BackOff", f"Back-off restarting failed container {name} in pod {where}")

    def _finished(self) -> Step:
        phase = "Failed" if self._failed() else "Succeeded"
        ending = Ending(0, self.text)
        initial = tuple(containers.end(status, ending) for status in self._initialized())
        return Step(self._status(phase, pod_conditions.ended(phase), initial=initial), self.moments, notes=self.notes)

    def _initialized(self) -> tuple[ContainerStatus, ...]:
        """The statuses of init containers: completed, except sidecars, which keep running."""
        return containers.changed(
            self.pod.spec.init_containers,
            self.initial,
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
        given = (self.ips.pod_ips or ()) if addresses is None else addresses
        was, host = self.pod.status, self.ips.host_ips
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


def probed_after(those: Iterable[Container]) -> float:
    """How many seconds after their start the probes of all containers have passed, if each passes the first time.

    Infinite if one never passes: its command tells that it fails.
    """
    longest = 0.0
    for each in those:
        if (startup := each.startup_probe) is not None:
            longest = max(longest, inf if _fails(startup) else startup.initial_delay_seconds)
        if (ready := each.readiness_probe) is not None:
            further = (ready.success_threshold - 1) * ready.period_seconds
            longest = max(longest, inf if _fails(ready) else ready.initial_delay_seconds + further)
    return longest


def _fails(probe: ProbeTimes) -> bool:
    told = commands.end(probe.exec.command, ()) if probe.exec is not None else None
    return told is not None and told[1] != 0


def _not_yet(_: Container, status: ContainerStatus) -> ContainerStatus:
    return containers.wait(status, "PodInitializing") if containers.never_ran(status) else status


def _done(container: Container, status: ContainerStatus) -> bool:
    """Whether an init container has ended well, or is a sidecar and runs."""
    return status.state.running is not None if container.sidecar else _ended_well(status)


def _ended_well(status: ContainerStatus) -> bool:
    return status.state.terminated is not None and not status.state.terminated.exit_code


def _still_running(
    pod: Pod, container: Container, status: ContainerStatus, *, now: str, ready: bool
) -> ContainerStatus:
    if status.state.running is None:
        status = containers.start(pod, container, status, now=now)
    status = containers.update_image(pod, container, status, now=now)
    return containers.with_readiness(containers.resize(pod, container, status, now=now), ready=ready)


def _initialized(pod: Pod, container: Container, status: ContainerStatus, *, now: str) -> ContainerStatus:
    if not container.sidecar:
        return containers.complete(pod, container, status, now=now)
    return _still_running(pod, container, status, now=now, ready=True)


def _ephemeral(pod: Pod, container: Container, status: ContainerStatus, *, now: str) -> ContainerStatus:
    if containers.never_ran(status):
        return replace(containers.start(pod, container, status, now=now), started=None)
    return status


# --- the end ---------------------------------------------------------------------------------------


def _stop(pod: Pod, now: float, moments: Moments, orders: Orders, rules: Rules) -> Step:
    """The next status of a Pod that is being deleted: it stops after ``stop-after``, within the grace period."""
    if moments.stopping is None:
        moments = replace(moments, stopping=now)
    assert moments.stopping is not None
    # Once the period is 0, only finalizers keep the object, and other controllers remove those.
    remove = pod.metadata.deletion_grace_period_seconds != 0
    statuses = pod.status.container_statuses
    if pod.finished or all(containers.never_ran(status) for status in statuses):
        return Step(pod.status, moments, remove=remove)
    grace = pod.metadata.deletion_grace_period_seconds or 0
    # A second deletion may shorten the grace period; only the deletion timestamp tells when that one ends.
    deadline = max(moments.stopping + grace, _time(pod.metadata.deletion_timestamp, now)) if grace else now
    wanted = rules.stop_after if orders.stop_after is None else orders.stop_after
    due = min(moments.stopping + wanted, deadline)
    if now < due and any(status.state.running is not None for status in statuses):
        return Step(pod.status, moments, due)
    # What serves ends well when it is told to stop; work that is to be done has failed.
    code = 0 if pod.spec.restart_policy == "Always" else TERMINATED
    ending = Ending(KILLED if moments.stopping + wanted > deadline else code, times.text(now))
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
