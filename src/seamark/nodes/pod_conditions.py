"""The conditions that a kubelet reports for a Pod, with Kubernetes' reasons and messages."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.pod import Pod

# In the order in which a kubelet lists them.
OWN = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class Finding(msgspec.Struct, frozen=True):
    """What a condition should say, without its transition time."""

    status: str
    reason: str = ""
    message: str = ""


TRUE = Finding("True")
FALSE = Finding("False")
_ENDED = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}


def before_start(pod: Pod) -> tuple[Finding, ...]:
    """No container runs yet."""
    return FALSE, *initializing(pod, [c.name for c in pod.spec.init_containers])[1:]


def initializing(pod: Pod, pending: Sequence[str]) -> tuple[Finding, ...]:
    """These init containers have not completed."""
    unready = _unready([c.name for c in pod.spec.containers])
    initialized = TRUE
    if pending:
        initialized = Finding(
            "False", "ContainersNotInitialized", f"containers with incomplete status: [{_go(pending)}]"
        )
    return TRUE, initialized, unready, unready, TRUE


def running(pod: Pod, *, ready: bool) -> tuple[Finding, ...]:
    """The containers run; ``ready`` says whether they can take traffic."""
    containers = TRUE if ready else _unready([c.name for c in pod.spec.containers])
    return TRUE, TRUE, with_gates(pod, containers), containers, TRUE


def with_gates(pod: Pod, containers: Finding) -> Finding:
    """Whether the Pod is ready: if its containers are, its readiness gates decide."""
    if pod.spec.readiness_gates and containers == TRUE and (missing := _closed_gates(pod)):
        return Finding("False", "ReadinessGatesNotReady", ", ".join(missing))
    return containers


def backing_off(pod: Pod) -> tuple[Finding, ...]:
    """The containers wait to be started again."""
    unready = _unready([c.name for c in pod.spec.containers])
    return TRUE, TRUE, unready, unready, TRUE


def ended(phase: str) -> tuple[Finding, ...]:
    """The Pod is over."""
    reason = _ENDED[phase]
    over = Finding("False", reason)
    initialized = Finding("True", reason) if phase == "Succeeded" else TRUE
    return FALSE, initialized, over, over, TRUE


def apply(pod: Pod, findings: Sequence[Finding], now: str) -> tuple[Condition, ...]:
    """The conditions with these findings; times change only with a status, and conditions of other writers stay."""
    known = {condition.type: condition for condition in pod.status.conditions}
    generation = pod.metadata.generation
    own = [_condition(type, found, known.get(type), now, generation) for type, found in zip(OWN, findings, strict=True)]
    others = [condition for condition in pod.status.conditions if condition.type not in OWN]
    return (*own, *others)


def _condition(type: str, found: Finding, was: Condition | None, now: str, generation: int) -> Condition:
    since = was.last_transition_time if was is not None and was.status == found.status else now
    return Condition(type, found.status, since, found.reason, found.message, generation)


def _unready(names: Sequence[str]) -> Finding:
    return Finding("False", "ContainersNotReady", f"containers with unready status: [{_go(names)}]")


def _closed_gates(pod: Pod) -> list[str]:
    sentences = []
    for gate in pod.spec.readiness_gates:
        name = gate.condition_type
        condition = pod.condition(name)
        if condition is None:
            sentences.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif condition.status != "True":
            sentences.append(f'the status of pod readiness gate "{name}" is not "True", but {condition.status}')
    return sentences


def _go(names: Sequence[str]) -> str:
    """A list as Go prints it, for messages equal to Kubernetes'."""
    return " ".join(names)
