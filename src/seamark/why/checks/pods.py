"""Why a Pod does not serve: the first cause, as far as its status and the Events about it tell (pure).

What its containers do is in :mod:`seamark.why.checks.containers`.
"""

from __future__ import annotations

from collections.abc import Callable

from seamark.kinds.values import times
from seamark.kinds.wellknown import READINESS_ANNOTATION, STOPPED_ANNOTATION
from seamark.why import evidence
from seamark.why.checks import containers
from seamark.why.checks.patient import Patient, Trouble, describe, since, with_message
from seamark.why.codes import Code
from seamark.why.finding import annotate, delete, look

_OVERDUE = 120.0  # seconds after the end of the grace period
_DEFAULT_SCHEDULER = "default-scheduler"

# Events about claims that are as they should be.
_NO_CAUSE = frozenset(("WaitForFirstConsumer", "ProvisioningSucceeded", "Provisioning"))

# Events that say what keeps a Pod from starting, with what to do about it.
_DECISIVE = {
    "FailedMount": (
        Code.VOLUME_NOT_MOUNTED,
        "Make what the volume needs (the ConfigMap, Secret, claim or storage driver that the message names), or"
        " correct the volume.",
    ),
    "FailedAttachVolume": (
        Code.VOLUME_NOT_MOUNTED,
        "Free the volume from the node that still has it, or see to the storage driver that attaches it.",
    ),
    "FailedMapVolume": (Code.VOLUME_NOT_MOUNTED, "See to the storage driver that the message names."),
    "FailedCreatePodSandBox": (
        Code.POD_NETWORK_FAILED,
        "See to the node's network plugin (CNI) or container runtime, as the message says; Pods there cannot start.",
    ),
}


def trouble(patient: Patient) -> Trouble | None:
    """The first cause that applies; None for a Pod that serves.  Causes that others depend on come first."""
    return next((found for check in _CHECKS if (found := check(patient)) is not None), None)


# --- its end and its place -------------------------------------------------------------------------


def _ended(patient: Patient) -> Trouble | None:
    pod = patient.pod
    status = pod.status
    if not pod.finished:
        return None
    seen = evidence.of(pod, "status.phase", "status.reason", "status.message", "spec.nodeName")
    if status.reason == "Evicted":
        return Trouble(
            Code.POD_EVICTED,
            with_message(f"evicted from node {pod.spec.node_name or 'unknown'}", status.message),
            "Free what the node ran out of; a workload makes a new Pod, a bare Pod must be made again.",
            seen,
        )
    how = "has succeeded" if status.phase == "Succeeded" else "has failed"
    owner = pod.metadata.controller
    of_owner = f" ({owner.kind})" if owner is not None else ""
    ended = containers.last_words(pod)
    return Trouble(
        Code.POD_FINISHED,
        with_message(
            f"phase {status.phase}: it {how} and does not run any more{of_owner}",
            status.message or status.reason or ended,
        ),
        "A finished Pod is never an endpoint: run the server in a Deployment, or make the Pod again.",
        (*seen, *evidence.of(pod, "metadata.ownerReferences", "status.containerStatuses")),
        look("logs", pod.metadata.name, namespace=pod.metadata.namespace),
    )


def _terminating(patient: Patient) -> Trouble | None:
    pod, node, now = patient.pod, patient.node, patient.now
    deleted = pod.metadata.deletion_timestamp
    if deleted is None:
        return None
    detail = "being deleted"
    owner = pod.metadata.controller
    fix = (
        f"Wait for its successor to be ready, which {owner.kind} {owner.name} makes unless it is scaled down"
        if owner is not None
        else "If it is missed, make it again: no workload does that"
    )
    fix += "; a Pod on its way out gets no new traffic."
    seen: tuple[evidence.Evidence, ...] = evidence.of(
        pod, "metadata.deletionTimestamp", "metadata.finalizers", "metadata.ownerReferences"
    )
    if pod.metadata.finalizers:
        detail += f", held by the finalizer {', '.join(pod.metadata.finalizers)}"
        fix = "Find out why the controller that set the finalizer does not remove it."
    elif now is not None and now - times.parse(deleted) > _OVERDUE:
        detail += f", overdue since {times.duration(now - times.parse(deleted))}"
        seen += (evidence.reading(pod, "metadata.deletionTimestamp", now, limit=_OVERDUE),)
        if node is not None and node.condition("Ready") is not None and not node.ready:
            detail += f"; its node {pod.spec.node_name} is not ready"
            fix = "Bring the node back; if it is gone for good, delete the Node, and its Pods go with it."
            seen += evidence.of(node, "status.conditions[Ready].status")
    return Trouble(Code.POD_TERMINATING, detail, fix, seen)


