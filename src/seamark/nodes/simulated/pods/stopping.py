"""The end of a simulated Pod that is being deleted."""

from __future__ import annotations

from msgspec.structs import replace

from seamark.kinds.values import times
from seamark.nodes import pod_conditions
from seamark.nodes.simulated.pods import containers
from seamark.nodes.simulated.pods.containers import KILLED, Ending
from seamark.nodes.simulated.pods.orders import Orders
from seamark.nodes.simulated.pods.steps import Moments, Rules, Step, time_of
from seamark.rules.objects.pod import Pod

TERMINATED = 143


def stop(pod: Pod, *, now: float, moments: Moments, orders: Orders, rules: Rules) -> Step:
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
    deadline = max(moments.stopping + grace, time_of(pod.metadata.deletion_timestamp, now)) if grace else now
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
