"""The status of one container, and how it changes: started, ended, waiting to be started again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from seamark.nodes import resizing
from seamark.rules.objects.pod import (
    NO_STATE,
    Container,
    ContainerState,
    ContainerStatus,
    Pod,
    PodStatus,
    Running,
    Terminated,
    Waiting,
)

KILLED = 137  # the exit code of a container that did not end by itself in time
Change = Callable[[Container, ContainerStatus], ContainerStatus]


class Ending(msgspec.Struct, frozen=True):
    """How containers end."""

    exit_code: int
    at: str

    @property
    def reason(self) -> str:
        return "Error" if self.exit_code else "Completed"


def changed(
    containers: Sequence[Container], statuses: Sequence[ContainerStatus], change: Change
) -> tuple[ContainerStatus, ...]:
    """The statuses of all containers after a change; a container without a status counts as one that never ran."""
    if not containers:
        return ()
    known = {status.name: status for status in statuses}
    return tuple(
        change(container, known.get(container.name) or ContainerStatus(container.name, image=container.image))
        for container in containers
    )


def never_ran(status: ContainerStatus) -> bool:
    return status.state.running is None and status.state.terminated is None and status.last_state == NO_STATE


def ended_well(status: ContainerStatus) -> bool:
    return status.state.terminated is not None and not status.state.terminated.exit_code


def started(status: PodStatus) -> Iterator[tuple[str, ContainerStatus]]:
    """The containers that were started, each with the field of the spec that it is in."""
    for field, those in (
        ("initContainers", status.init_container_statuses),
        ("containers", status.container_statuses),
    ):
        yield from ((field, each) for each in those if not never_ran(each))


def any_failed(statuses: Iterable[ContainerStatus]) -> bool:
    """Whether one of the containers has ended with an error."""
    return any(status.state.terminated is not None and status.state.terminated.exit_code for status in statuses)


def wait(status: ContainerStatus, reason: str, message: str = "") -> ContainerStatus:
    """The status of a container that has not started yet."""
    return replace(status, state=ContainerState(Waiting(reason, message)), started=False)


def start(pod: Pod, container: Container, status: ContainerStatus, *, now: str) -> ContainerStatus:
    """The status of a container that starts now, for the first time or again."""
    restarts = 0 if never_ran(status) else status.restart_count + 1
    return ContainerStatus(
        container.name,
        ContainerState(running=Running(now)),
        status.state if status.state.terminated is not None else status.last_state,
        restart_count=restarts,
        image=container.image,
        container_id=_identity(pod, container.name, restarts),
        started=True,
        allocated_resources=container.resources.requests,
        resources=container.resources,
    )


def update_image(pod: Pod, container: Container, status: ContainerStatus, *, now: str) -> ContainerStatus:
    """Restart a running container when its image was changed."""
    if status.state.running is None or status.image == container.image:
        return status
    return start(pod, container, end(status, Ending(0, now)), now=now)


def resize(pod: Pod, container: Container, status: ContainerStatus, *, now: str) -> ContainerStatus:
    """Give a running container the resources that its spec asks for; restart it if its policy for one says so."""
    given, asked = status.resources, container.resources
    if given == asked:
        return status
    if given is not None and resizing.restarts(container.resize_policy, given, asked):
        return start(pod, container, end(status, Ending(0, now)), now=now)
    return replace(status, allocated_resources=asked.requests, resources=asked)


def end(status: ContainerStatus, ending: Ending) -> ContainerStatus:
    """The status of a container that ended; one that waited for a restart shows how it ended last."""
    current = status.state.running
    if current is not None:
        state = _terminated(current.started_at, ending, status.container_id)
    elif status.state.terminated is not None:
        return status
    else:
        state = status.last_state if status.last_state != NO_STATE else _terminated(ending.at, ending, "")
    return replace(status, state=state, ready=False, started=False)


def back_off(pod: Pod, status: ContainerStatus, *, delay: float) -> ContainerStatus:
    """The status of a container that ended and waits for a restart."""
    if status.state.terminated is None:
        return status
    meta = pod.metadata
    message = (
        f"back-off {delay:g}s restarting failed container={status.name} pod={meta.name}_{meta.namespace}({meta.uid})"
    )
    waiting = ContainerState(Waiting("CrashLoopBackOff", message))
    return replace(status, state=waiting, last_state=status.state, ready=False, started=False)


def with_readiness(status: ContainerStatus, *, ready: bool) -> ContainerStatus:
    return status if status.ready == ready else replace(status, ready=ready)


def complete(pod: Pod, container: Container, status: ContainerStatus, *, now: str) -> ContainerStatus:
    """The status of an init container, which completes the moment it starts."""
    if status.state.terminated is not None:
        return status
    ran = start(pod, container, status, now=now)
    return replace(end(ran, Ending(0, now)), ready=True)


def _terminated(started: str | None, ending: Ending, container_id: str) -> ContainerState:
    ended = Terminated(
        exit_code=ending.exit_code,
        reason=ending.reason,
        started_at=started,
        finished_at=ending.at,
        container_id=container_id,
    )
    return ContainerState(terminated=ended)


def _identity(pod: Pod, name: str, restarts: int) -> str:
    """The container ID that a container runtime would give to this run of a container."""
    return "seamark://" + sha256(f"{pod.metadata.uid}/{name}/{restarts}".encode()).hexdigest()
