"""The status of a running Pod, as a kubelet writes it, from the records of its containers.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from seamark.kinds.values import times
from seamark.nodes import pod_conditions
from seamark.nodes.pod_conditions import FALSE, TRUE, Finding
from seamark.nodes.running.decisions import NEVER, Decision, Ended, Record, Records
from seamark.nodes.running.spec import Container, Spec
from seamark.rules.objects.pod import (
    ContainerState,
    ContainerStatus,
    Pod,
    PodIP,
    PodStatus,
    Running,
    Terminated,
    Waiting,
)


class Sandbox(msgspec.Struct, frozen=True):
    """The addresses of a Pod and of its node, and when the kubelet took it on."""

    accepted: float
    host_ips: tuple[str, ...]
    pod_ips: tuple[str, ...] = ()


def status_of(pod: Pod, spec: Spec, records: Records, sandbox: Sandbox, decision: Decision, *, now: float) -> PodStatus:
    """The whole status; conditions that other writers added stay."""
    waits = dict(decision.back_off)
    main = [_container(pod, each, records.get(each.name, NEVER), waits) for each in spec.containers]
    initial = [
        _container(pod, each, records.get(each.name, NEVER), waits, initial=True) for each in spec.init_containers
    ]
    extra = [_container(pod, each, records.get(each.name, NEVER), {}) for each in spec.ephemeral_containers]
    phase = decision.over or _phase(spec, records)
    text = times.text(now)
    return replace(
        pod.status,
        phase=phase,
        reason=decision.reason or pod.status.reason,
        message=decision.message or pod.status.message,
        observed_generation=pod.metadata.generation,
        conditions=pod_conditions.apply(pod, _findings(pod, spec, records, sandbox, phase), text),
        host_ip=(*sandbox.host_ips, "")[0],
        host_ips=tuple(PodIP(ip) for ip in sandbox.host_ips),
        pod_ip=(*sandbox.pod_ips, "")[0],
        pod_ips=tuple(PodIP(ip) for ip in sandbox.pod_ips),
        start_time=pod.status.start_time or times.text(sandbox.accepted),
        init_container_statuses=tuple(initial),
        container_statuses=tuple(main),
        ephemeral_container_statuses=tuple(extra),
    )


def _phase(spec: Spec, records: Records) -> str:
    """Running once a container proper has run; until then Pending, also while init containers do their work."""
    known = [records.get(each.name, NEVER) for each in spec.containers]
    seen = any((each.running and not each.held) or each.ended is not None for each in known)
    return "Running" if seen else "Pending"


# --- containers ------------------------------------------------------------------------------------


def _container(
    pod: Pod, container: Container, record: Record, waits: dict[str, float], *, initial: bool = False
) -> ContainerStatus:
    state, last = _states(pod, container, record, waits, initial=initial)
    done = initial and not container.sidecar and record.succeeded
    return ContainerStatus(
        container.name,
        state,
        last,
        ready=done or (record.running and record.ready),
        restart_count=record.restarts,
        image=container.image,
        image_id=record.image_id,
        container_id=record.identity,
        started=record.running and record.booted,
        allocated_resources=container.resources.requests if record.has_run else {},
        resources=container.resources if record.has_run else None,
    )


def _states(
    pod: Pod, container: Container, record: Record, waits: dict[str, float], *, initial: bool
) -> tuple[ContainerState, ContainerState]:
    before = _terminated(record.before)
    if record.running and not record.held:
        return ContainerState(running=Running(times.text(record.started))), before
    if container.name in waits:
        meta = pod.metadata
        where = f"{container.name} pod={meta.name}_{meta.namespace}({meta.uid})"
        words = f"back-off {_go_duration(waits[container.name])} restarting failed container={where}"
        return ContainerState(Waiting("CrashLoopBackOff", words)), _terminated(record.ended)
    if record.state == "ended":
        return _terminated(record.ended), before
    reason = record.reason or ("PodInitializing" if pod.spec.init_containers else "ContainerCreating")
    return ContainerState(Waiting(reason, record.message)), _terminated(record.ended)


def _terminated(how: Ended | None) -> ContainerState:
    if how is None:
        return ContainerState()
    return ContainerState(
        terminated=Terminated(
            exit_code=how.code,
            signal=how.signal,
            reason=how.reason,
            message=how.message,
            started_at=times.text(how.started),
            finished_at=times.text(how.finished),
            container_id=how.identity,
        )
    )


def _go_duration(seconds: float) -> str:
    """As Go prints it: ``10s``, ``2m40s``, ``5m0s``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


# --- conditions ------------------------------------------------------------------------------------


def _findings(pod: Pod, spec: Spec, records: Records, sandbox: Sandbox, phase: str) -> tuple[Finding, ...]:
    if phase in ("Succeeded", "Failed"):
        sandboxed, initialized, *others = pod_conditions.ended(phase)
        if phase == "Failed":
            initialized = _initialized(spec, records)
        return sandboxed, initialized, *others
    sandboxed = TRUE if sandbox.pod_ips else FALSE
    ready = _readiness(spec.containers, records, sidecars=[c for c in spec.init_containers if c.sidecar])
    return sandboxed, _initialized(spec, records), pod_conditions.with_gates(pod, ready), ready, TRUE


def _initialized(spec: Spec, records: Records) -> Finding:
    if any(records.get(each.name, NEVER).has_run for each in spec.containers):
        return TRUE
    pending = [
        each.name
        for each in spec.init_containers
        if not (records.get(each.name, NEVER).booted if each.sidecar else records.get(each.name, NEVER).succeeded)
    ]
    if not pending:
        return TRUE
    words = f"containers with incomplete status: [{' '.join(pending)}]"
    return Finding("False", "ContainersNotInitialized", words)


def _readiness(containers: Iterable[Container], records: Records, *, sidecars: Sequence[Container]) -> Finding:
    unready = [
        each.name
        for each in (*sidecars, *containers)
        if not (records.get(each.name, NEVER).running and records[each.name].ready)
    ]
    if not unready:
        return TRUE
    return Finding("False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
