"""Pods whose resources are changed while they run: which containers that restarts, and what their status says.  Pure.

A Pod keeps the resources that it has until its node has room for those that its spec asks for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from seamark.nodes.pod_conditions import Finding
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.pod import Pod, PodStatus, ResizePolicy, Resources

if TYPE_CHECKING:
    from seamark.nodes.running.spec import PodToRun

    P = TypeVar("P", Pod, PodToRun)

PENDING = "PodResizePending"
RESOURCES = ("cpu", "memory")  # those that can be changed


def wanted(pod: Pod) -> bool:
    """Whether a running container has other resources than its spec asks for."""
    if not pod.status.container_statuses:
        return False
    given = resources_of(pod.status)
    spec = pod.spec
    return any(given.get(each.name, each.resources) != each.resources for each in spec.containers) or any(
        given.get(each.name, each.resources) != each.resources for each in spec.init_containers
    )


def resources_of(status: PodStatus) -> dict[str, Resources]:
    """The resources of the containers that run, by name."""
    return {
        each.name: each.resources
        for each in (*status.container_statuses, *status.init_container_statuses)
        if each.state.running is not None and each.resources is not None
    }


def restarts(policies: Iterable[ResizePolicy], given: Resources, asked: Resources) -> bool:
    """Whether a container that has these resources is restarted to get the others."""
    return any(
        policy.restart_policy == "RestartContainer"
        and (
            asked.requests.get(policy.resource_name) != given.requests.get(policy.resource_name)
            or asked.limits.get(policy.resource_name) != given.limits.get(policy.resource_name)
        )
        for policy in policies
    )


def as_given(pod: P, status: PodStatus) -> P:
    """The Pod as if its containers that run asked for what they have."""
    given, spec = resources_of(status), pod.spec
    containers = tuple(replace(each, resources=given.get(each.name, each.resources)) for each in spec.containers)
    initial = tuple(replace(each, resources=given.get(each.name, each.resources)) for each in spec.init_containers)
    return replace(pod, spec=replace(spec, containers=containers, init_containers=initial))


def told(pod: Pod, status: PodStatus, obstacle: Finding | None, now: str) -> PodStatus:
    """The status with a condition that says why the Pod does not get its new resources yet, or without it."""
    others = tuple(each for each in status.conditions if each.type != PENDING)
    if obstacle is None:
        return replace(status, conditions=others)
    was = pod.condition(PENDING)
    since = now if was is None else was.last_transition_time
    pending = Condition(PENDING, obstacle.status, since, obstacle.reason, obstacle.message, pod.metadata.generation)
    return replace(status, conditions=(pending, *others))