def _unscheduled(patient: Patient) -> Trouble | None:
    pod = patient.pod
    # A Pod that is ready and has an address was not left unscheduled: its node is missing, which is another cause.
    if pod.spec.node_name or (pod.ready and pod.ips):
        return None
    condition = pod.condition("PodScheduled")
    seen = evidence.of(pod, "spec.nodeName", "status.conditions[PodScheduled]", "spec.schedulingGates")
    if pod.spec.scheduling_gates or (condition is not None and condition.reason == "SchedulingGated"):
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates) or "a scheduling gate"
        return Trouble(
            Code.POD_SCHEDULING_GATED,
            f"not scheduled: waits for {gates}",
            "The controller or person that set the scheduling gate has to remove it.",
            seen,
        )
    failed = patient.event("FailedScheduling")
    if condition is not None and condition.status == "False":
        return _unschedulable(patient, condition.message, seen)
    if failed is not None:
        return _unschedulable(patient, failed.message, (*seen, evidence.told(failed)))
    scheduler = pod.spec.scheduler_name
    seen += evidence.of(pod, "spec.schedulerName")
    if scheduler not in ("", _DEFAULT_SCHEDULER):
        return Trouble(
            Code.SCHEDULER_MISSING,
            f"not scheduled to any node yet; it waits for a scheduler called {scheduler} (spec.schedulerName), and"
            " no scheduler has said anything about it",
            f"Start the scheduler {scheduler}, or correct schedulerName ({_DEFAULT_SCHEDULER} is the usual one) and"
            " make the Pod anew.",
            seen,
            describe(pod),
        )
    return Trouble(
        Code.POD_NOT_SCHEDULED,
        "not scheduled to any node yet",
        "Check that the scheduler is running.",
        seen,
        describe(pod),
    )


def _unschedulable(patient: Patient, message: str, seen: tuple[evidence.Evidence, ...]) -> Trouble:
    """What the scheduler says; where that is about volumes, with what is said about the claims behind them."""
    detail = with_message("unschedulable: no node can take it", message)
    fix = "Make room, or change what the Pod asks for (requests, node selector, affinity, tolerations, volumes)."
    told = [event for event in patient.claims if event.reason not in _NO_CAUSE and "volume" in message.lower()]
    for event in told:
        detail += with_message(f"; PersistentVolumeClaim {event.involved_object.name}", event.message)
        fix = "Make what the claim needs (its StorageClass, a provisioner or a PersistentVolume), or correct the claim."
    return Trouble(
        Code.POD_UNSCHEDULABLE, detail, fix, (*seen, *(evidence.told(event) for event in told)), describe(patient.pod)
    )


def _without_node(patient: Patient) -> Trouble | None:
    pod, node = patient.pod, patient.node
    seen: tuple[evidence.Evidence, ...] = evidence.of(pod, "spec.nodeName")
    if node is None:
        name = pod.spec.node_name
        return Trouble(
            Code.NODE_MISSING,
            f"its node {name} does not exist" if name else "it names no node (spec.nodeName is empty)",
            f"Bring node {name} back, or delete the Pod so that it is made anew on a node that exists."
            if name
            else "Have it scheduled: a Pod without a node is not taken into EndpointSlices.",
            (*seen, *filter(None, [patient.absent])),
        )
    condition = node.condition("Ready")
    if node.ready or condition is None or pod.ready:
        return None
    name = node.metadata.name
    off = node.simulated and node.stopped
    how = "was switched off" if off else f"is not ready ({condition.reason or condition.status})"
    return Trouble(
        Code.NODE_NOT_READY,
        with_message(f"its node {name} {how}", condition.message),
        f"Switch it on again, as `seamark node start {name}` does, too:"
        if off
        else f"Repair node {name}, or drain it so that the Pod moves to another.",
        (
            *seen,
            *evidence.of(node, *(["metadata.annotations"] if off else []), "status.conditions[Ready]"),
            *evidence.of(pod, "status.conditions[Ready].status"),
        ),
        look("describe", "node", name),
        (annotate("node", ("", name), f"{STOPPED_ANNOTATION}-"),) if off else (),
    )


# --- the rest --------------------------------------------------------------------------------------


def _gated(patient: Patient) -> Trouble | None:
    pod = patient.pod
    if pod.ready:
        return None
    for gate in pod.spec.readiness_gates:
        condition = pod.condition(gate.condition_type)
        if condition is None or condition.status != "True":
            how = "has not been set" if condition is None else f"is {condition.status}"
            said = with_message(f"readiness gate {gate.condition_type} {how}", condition.message if condition else "")
            return Trouble(
                Code.READINESS_GATE_NOT_MET,
                said,
                f"Look at the controller that sets the condition {gate.condition_type} (often a load balancer's).",
                evidence.of(pod, "spec.readinessGates", f"status.conditions[{gate.condition_type}]"),
                describe(pod),
            )
    return None


