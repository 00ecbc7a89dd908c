"""How many replicas a measurement of Pods asks for.  Pure.

The number grows and shrinks in proportion to the use per Pod.  Pods that are not measured, or are only starting, are
reckoned so that they dampen the change: when growing as if they used nothing, when shrinking as if they used enough.
All amounts are whole thousandths, as Kubernetes counts them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

import msgspec

from seamark.kinds.values import times
from seamark.kinds.values.quantity import measure
from seamark.rules.objects.pod import Container, Pod

TOLERANCE = Fraction(1, 10)
# Measurements of CPU are doubted for so many seconds after a Pod's start, and while it has not been ready at first.
INITIALIZATION_SECONDS = 300.0
READINESS_DELAY_SECONDS = 30.0


class SizingError(Exception):
    """No number of replicas can be calculated; the message says why."""


class Reading(msgspec.Struct, frozen=True):
    """What a Pod used on average of the last ``window`` seconds before ``time``."""

    used: int
    time: float = 0.0
    window: float = 0.0


class Tolerance(msgspec.Struct, frozen=True):
    """How far use may be below and above the target, as a part of it, before anything changes."""

    down: Fraction = TOLERANCE
    up: Fraction = TOLERANCE

    def covers(self, ratio: Fraction) -> bool:
        return 1 - self.down <= ratio <= 1 + self.up


class Goal(msgspec.Struct, frozen=True):
    """What the Pods should use on average: ``percent`` of their requests, or else ``average`` thousandths."""

    average: int = 0
    percent: int = 0


class Size(msgspec.Struct, frozen=True):
    """The number of replicas, and what was measured: the average use, and the percentage of the requests."""

    replicas: int
    average: int
    percent: int | None = None


class Sorted(msgspec.Struct):
    """Pods by what their measurements are worth; the rest is ``ready``."""

    ready: int = 0
    starting: list[str] = msgspec.field(default_factory=list)
    missing: list[str] = msgspec.field(default_factory=list)
    leaving: list[str] = msgspec.field(default_factory=list)


def sort(pods: Iterable[Pod], readings: Mapping[str, Reading], resource: str, now: float) -> Sorted:
    """Sort Pods by name; ``resource`` is what was measured, empty for a metric that is none."""
    found = Sorted()
    for pod in pods:
        name = pod.metadata.name
        reading = readings.get(name)
        if pod.terminating or pod.status.phase == "Failed":
            found.leaving.append(name)
        elif pod.status.phase == "Pending":
            found.starting.append(name)
        elif reading is None:
            found.missing.append(name)
        elif resource == "cpu" and _starting(pod, reading, now):
            found.starting.append(name)
        else:
            found.ready += 1
    return found


def _starting(pod: Pod, reading: Reading, now: float) -> bool:
    """Whether a Pod's CPU use says more about its start than about its work."""
    ready = pod.condition("Ready")
    if ready is None or not pod.status.start_time:
        return True
    started, unready = times.parse(pod.status.start_time), ready.status == "False"
    changed = times.parse(ready.last_transition_time) if ready.last_transition_time else 0.0
    if started + INITIALIZATION_SECONDS > now:
        return unready or reading.time < changed + reading.window
    return unready and started + READINESS_DELAY_SECONDS > changed


def requests_of(pods: Iterable[Pod], resource: str, container: str) -> dict[str, int]:
    """What Pods, or their containers of this name, request; raises SizingError if one does not say."""
    return {pod.metadata.name: _requested(pod, resource, container) for pod in pods}


def _requested(pod: Pod, resource: str, only: str) -> int:
    if not only and resource in pod.spec.resources.requests:
        return thousandths(str(pod.spec.resources.requests[resource]))
    sidecars = (c for c in pod.spec.init_containers if c.sidecar)
    counted: Sequence[Container] = [c for c in (*pod.spec.containers, *sidecars) if only in ("", c.name)]
    total = 0
    for each in counted:
        if resource not in each.resources.requests:
            raise SizingError(f"missing request for {resource} in container {each.name} of Pod {pod.metadata.name}")
        total += thousandths(str(each.resources.requests[resource]))
    return total


def thousandths(quantity: str) -> int:
    return math.ceil(measure(quantity) * Decimal(1000))


def size(
    current: int,
    pods: Sequence[Pod],
    readings: Mapping[str, Reading],
    goal: Goal,
    *,
    resource: str,
    now: float,
    tolerance: Tolerance,
    container: str = "",
) -> Size:
    """How many replicas these Pods should be, if they are ``current`` now; raises SizingError."""
    if not pods:
        raise SizingError("no pods returned by selector while calculating replica count")
    found = sort(pods, readings, resource, now)
    unused = {*found.leaving, *found.starting}
    used = {name: reading.used for name, reading in readings.items() if name not in unused}
    if not used:
        raise SizingError("did not receive metrics for targeted pods (pods might be unready)")
    requests = requests_of(pods, resource, container) if goal.percent else {}
    ratio, average, percent = _ratio(used, requests, goal)
    measured = Size(current, average, percent)
    growing = bool(found.starting) and ratio > 1
    if not growing and not found.missing:
        if tolerance.covers(ratio):
            return measured
        return msgspec.structs.replace(measured, replicas=math.ceil(ratio * found.ready))
    if ratio < 1:
        used |= {name: _enough(requests.get(name), goal) for name in found.missing}
    elif ratio > 1:
        used |= dict.fromkeys(found.missing, 0)
    if growing:
        used |= dict.fromkeys(found.starting, 0)
    damped, _, _ = _ratio(used, requests, goal)
    replicas = math.ceil(damped * len(used))
    turned = (ratio < 1 < damped) or (damped < 1 < ratio)
    contrary = (damped < 1 and replicas > current) or (damped > 1 and replicas < current)
    if tolerance.covers(damped) or turned or contrary:
        return measured
    return msgspec.structs.replace(measured, replicas=replicas)


def by_ratio(current: int, pods: Sequence[Pod], ratio: Fraction, tolerance: Tolerance) -> int:
    """How many replicas, if the workload as a whole has this part of its target."""
    if current == 0:
        return math.ceil(ratio)
    if tolerance.covers(ratio):
        return current
    if not pods:
        raise SizingError("no pods returned by selector while calculating replica count")
    return math.ceil(ratio * sum(pod.status.phase == "Running" and pod.ready for pod in pods))


def shared(replicas: int, used: int, each: int, tolerance: Tolerance) -> int:
    """How many replicas, if each should have so much of what is used together."""
    if replicas and tolerance.covers(Fraction(used, each * replicas)):
        return replicas
    return math.ceil(Fraction(used, each))


def _enough(request: int | None, goal: Goal) -> int:
    """What a Pod that is not measured counts for when the number shrinks."""
    return goal.average if request is None else request * max(100, goal.percent) // 100


def _ratio(used: Mapping[str, int], requests: Mapping[str, int], goal: Goal) -> tuple[Fraction, int, int | None]:
    """Use against the goal; the average use; and what percentage of the requests it is, if the goal is one."""
    if not goal.percent:
        average = sum(used.values()) // len(used)
        return Fraction(average, goal.average), average, None
    known = [name for name in used if name in requests]
    requested = sum(requests[name] for name in known)
    if not requested:
        raise SizingError("no metrics returned matched known pods")
    total = sum(used[name] for name in known)
    percent = total * 100 // requested
    return Fraction(percent, goal.percent), total // len(known), percent
