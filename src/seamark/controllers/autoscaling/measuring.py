"""Reads what the Pods of a workload use, and asks :mod:`sizing` what follows from it.

Only the metrics of ``metrics.k8s.io`` can be read.  Metrics of other APIs are reported as missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.controllers.autoscaling import sizing
from seamark.controllers.autoscaling.autoscaler import POD_METRICS, Direction, PodMetrics
from seamark.controllers.autoscaling.sizing import Goal, Reading, Size, SizingError, Tolerance, thousandths
from seamark.errors import Object
from seamark.kinds.autoscaling.metrics import FIELDS
from seamark.kinds.values import times
from seamark.kinds.values.quantity import amount, canonical
from seamark.rules.objects.pod import Pod

_CUSTOM = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
_EXTERNAL = (
    "unable to fetch metrics from external metrics API: no external metrics API (external.metrics.k8s.io) registered"
)


class MetricError(Exception):
    """A metric that says nothing: the reason in one word, what went wrong, and the same seen from further away."""

    def __init__(self, reason: str, message: str, outer: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.outer = f"{outer}: {message}"


class Proposal(msgspec.Struct, frozen=True):
    """How many replicas one metric asks for, the name of the metric, and what ``status.currentMetrics`` says of it."""

    replicas: int
    name: str
    status: Object


class Workload(msgspec.Struct, frozen=True):
    """The Pods that an autoscaler scales."""

    namespace: str
    selector: str
    current: int
    pods: Sequence[Pod]
    tolerance: Tolerance


def tolerance_of(down: Direction, up: Direction) -> Tolerance:
    def part(rules: Direction) -> Fraction:
        return sizing.TOLERANCE if rules.tolerance is None else Fraction(amount(rules.tolerance))

    return Tolerance(part(down), part(up))


async def propose(cluster: Cluster, metric: Object, workload: Workload, now: float) -> Proposal:
    """What one metric of an autoscaler asks for; raises MetricError."""
    kind = metric["type"]
    if kind in ("Resource", "ContainerResource"):
        return await _resource(cluster, metric, workload, now)
    source: Object = metric[kind.lower()]
    name = source["metric"]["name"]
    wrong = f"unable to get metric {name}: {_CUSTOM}"
    if kind == "Object":
        about = source["describedObject"]
        wrong = f"unable to get metric {name}: {about['kind']} on {workload.namespace} {about['name']}/{_CUSTOM}"
    elif kind == "External":
        wrong = f"unable to get external metric {workload.namespace}/{name}/nil: {_EXTERNAL}"
    raise MetricError(f"FailedGet{kind}Metric", wrong, f"failed to get {kind.lower()} metric value")


async def _resource(cluster: Cluster, metric: Object, workload: Workload, now: float) -> Proposal:
    kind = metric["type"]
    source: Object = metric[FIELDS[kind]]
    name, container, target = source["name"], source.get("container", ""), source["target"]
    percent = target.get("averageUtilization") if target.get("averageValue") is None else None
    goal = Goal(percent=percent) if percent else Goal(thousandths(target.get("averageValue") or "0"))
    try:
        readings = await _readings(cluster, workload, name, container)
        found = sizing.size(
            workload.current,
            workload.pods,
            readings,
            goal,
            resource=name,
            now=now,
            tolerance=workload.tolerance,
            container=container,
        )
    except SizingError as error:
        message = f"failed to get {name} {'utilization' if percent else 'usage'}: {error}"
        outer = f"failed to get {name} {'container' if container else 'resource'} metric value"
        raise MetricError(f"FailedGet{kind}Metric", message, outer) from None
    named = f"{name} resource utilization (percentage of request)" if percent else f"{name} resource"
    return Proposal(found.replicas, named, _status(kind, name, container, found))


def _status(kind: str, name: str, container: str, found: Size) -> Object:
    current: Object = {"averageValue": canonical(f"{found.average}m")}
    if found.percent is not None:
        current["averageUtilization"] = found.percent
    measured: Object = {"name": name, "current": current}
    if container:
        measured["container"] = container
    return {"type": kind, FIELDS[kind]: measured}


async def _readings(cluster: Cluster, workload: Workload, resource: str, container: str) -> dict[str, Reading]:
    trouble = f"unable to get metrics for resource {resource}"
    try:
        listed = await cluster.list(POD_METRICS, namespace=workload.namespace, labels=workload.selector, as_=PodMetrics)
    except errors.NotFound:
        raise SizingError(
            f"{trouble}: unable to fetch metrics from resource metrics API: the server could not find the requested "
            "resource (get pods.metrics.k8s.io)"
        ) from None
    except errors.ApiError as error:
        raise SizingError(f"{trouble}: unable to fetch metrics from resource metrics API: {error}") from error
    if not listed.items:
        raise SizingError(f"{trouble}: no metrics returned from resource metrics API")
    readings: dict[str, Reading] = {}
    for each in listed.items:
        counted = [c for c in each.containers if container in ("", c.name)]
        if counted and all(resource in c.usage for c in counted):
            used = sum(thousandths(c.usage[resource]) for c in counted)
            at = times.parse(each.timestamp) if each.timestamp else 0.0
            readings[each.metadata.name] = Reading(used, at, times.parse_duration(each.window))
    return readings
