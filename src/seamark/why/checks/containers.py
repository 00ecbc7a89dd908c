"""What keeps the containers of a Pod from being ready: how they start, run and end, and what their probes found."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.kinds.values import times
from seamark.rules.container_probes import Judgement, Standing, judge
from seamark.rules.objects.pod import ContainerStatus, Terminated
from seamark.why import evidence
from seamark.why.checks.patient import Patient, Trouble, describe, logs, since, with_message
from seamark.why.codes import Code
from seamark.why.evidence import Evidence
from seamark.why.views import Container, Event, Pod, Probe

_IMAGE = frozenset(
    (
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    )
)
_NO_COMMAND = "no command specified"
_STARTING = frozenset(("ContainerCreating", "PodInitializing", ""))


# --- before and beside the others ------------------------------------------------------------------


def initialising(patient: Patient) -> Trouble | None:
    pod = patient.pod
    if pod.ready:
        return None
    containers = {each.name: each for each in pod.spec.init_containers}
    for status in pod.status.init_container_statuses:
        container = containers.get(status.name, Container())
        ended = status.state.terminated
        if (container.sidecar and status.started) or (
            not container.sidecar and ended is not None and ended.exit_code == 0
        ):
            continue
        seen = _status(pod, status)
        if status.state.running is not None and container.sidecar:
            return _sidecar(patient, status, container)
        if ended is not None or status.restart_count or _broken(status):
            return Trouble(
                Code.INIT_CONTAINER_FAILING,
                f"init container {status.name} fails: {_ending(status)}",
                f"{_repair(status)} The Pod's other containers wait for it.",
                seen,
                logs(pod, status.name),
            )
        if status.state.running is not None:
            age, read = since(pod, f"{_at(pod, status)}.state.running.startedAt", patient.now)
            return Trouble(
                Code.INIT_CONTAINER_RUNNING,
                f"init container {status.name} is still running{age}",
                "Wait for it, or find out what it waits for.",
                (*seen, *read),
                logs(pod, status.name),
            )
    return None


def _repair(status: ContainerStatus) -> str:
    waiting, last = status.state.waiting, status.state.terminated or status.last_state.terminated
    if waiting is not None and waiting.reason in _IMAGE:
        return _remedy(status.image, waiting.message)
    if last is not None and last.reason == "OOMKilled":
        return f"Raise the memory limit of init container {status.name}, or make it use less."
    return f"Repair init container {status.name}."


def _sidecar(patient: Patient, status: ContainerStatus, container: Container) -> Trouble:
    """A container of the init containers that runs beside the others; these start once it has started."""
    who = f"sidecar {status.name} (an init container that keeps running)"
    if container.startup_probe is not None:
        return _not_started(patient, status, container.startup_probe, who)
    return Trouble(
        Code.SIDECAR_NOT_STARTED,
        f"{who} has not started yet, and the other containers wait for it",
        f"Read what {status.name} says.",
        _status(patient.pod, status),
        logs(patient.pod, status.name),
    )


# --- not running -----------------------------------------------------------------------------------


def _no_image(patient: Patient, status: ContainerStatus, reason: str, message: str) -> Trouble:
    """A back-off only says that it is tried again; what failed is in an Event, and with newer kubelets in both."""
    pod = patient.pod
    event = patient.event("Failed", "Failed to pull image", status.name) if reason == "ImagePullBackOff" else None
    if event is not None and "ErrImagePull" not in message:
        message = event.message
    return Trouble(
        Code.IMAGE_PULL_FAILED,
        with_message(f"container {status.name}: {reason} for image {status.image or 'unknown'}", message),
        _remedy(status.image, message),
        (*_status(pod, status), *([evidence.told(event)] if event is not None else [])),
        describe(pod),
    )


def _remedy(image: str, message: str) -> str:
    if "--image" in message:  # a node that runs Pods as processes: no registry is asked
        return (
            f"Say what {image} is on this machine: start seamark with --image '{image}=host', or with a directory, "
            "an OCI layout or an archive in place of host."
        )
    if "pull policy of Never" in message:
        return f"Bring {image} onto the node, or let it be pulled (imagePullPolicy: IfNotPresent)."
    return (
        "Correct what the message names; often it is the image's name or tag, or the Pod lacks credentials for the"
        " registry (imagePullSecrets)."
    )


def not_running(patient: Patient) -> Trouble | None:
    pod = patient.pod
    if pod.ready:
        return None
    for status in unready(pod):
        waiting, ended, last = status.state.waiting, status.state.terminated, status.last_state.terminated
        name = status.name
        seen: tuple[Evidence, ...] = _status(pod, status)
        if waiting is not None and waiting.reason in _IMAGE:
            return _no_image(patient, status, waiting.reason, waiting.message)
        if waiting is not None and waiting.reason == "CreateContainerConfigError":
            return Trouble(
                Code.CONTAINER_CONFIG_ERROR,
                with_message(f"container {name}: {waiting.reason}", waiting.message),
                f"Give container {name} a command: its image has none."
                if waiting.message == _NO_COMMAND
                else "Correct what the message names; often a ConfigMap, a Secret or a key of one has to be created.",
                seen,
                describe(pod),
            )
        if any(each is not None and each.reason == "OOMKilled" for each in (ended, last)):
            return Trouble(
                Code.CONTAINER_OUT_OF_MEMORY,
                f"container {name} was killed for using more memory than its limit (OOMKilled){_restarts(status)}",
                f"Raise the memory limit of container {name}, or make it use less.",
                seen,
                describe(pod),
            )
        killed = _killed(patient, status)
        if killed is not None:
            return killed
        if waiting is not None and waiting.reason == "CrashLoopBackOff":
            succeeds = last is not None and last.exit_code == 0
            return Trouble(
                Code.CONTAINER_CRASHING,
                f"container {name} {'ends' if succeeds else 'crashes'} again and again (CrashLoopBackOff):"
                f" {_ending(status)}",
                _end_to_crashes(name, last),
                seen,
                logs(pod, name, previous=True),
            )
        if waiting is not None and waiting.reason not in _STARTING:
            return Trouble(
                Code.CONTAINER_START_ERROR,
                with_message(f"container {name} cannot start: {waiting.reason}", waiting.message),
                "Correct what the message names; often it is the command, a volume or a security setting.",
                seen,
                describe(pod),
            )
        if ended is not None:
            code = Code.CONTAINER_CRASHING if ended.exit_code and status.restart_count else Code.CONTAINER_ENDED
            return Trouble(
                code,
                f"container {name} has ended: {_ending(status)}",
                f"Read what container {name} said before it ended; a server's container should not end.",
                seen,
                logs(pod, name),
            )
    return None


def _end_to_crashes(name: str, last: Terminated | None) -> str:
    if last is not None and last.exit_code == 0:
        return f"Correct the command of container {name}: it ends without an error, and a server should not end."
    if last is not None and last.reason == "TooManyProcesses":  # of a node that runs Pods as processes
        return f"Make container {name} start fewer processes and threads, or raise `processes` in [pods] of Seamark."
    return f"Read what container {name} says before it ends, and repair it."


def _killed(patient: Patient, status: ContainerStatus) -> Trouble | None:
    """A container that restarts because its liveness or startup probe fails: an Event says so."""
    if not status.restart_count:
        return None
    container = _spec(patient.pod, status.name)
    for word, probe, code in (
        ("Liveness", container.liveness_probe, Code.LIVENESS_PROBE_FAILING),
        ("Startup", container.startup_probe, Code.STARTUP_PROBE_FAILING),
    ):
        event = patient.event("Unhealthy", f"{word} probe", status.name)
        if event is not None and not (word == "Startup" and status.started):
            asks = f" ({probe})" if probe is not None else ""
            return Trouble(
                code,
                with_message(
                    f"container {status.name} is killed and started again: its {word.lower()} probe{asks}"
                    f" fails{_restarts(status)}",
                    event.message,
                ),
                f"Make container {status.name} answer its {word.lower()} probe, or correct or lengthen the probe.",
                (
                    evidence.told(event),
                    *_status(patient.pod, status),
                    *evidence.of(patient.pod, f"spec.containers[{status.name}]"),
                ),
                logs(patient.pod, status.name, previous=True),
            )
    return None


# --- probes ----------------------------------------------------------------------------------------


def probing(patient: Patient) -> Trouble | None:
    pod = patient.pod
    if pod.ready:
        return None
    found = [each for status in unready(pod) if (each := _probed(patient, status)) is not None]
    # One that fails for certain comes before one that may not have been asked yet.
    return min(found, key=lambda each: each.code is Code.PROBE_PENDING, default=None)


def _probed(patient: Patient, status: ContainerStatus) -> Trouble | None:
    if status.state.running is None:
        return None
    container = _spec(patient.pod, status.name)
    if status.started is False and container.startup_probe is not None:
        return _not_started(patient, status, container.startup_probe, f"container {status.name}")
    probe = container.readiness_probe
    if probe is None:
        return None
    judged, event = _judged(patient, status, probe, "Readiness", after=container.startup_probe)
    seen = (*_seen(patient, status, probe, "readinessProbe", judged, event),)
    what = f"container {status.name}: readiness probe ({probe})"
    if judged.standing is Standing.FAILING:
        said = with_message("", event.message) if event is not None else ""
        return Trouble(
            Code.READINESS_PROBE_FAILING,
            f"{what} fails{_restarts(status)}{_probes_elsewhere(container)}{said}",
            f"Make container {status.name} answer its readiness probe, or correct the probe.",
            seen,
            describe(patient.pod),
        )
    return _pending(patient, status, what, judged, seen)


def _not_started(patient: Patient, status: ContainerStatus, probe: Probe, who: str) -> Trouble:
    judged, event = _judged(patient, status, probe, "Startup")
    seen = (*_seen(patient, status, probe, "startupProbe", judged, event),)
    what = f"{who}: startup probe ({probe})"
    if judged.standing is not Standing.FAILING:
        return _pending(patient, status, what, judged, seen)
    age, read = since(patient.pod, f"{_at(patient.pod, status)}.state.running.startedAt", patient.now)
    said = with_message("", event.message) if event is not None else ""
    return Trouble(
        Code.STARTUP_PROBE_FAILING,
        f"{what} not passed{age}{_restarts(status)}{said}",
        f"Make container {status.name} answer its startup probe, or correct or lengthen the probe.",
        (*seen, *read),
        describe(patient.pod),
    )


def _judged(
    patient: Patient, status: ContainerStatus, probe: Probe, word: str, after: Probe | None = None
) -> tuple[Judgement, Event | None]:
    started = status.state.running.started_at if status.state.running is not None else None
    elapsed = patient.now - times.parse(started) if started is not None and patient.now is not None else None
    event = patient.event("Unhealthy", f"{word} probe", status.name, since=started)
    return judge(probe, passed=False, elapsed=elapsed, said_to_fail=event is not None, after=after), event


def _seen(
    patient: Patient, status: ContainerStatus, probe: Probe, field: str, judged: Judgement, event: Event | None
) -> Iterator[Evidence]:
    """What the judgement of a probe rests on."""
    pod, at = patient.pod, _at(patient.pod, status)
    where = "spec.containers" if at.startswith("status.container") else "spec.initContainers"
    yield from evidence.of(pod, f"{where}[{status.name}].{field}", f"{where}[{status.name}].ports", at)
    if event is not None:
        yield evidence.told(event)
    if judged.elapsed is not None and patient.now is not None:
        limit = judged.first if judged.standing is Standing.NOT_ASKED else judged.decided
        yield evidence.reading(pod, f"{at}.state.running.startedAt", patient.now, limit=limit)


def _pending(
    patient: Patient, status: ContainerStatus, what: str, judged: Judgement, seen: tuple[Evidence, ...]
) -> Trouble:
    """A probe that no failure is known of."""
    if judged.elapsed is None:
        detail = f"{what} has not passed, and since when it is asked cannot be seen"
    else:
        up = f"the container has been up for {times.duration(judged.elapsed)}"
        asked = (
            f"may not have been asked yet: {up}, and it is asked after {times.duration(judged.first)} at the latest"
            if judged.standing is Standing.NOT_ASKED
            else f"has not passed yet: {up}, and it counts as failed after {times.duration(judged.decided)}"
        )
        detail = f"{what} {asked}"
    return Trouble(
        Code.PROBE_PENDING,
        detail,
        "Wait until it was asked; if that takes too long, lower the probe's initialDelaySeconds or periodSeconds.",
        seen,
        describe(patient.pod),
    )


def _probes_elsewhere(container: Container) -> str:
    """A remark, if the probe asks a port that the container declares nowhere."""
    asked = container.readiness_probe.port if container.readiness_probe is not None else None
    declared = {value for port in container.ports for value in (port.container_port, port.name) if value}
    if asked is None or not declared or asked in declared:
        return ""
    return f" (the container declares {', '.join(str(port.container_port) for port in container.ports)}, not {asked})"


# --- words -----------------------------------------------------------------------------------------


def unready(pod: Pod) -> list[ContainerStatus]:
    """The containers that keep the Pod from being ready; sidecars are among them."""
    sidecars = {each.name for each in pod.spec.init_containers if each.sidecar}
    beside = [each for each in pod.status.init_container_statuses if each.name in sidecars and each.started]
    return [status for status in (*pod.status.container_statuses, *beside) if not status.ready]


def all_ready(pod: Pod) -> bool:
    """Whether every container is reported, runs and is ready."""
    statuses = {status.name: status for status in pod.status.container_statuses}
    return (
        bool(pod.spec.containers)
        and not unready(pod)
        and all(each.name in statuses and statuses[each.name].state.running is not None for each in pod.spec.containers)
    )


def last_words(pod: Pod) -> str:
    """What the container that failed said at its end."""
    ended = [s.state.terminated for s in pod.status.container_statuses if s.state.terminated is not None]
    failed = next((each for each in ended if each.exit_code), None)
    if failed is None:
        return ""
    return with_message(
        f"exit code {failed.exit_code}" + (f", {failed.reason}" if failed.reason else ""), failed.message
    )


def _spec(pod: Pod, name: str) -> Container:
    return next((each for each in (*pod.spec.containers, *pod.spec.init_containers) if each.name == name), Container())


def _at(pod: Pod, status: ContainerStatus) -> str:
    """The path of a container's status."""
    field = "containerStatuses" if status in pod.status.container_statuses else "initContainerStatuses"
    return f"status.{field}[{status.name}]"


def _status(pod: Pod, status: ContainerStatus) -> tuple[Evidence, ...]:
    """A container's status; the exit code also by itself, because a view does not show a zero within a status."""
    at = _at(pod, status)
    ends = [name for name in ("state", "lastState") if evidence.read(pod, f"{at}.{name}.terminated") is not None]
    return evidence.of(pod, at, *(f"{at}.{name}.terminated.exitCode" for name in ends))


def _broken(status: ContainerStatus) -> bool:
    return status.state.waiting is not None and status.state.waiting.reason not in _STARTING


def _ending(status: ContainerStatus) -> str:
    """How a container last ended and what it said, or why it does not start."""
    ended = status.state.terminated or status.last_state.terminated
    waiting = status.state.waiting
    text = "no details are known"
    if ended is not None:
        text = f"exit code {ended.exit_code}" + (f", {ended.reason}" if ended.reason else "") + _restarts(status)
        return with_message(text, ended.message)
    if waiting is not None and waiting.reason:
        text = with_message(waiting.reason, waiting.message)
    return text + _restarts(status)


def _restarts(status: ContainerStatus) -> str:
    count = status.restart_count
    return f", {count} restart{'s' if count != 1 else ''}" if count else ""
