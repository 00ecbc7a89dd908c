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
Pod go through all this together.
"""

from __future__ import annotations

from functools import partial
from math import inf

from msgspec.structs import replace

from seamark.clock import doubling
from seamark.kinds.values import times
from seamark.kinds.wellknown import FINISHED_PHASES
from seamark.nodes import pod_conditions
from seamark.nodes.simulated.pods import commands, containers, timing
from seamark.nodes.simulated.pods.containers import KILLED, Ending
from seamark.nodes.simulated.pods.orders import Orders
from seamark.nodes.simulated.pods.steps import Moments, Note, PodAddresses, Rules, Step
from seamark.nodes.simulated.pods.stopping import stop
from seamark.rules.objects.pod import Container, ContainerStatus, Pod, PodIP, PodStatus

PULL_SECONDS = 1.0  # after which a kubelet pauses before it tries again to pull a missing image
FORGET_CRASHES_AFTER = 600.0  # after running for so many seconds, earlier crashes no longer count


def next_status(pod: Pod, *, now: float, ips: PodAddresses, moments: Moments, orders: Orders, rules: Rules) -> Step:
    """The next status of the Pod."""
    if pod.terminating:
        return stop(pod, now=now, moments=moments, orders=orders, rules=rules)
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
            if missing := timing.with_image_like(self.pod, self.rules.missing_images):
                return self._unpulled(missing, due)
            if self.pod.spec.init_containers and (step := self._initialize()) is not None:
                return step
            self._start()
        while True:
            if any(status.state.running is not None for status in self.statuses):
                ending = timing.ending(self.pod, self.orders, self.rules, started=self.moments.started)
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
        ready, turns = timing.readiness(self.pod, self.orders, started=self.moments.started, now=self.now)
        self._change(partial(_still_running, self.pod, now=self.text, ready=ready))
        status = self._status("Running", pod_conditions.running(self.pod, ready=ready), initial=self._initialized())
        again = [moment for moment in (ends, turns) if moment is not None]
        return Step(status, self.moments, min(again, default=None), notes=self.notes)

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


def _not_yet(_: Container, status: ContainerStatus) -> ContainerStatus:
    return containers.wait(status, "PodInitializing") if containers.never_ran(status) else status


def _done(container: Container, status: ContainerStatus) -> bool:
    """Whether an init container has ended well, or is a sidecar and runs."""
    return status.state.running is not None if container.sidecar else containers.ended_well(status)


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
