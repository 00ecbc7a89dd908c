"""What a step in the life of a simulated Pod is given and what comes of it; :mod:`life` and :mod:`stopping` take it.

The state is read from the Pod's status, so a restarted simulation continues where the last one stopped.
:class:`Moments` only adds precision, because a status has whole seconds.
"""

from __future__ import annotations

import msgspec

from seamark.kinds.values import times
from seamark.nodes.simulated.pods import containers
from seamark.rules.objects.pod import Pod, PodStatus


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
    accepted = time_of(status.start_time, now)
    started, finished, crashes = accepted, now, 0
    begun = not all(containers.never_ran(each) for each in status.container_statuses)
    initial = [each for each in status.init_container_statuses if not containers.ended_well(each)]
    for container in status.container_statuses if begun else initial:
        crashes = max(crashes, container.restart_count)
        if (current := container.state.running) is not None:
            started = max(started, time_of(current.started_at, now))
        elif (ended := (container.state.terminated or container.last_state.terminated)) is not None:
            finished = min(finished, time_of(ended.finished_at, now))
    stopping = None
    if pod.metadata.deletion_timestamp:
        grace = pod.metadata.deletion_grace_period_seconds or 0
        stopping = min(now, time_of(pod.metadata.deletion_timestamp, now) - grace)
    return Moments(accepted, started, finished, stopping, crashes)


def time_of(text: str | None, otherwise: float) -> float:
    """The moment that a field of a Pod has; ``otherwise`` if it has none, or no valid one."""
    if not text:
        return otherwise
    try:
        return times.parse(text)
    except times.TimeError:
        return otherwise