def _kept_from_starting(patient: Patient) -> Trouble | None:
    """What a warning Event says about a Pod whose containers have not started."""
    if patient.pod.ready or any(status.state.running for status in patient.pod.status.container_statuses):
        return None
    for event in patient.events:
        if event.reason in _DECISIVE:
            code, fix = _DECISIVE[event.reason]
            return Trouble(
                code,
                with_message(f"it cannot start ({event.reason})", event.message),
                fix,
                (evidence.told(event), *evidence.of(patient.pod, "status.phase", "status.containerStatuses")),
                describe(patient.pod),
            )
    return None


def _starting(patient: Patient) -> Trouble | None:
    pod, now = patient.pod, patient.now
    if pod.ready and pod.ips:
        return None
    waiting = next((s.state.waiting for s in containers.unready(pod) if s.state.waiting is not None), None)
    seen: tuple[evidence.Evidence, ...] = evidence.of(pod, "status.phase", "status.podIPs", "status.containerStatuses")
    if waiting is not None or (pod.status.phase == "Pending" and not pod.ips):
        said = f" ({waiting.reason})" if waiting is not None and waiting.reason else ""
        age, read = since(pod, "metadata.creationTimestamp", now, word="made")
        return Trouble(
            Code.POD_STARTING,
            f"still starting{said}{age}; it has no address yet" if not pod.ips else f"still starting{said}{age}",
            "Wait for it; if it stays so, its events say what it waits for (volumes, network, images).",
            (*seen, *read),
            describe(pod),
        )
    if not pod.ips:
        return Trouble(
            Code.POD_HAS_NO_ADDRESS,
            f"no IP address yet, phase {pod.status.phase or 'unknown'}",
            "Check the node's network plugin (CNI): it gives Pods their addresses.",
            (*seen, *evidence.of(pod, "status.podIP")),
            describe(pod),
        )
    return None


def _unready_somehow(patient: Patient) -> Trouble | None:
    pod = patient.pod
    condition = pod.condition("Ready")
    node = pod.spec.node_name or "unknown"
    seen = evidence.of(pod, "status.conditions[Ready]", "status.phase", "spec.nodeName")
    if condition is None:
        return Trouble(
            Code.POD_NOT_REPORTED,
            f"no Ready condition, phase {pod.status.phase or 'unknown'}: the kubelet has not reported on it",
            f"Check the kubelet on node {node}: it reports what its Pods do.",
            seen,
        )
    if condition.status == "True":
        return None
    reason = f" ({condition.reason})" if condition.reason else ""
    if containers.all_ready(pod):
        owned = pod.metadata.controller is not None
        return Trouble(
            Code.POD_STATUS_STUCK,
            with_message(
                f"Ready is {condition.status or 'empty'}{reason}, though all of its containers are ready: its status"
                " is stuck",
                condition.message,
            ),
            f"If it stays so, restart the kubelet on node {node}, or delete the Pod"
            + (" (its workload makes a new one):" if owned else ", and make it again."),
            (*seen, *evidence.of(pod, "status.containerStatuses", "metadata.ownerReferences")),
            describe(pod),
            (delete("pod", pod.key),) if owned else (),
        )
    detail = with_message(f"Ready is {condition.status or 'empty'}{reason}", condition.message)
    host = patient.node
    if host is not None and host.simulated and pod.metadata.annotations.get(READINESS_ANNOTATION) == "never":
        return Trouble(
            Code.POD_NOT_READY,
            f"{detail}; its simulated node keeps it so, as the annotation {READINESS_ANNOTATION}=never tells it to",
            "Take the annotation away, from the template of its workload as well if it is there:",
            (*seen, *evidence.of(pod, "metadata.annotations"), *evidence.of(host, "metadata.annotations")),
            describe(pod),
            (annotate("pod", pod.key, f"{READINESS_ANNOTATION}-"),),
        )
    return Trouble(Code.POD_NOT_READY, detail, "Make its containers ready.", seen, describe(pod))


_CHECKS: tuple[Callable[[Patient], Trouble | None], ...] = (
    _ended,
    _terminating,
    _unscheduled,
    _without_node,
    containers.initialising,
    containers.not_running,
    _kept_from_starting,
    containers.probing,
    _gated,
    _starting,
    _unready_somehow,
)
