"""Why a Pod does not serve: the first cause, as far as its status tells (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from seamark.kinds.values import times
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import ContainerStatus
from seamark.why.codes import Code
from seamark.why.finding import Command, look
from seamark.why.views import Container, Pod

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
_STARTING = frozenset(("ContainerCreating", "PodInitializing", ""))


class Trouble(msgspec.Struct, frozen=True):
    """Why one Pod does not serve: ``detail`` is the cause, ``fix`` what to do, ``look`` a command that shows more."""

    code: Code
    detail: str
    fix: str
    look: Command | None = None


Check = Callable[[Pod, Node | None, float | None], Trouble | None]


def trouble(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    """The first cause that applies; None for a Pod that serves.  Causes that others depend on come first."""
    for check in _CHECKS:
        found = check(pod, node, now)
        if found is not None:
            return found
    return None


# --- its end and its place -------------------------------------------------------------------------


def _ended(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    status = pod.status
    if not pod.finished:
        return None
    if status.reason == "Evicted":
        return Trouble(
            Code.POD_EVICTED,
            _with(f"evicted from node {pod.spec.node_name or 'unknown'}", status.message),
            "Free what the node ran out of; a workload makes a new Pod, a bare Pod must be made again.",
        )
    how = "has succeeded" if status.phase == "Succeeded" else "has failed"
    owner = next((each.kind for each in pod.metadata.owner_references if each.controller), "")
    of_owner = f" ({owner})" if owner else ""
    return Trouble(
        Code.POD_FINISHED,
        _with(f"phase {status.phase}: it {how} and does not run any more{of_owner}", status.message or status.reason),
        "A finished Pod is never an endpoint: run the server in a Deployment, or make the Pod again.",
        look("logs", pod.metadata.name, namespace=pod.metadata.namespace),
    )


def _terminating(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    since = pod.metadata.deletion_timestamp
    if since is None:
        return None
    detail = "being deleted"
    fix = "Wait for its successor to be ready; a Pod on its way out gets no new traffic."
    if pod.metadata.finalizers:
        detail += f", held by the finalizer {', '.join(pod.metadata.finalizers)}"
        fix = "Find out why the controller that set the finalizer does not remove it."
    elif now is not None and now - times.parse(since) > 120:
        detail += f", overdue since {times.duration(now - times.parse(since))}"
        if node is None or not node.ready:
            detail += f"; its node {pod.spec.node_name} does not answer"
    return Trouble(Code.POD_TERMINATING, detail, fix)


def _unscheduled(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    # A Pod that is ready and has an address was not left unscheduled: its node is missing, which is another cause.
    if pod.spec.node_name or (pod.ready and pod.ips):
        return None
    condition = pod.condition("PodScheduled")
    if pod.spec.scheduling_gates or (condition is not None and condition.reason == "SchedulingGated"):
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates) or "a scheduling gate"
        return Trouble(
            Code.POD_SCHEDULING_GATED,
            f"not scheduled: waits for {gates}",
            "The controller or person that set the scheduling gate has to remove it.",
        )
    if condition is not None and condition.status == "False":
        return Trouble(
            Code.POD_UNSCHEDULABLE,
            _with("unschedulable: no node can take it", condition.message),
            "Make room, or change what the Pod asks for (requests, node selector, affinity, tolerations, volumes).",
            _describe(pod),
        )
    return Trouble(
        Code.POD_NOT_SCHEDULED,
        "not scheduled to any node yet",
        "Check that the scheduler is running.",
        _describe(pod),
    )


def _without_node(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    if node is None:
        name = pod.spec.node_name
        return Trouble(
            Code.NODE_MISSING,
            f"its node {name} does not exist" if name else "it names no node (spec.nodeName is empty)",
            f"Bring node {name} back, or delete the Pod so that it is made anew on a node that exists."
            if name
            else "Have it scheduled: a Pod without a node is not taken into EndpointSlices.",
        )
    condition = node.condition("Ready")
    if node.ready or condition is None or pod.ready:
        return None
    return Trouble(
        Code.NODE_NOT_READY,
        _with(
            f"its node {node.metadata.name} is not ready ({condition.reason or condition.status})", condition.message
        ),
        f"Repair node {node.metadata.name}, or drain it so that the Pod moves to another.",
        look("describe", "node", node.metadata.name),
    )


# --- its containers --------------------------------------------------------------------------------


def _initialising(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    if pod.ready:
        return None
    sidecars = {c.name for c in pod.spec.init_containers if c.sidecar}
    for status in pod.status.init_container_statuses:
        if status.name in sidecars and status.started:
            continue
        ended = status.state.terminated
        if ended is not None and ended.exit_code == 0:
            continue
        if ended is not None or status.restart_count or _broken(status):
            return Trouble(
                Code.INIT_CONTAINER_FAILING,
                f"init container {status.name} fails: {_ending(status)}",
                f"Repair init container {status.name}; the Pod's other containers wait for it.",
                _logs(pod, status.name),
            )
        if status.state.running is not None:
            return Trouble(
                Code.INIT_CONTAINER_RUNNING,
                f"init container {status.name} is still running{_since(status.state.running.started_at, now)}",
                "Wait for it, or find out what it waits for.",
                _logs(pod, status.name),
            )
    return None


def _not_running(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    if pod.ready:
        return None
    for status in _unready(pod):
        waiting, ended, last = status.state.waiting, status.state.terminated, status.last_state.terminated
        name = status.name
        if waiting is not None and waiting.reason in _IMAGE:
            return Trouble(
                Code.IMAGE_PULL_FAILED,
                _with(f"container {name}: {waiting.reason} for image {status.image or 'unknown'}", waiting.message),
                "Correct the image's name or tag, or give the Pod credentials for the registry (imagePullSecrets).",
                _describe(pod),
            )
        if waiting is not None and waiting.reason == "CreateContainerConfigError":
            return Trouble(
                Code.CONTAINER_CONFIG_ERROR,
                _with(f"container {name}: {waiting.reason}", waiting.message),
                "Create the ConfigMap, Secret or key it refers to, or correct the reference.",
                _describe(pod),
            )
        if any(each is not None and each.reason == "OOMKilled" for each in (ended, last)):
            return Trouble(
                Code.CONTAINER_OUT_OF_MEMORY,
                f"container {name} is killed for using more memory than its limit (OOMKilled),"
                f" {status.restart_count} restarts",
                f"Raise the memory limit of container {name}, or make it use less.",
                _describe(pod),
            )
        if waiting is not None and waiting.reason == "CrashLoopBackOff":
            return Trouble(
                Code.CONTAINER_CRASHING,
                f"container {name} crashes again and again (CrashLoopBackOff): {_ending(status)}",
                f"Read what container {name} says before it ends, and repair it.",
                _logs(pod, name, previous=True),
            )
        if waiting is not None and waiting.reason not in _STARTING:
            return Trouble(
                Code.CONTAINER_START_ERROR,
                _with(f"container {name} cannot start: {waiting.reason}", waiting.message),
                "Correct what the message names; often it is the command, a volume or a security setting.",
                _describe(pod),
            )
        if ended is not None:
            code = Code.CONTAINER_CRASHING if ended.exit_code and status.restart_count else Code.CONTAINER_ENDED
            return Trouble(
                code,
                f"container {name} has ended: {_ending(status)}",
                f"Read what container {name} said before it ended; a server's container should not end.",
                _logs(pod, name),
            )
    return None


def _probing(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    if pod.ready:
        return None
    containers = {c.name: c for c in (*pod.spec.containers, *pod.spec.init_containers)}
    for status in _unready(pod):
        if status.state.running is None:
            continue
        container = containers.get(status.name, Container())
        since = _since(status.state.running.started_at, now)
        restarts = f", {status.restart_count} restarts" if status.restart_count else ""
        if status.started is False and container.startup_probe is not None:
            return Trouble(
                Code.STARTUP_PROBE_FAILING,
                f"container {status.name}: startup probe ({container.startup_probe}) not passed{since}{restarts}",
                f"Make container {status.name} answer its startup probe, or correct or lengthen the probe.",
                _describe(pod),
            )
        if container.readiness_probe is not None:
            return Trouble(
                Code.READINESS_PROBE_FAILING,
                f"container {status.name}: readiness probe ({container.readiness_probe}) fails{restarts}"
                f"{_probes_elsewhere(container)}",
                f"Make container {status.name} answer its readiness probe, or correct the probe.",
                _describe(pod),
            )
    return None


def _probes_elsewhere(container: Container) -> str:
    """A remark, if the probe asks a port that the container declares nowhere."""
    probe = container.readiness_probe
    asked = (
        next((each.port for each in (probe.http_get, probe.tcp_socket, probe.grpc) if each), None) if probe else None
    )
    declared = {value for port in container.ports for value in (port.container_port, port.name) if value}
    if asked is None or not declared or asked in declared:
        return ""
    return f" (the container declares {', '.join(str(port.container_port) for port in container.ports)}, not {asked})"


def _gated(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    if pod.ready:
        return None
    for gate in pod.spec.readiness_gates:
        condition = pod.condition(gate.condition_type)
        if condition is None or condition.status != "True":
            how = "has not been set" if condition is None else f"is {condition.status}"
            said = _with(f"readiness gate {gate.condition_type} {how}", condition.message if condition else "")
            return Trouble(
                Code.READINESS_GATE_NOT_MET,
                said,
                f"Look at the controller that sets the condition {gate.condition_type} (often a load balancer's).",
                _describe(pod),
            )
    return None


# --- the rest --------------------------------------------------------------------------------------


def _starting(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    if pod.ready and pod.ips:
        return None
    waiting = next((s.state.waiting for s in _unready(pod) if s.state.waiting is not None), None)
    if waiting is not None or (pod.status.phase == "Pending" and not pod.ips):
        said = f" ({waiting.reason})" if waiting is not None and waiting.reason else ""
        age = _since(pod.metadata.creation_timestamp, now, word="made")
        return Trouble(
            Code.POD_STARTING,
            f"still starting{said}{age}; it has no address yet" if not pod.ips else f"still starting{said}{age}",
            "Wait for it; if it stays so, its events say what it waits for (volumes, network, images).",
            _describe(pod),
        )
    if not pod.ips:
        return Trouble(
            Code.POD_HAS_NO_ADDRESS,
            f"no IP address yet, phase {pod.status.phase or 'unknown'}",
            "Check the node's network plugin (CNI): it gives Pods their addresses.",
            _describe(pod),
        )
    return None


def _unready_somehow(pod: Pod, node: Node | None, now: float | None) -> Trouble | None:
    condition = pod.condition("Ready")
    if condition is None:
        return Trouble(
            Code.POD_NOT_REPORTED,
            f"no Ready condition, phase {pod.status.phase or 'unknown'}: the kubelet has not reported on it",
            f"Check the kubelet on node {pod.spec.node_name or 'unknown'}: it reports what its Pods do.",
        )
    if condition.status == "True":
        return None
    reason = f" ({condition.reason})" if condition.reason else ""
    return Trouble(
        Code.POD_NOT_READY,
        _with(f"Ready is {condition.status or 'empty'}{reason}", condition.message),
        "Make its containers ready.",
        _describe(pod),
    )


_CHECKS: tuple[Check, ...] = (
    _ended,
    _terminating,
    _unscheduled,
    _without_node,
    _initialising,
    _not_running,
    _probing,
    _gated,
    _starting,
    _unready_somehow,
)


# --- words -----------------------------------------------------------------------------------------


def _unready(pod: Pod) -> Iterable[ContainerStatus]:
    return (status for status in pod.status.container_statuses if not status.ready)


def _broken(status: ContainerStatus) -> bool:
    return status.state.waiting is not None and status.state.waiting.reason not in _STARTING


def _ending(status: ContainerStatus) -> str:
    """How a container last ended, or why it does not start."""
    ended = status.state.terminated or status.last_state.terminated
    waiting = status.state.waiting
    parts = []
    if ended is not None:
        parts.append(f"exit code {ended.exit_code}" + (f", {ended.reason}" if ended.reason else ""))
    elif waiting is not None and waiting.reason:
        parts.append(_with(waiting.reason, waiting.message))
    if status.restart_count:
        parts.append(f"{status.restart_count} restarts")
    return ", ".join(parts) or "no details are known"


def _since(timestamp: str | None, now: float | None, *, word: str = "running") -> str:
    if timestamp is None or now is None:
        return ""
    return (
        f" ({word} for {times.duration(now - times.parse(timestamp))})"
        if word == "running"
        else (f" ({word} {times.duration(now - times.parse(timestamp))} ago)")
    )


def _with(text: str, message: str) -> str:
    """The text with the component's own message, cut to a readable length."""
    message = " ".join(message.split()).rstrip(".")
    if not message:
        return text
    return f"{text}: {message[:200]}…" if len(message) > 200 else f"{text}: {message}"


def _describe(pod: Pod) -> Command:
    return look("describe", "pod", pod.metadata.name, namespace=pod.metadata.namespace)


def _logs(pod: Pod, container: str, *, previous: bool = False) -> Command:
    words = ("logs", pod.metadata.name, "-c", container, *(["--previous"] if previous else []))
    return look(*words, namespace=pod.metadata.namespace)
